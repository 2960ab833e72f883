"""Searches that learn from the first dialogues of a run: rounds, and what does not show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_execution import DATA, PLAN
from toybots import WordBot

from pytest_dstfuzz.campaign.cache import PredictionCache, Store, scope_of
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.learning import rounds_of
from pytest_dstfuzz.campaign.results import CampaignFinished, Event, TurnDone, TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.sampling import rank_in_draw
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.draft import Source
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.search.adaptive import AdaptiveSearch
from pytest_dstfuzz.search.protocol import Lesson, Search, SearchTask, TurnSearch
from pytest_dstfuzz.search.registry import as_search, search_by_name

SETTINGS = Settings.of(variants=3, search="adaptive")


def campaign(lexicon: Lexicon, bot: Any = None, plan: Any = PLAN, **given: Any) -> CampaignEngine:
    settings = given.pop("settings", SETTINGS)
    return CampaignEngine(settings, DATA, bot or WordBot(), lexicon, plan=plan, **given)


def as_text(results: Iterable[TurnResult]) -> list[str]:
    return [json.dumps(result.to_json()) for result in results]


class Pupil(Search):
    """The random search, which notes from which turns it learned."""

    name = "pupil"
    lessons = 7

    def __init__(self, heard: tuple[tuple[str, ...], ...] = ()) -> None:
        self.heard = heard

    def learn(self, lessons: Sequence[Lesson]) -> Pupil:
        return Pupil((*self.heard, tuple(dict.fromkeys(one.task.dialogue.id for one in lessons))))

    def turn(self, task: SearchTask) -> TurnSearch:
        begun.append((task.dialogue.id, sum(map(len, self.heard))))
        return search_by_name("random", seed=0, k=3).turn(task)


begun: list[tuple[str, int]] = []


@pytest.fixture(scope="module")
def plain(lexicon: Lexicon) -> list[str]:
    return as_text(campaign(lexicon).run())


def test_the_rounds_double_and_are_those_of_a_larger_sample() -> None:
    search, seed = AdaptiveSearch(0, 3), SETTINGS.variant.seed
    rounds = rounds_of(search, seed, PLAN)
    assert [*map(len, rounds)] == [2, 2, 4, 6]
    names = [dialogue.id for some in rounds for dialogue, _ in some]
    assert names == sorted(names, key=lambda name: rank_in_draw(seed, name))
    few = [planned for some in rounds[:3] for planned in some]
    assert rounds_of(search, seed, few) == rounds[:3]
    assert rounds_of(search_by_name("random", seed=0, k=3), seed, PLAN) == []


def test_a_search_learns_from_earlier_rounds_only(lexicon: Lexicon) -> None:
    begun.clear()
    list(campaign(lexicon, search=Pupil()).run())
    order = sorted(DATA.ids, key=lambda name: rank_in_draw(0, name))
    known = dict(begun)
    assert [known[name] for name in order[:7]] == [0, 0, 2, 2, 4, 4, 4]
    assert {known[name] for name in order[7:]} == {7}
    # No dialogue runs twice.
    assert len(begun) == sum(last + 1 for _, last in PLAN)


def test_the_adaptive_search_learns_something(lexicon: Lexicon, plain: list[str]) -> None:
    class Forgetful(AdaptiveSearch):
        lessons = 0

    other = as_text(campaign(lexicon, search=Forgetful(0, 3)).run())
    first = rounds_of(AdaptiveSearch(0, 3), SETTINGS.variant.seed, PLAN)[0]
    names = [dialogue.id for dialogue, _ in first]
    same = [one == two for one, two in zip(plain, other, strict=True)]
    assert not all(same)
    assert all(
        is_same
        for is_same, text in zip(same, plain, strict=True)
        if json.loads(text)["dialogue_id"] in names
    )


@pytest.mark.parametrize("given", [{"window": 1}, {"window": 40}, {"ahead": False}], ids=str)
@pytest.mark.parametrize("batch_size", [1, 7])
def test_batches_and_windows_do_not_show(
    lexicon: Lexicon, plain: list[str], given: dict[str, Any], batch_size: int
) -> None:
    settings = SETTINGS.replace_options(batch_size=batch_size)
    assert as_text(campaign(lexicon, settings=settings, **given).run()) == plain


def test_the_order_in_which_results_are_asked_for_does_not_show(
    lexicon: Lexicon, plain: list[str]
) -> None:
    run = campaign(lexicon, ahead=False, window=1)
    for dialogue, last in reversed(PLAN):
        run.result(dialogue.id, last)
    assert as_text(run.run()) == plain


@pytest.mark.parametrize("number", [0, 5, 13])
def test_a_selected_dialogue_has_the_results_of_the_whole_run(
    lexicon: Lexicon, plain: list[str], number: int
) -> None:
    dialogue, last = PLAN[number]
    before = sum(end + 1 for _, end in PLAN[:number])
    run = campaign(lexicon, plan=[(dialogue, 0)], sample=PLAN)
    assert as_text(run.run()) == plain[before : before + 1]
    assert len(run) == 1
    # So have the parts of a run that goes on in another process.
    other = campaign(lexicon, plan=(), sample=PLAN).on([(dialogue, last)])
    assert as_text(other.run()) == plain[before : before + last + 1]


def test_a_single_variant_is_repeated_as_the_search_was_when_it_made_it(
    lexicon: Lexicon, plain: list[str]
) -> None:
    one = SETTINGS.replace_options(variant=2)
    found = [json.loads(text) for text in plain]
    made = {
        (turn["dialogue_id"], turn["turn_index"]): [
            item["text"] for item in turn["variants"] if item["index"] == 2
        ]
        for turn in found
    }
    assert any(made.values())
    for dialogue, last in PLAN[:6]:
        run = campaign(lexicon, plan=[(dialogue, last)], sample=PLAN, settings=one)
        for turn in run.run():
            texts = [variant.text for variant in turn.variants]
            assert texts == made[turn.dialogue_id, turn.turn_index]


def test_no_context_is_asked_twice_and_each_turn_is_told_once(lexicon: Lexicon) -> None:
    bot, told, ends = WordBot(), Counter[str](), []

    def listen(event: Event) -> None:
        if isinstance(event, TurnDone):
            told[event.result.id] += 1
        elif isinstance(event, CampaignFinished):
            ends.append(event.turns)

    run = campaign(lexicon, bot, listener=listen)
    count = len(list(run.run()))
    assert len(set(bot.asked)) == len(bot.asked)
    assert set(told.values()) == {1}
    assert (len(told), ends) == (count, [count])


def test_under_a_budget_it_does_not_learn(lexicon: Lexicon) -> None:
    begun.clear()
    settings = SETTINGS.replace_options(max_calls=10_000)
    list(campaign(lexicon, settings=settings, search=Pupil()).run())
    assert {known for _, known in begun} == {0}


def test_a_run_that_was_interrupted_goes_on_with_the_same_results(
    lexicon: Lexicon, plain: list[str], tmp_path: Path
) -> None:
    class Mortal(WordBot):
        left = 150

        def predict(self, contexts: Any) -> Any:
            self.left -= len(contexts)
            if self.left < 0:
                raise KeyboardInterrupt
            return super().predict(contexts)

    def run(bot: WordBot) -> tuple[list[str], int]:
        store = Store(tmp_path / "kept", 50_000_000)
        door = predictor_for(SETTINGS.replace_options(batch_size=16), DATA, bot)
        door.cache = PredictionCache(store, scope_of(("bot", "1"), DATA))
        try:
            return as_text(campaign(lexicon, door).run()), len(bot.asked)
        finally:
            store.close()

    with pytest.raises(KeyboardInterrupt):
        run(Mortal())
    found, asked = run(WordBot())
    assert found == plain
    assert asked > 0
    assert run(WordBot()) == (plain, 0)


def test_a_search_of_a_suite_that_learns_is_checked(lexicon: Lexicon) -> None:
    begun.clear()
    search = as_search(Pupil(), "Campaign(search=...)")
    list(campaign(lexicon, search=search).run())
    assert max(known for _, known in begun) == 7

    class Lost(Pupil):
        def learn(self, lessons: Sequence[Lesson]) -> Any:
            return [one.tried for one in lessons]

    run = campaign(lexicon, search=as_search(Lost(), "Campaign(search=...)"))
    with pytest.raises(UserError, match=r"learn\(\) of the search 'pupil'"):
        list(run.run())


def test_a_turn_of_a_round_is_prepared_once(
    lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = Counter[str]()
    prepare = Perturber.prepare

    def counted(perturber: Perturber, utterance: str, *given: Any) -> Source:
        prepared[utterance] += 1
        return prepare(perturber, utterance, *given)

    monkeypatch.setattr(Perturber, "prepare", counted)
    list(campaign(lexicon).run())
    # A second engine has its own rules, so it prepares the turns again.
    said = Counter(turn.user for dialogue, last in PLAN for turn in dialogue.turns[: last + 1])
    assert prepared
    assert prepared <= said
