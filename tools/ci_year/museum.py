"""The bot of a museum, by rules: it answers questions in sentences. There are 28 builds of it."""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Sequence
from typing import ClassVar, Final

from tools.ci_year.builds import Build, BuildTable, current
from tools.ci_year.words import Reader

Message = dict[str, str]
ANSWERS: Final = {
    "refund": "Unused admission is paid back within 14 days at the counter.",
    "complaint": "We are sorry. Please write to the director, she answers within 3 days.",
    "lost": "Lost property is kept for 6 months, please call 555 0147.",
    "pass": "The annual card is 45 euros and is valid for 12 months.",
    "small-children": "Visitors under 6 are free.",
    "audio": "The device is free with each admission.",
    "tour": "We show small parties round at 11:00 and 15:00, it takes 50 minutes.",
    "groups": "Parties of more than 10 have to register 3 days ahead.",
    "booking": "No reservation is necessary, except on the first Sunday of a month.",
    "prices": "Adults pay 12 euros, reduced admission is 7 euros.",
    "hours": "We welcome you daily from 10:00 to 18:00, and to 20:00 at weekends.",
    "luggage": "Bags go into the lockers on the ground floor, they take a 1 euro coin.",
    "photos": "Yes, for private use, but no flash, please.",
    "access": "Yes, there are lifts to all 4 floors.",
    "food": "The restaurant on floor 2 serves lunch from 12:00 to 14:30.",
    "parking": "The garage in Mill Street has 200 spaces, 2 euros an hour.",
    "animals": "Only assistance animals, we are afraid.",
    "shop": "You find books and prints beside the exit.",
    "internet": "Yes, the network is called Gallery, without a code.",
    "events": "Rooms for up to 120 persons are let from 800 euros.",
    "travel": "Line 4 stops at our door every 10 minutes, also on holidays.",
    "collection": "Since May we show 30 works by women of the 1920s.",
}
KEYWORDS: Final = {
    "refund": ("money", "refund"),
    "complaint": ("complain", "rude"),
    "lost": ("lost", "umbrella"),
    "pass": ("yearly", "membership"),
    "small-children": ("toddlers", "baby"),
    "audio": ("audio",),
    "tour": ("guided", "tour"),
    "groups": ("class", "school", "group"),
    "booking": ("book", "reserve"),
    "prices": ("cost", "fee", "price", "much"),
    "hours": ("close", "open", "until"),
    "luggage": ("suitcase", "cloakroom", "backpack"),
    "photos": ("pictures", "photos"),
    "access": ("wheelchair", "stairs"),
    "food": ("eat", "coffee", "hungry"),
    "parking": ("car", "parking"),
    "animals": ("dog", "dogs", "pets"),
    "shop": ("buy", "catalogue", "souvenir"),
    "internet": ("wifi", "charge"),
    "events": ("wedding", "hire"),
    "travel": ("bus", "railway", "reach"),
    "collection": ("paintings", "new"),
}
FALLBACK: Final = "I am afraid I did not get that, could you put it in other words?"


class Museum(Reader):
    """Answers the last question with the answer of the first topic that it hears."""

    keywords: ClassVar[dict[str, tuple[str, ...]]] = KEYWORDS
    answers: ClassVar[dict[str, str]] = ANSWERS
    fallback: str = FALLBACK

    def reply(self, messages: list[Message]) -> str:
        """Return the reply to the last message of the user."""
        topic = self.topic(messages[-1]["content"])
        return self.answers[topic] if topic else self.fallback

    def topic(self, question: str) -> str | None:
        """Return what ``question`` is about: exact words count before words that are close."""
        words = self.words(question)
        for topic, keywords in self.keywords.items():
            if set(keywords) & set(words):
                return topic
        return next(
            (t for t, keywords in self.keywords.items() if self.first(keywords, words)), None
        )


class _Cached(Museum):
    @functools.lru_cache(maxsize=256)  # noqa: B019 - one bot a process
    def topic(self, question: str) -> str | None:
        return super().topic(question)


class _Logs(Museum):
    def topic(self, question: str) -> str | None:
        found = super().topic(question)
        logging.getLogger(__name__).info("topic %s", found)
        return found


class _Slower(Museum):
    def reply(self, messages: list[Message]) -> str:
        time.sleep(0.0005)
        return super().reply(messages)


class _ByIndex(Museum):
    _index: ClassVar = {word: topic for topic, words in KEYWORDS.items() for word in words}
    _rank: ClassVar = {topic: n for n, topic in enumerate(KEYWORDS)}

    def topic(self, question: str) -> str | None:
        exact = [self._index[word] for word in self.words(question) if word in self._index]
        return min(exact, key=self._rank.__getitem__) if exact else super().topic(question)


class _NewTopic(Museum):
    keywords = KEYWORDS | {"jobs": ("vacancy", "internship")}
    answers = ANSWERS | {"jobs": "Please write to our staff office."}


class _NewKeyword(Museum):
    keywords = KEYWORDS | {"luggage": ("suitcase", "cloakroom", "backpack", "rucksack")}


class _FindIter(Museum):
    _word = re.compile(r"[a-z0-9:]+")

    def words(self, text: str) -> list[str]:
        return [m.group() for m in self._word.finditer(self.normalise(text.replace("'", "")))]


class _Copies(Museum):
    def reply(self, messages: list[Message]) -> str:
        return super().reply([dict(message) for message in messages])


class _TrailingBlank(Museum):
    def reply(self, messages: list[Message]) -> str:
        return super().reply(messages) + "\n"


class _TypographicQuotes(Museum):
    def reply(self, messages: list[Message]) -> str:
        return super().reply(messages).replace("'", "’")


class _SplitSentences(Museum):
    def reply(self, messages: list[Message]) -> str:
        return super().reply(messages).replace(". ", ".  ")


def _with(**answers: str) -> dict[str, str]:
    return ANSWERS | answers


class _DearerPass(Museum):
    answers = _with(**{"pass": "The annual card is 54 euros and is valid for 12 months."})


class _OtherHours(Museum):
    answers = _with(hours="We welcome you daily from 10:00 to 17:00, and to 20:00 at weekends.")


class _FlashAllowed(Museum):
    answers = _with(photos="Yes, for private use, with flash, too.")


class _NoLifts(Museum):
    answers = _with(access="No, there are no lifts, we are sorry.")


class _OtherPhone(Museum):
    answers = _with(lost="Lost property is kept for 6 months, please call 555 0174.")


class _NoParkingTopic(Museum):
    keywords: ClassVar = {topic: words for topic, words in KEYWORDS.items() if topic != "parking"}


class _PricesBeforePass(Museum):
    keywords = {"prices": (*KEYWORDS["prices"], "yearly")} | KEYWORDS


class _DogsWelcome(Museum):
    answers = _with(animals="Yes, dogs are welcome on a lead.")


class _NoBuy(Museum):
    keywords = KEYWORDS | {"shop": ("souvenir",)}


class _FallbackForNew(Museum):
    keywords = KEYWORDS | {"collection": ("exhibits",), "photos": ("photos",)}


class _AsksBack(Museum):
    def reply(self, messages: list[Message]) -> str:
        if self.topic(messages[-1]["content"]) == "groups":
            return "How many are you?"
        return super().reply(messages)


class _Truncates(Museum):
    def reply(self, messages: list[Message]) -> str:
        return super().reply(messages)[:40]


class _OtherFallback(Museum):
    def reply(self, messages: list[Message]) -> str:
        reply = super().reply(messages)
        return "You can reach our staff at 555 0100." if reply == self.fallback else reply


class _SwappedAnswers(Museum):
    answers = _with(food=ANSWERS["shop"], shop=ANSWERS["food"])


class _LongWordsOnly(Museum):
    shortest = 8


class _SameFirstLetter(Museum):
    def close(self, keyword: str, words: Sequence[str]) -> bool:
        return super().close(keyword, [word for word in words if word[0] == keyword[0]])


class _NeedsQuestionMark(Museum):
    """Reads only seven words of a text that does not end with a question mark."""

    def words(self, text: str) -> list[str]:
        words = super().words(text)
        return words if text.endswith("?") else words[:7]


BUILDS: Final[BuildTable[Museum]] = (
    Build("cached", "harmless", _Cached),
    Build("logs", "harmless", _Logs),
    Build("slower", "harmless", _Slower),
    Build("by-index", "harmless", _ByIndex),
    Build("new-topic", "harmless", _NewTopic),
    Build("new-keyword", "harmless", _NewKeyword),
    Build("find-iter", "harmless", _FindIter),
    Build("copies", "harmless", _Copies),
    Build("trailing-blank", "harmless", _TrailingBlank),
    Build("typographic-quotes", "harmless", _TypographicQuotes),
    Build("two-blanks", "harmless", _SplitSentences),
    Build("dearer-pass", "changed", _DearerPass),
    Build("other-hours", "changed", _OtherHours),
    Build("flash-allowed", "changed", _FlashAllowed),
    Build("no-lifts", "changed", _NoLifts),
    Build("other-phone", "changed", _OtherPhone),
    Build("no-parking", "changed", _NoParkingTopic),
    Build("prices-before-pass", "changed", _PricesBeforePass),
    Build("dogs-welcome", "changed", _DogsWelcome),
    Build("no-buy", "changed", _NoBuy),
    Build("fallback-for-new", "changed", _FallbackForNew),
    Build("asks-back", "changed", _AsksBack),
    Build("truncates", "changed", _Truncates),
    Build("other-fallback", "changed", _OtherFallback),
    Build("swapped-answers", "changed", _SwappedAnswers),
    Build("long-words-only", "brittle", _LongWordsOnly),
    Build("same-first-letter", "brittle", _SameFirstLetter),
    Build("needs-question-mark", "brittle", _NeedsQuestionMark),
)


def reply(messages: list[Message]) -> str:
    """Return the reply of the build named by the environment."""
    return current(BUILDS, Museum).reply(messages)
