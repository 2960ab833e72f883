"""A tracker that misbehaves: the offending context gets a reason, everything else goes on."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from toybots import ONTOLOGY, FussyBot, PanicError, WordBot, talk

from pytest_dstfuzz.campaign import predictor as predictor_module
from pytest_dstfuzz.campaign.answers import TrackerFailure, check_answer, count_asked
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.campaign.results import BatchDone, BudgetReached, ErrorSeen, Event
from pytest_dstfuzz.config import BudgetSettings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Ontology
from pytest_dstfuzz.errors import GivenUpError, TrackerError
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import describe_error

#: What ends a test or the run, and is no failure of the tracker.
STOPS = [
    KeyboardInterrupt,
    pytest.exit.Exception,
    pytest.fail.Exception,
    pytest.skip.Exception,
]


def contexts(*users: str) -> list[Context]:
    return [talk(str(i), user).context(0) for i, user in enumerate(users)]


class Says:
    """Answers a batch with whatever it was made with, or calls it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls = 0

    def predict(self, batch: Sequence[Context]) -> Any:
        self.calls += 1
        return self.answer(batch) if callable(self.answer) else self.answer


def test_a_raising_context_is_found_and_the_others_are_answered() -> None:
    asked = contexts(*(f"north {i}" for i in range(15)), "boom", *(f"cheap {i}" for i in range(15)))
    bot, events = FussyBot(), []
    answers = Predictor(bot, 64, listener=events.append).predict(asked)
    failures = {context: a for context, a in answers.items() if isinstance(a, TrackerFailure)}
    (reason,) = (failure.reason for failure in failures.values())
    assert list(failures) == [asked[15]]
    assert re.fullmatch(r"ValueError: cannot read 'boom' \(toybots\.py:\d+\)", reason)
    assert len(answers) == 31
    # One path of halves down to the one context, not a call for each.
    assert len(bot.batches) <= 1 + 2 * math.ceil(math.log2(31))
    assert [e for e in events if isinstance(e, ErrorSeen)] == [ErrorSeen(reason, ("boom",))]
    assert events[-1] == BatchDone(31, 1, 31)


def test_each_of_several_offenders_is_found() -> None:
    asked = contexts("boom 1", "north", "boom 2", "cheap", "boom 3")
    answers = Predictor(FussyBot(), 64).predict(asked)
    assert [isinstance(answers[context], TrackerFailure) for context in asked] == [1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _: [], "the tracker returned 0 predictions for 1 context"),
        (lambda _: [Prediction(BeliefState())] * 3, "returned 3 predictions for 1 context"),
        (None, "returned None instead of a sequence of predictions"),
        ("north", "returned a str instead of a sequence"),
        ({"hotel-area": "north"}, "returned a dict instead of a sequence"),
        (42, "returned an int instead of a sequence"),
        (lambda batch: [None] * len(batch), "returned None instead of a Prediction"),
        (lambda batch: ["x"] * len(batch), "returned a str instead of a Prediction"),
        (lambda batch: [{"hotel-area": 3}] * len(batch), "an int as the value of 'hotel-area'"),
        (lambda batch: [{"hotel-area": None}] * len(batch), "None as the value of 'hotel-area'"),
        (lambda batch: [{3: "north"}] * len(batch), "the slot 3, which is an int"),
        (
            lambda batch: [{"hotel-aera": "north"}] * len(batch),
            "which the ontology of the data does not have; did you mean 'hotel-area'?",
        ),
        (lambda batch: [{"zzz": "north"}] * len(batch), "ontology of the data does not have"),
        (lambda batch: [Prediction([])] * len(batch), "a list instead of a belief state"),
        (
            lambda batch: [Prediction(BeliefState(), {"hotel-area": math.nan})] * len(batch),
            "nan as the impurity of 'hotel-area'",
        ),
        (
            lambda batch: [Prediction(BeliefState(), {"hotel-area": 1.5})] * len(batch),
            "1.5 as the impurity of 'hotel-area'; impurities must be from 0 to 1",
        ),
        (
            lambda batch: [Prediction(BeliefState(), {"hotel-area": "0.5"})] * len(batch),
            "'0.5' as the impurity of 'hotel-area'",
        ),
        (
            lambda batch: [Prediction(BeliefState(), 0.5)] * len(batch),
            "a float instead of a mapping slot -> impurity",
        ),
    ],
)
def test_nonsense_gets_a_reason(answer: Any, reason: str) -> None:
    (failure,) = Predictor(Says(answer), 4, ontology=ONTOLOGY).predict(contexts("north")).values()
    assert isinstance(failure, TrackerFailure)
    assert reason in failure.reason


def test_too_few_predictions_are_blamed_on_the_batches_that_lack_them() -> None:
    def lose_one(batch: Sequence[Context]) -> list[Prediction]:
        return [p for c, p in zip(batch, WordBot().predict(batch), strict=True) if c.user != "bad"]

    asked = contexts("north", "cheap", "bad", "south", "chinese")
    answers = Predictor(Says(lose_one), 5).predict(asked)
    assert [c.user for c, a in answers.items() if isinstance(a, TrackerFailure)] == ["bad"]


def test_one_wrong_entry_is_asked_for_again_alone() -> None:
    asked: list[int] = []

    def one_wrong(batch: Sequence[Context]) -> list[Any]:
        asked.append(len(batch))
        return [7 if c.user == "bad" else {"hotel-area": "north"} for c in batch]

    bot = Says(one_wrong)
    answers = Predictor(bot, 5, ontology=ONTOLOGY, retries=2).predict(contexts("a", "bad", "b"))
    assert asked == [3, 1, 1]
    assert [isinstance(a, TrackerFailure) for a in answers.values()] == [0, 0, 1]  # by length


def test_mappings_numpy_numbers_and_iterables_are_fine() -> None:
    prediction = Prediction({"hotel-area": "north"}, {"hotel-area": np.float32(0.5)})
    for answer in (prediction, {"hotel-area": "north"}):
        checked = check_answer(answer, ONTOLOGY)
        assert isinstance(checked, Prediction)
        assert checked.state == BeliefState({"hotel-area": "north"})
        assert isinstance(checked.state, BeliefState)
    answers = Predictor(Says(iter), 3).predict(contexts("a"))
    assert all(isinstance(answer, TrackerFailure) for answer in answers.values())
    answers = Predictor(Says(lambda batch: ({} for _ in batch)), 3).predict(contexts("a", "b"))
    assert all(isinstance(answer, Prediction) for answer in answers.values())


@pytest.mark.parametrize("wrap", [dict, BeliefState, lambda s: Prediction(BeliefState(s), {})])
@pytest.mark.parametrize(
    ("normalisation", "said", "meant"),
    [
        (
            "plain",
            {"Size": " LARGE ", "a": "none", "b": "", "c": "not mentioned"},
            {"size": "large", "a": "none", "c": "not mentioned"},
        ),
        ("plain", {"size": "don't care"}, {"size": "dontcare"}),
        ("plain", {"hotel-leaveAt": "at 5:45pm"}, {"hotel-leaveat": "at 5:45pm"}),
        ("plain", {"hotel-extras": '["B", "a"]'}, {"hotel-extras": '["a", "b"]'}),
        ("multiwoz", {"taxi-leaveAt": "5:45pm", "police-name": "x"}, {"taxi-leaveat": "17:45"}),
        ("multiwoz", {"hotel-area": "center"}, {"hotel-area": "centre"}),
    ],
)
def test_states_are_brought_to_the_normalisation_of_the_data(
    wrap: Any, normalisation: str, said: dict[str, str], meant: dict[str, str]
) -> None:
    ontology = Ontology(dict.fromkeys(meant, ()))
    checked = check_answer(wrap(said), ontology, normalisation)
    assert isinstance(checked, Prediction)
    assert checked.state == meant


def test_a_canonical_prediction_is_taken_as_it_is() -> None:
    prediction = Prediction(BeliefState({"hotel-area": "north"}), {"hotel-area": 0.5})
    assert check_answer(prediction, ONTOLOGY, "multiwoz") is prediction
    assert check_answer(prediction.state, ONTOLOGY) == Prediction(prediction.state)


def test_any_slot_will_do_without_an_ontology() -> None:
    assert isinstance(check_answer({"pizza": "yes"}, None), Prediction)


def test_any_slot_will_do_where_the_ontology_is_not_complete() -> None:
    labels_only = replace(ONTOLOGY, complete=False)
    assert isinstance(check_answer({"pizza": "yes"}, labels_only), Prediction)


def test_reasons_are_one_short_line_without_addresses() -> None:
    assert describe_error(ValueError("<object at 0x7f001234abcd>\n  in line 2")) == (
        "ValueError: <object at 0x...> in line 2"
    )
    assert describe_error(KeyError()) == "KeyError"
    assert describe_error(TrackerError("not <x at 0x7f001234abcd>")) == "not <x at 0x...>"
    assert describe_error(ValueError("\ud800")) == "ValueError: \\ud800"
    assert len(describe_error(ValueError("x" * 1000))) == 300


def test_a_failure_says_where_the_tracker_raised() -> None:
    class Raises(FussyBot):
        def answer(self, context: Context) -> Prediction:
            raise KeyError(context.user)

    (answer,) = Predictor(Raises()).predict(contexts("north")).values()
    assert isinstance(answer, TrackerFailure)
    assert re.fullmatch(r"KeyError: 'north' \(test_predictor\.py:\d+\)", answer.reason)


def test_a_panic_is_a_failure_like_any_other() -> None:
    class Panics(FussyBot):
        def answer(self, context: Context) -> Prediction:
            try:
                return super().answer(context)
            except ValueError as error:
                raise PanicError(str(error)) from None

    asked = contexts("north", "boom", "cheap")
    answers = Predictor(Panics(), 64).predict(asked)
    failure = answers[asked[1]]
    assert isinstance(failure, TrackerFailure)
    assert failure.reason.startswith("PanicError: cannot read 'boom' (test_predictor.py:")
    assert [isinstance(answers[context], TrackerFailure) for context in asked] == [0, 1, 0]


def test_halves_that_were_answered_survive_an_interrupt() -> None:
    class Stops(FussyBot):
        def answer(self, context: Context) -> Prediction:
            if context.user == "the longest of all":
                raise KeyboardInterrupt
            return super().answer(context)

    bot, events = Stops(), []
    door = Predictor(bot, 8, listener=events.append)
    asked = contexts("boom", "north", "south!", "the longest of all")
    with pytest.raises(KeyboardInterrupt):
        door.predict(asked)
    assert list(door.known(asked)) == asked[:2]
    assert door.calls == 2
    assert events[-1] == BatchDone(2, 1, 2)


@pytest.mark.parametrize("stop", STOPS)
def test_interrupts_pass_through_and_keep_what_was_answered(stop: type[BaseException]) -> None:
    class Stops(WordBot):
        armed = True

        def answer(self, context: Context) -> Prediction:
            if self.armed and context.user == "a long stop":
                raise stop
            return super().answer(context)

    bot = Stops()
    door = Predictor(bot, 2)
    asked = contexts("a", "b", "a long stop")
    with pytest.raises(stop):
        door.predict(asked)
    assert len(door.known(asked)) == 2
    bot.armed = False
    assert len(door.predict(asked)) == 3
    assert Counter(bot.asked)[asked[0]] == 1


def test_a_tracker_that_always_fails_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictor_module, "GIVE_UP_AFTER", 20)
    bot = Says(lambda _: 1 / 0)
    line = bot.answer.__code__.co_firstlineno
    monkeypatch.setattr(predictor_module, "LAST_TRIES", 4)
    events: list[Any] = []
    door = Predictor(bot, 8, listener=events.append)
    asked = contexts(*(f"north {i}" for i in range(500)))
    answers = door.predict(asked)
    assert len(answers) == 500
    assert all(isinstance(answer, TrackerFailure) for answer in answers.values())
    assert bot.calls == 4 * 15  # three batches, and one spread over what is left
    unasked = TrackerFailure(
        "not called: the tracker failed on all of the first 32 contexts, "
        f"the last time with: ZeroDivisionError: division by zero (test_predictor.py:{line})",
        asked=False,
    )
    assert list(answers.values())[32:] == [unasked] * 468
    # Neither paid for nor counted, now or later.
    more = contexts("a later one")
    assert door.predict(more) == {more[0]: unasked}
    assert door.calls == 32 == sum(e.contexts for e in events if isinstance(e, BatchDone))
    assert count_asked(asked, answers) == 32
    assert bot.calls == 4 * 15


@pytest.mark.parametrize("batch_size", [1, 8, 64])
@pytest.mark.parametrize("fails", ["short", "long", "all but the longest"])
def test_a_tracker_that_answers_some_lengths_is_asked_to_the_end(
    monkeypatch: pytest.MonkeyPatch, fails: str, batch_size: int
) -> None:
    monkeypatch.setattr(predictor_module, "GIVE_UP_AFTER", 20)
    limits = {"short": range(1, 150), "long": range(150, 200), "all but the longest": range(199)}

    class Picky(WordBot):
        def answer(self, context: Context) -> Prediction:
            if len(context.user) in limits[fails]:
                raise ValueError(len(context.user))
            return super().answer(context)

    answers = Predictor(Picky(), batch_size).predict(contexts(*("x" * i for i in range(1, 200))))
    wrong = [len(c.user) for c, a in answers.items() if isinstance(a, TrackerFailure)]
    assert sorted(wrong) == [i for i in limits[fails] if i]
    assert all(a.asked for a in answers.values() if isinstance(a, TrackerFailure))


def test_failures_between_successes_are_no_reason_to_give_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(predictor_module, "GIVE_UP_AFTER", 3)
    monkeypatch.setattr(predictor_module, "LAST_TRIES", 1)
    users = [("boom" if i % 3 else "fine") + f" {i:03}" for i in range(60)]
    answers = Predictor(FussyBot(), 1).predict(contexts(*users))
    assert sum(isinstance(answer, TrackerFailure) for answer in answers.values()) == 40


def test_the_oldest_answers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictor_module, "MEMORY", 5)
    bot = WordBot()
    door = Predictor(bot, 4)
    asked = contexts(*"abcdefgh")
    assert len(door.predict(asked)) == 8
    assert list(door.known(asked)) == asked[3:]
    assert len(door.predict(asked)) == 8
    assert door.calls == 11


def test_the_tracker_cannot_change_the_batch() -> None:
    class Thief(WordBot):
        def predict(self, batch: Sequence[Context]) -> list[Prediction]:
            assert isinstance(batch, tuple)
            return super().predict(batch)

    assert len(Predictor(Thief(), 2).predict(contexts("a", "b", "c"))) == 3


def test_calls_are_granted_to_the_last_one() -> None:
    events = []
    bot = WordBot()
    door = Predictor(bot, 4, budget=Budget(BudgetSettings(max_calls=6)), listener=events.append)
    answers = door.predict(contexts(*"abcdefgh"))
    assert len(answers) == 6
    assert bot.batches == [4, 2]
    assert len(door.predict(contexts(*"abcdefgh"))) == 6
    assert [e for e in events if isinstance(e, BudgetReached)] == [
        BudgetReached("the budget of 6 calls ended", 6)
    ]


def test_seconds_end_between_batches() -> None:
    now = [0.0]

    class Slow(WordBot):
        def predict(self, batch: Sequence[Context]) -> list[Prediction]:
            now[0] += 1.0
            return super().predict(batch)

    door = Predictor(
        Slow(), 2, budget=Budget(BudgetSettings(max_seconds=2.5), clock=lambda: now[0])
    )
    assert len(door.predict(contexts(*"abcdefghij"))) == 6
    assert door.budget.ended == "the budget of 2.5 seconds ended"


def test_the_forecast_follows_what_is_left() -> None:
    now = [0.0]
    assert Budget().forecast() == math.inf
    assert not Budget().limited
    budget = Budget(BudgetSettings(max_seconds=10.0, max_calls=1000), clock=lambda: now[0])
    assert budget.limited
    assert budget.forecast() == 64
    now[0] = 5.0
    budget.spend(400)
    assert budget.forecast() == 400
    now[0] = 12.0
    assert budget.forecast() == 0
    assert budget.grant(5) == 0


@pytest.mark.parametrize("raised", [True, False])
def test_a_tracker_that_gives_up_is_asked_nothing_more(raised: bool) -> None:
    """Turns without an answer do not count as failed."""
    events: list[Event] = []

    class GivesUp(WordBot):
        def predict(self, batch: Sequence[Context]) -> list[Any]:
            found: list[Any] = list(super().predict(batch))
            if any(context.user == "d" for context in batch):
                if raised:
                    raise GivenUpError("nobody is there")
                found[-1] = GivenUpError("nobody is there")
            return found

    bot = GivesUp()
    door = Predictor(bot, 2, listener=events.append)
    answers = door.predict(contexts(*"abcdefgh"))
    assert len(answers) == (2 if raised else 3)
    assert not any(isinstance(answer, TrackerFailure) for answer in answers.values())
    assert bot.batches == [2, 2]
    assert len(door.predict(contexts(*"abcdefgh"))) == len(answers)
    assert bot.batches == [2, 2]
    assert [e.reason for e in events if isinstance(e, BudgetReached)] == ["nobody is there"]
    with pytest.raises(GivenUpError, match="nobody is there"):
        door.refuse_if_given_up()


def test_a_budget_that_ends_is_no_reason_to_refuse() -> None:
    door = Predictor(WordBot(), 2, budget=Budget(BudgetSettings(max_calls=3)))
    door.predict(contexts(*"abcd"))
    door.refuse_if_given_up()
