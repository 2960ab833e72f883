"""A campaign that is cut at a number of calls is the campaign of fewer variants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dstfuzz.campaign.ledger import Counts
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.research.campaign_figures import CampaignFigures, TurnFigures
from pytest_dstfuzz.research.campaigns import CampaignRunner
from pytest_dstfuzz.research.contenders import at_equal_calls, cut
from pytest_dstfuzz.research.resampling import Resamples
from pytest_dstfuzz.trackers.registry import resolve_tracker

TWO = Resamples(["a", "b"], seed=0)


def turn(dialogue: str, calls_after: tuple[int, ...], broken_after: int | None) -> TurnFigures:
    counts = Counts(held=len(calls_after) - 1)
    calls = calls_after[-1]
    return TurnFigures(dialogue, 0, calls, calls_after, broken_after, counts, 8, 0, 0, ())


def run(*turns: TurnFigures) -> CampaignFigures:
    return CampaignFigures(turns, inertia=2.0, seconds=1.0)


#: Calls after 0, 1, 2 and 3 variants: 2, 5, 6 and 7; turns broken: 0, 1, 1 and 2.
RUN = run(turn("a", (1, 3), 1), turn("b", (1, 2, 3, 4), 3))


@pytest.mark.parametrize(
    ("calls", "variants", "tally"),
    [
        (0, 0, {"a": (0, 1), "b": (0, 1)}),
        (2, 0, {"a": (0, 1), "b": (0, 1)}),
        (5, 1, {"a": (1, 3), "b": (0, 2)}),
        (6.25, 2.25, {"a": (1, 3), "b": (0.25, 3.25)}),
        (7, 3, {"a": (1, 3), "b": (1, 4)}),
        (99, 3, {"a": (1, 3), "b": (1, 4)}),
    ],
)
def test_where_a_campaign_is_cut(
    calls: float, variants: float, tally: dict[str, tuple[float, float]]
) -> None:
    found = cut(RUN, calls)
    assert found.variants == pytest.approx(variants)
    assert {name: pytest.approx(pair) for name, pair in found.tally.items()} == tally


def test_what_is_compared_made_as_many_calls() -> None:
    subject = run(turn("a", (1, 2), 1), turn("b", (1, 2, 3), None))
    found = at_equal_calls(TWO, [subject], [RUN, RUN])
    assert (found.variants, found.calls, found.turns_broken) == (1, 5, 1)
    # One turn in five calls each; dialogue by dialogue 1/2 against 1/3 and none against none.
    assert found.ratio.value == pytest.approx(1.0)
    # All of it where it made fewer calls than the other.
    assert at_equal_calls(TWO, [RUN], [subject]).calls == 5


@pytest.mark.parametrize("search", ["random", "near-value", "greedy", "dialtest", "agent"])
@pytest.mark.parametrize("until_broken", [True, False])
def test_the_cut_is_a_campaign_of_fewer_variants(search: str, until_broken: bool) -> None:
    data = load_dialogues("sample", "test")
    tracker = resolve_tracker(
        "memory_bot:track",
        normalisation=data.normalisation,
        search_path=(str(Path(__file__).parent),),
    )
    bench = CampaignRunner(tracker, replace(data, dialogues=data.dialogues[:4]))
    settings = Settings.of(
        model="memory_bot:track",
        turns=None,
        variants=5,
        redraws=2,
        shrink=False,
        stop_at_first=until_broken,
        search=search,
    )
    whole = bench.run(settings)
    assert [item.calls_after[-1] for item in whole.turns] == [item.calls for item in whole.turns]
    fewer = bench.run(settings.replace_options(variants=2))
    at_two = cut(whole, sum(item.calls for item in fewer.turns))
    assert at_two.variants >= 2
    expected: dict[str, tuple[int, int]] = {}
    for item in fewer.turns:
        broken, asked = expected.get(item.dialogue, (0, 0))
        expected[item.dialogue] = (broken + bool(item.violations), asked + item.calls)
    assert at_two.tally == expected
    assert sum(broken for broken, _ in expected.values()) > 0
