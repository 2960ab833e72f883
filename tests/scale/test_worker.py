"""What an actor does, in this process: budgets, room, and blocks that are partly done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import Campaign, Settings, UserError
from pytest_dstfuzz.scale.manifest import RunManifest
from pytest_dstfuzz.scale.ray import RayOptions, left_of, room_for, shares_of, why_ended
from pytest_dstfuzz.scale.results import DialogueResults, ResultFolder
from pytest_dstfuzz.scale.runs import BlockRunner, blocks_of, run_into
from pytest_dstfuzz.scale.worker import BlockWorker, Refusal, SentResults, Surroundings, Task

BOT = """
def heard(context):
    said = " ".join(context.user_utterances).lower()
    return {"restaurant-pricerange": "cheap"} if "cheap" in said else {}
"""
RELATIONS = "metamorphic,value-swap"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (tmp_path / "bot_of_workers.py").write_text(BOT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return Settings.of(
        model="bot_of_workers:heard", turns=40, variants=1, seed=1, relation=RELATIONS
    )


def worker(settings: Settings, **more: Any) -> BlockWorker:
    made = BlockWorker(settings, Surroundings.here(), **more)
    assert isinstance(made.prepare(), RunManifest)
    return made


def test_what_is_missing_of_a_block_is_run(settings: Settings, tmp_path: Path) -> None:
    campaign = Campaign("bot_of_workers:heard", settings=settings)
    whole = run_into(campaign, tmp_path / "whole", lambda _done, _total: None)
    made = worker(settings)
    plan = made.plan()
    assert len(plan.blocks) == len(plan.names) == 1
    places = plan.blocks[0]
    done = frozenset({(places[0], "metamorphic"), (places[1], "value-swap")})
    folder = ResultFolder.create(tmp_path / "parts", whole.manifest)
    said = [*made.run(Task(0, places, done)), *made.run(Task(0, places, _others(places, done)))]
    for one in said:
        assert isinstance(one, SentResults)
        for results in one.results:
            assert not folder.has(results.place, results.relation)
            folder.append(results)
    folder.close()
    assert list(folder.results) == list(whole.results)
    assert [one.last for one in said if isinstance(one, SentResults)][-1] == 0


def _others(places: Any, done: frozenset[tuple[int, str]]) -> frozenset[tuple[int, str]]:
    every = {(place, name) for place in places for name in RELATIONS.split(",")}
    return frozenset(every - done)


def test_seconds_that_were_over_before_count(settings: Settings) -> None:
    late = worker(settings.replace_options(max_seconds=30.0), spent=31.0)
    (said,) = late.run(Task(0, late.plan().blocks[0], frozenset()))
    assert isinstance(said, SentResults)
    assert said.results == ()
    assert said.ended == "the budget of 30 seconds ended"


def test_a_mistake_is_said_and_not_raised(settings: Settings, tmp_path: Path) -> None:
    wrong = BlockWorker(settings.replace_options(model="bot_of_workers:hears"), Surroundings.here())
    said = wrong.prepare()
    assert isinstance(said, Refusal)
    assert "has no attribute 'hears'" in said.message
    away = Surroundings(str(tmp_path / "away"), (), {})
    said = BlockWorker(settings, away).prepare()
    assert isinstance(said, Refusal)
    assert "is not on the node" in said.message


def test_what_is_done_is_kept_whatever_the_keeper_raises(settings: Settings) -> None:
    campaign = Campaign("bot_of_workers:heard", settings=settings)
    (block,) = blocks_of(campaign.drawn)
    kept: list[DialogueResults] = []

    def keep(found: DialogueResults) -> None:
        kept.append(found)
        if len(kept) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BlockRunner(campaign).run(block, lambda _place, _name: False, keep)
    # All of the window of the first relation, and nothing of the second.
    assert [one.place for one in kept] == [one.place for one in block]
    assert {one.relation for one in kept} == {"metamorphic"}


def test_contexts_are_shared_out() -> None:
    settings = Settings.of(max_calls=11)
    shares = shares_of(settings, 3)
    assert [one.budget.max_calls for one in shares] == [4, 4, 3]
    assert shares_of(Settings(), 2) == [Settings(), Settings()]
    with pytest.raises(UserError, match="use --ray-actors 11"):
        shares_of(settings, 12)
    left = left_of(shares[0], 3)
    assert left is not None
    assert left.budget.max_calls == 1
    assert left_of(shares[0], 4) is None
    assert left_of(Settings(), 9) == Settings()
    assert why_ended(settings, ["the budget of 4 calls ended"], 11) == (
        "the budget of 11 calls ended"
    )
    assert why_ended(Settings(), ["nobody answers"], 11) == "nobody answers"


def test_an_actor_is_on_one_node() -> None:
    def node(alive: bool = True, **resources: float) -> dict[str, Any]:
        return {"Alive": alive, "Resources": resources}

    nodes = [node(CPU=4), node(CPU=3), node(alive=False, CPU=64, GPU=8)]
    assert room_for(RayOptions(), nodes).actors == 7
    nodes += [node(CPU=8, GPU=1), node(CPU=8, GPU=2)]
    for gpus, most in ((None, 3), (1.0, 3), (0.5, 6), (0.75, 3), (2.0, 1)):
        room = room_for(RayOptions(gpus=gpus), nodes)
        assert (room.actors, room.cpus, room.gpus) == (most, 0.0, gpus or 1.0)
    assert room_for(RayOptions(actors=5, gpus=0), nodes).gpus == 0
    with pytest.raises(UserError, match=r"only for 6: use --ray-actors 6 or fewer"):
        room_for(RayOptions(actors=9, gpus=0.5), nodes)
    with pytest.raises(UserError, match="use --ray-gpus 0"):
        room_for(RayOptions(gpus=1), [node(CPU=2)])
