"""Bots that are right and word their answers anew with each text, and faults to plant in them.

A bot knows a question by the letters it shares with those of its file, so that no slip leads it
astray: `Wordings.meant` says what a text asks for. Which wording it chooses hangs on the text, and
it may say the user's own words again.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Exchange, Turn

FALLBACK: Final = "Sorry, I did not understand that."
REFUSAL: Final = "I cannot help you with this."
_GRAM: Final = 3


@dataclass
class Known:
    """An answer: the questions for it and its wordings."""

    name: str
    questions: list[str] = field(default_factory=list)
    wordings: list[str] = field(default_factory=list)


def read(name: str) -> tuple[list[Known], list[list[str]]]:
    """Return the answers of a file beside this one, and its dialogues."""
    found: list[Known] = []
    dialogues: list[list[str]] = []
    for line in (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        mark, text = line[0], line[2:]
        if mark == "=":
            found.append(Known(text))
        elif mark in "?-":
            (found[-1].questions if mark == "?" else found[-1].wordings).append(text)
        elif mark == "@":
            dialogues.append(text.split(" | "))
    return found, dialogues


class Wordings:
    """A bot that chooses one of several wordings by the letters of the text."""

    repeatable = True

    def __init__(
        self, name: str, fault: Callable[[Wordings, str, Known, str], str] | None = None
    ) -> None:
        """Take the name of a file, and what a fault makes of a reply."""
        self.known, self._dialogues = read(name)
        self.clean = {text for one in self.known for text in one.questions}
        self._fault = fault

    def reply(self, context: Context) -> str:
        """Return the reply to the last question."""
        text = context.user
        known = self.meant(text)
        said = known.wordings[hashed(text) % len(known.wordings)]
        if self._fault is not None and text not in self.clean:
            said = self._fault(self, text, known, said)
        echoed = max(re.findall(r"\w+", text) or [text], key=len)
        opening = ("", "", f"About {echoed}: ", f"{echoed.capitalize()}? ")
        return opening[hashed(f"{text} ") % len(opening)] + said

    def meant(self, text: str) -> Known:
        """Return the answer whose questions share most with a text."""
        return max(self.known, key=lambda one: max(_alike(text, own) for own in one.questions))

    def data(self) -> DialogueSet:
        """Return its dialogues with recorded answers; without any, each question is one."""
        listed = self._dialogues or [[text] for one in self.known for text in one.questions]
        return recorded(
            (users, [self.meant(text).wordings[0] for text in users]) for users in listed
        )


class Orders:
    """A bot for orders that keeps in mind which one is talked about, and needs it."""

    repeatable = True
    #: Of each order where it is, when it comes, what it costs.
    orders: Final = {
        "A4471": ("has left Leeds", "arrives on Friday", "comes to £35"),
        "B2093": ("is being packed", "arrives next Tuesday", "comes to £12"),
        "C7710": ("waits in the depot", "arrives tomorrow", "comes to £80"),
    }
    which: Final = "Which order do you mean? Please give me its number."

    def __init__(self, *, forgets: bool = False, guesses: bool = False) -> None:
        """Take whether it forgets what was said, and whether it makes up an order."""
        self._forgets, self._guesses = forgets, guesses

    def reply(self, context: Context) -> str:
        """Return the reply to the last question."""
        said = context.user_utterances[-1 if self._forgets else 0 :]
        named = [code for text in said for code in re.findall(r"[A-C]\d{4}", text.upper())]
        if not named and not self._guesses:
            return self.which
        order = named[-1] if named else "A4471"
        text = context.user.lower()
        place, comes, costs = self.orders.get(order, ("is not known", "never arrives", "is free"))
        told = comes if re.search("arrive|here|get", text) else place
        return f"Order {order} {costs if re.search('cost|pay|much', text) else told}."

    def data(self) -> DialogueSet:
        """Return dialogues with recorded answers."""
        listed = [
            ["Where is my order A4471?", "When does it arrive?", "And how much does it cost?"],
            ["When will B2093 get here?", "How much do I have to pay for it?", "Where is it now?"],
            [
                "Where is C7710?",
                "When will that arrive?",
                "And where is A4471?",
                "What does it cost?",
            ],
            ["How much is order A4471?", "Where is it?", "When does it get here?"],
            [
                "Is order B2093 on its way?",
                "When does it arrive?",
                "And order C7710?",
                "Where is it?",
            ],
            ["Where is my order C7710?", "How much did it cost?", "When does it arrive?"],
        ]
        replies = []
        for users in listed:
            asked: list[Exchange] = []
            said: list[str] = []
            for text in users:
                asked.append(Exchange(said[-1] if said else "", text))
                said.append(Orders().reply(Context(tuple(asked))))
            replies.append(said)
        return recorded(zip(listed, replies, strict=True))


def recorded(listed: Iterable[tuple[list[str], list[str]]]) -> DialogueSet:
    """Return dialogues of questions and the answers that were recorded to them."""
    dialogues = [
        Dialogue(
            f"talk-{number}",
            tuple(
                Turn(place, answers[place - 1] if place else "", text, answer=answers[place])
                for place, text in enumerate(users)
            ),
        )
        for number, (users, answers) in enumerate(listed)
    ]
    return DialogueSet("wordings", "test", tuple(dialogues))


def hashed(text: str) -> int:
    """Return a number that depends on each letter."""
    return zlib.crc32(text.encode())


@cache
def _grams(text: str) -> Counter[str]:
    plain = f" {re.sub(r'[^a-z ]', '', text.lower())} "
    return Counter(plain[at : at + _GRAM] for at in range(len(plain) - _GRAM + 1))


def _alike(one: str, other: str) -> float:
    mine, theirs = _grams(one), _grams(other)
    shared = sum(min(count, theirs[gram]) for gram, count in mine.items())
    return shared / math.sqrt(max(mine.total() * theirs.total(), 1))


def wrong_fact(bot: Wordings, text: str, known: Known, said: str) -> str:
    """Put another figure or another name into a reply; one without any stays."""
    del bot, text, known
    swapped = re.sub(r"\b(?:10|12|14|20)\b", "15", said)
    swapped = re.sub(r"\b[268] pm\b", "4 pm", swapped)
    swapped = swapped.replace("Helena Marsh", "Oscar Lindqvist").replace("Quay Street", "Mill Lane")
    return swapped.replace("groups@", "hello@").replace('"Documents"', '"Settings"')


def wrong_intent(bot: Wordings, text: str, known: Known, said: str) -> str:
    """Answer another question."""
    del said
    others = [one for one in bot.known if one is not known]
    other = others[hashed(text) // 7 % len(others)]
    return other.wordings[hashed(text) % len(other.wordings)]


def fallback(bot: Wordings, text: str, known: Known, said: str) -> str:
    """Give no answer."""
    del bot, text, known, said
    return FALLBACK


def refusal(bot: Wordings, text: str, known: Known, said: str) -> str:
    """Refuse."""
    del bot, text, known, said
    return REFUSAL


FAULTS: Final = {one.__name__: one for one in (wrong_fact, wrong_intent, fallback, refusal)}
