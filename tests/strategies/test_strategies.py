"""Laws of the strategies, and a planted weakness that they find and shrink."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings, VariantSettings
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.engine import GRID, ActionSpace
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Action, Variant
from pytest_dstfuzz.relations.relation import Rewrite
from pytest_dstfuzz.strategies import actions, dialogues, rewrites, variants
from pytest_dstfuzz.transformations import TRANSFORMATIONS

SAMPLE = load_dialogues("sample", "test")
HOTEL = Dialogue(
    "hotel",
    (
        Turn(
            0,
            "",
            "i need a cheap hotel in the centre please",
            BeliefState({"hotel-area": "centre", "hotel-pricerange": "cheap"}),
        ),
        Turn(1, "Anything else?", "ok", BeliefState({})),
    ),
)
ONTOLOGY = Ontology({"hotel-area": ("north", "dontcare"), "hotel-stars": ("4",), "hotel-name": ()})
QUICK = settings(settings.get_profile("dstfuzz"), max_examples=25, database=None)


def forgetful(context: Context) -> dict[str, str]:
    """A tracker with a planted weakness: it needs the word before the area."""
    state = {"hotel-pricerange": "cheap"} if "cheap" in context.user else {}
    return {**state, "hotel-area": "centre"} if "the centre" in context.user else state


def test_a_planted_weakness_shrinks_to_the_one_edit() -> None:
    seen: list[Variant] = []

    # No `explain` phase: what is asked for is the variant.
    @settings(
        settings.get_profile("dstfuzz"),
        max_examples=300,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
    )
    @given(variants(HOTEL, 0, settings=Settings.of(edits=("word_insert", "word_drop"))))
    def test_tracker(variant: Variant) -> None:
        seen.append(variant)
        assert forgetful(HOTEL.context(0, {0: variant.text})) == forgetful(HOTEL.context(0))

    with pytest.raises(AssertionError):
        test_tracker()
    # What hypothesis runs last is what it reports.
    (edit,) = seen[-1].edits
    assert seen[-1].valid
    assert "the centre" not in seen[-1].text
    at = HOTEL.turns[0].user.index("the centre")
    assert at - 1 <= edit.start <= at + len("the ")


@pytest.mark.parametrize("validity", ["strict", "natural", "edit-rate"])
def test_variants_are_those_of_a_campaign(validity: str) -> None:
    chosen = Settings.of(validity=validity)
    perturber = CampaignSpec.of(chosen.variant, SAMPLE, load_lexicon()).perturber
    dialogue = SAMPLE.dialogues[0]
    turn = dialogue.turns[0]
    assert turn.state is not None
    source = perturber.prepare(turn.user, sorted(set(turn.state.values())), turn.system)

    @QUICK
    @given(variants(dialogue, 0, data=SAMPLE, settings=chosen))
    def law(variant: Variant) -> None:
        assert variant.valid
        assert variant.source == turn.user
        assert variant.edits
        assert apply_edits(turn.user, variant.edits) == variant.text
        assert perturber.check(source, variant.text, variant.edits) == ("valid", "")

    law()


def test_settings_reach_the_perturber() -> None:
    chosen = Settings.of(edits=("char_drop",), transformations=1, lock=("need",), max_edit_rate=0.2)

    @QUICK
    @given(variants(HOTEL, 0, settings=chosen))
    def law(variant: Variant) -> None:
        assert {edit.transformation for edit in variant.edits} == {"char_drop"}
        assert re.search(r"\bneed\b", variant.text)
        assert variant.edit_c <= 0.2

    law()


def test_the_same_seed_draws_the_same() -> None:
    def drawn() -> list[Variant]:
        seen: list[Variant] = []

        @settings(QUICK, derandomize=True)
        @given(variants(HOTEL, 0))
        def collect(variant: Variant) -> None:
            seen.append(variant)

        collect()
        return seen

    assert drawn() == drawn()


@QUICK
@given(
    st.data(), st.integers(1, 6), st.lists(st.sampled_from(TRANSFORMATIONS), min_size=1, max_size=3)
)
def test_actions_are_points_of_the_cube(data: st.DataObject, most: int, only: list[str]) -> None:
    action = data.draw(actions(most, edits=only))
    steps = ActionSpace().decode(action)
    assert 1 <= len(steps) == action.k <= most
    assert {step.transformation for step in steps} <= set(only)
    assert all(value * GRID == int(value * GRID) for value in action.vector)
    assert ActionSpace().encode(steps) == action


def test_the_smallest_action() -> None:
    seen: list[Action] = []

    @settings(QUICK, derandomize=True, phases=[Phase.generate, Phase.shrink])
    @given(actions(6))
    def any_action(action: Action) -> None:
        seen.append(action)
        raise AssertionError

    with pytest.raises(AssertionError):
        any_action()
    (step,) = ActionSpace().decode(seen[-1])
    (parameters,) = step.repetitions
    assert not any(parameters)


@QUICK
@given(dialogues(SAMPLE, max_turns=3))
def test_dialogues_of_a_data_set_are_beginnings(dialogue: Dialogue) -> None:
    (whole,) = (one for one in SAMPLE.dialogues if one.id == dialogue.id)
    assert 1 <= len(dialogue.turns) <= 3
    assert dialogue.turns == whole.turns[: len(dialogue.turns)]


@QUICK
@given(dialogues(ONTOLOGY))
def test_made_up_dialogues_say_their_labels(dialogue: Dialogue) -> None:
    before: dict[str, str] = {}
    for index, turn in enumerate(dialogue.turns):
        assert turn.index == index
        assert turn.state is not None
        assert before.keys() <= turn.state.keys() <= {"hotel-area", "hotel-stars"}
        for slot, value in turn.state.items():
            if before.get(slot) != value:
                what = slot.replace("-", " ")
                said = f"do not care about the {what}" if value == "dontcare" else value
                assert said in turn.user
        before = dict(turn.state)


def test_dialogues_and_variants_together() -> None:
    @QUICK
    @given(st.data())
    def law(data: st.DataObject) -> None:
        dialogue = data.draw(dialogues(ONTOLOGY, max_turns=2))
        variant = data.draw(variants(dialogue))
        assert variant.source == dialogue.turns[-1].user

    law()


def test_a_strategy_is_short_to_write_down() -> None:
    """Hypothesis writes it down where a draw fails, and warns of long ones."""
    dialogue = a_draw(dialogues(ONTOLOGY, max_turns=1))()
    assert isinstance(dialogue, Dialogue)
    strategy = variants(dialogue)
    strategy.validate()
    assert len(repr(strategy)) < 1000


def a_draw(strategy: st.SearchStrategy[object]) -> Callable[[], object]:
    return lambda: find(strategy, lambda _: True)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: actions(7), "transformations must be from 1 to 6, not 7"),
        (lambda: actions(edits=["word_drp"]), "Did you mean 'word_drop'"),
        (
            lambda: variants(HOTEL, 2),
            "there is no turn 2 in dialogue 'hotel': it has 2 turns",
        ),
        (lambda: variants(HOTEL, -1), "there is no turn -1"),
        (lambda: variants(Dialogue("empty", ())), "has 0 turns"),
        (lambda: dialogues(SAMPLE, max_turns=0), "max_turns must be at least 1, not 0"),
        (lambda: dialogues(DialogueSet("x", "test", ())), "'x' has no dialogues"),
        (lambda: dialogues(Ontology({"a": ()})), "no slot with values"),
        (
            a_draw(
                variants(HOTEL, 0, settings=Settings(variant=VariantSettings(validity="strct")))
            ),
            "mean 'strict'",
        ),
        (
            a_draw(variants(HOTEL, settings=Settings.of(lock=("ok",), edits=("char_drop",)))),
            "allows no edit of turn 1 of dialogue 'hotel'",
        ),
    ],
)
def test_mistakes(use: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        use()


def test_the_profile_is_registered_and_not_loaded() -> None:
    assert settings.get_profile("dstfuzz").deadline is None
    code = (
        "from hypothesis import settings\n"
        "before = settings.default\n"
        "import pytest_dstfuzz.strategies\n"
        "assert settings.default is before\n"
        "settings.load_profile('dstfuzz')\n"
        "assert settings.default.deadline is None\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_without_hypothesis_the_extra_is_named() -> None:
    code = (
        "import sys\n"
        "sys.modules['hypothesis'] = None\n"
        "from pytest_dstfuzz.errors import MissingExtraError\n"
        "try:\n"
        "    import pytest_dstfuzz.strategies\n"
        "except MissingExtraError as error:\n"
        "    assert 'pytest-dstfuzz[hypothesis]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('imported')\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_rewrites_are_those_of_the_relation() -> None:
    dialogue, index = next(
        (dialogue, turn.index)
        for dialogue in SAMPLE.dialogues
        for turn in dialogue.turns
        if "cheap" in turn.user
    )
    found: list[Rewrite] = []

    @given(rewrites(dialogue, index, relation="stop-word-dropout", data=SAMPLE))
    def collect(rewrite: Rewrite) -> None:
        assert rewrite.reference == dialogue.context(index)
        found.append(rewrite)

    collect()
    assert len({one.seen for one in found}) > 1


def test_rewrites_say_why_there_are_none() -> None:
    bare = Dialogue("bare", (Turn(0, "", "hello", BeliefState()),))
    with pytest.raises(UserError, match=r"does not apply to turn 0 of dialogue 'bare': "):
        find(rewrites(bare, relation="value-swap"), bool)
    with pytest.raises(UserError, match="leaves the edits to a search"):
        find(rewrites(bare, relation="metamorphic"), bool)
    with pytest.raises(UserError, match="Did you mean 'value-swap'"):
        rewrites(bare, relation="value-swop")
    with pytest.raises(UserError, match="there is no turn 3"):
        rewrites(bare, 3, relation="value-swap")


def test_rewrites_reject_turns_that_are_drawn_and_have_none() -> None:
    """Of a few dialogues of one turn, some say no value: they are passed over."""
    begun = [replace(one, turns=one.turns[:1]) for one in SAMPLE.dialogues[:30]]
    data = replace(SAMPLE, dialogues=tuple(begun))
    found: list[Rewrite] = []

    @settings(suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.data())
    def collect(drawn: st.DataObject) -> None:
        dialogue = drawn.draw(dialogues(data))
        found.append(drawn.draw(rewrites(dialogue, relation="value-swap", data=SAMPLE)))

    collect()
    assert found
    with pytest.raises(UserError, match="leaves the edits to a search"):
        find(dialogues(data).flatmap(lambda one: rewrites(one, relation="gold")), bool)
