"""What is refused before a run, and what is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange, Ontology
from pytest_dstfuzz.errors import OutOfReachError, TrackerError, UserError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import (
    Deadline,
    check_predictions,
    in_training_mode,
    preflight,
)

CONTEXTS = [Context((Exchange("", "word " * number),)) for number in range(1, 6)]
ONTOLOGY = Ontology({"size": ("large",)})


class Model:
    """A tracker whose batch prediction is given."""

    def __init__(self, predict: Callable[[Sequence[Context]], Any]) -> None:
        self.predict = predict


def each(function: Callable[[Context], Prediction]) -> Model:
    return Model(lambda contexts: [function(context) for context in contexts])


def state(value: str, impurity: float | None = None) -> Prediction:
    impurities = None if impurity is None else {"size": impurity}
    return Prediction(BeliefState({"size": value}), impurities)


def test_a_sound_tracker_passes() -> None:
    preflight(each(lambda context: state(context.user, 0.3)), CONTEXTS, ontology=ONTOLOGY)


def test_nothing_to_predict_is_nothing_to_refuse() -> None:
    preflight(each(lambda _: state("x")), [])


def test_plain_mappings_are_predictions_too() -> None:
    preflight(Model(lambda contexts: [{"size": "x"} for _ in contexts]), CONTEXTS)


def test_a_tracker_that_fails_on_some_contexts_passes() -> None:
    def picky(context: Context) -> Prediction:
        if len(context.user) > 12:
            raise ValueError("too long")
        return state("x")

    preflight(each(picky), CONTEXTS)
    with pytest.raises(
        UserError, match=r"the tracker raised an exception on a clean context: ValueError: too l"
    ):
        preflight(each(picky), CONTEXTS[3:])


def test_a_tracker_that_fails_on_batches_alone_is_refused() -> None:
    def alone(contexts: Sequence[Context]) -> list[Prediction]:
        if len(contexts) > 1:
            raise MemoryError("out of memory")
        return [state("x")]

    with pytest.raises(
        UserError, match=r"raised an exception on a batch of 5 clean contexts: MemoryError"
    ):
        preflight(Model(alone), CONTEXTS)


class PanicError(BaseException):
    """What a panic in Rust looks like from Python: no `Exception`."""


@pytest.mark.parametrize("kind", [PanicError, SystemExit, GeneratorExit])
def test_a_panic_is_an_error_like_any_other(kind: type[BaseException]) -> None:
    def panics(context: Context) -> Prediction:
        if len(context.user) > 12:
            raise kind("index out of bounds")
        return state("x")

    preflight(each(panics), CONTEXTS)
    with pytest.raises(
        UserError, match=rf"raised an exception on a clean context: {kind.__name__}: index out"
    ):
        preflight(each(panics), CONTEXTS[3:])


@pytest.mark.parametrize("stop", [KeyboardInterrupt, pytest.skip.Exception])
def test_what_is_no_failure_of_the_tracker_passes_through(stop: type[BaseException]) -> None:
    def stops(_: Context) -> Prediction:
        raise stop

    with pytest.raises(stop):
        preflight(each(stops), CONTEXTS)


def test_too_few_predictions_are_refused() -> None:
    with pytest.raises(UserError, match=r"returned 1 prediction for 5 contexts"):
        preflight(Model(lambda _: [state("x")]), CONTEXTS)


def test_a_random_tracker_is_refused() -> None:
    numbers = itertools.count()
    with pytest.raises(UserError, match=r"not deterministic: .*context 1: size: 5 -> 15"):
        preflight(each(lambda _: state(str(next(numbers)))), CONTEXTS)


TALK = [("", "one hawaii"), ("size", "a large one"), ("ok", "and cola"), ("ok", "thanks")]


class Leaky:
    """Keeps its state from context to context, and reads the newest turn alone."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [self.answer(context) for context in contexts]

    def answer(self, context: Context) -> Prediction:
        if len(context.exchanges) == 1:
            self.state = {}
        self.state |= {word: "yes" for word in ("hawaii", "large", "cola") if word in context.user}
        return Prediction(BeliefState(self.state))


def growing(count: int) -> list[Context]:
    exchanges = [Exchange(*pair) for pair in TALK]
    return [Context(tuple(exchanges[: number + 1])) for number in range(count)]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_state_that_leaks_from_context_to_context_is_refused(count: int) -> None:
    with pytest.raises(UserError, match=r"'s answer depends on .*(hawaii|cola): .*eep no data"):
        preflight(Leaky(), growing(count))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_state_that_leaks_between_calls_alone_is_refused(count: int) -> None:
    class LeaksBetweenCalls(Leaky):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            if len(contexts) == 1:
                return super().predict(contexts)
            return [Leaky().predict(growing(len(c.exchanges)))[-1] for c in contexts]

    with pytest.raises(UserError, match=r"depends on the batch: .*hawaii: yes -> none"):
        preflight(LeaksBetweenCalls(), growing(count))


def test_a_batch_asked_backwards_tells_state_from_chance() -> None:
    class LeaksInBatches(Leaky):
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            return (
                super().predict(growing(len(contexts[0].exchanges)))[-1:]
                if (len(contexts) == 1)
                else super().predict(contexts)
            )

    with pytest.raises(UserError, match=r"depends on earlier contexts: .* cola: none -> yes"):
        preflight(LeaksInBatches(), growing(4))


@pytest.mark.parametrize("count", range(1, 9))
def test_no_pass_but_the_first_batch_goes_forwards(count: int) -> None:
    asked: list[int] = []
    contexts = [Context((Exchange("", "x" * number),)) for number in range(1, count + 1)]

    def note(context: Context) -> Prediction:
        asked.append(len(context.user))
        return state("x")

    preflight(each(note), contexts)
    forwards = list(range(1, count + 1))
    alone, first, second = asked[:count], asked[count : 2 * count], asked[2 * count :]
    assert (first, second) == (forwards, forwards[::-1])
    assert sorted(alone) == forwards
    assert count == 1 or alone != forwards
    assert count < 3 or alone != forwards[::-1]


def test_dropout_shows_in_the_impurities() -> None:
    numbers = itertools.count()
    with pytest.raises(UserError, match=r"not deterministic: .* impurity of size: 0.0.* and 0.1"):
        preflight(each(lambda _: state("x", next(numbers) / 100)), CONTEXTS)


def test_rounding_in_the_impurities_does_not_matter() -> None:
    numbers = itertools.count()
    preflight(each(lambda _: state("x", 0.5 + next(numbers) / 1e6)), CONTEXTS)


def test_an_answer_that_depends_on_the_batch_is_refused() -> None:
    with pytest.raises(UserError, match=r"depends on the batch: .*size: 5 -> 1"):
        preflight(Model(lambda batch: [state(str(len(batch)))] * len(batch)), CONTEXTS)


def test_an_unknown_slot_is_refused_where_slots_are_known() -> None:
    tracker = each(lambda _: Prediction(BeliefState({"siez": "x"})))
    preflight(tracker, CONTEXTS)
    preflight(tracker, CONTEXTS, ontology=Ontology({"size": ("large",)}, complete=False))
    with pytest.raises(
        UserError, match=r"'siez', which the ontology of the data does not have; did you mean 'siz"
    ):
        preflight(tracker, CONTEXTS, ontology=ONTOLOGY)
    with pytest.raises(UserError, match=r"the data does not have$"):
        preflight(each(lambda _: Prediction(BeliefState({"q": "x"}))), CONTEXTS, ontology=ONTOLOGY)


def test_slots_are_known_in_whatever_spelling_the_normalisation_takes() -> None:
    tracker = Model(lambda batch: [{"Taxi-leaveAt": "9", "bus-day": "x", "z": "none"}] * len(batch))
    known = Ontology({"taxi-leaveat": ()}, normalisation="multiwoz")
    preflight(tracker, CONTEXTS, ontology=known)
    with pytest.raises(UserError, match=r"the slot 'bus-day'"):
        preflight(tracker, CONTEXTS, ontology=Ontology({"taxi-leaveat": ()}))


@pytest.mark.parametrize("place", ["training", "model", "network"])
def test_training_mode_is_refused(place: str) -> None:
    tracker = each(lambda _: state("x"))
    setattr(tracker, place, True if place == "training" else SimpleNamespace(training=True))
    with pytest.raises(UserError, match=r"is in training mode"):
        preflight(tracker, CONTEXTS)


def test_training_mode_is_seen_through_an_adapter() -> None:
    def track(_: Context) -> dict[str, str]:
        return {}

    track.model = SimpleNamespace(training=True)  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=r"is in training mode"):
        preflight(as_tracker(track), CONTEXTS)


def test_a_method_called_training_is_no_mode() -> None:
    class Tracker:
        def training(self) -> None: ...

    assert not in_training_mode(Tracker())
    assert not in_training_mode(SimpleNamespace(training=False))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("xx", "returned a str instead of a sequence of predictions"),
        (None, "returned None instead of a sequence of predictions"),
        ({1: 2, 3: 4}, "returned a dict instead of a sequence of predictions"),
        ([state("x")], "returned 1 prediction for 2 contexts"),
        ([state("x"), "y"], "returned a str instead of a Prediction"),
        ([state("x"), Prediction(["a"])], "returned a list instead of a belief state"),  # type: ignore[arg-type]
        ([state("x"), {"a": 3}], "returned an int as the value of 'a'; values must be strings"),
        ([state("x"), {3: "a"}], "the slot 3, which is an int"),
        ([state("x"), state("x", float("nan"))], "nan as the impurity of 'size'"),
        ([state("x"), state("x", "low")], "'low' as the impurity of 'size'"),  # type: ignore[arg-type]
        (
            [state("x"), state("x", 1.5)],
            "1.5 as the impurity of 'size'; impurities must be from 0 to 1",
        ),
        ([state("x"), state("x", 10**400)], "as the impurity of 'size'"),
        ([state("x"), state("\ud800")], "contains a lone surrogate"),
        ([state("x"), {"a": "b", 3: "c"}], "the slot 3, which is an int"),
        (
            [state("x"), Prediction(BeliefState(), 0.5)],
            "a float instead of a mapping slot -> impur",
        ),  # type: ignore[arg-type]
        ([state("x"), Prediction(BeliefState(), {3: 0.5})], "an impurity of 3, which is an int"),  # type: ignore[dict-item]
    ],
)
def test_nonsense_is_described(answer: object, message: str) -> None:
    with pytest.raises(TrackerError, match=message):
        check_predictions(answer, 2)


def test_a_slow_tracker_is_not_asked_when_its_time_is_over() -> None:
    now = [0.0]

    def slow(context: Context) -> Prediction:
        now[0] += 1.0
        return state(context.user, 0.3)

    def test(seconds: float) -> None:
        deadline = Deadline(seconds, "the minute", clock=lambda: now[0])
        preflight(each(slow), CONTEXTS, ontology=ONTOLOGY, deadline=deadline)

    for seconds in (2.5, len(CONTEXTS) + 0.5):
        with pytest.raises(OutOfReachError, match="the tracker was not tested: the minute ended"):
            test(seconds)
    test(100)
