"""The search ``noise``: what it draws, and what each draw stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.search.protocol import Feedback, SearchTask
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.search.searches import NoiseSearch, Outcomes, RandomSearch, inclusion

PERTURBER = Perturber(load_lexicon(), validity="natural")
TEXT = "I want a restaurant in the centre, and it's for us two."
RATE = 0.05


def noisy(text: str):
    support = PERTURBER.prepare(text).support
    assert support is not None
    return support.noisy


def task(text: str, variants: int) -> SearchTask:
    dialogue = Dialogue("d", (Turn(0, "", text, None),))
    return SearchTask(dialogue, 0, None, PERTURBER, PERTURBER.prepare(text), variants)


@given(
    st.lists(st.just(0.0) | st.floats(1e-9, 1), min_size=1, max_size=30),
    st.integers(1, 40),
)
def test_inclusion_is_in_proportion_and_never_above_one(chances: list[float], size: int):
    found = inclusion(np.array(chances), size)
    possible = sum(chance > 0 for chance in chances[:-1])
    assert (found[:-1] <= 1 + 1e-12).all()
    assert all(
        (chance > 0) == (share > 0) for chance, share in zip(chances, found, strict=True)
    ) or (possible >= size)
    if chances[-1] > 0 or possible >= size:
        assert found.sum() == pytest.approx(size)
    order = np.argsort(chances[:-1], kind="stable")
    assert (np.diff(found[:-1][order]) >= -1e-12).all()


@given(st.sampled_from([TEXT, "yes", "no thanks, that is it", "?!", "a b c d"]), st.floats(0, 1))
def test_what_can_happen_adds_up_to_one(text: str, rate: float):
    model = NoiseModel.load("typing").of(text)
    once = math.fsum(chance for _, chance in model.single(rate))
    whole = model.probability_clean(rate) + once + model.probability_several(rate)
    assert whole == pytest.approx(1.0)


@given(st.sampled_from([TEXT, "yes", "ok taxi", "?!"]), st.floats(0, 1))
def test_outcomes_with_one_slip_have_numbers(text: str, rate: float):
    model = NoiseModel.load("typing").of(text)
    numbered = [(model.one(at), chance) for at, chance in enumerate(model.chances_of_one(rate))]
    assert numbered == [*model.single(rate)]
    with pytest.raises(IndexError):
        model.one(len(numbered))


def test_turns_that_are_seldom_distorted_get_fewer():
    sizes = [Outcomes(noisy(text), 0.02).size(8) for text in ("taxi", "a taxi to town", TEXT)]
    assert 1 <= sizes[0] <= sizes[1] < sizes[2] <= 8
    assert Outcomes(noisy(TEXT), 0.0).size(8) == 1


@given(st.integers(0, 10_000))
def test_who_slips_several_times_slips_twice_or_more(seed: int):
    utterance = noisy(TEXT)
    edits = utterance.draw_several(np.random.default_rng(seed), 0.02)
    assert len(edits) >= 2
    assert utterance.log_probability(apply_edits(TEXT, edits), 0.02) > -math.inf


def test_several_slips_are_as_likely_as_among_plain_draws():
    utterance, rng = noisy(TEXT), np.random.default_rng(0)
    plain = [edits for _ in range(20_000) if len(edits := utterance.draw(rng, 0.1)) > 1]
    drawn = [utterance.draw_several(rng, 0.1) for _ in range(len(plain))]
    places = range(len(TEXT))
    for where in ([*places][: len(TEXT) // 2], [*places][len(TEXT) // 2 :]):
        shares = [
            sum(edit.start in where for edits in some for edit in edits) / len(plain)
            for some in (plain, drawn)
        ]
        assert shares[0] == pytest.approx(shares[1], abs=0.04)
    lengths = [sum(map(len, some)) / len(plain) for some in (plain, drawn)]
    assert lengths[0] == pytest.approx(lengths[1], abs=0.03)


def test_one_word_cannot_slip_twice():
    with pytest.raises(ValueError, match="cannot have two slips"):
        noisy("taxi").draw_several(np.random.default_rng(0), 0.02)


@pytest.mark.parametrize("size", [1, 3, 8, 400])
def test_weights_estimate_what_they_stand_for(size: int):
    outcomes = Outcomes(noisy(TEXT), RATE)
    exact = {
        (slip.edit,): chance
        for slip, chance in noisy(TEXT).single(RATE)
        if slip.operator in ("any", "keyboard")
    }
    rng = np.random.default_rng(1)
    found = []
    for _ in range(4_000 if size < 400 else 40):
        sample = outcomes.draw(size, rng)
        assert len(sample) <= size
        found.append(math.fsum(drawn.weight for drawn in sample if drawn.edits in exact))
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(math.fsum(exact.values()), abs=4 * error + 1e-12)


def test_all_that_can_happen_once_is_tried_where_there_is_room():
    outcomes = Outcomes(noisy("ok taxi"), RATE)
    sample = outcomes.draw(500, np.random.default_rng(0))
    single = {(slip.edit,): chance for slip, chance in noisy("ok taxi").single(RATE)}
    alone = {drawn.edits: drawn.weight for drawn in sample if len(drawn.edits) == 1}
    assert alone == pytest.approx(single)
    assert math.fsum(drawn.weight for drawn in sample) == pytest.approx(outcomes.chances.sum())


def test_a_turn_proposes_its_sample_and_then_nothing():
    turn = NoiseSearch(3, 1).turn(task("taxis!", 400))
    proposals = [turn.propose(number, 0, ()) for number in range(400)]
    ran = [proposal for proposal in proposals if proposal.weight is not None]
    assert 0 < len(ran) < 400
    assert all(proposal.variant.status == "vacuous" for proposal in proposals[len(ran) :])
    texts = [proposal.variant.text for proposal in ran]
    assert len(set(texts)) == len(texts)
    # Whatever was asked before, and however often.
    assert turn.propose(1, 4, ()) == NoiseSearch(3, 1).turn(task("taxis!", 400)).propose(1, 0, ())


@pytest.mark.parametrize("text", ["taxis!", TEXT, "?!"])
@pytest.mark.parametrize("variants", [1, 2, 5, 12])
def test_slots_without_a_draw_go_to_the_search(text: str, variants: int):
    both = search_by_name("noise+random", seed=3, k=2).turn(task(text, variants))
    made = [both.propose(number, 0, [None] * number) for number in range(variants)]
    sample = NoiseSearch(3, 2).turn(task(text, (variants + 1) // 2))
    alone = RandomSearch(3, 2).turn(task(text, variants))
    drawn = [one.variant for one in made if one.weight is not None]
    found = [one.variant for one in made if one.weight is None]
    # The sample is that of the noise model alone, so the estimate stays unbiased.
    wanted = [sample.propose(number, 0, ()).variant for number in range(len(sample.sample))]
    assert drawn == wanted
    assert found == [alone.propose(number, 0, ()).variant for number in range(len(found))]


def test_a_search_in_free_slots_sees_its_own_attempts_in_one_context():
    text = "a taxi to town"
    both = search_by_name("noise+greedy", seed=0, k=1).turn(task(text, 6))
    alone = search_by_name("greedy", seed=0, k=1).turn(task(text, 6))
    seen: list[Feedback] = []
    for number in range(6):
        proposal = both.propose(number, 0, seen)
        seen.append(Feedback(proposal, answered=True, impurity=number / 10))
    own = [one for one in seen if one.proposal.weight is None]
    assert len(own) > 3
    # All attempts are steps of one climb, so they are compared in the context of the first.
    assert {one.proposal.context for one in own} == {1}
    for number, one in enumerate(own):
        assert one.proposal.variant == alone.propose(number, 0, own[:number]).variant


def test_only_what_is_made_counts_as_a_variant():
    talks = [Dialogue("d", (Turn(0, "", "taxis!", None), Turn(1, "", TEXT, None)))]
    options = Settings.of(validity="natural", variants=8, shrink=False)
    for search in ("noise", "noise+random"):
        results = tuple(Campaign(lambda _: {}, talks, options.replace_options(search=search)))
        first, second = ([one.outcome for one in turn.variants] for turn in results)
        assert not {"vacuous"} & {*first, *second}
        assert 0 < len(first) <= len(second) <= 8
        assert search == "noise" or (len(first), len(second)) == (8, 8)
        assert len(first) < 8 or search != "noise"


def test_what_is_too_long_to_be_edited_gets_no_variant():
    turn = NoiseSearch(0, 1).turn(task("taxi " * 5_000, 3))
    assert turn.propose(0, 0, ()).variant.status == "vacuous"


@settings(max_examples=25)
@given(st.integers(0, 2**63 - 1), st.integers(1, 20))
def test_each_draw_is_one_that_people_make(seed: int, size: int):
    turn = NoiseSearch(seed, 1).turn(task(TEXT, size))
    proposals = [turn.propose(number, 0, ()) for number in range(size)]
    drawn = [proposal for proposal in proposals if proposal.weight is not None]
    assert drawn
    for weight, variant in [(proposal.weight, proposal.variant) for proposal in drawn]:
        assert weight is not None
        assert weight > 0
        assert variant.log_probability is not None
        assert variant.reason in ("", "edit_w", "edit_c", "replacement", "too-many-words")


@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
def test_it_needs_a_noise_model(validity: str):
    with pytest.raises(UserError, match=r"needs the profile natural \(--dst-validity=natural\)"):
        Campaign(lambda _: {}, "sample", Settings.of(search="noise", validity=validity))
