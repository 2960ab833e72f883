"""SimpleTOD from training to prediction, on ten hand-made dialogues."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402
from simpletod_data import small_config  # noqa: E402
from trade_data import dialogues, swap_labels, write_folder  # noqa: E402

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange  # noqa: E402
from pytest_dstfuzz.errors import UserError  # noqa: E402
from pytest_dstfuzz.models.simpletod.decoder import Generation  # noqa: E402
from pytest_dstfuzz.models.simpletod.tracker import (  # noqa: E402
    SimpleTodTracker,
    load_simpletod,
)
from pytest_dstfuzz.models.simpletod.training import train_simpletod  # noqa: E402
from pytest_dstfuzz.trackers.registry import resolve_tracker  # noqa: E402
from pytest_dstfuzz.trackers.validation import preflight  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

CONTEXTS = [d.context(turn.index) for d in dialogues() for turn in d.turns]


def silent(_: str) -> None:
    """Take a progress line and drop it."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("model")
    lines: list[str] = []
    result = train_simpletod(small_config(data, output, epochs=40), lines.append)
    assert result.joint_goal_accuracy == 1.0
    assert result.ended_by == "epochs"
    assert any("ETA" in line for line in lines)
    return output


@pytest.fixture
def tracker(folder: Path) -> SimpleTodTracker:
    return load_simpletod(folder)


def test_ten_dialogues_are_learnt_by_heart(tracker: SimpleTodTracker) -> None:
    """The accuracy of the training, which generates nothing, is that of generating."""
    labels = [turn.state for d in dialogues() for turn in d.turns]
    predictions = tracker.predict(CONTEXTS)
    assert [prediction.state for prediction in predictions] == labels
    assert tracker.malformed == 0
    assert tracker.notes == ()
    for prediction in predictions:
        assert prediction.impurities is not None
        assert prediction.impurities.keys() == prediction.state.keys()
        assert all(0 <= impurity < 1 for impurity in prediction.impurities.values())


def test_predictions_do_not_depend_on_the_batch(tracker: SimpleTodTracker) -> None:
    odd = ("", "\U0001f600 \U0001f600", "שלום", "word " * 900, "<|user|> north", "<|endofbelief|>")
    contexts = [*CONTEXTS[:6], *(Context((Exchange("", text),)) for text in odd)]
    together = tracker.predict(contexts)
    backwards = tracker.predict(contexts[::-1])[::-1]
    for context, one, other in zip(contexts, together, backwards, strict=True):
        (alone,) = tracker.predict([context])
        assert alone.state == one.state == other.state
        assert alone.impurities == pytest.approx(one.impurities, abs=1e-4)
        assert alone.impurities == pytest.approx(other.impurities, abs=1e-4)


def test_the_preflight_passes_it(tracker: SimpleTodTracker) -> None:
    preflight(tracker, CONTEXTS)


def test_nothing_to_predict_is_nothing(tracker: SimpleTodTracker) -> None:
    assert tracker.predict([]) == []


def test_text_as_typed_is_understood(tracker: SimpleTodTracker) -> None:
    (known,) = tracker.predict([Context((Exchange("", "A hotel in the NORTH, please."),))])
    assert known.state == BeliefState({"hotel-area": "north"})


def test_what_cannot_be_read_is_counted_and_told(tracker: SimpleTodTracker) -> None:
    separator = tracker.tokeniser.encode(" ,", add_special_tokens=False)
    part = tracker.tokeniser.encode(" hotel area", add_special_tokens=False)
    tokens = [*part, *separator, *tracker.tokeniser.encode(" hotel area north")]
    written = Generation(tuple(tokens), (0.5,) * len(tokens), ended=False)
    prediction = tracker._prediction(written)
    # Neither part is believed: one has no value, the other was cut short.
    assert prediction.state == {}
    assert tracker.malformed == 2
    assert tracker.malformed_examples == ["hotel area", "hotel area north"]
    assert "2 parts of generated beliefs" in tracker.notes[0]


def test_a_resumed_run_is_the_uninterrupted_one(data: Path, tmp_path: Path) -> None:
    changes = {"epochs": 3, "exchange": 0.5, "dropout": 0.1}
    whole = train_simpletod(small_config(data, tmp_path / "whole", **changes), silent)
    cut = small_config(data, tmp_path / "cut", **changes, max_minutes=1e-9)
    assert train_simpletod(cut, silent).ended_by == "max_minutes"
    more = small_config(data, tmp_path / "cut", **changes, resume=True)
    resumed = train_simpletod(more, silent)
    assert [item.belief_loss for item in resumed.history] == [
        item.belief_loss for item in whole.history
    ]
    one, other = (load_file(tmp_path / name / "training.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_with_other_labels_of_the_same_words_is_not_resumed(tmp_path: Path) -> None:
    data = write_folder(tmp_path / "data")
    train_simpletod(small_config(data, tmp_path / "run", epochs=1), silent)
    swap_labels(data / "train.tsv")
    with pytest.raises(UserError, match=r"changed since the earlier run: .*texts and labels"):
        train_simpletod(small_config(data, tmp_path / "run", epochs=2, resume=True), silent)


def test_a_model_is_fine_tuned(data: Path, folder: Path, tmp_path: Path) -> None:
    config = small_config(data, tmp_path, base=str(folder), epochs=1, learning_rate=1e-6)
    result = train_simpletod(config, silent)
    assert result.joint_goal_accuracy == 1.0
    assert json.loads((tmp_path / "config.json").read_bytes())["n_embd"] == 64


def test_a_model_of_somebody_else_is_read_in_lower_case(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "theirs")
    (tmp_path / "theirs" / "simpletod.json").unlink()
    tracker = load_simpletod(tmp_path / "theirs")
    assert len(tracker.reading.slots) == 30
    (known,) = tracker.predict([Context((Exchange("", "a hotel in the NORTH , please ."),))])
    assert known.state == BeliefState({"hotel-area": "north"})


def test_it_is_found_by_its_name(folder: Path) -> None:
    tracker = resolve_tracker("simpletod", checkpoint=str(folder), batch_size=3)
    assert isinstance(tracker, SimpleTodTracker)
    assert tracker.batch_size == 3


def spoil_weights(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["transformer.h.0.ln_1.weight"][3] = torch.nan
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def test_scores_that_are_no_numbers_are_no_answer(folder: Path) -> None:
    broken = load_simpletod(folder)
    with torch.no_grad():
        broken.model.get_parameter("transformer.ln_f.bias")[0] = torch.nan
    # Whatever is said, the answer would be the same: no perturbation could change it.
    with pytest.raises(UserError, match=r"cannot be tested: the language model computed scores"):
        preflight(broken, CONTEXTS)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (shutil.rmtree, "is not a causal language model that transformers"),
        (lambda folder: (folder / "model.safetensors").unlink(), "is not a causal language model"),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"\x80\x04"),
            "is not a causal language model",
        ),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "is not a causal language"),
        (lambda folder: (folder / "simpletod.json").write_text("{"), "model: it is not valid JSON"),
        (
            lambda folder: (folder / "simpletod.json").write_text('{"version": 1}'),
            "simpletod.json is damaged .lacks 'common'",
        ),
        (
            lambda folder: (folder / "simpletod.json").write_text('{"version": 9}'),
            "version 9, but this release reads 1",
        ),
        (spoil_weights, "copy': transformer.h.0.ln_1.weight has values that are not finite"),
    ],
)
def test_a_bad_checkpoint_is_one_message(
    folder: Path, tmp_path: Path, spoil: object, message: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert callable(spoil)
    spoil(copy)
    with pytest.raises(UserError, match=message):
        load_simpletod(copy)


def test_a_language_model_without_the_marks_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        text = (copy / name).read_text(encoding="utf-8")
        (copy / name).write_text(text.replace("<|belief|>", "<|beliefs|>"), encoding="utf-8")
    message = r"lacks <\|belief\|> \(it has '<\|beliefs\|>'\)"
    with pytest.raises(UserError, match=message):
        load_simpletod(copy)


def test_there_is_no_such_device(folder: Path) -> None:
    with pytest.raises(UserError, match="SimpleTOD cannot run on the device 'cdua'"):
        load_simpletod(folder, "cdua")
