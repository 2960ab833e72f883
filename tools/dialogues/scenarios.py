"""What is said and done in the sample dialogues: for each kind the steps, in four wordings each.

``{name}`` stands for a value that is drawn for the dialogue.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Said(NamedTuple):
    """A step in which someone speaks; each wording is used once."""

    who: str
    wordings: tuple[str, ...]


class Called(NamedTuple):
    """A step in which the assistant calls a tool."""

    tool: str
    arguments: dict[str, str]
    result: Any


Step = Said | Called


def _u(*wordings: str) -> Said:
    return Said("user", wordings)


def _a(*wordings: str) -> Said:
    return Said("assistant", wordings)


class Scenario(NamedTuple):
    """One kind of dialogue."""

    name: str
    #: Whose tools are shown.
    domains: tuple[str, ...]
    steps: tuple[Step, ...]


#: Said in many kinds of dialogues, each wording once in all.
YES: Final = (
    *("Yes, please.", "Yes, that is right.", "Yes, go ahead.", "That's correct, thank you."),
    *(
        "Yes, that suits me just fine.",
        "Sure, please do.",
        "Yes, that sounds good.",
        "Correct, book it.",
    ),
    *("Yes, that's perfect.", "Yep, all good.", "Okay, that is fine.", "Yes, exactly."),
    *(
        "Yes, please go ahead with it.",
        "Right, thanks.",
        "Great, yes please.",
        "Yeah, sounds great.",
    ),
    *("Yes, do that please.", "That is all correct.", "Yes, you got it.", "Perfect, yes."),
    *(
        "Yes, I am quite happy with that.",
        "Absolutely, yes.",
        "Yes, this is what I want.",
        "Yes it is.",
    ),
    *("Yes, confirmed.", "Good, go ahead.", "Sure, that is right.", "Yes, lovely."),
)
THANKS: Final = (
    *("Thanks, that is all.", "Great, thank you, bye!", "No, that's everything, thanks."),
    *(
        "Thank you very much, that was all I had.",
        "Perfect, thanks a lot.",
        "Thanks for the help!",
    ),
    *("That is enough for today, thanks.", "No thank you, I am done.", "Lovely, bye for now."),
    *("Nothing else, thank you.", "Wonderful, thanks. Goodbye.", "Thanks, have a lovely day now."),
    *("No, I'm good, thank you, bye.", "Okay great, thanks, bye.", "That will do, thanks."),
    *("Thank you, that helps a lot.", "No, nothing more. Thank you!", "Brilliant, thanks."),
    *("Thanks so much, goodbye.", "I have what I need, thank you.", "Great, that's all then."),
    *(
        "All done, thanks.",
        "No, that is it. Cheers!",
        "Very good, thank you.",
        "Cool, thanks, bye bye.",
    ),
    *("Thank you, take care.", "That's it, many thanks.", "No more questions, thanks."),
    *("Super, thanks!", "Thank you, you were a real help.", "Fine, thanks, that was it."),
    *("Alright, thank you.", "Thanks. That's all from me.", "No, thanks, I have everything."),
    *("Okay, thank you ever so much.", "Excellent, thanks for helping me.", "Nope, that's all."),
    *(
        "Thanks, see you.",
        "Good to know, thanks.",
        "Very kind, thank you. Bye.",
        "Thanks, I'm all set.",
    ),
)
WELCOME: Final = (
    "You are welcome. Enjoy your evening!",
    "My pleasure. Goodbye!",
    "Happy to help. Bye!",
)
_CONFIRM_TABLE: Final = _a(
    "Please confirm: a table at {restaurant} for {people} people on {date} at {time}.",
    "I will book {restaurant} on {date} at {time} for {people}. Is that right?",
    "So that is a table for {people} at {restaurant}, {date} at {time}. Is that correct?",
    "Please confirm the following: {restaurant}, {people} people, {date}, {time}.",
)
_BOOKED: Final = _a(
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

SCENARIOS: Final = (
    Scenario(
        "find and book",
        ("dining", "weather"),
        (
            _u(
                "I am looking for a restaurant in the {area} that serves {cuisine} food.",
                "Can you find me a {cuisine} restaurant in the {area}?",
                "I would like to eat {cuisine} food tonight, somewhere in the {area}.",
                "Hi, please search for a good {cuisine} place to eat. The {area} would be best.",
            ),
            _FIND,
            _a(
                "{restaurant} on {street} is a nice restaurant with a rating of {rating}.",
                "I found two restaurants. How about {restaurant}? It is on {street}.",
                "There is {restaurant} on {street}, rated {rating}. Would you like that?",
                "What about {restaurant}? People rate it {rating}, and it is on {street}.",
            ),
            _u(
                "That sounds good, please book a table there for {people} people.",
                "Great, can you reserve a table for {people} at that restaurant?",
                "I like that one. I want to reserve a table for {people} people.",
                "Good choice. Please make a reservation for {people} people there.",
            ),
            _a(
                "For what date and time should I book it?",
                "Which day would you like to come, and at what time?",
                "Sure. On what date and at what time?",
                "Tell me the date and the time, please.",
            ),
            _u(
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
            _u(
                "Where can I get {cuisine} food?",
                "I feel like having {cuisine} food, can you find a restaurant?",
                "Could you search for a {cuisine} restaurant?",
                "I need a place to eat, {cuisine} food please.",
            ),
            _a(
                "In which part of town should the restaurant be?",
                "Which area did you have in mind?",
                "Which part of town suits you?",
                "In what area am I to search?",
            ),
            _u(
                "The {area}, please.",
                "Somewhere in the {area}.",
                "I will be in the {area}.",
                "In the {area} would be good.",
            ),
            _FIND,
            _a(
                "{restaurant} on {street} has a rating of {rating}. Do you like that?",
                "I found {restaurant}, which is on {street}.",
                "How about {restaurant}? It is rated {rating}.",
                "There are two. {restaurant} on {street} is the better one.",
            ),
            _u(
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
            _a(
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
            _u(
                "Please book a table at {restaurant} for {date}.",
                "I want to reserve a table at {restaurant} on {date}.",
                "Can you make a reservation at {restaurant}? It is for {date}.",
                "Hello, I would like to book a table at {restaurant} on {date}.",
            ),
            _a(
                "At what time, and for how many people?",
                "How many people are you, and what time would you like?",
                "Certainly. What time should I book, and for how many?",
                "For how many people and at what time?",
            ),
            _u(
                "For {people} people at {time}.",
                "There are {people} of us, and {time} would be nice.",
                "At {time}, a table for {people} people please.",
                "{people} people, at {time}.",
            ),
            _CONFIRM_TABLE,
            _u(
                "No, please make it {people2} people.",
                "Actually there will be {people2} people, the rest is right.",
                "Sorry, we are {people2} people now.",
                "Almost, but it should be for {people2} people.",
            ),
            _a(
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
            _u(
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
            _a(
                "It will be {sky} with about {degrees} degrees.",
                "Expect it to be {sky}, at {degrees} degrees.",
                "The forecast says {sky} and {degrees} degrees.",
                "{degrees} degrees and {sky}.",
            ),
            _u(
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
            _a(
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
            _u(
                "Is it going to rain on {date}?",
                "I need the weather forecast for {date}.",
                "What is the weather like on {date}?",
                "Will it be warm on {date}? Please check the weather.",
            ),
            _a(
                "For which city?",
                "In what city should I check?",
                "Which city do you mean?",
                "What city do you want the forecast of?",
            ),
            _u("In {city}.", "{city}, please.", "I will be in {city}.", "For {city}, thank you."),
            Called(
                "get_weather",
                {"city": "{city}", "date": "{date}"},
                {"forecast": "{sky}", "temperature": "{degrees}"},
            ),
            _a(
                "{city} will be {sky}, with {degrees} degrees.",
                "It is going to be {sky} there, at {degrees} degrees.",
                "The forecast says it will be {sky}, {degrees} degrees.",
                "Expect {degrees} degrees, and it will be {sky}.",
            ),
        ),
    ),
    Scenario(
        "taxi",
        ("taxi", "weather"),
        (
            _u(
                "I need a taxi to {place2}.",
                "Please order me a taxi, I want to go to {place2}.",
                "Can you book a cab to {place2} for me?",
                "I have to get to {place2}, can you call me a taxi?",
            ),
            _a(
                "Where should the taxi pick you up?",
                "What is your location for the pickup?",
                "Sure. From where does the ride start?",
                "Where do you want to set off from?",
            ),
            _u(
                "Please pick me up at {place}.",
                "I am leaving from {place}.",
                "My location is {place}.",
                "I will be at {place}.",
            ),
            _a(
                "And at what time do you want to set off?",
                "And when should the taxi come?",
                "At which time?",
                "For what time is the taxi?",
            ),
            _u(
                "At {time}, please.",
                "I would like to leave at {time}.",
                "It should come at {time}.",
                "Make that {time}.",
            ),
            _a(
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
            _a(
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
            _u(
                "I want to book a taxi for {people} people from {place} to {place2}.",
                "We are {people} people and need a taxi from {place} to {place2}.",
                "Could you get us a taxi from {place} to {place2}? We are {people} passengers.",
                "Please book a cab from {place} to {place2} for {people} passengers.",
            ),
            _a(
                "When do you want to set off?",
                "At what time should the taxi leave?",
                "What time suits you all?",
                "For what time should I order it?",
            ),
            _u("At {time}.", "{time} would be good.", "We leave at {time}.", "Let's say {time}."),
            _a(
                "Please confirm: {place} to {place2} at {time}, {people} passengers.",
                "A taxi for {people} from {place} to {place2} at {time}. Is that right?",
                "{people} passengers from {place} to {place2}, at {time}. Correct?",
                "I will order a taxi from {place} to {place2} at {time} for {people}. Okay?",
            ),
            _u(
                "No, let us leave at {time2} instead.",
                "Please change the time to {time2}.",
                "Sorry, make that {time2}.",
                "Could it leave at {time2} instead?",
            ),
            _a(
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
            _a(
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
            _u(
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
            _a(
                "We have {title} from {year}. Do you want that one?",
                "There are two books. One is {title}, of {year}.",
                "How about {title}? It came out in {year}.",
                "I found {title}, published in {year}.",
            ),
            _u(
                "Yes, I would like to reserve that book.",
                "That is the one, please reserve it for me.",
                "Sounds good. Please put it aside for me, I want to reserve it.",
                "I want to read that one. Can you reserve the book?",
            ),
            _a(
                "At which branch do you want to pick it up?",
                "Which branch of the library should it go to?",
                "At what branch would you like to pick it up?",
                "Where do you want to pick it up, which branch?",
            ),
            _u(
                "At the {branch} branch.",
                "{branch}, please.",
                "I can pick it up at {branch}.",
                "The {branch} library is near my home.",
            ),
            _a(
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
            _a(
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
            _u(
                "Where is my parcel?",
                "I am still waiting for a parcel. Can you find out where it is?",
                "Can you track a parcel for me?",
                "My parcel has not come yet, please check where it is.",
            ),
            _a(
                "What is the tracking number?",
                "Please tell me the tracking number of the parcel.",
                "Sure, what tracking number does it have?",
                "For that I need the tracking number.",
            ),
            _u(
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
            _a(
                "Your parcel is {status}, it was last seen in {depot}.",
                "It is {status}. The last place was {depot}.",
                "The parcel is {status} at the moment, in {depot}.",
                "It was in {depot} last, and is {status} now.",
            ),
            _u(
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
            _a(
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
            _u(
                "I would like to make an appointment for a {service}.",
                "Can I get an appointment for a {service} on {date}?",
                "I need a {service}, can you book an appointment for me?",
                "Hi, please book me an appointment for a {service} on {date}.",
            ),
            _a(
                "On what date and at what time would you like to come?",
                "At what time on {date}?",
                "Which date and what time do you prefer?",
                "What time on {date} would you like?",
            ),
            _u(
                "On {date} at {time}.",
                "At {time}, please.",
                "{date} at {time} would be best.",
                "Can I come at {time}?",
            ),
            _a(
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
            _a(
                "Your appointment is booked, please come to room {room}.",
                "Done. It is in room {room}.",
                "You have an appointment on {date} at {time}, in room {room}.",
                "It is booked. The room is {room}.",
            ),
        ),
    ),
)

#: Values: each dialogue draws its own, without drawing one twice.
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "cuisine": ("Italian", "Indian", "Thai", "Greek", "Mexican", "vegetarian"),
    "area": ("north", "south", "harbour", "old town"),
    "restaurant": (
        *("The Copper Kettle", "Saffron Garden", "Nonna Pia", "Harbour Lantern", "Blue Olive"),
        *("Casa Verde", "The Velvet Fig", "Lemon Tree", "Golden Ladle", "Little Santorini"),
    ),
    "street": ("Mill Lane", "Quay Street", "Baker Row", "Station Road", "Elm Walk", "Chapel Hill"),
    "date": (
        *("Friday", "Saturday", "Tuesday", "Sunday", "the 5th", "the 12th of May", "June 3rd"),
        *("Wednesday", "March 9th", "the 21st", "Monday", "Thursday"),
    ),
    "time": (
        *("7 pm", "8:30 pm", "6:15 pm", "12:30", "7:45 pm", "9 am", "10:30 am", "3 pm", "noon"),
        *("5:20 pm", "11 am", "4:45 pm"),
    ),
    "people": ("2", "3", "4", "5", "6"),
    "city": (
        *("Lisbon", "Oslo", "Vienna", "Dublin", "Porto", "Helsinki", "Prague", "Naples", "Bergen"),
        *("Lyon", "Krakow", "Malmo"),
    ),
    "sky": ("sunny", "cloudy", "rainy", "windy"),
    "degrees": ("12", "17", "21", "24", "9", "28"),
    "place": (
        *("Hotel Aurora", "Riverside Park", "Harbour Square", "City Museum", "Grand Theatre"),
        *("Central Station", "Elm Walk", "Mill Lane", "North Airport", "Castle Hill"),
    ),
    "car": ("white Skoda", "black Toyota", "grey Volvo", "blue Ford", "red Kia"),
    "author": ("Mira Holloway", "Tomas Lindqvist", "Ada Pereira", "Joan Whitlock"),
    "title": (
        *("The Glass Orchard", "Winter Letters", "A Map of Salt", "The Last Ferry"),
        *("Night Gardeners", "Paper Boats", "The Silent Mill", "Northern Summers"),
    ),
    "year": ("1998", "2004", "2011", "2017", "2020"),
    "branch": ("Central", "Riverside", "Hillside"),
    "parcel": (
        "PX4821907",
        "KL300517",
        "TR7745120",
        "QN118264",
        "ZB902231",
        "MH450098",
        "RD67113",
        "VC200845",
    ),
    "status": ("in transit", "at customs", "out for delivery", "waiting at the depot"),
    "depot": ("Hamburg", "Rotterdam", "Leeds", "Ghent", "Bremen"),
    "service": ("haircut", "massage", "dental check-up", "eye test"),
    "room": ("2", "5", "11", "14"),
    "code": ("LX21", "BR77", "QT40", "NA93", "KD58", "WP16", "VE02", "GH64"),
    "rating": ("4.6", "4.4", "4.8", "4.3"),
}
