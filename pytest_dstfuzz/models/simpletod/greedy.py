"""Greedy generation with any causal language model, by transformers itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    GPT2LMHeadModel,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
)


@dataclass(frozen=True, slots=True)
class Generation:
    """What a model went on with."""

    tokens: tuple[int, ...]  #: Up to and without the closing one.
    #: Gini impurity of the distribution of each token, the closing one included.
    impurities: tuple[float, ...]
    ended: bool  #: Whether the closing token came.


class _Impurities(LogitsProcessor):
    """Notes the Gini impurity of each distribution that a token is taken from."""

    def __init__(self) -> None:
        self.steps: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # noqa: ARG002 - their call
        """Note the impurity of ``scores [B, V]``, and leave them as they are."""
        self.steps.append(1.0 - scores.float().softmax(-1).square().sum(-1))
        return scores


class GreedyDecoder:
    """Continues texts by ``longest`` tokens at most, up to the token ``end``."""

    def __init__(self, model: PreTrainedModel, *, end: int, longest: int, batch_size: int) -> None:
        self._model = model
        # What a checkpoint wants beside it, such as a penalty for repetitions, is not greedy.
        model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # no types
        self._end = end
        self._batch_size = batch_size
        self._greedy = GenerationConfig(  # type: ignore[no-untyped-call]  # theirs has no types
            max_new_tokens=longest,
            do_sample=False,
            num_beams=1,
            eos_token_id=end,
            pad_token_id=end,
            # A cache that grows is copied for each token; not every model can do without.
            cache_implementation="static" if isinstance(model, GPT2LMHeadModel) else None,
            disable_compile=True,
        )

    def generate(self, prompts: Sequence[list[int]]) -> list[Generation]:
        """Continue each prompt, the likeliest token each time."""
        # Batches of similar length need little padding.
        ordered = sorted(range(len(prompts)), key=lambda place: (len(prompts[place]), place))
        found: dict[int, Generation] = {}
        for start in range(0, len(ordered), self._batch_size):
            places = ordered[start : start + self._batch_size]
            found.update(zip(places, self._generate([prompts[at] for at in places]), strict=True))
        return [found[place] for place in range(len(prompts))]

    def _generate(self, prompts: list[list[int]]) -> list[Generation]:
        width = max(map(len, prompts))
        # On the left, so that what is generated stands in the same columns.
        tokens = [[self._end] * (width - len(prompt)) + prompt for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        impurities = _Impurities()
        device = self._model.device
        with torch.inference_mode():
            # Transformers mixes this method in, without types.
            generate: Any = self._model.generate
            written = generate(
                torch.tensor(tokens, device=device),
                attention_mask=torch.tensor(mask, device=device),
                generation_config=self._greedy,
                logits_processor=LogitsProcessorList([impurities]),
            )
        noted = torch.stack(impurities.steps, 1).tolist()
        rows = written[:, width:].tolist()
        return [generation_of(*both, self._end) for both in zip(rows, noted, strict=True)]


def generation_of(tokens: Sequence[int], impurities: Sequence[float], end: int) -> Generation:
    """Return what was written, as far as its closing token ``end``."""
    ended = end in tokens
    size = list(tokens).index(end) if ended else len(tokens)
    return Generation(tuple(tokens[:size]), tuple(impurities[: size + ended]), ended)
