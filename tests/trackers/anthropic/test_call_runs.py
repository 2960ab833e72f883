"""Whole runs against models that call tools: streamed, in a budget, and without a credential."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from assistant_server import assistant, calling
from assistant_server import call as openai_call
from loopback import Asked, Service

KEY = "sk-0123456789abcdef0123"
TOOLS = [{"name": "book_table", "parameters": {"type": "object"}}, {"name": "find_menu"}]
USERS = (
    "The two of us need a table tonight",
    "A table and the menu please",
    "What about the menu today",
)


def said(asked: Asked) -> str:
    content = asked.body["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[-1]["text"]
    return str(text).lower()


def made(asked: Asked) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a model that knows the words letter by letter, and tells its token."""
    calls = (("table", "book_table"), ("menu", "find_menu"))
    return [(name, {"said": f"your key is {KEY}"}) for word, name in calls if word in said(asked)]


def openai() -> AbstractContextManager[Service]:
    def reply(asked: Asked) -> dict[str, Any]:
        return calling(*(openai_call(*one, number) for number, one in enumerate(made(asked))))

    return assistant(reply)


def anthropic() -> AbstractContextManager[Service]:
    pytest.importorskip("anthropic", reason="the client library of Anthropic is not installed")
    from official import call, official, text  # noqa: PLC0415 - needs the library

    def reply(asked: Asked) -> list[dict[str, Any]]:
        calls = [call(name, **arguments) for name, arguments in made(asked)]
        return calls or [text("What can it be?")]

    return official(reply)


@pytest.mark.parametrize("serve", [openai, anthropic])
def test_a_run_finds_what_a_call_hangs_on(
    serve: Callable[[], AbstractContextManager[Service]],
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", KEY)
    lines = [{"messages": [{"role": "user", "content": user}], "tools": TOOLS} for user in USERS]
    (pytester.path / "talks.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with serve() as service:
        run = pytester.runpytest(
            *(f"--dst-model={serve.__name__}+{service.url}", "--dst-outcome=tool-calls"),
            *("--dst-data=talks.jsonl", "--dst-tracker=stream=yes", "--dst-tracker=prices=1,1"),
            *("--dst-max-cost=1", "--dst-validity=edit-rate", "--dst-edits=char_drop"),
            *("--dst-transformations=1", "--dst-report=report.json"),
        )
        asked = len([one for one in service.asked if one.method == "POST" and "stream" in one.body])
    assert run.ret == 1
    written = (pytester.path / "report.json").read_text(encoding="utf-8")
    shown = run.stdout.str() + run.stderr.str() + written
    assert KEY not in shown
    report = json.loads(written)
    assert report["summary"]["errors"] == 0
    changed = [
        change["slot"]
        for turn in report["turns"]
        for variant in turn["variants"]
        for change in variant["changed_slots"]
    ]
    assert {"book_table[0]", "find_menu[0]"} & {*changed}
    usage = report["run"]["usage"]
    assert usage["uncounted"] == 0
    assert 0 < usage["answers"] <= asked
    assert usage["cost"] > 0
