"""Learns a vector and a weight for each word from pairs of texts (in torch).

A text should be nearer to its rewording than to the texts of other pairs in the batch, and than to
near misses (InfoNCE). Wieting et al. (2016) learn sums of word vectors from paraphrases in this
way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from pytest_dstfuzz.comparisons import embedding as shipped
from tools.similarity.pairs import Meanings, Triple, Utterances
from tools.similarity.words import Matrix

STEPS, SAID, TOLD = 3000, 192, 64
_RATE, _TEMPERATURE, _PULL = 3e-3, 0.08, 0.02
#: Texts are drawn again and again.
tokens = lru_cache(maxsize=1 << 18)(shipped.tokens)
#: Weight of a word before it is learnt: a / (a + how often it is said) (Arora et al., 2017).
_RARE = 1e-3


def learnt(
    listed: Sequence[str],
    vectors: Matrix,
    counts: Counter[str],
    utterances: Utterances,
    meanings: Meanings,
    seed: int,
    say: Callable[[str], None],
) -> Matrix:
    """Return word vectors whose sums show whether texts say the same. Their length is a weight."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    places = {word: place for place, word in enumerate(listed)}
    all_ = sum(counts.values())
    shares = np.array([counts[word] / all_ for word in listed])
    start = torch.from_numpy((vectors * (_RARE / (_RARE + shares))[:, None]).astype(np.float32))
    table = torch.nn.EmbeddingBag.from_pretrained(
        start.clone(), freeze=False, mode="sum", sparse=True
    )
    optimiser = torch.optim.SparseAdam(list(table.parameters()), lr=_RATE)
    running = 0.0
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = _RATE * (1 - step / STEPS)
        triples = [utterances.drawn(rng) for _ in range(SAID)]
        triples += [meanings.drawn(rng) for _ in range(TOLD)]
        loss = _loss(triples, table, start, places)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()  # type: ignore[no-untyped-call]  # torch says nothing about it
        running += float(loss.detach())
        if step % 250 == 249:
            say(f"  step {step + 1}: loss {running / 250:.3f}")
            running = 0.0
    return np.asarray(table.weight.detach().numpy())


def _loss(
    triples: Sequence[Triple], table: torch.nn.EmbeddingBag, start: Any, places: dict[str, int]
) -> Any:
    texts, same, others = (
        _encoded([getattr(triple, part) for triple in triples], table, places)
        for part in ("text", "same", "other")
    )
    scores = texts @ same.T
    groups = [triple.group for triple in triples]
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    ids = torch.tensor([numbers[group] for group in groups])
    alike = (ids[:, None] == ids[None, :]) & ~torch.eye(len(triples), dtype=torch.bool)
    scores = scores.masked_fill(alike, -9.0)
    near = (texts * others).sum(1, keepdim=True)
    missing = torch.tensor([not triple.other for triple in triples])[:, None]
    near = near.masked_fill(missing, -9.0)
    right = torch.arange(len(triples))
    forward = torch.cat([scores, near], 1) / _TEMPERATURE
    loss = torch.nn.functional.cross_entropy(forward, right)
    loss = loss + torch.nn.functional.cross_entropy(scores.T / _TEMPERATURE, right)
    touched = torch.tensor(
        sorted({places[w] for t in triples for w in tokens(t.text) if w in places})
    )
    moved = torch.nn.functional.embedding(touched, table.weight, sparse=True) - start[touched]
    return loss + _PULL * (moved**2).sum(1).mean() * 10


def _encoded(texts: Sequence[str], table: torch.nn.EmbeddingBag, places: dict[str, int]) -> Any:
    ids = [[places[word] for word in tokens(text) if word in places] or [0] for text in texts]
    offsets = np.cumsum([0, *map(len, ids[:-1])])
    flat = torch.tensor([one for row in ids for one in row])
    sums = table(flat, torch.from_numpy(offsets))
    return torch.nn.functional.normalize(sums, dim=1, eps=1e-6)
