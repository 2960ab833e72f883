"""Labelled turns as numbers, and batches of them as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState, Dialogue
from pytest_dstfuzz.models.neural import TensorBatch, by_length, pad
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.models.trade.network import GATE_DONTCARE, GATE_NONE, GATE_POINTER
from pytest_dstfuzz.models.trade.vocabulary import END, PAD, Vocabulary, history_words


@dataclass(frozen=True)
class LabelledTurn:
    """One labelled turn."""

    words: np.ndarray  #: History, numbers in the vocabulary, ``[T]`` int32.
    copies: np.ndarray  #: History, numbers for copying, ``[T]`` int32.
    gates: np.ndarray  #: Class of each slot, ``[S]`` int64.
    #: For each pointer slot its number, the value's words as numbers for copying (ending in
    #: ``END``) and as numbers in the vocabulary.
    targets: tuple[tuple[int, list[int], list[int]], ...]


def make_row(dialogue: Dialogue, index: int, vocabulary: Vocabulary, limit: int) -> LabelledTurn:
    """Encode turn ``index`` of ``dialogue``; its history is cut to ``limit`` words."""
    words = history_words(dialogue.context(index), limit)
    copies, local = vocabulary.copy_numbers(words)
    state = dialogue.turns[index].state or BeliefState()
    gates = np.full(len(vocabulary.slots), GATE_NONE, dtype=np.int64)
    targets = []
    for number, slot in enumerate(vocabulary.slots):
        value = state.get(slot)
        if value == DONTCARE:
            gates[number] = GATE_DONTCARE
        elif value is not None:
            gates[number] = GATE_POINTER
            value_words = tokenise(value)
            target = [_target(word, vocabulary, local) for word in value_words]
            targets.append((number, [*target, END], vocabulary.encode(value_words)))
    return LabelledTurn(
        np.array(vocabulary.encode(words), dtype=np.int32),
        np.array(copies, dtype=np.int32),
        gates,
        tuple(targets),
    )


def _target(word: str, vocabulary: Vocabulary, local: Sequence[str]) -> int:
    """Return the number for copying; -1 for a word that can be neither made nor copied."""
    number = vocabulary.numbers.get(word, vocabulary.outputs)
    if number < vocabulary.outputs:
        return number
    return vocabulary.outputs + local.index(word) if word in local else -1


@dataclass(frozen=True)
class TurnBatch(TensorBatch):
    """Rows padded together.

    ``words [B, T]``, ``copies [B, T]`` (-2 at padding, which no target equals),
    ``lengths [B]``, ``gates [B, S]``. The words of all pointer slots' values are flat:
    ``pairs [N, 2]`` (row, slot) with ``inputs [N, L]`` the words read after the first
    step; ``tokens [M, 4]`` has pair, step, row and place (its number among the row's
    tokens); ``targets [M]``.
    """

    words: Tensor
    copies: Tensor
    lengths: Tensor
    gates: Tensor
    pairs: Tensor
    inputs: Tensor
    tokens: Tensor
    targets: Tensor


def collate(rows: Sequence[LabelledTurn]) -> TurnBatch:
    """Make one batch of rows."""
    pairs: list[tuple[int, int]] = []
    inputs: list[np.ndarray] = []
    tokens: list[tuple[int, int, int, int]] = []
    targets: list[int] = []
    for number, row in enumerate(rows):
        place = 0
        for slot, copied, read in row.targets:
            for step, target in enumerate(copied):
                tokens.append((len(pairs), step, number, place))
                targets.append(target)
                place += 1
            pairs.append((number, slot))
            inputs.append(np.array(read))
    return TurnBatch(
        words=torch.from_numpy(pad([row.words for row in rows], PAD)),
        copies=torch.from_numpy(pad([row.copies for row in rows], -2)),
        lengths=torch.tensor([len(row.words) for row in rows]),
        gates=torch.from_numpy(np.stack([row.gates for row in rows])),
        pairs=torch.tensor(pairs).reshape(-1, 2),
        inputs=torch.from_numpy(pad(inputs, PAD) if inputs else np.zeros((0, 0), np.int64)),
        tokens=torch.tensor(tokens).reshape(-1, 4),
        targets=torch.tensor(targets, dtype=torch.long),
    )


def make_rows(
    dialogues: Iterable[Dialogue], vocabulary: Vocabulary, limit: int
) -> list[LabelledTurn]:
    """Encode every turn of the dialogues, in order."""
    return [
        make_row(dialogue, index, vocabulary, limit)
        for dialogue in dialogues
        for index in range(len(dialogue.turns))
    ]


def bucket(lengths: Sequence[int], size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
    """Group row numbers into batches of similar length, ``size`` rows each.

    With an ``rng`` rows of about equal length and the batches are shuffled, otherwise sorted.
    """
    order = by_length(lengths, rng)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    if rng is not None:
        rng.shuffle(batches)
    return batches
