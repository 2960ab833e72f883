"""Trains SimpleTOD: makes sequences, replaces values in them, and measures epochs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from pytest_dstfuzz.campaign.engine import digest_of_dialogues
from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState, Dialogue, DialogueSet
from pytest_dstfuzz.models.neural import TensorBatch, by_length, move, pad
from pytest_dstfuzz.models.run_settings import TrainingRun
from pytest_dstfuzz.models.runs import Progress, ResumableTrainer, begin, locks_output
from pytest_dstfuzz.models.simpletod.config import SimpleTodEpoch, SimpleTodTrainingConfig
from pytest_dstfuzz.models.simpletod.model import (
    SimpleTodReading,
    new_model,
    positions_of,
    save,
    seed_torch,
)
from pytest_dstfuzz.models.simpletod.texts import (
    MARKS,
    OPENING,
    SYSTEM,
    TURNOVER,
    USER,
    belief_words,
    utterance_words,
    value_words,
)
from pytest_dstfuzz.models.tokenise import usual_spellings
from pytest_dstfuzz.seeding import derive

Words = tuple[str, ...]
#: Values that are rarely said literally.
_UNSAID = frozenset({DONTCARE, "yes", "no"})


@dataclass(frozen=True, slots=True)
class DialogueWords:
    """The words of a labelled dialogue. A turn is (system, user, slot -> words of its value)."""

    turns: tuple[tuple[Words, Words, Mapping[str, Words]], ...]


def split_dialogue(dialogue: Dialogue) -> DialogueWords:
    """Return the words of a labelled dialogue."""
    return DialogueWords(
        tuple(
            (
                utterance_words(turn.system, common=True),
                utterance_words(turn.user, common=True),
                {slot: value_words(value) for slot, value in (turn.state or {}).items()},
            )
            for turn in dialogue.turns
        )
    )


class SlotValueAugmenter:
    """Replaces values in a dialogue by other values of their slots in the training data.

    A model that sees only a few names memorises them. If names vary, it has to read them. A value
    is replaced everywhere in a dialogue: in the utterances and in the states of all its slots.
    These slots must have the same name (``hotel-area``, ``restaurant-area``), and no word of the
    value may occur in another value. The new value comes from the first of the slots. A ``share``
    of the dialogues is changed.
    """

    def __init__(self, dialogues: Sequence[DialogueWords], share: float) -> None:
        found: defaultdict[str, set[Words]] = defaultdict(set)
        for dialogue in dialogues:
            for _, _, state in dialogue.turns:
                for slot, value in state.items():
                    found[slot].add(value)
        self._values = {slot: sorted(values) for slot, values in sorted(found.items())}
        self._share = share

    def __call__(self, dialogue: DialogueWords, rng: np.random.Generator) -> DialogueWords:
        """Return the dialogue. A ``share`` of the dialogues gets other values."""
        if rng.random() >= self._share:
            return dialogue
        swaps = {
            value: self._values[slot][rng.integers(len(self._values[slot]))]
            for value, slot in _exchangeable(dialogue).items()
            if rng.random() < 0.5
        }
        if not swaps:
            return dialogue
        return DialogueWords(
            tuple(
                (
                    _replaced(system, swaps),
                    _replaced(user, swaps),
                    {slot: swaps.get(value, value) for slot, value in state.items()},
                )
                for system, user, state in dialogue.turns
            )
        )


def _exchangeable(dialogue: DialogueWords) -> dict[Words, str]:
    """Return the replaceable values of a dialogue, each with its first slot."""
    slots: dict[Words, set[str]] = {}
    for _, _, state in dialogue.turns:
        for slot, value in state.items():
            slots.setdefault(value, set()).add(slot)
    said = [words for system, user, _ in dialogue.turns for words in (system, user)]
    return {
        value: min(of)
        for value, of in slots.items()
        if len({slot.partition("-")[2] for slot in of}) == 1
        and " ".join(value) not in _UNSAID
        and not any(set(value) & set(other) for other in slots if other != value)
        and any(value == part for words in said for part in _parts(words, len(value)))
    }


def _parts(words: Words, size: int) -> Iterator[Words]:
    return (words[place : place + size] for place in range(len(words) - size + 1))


def _replaced(words: Words, swaps: Mapping[Words, Words]) -> Words:
    """Return ``words`` with every key of ``swaps`` replaced by its value. Keys do not overlap."""
    firsts = {value[0]: value for value in swaps if value}
    result: list[str] = []
    place = 0
    while place < len(words):
        value = firsts.get(words[place])
        if value and words[place : place + len(value)] == value:
            result += swaps[value]
            place += len(value)
        else:
            result.append(words[place])
            place += 1
    return tuple(result)


#: Target without a loss.
IGNORED = -100


@dataclass(frozen=True)
class TreeSequence:
    """The tokens of one dialogue, and the beliefs that branch off it. Arrays are ``[T]``, int64."""

    tokens: np.ndarray  #: The context, then the belief of each turn.
    positions: np.ndarray  #: Positions in a text with only this turn.
    branches: np.ndarray  #: 0 in the context, 1 + index of the turn in a belief.
    reach: np.ndarray  #: Number of visible context tokens.
    targets: np.ndarray  #: The next token, or `IGNORED`.


class Encoder:
    """Encodes dialogues as tokens. Turns with more than ``positions`` tokens are left out."""

    def __init__(self, tokeniser: PreTrainedTokenizerBase, positions: int) -> None:
        self._tokeniser = tokeniser
        self._positions = positions
        self._known: dict[str, list[int]] = {}

    def encode(self, dialogue: DialogueWords) -> TreeSequence:
        """Return the sequence of a labelled dialogue."""
        context = self._tokens(OPENING)
        beliefs: list[tuple[int, list[int]]] = []
        for system, user, state in dialogue.turns:
            if system:
                context += self._tokens((SYSTEM, *system))
            context += self._tokens((USER, *user))
            texts = {slot: " ".join(words) for slot, words in state.items()}
            belief = self._tokens((*TURNOVER, *belief_words(texts)))
            if len(context) + len(belief) <= self._positions:
                beliefs.append((len(context), belief))
        return _sequence(context[: self._positions], beliefs, len(TURNOVER))

    def _tokens(self, words: Sequence[str]) -> list[int]:
        """Encode words one by one. This is faster than whole texts, with the same result."""
        result: list[int] = []
        for word in words:
            known = self._known.get(word)
            if known is None:
                known = self._tokeniser.encode(f" {word}", add_special_tokens=False)
                self._known[word] = known
            result += known
        return result


def _sequence(
    context: list[int], beliefs: Sequence[tuple[int, list[int]]], given: int
) -> TreeSequence:
    """Lay out a context and the beliefs that branch off it.

    Its first ``given`` tokens have no loss.
    """
    size = len(context)
    tokens, targets = list(context), [*context[1:], IGNORED]
    positions, reach = list(range(size)), list(range(1, size + 1))
    branches = [0] * size
    for number, (start, belief) in enumerate(beliefs, start=1):
        tokens += belief
        # Tokens before the first slot are given, not predicted.
        targets += [IGNORED] * (given - 1) + belief[given:] + [IGNORED]
        positions += range(start, start + len(belief))
        reach += [start] * len(belief)
        branches += [number] * len(belief)
    return TreeSequence(*(np.array(row) for row in (tokens, positions, branches, reach, targets)))


@dataclass(frozen=True)
class SequenceBatch(TensorBatch):
    """Several sequences as tensors, padded on the right.

    ``tokens``, ``positions``, ``targets`` and ``branches`` are ``[B, T]``. ``mask`` is
    ``[B, 1, T, T]``, true if the token of the row sees the token of the column.
    """

    tokens: Tensor
    positions: Tensor
    targets: Tensor
    branches: Tensor
    mask: Tensor


def collate(sequences: Sequence[TreeSequence]) -> SequenceBatch:
    """Combine sequences into a batch."""

    def padded(name: str, fill: int) -> Tensor:
        return torch.from_numpy(pad([getattr(item, name) for item in sequences], fill))

    branches, reach = padded("branches", -1), padded("reach", 1)
    places = torch.arange(branches.shape[1])
    earlier = places[None, :, None] >= places[None, None, :]
    in_context = (branches == 0)[:, None, :] & (places[None, None, :] < reach[:, :, None])
    in_belief = (branches[:, :, None] == branches[:, None, :]) & earlier
    return SequenceBatch(
        tokens=padded("tokens", 0),
        positions=padded("positions", 0),
        targets=padded("targets", IGNORED),
        branches=branches,
        mask=(in_context | (in_belief & (branches != 0)[:, None, :]))[:, None],
    )


def batches(
    sequences: Sequence[TreeSequence], tokens: int, rng: np.random.Generator | None
) -> list[list[int]]:
    """Group sequences of similar length, with at most ``tokens`` per batch including padding.

    A longer sequence is a separate batch. With an ``rng``, sequences of similar length are
    shuffled, and so are the batches. Otherwise both are sorted.
    """
    lengths = [len(sequence.tokens) for sequence in sequences]
    result: list[list[int]] = [[]]
    longest = 0
    for number in by_length(lengths, rng).tolist():
        longest = max(longest, lengths[number])
        if result[-1] and longest * (len(result[-1]) + 1) > tokens:
            result.append([])
            longest = lengths[number]
        result[-1].append(number)
    if rng is not None:
        order = rng.permutation(len(result))
        result = [result[place] for place in order]
    return result


class SimpleTodTrainer(ResumableTrainer[SimpleTodEpoch, TreeSequence]):
    """A training run of SimpleTOD. Its model is new or pretrained."""

    FIGURES = SimpleTodEpoch
    LOSSES = ("belief_loss", "context_loss")
    UNIT = "dialogues"

    def __init__(
        self,
        config: SimpleTodTrainingConfig,
        model: PreTrainedModel,
        tokeniser: PreTrainedTokenizerBase,
        train: DialogueSet,
        valid: DialogueSet,
    ) -> None:
        self.config, self.tokeniser = config, tokeniser
        self.model = move(model, config.device, "SimpleTOD")
        self.dialogues = [split_dialogue(dialogue) for dialogue in train.dialogues]
        self._content = digest_of_dialogues(train)
        self.encoder = Encoder(tokeniser, positions_of(model))
        self._heldout = [
            self.encoder.encode(split_dialogue(dialogue)) for dialogue in valid.dialogues
        ]
        self._heldout_turns = valid.turn_count()
        self._reading = _reading(train)
        self._augment = SlotValueAugmenter(self.dialogues, config.exchange)
        # Weight decay applies to matrices, not to biases and norms.
        matrices = [weight for weight in model.parameters() if weight.dim() > 1]
        others = [weight for weight in model.parameters() if weight.dim() <= 1]
        optimiser = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": config.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            fused=True,
        )
        super().__init__(config, model, optimiser)

    def groups(self, rng: np.random.Generator) -> list[list[TreeSequence]]:
        """Return batches of dialogues of similar length. Some have values replaced."""
        sequences = [self.encoder.encode(self._augment(item, rng)) for item in self.dialogues]
        chosen = batches(sequences, self.config.batch_tokens, rng)
        return [[sequences[place] for place in group] for group in chosen]

    def noise(self, seed: int) -> AbstractContextManager[object]:
        """Seed torch's global random generator, which dropout uses."""
        return seed_torch(seed)

    def losses(self, group: Sequence[TreeSequence]) -> tuple[Tensor, list[Tensor | float]]:
        """Return the weighted mean loss, and the loss sums and token counts of its two parts."""
        batch = collate(group).to(self.config.device)
        logits, targets, in_context = self._logits(batch)
        losses = cross_entropy(logits.float(), targets, reduction="none")
        weights = torch.where(in_context, self.config.context_weight, 1.0)
        context = float(losses.detach()[in_context].sum())
        belief = float(losses.detach().sum()) - context
        of_context = int(in_context.sum())
        sums: list[Tensor | float] = [belief, len(targets) - of_context, context, of_context]
        return (losses * weights).sum() / weights.sum(), sums

    def _logits(self, batch: SequenceBatch) -> tuple[Tensor, Tensor, Tensor]:
        """For tokens with a target, return logits ``[N, V]``, targets and context mask."""
        kind = torch.bfloat16 if self.config.bfloat16 else torch.float32
        hidden = torch.zeros(batch.mask.shape, dtype=kind, device=batch.mask.device)
        hidden.masked_fill_(~batch.mask, torch.finfo(kind).min)
        wanted = batch.targets != IGNORED
        device = torch.device(self.config.device).type
        with torch.autocast(device, torch.bfloat16, enabled=self.config.bfloat16):
            outputs = self.model.base_model(
                input_ids=batch.tokens, position_ids=batch.positions, attention_mask=hidden
            )
            head: nn.Module = self.model.get_output_embeddings()  # type: ignore[no-untyped-call]
            logits = head(outputs.last_hidden_state[wanted])
        return logits, batch.targets[wanted], batch.branches[wanted] == 0

    def measure(self) -> dict[str, float]:
        """Return the joint goal accuracy on the validation split."""
        return {"joint_goal_accuracy": self.accuracy(self._heldout, self._heldout_turns)}

    def save_model(self, about: Mapping[str, Any]) -> None:
        """Write the model and its description."""
        save(self.config.output, self.model, self.tokeniser, self._reading, about)

    def accuracy(self, sequences: Sequence[TreeSequence], turns: int) -> float:
        """Return the joint goal accuracy of the model, in [0, 1].

        Greedy decoding gives the right belief exactly if the right token is most likely after each
        right prefix. Therefore no belief is generated. ``turns`` is the number of all turns. Turns
        that were too long to encode count as wrong.
        """
        self.model.train(mode=False)
        right = 0
        with torch.inference_mode():
            for group in batches(sequences, self.config.batch_tokens, None):
                batch = collate([sequences[place] for place in group]).to(self.config.device)
                logits, targets, in_context = self._logits(batch)
                wrong = (logits.argmax(-1) != targets) & ~in_context
                rows, columns = (batch.targets != IGNORED).nonzero(as_tuple=True)
                keys = torch.stack([rows, batch.branches[rows, columns]], 1)
                beliefs = torch.unique(keys[~in_context], dim=0)
                right += len(beliefs) - len(torch.unique(keys[wrong], dim=0))
        return right / turns

    def identity(self) -> dict[str, Any]:
        """Return the settings that must stay the same when a run is resumed."""
        return {
            **self.config.fixed(),
            "number of training dialogues": len(self.dialogues),
            "number of subwords": len(self.tokeniser),
            "texts and labels": self._content,
        }


@locks_output
def train_simpletod(config: SimpleTodTrainingConfig, progress: Progress) -> TrainingRun:
    """Learn subwords from the training split, then train SimpleTOD on it."""
    train, valid = begin(config)
    lines = _lines(split_dialogue(dialogue) for dialogue in train.dialogues)
    model, tokeniser = new_model(config, lines, derive(config.seed, "weights") % 2**63)
    trainer = SimpleTodTrainer(config, model, tokeniser, train, valid)
    weights = sum(parameter.numel() for parameter in trainer.parameters)
    progress(
        f"{len(train.dialogues)} training dialogues, {len(valid.dialogues)} for validation, "
        f"{len(tokeniser)} subwords, {weights / 1e6:.1f} million weights"
    )
    return trainer.run(progress)


def _reading(train: DialogueSet) -> SimpleTodReading:
    """Return the formats of a model that is trained on these labels."""
    states = [
        turn.state or BeliefState() for dialogue in train.dialogues for turn in dialogue.turns
    ]
    values = Counter(value for state in states for value in state.values())
    return SimpleTodReading(
        common=True,
        slots=tuple(sorted({slot for state in states for slot in state})),
        normalisation=train.normalisation,
        spellings=usual_spellings(values, value_words),
    )


def _lines(dialogues: Iterable[DialogueWords]) -> Iterator[str]:
    """Yield texts for learning subwords: utterances, and the last belief of each dialogue."""
    for dialogue in dialogues:
        for system, user, _ in dialogue.turns:
            yield " ".join(system)
            yield " ".join(user)
        last = {slot: " ".join(words) for slot, words in dialogue.turns[-1][2].items()}
        yield " ".join(word for word in belief_words(last) if word not in MARKS)
