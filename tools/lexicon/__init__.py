"""Compiles ``resources/lexicon/lexicon.json.gz``; see the README beside that file."""
