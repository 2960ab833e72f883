"""Training of a scorer on a toy tracker: repeated, limited, interrupted, and refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import SLOT, WEAK, PlantedBot, write_folder

pytest.importorskip("torch")

from pytest_dstfuzz.agents.scorers import SCORER_FILE, load_scorer
from pytest_dstfuzz.agents.training import train_bandit as module
from pytest_dstfuzz.agents.training.train_bandit import (
    FitConfig,
    ScorerRun,
    ScorerTraining,
    train_bandit,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.tracker import Prediction

SMALL = FitConfig(wide=8, narrow=4, epochs=2)
#: Dialogues of a turn each in the folder, and calls of a group of them, with two attempts at each.
DIALOGUES, GROUP = 50, 24 * 3


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bakery"), DIALOGUES, turns=1)


def run_of(data: Path, output: Path, **changes: Any) -> ScorerRun:
    """Return a run of a second."""
    given: dict[str, Any] = {"calls": 10_000, "attempts": 2, "fit": SMALL, **changes}
    return ScorerRun("planted:PlantedBot", str(data), output, **given)


def silent(_: str) -> None:
    """Take a line and drop it."""


class Counting(PlantedBot):
    """Counts the contexts that it is asked for, and may stop answering."""

    def __init__(self, interrupted_at: int | None = None) -> None:
        self.asked: list[Context] = []
        self.interrupted_at = interrupted_at

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        self.asked += contexts
        if self.interrupted_at is not None and len(self.asked) > self.interrupted_at:
            raise KeyboardInterrupt
        return super().predict(contexts)


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ScorerTraining, list[str]]:
    """A run that was not cut, and what it said."""
    lines: list[str] = []
    output = tmp_path_factory.mktemp("whole") / "new" / "folder"
    return train_bandit(run_of(data, output), lines.append, PlantedBot()), lines


def test_a_run_goes_through_all_dialogues(whole: tuple[ScorerTraining, list[str]]) -> None:
    result, lines = whole
    assert result.ended_by == "dialogues"
    assert result.calls == DIALOGUES * 3
    assert result.attempts == DIALOGUES * 2
    assert [line.split(",")[0] for line in lines] == [
        *("24 of 50 dialogues", "48 of 50 dialogues", "50 of 50 dialogues"),
        "fitted to 100 attempts",
    ]


def test_the_scorer_tells_how_it_came_to_be(whole: tuple[ScorerTraining, list[str]]) -> None:
    result, _ = whole
    assert result.scorer.name == SCORER_FILE
    about = load_scorer(result.scorer.parent).about
    assert (about.tracker, about.validity, about.seed) == ("planted:PlantedBot", "natural", 0)
    assert about.data.endswith(" val")
    assert (about.dialogues, about.attempts, about.calls) == (50, result.attempts, result.calls)


@pytest.mark.nightly
def test_two_runs_are_the_same_bytes(
    data: Path, whole: tuple[ScorerTraining, list[str]], tmp_path: Path
) -> None:
    first = whole[0].scorer.read_bytes()
    again = train_bandit(run_of(data, tmp_path), silent, PlantedBot())
    assert again.scorer.read_bytes() == first
    # A run into the same folder writes over what was there.
    other = train_bandit(run_of(data, tmp_path, seed=1), silent, PlantedBot())
    assert other.scorer.read_bytes() != first
    assert [path.name for path in tmp_path.iterdir()] == [SCORER_FILE]


def test_calls_are_what_the_tracker_was_asked(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "preflight", lambda *_, **__: None)
    bot = Counting()
    result = train_bandit(run_of(data, tmp_path, max_dialogues=10), silent, bot)
    assert result.calls == len(bot.asked) == 10 * 3


@pytest.mark.parametrize(("calls", "groups"), [(1, 1), (GROUP, 1), (GROUP + 1, 2)])
def test_the_calls_run_out(data: Path, tmp_path: Path, calls: int, groups: int) -> None:
    """Dialogues that were begun are played to the end."""
    result = train_bandit(run_of(data, tmp_path, calls=calls), silent, PlantedBot())
    assert (result.ended_by, result.calls) == ("calls", groups * GROUP)
    assert load_scorer(result.scorer).about.dialogues == 24 * groups


def test_the_scorer_is_fitted_on_the_way_and_chooses_then(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chose: list[bool] = []
    true = module.ExploringSearch

    def search(scorer: object, share: float, seed: int) -> Any:
        chose.append(scorer is not None)
        return true(scorer, share, seed)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "ExploringSearch", search)
    lines: list[str] = []
    result = train_bandit(run_of(data, tmp_path, calls=GROUP * 2), lines.append, PlantedBot())
    assert chose == [False, True]
    assert lines[1].startswith("fitted to 48 attempts")
    assert result.attempts == 2 * 48


def test_the_minutes_run_out(data: Path, tmp_path: Path) -> None:
    result = train_bandit(run_of(data, tmp_path, max_minutes=1e-9), silent, PlantedBot())
    # The first dialogues are always played.
    assert (result.ended_by, result.calls) == ("max_minutes", GROUP)
    assert result.scorer.exists()


def test_fewer_dialogues_of_each_split(data: Path, tmp_path: Path) -> None:
    run = run_of(data, tmp_path, max_dialogues=3, splits=("val", "test"))
    lines: list[str] = []
    result = train_bandit(run, lines.append, PlantedBot())
    assert lines[0].startswith("6 of 6 dialogues, ")
    assert result.ended_by == "dialogues"
    about = load_scorer(result.scorer).about
    assert about.dialogues == 6
    assert about.data.endswith(" val+test")


def test_no_labels_are_needed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bare", 5)
    path = folder / "val.jsonl"
    talks = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for talk in talks:
        for turn in talk["turns"]:
            del turn["state"]
    path.write_text("\n".join(map(json.dumps, talks)) + "\n", encoding="utf-8")
    result = train_bandit(run_of(folder, tmp_path / "out"), silent, PlantedBot())
    assert result.attempts == 5 * 2 * 2


def test_interrupted_it_writes_what_it_learned(data: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        train_bandit(run_of(data, tmp_path), lines.append, Counting(24 + GROUP + 10))
    assert lines[-2:] == [
        "interrupted: the scorer is fitted to the attempts so far and saved",
        lines[-1],
    ]
    assert lines[-1].startswith("fitted to 48 attempts")
    about = load_scorer(tmp_path).about
    assert (about.dialogues, about.attempts, about.calls) == (24, 48, GROUP)
    # It is the scorer that these dialogues alone give.
    same = train_bandit(run_of(data, tmp_path / "same", calls=1), silent, PlantedBot())
    assert same.scorer.read_bytes() == (tmp_path / SCORER_FILE).read_bytes()


def test_interrupted_before_it_learned_anything_it_writes_nothing(
    data: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        train_bandit(run_of(data, tmp_path), lines.append, Counting(24 + 10))
    assert lines == []
    assert list(tmp_path.iterdir()) == []


class DeafBot(PlantedBot):
    """Answers what is said well, and nothing else."""

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        if any(WEAK not in item.user or item.user not in self.known for item in contexts):
            raise RuntimeError("out of bread")
        return super().predict(contexts)

    def __init__(self, data: Path) -> None:
        lines = (data / "val.jsonl").read_text(encoding="utf-8").splitlines()
        self.known = {turn["user"] for line in lines for turn in json.loads(line)["turns"]}


def test_a_tracker_that_answers_no_attempt_teaches_nothing(data: Path, tmp_path: Path) -> None:
    run = run_of(data, tmp_path, max_dialogues=5)
    with pytest.raises(
        UserError, match=r"^nothing can be learned, because the tracker answered no attempt"
    ):
        train_bandit(run, silent, DeafBot(data))
    assert not (tmp_path / SCORER_FILE).exists()


def test_a_tracker_that_stops_answering_ends_the_run(data: Path, tmp_path: Path) -> None:
    with pytest.raises((TrackerError, UserError)) as ended:
        train_bandit(run_of(data, tmp_path), silent, DeafBot(data))
    assert "\n" not in str(ended.value)


class SilentBot:
    """Has never an answer."""

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        raise RuntimeError(f"closed today, for all {len(contexts)}")


def test_a_tracker_that_answers_nothing_is_one_message(data: Path, tmp_path: Path) -> None:
    with pytest.raises((TrackerError, UserError), match="closed today") as refused:
        train_bandit(run_of(data, tmp_path / "out"), silent, SilentBot())
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


class StubbornBot:
    """Believes the same whatever is said."""

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction(BeliefState({SLOT: "rye"}), {SLOT: 0.1}) for _ in contexts]


def test_a_tracker_that_nothing_changes_is_learned_too(data: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    result = train_bandit(run_of(data, tmp_path), lines.append, StubbornBot())
    assert "0 of them changed a slot" in lines[0]
    weights = load_scorer(result.scorer).scorer._weights
    assert all(np.isfinite(weight).all() for weight in weights.values())


@pytest.mark.parametrize("name", ["calls", "attempts"])
def test_settings_that_cannot_work_are_refused(data: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=f"{name} must be at least 1, not 0"):
        run_of(data, tmp_path, **{name: 0})


def test_an_output_that_is_a_file_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("there", encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot write to .*out: File exists"):
        train_bandit(run_of(data, tmp_path / "out"), silent, PlantedBot())


def test_training_that_diverges_is_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = module.fit

    def diverging(*arguments: Any) -> Any:
        network, _ = true(*arguments)
        network.out.bias.data.fill_(float("nan"))
        return network, float("nan")

    monkeypatch.setattr(module, "fit", diverging)
    run = dataclasses.replace(run_of(data, tmp_path), max_dialogues=2)
    with pytest.raises(UserError, match="not finite: the training diverged"):
        train_bandit(run, silent, PlantedBot())
