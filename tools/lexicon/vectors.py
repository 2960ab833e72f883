"""Neighbours in an embedding space trained on the utterances of the training split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_dstfuzz.errors import MissingExtraError
from tools.lexicon.vocabulary import WordList, plain

#: word2vec's settings: small, because the corpus is; one worker, because several race.
SETTINGS: Mapping[str, Any] = {
    "vector_size": 100,
    "window": 5,
    "min_count": 5,
    "sg": 1,
    "negative": 5,
    "epochs": 10,
    "seed": 1,
    "workers": 1,
}
NEIGHBOURS = 8
#: A word gets an entry when it is seen this often: rarer ones have poor vectors.
MIN_COUNT = 10


def train_vectors(sentences: Sequence[Sequence[str]]) -> Any:
    """Train word2vec and return its ``KeyedVectors``."""
    try:
        from gensim.models import Word2Vec  # noqa: PLC0415 - an extra, imported where used
    except ImportError as error:
        raise MissingExtraError("compiling embedding neighbours", "lexicon", "gensim") from error
    return Word2Vec(sentences=sentences, **SETTINGS).wv


def neighbour_table(vectors: Any, vocabulary: WordList) -> dict[str, list[tuple[str, float]]]:
    """Return word -> its nearest words with their cosine, for the frequent plain words."""
    words = [w for w in vocabulary.ranked if plain(w) and vocabulary.training[w] >= MIN_COUNT]
    known = [w for w in words if w in vectors.key_to_index]
    table = {}
    for word in sorted(known):
        near = vectors.most_similar(word, topn=4 * NEIGHBOURS)
        found = [(other, round(float(cosine), 2)) for other, cosine in near if plain(other)]
        table[word] = sorted(found, key=lambda pair: (-pair[1], pair[0]))[:NEIGHBOURS]
    return table


def strict_neighbours(
    table: Mapping[str, Sequence[tuple[str, float]]],
    synonyms: Mapping[str, Sequence[str]],
    closed: Iterable[str],
    reviewed: Mapping[str, Sequence[str]],
) -> dict[str, list[str]]:
    """Return the neighbours that keep the meaning.

    Opposites and sister terms (north and south, hotel and guesthouse) occur in the same places, so
    word vectors alone make them neighbours. Therefore a neighbour only counts if it is also a
    synonym in the reviewed table, or if the reader of the table approved the pair.
    """
    never = frozenset(closed)
    strict = {}
    for word, near in table.items():
        agreed = {*synonyms.get(word, ()), *reviewed.get(word, ())}
        found = [other for other, _ in near if other in agreed and other not in never]
        if found and word not in never:
            strict[word] = found
    return strict
