"""The files and settings of TRADE. Reading them needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final

from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.models.fingerprints import files_fingerprint
from pytest_dstfuzz.models.run_settings import EpochFigures, RunSettings
from pytest_dstfuzz.repair.trainable import HARDENING_RELATIONS


@dataclass(frozen=True)
class TradeRunSettings(RunSettings):
    """The settings that all trainings of TRADE share."""

    CHANGEABLE: ClassVar[tuple[str, ...]] = ("epochs", "patience", "max_minutes", "device")
    COUNTS: ClassVar[tuple[str, ...]] = ("epochs", "batch_size", "patience")
    RATES = ("dropout", "word_mask", "average_decay")

    batch_size: int = 32  #: Turns per step.
    word_mask: float = 0.15  #: Share of history words read as unknown.
    patience: int = 5  #: Epochs without a better validation accuracy before the run ends.


@dataclass(frozen=True)
class TradeTrainingConfig(TradeRunSettings):
    """The settings of a TRADE training. The shipped checkpoint used the defaults.

    (The model card lists the differences of that run.)
    """

    COUNTS = (*TradeRunSettings.COUNTS, "hidden", "embedding", "history_limit")

    hidden: int = 256
    embedding: int = 300
    history_limit: int = 400  #: Maximum number of history words. Older words are cut.
    #: Start from word vectors learnt from the training utterances (needs gensim).
    pretrained_vectors: bool = True
    #: Merges of byte-pair encoding, which splits words into pieces. 0 keeps words whole.
    subwords: int = 0

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        super().__post_init__()
        if self.subwords < 0:
            raise UserError(f"subwords must be 0 or greater, not {self.subwords}")


#: Answers to turns whose state should change, in the training.
ANSWERS: Final = ("repaired", "old", "margin")


@dataclass(frozen=True)
class TradeHardeningConfig(TradeRunSettings):
    """The settings of the adversarial training of TRADE. An epoch is a round of this training."""

    #: The share of the first weights concerns only the saved model.
    CHANGEABLE = (*TradeRunSettings.CHANGEABLE, "first_weights")
    #: The first weights are compared by their contents, too.
    INCIDENTAL = (*RunSettings.INCIDENTAL, "start", "measured")
    COUNTS = (*TradeRunSettings.COUNTS, *("rewrites", "draws", "replay"), "checked", "dialogues")
    SHARES = ("first_weights", "loss_limit")

    epochs: int = 6
    learning_rate: float = 2e-4
    warmup_steps: int = 50
    patience: int = 2  #: Rounds without a better result before the run ends.
    start: Path | None = None  #: Checkpoint to harden. ``None`` is the shipped one.
    #: Data whose test split will measure the tracker. ``None`` is ``data``, ``no`` is none.
    measured: str | None = None
    relations: str = ",".join(HARDENING_RELATIONS)
    rewrites: int = 100  #: Rewrites of each relation in a round.
    draws: int = 2  #: Rewrites that are drawn for one that is used. Broken ones come first.
    replay: int = 3  #: Clean turns for each rewrite.
    answers: str = "repaired"  #: One of `ANSWERS`.
    #: Whether the tracker reads an unknown word of the user as the nearest word that it knows.
    correct_spelling: bool = False
    first_weights: float = 0.0  #: Share of the first weights in the saved ones.
    loss_limit: float = 0.005  #: Largest loss of joint goal accuracy that a best round may have.
    dialogues: int = 200  #: Validation dialogues whose clean turns are measured.
    checked: int = 50  #: Rewrites of each relation that are measured on the validation split.

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        super().__post_init__()
        if self.answers not in ANSWERS:
            raise unknown_name("kind of answers", self.answers, ANSWERS)


@dataclass(frozen=True, kw_only=True)
class TradeEpoch(EpochFigures):
    """The results of one epoch: the mean losses per turn."""

    LOSSES: ClassVar[str] = "{gate_loss:.3f} + {value_loss:.3f}"

    gate_loss: float
    value_loss: float


@dataclass(frozen=True, kw_only=True)
class HardeningRound(TradeEpoch):
    """The results of one round, with the results of the first weights."""

    LOSSES: ClassVar[str] = "{gate_loss:.3f} + {value_loss:.3f} + {margin_loss:.3f}"

    margin_loss: float
    #: Accuracy on rewritten turns, in [0, 1]: the mean over the relations.
    rewritten_accuracy: float
    first_accuracy: float
    first_rewritten_accuracy: float

    def line(self) -> str:
        """Return the results as a line of text."""
        rewritten, before = percent(self.rewritten_accuracy), percent(self.first_rewritten_accuracy)
        return (
            f"{super().line()}; before {percent(self.first_accuracy)}; on rewritten turns "
            f"{rewritten}, before {before}"
        )


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

    The lexicon decides which words are misspelled, so it is included.

    Raises:
        UserError: the model does not exist.
        ModuleNotFoundError: torch is not installed.
    """
    from pytest_dstfuzz.lexicon import load_lexicon  # noqa: PLC0415 - for fast help texts

    files = [folder_of(checkpoint) / name for name in FILES]
    kind = device.partition(":")[0]
    words = load_lexicon().fingerprint
    return files_fingerprint(files, Path(__file__).parent, version("torch"), kind, words)
