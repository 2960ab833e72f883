"""Variants of turns and dialogues that a relation edits by itself: its rewrites, as attempts.

They are seen in clean contexts alone, neither the search nor the attack design has a say: a change
that an earlier turn carried in would look as if the tracker did not follow. Edit rates are told,
and no limit holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.attempts import Attempt, TurnAttempts, begin_turn
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.dialogue.dialogues import RESTART, Again, Dialogue
from pytest_dstfuzz.perturb.rates import distinct_words, edit_c, edit_w
from pytest_dstfuzz.perturb.types import Status, Variant
from pytest_dstfuzz.relations.rewrite import Inapplicable, Rewrite, Shown, TurnRelation
from pytest_dstfuzz.search.protocol import NO_ACTION, Feedback, Proposal
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

#: Why dialogues are not begun once more with a tracker that need not repeat itself.
_VARIES: Final = "the tracker need not give the same answer twice"


def begin_own(
    rules: CampaignSpec, dialogue: Dialogue, clean: Sequence[Answer], place: int, last: int
) -> TurnAttempts:
    """Return turn ``place`` of a dialogue of ``last + 1`` turns, its rewrites in a drawn order.

    Of whole dialogues only the last turn has any.
    """
    whole = rules.relation.unit == "dialogue"
    states = [answer.state if isinstance(answer, Prediction) else None for answer in clean]
    # A turn is edited without a look at those after it.
    ask = not whole or place == last
    turn = begin_turn(rules, dialogue, place, clean[place], states[: place + 1], ask=ask)
    if isinstance(turn.begun, list):
        turn.begun = _in_order(rules, turn, turn.begun)
    return turn


class _Listed(TurnRelation):
    """The rewrites of a turn, where none of them hangs on what others showed."""

    def __init__(self, rewrites: Sequence[Rewrite]) -> None:
        self._rewrites = rewrites

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite | None:  # noqa: ARG002 - does not look
        """Return rewrite ``number``."""
        return self._rewrites[number] if number < len(self._rewrites) and not draw else None


def _in_order(
    rules: CampaignSpec, turn: TurnAttempts, rewrites: Sequence[Rewrite]
) -> _Listed | Inapplicable:
    """Return rewrites in the order in which they are tried, each once.

    Of those that ask the same the first one stays: its moves or edits tell it.
    """
    different = {rewrite.asks: rewrite for rewrite in map(_as_asked, reversed(rewrites))}
    found = [different[asks] for asks in reversed(different)]
    if rules.decider.again:
        found = [rewrite for rewrite in found if not isinstance(rewrite.seen, Again)]
        if not found:
            return Inapplicable(_VARIES)
    if all(isinstance(rewrite.seen, Again) for rewrite in found):
        return _Listed(found)  # A dialogue is held again from its beginning.
    seed, name = rules.settings.seed, rules.relation.name
    rng = stream(seed, "rewrites", name, turn.dialogue.id, turn.turn.index)
    return _Listed([found[place] for place in rng.permutation(len(found))])


def attempt_own(turn: TurnAttempts, number: int) -> Attempt | None:
    """Make rewrite ``number`` of a turn; ``None`` = it has no more.

    Where it is to be run alone, those of lower numbers are made first.
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
    """Return a rewrite, also as a proposal, and how many it took; ``None`` = there are no more."""
    begun = turn.begun
    if begun is None or isinstance(begun, tuple | list):
        return None  # The relation says nothing about the turn.
    if len(turn.seen) < number:
        return None  # It had no more before.
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
    """Return a rewrite as it is asked: with an answer of its own, where it is asked again."""
    if any(move.kind == "again" for move in rewrite.moves):
        return replace(rewrite, seen=rewrite.seen.again(RESTART))
    return rewrite


def _shown(feedback: Feedback) -> Shown:
    rewrite = feedback.proposal.rewrite
    assert rewrite is not None  # noqa: S101 - the relation makes all proposals of the turn
    return Shown(rewrite, feedback.answered, feedback.broken, feedback.impurity)


def _variant_of(rewrite: Rewrite) -> Variant:
    """Return what a rewrite makes of the newest utterance, with the edit rates."""
    clean, text = rewrite.reference.user, rewrite.seen.user
    status: Status = "vacuous" if rewrite.seen == rewrite.reference else "valid"
    word_rate = edit_w(distinct_words(clean), text)
    return Variant(clean, text, rewrite.edits, word_rate, edit_c(clean, text), status)
