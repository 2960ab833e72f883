"""Windows, batches, memo, locks: how the work is done does not show in the results."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from toybots import FussyBot, Play, WordBot, data_of, talk

from pytest_dstfuzz.campaign import engine as campaign_module
from pytest_dstfuzz.campaign import predictor as predictor_module
from pytest_dstfuzz.campaign.cost import expected_calls
from pytest_dstfuzz.campaign.deciding import ONCE
from pytest_dstfuzz.campaign.engine import (
    WINDOWS_AT_ONCE,
    CampaignEngine,
    predictor_for,
)
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import (
    BatchDone,
    CampaignFinished,
    CampaignStarted,
    Event,
    PilotFinished,
    TurnDone,
    TurnResult,
    WindowStarted,
)
from pytest_dstfuzz.config import BudgetSettings, Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Ontology
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.trackers.tracker import Prediction

RNG = random.Random(5)
SOME = ["please", "where", "a", "cheap", "north", "chinese", "italian", "south", "place", "is"]
TALKS = tuple(
    talk(
        f"talk{number}",
        *(" ".join(RNG.choices(SOME, k=RNG.randint(3, 9))) for _ in range(RNG.randint(1, 6))),
    )
    for number in range(14)
)
DATA = data_of(*TALKS)
PLAN = [(dialogue, len(dialogue.turns) - 1) for dialogue in TALKS]
#: The strict locks would leave a keyword bot nothing to stumble over.
SETTINGS = Settings.of(validity="edit-rate", variants=4, shrink=False)


def campaign(
    lexicon: Lexicon, bot: Any = None, plan: Any = PLAN, settings: Settings = SETTINGS, **given: Any
) -> CampaignEngine:
    return CampaignEngine(settings, DATA, bot or WordBot(), lexicon, plan=plan, **given)


def as_text(results: Iterable[TurnResult]) -> str:
    return json.dumps([result.to_json() for result in results])


@pytest.fixture(scope="module")
def plain(lexicon: Lexicon) -> list[TurnResult]:
    return list(campaign(lexicon).run())


def test_there_is_something_to_see(plain: list[TurnResult]) -> None:
    seen = Counter(variant.outcome for result in plain for variant in result.variants)
    assert {"violation", "carried", "held"} <= set(seen)


@pytest.mark.parametrize("window", [1, 40, 10_000])
@pytest.mark.parametrize("batch_size", [1, 7, 512])
def test_batch_size_and_window_do_not_show(
    lexicon: Lexicon, plain: list[TurnResult], window: int | None, batch_size: int
) -> None:
    settings = SETTINGS.replace_options(batch_size=batch_size)
    assert list(campaign(lexicon, settings=settings, window=window).run()) == plain


@pytest.mark.parametrize("window", [1, 40, None])
def test_what_is_begun_ahead_does_not_show(
    lexicon: Lexicon, plain: list[TurnResult], window: int | None
) -> None:
    batches = []
    for ahead in (False, True):
        bot = WordBot()
        run = campaign(lexicon, bot, window=window, ahead=ahead)
        assert list(run.run()) == plain
        batches.append(bot.batches)
    assert sum(batches[0]) == sum(batches[1])
    # With one window after the other there are more batches that are not full.
    assert len(batches[1]) < len(batches[0]) or window is None


def test_the_first_results_do_not_wait_for_a_whole_plan(lexicon: Lexicon) -> None:
    bot = WordBot()
    settings = SETTINGS.replace_options(batch_size=1)
    run = campaign(lexicon, bot, settings=settings)
    next(iter(run.run()))
    assert len(bot.asked) < 100
    list(run.run())
    assert len(bot.asked) > 200


@pytest.mark.parametrize("stop_at_first", [False, True])
def test_few_windows_are_in_flight(lexicon: Lexicon, stop_at_first: bool) -> None:
    """However many steps a dialogue takes: what is half done is lost by an interrupt."""
    settings = SETTINGS.replace_options(stop_at_first=stop_at_first, variants=2 * WINDOWS_AT_ONCE)
    in_flight: list[int] = []
    done: set[str] = set()

    def listen(event: object) -> None:
        if isinstance(event, WindowStarted):
            assert event.dialogues == 1
            in_flight.append(len(in_flight) + 1 - len(done))
        elif isinstance(event, TurnDone):
            done.add(event.result.dialogue_id)

    list(campaign(lexicon, settings=settings, window=1, listener=listen).run())
    assert len(in_flight) == len(TALKS)
    assert max(in_flight) <= WINDOWS_AT_ONCE
    # With a step for each variant there would be more.
    assert max(in_flight) == WINDOWS_AT_ONCE or not stop_at_first


def test_what_is_answered_is_finished_between_two_requests_too(lexicon: Lexicon) -> None:
    """Of what is in flight, a dialogue that asks for nothing more is there."""
    run = campaign(lexicon, window=40)
    asked = [run.result(dialogue.id, 0) for dialogue in TALKS[:4]]
    finished = run.finished()
    assert set(asked) <= set(finished)
    whole = list(run.run())
    assert [result for result in whole if result in finished] == list(finished)


def test_a_dialogue_that_fails_takes_no_other_with_it(
    lexicon: Lexicon, plain: list[TurnResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = TALKS[2].id
    real = campaign_module.run_dialogue

    def run_dialogue(rules: Any, dialogue: Any, last: int, **options: Any) -> Any:
        if dialogue.id != wrong:
            return (yield from real(rules, dialogue, last, **options))
        yield [dialogue.context(0)]
        raise ValueError("of this dialogue")

    monkeypatch.setattr(campaign_module, "run_dialogue", run_dialogue)
    run = campaign(lexicon)
    for _ in range(3):
        with pytest.raises(ValueError, match="of this dialogue"):
            run.result(wrong, 0)
    others = [result for result in plain if result.dialogue_id != wrong]
    assert list(run.finished()) == [result for result in others if result in run.finished()]
    monkeypatch.undo()
    assert list(run.run()) == plain


@pytest.mark.parametrize("batch_size", [4, 64])
@pytest.mark.parametrize("fails", ["short", "long"])
def test_a_tracker_that_fails_by_length_fails_alike_in_every_window(
    lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch, fails: str, batch_size: int
) -> None:
    monkeypatch.setattr(predictor_module, "GIVE_UP_AFTER", 20)
    monkeypatch.setattr(predictor_module, "LAST_TRIES", 8)

    class Picky(WordBot):
        def answer(self, context: Context) -> Prediction:
            if (context.size() > 90) == (fails == "long"):
                raise ValueError("of this length?")
            return super().answer(context)

    settings = SETTINGS.replace_options(batch_size=batch_size)
    runs = [
        list(campaign(lexicon, Picky(), settings=settings, window=window).run())
        for window in (1, 40, 200, 10_000)
    ]
    assert Counter(turn.outcome == "error" for turn in runs[0])[False] > 10
    assert sum(turn.outcome == "error" for turn in runs[0]) > 10
    for run in runs[1:]:
        assert run == runs[0]


@pytest.mark.parametrize("window", [1, 60, None])
def test_order_of_requests_does_not_show(
    lexicon: Lexicon, plain: list[TurnResult], window: int | None
) -> None:
    order = [(result.dialogue_id, result.turn_index) for result in plain]
    random.Random(1).shuffle(order)
    run = campaign(lexicon, window=window)
    answers = {turn: run.result(*turn) for turn in order}
    assert [answers[result.dialogue_id, result.turn_index] for result in plain] == plain
    assert list(run.finished()) == plain


def test_a_shorter_plan_gives_the_same_results(lexicon: Lexicon, plain: list[TurnResult]) -> None:
    plan = [(dialogue, 0) for dialogue in TALKS[3:7]]
    results = list(campaign(lexicon, plan=plan).run())
    ids = {result.id for result in results}
    assert results == [result for result in plain if result.id in ids]
    assert len(results) == 4


def test_more_variants_leave_the_first_ones_alone(
    lexicon: Lexicon, plain: list[TurnResult]
) -> None:
    more = list(
        campaign(
            lexicon, settings=Settings.of(validity="edit-rate", variants=6, shrink=False)
        ).run()
    )
    for few, many in zip(plain, more, strict=True):
        assert many.variants[:4] == few.variants


def test_every_distinct_context_is_predicted_once(lexicon: Lexicon) -> None:
    bot = WordBot()
    results = list(campaign(lexicon, bot, window=100).run())
    counted = Counter(bot.asked)
    assert set(counted.values()) == {1}
    distinct = sum(result.calls for result in results)
    # Two dialogues may share a context: then it is a call of both, and asked once.
    assert distinct >= len(bot.asked)
    assert distinct - len(bot.asked) <= 2


def test_batches_are_full_and_similar_in_length(lexicon: Lexicon) -> None:
    settings = Settings.of(validity="edit-rate", variants=4, batch_size=16, shrink=False)
    bot = WordBot()
    list(campaign(lexicon, bot, settings=settings, window=10_000).run())
    # Only the last batch may be partly full.
    assert bot.batches[:-1] == [16] * (len(bot.batches) - 1)
    sizes = [context.size() for context in bot.asked]
    falls = sum(after < before for before, after in pairwise(sizes))
    assert falls <= 5  # one at the start of each later request


def test_under_a_budget_no_dialogue_waits_for_a_full_batch(lexicon: Lexicon) -> None:
    settings = Settings.of(validity="edit-rate", variants=4, batch_size=16, shrink=False)
    bot = WordBot()
    results = list(campaign(lexicon, bot, settings=settings, window=10_000).run())
    limited = WordBot()
    budget = settings.replace_options(max_calls=10_000)
    assert list(campaign(lexicon, limited, settings=budget, window=10_000).run()) == results
    assert sorted(limited.batches[:-1]) != sorted(bot.batches[:-1])


def test_campaigns_may_share_a_predictor(lexicon: Lexicon, plain: list[TurnResult]) -> None:
    bot = WordBot()
    door = predictor_for(SETTINGS, DATA, bot)
    other = Settings.of(validity="edit-rate", variants=4, seed=9, shrink=False)
    first = CampaignEngine(SETTINGS, DATA, door, lexicon, plan=PLAN)
    second = CampaignEngine(other, DATA, door, lexicon, plan=PLAN)
    assert list(first.run()) == plain
    asked = len(bot.asked)
    results = list(second.run())
    assert set(Counter(bot.asked).values()) == {1}
    # The clean contexts were known, and yet each campaign says what it costs on its own.
    assert len(bot.asked) - asked < sum(result.calls for result in results)


def test_results_are_json_in_and_out(plain: list[TurnResult]) -> None:
    again = [TurnResult.from_json(json.loads(json.dumps(r.to_json()))) for r in plain]
    assert again == plain
    assert as_text(again) == as_text(plain)


def test_ids_are_readable(plain: list[TurnResult]) -> None:
    assert plain[0].id == "toy-test-talk0-t0"


def test_events_tell_the_story(lexicon: Lexicon) -> None:
    events = []
    run = campaign(lexicon, window=50, listener=events.append)
    results = list(run.run())
    turns = len(results)
    started = events[0]
    assert isinstance(started, CampaignStarted)
    assert (started.dialogues, started.turns) == (len(TALKS), turns)
    (relation,) = relations_named("metamorphic", DATA)
    expected = expected_calls(SETTINGS.variant, relation, ONCE, PLAN)
    assert expected.turns == turns
    assert expected.least <= events[-1].calls <= expected.most
    assert events[-1] == CampaignFinished(turns, 0, calls=events[-1].calls)
    assert [event.result for event in events if isinstance(event, TurnDone)] == results
    windows = [event for event in events if isinstance(event, WindowStarted)]
    assert len(windows) > 2
    assert sum(window.turns for window in windows) == turns
    assert sum(window.dialogues for window in windows) == len(TALKS)
    assert all(window.contexts <= 50 or window.dialogues == 1 for window in windows)
    batches = [event for event in events if isinstance(event, BatchDone)]
    assert sum(batch.contexts for batch in batches) == batches[-1].calls == events[-1].calls


@pytest.mark.parametrize("limits", [{}, {"max_seconds": 1e6}])
def test_a_pilot_tells_what_all_turns_will_take_and_does_not_show(
    lexicon: Lexicon, limits: dict[str, float]
) -> None:
    now = [0.0]

    class Slow(WordBot):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            now[0] += 1.0 * len(contexts)
            return super().predict(contexts)

    bot, plain, events = Slow(), WordBot(), list[Event]()
    budget = Budget(BudgetSettings(**limits), clock=lambda: now[0])
    many = tuple(replace(one, id=f"{one.id}-{n}") for n in range(8) for one in TALKS)
    plan = [(one, len(one.turns) - 1) for one in many]
    found: dict[bool, list[TurnResult]] = {}
    for slow in (False, True):
        if slow:
            with budget.besides(8):
                bot.predict([many[0].context(0)] * 8)
        settings = SETTINGS.replace_options(batch_size=16)
        engine = CampaignEngine(
            settings, data_of(*many), Predictor(bot, 16, budget=budget) if slow else plain,
            lexicon, plan=plan, listener=events.append, spread=True,
        )  # fmt: skip
        found[slow] = list(engine.run())
    assert found[True] == found[False]
    (pilot,) = (event for event in events if isinstance(event, PilotFinished))
    assert pilot.planned == len(found[True])
    # Eight contexts were for the first answers.
    asked = len(bot.asked) - 8
    assert pilot.asked < asked / 2
    # Copies of a dialogue share some contexts, and each result counts its own.
    assert pilot.calls == pytest.approx(sum(one.calls for one in found[True]), rel=0.1)
    # The pilot requests nothing that the campaign does not need.
    assert asked == len(plain.asked)


def test_variants_are_made_once(play: Play) -> None:
    dialogues = tuple(talk(f"d{i}", "cheap", "north") for i in range(4))
    run = play(dialogues, {"cheap": ["chaep", "cheep"]}, variants=2, redraws=0, window=1)
    run.campaign.result("d2", 0)
    list(run.campaign.run())
    list(run.campaign.run())
    assert run.script.applied == 4 * 2 * 2


def test_with_labels_and_ontology_the_label_is_locked(play: Play) -> None:
    dialogue = talk("d", "cheap north", labels=[{"hotel-area": "north"}])
    run = play(dialogue, {})
    list(run.campaign.run())
    assert run.script.prepared == [("cheap north", ("north",), "")]


def test_without_labels_the_prediction_is_locked(play: Play) -> None:
    run = play(talk("d", "cheap", "north"), {})
    list(run.campaign.run())
    assert [(values, system) for _, values, system in run.script.prepared] == [
        (("cheap",), ""),
        (("cheap", "north"), "system 1"),
    ]


def test_without_ontology_label_and_prediction_are_locked(play: Play) -> None:
    dialogue = talk("d", "cheap north", labels=[{"hotel-area": "south"}])
    run = play(dialogue, {}, ontology=None)
    list(run.campaign.run())
    assert run.script.prepared[0][1] == ("cheap", "north", "south")


def test_spellings_of_a_prediction_are_no_violation(lexicon: Lexicon) -> None:
    class Speller(WordBot):
        def state(self, context: Context) -> dict[str, str]:
            state = super().state(context)
            odd = len(context.user) % 2
            return {slot: value.upper() if odd else value for slot, value in state.items()} | (
                {"hotel-price": state.get("hotel-price", "")} if odd else {}
            )

    assert list(campaign(lexicon, Speller()).run()) == list(campaign(lexicon).run())


def test_of_slots_that_no_label_uses_the_prediction_is_locked(play: Play) -> None:
    dialogue = talk("d", "cheap north", labels=[{"hotel-area": "south"}])
    run = play(dialogue, {}, ontology=Ontology({"hotel-area": ("south",)}, complete=False))
    (result,) = run.campaign.run()
    assert result.clean_state == {"hotel-area": "north", "hotel-price": "cheap"}
    assert run.script.prepared[0][1] == ("cheap", "south")


def test_a_failed_clean_turn_has_no_prediction_to_lock(play: Play) -> None:
    run = play(talk("d", "cheap boom"), {}, FussyBot())
    list(run.campaign.run())
    assert run.script.prepared[0][1] == ()


def test_plans_that_make_no_sense(lexicon: Lexicon) -> None:
    with pytest.raises(ValueError, match="planned twice"):
        campaign(lexicon, plan=[PLAN[0], PLAN[0]])
    with pytest.raises(ValueError, match="has no turn 99"):
        campaign(lexicon, plan=[(TALKS[0], 99)])
    run = campaign(lexicon, plan=[(TALKS[0], 0)])
    with pytest.raises(KeyError):
        run.result("nobody", 0)
    with pytest.raises(KeyError):
        run.result(TALKS[0].id, 1)
    assert run.finished() == ()


def test_gold_without_any_label_is_refused(lexicon: Lexicon) -> None:
    with pytest.raises(UserError, match=r"the data 'toy' .* no turn has one"):
        campaign(lexicon, settings=Settings.of(relation="gold"))


def test_an_unknown_search_is_refused(lexicon: Lexicon) -> None:
    with pytest.raises(UserError, match=r"unknown search 'randam'. Did you mean 'random'"):
        campaign(lexicon, settings=Settings.of(search="randam"))


@pytest.mark.parametrize("attack", ["non-cumulative", "cumulative", "hybrid"])
def test_one_variant_alone_is_what_it_is_among_the_others(lexicon: Lexicon, attack: str) -> None:
    settings = Settings.of(validity="edit-rate", variants=3, attack=attack)
    together = list(campaign(lexicon, settings=settings).run())
    for number in range(3):
        alone = campaign(lexicon, settings=settings.replace_options(variant=number)).run()
        for one, all_of_them in zip(alone, together, strict=True):
            (found,) = one.variants
            expected = all_of_them.variants[number]
            # Alone it copies no other variant; what its twin changed it changed too.
            if expected.outcome != "duplicate":
                assert found == expected
