"""Internal: the shipped lexicon, and sources of words. `pytest_dstfuzz.lexicon` is public."""
