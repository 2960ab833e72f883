"""The context of a session: its tracker, cache and stored results."""

from __future__ import annotations

import math
import os
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from pytest_dstfuzz.campaign.cache import PredictionCache, Store, scope_of
from pytest_dstfuzz.campaign.deciding import Decider, SequentialTest, decider_of, idle_test
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import Listener
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.calls import comparison_of_values
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.judge import JudgeFacts, Judges
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import (
    NO_CACHE,
    STATE,
    BudgetSettings,
    ReplySettings,
    Settings,
    identity_of,
)
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.dialogue.paraphrases import with_paraphrases
from pytest_dstfuzz.dialogue.sampling import (
    note_unlabelled,
    part_of,
    sample_set,
    sample_turns,
    with_history,
)
from pytest_dstfuzz.errors import KEPT_BACK, UserError
from pytest_dstfuzz.files import hold_folder, remove_leftovers
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.plugin.options import (
    beside_ini,
    given_options,
    read_settings,
    synonyms_of,
    table_rules_of,
)
from pytest_dstfuzz.plugin.relations import each_of
from pytest_dstfuzz.plugin.selection import only_lists
from pytest_dstfuzz.plugin.stored import StoredRun, find_stored_run
from pytest_dstfuzz.relations.checks import why_hopeless
from pytest_dstfuzz.relations.registry import ALL, REPEATS, family_members, relations_named
from pytest_dstfuzz.relations.relation import Relation, Scenes
from pytest_dstfuzz.relations.sources import with_frozen
from pytest_dstfuzz.trackers.adapters import as_tracker, bound_concurrency
from pytest_dstfuzz.trackers.registry import factory_options_of, tracker_for
from pytest_dstfuzz.trackers.tracker import (
    Disagreement,
    Tracker,
    UnloadedTracker,
    Usage,
    fingerprint_of,
    fingerprint_problem,
    is_repeatable,
    notes_of,
    read_attribute,
)
from pytest_dstfuzz.trackers.validation import (
    PREFLIGHT_CONTEXTS,
    ask_raw,
    bound_time,
    can_end_calls,
    preflight,
    refuse_training_mode,
)

_FOLDER: Final = "dstfuzz"
_FILE: Final = "predictions.sqlite"
_MEGABYTE: Final = 1_000_000
#: Length of the name of a run.
_DIGITS: Final = 24


_Found: TypeAlias = tuple[Tracker, PredictionCache | None, str | None]


class Caches:
    """Finds the cache for the predictions of a tracker."""

    def __init__(self, config: pytest.Config, settings: Settings, run: str) -> None:
        """Store the settings and the name of the run. Workers of one ``run`` share a cache."""
        self._config = config
        self._settings = settings
        self._run = run
        #: See `identify`.
        self._decided: dict[str, Any] | None = None
        #: (``id()`` of a tracker, kind of answer) -> the tracker, its cache and its fingerprint.
        self._found: dict[tuple[int, OutcomeKind], _Found] = {}
        #: The fingerprints of the tracker that --dst-model names.
        self.fingerprints: tuple[str, ...] = ()
        self._opened: list[Store] = []
        self._problems: list[str] = []
        if not self._run:
            remove_leftovers(Path(tempfile.gettempdir()), f"{_FOLDER}-{'[0-9a-f]' * _DIGITS}")

    def of(
        self,
        tracker: Tracker,
        data: DialogueSet,
        outcome: OutcomeKind,
        *,
        named: bool,
        origin: str,
    ) -> tuple[PredictionCache | None, str | None]:
        """Return the cache of a tracker, and the fingerprint when this was called first.

        The cache is ``None`` if answers of the tracker cannot be reused. If the tracker has a
        fingerprint, its cache outlives the run. Otherwise the workers of xdist share a cache for
        the run, because each has a copy of the same tracker. ``named`` says whether --dst-model
        names the tracker. ``origin`` identifies any other tracker and has the same value in all
        processes. It is ``""`` if unknown.
        """
        key = id(tracker), outcome
        if key not in self._found:
            model = f"--dst-model={self._settings.tracker.model}" if named else ""
            fingerprint, cache = fingerprint_of(tracker), None
            if fingerprint is None and (problem := fingerprint_problem(tracker)):
                self._problems.append(
                    "predictions are not cached: the tracker's 'fingerprint' must be a text that "
                    f"changes with its answers, but {problem}"
                )
            if fingerprint is not None and self._kept is not None and self._kept.usable:
                who = model or _kind(tracker), fingerprint
                cache = self._cache(self._kept, who, data, outcome)
            elif (model or origin) and self._shared is not None:
                cache = self._cache(self._shared, (model, origin), data, outcome)
            if named and fingerprint is not None:
                self.fingerprints = _each_once((*self.fingerprints, fingerprint))
            # Keep a reference to the tracker: otherwise a new one could get the same id.
            self._found[key] = tracker, cache, fingerprint
        return self._found[key][1:]

    def identify(self) -> dict[str, Any]:
        """Return the identity of the settings of the tracker when this was called first.

        Call it before the tracker reads its files, because they may change while it loads.
        """
        if self._decided is None:
            self._decided = identity_of(self._settings, "tracker")
        return self._decided

    @property
    def problems(self) -> list[str]:
        """Problems with the caches."""
        return [*self._problems, *(text for store in self._opened for text in store.problems)]

    @property
    def shared_folders(self) -> tuple[str, ...]:
        """The folder to remove after a run with workers, if this process is a worker."""
        return (str(self._folder),) if self._run else ()

    def _cache(
        self, store: Store, who: tuple[str, str], data: DialogueSet, outcome: OutcomeKind
    ) -> PredictionCache:
        reply = replace(self._settings.reply, outcome=outcome)
        options = factory_options_of(self._settings.tracker)
        scope = scope_of((*who, {**self.identify(), "factory": options}), data, reply)
        return PredictionCache(store, scope, self._run, self._shared)

    @cached_property
    def _kept(self) -> Store | None:
        """The cache that persists after the run, if the settings ask for one."""
        given = self._settings.budget.cache
        if given == NO_CACHE:
            return None
        if given is not None:
            return self._store(Path(given))
        # Without pytest's cache (-p no:cacheprovider) nothing is stored.
        cache: Any = getattr(self._config, "cache", None)
        if cache is None:
            return None
        try:
            return self._store(Path(cache.mkdir(_FOLDER)) / _FILE)
        except OSError as error:
            self._problems.append(f"predictions are not cached: pytest's cache folder: {error}")
            return None

    @cached_property
    def _shared(self) -> Store | None:
        """The cache that the workers of this run share; ``None`` without workers."""
        if not self._run:
            return None
        # Other users must neither read its contents nor replace it by a link.
        try:
            self._config.add_cleanup(hold_folder(self._folder))
        except OSError as error:
            self._problems.append(f"the workers do not share predictions: {error}")
            return None
        return self._store(self._folder / _FILE)

    @property
    def _folder(self) -> Path:
        return Path(tempfile.gettempdir()) / f"{_FOLDER}-{self._run}"

    def _store(self, path: Path) -> Store:
        store = Store(path, self._settings.budget.cache_size * _MEGABYTE)
        self._opened.append(store)
        self._config.add_cleanup(store.close)
        return store


def _kind(tracker: Tracker) -> str:
    """Return the name of a tracker's class, or of the function or object that it adapts."""
    inner = read_attribute(tracker, "wrapped", tracker)
    named: Any = inner if read_attribute(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"


@dataclass(frozen=True)
class RunContext:
    """The settings and data of a session. A marker may change settings for its test.

    ``model_on_command_line`` tells whether the command line names a tracker. If only an ini file
    names one, the run may be about other tests.
    """

    config: pytest.Config
    settings: Settings
    model_on_command_line: bool
    _pid: int = field(default_factory=os.getpid)

    @classmethod
    def of(cls, config: pytest.Config) -> RunContext:
        """Create the context from pytest's options."""
        given = given_options(config)
        named = any(option.name == "model" and option.on_command_line for option in given)
        return cls(config, read_settings(config), named)

    @cached_property
    def data(self) -> DialogueSet:
        """The dialogues of the session."""
        return self.data_of(self.settings)

    def data_of(self, settings: Settings) -> DialogueSet:
        """Return the dialogues, with the paraphrases and rewrites from the files in the settings.

        A marker may name other files. Its paths are relative to the ini file.
        """
        files = [self._words_of(settings, name) for name in ("tools_paraphrase", "frozen")]
        tools, frozen = key = files[0], files[1]
        if key not in self._with_words:
            self._with_words[key] = with_frozen(with_paraphrases(self._read, tools), frozen)
        return self._with_words[key]

    def _words_of(self, settings: Settings, name: str) -> str | None:
        path: str | None = settings.option(name)
        common = path in (None, self.settings.option(name))
        return path if path is None or common else beside_ini(self.config, name, path)

    @cached_property
    def _read(self) -> DialogueSet:
        settings, reply = self.settings.data, self.settings.reply
        where, tools = settings.data, settings.tools
        read = load_dialogues(where, settings.split, outcome=reply.outcome, tools=tools)
        read = note_unlabelled(with_slots(read, settings.slots), settings.domains)
        return with_history(read, reply)

    @cached_property
    def lexicon(self) -> Lexicon:
        """The shipped words for perturbations, with the synonyms of ``pyproject.toml``."""
        return load_lexicon().with_synonyms(synonyms_of(self.config))

    @property
    def worker(self) -> Mapping[str, Any]:
        """The input from xdist, if this process is a worker."""
        told: Mapping[str, Any] = getattr(self.config, "workerinput", {})
        return told

    @property
    def workers(self) -> int:
        """Number of xdist's workers if this process is a worker, otherwise 0."""
        return int(self.worker.get("workercount", 0))

    @property
    def sends_results(self) -> bool:
        """Whether this process sends its results to another one, such as xdist's controller."""
        return self.workers > 0 or os.getpid() != self._pid

    @property
    def judges_nothing(self) -> bool:
        """Whether this process gives no verdict, because it is a worker or only lists tests."""
        return self.workers > 0 or only_lists(self.config)

    def tests_its_tracker(self, *others: object) -> bool:
        """Return whether this run tests the tracker of the settings.

        An ini file may name the tracker for other tests. In this case, the run tests the tracker
        only if one of ``others`` is true, for example if a test uses turns.
        """
        return self.settings.tracker.model is not None and (
            self.model_on_command_line or any(others)
        )

    @cached_property
    def stored(self) -> StoredRun | None:
        """The folder of results to judge in place of a run, if such a folder is named."""
        path = self.settings.output.results
        return None if path is None else find_stored_run(Path(path))

    def relations(self, settings: Settings) -> tuple[Relation, ...]:
        """Return the relations that the settings name, in their order.

        ``all`` stands for all shipped relations that can apply to a turn of the data, and a family
        such as ``wording`` for its relations that can.
        """
        named, data = settings.variant.relation, self.data_of(settings)
        key = named, settings.reply.outcome, id(data)
        if key not in self._relations:
            found = relations_named(named, data, settings.reply.outcome)
            apart = family_members(named)
            some = [one for one in found if not (one.name in apart and self.hopeless(one, data))]
            # If no relation can apply, the check of the settings names the reason.
            self._relations[key] = tuple(some) or found
        return self._relations[key]

    @property
    def left_out(self) -> str:
        """The relations that ``all`` or a family does not run, with the reasons, or ``""``."""
        named = self.settings.variant.relation
        members = family_members(named)
        if not members or self.mistake is not None or self.stored:
            return ""
        used = self.relations(self.settings)
        outcome = self.settings.reply.outcome
        if named != ALL:
            every = relations_named(named, outcome=outcome)
            missing = [one.name for one in every if one not in used]
            return f"left out, as no turn of the data fits: {', '.join(missing)}" * bool(missing)
        names = [one.name for one in relations_named(ALL, outcome=outcome) if one not in used]
        text = f"'all' leaves out {REPEATS}, which equals metamorphic if the clean answer is right"
        apart = ", ".join(names)
        return (
            f"{text}. It also leaves out relations that no turn of the data fits: {apart}"
            if names
            else text
        )

    @property
    def not_own_questions(self) -> str:
        """A note that the bot gets the questions of the shipped dialogues, or ``""``."""
        if KINDS[self.settings.reply.outcome].words.values or self.settings.data.data != SAMPLE:
            return ""
        return (
            "the bot gets the questions of the shipped dialogues, about restaurants and hotels: "
            "name your own dialogues with --dst-data=FILE"
        )

    def comparison(self, settings: ReplySettings) -> Comparison:
        """Return the comparison of answers."""
        if settings not in self._comparisons:
            self._comparisons[settings] = self._compared_by(settings)
        return self._comparisons[settings]

    def _compared_by(self, settings: ReplySettings) -> Comparison:
        if KINDS[settings.outcome].words.values:
            return comparison_of_values(self.data, settings, self.search_path, self._table_rules)
        return comparison_by_name(settings.compare, settings, self.search_path, self.judges)

    @cached_property
    def _table_rules(self) -> list[str]:
        return table_rules_of(self.config)

    @cached_property
    def judges(self) -> Judges:
        """The language models that compare replies for this process."""
        return Judges(self.workers)

    @property
    def search_path(self) -> tuple[str, ...]:
        """The folders that are searched first for the user's modules."""
        folders = (self.config.invocation_params.dir, self.config.rootpath)
        return tuple(dict.fromkeys(map(str, folders)))

    def hopeless(self, relation: Relation, data: DialogueSet) -> str:
        """Return the reason why a relation cannot apply to the data, or ``""`` if it can."""
        key = relation.name, id(data)
        if key not in self._hopeless:
            reply = self.settings.reply
            # A recorded reply is not the only right one, so applicability depends on the answers.
            known = reply if KINDS[reply.outcome].has_exact_labels else None
            seed = self.settings.variant.seed
            scenes = Scenes(data, self.lexicon, self._guards, seed, known)
            self._hopeless[key] = why_hopeless(relation, data, scenes)
        return self._hopeless[key]

    def turns(self, settings: Settings) -> list[tuple[Dialogue, int]]:
        """Return the turns that run with some settings, dialogue by dialogue.

        These are the sampled turns, or the sampled turns of one ``shard``.
        """
        part = part_of(self.drawn(settings), settings.data.shard)
        return [(dialogue, index) for dialogue, last in part for index in range(last + 1)]

    def drawn(self, settings: Settings) -> Sequence[tuple[Dialogue, int]]:
        """Return each sampled dialogue with its last turn."""
        wanted = settings.data
        return sample_turns(self.data, wanted.turns, settings.variant.seed, wanted.domains)

    @property
    def sampled(self) -> DialogueSet:
        """The data with only the sampled turns."""
        wanted, seed = self.settings.data, self.settings.variant.seed
        return sample_set(self.data, wanted.turns, seed, wanted.domains)

    def first_contexts(self) -> list[Context]:
        """Return the contexts of the preflight, which are equal for all shards."""
        turns = (
            (dialogue, index)
            for dialogue, last in self.drawn(self.settings)
            for index in range(last + 1)
        )
        first = islice(turns, PREFLIGHT_CONTEXTS)
        return [dialogue.context(index) for dialogue, index in first]

    def check(self, settings: Settings) -> None:
        """Raise an error for settings that contradict the data. Stored results need no check."""
        if settings not in self._checked and self.stored is None:
            self.drawn(settings)
            comparison, data = self.comparison(settings.reply), self.data_of(settings)
            for one in each_of(settings, self.relations(settings)):
                CampaignSpec.of(
                    one.settings.variant,
                    data,
                    self.lexicon,
                    reply=settings.reply,
                    comparison=comparison,
                )
                if why := self.hopeless(one.relation, data):
                    raise UserError(why)
            self._checked.add(settings)

    @cached_property
    def mistake(self) -> UserError | None:
        """The error in the settings of the session, if any. Errors in markers do not count."""
        try:
            self.check(self.settings)
        except UserError as error:
            return error
        return None

    @cached_property
    def _with_words(self) -> dict[tuple[str | None, str | None], DialogueSet]:
        """Maps (file of paraphrases, file of rewrites) to the dialogues with both files."""
        return {}

    @cached_property
    def _relations(self) -> dict[tuple[str, str, int], tuple[Relation, ...]]:
        """Maps (name in the settings, kind of answer, ``id()`` of the data) to the relations."""
        return {}

    @cached_property
    def _hopeless(self) -> dict[tuple[str, int], str]:
        """Maps (name of a relation, ``id()`` of the data) to the reason why it cannot apply."""
        return {}

    @cached_property
    def _comparisons(self) -> dict[ReplySettings, Comparison]:
        return {}

    @cached_property
    def _guards(self) -> Locks:
        locks = self.settings.variant.lock
        return Locks.of(self.lexicon, self.data.ontology, self.data.cue_words, locks)

    @cached_property
    def _checked(self) -> set[Settings]:
        return set()


_NO_TRACKER = (
    "no tracker to test: name one with --dst-model (a registered name such as 'trade', or "
    "package.module:attribute), or override the fixture dst_model"
)
#: Key in the input of a worker of xdist.
_KEY = "dstfuzz"
_BETWEEN_BATCHES = (
    "--dst-max-seconds ends this run only between two batches: a call that does not return can be "
    "interrupted only in the main thread and on POSIX systems"
)


@dataclass(frozen=True, kw_only=True)
class TrackerFacts:
    """Facts about the trackers of a process. Facts of several processes can be added up."""

    usage: Usage | None = None
    disagreement: Disagreement | None = None
    #: Why calls of a tracker stopped although there was budget left, or ``""``.
    gone: str = ""
    #: Notes of the trackers.
    notes: tuple[str, ...] = ()
    #: Numbers of requested contexts, of additional contexts (preflight and retried batches), and of
    #: cached answers.
    asked: int = 0
    others: int = 0
    recalled: int = 0
    #: Problems with caches, and the folders to remove after the run.
    problems: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    #: The language model that compared replies, if there was one.
    judge: JudgeFacts | None = None
    #: The fingerprints of the tracker that --dst-model names. Each process makes its own tracker.
    fingerprints: tuple[str, ...] = ()

    @property
    def mixed(self) -> str:
        """Why the results are of several versions of the tracker, or ``""``."""
        if len(self.fingerprints) < 2:
            return ""
        return (
            f"the workers tested {len(self.fingerprints)} versions of the tracker, by its "
            "fingerprint: run again when it no longer changes"
        )

    def __add__(self, other: TrackerFacts) -> TrackerFacts:
        return TrackerFacts(
            usage=_sum((self.usage, other.usage)),
            disagreement=_sum((self.disagreement, other.disagreement)),
            gone=self.gone or other.gone,
            notes=_each_once(self.notes + other.notes),
            asked=self.asked + other.asked,
            others=self.others + other.others,
            recalled=self.recalled + other.recalled,
            problems=_each_once(self.problems + other.problems),
            folders=_each_once(self.folders + other.folders),
            judge=_sum((self.judge, other.judge)),
            fingerprints=_each_once(self.fingerprints + other.fingerprints),
        )


def _sum(parts: Iterable[Any]) -> Any:
    """Return the sum of the values. Skip ``None``; return ``None`` if no value is left."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None


def _each_once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


class TrackerPool:
    """Builds and checks the trackers of this process, and keeps their common budget."""

    def __init__(self, context: RunContext, listener: Listener) -> None:
        self._context = context
        self._settings = settings = context.settings
        self._listener = listener
        self._given: Mapping[str, Any] = context.worker.get(_KEY, {})
        #: Name of the run in all its processes.
        self._run: str = self._given.get("run") or uuid.uuid4().hex[:_DIGITS]
        self._caches = Caches(context.config, settings, self._given.get("run", ""))
        self._measured: dict[int, tuple[Tracker, Disagreement | None]] = {}
        #: (``id()`` of a tracker, kind of answer) -> the tracker and its predictor.
        self._predictors: dict[tuple[int, OutcomeKind], tuple[object, Predictor]] = {}
        self._tracker: Tracker | None = None
        #: Whether it passed the preflight, here or in the controller.
        self._tracker_tested = context.workers > 0 and context.model_on_command_line
        self.budget = _budget(settings.budget, self._given, context.workers)
        # The time limit covers the whole run.
        self.budget.deadline.start()

    @property
    def tracker(self) -> Tracker:
        """The tracker of the settings."""
        context = self._context
        if self._settings.tracker.model is None:
            raise UserError(_NO_TRACKER)
        if self._tracker is None:
            self._caches.identify()
            deadline = self.budget.deadline
            with bound_time(deadline, self._settings.budget.preflight_seconds):
                self._tracker = tracker_for(
                    self._settings, context.data, context.search_path, deadline, later=True
                )
        return self._tracker

    def test_named(self) -> None:
        """Raise an error if the tracker that the settings name fails the preflight."""
        self._test(self.tracker, self._settings.reply.outcome, named=True, origin="")
        self._tracker_tested = True

    def decider(self, outcome: OutcomeKind) -> Decider:
        """Return the decision rule for the tracker of the settings."""
        how = self._settings.tracker
        repeatable = is_repeatable(self.tracker, how.repeatable, outcome)
        return decider_of(how, repeatable=repeatable)

    def measure_named(self) -> None:
        """Request a few contexts from the session's tracker, to measure time and cost of a call.

        Raises:
            UserError: the tracker did not answer.
        """
        contexts, outcome = self._context.first_contexts(), self._settings.reply.outcome
        tracker = self.tracker
        if isinstance(tracker, UnloadedTracker):
            tracker.load()
        limit = self._settings.budget.preflight_seconds
        with bound_time(self.budget.deadline, limit), self.budget.besides(len(contexts)):
            ask_raw(tracker, contexts, outcome)
        self.budget.watch(tracker)

    def predictor(self, model: object, origin: str = "", outcome: OutcomeKind = STATE) -> Predictor:
        """Return the predictor for a tracker, after the preflight of the tracker."""
        known = self._predictors.get((id(model), outcome))
        if known is None:
            data, named = self._context.data, model is self._tracker
            tracker = as_tracker(
                model,
                normalisation=data.normalisation,
                outcome=outcome,
                history=self._settings.reply.history,
            )
            bound_concurrency(tracker, self._settings.tracker.concurrency)
            if not (self._tracker_tested and named):
                self._test(tracker, outcome, named=named, origin=origin)
            self.budget.watch(tracker)
            repeatable = is_repeatable(tracker, self._settings.tracker.repeatable, outcome)
            cache, fingerprint = self._caches.of(tracker, data, outcome, named=named, origin=origin)
            predictor = Predictor(
                tracker,
                self._settings.tracker.batch_size,
                ontology=data.ontology,
                normalisation=data.normalisation,
                budget=self.budget,
                listener=self._listener,
                decider=decider_of(self._settings.tracker, repeatable=repeatable),
                repeats=repeatable,
                cache=cache,
                outcome=outcome,
                retries=self._settings.tracker.retries,
                fingerprint=fingerprint,
            )
            # Keep a reference to the model: otherwise a new one could get the same id.
            known = self._predictors[id(model), outcome] = (model, predictor)
        return known[1]

    def _test(self, tracker: Tracker, outcome: OutcomeKind, *, named: bool, origin: str) -> None:
        """Run the preflight of a tracker, unless its result is cached."""
        contexts, data = self.budget.checks(self._context.first_contexts()), self._context.data
        cache, _ = self._caches.of(tracker, data, outcome, named=named, origin=origin)
        # Never cached: the mode of a network may have changed since the last run.
        refuse_training_mode(tracker)
        varies = not is_repeatable(tracker, self._settings.tracker.repeatable, outcome)
        measure = partial(
            preflight,
            tracker,
            contexts,
            ontology=data.ontology,
            deadline=self.budget.deadline,
            repeatable=not varies,
            outcome=outcome,
            spend=self.budget.besides,
        )
        try:
            with bound_time(self.budget.deadline, self._settings.budget.preflight_seconds):
                if cache is None:
                    measured = measure()
                else:
                    measured = cache.preflight(contexts, measure, varies=varies)
        except UserError as error:
            if not self._settings.output.redact:
                raise
            # The message may repeat utterances.
            raise type(error)(
                f"{KINDS[outcome].words.who} cannot be tested; the reason is {KEPT_BACK}"
            ) from None
        self._measured[id(tracker)] = tracker, measured
        self.budget.watch(tracker)

    def facts(self) -> TrackerFacts:
        """Return the facts that this process has collected."""
        return TrackerFacts(
            usage=self.budget.usage,
            disagreement=_sum(measured for _, measured in self._measured.values()),
            gone=self.budget.stopped,
            notes=_each_once(self._notes()),
            asked=self.budget.calls,
            others=self.budget.others,
            recalled=sum(predictor.recalled for _, predictor in self._predictors.values()),
            problems=_each_once(self._caches.problems),
            folders=self._caches.shared_folders,
            judge=self._context.judges.facts,
            fingerprints=self._caches.fingerprints,
        )

    def _notes(self) -> list[str]:
        """Return the notes about the trackers, and the limits that cannot be enforced."""
        found = [note for one, _ in self._measured.values() for note in notes_of(one)]
        if math.isfinite(self.budget.deadline.left) and not can_end_calls():
            found.append(_BETWEEN_BATCHES)
        if isinstance(decider_of(self._settings.tracker), SequentialTest):
            asked = self._predictors.items()
            found += [
                idle_test(self._settings.tracker, KINDS[outcome].words.who)
                for (_, outcome), (_, predictor) in asked
                if not predictor.decider.again
            ]
        return found

    def tell(self, workerinput: dict[str, Any]) -> None:
        """Send the known facts to a worker of xdist, so that the worker skips the preflight."""
        # Clocks may differ between processes, except for the time of day.
        ends = time.time() + self.budget.deadline.left
        workerinput[_KEY] = {
            "facts": to_json(self.facts()),
            "ends": ends if math.isfinite(ends) else None,
            "run": self._run,
        }


def _budget(settings: BudgetSettings, given: Mapping[str, Any], workers: int) -> Budget:
    """Return the budget for all trackers of this process."""
    seconds, ends = 0.0, given.get("ends")
    if settings.max_seconds is not None and ends is not None:
        seconds = settings.max_seconds - (ends - time.time())
    if workers:
        calls, tokens, cost = settings.max_calls, settings.max_tokens, settings.max_cost
        facts = from_json(TrackerFacts, given.get("facts", {}))
        before = facts.usage or Usage()
        settings = replace(
            settings,
            max_calls=calls and max(1, (calls - facts.others) // workers),
            max_tokens=tokens and max(1, (tokens - before.tokens) // workers),
            max_cost=cost and max(0.0, (cost - (before.cost or 0.0)) / workers),
        )
    return Budget(settings, spent_seconds=seconds)
