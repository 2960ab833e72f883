"""What edits that keep the state must not touch, by position: the words that carry the slots.

For relations that make their own edits and expect the state to stay. It is not the check of the
profile ``strict``, which explains each word that is changed: phrases are not explained word by
word. A relation asks where it cannot be sure of its places; tests ask of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from pytest_dstfuzz.perturb.draft import KEPT, SHUT
from pytest_dstfuzz.perturb.edits import Hunk, apply_edits, hunks
from pytest_dstfuzz.perturb.exact import EXACT, breaks_exact
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.perturb.words import Word, take_apart
from pytest_dstfuzz.relations.scene import Scene


def veto(scene: Scene, text: str, edits: Sequence[Edit], allowed: Collection[str] = ()) -> str:
    """Return the lock that edits of the utterance of a turn break; ``""`` = none.

    Every locked word must be left as it is, those that must only not get lost have to stand
    somewhere, nothing is put into what is one expression, and no word is put in that has a lock
    of its own (`Locks.guard_of`).

    Args:
        scene: of the turn.
        text: what the utterance became.
        edits: that lead from the utterance to ``text``.
        allowed: words that may be put in though they have a lock, in lower case.

    Returns:
        The name of the lock, ``glued`` for something put into one expression, ``edits`` where the
        edits do not lead to ``text``.
    """
    try:
        if apply_edits(scene.turn.user, edits) != text:
            return "edits"
    except ValueError:
        return "edits"
    changed = hunks(edits)
    now = take_apart(text).words
    return (
        _touched(scene, changed, now)
        or (EXACT if breaks_exact(scene.guarded.exact, changed) else "")
        or _parted(scene, changed)
        or _brought(scene, changed, now, allowed)
    )


def _touched(scene: Scene, changed: Sequence[Hunk], now: Sequence[Word]) -> str:
    """Return the lock of a word that is not there any more."""
    mask, standing = scene.guarded, {(word.start, word.text) for word in now}
    kept: Counter[str] = Counter()
    reason_of: dict[str, str] = {}
    for word, role, reason in zip(scene.parts.words, mask.roles, mask.reasons, strict=True):
        if role == KEPT:
            kept[word.lower] += 1
            reason_of.setdefault(word.lower, reason)
        elif reason:
            start = _moved(word, changed)
            if start is None or (start, word.text) not in standing:
                return reason
    kept.subtract(word.lower for word in now)
    return next((reason_of[word] for word in reason_of if kept[word] > 0), "")


def _moved(word: Word, changed: Sequence[Hunk]) -> int | None:
    """Return where a word of the utterance is now; ``None`` = within what was changed."""
    shift = 0
    for hunk in changed:
        if hunk.end <= word.start:
            shift = hunk.new_end - hunk.end
        elif hunk.start < word.end:
            return None
    return word.start + shift


def _parted(scene: Scene, changed: Sequence[Hunk]) -> str:
    """Say whether something stands within an expression of locked words."""
    parts, mask = scene.parts, scene.guarded
    for index in range(1, len(parts.words)):
        locked = mask.reasons[index - 1] and mask.reasons[index]
        if locked and mask.open[index] == SHUT:
            low, high = parts.ends[index - 1], parts.starts[index]
            if any(low <= hunk.start and hunk.end <= high for hunk in changed):
                return "glued"
    return ""


def _brought(
    scene: Scene, changed: Sequence[Hunk], now: Sequence[Word], allowed: Collection[str]
) -> str:
    """Return the lock that a word brings which was put in."""
    for word in now:
        new = any(hunk.new_start < word.end and word.start < hunk.new_end for hunk in changed)
        if new and word.lower not in allowed and (reason := scene.guards.guard_of(word.text)):
            return reason
    return ""
