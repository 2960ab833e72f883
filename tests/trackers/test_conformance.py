"""The conformance kit: sound trackers pass, and each broken one is told what is wrong with it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Exchange,
    Ontology,
    Turn,
)
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_set
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.conformance import CHECKS, Conformance, check_tracker, find_meant_value
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker

VALUES = {
    "order-size": ("small", "large"),
    "order-crust": ("stuffed", "thin"),
    "order-price": ("cheap", "expensive"),
    "order-time": ("09:30", "18:15"),
}


def believed(context: Context) -> dict[str, str]:
    """Return the values that were named last: what a sound tracker of pizza orders does."""
    return {
        slot: word for word in words(context) for slot, known in VALUES.items() if word in known
    }


def words(context: Context) -> list[str]:
    return [word for said in context.user_utterances for word in said.split()]


def dialogues() -> DialogueSet:
    """Ten orders of five turns, some long-winded and some short."""
    made = []
    for number, said in zip(range(10), itertools.cycle(itertools.product(*VALUES.values()))):
        turns: list[Turn] = []
        for index, value in enumerate(said[number % 4 :] + said[: number % 4] + ("thanks",)):
            text = f"a pizza that is {value} {'and so on ' * (number * 3 % 7)}"
            turns.append(Turn(index, "what else?" if index else "", text))
        dialogue = Dialogue(f"p{number}", tuple(turns))
        states = [BeliefState(believed(dialogue.context(turn.index))) for turn in turns]
        labelled = (replace(turn, state=states[turn.index]) for turn in turns)
        made.append(Dialogue(dialogue.id, tuple(labelled)))
    return DialogueSet("pizza", "test", tuple(made), Ontology(VALUES))


DATA = dialogues()


class Model:
    """A tracker whose batch prediction is given."""

    def __init__(self, predict: Callable[[Sequence[Context]], Any]) -> None:
        self.predict = predict


def each(function: Callable[[Context], object]) -> Model:
    return Model(lambda contexts: [function(context) for context in contexts])


def statuses(found: Conformance, status: str) -> list[str]:
    return [finding.check for finding in found.findings if finding.status == status]


def checked(tracker: Tracker) -> Conformance:
    return check_tracker(tracker, DATA, 16)


# -- sound trackers --------------------------------------------------------------------


class FromTurnToTurn:
    """Keeps its state as the protocol allows: until it is told to forget it."""

    def reset(self) -> None:
        self.state: dict[str, str] = {}

    def update(self, system: str, user: str) -> dict[str, str]:
        self.state |= believed(Context((Exchange(system, user),)))
        return self.state


class Memoising:
    """Gives the same object again for a context that it knows."""

    def __init__(self) -> None:
        self.known: dict[Context, dict[str, str]] = {}

    def predict(self, contexts: Sequence[Context]) -> list[dict[str, str]]:
        return [self.known.setdefault(context, believed(context)) for context in contexts]


def with_absent_slots(context: Context) -> dict[str, str]:
    return dict.fromkeys(VALUES, "") | believed(context)


def with_impurities(context: Context) -> Prediction:
    state = BeliefState(believed(context))
    return Prediction(state, {slot: min(len(context.user), 99) / 99 for slot in state})


SOUND = {
    "a function": as_tracker(believed),
    "mappings": each(believed),
    "predictions": each(with_impurities),
    "absent slots written as empty": each(with_absent_slots),
    "state from turn to turn": as_tracker(FromTurnToTurn()),
    "a memory of its own answers": Memoising(),
    "a generator": Model(lambda contexts: (believed(context) for context in contexts)),
}


@pytest.mark.parametrize("tracker", SOUND.values(), ids=SOUND)
def test_a_sound_tracker_passes_every_check(tracker: Tracker) -> None:
    found = checked(tracker)
    assert statuses(found, "passed") == [check.name for check in CHECKS], found.explain()
    assert found.passed
    assert found.evaluation is not None
    assert found.evaluation.joint_goal_accuracy == 1.0
    assert list(found.throughput) == [1, 2, 7, 16, 50]  # There are 50 turns, so no 64.
    assert all(rate > 0 for rate in found.throughput.values())


@pytest.mark.nightly
def test_the_shipped_trade_passes() -> None:
    pytest.importorskip("torch")
    data = sample_set(load_dialogues("sample"), 20, seed=0)
    found = check_tracker(resolve_tracker("trade"), data)
    assert found.failures == (), found.explain()
    assert statuses(found, "skipped") == []
    assert found.evaluation is not None
    assert found.evaluation.right > 0


# -- broken trackers -------------------------------------------------------------------

NUMBERS = itertools.count()


def by_chance(context: Context) -> dict[str, str]:
    state = believed(context)
    return {slot: value for slot, value in state.items() if next(NUMBERS) % 3}


def dropout() -> Tracker:
    tracker = each(by_chance)
    tracker.model = SimpleNamespace(training=True)  # type: ignore[attr-defined]
    return tracker


def uncertain(context: Context) -> Prediction:
    state = BeliefState(believed(context))
    return Prediction(state, {slot: next(NUMBERS) % 9 / 10 for slot in state})


class NeverForgets(FromTurnToTurn):
    def __init__(self) -> None:
        super().reset()

    def reset(self) -> None:
        """Nothing is cleared."""


class LeaksBetweenCalls:
    """Begins with what the call before ended with."""

    last: Mapping[str, str] = {}

    def predict(self, contexts: Sequence[Context]) -> list[dict[str, str]]:
        answers = [dict(self.last) | believed(context) for context in contexts]
        self.last = believed(contexts[-1])
        return answers


def cut_to_the_shortest(contexts: Sequence[Context]) -> list[dict[str, str]]:
    count = min(len(context.exchanges) for context in contexts)
    return [believed(Context(context.exchanges[:count])) for context in contexts]


def confused_by_a_long_one(contexts: Sequence[Context]) -> list[dict[str, str]]:
    longest = max(context.size() for context in contexts)
    return [{} if longest > 1500 > context.size() else believed(context) for context in contexts]


def sorted_by_length(contexts: Sequence[Context]) -> list[dict[str, str]]:
    return [believed(context) for context in sorted(contexts, key=Context.size)]


def each_once(contexts: Sequence[Context]) -> list[dict[str, str]]:
    return list({context.user_utterances: believed(context) for context in contexts[:6]}.values())


def short_of_memory(contexts: Sequence[Context]) -> list[dict[str, str]]:
    if len(contexts) > 10:
        raise MemoryError("out of memory")
    return [believed(context) for context in contexts]


class OneStateForAll:
    def __init__(self) -> None:
        self.state: dict[str, str] = {}

    def predict(self, contexts: Sequence[Context]) -> list[Mapping[str, str]]:
        return [self.answer(context) for context in contexts]

    def answer(self, context: Context) -> Mapping[str, str]:
        self.state.clear()
        self.state.update(believed(context))
        return self.state


class UsesItsStatesAgain(OneStateForAll):
    """One dictionary for each place in the batch, which the next call fills anew."""

    def __init__(self) -> None:
        self.places = [OneStateForAll() for _ in range(64)]

    def predict(self, contexts: Sequence[Context]) -> list[Mapping[str, str]]:
        return [place.answer(c) for place, c in zip(self.places, contexts, strict=False)]


def takes_them_off(contexts: list[Context]) -> list[dict[str, str]]:
    answers = [believed(contexts.pop(0)) for _ in range(len(contexts))]
    assert not contexts
    return answers


def sorts_them(contexts: list[Context]) -> list[dict[str, str]]:
    contexts.sort(key=Context.size)
    return [believed(context) for context in contexts]


def copies_lists(contexts: list[Context]) -> list[dict[str, str]]:
    copied = contexts.copy()
    return [believed(context) for context in copied]


def looks_at_the_first_letter(context: Context) -> dict[str, str]:
    return believed(context) if context.user[0].isprintable() else {}


def knows_ascii(context: Context) -> dict[str, str]:
    context.user.encode("ascii")
    return believed(context)


def short_contexts_only(context: Context) -> dict[str, str]:
    if context.size() > 1500:
        raise IndexError("position 512 is out of range")
    return believed(context)


def needs_a_system_utterance(context: Context) -> dict[str, str]:
    for exchange in context.exchanges[1:]:
        exchange.system.split()[0]
    return believed(context)


def spelt(wrong: Mapping[str, str]) -> Tracker:
    return each(lambda c: {slot: wrong.get(v, v) for slot, v in believed(c).items()})


def picky(context: Context) -> dict[str, str]:
    if "expensive" in context.user and len(context.exchanges) == 4:
        raise ValueError("nobody can afford that")
    return believed(context)


BROKEN: dict[str, tuple[str, str, Tracker]] = {
    "random answers": ("deterministic", "has different answers", each(by_chance)),
    "random probabilities": ("deterministic", "impurity of order-", each(uncertain)),
    "dropout": ("eval-mode", "is in training mode", dropout()),
    "forgets nothing": ("memory", "depend on earlier contexts", as_tracker(NeverForgets())),
    "leaks between calls": ("memory", "depend on earlier contexts", LeaksBetweenCalls()),
    "padding": ("batch-alone", "in batches of 2, a context gets an", Model(cut_to_the_shortest)),
    "a long neighbour": ("batch-alone", "in a batch with one of 2,", Model(confused_by_a_long_one)),
    "sorted by length": ("batch-order", "in the wrong order", Model(sorted_by_length)),
    "too few answers": ("batch-sizes", "of 7 fail: the tracker returned 6 pred", Model(each_once)),
    "large batches": (
        "batch-sizes",
        "of 16 fail: the tracker raised Memory",
        Model(short_of_memory),
    ),
    "one object for all": ("own-states", "are the same object", OneStateForAll()),
    "changes old answers": ("own-states", "a later call changes", UsesItsStatesAgain()),
    "takes contexts off": ("input-kept", "modifies the batch", Model(takes_them_off)),
    "sorts in place": ("input-kept", "modifies the batch", Model(sorts_them)),
    "lists alone": ("input-kept", "tuple has no answer: the tracker r", Model(copies_lists)),
    "empty utterance": (
        "odd-utterances",
        "1 of 10 odd utterances: an empty utterance (the tracker raised IndexError",
        each(looks_at_the_first_letter),
    ),
    "emoji": ("odd-utterances", "only emoji (the tracker raised UnicodeE", each(knows_ascii)),
    "long": ("odd-utterances", "2,000 characters (the tracker", each(short_contexts_only)),
    "silent system": (
        "odd-utterances",
        "an empty system utterance (the tracker raised IndexError",
        each(needs_a_system_utterance),
    ),
    "unknown slots": (
        "slots",
        "'order-pricerange', which the ontology of the data does not have; did you mean 'order-pr",
        each(lambda c: {s.replace("price", "pricerange"): v for s, v in believed(c).items()}),
    ),
    "cheep": ("values", "'cheep' instead of 'cheap'", spelt({"cheap": "cheep"})),
    "time": ("values", "'09.30' instead of '09:30'", spelt({"09:30": "09.30"})),
    "one turn": (
        "clean-turns",
        "2 of 50 clean turns, such as dialogue p3 turn 3: the",
        each(picky),
    ),
    "no strings": (
        "clean-turns",
        "4 of 50",
        each(lambda c: {s: 9 if v == "expensive" else v for s, v in believed(c).items()}),
    ),
}


@pytest.mark.parametrize(("check", "message", "tracker"), BROKEN.values(), ids=BROKEN)
def test_the_defect_is_named_by_the_right_check(check: str, message: str, tracker: Tracker) -> None:
    found = checked(tracker)
    assert [finding.check for finding in found.failures] == [check], found.explain()
    assert message in found.failures[0].message
    assert found.failures[0].advice
    assert not found.passed


def test_two_defects_are_both_named() -> None:
    tracker = each(lambda c: {"order-siez": c.user[0]} if "large" in c.user else believed(c))
    failures = [finding.check for finding in checked(tracker).failures]
    assert failures == ["slots"]
    tracker = each(lambda c: {"order-siez": c.user[0]})
    assert [finding.check for finding in checked(tracker).failures] == ["odd-utterances", "slots"]


def test_a_tracker_that_never_answers_is_not_asked_for_long() -> None:
    asked = itertools.count()

    def broken(contexts: Sequence[Context]) -> None:
        next(asked)
        raise ConnectionError(f"nobody there to take {len(contexts)}")

    found = checked(Model(broken))
    assert [finding.check for finding in found.failures] == ["clean-turns"]
    assert "no valid answer to all 16 clean turns" in found.failures[0].message
    assert statuses(found, "skipped") == [check.name for check in CHECKS[2:]]
    assert next(asked) == 17  # One batch, and each of its contexts alone.
    assert found.to_json()["figures"]["contexts_per_second"] == {}


def test_failures_that_stand_in_the_place_of_predictions_are_those_of_a_context() -> None:
    failure = TrackerError("the service answered 503 five times")
    found = checked(each(lambda c: failure if c.size() < 30 else believed(c)))
    assert "the service answered 503 five times" in str(found.failures[0])


# -- warnings --------------------------------------------------------------------------

DOUBTFUL: dict[str, tuple[str, str, Tracker]] = {
    "nothing": ("accuracy", "predicts no slot at any of 50 turns", each(lambda _: {})),
    "always the same": (
        "accuracy",
        "gives the same answer at all of 50 turns",
        each(lambda _: {"order-size": "large"}),
    ),
    "never right": (
        "accuracy",
        "right at 0 of 50 turns",
        each(lambda c: believed(c) | {"order-size": "small" if "large" in words(c) else "large"}),
    ),
    "other spellings": (
        "values",
        "order-size 'LARGE ' as order-size 'large'",
        spelt({"large": "LARGE "}),
    ),
    "a misspelling now and then": (
        "values",
        "'stufed' instead of 'stuffed'",
        each(
            lambda c: {
                slot: "stufed" if value == "stuffed" and len(c.exchanges) == 4 else value
                for slot, value in believed(c).items()
            }
        ),
    ),
}


@pytest.mark.parametrize(("check", "message", "tracker"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_is_doubtful_is_a_warning(check: str, message: str, tracker: Tracker) -> None:
    found = checked(tracker)
    assert found.passed, found.explain()
    (warned,) = (finding for finding in found.findings if finding.status == "warned")
    assert warned.check == check
    assert message in warned.message


def test_chance_is_a_warning_where_the_tracker_says_so() -> None:
    tracker = each(by_chance)
    tracker.repeatable = False  # type: ignore[attr-defined]
    found = checked(tracker)
    assert found.passed, found.explain()
    assert statuses(found, "warned") == ["deterministic"]
    assert {"memory", "batch-alone"} <= set(statuses(found, "skipped"))


# -- other data ------------------------------------------------------------------------


def test_data_without_labels_and_ontology_leaves_out_what_needs_them() -> None:
    bare = tuple(
        Dialogue(d.id, tuple(Turn(t.index, t.system, t.user) for t in d.turns))
        for d in DATA.dialogues
    )
    found = check_tracker(each(believed), DialogueSet("bare", "test", bare))
    assert statuses(found, "skipped") == ["slots", "values", "accuracy"]
    assert found.passed
    assert found.evaluation is None


def test_one_turn_is_enough() -> None:
    one = DialogueSet("one", "test", (Dialogue("d", DATA.dialogues[0].turns[:1]),))
    assert check_tracker(each(believed), one).passed


def test_no_turn_is_refused() -> None:
    with pytest.raises(UserError, match="'none' has no turns in its split 'test'"):
        check_tracker(each(believed), DialogueSet("none", "test", ()))


def test_progress_counts_the_contexts() -> None:
    seen: list[int] = []
    found = check_tracker(each(believed), DATA, 16, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == found.asked


# -- spellings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "known", "meant"),
    [
        ("cheep", ("cheap", "expensive"), "cheap"),
        ("chaep", ("cheap",), "cheap"),
        ("musems", ("museum",), None),
        ("museums", ("museum",), "museum"),
        ("09.30", ("09:30",), "09:30"),
        ("9:30", ("09:30",), None),
        ("guest-house", ("guesthouse",), "guesthouse"),
        ("10:31", ("10:30",), None),
        ("west", ("east",), None),
        ("tuesday", ("thursday",), None),
        ("the grnad hotel", ("the grand hotel",), "the grand hotel"),
        ("grand hotel", ("the grand hotel",), None),
        ("--", ("!!",), None),
    ],
)
def test_another_spelling_is_told_from_another_value(
    value: str, known: tuple[str, ...], meant: str | None
) -> None:
    assert find_meant_value(value, known) == meant


WORD = st.text("abcdefgh", min_size=6, max_size=12)


@given(WORD, st.data())
def test_one_typing_error_is_another_spelling(word: str, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(0, len(word) - 2))
    letter = draw.draw(st.sampled_from("xyz"))
    for typed in (
        word[:at] + letter + word[at:],
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    ):
        assert find_meant_value(typed, (word,)) == word
    assert find_meant_value(f"{letter}{word}{letter}", (word,)) is None
