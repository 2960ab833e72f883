"""Reads what the models are made of: training splits, our own lists, a pronouncing dictionary."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.noise.casual import names_in
from pytest_dstfuzz.noise.evidence import Text
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import word_list
from tools.lexicon.own_lists import read_sections

FOLDER: Final = Path(__file__).parent
#: Words of a request are at least so frequent in the training splits.
FREQUENT: Final = 5
_ENTRY: Final = re.compile(r"([a-z]+) ([A-Z0-9 ]+)")


def read_multiwoz(path: Path) -> list[Text]:
    """Return what users and wizards typed in the training split, by dialogue."""
    dialogues = load_dialogues(path, "train", layout="trade").dialogues
    return [
        Text(f"multiwoz {dialogue.id}", text)
        for dialogue in dialogues
        for turn in dialogue.turns
        for text in (turn.system, turn.user)
        if text
    ]


class Utterances(NamedTuple):
    """Raw texts of SGD's training split."""

    user: list[Text]
    system: list[Text]
    #: Words in what the services returned, in lower case.
    returned: set[str]

    @property
    def texts(self) -> list[Text]:
        """All texts."""
        return [*self.user, *self.system]

    @property
    def names(self) -> frozenset[str]:
        """Words that the services returned, and words that are capitalised inside sentences.

        A text that looks like a slip (`sentral`) is no slip if it is one of them.
        """
        return frozenset({*self.returned, *names_in(text for _, text in self.texts)})


def read_sgd(path: Path) -> Utterances:
    """Return what stands in the dialogues of a split, in capitals and small letters."""
    found = Utterances([], [], set())
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if "dialogues_" in name)
            files = [json.loads(archive.read(name)) for name in names]
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read the dialogues of {path}: {error}") from None
    for dialogue in (dialogue for file in files for dialogue in file):
        for turn in dialogue["turns"]:
            texts = found.user if turn["speaker"] == "USER" else found.system
            texts.append(Text(f"sgd {dialogue['dialogue_id']}", turn["utterance"]))
            for result in (r for f in turn.get("frames", ()) for r in f.get("service_results", ())):
                found.returned.update(
                    word for value in result.values() for word in word_list(value)
                )
    return found


def read_slips() -> dict[str, tuple[str, ...]]:
    """Return slip -> words that were judged to be meant, one by one."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    with (FOLDER / "slips.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["kept"] == "yes":
                found[row["slip"]].append(row["word"])
    return {slip: tuple(words) for slip, words in found.items()}


def read_own(name: str) -> dict[str, list[str]]:
    """Return section -> lines of a list of our own."""
    return read_sections(FOLDER / "own" / name)


def forms_of(lines: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return word -> form -> 1, from lines `word: form form`."""
    split = (line.split(":") for line in lines)
    return {word.strip(): dict.fromkeys(forms.split(), 1.0) for word, forms in split}


def homophones(
    path: Path, counts: Counter[str], lexicon: Lexicon, left_out: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Return word -> frequent words that sound like it, each with its share.

    Args:
        path: ``cmudict.dict``, the data file of CMUdict; the first pronunciation of a word counts.
        counts: words of the training splits.
        lexicon: says what is a word with a part of speech.
        left_out: words that are none of them.
    """
    omitted = frozenset(left_out)
    by_sound: defaultdict[str, list[str]] = defaultdict(list)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    for line in lines:
        entry = _ENTRY.fullmatch(line.partition("#")[0].strip())
        if entry is None or len(entry[1]) < 2 or entry[1] in omitted:
            continue
        if counts[entry[1]] >= FREQUENT and lexicon.majority_pos(entry[1]) is not None:
            by_sound[re.sub(r"\d", "", entry[2])].append(entry[1])
    table: dict[str, Mapping[str, float]] = {}
    for words in by_sound.values():
        for word in words:
            others = sorted(set(words) - {word})
            if others:
                table[word] = {other: 1.0 / len(others) for other in others}
    return {word: dict(table[word]) for word in sorted(table)}
