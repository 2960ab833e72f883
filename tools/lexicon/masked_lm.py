"""A small masked language model, trained on user utterances. Only its proposals ship.

The model has two BERT layers over a vocabulary of words. It learns from some 600,000 words of
requests, in the tokenisation of TRADE's layout. Later it proposes words that fit between two
others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_dstfuzz.errors import MissingExtraError

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(5)
MAX_WORDS = 46
MIN_COUNT = 3
EPOCHS = 8
BATCH = 64
LEARNING_RATE = 1e-3
SEED = 1
#: Share of the words to predict, as in BERT; 80 % of them are masked and 10 % replaced.
PREDICTED, MASKED, REPLACED = 0.15, 0.8, 0.9


@dataclass(frozen=True, slots=True)
class MaskedModel:
    """A trained model and its words. ``words[i]`` has the number ``i``."""

    network: Any
    words: tuple[str, ...]
    numbers: dict[str, int]

    def probabilities(self, places: Sequence[tuple[Sequence[str], int]]) -> Any:
        """Return, for each place, the distribution over the words to insert there.

        Args:
            places: utterance and the index of the word before which to insert.
        """
        import torch  # noqa: PLC0415 - an extra, imported where used

        rows = [
            [CLS, *self._encode(words[:at]), MASK, *self._encode(words[at:]), SEP]
            for words, at in places
        ]
        inputs, attention = _pad(rows)
        with torch.inference_mode():
            hidden = self.network.bert(inputs, attention_mask=attention).last_hidden_state
            scores = self.network.cls(hidden[inputs == MASK])
        return scores.softmax(-1).numpy()

    def _encode(self, words: Sequence[str]) -> list[int]:
        return [self.numbers.get(word, UNK) for word in words]


def train_masked_model(
    utterances: Sequence[Sequence[str]], say: Callable[[str], None], epochs: int = EPOCHS
) -> MaskedModel:
    """Train the model on one thread from a fixed seed."""
    try:
        import torch  # noqa: PLC0415 - extras, imported where used
        from transformers import BertConfig, BertForMaskedLM  # noqa: PLC0415
    except ImportError as error:
        name = error.name or "transformers"
        raise MissingExtraError("compiling insertions", "models", name) from error
    torch.set_num_threads(1)  # several threads add floats in an order that varies
    counts = Counter(word for words in utterances for word in words)
    frequent = sorted(word for word, count in counts.items() if count >= MIN_COUNT)
    vocabulary = (*SPECIAL, *frequent)
    numbers = {word: number for number, word in enumerate(vocabulary)}
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=MAX_WORDS + 3,
        pad_token_id=PAD,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network: Any = BertForMaskedLM(config)
        rows = [
            [CLS, *(numbers.get(word, UNK) for word in words[:MAX_WORDS]), SEP]
            for words in utterances
            if words
        ]
        _fit(network, rows, epochs, say)
    network.eval()
    return MaskedModel(network, vocabulary, numbers)


def _fit(network: Any, rows: Sequence[list[int]], epochs: int, say: Callable[[str], None]) -> None:
    import torch  # noqa: PLC0415 - an extra, imported where used

    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE)
    steps = epochs * -(-len(rows) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps)
    network.train()
    for epoch in range(1, epochs + 1):
        total = count = 0.0
        for batch in _batches(rows):
            inputs, attention = _pad(batch)
            inputs, places, targets = _hide_words(inputs, network.config.vocab_size)
            hidden = network.bert(inputs, attention_mask=attention).last_hidden_state
            loss: Any = torch.nn.functional.cross_entropy(network.cls(hidden[places]), targets)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total, count = total + float(loss.detach()), count + 1
        say(f"  epoch {epoch} of {epochs}: loss {total / count:.3f}")


def _batches(rows: Sequence[list[int]]) -> Iterator[list[list[int]]]:
    """Yield batches of similar length in a shuffled order."""
    import torch  # noqa: PLC0415 - an extra, imported where used

    shuffled = torch.randperm(len(rows)).tolist()
    order = sorted(shuffled, key=lambda index: len(rows[index]))
    starts = range(0, len(order), BATCH)
    for chosen in torch.randperm(len(starts)).tolist():
        yield [rows[index] for index in order[starts[chosen] : starts[chosen] + BATCH]]


def _pad(rows: Iterable[list[int]]) -> tuple[Any, Any]:
    import torch  # noqa: PLC0415 - an extra, imported where used

    tensors = [torch.tensor(row) for row in rows]
    inputs = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD)
    return inputs, (inputs != PAD).long()


def _hide_words(inputs: Any, size: int) -> tuple[Any, Any, Any]:
    """Return the inputs with words hidden, the hidden places, and the words there."""
    import torch  # noqa: PLC0415 - an extra, imported where used

    places = (torch.rand(inputs.shape) < PREDICTED) & (inputs >= len(SPECIAL))
    # At least one word of every batch, or the loss is not a number.
    places[0, 1] = True
    draw = torch.rand(inputs.shape)
    other = torch.randint(len(SPECIAL), size, inputs.shape)
    hidden = inputs.masked_fill(places & (draw < MASKED), MASK)
    replaced = places & (draw >= MASKED) & (draw < REPLACED)
    return torch.where(replaced, other, hidden), places, inputs[places]
