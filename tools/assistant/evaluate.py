"""Measures the assistant on schema-guided dialogues: ``python -m tools.assistant.evaluate --help``.

At each user turn, the assistant reads the messages before it as they were recorded, with calls and
results. The values that it remembers from earlier turns are its own. A call is right if its tool
and all its arguments are right. An argument may have any spelling of the annotation, in any case.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_dstfuzz.models.assistant.assistant import Decision, arguments, hear, take_turn
from pytest_dstfuzz.models.assistant.features import ANY, Memory, ToolView, as_text, read_tools
from pytest_dstfuzz.models.assistant.network import Weights, load_shipped_weights
from tools.assistant.rules import take_turn_by_rules
from tools.assistant.sgd import Gold, SgdDialogue, read_split

TakeTurn = Callable[[Memory, tuple[ToolView, ...], str], Decision]


@dataclass
class Figures:
    """Counts over user turns: for each figure, how many are right, and of how many."""

    right: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)

    def count(self, name: str, good: bool) -> None:
        """Count one more turn for a figure."""
        self.right[name] += good
        self.total[name] += 1

    def share(self, name: str) -> float:
        """Return the share that is right, or nan if nothing was counted."""
        return self.right[name] / self.total[name] if self.total[name] else float("nan")


def measure(
    dialogues: Sequence[SgdDialogue], take: TakeTurn, seen: frozenset[str], *, texts_alone: bool
) -> dict[str, Figures]:
    """Return the figures of all turns, and those of services that training saw or did not see.

    If ``texts_alone`` is true, recorded calls and results are left out, as for trackers of states.
    """
    found = {"all": Figures(), "seen": Figures(), "unseen": Figures()}
    for dialogue in dialogues:
        tools = read_tools(dialogue.tools)
        by_name = {tool.name: tool for tool in tools}
        golds = {gold.place: gold for gold in dialogue.turns}
        memory = Memory()
        for place, message in enumerate(dialogue.messages):
            gold = golds.get(place)
            if gold is None:
                recorded = message["role"] == "tool" or "tool_calls" in message
                if not (recorded and texts_alone):
                    hear(memory, message, by_name)
                continue
            decision = take(memory, tools, message["content"])
            part = "seen" if gold.service in seen else "unseen"
            mine = {
                tool: by_name[tool] for tool, of in dialogue.services.items() if of == gold.service
            }
            for figures in (found["all"], found[part]):
                _count(figures, gold, decision, memory, mine)
    return found


def _count(
    figures: Figures, gold: Gold, decision: Decision, memory: Memory, tools: Mapping[str, ToolView]
) -> None:
    called = decision.tool.name if decision.tool is not None and decision.call else None
    made = None
    if decision.tool is not None and decision.call:
        made = arguments(decision.tool, memory)
    wanted = gold.call[0] if gold.call else None
    exact = called == wanted and (
        gold.call is None or made is None or _same(made, gold.call[1], gold)
    )
    figures.count("turns", exact)
    figures.count("calls" if gold.call else "texts", exact)
    figures.count("called or not", (called is None) == (wanted is None))
    if gold.call:
        figures.count("tool of a call", called == wanted)
    if called is not None:
        figures.count("calls made", exact)
    figures.count(
        "tool",
        gold.active is None or (decision.tool is not None and decision.tool.name == gold.active),
    )
    slots = {slot.name: slot for tool in tools.values() for slot in tool.slots}
    held: dict[str, str] = {}
    for tool in tools.values():
        for slot in tool.slots:
            if slot in memory.values:
                held.setdefault(slot.name, memory.values[slot])
    state = set(held) == set(gold.after) and all(
        _admissible(value, name, gold.after[name], gold) for name, value in held.items()
    )
    figures.count("states", state)
    for name in {*gold.after, *held} & set(slots):
        good = (
            name in held
            and name in gold.after
            and _admissible(held[name], name, gold.after[name], gold)
        )
        figures.count("values", good)


def _admissible(value: str, name: str, spellings: Sequence[str], gold: Gold) -> bool:
    low = {one.casefold() for one in (*spellings, *gold.canonical.get(name, ()))}
    return value.casefold() in low


def _same(made: Mapping[str, Any], wanted: Mapping[str, str], gold: Gold) -> bool:
    given = {name: value for name, value in wanted.items() if value != ANY}
    return set(made) == set(given) and all(
        _admissible(as_text(value), name, [given[name], *gold.after.get(name, ())], gold)
        for name, value in made.items()
    )


def main(arguments_given: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sgd", type=Path, required=True, help="folder with train.zip, dev.zip, ..."
    )
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument(
        "--weights", type=Path, help="file of the weights (default: the shipped file)"
    )
    parser.add_argument(
        "--dialogues", type=int, help="maximum number of dialogues, spread over the split"
    )
    parser.add_argument("--rules", action="store_true", help="measure the rules instead")
    parser.add_argument("--texts-alone", action="store_true", help="leave calls and results out")
    options = parser.parse_args(arguments_given)
    with zipfile.ZipFile(options.sgd / "train.zip") as file:
        schema = json.loads(file.read("train/schema.json"))
    seen = frozenset(service["service_name"] for service in schema)
    dialogues = list(read_split(options.sgd / f"{options.split}.zip", options.split))
    if options.dialogues:
        dialogues = dialogues[:: max(1, len(dialogues) // options.dialogues)]
    take: TakeTurn = take_turn_by_rules
    if not options.rules:
        weights = (
            Weights.read(options.weights.read_bytes())
            if options.weights
            else load_shipped_weights()
        )

        def take(memory: Memory, tools: tuple[ToolView, ...], user: str) -> Decision:
            return take_turn(weights, memory, tools, user)

    started = time.monotonic()
    found = measure(dialogues, take, seen, texts_alone=options.texts_alone)
    took = time.monotonic() - started
    turns = found["all"].total["turns"]
    print(f"{len(dialogues)} dialogues, {turns} user turns, {1000 * took / turns:.1f} ms a turn")
    print("| | all | seen | unseen | counted |\n| --- | --- | --- | --- | --- |")
    for name in found["all"].total:
        shares = " | ".join(f"{100 * found[part].share(name):.1f} %" for part in found)
        print(f"| {name} | {shares} | {found['all'].total[name]:,} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
