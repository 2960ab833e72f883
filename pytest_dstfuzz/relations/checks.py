"""Checks of relations: of their rewrites, of locks on words, and of the turns they apply to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final, cast, get_args

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Difference
from pytest_dstfuzz.errors import UserError, redact_text
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.own_values import values_of
from pytest_dstfuzz.perturb.draft import KEPT, LOCKED, SHUT
from pytest_dstfuzz.perturb.edits import Hunk, apply_edits, hunks, without
from pytest_dstfuzz.perturb.exact import EXACT, breaks_exact
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import Edit, Word, take_apart, word_list
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.registry import blame_errors
from pytest_dstfuzz.relations.relation import (
    FAILED_EARLIER,
    OTHER_LANGUAGE,
    TOO_LONG,
    BySearch,
    EarlierResult,
    Inapplicable,
    Relation,
    Rewrite,
    Scene,
    Scenes,
    Side,
    TurnRelation,
    TurnStart,
    Verdict,
    VerdictKind,
    begin,
    list_rewrites,
)

__all__ = ["CheckedRelation", "KnownWordsRelation", "WholeContextRelation", "reasons_by_label"]


def veto(scene: Scene, text: str, edits: Sequence[Edit], allowed: Collection[str] = ()) -> str:
    """Return the name of the lock that edits of an utterance break, or ``""`` if they break none.

    A lock protects a word from edits, for example a word of a value. A locked word must stay in its
    place. Some locked words may move but must not disappear. No edit may insert words into a locked
    expression. An inserted word must not have a lock itself (`Locks.guard_of`).

    Args:
        scene: the turn with the states around it.
        text: the edited utterance.
        edits: the edits from the utterance to ``text``.
        allowed: words in lower case that may be inserted even if they have a lock.

    Returns:
        The name of the lock. It is ``glued`` if an edit inserts into an expression, and ``edits``
        if the edits do not lead to ``text``.
    """
    try:
        if apply_edits(scene.turn.user, edits) != text:
            return "edits"
    except ValueError:
        return "edits"
    changed = hunks(edits)
    now = take_apart(text).words
    return (
        _touched(scene, changed, now)
        or (EXACT if breaks_exact(scene.guarded.exact, changed) else "")
        or _parted(scene, changed)
        or _brought(scene, changed, now, allowed)
    )


def _touched(scene: Scene, changed: Sequence[Hunk], now: Sequence[Word]) -> str:
    """Return the lock of a word that the edits removed, or ``""`` if they removed none."""
    mask, standing = scene.guarded, {(word.start, word.text) for word in now}
    kept: Counter[str] = Counter()
    reason_of: dict[str, str] = {}
    for word, role, reason in zip(scene.parts.words, mask.roles, mask.reasons, strict=True):
        if role == KEPT:
            kept[word.lower] += 1
            reason_of.setdefault(word.lower, reason)
        elif reason:
            start = _moved(word, changed)
            if start is None or (start, word.text) not in standing:
                return reason
    kept.subtract(word.lower for word in now)
    return next((reason_of[word] for word in reason_of if kept[word] > 0), "")


def _moved(word: Word, changed: Sequence[Hunk]) -> int | None:
    """Return the new index of a word, or ``None`` if an edit overlaps the word."""
    shift = 0
    for hunk in changed:
        if hunk.end <= word.start:
            shift = hunk.new_end - hunk.end
        elif hunk.start < word.end:
            return None
    return word.start + shift


def _parted(scene: Scene, changed: Sequence[Hunk]) -> str:
    """Return ``glued`` if an edit inserts into an expression of locked words, or ``""``."""
    parts, mask = scene.parts, scene.guarded
    for index in range(1, len(parts.words)):
        locked = mask.reasons[index - 1] and mask.reasons[index]
        if locked and mask.open[index] == SHUT:
            low, high = parts.ends[index - 1], parts.starts[index]
            if any(low <= hunk.start and hunk.end <= high for hunk in changed):
                return "glued"
    return ""


def _brought(
    scene: Scene, changed: Sequence[Hunk], now: Sequence[Word], allowed: Collection[str]
) -> str:
    """Return the lock of an inserted word, or ``""`` if no inserted word has a lock."""
    for word in now:
        new = any(hunk.new_start < word.end and word.start < hunk.new_end for hunk in changed)
        if new and word.lower not in allowed and (reason := scene.guards.guard_of(word.text)):
            return reason
    return ""


@dataclass
class LockShare:
    """Counts of label values: literally in a user's words, and of these, locked ones."""

    #: Number of examined turns, and number of turns whose label has a value.
    turns: int = 0
    of_turns: int = 0
    values: int = 0
    #: Values in the user's utterance of the turn, and values only in an earlier utterance.
    here: int = 0
    before: int = 0
    #: Of the values found in an utterance: the number that a run locks, and the number that their
    #: form alone locks (dates, numbers, names), without labels and schema.
    locked: int = 0
    by_form: int = 0
    #: Slot -> number of its values that are found but not locked.
    loose: Counter[str] = field(default_factory=Counter)

    @property
    def said(self) -> int:
        """Number of values found in an utterance of the user."""
        return self.here + self.before


def lock_share(
    data: DialogueSet,
    kind: AnswerKind,
    lexicon: Lexicon,
    user: Sequence[str] = (),
    most: int = 1000,
) -> LockShare:
    """Count the label values in users' words, and how many of them are locked.

    At most ``most`` turns are counted, spread evenly over the data. Users say a value if its words
    occur one after the other in an utterance. The value is locked if all these words are locked.
    ``user`` holds the locks that the user has set.
    """
    guards = Locks.of(lexicon, data.ontology, data.cue_words, user)
    plain = Locks.of(lexicon, None, (), user)

    def places() -> Iterator[tuple[Dialogue, int, list[tuple[str, str]]]]:
        for dialogue in data.dialogues:
            for turn in dialogue.turns:
                if values := list(kind.label_values(dialogue, turn.index)):
                    yield dialogue, turn.index, values

    found = LockShare(of_turns=sum(1 for _ in places()))
    step = -(-found.of_turns // most) or 1
    for dialogue, index, values in islice(places(), 0, None, step):
        found.turns += 1
        for slot, text in values:
            found.values += 1
            place = _mention(dialogue, index, text)
            if place is None:
                continue
            at, span = place
            found.here += at == index
            found.before += at < index
            turn = dialogue.turns[at]
            known = kind.locked_values(data, turn, None)
            locked = _is_locked(guards, turn.user, known, turn.system, span)
            found.locked += locked
            found.by_form += _is_locked(plain, turn.user, (), turn.system, span)
            if not locked:
                found.loose[slot] += 1
    return found


def _mention(dialogue: Dialogue, index: int, value: str) -> tuple[int, range] | None:
    """Return the last turn with a value in the user's words, and the indices of its words."""
    wanted = word_list(value)
    for at in range(index, -1 if wanted else index, -1):
        words = [word.text.lower() for word in take_apart(dialogue.turns[at].user).words]
        for first in range(len(words) - len(wanted) + 1):
            if words[first : first + len(wanted)] == wanted:
                return at, range(first, first + len(wanted))
    return None


def _is_locked(
    locks: Locks, text: str, values: Sequence[str], system: str, span: Sequence[int]
) -> bool:
    roles = locks.mask(text, take_apart(text), values, system).roles
    return all(roles[index] == LOCKED for index in span)


_MOST_REASONS = 3


def reasons_by_label(relation: Relation, data: DialogueSet, scenes: Scenes) -> Iterator[str]:
    """Yield for each turn why a relation does not apply, or ``""`` if it applies.

    The labels replace the tracker's answers. If answers depend on earlier answers, only dialogues
    with a label on every turn count. Tool calls do not depend on earlier calls, so each turn with a
    label counts. For a relation that edits whole dialogues, there is one reason for each dialogue,
    at its last turn.
    """
    for dialogue in data.dialogues:
        last = len(dialogue.turns) - 1
        labels = [scenes.kind.label(dialogue, index) for index in range(last + 1)]
        if scenes.kind.needs_earlier and None in labels:
            continue
        for index in [last] if relation.unit == "dialogue" else range(last + 1):
            if labels[index] is not None:
                begun = begin(relation, scenes.labelled(relation.name, dialogue, index))
                yield begun.reason if isinstance(begun, Inapplicable) else ""


def why_hopeless(relation: Relation, data: DialogueSet, scenes: Scenes) -> str:
    """Return why a relation applies to no turn of the data, or ``""`` if it may apply to one.

    The search ends at the first turn that the relation applies to. If the data has no labels, only
    `Relation.impossible` can decide.
    """
    if why := relation.impossible(data):
        return (
            f"the relation {relation.name!r} does not apply to the data {data.name!r} (split "
            f"{data.split}): {why}"
        )
    found: Counter[str] = Counter()
    for reason in reasons_by_label(relation, data, scenes):
        if not reason:
            return ""
        found[reason] += 1
    if not found:
        return ""
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{count:,} x {reason}" for reason, count in ranked[:_MOST_REASONS]]
    more = len(ranked) - _MOST_REASONS
    told += [f"{more} other reason{'s' * (more > 1)}"] if more > 0 else []
    count = found.total()
    return (
        f"the relation {relation.name!r} applies to no {relation.unit} of {data.name!r} (split "
        f"{data.split}, {count:,} {relation.unit}{'s' * (count > 1)} with labels): "
        f"{'; '.join(told)}"
    )


#: The kinds of verdicts that a relation of a user may return.
_KINDS: Final = tuple(kind for kind in get_args(VerdictKind) if kind != "inapplicable")
#: Attributes of a relation with a fixed set of values.
_CHOICES: Final = {
    "edits": ("search", "own"),
    "side": ("should-not-change", "should-change"),
    "unit": ("turn", "dialogue"),
}


class CheckedRelation(Relation):
    """Wraps a relation from another package or a user, and checks every result.

    The registry has already checked the attributes and methods of the relation.
    """

    name = inapplicable = expects = source = ""
    edits = "search"
    side: Side = "should-not-change"
    unit = "turn"
    adaptive = needs_labels = False
    reasons: tuple[str, ...] = ()
    on: tuple[OutcomeKind, ...] = get_args(OutcomeKind)

    def __init__(self, relation: Any, where: str) -> None:
        self.wrapped = relation
        #: See `values_of`. A run may change the values.
        self.values = values_of(relation)
        self.name = str(relation.name)
        if re.search(r"[\s,'\"]", self.name):
            raise UserError(
                f"{where}: the name {self.name!r} has a space, a comma or a quote, which lists of "
                "relations do not allow: choose another name"
            )
        for said in ("inapplicable", "expects", "source"):
            setattr(self, said, str(getattr(relation, said, getattr(super(), said))))
        for said in ("adaptive", "needs_labels"):
            setattr(self, said, bool(getattr(relation, said, getattr(super(), said))))
        for said, choices in _CHOICES.items():
            found = getattr(relation, said, getattr(super(), said))
            if found not in choices:
                raise UserError(
                    f"{where}: {said} of {type(relation).__name__} is {found!r}, but must be "
                    f"{' or '.join(map(repr, choices))}"
                )
            setattr(self, said, found)
        self.on = tuple(getattr(relation, "on", super().on))
        if not self.on or not set(self.on) <= {*get_args(OutcomeKind)}:
            raise UserError(
                f"{where}: on of {type(relation).__name__} is {self.on!r}, but must be a tuple of "
                f"one or more of {', '.join(map(repr, get_args(OutcomeKind)))}"
            )
        if getattr(relation, "side", "") == "should-change" and self.expects == super().expects:
            # The default of the base class is for relations whose answers should not change.
            self.expects = "{changes} as the rewrite expects"
        self.reasons = tuple(map(str, getattr(relation, "reasons", (self.inapplicable,))))

    def impossible(self, data: DialogueSet) -> str:
        """Return why the relation can apply to no turn of the data, or ``""``."""
        ask = getattr(self.wrapped, "impossible", super().impossible)
        with blame_errors(f"impossible() of the relation {self.name!r}"):
            return str(ask(data))

    def cases(self, scene: Scene) -> tuple[str, ...]:
        """Return the names of all test cases of the scene's dialogue."""
        ask = getattr(self.wrapped, "cases", super().cases)
        with blame_errors(f"cases() of the relation {self.name!r}"):
            return tuple(map(str, ask(scene)))

    def begin(self, scene: Scene) -> TurnStart:
        """Return the checked result of the relation for a turn."""
        if not overrides(self.wrapped, "begin"):
            return super().begin(scene)
        with blame_errors(f"begin() of the relation {self.name!r}"):
            begun: object = self.wrapped.begin(scene)
        if isinstance(begun, Inapplicable):
            if begun.reason not in self.reasons:
                listed = ", ".join(self.reasons)
                said = f"the reason {begun.reason!r}"
                raise self._wrong("begin", said, f"the reason must be one of {listed}")
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
            with blame_errors(f"begin() of the relation {self.name!r}"):
                try:
                    rewrite = next(found)
                except StopIteration:
                    return
            yield self.checked(rewrite, scene, "begin")

    def checked(self, rewrite: object, scene: Scene, method: str) -> Rewrite:
        """Return a rewrite of a turn if it is valid, otherwise raise an error."""
        if not isinstance(rewrite, Rewrite):
            raise self._wrong(method, rewrite, "each rewrite must be a Rewrite")
        if wrong := unsound(rewrite, scene) or self._expects_nothing(rewrite):
            raise self._wrong(method, rewrite.about or "a rewrite", wrong)
        return rewrite

    def _expects_nothing(self, rewrite: Rewrite) -> str:
        """Return an error text if a rewrite expects no change but its relation requires one."""
        if self.side != "should-change" or not rewrite.expected.stays:
            return ""
        return (
            "it expects no change, but the relation has side = 'should-change'. Give "
            "scene.rewrite() a Delta for each slot that must change, or write side = "
            "'should-not-change' if the state must stay"
        )

    def _wrong(self, method: str, found: object, wrong: str) -> UserError:
        shown = found if isinstance(found, str) else type(found).__name__
        return UserError(f"{method}() of the relation {self.name!r} returned {shown}: {wrong}")

    def applies(self, clean: Outcome, label: Outcome | None) -> bool:
        """Return whether the relation applies. By default it applies to every turn."""
        ask = getattr(self.wrapped, "applies", super().applies)
        with blame_errors(f"applies() of the relation {self.name!r}"):
            return bool(ask(clean, label))

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
        """Return the checked verdict of the relation."""
        return self._verdict(self.wrapped.judge, clean, perturbed, label)

    def _verdict(
        self,
        judge: Callable[[Outcome, Outcome, Outcome | None], object],
        clean: Outcome,
        perturbed: Outcome,
        label: Outcome | None,
    ) -> Verdict:
        with blame_errors(f"judge() of the relation {self.name!r}"):
            verdict: object = judge(clean, perturbed, label)
        if isinstance(verdict, Verdict) and verdict.kind == "inapplicable":
            # The variant has been made and asked. It would count as held.
            raise self._wrong(
                "judge",
                "the verdict inapplicable",
                "whether the relation applies is decided before an edit, by applies() or by an "
                "Inapplicable(reason) from begin()",
            )
        if isinstance(verdict, Verdict) and verdict.kind in _KINDS:
            slots = all(isinstance(change, Difference) for change in verdict.changes)
            if slots and (verdict.changes or verdict.kind != "violation"):
                return self._of_side(verdict, stayed=clean == perturbed)
        raise UserError(
            f"judge() of the relation {self.name!r} returned {redact_text(repr(verdict))}: it must "
            f"return Verdict(kind, changes) with one of the kinds {', '.join(_KINDS)}, and "
            "a violation needs the slots that changed, as diff_states returns them"
        )

    def _of_side(self, verdict: Verdict, *, stayed: bool) -> Verdict:
        """Return a verdict that fits the side of the relation.

        The side says whether the answer must stay or change. ``stayed`` is true if the answer
        stayed.
        """
        if self.side != "should-change" or not stayed:
            return verdict
        if verdict.kind != "violation":
            raise UserError(
                f"judge() of the relation {self.name!r} returned {redact_text(repr(verdict))} for "
                "an answer that did not change, but the relation has side = 'should-change'. "
                "Return a violation with the slots that had to change, skip the turn in "
                "applies() or begin(), or write side = 'should-not-change'"
            )
        return replace(verdict, failure="stuck") if verdict.failure is None else verdict


class _CheckedTurnRelation(TurnRelation):
    """Wraps a relation's object for one turn, and checks the rewrites that it proposes."""

    def __init__(self, relation: CheckedRelation, begun: TurnRelation, scene: Scene) -> None:
        self._relation, self._begun, self._scene = relation, begun, scene

    def propose(self, number: int, draw: int, seen: Sequence[EarlierResult]) -> Rewrite | None:
        """Return the checked proposal of the relation."""
        with blame_errors(f"propose() of the relation {self._relation.name!r}"):
            found = self._begun.propose(number, draw, seen)
        return None if found is None else self._relation.checked(found, self._scene, "propose")


UNKNOWN_WORD: Final = "each rewrite has a new word that is not in the tracker's vocabulary"


class KnownWordsRelation(CheckedRelation):
    """Wraps a relation. Drops rewrites with new words that are not in a vocabulary.

    Niu and Bansal keep only edits within the vocabulary of the tested model.

    Args:
        relation: the relation.
        vocabulary: the words that the model knows.
        words: returns the words of a text as the model reads them.
    """

    def __init__(
        self,
        relation: Relation,
        vocabulary: Collection[str],
        words: Callable[[str], Iterable[str]],
    ) -> None:
        super().__init__(relation, relation.name)
        self.reasons = (*self.reasons, UNKNOWN_WORD)
        self._vocabulary, self._words = frozenset(vocabulary), words

    def begin(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a turn without unknown words, or the reason if there are none."""
        begun = begin(self.wrapped, scene)
        if isinstance(begun, Inapplicable | BySearch):
            return begun
        known = self._vocabulary | self._said(scene.context)
        found = [one for one in list_rewrites(begun) if self._said(one.seen) <= known]
        return found or Inapplicable(UNKNOWN_WORD)

    def _said(self, context: Context) -> set[str]:
        return {word for one in context.exchanges for word in self._words(one.user)}


class WholeContextRelation(CheckedRelation):
    """Wraps a relation of single turns. Its rewrites also change the user's earlier turns.

    Niu and Bansal perturb every utterance of a context. Here, an earlier turn gets the first
    rewrite of the relation, and stays clean if there is none. A rewrite stays as it is if it names
    the slots that change, because a change of an earlier turn would change other slots, too.
    """

    def __init__(self, relation: Relation) -> None:
        super().__init__(relation, relation.name)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a turn and its context, or the reason if there are none."""
        begun = begin(self.wrapped, scene)
        if isinstance(begun, Inapplicable | BySearch) or self.unit != "turn":
            return begun
        texts = {
            index: text for index in range(scene.index) if (text := self._rewritten(scene, index))
        }
        return [self._spread(one, texts) for one in list_rewrites(begun)]

    def _rewritten(self, scene: Scene, index: int) -> str:
        """Return the first rewrite of an earlier turn, or ``""`` if there is none."""
        begun = begin(self.wrapped, replace(scene, index=index))
        if isinstance(begun, Inapplicable | BySearch):
            return ""
        return next((one.seen.user for one in list_rewrites(begun)), "")

    def _spread(self, rewrite: Rewrite, texts: Mapping[int, str]) -> Rewrite:
        """Return a rewrite whose context has the rewritten earlier turns, too."""
        if rewrite.expected.deltas or rewrite.moves:
            return rewrite
        *earlier, last = rewrite.seen.exchanges
        changed = (
            one._replace(user=texts.get(index, one.user)) for index, one in enumerate(earlier)
        )
        seen = replace(rewrite.seen, exchanges=(*changed, last))
        return replace(rewrite, seen=seen, separable=False)


def overrides(relation: object, method: str) -> bool:
    """Return whether a relation's class overrides a method."""
    inherited = getattr(type(relation), method, None) is getattr(Relation, method)
    return not inherited and callable(getattr(relation, method, None))


def unsound(rewrite: Rewrite, scene: Scene) -> str:
    """Return why a rewrite of a turn is invalid, or ``""`` if it is valid."""
    if not rewrite.seen.exchanges or not rewrite.reference.exchanges:
        return "it removes all rounds of the dialogue"
    if rewrite.between:
        return _unsound_between(rewrite)
    last = len(rewrite.reference.exchanges) - 1
    if last > scene.index or rewrite.reference != scene.dialogue.context(last):
        return "its reference is not the unmodified dialogue up to the turn"
    if rewrite.separable and (not rewrite.expected.stays or rewrite.reference != scene.context):
        return "separable=True is allowed only if the state of the turn must stay"
    return _wrong_edits(rewrite, scene) or _wrong_deltas(rewrite, scene, scene.state(last))


def _unsound_between(rewrite: Rewrite) -> str:
    """Return why a rewrite that is compared with another one is invalid, or ``""``."""
    if rewrite.seen == rewrite.reference:
        return "it equals its reference"
    if rewrite.separable:
        return "separable=True is allowed only if the reference is a clean context"
    if rewrite.expected.deltas:
        return (
            "it has deltas, but its reference is another rewrite, whose answer is not known in "
            "advance"
        )
    return ""


def _wrong_edits(rewrite: Rewrite, scene: Scene) -> str:
    if not rewrite.edits:
        # Recorded data other than the texts may differ, for example the tools.
        unsaid = not rewrite.moves and rewrite.seen.exchanges != rewrite.reference.exchanges
        return "it differs from its reference, but has neither edits nor moves" if unsaid else ""
    try:
        text = apply_edits(scene.turn.user, rewrite.edits)
    except ValueError as error:
        return f"its edits do not fit the utterance of the turn: {error}"
    if text != rewrite.seen.user:
        return "its edits do not turn the utterance of the turn into the one in seen"
    alike = rewrite.moves or rewrite.seen == scene.dialogue.context(
        scene.index, {scene.index: text}
    )
    return "" if alike else "it has no moves, but it also changes words outside the turn"


def _wrong_deltas(rewrite: Rewrite, scene: Scene, state: Outcome) -> str:
    ontology = scene.data.ontology
    known = ontology.values if ontology is not None and ontology.complete else None
    for delta in rewrite.expected.deltas:
        slot, before = delta.slot, state.get(delta.slot)
        if delta.before != before:
            said = delta.before or "none"
            return f"its delta of {slot} starts from {said}, but the value is {before or 'none'}"
        if known is not None and slot not in known and slot not in state:
            return f"the data has no slot {slot!r}"
    return ""


#: Maximum number of findings in the message.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class RelationCheck:
    """The result of the checks of a relation on some dialogues."""

    name: str
    #: Number of examined turns or dialogues, and number of those to which the relation applies.
    asked: int
    applicable: int
    rewrites: int
    #: Reason why the relation does not apply -> count, the most frequent first.
    inapplicable: Mapping[str, int]
    #: One sentence for each broken rule, with its place; empty if there are none.
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the relation breaks no rule."""
        return not self.findings

    def assert_passed(self) -> None:
        """Raise an `AssertionError` that lists the faults, if there are any."""
        if self.findings:
            told = "\n".join(f"  {finding}" for finding in self.findings[:_SHOWN])
            count = len(self.findings)
            rules = format_count(count, "rule")
            raise AssertionError(f"the relation {self.name!r} breaks {rules}:\n{told}")


def check_laws(
    relation: Relation,
    data: DialogueSet,
    lexicon: Lexicon,
    seed: int,
    outcome: OutcomeKind | None = None,
) -> RelationCheck:
    """Check a relation on every turn of some dialogues, twice and in different orders.

    Both passes must return the same result. Edits must lead to the text that the tracker reads.
    References must be clean contexts. Expected changes must start from the current state. If a
    rewrite is separable, each of its edits may be left out without making it invalid. The relation
    must list each reason that it returns. ``outcome`` is the kind of answer whose labels are used.
    If it is ``None``, the first supported kind is used.
    """
    places = [
        (dialogue, turn.index)
        for dialogue in data.dialogues
        for turn in dialogue.turns
        if relation.unit == "turn" or turn.index == len(dialogue.turns) - 1
    ]
    guards = Locks.of(lexicon, data.ontology, data.cue_words)
    reply = ReplySettings(outcome=relation.on[0] if outcome is None else outcome)
    findings: list[str] = []

    def ask(order: Sequence[int]) -> dict[int, tuple[Scene, _RewriteResult]]:
        scenes = Scenes(data, lexicon, guards, seed, reply)
        found = {}
        for number in order:
            scene = scenes.labelled(relation.name, *places[number])
            found[number] = scene, _begun(relation, scene, findings)
        return found

    numbers = range(len(places))
    first, again = ask(numbers), ask(numbers[::-1])
    reasons: Counter[str] = Counter()
    rewrites = 0
    for number in numbers:
        scene, begun = first[number]
        if isinstance(begun, Inapplicable):
            reasons[begun.reason] += 1
            listed = (*relation.reasons, relation.inapplicable)
            if begun.reason not in (*listed, FAILED_EARLIER, TOO_LONG, OTHER_LANGUAGE):
                findings.append(f"{_at(scene)}: the reason {begun.reason!r} is not in reasons")
        made = begun if isinstance(begun, list) else []
        rewrites += len(made)
        if begun != again[number][1]:
            findings.append(f"{_at(scene)}: a second call returned another result")
        findings += [f"{_at(scene)}: {wrong}" for one in made if (wrong := _wrong(one, scene))]
    return RelationCheck(
        name=relation.name,
        asked=len(places),
        applicable=len(places) - reasons.total(),
        rewrites=rewrites,
        inapplicable=dict(reasons.most_common()),
        # If both passes raise the same error, this is one finding.
        findings=tuple(dict.fromkeys(findings)),
    )


#: Rewrites, or the reason why there are none. ``None`` if the search edits the turn, or if the
#: relation raised an error.
_RewriteResult = list[Rewrite] | Inapplicable | None


def _begun(relation: Relation, scene: Scene, findings: list[str]) -> _RewriteResult:
    """Return the result of a relation on a turn.

    If the relation raises an error, add the error to the findings.
    """
    if scene.states[scene.index] is None:
        # No answer is known for this turn.
        return None if relation.edits == "search" else Inapplicable(FAILED_EARLIER)
    try:
        begun = begin(relation, scene)
        if isinstance(begun, Inapplicable):
            return begun
        return None if isinstance(begun, BySearch) else list_rewrites(begun)
    except (UserError, ValueError) as error:
        findings.append(f"{_at(scene)}: {error}")
        return None


def _wrong(rewrite: Rewrite, scene: Scene) -> str:
    """Return why a rewrite is invalid, or ``""``. Also apply the rules for single edits."""
    if wrong := unsound(rewrite, scene):
        return f"{rewrite.about or 'a rewrite'}: {wrong}"
    if rewrite.separable:
        for number in range(len(rewrite.edits)):
            rest = without(rewrite.edits, [number])
            if len(rest) != len(rewrite.edits) - 1:
                return f"{rewrite.about}: edit {number} cannot be removed alone"
            apply_edits(scene.turn.user, rest)
    return ""


def _at(scene: Scene) -> str:
    return f"turn {scene.index} of {scene.dialogue.id!r}"
