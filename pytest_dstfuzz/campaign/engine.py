"""The engine of a campaign: a plan of turns in, one result each out, in whatever order."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.metadata import version
from itertools import accumulate, chain, takewhile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.campaign.answers import Answer, OptionalRequest, PatientRequest, TrackerFailure
from pytest_dstfuzz.campaign.cache import PredictionCache, restarts
from pytest_dstfuzz.campaign.deciding import decider_of
from pytest_dstfuzz.campaign.dialogue_run import Answers, DialogueRun, run_dialogue, unanswered
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import (
    CampaignFinished,
    CampaignStarted,
    Listener,
    TurnDone,
    TurnResult,
    WindowStarted,
    ignore,
)
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.files import digest_of
from pytest_dstfuzz.garbage import gc_paused
from pytest_dstfuzz.json_data import json_decoder, json_encoded, to_json
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.relations.registry import is_shipped
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.search.registry import SEARCHES, trained
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.transformations import find_operator

__all__ = ["CampaignEngine", "Planned", "predictor_for"]


#: Fields of `DialogueSet` that decide nothing, and the one that is gone over.
_NOT_DATA: Final = ("dialogues", "layout", "notes")
#: A dialogue, and the index of its last turn that was run.
_Planned = tuple[Dialogue, int]


@dataclass(frozen=True, slots=True)
class KeptDialogue:
    """What was found at a dialogue."""

    #: How many answers it rests on.
    answers: int
    results: list[TurnResult]


_KEPT: Final = json_decoder(KeptDialogue)


class ResultCache:
    """The results of dialogues under the rules of one campaign; ``scope`` tells it from others."""

    def __init__(self, cache: PredictionCache, scope: str) -> None:
        self._cache = cache
        self._scope = scope

    def recall(self, planned: Sequence[_Planned]) -> dict[str, KeptDialogue]:
        """Return what is kept, by the ids of dialogues."""
        found = self._cache.texts({one[0].id: self._key(one) for one in planned})
        kept: dict[str, KeptDialogue] = {}
        with gc_paused():
            for name, text in found.items():
                # One that cannot be read is made again.
                with suppress(ValueError):
                    kept[name] = _KEPT(text)
        return kept

    def keep(
        self, found: Sequence[tuple[_Planned, Mapping[Context, Answer], list[TurnResult]]]
    ) -> None:
        """Keep results with the answers that they rest on, where each of these is kept too."""
        texts = [
            (self._key(planned), text)
            for planned, answers, results in found
            if not any(isinstance(one, TrackerFailure) for one in answers.values())
            and not any(map(restarts, answers))
            and (text := _encoded(KeptDialogue(len(answers), results))) is not None
        ]
        self._cache.keep_texts(texts)

    def _key(self, planned: _Planned) -> list[object]:
        dialogue, last = planned
        return ["results", self._scope, dialogue.id, last]


def kept_results(
    cache: PredictionCache | None, rules: CampaignSpec, lexicon: Lexicon
) -> ResultCache | None:
    """Return where the results of a campaign are kept; ``None`` = nothing may be kept of them.

    Args:
        cache: that of its tracker.
        rules: of the campaign, its search made by its name.
        lexicon: its words.
    """
    # Words of a suite's own may change under the same fingerprint.
    if cache is None or not _depends_on_known(rules) or lexicon is not load_lexicon():
        return None
    data, code = cache.digest_of(rules.data, _digest_of_data), _digest_of_code()
    if data is None or code is None:
        return None
    noise = rules.perturber.noise if rules.settings.noisy else None
    policy = trained(rules.settings.search)
    parts = [
        code,
        data,
        lexicon.fingerprint,
        None if noise is None else [noise.model.name, noise.model.fingerprint, noise.rate],
        "" if policy is None else [policy.fingerprint, policy.code],
        rules.relation.name,
        to_json(rules.settings),
        to_json(rules.reply),
        rules.repeats,
    ]
    text = _encoded(parts)
    return None if text is None else ResultCache(cache, hashlib.sha256(text).hexdigest())


def _depends_on_known(rules: CampaignSpec) -> bool:
    """Say whether nothing but what ships and what is kept decides what is found."""
    operators = (
        find_operator(item.name, name)
        for item, names in zip(*rules.settings.selection, strict=True)
        for name in names
    )
    return (
        rules.kind.has_slots
        and rules.folding.exact
        and rules.repeats
        and not rules.decider.again
        and is_shipped(rules.relation)
        and _is_known(rules.settings.search)
        and all(one.shipped for one in operators)
    )


def _is_known(search: str) -> bool:
    """Say whether a search ships, or tells its code from any other."""
    if search in SEARCHES.shipped:
        return True
    found = trained(search)
    return found is not None and bool(found.code)


@cache
def _digest_of_code() -> str | None:
    """Return what tells this code, and what it counts and draws with, from any other.

    ``None`` where a file of it cannot be read, or there is none.
    """
    package = Path(__file__).parents[1]
    tables = package / "resources"
    files = [*package.rglob("*.py")]
    for end in ("json", "tsv", "txt"):
        files += tables.rglob(f"*.{end}")
    used = [platform.python_version(), np.__version__, version("jellyfish"), version("msgspec")]
    try:
        return " ".join([digest_of(sorted(files)), *used]) if files else None
    except OSError:
        return None


def _digest_of_data(data: DialogueSet) -> str | None:
    """Return what tells data from any other; ``None`` where a text of theirs has no form there."""
    names = (one.name for one in fields(data))
    about = {name: getattr(data, name) for name in names if name not in _NOT_DATA}
    digest = hashlib.sha256()
    for part in chain[object]([about], data.dialogues):
        text = _encoded(part)
        if text is None:
            return None
        digest.update(text + b"\n")
    return digest.hexdigest()


def _encoded(value: object) -> bytes | None:
    try:
        return json_encoded(value)
    except UnicodeEncodeError:  # Half of a surrogate pair.
        return None


_Known = Callable[[list[Context]], Answers]


@dataclass(slots=True)
class _Waiting:
    """A dialogue that waits for answers to ``wanted``, and those it had before."""

    run: DialogueRun
    wanted: Sequence[Context]
    #: Number of the window that it was begun with.
    window: int
    answers: dict[Context, Answer] = field(default_factory=dict)


class FinishedDialogue(NamedTuple):
    """A dialogue that is done: what was found, and the answers that it rests on."""

    results: list[TurnResult]
    answers: Answers


class DialogueScheduler:
    """The dialogues that were begun and are not done."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._done: dict[int, FinishedDialogue] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._waiting

    def windows(self, *, patient: bool = False) -> int:
        """How many windows have dialogues that are not done; of ``patient`` ones, that can move."""
        return len({waiting.window for waiting in self._moving(patient).values()})

    def begin(self, place: int, window: int, run: DialogueRun) -> None:
        """Begin the dialogue at ``place`` of the plan."""
        self._waiting[place] = _Waiting(run, next(run), window)

    def advance(self, predictor: Predictor, batch: int, *, patient: bool = False) -> None:
        """Let dialogues have the answers that they wait for: all but those of the last batch.

        What would fill a batch of that size in part waits for the next time, those of the last
        windows first: a network takes for a part of a batch nearly as long as for all of it.

        Where they are ``patient``, those whose request can wait do so.

        What the predictor raises passes through, and nothing has moved. What a dialogue raises
        passes through as well: it is out then, and those after it have not moved.
        """
        later, moving = self._later(predictor.known, batch), self._moving(patient)
        wanted = (c for waiting in moving.values() for c in waiting.wanted)
        found = predictor.predict(c for c in wanted if c not in later)
        with gc_paused():
            for place, waiting in moving.items():
                if later.isdisjoint(waiting.wanted):
                    self._send(place, found)

    def _moving(self, patient: bool) -> dict[int, _Waiting]:
        """Return the dialogues whose requests cannot wait; all of them unless they are patient."""
        return {
            place: waiting
            for place, waiting in self._waiting.items()
            if not (patient and isinstance(waiting.wanted, PatientRequest))
        }

    def _later(self, known: _Known, batch: int) -> set[Context]:
        """Return the contexts that would fill a batch in part."""
        if batch == 1:
            return set()
        by_window = sorted(self._waiting.values(), key=lambda waiting: waiting.window)
        wanted = list(dict.fromkeys(c for waiting in by_window for c in waiting.wanted))
        there = known(wanted)
        missing = [context for context in wanted if context not in there]
        rest = len(missing) % batch
        return set(missing[-rest:]) if rest < len(missing) and rest else set()

    def settle(self, known: _Known, *, last: bool = False) -> None:
        """Take every dialogue as far as answers that are known already will do.

        Where these are the ``last``, do without those that are optional.
        """
        with gc_paused():
            for place in list(self._waiting):
                while (waiting := self._waiting.get(place)) is not None:
                    found = known(list(waiting.wanted))
                    can_do_without = last and isinstance(waiting.wanted, OptionalRequest)
                    if not (can_do_without or all(map(found.__contains__, waiting.wanted))):
                        break
                    self._send(place, found)

    def take(self) -> dict[int, FinishedDialogue]:
        """Return the dialogues that were done since the last time."""
        done, self._done = self._done, {}
        return done

    def _send(self, place: int, found: Answers) -> None:
        # Out, until it waits again: whatever interrupts a coroutine ends it.
        waiting = self._waiting.pop(place)
        waiting.answers.update((c, found[c]) for c in waiting.wanted if c in found)
        try:
            waiting.wanted = waiting.run.send(waiting.answers)
        except StopIteration as stop:
            self._done[place] = FinishedDialogue(stop.value, waiting.answers)
        else:
            self._waiting[place] = waiting


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
