"""Announced numbers of calls against the calls of whole runs."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from toybots import ONTOLOGY, WordBot, data_of, talk

from pytest_dstfuzz.campaign.cost import expected_calls, rehearse
from pytest_dstfuzz.campaign.deciding import ONCE, Vote
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import Event, PilotFinished
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.relations.registry import relation_for
from pytest_dstfuzz.trackers.tracker import Prediction

PLACES = ("north", "south")
TALKS = tuple(
    talk(
        f"d{i:02}",
        f"I am looking for a cheap place to stay for {i + 2} nights",
        f"It should be in the {PLACES[i % 2]} of the town, please",
        f"Do they serve {('chinese', 'italian')[i % 2]} food there for guests?",
        *["Thank you, that is all I wanted to know"] * (i % 3),
        labels=[{"hotel-price": "cheap"}],
    )
    for i in range(24)
)
DATA = data_of(*TALKS)
PLAN = [(dialogue, len(dialogue.turns) - 1) for dialogue in TALKS]


@dataclass
class BrittleBot(WordBot):
    """Fills a slot with the wrong value for a part of all contexts."""

    wrong: int = 0

    def state(self, context: Context) -> dict[str, str]:
        text = "|".join(context.user_utterances)
        broken = zlib.crc32(text.encode()) % 100 < self.wrong
        return {**super().state(context), "food-kind": "chinese" if broken else "italian"}


@dataclass(frozen=True)
class _Run:
    said: list[PilotFinished]
    asked: int


def run(lexicon: Lexicon, options: dict[str, object], *, wrong: int, votes: int = 1) -> _Run:
    """Run a bot that needs a second for each answer. Return its estimates and its calls."""
    now, said = [0.0], list[PilotFinished]()

    class Slow(BrittleBot):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            now[0] += len(contexts)
            return super().predict(contexts)

    def listen(event: Event) -> None:
        if isinstance(event, PilotFinished):
            said.append(event)

    bot, budget = Slow(wrong=wrong), Budget(clock=lambda: now[0])
    with budget.besides(8):
        now[0] += 8.0
    settings = Settings.of(**options)
    decider = Vote(votes) if votes > 1 else ONCE
    predictor = Predictor(
        bot, budget=budget, decider=decider, repeats=votes == 1, ontology=ONTOLOGY
    )
    campaign = CampaignEngine(settings, DATA, predictor, lexicon, plan=PLAN, listener=listen)
    assert list(campaign.run())
    return _Run(said, len(bot.asked))


@pytest.mark.parametrize(
    ("options", "votes", "wrong"),
    [
        ({}, 1, 0),
        ({}, 1, 20),
        ({"search": "random"}, 1, 5),
        ({}, 3, 20),
        ({"variants": 2}, 1, 20),
        ({"search": "greedy"}, 1, 20),
    ],
    ids=["stable", "brittle", "random", "votes", "two", "greedy"],
)
def test_an_announced_number_of_calls_is_close(
    lexicon: Lexicon, options: dict[str, object], votes: int, wrong: int
) -> None:
    found = run(lexicon, options, wrong=wrong, votes=votes)
    last = found.said[-1]
    assert last.asked < 0.7 * found.asked
    # Either the number is close, or its interval says that it may not be.
    close = abs(last.calls - found.asked) <= 0.1 * found.asked
    assert close or last.low <= found.asked <= last.high
    assert 0.7 * last.calls < last.low <= last.calls < last.high < 1.4 * last.calls


def test_a_pilot_does_not_depend_on_the_first_dialogues(lexicon: Lexicon) -> None:
    """All turns have a variant in the pilot, so a few turns with many violations count once."""
    found = run(lexicon, {}, wrong=15)
    errors = [one.calls / found.asked - 1 for one in found.said]
    assert all(abs(error) < 0.1 for error in errors)


def test_variants_that_a_relation_does_not_make_are_not_announced(lexicon: Lexicon) -> None:
    settings = Settings.of(relation="value-swap")
    relation = relation_for("value-swap", DATA, "state")
    rules = CampaignSpec.of(settings.variant, DATA, lexicon, relation=relation)
    bot = WordBot()
    list(CampaignEngine(settings, DATA, bot, lexicon, plan=PLAN).run())
    rough = expected_calls(settings.variant, relation, ONCE, PLAN)
    close = rehearse(rough, rules, PLAN)
    assert len(bot.asked) < 0.8 * rough.least
    assert close.least < rough.least
    assert close.most < rough.most


@pytest.mark.parametrize("name", ["aside", "split", "join", "restate", "duplicate"])
def test_variants_with_another_number_of_rounds_are_announced(lexicon: Lexicon, name: str) -> None:
    settings = Settings.of(relation=name)
    relation = relation_for(name, DATA, "state")
    rules = CampaignSpec.of(settings.variant, DATA, lexicon, relation=relation)
    rough = expected_calls(settings.variant, relation, ONCE, PLAN)
    close = rehearse(rough, rules, PLAN)
    assert 0 < close.least <= close.most <= rough.most
