"""Bots that reply: their adapters and their evaluation on recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.calls import History
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet, messages_of
from pytest_dstfuzz.dialogue.messages import answered_message
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError, UserError
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.printable import describe, format_count
from pytest_dstfuzz.trackers.adapting import Adapter, FunctionAdapter, as_it_is, make_instance
from pytest_dstfuzz.trackers.evaluate import (
    Progress,
    RecordedFigures,
    ask_recorded,
    list_recorded_turns,
    reasons,
)
from pytest_dstfuzz.trackers.rolling import RollingReplies
from pytest_dstfuzz.trackers.tracker import (
    Prediction,
    Tracker,
    read_attribute,
    read_parameters,
)

#: Advice if a system should reply but cannot.
LEAVE_OUT: Final = "leave --dst-outcome=reply out"
_MESSAGES: Final = (
    '; the function is called with a list of messages; the question is messages[-1]["content"]'
)
_OWN_HISTORY: Final = (
    "The bot is an object with reset() and reply(user): it gets only the user's utterances, so the "
    "history consists of its own replies instead of the recorded ones."
)


class ReplyFunction(FunctionAdapter):
    """A system made from a function. It maps messages (see `messages_of`) to the next reply."""

    def __init__(self, wrapped: object) -> None:
        super().__init__(wrapped)
        self._takes_context = first_parameter(wrapped) == "context"
        #: Hint for the error message if the function does not accept its arguments.
        self.asked_with = "" if self._takes_context else _MESSAGES

    def _call(self, context: Context) -> object:
        return self.wrapped(context if self._takes_context else messages_of(context))

    def _read(self, answer: object) -> Prediction:
        return as_reply(answer, "the reply function")


class StatefulReply(Adapter):
    """A system made from an object with ``reset()`` and ``reply(user)``.

    The object cannot receive the recorded system utterances, so its own replies form the history.
    """

    #: Shown to the user, see `notes_of`.
    notes = (_OWN_HISTORY,)

    def _ask(self, context: Context) -> Prediction:
        self._waited(self.wrapped.reset())
        said = [self._waited(self.wrapped.reply(user)) for user in context.user_messages]
        return as_reply(said[-1], "reply()")


def as_replier(candidate: object, history: History = "recorded") -> Tracker:
    """Adapt a system that replies to the `Tracker` protocol, or raise a `UserError`.

    ``candidate`` may be a tracker whose predictions have a `Prediction.reply`, an object with
    ``reset`` and ``reply``, an object with ``reply`` alone, a function from messages to text, or a
    class of such objects that needs no arguments. If ``history`` is ``own``, the result is a
    `RollingReplies`. An object with ``reset`` and ``reply`` always has its own history.
    """
    found = _adapted(make_instance(candidate))
    if history == "recorded" or isinstance(found, RollingReplies | StatefulReply):
        return found
    # `Tracker` allows an error in place of an answer.
    return cast("Tracker", RollingReplies(found))


def _adapted(candidate: object) -> Tracker:

    def has(name: str) -> bool:
        return callable(read_attribute(candidate, name))

    if has("predict"):
        return as_it_is(candidate)
    if has("reply"):
        if has("reset"):
            return StatefulReply(candidate)
        return ReplyFunction(read_attribute(candidate, "reply"))
    if has("update") or has("update_turn"):
        raise UserError(
            f"{describe(candidate)} keeps a belief state and does not reply: {LEAVE_OUT}"
        )
    if callable(candidate):
        return ReplyFunction(candidate)
    raise UserError(
        f"{describe(candidate)} cannot reply: give a function that takes messages and returns the "
        "reply, or an object with reset() and reply(user)"
    )


def as_reply(said: object, who: str) -> Prediction:
    """Return a reply as a prediction without checks. ``who`` is the source of the reply."""
    if isinstance(said, Prediction):
        return said
    message = answered_message(said)
    text = (
        message.get("content")
        if isinstance(message, Mapping)
        else read_attribute(message, "content")
    )
    found = said if isinstance(said, str) else text
    if isinstance(found, str):
        return Prediction(BeliefState(), reply=found)
    hint = ""
    if isinstance(said, Mapping):
        hint = f"; if it keeps a belief state and does not reply, {LEAVE_OUT}"
    raise MalformedAnswerError(f"{who} must return a text, not {describe(said)}{hint}")


def first_parameter(function: object) -> str:
    """Return the name of a function's first parameter, or ``""`` without parameters."""
    found = read_parameters(function)
    return found[0].name if found else ""


class RepliedTurn(NamedTuple):
    """A turn with its recorded answer and the reply of the system."""

    context: Context
    recorded: str
    found: str


class ReplyJudge(NamedTuple):
    """A comparison that decides which replies mean the same as the recorded answers."""

    #: The name shown with the figures.
    name: str
    agree: Callable[[Sequence[RepliedTurn]], Sequence[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEvaluation(RecordedFigures):
    """The results of an evaluation of replies on turns with recorded answers.

    Turns without a recorded answer are not counted in any figure.
    """

    #: Dialogues whose replies match at every turn with a recorded answer, in data order.
    right_dialogues: tuple[str, ...]

    @property
    def right_replies(self) -> float:
        """Share of the turns whose reply matches the recorded answer."""
        return self.share

    def figures(self) -> list[tuple[str, str]]:
        """Return the name of the figure with its value as text."""
        of = format_count(self.turns, "turn") + (
            " with recorded answers" if self.unlabelled else ""
        )
        return [("right replies", f"{percent(self.right_replies)} of {of}")]

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary with rates rounded to 4 decimals."""
        return {
            **self.common_json(),
            "right_replies": round(self.right_replies, 4),
            "right_dialogues": list(self.right_dialogues),
        }

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        share, turns = percent(self.right_replies), format_count(self.turns, "turn")
        dialogues = format_count(self.dialogues, "dialogue")
        return [
            *self.common_lines("recorded answers", "on", "reply"),
            f"right replies         {share:>9}  ({self.right} of {turns})",
            f"right throughout      {len(self.right_dialogues)} of {dialogues}",
        ]


def evaluate_replies(
    tracker: Tracker,
    data: DialogueSet,
    judge: ReplyJudge,
    batch_size: int,
    progress: Progress | None = None,
) -> ReplyEvaluation:
    """Request a reply at each turn with a recorded answer. Compare the two.

    Raises:
        UserError: no turn has a recorded answer.
        TrackerError: the system replies to none of the turns.
    """
    turns = list_recorded_turns(data, REPLIES.name)
    _refuse_none(data, turns)
    answers = ask_recorded(tracker, turns, REPLIES.name, batch_size, progress)
    return score_replies(data, answers, judge)


def score_replies(
    data: DialogueSet, answers: Sequence[Prediction | TrackerError], judge: ReplyJudge
) -> ReplyEvaluation:
    """Compare replies with recorded answers. There is one reply for each turn with an answer.

    Raises:
        UserError: no turn has a recorded answer.
    """
    labelled = list_recorded_turns(data, REPLIES.name)
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
            f"no turn of {data.name!r} has a recorded answer: the share of right replies needs the "
            "system's answers to some turns ('answer' in JSON Lines, or the system's utterances)"
        )
