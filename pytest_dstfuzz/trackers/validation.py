"""Asking a tracker, and whether what it returned is one prediction for each context.

The preflight, the conformance kit, ``dstfuzz evaluate`` and the campaign all check answers here,
so that none of them takes what another refuses. States are brought to the normalisation of the
data here too, whoever made them: an answer of ``none`` is an absent slot. All but the campaign ask
here as well: whatever goes wrong is one kind of error. (A campaign asks by itself: it halves a
batch that fails, and keeps the answers of an interrupted one.)
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Ontology, diff_states
from pytest_dstfuzz.dialogue.normalise import normalise_slot, normalise_state, normalise_value
from pytest_dstfuzz.dialogue.outcome import (
    REPLY,
    TOOL_CALLS,
    Outcome,
    OutcomeKind,
    reply_outcome,
)
from pytest_dstfuzz.errors import (
    GivenUpError,
    MalformedAnswerError,
    TrackerError,
    UserError,
    message_of,
    nearest,
)
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import ADDRESS, counted, shortened
from pytest_dstfuzz.trackers.deadline import Overrun
from pytest_dstfuzz.trackers.problems import (
    encodable,
    impurity_problem,
    kind_of,
    reply_problem,
    state_problem,
)
from pytest_dstfuzz.trackers.tracker import Interrupted, Prediction, Tracker, declared

_LONGEST_REASON = 300
#: How often a context is asked again whose answer cannot be read, if no setting says it.
RETRIES: Final = 4
_REPLIES = "; for a system that replies add --dst-outcome=reply"
#: The folder of this package.
_PACKAGE = Path(__file__).parents[1]


def check_predictions(
    answered: object,
    expected: int,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> list[Prediction]:
    """Return what ``Tracker.predict`` returned as ``expected`` sound predictions."""
    return [
        check_prediction(answer, normalisation=normalisation, outcome=outcome)
        for answer in as_list(answered, expected)
    ]


def as_list(answered: object, expected: int) -> list[object]:
    """Return the predictions of a batch, so many, as a list; all else is a `TrackerError`."""
    if isinstance(answered, str | bytes | Mapping) or not isinstance(answered, Iterable):
        raise TrackerError(
            f"the tracker returned {kind_of(answered)} where a sequence of predictions is expected"
        )
    answers = list(answered)
    if len(answers) != expected:
        raise TrackerError(
            f"the tracker returned {counted(len(answers), 'prediction')} "
            f"for {counted(expected, 'context')}"
        )
    return answers


def check_prediction(
    answered: object,
    ontology: Ontology | None = None,
    *,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> Prediction:
    """Return what a tracker answered to one context: as its ``state``, what of it is tested.

    That is the belief state in the normalisation of the data, the ``reply`` under the path of
    that name, or the tool calls as in `calls_outcome`. The answer may be a prediction, slot ->
    value, which is taken for one without probabilities, a text where replies are tested, or the
    `TrackerError` that stands in the place of one; anything else raises such an error. Where the
    ontology is ``None`` or not complete, any slot will do.
    """
    if isinstance(answered, TrackerError):
        raise TrackerError(describe_error(answered))
    if outcome == REPLY:
        return _checked_reply(answered)
    if outcome == TOOL_CALLS:
        return _checked_calls(answered)
    if not isinstance(answered, Prediction | Mapping):
        raise TrackerError(
            f"the tracker returned {kind_of(answered)} where a prediction is expected: a "
            f"Prediction, or a mapping slot -> value{_REPLIES if isinstance(answered, str) else ''}"
        )
    raw, impurities = (
        (answered.state, answered.impurities)
        if isinstance(answered, Prediction)
        else (answered, None)
    )
    try:
        problem = state_problem(raw)
        state = _normalised(raw, normalisation) if not problem else BeliefState({})
        problem = problem or unknown_slot(state, ontology) or impurity_problem(impurities)
    except Exception as error:
        # The mapping is the tracker's, and may be one that computes what it is asked for.
        raise TrackerError(
            f"the tracker returned {kind_of(raw)} that cannot be read: {describe_error(error)}"
        ) from error
    if problem:
        raise TrackerError(f"the tracker returned {problem}")
    if isinstance(answered, Prediction) and state is raw:
        return answered
    return Prediction(state, impurities)


def _checked_reply(answered: object) -> Prediction:
    """Return what a system replied as a prediction of that alone."""
    text = answered.reply if isinstance(answered, Prediction) else answered
    if text is None and isinstance(answered, Prediction) and answered.state:
        text = answered.state
    if isinstance(text, Mapping):
        raise TrackerError(
            f"the bot returned {kind_of(text)} where a reply is expected, which is a text; for a "
            "tracker of belief states leave --dst-outcome=reply out"
        )
    if problem := reply_problem(text):
        raise TrackerError(f"the bot returned {problem}")
    reply = reply_outcome(str(text))
    return Prediction(reply, reply=reply[REPLY])


def _checked_calls(answered: object) -> Prediction:
    """Return what an assistant called as a prediction of that alone."""
    calls = answered.calls if isinstance(answered, Prediction) else answered
    if not isinstance(calls, Mapping):
        raise TrackerError(
            f"the assistant returned {kind_of(answered)} where tool calls are expected: a message "
            "as in OpenAI's API, or a Prediction with calls"
        )
    if problem := state_problem(calls):
        raise TrackerError(f"the assistant returned {problem}")
    outcome = calls if isinstance(calls, Outcome) else Outcome(calls)
    return Prediction(outcome, calls=outcome)


def _normalised(state: Mapping[str, str], normalisation: str) -> BeliefState:
    """Return a state in the normalisation of the data; one that is, as it is.

    A campaign asks for every prediction: what is canonical already costs two look-ups a
    slot, as both functions remember.
    """
    for slot, value in state.items():
        if (
            normalise_slot(slot, normalisation) != slot
            or normalise_value(slot, value, normalisation) != value
        ):
            return normalise_state(state, normalisation)
    return state if isinstance(state, BeliefState) else BeliefState(state)


def unknown_slot(state: Mapping[str, str], ontology: Ontology | None) -> str:
    """Return which slot of a state a complete ontology does not have, or ``""``."""
    if ontology is None or not ontology.complete:
        return ""
    for slot in state:
        if slot not in ontology.values:
            guess = nearest(slot, ontology.slots)
            hint = f"; did you mean {guess!r}?" if guess else ""
            return f"the slot {slot!r}, which {ontology.source} does not have{hint}"
    return ""


def passes_through(error: BaseException) -> bool:
    """Whether an exception from a user's tracker is for Python or pytest, and no failure of it.

    Not everything else is an `Exception`: a panic in Rust (tokenizers, safetensors)
    reaches Python as a `BaseException` of its own, and ``sys.exit()`` in a tracker, or in the
    script that it was, ends nothing but that call.
    """
    if isinstance(error, KeyboardInterrupt | GeneratorExit | Overrun):
        return True
    # pytest's own (exit, skip, fail: also what stops a test that takes too long).
    return any(kind.__module__.split(".")[0] == "_pytest" for kind in type(error).__mro__)


def describe_error(error: BaseException) -> str:
    """Return type and message of an exception in one line that is the same in every run.

    Of a `TrackerError` the message alone: it was written to be read.
    """
    message = " ".join(message_of(error).split())
    if not isinstance(error, TrackerError):
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    # An address is another one in the next run, and reports are compared byte by byte.
    return shortened(encodable(ADDRESS.sub("0x...", message)), _LONGEST_REASON)


@contextmanager
def as_user_error(what: str) -> Iterator[None]:
    """Turn an exception of the user's code into a `UserError`: what failed, and where."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, UserError) or passes_through(error):
            raise
        raise UserError(f"{what}: {cause_of(error)}") from error


def cause_of(error: BaseException) -> str:
    """Return type, message and innermost place of an exception in the user's code."""
    return f"{type(error).__name__}: {message_of(error)}{raised_at(error)}"


def raised_at(error: BaseException) -> str:
    """Return the innermost place of an exception, to be put after its message."""
    # The first frame is that of whoever called the user's code, which need not have been reached.
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def raised_in(error: BaseException) -> str:
    """Return the innermost line outside this package that an exception came through.

    Without the folder: reports are compared byte by byte. ``""`` for a `TrackerError`, whose
    message says all, and where there is no such line.
    """
    if isinstance(error, TrackerError):
        return ""
    outside = [
        f" ({path.name}:{line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _PACKAGE not in (path := Path(frame.f_code.co_filename)).parents
    ]
    return outside[-1] if outside else ""


#: Impurities may differ by so much: padding changes the order of float additions.
_TOLERANCE = 1e-3
#: Where trackers keep the module that has a training mode; adapters, what they adapt.
_INNER = ("model", "module", "network", "net", "wrapped")


class TrackerRaisedError(TrackerError):
    """The tracker raised something of its own, which is the cause of this error."""


def ask_raw(
    tracker: Tracker, batch: Sequence[Context], outcome: OutcomeKind = "state"
) -> list[object]:
    """Return what a tracker answers to a batch, one unchecked answer for each context.

    It is given the batch itself, and may take contexts off it or sort it. A `TrackerRaisedError`:
    it raised; another `TrackerError`: it said itself that it failed, or returned no sequence of so
    many.
    """
    # Counted before: a tracker may take contexts off the list.
    expected = len(batch)
    try:
        answers = as_list(tracker.predict(batch), expected)
    except (UserError, TrackerError):
        raise
    except BaseException as error:
        if passes_through(error):
            raise
        raise TrackerRaisedError(
            f"{KINDS[outcome].words.who} raised {describe_error(error)}"
        ) from error
    answers, _ = ask_malformed_again(tracker, batch, answers)
    for answer in answers:
        if isinstance(answer, GivenUpError):
            raise answer
    return answers


class AskedAgain(NamedTuple):
    """The answers to a batch, and how many malformed ones came before each or stand there."""

    answers: list[object]
    malformed: list[int]


def ask_malformed_again(
    tracker: Tracker, batch: Sequence[Context], answers: Sequence[object], retries: int = RETRIES
) -> AskedAgain:
    """Ask for those contexts of a batch again whose answers are a `MalformedAnswerError`.

    All that are left are asked together, ``retries`` times at most. What ends the run passes
    through with the answers that can be read.
    """
    found = list(answers)
    counts = [int(isinstance(answer, MalformedAnswerError)) for answer in found]
    for _ in range(retries):
        left = [place for place, one in enumerate(found) if isinstance(one, MalformedAnswerError)]
        if not left:
            break
        try:
            again = as_list(tracker.predict([batch[place] for place in left]), len(left))
        except (Interrupted, Overrun) as stopped:
            for number, answer in stopped.answers.items():
                found[left[number]] = answer
            read = (n for n, one in enumerate(found) if not isinstance(one, MalformedAnswerError))
            stopped.answers = {place: found[place] for place in read}
            raise
        except BaseException as error:
            if passes_through(error):
                raise
            break  # What it wrote first is what is told.
        for place, answer in zip(left, again, strict=True):
            found[place] = answer
            counts[place] += isinstance(answer, MalformedAnswerError)
    return AskedAgain(found, counts)


def ask(
    tracker: Tracker,
    batch: Sequence[Context],
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> list[Prediction]:
    """Return one sound prediction for each context, in the normalisation of the data."""
    answers = ask_raw(tracker, list(batch), outcome)
    return check_predictions(answers, len(answers), normalisation, outcome)


def in_training_mode(tracker: object) -> bool:
    """Whether the tracker, what it adapts, or a module they keep says that it is training."""
    things = (tracker, declared(tracker, "wrapped"))
    inner = (declared(thing, name) for thing in things for name in _INNER)
    # Compared by identity: a method called ``training`` is no mode.
    return any(declared(thing, "training") is True for thing in (*things, *inner))


def difference(
    one: Sequence[Prediction], other: Sequence[Prediction], names: Iterable[str] | None = None
) -> str:
    """Describe the first difference between two predictions of a context, or return ``""``."""
    called = names if names is not None else (f"context {at + 1}" for at in range(len(one)))
    for name, left, right in zip(called, one, other, strict=True):
        if changes := diff_states(left.state, right.state):
            return f"{name}: {shortened(str(changes[0]), _LONGEST_REASON)}"
        before, after = left.impurities or {}, right.impurities or {}
        for slot in sorted({*before, *after}):
            was, now = before.get(slot, 0.0), after.get(slot, 0.0)
            if abs(was - now) > _TOLERANCE:
                return f"{name}, impurity of {slot}: {was:.4f} and {now:.4f}"
    return ""
