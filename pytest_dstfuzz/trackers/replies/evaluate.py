"""How often a system replies as was recorded: the share of right replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.trackers.evaluate import Progress
from pytest_dstfuzz.trackers.recorded import (
    RecordedFigures,
    ask_recorded,
    reasons,
    recorded_turns,
)
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker


class RepliedTurn(NamedTuple):
    """A turn with a recorded answer, and what the system replied to it."""

    context: Context
    recorded: str
    found: str


class ReplyJudge(NamedTuple):
    """Who says which replies say the same as what was recorded."""

    #: As figures show it.
    name: str
    agree: Callable[[Sequence[RepliedTurn]], Sequence[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEvaluation(RecordedFigures):
    """At which of the turns that have a recorded answer a system replied the same.

    Turns that are recorded as having none are in no figure.
    """

    #: Dialogues that are right at every turn with a recorded answer, in data order.
    right_dialogues: tuple[str, ...]

    @property
    def right_replies(self) -> float:
        """Share of the turns whose reply says what was recorded."""
        return self.share

    def figures(self) -> list[tuple[str, str]]:
        """Return what the figure is called, with its value as text."""
        of = f"{self.turns} turns{' with recorded answers' if self.unlabelled else ''}"
        return [("right replies", f"{percent(self.right_replies)} of {of}")]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary, rates rounded to 4 decimals."""
        return {
            **self.common_json(),
            "right_replies": round(self.right_replies, 4),
            "right_dialogues": list(self.right_dialogues),
        }

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        share = percent(self.right_replies)
        return [
            *self.common_lines("recorded answers", "on", "reply"),
            f"right replies         {share:>9}  ({self.right} of {self.turns} turns)",
            f"right throughout      {len(self.right_dialogues)} of {self.dialogues} dialogues",
        ]


def evaluate_replies(
    tracker: Tracker,
    data: DialogueSet,
    judge: ReplyJudge,
    batch_size: int,
    progress: Progress | None = None,
) -> ReplyEvaluation:
    """Ask for a reply to each turn that has a recorded answer, and compare the two.

    Raises:
        UserError: no turn has a recorded answer.
        TrackerError: the system replies to nothing.
    """
    turns = recorded_turns(data, REPLIES.name)
    _refuse_none(data, turns)
    answers = ask_recorded(tracker, turns, REPLIES.name, batch_size, progress)
    return score_replies(data, answers, judge)


def score_replies(
    data: DialogueSet, answers: Sequence[Prediction | TrackerError], judge: ReplyJudge
) -> ReplyEvaluation:
    """Compare answers, one for each turn of ``data`` with a recorded answer, with what that is.

    Raises:
        UserError: no turn has one.
    """
    labelled = recorded_turns(data, REPLIES.name)
    _refuse_none(data, labelled)
    pairs = list(zip(labelled, answers, strict=True))
    replied = [
        RepliedTurn(turn.context, REPLIES.text(turn.label), answer.reply or "")
        for turn, answer in pairs
        if isinstance(answer, Prediction)
    ]
    verdicts = iter(judge.agree(replied))
    right = [isinstance(answer, Prediction) and next(verdicts) for _, answer in pairs]
    by_dialogue: dict[str, list[bool]] = {}
    for turn, one in zip(labelled, right, strict=True):
        by_dialogue.setdefault(turn.dialogue, []).append(one)
    return ReplyEvaluation(
        data=data.name,
        split=data.split,
        dialogues=len(by_dialogue),
        turns=len(labelled),
        right=sum(right),
        comparison=judge.name,
        right_dialogues=tuple(name for name, each in by_dialogue.items() if all(each)),
        layout=data.layout,
        notes=data.notes,
        unanswered=reasons(answers),
        unlabelled=data.turn_count() - len(labelled),
    )


def _refuse_none(data: DialogueSet, labelled: Sequence[object]) -> None:
    if not labelled:
        raise UserError(
            f"no turn of {data.name!r} has a recorded answer: right replies need what the system "
            "said after the user, of some turns at least ('answer' in JSON Lines, or the system's "
            "utterances)"
        )
