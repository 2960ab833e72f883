"""Fitting: slips are found in texts, and a model comes back from what it wrote."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noisy_logs import clean_turns, noisy_turns

from pytest_dstfuzz.noise.casual import count_habits, list_doubled_values, values_of
from pytest_dstfuzz.noise.evidence import (
    Evidence,
    SlipEvidence,
    Text,
    TextCounts,
    find,
    part_of,
    propose,
    propose_two,
)
from pytest_dstfuzz.noise.fit import Log, fit_factors, fit_log, fit_typing, model_file
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import plain
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import one_letter_away
from pytest_dstfuzz.seeding import stream
from tools.noise.likelihood import HAPPENED, happened, mean, scores

WORDS = (
    "restaurant",
    "tomorrow",
    "different",
    "please",
    "swimming",
    "beautiful",
    "because",
    "book",
)


def makes_word(text: str) -> bool:
    """Return false for every text, as if no slip made another word."""
    del text
    return False


def drawn_slips(model: NoiseModel, count: int, name: str) -> list[SlipEvidence]:
    """Return slips of letters that a model drew, of words that are equally frequent."""
    chance = stream(11, name)
    found = []
    for number in range(count):
        word = WORDS[number % len(WORDS)]
        (site,) = model.of(word).sites
        slip = site.pick(float(chance.random()) * site.probability(1.0), 1.0)
        assert slip is not None
        typed = word[: slip.start] + slip.after + word[slip.end :]
        found.append(SlipEvidence(word, typed, f"d{number}"))
    return found


def without_forms(model: NoiseModel) -> NoiseModel:
    """Return a model without known misspellings: only letters decide."""
    tables = replace(model.file.tables, words={})
    return NoiseModel(replace(model.file, tables=tables))


def test_a_model_comes_back_from_what_it_wrote(typing: NoiseModel):
    typing = without_forms(typing)
    counts = TextCounts(Counter(dict.fromkeys(WORDS, 1000)))
    keyboard = typing.file.tables.keyboard
    slips = drawn_slips(typing, 4000, "fit")
    evidence = Evidence(counts, slips, load_lexicon().misspellings, keyboard, makes_word)
    again = NoiseModel(model_file("again", 0.02, (), *fit_typing(evidence)))
    again = without_forms(again)
    new = drawn_slips(typing, 1000, "new")
    # Of slips of two letters, a model only makes the likely ones.
    new = [slip for slip in new if happened(slip.word, slip.typed, keyboard) != "two"]
    true = mean(score.model for score in scores(typing, new))
    found = mean(score.model for score in scores(again, new))
    uniform = mean(score.uniform for score in scores(typing, new))
    assert true - 0.15 < found < true + 0.15
    assert true + 3 < uniform
    # And how often each word slips.
    for word in WORDS:
        weight = again.of(word).sites[0].weight / math.fsum(
            again.of(w).sites[0].weight for w in WORDS
        )
        assert weight == pytest.approx(1 / len(WORDS), rel=0.35)


def test_the_same_slips_give_the_same_model_in_any_order(typing: NoiseModel):
    counts = TextCounts.of(clean_turns(50))
    slips = drawn_slips(typing, 100, "order")
    keyboard = typing.file.tables.keyboard
    one, other = (
        plain(
            model_file("m", 0.1, (), *fit_typing(Evidence(counts, found, {}, keyboard, makes_word)))
        )
        for found in (slips, slips[::-1])
    )
    assert one == other


def test_without_slips_the_model_to_start_from_is_left(typing: NoiseModel):
    counts = TextCounts.of(clean_turns(300))
    evidence = Evidence(counts, [], {}, typing.file.tables.keyboard, makes_word)
    kinds, tables = fit_typing(evidence, prior=typing.file)
    again = NoiseModel(model_file("again", 0.02, (), kinds, tables))
    before = {kind.name: kind.share for kind in typing.file.kinds}
    assert {k.name: k.share for k in kinds} == pytest.approx(before, abs=0.02)
    (one,), (other,) = typing.slips("restaurant"), again.slips("restaurant")
    likely = [max(slips, key=lambda slip: slip.weight).edit for slips in (one, other)]
    assert likely[0] == likely[1]


def test_logs_tell_how_often_and_what(typing: NoiseModel, casual: NoiseModel):
    lexicon = load_lexicon()
    found = []
    for rate in (0.02, 0.1):
        turns = tuple(noisy_turns(typing, 1500, rate))
        found.append(fit_log(Log(turns, frozenset()), "own", lexicon, typing.file, casual.file))
    few, many = (len(model.slips) for model in found)
    # Slips of short words, and those that make another word, are not found.
    assert 0.5 * 0.1 < many / found[1].words < 0.1
    assert many == pytest.approx(5 * few, rel=0.3)
    assert found[0].file.slip_rate < found[1].file.slip_rate
    typed = {slip.typed for slip in found[1].slips}
    assert not {word for word in typed if lexicon.is_word(word)}


@pytest.mark.parametrize("count", [1, 30])
def test_a_few_faultless_turns_leave_the_slip_rate_as_it_was(
    typing: NoiseModel, casual: NoiseModel, count: int
):
    turn = "I am looking for a cheap restaurant, and I don't want to book it."
    turns = tuple(Text(f"t{number}", turn) for number in range(count))
    found = fit_log(Log(turns, frozenset()), "own", load_lexicon(), typing.file, casual.file)
    assert 0.005 < found.file.slip_rate < 0.025
    assert any("few words" in note for note in found.notes)


def test_habits_come_back_from_what_a_model_wrote(casual: NoiseModel):
    turns = noisy_turns(casual, 2000, 0.05)
    habits = count_habits([turn.text for turn in turns])
    for kind in ("full_stop", "lower_first"):
        weights = [
            (slip.weight, text)
            for text in clean_turns(40)
            for slips in casual.slips(text)
            for slip in slips
            if slip.kind == kind
        ]
        expected = 0.05 * math.fsum(weight for weight, _ in weights) / len(weights)
        share = habits[kind].slipped / habits[kind].occasions
        assert share == pytest.approx(expected, rel=0.25), kind


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("ab"), st.sampled_from("cde")), st.integers(1, 50), min_size=1
    ),
    st.floats(0.5, 50.0),
)
def test_factors_keep_the_number_of_slips(exposure: dict[tuple[str, str], int], kappa: float):
    seen = {cell: count // 7 for cell, count in exposure.items()}
    fitted = fit_factors(exposure, seen, kappa, 100.0)
    assert all(factor > 0.0 for factor in fitted.factors.values())
    total = math.fsum(
        count * math.prod(fitted.factors.get(feature, 1.0) for feature in cell)
        for cell, count in exposure.items()
    )
    assert fitted.per_word == pytest.approx(total / 100.0)


def test_a_factor_goes_back_to_one_where_little_is_seen():
    exposure = {("x", letter): 100.0 for letter in "abcd"}
    fitted = fit_factors(exposure, {("x", "a"): 30, ("x", "b"): 10}, 5.0, 400.0)
    assert fitted.factors == pytest.approx({"a": 35 / 15, "c": 5 / 15, "d": 5 / 15})


def test_slips_are_found_where_they_stand():
    texts = [f"i need a taxi to the station number {n}" for n in "abcdefgh" * 5]
    texts += ["please book my taxi", "i need a taxi for the hotel"] * 20
    texts += ["i need a taxii to the staton", "ineed a taxi", "talk to ursula in the statoin"]
    counts = TextCounts.of(texts)
    known = {word for text in texts[:80] for word in text.split()} | {"talk", "ursula", "in"}
    candidates = propose(counts, known.__contains__)
    found = find([Text(f"t{n}", text) for n, text in enumerate(texts)], candidates, counts)
    assert [tuple(slip) for slip in found] == [
        ("taxi", "taxii", "t80"),
        ("station", "staton", "t80"),
        ("i need", "ineed", "t81"),
        ("station", "statoin", "t82"),
    ]
    assert propose(counts, known.__contains__, names=["taxii", "staton", "ineed", "statoin"]) == {}


def test_the_words_beside_tell_which_word_is_meant():
    counts = TextCounts.of(["a red car"] * 30 + ["we are here"] * 30)
    texts = [Text("1", "a red cer"), Text("2", "we aee here")]
    found = find(texts, {"cer": ("her", "car"), "aee": ("see", "are")}, counts)
    assert [slip.word for slip in found] == ["car", "are"]


def test_a_dialogue_is_in_one_part():
    slips = [SlipEvidence("taxi", "txi", f"d{number}") for number in range(200)]
    evidence = Evidence(TextCounts(), slips, {}, {}, makes_word)
    parts = [evidence.part(number, 5) for number in range(5)]
    assert sorted(slip for _, held in parts for slip in held) == sorted(slips)
    assert all(set(kept).isdisjoint(held) and len(held) > 20 for kept, held in parts)
    assert {part_of("d1", 5) for _ in range(3)} == {part_of("d1", 5)}


@pytest.mark.parametrize(
    ("word", "typed", "what"),
    [
        ("taxi", "txi", "missing"),
        ("taxi", "taxii", "repeat"),
        ("taxi", "taxio", "keyboard_insert"),
        ("taxi", "taxmi", "inserted"),
        ("taxi", "taxo", "keyboard"),
        ("taxi", "tamo", "two"),
        ("taxi", "mtxi", "two"),
        ("taxi", "taix", "swap"),
        ("a lot", "alot", "blank"),
    ],
)
def test_what_happened(typing: NoiseModel, word: str, typed: str, what: str):
    assert happened(word, typed, typing.file.tables.keyboard) == what
    (score,) = scores(typing, [SlipEvidence(word, typed, "d")])
    assert score.what == what
    if what != "two":  # Only the likely pairs have a probability.
        assert score.model < math.inf
        assert score.uniform > 5
    assert what in HAPPENED


def test_values_of_words():
    counts = Counter({"don't": 90, "dont": 10, "it's": 100, "its": 400, "i am": 50, "i'm": 50})
    tables = {"don't": {"dont": 0.5}, "it's": {"its": 0.5}, "i am": {"i'm": 0.5}}
    found, total = values_of(tables, counts, known=False)
    mean_value = 10.5 / 200
    assert found["don't"]["dont"] == pytest.approx((10 + 100 * mean_value) / 200)
    # `its` is a word, `i'm` no slip: they get the mean.
    assert found["it's"]["its"] == pytest.approx(mean_value)
    assert found["i am"]["i'm"] == pytest.approx(mean_value)
    assert total > 10
    kept, _ = values_of(tables, Counter(), known=True)
    assert kept["don't"]["dont"] == 0.5


def test_words_that_are_written_twice():
    tables = {"the": {"": 0.1}, "a": {"": 0.1}}
    texts = ["the the man", "The the a", "the, the", "a man"]
    found, total = list_doubled_values(tables, texts, known=True)
    assert total == 2
    assert found["the"][""] > found["a"][""]


def test_neighbours_are_one_letter_away():
    assert {"b", "ba", "aab", "a", "abz", "zb"} <= one_letter_away("ab")
    assert len(one_letter_away("ab")) == 2 + 1 + 2 * 25 + 3 * 26 - 2
    assert "ab" not in one_letter_away("ab")


def test_a_pasted_key_takes_little_memory() -> None:
    key = "".join(chr(ord("a") + place**3 % 23) for place in range(500))
    counts = TextCounts.of([key])
    tracemalloc.start()
    try:
        assert propose_two(counts, lambda _: False) == propose(counts, lambda _: False) == {}
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
