"""Reruns one cell of made tables, so that a table that the code no longer makes is found.

Run with ``make bench``. A cell is the cheapest one of its table. Those of RQ2 and RQ3 are rows of
random sampling, which need no trained policy. They need the predictions for a whole split, which
take a minute for TRADE and some five minutes for SimpleTOD. RQ1 needs them for two splits, so only
TRADE has a cell. The tables of searches at equal calls have none, because they are out of date.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("torch")

from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.papers import contexts, mortar, relations, rq1, rq2, rq3
from pytest_dstfuzz.papers.canard import RetrievalBot, Rewrites, half_of, load_rewrites
from pytest_dstfuzz.papers.comparison import (
    GroundConfig,
    SearchComparison,
    common_settings,
    parse_contenders,
    prepare,
)
from pytest_dstfuzz.papers.formatting import csv_text
from pytest_dstfuzz.relations.contexts import LostContext, context_checks_named

SHARED = Path(os.environ.get("DSTFUZZ_SHARED", Path(__file__).parents[3] / "shared"))
MULTIWOZ = SHARED / "data" / "multiwoz21"
CANARD = SHARED / "data" / "canard" / "dev.json"
EXAMPLES = Path(__file__).parents[2] / "examples"
needs_multiwoz = pytest.mark.skipif(
    not MULTIWOZ.is_dir(), reason="needs the MultiWOZ files of ../shared"
)


def made(table: str, /, **cell: str) -> list[dict[str, str]]:
    """Return the rows of a table that have the given values in some columns."""
    with (EXAMPLES / table).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [row for row in rows if all(row[name] == value for name, value in cell.items())]


def assert_made(table: str, found: Iterable[Mapping[str, str]], /, **cell: str) -> None:
    """Assert that the code makes the cell of a table as it is in the repository."""
    wanted = made(table, **cell)
    assert wanted, f"{table} has no row with {cell}"
    assert list(found) == wanted, f"examples/{table} is stale: run the command in its .md file"


@pytest.fixture(scope="module")
def gold() -> Rewrites:
    if not CANARD.is_file():
        pytest.skip("needs CANARD of ../shared")
    return load_rewrites(CANARD, load_lexicon())


def test_a_cell_of_the_context_checks(gold: Rewrites) -> None:
    half = [one for one in gold.data.dialogues if half_of(one) == 0]
    counts = contexts.in_sequences(gold, half, context_checks_named(["needed"]), seed=0)
    found = [
        {"figure": figure, "part": str(part), "whole": str(whole)}
        for figure, of in counts.of.items()
        for part, whole in [[sum(pair) for pair in zip(*of.values(), strict=True)]]
    ]
    rows = made("mortar/contexts.csv", table="sequences", check="needed", half="half 0")
    assert found == [{name: row[name] for name in ("figure", "part", "whole")} for row in rows], (
        "examples/mortar/contexts.csv is stale: run the command in its .md file"
    )


def test_a_cell_of_the_planted_faults(gold: Rewrites, monkeypatch: pytest.MonkeyPatch) -> None:
    families = {mortar.MORTAR: (LostContext,), mortar.METAL: ()}
    monkeypatch.setattr(mortar, "FAMILIES", families)
    way, run, _ = next(mortar.ways(gold, own=True, seed=0))
    sound = mortar.AskedBot(RetrievalBot(gold), own=True)
    result = mortar.run_bot(run, mortar.SOUND, (mortar.MORTAR,), sound)
    table = mortar.MortarTable(gold.data, {way: [result]}, "", 0, "own", "")
    found = _rows(mortar.tables(table)["mortar.csv"])
    assert_made("mortar/mortar.csv", found, way=way, bot="sound", relation="lost-context")


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the look-up tracker of the examples be imported."""
    monkeypatch.syspath_prepend(EXAMPLES / "relations")
    monkeypatch.setenv("RULES_DATA", str(MULTIWOZ))
    yield
    sys.modules.pop("rule_tracker", None)


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("table", "model", "relation", "dialogues", "variants"),
    [
        ("rules", "rule_tracker:CountedRules", "role-swap", 500, 2),
        ("trade", "trade", "role-swap", 500, 2),
        ("trade-rounds", "trade", "drop", 300, 4),
        ("simpletod", "simpletod", "drop", 100, 2),
    ],
)
@needs_multiwoz
def test_a_cell_of_the_relations(
    table: str, model: str, relation: str, dialogues: int, variants: int
) -> None:
    settings = common_settings(model=model, data=str(MULTIWOZ), variants=variants, seed=0)
    config = relations.RelationsConfig(settings, relations=relation, max_dialogues=dialogues)
    *_, last = relations.run_relations(config, lambda _: None)
    found = _rows(csv_text(relations.COLUMNS, last.rows))
    assert_made(f"relations/{table}/relations.csv", found, relation=relation)


@pytest.mark.parametrize("whole", [False, True])
@needs_multiwoz
def test_a_cell_of_value_f1(*, whole: bool) -> None:
    settings = common_settings(model="trade", data=str(MULTIWOZ), variants=1)
    config = relations.RelationsConfig(
        settings, relations="phrase-table", max_dialogues=60, whole_context=whole, value_f1=True
    )
    *_, last = relations.run_relations(config, lambda _: None)
    texts = relations.tables(last)
    table = "whole-context" if whole else "value-f1"
    for name in ("relations.csv", "value-f1.csv"):
        assert_made(f"relations/{table}/{name}", _rows(texts[name]), relation="phrase-table")


@cache
def ground(model: str, split: str, *, all_right: bool = False) -> SearchComparison:
    """Return the dialogues of RQ2 and RQ3 for a model, which answers the whole split."""
    settings = common_settings(model=model, data=str(MULTIWOZ), redraws=8)
    config = GroundConfig(settings, splits=(split,), seeds=(0,), all_right=all_right)
    return prepare(config, ("random",), folder=None, jobs=1, say=lambda _: None)


def without(row: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return a row without the columns whose names begin with one of these words."""
    return {name: cell for name, cell in row.items() if not name.startswith(names)}


@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
@needs_multiwoz
def test_a_cell_of_rq1(validity: str) -> None:
    settings = common_settings(model="trade", data=str(MULTIWOZ), variants=5, redraws=0)
    config = rq1.Rq1Config(settings, validities=(validity,), ks=(1,))
    found = _rows(rq1.tables(rq1.run_rq1(config, lambda _: None))["rq1.csv"])
    assert_made("rq1/rq1.csv", found, validity=validity, k="1")


@pytest.mark.parametrize(
    ("table", "model", "validity", "split"),
    [
        ("strict", "trade", "strict", "val"),
        ("edit-rate", "trade", "edit-rate", "val"),
        ("simpletod", "simpletod", "edit-rate", "test"),
    ],
)
@needs_multiwoz
def test_a_cell_of_rq2(table: str, model: str, validity: str, split: str) -> None:
    config = rq2.Rq2Config(parse_contenders("random"), validities=(validity,), ks=(1,))
    dialogues = ground(model, split, all_right=split == "test")
    found = _rows(rq2.tables(rq2.run_rq2(dialogues, config), charts=False)["rq2.csv"])
    wanted = made(f"rq2/{table}/rq2.csv", k="1", search="random", run="random", seed="0")
    # With one run, its row is that of all runs.
    skipped = "run", "seed"
    assert [without(row, *skipped) for row in found] == [without(row, *skipped) for row in wanted]


@pytest.mark.parametrize(
    ("table", "validity"),
    [("strict-chosen", "strict"), ("chosen", "edit-rate"), ("parts", "strict")],
)
@needs_multiwoz
def test_a_cell_of_rq3(table: str, validity: str) -> None:
    # With a k that is not the best one, the row is that of one run.
    wanted, *_ = made(f"rq3/{table}/rq3.csv", search="random", best_k="no")
    assert without(_cell_of_rq3(validity, "val", int(wanted["k"])), *_COMPARED) == without(
        wanted, *_COMPARED
    )


@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
@needs_multiwoz
def test_the_first_run_of_a_cell_of_rq3_on_the_test_split(validity: str) -> None:
    (wanted,) = made(f"rq3/{validity}/rq3.csv", search="random")
    found = _cell_of_rq3(validity, "test", int(wanted["k"]))
    # The table has the mean of three runs. All have the same turns and budget.
    assert found["turns"] == wanted["turns"]
    rate = float(found["broken_per_1000_calls"])
    low, high = (float(wanted[f"broken_per_1000_calls_{end}"]) for end in ("low", "high"))
    assert low <= rate <= high


#: Columns that compare a search with others.
_COMPARED = "best_k", "ratio", "broken_alone"


def _cell_of_rq3(validity: str, split: str, k: int) -> dict[str, str]:
    config = rq3.Rq3Config(
        parse_contenders("random"),
        budgets=(8,),
        validities=(validity,),
        until_broken=(True,),
        ks=(k,),
    )
    dialogues = ground("trade", split, all_right=split == "test")
    (found,) = _rows(rq3.tables(rq3.run_rq3(dialogues, config))["rq3.csv"])
    return found


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))
