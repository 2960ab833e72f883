"""Asks the tracker: each distinct context once, in full batches of similar length."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure, check_answer
from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.cache import PredictionCache
from pytest_dstfuzz.campaign.deciding import ONCE, Decider
from pytest_dstfuzz.campaign.events import BatchDone, BudgetReached, ErrorSeen, Listener, ignore
from pytest_dstfuzz.dialogue.dialogues import Context, Ontology
from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.dialogue.renaming import in_own_names
from pytest_dstfuzz.errors import GivenUpError, MalformedAnswerError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.trackers.arriving import arriving
from pytest_dstfuzz.trackers.deadline import Overrun, ended_with
from pytest_dstfuzz.trackers.tracker import Interrupted, Tracker
from pytest_dstfuzz.trackers.validation import (
    RETRIES,
    as_list,
    ask_malformed_again,
    describe_error,
    passes_through,
    raised_in,
)

__all__ = ["Predictor"]

#: A tracker that has not answered once in so many contexts is not asked any more: a
#: service that is down would otherwise cost two calls for every context that is left.
#: One that ever answered is asked to the end, whatever it fails on: which contexts come
#: first depends on windows and batches, and results must not.
GIVE_UP_AFTER = 256
#: So many more are tried before that, spread over all lengths: contexts are asked for by
#: length, and a tracker may fail on the short ones alone.
LAST_TRIES = 16
#: Answers kept, the newest ones; far more than a window needs, and a few hundred MB at most.
MEMORY = 200_000
#: Seconds after which answers to a part of a batch are written to the cache: a process that is
#: killed loses no more.
WRITE_EVERY: Final = 1.0


class Predictor:
    """The one door to a tracker, for one campaign or several.

    What it says is checked against ontology and normalisation of the data. The listener is told
    of batches, errors and the end of the budget; for ``votes``, ``repeats`` and ``outcome`` see
    `CampaignSpec`.
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
    ) -> None:
        #: How often a context is asked for again whose answer cannot be read.
        self.retries = retries
        self.batch_size = batch_size
        self.decider = decider
        self.repeats = repeats
        self.budget = budget or Budget()
        #: What was predicted before; ``None`` = nothing that is said can be used again.
        self.cache = cache
        #: Answers that came from it.
        self.recalled = 0
        self._tracker = tracker
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
        """Contexts asked so far, each distinct one counted once."""
        return self.budget.calls

    def stopped(self) -> str:
        """Return why nothing more may be asked, or ``""``; tell the listener the first time."""
        reason = self.budget.ended
        if reason and not self._told_budget:
            self._told_budget = True
            self._listener(BudgetReached(reason, self.calls))
        return reason

    def never_give_up(self) -> None:
        """Ask on whatever fails: that the tracker answers is known from elsewhere."""
        self._answered = True

    def spare(self, answers: int) -> None:
        """Count answers as recalled: what rests on them came from the cache."""
        self.recalled += answers
        self._answered = self._answered or bool(answers)

    def forget(self) -> None:
        """Let go of the answers that are kept for whoever asks the same again."""
        self._known.clear()

    def refuse_if_given_up(self) -> None:
        """Refuse to go on where answers are missing because the tracker gave up.

        For whoever counts on an answer to everything that was asked for.
        """
        if self.budget.stopped:
            raise GivenUpError(self.budget.stopped)

    def known(self, contexts: Iterable[Context]) -> dict[Context, Answer]:
        """Return the answers that are there already; the tracker is not asked."""
        return {context: self._known[context] for context in contexts if context in self._known}

    def predict(self, contexts: Iterable[Context]) -> dict[Context, Answer]:
        """Return the answer to every context.

        Contexts that are missing from the answer were not asked for, because the
        budget ended; those of a tracker that never answers fail without being asked. A
        batch on which the tracker raises is halved until the contexts that it fails on
        are found, without those that were answered before it raised; one that the end of the
        budget's seconds cut short is not asked for again, and
        where it says that it gave up (`GivenUpError`), nothing more is asked;
        what is no failure of the tracker (``KeyboardInterrupt``, see
        `passes_through`) passes through, and what was answered until then is kept.
        An answer from the cache costs nothing, and the listener is not told.
        """
        wanted = dict.fromkeys(contexts)
        answers = self.known(wanted)
        # A stable sort by length: order within a length is that of the request.
        missing = sorted((c for c in wanted if c not in answers), key=Context.size)
        if self.cache is None:
            answers.update(self._ask_all(missing))
        else:
            answers.update(self._recall_or_ask(self.cache, missing))
        return answers

    def _recall_or_ask(
        self, cache: PredictionCache, missing: Sequence[Context]
    ) -> dict[Context, Answer]:
        """Return answers from the cache; ask for what is not there, wait for what is to come."""
        answers: dict[Context, Answer] = {}
        while missing:
            recalled = cache.recall(missing)
            self._remember(recalled)
            # Whatever is asked next, this tracker answers.
            self.spare(len(recalled))
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
        """Ask for contexts in batches, as far as the budget goes."""
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
                        f"not asked: {self._kind.words.who} had failed on all of the first "
                        f"{self._failed} contexts, the last time with: {self._last_failure}"
                    )
        return answers

    def _ask(self, batch: Sequence[Context]) -> dict[Context, Answer]:
        answered = _Batch()
        try:
            self._answer(batch, answered)
        finally:
            if answered:
                self._keep(answered)
        return answered

    def _write(self, answered: _Batch) -> None:
        """Write to the cache what is not there yet."""
        if self.cache is not None:
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
        """Add one answer each; what is left of a batch that fails as a whole is halved."""
        take = partial(self._arrived, batch, answered)
        try:
            # A list of its own: a tracker may take contexts off it, or sort it.
            with ended_with(self.budget.deadline):
                with arriving(self._tracker, take):
                    first = as_list(self._tracker.predict(list(batch)), len(batch))
                asked = ask_malformed_again(self._tracker, batch, first, self.retries)
        except (Interrupted, Overrun) as stopped:
            self._cut_short(batch, stopped, answered)
            return
        except GivenUpError as error:
            self._give_up(error)
            return
        except BaseException as error:
            if passes_through(error):
                raise
            reason = describe_error(error) + raised_in(error)
        else:
            for context, answer, malformed in zip(batch, *asked, strict=True):
                self._take(context, answer, answered, malformed)
            return
        self._halve(batch, reason, answered)

    def _halve(self, batch: Sequence[Context], reason: str, answered: _Batch) -> None:
        """Ask again for what is left of a batch that failed as a whole, in two halves."""
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
        """Take one answer of a batch before the others are there, unless it is asked for again."""
        if isinstance(answer, MalformedAnswerError):
            return
        self._take(batch[place], answer, answered)
        if time.monotonic() - answered.since >= WRITE_EVERY:
            self._write(answered)

    def _cut_short(
        self,
        batch: Sequence[Context],
        stopped: Interrupted | Overrun,
        answered: _Batch,
    ) -> None:
        """Add what was answered before a call was cut short, by the user or by a deadline."""
        for place, answer in stopped.answers.items():
            self._take(batch[place], answer, answered)
        if isinstance(stopped, Interrupted):
            raise KeyboardInterrupt from None
        self.budget.overrun()

    def _take(self, context: Context, answer: object, answered: _Batch, malformed: int = 0) -> None:
        """Add what a tracker said to one context, unless it said that it gave up.

        ``malformed`` of its answers could not be read. An answer that was taken when it came comes
        again with the batch.
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
        """Ask for nothing more; of a budget that ended, its own words are the reason."""
        if not self.budget.ended:
            self.budget.stop(str(error))

    def _noted(self, answer: Answer) -> Answer:
        """Note whether the tracker ever answers."""
        if isinstance(answer, TrackerFailure):
            self._failed += 1
            self._last_failure = answer.reason
        else:
            self._answered = True
        return answer


class _Batch(dict[Context, Answer]):
    """The answers of a batch, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__()
        #: How many of them the cache has, and since when by the monotonic clock.
        self.written = 0
        self.since = time.monotonic()


def _by_own_names(context: Context, answer: Answer) -> Answer:
    """Return an answer with the names that the tools have in the data."""
    names = () if context.transcript is None else context.transcript.names
    if not names or isinstance(answer, TrackerFailure):
        return answer
    calls = in_own_names(answer.state, names)
    return replace(answer, state=calls, calls=calls)


def _spread_first(contexts: Sequence[Context]) -> list[Context]:
    """Put some contexts, evenly spread and the last one among them, before the others."""
    count = min(LAST_TRIES, len(contexts))
    places = {(number + 1) * len(contexts) // count - 1 for number in range(count)}
    chosen = [contexts[place] for place in sorted(places, reverse=True)]
    return chosen + [c for place, c in enumerate(contexts) if place not in places]
