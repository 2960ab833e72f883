"""How much a run may cost: seconds, contexts that the tracker is asked for, tokens, money."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.deadline import Deadline
from pytest_dstfuzz.trackers.tracker import Usage, usage_of

#: Below so many contexts a measured speed says little.
_ENOUGH_TO_MEASURE = 64
#: After so many, those of the checks before a run among them, a first guess can be made.
_ENOUGH_TO_GUESS = 8
#: How often the checks before a run ask for each of their contexts.
_CHECKED_TIMES = 3
T = TypeVar("T")
_UNLIMITED = BudgetSettings()


class Budget:
    """Counts what was spent, and says how much is left.

    Seconds count from the first use, or from the moment that `deadline` is started; of them
    ``spent_seconds`` were over before.
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
        #: When the seconds are over; trackers that wait for a service are given it.
        self.deadline = Deadline(seconds, what, spent=spent_seconds, clock=clock)
        #: Why it was stopped although there was something left, or ``""``.
        self.stopped = ""
        #: What the end of the seconds cut short, as words after it.
        self._overrun = ""
        self._limits = limits
        self._metered: list[object] = []
        self._clock = clock
        self._started: float | None = None
        #: Contexts that were asked for so far.
        self.calls = 0
        #: Those that were asked for besides: by the checks before a run, and in batches that failed
        #: as a whole and were asked for again in parts.
        self.others = 0

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        most = self._limits
        limits = (most.max_seconds, most.max_calls, most.max_tokens, most.max_cost)
        return any(limit is not None for limit in limits)

    @property
    def usage(self) -> Usage | None:
        """What the trackers that count tokens used so far; ``None`` where none does."""
        found = [usage for one in self._metered if (usage := usage_of(one)) is not None]
        return sum(found, Usage()) if found else None

    def watch(self, tracker: object) -> None:
        """Count what a tracker uses too, if it counts tokens itself.

        Where tokens or money are limited it must, and have answered a preflight.
        """
        usage = usage_of(tracker)
        # Compared by identity: a tracker of a user may be equal to another one.
        if usage is not None and all(tracker is not one for one in self._metered):
            self._metered.append(tracker)
        if self._limits.max_tokens is None and self._limits.max_cost is None:
            return
        limit = "--dst-max-tokens" if self._limits.max_tokens is not None else "--dst-max-cost"
        if usage is None:
            raise UserError(f"{limit} cannot be kept: the tracker does not count tokens")
        if usage.uncounted == usage.answers > 0:
            raise UserError(
                f"{limit} cannot be kept: the service does not say how many tokens its answers took"
            )
        if self._limits.max_cost is not None and usage.cost is None:
            raise UserError(
                "--dst-max-cost cannot be kept: the tracker knows no prices; of a chat model "
                "(openai+http://...), --dst-tracker prices=IN,OUT says them"
            )

    @property
    def ended(self) -> str:
        """Why nothing more may be asked, or ``""``."""
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
        """How many contexts the limit of calls leaves; ``inf`` without one."""
        most = self._limits.max_calls
        return math.inf if most is None else float(most - self.calls - self.others)

    def checks(self, contexts: Sequence[T]) -> Sequence[T]:
        """Return the contexts that the checks before a run may ask for, each of them three times.

        They take a tenth of the calls at most, but for one context where that can be paid for.
        """
        if self._limits.max_calls is None:
            return contexts
        most = self._limits.max_calls // (_CHECKED_TIMES * 10)
        return contexts[: max(most, int(self.room > _CHECKED_TIMES))]

    def spend_besides(self, contexts: int) -> None:
        """Count contexts that were asked for besides."""
        self.others += contexts

    def overrun(self) -> None:
        """Note that a call of a tracker had to be cut short."""
        self._overrun = " in the middle of a call of the tracker"

    def stop(self, reason: str) -> None:
        """Grant nothing more, whatever is left, for a reason: a clause without a full stop."""
        self.stopped = self.stopped or reason

    def grant(self, wanted: int) -> int:
        """Return how many of ``wanted`` contexts may be asked now, as one batch.

        What an answer will take is not known before; by what those before it took, no more
        are granted than what is left pays for.
        """
        if self.ended:
            return 0
        return max(1, int(min(wanted, self.room, self._affordable())))

    def spend(self, contexts: int) -> None:
        """Count contexts that were asked."""
        self._elapsed()
        self.calls += contexts

    def forecast(self) -> float:
        """Return how many contexts what is left will probably pay for, at the speed so far.

        ``inf`` without a limit; before the speed is known, a small number, so that a
        look-ahead does not begin more dialogues than it can finish.
        """
        left = self.room
        if self._limits.max_seconds is not None:
            elapsed = self._elapsed()
            if self.calls < _ENOUGH_TO_MEASURE or elapsed <= 0.0:
                return min(left, float(_ENOUGH_TO_MEASURE))
            left = min(left, self.calls / elapsed * self.deadline.left)
        return max(min(left, self._affordable()), 0.0)

    def guess(self) -> float:
        """Return how many contexts the budget may pay for, the answers to its checks counted.

        ``inf`` without a limit, and while nothing is known of a limit of seconds.
        """
        left = min(self.room, self._affordable())
        asked, seconds = self.calls + self.others, self._limits.max_seconds
        if seconds is not None and asked >= _ENOUGH_TO_GUESS:
            elapsed = seconds - self.deadline.left
            left = min(left, asked / max(elapsed, 1e-3) * self.deadline.left)
        return max(left, 0.0)

    def _metered_limits(self) -> Iterator[tuple[float, float, str]]:
        """Yield limit, what was used of it, and what it is a limit of."""
        usage = self.usage
        if usage is None:
            return
        if self._limits.max_tokens is not None:
            yield self._limits.max_tokens, usage.tokens, "tokens"
        if self._limits.max_cost is not None and usage.cost is not None:
            yield self._limits.max_cost, usage.cost, "of money"

    def _affordable(self) -> float:
        """Return how many answers the tokens and the money that are left will pay for."""
        usage, left = self.usage, math.inf
        for limit, used, _ in self._metered_limits():
            if usage is None or not used:
                return 1.0
            left = min(left, (limit - used) / used * usage.answers)
        return left

    def _elapsed(self) -> float:
        """Seconds since the first use."""
        self.deadline.start()
        now = self._clock()
        if self._started is None:
            self._started = now
        return now - self._started
