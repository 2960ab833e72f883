"""Embeddings of users: any sentence-transformers model, by name or folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.comparisons.embedding import TextDistance, Vector
from pytest_dstfuzz.errors import UserError, needs_extra, passes_through
from pytest_dstfuzz.files import check_path, content_of, read_unchanged
from pytest_dstfuzz.trackers.validation import cause_of

#: Batch size of the encoder, and the number of cached vectors.
_BATCH: Final = 64
_KEPT: Final = 1 << 15
#: Modules that the import of sentence-transformers needs.
_NEEDED: Final = ("sentence_transformers", "torch", "transformers")


class SentenceEmbedding:
    """A sentence-transformers model on the CPU. The distance is 1 - cosine."""

    def __init__(self, name: str) -> None:
        """Load a model from a folder, or by its name on Hugging Face.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            UserError: the folder does not exist, or the model cannot be loaded.
        """
        self.name = name
        looks_like_a_path = name.startswith((".", "/", "~")) or "\\" in name
        check_path(name, "embedding")
        folder = Path(name).expanduser()
        if looks_like_a_path and not folder.is_dir():
            raise UserError(f"embedding:{name}: the folder {str(folder)!r} does not exist")
        with needs_extra(f"embedding:{name}", "similarity", *_NEEDED):
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - an extra
        try:
            self._model: Any
            self._model, self._content = read_unchanged(
                partial(
                    SentenceTransformer, str(folder) if folder.is_dir() else name, device="cpu"
                ),
                partial(content_of, name),
                f"embedding:{name}",
            )
        except BaseException as error:
            if isinstance(error, UserError) or passes_through(error):
                raise
            raise UserError(
                f"embedding:{name} cannot be loaded: {cause_of(error)}. Give the folder of a "
                "model, or the name of a model on Hugging Face"
            ) from error
        self._vectors: dict[str, Vector] = {}

    @property
    def digest(self) -> str:
        """12 hexadecimal digits of the digest of the weights, and of all files of its folder.

        The files decide the pooling and the tokenizer.
        """
        found = hashlib.sha256(self._content.encode("ascii"))
        for key, weight in sorted(self._model.state_dict().items()):
            found.update(key.encode())
            found.update(weight.detach().cpu().float().numpy().tobytes())
        return found.hexdigest()[:12]

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode the texts that are not cached, in batches."""
        asked = dict.fromkeys(texts)
        wanted = [text for text in asked if text not in self._vectors]
        if self._vectors and len(self._vectors) + len(wanted) > _KEPT:
            self._vectors.clear()
            wanted = [*asked]
        if wanted:
            found = self._model.encode(
                wanted,
                batch_size=_BATCH,
                convert_to_numpy=True,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
            rows = np.asarray(found, np.float32)
            self._vectors.update(zip(wanted, rows, strict=True))

    def apart(self, before: str, found: str) -> TextDistance:
        """Return 1 - cosine, rounded to four digits. Further digits depend on the batch."""
        self.prepare([before, found])
        cosine = float(self._vectors[before] @ self._vectors[found])
        return TextDistance(round(min(max(1.0 - cosine, 0.0), 2.0), 4), ("", ""))
