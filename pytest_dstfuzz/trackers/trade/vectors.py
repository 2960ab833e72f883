"""Word vectors for the start of training, learnt from the training utterances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.seeding import derive
from pytest_dstfuzz.trackers.trade.vocabulary import Vocabulary


def word_vectors(
    sentences: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    size: int,
    seed: int,
    epochs: int = 15,
) -> np.ndarray:
    """Return skip-gram vectors ``[words, size]``, 0.1 in standard deviation.

    Words that the sentences do not hold get random vectors of that size. One thread
    is used, so that a seed gives the same vectors again.

    Args:
        sentences: words of each exchange.
        vocabulary: the words to return vectors of, in its order.
        size: length of a vector.
        seed: seed of the vectors.
        epochs: passes over the sentences.

    Raises:
        MissingExtraError: gensim is not installed.
    """
    with needs_extra("training word vectors", "lexicon", "gensim"):
        from gensim.models import Word2Vec  # noqa: PLC0415 - optional
    model = Word2Vec(
        [list(sentence) for sentence in sentences],
        vector_size=size,
        window=5,
        min_count=1,
        sg=1,
        negative=8,
        sample=1e-3,
        epochs=epochs,
        workers=1,
        seed=derive(seed, "word2vec") % 2**31,
    )
    rng = np.random.Generator(np.random.PCG64(derive(seed, "missing vectors")))
    result = rng.normal(0, 1, (len(vocabulary.words), size)).astype(np.float32)
    known = [number for number, word in enumerate(vocabulary.words) if word in model.wv]
    found = np.stack([model.wv[vocabulary.words[number]] for number in known])
    result[known] = (found - found.mean(0)) / found.std()
    return result * np.float32(0.1)
