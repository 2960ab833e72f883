"""Somebody else's relation, checked whenever it answers: one clear message says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast, get_args

from pytest_dstfuzz.dialogue.dialogues import DialogueSet, SlotChange
from pytest_dstfuzz.dialogue.outcome import Outcome, OutcomeKind
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.registry import blamed
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import (
    Begun,
    BySearch,
    Inapplicable,
    Rewrite,
    Shown,
    Side,
    TurnRelation,
    Verdict,
    VerdictKind,
)
from pytest_dstfuzz.relations.scene import Scene

__all__ = ["CheckedRelation"]

_KINDS: Final = get_args(VerdictKind)
#: What a relation says about itself in so many words, and what may be said.
_CHOICES: Final = {
    "edits": ("search", "own"),
    "side": ("should-not-change", "should-change"),
    "unit": ("turn", "dialogue"),
}


class CheckedRelation(Relation):
    """Somebody else's relation; its shape is checked before, what it answers here."""

    name = inapplicable = expects = source = ""
    edits = "search"
    side: Side = "should-not-change"
    unit = "turn"
    adaptive = needs_labels = False
    reasons: tuple[str, ...] = ()
    on: tuple[OutcomeKind, ...] = get_args(OutcomeKind)

    def __init__(self, relation: Any, where: str) -> None:
        self.wrapped = relation
        self.name = str(relation.name)
        if re.search(r"[\s,'\"]", self.name):
            raise UserError(
                f"{where}: the name {self.name!r} has a blank, a comma or a quote: a list of "
                "relations, and the groups of a baseline, need one without"
            )
        for said in ("inapplicable", "expects", "source"):
            setattr(self, said, str(getattr(relation, said, getattr(super(), said))))
        for said in ("adaptive", "needs_labels"):
            setattr(self, said, bool(getattr(relation, said, getattr(super(), said))))
        for said, choices in _CHOICES.items():
            found = getattr(relation, said, getattr(super(), said))
            if found not in choices:
                raise UserError(
                    f"{where}: {said} of {type(relation).__name__} is {found!r}: it must be "
                    f"{' or '.join(map(repr, choices))}"
                )
            setattr(self, said, found)
        self.on = tuple(getattr(relation, "on", super().on))
        if not self.on or not set(self.on) <= {*get_args(OutcomeKind)}:
            raise UserError(
                f"{where}: on of {type(relation).__name__} is {self.on!r}: it must be a tuple of "
                f"one or more of {', '.join(map(repr, get_args(OutcomeKind)))}"
            )
        if getattr(relation, "side", "") == "should-change" and self.expects == super().expects:
            # What the base class says is for the other side.
            self.expects = "{changes} as each rewrite says"
        self.reasons = tuple(map(str, getattr(relation, "reasons", (self.inapplicable,))))

    def impossible(self, data: DialogueSet) -> str:
        """Return why no turn of the data can satisfy it; nothing where it does not say."""
        ask = getattr(self.wrapped, "impossible", super().impossible)
        with blamed(f"impossible() of the relation {self.name!r}"):
            return str(ask(data))

    def begin(self, scene: Scene) -> Begun:
        """Return what it makes of a turn, if that is sound."""
        if not overrides(self.wrapped, "begin"):
            return super().begin(scene)
        with blamed(f"begin() of the relation {self.name!r}"):
            begun: object = self.wrapped.begin(scene)
        if isinstance(begun, Inapplicable):
            if begun.reason not in self.reasons:
                raise self._wrong("begin", begun, f"its reasons are {', '.join(self.reasons)}")
            return begun
        if isinstance(begun, BySearch):
            return BySearch(partial(self._verdict, begun.judge))
        if callable(getattr(begun, "propose", None)):
            return _CheckedTurnRelation(self, cast("TurnRelation", begun), scene)
        if isinstance(begun, Iterable) and not isinstance(begun, str):
            return self._rewrites(begun, scene)
        raise self._wrong("begin", begun, "it must return rewrites, BySearch or Inapplicable")

    def _rewrites(self, begun: Iterable[object], scene: Scene) -> Iterator[Rewrite]:
        found = iter(begun)
        while True:
            with blamed(f"begin() of the relation {self.name!r}"):
                try:
                    rewrite = next(found)
                except StopIteration:
                    return
            yield self.checked(rewrite, scene, "begin")

    def checked(self, rewrite: object, scene: Scene, method: str) -> Rewrite:
        """Return a rewrite of a scene, if it is a sound one."""
        if not isinstance(rewrite, Rewrite):
            raise self._wrong(method, rewrite, "each of them must be a Rewrite")
        if wrong := unsound(rewrite, scene) or self._expects_nothing(rewrite):
            raise self._wrong(method, rewrite.about or "a rewrite", wrong)
        return rewrite

    def _expects_nothing(self, rewrite: Rewrite) -> str:
        """Say that a rewrite which an unmoved tracker satisfies cannot be on the other side."""
        if self.side != "should-change" or not rewrite.expected.stays:
            return ""
        return (
            "it says of no slot what is to become of it, and the relation has side = "
            "'should-change'. Give scene.rewrite() a Delta for each slot that has to change, or "
            "write side = 'should-not-change' if the state has to stay"
        )

    def _wrong(self, method: str, found: object, wrong: str) -> UserError:
        shown = found if isinstance(found, str) else repr(found)[:200]
        return UserError(f"{method}() of the relation {self.name!r} returned {shown}: {wrong}")

    def applies(self, clean: Outcome, label: Outcome | None) -> bool:
        """Whether it applies; to every turn where it does not say."""
        ask = getattr(self.wrapped, "applies", super().applies)
        with blamed(f"applies() of the relation {self.name!r}"):
            return bool(ask(clean, label))

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
        """Return its verdict, if that is a sound one."""
        return self._verdict(self.wrapped.judge, clean, perturbed, label)

    def _verdict(
        self,
        judge: Callable[[Outcome, Outcome, Outcome | None], object],
        clean: Outcome,
        perturbed: Outcome,
        label: Outcome | None,
    ) -> Verdict:
        with blamed(f"judge() of the relation {self.name!r}"):
            verdict: object = judge(clean, perturbed, label)
        if isinstance(verdict, Verdict) and verdict.kind in _KINDS:
            slots = all(isinstance(change, SlotChange) for change in verdict.changes)
            if slots and (verdict.changes or verdict.kind != "violation"):
                return self._of_side(verdict, stayed=clean == perturbed)
        raise UserError(
            f"judge() of the relation {self.name!r} returned {verdict!r}: it must return "
            f"Verdict(kind, changes) with one of the kinds {', '.join(_KINDS)}, and "
            "with the slots that changed (diff_states says them) where it is a violation"
        )

    def _of_side(self, verdict: Verdict, *, stayed: bool) -> Verdict:
        """Return a verdict that fits the side of the relation, of an answer that stayed or not."""
        if self.side != "should-change" or not stayed:
            return verdict
        if verdict.kind != "violation":
            raise UserError(
                f"judge() of the relation {self.name!r} returned {verdict!r} for an answer that "
                "stayed as it was, and the relation has side = 'should-change'. Return a violation "
                "with the slots that had to change, let applies() or begin() leave the turn out, "
                "or write side = 'should-not-change'"
            )
        return replace(verdict, failure="stuck") if verdict.failure is None else verdict


class _CheckedTurnRelation(TurnRelation):
    """The rewrites of one turn, by somebody else's relation."""

    def __init__(self, relation: CheckedRelation, begun: TurnRelation, scene: Scene) -> None:
        self._relation, self._begun, self._scene = relation, begun, scene

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite | None:
        """Return what it proposes, if that is a sound rewrite."""
        with blamed(f"propose() of the relation {self._relation.name!r}"):
            found = self._begun.propose(number, draw, seen)
        return None if found is None else self._relation.checked(found, self._scene, "propose")


def overrides(relation: object, method: str) -> bool:
    """Say whether somebody wrote a method of a relation, and did not only inherit it."""
    inherited = getattr(type(relation), method, None) is getattr(Relation, method)
    return not inherited and callable(getattr(relation, method, None))


def unsound(rewrite: Rewrite, scene: Scene) -> str:
    """Say what is wrong with a rewrite of a scene; ``""`` = nothing."""
    if not rewrite.seen.exchanges or not rewrite.reference.exchanges:
        return "nothing is left of the dialogue"
    if rewrite.between:
        return _unsound_between(rewrite)
    last = len(rewrite.reference.exchanges) - 1
    if last > scene.index or rewrite.reference != scene.dialogue.context(last):
        return "its reference is no clean context of the dialogue up to the turn"
    if rewrite.separable and (not rewrite.expected.stays or rewrite.reference != scene.context):
        return "it is separable, which only one that expects the state of the turn to stay may be"
    return _wrong_edits(rewrite, scene) or _wrong_deltas(rewrite, scene, scene.state(last))


def _unsound_between(rewrite: Rewrite) -> str:
    """Say what is wrong with a rewrite whose reference is another one's."""
    if rewrite.seen == rewrite.reference:
        return "it asks the same as its reference"
    if rewrite.separable:
        return "it is separable, which only one with a clean reference may be"
    if rewrite.expected.deltas:
        return "it has deltas, and what the answer to its reference will be is not known"
    return ""


def _wrong_edits(rewrite: Rewrite, scene: Scene) -> str:
    if not rewrite.edits:
        # What was recorded beside the texts, such as the tools, may be another one.
        unsaid = not rewrite.moves and rewrite.seen.exchanges != rewrite.reference.exchanges
        return "it has neither edits nor moves, and is not as its reference" if unsaid else ""
    try:
        text = apply_edits(scene.turn.user, rewrite.edits)
    except ValueError as error:
        return f"its edits do not fit the utterance of the turn: {error}"
    if text != rewrite.seen.user:
        return "its edits do not lead from the utterance to the one that is seen"
    alike = rewrite.moves or rewrite.seen == scene.dialogue.context(
        scene.index, {scene.index: text}
    )
    return "" if alike else "it has no moves, and other words than those of the turn are changed"


def _wrong_deltas(rewrite: Rewrite, scene: Scene, state: Outcome) -> str:
    ontology = scene.data.ontology
    known = ontology.values if ontology is not None and ontology.complete else None
    for delta in rewrite.expected.deltas:
        slot, before = delta.slot, state.get(delta.slot)
        if delta.before != before:
            said = delta.before or "none"
            return f"it says that {slot} is {said} before, and it is {before or 'none'}"
        if known is not None and slot not in known and slot not in state:
            return f"there is no slot {slot!r} in the data"
    return ""
