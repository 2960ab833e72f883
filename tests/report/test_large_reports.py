"""Reports of large runs: the same from a disk as from memory, in few passes, in parts beside it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import json_decoder, json_encoded
from pytest_dstfuzz.report import json_report, packing
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import (
    RunInfo,
    build_report,
    read_report,
    report_text,
    report_turns,
    write_report,
)
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.totals import plainest
from pytest_dstfuzz.totals.totals import Totals
from pytest_dstfuzz.weaknesses.groups import find_weaknesses

INFO = RunInfo("travel", "test", "plain", "jsonl", 12, 12)
SETTINGS = Settings.of(model="bot")
_DECODED = json_decoder(TurnResult)


class LinesOnDisk(Collection[TurnResult]):
    """Results that are read from a file each time, and count how often."""

    def __init__(self, path: Path, results: Collection[TurnResult]) -> None:
        self._path, self._count, self.passes = path, len(results), 0
        path.write_bytes(b"".join(json_encoded(turn) + b"\n" for turn in results))

    def __len__(self) -> int:
        return self._count

    def __contains__(self, turn: object) -> bool:
        return any(one == turn for one in self)

    def __iter__(self) -> Iterator[TurnResult]:
        self.passes += 1
        with self._path.open("rb") as file:
            yield from map(_DECODED, file)


@pytest.fixture
def many(results: list[TurnResult]) -> list[TurnResult]:
    """The results again and again, under names whose order is not that of the data."""
    return [
        replace(turn, dialogue_id=f"{name}-{turn.dialogue_id}", id=f"{name}-{turn.id}")
        for name in ("b", "c", "a", "d")
        for turn in results
    ]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a report of a few turns a large one."""
    monkeypatch.setattr(json_report, "MOST_IN_ONE_FILE", 3)
    monkeypatch.setattr(packing, "TURNS_OF_PART", 2)


def reports(results: Collection[TurnResult]) -> list[str]:
    totals = Totals.of(results)
    report = build_report(results, SETTINGS, INFO, totals=totals)
    lines = report_lines(results, SETTINGS, INFO, totals=totals)
    pages = [report_text(report), html_text(report), markdown_text(views_of(report))]
    return [*pages, "\n".join(line.text for line in lines)]


def test_reports_are_the_same_from_a_disk_in_two_passes(
    tmp_path: Path, many: list[TurnResult]
) -> None:
    pytest.importorskip("jinja2")
    stored = LinesOnDisk(tmp_path / "results.jsonl", many)
    assert reports(stored) == reports(tuple(many))
    # One for all figures and weaknesses, and one for the turns of the report.
    assert stored.passes == 2


@pytest.mark.usefixtures("large")
def test_a_large_report_is_read_as_it_was_written(tmp_path: Path, many: list[TurnResult]) -> None:
    path = tmp_path / "report.json"
    written = build_report(many, SETTINGS, INFO)
    write_report(path, written)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["schema_version"] == 3
    assert content["turns"]["count"] == len(many)
    assert sorted(content["turns"]["parts"]) == sorted(
        part.name for part in tmp_path.glob("report.turns-*.jsonl")
    )
    again = read_report(path)
    turns = list(report_turns(again))
    assert [(turn.dialogue_id, turn.turn_index) for turn in turns] == sorted(
        (turn.dialogue_id, turn.turn_index) for turn in many
    )
    assert list(again["turns"]) == list(written["turns"])
    assert markdown_text(views_of(again)) == markdown_text(views_of(written))
    # Written from what was read it is the same, and so are its parts.
    write_report(path, again)
    assert json.loads(path.read_text(encoding="utf-8")) == content


@pytest.mark.usefixtures("large")
def test_parts_of_an_earlier_report_go_when_the_new_one_is_there(
    tmp_path: Path, many: list[TurnResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    write_report(path, build_report(many, SETTINGS, INFO))
    before = set(tmp_path.glob("*.jsonl"))
    write_report(path, build_report(many[:-1], SETTINGS, INFO))
    assert len(list(report_turns(read_report(path)))) == len(many) - 1
    assert before - set(tmp_path.glob("*.jsonl"))
    monkeypatch.setattr(json_report, "MOST_IN_ONE_FILE", 1_000)
    write_report(path, build_report(many, SETTINGS, INFO))
    assert not list(tmp_path.glob("*.jsonl"))


@pytest.mark.usefixtures("large")
def test_a_part_that_is_gone_or_cut_off_is_told(tmp_path: Path, many: list[TurnResult]) -> None:
    path = tmp_path / "report.json"
    write_report(path, build_report(many, SETTINGS, INFO))
    *_, last = sorted(tmp_path.glob("*.jsonl"))
    report = read_report(path)
    last.write_bytes(b"")
    with pytest.raises(DataError, match="cut off"):
        list(report_turns(report))
    last.unlink()
    with pytest.raises(DataError, match="lacks its part"):
        read_report(path)


def test_a_page_shows_the_plainest_of_each_weakness(
    many: list[TurnResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    weaknesses = find_weaknesses(many)
    report = build_report(many, SETTINGS, INFO)
    total = sum(len(turn.violations) for turn in many)
    monkeypatch.setattr(plainest, "MOST_ON_PAGE", len(weaknesses))
    monkeypatch.setattr(plainest, "_MOST_OF_WEAKNESS", 1)
    tally = plainest.OnPageTally([one.members for one in weaknesses])
    for turn in many:
        tally.add(turn)
    chosen = tally.chosen
    assert len(chosen.numbers) == len(weaknesses) < total == chosen.total
    found = [(turn, one) for turn in many for one in turn.violations]
    names = {
        f"{turn.id}-v{one.index}"
        for number, (turn, one) in enumerate(found)
        if number in chosen.numbers
    }
    assert all(names & set(one.members) for one in weaknesses)
    assert html_text(report)
