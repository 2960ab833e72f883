"""Lets the limits of the pytest plugin judge a result folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_dstfuzz import Dialogue, Settings, __version__
from pytest_dstfuzz.campaign.engine import digest_of_package
from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.config import shard_text
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.plugin.stored import StoredRun
from pytest_dstfuzz.report.json_report import RunInfo, judge_info
from pytest_dstfuzz.scale.manifest import RunManifest, plan_digest
from pytest_dstfuzz.scale.results import ResultFolder, describe_unfinished


class FolderRun(StoredRun):
    """A finished run that is read from a result folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lacking = "" if path.is_dir() else f"there is no folder {path}"
        if not lacking and not self.holds(path):
            lacking = f"{path} is not a folder of results, because it has no run.json"
        if lacking:
            raise UserError(
                f"--dst-results: {lacking}: write one with dstfuzz campaign --results or dstfuzz "
                "merge"
            )
        self._manifest = RunManifest.read(path)

    @classmethod
    def holds(cls, path: Path) -> bool:
        """Return whether a path is a result folder."""
        return ResultFolder.is_one(path)

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return self._manifest.read_settings()

    @property
    def decided(self) -> Mapping[str, Any]:
        """The values that determine the results of the run."""
        return self._manifest.decided

    @property
    def doubt(self) -> str:
        """Why the results may be of two versions of the bot, or ``""``."""
        doubt = self._manifest.doubt
        return f"{self.path}: {doubt}" if doubt else ""

    @property
    def info(self) -> RunInfo:
        """The description of the data and the run."""
        return self._manifest.info(judge=judge_info(self._folder.judge, self.settings))

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations with results, in the order of the run."""
        return tuple(name for name in self._manifest.relations if self._folder.count(name))

    def results(self, relation: str = "") -> Results:
        """Return the results of one relation or of all. Each iteration reads the files again."""
        found = self._folder.results
        return found.of(relation) if relation else found

    def is_of(self, drawn: Sequence[tuple[Dialogue, int]]) -> bool:
        """Return whether the run had exactly these dialogues.

        Raises:
            UserError: the folder cannot be used.
        """
        return plan_digest(drawn) == self._folder.manifest.digest

    @cached_property
    def _folder(self) -> ResultFolder:
        folder = ResultFolder.open(self.path)
        manifest = folder.manifest
        if manifest.version != __version__:
            raise UserError(
                f"--dst-results: {self.path} was written by pytest-dstfuzz {manifest.version}, "
                f"but this is {__version__}, which may judge answers differently: run the campaign "
                "again"
            )
        if manifest.plugin != (digest_of_package() or ""):
            raise UserError(
                f"--dst-results: {self.path} was written by other code of pytest-dstfuzz "
                f"{manifest.version}, which may judge answers differently: run the campaign again"
            )
        if not folder.complete:
            raise UserError(f"--dst-results: {describe_unfinished(folder)}")
        if manifest.shard != (1, 1):
            raise UserError(
                f"--dst-results: {self.path} is part {shard_text(manifest.shard)} of a run, but "
                "limits apply to all parts: combine them with dstfuzz merge"
            )
        if not manifest.planned:
            raise UserError(
                f"--dst-results: {self.path} has no results, so there is nothing to judge"
            )
        return folder
