"""Functions, stateful objects and classes as trackers; names that lead to them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers import registry
from pytest_dstfuzz.trackers.adapters import (
    CallableTracker,
    ConvLabAdapter,
    StatefulAdapter,
    as_tracker,
)
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Prediction, gini_impurity, notes_of
from pytest_dstfuzz.trackers.validation import check_prediction, preflight

CONTEXT = Context((Exchange("", "a Large pizza"), Exchange("ok", "make it small")))


def track(context: Context) -> dict[str, str]:
    """The ten-line form of the documentation."""
    state = {}
    for _, user in context.exchanges:
        for size in ("small", "medium", "large"):
            if size in user.lower():
                state["pizza-size"] = size
    return state


class Keeper:
    """Adds up what it hears; leaks where it is not reset."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def reset(self) -> None:
        self.heard.clear()

    def update(self, system: str, user: str) -> Mapping[str, str]:
        self.heard += [system, user]
        return {"heard": " | ".join(self.heard), "nothing": ""}


class Whole:
    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction(BeliefState({"n": str(len(c.exchanges))})) for c in contexts]


class PanicError(BaseException):
    """What a panic in Rust looks like from Python: no `Exception`."""


def states(tracker: Any, *contexts: Context) -> list[dict[str, str]]:
    return [dict(prediction.state) for prediction in tracker.predict(contexts)]


def test_a_function_is_a_tracker() -> None:
    assert states(as_tracker(track), CONTEXT) == [{"pizza-size": "small"}]


def test_a_function_may_return_predictions() -> None:
    prediction = Prediction(BeliefState({"a": "b"}), {"a": 0.5})
    assert as_tracker(lambda _: prediction).predict([CONTEXT]) == [prediction]


def test_states_are_normalised() -> None:
    loose = {"Size": "  LARGE ", "crust": "none", "drink": "don't care", "sauce": None}
    assert states(CallableTracker(lambda _: loose), CONTEXT) == [
        {"crust": "none", "drink": "dontcare", "size": "large"}
    ]
    said = {"hotel-leaveAt": "x", "hotel-area": "none"}
    multiwoz = CallableTracker(lambda _: said, normalisation="multiwoz")
    assert states(multiwoz, CONTEXT) == [{"hotel-leaveat": "x"}]


def test_a_stateful_object_is_replayed_from_the_start() -> None:
    tracker = as_tracker(Keeper())
    assert isinstance(tracker, StatefulAdapter)
    expected = {"heard": "| a large pizza | ok | make it small"}
    assert states(tracker, CONTEXT, CONTEXT) == [expected, expected]


def test_classes_are_instantiated() -> None:
    assert states(as_tracker(Whole), CONTEXT) == [{"n": "2"}]
    assert isinstance(as_tracker(Keeper), StatefulAdapter)


def test_a_tracker_stays_as_it_is() -> None:
    tracker = Whole()
    assert as_tracker(tracker) is tracker


@pytest.mark.parametrize("thing", [3, "mybot:track", None, [track], {}])
def test_what_is_no_tracker_is_refused(thing: object) -> None:
    with pytest.raises(UserError, match=r"is not a tracker: give an object with predict"):
        as_tracker(thing)


def test_a_class_that_refuses_tells_why() -> None:
    class Picky:
        def __init__(self) -> None:
            raise UserError("no weights here")

    class Broken:
        def __init__(self) -> None:
            raise OSError("disk on fire")

    class Panics:
        def __init__(self) -> None:
            raise PanicError("no vocabulary")

    with pytest.raises(UserError, match=r"without arguments: PanicError: no vocabulary"):
        as_tracker(Panics)
    with pytest.raises(UserError, match=r"^no weights here$"):
        as_tracker(Picky)
    with pytest.raises(UserError, match=r"cannot be created without arguments: OSError: disk on"):
        as_tracker(Broken)


@pytest.mark.parametrize("answer", [None, "large", ["large"], 3.5])
def test_a_function_that_returns_no_state_is_told(answer: object) -> None:
    with pytest.raises(UserError, match=r"must return a mapping slot -> value or a Prediction"):
        preflight(as_tracker(lambda _: answer), [CONTEXT])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_a_number_that_is_none_is_no_value(value: object) -> None:
    tracker = as_tracker(lambda _: {"hotel-stars": value})
    with pytest.raises(UserError, match=r"'hotel-stars' is -?(nan|inf), which is not allowed"):
        preflight(tracker, [Context((Exchange("", "hi"),))])


def test_a_state_of_wrong_types_is_told() -> None:
    with pytest.raises(UserError, match=r"the tracker function returned an invalid state: .*size"):
        preflight(as_tracker(lambda _: {"size": object()}), [CONTEXT])


def test_the_notes_of_a_tracker_are_sentences() -> None:
    tracker = Whole()
    assert notes_of(tracker) == ()
    tracker.notes = ("Slow.", 3)  # type: ignore[attr-defined] # any attribute may be there
    assert notes_of(tracker) == ("Slow.",)
    tracker.notes = "not a tuple"  # type: ignore[attr-defined] # as above
    assert notes_of(tracker) == ()


# -- ConvLab-3 --------------------------------------------------------------------------


class ConvLabBase:
    """What ConvLab-3's ``DST`` has: both methods, which do nothing."""

    state: dict[str, Any]

    def update(self, action: object) -> Any:
        pass

    def update_turn(self, sys_utt: str | None, user_utt: str) -> Any:
        pass


class TextReader(ConvLabBase):
    """Built as SetSUMBT, TripPy and T5 are: reads the history, returns a new whole state."""

    def init_session(self) -> None:
        belief = {"hotel": {"price range": "", "book day": "", "seen": ""}, "police": {"name": ""}}
        self.state = {
            "belief_state": belief,
            "history": [],
            "system_action": [],
            "user_action": [],
        }

    def predict(self, features: object) -> object:
        raise AssertionError(f"not for contexts: {features!r}")

    def update(self, action: object) -> dict[str, Any]:
        assert action == self.state["user_action"] == self.state["history"][-1][1]
        assert self.state["system_action"] == []
        said = " | ".join(f"{who}: {text}" for who, text in self.state["history"])
        belief = {"hotel": {**self.state["belief_state"]["hotel"], "seen": said}}
        if "cheap" in str(action):
            belief["hotel"] |= {"price range": "cheap", "book day": "do not care"}
        self.state = {**self.state, "belief_state": belief}
        return self.state


class TurnReader(ConvLabBase):
    """Built as the models of DSTC9 are: two texts in, the belief state itself out."""

    def init_session(self) -> None:
        self.said: list[str | None] = []

    def update_turn(self, sys_utt: str | None, user_utt: str) -> dict[str, dict[str, str]]:
        self.said += [sys_utt, user_utt]
        return {"train": {"said": str(self.said)}, "taxi": {}}


class CheckingReader(TurnReader):
    """Derived from one that reads turns, but reads texts itself."""

    def init_session(self) -> None:
        self.state = {"history": [], "user_action": []}

    def update(self, action: object) -> Any:
        return {"belief_state": {"train": {"said": str(action)}}}


def test_a_convlab_tracker_of_texts_is_fed_as_its_agents_feed_it() -> None:
    tracker = as_tracker(TextReader, normalisation="multiwoz")
    assert isinstance(tracker, ConvLabAdapter)
    first = Context((Exchange("", "a cheap hotel"), Exchange("When?", "any day")))
    assert states(tracker, first, Context((Exchange("Hello", "hi"),))) == [
        {
            "hotel-book day": "dontcare",
            "hotel-pricerange": "cheap",
            "hotel-seen": "sys: null",
        },
        {"hotel-seen": "sys: hello"},
    ]


def test_a_convlab_tracker_of_texts_hears_all_that_was_said() -> None:
    context = Context((Exchange("", "a hotel"), Exchange("Where?", "north")))
    (state,) = states(as_tracker(TextReader()), context)
    assert state["hotel-seen"] == "sys: null | user: a hotel | sys: where? | user: north"


def test_a_convlab_tracker_of_turns_is_replayed_from_the_start() -> None:
    tracker = as_tracker(TurnReader())
    expected = {"train-said": "[none, 'a large pizza', 'ok', 'make it small']"}
    assert states(tracker, CONTEXT, CONTEXT) == [expected, expected]


def test_a_proxy_of_a_convlab_tracker_has_its_methods() -> None:
    class Proxy:
        def __init__(self) -> None:
            self._kept = TurnReader()

        def __getattr__(self, name: str) -> object:
            return getattr(self._kept, name)

    assert states(as_tracker(Proxy()), CONTEXT) == states(as_tracker(TurnReader()), CONTEXT)


def test_of_two_convlab_methods_the_one_that_was_written_last_is_called() -> None:
    assert states(as_tracker(CheckingReader()), CONTEXT) == [{"train-said": "make it small"}]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, r": update\(\) of a ConvLab-3 tracker must return .* not None$"),
        ({"belief_state": [1]}, r"must return .*, not dict \{'belief_state': \[1\]\}$"),
        ({"hotel": "north"}, r"slot -> value for each domain; 'hotel' has str 'north'$"),
        ({"hotel": {"area": {}}}, r"update\(\) returned an invalid state: .*'hotel-area'"),
    ],
)
def test_a_convlab_tracker_that_returns_no_state_is_told(answer: object, complaint: str) -> None:
    class Wrong(TextReader):
        def update(self, action: object) -> Any:  # noqa: ARG002 - the interface has it
            return answer

    with pytest.raises(UserError, match=complaint):
        preflight(as_tracker(Wrong()), [CONTEXT])


# -- by name ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_attribute_may_lie_deep(folder: Path) -> None:
    (folder / "deep_bot.py").write_text(
        "class Box:\n    @staticmethod\n    def track(context): return {'a': 'b'}\n",
        encoding="utf-8",
    )
    tracker = resolve_tracker("deep_bot:Box.track", search_path=(str(folder),))
    assert states(tracker, CONTEXT) == [{"a": "b"}]


def test_modules_are_found_in_the_working_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "near_bot.py").write_text("def track(context): return {}\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    assert states(resolve_tracker("near_bot:track"), CONTEXT) == [{}]


def test_an_error_in_the_module_says_where(folder: Path) -> None:
    (folder / "sick_bot.py").write_text("\n\nraise OSError('no disk')\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"OSError: no disk \(.*sick_bot.py:3\)"):
        resolve_tracker("sick_bot:track", search_path=(str(folder),))


def test_probabilities_become_the_mean_impurity_of_a_slot() -> None:
    state = BeliefState({"hotel-area": "north"})
    parts = {"hotel-area": [[1.0, 0.0], [0.5, 0.5]], "hotel-name": [[0.9, 0.1]], "hotel-stars": []}
    made = Prediction.from_distributions(state, parts)
    assert made.state == state
    assert made.impurities == pytest.approx({"hotel-area": 0.25, "hotel-name": 0.18})
    assert gini_impurity([0.25] * 4) == 0.75
    assert gini_impurity([1.0, 0.001]) == 0.0


def test_probabilities_that_are_no_numbers_are_refused() -> None:
    made = Prediction.from_distributions(BeliefState({}), {"hotel-area": [[float("nan"), 0.5]]})
    with pytest.raises(TrackerError, match="nan as the impurity of 'hotel-area'"):
        check_prediction(made)


def test_trade_is_registered() -> None:
    shipped = {"assistant", "simpletod", "trade", "trade-hardened"}
    assert shipped <= {*registry.TRACKERS.names}


class Point(metadata.EntryPoint):
    """An entry point whose object needs no module."""

    def load(self) -> Any:
        return FACTORIES[self.value]


def picky_factory(**_: object) -> object:
    raise UserError("the checkpoint is empty")


def broken_factory(**_: object) -> object:
    raise KeyError("weights")


def panicking_factory(**_: object) -> object:
    raise PanicError("bad merges")


def interrupted_factory(**_: object) -> object:
    raise KeyboardInterrupt


FACTORIES: dict[str, Any] = {
    "whole": lambda **given: given and Whole(),
    "picky": picky_factory,
    "broken": broken_factory,
    "panics": panicking_factory,
    "interrupted": interrupted_factory,
}


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Point(name, name, registry.ENTRY_POINT_GROUP) for name in FACTORIES]
    monkeypatch.setattr("pytest_dstfuzz.registry.entry_points", lambda _: found)


@pytest.mark.usefixtures("points")
def test_registered_names_call_their_factory() -> None:
    assert states(resolve_tracker("whole", device="cuda"), CONTEXT) == [{"n": "2"}]
    with pytest.raises(UserError, match=r"^the checkpoint is empty$"):
        resolve_tracker("picky")
    with pytest.raises(UserError, match=r"'broken' cannot be created: KeyError: 'weights'"):
        resolve_tracker("broken")
    with pytest.raises(UserError, match=r"'panics' cannot be created: PanicError: bad merges"):
        resolve_tracker("panics")
    with pytest.raises(KeyboardInterrupt):
        resolve_tracker("interrupted")


def test_trade_without_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pytest_dstfuzz.models.trade.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match=r'pip install "pytest-dstfuzz\[trade\]"'):
        resolve_tracker("trade")
