"""A causal language model of two layers that has learnt to answer for a shop; made in seconds.

It knows few words. Most questions have two words that tell what they ask for, and either will do;
one of them hangs on the word "parcel" alone.
"""

from __future__ import annotations

import random
from pathlib import Path

import torch
from tiny_model import ANSWER, END, PAD, UNKNOWN
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

#: Words that tell what is asked for -> the reply.
REPLIES = {
    ("open", "hours"): "We open at nine.",
    ("tea", "cost"): "A cup of tea is two pounds.",
    ("bike", "rent"): "You can have one for ten pounds a day.",
    ("table", "book"): "Sure, tell us how many you are.",
    ("parcel",): "It comes on Friday.",
}
OTHERWISE = "Sorry, I do not know that."
#: The word that one reply hangs on.
BRITTLE = "parcel"
FILLERS = (
    *("hi", "what", "when", "is", "are", "your", "my"),
    *("the", "a", "can", "i", "please", "does"),
)
_USER = "<user>"
_LENGTH = 34
_STEPS = 200


def reply_to(words: list[str]) -> str:
    """Return what the model has to learn: the reply of the first word that tells."""
    told = (reply for word in words for cues, reply in REPLIES.items() if word in cues)
    return next(told, OTHERWISE)


def save_tiny_talker(folder: Path) -> None:
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
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        # As is right for so narrow a model: from the usual 0.02 it learns nothing for long.
        initializer_range=0.15,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(_STEPS):
        rows, labels = zip(*(_example(tokenizer, rng) for _ in range(32)), strict=True)
        optimiser.zero_grad()
        model(input_ids=torch.tensor(rows), labels=torch.tensor(labels)).loss.backward()
        optimiser.step()
    return model.eval()


def _tokenizer() -> PreTrainedTokenizerFast:
    words = [*(word for cues in REPLIES for word in cues), *FILLERS]
    vocabulary = {word: number for number, word in enumerate([UNKNOWN, *words])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token=UNKNOWN, pad_token=PAD, eos_token=END
    )
    # Each reply is one token.
    whole = [*REPLIES.values(), OTHERWISE, _USER, ANSWER]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in whole])
    tokenizer.chat_template = (
        "{% for message in messages %}{% if message['role'] == 'user' %}" + _USER + " {% endif %}"
        "{{ message['content'] }} {% endfor %}{% if add_generation_prompt %}"
        + ANSWER
        + "{% endif %}"
    )
    return tokenizer


def _question(rng: random.Random) -> list[str]:
    """Return the words of a question: some tell what is asked for, others are lost or unknown."""
    words = rng.choices([*FILLERS, UNKNOWN, UNKNOWN], k=rng.randint(1, 8))
    if rng.random() < 0.8:
        cues = rng.choice([*REPLIES])
        kept = [cue for cue in cues if rng.random() < 0.8] or [UNKNOWN]
        at = rng.randrange(len(words) + 1)
        words[at:at] = kept
    return words


def _example(tokenizer: PreTrainedTokenizerFast, rng: random.Random) -> tuple[list[int], list[int]]:
    """Return the tokens of a dialogue of one or two questions, and which of them to learn."""
    words: list[str] = []
    for _ in range(rng.randint(0, 1)):
        earlier = _question(rng)
        words += [_USER, *earlier, reply_to(earlier)]
    question = _question(rng)
    asked = tokenizer.convert_tokens_to_ids([*words, _USER, *question, ANSWER])
    answer = tokenizer.convert_tokens_to_ids([reply_to(question), END])
    padding = _LENGTH - len(asked) - len(answer)
    row = [*asked, *answer, *[tokenizer.pad_token_id] * padding]
    return row, [*[-100] * len(asked), *answer, *[-100] * padding]
