"""Trackers that disagree with themselves: what is asked again, and what counts then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toybots import Play, WordBot, misses, talk

from pytest_dstfuzz.campaign.answers import AS_GIVEN, Answer, TrackerFailure
from pytest_dstfuzz.campaign.deciding import (
    Vote,
    clean_wanted,
    settle_clean,
    settle_sides,
    unstable,
)
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import Votes
from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.dialogue.dialogues import (
    Admissible,
    Again,
    BeliefState,
    Context,
    Exchange,
)
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.relations.relation import Delta, Expectation
from pytest_dstfuzz.trackers.tracker import Prediction

CLEAN, VARIANT = (Context((Exchange("", user),)) for user in ("clean", "variant"))
FAILED = TrackerFailure("timed out")


def answers(context: Context, *states: Mapping[str, str] | TrackerFailure) -> dict[Context, Answer]:
    """Return the answers to a context and to its repetitions."""
    asked = [context, *(Again(context.exchanges, number) for number in range(1, len(states)))]
    return {
        one: state if isinstance(state, TrackerFailure) else Prediction(BeliefState(state))
        for one, state in zip(asked, states, strict=False)
    }


def compare(*known: dict[Context, Answer]) -> tuple[dict[str, str], dict[str, str] | None]:
    """Return the clean state, and the state of the variant; ``None`` = undecided."""
    merged = {context: answer for part in known for context, answer in part.items()}
    clean, answer, undecided, _ = settle_sides(CLEAN, VARIANT, merged, misses())
    assert isinstance(answer, Prediction)
    return dict(clean), None if undecided else dict(answer.state)


def test_without_a_vote_on_a_variant_its_answer_is_compared_with_the_voted_clean_one() -> None:
    first = {"a": "1"}, {"a": "2"}
    assert compare(answers(CLEAN, first[0]), answers(VARIANT, first[1])) == first
    voted = answers(CLEAN, {"a": "1"}, {"a": "3"}, {"a": "3"})
    assert compare(voted, answers(VARIANT, first[1])) == ({"a": "3"}, {"a": "2"})
    assert settle_clean(CLEAN, voted) == {"a": "3"}


def test_an_answer_that_was_never_given_is_not_the_usual_one() -> None:
    # Each slot is absent in most answers, and no answer is empty.
    several = [{name: "1"} for name in "abcdefghijk"]
    early = answers(CLEAN, *several[:7])
    assert len(clean_wanted(CLEAN, early, 3)) > 0
    late = answers(CLEAN, *several * 3)
    assert clean_wanted(CLEAN, late, 3) == []
    assert unstable(CLEAN, late, 3, AS_GIVEN)
    assert not unstable(CLEAN, answers(CLEAN, *several, *[{"a": "1"}] * 22), 3, AS_GIVEN)


@pytest.mark.parametrize(
    ("clean", "variant", "expected"),
    [
        pytest.param(
            [{"a": "1"}, {"a": "1"}, {"a": "1"}],
            [{"a": "2"}, {"a": "1"}, {"a": "1"}],
            ({"a": "1"}, {"a": "1"}),
            id="an accident",
        ),
        pytest.param(
            [{"a": "1"}, {"a": "1"}, {"a": "2"}],
            [{"a": "2"}, {"a": "2"}, {"a": "1"}],
            ({"a": "1"}, {"a": "2"}),
            id="a difference",
        ),
        pytest.param(
            [{"a": "1"}, {}, {}], [{}, {}, {}], ({}, {}), id="the clean answer was the accident"
        ),
        pytest.param(
            [{"a": "1"}, {"a": "1"}, {"a": "1"}],
            [{"a": "2"}, {"a": "3"}, {}],
            ({"a": "1"}, {"a": "2"}),
            id="wrong values that differ",
        ),
        pytest.param(
            [{"a": "1", "b": "1", "c": "1"}] * 3,
            [{"a": "2", "b": "1", "c": "1"}, {"a": "1", "b": "1"}, {"a": "1", "c": "1"}],
            ({"a": "1", "b": "1", "c": "1"}, {"a": "2", "b": "1", "c": "1"}),
            id="another wrong slot each time",
        ),
        pytest.param(
            [{"a": "1"}] * 3,
            [{"a": "2"}, {"a": "3"}, {"a": "1"}, {"a": "1"}],
            ({"a": "1"}, None),
            id="no majority of the variant",
        ),
        pytest.param(
            [{"a": "1"}, {"a": "2"}, {"a": "3"}],
            [{"a": "4"}, {"a": "4"}, {"a": "4"}],
            ({"a": "1"}, None),
            id="no majority of the clean turn",
        ),
        pytest.param(
            [{"a": "1", "b": "1"}] * 3,
            [{"a": "2", "b": "2"}, {"a": "2", "b": "1"}, {"a": "1", "b": "1"}],
            ({"a": "1", "b": "1"}, {"a": "2", "b": "1"}),
            id="slot by slot",
        ),
        pytest.param(
            [{"a": "1"}] * 3, [{"a": "2"}, FAILED, FAILED], ({"a": "1"}, None), id="failures"
        ),
        pytest.param(
            [{"a": "1"}] * 3,
            [{"a": "2"}, FAILED, {"a": "2"}],
            ({"a": "1"}, {"a": "2"}),
            id="two of three are enough",
        ),
        pytest.param([{}] * 3, [{"b": "2"}] * 3, ({}, {"b": "2"}), id="a slot of one side"),
    ],
)
def test_most_of_three_answers_decide(
    clean: list[dict[str, str]],
    variant: list[dict[str, str]],
    expected: tuple[dict[str, str], dict[str, str] | None],
) -> None:
    assert compare(answers(CLEAN, *clean), answers(VARIANT, *variant)) == expected


_states = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))
_three = st.lists(_states, min_size=3, max_size=3)


@given(_three, _three, st.permutations(range(3)))
def test_a_change_needs_two_answers_on_each_side(
    clean: list[dict[str, str]], variant: list[dict[str, str]], order: list[int]
) -> None:
    before, after = compare(answers(CLEAN, *clean), answers(VARIANT, *variant))
    undecided = not any(clean.count(state) >= 2 for state in clean)
    assert (after is None) == undecided
    if after is not None:
        assert clean.count(before) >= 2
        assert (before != after) == (sum(state != before for state in variant) >= 2)
    shuffled = [variant[place] for place in order]
    same, again = compare(answers(CLEAN, *clean), answers(VARIANT, *shuffled))
    assert same == before
    assert (again is None, again == before) == (after is None, after == before)


@pytest.mark.parametrize(
    ("given", "failure"),
    [
        (["south", "east", "west"], None),
        (["west", "centre", "mars"], "other"),
        (["north", "mars", "venus"], "stuck"),
        (["east", "mars"], "undecided"),
    ],
)
def test_wrong_answers_count_together_if_the_answer_should_change(
    given: list[str], failure: str | None
) -> None:
    moved = Admissible(("south", "east", "west"))
    expected = Expectation((Delta("a", "north", moved),))
    known = answers(CLEAN, *[{"a": "north"}] * 3) | answers(VARIANT, *({"a": one} for one in given))
    before, answer, undecided, _ = settle_sides(CLEAN, VARIANT, known, misses(expected), expected)
    assert isinstance(answer, Prediction)
    found = "undecided" if undecided else expected.judge(before, answer.state).failure
    assert found == failure


def test_wrong_answers_that_differ_each_time_are_a_violation(play: Play) -> None:
    wrong = [{"hotel-area": f"place {number}"} for number in range(40)]
    run = vote(play, Fickle(scripts={"nroth": wrong}), talk("d", "north"), {"north": ["nroth"]})
    (result,) = run.campaign.run()
    assert result.outcome == "violation"
    assert result.variants[0].votes == Votes(asked=5, changed=5, kept=0, same=0, clean=7, against=0)
    assert [one.slot for one in result.variants[0].changed_slots] == ["hotel-area"]


def test_a_variant_without_a_majority_is_unstable(play: Play) -> None:
    bot = Fickle(scripts={"nroth": [NOTHING, AREA, None] * 11})
    run = vote(play, bot, talk("d", "north"), {"north": ["nroth"]})
    (result,) = run.campaign.run()
    assert result.variants[0].outcome == "unstable"
    assert result.outcome == "untested"


@dataclass
class Fickle(WordBot):
    """Answers the n-th time as the n-th list says, for the newest utterance; else as `WordBot`."""

    scripts: Mapping[str, Sequence[Mapping[str, str] | None]] = field(default_factory=dict)
    times: Counter[tuple[Exchange, ...]] = field(default_factory=Counter)

    def answer(self, context: Context) -> Prediction | TrackerError:
        script = self.scripts.get(context.user, ())
        number = self.times[context.exchanges]
        self.times[context.exchanges] += 1
        if number >= len(script):
            return super().answer(context)
        state = script[number]
        if state is None:
            return TrackerError("timed out")
        return Prediction(BeliefState(state))


def vote(play: Play, bot: Fickle, dialogue: object, texts: object, **given: object) -> object:
    budget = given.pop("budget", None)
    door = Predictor(bot, given.pop("batch_size", 64), decider=Vote(3), budget=budget)  # type: ignore[arg-type]
    return play(dialogue, texts, tracker=door, **given)


AREA, NOTHING = {"hotel-area": "north"}, dict[str, str]()


def test_one_odd_answer_to_a_variant_is_no_violation(play: Play) -> None:
    bot = Fickle(scripts={"north please": [NOTHING, AREA, AREA]})
    run = vote(play, bot, talk("d", "north"), {"north": ["north please"]})
    (result,) = run.campaign.run()
    assert result.outcome == "held"
    assert result.variants[0].state == AREA
    # The clean turn three times. The change fell three answers behind after four more.
    assert result.calls == run.bot.calls == 8
    assert sum(bot.times.values()) == 8
    assert result.variants[0].votes == Votes(asked=5, changed=1, kept=4, same=4, clean=3, against=0)


def test_one_odd_answer_to_the_clean_turn_is_no_violation(play: Play) -> None:
    bot = Fickle(scripts={"north": [NOTHING, AREA, AREA]})
    run = vote(play, bot, talk("d", "north"), {"north": ["north please"]})
    (result,) = run.campaign.run()
    assert result.outcome == "held"
    assert result.clean_state == AREA


def test_a_difference_that_most_answers_confirm_is_a_violation(play: Play) -> None:
    bot = Fickle(scripts={"nroth": [NOTHING, AREA, NOTHING]})
    run = vote(play, bot, talk("d", "north"), {"north": ["nroth"]})
    (result,) = run.campaign.run()
    assert result.outcome == "violation"
    (change,) = result.variants[0].changed_slots
    assert str(change) == "hotel-area: north -> none"
    assert result.variants[0].cause == "turn"


def test_what_held_is_not_asked_again(play: Play) -> None:
    bot = Fickle()
    texts = {"north": ["north please", "the north", "nroth"]}
    run = vote(play, bot, talk("d", "north"), texts, variants=3)
    (result,) = run.campaign.run()
    assert [variant.outcome for variant in result.variants] == ["held", "held", "violation"]
    asked = {exchanges[-1].user: count for exchanges, count in bot.times.items()}
    # A violation stands once it leads by five, and the clean value by seven.
    assert asked == {"north": 7, "north please": 1, "the north": 1, "nroth": 5}
    assert result.calls == 14
    assert [variant.votes for variant in result.variants] == [None, None, Votes(5, 5, 0, 0, 7, 0)]
    assert result.clean_votes == (0,) * 7


def test_more_votes_ask_for_more(play: Play) -> None:
    bot = Fickle()
    door = Predictor(bot, decider=Vote(5))
    run = play(talk("d", "north"), {"north": ["nroth", "the north"]}, tracker=door, variants=2)
    (result,) = run.campaign.run()
    assert result.variants[0].votes == Votes(9, 9, 0, 0, 11, 0)
    assert run.bot.calls == 9 + 11 + 1


def test_a_change_that_is_neither_here_nor_there_is_given_up(play: Play) -> None:
    bot = Fickle(scripts={"nroth": [NOTHING, AREA] * 20})
    run = vote(play, bot, talk("d", "north"), {"north": ["nroth"]})
    (result,) = run.campaign.run()
    # 33 answers, eleven times as many as a vote takes: the change is ahead by one of them.
    assert result.variants[0].votes == Votes(33, 17, 16, 16, 7, 0)
    assert result.outcome == "violation"


def test_what_a_vote_takes_back_is_not_carried_into_later_turns(play: Play) -> None:
    # At the first turn the area is lost by accident, at the second one for good.
    bot = Fickle(
        scripts={"north !": [NOTHING, AREA, AREA], "cheap !": [{"hotel-price": "cheap"}] * 9}
    )
    run = vote(play, bot, talk("d", "north", "cheap"), {"north": ["north !"], "cheap": ["cheap !"]})
    first, second = run.campaign.run()
    assert (first.outcome, second.outcome) == ("held", "violation")
    assert not second.variants[0].changed_slots[0].carried


def test_the_halves_of_a_violation_are_put_to_the_vote_too(play: Play) -> None:
    dialogue = talk("d", "north", "cheap")
    texts = {"north": ["north !"], "cheap": ["chaep"]}
    # The clean utterance in the perturbed context loses the price once, by accident.
    bot = Fickle()
    original = bot.answer

    def answer(context: Context) -> Prediction:
        first = not bot.times[context.exchanges]
        if context.user_utterances == ("north !", "cheap") and first:
            bot.times[context.exchanges] += 1
            return Prediction(BeliefState(AREA))
        return original(context)

    bot.answer = answer  # type: ignore[method-assign]
    _, second = vote(play, bot, dialogue, texts).campaign.run()
    assert second.outcome == "violation"
    assert second.variants[0].cause == "turn"


def test_an_answer_that_fails_is_no_vote(play: Play) -> None:
    bot = Fickle(scripts={"nroth": [NOTHING, *[None] * 40]})
    run = vote(play, bot, talk("d", "north"), {"north": ["nroth"]})
    (result,) = run.campaign.run()
    assert result.variants[0].outcome == "unstable"
    assert result.calls == 8


def test_a_turn_whose_vote_is_not_paid_for_is_skipped(play: Play) -> None:
    dialogue, texts = talk("d", "north"), {"north": ["nroth"]}
    run = vote(play, Fickle(), dialogue, texts, budget=Budget(BudgetSettings(max_calls=5)))
    (result,) = run.campaign.run()
    assert result.outcome == "skipped"
    assert result.calls == run.bot.calls == 5


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_the_order_of_asking_changes_nothing(play: Play, batch_size: int) -> None:
    scripts = {"nroth": [NOTHING, NOTHING, AREA], "north please": [NOTHING, AREA, AREA]}
    dialogues = tuple(talk(f"d{number}", "north", f"cheap {number}") for number in range(4))
    texts = {"north": ["nroth", "north please"]}
    results = [
        list(
            vote(
                play, Fickle(scripts=scripts), dialogues, texts, variants=2, batch_size=size
            ).campaign.run()
        )
        for size in (batch_size, 7)
    ]
    assert results[0] == results[1]
    outcomes = Counter(v.outcome for turn in results[0] for v in turn.variants)
    assert outcomes == {"violation": 4, "held": 4, "vacuous": 8}


def test_a_tracker_that_agrees_with_itself_is_asked_once(play: Play) -> None:
    bot = WordBot()
    run = play(talk("d", "north"), {"north": ["nroth"]}, bot)
    (result,) = run.campaign.run()
    assert result.outcome == "violation"
    assert len(bot.asked) == result.calls == 2
    assert result.clean_votes == ()
    assert result.variants[0].votes is None
