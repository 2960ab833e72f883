"""A campaign in blocks of dialogues: what was asked and found of one goes before the next comes.

Batches never hold dialogues of two blocks, and a block has the same dialogues whoever runs it: so
no answer depends on how many run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.campaign.engine import CampaignEngine, Planned
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.sampling import in_shard
from pytest_dstfuzz.scale.results.folder import DialogueResults

#: Turns of a block at least: enough to fill batches, few enough to be asked again.
BLOCK_TURNS: Final = 256


@dataclass(frozen=True, slots=True)
class PlannedDialogue:
    """A dialogue of a block."""

    place: int  #: In the plan of all dialogues.
    planned: Planned


Block = tuple[PlannedDialogue, ...]


def blocks_of(
    plan: Iterable[Planned], turns: int = BLOCK_TURNS, shard: tuple[int, int] | None = None
) -> Iterator[Block]:
    """Yield the blocks of a plan: dialogues that follow each other, with enough turns.

    Those of a part of the dialogues (``shard``) have the places that they have among all.
    """
    found: list[PlannedDialogue] = []
    size = 0
    for place, planned in enumerate(plan):
        if not in_shard(planned[0].id, shard):
            continue
        found.append(PlannedDialogue(place, planned))
        size += planned[1] + 1
        if size >= turns:
            yield tuple(found)
            found, size = [], 0
    if found:
        yield tuple(found)


class BlockRunner:
    """Runs blocks one after the other, under all relations of a campaign."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign

    @property
    def ended(self) -> str:
        """Why nothing more may be asked; ``""`` = it may."""
        return self._campaign.predictor.stopped()

    @property
    def asked(self) -> int:
        """Contexts that were asked for so far."""
        return self._campaign.predictor.calls

    def run(
        self, block: Block, has: Callable[[int, str], bool], keep: Callable[[DialogueResults], None]
    ) -> None:
        """Run what is missing of a block; what is done is kept as it comes.

        Args:
            block: dialogues with their places.
            has: whether a dialogue is done, by its place and the name of a relation.
            keep: takes what was found at a dialogue. One that the end of the budget left
                unfinished is not kept. Where something is raised, all that is done was kept before.
        """
        source = self.found(block, has)
        try:
            for found in source:
                keep(found)
        except BaseException as error:
            # Where it came from `keep`, the source still has what is done, and raises it then.
            with suppress(type(error)):
                found = source.throw(error)
                while True:
                    keep(found)
                    found = next(source)
            raise

    def found(
        self, block: Block, has: Callable[[int, str], bool]
    ) -> Generator[DialogueResults, None, None]:
        """Yield what `run` keeps, as it comes; what is raised is raised after all that is done."""
        try:
            for relation in self._campaign.relations:
                missing = [one for one in block if not has(one.place, relation.name)]
                engine = self._campaign.engine(relation, [one.planned for one in missing])
                yield from _found(engine, missing, relation.name)
        finally:
            self._campaign.predictor.forget()


def _found(
    engine: CampaignEngine, missing: Sequence[PlannedDialogue], relation: str
) -> Iterator[DialogueResults]:
    left = {one.planned[0].id: one.place for one in missing}

    def done(results: Iterable[TurnResult]) -> Iterator[DialogueResults]:
        together: dict[str, list[TurnResult]] = {}
        for result in results:
            if result.dialogue_id in left:
                together.setdefault(result.dialogue_id, []).append(result)
        for name, found in together.items():
            place = left.pop(name)
            if all(result.outcome != "skipped" for result in found):
                yield DialogueResults(place, relation, tuple(found))

    try:
        for one in missing:
            yield from done(engine.results_of(one.planned[0].id))
    except GeneratorExit:
        # Nobody takes anything more.
        raise
    except BaseException:
        # Not what could be ended without its smallest versions: it is asked for again.
        yield from done(engine.known())
        raise
