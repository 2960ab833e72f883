"""What the answers to a clean turn and to its variants come to: by votes or by a sequential test.

Of a tracker that need not repeat itself. Which of the two it is, the rules of the campaign say; see
`answers` and `sequential`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_dstfuzz.campaign.answers import (
    Answer,
    TrackerFailure,
    all_answers,
    all_asked,
    clean_wanted,
    count_votes,
    settled,
    settled_clean,
    unstable,
    variant_wanted,
)
from pytest_dstfuzz.campaign.attempts import Attempt, TurnAttempts
from pytest_dstfuzz.campaign.results import ChangedSlot, VariantOutcome, Votes
from pytest_dstfuzz.campaign.sequential import Ruling, usual_outcome, votes_of
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.relations.rewrite import UNCHANGED, Expected

Answers = Mapping[Context, Answer]


class Sides(NamedTuple):
    """The two sides that a relation compares."""

    clean: Outcome
    answer: Answer
    #: Whether there are answers for either side, and too few for any: only a test says so.
    undecided: bool = False
    #: Whether it is undecided with answers for both.
    split: bool = False


def doubts_of_clean(rules: CampaignSpec, context: Context, answers: Answers) -> list[Context]:
    """Return what to ask next about a clean turn."""
    if rules.test is not None:
        return rules.test.clean_wanted(context, answers, rules.folding)
    return clean_wanted(context, answers, rules.votes, rules.folding)


def is_unstable(rules: CampaignSpec, context: Context, answers: Answers) -> bool:
    """Whether a system says nothing for good to a clean turn: then there is nothing to compare."""
    if rules.test is not None:
        return rules.test.unstable(context, answers, rules.folding)
    return unstable(context, answers, rules.votes, rules.folding)


def clean_outcome(rules: CampaignSpec, context: Context, answers: Answers) -> Outcome:
    """Return what the answers to a clean turn, the first of which is sound, count as."""
    if rules.test is not None:
        return usual_outcome(rules.folding.alike(all_answers(context, answers), context))
    return settled_clean(context, answers, rules.folding)


def sides_of(
    turn: TurnAttempts,
    attempt: Attempt,
    clean: Context,
    context: Context,
    answers: Answers,
    *,
    expected: Expected = UNCHANGED,
) -> Sides:
    """Return what the answers to a clean context and to another one count as.

    Args:
        turn: of the attempt.
        attempt: whose relation it is.
        clean: what is held against.
        context: of the attempt, or of a part of it.
        answers: to all that was asked.
        expected: what a vote counts as a change is what is not as expected; a test asks the
            relation.
    """
    rules = turn.rules
    if rules.test is None:
        return Sides(*settled(clean, context, answers, expected, rules.folding))
    if isinstance(failed := answers[clean], TrackerFailure):
        return Sides(Outcome(), failed)
    ruling = _ruling(turn, attempt, clean, context, answers)
    undecided, tally = ruling.changed is None, ruling.tally
    split = undecided and min(tally.changed, tally.kept) > 0
    return Sides(ruling.clean, ruling.answer, undecided, split)


def doubts_of_variant(
    turn: TurnAttempts,
    attempt: Attempt,
    context: Context,
    answers: Answers,
    outcome: VariantOutcome,
) -> list[Context]:
    """Return what to ask next about an attempt; ``outcome`` is what it looks like so far."""
    rules, votes = turn.rules, turn.rules.votes
    reference = turn.reference(attempt)
    if rules.test is not None:
        if not turn.asks(attempt) or isinstance(answers[reference], TrackerFailure):
            return []
        ruling = _ruling(turn, attempt, reference, context, answers)
        return rules.test.wanted(reference, context, ruling)
    carried = outcome == "carried"
    if outcome in ("error", "improved"):
        return []
    if not (carried or outcome == "violation" or len(all_asked([context], answers)) > 1):
        return []
    return variant_wanted(
        reference,
        context,
        answers,
        votes=votes,
        lead=votes if carried else 2 * votes - 1,
        expected=turn.expected(attempt),
        folding=rules.folding,
    )


def doubts_of_part(
    turn: TurnAttempts, attempt: Attempt, context: Context, answers: Answers
) -> list[Context]:
    """Return what to ask next about a part of an attempt that first broke the relation."""
    rules, clean = turn.rules, turn.clean_context
    if rules.test is not None:
        return rules.test.wanted(clean, context, _ruling(turn, attempt, clean, context, answers))
    return variant_wanted(
        clean, context, answers, votes=rules.votes, lead=rules.votes, folding=rules.folding
    )


def votes_on(
    turn: TurnAttempts, attempt: Attempt, answers: Answers, changes: Sequence[ChangedSlot]
) -> Votes | None:
    """Return how the answers to an attempt voted; ``None`` where there is only one."""
    rules, clean = turn.rules, turn.reference(attempt)
    if rules.test is None:
        return count_votes(
            clean, attempt.context, answers, changes, turn.expected(attempt), rules.folding
        )
    if isinstance(answers[clean], TrackerFailure):
        return None
    ruling = _ruling(turn, attempt, clean, attempt.context, answers)
    return votes_of(ruling, clean, answers, rules.folding)


def _ruling(
    turn: TurnAttempts, attempt: Attempt, clean: Context, context: Context, answers: Answers
) -> Ruling:
    assert turn.rules.test is not None  # noqa: S101 - who asks has looked

    def breaks(before: Outcome, found: Outcome) -> bool:
        return turn.verdict(attempt, before, found).kind == "violation"

    rules, expected = turn.rules, turn.expected(attempt)
    return turn.rules.test.ruling(clean, context, answers, rules.folding, breaks, expected=expected)
