"""``--dst-results``: what a folder of results holds, in the place of campaigns of this session.

The tracker is asked nothing. Settings that decide the results are those of the folder, all others
are those of the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_dstfuzz import __version__
from pytest_dstfuzz.config import (
    GateSettings,
    OutputSettings,
    Settings,
    build_settings,
    option,
    settings_json,
    shard_text,
)
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.scale.results.folder import ResultFolder
from pytest_dstfuzz.scale.results.manifest import RunManifest, plan_digest
from pytest_dstfuzz.scale.results.merging import unfinished

#: Parts of the settings that are of this session.
_OWN_PARTS: Final = ("output", "gate")
#: Where the dialogues lie: here that may be somewhere else.
_LIES: Final = ("data", "tools", "frozen", "tools_paraphrase")


def stored_settings(given: Mapping[str, Any], typed: Mapping[str, str]) -> Settings:
    """Return the settings of a session that judges a folder of results.

    Args:
        given: parsed values by option, from wherever they come; ``results`` names the folder.
        typed: those that the command line gives, as they are spelled there.

    Raises:
        UserError: there is no such folder, or the command line gives what is not as in it, or what
            has no part in judging a folder.
    """
    where = Path(given["results"])
    manifest = RunManifest.read(checked(where))
    for name in ("shard", "replay"):
        if name in typed:
            raise UserError(
                f"{typed[name]} has no part in --dst-results, which asks the tracker nothing: "
                "leave it out"
            )
    held = manifest.read_settings()
    held = replace(held, output=OutputSettings(), gate=GateSettings())
    shown = settings_json(held)
    for name, spelled in typed.items():
        if name not in given or name in _LIES or option(name).part in _OWN_PARTS:
            continue
        here = settings_json(build_settings({name: given[name]}))[name]
        if here != shown[name]:
            raise UserError(
                f"{spelled}: {where} holds results with {name.replace('_', '-')} = "
                f"{_shown(shown[name])}, not {_shown(here)}: leave it out, or name the folder of a "
                "run with it"
            )
    kept = {
        name: value
        for name, value in given.items()
        if option(name).part in _OWN_PARTS or (name in _LIES and name in typed)
    }
    return build_settings(kept, held)


def checked(where: Path) -> Path:
    """Return a path where there is a folder.

    Raises:
        UserError: there is none.
    """
    if not where.is_dir():
        raise UserError(
            f"--dst-results: there is no folder {where}: dstfuzz campaign --results and dstfuzz "
            "merge write one"
        )
    if not ResultFolder.is_one(where):
        raise UserError(
            f"--dst-results: {where} is no folder of results, it has no run.json: dstfuzz campaign "
            "--results and dstfuzz merge write one"
        )
    return where


def refuse_workers(config: pytest.Config) -> None:
    """Refuse to read a folder with the workers of xdist.

    Raises:
        UserError: there are some.
    """
    if getattr(config.option, "dist", "no") != "no":
        raise UserError(
            "--dst-results reads a folder in one process, and -n starts several: leave -n out, or "
            "say -n0"
        )


class StoredRun:
    """A folder of results that a session judges."""

    def __init__(self, settings: Settings) -> None:
        self.path = Path(settings.output.results or "")
        self.settings = settings

    @cached_property
    def folder(self) -> ResultFolder:
        """The folder.

        Raises:
            UserError: it is damaged, not complete, a part, or of another version.
        """
        folder = ResultFolder.open(self.path)
        manifest = folder.manifest
        if manifest.version != __version__:
            raise UserError(
                f"--dst-results: {self.path} was written by pytest-dstfuzz {manifest.version}, and "
                f"this is {__version__}, which may judge otherwise: run the campaign again"
            )
        if not folder.complete:
            raise UserError(f"--dst-results: {unfinished(folder)}")
        if manifest.shard != (1, 1):
            raise UserError(
                f"--dst-results: {self.path} is part {shard_text(manifest.shard)} of a run, and "
                "limits are for all parts: dstfuzz merge puts them together"
            )
        if not manifest.planned:
            raise UserError(
                f"--dst-results: {self.path} holds no result: there is nothing to judge"
            )
        return folder

    @property
    def manifest(self) -> RunManifest:
        """What is known of its run."""
        return self.folder.manifest

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of the relations that have results, in the order in which they were asked."""
        return tuple(name for name in self.manifest.relations if self.folder.count(name))

    @property
    def about(self) -> str:
        """What is judged, in a sentence."""
        data, turns = self.manifest.data["data"], len(self.folder)
        model = self.settings.tracker.model
        of = ", ".join(self.relations)
        return f"{turns:,} results of {model} on {data} under {of}, from {self.path}"

    def check_data(self, drawn: Sequence[tuple[Dialogue, int]]) -> None:
        """Refuse other dialogues than those of the folder: they are what a baseline goes by.

        Raises:
            UserError: they are others.
        """
        if plan_digest(drawn) != self.manifest.digest:
            raise UserError(
                f"--dst-results: the dialogues of {self.settings.data.data} are not those that "
                f"{self.path} holds results of: they were changed since, or lie elsewhere, and "
                "then --dst-data=PATH names them"
            )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "none" if value is None else text or "none"
