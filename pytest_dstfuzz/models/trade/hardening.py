"""Adversarial training of TRADE in rounds: find rewrites that break it, and train on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pytest_dstfuzz import Context, DialogueSet, Outcome, UserError, load_dialogues
from pytest_dstfuzz.campaign.engine import digest_of_dialogues
from pytest_dstfuzz.files import digest_of
from pytest_dstfuzz.models.neural import threads
from pytest_dstfuzz.models.run_settings import TrainingRun
from pytest_dstfuzz.models.runs import Progress, begin, locks_output
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.models.trade.files import (
    FILES,
    HardeningRound,
    TradeEpoch,
    TradeHardeningConfig,
    folder_of,
)
from pytest_dstfuzz.models.trade.nearest import known_words
from pytest_dstfuzz.models.trade.network import TradeNetwork
from pytest_dstfuzz.models.trade.tracker import TradeTracker, load_trade
from pytest_dstfuzz.models.trade.training import (
    LabelledTurn,
    TradeTrainer,
    TurnBatch,
    batch_loss,
    bucket,
    collate,
    encode_turn,
    make_row,
    make_rows,
    mask_words,
    target_log_probability,
)
from pytest_dstfuzz.models.trade.vocabulary import Vocabulary
from pytest_dstfuzz.repair.measured import without_measured
from pytest_dstfuzz.repair.rewrites import (
    LabelledRewrite,
    RewriteSource,
    accuracy_on,
    list_contexts,
    pick_broken,
    rank_of_round,
)
from pytest_dstfuzz.repair.trainable import NOTHING
from pytest_dstfuzz.seeding import stream

#: The margin M of Niu and Bansal (2018), in nats for each word. Their weight of it is 1.
_MARGIN = 0.1


@dataclass(frozen=True)
class HardeningTurn(LabelledTurn):
    """A rewritten turn. The label of its clean turn must become less likely."""

    #: The clean turn with its label.
    clean: LabelledTurn
    #: Indices of the slots whose value should change.
    slots: tuple[int, ...]


def margin_loss(network: TradeNetwork, turns: Sequence[HardeningTurn], rate: float) -> Tensor:
    """Return the loss ``max(0, M + log p(t|rewritten) - log p(t|clean))``, summed over all ``t``.

    ``t`` is a gate, or a word of the old value, of a slot that should change. The share ``rate`` of
    the words is masked.
    """
    device = network.gate.device
    changed = torch.zeros(len(turns), len(turns[0].gates), dtype=torch.bool)
    for row, turn in enumerate(turns):
        changed[row, list(turn.slots)] = True
    changed = changed.to(device)
    rewritten, clean = (
        _old_values(network, collate(rows).to(str(device)), changed, rate)
        for rows in (turns, [turn.clean for turn in turns])
    )
    return torch.relu(_MARGIN + rewritten - clean).sum()


def _old_values(network: TradeNetwork, batch: TurnBatch, changed: Tensor, rate: float) -> Tensor:
    """Return the log-probabilities of the gates and of the words, for the changed slots."""
    encoded = network.encode(mask_words(batch.words, rate, network.generator), batch.lengths)
    inputs = network.slot_inputs()
    first = network.first_step(encoded, inputs)
    gates = functional.log_softmax(first.gate, -1).gather(-1, batch.gates[..., None])[..., 0]
    if not len(batch.pairs):
        return gates[changed]
    words = target_log_probability(network, batch, encoded, first, inputs)
    row, slot = batch.pairs[batch.tokens[:, 0]].unbind(1)
    return torch.cat([gates[changed], words[changed[row, slot]]])


class TradeHardener(TradeTrainer):
    """A run of adversarial training. An epoch is a round.

    At the start of a round, rewrites of training turns are drawn, and the tracker answers them.
    Rewrites that break the tracker are used first. The round trains on rewrites and on clean turns.
    """

    FIGURES = HardeningRound
    LOSSES = (*TradeTrainer.LOSSES, "margin_loss")

    def __init__(
        self,
        config: TradeHardeningConfig,
        start: TradeTracker,
        train: DialogueSet,
        valid: DialogueSet,
        progress: Progress,
    ) -> None:
        vocabulary, reading = _vocabulary(start.vocabulary, config, train), start.reading
        order = stream(config.seed, "validation").permutation(len(valid.dialogues))
        chosen = [valid.dialogues[int(place)] for place in order[: config.dialogues]]
        heldout, first_heldout = (
            make_rows(chosen, words, reading.history_limit)
            for words in (vocabulary, start.vocabulary)
        )
        super().__init__(config, start.network, vocabulary, (), heldout, reading)
        self.hardening, self._progress = config, progress
        #: The first tracker reads words as it did before the training.
        self._first_vocabulary, self._first_heldout = start.vocabulary, first_heldout
        self._first = [weight.detach().clone() for weight in self.parameters]
        self._digests = {
            f"{name} dialogues": digest_of_dialogues(data)
            for name, data in (("training", train), ("validation", valid))
        }
        self._turns = [(one, turn.index) for one in train.dialogues for turn in one.turns]
        self._source = RewriteSource(train, config.relations, config.seed)
        checked = RewriteSource(valid, config.relations, config.seed)
        self._checked = checked.draw(config.checked, "validation")

    def kept_weights(self) -> Sequence[Tensor]:
        """Return the averaged weights, mixed with the first weights as in the settings."""
        share = self.hardening.first_weights
        pairs = zip(super().kept_weights(), self._first, strict=True)
        return [torch.lerp(mean, first, share) for mean, first in pairs]

    def groups(self, rng: np.random.Generator) -> list[list[LabelledTurn]]:
        """Return batches of rewritten and clean turns of similar length."""
        rows = [self._row(one) for one in self._rewrites()]
        count = min(len(rows) * self.hardening.replay, len(self._turns))
        limit = self.reading.history_limit
        places = rng.choice(len(self._turns), count, replace=False)
        rows += [make_row(*self._turns[int(place)], self.vocabulary, limit) for place in places]
        batches = bucket([len(row.words) for row in rows], self.config.batch_size, rng)
        return [[rows[int(place)] for place in chosen] for chosen in batches]

    def _rewrites(self) -> list[LabelledRewrite]:
        """Return the rewrites of a round: first those that break the tracker."""
        config, number = self.hardening, len(self.history)
        drawn = self._source.draw(config.rewrites * config.draws, "round", number)
        if config.draws == 1:
            return drawn
        with self.using(self.average.values):
            states = self._states(list_contexts(drawn), self.vocabulary)
        used, broken = pick_broken(drawn, states, config.rewrites)
        self._progress(f"round {number + 1}: {broken} of {len(drawn)} rewrites break the tracker")
        return used

    def _row(self, one: LabelledRewrite) -> LabelledTurn:
        """Return a rewrite as a training turn, with the answer that the settings ask for."""
        vocabulary, limit, answers = (
            self.vocabulary,
            self.reading.history_limit,
            self.hardening.answers,
        )
        state = one.after if answers == "repaired" else one.before
        row = encode_turn(one.seen, state, vocabulary, limit)
        if one.expected.stays or answers != "margin":
            return row
        clean = encode_turn(one.clean, one.before, vocabulary, limit)
        slots = tuple(vocabulary.slots.index(delta.slot) for delta in one.expected.deltas)
        return HardeningTurn(row.words, row.copies, row.gates, row.targets, clean, slots)

    def losses(self, group: Sequence[LabelledTurn]) -> tuple[Tensor, list[Tensor | float]]:
        """Return the mean loss per turn, and its gate, value and margin parts."""
        changed = [row for row in group if isinstance(row, HardeningTurn)]
        plain = [row for row in group if not isinstance(row, HardeningTurn)]
        gate = value = margin = torch.zeros((), device=self.config.device)
        if plain:
            batch = collate(plain).to(self.config.device)
            words = mask_words(batch.words, self.config.word_mask, self.network.generator)
            share = len(plain) / len(group)
            gate, value = (share * part for part in batch_loss(self.network, batch, words))
        if changed:
            margin = margin_loss(self.network, changed, self.config.word_mask) / len(group)
        parts = (gate, value, margin)
        return gate + value + margin, [item for part in parts for item in (part.detach(), 1)]

    def measure(self) -> dict[str, float]:
        """Return the accuracies on validation, and the accuracies of the first weights."""
        if self.history:
            first = self.history[0]
            assert isinstance(first, HardeningRound)  # noqa: S101 - see FIGURES
            clean, rewritten = first.first_accuracy, first.first_rewritten_accuracy
        else:
            with self.using(self._first):
                clean, _ = self.accuracy_on(self._first_heldout)
                rewritten = self._rewritten(self._first_vocabulary)
        return {
            **super().measure(),
            "rewritten_accuracy": self._rewritten(self.vocabulary),
            "first_accuracy": clean,
            "first_rewritten_accuracy": rewritten,
        }

    def _rewritten(self, vocabulary: Vocabulary) -> float:
        """Return the accuracy on rewritten turns of the validation split."""
        states = self._states([one.seen for one in self._checked], vocabulary)
        return accuracy_on(self._checked, states)

    def _states(self, contexts: Sequence[Context], vocabulary: Vocabulary) -> list[Outcome]:
        """Return the states that the tracker predicts with its present weights."""
        tracker = TradeTracker(self.network, vocabulary, self.reading, device=self.config.device)
        return [prediction.state for prediction in tracker.predict(contexts)]

    def best(self) -> TradeEpoch:
        """Return the round with the highest accuracy on rewritten turns.

        The accuracy on clean turns must not fall further than the settings allow. If it does in all
        rounds, return the round with the smallest fall.
        """
        return max(self.history, key=self._rank)

    def _rank(self, figures: TradeEpoch) -> tuple[float, float]:
        assert isinstance(figures, HardeningRound)  # noqa: S101 - see FIGURES
        least = figures.first_accuracy - self.hardening.loss_limit
        return rank_of_round(figures.joint_goal_accuracy, least, figures.rewritten_accuracy)

    def save_model(self, about: Mapping[str, Any]) -> None:
        """Write the network and its description, with the digest of the first weights."""
        super().save_model({**about, "first": _digest(self.hardening)})

    def identity(self) -> dict[str, Any]:
        """Return the settings that must stay the same when a run is resumed."""
        return {
            **self.config.fixed(),
            **self._digests,
            "first weights": _digest(self.hardening),
        }


def _vocabulary(start: Vocabulary, config: TradeHardeningConfig, train: DialogueSet) -> Vocabulary:
    """Return the vocabulary of the trained tracker.

    Raises:
        UserError: the tracker reads pieces of words, so no word is unknown to it.
    """
    if not config.correct_spelling:
        return start
    if start.merges:
        raise UserError(
            "--correct-spelling needs a tracker that reads whole words, and this one reads pieces "
            "of words: leave the option out"
        )
    turns = (turn for one in train.dialogues for turn in one.turns)
    texts = (text for turn in turns for text in (turn.system, turn.user))
    counts = Counter(word for text in texts for word in tokenise(text))
    return replace(
        start, counts=known_words({word: counts[word] for word in start.words if counts[word]})
    )


def _digest(config: TradeHardeningConfig) -> str:
    folder = folder_of(config.start)
    return digest_of(folder / name for name in FILES)


@locks_output
def harden_trade(config: TradeHardeningConfig, progress: Progress) -> TrainingRun:
    """Train TRADE further, on turns that relations have rewritten and on clean turns.

    Raises:
        UserError: a dialogue for training is also used to measure the tracker.
    """
    train, valid = (_unmeasured(config, part, progress) for part in begin(config))
    tracker = load_trade(config.start, config.device)
    tracker.network.dropout = config.dropout
    trainer = TradeHardener(config, tracker, train, valid, progress)
    with threads(1):
        return trainer.run(progress)


def _unmeasured(config: TradeHardeningConfig, data: DialogueSet, progress: Progress) -> DialogueSet:
    """Return data without dialogues that have the same user texts as a measured dialogue."""
    if config.measured == NOTHING:
        return data
    same = config.measured is None
    name = str(config.data) if config.measured is None else config.measured
    measured = load_dialogues(name, "test", layout=config.layout if same else None)
    return without_measured(data, measured, name, progress)
