"""Hooks of a session in which robustness tests are run; registered when the first one is."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.garbage import frozen
from pytest_dstfuzz.plugin.session import DstSession
from pytest_dstfuzz.plugin.turn import session_command
from pytest_dstfuzz.plugin.verdict import complaints
from pytest_dstfuzz.report.info import RunInfo
from pytest_dstfuzz.report.json_report import build_report, write_report
from pytest_dstfuzz.report.page import Style
from pytest_dstfuzz.report.terminal import terminal_lines


class SessionHooks:
    """Carries results from tests to the end of the session, and judges them there.

    Args:
        dst: the session's object.
    """

    def __init__(self, dst: DstSession) -> None:
        self._dst = dst
        #: Why the session fails, apart from its single tests.
        self._complaints: list[str] = []
        self._ended = ""
        self._crashed = False

    def pytest_report_header(self) -> list[str]:
        """Say what is going to be tested."""
        if not self._dst.insisted:
            return []
        settings, data = self._dst.settings, self._dst.data
        turns = "all" if settings.turns is None else f"at most {settings.turns}"
        what = (
            f"{settings.model} on {data.name} ({data.split}, {data.turn_count()} turns): "
            f"{turns} turns x {settings.variants} variants, {settings.search} search, "
            f"{settings.validity}, {settings.attack}, {settings.relation}, seed {settings.seed}"
        )
        return [f"dstfuzz: {what}"]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let campaigns know which turns will be asked for, and test an ini file's tracker."""
        dst = self._dst
        dst.plan(session.items)
        if dst.named and not dst.insisted and not session.testsfailed:
            try:
                dst.prepare()
            except UserError as error:
                raise pytest.UsageError(str(error)) from error

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        """Note that a worker of xdist crashed."""
        self._crashed = self._crashed or bool(error)

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
            raise self._dst.refusal(request.session, error) from None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Run the tests with tracker and data out of the way of the search for garbage."""
        with frozen():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record what a test found out, or let its report carry it to another process."""
        report = yield
        found, self._dst.outbox = self._dst.outbox, None
        if found is not None and self._dst.sends_results:
            report.dstfuzz = found  # type: ignore[attr-defined]  # any will do
        elif found is not None:
            self._dst.record.add(found)
        return report

    def pytest_runtest_logreport(self) -> None:
        """Note that a dot was printed."""
        self._dst.progress.sign_of_life()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge the session, and write the report, also of a run that was cut short."""
        config = session.config
        if self._dst.is_worker or config.getoption("collectonly"):
            return
        if self._dst.record.problem:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            self._dst.keep_finished()
        if exitstatus not in _ORDERLY or not (self._dst.named or self._results):
            return
        self._ended = self._why_ended(session, exitstatus)
        self._judge()
        self._write_report()
        if self._complaints and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the figures, and why the session failed."""
        config = terminalreporter.config
        if self._dst.is_worker or config.getoption("collectonly"):
            return
        if self._results:
            self._print_figures(terminalreporter)
            if self._dst.record.missing:
                why = f" ({self._ended})" if self._ended else ""
                text = f"dstfuzz: {self._dst.record.missing:,} selected turns have no result{why}"
                terminalreporter.write_line(text, yellow=True)
        for complaint in self._complaints:
            terminalreporter.write_line(f"dstfuzz: failed: {complaint}", red=True, bold=True)

    # -- steps of the end -------------------------------------------------------------

    @cached_property
    def _results(self) -> tuple[TurnResult, ...]:
        record = self._dst.record
        return record.results(self._dst.data) if len(record) else ()

    @cached_property
    def _summary(self) -> Summary:
        return summarise(self._results, self._dst.settings.seed)

    def _judge(self) -> None:
        settings = self._dst.settings
        if not (self._dst.named or settings.fail_on == "gate"):
            return
        summary = self._summary
        self._complaints += complaints(
            self._results,
            settings,
            summary.failure_rate,
            summary.failure_rate_interval,
            self._ended,
        )

    def _write_report(self) -> None:
        path = self._dst.settings.report
        # A run that found nothing must not take the place of one that did.
        if path is None or not self._results:
            return
        settings = self._dst.settings
        try:
            write_report(
                Path(path), build_report(self._results, self._summary, settings, self._info())
            )
        except UserError as error:
            self._complaints.append(f"the report was not written: {error}")

    def _info(self) -> RunInfo:
        dst = self._dst
        own = "; or ".join(sorted(dst.record.own))
        policies = sorted(dst.record.policies.items())
        notes = [note for _, note in policies]
        if own:
            notes.append(f"markers of tests set {own}")
        return RunInfo.of(
            dst.data,
            lexicon=" ".join(sorted(dst.record.lexicons)),
            policy=" ".join(fingerprint for fingerprint, _ in policies),
            notes=tuple(notes),
            ended=self._ended,
            command=shlex.join(["pytest", *dst.config.invocation_params.args]),
            started=dst.started_at,
            seconds=time.monotonic() - dst.started,
        )

    def _why_ended(self, session: pytest.Session, exitstatus: int) -> str:
        for result in self._results:
            if result.outcome == "skipped":
                return result.reason
        # Without a single result the controller of workers does not know what is missing.
        if self._results and not self._dst.record.missing:
            return ""
        # With workers it is xdist that counts failures.
        spread: Any = session.config.pluginmanager.get_plugin("dsession")
        for stop in (session.shouldfail, session.shouldstop, getattr(spread, "shouldstop", "")):
            if stop:
                return str(stop)
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            return "interrupted"
        return "a worker crashed" if self._crashed else ""

    def _print_figures(self, reporter: pytest.TerminalReporter) -> None:
        lines = terminal_lines(
            self._summary,
            self._results,
            self._dst.settings,
            self._info(),
            verbosity=reporter.config.get_verbosity(),
            width=min(shutil.get_terminal_size().columns, _WIDEST),
            # Not sys.stdout, which pytest may have replaced to capture it.
            encoding=getattr(sys.__stdout__, "encoding", None) or "utf-8",
            command=session_command(reporter.config, self._dst.settings.seed),
        )
        if len(lines) > 1:
            reporter.section("dstfuzz", "=", bold=True)
        for line in lines:
            reporter.write_line(line.text, **_MARKUP[line.style])


#: Columns beyond which a line is hard to read.
_WIDEST = 120
#: How a line is coloured, where the terminal has colours.
_MARKUP: dict[Style, dict[str, bool]] = {
    "plain": {},
    "heading": {"bold": True},
    "good": {"green": True},
    "bad": {"red": True},
    "warning": {"yellow": True},
    "dim": {"light": True},
}
#: Exit statuses of runs whose results can be judged.
_ORDERLY = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
