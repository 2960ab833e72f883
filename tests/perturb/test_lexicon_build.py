"""The parts of the build that need no corpus: WordNet's format, inflection, own lists."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.perturb.lexicon import build, own_lists
from pytest_dstfuzz.perturb.lexicon.dictionary import Dictionary
from pytest_dstfuzz.perturb.lexicon.inflect import Inflector
from pytest_dstfuzz.perturb.lexicon.vectors import strict_neighbours
from pytest_dstfuzz.perturb.lexicon.vocabulary import build_vocabulary
from pytest_dstfuzz.perturb.lexicon.wndb import SynsetId, read_wordnet

LICENCE = "  1 Licence lines start with two blanks.  \n"
FILES = {
    "data.verb": [
        "00000010 29 v 02 help 0 aid 1 001 ! 00000030 v 0101 00 | give help",
        "00000030 29 v 01 hinder 0 001 ! 00000010 v 0101 00 | be an obstacle",
        "00000050 29 v 02 aid 0 help_out 0 000 00 | improve",
    ],
    "index.verb": [
        "help v 1 1 ! 1 1 00000010  ",
        "aid v 2 0 2 1 00000010 00000050  ",
        "hinder v 1 1 ! 1 0 00000030  ",
        "help_out v 1 0 1 0 00000050  ",
    ],
    "data.noun": ["00000100 15 n 02 Paris 0 city_of_light 0 000 | a city"],
    "index.noun": ["paris n 1 0 1 0 00000100  "],
    "data.adj": [
        "00000200 00 a 01 fast 0 001 ! 00000220 a 0101 | quick",
        "00000220 00 a 01 slow(p) 0 001 ! 00000200 a 0101 | not fast",
        "00000240 00 s 01 rapid 0 001 & 00000200 a 0000 | fast too",
    ],
    "index.adj": [
        "fast a 1 1 ! 1 1 00000200  ",
        "slow a 1 1 ! 1 1 00000220  ",
        "rapid a 1 1 & 1 1 00000240  ",
    ],
    "data.adv": [],
    "index.adv": [],
    "noun.exc": ["feet foot"],
    "verb.exc": ["went go", "getting get", "got get"],
    "adj.exc": [],
    "adv.exc": [],
    "cntlist.rev": ["help%2:29:00:: 1 20", "aid%2:29:01:: 1 9", "rapid%5:00:00:fast:00 1 4"],
}


@pytest.fixture
def folder(tmp_path: Path):
    for name, lines in FILES.items():
        (tmp_path / name).write_text(LICENCE + "".join(f"{line}\n" for line in lines))
    return tmp_path


def test_wordnet_database_format(folder: Path):
    net = read_wordnet(folder)
    helping = SynsetId("verb", 10)
    assert net.synsets[helping].words == ("help", "aid")
    assert net.senses["aid", "verb"] == (helping, SynsetId("verb", 50))
    assert net.count("help", "verb") == 20
    assert net.count("rapid", "adj") == 4
    assert net.sense_count("aid", helping) == 9
    assert net.sense_number("aid", SynsetId("verb", 50)) == 2
    assert net.synsets[SynsetId("adj", 220)].words == ("slow",)
    assert net.irregular["verb"]["got"] == ("get",)


def test_antonyms_are_of_the_word_and_of_the_head_adjective(folder: Path):
    net = read_wordnet(folder)
    assert net.antonyms("help") == {"hinder"}
    assert net.antonyms("aid") == set()
    assert net.antonyms("rapid") == {"slow"}


@pytest.mark.parametrize("name", ["data.verb", "index.adj", "cntlist.rev"])
def test_a_broken_wordnet_file_is_named_with_its_line(folder: Path, name: str):
    (folder / name).write_text(LICENCE + "0 0 0\n")
    with pytest.raises(DataError, match=f"{name}, line 2"):
        read_wordnet(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=name):
        read_wordnet(folder)


def test_strict_synonyms_follow_the_review(folder: Path):
    net = read_wordnet(folder)
    training = Counter({"help": 50, "aid": 9, "helped": 7, "qqqq": 6, "resturant": 9})
    vocabulary = build_vocabulary(net, training, ["the"], {}, ["resturant"])
    assert vocabulary.pos["helping"] == "verb"
    assert vocabulary.pos["the"] == "function"
    assert vocabulary.pos["qqqq"] == ""
    assert not {"resturant", "paris"} & set(vocabulary.pos)
    dictionary = Dictionary(net, vocabulary, frozenset(["the"]))
    assert dictionary.synonyms_strict({}, {})["helped"] == ["aided"]
    assert dictionary.synonyms_strict({"help": ["aid"]}, {}).keys() == {"aid", "aids"} | {
        "aided",
        "aiding",
    }
    assert "help" not in dictionary.synonyms_strict({"help": ["*"]}, {})
    assert "aid" not in dictionary.synonyms_strict({"*": ["help"]}, {})
    added = dictionary.synonyms_strict({}, {"verb": {"help": ["aid"]}, "as is": {"ill": ["sick"]}})
    assert added["ill"] == ["sick"]
    assert dictionary.synonyms_all()["help"] == {"verb": ["aid"]}
    assert dictionary.antonyms({"in": ["out"]})["out"] == ["in"]


@pytest.mark.parametrize(
    ("word", "pos", "form", "expected"),
    [
        ("need", "verb", "past", "needed"),
        ("visit", "verb", "gerund", "visiting"),
        ("stop", "verb", "past", "stopped"),
        ("prefer", "verb", "gerund", "preferring"),
        ("try", "verb", "third", "tries"),
        ("stay", "verb", "past", "stayed"),
        ("lie", "verb", "gerund", "lying"),
        ("agree", "verb", "past", "agreed"),
        ("arrange", "verb", "gerund", "arranging"),
        ("get", "verb", "past", None),
        ("get", "verb", "gerund", "getting"),
        ("split", "verb", "past", None),
        ("city", "noun", "plural", "cities"),
        ("church", "noun", "plural", "churches"),
        ("foot", "noun", "plural", None),
        ("amenities", "noun", "plural", None),
        ("big", "adj", "comparative", "bigger"),
        ("nice", "adj", "superlative", "nicest"),
        ("expensive", "adj", "comparative", None),
        ("soon", "adv", "comparative", None),
    ],
)
def test_inflection(folder: Path, word: str, pos: str, form: str, expected: str | None):
    assert Inflector(read_wordnet(folder).irregular).form(word, pos, form) == expected


def test_own_lists_are_checked(tmp_path: Path):
    path = tmp_path / "own.txt"
    path.write_text("# comment\n[a]\none, two,\nthree, one\n\n[b]\nx: y\nx: z y\n")
    assert own_lists.read_words(path) == {"a": ["one", "two", "three"], "b": ["x: y", "x: z y"]}
    with pytest.raises(DataError, match="'one, two,' is not of the form"):
        own_lists.read_pairs(path)
    path.write_text("x: y\n")
    assert own_lists.read_pairs(path) == {"x": ["y"]}
    with pytest.raises(DataError, match=r"before the first \[section\]"):
        own_lists.read_sections(path)
    with pytest.raises(DataError, match="cannot read the list"):
        own_lists.read_words(tmp_path / "absent.txt")


def test_strict_neighbours_need_a_reader():
    near = {"north": [("south", 0.9)], "need": [("want", 0.8), ("require", 0.7), ("grab", 0.6)]}
    strict = strict_neighbours(near, {"need": ["require"]}, ["north"], {"need": ["want"]})
    assert strict == {"need": ["want", "require"]}


def test_the_compiled_file_has_no_time_stamp(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("a.gz", "b.gz"):
        build.write({"format": 1}, tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert json.loads(gzip.decompress((tmp_path / "a.gz").read_bytes())) == {"format": 1}
    assert "sha256" in capsys.readouterr().out
    with pytest.raises(UserError, match="cannot write"):
        build.write({}, tmp_path)


def test_a_missing_source_is_a_message_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = ["--wordnet", "--data", "--stopwords", "--output"]
    given = [part for name in arguments for part in (name, str(tmp_path / "absent"))]
    assert build.main(given) == 2
    assert "data.noun" in capsys.readouterr().err
    with pytest.raises(DataError, match="stopwords/english"):
        build.read_stopwords(tmp_path / "absent.zip")
