"""The assistant of a parcel service, by rules: it calls tools. There are 28 builds of it."""

from __future__ import annotations

import copy
import functools
import json
import logging
import re
import time
from collections.abc import Sequence
from typing import Any, Final

from tools.ci_year.builds import Build, BuildTable, current
from tools.ci_year.words import Reader

DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
NUMBERS: Final = {"one": 1, "two": 2, "three": 3}
PLACES: Final = {"shop": ("shop",), "locker": ("locker",), "neighbour": ("neighbour",)}
Message = dict[str, Any]
Call = tuple[str, dict[str, Any]]


class Parcels(Reader):
    """Reads the last message of the user, and finds the number of a parcel in earlier ones."""

    broken: tuple[str, ...] = ("broken", "smashed", "pieces", "damaged")
    person: tuple[str, ...] = ("human", "person", "agent")
    later: tuple[str, ...] = ("deliver", "postpone", "change", "come")
    where: tuple[str, ...] = ("where", "status", "tracking")
    money: tuple[str, ...] = ("refund", "money")
    pickup: tuple[str, ...] = ("collect", "picked", "pickup")

    def answer(self, messages: list[Message]) -> Message:
        """Return the assistant's next message."""
        said = [str(m["content"]) for m in messages if m["role"] == "user"]
        call = self.call(said)
        if call is None:
            return {"role": "assistant", "content": "Can I help you with anything else?"}
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {
            "role": "assistant",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }

    def call(self, said: list[str]) -> Call | None:
        """Return the tool and its arguments for the last of ``said``, if it asks for any."""
        words = self.words(said[-1])
        number, day = self.number(said), self.day(words)
        for attempt in (self.handover, self.damage, self.collection, self.place, self.delivery):
            if found := attempt(words, number, day):
                return found
        return self.tracking(words, number)

    def handover(self, words: list[str], _number: str | None, _day: str | None) -> Call | None:
        """Hand over to a person if the user asks for one."""
        if not (self.first(self.person, words) and self.first(("speak", "talk", "there"), words)):
            return None
        return "call_agent", {"urgent": True} if self.contains("urgent", words) else {}

    def damage(self, words: list[str], number: str | None, _day: str | None) -> Call | None:
        """Open a claim, with a refund if the user wants one."""
        refund = self.first(self.money, words)
        if not number or not (self.first(self.broken, words) or refund):
            return None
        return "report_damage", {"number": number} | ({"refund": True} if refund else {})

    def collection(self, words: list[str], _number: str | None, day: str | None) -> Call | None:
        """Order or cancel a pickup."""
        if day is None or not self.first(self.pickup, words):
            return None
        if self.contains("cancel", words):
            return "cancel_pickup", {"day": day}
        return "order_pickup", {"day": day, "count": self.count(words)}

    def place(self, words: list[str], number: str | None, _day: str | None) -> Call | None:
        """Send the parcel to another place."""
        if not number or not self.first(("bring", "leave", "put", "should"), words):
            return None
        found = next((name for name, keys in PLACES.items() if self.first(keys, words)), None)
        return ("redirect_parcel", {"number": number, "place": found}) if found else None

    def delivery(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        """Deliver on another day."""
        if not number or day is None or not self.first(self.later, words):
            return None
        evening = {"evening": True} if self.contains("evening", words) else {}
        return "change_delivery", {"number": number, "day": day} | evening

    def tracking(self, words: list[str], number: str | None) -> Call | None:
        """Say where the parcel is."""
        if not number or not self.first(self.where, words):
            return None
        return "track_parcel", {"number": number}

    def number(self, said: list[str]) -> str | None:
        """Return the parcel number that was said last."""
        found = [number for text in said for number in re.findall(r"\b\d{5}\b", text)]
        return found[-1] if found else None

    def day(self, words: list[str]) -> str | None:
        """Return the day of the request."""
        return next((word for word in words if word in DAYS), None)

    def count(self, words: list[str]) -> int:
        """Return how many parcels are to be picked up."""
        for word in words:
            if word in NUMBERS or re.fullmatch(r"\d", word):
                return NUMBERS.get(word) or int(word)
        return 1


class _Cached(Parcels):
    @functools.lru_cache(maxsize=256)  # noqa: B019 - one bot a process
    def _read(self, text: str) -> tuple[str, ...]:
        return tuple(super().words(text))

    def words(self, text: str) -> list[str]:
        return list(self._read(text))


class _Logs(Parcels):
    def call(self, said: list[str]) -> Call | None:
        found = super().call(said)
        logging.getLogger(__name__).info("calls %s", found and found[0])
        return found


class _Slower(Parcels):
    def call(self, said: list[str]) -> Call | None:
        time.sleep(0.0005)
        return super().call(said)


class _OtherKeyOrder(Parcels):
    def call(self, said: list[str]) -> Call | None:
        found = super().call(said)
        return (found[0], dict(sorted(found[1].items(), reverse=True))) if found else None


class _IndentedJson(Parcels):
    def answer(self, messages: list[Message]) -> Message:
        message = super().answer(messages)
        for call in message.get("tool_calls", []):
            function = call["function"]
            function["arguments"] = json.dumps(json.loads(function["arguments"]), indent=2)
        return message


class _OtherCallIds(Parcels):
    def answer(self, messages: list[Message]) -> Message:
        message = super().answer(messages)
        for call in message.get("tool_calls", []):
            call["id"] = f"call_{len(messages)}_parcels"
        return message


class _SaysSomething(Parcels):
    def answer(self, messages: list[Message]) -> Message:
        message = super().answer(messages)
        return {"content": "One moment, please."} | message


class _Copies(Parcels):
    def answer(self, messages: list[Message]) -> Message:
        return super().answer(copy.deepcopy(messages))


class _NewKeyword(Parcels):
    money = ("refund", "money", "reimbursement")


class _CompiledNumber(Parcels):
    _number = re.compile(r"\b[0-9]{5}\b", re.ASCII)

    def number(self, said: list[str]) -> str | None:
        found = self._number.findall("\n".join(said))
        return found[-1] if found else None


class _OtherWords(Parcels):
    def answer(self, messages: list[Message]) -> Message:
        message = super().answer(messages)
        if message.get("content"):
            message["content"] = "Is there anything else that I can do?"
        return message


class _NoPieces(Parcels):
    broken = ("broken", "smashed", "damaged")


class _AlwaysRefunds(Parcels):
    def damage(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        found = super().damage(words, number, day)
        return (found[0], found[1] | {"refund": True}) if found else None


class _NeverUrgent(Parcels):
    def handover(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        return ("call_agent", {}) if super().handover(words, number, day) else None


class _NoPerson(Parcels):
    person = ("agent", "human")


class _FirstNumber(Parcels):
    def number(self, said: list[str]) -> str | None:
        found = [number for text in said for number in re.findall(r"\b\d{5}\b", text)]
        return found[0] if found else None


class _OtherNumber(Parcels):
    def call(self, said: list[str]) -> Call | None:
        found = super().call(said)
        if found and found[1].get("number") == "40404":
            return found[0], found[1] | {"number": "040404"}
        return found


class _LockerIsShop(Parcels):
    def place(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        found = super().place(words, number, day)
        return (found[0], found[1] | {"place": "shop"}) if found else None


class _NoMemory(Parcels):
    def call(self, said: list[str]) -> Call | None:
        return super().call(said[-1:])


class _CancelIsOrder(Parcels):
    def collection(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        kept = [word for word in words if word != "cancel"]
        return super().collection(kept, number, day)


class _NoEvening(Parcels):
    def delivery(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        return super().delivery([w for w in words if w != "evening"], number, day)


class _OneBox(Parcels):
    def count(self, words: list[str]) -> int:
        return min(super().count(words), 1)


class _NoTracking(Parcels):
    where = ("where",)


class _TracksToo(Parcels):
    def answer(self, messages: list[Message]) -> Message:
        message = super().answer(messages)
        calls = message.get("tool_calls", [])
        if calls and calls[0]["function"]["name"] == "report_damage":
            arguments = json.loads(calls[0]["function"]["arguments"])
            number = json.dumps({"number": arguments["number"]})
            function = {"name": "track_parcel", "arguments": number}
            calls.append({"id": "call_2", "type": "function", "function": function})
        return message


class _SameLength(Parcels):
    def close(self, keyword: str, words: Sequence[str]) -> bool:
        return super().close(keyword, [word for word in words if len(word) == len(keyword)])


class _StricterWords(Parcels):
    cutoff = 0.9


class _ExactPerson(Parcels):
    def handover(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        return super().handover(words, number, day) if set(self.person) & set(words) else None


class _ExactCancel(Parcels):
    def collection(self, words: list[str], number: str | None, day: str | None) -> Call | None:
        found = super().collection(words, number, day)
        return found if found is None or found[0] == "order_pickup" or "cancel" in words else None


BUILDS: Final[BuildTable[Parcels]] = (
    Build("cached", "harmless", _Cached),
    Build("logs", "harmless", _Logs),
    Build("slower", "harmless", _Slower),
    Build("other-key-order", "harmless", _OtherKeyOrder),
    Build("indented-json", "harmless", _IndentedJson),
    Build("other-call-ids", "harmless", _OtherCallIds),
    Build("says-something", "harmless", _SaysSomething),
    Build("copies", "harmless", _Copies),
    Build("new-keyword", "harmless", _NewKeyword),
    Build("compiled-number", "harmless", _CompiledNumber),
    Build("other-words", "harmless", _OtherWords),
    Build("no-pieces", "changed", _NoPieces),
    Build("always-refunds", "changed", _AlwaysRefunds),
    Build("never-urgent", "changed", _NeverUrgent),
    Build("no-person", "changed", _NoPerson),
    Build("first-number", "changed", _FirstNumber),
    Build("other-number", "changed", _OtherNumber),
    Build("locker-is-shop", "changed", _LockerIsShop),
    Build("no-memory", "changed", _NoMemory),
    Build("cancel-is-order", "changed", _CancelIsOrder),
    Build("no-evening", "changed", _NoEvening),
    Build("one-box", "changed", _OneBox),
    Build("no-tracking", "changed", _NoTracking),
    Build("tracks-too", "changed", _TracksToo),
    Build("same-length", "brittle", _SameLength),
    Build("stricter-words", "brittle", _StricterWords),
    Build("exact-person", "brittle", _ExactPerson),
    Build("exact-cancel", "brittle", _ExactCancel),
)


def answer(messages: list[Message], _tools: list[Message]) -> Message:
    """Return the next message of the build named by the environment."""
    return current(BUILDS, Parcels).answer(messages)
