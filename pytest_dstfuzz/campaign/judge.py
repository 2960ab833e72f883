"""Outcomes of variants from predictions: changes, carried errors and causes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure, all_answers
from pytest_dstfuzz.campaign.attempts import Attempt, TurnAttempts
from pytest_dstfuzz.campaign.results import (
    Cause,
    ConversationTurn,
    Minimal,
    SeenRound,
    TurnOutcome,
    VariantOutcome,
    VariantResult,
    not_corrected,
)
from pytest_dstfuzz.dialogue.dialogues import Context, Difference
from pytest_dstfuzz.search.protocol import Feedback, impurity_difference
from pytest_dstfuzz.trackers.tracker import Prediction

__all__ = [
    "JudgedVariant",
    "changes_before",
    "give_feedback",
    "judge_attempt",
    "judge_conversation",
]


#: The reason why a variant has no verdict if its answers vary.
UNDECIDED: Final = "unstable: the answers do not decide whether there is a change"


@dataclass(frozen=True, slots=True)
class BlameProbe:
    """Two contexts that show the cause of a violation. Each has one half of its edits.

    One half is the edits of the turn, and the other half is the edits of earlier turns.
    """

    #: The variant in its clean context.
    alone: Context
    #: The clean utterance in the perturbed context.
    around: Context


@dataclass(frozen=True, slots=True)
class JudgedVariant:
    """A variant of a turn with its outcome. Its cause may still be open."""

    result: VariantResult
    #: Contexts that reveal the cause; ``None`` if the cause is known or there is none.
    probe: BlameProbe | None = None


def judge_attempt(
    turn: TurnAttempts,
    attempt: Attempt,
    answers: Mapping[Context, Answer],
    before: Collection[Difference],
) -> JudgedVariant:
    """Return the outcome of a variant. ``before`` is the result of `changes_before`."""
    outcome: VariantOutcome
    if not attempt.to_run or not turn.applicable:
        return JudgedVariant(_not_run(turn, attempt))
    reference, folding = turn.reference(attempt), turn.rules.folding
    expected = turn.expected(attempt)
    clean, answer, undecided, _ = turn.rules.decider.sides(
        turn, attempt, reference, attempt.context, answers, expected=expected
    )
    if undecided or isinstance(answer, TrackerFailure):
        return JudgedVariant(_without_verdict(attempt, answer))
    verdict = turn.verdict(attempt, clean, answer.state)
    expected = expected.against(clean)
    changes = tuple(
        replace(folding.told(change, reference), carried=change.bare in before)
        for change in verdict.changes
    )
    outcome = "improved" if verdict.kind == "improved" else "held"
    if verdict.kind == "violation" and not folding.unsure(
        turn.expected(attempt).differs,
        all_answers(reference, answers),
        all_answers(attempt.context, answers),
        reference,
    ):
        carried = all(change.carried for change in not_corrected(changes))
        outcome = "carried" if carried else "violation"
    result = replace(
        _result(attempt, outcome),
        state=folding.said(
            answer.state, all_answers(attempt.context, answers), reference, attempt.context
        ),
        changed_slots=changes,
        expected=expected.deltas,
        fully_corrected=outcome == "improved" and turn.is_right(attempt, clean, answer.state),
    )
    if outcome != "violation":
        return JudgedVariant(result)
    if (rewrite := attempt.proposal.rewrite) is not None:
        given = rewrite.seen.transcript
        other = given if given != turn.clean_context.transcript else None
        result = replace(result, failure=verdict.failure, transcript=other)
    if attempt.moves:
        return JudgedVariant(replace(result, cause="context"))
    if not attempt.users:
        return JudgedVariant(replace(result, cause="turn"))
    index = turn.turn.index
    probe = BlameProbe(
        alone=turn.dialogue.context(index, {index: attempt.variant.text}),
        around=turn.dialogue.context(index, attempt.users),
    )
    return JudgedVariant(result, probe)


def _not_run(turn: TurnAttempts, attempt: Attempt) -> VariantResult:
    """Return the result of a variant that was not run, with the reason."""
    variant = attempt.variant
    if isinstance(turn.clean, TrackerFailure) and attempt.to_run:
        who = turn.rules.kind.words.who
        reason = f"{who} failed on the clean turn: {turn.clean.reason}"
        return _result(attempt, "error", reason)
    if variant.status == "valid":
        return _result(attempt, "duplicate", f"same text as variant {attempt.duplicate_of}")
    return _result(attempt, variant.status, variant.reason or "equal to the clean utterance")


def _without_verdict(attempt: Attempt, answer: Answer) -> VariantResult:
    """Return the result of a variant with a failure or undecided answers."""
    if isinstance(answer, TrackerFailure):
        return _result(attempt, "error", answer.reason)
    return replace(_result(attempt, "unstable", UNDECIDED), state=answer.state)


def judge_conversation(
    turn: TurnAttempts, number: int, attempt: Attempt | None, answers: Mapping[Context, Answer]
) -> ConversationTurn:
    """Return the outcome of a turn in a whole conversation. See `attempt_conversation`."""
    if attempt is None:
        return ConversationTurn(number=number, text=turn.turn.user, outcome="vacuous")
    found = judge_attempt(turn, attempt, answers, ()).result
    return ConversationTurn(
        number=number,
        text=found.text,
        outcome=found.outcome,
        changed_slots=found.changed_slots,
        in_locked=found.in_locked,
        fully_corrected=found.fully_corrected,
    )


def give_feedback(
    turn: TurnAttempts, attempt: Attempt, judged: JudgedVariant, answers: Mapping[Context, Answer]
) -> Feedback:
    """Return the feedback on an attempt for an adaptive search or relation."""
    answer = answers.get(attempt.context) if turn.asks(attempt) else None
    clean = answers.get(turn.reference(attempt)) if turn.rules.own_edits else turn.clean
    if not isinstance(answer, Prediction) or not isinstance(clean, Prediction):
        return Feedback(attempt.proposal)
    return Feedback(
        attempt.proposal,
        answered=True,
        broken=judged.result.outcome == "violation",
        changes=len(judged.result.changed_slots),
        impurity=impurity_difference(clean, answer),
        answer=answer,
    )


def changes_before(
    earlier: Sequence[tuple[TurnAttempts, Mapping[int, JudgedVariant]]], attempt: Attempt
) -> frozenset[Difference]:
    """Return the changes that a variant may have inherited from earlier turns.

    These are the changes of the earlier variants in its context. For a clean context, there are
    none. A duplicate includes the changes of the variant with its text, because that variant
    already reports them.
    """
    found: set[Difference] = set()
    if earlier and not earlier[0][0].rules.adds_up:
        return frozenset()  # A reply does not accumulate, so no change persists.
    for turn, known in earlier if attempt.users else ():
        # If the search is `by_density`, the context has draws from the noise model instead.
        sampled = turn.rules.search.samples(attempt.context_variant)
        other = None if sampled else turn.seen_with(attempt.context_variant)
        if other is not None:
            number = other.index if other.duplicate_of is None else other.duplicate_of
            # A change that an earlier label calls right may be wrong now.
            changes = known[number].result.changed_slots
            found |= {change.bare for change in changes if change.by_label != "corrected"}
    return frozenset(found)


def with_cause(
    turn: TurnAttempts,
    judged: JudgedVariant,
    answers: Mapping[Context, Answer],
    minimal: Minimal | None = None,
) -> VariantResult:
    """Return the result of a violation with its minimal version and cause, if known.

    A violation has two halves: the edits of the turn, and the edits of earlier turns. A half is the
    cause if it alone breaks the relation in a slot that had not changed at an earlier turn. If each
    half alone breaks it, the cause is the turn. If neither does, the cause is both halves together.
    If there is a minimal version, its edits decide instead. The cause is unknown if the budget
    ended before the halves were tested, or if a sequential test is undecided about a half.
    """
    probe = judged.probe
    result = replace(judged.result, minimal=minimal)
    if probe is None or probe.alone not in answers or probe.around not in answers:
        return result
    alone = breaks(turn, judged, probe.alone, answers)
    around = breaks(turn, judged, probe.around, answers)
    if alone is None or around is None:
        return result
    cause: Cause = "turn" if alone else "context" if around else "both"
    return replace(result, cause=cause if minimal is None else minimal.cause)


def breaks(
    turn: TurnAttempts,
    judged: JudgedVariant,
    context: Context,
    answers: Mapping[Context, Answer],
) -> bool | None:
    """Return whether half of a violation's edits alone breaks the relation, see `with_cause`.

    A slot that had changed at an earlier turn does not count. The result is ``None`` if a
    sequential test is undecided and some answers to this half break the relation. If the only
    answer to this half keeps the relation, the result is false.
    """
    attempt = turn.attempts[judged.result.index]
    clean, answer, undecided, split = turn.rules.decider.sides(
        turn, attempt, turn.clean_context, context, answers
    )
    if isinstance(answer, TrackerFailure):
        return False
    carried = {change.bare for change in judged.result.changed_slots if change.carried}
    verdict = turn.verdict(attempt, clean, answer.state)
    wrong = {change.bare for change in not_corrected(verdict.changes)}
    broken = verdict.kind == "violation" and not carried >= wrong
    return None if split or (broken and undecided) else broken


def turn_outcome(turn: TurnAttempts, variants: Iterable[VariantResult]) -> TurnOutcome:
    """Return the outcome of a turn. Its worst variant determines it."""
    if isinstance(turn.clean, TrackerFailure):
        return "error"
    if not turn.applicable:
        return "untested" if turn.unstable else "inapplicable"
    outcomes = {variant.outcome for variant in variants}
    if "error" in outcomes:
        return "error"
    if "violation" in outcomes:
        return "violation"
    return "held" if outcomes & {"held", "carried", "improved"} else "untested"


def _result(attempt: Attempt, outcome: VariantOutcome, reason: str = "") -> VariantResult:
    variant, rewrite = attempt.variant, attempt.proposal.rewrite
    told: dict[str, Any] = {}
    if rewrite is not None:
        told = {"about": rewrite.about, "expected": rewrite.expected.deltas, "moves": rewrite.moves}
        if rewrite.moves:
            exchanges = rewrite.seen.exchanges
            told["exchanges"] = tuple(SeenRound(*exchange) for exchange in exchanges)
        told["case"] = rewrite.case
        if rewrite.between:
            told["reference"] = tuple(SeenRound(*one) for one in rewrite.reference.exchanges)
    return VariantResult(
        **told,
        index=attempt.index,
        text=variant.text,
        context=attempt.context.user_utterances[:-1],
        edits=variant.edits,
        edit_w=variant.edit_w,
        edit_c=variant.edit_c,
        log_probability=variant.log_probability,
        weight=attempt.proposal.weight,
        in_locked=attempt.in_locked,
        valid=attempt.to_run,
        reason=reason,
        outcome=outcome,
        context_edits=attempt.context_edits,
        draws=attempt.draws,
    )
