"""Finding a SimpleTOD model: the shipped one, a folder, or a name on the hub."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

from pytest_dstfuzz.dialogue.multiwoz import SLOTS
from pytest_dstfuzz.errors import UserError, nearest
from pytest_dstfuzz.trackers.devices import move
from pytest_dstfuzz.trackers.fingerprint import files_fingerprint
from pytest_dstfuzz.trackers.simpletod.model import SimpleTodReading, read_pretrained, read_reading
from pytest_dstfuzz.trackers.simpletod.texts import MARKS
from pytest_dstfuzz.trackers.simpletod.tracker import SimpleTodTracker

#: The model that ships with the package.
SHIPPED = Path(__file__).parents[2] / "resources" / "simpletod"
#: How models are read that were not trained by `train.train_simpletod`: as the paper's.
_PUBLISHED = SimpleTodReading(common=False, slots=SLOTS, normalisation="multiwoz", spellings={})


def load_simpletod(
    checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
) -> SimpleTodTracker:
    """Return the tracker of a causal language model in SimpleTOD's format.

    Args:
        checkpoint: a folder as transformers saves it, or a name on the hub; ``None`` is the
            shipped model. Without our own ``simpletod.json`` beside the weights, utterances
            are read in lower case and slots are MultiWOZ's.
        device: where to compute, as torch names it.
        batch_size: contexts that are computed together.

    Raises:
        UserError: there is no such model, it is damaged, holds weights that are not finite or
            knows no SimpleTOD marks, or there is no such device. Nothing is ever
            unpickled, and no code of a hub is run.
    """
    name = str(SHIPPED if checkpoint is None else checkpoint)
    reading = read_reading(Path(name)) or _PUBLISHED
    model, tokeniser = read_pretrained(name)
    known = tokeniser.get_vocab()
    if missing := [mark for mark in MARKS if mark not in known]:
        guess = nearest(missing[0], [token for token in known if token.startswith("<|")])
        hint = f" (it has {guess!r})" if guess else ""
        raise UserError(
            f"{name!r} is no SimpleTOD model: its vocabulary lacks {', '.join(missing)}{hint}"
        )
    for weight, values in model.state_dict().items():
        if not values.isfinite().all():
            raise UserError(f"{name!r}: {weight} holds numbers that are not finite")
    model = move(model, device, "SimpleTOD")
    return SimpleTodTracker(
        model,
        tokeniser,
        reading,
        batch_size=batch_size,
        fingerprint=_fingerprint(Path(name), device),
    )


def _fingerprint(folder: Path, device: str) -> str | None:
    """Return the fingerprint of a model in a folder; what a name on the hub means may change."""
    if not folder.is_dir():
        return None
    return files_fingerprint(
        [path for path in folder.iterdir() if path.is_file()],
        Path(__file__).parent,
        torch.__version__,
        transformers.__version__,
        torch.device(device).type,
    )
