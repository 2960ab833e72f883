"""The SimpleTOD tracker, which generates belief states with a measure of uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

import torch
import transformers
from transformers import GPT2LMHeadModel, PreTrainedModel, PreTrainedTokenizerBase

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.normalise import SLOTS, normalise_state
from pytest_dstfuzz.errors import TrackerError, UserError, nearest
from pytest_dstfuzz.files import read_unchanged
from pytest_dstfuzz.models.fingerprints import files_fingerprint
from pytest_dstfuzz.models.neural import fair_threads, move
from pytest_dstfuzz.models.simpletod.config import LONGEST_BELIEF
from pytest_dstfuzz.models.simpletod.decoder import Generation, GreedyDecoder, SpeculativeDecoder
from pytest_dstfuzz.models.simpletod.model import (
    SimpleTodReading,
    positions_of,
    read_pretrained,
    read_reading,
)
from pytest_dstfuzz.models.simpletod.texts import (
    END_OF_BELIEF,
    END_OF_CONTEXT,
    MARKS,
    OPENING,
    SEPARATOR,
    SYSTEM,
    TURNOVER,
    USER,
    BeliefParser,
    context_words,
)
from pytest_dstfuzz.trackers.tracker import Prediction

#: The shipped model.
SHIPPED = Path(__file__).parents[1] / "resources" / "simpletod"
#: Format of models not trained by `training.train_simpletod`: the format of the paper.
_PUBLISHED = SimpleTodReading(common=False, slots=SLOTS, normalisation="multiwoz", spellings={})


def load_simpletod(
    checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
) -> SimpleTodTracker:
    """Load a causal language model in SimpleTOD's format, and return its tracker.

    ``device`` is a torch device. ``checkpoint`` is a folder in the format of transformers, a name
    on the hub, or ``None`` for the shipped model. If the folder has no ``simpletod.json``,
    utterances are lower-cased, and the slots of MultiWOZ are used. Nothing is unpickled, and no
    code from the hub is run.
    """
    name = str(SHIPPED if checkpoint is None else checkpoint)
    (reading, (model, tokeniser)), fingerprint = read_unchanged(
        lambda: (read_reading(Path(name)) or _PUBLISHED, read_pretrained(name)),
        partial(_fingerprint, Path(name), device),
        f"SimpleTOD in {name}",
    )
    known = tokeniser.get_vocab()
    if missing := [mark for mark in MARKS if mark not in known]:
        guess = nearest(missing[0], [token for token in known if token.startswith("<|")])
        hint = f" (it has {guess!r})" if guess else ""
        raise UserError(
            f"{name!r} is not a SimpleTOD model: its vocabulary lacks {', '.join(missing)}{hint}"
        )
    for weight, values in model.state_dict().items():
        if not values.isfinite().all():
            raise UserError(f"{name!r}: {weight} has values that are not finite")
    model = move(model, device, "SimpleTOD")
    return SimpleTodTracker(
        model, tokeniser, reading, batch_size=batch_size, fingerprint=fingerprint
    )


def _fingerprint(folder: Path, device: str) -> str | None:
    """Return a folder's fingerprint. Files of a name on the hub may change, so return ``None``."""
    if not folder.is_dir():
        return None
    files = [path for path in folder.iterdir() if path.is_file()]
    versions = (torch.__version__, transformers.__version__)
    kind = device.partition(":")[0]  # `move` refuses devices that do not exist.
    return files_fingerprint(files, Path(__file__).parent, *versions, kind)


#: Number of malformed parts of beliefs to keep as examples.
_KEPT = 20


class SimpleTodTracker:
    """Predicts belief states with a causal language model. `load_simpletod` makes it.

    The impurity of a slot says how uncertain its value is. It is the mean over the tokens of the
    slot's part of the belief, including the slot name and the separator after the value. Slots that
    are not generated have no impurity. The impurity is rounded to 4 decimals, because further
    digits depend on the batch.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokeniser: PreTrainedTokenizerBase,
        reading: SimpleTodReading,
        *,
        batch_size: int = 64,
        fingerprint: str | None = None,
    ) -> None:
        """Store a model that is on its device. Put it into evaluation mode."""
        if batch_size < 1:
            raise UserError(f"the batch size must be at least 1, not {batch_size}")
        self.model = model
        model.train(mode=False)
        # Padding is masked. With a padding token, transformers would warn about inputs without
        # padding.
        model.config.pad_token_id = None
        self.tokeniser = tokeniser
        self.reading = reading
        self.batch_size = batch_size
        self.fingerprint = fingerprint
        #: Number of malformed parts of beliefs, and the first ones.
        self.malformed = 0
        self.malformed_examples: list[str] = []
        self._parser = BeliefParser(reading.slots)
        #: Whether a token is the separator between slots.
        self._separates = lru_cache(maxsize=None)(
            lambda token: str(tokeniser.decode([token])).strip() == SEPARATOR
        )
        self.end: int = tokeniser.get_vocab()[END_OF_BELIEF]
        self._opening = self._encode([" ".join(OPENING)])[0]
        self.decoder = self._make_decoder(model)
        #: Maximum number of context tokens. Of longer contexts, the newest tokens are read.
        self._longest = positions_of(model) - LONGEST_BELIEF - len(self._opening)

    def _make_decoder(self, model: PreTrainedModel) -> SpeculativeDecoder | GreedyDecoder:
        marks = self.tokeniser.get_vocab()
        if not isinstance(model, GPT2LMHeadModel):
            return GreedyDecoder(
                model, end=self.end, longest=LONGEST_BELIEF, batch_size=self.batch_size
            )
        return SpeculativeDecoder(
            model,
            end=self.end,
            user=marks[USER],
            marks=[marks[mark] for mark in (USER, SYSTEM, END_OF_CONTEXT)],
            longest=LONGEST_BELIEF,
            batch_size=self.batch_size,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the generated beliefs."""
        if not self.malformed:
            return ()
        note = (
            f"{self.malformed} parts of generated beliefs could not be parsed and were left out, "
            f"such as {self.malformed_examples[0]!r}"
        )
        return (note,)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return one prediction for each context. Equal texts are generated only once."""
        common = self.reading.common
        texts = [" ".join((*context_words(item, common=common), *TURNOVER)) for item in contexts]
        distinct = sorted(set(texts))
        prompts = [[*self._opening, *tokens[-self._longest :]] for tokens in self._encode(distinct)]
        with fair_threads():
            written = self.decoder.generate(prompts)
        found = dict(zip(distinct, map(self._prediction, written), strict=True))
        return [found[text] for text in texts]

    def _encode(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        encoded: list[list[int]] = self.tokeniser(texts, add_special_tokens=False)["input_ids"]
        return encoded

    def _prediction(self, written: Generation) -> Prediction:
        """Convert the generated tokens of one text into a prediction."""
        if any(map(math.isnan, written.impurities)):
            # If scores are NaN, the first token of the vocabulary always wins.
            raise TrackerError("the language model computed scores that are not numbers (NaN)")
        tokens = written.tokens
        separators = [place for place, token in enumerate(tokens) if self._separates(token)]
        edges = [-1, *separators, len(tokens)]
        spans = [(one + 1, other) for one, other in pairwise(edges)]
        decode = self.tokeniser.decode
        parts = [str(decode(list(tokens[start:end]))).split() for start, end in spans]
        parsed = self._parser.parse(parts if tokens else [], ended=written.ended)
        self.malformed += len(parsed.malformed)
        room = _KEPT - len(self.malformed_examples)
        self.malformed_examples += parsed.malformed[:room]
        spellings = self.reading.spellings
        state = {slot: spellings.get(value, value) for slot, value in parsed.values.items()}
        impurity = {}
        for slot, place in parsed.parts.items():
            start, end = spans[place]
            part = written.impurities[start : end + 1]
            # Rounding in single precision may give slightly negative impurities.
            impurity[slot] = round(max(0.0, sum(part) / len(part)), 4)
        return Prediction(normalise_state(state, self.reading.normalisation), impurity)
