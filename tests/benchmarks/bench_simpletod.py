"""SimpleTOD's tracker against its model generating one turn at a time, as transformers does it.

Run with ``python -m pytest tests/benchmarks/bench_simpletod.py -s``; not collected by default.
"""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.models.simpletod.config import LONGEST_BELIEF
from pytest_dstfuzz.models.simpletod.decoder import GreedyDecoder
from pytest_dstfuzz.models.simpletod.tracker import load_simpletod

ROUNDS = 3
#: One at a time is slow, so fewer turns of the same mixture are generated.
ALONE = 48


def test_batches_against_one_at_a_time() -> None:
    data = load_dialogues("sample", "test")
    contexts = [d.context(turn.index) for d in data.dialogues for turn in d.turns]
    few = contexts[:: len(contexts) // ALONE]
    load_simpletod().predict(few[:2])
    best = {"together": 0.0, "alone": 0.0}
    for _ in range(ROUNDS):
        # A new one each time, that has read and written nothing yet.
        tracker = load_simpletod()
        start = time.perf_counter()
        together = tracker.predict(contexts)
        best["together"] = max(best["together"], len(contexts) / (time.perf_counter() - start))
        single = load_simpletod()
        single.decoder = GreedyDecoder(
            single.model, end=single.end, longest=LONGEST_BELIEF, batch_size=1
        )
        start = time.perf_counter()
        alone = [single.predict([context])[0] for context in few]
        best["alone"] = max(best["alone"], len(few) / (time.perf_counter() - start))
    states = {id(context): one.state for context, one in zip(contexts, together, strict=True)}
    assert [one.state for one in alone] == [states[id(context)] for context in few]
    ratio = best["together"] / best["alone"]
    print(
        f"\nSimpleTOD: {best['together']:.1f} turns/s in batches of {tracker.batch_size}, "
        f"{best['alone']:.1f} one at a time: {ratio:.1f} times"
    )
    assert ratio >= 5
