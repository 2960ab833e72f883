"""The network of the assistant in torch, for training. In use, it runs in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from pytest_dstfuzz.models.assistant.features import (
    CALL,
    CANDIDATE,
    PAIR,
    SHAPE,
    SLOT,
    TOOL,
    VALUE,
    WIDTH,
)
from tools.assistant.rows import FIXED, Row

DEPTH, HIDDEN, COMMON = 96, 48, 32
HEADS, LAYERS = 4, 2
_FAR = -1e4
#: How often a name or a description is hidden, and the noise on each number of its vector: as
#: long, all in all, as the vector is.
_HIDDEN_WORDS, _NOISE = 0.25, 0.1


@dataclass
class Batch:
    """A batch of turns, padded: B turns, T tokens, P slots, V values, C candidates, G tools."""

    words: Tensor  # [B, T]
    common: Tensor  # [B, T]
    shapes: Tensor  # [B, T, SHAPE]
    token_mask: Tensor  # [B, T]
    user_mask: Tensor  # [B, T]
    heard_mask: Tensor  # [B, T]
    tools: Tensor  # [B, G, 2]
    tool_facts: Tensor  # [B, G, TOOL]
    tool_mask: Tensor  # [B, G]
    active: Tensor  # [B]
    slots: Tensor  # [B, P, 2]
    slot_facts: Tensor  # [B, P, SLOT]
    pairs: Tensor  # [B, P, T, PAIR]
    values: Tensor  # [B, P, V]
    value_facts: Tensor  # [B, P, V, VALUE]
    hits: Tensor  # [B, P, V, T]
    candidate_facts: Tensor  # [B, P, C, CANDIDATE]
    answer_mask: Tensor  # [B, P, FIXED + V + C]
    right: Tensor  # [B, P, FIXED + V + C]
    span: Tensor  # [B, P, 2]
    call_facts: Tensor  # [B, CALL]
    call: Tensor  # [B]


def collate(rows: Sequence[Row]) -> Batch:
    """Combine rows into one batch."""
    b = len(rows)
    t = max(len(row.vectors) for row in rows)
    g = max(len(row.tools) for row in rows)
    p = max(1, *(len(row.slots) for row in rows))
    v = max([1, *(len(slot.values) for row in rows for slot in row.slots)])
    c = max([1, *(len(slot.candidate_facts) for row in rows for slot in row.slots)])
    made: dict[str, Any] = {
        "words": np.zeros((b, t), np.int64),
        "common": np.zeros((b, t), np.int64),
        "shapes": np.zeros((b, t, SHAPE), np.float32),
        "token_mask": np.zeros((b, t), bool),
        "user_mask": np.zeros((b, t), bool),
        "heard_mask": np.zeros((b, t), bool),
        "tools": np.zeros((b, g, 2), np.int64),
        "tool_facts": np.zeros((b, g, TOOL), np.float32),
        "tool_mask": np.zeros((b, g), bool),
        "active": np.array([row.active for row in rows]),
        "slots": np.zeros((b, p, 2), np.int64),
        "slot_facts": np.zeros((b, p, SLOT), np.float32),
        "pairs": np.zeros((b, p, t, PAIR), np.float32),
        "values": np.zeros((b, p, v), np.int64),
        "value_facts": np.zeros((b, p, v, VALUE), np.float32),
        "hits": np.zeros((b, p, v, t), np.float32),
        "candidate_facts": np.zeros((b, p, c, CANDIDATE), np.float32),
        "answer_mask": np.zeros((b, p, FIXED + v + c), bool),
        "right": np.zeros((b, p, FIXED + v + c), bool),
        "span": np.full((b, p, 2), -1),
        "call_facts": np.zeros((b, CALL), np.float32),
        "call": np.array([row.call for row in rows]),
    }
    for i, row in enumerate(rows):
        n = len(row.vectors)
        made["words"][i, :n], made["common"][i, :n] = row.vectors, row.common
        made["shapes"][i, :n] = row.shapes
        made["token_mask"][i, :n] = True
        made["heard_mask"][i, : row.heard] = True
        made["user_mask"][i, row.heard + 1 : n] = True
        k = len(row.tools)
        made["tools"][i, :k], made["tool_facts"][i, :k] = row.tools, row.tool_facts
        made["tool_mask"][i, :k] = True
        if len(row.call_facts):
            made["call_facts"][i] = row.call_facts
        for j, slot in enumerate(row.slots):
            made["slots"][i, j], made["slot_facts"][i, j] = slot.vectors, slot.facts
            made["pairs"][i, j, :n] = slot.pairs
            nv, nc = len(slot.values), len(slot.candidate_facts)
            made["values"][i, j, :nv], made["value_facts"][i, j, :nv] = (
                slot.values,
                slot.value_facts,
            )
            made["hits"][i, j, :nv, :n] = slot.hits
            made["candidate_facts"][i, j, :nc] = slot.candidate_facts
            for to, of, size in ((0, 0, FIXED + nv), (FIXED + v, FIXED + nv, nc)):
                made["answer_mask"][i, j, to : to + size] = True
                made["right"][i, j, to : to + size] = slot.right[of : of + size]
            # A value of a list is chosen from the list.
            made["answer_mask"][i, j, FIXED - 1] = nv == 0
            made["span"][i, j] = slot.span
    return Batch(**{f.name: torch.from_numpy(made[f.name]) for f in fields(Batch)})


class AssistantNetwork(nn.Module):
    """Reads a turn once, then scores each tool, slot, value and candidate for it."""

    table: Tensor

    def __init__(self, table: Tensor, common: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.register_buffer("table", table, persistent=False)
        self.common = nn.Embedding(common, COMMON, padding_idx=0)
        nn.init.normal_(self.common.weight, std=0.1)
        self.enter = nn.Linear(WIDTH + COMMON + SHAPE, DEPTH)
        self.conv = nn.ModuleList(nn.Linear(3 * DEPTH, 2 * DEPTH) for _ in range(LAYERS))
        self.conv_norm = nn.ModuleList(nn.LayerNorm(DEPTH) for _ in range(LAYERS))
        self.attend = nn.Linear(DEPTH, 3 * DEPTH)
        self.attended = nn.Linear(DEPTH, DEPTH)
        self.attend_norm = nn.LayerNorm(DEPTH)
        self.widen = nn.Linear(DEPTH, 2 * DEPTH)
        self.narrow = nn.Linear(2 * DEPTH, DEPTH)
        self.widen_norm = nn.LayerNorm(DEPTH)
        self.leave_norm = nn.LayerNorm(DEPTH)
        # Slots
        self.slot = nn.Linear(2 * WIDTH + SLOT, HIDDEN)
        self.slot_times = nn.Linear(2 * WIDTH, HIDDEN)
        self.token_plus = nn.Linear(DEPTH, HIDDEN)
        self.token_times = nn.Linear(DEPTH, HIDDEN)
        self.pair = nn.Linear(PAIR, HIDDEN)
        self.mix = nn.Linear(3 * HIDDEN, HIDDEN)
        self.look = nn.Linear(HIDDEN, 1)
        self.gather = nn.Linear(4 * HIDDEN + SLOT, HIDDEN)
        self.back = nn.Linear(HIDDEN, HIDDEN)
        self.ends = nn.Linear(HIDDEN, 2)
        self.fixed = nn.Linear(HIDDEN, FIXED)
        self.value = nn.Linear(WIDTH, HIDDEN)
        self.value_in = nn.Linear(5 * HIDDEN + VALUE + 2, HIDDEN)
        self.value_out = nn.Linear(HIDDEN, 1)
        self.candidate_in = nn.Linear(HIDDEN + CANDIDATE, HIDDEN)
        self.candidate_out = nn.Linear(HIDDEN, 1)
        # Tools
        self.tool = nn.Linear(2 * WIDTH, HIDDEN)
        self.token_tool = nn.Linear(DEPTH, HIDDEN)
        self.tool_in = nn.Linear(2 * HIDDEN + TOOL, HIDDEN)
        self.tool_out = nn.Linear(HIDDEN, 1)
        self.none = nn.Linear(HIDDEN, 1)
        # The call
        self.call_look = nn.Linear(HIDDEN, 2)
        self.call_in = nn.Linear(3 * HIDDEN + CALL, HIDDEN)
        self.call_out = nn.Linear(HIDDEN, 1)
        self.drop = nn.Dropout(dropout)

    def encode(self, batch: Batch) -> Tensor:
        """Return the states of the tokens, ``[B, T, DEPTH]``."""
        common = batch.common
        if self.training:
            hidden = torch.rand(common.shape) < 0.15
            common = common.masked_fill(hidden, 0)
        x = self.enter(
            torch.cat([self.drop(self.table[batch.words]), self.common(common), batch.shapes], -1)
        )
        mask = batch.token_mask[..., None].to(x.dtype)
        for norm, conv in zip(self.conv_norm, self.conv, strict=True):
            y = norm(x) * mask
            x = x + self.drop(F.glu(conv(_beside(y)), -1))
        b, t, _ = x.shape
        q, k, v = self.attend(self.attend_norm(x)).reshape(b, t, 3, HEADS, -1).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / (DEPTH / HEADS) ** 0.5
        scores = scores.masked_fill(~batch.token_mask[:, None, None, :], _FAR)
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).reshape(b, t, DEPTH)
        x = x + self.drop(self.attended(mixed))
        x = x + self.drop(self.narrow(F.gelu(self.widen(self.widen_norm(x)), approximate="tanh")))
        found: Tensor = self.leave_norm(x)
        return found

    def _blurred(self, named: Tensor) -> Tensor:
        """Return the vectors of names and descriptions in a row. In training, add noise to them.

        The tools of other users have other words, so the network must not learn the words of the
        training data by heart. ``named`` is ``[..., 2, WIDTH]``.
        """
        if self.training:
            kept = torch.rand(named.shape[:-1]) > _HIDDEN_WORDS
            named = (named + _NOISE * torch.randn(named.shape)) * kept[..., None]
        return named.flatten(-2)

    def score_tools(self, batch: Batch, states: Tensor) -> Tensor:
        """Return the scores of calling no tool and of each tool, ``[B, 1 + G]``."""
        queries = self.tool(self._blurred(self.table[batch.tools]))
        keys = self.token_tool(states)
        scores = torch.einsum("btd,bgd->bgt", keys, queries) / HIDDEN**0.5
        shares = scores.masked_fill(~batch.token_mask[:, None, :], _FAR).softmax(-1)
        seen = torch.einsum("bgt,btd->bgd", shares, keys)
        inner = torch.cat([seen * queries, seen, batch.tool_facts], -1)
        tools = self.tool_out(_gelu(self.tool_in(self.drop(inner)))).squeeze(-1)
        tools = tools.masked_fill(~batch.tool_mask, _FAR)
        none = self.none(_most(keys, batch.user_mask))
        return torch.cat([none, tools], -1)

    def score_slots(self, batch: Batch, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of answers ``[B, P, FIXED+V+C]`` and of span ends ``[B, P, T, 2]``."""
        about = self._blurred(self.table[batch.slots])
        slots = self.slot(torch.cat([about, batch.slot_facts], -1))
        plus, times = self.token_plus(states), self.token_times(states)
        u = plus[:, None] + slots[:, :, None] + self.pair(batch.pairs)
        u = _gelu(u + times[:, None] * self.slot_times(about)[:, :, None])
        mask = batch.token_mask[:, None, :]
        u = u * mask[..., None]
        u = u + _gelu(self.mix(_beside(u)))
        shares = self.look(u).squeeze(-1).masked_fill(~mask, _FAR).softmax(-1)
        user, heard = batch.user_mask[:, None, :], batch.heard_mask[:, None, :]
        g = torch.cat(
            [
                torch.einsum("bpt,bptd->bpd", shares, u),
                _most(u, user),
                _most(u, heard),
                slots,
                batch.slot_facts,
            ],
            -1,
        )
        g = _gelu(self.gather(self.drop(g)))
        ends = self.ends(_gelu(u + self.back(g)[:, :, None]))
        ends = ends.masked_fill(~(user | heard)[..., None], _FAR)
        values = self.value(self.table[batch.values])
        met = torch.einsum("bptd,bpvd->bpvt", u, values) / HIDDEN**0.5
        by_user = met.masked_fill(~user[:, :, None], _FAR).amax(-1, keepdim=True).clamp_min(-9)
        by_heard = met.masked_fill(~heard[:, :, None], _FAR).amax(-1, keepdim=True).clamp_min(-9)
        wide = g[:, :, None].expand(-1, -1, values.shape[2], -1)
        parts = [wide * values, values, wide, batch.value_facts, by_user, by_heard]
        for part in (user, heard):
            hits = batch.hits * part[:, :, None]
            said = torch.einsum("bpvt,bptd->bpvd", hits, u)
            parts.append(said / hits.sum(-1, keepdim=True).clamp_min(1))
        inner = torch.cat(parts, -1)
        of_values = self.value_out(_gelu(self.value_in(self.drop(inner)))).squeeze(-1)
        wide = g[:, :, None].expand(-1, -1, batch.candidate_facts.shape[2], -1)
        inner = torch.cat([wide, batch.candidate_facts], -1)
        of_candidates = self.candidate_out(_gelu(self.candidate_in(inner))).squeeze(-1)
        answers = torch.cat([self.fixed(g), of_values, of_candidates], -1)
        return answers.masked_fill(~batch.answer_mask, _FAR), ends

    def score_call(self, batch: Batch, states: Tensor, active: Tensor) -> Tensor:
        """Return the score for calling a tool now, ``[B]``.

        ``active [B, 2]`` are the tools' vectors.
        """
        keys = self.token_tool(states)
        looks = self.call_look(keys)
        seen = []
        for number, mask in enumerate((batch.user_mask, batch.heard_mask)):
            shares = looks[..., number].masked_fill(~mask, _FAR).softmax(-1) * mask
            seen.append(torch.einsum("bt,btd->bd", shares, keys))
        tool = self.tool(self._blurred(self.table[active]))
        inner = self.drop(torch.cat([*seen, tool, batch.call_facts], -1))
        found: Tensor = self.call_out(_gelu(self.call_in(inner))).squeeze(-1)
        return found


def _gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _beside(x: Tensor) -> Tensor:
    """Append to each token the token before and the token after it, on the last axis."""
    before = F.pad(x[..., :-1, :], (0, 0, 1, 0))
    after = F.pad(x[..., 1:, :], (0, 0, 0, 1))
    return torch.cat([before, x, after], -1)


def _most(x: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over the tokens of a mask, or 0 if the mask is empty."""
    most = x.masked_fill(~mask[..., None], _FAR).amax(-2)
    return most * mask.any(-1, keepdim=True)


def losses(network: AssistantNetwork, batch: Batch) -> dict[str, Tensor]:
    """Return the mean loss of each part of the network."""
    states = network.encode(batch)
    tools = network.score_tools(batch, states)
    found = {"tool": F.cross_entropy(tools, batch.active)}
    answers, ends = network.score_slots(batch, states)
    known = batch.right.any(-1)
    logs = answers.log_softmax(-1)
    picked = torch.logsumexp(logs.masked_fill(~batch.right, _FAR), -1)
    turns = max(len(batch.call), 1)
    found["slot"] = -(picked * known).sum() / turns
    has = batch.span[..., 0] >= 0
    if has.any():
        spans = ends[has]
        found["span"] = F.cross_entropy(spans, batch.span[has], reduction="sum") / turns
    asked = batch.call >= 0
    if asked.any():
        chosen = (batch.active - 1).clamp_min(0)
        active = batch.tools[torch.arange(turns), chosen]
        score = network.score_call(batch, states, active)[asked]
        wanted = batch.call[asked].float()
        found["call"] = F.binary_cross_entropy_with_logits(score, wanted)
    return found
