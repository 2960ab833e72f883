"""What a relation gets to see of a turn: the dialogue, and what the tracker said to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import (
    Context,
    Dialogue,
    DialogueSet,
    Turn,
    diff_states,
)
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.perturb.words import Parts, take_apart
from pytest_dstfuzz.relations.rewrite import Delta, Expected, Rewrite
from pytest_dstfuzz.seeding import stream

if TYPE_CHECKING:
    import numpy as np

    from pytest_dstfuzz.perturb.draft import Mask
    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
    from pytest_dstfuzz.perturb.locks import Locks

__all__ = ["Scene", "Scenes"]

_Found = TypeVar("_Found")


class Replacement(NamedTuple):
    """``after`` in the place of ``text[start:end]`` of the clean utterance."""

    start: int
    end: int
    after: str
    #: The relation's kind of edit, for reports.
    operator: str


def _equal(one: Outcome, other: Outcome, asked: Context) -> bool:
    del asked
    return one == other


@dataclass(frozen=True, eq=False)
class Scene:
    """One turn of a dialogue, with the states before and after it.

    The states are the tracker's answers to the clean contexts. Where they are the labels instead, a
    relation says what it would do for a tracker without a fault.
    """

    #: Name of the relation that is asked.
    relation: str
    dialogue: Dialogue
    #: The turn; the last one where the relation edits whole dialogues.
    index: int
    #: After each turn, up to ``index`` at least; ``None`` = the tracker failed there, or there is
    #: no label. A relation that edits by itself is asked only where all are known.
    states: tuple[Outcome | None, ...]
    data: DialogueSet
    #: Says which words carry the slots.
    guards: Locks
    lexicon: Lexicon
    #: Of the campaign.
    seed: int
    #: What of the answers is tested, and what there is to say about replies.
    reply: ReplySettings = field(default_factory=ReplySettings)
    #: How many variants of a turn were asked for.
    variants: int = 5
    #: See `once`; shared by the scenes of a run.
    kept: dict[object, object] = field(default_factory=dict)
    #: Whether two answers to a context say the same.
    agree: Callable[[Outcome, Outcome, Context], bool] = _equal

    @property
    def kind(self) -> AnswerKind:
        """What of the answers is tested."""
        return KINDS[self.reply.outcome]

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random numbers that are the relation's own at this turn, the same in every process."""
        return stream(self.seed, "relation", self.relation, self.dialogue.id, self.index)

    @property
    def turn(self) -> Turn:
        """The turn, with its label if it has one."""
        return self.dialogue.turns[self.index]

    @cached_property
    def context(self) -> Context:
        """The clean context of the turn."""
        return self.dialogue.context(self.index)

    def state(self, index: int) -> Outcome:
        """Return the state after a turn; empty before the first one (index -1)."""
        found = self.states[index] if index >= 0 else Outcome()
        if found is None:
            raise ValueError(f"there is no state of turn {index} of {self.dialogue.id!r}")
        return found

    @property
    def label(self) -> Outcome | None:
        """The right answer; the one that was given, where that says the same."""
        if not self.kind.has_tools:
            return self.turn.state
        label = self.turn.calls
        right = label is not None and self.agree(label, self.now, self.context)
        return self.now if right else label

    @property
    def before(self) -> Outcome:
        """The state before the turn.

        Of tool calls none, as each message makes its own; in rollouts those that were made before.
        """
        if self.kind.has_tools:
            rolled = self.reply.history == "own" and self.index > 0
            return (rolled and self.states[self.index - 1]) or Outcome()
        return self.state(self.index - 1)

    @property
    def now(self) -> Outcome:
        """The state after the turn."""
        return self.state(self.index)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The slots whose values the turn gave or changed, sorted."""
        changes = diff_states(self.before, self.now)
        return tuple(change.slot for change in changes if change.after is not None)

    @cached_property
    def parts(self) -> Parts:
        """The words of the utterance, and what is between them."""
        return take_apart(self.turn.user)

    @cached_property
    def guarded(self) -> Mask:
        """What guards the words of the utterance, word by word as in `parts`."""
        return self.guarded_in(self.turn.user, self.parts)

    def guarded_in(self, text: str, parts: Parts) -> Mask:
        """Return what would guard the words of another utterance, word by word as in ``parts``."""
        values = self.kind.locked_values(self.data, self.turn, self.states[self.index])
        return self.guards.mask(text, parts, values, self.turn.system)

    def once(self, build: Callable[[DialogueSet], _Found]) -> _Found:
        """Return what ``build`` makes of the data, which is done once a run."""
        if build not in self.kept:
            self.kept[build] = build(self.data)
        return cast("_Found", self.kept[build])

    def edits(self, replacements: Iterable[Replacement]) -> tuple[Edit, ...]:
        """Return replacements in the clean utterance as edits, the last place first.

        Raises:
            ValueError: two of them overlap, or one is outside of the utterance.
        """
        edits: list[Edit] = []
        limit = len(self.turn.user)
        for one in sorted(replacements, reverse=True):
            if not 0 <= one.start <= one.end <= limit:
                raise ValueError(f"{one} overlaps with another one, or is outside of the utterance")
            limit = one.start
            before = self.turn.user[one.start : one.end]
            edits.append(Edit(self.relation, one.operator, one.start, one.end, before, one.after))
        return tuple(edits)

    @property
    def names_domains(self) -> bool:
        """Whether people say the domain of a slot, as they do not say the name of a tool."""
        return True

    def worded(self, slot: str, value: str) -> str:  # noqa: ARG002 - of tool calls it depends on it
        """Return a value as it is written in an utterance."""
        return value

    def whole(self, after: str, operator: str) -> Replacement:
        """Return other words in the place of the whole utterance."""
        return Replacement(0, len(self.turn.user), after, operator)

    def said(self, user: str) -> Context:
        """Return the clean context with another newest utterance of the user."""
        return self.context.saying(user)

    def rewrite(
        self,
        replacements: Iterable[Replacement],
        deltas: Iterable[Delta] = (),
        *,
        about: str = "",
        separable: bool = False,
    ) -> Rewrite:
        """Return a rewrite of the utterance of the turn in its clean context.

        Args:
            replacements: what is put into it, in any order.
            deltas: what is to become of the slots, in any order; none = the state is to stay.
            about: says it for people; that of the deltas where nothing is given.
            separable: see `Rewrite`.

        Raises:
            ValueError: as `edits`, and as `Expected`.
        """
        edits = self.edits(replacements)
        user = self.turn.user
        for edit in edits:
            user = user[: edit.start] + edit.after + user[edit.end :]
        expected = Expected(tuple(sorted(deltas, key=lambda delta: delta.slot)))
        return Rewrite(
            seen=self.said(user),
            reference=self.context,
            expected=expected,
            edits=edits,
            about=about or ", ".join(map(str, expected.deltas)),
            separable=separable,
        )


class Scenes:
    """Makes the scenes of a run: what they share is built once."""

    def __init__(
        self,
        data: DialogueSet,
        lexicon: Lexicon,
        guards: Locks,
        seed: int,
        reply: ReplySettings | None = None,
        variants: int = 5,
        agree: Callable[[Outcome, Outcome, Context], bool] = _equal,
    ) -> None:
        """Keep what all scenes share: ``seed`` and the settings are those of the campaign."""
        self._reply = reply or ReplySettings()
        self._agree = agree
        self._shared = data, guards, lexicon, seed, self._reply, variants
        self._kept: dict[object, object] = {}

    def of(
        self,
        relation: str,
        dialogue: Dialogue,
        index: int,
        states: Iterable[Outcome | None],
    ) -> Scene:
        """Return the scene of a turn for the relation of a name; for ``states`` see `Scene`."""
        kept, agree = self._kept, self._agree
        return Scene(relation, dialogue, index, tuple(states), *self._shared, kept, agree)

    @property
    def kind(self) -> AnswerKind:
        """What of the answers is tested."""
        return KINDS[self._reply.outcome]

    def labelled(self, relation: str, dialogue: Dialogue, index: int) -> Scene:
        """Return the scene of a turn where the labels stand for the tracker's answers."""
        states = (self.kind.label(dialogue, place) for place in range(index + 1))
        return self.of(relation, dialogue, index, states)
