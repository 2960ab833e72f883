"""``dstfuzz convert``: convert dialogues of any layout to JSON Lines with messages and tools."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.cli.command import Command, build_given_settings, check_output
from pytest_dstfuzz.config import TOOL_CALLS
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.files import check_writable, write_lines
from pytest_dstfuzz.printable import printable

_READ: Final = ("data", "tools", "split", "outcome")
_EXAMPLES = """\
  dstfuzz convert --data sgd --split test --output sgd.jsonl      with tools and calls
  dstfuzz convert --data claude.json --output chat.jsonl          from Anthropic's format
  dstfuzz convert --data talks.csv --tools tools.json --output talks.jsonl"""


def _options(parser: Parser) -> None:
    parser.shared(*_READ, required=("data",))
    parser.option(
        "--output", type=Path, required=True, metavar="PATH", help="file to write, in JSON Lines"
    )


def _convert(given: Namespace) -> None:
    # Imported late so that help and usage errors do not wait for the readers.
    from pytest_dstfuzz.dialogue.dialogues import json_lines  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: PLC0415

    given.outcome = given.outcome or TOOL_CALLS
    settings = build_given_settings(given, _READ)
    how, path = settings.data, given.output
    check_writable(path)
    check_output({"--output": path}, {"--tools": how.tools}, {"--data": how.data})
    outcome = settings.reply.outcome
    data = load_dialogues(how.data, how.split, outcome=outcome, tools=how.tools)
    write_lines(path, json_lines(data.dialogues))
    count, turns = len(data.dialogues), data.turn_count()
    told = [f"wrote {path} (dialogues: {count:,}, turns: {turns:,})", *data.notes]
    print(printable("\n".join(told)))


COMMANDS = (
    Command(
        name="convert",
        summary="convert dialogues of any layout to JSON Lines with messages and tools",
        kept="nothing was written",
        examples=_EXAMPLES,
        options=_options,
        work=_convert,
    ),
)
