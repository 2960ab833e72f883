"""What is known of the arguments of tools without an ontology: recorded values, and enums.

The slots are the arguments, whichever call they are of (`AnswerPath.part`): ``book_table.people``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from pytest_dstfuzz.dialogue.calls import AnswerPath, ToolCall, calls_outcome, value_of
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.messages import MessageCall, decoded
from pytest_dstfuzz.dialogue.readers.tools import enum_members

#: A text of more words is something to pass on, not a value of which there are some.
_MOST_WORDS: Final = 6
#: Yes and no, which nobody says by these names.
_FLAGS: Final = frozenset({"true", "false"})
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN_WORDS: Final = (
    "add all and any are book buy check create delete do find for get has have in is list look "
    "make max min new not num of or order play reserve schedule search see set show the to update "
    "value with"
)
#: Words of tools and arguments that say nothing about what a value is for.
_NO_CUES: Final = frozenset(_PLAIN_WORDS.split())


def call_ontology(data: DialogueSet) -> Ontology | None:
    """Return the arguments of all tools with the values that were recorded, and those of enums.

    The slots that are known, of belief states, stay beside them. Not complete: a call may have
    arguments that neither a schema nor a recorded call has.
    """
    known = data.ontology
    values: dict[str, dict[str, None]] = {}
    for tool in data.tools:
        for path, member in enum_members(tool):
            _enter(values, f"{tool.name}.{path}", member)
    for dialogue in data.dialogues:
        for slot, value in recorded_values(dialogue):
            _enter(values, slot, value)
    if not values:
        return known
    if known is not None:
        values |= {slot: dict.fromkeys(found) for slot, found in known.values.items()}
    return Ontology(
        {slot: tuple(sorted(found)) for slot, found in sorted(values.items())},
        complete=False,
        normalisation=known.normalisation if known is not None else "plain",
        source="the schemas of the tools and the recorded calls",
    )


def _enter(values: dict[str, dict[str, None]], slot: str, value: object) -> None:
    known = values.setdefault(slot, {})
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return
    text = " ".join(str(value).split())
    if text and text.lower() not in _FLAGS and len(text.split()) <= _MOST_WORDS:
        known[text] = None


def recorded_values(dialogue: Dialogue) -> Iterator[tuple[str, object]]:
    """Yield the arguments of all calls that were recorded with their JSON values.

    Those of later messages of a turn, too, which answer results and no user.
    """
    labels = (turn.calls for turn in dialogue.turns if turn.calls)
    for calls in chain(labels, (calls_outcome([call]) for call in recorded(dialogue))):
        for path, text in calls.items():
            taken = AnswerPath.of(path)
            if taken.in_call and not taken.is_call:
                yield taken.part[1], value_of(text)


def recorded(dialogue: Dialogue) -> Iterator[ToolCall]:
    """Yield all calls that stand in the messages of a dialogue and have arguments in JSON."""
    for made in _made(dialogue):
        if (call := made.call) is not None:
            yield call


def unread_tools(dialogue: Dialogue) -> frozenset[str]:
    """Return the tools that a recorded call gives arguments which are no JSON."""
    return frozenset(made.name for made in _made(dialogue) if made.values is None)


def _made(dialogue: Dialogue) -> Iterator[MessageCall]:
    blocks = [turn.recorded or () for turn in dialogue.turns]
    for text in chain(*blocks, dialogue.closing):
        if '"tool_calls"' in text:  # Nearly all messages have none.
            yield from decoded(text).calls


def spelled(name: str) -> str:
    """Return a name of a tool or an argument as people would write it.

    >>> spelled("guests.numberOfSeats"), spelled("pick_up_date")
    ('guests number of seats', 'pick up date')
    """
    return " ".join(re.split(r"[\W_]+", _CAMEL.sub(" ", name))).strip().lower()


def with_call_values(data: DialogueSet) -> DialogueSet:
    """Return data with what its tools and recorded calls say of slots, values and words."""
    ontology = call_ontology(data)
    slots = ontology.slots if ontology is not None else ()
    arguments = [slot for slot in slots if "." in slot]
    words = {word for slot in arguments for word in spelled(slot).split()} - _NO_CUES
    cues = (word for word in sorted(words) if word.isalpha() and len(word) > 2)
    phrases = {slot: spelled(slot.rpartition(".")[2]) for slot in arguments}
    return replace(
        data,
        ontology=ontology,
        cue_words=tuple(dict.fromkeys((*data.cue_words, *cues))),
        slot_phrases={**data.slot_phrases, **phrases},
    )
