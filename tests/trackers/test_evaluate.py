"""Accuracy by labels, counted by hand on two dialogues."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.evaluate import evaluate, predict_all, score
from pytest_dstfuzz.trackers.tracker import Prediction

HOTEL = {"hotel-area": "north"}
BOTH = {**HOTEL, "taxi-destination": "airport"}
DATA = DialogueSet(
    "mine",
    "test",
    (
        Dialogue("a", (Turn(0, "", "hotel", BeliefState(HOTEL)),)),
        Dialogue(
            "b",
            (
                Turn(0, "", "hello there", BeliefState({})),
                Turn(1, "yes", "hotel", BeliefState(HOTEL)),
                Turn(2, "yes", "taxi to the airport", BeliefState(BOTH)),
            ),
        ),
    ),
    Ontology({"hotel-area": ("north",), "hotel-stars": ("4",), "taxi-destination": ("airport",)}),
    normalisation="multiwoz",
    layout="sharded",
    notes=("Read in the layout 'sharded'.",),
)


def track(context: Context) -> dict[str, str]:
    """Right about hotels, and sees no taxi."""
    return HOTEL if "hotel" in context.user_utterances else {}


def test_the_figures_are_those_counted_by_hand() -> None:
    seen: list[tuple[int, int]] = []
    found = evaluate(as_tracker(track), DATA, 3, lambda done, total: seen.append((done, total)))
    assert (found.turns, found.right, found.joint_goal_accuracy) == (4, 3, 0.75)
    assert (found.slots, found.right_slots) == (3, 11)
    assert found.slot_accuracy == pytest.approx(11 / 12)
    assert found.right_dialogues == ("a",)
    assert [(item.domain, item.turns, item.right) for item in found.domains] == [
        ("hotel", 4, 4),
        ("taxi", 3, 2),
    ]
    assert seen == [(3, 4), (4, 4)]


def test_the_figures_as_json_and_as_text() -> None:
    found = evaluate(as_tracker(track), DATA, 64)
    assert found.to_json() == {
        "data": "mine",
        "split": "test",
        "layout": "sharded",
        "normalisation": "multiwoz",
        "notes": ["Read in the layout 'sharded'."],
        "dialogues": 2,
        "turns": 4,
        "unlabelled": 0,
        "unanswered": 0,
        "right": 3,
        "joint_goal_accuracy": 0.75,
        "slots": 3,
        "slot_accuracy": 0.9167,
        "domains": {
            "hotel": {"turns": 4, "right": 4, "joint_goal_accuracy": 1.0},
            "taxi": {"turns": 3, "right": 2, "joint_goal_accuracy": 0.6667},
        },
        "right_dialogues": ["a"],
    }
    text = "\n".join(found.lines())
    assert "layout                sharded\n" in text
    assert "normalisation         multiwoz\n" in text
    assert "note                  Read in the layout 'sharded'.\n" in text
    assert "joint goal accuracy     75.00 %  (3 of 4 turns)" in text
    assert "right throughout      1 of 2 dialogues" in text
    assert "  taxi                  66.67 %  (2 of 3 turns)" in text


def test_slots_without_a_dash_have_no_domain() -> None:
    data = DialogueSet("p", "test", (Dialogue("a", (Turn(0, "", "x", BeliefState({"s": "y"})),)),))
    found = evaluate(as_tracker(lambda _: {"s": "y", "t": "z"}), data, 1)
    assert (found.domains, found.slots, found.slot_accuracy) == ((), 2, 0.5)
    assert len(found.lines()) == 6


def test_labels_are_needed() -> None:
    data = DialogueSet("p", "test", (Dialogue("a", (Turn(0, "", "x"),)),))
    with pytest.raises(UserError, match="no turn of 'p' has a belief state: accuracy needs labels"):
        evaluate(as_tracker(track), data, 1)
    with pytest.raises(UserError, match="'p' has no turns in its split 'test'"):
        evaluate(as_tracker(track), DialogueSet("p", "test", ()), 1)


def test_turns_without_a_label_are_left_out_and_counted() -> None:
    labels = [{"s": "y"}, None, {"s": "n"}]
    turns = tuple(
        Turn(index, "", f"say {index}", None if label is None else BeliefState(label))
        for index, label in enumerate(labels)
    )
    silent = Dialogue("b", (Turn(0, "", "x"), Turn(1, "", "z")))
    last = Dialogue("c", (Turn(0, "", "x"), Turn(1, "", "y", BeliefState({"s": "y"}))))
    data = DialogueSet("p", "test", (Dialogue("a", turns), silent, last))
    asked: list[str] = []

    def track(context: Context) -> dict[str, str]:
        asked.append(context.user)
        return {"s": "y"}

    found = evaluate(as_tracker(track), data, 2)
    assert sorted(asked) == ["say 0", "say 2", "y"]
    assert (found.turns, found.unlabelled, found.right, found.dialogues) == (3, 4, 2, 2)
    assert found.right_dialogues == ("c",)
    assert found.to_json()["unlabelled"] == 4
    text = "\n".join(found.lines())
    assert "labels                on 3 of 7 turns; the figures cover only these" in text
    states = ["y", "wrong", "n", "wrong", "wrong", "wrong", "y"]
    again = score(data, [Prediction(BeliefState({"s": state})) for state in states])
    assert (again.right, again.turns, again.right_dialogues) == (3, 3, ("a", "c"))


def test_answers_keep_the_order_of_the_contexts() -> None:
    contexts = [DATA.dialogues[1].context(index) for index in (2, 0, 1)]
    lengths = as_tracker(lambda context: {"n": str(len(context.exchanges))})
    answers = predict_all(lengths, contexts, 2)
    assert [answer.state["n"] for answer in answers] == ["3", "1", "2"]


def test_a_tracker_that_raises_is_told() -> None:
    with pytest.raises(TrackerError, match="the tracker raised ZeroDivisionError: division by"):
        evaluate(as_tracker(lambda _: {"a": str(1 / 0)}), DATA, 2)


def test_a_panic_is_a_tracker_error_and_an_interrupt_is_none() -> None:
    class PanicError(BaseException):
        pass

    def raises(error: type[BaseException]) -> None:
        def track(_: Context) -> dict[str, str]:
            raise error

        evaluate(as_tracker(track), DATA, 2)

    with pytest.raises(TrackerError, match=r"the tracker raised PanicError"):
        raises(PanicError)
    with pytest.raises(KeyboardInterrupt):
        raises(KeyboardInterrupt)


def test_what_predict_returns_is_normalised() -> None:
    class Speller:
        def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
            spelt = ({"hotel-Area": "the North", "hotel-stars": "none"}, {})
            return [Prediction(BeliefState(spelt[not track(c)])) for c in contexts]

    assert evaluate(Speller(), DATA, 3) == evaluate(as_tracker(track), DATA, 3)


class Hesitant:
    """Has no answer where the word is in the last utterance."""

    def __init__(self, word: str) -> None:
        self.word = word

    def predict(self, contexts: Sequence[Context]) -> list[dict[str, str] | TrackerError]:
        return [
            TrackerError(f"no idea about {self.word!r}")
            if self.word in context.exchanges[-1].user
            else track(context)
            for context in contexts
        ]


def test_a_turn_without_an_answer_is_wrong_and_costs_no_other() -> None:
    found = evaluate(Hesitant("hello"), DATA, 2)
    assert (found.turns, found.right, found.right_dialogues) == (4, 2, ("a",))
    assert (found.slots, found.right_slots) == (3, 8)
    assert [(item.domain, item.turns, item.right) for item in found.domains] == [
        ("hotel", 4, 3),
        ("taxi", 3, 1),
    ]
    assert found.to_json()["unanswered"] == 1
    line = (
        "no answer             1 of 4 turns, counted as wrong; for example: no idea about 'hello'"
    )
    assert line in found.lines()


def test_a_tracker_without_any_answer_fails() -> None:
    with pytest.raises(TrackerError, match="no idea about ''"):
        evaluate(Hesitant(""), DATA, 2)
