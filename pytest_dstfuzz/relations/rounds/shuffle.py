"""Shuffle: rounds that have nothing to do with each other, in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable, Rewrite
from pytest_dstfuzz.relations.rounds.moves import context_after, ordered
from pytest_dstfuzz.relations.rounds.rounds import SpokenRound, rounds_of
from pytest_dstfuzz.relations.scene import Scene

_FEW: Final = "no two rounds beside each other change the state, the first round aside"
_SLOTS: Final = "rounds beside each other change the same slots"
_UNSAID: Final = "a round does not say all that it changes"
_VALUES: Final = "a round says what another one gives"
_TAKEN_BACK: Final = "a round says another value of a slot that another one gives"
_POINTS: Final = "a round points to what was said before"
_DOMAINS: Final = "a round would not say any more what its values are for"
#: Orders of more than two rounds that are drawn, besides those in which one round is moved.
_DRAWN: Final = 4


@register_relation
class Shuffle(Relation):
    """The state at the end stays when rounds that are independent change places.

    Source: method, section 14.
    """

    name = "shuffle"
    expects = "the state at the end stays as it is"
    on = ("state",)
    edits = "own"
    unit = "dialogue"
    reasons = (_FEW, _SLOTS, _UNSAID, _VALUES, _TAKEN_BACK, _POINTS, _DOMAINS)

    def begin(self, scene: Scene) -> Begun:
        """Return the dialogue with one round moved forward, and in a few orders drawn at random."""
        rounds = rounds_of(scene)
        bonds = _Bonds(scene, rounds)
        orders = dict.fromkeys(order for order in bonds.orders(scene) if bonds.continues(order))
        if not orders:
            found = [bonds.between(one, other) or _DOMAINS for one, other in pairwise(rounds)]
            return Inapplicable(max(found, key=self.reasons.index, default=_FEW))
        return (_rewrite(scene, order) for order in orders)


class _Bonds:
    """What holds the rounds of a dialogue in their order."""

    def __init__(self, scene: Scene, rounds: Sequence[SpokenRound]) -> None:
        self._scene = scene
        self._rounds = rounds
        self._points = [one.points(scene.lexicon) for one in rounds]

    def between(self, one: SpokenRound, other: SpokenRound) -> str:
        """Return why the later of two rounds may not come first; ``""`` = they are independent."""
        if not (one.delta and other.delta) or not one.system:
            return _FEW
        if not one.slots.isdisjoint(other.slots):
            return _SLOTS
        if not (one.complete and other.complete):
            return _UNSAID
        if any(map(one.hints_at, other.changes)) or any(map(other.hints_at, one.changes)):
            return _VALUES
        if one.takes_back(self._scene, other) or other.takes_back(self._scene, one):
            return _TAKEN_BACK
        return _POINTS if self._points[one.index] or self._points[other.index] else ""

    def orders(self, scene: Scene) -> Iterator[tuple[int, ...]]:
        """Yield orders in which no bond is broken, not the one that is there."""
        rounds = self._rounds
        count = len(rounds)
        clean = tuple(range(count))
        for turn in clean:
            for to in range(turn - 1, -1, -1):
                if self.between(rounds[to], rounds[turn]):
                    break
                yield (*clean[:to], turn, *clean[to:turn], *clean[turn + 1 :])
        for _ in range(_DRAWN):
            order = list(clean)
            for place in scene.rng.permutation(max(count - 1, 0)).tolist():
                one, other = order[place], order[place + 1]
                if one < other and not self.between(rounds[one], rounds[other]):
                    order[place : place + 2] = [other, one]
            if tuple(order) != clean:
                yield tuple(order)

    def continues(self, order: Sequence[int]) -> bool:
        """Say whether each round still says what its values are for.

        It does where it names the domain, where the round before it that changed something was of
        that domain, and where that round is the one that was there already.
        """
        before = {one.index: _last_changed(self._rounds[: one.index]) for one in self._rounds}
        for place, index in enumerate(order):
            one = self._rounds[index]
            last = _last_changed([self._rounds[earlier] for earlier in order[:place]])
            if not one.delta or last == before[index]:
                continue
            known = last.domains if last else frozenset[str]()
            if not all(one.names(domain) for domain in one.domains - known):
                return False
        return True


def _last_changed(rounds: Sequence[SpokenRound]) -> SpokenRound | None:
    return next((one for one in reversed(rounds) if one.delta), None)


def _rewrite(scene: Scene, order: Sequence[int]) -> Rewrite:
    moves = ordered(order)
    told = ", ".join(f"round {move.turn + 1} before round {(move.to or 0) + 1}" for move in moves)
    seen = context_after(scene.dialogue, len(order), moves)
    return Rewrite(seen, scene.context, moves=moves, about=told)
