"""The end of a session: its outputs and its exit status."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import (
    NO_CACHE,
    OutputSettings,
    Settings,
    VariantSettings,
    input_files,
    mask_command_line,
    shard_text,
)
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import check_apart_of_data
from pytest_dstfuzz.errors import DstFuzzError, UserError, message_of, passes_through, redact_text
from pytest_dstfuzz.files import check_apart, check_outside, check_own, check_writable
from pytest_dstfuzz.gate.baseline import VERSION_KEY
from pytest_dstfuzz.gate.judge import no_result_text
from pytest_dstfuzz.gate.verdict import FAILED, INFRASTRUCTURE, STATUSES
from pytest_dstfuzz.plugin.campaigns import SessionCampaigns
from pytest_dstfuzz.plugin.context import RunContext, TrackerFacts, TrackerPool
from pytest_dstfuzz.plugin.gate import GateDecision, SessionGate, record_failed_gate
from pytest_dstfuzz.plugin.options import types_gate
from pytest_dstfuzz.plugin.regressions import RegressionCorpus
from pytest_dstfuzz.plugin.results import Items, ModelResults, ResultCollector, models_of
from pytest_dstfuzz.plugin.selection import selection_of
from pytest_dstfuzz.plugin.turn import Brief, session_command
from pytest_dstfuzz.printable import describe, format_list, printable
from pytest_dstfuzz.registry import blame_errors
from pytest_dstfuzz.report.figures import undecided_text, usage_text
from pytest_dstfuzz.report.forms import check_forms, write_form
from pytest_dstfuzz.report.github import MOST_COMMANDS, append_summary, violation_commands
from pytest_dstfuzz.report.json_report import RunInfo, build_report, judge_info
from pytest_dstfuzz.report.packing import report_of_models
from pytest_dstfuzz.report.page import Style, StyledLine
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.screen import GateRuling, screen_lines
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.totals.plainest import Novelty
from pytest_dstfuzz.totals.totals import AddedSection

_IN_ACTIONS: Final = "GITHUB_ACTIONS"
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def check_outputs(settings: Settings, memory: RegressionCorpus, config: pytest.Config) -> None:
    """Raise an error before the run if an output cannot be written or would overwrite an input."""
    _refuse_report_of_part(settings)
    check_forms(settings.output.report)
    written: dict[str, str | Path | None] = {
        **{f"--dst-report={path}": path for path in settings.output.report},
        "--dst-cache": settings.budget.cache if settings.budget.cache != NO_CACHE else None,
        "--junitxml": getattr(config.option, "xmlpath", None),
    }
    read: dict[str, str | Path | None] = {
        "the checkpoint of --dst-tracker": settings.tracker.checkpoint,
        "the slot map of --dst-tracker": settings.tracker.slot_map,
        "the prompt of --dst-tracker": settings.tracker.prompt,
        "pytest's settings": config.inipath,
        "the table of limits": config.rootpath / "pyproject.toml",
        "the file of --dst-search": settings.variant.search.partition(":")[2] or None,
    }
    (written if settings.gate.update_baseline else read)["--dst-baseline"] = settings.gate.baseline
    (written if settings.output.remember else read)["the file of regressions"] = memory.path
    check_apart(written, {**read, **input_files(settings)})
    check_outside(settings.output.report, settings.output.results)
    check_apart_of_data(written, {"--dst-data": settings.data.data})
    if settings.gate.update_baseline and settings.gate.baseline is not None:
        check_own(settings.gate.baseline, VERSION_KEY, "a baseline")
    for output in (*settings.output.report, memory.written):
        if output is not None:
            check_writable(Path(output))


def _refuse_report_of_part(settings: Settings) -> None:
    """Raise an error if a report of a shard is requested, because such reports cannot be merged."""
    shard = settings.data.shard
    unwanted = list_requested(settings.output)
    if shard is None or shard[1] == 1 or not unwanted:
        return
    part = shard_text(shard)
    raise UserError(
        f"--dst-shard={part} with {' and '.join(unwanted)}: reports of parts cannot be merged. Run "
        f"each part with dstfuzz campaign --shard {part} --results part-{shard[0]}, merge the "
        "folders with dstfuzz merge, and judge the result with pytest --dst-results=DIR "
        "--dst-report=PATH"
    )


def write_outputs(
    settings: OutputSettings,
    make_report: Callable[[], tuple[Mapping[str, Any], Mapping[str, View]]],
) -> list[StyledLine]:
    """Write every requested file. Return a line for each file that could not be written.

    ``make_report`` returns the report and a dictionary from tracker name to view.
    """
    summary = None if settings.annotations == "no" else os.environ.get(_SUMMARY)
    # A file that the user named is required.
    wanted: list[tuple[str, str | None, Style]] = [
        *(("report", path, "bad") for path in settings.report),
        ("job summary", summary or None, "warning"),
    ]
    if all(path is None for _, path, _ in wanted):
        return []
    report, views = make_report()
    lines = []
    for name, path, style in wanted:
        try:
            if path is not None and name == "report":
                write_form(Path(path), report, views)
            elif path is not None:
                append_summary(Path(path), views)
        except UserError as error:
            text = f"the {name} was not written: {error}"
            lines.append(StyledLine(f"failed: {text}" if style == "bad" else text, style))
    return lines


def list_requested(settings: OutputSettings) -> list[str]:
    """Return the requested report files as noun phrases."""
    return [f"the report {path}" for path in settings.report]


def annotation_lines(
    found: Callable[[bool], Iterable[TurnResult]],
    settings: Settings,
    encoding: str,
    places: Mapping[str, tuple[str, int]],
    repeat: str,
) -> list[str]:
    """Return the lines that GitHub turns into annotations, if annotations are wanted.

    ``repeat`` is the command that repeats the run, or ``""``. ``found(True)`` returns the new
    violations. ``found(False)`` returns the violations that were not compared. Violations in the
    baseline are not included.
    """
    wanted = settings.output.annotations == "yes" or (
        settings.output.annotations == "auto" and os.environ.get(_IN_ACTIONS) == "true"
    )
    if not wanted:
        return []
    commands = partial(
        violation_commands,
        settings=settings.gate,
        encoding=encoding,
        places=places,
        repeat=repeat,
    )
    lines = commands(found(True), note="new violation: ")
    return [*lines, *commands(found(False), most=MOST_COMMANDS - len(lines))]


def record_suite_properties(
    config: pytest.Config,
    summary: Summary,
    settings: VariantSettings,
    verdict: str | None,
    model: str = "",
) -> None:
    """Add the figures of the session to the file of --junitxml, as properties of the suite.

    The fixture ``record_testsuite_property`` does the same, but session hooks cannot use it, nor
    can tests on workers. Without a verdict of the gate, the worst outcome is shown. If there are
    several trackers, each has separate properties: ``dst_valid[MODEL]``.
    """
    outcome = "violation" if summary.violations else "error" if summary.errors else "held"
    bounds = summary.failure_rate_interval
    values: dict[str, object] = {
        "dst_verdict": verdict or outcome,
        "dst_failure_rate": _rate(summary.failure_rate),
        "dst_failure_rate_low": _rate(None if bounds is None else bounds[0]),
        "dst_failure_rate_high": _rate(None if bounds is None else bounds[1]),
        "dst_valid_rate": _rate(summary.valid_rate),
        "dst_violations": summary.violations,
        "dst_valid": summary.valid,
        "dst_turns": summary.turns,
        # If there are no bounds, this shows why: there were too few dialogues.
        "dst_dialogues": summary.dialogues_tested,
        "dst_turns_broken": summary.turns_broken,
        "dst_errors": summary.errors,
        "dst_accuracy": _rate(summary.clean_accuracy),
        "dst_empty_answers": _rate(summary.clean_empty_share),
        "dst_seed": settings.seed,
    }
    for plugin in config.pluginmanager.get_plugins():
        add = getattr(plugin, "add_global_property", None)
        if callable(add):
            for name, value in values.items():
                if value != "":
                    add(f"{name}[{model}]" if model else name, value)


def _rate(rate: float | None) -> str:
    """Return a rate in the form of the JSON report, or ``""`` if it is ``None``."""
    return "" if rate is None else f"{rate:.4f}"


#: Number of failures that show one weakness in full.
_IN_FULL: Final = 5


@dataclass(frozen=True)
class _FailureLine:
    """The text of a failure in one line. It replaces the text of pytest."""

    text: str
    #: The first line for pytest's list of failures.
    reprcrash: object

    def __str__(self) -> str:
        return self.text

    def toterminal(self, writer: Any) -> None:
        """Print the line. pytest calls this method of a failure's text."""
        writer.line(self.text)


def in_short(reports: Sequence[Any], data: DialogueSet) -> list[Any]:
    """Return reports of failures. After the fifth failure of a weakness, use one line each.

    Failures are counted in the order of the data. The order of tests and the number of workers do
    not matter. The function returns copies, because other plugins may use the given reports.
    """
    place = {name: number for number, name in enumerate(data.ids)}
    briefs = {
        number: Brief(*report.dstfuzz_brief)
        for number, report in enumerate(reports)
        if hasattr(report, "dstfuzz_brief")
    }
    seen: Counter[str] = Counter()
    shown = list(reports)
    for number in sorted(
        briefs,
        key=lambda n: (place[briefs[n].dialogue_id], briefs[n].turn_index, reports[n].nodeid),
    ):
        brief, report = briefs[number], reports[number]
        seen[brief.weakness] += 1
        if seen[brief.weakness] > _IN_FULL:
            shown[number] = copy(report)
            # pytest adds a line about the worker.
            vars(shown[number]).pop("node", None)
            shown[number].longrepr = _FailureLine(
                brief.line, getattr(report.longrepr, "reprcrash", brief.line)
            )
    return shown


def _fault_text(error: BaseException) -> str:
    """Return why a user's code gave no result at the end of a session. Raise a bug again."""
    if isinstance(error, DstFuzzError):
        return str(error)
    if not passes_through(error):
        raise error
    message = redact_text(message_of(error))
    said = f": {message}" if message else ""
    return f"{type(error).__name__}{said} ended the judgement of the session"


@dataclass(eq=False)
class SessionEnd:
    """Judges a session after its tests and reports the results."""

    _context: RunContext
    _collector: ResultCollector
    _gate: SessionGate
    _pool: TrackerPool
    _campaigns: SessionCampaigns
    _regressions: RegressionCorpus

    def __post_init__(self) -> None:
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._started = time.monotonic()
        #: The decision of the gate; ``None`` if there was none.
        self._judged: GateDecision | None = None
        #: Lines for the end of the summary.
        self._last_lines: list[StyledLine] = []
        self._ended = ""
        self._crashed = False
        #: Whether the session was interrupted by Ctrl-C, or by pytest.exit() with any status.
        self._broken_off = False
        #: The call of pytest.exit() that interrupted it, as a text.
        self._stopped = ""
        #: The tests of a folder of results.
        self.stored: Items | None = None
        #: The status that no later hook may turn into 0; ``None`` before the end of the session.
        self.status: int | None = None
        self._printed = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Record that a worker of xdist crashed.

        For a finished worker, record planned results, trackers, and regressions without a replay.
        """
        self._crashed = self._crashed or bool(error)
        output = getattr(node, "workeroutput", {})
        self._collector.plan(output.get(_PLANNED, {}))
        self._collector.collected |= {(file, name) for file, name in output.get(_COLLECTED, ())}
        # All workers collect the same tests.
        corpus = self._regressions
        corpus.unreplayed = max(corpus.unreplayed, output.get(_UNREPLAYED, 0))

    @pytest.hookimpl(trylast=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Record that the session was interrupted."""
        self._broken_off = True
        if isinstance(excinfo.value, pytest.exit.Exception):
            self._stopped = printable(f"pytest.exit(): {excinfo.value.msg}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, object, object]:
        """Judge the session before the hooks of other plugins, because those may end pytest."""
        self._finish(session, exitstatus)
        nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not self._collector.planned
        kept = (self._gate.judges and not nothing) or session.exitstatus != exitstatus
        self.status = int(session.exitstatus) if kept else pytest.ExitCode.OK
        return (yield)

    @property
    def unprinted(self) -> list[str]:
        """The reason why the session failed, if a hook ended pytest before the summary."""
        lines = [] if self._printed else self._every_line
        return [printable(line.text) for line in lines if line.style == "bad"]

    def _finish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge the session and write the report, even if the run ended early."""
        config = session.config
        if self._context.workers:
            output = config.workeroutput  # type: ignore[attr-defined]  # xdist's
            output[_PLANNED] = self._campaigns.planned
            output[_COLLECTED] = sorted(self._collector.collected)
            output[_UNREPLAYED] = self._regressions.unreplayed
            # Otherwise the controller of xdist crashes because the worker has a test left.
            session.shouldstop = session.shouldstop or self._stopped
        if self._context.judges_nothing:
            return
        facts = self._facts()
        # After the workers have ended.
        for folder in facts.folders:
            config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
        self._last_lines += [StyledLine(problem, "warning") for problem in facts.problems]
        if self._collector.problem:
            session.exitstatus = self._collector.problem_status
            self._last_lines += map(partial(StyledLine, style="bad"), self._collector.conflicts)
            return
        if self._broken_off:
            self._add_finished()
        if exitstatus not in _ORDERLY:
            return
        lines = self._regressions.finish()
        self._last_lines += lines
        if exitstatus == pytest.ExitCode.OK and any(line.style == "bad" for line in lines):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        # If all tests were skipped, there are no results, and no gate passes.
        # If pytest.exit() ended the collection with status 0, nobody knows how many were planned.
        left = self._broken_off and exitstatus == pytest.ExitCode.OK
        # A limit in an ini file also applies to runs of other tests, but not a limit of this run.
        typed = types_gate(config)
        gated = self._gate.given and (self._collector.planned or left or typed)
        if self._tests_its_tracker or self._collector or gated:
            self._end(session, exitstatus)
            gone = f"{facts.gone}; no more calls were made" if facts.gone else ""
            self._tell_unsound(session, gone or facts.mixed, exitstatus)
        record_failed_gate(config, [line.text for line in self._every_line if line.style == "bad"])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """Print the summary at the very end, right above the prompt."""
        failed = terminalreporter.stats.get("failed", [])
        quiet = terminalreporter.config.get_verbosity() <= 0
        if quiet and any(hasattr(report, "dstfuzz_brief") for report in failed):
            terminalreporter.stats["failed"] = in_short(failed, self._context.data)
        result = yield
        if not self._context.judges_nothing:
            self._print(terminalreporter)
        return result

    def _print(self, reporter: pytest.TerminalReporter) -> None:
        """Print the requested tables, then the verdict, then the most important figures."""
        self._printed = True
        verbosity = reporter.config.get_verbosity()
        if self._collector and verbosity:
            self._print_figures(reporter)
        if self._collector and self._collector.missing:
            why = f" ({self._ended})" if self._ended else ""
            text = f"{no_result_text(self._collector.missing)}{why}"
            self._last_lines.append(StyledLine(f"{text}{self._unseen_relations()}", "warning"))
        lines = self._every_line
        if verbosity >= 0 and (lines or self._collector):
            # Else the first line below the heading ends the line of the progress.
            reporter.ensure_newline()
            reporter.section("dstfuzz", "=", bold=True)
        if verbosity >= 0 and self._collector:
            self._print_screen(reporter)
        else:
            _print_lines(reporter, lines, "" if verbosity >= 0 else "dstfuzz: ")
        for command in annotation_lines(
            self._not_accepted,
            self._context.settings,
            _encoding(),
            self._collector.places,
            self._repeating(reporter.config),
        ):
            reporter.write_line(command)

    def _print_screen(self, reporter: pytest.TerminalReporter) -> None:
        """Print the first screen of each tracker."""
        rulings, more = self._rulings, self._other_lines
        if len(self._models) > 1:
            _print_lines(reporter, more)
            more = []
        bad = any(line.style == "bad" for line in self._every_line)
        for one in self._models:
            if one.name:
                reporter.section(printable(one.name), "-")
            ruling = rulings.get(one.name, GateRuling())
            ruling = ruling._replace(reasons=(*ruling.reasons, *more))
            lines = screen_lines(
                one.results,
                one.settings,
                self._info(one, shared=not one.name),
                one.totals,
                ruling=ruling,
                failed=bad or bool(reporter.stats.get("failed")),
                width=min(shutil.get_terminal_size().columns, _WIDEST),
                encoding=_encoding(),
            )
            _print_lines(reporter, lines)

    @property
    def _rulings(self) -> Mapping[str, GateRuling]:
        """Maps the name of each tracker to its verdict."""
        return {} if self._judged is None else self._judged.rulings

    @property
    def _other_lines(self) -> list[StyledLine]:
        """Lines for the end of the summary that do not concern a single tracker."""
        return [*(() if self._judged is None else self._judged.baseline), *self._last_lines]

    @property
    def _every_line(self) -> list[StyledLine]:
        """All lines for the end of the summary. The verdict comes first."""
        return [*(() if self._judged is None else self._judged.lines), *self._last_lines]

    def _not_accepted(self, new: bool) -> Iterator[TurnResult]:
        """Yield results with violations that are not accepted. They are either new or not compared.

        The results are redacted if the settings ask for it. Call this only if annotations are
        wanted, because it may have to read a large folder of results.
        """
        redact = self._context.settings.output.redact
        for one in self._models if self._collector else ():
            novelty = one.totals.novelty
            for relation, result in one.collector.with_relations(self._context.data):
                if not self._regressions.why_accepted(result, relation):
                    marked = one.marked(result)
                    shown = [redact_turn(marked) if redact else marked]
                    yield from novelty.only_new(shown) if new else novelty.not_compared(shown)

    def _unseen_relations(self) -> str:
        """Return the names of relations without results as a text, or ``""``."""
        asked = self._campaigns.relations
        unseen = [name for name in asked if name not in self._collector.relations]
        if len(asked) == 1 or not unseen:
            return ""
        return f"; no results for {', '.join(unseen)}, because relations run in the given order"

    def _end(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge the session and write the requested files."""
        self._ended = self._why_ended(session)
        try:
            status = self._judge()
        except BaseException as error:  # noqa: BLE001 - a bug is raised again
            status = self._tell_fault(error)
        hook = session.config.hook.pytest_dstfuzz_report_section
        for one in self._models:
            try:
                with blame_errors("a hook pytest_dstfuzz_report_section"):
                    found = hook(config=session.config, totals=one.totals)
                one.totals.added = tuple(map(_section, found))
            except BaseException as error:  # noqa: BLE001 - a bug is raised again
                fault = self._tell_fault(error)
                status = status or fault
        if not self._write_reports():
            status = status or pytest.ExitCode.TESTS_FAILED
        # The results of an earlier run are judged even if no test of this run uses them.
        none_left = self.stored is not None and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        if exitstatus == pytest.ExitCode.OK or none_left:
            session.exitstatus = status or session.exitstatus

    def _add_finished(self) -> None:
        """Add the results of tests that did not run. A user's comparison may end pytest again."""
        try:
            for found in self._campaigns.finished():
                self._collector.add(found)
        except BaseException as error:  # noqa: BLE001 - a bug is raised again
            self._tell_fault(error)

    def _tell_fault(self, error: BaseException) -> pytest.ExitCode:
        """Report that a user's code failed or ended pytest. The reports are still written."""
        self._last_lines.append(StyledLine(f"failed: {_fault_text(error)}", "bad"))
        return pytest.ExitCode.TESTS_FAILED

    def _tell_unsound(self, session: pytest.Session, why: str, exitstatus: int) -> None:
        """Report that the tracker stopped answering or changed, if it did."""
        if why:
            self._last_lines.append(StyledLine(f"failed: {why}", "bad"))
            if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
                session.exitstatus = INFRASTRUCTURE

    @property
    def _tests_its_tracker(self) -> bool:
        return self._context.tests_its_tracker(self._campaigns.planned, self._collector)

    @property
    def _empty_part(self) -> bool:
        """Whether the session tests a part of the data that has no dialogues."""
        settings = self._context.settings
        return (
            settings.data.shard is not None
            and not (self._collector or self._collector.planned)
            and not self._context.turns(settings)
        )

    @cached_property
    def _models(self) -> tuple[ModelResults, ...]:
        """The results of each tracker."""
        context, accepted = self._context, self._regressions.why_accepted_as_a_whole()
        return models_of(self._collector, context.settings, context.data, accepted)

    def _judge(self) -> int:
        """Judge the session and return its exit status."""
        if self._empty_part:
            return pytest.ExitCode.OK
        gated = self._context.settings.gate.fail_on == "gate" or self._gate.given
        # Conformance checks or remembered violations may be all that the run tests. A file that was
        # named explicitly may test something else.
        replayed = self._collector.regressions.values()
        others = self._collector.conformance or any(one != "unasked" for one in replayed)
        others = others or bool(selection_of(self._context.config).files)
        about_turns = self._tests_its_tracker and (self._collector.planned or not others)
        if not (about_turns or gated):
            models = self._models if self._collector else ()
            lines = [line for one in models for line in self._gate.judge_answers(one)]
            # A replay of remembered violations asks the judge too.
            asked = self._facts().judge
            if asked is not None and (why := undecided_text(asked)):
                lines.append(StyledLine(f"failed: {why}", "bad"))
            self._last_lines += lines
            return pytest.ExitCode.TESTS_FAILED if lines else pytest.ExitCode.OK
        unjudged = [] if gated or self.stored is None else self.stored.unjudged
        if unjudged:
            text = (
                f"failed: the results of {', '.join(unjudged)} were not judged, because their "
                "tests did not run. Run or deselect these tests, or set a limit"
            )
            self._last_lines.append(StyledLine(text, "bad"))
        context = self._context
        if context.stored is not None and (doubt := context.stored.doubt):
            self._last_lines.append(StyledLine(f"note: {doubt}", "warning"))
        self._gate.know(self._models, self._collector.collected)
        for one in self._models:
            # A fixture of the suite may have selected replies.
            comparison = context.comparison(one.settings.reply)
            by_budget = context.stored is None and not (self._broken_off or self._facts().gone)
            info = self._info(one)
            self._gate.judge(
                *(one, context.data, info, comparison),
                asked=lambda: self._facts().judge,
                by_budget=by_budget,
            )
        decision = self._judged = self._gate.decide()
        for one in self._models:
            one.totals.novelty = Novelty.of(decision.judgements[one.name].comparison)
        return decision.status or (FAILED if unjudged else pytest.ExitCode.OK)

    def _write_reports(self) -> bool:
        """Write the requested files and return whether that succeeded."""
        # A run without results must not overwrite the files of an earlier one.
        if not self._collector:
            if unwritten := list_requested(self._context.settings.output):
                text = f"not written because nothing was tested: {', '.join(unwritten)}"
                self._last_lines.append(StyledLine(text, "warning"))
            return True
        judged = self._judged if self._gate.judges else None
        lines = write_outputs(self._context.settings.output, partial(self._report, judged))
        self._last_lines += lines
        for one in self._models:
            record_suite_properties(
                self._context.config,
                one.summary,
                self._context.settings.variant,
                None if judged is None else judged.judgements[one.name].verdict,
                one.name,
            )
        return all(line.style != "bad" for line in lines)

    def _report(self, judged: GateDecision | None) -> tuple[dict[str, Any], dict[str, View]]:
        """Return the JSON report, and the view of each tracker."""
        reports = {
            one.name: build_report(
                one.results,
                one.settings,
                self._info(one),
                gate=None if judged is None else judged.judgements[one.name].to_json(),
                regressions=self._regressions.facts(),
                totals=one.totals,
            )
            for one in self._models
        }
        views = {one.name: View.of(reports[one.name], one.totals) for one in self._models}
        return report_of_models(reports, tuple(STATUSES)), views

    def _info(self, of: ModelResults, *, shared: bool = True) -> RunInfo:
        """Return facts about the run of a tracker, with the costs of all trackers if ``shared``."""
        collector = of.collector
        own = "; or ".join(sorted(collector.own))
        facts = self._facts() if shared else TrackerFacts()
        found = collector.info(self._context.data)
        policies = sorted(collector.policies.items())
        notes = [*found.notes, *facts.notes, *filter(None, (note for _, note in policies))]
        if own:
            notes.append(f"settings of tests by markers: {own}")
        if left_out := self._context.left_out:
            notes.append(left_out)
        if others := self._context.not_own_questions:
            notes.append(others)
        notes += _pointer_notes(of)
        own_seconds = time.monotonic() - self._started
        return replace(
            found,
            lexicon=" ".join(sorted(collector.lexicons)),
            policy=" ".join(fingerprint for fingerprint, _ in policies),
            notes=tuple(notes),
            ended=self._ended,
            command=shlex.join(
                mask_command_line(["pytest", *self._context.config.invocation_params.args])
            ),
            repeat=self._repeating(self._context.config),
            started=self._started_at,
            seconds=own_seconds if found.seconds is None else found.seconds,
            usage=facts.usage,
            disagreement=facts.disagreement,
            asked=found.asked + facts.asked,
            recalled=facts.recalled,
            # The results of a folder know their judge.
            judge=found.judge or judge_info(facts.judge, self._context.settings),
            relations=dict(sorted(collector.relations.items())),
            compared="; or ".join(sorted(collector.comparisons)),
        )

    def _facts(self) -> TrackerFacts:
        """Return the facts that this process and the workers know about their trackers."""
        return sum(self._collector.services.values(), self._pool.facts())

    def _why_ended(self, session: pytest.Session) -> str:
        if mixed := self._facts().mixed:
            return mixed
        if why := next(filter(None, (one.totals.why_skipped for one in self._models)), ""):
            return why
        # Without any result, the controller does not know which results are missing.
        if self._collector and not self._collector.missing:
            return ""
        # With workers, xdist counts the failures.
        spread: Any = session.config.pluginmanager.get_plugin("dsession")
        for stop in (session.shouldfail, session.shouldstop, getattr(spread, "shouldstop", "")):
            if stop:
                return str(stop)
        if self._broken_off:
            return self._stopped or "interrupted"
        return "a worker crashed" if self._crashed else ""

    def _repeating(self, config: pytest.Config) -> str:
        """Return the command that repeats the session, or ``""`` if it judged stored results."""
        if self._context.stored is not None:
            return ""
        return session_command(config, self._context.settings.variant.seed)

    def _print_figures(self, reporter: pytest.TerminalReporter) -> None:
        for one in self._models:
            lines = report_lines(
                one.results,
                one.settings,
                # Costs of all trackers together do not belong to one of them.
                self._info(one, shared=not one.name),
                verbosity=reporter.config.get_verbosity(),
                width=min(shutil.get_terminal_size().columns, _WIDEST),
                encoding=_encoding(),
                command=self._repeating(reporter.config),
                totals=one.totals,
            )
            title = f"dstfuzz: {printable(one.name)}" if one.name else "dstfuzz"
            if len(lines) > 1:
                reporter.section(title, "=", bold=True)
            elif lines:
                # A line for a whole tracker starts with its name.
                text = lines[0].text.replace("dstfuzz", title, 1)
                lines = [lines[0]._replace(text=text)]
            for line in lines:
                # A `Page` made it printable.
                reporter.write_line(line.text, **_MARKUP[line.style])
        if len(self._models) > 1:
            facts = self._facts()
            text = f"all trackers together predicted {facts.asked:,} contexts"
            for said in (text, *([] if facts.usage is None else [usage_text(facts.usage)])):
                reporter.write_line(f"dstfuzz: {said}", light=True)


def _print_lines(
    reporter: pytest.TerminalReporter, lines: Iterable[StyledLine], before: str = ""
) -> None:
    """Print lines in their colours, each after ``before``."""
    for line in lines:
        reporter.write_line(printable(f"{before}{line.text}"), **_MARKUP[line.style])


def _encoding() -> str:
    """Return the encoding of the terminal. pytest may have replaced sys.stdout."""
    return getattr(sys.__stdout__, "encoding", None) or "utf-8"


#: Key of a worker's output: number of results that its selected tests need.
_PLANNED = "dstfuzz_planned"
#: Likewise: the files and trackers of all tests.
_COLLECTED = "dstfuzz_collected"
#: Likewise: number of regressions that at least one tracker did not replay.
_UNREPLAYED = "dstfuzz_unreplayed"
#: Maximum width of a line in columns.
_WIDEST = 120
#: Colours of a line, if the terminal has colours.
_MARKUP: dict[Style, dict[str, bool]] = {
    "plain": {},
    "heading": {"bold": True},
    "good": {"green": True},
    "bad": {"red": True},
    "warning": {"yellow": True},
    "dim": {"light": True},
}
#: Exit statuses of runs with usable results.
_ORDERLY = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)


def _section(given: object) -> AddedSection:
    """Return the section from a hook.

    Raises:
        UserError: the section is not a pair of a title and lines.
    """
    if isinstance(given, tuple) and len(given) == 2:
        title, lines = given
        if isinstance(title, str) and isinstance(lines, list | tuple):
            return AddedSection(title, tuple(map(str, lines)))
    raise UserError(
        "a hook pytest_dstfuzz_report_section must return a title and a list of lines, not "
        f"{describe(given)}"
    )


def _pointer_notes(of: ModelResults) -> list[str]:
    """Return a note if the description of a service's answers names slots that no answer has."""
    text, outcome = of.settings.tracker.response, of.settings.reply.outcome
    if text is None or outcome != "state":
        return []
    from pytest_dstfuzz.trackers.web.sessions import Response  # noqa: PLC0415 - httpx

    # An entity has a pointer to its name instead of a slot.
    slots = [one for one in Response.parse(text, outcome).slots or () if one[:1] != "/"]
    seen = {slot for turn in of.results for slot in turn.clean_state or ()}
    missing = [slot for slot in slots if slot not in seen]
    if not seen or not missing:
        return []
    named = format_list(missing, 3)
    return [f"No clean answer has a value for {named}: are its pointers in response= right?"]
