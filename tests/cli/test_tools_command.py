"""``dstfuzz tools`` against real servers of the official SDK."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from pytest_dstfuzz import cli
from pytest_dstfuzz.dialogue.readers.tools import read_tools

SERVER = """
from typing import Literal
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

app = MCPServer("restaurant")

@app.tool()
def book_table(people: int, area: Literal["north", "south"] = "north") -> str:
    '''Book a table.'''
    return "booked"

@app.tool(annotations=ToolAnnotations(title="Menus", readOnlyHint=True))
def find_menu(day: str) -> str:
    '''Find the menu of a day.'''
    return "leek soup"

app.run()
"""


def command(*words: str) -> str:
    return shlex.join([sys.executable, *words])


def test_the_tools_of_a_server_are_those_of_data(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    output = tmp_path / "tools.json"
    server = command(str(tmp_path / "server.py"))
    assert cli.main(["tools", server, "--output", str(output)]) == 0
    assert capfd.readouterr().out == f"{output}: 2 tools\n"
    book, find = read_tools(json.loads(output.read_text(encoding="utf-8")), "tools.json")
    assert (book.name, book.description) == ("book_table", "Book a table.")
    assert book.schema["properties"]["people"]["type"] == "integer"
    assert book.schema["properties"]["area"]["enum"] == ["north", "south"]
    assert find.schema["required"] == ["day"]
    assert (book.read_only, find.read_only) == (False, True)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("no-such-program --x", "there is no program 'no-such-program'"),
        ("no-such-program --key sk-secret --token=secret", "server 'no-such-program ...' cannot"),
        ("KEY=secret python server.py", "there is no program 'KEY=***'"),
        ("proxy --key=secret 'http://x", "'proxy ...' is not a valid command"),
        (command("-c", "print('Hello')"), "failed to list its tools: Connection closed"),
        (command("-c", "import time; time.sleep(9)"), "did not list its tools within 0.5 s"),
        ("python 'server.py", "is not a valid command: No closing quotation"),
        (
            "http://me:secret@127.0.0.1:9/mcp",
            "the MCP server 'http://***@127.0.0.1:9/mcp' failed to list",
        ),
    ],
)
def test_a_server_that_lists_nothing_is_one_message(
    server: str, problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    # Only the silent server has to be waited for; another may start slowly.
    seconds = "0.5" if "within" in problem else "30"
    assert cli.main(["tools", server, "--timeout", seconds]) == 2
    told = capfd.readouterr().err
    assert problem in told
    assert "Traceback" not in told
    assert "secret" not in told


def test_without_the_extra_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "pytest_dstfuzz.dialogue.mcp_server", raising=False)
    assert cli.main(["tools", "python server.py"]) == 2
    assert "pytest-dstfuzz[mcp]" in capfd.readouterr().err
