"""What each kind of slip does to words."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.noise.casual import places, word_slips
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.tables import Tables, letter_slips, slip_between
from pytest_dstfuzz.perturb.words import one_letter_away

KEYS = {"a": "qs", "t": "ry", "e": "wr", "h": "gj"}
WORDS = Tables(
    words={
        "apostrophe": {"don't": {"dont": 1.0}, "i'm": {"im": 1.0}},
        "texting": {"you": {"u": 1.0}, "please": {"pls": 1.0, "plz": 0.5}},
        "contraction": {"i am": {"i'm": 1.0}, "going to": {"gonna": 1.0}},
        "doubled": {"the": {"": 1.0}, "i": {"": 1.0}},
        "dropped": {"the": {"": 1.0}},
        "emoji": {"": {"🙂": 1.0}},
        "filler": {"": {"um": 1.0}},
        "restart": {"": {"1": 0.5, "2": 0.5}},
        "homophone": {"there": {"their": 1.0}},
    },
    factors={"blank": {"pair a lot": 9.0}},
)


def made(kind: str, utterance: str) -> list[str]:
    found = [slip for place in places(utterance, WORDS) for slip in word_slips(kind, place, WORDS)]
    return [utterance[: s.start] + s.after + utterance[s.end :] for s in found]


@pytest.mark.parametrize(
    ("kind", "utterance", "texts"),
    [
        ("apostrophe", "I'm sure you don’t.", ["Im sure you don’t.", "I'm sure you dont."]),
        ("texting", "Please, you", ["Pls, you", "Plz, you", "Please, u"]),
        ("contraction", "I am going to eat", ["I'm going to eat", "I am gonna eat"]),
        ("contraction", "I  am here", []),
        ("doubled", "I see the sea", ["I I see the sea", "I see the the sea"]),
        ("dropped", "The man, the sea", ["The man, sea"]),
        ("dropped", "Not-the one", []),
        ("emoji", "Thanks. ", ["Thanks. 🙂 "]),
        ("filler", "Hello you", ["Um Hello you", "Hello um you"]),
        ("restart", "I need it", ["I I need it", "I need I need it"]),
        ("restart", "Yes, you", []),
        ("homophone", "There!", ["Their!"]),
        ("lower_i", "I think I'd go", ["i think I'd go", "I think i'd go"]),
        ("lower_first", "Book it", ["book it"]),
        ("lower_first", "I see", []),
        ("lower_first", "UK is it", []),
        ("lower_first", "book it", []),
        ("full_stop", "Book it. ", ["Book it "]),
        ("full_stop", "book it .", ["book it"]),
        ("full_stop", "Book it?", []),
        ("full_stop", "Book it...", []),
        ("full_stop", "See. Book it", []),
        ("blank", "a lot, a 5 pm", ["alot, a 5 pm"]),
        ("blank", "a  lot", []),
    ],
)
def test_kinds_of_words(kind: str, utterance: str, texts: list[str]):
    assert made(kind, utterance) == texts


def test_a_blank_is_left_out_where_it_is_often():
    values = [s.value for p in places("a lot of", WORDS) for s in word_slips("blank", p, WORDS)]
    assert values == [9.0, 1.0]


def slips(word: str, kind: str) -> list[str]:
    return [slip.put_into(word) for slip in letter_slips(word, KEYS) if slip.kind == kind]


@pytest.mark.parametrize(
    ("kind", "word", "texts"),
    [
        ("missing", "hat", ["at", "ht", "ha"]),
        ("missing", "teeth", ["eeth", "teth", "teeh", "teet"]),
        ("missing", "a", []),
        ("swap", "that", ["htat", "taht", "thta"]),
        ("swap", "The", ["Hte", "Teh"]),
        ("swap", "THE", ["HTE", "TEH"]),
        ("swap", "t'h", []),
        ("repeat", "tea", ["ttea", "teea", "teaa"]),
        ("repeat", "tee", ["ttee", "teee"]),
        ("repeat", "a", ["aa"]),
        ("keyboard", "At", ["Qt", "St", "Ar", "Ay"]),
        ("keyboard", "a", []),
        ("keyboard_insert", "a", ["qa", "sa", "aq", "as"]),
        ("keyboard_insert", "AT", ["QAT", "SAT", "AQT", "AST", "ART", "AYT", "ATR", "ATY"]),
    ],
)
def test_kinds_of_letters(kind: str, word: str, texts: list[str]):
    assert slips(word, kind) == texts


@pytest.mark.parametrize("word", ["restaurant", "ooo", "17:15", "don't", "é", "ﬁn", "日本", "🙂"])
def test_no_two_slips_of_letters_give_the_same(word: str):
    texts = [slip.put_into(word) for slip in letter_slips(word, KEYS)]
    assert len(texts) == len(set(texts))
    assert word not in texts


@pytest.mark.parametrize("word", ["restaurant", "teeth", "tea", "at", "ooo", "don't", "9am"])
def test_a_slip_is_found_again_from_its_text(word: str):
    for slip in letter_slips(word, KEYS):
        assert slip_between(word, slip.put_into(word), KEYS) == slip
    assert slip_between(word, word, KEYS) is None
    assert slip_between(word, f"q{word}qqx", KEYS) is None


@pytest.mark.parametrize("word", ["x" * 41, "İstanbul", "🙂", "…"])
def test_what_is_not_typed_by_hand_stays(word: str):
    assert list(letter_slips(word, KEYS)) == []


def test_any_letter_makes_every_text_one_letter_away(typing: NoiseModel):
    texts = {"taxi"[: s.start] + s.after + "taxi"[s.end :] for s in typing.slips("taxi")[0]}
    assert one_letter_away("taxi") <= texts
