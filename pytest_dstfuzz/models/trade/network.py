"""The TRADE network (Wu et al., arXiv 1905.08743): encoder, slot gate, copying generator."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from pytest_dstfuzz.models.trade.gru import LEAST_ROWS, run_bidirectional

#: Classes of the slot gate.
GATE_NONE, GATE_DONTCARE, GATE_POINTER = 0, 1, 2

#: Words of history that are added up in one product.
_PART = 128


@dataclass(frozen=True)
class Shape:
    """Sizes of a network."""

    words: int
    outputs: int
    domains: int
    names: int
    embedding: int
    hidden: int


@dataclass(frozen=True)
class Encoded:
    """Encoded histories: ``outputs [B, T, H]``, ``final [B, H]``, ``padding [B, T]`` (bool)."""

    outputs: Tensor
    final: Tensor
    padding: Tensor


@dataclass(frozen=True)
class FirstStep:
    """The decoder's first step for all slots of all histories.

    ``hidden [B, S, H]``, ``attention [B, S, T]``, ``context [B, S, H]``, ``gate [B, S, 3]``
    (logits).
    """

    hidden: Tensor
    attention: Tensor
    context: Tensor
    gate: Tensor


def at_least(values: Tensor) -> Tensor:
    """Return ``values`` with zeros appended up to ``LEAST_ROWS`` rows."""
    missing = LEAST_ROWS - len(values)
    if missing <= 0:
        return values
    return torch.cat([values, values.new_zeros(missing, *values.shape[1:])])


class TradeNetwork(nn.Module):
    """TRADE with word embeddings shared by encoder, decoder and output layer.

    The decoder has no input feeding (its state does not depend on the attention), so
    everything of a step that depends on the history alone or the slot alone is computed
    once: the first step of 30 slots costs little more than that of one.
    """

    def __init__(
        self,
        shape: Shape,
        slots: list[tuple[int, int]],
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        """Draw weights, and later the dropout masks, from ``generator``.

        ``slots`` has the domain number and the name number of each; ``dropout`` is the rate for
        embeddings and for the encoder's outputs.
        """
        super().__init__()
        self.shape, self.dropout, self.generator = shape, dropout, generator
        #: Whether training computes the encoder's large products in bfloat16.
        self.fast = False
        size, width = shape.hidden, shape.embedding
        bound = size**-0.5

        def normal(*sizes: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*sizes).normal_(0, 0.1, generator=generator))

        def uniform(*sizes: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*sizes).uniform_(-bound, bound, generator=generator))

        self.embedding = normal(shape.words, width)
        self.domain_embedding = normal(shape.domains, width)
        self.name_embedding = normal(shape.names, width)
        self.encoder_in = uniform(width, 6 * size)
        self.encoder_in_bias = uniform(6 * size)
        self.encoder = uniform(2, size, 3 * size)
        self.encoder_bias = uniform(2, 1, 3 * size)
        self.decoder_in = uniform(width, 3 * size)
        self.decoder_in_bias = uniform(3 * size)
        self.decoder = uniform(size, 3 * size)
        self.decoder_bias = uniform(3 * size)
        self.gate = uniform(size, 3)
        self.gate_bias = nn.Parameter(torch.zeros(3))
        self.mix = uniform(2 * size + width)
        self.mix_bias = nn.Parameter(torch.zeros(1))
        self.output = uniform(size, width)
        self.output_bias = nn.Parameter(torch.zeros(shape.outputs))
        self.register_buffer("slot_index", torch.tensor(slots), persistent=False)

    def _drop(self, values: Tensor) -> Tensor:
        if not self.training or not self.dropout:
            return values
        keep = torch.rand(values.shape, generator=self.generator, device=values.device)
        return values * (keep >= self.dropout) / (1 - self.dropout)

    def encode(self, words: Tensor, lengths: Tensor) -> Encoded:
        """Encode histories ``words [B, T]`` (padded on the right) of ``lengths [B]``."""
        size = self.shape.hidden
        half = self.fast and self.training
        unique, inverse = torch.unique(words, return_inverse=True)
        embedded, weight = at_least(self._drop(self.embedding[unique])), self.encoder_in
        if half:
            table = (embedded.bfloat16() @ weight.bfloat16()).float() + self.encoder_in_bias
        else:
            table = embedded @ weight + self.encoder_in_bias
        both = torch.stack([table[:, : 3 * size], table[:, 3 * size :]])
        outputs, final = run_bidirectional(
            both, inverse, lengths, self.encoder, self.encoder_bias, half=half
        )
        padding = torch.arange(words.shape[1], device=words.device) >= lengths[:, None]
        return Encoded(self._drop(outputs), self._drop(final), padding)

    def slot_inputs(self) -> Tensor:
        """Return the decoder's first input for each slot, ``[S, E]``."""
        domains, names = self.slot_index.unbind(1)  # type: ignore[operator]
        return self.domain_embedding[domains] + self.name_embedding[names]

    def first_step(self, encoded: Encoded, inputs: Tensor) -> FirstStep:
        """Run the decoder's first step for the slots whose inputs are ``[S, E]``."""
        slots = len(inputs)
        x = at_least(self._drop(inputs)) @ self.decoder_in + self.decoder_in_bias
        g = encoded.final @ self.decoder + self.decoder_bias
        hidden = self._cell(x[None], g[:, None], encoded.final[:, None])
        attention, context = self.attend(hidden, encoded.outputs, encoded.padding)
        hidden, attention, context = (part[:, :slots] for part in (hidden, attention, context))
        return FirstStep(hidden, attention, context, context @ self.gate + self.gate_bias)

    def _cell(self, x: Tensor, g: Tensor, h: Tensor) -> Tensor:
        """Return the next state from input part ``x``, recurrent part ``g`` and state ``h``."""
        size = self.shape.hidden
        rz = torch.sigmoid(x[..., : 2 * size] + g[..., : 2 * size])
        n = torch.tanh(x[..., 2 * size :] + rz[..., :size] * g[..., 2 * size :])
        return torch.lerp(n, h.expand_as(n), rz[..., size:])

    def next_hidden(self, hidden: Tensor, embedded: Tensor) -> Tensor:
        """Return the state ``[N, H]`` after reading the words embedded as ``[N, E]``."""
        x = embedded @ self.decoder_in + self.decoder_in_bias
        return self._cell(x, hidden @ self.decoder + self.decoder_bias, hidden)

    def attend(self, hidden: Tensor, outputs: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        """Return weights ``[B, R, T]`` and context ``[B, R, H]`` of states ``[B, R, H]``."""
        scores = torch.bmm(hidden, outputs.transpose(1, 2))
        scores = scores.masked_fill(padding[:, None], float("-inf"))
        attention = torch.softmax(scores, -1)
        # In parts of one size, since the order of a long sum depends on its length.
        context = torch.bmm(attention[..., :_PART], outputs[:, :_PART])
        for start in range(_PART, outputs.shape[1], _PART):
            part = slice(start, start + _PART)
            context = torch.baddbmm(context, attention[..., part], outputs[:, part])
        return attention, context

    def embed(self, words: Tensor) -> Tensor:
        """Embed words for the decoder."""
        return self._drop(functional.embedding(words, self.embedding))

    def logits(self, hidden: Tensor) -> Tensor:
        """Return scores ``[..., outputs]`` of the words that can be generated."""
        shared = self.embedding[: self.shape.outputs]
        return functional.linear(hidden @ self.output, shared, self.output_bias)

    def generate_share(self, hidden: Tensor, context: Tensor, inputs: Tensor) -> Tensor:
        """Return the weight of generating against copying, in ``(0, 1)``, ``[...]``."""
        size = self.shape.hidden
        # Not a matrix-vector product: its rounding depends on the number of rows.
        score = (hidden * self.mix[:size] + context * self.mix[size : 2 * size]).sum(-1)
        score = score + (inputs * self.mix[2 * size :]).sum(-1) + self.mix_bias
        # In 64 bits, since the last places of a vector are computed by another routine.
        return torch.sigmoid(score.double()).to(score.dtype)
