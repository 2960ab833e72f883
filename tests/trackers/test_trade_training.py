"""Training on ten hand-made dialogues: it learns, and can be cut in two."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file  # noqa: E402
from trade_data import dialogues, small_config, write_folder  # noqa: E402

from pytest_dstfuzz.dialogue.types import BeliefState, Context, Exchange  # noqa: E402
from pytest_dstfuzz.errors import UserError  # noqa: E402
from pytest_dstfuzz.trackers.trade.load import load_trade  # noqa: E402
from pytest_dstfuzz.trackers.trade.tracker import TradeTracker  # noqa: E402
from pytest_dstfuzz.trackers.trade.train import train_trade  # noqa: E402
from pytest_dstfuzz.trackers.trade.trainer import learning_rate  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def silent(_: str) -> None:
    """Take a progress line and drop it."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("data"))


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


def test_another_run_cannot_be_resumed(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot resume"):
        train_trade(small_config(data, tmp_path / "none", resume=True), silent)
    train_trade(small_config(data, tmp_path, epochs=1), silent)
    with pytest.raises(UserError, match="hidden was 32, is now 48"):
        train_trade(small_config(data, tmp_path, resume=True, hidden=48), silent)


def test_an_earlier_run_is_not_written_over(data: Path, tmp_path: Path) -> None:
    train_trade(small_config(data, tmp_path, epochs=1), silent)
    with pytest.raises(UserError, match="holds a training run already"):
        train_trade(small_config(data, tmp_path), silent)


def test_an_output_that_is_no_folder_is_told(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        train_trade(small_config(data, tmp_path / "file"), silent)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"history": 1}'])
def test_a_damaged_state_cannot_be_resumed(data: Path, tmp_path: Path, content: str) -> None:
    train_trade(small_config(data, tmp_path, epochs=1), silent)
    (tmp_path / "training.json").write_text(content)
    with pytest.raises(UserError, match="cannot resume"):
        train_trade(small_config(data, tmp_path, resume=True), silent)


def test_the_learning_rate_rises_and_falls() -> None:
    config = small_config(Path(), Path(), warmup_steps=10, learning_rate=1.0)
    rates = [learning_rate(step, 100, config) for step in range(100)]
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
