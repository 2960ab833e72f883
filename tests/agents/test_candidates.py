"""Candidate edits: each stands alone, and those that do not meet can be put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from utterances import SAID, VALIDITIES, Said, perturber, source_of

from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.search.candidates import (
    Candidate,
    candidates_of,
    made_of,
    together,
    touched_words,
)

LAWS = settings(max_examples=40)
LONG: Said = ("we would like to book a quiet table near the old market, please call us", (), "")


def found(source: Source, validity: str, seed: int = 0) -> tuple[Candidate, ...]:
    return candidates_of(perturber(validity), source, np.random.default_rng(seed))


def apart(candidates: list[Candidate]) -> list[Candidate]:
    """Return those of some candidates that meet none before them."""
    kept: list[Candidate] = []
    for one in candidates:
        if not any(one.meets(other) for other in kept):
            kept.append(one)
    return kept


@LAWS
@given(said=SAID, validity=st.sampled_from(VALIDITIES))
def test_every_candidate_alone_is_a_variant_or_is_refused(said: Said, validity: str) -> None:
    source = source_of(said, validity)
    candidates = found(source, validity)
    for one in candidates[:80]:
        variant = together(perturber(validity), source, [one])
        assert variant.edits == (one.edit,)
        assert variant.status in ("valid", "vetoed", "over_rate")
        # Without a noise model candidates are drawn, and only what is valid is kept.
        assert variant.valid or validity == "natural"
        assert made_of(candidates, variant) == [other is one for other in candidates]


@LAWS
@given(said=SAID, validity=st.sampled_from(VALIDITIES), data=st.data())
def test_candidates_that_do_not_meet_make_one_variant(
    said: Said, validity: str, data: st.DataObject
) -> None:
    source = source_of(said, validity)
    candidates = found(source, validity)
    some = st.lists(st.sampled_from(candidates), max_size=12) if candidates else st.just([])
    chosen = apart(data.draw(some))
    variant = together(perturber(validity), source, chosen)
    assert apply_edits(source.text, variant.edits) == variant.text
    assert made_of(candidates, variant) == [one in chosen for one in candidates]
    # Whatever order they are named in.
    assert together(perturber(validity), source, reversed(chosen)) == variant


@LAWS
@given(said=SAID, validity=st.sampled_from(VALIDITIES), seed=st.integers(0, 9))
def test_they_are_a_function_of_the_utterance_and_the_seed(
    said: Said, validity: str, seed: int
) -> None:
    source = source_of(said, validity)
    candidates = found(source, validity, seed)
    assert found(source_of(said, validity), validity, seed) == candidates
    names = [one.name for one in candidates]
    assert names == sorted(set(names))


@LAWS
@given(said=SAID, validity=st.sampled_from(VALIDITIES))
def test_words_are_those_that_the_edit_is_in(said: Said, validity: str) -> None:
    source = source_of(said, validity)
    for one in found(source, validity):
        spans = [(source.words[place].start, source.words[place].end) for place in one.words]
        assert list(one.words) == list(range(one.words[0], one.words[-1] + 1))
        if any(start < one.edit.end and one.edit.start < end for start, end in spans):
            continue
        # Between two words, or behind the last one.
        assert len(one.words) == 1
        assert one.edit.end <= spans[0][0] or one.words[0] == len(source.words) - 1


@pytest.mark.parametrize("text", ["", "?!", "🙂", "call me " * 2000])
@pytest.mark.parametrize("validity", VALIDITIES)
def test_where_there_is_no_word_or_too_much_text_there_is_none(text: str, validity: str) -> None:
    source = source_of((text, (), ""), validity)
    candidates = found(source, validity)
    if len(source.words) == 0:
        assert candidates == ()
    variant = together(perturber(validity), source, [])
    assert (variant.text, variant.status) == (text, "vacuous")
    assert made_of(candidates, variant) == [False] * len(candidates)


def test_the_most_likely_slips_of_each_operator_and_word_are_kept() -> None:
    source = source_of(LONG)
    assert source.support is not None
    groups: dict[tuple[str, str, int], list[tuple[float, tuple[int, int, str]]]] = {}
    for slip, chance in source.support.noisy.single(perturber("natural").noise.rate):
        (word, *_) = touched_words(source, slip.start, slip.end)
        group = groups.setdefault((slip.transformation, slip.operator, word), [])
        group.append((-chance, (slip.start, slip.end, slip.after)))
    kept = {(name, -chance) for group in groups.values() for chance, name in sorted(group)[:3]}
    candidates = found(source, "natural")
    assert len(kept) < sum(map(len, groups.values()))
    assert {(one.name, one.chance) for one in candidates} == kept


@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
def test_without_a_noise_model_another_seed_draws_others(validity: str) -> None:
    source = source_of(LONG, validity)
    assert found(source, validity, 0) != found(source, validity, 1)
    assert {one.chance for one in found(source, validity)} == {0.0}
