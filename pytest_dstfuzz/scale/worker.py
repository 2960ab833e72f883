"""An actor of a campaign: it makes the campaign once, and runs the blocks that it is given."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.scale.results import (
    BlockRunner,
    EncodedResults,
    PlannedDialogue,
    RunManifest,
    blocks_of,
    manifest_of,
)

#: Seconds between two times that what is done of a block is sent.
_PAUSE: Final = 0.5
#: Variables of the environment that go to every node: what is told to this package alone.
_VARIABLES: Final = "DSTFUZZ_"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the driver was started, so that actors find the same files and modules."""

    folder: str
    #: Where modules are looked for.
    search_path: tuple[str, ...]
    #: Of the environment; it may hold credentials.
    variables: Mapping[str, str] = field(repr=False)

    @classmethod
    def here(cls) -> Surroundings:
        """Return those of this process."""
        variables = {k: v for k, v in os.environ.items() if k.startswith(_VARIABLES)}
        return cls(str(Path.cwd()), tuple(filter(None, sys.path)), variables)

    def enter(self) -> None:
        """Make them those of this process.

        Raises:
            UserError: there is no such folder.
        """
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise UserError(
                f"the folder {self.folder} is not on the node {platform.node()}: start in one that "
                f"all nodes share ({error.strerror})"
            ) from None
        sys.path += [path for path in self.search_path if path not in sys.path]
        os.environ.update(self.variables)


@dataclass(frozen=True, slots=True)
class Task:
    """A block, or what is missing of it."""

    number: int
    places: Sequence[int]
    #: Dialogues of it that are done, by place and relation.
    done: frozenset[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SentResults:
    """What an actor sends: results of some dialogues, and how far it is."""

    results: tuple[EncodedResults, ...]
    #: Contexts that the actor asked for so far.
    asked: int
    #: Number of a block of which it is the last that is sent.
    last: int | None = None
    #: Why it asks for nothing more; ``""`` = it may.
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A mistake of the user that shows in an actor."""

    message: str

    @classmethod
    def of(cls, error: DstFuzzError) -> Refusal:
        """Return what the driver raises again."""
        return cls(str(error.args[0]) if error.args else str(error))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run: the places of each block, and the id of its first dialogue."""

    blocks: Sequence[Sequence[int]]
    names: Sequence[str]


class BlockWorker:
    """Runs blocks of one campaign; tracker and data are loaded once.

    Args:
        settings: of the campaign; of its budget what this actor may spend.
        surroundings: of the driver.
        spent: seconds of the budget that were over when the actor was ordered.
    """

    def __init__(self, settings: Settings, surroundings: Surroundings, spent: float = 0.0) -> None:
        self._settings, self._surroundings = settings, surroundings
        self._spent, self._ordered = spent, time.monotonic()
        self._campaign: Campaign | None = None
        self._runner: BlockRunner | None = None

    def prepare(self) -> RunManifest | Refusal:
        """Load tracker and data, and say what is run."""
        try:
            self._surroundings.enter()
            settings = self._settings
            self._campaign = Campaign(settings.tracker.model or "", settings=settings)
            return manifest_of(self._campaign)
        except DstFuzzError as error:
            return Refusal.of(error)

    def plan(self) -> Plan:
        """Return all blocks of the run."""
        campaign = self._made
        blocks, names = [], []
        for block in blocks_of(campaign.drawn, shard=campaign.settings.data.shard):
            blocks.append([one.place for one in block])
            names.append(block[0].planned[0].id)
        return Plan(blocks, names)

    def run(self, task: Task) -> Iterator[SentResults | Refusal]:
        """Run what is missing of a block; what is done is sent now and then."""
        try:
            runner = self._begun()
        except DstFuzzError as error:
            yield Refusal.of(error)
            return
        drawn = self._made.drawn
        block = tuple(PlannedDialogue(place, drawn[place]) for place in task.places)
        chunk: list[EncodedResults] = []
        sent = time.monotonic()
        with self._in_time():
            try:
                for found in runner.found(block, lambda *one: one in task.done):
                    chunk.append(EncodedResults.of(found))
                    if time.monotonic() - sent >= _PAUSE:
                        yield SentResults(tuple(chunk), runner.asked)
                        chunk, sent = [], time.monotonic()
            except DstFuzzError as error:
                yield SentResults(tuple(chunk), runner.asked)
                yield Refusal.of(error)
            except Exception:
                yield SentResults(tuple(chunk), runner.asked)
                raise
            else:
                yield SentResults(tuple(chunk), runner.asked, last=task.number, ended=runner.ended)

    @property
    def _made(self) -> Campaign:
        assert self._campaign is not None  # noqa: S101 - `prepare` is asked first
        return self._campaign

    def _begun(self) -> BlockRunner:
        """Return what asks the tracker, after the preflight of the first time."""
        if self._runner is None:
            # That it answers is known from the preflight; which blocks come first to this actor
            # must not decide whether it is asked on.
            self._made.predictor.never_give_up()
            self._runner = BlockRunner(self._made)
        return self._runner

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """End with the budget of the run, where this actor began in the middle of it."""
        seconds = self._settings.budget.max_seconds
        if seconds is None or not self._spent:
            yield
            return
        left = seconds - self._spent - (time.monotonic() - self._ordered)
        with self._made.predictor.budget.deadline.within(
            left, f"the budget of {seconds:g} seconds"
        ):
            yield
