"""Laws of perturbation: bounds, determinism, edits that apply, odd input."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.perturb.draft import LOCKED
from pytest_dstfuzz.perturb.edits import apply_edits, source_spans, without
from pytest_dstfuzz.perturb.engine import ActionSpace, Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.operators import transform
from pytest_dstfuzz.perturb.validity import LONGEST_EDITED
from pytest_dstfuzz.perturb.words import Action, Edit, Variant
from pytest_dstfuzz.transformations import TRANSFORMATIONS, find_transformation

SPACE = ActionSpace()
ACTIONS = st.builds(
    lambda seed, k: SPACE.sample(np.random.default_rng(seed), k),
    st.integers(0, 100_000),
    st.integers(1, 6),
)
TURNS = [
    "I 'm looking for a cheap restaurant in the centre , please .",
    "Can you tell me the phone number of frankie and bennys? I need a table for 4 people.",
    "i would like to leave ely after 17:15 and arrive in New York by tuesday",
    "No , thank you kindly . That 's plenty for one evening .",
    "Actually I really don't care about the price, but wifi would be great!!",
    "could you help me find information about trains",
    "help",
]
ODD = [
    "",
    " ",
    "?!",
    "a",
    "ok",
    "😀",
    "😀 😀 🎉",
    "שלום עולם",
    "مرحبا ، أريد مطعما",
    "cafe\u0301 re\u0301sume\u0301",
    "zero\u200bwidth jo\u200diner \ufeff",
    "x\ny\tz\r\n",
    "don't can't won't I'll",
    "'''' \"\" ``",
    "ﬃ ß İ ǅ",
    "\ud83d broken",
    "HELP ME FIND INFORMATION PLEASE",
]
UTTERANCES = st.one_of(
    st.sampled_from(TURNS + ODD),
    st.text(max_size=60),
    st.lists(st.sampled_from(" ".join(TURNS).split()), min_size=1, max_size=14).map(" ".join),
)
LAWS = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check_laws(perturber: Perturber, utterance: str, variant: Variant) -> None:
    assert variant.source == utterance
    assert apply_edits(utterance, variant.edits) == variant.text
    assert 0 <= variant.edit_w <= 1
    assert 0 <= variant.edit_c <= 1
    assert (variant.status == "vacuous") == (variant.text == utterance)
    assert bool(variant.reason) == (variant.status in {"vetoed", "over_rate"})
    if variant.valid:
        assert variant.edit_c <= perturber.max_edit_rate
    for edit in variant.edits:
        assert edit.operator in find_transformation(edit.transformation).operators
    for dropped in range(len(variant.edits)):
        apply_edits(utterance, without(variant.edits, [dropped]))
    assert without(variant.edits, range(len(variant.edits))) == ()


@LAWS
@given(UTTERANCES, ACTIONS)
def test_laws_hold_in_strict(strict: Perturber, utterance: str, action: Action) -> None:
    source = strict.prepare(utterance, ["new york"], "Would The Missing Sock suit you both ?")
    variant = strict.apply(source, action)
    check_laws(strict, utterance, variant)
    assert variant == strict.apply(strict.prepare(utterance, ["new york"], source_system()), action)
    locked = [w for w, role in zip(source.words, source.mask.roles, strict=True) if role == LOCKED]
    for edit, (start, end) in zip(variant.edits, source_spans(variant.edits), strict=True):
        for word in locked:
            assert end <= word.start or word.end <= start, (edit, word)
    if variant.valid:
        touched = {
            word.start
            for word in source.words
            for start, end in source_spans(variant.edits)
            if word.start < end and start < word.end
        }
        assert len(touched) <= max(1, len(source.words) // 4)


def source_system() -> str:
    return "Would The Missing Sock suit you both ?"


@LAWS
@given(UTTERANCES, ACTIONS)
def test_laws_hold_in_edit_rate(edit_rate: Perturber, utterance: str, action: Action) -> None:
    variant = edit_rate.apply(edit_rate.prepare(utterance), action)
    check_laws(edit_rate, utterance, variant)
    assert variant == edit_rate.apply(edit_rate.prepare(utterance), action)
    assert variant.status != "vetoed"


@pytest.mark.nightly
@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
@pytest.mark.parametrize(
    "text", ["x" * 10_000, "please help me now " * 526, "é " * 5000, "😀" * 9999]
)
def test_ten_thousand_characters(text: str, validity: str, lexicon: Lexicon) -> None:
    perturber = Perturber(lexicon, validity=validity)
    action = SPACE.sample(np.random.default_rng(0), 6)
    start = time.process_time()
    variant = perturber.apply(perturber.prepare(text), action)
    assert time.process_time() - start < 10  # far above what it takes, far below hanging
    check_laws(perturber, text, variant)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_every_operator_of_a_transformation_occurs(name: str, lexicon: Lexicon) -> None:
    perturber = Perturber(lexicon, validity="edit-rate", edits=[name], max_edit_rate=1)
    source = perturber.prepare("I need some information about a restaurant")
    rng = np.random.default_rng(0)
    variants = [perturber.apply(source, SPACE.sample(rng, 3)) for _ in range(300)]
    seen = {(edit.transformation, edit.operator) for v in variants for edit in v.edits}
    assert seen == {(name, operator) for operator in find_transformation(name).operators}


@LAWS
@given(UTTERANCES, ACTIONS, st.sampled_from(["strict", "edit-rate"]))
def test_a_draft_has_the_text_of_its_words(
    strict: Perturber, edit_rate: Perturber, utterance: str, action: Action, validity: str
) -> None:
    perturber = strict if validity == "strict" else edit_rate
    draft = perturber.prepare(utterance).draft
    for step in SPACE.decode(action):
        for parameters in step.repetitions:
            made = transform(draft, perturber._edit_policy, step.transformation, parameters)
            draft = draft if made is None else made.draft
            words = [part for token in draft.tokens for part in (token.gap, token.text)]
            assert draft.text == "".join(words) + draft.tail


def test_a_flat_rate_allows_short_utterances_no_substitution(lexicon: Lexicon) -> None:
    only = ["word_replace"]
    flat = Perturber(lexicon, validity="edit-rate", edits=only, flat_rate=True)
    lenient = Perturber(lexicon, validity="edit-rate", edits=only)
    action = SPACE.sample(np.random.default_rng(0), 1)
    assert flat.apply(flat.prepare("please help"), action).reason == "edit_w"
    assert lenient.apply(lenient.prepare("please help"), action).valid


def test_character_edits_over_the_rate_are_reported(lexicon: Lexicon) -> None:
    perturber = Perturber(lexicon, validity="strict", max_edit_rate=0.0)
    action = SPACE.sample(np.random.default_rng(0), 6)
    variant = perturber.apply(perturber.prepare("could you help me find information"), action)
    assert (variant.status, variant.reason) == ("over_rate", "edit_c")
    assert variant.edit_w == 0


def test_the_same_in_every_process(strict: Perturber) -> None:
    code = (
        "import numpy, conftest\n"
        "from pytest_dstfuzz.perturb.engine import Perturber\n"
        "from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon\n"
        "from test_engine import TURNS, texts\n"
        "o, c = conftest.ONTOLOGY, conftest.CUES\n"
        "p = Perturber(load_lexicon(), validity='strict', ontology=o, cue_words=c)\n"
        "print(texts(p))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=__file__.rpartition("/")[0],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert outputs == {str(texts(strict))}


def texts(perturber: Perturber) -> list[str]:
    rng = np.random.default_rng(5)
    return [
        ascii(perturber.apply(perturber.prepare(turn), SPACE.sample(rng, 4)).text)
        for turn in TURNS
        for _ in range(5)
    ]


@pytest.mark.shared_data
def test_nearly_all_strict_variants_of_real_turns_are_valid(
    real_turns: DialogueSet, lexicon: Lexicon
) -> None:
    perturber = Perturber(
        lexicon, validity="strict", ontology=real_turns.ontology, cue_words=real_turns.cue_words
    )
    rng = np.random.default_rng(0)
    count = valid = vetoed = 0
    for dialogue in real_turns.dialogues[:200]:
        for turn in dialogue.turns:
            if len(turn.user.split()) < 5:
                continue
            source = perturber.prepare(turn.user, (turn.state or {}).values(), turn.system)
            variant = perturber.apply(source, SPACE.sample(rng, 3))
            check_laws(perturber, turn.user, variant)
            count += 1
            valid += variant.valid
            vetoed += variant.status == "vetoed"
    assert valid / count > 0.95
    assert vetoed / count < 0.005


@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
@pytest.mark.parametrize("lock", ["/.+/", "/[a-z]+/", "/ /"])
def test_locks_on_everything_leave_no_variant_and_no_error(
    validity: str, lock: str, lexicon: Lexicon
) -> None:
    perturber = Perturber(lexicon, validity=validity, locks=[lock])
    source = perturber.prepare("could we have a table for three at noon tomorrow?")
    rng = np.random.default_rng(0)
    for k in range(1, 7):
        for _ in range(20):
            variant = perturber.apply(source, perturber.space.sample(rng, k))
            assert variant.status in {"valid", "vacuous", "vetoed", "over_rate"}
            if lock == "/.+/" and validity == "strict":
                assert not variant.valid


@pytest.mark.parametrize("kind", ["a large hotel in the north please ", "hotel", "? "])
def test_an_utterance_of_more_than_so_many_characters_is_not_edited(
    strict: Perturber, edit_rate: Perturber, kind: str
) -> None:
    text = (kind * (LONGEST_EDITED // len(kind) + 1))[: LONGEST_EDITED + 1]
    edit = Edit("word_insert", "filler", 0, 0, "", "well ")
    for perturber in (strict, edit_rate):
        source = perturber.prepare(text, ["north"])
        for seed in range(5):
            variant = perturber.apply(source, SPACE.sample(np.random.default_rng(seed), 6))
            assert (variant.status, variant.text, variant.edits) == ("vacuous", text, ())
        assert perturber.check(source, f"well {text}", [edit]) == ("vetoed", "length")
        assert set(perturber.menus(source)) == set(TRANSFORMATIONS)
        shorter = perturber.prepare(text[1:], ["north"])
        assert perturber.check(shorter, f"well {text[1:]}", [edit])[1] != "length"
        # Edits from elsewhere do not make it long either.
        huge = replace(edit, after=text * 2)
        assert perturber.check(shorter, huge.after + text[1:], [huge]) == ("vetoed", "length")
