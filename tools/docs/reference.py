"""Writes the parts of the reference that follow from the code, as Markdown."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import pytest

import pytest_dstfuzz
from pytest_dstfuzz import games
from pytest_dstfuzz.cli import COMMANDS, main
from pytest_dstfuzz.config import OPTIONS, Option, Settings
from pytest_dstfuzz.config.parsers import PARTS
from pytest_dstfuzz.gate import verdict
from pytest_dstfuzz.papers.commands import EXPERIMENTS
from pytest_dstfuzz.report import json_report
from tools.docs.pages import ROOT

#: What an exit status of pytest or of a gate means here.
_STATUSES: Final = {
    "OK": "all tests passed, and every gate that was set was kept",
    "TESTS_FAILED": "a test failed, a limit was exceeded, or the comparison found a `regression`",
    "INTERRUPTED": "the run was interrupted, as by Ctrl-C; what was tested is reported",
    "INTERNAL_ERROR": "an error in pytest or in a plugin",
    "USAGE_ERROR": (
        "wrong options, unreadable data, or a tracker that could not be loaded or gave no sound "
        "answer before the run; nothing was tested"
    ),
    "NO_TESTS_COLLECTED": "no test was selected",
    "MAX_WARNINGS_ERROR": "pytest's own limit of warnings was exceeded (`--max-warnings`)",
    "INFRASTRUCTURE": (
        "the tracker could not be asked, or with `--dst-baseline` too much of the run is missing: "
        "see the table below"
    ),
    "INCONCLUSIVE": "`dst_inconclusive=fail`, and the comparison decides nothing",
    "NOT_COMPARED": (
        "nothing could be compared with the baseline (other settings, words or data), and "
        "`dst_inconclusive=allow` was not given"
    ),
    "DRIFT": "clean answers differ from the baseline's at more turns than is allowed",
}
#: Commands whose first argument chooses one of several with options of their own.
_PARTS: Final = {
    "experiment": tuple(EXPERIMENTS),
    "train-tracker": ("trade", "trade-hardened", "simpletod"),
}
#: Exit statuses of the command ``dstfuzz``.
COMMAND_STATUSES: Final = {
    0: "done; also if the reader of the output closed the pipe, as `head` does",
    1: (
        "`dstfuzz check-tracker`: a check failed; `dstfuzz doctor`: there is a problem; "
        "`dstfuzz mend`: it advises no remedy; "
        "`dstfuzz harden`: no round is better than the bot before; "
        "`dstfuzz sweep`: a cell could not be run; `dstfuzz campaign`: a budget ended the run "
        "before all turns were tested, and the same command continues it; `dstfuzz campaign`, "
        "`merge` and `sweep`: the judge left more than 10 % of the pairs undecided"
    ),
    2: (
        "a wrong option, wrong data, an output that cannot be written, or anything else that the "
        "message explains"
    ),
    3: "a bug in dstfuzz, with a traceback to report",
    130: "interrupted by Ctrl-C; the message says what is kept",
}


def options() -> str:
    """Return all options by part, with their spellings, their defaults and their help."""
    out = []
    for part, about in PARTS.items():
        out.append(f"## {about.capitalize()}")
        out += [_option(item) for item in OPTIONS if item.part == part and item.of != "tracker"]
    out.append(
        "## Keys of trackers\n\n`--dst-tracker=KEY=VALUE`, or in the table "
        "`[tool.dstfuzz.tracker]` of `pyproject.toml`."
    )
    for item in OPTIONS:
        if item.of == "tracker":
            about = f"{item.help[0].upper()}{item.help[1:].rstrip('.')}."
            out.append(f"### `{item.flag}={item.value.metavar}` {{ #{item.flag} }}\n\n{about}")
    return "\n\n".join(out)


def _option(item: Option) -> str:
    if item.of:
        value = f"={item.value.metavar}" if item.key else ""
        spelling, facts = f"{item.spelled}{value}", [f"ini file: `dst_{item.name}`"]
    elif not item.has_flag:
        spelling, facts = f"dst_{item.name} = {item.value.metavar or 'yes|no'}", ["ini file alone"]
    else:
        spelling = f"--dst-{item.flag}" + ("" if item.is_switch else f"={item.value.metavar}")
        facts = [f"off: `--no-dst-{item.flag}`"] if item.is_switch else []
        facts.append(f"ini file: `dst_{item.name}`")
    if "test" in item.scopes:
        facts.append(f"marker: `{item.name}`")
    if default := _default(item):
        facts.append(f"default: {default}")
    about = f"{item.help[0].upper()}{item.help[1:].rstrip('.')}."
    return f"### `{spelling}` {{ #dst-{item.flag} }}\n\n{about}\n\n{'; '.join(facts)}"


def _default(item: Option) -> str:
    value = Settings().option(item.name)
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{value}`"


def fixtures() -> str:
    """Return every fixture of the plugin, with its scope and its docstring."""
    out = []
    call = "pytest.fixture"
    for path in sorted((ROOT / "pytest_dstfuzz").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # Few files have one, and it takes seconds to parse them all.
        for node in ast.walk(ast.parse(text if call in text else "")):
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if call in ast.unparse(mark):
                    scope = re.search(r"scope='(\w+)'", ast.unparse(mark))
                    out.append((node.name, scope[1] if scope else "function", node))
    return "\n\n".join(
        f"## `{name}`\n\nScope: {scope}.\n\n{_markdown(ast.get_docstring(node) or '')}"
        for name, scope, node in sorted(out, key=lambda entry: entry[0])
    )


def _markdown(docstring: str) -> str:
    """Return a docstring as Markdown: literals in single backticks, sections as lists."""
    text = re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(docstring))
    return re.sub(r"^(Args|Returns|Raises):$", r"**\1:**\n", text, flags=re.MULTILINE)


def exit_codes() -> str:
    """Return tables of the exit statuses of pytest and of ``dstfuzz``.

    Raises:
        KeyError: a status has no explanation.
    """
    statuses = {code.value: _STATUSES[code.name] for code in pytest.ExitCode}
    # Its own, none that it imports.
    for name in inspect.get_annotations(verdict):
        value = getattr(verdict, name)
        if not name.isupper() or not isinstance(value, int) or name in ("PASSED", "FAILED"):
            continue
        # A later pytest has a status of the same number: both stand there then.
        own = _STATUSES[name]
        statuses[value] = f"{own}; or {statuses[value]}" if value in statuses else own
    return "\n\n".join(
        (
            "## pytest",
            _table(("exit status", "meaning"), statuses),
            "## The command `dstfuzz`",
            _table(("exit status", "meaning"), COMMAND_STATUSES),
        )
    )


def _table(head: tuple[str, str], rows: Mapping[Any, str]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "| --- | --- |"]
    return "\n".join(lines + [f"| {key} | {value} |" for key, value in sorted(rows.items())])


def commands() -> str:
    """Return what ``--help`` of each command of ``dstfuzz`` prints."""
    out = [f"```text\n{_help([])}```"]
    for name in COMMANDS.names:
        every = ([name], *([name, part] for part in _PARTS.get(name, ())))
        out += [f"## dstfuzz {' '.join(words)}\n\n```text\n{_help(words)}```" for words in every]
    return "\n\n".join(out)


def _help(words: list[str]) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return shown.getvalue()


def schema_keys() -> str:
    """Return the meaning of each key of a JSON report."""
    return json_report.SCHEMA_PATH.with_suffix(".md").read_text(encoding="utf-8")


def schema_tree() -> str:
    """Return the keys of the report, as its JSON Schema lists them."""
    schema = json.loads(json_report.SCHEMA_PATH.read_text(encoding="utf-8"))
    lines = ["| key | type | always there |", "| --- | --- | --- |"]
    for path, kind, needed in _keys(schema, schema, ""):
        lines.append(f"| `{path}` | {kind} | {'yes' if needed else 'no'} |")
    return "\n".join(lines)


def _keys(
    node: Mapping[str, Any], schema: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str, bool]]:
    """Yield for each key down to the third level its path, its type and whether it is required."""
    for name, named in node.get("properties", {}).items():
        part = _resolved(named, schema)
        where = f"{path}.{name}" if path else name
        kind = part.get("type", "constant" if "const" in part else "one of several")
        shown = ", ".join(kind) if isinstance(kind, list) else str(kind)
        yield where, shown, name in node.get("required", ())
        if where.count(".") < 2:
            inner = _resolved(part.get("items", part), schema)
            yield from _keys(inner, schema, where + ("[]" if "items" in part else ""))


def _resolved(node: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(node, dict) and "$ref" in node:
        found: Any = schema
        for name in str(node["$ref"]).removeprefix("#/").split("/"):
            found = found[name]
        return dict(found)
    return node if isinstance(node, dict) else {}


def api() -> str:
    """Return a directive for each public name, which mkdocstrings replaces."""
    out = []
    for name in vars(pytest_dstfuzz)["__all__"]:
        value = getattr(pytest_dstfuzz, name)
        if inspect.ismodule(value):
            out.append(f"## pytest_dstfuzz.{name}\n\n{inspect.getdoc(value)}")
            out += [_directive(value, member, 3) for member in getattr(value, "__all__", ())]
        else:
            out.append(_directive(pytest_dstfuzz, name, 2))
    out.append("## pytest_dstfuzz.games")
    out += [_directive(games, name, 3) for name in vars(games)["__all__"]]
    return "\n\n".join(out)


def _directive(module: ModuleType, name: str, level: int) -> str:
    """Return the directive for a public name of a module. Another module may define it."""
    value = getattr(module, name)
    # Data has no module of its own, and is documented where it stands.
    place = f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else ""
    path = place or f"{module.__name__}.{name}"
    return f"::: {path}\n    options:\n      heading_level: {level}"


def unreleased() -> str:
    """Return the changes of the next release: the fragments of ``changelog.d``, by kind."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        kinds = tomllib.load(file)["tool"]["towncrier"]["type"]
    out = ["## Not released yet"]
    for kind in kinds:
        files = sorted((ROOT / "changelog.d").glob(f"*.{kind['directory']}.md"))
        texts = [path.read_text(encoding="utf-8").strip().replace("\n", "\n  ") for path in files]
        if texts:
            out += [f"### {kind['name']}", "\n".join(f"- {text}" for text in texts)]
    return "\n\n".join(out)


#: What pages may ask for, by name.
GENERATED: Final[dict[str, Callable[[], str]]] = {
    "options": options,
    "fixtures": fixtures,
    "exit-codes": exit_codes,
    "commands": commands,
    "schema-keys": schema_keys,
    "schema-tree": schema_tree,
    "api": api,
    "unreleased": unreleased,
}
