"""Remembered violations of systems that reply: asked again, and promoted to tests."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_dstfuzz.campaign.results import SeenRound, TurnResult, VariantResult
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, Difference, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.regressions.promote import write_promoted
from pytest_dstfuzz.regressions.regression import Regression, is_kept
from pytest_dstfuzz.relations.relation import OTHER_REPLY
from pytest_dstfuzz.trackers.tracker import Prediction

SHOP = Dialogue("d1", (Turn(0, "", "when do you open"), Turn(1, "At 9.", "and on sunday")))
NUMBERS = comparison_by_name("numbers", Settings().reply)
WRONG = VariantResult(
    index=0,
    text="and on sundya",
    context=("when do you open",),
    edits=(Edit("char_replace", "swap", 11, 13, "ay", "ya"),),
    edit_w=0.0,
    edit_c=0.1,
    valid=True,
    reason="",
    state=reply_outcome("Line 4 goes there"),
    changed_slots=(Difference("reply", "From 10 on", "Line 4 goes there"),),
    cause="turn",
    outcome="violation",
)
RESULT = TurnResult(
    id="shop-test-d1-t1",
    dialogue_id="d1",
    turn_index=1,
    system="At 9.",
    user="and on sunday",
    clean_state=reply_outcome("From 10 on"),
    outcome="violation",
    variants=(WRONG,),
    outcome_kind="reply",
)
KEPT = Regression.of(RESULT, WRONG, SHOP, "metamorphic", compare=NUMBERS.name)
LOST = replace(WRONG, expected=OTHER_REPLY.against(reply_outcome("From 10 on")).deltas)


def test_it_says_that_it_is_of_a_reply_and_how_it_was_compared() -> None:
    line = KEPT.to_json()
    assert (line["outcome"], line["compare"]) == ("reply", "numbers")
    assert Regression.from_json(line) == KEPT
    state = replace(RESULT, outcome_kind="state", clean_state=BeliefState({"reply": "From 10 on"}))
    of_state = Regression.of(state, WRONG, SHOP, "metamorphic")
    assert of_state.id != KEPT.id
    assert not {"outcome", "compare"} & {*of_state.to_json()}


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("From 10 on", "From 10 on", "fixed"),
        ("We open at 10", "10, I think", "fixed"),
        ("We open at 10", "Line 4", "broken"),
        ("We open at 11", "11 it is", "unclear"),
        ("We open at 11", "Line 4", "broken"),
    ],
)
def test_what_says_the_same_is_the_same(before: str, after: str, outcome: str) -> None:
    answers = {
        context: Prediction(reply_outcome(text))
        for context, text in ((KEPT.clean, before), (KEPT.seen, after))
    }
    assert KEPT.replayed(answers, comparison=NUMBERS)[0] == outcome


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("10 it is", "At 10", "broken"),
        ("10 it is", "Line 4", "fixed"),
        ("11 it is", "Line 4", "unclear"),
    ],
)
def test_a_reply_that_was_to_be_another_one_may_be_any_other(
    before: str, after: str, outcome: str
) -> None:
    kept = Regression.of(RESULT, LOST, SHOP, "lost-context", compare=NUMBERS.name)
    answers = {
        context: Prediction(reply_outcome(text))
        for context, text in ((kept.clean, before), (kept.seen, after))
    }
    assert kept.replayed(answers, comparison=NUMBERS)[0] == outcome


def test_rounds_in_another_order_are_held_against_the_clean_turn() -> None:
    rounds = (SeenRound("", "hello"), SeenRound("", "and on sunday"))
    moved = Regression.of(RESULT, replace(WRONG, exchanges=rounds), SHOP, "same-context")
    assert moved.clean == SHOP.context(1)
    assert moved.seen.user_utterances == ("hello", "and on sunday")
    # What is held against another rewrite has no clean context that could be asked again.
    assert not is_kept(replace(WRONG, exchanges=rounds, reference=rounds))


class Shop:
    """Says when it opens; where it does not know a word, something else."""

    def __init__(self, known: str) -> None:
        self.known = known

    def predict(self, contexts: list[Context]) -> list[str]:
        return ["At 10" if one.user in self.known else "Line 4" for one in contexts]


@pytest.mark.parametrize("variant", [WRONG, LOST])
def test_a_promoted_test_asks_for_the_replies(variant: VariantResult) -> None:
    kept = Regression.of(RESULT, variant, SHOP, "metamorphic", compare="numbers")
    code = write_promoted(kept)
    names: dict[str, object] = {}
    exec(compile(code, "promoted", "exec"), names)  # noqa: S102 - what was written is a test
    (test,) = (thing for name, thing in names.items() if name.startswith("test_reply_"))
    right, wrong = Shop("and on sunday, and on sundya"), Shop("and on sunday")
    if variant is LOST:
        right, wrong = wrong, right
    test(right)  # type: ignore[operator]  # the function that was written
    with pytest.raises(AssertionError, match="the reply is not as expected"):
        test(wrong)  # type: ignore[operator]  # likewise


def test_a_threshold_is_promoted_with_the_comparison() -> None:
    code = write_promoted(replace(KEPT, compare="numbers,polarity,embedding:shipped<=0.45"))
    assert "        compare='numbers,polarity,embedding',\n        threshold=0.45,\n" in code


@pytest.mark.parametrize(
    ("outcome", "counts"), [("reply", {"passed": 1}), ("state", {"errors": 1})]
)
def test_fixtures_of_a_suite_say_what_is_asked_again_and_how_it_is_compared(
    pytester: pytest.Pytester, outcome: str, counts: dict[str, int]
) -> None:
    pytester.makeconftest(
        "import pytest\n\n"
        "@pytest.fixture(scope='session')\ndef dst_model():\n"
        "    return lambda messages: f'Line {len(messages[-1][\"content\"])}'\n\n"
        f"@pytest.fixture(scope='session')\ndef dst_outcome():\n    return {outcome!r}\n\n"
        "@pytest.fixture(scope='session')\ndef dst_compare():\n"
        "    return lambda before, found: before[:4] == found[:4]\n"
    )
    kept = replace(KEPT, changed=(Difference("reply", "Line 0", "Pardon?"),))
    data = {"dialogue_id": "d1", "users": ["when do you open", "and on sunday"]}
    pytester.path.joinpath("talks.jsonl").write_text(json.dumps(data))
    corpus = pytester.path / ".dstfuzz" / "regressions" / "talks.jsonl"
    corpus.parent.mkdir(parents=True)
    corpus.write_text(f"{json.dumps(kept.to_json())}\n")
    found = pytester.runpytest("--dst-data=talks.jsonl", f"--dst-replay={kept.id}", "--tb=line")
    found.assert_outcomes(**counts)
    if outcome == "state":
        found.stdout.fnmatch_lines(["*but this run tests a state: add --dst-outcome=reply*"])


def test_one_of_another_history_is_skipped_with_what_to_add(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(bot="def answer(messages):\n    return 'Line 1'\n")
    data = {"dialogue_id": "d1", "users": ["when do you open", "and on sunday"]}
    pytester.path.joinpath("talks.jsonl").write_text(json.dumps(data))
    corpus = pytester.path / ".dstfuzz" / "regressions" / "talks.jsonl"
    corpus.parent.mkdir(parents=True)
    rolled = replace(KEPT, history="own")
    lines = [json.dumps(one.to_json()) for one in (KEPT, rolled)]
    corpus.write_text("\n".join([*lines, ""]))
    options = ("--dst-model=bot:answer", "--dst-outcome=reply", "--dst-data=talks.jsonl", "-rs")
    for history, other in (("recorded", rolled), ("own", KEPT)):
        found = pytester.runpytest(*options, "-k=regression", f"--dst-history={history}", "-v")
        told = f"*{other.id} was found with*: add --dst-history={other.history}"
        found.stdout.fnmatch_lines([told])
        found.assert_outcomes(passed=0, skipped=2, deselected=2)


def test_a_violation_by_options_of_the_run_is_not_promoted() -> None:
    given_up = "Kindly rephrase, or come to line 10"
    unclear = replace(
        WRONG,
        state=reply_outcome(given_up),
        changed_slots=(Difference("reply", "From 10 on", given_up),),
    )
    kept = Regression.of(RESULT, unclear, SHOP, "metamorphic", compare="numbers")
    with pytest.raises(UserError, match=rf"dst_fallback or .* --dst-replay={kept.id}"):
        write_promoted(kept)


def test_a_promoted_test_has_the_rules_of_all_slots() -> None:
    rules = ("hotel-book people=number", "train-[cd]ity=case", 'hotel-area=["a b","c,d=e"]')
    wrong = replace(WRONG, changed_slots=(Difference("hotel-book people", "3", "4"),))
    state = replace(RESULT, outcome_kind="state", clean_state=BeliefState({}))
    kept = Regression.of(state, wrong, SHOP, "metamorphic", compare=",".join(["states", *rules]))
    assert f"arguments={[*rules]!r}" in write_promoted(kept)
