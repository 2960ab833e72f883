"""The network in numpy is the one that was trained in torch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from toys import TOOLS

from pytest_dstfuzz.models.assistant.assistant import hear
from pytest_dstfuzz.models.assistant.features import (
    Memory,
    ask_call,
    ask_slots,
    ask_tools,
    read_tools,
    turn_text,
)
from pytest_dstfuzz.models.assistant.network import TurnNetwork, Weights

torch = pytest.importorskip("torch")

from tools.assistant.network import AssistantNetwork, Batch, collate  # noqa: E402 - needs torch
from tools.assistant.rows import FIXED, Row, SlotRow  # noqa: E402 - likewise

COMMON = ("the", "please", "for", "in")
TALKS = (
    ("", "Please reserve a table for two in the Blue Olive at 7 pm."),
    ("Do you want it in the kitchen or the attic?", "The kitchen, thanks"),
    ("I found Casa Verde, rated 4.5. Is that right?", "Yes, for 3 people."),
)


class _Vectors:
    """Vectors of rows in full precision, by their place."""

    def __init__(self) -> None:
        self.rows = [np.zeros(96, np.float32)]

    def places(self, vectors: np.ndarray) -> np.ndarray:
        flat = vectors.reshape(-1, 96)
        self.rows += list(flat)
        found = np.arange(len(self.rows) - len(flat), len(self.rows))
        return found.reshape(vectors.shape[:-1])


def turns() -> Iterator[tuple[Memory, str]]:
    memory = Memory()
    tools = {tool.name: tool for tool in read_tools(TOOLS)}
    for system, said in TALKS:
        if system:
            result = {"role": "tool", "content": '[{"restaurant_name": "Casa Verde"}]'}
            hear(memory, result, tools)
            hear(memory, {"role": "assistant", "content": system}, tools)
        yield memory, said
        memory.begin_answer()


def test_numpy_gives_what_torch_gives() -> None:
    torch.manual_seed(3)
    views = read_tools(TOOLS)
    vectors, rows, asked_all = _Vectors(), [], []
    places = {word: place for place, word in enumerate(COMMON, 1)}
    for number, (memory, said) in enumerate(turns()):
        turn, tool = turn_text(memory.system, said), views[number]
        tools, slots = ask_tools(turn, views, memory), ask_slots(turn, tool, memory)
        facts = ask_call(turn, tool, memory, 1)
        asked_all.append((turn, tool, tools, slots, facts))
        slot_rows = tuple(
            SlotRow(
                vectors.places(slots.vectors[place]),
                slots.facts[place],
                slots.pairs[place],
                vectors.places(slots.values[place].vectors),
                slots.values[place].facts,
                slots.values[place].hits,
                slots.candidates[place][1],
                np.zeros(FIXED + len(asked.values) + len(slots.candidates[place][0]), bool),
                (-1, -1),
            )
            for place, asked in enumerate(slots.slots)
        )
        common = np.array([places.get(token.lower, 0) for token in turn.read])
        rows.append(
            Row(
                vectors.places(turn.vectors),
                common,
                turn.shapes,
                turn.heard,
                vectors.places(tools.vectors),
                tools.facts,
                number + 1,
                slot_rows,
                facts,
                1,
            )
        )
    network = AssistantNetwork(torch.from_numpy(np.stack(vectors.rows)), len(COMMON) + 1).eval()
    named = {name: weight.detach().numpy() for name, weight in network.named_parameters()}
    weights = Weights(named, places, "toy")
    batch: Batch = collate(rows)
    with torch.no_grad():
        states = network.encode(batch)
        answers, ends = network.score_slots(batch, states)
        of_tools = network.score_tools(batch, states)
        of_calls = network.score_call(batch, states, batch.tools[range(3), batch.active - 1])
    widest = batch.values.shape[2]
    for number, (turn, tool, tools, slots, facts) in enumerate(asked_all):
        mine = TurnNetwork(weights, turn)
        assert mine.tools(tools) == pytest.approx(of_tools[number].numpy(), abs=1e-4)
        vector = np.stack([tool.label_vector, tool.about_vector])
        assert mine.call(vector, facts) == pytest.approx(float(of_calls[number]), abs=1e-4)
        for place, score in enumerate(mine.slots(slots)):
            count, more = len(slots.slots[place].values), len(slots.candidates[place][0])
            theirs = answers[number, place].numpy()
            kept = [*range(2), *range(FIXED, FIXED + count)]
            kept += range(FIXED + widest, FIXED + widest + more)
            own = [*range(2), *range(FIXED, FIXED + count + more)]
            assert score.answers[own] == pytest.approx(theirs[kept], abs=1e-4)
            user = slice(turn.heard + 1, len(turn.read))
            near = ends[number, place, user].numpy()
            assert score.ends[user] == pytest.approx(near, abs=1e-4)
