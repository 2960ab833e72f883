"""The table of random perturbations, on the shipped dialogues and a tracker of rules."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dstfuzz.agents.training import environment
from pytest_dstfuzz.campaign.figures import Counts
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers import rq1
from pytest_dstfuzz.papers.comparison import CampaignFigures, common_settings, draw_dialogues
from pytest_dstfuzz.papers.formatting import Rate
from pytest_dstfuzz.papers.rq1 import Rq1Config, run_rq1, tables
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.tracker import Tracker


class Memory:
    """Knows the labels of the clean turns; forgets one slot when the newest was perturbed."""

    def __init__(self, data: DialogueSet, wrong: int) -> None:
        self._states: dict[tuple[str, ...], BeliefState] = {}
        self._newest: dict[str, BeliefState] = {}
        for number, dialogue in enumerate(data.dialogues):
            for turn in dialogue.turns:
                users = dialogue.context(turn.index).user_utterances
                state = turn.state or BeliefState()
                self._states[users] = BeliefState() if number < wrong and turn.index else state
                self._newest[turn.user] = state

    def __call__(self, context: Context) -> dict[str, str]:
        known = self._states.get(context.user_utterances)
        if known is None:
            known = self._newest.get(context.user, BeliefState())
        return dict(known)


@pytest.fixture(scope="module")
def data() -> DialogueSet:
    return load_dialogues("sample", "test")


@pytest.fixture(scope="module")
def tracker(data: DialogueSet) -> Tracker:
    return as_tracker(Memory(data, wrong=10), normalisation=data.normalisation)


SETTINGS = common_settings(model="memory", redraws=0)
CONFIG = Rq1Config(SETTINGS, splits=("test",), ks=(1, 3), max_dialogues=8, command="dstfuzz x")


@pytest.fixture(scope="module")
def table(tracker: Tracker) -> rq1.Rq1Table:
    return run_rq1(CONFIG, lambda _: None, tracker)


@pytest.mark.nightly
def test_only_dialogues_right_throughout(table: rq1.Rq1Table, data: DialogueSet) -> None:
    right = table.evaluations[0].right_dialogues
    assert len(right) < len(data.dialogues)
    assert len(table.data.dialogues) == 8
    assert all(len(row.figures.turns) == table.data.turn_count() for row in table.rows)


def test_rows(table: rq1.Rq1Table) -> None:
    names = [(row.validity, row.k) for row in table.rows]
    assert names == [("edit-rate", 1), ("edit-rate", 3), ("strict", 1), ("strict", 3)]
    for row in table.rows:
        counts = row.counts
        assert counts.generated == 5 * table.data.turn_count()
        thesis = (counts.violations + counts.carried) / counts.valid
        assert counts.failure_rate is not None
        assert thesis >= counts.failure_rate > 0
        for name, rate in (
            ("valid_rate", counts.valid_rate),
            ("failure_rate", counts.failure_rate),
            ("thesis_failure_rate", thesis),
            ("yield", counts.yield_rate),
        ):
            value, interval = row.rates[name]
            assert value == rate
            assert value is not None
            assert interval is not None
            assert interval[0] <= value <= interval[1]
        assert row.figures.inertia == pytest.approx((6 + 5 * row.k) / 12, rel=0.05)
        assert row.broken_per_1000_calls == pytest.approx(
            1000 * row.figures.turns_broken / row.figures.calls
        )


@pytest.mark.nightly
def test_the_same_again(table: rq1.Rq1Table, tracker: Tracker) -> None:
    again = run_rq1(CONFIG, lambda _: None, tracker)
    assert [item.figures.turns for item in again.rows] == [
        item.figures.turns for item in table.rows
    ]
    assert tables(again) == tables(table)


def test_files(table: rq1.Rq1Table) -> None:
    texts = tables(table)
    assert list(texts) == ["rq1.md", "rq1.csv"]
    text = texts["rq1.md"]
    for part in (
        "`dstfuzz x`",
        "tracker: memory",
        "split test (original layout): 72 dialogues",
        "perturbed: 8 dialogues right at every turn (at most 8, drawn by seed)",
        "## Validity profile `edit-rate`",
        "| TRADE, MultiWOZ 2.1 | 7.51 % |",
        "- inertia: how far the drawn",
    ):
        assert part in text
    rows = list(csv.DictReader(texts["rq1.csv"].splitlines()))
    assert [row["k"] for row in rows] == ["1", "3", "1", "3"]
    first = table.rows[0]
    assert float(rows[0]["failure_rate"]) == round(first.counts.failure_rate or 0, 4)
    assert float(rows[0]["thesis_failure_rate_high"]) == round(
        (first.rates["thesis_failure_rate"].interval or (0, 0))[1], 4
    )


def test_what_was_not_counted_is_left_open(table: rq1.Rq1Table) -> None:
    rates = {"valid_rate": 0.0, "failure_rate": None, "thesis_failure_rate": None, "yield": 0.0}
    shown = {name: Rate(rate) for name, rate in rates.items()}
    row = rq1.Rq1Row("strict", 1, CampaignFigures((), 0.0, 0.0), Counts(vacuous=1), shown)
    config = replace(CONFIG, settings=SETTINGS.replace_options(checkpoint="weights"))
    texts = tables(replace(table, config=config, rows=(row,)))
    assert "| 1 | 0.00 % | n/a | n/a | 0.00 % | n/a | 0.00 (0.0 %) |" in texts["rq1.md"]
    assert "memory, checkpoint `weights`" in texts["rq1.md"]
    assert texts["rq1.csv"].splitlines()[1] == (
        "strict,1,0,1,0,0,0,0,0,0.0,,,,,,,,,0.0,,,0,0,,0.0,0.0"
    )


def test_progress_is_paced(monkeypatch: pytest.MonkeyPatch, tracker: Tracker) -> None:
    monkeypatch.setattr(environment, "SECONDS_BETWEEN_LINES", 0.0)
    lines: list[str] = []
    config = replace(CONFIG, ks=(1,), validities=("strict",), max_dialogues=2)
    run_rq1(config, lines.append, tracker)
    assert any(line.startswith("strict, k = 1: 1 of ") for line in lines)
    assert any("dialogues right at every turn" in line for line in lines)


@pytest.fixture
def module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracker: Tracker
) -> Iterator[tuple[Path, str]]:
    """A folder to work in, and the name under which the tracker is found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rq1, "tracker_for", lambda *_, **__: tracker)
    return tmp_path, "memory:track"


def test_the_command(module: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    folder, name = module
    arguments = ["--model", name, "--split", "test", "--k", "2,2", "--validity", "strict"]
    arguments += ["--max-dialogues", "3", "--output", "out", "--variants", "2", "--seed", "4"]
    assert rq1.main(arguments) == 0
    out, err = capsys.readouterr()
    assert out == (folder / "out" / "rq1.md").read_text(encoding="utf-8")
    assert f"`dstfuzz experiment rq1 {' '.join(arguments)}`" in out
    assert "2 variants per turn, edit rates up to 0.25, seed 4" in out
    assert "edit-rate" not in out.split("## Published")[0].split("Validity")[1]
    assert "written: out/rq1.csv" in err


def test_the_command_without_output(
    module: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", module[1], "--split", "test", "--k", "1", "--validity", "both"]
    assert rq1.main([*arguments, "--max-dialogues", "2", "--variants", "1"]) == 0
    assert "## Validity profile `strict`" in capsys.readouterr().out
    assert list(module[0].iterdir()) == []


@pytest.mark.nightly
def test_the_flat_limit_of_the_thesis(
    module: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", module[1], "--split", "test", "--k", "6", "--validity", "edit-rate"]
    arguments += ["--max-dialogues", "15"]
    tables = []
    for value in ("no", "yes"):
        assert rq1.main([*arguments, "--variants", "3", "--flat-edit-rate", value]) == 0
        tables.append(capsys.readouterr().out)
    assert "edit rates up to 0.25, seed 0" in tables[0]
    assert "edit rates up to 0.25, also in short utterances, seed 0" in tables[1]
    usual, flat = (
        float(next(line for line in table.splitlines() if line.startswith("| 6 ")).split()[3])
        for table in tables
    )
    assert flat < usual


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: --model"),
        (["--model", "m", "--k", "7"], "--k: '7' must be numbers from 1 to 6"),
        (["--model", "m", "--k", "x"], "--k: 'x' must be a whole number of at least 1"),
        (["--model", "m", "--split", "test,tset"], "unknown split 'tset'.*Did you mean 'test'"),
        (["--model", "m", "--validity", "strct"], "Did you mean 'strict'"),
        (["--model", "m", "--seed", "-1"], "--seed: '-1' must be"),
        (["--model", "m", "--max-dialogues", "0"], "--max-dialogues: '0' must be"),
        (["--model", "m", "--bogus"], "unknown argument '--bogus' .see dstfuzz experiment rq1"),
        (["--model", "m", "--varaints", "2"], "'--varaints'; did you mean --variants?"),
        (["--model", "m", "--output", "/dev/null/x"], "cannot write"),
        (["--model", "no.such:thing"], "there is no module 'no'"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    if "no.such:thing" in arguments:
        arguments += ["--split", "test"]
    with pytest.raises(UserError, match=message):
        rq1.main(arguments)


def test_help_shows_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        rq1.main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert all(flag in text for flag in ("--model", "--k", "--validity", "--output", "--seed"))


def test_dialogues_are_drawn_by_seed(data: DialogueSet) -> None:
    one, other = (draw_dialogues(data, 5, seed, "rq1", "dialogues") for seed in (1, 2))
    assert one.dialogues != other.dialogues
    assert len(one.dialogues) == 5
    assert draw_dialogues(data, None, 1, "rq1", "dialogues") is data
