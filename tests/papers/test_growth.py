"""What was found after how many calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_dstfuzz.campaign.figures import Counts
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.papers.comparison import CampaignFigures, CampaignRunner, TurnFigures, Violation
from pytest_dstfuzz.papers.curves import MEASURES, Growth, break_even, ratio, shares_by_operator
from pytest_dstfuzz.papers.formatting import Resamples
from pytest_dstfuzz.trackers.registry import resolve_tracker

TWO = Resamples(["a", "b"], seed=0)


def found(number: int, key: str, mass: float = 0.0, *operators: str) -> Violation:
    return Violation("turn", (), False, False, number, key, "train-day", mass, operators)


def turn(dialogue: str, calls_after: tuple[int, ...], *violations: Violation) -> TurnFigures:
    broken = violations[0].number if violations else None
    calls, counts = calls_after[-1], Counts(held=len(calls_after) - 1)
    return TurnFigures(dialogue, 0, calls, calls_after, broken, counts, 8, 0, 0, violations)


def run(*turns: TurnFigures) -> CampaignFigures:
    return CampaignFigures(turns, inertia=2.0, seconds=1.0)


#: Calls after 0, 1, 2 and 3 variants: 2, 4, 6 and 8. Both dialogues show the weakness `x`.
RUN = run(
    turn("a", (1, 2, 3, 4), found(1, "x", 0.25, "char_drop/any"), found(3, "y", 0.5, "p", "q")),
    turn("b", (1, 2, 3, 4), found(2, "x", 0.125, "char_drop/any", "q")),
)
GROWTH = Growth.of(RUN, ["a", "b"])


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (0.5, (2, 0, 0, 0)),
        (1, (2, 0, 0, 0)),
        (1.5, (3, 0.5, 0.5, 62.5)),
        (2, (4, 1, 1, 125)),
        (3, (6, 1, 2, 187.5)),
        (4, (8, 2, 2, 437.5)),
        # The campaign ends before: what it had found last stays.
        (9, (8, 2, 2, 437.5)),
    ],
)
def test_a_curve(calls: float, expected: tuple[float, ...]) -> None:
    figures = [GROWTH.found(name, calls)[0] for name in ("calls", *MEASURES)]
    assert figures == pytest.approx(expected)


def test_resamples_are_cut_by_their_own_calls_and_count_their_own_weaknesses() -> None:
    weights = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    assert GROWTH.found("calls", 3, weights).tolist() == [6, 6, 6]
    assert GROWTH.found("weaknesses", 3, weights).tolist() == [1, 1, 1]
    assert GROWTH.found("turns_broken", 3, weights).tolist() == [2, 2, 2]
    assert GROWTH.found("weaknesses", 4, weights).tolist() == [2, 2, 1]


def test_ratios_and_their_intervals() -> None:
    half = Growth.of(run(turn("a", (1, 2), found(1, "x")), turn("b", (1, 2))), ["a", "b"])
    factor = ratio(TWO, [GROWTH, GROWTH], [half], "turns_broken", 4)
    assert factor.value == 2
    # Without the first dialogue the other search has nothing.
    assert factor.interval == (1, np.inf)
    nothing = Growth.of(run(turn("a", (1, 2)), turn("b", (1,))), ["a", "b"])
    assert ratio(TWO, [GROWTH], [nothing], "weaknesses", 4).value is None


def test_shares_of_operators() -> None:
    assert shares_by_operator([(RUN, 3)]) == {
        "char_drop/any": (2 / 3, 1 / 2),
        "p": (1 / 3, 1 / 2),
        "q": (2 / 3, 1),
    }
    assert shares_by_operator([(RUN, 1)]) == {"char_drop/any": (1, 1)}
    assert GROWTH.variants_at(1) == 0
    assert GROWTH.variants_at(2.6) == 2
    assert shares_by_operator([(RUN, 0)]) == {}


@pytest.mark.parametrize(
    ("training", "others", "factor", "calls"),
    [(1000, 0, 3, 500), (1000, 0, 1, None), (1000, 0, None, None), (0, 500, 2, 0)],
)
def test_break_even(
    training: float, others: float, factor: float | None, calls: float | None
) -> None:
    assert break_even(training, others, factor) == calls


@pytest.mark.parametrize("search", ["random", "near-value", "greedy", "agent"])
@pytest.mark.parametrize("until_broken", [True, False])
def test_a_cut_is_a_campaign_of_fewer_variants(search: str, until_broken: bool) -> None:
    data = load_dialogues("sample", "test")
    tracker = resolve_tracker(
        "memory_bot:track",
        normalisation=data.normalisation,
        search_path=(str(Path(__file__).parent),),
    )
    bench = CampaignRunner(tracker, replace(data, dialogues=data.dialogues[:4]))
    ids = [dialogue.id for dialogue in bench.data.dialogues]
    settings = Settings.of(
        model="memory_bot:track",
        turns=None,
        variants=5,
        redraws=2,
        stop_at_first=until_broken,
        search=search,
    )
    whole = Growth.of(bench.run(settings), ids)
    fewer = Growth.of(bench.run(settings.replace_options(variants=2)), ids)
    calls = fewer.spent / fewer.turns.sum()
    assert fewer.found("calls", calls)[0] == fewer.spent
    for name in ("calls", *MEASURES):
        assert whole.found(name, calls)[0] == pytest.approx(fewer.found(name, calls)[0])
    assert fewer.found("weaknesses", calls)[0] > 0
