"""What a session leaves behind: report files, JUnit properties, annotations, a job summary."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import (
    NO_CACHE,
    OutputSettings,
    Settings,
    VariantSettings,
    shard_text,
)
from pytest_dstfuzz.dialogue.load import data_files
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_apart, check_writable
from pytest_dstfuzz.report.forms import check_forms, write_form
from pytest_dstfuzz.report.github import MOST_COMMANDS, append_summary, violation_commands
from pytest_dstfuzz.report.page import Style, StyledLine
from pytest_dstfuzz.report.view import View

if TYPE_CHECKING:
    from pytest_dstfuzz.plugin.regressions import RegressionCorpus

_IN_ACTIONS: Final = "GITHUB_ACTIONS"
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def check_outputs(settings: Settings, memory: RegressionCorpus, config: pytest.Config) -> None:
    """Refuse before a run reports that cannot be written, or would destroy what is read."""
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
        "what --dst-search was trained to": settings.variant.search.partition(":")[2] or None,
    }
    (written if settings.gate.update_baseline else read)["--dst-baseline"] = settings.gate.baseline
    (written if settings.output.remember else read)["the file of regressions"] = memory.path
    check_apart(written, read)
    if any(path is not None and Path(path).expanduser().exists() for path in written.values()):
        for file in data_files(settings.data.data):
            check_apart(written, {"a file of --dst-data": file})
    for output in (*settings.output.report, memory.written):
        if output is not None:
            check_writable(Path(output))


def _refuse_report_of_part(settings: Settings) -> None:
    """Refuse a report of a part: those of several parts cannot be put together."""
    shard = settings.data.shard
    unwanted = asked_for(settings.output)
    if shard is None or shard[1] == 1 or not unwanted:
        return
    part = shard_text(shard)
    raise UserError(
        f"--dst-shard={part} with {' and '.join(unwanted)}: the reports of parts cannot be put "
        f"together. Run each part with dstfuzz campaign --shard {part} --results part-{shard[0]}, "
        "put the folders together with dstfuzz merge, and judge the whole with pytest "
        "--dst-results=DIR --dst-report=PATH"
    )


def write_outputs(
    settings: OutputSettings,
    make_report: Callable[[], tuple[Mapping[str, Any], Mapping[str, View]]],
) -> list[StyledLine]:
    """Write every file that is asked for; return a line for each that could not be written.

    ``make_report`` gives the report, and what pages show of each tracker by its name.
    """
    summary = None if settings.annotations == "no" else os.environ.get(_SUMMARY)
    # What the user names a path for has to be there.
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


def asked_for(settings: OutputSettings) -> list[str]:
    """Return the files of the report that are asked for, in words."""
    return [f"the report {path}" for path in settings.report]


def annotation_lines(
    found: Callable[[bool], Iterable[TurnResult]],
    settings: Settings,
    encoding: str,
    places: Mapping[str, tuple[str, int]],
) -> list[str]:
    """Return the lines that GitHub makes annotations of, where the user or the place wants them.

    New violations, which ``found(True)`` gives, come before those that were not compared, which
    ``found(False)`` gives. Those that the baseline knows are in neither.
    """
    wanted = settings.output.annotations == "yes" or (
        settings.output.annotations == "auto" and os.environ.get(_IN_ACTIONS) == "true"
    )
    if not wanted:
        return []
    lines = violation_commands(found(True), settings.gate, encoding, places, note="new violation: ")
    most = MOST_COMMANDS - len(lines)
    return [*lines, *violation_commands(found(False), settings.gate, encoding, places, most=most)]


def record_suite_properties(
    config: pytest.Config,
    summary: Summary,
    settings: VariantSettings,
    verdict: str | None,
    model: str = "",
) -> None:
    """Put the figures of the session into the file of --junitxml, as properties of the suite.

    That is what the fixture ``record_testsuite_property`` does, which no session hook has and
    which tests on workers cannot use. Without a verdict of the gate the worst outcome is shown.
    Where there are several trackers, each has properties of its own: ``dst_valid[MODEL]``.
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
        # Without bounds above, why: there were too few.
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
    """Return a rate as the JSON report has it, ``""`` where nothing was counted."""
    return "" if rate is None else f"{rate:.4f}"
