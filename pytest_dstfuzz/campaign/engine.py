"""The engine of a campaign. It runs a plan of turns and returns results in any order."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib.metadata import version
from itertools import accumulate, chain, takewhile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.campaign.answers import Answer, OptionalRequest, PatientRequest, TrackerFailure
from pytest_dstfuzz.campaign.cache import PredictionCache, restarts
from pytest_dstfuzz.campaign.code import code_of_search
from pytest_dstfuzz.campaign.cost import (
    Pilot,
    PlannedTurn,
    first_variant,
    in_drawn_order,
    wants_pilot,
)
from pytest_dstfuzz.campaign.deciding import decider_of
from pytest_dstfuzz.campaign.dialogue_run import Answers, DialogueRun, run_dialogue, skip_dialogue
from pytest_dstfuzz.campaign.learning import lessons_of, rounds_of
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import (
    CampaignFinished,
    CampaignStarted,
    Listener,
    PilotFinished,
    TurnDone,
    TurnResult,
    WindowStarted,
    ignore,
)
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison
from pytest_dstfuzz.config import Settings, identity_of
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.files import digest_of
from pytest_dstfuzz.garbage import gc_paused
from pytest_dstfuzz.json_data import json_decoder, json_encoded, to_json
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.relations.registry import is_shipped
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.protocol import Lesson, Search
from pytest_dstfuzz.search.registry import SAMPLED, SEARCHES, find_training
from pytest_dstfuzz.trackers.tracker import Tracker, fingerprint_of
from pytest_dstfuzz.transformations import find_operator

__all__ = [
    "CampaignEngine",
    "PlannedTurn",
    "data_digest",
    "digest_of_dialogues",
    "digest_of_package",
    "predictor_for",
]


#: Fields of `DialogueSet` that the digest of the data leaves out. The dialogues have their own
#: digests, and the other fields do not affect results.
_NOT_DATA: Final = ("dialogues", "layout", "notes")
#: A dialogue, and the index of its last turn that was run.
_Planned = tuple[Dialogue, int]


@dataclass(frozen=True, slots=True)
class KeptDialogue:
    """The cached results of a dialogue."""

    #: Number of answers behind the results.
    answers: int
    results: list[TurnResult]


_KEPT: Final = json_decoder(KeptDialogue)


class ResultCache:
    """A cache of dialogue results under the rules of one campaign, identified by ``scope``."""

    def __init__(self, cache: PredictionCache, scope: str) -> None:
        self._cache = cache
        self._scope = scope

    def recall(self, planned: Sequence[_Planned]) -> dict[str, KeptDialogue]:
        """Return the cached results by dialogue id."""
        found = self._cache.texts({one[0].id: self._key(one) for one in planned})
        kept: dict[str, KeptDialogue] = {}
        with gc_paused():
            for name, text in found.items():
                # If a result cannot be read, it is computed again.
                with suppress(ValueError):
                    kept[name] = _KEPT(text)
        return kept

    def count_answers(self, planned: Sequence[_Planned], found: Mapping[str, KeptDialogue]) -> int:
        """Count the answers used for these results that no other process has counted."""
        keys = {one[0].id: self._key(one) for one in planned if one[0].id in found}
        return sum(found[name].answers for name in self._cache.count_texts(keys))

    def keep(
        self, found: Sequence[tuple[_Planned, Mapping[Context, Answer], list[TurnResult]]]
    ) -> None:
        """Store results if all their answers are stored, too."""
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


def open_result_cache(
    cache: PredictionCache | None, settings: Settings, rules: CampaignSpec, lexicon: Lexicon
) -> ResultCache | None:
    """Return a campaign's cache for results, or ``None`` if its results must not be cached.

    Args:
        cache: the prediction cache of the tracker.
        settings: the settings of the campaign.
        rules: the rules of the campaign. Their search must be built from its name.
        lexicon: the words for perturbations.
    """
    # If a suite has its own words, they may change while the fingerprint stays the same.
    if cache is None or not _depends_on_known(rules) or lexicon is not load_lexicon():
        return None
    data, code = cache.digest_of(rules.data, data_digest), _digest_of_code()
    if code is None:
        return None
    policy = find_training(rules.settings.search)
    parts = [
        code,
        data,
        lexicon.fingerprint,
        "" if policy is None else [policy.fingerprint, policy.code],
        rules.relation.name,
        identity_of(settings, "variant", "reply"),
        # An own search may say that it was trained.
        code_of_search(settings.variant.search),
        rules.repeats,
        rules.search.learned,
    ]
    text = _encoded(parts)
    return None if text is None else ResultCache(cache, hashlib.sha256(text).hexdigest())


def _depends_on_known(rules: CampaignSpec) -> bool:
    """Return whether results depend only on shipped code and on cached predictions."""
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
    """Return whether a search is shipped or has a fingerprint of its code."""
    if search.removeprefix(SAMPLED) in SEARCHES.shipped:
        return True
    found = find_training(search)
    return found is not None and bool(found.code)


#: The ends of names of files that decide nothing.
_NOT_CODE: Final = (".pyc", ".pyi", ".md", "~", ".orig", ".rej", ".swp")


@cache
def digest_of_package() -> str | None:
    """Return a digest of the package's code and data.

    It is ``None`` if a file cannot be read or there are no files.
    """
    package = Path(__file__).parents[1]
    try:
        files = [
            file
            for file in package.rglob("*")
            if file.is_file() and _decides(file.relative_to(package))
        ]
        return digest_of(sorted(files)) if files else None
    except OSError:
        return None


def _decides(file: Path) -> bool:
    """Return whether a file may decide results: so not a cached one, or a copy of an editor.

    The path is relative to the package.
    """
    kept = not any(part.startswith((".", "__pycache__")) for part in file.parts)
    return kept and not file.name.endswith(_NOT_CODE)


def _digest_of_code() -> str | None:
    """Return a digest of the package, with the versions of the libraries that it uses."""
    used = [platform.python_version(), np.__version__, version("rapidfuzz"), version("msgspec")]
    package = digest_of_package()
    return None if package is None else " ".join([package, *used])


def data_digest(data: DialogueSet) -> str:
    """Return a digest of dialogues and of all data that belongs to them.

    Calls, results of tools, replies, the ontology and paraphrases are included.
    """
    names = (one.name for one in fields(data))
    about = {name: getattr(data, name) for name in names if name not in _NOT_DATA}
    digest = hashlib.sha256()
    for part in chain[object]([about], data.dialogues):
        text = _encoded(part)
        # A lone surrogate has no form in UTF-8.
        digest.update((json.dumps(to_json(part)).encode() if text is None else text) + b"\n")
    return digest.hexdigest()


def digest_of_dialogues(data: DialogueSet) -> str:
    """Return a digest of texts, labels and all else of the dialogues, wherever their files are."""
    return data_digest(replace(data, name=""))


def _encoded(value: object) -> bytes | None:
    try:
        return json_encoded(value)
    except UnicodeEncodeError:  # A lone surrogate.
        return None


_AnswerLookup = Callable[[list[Context]], Answers]


@dataclass(slots=True)
class _Waiting:
    """A dialogue with its answers so far. It waits for answers to ``wanted``."""

    run: DialogueRun
    wanted: Sequence[Context]
    #: Number of the window in which it began.
    window: int
    answers: dict[Context, Answer] = field(default_factory=dict)


class FinishedDialogue(NamedTuple):
    """A finished dialogue with its results and the answers used for them."""

    results: list[TurnResult]
    answers: Answers


class DialogueScheduler:
    """Holds unfinished dialogues, and finished ones that were not yet returned."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._done: dict[int, FinishedDialogue] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._waiting

    def windows(self, *, patient: bool = False) -> int:
        """Return the number of windows (see `CampaignEngine`) with unfinished dialogues.

        If ``patient`` is true, only dialogues without a `PatientRequest` count.
        """
        return len({waiting.window for waiting in self._moving(patient).values()})

    def begin(self, place: int, window: int, run: DialogueRun) -> None:
        """Begin the dialogue at ``place`` of the plan."""
        self._waiting[place] = _Waiting(run, next(run), window)

    def advance(self, predictor: Predictor, batch: int, *, patient: bool = False) -> None:
        """Request answers in full batches. Resume the dialogues that wait for these answers.

        A network needs nearly as long for a partial batch as for a full one. Therefore contexts
        that would form a partial batch wait for the next call. Contexts of the latest windows wait
        first. If ``patient`` is true, dialogues with a `PatientRequest` wait, too.

        If the predictor raises an exception, no dialogue has moved. If a dialogue raises an
        exception, the dialogue is dropped, and later dialogues have not moved. Both exceptions
        propagate.
        """
        later, moving = self._later(predictor.known, batch), self._moving(patient)
        wanted = (c for waiting in moving.values() for c in waiting.wanted)
        found = predictor.predict(c for c in wanted if c not in later)
        with gc_paused():
            for place, waiting in moving.items():
                if later.isdisjoint(waiting.wanted):
                    self._send(place, found)

    def _moving(self, patient: bool) -> dict[int, _Waiting]:
        """Return the unfinished dialogues. ``patient`` excludes those with a `PatientRequest`."""
        return {
            place: waiting
            for place, waiting in self._waiting.items()
            if not (patient and isinstance(waiting.wanted, PatientRequest))
        }

    def _later(self, known: _AnswerLookup, batch: int) -> set[Context]:
        """Return the contexts that would form only a partial batch."""
        if batch == 1:
            return set()
        by_window = sorted(self._waiting.values(), key=lambda waiting: waiting.window)
        wanted = list(dict.fromkeys(c for waiting in by_window for c in waiting.wanted))
        there = known(wanted)
        missing = [context for context in wanted if context not in there]
        rest = len(missing) % batch
        return set(missing[-rest:]) if rest < len(missing) and rest else set()

    def settle(self, known: _AnswerLookup, *, last: bool = False) -> None:
        """Resume every dialogue as far as the answers allow.

        If ``last`` is true, no more answers follow. Then dialogues continue without optional
        answers.
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
        """Return the dialogues that finished since the last call."""
        done, self._done = self._done, {}
        return done

    def _send(self, place: int, found: Answers) -> None:
        # An exception ends a coroutine, so remove it until it waits again.
        waiting = self._waiting.pop(place)
        waiting.answers.update((c, found[c]) for c in waiting.wanted if c in found)
        try:
            waiting.wanted = waiting.run.send(waiting.answers)
        except StopIteration as stop:
            self._done[place] = FinishedDialogue(stop.value, waiting.answers)
        else:
            self._waiting[place] = waiting


#: Sizes of the first window and of later windows, in batches. Larger windows have fewer partial
#: batches, and their contexts have more similar lengths. With smaller windows, a slow tracker shows
#: its first results sooner, and an interrupted run loses fewer unfinished dialogues.
WINDOW_BATCHES = (8, 32)
#: Maximum size of a window that spreads a budget, in contexts, with one variant per turn.
MOST_SPREAD = 20_000
#: The first variants of such a window may take this part of the remaining seconds. The second
#: number is the minimum size of the window.
SPREAD_PART: Final = 0.25
LEAST_SPREAD: Final = 32
#: Maximum number of concurrent windows. A dialogue has about eight steps, and most have few
#: requests. With this number of windows, one step apart, batches have contexts of similar length.
WINDOWS_AT_ONCE = 8


def predictor_for(
    settings: Settings,
    data: DialogueSet,
    tracker: Tracker,
    listener: Listener | None = None,
    *,
    budget: Budget | None = None,
    wobbles: bool | None = None,
    fingerprint: str | None = None,
) -> Predictor:
    """Build the predictor of ``settings``, which campaigns on the same data may share.

    If ``wobbles`` is true, the answers of the tracker vary, and a majority vote decides about
    violations. If it is false, a few contexts are requested again as a check. If it is ``None``,
    there is neither a vote nor a check. ``fingerprint`` is the tracker's fingerprint if it was read
    before.
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
        fingerprint=fingerprint or fingerprint_of(tracker),
    )


class _Course:
    """The dialogues that a search learns from during a campaign, and their results.

    Args:
        rounds: the dialogues, round by round.
        rules: the rules of the campaign. Their search has not learned yet.
    """

    def __init__(self, rounds: list[Sequence[PlannedTurn]], rules: CampaignSpec) -> None:
        #: The rounds that have not run.
        self.rounds = rounds
        #: The rules with the search after the rounds that have run.
        self.rules = rules
        #: Id of a dialogue that has run -> its results.
        self.results: dict[str, Sequence[TurnResult]] = {}
        #: The same -> the rules under which it ran.
        self.earlier: dict[str, CampaignSpec] = {}

    def take(self, school: CampaignEngine) -> None:
        """Run the next round with its own engine. Let the search learn from the results."""
        lessons: list[Lesson] = []
        for dialogue, _ in self.rounds[0]:
            found = school.results_of(dialogue.id)
            self.results[dialogue.id], self.earlier[dialogue.id] = found, self.rules
            lessons += lessons_of(school._rules, dialogue, found)  # noqa: SLF001 - one of its own kind
        self.rules = replace(self.rules, search=self.rules.search.learn(lessons))
        del self.rounds[0]


class CampaignEngine:
    """Runs the turns of a plan and stores their results.

    Dialogues run in windows. A dialogue is a coroutine that waits for answers, so that many
    dialogues share full batches. A window begins when the result of one of its turns is first
    requested. While the turns of earlier windows get their variants, the turns of later windows get
    their clean predictions. Results depend neither on the order of requests nor on the windows.

    Several campaigns may share a `Predictor` (`predictor_for`), with its predictions and its
    budget. The ``plan`` has dialogues in the order of the data, each with the index of its last
    turn. Earlier turns run too, because later contexts need them. If a relation edits whole
    dialogues, they run to their ends, and only their last turns have results.

    ``window`` is the number of contexts in a window (``None`` = `WINDOW_BATCHES`). If ``ahead`` is
    true, up to `WINDOWS_AT_ONCE` windows run at once. With a budget, only one window runs at a
    time. Otherwise the budget might end before any dialogue is finished. If ``spread`` is true, the
    budget is spread over the turns: all turns get their first variant before any turn gets its
    second.

    If the search learns from results (`Search.lessons`), some dialogues run before the others, in
    rounds (`rounds_of`). They are the first drawn dialogues of ``sample``. ``sample`` is the sample
    of the whole run, and ``plan`` may be a part of it; ``None`` = the plan. So the results of a
    dialogue depend neither on the selected tests nor on the number of workers. A budget may end
    within a round, so a search under a budget does not learn.
    """

    def __init__(  # noqa: PLR0913 - all but the first five are given by their names
        self,
        settings: Settings,
        data: DialogueSet,
        tracker: Tracker | Predictor,
        lexicon: Lexicon,
        *,
        plan: Sequence[PlannedTurn],
        sample: Sequence[PlannedTurn] | None = None,
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
        # If the caller gave a search object, it may behave differently the next time.
        cache = self._predictor.cache if search is None else None
        self._open = partial(open_result_cache, cache, settings, lexicon=lexicon)
        self._kept = self._open(rules=self._rules)
        self._listener = listener or ignore
        self._window = window
        self._ahead = ahead
        self._spread = spread and self._predictor.budget.limited
        rounds: Sequence[Sequence[PlannedTurn]] = ()
        if not (self._rules.own_edits or self._predictor.budget.limited):
            drawn_from = plan if sample is None else sample
            rounds = rounds_of(self._rules.search, settings.variant.seed, drawn_from)
        self._course = _Course([*rounds], self._rules)
        self._set_out(plan)

    def on(self, plan: Sequence[PlannedTurn]) -> CampaignEngine:
        """Return an engine for another plan, with the same rules and predictor."""
        other = copy(self)
        other._set_out(plan)  # noqa: SLF001 - one of its own kind
        return other

    def _set_out(self, plan: Sequence[PlannedTurn]) -> None:
        """Start a new plan: check it, and discard earlier results."""
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
        """Return the result of a planned turn. Run its window if necessary.

        Turns that did not run before the end of the budget have the outcome ``skipped``.
        """
        place = self._position[dialogue_id]
        last = self._plan[place][1]
        first = self._rules.first_of(last)
        if not first <= turn_index <= last:
            raise KeyError(turn_index)
        return self.results_of(dialogue_id)[turn_index - first]

    def results_of(self, dialogue_id: str) -> Sequence[TurnResult]:
        """Return the results of a planned dialogue. Run its window if necessary."""
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

    def _whole(self, planned: PlannedTurn) -> PlannedTurn:
        """Return a planned dialogue.

        If the relation edits whole dialogues, extend it to its end.
        """
        whole = self._rules.relation.unit == "dialogue"
        return (planned[0], len(planned[0].turns) - 1) if whole else planned

    def known(self) -> tuple[TurnResult, ...]:
        """Return the results so far, in the order of the plan."""
        return tuple(
            result for dialogue, _ in self._plan for result in self._results.get(dialogue.id, ())
        )

    def finished(self) -> tuple[TurnResult, ...]:
        """Return all results that the present answers allow, without new requests."""
        self._scheduler.settle(self._predictor.known, last=True)
        self._take(last=True)
        return self.known()

    def _advance(self, place: int) -> None:
        """Move all unfinished dialogues by one step, and begin more if possible."""
        if not self._begun:
            self._listener(CampaignStarted(len(self._plan), len(self)))
        self._learn()
        if not self._begun:
            self._run_pilot()
        if self._plan[place][0].id in self._results:
            return
        waiting = [
            here
            for here, (dialogue, _) in enumerate(self._plan)
            if here >= place and dialogue.id not in self._results and here not in self._scheduler
        ]
        stopped = self._predictor.stopped()
        if stopped and not self._scheduler.windows():
            self._keep({here: skip_dialogue(self._rules, *self._plan[here]) for here in waiting})
            return
        behind = bool(waiting or self._scheduler.windows(patient=True))
        patient = behind and not stopped and self._may_wait()
        ahead = self._ahead and self._results and not self._predictor.budget.limited
        if self._scheduler.windows(patient=patient) < (WINDOWS_AT_ONCE if ahead else 1):
            self._begin(waiting)
        try:
            self._scheduler.advance(self._predictor, self._whole_batches, patient=patient)
        except BaseException:
            # Keep the dialogues that have all their answers, even after an exception.
            self._scheduler.settle(self._predictor.known)
            raise
        finally:
            self._take()

    def _learn(self) -> None:
        """Run the dialogues for learning. Then use the search that has learned from them."""
        course = self._course
        if not (course.rounds or course.results):
            return
        while course.rounds and not self._predictor.stopped():
            school = self.on(course.rounds[0])
            school._course = _Course([], course.rules)  # noqa: SLF001 - one of its own kind
            school._rules = replace(  # noqa: SLF001 - likewise
                course.rules, settings=replace(course.rules.settings, variant=None), sources={}
            )
            school._listener = ignore  # noqa: SLF001 - likewise
            try:
                course.take(school)
            finally:
                self._keep_lessons()
        self._keep_lessons()
        if self._rules.search is not course.rules.search:
            self._rules = course.rules
            self._kept = self._open(rules=self._rules)

    def _keep_lessons(self) -> None:
        """Store the results of the plan's dialogues that the search learned from."""
        if self._rules.settings.variant is not None:
            return  # They have all variants.
        found = {
            place: self._course.results[dialogue.id][: last + 1]
            for place, (dialogue, last) in enumerate(self._plan)
            if dialogue.id in self._course.results and dialogue.id not in self._results
        }
        if found:
            self._keep(found)

    def _run_pilot(self) -> None:
        """Run a part of a slow or paid campaign, to estimate the cost of the whole.

        The answers stay in memory, so that the campaign does not request them again. There is no
        pilot if another process or a failure may end the campaign, or if the search learned from
        some of its dialogues.
        """
        rules, predictor, before = self._rules, self._predictor, self._predictor.calls
        if not self._ahead or self._window or self._course.results or len(self._plan) < 2:
            return
        clean = [one.context(index) for one, last in self._plan for index in range(last + 1)]
        # Other relations have requested the clean turns.
        spared = len(predictor.known(clean)) * (rules.decider.votes if rules.decider.again else 1)
        if not wants_pilot(rules, self._plan, predictor.budget, spared):
            return
        pilot = Pilot(rules, self._plan)
        for part in pilot.parts():
            engine = self.on([planned for planned, _ in part])
            engine._course = _Course([], rules)  # noqa: SLF001 - one of its own kind
            engine._course.earlier.update(  # noqa: SLF001 - likewise
                {planned[0].id: own for planned, own in part}
            )
            engine._kept, engine._listener = None, ignore  # noqa: SLF001 - likewise
            engine._ahead = engine._spread = False  # noqa: SLF001 - likewise
            found = {planned[0].id: engine.results_of(planned[0].id) for planned, _ in part}
            if predictor.stopped():
                return
            estimate, asked = pilot.add(found), predictor.calls - before
            if asked:
                left = estimate.without(spared, asked)
                self._listener(PilotFinished(asked, *left, len(self)))
            if estimate.narrow:
                return

    @property
    def _whole_batches(self) -> int:
        """Size of a full batch, or 1 if partial batches must not wait.

        Partial batches do not wait in three cases. With a budget, dialogues finish one after the
        other. In a worker, tests run one after the other. After a stop of the budget, no more
        contexts follow.
        """
        budget = self._predictor.budget
        at_once = budget.limited or budget.stopped or not self._ahead
        return 1 if at_once else self._predictor.batch_size

    def _begin(self, waiting: Sequence[int]) -> None:
        """Begin a window with the first dialogue and the dialogues that fit into it."""
        self._begun += 1
        ahead = self._look_ahead([self._plan[place] for place in waiting])
        found = {} if self._kept is None else self._kept.recall(ahead)
        if self._kept is not None and found:
            self._predictor.never_give_up()
            self._predictor.spare(self._kept.count_answers(ahead, found))
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
                rules = self._course.earlier.get(planned[0].id, self._rules)
                run = run_dialogue(rules, *planned, one_by_one=self._spread)
                self._scheduler.begin(place, self._begun, run)

    def _look_ahead(self, waiting: Sequence[PlannedTurn]) -> Sequence[PlannedTurn]:
        """Return the dialogues of the next window: the first dialogue and those that fit.

        With a budget, a dialogue begins only if the budget suffices for the worst case. An
        unfinished dialogue would cost calls without a result.
        """
        budget = self._predictor.budget
        if self._spread:
            return self._spread_over(waiting)
        size = self._windows[0] if len(self._windows) == 1 else self._windows.pop(0)
        limit = min(float(size), budget.forecast())
        sizes = accumulate(self._cost(last, most=budget.limited) for _, last in waiting)
        fitting = sum(1 for _ in takewhile(lambda size: size <= limit, sizes))
        return waiting[: max(1, fitting)]

    def _spread_over(self, waiting: Sequence[PlannedTurn]) -> Sequence[PlannedTurn]:
        """Return the dialogues that the budget can give one variant per turn."""
        rules = self._rules
        drawn, each = in_drawn_order(rules.settings.seed, waiting), first_variant(rules.decider)
        least = accumulate((last + 1) * each for _, last in drawn)
        # The speed may change, so spread the seconds over several windows, one after the other.
        budget = self._predictor.budget
        limit = min(budget.guess(), max(budget.guess(SPREAD_PART), LEAST_SPREAD), MOST_SPREAD)
        fitting = sum(1 for _ in takewhile(lambda size: size <= limit, least))
        return drawn[: max(1, fitting)]

    def _may_wait(self) -> bool:
        """Return whether second variants wait until all turns have their first variant."""
        turns = sum(
            last + 1 for place, (_, last) in enumerate(self._plan) if place in self._scheduler
        )
        return self._spread and turns * first_variant(self._rules.decider) < MOST_SPREAD

    def _cost(self, last: int, *, most: bool) -> int:
        """Return the number of contexts for turns ``0`` to ``last``. ``most`` gives the maximum."""
        settings = self._rules.settings
        probed = settings.attack != "non-cumulative" and not self._rules.own_edits
        passes = 3 if most and probed else 1
        answers = self._rules.decider.floor if most else 1
        if self._rules.relation.unit == "dialogue":
            return answers * (last + 1 + settings.variants)
        return (last + 1) * answers * (1 + passes * settings.variants)

    def _take(self, *, last: bool = False) -> None:
        """Store the results of finished dialogues. Also cache them if they are complete.

        The ``last`` results may lack optional parts. Results after the end of the budget may lack
        any part. Such results are not cached.
        """
        done = self._scheduler.take()
        self._keep({place: one.results for place, one in done.items()})
        if self._kept is not None and not (last or self._predictor.budget.ended):
            self._kept.keep(
                [(self._plan[place], one.answers, one.results) for place, one in done.items()]
            )

    def _keep(self, found: Mapping[int, Sequence[TurnResult]]) -> None:
        """Store the results of some dialogues. Notify the listener."""
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
