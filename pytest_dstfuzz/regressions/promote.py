"""Writes remembered violations as plain pytest tests, without a corpus or campaign."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Sequence

from pytest_dstfuzz.comparisons.arguments import ArgumentTable
from pytest_dstfuzz.comparisons.registry import COMPARISONS, comparison_by_name
from pytest_dstfuzz.config import JUDGE, ReplySettings
from pytest_dstfuzz.dialogue.calls import Transcript
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.regressions.regression import Regression
from pytest_dstfuzz.relations.relation import Delta

_IMPORTS = (
    "from pytest_dstfuzz import Context, Exchange",
    "from pytest_dstfuzz.testing import assert_follows",
)
_TRANSCRIPT_IMPORT = "from pytest_dstfuzz import Tool, Transcript"
_EXPECTED_IMPORT = "from pytest_dstfuzz import Admissible, Delta"
_TEST = '''\
def {name}(dst_model):
    """{summary}"""
{recorded}    clean = {clean}
    seen = {seen}
    slots = {slots}
    assert_follows(
        dst_model,
        clean,
        seen,
{expected}        slots=slots,
        normalisation="{rules}",
{compared}    )
'''


def write_promoted(regression: Regression, existing: str = "") -> str:
    """Append a test for a remembered violation to the text of a test file.

    Missing imports are added, too. The test passes if the wrongly changed slots have the right
    values. It uses the fixture ``dst_model``, so it runs against the tracker of any suite. It
    accepts the same answers as a campaign.

    Raises:
        UserError: the violation was found with the system's own messages in the history. A plain
            test has only the recorded messages, so it cannot reproduce the violation. Or the
            violation depends on options for replies that a plain test does not have.
    """
    if regression.history == "own":
        raise UserError(
            f"{regression.id} was found with the system's own messages in the history, which a "
            f"plain test does not have: replay it with --dst-replay={regression.id} "
            "--dst-history=own"
        )
    if _needs_options(regression):
        raise UserError(
            f"{regression.id} is a violation only with options of the run, such as dst_fallback or "
            "dst_cited, which a plain test does not have: replay it with "
            f"--dst-replay={regression.id}"
        )
    verb = "follow" if regression.expected else "survive"
    name = f"{regression.kind.words.test_name(verb)}_{regression.id}"
    try:
        module = ast.parse(existing)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UserError(f"a test can be added only to valid Python: {error}") from None
    if any(isinstance(node, ast.FunctionDef) and node.name == name for node in module.body):
        raise UserError(f"the test of {regression.id} exists already")
    imports = [*_IMPORTS, _EXPECTED_IMPORT] if regression.expected else list(_IMPORTS)
    if regression.transcript is not None:
        imports.append(_TRANSCRIPT_IMPORT)
    head = _with_imports(existing, module, sorted(imports))
    return f"{head.rstrip()}\n\n\n{_test(regression, name)}"


def write_all_promoted(regressions: Iterable[Regression], existing: str = "") -> str:
    """Append the tests of several violations to the text of a test file, see `write_promoted`."""
    for regression in regressions:
        existing = write_promoted(regression, existing)
    return existing


def _test(regression: Regression, name: str) -> str:
    changes = "; ".join(regression.lines_of(regression.changed))
    what = regression.done
    summary = f"Turn {regression.turn}: {what} changed {changes}"
    slots = [change.slot for change in regression.changed]
    expected = ""
    if regression.expected:
        summary = f"Turn {regression.turn}: after {what} {changes}"
        slots = sorted({*slots, *(delta.slot for delta in regression.expected)})
        expected = "".join(map(_delta, regression.expected))
    ended = summary if summary.endswith((".", "?", "!")) else f"{summary}."
    return _TEST.format(
        name=name,
        summary=" ".join(printable(ended).replace("\\", "\\\\").replace('"', "'").split()),
        recorded=_transcripts(regression),
        clean=_context(regression.clean, "recorded"),
        seen=_context(regression.seen, "recorded" if regression.given is None else "given"),
        slots=repr(slots),
        expected=expected,
        rules=regression.normalisation,
        compared=_compared(regression),
    )


def _compared(regression: Regression) -> str:
    """Return the code of the arguments for the kind of answer and its comparison."""
    if regression.kind.has_slots:
        rules = _rules_in(regression.compare.partition(",")[2])
        return f"        arguments={rules!r},\n" if rules else ""
    if regression.kind.has_tools:
        return _rules(regression)
    names, limit = _names_and_limit(regression)
    lines = [f'outcome="{regression.outcome}"', f"compare={names or None!r}"]
    lines += [] if limit is None else [f"threshold={limit}"]
    return "".join(f"        {line},\n" for line in lines)


def _needs_options(regression: Regression) -> bool:
    """Return whether the comparison of a plain test accepts the wrong reply."""
    shipped = {*COMPARISONS.shipped} - {JUDGE}
    names, limit = _names_and_limit(regression)
    if regression.kind.words.values or regression.expected or not {*names.split(",")} <= shipped:
        return False
    settings = ReplySettings(outcome="reply", threshold=limit)
    same = comparison_by_name(names, settings)
    return all(
        same.compare(each.slot, each.before or "", each.after or "", regression.clean).same
        for each in regression.changed
    )


def _names_and_limit(regression: Regression) -> tuple[str, float | None]:
    """Return the names of the comparisons of replies, and the largest distance."""
    # "numbers,embedding:shipped<=0.45": shipped comparisons need only their names.
    names = re.sub(r"(:shipped)?<=[0-9.]+", "", regression.compare)
    limit = re.search(r"<=([0-9.]+)", regression.compare)
    return names, None if limit is None else float(limit[1])


def _with_imports(existing: str, module: ast.Module, wanted: Sequence[str]) -> str:
    """Return a file with missing imports added after its own imports."""
    lines = existing.splitlines()
    missing = [line for line in wanted if line not in lines]
    place = 0
    for number, node in enumerate(module.body):
        docstring = not number and ast.get_docstring(module) is not None
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            place = node.end_lineno or 0
    if place and missing and not isinstance(module.body[0], ast.Import | ast.ImportFrom):
        missing = ["", *missing] if place == module.body[0].end_lineno else missing
    return "\n".join([*lines[:place], *missing, *lines[place:]])


def _delta(delta: Delta) -> str:
    """Return the code for the expected change of a slot."""
    but = ", anything_but=True" if delta.after.anything_but else ""
    but += ", or_no_call=True" if delta.after.or_no_call else ""
    after = f"Admissible({delta.after.values!r}{but})"
    return f"        Delta({delta.slot!r}, {delta.before!r}, {after}),\n"


def _transcripts(regression: Regression) -> str:
    """Return the code for the recorded transcript, and for the transcript of the variant."""
    named = {"recorded": regression.transcript, "given": regression.given}
    return "".join(
        f"    {name} = {_transcript(one)}\n" for name, one in named.items() if one is not None
    )


def _transcript(transcript: Transcript) -> str:
    tools = [
        f"            Tool(\n                {tool.name!r},\n"
        f"                {tool.description!r},\n"
        f"                {tool.parameters!r},\n            ),\n"
        for tool in transcript.tools
    ]
    before = [f"            {_messages(one)},\n" for one in transcript.before]
    names = f"        {transcript.names!r},\n" if transcript.names else ""
    return f"Transcript(\n        ({_within(tools)}),\n        ({_within(before)}),\n{names}    )"


def _messages(messages: tuple[str, ...] | None) -> str:
    if not messages:
        return repr(messages)
    lines = "".join(f"                {one!r},\n" for one in messages)
    return f"(\n{lines}            )"


def _within(lines: Sequence[str]) -> str:
    return f"\n{''.join(lines)}        " if lines else ""


def _rules_in(listed: str) -> list[str]:
    """Split rules at the commas between them. A rule is a name or a JSON list of values."""
    found = []
    while listed:
        start = listed.find("=") + 1
        comma = listed.find(",", start)
        end = len(listed) if comma < 0 else comma
        if listed.startswith("[", start):
            end = json.JSONDecoder().raw_decode(listed, start)[1]
        found.append(listed[:end])
        listed = listed[end + 1 :]
    return found


def _rules(regression: Regression) -> str:
    """Return the code for comparing calls, with all rules that may matter."""
    order, _, listed = regression.compare.removeprefix("calls:").partition(",")
    tools = () if regression.transcript is None else regression.transcript.tools
    known = ArgumentTable(tools=tools)
    slots = {*known.slots, *(change.path.part[1] for change in regression.changed)}
    lines = [f'outcome="{regression.outcome}"']
    lines += ['call_order="exact"'] if order == "exact" else []
    kept = [
        one
        for one in _rules_in(listed)
        if any(known.fits(one.partition("=")[0], slot) for slot in slots)
    ]
    lines += [f"arguments={kept!r}"] if kept else []
    return "".join(f"        {line},\n" for line in lines)


def _context(context: Context, transcript: str) -> str:
    """Return the code for a context, one exchange per line, with the name of its transcript."""
    lines = (
        f"            Exchange({said.system!r}, {said.user!r}),\n" for said in context.exchanges
    )
    also = f",\n        transcript={transcript},\n    )" if context.transcript else "\n    )"
    return f"Context(\n        (\n{''.join(lines)}        ){also}"
