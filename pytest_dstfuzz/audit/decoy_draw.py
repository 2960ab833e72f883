"""Which variants of a report become the decoys of a sample."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pytest_dstfuzz.audit.decoys import KINDS, Decoy, DecoyMaker
from pytest_dstfuzz.audit.fine_decoys import FINE_KINDS, FineDecoyMaker
from pytest_dstfuzz.audit.mentions import KnownTurns
from pytest_dstfuzz.audit.stated_decoys import STATED_KINDS, StatedDecoyMaker
from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantResult
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.seeding import stream

#: Kinds of all decoys, in the order in which figures name them.
ALL_KINDS = (*KINDS, *FINE_KINDS, *STATED_KINDS)
Pair = tuple[TurnResult, VariantResult]


def draw_decoys(
    turns: Sequence[TurnResult], drawn: Sequence[Pair], coarse: int, fine: int, seed: int
) -> list[Decoy]:
    """Make decoys out of the turns of a report, no two of one turn.

    They come from dialogues that gave none of the violations ``drawn`` while these last, and
    have about as many edits as a violation, with the change of meaning of a fine one counted.
    """
    known = KnownTurns(turns)
    bases = [
        (turn, variant)
        for turn in turns
        for variant in turn.variants
        if variant.outcome in RUN_OUTCOMES and (variant.edits or variant.expected)
    ]
    made: list[Decoy] = []
    coarse_kinds: Sequence[str] = KINDS
    make_coarse = DecoyMaker(known).make
    if any(variant.expected for _, variant in drawn):
        if fine:
            raise UserError(
                "fine decoys are slips that change a meaning: of a relation that expects a change "
                "only what it states can be wrong, so ask for --decoys"
            )
        coarse_kinds, make_coarse = STATED_KINDS, StatedDecoyMaker(known, turns).make
        bases = [(turn, variant) for turn, variant in bases if variant.expected]
    for name, count, kinds, make, own in (
        ("decoys", coarse, coarse_kinds, make_coarse, 0),
        ("fine decoys", fine, FINE_KINDS, FineDecoyMaker(known).make, 1),
    ):
        random = stream(seed, "precision", name)
        order = [bases[int(index)] for index in random.permutation(len(bases))]
        # As many edits as a violation that is drawn anew for each decoy.
        edits = (
            len(drawn[int(random.integers(len(drawn)))][1].edits) - own for _ in itertools.count()
        )
        taken = {decoy.turn.id for decoy in made}
        some = _Maker(make, order, taken, edits).make(kinds, count, drawn)
        if len(some) < count:
            raise UserError(
                f"the report gives occasion for {len(some)} {name} only, not {count}: "
                "test more turns, or ask for fewer"
            )
        made += some
    return made


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes decoys of some kinds."""

    one: Callable[[TurnResult, VariantResult, str], Decoy | None]
    bases: Sequence[Pair]
    #: Turns that are a decoy already.
    taken: set[str]
    #: How many edits the next ones should have before the change of meaning.
    edits: Iterator[int]

    def make(self, kinds: Sequence[str], count: int, drawn: Sequence[Pair]) -> list[Decoy]:
        """Return ``count`` decoys, or as many as there are."""
        used = {turn.dialogue_id for turn, _ in drawn}
        fresh = [base for base in self.bases if base[0].dialogue_id not in used]
        # Where every dialogue has a violation, other turns of these dialogues serve as well.
        spare = [base for base in self.bases if base[0].dialogue_id in used]
        made: list[Decoy] = []
        exhausted: set[str] = set()
        # Kinds take turns; the others fill the places of one that has no occasion left.
        for kind in itertools.cycle(kinds):
            if len(made) == count or len(exhausted) == len(kinds):
                break
            if kind in exhausted:
                continue
            edits = next(self.edits)
            decoy = self._first(fresh, kind, edits) or self._first(spare, kind, edits)
            if decoy is None:
                exhausted.add(kind)
            else:
                made.append(decoy)
                self.taken.add(decoy.turn.id)
        return made

    def _first(self, bases: Sequence[Pair], kind: str, edits: int) -> Decoy | None:
        """Return a decoy of a turn not taken yet, with the number of edits nearest to ``edits``."""
        for turn, variant in sorted(bases, key=lambda base: abs(len(base[1].edits) - edits)):
            if turn.id not in self.taken:
                decoy = self.one(turn, variant, kind)
                if decoy is not None:
                    return decoy
        return None
