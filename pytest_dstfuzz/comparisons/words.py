"""The comparison of words: how many of their words two texts share, whatever their order."""

from __future__ import annotations

from functools import lru_cache

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison
from pytest_dstfuzz.comparisons.polarity import stem
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import word_list

#: Up to which distance words are the same where nothing else is said.
ENOUGH = 0.75


class SharedWords(Comparison):
    """At most so much of what the shorter text says is missing in the other one."""

    def __init__(self, threshold: float | None = None) -> None:
        self._threshold = ENOUGH if threshold is None else threshold

    @property
    def name(self) -> str:
        """The name, with the threshold."""
        return f"words<={self._threshold:g}"

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether enough words are shared: distance 1 - shared / words of the shorter."""
        del path, asked
        one, other = _content(before), _content(found)
        shorter = min(len(one), len(other))
        distance = 1 - len(one & other) / shorter if shorter else float(one != other)
        same = distance <= self._threshold
        why = "" if same else f"{distance:.2f} apart, {self._threshold:g} allowed"
        return Compared(same, distance, why)


@lru_cache(maxsize=1 << 14)
def _content(text: str) -> frozenset[str]:
    words = word_list(text)
    idle = load_lexicon().stop_words
    return frozenset(stem(word) for word in words if word not in idle) or frozenset(words)
