"""Dialogues about restaurants and the weather. Each step has four wordings.

``{name}`` stands for a value that is drawn for the dialogue.
"""

from __future__ import annotations

from typing import Final

from tools.dialogues.steps import Called, Said, Scenario, assistant, user

_CONFIRM_TABLE: Final = assistant(
    "Please confirm: a table at {restaurant} for {people} people on {date} at {time}.",
    "I will book {restaurant} on {date} at {time} for {people}. Is that right?",
    "So that is a table for {people} at {restaurant}, {date} at {time}. Is that correct?",
    "Please confirm the following: {restaurant}, {people} people, {date}, {time}.",
)
_BOOKED: Final = assistant(
    "Your table is booked, the reference is {code}. Is there more that I can do?",
    "Done, your table is reserved under {code}. Shall I do anything more?",
    "The booking went through. The reference is {code}. Anything else?",
    "It is booked, reference {code}. Is there anything else?",
)
_TABLE: Final = Called(
    "book_table",
    {"restaurant": "{restaurant}", "date": "{date}", "time": "{time}", "people": "{people}"},
    {"status": "booked", "reference": "{code}"},
)
_FIND: Final = Called(
    "find_restaurant",
    {"cuisine": "{cuisine}", "area": "{area}"},
    [
        {"restaurant": "{restaurant}", "street": "{street}", "rating": "{rating}"},
        {"restaurant": "{restaurant2}", "street": "{street2}", "rating": "4.0"},
    ],
)

GOING_OUT: Final = (
    Scenario(
        "find and book",
        ("dining", "weather"),
        (
            user(
                "I am looking for a restaurant in the {area} that serves {cuisine} food.",
                "Can you find me a {cuisine} restaurant in the {area}?",
                "I would like to eat {cuisine} food tonight, somewhere in the {area}.",
                "Hi, please search for a good {cuisine} place to eat. The {area} would be best.",
            ),
            _FIND,
            assistant(
                "{restaurant} on {street} is a nice restaurant with a rating of {rating}.",
                "I found two restaurants. How about {restaurant}? It is on {street}.",
                "There is {restaurant} on {street}, rated {rating}. Would you like that?",
                "What about {restaurant}? People rate it {rating}, and it is on {street}.",
            ),
            user(
                "That sounds good, please book a table there for {people} people.",
                "Great, can you reserve a table for {people} at that restaurant?",
                "I like that one. I want to reserve a table for {people} people.",
                "Good choice. Please make a reservation for {people} people there.",
            ),
            assistant(
                "For what date and time should I book it?",
                "Which day would you like to come, and at what time?",
                "Sure. On what date and at what time?",
                "Tell me the date and the time, please.",
            ),
            user(
                "On {date} at {time}, please.",
                "Please make it {date} at {time}.",
                "{time} on {date} would be great.",
                "We would like to come on {date} at {time}.",
            ),
            _CONFIRM_TABLE,
            Said("yes", ()),
            _TABLE,
            _BOOKED,
        ),
    ),
    Scenario(
        "find another",
        ("dining",),
        (
            user(
                "Where can I get {cuisine} food?",
                "I feel like having {cuisine} food, can you find a restaurant?",
                "Could you search for a {cuisine} restaurant?",
                "I need a place to eat, {cuisine} food please.",
            ),
            assistant(
                "In which part of town should the restaurant be?",
                "Which area did you have in mind?",
                "Which part of town suits you?",
                "In what area am I to search?",
            ),
            user(
                "The {area}, please.",
                "Somewhere in the {area}.",
                "I will be in the {area}.",
                "In the {area} would be good.",
            ),
            _FIND,
            assistant(
                "{restaurant} on {street} has a rating of {rating}. Do you like that?",
                "I found {restaurant}, which is on {street}.",
                "How about {restaurant}? It is rated {rating}.",
                "There are two. {restaurant} on {street} is the better one.",
            ),
            user(
                "I changed my mind, please look for {cuisine2} food instead.",
                "Hmm, is there anything with {cuisine2} food?",
                "Can you find me a {cuisine2} restaurant there?",
                "My friend would rather have {cuisine2} food.",
            ),
            Called(
                "find_restaurant",
                {"cuisine": "{cuisine2}", "area": "{area}"},
                [{"restaurant": "{restaurant2}", "street": "{street2}", "rating": "4.0"}],
            ),
            assistant(
                "Then I would suggest {restaurant2} on {street2}.",
                "Yes, there is {restaurant2} on {street2}, rated 4.0.",
                "{restaurant2} would be one, it is on {street2}.",
                "I found one more restaurant, {restaurant2}.",
            ),
        ),
    ),
    Scenario(
        "table at a known place",
        ("dining", "taxi"),
        (
            user(
                "Please book a table at {restaurant} for {date}.",
                "I want to reserve a table at {restaurant} on {date}.",
                "Can you make a reservation at {restaurant}? It is for {date}.",
                "Hello, I would like to book a table at {restaurant} on {date}.",
            ),
            assistant(
                "At what time, and for how many people?",
                "How many people are you, and what time would you like?",
                "Certainly. What time should I book, and for how many?",
                "For how many people and at what time?",
            ),
            user(
                "For {people} people at {time}.",
                "There are {people} of us, and {time} would be nice.",
                "At {time}, a table for {people} people please.",
                "{people} people, at {time}.",
            ),
            _CONFIRM_TABLE,
            user(
                "No, please make it {people2} people.",
                "Actually there will be {people2} people, the rest is right.",
                "Sorry, we are {people2} people now.",
                "Almost, but it should be for {people2} people.",
            ),
            assistant(
                "Please confirm: {restaurant} on {date} at {time}, {people2} people.",
                "All right, {people2} people at {restaurant}, {date}, {time}. Is that correct?",
                "Then it is a table for {people2} at {restaurant} on {date} at {time}. Right?",
                "So {restaurant} for {people2} people on {date} at {time}. Is that right now?",
            ),
            Said("yes", ()),
            Called(
                "book_table",
                {
                    "restaurant": "{restaurant}",
                    "date": "{date}",
                    "time": "{time}",
                    "people": "{people2}",
                },
                {"status": "booked", "reference": "{code}"},
            ),
            _BOOKED,
        ),
    ),
    Scenario(
        "weather in two places",
        ("weather", "dining"),
        (
            user(
                "What will the weather be like in {city} on {date}?",
                "Can you check the weather in {city} for {date}?",
                "I am going to {city} on {date}, what is the forecast?",
                "How is the weather in {city} on {date}?",
            ),
            Called(
                "get_weather",
                {"city": "{city}", "date": "{date}"},
                {"forecast": "{sky}", "temperature": "{degrees}"},
            ),
            assistant(
                "It will be {sky} with about {degrees} degrees.",
                "Expect it to be {sky}, at {degrees} degrees.",
                "The forecast says {sky} and {degrees} degrees.",
                "{degrees} degrees and {sky}.",
            ),
            user(
                "And what is the forecast for {city2}?",
                "How is the weather in {city2} on the same day?",
                "Now please check {city2}.",
                "What is the weather in {city2} then?",
            ),
            Called(
                "get_weather",
                {"city": "{city2}", "date": "{date}"},
                {"forecast": "{sky2}", "temperature": "{degrees2}"},
            ),
            assistant(
                "In {city2} it will be {sky2}, with {degrees2} degrees.",
                "{city2} will be {sky2} at {degrees2} degrees.",
                "There it is going to be {sky2} and {degrees2} degrees.",
                "The forecast for {city2} is {sky2}, {degrees2} degrees.",
            ),
        ),
    ),
    Scenario(
        "weather, asked back",
        ("weather", "taxi"),
        (
            user(
                "Is it going to rain on {date}?",
                "I need the weather forecast for {date}.",
                "What is the weather like on {date}?",
                "Will it be warm on {date}? Please check the weather.",
            ),
            assistant(
                "For which city?",
                "In what city should I check?",
                "Which city do you mean?",
                "What city do you want the forecast of?",
            ),
            user("In {city}.", "{city}, please.", "I will be in {city}.", "For {city}, thank you."),
            Called(
                "get_weather",
                {"city": "{city}", "date": "{date}"},
                {"forecast": "{sky}", "temperature": "{degrees}"},
            ),
            assistant(
                "{city} will be {sky}, with {degrees} degrees.",
                "It is going to be {sky} there, at {degrees} degrees.",
                "The forecast says it will be {sky}, {degrees} degrees.",
                "Expect {degrees} degrees, and it will be {sky}.",
            ),
        ),
    ),
)
