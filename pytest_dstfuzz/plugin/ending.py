"""The end of a session: what was found is judged, written and printed."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

import pytest

from pytest_dstfuzz.campaign.result_views import MappedResults
from pytest_dstfuzz.campaign.results import Results, TurnResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.comparisons.judge import (
    JudgeFacts,
    is_tested_model,
    protocol,
    protocol_digest,
)
from pytest_dstfuzz.config import masked_words, shard_text
from pytest_dstfuzz.gate.verdict import INFRASTRUCTURE
from pytest_dstfuzz.plugin.campaigns import SessionCampaigns
from pytest_dstfuzz.plugin.context import RunContext
from pytest_dstfuzz.plugin.gate import GateDecision, SessionGate
from pytest_dstfuzz.plugin.outputs import (
    annotation_lines,
    asked_for,
    record_suite_properties,
    write_outputs,
)
from pytest_dstfuzz.plugin.regressions import RegressionCorpus
from pytest_dstfuzz.plugin.result_collector import ResultCollector
from pytest_dstfuzz.plugin.selection import selection_of
from pytest_dstfuzz.plugin.tracker_pool import TrackerFacts, TrackerPool
from pytest_dstfuzz.plugin.turn import session_command
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.report.judges import WhatItTook, WhoJudged
from pytest_dstfuzz.report.page import Style, StyledLine
from pytest_dstfuzz.report.redact import redacted
from pytest_dstfuzz.report.survey import Survey, read_results
from pytest_dstfuzz.report.terminal_relations import report_lines
from pytest_dstfuzz.weaknesses.groups import Weakness


@dataclass(eq=False)
class SessionEnd:
    """Judges a session when its tests are over, and tells what it found."""

    _context: RunContext
    _collector: ResultCollector
    _gate: SessionGate
    _pool: TrackerPool
    _campaigns: SessionCampaigns
    _regressions: RegressionCorpus

    def __post_init__(self) -> None:
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._started = time.monotonic()
        #: What the gate said; ``None`` where it was not asked.
        self._judged: GateDecision | None = None
        #: Sentences for the end of the summary.
        self._last_lines: list[StyledLine] = []
        self._ended = ""
        self._crashed = False
        #: Whether something ended the session at once: Ctrl-C, or pytest.exit() with any status.
        self._broken_off = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Note that a worker of xdist crashed, and what tests one that did not had selected."""
        self._crashed = self._crashed or bool(error)
        planned = getattr(node, "workeroutput", {}).get(_PLANNED, 0)
        self._collector.planned = max(self._collector.planned, planned)

    def pytest_keyboard_interrupt(self) -> None:
        """Note that the session did not come to its end."""
        self._broken_off = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge the session, and write the report, also of a run that was cut short."""
        config = session.config
        if self._context.workers:
            config.workeroutput[_PLANNED] = self._collector.planned  # type: ignore[attr-defined]  # xdist's
        if self._context.judges_nothing:
            return
        facts = self._facts()
        # Once the workers are gone.
        for folder in facts.folders:
            config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
        self._last_lines += [StyledLine(problem, "warning") for problem in facts.problems]
        if self._collector.problem:
            session.exitstatus = self._collector.problem_status
            return
        if self._broken_off:
            for found in self._campaigns.finished():
                self._collector.add(found)
        if exitstatus not in _ORDERLY:
            return
        lines = self._regressions.finish()
        self._last_lines += lines
        if exitstatus == pytest.ExitCode.OK and any(line.style == "bad" for line in lines):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        # Tests that were all skipped have no results, and pass no gate.
        gated = self._gate.given and self._collector.planned
        if self._tests_its_tracker or self._results or gated:
            self._end(session, exitstatus)
            self._tell_gone(session, facts.gone, exitstatus)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the figures, and why the session failed."""
        if self._context.judges_nothing:
            return
        if self._results:
            self._print_figures(terminalreporter)
            if self._collector.missing:
                why = f" ({self._ended})" if self._ended else ""
                text = f"dstfuzz: {self._collector.missing:,} selected turns have no result{why}"
                text += self._unseen_relations()
                terminalreporter.write_line(printable(text), yellow=True)
            if hint := self._shorter(terminalreporter):
                terminalreporter.write_line(f"dstfuzz: {hint}", light=True)
        for line in self._last_lines:
            markup = {**_MARKUP[line.style], "bold": line.style == "bad"}
            terminalreporter.write_line(printable(f"dstfuzz: {line.text}"), **markup)
        # Of a folder of any size: gone over where there are to be annotations.
        found = self._collector.with_relations(self._context.data) if self._results else ()
        shown = redacted if self._context.settings.output.redact else _as_it_is
        new = (
            shown(result)
            for relation, result in found
            if not self._regressions.why_accepted(result, relation)
        )
        for command in annotation_lines(
            new, self._context.settings, _encoding(), self._collector.places
        ):
            terminalreporter.write_line(command)

    def _shorter(self, reporter: pytest.TerminalReporter) -> str:
        """Say how to see less where many tests were shown in full, ``""`` elsewhere."""
        shown = reporter.config.option.tbstyle not in ("no", "line")
        broken = self._read[0].broken
        failed = self._context.settings.gate.fail_on == "violation"
        if not (shown and failed) or min(broken, len(reporter.stats.get("failed", ()))) < _MANY:
            return ""
        return "to see these figures without each failure above them: --tb=no"

    def _unseen_relations(self) -> str:
        """Name the relations of which the session has no result at all, ``""`` where it is one."""
        asked = self._campaigns.relations
        unseen = [name for name in asked if name not in self._collector.relations]
        if len(asked) == 1 or not unseen:
            return ""
        return (
            f"; none under {', '.join(unseen)}: relations run in the order in which they are named"
        )

    # -- steps of the end -------------------------------------------------------------

    def _end(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge the session and write what is asked for."""
        self._ended = self._why_ended(session)
        status = self._judge()
        if not self._write_reports():
            status = status or pytest.ExitCode.TESTS_FAILED
        if exitstatus == pytest.ExitCode.OK:
            session.exitstatus = status or session.exitstatus

    def _tell_gone(self, session: pytest.Session, why: str, exitstatus: int) -> None:
        """Say that nobody answered any more, where that is why nothing more was asked."""
        if why:
            self._last_lines.append(StyledLine(f"failed: {why}; nothing more was asked", "bad"))
            if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
                session.exitstatus = INFRASTRUCTURE

    @property
    def _tests_its_tracker(self) -> bool:
        return self._context.tests_its_tracker(self._campaigns.planned, self._collector)

    @cached_property
    def _found(self) -> Results:
        return self._collector.results(self._context.data) if self._collector else ()

    @cached_property
    def _results(self) -> Results:
        redact = self._context.settings.output.redact
        return MappedResults(self._found, redacted) if redact else self._found

    @cached_property
    def _read(self) -> tuple[Survey, tuple[Weakness, ...]]:
        """All figures, from one pass over the results, and what the violations have in common."""
        settings = self._context.settings
        accepted = self._regressions.why_accepted_as_a_whole()
        return read_results(
            self._found,
            self._collector.relations,
            settings.reply.fallback,
            accepted,
            redact=settings.output.redact,
        )

    @cached_property
    def _summary(self) -> Summary:
        # Figures of several relations are never added up: a gate and others judge each of them.
        named = self._collector.named(self._context.settings).variant.relation
        return self._read[0].first(named).summary

    def _judge(self) -> int:
        """Judge the session, and return the exit status that follows."""
        shard = self._context.settings.data.shard
        if shard is not None and shard[1] > 1:
            if self._gate.given:
                text = (
                    f"part {shard_text(shard)} is not judged: limits and baseline are for all parts"
                )
                self._last_lines.append(StyledLine(text, "warning"))
            return pytest.ExitCode.OK
        gated = self._context.settings.gate.fail_on == "gate" or self._gate.given
        # Where the kit has checked the adapter and no test is about a turn, that was the test.
        # Likewise where remembered violations were all that was asked for.
        others = self._collector.conformance or bool(self._collector.regressions)
        # And a file that is asked for by name may be about something else.
        others = others or bool(selection_of(self._context.config).files)
        about_turns = self._tests_its_tracker and (self._collector.planned or not others)
        if not (about_turns or gated):
            found, data = self._collector, self._context.data
            lines = self._gate.judge_answers(found, data) if self._results else ()
            self._last_lines += lines
            return pytest.ExitCode.TESTS_FAILED if lines else pytest.ExitCode.OK
        context = self._context
        # A suite's fixture may have said that replies are tested.
        comparison = context.comparison(self._collector.named(context.settings).reply)
        self._judged = self._gate.judge(
            self._collector, context.data, self._summary, self._info(), comparison
        )
        self._last_lines += self._judged.lines
        return self._judged.status

    def _write_reports(self) -> bool:
        """Write what is asked for, and return whether all went well."""
        # A run that found nothing must not take the place of one that did.
        if not self._results:
            if unwritten := asked_for(self._context.settings.output):
                text = f"not written, as nothing was tested: {', '.join(unwritten)}"
                self._last_lines.append(StyledLine(text, "warning"))
            return True
        judged = self._judged
        gate = judged.judgement if judged is not None and self._gate.judges else None
        lines = write_outputs(
            self._context.settings.output,
            lambda: build_report(
                self._results,
                self._summary,
                self._collector.named(self._context.settings),
                self._info(),
                gate=None if gate is None else gate.to_json(),
                regressions=self._regressions.facts(),
                weaknesses=self._read[1],
                survey=self._read[0],
            ),
        )
        self._last_lines += lines
        record_suite_properties(
            self._context.config,
            self._summary,
            self._context.settings.variant,
            None if gate is None else gate.verdict,
        )
        return all(line.style != "bad" for line in lines)

    def _info(self) -> RunInfo:
        own = "; or ".join(sorted(self._collector.own))
        facts, found = self._facts(), self._collector.info(self._context.data)
        policies = sorted(self._collector.policies.items())
        notes = [*found.notes, *facts.notes, *filter(None, (note for _, note in policies))]
        if own:
            notes.append(f"markers of tests set {own}")
        if left_out := self._context.left_out:
            notes.append(left_out)
        if others := self._context.not_own_questions:
            notes.append(others)
        own_seconds = time.monotonic() - self._started
        return replace(
            found,
            lexicon=" ".join(sorted(self._collector.lexicons)),
            policy=" ".join(fingerprint for fingerprint, _ in policies),
            notes=tuple(notes),
            ended=self._ended,
            command=shlex.join(
                masked_words(["pytest", *self._context.config.invocation_params.args])
            ),
            started=self._started_at,
            seconds=own_seconds if found.seconds is None else found.seconds,
            usage=facts.usage,
            disagreement=facts.disagreement,
            asked=found.asked + facts.asked,
            recalled=facts.recalled,
            judge=None if facts.judge is None else self._judge_of(facts.judge),
            relations=dict(sorted(self._collector.relations.items())),
            compared="; or ".join(sorted(self._collector.comparisons)),
        )

    def _judge_of(self, facts: JudgeFacts) -> tuple[WhoJudged, WhatItTook]:
        settings = self._context.settings
        tested = is_tested_model(settings.reply, settings.tracker)
        told = WhoJudged(facts.model, facts.address, tested, protocol_digest(), protocol())
        counts = facts.pairs, facts.unsure, facts.past_budget, facts.calls
        return told, WhatItTook(*counts, facts.usage)

    def _facts(self) -> TrackerFacts:
        """Return what this process and the workers found out about their trackers."""
        return sum(self._collector.services.values(), self._pool.facts())

    def _why_ended(self, session: pytest.Session) -> str:
        if self._read[0].skipped:
            return self._read[0].why_skipped
        # Without a single result the controller of workers does not know what is missing.
        if self._results and not self._collector.missing:
            return ""
        # With workers it is xdist that counts failures.
        spread: Any = session.config.pluginmanager.get_plugin("dsession")
        for stop in (session.shouldfail, session.shouldstop, getattr(spread, "shouldstop", "")):
            if stop:
                return str(stop)
        if self._broken_off:
            return "interrupted"
        return "a worker crashed" if self._crashed else ""

    def _repeating(self, config: pytest.Config) -> str:
        """Return the command that repeats the session, ``""`` where it asked nothing itself."""
        if self._context.stored is not None:
            return ""
        return session_command(config, self._context.settings.variant.seed)

    def _print_figures(self, reporter: pytest.TerminalReporter) -> None:
        lines = report_lines(
            self._summary,
            self._results,
            self._collector.named(self._context.settings),
            self._info(),
            verbosity=reporter.config.get_verbosity(),
            width=min(shutil.get_terminal_size().columns, _WIDEST),
            encoding=_encoding(),
            command=self._repeating(reporter.config),
            weaknesses=self._read[1],
            survey=self._read[0],
        )
        if len(lines) > 1:
            reporter.section("dstfuzz", "=", bold=True)
        for line in lines:
            # A `Page` made it printable.
            reporter.write_line(line.text, **_MARKUP[line.style])


def _as_it_is(result: TurnResult) -> TurnResult:
    return result


def _encoding() -> str:
    """Return the encoding of the terminal: not of sys.stdout, which pytest may have replaced."""
    return getattr(sys.__stdout__, "encoding", None) or "utf-8"


#: What a worker tells of its end: how many results its selected tests ask for.
_PLANNED = "dstfuzz_planned"
#: Failed tests that are a lot to read.
_MANY = 10
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
