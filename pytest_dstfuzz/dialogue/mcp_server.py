"""List the tools of a server of the Model Context Protocol (extra ``mcp``)."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import sys
from typing import Any, Final

from mcp import Client, StdioServerParameters, stdio_client

from pytest_dstfuzz.config import MASK, mask_credentials
from pytest_dstfuzz.errors import UserError

#: The keys of a tool that are kept, as an assistant gets them.
_KEPT: Final = ("name", "description", "inputSchema")
#: The only annotation that is kept: whether the tool only reads, see `Tool.read_only`.
_HINT: Final = "readOnlyHint"
_ADDRESS: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")


def list_tools(server: str, seconds: float) -> list[dict[str, Any]]:
    """Return the tools of a server in the form of MCP, in the order of the server.

    Args:
        server: a command that starts a server on standard input and output, or the address
            ``http://...`` of a running server. A command inherits the environment.
        seconds: timeout for the whole listing.

    Raises:
        UserError: If the server does not start or does not follow the protocol.
    """
    # The library logs invalid messages with a traceback. The error reports them already.
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    shown = _shown(server)
    target = _target(server, shown)
    try:
        return asyncio.run(_listed(target, seconds))
    except Exception as error:  # noqa: BLE001 - of the library, or of the server
        first = _first(error)
    if isinstance(first, TimeoutError):
        why = f"did not list its tools within {seconds:g} s"
    elif isinstance(first, FileNotFoundError):
        why = f"cannot be started: there is no program {_program(server)!r}"
    else:
        told = str(first) or type(first).__name__
        why = f"failed to list its tools: {mask_credentials(' '.join(told.split()))}"
    raise UserError(
        f"the MCP server {shown!r} {why}. Give the command that starts it, in quotes, such as "
        "'python server.py', or its address, http://..."
    )


def _shown(server: str) -> str:
    """Return an address without its credentials, or a command without its arguments.

    Arguments may contain credentials in too many ways to mask only these.
    """
    if _ADDRESS.match(server):
        return mask_credentials(server)
    program = _program(server)
    return program if server.strip() == program else f"{program} ..."


def _program(server: str) -> str:
    try:
        words = shlex.split(server)
    except ValueError:
        words = server.split()
    # The first word may be an assignment to an environment variable. Mask the value.
    name, mark, _ = words[0].partition("=") if words else ("", "", "")
    return f"{name}={MASK}" if mark else name


def _target(server: str, shown: str) -> str | StdioServerParameters:
    if _ADDRESS.match(server):
        return server
    try:
        program, *arguments = shlex.split(server)
    except ValueError as error:
        raise UserError(f"{shown!r} is not a valid command: {error}") from None
    return StdioServerParameters(command=program, args=arguments, env={**os.environ})


async def _listed(target: str | StdioServerParameters, seconds: float) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    # The default of ``errlog`` is the standard error at import time, which may be replaced since.
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
