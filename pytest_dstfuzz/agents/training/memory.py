"""Training data: steps of the agent, and attempts of the scorer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pytest_dstfuzz.agents.policies import COUNT, SPACE, STATE_SIZE, Floats
from pytest_dstfuzz.agents.scorers import SlotView
from pytest_dstfuzz.agents.searches import attempts_of
from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.search.protocol import Feedback
from pytest_dstfuzz.trackers.tracker import Tracker


class ReplayBatch(NamedTuple):
    """Several steps from the replay memory, as arrays with one row per step."""

    state: Floats  #: [B, STATE_SIZE].
    vector: Floats  #: [B, D], the action.
    available: Floats  #: [B, 6], transformations with an applicable position.
    chosen: Floats  #: [B, 6], the chosen transformations.
    k: npt.NDArray[np.int64]  #: [B], the number of transformations to choose.
    reward: Floats  #: [B].
    next_state: Floats  #: [B, STATE_SIZE].
    next_available: Floats  #: [B, 6], ``available`` in the next state.
    terminated: Floats  #: [B], whether there was no next state.


class Replay:
    """The replay memory: a ring buffer of steps."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        #: Number of steps so far, including overwritten ones.
        self.added = 0
        #: Field of `ReplayBatch` -> [capacity, ...].
        self.columns: dict[str, npt.NDArray[Any]] = {
            "state": np.zeros((capacity, STATE_SIZE), np.float32),
            "vector": np.zeros((capacity, SPACE.dimension), np.float32),
            "available": np.zeros((capacity, COUNT), np.float32),
            "chosen": np.zeros((capacity, COUNT), np.float32),
            "k": np.zeros(capacity, np.int64),
            "reward": np.zeros(capacity, np.float32),
            "next_state": np.zeros((capacity, STATE_SIZE), np.float32),
            "next_available": np.zeros((capacity, COUNT), np.float32),
            "terminated": np.zeros(capacity, np.float32),
        }

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, step: ReplayBatch) -> None:
        """Add one step without a batch dimension. A full buffer overwrites its oldest step."""
        place = self.added % self.capacity
        for name, value in step._asdict().items():
            self.columns[name][place] = value
        self.added += 1

    def draw(self, rng: np.random.Generator, size: int) -> ReplayBatch:
        """Return ``size`` steps, drawn with replacement."""
        places = rng.integers(0, len(self), size)
        return ReplayBatch(**{name: column[places] for name, column in self.columns.items()})


#: Features are stored in 16 bits.
Halves = npt.NDArray[np.float16]


class AttemptRows(NamedTuple):
    """One attempt: its edits, the features before it, and the slots that it changed."""

    edits: tuple[int, ...]  #: Indices into `TurnRows.of_edits`.
    pairs: Halves  #: [slots, edits, PAIR_SIZE].
    changed: Floats  #: [slots], 1 if the slot changed.


class TurnRows(NamedTuple):
    """The features of a turn, and the attempts at it."""

    of_slots: Halves  #: [slots, SLOT_SIZE].
    of_edits: Halves  #: [edits used in any attempt, EDIT_SIZE].
    attempts: tuple[AttemptRows, ...]


def turn_rows(view: SlotView, seen: Sequence[Feedback]) -> TurnRows | None:
    """Return the training rows of a turn, or ``None`` if no attempt was answered."""
    attempts = attempts_of(seen)
    made = [np.flatnonzero(view.made_of(one.variant)) for one in attempts]
    used = sorted({place for places in made for place in places.tolist()})
    numbers = {place: number for number, place in enumerate(used)}
    found = []
    for number, (one, places) in enumerate(zip(attempts, made, strict=True)):
        if one.answer is None or not len(places):
            continue
        pairs = view.pairs(attempts[:number])[:, places].astype(np.float16)
        changed = np.array(view.changed(one.answer), np.float32)
        edits = tuple(numbers[place] for place in places.tolist())
        found.append(AttemptRows(edits, pairs, changed))
    if not found:
        return None
    of_edits = view.of_edits[used].astype(np.float16)
    return TurnRows(view.of_slots.astype(np.float16), of_edits, tuple(found))


class Batch(NamedTuple):
    """Attempts at several turns, with a row for each pair of slot and edit."""

    slots: Tensor  #: [rows, SLOT_SIZE].
    edits: Tensor  #: [rows, EDIT_SIZE].
    pairs: Tensor  #: [rows, PAIR_SIZE].
    group: Tensor  #: [rows], index of the row's attempt and slot.
    changed: Tensor  #: [groups], 1 if the attempt changed the slot.
    attempts: int


def batch_of(turns: Sequence[TurnRows]) -> Batch:
    """Combine the attempts at several turns into one batch."""
    slots, edits, pairs, group, changed = [], [], [], [], []
    groups = attempts = 0
    for turn in turns:
        count = len(turn.of_slots)
        for one in turn.attempts:
            width = len(one.edits)
            slots.append(np.repeat(turn.of_slots, width, axis=0))
            edits.append(np.tile(turn.of_edits[list(one.edits)], (count, 1)))
            pairs.append(one.pairs.reshape(count * width, -1))
            group.append(np.repeat(np.arange(groups, groups + count), width))
            changed.append(one.changed)
            groups += count
            attempts += 1
    return Batch(
        slots=torch.from_numpy(np.concatenate(slots)).float(),
        edits=torch.from_numpy(np.concatenate(edits)).float(),
        pairs=torch.from_numpy(np.concatenate(pairs)).float(),
        group=torch.from_numpy(np.concatenate(group)),
        changed=torch.from_numpy(np.concatenate(changed)),
        attempts=attempts,
    )


#: A failure breaks no turn, so an agent learns little from a tracker that often fails.
_MOST_FAILURES: Final = 0.5
_LEAST_ANSWERS: Final = 100


class TrainingPredictor:
    """Sends contexts to the tracker, and caches the answers.

    Answers to clean contexts stay cached. Other answers are cached until `forget` is called.

    The last bits of an answer may depend on the other contexts in its batch. All clean turns are
    therefore requested together at the beginning, and no other answers are kept between rounds. A
    resumed run then makes the same batches as an uninterrupted one.

    ``clean`` holds known answers to clean contexts. If it is ``None``, all turns of the data are
    requested.
    """

    def __init__(
        self,
        tracker: Tracker,
        data: DialogueSet,
        batch_size: int,
        clean: Mapping[Context, Answer] | None = None,
    ) -> None:
        self._tracker = tracker
        self._data = data
        self._batch_size = batch_size
        self._calls_before = 0
        #: Numbers of contexts asked, and of those that the tracker failed on.
        self._answers = self._failures = 0
        self._clean: Mapping[Context, Answer] = clean or {}
        self._predictor = self._fresh()
        if clean is None:
            self._clean = self([d.context(turn.index) for d in data.dialogues for turn in d.turns])

    @property
    def calls(self) -> int:
        """Number of contexts sent to the tracker so far.

        A context that is repeated before `forget` is called counts once.
        """
        return self._calls_before + self._predictor.calls

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the states that the tracker predicts on the clean turns."""
        states = [getattr(answer, "state", None) for answer in self._clean.values()]
        text = json.dumps([None if s is None else sorted(s.items()) for s in states])
        return hashlib.sha256(text.encode()).hexdigest()

    def clean(self, dialogue: Dialogue) -> tuple[Answer, ...]:
        """Return the tracker's answers to the clean turns of a dialogue, in order."""
        return tuple(self._clean[dialogue.context(turn.index)] for turn in dialogue.turns)

    def forget(self) -> None:
        """Forget every answer except those to clean turns."""
        self._calls_before = self.calls
        self._predictor = self._fresh()

    def __call__(self, contexts: Sequence[Context]) -> dict[Context, Answer]:
        """Return the answer to each context."""
        known = {context: self._clean[context] for context in contexts if context in self._clean}
        answers = self._predictor.predict(context for context in contexts if context not in known)
        self._predictor.refuse_if_given_up()
        failures = [one for one in answers.values() if isinstance(one, TrackerFailure)]
        for failure in failures:
            if not failure.asked:
                raise TrackerError(failure.reason)
        self._answers += len(answers)
        self._failures += len(failures)
        often = self._failures > _MOST_FAILURES * self._answers
        if often and failures and self._answers >= _LEAST_ANSWERS:
            raise TrackerError(
                f"the tracker failed on {self._failures:,} of {self._answers:,} contexts, so the "
                f"agent would learn from failures; the last one: {failures[-1].reason}"
            )
        return {**known, **answers}

    def _fresh(self) -> Predictor:
        return Predictor(
            self._tracker,
            self._batch_size,
            ontology=self._data.ontology,
            normalisation=self._data.normalisation,
        )
