"""The protocol of relations: their view of a turn, their rewrites and their verdicts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeVar, cast, get_args

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import REPLY, AnswerPath, Outcome, OutcomeKind, format_value
from pytest_dstfuzz.dialogue.dialogues import (
    Admissible,
    Context,
    ContextJudge,
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

__all__ = [
    "MOST",
    "BySearch",
    "Expectation",
    "Inapplicable",
    "Move",
    "Relation",
    "Rewrite",
    "Scene",
    "Scenes",
    "TurnStart",
    "begin",
    "list_rewrites",
]


#: The expectation. If the state should not change, over-sensitive trackers fail. If it should
#: change with the edit, over-stable trackers fail.
Side = Literal["should-not-change", "should-change"]
#: The unit that a relation edits. A relation on dialogues has one result per dialogue, at its last
#: turn.
Unit = Literal["turn", "dialogue"]
#: How a rewrite fails. ``changed``: the state should have stayed the same, but changed. The others
#: apply if something should have changed. ``stuck``: nothing changed. ``partial``: only some of the
#: expected changes happened, and no others. ``other``: anything else.
Failure = Literal["changed", "stuck", "partial", "other"]
#: ``improved`` = by the label, the clean prediction is wrong and the perturbed prediction is right.
#: ``inapplicable`` = the relation does not apply to this turn. A run asks `Relation.begin` for this
#: before it edits the turn, so it is an error as a verdict of your own relation.
VerdictKind = Literal["held", "violation", "improved", "inapplicable"]

#: The reason for skipping a turn in a language that the locks do not know.
OTHER_LANGUAGE: Final = "the utterance is not entirely in English"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A relation's verdict on the answers to a reference and to a rewrite.

    This class is provisional. Relations on other kinds of answers may need more fields.
    """

    kind: VerdictKind
    #: Slots with an unexpected value, sorted. A violation has at least one. An improvement has its
    #: slots, too. If a slot should have changed but did not, ``before`` equals ``after``.
    changes: tuple[Difference, ...] = ()
    #: How a violation failed; ``None`` means ``changed``.
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """The change of one slot that a relation expects.

    Raises:
        ValueError: the slot already has an expected value before the change.
    """

    slot: str
    before: str | None
    after: Admissible

    def __post_init__(self) -> None:
        if self.before in self.after:
            raise ValueError(
                f"the delta of {self.slot} expects no change: {format_value(self.before)} is "
                f"already an expected value ({self.after})"
            )

    def __str__(self) -> str:
        return f"{self.slot}: {format_value(self.before)} -> {self.after}"


@dataclass(frozen=True, slots=True)
class Expectation:
    """The answer that a relation expects to a rewrite, relative to the reference answer.

    A slot without a delta must keep its value. If there is no delta at all, the whole answer must
    stay the same.

    Raises:
        ValueError: the deltas or the paths in ``differs`` are not sorted by slot, or a slot
            appears twice.
    """

    deltas: tuple[Delta, ...] = ()
    #: Paths whose value must differ from the one in the answer to the reference.
    differs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(one.slot >= other.slot for one, other in pairwise(self.deltas)):
            raise ValueError("the deltas must be sorted by slot, with at most one for each slot")
        if any(one >= other for one, other in pairwise(self.differs)):
            raise ValueError("the paths in differs must be sorted, without duplicates")
        if twice := next((path for path in self.differs if self.of(path)), None):
            raise ValueError(f"{twice} is both in deltas and in differs")

    @property
    def stays(self) -> bool:
        """Whether the relation expects the same answer."""
        return not self.deltas and not self.differs

    def against(self, before: Outcome) -> Expectation:
        """Return a copy with a delta for each path in ``differs``, for the given reference answer.

        If the reference answer lacks the path, any value counts as different.

        >>> OTHER_REPLY.against(Outcome({"reply": "At nine."})).deltas[0].after
        Admissible(values=('At nine.',), anything_but=True, or_no_call=False)
        """
        if not self.differs:
            return self
        other = [
            Delta(path, before.get(path), Admissible((before.get(path),), anything_but=True))
            for path in self.differs
        ]
        return Expectation(tuple(sorted([*self.deltas, *other], key=lambda delta: delta.slot)))

    def of(self, slot: str) -> Delta | None:
        """Return the expected change of a slot, or ``None`` if the slot must stay."""
        return next((delta for delta in self.deltas if delta.slot == slot), None)

    def judge(self, before: Outcome, found: Outcome) -> Verdict:
        """Return the verdict on the answer ``found``, given the reference answer ``before``."""
        if self.differs:
            return self.against(before).judge(before, found)
        misses = []
        wanted = {delta.slot: delta.after for delta in self.deltas}
        unmade = {
            call
            for delta in self.deltas
            if delta.after.or_no_call
            and (call := AnswerPath.of(delta.slot).call)
            and str(call) not in found
        }
        for slot in sorted({*before, *found, *wanted}):
            old, new = before.get(slot), found.get(slot)
            if new is None and AnswerPath.of(slot).call in unmade:
                continue
            if new not in wanted[slot] if slot in wanted else new != old:
                misses.append(Difference(slot, old, new, expected=wanted.get(slot)))
        if not misses:
            return Verdict("held")
        failure: Failure = "other"
        if not wanted:
            failure = "changed"
        elif before == found:
            failure = "stuck"
        elif len(misses) < len(wanted) and all(miss.expected for miss in misses):
            failure = "partial"
        return Verdict("violation", tuple(misses), failure)


UNCHANGED: Final = Expectation()
#: For replies: any other reply is expected.
OTHER_REPLY: Final = Expectation(differs=(REPLY,))


@dataclass(frozen=True, slots=True)
class Move:
    """A change of the rounds: a round is repeated, moved, dropped, added, joined or asked again.

    ``turn`` and ``to`` count the rounds of the clean dialogue from 0. A moved round now
    stands before round ``to``. An added or repeated round stands after it. A joined round is
    one with round ``to``.
    """

    kind: Literal["repeat", "move", "drop", "add", "join", "again"]
    turn: int
    to: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A context to send to the tracker, with the answer that the relation expects."""

    seen: Context
    #: The answer to the rewrite is compared with the answer to this context. It is a clean context
    #: of the dialogue. If ``between`` is true, it is the context of another rewrite.
    reference: Context
    expected: Expectation = UNCHANGED
    #: Edits of the utterance of the turn, applied in order. For each edit, ``transformation`` is
    #: the name of the relation, and ``operator`` is the kind of edit.
    edits: tuple[Edit, ...] = ()
    moves: tuple[Move, ...] = ()
    #: A description for reports: ``restaurant-area: north -> south``, ``round 3 said twice``.
    about: str = ""
    #: Whether every subset of the edits is also a rewrite of the relation, so that the campaign may
    #: remove edits to find the smallest violation. This is possible only if the state of the turn
    #: must stay the same. Moved rounds always stay.
    separable: bool = False
    #: The test case of this question, if test cases are counted: ``DRS-0``.
    case: str = ""
    #: Whether the reference is the context of another rewrite. If so, the tracker must also answer
    #: the reference.
    between: bool = False

    @property
    def asks(self) -> tuple[Context, ...]:
        """The contexts to request, without clean ones. Each is requested once per turn."""
        return (self.seen, self.reference) if self.between else (self.seen,)


class Inapplicable(NamedTuple):
    """The result of a relation that does not apply to a turn, with the reason."""

    #: One of the relation's reasons. Reports count turns by reason, so it contains no values.
    reason: str


class BySearch(NamedTuple):
    """The result of a relation that lets the search edit the turn and judges the variants."""

    #: A function of the answers to the clean turn and to a variant, and of the label, if any.
    judge: Callable[[Outcome, Outcome, Outcome | None], Verdict]


class EarlierResult(NamedTuple):
    """An earlier rewrite of the same turn, and the tracker's answer."""

    rewrite: Rewrite
    #: Whether the tracker was asked and answered.
    answered: bool = False
    #: Whether the answer differs from the expected one.
    broken: bool = False
    #: How much less confident the tracker is on the rewrite than on its reference.
    impurity: float = 0.0


class TurnRelation(Protocol):
    """Proposes the rewrites of one turn. It may use the results of earlier rewrites."""

    def propose(self, number: int, draw: int, seen: Sequence[EarlierResult]) -> Rewrite | None:
        """Return rewrite ``number`` of the turn, or ``None`` if there are no more.

        The result depends only on the arguments and the scene, never on earlier calls.

        Args:
            number: index of the rewrite, from 0.
            draw: the number of rewrites for this ``number`` that were rejected as duplicates.
            seen: the rewrites ``0`` to ``number - 1``. They have results if the relation is
                adaptive.
        """


#: The possible results of a relation on a turn.
TurnStart = Iterable[Rewrite] | TurnRelation | BySearch | Inapplicable


_Found = TypeVar("_Found")


class Replacement(NamedTuple):
    """Replaces ``text[start:end]`` of the clean utterance by ``after``."""

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
    """A turn as a relation sees it: its dialogue, and the states before and after it.

    The states are the tracker's answers to the clean contexts. They may also be the labels, which
    stand for a tracker without errors.
    """

    #: Name of the relation that uses the scene.
    relation: str
    dialogue: Dialogue
    #: Index of the turn. It is the last turn if the relation edits whole dialogues.
    index: int
    #: States after each turn, at least up to ``index``. A state is ``None`` if the tracker failed
    #: at the turn, or if the turn has no label. A relation that makes its own edits is called only
    #: if all states that it depends on are known.
    states: tuple[Outcome | None, ...]
    data: DialogueSet
    #: Finds the words that carry slot values.
    guards: Locks
    lexicon: Lexicon
    #: Seed of the campaign.
    seed: int
    #: The tested part of the answers, and the settings for replies.
    reply: ReplySettings = field(default_factory=ReplySettings)
    #: Requested number of variants per turn.
    variants: int = 5
    #: Cache of `once`, shared by the scenes of a run.
    kept: dict[object, object] = field(default_factory=dict)
    #: A function that returns whether two answers to a context are equivalent.
    agree: Callable[[Outcome, Outcome, Context], bool] = _equal
    #: The language model of ``--dst-compare``, if there is one.
    judge: ContextJudge | None = None

    @property
    def kind(self) -> AnswerKind:
        """The kind of answer that the test is about."""
        return KINDS[self.reply.outcome]

    @cached_property
    def rng(self) -> np.random.Generator:
        """The relation's random generator for this turn. It is equal in every process."""
        return stream(self.seed, "relation", self.relation, self.dialogue.id, self.index)

    @property
    def turn(self) -> Turn:
        """The turn of the dialogue, with its label if it has one."""
        return self.dialogue.turns[self.index]

    @cached_property
    def context(self) -> Context:
        """The clean context of the turn."""
        return self.dialogue.context(self.index)

    def state(self, index: int) -> Outcome:
        """Return the state after a turn, or an empty state before the first turn (index -1).

        Raises:
            ValueError: the state of this turn is not known.
        """
        found = self.states[index] if index >= 0 else Outcome()
        if found is None:
            raise ValueError(f"the state of turn {index} of {self.dialogue.id!r} is not known")
        return found

    @property
    def label(self) -> Outcome | None:
        """The correct answer.

        If the tracker's answer is equivalent to the label, this is the tracker's answer.
        """
        if not self.kind.has_tools:
            return self.turn.state
        label = self.turn.calls
        right = label is not None and self.agree(label, self.now, self.context)
        return self.now if right else label

    @property
    def before(self) -> Outcome:
        """The state before the turn.

        For tool calls, this state is empty, because each message makes its own calls. In rollouts,
        it is the state after the previous turn.
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
        """The slots that the turn filled or changed, in sorted order."""
        changes = diff_states(self.before, self.now)
        return tuple(change.slot for change in changes if change.after is not None)

    @cached_property
    def parts(self) -> Parts:
        """The words of the utterance and the gaps between them."""
        return take_apart(self.turn.user)

    @cached_property
    def guarded(self) -> Mask:
        """The locks on the words of the utterance, with the same indices as `parts`."""
        return self.guarded_in(self.turn.user, self.parts)

    def guarded_in(self, text: str, parts: Parts) -> Mask:
        """Return the locks on the words of another utterance, with the indices of ``parts``."""
        values = self.kind.locked_values(self.data, self.turn, self.states[self.index])
        return self.guards.mask(text, parts, values, self.turn.system)

    def once(self, build: Callable[[DialogueSet], _Found]) -> _Found:
        """Compute ``build(data)`` once per run, and return the result."""
        if build not in self.kept:
            self.kept[build] = build(self.data)
        return cast("_Found", self.kept[build])

    @property
    def table(self) -> ValueTable:
        """Statistics on the slots of the data and their values."""
        return self.once(ValueTable.of)

    def edits(self, replacements: Iterable[Replacement]) -> tuple[Edit, ...]:
        """Convert replacements to edits, from the last position in the utterance to the first.

        Raises:
            ValueError: two replacements overlap, or one is outside the utterance.
        """
        edits: list[Edit] = []
        limit = len(self.turn.user)
        for one in sorted(replacements, reverse=True):
            if not 0 <= one.start <= one.end <= limit:
                raise ValueError(f"{one} overlaps another replacement or is outside the utterance")
            limit = one.start
            before = self.turn.user[one.start : one.end]
            edits.append(Edit(self.relation, one.operator, one.start, one.end, before, one.after))
        return tuple(edits)

    @property
    def names_domains(self) -> bool:
        """Whether users name the domain of a slot. They do not name tools."""
        return True

    def worded(self, slot: str, value: str) -> str:  # noqa: ARG002 - of tool calls it depends on it
        """Return how users write a value of a slot."""
        return value

    def whole(self, after: str, operator: str) -> Replacement:
        """Return an edit that replaces the whole utterance by another text."""
        return Replacement(0, len(self.turn.user), after, operator)

    def said(self, user: str) -> Context:
        """Return the clean context with another text as the last user utterance."""
        return self.context.saying(user)

    def rewrite(
        self,
        replacements: Iterable[Replacement],
        deltas: Iterable[Delta] = (),
        *,
        about: str = "",
        separable: bool = False,
    ) -> Rewrite:
        """Return a rewrite that edits the utterance of the turn in its clean context.

        Args:
            replacements: replacements in the utterance, in any order.
            deltas: expected changes of slots, in any order. If there are none, the answer must stay
                the same.
            about: description for reports. By default the expected changes.
            separable: see `Rewrite`.

        Raises:
            ValueError: see `edits` and `Expectation`.
        """
        edits = self.edits(replacements)
        user = self.turn.user
        for edit in edits:
            user = user[: edit.start] + edit.after + user[edit.end :]
        expected = Expectation(tuple(sorted(deltas, key=lambda delta: delta.slot)))
        return Rewrite(
            seen=self.said(user),
            reference=self.context,
            expected=expected,
            edits=edits,
            about=about or ", ".join(map(str, expected.deltas)),
            separable=separable,
        )


class Scenes:
    """Creates the scenes of a run. They share the results of expensive computations."""

    def __init__(
        self,
        data: DialogueSet,
        lexicon: Lexicon,
        guards: Locks,
        seed: int,
        reply: ReplySettings | None = None,
        variants: int = 5,
        agree: Callable[[Outcome, Outcome, Context], bool] = _equal,
        judge: ContextJudge | None = None,
    ) -> None:
        """Store the objects that all scenes share. ``seed`` and settings belong to the campaign."""
        self._reply = reply or ReplySettings()
        self._agree, self._judge = agree, judge
        self._shared = data, guards, lexicon, seed, self._reply, variants
        self._kept: dict[object, object] = {}

    def without_judge(self) -> Scenes:
        """Return scenes of the same run in which no language model is asked."""
        data, guards, lexicon, seed, reply, variants = self._shared
        return Scenes(data, lexicon, guards, seed, reply, variants, self._agree)

    def of(
        self,
        relation: str,
        dialogue: Dialogue,
        index: int,
        states: Iterable[Outcome | None],
    ) -> Scene:
        """Return the scene of a turn for the named relation. `Scene` explains ``states``."""
        more = self._kept, self._agree, self._judge
        return Scene(relation, dialogue, index, tuple(states), *self._shared, *more)

    @property
    def kind(self) -> AnswerKind:
        """The kind of answer that is tested."""
        return KINDS[self._reply.outcome]

    def labelled(self, relation: str, dialogue: Dialogue, index: int) -> Scene:
        """Return the scene of a turn with labels instead of the tracker's answers."""
        states = (self.kind.label(dialogue, place) for place in range(index + 1))
        return self.of(relation, dialogue, index, states)


#: Maximum number of rewrites per turn.
MOST: Final = 64
#: Reasons why a relation that makes its own edits is not called for a turn.
FAILED_EARLIER: Final = "the tracker failed on an earlier turn"
TOO_LONG: Final = f"the utterance has more than {LONGEST_EDITED:,} characters"


class Relation(Protocol):
    """Base class of relations. A relation defines how two answers must be related.

    A subclass defines ``name``. If the search makes the edits, it also defines ``judge``. If the
    relation makes its own edits (``edits = "own"``), it also defines ``begin``. Other members have
    defaults. Results must depend only on the arguments. A relation never calls the tracker. The
    protocol may still change.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name for the option ``relation`` and for reports."""

    @property
    def expects(self) -> str:
        """The expectation as a sentence for users: ``the slot takes the new value``.

        ``{stays}`` becomes a phrase such as "the state stays as it is", which depends on the kind
        of answer, see `Words.fill`.
        """
        return "{stays}"

    @property
    def source(self) -> str:
        """The source of the word lists and their licence, or ``""`` without word lists."""
        return ""

    @property
    def edits(self) -> Literal["search", "own"]:
        """Whether the search or the relation itself edits the turns."""
        return "search"

    @property
    def side(self) -> Side:
        """Whether the answer must stay the same, or must change with the edit."""
        return "should-not-change"

    @property
    def unit(self) -> Unit:
        """Whether the relation edits turns or whole dialogues."""
        return "turn"

    @property
    def on(self) -> tuple[OutcomeKind, ...]:
        """The kinds of answer that the relation supports. The default is all."""
        return get_args(OutcomeKind)

    @property
    def adaptive(self) -> bool:
        """Whether the relation uses the results of its earlier rewrites of a turn."""
        return False

    @property
    def english(self) -> bool:
        """Whether the edits are English words, so that the relation skips other languages."""
        return False

    @property
    def needs_labels(self) -> bool:
        """Whether the relation needs data with labels."""
        return False

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the relation may not apply to a turn, in the order of its checks.

        If several slots fail the checks, the relation returns the last of their reasons in this
        order.
        """
        return (self.inapplicable,)

    @property
    def inapplicable(self) -> str:
        """The reason in reports why the relation does not apply to a turn."""
        return "the relation does not apply to this turn"

    def cases(self, scene: Scene) -> tuple[str, ...]:  # noqa: ARG002 - for others
        """Return the names of all test cases of the scene's dialogue: ``("DRS-0", "DRR-0")``.

        A test case counts even if the relation makes no rewrite in it. By default, there are no
        test cases.
        """
        return ()

    def impossible(self, data: DialogueSet) -> str:
        """Return why the relation can apply to no turn of the data, or ``""`` if it may apply."""
        if self.needs_labels and all(
            turn.state is None and turn.calls is None
            for dialogue in data.dialogues
            for turn in dialogue.turns
        ):
            return "it needs labels, and no turn has one"
        return ""

    def begin(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a turn, or the reason why the relation does not apply.

        By default, the search edits the turn if `applies` returns true, and `judge` compares the
        answers.
        """
        if not self.applies(scene.now, scene.turn.state):
            return Inapplicable(self.inapplicable)
        return BySearch(self.judge)

    def applies(self, clean: Outcome, label: Outcome | None) -> bool:  # noqa: ARG002 - for others
        """Return whether the relation applies to a turn, given the clean prediction."""
        return True

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
        """Compare the prediction on a variant with the prediction on the clean turn.

        Args:
            clean: prediction on the clean turn in its clean context.
            perturbed: prediction on the variant in the variant's context.
            label: correct belief state, or ``None`` if the data has none.
        """
        raise NotImplementedError(f"the relation {self.name!r} makes its own edits")


#: The return type of `begin`.
TurnBegun = list[Rewrite] | TurnRelation | BySearch | Inapplicable


def begin(relation: Relation, scene: Scene) -> TurnBegun:
    """Return a relation's result for a turn, with at most `MOST` rewrites.

    Raises:
        UserError: the relation declares that the search makes the edits but returns its own
            rewrites, or vice versa.
    """
    if relation.edits == "own":
        # Each message makes its own calls, so the calls of earlier turns may be unknown.
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
            f"the relation {relation.name!r} has edits = {relation.edits!r}, but its begin() "
            f"returned {type(begun).__name__}: return BySearch for 'search', rewrites for 'own'"
        )
    if isinstance(begun, Iterable) and not isinstance(begun, BySearch):
        return list(islice(begun, MOST)) or Inapplicable(relation.inapplicable)
    return begun


def list_rewrites(begun: list[Rewrite] | TurnRelation) -> list[Rewrite]:
    """Return at most `MOST` rewrites of a turn, before any answer is known."""
    if isinstance(begun, list):
        return begun
    found: list[Rewrite] = []
    while len(found) < MOST:
        rewrite = begun.propose(len(found), 0, [EarlierResult(earlier) for earlier in found])
        if rewrite is None:
            break
        found.append(rewrite)
    return found
