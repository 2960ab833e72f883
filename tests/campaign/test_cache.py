"""Predictions that are used again: exactly, only where they may be, and each asked for once."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import wrapt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toybots import ONTOLOGY, FussyBot, UnsureBot, WordBot, data_of, talk

from pytest_dstfuzz.campaign import predictor as predictor_module
from pytest_dstfuzz.campaign.answers import TrackerFailure, check_answer
from pytest_dstfuzz.campaign.cache import PredictionCache, Store, scope_of
from pytest_dstfuzz.campaign.predictor import Budget, Predictor
from pytest_dstfuzz.config import BudgetSettings, ReplySettings, Settings
from pytest_dstfuzz.dialogue.dialogues import Again, BeliefState, Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import Overrun, UserError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.adapting import taker_of
from pytest_dstfuzz.trackers.tracker import (
    Disagreement,
    Prediction,
    fingerprint_of,
    fingerprint_problem,
)

DATA = data_of(talk("D1", "north"))
Open = Callable[..., PredictionCache]
NUMBERS = count()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open the cache of a tracker, each time as another process would."""
    stores = []

    def build(
        *tracker: str, run: str = "", data: DialogueSet = DATA, file: str = "c"
    ) -> PredictionCache:
        stores.append(Store(tmp_path / file, 10_000_000))
        return PredictionCache(stores[-1], scope_of(tracker or ("bot", "1"), data), run)

    yield build
    for store in stores:
        store.close()
        assert store.problems == []


def contexts(*users: str) -> list[Context]:
    return [Context((Exchange("", user),)) for user in users]


TEXTS = st.text(st.characters(), max_size=20)
STATES = st.dictionaries(TEXTS, TEXTS, max_size=4).map(BeliefState)
SHARES = st.floats(0, 1) | st.integers(0, 1).map(float)
PREDICTIONS = st.builds(Prediction, STATES, st.none() | st.dictionaries(TEXTS, SHARES, max_size=4))
CONTEXTS = st.lists(st.builds(Exchange, TEXTS, TEXTS), min_size=1, max_size=3).map(
    lambda exchanges: Context(tuple(exchanges))
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(answers=st.dictionaries(CONTEXTS, PREDICTIONS, max_size=5))
def test_a_prediction_comes_back_as_it_was(
    answers: dict[Context, Prediction], opened: Open
) -> None:
    tracker = f"bot {next(NUMBERS)}"
    opened(tracker).keep(answers)
    found = opened(tracker).recall(answers)
    assert found == answers
    for context, prediction in answers.items():
        impurities = prediction.impurities or {}
        assert list(found[context].impurities or {}) == list(impurities)


@pytest.mark.parametrize(
    "other",
    [
        {"tracker": ("bot", "2")},
        {"tracker": ("another bot", "1")},
        {"tracker": ("bot1", "")},
        {"data": replace(DATA, normalisation="multiwoz")},
        {"data": replace(DATA, ontology=replace(ONTOLOGY, values={"hotel-area": ()}))},
        {"data": replace(DATA, ontology=None)},
    ],
)
def test_what_another_tracker_or_other_data_left_is_not_used(
    opened: Open, other: dict[str, Any]
) -> None:
    asked = contexts("north")
    opened().keep({asked[0]: Prediction(BeliefState({"hotel-area": "north"}))})
    tracker = other.pop("tracker", ("bot", "1"))
    assert opened(*tracker, **other).recall(asked) == {}
    assert len(opened().recall(asked)) == 1


def test_values_of_the_ontology_and_slots_of_labels_do_not_matter(opened: Open) -> None:
    asked = contexts("north")
    known = {asked[0]: Prediction(BeliefState())}
    opened().keep(known)
    values = dict.fromkeys(ONTOLOGY.values, ("other",))
    assert opened(data=replace(DATA, ontology=replace(ONTOLOGY, values=values))).recall(asked)
    labels = replace(DATA, ontology=replace(ONTOLOGY, complete=False))
    fewer = replace(DATA, ontology=replace(ONTOLOGY, complete=False, values={}))
    opened(data=labels).keep(known)
    assert opened(data=fewer).recall(asked) == known


def test_answers_to_one_question_asked_again_are_kept_apart(opened: Open) -> None:
    (first,) = contexts("north")
    again = [Again(first.exchanges, number) for number in (1, 2)]
    answers = {
        context: Prediction(BeliefState({"hotel-area": area}))
        for context, area in zip([first, *again], ("north", "south", "east"), strict=True)
    }
    opened().keep(answers)
    assert opened().recall(answers) == answers


def test_a_failure_is_not_kept(opened: Open) -> None:
    asked = contexts("north", "boom")
    bot = FussyBot()
    first = Predictor(bot, 4, cache=opened()).predict(asked)
    bot.asked.clear()
    second = Predictor(bot, 4, cache=opened()).predict(asked)
    assert first == second
    assert isinstance(second[asked[1]], TrackerFailure)
    assert [context.user for context in bot.asked] == ["boom"]


def test_the_preflight_of_the_same_contexts_is_remembered(opened: Open) -> None:
    asked, measured = contexts("a", "b"), Disagreement(2, 3, 1)
    assert opened().preflight(asked, lambda: None) is None
    assert opened("other").preflight(asked, lambda: measured) == measured
    assert opened().preflight(asked, lambda: measured) is None
    assert opened("other").preflight(asked, lambda: None) == measured
    assert opened().preflight(asked[::-1], lambda: measured) == measured


def test_a_preflight_that_refused_the_tracker_is_made_again(opened: Open) -> None:
    def refuse() -> None:
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        opened(run="run").preflight(contexts("a"), refuse)
    # Its claim is given up too: nobody waits.
    assert opened(run="run").preflight(contexts("a"), lambda: None) is None


def test_one_process_of_a_run_makes_the_preflight(opened: Open) -> None:
    measured, begun, let = Disagreement(2, 3, 1), threading.Event(), threading.Event()

    def slowly() -> Disagreement:
        begun.set()
        assert let.wait(20)
        return measured

    def other() -> None:
        cache = opened(run="run")
        cache.preflight(contexts("a"), slowly)
        cache._store.close()

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(20)
    threading.Timer(0.1, let.set).start()
    # It would measure nothing.
    assert opened(run="run").preflight(contexts("a"), lambda: None) == measured
    thread.join()


def test_a_second_run_asks_nothing_and_spends_nothing(opened: Open) -> None:
    bot, asked = UnsureBot(), contexts(*(f"north {number}" for number in range(50)))
    first = Predictor(bot, 8, cache=opened())
    answers = first.predict(asked)
    assert (first.calls, first.recalled, len(bot.asked)) == (50, 0, 50)
    events: list[Any] = []
    second = Predictor(
        bot, 8, cache=opened(), budget=Budget(BudgetSettings(max_calls=3)), listener=events.append
    )
    assert second.predict(asked) == answers
    assert (second.calls, second.recalled, len(bot.asked)) == (0, 50, 50)
    assert events == []
    assert second.known(asked) == answers
    more = contexts(*"abcde")
    assert len(second.predict([*asked, *more])) == 53
    assert len(bot.asked) == 53


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Overrun])
def test_a_batch_that_is_cut_keeps_no_answer_of_another_version(
    opened: Open, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictor_module, "WRITE_EVERY", 0.0)  # Answers are written one by one.
    asked = contexts(*"abcdefgh")
    fingerprint = "1"

    class Reloading(UnsureBot):
        @property
        def fingerprint(self) -> str:
            return fingerprint

        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            nonlocal fingerprint
            take = taker_of(self)
            for place, answer in enumerate(super().predict(contexts)[:2]):
                take(place, answer)
                fingerprint = "2"
            raise stop

    predictor = Predictor(Reloading(), 4, cache=opened(), fingerprint="1")
    with suppress(KeyboardInterrupt):
        predictor.predict(asked)
    assert predictor.known(asked) == {}
    assert opened().recall(asked) == {}


def test_each_batch_is_kept_at_once(opened: Open) -> None:
    """A killed run loses only what it was asking for."""

    class Killed(WordBot):
        def predict(self, batch: Sequence[Context]) -> list[Prediction]:
            if len(self.batches) == 3:
                raise KeyboardInterrupt
            return super().predict(batch)

    asked = contexts(*(f"{number:02}" for number in range(40)))
    with pytest.raises(KeyboardInterrupt):
        Predictor(Killed(), 8, cache=opened()).predict(asked)
    assert len(opened().recall(asked)) == 24


def test_numbers_are_the_same_from_the_tracker_and_from_the_cache(opened: Open) -> None:
    class Single(WordBot):
        def answer(self, context: Context) -> Prediction:
            shares: dict[str, Any] = {"hotel-area": np.float32(0.1)}
            return Prediction(BeliefState(self.state(context)), shares)

    asked = contexts("a")
    (first,) = Predictor(Single(), 4, cache=opened()).predict(asked).values()
    (second,) = Predictor(Single(), 4, cache=opened()).predict(asked).values()
    for answer in (first, second):
        assert isinstance(answer, Prediction)
        assert answer.impurities is not None
        number = answer.impurities["hotel-area"]
        assert type(number) is float
        assert number == float(np.float32(0.1))
    assert check_answer(Prediction(BeliefState(), {"hotel-area": 0}), None) == Prediction(
        BeliefState(), {"hotel-area": 0.0}
    )


def test_a_tracker_that_answered_before_is_asked_to_the_end(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed and goes on must give up on a tracker where the whole one does."""
    monkeypatch.setattr(predictor_module, "GIVE_UP_AFTER", 4)
    monkeypatch.setattr(predictor_module, "LAST_TRIES", 1)
    asked = contexts("north", *(f"boom {number}" for number in range(20)))
    whole = Predictor(FussyBot(), 2, cache=opened(file="whole")).predict(asked)
    Predictor(FussyBot(), 2, cache=opened()).predict(asked[:1])
    resumed = Predictor(FussyBot(), 2, cache=opened()).predict(asked)
    assert resumed == whole
    assert all(answer.asked for answer in resumed.values() if isinstance(answer, TrackerFailure))


class Slow(WordBot):
    """Answers once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let = threading.Event(), threading.Event()

    def predict(self, batch: Sequence[Context]) -> list[Prediction]:
        self.begun.set()
        assert self.let.wait(20)
        return super().predict(batch)


@pytest.mark.parametrize("broken", [False, True])
def test_what_another_process_asks_for_is_waited_for(opened: Open, broken: bool) -> None:
    asked = contexts("north", "south", "cheap")
    slow, quick = Slow(), WordBot()
    if broken:
        slow.words = {"north": 1 / 2}  # type: ignore[dict-item]  # it fails on what says so
    found: list[Any] = []

    def other() -> None:
        cache = opened(run="run")
        found.append(Predictor(slow, 8, cache=cache).predict(asked[:2]))
        # No other thread can.
        cache._store.close()

    thread = threading.Thread(target=other)
    thread.start()
    assert slow.begun.wait(20)
    door = Predictor(quick, 8, cache=opened(run="run"))
    threading.Timer(0.2, slow.let.set).start()
    answers = door.predict(asked)
    thread.join()
    assert set(answers) == set(asked)
    own = ["cheap", "north"] if broken else ["cheap"]
    assert sorted(context.user for context in quick.asked) == own
    if not broken:
        assert {context: answers[context] for context in asked[:2]} == found[0]


def test_nobody_waits_for_a_run_that_is_over(opened: Open) -> None:
    asked, bot = contexts("north"), WordBot()
    opened(run="killed").claim(asked)
    assert len(Predictor(bot, 8, cache=opened(run="resumed")).predict(asked)) == 1
    assert len(bot.asked) == 1


def test_a_fingerprint_is_a_text_that_is_declared() -> None:
    class Declares:
        fingerprint: Any = "1"

        def reset(self) -> None: ...

        def update(self, system: str, user: str) -> dict[str, str]:
            return {"hotel-name": f"{system} {user}"}

    adapted = as_tracker(Declares())
    assert fingerprint_of(Declares()) == fingerprint_of(adapted) == "1"
    for none in (None, "", 1, lambda: "1"):
        Declares.fingerprint = none
        assert fingerprint_of(Declares()) is None
        assert fingerprint_of(adapted) is None
    assert fingerprint_of(WordBot()) is None


class Inner(WordBot):
    fingerprint = "1"


class Noisy(WordBot):
    """A user's wrapper, which changes the answers of the object inside."""

    def __init__(self) -> None:
        super().__init__()
        self.wrapped = Inner()


class Proxy(Noisy):
    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)


@pytest.mark.parametrize("kind", [Noisy, Proxy])
def test_a_wrapper_of_a_user_has_not_the_fingerprint_of_its_object(kind: type[Noisy]) -> None:
    assert fingerprint_of(kind()) is None
    assert fingerprint_of(as_tracker(kind())) is None
    assert fingerprint_problem(kind()) == ""


def known(_: Context) -> dict[str, str]:
    return {}


known.fingerprint = "1"  # type: ignore[attr-defined]  # as users do


def wrapped_function() -> Any:
    @functools.wraps(known)
    def wrapper(context: Context) -> dict[str, str]:
        return {**known(context), "hotel-name": "x"}

    return wrapper


class WrappedObject:
    def __init__(self) -> None:
        functools.update_wrapper(self, known)

    def predict(self, contexts: Sequence[Context]) -> list[dict[str, str]]:
        return [{} for _ in contexts]


@pytest.mark.parametrize("made", [wrapped_function, WrappedObject])
def test_functools_does_not_pass_a_fingerprint_on(made: Callable[[], Any]) -> None:
    one = made()
    assert one.fingerprint == "1"
    assert fingerprint_of(one) is fingerprint_of(as_tracker(one)) is None
    assert "wrapped object" in fingerprint_problem(one)
    one.fingerprint = "1, with x"
    assert fingerprint_of(one) == fingerprint_of(as_tracker(one)) == "1, with x"
    assert fingerprint_problem(one) == ""
    assert fingerprint_of(known) == "1"


def copies(function: Any) -> Any:
    def inner(context: Context) -> BeliefState:
        return BeliefState({**function(context), "hotel-area": "west"})

    inner.__dict__.update(function.__dict__)
    return inner


def test_a_decorator_does_not_pass_a_fingerprint_on() -> None:
    one = copies(known)
    assert fingerprint_of(one) is fingerprint_of(as_tracker(one)) is None
    assert "wrapped object" in fingerprint_problem(one)


class Known:
    fingerprint = "1"

    def __call__(self, context: Context) -> dict[str, str]:
        return known(context)


@functools.lru_cache
def remembering(_: Context) -> None:
    """Answer nothing."""


remembering.fingerprint = "1"  # type: ignore[attr-defined]  # as users do


class Holder:
    def __init__(self, held: object) -> None:
        self.held = held
        self.__dict__.update(fingerprint="1")

    def __call__(self, context: Context) -> object:
        return {**self.held(context), "hotel-area": "west"}  # type: ignore[operator]


def in_closure(held: Any) -> Any:
    def outer(context: Context) -> Any:
        return held, context

    return outer


def in_default(held: Any) -> Any:
    def outer(context: Context, held: Any = held) -> Any:
        return held, context

    return outer


def in_keyword(held: Any) -> Any:
    def outer(context: Context, *, held: Any = held) -> Any:
        return held, context

    return outer


def in_global(held: Any) -> Any:
    names = {"held": held}
    exec("def outer(context): return [held(one) for one in context]", names)  # noqa: S102 - a fixed text
    return names["outer"]


#: How a user's own wrapper holds the bot that it calls.
HOLDING = {
    "closure": in_closure,
    "default": in_default,
    "keyword": in_keyword,
    "global name": in_global,
    "module": lambda held: in_global(SimpleNamespace(bot=held)),
    "argument of a partial": lambda held: functools.partial(in_closure, held),
    "partial itself": functools.partial,
    "attribute": Holder,
    "list": lambda held: in_closure([held]),
    "tuple": lambda held: in_closure((0, held)),
    "set": lambda held: in_closure({held}),
    "dictionary": lambda held: in_default({"bot": held}),
    "partial in a closure": lambda held: in_closure(functools.partial(held)),
    "another function": lambda held: in_closure(in_closure(held)),
}
#: The bots that it holds.
HELD = {
    "function": known,
    "object": Known(),
    "method": Known().__call__,
    "remembering": remembering,
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
@pytest.mark.parametrize("holds", HOLDING.values(), ids=HOLDING)
def test_no_wrapper_passes_a_fingerprint_on(holds: Callable[[Any], Any], held: object) -> None:
    one = holds(held)
    one.__dict__.update(fingerprint="1")
    assert fingerprint_of(one) is fingerprint_of(as_tracker(one)) is None
    assert "wrapped object" in fingerprint_problem(one)
    # Its own one counts, though, and that of the inner one.
    one.__dict__.update(fingerprint="1, with x")
    assert fingerprint_of(one) == fingerprint_of(as_tracker(one)) == "1, with x"
    assert fingerprint_of(known) == fingerprint_of(Known()) == "1"


def test_a_fingerprint_that_a_class_takes_is_its_own() -> None:
    @dataclass(frozen=True)
    class Versioned:
        fingerprint: str
        network: object

        def __call__(self, _: Context) -> dict[str, str]:
            return {}

    assert fingerprint_of(Versioned("1", Known())) == "1"


class Says:
    """A base class whose fingerprint is about its own answers."""

    fingerprint = "1"
    word = "north"

    def predict(self, contexts: Sequence[Context]) -> list[BeliefState]:
        return [self.answer(context) for context in contexts]

    def answer(self, context: Context) -> BeliefState:
        return BeliefState({"hotel-area": self.word} if context.user else {})


class SaysLater(ABC):
    """A base class that sets its fingerprint when it is made."""

    def __init__(self) -> None:
        self.fingerprint = "1"

    @abstractmethod
    def __call__(self, context: Context) -> BeliefState: ...


class Reads:
    """A part of a bot that computes the fingerprint of the whole."""

    @property
    def fingerprint(self) -> str:
        return f"1 {type(self).__name__}"


def west(_: object, *__: object) -> Any:
    return BeliefState({"hotel-area": "west"})


#: The bases of a class, and its own attributes -> whether the inherited fingerprint counts.
INHERITED: dict[str, tuple[tuple[type, ...], dict[str, Any], bool]] = {
    "nothing": ((Says,), {"__doc__": "The same bot."}, True),
    "another attribute": ((Says,), {"size": 3}, True),
    "the method that is asked": ((Says,), {"predict": west}, False),
    "a method that this one uses": ((Says,), {"answer": west}, False),
    "an attribute that this one uses": ((Says,), {"word": "west"}, False),
    "the same two classes up": ((type("Same", (Says,), {}),), {"answer": west}, False),
    "an abstract method": ((SaysLater,), {"__call__": west}, False),
    "a fingerprint, too": ((Says,), {"answer": west, "fingerprint": "2"}, True),
    "a computed one": ((Reads,), {"__call__": west}, True),
}


@pytest.mark.parametrize("case", INHERITED)
def test_a_class_that_answers_otherwise_inherits_no_fingerprint(case: str) -> None:
    bases, own, counts = INHERITED[case]
    one = type("Own", bases, own)()
    assert one.fingerprint
    found = one.fingerprint if counts else None
    assert fingerprint_of(one) == fingerprint_of(as_tracker(one)) == found
    problem = "" if counts else "give Own its own fingerprint"
    assert fingerprint_problem(one).endswith(problem)
    assert bool(fingerprint_problem(one)) is not counts


def test_a_fingerprint_that_is_set_from_outside_counts() -> None:
    one = type("Own", (Says,), {"answer": west})()
    one.fingerprint = "2"
    assert fingerprint_of(one) == fingerprint_of(as_tracker(one)) == "2"
    assert fingerprint_problem(one) == ""


class Given:
    """A base class that gets its fingerprint."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def __call__(self, context: Context) -> BeliefState:
        return BeliefState({"hotel-area": context.user})


def test_a_fingerprint_that_is_passed_to_a_base_class_counts() -> None:
    class Own(Given):
        def __init__(self) -> None:
            super().__init__(fingerprint="2")

        def __call__(self, _: Context) -> BeliefState:
            return BeliefState({"hotel-area": "west"})

    assert fingerprint_of(Own()) == "2"
    assert fingerprint_problem(Own()) == ""


def test_a_proxy_does_not_pass_a_fingerprint_on():
    one = wrapt.ObjectProxy(known)
    assert one.fingerprint == "1"
    assert fingerprint_of(one) is None
    assert "wrapped object" in fingerprint_problem(one)


def test_replies_are_kept_apart_from_states_and_by_whose_replies_the_system_is_shown() -> None:
    who = ("bot", "1")
    states = scope_of(who, DATA)
    assert scope_of(who, DATA, ReplySettings()) == states
    replies = [
        scope_of(who, DATA, Settings.of(outcome="reply", **more).reply)
        for more in ({}, {"history": "own"}, {"compare": "exact"})
    ]
    assert len({states, *replies}) == 3
    assert replies[0] == replies[2]
