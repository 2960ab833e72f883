"""Estimated failures of 1,000 user turns: right against brute force, and given only where known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.figures import (
    EstimatedFailures,
    mean_interval,
    ratio_interval,
)
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import word_list

TEXTS = (
    "please book us a large table",
    "is there some parking near the place",
    "thanks, and we fancy that second restaurant",
    "what about a museum then",
    "could you tell me the exact phone number there",
    "i am looking for something to visit",
)
#: Short enough for all texts with one slip to fit into a run.
SHORT = ("book a table", "is there parking", "a restaurant please", "a museum then")


def two_turns(texts: Sequence[str]) -> DialogueSet:
    """Return dialogues of two turns."""
    dialogues = tuple(
        Dialogue(f"d{number}", (Turn(0, "", text, None), Turn(1, "Sure.", texts[number - 1], None)))
        for number, text in enumerate(texts)
    )
    return DialogueSet("toy", "test", dialogues)


DATA = two_turns(TEXTS)
CUES = ("book", "parking", "restaurant", "museum", "number")


def heard(text: str) -> str:
    # No word of the text itself, as what a tracker predicts is locked.
    return "".join(str(CUES.index(word)) for word in word_list(text) if word in CUES) or "none"


def track(context: Context) -> dict[str, str]:
    """A tracker that hears a few words, in what was said last, and nothing that is misspelt."""
    return {"heard": heard(context.user)}


def run(data: DialogueSet = DATA, **given: object) -> tuple[TurnResult, ...]:
    options = {
        "search": "noise",
        "validity": "natural",
        "attack": "non-cumulative",
        "shrink": False,
    }
    campaign = Campaign(track, data, Settings.of(**{**options, **given}))
    return tuple(campaign)


def estimated_failures(results: Sequence[TurnResult]) -> EstimatedFailures | None:
    return summarise(results).estimated_failures


def test_with_all_outcomes_it_is_what_brute_force_finds():
    settings = Settings.of(search="noise", validity="natural", slip_rate=0.02)
    data = two_turns(SHORT)
    spec = CampaignSpec.of(settings.variant, data, load_lexicon())
    for turn in run(data, variants=1000, slip_rate=0.02, max_edit_rate=1.0):
        support = spec.perturber.prepare(turn.user, [heard(turn.user)], turn.system).support
        assert support is not None
        single = support.noisy.single(0.02)
        texts = [(apply_edits(turn.user, [slip.edit]), chance) for slip, chance in single]
        exact = math.fsum(chance for text, chance in texts if heard(text) != heard(turn.user))
        alone = math.fsum(
            variant.weight or 0.0
            for variant in turn.variants
            if len(variant.edits) == 1 and heard(variant.text) != heard(turn.user)
        )
        # The rarest are left to chance, as turns with several slips want variants, too.
        assert alone == pytest.approx(exact, rel=0.01)


@pytest.mark.nightly
def test_few_variants_give_the_same_on_average():
    exact = estimated_failures(run(variants=1000, slip_rate=0.05, max_edit_rate=1.0))
    assert exact is not None
    assert exact.per_1000 is not None
    found = []
    for seed in range(40):
        figures = estimated_failures(
            run(variants=12, seed=seed, slip_rate=0.05, max_edit_rate=1.0, redraws=0)
        )
        assert figures is not None
        assert figures.per_1000 is not None
        found.append(figures.per_1000)
    assert sum(found) / len(found) == pytest.approx(exact.per_1000, rel=0.1)


def test_the_figure_says_what_it_is_of():
    figures = estimated_failures(run(slip_rate=0.03, noise=("typing",)))
    assert figures is not None
    assert (figures.noise, figures.slip_rate, figures.turns) == ("typing", 0.03, 12)
    assert figures.interval is not None
    assert figures.per_1000 is not None
    assert figures.interval[0] < figures.per_1000 < figures.interval[1]
    assert figures.per_1000 + figures.unjudged_per_1000 <= figures.distorted_per_1000 * 1.5
    assert figures.locked_per_1000 > 0


def test_more_slips_are_more_failures():
    rates = [estimated_failures(run(slip_rate=rate, variants=20)) for rate in (0.01, 0.02, 0.05)]
    values = [figures.per_1000 for figures in rates if figures and figures.per_1000]
    assert len(values) == 3
    assert values == sorted(values)


def test_too_little_says_why_there_is_no_figure():
    figures = estimated_failures(run(variants=1, turns=6))
    assert figures is not None
    assert figures.per_1000 is None
    assert figures.interval is None
    assert figures.reason.startswith("needs a sample of 30 variants, got ")
    assert "30 variants" in figures.reason


def test_two_slip_rates_have_no_figure_in_common():
    both = [*run(slip_rate=0.01), *run(slip_rate=0.05)]
    figures = estimated_failures(both)
    assert figures is not None
    assert figures.per_1000 is None
    assert figures.slip_rate is None
    assert figures.reason == "tests have different noise models or slip rates"


def test_without_a_density_there_is_no_rate():
    assert estimated_failures(run(search="random")) is None


@pytest.mark.parametrize("given", [{"variant": 1}, {"stop_at_first": True}])
def test_a_part_of_a_sample_is_no_sample(given: dict[str, object]):
    results = run(**given)
    assert estimated_failures(results) is None


@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
def test_without_a_noise_model_there_is_no_rate(validity: str):
    results = run(search="random", validity=validity)
    assert estimated_failures(results) is None


def test_earlier_turns_are_as_people_type_them():
    rare = run(attack="cumulative", slip_rate=0.02, variants=20)
    often = run(attack="cumulative", slip_rate=0.3, variants=20)
    none = run(attack="non-cumulative", slip_rate=0.3, variants=20)

    def seen(results: Sequence[TurnResult]) -> float:
        later = [v for t in results if t.turn_index for v in t.variants if v.valid]
        return sum(bool(variant.context_edits) for variant in later) / len(later)

    assert seen(none) == 0
    assert 0 < seen(rare) < 0.2 < seen(often)


def test_what_its_context_breaks_is_no_failure_of_the_turn():
    def forgetful(context: Context) -> dict[str, str]:
        return {"first": str(len(context.exchanges[0].user))}

    options = {"search": "noise", "validity": "natural", "attack": "cumulative", "slip_rate": 0.3}
    results = tuple(Campaign(forgetful, DATA, Settings.of(shrink=False, variants=20, **options)))
    later = [turn for turn in results if turn.turn_index]
    assert any(turn.violations for turn in later)
    assert all(variant.cause == "context" for turn in later for variant in turn.violations)
    figures = estimated_failures(later)
    assert figures is not None
    assert figures.per_1000 == 0


def test_the_order_of_the_results_does_not_matter():
    results = run()
    assert estimated_failures(results) == estimated_failures(results[::-1])


def test_what_could_not_be_judged_is_told():
    results = run(max_edit_rate=0.01)
    figures = estimated_failures(results)
    assert figures is not None
    assert figures.unjudged_per_1000 > 0
    failed = [replace(t, clean_state=None, outcome="error") for t in results]
    assert estimated_failures(failed) is None


@given(
    st.lists(
        st.tuples(st.just(0.0) | st.floats(1e-6, 1), st.integers(1, 9)), min_size=6, max_size=40
    ),
    st.floats(0.05, 1),
)
def test_the_interval_holds_the_mean_and_scales(pairs: list[tuple[float, int]], most: float):
    made = [(share * count * most, float(count)) for share, count in pairs]
    mean = sum(part for part, _ in made) / sum(whole for _, whole in made)
    found = mean_interval(made, most)
    assert found is not None
    low, high = found
    assert -1e-9 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= most + 1e-9
    halved = mean_interval([(part / 2, whole) for part, whole in made], most / 2)
    assert halved == pytest.approx((low / 2, high / 2), abs=1e-9)


def test_with_nothing_found_it_is_the_interval_of_a_rate():
    pairs = [(0.0, 4.0)] * 9
    plain = ratio_interval([(0, 4)] * 9)
    assert plain is not None
    assert mean_interval(pairs, 0.5) == pytest.approx([end / 2 for end in plain])
    assert mean_interval(pairs[:5], 0.5) is None
