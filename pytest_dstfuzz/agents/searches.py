"""The searches ``agent`` and ``bandit``, which find and use trained weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.agents.policies import (
    COUNT,
    FIRST,
    LATER,
    Floats,
    Policy,
    SavedPolicy,
    Trace,
    TurnView,
    load_policy,
)
from pytest_dstfuzz.agents.scorers import (
    SavedScorer,
    ScoredAttempt,
    Scorer,
    SlotView,
    chance_of_any,
    chance_of_variant,
    load_scorer,
)
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import digest_of
from pytest_dstfuzz.perturb.words import Variant
from pytest_dstfuzz.search.candidates import candidates_of, compose
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Proposal,
    Search,
    SearchFamily,
    SearchTask,
    TrainingRecord,
    TurnSearch,
)
from pytest_dstfuzz.search.registry import find_training
from pytest_dstfuzz.trackers.tracker import Prediction

#: Folder of the shipped policies.
SHIPPED_AGENT: Final = Path(__file__).parent / "resources" / "agents"
#: Trackers with a shipped policy. ``agent`` means the first one.
SHIPPED_FOR: Final = ("trade", "simpletod")
_AGENT: Final = "agent"
_AGENT_PREFIX: Final = f"{_AGENT}:"
#: Forms of an agent's name, for messages.
AGENTS: Final[tuple[str, ...]] = (
    _AGENT,
    *(f"{_AGENT_PREFIX}{tracker}" for tracker in SHIPPED_FOR),
    f"{_AGENT_PREFIX}PATH",
)


class AgentSearch(Search):
    """Lets a trained policy choose among the shipped transformations and operators in use.

    The first attempt at a turn takes the best action. Later attempts add noise to this action, as
    defined by `LATER`.
    """

    name = _AGENT
    adaptive = True
    order = "distance"

    def __init__(self, policy: Policy, seed: int, k: int, order: str = "distance") -> None:
        self.policy = policy
        self.seed = seed
        self.k = min(k, COUNT)
        self.order = order

    def turn(self, task: SearchTask) -> AgentTurn:
        """Return an object that proposes variants of one turn."""
        return AgentTurn(self, task)


class AgentTurn:
    """Proposes the variants of one turn for `AgentSearch`."""

    def __init__(self, search: AgentSearch, task: SearchTask) -> None:
        self._search = search
        # The policy knows only shipped transformations. Other searches of the run may use more.
        self._task = task = task._replace(perturber=task.perturber.shipped)
        system = task.dialogue.turns[task.turn_index].system
        menus = task.perturber.menus(task.source)
        self._view = TurnView(task.source, menus, task.clean, system, task.turn_index)
        self._trace = Trace(len(task.source.words))
        self._taken = 0

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the policy's choice after the results of the earlier attempts."""
        if number < self._taken:  # Campaigns ask in order. Restart for other callers.
            self._trace, self._taken = Trace(len(self._task.source.words)), 0
        for earlier in seen[self._taken : number]:
            self._trace.add(
                self._task.source,
                earlier.proposal.variant,
                earlier.impurity,
                answered=earlier.answered,
                changes=earlier.changes,
            )
        self._taken = max(self._taken, min(number, len(seen)))
        rng = self._task.stream(self._search.name, self._search.seed, number, draw)
        explore = LATER if number or draw else FIRST
        policy = self._search.policy
        choice = policy.choose(self._view, self._trace, self._search.k, rng, explore)
        return self._task.proposal(choice.action)


def find_policy(name: str) -> SavedPolicy:
    """Load the policy of the search ``agent``, ``agent:TRACKER`` or ``agent:PATH``."""
    wanted = SHIPPED_FOR[0] if name == _AGENT else name.removeprefix(_AGENT_PREFIX)
    if not wanted:
        raise UserError(
            "the search 'agent:' needs a file: write agent:PATH, or agent for the shipped policy"
        )
    if wanted not in SHIPPED_FOR:
        return load_policy(wanted)
    path = SHIPPED_AGENT / f"{wanted}.safetensors"
    if not path.is_file():
        raise UserError(
            "this installation has no trained agent: train one with 'dstfuzz train-agent', and "
            "name its file with agent:PATH"
        )
    return load_policy(path)


_BANDIT: Final = "bandit"
_BANDIT_PREFIX: Final = f"{_BANDIT}:"
#: Forms of a scorer's name, for messages.
BANDITS: Final[tuple[str, ...]] = (_BANDIT, f"{_BANDIT_PREFIX}PATH")
#: Path of the shipped scorer.
SHIPPED_SCORER: Final = Path(__file__).parent / "resources" / "scorers" / "trade.safetensors"
#: Required probability of a change in the first pass. In the last pass it is 0.
_FIRST: Final = 0.1
#: Exponent of its decrease over the passes.
_FALL: Final = 3
#: Spread of the noise on scores from the second attempt at a turn on, so that attempts differ, and
#: its relative growth per attempt.
_NOISE, _GROWTH = 0.15, 0.1
#: Replaces the clean prediction if the tracker failed on the clean turn.
_NOTHING: Final = Prediction(BeliefState())


class BanditSearch(Search):
    """Combines the edits that a scorer rates most likely to change a slot."""

    name = _BANDIT
    adaptive = waits = True
    associates = False
    order = "distance"

    def __init__(self, scorer: Scorer, seed: int) -> None:
        self.scorer = scorer
        self.seed = seed

    def turn(self, task: SearchTask) -> BanditTurn:
        """Return an object that proposes variants of one turn."""
        return BanditTurn(self, task)


class BanditTurn(TurnSearch):
    """Proposes the variants of one turn for `BanditSearch`."""

    def __init__(self, search: BanditSearch, task: SearchTask) -> None:
        self.search = search
        self.task = task
        #: Cache: the attempts, and the probabilities after them: [candidates].
        self._known: tuple[Sequence[ScoredAttempt], Floats] | None = None

    @cached_property
    def view(self) -> SlotView:
        """The scorer's features for the turn."""
        return view_of(self.task, self.search.seed)

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the most promising variant, or the clean utterance to skip this pass."""
        task, view = self.task, self.view
        attempts = attempts_of(seen)
        floor = threshold(number, task.variants)
        single = self._chances(attempts)
        quota = task.source.draft.quota
        if not view.candidates or most_likely(single, quota) < floor:
            return waiting(task)
        scores = single
        if number or draw:
            rng = task.stream(_BANDIT, self.search.seed, number, draw)
            spread = _NOISE * (1.0 + _GROWTH * len(attempts))
            scores = noisy(single, spread, rng)
        chosen, variant = compose(task, view.candidates, scores)
        if variant is None or chance_of_variant(single, chosen) < floor:
            return waiting(task)
        return Proposal(variant, NO_ACTION)

    def _chances(self, attempts: Sequence[ScoredAttempt]) -> Floats:
        """Return each edit's probability to change a slot that is not broken yet: [candidates]."""
        # Redraws repeat the same attempts.
        if self._known is None or self._known[0] != attempts:
            self._known = attempts, chances_of_new(self.search.scorer, self.view, attempts)
        return self._known[1]


def chances_of_new(scorer: Scorer, view: SlotView, attempts: Sequence[ScoredAttempt]) -> Floats:
    """Return each edit's probability to change a slot that is not broken yet: [candidates]."""
    chances = scorer.chances(view, attempts)
    chances[find_broken_slots(view, attempts)] = 0.0
    return chance_of_any(chances)


def noisy(scores: Floats, spread: float, rng: np.random.Generator) -> Floats:
    """Multiply the scores by random noise, so that attempts differ: [candidates]."""
    return scores * np.exp(spread * rng.gumbel(size=len(scores)))


def threshold(number: int, variants: int) -> float:
    """Return the minimum probability of a change for a variant to be tried, from 0 to 1.

    The result falls from pass to pass, to 0 in the last pass.

    Args:
        number: index of the pass, 0 to ``variants - 1``.
        variants: number of passes.
    """
    left = 1.0 - number / (variants - 1) if variants > 1 else 0.0
    return float(_FIRST * left**_FALL)


def most_likely(single: Floats, quota: int) -> float:
    """Return the highest probability that ``quota`` candidates together change a slot."""
    return chance_of_variant(single, np.argsort(-single, kind="stable")[:quota].tolist())


def view_of(task: SearchTask, seed: int) -> SlotView:
    """Return the scorer's features for a turn."""
    rng = task.stream(_BANDIT, seed, "candidates")
    found = candidates_of(task.perturber, task.source, rng)
    system = task.dialogue.turns[task.turn_index].system
    return SlotView(task.source, found, task.clean or _NOTHING, system, task.turn_index)


def waiting(task: SearchTask) -> Proposal:
    """Propose the clean utterance to skip the pass. It is not sent to the tracker."""
    text = task.source.text
    return Proposal(Variant(text, text, (), 0.0, 0.0, "vacuous"), NO_ACTION)


def attempts_of(seen: Sequence[Feedback]) -> list[ScoredAttempt]:
    """Return the attempts whose variant is valid, in order."""
    return [
        ScoredAttempt(one.proposal.variant, one.answer, one.broken)
        for one in seen
        if one.proposal.variant.valid
    ]


def find_broken_slots(view: SlotView, attempts: Sequence[ScoredAttempt]) -> npt.NDArray[np.bool_]:
    """Return whether each slot changed in an attempt that violated the relation: [slots]."""
    found = np.zeros(len(view.slots), bool)
    for one in attempts:
        if one.broken and one.answer is not None:
            found |= np.array(view.changed(one.answer))
    return found


def find_scorer(name: str) -> SavedScorer:
    """Load the scorer of the search ``bandit`` or ``bandit:PATH``."""
    if name == _BANDIT:
        return load_scorer(SHIPPED_SCORER)
    if not (path := name.removeprefix(_BANDIT_PREFIX)):
        raise UserError(
            "the search 'bandit:' needs a file: write bandit:PATH, or bandit for the shipped scorer"
        )
    return load_scorer(path)


class AgentFamily(SearchFamily):
    """The searches ``agent``, ``agent:TRACKER`` and ``agent:PATH``. Each has its own policy."""

    forms = AGENTS

    def make(self, name: str, *, seed: int, k: int) -> Search:
        """Build the search that uses the policy of this name."""
        saved = find_policy(name)
        return AgentSearch(saved.policy, seed, k, saved.about.order)

    def find_training(self, name: str) -> TrainingRecord:
        """Return how the policy of this name was trained."""
        policy = find_policy(name)
        about = policy.about
        origin = about.tracker, about.data, about.held_out
        rest = about.validity, about.seed, about.calls
        return TrainingRecord(
            "policy", policy.fingerprint, *origin, *rest, code=_code(), reward=about.reward
        )


class BanditFamily(SearchFamily):
    """The searches ``bandit`` and ``bandit:PATH``. Each has its own scorer."""

    forms = BANDITS

    def make(self, name: str, *, seed: int, k: int) -> Search:  # noqa: ARG002 - see below
        """Build the search that uses the scorer of this name.

        The search ignores ``k``. Only the word quota limits the number of edits.
        """
        return BanditSearch(find_scorer(name).scorer, seed)

    def find_training(self, name: str) -> TrainingRecord:
        """Return how the scorer of this name was trained."""
        scorer = find_scorer(name)
        of = scorer.about
        rest = of.validity, of.seed, of.calls
        return TrainingRecord(
            "scorer", scorer.fingerprint, of.tracker, of.data, (), *rest, code=_code()
        )


AGENT: Final = AgentFamily()
BANDIT: Final = BanditFamily()


def training_calls(name: str) -> int:
    """Return how many contexts were sent to the tracker to train a search.

    The result is 0 if the search was not trained.
    """
    found = find_training(name)
    return found.calls if found else 0


@cache
def _code() -> str:
    """Return a digest of this package's code, or ``""`` if it cannot be read."""
    try:
        return digest_of(sorted(Path(__file__).parent.rglob("*.py")))
    except OSError:
        return ""
