"""Where the predictions of a session are kept: from run to run, or among the workers of one.

The workers of a run share a folder, and what a tracker said is in it. A run removes its own at its
end; one that is killed cannot, so the next one does. Each worker holds a lock on the folder that
it uses, which goes with the process: a folder that nobody holds is one that nobody uses.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_dstfuzz.campaign.cache import PredictionCache, scope_of
from pytest_dstfuzz.campaign.store import Store
from pytest_dstfuzz.config import NO_CACHE, Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.files import hold_folder, remove_leftovers
from pytest_dstfuzz.trackers.tracker import Tracker, fingerprint_of, fingerprint_problem

_FOLDER: Final = "dstfuzz"
_FILE: Final = "predictions.sqlite"
_MEGABYTE: Final = 1_000_000
#: Of the name of a run.
_DIGITS: Final = 24


class Caches:
    """Finds the place for what a tracker predicts."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._run = _run_of(config)
        self._found: dict[int, tuple[Tracker, PredictionCache | None]] = {}
        self._opened: list[Store] = []
        self._problems: list[str] = []
        if not self._run:
            remove_leftovers(Path(tempfile.gettempdir()), f"{_FOLDER}-{'[0-9a-f]' * _DIGITS}")

    def of(
        self, tracker: Tracker, data: DialogueSet, *, named: bool, origin: str
    ) -> PredictionCache | None:
        """Return the cache of a tracker, or ``None`` where nothing that it says can be reused.

        That of a tracker with a fingerprint outlives the run. The workers of xdist share one
        for the run whatever the tracker: each of them has its own copy of the same one.
        ``named`` is the tracker of --dst-model; ``origin`` tells another from those that no
        option names either, in all processes alike (``""``: not known).
        """
        if id(tracker) not in self._found:
            model = f"--dst-model={self._settings.tracker.model}" if named else ""
            fingerprint, cache = fingerprint_of(tracker), None
            if fingerprint is None and (problem := fingerprint_problem(tracker)):
                self._problems.append(
                    "predictions are not kept: the tracker's 'fingerprint' is no text that "
                    f"changes with its answers; {problem}"
                )
            if fingerprint is not None and self._kept is not None and self._kept.usable:
                cache = self._cache(self._kept, (model or _kind(tracker), fingerprint), data)
            elif (model or origin) and self._shared is not None:
                cache = self._cache(self._shared, (model, origin), data)
            # The tracker is kept with it: a new one could be given the same id otherwise.
            self._found[id(tracker)] = tracker, cache
        return self._found[id(tracker)][1]

    @property
    def problems(self) -> list[str]:
        """What went wrong."""
        return [*self._problems, *(text for store in self._opened for text in store.problems)]

    @property
    def shared_folders(self) -> tuple[str, ...]:
        """The folder to remove after a run of workers, if this is one of them."""
        return (str(self._folder),) if self._run else ()

    def _cache(self, store: Store, who: tuple[str, str], data: DialogueSet) -> PredictionCache:
        return PredictionCache(store, scope_of(who, data, self._settings.reply), self._run)

    @cached_property
    def _kept(self) -> Store | None:
        """The store that outlives the run, if there is to be one."""
        given = self._settings.budget.cache
        if given == NO_CACHE:
            return None
        if given is not None:
            return self._store(Path(given))
        # Without pytest's cache (-p no:cacheprovider) nothing is kept.
        cache: Any = getattr(self._config, "cache", None)
        if cache is None:
            return None
        try:
            return self._store(Path(cache.mkdir(_FOLDER)) / _FILE)
        except OSError as error:
            self._problems.append(f"predictions are not kept: pytest's cache folder: {error}")
            return None

    @cached_property
    def _shared(self) -> Store | None:
        """The store of the workers of this run; ``None`` in a process that is none of them."""
        if not self._run:
            return None
        # Nobody else may read what is in it, or put a link in its place.
        try:
            self._config.add_cleanup(hold_folder(self._folder))
        except OSError as error:
            self._problems.append(f"the workers share no predictions: {error}")
            return None
        return self._store(self._folder / _FILE)

    @property
    def _folder(self) -> Path:
        return Path(tempfile.gettempdir()) / f"{_FOLDER}-{self._run}"

    def _store(self, path: Path) -> Store:
        store = Store(path, self._settings.budget.cache_size * _MEGABYTE)
        self._opened.append(store)
        self._config.add_cleanup(store.close)
        return store


def _run_of(config: pytest.Config) -> str:
    """Return a name of the run that its workers share; ``""`` in a process that is no worker."""
    uid = getattr(config, "workerinput", {}).get("testrunuid", "")
    if not uid:
        return ""
    # Users may choose the uid, and choose the same one again.
    name = f"{uid} {os.getppid()}"
    return hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGITS]


def _kind(tracker: Tracker) -> str:
    """Return the name of a tracker's class, or of the function or the object that it adapts."""
    inner = getattr(tracker, "wrapped", tracker)
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{named.__module__}.{named.__qualname__}"
