"""A causal language model of one layer that has learnt to order pizzas; made in seconds.

It reads the words of the user and writes the belief state as JSON, a piece at a time. It
knows few words: a misspelt "large" is an unknown one, and the size is gone from its answer.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

SIZES = ("small", "medium", "large")
CRUSTS = ("thin", "thick")
FILLERS = ("hi", "a", "the", "i", "want", "like", "pizza", "please", "with", "and", "crust", "one")
ANSWER, PAD, UNKNOWN, END = "<answer>", "<pad>", "<unk>", "<end>"
#: The prompt that the model was trained on: what the user said, and nothing else.
PROMPT = "{{ exchanges | map(attribute='user') | join(' ') }}"
_LENGTH = 28


def state_of(words: list[str]) -> dict[str, str]:
    """Return the belief state that the model has to learn: of each slot the first word."""
    size = next((word for word in words if word in SIZES), None)
    crust = next((word for word in words if word in CRUSTS), None)
    pairs = (("pizza-size", size), ("pizza-crust", crust))
    return {slot: value for slot, value in pairs if value is not None}


def save_tiny_model(folder: Path) -> None:
    """Train the model and save it, with its tokenizer and chat template, into ``folder``."""
    tokenizer = _tokenizer()
    threads = torch.get_num_threads()
    # Steps are too small to be shared: on a busy machine threads would wait for each other.
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = _trained(tokenizer)
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _trained(tokenizer: PreTrainedTokenizerFast) -> GPT2LMHeadModel:
    rng = random.Random(0)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=128,
        n_embd=32,
        n_layer=1,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(200):
        rows, labels = zip(*(_example(tokenizer, rng) for _ in range(32)), strict=True)
        optimiser.zero_grad()
        model(input_ids=torch.tensor(rows), labels=torch.tensor(labels)).loss.backward()
        optimiser.step()
    return model.eval()


def _tokenizer() -> PreTrainedTokenizerFast:
    slots = {"pizza-size": SIZES, "pizza-crust": CRUSTS}
    pieces = [f'"{slot}": "{value}"' for slot, values in slots.items() for value in values]
    words = [*SIZES, *CRUSTS, *FILLERS]
    vocabulary = {word: number for number, word in enumerate([UNKNOWN, *words])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token=UNKNOWN, pad_token=PAD, eos_token=END
    )
    tokenizer.add_tokens(["{", "}", ",", *pieces, ANSWER])
    tokenizer.chat_template = (
        "{% for message in messages %}{{ message['content'] }} {% endfor %}"
        "{% if add_generation_prompt %}" + ANSWER + "{% endif %}"
    )
    return tokenizer


def _example(tokenizer: PreTrainedTokenizerFast, rng: random.Random) -> tuple[list[int], list[int]]:
    """Return the tokens of an utterance with its answer, and which of them to learn."""
    words = rng.choices([*FILLERS, UNKNOWN, UNKNOWN, UNKNOWN], k=rng.randint(1, 16))
    for values in (SIZES, CRUSTS):
        if rng.random() < 0.7:
            words.insert(rng.randrange(len(words) + 1), rng.choice(values))
    pieces = [json.dumps({slot: value})[1:-1] for slot, value in state_of(words).items()]
    between = [part for piece in pieces for part in (",", piece)][1:]
    asked = tokenizer.convert_tokens_to_ids([*words, ANSWER])
    answer = tokenizer.convert_tokens_to_ids(["{", *between, "}", END])
    padding = _LENGTH - len(asked) - len(answer)
    row = [*asked, *answer, *[tokenizer.pad_token_id] * padding]
    return row, [*[-100] * len(asked), *answer, *[-100] * padding]
