"""Reports and figures of a folder of results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_dstfuzz.campaign.result_views import MappedResults
from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import OutputSettings, Settings
from pytest_dstfuzz.report.forms import write_form
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.report.page import TerminalPage
from pytest_dstfuzz.report.redact import redacted
from pytest_dstfuzz.report.terminal_relations import report_lines
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.scale.results.folder import ResultFolder
from pytest_dstfuzz.totals.totals import Totals


class FolderReport:
    """What is reported of a folder of results; what was said is left out where that is wanted."""

    def __init__(self, folder: ResultFolder, *, redact: bool = False) -> None:
        manifest = folder.manifest
        self.settings: Settings = manifest.read_settings()
        self.info: RunInfo = manifest.info()
        found = folder.results
        self.results: Results = MappedResults(found, redacted) if redact else found
        hide = redacted if redact else None
        fallbacks = self.settings.reply.fallback
        self.totals = Totals.of(found, self.info.relations, fallbacks, hide)
        self.summary: Summary = self.totals.first(self.settings.variant.relation).summary

    def page(self, page: TerminalPage) -> TerminalPage:
        """Put the figures on a page of a terminal."""
        given = (self.results, self.settings, self.info)
        width, encoding = page.width, page.encoding
        page.lines += report_lines(
            *given,
            width=width,
            encoding=encoding,
            totals=self.totals,
        )
        return page

    def write(self, output: OutputSettings, **run: Any) -> list[Path]:
        """Write the reports that are asked for; ``run`` are fields of the circumstances."""
        wanted = [Path(path) for path in output.report]
        if wanted:
            settings = self.settings.replace_options(redact=output.redact)
            info = replace(self.info, **run)
            report = build_report(
                self.results,
                settings,
                info,
                totals=self.totals,
            )
            for path in wanted:
                write_form(path, report, {"": View.of(report, self.totals)})
        return wanted
