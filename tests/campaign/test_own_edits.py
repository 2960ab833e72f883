"""Campaigns of relations that edit turns and dialogues themselves, on small trackers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from toybots import ONTOLOGY, WordBot, data_of, talk

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Admissible, Again, BeliefState, Context, Dialogue
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.relations.relation import (
    Delta,
    EarlierResult,
    Inapplicable,
    Move,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    TurnRelation,
    TurnStart,
)
from pytest_dstfuzz.trackers.tracker import Prediction

TALK = talk("d", "a cheap room", "in the north", "chinese food")
NO_VALUE = "no value of the state is mentioned"


class Swap(Relation):
    """The last value that was given becomes each of the others that the data has."""

    name = "swap"
    edits = "own"
    side = "should-change"
    reasons = (NO_VALUE, "no other value is known")

    def begin(self, scene: Scene) -> TurnStart:
        """Put other values in the place of one."""
        for slot in scene.given:
            value = scene.now[slot]
            start = scene.turn.user.find(value)
            others = [other for other in ONTOLOGY.values[slot] if other != value]
            if start >= 0:
                return self.rewrites(scene, slot, value, others) if others else self.no(1)
        return self.no(0)

    def no(self, reason: int) -> Inapplicable:
        """Say why there is none."""
        return Inapplicable(self.reasons[reason])

    def rewrites(
        self, scene: Scene, slot: str, value: str, others: Sequence[str]
    ) -> Iterator[Rewrite]:
        """Yield a rewrite for each of the others."""
        start = scene.turn.user.find(value)
        for other in others:
            delta = Delta(slot, value, Admissible((other,)))
            place = Replacement(start, start + len(value), other, "value")
            yield scene.rewrite([place], [delta])


class Twice(Relation):
    """Each round said twice leaves the state at the end as it is."""

    name = "twice"
    edits = "own"
    unit = "dialogue"

    def begin(self, scene: Scene) -> Iterator[Rewrite]:
        """Say each round twice."""
        for place in range(len(scene.dialogue.turns)):
            rounds = scene.context.exchanges
            seen = Context((*rounds[: place + 1], *rounds[place:]))
            move = Move("repeat", place, place)
            yield Rewrite(seen, scene.context, moves=(move,), about=f"round {place} said twice")


class Restart(Twice):
    """A dialogue that is begun once more ends as it did."""

    name = "begun-again"

    def begin(self, scene: Scene) -> Iterator[Rewrite]:
        """Ask for the last turn once more."""
        yield Rewrite(scene.context, scene.context, moves=(Move("again", 0),))


class Deaf(WordBot):
    """Hears of each slot only what was said first, in whatever dialogue."""

    def state(self, context: Context) -> dict[str, str]:
        said = [word for text in context.user_utterances for word in text.split()]
        return {**super().state(context), **({"hotel-area": "north"} if "south" in said else {})}


class Forgetful(WordBot):
    """Forgets the price where something is said twice."""

    def state(self, context: Context) -> dict[str, str]:
        state, said = super().state(context), context.user_utterances
        if len(set(said)) < len(said):
            state.pop("hotel-price", None)
        return state


def run(
    relation: Relation, tracker: object, *talks: Dialogue, **options: Any
) -> tuple[TurnResult, ...]:
    """Return the results of a campaign on some dialogues."""
    settings = Settings.of(**{"turns": "all", "variants": 3, "validity": "strict", **options})
    data = data_of(*(talks or (TALK,)))
    return tuple(Campaign(tracker, data, settings, relation=relation))


def test_who_follows_has_no_violation() -> None:
    results = run(Swap(), WordBot())
    assert [result.outcome for result in results] == ["inapplicable", "held", "held"]
    assert results[0].reason == "no other value is known"
    assert {(result.relation, result.side) for result in results} == {("swap", "should-change")}
    (variant,) = results[1].variants
    assert (variant.text, variant.about) == ("in the south", "hotel-area: north -> south")
    assert variant.state == BeliefState({"hotel-area": "south", "hotel-price": "cheap"})
    assert variant.context == ("a cheap room",)
    assert (results[1].noise, results[1].calls) == (None, 2)


def test_who_does_not_follow_is_stuck() -> None:
    result = run(Swap(), Deaf())[1]
    (broken,) = result.violations
    assert (broken.failure, broken.cause) == ("stuck", "turn")
    (slot,) = broken.changed_slots
    assert (slot.before, slot.after, slot.expected) == ("north", "north", Admissible(("south",)))
    assert broken.minimal is not None
    assert (broken.minimal.edits, broken.minimal.calls) == (broken.edits, 0)
    assert TurnResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    "options",
    [{"search": "greedy"}, {"attack": "cumulative"}, {"edits": ["keyboard"]}, {"variant": 0}],
    ids=str,
)
def test_neither_search_nor_attack_counts(options: dict[str, Any]) -> None:
    assert run(Swap(), Deaf(), **options) == run(Swap(), Deaf())


def test_whole_dialogues_have_one_result_each() -> None:
    other = talk("e", "a cheap room")
    results = run(Twice(), Forgetful(), TALK, other, turns=2)
    assert [(one.dialogue_id, one.turn_index) for one in results] == [("d", 2), ("e", 0)]
    first = results[0]
    assert (first.outcome, len(first.violations), first.calls) == ("violation", 3, 6)
    broken = first.violations[0]
    assert (broken.cause, broken.failure, broken.edits) == ("context", "changed", ())
    assert broken.exchanges is not None
    assert len(broken.exchanges) == 4
    assert {one.about for one in first.violations} == {f"round {n} said twice" for n in range(3)}


def test_a_dialogue_that_is_begun_once_more_is_asked_once_more() -> None:
    bot = WordBot()
    (result,) = run(Restart(), bot)
    assert (result.outcome, [one.outcome for one in result.variants]) == ("held", ["held"])
    assert [isinstance(context, Again) for context in bot.asked].count(True) >= 1
    (varied,) = run(Restart(), bot, repeatable="no")
    assert (varied.outcome, varied.reason) == (
        "inapplicable",
        "the tracker may answer the same question differently each time",
    )


class Stepwise(Relation):
    """Begins with one word, and goes on from what earlier ones showed."""

    name = "stepwise"
    edits = "own"
    adaptive = True

    def begin(self, scene: Scene) -> TurnRelation:
        """Begin a turn."""
        return Steps(scene)


class Steps(TurnRelation):
    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def propose(self, number: int, draw: int, seen: Sequence[EarlierResult]) -> Rewrite | None:  # noqa: ARG002
        """Stop once something broke."""
        if any(one.broken for one in seen):
            return None
        assert all(one.answered for one in seen)
        word = ("um ", "well ", "boom ")[number]
        return self.scene.rewrite([Replacement(0, 0, word, "put in")])


class Fragile(WordBot):
    def state(self, context: Context) -> dict[str, str]:
        return {} if context.user.startswith("well") else super().state(context)


def test_a_relation_may_learn_from_what_it_saw() -> None:
    first = run(Stepwise(), Fragile())[0]
    assert [one.outcome for one in first.variants] == ["held", "violation"]


class Wobbly(WordBot):
    """Follows but for its very first answer to a rewrite."""

    repeatable = False

    def __init__(self) -> None:
        super().__init__()
        self.heard = 0

    def answer(self, context: Context) -> Prediction:
        state = self.state(context)
        if "south" in context.user:
            self.heard += 1
            if self.heard == 1:
                state["hotel-area"] = "north"
        return Prediction(BeliefState(state))


def test_a_vote_is_on_whether_the_value_is_as_expected() -> None:
    held = run(Swap(), Wobbly(), repeatable="no")[1]
    assert [one.outcome for one in held.variants] == ["held"]
    votes = held.variants[0].votes
    assert votes is not None
    assert (votes.asked, votes.changed) == (5, 1)
    stuck = run(Swap(), Deaf(), repeatable="no")[1]
    (broken,) = stuck.violations
    assert broken.failure == "stuck"
    assert broken.votes is not None
    assert (broken.votes.changed, broken.votes.kept) == (5, 0)


class Broken(Swap):
    """Says that the slot has another value than it has."""

    def begin(self, scene: Scene) -> TurnStart:
        """Say so."""
        delta = Delta("hotel-area", "west", Admissible(("south",)))
        return iter([scene.rewrite([Replacement(0, 0, "x ", "x")], [delta])])


def test_rewrites_of_others_are_checked() -> None:
    with pytest.raises(UserError, match=r"begin\(\) of the relation 'swap' returned hotel-area: w"):
        run(Broken(), WordBot())
