"""Checks that SGD is read rightly as tool calls: ``python -m tools.calls.gold --data SGD``.

This tool derives the arguments of each recorded call a second time, from the states of the user's
turns and from the actions. It compares them with the calls of the reader (`Turn.calls`). A state
has a value as it was said (``March 8th``), a call has the canonical one (``2019-03-08``), and
actions have both. Therefore the values of actions are added in several steps, see `STEPS`.

Then the tool writes all dialogues as messages and reads them again. It also renames all calls by
each paraphrase of SGD-X, and back.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pytest_dstfuzz.config import canonical_split
from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, json_lines
from pytest_dstfuzz.dialogue.load import catalogue, choose, load_dialogues
from pytest_dstfuzz.dialogue.ontology import iterate_recorded_calls
from pytest_dstfuzz.dialogue.paraphrases import sgd_paraphrases
from pytest_dstfuzz.files import write_lines

#: Where the canonical form of a value is looked for.
STEPS: Final = (
    "the state alone, as it was said",
    "and the user's actions of that service and slot",
    "and the user's actions of any service and slot",
    "and the system's actions",
)


@dataclass
class Agreement:
    """How many derived arguments and calls equal the recorded ones."""

    arguments: int = 0
    same: int = 0
    calls: int = 0
    exact: int = 0
    #: Slots of arguments that differ.
    others: Counter[str] = field(default_factory=Counter)

    def add(self, derived: Mapping[str, str], gold: Mapping[str, Any]) -> None:
        """Count one call."""
        self.calls += 1
        self.exact += derived == gold
        for slot in sorted({*derived, *gold}):
            self.arguments += 1
            if derived.get(slot) == gold.get(slot):
                self.same += 1
            else:
                self.others[slot] += 1


class _Said:
    """The canonical forms of the values said so far, by speaker, service and slot."""

    def __init__(self) -> None:
        self._own: dict[tuple[str, str, str], str] = {}
        self._user: dict[str, str] = {}
        self._system: dict[str, str] = {}

    def hear(self, turn: Mapping[str, Any]) -> None:
        """Add the actions of a turn."""
        by_user = turn["speaker"] == "USER"
        for frame in turn["frames"]:
            for action in frame.get("actions", ()):
                pairs = zip(action["values"], action["canonical_values"], strict=True)
                for value, canonical in pairs:
                    if by_user:
                        self._own[frame["service"], action["slot"], value] = canonical
                        self._user[value] = canonical
                    else:
                        self._system[value] = canonical

    def canonical(self, service: str, slot: str, values: Sequence[str], step: int) -> str:
        """Return the canonical form of a value in a state, which has the value as it was said."""
        places = ((service, slot, value) for value in values)
        own = {place[2]: self._own[place] for place in places if place in self._own}
        looked = [own, self._user, self._system]
        for known in looked[:step]:
            for value in values:
                if value in known:
                    return known[value]
        return values[0]


def derived_calls(entry: Mapping[str, Any], slots: Mapping[str, Sequence[str]]) -> Iterator[Any]:
    """Yield for each system turn its call, derived in each of the steps.

    ``slots`` are the arguments of each tool. A call has those arguments that the state of its
    service has.
    """
    said = _Said()
    states: dict[str, Mapping[str, list[str]]] = {}
    for turn in entry["turns"]:
        said.hear(turn)
        for frame in turn["frames"]:
            service = frame["service"]
            if "state" in frame:
                states[service] = frame["state"]["slot_values"]
            if "service_call" not in frame:
                continue
            tool = f"{service}_{frame['service_call']['method']}"
            given = {slot: states[service].get(slot, []) for slot in slots[tool]}
            yield [
                {
                    slot: value
                    for slot, values in given.items()
                    if values
                    and (value := said.canonical(service, slot, values, step)) != "dontcare"
                }
                for step in range(len(STEPS))
            ]


def agreements(source: Path, data: DialogueSet) -> list[Agreement]:
    """Return the agreement after each of the steps, over all calls of the labels."""
    files = choose(catalogue(source), data.split, "sgd").files
    entries = [entry for _, file in files for entry in _entries(file.json())]
    slots = {
        tool.name: tuple(tool.schema["properties"])
        for dialogue in data.dialogues
        for tool in dialogue.tools
    }
    found = [Agreement() for _ in STEPS]
    for dialogue, entry in zip(data.dialogues, entries, strict=True):
        labels = [turn.calls for turn in dialogue.turns if turn.calls]
        calls = list(iterate_recorded_calls(dialogue))
        if [calls_outcome([call]) for call in calls] != labels:
            raise SystemExit(f"{dialogue.id}: the labels are not the recorded calls")
        for call, steps in zip(calls, derived_calls(entry, slots), strict=True):
            for agreement, derived in zip(found, steps, strict=True):
                agreement.add(derived, call.arguments)
    return found


def _entries(parsed: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = parsed
    return entries


def comes_back(data: DialogueSet) -> bool:
    """Return whether all dialogues are the same after they were written as messages."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "messages.jsonl"
        write_lines(path, json_lines(data.dialogues))
        return load_dialogues(path, data.split, outcome="tool-calls").dialogues == data.dialogues


def renamed(source: Path, data: DialogueSet) -> str:
    """Return how many calls have their names again after each paraphrase and its reversal."""
    calls = [call for dialogue in data.dialogues for call in iterate_recorded_calls(dialogue)]
    told = []
    for words in sgd_paraphrases(source, data.split):
        others = [words.renamed(call) for call in calls]
        back = sum(words.original(o) == c for o, c in zip(others, calls, strict=True))
        new = sum(_differs(o, c) for o, c in zip(others, calls, strict=True))
        told.append(f"{words.name}: {back:,} of {len(calls):,} come back, {new:,} are renamed")
    return "; ".join(told)


def _differs(other: ToolCall, call: ToolCall) -> bool:
    return other.name != call.name


def _shape(dialogues: Sequence[Dialogue]) -> str:
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    calls = sum(len(list(iterate_recorded_calls(dialogue))) for dialogue in dialogues)
    tools = {tool.name for dialogue in dialogues for tool in dialogue.tools}
    return (
        f"{len(dialogues):,} dialogues, {len(turns):,} turns of the user, {calls:,} calls at "
        f"{sum(bool(turn.calls) for turn in turns):,} turns, {len(tools)} tools"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="folder with SGD and SGD-X")
    parser.add_argument("--split", default="test", type=canonical_split)
    given = parser.parse_args()
    data = load_dialogues(given.data, given.split, outcome="tool-calls")
    print(f"SGD, split {data.split}: {_shape(data.dialogues)}\n")
    print("| arguments derived from | arguments that agree | of | share | calls exact | share |")
    print("| --- | --- | --- | --- | --- | --- |")
    found = agreements(given.data, data)
    for name, one in zip(STEPS, found, strict=True):
        share, exact = one.same / one.arguments, one.exact / one.calls
        print(
            f"| {name} | {one.same:,} | {one.arguments:,} | {share:.2%} | {one.exact:,} "
            f"| {exact:.2%} |"
        )
    for name, one in zip(STEPS, found, strict=True):
        if one.others:
            slots = ", ".join(f"{slot} {count}" for slot, count in one.others.most_common(8))
            print(f"\nthe rest of '{name}': {slots}")
    print(f"\nwritten as messages and read again: {'the same' if comes_back(data) else 'differs'}")
    print(f"SGD-X: {renamed(given.data, data)}")


if __name__ == "__main__":
    main()
