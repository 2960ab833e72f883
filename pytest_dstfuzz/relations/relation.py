"""The protocol of a relation, the scene that it sees, and the rewrites that it makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeVar, cast, get_args

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import REPLY, AnswerPath, Outcome, OutcomeKind, shown_value
from pytest_dstfuzz.dialogue.dialogues import (
    Admissible,
    Context,
    Dialogue,
    DialogueSet,
    Difference,
    Turn,
    diff_states,
)
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.validity import LONGEST_EDITED
from pytest_dstfuzz.perturb.words import Edit, Parts, take_apart
from pytest_dstfuzz.relations.values import ValueTable
from pytest_dstfuzz.seeding import stream

if TYPE_CHECKING:
    import numpy as np

    from pytest_dstfuzz.perturb.draft import Mask
    from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
    from pytest_dstfuzz.perturb.locks import Locks

__all__ = ["MOST", "Begun", "BySearch", "Inapplicable", "Relation", "Rewrite", "Scene", "Scenes"]


#: Whether the state is to stay (over-sensitive trackers fail) or to follow (over-stable ones do).
Side = Literal["should-not-change", "should-change"]
#: What is edited. A relation of dialogues has one result for each of them, at its last turn.
Unit = Literal["turn", "dialogue"]
#: How a rewrite fails. ``changed``: a state that was to stay did not. Where something was to
#: change: ``stuck`` = nothing did, ``partial`` = some of it did and all else is as it was,
#: ``other`` = something else happened.
Failure = Literal["changed", "stuck", "partial", "other"]
#: ``improved`` = the clean prediction was wrong by the label and the perturbed one is right;
#: ``inapplicable`` = the relation says nothing about this turn.
VerdictKind = Literal["held", "violation", "improved", "inapplicable"]

#: Why a turn is not edited whose words the locks do not know.
OTHER_LANGUAGE: Final = "the utterance is not in English, or not all of it"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a relation says about a pair of predictions.

    Provisional: a relation between richer answers than belief states may say more.
    """

    kind: VerdictKind
    #: Slots that are not as expected, sorted; also of an improvement. A violation has at least one.
    #: Of a slot that was to change and did not, ``before`` equals ``after``.
    changes: tuple[Difference, ...] = ()
    #: Of a violation: how it failed; ``None`` = ``changed``.
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What is to become of one slot.

    Raises:
        ValueError: the value that it has is admissible: nothing would have to happen.
    """

    slot: str
    before: str | None
    after: Admissible

    def __post_init__(self) -> None:
        if self.before in self.after:
            raise ValueError(
                f"nothing would have to happen to {self.slot}: {shown_value(self.before)} is among "
                f"what it is to become ({self.after})"
            )

    def __str__(self) -> str:
        return f"{self.slot}: {shown_value(self.before)} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the answer to a rewrite is to be, seen from that to its reference.

    Slots without a delta stay as they are; without any delta, the state is to stay.

    Raises:
        ValueError: the deltas, or what ``differs``, are not sorted by slot, or one slot is named
            twice.
    """

    deltas: tuple[Delta, ...] = ()
    #: Paths that are to be something else than in the answer to the reference, whatever that is.
    differs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(one.slot >= other.slot for one, other in pairwise(self.deltas)):
            raise ValueError("the deltas must be sorted by slot, and of each slot there is one")
        if any(one >= other for one, other in pairwise(self.differs)):
            raise ValueError("what differs must be sorted, and each path of it named once")
        if twice := next((path for path in self.differs if self.of(path)), None):
            raise ValueError(f"{twice} has a delta, and is among what differs")

    @property
    def stays(self) -> bool:
        """Whether nothing is to change."""
        return not self.deltas and not self.differs

    def against(self, before: Outcome) -> Expected:
        """Return the same with a delta for all that ``differs``, seen from an answer.

        Where the answer lacks the path, anything is another one.

        >>> OTHER_REPLY.against(Outcome({"reply": "At nine."})).deltas[0].after
        Admissible(values=('At nine.',), anything_but=True, or_no_call=False)
        """
        if not self.differs:
            return self
        other = [
            Delta(path, before.get(path), Admissible((before.get(path),), anything_but=True))
            for path in self.differs
        ]
        return Expected(tuple(sorted([*self.deltas, *other], key=lambda delta: delta.slot)))

    def of(self, slot: str) -> Delta | None:
        """Return what is to become of a slot; ``None`` = it is to stay."""
        return next((delta for delta in self.deltas if delta.slot == slot), None)

    def judge(self, before: Outcome, found: Outcome) -> Verdict:
        """Say whether the answer ``found`` is as expected, ``before`` that to the reference."""
        if self.differs:
            return self.against(before).judge(before, found)
        misses = []
        deltas = {delta.slot: delta for delta in self.deltas}
        unmade = {
            call
            for delta in self.deltas
            if delta.after.or_no_call
            and (call := AnswerPath.of(delta.slot).call)
            and str(call) not in found
        }
        for slot in sorted({*before, *found, *deltas}):
            old, new = before.get(slot), found.get(slot)
            if new is None and AnswerPath.of(slot).call in unmade:
                continue
            if new not in deltas[slot].after if slot in deltas else new != old:
                misses.append(Difference(slot, old, new))
        if not misses:
            return Verdict("held")
        failure: Failure = "other"
        if not deltas:
            failure = "changed"
        elif before == found:
            failure = "stuck"
        elif len(misses) < len(deltas) and all(miss.slot in deltas for miss in misses):
            failure = "partial"
        return Verdict("violation", tuple(misses), failure)

    def told(self, change: Difference, show: Callable[[str], str] = str) -> str:
        """Say what became of a slot, and what should have; values as ``show`` makes them.

        >>> follow = Expected((Delta("area", "north", Admissible(("south",))),))
        >>> follow.told(Difference("area", "north", "north"))
        'area stayed north, expected south'
        """

        def shown(value: str | None) -> str:
            return show(shown_value(value)) if value else "none"

        text = f"{change.slot}: {shown(change.before)} -> {shown(change.after)}"
        if change.before == change.after:
            text = f"{change.slot} stayed {shown(change.before)}"
        delta = self.of(change.slot)
        if delta is None:
            return text
        return f"{text}, expected {delta.after.told(shown)}"


UNCHANGED: Final = Expected()
#: Of a reply: it is to be another one, whatever that is.
OTHER_REPLY: Final = Expected(differs=(REPLY,))


@dataclass(frozen=True, slots=True)
class Move:
    """A round repeated, moved, dropped, added or asked again.

    ``turn`` and ``to`` count the rounds of the clean dialogue from 0; ``to`` = the round that it
    then stands before, or that it is put after where it is added or said twice.
    """

    kind: Literal["repeat", "move", "drop", "add", "again"]
    turn: int
    to: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A context to ask the tracker, and what the answer is to be."""

    seen: Context
    #: A clean context of the dialogue, or where ``between`` that of another rewrite: the one whose
    #: answer is the state before.
    reference: Context
    expected: Expected = UNCHANGED
    #: On the utterance of the turn, one after the other; ``transformation`` is the relation's name,
    #: ``operator`` its kind of edit.
    edits: tuple[Edit, ...] = ()
    moves: tuple[Move, ...] = ()
    #: For people: ``restaurant-area: north -> south``, ``round 3 said twice``.
    about: str = ""
    #: Whether any part of its edits is a rewrite of the relation too, so that it may be made
    #: smaller; only where the state of the turn is to stay. Rounds that moved stay so.
    separable: bool = False
    #: The test case that it is a question of, where cases are counted: ``DRS-0``.
    case: str = ""
    #: Whether the reference is what another rewrite shows, which the tracker is asked for as well.
    between: bool = False

    @property
    def asks(self) -> tuple[Context, ...]:
        """What the tracker is asked for, besides clean contexts; of a turn each is tried once."""
        return (self.seen, self.reference) if self.between else (self.seen,)


class Inapplicable(NamedTuple):
    """The relation says nothing about this turn."""

    #: One of the relation's reasons. Turns are counted by it, so there are no values in it.
    reason: str


class BySearch(NamedTuple):
    """The search edits the turn, and the relation judges what comes of it."""

    #: Of the answers to the clean turn and to a variant, and the label if there is one.
    judge: Callable[[Outcome, Outcome, Outcome | None], Verdict]


class Shown(NamedTuple):
    """What an earlier rewrite of the same turn showed."""

    rewrite: Rewrite
    #: The tracker was asked, and answered.
    answered: bool = False
    #: The answer is not as expected.
    broken: bool = False
    #: How much less sure the tracker is of the rewrite than of its reference.
    impurity: float = 0.0


class TurnRelation(Protocol):
    """The rewrites of one turn, by a relation that looks at what earlier ones showed."""

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite | None:
        """Return rewrite ``number`` of the turn; ``None`` = there are no more.

        A function of the arguments and the scene, never of what was asked before.

        Args:
            number: of the rewrite, from 0.
            draw: 0, or how many rewrites for this number were refused, as they were there already.
            seen: what the rewrites ``0`` to ``number - 1`` showed, where the relation is adaptive;
                otherwise only what they were.
        """


#: What a relation makes of a turn.
Begun = Iterable[Rewrite] | TurnRelation | BySearch | Inapplicable


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

    @property
    def table(self) -> ValueTable:
        """What is known of the slots of the data, and of their values."""
        return self.once(ValueTable.of)

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


#: Rewrites that are taken of one turn, of a relation that has more.
MOST: Final = 64
#: Why a relation that edits by itself is not asked about a turn.
FAILED_EARLIER: Final = "the tracker failed on an earlier turn"
TOO_LONG: Final = f"the utterance has more than {LONGEST_EDITED:,} characters"


class Relation(Protocol):
    """What must hold between the predictions on a clean turn and on a rewrite of it.

    A class that inherits from it writes ``name`` and either ``judge``, where the search is to edit
    the turns, or ``begin``, where it edits them itself (``edits = "own"``); and the rest where it
    is to be otherwise. Its answers must depend on the arguments alone, and it never asks the
    tracker. Provisional, as `Verdict` is.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the option ``relation`` takes, and that reports show."""

    @property
    def expects(self) -> str:
        """What it expects, in one sentence for people: ``the slot takes the new value``.

        ``{stays}`` says that the state, the answer or the calls stay, see `Words.fill`.
        """
        return "{stays}"

    @property
    def source(self) -> str:
        """Where its word lists come from, and their licence; empty where it has none."""
        return ""

    @property
    def edits(self) -> Literal["search", "own"]:
        """Whether the search edits the turns, or the relation itself."""
        return "search"

    @property
    def side(self) -> Side:
        """Whether the state is to stay or to follow."""
        return "should-not-change"

    @property
    def unit(self) -> Unit:
        """Whether it edits turns or whole dialogues."""
        return "turn"

    @property
    def on(self) -> tuple[OutcomeKind, ...]:
        """What it can speak of: states, replies, tool calls; all of them, where it says nothing."""
        return get_args(OutcomeKind)

    @property
    def adaptive(self) -> bool:
        """Whether it wants to know what its earlier rewrites of a turn showed."""
        return False

    @property
    def english(self) -> bool:
        """Whether its edits are words of English, which have no place in another language."""
        return False

    @property
    def needs_labels(self) -> bool:
        """Whether it can say nothing about data without labels."""
        return False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it says nothing about a turn, in the order in which it looks.

        Where several slots are looked at, the turn is counted with the last of their reasons.
        """
        return (self.inapplicable,)

    @property
    def inapplicable(self) -> str:
        """Why it says nothing about a turn to which it does not apply, for reports."""
        return "the relation says nothing about this turn"

    def impossible(self, data: DialogueSet) -> str:
        """Say why no turn of the data can satisfy it, whatever the tracker; ``""`` = some may."""
        if self.needs_labels and all(
            turn.state is None and turn.calls is None
            for dialogue in data.dialogues
            for turn in dialogue.turns
        ):
            return "it compares with labels, and no turn has one"
        return ""

    def begin(self, scene: Scene) -> Begun:
        """Return what it makes of a turn.

        By default the search edits the turn, where `applies` says so, and `judge` judges.
        """
        if not self.applies(scene.now, scene.turn.state):
            return Inapplicable(self.inapplicable)
        return BySearch(self.judge)

    def applies(self, clean: Outcome, label: Outcome | None) -> bool:  # noqa: ARG002 - for others
        """Whether it says anything about a turn with this clean prediction."""
        return True

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
        """Compare the prediction on a variant with that on the clean turn.

        Args:
            clean: prediction on the clean turn in its clean context.
            perturbed: prediction on the variant in the context it is seen in.
            label: the right belief state; ``None`` where the data has none.
        """
        raise NotImplementedError(f"the relation {self.name!r} edits by itself")


#: What `begin` returns.
TurnBegun = list[Rewrite] | TurnRelation | BySearch | Inapplicable


def begin(relation: Relation, scene: Scene) -> TurnBegun:
    """Return what a relation makes of a turn: of many rewrites the first `MOST`, at least one.

    Raises:
        UserError: it leaves the edits to the search and has some of its own, or the other way
            round.
    """
    if relation.edits == "own":
        # Each message makes its own calls: those to earlier turns need not be known.
        if None in scene.states and scene.kind.needs_earlier:
            return Inapplicable(FAILED_EARLIER)
        if len(scene.turn.user) > LONGEST_EDITED:
            return Inapplicable(TOO_LONG)
        if relation.english and scene.guards.is_other_language(scene.parts):
            return Inapplicable(OTHER_LANGUAGE)
    begun = relation.begin(scene)
    if isinstance(begun, Inapplicable):
        return begun
    if isinstance(begun, BySearch) != (relation.edits == "search"):
        raise UserError(
            f"the relation {relation.name!r} has edits = {relation.edits!r}, and its begin() "
            f"returned {type(begun).__name__}: BySearch is for 'search', rewrites are for 'own'"
        )
    if isinstance(begun, Iterable) and not isinstance(begun, BySearch):
        return list(islice(begun, MOST)) or Inapplicable(relation.inapplicable)
    return begun


def proposed(begun: list[Rewrite] | TurnRelation) -> list[Rewrite]:
    """Return the rewrites of a turn, `MOST` at most: those that come where no answer is known."""
    if isinstance(begun, list):
        return begun
    found: list[Rewrite] = []
    while len(found) < MOST:
        rewrite = begun.propose(len(found), 0, [Shown(earlier) for earlier in found])
        if rewrite is None:
            break
        found.append(rewrite)
    return found
