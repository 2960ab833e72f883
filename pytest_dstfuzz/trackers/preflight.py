"""A few predictions before a run: refuse a tracker whose results would mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

from pytest_dstfuzz.dialogue.dialogues import Context, Ontology
from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.errors import (
    GivenUpError,
    NoAnswerError,
    OutOfReachError,
    TrackerError,
    UserError,
)
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.trackers.deadline import Deadline, Overrun, ended_with
from pytest_dstfuzz.trackers.tracker import (
    VOTE,
    Disagreement,
    Prediction,
    Tracker,
    declared,
    is_repeatable,
)
from pytest_dstfuzz.trackers.unloaded import UnloadedTracker
from pytest_dstfuzz.trackers.validation import (
    TrackerRaisedError,
    ask,
    ask_raw,
    check_prediction,
    describe_error,
    difference,
    in_training_mode,
    raised_at,
    unknown_slot,
)

__all__ = ["preflight"]

T = TypeVar("T")

#: How many contexts the preflight predicts; enough to fill a batch of mixed lengths.
PREFLIGHT_CONTEXTS = 8
#: The order in which contexts are predicted one by one: neither forwards nor backwards,
#: however many of the eight there are (of two, backwards).
_MIXED = (1, 6, 3, 0, 5, 2, 7, 4)


def preflight(
    tracker: Tracker,
    contexts: Sequence[Context],
    *,
    ontology: Ontology | None = None,
    deadline: Deadline | None = None,
    repeatable: bool | None = None,
    outcome: OutcomeKind = "state",
    spend: Callable[[int], None] | None = None,
) -> Disagreement | None:
    """Predict a small batch twice and one by one, and refuse a tracker that cannot be tested.

    Each time in another order, none of them but the first that of the dialogue: a run asks in the
    order of length, where state that is left from the turn before does harm. The first eight
    contexts are used. ``spend`` is told how many contexts are about to be asked for.

    Returned is how often a tracker that need not be repeatable disagreed with itself: all others
    are refused where they do.

    Raises:
        OutOfReachError: its time was over, or nobody answered any more.
        NoAnswerError: it has a sound answer to none of the contexts.
        UserError: the tracker is in training mode, raises, returns nonsense, is not
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
            f"{asker.who}'s answer depends on the batch: a context alone and the same context "
            f"among {len(batch)} gave different answers ({moved}). Mask the padding, and "
            "keep nothing from one context to the next."
        )
    return None


def _changes_its_mind(who: str, moved: str, again: str) -> str:
    """Say why a batch asked for backwards gave other answers; the very same one did ``again``."""
    if not again:
        return (
            f"{who}'s answer depends on what it was asked before: the same batch "
            f"backwards gave different answers ({moved}). Keep nothing from one context to "
            "the next; an object with reset() and update(system, user) may keep state."
        )
    return (
        f"{who} is not deterministic: the same batch predicted twice gave different "
        f"answers ({again}). Switch off dropout and sampling, and seed what is random. Of a "
        f"tracker that cannot repeat itself, {VOTE}."
    )


@contextmanager
def bounded(deadline: Deadline, seconds: float) -> Iterator[None]:
    """Let making and testing a tracker of this process end in time, by an `OutOfReachError`."""
    option = "dst_preflight_seconds; dstfuzz: --preflight-seconds"
    with deadline.within(seconds, f"the {seconds:g} seconds for testing the tracker ({option})"):
        try:
            with ended_with(deadline):
                yield
        except Overrun:
            raise OutOfReachError(
                f"the tracker was not tested: it had not come back when {deadline.ended}"
            ) from None


class _Asker(NamedTuple):
    """Asks a tracker as long as there is time; whatever goes wrong is a reason to refuse it."""

    tracker: Tracker
    normalisation: str
    deadline: Deadline
    outcome: OutcomeKind
    spend: Callable[[int], None] | None

    @property
    def who(self) -> str:
        """What messages call the tracker."""
        return KINDS[self.outcome].words.who

    def sound(self, batch: list[Context]) -> list[Prediction]:
        """Return a sound prediction for each context."""
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
        if self.spend is not None:
            self.spend(len(batch))
        try:
            return way(self.tracker, list(batch))
        except TrackerRaisedError as error:
            cause = error.__cause__ or error
            some = (
                "a clean context" if len(batch) == 1 else f"a batch of {len(batch)} clean contexts"
            )
            what = f"{describe_error(cause)}{raised_at(cause)}"
            if isinstance(cause, AttributeError | TypeError):
                what += str(declared(self.tracker, "asked_with", ""))
            raise UserError(f"{self.who} raised on {some}: {what}") from cause
        except GivenUpError as error:
            raise OutOfReachError(f"{self.who} was not tested: {error}") from error
        except (UserError, TrackerError) as error:
            raise UserError(f"{self.who} cannot be tested: {error}") from error


def _disagreement(
    asker: _Asker, batch: list[Context], singles: list[Prediction], ontology: Ontology | None
) -> Disagreement:
    """Ask twice more, and count the contexts whose answers are not all the same.

    One that was not answered each time is left out: such a tracker may fail now and then.
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
    """Refuse a tracker whose dropout is at work, by what it says; it is not asked anything."""
    if in_training_mode(tracker):
        raise UserError(
            "the tracker is in training mode (dropout changes its answers): call .eval() first"
        )


def _answered_alone(
    asker: _Asker, contexts: Sequence[Context]
) -> tuple[list[Context], list[Prediction]]:
    """Return the contexts that the tracker has an answer to, and the answers.

    They are asked for in a mixed order, and returned in their own. A tracker that fails
    on some contexts can be tested: the campaign reports those. One that fails on every
    one of them cannot.
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
        why, advice = str(failure), str(declared(asker.tracker, "unless_answered", ""))
        raise NoAnswerError(why if advice in why else why + advice) from failure.__cause__
    return [contexts[place] for place in sorted(answers)], [answers[p] for p in sorted(answers)]
