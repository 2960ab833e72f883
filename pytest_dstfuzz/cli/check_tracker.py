"""``dstfuzz check-tracker``: what is wrong with the adapter of a tracker, all at once."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_dstfuzz.cli.progress import ProgressLine
from pytest_dstfuzz.config import ADAPTER, Settings, TrackerSettings, build_settings, parse_option
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.rates import percent

if TYPE_CHECKING:
    from pytest_dstfuzz.dialogue.dialogues import DialogueSet
    from pytest_dstfuzz.report.page import Style, StyledLine
    from pytest_dstfuzz.trackers.conformance import Conformance

SUMMARY = "check that a tracker can be tested, and say what is wrong with it"
KEPT = "nothing was kept"
EXIT_FAILED = 1

_SHARED = (
    "model",
    "checkpoint",
    "data",
    "split",
    "domains",
    "slots",
    "device",
    "batch_size",
    "repeatable",
    *ADAPTER,
)
_EXAMPLES = """\
  dstfuzz check-tracker --model my_bot:track             on the shipped dialogues
  dstfuzz check-tracker --model my_bot:track --data conversations.jsonl
  dstfuzz check-tracker --model http://localhost:8000 --turns 100 --json
It exits with 0 when all checks passed (a warning is no failure), with 1 when one failed, and
with 2 when the tracker cannot be made."""
#: Status of a finding -> how the table shows it.
_SHOWN: dict[str, tuple[str, Style]] = {
    "passed": ("ok", "good"),
    "failed": ("FAIL", "bad"),
    "warned": ("warn", "warning"),
    "skipped": ("-", "dim"),
}
_ANSI = {"good": "32", "bad": "1;31", "warning": "33", "dim": "2"}


def run(arguments: Sequence[str]) -> int:
    """Check the tracker and print what was found; 1 when a check failed."""
    parser = Parser(
        "dstfuzz check-tracker",
        "Ask a tracker for clean and odd dialogues, alone, in batches and in other orders,\n"
        "and print what is wrong with its answers, and what to do about it.",
        _EXAMPLES,
    )
    parser.shared(*_SHARED, required=("model",))
    parser.value(
        "--turns",
        lambda text: parse_option("turns", text, "--turns"),
        "N|all",
        help="turns to ask for, of dialogues drawn by seed (default: all)",
    )
    parser.option("--json", action="store_true", help="print findings and figures as JSON")
    options = vars(parser.parse_all(arguments))
    as_json, turns = options.pop("json"), options.pop("turns")
    settings = build_settings({name: value for name, value in options.items() if value is not None})
    checked = _check(settings, turns)
    found = checked.found
    if as_json:
        print(json.dumps(_as_json(settings.tracker, checked), indent=2))
    else:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        for line in _page(settings.tracker, checked):
            print(_coloured(line) if colour else line.text)
    return 0 if found.passed else EXIT_FAILED


class _Checked(NamedTuple):
    """What was asked with, what was found, and what there is to say of data and tracker."""

    data: DialogueSet
    found: Conformance
    notes: tuple[str, ...]


def _check(settings: Settings, turns: int | None) -> _Checked:
    # Imported late: help and mistakes in the command line should not wait for numpy.
    from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.ontology import with_slots  # noqa: PLC0415
    from pytest_dstfuzz.dialogue.sampling import sample_set  # noqa: PLC0415
    from pytest_dstfuzz.trackers.conformance import check_tracker  # noqa: PLC0415
    from pytest_dstfuzz.trackers.registry import tracker_for  # noqa: PLC0415
    from pytest_dstfuzz.trackers.tracker import notes_of  # noqa: PLC0415

    data = with_slots(load_dialogues(settings.data.data, settings.data.split), settings.data.slots)
    data = sample_set(data, turns, settings.variant.seed, settings.data.domains)
    tracker = tracker_for(settings, data)
    progress = ProgressLine("contexts asked for")
    try:
        found = check_tracker(
            tracker,
            data,
            settings.tracker.batch_size,
            lambda asked: progress(asked, None),
            repeatable=settings.tracker.repeatable,
        )
    finally:
        progress.close()
    return _Checked(data, found, (*data.notes, *notes_of(tracker)))


def _page(settings: TrackerSettings, checked: _Checked) -> list[StyledLine]:
    from pytest_dstfuzz.report.page import TerminalPage  # noqa: PLC0415 - help should not wait for it

    page = TerminalPage(shutil.get_terminal_size((100, 24)).columns, sys.stdout.encoding or "utf-8")
    data, found, notes = checked
    where = f"{data.name}, split {data.split}: {len(data.dialogues)} dialogues"
    page.field("tracker      ", str(settings.model))
    page.field("data         ", f"{where}, {data.turn_count()} turns")
    for note in notes:
        page.field("note         ", note)
    page.gap()
    for finding in found.findings:
        word, style = _SHOWN[finding.status]
        page.field(f"  {word:<5} {finding.check:<15} ", finding.message, style)
        if finding.advice and finding.status != "passed":
            page.field(" " * 24, finding.advice)
    page.gap()
    rates = "   ".join(f"{size}: {rate:,.1f}" for size, rate in found.throughput.items())
    if rates:
        page.field("contexts a second by batch size   ", rates)
    if accuracy := found.evaluation:
        joint = percent(accuracy.joint_goal_accuracy)
        labelled = " with labels" if accuracy.unlabelled else ""
        of = f"{accuracy.turns} turns{labelled}"
        page.field("joint goal accuracy               ", f"{joint} of {of}")
        page.field("slot accuracy                     ", percent(accuracy.slot_accuracy))
    page.field("contexts asked for                ", f"{found.asked:,}")
    page.gap()
    page.line(found.headline(), "good" if found.passed else "bad")
    return page.lines


def _as_json(settings: TrackerSettings, checked: _Checked) -> dict[str, object]:
    data, found, notes = checked
    return {
        "tracker": str(settings.model),
        "data": data.name,
        "split": data.split,
        "dialogues": len(data.dialogues),
        "turns": data.turn_count(),
        "notes": list(notes),
        **found.to_json(),
    }


def _coloured(line: StyledLine) -> str:
    """Return a line in the colour of its style, for a terminal."""
    code = _ANSI.get(line.style)
    return f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text
