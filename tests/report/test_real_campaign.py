"""Reports of a real campaign over the shipped dialogues."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.perturb.edits import apply_edits, undo_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.report.explain import explain, simplicity
from pytest_dstfuzz.report.json_report import (
    SCHEMA_PATH,
    RunInfo,
    build_report,
    read_report,
    report_text,
    report_turns,
    write_report,
)
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.terminal import report_lines
from pytest_dstfuzz.report.wording import diff_spans
from pytest_dstfuzz.trackers.adapters import as_tracker

SETTINGS = Settings.of(validity="strict", turns=60, transformations=3)
EDIT_RATE = SETTINGS.replace_options(validity="edit-rate", transformations=6)


def track(context: Context) -> dict[str, str]:
    """Follow two words, as brittle as can be, and fail now and then."""
    state = {}
    for text in context.user_utterances:
        if any("\u0400" <= char <= "\u04ff" for char in text):
            raise ValueError("cannot read this")
        if "please" in text.lower():
            state["hotel-area"] = "north"
        if "need" in text.lower():
            state["train-day"] = "friday"
    return state


@pytest.fixture(scope="module")
def data() -> DialogueSet:
    return load_dialogues("sample", "test")


def run(settings: Settings, data: DialogueSet) -> list[TurnResult]:
    predictor = predictor_for(settings, data, as_tracker(track, normalisation="multiwoz"))
    plan = sample_turns(data, settings.data.turns, settings.variant.seed)
    return list(CampaignEngine(settings, data, predictor, load_lexicon(), plan=plan).run())


@pytest.fixture(scope="module", params=[SETTINGS, EDIT_RATE], ids=["strict", "edit-rate"])
def campaign(
    request: pytest.FixtureRequest, data: DialogueSet
) -> tuple[Settings, list[TurnResult]]:
    return request.param, run(request.param, data)


Tested = tuple[Settings, list[TurnResult]]


def test_schema_and_bytes(campaign: Tested, data: DialogueSet, tmp_path: Path) -> None:
    settings, results = campaign
    report = build_report(results, settings, RunInfo.of(data))
    # Many of its values are wrong by the labels, so that losing them is an improvement.
    assert report["summary"]["violations"] + report["summary"]["improved"] >= 5
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(report, schema) == []
    again = run(settings, data)[::-1]
    other = build_report(again, settings, RunInfo.of(data, seconds=1.0))
    assert report_text({**report, "run": {}}) == report_text({**other, "run": {}})
    write_report(tmp_path / "r.json", report)
    turns = report_turns(read_report(tmp_path / "r.json"))
    assert summarise(turns) == summarise(results)


def test_edits_lead_from_the_clean_utterance_to_the_variant(campaign: Tested) -> None:
    for turn in campaign[1]:
        for variant in turn.variants:
            assert undo_edits(variant.text, variant.edits) == turn.user
            assert apply_edits(turn.user, variant.edits) == variant.text
            spans = diff_spans(turn.user, variant.edits)
            assert "".join(span.before for span in spans) == turn.user
            assert "".join(span.after for span in spans) == variant.text


def test_context_edits_lead_to_clean_utterances(campaign: Tested) -> None:
    users = {(turn.dialogue_id, turn.turn_index): turn.user for turn in campaign[1]}
    seen = 0
    for turn in campaign[1]:
        for variant in turn.variants:
            for earlier in variant.context_edits:
                text = variant.context[earlier.turn_index]
                clean = users[turn.dialogue_id, earlier.turn_index]
                assert undo_edits(text, earlier.edits) == clean
                seen += 1
    assert seen > 20


def test_every_failed_turn_is_explained(campaign: Tested) -> None:
    settings, results = campaign
    failed = [turn for turn in results if turn.outcome in ("violation", "error")]
    assert failed
    for turn in failed:
        text = explain(turn, settings, command="pytest x")
        assert turn.dialogue_id in text.splitlines()[0]
        assert "No violation" not in text
        plainest = min(turn.violations, key=simplicity, default=None)
        if plainest is not None and not any(v.outcome == "error" for v in turn.variants):
            assert text.endswith(f"repeat with: pytest x --dst-variant={plainest.index}")
        shown = [str(v.changed_slots[0]) in text for v in turn.violations]
        assert any(shown) or "cannot read this" in text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_terminal_shows_it(campaign: Tested, data: DialogueSet, encoding: str) -> None:
    settings, results = campaign
    summary = summarise(results)
    for width in (60, 100):
        lines = report_lines(
            results, settings, RunInfo.of(data), verbosity=1, width=width,
            encoding=encoding,
        )  # fmt: skip
        assert all(len(line.text) <= width for line in lines)
        text = "\n".join(line.text for line in lines)
        text.encode(encoding)
        assert f"{summary.violations:,} violations" in text
        assert "ValueError: cannot read this" in " ".join(text.split())
