"""One session of robustness tests: data, trackers and campaigns, each made when it is needed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

import pytest

from pytest_dstfuzz.campaign.attempts import CampaignSpec
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult, turn_id
from pytest_dstfuzz.config import Settings, build_settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.plugin.agent import REDRAWS, DstAgent
from pytest_dstfuzz.plugin.gate import SessionGate
from pytest_dstfuzz.plugin.items import (
    TurnParam,
    make_selectable,
    own_settings,
    param_of,
    place_of,
    properties,
    result_key,
)
from pytest_dstfuzz.plugin.memory import RegressionCorpus
from pytest_dstfuzz.plugin.options import given_options, read_settings
from pytest_dstfuzz.plugin.origins import CampaignKey, FixtureValues, Origins
from pytest_dstfuzz.plugin.outputs import check_outputs
from pytest_dstfuzz.plugin.progress import Progress
from pytest_dstfuzz.plugin.result_collector import ResultCollector, problem_payload, result_payload
from pytest_dstfuzz.plugin.suite import builtin_items
from pytest_dstfuzz.plugin.tracker_pool import TrackerPool
from pytest_dstfuzz.plugin.turn import DstReport, DstTurn
from pytest_dstfuzz.search.policy import AgentSearch, describe_policy, is_agent
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.preflight import PREFLIGHT_CONTEXTS
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker

_NO_TRACKER = (
    "no tracker to test: name one with --dst-model (a registered name such as 'trade', or "
    "package.module:attribute), or override the fixture dst_model"
)


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
        #: Whether the command line names a tracker. An ini file that does serves runs of
        #: other tests too.
        self.model_on_command_line: Final = any(
            given.name == "model" and given.on_command_line for given in given_options(config)
        )
        self.record = ResultCollector()
        self.memory = RegressionCorpus(self)
        self.gate = SessionGate(config, self.settings)
        #: What is to be recorded of the running test.
        self.outbox: dict[str, Any] | None = None
        #: A mistake of the user that was found while tests were collected.
        self.problem: UserError | None = None
        self.started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.started = time.monotonic()
        self.progress = Progress(config)
        self._pid = os.getpid()
        self._workers = int(getattr(config, "workerinput", {}).get("workercount", 0))
        self.service = TrackerPool(config, self.settings, self._workers)
        self._origins = Origins()
        #: What the selected tests are about, and where their trackers come from.
        self._params: list[tuple[TurnParam, str]] = []
        #: By settings and origin: dialogue id -> dialogue, last turn that a test asks for.
        self._plans: dict[tuple[Settings, str], dict[str, tuple[Dialogue, int]]] = {}
        self._fixtures = FixtureValues(self._origins)
        self._tracker: Tracker | None = None
        #: Whether that one passed the preflight, here or in the controller.
        self._tracker_tested = self.is_worker and self.model_on_command_line
        self._predictors: dict[int, tuple[object, Predictor]] = {}
        #: By the name of an agent's search: fingerprint of its policy, and a note on it.
        self._policies: dict[str, tuple[str, str]] = {}
        self._campaigns: dict[CampaignKey, CampaignEngine] = {}

    @cached_property
    def data(self) -> DialogueSet:
        """The dialogues of the session."""
        return with_slots(
            load_dialogues(self.settings.data.data, self.settings.data.split),
            self.settings.data.slots,
        )

    @cached_property
    def lexicon(self) -> Lexicon:
        """The shipped words for the perturbations; a suite may bring its own."""
        return load_lexicon()

    @property
    def named(self) -> bool:
        """Whether this run is to test a tracker that the settings name."""
        concerned = self.model_on_command_line or bool(self._params) or len(self.record) > 0
        return self.settings.tracker.model is not None and concerned

    @property
    def is_worker(self) -> bool:
        """Whether this process is one of xdist's workers."""
        return self._workers > 0

    @property
    def sends_results(self) -> bool:
        """Whether another process reports: that of xdist, or the one that this one left."""
        return self.is_worker or os.getpid() != self._pid

    # -- before tests run -------------------------------------------------------------

    def prepare(self) -> None:
        """Check everything that can be checked before tests run.

        That is before collection, or once it is known that the tracker of an ini file
        is going to be tested.

        Raises:
            UserError: data, settings, tracker or report path cannot be used.
        """
        self._check(self.settings)
        if self.is_worker or self.config.getoption("collectonly"):
            return
        self.gate.prepare(self.data)
        check_outputs(self.settings, self.memory, self.config)
        self.memory.wanted()
        if self.named:
            self.service.test(self.tracker, self._first_contexts(), self.data)
            self._tracker_tested = True

    @property
    def tracker(self) -> Tracker:
        """The tracker that the settings name."""
        if self.settings.tracker.model is None:
            raise UserError(_NO_TRACKER)
        if self._tracker is None:
            folders = (self.config.invocation_params.dir, self.config.rootpath)
            search_path = tuple(dict.fromkeys(map(str, folders)))
            deadline = self.service.budget.deadline
            with self.service.bounded():
                self._tracker = tracker_for(self.settings, self.data, search_path, deadline)
        return self._tracker

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
        marked = tuple(sorted(values))
        params = [
            TurnParam(settings, marked, *turn, turn_id(self.data, turn[0].id, turn[1]))
            for turn in turns
        ]
        ids = [param.turn_id for param in params]
        metafunc.parametrize("dst_turn", params, ids=ids, indirect=True)

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Note which turns will be asked for, so that a campaign can look ahead."""
        about = [(item, param) for item in items if (param := param_of(item)) is not None]
        self._origins.learn(item for item, _ in about)
        self._params = [(param, self._origins.of(item)) for item, param in about]
        for param, origin in self._params:
            last = self._plans.setdefault((param.settings, origin), {})
            _, index = last.get(param.dialogue.id, (param.dialogue, -1))
            last[param.dialogue.id] = (param.dialogue, max(index, param.turn_index))
        self.record.planned = len(
            {(param.settings, origin, param.turn_id) for param, origin in self._params}
        )

    def builtin_items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """Collect the built-in suite."""
        return builtin_items(session)

    def make_selectable(self, items: Sequence[pytest.Item]) -> None:
        """Let ``-k`` select every item that is about a turn."""
        make_selectable(items)

    # -- while tests run --------------------------------------------------------------

    def turn(
        self,
        request: pytest.FixtureRequest,
        model: object,
        chosen: Mapping[str, object],
        lexicon: Lexicon,
    ) -> DstTurn:
        """Return what the fixture ``dst_turn`` gives to a test.

        Args:
            request: of the test.
            model: what the fixture ``dst_model`` gave.
            chosen: ``search`` and ``relation`` -> what their fixtures gave.
            lexicon: what the fixture ``dst_lexicon`` gave.
        """
        param = getattr(request, "param", None)
        if not isinstance(param, TurnParam):
            pytest.fail(
                "dst_turn must be an argument of the test itself: it is not there for "
                "getfixturevalue()",
                pytrace=False,
            )

        def run() -> tuple[TurnResult, Settings]:
            try:
                asked = self._fixtures.key(request.node, param, model, chosen, lexicon)
                result = self._result(param, model, asked)
            except UserError as error:
                raise self.refusal(request.session, error) from None
            self.outbox = {**self._payload(param, asked, result), "place": place_of(request.node)}
            request.node.user_properties += properties(result, param.settings)
            return result, asked.effective

        about = (param.dialogue, param.turn_index, param.settings)
        return DstTurn(request.node, *about, run, self.memory.why_accepted)

    def keep_finished(self) -> None:
        """Record what campaigns had finished for tests that an interrupt did not let run.

        This is done in the process that runs the tests. With workers an interrupt reaches
        the controller alone, which reports the tests whose reports had come in; what the
        campaigns of its workers had computed ahead of their tests is lost with them.
        """
        for asked, campaign in self._campaigns.items():
            finished = {turn.id: turn for turn in campaign.finished()}
            for param, origin in self._params:
                result = finished.get(param.turn_id)
                if result is None or result.outcome == "skipped":
                    continue
                if (param.settings, origin) == (asked.settings, asked.origin):
                    self.record.add(self._payload(param, asked, result))

    def predictor(self, model: object, item: pytest.Item) -> Predictor:
        """Return the door to the tracker of a test."""
        return self._predictor(model, self._origins.of(item))

    def report(self) -> DstReport:
        """Return what the fixture ``dst_report`` gives to a test."""
        return DstReport(lambda: self.record.results(self.data), self.settings)

    def agent(self, model: object, search: object, lexicon: Lexicon) -> DstAgent:
        """Return what the fixture ``dst_agent`` gives to a test."""
        name = search if isinstance(search, str) and is_agent(search) else AgentSearch.name
        settings = self.settings.replace_options(search=name, redraws=REDRAWS)
        return DstAgent(
            CampaignSpec.of(settings.variant, self.data, lexicon), self._predictor(model)
        )

    def refusal(self, session: pytest.Session, error: UserError) -> BaseException:
        """End the session because of a mistake that only showed when a test ran.

        ``pytest.exit`` would do, but it brings down a worker of xdist with its controller.

        Returns:
            The exception that fails the running test.
        """
        self.outbox = problem_payload(str(error), self.gate.status_of(error))
        session.shouldstop = "the robustness tests cannot be run"
        return pytest.fail.Exception(str(error), pytrace=False)

    def _payload(self, param: TurnParam, asked: CampaignKey, result: TurnResult) -> dict[str, Any]:
        words, search = asked.lexicon.fingerprint, asked.effective.variant.search
        own = own_settings(param.settings, self.settings)
        relation = asked.effective.variant.relation
        others = own if relation == param.settings.variant.relation else f"{own} {relation}"
        key = result_key(others, asked.origin, search, words)
        policy = self._policy(search) if is_agent(search) and not asked.search_id else ("", "")
        chosen = {
            name: str(getattr(asked.effective.variant, name))
            for name in ("search", "relation")
            if name not in param.marked
        }
        planned, plain = self.record.planned, self.sends_results
        # Those of this process are known here.
        worker = getattr(self.config, "workerinput", {}).get("workerid", "")
        service = (worker, self.service.facts()) if worker else ("", {})
        return result_payload(
            key,
            result,
            words,
            policy=policy,
            planned=planned,
            own=own,
            plain=plain,
            service=service,
            relation=relation,
            chosen=chosen,
        )

    def _policy(self, search: str) -> tuple[str, str]:
        """Return the fingerprint of an agent's policy, and a note on it."""
        if search not in self._policies:
            model, weights = self.settings.tracker.model, self.settings.tracker.checkpoint
            self._policies[search] = describe_policy(search, model, weights)
        return self._policies[search]

    def _result(self, param: TurnParam, model: object, asked: CampaignKey) -> TurnResult:
        # A tracker that cannot be used is refused before the settings are looked at.
        predictor = self._predictor(model, asked.origin)
        if asked not in self._campaigns:
            planned = self._plans[asked.settings, asked.origin]
            self._campaigns[asked] = CampaignEngine(
                asked.effective,
                self.data,
                predictor,
                asked.lexicon,
                plan=[planned[item.id] for item in self.data.dialogues if item.id in planned],
                listener=self.progress,
                # What a worker looks ahead to may be another worker's turn.
                window=self.settings.tracker.batch_size if self.is_worker else None,
                ahead=not self.is_worker,
                search=self._fixtures.own(asked.search_id),
                relation=self._fixtures.own(asked.relation_id),
            )
        return self._campaigns[asked].result(param.dialogue.id, param.turn_index)

    def _predictor(self, model: object, origin: str = "") -> Predictor:
        known = self._predictors.get(id(model))
        if known is None:
            tracker, data = as_tracker(model, normalisation=self.data.normalisation), self.data
            named = model is self._tracker
            if not (self._tracker_tested and named):
                contexts = self._first_contexts()
                self.service.test(tracker, contexts, data, named=named, origin=origin)
            predictor = self.service.predictor(
                tracker, data, self.progress, named=named, origin=origin
            )
            # The model is kept with it: a new one could be given the same id otherwise.
            known = self._predictors[id(model)] = (model, predictor)
        return known[1]

    def _first_contexts(self) -> list[Context]:
        turns = self._turns(self.settings)[:PREFLIGHT_CONTEXTS]
        return [dialogue.context(index) for dialogue, index in turns]

    def _turns(self, settings: Settings) -> list[tuple[Dialogue, int]]:
        sampled = sample_turns(
            self.data, settings.data.turns, settings.variant.seed, settings.data.domains
        )
        return [(dialogue, index) for dialogue, last in sampled for index in range(last + 1)]

    def _check(self, settings: Settings) -> None:
        if settings not in self._checked:
            self._turns(settings)
            CampaignSpec.of(settings.variant, self.data, self.lexicon)
            self._checked.add(settings)

    @cached_property
    def _checked(self) -> set[Settings]:
        return set()
