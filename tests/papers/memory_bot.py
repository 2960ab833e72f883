"""A tracker that knows the shipped dialogues by heart, and forgets when the text is changed.

Tests name it ``memory_bot:track``, so that other processes can make it too.
"""

from __future__ import annotations

import zlib

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.dialogue.load import load_dialogues

DATA = load_dialogues("sample", "test")
_KNOWN = {
    dialogue.context(turn.index): turn.state or BeliefState()
    for dialogue in DATA.dialogues
    for turn in dialogue.turns
}
_LENGTHS: dict[int, list[Context]] = {}
for _context in _KNOWN:
    _LENGTHS.setdefault(len(_context.exchanges), []).append(_context)


def _words(context: Context) -> set[str]:
    return {word for text in context.utterances for word in text.split()}


def track(context: Context) -> dict[str, str]:
    """Return the label; of one changed text in three without its first slot."""
    if context in _KNOWN:
        return dict(_KNOWN[context])
    said = _words(context)
    nearest = max(_LENGTHS[len(context.exchanges)], key=lambda item: len(said & _words(item)))
    state = dict(_KNOWN[nearest])
    if state and not zlib.crc32(context.user.encode()) % 3:
        del state[min(state)]
    return state
