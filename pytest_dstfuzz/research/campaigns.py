"""Many campaigns: in one process or several, each kept on disk as soon as it is done.

A run that is cut short and started again takes what it finds: a file is used where
everything that the campaign's outcome depends on is the same, see `Fingerprint`.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.research.campaign_figures import CampaignFigures
from pytest_dstfuzz.research.campaign_runner import CampaignRunner, Fingerprint, title
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.training.right_dialogues import Say

#: Folder of the finished campaigns, in that of the tables.
FOLDER: Final = "campaigns"


class Campaigns:
    """Runs campaigns in so many processes, and keeps their figures, in the folder of the tables.

    The other processes read the dialogues again, from their splits.
    """

    def __init__(
        self,
        bench: CampaignRunner,
        fingerprint: Fingerprint,
        *,
        splits: Sequence[str],
        folder: Path | None,
        jobs: int,
        say: Say,
    ) -> None:
        self._bench = bench
        self._fingerprint = fingerprint
        self._splits = tuple(splits)
        self._folder = None if folder is None else folder / FOLDER
        self._jobs = jobs
        self._say = say
        self._done: dict[Settings, CampaignFigures] = {}

    def figures(self, wanted: Sequence[Settings]) -> list[CampaignFigures]:
        """Return the figures of campaigns that were run."""
        return [self._done[settings] for settings in wanted]

    def run(self, wanted: Sequence[Settings]) -> None:
        """Run what is not there yet."""
        for settings in wanted:
            if settings not in self._done and (kept := self._kept(settings)) is not None:
                self._done[settings] = kept
        missing = [item for item in dict.fromkeys(wanted) if item not in self._done]
        if count := len(set(wanted)):
            self._say(f"{count} campaigns, {count - len(missing)} of them are there already")
        several = self._jobs > 1 and len(missing) > 1
        finished = self._side_by_side(missing) if several else self._one_by_one(missing)
        for number, (settings, figures) in enumerate(finished, start=1):
            self._done[settings] = figures
            self._keep(settings, figures)
            found = f"{figures.turns_broken} turns broken in {figures.calls:,} calls"
            name = title(settings.variant)
            self._say(f"[{number}/{len(missing)}] {name}: {found}, {figures.seconds:.0f} s")

    def _one_by_one(self, wanted: Sequence[Settings]) -> Iterator[tuple[Settings, CampaignFigures]]:
        for settings in wanted:
            yield settings, self._bench.run(settings, self._say)

    def _side_by_side(
        self, wanted: Sequence[Settings]
    ) -> Iterator[tuple[Settings, CampaignFigures]]:
        # Forking a process whose libraries have threads may hang.
        context = multiprocessing.get_context("spawn")
        ids = frozenset(dialogue.id for dialogue in self._bench.data.dialogues)
        begin = (wanted[0], self._splits, ids)
        with ProcessPoolExecutor(min(self._jobs, len(wanted)), context, _begin, begin) as pool:
            futures = {pool.submit(_work, settings): settings for settings in wanted}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BrokenProcessPool:
                raise UserError(
                    "a process that ran campaigns was ended from outside (too little memory?); "
                    "what was finished is kept"
                ) from None
            except BaseException:
                # The pool would wait for campaigns whose figures nobody will read.
                for process in multiprocessing.active_children():
                    process.terminate()
                raise

    def _kept(self, settings: Settings) -> CampaignFigures | None:
        """Return the figures on disk, where they are those of this very campaign."""
        if self._folder is None:
            return None
        key = self._fingerprint.key(settings)
        try:
            found = json.loads(_file_in(self._folder, key).read_text(encoding="utf-8"))
            known = found["key"] == key
            return from_json(CampaignFigures, found["figures"]) if known else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # None, half a file or another format: it is run again.

    def _keep(self, settings: Settings, figures: CampaignFigures) -> None:
        if self._folder is not None:
            key = self._fingerprint.key(settings)
            kept = json.dumps({"key": key, "figures": to_json(figures)})
            write_text(_file_in(self._folder, key), kept + "\n")


def _file_in(folder: Path, key: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode("utf-8")).hexdigest()
    return folder / f"{digest[:24]}.json"


#: The bench of a process that runs campaigns for another one.
_bench: list[CampaignRunner] = []


def _begin(settings: Settings, splits: Sequence[str], ids: frozenset[str]) -> None:
    """Make the bench of this process."""
    # An interrupt is for the process that the user sees.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parts = [load_dialogues(settings.data.data, split) for split in splits]
    kept = [dialogue for part in parts for dialogue in part.dialogues if dialogue.id in ids]
    name = "+".join(part.split for part in parts)
    data = replace(parts[0], split=name, dialogues=tuple(kept))
    _bench.append(CampaignRunner(tracker_for(settings, parts[0]), data))


def _work(settings: Settings) -> CampaignFigures:
    return _bench[0].run(settings)
