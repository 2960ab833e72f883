"""Campaigns of an experiment: in one process or several, each kept on disk as soon as it is done.

A run that is cut short and started again takes what it finds: a file is used where
everything that the campaign's outcome depends on is the same, see `Fingerprint`.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.agents.training.right_dialogues import (
    Paced,
    Say,
    joined,
)
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.events import Event, TurnDone
from pytest_dstfuzz.config import PROFILES, Settings, VariantSettings, names_of, settings_json
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import digest_of, write_text
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.papers.campaign_figures import CampaignFigures, StrictVeto, all_turn_figures
from pytest_dstfuzz.perturb.action import ActionSpace, inertia
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask, TurnSearch
from pytest_dstfuzz.search.registry import search_by_name, trained
from pytest_dstfuzz.trackers.evaluate import Evaluation
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker

_PACKAGE: Final = Path(__file__).parents[1]
#: What the outcome of a campaign depends on.
_CODE: Final = (
    *("agents", "campaign", "dialogue", "noise", "perturb", "relations", "resources", "search"),
    *("models", "trackers", "weaknesses", "papers/campaign_figures.py"),
)
#: Settings that say where something lies, or how it is reached; what it is, is in the key.
_PLACES: Final = {"search", *names_of("place")} - {"slot_map", "prompt", "device"}
#: Dialogue, turn, number of the variant, draw: what an action was taken for.
_Place = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class CampaignRunner:
    """Runs campaigns on some dialogues."""

    tracker: Tracker
    data: DialogueSet
    #: Seconds between lines that say how far it is; ``None`` = the usual.
    pace: float | None = None

    def run(
        self, settings: Settings, say: Say | None = None, name: str | None = None
    ) -> CampaignFigures:
        """Run a campaign over all the dialogues; ``say`` is told of its turns, by its ``name``."""
        started, done, turns = time.monotonic(), 0, self.data.turn_count()
        tell = say and Paced(say, self.pace)

        def listen(event: Event) -> None:
            nonlocal done
            done += isinstance(event, TurnDone)
            if tell and isinstance(event, TurnDone):
                tell(f"{name or title(settings.variant)}: {done} of {turns} turns")

        k = settings.variant.transformations
        # The clean contexts are calls of every search.
        predictor = predictor_for(settings, self.data, self.tracker)
        search = Recording(search_by_name(settings.variant.search, seed=settings.variant.seed, k=k))
        campaign = CampaignEngine(
            settings,
            self.data,
            predictor,
            load_lexicon(),
            plan=[(dialogue, len(dialogue.turns) - 1) for dialogue in self.data.dialogues],
            listener=listen,
            search=search,
        )
        results = list(campaign.run())
        predictor.refuse_if_given_up()
        locked = PROFILES[settings.variant.validity].locks
        veto = None if locked else StrictVeto(settings.variant, self.data)
        figures = all_turn_figures(results, veto)
        spread = inertia(ActionSpace(settings.variant.selection), search.actions)
        return CampaignFigures(figures, spread, time.monotonic() - started)


def title(settings: VariantSettings) -> str:
    """Name a campaign in a line of progress."""
    until = ", until broken" if settings.stop_at_first else ""
    return (
        f"{settings.validity}, {settings.search}, k = {settings.transformations}, "
        f"{settings.variants} variants{until}, seed {settings.seed}"
    )


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What all campaigns of an experiment have in common, so that others are not taken for them."""

    code: str  #: Digest of the code and the shipped resources that outcomes depend on.
    #: How it did on the data: it may be an object whose code nobody sees.
    tracker: tuple[tuple[str, int, int, int], ...]
    dialogues: str  #: Digest of the dialogues.
    checkpoint: str  #: Digest of the weights that were named.

    @classmethod
    def of(
        cls, data: DialogueSet, evaluations: Sequence[Evaluation], checkpoint: str | None
    ) -> Fingerprint:
        """Take the fingerprint of a tracker and dialogues."""
        code = [path for part in _CODE for path in _files(_PACKAGE / part)]
        return cls(
            code=digest_of(path for path in code if path.suffix not in (".pyc", ".md")),
            tracker=tuple(
                (item.split, item.turns, item.right, item.right_slots) for item in evaluations
            ),
            dialogues=hashlib.sha256(repr(data).encode("utf-8")).hexdigest(),
            checkpoint=digest_of(_files(Path(checkpoint))) if checkpoint else "",
        )

    def key(self, settings: Settings) -> dict[str, Any]:
        """Return what tells a campaign from every other one, as JSON."""
        search, given = settings.variant.search, settings_json(settings)
        policy = trained(search)
        return {
            **{name: value for name, value in given.items() if name not in _PLACES},
            "search": search if policy is None else search.partition(":")[0],
            "policy": "" if policy is None else policy.fingerprint,
            "code": self.code,
            "tracker": [list(item) for item in self.tracker],
            "dialogues": self.dialogues,
            "checkpoint": self.checkpoint,
        }


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(item for item in path.rglob("*") if item.is_file())
    return [path] if path.is_file() else []


class Recording:
    """Hands everything on to another search and keeps the actions of its proposals."""

    def __init__(self, search: Search) -> None:
        self.name, self.order, self.adaptive = search.name, search.order, search.adaptive
        self.associates = search.associates
        self.by_density, self.waits = search.by_density, search.waits
        self.context_variant = search.context_variant
        self._begin = search.turn
        # By place, so that a turn that is run again is not counted twice.
        self._taken: dict[_Place, Action] = {}

    @property
    def actions(self) -> tuple[Action, ...]:
        """The action of every draw so far, redraws included, sorted by what it was for."""
        return tuple(action for _, action in sorted(self._taken.items(), key=lambda item: item[0]))

    def turn(self, task: SearchTask) -> RecordingTurn:
        """Begin a turn."""
        return RecordingTurn(self._begin(task), (task.dialogue.id, task.turn_index), self._taken)


@dataclass(frozen=True, slots=True)
class RecordingTurn:
    """The attempts of a `Recording` at one turn."""

    attempts: TurnSearch
    place: tuple[str, int]
    taken: dict[_Place, Action]

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return what the search proposes."""
        proposal = self.attempts.propose(number, draw, seen)
        self.taken[(*self.place, number, draw)] = proposal.action
        return proposal


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
    _bench.append(CampaignRunner(tracker_for(settings, parts[0]), joined(parts, kept)))


def _work(settings: Settings) -> CampaignFigures:
    return _bench[0].run(settings)
