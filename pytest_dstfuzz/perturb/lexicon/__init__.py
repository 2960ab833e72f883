"""Words and characters to perturb with: the compiled lexicon and the user's own sources."""

from __future__ import annotations

from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.lexicon.protocols import (
    InsertionSource,
    NeighbourSource,
    SynonymSource,
)

__all__ = ["InsertionSource", "Lexicon", "NeighbourSource", "SynonymSource", "load_lexicon"]
