"""The network of TRADE: a recurrent encoder (GRU) and the decoder of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pytest_dstfuzz.models.trade.vocabulary import END

#: Minimum number of rows in every product of a prediction. Products with fewer rows use other
#: kernels with different rounding, and results would depend on the batch.
LEAST_ROWS = 8


def _step(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return gates r|z ``[2, B, 2H]``, candidate n, and n's recurrent part ``[2, B, H]``."""
    size = h.shape[-1]
    g = _multiply(h, weight).add_(bias)
    rz = torch.sigmoid_(x[..., : 2 * size] + g[..., : 2 * size])
    gn = g[..., 2 * size :]
    n = torch.addcmul(x[..., 2 * size :], rz[..., :size], gn)
    # tanh(n) = 2 sigmoid(2 n) - 1, which torch computes several times as fast.
    n.mul_(2).sigmoid_().mul_(2).sub_(1)
    return rz, n, gn


def _multiply(left: Tensor, right: Tensor) -> Tensor:
    """Return a batched product in the type of ``left``, computed in the type of ``right``."""
    return torch.bmm(left.to(right.dtype), right).to(left.dtype)


class BidirectionalGRU(torch.autograd.Function):
    """A GRU in both directions at once. A step covers only the rows that have begun.

    All rows end at the last step. The longest rows come first, so step ``t`` covers the first
    ``active[t]`` rows. Before its beginning, the state of a row is zero.

    Shapes: ``table [W, 3H]`` are the input projections (r, z, n) of the distinct words in each
    direction, ``index [T, 2, B]`` is the word read at each step, ``weight [2, H, 3H]`` and
    ``bias [2, 1, 3H]`` are the recurrent part. With ``half``, only the recurrent products are
    computed in bfloat16. This takes half the time if the processor supports it.

    Returns the states ``[T, 2, B, H]``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        table: Tensor,
        index: Tensor,
        weight: Tensor,
        bias: Tensor,
        active: list[int],
        half: bool,
    ) -> Tensor:
        """Run over all steps from a zero state."""
        steps, _, batch = index.shape
        size = weight.shape[1]
        states = table.new_zeros(steps + 1, 2, batch, size)
        training = any(ctx.needs_input_grad)
        if half:
            weight = weight.bfloat16()
        saved: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        for t, rows in enumerate(active):
            some = max(rows, min(LEAST_ROWS, batch))
            h = states[t, :, :some]
            rz, n, gn = _step(table[index[t, :, :some]], h, weight, bias)
            following = torch.lerp(n, h, rz[..., size:])
            states[t + 1, :, :rows] = following[:, :rows]
            if training:
                for items, item in zip(saved, (rz, n, gn), strict=True):
                    items.append(item[:, :rows])
        if training:
            ctx.save_for_backward(states, weight, index)
            ctx.words, ctx.gates, ctx.active = len(table), saved, active
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor, Tensor, None, None]:
        """Backpropagate through time. The gradient of the weight is one product over all steps."""
        states, weight, index = ctx.saved_tensors
        (out,) = grads
        steps, _, batch, size = out.shape
        dx = out.new_zeros(steps, 2, batch, 3 * size)
        dg = out.new_zeros(steps, 2, batch, 3 * size)
        dh = out.new_zeros(2, batch, size)
        transposed = weight.transpose(1, 2).contiguous()
        for t in reversed(range(steps)):
            rows = ctx.active[t]
            rz, n, gn = (items[t] for items in ctx.gates)
            r, z = rz[..., :size], rz[..., size:]
            arriving = dh[:, :rows] + out[t, :, :rows]
            dn = torch.addcmul(arriving, arriving, z, value=-1.0)
            dn.addcmul_(dn * n, n, value=-1.0)
            dz = arriving * (states[t, :, :rows] - n)
            drz = torch.cat([dn * gn, dz], -1)
            drz.addcmul_(drz, rz, value=-1.0).mul_(rz)
            dx[t, :, :rows] = torch.cat([drz, dn], -1)
            dgt = torch.cat([drz, dn * r], -1)
            dg[t, :, :rows] = dgt
            dh[:, :rows] = (arriving * z).add_(_multiply(dgt, transposed))
        previous = states[:-1].transpose(0, 1).reshape(2, steps * batch, size)
        flat = dg.transpose(0, 1).reshape(2, steps * batch, 3 * size)
        dweight = _multiply(previous.transpose(1, 2), flat.to(weight.dtype))
        dtable = dx.new_zeros(ctx.words, 3 * size)
        dtable.index_add_(0, index.flatten(), dx.flatten(0, 2))
        return dtable, None, dweight, flat.sum(1, keepdim=True), None, None


def run_bidirectional(
    table: Tensor,
    words: Tensor,
    lengths: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    half: bool = False,
) -> tuple[Tensor, Tensor]:
    """Run both directions over rows of different lengths, see `BidirectionalGRU`.

    ``table [2, W, 3H]`` has the input projections of the distinct words. ``words [B, T]`` are
    indices into it, padded on the right. ``lengths [B]`` are the numbers of words, at least 1.

    Returns the sum of both directions' states ``[B, T, H]`` (undefined at padding), and the sum of
    their last states ``[B, H]``.
    """
    steps = words.shape[1]
    order = torch.argsort(lengths, descending=True, stable=True)
    back = torch.argsort(order)
    ordered, delay = words[order], (steps - lengths)[order]
    times = torch.arange(steps, device=words.device)
    forward = ordered.gather(1, (times - delay[:, None]).clamp_min(0))
    index = torch.stack([forward.t(), ordered.flip(1).t() + table.shape[1]], 1)
    active = (times[:, None] >= delay).sum(1).tolist()
    states: Tensor = BidirectionalGRU.apply(  # type: ignore[no-untyped-call]
        table.flatten(0, 1), index, weight, bias, active, half
    )
    late = (times + delay[back][:, None]).clamp_max(steps - 1)
    sums = states[late, 0, back[:, None]] + states[:, 1].flip(0)[:, back].transpose(0, 1)
    final = states[-1, 0] + states[-1, 1]
    return sums, final[back]


#: Classes of the slot gate.
GATE_NONE, GATE_DONTCARE, GATE_POINTER = 0, 1, 2

#: Number of history words per product in a sum.
_PART = 128


@dataclass(frozen=True)
class Shape:
    """The sizes of a network's layers."""

    words: int
    outputs: int
    domains: int
    names: int
    embedding: int
    hidden: int


@dataclass(frozen=True)
class EncodedHistories:
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
    """Return ``values`` padded with zero rows to at least ``LEAST_ROWS`` rows."""
    missing = LEAST_ROWS - len(values)
    if missing <= 0:
        return values
    return torch.cat([values, values.new_zeros(missing, *values.shape[1:])])


class TradeNetwork(nn.Module):
    """TRADE with word embeddings shared by encoder, decoder and output layer.

    The decoder has no input feeding: its state does not depend on the attention. Parts of a step
    that depend only on the history or only on the slot are computed once. So the first step for 30
    slots costs little more than for one slot.
    """

    def __init__(
        self,
        shape: Shape,
        slots: list[tuple[int, int]],
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        """Draw the weights from ``generator``. It also draws the dropout masks later.

        ``slots`` has the domain index and the name index of each slot. ``dropout`` is the rate for
        embeddings and encoder outputs.
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

    def encode(self, words: Tensor, lengths: Tensor) -> EncodedHistories:
        """Encode histories ``words [B, T]``, padded on the right, with ``lengths [B]`` words."""
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
        return EncodedHistories(self._drop(outputs), self._drop(final), padding)

    def slot_inputs(self) -> Tensor:
        """Return the decoder's first input for each slot, ``[S, E]``."""
        domains, names = self.slot_index.unbind(1)  # type: ignore[operator]
        return self.domain_embedding[domains] + self.name_embedding[names]

    def first_step(self, encoded: EncodedHistories, inputs: Tensor) -> FirstStep:
        """Run the decoder's first step for the slots with the inputs ``[S, E]``."""
        slots = len(inputs)
        x = at_least(self._drop(inputs)) @ self.decoder_in + self.decoder_in_bias
        g = encoded.final @ self.decoder + self.decoder_bias
        hidden = self._cell(x[None], g[:, None], encoded.final[:, None])
        attention, context = self.attend(hidden, encoded.outputs, encoded.padding)
        hidden, attention, context = (part[:, :slots] for part in (hidden, attention, context))
        return FirstStep(hidden, attention, context, context @ self.gate + self.gate_bias)

    def _cell(self, x: Tensor, g: Tensor, h: Tensor) -> Tensor:
        """Return the next state of the GRU for input part ``x`` and recurrent part ``g``."""
        size = self.shape.hidden
        rz = torch.sigmoid(x[..., : 2 * size] + g[..., : 2 * size])
        n = torch.tanh(x[..., 2 * size :] + rz[..., :size] * g[..., 2 * size :])
        return torch.lerp(n, h.expand_as(n), rz[..., size:])

    def next_hidden(self, hidden: Tensor, embedded: Tensor) -> Tensor:
        """Return the state ``[N, H]`` after reading the embedded words ``[N, E]``."""
        x = embedded @ self.decoder_in + self.decoder_in_bias
        return self._cell(x, hidden @ self.decoder + self.decoder_bias, hidden)

    def attend(self, hidden: Tensor, outputs: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        """For states ``[B, R, H]``, return attention ``[B, R, T]`` and context ``[B, R, H]``."""
        scores = torch.bmm(hidden, outputs.transpose(1, 2))
        scores = scores.masked_fill(padding[:, None], float("-inf"))
        attention = torch.softmax(scores, -1)
        # In parts of a fixed size, because the order of a long sum depends on its length.
        context = torch.bmm(attention[..., :_PART], outputs[:, :_PART])
        for start in range(_PART, outputs.shape[1], _PART):
            part = slice(start, start + _PART)
            context = torch.baddbmm(context, attention[..., part], outputs[:, part])
        return attention, context

    def embed(self, words: Tensor) -> Tensor:
        """Return the embeddings of words, for the decoder."""
        return self._drop(functional.embedding(words, self.embedding))

    def logits(self, hidden: Tensor) -> Tensor:
        """Return scores ``[..., outputs]`` of the words that can be generated."""
        shared = self.embedding[: self.shape.outputs]
        return functional.linear(hidden @ self.output, shared, self.output_bias)

    def generate_share(self, hidden: Tensor, context: Tensor, inputs: Tensor) -> Tensor:
        """Return the weight in ``(0, 1)`` of generating a word instead of copying, ``[...]``."""
        size = self.shape.hidden
        # Not a matrix-vector product: its rounding depends on the number of rows.
        score = (hidden * self.mix[:size] + context * self.mix[size : 2 * size]).sum(-1)
        score = score + (inputs * self.mix[2 * size :]).sum(-1) + self.mix_bias
        # In 64 bits, because torch computes the last elements of a vector with another routine.
        return torch.sigmoid(score.double()).to(score.dtype)


#: Maximum number of words in a value of the training split, including the end mark.
MAX_STEPS = 12


@dataclass(frozen=True)
class DecodedValues:
    """The decoded values of ``B`` histories and ``S`` slots."""

    gates: Tensor  #: Class of each slot, ``[B, S]``.
    pairs: Tensor  #: Row and slot of each generated value, ``[N, 2]``, sorted.
    words: Tensor  #: Copy indices of its words, ``[N, MAX_STEPS]``, ``END`` after the last.
    impurities: Tensor  #: Mean Gini impurity of a slot's gate and word distributions, ``[B, S]``.


def decode(network: TradeNetwork, words: Tensor, copies: Tensor, lengths: Tensor) -> DecodedValues:
    """Decode the values of all slots for histories ``words [B, T]``."""
    encoded = network.encode(words, lengths)
    inputs = network.slot_inputs()
    first = network.first_step(encoded, inputs)
    probabilities = torch.softmax(first.gate, -1)
    gates = probabilities.argmax(-1)
    impurity_sum = gini_rows(probabilities)
    pairs = (gates == GATE_POINTER).nonzero()
    if not len(pairs):
        empty = pairs.new_zeros(0, MAX_STEPS)
        return DecodedValues(gates, pairs, empty, impurity_sum)
    generated, sums, counts = _generate(network, encoded, first, inputs, pairs, words, copies)
    row, slot = pairs.unbind(1)
    impurity_sum[row, slot] = (impurity_sum[row, slot] + sums) / (1 + counts)
    return DecodedValues(gates, pairs, generated, impurity_sum)


def _generate(
    network: TradeNetwork,
    encoded: EncodedHistories,
    first: FirstStep,
    inputs: Tensor,
    pairs: Tensor,
    words: Tensor,
    copies: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Generate the values of all pairs of history and slot at once.

    A pair is removed when its value ends. Returns words ``[N, MAX_STEPS]``, summed impurities
    ``[N]`` and number of steps ``[N]``.
    """
    row, slot = pairs.unbind(1)
    generated = pairs.new_full((len(pairs), MAX_STEPS), END)
    sums = first.gate.new_zeros(len(pairs), dtype=torch.float64)
    counts = torch.zeros_like(sums)
    alive = torch.arange(len(pairs), device=pairs.device)
    hidden, read = first.hidden[row, slot], inputs[slot]
    attention, context = first.attention[row, slot], first.context[row, slot]
    known = network.shape.outputs
    for step in range(MAX_STEPS):
        share = network.generate_share(hidden, context, read)
        logits = network.logits(at_least(hidden))[: len(alive)]
        mixture = mix(logits, share, attention, copies[row[alive]])
        sums[alive] += gini_rows(mixture)
        counts[alive] += 1
        chosen = mixture.argmax(-1)
        generated[alive, step] = chosen
        going = (chosen != END).nonzero()[:, 0]
        if not len(going) or step + 1 == MAX_STEPS:
            break
        alive, chosen = alive[going], chosen[going]
        # Look up copied words in the history.
        place = (copies[row[alive]] == chosen[:, None]).int().argmax(1)
        read = network.embed(torch.where(chosen < known, chosen, words[row[alive], place]))
        hidden = network.next_hidden(at_least(hidden[going]), at_least(read))[: len(going)]
        attention, context = _attend(network, encoded, hidden, row[alive])
    return generated, sums, counts


def mix(logits: Tensor, share: Tensor, attention: Tensor, copies: Tensor) -> Tensor:
    """Return the final distributions over generated and copied words.

    The result is ``[N, max(V, highest copy index + 1)]``. ``logits`` is ``[N, V]``, ``share [N]``
    is the weight of generating, ``attention [N, T]`` is 0 at padding, and ``copies [N, T]`` is
    negative there.
    """
    width = max(logits.shape[1], int(copies.max()) + 1)
    mixture = logits.new_zeros(len(logits), width)
    mixture[:, : logits.shape[1]] = torch.softmax(logits, -1) * share[:, None]
    return mixture.scatter_add_(1, copies.clamp_min(0), attention * (1 - share)[:, None])


def gini_rows(distributions: Tensor) -> Tensor:
    """Return the Gini impurity ``1 - sum p^2`` over the last dimension, at least 0."""
    # In 64 bits, because the order of a sum depends on the width of the batch.
    return (1 - distributions.square().sum(-1, dtype=torch.float64)).clamp_min(0)


def _attend(
    network: TradeNetwork, encoded: EncodedHistories, hidden: Tensor, row: Tensor
) -> tuple[Tensor, Tensor]:
    """Attend with states ``[N, H]`` of sorted rows, with one product per row."""
    starts = torch.searchsorted(row, row)
    place = torch.arange(len(row), device=row.device) - starts
    present, compact = torch.unique_consecutive(row, return_inverse=True)
    width = max(LEAST_ROWS, int(place.max()) + 1)
    queries = hidden.new_zeros(len(present), width, hidden.shape[-1])
    queries[compact, place] = hidden
    outputs, padding = encoded.outputs, encoded.padding
    if len(present) < len(outputs):
        outputs, padding = outputs[present], padding[present]
    attention, context = network.attend(queries, outputs, padding)
    return attention[compact, place], context[compact, place]
