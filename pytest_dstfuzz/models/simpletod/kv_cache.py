"""Keys and values of a GPT-2: kept for texts that begin alike, and of rows read together.

Variants of a turn differ in its user utterance alone, and the next turn begins with all of it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import Cache, GPT2LMHeadModel
from transformers.cache_utils import DynamicLayer

#: Bytes of keys and values that are kept; those used longest ago go first.
_BYTES: Final = 512 * 1024 * 1024
#: Answers that are kept for each beginning.
_ANSWERS: Final = 64


@dataclass(frozen=True)
class CachedPrefix:
    """The beginning of a dialogue, up to a user utterance."""

    states: Tensor  #: Keys and values of its tokens ``[layers, 2, heads, T, width]``.
    #: Tokens of user utterances, and what was written after them.
    answers: deque[tuple[frozenset[int], tuple[int, ...]]] = field(
        default_factory=lambda: deque(maxlen=_ANSWERS)
    )

    @property
    def bytes(self) -> int:
        """What its states take."""
        return self.states.numel() * self.states.element_size()

    def learn(self, utterance: Sequence[int], answer: tuple[int, ...]) -> None:
        """Keep what was written after an utterance."""
        pair = (frozenset(utterance), answer)
        if pair not in self.answers:
            self.answers.append(pair)

    def answer_like(self, utterance: Sequence[int]) -> tuple[int, ...]:
        """Return what was written after the utterance that is most like this one."""
        wanted = frozenset(utterance)

        def likeness(pair: tuple[frozenset[int], tuple[int, ...]]) -> float:
            return len(wanted & pair[0]) / max(1, len(wanted | pair[0]))

        return max(self.answers, key=likeness, default=(wanted, ()))[1]


class PrefixCache:
    """Beginnings by their tokens."""

    def __init__(self, capacity: int = _BYTES) -> None:
        self._capacity = capacity
        self._size = 0
        self._kept: OrderedDict[tuple[int, ...], CachedPrefix] = OrderedDict()

    def __contains__(self, key: tuple[int, ...]) -> bool:
        return key in self._kept

    def get(self, key: tuple[int, ...]) -> CachedPrefix | None:
        """Return what is known of a beginning, which is kept longer for it."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: tuple[int, ...], prefix: CachedPrefix) -> None:
        """Keep a beginning that is not there; forget others where there is no room."""
        self._kept[key] = prefix
        self._size += prefix.bytes
        while self._size > self._capacity and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.bytes


#: Columns by which keys and values grow when their room is used up.
_ROOM = 64


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]  # theirs has no types
    """Keys and values of one layer, with room for more: transformers copies its own each time."""

    def __init__(self, states: Tensor, used: int) -> None:
        """Take ``states [2, B, heads, T, width]``, of which so many columns are in use."""
        super().__init__()  # type: ignore[no-untyped-call]  # theirs has no types
        self.is_initialized = True
        self.states = states
        self.used = used

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        *_args: object,
        **_kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        """Add keys and values ``[B, heads, t, width]``, and return all."""
        end = self.used + key_states.shape[2]
        self.states[0, :, :, self.used : end] = key_states
        self.states[1, :, :, self.used : end] = value_states
        self.used = end
        return self.states[0, :, :, :end], self.states[1, :, :, :end]

    def get_seq_length(self) -> int:
        """Return how many columns are in use."""
        return self.used


class KVBatch:
    """Texts that are read together, each at its own pace: gaps between columns are seen by none.

    ``known`` are keys and values that each row begins with, see `CachedPrefix`; ``None`` = none.
    """

    def __init__(self, model: GPT2LMHeadModel, known: Sequence[Tensor | None]) -> None:
        self._model = model
        config = model.config
        width = max((states.shape[3] for states in known if states is not None), default=0)
        size = (len(known), config.n_head, width + _ROOM, config.n_embd // config.n_head)
        self._states = torch.zeros(
            (config.n_layer, 2, *size), dtype=model.dtype, device=model.device
        )
        #: Whether a column is seen ``[B, columns]``.
        self._seen = torch.zeros(size[0], size[2], dtype=torch.bool, device=model.device)
        self._start, self._used = 0, width
        for row, states in enumerate(known):
            if states is not None:
                self._states[:, :, row, :, : states.shape[3]] = states
                self._seen[row, : states.shape[3]] = True

    def read(
        self, feeds: Sequence[list[int]], guesses: Sequence[list[int]], positions: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """Read the tokens of each row, none for one that is done, and guesses that follow them.

        For the last token fed and each guess, of row after row: the likeliest next token, and the
        Gini impurity of its distribution. ``positions`` are those of the first tokens.
        """
        lines = [feed + guess for feed, guess in zip(feeds, guesses, strict=True)]
        width = max(map(len, lines))
        self._grow(width)
        device = self._seen.device
        tokens = torch.zeros(len(lines), width, dtype=torch.long)
        wanted = torch.zeros(len(lines), width, dtype=torch.bool)
        for row, (line, feed) in enumerate(zip(lines, feeds, strict=True)):
            tokens[row, : len(line)] = torch.tensor(line, dtype=torch.long)
            wanted[row, max(0, len(feed) - 1) : len(line)] = True
        # Padding stands where the last token does: there may be no position after it.
        steps = torch.arange(width)
        ends = torch.tensor(
            [start + len(line) for start, line in zip(positions, lines, strict=True)]
        )
        places = torch.minimum(
            torch.tensor(positions)[:, None] + steps, (ends - 1).clamp(0)[:, None]
        )
        new = (steps[:, None] >= steps).to(device).expand(len(lines), 1, width, width)
        old = self._seen[:, None, None, : self._used].expand(-1, 1, width, -1)
        seen = torch.cat([old, new], dim=3)
        # To be added to scores: not every kind of attention takes one of truth values.
        mask = torch.zeros(seen.shape, dtype=self._model.dtype, device=device)
        mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
        layers: list[Any] = [_Layer(states, self._used) for states in self._states]
        hidden = self._model.transformer(
            tokens.to(device),
            past_key_values=Cache(layers=layers),
            attention_mask=mask,
            position_ids=places.to(device),
            use_cache=True,
        ).last_hidden_state
        self._start, self._used = self._used, self._used + width
        scores = self._model.lm_head(hidden[wanted.to(device)]).float()
        impurities = 1.0 - scores.softmax(-1).square().sum(-1)
        return scores.argmax(-1).tolist(), impurities.tolist()

    def accept(self, sizes: Sequence[int]) -> None:
        """Let what is read later see so many tokens of those that each row read last."""
        width = torch.tensor(sizes)[:, None]
        accepted = torch.arange(self._used - self._start) < width
        self._seen[:, self._start : self._used] = accepted.to(self._seen.device)

    def states(self, row: int, tokens: int) -> Tensor:
        """Return a copy of keys and values of the first tokens of a row."""
        columns = self._seen[row].nonzero()[:tokens, 0]
        return self._states[:, :, row].index_select(3, columns)

    def select(self, rows: Sequence[int]) -> None:
        """Leave out all other rows."""
        kept = torch.tensor(rows, device=self._seen.device)
        self._states = self._states.index_select(2, kept)
        self._seen = self._seen.index_select(0, kept)

    def _grow(self, width: int) -> None:
        """Make room for so many columns more."""
        missing = self._used + width - self._seen.shape[1]
        if missing > 0:
            self._states = pad(self._states, (0, 0, 0, missing + _ROOM))
            self._seen = pad(self._seen, (0, missing + _ROOM))
