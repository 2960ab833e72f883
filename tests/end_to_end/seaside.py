"""A small hotel by the sea: bots of the three kinds and what guests asked them.

Each bot is a module of a few lines, as a team would write it, and each has a weak spot that the
tests look for. `write_seaside` puts all files into a folder in which pytest and `dstfuzz` run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Belief states. `fragile` needs the words around a value, `sturdy` the value alone, and it knows
#: mistyped values.
STATE_BOT = '''
import collections
import re

from rapidfuzz.distance import DamerauLevenshtein

from pytest_dstfuzz import BeliefState, Prediction

DAY = "(monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
FRAGILE = {
    "room-day": rf"arriv\\w+ on {DAY}",
    "room-view": r"(harbour|garden|street) view",
    "room-size": r"(single|double|family) room",
    "meal-kind": r"(vegan|fish|kosher) (?:dinner|breakfast)",
}
STURDY = {
    "room-day": DAY,
    "room-view": r"(harbour|garden|street)",
    "room-size": r"(single|double|family)",
    "meal-kind": r"(vegan|fish|kosher)",
}
VALUES = [value for rule in STURDY.values() for value in rule.strip("()").split("|")]


def spelled(said):
    """Replace each value with up to two slips by the value, with one slip if it is short."""
    for value in VALUES:
        said = re.sub(" ?".join(value), value, said)
    return " ".join(map(nearest, re.findall(r"\\w+", said)))


def nearest(word):
    slips, value = min((DamerauLevenshtein.distance(word, value), value) for value in VALUES)
    return value if slips <= (2 if len(value) > 4 else 1) else word


def read(context, rules):
    state = {}
    for said in context.user_utterances:
        said = spelled(said.lower()) if rules is STURDY else said.lower()
        for slot, rule in rules.items():
            if found := re.search(rule, said):
                state[slot] = found[1]
    return state


def fragile(context):
    return read(context, FRAGILE)


def sturdy(context):
    return read(context, STURDY)


def forgetful(context):
    """Like sturdy, but does not know meals any more."""
    state = read(context, STURDY)
    state.pop("meal-kind", None)
    return state


def deaf(context):
    return {}


def dead(context):
    raise OSError("no route to host")


def tired(context):
    """Fails at one dialogue, which the check before the run does not ask for."""
    if "kosher" in context.user.lower():
        raise RuntimeError("too tired")
    return read(context, STURDY)


def stubborn(context):
    """Keeps the first value of a slot."""
    state = {}
    for said in map(spelled, map(str.lower, context.user_utterances)):
        for slot, rule in STURDY.items():
            if found := re.search(rule, said):
                state.setdefault(slot, found[1])
    return state


ASKED = collections.Counter()


def moody(context):
    """Leaves out the view each fifth time that it is asked the same."""
    said = context.user_utterances
    ASKED[said] += 1
    state = read(context, STURDY)
    if ASKED[said] % 5 == 2:
        state.pop("room-view", None)
    return state


class Counted:
    """Writes down how many contexts it is asked, and has a fingerprint for the cache."""

    fingerprint = "counted-1"

    def predict(self, contexts):
        with open("asked.txt", "a", encoding="utf-8") as file:
            file.write("asked\\n" * len(contexts))
        return [Prediction(BeliefState(read(context, FRAGILE))) for context in contexts]


fragile.fingerprint = "fragile-1"
'''

#: Replies.
REPLY_BOT = '''
import difflib

ANSWERS = {
    "breakfast": "Breakfast is served from 7 to 10.",
    "parking": "There are 12 places behind the house.",
    "wifi": "The password is on your key card.",
    "towels": "Fresh towels are at the front desk.",
}


def reply(messages):
    asked = messages[-1]["content"].lower()
    for word, answer in ANSWERS.items():
        if word in asked:
            return answer
    return "Sorry, I did not get that."


def sturdy(messages):
    """Replies the same, and knows mistyped words."""
    for asked in messages[-1]["content"].lower().strip("?").split():
        for word in difflib.get_close_matches(asked, ANSWERS, 1, 0.7):
            return ANSWERS[word]
    return "Sorry, I did not get that."


def silent(messages):
    return "Sorry, I did not get that."


def same_start(before, found):
    return before[:5] == found[:5]
'''

#: Tool calls.
CALL_BOT = '''
import difflib
import json
import re

from rapidfuzz.distance import DamerauLevenshtein

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"function": function}]}


def answer(messages, tools):
    asked = messages[-1]["content"].lower()
    day = next((day for day in DAYS if day in asked), None)
    guests = re.search(r"\\d+", asked)
    if day is None:
        return {"role": "assistant", "content": "On which day?"}
    if "cancel" in asked:
        return call("cancel_room", day=day)
    extra = {"balcony": True} if "balcony" in asked else {}
    return call("book_room", day=day, guests=int(guests[0]) if guests else 2, **extra)


def sturdy(messages, tools):
    """Calls the same, and knows mistyped words."""
    asked = messages[-1]["content"].lower()
    for day in DAYS:
        asked = re.sub(" ?".join(day), day, asked)
    words = asked.split()
    distance = DamerauLevenshtein.distance
    slips, day = min((distance(word, day), day) for word in words for day in DAYS)
    day = day if slips <= 2 else None
    guests = re.search(r"\\d+", asked)
    if day is None:
        return {"role": "assistant", "content": "On which day?"}
    if guests is None:
        return call("cancel_room", day=day)
    close = difflib.get_close_matches("balcony", asked.split(), cutoff=0.7)
    extra = {"balcony": True} if close else {}
    return call("book_room", day=day, guests=int(guests[0]), **extra)


def first_tool(messages, tools):
    """Calls whichever tool it is shown first."""
    function = tools[0].get("function", tools[0])
    return call(function["name"], day="monday")


def idle(messages, tools):
    return {"role": "assistant", "content": "One moment."}


answer.fingerprint = "answer-1"
'''

TOOLS = [
    {
        "name": "book_room",
        "description": "Book a room.",
        "parameters": {
            "type": "object",
            "required": ["day", "guests"],
            "properties": {
                "day": {"type": "string"},
                "guests": {"type": "integer"},
                "balcony": {"type": "boolean"},
            },
        },
    },
    {
        "name": "cancel_room",
        "description": "Cancel the room of a day.",
        "parameters": {
            "type": "object",
            "required": ["day"],
            "properties": {"day": {"type": "string"}},
        },
    },
]

#: Of each guest what the hotel said, what the guest said, and which slots that adds.
STAYS = {
    "anna": [
        (
            "",
            "Good morning, we are arriving on friday and would like a family room",
            "room-day=friday room-size=family",
        ),
        ("Any wishes for the view?", "Something with a garden view please", "room-view=garden"),
    ],
    "ben": [
        (
            "",
            "Have you got a single room with harbour view for me",
            "room-size=single room-view=harbour",
        ),
        ("When are you coming?", "I will be arriving on monday I think", "room-day=monday"),
    ],
    "carla": [
        ("", "Could you prepare a vegan dinner for us this evening", "meal-kind=vegan"),
        (
            "Of course. Which room are you in?",
            "We have the double room on the second floor",
            "room-size=double",
        ),
    ],
    "dan": [
        (
            "",
            "My parents need a double room and they are arriving on sunday",
            "room-size=double room-day=sunday",
        ),
        ("Shall we cook for them?", "Yes a fish dinner would be lovely", "meal-kind=fish"),
    ],
    "eve": [
        ("", "Is there still something free with street view", "room-view=street"),
        ("For how many?", "Only me so a single room is enough", "room-size=single"),
    ],
    "finn": [
        ("", "We eat kosher breakfast only is that possible", "meal-kind=kosher"),
        ("It is. When will you be here?", "Probably arriving on tuesday night", "room-day=tuesday"),
    ],
    "gita": [
        (
            "",
            "A family room with garden view please for the whole week",
            "room-size=family room-view=garden",
        ),
    ],
    "hal": [
        ("", "Please note that I am arriving on thursday by train", "room-day=thursday"),
        ("Thank you. Anything else?", "A vegan breakfast in the morning", "meal-kind=vegan"),
    ],
}
#: The questions of some guests, in the order in which each asks them.
QUESTIONS = {
    "anna": ["Hello, when do you serve breakfast?", "And is there any parking near the house?"],
    "ben": ["Could you tell me how to use the wifi here"],
    "carla": ["We would like some more towels for the bathroom"],
    "dan": ["I wonder whether breakfast is included", "Great, then where can I find towels?"],
    "eve": ["Is the parking for free or do we pay"],
    "finn": ["The wifi does not work in my room"],
    "gita": ["Do my children get breakfast as well?"],
}
#: Questions of guests, and the calls that an assistant should make then.
REQUESTS = {
    "anna": [("Please book us a room for 3 guests on friday with a balcony", (3, "friday", True))],
    "ben": [
        ("I need a room on monday for 2 guests", (2, "monday", False)),
        ("Sorry, could you cancel it again? It was for monday", "monday"),
    ],
    "carla": [("We want to cancel our stay on sunday", "sunday")],
    "dan": [("A room with a nice balcony for 4 guests on tuesday", (4, "tuesday", True))],
    "eve": [("Could you cancel my room on thursday please", "thursday")],
    "finn": [("Do you have a room for 5 guests on saturday", (5, "saturday", False))],
    "gita": [
        ("There are 2 guests coming on wednesday and we love a balcony", (2, "wednesday", True))
    ],
}


@dataclass(frozen=True)
class BotKind:
    """Bots of one kind in one module, their dialogues, and the options that a run needs.

    The weak one has violations, the one called ``sturdy`` answers the same to clean turns, and
    the other one does not.
    """

    name: str
    module: str
    weak: str
    other: str
    data: str
    options: tuple[str, ...] = ()

    def run_options(self, bot: str = "") -> tuple[str, ...]:
        """Return the options of a run of the weak bot, or of the one with this name."""
        model = f"--dst-model={self.module}:{bot or self.weak}"
        # One search makes all variants, whatever the default is.
        search = "--dst-search=random"
        return (model, f"--dst-data={self.data}", search, *self.options)


STATES = BotKind("state", "statebot", "fragile", "forgetful", "stays.jsonl")
REPLIES = BotKind(
    "reply", "replybot", "reply", "silent", "questions.jsonl", ("--dst-outcome=reply",)
)
CALLS = BotKind(
    "tool-calls", "callbot", "answer", "idle", "requests.jsonl", ("--dst-outcome=tool-calls",)
)
KINDS = {kind.name: kind for kind in (STATES, REPLIES, CALLS)}


def write_seaside(folder: Path) -> Path:
    """Write bots, dialogues and tools into a folder, and return it."""
    texts = {
        "pytest.ini": "[pytest]\n",
        "statebot.py": STATE_BOT,
        "replybot.py": REPLY_BOT,
        "callbot.py": CALL_BOT,
        "tools.json": json.dumps(TOOLS),
        "stays.jsonl": _lines(map(_stay, STAYS)),
        "unlabelled.jsonl": _lines(map(_unlabelled, STAYS)),
        "questions.jsonl": _lines(
            {"dialogue_id": guest, "users": users} for guest, users in QUESTIONS.items()
        ),
        "requests.jsonl": _lines(map(_request, REQUESTS)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _stay(guest: str) -> dict[str, Any]:
    state: dict[str, str] = {}
    turns = []
    for system, user, added in STAYS[guest]:
        state |= dict(pair.split("=") for pair in added.split())
        turns.append({"system": system, "user": user, "state": dict(state)})
    return {"dialogue_id": guest, "turns": turns}


def _unlabelled(guest: str) -> dict[str, Any]:
    turns = [{"system": system, "user": user} for system, user, _ in STAYS[guest]]
    return {"dialogue_id": guest, "turns": turns}


def _request(guest: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You look after the rooms."}]
    for number, (asked, wanted) in enumerate(REQUESTS[guest]):
        messages.append({"role": "user", "content": asked})
        if isinstance(wanted, str):
            name, arguments = "cancel_room", {"day": wanted}
        else:
            guests, day, balcony = wanted
            name, arguments = "book_room", {"day": day, "guests": guests}
            arguments |= {"balcony": True} if balcony else {}
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": "done"},
            {"role": "assistant", "content": "That is done."},
        ]
    return {
        "id": guest,
        "messages": messages,
        "tools": [{"type": "function", "function": tool} for tool in TOOLS],
    }


#: Outcomes of the variants of the weak bot's run, by kind. Noise models, lexicon, reader and seeds
#: decide them, so they change if one of these does, and only then.
OUTCOMES: dict[str, dict[str, int]] = {
    "state": {"carried": 8, "held": 33, "violation": 34},
    "reply": {"held": 34, "violation": 11},
    "tool-calls": {"held": 18, "violation": 22},
}
#: Violations among them, by kind.
VIOLATIONS = {kind: found["violation"] for kind, found in OUTCOMES.items()}
