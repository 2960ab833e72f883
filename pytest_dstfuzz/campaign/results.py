"""The results of a campaign, turn by turn, and its events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Final, Literal, TypeAlias, cast

from pytest_dstfuzz.dialogue.calls import Outcome, OutcomeKind, Transcript
from pytest_dstfuzz.dialogue.dialogues import ByLabel, DialogueSet, Difference
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.relation import Delta, Failure, Move, Side

__all__ = [
    "RUN_OUTCOMES",
    "Event",
    "MappedResults",
    "Results",
    "TurnDone",
    "TurnResult",
    "VariantResult",
]


#: Outcome of a generated variant. Variants with one of the first four were never run.
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
#: Outcome of a turn: that of its worst variant (error > violation > held). ``untested`` = no
#: variant could be run, ``inapplicable`` = the relation does not apply to the turn (``gold`` if the
#: clean prediction is wrong), ``skipped`` = the budget ended first.
TurnOutcome = Literal["held", "violation", "error", "untested", "inapplicable", "skipped"]
#: The edits that break the relation: those of the turn, those of its context, or both together.
Cause = Literal["turn", "context", "both"]
#: The comparison of a changed slot with the label, in words.
BY_LABEL: Final[Mapping[ByLabel, str]] = {
    "right-to-wrong": "was right, now wrong",
    "corrected": "was wrong, now right",
    "wrong-to-wrong": "wrong either way",
}

#: Keys that reports of earlier versions lack.
_LATER: Final = frozenset(
    {"minimal", "votes", "repeated", "minimiser_calls", "clean_votes", "repeat_calls"}
    | {"log_probability", "weight", "in_locked", "noise", "earlier_system"}
    | {"failure", "about", "expected", "moves", "exchanges", "relation", "side"}
    | {"case", "reference", "outcome_kind", "own", "right", "tools", "transcript"}
    | {"model", "left_out", "malformed", "cases"}
    | {"fully_corrected", "conversations", "conversation_calls"}
)
RUN_OUTCOMES: tuple[VariantOutcome, ...] = ("held", "violation", "carried", "improved", "error")


def faults(changes: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the faults of a violation: the changes whose ``is_fault`` is true.

    A relation of another package may report a violation without faults. Then return the changes of
    this turn, or all changes if there are none.
    """
    found = tuple(change for change in changes if change.is_fault)
    return found or tuple(change for change in changes if not change.carried) or tuple(changes)


def not_corrected(changes: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the changes without corrections. If all are corrections, return all."""
    found = tuple(change for change in changes if change.by_label != "corrected")
    return found or tuple(changes)


@dataclass(frozen=True, slots=True)
class SeenRound:
    """A system utterance (``""`` at the start of a dialogue) and the user's answer."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class ContextEdits:
    """The edits of an earlier turn that the tracker saw perturbed."""

    turn_index: int
    edits: tuple[Edit, ...]


def _size(edits: Sequence[Edit], context_edits: Sequence[ContextEdits]) -> int:
    return len(edits) + sum(len(earlier.edits) for earlier in context_edits)


@dataclass(frozen=True, slots=True)
class Minimal:
    """A violation with a minimal set of edits. Its slots do not change if any edit is left out."""

    text: str
    #: User utterances of the earlier turns.
    context: tuple[str, ...]
    #: Remaining edits of the turn; empty if its context is the cause.
    edits: tuple[Edit, ...]
    #: Remaining edits of earlier turns. Turns without edits are left out.
    context_edits: tuple[ContextEdits, ...]
    #: Observed changes for this text in this context.
    changed_slots: tuple[Difference, ...]
    #: Number of contexts that the minimisation needed, without those of the variant's own passes.
    #: Other variants may have requested some of them.
    calls: int = 0

    @property
    def size(self) -> int:
        """Number of remaining edits."""
        return _size(self.edits, self.context_edits)

    @property
    def cause(self) -> Cause:
        """The location of the remaining edits."""
        if not self.edits:
            return "context"
        return "both" if self.context_edits else "turn"


@dataclass(frozen=True, slots=True)
class Votes:
    """The answers to a variant and to its clean turn. Each answer counts as a whole."""

    #: Answers to the variant in its context, including failures.
    asked: int
    #: Answers that break the relation, and answers that keep it.
    changed: int
    kept: int
    #: Answers that keep the relation. The first one breaks it, else there would be no vote.
    same: int
    #: Answers to the clean turn that are the usual one, and those that equal a wrong one.
    clean: int
    against: int


@dataclass(frozen=True, slots=True)
class Unreached:
    """A word of the user that the noise model never mistypes."""

    text: str
    #: The reason: the lock on the word, or that each slip may be read as another word.
    reason: str


@dataclass(frozen=True, slots=True)
class TurnNoise:
    """The noise rates of a turn under a noise model."""

    #: Names of the models.
    models: str
    #: Assumed typing errors per word.
    slip_rate: float
    #: Probability of at least one typing error, given that no lock is touched.
    distorted: float
    #: Probability that a lock is touched.
    locked: float
    #: Whether the variants are a sample from the noise model, with weights.
    sampled: bool
    #: Number of words of the user, and the words that are never mistyped, in their order.
    words: int = 0
    unreached: tuple[Unreached, ...] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of a system's replies to the same turn."""

    #: Number of answers, and number of distinct answers.
    answers: int
    kinds: int
    #: Distances between pairs of answers, from 0 to 2; ``None`` without distances.
    largest: float | None = None
    median: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """The result of a generated variant, which may not have run."""

    #: Number of the variant. In its context, earlier turns have their variants of the same number.
    index: int
    text: str
    #: User utterances of the earlier turns as the tracker saw them.
    context: tuple[str, ...]
    edits: tuple[Edit, ...]
    edit_w: float
    edit_c: float
    #: Natural logarithm of its probability under the noise model, given that no lock is touched.
    #: ``None`` in profiles without a noise model, and for variants that the model cannot make.
    log_probability: float | None = None
    #: Importance weight: the share of all noisy versions of the turn that the variant represents.
    #: ``None`` unless the search is `by_density`.
    weight: float | None = None
    #: Whether one of its own edits is a recoverable slip in a locked word.
    in_locked: bool = False
    #: Whether the whole answer agrees with the label, if the outcome is ``improved``.
    fully_corrected: bool = False
    #: Whether it passed the validity profile and was run. False for a duplicate.
    valid: bool
    #: The reason if it was not run, or the tracker's error, else ``""``.
    reason: str
    #: The prediction; ``None`` if the variant was not run or the tracker failed.
    state: Outcome | None = None
    changed_slots: tuple[Difference, ...] = ()
    context_edits: tuple[ContextEdits, ...] = ()
    #: Cause of a violation; ``None`` if the budget ended before it was known.
    cause: Cause | None = None
    outcome: VariantOutcome
    #: Number of draws, including the accepted draw.
    draws: int = 1
    #: Minimal version of a violation; ``None`` if it was not requested or the budget ended first.
    minimal: Minimal | None = None
    #: Votes if the tracker need not be repeatable; ``None`` if there was one answer.
    votes: Votes | None = None
    #: Whether a repeated request for this context and its clean turn had the same answers. This is
    #: a sample for trackers that must be repeatable. ``None`` = not repeated.
    repeated: bool | None = None
    #: How a violation breaks the relation; ``None`` = ``changed``.
    failure: Failure | None = None
    #: Description of the rewrite for people: ``restaurant-area: north -> south``.
    about: str = ""
    #: Expected changes. All other slots should stay.
    expected: tuple[Delta, ...] = ()
    #: Rounds that the relation repeated, moved, dropped or added.
    moves: tuple[Move, ...] = ()
    #: All exchanges that the tracker saw, if rounds were moved. If ``None``, the tracker saw
    #: ``context`` and ``text``.
    exchanges: tuple[SeenRound, ...] | None = None
    #: The test case of the variant; ``""`` if test cases are not counted.
    case: str = ""
    #: The exchanges behind the reference answer, if they are not a clean context.
    reference: tuple[SeenRound, ...] | None = None
    #: For violations of a relation on tools, the messages and tools in place of the recorded ones.
    transcript: Transcript | None = None

    @property
    def size(self) -> int:
        """Number of edits, including those of its context."""
        return _size(self.edits, self.context_edits)

    @property
    def reduced(self) -> Minimal | None:
        """The minimal version, if it is known and smaller."""
        return self.minimal if self.minimal and self.minimal.size < self.size else None

    @property
    def plain(self) -> Minimal | VariantResult:
        """The minimal version of a violation, if known, or the variant itself."""
        return self.minimal or self


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurn:
    """A turn of a whole conversation with slips. The noise model types all user turns.

    The answer is compared with the answer in the unmodified conversation. Changes count even if
    earlier turns already had them.
    """

    #: Number of the conversation. It is the same at each turn of the conversation.
    number: int
    #: The user's utterance in the conversation. It may be unmodified.
    text: str
    #: ``vacuous`` if neither this turn nor an earlier one has a slip, so that it was not run.
    outcome: VariantOutcome
    changed_slots: tuple[Difference, ...] = ()
    #: Whether this turn or an earlier one has a recoverable slip in a locked word.
    in_locked: bool = False
    #: Whether the whole answer agrees with the label, if the outcome is ``improved``.
    fully_corrected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """The results of a campaign for one turn."""

    #: The name of the turn: ``<data set>-<split>-<dialogue id>-t<turn index>``.
    id: str
    dialogue_id: str
    turn_index: int
    system: str
    user: str
    #: Earlier system utterances, turn by turn.
    earlier_system: tuple[str, ...] = ()
    #: The label, if the data has one.
    label: Outcome | None = None
    clean_state: Outcome | None
    outcome: TurnOutcome
    #: The reason if the turn has no verdict: the tracker's error on the clean turn, or the budget.
    reason: str = ""
    #: Number of distinct contexts that this turn requested, without those that earlier turns of the
    #: dialogue requested. It depends only on the dialogue, and not on the process or the cache.
    calls: int = 0
    #: Number of contexts for the minimisation of its violations. They do not count as calls of the
    #: search.
    minimiser_calls: int = 0
    #: If there were several answers to the clean turn, a number for each answer. Equal answers have
    #: the same number, from 0 in order of appearance, and failures have -1.
    clean_votes: tuple[int, ...] = ()
    #: Number of repeated contexts to check repeatability. They do not count as calls of the search.
    repeat_calls: int = 0
    #: The noise rates; ``None`` in profiles without a noise model.
    noise: TurnNoise | None = None
    #: The turn in whole conversations with slips, by number. A conversation is missing if the
    #: budget ended before all of its turns had an answer.
    conversations: tuple[ConversationTurn, ...] = ()
    #: Number of contexts that only these conversations need. They are not calls of the search.
    conversation_calls: int = 0
    #: Name of the relation, and whether the state should stay or change.
    relation: str = "metamorphic"
    side: Side = "should-not-change"
    #: The tested kind of answer, in ``label``, ``clean_state`` and ``state``.
    outcome_kind: OutcomeKind = "state"
    #: Spread of a system's replies; ``None`` if there was one reply.
    own: Spread | None = None
    #: Whether the clean answer agrees with the label. If ``None``, it must equal the label.
    right: bool | None = None
    #: Names of the tools that the system can call, if tool calls are tested.
    tools: tuple[str, ...] = ()
    #: Maximum number of missing variants after the end of the budget. For a skipped turn, the
    #: number of violations that were not confirmed by further answers.
    left_out: int = 0
    #: Number of answers that could not be parsed, retries included.
    malformed: int = 0
    #: Name of the tracker if a session tests several; otherwise ``""``.
    model: str = ""
    #: Names of all test cases of the dialogue, including those without a variant, if the relation
    #: counts test cases.
    cases: tuple[str, ...] = ()
    #: The variants by number; empty if the turn is skipped or the relation does not apply.
    variants: tuple[VariantResult, ...]

    @property
    def kind(self) -> AnswerKind:
        """The tested kind of answer."""
        return KINDS[self.outcome_kind]

    @property
    def violations(self) -> tuple[VariantResult, ...]:
        """The variants that broke the relation."""
        return tuple(variant for variant in self.variants if variant.outcome == "violation")

    @property
    def is_right(self) -> bool:
        """Whether the clean answer is right.

        It must equal the label. A reply must agree with it.
        """
        return self.clean_state == self.label if self.right is None else self.right

    @property
    def tested(self) -> bool:
        """Whether there is a valid variant."""
        return any(variant.valid for variant in self.variants)

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary. Floats are not rounded.

        Keys for replies and tool calls are left out if states were tested. Keys for labels are left
        out without a label.
        """
        plain: dict[str, Any] = to_json(self)
        rare = ("model", "left_out", "malformed", "cases", "conversations", "conversation_calls")
        _drop(plain, [name for name in rare if not plain[name]])
        for variant in plain["variants"]:
            _drop(variant, [] if variant["fully_corrected"] else ["fully_corrected"])
        if not self.kind.has_tools:
            _drop(plain, ("tools",))
            for variant in plain["variants"]:
                _drop(variant, ("transcript",))
        if self.kind.has_slots:
            _drop(plain, ("outcome_kind", "own", "right"))
            for variant in plain["variants"]:
                _drop(variant, ("case", "reference"))
            for change in _changes(plain):
                _drop(change, ("distance", "why"))
        if self.label is None:
            for change in _changes(plain):
                _drop(change, ("by_label",))
        return plain

    @classmethod
    def from_json(cls, data: object) -> TurnResult:
        """Build the result that `to_json` wrote. Files of earlier versions lack some keys.

        Raises:
            ValueError: a key is missing or has a value of the wrong type.
        """
        found = from_json(cls, data)
        # The types are right, but keys with a default may be missing.
        turn = cast("dict[str, Any]", data)
        parts: list[tuple[type[TurnResult | VariantResult], dict[str, Any]]] = [(cls, turn)]
        parts += [(VariantResult, variant) for variant in turn["variants"]]
        for kind, part in parts:
            for item in fields(kind):
                if item.name not in part and item.name not in _LATER:
                    raise ValueError(f"lacks {item.name!r}")
        return found


#: Results in the order of the data. They may be stored on a disk, so iterate over them as often as
#: you like, but never make a list.
Results: TypeAlias = Collection[TurnResult]


def _changes(turn: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the changed slots of a turn: in its variants, minimal versions and conversations."""
    minimal = [one["minimal"] for one in turn["variants"] if one["minimal"]]
    for one in (*turn["variants"], *minimal, *turn.get("conversations", ())):
        yield from one["changed_slots"]


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
    """The first turn is about to run."""

    dialogues: int
    #: Turns of the plan: every turn of each dialogue up to its last planned one.
    turns: int


@dataclass(frozen=True, slots=True)
class PilotFinished:
    """A part of a campaign with a slow or paid tracker is finished, see `cost.Pilot`."""

    #: Number of contexts requested for this part and for earlier parts.
    asked: int
    #: Estimated number of contexts of the whole campaign.
    calls: float
    #: The ends of its 95 % interval; equal to ``calls`` if they are unknown.
    low: float
    high: float
    #: Turns of the plan, as in `CampaignStarted`.
    planned: int


@dataclass(frozen=True, slots=True)
class WindowStarted:
    """Some dialogues are about to run together, so that batches are full."""

    dialogues: int
    turns: int
    #: Number of contexts of these dialogues, without second passes.
    contexts: int


@dataclass(frozen=True, slots=True)
class BatchDone:
    """The tracker answered one batch."""

    #: Contexts of this batch, and contexts on which the tracker failed.
    contexts: int
    failed: int
    #: Number of contexts so far, over all campaigns that share the predictor.
    calls: int


@dataclass(frozen=True, slots=True)
class TurnDone:
    """A turn has its result. Turns that run together come in the order of the plan."""

    result: TurnResult


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """The tracker failed on one context."""

    reason: str
    #: The user utterances of that context, oldest first.
    context: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """The budget ended. This event is sent once."""

    reason: str
    calls: int


@dataclass(frozen=True, slots=True)
class CampaignFinished:
    """Every planned turn has a result."""

    turns: int
    #: Turns that were not run because the budget ended.
    skipped: int
    calls: int


Event = (
    CampaignStarted
    | PilotFinished
    | WindowStarted
    | BatchDone
    | TurnDone
    | ErrorSeen
    | BudgetReached
    | CampaignFinished
)
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Ignore an event."""


class MappedResults(Collection[TurnResult]):
    """Results that a function changes when they are read."""

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
    """The concatenation of several results."""

    def __init__(self, parts: Sequence[Results]) -> None:
        self._parts: Final = parts

    def __iter__(self) -> Iterator[TurnResult]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __contains__(self, item: object) -> bool:
        return any(item in part for part in self._parts)
