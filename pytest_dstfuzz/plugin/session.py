"""One session of robustness tests: data, trackers and campaigns, each made when it is needed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_dstfuzz.campaign.attempts import Rules
from pytest_dstfuzz.campaign.campaign import Campaign, predictor_for
from pytest_dstfuzz.campaign.ids import turn_id
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings, build_settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.dialogue.types import Context, Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.plugin.options import read_settings
from pytest_dstfuzz.plugin.progress import Progress
from pytest_dstfuzz.plugin.record import Record, problem_payload, result_payload
from pytest_dstfuzz.plugin.suite import builtin_items
from pytest_dstfuzz.plugin.turn import DstReport, DstTurn
from pytest_dstfuzz.report.files import check_writable
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.checks import describe
from pytest_dstfuzz.trackers.preflight import PREFLIGHT_CONTEXTS, preflight
from pytest_dstfuzz.trackers.protocol import Tracker
from pytest_dstfuzz.trackers.registry import resolve_tracker

_NO_TRACKER = (
    "no tracker to test: name one with --dst-model (a registered name such as 'trade', or "
    "package.module:attribute), or override the fixture dst_model"
)


class TurnParam(NamedTuple):
    """What one item of a parametrised test is about."""

    settings: Settings
    #: Names of the settings that markers of the test gave.
    marked: tuple[str, ...]
    dialogue: Dialogue
    turn_index: int


class _Asked(NamedTuple):
    """What two tests must share to share a campaign."""

    #: Settings of the tests, and those with the search that the fixture names.
    settings: Settings
    effective: Settings
    model_id: int
    #: Compared by identity.
    lexicon: Lexicon


class DstSession:
    """Everything that the robustness tests of one process share.

    Args:
        config: pytest's.

    Raises:
        UserError: an option has a value that it does not take.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = read_settings(config)
        self.named = self.settings.model is not None
        self.record = Record()
        #: What the report of the running test is to carry.
        self.outbox: dict[str, Any] | None = None
        #: A mistake of the user that was found while tests were collected.
        self.problem: UserError | None = None
        self.started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.started = time.monotonic()
        self.progress = Progress(config)
        self._workers = int(getattr(config, "workerinput", {}).get("workercount", 0))
        #: What the selected tests are about.
        self._params: list[TurnParam] = []
        #: By the settings of tests: dialogue id -> dialogue, last turn that a test asks for.
        self._plans: dict[Settings, dict[str, tuple[Dialogue, int]]] = {}
        self._predictors: dict[int, tuple[object, Predictor]] = {}
        self._campaigns: dict[_Asked, Campaign] = {}

    @cached_property
    def data(self) -> DialogueSet:
        """The dialogues of the session."""
        return load_dialogues(self.settings.data, self.settings.split)

    @cached_property
    def lexicon(self) -> Lexicon:
        """The shipped words for the perturbations; a suite may bring its own."""
        return load_lexicon()

    @property
    def is_worker(self) -> bool:
        """Whether this process is one of xdist's workers."""
        return self._workers > 0

    # -- before tests run -------------------------------------------------------------

    def prepare(self) -> None:
        """Check everything that can be checked before collection.

        Raises:
            UserError: data, settings, tracker or report path will not do.
        """
        self._check(self.settings)
        if self.is_worker or self.config.getoption("collectonly"):
            return
        if self.settings.report is not None:
            check_writable(Path(self.settings.report))
        if self.named:
            self._tested(self.tracker)

    @cached_property
    def tracker(self) -> Tracker:
        """The tracker that the settings name."""
        if self.settings.model is None:
            raise UserError(_NO_TRACKER)
        folders = (self.config.invocation_params.dir, self.config.rootpath)
        return resolve_tracker(
            self.settings.model,
            checkpoint=self.settings.checkpoint,
            device=self.settings.device,
            batch_size=self.settings.batch_size,
            normalisation=self.data.normalisation,
            search_path=tuple(dict.fromkeys(str(folder) for folder in folders)),
        )

    def parametrise(self, metafunc: pytest.Metafunc, values: Mapping[str, Any]) -> None:
        """Make one item of a test for each turn that is sampled.

        Args:
            metafunc: of a test that uses ``dst_turn``.
            values: settings that its markers give.

        Raises:
            UserError: the markers' settings contradict each other or the data.
        """
        turns: list[tuple[Dialogue, int]] = []
        settings = self.settings
        try:
            self._check(self.settings)
        except UserError as error:
            # No mistake of this test: the session ends when collection is over.
            self.problem = error
        else:
            if values:
                settings = build_settings(values, self.settings)
                self._check(settings)
            turns = self._turns(settings)
        metafunc.parametrize(
            "dst_turn",
            [TurnParam(settings, tuple(sorted(values)), *turn) for turn in turns],
            ids=[turn_id(self.data, dialogue.id, index) for dialogue, index in turns],
            indirect=True,
        )

    def plan(self, items: Iterable[pytest.Item]) -> None:
        """Note which turns will be asked for, so that a campaign can look ahead."""
        callspecs = (getattr(item, "callspec", None) for item in items)
        params = (spec.params.get("dst_turn") for spec in callspecs if spec is not None)
        self._params = [param for param in params if isinstance(param, TurnParam)]
        for param in self._params:
            last = self._plans.setdefault(param.settings, {})
            _, index = last.get(param.dialogue.id, (param.dialogue, -1))
            last[param.dialogue.id] = (param.dialogue, max(index, param.turn_index))

    def builtin_items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """Collect the built-in suite."""
        return builtin_items(session)

    # -- while tests run --------------------------------------------------------------

    def turn(
        self, request: pytest.FixtureRequest, model: object, search: str, lexicon: Lexicon
    ) -> DstTurn:
        """Return what the fixture ``dst_turn`` gives to a test."""
        param = getattr(request, "param", None)
        if not isinstance(param, TurnParam):
            pytest.fail(
                "dst_turn must be an argument of the test itself: it is not there for "
                "getfixturevalue()",
                pytrace=False,
            )

        def run() -> TurnResult:
            try:
                result = self._result(param, model, search, lexicon)
            except UserError as error:
                raise self.refusal(request.session, error) from None
            self.outbox = result_payload(_key(param, model, lexicon), result, lexicon.fingerprint)
            request.node.user_properties += _properties(result, param.settings)
            return result

        return DstTurn(request.node, param.dialogue, param.turn_index, param.settings, run)

    def keep_finished(self) -> None:
        """Record what campaigns had finished for tests that an interrupt did not let run."""
        for asked, campaign in self._campaigns.items():
            model = self._predictors[asked.model_id][0]
            finished = {(turn.dialogue_id, turn.turn_index): turn for turn in campaign.finished()}
            for param in self._params:
                result = finished.get((param.dialogue.id, param.turn_index))
                if result is None or result.outcome == "skipped":
                    continue
                if param.settings == asked.settings:
                    key = _key(param, model, asked.lexicon)
                    self.record.add(result_payload(key, result, asked.lexicon.fingerprint))

    def report(self) -> DstReport:
        """Return what the fixture ``dst_report`` gives to a test."""
        return DstReport(lambda: self.record.results(self.data), self.settings)

    def refusal(self, session: pytest.Session, error: UserError) -> BaseException:
        """End the session because of a mistake that only showed when a test ran.

        ``pytest.exit`` would do, but it brings down a worker of xdist with its controller.

        Returns:
            The exception that fails the running test.
        """
        self.outbox = problem_payload(str(error))
        session.shouldstop = "the robustness tests cannot be run"
        return pytest.fail.Exception(str(error), pytrace=False)

    def _result(self, param: TurnParam, model: object, search: str, lexicon: Lexicon) -> TurnResult:
        if not isinstance(lexicon, Lexicon):
            raise UserError(
                "the fixture dst_lexicon must return a lexicon, such as "
                f"load_lexicon().with_sources(...), not {describe(lexicon)}"
            )
        settings = param.settings
        if "search" not in param.marked:
            settings = replace(settings, search=search)
        predictor = self._predictor(model)
        key = _Asked(param.settings, settings, id(model), lexicon)
        if key not in self._campaigns:
            self._campaigns[key] = Campaign(
                settings,
                self.data,
                predictor,
                lexicon,
                plan=self._planned(param),
                listener=self.progress,
                # What a worker looks ahead to may be another worker's turn.
                window=self.settings.batch_size if self.is_worker else None,
            )
        return self._campaigns[key].result(param.dialogue.id, param.turn_index)

    def _planned(self, param: TurnParam) -> list[tuple[Dialogue, int]]:
        turns = self._plans[param.settings]
        return [turns[dialogue.id] for dialogue in self.data.dialogues if dialogue.id in turns]

    def _predictor(self, model: object) -> Predictor:
        known = self._predictors.get(id(model))
        if known is None:
            settings = self.settings
            if self.is_worker and settings.max_calls is not None:
                settings = replace(settings, max_calls=max(1, settings.max_calls // self._workers))
            tracker = as_tracker(model, normalisation=self.data.normalisation)
            # What --dst-model names was tested before collection, by the controller.
            if not (self.named and model is self.tracker):
                self._tested(tracker)
            # The model is kept with it: a new one could be given the same id otherwise.
            known = model, predictor_for(settings, self.data, tracker, self.progress)
            self._predictors[id(model)] = known
        return known[1]

    def _tested(self, tracker: Tracker) -> None:
        preflight(tracker, self._first_contexts(), ontology=self.data.ontology)

    def _first_contexts(self) -> list[Context]:
        turns = self._turns(self.settings)[:PREFLIGHT_CONTEXTS]
        return [dialogue.context(index) for dialogue, index in turns]

    def _turns(self, settings: Settings) -> list[tuple[Dialogue, int]]:
        sampled = sample_turns(self.data, settings.turns, settings.seed, settings.domains)
        return [(dialogue, index) for dialogue, last in sampled for index in range(last + 1)]

    def _check(self, settings: Settings) -> None:
        if settings not in self._checked:
            self._turns(settings)
            Rules.of(settings, self.data, self.lexicon)
            self._checked.add(settings)

    @cached_property
    def _checked(self) -> set[Settings]:
        return set()


def _key(param: TurnParam, model: object, lexicon: Lexicon) -> str:
    """Return what tells results of one turn apart: the markers' settings, tracker, lexicon."""
    named = model if hasattr(model, "__qualname__") else type(model)
    marked = {name: getattr(param.settings, name) for name in param.marked}
    return f"{named.__module__}.{named.__qualname__} {marked} {lexicon.fingerprint}"


def _properties(result: TurnResult, settings: Settings) -> list[tuple[str, object]]:
    """Return what --junitxml shows of a turn."""
    outcomes = [variant.outcome for variant in result.variants]
    properties: list[tuple[str, object]] = [
        ("dst_turn", result.id),
        ("dst_outcome", result.outcome),
        ("dst_variants", len(outcomes)),
        ("dst_valid", sum(variant.valid for variant in result.variants)),
        ("dst_violations", outcomes.count("violation")),
        ("dst_seed", settings.seed),
    ]
    if result.reason:
        properties.append(("dst_reason", result.reason))
    return properties
