"""Where a TRADE model lies, and what tells it from others; read without torch."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.models.fingerprints import files_fingerprint

FILES: Final = ("model.safetensors", "config.json", "vocabulary.json")
MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE = FILES
#: The model that ships with the package.
SHIPPED: Final = Path(__file__).parents[1] / "resources" / "trade"


def folder_of(checkpoint: str | Path | None) -> Path:
    """Return the folder of a model that is named by it or by one of its files.

    ``None`` is the shipped model.
    """
    path = SHIPPED if checkpoint is None else Path(checkpoint)
    folder = path.parent if path.name in FILES else path
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise UserError(
            f"no TRADE checkpoint at {folder}: {missing[0]} is missing; expected a folder with "
            f"{', '.join(FILES)}"
        )
    return folder


def fingerprint(checkpoint: str | Path | None, device: str) -> str:
    """Return what tells a model on a device from others: its files, the code and torch's version.

    Raises:
        UserError: there is no such model.
        ModuleNotFoundError: torch is not installed.
    """
    files = [folder_of(checkpoint) / name for name in FILES]
    kind = device.partition(":")[0]
    return files_fingerprint(files, Path(__file__).parent, version("torch"), kind)
