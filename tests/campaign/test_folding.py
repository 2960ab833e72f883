"""Replies that say the same count as one: votes, verdicts, and what a system says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toybots import misses

from pytest_dstfuzz.campaign.answers import (
    AS_GIVEN,
    UNSTABLE,
    Answer,
    Folding,
    TrackerFailure,
    kinds_of_answers,
)
from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.deciding import (
    clean_wanted,
    count_votes,
    settle_sides,
    unstable,
    variant_wanted,
)
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Again, Context, Dialogue, DialogueSet, Exchange, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.relations.relation import OTHER_REPLY, Move, Relation, Rewrite, Scene
from pytest_dstfuzz.trackers.tracker import Prediction

CLEAN, VARIANT = (Context((Exchange("", user),)) for user in ("clean", "variant"))


class Near(Comparison):
    """Numbers that are at most two apart say the same: reflexive, symmetric, not transitive."""

    name = "near"

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        del path, asked
        apart = abs(int(before) - int(found)) / 10
        return ComparisonResult(apart <= 0.2, apart, "" if apart <= 0.2 else f"{before} / {found}")


NEAR = Folding(Near())


def replies(context: Context, *texts: str | None) -> dict[Context, Answer]:
    asked = [context, *(Again(context.exchanges, number) for number in range(1, len(texts)))]
    return {one: _answer(text) for one, text in zip(asked, texts, strict=True)}


def _answer(text: str | None) -> Answer:
    return TrackerFailure("down") if text is None else Prediction(reply_outcome(text))


def said(folded: Sequence[Answer]) -> list[str | None]:
    return [one.state["reply"] if isinstance(one, Prediction) else None for one in folded]


def test_each_answer_becomes_the_first_that_says_the_same() -> None:
    given = list(replies(CLEAN, "5", "9", "7", None, "3", "11").values())
    assert said(NEAR.alike(given, CLEAN)) == ["5", "9", "5", None, "5", "9"]


def test_with_equality_nothing_is_looked_at() -> None:
    given = list(replies(CLEAN, "5", None).values())
    assert AS_GIVEN.alike(given, CLEAN) is given
    assert AS_GIVEN.to_clean(given, given, reply_outcome("1"), CLEAN) is given


def test_any_clean_answer_is_a_way_to_say_it_and_all_others_are_one_change() -> None:
    clean = list(replies(CLEAN, "5", "7").values())
    given = list(replies(VARIANT, "9", "2", "20", "90").values())
    # 9 is near to 7 alone, which was folded into 5.
    assert said(NEAR.to_clean(given, clean, reply_outcome("5"), CLEAN)) == ["5", "2", "2", "2"]


def test_a_change_that_is_worded_anew_each_time_wins_its_vote() -> None:
    known = replies(CLEAN, "5", "6", "4") | replies(VARIANT, "20", "30", "40", "50", "60")
    before, after, *_ = settle_sides(CLEAN, VARIANT, known, misses(), folding=NEAR)
    assert (before, said([after])) == ({"reply": "5"}, ["20"])
    votes = count_votes(CLEAN, VARIANT, known, misses(), folding=NEAR)
    assert votes is not None
    assert (votes.changed, votes.kept, votes.clean) == (5, 0, 3)
    wanted = variant_wanted(CLEAN, VARIANT, known, misses(), votes=3, lead=5, folding=NEAR)
    # The change stands; the clean side has to lead by two more.
    assert [one.exchanges for one in wanted] == [CLEAN.exchanges] * 4


def test_another_reply_is_one_that_no_clean_one_says() -> None:
    for texts, kind in ((("9",), "stuck"), (("20",), None)):
        known = replies(CLEAN, "5", "7", "6") | replies(VARIANT, *texts)
        before, after, *_ = settle_sides(
            CLEAN, VARIANT, known, misses(OTHER_REPLY), OTHER_REPLY, NEAR
        )
        assert isinstance(after, Prediction)
        assert OTHER_REPLY.judge(before, after.state).failure == kind


@pytest.mark.parametrize(
    ("texts", "expected", "as_given"),
    [
        (["0", "10", "20", "30", "40", "50"], True, False),
        (["0", "10", "20", "30", "40"], False, False),
        (["0", "10", "20", "30", "40", "1"], False, False),
        (["0", "10"] * 17, True, True),
        (["0", "10", "1"] * 11, False, True),
        (["0", "10", "0"] * 11, False, False),
    ],
)
def test_answers_without_a_majority_are_unstable(
    texts: list[str], expected: bool, as_given: bool
) -> None:
    known = replies(CLEAN, *texts)
    assert unstable(CLEAN, known, 3, NEAR) == expected
    assert unstable(CLEAN, known, 3, AS_GIVEN) == as_given
    if expected:
        assert clean_wanted(CLEAN, known, 3, NEAR) == []


def test_what_a_system_says_differently_by_itself_is_measured() -> None:
    known = list(replies(CLEAN, "5", "7", "9", None).values())
    spread = NEAR.spread(known, CLEAN)
    assert spread is not None
    assert (spread.answers, spread.kinds, spread.largest, spread.median) == (3, 2, 0.4, 0.2)
    assert NEAR.spread(known[:1], CLEAN) is None
    assert kinds_of_answers(CLEAN, replies(CLEAN, "5", "9", "6", None), NEAR) == (0, 1, 0, -1)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8))
def test_folding_twice_changes_nothing(numbers: list[int]) -> None:
    given = list(replies(CLEAN, *map(str, numbers)).values())
    once = NEAR.alike(given, CLEAN)
    assert NEAR.alike(once, CLEAN) == once
    own = NEAR.to_clean(given, given, reply_outcome(said(once)[0] or ""), CLEAN)
    assert len({*said(own)}) == 1  # The answer to the clean turn is never a change.


class Counting:
    """Says how long a question is, now and then one off; ``wild`` ones get any number."""

    def __init__(self) -> None:
        self.asked = 0

    def predict(self, contexts: Sequence[Context]) -> list[str]:
        return [self.reply(context.user) for context in contexts]

    def reply(self, user: str) -> str:
        self.asked += 1
        if "wild" in user:
            return str(self.asked * 1_000)
        words = user.split()
        # It knows one word by its letters alone.
        return str(100 * ("luggage" in words) + len(words) + self.asked % 2)


class Between(Relation):
    """Compares the replies in two longer contexts, one a word longer than the other."""

    name = "between"
    edits = "own"
    on = ("reply",)

    def begin(self, scene: Scene) -> list[Rewrite]:
        first, other = (scene.said(f"{scene.turn.user} {word}") for word in ("now", "luggage now"))
        made = Rewrite(other, first, moves=(Move("add", 0, 0),), case="A-0", between=True)
        back = replace(made, seen=first, reference=other, expected=OTHER_REPLY)
        return [made, replace(made, about="again"), back]


def test_a_rewrite_may_be_held_against_another_one(lexicon: Lexicon) -> None:
    data = DialogueSet("travel", "test", (Dialogue("a", (Turn(0, "", "where is it"),)),))
    settings = Settings.of(outcome="reply", shrink=False)
    predictor = predictor_for(settings, data, Counting(), wobbles=True)  # type: ignore[arg-type]
    plan = [(data.dialogues[0], 0)]
    engine = CampaignEngine(
        settings, data, predictor, lexicon, plan=plan, comparison=Near(), relation=Between()
    )
    (turn,) = engine.run()
    found = {variant.text: variant for variant in turn.variants}
    assert [one.outcome for one in turn.variants].count("violation") == 1
    broken, held = found["where is it luggage now"], found["where is it now"]
    assert (broken.outcome, broken.case, broken.failure) == ("violation", "A-0", "changed")
    assert (held.outcome, len(held.expected)) == ("held", 1)
    assert len(turn.variants) == 2  # Equal contexts are asked once.
    # Three clean ones; five of the variant, and seven of what it is held against.
    assert turn.calls == 3 + 5 + 7


def test_a_bot_that_words_its_replies_anew_is_tested_for_what_it_says(lexicon: Lexicon) -> None:
    users = ("where is my luggage now please", "is there a wild one", "which gate do we leave from")
    turns = tuple(Turn(index, "", user) for index, user in enumerate(users))
    data = DialogueSet("travel", "test", (Dialogue("a", turns),))
    settings = Settings.of(outcome="reply", variants=12, shrink=False, validity="strict")
    predictor = predictor_for(settings, data, Counting(), wobbles=True)  # type: ignore[arg-type]
    plan = [(data.dialogues[0], 2)]
    found = list(
        CampaignEngine(settings, data, predictor, lexicon, plan=plan, comparison=Near()).run()
    )
    assert [turn.outcome for turn in found] == ["violation", "untested", "held"]
    assert found[1].reason == UNSTABLE
    assert found[1].own is not None
    assert found[1].own.kinds == found[1].own.answers
    for variant in found[0].variants:
        missed = "luggage" not in variant.text.split()
        assert (variant.outcome == "violation") == missed
        if missed:
            (change,) = variant.changed_slots
            assert (change.slot, change.carried) == ("reply", False)
            assert change.distance is not None
            assert change.distance > 9
            assert change.why == f"{change.before} / {change.after}"
    assert {one.outcome_kind for one in found} == {"reply"}
    assert [TurnResult.from_json(turn.to_json()) for turn in found] == found
    summary = summarise(found)
    assert summary.noise is not None
    assert summary.noise.expected_noise < 1


def test_a_campaign_from_python_takes_a_function_of_two_texts(lexicon: Lexicon) -> None:
    talk = Dialogue("a", (Turn(0, "", "where is my luggage now please"),))

    def near(before: str, found: str) -> bool:
        return abs(int(before) - int(found)) <= 2

    settings = Settings.of(outcome="reply", variants=8, shrink=False, validity="strict")
    bot = Counting()
    (turn,) = Campaign(bot, [talk], settings, compare=near, lexicon=lexicon)
    for variant in turn.variants:
        missed = "luggage" not in variant.text.split()
        assert (variant.outcome == "violation") == missed
    with pytest.raises(UserError, match="'removal' tests slots, not replies: use one of"):
        Campaign(bot, [talk], settings, relation="removal", lexicon=lexicon)
    with pytest.raises(UserError, match="add outcome='reply' to the settings"):
        Campaign(bot, [talk], compare=near, lexicon=lexicon)
