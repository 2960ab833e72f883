"""Training of the scorer of the search ``bandit``, against a tracker.

Dialogues are played in a drawn order, a few at a time: every turn gets some attempts, and what
each changed is remembered (`exploring`). Half of the calls go to attempts by chance; then the
scorer is fitted, and again after three quarters of the calls, and chooses most of the attempts;
a last fit at the end is what is written. Earlier turns stay as they are, so that a change is the
doing of the attempt's own edits. No labels are needed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.agents.scorer import Scorer
from pytest_dstfuzz.agents.scorer_file import SCORER_FILE, ScorerAbout, save_scorer
from pytest_dstfuzz.agents.training.exploring import ExploringSearch
from pytest_dstfuzz.agents.training.right_dialogues import Say, joined
from pytest_dstfuzz.agents.training.scorer import FitConfig, fit
from pytest_dstfuzz.agents.training.scorer_rows import TurnRows, turn_rows
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.models.runs import make_folder
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.preflight import preflight
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker

#: Dialogues that are played side by side.
_TOGETHER: Final = 24
#: Shares of the calls after which the scorer is fitted, the end apart.
_FITS: Final = (0.5, 0.75)
#: Share of attempts by chance once there is a scorer.
_CHANCE: Final = 0.25
#: Draws of a variant that is not valid, or was tried.
_REDRAWS: Final = 4


@dataclass(frozen=True, slots=True)
class ScorerRun:
    """What to train against, on what, and where to."""

    model: str  #: The tracker, as `tracker_for` takes it.
    data: str  #: Dialogues; no labels are needed.
    output: Path  #: Folder for the scorer.
    slots: tuple[str, ...] = ()  #: Of the bot, where the data does not say them all.
    splits: tuple[str, ...] = ("val",)  #: Of the data.
    checkpoint: str | None = None  #: Weights of the tracker.
    device: str = "cpu"  #: Of the tracker.
    batch_size: int = 64  #: Contexts that the tracker predicts at once.
    #: Settings of a tracker that is a service; see `config.ADAPTER`.
    adapter: Mapping[str, Any] = field(default_factory=dict)
    validity: str = "natural"  #: Validity profile.
    #: Contexts that the tracker may be asked for; dialogues that were begun are played to the end.
    calls: int = 100_000
    attempts: int = 12  #: At each turn.
    #: Begin no dialogues later, but for the first; ``None`` = no limit.
    max_minutes: float | None = None
    max_dialogues: int | None = None  #: Take only so many dialogues of each split; ``None`` = all.
    seed: int = 0  #: Of every draw.
    fit: FitConfig = field(default_factory=FitConfig)

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        for name in ("calls", "attempts"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")


class ScorerTraining(NamedTuple):
    """Where the scorer lies, and how the training went."""

    scorer: Path  #: Its file.
    attempts: int  #: Variants that it learned from.
    calls: int  #: Contexts that the tracker was asked for, clean ones included.
    ended_by: str  #: ``calls``, ``dialogues`` or ``max_minutes``.


def train_bandit(run: ScorerRun, say: Say, tracker: Tracker | None = None) -> ScorerTraining:
    """Train a scorer; it is written after every fit.

    Interrupted, it is fitted once more to what was learned so far, and written.

    Raises:
        UserError: no dialogue was played, or no attempt was answered.
    """
    splits = [with_slots(load_dialogues(run.data, split), run.slots) for split in run.splits]
    splits = [replace(one, dialogues=one.dialogues[: run.max_dialogues]) for one in splits]
    data = joined(splits, [dialogue for one in splits for dialogue in one.dialogues])
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
    make_folder(run.output)
    training = _Learning(run, settings, data, tracker, say)
    try:
        ended_by = training.play()
    except KeyboardInterrupt:
        if training.rows:
            say("interrupted: what was learned so far is fitted and written")
            training.fit()
        raise
    training.fit()
    return ScorerTraining(run.output / SCORER_FILE, training.attempts, training.calls, ended_by)


class _Learning:
    """A run from its dialogues to its scorer."""

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
        """Variants that were learned from."""
        return sum(len(turn.attempts) for turn in self.rows)

    def play(self) -> str:
        """Play dialogues until one of the limits; returns which."""
        run, begin = self._run, time.monotonic()
        order = stream(run.seed, "bandit", "order").permutation(len(self._data.dialogues)).tolist()
        for start in range(0, len(order), _TOGETHER):
            minutes = (time.monotonic() - begin) / 60
            if self.calls >= run.calls:
                return "calls"
            # Without any dialogue there would be nothing to write.
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
        """Attempt all turns of some dialogues."""
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
            raise UserError("the tracker answered no attempt at any turn: nothing can be learned")
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
