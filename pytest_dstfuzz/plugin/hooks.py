"""Hooks of a session in which robustness tests are run; registered when the first one is."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.config import masked_words
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.garbage import frozen
from pytest_dstfuzz.gate.verdict import INFRASTRUCTURE
from pytest_dstfuzz.plugin.caching import cache_problems, remove_shared
from pytest_dstfuzz.plugin.gate import GateDecision
from pytest_dstfuzz.plugin.outputs import (
    annotation_lines,
    check_outputs,
    record_suite_properties,
    write_outputs,
)
from pytest_dstfuzz.plugin.selection import selection_of
from pytest_dstfuzz.plugin.session import DstSession
from pytest_dstfuzz.plugin.tracker_pool import contexts, gone, total
from pytest_dstfuzz.plugin.tracker_pool import notes as tracker_notes
from pytest_dstfuzz.plugin.turn import session_command
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.info import RunInfo
from pytest_dstfuzz.report.json_report import build_report
from pytest_dstfuzz.report.page import Style, StyledLine
from pytest_dstfuzz.report.redact import redacted
from pytest_dstfuzz.report.terminal import terminal_lines


class SessionHooks:
    """Carries results from tests to the end of the session, and judges them there.

    Args:
        dst: the session's object.
    """

    def __init__(self, dst: DstSession) -> None:
        self._dst = dst
        #: What the gate said; ``None`` where it was not asked.
        self._judged: GateDecision | None = None
        #: Sentences for the end of the summary.
        self._last_lines: list[StyledLine] = []
        self._ended = ""
        self._crashed = False
        #: Whether something ended the session at once: Ctrl-C, or pytest.exit() with any status.
        self._broken_off = False

    def pytest_report_header(self) -> list[str]:
        """Say what is going to be tested."""
        if not self._dst.model_on_command_line:
            return []
        settings, data = self._dst.settings, self._dst.data
        how = settings.variant
        turns = "all" if settings.data.turns is None else f"at most {settings.data.turns}"
        what = (
            f"{settings.tracker.model} on {data.name} ({data.split}, {data.turn_count()} turns): "
            f"{turns} turns x {how.variants} variants, {how.search} search, "
            f"{how.validity}, {how.attack}, {how.relation}, seed {how.seed}"
        )
        return [printable(f"dstfuzz: {what}")]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let campaigns know which turns will be asked for, and test an ini file's tracker."""
        dst = self._dst
        dst.plan(session.items)
        if not dst.model_on_command_line and not session.testsfailed:
            try:
                if dst.named:
                    dst.prepare()
                elif dst.record.planned:
                    dst.gate.prepare(dst.data)
                    if not dst.is_worker and not session.config.getoption("collectonly"):
                        check_outputs(dst.settings, dst.memory, session.config)
            except UserError as error:
                raise dst.gate.end(error) from error

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist what was measured of the tracker that it will ask."""
        self._dst.service.tell(node.workerinput)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Note that a worker of xdist crashed, and what tests one that did not had selected."""
        self._crashed = self._crashed or bool(error)
        planned = getattr(node, "workeroutput", {}).get(_PLANNED, 0)
        self._dst.record.planned = max(self._dst.record.planned, planned)

    def pytest_keyboard_interrupt(self) -> None:
        """Note that the session did not come to its end."""
        self._broken_off = True

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
        if self._dst.is_worker:
            config.workeroutput[_PLANNED] = self._dst.record.planned  # type: ignore[attr-defined]  # xdist's
        if self._dst.is_worker or config.getoption("collectonly"):
            return
        facts = self._facts()
        # Once the workers are gone.
        config.add_cleanup(partial(remove_shared, facts))
        self._last_lines += [StyledLine(problem, "warning") for problem in cache_problems(facts)]
        if self._dst.record.problem:
            session.exitstatus = self._dst.record.problem_status
            return
        if self._broken_off:
            self._dst.keep_finished()
        if exitstatus in _ORDERLY:
            lines = self._dst.memory.finish()
            self._last_lines += lines
            if exitstatus == pytest.ExitCode.OK and any(line.style == "bad" for line in lines):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        # Tests that were all skipped have no results, and pass no gate.
        gated = self._dst.gate.given and self._dst.record.planned
        if exitstatus not in _ORDERLY or not (self._dst.named or self._results or gated):
            return
        self._ended = self._why_ended(session)
        status = self._judge()
        if not self._write_reports():
            status = status or pytest.ExitCode.TESTS_FAILED
        if exitstatus == pytest.ExitCode.OK:
            session.exitstatus = status or session.exitstatus
        self._tell_gone(session, gone(facts), exitstatus)

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
                terminalreporter.write_line(printable(text), yellow=True)
        for line in self._last_lines:
            markup = {**_MARKUP[line.style], "bold": line.style == "bad"}
            terminalreporter.write_line(printable(f"dstfuzz: {line.text}"), **markup)
        new = [
            result
            for relation, result in zip(self._relations, self._results, strict=True)
            if not self._dst.memory.why_accepted(result, relation)
        ]
        for command in annotation_lines(
            new, self._dst.settings, _encoding(), self._dst.record.places
        ):
            terminalreporter.write_line(command)

    # -- steps of the end -------------------------------------------------------------

    def _tell_gone(self, session: pytest.Session, why: str, exitstatus: int) -> None:
        """Say that nobody answered any more, where that is why nothing more was asked."""
        if why:
            self._last_lines.append(StyledLine(f"failed: {why}; nothing more was asked", "bad"))
            if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
                session.exitstatus = INFRASTRUCTURE

    @cached_property
    def _results(self) -> tuple[TurnResult, ...]:
        record = self._dst.record
        found = record.results(self._dst.data) if len(record) else ()
        return tuple(map(redacted, found)) if self._dst.settings.output.redact else found

    @cached_property
    def _relations(self) -> list[str]:
        """The names of the relations that were tested, one for each result."""
        found = self._dst.record.with_relations(self._dst.data) if self._results else []
        return [relation for relation, _ in found]

    @cached_property
    def _summary(self) -> Summary:
        return summarise(self._results)

    def _judge(self) -> int:
        """Judge the session, and return the exit status that follows."""
        dst = self._dst
        gated = dst.settings.gate.fail_on == "gate" or dst.gate.given
        # Where the kit has checked the adapter and no test is about a turn, that was the test.
        # Likewise where remembered violations were all that was asked for.
        others = dst.record.conformance or bool(dst.record.regressions)
        # And a file that is asked for by name may be about something else.
        others = others or bool(selection_of(dst.config).files)
        about_turns = dst.named and not (others and not dst.record.planned)
        if not (about_turns or gated):
            lines = dst.gate.judge_answers(dst.record, dst.data) if self._results else ()
            self._last_lines += lines
            return pytest.ExitCode.TESTS_FAILED if lines else pytest.ExitCode.OK
        self._judged = dst.gate.judge(dst.record, dst.data, self._summary, self._info())
        self._last_lines += self._judged.lines
        return self._judged.status

    def _write_reports(self) -> bool:
        """Write what is asked for, and return whether all went well."""
        # A run that found nothing must not take the place of one that did.
        if not self._results:
            return True
        dst, judged = self._dst, self._judged
        gate = judged.judgement if judged is not None and dst.gate.judges else None
        lines = write_outputs(
            dst.settings.output,
            lambda: build_report(
                self._results,
                self._summary,
                dst.record.named(dst.settings),
                self._info(),
                gate=None if gate is None else gate.to_json(),
                regressions=dst.memory.facts(),
            ),
        )
        self._last_lines += lines
        record_suite_properties(
            dst.config, self._summary, dst.settings.variant, None if gate is None else gate.verdict
        )
        return all(line.style != "bad" for line in lines)

    def _info(self) -> RunInfo:
        dst = self._dst
        own = "; or ".join(sorted(dst.record.own))
        facts = self._facts()
        usage, disagreement = total(facts)
        policies = sorted(dst.record.policies.items())
        notes = [*tracker_notes(facts), *(note for _, note in policies)]
        if own:
            notes.append(f"markers of tests set {own}")
        info = RunInfo.of(
            dst.data,
            lexicon=" ".join(sorted(dst.record.lexicons)),
            policy=" ".join(fingerprint for fingerprint, _ in policies),
            notes=tuple(notes),
            ended=self._ended,
            command=shlex.join(masked_words(["pytest", *dst.config.invocation_params.args])),
            started=dst.started_at,
            seconds=time.monotonic() - dst.started,
        )
        asked, recalled = contexts(facts)
        return replace(info, usage=usage, disagreement=disagreement, asked=asked, recalled=recalled)

    def _facts(self) -> list[Mapping[str, Any]]:
        """Return what this process and the workers found out about their trackers."""
        return [self._dst.service.facts(), *self._dst.record.services.values()]

    def _why_ended(self, session: pytest.Session) -> str:
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
        if self._broken_off:
            return "interrupted"
        return "a worker crashed" if self._crashed else ""

    def _print_figures(self, reporter: pytest.TerminalReporter) -> None:
        lines = terminal_lines(
            self._summary,
            self._results,
            self._dst.record.named(self._dst.settings),
            self._info(),
            verbosity=reporter.config.get_verbosity(),
            width=min(shutil.get_terminal_size().columns, _WIDEST),
            encoding=_encoding(),
            command=session_command(reporter.config, self._dst.settings.variant.seed),
        )
        if len(lines) > 1:
            reporter.section("dstfuzz", "=", bold=True)
        for line in lines:
            # A `Page` made it printable.
            reporter.write_line(line.text, **_MARKUP[line.style])


def _encoding() -> str:
    """Return the encoding of the terminal: not of sys.stdout, which pytest may have replaced."""
    return getattr(sys.__stdout__, "encoding", None) or "utf-8"


#: What a worker tells of its end: how many results its selected tests ask for.
_PLANNED = "dstfuzz_planned"
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
