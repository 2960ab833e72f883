"""A plain pytest test of one remembered violation, which needs neither corpus nor campaign."""

from __future__ import annotations

from pytest_dstfuzz.dialogue.types import Context
from pytest_dstfuzz.memory.regression import Regression

_TEST = '''\
"""{summary}"""

from pytest_dstfuzz.dialogue.types import Context, Exchange
from pytest_dstfuzz.trackers.adapters import as_tracker

CLEAN = {clean}
SEEN = {seen}
SLOTS = {slots}


def test_belief_state_survives_{name}(dst_model):
    before, after = as_tracker(dst_model).predict([CLEAN, SEEN])
    assert [after.state.get(slot) for slot in SLOTS] == [before.state.get(slot) for slot in SLOTS]
'''


def promoted(regression: Regression) -> str:
    """Return the test of a violation: it passes once the slots that changed are let alone.

    It uses the fixture ``dst_model``, so that it is run against whatever tracker a suite is about.
    """
    changes = "; ".join(str(change) for change in regression.changed)
    summary = f"Turn {regression.turn}: {', '.join(regression.edits)} changed {changes}."
    return _TEST.format(
        summary=summary.replace("\\", "\\\\").replace('"', "'"),
        clean=_context(regression.clean),
        seen=_context(regression.seen),
        slots=repr([change.slot for change in regression.changed]),
        name=regression.id,
    )


def _context(context: Context) -> str:
    """Return a context as code, an exchange a line."""
    lines = (f"        Exchange({said.system!r}, {said.user!r}),\n" for said in context.exchanges)
    return f"Context(\n    (\n{''.join(lines)}    )\n)"
