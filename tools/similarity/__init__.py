"""Builds the small embedding that ships, and measures it: ``python -m tools.similarity.build``."""
