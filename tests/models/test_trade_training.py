"""Training on ten hand-made dialogues: it learns, and can be cut in two."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from trade_data import dialogues, silent, small_config, swap_labels, write_folder  # noqa: E402

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange  # noqa: E402
from pytest_dstfuzz.errors import UserError  # noqa: E402
from pytest_dstfuzz.models.neural import learning_rate  # noqa: E402
from pytest_dstfuzz.models.trade import training  # noqa: E402
from pytest_dstfuzz.models.trade.tracker import (  # noqa: E402
    TradeTracker,
    load_trade,
)
from pytest_dstfuzz.models.trade.training import train_trade  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> TradeTracker:
    output = tmp_path_factory.mktemp("model")
    lines: list[str] = []
    config = small_config(data, output, epochs=20, patience=20, dropout=0.0, word_mask=0.0)
    result = train_trade(config, lines.append)
    assert result.joint_goal_accuracy == 1.0
    assert result.ended_by == "epochs"
    assert any("ETA" in line for line in lines)
    return load_trade(output)


def test_ten_dialogues_are_learnt_by_heart(trained: TradeTracker) -> None:
    for dialogue in dialogues():
        contexts = [dialogue.context(turn.index) for turn in dialogue.turns]
        states = [prediction.state for prediction in trained.predict(contexts)]
        assert states == [turn.state for turn in dialogue.turns]


def test_predictions_do_not_depend_on_the_batch(trained: TradeTracker) -> None:
    contexts = [d.context(turn.index) for d in dialogues() for turn in d.turns]
    odd = ("", "\U0001f600 \U0001f600", "שלום", "word " * 900, "<usr> north")
    contexts += [Context((Exchange("", text),)) for text in odd]
    together = trained.predict(contexts)
    backwards = trained.predict(contexts[::-1])[::-1]
    for context, one, other in zip(contexts, together, backwards, strict=True):
        (alone,) = trained.predict([context])
        assert alone.state == one.state == other.state
        assert alone.impurities is not None
        assert set(alone.impurities) == set(trained.vocabulary.slots)
        assert alone.impurities == pytest.approx(one.impurities, abs=1e-5)
        assert alone.impurities == pytest.approx(other.impurities, abs=1e-5)


def test_nothing_to_predict_is_nothing(trained: TradeTracker) -> None:
    assert trained.predict([]) == []


def test_text_as_typed_is_understood(trained: TradeTracker) -> None:
    """The whole text as typed gives what the layout of the training data gives."""
    text = "A hotel in the NORTH, please."
    (known,) = trained.predict([Context((Exchange("", text),))])
    assert known.state == BeliefState({"hotel-area": "north"})


def test_a_resumed_run_is_the_uninterrupted_one(data: Path, tmp_path: Path) -> None:
    whole = train_trade(small_config(data, tmp_path / "whole", epochs=3), silent)
    cut = small_config(data, tmp_path / "cut", epochs=3, max_minutes=1e-9)
    assert train_trade(cut, silent).ended_by == "max_minutes"
    more = small_config(data, tmp_path / "cut", epochs=3, resume=True)
    resumed = train_trade(more, silent)
    assert [item.gate_loss for item in resumed.history] == [
        item.gate_loss for item in whole.history
    ]
    one, other = (load_file(tmp_path / name / "training.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_patience_ends_a_run(data: Path, tmp_path: Path) -> None:
    config = small_config(data, tmp_path, epochs=9, patience=1, learning_rate=1e-9)
    result = train_trade(config, silent)
    assert result.ended_by == "patience"
    assert len(result.history) == 2


def test_a_run_that_is_not_there_cannot_be_resumed(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot resume from .*none: it has no training.safet"):
        train_trade(small_config(data, tmp_path / "none", resume=True), silent)


@pytest.fixture(scope="module")
def begun(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of one epoch."""
    output = tmp_path_factory.mktemp("begun")
    train_trade(small_config(data, output, epochs=1), silent)
    return output


@pytest.fixture
def copy(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("seed", 0, 1),
        ("batch_size", 4, 8),
        ("hidden", 32, 48),
        ("embedding", 32, 16),
        ("learning_rate", 0.02, 0.01),
        ("warmup_steps", 300, 30),
        ("gradient_clip", 10.0, 1.0),
        ("dropout", 0.2, 0.1),
        ("word_mask", 0.15, 0.0),
        ("average_decay", 0.9, 0.99),
        ("history_limit", 400, 100),
        ("pretrained_vectors", False, True),
        ("max_dialogues", None, 9),
        ("bfloat16", False, True),
    ],
)
def test_another_run_cannot_be_resumed(
    data: Path, begun: Path, name: str, before: object, now: object
) -> None:
    with pytest.raises(UserError, match=f": {name} was {before} and is now {now}$"):
        train_trade(small_config(data, begun, resume=True, epochs=2, **{name: now}), silent)


def test_every_setting_is_fixed_may_change_or_says_nothing_about_the_model() -> None:
    config = small_config(Path(), Path())
    told = {*config.fixed(), *config.changeable()}
    left = {field.name for field in dataclasses.fields(config)} - told
    assert left == {"data", "output", "layout", "resume", "report_every"}
    assert set(config.changeable()) == {"epochs", "patience", "max_minutes", "device"}


def test_other_data_cannot_be_resumed_with(begun: Path, tmp_path: Path) -> None:
    other = write_folder(tmp_path / "other")
    table = (other / "train.tsv").read_text(encoding="utf-8")
    (other / "train.tsv").write_text(table.replace("leave at", "be off at"), encoding="utf-8")
    with pytest.raises(UserError, match=r"changed since the earlier run: vocabulary"):
        train_trade(small_config(other, begun, resume=True), silent)
    fewer = [line for line in table.split("\n") if not line.startswith("D9\t")]
    (other / "train.tsv").write_text("\n".join(fewer), encoding="utf-8")
    with pytest.raises(UserError, match="number of training turns was 20 and is now 18"):
        train_trade(small_config(other, begun, resume=True), silent)


def test_a_run_with_other_labels_of_the_same_words_cannot_be_resumed(
    begun: Path, tmp_path: Path
) -> None:
    other = write_folder(tmp_path / "other")
    swap_labels(other / "train.tsv")
    with pytest.raises(UserError, match=r"changed since the earlier run: .*texts and labels"):
        train_trade(small_config(other, begun, resume=True), silent)


def test_the_model_tells_the_settings_of_each_part_of_its_run(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = iter([0.1, 0.2, 0.3])
    monkeypatch.setattr(training, "row_accuracy", lambda *_: (next(better), 0.5))

    def trained_on(**changes: object) -> dict[str, Any]:
        train_trade(small_config(data, tmp_path, max_minutes=1e-9, **changes), silent)
        model = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
        about: dict[str, Any] = model["about"]
        return about

    first = {"from_epoch": 0, "epochs": 9, "patience": 5, "max_minutes": 1e-9, "device": "cpu"}
    about = trained_on(epochs=9)
    assert about["parts"] == [first]
    assert about["settings"]["learning_rate"] == 0.02
    assert not {"epochs", "resume", "data", "output"} & set(about["settings"])
    assert trained_on(epochs=9, resume=True)["parts"] == [first]
    about = trained_on(epochs=12, patience=3, resume=True)
    assert about["validation"]["epoch"] == 3
    assert about["parts"] == [first, first | {"from_epoch": 2, "epochs": 12, "patience": 3}]


def test_an_earlier_run_is_not_written_over(data: Path, tmp_path: Path) -> None:
    train_trade(small_config(data, tmp_path, epochs=1), silent)
    with pytest.raises(UserError, match="already has a training run"):
        train_trade(small_config(data, tmp_path), silent)


def test_an_output_that_is_no_folder_is_told(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        train_trade(small_config(data, tmp_path / "file"), silent)


def test_the_state_of_a_run_is_one_file(begun: Path) -> None:
    """A kill between two files would leave weights of another epoch than the history."""
    model = {"config.json", "model.safetensors", "vocabulary.json"}
    assert {path.name for path in begun.iterdir()} == {*model, "training.safetensors"}


def damage(folder: Path, change: Callable[[dict[str, Any], dict[str, str]], object]) -> None:
    """Change tensors and metadata of a run's state."""
    path = folder / "training.safetensors"
    with safe_open(path, "pt") as file:
        about = dict(file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, about)
    save_file(tensors, path, about)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _, about: about.clear(), "an earlier version wrote"),
        (lambda _, about: about.update({"dstfuzz.run": "{"}), "Expecting property name"),
        (lambda _, about: about.update({"dstfuzz.run": "[]"}), "does not describe its run"),
        (lambda _, about: about.update({"dstfuzz.run": "{}"}), "is damaged .lacks 'identity'"),
        (
            lambda _, about: about.update(
                {"dstfuzz.run": '{"identity": {"seed": 0}, "parts": [], "history": []}'}
            ),
            "does not contain the setting learning_rate",
        ),
        (
            lambda _, about: about.update(
                {"dstfuzz.run": json.dumps({**json.loads(about["dstfuzz.run"]), "history": 1})}
            ),
            "is damaged",
        ),
        (lambda tensors, _: tensors.pop("step.embedding"), "lacks the tensor 'step.embedding'"),
        (lambda tensors, _: tensors.pop("first.embedding"), "lacks the tensor 'first.embedding'"),
        (
            lambda tensors, _: tensors.update({"weight.embedding": torch.zeros(2, 2)}),
            r"'weight.embedding' has the shape \[2, 2\], not",
        ),
    ],
)
def test_a_damaged_state_cannot_be_resumed(
    data: Path,
    copy: Path,
    change: Callable[[dict[str, Any], dict[str, str]], object],
    message: str,
) -> None:
    damage(copy, change)
    with pytest.raises(UserError, match=f"cannot resume from .*{message}"):
        train_trade(small_config(data, copy, resume=True), silent)


def test_a_state_that_is_cut_off_cannot_be_resumed(data: Path, copy: Path) -> None:
    path = copy / "training.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="cannot resume from "):
        train_trade(small_config(data, copy, resume=True), silent)


def test_the_learning_rate_rises_and_falls() -> None:
    rates = [learning_rate(step, 100, 1.0, 10) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.001


@pytest.mark.parametrize(
    "change",
    [{"epochs": 0}, {"dropout": 1.0}, {"word_mask": -0.1}, {"learning_rate": 0.0}],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(UserError, match=next(iter(change))):
        small_config(Path(), Path(), **change)
