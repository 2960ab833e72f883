"""A bot whose ``__getattr__`` raises another error than ``AttributeError`` is tested as any bot."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.registry import load_attribute

BOTS = """
class Odd:
    def __getattr__(self, name):
        raise {error}(name)

class Part:
    rules = Odd()

class Function(Odd, Part):
    __slots__ = ()

    def __call__(self, context):
        return {{"hotel-area": "north"}}

class Batches(Odd):
    def predict(self, contexts):
        return [{{"hotel-area": "north"}} for _ in contexts]

class Stateful(Odd):
    def reset(self):
        pass

    def update(self, system, user):
        return {{"hotel-area": "north"}}

class ConvLab(Odd):
    def init_session(self):
        pass

    def update_turn(self, system, user):
        return {{"belief_state": {{"hotel": {{"area": "north"}}}}}}

class Reply(Odd):
    def __call__(self, messages):
        return "It is in the north."

class StatefulReply(Odd):
    def reset(self):
        pass

    def reply(self, user):
        return "It is in the north."

class Calls(Odd):
    def __call__(self, messages, tools):
        return [{{"name": "book", "arguments": {{"area": "north"}}}}]

class CallsWithoutTools(Odd):
    def __call__(self, messages):
        return [{{"name": "book", "arguments": {{"area": "north"}}}}]

function, batches, stateful, convlab = Function(), Batches(), Stateful(), ConvLab()
reply, stateful_reply, calls, calls_alone = Reply(), StatefulReply(), Calls(), CallsWithoutTools()
"""
KINDS = {
    "state": ("function", "batches", "stateful", "convlab"),
    "reply": ("reply", "stateful_reply"),
    "tool-calls": ("calls", "calls_alone"),
}
TALK = {"dialogue_id": "d", "users": ["I need a cheap hotel in the north of town, please."]}
BOOK = {"name": "book", "parameters": {"type": "object", "properties": {"area": {}}}}
EACH = [(name, outcome) for outcome, names in KINDS.items() for name in names]


@pytest.fixture(params=["KeyError", "RuntimeError"])
def folder(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "oddbots.py").write_text(BOTS.format(error=request.param), encoding="utf-8")
    (tmp_path / "talks.jsonl").write_text(json.dumps(TALK), encoding="utf-8")
    (tmp_path / "tools.json").write_text(json.dumps([BOOK]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "oddbots", raising=False)
    return tmp_path


@pytest.mark.parametrize(("name", "outcome"), EACH)
def test_it_is_tested_by_a_campaign(folder: Path, name: str, outcome: str):
    more = {"tools": "tools.json"} if outcome == "tool-calls" else {}
    settings = Settings.of(outcome=outcome, search="random", variants=1, **more)
    run = Campaign(f"oddbots:{name}", folder / "talks.jsonl", settings)
    assert run.identity["code"]
    assert [result.outcome for result in run] == ["held"]
    assert not run.late_code()


@pytest.mark.parametrize(("name", "outcome"), EACH)
def test_it_is_tested_by_pytest(folder: Path, pytester: pytest.Pytester, name: str, outcome: str):
    tools = ["--dst-tools=tools.json"] if outcome == "tool-calls" else []
    line = ["--dst-data=talks.jsonl", f"--dst-outcome={outcome}", "--dst-variants=1", *tools]
    pytester.chdir()
    for file in folder.iterdir():
        file.rename(pytester.path / file.name)
    pytester.runpytest_inprocess(
        f"--dst-model=oddbots:{name}", "--dst-search=random", *line
    ).assert_outcomes(passed=1)


def test_it_is_checked(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check-tracker", "--model=oddbots:batches", "--data=talks.jsonl"]) in (0, 1), (
        folder
    )
    assert "Error" not in capsys.readouterr().err


def test_a_module_that_cannot_give_an_attribute_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = "def __getattr__(name):\n    raise KeyError(name)\n"
    (tmp_path / "oddmodule.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match="'oddmodule' cannot give its attribute 'bot': KeyError"):
        load_attribute("oddmodule:bot", (str(tmp_path),), "tracker")
