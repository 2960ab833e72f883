"""Operators never propose what a negation, a request or a quantity forbids; examples are in
``cases.json``.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from pytest_dstfuzz.perturb.draft import NEGATED, OPEN, SHUT
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import Edit, Variant
from pytest_dstfuzz.transformations import operator

DEGREES = re.compile(r"(?:just|so|really|very|simply|truly|actually|hopefully)", re.IGNORECASE)
WANTING = re.compile(r"(?:need|want|require|good|great|nice|some)", re.IGNORECASE)


def tries(perturber: Perturber, utterance: str, count: int = 300) -> list[Variant]:
    source = perturber.prepare(utterance)
    rng = np.random.default_rng(0)
    return [
        perturber.apply(source, perturber.space.sample(rng, 1 + number % 3))
        for number in range(count)
    ]


def word_edits(perturber: Perturber, utterance: str) -> list[Edit]:
    """Return the word edits of many variants; another spelling of a word is none."""
    variants = tries(perturber, utterance)
    assert not [variant for variant in variants if variant.reason in {"negated", "request"}]
    return [
        edit
        for variant in variants
        for edit in variant.edits
        if edit.transformation.startswith("word_") and edit.operator != "misspelling"
    ]


@pytest.mark.parametrize(
    "utterance",
    [
        "I do not really need a place to sleep so I just want some help with a thing",
        "we don't need it and it is not very good so I just want to know more",
        "I really want a place without just some good food",
    ],
)
def test_a_negated_clause_keeps_its_degrees_and_its_wishes(
    utterance: str, strict: Perturber
) -> None:
    edits = word_edits(strict, utterance)
    assert {edit.operator for edit in edits} >= {"filler", "repeat"}
    for edit in edits:
        before, after = edit.before.strip(), edit.after.strip()
        assert not DEGREES.fullmatch(before), edit
        assert not DEGREES.fullmatch(after), edit
        assert not WANTING.fullmatch(before), edit


def test_degrees_come_and_go_elsewhere(strict: Perturber) -> None:
    edits = word_edits(strict, "no , I really want a nice place to sleep and some help please")
    assert any(DEGREES.fullmatch(edit.before.strip()) for edit in edits)
    assert any(DEGREES.fullmatch(edit.after.strip()) for edit in edits)
    assert any(edit.before == "want" and edit.after == "need" for edit in edits)


@pytest.mark.parametrize(
    ("utterance", "kept"),
    [
        ("maybe you know a place to sleep", "maybe"),
        ("please would you find me a place to sleep", "would"),
        ("I would like to find a place to sleep", "would"),
        ("no I need to find a place to sleep", "I"),
        ("I have a few friends with me so please help", "a"),
    ],
)
def test_a_word_that_carries_the_request_stays(
    utterance: str, kept: str, strict: Perturber
) -> None:
    dropped = [edit.before.strip() for edit in word_edits(strict, utterance) if not edit.after]
    assert dropped
    assert kept not in dropped


def test_gaps_of_a_negated_clause(strict: Perturber) -> None:
    mask = strict.prepare("No, I am hungry. It is not bad").mask
    assert mask.open == (NEGATED, SHUT, OPEN, OPEN, NEGATED, NEGATED, NEGATED, SHUT, NEGATED)


def test_words_put_in_before_do_not_open_a_negated_clause(strict: Perturber) -> None:
    perturber = strict
    for variant in tries(perturber, "it is not bad to have all that help there I think", 600):
        assert variant.status != "vetoed", variant


@operator("word_insert", "insert", name="only_degrees")
def _only_degrees() -> tuple[str, ...]:
    return ("really",)


def test_an_operator_of_degrees_alone_has_no_place_in_a_negated_clause(lexicon: Lexicon) -> None:
    perturber = Perturber(lexicon, validity="strict", edits=["word_insert/only_degrees"])
    assert not tries(perturber, "I do not think that we can go there", 20)[0].edits
    assert tries(perturber, "I think that we can go there", 20)[0].edits


@pytest.mark.parametrize("utterance", ["I need a thing", "a taxi , I think", "u r so kind I think"])
def test_a_word_of_one_letter_is_not_replaced_whole(utterance: str, lexicon: Lexicon) -> None:
    perturber = Perturber(
        lexicon, validity="strict", edits=["char_insert", "char_replace", "word_replace"]
    )
    for variant in tries(perturber, utterance):
        for edit in variant.edits:
            if len(edit.before) == 1 and edit.after:
                alone = re.fullmatch(r"\W?\w\W?", f" {variant.source} "[edit.start : edit.end + 2])
                assert not alone, variant


def test_a_mark_may_follow_a_word_of_one_letter(strict: Perturber) -> None:
    texts = {variant.text for variant in tries(strict, "so am I", 600)}
    assert any(text.endswith("I!") for text in texts)


def test_edit_rate_replaces_a_word_of_one_letter(lexicon: Lexicon) -> None:
    perturber = Perturber(lexicon, validity="edit-rate", edits=["char_replace"])
    texts = {variant.text[0] for variant in tries(perturber, "I need a thing")}
    assert len(texts) > 2
