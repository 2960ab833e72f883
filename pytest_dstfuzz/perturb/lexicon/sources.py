"""Deprecated: the sources of words are in pytest_dstfuzz.lexicon now."""

from __future__ import annotations

from pytest_dstfuzz.errors import moved

__getattr__ = moved(__name__, "pytest_dstfuzz.lexicon")
