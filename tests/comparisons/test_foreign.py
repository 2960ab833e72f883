"""Embeddings of others: loaded by sentence-transformers where it is installed, else told."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pytest_dstfuzz.comparisons import foreign
from pytest_dstfuzz.comparisons.comparison import TextPair
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import MissingExtraError, UserError

ASKED = Context((Exchange("", "is there breakfast"),))
HALF = ReplySettings(threshold=0.5)
INSTALLED = importlib.util.find_spec("sentence_transformers") is not None
WORDS = ["the", "bus", "leaves", "at", "noon", "it", "is", "late"]


def test_another_embedding_needs_a_threshold() -> None:
    with pytest.raises(UserError, match=r"embedding:mini has no default threshold: give one as"):
        comparison_by_name("embedding:mini", ReplySettings())


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the folder .* does not exist"):
        comparison_by_name(f"embedding:{tmp_path}/none", HALF)


@pytest.mark.skipif(INSTALLED, reason="sentence-transformers is installed")
def test_a_missing_extra_is_one_message() -> None:
    with pytest.raises(MissingExtraError, match=r'pip install "pytest-dstfuzz\[similarity\]"'):
        comparison_by_name("embedding:mini", HALF)


class Lengths:
    """Stands for a model: a text is as its length says."""

    def encode(self, texts: list[str], **options: object) -> list[list[float]]:
        assert options["normalize_embeddings"]
        return [[1.0, 0.0] if len(text) % 2 else [0.0, 1.0] for text in texts]


def test_a_full_memory_makes_room_and_loses_neither_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_KEPT", 2)
    embedding = object.__new__(foreign.SentenceEmbedding)
    embedding._model, embedding._vectors = Lengths(), {}
    assert embedding.apart("a", "bb").distance == 1
    assert embedding.apart("a", "ccc").distance == 0


class Weightless(Lengths):
    """Has no weights, so only the files of its folder tell it apart."""

    def state_dict(self) -> dict[str, object]:
        return {}


def write_pooling(folder: Path, mode: str) -> None:
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(f'{{"pooling_mode": "{mode}"}}')


def load_with(monkeypatch: pytest.MonkeyPatch, load: Callable[[], None]) -> None:
    """Let a load of a model call ``load`` and give the model `Weightless`."""

    def load_model(name: str, device: str) -> Weightless:
        del name, device
        load()
        return Weightless()

    library = ModuleType("sentence_transformers")
    monkeypatch.setattr(library, "SentenceTransformer", load_model, raising=False)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)


def test_all_files_of_the_folder_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_with(monkeypatch, lambda: None)
    found = []
    for mode in ("mean", "mean", "cls"):
        write_pooling(tmp_path, mode)
        found.append(foreign.SentenceEmbedding(str(tmp_path)))
    digests = [one.digest for one in found]
    assert digests[0] == digests[1] != digests[2]
    write_pooling(tmp_path, "max")
    assert [one.digest for one in found] == digests, "the loaded models are still the same"


def test_a_folder_that_changes_during_the_load_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pooling(tmp_path, "mean")
    load_with(monkeypatch, lambda: write_pooling(tmp_path, "cls"))
    with pytest.raises(UserError, match="changed while they were read"):
        foreign.SentenceEmbedding(str(tmp_path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a tiny model with random weights; means of its words stand for texts."""
    pytest.importorskip("sentence_transformers", reason="needs the extra similarity")
    import torch  # noqa: PLC0415 - an extra
    from transformers import BertConfig, BertModel, BertTokenizerFast  # noqa: PLC0415 - likewise

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("model")
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (made / "vocab.txt").write_text("\n".join([*marks, *WORDS]))
    config = BertConfig(
        vocab_size=len(WORDS) + len(marks),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(made / "bert")
    BertTokenizerFast(str(made / "vocab.txt")).save_pretrained(made / "bert")
    return made / "bert"


def test_a_model_of_a_folder_says_how_far_texts_are_apart(folder: Path) -> None:
    comparison = comparison_by_name(f"numbers,embedding:{folder}", HALF)
    again = comparison_by_name(f"numbers,embedding:{folder}", HALF)
    assert comparison.name == f"numbers,embedding:{folder}<=0.5"
    assert comparison.identity == again.identity
    texts = ("the bus leaves", "it is late")
    comparison.prepare([TextPair("reply", *texts, ASKED)])
    far, alone = (one.compare("reply", *texts, ASKED) for one in (comparison, again))
    assert far == alone
    assert far.distance is not None
    assert 0 < far.distance < 2
    assert comparison.compare("reply", texts[0], texts[0], ASKED).same
    back = comparison.compare("reply", *reversed(texts), ASKED)
    assert back.distance == far.distance
