"""The engine of a campaign: a plan of turns in, one result each out, in whatever order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, takewhile

from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.deciding import decider_of
from pytest_dstfuzz.campaign.dialogue_run import run_dialogue, unanswered
from pytest_dstfuzz.campaign.events import (
    CampaignFinished,
    CampaignStarted,
    Listener,
    TurnDone,
    WindowStarted,
    ignore,
)
from pytest_dstfuzz.campaign.kept_results import kept_results
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.scheduler import DialogueScheduler
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.exact import EXACT
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.garbage import gc_paused
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.trackers.tracker import Tracker

__all__ = ["CampaignEngine", "Planned", "predictor_for"]

#: Batches that the first window looks ahead, and all others. The more, the fewer batches are
#: left half empty and the more similar their contexts are in length; but a slow tracker is
#: to show its first results soon, and dialogues half done are lost when a run is interrupted.
WINDOW_BATCHES = (8, 32)
#: Contexts of the turns, with one variant each, that a budget is spread over at once.
MOST_SPREAD = 20_000
#: Contexts that it takes at most, on average, to find the smallest version of a violation.
SHRINKING = 5
#: Windows that are under way together. A dialogue asks in some eight steps, most of them small:
#: so many windows, one step apart, make batches of contexts of one length from them.
WINDOWS_AT_ONCE = 8

#: One dialogue of the plan and the index of its last turn.
Planned = tuple[Dialogue, int]


def predictor_for(
    settings: Settings,
    data: DialogueSet,
    tracker: Tracker,
    listener: Listener | None = None,
    *,
    budget: Budget | None = None,
    wobbles: bool | None = None,
) -> Predictor:
    """Build the predictor of ``settings``, to be shared by campaigns on the same data.

    Where answers may differ from time to time (``wobbles``), violations are put to the vote; where
    they must not, a few contexts are asked again; ``None`` = neither.
    """
    budget = Budget(settings.budget) if budget is None else budget
    budget.watch(tracker)
    return Predictor(
        tracker,
        settings.tracker.batch_size,
        ontology=data.ontology,
        normalisation=data.normalisation,
        budget=budget,
        listener=listener,
        decider=decider_of(settings.tracker, repeatable=not wobbles),
        repeats=wobbles is False,
        outcome=settings.reply.outcome,
        retries=settings.tracker.retries,
    )


class CampaignEngine:
    """Runs the turns of a plan and keeps their results.

    Dialogues are run in windows, each a coroutine that waits for answers: what many of them ask
    for goes to the tracker in full batches. The window around a turn is begun when its result is
    first asked for, and while the turns of some get their variants, later ones get their clean
    predictions; neither the order in which results are asked for nor the windows change them.

    Several campaigns may share a `Predictor` (`predictor_for`), and with it what was predicted and
    the budget. The ``plan`` has dialogues in data order, each with the index of its last turn to
    run; the turns before it are run too, as its contexts need them. Where a relation edits whole
    dialogues they are run to their ends, and only their last turns have results.

    ``window`` is how many contexts to look ahead (``None`` = `WINDOW_BATCHES`); ``ahead`` begins
    more while those before are run, up to `WINDOWS_AT_ONCE`, never under a budget, which might end
    before any is done. ``spread`` spreads a budget over the turns: all of them get their first
    variant before any gets its second.
    """

    def __init__(  # noqa: PLR0913 - all but the first five are given by their names
        self,
        settings: Settings,
        data: DialogueSet,
        tracker: Tracker | Predictor,
        lexicon: Lexicon,
        *,
        plan: Sequence[Planned],
        listener: Listener | None = None,
        window: int | None = None,
        ahead: bool = True,
        spread: bool = False,
        search: Search | None = None,
        relation: Relation | None = None,
        comparison: Comparison = EXACT,
    ) -> None:
        self._predictor = (
            tracker
            if isinstance(tracker, Predictor)
            else predictor_for(settings, data, tracker, listener)
        )
        self._rules = CampaignSpec.of(
            settings.variant,
            data,
            lexicon,
            search,
            relation=relation,
            decider=self._predictor.decider,
            repeats=self._predictor.repeats,
            reply=settings.reply,
            comparison=comparison,
        )
        # A search that somebody made may say something else the next time.
        cache = self._predictor.cache if search is None else None
        self._kept = kept_results(cache, self._rules, lexicon)
        self._listener = listener or ignore
        self._window = window
        self._ahead = ahead
        self._spread = spread and self._predictor.budget.limited
        self._set_out(plan)

    def on(self, plan: Sequence[Planned]) -> CampaignEngine:
        """Return another engine for another plan, with the same rules and predictor."""
        other = copy(self)
        other._set_out(plan)  # noqa: SLF001 - one of its own kind
        return other

    def _set_out(self, plan: Sequence[Planned]) -> None:
        """Take up a plan, of which nothing has been run."""
        batch, window = self._predictor.batch_size, self._window
        self._windows = [window] if window else [count * batch for count in WINDOW_BATCHES]
        self._plan = tuple(self._whole(planned) for planned in plan)
        self._position = {item[0].id: place for place, item in enumerate(self._plan)}
        if len(self._position) != len(self._plan):
            raise ValueError("a dialogue is planned twice")
        for dialogue, last in self._plan:
            if not 0 <= last < len(dialogue.turns):
                raise ValueError(f"dialogue {dialogue.id!r} has no turn {last}")
        self._results: dict[str, list[TurnResult]] = {}
        self._scheduler = DialogueScheduler()
        #: Number of the last window.
        self._begun = 0

    def result(self, dialogue_id: str, turn_index: int) -> TurnResult:
        """Return the result of a planned turn, running its window when it is not ready.

        Once the budget ended, the outcome of what was not run is ``skipped``.
        """
        place = self._position[dialogue_id]
        last = self._plan[place][1]
        first = self._rules.first_of(last)
        if not first <= turn_index <= last:
            raise KeyError(turn_index)
        return self.results_of(dialogue_id)[turn_index - first]

    def results_of(self, dialogue_id: str) -> Sequence[TurnResult]:
        """Return the results of a planned dialogue, running its window when they are not ready."""
        while dialogue_id not in self._results:
            self._advance(self._position[dialogue_id])
        return self._results[dialogue_id]

    def run(self) -> Iterator[TurnResult]:
        """Yield the result of every planned turn, in the order of the plan."""
        for dialogue, last in self._plan:
            for index in range(self._rules.first_of(last), last + 1):
                yield self.result(dialogue.id, index)

    def __len__(self) -> int:
        return sum(last + 1 - self._rules.first_of(last) for _, last in self._plan)

    def _whole(self, planned: Planned) -> Planned:
        """Return how far a dialogue is run: to its end where it is edited as a whole."""
        whole = self._rules.relation.unit == "dialogue"
        return (planned[0], len(planned[0].turns) - 1) if whole else planned

    def known(self) -> tuple[TurnResult, ...]:
        """Return the results that are there, in the order of the plan."""
        return tuple(
            result for dialogue, _ in self._plan for result in self._results.get(dialogue.id, ())
        )

    def finished(self) -> tuple[TurnResult, ...]:
        """Return all results that the answers so far allow; the campaign does not go on."""
        self._scheduler.settle(self._predictor.known, last=True)
        self._take(last=True)
        return self.known()

    def _advance(self, place: int) -> None:
        """Take all dialogues that were begun one step on, with more beside them."""
        if not self._begun:
            self._listener(CampaignStarted(len(self._plan), len(self), *self._estimate()))
        waiting = [
            here
            for here, (dialogue, _) in enumerate(self._plan)
            if here >= place and dialogue.id not in self._results and here not in self._scheduler
        ]
        stopped = self._predictor.stopped()
        if stopped and not self._scheduler.windows():
            self._keep({here: unanswered(self._rules, *self._plan[here]) for here in waiting})
            return
        patient = bool(waiting) and not stopped and self._may_wait()
        ahead = self._ahead and self._results and not self._predictor.budget.limited
        if self._scheduler.windows(patient=patient) < (WINDOWS_AT_ONCE if ahead else 1):
            self._begin(waiting)
        try:
            self._scheduler.advance(self._predictor, self._whole_batches, patient=patient)
        except BaseException:
            # Whatever passes through must not lose dialogues whose answers are all there.
            self._scheduler.settle(self._predictor.known)
            raise
        finally:
            self._take()

    @property
    def _whole_batches(self) -> int:
        """Contexts that a batch is to have where others are there to wait for; 1 = none waits.

        Under a budget dialogues are brought to their ends one after the other, no test that a
        worker runs waits for another's, and for what is never asked there is nothing to wait.
        """
        budget = self._predictor.budget
        at_once = budget.limited or budget.stopped or not self._ahead
        return 1 if at_once else self._predictor.batch_size

    def _begin(self, waiting: Sequence[int]) -> None:
        """Begin the first of some dialogues and those after it that fit in with it."""
        self._begun += 1
        ahead = self._look_ahead([self._plan[place] for place in waiting])
        found = {} if self._kept is None else self._kept.recall(ahead)
        self._predictor.spare(sum(one.answers for one in found.values()))
        self._keep({self._position[name]: one.results for name, one in found.items()})
        window = [planned for planned in ahead if planned[0].id not in found]
        if not window:
            return
        self._listener(
            WindowStarted(
                dialogues=len(window),
                turns=sum(last + 1 for _, last in window),
                contexts=sum(self._cost(last, most=False) for _, last in window),
            )
        )
        with gc_paused():
            for planned in window:
                place = self._position[planned[0].id]
                run = run_dialogue(self._rules, *planned, one_by_one=self._spread)
                self._scheduler.begin(place, self._begun, run)

    def _look_ahead(self, waiting: Sequence[Planned]) -> Sequence[Planned]:
        """Return how far to look ahead: the first dialogue and those that fit in with it.

        Under a budget no more are begun than what is left pays for at the worst:
        dialogues left half done would have cost calls and given nothing.
        """
        budget = self._predictor.budget
        if self._spread:
            return self._spread_over(waiting)
        size = self._windows[0] if len(self._windows) == 1 else self._windows.pop(0)
        limit = min(float(size), budget.forecast())
        sizes = accumulate(self._cost(last, most=budget.limited) for _, last in waiting)
        fitting = sum(1 for _ in takewhile(lambda size: size <= limit, sizes))
        return waiting[: max(1, fitting)]

    def _spread_over(self, waiting: Sequence[Planned]) -> Sequence[Planned]:
        """Return the dialogues whose turns the budget pays for, with one variant each."""
        least = accumulate((last + 1) * self._first_variant for _, last in waiting)
        limit = min(float(MOST_SPREAD), self._predictor.budget.guess())
        fitting = sum(1 for _ in takewhile(lambda size: size <= limit, least))
        return waiting[: max(1, fitting)]

    @property
    def _first_variant(self) -> int:
        """Contexts that a turn takes with its first variant.

        Of a vote those on a violation: if its answers were not paid for, only turns that hold would
        have results.
        """
        decider = self._rules.decider
        return 4 * decider.votes if decider.again else 2

    def _may_wait(self) -> bool:
        """Whether dialogues wait with their second variants for the first ones of others.

        Without votes one window has them all, see `_spread_over`.
        """
        turns = sum(
            last + 1 for place, (_, last) in enumerate(self._plan) if place in self._scheduler
        )
        votes = self._spread and self._rules.decider.again
        return votes and turns * self._first_variant < MOST_SPREAD

    def _estimate(self) -> tuple[int, int]:
        """Contexts that the plan asks for if no variant breaks the relation, and if all do."""
        rules, settings = self._rules, self._rules.settings
        whole = rules.relation.unit == "dialogue"
        turns = sum(last + 1 for _, last in self._plan)
        variants = settings.variants * (len(self._plan) if whole else turns)
        probed = settings.attack != "non-cumulative" and not rules.own_edits
        each = 1 + 2 * probed + SHRINKING * settings.shrink
        if not rules.decider.again:
            return turns + variants, turns + each * variants
        # What is asked again until the votes decide, see `deciding`.
        votes = rules.decider.votes
        answers = 2 * votes - 1
        return votes * turns + variants, (answers + 2) * turns + answers * each * variants

    def _cost(self, last: int, *, most: bool) -> int:
        """Contexts that turns ``0`` to ``last`` ask for, without or with second passes."""
        settings = self._rules.settings
        probed = settings.attack != "non-cumulative" and not self._rules.own_edits
        passes = 3 if most and probed else 1
        answers = self._rules.decider.floor if most else 1
        if self._rules.relation.unit == "dialogue":
            return answers * (last + 1 + settings.variants)
        return (last + 1) * answers * (1 + passes * settings.variants)

    def _take(self, *, last: bool = False) -> None:
        """Take the results of dialogues that are done, here and for later runs.

        The ``last`` may lack what is optional, and those after the end of the budget anything.
        """
        done = self._scheduler.take()
        self._keep({place: one.results for place, one in done.items()})
        if self._kept is not None and not (last or self._predictor.budget.ended):
            self._kept.keep(
                [(self._plan[place], one.answers, one.results) for place, one in done.items()]
            )

    def _keep(self, found: Mapping[int, Sequence[TurnResult]]) -> None:
        """Keep the results of some dialogues and tell the listener."""
        ended = self._predictor.budget.ended
        part = f"{ended} before all variants of this turn were run"
        for place in sorted(found):
            dialogue, _ = self._plan[place]
            self._results[dialogue.id] = [
                replace(turn, reason=f"{ended} before this turn was run")
                if turn.outcome == "skipped"
                else replace(turn, reason=part)
                if turn.left_out and not turn.reason
                else turn
                for turn in found[place]
            ]
            for turn in self._results[dialogue.id]:
                self._listener(TurnDone(turn))
        if found and len(self._results) == len(self._plan):
            finished = [turn for turns in self._results.values() for turn in turns]
            skipped = sum(turn.outcome == "skipped" for turn in finished)
            self._listener(CampaignFinished(len(finished), skipped, self._predictor.calls))
