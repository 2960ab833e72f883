"""Words to perturb with: the shipped lexicon, and sources of your own.

`load_lexicon` returns the shipped one; `Lexicon.with_sources` puts your own sources in the place
of its synonyms, neighbours and insertions. A source is an object with the method of its protocol.
"""

from __future__ import annotations

from pytest_dstfuzz.perturb.lexicon.lexicon import (
    InsertionSource,
    Lexicon,
    NeighbourSource,
    SynonymSource,
    load_lexicon,
)
from pytest_dstfuzz.perturb.lexicon.word_sources import (
    KeyedVectorsNeighbours,
    MaskedLanguageModelInsertions,
    WordNetSynonyms,
    wordnet_synonyms,
)

__all__ = [
    "InsertionSource",
    "KeyedVectorsNeighbours",
    "Lexicon",
    "MaskedLanguageModelInsertions",
    "NeighbourSource",
    "SynonymSource",
    "WordNetSynonyms",
    "load_lexicon",
    "wordnet_synonyms",
]
