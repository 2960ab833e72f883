"""Makes the gallery: the demo's report, and a page of weaknesses found in the shipped trackers.

The report is made when the site is built. The page is committed. To make it, run pytest over all
shipped dialogues with the options of `RUN` and `--dst-report=FILE`, once with each model, which
takes a minute or two. Then run:

    python -m tools.docs.gallery trade.json simpletod.json
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.report.json_report import read_report
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.report.weaknesses import Card, user_turns
from pytest_dstfuzz.report.wording import mark_edits, needed_context
from tools.docs.pages import DOCS, ROOT

PAGE: Final = DOCS / "gallery" / "weaknesses.md"
REPORTS: Final = ROOT / "build" / "docs"
#: How many weaknesses of each tracker are shown.
SHOWN: Final = 10
RUN: Final = (
    "--dst-validity=natural --dst-search=noise --dst-turns=all --dst-variants=20 --dst-fail-on=gate"
)
_WIDTH: Final = 92
_HEAD: Final = f"""\
---
description: The ten first weaknesses of the shipped TRADE and SimpleTOD, with conversations.
---

# Weaknesses found

This page shows the first ten [weaknesses](../concepts/weaknesses.md) of the two shipped trackers,
on the dialogues of the package. The search `noise` drew the variants as people type them. The
weaknesses are ordered by their [estimated failures](../concepts/noise.md): how many of 1,000 user
turns fail because of the weakness.

```shell
pytest {RUN} \\
    --dst-model=trade --dst-report=trade.json
pytest {RUN} \\
    --dst-model=simpletod --dst-report=simpletod.json
python -m tools.docs.gallery trade.json simpletod.json
```

Each weakness has its simplest violation as an example, if possible one whose clean answer (to the
unmodified turn) is right.
`[-removed-]{{+added+}}` marks the edit, and `does` the change of the belief state. The words and
slots are the most frequent ones. The advice is a guess from the pattern. We tried no fix."""


def demo_report(turns: int) -> bytes:
    """Return the HTML report of the demo, `examples/quickstart`. If it is missing, make it.

    Args:
        turns: the number of turns of the demo.

    Raises:
        subprocess.CalledProcessError: the demo did not run to its end.
    """
    made = REPORTS / f"report-{turns}.html"
    if not made.is_file():
        REPORTS.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["--dst-model=trade", "--dst-max-failure-rate=40%", f"--dst-report={made}"]
        command += [f"--dst-turns={turns}", "--rootdir=examples/quickstart", "examples/quickstart"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - our own
    return made.read_bytes()


def page(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of weaknesses.

    Args:
        reports: JSON report of each tracker, by the name that the page gives it.
    """
    out = [_HEAD]
    for name, report in reports.items():
        view = View.of(report)
        out += [f"## {name}", _figures(view)]
        for number, card in enumerate(view.weaknesses[:SHOWN], 1):
            out += [f"### {name} {number}: {card.description}"]
            out += [_facts(card), f"```text\n{_conversation(view, card)}\n```"]
    return "\n\n".join(out) + "\n"


def _figures(view: View) -> str:
    summary, shown = view.summary, user_turns(view.summary)
    if shown is None:
        raise SystemExit("a report without estimated failures: is it of the command on the page?")
    return (
        f"Estimated failures: {shown.value} ({shown.detail}). {len(view.weaknesses)} "
        f"weaknesses; {summary.violations} violations in {summary.turns_broken} of "
        f"{summary.turns_tested} turns that have a valid variant (of {summary.turns})."
    )


def _facts(card: Card) -> str:
    """Return the text about a weakness that stands before its example."""
    words, slots = (", ".join(f"`{name}`" for name in names) for names in (card.words, card.slots))
    return (
        f"{card.often[:1].upper()}{card.often[1:]}; here {card.counts}. Words: {words}; slots: "
        f"{slots}. To try: {card.to_try}. Id: `{card.id}`. Here dialogue "
        f"`{card.turn.dialogue_id}`, turn {card.turn.turn_index}:"
    )


def _conversation(view: View, card: Card) -> str:
    """Return the dialogue up to the example, with its edits and their effect."""
    return "\n".join(
        textwrap.fill(f"{who:<8}{text}", _WIDTH, subsequent_indent=" " * 8, break_long_words=False)
        for who, text in _lines(view, card)
        if text
    )


def _lines(view: View, card: Card) -> Iterator[tuple[str, str]]:
    turn, plain = card.turn, card.variant.plain
    edits = {index: edits for index, _, edits in needed_context(card.variant)}
    for other in view.turns:
        if other.dialogue_id != turn.dialogue_id or other.turn_index > turn.turn_index:
            continue
        made = (
            plain.edits if other.turn_index == turn.turn_index else edits.get(other.turn_index, ())
        )
        yield "system:", other.system
        yield "user:", mark_edits(other.user, made)
    for change in plain.changed_slots:
        if not change.carried:
            yield "does:", f"{change.slot}: {change.before or 'none'} -> {change.after or 'none'}"


if __name__ == "__main__":
    loaded = [read_report(Path(name)) for name in sys.argv[1:]]
    PAGE.write_text(page(dict(zip(("TRADE", "SimpleTOD"), loaded, strict=True))), encoding="utf-8")
