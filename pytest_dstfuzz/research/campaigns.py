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

from pytest_dstfuzz.config import Settings, VariantSettings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.research.campaign_figures import CampaignFigures
from pytest_dstfuzz.research.campaign_runner import CampaignRunner, Fingerprint
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.training.right_dialogues import Paced, Say

#: Folder of the finished campaigns, in that of the tables.
FOLDER: Final = "campaigns"


class Campaigns:
    """Runs campaigns and keeps their figures.

    Args:
        bench: where they are run.
        fingerprint: of tracker and dialogues.
        splits: that the dialogues were read from; the other processes read them again.
        folder: of the tables, where finished campaigns are kept; ``None`` = nowhere.
        jobs: processes.
        say: told about progress.
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

    def figures(self, settings: Settings) -> CampaignFigures:
        """Return the figures of a campaign that was run."""
        return self._done[settings]

    def run(self, wanted: Sequence[Settings]) -> None:
        """Run what is not there yet.

        Raises:
            UserError: the settings cannot be used, or a process was ended from outside.
        """
        missing = [item for item in dict.fromkeys(wanted) if item not in self._done]
        for settings in list(missing):
            kept = self._kept(settings)
            if kept is not None:
                self._done[settings] = kept
                missing.remove(settings)
        count = len(set(wanted))
        if count:
            self._say(f"{count} campaigns, {count - len(missing)} of them are there already")
        several = self._jobs > 1 and len(missing) > 1
        finished = self._side_by_side(missing) if several else self._one_by_one(missing)
        for number, (settings, figures) in enumerate(finished, start=1):
            self._done[settings] = figures
            self._keep(settings, figures)
            self._say(f"[{number}/{len(missing)}] {title(settings.variant)}: {_line(figures)}")

    def _one_by_one(self, wanted: Sequence[Settings]) -> Iterator[tuple[Settings, CampaignFigures]]:
        turns = self._bench.data.turn_count()
        for settings in wanted:
            tell, name = Paced(self._say), title(settings.variant)

            def done(count: int, tell: Paced = tell, name: str = name) -> None:
                tell(f"{name}: {count} of {turns} turns")

            yield settings, self._bench.run(settings, done)

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
        path, key = self._place(settings)
        if path is None or not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            known = found["key"] == key
            return from_json(CampaignFigures, found["figures"]) if known else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # Half a file or another format: it is run again.

    def _keep(self, settings: Settings, figures: CampaignFigures) -> None:
        path, key = self._place(settings)
        if path is not None:
            kept = {"key": key, "figures": to_json(figures)}
            write_text(path, json.dumps(kept) + "\n")

    def _place(self, settings: Settings) -> tuple[Path | None, dict[str, Any]]:
        key = self._fingerprint.key(settings)
        if self._folder is None:
            return None, key
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode("utf-8")).hexdigest()
        return self._folder / f"{digest[:24]}.json", key


def title(settings: VariantSettings) -> str:
    """Name a campaign in a line of progress."""
    until = ", until broken" if settings.stop_at_first else ""
    return (
        f"{settings.validity}, {settings.search}, k = {settings.transformations}, "
        f"{settings.variants} variants{until}, seed {settings.seed}"
    )


def _line(figures: CampaignFigures) -> str:
    broken = sum(bool(turn.violations) for turn in figures.turns)
    calls = sum(turn.calls for turn in figures.turns)
    return f"{broken} turns broken in {calls:,} calls, {figures.seconds:.0f} s"


#: The bench of a process that runs campaigns for another one.
_bench: list[CampaignRunner] = []


def _begin(settings: Settings, splits: Sequence[str], ids: frozenset[str]) -> None:
    """Make the bench of this process."""
    # An interrupt is for the process that the user sees.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parts = [load_dialogues(settings.data.data, split) for split in splits]
    _bench.append(CampaignRunner(tracker_for(settings, parts[0]), _chosen(parts, ids)))


def _chosen(parts: Sequence[DialogueSet], ids: frozenset[str]) -> DialogueSet:
    """Put the dialogues together again."""
    kept = [dialogue for part in parts for dialogue in part.dialogues if dialogue.id in ids]
    name = "+".join(part.split for part in parts)
    return replace(parts[0], split=name, dialogues=tuple(kept))


def _work(settings: Settings) -> CampaignFigures:
    return _bench[0].run(settings)
