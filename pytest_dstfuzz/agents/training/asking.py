"""Answers to what a training asks: clean contexts once, others once between two times."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.tracker import Tracker


class TrainingPredictor:
    """Answers contexts; clean ones are asked once, others once between two calls of `forget`.

    What a tracker computes may depend, in the last bits, on what it computes beside it. All
    clean turns are therefore asked together at the beginning, and nothing else is kept from
    round to round: a run that is resumed makes the same batches as one that was not cut.

    ``clean``: answers to clean contexts that are known; ``None`` = those to all turns of the data
    are asked for.
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
        self._clean: Mapping[Context, Answer] = clean or {}
        self._predictor = self._fresh()
        if clean is None:
            self._clean = self([d.context(turn.index) for d in data.dialogues for turn in d.turns])

    @property
    def calls(self) -> int:
        """Contexts asked so far; each distinct one is counted once between two `forget`."""
        return self._calls_before + self._predictor.calls

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the states that the tracker predicts on the clean turns."""
        states = [getattr(answer, "state", None) for answer in self._clean.values()]
        text = json.dumps([None if s is None else sorted(s.items()) for s in states])
        return hashlib.sha256(text.encode()).hexdigest()

    def clean(self, dialogue: Dialogue) -> tuple[Answer, ...]:
        """Return the answers to the clean turns of a dialogue of the data, in their order."""
        return tuple(self._clean[dialogue.context(turn.index)] for turn in dialogue.turns)

    def forget(self) -> None:
        """Forget every answer but those to clean turns."""
        self._calls_before = self.calls
        self._predictor = self._fresh()

    def __call__(self, contexts: Sequence[Context]) -> dict[Context, Answer]:
        """Return the answer to each context."""
        known = {context: self._clean[context] for context in contexts if context in self._clean}
        answers = self._predictor.predict(context for context in contexts if context not in known)
        self._predictor.refuse_if_given_up()
        for answer in answers.values():
            if isinstance(answer, TrackerFailure) and not answer.asked:
                raise TrackerError(answer.reason)
        return {**known, **answers}

    def _fresh(self) -> Predictor:
        return Predictor(
            self._tracker,
            self._batch_size,
            ontology=self._data.ontology,
            normalisation=self._data.normalisation,
        )
