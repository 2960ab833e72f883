"""Asks the tracker: each distinct context once, in full batches of similar length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_dstfuzz.campaign.answers import Answer, Failure, check_answer
from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.events import BatchDone, BudgetReached, ErrorSeen, Listener, ignore
from pytest_dstfuzz.dialogue.types import Context, Ontology
from pytest_dstfuzz.trackers.checks import as_list, describe_error
from pytest_dstfuzz.trackers.protocol import Tracker

#: So many failures in a row, and the tracker is not asked any more: a service that is
#: down would otherwise cost two calls for every context that is left.
GIVE_UP_AFTER = 256
#: Answers kept; far more than a window needs, and a few hundred MB at most.
MEMORY = 200_000


class Predictor:
    """The one door to a tracker, for one campaign or several.

    Args:
        tracker: who is asked.
        batch_size: contexts asked for at once.
        ontology: slots which a prediction may have; ``None`` = any.
        budget: what may be spent; ``None`` = no limit.
        listener: told of batches, errors and the end of the budget.
        memory: number of answers that are kept; the oldest go first.
    """

    def __init__(
        self,
        tracker: Tracker,
        batch_size: int = 64,
        *,
        ontology: Ontology | None = None,
        budget: Budget | None = None,
        listener: Listener | None = None,
        memory: int = MEMORY,
    ) -> None:
        self.batch_size = batch_size
        self.budget = budget or Budget()
        self._tracker = tracker
        self._ontology = ontology
        self._listener = listener or ignore
        self._memory = memory
        self._known: dict[Context, Answer] = {}
        self._failed_in_a_row = 0
        self._given_up = ""
        self._told_budget = False

    @property
    def calls(self) -> int:
        """Contexts asked so far, each distinct one counted once."""
        return self.budget.calls

    def stopped(self) -> str:
        """Return why nothing more may be asked, or ``""``; tell the listener the first time."""
        reason = self.budget.ended
        if reason and not self._told_budget:
            self._told_budget = True
            self._listener(BudgetReached(reason, self.calls))
        return reason

    def known(self, contexts: Iterable[Context]) -> dict[Context, Answer]:
        """Return the answers that are there already; the tracker is not asked."""
        return {context: self._known[context] for context in contexts if context in self._known}

    def predict(self, contexts: Iterable[Context]) -> dict[Context, Answer]:
        """Return the answer to every context.

        Contexts that are missing from the answer were not asked for, because the
        budget ended. A batch on which the tracker raises is halved until the contexts
        that it fails on are found; ``KeyboardInterrupt`` and ``SystemExit`` pass
        through, and what was answered until then is kept.
        """
        wanted = dict.fromkeys(contexts)
        answers = self.known(wanted)
        # A stable sort by length: order within a length is that of the request.
        missing = tuple(sorted((c for c in wanted if c not in answers), key=Context.size))
        start = 0
        while start < len(missing):
            granted = self.budget.grant(min(self.batch_size, len(missing) - start))
            if not granted:
                self.stopped()
                break
            batch = missing[start : start + granted]
            answers.update(self._ask(batch))
            start += granted
        return answers

    def _ask(self, batch: Sequence[Context]) -> dict[Context, Answer]:
        """Ask for one batch and keep the answers."""
        answered = dict(zip(batch, self._answers(batch), strict=True))
        self.budget.spend(len(batch))
        self._known.update(answered)
        while len(self._known) > self._memory:
            del self._known[next(iter(self._known))]
        failures = [(c, a) for c, a in answered.items() if isinstance(a, Failure)]
        for context, failure in failures:
            self._listener(ErrorSeen(failure.reason, context.user_utterances))
        self._listener(BatchDone(len(batch), len(failures), self.calls))
        return answered

    def _answers(self, batch: Sequence[Context]) -> list[Answer]:
        """Return one answer each; a batch that fails as a whole is halved."""
        if self._given_up:
            return [Failure(self._given_up)] * len(batch)
        try:
            raw = as_list(self._tracker.predict(batch), len(batch))
        except Exception as error:  # noqa: BLE001  # whatever a user's tracker may raise
            reason = describe_error(error)
        else:
            return [self._noted(check_answer(answer, self._ontology)) for answer in raw]
        if len(batch) == 1:
            return [self._noted(Failure(reason))]
        middle = len(batch) // 2
        return self._answers(batch[:middle]) + self._answers(batch[middle:])

    def _noted(self, answer: Answer) -> Answer:
        """Count failures in a row, and give up after too many."""
        self._failed_in_a_row = self._failed_in_a_row + 1 if isinstance(answer, Failure) else 0
        if self._failed_in_a_row >= GIVE_UP_AFTER and isinstance(answer, Failure):
            self._given_up = (
                f"not asked: the tracker had failed on {GIVE_UP_AFTER} contexts in a row, "
                f"the last time with: {answer.reason}"
            )
        return answer
