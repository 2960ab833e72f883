"""Campaigns of a search that waits: what later turns are seen with, and what a wait costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from planted import PlantedBot, data_of, dialogues
from scorers import ABOUT, random_weights

from pytest_dstfuzz.agents.scorers import save_scorer
from pytest_dstfuzz.agents.searches import waiting
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.search.protocol import (
    NO_ACTION,
    Feedback,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)
from pytest_dstfuzz.trackers.tracker import Prediction


class Listening(PlantedBot):
    """Remembers what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Context] = []

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        self.asked += contexts
        return super().predict(contexts)


class Doubling(Search):
    """Doubles the first letter of one word of the utterance after the other, or waits."""

    name = "doubling"
    adaptive = waits = True

    def __init__(self, waits_at: Sequence[tuple[int, int]]) -> None:
        self.waits_at = waits_at
        #: Turn, variant and draw of each proposal.
        self.proposed: list[tuple[int, int, int]] = []

    def turn(self, task: SearchTask) -> TurnSearch:
        return DoublingTurn(self, task)


class DoublingTurn(TurnSearch):
    def __init__(self, search: Doubling, task: SearchTask) -> None:
        self.search, self.task = search, task

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        del seen
        index = self.task.turn_index
        self.search.proposed.append((index, number, draw))
        if (index, number) in self.search.waits_at:
            return waiting(self.task)
        word = self.task.source.words[number]
        edit = Edit("char_insert", "repeat", word.start, word.start, "", word.text[0])
        return Proposal(self.task.perturber.remake(self.task.source, [edit]), NO_ACTION)


def campaign(
    search: Search | str, talks: Sequence[Dialogue], bot: PlantedBot, **changes: object
) -> CampaignEngine:
    name = search if isinstance(search, str) else "random"
    given = {"validity": "edit-rate", "variants": 3, "shrink": False, **changes}
    return CampaignEngine(
        Settings.of(search=name, **given),
        data_of(talks),
        bot,
        load_lexicon(),
        plan=[(dialogue, len(dialogue.turns) - 1) for dialogue in talks],
        search=None if isinstance(search, str) else search,
    )


def test_later_turns_are_seen_with_the_last_variant_before_a_wait() -> None:
    """In a cumulative campaign; of a turn that has had no variant yet with its clean utterance."""
    talks, bot = dialogues(1, turns=2), Listening()
    search = Doubling(waits_at=[(0, 0), (0, 2)])
    list(campaign(search, talks, bot, attack="cumulative").run())
    first = talks[0].turns[0].user
    changed = first.split()
    changed[1] = changed[1][0] + changed[1]
    later = [context for context in bot.asked if len(context.exchanges) == 2]
    earlier = [
        context.user_utterances[0] for context in later if context.user != talks[0].turns[1].user
    ]
    assert earlier == [first, " ".join(changed), " ".join(changed)]


def test_a_wait_is_not_drawn_again_and_asks_nothing() -> None:
    talks, bot = dialogues(1), Listening()
    search = Doubling(waits_at=[(0, 1)])
    (result,) = campaign(search, talks, bot, redraws=5).run()
    assert search.proposed == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]
    assert len(bot.asked) == result.calls == 3


@pytest.fixture
def name(tmp_path: Path) -> str:
    """The search with a scorer that nobody trained."""
    save_scorer(tmp_path / "any.safetensors", random_weights(spread=0.1), ABOUT)
    return f"bandit:{tmp_path / 'any.safetensors'}"


@pytest.mark.parametrize("validity", ["natural", "strict"])
def test_results_depend_on_no_order(name: str, validity: str) -> None:
    talks = dialogues(4, turns=2)
    found = []
    for order, batch in ((talks, 64), (talks[::-1], 1)):
        run = campaign(name, order, PlantedBot(), validity=validity, batch_size=batch, seed=4)
        found.append({(one.dialogue_id, one.turn_index): one.variants for one in run.run()})
    assert found[0] == found[1]
    assert sum(variant.valid for variants in found[0].values() for variant in variants) >= 12
