"""The table of relations: one side beside the other, never added."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.papers.comparison import common_settings
from pytest_dstfuzz.papers.relations import (
    RelationRow,
    RelationsConfig,
    run_relations,
    similarity,
    tables,
    values_of,
)
from pytest_dstfuzz.relations.checks import UNKNOWN_WORD, KnownWordsRelation, check_laws
from pytest_dstfuzz.relations.registry import relation_by_name
from pytest_dstfuzz.trackers.tracker import Prediction

EXAMPLE = Path(__file__).parents[2] / "examples" / "relations"
NAMES = "value-swap,neighbour-swap,duplicate"


@pytest.fixture(scope="module")
def rows() -> tuple[RelationRow, ...]:
    sys.path.insert(0, str(EXAMPLE))
    try:
        from rule_tracker import RuleTracker  # noqa: PLC0415 - an example, not on the path
    finally:
        sys.path.remove(str(EXAMPLE))
    settings = common_settings(data="sample", variants=2)
    config = RelationsConfig(settings, relations=NAMES, max_dialogues=20)
    *_, last = run_relations(config, lambda _: None, RuleTracker("sample", "test"))
    texts = tables(last)
    assert "## Should not change" in texts["relations.md"]
    assert "## Should change" in texts["relations.md"]
    return last.rows


def test_every_rewrite_holds_or_fails_in_one_way(rows: tuple[RelationRow, ...]) -> None:
    assert [row.name for row in rows] == NAMES.split(",")
    for row in rows:
        assert row.by_gold is not None
        assert 0 < row.by_gold <= row.units
        assert row.rewrites > 0
        ways = {way: row.count(way) for way in ("changed", "stuck", "partial", "other")}
        impossible = ["changed"] if row.side == "should-change" else ["stuck", "partial", "other"]
        assert not any(ways[way] for way in impossible)
        assert sum(ways.values()) <= row.rewrites
        assert row.rate(*ways).value == pytest.approx(sum(ways.values()) / row.rewrites)
        assert row.units - row.applicable == row.reasons.total()


def test_turns_and_dialogues_are_told_apart(rows: tuple[RelationRow, ...]) -> None:
    swap, _, duplicate = rows
    assert (swap.unit, duplicate.unit) == ("turn", "dialogue")
    assert duplicate.units == 20 < swap.units


def test_the_command_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["experiment", "relations", "--model", "trade", "--data", "sample", "--variants", "1"]
    some = ["--max-dialogues", "2", "--relations", "value-swap", "--output", str(tmp_path)]
    assert main([*given, *some]) == 0
    assert "| `value-swap` |" in capsys.readouterr().out
    with (tmp_path / "relations.csv").open(encoding="utf-8") as lines:
        (row,) = csv.DictReader(lines)
    assert row["side"] == "should-change"
    assert "## Should change" in (tmp_path / "relations.md").read_text("utf-8")


def test_an_unknown_relation_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["experiment", "relations", "--model", "trade", "--data", "sample"]
    assert main([*given, "--relations", "value-swop", "--output", str(tmp_path)]) != 0
    assert "Did you mean 'value-swap'" in capsys.readouterr().err


class RoomTracker:
    """A tracker with a vocabulary of words, like TRADE."""

    class vocabulary:  # noqa: N801 - stands for an object
        words = ("i", "need", "want", "a", "room", "rooms", "north")

    def predict(self, contexts: list[Context]) -> list[BeliefState]:
        return [BeliefState() for _ in contexts]


def test_only_words_of_the_vocabulary_are_new() -> None:
    settings = common_settings(data="sample", variants=8)
    config = RelationsConfig(
        settings, relations="speech,grammar-errors", max_dialogues=6, vocabulary=True
    )
    *_, some = run_relations(config, lambda _: None, RoomTracker())
    assert "only new words of the tracker's vocabulary" in tables(some)["relations.md"]
    *_, every = run_relations(replace(config, vocabulary=False), lambda _: None, RoomTracker())
    for row, whole in zip(some.rows, every.rows, strict=True):
        assert row.rewrites < whole.rewrites
        assert row.reasons[UNKNOWN_WORD] > 0


def test_rewrites_that_only_leave_out_words_stay() -> None:
    user = "I need a room for the night please"
    data = DialogueSet("rooms", "test", (Dialogue("d", (Turn(0, "", user, BeliefState()),)),))
    for name in ("stop-word-dropout", "neighbour-swap"):
        relation = KnownWordsRelation(relation_by_name(name), (), tokenise)
        found = check_laws(relation, data, load_lexicon(), 0)
        found.assert_passed()
        assert found.rewrites > 0


def test_a_tracker_without_a_vocabulary_is_refused() -> None:
    settings = common_settings(data="sample", variants=1)
    config = RelationsConfig(settings, relations="speech", max_dialogues=1, vocabulary=True)
    with pytest.raises(UserError, match="has no vocabulary of words"):
        list(run_relations(config, lambda _: None, lambda _: {}))


class HearingTracker:
    """Stores the contexts that it hears, and sets no slot."""

    def __init__(self) -> None:
        self.heard: set[tuple[str, ...]] = set()

    def predict(self, contexts: list[Context]) -> list[BeliefState]:
        self.heard |= {context.user_utterances for context in contexts}
        return [BeliefState() for _ in contexts]


def test_the_whole_context_is_rewritten_if_asked(tmp_path: Path) -> None:
    said = ("I need a big room for the night", "It should be in the old part of the town")
    path = tmp_path / "rooms.jsonl"
    turns = [{"system": "", "user": user, "state": {}} for user in said]
    path.write_text(json.dumps({"dialogue_id": "d", "turns": turns}) + "\n", encoding="utf-8")
    settings = common_settings(data=str(path), variants=2)
    for whole in (False, True):
        tracker = HearingTracker()
        config = RelationsConfig(settings, relations="neighbour-swap", whole_context=whole)
        *_, last = run_relations(config, lambda _: None, tracker)
        assert last.rows[0].rewrites > 0
        rewritten = {users for users in tracker.heard if len(users) == 2 and users[1] != said[1]}
        assert rewritten
        assert {users[0] == said[0] for users in rewritten} == {not whole}
    assert "earlier turns are rewritten, too" in tables(last)["relations.md"]


def test_value_f1_compares_with_the_recorded_answers() -> None:
    settings = common_settings(data="sample", variants=1)
    config = RelationsConfig(settings, relations="neighbour-swap", max_dialogues=4, value_f1=True)
    *_, last = run_relations(config, lambda _: None, HearingTracker())
    (row,) = csv.DictReader(tables(last)["value-f1.csv"].splitlines())
    # The tracker has no values, so it is never right.
    assert float(row["clean_f1"]) == float(row["rewritten_f1"]) == 0
    assert 0.9 < float(row["turn_similarity"]) <= 1.0
    assert row["reply_similarity"] == ""
    paired = last.rows[0].paired
    assert paired is not None
    turns = [turn for one in last.data.dialogues for turn in one.turns if turn.state is not None]
    assert (
        0
        < sum(whole for _, whole in paired.clean.values())
        <= sum(len(turn.state or {}) for turn in turns)
    )


def test_the_values_of_a_reply_are_its_names_and_numbers() -> None:
    reply = Outcome({"reply": "The train to Ely leaves at 8:30, platform 4."})
    other = Outcome({"reply": "It leaves for Ely at 9:15."})
    same = values_of(reply, replies=True) & values_of(other, replies=True)
    assert len(same) == 1
    assert len(values_of(reply, replies=True)) >= 3
    state = Outcome({"train-day": "monday", "train-to": "ely"})
    assert values_of(state, replies=False) == {("train-day", "monday"), ("train-to", "ely")}
    assert similarity("a b c", "c b a") == pytest.approx(1.0)
    assert similarity("it leaves at noon", "the red boat sank") < 0.9


class TimetableBot:
    """Knows one departure, and forgets its time if the question is not as it expects."""

    repeatable = True

    def predict(self, contexts: list[Context]) -> list[Prediction]:
        time = {"When does the train to Ely leave": "at 8:30"}
        said = (time.get(context.user, "later") for context in contexts)
        return [Prediction(BeliefState(), reply=f"The train to Ely leaves {one}.") for one in said]


def test_value_f1_of_replies(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    turn = {"system": "", "user": "When does the train to Ely leave", "answer": "To Ely at 8:30."}
    lines = [json.dumps({"dialogue_id": name, "turns": [turn]}) for name in "ab"]
    path.write_text("\n".join(lines), encoding="utf-8")
    settings = common_settings(data=str(path), outcome="reply", variants=1)
    config = RelationsConfig(settings, relations="neighbour-swap", value_f1=True)
    *_, last = run_relations(config, lambda _: None, TimetableBot())
    (row,) = csv.DictReader(tables(last)["value-f1.csv"].splitlines())
    # Clean: Ely and 8:30, both recorded. Rewritten: Ely alone.
    assert float(row["clean_f1"]) == 1.0
    assert float(row["rewritten_f1"]) == pytest.approx(2 / 3, abs=1e-3)
    assert float(row["difference"]) == pytest.approx(-1 / 3, abs=1e-3)
    assert 0 < float(row["reply_similarity"]) < 1


class WordForWord:
    """Calls the first of its tools with the user's words."""

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        made = []
        for context in contexts:
            assert context.transcript is not None
            tool = f"{context.transcript.tools[0].name}[0]"
            calls = Outcome({tool: "call 1", f"{tool}.words": context.user})
            made.append(Prediction(calls, calls=calls))
        return made


def test_an_assistant_gets_the_tools_of_the_data() -> None:
    settings = common_settings(data="sample", outcome="tool-calls", variants=1)
    config = RelationsConfig(settings, relations="politeness", max_dialogues=3)
    *_, last = run_relations(config, lambda _: None, WordForWord())
    assert last.rows[0].count("changed") == last.rows[0].rewrites > 0
