"""Labels judge each slot that changes: a slot that becomes right breaks nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from toybots import Play, WordBot, talk

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.campaign.attempts import fold_label, judge_by_label
from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult, faults
from pytest_dstfuzz.campaign.summary import YieldsTally
from pytest_dstfuzz.comparisons.calls import ToolCallComparison
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import ToolCall, calls_outcome, reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange, diff_states
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.gate.baseline import ComparedVariant
from pytest_dstfuzz.weaknesses.groups import read

RIGHT = {"hotel-area": "north", "hotel-price": "cheap", "food-kind": "thai"}
#: The area is not understood as it is typed, and the food never is.
TYPED = "nroth cheap thai"


def run(play: Play, typed: str, label: Mapping[str, str] | None = RIGHT) -> TurnResult:
    dialogue = talk("d", TYPED, labels=[label])
    (result,) = play(dialogue, {TYPED: [typed]}).campaign.run()
    return result


def outcomes(results: list[TurnResult]) -> list[list[str]]:
    return [[variant.outcome for variant in result.variants] for result in results]


def test_a_variant_that_only_corrects_slots_is_improved_though_others_stay_wrong(
    play: Play,
) -> None:
    result = run(play, "north cheap thai")
    assert outcomes([result]) == [["improved"]]
    assert [one.by_label for one in result.variants[0].changed_slots] == ["corrected"]
    assert outcomes([run(play, "north cheap thai", label=None)]) == [["violation"]]


#: The same bot, if its slots or tools have other names than those of the labels.
USERS = {area: f"somewhere in the {area} please" for area in ("north", "south")}


def labelled_state(user: str, area: str) -> dict[str, object]:
    return {"turns": [{"user": user, "state": {"area": area}}]}


def labelled_calls(user: str, area: object, argument: str = "area") -> dict[str, object]:
    call = {"name": "find", "arguments": json.dumps({argument: area})}
    return {
        "messages": [
            {"role": "user", "content": user},
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "type": "function", "function": call}],
            },
        ]
    }


def finds_states(name: str, context: Context) -> dict[str, str]:
    found = re.search("in the (north|south) please", context.user)
    return {name: found[1]} if found else {}


def finds_calls(name: str, context: Context) -> list[ToolCall]:
    found = re.search("in the (north|south) please", context.user)
    return [ToolCall(name, {"area": found[1]})] if found else []


def violations(
    folder: Path,
    bot: Callable[[Context], object],
    talks: Iterable[Mapping[str, object]],
    outcome: str,
    **given: object,
) -> int:
    """Return the number of violations in a campaign on these dialogues."""
    data = folder / "d.jsonl"
    data.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    settings = Settings.of(variants=8, search="random", outcome=outcome, **given)
    campaign = Campaign(bot, load_dialogues(data), settings)
    return sum(one.outcome == "violation" for turn in campaign for one in turn.variants)


@pytest.mark.parametrize("kind", ["states", "calls"])
def test_labels_do_not_excuse_losses_of_slots_and_tools_that_they_never_name(
    tmp_path: Path, kind: str
) -> None:
    """Such a bot is wrong at every turn, and each of its losses looked like a correction."""
    states = kind == "states"
    label, bot = (labelled_state, finds_states) if states else (labelled_calls, finds_calls)
    talks = [{"dialogue_id": area, **label(user, area)} for area, user in USERS.items()]
    outcome = "state" if states else "tool-calls"
    other, own = (
        violations(tmp_path, partial(bot, name), talks, outcome)
        for name in ("other", "area" if states else "find")
    )
    assert other == own > 0


@pytest.mark.parametrize("kind", ["states", "calls"])
def test_one_label_with_the_names_of_the_bot_does_not_speak_for_the_others(
    tmp_path: Path, kind: str
) -> None:
    states = kind == "states"
    label, bot = (labelled_state, finds_states) if states else (labelled_calls, finds_calls)
    own = "area" if states else "find"
    talks = [{"dialogue_id": area, **label(user, area)} for area, user in USERS.items()]
    mixed = json.dumps(talks).replace(f'"{own}"', '"other"')
    agreeing = [{"dialogue_id": "new", **label("I need the north", "north")}]
    if states:
        both = {"user": "I need the south", "state": {"area": "south", "other": "south"}}
        agreeing.append({"dialogue_id": "both", "turns": [both]})
    outcome = "state" if states else "tool-calls"
    found, right = (
        violations(tmp_path, partial(bot, own), [*several, *agreeing], outcome)
        for several in (json.loads(mixed), talks)
    )
    assert found == right > 0


def test_labels_do_not_excuse_the_loss_of_a_call_at_another_place(tmp_path: Path) -> None:
    """Calls without arguments have no value by which they can be found."""

    def recorded(*names: str) -> dict[str, object]:
        made = labelled_calls("", "")
        calls = [
            {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for name in names
        ]
        made["messages"][1]["tool_calls"] = calls  # type: ignore[index]  # a list of messages
        return made

    talks = []
    for area, user in {**USERS, "new": "I need the north"}.items():
        talk = recorded("find", "log") if area == "new" else recorded("log", "search")
        talk["messages"][0]["content"] = user  # type: ignore[index]  # likewise
        talks.append({"dialogue_id": area, **talk})

    def bot(context: Context) -> list[ToolCall]:
        found = re.search("in the (north|south) please", context.user)
        return [*([ToolCall("find", {})] if found else []), ToolCall("log", {})]

    assert violations(tmp_path, bot, talks, "tool-calls") > 0


def test_an_ontology_does_not_stand_for_labels(tmp_path: Path) -> None:
    (tmp_path / "d.ontology.json").write_text('{"area": ["north", "south"]}', encoding="utf-8")
    bot = partial(finds_states, "area")
    talks = [
        {"dialogue_id": area, "turns": [{"user": user, "state": {}}]}
        for area, user in USERS.items()
    ]
    assert violations(tmp_path, bot, talks, "state") > 0


def test_labels_do_not_excuse_losses_of_arguments_that_they_never_name(tmp_path: Path) -> None:
    talks = [
        {"dialogue_id": area, **labelled_calls(user, area, "place")} for area, user in USERS.items()
    ]

    def bot(context: Context) -> list[ToolCall]:
        found = re.search("in the (north|south) please", context.user)
        return [ToolCall("find", {"area": found[1]} if found else {})]

    assert violations(tmp_path, bot, talks, "tool-calls") > 0


def test_a_change_that_was_right_at_an_earlier_turn_may_be_wrong_now(tmp_path: Path) -> None:
    """The labels of some data name a slot one turn late."""
    talks = [
        {
            "dialogue_id": area,
            "turns": [
                {"user": user, "state": {}},
                {"system": "Anything else?", "user": "no thank you", "state": {"area": area}},
            ],
        }
        for area, user in USERS.items()
    ]

    def bot(context: Context) -> dict[str, str]:
        heard = " ".join(context.user_utterances)
        found = re.search("in the (north|south) please", heard)
        return {"area": found[1]} if found else {}

    assert violations(tmp_path, bot, talks, "state", attack="cumulative") > 0


def test_a_recorded_reply_that_allows_two_answers_excuses_no_change(tmp_path: Path) -> None:
    answer = "It costs 5 pounds, or 50 pounds."
    talks = [
        {"dialogue_id": area, "turns": [{"user": user, "answer": answer}]}
        for area, user in USERS.items()
    ]

    def bot(context: Context) -> str:
        heard = re.search("in the (north|south) please", context.user)
        return f"It costs {5 if heard else 50} pounds."

    assert violations(tmp_path, bot, talks, "reply") > 0


@pytest.mark.parametrize("blank", [" ", "_", ""])
def test_a_recorded_reply_that_says_more_than_both_answers_excuses_no_change(blank: str) -> None:
    """Only a distance tells the answers apart."""
    folding = Folding(comparison_by_name("embedding:shipped", ReplySettings()))
    clean, found = (
        reply_outcome(text)
        for text in (
            "It often helps to wipe the card with a soft cloth before you put it in again.",
            "Please remove the SIM, clean it carefully and insert it again.",
        )
    )
    text = "Take the card out, wipe it with a dry cloth and put it back."
    more = " Clean the SIM card and insert it again.".replace(" ", blank)
    label = reply_outcome(f"{text}{more}" if blank else text)
    asked = Context((Exchange("", "My phone says there is no SIM card"),))
    assert not folding.agree(clean, found, asked)
    folded = fold_label(folding, label, clean, found, asked)
    assert folded.both == {"reply"}
    assert bool(folded.undecided) == bool(blank)


@pytest.mark.parametrize("relation", ["metamorphic", "gold"])
def test_a_recorded_call_that_allows_two_values_excuses_no_change(
    tmp_path: Path, relation: str
) -> None:
    talks = [
        {"dialogue_id": area, **labelled_calls(user, ["north", "south"])}
        for area, user in USERS.items()
    ]

    def bot(context: Context) -> list[ToolCall]:
        heard = re.search("in the (north|south) please", context.user)
        return [ToolCall("find", {"area": [heard[1] if heard else "north"]})]

    rules = {"find.area": "subset"}
    found = violations(tmp_path, bot, talks, "tool-calls", relation=relation, arguments=rules)
    # For this relation, both answers are right.
    assert (found == 0) == (relation == "gold")


def test_a_recorded_reply_without_an_answer_is_no_label(tmp_path: Path) -> None:
    refusal = "Sorry, I did not understand that."
    talks = [
        {"dialogue_id": area, "turns": [{"user": user, "answer": refusal}]}
        for area, user in USERS.items()
    ]

    def bot(context: Context) -> str:
        found = re.search("in the (north|south) please", context.user)
        return f"The {found[1]} has two." if found else refusal

    assert violations(tmp_path, bot, talks, "reply") > 0


@pytest.mark.parametrize(
    ("typed", "label", "told"),
    [
        (
            "north chaep thai",
            RIGHT,
            {"hotel-area": "corrected", "hotel-price": "right-to-wrong"},
        ),
        (
            "south cheap thai",
            {**RIGHT, "hotel-area": "north"},
            {"hotel-area": "wrong-to-wrong"},
        ),
        ("nroth chaep thai", RIGHT, {"hotel-price": "right-to-wrong"}),
        ("nroth chaep thai", None, {"hotel-price": None}),
    ],
)
def test_each_slot_of_a_violation_says_which_of_its_values_is_right(
    play: Play, typed: str, label: Mapping[str, str] | None, told: Mapping[str, str]
) -> None:
    (variant,) = run(play, typed, label).variants
    assert variant.outcome == "violation"
    assert {one.slot: one.by_label for one in variant.changed_slots} == told


def test_a_mixed_violation_is_about_the_slots_that_got_worse(play: Play) -> None:
    result = run(play, "north chaep thai")
    (variant,) = result.variants
    assert [one.slot for one in faults(variant.changed_slots)] == ["hotel-price"]
    assert read(result, variant).slot == "hotel-price"
    assert ComparedVariant.of(result, variant).changed == ("hotel-price",)
    slots = tally_results(YieldsTally(), [result]).slots
    assert (slots["hotel-price"].violations, slots["hotel-area"].violations) == (1, 0)
    assert slots["hotel-area"].improved == 1
    # Results are kept and read again.
    assert TurnResult.from_json(result.to_json()) == result


def test_what_is_left_of_a_mixed_violation_still_makes_a_slot_worse(play: Play) -> None:
    dialogue = talk("d", TYPED, labels=[RIGHT])
    found = play(dialogue, {TYPED: ["north chaep thai"]}).campaign.run()
    for turn in found:
        for variant in turn.violations:
            left = variant.plain.changed_slots
            assert any(one.by_label == "right-to-wrong" for one in left)


def test_a_slot_that_was_carried_beside_a_corrected_one_is_no_new_violation(play: Play) -> None:
    price = {"hotel-price": "cheap"}
    dialogue = talk("d", "cheap", "nroth", labels=[price, price | RIGHT])
    texts = {"cheap": ["chaep"], "nroth": ["north"]}
    results = list(play(dialogue, texts, WordBot()).campaign.run())
    assert outcomes(results)[1] == ["carried"]


def test_recorded_calls_are_read_by_the_rules_of_arguments() -> None:
    folding = Folding(ToolCallComparison())
    asked = Context((Exchange("", "a table"),))
    call = {"people": "2", "area": "north", "time": "19:00"}
    label = calls_outcome([ToolCall("book", call)])
    clean = calls_outcome([ToolCall("book", {**call, "people": 2, "area": "south"})])
    found = calls_outcome([ToolCall("book", {**call, "people": 2, "time": "18:00"})])
    told = judge_by_label(
        fold_label(folding, label, clean, found, asked), diff_states(clean, found), (clean, found)
    )
    by_slot = {one.slot: one.by_label for one in told}
    assert by_slot == {"book[0].area": "corrected", "book[0].time": "right-to-wrong"}


def test_a_recorded_call_that_is_made_only_now_is_a_correction() -> None:
    folding = Folding(ToolCallComparison())
    asked = Context((Exchange("", "a table"),))
    made = calls_outcome([ToolCall("book", {"people": 2})])
    none = calls_outcome([])
    changes = diff_states(none, made)
    told = judge_by_label(fold_label(folding, made, none, made, asked), changes, (none, made))
    assert {one.by_label for one in told} == {"corrected"}
    changes = diff_states(made, none)
    told = judge_by_label(fold_label(folding, made, made, none, asked), changes, (made, none))
    assert {one.by_label for one in told} == {"right-to-wrong"}


def test_turns_without_a_label_are_written_as_before(play: Play) -> None:
    plain = run(play, "nroth chaep thai", label=None).to_json()
    assert "by_label" not in plain["variants"][0]["changed_slots"][0]
    assert replace(run(play, "nroth chaep thai"), label=None).to_json() == plain
