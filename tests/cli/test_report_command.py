"""``dstfuzz report``: pages from the JSON report of a run."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mutate import damaged_text

pytest.importorskip("jinja2")

from pytest_dstfuzz import cli
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.report.json_report import RunInfo, build_report, report_text, write_report


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a report in it, as the working folder."""
    info = RunInfo("sample", "test", "multiwoz", "original", 72, 366)
    report = build_report([], Settings(), info)
    write_report(tmp_path / "report.json", report)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_both_are_written_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["report", "report.json", "--html", "out/page.html", "--markdown", "summary.md"]
    assert cli.main(line) == 0
    assert capsys.readouterr().out.splitlines() == ["out/page.html", "summary.md"]
    assert (
        "nothing was tested" in (folder / "out" / "page.html").read_text(encoding="utf-8").lower()
    )
    assert "nothing was tested" in (folder / "summary.md").read_text(encoding="utf-8").lower()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report", "required: REPORT"),
        ("report report.json", "nothing to write: add --html PATH, --markdown PATH, or both"),
        ("report report.json --htlm x", "did you mean --html?"),
        ("report missing.json --html x.html", "cannot read the report missing.json"),
        ("report half.json --html x.html", "this is not a complete report: data, run missing"),
        ("report report.json --html .", "cannot write .: it is a folder"),
    ],
)
def test_mistakes(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    (folder / "half.json").write_text(
        '{"schema_version": 3, "summary": {}, "settings": {}, "turns": []}', encoding="utf-8"
    )
    assert cli.main(line.split()) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "x.html").exists()


@pytest.fixture(scope="module")
def judged() -> Any:
    """The report of a run that was compared with a baseline, with edits of every kind."""
    data = load_dialogues("sample")
    settings = Settings.of(variants=2, attack="cumulative", model="mybot:track")
    dialogues = data.dialogues[:2]
    plan = [(dialogue, min(2, len(dialogue.turns) - 1)) for dialogue in dialogues]

    class Bot:
        def predict(self, contexts: Sequence[Context]) -> list[dict[str, str]]:
            return [{"hotel-name": context.user[:12]} for context in contexts]

    bot: Any = Bot()
    results = list(CampaignEngine(settings, data, bot, load_lexicon(), plan=plan).run())
    row = {"variants": 20, "before": 0.1, "after": 0.3}
    comparison = {
        "baseline": {"model": "m", "version": "1"},
        "turns": 10,
        "only_baseline": 1,
        "only_run": 0,
        "dialogues": 2,
        "share": 0.9,
        **row,
        "difference": 0.2,
        "interval": [0.1, 0.3],
        "p_value": 0.01,
        "estimated_failures": {
            "before": 5.5,
            "after": 7.5,
            "difference": 2.0,
            "interval": [0.5, 3.5],
            "turns": 10,
            "dialogues": 9,
            "reason": "",
        },
        "new_violations": [[results[0].id, 1]],
        "gone_violations": [],
        "domains": {"hotel": row},
        "slots": {"hotel-name": row},
        "transformations": {"word_drop": row},
    }
    finding = {
        "part": {"kind": "slot", "name": "hotel-name"},
        "gate": "max-failure-rate",
        "limit": 0.1,
        "verdict": "regression",
        "reason": "over the limit",
        "value": 0.3,
        "interval": [0.1, 0.4],
        "dialogues_needed": 5,
    }
    gate = {"verdict": "regression", "troubles": [], "not_compared": [], "findings": [finding]}
    gate["comparison"] = comparison
    report = build_report(results, settings, RunInfo.of(data), gate)
    return json.loads(report_text(report))


@pytest.mark.parametrize("block", range(4))
def test_no_damage_ends_in_a_traceback(
    folder: Path, judged: Any, block: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = Counter[int]()
    for seed in range(50 * block, 50 * block + 50):
        what, text = damaged_text(judged, random.Random(seed))
        (folder / "bad.json").write_text(text, encoding="utf-8", errors="surrogatepass")
        # The page is drawn with plots, which take their time.
        page = ["--html", "x.html"] if seed % 10 == 0 else []
        try:
            status = cli.main(["report", "bad.json", "--markdown", "x.md", *page])
        except Exception as error:
            raise AssertionError(f"seed {seed}, {what}") from error
        ended[status] += 1
        shown = capsys.readouterr().err
        assert status in (0, 2), shown
        assert status == 0 or shown.startswith("dstfuzz: error: "), (what, shown)
        assert len(shown) < 1000, (what, shown)
    # Some damage is none that a reader could see.
    assert ended[2] > 25


def test_damage_is_named_with_its_place(
    folder: Path, judged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    report = copy.deepcopy(judged)
    report["turns"][3]["variants"][1]["edit_w"] = [1, 2]
    report["turns"][4]["calls"] = "7"
    (folder / "bad.json").write_text(json.dumps(report), encoding="utf-8")
    assert cli.main(["report", "bad.json", "--markdown", "x.md"]) == 2
    place = "turns[3].variants[1].edit_w: [1, 2] instead of a number (and 1 more)"
    assert f"bad.json is damaged: {place}" in capsys.readouterr().err
