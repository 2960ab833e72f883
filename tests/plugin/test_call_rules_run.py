"""Rules of arguments, from the table, the command line, markers and `assert_unchanged`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from processes import run_python

#: An assistant whose ids are new each time, and that calls its tools in no fixed order.
AGENT = """
import zlib

def answer(messages, tools):
    said = messages[-1]["content"]
    number = zlib.crc32(said.encode())
    city = "Leeds" if number % 3 else "Leeds, UK"
    found = [{"name": "find", "arguments": {"city": city, "trace": number}}]
    log = [{"name": "log", "arguments": {"count": str(number)}}]
    both = log + found if number % 2 else found + log
    return {"role": "assistant", "tool_calls": [{"function": one} for one in both]}

def any_number(before, found):
    return isinstance(before, str) and found.isdecimal()
"""
#: Nothing of it is equal from one wording to the next.
RULES = {"find.*": "ignore", "log.count": "my_agent:any_number"}
SUITE = f"""
import pytest

ALL = {RULES!r}

@pytest.mark.dst(arguments=ALL)
def test_marked(dst_turn):
    dst_turn.assert_unchanged()

def test_asserted(dst_turn):
    dst_turn.assert_unchanged(arguments=ALL)

@pytest.mark.dst(arguments=ALL, call_order="exact")
def test_in_order(dst_turn):
    dst_turn.assert_unchanged()

def test_table_alone(dst_turn):
    dst_turn.assert_unchanged()

def test_too_late(dst_turn):
    dst_turn.result
    dst_turn.assert_unchanged(call_order="exact")
"""
TABLE = """
[tool.pytest.ini_options]
addopts = "-p no:cacheprovider"

[tool.dstfuzz.arguments]
"find.trace" = "ignore"
find.city = ["Leeds", "Leeds, UK"]
"""
TOOLS = [
    {"name": "find", "parameters": {"properties": {"city": {"type": "string"}, "trace": {}}}},
    {"name": "log", "parameters": {"properties": {"count": {"type": "integer"}}}},
]
ARGUMENTS = ("--dst-model=my_agent:answer", "--dst-outcome=tool-calls", "--dst-data=asked.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calls")
    path.joinpath("my_agent.py").write_text(AGENT, encoding="utf-8")
    path.joinpath("pyproject.toml").write_text(TABLE, encoding="utf-8")
    asked = "Please find me something nice to eat somewhere in the old centre of Leeds"
    tools = [{"type": "function", "function": tool} for tool in TOOLS]
    told = {"messages": [{"role": "user", "content": asked}], "tools": tools}
    path.joinpath("asked.jsonl").write_text(json.dumps(told), encoding="utf-8")
    path.joinpath("test_own.py").write_text(SUITE, encoding="utf-8")
    return path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ("-m", "pytest", "--color=no", *ARGUMENTS, *words)
    return run_python(*command, cwd=folder, env={**os.environ, "COLUMNS": "100"})


def test_rules_are_taken_from_everywhere(folder: Path) -> None:
    done = run(folder, "test_own.py", "--dst-report=r.json", "-k", "not late")
    told = done.stdout + done.stderr
    assert done.returncode == 1, told
    failed = [line.split("::")[1].split("[")[0] for line in told.splitlines() if "FAILED" in line]
    assert failed == ["test_in_order", "test_table_alone"]
    assert "2 passed" in told
    assert "(call 2 of the message, was call 1)" in told
    report = json.loads(folder.joinpath("r.json").read_text(encoding="utf-8"))
    assert report["outcome"]["kind"] == "tool-calls"
    assert "calls:any,find.trace=ignore" in report["outcome"]["compared"]
    changed = {
        change["slot"]
        for turn in report["turns"]
        for variant in turn["variants"]
        for change in variant["changed_slots"]
    }
    # By the table alone, which has nothing about it; and where order counts.
    assert changed == {"log[0].count", "find[0]", "log[0]"}


def test_a_rule_that_comes_too_late_is_told(folder: Path) -> None:
    done = run(folder, "test_own.py", "-k", "late")
    assert "assert_unchanged(call_order=...) comes too late: dst_turn.result or" in done.stdout
    assert done.returncode == 4


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("arguments=rules, **(rules.clear() or {})", "other rules (arguments)"),
        ("arguments=rules, **(rules['log.count'].clear() or {})", "other rules (arguments)"),
        ("", "assert_unchanged has other rules (arguments) than before in this test"),
        ("arguments=rules, call_order='any'", "other rules (call_order)"),
        ("arguments=rules", ""),
    ],
)
def test_all_assertions_of_a_test_have_the_same_rules(
    folder: Path, second: str, message: str
) -> None:
    folder.joinpath("test_twice.py").write_text(
        "def test_twice(dst_turn):\n"
        "    rules = {'find.trace': 'ignore', 'log.count': ['1', '2']}\n"
        "    dst_turn.assert_unchanged(arguments=rules)\n"
        f"    dst_turn.assert_unchanged({second})\n",
        encoding="utf-8",
    )
    done = run(folder, "test_twice.py", "--dst-fail-on=gate")
    assert message in " ".join(done.stdout.split())
    assert done.returncode == (4 if message else 0)


def test_a_rule_of_no_argument_ends_the_run(folder: Path) -> None:
    done = run(folder, "--dst-suite=yes", "--dst-arguments=find.citty=number")
    assert "no tool of the data has an argument 'find.citty'. Did you mean 'find.city'?" in (
        done.stdout + done.stderr
    )
    assert done.returncode == 4
