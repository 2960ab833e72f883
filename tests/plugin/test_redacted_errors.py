"""With --dst-redact, an error in the suite's own code repeats no text of a dialogue."""

from __future__ import annotations

import json

import pytest

WORD = "zanzibar"
OWN = """
def reply(messages):
    return messages[-1]["content"] + ": we open at nine"

def raises(before, found):
    raise ValueError(f"cannot compare {before}")

def returns(before, found):
    return before

def rule(one, other):
    raise ValueError(f"cannot compare {one}")

def text(one, other):
    return one

def call(context):
    return [{"name": "note", "arguments": {"text": context.user}}]
"""
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "note",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        },
    }
]
REPLIES = ("--dst-model=own:reply", "--dst-outcome=reply")
CALLS = ("--dst-model=own:call", "--dst-outcome=tool-calls", "--dst-tools=tools.json")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(own=OWN)
    talk = {"dialogue_id": "d", "users": [f"In {WORD}, please tell me when you open today"]}
    pytester.path.joinpath("talk.jsonl").write_text(json.dumps(talk), encoding="utf-8")
    pytester.path.joinpath("tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    return pytester


@pytest.mark.parametrize(
    "words",
    [
        (*REPLIES, "--dst-compare=own:raises"),
        (*REPLIES, "--dst-compare=own:returns"),
        (*CALLS, "--dst-arguments=note.text=own:rule"),
        (*CALLS, "--dst-arguments=note.text=own:text"),
    ],
    ids=["raises", "returns", "rule raises", "rule returns"],
)
@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "workers"])
def test_errors_of_own_code_repeat_no_dialogue(
    suite: pytest.Pytester, words: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    options = ("--dst-data=talk.jsonl", "--junitxml=junit.xml", *words, *workers)

    def shown(*more: str) -> str:
        go = suite.runpytest_subprocess if workers else suite.runpytest_inprocess
        done = go(*options, *more)
        assert done.ret != 0
        junit = suite.path / "junit.xml"
        text = junit.read_text(encoding="utf-8") if junit.exists() else ""
        return done.stdout.str() + done.stderr.str() + text

    plain = shown()
    assert WORD in plain
    hidden = shown("--dst-redact")
    assert WORD not in hidden
    assert "kept back (redact)" in hidden
    # A later run of this process is not redacted.
    assert WORD in shown()


DATA = {
    "message": ("d.jsonl", {"messages": [{"role": "user", "content": {"text": WORD}}]}),
    "role": ("d.jsonl", {"messages": [{"role": WORD, "content": "hello"}]}),
    "label": (
        "d.jsonl",
        {"dialogue_id": "a", "turns": [{"user": "hi", "state": {"a": {WORD: 1}}}]},
    ),
    "labels": (
        "d.jsonl",
        {"dialogue_id": "a", "turns": [{"user": "hi", "state": {"a": [{"b": WORD}]}}]},
    ),
    "user": ("d.jsonl", {"dialogue_id": "a", "users": [["hello", WORD]]}),
    "arguments": (
        "d.jsonl",
        {
            "messages": [
                {"role": "user", "content": "hello"},
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "f", "arguments": [WORD]}}],
                },
            ]
        },
    ),
    "entry": ("d.json", [{"conversations": [{"from": "human", "value": "hi"}]}, f"{WORD} said"]),
    "speaker": ("d.csv", f"dialogue_id,speaker,text\na,{WORD},hello there\n"),
    "rasa": ("d.yml", f"stories:\n- story: a\n  steps: [{{user: [{WORD}]}}]\n"),
    "yaml": ("d.yml", f"stories:\n- story: a\n  steps: [{{user: !!int {WORD}}}]\n"),
    "texts": ("d.json", ["hello", [WORD, 3]]),
}


@pytest.mark.parametrize(("name", "content"), DATA.values(), ids=DATA)
def test_errors_of_the_data_repeat_no_dialogue(
    suite: pytest.Pytester, name: str, content: object
) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    suite.path.joinpath(name).write_text(text, encoding="utf-8")

    def shown(*more: str) -> str:
        done = suite.runpytest_inprocess("--dst-model=own:call", f"--dst-data={name}", *more)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        return done.stdout.str() + done.stderr.str()

    assert WORD in shown()
    hidden = shown("--dst-redact")
    assert WORD not in hidden
    assert "kept back (redact)" in hidden


ENDS = {
    "skip": "pytest.skip(dst_turn.turn.user)",
    "xfail": "pytest.xfail(dst_turn.turn.user)",
    "fail": "pytest.fail(dst_turn.turn.user)",
    "subtest": "with subtests.test(msg='one'): print(dst_turn.turn.user); assert 0",
}


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_a_test_that_ends_itself_repeats_no_dialogue(suite: pytest.Pytester, ends: str) -> None:
    suite.makepyfile(test_own=f"import pytest\ndef test_own(dst_turn, subtests):\n    {ends}\n")
    shown_options = ("-rA", "--xfail-tb", "--junitxml=junit.xml", "test_own.py")

    def shown(*more: str) -> str:
        done = suite.runpytest_inprocess(*REPLIES, "--dst-data=talk.jsonl", *shown_options, *more)
        return done.stdout.str() + suite.path.joinpath("junit.xml").read_text(encoding="utf-8")

    assert WORD in shown()
    assert WORD not in shown("--dst-redact")
