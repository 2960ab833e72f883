"""The tools of a server of the Model Context Protocol, as it lists them (extra ``mcp``)."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import sys
from typing import Any, Final

from mcp import Client, StdioServerParameters, stdio_client

from pytest_dstfuzz.config import MASK, masked
from pytest_dstfuzz.errors import UserError

#: What of a tool is kept: what an assistant is told of it.
_KEPT: Final = ("name", "description", "inputSchema")
#: What it says of itself and is kept: whether it changes anything, see `Tool.read_only`.
_HINT: Final = "readOnlyHint"
_ADDRESS: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")


def list_tools(server: str, seconds: float) -> list[dict[str, Any]]:
    """Return the tools of a server in the form of MCP, in its order.

    Args:
        server: the command that starts one which speaks over its standard input and output, or
            the address of one that is there, ``http://...``. A command sees the environment.
        seconds: that it may take in all.

    Raises:
        UserError: it does not start, or does not answer as the protocol says.
    """
    # The library logs what is no message of the protocol with a traceback; the error says it.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    shown = _shown(server)
    target = _target(server, shown)
    try:
        return asyncio.run(_listed(target, seconds))
    except Exception as error:  # noqa: BLE001 - of the library, and of what it found there
        first = _first(error)
    if isinstance(first, TimeoutError):
        why = f"did not list its tools within {seconds:g} s"
    elif isinstance(first, FileNotFoundError):
        why = f"cannot be started: there is no program {_program(server)!r}"
    else:
        told = str(first) or type(first).__name__
        why = f"lists no tools: {masked(' '.join(told.split()))}"
    raise UserError(
        f"the MCP server {shown!r} {why}. Give the command that starts it, in quotes, such as "
        "'python server.py', or its address, http://..."
    )


def _shown(server: str) -> str:
    """Return an address without its credentials, or a command without its arguments.

    Keys stand in arguments in more ways than could be told apart.
    """
    if _ADDRESS.match(server):
        return masked(server)
    program = _program(server)
    return program if server.strip() == program else f"{program} ..."


def _program(server: str) -> str:
    try:
        words = shlex.split(server)
    except ValueError:
        words = server.split()
    # A variable of the environment may have been meant, with its value.
    name, mark, _ = words[0].partition("=") if words else ("", "", "")
    return f"{name}={MASK}" if mark else name


def _target(server: str, shown: str) -> str | StdioServerParameters:
    if _ADDRESS.match(server):
        return server
    try:
        program, *arguments = shlex.split(server)
    except ValueError as error:
        raise UserError(f"{shown!r} is no command: {error}") from None
    return StdioServerParameters(command=program, args=arguments, env={**os.environ})


async def _listed(target: str | StdioServerParameters, seconds: float) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    # Its default for what a server complains about is what the error stream was at the import.
    started = target if isinstance(target, str) else stdio_client(target, errlog=sys.stderr)
    async with asyncio.timeout(seconds), Client(started) as client:
        cursor, seen = None, set[str]()
        while cursor not in seen:
            seen |= {cursor} if cursor else set()
            page = await client.list_tools(cursor=cursor)
            listed = page.model_dump(mode="json", by_alias=True, exclude_none=True)
            found += map(_kept, listed["tools"])
            cursor = page.next_cursor
            if not cursor:
                break
    return found


def _kept(tool: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: tool[key] for key in _KEPT if key in tool}
    hints = tool.get("annotations") or {}
    return {**found, "annotations": {_HINT: hints[_HINT]}} if _HINT in hints else found


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
