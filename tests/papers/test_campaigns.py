"""Campaigns of an experiment: kept, taken again, run side by side, cut short."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import ContextEdits, TurnResult, VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, Difference
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import GivenUpError, UserError
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.papers.comparison import (
    FOLDER,
    CampaignFigures,
    CampaignRunner,
    Campaigns,
    Fingerprint,
    StrictVeto,
    turn_figures,
)
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.trackers.evaluate import Evaluation, evaluate
from pytest_dstfuzz.trackers.registry import resolve_tracker

HERE = Path(__file__).parent
BASE = Settings.of(
    model="memory_bot:track",
    turns=None,
    variants=2,
    transformations=1,
    redraws=4,
    validity="edit-rate",
)
TWO = (BASE, BASE.replace_options(seed=1))


@pytest.fixture(scope="module")
def bench() -> CampaignRunner:
    data = load_dialogues("sample", "test")
    tracker = resolve_tracker(
        "memory_bot:track", normalisation=data.normalisation, search_path=(str(HERE),)
    )
    return CampaignRunner(tracker, replace(data, dialogues=data.dialogues[:3]))


@pytest.fixture(scope="module")
def evaluation(bench: CampaignRunner) -> Evaluation:
    return evaluate(bench.tracker, bench.data, 64)


@pytest.fixture
def start(
    bench: CampaignRunner, evaluation: Evaluation, tmp_path: Path
) -> Callable[..., Campaigns]:
    """Begin as a new process would."""

    def start(lines: list[str] | None = None, **given: Any) -> Campaigns:
        options: dict[str, Any] = {"splits": ["test"], "folder": tmp_path, "jobs": 1}
        options |= {"say": [].append if lines is None else lines.append, **given}
        fingerprint = Fingerprint.of(bench.data, [evaluation], None)
        return Campaigns(bench, fingerprint, **options)

    return start


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The campaigns that are really run."""
    ran: list[Settings] = []
    run = CampaignRunner.run

    def counting(self: CampaignRunner, settings: Settings, say: Any = None) -> CampaignFigures:
        ran.append(settings)
        return run(self, settings, say)

    monkeypatch.setattr(CampaignRunner, "run", counting)
    return ran


def turns(campaigns: Campaigns) -> list[Any]:
    """Return the figures of the two, their seconds apart."""
    return [(item.turns, item.inertia) for item in campaigns.figures(TWO)]


def test_finished_campaigns_are_taken_again(
    start: Callable[..., Campaigns], counted: list[Settings], tmp_path: Path
) -> None:
    lines: list[str] = []
    first = start(lines)
    first.run([*TWO, BASE])
    assert counted == list(TWO)
    assert lines[0] == "2 campaigns, 0 finished before"
    assert lines[1].startswith("[1/2] edit-rate, random, k = 1, 2 variants, seed 0: ")
    assert any(turn.violations for turn in first.figures([BASE])[0].turns)
    first.run(TWO)
    assert counted == list(TWO)

    second = start(lines)
    second.run([*TWO, BASE.replace_options(stop_at_first=True)])
    assert counted[2:] == [BASE.replace_options(stop_at_first=True)]
    assert turns(second) == turns(first)
    assert len(list((tmp_path / FOLDER).iterdir())) == 3


@pytest.mark.parametrize("damage", ["{", "[]", '{"key": 1}', None])
def test_a_file_that_is_no_campaign_is_run_again(
    start: Callable[..., Campaigns], counted: list[Settings], tmp_path: Path, damage: str | None
) -> None:
    start().run([BASE])
    file = next((tmp_path / FOLDER).iterdir())
    if damage is None:
        kept = json.loads(file.read_text(encoding="utf-8"))
        del kept["figures"]["turns"][0]["counts"]
        damage = json.dumps(kept)
    file.write_text(damage, encoding="utf-8")
    start().run([BASE])
    assert counted == [BASE, BASE]


def test_what_is_another_campaign(
    bench: CampaignRunner,
    evaluation: Evaluation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    untrained: Callable[..., Path],
) -> None:
    policy = untrained(tmp_path / "policy.safetensors")
    usual = Fingerprint.of(bench.data, [evaluation], None)
    agent = BASE.replace_options(search=f"agent:{policy}")
    key = usual.key(agent)
    assert str(tmp_path) not in json.dumps(key)
    assert usual.key(agent.replace_options(data="elsewhere", report="x.json")) == key
    fewer = replace(bench.data, dialogues=bench.data.dialogues[:2])
    others = [
        usual.key(agent.replace_options(search="greedy")),
        usual.key(agent.replace_options(redraws=5)),
        Fingerprint.of(fewer, [evaluation], None).key(agent),
        Fingerprint.of(bench.data, [replace(evaluation, right=1)], None).key(agent),
        Fingerprint.of(bench.data, [evaluation], str(policy)).key(agent),
    ]
    untrained(policy, seed=6)
    others.append(usual.key(agent))
    monkeypatch.setattr("pytest_dstfuzz.papers.comparison._CODE", ("search",))
    others.append(Fingerprint.of(bench.data, [evaluation], None).key(agent))
    assert key not in others
    assert len({json.dumps(item) for item in others}) == len(others)


def test_nothing_is_written_without_a_folder(
    start: Callable[..., Campaigns], tmp_path: Path
) -> None:
    start(folder=None).run([BASE])
    assert list(tmp_path.iterdir()) == []


def test_several_processes_find_the_same(
    start: Callable[..., Campaigns], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    alone, together = start(folder=None), start(jobs=2)
    alone.run(TWO)
    together.run(TWO)
    assert turns(together) == turns(alone)
    assert len(list((tmp_path / FOLDER).iterdir())) == 2


def test_a_process_that_is_ended(
    start: Callable[..., Campaigns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    # A tracker that ends the process which makes it.
    ended = [item.replace_options(model="ending_bot:track") for item in TWO]
    with pytest.raises(UserError, match="was killed"):
        start(jobs=2).run(ended)


def test_an_interrupt_loses_only_what_was_running(
    start: Callable[..., Campaigns], monkeypatch: pytest.MonkeyPatch, counted: list[Settings]
) -> None:
    def interrupt(line: str) -> None:
        if line.startswith("[1/2]"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(say=interrupt).run(TWO)
    monkeypatch.chdir(HERE)
    with pytest.raises(KeyboardInterrupt):
        start(say=interrupt, jobs=2).run([BASE, *(BASE.replace_options(seed=s) for s in (2, 3))])
    lines: list[str] = []
    start(lines).run([BASE.replace_options(seed=s) for s in (0, 1, 2, 3)])
    # The other job may have ended before the interrupt reached it.
    finished = {f"4 campaigns, {number} finished before": number for number in (2, 3)}[lines[0]]
    assert len(counted) == 1 + 4 - finished  # One before the first interrupt.


def test_progress_inside_a_campaign(
    bench: CampaignRunner,
) -> None:
    lines: list[str] = []
    replace(bench, pace=0.0).run(BASE, lines.append)
    whole = bench.data.turn_count()
    assert [line.rpartition("seed 0: ")[2] for line in lines] == [
        f"{done} of {whole} turns" for done in range(1, whole + 1)
    ]


def test_figures_are_read_as_they_were_written(bench: CampaignRunner) -> None:
    figures = bench.run(BASE)
    written = json.dumps(to_json(figures))
    assert from_json(CampaignFigures, json.loads(written)) == figures
    assert sum(turn.counts.violations for turn in figures.turns) > 0
    assert all(len(turn.violations) == turn.counts.violations for turn in figures.turns)


def _turn(dialogue: Dialogue, index: int, *variants: VariantResult) -> TurnResult:
    turn = dialogue.turns[index]
    return TurnResult(
        id="x",
        dialogue_id=dialogue.id,
        turn_index=index,
        system=turn.system,
        user=turn.user,
        clean_state=turn.state,
        outcome="violation",
        variants=variants,
        label=turn.state,
    )


def _violation(
    text: str, edit: Edit, context: tuple[str, ...], around: tuple[ContextEdits, ...] = ()
) -> VariantResult:
    return VariantResult(
        index=0,
        text=text,
        context=context,
        edits=(edit,),
        edit_w=0.0,
        edit_c=0.0,
        valid=True,
        reason="",
        outcome="violation",
        changed_slots=(Difference("x", "1", None, carried=True), Difference("y", "1", "2")),
        context_edits=around,
        cause="both",
    )


def test_what_strict_would_veto(bench: CampaignRunner) -> None:
    data = bench.data
    dialogue = data.dialogues[0]
    before, user = (dialogue.turns[index].user for index in (0, 1))
    mark = Edit("char_insert", "punctuation", len(user), len(user), "", "!")
    negation = Edit("word_insert", "filler", 0, 0, "", "not ")
    around = (ContextEdits(0, (negation,)),)
    first = _turn(dialogue, 0)
    second = _turn(
        dialogue,
        1,
        _violation(f"{user}!", mark, (before,)),
        _violation(f"{user}!", mark, (f"not {before}",), around),
        _violation(f"not {user}", negation, (before,)),
    )
    found = turn_figures(second, {0: first}, StrictVeto(BASE.variant, data)).violations
    assert [(item.vetoed, item.vetoed_context) for item in found] == [
        (False, False),
        (False, True),
        (True, True),
    ]
    # Only what it changed anew.
    assert found[0].weakness == (("y", "2"),)
    # In a strict campaign there are none.
    assert not any(item.vetoed for item in turn_figures(second, {0: first}, None).violations)


def test_a_campaign_whose_tracker_gives_up_has_no_figures(bench: CampaignRunner) -> None:
    """They would be those of the few turns that were answered."""
    asked = 0

    class GivesUp:
        def predict(self, contexts: Sequence[Context]) -> Sequence[Any]:
            nonlocal asked
            asked += len(contexts)
            if asked > 20:
                raise GivenUpError("the service is considered dead")
            return bench.tracker.predict(contexts)

    with pytest.raises(GivenUpError, match="the service is considered dead"):
        replace(bench, tracker=GivesUp()).run(BASE.replace_options(batch_size=8))
