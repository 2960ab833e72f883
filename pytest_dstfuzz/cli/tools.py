"""``dstfuzz tools``: write the tools of an MCP server to a file for --dst-tools."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from pytest_dstfuzz.cli.command import Command
from pytest_dstfuzz.config import parsers
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.printable import format_count

_EXAMPLES = """\
  dstfuzz tools "python server.py" --output tools.json   a server that the command starts
  dstfuzz tools http://localhost:8000/mcp                a running server
  pytest --dst-model=my_bot:answer --dst-outcome=tool-calls --dst-data=talks.jsonl \\
         --dst-tools=tools.json"""


def _options(parser: Parser) -> None:
    parser.add_argument(
        "server",
        metavar="SERVER",
        help="command that starts the MCP server, in quotes, or the address of the server, "
        "http://...",
    )
    parser.option(
        "--output",
        type=Path,
        metavar="FILE",
        help="file to write the tools to (default: print them)",
    )
    parser.value(
        "--timeout",
        parsers.SECONDS.parse,
        "SECONDS",
        default=60.0,
        help="maximum seconds for all answers of the server (default: 60)",
    )


def _tools(given: Namespace) -> None:
    with needs_extra("dstfuzz tools", "mcp", "mcp"):
        from pytest_dstfuzz.dialogue.mcp_server import list_tools  # noqa: PLC0415 - needs the extra
    # Imported late so that help and usage errors do not wait for them.
    from pytest_dstfuzz.dialogue.readers.tools import read_tools  # noqa: PLC0415
    from pytest_dstfuzz.files import write_json  # noqa: PLC0415

    listed = list_tools(given.server, given.timeout)
    # Only validate: the file contains the server's own text.
    tools = read_tools(listed, "the list of the server")
    if given.output is None:
        print(json.dumps({"tools": listed}, indent=2, ensure_ascii=False))
        return
    write_json(given.output, {"tools": listed})
    print(f"{given.output}: {format_count(len(tools), 'tool')}")


COMMANDS = (
    Command(
        "tools",
        "write the tools of an MCP server to a file, for --dst-tools",
        "nothing was written",
        _EXAMPLES,
        _options,
        _tools,
        about="List the tools of a server of the Model Context Protocol as JSON, so that\n"
        "conversations without tools can be tested with --dst-tools=FILE.",
    ),
)
