"""A campaign: a plan of turns in, one result each out, in whatever order they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.attempts import Rules
from pytest_dstfuzz.campaign.budget import Budget
from pytest_dstfuzz.campaign.events import (
    CampaignFinished,
    CampaignStarted,
    Listener,
    TurnDone,
    WindowStarted,
    ignore,
)
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.walk import Answers, Walk, unanswered, walk
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.types import Context, Dialogue, DialogueSet
from pytest_dstfuzz.garbage import uncollected
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.trackers.protocol import Tracker

#: Batches that the first windows look ahead, and all others. The more, the fewer batches are
#: left half empty and the more similar their contexts are in length; but a slow tracker is
#: to show its first results soon.
WINDOW_BATCHES = (8, 32, 128)

#: One dialogue of the plan and the index of its last turn.
Planned = tuple[Dialogue, int]


def predictor_for(
    settings: Settings, data: DialogueSet, tracker: Tracker, listener: Listener | None = None
) -> Predictor:
    """Build the predictor of ``settings``, to be shared by campaigns on the same data."""
    return Predictor(
        tracker,
        settings.batch_size,
        ontology=data.ontology,
        normalisation=data.normalisation,
        budget=Budget(settings.max_seconds, settings.max_calls),
        listener=listener,
    )


class Campaign:
    """Runs the turns of a plan and keeps their results.

    Dialogues are run in windows: what many of them ask for goes to the tracker in
    full batches. The window around a turn is run when its result is first asked for;
    neither the order in which results are asked for nor the window changes them.

    Args:
        settings: what to do.
        data: the data set that the dialogues come from: its name, ontology, cue words.
        tracker: the tracker, or a `Predictor` (`predictor_for`): several campaigns may
            share one, and with it what was predicted and the budget.
        lexicon: words for the perturbations.
        plan: dialogues in data order, each with the index of its last turn to run;
            the turns before it are run too, as its contexts need them.
        listener: told what happens, see `events`.
        window: contexts to look ahead; ``None`` = `WINDOW_BATCHES`.
        search: who chooses the variants; ``None`` = the search that the settings name.

    Raises:
        UserError: unknown relation or search, a bad lock, no labels where the relation
            needs them.
        ValueError: a dialogue planned twice, or a last turn that it does not have.
    """

    def __init__(
        self,
        settings: Settings,
        data: DialogueSet,
        tracker: Tracker | Predictor,
        lexicon: Lexicon,
        *,
        plan: Sequence[Planned],
        listener: Listener | None = None,
        window: int | None = None,
        search: Search | None = None,
    ) -> None:
        self._rules = Rules.of(settings, data, lexicon, search)
        self._predictor = (
            tracker
            if isinstance(tracker, Predictor)
            else predictor_for(settings, data, tracker, listener)
        )
        self._listener = listener or ignore
        batch = self._predictor.batch_size
        self._windows = [window] if window else [count * batch for count in WINDOW_BATCHES]
        self._plan = tuple(plan)
        self._position = {item[0].id: place for place, item in enumerate(self._plan)}
        if len(self._position) != len(self._plan):
            raise ValueError("a dialogue is planned twice")
        for dialogue, last in self._plan:
            if not 0 <= last < len(dialogue.turns):
                raise ValueError(f"dialogue {dialogue.id!r} has no turn {last}")
        self._results: dict[str, list[TurnResult]] = {}

    def result(self, dialogue_id: str, turn_index: int) -> TurnResult:
        """Return the result of a planned turn, running its window when it is not ready.

        Once the budget ended, the outcome of what was not run is ``skipped``.

        Raises:
            KeyError: the turn is not in the plan.
        """
        place = self._position[dialogue_id]
        if not 0 <= turn_index <= self._plan[place][1]:
            raise KeyError(turn_index)
        if dialogue_id not in self._results:
            self._run_window(place)
        return self._results[dialogue_id][turn_index]

    def run(self) -> Iterator[TurnResult]:
        """Yield the result of every planned turn, in the order of the plan."""
        for dialogue, last in self._plan:
            for index in range(last + 1):
                yield self.result(dialogue.id, index)

    def finished(self) -> tuple[TurnResult, ...]:
        """Return the results that are there, in the order of the plan; nothing is run."""
        return tuple(
            result for dialogue, _ in self._plan for result in self._results.get(dialogue.id, ())
        )

    def _run_window(self, place: int) -> None:
        """Run the dialogue at ``place`` of the plan and those after it that fit in."""
        if not self._results:
            turns = sum(last + 1 for _, last in self._plan)
            self._listener(CampaignStarted(len(self._plan), turns))
        waiting = [item for item in self._plan[place:] if item[0].id not in self._results]
        if self._predictor.stopped():
            self._keep(waiting, [unanswered(self._rules, *item) for item in waiting])
            return
        window = self._look_ahead(waiting)
        self._listener(
            WindowStarted(
                dialogues=len(window),
                turns=sum(last + 1 for _, last in window),
                contexts=sum(self._cost(last, most=False) for _, last in window),
            )
        )
        try:
            results = self._drive(window, self._predictor.predict)
        except BaseException:
            # Whatever passes through must not lose dialogues whose answers are all there.
            kept = self._drive(window, self._predictor.known)
            done = [place for place, turns in enumerate(kept) if not _was_skipped(turns)]
            self._keep([window[place] for place in done], [kept[place] for place in done])
            raise
        self._keep(window, results)

    def _look_ahead(self, waiting: Sequence[Planned]) -> list[Planned]:
        """Return the dialogues to run together: the first one and those that fit in with it.

        Under a budget no more are begun than what is left pays for at the worst:
        dialogues left half done would have cost calls and given nothing.
        """
        budget = self._predictor.budget
        size = self._windows[0] if len(self._windows) == 1 else self._windows.pop(0)
        limit = min(float(size), budget.forecast())
        sizes = accumulate(self._cost(last, most=budget.limited) for _, last in waiting)
        fitting = sum(1 for _ in takewhile(lambda size: size <= limit, sizes))
        return list(waiting[: max(1, fitting)])

    def _cost(self, last: int, *, most: bool) -> int:
        """Contexts that turns ``0`` to ``last`` ask for, without or with second passes."""
        settings = self._rules.settings
        passes = 3 if most and settings.attack != "non-cumulative" else 1
        return (last + 1) * (1 + passes * settings.variants)

    def _drive(
        self, window: Sequence[Planned], predict: Callable[[list[Context]], Answers]
    ) -> list[list[TurnResult]]:
        """Run the dialogues of a window side by side, all their requests at once."""
        walks: dict[int, Walk] = {
            place: walk(self._rules, dialogue, last)
            for place, (dialogue, last) in enumerate(window)
        }
        wanted = {place: next(steps) for place, steps in walks.items()}
        results: dict[int, list[TurnResult]] = {}
        answers: dict[Context, Answer] = {}
        while wanted:
            answers.update(predict([context for asked in wanted.values() for context in asked]))
            requests: dict[int, Sequence[Context]] = {}
            with uncollected():
                for place in wanted:
                    try:
                        requests[place] = walks[place].send(answers)
                    except StopIteration as stop:
                        results[place] = stop.value
            wanted = requests
        return [results[place] for place in range(len(window))]

    def _keep(self, window: Sequence[Planned], results: Sequence[list[TurnResult]]) -> None:
        """Keep the results of a window and tell the listener."""
        reason = f"{self._predictor.budget.ended} before this turn was run"
        for (dialogue, _), turns in zip(window, results, strict=True):
            self._results[dialogue.id] = [
                replace(turn, reason=reason) if turn.outcome == "skipped" else turn
                for turn in turns
            ]
            for turn in self._results[dialogue.id]:
                self._listener(TurnDone(turn))
        if len(self._results) == len(self._plan):
            finished = self.finished()
            skipped = sum(turn.outcome == "skipped" for turn in finished)
            self._listener(CampaignFinished(len(finished), skipped, self._predictor.calls))


def _was_skipped(turns: Sequence[TurnResult]) -> bool:
    return any(turn.outcome == "skipped" for turn in turns)
