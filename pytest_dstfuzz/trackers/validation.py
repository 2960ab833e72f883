"""Requests to a tracker within a deadline, checks of its answers, and the preflight."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, TypeVar

from pytest_dstfuzz.dialogue.calls import REPLY, TOOL_CALLS, Outcome, OutcomeKind, reply_outcome
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Ontology, diff_states
from pytest_dstfuzz.dialogue.normalise import normalise_slot, normalise_state, normalise_value
from pytest_dstfuzz.errors import (
    GivenUpError,
    MalformedAnswerError,
    NoAnswerError,
    OutOfReachError,
    Overrun,
    TrackerError,
    UserError,
    did_you_mean,
    message_of,
    passes_through,
)
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import ADDRESS, format_count, shorten_text
from pytest_dstfuzz.trackers.tracker import (
    VOTE,
    BatchInterrupt,
    Disagreement,
    Prediction,
    Tracker,
    UnloadedTracker,
    encodable,
    impurity_problem,
    is_repeatable,
    kind_of,
    read_attribute,
    reply_problem,
    state_problem,
)

__all__ = ["preflight"]


class Deadline:
    """The time limit of a run, shared by all code that calls the tracker or waits for answers.

    Args:
        seconds: the time from the start to the end, or ``None`` for no end.
        what: the name of the limit, such as "the budget of 20 seconds".
        spent: seconds that had passed before this process began to count.
        clock: monotonic clock in seconds.
    """

    def __init__(
        self,
        seconds: float | None = None,
        what: str = "",
        *,
        spent: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = math.inf if seconds is None else seconds - spent
        self._what = what
        self._clock = clock
        self._started: float | None = None
        #: An earlier end for a part of the run, and the name of that limit.
        self._closer: tuple[float, str] | None = None
        #: Whether a call stopped the timer of `end_at_deadline`, as ``signal.alarm(0)`` does.
        self.stopped = False

    def start(self) -> float:
        """Start the clock if it is not running. Any other use of the deadline also starts it."""
        if self._started is None:
            self._started = self._clock()
        return self._started

    @property
    def left(self) -> float:
        """Seconds until the end. 0 after the end, ``inf`` without a time limit."""
        return max(0.0, self._end()[0] - self._clock())

    @property
    def ended(self) -> str:
        """A message such as "the budget of 20 seconds ended", or ``""`` before the end."""
        end, what = self._end()
        return f"{what} ended" if self._clock() >= end else ""

    @contextmanager
    def within(self, seconds: float, what: str) -> Iterator[None]:
        """Set an additional limit for a part of the run. The earlier end applies."""
        self._closer = self._clock() + seconds, what
        try:
            yield
        finally:
            self._closer = None

    def _end(self) -> tuple[float, str]:
        end = self.start() + self._seconds, self._what
        closer = self._closer
        return end if closer is None or end[0] <= closer[0] else closer


#: Seconds of grace after the deadline, in which a call that waits for a service ends by itself.
_GRACE: Final = 0.5
#: Seconds until the exception is raised again if a tracker caught it.
_AGAIN: Final = 0.25


def can_end_calls() -> bool:
    """Return whether a hanging call of this thread can be interrupted."""
    return sys.platform != "win32" and threading.current_thread() is threading.main_thread()


@contextmanager
def _watch(seconds: float, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Send SIGALRM to this thread after some seconds and then again, while the handler is set."""
    assert sys.platform != "win32"  # noqa: S101 - the caller has checked it
    over, thread_id = threading.Event(), threading.get_ident()

    def ring() -> None:
        wait = seconds
        while not over.wait(wait):
            # Without a handler, the signal would end the process. With another one, it would be
            # taken for an alarm of the tracker.
            if signal.getsignal(signal.SIGALRM) is handler:
                signal.pthread_kill(thread_id, signal.SIGALRM)
            wait = _AGAIN

    thread = threading.Thread(target=ring, name="dstfuzz deadline", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def end_at_deadline(deadline: Deadline | None) -> Iterator[None]:
    """Raise an `Overrun` inside the block soon after a deadline, if the platform allows it.

    Other timers of the process, such as pytest-timeout's, continue afterwards. If another timer
    expires before the deadline, the block runs without this limit. A tracker with alarms of its own
    stops the timer. From then on, a thread sends the signal as well.
    """
    if deadline is None or not math.isfinite(deadline.left) or not can_end_calls():
        yield
        return
    assert sys.platform != "win32"  # noqa: S101 - can_end_calls() implies it
    seconds = deadline.left + _GRACE
    theirs, began = signal.getitimer(signal.ITIMER_REAL), time.monotonic()
    handler = signal.getsignal(signal.SIGALRM)
    if 0.0 < theirs[0] <= seconds or handler is None:
        yield
        return
    inside = True

    def end(_: int, __: FrameType | None) -> None:
        # The clock of a test may stand still.
        if inside and deadline.left <= 0.0:
            raise Overrun

    signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        try:
            with _watch(seconds, end) if deadline.stopped else nullcontext():
                yield
        finally:
            inside = False
    finally:
        deadline.stopped |= signal.getitimer(signal.ITIMER_REAL)[1] != _AGAIN
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        if theirs[0]:
            left = theirs[0] - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), theirs[1])


_LONGEST_REASON = 300
#: Default number of retries for a malformed answer.
RETRIES: Final = 4
_REPLIES = "; if the system replies to users, add --dst-outcome=reply"
#: The directory of this package.
_PACKAGE = Path(__file__).parents[1]


def check_predictions(
    answered: object,
    expected: int,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> list[Prediction]:
    """Return the result of ``Tracker.predict`` as ``expected`` valid predictions."""
    return [
        check_prediction(answer, normalisation=normalisation, outcome=outcome)
        for answer in as_list(answered, expected)
    ]


def as_list(answered: object, expected: int) -> list[object]:
    """Return the predictions of a batch as a list, or raise a `TrackerError` if it is malformed."""
    if isinstance(answered, str | bytes | Mapping) or not isinstance(answered, Iterable):
        raise TrackerError(
            f"the tracker returned {kind_of(answered)} instead of a sequence of predictions"
        )
    answers = list(answered)
    if len(answers) != expected:
        raise TrackerError(
            f"the tracker returned {format_count(len(answers), 'prediction')} "
            f"for {format_count(expected, 'context')}"
        )
    return answers


def check_prediction(
    answered: object,
    ontology: Ontology | None = None,
    *,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> Prediction:
    """Return the answer to one context as a prediction. Its ``state`` is the tested part.

    The tested part is the belief state in the normalisation of the data, the reply under the path
    ``reply``, or the tool calls as in `calls_outcome`. The answer may be a prediction, a mapping
    slot -> value (a prediction without probabilities), or, if replies are tested, a text. If the
    ontology is ``None`` or not complete, every slot is accepted.

    Raises:
        MalformedAnswerError: the value does not have the form of an answer.
        TrackerError: the answer is itself a `TrackerError`, or has an unknown slot or an invalid
            impurity.
    """
    if isinstance(answered, TrackerError):
        raise TrackerError(describe_error(answered))
    if outcome == REPLY:
        return _checked_reply(answered)
    if outcome == TOOL_CALLS:
        return _checked_calls(answered)
    raw = _readable_state(answered)
    impurities = answered.impurities if isinstance(answered, Prediction) else None
    try:
        state = _normalised(raw, normalisation)
        problem = unknown_slot(state, ontology) or impurity_problem(impurities)
    except BaseException as error:
        if passes_through(error):
            raise
        # The tracker's mapping may compute its items, and so may raise.
        raise _unreadable(raw, error) from error
    if problem:
        raise TrackerError(f"the tracker returned {problem}")
    if isinstance(answered, Prediction) and state is raw:
        return answered
    return Prediction(state, impurities)


def is_malformed(answered: object, outcome: OutcomeKind = "state") -> bool:
    """Return whether a value lacks the form of an answer, so that a retry makes sense."""
    if isinstance(answered, TrackerError):
        return isinstance(answered, MalformedAnswerError)
    try:
        if outcome == "state":
            _readable_state(answered)
        else:
            check_prediction(answered, outcome=outcome)
    except MalformedAnswerError:
        return True
    return False


def _readable_state(answered: object) -> Mapping[str, str]:
    """Return the belief state of an answer, with texts as its values."""
    if not isinstance(answered, Prediction | Mapping):
        raise MalformedAnswerError(
            f"the tracker returned {kind_of(answered)} instead of a Prediction or a mapping "
            f"slot -> value{_REPLIES if isinstance(answered, str) else ''}"
        )
    raw = answered.state if isinstance(answered, Prediction) else answered
    try:
        problem = state_problem(raw)
    except BaseException as error:
        if passes_through(error):
            raise
        raise _unreadable(raw, error) from error
    if problem:
        raise MalformedAnswerError(f"the tracker returned {problem}")
    return raw


def _unreadable(raw: object, error: BaseException) -> MalformedAnswerError:
    return MalformedAnswerError(
        f"the tracker returned {kind_of(raw)} that cannot be read: {describe_error(error)}"
    )


def _checked_reply(answered: object) -> Prediction:
    """Return a prediction that has only the reply of a system."""
    text = answered.reply if isinstance(answered, Prediction) else answered
    if text is None and isinstance(answered, Prediction) and answered.state:
        text = answered.state
    if isinstance(text, Mapping):
        raise MalformedAnswerError(
            f"the bot returned {kind_of(text)} instead of a text as the reply; if it is "
            "a tracker of belief states, leave --dst-outcome=reply out"
        )
    if problem := reply_problem(text):
        raise MalformedAnswerError(f"the bot returned {problem}")
    reply = reply_outcome(str(text))
    return Prediction(reply, reply=reply[REPLY])


def _checked_calls(answered: object) -> Prediction:
    """Return a prediction that has only the calls of an assistant."""
    calls = answered.calls if isinstance(answered, Prediction) else answered
    if not isinstance(calls, Mapping):
        raise MalformedAnswerError(
            f"the assistant returned {kind_of(answered)} instead of tool calls: a message as in "
            "OpenAI's API, or a Prediction with calls"
        )
    if problem := state_problem(calls):
        raise MalformedAnswerError(f"the assistant returned {problem}")
    outcome = calls if isinstance(calls, Outcome) else Outcome(calls)
    return Prediction(outcome, calls=outcome)


def _normalised(state: Mapping[str, str], normalisation: str) -> BeliefState:
    """Return a state in the normalisation of the data. A canonical state is not rebuilt.

    A campaign calls this for every prediction. A canonical state costs two cached look-ups per
    slot.
    """
    for slot, value in state.items():
        if (
            normalise_slot(slot, normalisation) != slot
            or normalise_value(slot, value, normalisation) != value
        ):
            return normalise_state(state, normalisation)
    return state if isinstance(state, BeliefState) else BeliefState(state)


def unknown_slot(state: Mapping[str, str], ontology: Ontology | None) -> str:
    """Return a description of a slot that a complete ontology lacks, or ``""``."""
    if ontology is None or not ontology.complete:
        return ""
    for slot in state:
        if slot not in ontology.values:
            hint = did_you_mean(slot, ontology.slots, inside=True)
            return f"the slot {slot!r}, which {ontology.source} does not have{hint}"
    return ""


def describe_error(error: BaseException) -> str:
    """Return the type and message of an exception in one line. It is equal in every run.

    For a `TrackerError`, return only the message, which is written for users.
    """
    message = " ".join(message_of(error).split())
    if not isinstance(error, TrackerError):
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    # Memory addresses change from run to run, but reports are compared byte by byte.
    return shorten_text(encodable(ADDRESS.sub("0x...", message)), _LONGEST_REASON)


@contextmanager
def as_user_error(what: str) -> Iterator[None]:
    """Convert an exception of the user's code to a `UserError` with its cause and place."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, UserError) or passes_through(error):
            raise
        raise UserError(f"{what}: {cause_of(error)}") from error


def cause_of(error: BaseException) -> str:
    """Return type, message and innermost place of an exception in the user's code."""
    return f"{type(error).__name__}: {message_of(error)}{find_error_place(error)}"


def find_error_place(error: BaseException) -> str:
    """Return the innermost place of an exception, to add to its message."""
    # The first frame is our own, because the user's code may not have been reached.
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def find_own_line(error: BaseException) -> str:
    """Return the innermost line outside of this package that an exception passed through.

    The directory is left out, because reports are compared byte by byte. Return ``""`` if there is
    no such line, or for a `TrackerError`, whose message is sufficient.
    """
    if isinstance(error, TrackerError):
        return ""
    outside = [
        f" ({path.name}:{line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _PACKAGE not in (path := Path(frame.f_code.co_filename)).parents
    ]
    return outside[-1] if outside else ""


#: Tolerated difference of impurities: padding changes the order of float additions.
_TOLERANCE = 1e-3
#: Attributes that may hold the module with the training mode. Adapters use ``wrapped``.
_INNER = ("model", "module", "network", "net", "wrapped")


class TrackerRaisedError(TrackerError):
    """The tracker raised an exception of another type, which is the cause of this error."""


def ask_raw(
    tracker: Tracker, batch: Sequence[Context], outcome: OutcomeKind = "state"
) -> list[object]:
    """Return one unchecked answer of a tracker for each context of a batch.

    The tracker receives the original list of contexts, and may modify the list.

    Raises:
        TrackerRaisedError: the tracker raised an exception.
        TrackerError: the tracker raised this error, or did not return one answer per context.
    """
    # Copied first, because a tracker may remove contexts from the list.
    asked = list(batch)
    try:
        answers = as_list(tracker.predict(batch), len(asked))
    except (UserError, TrackerError):
        raise
    except BaseException as error:
        if passes_through(error):
            raise
        raise TrackerRaisedError(
            f"{KINDS[outcome].words.who} raised {describe_error(error)}"
        ) from error
    answers, _ = ask_malformed_again(tracker, asked, answers, outcome=outcome)
    for answer in answers:
        if isinstance(answer, GivenUpError):
            raise answer
    return answers


class AskedAgain(NamedTuple):
    """The answers to a batch, and the number of malformed answers to each context."""

    answers: list[object]
    malformed: list[int]


def ask_malformed_again(
    tracker: Tracker,
    batch: Sequence[Context],
    answers: Sequence[object],
    retries: int = RETRIES,
    outcome: OutcomeKind = "state",
) -> AskedAgain:
    """Repeat the request for contexts with malformed answers, see `is_malformed`.

    All such contexts are sent together, at most ``retries`` times. If an interrupt or the deadline
    ends the run, the exception propagates with the well-formed answers.
    """
    found = list(answers)
    counts = [int(is_malformed(answer, outcome)) for answer in found]
    left = [place for place, count in enumerate(counts) if count]
    for _ in range(retries):
        if not left:
            break
        try:
            again = as_list(tracker.predict([batch[place] for place in left]), len(left))
        except (BatchInterrupt, Overrun) as stopped:
            for number, answer in stopped.answers.items():
                found[left[number]] = answer
            read = (n for n, one in enumerate(found) if not is_malformed(one, outcome))
            stopped.answers = {place: found[place] for place in read}
            raise
        except BaseException as error:
            if passes_through(error):
                raise
            break  # Report the first malformed answers.
        for place, answer in zip(left, again, strict=True):
            found[place] = answer
            counts[place] += is_malformed(answer, outcome)
        left = [place for place in left if is_malformed(found[place], outcome)]
    return AskedAgain(found, counts)


def ask(
    tracker: Tracker,
    batch: Sequence[Context],
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> list[Prediction]:
    """Return one valid prediction for each context, in the normalisation of the data."""
    answers = ask_raw(tracker, list(batch), outcome)
    return check_predictions(answers, len(answers), normalisation, outcome)


def in_training_mode(tracker: object) -> bool:
    """Return whether a tracker, its wrapped object, or one of their modules is in training mode."""
    things = (tracker, read_attribute(tracker, "wrapped"))
    inner = (read_attribute(thing, name) for thing in things for name in _INNER)
    # Compare by identity, because ``training`` may be a method.
    return any(read_attribute(thing, "training") is True for thing in (*things, *inner))


def difference(
    one: Sequence[Prediction], other: Sequence[Prediction], names: Iterable[str] | None = None
) -> str:
    """Describe the first difference between predictions for the same contexts, or return ``""``."""
    called = names if names is not None else (f"context {at + 1}" for at in range(len(one)))
    for name, left, right in zip(called, one, other, strict=True):
        if changes := diff_states(left.state, right.state):
            return f"{name}: {shorten_text(str(changes[0]), _LONGEST_REASON)}"
        before, after = left.impurities or {}, right.impurities or {}
        for slot in sorted({*before, *after}):
            was, now = before.get(slot, 0.0), after.get(slot, 0.0)
            if abs(was - now) > _TOLERANCE:
                return f"{name}, impurity of {slot}: {was:.4f} and {now:.4f}"
    return ""


T = TypeVar("T")

#: Number of contexts that the preflight predicts: enough for a batch of mixed lengths.
PREFLIGHT_CONTEXTS = 8
#: The order for predictions one by one. For three to eight contexts, it is different from both the
#: given and the reverse order. For two contexts, it is backwards.
_MIXED = (1, 6, 3, 0, 5, 2, 7, 4)


def preflight(
    tracker: Tracker,
    contexts: Sequence[Context],
    *,
    ontology: Ontology | None = None,
    deadline: Deadline | None = None,
    repeatable: bool | None = None,
    outcome: OutcomeKind = "state",
    spend: Callable[[int], AbstractContextManager[None]] | None = None,
) -> Disagreement | None:
    """Send a small batch in several orders. Raise an error if the tracker cannot be tested.

    The first eight contexts are sent one by one, as a batch, and as a batch in reverse. A campaign
    sorts contexts by length. A tracker that keeps state from the previous turn would then give
    wrong answers. ``spend`` receives the number of contexts of each request, and returns a context
    manager for the request.

    Return how often the answers to the same context differed. They may only differ if the tracker
    declares that it is not repeatable.

    Raises:
        OutOfReachError: the time was over, or the tracker stopped answering.
        NoAnswerError: the tracker has no valid answer to any of the contexts.
        UserError: the tracker is in training mode, raises, returns malformed answers, is not
            deterministic, or answers differently in another order or batch.
    """
    if isinstance(tracker, UnloadedTracker):
        tracker.load()
    refuse_training_mode(tracker)
    repeatable = is_repeatable(tracker, repeatable, outcome)
    normalisation = "plain" if ontology is None else ontology.normalisation
    asker = _Asker(tracker, normalisation, deadline or Deadline(), outcome, spend)
    # A reply has no slots.
    ontology = ontology if KINDS[outcome].has_slots else None
    batch, singles = _answered_alone(asker, contexts[:PREFLIGHT_CONTEXTS])
    if not batch:
        return None
    if not repeatable:
        return _disagreement(asker, batch, singles, ontology)
    first = asker.sound(batch)
    for prediction in first:
        if problem := unknown_slot(prediction.state, ontology):
            raise UserError(f"{asker.who} cannot be tested: it returned {problem}")
    if moved := difference(first, asker.sound(batch[::-1])[::-1]):
        again = difference(first, asker.sound(batch))
        raise UserError(_changes_its_mind(asker.who, moved, again))
    if moved := difference(first, singles):
        raise UserError(
            f"{asker.who}'s answer depends on the batch: a context gets one answer alone and "
            f"another in a batch of {len(batch)} ({moved}). Mask the padding, and keep no data "
            "between contexts."
        )
    return None


def _changes_its_mind(who: str, moved: str, again: str) -> str:
    """Return the message for different answers to a reversed batch.

    ``moved`` describes the difference. ``again`` describes the difference between two answers in
    the same order, or is ``""``.
    """
    if not again:
        return (
            f"{who}'s answer depends on earlier contexts: the same batch in reverse order gave "
            f"different answers ({moved}). Keep no data between contexts. An object with reset() "
            "and update(system, user) may keep its state."
        )
    return (
        f"{who} is not deterministic: the same batch predicted twice gave different "
        f"answers ({again}). Switch off dropout and sampling, and seed random numbers. If that is "
        f"not possible, {VOTE}."
    )


@contextmanager
def bound_time(deadline: Deadline, seconds: float) -> Iterator[None]:
    """Limit the time to make and test a tracker in this process.

    Raises:
        OutOfReachError: the time was over.
    """
    option = "dst_preflight_seconds; dstfuzz: --preflight-seconds"
    limit = f"the limit of {seconds:g} s for testing the tracker ({option})"
    with deadline.within(seconds, limit):
        try:
            with end_at_deadline(deadline):
                yield
        except Overrun:
            raise OutOfReachError(
                f"the tracker was not tested: it had not answered when {deadline.ended}"
            ) from None


class _Asker(NamedTuple):
    """Requests to a tracker before a deadline. Any failure raises an error against the tracker."""

    tracker: Tracker
    normalisation: str
    deadline: Deadline
    outcome: OutcomeKind
    spend: Callable[[int], AbstractContextManager[None]] | None

    @property
    def who(self) -> str:
        """The name of the tracker in messages."""
        return KINDS[self.outcome].words.who

    def sound(self, batch: list[Context]) -> list[Prediction]:
        """Return a valid prediction for each context."""
        way = partial(ask, normalisation=self.normalisation, outcome=self.outcome)
        return self._asked(way, batch)

    def raw(self, batch: list[Context]) -> list[object]:
        """Return an unchecked answer for each context."""
        return self._asked(partial(ask_raw, outcome=self.outcome), batch)

    def _asked(
        self, way: Callable[[Tracker, list[Context]], list[T]], batch: list[Context]
    ) -> list[T]:
        if ended := self.deadline.ended:
            raise OutOfReachError(f"{self.who} was not tested: {ended}")
        try:
            with nullcontext() if self.spend is None else self.spend(len(batch)):
                return way(self.tracker, list(batch))
        except TrackerRaisedError as error:
            cause = error.__cause__ or error
            some = (
                "a clean context" if len(batch) == 1 else f"a batch of {len(batch)} clean contexts"
            )
            what = f"{describe_error(cause)}{find_error_place(cause)}"
            if isinstance(cause, AttributeError | TypeError):
                what += str(read_attribute(self.tracker, "asked_with", ""))
            raise UserError(f"{self.who} raised an exception on {some}: {what}") from cause
        except GivenUpError as error:
            raise OutOfReachError(f"{self.who} was not tested: {error}") from error
        except (UserError, TrackerError) as error:
            raise UserError(f"{self.who} cannot be tested: {error}") from error


def _disagreement(
    asker: _Asker, batch: list[Context], singles: list[Prediction], ontology: Ontology | None
) -> Disagreement:
    """Request all answers twice more. Count the contexts with different answers.

    A context is left out if any of its requests failed, because such a tracker may fail sometimes.
    """
    rounds: list[list[object]] = [[*singles], asker.raw(batch), asker.raw(batch[::-1])[::-1]]
    answered, differed, failure = 0, 0, ""
    for answers in zip(*rounds, strict=True):
        try:
            states = [
                check_prediction(
                    answer, ontology, normalisation=asker.normalisation, outcome=asker.outcome
                ).state
                for answer in answers
            ]
        except TrackerError as error:
            failure = failure or str(error)
            continue
        answered += 1
        differed += any(state != states[0] for state in states)
    if not answered:
        raise UserError(f"{asker.who} cannot be tested: {failure}")
    return Disagreement(contexts=answered, answers=len(rounds), differed=differed)


def refuse_training_mode(tracker: Tracker) -> None:
    """Raise an error if a tracker declares training mode. Do not call the tracker."""
    if in_training_mode(tracker):
        raise UserError(
            "the tracker is in training mode (dropout changes its answers): call .eval() first"
        )


def _answered_alone(
    asker: _Asker, contexts: Sequence[Context]
) -> tuple[list[Context], list[Prediction]]:
    """Return the contexts that the tracker can answer, and the answers.

    The contexts are sent one by one in a mixed order, and returned in their original order. A
    tracker that fails on some contexts can be tested, and the campaign reports these contexts. A
    tracker without any answer cannot be tested.
    """
    answers: dict[int, Prediction] = {}
    failure: UserError | None = None
    for place in (place for place in _MIXED if place < len(contexts)):
        try:
            (answers[place],) = asker.sound([contexts[place]])
        except OutOfReachError:
            raise
        except UserError as error:
            failure = failure or error
    if failure is not None and not answers:
        why, advice = str(failure), str(read_attribute(asker.tracker, "unless_answered", ""))
        raise NoAnswerError(why if advice in why else why + advice) from failure.__cause__
    return [contexts[place] for place in sorted(answers)], [answers[p] for p in sorted(answers)]
