"""Sentences that occur in many sample dialogues, and the values that are drawn for them."""

from __future__ import annotations

from typing import Final

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
