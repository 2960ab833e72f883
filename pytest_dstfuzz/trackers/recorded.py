"""Figures over turns of which it is recorded what a system did: replies and calls share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.outcome import Outcome, OutcomeKind
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.trackers.evaluate import Progress, predict_all
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.trackers.validation import describe_error


class RecordedTurn(NamedTuple):
    """A turn, and what the recorded system did at it."""

    dialogue: str
    context: Context
    label: Outcome


def recorded_turns(data: DialogueSet, outcome: OutcomeKind) -> list[RecordedTurn]:
    """Return the turns of which the data says what is right, in data order."""
    return [
        RecordedTurn(dialogue.id, dialogue.context(turn.index), label)
        for dialogue in data.dialogues
        for turn in dialogue.turns
        if (label := KINDS[outcome].label(dialogue, turn.index)) is not None
    ]


def ask_recorded(
    tracker: Tracker,
    turns: Sequence[RecordedTurn],
    outcome: OutcomeKind,
    batch_size: int,
    progress: Progress | None,
) -> list[Prediction | TrackerError]:
    """Return the answer to each turn, or why there is none.

    Raises:
        TrackerError: there is no answer to any of them.
    """
    contexts = [turn.context for turn in turns]
    answers = predict_all(tracker, contexts, batch_size, progress, outcome=outcome)
    failures = [answer for answer in answers if isinstance(answer, TrackerError)]
    if len(failures) == len(answers):
        raise failures[0]
    return answers


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFigures:
    """At how many of the turns that are recorded a system did what was recorded."""

    data: str
    split: str
    #: Those with recorded turns, and these turns.
    dialogues: int
    turns: int
    right: int
    #: What said so.
    comparison: str
    #: Layout the data was read in, and what else reading chose.
    layout: str
    notes: tuple[str, ...]
    #: Why there was no answer, for each turn at which there was none; those count as wrong.
    unanswered: tuple[str, ...] = ()
    #: Turns of which nothing is recorded: in no figure.
    unlabelled: int = 0

    @property
    def share(self) -> float:
        """Share of the turns at which it did."""
        return self.right / self.turns

    def common_json(self) -> dict[str, Any]:
        """Return the first keys of a plain dictionary."""
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
        }

    def common_lines(self, recorded: str, where: str, answer: str) -> list[str]:
        """Return the first lines of text.

        Args:
            recorded: what is recorded, of many: ``recorded answers``.
            where: ``on`` or ``after`` the turns.
            answer: what a system gives.
        """
        source = f"{self.data}, split {self.split}"
        rows = [
            f"data                  {source}: {self.dialogues} dialogues, {self.turns} turns",
            f"layout                {self.layout}",
            f"compared by           {self.comparison}",
        ]
        if self.unlabelled:
            rows.append(
                f"{recorded:<21} {where} {self.turns} of {self.turns + self.unlabelled} turns; the "
                "figures are of those"
            )
        rows += [f"note                  {note}" for note in self.notes]
        if self.unanswered:
            rows.append(
                f"{f'no {answer}':<21} {len(self.unanswered)} of {self.turns} turns, counted as "
                f"wrong, such as: {self.unanswered[0]}"
            )
        return rows


def reasons(answers: Sequence[Prediction | TrackerError]) -> tuple[str, ...]:
    """Return why there was no answer, for each that is none."""
    return tuple(describe_error(answer) for answer in answers if isinstance(answer, TrackerError))
