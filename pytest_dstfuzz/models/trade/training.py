"""Trains TRADE: encodes turns, computes the loss, and measures epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pytest_dstfuzz.campaign.engine import digest_of_dialogues
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState, Context, Dialogue
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.models.neural import TensorBatch, by_length, move, pad
from pytest_dstfuzz.models.run_settings import TrainingRun
from pytest_dstfuzz.models.runs import Progress, ResumableTrainer, begin, locks_output
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.models.trade.checkpoint import TradeReading, build_network, save_model
from pytest_dstfuzz.models.trade.files import TradeEpoch, TradeRunSettings, TradeTrainingConfig
from pytest_dstfuzz.models.trade.network import (
    GATE_DONTCARE,
    GATE_NONE,
    GATE_POINTER,
    DecodedValues,
    EncodedHistories,
    FirstStep,
    TradeNetwork,
    decode,
)
from pytest_dstfuzz.models.trade.vocabulary import (
    END,
    PAD,
    UNKNOWN,
    Vocabulary,
    training_vocabulary,
)
from pytest_dstfuzz.seeding import derive


@dataclass(frozen=True)
class LabelledTurn:
    """One labelled turn as indices of words."""

    words: np.ndarray  #: Vocabulary indices of the history, ``[T]`` int32.
    copies: np.ndarray  #: Copy indices of the history, ``[T]`` int32.
    gates: np.ndarray  #: Class of each slot, ``[S]`` int64.
    #: For each pointer slot: its index, the copy indices of the value's words (ending in ``END``),
    #: and their vocabulary indices.
    targets: tuple[tuple[int, list[int], list[int]], ...]


def encode_turn(
    context: Context, state: BeliefState, vocabulary: Vocabulary, limit: int
) -> LabelledTurn:
    """Encode a context and the state after it, with the last ``limit`` words of the history."""
    words = vocabulary.history(context, limit)
    copies, local = vocabulary.copy_numbers(words)
    gates = np.full(len(vocabulary.slots), GATE_NONE, dtype=np.int64)
    targets = []
    for number, slot in enumerate(vocabulary.slots):
        value = state.get(slot)
        if value == DONTCARE:
            gates[number] = GATE_DONTCARE
        elif value is not None:
            gates[number] = GATE_POINTER
            value_words = vocabulary.split(tokenise(value))
            target = [_target(word, vocabulary, local) for word in value_words]
            targets.append((number, [*target, END], vocabulary.encode(value_words)))
    return LabelledTurn(
        np.array(vocabulary.encode(words), dtype=np.int32),
        np.array(copies, dtype=np.int32),
        gates,
        tuple(targets),
    )


def make_row(dialogue: Dialogue, index: int, vocabulary: Vocabulary, limit: int) -> LabelledTurn:
    """Encode turn ``index`` of a dialogue, with the last ``limit`` words of its history."""
    state = dialogue.turns[index].state or BeliefState()
    return encode_turn(dialogue.context(index), state, vocabulary, limit)


def _target(word: str, vocabulary: Vocabulary, local: Sequence[str]) -> int:
    """Return the copy index of a word, or -1 if the word cannot be generated or copied."""
    number = vocabulary.numbers.get(word, vocabulary.outputs)
    if number < vocabulary.outputs:
        return number
    return vocabulary.outputs + local.index(word) if word in local else -1


@dataclass(frozen=True)
class TurnBatch(TensorBatch):
    """Several turns as tensors, padded to the same length.

    ``words [B, T]``, ``copies [B, T]`` (-2 at padding, which no target equals), ``lengths [B]``,
    ``gates [B, S]``. Pairs are those of a row and a slot whose value is generated. ``pairs [N, 2]``
    has row and slot, and ``inputs [N, L]`` the words that the decoder reads after its first step.
    ``tokens [M, 4]`` has pair, step, row, and index among the tokens of the row. ``targets [M]``.
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
    """Combine rows into a batch."""
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
    """Group row indices into batches of similar length, with ``size`` rows each.

    With an ``rng``, rows of similar length are shuffled, and so are the batches. Otherwise both are
    sorted.
    """
    order = by_length(lengths, rng)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    if rng is not None:
        rng.shuffle(batches)
    return batches


#: Avoids log(0) for words that can be neither generated nor copied.
_TINY = 1e-9


def batch_loss(network: TradeNetwork, batch: TurnBatch, words: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gate loss and the value loss of a batch.

    Both are summed over slots and words, and averaged over turns. The sum of both is the mean
    ``-log p(state)`` of a turn. ``words [B, T]`` are the words of the history, in which some may be
    masked.
    """
    encoded = network.encode(words, batch.lengths)
    inputs = network.slot_inputs()
    first = network.first_step(encoded, inputs)
    rows = batch.words.shape[0]
    gate = functional.cross_entropy(
        first.gate.reshape(-1, 3), batch.gates.reshape(-1), reduction="sum"
    )
    if not len(batch.pairs):
        return gate / rows, gate.new_zeros(())
    log_p = target_log_probability(network, batch, encoded, first, inputs)
    return gate / rows, -log_p.sum() / rows


def target_log_probability(
    network: TradeNetwork,
    batch: TurnBatch,
    encoded: EncodedHistories,
    first: FirstStep,
    inputs: Tensor,
) -> Tensor:
    """Return ``log p`` of every target word, ``[M]``, when words are generated or copied."""
    pair, step, row, place = batch.tokens.unbind(1)
    hidden, embedded = _teacher_forced(network, batch, first, inputs)
    hidden, embedded = hidden[pair, step], embedded[pair, step]
    # All words of one turn attend to its history in one product: [B, R, T].
    places = (len(encoded.final), int(place.max()) + 1)
    queries = hidden.new_zeros(*places, hidden.shape[-1]).index_put((row, place), hidden)
    attention, context = network.attend(queries, encoded.outputs, encoded.padding)
    wanted = torch.full(places, -1, device=hidden.device).index_put((row, place), batch.targets)
    match = batch.copies[:, None] == wanted[..., None]
    copied = (attention * match).sum(-1)[row, place]
    share = network.generate_share(hidden, context[row, place], embedded)
    logits = network.logits(hidden)
    target = batch.targets
    inside = (target >= 0) & (target < logits.shape[1])
    score = logits.gather(1, target.clamp(0, logits.shape[1] - 1)[:, None])[:, 0]
    generated = torch.exp(score - torch.logsumexp(logits, -1)) * inside
    return torch.log(share * generated + (1 - share) * copied + _TINY)


def _teacher_forced(
    network: TradeNetwork, batch: TurnBatch, first: FirstStep, inputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Run the decoder on the right words. Return its states and inputs for all pairs."""
    row, slot = batch.pairs.unbind(1)
    states = [first.hidden[row, slot]]
    embedded = network.embed(batch.inputs)
    # Sort by length, longest first, so that a step covers only the pairs with words left.
    count = (batch.inputs != 0).sum(1)
    order = torch.argsort(count, descending=True, stable=True)
    state = states[0][order]
    alive = [int((count > step).sum()) for step in range(batch.inputs.shape[1])]
    sorted_embedded = embedded[order]
    steps = []
    for step, number in enumerate(alive):
        state = network.next_hidden(state[:number], sorted_embedded[:number, step])
        steps.append(functional.pad(state, (0, 0, 0, len(order) - number)))
    back = torch.argsort(order)
    later = torch.stack(steps, 1)[back] if steps else states[0][:, None, :][:, :0]
    all_states = torch.cat([states[0][:, None], later], 1)
    return all_states, torch.cat([inputs[slot][:, None], embedded], 1)


def row_accuracy(
    network: TradeNetwork, rows: Sequence[LabelledTurn], batch_size: int, device: str
) -> tuple[float, float]:
    """Return the joint goal accuracy and the slot accuracy on ``rows``, both in [0, 1]."""
    joint = slots = 0
    with torch.inference_mode():
        for chosen in bucket([len(row.words) for row in rows], batch_size, None):
            part = [rows[number] for number in chosen]
            batch = collate(part).to(device)
            decoded = decode(network, batch.words, batch.copies, batch.lengths)
            for wrong in _wrong_slots(decoded, part):
                joint += not wrong
                slots += len(part[0].gates) - wrong
    return joint / len(rows), slots / (len(rows) * len(rows[0].gates))


def _wrong_slots(decoded: DecodedValues, rows: Sequence[LabelledTurn]) -> list[int]:
    """Return the number of wrong slots for each row."""
    gates = decoded.gates.cpu().numpy()
    values: dict[tuple[int, int], list[int]] = {}
    for (row, slot), words in zip(decoded.pairs.tolist(), decoded.words.tolist(), strict=True):
        values[row, slot] = words[: words.index(END) + 1] if END in words else words
    wrong = []
    for number, row in enumerate(rows):
        count = int((gates[number] != row.gates).sum())
        for slot, target, _ in row.targets:
            found = values.get((number, slot))
            count += found is not None and found != target
        wrong.append(count)
    return wrong


#: Batch size for measuring accuracy, in turns.
_MEASURE_BATCH = 64


def word_vectors(
    dialogues: Sequence[Dialogue], vocabulary: Vocabulary, size: int, seed: int
) -> np.ndarray:
    """Return skip-gram vectors ``[words, size]`` with a standard deviation of 0.1.

    Words that are not in the utterances get random vectors with this deviation. The training uses
    one thread, so equal seeds give equal vectors.
    """
    with needs_extra("training word vectors", "lexicon", "gensim"):
        from gensim.models import Word2Vec  # noqa: PLC0415 - optional
    turns = (turn for dialogue in dialogues for turn in dialogue.turns)
    model = Word2Vec(
        # One sentence per exchange, so that contexts include both speakers.
        [vocabulary.split((*tokenise(turn.system), *tokenise(turn.user))) for turn in turns],
        vector_size=size,
        window=5,
        min_count=1,
        sg=1,
        negative=8,
        sample=1e-3,
        epochs=15,
        workers=1,
        seed=derive(seed, "word2vec") % 2**31,
    )
    rng = np.random.Generator(np.random.PCG64(derive(seed, "missing vectors")))
    result = rng.normal(0, 1, (len(vocabulary.words), size)).astype(np.float32)
    known = [number for number, word in enumerate(vocabulary.words) if word in model.wv]
    found = np.stack([model.wv[vocabulary.words[number]] for number in known])
    result[known] = (found - found.mean(0)) / found.std()
    return result * np.float32(0.1)


def mask_words(words: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Return ``words`` with a share of ``rate`` replaced by the unknown word. Padding stays."""
    hidden = torch.rand(words.shape, generator=generator, device=words.device) < rate
    return words.masked_fill(hidden & (words != PAD), UNKNOWN)


class TradeTrainer(ResumableTrainer[TradeEpoch, LabelledTurn]):
    """A training run of TRADE, from the present weights of the network."""

    FIGURES: type[TradeEpoch] = TradeEpoch
    LOSSES: ClassVar[tuple[str, ...]] = ("gate_loss", "value_loss")
    UNIT = "turns"

    def __init__(
        self,
        config: TradeRunSettings,
        network: TradeNetwork,
        vocabulary: Vocabulary,
        rows: Sequence[LabelledTurn],
        heldout: Sequence[LabelledTurn],
        reading: TradeReading,
        content: str = "",
    ) -> None:
        self.config, self.vocabulary, self.rows = config, vocabulary, rows
        #: The digest of the training data. The vocabulary leaves out labels and the order.
        self._content = content
        self.reading, self._heldout = reading, heldout
        self.network = move(network, config.device, "TRADE")
        self.network.fast = config.bfloat16
        weights = self.network.parameters()
        optimiser = torch.optim.Adam(weights, lr=config.learning_rate, fused=True)
        super().__init__(config, self.network, optimiser)

    def groups(self, rng: np.random.Generator) -> list[list[LabelledTurn]]:
        """Return batches of turns of similar length."""
        lengths = [len(row.words) for row in self.rows]
        batches = bucket(lengths, self.config.batch_size, rng)
        return [[self.rows[place] for place in chosen] for chosen in batches]

    @contextmanager
    def noise(self, seed: int) -> Iterator[None]:
        """Draw dropout and masked words from the network's own generator."""
        self.network.generator = torch.Generator(self.config.device).manual_seed(seed)
        yield

    def losses(self, group: Sequence[LabelledTurn]) -> tuple[Tensor, list[Tensor | float]]:
        """Return the mean loss per turn, and its gate and value parts."""
        batch = collate(group).to(self.config.device)
        words = mask_words(batch.words, self.config.word_mask, self.network.generator)
        gate, value = batch_loss(self.network, batch, words)
        return gate + value, [gate.detach(), 1, value.detach(), 1]

    def measure(self) -> dict[str, float]:
        """Return joint goal accuracy and slot accuracy on the validation split."""
        joint, slot = self.accuracy_on(self._heldout)
        return {"joint_goal_accuracy": joint, "slot_accuracy": slot}

    def accuracy_on(self, rows: Sequence[LabelledTurn]) -> tuple[float, float]:
        """Return the joint goal accuracy and the slot accuracy of the present weights."""
        return row_accuracy(self.network, rows, _MEASURE_BATCH, self.config.device)

    def save_model(self, about: Mapping[str, Any]) -> None:
        """Write the network and its description."""
        weights, shape = self.network.state_dict(), self.network.shape
        save_model(self.config.output, weights, shape, self.vocabulary, self.reading, about)

    def impatient(self) -> bool:
        """Return whether the last ``patience`` epochs did not improve the accuracy."""
        return self.history[-1].epoch - self.best().epoch >= self.config.patience

    def identity(self) -> dict[str, Any]:
        """Return the settings that must stay the same when a run is resumed."""
        return {
            **self.config.fixed(),
            "number of training turns": len(self.rows),
            "vocabulary": self.vocabulary.fingerprint(),
            "texts and labels": self._content,
        }


@locks_output
def train_trade(config: TradeTrainingConfig, progress: Progress) -> TrainingRun:
    """Build the vocabulary and the word vectors of TRADE, then train its network."""
    train, valid = begin(config)
    vocabulary = training_vocabulary(train.dialogues, config.subwords)
    rows = make_rows(train.dialogues, vocabulary, config.history_limit)
    heldout = make_rows(valid.dialogues, vocabulary, config.history_limit)
    progress(
        f"{len(rows)} training turns, {len(heldout)} validation turns, "
        f"{len(vocabulary.words)} {'pieces of words' if vocabulary.merges else 'words'}, "
        f"{vocabulary.outputs} of them in values"
    )
    reading = TradeReading(config.history_limit, train.normalisation)
    generator = torch.Generator().manual_seed(derive(config.seed, "weights") % 2**63)
    network = build_network(vocabulary, config.embedding, config.hidden, config.dropout, generator)
    content = digest_of_dialogues(train)
    trainer = TradeTrainer(config, network, vocabulary, rows, heldout, reading, content)
    if config.pretrained_vectors and not config.resume:
        progress("training word vectors")
        vectors = word_vectors(train.dialogues, vocabulary, config.embedding, config.seed)
        with torch.no_grad():
            trainer.network.embedding.copy_(torch.from_numpy(vectors))
        trainer.average.restart(trainer.parameters)
    return trainer.run(progress)
