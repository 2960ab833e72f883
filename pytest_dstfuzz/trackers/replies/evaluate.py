"""How often a system replies as was recorded: the share of right replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, label_of
from pytest_dstfuzz.dialogue.outcome import REPLY
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.evaluate import Progress, predict_all
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.trackers.validation import describe_error


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


@dataclass(frozen=True, slots=True)
class ReplyEvaluation:
    """At which of the turns that have a recorded answer a system replied the same."""

    data: str
    split: str
    #: Those with recorded answers, and the turns that have them.
    dialogues: int
    turns: int
    #: Turns whose reply says the same.
    right: int
    #: What said so.
    comparison: str
    #: Dialogues that are right at every turn with a recorded answer, in data order.
    right_dialogues: tuple[str, ...]
    #: Layout the data was read in, and what else reading chose.
    layout: str
    notes: tuple[str, ...]
    #: Why there was no reply, for each turn at which there was none; those count as wrong.
    unanswered: tuple[str, ...] = ()
    #: Turns without a recorded answer, or recorded as having none: in no figure.
    unlabelled: int = 0

    @property
    def right_replies(self) -> float:
        """Share of the turns whose reply says what was recorded."""
        return self.right / self.turns

    def figures(self) -> list[tuple[str, str]]:
        """Return what the figure is called, with its value as text."""
        of = f"{self.turns} turns{' with recorded answers' if self.unlabelled else ''}"
        return [("right replies", f"{percent(self.right_replies)} of {of}")]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary, rates rounded to 4 decimals."""
        return {
            "data": self.data,
            "split": self.split,
            "layout": self.layout,
            "notes": list(self.notes),
            "dialogues": self.dialogues,
            "turns": self.turns,
            "unlabelled": self.unlabelled,
            "unanswered": len(self.unanswered),
            "comparison": self.comparison,
            "right": self.right,
            "right_replies": round(self.right_replies, 4),
            "right_dialogues": list(self.right_dialogues),
        }

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        where = f"{self.data}, split {self.split}"
        rows = [
            f"data                  {where}: {self.dialogues} dialogues, {self.turns} turns",
            f"layout                {self.layout}",
            f"compared by           {self.comparison}",
        ]
        if self.unlabelled:
            rows.append(
                f"recorded answers      on {self.turns} of {self.turns + self.unlabelled} turns; "
                "the figures are of those"
            )
        rows += [f"note                  {note}" for note in self.notes]
        if self.unanswered:
            rows.append(
                f"no reply              {len(self.unanswered)} of {self.turns} turns, counted as "
                f"wrong, such as: {self.unanswered[0]}"
            )
        share = percent(self.right_replies)
        return [
            *rows,
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
    contexts = [
        dialogue.context(turn.index)
        for dialogue in data.dialogues
        for turn in dialogue.turns
        if label_of(dialogue, turn.index, "reply") is not None
    ]
    _refuse_none(data, contexts)
    answers = predict_all(tracker, contexts, batch_size, progress, outcome="reply")
    failures = [answer for answer in answers if isinstance(answer, TrackerError)]
    if len(failures) == len(answers):
        raise failures[0]
    return score_replies(data, answers, judge)


def score_replies(
    data: DialogueSet, answers: Sequence[Prediction | TrackerError], judge: ReplyJudge
) -> ReplyEvaluation:
    """Compare answers, one for each turn of ``data`` with a recorded answer, with what that is.

    Raises:
        UserError: no turn has one.
    """
    labelled = [
        (dialogue, turn.index, label[REPLY])
        for dialogue in data.dialogues
        for turn in dialogue.turns
        if (label := label_of(dialogue, turn.index, "reply")) is not None
    ]
    _refuse_none(data, labelled)
    pairs = list(zip(labelled, answers, strict=True))
    replied = [
        RepliedTurn(dialogue.context(index), recorded, answer.state[REPLY])
        for (dialogue, index, recorded), answer in pairs
        if isinstance(answer, Prediction)
    ]
    verdicts = iter(judge.agree(replied))
    right = [isinstance(answer, Prediction) and next(verdicts) for _, answer in pairs]
    by_dialogue: dict[str, list[bool]] = {}
    for (dialogue, _, _), one in zip(labelled, right, strict=True):
        by_dialogue.setdefault(dialogue.id, []).append(one)
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
        unanswered=tuple(
            describe_error(answer) for answer in answers if isinstance(answer, TrackerError)
        ),
        unlabelled=data.turn_count() - len(labelled),
    )


def _refuse_none(data: DialogueSet, labelled: Sequence[object]) -> None:
    if not labelled:
        raise UserError(
            f"no turn of {data.name!r} has a recorded answer: right replies need what the system "
            "said after the user, of some turns at least ('answer' in JSON Lines, or the system's "
            "utterances)"
        )
