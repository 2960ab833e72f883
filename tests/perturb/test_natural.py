"""The profile ``natural``: the locks of ``strict``, and only slips that people make."""

from __future__ import annotations

import math
import os
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import DamerauLevenshtein

from pytest_dstfuzz.config import PROFILES
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.words import Edit, Variant, word_list
from pytest_dstfuzz.transformations import EXTRA

ROOT = Path(__file__).parents[2]
PIZZA = ROOT / "examples" / "pizza_bot" / "conversations.jsonl"
#: Operators that choose other words, or characters that no keyboard has.
UNTYPED = {"look_alike", "synonym", "neighbour", "mlm", "emoji", "punctuation"}
TEXT = "Hello, I am looking for a pottery class. It is for my parents, please."


@pytest.fixture(scope="module")
def natural(lexicon: Lexicon) -> Perturber:
    return Perturber(lexicon, validity="natural")


def perturber_of(data: DialogueSet, **more: object) -> Perturber:
    given = {"ontology": data.ontology, "cue_words": data.cue_words, "validity": "natural", **more}
    return Perturber(load_lexicon(), **given)


def variants_of(data: DialogueSet, count: int, **more: object) -> Iterator[tuple[Source, Variant]]:
    """Yield so many valid variants of turns of a data set, five of each."""
    perturber = perturber_of(data, **more)
    rng = np.random.default_rng(0)
    turns = [turn for dialogue in data.dialogues for turn in dialogue.turns]
    found = 0
    for place in rng.permutation(len(turns)):
        turn = turns[place]
        values = sorted((turn.state or {}).values())
        source = perturber.prepare(turn.user, values, turn.system)
        texts = set()
        for k in (1, 2, 3, 4, 6):
            variant = perturber.apply(source, perturber.space.sample(rng, k))
            if variant.valid and variant.text not in texts:
                texts.add(variant.text)
                yield source, variant
                found += 1
        if found >= count:
            return


def replaced_letters(old: str, new: str) -> list[str]:
    """Return the words of one letter for which there stands something without that letter."""
    before, after = word_list(old), word_list(new)
    lost = []
    for how, i, last, j, end in SequenceMatcher(None, before, after, False).get_opcodes():
        if how == "replace":
            there = " ".join(after[j:end])
            lost += [word for word in before[i:last] if len(word) == 1 and word not in there]
    return lost


def check(data: DialogueSet, count: int, **more: object) -> Counter[str]:
    """Assert what holds of all variants; return how often each operator worked."""
    operators: Counter[str] = Counter()
    done = 0
    for source, variant in variants_of(data, count, **more):
        keyboard = {*string.printable, *variant.source}
        assert set(variant.text) <= keyboard, (variant.text, set(variant.text) - keyboard)
        lost = replaced_letters(variant.source, variant.text)
        # An article may be missing right beside a word with a slip.
        dropped = [edit.before.strip().lower() for edit in variant.edits if not edit.after]
        assert not [word for word in lost if word not in dropped], (variant.source, variant.text)
        assert variant.log_probability is not None
        assert -math.inf < variant.log_probability <= 0.0
        operators.update(f"{edit.transformation}/{edit.operator}" for edit in variant.edits)
        assert source.support is not None
        done += 1
    assert done >= count
    assert UNTYPED.isdisjoint(name.partition("/")[2] for name in operators)
    return operators


def test_shipped_dialogues_get_what_people_type() -> None:
    operators = check(load_dialogues("sample"), 1000)
    assert {"char_drop/any", "char_replace/swap", "word_replace/misspelling"} <= set(operators)


def test_conversations_of_a_bot_get_capitals_and_short_forms_too() -> None:
    operators = check(load_dialogues(PIZZA), 90)
    assert {"char_replace/case", "word_replace/texting"} <= set(operators)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("folder", "file", "layout"),
    [("multiwoz21", None, None), ("sgd", "dev.zip", None)],
    ids=["multiwoz", "sgd"],
)
def test_development_splits_get_what_people_type(
    folder: str, file: str | None, layout: str | None
) -> None:
    default = Path(__file__).parents[3] / "shared"
    place = Path(os.environ.get("DSTFUZZ_SHARED", default)) / "data" / folder
    if not place.is_dir():
        pytest.skip(f"there is no data at {place}")
    check(load_dialogues(place / file if file else place, "val", layout=layout), 1000)


def test_a_profile_is_data() -> None:
    assert {name: (item.locks, item.noise) for name, item in PROFILES.items()} == {
        "strict": (True, False),
        "natural": (True, True),
        "edit-rate": (False, False),
    }


def touch(edits: Sequence[Edit]) -> bool:
    """Return whether a slip in a word stands right beside a word that another edit drops."""
    ranges = [(one.start, max(one.end, one.start + len(one.after)), one.after) for one in edits]
    return any(
        typed and not dropped and begin - 1 <= other_end and other <= end + 1
        for begin, end, typed in ranges
        for other, other_end, dropped in ranges
    )


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(["typing", "casual", "speech", "typing,speech"]))
def test_what_is_drawn_is_valid_and_has_a_probability(seed: int, noise: str) -> None:
    perturber = PERTURBERS[noise]
    rng = np.random.default_rng(seed)
    source = perturber.prepare(TEXT)
    variant = perturber.apply(source, perturber.space.sample(rng, int(rng.integers(1, 7))))
    assert apply_edits(TEXT, variant.edits) == variant.text
    # The check refuses a slip in a locked word if another edit changes the word beside it, because
    # that word may be needed to read the slip. Such a variant is drawn again.
    assert variant.reason in {"", "edit_w", "edit_c"} or touch(variant.edits), variant
    assert variant.edits == () or variant.log_probability is not None
    assert perturber.check(source, variant.text, variant.edits) == variant[5:7]


PERTURBERS = {
    noise: Perturber(load_lexicon(), validity="natural", noise=noise.split(","))
    for noise in ("typing", "casual", "speech", "typing,speech")
}


@pytest.mark.parametrize("noise", list(PERTURBERS))
def test_what_people_make_of_a_text_passes_the_second_check(noise: str) -> None:
    perturber = PERTURBERS[noise]
    source = perturber.prepare(TEXT)
    assert source.support is not None
    slips = [slip for site in source.support.noisy.sites for slip in site.slips]
    assert len(slips) > 10
    reasons = Counter(perturber.remake(source, [slip.edit]).reason for slip in slips)
    # Of a short utterance a slip may be too much.
    assert set(reasons) <= {"", "edit_w", "edit_c"}, reasons


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Edit("word_replace", "texting", 64, 70, "please", "pls"), ""),
        (Edit("char_replace", "look_alike", 7, 8, "I", "l"), "replacement"),
        (Edit("char_replace", "keyboard", 12, 13, "l", ";"), "unlikely"),
        (Edit("word_replace", "synonym", 12, 19, "looking", "searching"), "unlikely"),
        (Edit("word_insert", "filler", 7, 7, "", "um "), "unlikely"),
        (Edit("char_replace", "look_alike", 13, 14, "o", "ö"), "unlikely"),
        (Edit("char_replace", "case", 7, 8, "I", "i"), ""),
        (Edit("char_drop", "full_stop", 70, 71, ".", ""), ""),
        (Edit("word_replace", "contraction", 41, 46, "It is", "It's"), ""),
        (Edit("word_insert", "emoji", len(TEXT), len(TEXT), "", " 🙂"), "unlikely"),
    ],
    ids=lambda item: item.operator if isinstance(item, Edit) else item,
)
def test_the_second_check_knows_what_is_unlikely(
    natural: Perturber, edit: Edit, reason: str
) -> None:
    at = TEXT.index(edit.before, max(edit.start - 8, 0)) if edit.before else edit.start
    edit = replace(edit, start=at, end=at + len(edit.before))
    variant = natural.remake(natural.prepare(TEXT), [edit])
    assert variant.reason == reason
    assert (variant.log_probability is None) == bool(reason)


def test_an_emoji_stands_only_on_keyboards_that_have_it() -> None:
    perturber = Perturber(load_lexicon(), validity="natural", noise=["casual"])
    smiling = perturber.prepare("I need a taxi for my parents 🙂 and a bench to rest on")
    assert smiling.support is not None
    emoji = {
        s.after for site in smiling.support.noisy.sites for s in site.slips if s.kind == "emoji"
    }
    assert emoji == {" 🙂"}


def made(perturber: Perturber, text: str, count: int = 300) -> list[Variant]:
    rng = np.random.default_rng(3)
    source = perturber.prepare(text)
    found = (perturber.apply(source, perturber.space.sample(rng, 3)) for _ in range(count))
    return [variant for variant in found if variant.edits]


def test_locks_hold_and_no_negation_is_written_otherwise(natural: Perturber) -> None:
    text = "I don't want the Lucky Star in Cambridge for 3 nights, I am not sure about it."
    for variant in made(natural, text):
        for kept in ("Lucky Star", "Cambridge", "3", "not"):
            assert kept in variant.text
        distances = [DamerauLevenshtein.distance(w, "don't") for w in variant.text.split()]
        assert min(distances) <= 2  # No other word; readers recover it.


@pytest.mark.parametrize("name", EXTRA)
def test_operators_are_named_elsewhere_too(lexicon: Lexicon, name: str) -> None:
    text = "I am looking for something, because it's for my parents. Hello there."
    for validity in ("strict", "edit-rate"):
        perturber = Perturber(
            lexicon, validity=validity, edits=[name], noise=["typing", "casual", "speech"]
        )
        assert perturber.space.selection.written == (name,)
        found = made(perturber, text)
        assert all(v.log_probability is None for v in found)
        assert {f"{e.transformation}/{e.operator}" for v in found for e in v.edits} <= {name}
        assert found or name.endswith("homophone")
        assert any(v.valid for v in found) or not found


def test_no_other_profile_uses_them_unasked(strict: Perturber, edit_rate: Perturber) -> None:
    for perturber in (strict, edit_rate):
        assert not set(EXTRA) & {
            f"{item.name}/{operator}"
            for item, operators in zip(*perturber.space.selection, strict=True)
            for operator in operators
        }
        assert perturber.prepare(TEXT).support is None
    edit = Edit("char_drop", "full_stop", len(TEXT) - 1, len(TEXT), ".", "")
    assert strict.remake(strict.prepare(TEXT), [edit]).reason == "punctuation"


def test_a_shipped_agent_goes_on_with_those_that_it_knows(natural: Perturber) -> None:
    selection = natural.shipped.space.selection
    assert selection.names == tuple(item.name for item in selection.transformations)
    assert all(
        set(operators) <= set(item.operators) for item, operators in zip(*selection, strict=True)
    )
    assert made(natural.shipped, TEXT)


def test_the_slip_rate_is_what_probabilities_are_reckoned_with(lexicon: Lexicon) -> None:
    edit = Edit("char_replace", "case", 7, 8, "I", "i")
    rates = (0.01, 0.02, 0.05)
    found = []
    for rate in rates:
        perturber = Perturber(lexicon, validity="natural", slip_rate=rate)
        found.append(perturber.remake(perturber.prepare(TEXT), [edit]).log_probability)
        assert perturber.noise.rate == rate
    assert found == sorted(found)
    assert Perturber(lexicon, validity="natural").noise.rate == 0.02


@pytest.mark.parametrize("names", [["typng"], ["typing", "typing"], ["no/such/file.json"]])
def test_a_model_that_there_is_not(lexicon: Lexicon, names: list[str]) -> None:
    with pytest.raises(UserError, match="noise model"):
        Perturber(lexicon, validity="natural", noise=names)


def test_drawing_is_a_function_of_the_action(natural: Perturber, lexicon: Lexicon) -> None:
    again = Perturber(lexicon, validity="natural")
    assert made(natural, TEXT, 40) == made(again, TEXT, 40)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60), st.integers(0, 2**32), st.sampled_from(["typing,speech", "casual"]))
def test_every_text_can_be_prepared(text: str, seed: int, noise: str) -> None:
    perturber = PERTURBERS[noise]
    source = perturber.prepare(text)
    assert source.draft.text == text
    variant = perturber.apply(source, perturber.space.sample(np.random.default_rng(seed), 6))
    assert apply_edits(text, variant.edits) == variant.text
    assert variant.reason != "edits"


@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
def test_no_other_profile_is_changed_by_the_noise(lexicon: Lexicon, validity: str) -> None:
    usual = Perturber(lexicon, validity=validity)
    other = Perturber(lexicon, validity=validity, noise=["speech"], slip_rate=0.5)
    assert made(usual, TEXT, 60) == made(other, TEXT, 60)
