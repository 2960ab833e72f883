"""``dstfuzz harden`` with the bot that the guide shows, which really learns."""

from __future__ import annotations

import importlib
import json
import random
import re
from pathlib import Path

import pytest
from processes import run_python

from pytest_dstfuzz import Context, Exchange, UserError
from pytest_dstfuzz.files import lock_file
from pytest_dstfuzz.repair.commands import HARDEN
from pytest_dstfuzz.repair.hardening import HardeningResult, RoundFigures
from tools.docs.pages import DOCS, blocks

KINDS, MEALS = ("single", "double", "family"), ("breakfast", "supper", "brunch")
OPENINGS = ("I would like", "We want", "I am looking for", "My boss needs", "They asked for")
TAILS = ("please", "for my aunt", "near the lake", "with a friend", "in the old house", "today")
SMALL = ("--rewrites=20", "--rounds=3", "--patience=3", "--checked=20")
BOTH = "--relations=negation,value-swap"


def write_split(folder: Path, split: str) -> None:
    """Write 20 dialogues of two turns. No dialogue is in two splits."""
    rng, lines = random.Random(split), []
    for number in range(20):
        kind, meal = rng.choice(KINDS), rng.choice(MEALS)
        first = f"{rng.choice(OPENINGS)} a {kind} room {rng.choice(TAILS)}"
        state = {"room-kind": kind}
        turns = [
            {"user": first, "state": state},
            {
                "system": "Anything else?",
                "user": f"{rng.choice(OPENINGS)} {meal} {rng.choice(TAILS)}",
                "state": {**state, "room-meal": meal},
            },
        ]
        lines.append(json.dumps({"dialogue_id": f"{split}{number:02d}", "turns": turns}))
    (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A working directory with the bot of the guide and made-up dialogues."""
    (block,) = (
        one
        for one in blocks((DOCS / "guides" / "repair.md").read_text("utf-8"))
        if 'title="trainable_bot.py"' in one.info
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = re.sub(r"\W", "_", request.node.name)
    (tmp_path / f"{name}.py").write_text(block.text, encoding="utf-8")
    (tmp_path / "talks").mkdir()
    for split in ("train", "val", "test"):
        write_split(tmp_path / "talks", split)
    return tmp_path


def command(folder: Path, *options: str, output: str = "out", bot: str = "") -> list[str]:
    module = bot or next(folder.glob("test_*.py")).stem
    words = ["--model", f"{module}:Tracker", "--data", "talks", "--output", output]
    return [*words, BOTH, *SMALL, *options]


def harden(folder: Path, *options: str, output: str = "out", bot: str = "") -> int:
    return HARDEN.run(command(folder, *options, output=output, bot=bot))


def history(folder: Path, output: str = "out") -> list[dict[str, float]]:
    content = json.loads((folder / output / "hardening.json").read_text("utf-8"))
    found: list[dict[str, float]] = content["history"]
    return found


def weights(folder: Path, output: str, number: int) -> bytes:
    return (folder / output / f"round-{number}" / "bot.json").read_bytes()


def test_a_bot_learns_what_relations_change(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert harden(folder) == 0
    before, *rounds = history(folder)
    # An untrained bot knows no value. If it never learns "not", half of the rewrites fail.
    assert before["clean"] == 0.0
    best = max(rounds, key=lambda one: one["rewritten"])
    assert best["clean"] == 1.0
    assert best["rewritten"] > 0.95
    assert "the trained bot is in" in capsys.readouterr().out


def test_without_negated_turns_it_does_not_learn_them(folder: Path) -> None:
    learned = []
    for output, relations in (("both", BOTH), ("swaps", "--relations=value-swap")):
        assert harden(folder, relations, output=output) == 0
        bot = importlib.import_module(next(folder.glob("test_*.py")).stem).Tracker()
        bot.load(max((folder / output).glob("round-*")))
        turn = Exchange("", "We want a room that is not single today")
        learned += bot.predict([Context((turn,))])
    assert learned == [{}, {"room-kind": "single"}]


def test_an_interrupted_run_continues_to_the_same_weights(folder: Path) -> None:
    harden(folder, output="whole")
    harden(folder, "--rounds=1", output="cut")
    # The process ended while it saved the second round.
    (folder / "cut" / "round-2").mkdir()
    (folder / "cut" / "round-2" / "bot.json").write_text("{", "utf-8")
    words = command(folder, "--resume", output="cut")
    text = f"from pytest_dstfuzz.repair.commands import HARDEN; HARDEN.run({words})"
    done = run_python("-c", text, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert history(folder, "cut") == history(folder, "whole")
    assert weights(folder, "cut", 3) == weights(folder, "whole", 3)


def test_only_the_best_and_the_last_round_are_kept(folder: Path) -> None:
    harden(folder)
    rounds = history(folder)[1:]
    best = max(rounds, key=lambda one: (one["clean"] == 1.0, one["rewritten"]))["number"]
    kept = {int(path.name.removeprefix("round-")) for path in (folder / "out").glob("round-*")}
    assert kept == {best, len(rounds)}


def test_a_run_with_other_settings_is_not_continued(folder: Path) -> None:
    harden(folder, "--rounds=1")
    with pytest.raises(UserError, match="already has a training run"):
        harden(folder)
    with pytest.raises(UserError, match="its seed was 0 and is now 1"):
        harden(folder, "--seed=1", "--resume")


def test_a_run_with_another_bot_is_not_continued(folder: Path) -> None:
    harden(folder, "--rounds=1")
    module = next(folder.glob("test_*.py"))
    module.write_text(module.read_text("utf-8").replace("place - 5", "place - 4"), "utf-8")
    words = ["harden", *command(folder, "--resume")]
    text = f"import sys; from pytest_dstfuzz.cli import main; sys.exit(main({words}))"
    done = run_python("-c", text, cwd=folder)
    assert done.returncode != 0
    assert "the bot or its options changed" in done.stderr
    assert len(history(folder)) == 2


@pytest.mark.parametrize(("split", "words"), [("train", "training"), ("val", "validation")])
def test_a_run_with_other_data_is_not_continued(folder: Path, split: str, words: str) -> None:
    harden(folder, "--rounds=1")
    path = folder / "talks" / f"{split}.jsonl"
    path.write_text(path.read_text("utf-8").replace("supper", "lunch", 1), "utf-8")
    with pytest.raises(UserError, match=f"the {words} dialogues changed"):
        harden(folder, "--resume")
    assert len(history(folder)) == 2


def test_a_run_whose_data_has_moved_is_continued(folder: Path) -> None:
    harden(folder, "--rounds=1")
    (folder / "talks").rename(folder / "moved")
    harden(folder, "--data=moved", "--resume", "--rounds=2")
    assert len(history(folder)) == 3


def test_measured_dialogues_are_refused_by_id_and_left_out_by_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (folder / "talks" / "train.jsonl").read_text("utf-8").splitlines()
    (folder / "same.jsonl").write_text("\n".join(lines[:3]) + "\n", "utf-8")
    with pytest.raises(UserError, match=r"'train0\d' of the split train is also among those"):
        harden(folder, "--measured=same.jsonl")
    renamed = "\n".join(lines[:3]).replace('"train0', '"other0').upper()
    renamed = re.sub('"(DIALOGUE_ID|TURNS|USER|SYSTEM|STATE)"', lambda one: one[0].lower(), renamed)
    (folder / "same.jsonl").write_text(renamed + "\n", "utf-8")
    harden(folder, "--measured=same.jsonl", "--rounds=1")
    assert "split train: 3 dialogues left out" in capsys.readouterr().out


def test_objects_that_cannot_learn_are_refused(folder: Path) -> None:
    (folder / "fixed_bot.py").write_text("def Tracker(context):\n    return {}\n", "utf-8")
    with pytest.raises(UserError, match="fixed_bot:Tracker has no method train"):
        harden(folder, bot="fixed_bot")


def test_a_bot_that_does_not_get_better_ends_with_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = next(folder.glob("test_*.py"))
    idle = "\n    def train(self, turns, seed):\n        pass\n"
    module.write_text(f"{module.read_text('utf-8')}{idle}", "utf-8")
    assert harden(folder, "--patience=1") == 1
    assert len(history(folder)) == 3
    assert "no round is better" in capsys.readouterr().out


def test_an_error_of_the_bot_is_named(folder: Path) -> None:
    module = next(folder.glob("test_*.py"))
    module.write_text(
        f"{module.read_text('utf-8')}\n    def train(self, turns, seed):\n        1 / 0\n"
    )
    with pytest.raises(UserError, match="train of the tracker raised ZeroDivisionError"):
        harden(folder)


def test_a_bot_that_fails_on_too_many_turns_is_not_hardened(folder: Path) -> None:
    module = next(folder.glob("test_*.py"))
    module.write_text(
        f"{module.read_text('utf-8')}\n"
        "    def predict(self, contexts):\n"
        "        from pytest_dstfuzz import Prediction, TrackerError\n"
        "        def answer(text):\n"
        "            return TrackerError('database down') if ' not ' in text else Prediction({})\n"
        "        return [answer(one.user) for one in contexts]\n"
    )
    with pytest.raises(UserError, match=r"failed on .* turns, more than 5 %.*database down"):
        harden(folder)


def test_two_runs_into_one_folder_are_refused(folder: Path) -> None:
    with (
        lock_file(folder / "out" / "hardening.json"),
        pytest.raises(UserError, match="another process is changing"),
    ):
        harden(folder)
    assert harden(folder) == 0


def test_the_best_round_loses_little_on_clean_turns() -> None:
    def best(*pairs: tuple[float, float]) -> tuple[int, bool]:
        rounds = tuple(RoundFigures(number, *pair) for number, pair in enumerate(pairs))
        found = HardeningResult(rounds, 0.02, "rounds")
        return found.best.number, found.better

    assert best((0.5, 0.2), (0.5, 0.3), (0.49, 0.4), (0.45, 0.9)) == (2, True)
    assert best((0.5, 0.2), (0.4, 0.3), (0.45, 0.25)) == (2, False)
    assert best((0.5, 0.2), (0.5, 0.1)) == (1, False)
    assert best((0.5, 0.2)) == (0, False)
