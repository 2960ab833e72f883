"""Every way a checkpoint may be bad gives one clear message."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file  # noqa: E402
from trade_data import dialogues  # noqa: E402

from pytest_dstfuzz import Context, Exchange  # noqa: E402
from pytest_dstfuzz.errors import UserError  # noqa: E402
from pytest_dstfuzz.lexicon import load_lexicon  # noqa: E402
from pytest_dstfuzz.models.shipped import TRADE, TRADE_HARDENED, ShippedTracker  # noqa: E402
from pytest_dstfuzz.models.trade.checkpoint import TradeReading, build_network, save_model  # noqa: E402
from pytest_dstfuzz.models.trade.files import SHIPPED  # noqa: E402
from pytest_dstfuzz.models.trade.tracker import TradeTracker, load_trade  # noqa: E402
from pytest_dstfuzz.models.trade.vocabulary import training_vocabulary  # noqa: E402

WEIGHTS, CONFIG, WORDS = "model.safetensors", "config.json", "vocabulary.json"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    vocabulary = training_vocabulary(dialogues())
    network = build_network(vocabulary, embedding=6, hidden=5)
    save_model(
        tmp_path, network.state_dict(), network.shape, vocabulary, TradeReading(50, "multiwoz"), {}
    )
    return tmp_path


def edit(name: str, **changes: object) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return run


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def cut(name: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return run


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        change(tensors)
        save_file(tensors, folder / WEIGHTS)

    return run


BAD = {
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "model.safetensors is missing"),
    "no configuration": (lambda f: (f / CONFIG).unlink(), "config.json is missing"),
    "no vocabulary": (lambda f: (f / WORDS).unlink(), "vocabulary.json is missing"),
    "weights cut": (cut(WEIGHTS), "truncated or not a safetensors"),
    "weights empty": (write(WEIGHTS, b""), "truncated or not a safetensors"),
    "configuration cut": (cut(CONFIG), "not valid JSON"),
    "not UTF-8": (write(WORDS, b"\xff{}"), "not UTF-8"),
    "a list": (write(CONFIG, b"[]"), "not a JSON object"),
    "a pickle": (write(WEIGHTS, pickle.dumps({})), "a pickle, which is never loaded"),
    "torch.save": (lambda f: torch.save({}, f / WEIGHTS), "a pickle, which is never loaded"),
    "another kind": (edit(CONFIG, format="bert"), '"format": "trade"'),
    "another version": (edit(CONFIG, version=99), "version 99"),
    "a size of text": (edit(CONFIG, hidden="big"), "hidden must be a whole number"),
    "a huge size": (edit(CONFIG, hidden=10**9), "hidden must be a whole number"),
    "no normalisation": (edit(CONFIG, normalisation="none"), "normalisation must be one of"),
    "slots of numbers": (edit(CONFIG, slots=[1]), "slots must be"),
    "other sizes": (edit(CONFIG, hidden=7), "has the shape"),
    "other slots": (edit(CONFIG, slots=["taxi-x", "bus-y"]), "has the shape"),
    "no words": (edit(WORDS, words=[]), "words must be"),
    "words shuffled": (edit(WORDS, words=["a", "b"]), "words must be"),
    "too many outputs": (edit(WORDS, outputs=10**6), "outputs must be"),
    "bad spellings": (edit(WORDS, spellings={"a": 1}), "spellings must map"),
    "counts of text": (edit(WORDS, counts={"a": "1"}), "counts must map words"),
    "weight gone": (weights(lambda t: t.pop("gate")), "gate is missing"),
    "weight too many": (weights(lambda t: t.update(x=torch.zeros(1))), "unknown weights x"),
    "not a number": (weights(lambda t: t["gate"].fill_(torch.nan)), "not finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_checkpoints_are_told(model: Path, name: str) -> None:
    damage, message = BAD[name]
    damage(model)
    with pytest.raises(UserError, match="TRADE checkpoint") as caught:
        load_trade(model)
    assert message in str(caught.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no TRADE checkpoint at .*nowhere"):
        load_trade(tmp_path / "nowhere")


def test_the_path_of_a_file_will_do(model: Path) -> None:
    assert load_trade(model / WEIGHTS).vocabulary == load_trade(model).vocabulary


def test_weights_are_kept_in_16_and_used_in_32_bits(model: Path) -> None:
    assert {tensor.dtype for tensor in load_file(model / WEIGHTS).values()} == {torch.float16}
    network = load_trade(model).network
    assert {tensor.dtype for tensor in network.parameters()} == {torch.float32}
    assert not network.training


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_told(model: Path, device: str) -> None:
    with pytest.raises(UserError, match=f"device '{device}'"):
        load_trade(model, device)


def test_a_batch_size_of_nothing_is_refused(model: Path) -> None:
    with pytest.raises(UserError, match="batch size"):
        load_trade(model, batch_size=0)


@pytest.mark.parametrize("maker", [TRADE, TRADE_HARDENED], ids=lambda maker: maker.name)
def test_the_shipped_models_load(maker: ShippedTracker) -> None:
    tracker = cast(TradeTracker, maker())
    assert len(tracker.vocabulary.slots) == 30
    assert tracker.fingerprint == maker.fingerprint(None, "cpu")
    assert (SHIPPED.with_name(maker.name) / WEIGHTS).stat().st_size <= 15 * 2**20


def test_only_the_hardened_model_understands_misspelled_words() -> None:
    def day(maker: ShippedTracker, word: str) -> str | None:
        text = f"My aunt needs a train that goes to Cambridge on {word} after lunch."
        (found,) = cast(TradeTracker, maker()).predict([Context((Exchange("", text),))])
        return found.state.get("train-day")

    assert day(TRADE, "Friday") == day(TRADE_HARDENED, "Friday") == "friday"
    assert day(TRADE, "Firday") != "friday"
    assert day(TRADE_HARDENED, "Firday") == "friday"


def test_the_fingerprint_depends_on_the_lexicon(monkeypatch: pytest.MonkeyPatch) -> None:
    before = TRADE_HARDENED.fingerprint(None, "cpu")
    other = replace(load_lexicon(), fingerprint="another")
    monkeypatch.setattr("pytest_dstfuzz.lexicon.load_lexicon", lambda: other)
    assert TRADE_HARDENED.fingerprint(None, "cpu") != before


def test_a_checkpoint_replaces_the_shipped_weights(model: Path) -> None:
    tracker = cast(TradeTracker, TRADE_HARDENED(model))
    assert tracker.vocabulary == load_trade(model).vocabulary
    assert TRADE_HARDENED.fingerprint(str(model), "cpu") == TRADE.fingerprint(str(model), "cpu")
