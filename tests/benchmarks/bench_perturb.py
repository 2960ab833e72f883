"""Perturbation against nlpaug, and against the time that TRADE takes for one context.

Run with ``python -m pytest tests/benchmarks/bench_perturb.py -s``; not collected by default.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np
import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.types import Turn
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon import load_lexicon

ROUNDS = 5


def seconds_each(work: Callable[[], int]) -> float:
    """Return the CPU seconds for one of the things that ``work`` counts; best of rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        count = work()
        best = min(best, (time.process_time() - start) / count)
    return best


@pytest.fixture(scope="module")
def turns() -> tuple[Perturber, list[Turn]]:
    data = load_dialogues("sample", "test")
    perturber = Perturber(load_lexicon(), ontology=data.ontology, cue_words=data.cue_words)
    return perturber, [turn for dialogue in data.dialogues for turn in dialogue.turns]


def prepare_all(perturber: Perturber, turns: list[Turn]) -> int:
    for turn in turns:
        perturber.prepare(turn.user, (turn.state or {}).values(), turn.system)
    return len(turns)


def test_a_variant_costs_a_fraction_of_a_millisecond(
    turns: tuple[Perturber, list[Turn]],
) -> None:
    perturber, utterances = turns
    sources = [perturber.prepare(t.user, (t.state or {}).values(), t.system) for t in utterances]
    rng = np.random.default_rng(0)
    actions = [perturber.space.sample(rng, 3) for _ in range(5 * len(sources))]

    def apply_all() -> int:
        for index, action in enumerate(actions):
            perturber.apply(sources[index % len(sources)], action)
        return len(actions)

    prepare = seconds_each(lambda: prepare_all(perturber, utterances))
    apply = seconds_each(apply_all)
    print(f"\nprepare {prepare * 1e3:.3f} ms a turn, apply (k = 3) {apply * 1e3:.3f} ms a variant")
    assert prepare < 1e-3
    assert apply < 0.3e-3


def test_one_strict_edit_is_at_least_as_fast_as_nlpaug(
    turns: tuple[Perturber, list[Turn]],
) -> None:
    char = pytest.importorskip("nlpaug.augmenter.char")
    _, utterances = turns
    data = load_dialogues("sample", "test")
    perturber = Perturber(
        load_lexicon(),
        ontology=data.ontology,
        cue_words=data.cue_words,
        only=["char_replace"],
    )
    rng = np.random.default_rng(0)
    actions = [perturber.space.sample(rng, 1) for _ in utterances]
    augmenter = char.KeyboardAug(aug_char_max=1, aug_word_max=1)
    random.seed(0)

    def ours() -> int:
        # Locks included: each utterance is prepared anew for its one edit.
        for turn, action in zip(utterances, actions, strict=True):
            source = perturber.prepare(turn.user, (turn.state or {}).values(), turn.system)
            perturber.apply(source, action)
        return len(utterances)

    def theirs() -> int:
        for turn in utterances:
            augmenter.augment(turn.user)
        return len(utterances)

    mine, other = seconds_each(ours), seconds_each(theirs)
    print(f"\none strict edit {mine * 1e3:.3f} ms, nlpaug {other * 1e3:.3f} ms: {other / mine:.2f}")
    assert mine <= other
