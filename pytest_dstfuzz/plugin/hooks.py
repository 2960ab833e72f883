"""Hooks of a session in which robustness tests are run; registered when the first one is."""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
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
    suite_items,
)
from pytest_dstfuzz.plugin.regressions import RegressionCorpus
from pytest_dstfuzz.plugin.results import (
    FOUND,
    Found,
    Items,
    ResultCollector,
    StoredCollector,
    is_about_dialogues,
    keep_back,
    keep_back_end,
    models_of,
)
from pytest_dstfuzz.plugin.stored import judged, refuse_other_data, refuse_workers
from pytest_dstfuzz.plugin.turn import DstConformance, DstReport, DstTurn
from pytest_dstfuzz.printable import printable

#: So many more objects than were given back are there before garbage is looked for; Python's own
#: number is 700 to 2,000.
_GARBAGE: Final = 10_000


class SessionHooks:
    """Puts a session together, and carries results from tests to its end."""

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
        #: Why the built-in suite is not run where it could be expected; ``""`` elsewhere.
        self.why_no_suite = ""
        self.gate = SessionGate(config, self.context.settings)
        self._progress = Progress(config, context.settings.budget.max_calls)
        self.pool = TrackerPool(self.context, self._progress)
        self.campaigns = SessionCampaigns(self.context, self.pool, self._progress)
        self._regressions = RegressionCorpus(self.context, self.collector, self.campaigns)
        self.end = SessionEnd(
            self.context, self.collector, self.gate, self.pool, self.campaigns, self._regressions
        )

    # -- before tests run -------------------------------------------------------------

    def prepare(self) -> None:
        """Check everything that can be checked before tests run.

        That is before collection, or once it is known that the tracker of an ini file
        is going to be tested.
        """
        context = self.context
        if self._stored is not None:
            refuse_workers(context.config)
            drawn = context.drawn(context.settings)
            refuse_other_data(self._stored, context.settings, drawn)
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
            with self._progress.first_answers():
                self.pool.test_named()

    def parametrise(self, metafunc: pytest.Metafunc, values: Mapping[str, Any]) -> None:
        """Make one item of a test for each turn; see `items.parametrise`."""
        parametrise(metafunc, values, self.context)

    def add_items(self, session: pytest.Session, items: list[pytest.Item], *, suite: bool) -> None:
        """Add the built-in suite where it is wanted, and the regressions; or a folder's items."""
        if self._stored is not None:
            why_accepted = self._regressions.why_accepted
            Items(self._stored, self.context.settings, why_accepted).collect(session, items)
            return
        if suite:
            items.extend(suite_items(session, self.context))
        make_selectable(items)
        self._regressions.collect(session, items)
        if self.context.mistake is not None:
            raise pytest.UsageError(str(self.context.mistake))

    def pytest_report_header(self) -> list[str]:
        """Say what is going to be tested."""
        if self._stored is not None:
            return [printable(f"dstfuzz: {judged(self._stored, self.context.settings)}")]
        if not self.context.model_on_command_line:
            return []
        settings, data = self.context.settings, self.context.data
        how = settings.variant
        turns = "all" if settings.data.turns is None else f"at most {settings.data.turns}"
        noise = ""
        if how.noisy:
            rate = NoiseInUse.of(how.noise, how.slip_rate).rate
            noise = f" ({' and '.join(how.noise)}, slip rate {100 * rate:g} %)"
        compared = ""
        if not KINDS[settings.reply.outcome].words.values:
            name = self.context.comparison(settings.reply).name
            compared = f", replies compared by {name}"
        what = (
            f"{settings.tracker.model} on {data.name} ({data.split}, {data.turn_count()} turns): "
            f"{turns} turns x {how.variants} variants, {how.search} search, "
            f"{how.validity}{noise}, {how.attack}, {how.relation}{compared}, seed {how.seed}"
        )
        lines = [what, *filter(None, [self.context.not_own_questions])]
        return [printable(f"dstfuzz: {line}") for line in lines]

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say that tests of the suite stand for the built-in ones."""
        return [printable(f"dstfuzz: {text}") for text in filter(None, [self.why_no_suite])]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let campaigns know which turns will be asked for, and test an ini file's tracker."""
        if self._stored is not None:
            return
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
        """Tell a worker of xdist what was measured of the tracker that it will ask."""
        self.pool.tell(node.workerinput)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """End the session where a tracker or a lexicon cannot be had, with one message."""
        try:
            return (yield)
        except UserError as error:
            if not fixturedef.argname.startswith("dst_"):
                raise
            raise self._refusal(request.node, error) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Put tracker and data out of the way of the search for garbage, up to the end of the run.

        They stay to its end, and to look through them again and again took a twentieth of the time
        of a campaign; pytest itself does it twice when all is over. Nearly all that is made stays,
        too: it is looked through less often.
        """
        gc.freeze()
        self.context.config.add_cleanup(gc.unfreeze)
        first, *others = gc.get_threshold()
        if 0 < first < _GARBAGE:
            gc.set_threshold(_GARBAGE, *others)
            self.context.config.add_cleanup(partial(gc.set_threshold, first, *others))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record what a test found out, or let its report carry it to another process."""
        report = yield
        if self.context.settings.output.redact and is_about_dialogues(item):
            keep_back(report, call)
        # What a fixture found is with what holds it: the session, a module, or the test.
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
        """Let what ended the session say nothing that is to be kept back."""
        if self.context.settings.output.redact:
            keep_back_end(excinfo, self.context.config)

    def pytest_runtest_logreport(self) -> None:
        """Note that a dot was printed."""
        self._progress.sign_of_life()

    # -- what fixtures give -----------------------------------------------------------

    def turn(
        self,
        request: pytest.FixtureRequest,
        model: object,
        chosen: Mapping[str, object],
        lexicon: Lexicon,
    ) -> DstTurn:
        """Return what the fixture ``dst_turn`` gives to a test."""
        param, item = getattr(request, "param", None), request.node
        if not isinstance(param, TurnParam):
            pytest.fail(
                "dst_turn must be an argument of the test itself: it is not there for "
                "getfixturevalue()",
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
        """Return what the fixture ``dst_report`` gives to a test."""
        context = self.context
        settings, data = context.settings, context.data

        def models() -> dict[str, tuple[TurnResult, ...]]:
            found = models_of(self.collector, settings, data, {})
            return {one.name: tuple(one.results) for one in found}

        return DstReport(models, settings)

    def conformance(self, request: pytest.FixtureRequest, model: object) -> DstConformance:
        """Put every check of the conformance kit to a tracker."""
        from pytest_dstfuzz.testing import check_tracker  # noqa: PLC0415 - few ask for it

        data, how = self.context.sampled, self.context.settings.tracker
        report = check_tracker(
            model,
            data,
            batch_size=how.batch_size,
            repeatable=how.repeatable,
            outcome=self.context.settings.reply.outcome,
        )
        request.node.stash[FOUND] = Found(conformance=True)
        return DstConformance(report)

    def _refusal(self, node: pytest.Item | pytest.Collector, error: UserError) -> BaseException:
        """End the session because of a mistake that only showed when a test ran.

        ``pytest.exit`` would, too, but it brings down a worker of xdist with its controller. What
        is returned fails the running test.
        """
        node.stash[FOUND] = Found(problem=str(error), status=self.gate.status_of(error))
        node.session.shouldstop = "the robustness tests cannot be run"
        return pytest.fail.Exception(str(error), pytrace=False)
