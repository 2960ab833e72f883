"""The gallery: the demo's report, and a page of weaknesses found in the shipped trackers.

The report is made when the site is built. The page is committed; it is made from the JSON reports
of two runs over all shipped dialogues, which take some minutes:

    pytest --dst-model=trade --dst-turns=all --dst-search=random --dst-fail-on=gate \
        --dst-report=trade.json
    pytest --dst-model=simpletod --dst-turns=all --dst-search=random --dst-fail-on=gate \
        --dst-report=simpletod.json
    python -m tools.docs.gallery trade.json simpletod.json
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.docs.pages import DOCS, ROOT

PAGE: Final = DOCS / "gallery" / "weaknesses.md"
REPORT: Final = ROOT / "build" / "docs" / "report.html"
#: How many weaknesses of each tracker are shown.
SHOWN: Final = 8
#: Operators whose edits people make: a look-alike letter or an emoji would say less.
_LIKELY: Final = ("misspelling", "swap", "any", "repeat", "keyboard", "keyboard_insert", "synonym")
_KINDS: Final = {"lost": "forgets", "other": "takes another value for", "invented": "makes up"}
_WIDTH: Final = 92
_HEAD: Final = """\
---
description: Weaknesses found in the shipped TRADE and SimpleTOD, each with its conversation.
---

# Weaknesses found

What random sampling found in the shipped trackers, on the dialogues that ship with the package.
Each example is one edit (a typing error, a common misspelling or a synonym) at a turn whose
unchanged version the tracker understands rightly. `[-taken out-]{+put in+}` is the edit, `does`
what it does to the belief state. The numbers count the violations of this kind that one edit
explains. Made by [a script](../../tools/docs/gallery.py) from the reports of two runs."""


def demo_report() -> bytes:
    """Return the HTML report of the demo, `examples/quickstart`; it is made where it is missing.

    Raises:
        subprocess.CalledProcessError: the demo did not run to its end.
    """
    if not REPORT.is_file():
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--dst-model=trade", "--dst-max-failure-rate=30%", f"--dst-html={REPORT}"]
        command += ["--rootdir=examples/quickstart", "examples/quickstart"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - our own
    return REPORT.read_bytes()


class Weakness(NamedTuple):
    """One way in which a tracker breaks, and where it was seen."""

    slot: str
    kind: str
    violations: int
    turns: int
    turn: Mapping[str, Any]
    #: What the turn says with the one edit that is left.
    text: str
    before: str
    after: str


def weaknesses(report: Mapping[str, Any]) -> list[Weakness]:
    """Return the weaknesses that most turns show, each with its own turn as an example.

    A weakness is a slot that is lost, invented or given another value. Only violations count that
    one edit of the turn itself explains; the example has an edit that people make, of a word of
    more than one letter, and a clean answer that is right by the label.
    """
    groups: dict[tuple[str, str], list[tuple[Mapping[str, Any], Any, Any]]] = defaultdict(list)
    for turn, minimal in _explained(report):
        for change in minimal["changed_slots"]:
            if not change["carried"]:
                groups[change["slot"], _kind(change)].append((turn, minimal, change))
    order = sorted(groups, key=lambda key: (-len({t["id"] for t, _, _ in groups[key]}), key))
    found: list[Weakness] = []
    for slot, kind in order:
        members = groups[slot, kind]
        turns = {turn["id"] for turn, _, _ in members}
        used = {weakness.turn["id"] for weakness in found}
        for turn, minimal, change in members:
            right = (turn["label"] or {}).get(slot) == change["before"]
            likely = minimal["edits"][0]["operator"] in _LIKELY and not re.search(
                r"\[-\W*\w\W*-\]", marked(turn["user"], minimal["text"])
            )
            if likely and right and turn["id"] not in used:
                values = (str(change[key] or "none") for key in ("before", "after"))
                found.append(
                    Weakness(slot, kind, len(members), len(turns), turn, minimal["text"], *values)
                )
                break
        if len(found) == SHOWN:
            break
    return found


def _explained(report: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Any]]:
    for turn in report["turns"]:
        for variant in turn["variants"]:
            minimal = variant["minimal"]
            if minimal and len(minimal["edits"]) == 1 and not minimal["context_edits"]:
                yield turn, minimal


def _kind(change: Mapping[str, Any]) -> str:
    if change["after"] is None:
        return "lost"
    return "invented" if change["before"] is None else "other"


def marked(before: str, after: str) -> str:
    """Return a text with the words that differ written as ``[-before-]{+after+}``.

    >>> marked("with free parking.", "with free patking.")
    'with free [-parking.-]{+patking.+}'
    """
    old, new = (re.findall(r"\S+", text) for text in (before, after))
    out: list[str] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            out += old[i:j]
        else:
            gone = f"[-{' '.join(old[i:j])}-]" if i < j else ""
            out.append(gone + (f"{{+{' '.join(new[k:m])}+}}" if k < m else ""))
    return " ".join(out)


def _conversation(report: Mapping[str, Any], weakness: Weakness) -> str:
    turn = weakness.turn
    before = [
        other
        for other in report["turns"]
        if other["dialogue_id"] == turn["dialogue_id"] and other["turn_index"] < turn["turn_index"]
    ]
    said: list[tuple[str, str]] = []
    for other in (*before, turn):
        user = marked(other["user"], weakness.text) if other is turn else other["user"]
        said += [("system:", other["system"]), ("user:", user)]
    said.append(("does:", f"{weakness.slot}: {weakness.before} -> {weakness.after}"))
    return "\n".join(
        textwrap.fill(f"{who:<8}{text}", _WIDTH, subsequent_indent=" " * 8, break_long_words=False)
        for who, text in said
        if text
    )


def page(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of weaknesses.

    Args:
        reports: JSON report of each tracker, by the name that the page gives it.
    """
    out = [_HEAD]
    for name, report in reports.items():
        figures = report["summary"]
        low, high = figures["failure_rate_interval"]
        out.append(
            f"## {name}\n\n{figures['violations']} violations in {figures['turns_broken']} of "
            f"{figures['turns_tested']} turns that have a valid variant (of {figures['turns']}); "
            f"failure rate {figures['failure_rate']:.1%} of the valid variants (95 % interval "
            f"{low:.1%} to {high:.1%})."
        )
        for found in weaknesses(report):
            turn = found.turn
            out.append(
                f"### {name} {_KINDS[found.kind]} `{found.slot}`\n\n{found.violations} violations "
                f"at {found.turns} turns. Here dialogue `{turn['dialogue_id']}`, turn "
                f"{turn['turn_index']}:\n\n```text\n{_conversation(report, found)}\n```"
            )
    return "\n\n".join(out) + "\n"


if __name__ == "__main__":
    loaded = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    PAGE.write_text(page(dict(zip(("TRADE", "SimpleTOD"), loaded, strict=True))), encoding="utf-8")
