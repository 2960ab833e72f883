"""What the conformance kit found: one finding a check, and figures beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.trackers.calls.evaluate import CallEvaluation
from pytest_dstfuzz.trackers.evaluate import Evaluation
from pytest_dstfuzz.trackers.replies.evaluate import ReplyEvaluation

#: ``warned`` is no failure; ``skipped`` says nothing about the tracker.
Status = Literal["passed", "failed", "warned", "skipped"]


class CheckOutcome(NamedTuple):
    """What a check says of a tracker."""

    status: Status
    #: What was seen, in one sentence.
    message: str
    #: What to do about it; ``""`` where nothing has to be done.
    advice: str = ""


passed: Final = partial(CheckOutcome, "passed")
failed: Final = partial(CheckOutcome, "failed")
warned: Final = partial(CheckOutcome, "warned")
skipped: Final = partial(CheckOutcome, "skipped")

#: Of what a check finds several of, so many are shown.
_SHOWN: Final = 3


def first_few(texts: Sequence[str], sign: str = "; ") -> str:
    """Return some of what a check found, with a sign between, and how many more there are."""
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return sign.join([*texts[:_SHOWN], *more])


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check of a tracker."""

    check: str
    status: Status
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """Return a plain dictionary."""
        found: dict[str, str] = to_json(self)
        return found

    def __str__(self) -> str:
        return f"{self.check}: {self.message}" + (f"\n  {self.advice}" if self.advice else "")


@dataclass(frozen=True, slots=True)
class Conformance:
    """What all checks said of one tracker."""

    findings: tuple[Finding, ...]
    #: Batch size -> contexts answered in a second, as the clock had it on that machine.
    throughput: Mapping[int, float]
    #: Accuracy by the labels; ``None`` where the data has none, or a turn has no answer.
    evaluation: Evaluation | ReplyEvaluation | CallEvaluation | None
    #: Contexts that the tracker was asked for, repetitions included.
    asked: int

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings of the checks that failed."""
        return tuple(finding for finding in self.findings if finding.status == "failed")

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    def headline(self) -> str:
        """Return how many checks failed, warned, passed and could not be judged."""
        counts = Counter(finding.status for finding in self.findings)
        parts = [
            f"{counts[status]} {status}"
            for status in ("failed", "warned", "passed", "skipped")
            if counts[status] or status == "passed"
        ]
        return f"{len(self.findings)} checks: {', '.join(parts)}"

    def assert_passed(self) -> None:
        """Raise an `AssertionError` when a check failed: which, why, and what to do about it."""
        if not self.passed:
            raise AssertionError(self.explain())

    def explain(self) -> str:
        """Return the failed checks with their advice, one below the other."""
        return "\n".join([self.headline(), *map(str, self.failures)])

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary: what was found, and the figures."""
        accuracy = self.evaluation
        figures: dict[str, Any] = {"turns": accuracy and accuracy.turns}
        if isinstance(accuracy, ReplyEvaluation):
            figures["right_replies"] = round(accuracy.right_replies, 4)
        elif isinstance(accuracy, CallEvaluation):
            figures["right_messages"] = round(accuracy.right_messages, 4)
        else:
            figures["joint_goal_accuracy"] = accuracy and round(accuracy.joint_goal_accuracy, 4)
            figures["slot_accuracy"] = accuracy and round(accuracy.slot_accuracy, 4)
        return {
            "passed": self.passed,
            "findings": [finding.to_json() for finding in self.findings],
            "figures": {
                "asked": self.asked,
                "contexts_per_second": {
                    str(size): round(rate, 1) for size, rate in self.throughput.items()
                },
                **figures,
            },
        }
