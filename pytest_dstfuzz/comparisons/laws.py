"""Whether a comparison is one: the same for equal texts, in both orders, and every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from pytest_dstfuzz.comparisons.comparison import Compared, Comparison, TextPair
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.outcome import REPLY, Outcome
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.printable import shortened

#: What every comparison is asked about beside the texts that are given.
ODD: Final = (
    *("", " ", "?", "\U0001f642", "Ja, natürlich. Да. はい。", "\u0645\u0631\u062d\u0628\u0627"),
    *("10:30", "word " * 2000, "x" * 10_000),
)
_ASKED: Final = Context((Exchange("", "what can you tell me"),))
_SHOWN: Final = 20
#: Given texts of which all pairs are compared; of more, each with the next ones.
_ALL_PAIRS: Final = 40


@dataclass(frozen=True, slots=True)
class ComparisonCheck:
    """What a comparison was asked, and what is wrong with it."""

    name: str
    #: Pairs of texts that it was asked about.
    asked: int
    #: Those of two texts that it takes for the same.
    same: int
    #: One sentence each; none where all is well.
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def assert_passed(self) -> None:
        """Raise an `AssertionError` that says what is wrong, where anything is."""
        if self.findings:
            told = "\n".join(f"  {finding}" for finding in self.findings[:_SHOWN])
            count = len(self.findings)
            raise AssertionError(f"the comparison {self.name!r} breaks {count} rules:\n{told}")


def check_comparison_laws(comparison: Comparison, texts: Sequence[str]) -> ComparisonCheck:
    """Compare some texts, and odd ones, with themselves and each other, in both orders, twice."""
    own = list(dict.fromkeys(texts))
    near = range(1, len(own)) if len(own) <= _ALL_PAIRS else range(1, 3)
    pairs = [(own[at], own[at + by]) for by in near for at in range(len(own) - by)]
    pairs += [(odd, "It is open until 6 pm.") for odd in ODD] + list(combinations(ODD[:-2], 2))
    findings: list[str] = []
    comparison.prepare([TextPair(REPLY, *pair, _ASKED) for pair in pairs])
    same = 0
    for text in [*own, *ODD]:
        alone = _asked(comparison, text, text, findings)
        if alone is not None and not alone.same:
            findings.append(f"{_shown(text)} is not the same as itself ({alone.why})")
    for one, other in pairs:
        there, back, again = (
            _asked(comparison, *pair, findings)
            for pair in ((one, other), (other, one), (one, other))
        )
        if there is None or back is None or again is None:
            continue
        same += there.same
        if (there.same, there.distance) != (again.same, again.distance):
            findings.append(f"{_both(one, other)} are compared otherwise the second time")
        if there.same != back.same:
            told = "the same in one order alone: which of them is clean would decide"
            findings.append(f"{_both(one, other)} are {told}")
    outcome = Outcome({REPLY: "It is open."})
    if dict(comparison.align(outcome, outcome)) != dict(outcome):
        findings.append("align() changes an answer that is held against itself")
    return ComparisonCheck(comparison.name, len(pairs), same, tuple(dict.fromkeys(findings)))


def _asked(comparison: Comparison, one: str, other: str, findings: list[str]) -> Compared | None:
    try:
        return comparison.compare(REPLY, one, other, _ASKED)
    except DstFuzzError as error:
        findings.append(f"{_both(one, other)}: {error}")
        return None


def _both(one: str, other: str) -> str:
    return f"{_shown(one)} and {_shown(other)}"


def _shown(text: str) -> str:
    return repr(shortened(text, 40))
