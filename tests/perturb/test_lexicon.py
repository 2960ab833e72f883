"""The shipped lexicon: it loads, and its tables keep the laws that ``strict`` builds on."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.perturb.lexicon.lexicon import LISTS, Lexicon, context_key, load_lexicon


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return load_lexicon()


def entries(lexicon: Lexicon, table: str) -> dict[str, list[str]]:
    return {word: entry.split() for word, entry in lexicon._tables[table].items()}


@pytest.fixture(scope="module")
def forbidden(lexicon: Lexicon) -> set[str]:
    """What no strict table may propose: values, references, negations."""
    names = ["number_words", "weekdays", "value_words", "references", "negations", "stop_words"]
    return {word for name in names for word in getattr(lexicon, name)}


def test_it_is_read_once_and_has_every_list(lexicon: Lexicon):
    assert load_lexicon() is lexicon
    assert all(getattr(lexicon, name) for name in LISTS)
    assert len(lexicon.fingerprint) == 64
    assert len(lexicon.misspellings) >= 600
    assert len(set(lexicon.emoji)) == len(lexicon.emoji) >= 30


def test_loading_it_imports_no_heavy_library():
    code = (
        "import sys; from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon;"
        "load_lexicon().is_word('taxi');"
        "print([m for m in ('torch','transformers','nltk','gensim','numpy') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_no_misspelling_is_a_word(lexicon: Lexicon):
    for word, forms in lexicon.misspellings.items():
        assert lexicon.is_word(word), word
        assert word not in forms
        assert not [form for form in forms if lexicon.is_word(form)], word


@pytest.mark.parametrize("word", ["form", "from", "Hotel", "leaving", "guesthouse", "wifi", "i"])
def test_words_are_words(lexicon: Lexicon, word: str):
    assert lexicon.is_word(word)


@pytest.mark.parametrize("text", ["restaraunt", "ror", "ater", "tommorow", "", "qzx", "leavng"])
def test_typos_are_none(lexicon: Lexicon, text: str):
    assert not lexicon.is_word(text)


@pytest.mark.parametrize(
    ("word", "pos"),
    [
        ("book", "verb"),
        ("leaving", "verb"),
        ("needed", "verb"),
        ("hotels", "noun"),
        ("Nice", "adj"),
        ("quickly", "adv"),
        ("from", "function"),
        ("i", "function"),
        ("zzzz", None),
    ],
)
def test_majority_part_of_speech(lexicon: Lexicon, word: str, pos: str | None):
    assert lexicon.majority_pos(word) == pos


def test_frequency_ranks_are_of_the_training_split(lexicon: Lexicon):
    assert lexicon.frequency_rank("THE") in range(10)
    assert lexicon.frequency_rank("hippopotamus") is None


def test_keyboard_is_symmetric(lexicon: Lexicon):
    assert set(lexicon.keyboard) == set("abcdefghijklmnopqrstuvwxyz0123456789")
    for key, near in lexicon.keyboard.items():
        assert key not in near
        assert all(key in lexicon.keyboard[other] for other in near)
    assert lexicon.keyboard["g"] == ("b", "f", "h", "t", "v", "y")


def test_look_alikes_are_other_characters_and_no_ascii(lexicon: Lexicon):
    for letter, characters in lexicon.look_alikes.items():
        assert all(len(c) == 1 and not c.isascii() for c in characters), letter


@pytest.mark.parametrize("table", ["synonyms", "neighbours_strict"])
def test_strict_tables_keep_the_meaning(lexicon: Lexicon, forbidden: set[str], table: str):
    for word, others in entries(lexicon, table).items():
        assert word not in forbidden, word
        assert not {*others} & {*lexicon.antonyms(word), *forbidden, word}, word
        assert len(set(others)) == len(others)
        assert all(lexicon.is_word(other) or word == "postcode" for other in others), word


def test_known_bad_synonyms_are_not_there(lexicon: Lexicon):
    for word in ("table", "in", "a", "i", "book", "leave", "arrive", "north", "cheap", "hotel"):
        assert lexicon.synonyms(word) == ()
    assert "defer" in lexicon.synonyms_all("table", "verb")
    assert lexicon.synonyms("Information") == ("info",)
    assert lexicon.synonyms("information", "verb") == ()


def test_antonyms_are_symmetric_and_cover_requests(lexicon: Lexicon):
    table = entries(lexicon, "antonyms")
    assert all(word in table[other] for word, others in table.items() for other in others)
    for word, other in [("north", "south"), ("arriving", "leaving"), ("cheap", "expensive")]:
        assert other in lexicon.antonyms(word)


def test_neighbours_fall_with_their_cosine(lexicon: Lexicon):
    near = lexicon.neighbours("Hotel")
    assert 1 <= len(near) <= 8
    assert [cosine for _, cosine in near] == sorted((c for _, c in near), reverse=True)
    assert lexicon.neighbours("unheard-of") == ()
    assert set(lexicon.neighbours_strict("need")) <= {
        word for word, _ in lexicon.neighbours("need")
    }


def test_insertions_back_off_and_strict_ones_carry_no_content(lexicon: Lexicon):
    assert "also" in lexicon.insertions("i", "need")
    assert lexicon.insertions("zzz", "qqq") == lexicon.insertions("qqq", "zzz") != ()
    assert lexicon.insertions("", "I")
    for proposals in entries(lexicon, "insertions_strict").values():
        assert set(proposals) <= set(lexicon.safe_insertions)
    assert lexicon.insertions_strict("need", "a")


@pytest.mark.parametrize(
    ("left", "right", "key"),
    [("It's", "a", "s a"), ("a", "I\u2019m", "a i"), ("", "Hi", " hi"), ("bye", "", "bye ")],
)
def test_contractions_count_by_the_part_that_touches_the_place(left: str, right: str, key: str):
    assert context_key(left, right) == key


def test_cues_negations_and_dontcare_are_no_safe_insertions(lexicon: Lexicon):
    guarded = {*lexicon.cues, *lexicon.negations, *lexicon.dontcare, *lexicon.value_words}
    assert not guarded & set(lexicon.safe_insertions)
    assert not guarded & set(lexicon.fillers)


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"{"), gzip.compress(b"[1]")],
    ids=["empty", "no gzip", "cut JSON", "a list"],  # gzip writes the time: no part of a name
)
def test_a_file_that_is_no_lexicon(tmp_path: Path, content: bytes):
    path = tmp_path / "lexicon.json.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"lexicon\.json\.gz"):
        load_lexicon(path)


def test_a_lexicon_of_another_format(tmp_path: Path):
    path = tmp_path / "lexicon.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"format": 0}).encode()))
    with pytest.raises(DataError, match="format"):
        load_lexicon(path)
    with pytest.raises(DataError, match="cannot read"):
        load_lexicon(tmp_path / "absent.gz")
