"""Contexts that a dialogue under way asks for and need not have at once, or at all."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.dialogues import Context


class OptionalRequest(list[Context]):
    """Contexts without whose answers a dialogue is done as well, with less to say."""


class PatientRequest(list[Context]):
    """Contexts that can wait until other dialogues have come as far."""
