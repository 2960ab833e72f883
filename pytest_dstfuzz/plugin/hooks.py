"""Hooks of a session with robustness tests. They are registered for the first such test."""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import (
    KEPT_BACK,
    OutOfReachError,
    TrackerError,
    UserError,
    passes_through,
    redact_messages,
)
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.operators import NoiseInUse
from pytest_dstfuzz.plugin.campaigns import Progress, SessionCampaigns
from pytest_dstfuzz.plugin.context import RunContext, TrackerPool
from pytest_dstfuzz.plugin.ending import SessionEnd, check_outputs
from pytest_dstfuzz.plugin.gate import SessionGate
from pytest_dstfuzz.plugin.items import (
    TurnParam,
    make_selectable,
    parametrise,
    place_of,
    properties,
    refuse_replaced_options,
    suite_items,
)
from pytest_dstfuzz.plugin.options import given_options
from pytest_dstfuzz.plugin.regressions import RegressionCorpus
from pytest_dstfuzz.plugin.results import (
    FOUND,
    ItemOutcome,
    Items,
    ResultCollector,
    StoredCollector,
    is_about_dialogues,
    keep_back,
    keep_back_end,
    models_of,
)
from pytest_dstfuzz.plugin.stored import (
    judge_stored,
    refuse_other_data,
    refuse_other_rules,
    refuse_workers,
)
from pytest_dstfuzz.plugin.turn import BRIEF, DstConformance, DstReport, DstTurn
from pytest_dstfuzz.printable import format_count, printable
from pytest_dstfuzz.trackers.validation import cause_of

#: Number of new objects before a garbage collection. Python's default is 700 to 2,000.
_GARBAGE: Final = 10_000


class SessionHooks:
    """Prepares a session, and collects the results of its tests."""

    def __init__(self, config: pytest.Config) -> None:
        self.context = context = RunContext.of(config)
        self._stored = context.stored
        self.collector = (
            ResultCollector()
            if self._stored is None
            else StoredCollector(
                self._stored,
                context.settings,
                lambda: context.comparison(context.settings.reply),
            )
        )
        #: Whether `entry` unfreezes all objects after the other cleanups of the run.
        self.has_frozen = False
        #: Why the built-in suite does not run although it could be expected; otherwise ``""``.
        self.why_no_suite = ""
        redact_messages(self.context.settings.output.redact)
        # A later run in this process may not be redacted.
        self.context.config.add_cleanup(partial(redact_messages, False))
        self.gate = SessionGate(config, self.context.settings)
        self._progress = Progress(config)
        self.pool = TrackerPool(self.context, self._progress)
        self._progress.budget = self.pool.budget
        self.campaigns = SessionCampaigns(self.context, self.pool, self._progress)
        self._regressions = RegressionCorpus(self.context, self.collector, self.campaigns)
        self.end = SessionEnd(
            self.context, self.collector, self.gate, self.pool, self.campaigns, self._regressions
        )

    def prepare(self) -> None:
        """Check everything that can be checked before tests run.

        This happens before collection. If an ini file names the tracker, it happens when a selected
        test uses the tracker.
        """
        context = self.context
        if self._stored is not None:
            refuse_workers(context.config)
            drawn = context.drawn(context.settings)
            refuse_other_data(self._stored, context.settings, context.data, drawn)
            comparison = context.comparison(context.settings.reply)
            refuse_other_rules(self._stored, context.settings, comparison, context.search_path)
            self.collector.load()
        context.check(context.settings)
        if context.judges_nothing:
            return
        self.gate.prepare(context.data)
        check_outputs(context.settings, self._regressions, context.config)
        self._regressions.wanted()
        if self._stored is None and self.context.tests_its_tracker(
            self.campaigns.planned, self.collector
        ):
            self.context.judges.reach()
            self.pool.test_named()

    @property
    def must_judge(self) -> bool:
        """Whether this process must fail if it gives no verdict or does not test the tracker."""
        given = self.gate.given or self.context.model_on_command_line
        return given and not self.context.judges_nothing

    def early_exit(self, message: str) -> UserError:
        """Return the error for a run that ``pytest.exit`` ended before the first test."""
        shown = KEPT_BACK if self.context.settings.output.redact else message
        return OutOfReachError(
            f"nothing was tested: pytest.exit() ended the run before the first test ({shown}). "
            "With returncode=0 the run would pass: give another returncode, or let the tracker "
            "raise an error"
        )

    def parametrise(self, metafunc: pytest.Metafunc, values: Mapping[str, Any]) -> None:
        """Parametrise a test by turns, see `items.parametrise`."""
        parametrise(metafunc, values, self.context)

    def add_items(self, session: pytest.Session, items: list[pytest.Item], *, suite: bool) -> None:
        """Add the items of the plugin: for stored results, or for the suite and the regressions.

        ``suite`` says whether the run includes the built-in suite.
        """
        if self._stored is not None:
            why_accepted = self._regressions.why_accepted
            self.end.stored = Items(self._stored, self.context.settings, why_accepted)
            self.end.stored.collect(session, items)
            return
        if suite:
            items.extend(suite_items(session, self.context))
        make_selectable(items)
        if self.context.settings.gate.baseline is not None:
            self.collector.collected |= self.campaigns.trackers_of(items)
        self._regressions.collect(session, items)
        if self.context.mistake is not None:
            raise pytest.UsageError(str(self.context.mistake))

    def pytest_report_header(self) -> list[str]:
        """Return the cost of the run. Also say why the suite's tests replace the built-in tests."""
        if self._stored is not None:
            return [printable(f"dstfuzz: {judge_stored(self._stored, self.context.settings)}")]
        if not self.context.model_on_command_line:
            return []
        settings, data = self.context.settings, self.context.data
        how = settings.variant
        most = settings.data.turns
        turns = "all turns" if most is None else f"at most {format_count(most, 'turn')}"
        noise = ""
        if how.noisy:
            rate = NoiseInUse.of(how.noise, how.slip_rate).rate
            noise = f" ({' and '.join(how.noise)}, slip rate {100 * rate:g} %)"
        compared = ""
        if not KINDS[settings.reply.outcome].words.values:
            name = self.context.comparison(settings.reply).name
            compared = f", replies compared by {name}"
        what = (
            f"{settings.tracker.model} on {data.name} "
            f"({data.split}, {format_count(data.turn_count(), 'turn')}): "
            f"{turns} x {format_count(how.variants, 'variant')}, {how.search} search, "
            f"{how.validity}{noise}, {how.attack}, {how.relation}{compared}, seed {how.seed}"
        )
        lines = [what, *filter(None, [self.context.not_own_questions])]
        return [printable(f"dstfuzz: {line}") for line in lines]

    def pytest_report_collectionfinish(self) -> list[str]:
        """Return lines about the cost of the run. If it only collects, call the tracker first."""
        lines = [*filter(None, [self.why_no_suite]), *self._cost_lines()]
        return [printable(f"dstfuzz: {text}") for text in lines]

    def _cost_lines(self) -> list[str]:
        """Return lines about the cost of the run. If it only collects, ask the tracker first."""
        context, config = self.context, self.context.config
        if context.settings.tracker.model is None or not self.campaigns.planned:
            return []
        if config.getoption("collectonly"):
            if not context.model_on_command_line or config.get_verbosity() < 0:
                return []
            try:
                self.pool.measure_named()
                return self.campaigns.cost_lines(always=True)
            except (UserError, TrackerError) as error:
                return [f"the cost of the run is not known: {error}"]
        return [] if self._stored is not None else self.campaigns.cost_lines(always=False)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Pass the turns of the selected tests to the campaigns, and check the tracker."""
        if self.end.stored is not None:
            self.end.stored.plan(session.items)
        if self._stored is not None:
            return
        try:
            refuse_replaced_options(session.items, given_options(session.config))
        except UserError as error:
            raise self.gate.end(error) from error
        self.campaigns.plan(session.items)
        self.collector.plan(self.campaigns.planned)
        self._progress.planned = self.collector.planned
        if self.context.model_on_command_line or session.testsfailed:
            return
        try:
            if self.context.tests_its_tracker(self.campaigns.planned, self.collector):
                self.prepare()
            elif self.collector.planned and not self.context.judges_nothing:
                self.gate.prepare(self.context.data)
                check_outputs(self.context.settings, self._regressions, session.config)
        except UserError as error:
            raise self.gate.end(error) from error

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker of xdist the facts about the trackers, so that it skips the preflight."""
        self.pool.tell(node.workerinput)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """End the session with one message if a tracker or a lexicon is unusable."""
        name = fixturedef.argname
        try:
            return (yield)
        except UserError as error:
            if not name.startswith("dst_"):
                raise
            raise self._refusal(request.node, error) from None
        except BaseException as error:
            if isinstance(error, Exception) or passes_through(error) or not name.startswith("dst_"):
                raise
            # Pytest does not store it, and reports another error for all later tests.
            refused = UserError(f"the fixture {name} raised {cause_of(error)}")
            raise self._refusal(request.node, refused) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Exclude tracker and data from garbage collection until the end of the run.

        Tracker and data exist until the end of the run, and scanning them took a twentieth of the
        time. Collections also run less often, because most new objects persist. Python cannot
        unfreeze only some objects. If the caller of pytest has frozen objects, all objects stay
        frozen.
        """
        if not gc.get_freeze_count():
            gc.freeze()
            self.has_frozen = True
        first, *others = gc.get_threshold()
        if 0 < first < _GARBAGE:
            gc.set_threshold(_GARBAGE, *others)
            self.context.config.add_cleanup(partial(gc.set_threshold, first, *others))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record the result of a test. In a worker, attach it to the report for the controller."""
        report = yield
        if self.context.settings.output.redact and is_about_dialogues(item):
            keep_back(report, call)
        text, brief = item.stash.get(BRIEF, ("", None))
        if brief and call.excinfo is not None and str(call.excinfo.value) == text:
            # A list, because workers of xdist send no other types.
            report.dstfuzz_brief = [*brief]  # type: ignore[attr-defined]  # any will do
        # The result of a fixture is stored on its node: the session, a module or the test.
        for node in item.listchain():
            found = node.stash.get(FOUND, None)
            if found is None:
                continue
            del node.stash[FOUND]
            if self.context.sends_results:
                report.dstfuzz = to_json(found)  # type: ignore[attr-defined]  # any will do
            else:
                self.collector.add(found)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Redact the exception that ended the session, if necessary."""
        if self.context.settings.output.redact:
            keep_back_end(excinfo, self.context.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record that pytest printed a dot. Keep back the output of a private subtest."""
        self._progress.sign_of_life()
        if getattr(report, "dstfuzz_private", False):
            report.sections = []

    def turn(
        self,
        request: pytest.FixtureRequest,
        model: object,
        chosen: Mapping[str, object],
        lexicon: Lexicon,
    ) -> DstTurn:
        """Return the value of the fixture ``dst_turn``."""
        param, item = getattr(request, "param", None), request.node
        if not isinstance(param, TurnParam):
            pytest.fail(
                "dst_turn must be an argument of the test function: "
                "getfixturevalue() does not work",
                pytrace=False,
            )

        def run(options: Mapping[str, object]) -> tuple[TurnResult, Settings]:
            try:
                test = param.with_options(options)
                key = self.campaigns.fixtures.key(item, test, model, chosen, lexicon)
                result = self.campaigns.result(test, model, key, param.settings)
            except UserError as error:
                raise self._refusal(item, error) from None
            found = self.campaigns.found(test, key, result)
            item.stash[FOUND] = replace(found, place=place_of(item))
            item.user_properties += properties(result, test.settings)
            return result, key.effective

        about = (param.dialogue, param.turn_index, param.settings)
        refuse = partial(self._refusal, item)
        return DstTurn(item, *about, run, self._regressions.why_accepted, refuse)

    def report(self) -> DstReport:
        """Return the value of the fixture ``dst_report``."""
        context = self.context
        settings, data = context.settings, context.data

        def models() -> dict[str, tuple[TurnResult, ...]]:
            found = models_of(self.collector, settings, data, {})
            return {one.name: tuple(one.results) for one in found}

        return DstReport(models, settings)

    def conformance(self, request: pytest.FixtureRequest, model: object) -> DstConformance:
        """Run all checks of the conformance kit on a tracker."""
        from pytest_dstfuzz.testing import check_tracker  # noqa: PLC0415 - few runs need it

        data, how = self.context.sampled, self.context.settings.tracker
        report = check_tracker(
            model,
            data,
            batch_size=how.batch_size,
            repeatable=how.repeatable,
            outcome=self.context.settings.reply.outcome,
        )
        request.node.stash[FOUND] = ItemOutcome(conformance=True)
        return DstConformance(report)

    def _refusal(self, node: pytest.Item | pytest.Collector, error: UserError) -> BaseException:
        """End the session because of a mistake that only a running test revealed.

        The returned exception fails the running test. ``pytest.exit`` would crash a worker of xdist
        together with its controller.
        """
        node.stash[FOUND] = ItemOutcome(problem=str(error), status=self.gate.status_of(error))
        node.session.shouldstop = "the robustness tests cannot be run"
        return pytest.fail.Exception(str(error), pytrace=False)
