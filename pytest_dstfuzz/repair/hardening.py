"""Adversarial training of a user's tracker, in rounds of attack and training."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, cast

from pytest_dstfuzz import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Outcome,
    Prediction,
    Tracker,
    UserError,
)
from pytest_dstfuzz.campaign.engine import digest_of_dialogues
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.errors import passes_through
from pytest_dstfuzz.files import lock_file, read_versioned, write_json
from pytest_dstfuzz.json_data import from_json
from pytest_dstfuzz.repair.mending import MOST_FAILURES
from pytest_dstfuzz.repair.rewrites import (
    LabelledRewrite,
    RewriteSource,
    accuracy_on,
    list_contexts,
    pick_broken,
    rank_of_round,
)
from pytest_dstfuzz.repair.trainable import HARDENING_RELATIONS, Trainable, TrainingTurn
from pytest_dstfuzz.seeding import derive, stream
from pytest_dstfuzz.trackers.evaluate import evaluate, predict_all

#: The file in the output folder that describes the run.
RUN_FILE: Final = "hardening.json"
_VERSION: Final = 1
#: Keys of the digests in the identity of a run -> the names in messages.
_CONTENTS: Final = {
    "bot": "the bot or its options",
    "training dialogues": "the training dialogues",
    "validation dialogues": "the validation dialogues",
}
#: Why a run ended.
EndedBy = Literal["rounds", "patience"]
#: Reports progress, one line at a time.
Progress = Callable[[str], None]


@dataclass(frozen=True)
class HardeningSettings:
    """The settings of a hardening."""

    output: Path  #: Folder for the trained trackers and the state of the run.
    relations: str = ",".join(HARDENING_RELATIONS)
    rounds: int = 6
    rewrites: int = 100  #: Rewrites of each relation in a round.
    draws: int = 2  #: Rewrites that are drawn for one that is used. Broken ones come first.
    replay: int = 3  #: Clean turns for each rewrite.
    patience: int = 2  #: Rounds without a better result before the run ends.
    loss_limit: float = 0.005  #: Largest loss of accuracy on clean turns that is accepted.
    dialogues: int = 200  #: Validation dialogues whose clean turns are measured.
    checked: int = 50  #: Rewrites of each relation that are measured on validation.
    batch_size: int = 64  #: Contexts that the tracker answers at once.
    seed: int = 0

    def identity(self) -> dict[str, Any]:
        """Return the settings that must stay the same when a run is resumed."""
        changeable = ("output", "rounds", "patience", "batch_size")
        return {name: value for name, value in asdict(self).items() if name not in changeable}


@dataclass(frozen=True)
class RoundFigures:
    """The accuracies after a round, in [0, 1]. Round 0 is the tracker before the training."""

    number: int
    clean: float  #: Share of clean validation turns whose whole state is right.
    rewritten: float  #: The same of rewritten turns: the mean over the relations.

    def line(self) -> str:
        """Return the figures as a line of text."""
        name = f"round {self.number}" if self.number else "before the training"
        return (
            f"{name}: right answers to clean turns {percent(self.clean)}, "
            f"to rewritten turns {percent(self.rewritten)}"
        )


@dataclass(frozen=True)
class HardeningResult:
    """The rounds of a hardening, and the best of them."""

    history: tuple[RoundFigures, ...]  #: It begins with round 0.
    loss_limit: float
    ended_by: EndedBy

    @property
    def best(self) -> RoundFigures:
        """The round with the most right answers to rewritten turns.

        A round that loses too much on clean turns is the best only if all rounds do, and it loses
        the least. Without any round, it is round 0.
        """
        first, *rounds = self.history
        least = first.clean - self.loss_limit
        return max(
            rounds or [first], key=lambda one: rank_of_round(one.clean, least, one.rewritten)
        )

    @property
    def better(self) -> bool:
        """Whether the best round improves the tracker, and loses little on clean turns."""
        first, best = self.history[0], self.best
        kept = best.clean >= first.clean - self.loss_limit
        return kept and best.rewritten > first.rewritten


def trainable_of(tracker: Tracker, name: str) -> Trainable:
    """Return the object of a tracker that learns.

    Raises:
        UserError: the object cannot learn.
    """
    found = getattr(tracker, "wrapped", tracker)
    missing = [one for one in ("train", "save", "load") if not callable(getattr(found, one, None))]
    if missing:
        raise UserError(
            f"{name} has no method {missing[0]}, so it cannot be trained: give an object with "
            "train(turns, seed), save(folder) and load(folder); TRADE has the command dstfuzz "
            "train-tracker trade-hardened; for all other bots, dstfuzz export writes training data"
        )
    return cast("Trainable", found)


class TrackerHardener:
    """Trains a tracker in rounds, and saves it after each round.

    At the start of a round, rewrites of training turns are drawn, and the tracker answers them. The
    round trains on rewrites, first on those that break the tracker, and on clean turns.
    """

    def __init__(
        self,
        tracker: Tracker,
        learner: Trainable,
        data: tuple[DialogueSet, DialogueSet],
        settings: HardeningSettings,
        progress: Progress,
        bot: str = "",
    ) -> None:
        """Prepare a run. ``data`` is for training and for validation.

        ``bot`` identifies the tracker before the training. A run is resumed only with the same bot.

        Raises:
            UserError: the data has too few labels, or a relation cannot apply to it.
        """
        train, valid = map(_labelled, data)
        order = stream(settings.seed, "validation").permutation(len(valid.dialogues))
        chosen = [valid.dialogues[int(place)] for place in order[: settings.dialogues]]
        self._tracker, self._learner, self._settings = tracker, learner, settings
        self._progress, self._bot, self._data = progress, bot, (train, valid)
        self._valid = replace(valid, dialogues=tuple(chosen))
        self._turns = [_turn(one, turn.index) for one in train.dialogues for turn in one.turns]
        self._source = RewriteSource(train, settings.relations, settings.seed)
        checked = RewriteSource(valid, settings.relations, settings.seed)
        self._checked = checked.draw(settings.checked, "validation")
        if not self._checked:
            raise UserError(
                f"no relation of {settings.relations} applies to a turn of the validation "
                "dialogues: name other relations"
            )
        self._history: list[RoundFigures] = []

    @property
    def result(self) -> HardeningResult:
        """The rounds so far."""
        limit, history = self._settings.loss_limit, tuple(self._history)
        return HardeningResult(history, limit, "patience" if self._impatient() else "rounds")

    def run(self, *, resume: bool) -> HardeningResult:
        """Train until a limit is reached. With ``resume``, continue after the last saved round.

        Raises:
            UserError: another process uses the output, or the tracker fails on too many turns.
        """
        with lock_file(self._settings.output / RUN_FILE, wait=0.0):
            return self._run(resume=resume)

    def _run(self, *, resume: bool) -> HardeningResult:
        if resume:
            self._restore()
        else:
            self._refuse_rounds()
            self._keep(self._measure())
        while len(self._history) <= self._settings.rounds and not self._impatient():
            number = len(self._history)
            seed = derive(self._settings.seed, "round", number) % 2**32
            self._call("train", self._draw(number), seed)
            folder = self._folder(number)
            # An interrupted run may have left an incomplete folder.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self._call("save", folder)
            self._keep(self._measure())
        return self.result

    def _refuse_rounds(self) -> None:
        """Raise a `UserError` if the output has rounds, which a new run would replace."""
        if found := next(iter(sorted(self._settings.output.glob("round-*"))), None):
            raise UserError(
                f"{found} exists, and a new run would replace it: name another folder in --output, "
                "or add --resume to continue the run of this one"
            )

    def _impatient(self) -> bool:
        found = HardeningResult(tuple(self._history), self._settings.loss_limit, "rounds")
        return len(self._history) - 1 - found.best.number >= self._settings.patience

    def _folder(self, number: int) -> Path:
        return folder_of(self._settings.output, number)

    def _call(self, method: str, *arguments: object) -> None:
        try:
            getattr(self._learner, method)(*arguments)
        except BaseException as error:
            if passes_through(error):
                raise
            raise UserError(
                f"the method {method} of the tracker raised {type(error).__name__}: {error}"
            ) from error

    def _draw(self, number: int) -> list[TrainingTurn]:
        """Return the turns of a round: rewrites and clean turns, in random order."""
        settings = self._settings
        drawn = self._source.draw(settings.rewrites * settings.draws, "round", number)
        states = self._states(list_contexts(drawn))
        used, broken = pick_broken(drawn, states, settings.rewrites)
        self._progress(f"round {number}: {broken} of {len(drawn)} rewrites break the tracker")
        rng = stream(settings.seed, "turns", number)
        count = min(len(used) * settings.replay, len(self._turns))
        places = rng.choice(len(self._turns), count, replace=False)
        turns = [TrainingTurn(one.seen, one.after) for one in used]
        turns += [self._turns[int(place)] for place in places]
        return [turns[int(place)] for place in rng.permutation(len(turns))]

    def _states(self, contexts: Sequence[Context]) -> list[Outcome]:
        """Return the states that the tracker predicts. A missing answer is an empty state.

        Raises:
            UserError: too many answers are missing. Figures would be of the failures.
        """
        answers = predict_all(
            self._tracker,
            list(contexts),
            self._settings.batch_size,
            normalisation=self._valid.normalisation,
        )
        failures = [str(one) for one in answers if not isinstance(one, Prediction)]
        _refuse_failures(failures, len(answers))
        return [one.state if isinstance(one, Prediction) else BeliefState() for one in answers]

    def _measure(self) -> RoundFigures:
        found = evaluate(self._tracker, self._valid, self._settings.batch_size)
        _refuse_failures(found.unanswered, found.turns)
        return RoundFigures(
            len(self._history), found.joint_goal_accuracy, self._rewritten(self._checked)
        )

    def _rewritten(self, rewrites: Sequence[LabelledRewrite]) -> float:
        states = self._states([one.seen for one in rewrites])
        return accuracy_on(rewrites, states)

    def _keep(self, figures: RoundFigures) -> None:
        """Save the state of the run, and remove trackers that are neither the best nor the last."""
        self._history.append(figures)
        self._progress(figures.line())
        content = {
            "version": _VERSION,
            "identity": self._identity(),
            "history": [asdict(one) for one in self._history],
        }
        write_json(self._settings.output / RUN_FILE, content)
        for number in {*range(1, figures.number)} - {self.result.best.number}:
            shutil.rmtree(self._folder(number), ignore_errors=True)

    def _identity(self) -> dict[str, Any]:
        return {**self._settings.identity(), **self._origins}

    @cached_property
    def _origins(self) -> dict[str, str]:
        """Digests of the bot before the training and of the data, wherever its files are."""
        train, valid = map(digest_of_dialogues, self._data)
        return dict(zip(_CONTENTS, (self._bot, train, valid), strict=True))

    def _restore(self) -> None:
        path = self._settings.output / RUN_FILE
        content = read_versioned(path, "description of a hardening", "version", _VERSION)
        _check_same(self._settings.output, content["identity"], self._identity())
        self._history = [from_json(RoundFigures, one) for one in content["history"]]
        last = self._history[-1]
        if last.number:
            self._call("load", self._folder(last.number))
        self._progress(f"continues after round {last.number}")


def _refuse_failures(failures: Sequence[str], answers: int) -> None:
    if len(failures) > MOST_FAILURES * answers:
        raise UserError(
            f"the tracker failed on {len(failures):,} of {answers:,} turns, more than "
            f"{percent(MOST_FAILURES, 0)}; the first failure: {failures[0]}. Correct it, and add "
            "--resume to go on after the last round"
        )


def folder_of(output: Path, number: int) -> Path:
    """Return the folder with the tracker of a round."""
    return output / f"round-{number}"


def _check_same(output: Path, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name, value in now.items():
        if earlier.get(name) == value:
            continue
        if name in _CONTENTS:
            raise UserError(
                f"cannot continue the run in {output}: since its first round, {_CONTENTS[name]} "
                "changed: undo the change, or name another --output"
            )
        raise UserError(
            f"cannot continue the run in {output}: its {name.replace('_', ' ')} was "
            f"{earlier.get(name)!r} and is now {value!r}: repeat the first command, or name "
            "another --output"
        )


def _labelled(data: DialogueSet) -> DialogueSet:
    """Return data with only the dialogues that have a label at every turn."""
    dialogues = [one for one in data.dialogues if all(turn.state is not None for turn in one.turns)]
    if not dialogues:
        raise UserError(
            f"no dialogue of {data.name}, split {data.split}, has a label at every turn: add the "
            "right states to the training and the validation dialogues"
        )
    return replace(data, dialogues=tuple(dialogues))


def _turn(dialogue: Dialogue, index: int) -> TrainingTurn:
    return TrainingTurn(dialogue.context(index), dialogue.turns[index].state or BeliefState())
