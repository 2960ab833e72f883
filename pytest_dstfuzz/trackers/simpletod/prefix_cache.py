"""What a model made of the beginnings of dialogues, kept for other texts that begin alike.

Variants of a turn differ in its user utterance alone, and the next turn begins with all of it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from torch import Tensor

#: Bytes of keys and values that are kept; those used longest ago go first.
_BYTES: Final = 512 * 1024 * 1024
#: Answers that are kept for each beginning.
_ANSWERS: Final = 64


@dataclass(frozen=True)
class History:
    """The beginning of a dialogue, up to a user utterance.

    Attributes:
        states: keys and values of its tokens ``[layers, 2, heads, T, width]``.
        answers: tokens of user utterances, and what was written after them.
    """

    states: Tensor
    answers: deque[tuple[frozenset[int], tuple[int, ...]]] = field(
        default_factory=lambda: deque(maxlen=_ANSWERS)
    )

    @property
    def bytes(self) -> int:
        """What its states take."""
        return self.states.numel() * self.states.element_size()

    def learn(self, utterance: Sequence[int], answer: tuple[int, ...]) -> None:
        """Keep what was written after an utterance."""
        pair = (frozenset(utterance), answer)
        if pair not in self.answers:
            self.answers.append(pair)

    def answer_like(self, utterance: Sequence[int]) -> tuple[int, ...]:
        """Return what was written after the utterance that is most like this one."""
        wanted = frozenset(utterance)
        best: tuple[float, tuple[int, ...]] = (-1.0, ())
        for known, answer in self.answers:
            likeness = len(wanted & known) / max(1, len(wanted | known))
            if likeness > best[0]:
                best = (likeness, answer)
        return best[1]


class PrefixCache:
    """Beginnings by their tokens."""

    def __init__(self, capacity: int = _BYTES) -> None:
        self._capacity = capacity
        self._size = 0
        self._kept: OrderedDict[tuple[int, ...], History] = OrderedDict()

    def __contains__(self, key: tuple[int, ...]) -> bool:
        return key in self._kept

    def get(self, key: tuple[int, ...]) -> History | None:
        """Return what is known of a beginning, which is kept longer for it."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: tuple[int, ...], history: History) -> None:
        """Keep a beginning that is not there; forget others where there is no room."""
        self._kept[key] = history
        self._size += history.bytes
        while self._size > self._capacity and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.bytes
