"""Checks of slots and values against the ontology of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import jellyfish

from pytest_dstfuzz.dialogue.dialogues import DONTCARE
from pytest_dstfuzz.dialogue.normalise import normalise_slot, normalise_value
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.trackers.conformance.findings import (
    CheckOutcome,
    failed,
    first_few,
    passed,
    skipped,
    warned,
)
from pytest_dstfuzz.trackers.conformance.probe import TrackerProbe
from pytest_dstfuzz.trackers.validation import unknown_slot

#: In fewer letters two words that are alike are two words (``east``, ``west``).
_LETTERS = 5
#: A value that is misspelt in one dialogue alone was probably copied from a typing error.
_SYSTEMATIC = 2


def slots(probe: TrackerProbe) -> CheckOutcome:
    """Every slot of an answer is one that the data has."""
    ontology = probe.data.ontology
    if ontology is None or not ontology.complete:
        return skipped("the data does not say which slots there are")
    named = sorted({slot for a in probe.answers.values() for slot in a.prediction.state})
    problems = [problem for slot in named if (problem := unknown_slot({slot: ""}, ontology))]
    if problems:
        return failed(
            f"the tracker returns {first_few(problems)}",
            "Name slots as the data does, or give the data an ontology with yours.",
        )
    return passed(f"{len(named)} slots, all known ({len(ontology.slots)} there are)")


def values(probe: TrackerProbe) -> CheckOutcome:
    """No value is a known one in another spelling."""
    ontology = probe.data.ontology
    if ontology is None:
        return skipped("the data knows no values")
    dialogues: dict[tuple[str, str], set[str]] = {}
    for place, answer in probe.answers.items():
        for pair in answer.prediction.state.items():
            dialogues.setdefault(pair, set()).add(probe.turns[place].dialogue)
    often: list[str] = []
    seldom: list[str] = []
    for (slot, value), where in sorted(dialogues.items(), key=lambda item: -len(item[1])):
        known = ontology.values.get(slot, ())
        meant = None if value == DONTCARE or value in known else meant_value(value, known)
        if meant is not None:
            # A tracker that also writes it as it should be copies what users mistype.
            copied = len(where) < _SYSTEMATIC or (slot, meant) in dialogues
            count = counted(len(where), "dialogue")
            shown = f"{slot} {value!r} where the data has {meant!r} (in {count})"
            (seldom if copied else often).append(shown)
    if often:
        return failed(
            f"values in a spelling of their own: {first_few(often)}",
            "Write values as the ontology of the data does: each other spelling counts as another "
            "value, and so as wrong.",
        )
    if seldom:
        return warned(
            f"now and then a value is misspelt: {first_few(seldom)}",
            "It counts as wrong. Where it is copied from a typing error of the user, that is how "
            "the tracker is, and nothing is wrong with its adapter.",
        )
    if rewritten := list(dict.fromkeys(_rewritten(probe))):
        return warned(
            "values are read in the spelling of the data, so nothing is lost: "
            f"{first_few(rewritten)}",
            "Nothing has to be done.",
        )
    return passed(f"{len(dialogues)} values, none a known one in another spelling")


def meant_value(value: str, known: Iterable[str]) -> str | None:
    """Return the known value of which ``value`` is another spelling, if it is one.

    That is: the same letters and digits (``09.30``, ``guest-house``), or the same number of
    words, each the same or a long word misspelt. Numbers are never alike.
    """
    for candidate in known:
        if _letters(candidate) == _letters(value) != "":
            return candidate
    words = value.split()
    for candidate in known:
        others = candidate.split()
        if len(words) == len(others) and all(map(_alike, words, others)):
            return candidate
    return None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _alike(one: str, other: str) -> bool:
    """Whether two words are the same, or long and one typing error apart (``cheep``)."""
    if one == other:
        return True
    if min(len(one), len(other)) < _LETTERS or not (one + other).isalpha():
        return False
    return int(jellyfish.damerau_levenshtein_distance(one, other)) == 1


def _rewritten(probe: TrackerProbe) -> Iterator[str]:
    """Yield what the tracker writes otherwise than it is read; absence may be written."""
    rules = probe.data.normalisation
    for answer in probe.answers.values():
        for slot, value in answer.written.items():
            name = normalise_slot(slot, rules)
            read = None if name is None else normalise_value(name, value, rules)
            if name is not None and read is not None and (name, read) != (slot, value):
                yield f"{slot} {value!r} as {name} {read!r}"
