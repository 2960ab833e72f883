"""Whether the context of a question is as good as its clean one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.contexts import (
    AskedQuestion,
    context_checks_named,
    equivalent,
    read,
    register_context_check,
    stands_alone,
    without_opening,
)

LEXICON = load_lexicon()


def said(name: str, dialogue: Dialogue, *order: int) -> bool | None:
    asked = AskedQuestion(dialogue, order, len(order) - 1, LEXICON)
    return equivalent(context_checks_named([name]), asked)


@pytest.mark.parametrize(
    ("text", "alone", "points"),
    [
        ("What did Ada Quill bake?", True, set()),
        ("Did Ada Quill like her oven?", True, set()),
        ("Where did she sell them?", False, {"she", "them"}),
        ("What songs did they sing?", False, {"they"}),
        ("Who won that medal?", False, {"that"}),
        ("Is there anything that Quill never baked?", False, set()),
        ("Was the album a success?", False, set()),
        ("What was the name of Quill's oven?", True, set()),
        ("Any other loaves?", False, set()),
        ("Why?", False, set()),
    ],
)
def test_what_stands_alone_and_what_points(text: str, alone: bool, points: set[str]):
    reading = read(text, LEXICON)
    assert stands_alone(reading) is alone
    assert reading.pointers() == points


def test_units_are_base_forms_of_what_is_spoken_of():
    reading = read("Two brothers from Bergen helped him in 1848.", LEXICON)
    assert reading.units >= {"brother", "bergen", "help", "1848"}
    assert "him" not in reading.content


@pytest.mark.parametrize(
    ("order", "semantic", "ontology", "needed"),
    [
        ((0, 1), False, True, True),  # As in the clean dialogue.
        ((3,), True, True, True),  # Names whom it is about.
        ((2, 3), True, True, True),
        ((6, 0, 1, 2), False, True, True),  # All that stood before stands before.
        ((0, 5, 2), False, True, None),  # One of two, and not right before.
        ((1, 0, 2, 3, 4), True, True, True),
        ((0, 3, 4), True, True, None),  # What else: another round was not yet said.
        ((0, 1, 2, 3, 5, 4), True, True, None),
    ],
)
def test_contexts_of_the_harbour(
    harbour: Dialogue,
    order: tuple[int, ...],
    semantic: bool,
    ontology: bool,
    needed: bool | None,
):
    assert said("semantic", harbour, *order) is semantic
    assert said("ontology", harbour, *order) is ontology
    assert said("needed", harbour, *order) is needed


def test_a_context_is_lost_where_nothing_says_what_is_pointed_to(harbour: Dialogue):
    bare = without_opening(harbour)
    assert said("needed", bare, 6, 2) is None  # Its answer takes nothing from earlier rounds.
    moved = AskedQuestion(bare, (3, 5, 4), 1, LEXICON)
    assert equivalent(context_checks_named(["needed"]), moved) is None
    assert said("mortar", bare, 1) is True  # Theirs: nothing is shared, so nothing is needed.


def test_the_story_is_the_opening(harbour: Dialogue):
    assert said("story", without_opening(harbour), 6) is False
    assert said("story", harbour, 6) is True
    assert said("story", harbour, 3) is False  # Points nowhere: no matter for the story.


@given(st.permutations(range(6)))
def test_the_clean_order_passes_and_checks_hang_on_the_question_alone(order: list[int]):
    harbour = _kept()
    for name in ("needed", "ontology", "mortar"):
        assert said(name, harbour, *range(6)) is True
    asked = AskedQuestion(harbour, tuple(order), 3, LEXICON)
    longer = AskedQuestion(harbour, (*order, 0), 3, LEXICON)
    for name in ("needed", "semantic", "ontology", "story"):
        checks = context_checks_named([name])
        assert equivalent(checks, asked) == equivalent(checks, longer)


def _kept() -> Dialogue:
    from pytest_dstfuzz.dialogue.dialogues import Turn  # noqa: PLC0415
    from tests.relations.contexts.harbour import ROUNDS  # noqa: PLC0415 - no fixture in @given

    rounds = next(iter(ROUNDS.values()))
    systems = ["Lerwick harbour", *(answer or "" for _, answer, _ in rounds)]
    return Dialogue("h", tuple(Turn(n, systems[n], one[0]) for n, one in enumerate(rounds)))


def test_names_and_ones_own(harbour: Dialogue):
    assert [one.name for one in context_checks_named(["mortar", "story", "needed"])] == [
        *("semantic", "ontology", "story"),
        "needed",
    ]
    with pytest.raises(UserError, match=r"needed"):
        context_checks_named(["neded"])

    class Never:
        name = "never"

        def equivalent(self, asked: AskedQuestion) -> bool:
            return asked.turn < 0

    with pytest.raises(UserError, match=r"Never is a class: register an instance, Never\(\)"):
        register_context_check(Never)  # type: ignore[arg-type]  # likewise
    register_context_check(Never())
    assert said("never", harbour, 0) is False
    with pytest.raises(UserError, match="lacks a name and a method equivalent"):
        register_context_check(object())  # type: ignore[arg-type]  # what a suite may do


class LengthJudge:
    """Calls a context equivalent if it has three rounds or more."""

    def __init__(self) -> None:
        self.asked: list[tuple[Context, Context]] = []

    def keeps_context(self, clean: Context, changed: Context) -> bool | None:
        self.asked.append((clean, changed))
        return len(changed.exchanges) >= 3


def test_a_judge_sees_the_clean_and_the_changed_conversation(harbour: Dialogue):
    judge = LengthJudge()
    (check,) = context_checks_named(["judge"], judge)
    assert check.equivalent(AskedQuestion(harbour, (0, 1), 1, LEXICON))
    assert judge.asked == []  # The clean context needs no call.
    short = AskedQuestion(harbour, (2, 1), 1, LEXICON)
    assert check.equivalent(short) is False
    assert check.equivalent(AskedQuestion(harbour, (3, 2, 1), 2, LEXICON)) is True
    (before, after), _ = judge.asked
    assert before.user_utterances == tuple(harbour.turns[place].user for place in (0, 1))
    assert after == short.context()
    # Before a run, another check stands in for the model.
    (alone,) = context_checks_named(["judge"])
    assert alone.equivalent(short) is said("needed", harbour, 2, 1)


def test_a_judge_of_contexts_needs_an_address(harbour: Dialogue):
    data = DialogueSet("harbour", "test", (harbour,))
    settings = Settings.of(outcome="reply", relation="same-context", context_checks=("judge",))
    with pytest.raises(UserError, match="--dst-compare=numbers,judge:openai"):
        CampaignSpec.of(settings.variant, data, LEXICON, reply=settings.reply)
