"""Turns as files hold them: what earlier turns of a dialogue already say is not said again.

The variants of a turn were seen after variants of the turns before it, so their contexts would grow
with the square of a dialogue's length. In a file they refer to earlier turns of the same dialogue,
tracker and relation. Packing and unpacking go over turns in one order, and both remember the last
dialogue alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.errors import DataError

__all__ = ["packed", "unpacked"]

_Plain = dict[str, Any]


class _EarlierTurns(NamedTuple):
    """The earlier turns as a variant, or its smallest version, saw them."""

    texts: list[str]
    #: ``turn_index`` and ``edits`` of those that were perturbed.
    edited: list[_Plain]


class _EarlierVariant(NamedTuple):
    """A variant of an earlier turn."""

    text: str
    edits: list[_Plain]
    before: _EarlierTurns


@dataclass(slots=True)
class _KnownDialogue:
    """The texts of one dialogue under one tracker, from the turns so far."""

    #: Turn -> what the system and the user said; ``None`` = not known.
    rounds: dict[int, list[str | None]] = field(default_factory=dict)
    #: Relation -> turn -> variants by number.
    variants: dict[str, dict[int, dict[int, _EarlierVariant]]] = field(default_factory=dict)

    def begin(self, turn: _Plain) -> None:
        """Take the rounds that a packed turn adds, and its own one."""
        for one in turn.get("earlier_turns", ()):
            self.rounds[one["turn_index"]] = [one["system"], one["user"]]
        self.rounds[turn["turn_index"]] = [turn["system"], turn["user"]]

    def end(self, turn: _Plain) -> None:
        """Take the variants of a turn that is not packed."""
        of_relation = self.variants.setdefault(turn.get("relation", ""), {})
        of_relation[turn["turn_index"]] = {
            one["index"]: _EarlierVariant(
                one["text"], one["edits"], _EarlierTurns(one["context"], one["context_edits"])
            )
            for one in turn["variants"]
        }

    def of(self, relation: str, turn: int) -> Mapping[int, _EarlierVariant]:
        """Return the variants of a turn."""
        return self.variants.get(relation, {}).get(turn, {})

    def clean(self, turn: int) -> list[str | None]:
        """Return what users said before a turn."""
        return [self.rounds.get(number, _UNKNOWN)[1] for number in range(turn)]


_UNKNOWN: Final[list[str | None]] = [None, None]


class _LastDialogue:
    """The dialogue that turns are of, if it is the one of the turn before."""

    def __init__(self) -> None:
        self._id = ""
        self._found: dict[tuple[str, str], _KnownDialogue] = {}

    def of(self, turn: _Plain) -> _KnownDialogue:
        if turn["dialogue_id"] != self._id:
            self._id, self._found = turn["dialogue_id"], {}
        # Two sets of data may hold dialogues of one name.
        data = turn["id"].rpartition("-t")[0]
        return self._found.setdefault((turn.get("model", ""), data), _KnownDialogue())


def packed(turns: Iterable[_Plain]) -> Iterator[_Plain]:
    """Yield turns as files hold them; a file is read in the order of its turns."""
    memory = _LastDialogue()
    for turn in turns:
        yield _packed(turn, memory.of(turn))


def unpacked(turns: Iterable[_Plain]) -> Iterator[_Plain]:
    """Yield the turns that were `packed`.

    Raises:
        DataError: One refers to what no turn before it says.
    """
    memory = _LastDialogue()
    for number, turn in enumerate(turns):
        try:
            yield _unpacked(turn, memory.of(turn))
        except (LookupError, TypeError, AttributeError) as error:
            raise DataError(
                f"entry {number} of 'turns' is no turn, or refers to an earlier one that is not "
                f"there ({type(error).__name__}: {error}): keep the turns of a dialogue together"
            ) from None


# -- packing ----------------------------------------------------------------------


def _packed(turn: _Plain, known: _KnownDialogue) -> _Plain:
    found, index = dict(turn), turn["turn_index"]
    systems = found.pop("earlier_system", [])
    if len(systems) != index:
        found["earlier_system"] = systems
        systems = [None] * index
    if added := _rounds_to_add(turn, systems, known):
        found["earlier_turns"] = added
    known.begin(found)
    found["variants"] = [_packed_variant(one, turn, known) for one in turn["variants"]]
    known.end(turn)
    return found


def _rounds_to_add(
    turn: _Plain, systems: Sequence[str | None], known: _KnownDialogue
) -> list[_Plain]:
    """Return the earlier rounds that no turn so far has told, or has told otherwise."""
    users: dict[int, str] = {}
    for one in turn["variants"]:
        if one["exchanges"] is None and len(one["context"]) == len(systems):
            perturbed = {each["turn_index"] for each in one["context_edits"]}
            for number, text in enumerate(one["context"]):
                if number not in perturbed:
                    users.setdefault(number, text)
    added = []
    for number, system in enumerate(systems):
        before = known.rounds.get(number, _UNKNOWN)
        told = [before[0] if system is None else system, users.get(number, before[1])]
        if told != before:
            added.append({"turn_index": number, "system": told[0], "user": told[1]})
    return added


def _packed_variant(variant: _Plain, turn: _Plain, known: _KnownDialogue) -> _Plain:
    found: _Plain = {}
    rounds = variant["exchanges"]
    for name, value in variant.items():
        if name in ("exchanges", "reference") and value is not None:
            found[name] = _packed_rounds(value, known)
        elif name == "minimal" and value is not None:
            found[name] = _packed_context(value, variant["index"], turn, known)
        else:
            found[name] = value
    if rounds is None:
        return _packed_context(found, variant["index"], turn, known)
    if variant["context"] == _users(rounds):
        del found["context"]
    return found


def _packed_context(shown: _Plain, number: int, turn: _Plain, known: _KnownDialogue) -> _Plain:
    """Return a variant, or its smallest version, with ``earlier`` in the place of its context."""
    texts, edited, index = shown["context"], shown["context_edits"], turn["turn_index"]
    entries = _earlier(_EarlierTurns(texts, edited), number, turn.get("relation", ""), index, known)
    if entries is None or _shown(entries, turn.get("relation", ""), index, known) != (
        texts,
        edited,
    ):
        return shown
    found: _Plain = {}
    for name, value in shown.items():
        if name == "context":
            found["earlier"] = entries
        elif name != "context_edits":
            found[name] = value
    return found


def _earlier(
    shown: _EarlierTurns, number: int, relation: str, index: int, known: _KnownDialogue
) -> list[_Plain] | None:
    """Return how earlier turns were shown, in few words; ``None`` = there are none for it."""
    if len(shown.texts) != index or any(one["turn_index"] >= index for one in shown.edited):
        return None
    entries: list[_Plain] = []
    done = 0
    for turn in range(index - 1, -1, -1):
        if (seen := known.of(relation, turn).get(number)) is not None:
            done = len(seen.before.edited)
            if done and shown.edited[:done] == seen.before.edited:
                entries.append({"seen_at": turn, "variant": number})
            else:
                done = 0
            break
    for one in shown.edited[done:]:
        turn, text = one["turn_index"], shown.texts[one["turn_index"]]
        seen = known.of(relation, turn).get(number)
        if seen is not None and (seen.text, seen.edits) == (text, one["edits"]):
            entries.append({"turn_index": turn, "variant": number})
        else:
            entries.append({"turn_index": turn, "text": text, "edits": one["edits"]})
    return entries


def _packed_rounds(rounds: Sequence[_Plain], known: _KnownDialogue) -> list[_Plain]:
    """Return rounds as runs of those of the dialogue, and others as they are."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, (system, user) in known.rounds.items():
        if system is not None and user is not None:
            places.setdefault((system, user), []).append(place)
    found: list[_Plain] = []
    for one in rounds:
        here = places.get((one["system"], one["user"]), [])
        if here and found and found[-1].get("to", -2) + 1 in here:
            found[-1]["to"] += 1
        else:
            found.append({"from": here[0], "to": here[0]} if here else one)
    return found


# -- unpacking --------------------------------------------------------------------


def _unpacked(turn: _Plain, known: _KnownDialogue) -> _Plain:
    known.begin(turn)
    index, relation = turn["turn_index"], turn.get("relation", "")
    found: _Plain = {}
    for name, value in turn.items():
        if name == "variants":
            found[name] = [_unpacked_variant(one, relation, index, known) for one in value]
        elif name != "earlier_turns":
            found[name] = value
    if "earlier_system" not in found:
        systems = [known.rounds.get(number, _UNKNOWN)[0] for number in range(index)]
        found["earlier_system"] = [] if None in systems else systems
    known.end(found)
    return found


def _unpacked_variant(variant: _Plain, relation: str, index: int, known: _KnownDialogue) -> _Plain:
    found = dict(variant)
    for name in ("exchanges", "reference"):
        if found.get(name) is not None:
            found[name] = list(_unpacked_rounds(found[name], known))
    if found.get("minimal") is not None:
        found["minimal"] = _with_context(found["minimal"], relation, index, known)
    if "context" not in found and found.get("exchanges") is not None:
        found["context"] = _users(found["exchanges"])
    return _with_context(found, relation, index, known)


def _with_context(shown: _Plain, relation: str, index: int, known: _KnownDialogue) -> _Plain:
    if "earlier" not in shown:
        return shown
    texts, edited = _shown(shown["earlier"], relation, index, known)
    found: _Plain = {}
    for name, value in shown.items():
        if name == "earlier":
            found["context"] = texts
            found["context_edits"] = edited
        else:
            found[name] = value
    return found


def _shown(
    entries: Sequence[_Plain], relation: str, index: int, known: _KnownDialogue
) -> tuple[list[Any], list[_Plain]]:
    """Return the earlier turns as entries show them; those of no entry are clean."""
    texts, edited = known.clean(index), list[_Plain]()
    for one in entries:
        if "seen_at" in one:
            before = known.of(relation, one["seen_at"])[one["variant"]].before
            for each in before.edited:
                texts[each["turn_index"]] = before.texts[each["turn_index"]]
            edited += before.edited
            continue
        turn = one["turn_index"]
        text, edits = one.get("text"), one.get("edits")
        if "variant" in one:
            text, edits, _ = known.of(relation, turn)[one["variant"]]
        texts[turn] = text
        edited.append({"turn_index": turn, "edits": edits})
    return texts, edited


def _unpacked_rounds(rounds: Sequence[_Plain], known: _KnownDialogue) -> Iterator[_Plain]:
    for one in rounds:
        if "from" not in one:
            yield one
            continue
        for number in range(one["from"], one["to"] + 1):
            system, user = known.rounds[number]
            yield {"system": system, "user": user}


def _users(rounds: Sequence[_Plain]) -> list[str]:
    return [one["user"] for one in rounds[:-1]]
