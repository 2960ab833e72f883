"""The actor of a campaign. It builds the campaign once and runs blocks of dialogues."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.scale.manifest import RunManifest
from pytest_dstfuzz.scale.results import EncodedResults
from pytest_dstfuzz.scale.runs import (
    BlockRunner,
    PlannedDialogue,
    blocks_of,
    manifest_of,
    sample_answers,
)

#: Seconds between two messages with results of a block.
_PAUSE: Final = 0.5
#: Prefix of the environment variables that every node gets.
_VARIABLES: Final = "DSTFUZZ_"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment of the driver's process. Actors need it to find files and modules."""

    folder: str
    #: The search path of modules.
    search_path: tuple[str, ...]
    #: Environment variables, which may hold credentials.
    variables: Mapping[str, str] = field(repr=False)

    @classmethod
    def here(cls) -> Surroundings:
        """Return the environment of this process."""
        variables = {k: v for k, v in os.environ.items() if k.startswith(_VARIABLES)}
        return cls(str(Path.cwd()), tuple(filter(None, sys.path)), variables)

    def enter(self) -> None:
        """Apply the environment to this process.

        Raises:
            UserError: the folder does not exist.
        """
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise UserError(
                f"the folder {self.folder} is not on the node {platform.node()}: start in a "
                f"folder that all nodes share ({error.strerror})"
            ) from None
        sys.path += [path for path in self.search_path if path not in sys.path]
        os.environ.update(self.variables)


@dataclass(frozen=True, slots=True)
class Task:
    """A block to run, or its missing part."""

    number: int
    places: Sequence[int]
    #: Finished (place, relation) pairs.
    done: frozenset[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class SentResults:
    """An actor's message with results and its progress."""

    results: tuple[EncodedResults, ...]
    #: The number of contexts that the actor has asked so far.
    asked: int
    #: The number of the block if this is its last message.
    last: int | None = None
    #: Why the actor asks no more; ``""`` if it may.
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An actor's message that a user error occurred."""

    message: str

    @classmethod
    def of(cls, error: DstFuzzError) -> Refusal:
        """Return the message. The driver raises the error again."""
        return cls(str(error.args[0]) if error.args else str(error))


@dataclass(frozen=True, slots=True)
class Plan:
    """The division of the dialogues: their positions in each block, and each block's first id."""

    blocks: Sequence[Sequence[int]]
    names: Sequence[str]


class BlockWorker:
    """Runs blocks of one campaign. It loads the tracker and the data once.

    Args:
        settings: the settings of the campaign, with this actor's share of the budget.
        surroundings: the environment of the driver's process.
        spent: seconds of the budget that were used before the actor was started.
    """

    def __init__(self, settings: Settings, surroundings: Surroundings, spent: float = 0.0) -> None:
        self._settings, self._surroundings = settings, surroundings
        self._spent, self._ordered = spent, time.monotonic()
        self._campaign: Campaign | None = None
        self._runner: BlockRunner | None = None

    def prepare(self) -> RunManifest | Refusal:
        """Load the tracker and the data, and return the manifest of the campaign."""
        try:
            self._surroundings.enter()
            settings = self._settings
            self._campaign = Campaign(settings.tracker.model or "", settings=settings)
            # The preflight has shown that the tracker answers. The order of blocks must not
            # decide whether the actor gives up.
            self._campaign.predictor.never_give_up()
            return replace(manifest_of(self._campaign), answers=sample_answers(self._campaign))
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
        """Run the missing part of a block. Yield its results from time to time."""
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
        assert self._campaign is not None  # noqa: S101 - `prepare` is called first
        return self._campaign

    def _begun(self) -> BlockRunner:
        """Return the object that runs blocks.

        The first call checks the tracker and creates the object.
        """
        if self._runner is None:
            self._runner = BlockRunner(self._made)
        return self._runner

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Enforce the time limit of the run if this actor starts during the run."""
        seconds = self._settings.budget.max_seconds
        if seconds is None or not self._spent:
            yield
            return
        left = seconds - self._spent - (time.monotonic() - self._ordered)
        with self._made.predictor.budget.deadline.within(
            left, f"the budget of {seconds:g} seconds"
        ):
            yield
