"""The laws of a noise model: its probabilities are some, and they are those of what it draws."""

from __future__ import annotations

import bisect
import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.noise.model import (
    MOST,
    SHIPPED,
    Change,
    Changes,
    ConditionalChanges,
    NoiseModel,
    Site,
    Slip,
)
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.words import take_apart
from pytest_dstfuzz.seeding import stream

MODELS = {name: NoiseModel.load(name) for name in SHIPPED}
REQUEST = "I am going to need a cheap restaurant, and I don't want the noise at 17:15."
TOKENS = ("I", "want", "to", "the", "a", "um", "going", "don't", "12", "need.", ",", "🙂", "é")
NAMES = st.sampled_from(SHIPPED)
RATES = st.floats(0.0, 1.0)
UTTERANCES = st.one_of(
    st.sampled_from(
        [REQUEST, "ok.", "I", "a a a", "THANK YOU", "thank you", "don’t", "Book it.", "uber uber."]
    ),
    st.lists(st.sampled_from(TOKENS), max_size=8).map(" ".join),
    st.text(max_size=40),
)


def outcomes_of(site: Site, rate: float) -> dict[str, float]:
    """Return what a site can come out as, clean too, with probabilities."""
    return {text: site.chance(text, rate) for text in (site.clean, *site.texts)}


@settings(max_examples=150, deadline=None)
@given(NAMES, UTTERANCES, RATES)
def test_the_outcomes_of_a_site_are_all_there_is(name: str, utterance: str, rate: float):
    end = 0
    for site in MODELS[name].of(utterance).sites:
        outcomes = outcomes_of(site, rate)
        assert math.isclose(math.fsum(outcomes.values()), 1.0, rel_tol=1e-9)
        assert all(0.0 <= chance <= 1.0 for chance in outcomes.values())
        assert outcomes[site.clean] >= 1.0 - MOST - 1e-9
        # Each slip gives a text of its own.
        assert len(outcomes) == len(site.slips) + 1
        assert site.start == end
        end = site.end
    assert end == (len(utterance) if MODELS[name].of(utterance).sites else 0)


@settings(max_examples=100, deadline=None)
@given(NAMES, UTTERANCES)
def test_slips_are_edits_of_their_site(name: str, utterance: str):
    for site in MODELS[name].of(utterance).sites:
        for slip in site.slips:
            assert site.start <= slip.start <= slip.end <= site.end
            assert utterance[slip.start : slip.end] == slip.before
            assert slip.weight > 0.0
            assert apply_edits(utterance, [slip.edit]) != utterance


@settings(max_examples=100, deadline=None)
@given(NAMES, UTTERANCES, st.floats(0.01, 1.0), st.integers(0, 10**6))
def test_what_is_drawn_has_the_density_that_it_was_drawn_with(
    name: str, utterance: str, rate: float, seed: int
):
    model = MODELS[name]
    edits = model.draw(utterance, stream(seed, "draw"), rate)
    text = apply_edits(utterance, edits)
    places = {(edit.start, edit.end, edit.after): edit for edit in edits}
    drawn = 0.0
    for site in model.of(utterance).sites:
        slip = [s for s in site.slips if (s.start, s.end, s.after) in places and s.edit in edits]
        here = slip[0].weight * site.share(rate) if slip else 1.0 - site.probability(rate)
        drawn += math.log(here) if here else -math.inf
    found = model.log_probability(utterance, text, rate)
    # What can come about in several ways is likelier than any one of them.
    assert found >= drawn - 1e-9
    assert found <= 1e-9
    if text == utterance:
        assert found >= math.log(model.probability_clean(utterance, rate)) - 1e-9


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("utterance", ["to go", "I am.", "a a", "uh uh", "The the"])
def test_log_probability_is_the_sum_over_all_ways(name: str, utterance: str):
    model = MODELS[name]
    outcomes = [outcomes_of(site, 0.3).items() for site in model.of(utterance).sites]
    sums: dict[str, float] = {}
    for parts in itertools.product(*outcomes):
        text = "".join(part for part, _ in parts)
        sums[text] = sums.get(text, 0.0) + math.prod(chance for _, chance in parts)
    assert math.isclose(math.fsum(sums.values()), 1.0, rel_tol=1e-9)
    step = max(1, len(sums) // 500)
    for text, chance in itertools.islice(sums.items(), 0, None, step):
        found = model.log_probability(utterance, text, 0.3)
        assert math.isclose(found, math.log(chance), rel_tol=1e-9, abs_tol=1e-9)


def test_as_often_as_it_says(typing: NoiseModel):
    generator = stream(1, "often")
    drawn = [bool(typing.draw("restaurant", generator, 0.2)) for _ in range(4000)]
    expected = 1.0 - typing.probability_clean("restaurant", 0.2)
    assert abs(sum(drawn) / len(drawn) - expected) < 4 * math.sqrt(expected / len(drawn))


def test_what_it_cannot_make(model: NoiseModel):
    assert model.log_probability("a taxi", "a bus", 0.02) == -math.inf
    assert model.log_probability("a taxi", "", 0.02) == -math.inf
    assert model.log_probability("", "x", 0.02) == -math.inf
    assert model.log_probability("?!", "?!", 0.02) == 0.0
    assert model.log_probability("a taxi", "a taxi", 0.0) == 0.0
    assert model.draw("?!", stream(0), 1.0) == ()


def test_long_utterances_have_no_underflow(typing: NoiseModel):
    long = " ".join(["restaurant"] * 2000)
    found = typing.log_probability(long, long, 0.5)
    assert -1e5 < found < -1000


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_a_rate_is_a_share(model: NoiseModel, rate: float):
    with pytest.raises(UserError, match="must be from 0 to 1"):
        model.draw("a taxi", stream(0), rate)
    with pytest.raises(UserError, match="must be from 0 to 1"):
        model.log_probability("a taxi", "a taxi", rate)


@settings(deadline=None)
@given(name=NAMES, utterance=UTTERANCES, most=st.integers(1, 4))
def test_the_likely_slips_are_the_most_probable_of_their_word(
    name: str, utterance: str, most: int
) -> None:
    noisy = MODELS[name].of(utterance)
    ends = take_apart(utterance).ends
    groups: dict[tuple[str, str, int], list[tuple[float, int, int, str]]] = {}
    for slip, chance in noisy.single(0.05):
        word = min(bisect.bisect_right(ends, slip.start), len(ends) - 1)
        group = slip.transformation, slip.operator, word
        groups.setdefault(group, []).append((-chance, slip.start, slip.end, slip.after))
    expected = [(group[:2], one) for group in groups for one in sorted(groups[group])[:most]]
    found = [*noisy.likely(0.05, most, ends)]
    assert sorted(expected) == sorted(
        ((edit.transformation, edit.operator), (-chance, edit.start, edit.end, edit.after))
        for edit, chance in found
    )
    assert all(utterance[edit.start : edit.end] == edit.before for edit, _ in found)


def test_twice_the_rate_is_twice_as_likely(typing: NoiseModel):
    one = typing.log_probability("a restaurant", "a resturant", 0.01)
    two = typing.log_probability("a restaurant", "a resturant", 0.02)
    assert two - one == pytest.approx(math.log(2), abs=0.05)


def test_what_people_type_is_likelier_than_what_nobody_does(typing: NoiseModel):
    def chance(text: str) -> float:
        return typing.log_probability("a restaurant", text, 0.02)

    assert chance("a resturant") > chance("a restaurabt") > -math.inf
    assert chance("a restauraŋt") == -math.inf
    assert typing.log_probability("their", "thier", 0.02) > typing.log_probability(
        "their", "rheir", 0.02
    )


def test_two_letters_of_a_word_slip_rarely(typing: NoiseModel):
    slips = typing.slips("restaurant")[0]
    two = sum(slip.weight for slip in slips if slip.kind == "two")
    assert 0 < two < 0.1 * sum(slip.weight for slip in slips)


def test_a_word_slips_as_often_as_its_letters_say(typing: NoiseModel):
    # Frequent misspellings (`definately`) take their share of the slips, and add none.
    word = "definitely"
    without = replace(typing.file.tables, words={"misspelling": {}})
    plain = NoiseModel(replace(typing.file, tables=without))
    assert typing.of(word).sites[0].weight == pytest.approx(
        plain.of(word).sites[0].weight, rel=1e-2
    )
    assert typing.log_probability(word, "definately", 0.02) > plain.log_probability(
        word, "definately", 0.02
    )


@pytest.mark.parametrize(
    ("word", "name"),
    [("central", "sentral"), ("great", "greta"), ("china", "chika"), ("see", "soe")],
)
def test_a_name_is_no_frequent_slip(typing: NoiseModel, word: str, name: str):
    assert name not in typing.file.tables.words["misspelling"].get(word, {})
    site = typing.of(word).sites[0]
    assert site.weight_of(name) < 0.05 * site.weight


def test_edits_say_which_operator_made_them():
    operators = {
        f"{slip.transformation}/{slip.operator}"
        for model in MODELS.values()
        for slips in model.slips(REQUEST + " please")
        for slip in slips
    }
    assert operators >= {
        "char_replace/keyboard",
        "char_replace/swap",
        "char_insert/repeat",
        "char_drop/any",
        "char_drop/blank",
        "char_drop/apostrophe",
        "char_replace/case",
        "word_replace/misspelling",
        "word_replace/texting",
        "word_replace/contraction",
        "word_replace/homophone",
        "word_insert/filler",
        "word_insert/repeat",
        "word_insert/emoji",
        "word_drop/stop_word",
    }


def test_the_same_in_another_process(model: NoiseModel):
    code = (
        "from pytest_dstfuzz.noise.model import NoiseModel\n"
        "from pytest_dstfuzz.seeding import stream\n"
        f"model = NoiseModel.load({model.name!r})\n"
        f"print(model.fingerprint, model.draw({REQUEST!r}, stream(5, 'x'), 0.9))\n"
    )
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed == f"{model.fingerprint} {model.draw(REQUEST, stream(5, 'x'), 0.9)}\n"


def kept_of(allowed: Callable[[Change, int], bool], site: Site) -> list[ConditionalChanges]:
    """Return what is allowed of the parts of a site."""
    found = []
    for at, part in site.parts:
        kept = tuple(change for change in part.changes if allowed(change, at))
        lost = tuple(change.weight for change in part.changes if not allowed(change, at))
        found.append(ConditionalChanges(Changes(part.text, kept), lost))
    return found


@settings(max_examples=100, deadline=None)
@given(NAMES, UTTERANCES, st.floats(0.0, 1.0), st.integers(0, 3), st.integers(0, 10**6))
def test_given_that_no_lock_is_touched(
    name: str, utterance: str, rate: float, parity: int, seed: int
):
    def allowed(slip: Slip | Change, at: int = 0) -> bool:
        return (at + slip.start + len(slip.after)) % 4 != parity

    all_of_it = MODELS[name].of(utterance)
    rest = all_of_it.given(partial(kept_of, allowed))
    share = rest.probability_given(rate)
    assert 0.0 < share <= 1.0
    assert all_of_it.probability_given(rate) == 1.0
    for site, whole in zip(rest.sites, all_of_it.sites, strict=True):
        assert all(map(allowed, site.slips))
        assert math.isclose(math.fsum(outcomes_of(site, rate).values()), 1.0, rel_tol=1e-9)
        kept = site.probability_given(rate)
        for text in site.texts:
            assert math.isclose(site.chance(text, rate) * kept, whole.chance(text, rate))
    clean = all_of_it.probability_clean(rate)
    assert math.isclose(rest.probability_clean(rate) * share, clean, rel_tol=1e-9)
    edits = rest.draw(stream(seed, "given"), rate)
    assert rest.log_probability(apply_edits(utterance, edits), rate) > -math.inf
    # Twice is once with both conditions.
    twice = rest.given(partial(kept_of, lambda change, _: change.kind != "missing"))
    assert twice.probability_given(rate) <= share
