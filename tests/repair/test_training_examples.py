"""Training examples from reports, with the answer that would be right."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hotel_talks import campaign_on, track, write_talks

from pytest_dstfuzz import (
    Admissible,
    BeliefState,
    Campaign,
    Context,
    Delta,
    Dialogue,
    DialogueSet,
    Outcome,
    Settings,
    Turn,
    TurnResult,
    UserError,
    VariantResult,
    load_dialogues,
)
from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.repair.examples import Example, ExampleSet
from pytest_dstfuzz.repair.forms import FORMS
from pytest_dstfuzz.repair.measured import refuse_measured

TOOL_CALLS = Path(__file__).parents[2] / "examples" / "tool_calls"


def examples_of(campaign: Campaign) -> ExampleSet:
    found = ExampleSet()
    found.add(tuple(campaign), campaign.data)
    return found


def stuck(context: Context) -> dict[str, str]:
    """Never forgets the first kind of room that it heard, and expects a single one."""
    del context
    return {"room-kind": "single", "room-view": "garden"}


def test_a_violation_keeps_the_label_of_its_turn(tmp_path: Path) -> None:
    campaign = campaign_on(write_talks(tmp_path))
    found = examples_of(campaign)
    assert len(found.examples) > 20
    for one in found.examples:
        clean = campaign.data.dialogue(one.provenance["dialogue"])
        last = len(one.dialogue.turns) - 1
        assert one.target == clean.turns[last].state
        assert [turn.state for turn in one.dialogue.turns] == [
            turn.state for turn in clean.turns[: last + 1]
        ]
        assert one.provenance["label"] == "label"
        assert one.group == one.provenance["weakness"]
        assert any(
            edited.user != turn.user
            for edited, turn in zip(one.dialogue.turns, clean.turns, strict=False)
        )


def test_without_labels_the_clean_answer_is_the_label(tmp_path: Path) -> None:
    path = write_talks(tmp_path)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line in lines:
        for turn in line["turns"]:
            del turn["state"]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    found = examples_of(campaign_on(path))
    assert found.examples
    for one in found.examples:
        assert one.provenance["label"] == "clean answer"
        assert one.target["room-view"] in ("garden", "harbour")
        assert all(turn.state for turn in one.dialogue.turns)


@pytest.mark.parametrize(("bot", "outcome"), [(track, "held"), (stuck, "violation")])
def test_a_change_of_the_request_changes_the_label(
    tmp_path: Path, bot: Callable[[Context], dict[str, str]], outcome: str
) -> None:
    campaign = campaign_on(write_talks(tmp_path), bot, relation="value-swap")
    found = examples_of(campaign)
    assert found.examples
    for one in found.examples:
        clean = campaign.data.dialogue(one.provenance["dialogue"])
        last = one.dialogue.turns[-1]
        changed = {
            slot: value
            for slot, value in one.target.items()
            if (clean.turns[last.index].state or {}).get(slot) != value
        }
        (value,) = changed.values()
        assert value in last.user
        assert value not in clean.turns[last.index].user
        assert one.provenance["outcome"] == outcome
        assert one.provenance["changed"]
        assert any(span.value == value for span in one.spans)


def test_examples_are_unique_and_balanced(tmp_path: Path) -> None:
    campaign = campaign_on(write_talks(tmp_path))
    results = tuple(campaign)
    found = ExampleSet()
    found.add(results, campaign.data)
    count = len(found.examples)
    found.add(results, campaign.data)
    assert len(found.examples) == count
    assert found.repeated >= count
    groups = Counter(one.group for one in found.examples)
    assert len(groups) > 1
    least = min(groups.values())
    few = Counter(one.group for one in found.drawn(least * len(groups), 0))
    assert few == dict.fromkeys(groups, least)
    assert found.drawn(10, 0) == found.drawn(10, 0)
    assert found.drawn(10, 0) != found.drawn(10, 1)
    assert sorted(found.drawn(10_000, 0), key=lambda one: one.id) == found.drawn(10_000, 5)


def example(
    edits: tuple[Edit, ...], text: str, *deltas: Delta, label: dict[str, str] | None = None
) -> Example | None:
    """Return the example of one violation, made by hand."""
    said = "a table in the north please"
    variant = VariantResult(
        index=0,
        text=text,
        context=(),
        edits=edits,
        edit_w=0.0,
        edit_c=0.0,
        valid=True,
        reason="",
        outcome="violation",
        expected=deltas,
    )
    turn = TurnResult(
        id="made-test-d-t0",
        dialogue_id="d",
        turn_index=0,
        system="",
        user=said,
        clean_state=Outcome({"area": "north"}),
        outcome="violation",
        variants=(variant,),
    )
    state = None if label is None else BeliefState(label)
    data = DialogueSet("made", "test", (Dialogue("d", (Turn(0, "", said, state),)),))
    found = ExampleSet()
    found.add((turn,), data)
    assert len(found.examples) + found.left_out.total() == 1
    return found.examples[0] if found.examples else None


@pytest.mark.parametrize(
    ("edits", "text", "said"),
    [
        ((Edit("char", "drop", 16, 17, "o", ""),), "a table in the nrth please", "nrth"),
        ((Edit("char", "insert", 17, 17, "", "x"),), "a table in the noxrth please", "noxrth"),
        ((Edit("word", "insert", 15, 15, "", "uh "),), "a table in the uh north please", "north"),
        (
            (
                Edit("char", "drop", 2, 3, "t", ""),
                Edit("char", "drop", 14, 15, "n", ""),
            ),
            "a able in the orth please",
            "orth",
        ),
        ((Edit("word", "drop", 15, 20, "north", ""),), "a table in the  please", None),
        ((Edit("char", "drop", 14, 16, " n", ""),), "a table in theorth please", None),
    ],
)
def test_a_span_follows_the_edits(edits: tuple[Edit, ...], text: str, said: str | None) -> None:
    found = example(edits, text)
    assert found is not None
    assert [text[one.start : one.end] for one in found.spans] == ([] if said is None else [said])


def test_an_expected_change_decides_the_label() -> None:
    edits = (Edit("value-swap", "value", 15, 20, "north", "south"),)
    text = "a table in the south please"
    south = Admissible(("south", "the south"))
    found = example(edits, text, Delta("area", "north", south))
    assert found is not None
    assert found.target == {"area": "south"}
    gone = example(edits, text, Delta("area", "north", Admissible((None,))))
    assert gone is not None
    assert gone.target == {}
    # Any other value would do, so the slot is left empty, unless that is wrong too.
    other = example(edits, text, Delta("area", "north", Admissible(("north",), anything_but=True)))
    assert other is not None
    assert other.target == {}
    never = Admissible(("north", None), anything_but=True)
    assert example(edits, text, Delta("area", "north", never)) is None
    assert example(edits, text, Delta("area", "west", south)) is None


def test_a_label_that_disagrees_gives_no_example() -> None:
    edits = (Edit("value-swap", "value", 15, 20, "north", "south"),)
    text = "a table in the south please"
    delta = Delta("area", "north", Admissible(("south",)))
    right = example(edits, text, delta, label={"area": "north"})
    assert right is not None
    assert right.target == {"area": "south"}
    assert example(edits, text, delta, label={"area": "west"}) is None
    # The bot did not know all that the turn said, so the edit may have removed the rest.
    assert example(edits, text, delta, label={"area": "north", "food": "thai"}) is None
    # If nothing should change, the label is right as it is.
    kept = example(edits, text, label={"area": "north", "food": "thai"})
    assert kept is not None
    assert kept.target == {"area": "north", "food": "thai"}


def read_back(tmp_path: Path, form: str, suffix: str, drawn: Sequence[Example]) -> list[Dialogue]:
    path = tmp_path / f"back{suffix}"
    path.write_text("".join(FORMS[form].write(drawn, "inform")), encoding="utf-8")
    outcome = "tool-calls" if drawn[0].dialogue.turns[-1].calls is not None else "state"
    if REPLY in drawn[0].target:
        outcome = REPLY
    return list(load_dialogues(path, "train", outcome=outcome).dialogues)  # type: ignore[arg-type]


def plain(dialogue: Dialogue) -> list[tuple[object, ...]]:
    return [(one.system, one.user, one.state, one.calls) for one in dialogue.turns]


def north(context: Context) -> dict[str, str]:
    said = " ".join(context.user_utterances).lower()
    areas = [area for area in ("north", "south", "east", "west", "centre") if area in said]
    return {"restaurant-area": areas[-1]} if areas else {}


@functools.cache
def shipped(relation: str) -> tuple[Example, ...]:
    """Examples of the shipped dialogues, whose slots are those of MultiWOZ."""
    data = load_dialogues("sample")
    data = replace(data, dialogues=data.dialogues[:8])
    settings = Settings.of(turns="all", variants=2, relation=relation, shrink=False)
    return tuple(examples_of(Campaign(north, data, settings)).drawn(100, 0))


@pytest.mark.parametrize("relation", ["metamorphic", "value-swap", "turn-back"])
@pytest.mark.parametrize(
    ("form", "suffix"),
    [("jsonl", ".jsonl"), ("messages", ".jsonl"), ("multiwoz", ".json"), ("trade", ".tsv")],
)
def test_readers_read_the_same_dialogues(
    tmp_path: Path, form: str, suffix: str, relation: str
) -> None:
    found = shipped(relation)
    assert found
    back = read_back(tmp_path, form, suffix, found)
    assert [one.id for one in back] == [one.id for one in found]
    for read, one in zip(back, found, strict=True):
        assert plain(read) == plain(one.dialogue)


def test_rasa_reads_the_last_texts(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    found = examples_of(campaign_on(write_talks(tmp_path))).drawn(50, 0)
    back = read_back(tmp_path, "rasa", ".yml", found)
    texts = dict.fromkeys(" ".join(one.dialogue.turns[-1].user.split()) for one in found)
    assert [one.turns[0].user for one in back] == list(texts)
    written = (tmp_path / "back.yml").read_text("utf-8")
    assert "- intent: inform\n" in written
    assert '{"entity": "room-view"' in written


@pytest.mark.parametrize("relation", ["metamorphic", "value-swap"])
def test_calls_are_read_back(
    tmp_path: Path, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOL_CALLS))
    settings = Settings.of(
        model="table_agent:answer",
        data=str(TOOL_CALLS / "conversations.jsonl"),
        tools=str(TOOL_CALLS / "tools.json"),
        outcome="tool-calls",
        relation=relation,
        turns="all",
    )
    found = examples_of(Campaign("table_agent:answer", settings=settings)).drawn(100, 0)
    assert found
    back = read_back(tmp_path, "messages", ".jsonl", found)
    for read, one in zip(back, found, strict=True):
        assert [turn.user for turn in read.turns] == [turn.user for turn in one.dialogue.turns]
        assert read.turns[-1].calls == one.target
        assert read.tools == one.dialogue.tools


def test_a_reply_is_the_last_message(tmp_path: Path) -> None:
    def reply(messages: list[dict[str, str]]) -> str:
        said = messages[-1]["content"]
        return "We have a harbour." if "harbour" in said else "Sorry?"

    found = examples_of(campaign_on(write_talks(tmp_path), reply, outcome=REPLY)).drawn(50, 0)
    assert found
    for form in ("messages", "jsonl"):
        back = read_back(tmp_path, form, ".jsonl", found)
        for read, one in zip(back, found, strict=True):
            assert read.turns[-1].user == one.dialogue.turns[-1].user
            assert one.target[REPLY] in (read.turns[-1].answer or "".join(read.closing))
    lines = (tmp_path / "back.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(found)


def test_measured_dialogues_are_refused_by_id_and_by_text(tmp_path: Path) -> None:
    data = load_dialogues(write_talks(tmp_path))
    other = replace(
        data,
        dialogues=[
            replace(
                one,
                id=f"x{one.id}",
                turns=tuple(replace(turn, user=f"{turn.user.upper()}!") for turn in one.turns),
            )
            for one in data.dialogues
        ],
    )
    with pytest.raises(UserError, match="'r00'"):
        refuse_measured(data.dialogues, data)
    with pytest.raises(UserError, match="'xr"):
        refuse_measured(data.dialogues, other)
    renamed = replace(other.dialogues[0], turns=other.dialogues[0].turns[:1])
    # The same first utterance of a longer dialogue is no evidence.
    refuse_measured(data.dialogues, replace(other, dialogues=[renamed]))
    with pytest.raises(UserError):
        refuse_measured([renamed], replace(data, dialogues=[renamed]))
