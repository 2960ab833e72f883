"""Readable, stable names of turns: test ids, report entries."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.dialogues import DialogueSet


def turn_id(data: DialogueSet, dialogue_id: str, turn_index: int) -> str:
    """Return ``<data set>-<split>-<dialogue id>-t<turn index>``.

    >>> turn_id(DialogueSet("multiwoz21", "test", ()), "SNG0073", 2)
    'multiwoz21-test-SNG0073-t2'
    """
    return f"{data.name}-{data.split}-{dialogue_id}-t{turn_index}"
