"""Assistants that call tools: their adapters and their evaluation on recorded messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.calls import (
    TOOL_CALLS,
    AnswerPath,
    History,
    Outcome,
    ToolCall,
    calls_outcome,
)
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, messages_and_tools
from pytest_dstfuzz.dialogue.messages import answered_message, calls_of
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.printable import describe, format_count
from pytest_dstfuzz.trackers.adapting import FunctionAdapter, as_it_is, make_instance
from pytest_dstfuzz.trackers.evaluate import (
    Progress,
    RecordedFigures,
    ask_recorded,
    list_recorded_turns,
    reasons,
)
from pytest_dstfuzz.trackers.replies import first_parameter
from pytest_dstfuzz.trackers.rolling import RollingCalls
from pytest_dstfuzz.trackers.tracker import (
    Prediction,
    Tracker,
    read_attribute,
    read_parameters,
)

_GIVEN: Final = (
    "; the function is called with two lists, messages and tools, in the form of OpenAI's API"
)


class CallFunction(FunctionAdapter):
    """An assistant made from a function. It maps messages and tools to the next message."""

    def __init__(self, wrapped: object) -> None:
        super().__init__(wrapped)
        self._takes_context = first_parameter(wrapped) == "context"
        self._takes_tools = _parameters(wrapped) != 1
        #: Hint for the error message if the function does not accept its arguments.
        self.asked_with = "" if self._takes_context else _GIVEN

    def _call(self, context: Context) -> object:
        if self._takes_context:
            return self.wrapped(context)
        asked = messages_and_tools(context)
        return self.wrapped(*(asked if self._takes_tools else asked[:1]))

    def _read(self, answer: object) -> Prediction:
        return as_calls(answer)


def as_caller(candidate: object, history: History = "recorded") -> Tracker:
    """Return an assistant that calls tools as a `Tracker`, or raise a `UserError`.

    ``candidate`` may be a tracker whose predictions have `Prediction.calls`, a function from
    messages and tools to a message, or a class of such objects that needs no arguments. If
    ``history`` is ``own``, the result is a `RollingCalls`.
    """
    found = make_instance(candidate)
    if callable(read_attribute(found, "predict")):
        caller = as_it_is(found)
    elif callable(found):
        caller = CallFunction(found)
    else:
        raise _no_caller(found)
    if history == "recorded" or isinstance(caller, RollingCalls):
        return caller
    # `Tracker` allows an error in place of an answer.
    return cast("Tracker", RollingCalls(caller))


def _no_caller(found: object) -> UserError:
    return UserError(
        f"{describe(found)} cannot call tools: give a function that takes messages and tools and "
        "returns the next message, as in OpenAI's API"
    )


def as_calls(message: object) -> Prediction:
    """Return the next message of an assistant as a prediction with its tool calls and text."""
    if isinstance(message, Prediction):
        return message
    if isinstance(message, str):
        return Prediction(calls_outcome(()), reply=message, calls=calls_outcome(()))
    if isinstance(message, Sequence) and not isinstance(message, bytes):
        message = {"tool_calls": message}
    message = answered_message(message)
    calls: Sequence[ToolCall] = calls_of(message)
    said = (
        message.get("content")
        if isinstance(message, Mapping)
        else read_attribute(message, "content")
    )
    outcome = calls_outcome(calls)
    return Prediction(outcome, reply=said if isinstance(said, str) else None, calls=outcome)


def _parameters(function: object) -> int:
    """Return the number of positional arguments of a function, or 2 if it cannot be determined."""
    found = read_parameters(function)
    if found is None or any(one.kind is one.VAR_POSITIONAL for one in found):
        return 2
    positional = [one for one in found if one.kind is not one.KEYWORD_ONLY]
    if any(one.name == "tools" for one in positional):
        return 2
    return sum(one.default is one.empty for one in positional)


class CallJudge(NamedTuple):
    """A comparison of an assistant's tool calls with the recorded ones."""

    #: The name shown with the figures.
    name: str
    #: A function of a context, the recorded calls and the found calls. It returns the found calls,
    #: in which recorded paths and values replace those that mean the same.
    aligned: Callable[[Context, Outcome, Outcome], Outcome]


#: Calls match if they are equal.
EQUAL_CALLS = CallJudge("equality", lambda _context, _recorded, found: found)


class ToolFigures(NamedTuple):
    """Counts for one tool: recorded calls and arguments, and correct calls and arguments."""

    tool: str
    calls: int
    right: int
    arguments: int
    right_arguments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvaluation(RecordedFigures):
    """The results of an evaluation of tool calls on recorded turns."""

    #: Turns whose recorded message has calls.
    turns_with_calls: int
    right_with_calls: int
    tools: tuple[ToolFigures, ...]

    @property
    def right_messages(self) -> float:
        """Share of the turns whose message makes exactly the recorded calls."""
        return self.share

    def figures(self) -> list[tuple[str, str]]:
        """Return the names of the figures with their values as text."""
        found = [
            (
                "right messages",
                f"{percent(self.right_messages)} of {format_count(self.turns, 'turn')}",
            )
        ]
        if self.turns_with_calls:
            share = percent(self.right_with_calls / self.turns_with_calls)
            found.append(("right messages with calls", f"{share} of {self.turns_with_calls}"))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary with rates rounded to 4 decimals."""
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
        turns = format_count(self.turns, "turn")
        rows.append(f"right messages        {share:>9}  ({self.right} of {turns})")
        if self.turns_with_calls:
            right, of = self.right_with_calls, self.turns_with_calls
            share, turns = percent(right / of), format_count(of, "turn")
            rows.append(f"  with calls          {share:>9}  ({right} of {turns})")
        if self.tools:
            rows.append("right calls by tool, and their right arguments:")
            rows += [f"  {one.tool:<19} {_tool_text(one)}" for one in self.tools]
        return rows


def _tool_text(one: ToolFigures) -> str:
    text = f"{percent(one.right / one.calls):>9}  ({one.right} of {format_count(one.calls, 'call')}"
    if one.arguments:
        share = percent(one.right_arguments / one.arguments)
        text += f"; {share} of {format_count(one.arguments, 'argument')}"
    return f"{text})"


def evaluate_calls(
    tracker: Tracker,
    data: DialogueSet,
    judge: CallJudge,
    batch_size: int,
    progress: Progress | None = None,
) -> CallEvaluation:
    """Request the next message at each turn whose next message is recorded. Compare the calls.

    Raises:
        UserError: no turn has a recorded message after it.
        TrackerError: the assistant answers none of the turns.
    """
    turns = list_recorded_turns(data, TOOL_CALLS)
    _refuse_unrecorded(data, turns)
    answers = ask_recorded(tracker, turns, TOOL_CALLS, batch_size, progress)
    return score_calls(data, answers, judge)


def score_calls(
    data: DialogueSet, answers: Sequence[Prediction | TrackerError], judge: CallJudge
) -> CallEvaluation:
    """Compare answers with recorded calls. Each turn with a recorded message has one answer."""
    labelled = list_recorded_turns(data, TOOL_CALLS)
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
    """Count the recorded and the correct calls and arguments of one message, by tool."""
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
            f"no turn of {data.name!r} is followed by a recorded message. The share of right "
            "messages needs the assistant's messages after some turns"
        )
