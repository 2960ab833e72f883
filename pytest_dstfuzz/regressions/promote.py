"""Plain pytest tests of remembered violations, which need neither corpus nor campaign."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.regressions.regression import Regression

_IMPORTS = (
    "from pytest_dstfuzz.dialogue.dialogues import Context, Exchange",
    "from pytest_dstfuzz.trackers.adapters import as_tracker",
    "from pytest_dstfuzz.trackers.validation import check_predictions",
)
_TEST = '''\
def {name}(dst_model):
    """{summary}"""
    clean = {clean}
    seen = {seen}
    slots = {slots}
    tracker = as_tracker(dst_model, normalisation="{rules}")
    before, after = check_predictions(tracker.predict([clean, seen]), 2, "{rules}")
    assert [after.state.get(slot) for slot in slots] == [before.state.get(slot) for slot in slots]
'''


def promoted(regression: Regression, existing: str = "") -> str:
    """Return a file of tests, its imports completed, with that of a violation at its end.

    The test passes once the slots that changed are let alone. It uses the fixture
    ``dst_model``, so that it is run against whatever tracker a suite is about, and takes what
    that may answer wherever a campaign does.
    """
    name = f"test_belief_state_survives_{regression.id}"
    try:
        module = ast.parse(existing)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"it is no Python that a test could be added to: {error}") from None
    if any(isinstance(node, ast.FunctionDef) and node.name == name for node in module.body):
        raise UserError(f"the test of {regression.id} is there already")
    head = _with_imports(existing, module)
    return f"{head.rstrip()}\n\n\n{_test(regression, name)}"


def promoted_all(regressions: Iterable[Regression], existing: str = "") -> str:
    """Return a file of tests with those of several violations at its end, see `promoted`."""
    for regression in regressions:
        existing = promoted(regression, existing)
    return existing


def _test(regression: Regression, name: str) -> str:
    changes = "; ".join(str(change) for change in regression.changed)
    summary = f"Turn {regression.turn}: {', '.join(regression.edits)} changed {changes}."
    return _TEST.format(
        name=name,
        summary=" ".join(printable(summary).replace("\\", "\\\\").replace('"', "'").split()),
        clean=_context(regression.clean),
        seen=_context(regression.seen),
        slots=repr([change.slot for change in regression.changed]),
        rules=regression.normalisation,
    )


def _with_imports(existing: str, module: ast.Module) -> str:
    """Return a file with the imports of a test, those that it lacks after its own."""
    lines = existing.splitlines()
    missing = [line for line in _IMPORTS if line not in lines]
    place = 0
    for number, node in enumerate(module.body):
        docstring = not number and ast.get_docstring(module) is not None
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            place = node.end_lineno or 0
    if place and missing and not isinstance(module.body[0], ast.Import | ast.ImportFrom):
        missing = ["", *missing] if place == module.body[0].end_lineno else missing
    return "\n".join([*lines[:place], *missing, *lines[place:]])


def _context(context: Context) -> str:
    """Return a context as code, an exchange a line."""
    lines = (
        f"            Exchange({said.system!r}, {said.user!r}),\n" for said in context.exchanges
    )
    return f"Context(\n        (\n{''.join(lines)}        )\n    )"
