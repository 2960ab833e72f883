"""Vectors of words, from how often they occur together, and vectors of letter groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from scipy import sparse

from pytest_dstfuzz.comparisons.embedding import GRAMS, grams

#: How far apart two words are to stand together, and how long vectors are.
WINDOW = 5
SIZE = 96
#: A word is listed where it is seen this often, and so many are at most.
SEEN = 5
MOST = 30_000
#: Power iterations and spare columns of the randomised decomposition (Halko et al., 2011).
_ITERATIONS, _SPARE = 4, 16
#: Smoothing of the frequency of neighbours (Levy et al., 2015).
_SMOOTHING = 0.75
_RIDGE, _STEPS = 1.0, 60
Matrix = np.ndarray[Any, np.dtype[np.float32]]


def vocabulary(sentences: Sequence[Sequence[str]]) -> tuple[list[str], Counter[str]]:
    """Return the words that get a vector, the most frequent first, and how often each occurs."""
    counts = Counter(word for sentence in sentences for word in sentence)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, count in ranked[:MOST] if count >= SEEN], counts


def word_vectors(sentences: Sequence[Sequence[str]], listed: Sequence[str], seed: int) -> Matrix:
    """Return a vector for each word, by decomposing positive pointwise mutual information."""
    places = {word: place for place, word in enumerate(listed)}
    gap = [-1] * WINDOW
    ids = np.array(
        [id_ for s in sentences for id_ in (*(places.get(word, -1) for word in s), *gap)], np.int32
    )
    size = len(listed)
    together = sparse.csr_matrix((size, size), dtype=np.float32)
    for apart in range(1, WINDOW + 1):
        left, right = ids[:-apart], ids[apart:]
        kept = (left >= 0) & (right >= 0)
        weight = np.full(int(kept.sum()), 1 / apart, np.float32)
        together = (
            together
            + sparse.coo_matrix((weight, (left[kept], right[kept])), shape=(size, size)).tocsr()
        )
    counts = (together + together.T).tocoo()
    row = np.asarray(counts.sum(axis=1)).ravel() + 1e-9
    context = row**_SMOOTHING
    context /= context.sum()
    information = np.log(counts.data / (row[counts.row] * context[counts.col]))
    positive = information > 0
    matrix = sparse.csr_matrix(
        (
            information[positive].astype(np.float32),
            (counts.row[positive], counts.col[positive]),
        ),
        shape=(size, size),
    )
    return _decomposed(matrix, seed)


def _decomposed(matrix: Any, seed: int) -> Matrix:
    """Return the left singular vectors, weighted by the roots of the values and normalised."""
    start = np.random.default_rng(seed).standard_normal((matrix.shape[1], SIZE + _SPARE))
    basis = np.linalg.qr(matrix @ start.astype(np.float32))[0]
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(matrix.T @ basis)[0]
        basis = np.linalg.qr(matrix @ basis)[0]
    left, values, _ = np.linalg.svd(basis.T @ matrix, full_matrices=False)
    vectors = (basis @ left[:, :SIZE]) * np.sqrt(values[:SIZE])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), np.float32)


def gram_vectors(listed: Sequence[str], vectors: Matrix) -> Matrix:
    """Return a vector for each letter group, so that their means approximate word vectors.

    This is a ridge regression, solved by conjugate gradients for all columns at once.
    """
    rows, columns, shares = [], [], []
    for place, word in enumerate(listed):
        found = grams(word)
        rows += [place] * len(found)
        columns += found
        shares += [1 / len(found)] * len(found)
    means = sparse.csr_matrix(
        (shares, (rows, columns)), shape=(len(listed), GRAMS), dtype=np.float32
    )
    ridge = _RIDGE * len(listed) / GRAMS * 1e-2
    solved = np.zeros((GRAMS, vectors.shape[1]), np.float64)
    rest = means.T @ vectors.astype(np.float64)
    direction, error = rest.copy(), (rest**2).sum(axis=0)
    for _ in range(_STEPS):
        applied = means.T @ (means @ direction) + ridge * direction
        step = error / np.maximum((direction * applied).sum(axis=0), 1e-12)
        solved += step * direction
        rest -= step * applied
        error, before = (rest**2).sum(axis=0), error
        direction = rest + error / np.maximum(before, 1e-12) * direction
    return np.asarray(solved, np.float32)


def packed(listed: Sequence[str], words: Matrix, letters: Matrix, rare: float, eps: float) -> bytes:
    """Return the content of the file: rows of 8 bits, each with its scale."""
    parts: dict[str, Any] = {
        "listed": np.frombuffer("\n".join(listed).encode("utf-8"), np.uint8),
        "eps": np.float64(eps),
        "rare": np.float64(rare),
    }
    for name, matrix in (("word", words), ("gram", letters)):
        scales = np.maximum(np.abs(matrix).max(axis=1), 1e-9) / 127
        parts[f"{name}s"] = np.round(matrix / scales[:, None]).astype(np.int8)
        parts[f"{name}_scales"] = scales.astype(np.float32)
    stream = BytesIO()
    np.savez_compressed(stream, **parts)
    return stream.getvalue()
