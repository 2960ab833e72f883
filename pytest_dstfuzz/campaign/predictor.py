"""Calls of the tracker within a budget, in full batches. Each context is requested once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure, check_answer
from pytest_dstfuzz.campaign.cache import PredictionCache
from pytest_dstfuzz.campaign.deciding import ONCE, Decider
from pytest_dstfuzz.campaign.results import BatchDone, BudgetReached, ErrorSeen, Listener, ignore
from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context, Ontology, in_own_names
from pytest_dstfuzz.errors import (
    ChangedTrackerError,
    GivenUpError,
    Overrun,
    UserError,
    passes_through,
)
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.trackers.adapting import arriving
from pytest_dstfuzz.trackers.tracker import BatchInterrupt, Tracker, Usage, fingerprint_of, usage_of
from pytest_dstfuzz.trackers.validation import (
    RETRIES,
    Deadline,
    as_list,
    ask_malformed_again,
    describe_error,
    end_at_deadline,
    find_own_line,
    is_malformed,
)

__all__ = ["Predictor"]


#: Minimum number of contexts for a reliable measurement of the speed.
_ENOUGH_TO_MEASURE = 64
#: Minimum number of seconds that a context is assumed to take.
_FASTEST = 1e-6
#: How often the preflight requests each of its contexts.
_CHECKED_TIMES = 3
T = TypeVar("T")
_UNLIMITED = BudgetSettings()
#: The advice if a limit of tokens or cost cannot be enforced.
_OTHERS = "Use --dst-max-calls or --dst-max-seconds"


class Budget:
    """Tracks the used and the remaining resources of a run.

    Seconds count from the first use or from the start of `deadline`. ``spent_seconds`` is the time
    of earlier parts of the run.
    """

    def __init__(
        self,
        limits: BudgetSettings = _UNLIMITED,
        *,
        clock: Callable[[], float] = time.monotonic,
        spent_seconds: float = 0.0,
    ) -> None:
        seconds = limits.max_seconds
        what = "" if seconds is None else f"the budget of {seconds:g} seconds"
        #: The end of the allowed time. Trackers that wait for a service receive it.
        self.deadline = Deadline(seconds, what, spent=spent_seconds, clock=clock)
        #: The reason if the budget was stopped early, else ``""``.
        self.stopped = ""
        #: Suffix of the reason if the deadline interrupted a call.
        self._overrun = ""
        self._limits = limits
        self._metered: list[object] = []
        self._clock = clock
        self._started: float | None = None
        #: Sums over the timed requests: seconds times contexts, and contexts squared.
        self._weighed_seconds, self._weighed_contexts = 0.0, 0
        #: Number of contexts requested so far.
        self.calls = 0
        #: Number of additional contexts: contexts of the preflight, and contexts of failed batches
        #: that were requested again in parts.
        self.others = 0

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        most = self._limits
        limits = (most.max_seconds, most.max_calls, most.max_tokens, most.max_cost)
        return any(limit is not None for limit in limits)

    @property
    def name(self) -> str:
        """The limits in words, such as "the budget of 20 seconds"."""
        most = self._limits
        limits = (
            (most.max_seconds, "seconds"),
            (most.max_calls, "calls"),
            (most.max_tokens, "tokens"),
            (most.max_cost, "(max-cost)"),
        )
        return f"the budget of {' and '.join(f'{n:,.12g} {what}' for n, what in limits if n)}"

    @property
    def usage(self) -> Usage | None:
        """The usage so far of trackers that count tokens. ``None`` if none does."""
        found = [usage for one in self._metered if (usage := usage_of(one)) is not None]
        return sum(found, Usage()) if found else None

    def watch(self, tracker: object) -> None:
        """Count the usage of a tracker, if the tracker counts tokens.

        Raises:
            UserError: tokens or cost are limited, but the tracker or its service does not count
                them.
        """
        usage = usage_of(tracker)
        # Compare by identity, because a user's tracker may be equal to another one.
        if usage is not None and all(tracker is not one for one in self._metered):
            self._metered.append(tracker)
        if self._limits.max_tokens is None and self._limits.max_cost is None:
            return
        limit = "--dst-max-tokens" if self._limits.max_tokens is not None else "--dst-max-cost"
        if usage is None:
            raise UserError(
                f"{limit} cannot be enforced: the tracker does not count tokens. {_OTHERS}"
            )
        if usage.uncounted == usage.answers > 0:
            raise UserError(
                f"{limit} cannot be enforced: the service does not report the tokens of its "
                f"answers. {_OTHERS}"
            )
        if self._limits.max_cost is not None and usage.cost is None:
            raise UserError(
                "--dst-max-cost cannot be enforced: the tracker has no prices; for a chat model "
                "(openai+http://...), set them with --dst-tracker prices=IN,OUT"
            )

    @property
    def ended(self) -> str:
        """The reason why no more contexts may be requested, or ``""``."""
        if self.stopped:
            return self.stopped
        if self.room <= 0:
            return f"the budget of {self._limits.max_calls} calls ended"
        if ended := self.deadline.ended:
            return ended + self._overrun
        for limit, used, what in self._metered_limits():
            if used >= limit:
                return f"the budget of {limit:,.12g} {what} ended"
        return ""

    @property
    def room(self) -> float:
        """Number of contexts that the limit of calls still allows; ``inf`` without a limit."""
        most = self._limits.max_calls
        return math.inf if most is None else float(most - self.calls - self.others)

    def checks(self, contexts: Sequence[T]) -> Sequence[T]:
        """Return the contexts that the preflight may request, three times each.

        The requests take at most a tenth of the maximum number of calls. If enough calls are left
        for one context, at least one is returned.
        """
        if self._limits.max_calls is None:
            return contexts
        most = self._limits.max_calls // (_CHECKED_TIMES * 10)
        return contexts[: max(most, int(self.room > _CHECKED_TIMES))]

    def spend_besides(self, contexts: int) -> None:
        """Record contexts that the run requests outside of the campaign."""
        self.others += contexts

    @contextmanager
    def besides(self, contexts: int) -> Iterator[None]:
        """Record contexts that the block requests outside of the campaign. Measure its time."""
        self.spend_besides(contexts)
        with self.timed(lambda: contexts):
            yield

    @contextmanager
    def timed(self, contexts: Callable[[], int]) -> Iterator[None]:
        """Measure the time of the block, which requests contexts.

        ``contexts`` is called after the block and returns the number of answers.
        """
        self.deadline.start()
        before = self._clock()
        try:
            yield
        finally:
            count = contexts()
            self._weighed_seconds += (self._clock() - before) * count
            self._weighed_contexts += count * count

    @property
    def seconds_each(self) -> float | None:
        """Mean seconds per context so far; ``None`` if no request was measured."""
        return self._weighed_seconds / self._weighed_contexts if self._weighed_contexts else None

    @property
    def cost_each(self) -> float | None:
        """Mean cost of an answer so far, by the prices; ``None`` if unknown."""
        usage = self.usage
        if usage is None or usage.cost is None or not usage.answers:
            return None
        return usage.cost / usage.answers

    def overrun(self) -> None:
        """Record that the deadline interrupted a call of a tracker."""
        self._overrun = " during a call of the tracker"

    def stop(self, reason: str) -> None:
        """Allow no more contexts. ``reason`` is a clause without a full stop."""
        self.stopped = self.stopped or reason

    def grant(self, wanted: int) -> int:
        """Return how many of ``wanted`` contexts may be requested now, as one batch.

        The cost of an answer is known only afterwards. Therefore the mean cost of earlier answers
        is used.
        """
        if self.ended:
            return 0
        return max(1, int(min(wanted, self.room, self._affordable())))

    def spend(self, contexts: int) -> None:
        """Count requested contexts."""
        self._elapsed()
        self.calls += contexts

    def forecast(self) -> float:
        """Return the estimated number of contexts that the budget still allows.

        If there is no limit, the result is ``inf``. While the speed is unknown, the result is a
        small number, so that a campaign does not begin more dialogues than it can finish.
        """
        left = self.room
        if self._limits.max_seconds is not None:
            elapsed = self._elapsed()
            if self.calls < _ENOUGH_TO_MEASURE or elapsed <= 0.0:
                return min(left, float(_ENOUGH_TO_MEASURE))
            left = min(left, self.calls / elapsed * self.deadline.left)
        return max(min(left, self._affordable()), 0.0)

    def guess(self, part: float = 1.0) -> float:
        """Return a rough estimate of the contexts that the budget allows.

        The estimate also uses the speed and cost of the preflight. It is ``inf`` without a limit.
        It is also ``inf`` if only seconds are limited and the speed is unknown. Since seconds are
        uncertain, only the share ``part`` of the remaining seconds counts.
        """
        left, each = min(self.room, self._affordable()), self.seconds_each
        if self._limits.max_seconds is not None and each is not None:
            left = min(left, part * self.deadline.left / max(each, _FASTEST))
        return max(left, 0.0)

    def _metered_limits(self) -> Iterator[tuple[float, float, str]]:
        """Yield limit, usage and unit for tokens, and then for cost, if they are limited."""
        usage = self.usage
        if usage is None:
            return
        if self._limits.max_tokens is not None:
            yield self._limits.max_tokens, usage.tokens, "tokens"
        if self._limits.max_cost is not None and usage.cost is not None:
            yield self._limits.max_cost, usage.cost, "(max-cost)"

    def _affordable(self) -> float:
        """Return the number of answers that the remaining tokens and money allow."""
        usage, left = self.usage, math.inf
        for limit, used, _ in self._metered_limits():
            if usage is None or not used:
                return 1.0
            left = min(left, (limit - used) / used * usage.answers)
        return left

    def _elapsed(self) -> float:
        """Return the seconds since the first use."""
        self.deadline.start()
        now = self._clock()
        if self._started is None:
            self._started = now
        return now - self._started


#: If a tracker gives no answer to this number of contexts, it is not called again. Otherwise a
#: service that is down would cost two calls for each remaining context. A tracker that has answered
#: once is always called, even if it fails on all other contexts. Otherwise results would depend on
#: the order of contexts, and so on windows and batches.
GIVE_UP_AFTER = 256
#: Number of final tries with contexts of all lengths. Contexts are requested by length, and a
#: tracker may fail only on short ones.
LAST_TRIES = 16
#: Maximum number of answers in memory; the oldest are dropped. A window needs far fewer answers.
#: They take at most a few hundred MB.
MEMORY = 200_000
#: Seconds between writes of a batch's answers to the cache. A killed process loses only the answers
#: since the last write.
WRITE_EVERY: Final = 1.0


class Predictor:
    """Calls a tracker for one or more campaigns.

    It checks answers against the ontology and normalisation of the data. The listener receives
    batches, errors and the end of the budget. ``fingerprint`` is the tracker's fingerprint when it
    was first read, ``None`` if it has none. If it has changed after a batch, the answers of this
    batch do not count. For ``decider``, ``repeats`` and ``outcome`` see `CampaignSpec`.
    """

    def __init__(  # noqa: PLR0913 - all but the first two are given by their names
        self,
        tracker: Tracker,
        batch_size: int = 64,
        *,
        ontology: Ontology | None = None,
        normalisation: str = "plain",
        budget: Budget | None = None,
        listener: Listener | None = None,
        decider: Decider = ONCE,
        repeats: bool = False,
        cache: PredictionCache | None = None,
        outcome: OutcomeKind = "state",
        retries: int = RETRIES,
        fingerprint: str | None = None,
    ) -> None:
        #: Maximum number of retries after an answer that cannot be parsed.
        self.retries = retries
        self.batch_size = batch_size
        self.decider = decider
        self.repeats = repeats
        self.budget = budget or Budget()
        #: Cache of predictions; ``None`` = answers must not be reused in other runs.
        self.cache = cache
        #: Number of answers from the cache.
        self.recalled = 0
        self._tracker = tracker
        self._fingerprint = fingerprint
        self._ontology = ontology
        self._normalisation = normalisation
        self._kind = KINDS[outcome]
        self._listener = listener or ignore
        self._known: dict[Context, Answer] = {}
        self._answered = False
        self._failed = self._tries = 0
        self._last_failure = ""
        self._given_up = ""
        self._told_budget = False

    @property
    def calls(self) -> int:
        """Number of requested contexts so far. Each distinct context counts once."""
        return self.budget.calls

    def stopped(self) -> str:
        """Return why no more contexts may be requested, or ``""``. Notify the listener once."""
        reason = self.budget.ended
        if reason and not self._told_budget:
            self._told_budget = True
            self._listener(BudgetReached(reason, self.calls))
        return reason

    def never_give_up(self) -> None:
        """Continue despite failures, because the tracker has answered before."""
        self._answered = True

    def spare(self, answers: int) -> None:
        """Count answers as recalled from the cache, since cached results use them."""
        self.recalled += answers

    def forget(self) -> None:
        """Clear the answers in memory."""
        self._known.clear()

    def refuse_if_given_up(self) -> None:
        """Raise an error if the tracker gave up, so that answers are missing.

        Callers that need an answer to every context call this method.
        """
        if self.budget.stopped:
            raise GivenUpError(self.budget.stopped)

    def known(self, contexts: Iterable[Context]) -> dict[Context, Answer]:
        """Return the answers in memory, without a call of the tracker."""
        return {context: self._known[context] for context in contexts if context in self._known}

    def predict(self, contexts: Iterable[Context]) -> dict[Context, Answer]:
        """Return the answer to every context.

        If the budget ends, the remaining contexts are not requested and have no answer. If the
        tracker never answers, the remaining contexts fail without a call.

        If the tracker raises an exception, the batch is halved until the failing contexts are
        found. Contexts that were answered before the exception are not requested again. A batch
        that the deadline interrupted is not requested again, either. If the tracker gives up
        (`GivenUpError`), no more contexts are requested. Exceptions that are not a failure of the
        tracker (``KeyboardInterrupt``, see `passes_through`) propagate, and earlier answers are
        kept.

        Answers from the cache cost nothing, and the listener is not notified of them.
        """
        wanted = dict.fromkeys(contexts)
        answers = self.known(wanted)
        # The sort is stable, so contexts of equal length stay in the order of the request.
        missing = sorted((c for c in wanted if c not in answers), key=Context.size)
        if self.cache is None:
            answers.update(self._ask_all(missing))
        else:
            answers.update(self._recall_or_ask(self.cache, missing))
        return answers

    def _recall_or_ask(
        self, cache: PredictionCache, missing: Sequence[Context]
    ) -> dict[Context, Answer]:
        """Return answers from the cache, from the tracker, or from other processes."""
        answers: dict[Context, Answer] = {}
        while missing:
            recalled = cache.recall(missing)
            self._remember(recalled)
            if recalled:
                # A cached answer shows that this tracker works.
                self.never_give_up()
                self.spare(cache.count_recalled(recalled))
            answers.update(recalled)
            missing = [context for context in missing if context not in recalled]
            mine = cache.claim(missing)
            try:
                asked = self._ask_all(mine)
            finally:
                cache.release()
            answers.update(asked)
            missing = [context for context in missing if context not in asked]
            if len(asked) < len(mine) or (missing and self.stopped()):
                break
            if missing and not mine:
                cache.wait()
        return answers

    def _ask_all(self, missing: list[Context]) -> dict[Context, Answer]:
        """Request contexts in batches until the budget ends."""
        answers: dict[Context, Answer] = {}
        start, spread = 0, False
        while start < len(missing):
            if self._given_up:
                unasked = TrackerFailure(self._given_up, asked=False)
                answers.update(dict.fromkeys(missing[start:], unasked))
                break
            granted = self.budget.grant(min(self.batch_size, len(missing) - start))
            if not granted:
                self.stopped()
                break
            doubtful = not self._answered and self._failed >= GIVE_UP_AFTER
            if doubtful and not spread:
                missing[start:] = _spread_first(missing[start:])
                spread = True
            answers.update(self._ask(tuple(missing[start : start + granted])))
            start += granted
            if doubtful:
                self._tries += granted
                if self._tries >= LAST_TRIES and not self._answered:
                    self._given_up = (
                        f"not called: {self._kind.words.who} failed on all of the first "
                        f"{self._failed} contexts, the last time with: {self._last_failure}"
                    )
        return answers

    def _ask(self, batch: Sequence[Context]) -> dict[Context, Answer]:
        answered = _Batch()
        try:
            with self.budget.timed(answered.__len__):
                self._answer(batch, answered)
        finally:
            if answered:
                self._keep(answered)
        return answered

    def _write(self, answered: _Batch) -> None:
        """Write new answers to the cache, unless the tracker has changed since they were asked."""
        if self.cache is not None and not self._has_changed():
            self.cache.keep(dict(islice(answered.items(), answered.written, None)))
            answered.written, answered.since = len(answered), time.monotonic()

    def _keep(self, answered: _Batch) -> None:
        self.budget.spend(len(answered))
        self._remember(answered)
        self._write(answered)
        failures = [(c, a) for c, a in answered.items() if isinstance(a, TrackerFailure)]
        for context, failure in failures:
            self._listener(ErrorSeen(failure.reason, context.user_utterances))
        self._listener(BatchDone(len(answered), len(failures), self.calls))

    def _remember(self, answers: Mapping[Context, Answer]) -> None:
        self._known.update(answers)
        while len(self._known) > MEMORY:
            del self._known[next(iter(self._known))]

    def _answer(self, batch: Sequence[Context], answered: _Batch) -> None:
        """Record an answer for each context. If the whole batch fails, halve the rest."""
        take = partial(self._arrived, batch, answered)
        try:
            # Pass a copy, because a tracker may modify the list.
            with end_at_deadline(self.budget.deadline):
                with arriving(self._tracker, take):
                    first = as_list(self._tracker.predict(list(batch)), len(batch))
                asked = ask_malformed_again(
                    self._tracker, batch, first, self.retries, self._kind.name
                )
                self._refuse_change()
        except (BatchInterrupt, Overrun) as stopped:
            if self._has_changed():
                self._drop(batch, answered)
                stopped.answers = {}
            self._cut_short(batch, stopped, answered)
            return
        except ChangedTrackerError as error:
            self._drop(batch, answered)
            self._give_up(error)
            return
        except GivenUpError as error:
            self._give_up(error)
            return
        except BaseException as error:
            if passes_through(error):
                if self._has_changed():
                    self._drop(batch, answered)
                raise
            reason = describe_error(error) + find_own_line(error)
        else:
            for context, answer, malformed in zip(batch, *asked, strict=True):
                self._take(context, answer, answered, malformed)
            return
        self._halve(batch, reason, answered)

    def _has_changed(self) -> bool:
        return bool(self._fingerprint) and fingerprint_of(self._tracker) != self._fingerprint

    def _refuse_change(self) -> None:
        """Raise an error if the tracker's fingerprint has changed."""
        if self._has_changed():
            raise ChangedTrackerError(
                f"{self._kind.words.who} changed its fingerprint during the run"
            )

    def _drop(self, batch: Sequence[Context], answered: _Batch) -> None:
        """Forget the answers of a batch, also those that came early and may be in the cache."""
        if self.cache is not None:
            self.cache.drop([*batch, *answered])
        answered.clear()
        answered.written = 0

    def _halve(self, batch: Sequence[Context], reason: str, answered: _Batch) -> None:
        """Request the rest of a failed batch again, in two halves."""
        left = [context for context in batch if context not in answered]
        if len(batch) == 1 and left:
            answered[batch[0]] = self._noted(TrackerFailure(reason))
            return
        self.budget.spend_besides(len(left))
        middle = (len(left) + 1) // 2
        for part in (left[:middle], left[middle:]):
            room = min(len(part), self.budget.room - len(answered))
            if room > 0:
                self._answer(part[: int(room)], answered)

    def _arrived(
        self, batch: Sequence[Context], answered: _Batch, place: int, answer: object
    ) -> None:
        """Record an answer that arrives early, unless it will be retried."""
        if is_malformed(answer, self._kind.name):
            return
        self._take(batch[place], answer, answered)
        if time.monotonic() - answered.since >= WRITE_EVERY:
            self._write(answered)

    def _cut_short(
        self,
        batch: Sequence[Context],
        stopped: BatchInterrupt | Overrun,
        answered: _Batch,
    ) -> None:
        """Record the answers that arrived before the user or the deadline interrupted a call."""
        for place, answer in stopped.answers.items():
            self._take(batch[place], answer, answered)
        if isinstance(stopped, BatchInterrupt):
            raise KeyboardInterrupt from None
        self.budget.overrun()

    def _take(self, context: Context, answer: object, answered: _Batch, malformed: int = 0) -> None:
        """Record the tracker's answer to a context, unless the tracker gave up.

        ``malformed`` is the number of answers that could not be parsed. Answers that arrived early
        come again with the batch and are ignored.
        """
        if context in answered:
            return
        if isinstance(answer, GivenUpError):
            self._give_up(answer)
        else:
            checked = check_answer(answer, self._ontology, self._normalisation, self._kind.name)
            if malformed and isinstance(checked, TrackerFailure):
                reason = f"malformed answer ({malformed} of {malformed} tries): {checked.reason}"
                checked = TrackerFailure(reason, malformed=malformed)
            elif malformed:
                checked = replace(checked, malformed=malformed)
            answered[context] = self._noted(_by_own_names(context, checked))

    def _give_up(self, error: GivenUpError) -> None:
        """Request no more contexts. Keep the reason if the budget has already ended."""
        if not self.budget.ended:
            self.budget.stop(str(error))

    def _noted(self, answer: Answer) -> Answer:
        """Record whether the tracker has ever answered."""
        if isinstance(answer, TrackerFailure):
            self._failed += 1
            self._last_failure = answer.reason
        else:
            self._answered = True
        return answer


class _Batch(dict[Context, Answer]):
    """The answers of a batch, in order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        #: Number of answers in the cache, and the monotonic time of the last write.
        self.written = 0
        self.since = time.monotonic()


def _by_own_names(context: Context, answer: Answer) -> Answer:
    """Return an answer with the original tool names."""
    names = () if context.transcript is None else context.transcript.names
    if not names or isinstance(answer, TrackerFailure):
        return answer
    calls = in_own_names(answer.state, names)
    return replace(answer, state=calls, calls=calls)


def _spread_first(contexts: Sequence[Context]) -> list[Context]:
    """Return the contexts with an evenly spaced sample first. It includes the last context."""
    count = min(LAST_TRIES, len(contexts))
    places = {(number + 1) * len(contexts) // count - 1 for number in range(count)}
    chosen = [contexts[place] for place in sorted(places, reverse=True)]
    return chosen + [c for place, c in enumerate(contexts) if place not in places]
