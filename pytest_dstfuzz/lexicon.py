"""Words for perturbations: the shipped lexicon and custom word sources.

`load_lexicon` returns the shipped lexicon. `Lexicon.with_sources` replaces its synonyms, neighbours
or insertions with your own sources. A source is an object with the method of `SynonymSource`,
`NeighbourSource` or `InsertionSource`.
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
