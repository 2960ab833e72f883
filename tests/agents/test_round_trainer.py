"""An agent that learns after each round: from parts that come in any order, and resumed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from planted import PlantedBot, write_folder

pytest.importorskip("torch")

from test_train_agent import Counting, run_of, same, silent

from pytest_dstfuzz.agents.training.train_agent import train_agent
from pytest_dstfuzz.agents.training.trainer import (
    PART,
    DialoguePlayer,
    PlayedHere,
    PlayedPart,
    RoundPart,
)
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.tracker import Tracker


class Backwards(PlayedHere):
    """Parts come the other way round, as the last of several actors may be the first."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__(tracker)
        self.rounds: list[list[RoundPart]] = []

    @property
    def player(self) -> DialoguePlayer:
        assert self._player is not None
        return self._player

    def played(self, parts: Sequence[RoundPart]) -> Iterator[tuple[int, PlayedPart]]:
        self.rounds.append(list(parts))
        yield from reversed(list(super().played(parts)))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("bakery"))


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose parts came in their order."""
    output = tmp_path_factory.mktemp("whole")
    result = train_agent(run_of(data, output), silent, PlantedBot(), PlayedHere(PlantedBot()))
    assert result.ended_by == "calls"
    assert any(item.critic_loss for item in result.history)
    return output


def test_the_order_in_which_parts_come_changes_nothing(
    data: Path, whole: Path, tmp_path: Path
) -> None:
    bot, players = PlantedBot(), Backwards(PlantedBot())
    train_agent(run_of(data, tmp_path), silent, bot, players)
    assert same(tmp_path, whole)
    # A round of eight dialogues has parts of four, which begin with what the round began with.
    first = players.rounds[0]
    assert [(part.number, part.first, len(part.dialogues)) for part in first] == [
        (0, 0, PART),
        (0, PART, PART),
    ]
    assert all(part.weights is first[0].weights for part in first)


def test_a_part_is_the_same_whoever_played_what_before(data: Path, tmp_path: Path) -> None:
    players = Backwards(PlantedBot())
    train_agent(run_of(data, tmp_path, calls=150), silent, PlantedBot(), players)
    one, other = players.rounds[1][:2]
    played = [players.player.play(part) for part in (one, other, one)]
    assert pickle.dumps(played[0]) == pickle.dumps(played[2])
    assert pickle.dumps(played[0]) != pickle.dumps(played[1])
    # It is sent to other processes, and back.
    sent = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert pickle.dumps(players.player.play(sent)) == pickle.dumps(played[0])


def test_a_run_cut_after_every_round_is_the_uninterrupted_one(
    data: Path, whole: Path, tmp_path: Path
) -> None:
    for number in range(20):
        run = run_of(data, tmp_path, max_minutes=1e-9, resume=number > 0)
        result = train_agent(run, silent, PlantedBot(), PlayedHere(PlantedBot()))
        if result.ended_by == "calls":
            break
    assert number > 3
    assert same(tmp_path, whole)


@pytest.mark.parametrize("calls", [90, 173])
def test_calls_are_what_came_back(data: Path, tmp_path: Path, calls: int) -> None:
    bot = Counting()
    result = train_agent(run_of(data, tmp_path, calls=calls), silent, PlantedBot(), PlayedHere(bot))
    # Whoever plays is asked nothing that is clean.
    assert sum(item.calls for item in result.history) == len(bot.asked)
    # Less than a dialogue is left: two turns, three attempts each.
    assert calls - 6 < result.history[-1].calls_so_far <= calls


def test_schedules_are_not_mixed(data: Path, whole: Path, tmp_path: Path) -> None:
    for name in ("training.safetensors", "agent.safetensors"):
        (tmp_path / name).write_bytes((whole / name).read_bytes())
    with pytest.raises(UserError, match=r"this run would learn between attempts") as e:
        train_agent(run_of(data, tmp_path, resume=True), silent, PlantedBot())
    assert "the earlier run learned after each round (--ray)" in str(e.value)
    train_agent(run_of(data, tmp_path / "other", calls=90), silent, PlantedBot())
    more = run_of(data, tmp_path / "other", calls=90, resume=True)
    with pytest.raises(UserError, match=r"learned between attempts .* would learn after"):
        train_agent(more, silent, PlantedBot(), PlayedHere(PlantedBot()))
