"""The table of relations: one side beside the other, never added."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.papers.comparison import common_settings
from pytest_dstfuzz.papers.relations import (
    RelationRow,
    RelationsConfig,
    run_relations,
    tables,
)
from pytest_dstfuzz.relations.checks import UNKNOWN_WORD, KnownWordsRelation, check_laws
from pytest_dstfuzz.relations.registry import relation_by_name

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
