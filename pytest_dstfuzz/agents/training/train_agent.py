"""Training of an agent against a tracker, from the data to a policy for the search.

A fifth of the dialogues that the tracker gets right at every turn is held out (`right_dialogues`).
The agent is trained on the other right dialogues. It can also be trained on all other dialogues,
because it can learn from wrong predictions. If a dialogue has no labels, the tracker's own clean
answers replace them, and the policy records this. The folder of a run holds the policy and the
state for resuming.

If workers play the dialogues, the agent learns after each round instead of between attempts. So
runs with and without workers give different policies.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz import __version__, load_dialogues
from pytest_dstfuzz.agents.policies import POLICY_FILE, PolicyAbout, save_policy
from pytest_dstfuzz.agents.training.environment import (
    Environment,
    Say,
    environment_spec,
    hold_out,
    join_splits,
    note_missing_labels,
    right_dialogues,
)
from pytest_dstfuzz.agents.training.memory import TrainingPredictor
from pytest_dstfuzz.agents.training.trainer import (
    PART,
    AgentTrainer,
    LearningTrainer,
    PlayRules,
    Rollouts,
    Round,
    RoundTrainer,
    TensorBoardLogger,
    TrainerState,
    TrainingConfig,
    about_players,
)
from pytest_dstfuzz.campaign.code import code_of_tracker
from pytest_dstfuzz.campaign.engine import digest_of_dialogues, digest_of_package
from pytest_dstfuzz.config import Settings, identity_of
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.models.runs import SavedRun, check_output, locks_output, write_run
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker

#: Training dialogues: those that the tracker gets right at every turn, or all.
DIALOGUES: Final = ("right", "all")
#: Metadata key of the run's state.
_METADATA: Final = "dstfuzz"
#: Key and value of the schedule in a run's identity, if the agent learns after each round. Runs
#: that learn between attempts lack the key, like those of earlier versions.
_SCHEDULE: Final = "learning"
_BY_ROUNDS: Final = f"after each round, played in parts of {PART} dialogues"


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The settings of a training run."""

    model: str  #: Tracker, in a form that `tracker_for` accepts.
    data: str  #: Dialogues, with or without labels.
    output: Path  #: Folder for the policy and the state for resuming.
    #: Slots of the bot, if the data does not name them all; see `with_slots`.
    slots: tuple[str, ...] = ()
    splits: tuple[str, ...] = ("val", "test")  #: Splits of the data.
    checkpoint: str | None = None  #: Weights of the tracker.
    device: str = "cpu"  #: Device of the tracker and of the agent's networks.
    batch_size: int = 64  #: Contexts per batch of the tracker.
    #: Settings of a tracker that is a service; see `config.ADAPTER`.
    adapter: Mapping[str, Any] = field(default_factory=dict)
    validity: str = "strict"  #: Validity profile.
    attack: str = "hybrid"  #: Attack design.
    order: str = "distance"  #: Order of the position parameters, ``distance`` or ``reading``.
    #: Budget, reward, seed and hyperparameters.
    training: TrainingConfig = field(default_factory=TrainingConfig)
    #: Begin no round that would probably end later. ``None`` means no limit.
    max_minutes: float | None = None
    max_dialogues: int | None = None  #: Maximum per split. ``None`` means all.
    #: Training dialogues other than the held-out ones: ``right``, those that the tracker gets right
    #: at every turn, or ``all``.
    dialogues: str = "right"
    resume: bool = False  #: Resume after the last round in ``output``.
    tensorboard: Path | None = None  #: Folder for events. ``None`` writes no events.


class AgentTraining(NamedTuple):
    """The policy and the history of a training run."""

    policy: Path  #: File of the policy.
    history: tuple[Round, ...]  #: All rounds, including those before a resume.
    ended_by: str  #: ``calls`` or ``max_minutes``.


@dataclass(frozen=True, slots=True)
class _RunAbout:
    """The settings and facts that a resumed run must share with its first part."""

    identity: dict[str, Any]  #: Settings that must stay the same when a run is resumed.
    #: Ids of the dialogues that the tracker gets right at every turn, or that have no labels.
    right: tuple[str, ...]
    fingerprint: str  #: Fingerprint of the tracker's correct answers on the splits.


@dataclass(frozen=True, slots=True)
class _State(TrainerState):
    """The stored metadata of a run between two rounds."""

    run: _RunAbout


class _Material(NamedTuple):
    """The dialogues of a run, split for training."""

    right: tuple[str, ...]  #: See `_RunAbout`.
    fingerprint: str  #: See `_RunAbout`.
    asked_about: DialogueSet  #: Data that the tracker is made for.
    training: DialogueSet  #: Training dialogues.
    held_out: DialogueSet  #: Dialogues that the agent never sees.
    bot: str = ""  #: Digest of the tracker's code and settings, and of this package.


@locks_output
def train_agent(
    run: AgentRun, say: Say, tracker: Tracker | None = None, rollouts: Rollouts | None = None
) -> AgentTraining:
    """Train an agent. Write its state and policy after every round.

    If ``rollouts`` is given, its players play the dialogues, and the agent learns after each round.
    Otherwise the agent plays the dialogues itself, and learns between attempts.
    """
    if run.dialogues not in DIALOGUES:
        raise unknown_name("choice of dialogues", run.dialogues, DIALOGUES)
    # Before any slow step, because it may not be installed.
    log = TensorBoardLogger(run.tensorboard) if run.tensorboard is not None else None
    check_output(run.output, resume=run.resume)
    splits = _splits(run)
    if tracker is None:
        tracker = tracker_for(_settings(run), splits[0])
    saved = SavedRun.read(run.output, _METADATA) if run.resume else None
    # Before the first answer, for which the tracker may load more code.
    bot = _bot_digest(run, tracker)
    material = _known(saved, run, splits) if saved else _found(run, splits, tracker, say)
    training = _Training(run, tracker, material._replace(bot=bot), say, log, rollouts)
    training.begin(saved)
    try:
        ended_by = training.run_round()
    finally:
        if log is not None:
            log.close()
    return AgentTraining(run.output / POLICY_FILE, tuple(training.trainer.history), ended_by)


class _Training:
    """Carries out one run, from the choice of dialogues to the policy."""

    def __init__(
        self,
        run: AgentRun,
        tracker: Tracker,
        material: _Material,
        say: Say,
        log: TensorBoardLogger | None,
        rollouts: Rollouts | None,
    ) -> None:
        self._run, self._material, self._say, self._log = run, material, say, log
        data = material.training
        say(
            f"training dialogues: {len(data.dialogues)} ({data.turn_count()} turns), held out: "
            f"{len(material.held_out.dialogues)}"
        )
        #: The digest of the training dialogues, wherever their files are.
        self._dialogues = digest_of_dialogues(data)
        self._predictor = TrainingPredictor(tracker, data, run.batch_size)
        self._by_rounds = rollouts is not None
        self.trainer = (
            self._learning_by_itself()
            if rollouts is None
            else self._learning_from(rollouts, tracker)
        )

    def _learning_by_itself(self) -> LearningTrainer:
        run, data = self._run, self._material.training
        spec = environment_spec(
            data,
            load_lexicon(),
            validity=run.validity,
            attack=run.attack,
            order=run.order,
            attempts=run.training.attempts,
        )
        environment = Environment(self._predictor, spec)
        return AgentTrainer(
            run.training, environment, data.dialogues, lambda: self._predictor.calls, run.device
        )

    def _learning_from(self, rollouts: Rollouts, tracker: Tracker) -> LearningTrainer:
        run, training, material = self._run, self._run.training, self._material
        rules = PlayRules(
            settings=_settings(run),
            asked_about=material.asked_about,
            training=material.training,
            validity=run.validity,
            attack=run.attack,
            order=run.order,
            attempts=training.attempts,
            reward=training.reward,
            ks=training.ks,
            seed=training.seed,
        )
        rollouts.begin(rules, about_players(tracker))
        return RoundTrainer(
            training, rollouts, material.training.dialogues, self._predictor.clean, run.device
        )

    def begin(self, saved: SavedRun | None) -> None:
        """Write the state of a new run, or restore the last state of an earlier run."""
        trainer = self.trainer
        if saved is not None:
            state = saved.built(_State, saved.about)
            self._check_schedule(saved, state.run.identity)
            saved.check(state.run.identity, self._identity())
            trainer.restore(state, saved)
            self._say(f"resumed after round {len(trainer.history)}, {trainer.calls:,} calls")
            if trainer.history:
                # An earlier process may have been killed between writing the state and the policy.
                self._write_policy()
            return
        trainer.calls_before = self._predictor.calls
        if trainer.finished:
            raise UserError(
                f"calls ({self._run.training.calls:,}) must be more than the "
                f"{trainer.calls_before:,} for the clean turns alone: allow more calls, or use "
                "fewer dialogues"
            )
        self._save()

    def _check_schedule(self, saved: SavedRun, earlier: Mapping[str, Any]) -> None:
        if (_SCHEDULE in earlier) != self._by_rounds:
            when = "after each round (--ray)", "between attempts (without --ray)"
            was, now = reversed(when) if self._by_rounds else when
            raise saved.refused(f"the earlier run learned {was}, but this run would learn {now}")

    def run_round(self) -> str:
        """Play rounds until a limit is reached, and return the name of the limit."""
        trainer, limit = self.trainer, self._run.max_minutes
        begin, calls_before, longest = time.monotonic(), trainer.calls, 0.0
        while not trainer.finished:
            start = time.monotonic()
            if limit is not None and longest and start - begin + longest > limit * 60:
                return "max_minutes"
            self._predictor.forget()
            done = trainer.run_round()
            self._save()
            self._write_policy()
            now = time.monotonic()
            longest = max(longest, now - start)
            pace = (now - begin) / (done.calls_so_far - calls_before)
            self._tell(done, pace)
        return "calls"

    def _tell(self, done: Round, pace: float) -> None:
        budget, running = self._run.training.calls, self.trainer.broken_per_1000_calls()
        self._say(
            f"round {done.number}: {done.calls_so_far:,} of {budget:,} calls, "
            f"epsilon {done.epsilon:.2f}, {running:.1f} turns broken per 1,000 calls in the last "
            "rounds, "
            f"loss {done.critic_loss:.4f} (critic) {done.actor_loss:.4f} (actor), "
            f"ETA {pace * (budget - done.calls_so_far) / 60:.0f} min"
        )
        if self._log is not None:
            self._log.add(done, running)

    def _write_policy(self) -> None:
        run, training = self._run, self._run.training
        data = self._material.training
        every = (*data.dialogues, *self._material.held_out.dialogues)
        about = PolicyAbout(
            tracker=run.model,
            tracker_fingerprint=self._material.fingerprint,
            data=f"{data.name} {data.split}, {run.dialogues} dialogues{note_missing_labels(every)}",
            held_out=tuple(dialogue.id for dialogue in self._material.held_out.dialogues),
            order=run.order,
            validity=run.validity,
            attack=run.attack,
            reward=training.reward,
            ks=training.ks,
            attempts=training.attempts,
            seed=training.seed,
            calls=self.trainer.calls,
        )
        save_policy(run.output / POLICY_FILE, self.trainer.learner.weights(), about)

    def _save(self) -> None:
        material, state = self._material, self.trainer.state
        run = _RunAbout(self._identity(), material.right, material.fingerprint)
        about = asdict(_State(state.counters, state.history, run))
        write_run(self._run.output, _METADATA, about, self.trainer.tensors())

    def _identity(self) -> dict[str, Any]:
        """Return the settings that must stay the same when a run is resumed, as JSON values."""
        run, data = self._run, self._material.training
        ids = json.dumps([dialogue.id for dialogue in data.dialogues])
        described = {
            "package version": __version__,
            "model": run.model,
            "batch_size": run.batch_size,
            "validity": run.validity,
            "attack": run.attack,
            "order": run.order,
            "choice of dialogues": run.dialogues,
            **asdict(run.training),
            "training dialogues": f"{len(data.dialogues)}, sha256 {_digest(ids)}",
            "the tracker's clean answers": f"sha256 {_digest(self._predictor.fingerprint)}",
            "the texts or labels of the training dialogues": self._dialogues,
            "the tracker, its settings or this package": self._material.bot,
        }
        if self._by_rounds:
            described[_SCHEDULE] = _BY_ROUNDS
        same: dict[str, Any] = json.loads(json.dumps(described))
        return same


def _settings(run: AgentRun) -> Settings:
    """Return the settings for making the tracker."""
    return Settings.of(
        model=run.model,
        checkpoint=run.checkpoint,
        device=run.device,
        batch_size=run.batch_size,
        slots=run.slots,
        **run.adapter,
    )


def _bot_digest(run: AgentRun, tracker: Tracker) -> str:
    """Return a digest of the tracker's code and settings, and of this package."""
    code = code_of_tracker(run.model, tracker)
    about = [code, identity_of(_settings(run), "tracker"), digest_of_package()]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _splits(run: AgentRun) -> list[DialogueSet]:
    splits = [with_slots(load_dialogues(run.data, split), run.slots) for split in run.splits]
    return [replace(data, dialogues=data.dialogues[: run.max_dialogues]) for data in splits]


def _found(run: AgentRun, splits: Sequence[DialogueSet], tracker: Tracker, say: Say) -> _Material:
    """Find the dialogues that the tracker gets right. Split them for training."""
    right = right_dialogues(tracker, splits, run.batch_size, say, unlabelled=True)
    if right.unlabelled:
        say(
            f"{right.unlabelled} dialogues have no labels: their variants are compared with the "
            "tracker's own clean answers"
        )
    figures = [(item.right, item.right_slots, item.right_dialogues) for item in right.evaluations]
    ids = tuple(dialogue.id for dialogue in right.data.dialogues)
    return _Material(
        ids, _digest(json.dumps(figures)), splits[0], *_parted(run, splits, right.data)
    )


def _known(saved: SavedRun, run: AgentRun, splits: Sequence[DialogueSet]) -> _Material:
    """Return the dialogues of an earlier part of the run, without calls of the tracker."""
    earlier = saved.built(_State, saved.about).run
    right = earlier.right
    dialogues = {dialogue.id: dialogue for data in splits for dialogue in data.dialogues}
    if missing := [name for name in right if name not in dialogues]:
        raise saved.refused(
            f"the data lacks {len(missing)} dialogues of the earlier run, such as {missing[0]!r}"
        )
    data = join_splits(splits, [dialogues[name] for name in right])
    return _Material(right, earlier.fingerprint, splits[0], *_parted(run, splits, data))


def _parted(
    run: AgentRun, splits: Sequence[DialogueSet], right: DialogueSet
) -> tuple[DialogueSet, DialogueSet]:
    training, kept_back = hold_out(right)
    if run.dialogues == "all":
        hidden = {dialogue.id for dialogue in kept_back.dialogues}
        others = [item for data in splits for item in data.dialogues if item.id not in hidden]
        training = join_splits(splits, others)
    return training, kept_back


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
