import pytest

from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    Exchange,
    Turn,
    diff_states,
)


def test_belief_states_are_sorted_equal_by_content_and_hashable():
    one, two = BeliefState({"b": "2", "a": "1"}), BeliefState({"a": "1", "b": "2"})
    assert one == two == {"b": "2", "a": "1"}
    assert one != BeliefState({"a": "1"})
    assert one != 3
    assert hash(one) == hash(two)
    assert repr(one) == "BeliefState({'a': '1', 'b': '2'})"
    assert list(one.to_json()) == ["a", "b"]
    with pytest.raises(TypeError):
        one["a"] = "3"  # type: ignore[index]


def test_differences_say_what_changed():
    changes = diff_states({"a": "1", "b": "2", "d": "4"}, {"b": "3", "c": "1", "d": "4"})
    assert [str(change) for change in changes] == ["a: 1 -> none", "b: 2 -> 3", "c: none -> 1"]


def test_contexts_replace_user_utterances_only():
    dialogue = Dialogue("d", (Turn(0, "", "hi"), Turn(1, "yes?", ""), Turn(2, "sure", "bye")))
    context = dialogue.context(1, {0: "hj", 2: "never seen"})
    assert context == Context((Exchange("", "hj"), Exchange("yes?", "")))
    assert (context.system, context.user) == ("yes?", "")
    assert context.user_utterances == ("hj", "")
    assert context.utterances == ("hj", "yes?", "")
    assert context.size() == 6
    assert dialogue.context(2).user_utterances == ("hi", "", "bye")
