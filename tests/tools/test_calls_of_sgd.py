"""The commands on paraphrased schemas and on rollouts, on the dialogues that ship."""

from __future__ import annotations

from dataclasses import replace

from pytest_dstfuzz.dialogue.calls import Tool
from pytest_dstfuzz.dialogue.dialogues import ToolParaphrase
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Tracker
from tools.calls import rollouts, sgd_x

DATA = sgd_x.drawn(load_dialogues("sample", outcome="tool-calls"), 3, 0)
TOOLS = tuple(dict.fromkeys(tool for one in DATA.dialogues for tool in one.tools))
SAME = ToolParaphrase("same", {tool.name: tool for tool in TOOLS}, {})
NUMBERED = ToolParaphrase(
    "numbered",
    {tool.name: Tool(f"tool_{place}", "", tool.parameters) for place, tool in enumerate(TOOLS)},
    {},
)


def assistant() -> Tracker:
    return resolve_tracker("assistant", outcome="tool-calls")


def test_the_same_words_change_nothing_and_none_at_all_change_much() -> None:
    plain, same, numbered = sgd_x.measured(assistant(), DATA, [SAME, NUMBERED], frozenset())
    assert (plain.turns, plain.changed) == (DATA.turn_count(), 0)
    assert replace(same, name="SGD") == plain
    assert numbered.changed > 0
    assert numbered.dialogues <= len(DATA.dialogues) == 3
    assert plain.unseen == plain.calling > 0
    assert plain.row(3).startswith("| SGD | ")


def test_a_planted_fault_is_found_by_rollouts() -> None:
    sound = assistant()
    names = frozenset(tool.name for tool in TOOLS)
    faulty = as_tracker(rollouts.Hesitant(sound, names), outcome="tool-calls")
    found = [
        rollouts.rolled(rollouts.resolve_rolling(one), DATA, seed=0, variants=10)
        for one in (sound, faulty)
    ]
    variants, dialogues = rollouts.found_alone(*found)
    assert variants >= dialogues > 0
    assert rollouts.row("x", found[1], 10, 1.0).count("|") == 9
