"""The environment for training the agent. It plays several dialogues in parallel.

An episode is one dialogue. In each step, the agent edits one user turn and gets a reward.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pytest_dstfuzz.agents.policies import Trace, TurnView
from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.attempts import Attempt, TurnAttempts, attempt_turn, begin_turn
from pytest_dstfuzz.campaign.judge import (
    JudgedVariant,
    changes_before,
    give_feedback,
    judge_attempt,
)
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import Action
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.evaluate import Evaluation, evaluate
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.trackers.validation import preflight

#: Returns an answer for every context.
Predict = Callable[[Sequence[Context]], Mapping[Context, Answer]]


class SteppedSearch(Search):
    """A search that tries the actions of the agent in the environment."""

    name = "stepped"
    adaptive = True
    order = "distance"

    def __init__(self, order: str) -> None:
        self.order = order

    def turn(self, task: SearchTask) -> SteppedTurn:
        """Return an object that proposes variants of one turn."""
        return SteppedTurn(task)


class SteppedTurn:
    """Proposes the variants of one turn, and holds the agent's observation of the turn."""

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        source, system = task.source, task.dialogue.turns[task.turn_index].system
        menus = task.perturber.menus(source)
        view = TurnView(source, menus, task.clean, system, task.turn_index)
        self.observation = Observation(view, Trace(len(source.words)))
        #: Action of the next attempt.
        self.action: Action | None = None

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002 - the agent has seen it
        """Return the variant that the current action makes."""
        if self.action is None:
            raise ValueError("no action was passed")
        return self._task.proposal(self.action)


class Observation(NamedTuple):
    """The agent's view of a turn, including the results of earlier attempts."""

    view: TurnView
    trace: Trace


class AttemptOutcome(NamedTuple):
    """The result of one attempt to break a turn."""

    valid: bool  #: Whether it passed the validity profile, with a new text.
    broken: bool  #: Whether it broke a turn that was not broken yet.
    impurity: float  #: `impurity_difference` to the clean prediction; 0 if not run.
    edit_w: float  #: Word edit rate.
    edit_c: float  #: Character edit rate.


class EnvironmentStep(NamedTuple):
    """The result of one action of the agent."""

    observation: Observation  #: Of the next step, or of this one at the end of the episode.
    outcome: AttemptOutcome  #: Result of the attempt, for the reward.
    terminated: bool  #: Every turn is broken or cannot be broken.
    truncated: bool  #: The attempts are used up.


@dataclass(slots=True)
class _EpisodeTurn:
    attempts: TurnAttempts
    search: SteppedTurn
    whole: bool  #: Whether a variant could break the turn, and none has done so yet.
    judged: dict[int, JudgedVariant] = field(default_factory=dict)


@dataclass(slots=True)
class _Episode:
    turns: list[_EpisodeTurn]
    attempts: int
    number: int = 0
    place: int = -1

    @property
    def turn(self) -> _EpisodeTurn:
        return self.turns[self.place]

    def advance(self) -> bool:
        """Go to the next turn for an attempt. Return whether there is one."""
        while self.number < self.attempts:
            self.place += 1
            if self.place == len(self.turns):
                self.place, self.number = -1, self.number + 1
            elif self.turn.whole:
                return True
        return False


class Environment:
    """Plays one episode per dialogue, all in parallel, so that batches are full."""

    def __init__(self, predict: Predict, spec: CampaignSpec) -> None:
        self._predict = predict
        self._spec = spec
        self._answers: dict[Context, Answer] = {}
        self._episodes: dict[int, _Episode] = {}

    def reset(self, dialogues: Sequence[Dialogue], seed: int) -> dict[int, Observation]:
        """Begin an episode for each dialogue with a turn that a variant could break.

        Returns the first observation of each episode, under the index of its dialogue.
        """
        self._spec = replace(self._spec, settings=replace(self._spec.settings, seed=seed))
        contexts = [d.context(turn.index) for d in dialogues for turn in d.turns]
        self._answers = dict(self._predict(contexts))
        self._episodes = {}
        for key, dialogue in enumerate(dialogues):
            turns = [self._turn(dialogue, turn.index) for turn in dialogue.turns]
            episode = _Episode(turns, self._spec.settings.variants)
            if episode.advance():
                self._episodes[key] = episode
        return {key: episode.turn.search.observation for key, episode in self._episodes.items()}

    def step(self, actions: Mapping[int, Action]) -> dict[int, EnvironmentStep]:
        """Carry out one action in each running episode, and return the results by dialogue."""
        attempts: dict[int, Attempt] = {}
        for key, action in actions.items():
            episode = self._episodes[key]
            episode.turn.search.action = action
            turns = [turn.attempts for turn in episode.turns]
            attempts[key] = attempt_turn(turns, episode.place, episode.number)
        if wanted := [attempt.context for attempt in attempts.values() if attempt.to_run]:
            self._answers.update(self._predict(wanted))
        return {key: self._finish(key, attempt) for key, attempt in attempts.items()}

    def _turn(self, dialogue: Dialogue, index: int) -> _EpisodeTurn:
        clean = self._answers[dialogue.context(index)]
        begun = begin_turn(self._spec, dialogue, index, clean)
        search = begun.search
        if not isinstance(search, SteppedTurn):
            raise TypeError(
                f"the environment needs a search that works step by step, not {search!r}"
            )
        return _EpisodeTurn(begun, search, begun.applicable and isinstance(clean, Prediction))

    def _finish(self, key: int, attempt: Attempt) -> EnvironmentStep:
        """Judge an attempt, and advance the episode to the next attempt."""
        episode = self._episodes[key]
        turn, answers = episode.turn, self._answers
        earlier = [(past.attempts, past.judged) for past in episode.turns[: episode.place]]
        before = changes_before(earlier, attempt)
        judged = judge_attempt(turn.attempts, attempt, answers, before)
        told = give_feedback(turn.attempts, attempt, judged, answers)
        turn.judged[attempt.index], turn.whole = judged, not told.broken
        variant, view = attempt.variant, turn.search.observation.view
        turn.search.observation.trace.add(
            view.source, variant, told.impurity, answered=told.answered, changes=told.changes
        )
        outcome = AttemptOutcome(
            attempt.to_run, told.broken, told.impurity, variant.edit_w, variant.edit_c
        )
        goes_on = episode.advance()
        if not goes_on:
            del self._episodes[key]
        over = not any(turn.whole for turn in episode.turns)
        return EnvironmentStep(
            observation=(episode.turn if goes_on else turn).search.observation,
            outcome=outcome,
            terminated=over,
            truncated=not goes_on and not over,
        )


def environment_spec(
    data: DialogueSet,
    lexicon: Lexicon,
    *,
    validity: str = "strict",
    attack: str = "hybrid",
    order: str = "distance",
    attempts: int = 8,
) -> CampaignSpec:
    """Return the settings of an environment. Its campaign stops at a turn's first violation."""
    settings = Settings.of(
        validity=validity, attack=attack, variants=attempts, redraws=0, stop_at_first=True
    )
    return CampaignSpec.of(settings.variant, data, lexicon, SteppedSearch(order))


#: Limit of both edit rates in the thesis, and the penalty above it.
_GINI_LIMIT: Final = 0.25
_GINI_PENALTY: Final = -100.0
#: The price of one unit of edit rate, the price of an attempt that cannot be run, and the value of
#: one unit of impurity. A rise of 0.03 earns the maximum.
EDIT_PRICE: Final = 0.02
WASTE_PRICE: Final = 0.05
IMPURITY_WORTH: Final = 10.0
_IMPURITY_MOST: Final = 0.3


def gini(outcome: AttemptOutcome) -> float:
    """Return the reward of the thesis, ``exp(gini_dif) / sqrt(edit_w^2 + edit_c^2) + beta``.

    ``edit_w`` and ``edit_c`` are the edit rates of words and characters. ``beta`` is -100 if any of
    these rates is over 0.25, otherwise 0. The formula divides by zero if nothing was edited, and
    rewards copies of one small edit. The first term is therefore 0 for an attempt that was not run.
    """
    size = math.hypot(outcome.edit_w, outcome.edit_c)
    worth = math.exp(outcome.impurity) / size if outcome.valid and size > 0 else 0.0
    over = outcome.edit_w > _GINI_LIMIT or outcome.edit_c > _GINI_LIMIT
    return worth + (_GINI_PENALTY if over else 0.0)


def score_attempt(outcome: AttemptOutcome) -> float:
    """Return the reward ``broken``: 1 for a broken turn, plus a bonus, minus a price of edits.

    The bonus is the rise in impurity times `IMPURITY_WORTH`, clipped to [-0.3, 0.3]. An attempt
    that cannot be run gives ``-WASTE_PRICE``.
    """
    if not outcome.valid:
        return -WASTE_PRICE
    near = max(-_IMPURITY_MOST, min(IMPURITY_WORTH * outcome.impurity, _IMPURITY_MOST))
    price = EDIT_PRICE * (outcome.edit_w + outcome.edit_c)
    return float(outcome.broken) + near - price


REWARDS: Final[Mapping[str, Callable[[AttemptOutcome], float]]] = {
    "broken": score_attempt,
    "gini": gini,
}


#: Reports progress, one line at a time.
Say = Callable[[str], None]
#: Share of the dialogues that is held out.
HELD_OUT: Final = 0.2
#: Minimum time between progress lines.
SECONDS_BETWEEN_LINES: Final = 15.0


class PacedOutput:
    """Prints lines of progress, at most one every ``seconds``.

    If ``seconds`` is ``None``, the default is `SECONDS_BETWEEN_LINES`.
    """

    def __init__(self, say: Say, seconds: float | None = None) -> None:
        self._say = say
        self._seconds = SECONDS_BETWEEN_LINES if seconds is None else seconds
        self._next = time.monotonic() + self._seconds

    def __call__(self, line: str) -> None:
        """Print a line if enough time has passed since the last line."""
        if time.monotonic() >= self._next:
            self._say(line)
            self._next = time.monotonic() + self._seconds


@dataclass(frozen=True, slots=True)
class RightDialogues:
    """The dialogues that a tracker gets right."""

    #: Dialogues that are right at every turn, split by split, in data order. Ontology and cue words
    #: come from the first split.
    data: DialogueSet
    evaluations: tuple[Evaluation, ...]  #: One per split, except splits without labels.
    unlabelled: int = 0  #: Number of dialogues without labels among them.


def right_dialogues(
    tracker: Tracker,
    splits: Sequence[DialogueSet],
    batch_size: int,
    say: Say,
    *,
    unlabelled: bool = False,
) -> RightDialogues:
    """Find the dialogues that the tracker gets right at every labelled turn.

    The tracker is checked first, see `preflight`. If ``unlabelled`` is true, dialogues without
    labels are included. Their variants are compared with the tracker's own clean answers.
    """
    first = splits[0]
    last_turns = [dialogue.context(len(dialogue.turns) - 1) for dialogue in first.dialogues]
    preflight(tracker, last_turns, ontology=first.ontology)
    evaluations = []
    kept: list[Dialogue] = []
    without = 0
    for data in splits:
        right = {d.id for d in data.dialogues if unlabelled and not _has_labels(d)}
        without += len(right)
        if len(right) < len(data.dialogues):
            evaluations.append(_evaluated(tracker, data, batch_size, say))
            right |= set(evaluations[-1].right_dialogues)
        kept += [dialogue for dialogue in data.dialogues if dialogue.id in right]
    if not kept:
        raise UserError(
            "there is nothing to perturb, because no dialogue has a correct prediction at every "
            "turn"
        )
    return RightDialogues(join_splits(splits, kept), tuple(evaluations), without)


def join_splits(splits: Sequence[DialogueSet], dialogues: Sequence[Dialogue]) -> DialogueSet:
    """Return dialogues from several splits as one data set.

    Everything else, such as the ontology, comes from the first split.
    """
    counted = Counter(dialogue.id for dialogue in dialogues)
    if twice := next((name for name, count in counted.items() if count > 1), None):
        raise UserError(f"the dialogue {twice!r} is in two of the splits")
    name = "+".join(data.split for data in splits)
    return replace(splits[0], split=name, dialogues=tuple(dialogues))


def note_missing_labels(dialogues: Sequence[Dialogue]) -> str:
    """Return a note on how many dialogues lack labels, or ``""`` if all have labels."""
    without = sum(not _has_labels(dialogue) for dialogue in dialogues)
    if not without:
        return ""
    return (
        f" ({without} of {len(dialogues)} without labels, compared with the tracker's own clean "
        "answers)"
    )


def hold_out(data: DialogueSet) -> tuple[DialogueSet, DialogueSet]:
    """Split the dialogues into a training set and a held-out set, each in the order of the data."""
    drawn = stream(0, "agent", "split").permutation(len(data.dialogues)).tolist()
    count = round(HELD_OUT * len(drawn))
    if not 0 < count < len(drawn):
        raise UserError(
            f"{len(drawn)} dialogues are too few to train on some and hold out "
            f"{percent(HELD_OUT, 0)}"
        )

    def part(places: Sequence[int]) -> DialogueSet:
        return replace(data, dialogues=tuple(data.dialogues[place] for place in sorted(places)))

    return part(drawn[count:]), part(drawn[:count])


def _has_labels(dialogue: Dialogue) -> bool:
    return any(turn.state is not None for turn in dialogue.turns)


def _evaluated(tracker: Tracker, data: DialogueSet, batch_size: int, say: Say) -> Evaluation:
    tell = PacedOutput(say)
    result = evaluate(
        tracker,
        data,
        batch_size,
        lambda done, whole: tell(f"{data.split}: {done} of {whole} turns predicted"),
    )
    say(
        f"{data.name} {data.split}: joint goal accuracy {percent(result.joint_goal_accuracy)}, "
        f"{len(result.right_dialogues)} of {result.dialogues} dialogues right at every turn"
        + (f" of the {result.turns} with labels" if result.unlabelled else "")
    )
    return result
