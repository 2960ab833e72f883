"""Builds the embedding that ships: ``python -m tools.similarity.build --help``.

Needs the extras ``lexicon`` and ``train``. The same sources give the same bytes on one machine with
one thread (``OMP_NUM_THREADS=1``). Of the dialogues, only training splits are read. Only the
threshold is chosen on a development split.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from pytest_dstfuzz.comparisons.embedding import WordVectors, tokens
from pytest_dstfuzz.errors import UserError
from tools.similarity.calibrate import calibrated
from tools.similarity.contrast import learnt
from tools.similarity.pairs import Meanings, Utterances
from tools.similarity.sources import read_glosses, read_sgd, read_utterances
from tools.similarity.words import gram_vectors, packed, vocabulary, word_vectors

SEED = 1
#: Words that a word which is not listed counts as much as: the rarest of the listed.
_RARE = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sgd", type=Path, required=True, help="folder with train.zip and dev.zip")
    parser.add_argument("--multiwoz", type=Path, required=True, help="MultiWOZ 2.1, TRADE layout")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, ...")
    parser.add_argument("--output", type=Path, required=True, help="file to write (.npz)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        build(options.sgd, options.multiwoz, options.wordnet, options.output)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def build(sgd: Path, multiwoz: Path, wordnet: Path, output: Path) -> None:
    """Make the vectors, choose the threshold, write the file and print the table for the card."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", flush=True)

    turns = read_sgd(sgd / "train.zip")
    glosses = read_glosses(wordnet)
    sentences = [tokens(turn.text) for turn in turns]
    sentences += [tokens(text) for text in read_utterances(multiwoz)]
    for gloss in glosses:
        sentences.append(tokens(f"{' '.join(gloss.words)} {gloss.definition}"))
        sentences += map(tokens, gloss.examples)
    listed, counts = vocabulary(sentences)
    say(
        f"{len(turns)} utterances, {len(glosses)} meanings, {sum(counts.values())} words, "
        f"{len(listed)} listed"
    )
    vectors = word_vectors(sentences, listed, SEED)
    say("words have vectors")
    vectors = learnt(listed, vectors, counts, Utterances(turns), Meanings(glosses), SEED, say)
    letters = gram_vectors(listed, vectors)
    say("letter groups have vectors")
    lengths = np.linalg.norm(vectors, axis=1)
    rare = float(np.median(lengths[-int(_RARE * len(lengths)) :]))
    draft = packed(listed, vectors, letters, rare, 1.0)
    found = calibrated(read_sgd(sgd / "dev.zip"), WordVectors.read(draft).parts, SEED)
    output.write_bytes(packed(listed, vectors, letters, rare, found.eps))
    say(f"{output}: {output.stat().st_size} bytes, eps {found.eps}")
    print("\n".join(found.table()))


if __name__ == "__main__":
    sys.exit(main())
