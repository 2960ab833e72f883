"""What is said of systems that reply, besides robustness: right replies, and the kit's checks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_dstfuzz import cli
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Turn
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.conformance import check_tracker
from pytest_dstfuzz.trackers.replies import RepliedTurn, ReplyJudge, evaluate_replies

HOURS = "We open at nine."
DATA = DialogueSet(
    "shop",
    "test",
    (
        Dialogue(
            "a",
            (
                Turn(0, "Hello!", "When do you open?"),
                Turn(1, HOURS, "Where is my order?", answer="On its way."),
            ),
        ),
        Dialogue("b", (Turn(0, "", "Do you sell tea?", answer=""),)),
        Dialogue("c", (Turn(0, "", "And when do you open?", answer="we open at NINE."),)),
    ),
)
JUDGE = ReplyJudge("folded", lambda turns: [_folded(turn) for turn in turns])
BOT = """
def reply(messages):
    return "We open at nine." if "open" in messages[-1]["content"] else "Sorry?"

def always(messages):
    return "Sorry?"
"""


def _folded(turn: RepliedTurn) -> bool:
    return turn.recorded.lower() == turn.found.lower()


def reply(messages: list[dict[str, str]]) -> str:
    return HOURS if "open" in messages[-1]["content"] else "Sorry?"


def test_right_replies_are_counted_where_answers_are_recorded() -> None:
    found = evaluate_replies(as_tracker(reply, outcome="reply"), DATA, JUDGE, 2)
    assert (found.right, found.turns, found.unlabelled, found.dialogues) == (2, 3, 1, 2)
    assert found.right_dialogues == ("c",)
    assert found.to_json()["right_replies"] == 0.6667
    text = "\n".join(found.lines())
    assert "compared by           folded" in text
    assert "right replies           66.67 %  (2 of 3 turns)" in text


def test_a_turn_without_a_reply_is_wrong_and_all_of_them_are_an_error() -> None:
    def sometimes(messages: list[dict[str, str]]) -> str:
        return HOURS if "open" in messages[-1]["content"] else " "

    class Each:
        def predict(self, contexts: Sequence[Context]) -> list[object]:
            said = (sometimes([{"content": context.user}]) for context in contexts)
            return [text if text.strip() else TrackerError("nothing to say") for text in said]

    found = evaluate_replies(as_tracker(Each(), outcome="reply"), DATA, JUDGE, 2)
    assert (found.right, found.unanswered) == (2, ("nothing to say",))
    assert "no reply              1 of 3 turns" in "\n".join(found.lines())
    mute = as_tracker(lambda _: "", outcome="reply")
    with pytest.raises(TrackerError, match="an empty reply"):
        evaluate_replies(mute, DATA, JUDGE, 2)


def test_right_replies_need_recorded_answers() -> None:
    bare = DialogueSet("bare", "test", (Dialogue("a", (Turn(0, "Hello!", "Hi"),)),))
    with pytest.raises(UserError, match=r"no turn of 'bare' has a recorded answer"):
        evaluate_replies(as_tracker(reply, outcome="reply"), bare, JUDGE, 2)


def test_a_sound_bot_passes_the_kit() -> None:
    found = check_tracker(as_tracker(reply, outcome="reply"), DATA, outcome="reply", judge=JUDGE)
    found.assert_passed()
    said = {finding.check: finding.message for finding in found.findings}
    assert said["accuracy"] == "right at 2 of 3 turns with recorded answers (1 have none)"
    assert "slots" not in said
    assert found.to_json()["figures"]["right_replies"] == 0.6667


def test_what_is_wrong_with_a_bot_is_told() -> None:
    numbers = itertools.count()

    def moody(messages: list[dict[str, str]]) -> str:
        return f"{next(numbers)}: {messages[-1]['content']}" if messages[-1]["content"] else ""

    found = check_tracker(as_tracker(moody, outcome="reply"), DATA, outcome="reply")
    statuses = {finding.check: finding.status for finding in found.findings}
    assert statuses["odd-utterances"] == "failed"
    # It need not repeat itself, as it does not say that it does.
    assert statuses["deterministic"] == "warned"
    assert [finding.check for finding in found.failures] == ["odd-utterances"]
    assert "reply with a text that says so" in found.explain()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bot and questions as the working folder."""
    (tmp_path / "replying_bot.py").write_text(BOT, encoding="utf-8")
    lines = [
        {"dialogue_id": d.id, "turns": [{"user": t.user, "answer": t.answer} for t in d.turns]}
        for d in DATA.dialogues
    ]
    (tmp_path / "shop.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_take_systems_that_reply(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.is_dir()
    how = ["--model", "replying_bot:reply", "--outcome", "reply", "--data", "shop.jsonl"]
    assert cli.main(["evaluate", *how, "--compare", "exact", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["comparison"], figures["right"], figures["turns"]) == ("exact", 0, 2)
    assert cli.main(["check-tracker", *how]) == 0
    assert "right replies                     50" in capsys.readouterr().out
    always = ["--model", "replying_bot:always", *how[2:]]
    assert cli.main(["check-tracker", *always, "--json"]) == 0
    (said,) = (
        one["message"]
        for one in json.loads(capsys.readouterr().out)["findings"]
        if one["check"] == "accuracy"
    )
    assert "gives the same answer at all of 4 turns" in said
