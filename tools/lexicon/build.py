"""Compiles the lexicon: ``python -m tools.lexicon.build --help``.

Needs the extras ``lexicon`` and ``models``. The same sources give the same bytes on the same
machine. Of the dialogues, only the training split is read.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import FORMAT, LISTS, POS_KEYS
from tools.lexicon import own_lists
from tools.lexicon.dictionary import Dictionary, Table
from tools.lexicon.insertions import insertion_tables
from tools.lexicon.masked_lm import train_masked_model
from tools.lexicon.vectors import (
    neighbour_table,
    strict_neighbours,
    train_vectors,
)
from tools.lexicon.vocabulary import WordList, build_vocabulary, plain
from tools.lexicon.wndb import WordNet, read_wordnet


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, ...")
    parser.add_argument("--data", type=Path, required=True, help="MultiWOZ 2.1, TRADE layout")
    parser.add_argument("--stopwords", type=Path, required=True, help="NLTK's stopwords.zip")
    parser.add_argument("--output", type=Path, required=True, help="file to write (.json.gz)")
    options = parser.parse_args(arguments)
    try:
        build(options.wordnet, options.data, options.stopwords, options.output)
    except UserError as error:
        say(str(error), file=sys.stderr)
        return 2
    return 0


def say(text: str, file: Any = None) -> None:
    """Print a line of progress at once."""
    print(text, file=file, flush=True)


def build(wordnet_folder: Path, data: Path, stopwords: Path, output: Path) -> None:
    """Compile the sources into ``output``."""
    say(f"reading WordNet from {wordnet_folder}")
    wordnet = read_wordnet(wordnet_folder)
    say(f"reading the training split of {data}")
    corpus = read_corpus(data)
    own = OwnLists.read(stopwords)
    vocabulary = build_vocabulary(
        wordnet,
        Counter(word for sentence in corpus.all for word in sentence),
        [*own.words["stop_words"], *own.words["function_words"]],
        own.corrections(),
        [form for forms in own.misspellings.values() for form in forms],
        own.all_words(),
    )
    tables = compile_tables(wordnet, vocabulary, corpus, own)
    compiled = {
        "format": FORMAT,
        "lists": {name: own.words[name] for name in LISTS},
        "mappings": {
            "misspellings": joined(own.real_misspellings(vocabulary.pos)),
            "keyboard": joined(own_lists.keyboard(own.characters["keyboard_rows"])),
            "look_alikes": joined(own_lists.look_alikes(own.characters["look_alikes"])),
        },
        "tables": tables,
    }
    write(compiled, output)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Tokenised utterances of the training split."""

    user: list[list[str]]
    all: list[list[str]]


def read_corpus(data: Path) -> Corpus:
    """Read the utterances of the training split. TRADE's layout has them as tokens."""
    dialogues = load_dialogues(data, "train", layout="trade").dialogues
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    user = [turn.user.split() for turn in turns]
    both = [text.split() for turn in turns for text in (turn.system, turn.user) if text]
    say(f"  {len(dialogues)} dialogues, {len(user)} user and {len(both)} utterances in all")
    return Corpus(user, both)


@dataclass(frozen=True, slots=True)
class OwnLists:
    """The lists written for this package, and NLTK's stop words."""

    words: Mapping[str, list[str]]
    characters: Mapping[str, list[str]]
    misspellings: Mapping[str, list[str]]
    #: Review of the synonyms: struck out, and added.
    exclusions: Table
    additions: Mapping[str, Table]
    #: Review of the embedding neighbours: approved.
    neighbours: Table
    antonyms: Table

    @classmethod
    def read(cls, stopwords: Path) -> OwnLists:
        """Read them all."""
        folder = own_lists.FOLDER
        words = own_lists.read_words(folder / "words.txt")
        words["stop_words"] = read_stopwords(stopwords)
        return cls(
            words,
            own_lists.read_sections(folder / "characters.txt"),
            own_lists.read_pairs(folder / "misspellings.txt"),
            own_lists.read_pairs(folder / "synonyms_struck.txt"),
            own_lists.read_pairs_by_section(folder / "synonyms_added.txt"),
            own_lists.read_pairs(folder / "neighbours_approved.txt"),
            own_lists.read_pairs(folder / "antonyms_added.txt"),
        )

    def corrections(self) -> dict[str, str]:
        """Return word -> majority part of speech in requests."""
        return {word: pos for pos in POS_KEYS for word in self.words.get(f"majority_{pos}", [])}

    def closed(self) -> frozenset[str]:
        """Return the words that no strict table may replace or propose."""
        names = ["stop_words", "negations", "number_words", "weekdays", "value_words"]
        names += ["references", "function_words"]
        return frozenset(word for name in names for word in self.words[name])

    def all_words(self) -> list[str]:
        """Return every correctly spelled word of these lists."""
        tables = [*self.additions.values(), self.neighbours, self.antonyms]
        words = [word for entries in self.words.values() for word in entries]
        words += [word for table in tables for word in table]
        words += [other for table in tables for others in table.values() for other in others]
        return sorted({word for word in [*words, *self.misspellings] if plain(word)})

    def real_misspellings(self, words: Mapping[str, str]) -> Table:
        """Return the misspellings without those that are themselves words."""
        kept: Table = {}
        for word, forms in sorted(self.misspellings.items()):
            found = [form for form in forms if form not in words]
            if len(found) < len(forms):
                say(f"  a word of its own: {' '.join(f for f in forms if f in words)} ({word})")
            if found:
                kept[word] = found
        return kept


def read_stopwords(path: Path) -> list[str]:
    """Return the English list of NLTK's ``stopwords.zip``, in its order."""
    try:
        text = zipfile.ZipFile(path).read("stopwords/english").decode("utf-8")
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise DataError(f"cannot read stopwords/english from {path}: {error}") from error
    return text.split()


def compile_tables(
    wordnet: WordNet, vocabulary: WordList, corpus: Corpus, own: OwnLists
) -> dict[str, Any]:
    """Return the tables of the compiled file."""
    closed = own.closed()
    say("compiling synonyms and antonyms")
    dictionary = Dictionary(wordnet, vocabulary, closed)
    antonyms = dictionary.antonyms(own.antonyms)
    full = dictionary.synonyms_all()
    strict = dictionary.synonyms_strict(own.exclusions, own.additions)
    strict = without_antonyms(strict, antonyms)
    say("training word vectors")
    near = neighbour_table(train_vectors(corpus.all), vocabulary)
    near_strict = strict_neighbours(near, strict, closed, own.neighbours)
    say("training the masked language model")
    model = train_masked_model(corpus.user, say)
    insertions, insertions_strict = insertion_tables(
        model, corpus.user, own.words["safe_insertions"]
    )
    tables = {
        "words": words_by_pos(vocabulary.pos),
        "ranks": " ".join(vocabulary.ranked),
        "synonyms": joined(strict),
        "synonyms_all": {
            word: {POS_KEYS[pos]: " ".join(found) for pos, found in entry.items()}
            for word, entry in sorted(full.items())
        },
        "antonyms": joined(antonyms),
        "neighbours": {w: " ".join(f"{o} {c}" for o, c in pairs) for w, pairs in near.items()},
        "neighbours_strict": joined(without_antonyms(near_strict, antonyms)),
        "insertions": joined(insertions),
        "insertions_strict": joined(insertions_strict),
    }
    for name, table in tables.items():
        say(f"  {name}: {len(table)} entries")
    return tables


def without_antonyms(table: Table, antonyms: Table) -> Table:
    """Return a table without the pairs that are opposites in any sense."""
    kept = {
        word: [other for other in others if other not in antonyms.get(word, [])]
        for word, others in table.items()
    }
    return {word: others for word, others in kept.items() if others}


def words_by_pos(pos: Mapping[str, str]) -> dict[str, str]:
    """Return part of speech -> its words, sorted and joined by blanks."""
    groups: dict[str, list[str]] = {}
    for word in sorted(pos):
        if " " not in word:
            groups.setdefault(POS_KEYS.get(pos[word], "u"), []).append(word)
    return {key: " ".join(group) for key, group in sorted(groups.items())}


def joined(table: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the table sorted by key, each entry's candidates joined by blanks."""
    return {key: " ".join(entry) for key, entry in sorted(table.items())}


def write(compiled: Mapping[str, Any], output: Path) -> None:
    """Write the compiled file without a time stamp, so that equal content gives equal bytes."""
    text = json.dumps(compiled, ensure_ascii=False, separators=(",", ":"))
    data = gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)
    try:
        output.write_bytes(data)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error}") from error
    say(f"{output}: {len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    sys.exit(main())
