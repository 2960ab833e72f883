"""The variants of a dialogue and their contexts, made in one or more passes."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.answers import UNSTABLE, Answer, Folding
from pytest_dstfuzz.campaign.results import ContextEdits, TurnNoise, Unreached
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.facts import without_slips
from pytest_dstfuzz.comparisons.polarity import is_fallback
from pytest_dstfuzz.config import ATTACKS, PROFILES
from pytest_dstfuzz.dialogue.calls import AnswerPath, Outcome
from pytest_dstfuzz.dialogue.dialogues import (
    RESTART,
    Again,
    ByLabel,
    Context,
    Dialogue,
    DialogueSet,
    Difference,
    Turn,
    diff_states,
)
from pytest_dstfuzz.errors import unknown_name
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.validity import distinct_words, edit_c, edit_w
from pytest_dstfuzz.perturb.words import Edit, Status, Variant, take_apart, word_list
from pytest_dstfuzz.relations.relation import (
    OTHER_LANGUAGE,
    UNCHANGED,
    BySearch,
    EarlierResult,
    Expectation,
    Inapplicable,
    Move,
    Rewrite,
    TurnBegun,
    TurnRelation,
    Verdict,
    VerdictKind,
    begin,
)
from pytest_dstfuzz.search.protocol import NO_ACTION, Feedback, Proposal, SearchTask, TurnSearch
from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.tracker import Prediction

__all__ = [
    "Attempt",
    "TurnAttempts",
    "attempt_conversation",
    "attempt_turn",
    "begin_turn",
    "lock_values",
]


class FoldedLabel(NamedTuple):
    """A label in the wording of two answers."""

    label: Outcome
    #: The paths at which the label agrees with both answers, although they differ.
    both: frozenset[str] = frozenset()
    #: Those of them at which more than a distance tells the answers apart, such as a number, or at
    #: which the label is longer than both answers. Such a label names two values, or says more than
    #: either answer. It does not tell which one is right.
    undecided: frozenset[str] = frozenset()


def fold_label(
    folding: Folding, label: Outcome, clean: Outcome, found: Outcome, asked: Context
) -> FoldedLabel:
    """Return a label. Replace each of its texts by the text of an answer that agrees with it.

    Args:
        folding: compares texts.
        label: the label from the data.
        clean: the reference answer.
        found: the other answer, aligned to the paths of the clean answer. If the texts of both
            answers agree with the label, the text of ``found`` is used.
        asked: the clean context.
    """
    if folding.exact:
        return FoldedLabel(label)
    right, was_right = (folding.agree(label, one, asked) for one in (found, clean))
    both: set[str] = set()
    by_found = label
    if right or was_right:
        told = dict(found if right else clean)
        both.update(one.slot for one in diff_states(clean, found) if right and was_right)
        by_found = folding.under(found, label) if both else label
    else:
        by_found, by_clean = (folding.under(one, label) for one in (found, clean))
        told = {path: text for path, text in by_found.items() if path not in clean}
        for path in {**clean, **found}:
            agreeing = [
                own[path]
                for own, labelled in ((found, by_found), (clean, by_clean))
                if path in own
                and path in labelled
                and folding.compare(path, own[path], labelled[path], asked).same
            ]
            labelled = by_found if path in found else by_clean
            if agreeing or path in labelled:
                told[path] = agreeing[0] if agreeing else labelled[path]
            both.update([path] if len({*agreeing}) > 1 else [])
    undecided = {
        path
        for path in both
        if folding.apart(path, clean[path], found[path], asked) is None
        or _length(by_found.get(path, "")) > max(map(_length, (clean[path], found[path])))
    }
    return FoldedLabel(Outcome(told), frozenset(both), frozenset(undecided))


def _length(text: str) -> int:
    return len(word_list(text))


def judge_by_label(
    folded: FoldedLabel,
    changes: Iterable[Difference],
    answers: Collection[Outcome],
    labelled: Container[str] | None = None,
) -> tuple[Difference, ...]:
    """Return the changes, each with its verdict by the label, such as ``right-to-wrong``.

    Undecided slots have no verdict. ``labelled`` has the slots, tools and arguments that any label
    of the data names (``None`` = all). Others have no verdict, because the bot may give them
    another name. For the same reason, the loss of a slot that the label lacks has no verdict if the
    label has the same value or name at a slot at which none of the ``answers`` has its value.

    >>> label = Outcome({"area": "north", "food": "thai"})
    >>> clean, found = Outcome({"area": "south", "food": "thai"}), Outcome({"area": "north"})
    >>> changes = diff_states(clean, found)
    >>> [one.by_label for one in judge_by_label(FoldedLabel(label), changes, (clean, found))]
    ['corrected', 'right-to-wrong']
    """
    label, found = folded.label, list[Difference]()
    unmet = {
        _bare(text)
        for slot, value in label.items()
        if not any(one.get(slot) == value for one in answers)
        for text in _texts_of(slot, value)
    }
    for change in changes:
        right = label.get(change.slot)
        unnamed = labelled is not None and change.slot not in labelled
        texts = map(_bare, _texts_of(change.slot, change.before or ""))
        renamed = change.after is None and not unmet.isdisjoint(texts)
        if change.slot in folded.undecided or (right is None and (unnamed or renamed)):
            found.append(change)
            continue
        said: ByLabel = "corrected" if change.after == right else "wrong-to-wrong"
        said = "right-to-wrong" if change.before == right else said
        found.append(replace(change, by_label=said))
    return tuple(found)


def _texts_of(slot: str, value: str) -> tuple[str, ...]:
    """Return the texts by which a slot with another name may be found.

    The value of a call is only its place among the calls, so any other call may be the same.
    """
    return (slot, "call" if AnswerPath.of(slot).is_call else value)


def _bare(text: str) -> str:
    """Return a text without the writing in which names of slots, and values, may differ."""
    return "".join(filter(str.isalnum, text.casefold()))


@dataclass(frozen=True, slots=True)
class Attempt:
    """A variant of a turn, in its context."""

    #: Number of the variant.
    index: int
    #: Number of the variants of earlier turns in its context.
    context_variant: int
    proposal: Proposal
    #: Number of draws for this variant, including the accepted draw. At least 1.
    draws: int
    #: Number of an earlier valid variant of the turn with the same text, if there is one.
    duplicate_of: int | None
    #: Perturbed utterances of earlier turns: index -> text.
    users: Mapping[int, str]
    context: Context
    context_edits: tuple[ContextEdits, ...]
    #: Whether an edit of the turn is a recoverable slip in a locked word.
    in_locked: bool = False

    @property
    def variant(self) -> Variant:
        """The variant."""
        return self.proposal.variant

    @property
    def moves(self) -> tuple[Move, ...]:
        """The rounds that a relation moved."""
        return () if self.proposal.rewrite is None else self.proposal.rewrite.moves

    @property
    def to_run(self) -> bool:
        """Whether the tracker must be called: the variant is valid and no duplicate."""
        return self.variant.valid and self.duplicate_of is None


@dataclass(slots=True)
class TurnAttempts:
    """A turn, the tracker's answer to it, and its variants so far."""

    rules: CampaignSpec
    dialogue: Dialogue
    turn: Turn
    clean_context: Context
    clean: Answer
    #: The rewrites of the turn, a `BySearch` or an `Inapplicable`. ``None`` if the relation was not
    #: called or the tracker failed.
    begun: TurnBegun | None
    #: The prepared utterance and its search. ``None`` if the relation makes the edits.
    source: Source | None
    search: TurnSearch | None
    #: All test cases of the dialogue, if the relation counts test cases.
    cases: tuple[str, ...] = ()
    attempts: dict[int, Attempt] = field(default_factory=dict)
    #: The proposal for each number, with its results once the search has received them.
    seen: list[Feedback] = field(default_factory=list)
    #: Text of a valid variant, or all contexts of a rewrite -> number of the first one.
    numbers: dict[str | tuple[Context, ...], int] = field(default_factory=dict)
    #: The same for variants drawn by density. Contexts of other variants never contain them.
    sampled: dict[str | tuple[Context, ...], int] = field(default_factory=dict)

    @property
    def applicable(self) -> bool:
        """Whether the relation applies to the turn."""
        return self.begun is not None and not isinstance(self.begun, Inapplicable)

    @property
    def inapplicable(self) -> str:
        """Why the relation does not apply to the turn, or ``""`` if it does."""
        return self.begun.reason if isinstance(self.begun, Inapplicable) else ""

    @property
    def unstable(self) -> bool:
        """Whether the answers to the clean turn vary too much for comparisons."""
        return self.inapplicable == UNSTABLE

    def expected(self, attempt: Attempt) -> Expectation:
        """Return the expected changes of the answer."""
        rewrite = attempt.proposal.rewrite
        return UNCHANGED if rewrite is None else rewrite.expected

    def reference(self, attempt: Attempt) -> Context:
        """Return the clean context for comparison with an attempt.

        If the relation compares two rewrites, this is the context of the other rewrite.
        """
        rewrite = attempt.proposal.rewrite
        return self.clean_context if rewrite is None else rewrite.reference

    def asked(self, attempt: Attempt) -> tuple[Context, ...]:
        """Return the contexts to request for an attempt, without clean contexts."""
        rewrite = attempt.proposal.rewrite
        return (attempt.context,) if rewrite is None else rewrite.asks

    def verdict(self, attempt: Attempt, clean: Outcome, found: Outcome) -> Verdict:
        """Return the relation's verdict on an answer to an attempt, or to a part of its edits."""
        if self.expected(attempt).stays:
            found = self._as_meant(attempt, clean, found)
        if isinstance(self.begun, BySearch):
            folded = self._label(attempt, clean, found)
            if folded is not None and folded.both and self.rules.relation.needs_labels:
                # Both answers are right there.
                alike = {path: clean[path] for path in folded.both}
                found, right = (Outcome({**one, **alike}) for one in (found, folded.label))
                folded = folded._replace(label=right)
            verdict = self.begun.judge(clean, found, None if folded is None else folded.label)
            changes = self._labelled(folded, clean, found, verdict)
            # A label says nothing about a slot that no label names.
            judged = {one.by_label for one in changes}
            unjudged = verdict.kind == "improved" and None in judged and folded is not None
            kind: VerdictKind = "violation" if unjudged else verdict.kind
            return replace(verdict, kind=kind, changes=changes)
        expected = self.expected(attempt)
        clean, found = self._against_recorded(attempt, clean, found)
        if expected.differs and is_fallback(self.rules.kind.text(clean), self.rules.reply.fallback):
            return Verdict("held")  # A fallback reply is no answer, so it need not change.
        verdict = expected.judge(clean, found)
        if verdict.kind == "violation" and expected.stays and self._is_clean(attempt, found):
            return Verdict("held")
        folded = self._label(attempt, clean, found) if verdict.changes else None
        changes = self._labelled(folded, clean, found, verdict)
        if changes and all(one.by_label == "corrected" for one in changes):
            return Verdict("improved", changes)
        return replace(verdict, changes=changes)

    def is_right(self, attempt: Attempt, clean: Outcome, found: Outcome) -> bool:
        """Return whether an answer to an attempt agrees with the label."""
        reference, rules = self.reference(attempt), self.rules
        label = rules.kind.label(self.dialogue, len(reference.exchanges) - 1)
        meant = self._as_meant(attempt, clean, found)
        return label is not None and rules.folding.agree(label, meant, reference)

    def _as_meant(self, attempt: Attempt, clean: Outcome, found: Outcome) -> Outcome:
        """Return an answer. Correct the user's typing errors in values of open slots.

        If a system has no list of values, it may copy a misspelt value from the user.
        """
        kind, data, asked = self.rules.kind, self.rules.data, self.reference(attempt)
        meant = {
            path: clean[path]
            for path, value in found.items()
            if value != clean.get(path, value)
            and without_slips(value, asked, attempt.context).lower() == clean[path].lower()
            and not kind.is_closed(data, path)
        }
        return Outcome({**found, **meant}) if meant else found

    def _labelled(
        self, folded: FoldedLabel | None, clean: Outcome, found: Outcome, verdict: Verdict
    ) -> tuple[Difference, ...]:
        """Return the changes with their verdicts by the label, if there is a label."""
        if folded is None or not verdict.changes:
            return verdict.changes
        return judge_by_label(folded, verdict.changes, (clean, found), self.rules.labelled)

    def _against_recorded(
        self, attempt: Attempt, clean: Outcome, found: Outcome
    ) -> tuple[Outcome, Outcome]:
        """Return the two answers to compare. The first one may be the recorded answer."""
        label = self.recorded(attempt)
        if label is None:
            return clean, found
        agrees = self.rules.folding.agree(label, found, self.reference(attempt))
        return label, label if agrees else found

    def recorded(self, attempt: Attempt) -> Outcome | None:
        """Return the recorded answer if the relation compares the attempt with it."""
        rewrite, rules = attempt.proposal.rewrite, self.rules
        if rules.reply.reference != "answer" or rewrite is None or not rewrite.case:
            return None
        if rewrite.between:
            return None  # Two rewrites are compared. The recorded dialogue is not one of them.
        return rules.kind.label(self.dialogue, len(rewrite.reference.exchanges) - 1)

    def _is_clean(self, attempt: Attempt, found: Outcome) -> bool:
        """Return whether ``found`` agrees with the clean answer, if two rewrites are compared."""
        rewrite = attempt.proposal.rewrite
        if rewrite is None or not rewrite.between or not isinstance(self.clean, Prediction):
            return False
        return self.rules.folding.agree(self.clean.state, found, self.clean_context)

    def _label(self, attempt: Attempt, clean: Outcome, found: Outcome) -> FoldedLabel | None:
        """Return the right answer to an attempt in the wording of the two answers, or ``None``."""
        reference, rules = self.reference(attempt), self.rules
        rewrite = attempt.proposal.rewrite
        if rewrite is not None and (rewrite.between or not rewrite.expected.stays):
            return None  # The label does not apply to this rewrite.
        label = rules.kind.label(self.dialogue, len(reference.exchanges) - 1)
        # To a question that a recorded bot did not answer, other replies are right, too.
        if label is None or is_fallback(rules.kind.text(label), rules.reply.fallback):
            return None
        return fold_label(rules.folding, label, clean, found, reference)

    @property
    def to_run(self) -> tuple[Attempt, ...]:
        """The attempts that need a call of the tracker."""
        return tuple(attempt for attempt in self.attempts.values() if self.asks(attempt))

    @property
    def wanted(self) -> set[Context]:
        """The contexts that the attempts need."""
        return {context for attempt in self.to_run for context in self.asked(attempt)}

    @property
    def noise(self) -> TurnNoise | None:
        """The noise rates of the turn. ``None`` if the profile has no noise model."""
        if self.source is None or not PROFILES[self.rules.settings.validity].noise:
            return None
        support = self.source.support
        if support is None:  # The utterance is too long to be edited.
            return None
        noise = self.rules.perturber.noise
        return TurnNoise(
            models=noise.model.name,
            slip_rate=noise.rate,
            distorted=1.0 - support.noisy.probability_clean(noise.rate),
            locked=1.0 - support.noisy.probability_given(noise.rate),
            sampled=self.rules.by_density,
            words=len(self.source.words),
            unreached=tuple(
                Unreached(word, reason)
                for word, reason in self.rules.perturber.unreached(self.source)
            ),
        )

    def touches_lock(self, edits: Sequence[Edit]) -> bool:
        """Return whether an edit is a slip in a locked word. Only noise models make such slips."""
        by_noise = PROFILES[self.rules.settings.validity].noise
        return by_noise and self.source is not None and self.source.touches_lock(edits)

    def asks(self, attempt: Attempt) -> bool:
        """Return whether an attempt needs a call of the tracker."""
        return attempt.to_run and self.applicable and isinstance(self.clean, Prediction)

    def draw(self, number: int) -> tuple[Proposal, int]:
        """Draw a variant from the search. Return its proposal and the number of draws.

        If a variant is invalid or a duplicate, draw again, up to the limit of the settings.
        """
        assert self.search is not None  # noqa: S101 - own edits are drawn elsewhere
        for draw in range(self.rules.settings.redraws + 1):
            proposal = self.search.propose(number, draw, self.seen)
            variant = proposal.variant
            if variant.valid and variant.text not in self.numbers:
                break
            if proposal.weight is not None or self.skips(proposal):
                break
        if variant.valid:
            self.numbers.setdefault(variant.text, number)
            if proposal.weight is not None:
                self.sampled.setdefault(variant.text, number)
        self.seen.append(Feedback(proposal))
        return proposal, draw + 1

    def skips(self, proposal: Proposal) -> bool:
        """Return whether the search makes no variant of the turn in this pass."""
        return not self.rules.own_edits and self.rules.search.waits and not proposal.variant.edits

    def same_as(self, proposal: Proposal, asked: str | tuple[Context, ...]) -> int | None:
        """Return the number of the first attempt with equal contexts, if there is one."""
        known = self.numbers if proposal.weight is None else self.sampled
        first = known.get(asked) if proposal.variant.valid else None
        # A proposal without an attempt has no result to share.
        return first if first in self.attempts else None

    def shown(self, number: int) -> Variant | None:
        """Return the turn's variant in the context ``number``, or ``None`` if it stays clean.

        The turn stays clean in three cases: the attack design demands it, the variant with this
        number is invalid, or the tracker failed on the clean turn. (Without a prediction, variants
        may change words that should be locked.) If the search is `by_density`, the variant is a
        draw from the noise model, which is usually clean.
        """
        settings, place = self.rules.settings, (self.dialogue.id, number, self.turn.index)
        if not isinstance(self.clean, Prediction):
            return None
        if not replaces(settings.attack, settings.seed, *place):
            return None
        if self.rules.search.samples(number):
            return self._noisy(number)
        other = self.seen_with(number)
        return other.variant if other is not None and other.variant.valid else None

    def seen_with(self, number: int) -> Attempt | None:
        """Return the attempt that later turns see in the context ``number``, if any.

        This is the attempt with this number. If the search made no variant in that pass, it is the
        last valid attempt with a lower number.
        """
        found = self.attempts.get(number)
        if found is None or not self.skips(found.proposal):
            return found
        numbers = (n for n in reversed(range(number)) if not self.rules.search.samples(n))
        made = (self.attempts.get(earlier) for earlier in numbers)
        return next((one for one in made if one is not None and one.variant.valid), found)

    def _noisy(self, number: int) -> Variant | None:
        """Return a context's draw from the noise model, or ``None`` if the turn stays clean."""
        rules, source = self.rules, self.source
        if source is None or source.support is None:
            return None
        rng = stream(rules.settings.seed, "context", self.dialogue.id, number, self.turn.index)
        edits = source.support.noisy.draw(rng, rules.perturber.noise.rate)
        variant = rules.perturber.remake(source, edits)
        return variant if variant.valid else None


def begin_turn(
    rules: CampaignSpec,
    dialogue: Dialogue,
    index: int,
    clean: Answer,
    states: Sequence[Outcome | None] | None = None,
    *,
    ask: bool = True,
) -> TurnAttempts:
    """Return a turn that has a clean answer and no variants yet.

    Args:
        rules: the rules of the campaign.
        dialogue: the dialogue of the turn.
        index: the index of the turn, from 0.
        clean: the answer to the clean turn.
        states: the answers to all turns up to this one; ``None`` if earlier answers are unknown.
        ask: whether to call the relation.
    """
    turn = dialogue.turns[index]
    prediction = clean if isinstance(clean, Prediction) else None
    source, search, begun = None, None, None
    cases: tuple[str, ...] = ()
    if prediction is not None and ask:
        if states is None:
            states = [*[None] * index, prediction.state]
        scene = rules.scenes.of(rules.relation.name, dialogue, index, states)
        begun, cases = begin(rules.relation, scene), rules.relation.cases(scene)
        if isinstance(begun, BySearch) and _is_left(rules, turn.user):
            begun = Inapplicable(OTHER_LANGUAGE)
    if not rules.own_edits:
        task = prepare_task(rules, dialogue, index, clean)
        source, search = task.source, rules.search.turn(task)
    return TurnAttempts(
        rules=rules,
        dialogue=dialogue,
        turn=turn,
        clean_context=dialogue.context(index),
        clean=clean,
        begun=begun,
        source=source,
        search=search,
        cases=cases,
    )


def prepare_task(rules: CampaignSpec, dialogue: Dialogue, index: int, clean: Answer) -> SearchTask:
    """Return a turn of a dialogue in the form for a search, given the clean answer."""
    turn = dialogue.turns[index]
    prediction = clean if isinstance(clean, Prediction) else None
    values = lock_values(rules.data, turn, clean, rules.kind)
    answer = "" if prediction is None else rules.kind.text(prediction.state)
    known = {} if rules.sources is None else rules.sources
    name = dialogue.id, index, values, answer
    if name not in known:
        before = (text for past in dialogue.turns[:index] for text in (past.system, past.user))
        known[name] = rules.perturber.prepare(turn.user, values, turn.system, (*before, answer))
    variants = rules.settings.variants
    return SearchTask(dialogue, index, prediction, rules.perturber, known[name], variants)


def _is_left(rules: CampaignSpec, utterance: str) -> bool:
    """Return whether the profile skips an utterance in another language than English."""
    perturber = rules.perturber
    locks = perturber.profile.locks
    return locks and perturber.guards.is_other_language(take_apart(utterance))


def attempt_turn(turns: Sequence[TurnAttempts], place: int, number: int) -> Attempt:
    """Make variant ``number`` of the turn ``turns[place]``, with its context.

    The turns before it must have their variants. Missing variants with lower numbers are drawn
    first, because a search may depend on its earlier proposals.
    """
    turn = turns[place]
    for earlier in range(len(turn.seen), number):
        turn.draw(earlier)
    proposal, draws = turn.draw(number)
    context_variant = proposal.context
    if context_variant is None:
        context_variant = turn.rules.search.context_variant(number)
    seen = [(past.turn.index, past.shown(context_variant)) for past in turns[:place]]
    users = {index: other.text for index, other in seen if other is not None}
    turn.attempts[number] = attempt = Attempt(
        index=number,
        context_variant=context_variant,
        proposal=proposal,
        draws=draws,
        duplicate_of=turn.same_as(proposal, proposal.variant.text),
        users=users,
        context=turn.dialogue.context(place, {**users, place: proposal.variant.text}),
        context_edits=tuple(
            ContextEdits(index, other.edits) for index, other in seen if other is not None
        ),
        in_locked=turn.touches_lock(proposal.variant.edits),
    )
    return attempt


def attempt_conversation(turns: Sequence[TurnAttempts], number: int) -> Iterator[Attempt | None]:
    """Yield each turn of the context ``number``. The noise model types all its turns.

    Yield ``None`` as long as the context is unmodified. `CampaignSpec.conversations` has the
    numbers.
    """
    users: dict[int, str] = {}
    edited: list[ContextEdits] = []
    in_locked = False
    for place, turn in enumerate(turns):
        user, before, drawn = turn.turn.user, tuple(edited), turn.shown(number)
        if drawn is not None:
            users[place] = drawn.text
            edited.append(ContextEdits(place, drawn.edits))
            in_locked = in_locked or turn.touches_lock(drawn.edits)
        if not users:
            yield None
            continue
        # An unmodified turn is run as well if there are slips before it.
        variant = drawn or Variant(user, user, (), 0.0, 0.0, "valid")
        yield Attempt(
            index=number,
            context_variant=number,
            proposal=Proposal(variant, NO_ACTION),
            draws=1,
            duplicate_of=None,
            users={index: text for index, text in users.items() if index != place},
            context=turn.dialogue.context(place, users),
            context_edits=before,
            in_locked=in_locked,
        )


def lock_values(
    data: DialogueSet, turn: Turn, clean: Answer | None, kind: AnswerKind = BELIEF_STATES
) -> tuple[str, ...]:
    """Return the values that edits of this turn must keep, see `AnswerKind.locked_values`."""
    state = clean.state if isinstance(clean, Prediction) else None
    return kind.locked_values(data, turn, state)


def replaces(attack: str, seed: int, dialogue_id: str, variant: int, turn: int) -> bool:
    """Return whether an earlier turn appears as its variant instead of clean.

    With the attack design ``non-cumulative`` it never does, and with ``cumulative`` it always does.
    With ``hybrid``, a fair coin decides for each dialogue, variant and turn. All later turns share
    the result of the coin.
    """
    if attack == "hybrid":
        return derive(seed, "design", dialogue_id, variant, turn) % 2 == 1
    if attack not in ATTACKS:
        raise unknown_name("attack design", attack, ATTACKS)
    return attack == "cumulative"


#: The reason why dialogues are not started again if the tracker is not repeatable.
_VARIES: Final = "the tracker may answer the same question differently each time"


def begin_own(
    rules: CampaignSpec, dialogue: Dialogue, clean: Sequence[Answer], place: int, last: int
) -> TurnAttempts:
    """Return turn ``place`` of a dialogue of ``last + 1`` turns. Its rewrites are shuffled.

    If the relation works on whole dialogues, only the last turn has rewrites.
    """
    whole = rules.relation.unit == "dialogue"
    states = [answer.state if isinstance(answer, Prediction) else None for answer in clean]
    # A relation of turns must not depend on later turns.
    ask = not whole or place == last
    turn = begin_turn(rules, dialogue, place, clean[place], states[: place + 1], ask=ask)
    if isinstance(turn.begun, list):
        turn.begun = _in_order(rules, turn, turn.begun)
    return turn


class _RewriteList(TurnRelation):
    """The rewrites of a turn by a relation that is not adaptive."""

    def __init__(self, rewrites: Sequence[Rewrite]) -> None:
        self._rewrites = rewrites

    def propose(self, number: int, draw: int, seen: Sequence[EarlierResult]) -> Rewrite | None:  # noqa: ARG002 - not adaptive
        """Return variant ``number`` of the relation, or ``None`` if it makes fewer."""
        return self._rewrites[number] if number < len(self._rewrites) and not draw else None


def _in_order(
    rules: CampaignSpec, turn: TurnAttempts, rewrites: Sequence[Rewrite]
) -> _RewriteList | Inapplicable:
    """Return the variants of a relation without duplicates, in random order.

    Of several variants with equal contexts, only the first one is kept.
    """
    different = {rewrite.asks: rewrite for rewrite in map(_as_asked, reversed(rewrites))}
    found = [different[asks] for asks in reversed(different)]
    if rules.decider.again:
        found = [rewrite for rewrite in found if not isinstance(rewrite.seen, Again)]
        if not found:
            return Inapplicable(_VARIES)
    if all(isinstance(rewrite.seen, Again) for rewrite in found):
        return _RewriteList(found)  # All rewrites restart the dialogue, so their order is fixed.
    seed, name = rules.settings.seed, rules.relation.name
    rng = stream(seed, "rewrites", name, turn.dialogue.id, turn.turn.index)
    return _RewriteList([found[place] for place in rng.permutation(len(found))])


def attempt_own(turn: TurnAttempts, number: int) -> Attempt | None:
    """Make rewrite ``number`` of a turn, or return ``None`` if it has no more.

    Missing rewrites with lower numbers are drawn first.
    """
    for earlier in range(len(turn.seen), number):
        _draw(turn, earlier)
    found = _draw(turn, number)
    if found is None:
        return None
    rewrite, proposal, draws = found
    turn.attempts[number] = attempt = Attempt(
        index=number,
        context_variant=number,
        proposal=proposal,
        draws=draws,
        duplicate_of=turn.same_as(proposal, rewrite.asks),
        users={},
        context=rewrite.seen,
        context_edits=(),
    )
    return attempt


def _draw(turn: TurnAttempts, number: int) -> tuple[Rewrite, Proposal, int] | None:
    """Draw a rewrite. Return it with its proposal and the number of draws, or ``None``."""
    begun = turn.begun
    if begun is None or isinstance(begun, tuple | list):
        return None  # The relation does not apply to the turn.
    if len(turn.seen) < number:
        return None  # An earlier number had no rewrite.
    shown = [_shown(one) for one in turn.seen]
    found = None
    for draw in range(turn.rules.settings.redraws + 1):
        proposed = begun.propose(number, draw, shown)
        if proposed is None:
            break
        rewrite = _as_asked(proposed)
        variant = _variant_of(rewrite)
        found = rewrite, Proposal(variant, NO_ACTION, rewrite=rewrite), draw + 1
        if variant.valid and rewrite.asks not in turn.numbers:
            turn.numbers[rewrite.asks] = number
            break
    if found is not None:
        turn.seen.append(Feedback(found[1]))
    return found


def _as_asked(rewrite: Rewrite) -> Rewrite:
    """Return a rewrite. If it restarts the dialogue, mark its context as a repetition."""
    if any(move.kind == "again" for move in rewrite.moves):
        return replace(rewrite, seen=rewrite.seen.again(RESTART))
    return rewrite


def _shown(feedback: Feedback) -> EarlierResult:
    rewrite = feedback.proposal.rewrite
    assert rewrite is not None  # noqa: S101 - the relation makes all proposals of the turn
    return EarlierResult(rewrite, feedback.answered, feedback.broken, feedback.impurity)


def _variant_of(rewrite: Rewrite) -> Variant:
    """Return the newest utterance of a rewrite as a variant with edit rates."""
    clean, text = rewrite.reference.user, rewrite.seen.user
    status: Status = "vacuous" if rewrite.seen == rewrite.reference else "valid"
    word_rate = edit_w(distinct_words(clean), text)
    return Variant(clean, text, rewrite.edits, word_rate, edit_c(clean, text), status)
