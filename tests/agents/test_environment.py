"""The environment: what its observations tell, and where an episode ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chatterbots import KeywordBot, data_of, talks

from pytest_dstfuzz.agents.training.environment import (
    Environment,
    EnvironmentStep,
    Predict,
    environment_spec,
)
from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue
from pytest_dstfuzz.perturb.engine import ActionSpace
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Action
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

SPACE = ActionSpace()
TALKS = talks(16)
DATA = data_of(TALKS)
ATTEMPTS = 5
Where = tuple[str, int, int]


def environment(predict: Predict, attack: str = "hybrid") -> Environment:
    # The locks would leave a keyword bot nothing to stumble over.
    return Environment(
        predict,
        environment_spec(
            DATA, load_lexicon(), validity="edit-rate", attack=attack, attempts=ATTEMPTS
        ),
    )


def action_at(dialogue: str, turn: int, number: int) -> Action:
    rng = stream(1, "test", dialogue, turn, number)
    if rng.random() < 0.4:
        # Some come again and again, so that there are duplicates.
        return SPACE.sample(stream(2, "test", dialogue, turn), 1)
    return SPACE.sample(rng, 1 + number % 6)


def play(
    env: Environment,
    dialogues: Sequence[Dialogue] = TALKS,
    seed: int = 0,
    act: Callable[[str, int, int], Action] = action_at,
) -> dict[Where, EnvironmentStep]:
    steps: dict[Where, EnvironmentStep] = {}
    observations = env.reset(dialogues, seed)
    while observations:
        now = {key: env._episodes[key] for key in observations}
        where = {key: (e.turn.attempts.dialogue.id, e.place, e.number) for key, e in now.items()}
        taken = env.step({key: act(*place) for key, place in where.items()})
        assert list(taken) == list(observations)
        steps.update({where[key]: step for key, step in taken.items()})
        observations = {
            key: step.observation
            for key, step in taken.items()
            if not (step.terminated or step.truncated)
        }
        assert set(observations) == set(env._episodes)
    return steps


def test_observations_tell_what_was_seen() -> None:
    env = environment(KeywordBot().ask)
    observations = env.reset(TALKS[:1], 0)
    (key,) = observations
    traces = [turn.search.observation.trace for turn in env._episodes[key].turns]
    turns = len(traces)
    taken = 0
    while observations:
        episode = env._episodes[key]
        place, number = episode.place, episode.number
        assert observations[key].trace is traces[place]
        assert traces[place].attempts == number
        step = env.step({key: action_at("talk0", place, number)})[key]
        assert traces[place].attempts == number + 1
        taken += 1
        observations = {} if step.terminated or step.truncated else {key: step.observation}
    assert taken >= turns
    assert sum(trace.attempts for trace in traces) == taken


def confused(contexts: Sequence[Context]) -> dict[Context, Answer]:
    return {context: Prediction(BeliefState({"food-kind": context.user})) for context in contexts}


def stubborn(contexts: Sequence[Context]) -> dict[Context, Answer]:
    return {context: Prediction(BeliefState({"food-kind": "italian"})) for context in contexts}


def typo(_dialogue: str, _turn: int, number: int) -> Action:
    """Return a typing error that is another one at every number."""
    vector = [0.0] * SPACE.dimension
    block = SPACE.block("char_replace")
    vector[block.start - 1] = 1.0
    vector[block.start + 1 : block.start + 4] = [number / ATTEMPTS, 1.0, 0.0]
    return Action(tuple(vector), 1)


def test_an_episode_terminates_when_nothing_is_left_to_break() -> None:
    steps = play(environment(confused, attack="non-cumulative"), act=typo)
    assert len(steps) == sum(len(dialogue.turns) for dialogue in TALKS)
    for (name, turn, number), step in steps.items():
        (dialogue,) = (item for item in TALKS if item.id == name)
        assert number == 0
        assert step.outcome.broken
        assert step.terminated == (turn == len(dialogue.turns) - 1)
        assert not step.truncated


def test_an_episode_is_truncated_when_its_attempts_are_used_up() -> None:
    steps = play(environment(stubborn), act=typo)
    assert len(steps) == ATTEMPTS * sum(len(dialogue.turns) for dialogue in TALKS)
    for (name, turn, number), step in steps.items():
        (dialogue,) = (item for item in TALKS if item.id == name)
        last = turn == len(dialogue.turns) - 1 and number == ATTEMPTS - 1
        assert (step.terminated, step.truncated) == (False, last)
        assert not step.outcome.broken


def test_one_turn_that_holds_keeps_the_episode_going() -> None:
    def half(contexts: Sequence[Context]) -> dict[Context, Answer]:
        return {c: (confused if len(c.exchanges) == 1 else stubborn)([c])[c] for c in contexts}

    (dialogue,) = [item for item in TALKS if len(item.turns) == 2][:1]
    steps = play(environment(half, attack="non-cumulative"), [dialogue], act=typo)
    assert [place[1:] for place in steps] == [(0, 0), *[(1, number) for number in range(ATTEMPTS)]]
    assert [step.truncated for step in steps.values()] == [False] * ATTEMPTS + [True]
    assert not any(step.terminated for step in steps.values())


def test_a_dialogue_in_which_nothing_can_be_broken_has_no_episode() -> None:
    env = environment(lambda contexts: dict.fromkeys(contexts, TrackerFailure("no")))
    assert env.reset(TALKS, 0) == {}


def test_the_tracker_is_asked_once_a_step_for_all_episodes() -> None:
    bot = KeywordBot()
    steps = play(environment(bot.ask))
    assert bot.batches[0] == sum(len(dialogue.turns) for dialogue in TALKS)
    assert bot.batches[1] > len(TALKS) / 2
    assert sum(bot.batches[1:]) == sum(step.outcome.valid for step in steps.values())


def test_the_seed_draws_the_contexts_and_nothing_else_does() -> None:
    bot = KeywordBot()
    runs = [
        {place: step.outcome for place, step in play(environment(bot.ask), seed=s).items()}
        for s in (0, 0, 3)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    # Episodes beside it do not show.
    alone = play(environment(bot.ask), TALKS[4:5])
    assert {p: s.outcome for p, s in alone.items()} == {
        p: outcome for p, outcome in runs[0].items() if p[0] == TALKS[4].id
    }
