"""The bot of a veterinary clinic, by rules: it tracks visits as slots.

There are 28 builds of it.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pytest_dstfuzz import Context
from tools.ci_year.builds import Build, BuildTable, current
from tools.ci_year.words import Reader

ANIMALS: Final = {
    "dog": ("dog", "dogs", "puppy", "hound"),
    "cat": ("cat", "cats", "kitten", "kitty"),
    "rabbit": ("rabbit", "rabbits", "bunny", "bunnies"),
    "rodent": ("hamster", "guinea"),
    "bird": ("parrot", "budgie"),
}
REASONS: Final = {
    "vaccination": ("vaccination", "jab", "shots"),
    "injury": ("limping", "bleeding", "bandage"),
    "dental": ("teeth", "tooth"),
    "checkup": ("checkup", "check"),
    "sickness": ("vomiting", "infection", "feathers"),
    "neutering": ("neuter", "neutered"),
    "grooming": ("claws", "trim"),
}
INTENTS: Final = {"cancel": ("cancel",), "move": ("reschedule", "move")}
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "today")
VETS: Final = ("amsel", "brandt", "celik")


class Clinic(Reader):
    """Fills the slots of a visit from what the user says, one utterance after the other."""

    def track(self, context: Context) -> dict[str, str]:
        """Return the belief state after the last user utterance of ``context``."""
        state: dict[str, str] = {}
        for text in context.user_utterances:
            state |= self.hear(text)
        return state

    def hear(self, text: str) -> dict[str, str]:
        """Return the slots that one utterance fills."""
        words = self.words(text)
        found = {
            "visit-animal": self.animal(words),
            "visit-reason": self.reason(words),
            "visit-day": self.day(words),
            "visit-vet": self.vet(words),
            "visit-time": self.time(text),
            "visit-intent": self.intent(words),
        }
        return {slot: value for slot, value in found.items() if value}

    def animal(self, words: list[str]) -> str | None:
        """Return the kind of animal, also if the user names its young."""
        return next((name for name, said in ANIMALS.items() if self.first(said, words)), None)

    def reason(self, words: list[str]) -> str | None:
        """Return why the animal comes."""
        return next((name for name, said in REASONS.items() if self.first(said, words)), None)

    def intent(self, words: list[str]) -> str | None:
        """Return whether a visit is cancelled or moved."""
        return next((name for name, said in INTENTS.items() if self.first(said, words)), None)

    def day(self, words: list[str]) -> str | None:
        """Return the last day that is named."""
        days = [word for word in words if word in DAYS]
        return days[-1] if days else None

    def vet(self, words: list[str]) -> str | None:
        """Return the name behind *doctor*."""
        for cue, name in itertools.pairwise(words):
            if self.contains("doctor", [cue]) and name in VETS:
                return name
        return None

    def time(self, text: str) -> str | None:
        """Return the time in the form ``9:30``."""
        match = re.search(r"\b\d{1,2}:\d\d\b", text)
        return match[0] if match else None


class _Compiled(Clinic):
    _time = re.compile(r"\b\d{1,2}:\d\d\b")

    def time(self, text: str) -> str | None:
        match = self._time.search(text)
        return match.group() if match else None


class _Cached(Clinic):
    @functools.lru_cache(maxsize=256)  # noqa: B019 - one bot a process
    def _heard(self, text: str) -> tuple[tuple[str, str], ...]:
        return tuple(super().hear(text).items())

    def hear(self, text: str) -> dict[str, str]:
        return dict(self._heard(text))


class _Logs(Clinic):
    def hear(self, text: str) -> dict[str, str]:
        found = super().hear(text)
        logging.getLogger(__name__).info("%d slots filled", len(found))
        return found


class _Slower(Clinic):
    def hear(self, text: str) -> dict[str, str]:
        time.sleep(0.0005)
        return super().hear(text)


class _Threads(Clinic):
    def track(self, context: Context) -> dict[str, str]:
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(self.hear, context.user_utterances))
        return {slot: value for part in parts for slot, value in part.items()}


class _OtherOrder(Clinic):
    def hear(self, text: str) -> dict[str, str]:
        return dict(sorted(super().hear(text).items(), reverse=True))


class _ByIndex(Clinic):
    def animal(self, words: list[str]) -> str | None:
        index = {word: name for name, said in ANIMALS.items() for word in said}
        names = {index[word] for word in index if self.contains(word, words)}
        return next((name for name in ANIMALS if name in names), None)


class _NewAnimal(Clinic):
    def animal(self, words: list[str]) -> str | None:
        return super().animal(words) or ("reptile" if "iguana" in words else None)


class _NoBlanks(Clinic):
    def normalise(self, text: str) -> str:
        return " ".join(super().normalise(text).split())


class _OrderedState(Clinic):
    def track(self, context: Context) -> dict[str, str]:
        return OrderedDict(sorted(super().track(context).items()))


class _LastFirst(Clinic):
    def track(self, context: Context) -> dict[str, str]:
        state: dict[str, str] = {}
        for text in reversed(context.user_utterances):
            state = self.hear(text) | state
        return state


class _NoHound(Clinic):
    def animal(self, words: list[str]) -> str | None:
        return super().animal([word for word in words if word != "hound"])


class _CatsAreDogs(Clinic):
    def animal(self, words: list[str]) -> str | None:
        name = super().animal(words)
        return "dog" if name == "cat" and "elderly" in words else name


class _NoJab(Clinic):
    def reason(self, words: list[str]) -> str | None:
        return super().reason([word for word in words if word != "jab"])


class _FirstDay(Clinic):
    def track(self, context: Context) -> dict[str, str]:
        state: dict[str, str] = {}
        for text in context.user_utterances:
            state = self.hear(text) | state
        return state


class _NoSaturday(Clinic):
    def day(self, words: list[str]) -> str | None:
        day = super().day(words)
        return None if day == "saturday" else day


class _DoctorTitle(Clinic):
    def vet(self, words: list[str]) -> str | None:
        name = super().vet(words)
        return f"dr {name}" if name else None


class _Evening(Clinic):
    def time(self, text: str) -> str | None:
        found = super().time(text)
        return "20:00" if found == "8:00" else found


class _TimeOfTwoDigits(Clinic):
    def time(self, text: str) -> str | None:
        match = re.search(r"\b\d\d:\d\d\b", text)
        return match[0] if match else None


class _ForgetsFirst(Clinic):
    def track(self, context: Context) -> dict[str, str]:
        state: dict[str, str] = {}
        for text in context.user_utterances[-2:]:
            state |= self.hear(text)
        return state


class _MoveIsCancel(Clinic):
    def intent(self, words: list[str]) -> str | None:
        return "cancel" if super().intent(words) else None


class _NoIntent(Clinic):
    def hear(self, text: str) -> dict[str, str]:
        return {s: v for s, v in super().hear(text).items() if s != "visit-intent"}


class _RenamedSlot(Clinic):
    def hear(self, text: str) -> dict[str, str]:
        return {slot.replace("reason", "cause"): v for slot, v in super().hear(text).items()}


class _NoStrangeFood(Clinic):
    def reason(self, words: list[str]) -> str | None:
        return None if "strange" in words else super().reason(words)


class _AlwaysMonday(Clinic):
    def hear(self, text: str) -> dict[str, str]:
        found = super().hear(text)
        return found | {"visit-day": "monday"} if "visit-reason" in found else found


class _SameFirstLetter(Clinic):
    def close(self, keyword: str, words: Sequence[str]) -> bool:
        return super().close(keyword, [word for word in words if word[0] == keyword[0]])


class _LongWordsOnly(Clinic):
    shortest = 7


class _ExactTitle(Clinic):
    def vet(self, words: list[str]) -> str | None:
        return super().vet(words) if "doctor" in words else None


BUILDS: Final[BuildTable[Clinic]] = (
    Build("compiled", "harmless", _Compiled),
    Build("cached", "harmless", _Cached),
    Build("logs", "harmless", _Logs),
    Build("slower", "harmless", _Slower),
    Build("threads", "harmless", _Threads),
    Build("other-order", "harmless", _OtherOrder),
    Build("by-index", "harmless", _ByIndex),
    Build("new-animal", "harmless", _NewAnimal),
    Build("no-blanks", "harmless", _NoBlanks),
    Build("ordered-state", "harmless", _OrderedState),
    Build("last-first", "harmless", _LastFirst),
    Build("no-hound", "changed", _NoHound),
    Build("cats-are-dogs", "changed", _CatsAreDogs),
    Build("no-jab", "changed", _NoJab),
    Build("first-day", "changed", _FirstDay),
    Build("no-saturday", "changed", _NoSaturday),
    Build("doctor-title", "changed", _DoctorTitle),
    Build("time-of-two-digits", "changed", _TimeOfTwoDigits),
    Build("forgets-first", "changed", _ForgetsFirst),
    Build("move-is-cancel", "changed", _MoveIsCancel),
    Build("no-intent", "changed", _NoIntent),
    Build("renamed-slot", "changed", _RenamedSlot),
    Build("no-strange-food", "changed", _NoStrangeFood),
    Build("always-monday", "changed", _AlwaysMonday),
    Build("evening", "changed", _Evening),
    Build("same-first-letter", "brittle", _SameFirstLetter),
    Build("long-words-only", "brittle", _LongWordsOnly),
    Build("exact-title", "brittle", _ExactTitle),
)


def track(context: Context) -> dict[str, str]:
    """Return the slots that the build named by the environment understood."""
    return current(BUILDS, Clinic).track(context)
