"""Results of a campaign, turn by turn, and the events that announce them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Final, Literal, TypeAlias, cast

from pytest_dstfuzz.dialogue.calls import AnswerPath, Outcome, OutcomeKind, Transcript, shown_value
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.relation import Admissible, Delta, Failure, Move, Side

__all__ = [
    "RUN_OUTCOMES",
    "Event",
    "MappedResults",
    "Results",
    "TurnDone",
    "TurnResult",
    "VariantResult",
]


#: What became of one generated variant. The first four were never run.
VariantOutcome = Literal[
    "vacuous",
    "duplicate",
    "vetoed",
    "over_rate",
    "held",
    "violation",
    "carried",
    "improved",
    "error",
    "unstable",
]
#: What became of a turn: its worst variant (error > violation > held); ``untested`` = no
#: variant could be run, ``inapplicable`` = the relation says nothing about this turn
#: (``gold`` where the clean prediction is wrong), ``skipped`` = the budget ended before it.
TurnOutcome = Literal["held", "violation", "error", "untested", "inapplicable", "skipped"]
#: Whether the turn's own edits, those of its context, or only both together break the relation.
Cause = Literal["turn", "context", "both"]
#: By the label of a slot that changed: its old value was right, its new one is, or neither.
ByLabel = Literal["right-to-wrong", "corrected", "wrong-to-wrong"]
#: The same in words.
BY_LABEL: Final[Mapping[ByLabel, str]] = {
    "right-to-wrong": "was right, now wrong",
    "corrected": "was wrong, now right",
    "wrong-to-wrong": "wrong either way",
}

#: Keys that reports of earlier versions lack.
_LATER: Final = frozenset(
    {"minimal", "votes", "repeated", "minimiser_calls", "clean_votes", "repeat_calls"}
    | {"log_probability", "weight", "noise", "earlier_system"}
    | {"failure", "about", "expected", "moves", "exchanges", "relation", "side"}
    | {"case", "reference", "outcome_kind", "own", "right", "tools", "transcript"}
    | {"model", "left_out", "malformed"}
)
RUN_OUTCOMES: tuple[VariantOutcome, ...] = ("held", "violation", "carried", "improved", "error")


@dataclass(frozen=True, slots=True)
class ChangedSlot:
    """A slot whose value is not as expected; ``None`` = absent.

    Of one that was to change and did not, ``before`` equals ``after``.
    """

    slot: str
    before: str | None
    after: str | None
    #: It had changed the same way at an earlier turn of the same variant number.
    carried: bool = False
    #: What it was to become; ``None`` = it was to stay.
    expected: Admissible | None = None
    #: How far apart the two are, from 0 to 2; ``None`` where the comparison has no distances.
    distance: float | None = None
    #: What differs, in one line for people: ``1969 / 1970``; ``""`` where the values say it.
    why: str = ""
    #: By the label; ``None`` without a label, or if the slot was to change.
    by_label: ByLabel | None = None

    @property
    def path(self) -> AnswerPath:
        """The slot taken apart, which is a way into tool calls if those are tested."""
        return AnswerPath.of(self.slot)

    @property
    def is_fault(self) -> bool:
        """Whether it changed at this turn, and not to the right value."""
        return not self.carried and self.by_label != "corrected"

    def __str__(self) -> str:
        return f"{self.slot}: {shown_value(self.before)} -> {shown_value(self.after)}"


def faults(changes: Sequence[ChangedSlot]) -> tuple[ChangedSlot, ...]:
    """Return the changes that a violation is about.

    Those that are faults. If a relation of others calls a variant a violation without any, they are
    all that changed at this turn, or all.
    """
    found = tuple(change for change in changes if change.is_fault)
    return found or tuple(change for change in changes if not change.carried) or tuple(changes)


def not_corrected(changes: Sequence[ChangedSlot]) -> tuple[ChangedSlot, ...]:
    """Return the changes but those to the right value; all if there are no others."""
    found = tuple(change for change in changes if change.by_label != "corrected")
    return found or tuple(changes)


@dataclass(frozen=True, slots=True)
class SeenRound:
    """What the system said (``""`` at the start of a dialogue), and the user's answer."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class ContextEdits:
    """The edits of one earlier turn that the tracker saw perturbed."""

    turn_index: int
    edits: tuple[Edit, ...]


def _size(edits: Sequence[Edit], context_edits: Sequence[ContextEdits]) -> int:
    return len(edits) + sum(len(earlier.edits) for earlier in context_edits)


@dataclass(frozen=True, slots=True)
class Minimal:
    """A violation with no edit to spare: without any one of them, the same slots hold."""

    text: str
    #: User utterances of the earlier turns.
    context: tuple[str, ...]
    #: Edits of the turn itself that are left; none where its context is to blame.
    edits: tuple[Edit, ...]
    #: Likewise of earlier turns; turns without any are left out.
    context_edits: tuple[ContextEdits, ...]
    #: What the tracker was seen to change on this very text in this context.
    changed_slots: tuple[ChangedSlot, ...]
    #: Contexts that had to be asked for to find it, beside those of the variant's own passes;
    #: other variants may have asked for some of them.
    calls: int = 0

    @property
    def size(self) -> int:
        """How many edits are left."""
        return _size(self.edits, self.context_edits)

    @property
    def cause(self) -> Cause:
        """Whose edits are left."""
        if not self.edits:
            return "context"
        return "both" if self.context_edits else "turn"


@dataclass(frozen=True, slots=True)
class Votes:
    """How several answers voted on the slot whose change they confirm best."""

    #: Answers to the variant in its context.
    asked: int
    #: Those of them with the new value, and with the value of the clean turn.
    changed: int
    kept: int
    #: Those that are as the clean state throughout: had one come first, it had been the only one.
    same: int
    #: Answers to the clean turn with its value, and with the new one.
    clean: int
    against: int


@dataclass(frozen=True, slots=True)
class TurnNoise:
    """What people make of a turn, by the noise model in use."""

    #: The models, by name.
    models: str
    #: Slips per word that the probabilities are reckoned with.
    slip_rate: float
    #: Probability that anything slips, given that no lock is touched.
    distorted: float
    #: Probability that a lock is touched.
    locked: float
    #: Whether the variants are a sample of it, each with its weight.
    sampled: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the replies of a system to one and the same turn lie apart."""

    #: How many answers there are, and how many of them no two of which say the same.
    answers: int
    kinds: int
    #: Of the distances between two of them, from 0 to 2; ``None`` without distances.
    largest: float | None = None
    median: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """One generated variant of one turn, run or not."""

    #: Number of the variant: it goes with the variants of the same number of earlier turns.
    index: int
    text: str
    #: User utterances of the earlier turns as the tracker saw them.
    context: tuple[str, ...]
    edits: tuple[Edit, ...]
    edit_w: float
    edit_c: float
    #: Natural logarithm of how likely the noise model makes it, given that no lock is touched;
    #: ``None`` in profiles without one, and for what it cannot make.
    log_probability: float | None = None
    #: Of a search with a density: how much of all that people may make of the turn it stands for,
    #: as a probability.
    weight: float | None = None
    #: Passed the validity profile and was run; false for a duplicate.
    valid: bool
    #: Why it was not run, or the tracker's error; ``""`` otherwise.
    reason: str
    #: The prediction; ``None`` when the variant was not run or the tracker failed.
    state: Outcome | None = None
    changed_slots: tuple[ChangedSlot, ...] = ()
    context_edits: tuple[ContextEdits, ...] = ()
    #: Of a violation; ``None`` where the budget ended before it was known.
    cause: Cause | None = None
    outcome: VariantOutcome
    #: How often it was drawn, this draw counted: more than once where it was redrawn.
    draws: int = 1
    #: Of a violation; ``None`` where it was not looked for, or the budget ended before.
    minimal: Minimal | None = None
    #: Of a tracker that need not be repeatable; ``None`` where it was asked once.
    votes: Votes | None = None
    #: Whether this context and its clean turn, asked once more, got the same answers again: a
    #: sample of those of a tracker that must be repeatable; ``None`` = not asked again.
    repeated: bool | None = None
    #: Of a violation: how the relation is broken; ``None`` = ``changed``.
    failure: Failure | None = None
    #: What the rewrite is about, for people: ``restaurant-area: north -> south``.
    about: str = ""
    #: What was to become of the slots; all others, and all where there is none, were to stay.
    expected: tuple[Delta, ...] = ()
    #: Rounds that the relation repeated, moved, dropped or added.
    moves: tuple[Move, ...] = ()
    #: All that the tracker saw, where rounds moved; ``None`` = ``context`` and ``text`` say it.
    exchanges: tuple[SeenRound, ...] | None = None
    #: The test case that it is a question of; ``""`` where cases are not counted.
    case: str = ""
    #: What the other answer was to, where that is no clean context.
    reference: tuple[SeenRound, ...] | None = None
    #: Of a violation under a relation on tools: what the assistant was given beside the texts, in
    #: the place of what was recorded.
    transcript: Transcript | None = None

    @property
    def size(self) -> int:
        """How many edits there are, those of its context included."""
        return _size(self.edits, self.context_edits)

    @property
    def reduced(self) -> Minimal | None:
        """Its smallest version, where that is known and smaller."""
        return self.minimal if self.minimal and self.minimal.size < self.size else None

    @property
    def plain(self) -> Minimal | VariantResult:
        """What explains a violation: its smallest version, where that is known."""
        return self.minimal or self


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """Everything a campaign found out about one turn."""

    #: Readable and stable: ``<data set>-<split>-<dialogue id>-t<turn index>``.
    id: str
    dialogue_id: str
    turn_index: int
    system: str
    user: str
    #: What the system said before, turn by turn.
    earlier_system: tuple[str, ...] = ()
    #: The label, where the data has one.
    label: Outcome | None = None
    clean_state: Outcome | None
    outcome: TurnOutcome
    #: Why the turn has no verdict (the tracker's error on the clean context, the budget).
    reason: str = ""
    #: Distinct contexts that the tracker was asked for at this turn and not already at
    #: an earlier turn of the dialogue; a function of the dialogue alone, whoever ran it.
    calls: int = 0
    #: Likewise to make its violations smaller; they are no calls of the search.
    minimiser_calls: int = 0
    #: For each answer to the clean turn, where there were several, which of its different states
    #: it was: numbers from 0 in order of appearance, -1 for a failure.
    clean_votes: tuple[int, ...] = ()
    #: Contexts asked once more to see whether the tracker repeats itself; no calls of the search.
    repeat_calls: int = 0
    #: ``None`` in profiles without a noise model.
    noise: TurnNoise | None = None
    #: Name of the relation, and whether the state was to stay or to follow.
    relation: str = "metamorphic"
    side: Side = "should-not-change"
    #: What of the answers was tested: what ``label``, ``clean_state`` and ``state`` hold.
    outcome_kind: OutcomeKind = "state"
    #: Of a system that replies; ``None`` where it was asked once.
    own: Spread | None = None
    #: Whether the clean answer says the same as the label; ``None`` = where both are equal.
    right: bool | None = None
    #: Names of the tools that the system can call, where tool calls are tested.
    tools: tuple[str, ...] = ()
    #: How many variants it lacks, at most, as the budget ended.
    left_out: int = 0
    #: Answers that could not be read, those to contexts asked for again among them.
    malformed: int = 0
    #: Name of the tracker if a session tests several; otherwise ``""``.
    model: str = ""
    #: By number; none where the turn is skipped or the relation inapplicable.
    variants: tuple[VariantResult, ...]

    @property
    def kind(self) -> AnswerKind:
        """What was tested of the answers."""
        return KINDS[self.outcome_kind]

    @property
    def violations(self) -> tuple[VariantResult, ...]:
        """The variants that broke the relation."""
        return tuple(variant for variant in self.variants if variant.outcome == "violation")

    @property
    def is_right(self) -> bool:
        """Whether the clean answer is the label, or says the same where replies are compared."""
        return self.clean_state == self.label if self.right is None else self.right

    @property
    def tested(self) -> bool:
        """Whether there is a valid variant."""
        return any(variant.valid for variant in self.variants)

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary; floats keep their value (the report rounds).

        What only replies and tool calls have is left out where states were tested, and what labels
        say where there is none.
        """
        plain: dict[str, Any] = to_json(self)
        _drop(plain, [name for name in ("model", "left_out", "malformed") if not plain[name]])
        if not self.kind.has_tools:
            _drop(plain, ("tools",))
            for variant in plain["variants"]:
                _drop(variant, ("transcript",))
        if self.kind.has_slots:
            _drop(plain, ("outcome_kind", "own", "right"))
            for variant in plain["variants"]:
                _drop(variant, ("case", "reference"))
                for change in _changes(variant):
                    _drop(change, ("distance", "why"))
        if self.label is None:
            for change in (one for variant in plain["variants"] for one in _changes(variant)):
                _drop(change, ("by_label",))
        return plain

    @classmethod
    def from_json(cls, data: object) -> TurnResult:
        """Build the result that `to_json` wrote; files of earlier versions lack some keys.

        Raises:
            ValueError: something is missing or of the wrong kind.
        """
        found = from_json(cls, data)
        # It has the shape of one: what has a default may still be missing.
        turn = cast("dict[str, Any]", data)
        parts: list[tuple[type[TurnResult | VariantResult], dict[str, Any]]] = [(cls, turn)]
        parts += [(VariantResult, variant) for variant in turn["variants"]]
        for kind, part in parts:
            for item in fields(kind):
                if item.name not in part and item.name not in _LATER:
                    raise ValueError(f"lacks {item.name!r}")
        return found


#: Many results, which may lie on a disk: read from the start as often as needed, in the order of
#: the data, and never to be made a list of.
Results: TypeAlias = Collection[TurnResult]


def _changes(variant: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the changed slots of a variant, and those of its smallest version."""
    smallest = variant["minimal"] or {"changed_slots": []}
    yield from (*variant["changed_slots"], *smallest["changed_slots"])


def _drop(plain: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        del plain[key]


def turn_id(data: DialogueSet, dialogue_id: str, turn_index: int) -> str:
    """Return ``<data set>-<split>-<dialogue id>-t<turn index>``.

    >>> turn_id(DialogueSet("multiwoz21", "test", ()), "SNG0073", 2)
    'multiwoz21-test-SNG0073-t2'
    """
    return f"{data.name}-{data.split}-{dialogue_id}-t{turn_index}"


@dataclass(frozen=True, slots=True)
class CampaignStarted:
    """The first turn is about to be run."""

    dialogues: int
    #: Turns of the plan: every turn of each dialogue up to the last one requested.
    turns: int
    #: Contexts that will be asked for if no variant breaks the relation, and at most, about, if all
    #: of them do: what caused a violation and its smallest version are looked for.
    least: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class WindowStarted:
    """Some dialogues are about to be run together, so that batches are full."""

    dialogues: int
    turns: int
    #: Contexts that these dialogues will ask for, second passes apart.
    contexts: int


@dataclass(frozen=True, slots=True)
class BatchDone:
    """The tracker answered one batch."""

    #: Contexts of this batch, and those of them on which the tracker failed.
    contexts: int
    failed: int
    #: Contexts asked so far, over all campaigns that share the predictor.
    calls: int


@dataclass(frozen=True, slots=True)
class TurnDone:
    """A turn has its result; in the order of the plan within a window."""

    result: TurnResult


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """The tracker failed on one context."""

    reason: str
    #: The user utterances of that context, oldest first.
    context: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """The budget ended; sent once, whatever is asked for afterwards."""

    reason: str
    calls: int


@dataclass(frozen=True, slots=True)
class CampaignFinished:
    """Every planned turn has a result."""

    turns: int
    #: Turns that the budget left out.
    skipped: int
    calls: int


Event = (
    CampaignStarted
    | WindowStarted
    | BatchDone
    | TurnDone
    | ErrorSeen
    | BudgetReached
    | CampaignFinished
)
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Do nothing with ``event``: the listener of whoever does not listen."""


class MappedResults(Collection[TurnResult]):
    """Results, each changed by a function when it is read."""

    def __init__(self, results: Results, change: Callable[[TurnResult], TurnResult]) -> None:
        self._results: Final = results
        self._change: Final = change

    def __iter__(self) -> Iterator[TurnResult]:
        return map(self._change, self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, item: object) -> bool:
        return any(turn == item for turn in self)


class JoinedResults(Collection[TurnResult]):
    """Several results, one after the other."""

    def __init__(self, parts: Sequence[Results]) -> None:
        self._parts: Final = parts

    def __iter__(self) -> Iterator[TurnResult]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __contains__(self, item: object) -> bool:
        return any(item in part for part in self._parts)
