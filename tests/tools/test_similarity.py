"""What the embedding that ships is built with, on a few sentences of our own."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from pytest_dstfuzz.comparisons.embedding import WordVectors, apart, tokens
from tools.similarity.calibrate import Calibrated
from tools.similarity.pairs import Meanings, Utterances
from tools.similarity.sources import Gloss, read_glosses, read_sgd
from tools.similarity.words import gram_vectors, packed, vocabulary, word_vectors

SAID = (
    ("I can book {} for {}.", "OFFER"),
    ("How about {} on {}?", "OFFER"),
    ("Shall I cancel {} on {}?", "CANCEL"),
)
PLACES = (("Taverna", "Monday"), ("Bella", "Friday"), ("Da Noi", "Sunday"))


def turn(template: str, act: str, place: str, day: str) -> dict[str, object]:
    head, middle, tail = template.split("{}")
    text = head + place + middle + day + tail
    at = len(head)
    spans = [
        {"slot": "name", "start": at, "exclusive_end": at + len(place)},
        {"slot": "day", "start": at + len(place + middle), "exclusive_end": len(text) - len(tail)},
    ]
    actions = [
        {"act": act, "slot": slot, "canonical_values": [value]}
        for slot, value in (("name", place), ("day", day))
    ]
    frame = {"service": "Tables_1", "slots": spans, "actions": actions}
    return {"speaker": "SYSTEM", "utterance": text, "frames": [frame]}


@pytest.fixture
def utterances(tmp_path: Path) -> Utterances:
    turns = [turn(*said, *place) for said in SAID for place in PLACES]
    path = tmp_path / "train.zip"
    with zipfile.ZipFile(path, "w") as archive:
        dialogues = [{"dialogue_id": "1", "turns": turns}]
        archive.writestr("train/dialogues_001.json", json.dumps(dialogues))
    return Utterances(read_sgd(path))


def test_pairs_say_the_same_values_and_near_misses_do_not(utterances: Utterances) -> None:
    rng = np.random.default_rng(0)
    for acts in (True, False):
        drawn = [utterances.drawn(rng, acts=acts) for _ in range(20)]
        for text, same, other, _ in drawn:
            named = [name for name, _ in PLACES if name in text]
            assert [name for name, _ in PLACES if name in same] == named
            assert text.split()[0] != same.split()[0]
            assert ("cancel" in other) is acts
            assert acts or not any(f" {name} " in other for name in named) or other != same


def test_other_words_of_a_meaning_and_itspacked(tmp_path: Path) -> None:
    (tmp_path / "data.noun").write_text(
        '  1 a licence\n00001 04 n 02 ship 0 boat 0 000 | a thing that swims; "a ship came in"\n'
    )
    for pos in ("verb", "adj", "adv"):
        (tmp_path / f"data.{pos}").write_text("")
    glosses = read_glosses(tmp_path)
    assert glosses == [Gloss(("ship", "boat"), "a thing that swims", ("a ship came in",))]
    drawn = [Meanings(glosses).drawn(np.random.default_rng(seed)) for seed in range(30)]
    assert {("a ship came in", "a boat came in")} <= {(one.text, one.same) for one in drawn}


def test_the_same_sentences_give_the_same_bytes_and_a_file_that_is_read() -> None:
    texts = [f"the {a} {b} in the {c}" for a in "abc" for b in ("sat", "ran") for c in "xyz"] * 9
    # As many words as there are numbers in a vector, at least.
    texts += [f"word{chr(97 + n // 26)}{chr(97 + n % 26)} stands here" for n in range(150)] * 5
    sentences = [tokens(text) for text in texts]
    listed, counts = vocabulary(sentences)
    assert counts["the"] == 324
    made = []
    for _ in range(2):
        vectors = word_vectors(sentences, listed, 1)
        made.append(packed(listed, vectors, gram_vectors(listed, vectors), 0.5, 0.4))
    assert made[0] == made[1]
    read = WordVectors.read(made[0])
    assert (read.eps, len(read.places)) == (0.4, len(listed))
    assert apart(read.parts("the a sat"), read.parts("the a sat")).distance == 0
    near, far = (apart(read.parts("the a sat"), read.parts(text)) for text in ("the b sat", "zzzz"))
    assert near.distance < far.distance
    with np.load(BytesIO(made[0])) as file:
        assert {file[name].dtype for name in ("words", "grams")} == {np.dtype(np.int8)}


def test_the_card_says_how_often_a_threshold_errs() -> None:
    found = Calibrated(0.4, {"same": [0.1, 0.5], "acts": [0.3, 0.9], "values": [0.9], "turns": [1]})
    (line,) = (line for line in found.table() if line.startswith("| **0.40**"))
    assert line == "| **0.40** | 50.0% | 50.0% | 0.0% | 0.0% |"
