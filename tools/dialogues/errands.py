"""Dialogues about taxis, books, parcels and appointments. Each step has four wordings.

``{name}`` stands for a value that is drawn for the dialogue.
"""

from __future__ import annotations

from typing import Final

from tools.dialogues.steps import Called, Said, Scenario, assistant, user

ERRANDS: Final = (
    Scenario(
        "taxi",
        ("taxi", "weather"),
        (
            user(
                "I need a taxi to {place2}.",
                "Please order me a taxi, I want to go to {place2}.",
                "Can you book a cab to {place2} for me?",
                "I have to get to {place2}, can you call me a taxi?",
            ),
            assistant(
                "Where should the taxi pick you up?",
                "What is your location for the pickup?",
                "Sure. From where does the ride start?",
                "Where do you want to set off from?",
            ),
            user(
                "Please pick me up at {place}.",
                "I am leaving from {place}.",
                "My location is {place}.",
                "I will be at {place}.",
            ),
            assistant(
                "And at what time do you want to set off?",
                "And when should the taxi come?",
                "At which time?",
                "For what time is the taxi?",
            ),
            user(
                "At {time}, please.",
                "I would like to leave at {time}.",
                "It should come at {time}.",
                "Make that {time}.",
            ),
            assistant(
                "Please confirm: a taxi from {place} to {place2} at {time}.",
                "A taxi at {time} from {place} to {place2}. Is that right?",
                "So the ride goes from {place} to {place2}, leaving at {time}. Correct?",
                "I will order a taxi from {place} to {place2} for {time}. Is that okay?",
            ),
            Said("yes", ()),
            Called(
                "book_taxi",
                {"departure": "{place}", "destination": "{place2}", "time": "{time}"},
                {"status": "ordered", "car": "{car}"},
            ),
            assistant(
                "Your taxi is ordered, look out for a {car}.",
                "Done. A {car} will pick you up.",
                "The taxi is on its way at {time}, it is a {car}.",
                "It is ordered. The driver comes in a {car}.",
            ),
        ),
    ),
    Scenario(
        "taxi for several",
        ("taxi", "dining"),
        (
            user(
                "I want to book a taxi for {people} people from {place} to {place2}.",
                "We are {people} people and need a taxi from {place} to {place2}.",
                "Could you get us a taxi from {place} to {place2}? We are {people} passengers.",
                "Please book a cab from {place} to {place2} for {people} passengers.",
            ),
            assistant(
                "When do you want to set off?",
                "At what time should the taxi leave?",
                "What time suits you all?",
                "For what time should I order it?",
            ),
            user("At {time}.", "{time} would be good.", "We leave at {time}.", "Let's say {time}."),
            assistant(
                "Please confirm: {place} to {place2} at {time}, {people} passengers.",
                "A taxi for {people} from {place} to {place2} at {time}. Is that right?",
                "{people} passengers from {place} to {place2}, at {time}. Correct?",
                "I will order a taxi from {place} to {place2} at {time} for {people}. Okay?",
            ),
            user(
                "No, let us leave at {time2} instead.",
                "Please change the time to {time2}.",
                "Sorry, make that {time2}.",
                "Could it leave at {time2} instead?",
            ),
            assistant(
                "Then it is {place} to {place2} at {time2} for {people} passengers. Is that right?",
                "All right: {time2}, {place} to {place2}, {people} passengers. Please confirm.",
                "So a taxi at {time2} from {place} to {place2} for {people}. Correct?",
                "Please confirm: {time2}, {place} to {place2}, {people} passengers.",
            ),
            Said("yes", ()),
            Called(
                "book_taxi",
                {
                    "departure": "{place}",
                    "destination": "{place2}",
                    "time": "{time2}",
                    "passengers": "{people}",
                },
                {"status": "ordered", "car": "{car}"},
            ),
            assistant(
                "It is ordered: a {car}.",
                "Done, a {car} will come.",
                "Your taxi is booked, it is a {car}.",
                "The taxi is ordered, look for a {car}.",
            ),
        ),
    ),
    Scenario(
        "library",
        ("library", "parcels"),
        (
            user(
                "I am looking for books by {author}.",
                "Do you have any books written by {author}?",
                "Can you search for books of the author {author}?",
                "Which books by {author} are in the library?",
            ),
            Called(
                "find_books",
                {"author": "{author}"},
                [{"title": "{title}", "year": "{year}"}, {"title": "{title2}", "year": "{year2}"}],
            ),
            assistant(
                "We have {title} from {year}. Do you want that one?",
                "There are two books. One is {title}, of {year}.",
                "How about {title}? It came out in {year}.",
                "I found {title}, published in {year}.",
            ),
            user(
                "Yes, I would like to reserve that book.",
                "That is the one, please reserve it for me.",
                "Sounds good. Please put it aside for me, I want to reserve it.",
                "I want to read that one. Can you reserve the book?",
            ),
            assistant(
                "At which branch do you want to pick it up?",
                "Which branch of the library should it go to?",
                "At what branch would you like to pick it up?",
                "Where do you want to pick it up, which branch?",
            ),
            user(
                "At the {branch} branch.",
                "{branch}, please.",
                "I can pick it up at {branch}.",
                "The {branch} library is near my home.",
            ),
            assistant(
                "Please confirm: {title}, pickup at the {branch} branch.",
                "I will reserve {title} at the {branch} branch. Is that right?",
                "So that is {title}, to be picked up at {branch}. Correct?",
                "Reserve {title} at {branch}. Is that okay?",
            ),
            Said("yes", ()),
            Called(
                "reserve_book",
                {"title": "{title}", "branch": "{branch}"},
                {"status": "reserved", "ready": "tomorrow"},
            ),
            assistant(
                "It is reserved and will be ready tomorrow.",
                "Done, you can pick it up tomorrow.",
                "Your book is reserved. Anything else?",
                "The book will be ready tomorrow.",
            ),
        ),
    ),
    Scenario(
        "parcel",
        ("parcels", "appointments"),
        (
            user(
                "Where is my parcel?",
                "I am still waiting for a parcel. Can you find out where it is?",
                "Can you track a parcel for me?",
                "My parcel has not come yet, please check where it is.",
            ),
            assistant(
                "What is the tracking number?",
                "Please tell me the tracking number of the parcel.",
                "Sure, what tracking number does it have?",
                "For that I need the tracking number.",
            ),
            user(
                "It is {parcel}.",
                "{parcel}",
                "The number is {parcel}.",
                "The tracking number is {parcel}.",
            ),
            Called(
                "track_parcel",
                {"tracking_number": "{parcel}"},
                {"status": "{status}", "place": "{depot}"},
            ),
            assistant(
                "Your parcel is {status}, it was last seen in {depot}.",
                "It is {status}. The last place was {depot}.",
                "The parcel is {status} at the moment, in {depot}.",
                "It was in {depot} last, and is {status} now.",
            ),
            user(
                "I have another parcel, the number is {parcel2}.",
                "Can you also track {parcel2}?",
                "And where is {parcel2}?",
                "Please check parcel {parcel2} as well.",
            ),
            Called(
                "track_parcel",
                {"tracking_number": "{parcel2}"},
                {"status": "delivered", "place": "{depot2}"},
            ),
            assistant(
                "That one was delivered in {depot2}.",
                "This parcel was delivered already.",
                "It has been delivered in {depot2}.",
                "That one has arrived in {depot2}.",
            ),
        ),
    ),
    Scenario(
        "appointment",
        ("appointments", "library"),
        (
            user(
                "I would like to make an appointment for a {service}.",
                "Can I get an appointment for a {service} on {date}?",
                "I need a {service}, can you book an appointment for me?",
                "Hi, please book me an appointment for a {service} on {date}.",
            ),
            assistant(
                "On what date and at what time would you like to come?",
                "At what time on {date}?",
                "Which date and what time do you prefer?",
                "What time on {date} would you like?",
            ),
            user(
                "On {date} at {time}.",
                "At {time}, please.",
                "{date} at {time} would be best.",
                "Can I come at {time}?",
            ),
            assistant(
                "Please confirm: a {service} on {date} at {time}.",
                "A {service} on {date} at {time}. Is that right?",
                "So you come for a {service} on {date} at {time}. Correct?",
                "I will book a {service} for {date}, {time}. Is that okay?",
            ),
            Said("yes", ()),
            Called(
                "book_appointment",
                {"service": "{service}", "date": "{date}", "time": "{time}"},
                {"status": "booked", "room": "{room}"},
            ),
            assistant(
                "Your appointment is booked, please come to room {room}.",
                "Done. It is in room {room}.",
                "You have an appointment on {date} at {time}, in room {room}.",
                "It is booked. The room is {room}.",
            ),
        ),
    ),
)
