"""The build: WordNet's format, inflection, own lists, and a whole one of a tiny corpus."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_dstfuzz.errors import DataError, MissingExtraError, UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from tools.lexicon import build, own_lists
from tools.lexicon.dictionary import Dictionary
from tools.lexicon.inflect import Inflector
from tools.lexicon.insertions import insertion_tables
from tools.lexicon.masked_lm import SPECIAL, train_masked_model
from tools.lexicon.vectors import (
    neighbour_table,
    strict_neighbours,
    train_vectors,
)
from tools.lexicon.vocabulary import WordList, build_vocabulary
from tools.lexicon.wndb import SynsetId, read_wordnet

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


def requests(count: int) -> list[str]:
    """Return user utterances in which red and blue, and kite and boat, say the same."""
    draw = random.Random(3)
    return [
        f"please help me find {draw.choice(['a red', 'a blue'])} {draw.choice(['kite', 'boat'])} "
        f"{draw.choice(['with a rapid wind', 'or help the fast one', 'and aid us slow ones'])} ."
        for _ in range(count)
    ]


@pytest.fixture
def one_thread() -> Iterator[Any]:
    """Torch, whose number of threads the training sets."""
    pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    yield torch
    torch.set_num_threads(threads)


@pytest.fixture
def sources(folder: Path, tmp_path: Path) -> list[str]:
    """Options of the command: a WordNet of a few words, a corpus of four sentences."""
    head = ["# Dialogue ID", "Turn Index", "Last Turn", "System Response", "User Utterance"]
    rows = [[*head, "kite-colour"]]
    for number, text in enumerate(requests(90)):
        rows.append([f"K{number}", "0", "False", "", text, "none"])
        rows.append([f"K{number}", "1", "True", "which colour would you like ?", "any", "none"])
    with zipfile.ZipFile(tmp_path / "corpus.zip", "w") as archive:
        archive.writestr("train.tsv", "".join("\t".join(row) + "\n" for row in rows))
        archive.writestr("test.tsv", "\t".join(rows[0]) + "\nT\t0\tTrue\t\tzzz zzz\tnone\n")
    with zipfile.ZipFile(tmp_path / "stopwords.zip", "w") as archive:
        archive.writestr("stopwords/english", "a\nme\nthe\nwith\nwould\n")
    paths = {"wordnet": folder, "data": "corpus.zip", "stopwords": "stopwords.zip"}
    return [part for name, path in paths.items() for part in (f"--{name}", str(tmp_path / path))]


@pytest.mark.usefixtures("one_thread")
def test_a_tiny_corpus_gives_a_lexicon_of_the_same_bytes_each_time(
    sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("gensim")
    paths = [tmp_path / name for name in ("one.json.gz", "other.json.gz")]
    for path in paths:
        assert build.main([*sources, "--output", str(path)]) == 0
    shown = capsys.readouterr()
    assert "90 dialogues, 180 user and 270 utterances" in shown.out
    assert "epoch 8 of 8: loss" in shown.out
    assert shown.err == ""
    assert paths[0].read_bytes() == paths[1].read_bytes()
    lexicon = load_lexicon(paths[0])
    assert lexicon.stop_words == ("a", "me", "the", "with", "would")
    assert lexicon.fillers == load_lexicon().fillers
    assert lexicon.synonyms_all("help", "verb") == ("aid",)
    # The review's own addition comes before what WordNet proposes.
    assert lexicon.synonyms("helped") == ("assisted", "aided")
    assert "hinder" in lexicon.antonyms("help")
    assert {word for word, _ in lexicon.neighbours("red")} & {"blue", "kite", "boat"}
    assert "red" not in dict(lexicon.neighbours("red"))
    assert lexicon.insertions("help", "me")
    assert set(lexicon.insertions_strict("", "please")) <= set(lexicon.safe_insertions)
    assert lexicon.neighbours("zzz") == ()


@pytest.mark.nightly
def test_a_masked_model_learns_what_stands_between_two_words(one_thread: Any):
    utterances = [text.split() for text in requests(200)] + [[], ["rare"]]
    lines: list[str] = []
    before = one_thread.random.get_rng_state()
    models = [train_masked_model(utterances, lines.append, epochs=12) for _ in range(2)]
    assert one_thread.equal(before, one_thread.random.get_rng_state())
    model = models[0]
    assert model.words[: len(SPECIAL)] == SPECIAL
    assert "rare" not in model.numbers
    assert [model.words[number] for number in model.numbers.values()] == list(model.words)
    places = [(["please", "me", "find"], 1), (["rare"], 0), (["a", "kite"], 1)]
    found = model.probabilities(places)
    assert found.shape == (3, len(model.words))
    assert found.sum(1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert np.array_equal(found, models[1].probabilities(places))
    assert model.words[found[0].argmax()] == "help"
    losses = [float(line.rpartition(" ")[2]) for line in lines[:12]]
    assert losses[-1] < losses[0] / 2


class Guesses:
    """In the place of a network: the same distribution everywhere."""

    words = (*SPECIAL, ".", "a", "kindly", "kite", "please", "red")
    shares = (0, 0, 0, 0, 0, 0.4, 0.2, 0.1, 0.15, 0.1499, 0.0001)

    def probabilities(self, places: Sequence[tuple[Sequence[str], int]]) -> np.ndarray:
        return np.array([self.shares for _ in places])


def test_insertions_by_pairs_of_neighbours():
    guesses: Any = Guesses()
    guesses.numbers = {word: number for number, word in enumerate(guesses.words)}
    rare, long = [["red", "kite", "a"]] * 9, [["a"] * 46] * 20
    often = [["a", "kite"]] * 12
    table, strict = insertion_tables(guesses, [*rare, *long, *often, []], ["please", "kindly"])
    # The pair of the start and "red" is too rare, and places in endless utterances do not count.
    backed_off = {"* *"}
    assert set(table) == {" a", "a kite", "kite "} | backed_off
    assert table["a kite"] == ["please", "kindly", "red"]
    assert strict["a kite"] == ["please", "kindly"]
    assert table["* *"] == ["a", "kite", "please", "kindly", "red"]
    unsafe = insertion_tables(guesses, often, ["red"])[1]
    assert unsafe == {}, "what is this improbable fits nowhere"


def test_words_of_the_same_contexts_are_neighbours():
    pytest.importorskip("gensim")
    sentences = [text.split() for text in requests(300)] + [["seldom", "red", "kite"]] * 6
    training = Counter(word for words in sentences for word in words)
    ranked = tuple(sorted(training, key=lambda word: (-training[word], word)))
    vocabulary = WordList({}, {}, ranked, training)
    vectors = train_vectors(sentences)
    table = neighbour_table(vectors, vocabulary)
    assert table == neighbour_table(train_vectors(sentences), vocabulary)
    assert set(table) == {w for w, count in training.items() if count >= 10 and w != "."}
    assert "seldom" not in table
    for word, near in table.items():
        cosines = [cosine for _, cosine in near]
        assert word not in dict(near)
        assert "." not in dict(near)
        assert len(near) == 8
        assert cosines == sorted(cosines, reverse=True)


@pytest.mark.parametrize(
    ("module", "extra", "train"),
    [
        ("gensim.models", "lexicon", lambda: train_vectors([["a"]])),
        ("transformers", "models", lambda: train_masked_model([["a"]], print)),
    ],
)
def test_training_without_its_library_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, train: Callable[[], object]
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        train()
    assert caught.value.extra == extra


def test_the_readme_names_the_command_that_works_from_the_top_folder():
    top = Path(__file__).parents[2]
    readme = top / "pytest_dstfuzz" / "resources" / "lexicon" / "README.md"
    command = next(line for line in readme.read_text().splitlines() if "python -m" in line)
    module = command.split()[2]
    shown = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        capture_output=True,
        text=True,
        cwd=top,
        check=True,
    ).stdout
    for option in ("--wordnet", "--data", "--stopwords", "--output"):
        assert option in shown
        assert option in readme.read_text()
