"""Which slot of a bot is which slot of the data, and what its values are called there.

A file says so, in TOML or JSON: the bot's slot, and the data's; or a table with the
``values`` that have another name there too, spelled as JSON spells them, in any case::

    cuisine = "restaurant-food"
    seats = "restaurant-book people"

    [has_parking]
    slot = "hotel-parking"
    values = { true = "free", false = "no" }

Without a file, the bot's slots that are called as slots of the data are taken for them:
``restaurant_food`` and ``restaurant-food`` are the same name. Where the data says which slots
there are, in an ontology, as the option ``slots`` or by labels of all turns, the others of the
bot are ignored. Where it does not, they keep their names, but for those that Rasa itself fills,
such as ``requested_slot``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_dstfuzz.dialogue.dialogues import DialogueSet, Ontology
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.errors import UserError, nearest, unknown_name
from pytest_dstfuzz.printable import describe, listed
from pytest_dstfuzz.trackers.validation import unknown_slot

#: How messages name the option.
_OPTION = "--dst-tracker slot-map=FILE (TOML or JSON; dstfuzz: --tracker)"
#: Names that a message shows.
_SHOWN = 8
#: From here on floats leave out whole numbers, and none of them is a count.
_EXACT = 2.0**53
#: Slots that Rasa fills for itself.
_INTERNAL = (
    *("requested_slot", "session_started_metadata", "return_value", "dialogue_stack"),
    "flow_hashes",
)


@dataclass(frozen=True, slots=True)
class SlotTarget:
    """Where the value of one slot of the bot goes: the slot of the data."""

    slot: str
    #: The bot's value -> the data's, for those that differ; the bot's are in lower case and as
    #: JSON spells them (``true``, ``2``).
    values: Mapping[str, str] = field(default_factory=dict)

    def value(self, found: object) -> object:
        """Return a value of the bot as one of the data, not yet normalised.

        Booleans become yes and no, and whole numbers have no decimals.
        """
        if isinstance(found, list):
            return [self.value(part) for part in found]
        if isinstance(found, float) and found.is_integer() and abs(found) < _EXACT:
            found = int(found)
        spelled = str(found).lower()
        if isinstance(found, str | int | float) and spelled in self.values:
            return self.values[spelled]
        return ("no", "yes")[found] if isinstance(found, bool) else found


@dataclass(frozen=True, slots=True)
class SlotMap:
    """The slots of a bot that are slots of the data: its slot -> where its value goes."""

    places: Mapping[str, SlotTarget]
    #: Whether it is known which slots the data has.
    complete: bool = True

    def state(self, slots: Mapping[str, object]) -> dict[str, object]:
        """Return the slots of a conversation as slots of the data, not yet normalised."""
        return {
            place.slot: place.value(slots[name])
            for name, place in self.places.items()
            if name in slots
        }

    def note(self, slots: Iterable[str]) -> str:
        """Return a sentence on the slots of the bot that are ignored, or ``""``."""
        ignored = sorted(set(slots) - set(self.places))
        if not self.complete:
            return (
                f"the data does not say which slots there are, so all {len(self.places)} of the "
                f"bot are compared: {listed(sorted(self.places), _SHOWN)}; a slot map, an ontology "
                "or the option slots (--dst-slots) chooses some"
            )
        if not ignored:
            return ""
        return (
            f"of the bot's slots, {len(self.places)} are compared and {len(ignored)} ignored, "
            f"as they are no slots of the data: {listed(ignored, _SHOWN)}"
        )

    def to_json(self) -> dict[str, object]:
        """Return what the map says, as plain JSON values."""
        return {name: [place.slot, dict(place.values)] for name, place in self.places.items()}


def slot_map(path: str | None, slots: Iterable[str], data: DialogueSet) -> SlotMap:
    """Return the map from slots of the bot to those of the data: that of a file, or by name."""
    known = sorted(slots)
    if path is not None:
        return _of_file(SourceFile(Path(path).name, Path(path)), known, data)
    if data.ontology is None or not data.says_slots:
        return _with_its_own(known, data)
    return _by_name(known, data.ontology)


def _with_its_own(slots: list[str], data: DialogueSet) -> SlotMap:
    """Return the map of all slots of the bot, under the names that labels have for them."""
    names = {_folded(slot): slot for slot in data.ontology.slots} if data.ontology else {}
    places = {}
    for name in slots:
        if name not in _INTERNAL:
            usual = normalise_slot(name, data.normalisation) or name
            places[name] = SlotTarget(names.get(_folded(name), usual))
    if not places:
        raise UserError(f"the bot has no slots but those of Rasa itself: {listed(slots, _SHOWN)}")
    return replace(_without_twins(places, "the bot's slots"), complete=False)


def _by_name(slots: list[str], ontology: Ontology) -> SlotMap:
    names = {_folded(slot): slot for slot in ontology.slots}
    places = {}
    for name in slots:
        usual = normalise_slot(name, ontology.normalisation)
        if slot := usual if usual in ontology.values else names.get(_folded(name)):
            places[name] = SlotTarget(slot)
    if not places:
        guesses = ((name, nearest(name, ontology.slots)) for name in slots)
        pair = next((f" ({name!r} may be {guess!r})" for name, guess in guesses if guess), "")
        raise UserError(
            f"none of the bot's slots has the name of a slot of the data{pair}: say with "
            f"{_OPTION} what these are called: {listed(slots, _SHOWN)}"
        )
    return _without_twins(places, "the bot's slots")


def _of_file(file: SourceFile, slots: list[str], data: DialogueSet) -> SlotMap:
    parsed = _parsed(file)
    if not parsed:
        raise UserError(f"{file.place}: the slot map maps nothing")
    places = {}
    for name, entry in parsed.items():
        if name not in slots:
            raise UserError(f"{file.place}: {unknown_name('slot of the bot', name, slots)}")
        places[name] = _place(entry, f"{file.place}: {name!r}", data)
    return _without_twins(places, file.place)


def _parsed(file: SourceFile) -> Mapping[str, object]:
    kind = file.path.suffix.lower()
    if kind not in (".toml", ".json"):
        raise UserError(f"{file.place}: a slot map is a .toml or a .json file")
    try:
        parsed = tomllib.loads(file.text()) if kind == ".toml" else file.json()
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file.place} is no valid TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{file.place} is nested too deeply to be read") from None
    if not isinstance(parsed, dict):
        raise UserError(
            f"{file.place}: a slot map is an object, the bot's slot -> the data's, "
            f"not {describe(parsed)}"
        )
    return parsed


def _place(entry: object, where: str, data: DialogueSet) -> SlotTarget:
    table = entry if isinstance(entry, dict) else {"slot": entry}
    for key in table:
        if key not in ("slot", "values"):
            raise UserError(f"{where}: {unknown_name('key', key, ('slot', 'values'))}")
    slot, values = table.get("slot"), table.get("values", {})
    if not isinstance(slot, str):
        raise UserError(f"{where} must be the name of a slot, or a table with 'slot' and 'values'")
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise UserError(f"{where}: 'values' must be a table, the bot's value -> the data's (text)")
    usual = normalise_slot(slot, data.normalisation) or slot
    if problem := unknown_slot({usual: ""}, data.ontology):
        raise UserError(f"{where} goes to {problem}")
    return SlotTarget(usual, {str(value).lower(): named for value, named in values.items()})


def _without_twins(places: Mapping[str, SlotTarget], where: str) -> SlotMap:
    """Return the map, unless two slots of the bot go to one slot: which one would count?"""
    owners: dict[str, str] = {}
    for name, place in places.items():
        if place.slot in owners:
            raise UserError(
                f"{where}: both {owners[place.slot]!r} and {name!r} are mapped to {place.slot!r}; "
                f"say with {_OPTION} which one it is"
            )
        owners[place.slot] = name
    return SlotMap(places)


def _folded(name: str) -> str:
    """Return a name without case, and with one sign for blanks, dashes and underscores."""
    return re.sub(r"[\W_]+", "-", name.casefold())
