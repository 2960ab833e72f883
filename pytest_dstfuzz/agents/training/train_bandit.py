"""Trains the scorer of the search ``bandit`` against a tracker."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.agents.policies import Floats
from pytest_dstfuzz.agents.scorers import (
    EDIT_SIZE,
    PAIR_SIZE,
    SCORER_FILE,
    SLOT_SIZE,
    Scorer,
    ScorerAbout,
    SlotView,
    save_scorer,
)
from pytest_dstfuzz.agents.searches import (
    attempts_of,
    chances_of_new,
    noisy,
    view_of,
    waiting,
)
from pytest_dstfuzz.agents.training.environment import Say, join_splits
from pytest_dstfuzz.agents.training.memory import Batch, TurnRows, batch_of, turn_rows
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.models.neural import threads
from pytest_dstfuzz.models.runs import locks_output
from pytest_dstfuzz.perturb.words import Variant
from pytest_dstfuzz.search.candidates import compose, together
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.trackers.validation import preflight

#: Spread of the noise on scores. It is larger than in use, to explore more.
_NOISE: Final = 0.6


class ExploringSearch(Search):
    """Tries edits at random or by a scorer. Stores the results for training.

    Args:
        scorer: the current scorer. If it is ``None``, all attempts are random.
        share: share of random attempts.
        seed: seed of every draw.
    """

    name = "exploring"
    adaptive = True
    order = "distance"

    def __init__(self, scorer: Scorer | None, share: float, seed: int) -> None:
        self.scorer = scorer
        self.share = share if scorer else 1.0
        self.seed = seed
        #: (dialogue, turn) -> the turn and its attempts.
        self.turns: dict[tuple[str, int], tuple[SlotView, Sequence[Feedback]]] = {}

    def turn(self, task: SearchTask) -> ExploringTurn:
        """Return an object that proposes variants of one turn."""
        return ExploringTurn(self, task)


class ExploringTurn(TurnSearch):
    """Proposes the variants of one turn for `ExploringSearch`."""

    def __init__(self, search: ExploringSearch, task: SearchTask) -> None:
        self.search = search
        self.task = task

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return a random variant, or the variant that the scorer rates best."""
        search, task = self.search, self.task
        place = task.dialogue.id, task.turn_index
        if place not in search.turns:
            # The campaign adds results to this list after each attempt.
            search.turns[place] = view_of(task, search.seed), seen
        view = search.turns[place][0]
        if not view.candidates:
            return waiting(task)
        rng = task.stream(search.name, search.seed, number, draw)
        if search.scorer is None or rng.random() < search.share:
            return Proposal(self._by_chance(view, rng), NO_ACTION)
        single = chances_of_new(search.scorer, view, attempts_of(seen))
        _, variant = compose(task, view.candidates, noisy(single, _NOISE, rng))
        return waiting(task) if variant is None else Proposal(variant, NO_ACTION)

    def _by_chance(self, view: SlotView, rng: np.random.Generator) -> Variant:
        """Return a variant with random edits. Their number is uniform from 1 to the word quota."""
        task = self.task
        size = int(rng.integers(1, task.source.draft.quota + 1))
        chosen: list[int] = []
        for place in rng.permutation(len(view.candidates)).tolist():
            one = view.candidates[place]
            if not any(one.meets(view.candidates[other]) for other in chosen):
                chosen.append(place)
            if len(chosen) == size:
                break
        return together(task.perturber, task.source, [view.candidates[place] for place in chosen])


#: Initial logit of a pair of slot and edit: a probability of 1 in 90.
_BEGIN = -4.5
#: Maximum logarithm of the probability of no change, to keep it below 0.
_LEAST = -1e-6


@dataclass(frozen=True, slots=True)
class FitConfig:
    """The hyperparameters of a fit of the scorer."""

    wide: int = 64  #: Size of the first hidden layer.
    narrow: int = 32  #: Size of the second hidden layer.
    epochs: int = 6  #: Passes over the turns.
    turns: int = 64  #: Turns per step.
    rate: float = 2e-3  #: Maximum learning rate of the one-cycle schedule.
    weight_decay: float = 1e-4
    gradient_clip: float = 5.0


class Network(nn.Module):
    """The network of `agents.scorers.Scorer` in torch, for training."""

    def __init__(self, config: FitConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.slot = _linear(SLOT_SIZE, config.wide, generator)
        self.edit = _linear(EDIT_SIZE, config.wide, generator)
        self.pair = _linear(PAIR_SIZE, config.wide, generator)
        self.hidden = _linear(config.wide, config.narrow, generator)
        self.out = _linear(config.narrow, 1, generator)
        with torch.no_grad():
            self.out.bias.fill_(_BEGIN)

    def forward(self, batch: Batch) -> Tensor:
        """Return the logit of each row, of shape [rows]."""
        total = self.slot(batch.slots) + batch.edits @ self.edit.weight.T
        total = torch.relu(total + batch.pairs @ self.pair.weight.T)
        logits: Tensor = self.out(torch.relu(self.hidden(total)))[:, 0]
        return logits

    def weights(self) -> dict[str, Floats]:
        """Return the weights under the names that `agents.scorers.shapes` gives."""
        named = {
            "slot": self.slot.weight,
            "slot.bias": self.slot.bias,
            "edit": self.edit.weight,
            "pair": self.pair.weight,
            "hidden.weight": self.hidden.weight,
            "hidden.bias": self.hidden.bias,
            "out.weight": self.out.weight,
            "out.bias": self.out.bias,
        }
        return {name: value.detach().numpy().copy() for name, value in named.items()}


def loss_of(network: Network, batch: Batch) -> Tensor:
    """Return the mean negative log-likelihood per attempt."""
    unchanged = torch.zeros(len(batch.changed)).index_add_(
        0, batch.group, logsigmoid(-network(batch))
    )
    unchanged = unchanged.clamp(max=_LEAST)
    changed = torch.log1p(-torch.exp(unchanged))
    return -(batch.changed * changed + (1 - batch.changed) * unchanged).sum() / batch.attempts


def fit(
    turns: Sequence[TurnRows], rng: np.random.Generator, config: FitConfig
) -> tuple[Network, float]:
    """Fit a network to the attempts at some turns."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    network = Network(config, generator)
    steps = -(-len(turns) // config.turns)
    optimiser = torch.optim.AdamW(
        network.parameters(), config.rate, weight_decay=config.weight_decay
    )
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, config.rate, total_steps=steps * config.epochs + 1
    )
    loss = 0.0
    with threads(1):
        for _ in range(config.epochs):
            order, loss = rng.permutation(len(turns)).tolist(), 0.0
            for start in range(0, len(order), config.turns):
                batch = batch_of([turns[at] for at in order[start : start + config.turns]])
                found = loss_of(network, batch)
                optimiser.zero_grad()
                torch.autograd.backward(found)
                nn.utils.clip_grad_norm_(network.parameters(), config.gradient_clip)
                optimiser.step()
                cycle.step()
                loss += found.item() / steps
    return network, loss


def _linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    with torch.no_grad():
        nn.init.kaiming_uniform_(layer.weight, a=5**0.5, generator=generator)
        nn.init.zeros_(layer.bias)
    return layer


#: Number of dialogues played in parallel.
_TOGETHER: Final = 24
#: Shares of the calls after which the scorer is fitted, besides the end.
_FITS: Final = (0.5, 0.75)
#: Share of random attempts after the first fit.
_CHANCE: Final = 0.25
#: Redraws if a variant is invalid or a duplicate.
_REDRAWS: Final = 4


@dataclass(frozen=True, slots=True)
class ScorerRun:
    """The settings of a training run."""

    model: str  #: Tracker, in a form that `tracker_for` accepts.
    data: str  #: Dialogues. Labels are not needed.
    output: Path  #: Folder for the scorer.
    slots: tuple[str, ...] = ()  #: Slots of the bot, if the data does not name them all.
    splits: tuple[str, ...] = ("val",)  #: Splits of the data.
    checkpoint: str | None = None  #: Weights of the tracker.
    device: str = "cpu"  #: Device of the tracker.
    batch_size: int = 64  #: Contexts per batch of the tracker.
    #: Settings of a tracker that is a service; see `config.ADAPTER`.
    adapter: Mapping[str, Any] = field(default_factory=dict)
    validity: str = "natural"  #: Validity profile.
    #: Maximum number of contexts sent to the tracker. Running dialogues are still finished.
    calls: int = 100_000
    attempts: int = 12  #: Attempts per turn.
    #: Begin no more dialogues after this time, except the first group. ``None`` means no limit.
    max_minutes: float | None = None
    max_dialogues: int | None = None  #: Maximum per split. ``None`` means all.
    seed: int = 0  #: Seed of every draw.
    fit: FitConfig = field(default_factory=FitConfig)

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        for name in ("calls", "attempts"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")


class ScorerTraining(NamedTuple):
    """The scorer and the results of a training run."""

    scorer: Path  #: File of the scorer.
    attempts: int  #: Number of variants in the training data.
    calls: int  #: Number of contexts sent to the tracker, including clean ones.
    ended_by: str  #: ``calls``, ``dialogues`` or ``max_minutes``.


@locks_output
def train_bandit(run: ScorerRun, say: Say, tracker: Tracker | None = None) -> ScorerTraining:
    """Train a scorer. Write it after each fit.

    If the training is interrupted, the scorer is fitted to the results so far and written.

    Raises:
        UserError: the tracker answered no attempt.
    """
    splits = [with_slots(load_dialogues(run.data, split), run.slots) for split in run.splits]
    splits = [replace(one, dialogues=one.dialogues[: run.max_dialogues]) for one in splits]
    data = join_splits(splits, [dialogue for one in splits for dialogue in one.dialogues])
    settings = Settings.of(
        model=run.model,
        checkpoint=run.checkpoint,
        device=run.device,
        batch_size=run.batch_size,
        slots=run.slots,
        validity=run.validity,
        variants=run.attempts,
        attack="non-cumulative",
        redraws=_REDRAWS,
        shrink=False,
        **run.adapter,
    )
    if tracker is None:
        tracker = tracker_for(settings, data)
    contexts = [dialogue.context(len(dialogue.turns) - 1) for dialogue in data.dialogues]
    preflight(tracker, contexts, ontology=data.ontology)
    training = _Learning(run, settings, data, tracker, say)
    try:
        ended_by = training.play()
    except KeyboardInterrupt:
        if training.rows:
            say("interrupted: the scorer is fitted to the attempts so far and saved")
            training.fit()
        raise
    training.fit()
    return ScorerTraining(run.output / SCORER_FILE, training.attempts, training.calls, ended_by)


class _Learning:
    """Carries out one run, from its dialogues to the scorer."""

    def __init__(
        self, run: ScorerRun, settings: Settings, data: DialogueSet, tracker: Tracker, say: Say
    ) -> None:
        self._run, self._settings, self._data = run, settings, data
        self._tracker, self._say = tracker, say
        self._scorer: Scorer | None = None
        self._played = self._fits = 0
        self.rows: list[TurnRows] = []
        self.calls = 0

    @property
    def attempts(self) -> int:
        """Number of variants in the training data so far."""
        return sum(len(turn.attempts) for turn in self.rows)

    def play(self) -> str:
        """Play dialogues until a limit is reached, and return the name of the limit."""
        run, begin = self._run, time.monotonic()
        order = stream(run.seed, "bandit", "order").permutation(len(self._data.dialogues)).tolist()
        for start in range(0, len(order), _TOGETHER):
            minutes = (time.monotonic() - begin) / 60
            if self.calls >= run.calls:
                return "calls"
            # Play at least one group, or there would be no data to fit.
            if self._played and run.max_minutes is not None and minutes >= run.max_minutes:
                return "max_minutes"
            if len(_FITS) > self._fits and self.calls >= _FITS[self._fits] * run.calls:
                self.fit()
            self._play(order[start : start + _TOGETHER])
            found = sum(bool(one.changed.any()) for turn in self.rows for one in turn.attempts)
            self._say(
                f"{self._played} of {len(order)} dialogues, {self.calls:,} of {run.calls:,} calls, "
                f"{self.attempts:,} attempts, {found:,} of them changed a slot"
            )
        return "dialogues"

    def _play(self, places: list[int]) -> None:
        """Try variants of all turns of some dialogues, and store the results."""
        dialogues = tuple(self._data.dialogues[place] for place in sorted(places))
        data = replace(self._data, dialogues=dialogues)
        search = ExploringSearch(self._scorer, _CHANCE, self._run.seed)
        engine = CampaignEngine(
            self._settings,
            data,
            predictor_for(self._settings, data, self._tracker),
            load_lexicon(),
            plan=[(dialogue, len(dialogue.turns) - 1) for dialogue in dialogues],
            search=search,
        )
        self.calls += sum(result.calls for result in engine.run())
        for _, (view, seen) in sorted(search.turns.items(), key=lambda item: item[0]):
            if (rows := turn_rows(view, seen)) is not None:
                self.rows.append(rows)
        self._played += len(dialogues)

    def fit(self) -> None:
        """Fit the scorer to all attempts so far, and write it."""
        if not self.rows:
            raise UserError(
                "nothing can be learned, because the tracker answered no attempt at any turn"
            )
        run, self._fits = self._run, self._fits + 1
        rng = stream(run.seed, "bandit", "fit", self._fits)
        network, loss = fit(self.rows, rng, run.fit)
        weights = network.weights()
        self._scorer = Scorer(weights)
        about = ScorerAbout(
            tracker=run.model,
            data=f"{self._data.name} {self._data.split}",
            dialogues=self._played,
            validity=run.validity,
            seed=run.seed,
            attempts=self.attempts,
            calls=self.calls,
        )
        save_scorer(run.output / SCORER_FILE, weights, about)
        self._say(f"fitted to {self.attempts:,} attempts, loss {loss:.4f}")
