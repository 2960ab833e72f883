"""Makes the counts of words beside each other, with which a reader uses the sentence.

``python -m tools.lexicon.neighbours --multiwoz trade-tsv.zip --sgd train.zip --output FILE``
counts the training splits, users and the other side. Only counts of frequent words ship, no
sentence. Names have no counts: they stand as `sentences.OTHER`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.names import name_lists
from pytest_dstfuzz.perturb.sentences import DIGITS, EDGE, OTHER, tokens
from pytest_dstfuzz.perturb.words import take_apart
from tools.noise import sources

#: Minimum counts of a word, of a pair and of a triple.
WORD: Final = 100
PAIR: Final = 3
TRIPLE: Final = 10


def make(texts: Iterable[str], lexicon: Lexicon, least: Sequence[int]) -> dict[str, Any]:
    """Return the content of the file.

    Args:
        texts: the texts to count.
        lexicon: says which texts are words.
        least: the minimum counts of a word, of a pair and of a triple.
    """
    sentences = [tokens(take_apart(text))[0] for text in texts]
    names, signs = name_lists().always, {EDGE, DIGITS, OTHER}
    counted = {
        word
        for word, count in Counter(word for words in sentences for word in words).items()
        if count >= least[0] and (lexicon.is_word(word) or "'" in word) and word not in names
    } | signs
    known = [[word if word in counted else OTHER for word in words] for words in sentences]
    ones = Counter(word for words in known for word in words)
    order = sorted(counted, key=lambda word: (-ones[word], word))
    index = {word: at for at, word in enumerate(order)}
    rows = [[index[word] for word in words] for words in known]
    size = len(order)
    pairs = Counter(a * size + b for row in rows for a, b in pairwise(row))
    triples = Counter(
        (a * size + b) * size + c
        for row in rows
        for a, b, c in zip(row, row[1:], row[2:], strict=False)
    )
    kept = {code: count for code, count in pairs.items() if count >= least[1]}
    return {
        "words": " ".join(order),
        "counts": [ones[word] for word in order],
        "pairs": _packed(kept),
        "triples": _packed(
            {c: n for c, n in triples.items() if n >= least[2] and c // size in kept}
        ),
    }


def _packed(counts: dict[int, int]) -> list[list[int]]:
    """Return the steps between the codes, in order, and their counts."""
    codes = sorted(counts)
    steps = [code - last for last, code in zip([0, *codes], codes, strict=False)]
    return [steps, [counts[code] for code in codes]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--multiwoz", type=Path, required=True, help="MultiWOZ 2.1, TRADE layout")
    parser.add_argument("--sgd", type=Path, required=True, help="train.zip of SGD")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    options = parser.parse_args(arguments)
    try:
        texts = [*sources.read_multiwoz(options.multiwoz), *sources.read_sgd(options.sgd).texts]
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    table = make((text.text for text in texts), load_lexicon(), (WORD, PAIR, TRIPLE))
    content = json.dumps(table, separators=(",", ":")).encode()
    options.output.write_bytes(gzip.compress(content, 9, mtime=0))
    print(f"{options.output}: {len(table['counts'])} words, {options.output.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
