"""The files and settings of TRADE, which are read without torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.models.fingerprints import files_fingerprint
from pytest_dstfuzz.models.run_settings import EpochFigures, RunSettings


@dataclass(frozen=True)
class TradeTrainingConfig(RunSettings):
    """The settings of a TRADE training. With the defaults, the shipped checkpoint was made.

    (The model card lists what was different in that run.)
    """

    CHANGEABLE = ("epochs", "patience", "max_minutes", "device")
    COUNTS = ("epochs", "batch_size", "hidden", "embedding", "history_limit", "patience")
    RATES = ("dropout", "word_mask", "average_decay")

    batch_size: int = 32  #: Turns per step.
    hidden: int = 256
    embedding: int = 300
    word_mask: float = 0.15  #: Share of history words read as unknown.
    history_limit: int = 400  #: Maximum number of history words. Older words are cut.
    patience: int = 5  #: Epochs without a better validation accuracy before the run ends.
    #: Start from word vectors learnt from the training utterances (needs gensim).
    pretrained_vectors: bool = True


@dataclass(frozen=True, kw_only=True)
class TradeEpoch(EpochFigures):
    """The results of one epoch: the mean losses per turn."""

    LOSSES: ClassVar[str] = "{gate_loss:.3f} + {value_loss:.3f}"

    gate_loss: float
    value_loss: float


FILES: Final = ("model.safetensors", "config.json", "vocabulary.json")
MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE = FILES
#: The shipped model.
SHIPPED: Final = Path(__file__).parents[1] / "resources" / "trade"


def folder_of(checkpoint: str | Path | None) -> Path:
    """Return the folder of a model, given the folder or one of its files.

    If ``checkpoint`` is ``None``, return the folder of the shipped model.
    """
    path = SHIPPED if checkpoint is None else Path(checkpoint)
    folder = path.parent if path.name in FILES else path
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise UserError(
            f"no TRADE checkpoint at {folder}: {missing[0]} is missing; the folder must have "
            f"{', '.join(FILES)}"
        )
    return folder


def fingerprint(checkpoint: str | Path | None, device: str) -> str:
    """Return a fingerprint of a model's files, its code, the version of torch and the device.

    Raises:
        UserError: the model does not exist.
        ModuleNotFoundError: torch is not installed.
    """
    files = [folder_of(checkpoint) / name for name in FILES]
    kind = device.partition(":")[0]
    return files_fingerprint(files, Path(__file__).parent, version("torch"), kind)
