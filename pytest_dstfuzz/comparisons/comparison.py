"""What a comparison is: whether a text that was found says the same as the one before.

It runs before equality: an answer that compares as a clean one is replaced by it, and only then
states are diffed, votes counted and variants judged. So nothing else knows about distances.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether two texts say the same."""

    same: bool
    #: How far apart they are, from 0 (the same) to 2; ``None`` where the comparison has none.
    distance: float | None = None
    #: What differs, in one line for people: ``1969 / 1970``; empty where nothing does.
    why: str = ""
    #: Whether nobody could tell: then ``same`` is true, and it is no violation, even where the text
    #: was to become another one.
    unsure: bool = False


class TextPair(NamedTuple):
    """Two texts that a run is about to compare: the arguments of `Comparison.compare`."""

    path: str
    before: str
    found: str
    asked: Context


class Comparison(Protocol):
    """Whether two texts say the same.

    A class that inherits from it writes ``name`` and ``compare``, and the rest where it is to be
    otherwise. Answers must depend on the arguments alone, and be the same for (a, a), and for
    (a, b) as for (b, a): `pytest_dstfuzz.testing.check_comparison` looks.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that reports show, with the threshold where it has one."""

    @property
    def exact(self) -> bool:
        """Whether it is equality of texts: then answers are compared as they are."""
        return False

    @property
    def identity(self) -> str:
        """All that its answers depend on, for the keys of caches and of baselines.

        The name, and besides it the threshold, a digest of weights, the source of a function.
        """
        return self.name

    def align(self, before: Outcome, found: Outcome) -> Outcome:
        """Return what was found under the paths of ``before``: as it is, where order counts."""
        del before
        return found

    def one_sided(self, path: str, *, gone: bool) -> str:
        """Return what it means that one answer alone has a path; ``""`` where that says it.

        Args:
            path: of the answers.
            gone: whether it is the clean one that has it.
        """
        del path, gone
        return ""

    def prepare(self, pairs: Sequence[TextPair]) -> None:
        """Get ready for pairs that will be asked for: one batch is cheaper than many."""
        del pairs

    @abstractmethod
    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Return whether ``found`` says the same as ``before``.

        Args:
            path: where in the answers the texts stand: ``reply``.
            before: the text that is held against, such as a clean reply.
            found: the other text.
            asked: the clean context whose answers they are; its last utterance is the question.
        """
