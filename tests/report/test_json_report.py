"""The JSON report: its schema, its bytes, and reading it back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.gate.verdict import LIMITS
from pytest_dstfuzz.report.json_report import (
    SCHEMA_PATH,
    RunInfo,
    build_report,
    info_of,
    read_report,
    report_text,
    report_turns,
    write_report,
)
from pytest_dstfuzz.report.packing import problems, unpack_turns

INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)


def build(
    results: list[TurnResult], info: RunInfo = INFO, settings: Settings | None = None
) -> dict[str, Any]:
    return build_report(results, settings or Settings(), info)


def test_the_report_keeps_its_schema(results: list[TurnResult]) -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    for turns in (results, []):
        report = json.loads(report_text(build(turns)))
        assert problems(report, schema) == []
        assert list(report) == schema["required"]
    broken = {**report, "schema_version": 4, "turns": [{"id": True}], "summary": {"turns": -1}}
    found = problems(broken, schema)
    assert "$: 2" not in found
    assert any(text.startswith("$.schema_version: 4 breaks const") for text in found)
    assert "$.turns[0]: lacks outcome" in found
    assert any("-1 breaks minimum" in text for text in found)


def test_the_page_of_the_schema_names_each_limit_of_the_gate() -> None:
    text = SCHEMA_PATH.with_name("schema.md").read_text(encoding="utf-8")
    named = re.search(r"`gate` \(the limit: (.*?), or one of a plugin", text, re.DOTALL)
    assert named is not None
    assert re.split(r",\s+", named[1]) == [limit.name for limit in LIMITS]


def test_the_schema_has_the_regressions_where_they_are(results: list[TurnResult]) -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    entry = {"id": "0123456789", "status": "open", "reason": "", "turn": "t", "changed": []}
    for outcome in ("fixed", "unclear"):
        kept = {**build(results), "regressions": [{**entry, "outcome": outcome, "weakness": ""}]}
        assert problems(kept, schema) == []
    found = problems({**kept, "regressions": [{**entry, "outcome": "mended"}]}, schema)
    assert [text.partition(":")[0] for text in found] == ["$.regressions[0].outcome"]
    # All keys of an object of the schema are keys of a real report; that of test cases is one only
    # if rewrites belong to some, that of models if a session tests several, and that of sections if
    # a hook adds some.
    assert set(schema["properties"]) - {"mortar", "models", "sections"} == set(build(results))
    assert set(schema["$defs"]["summary"]["properties"]) == set(build(results)["summary"])


def test_the_core_keys_are_those_that_were_promised(results: list[TurnResult]) -> None:
    report = json.loads(report_text(build(results)))
    assert set(report["summary"]) == {
        "turns",
        "generated",
        "vacuous",
        "duplicate",
        "vetoed",
        "over_rate",
        "unstable",
        "valid",
        "held",
        "violations",
        "carried",
        "improved",
        "errors",
        "valid_rate",
        "failure_rate",
        "failure_rate_interval",
        "yield",
        "calls",
        "minimiser_calls",
        "turns_broken",
        "turns_tested",
        "dialogues_tested",
        "turn_failure_rate",
        "turn_failure_rate_interval",
        "clean_answered",
        "clean_empty",
        "clean_empty_share",
        "failure_rate_not_empty",
        "clean_labelled",
        "clean_right",
        "clean_accuracy",
        "noise",
        "repeats",
        "estimated_failures",
        "reach",
        "conversation_calls",
        "malformed",
    }
    turn = next(turn for turn in report["turns"] if turn["outcome"] == "violation")
    assert {
        "id", "dialogue_id", "turn_index", "system", "user", "clean_state", "outcome", "variants",
    } <= set(turn)  # fmt: skip
    assert {
        "text", "earlier", "edits", "edit_w", "edit_c", "valid", "reason", "state",
        "changed_slots", "cause", "outcome",
    } <= set(turn["variants"][0])  # fmt: skip
    assert set(turn["variants"][0]["edits"][0]) == {
        "transformation", "operator", "start", "end", "before", "after",
    }  # fmt: skip


def test_the_ledger_adds_up(results: list[TurnResult]) -> None:
    book = build(results)["ledger"]
    rows = [
        book["total"],
        *book["operators"],
        *(row for name in ("transformations", "domains", "slots") for row in book[name].values()),
    ]
    for row in rows:
        assert row["generated"] == sum(
            row[name] for name in ("vacuous", "duplicate", "vetoed", "over_rate", "valid")
        )
        assert row["valid"] == sum(
            row[name]
            for name in ("held", "violations", "uncredited", "carried", "improved", "errors")
        )
    assert book["vetoes"] == {"value": 2}
    assert book["causes"] == {"turn": 1}


def test_same_bytes_but_for_the_run(results: list[TurnResult]) -> None:
    one = report_text(build(results))
    other = report_text(
        build(
            results[::-1],
            replace(
                INFO, notes=("/data/x",), command="pytest -n 2", seconds=3.14159, started="now"
            ),
            Settings.of(device="cuda", report="/r.json", data="/data", checkpoint="/c"),
        )
    )
    assert one != other
    assert one.splitlines()[:-2] == other.splitlines()[:-2]
    assert one.splitlines()[-2].startswith('"run": {')
    assert json.loads(other)["run"]["seconds"] == 3.1416
    assert not set(json.loads(other)["settings"]) & {"device", "report", "data", "checkpoint"}


def test_two_results_of_one_turn_have_an_order(broken: TurnResult) -> None:
    other = replace(broken, variants=broken.variants[:1])
    assert report_text(build([broken, other])) == report_text(build([other, broken]))


def test_rounding(results: list[TurnResult]) -> None:
    report = build(results)
    violation = next(turn for turn in report["turns"] if turn["turn_index"] == 1)["variants"][1]
    assert violation["edit_c"] == 0.0108
    assert report["summary"]["failure_rate"] == 0.1429
    variant = replace(results[1].variants[0], edit_w=-0.00001)
    text = report_text(build([replace(results[1], variants=(variant,))]))
    assert '"edit_w": 0.0,' in text


def test_written_and_read_back(results: list[TurnResult], tmp_path: Path) -> None:
    path = tmp_path / "reports" / "one.json"
    odd = replace(results[0], user="\ud800 caf\u00e9 \U0001f642\n\u200b")
    report = build([odd, *results[1:]])
    write_report(path, report)
    content = json.loads(path.read_bytes())
    assert {**content, "turns": list(unpack_turns(content["turns"]))} == report
    assert "caf\u00e9 \U0001f642" in path.read_text(encoding="utf-8")
    assert read_report(path) == report
    turns = report_turns(report)
    assert {turn.id for turn in turns} == {turn.id for turn in results}
    assert [turn.to_json() for turn in turns] == report["turns"]


def test_an_existing_report_survives(results: list[TurnResult], tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    write_report(path, build(results))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write_report(path, {"bad": float("nan")})
    with pytest.raises(UserError):
        write_report(path / "below", build(results))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the report .*: No such file"),
        (b"\xff", "not UTF-8"),
        (b"", "is not a valid report: it is not valid JSON, perhaps cut off"),
        (b'{"schema_version": 1, "summ', "not valid JSON, perhaps cut off"),
        (b"[" * 100_000, "is not a valid report: it is nested too deeply"),
        (b"[]", "no 'schema_version'"),
        (b'{"schema_version": "1"}', "no 'schema_version'"),
        (b'{"schema_version": 4}', "update pytest-dstfuzz"),
        (b'{"schema_version": 2}', "write the report again"),
        (b'{"schema_version": 3, "summary": {}, "turns": 1}', "settings, turns missing"),
    ],
)
def test_what_is_no_report(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_report(path)


@pytest.mark.parametrize("turn", [{}, [], None, {"variants": 3, "clean_state": 1, "label": 2}])
def test_what_is_no_turn(turn: object) -> None:
    with pytest.raises(DataError, match="entry 0 of 'turns' is no turn"):
        report_turns({"turns": [turn]})


@pytest.mark.parametrize("damaged", [{}, {"contexts": 8, "answers": 3}, {"differed": -0.0}])
def test_a_damaged_fact_about_the_run_is_one_message(
    results: list[TurnResult], damaged: dict[str, Any]
) -> None:
    report = json.loads(report_text(build(results)))
    report["run"]["disagreement"] = damaged
    with pytest.raises(DataError, match="the report is damaged: 'disagreement': "):
        info_of(report)
