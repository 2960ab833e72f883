"""Deprecated: `Context` and its like are in pytest_dstfuzz now."""

from __future__ import annotations

from pytest_dstfuzz.errors import moved

__getattr__ = moved(__name__, "pytest_dstfuzz", "pytest_dstfuzz.dialogue.dialogues")
