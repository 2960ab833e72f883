"""How often an assistant makes the recorded calls: messages, and arguments by tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS, Outcome
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.evaluate import Progress
from pytest_dstfuzz.trackers.recorded import (
    RecordedFigures,
    ask_recorded,
    reasons,
    recorded_turns,
)
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker


class CallJudge(NamedTuple):
    """Who says which calls are the recorded ones."""

    #: As figures show it.
    name: str
    #: Of a context, what was recorded and what was found: what was found, with the paths and the
    #: values of what was recorded where it says the same.
    aligned: Callable[[Context, Outcome, Outcome], Outcome]


#: Calls are the recorded ones where they are equal.
EQUAL_CALLS = CallJudge("equality", lambda _context, _recorded, found: found)


class ToolFigures(NamedTuple):
    """The recorded calls of one tool: those that are made as recorded, and their arguments."""

    tool: str
    calls: int
    right: int
    arguments: int
    right_arguments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvaluation(RecordedFigures):
    """At which of the turns that are recorded an assistant made the recorded calls."""

    #: Those of the turns with calls in their message.
    turns_with_calls: int
    right_with_calls: int
    tools: tuple[ToolFigures, ...]

    @property
    def right_messages(self) -> float:
        """Share of the turns whose message makes the recorded calls, and no others."""
        return self.share

    def figures(self) -> list[tuple[str, str]]:
        """Return what the figures are called, with their values as text."""
        found = [("right messages", f"{percent(self.right_messages)} of {self.turns} turns")]
        if self.turns_with_calls:
            share = percent(self.right_with_calls / self.turns_with_calls)
            found.append(("right where calls were recorded", f"{share} of {self.turns_with_calls}"))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary, rates rounded to 4 decimals."""
        return {
            **self.common_json(),
            "right_messages": round(self.right_messages, 4),
            "turns_with_calls": self.turns_with_calls,
            "right_with_calls": self.right_with_calls,
            "tools": {one.tool: dict(list(one._asdict().items())[1:]) for one in self.tools},
        }

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        rows = self.common_lines("recorded messages", "after", "message")
        share = percent(self.right_messages)
        rows.append(f"right messages        {share:>9}  ({self.right} of {self.turns} turns)")
        if self.turns_with_calls:
            right, of = self.right_with_calls, self.turns_with_calls
            rows.append(f"  with calls          {percent(right / of):>9}  ({right} of {of} turns)")
        if self.tools:
            rows.append("recorded calls by tool, and their arguments:")
            rows += [f"  {one.tool:<19} {_tool_text(one)}" for one in self.tools]
        return rows


def _tool_text(one: ToolFigures) -> str:
    text = f"{percent(one.right / one.calls):>9}  ({one.right} of {one.calls} calls"
    if one.arguments:
        share = percent(one.right_arguments / one.arguments)
        text += f"; {share} of {one.arguments} arguments"
    return f"{text})"


def evaluate_calls(
    tracker: Tracker,
    data: DialogueSet,
    judge: CallJudge,
    batch_size: int,
    progress: Progress | None = None,
) -> CallEvaluation:
    """Ask for the next message at each turn that has a recorded one, and compare their calls.

    Raises:
        UserError: no turn has a recorded message after it.
        TrackerError: the assistant answers nothing.
    """
    turns = recorded_turns(data, TOOL_CALLS)
    _refuse_unrecorded(data, turns)
    answers = ask_recorded(tracker, turns, TOOL_CALLS, batch_size, progress)
    return score_calls(data, answers, judge)


def score_calls(
    data: DialogueSet, answers: Sequence[Prediction | TrackerError], judge: CallJudge
) -> CallEvaluation:
    """Compare answers, one for each turn of ``data`` with a recorded message, with its calls."""
    labelled = recorded_turns(data, TOOL_CALLS)
    _refuse_unrecorded(data, labelled)
    counts: dict[str, Counter[str]] = {}
    right: list[bool] = []
    for (_, context, label), answer in zip(labelled, answers, strict=True):
        made = answer.state if isinstance(answer, Prediction) else None
        found = Outcome() if made is None else judge.aligned(context, label, made)
        right.append(made is not None and found == label)
        _count(label, found, counts)
    with_calls = [one for one, (_, _, label) in zip(right, labelled, strict=True) if label]
    names = ("calls", "right", "arguments", "right_arguments")
    return CallEvaluation(
        data=data.name,
        split=data.split,
        dialogues=len({name for name, _, _ in labelled}),
        turns=len(labelled),
        right=sum(right),
        turns_with_calls=len(with_calls),
        right_with_calls=sum(with_calls),
        tools=tuple(
            ToolFigures(tool, *(row[name] for name in names))
            for tool, row in sorted(counts.items())
        ),
        comparison=judge.name,
        layout=data.layout,
        notes=data.notes,
        unanswered=reasons(answers),
        unlabelled=data.turn_count() - len(labelled),
    )


def _count(label: Outcome, found: Outcome, counts: dict[str, Counter[str]]) -> None:
    """Count the recorded calls and arguments of one message by tool, and those that are right."""
    wrong = set()
    for path in {**label, **found}:
        taken = AnswerPath.of(path)
        if not taken.in_call:
            continue
        same = label.get(path) == found.get(path)
        if not same:
            wrong.add(taken.call)
        if path in label and not taken.is_call:
            row = counts.setdefault(taken.tool, Counter())
            row["arguments"] += 1
            row["right_arguments"] += same
    for path in label:
        taken = AnswerPath.of(path)
        if taken.is_call:
            row = counts.setdefault(taken.tool, Counter())
            row["calls"] += 1
            row["right"] += taken.call not in wrong


def _refuse_unrecorded(data: DialogueSet, labelled: Sequence[object]) -> None:
    if not labelled:
        raise UserError(
            f"no turn of {data.name!r} has a recorded message after it: right calls need what the "
            "assistant did then, after some turns at least"
        )
