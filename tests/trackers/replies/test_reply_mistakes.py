"""Systems that do not reply: one message for each way, and runs that go on where they can."""

from __future__ import annotations

import json

import pytest
from loopback import Asked, Says, serving

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import NoAnswerError
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.replies import as_replier
from pytest_dstfuzz.trackers.validation import preflight

DATA = DialogueSet("d", "test", ())
QUESTIONS = [
    {"dialogue_id": "a", "users": ["when do you open tomorrow", "and where is my order"]},
    {"dialogue_id": "b", "users": ["do you open on sunday"]},
]
BOT = """
def mute(messages):
    return " "

def half(messages):
    return "We open at nine." if "open" in messages[-1]["content"] else ""

def always(messages):
    return f"We open at {len(messages)}."

def state(context):
    return {"order-size": "large"}
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with bots and questions."""
    pytester.makepyfile(bad_bot=BOT)
    lines = "\n".join(map(json.dumps, QUESTIONS))
    (pytester.path / "questions.jsonl").write_text(lines, encoding="utf-8")
    return pytester


@pytest.mark.parametrize(
    ("bot", "why"),
    [
        ("mute", "the bot cannot be tested: the bot returned an empty reply"),
        ("state", "leave --dst-outcome=reply out"),
    ],
)
def test_a_bot_that_never_replies_ends_the_run(folder: pytest.Pytester, bot: str, why: str) -> None:
    run = folder.runpytest(
        f"--dst-model=bad_bot:{bot}", "--dst-outcome=reply", "--dst-data=questions.jsonl"
    )
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([f"ERROR: *{why}*"])


def test_an_empty_reply_is_an_error_of_its_turn(folder: pytest.Pytester) -> None:
    run = folder.runpytest(
        *("--dst-model=bad_bot:half", "--dst-outcome=reply", "--dst-data=questions.jsonl"),
        *("--dst-variants=1", "--dst-report=r.json"),
    )
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    report = json.loads((folder.path / "r.json").read_text(encoding="utf-8"))
    found = {turn["user"]: (turn["outcome"], turn["reason"]) for turn in report["turns"]}
    outcome, reason = found["and where is my order"]
    assert outcome == "error"
    assert "an empty reply" in reason
    assert found["do you open on sunday"][0] in ("held", "violation")


def test_requests_of_an_own_history_are_told(folder: pytest.Pytester) -> None:
    run = folder.runpytest(
        *("--dst-model=bad_bot:always", "--dst-outcome=reply", "--dst-data=questions.jsonl"),
        *("--dst-history=own", "--dst-variants=1", "-odst_votes=1", "-v"),
    )
    run.stdout.re_match_lines([r"requests +\d+ answers; their tokens are not counted"])
    run.stdout.fnmatch_lines(["note *history of each question consists of the bot's own replies*"])


def test_a_question_that_says_nothing_is_a_mistake_of_the_data(folder: pytest.Pytester) -> None:
    with (folder.path / "questions.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps({"dialogue_id": "c", "users": ["hi", ""]}))
    run = folder.runpytest(
        "--dst-model=bad_bot:half", "--dst-outcome=reply", "--dst-data=questions.jsonl"
    )
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: *questions.jsonl: line 3, turn 1: 'user' is empty*"])


def test_a_service_that_nobody_reaches() -> None:
    settings = Settings.of(model="http://127.0.0.1:9", outcome="reply", retries=0)
    with pytest.raises(NoAnswerError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        tracker_for(settings, DATA)


def test_a_service_that_needs_messages_and_is_not_asked_for_replies() -> None:
    """Without the option no messages are sent: most services of replies then fail in their way."""

    def answer(asked: Asked) -> Says:
        hangs_up = asked.method == "POST" and "messages" not in asked.body
        return Says({"name": "a bot"}, how="hang-up" if hangs_up else "whole")

    with serving(answer) as service:
        tracker = tracker_for(Settings.of(model=service.url, retries=0), DATA)
        with pytest.raises(NoAnswerError) as caught:
            preflight(tracker, [Context((Exchange("", "when"),))])
    assert "closed the connection" in str(caught.value)
    assert str(caught.value).endswith("; if the service replies to users, add --dst-outcome=reply")


def take_text(text: str) -> str:
    return text.lower()


@pytest.mark.parametrize("function", [take_text, lambda: "We open at nine."])
def test_a_function_that_does_not_take_messages(function: object) -> None:
    with pytest.raises(NoAnswerError) as caught:
        preflight(as_replier(function), [Context((Exchange("", "when"),))], outcome="reply")
    message = "the function is called with a list of messages; the question is messages[-1]"
    assert message in str(caught.value)


def test_a_service_that_does_not_answer_in_time() -> None:
    def answer(asked: Asked) -> Says:
        late = asked.method == "POST" and "slow" in asked.body["messages"][-1]["content"]
        return Says({"reply": "At nine."}, how="silence" if late else "whole")

    contexts = [Context((Exchange("", text),)) for text in ("when", "slow")]
    with serving(answer) as service:
        settings = Settings.of(model=service.url, outcome="reply", retries=0, timeout=1)
        tracker = tracker_for(settings, DATA)
        quick, slow = tracker.predict(contexts)
    assert quick.reply == "At nine."
    assert "did not answer within 1 s" in str(slow)
