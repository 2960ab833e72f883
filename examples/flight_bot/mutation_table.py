"""How much of what the bot forgets does the gate see? ``python mutation_table.py`` says it.

Makes a baseline of ``bot.py`` with the default options, runs each build of ``mutants.toml``
against it, and prints what came of it: at how many turns the build gives another clean answer,
with which exit status the run ends, and what each limit said. Ends with 1 where fewer than 19
of the 20 mutants fail, or a rewrite does.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import tomllib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from pytest_dstfuzz import load_dialogues

HERE = Path(__file__).resolve().parent
BOT = (HERE / "bot.py").read_text(encoding="utf-8")
DATA = HERE / "conversations.jsonl"
#: Mutants that have to fail, of twenty.
ENOUGH = 19
#: What the columns of the table ask: did clean answers change, is the failure rate higher on the
#: same variants, are all clean answers empty or the same?
LIMITS = ("max-clean-drift", "max-regression", "clean-answers")


class Build(NamedTuple):
    """Another build of the bot."""

    name: str
    what: str
    #: Text that stands in ``bot.py`` once, and the text in its place.
    replace: list[tuple[str, str]]


class Row(NamedTuple):
    """The result of one build."""

    build: Build
    #: Turns whose clean answer is another one than the bot's.
    changed: int
    status: int
    #: Limit -> verdict.
    verdicts: dict[str, str]


def builds(kind: str) -> list[Build]:
    """Return the builds of a kind, ``mutant`` or ``rewrite``."""
    found = tomllib.loads((HERE / "mutants.toml").read_text(encoding="utf-8"))[kind]
    return [Build(**item) for item in found]


def source(build: Build) -> str:
    """Return the text of a build.

    Raises:
        ValueError: what is to be replaced does not stand in ``bot.py`` once.
    """
    text = BOT
    for old, new in build.replace:
        if text.count(old) != 1:
            raise ValueError(f"{build.name}: {old!r} stands {text.count(old)} times in bot.py")
        text = text.replace(old, new)
    return text


def answers(text: str) -> list[dict[str, str]]:
    """Return the clean answer of a bot to every turn of the conversations."""
    module = ModuleType("bot")
    exec(compile(text, "bot.py", "exec"), module.__dict__)  # noqa: S102  # our own bot
    return [
        module.track(dialogue.context(turn.index))
        for dialogue in load_dialogues(str(DATA)).dialogues
        for turn in dialogue.turns
    ]


def run(text: str, folder: Path, *options: str) -> tuple[int, dict[str, str]]:
    """Run the built-in suite on a bot; return the exit status and the verdict of each limit."""
    folder.mkdir()
    (folder / "bot.py").write_text(text, encoding="utf-8")
    command = [f"--rootdir={folder}", "-p", "no:cacheprovider", "-q", "--dst-model=bot:track"]
    command += [f"--dst-data={DATA}", "--dst-report=report.json", *options]
    before, path = Path.cwd(), list(sys.path)
    # All builds have the same name, as those of a team do.
    sys.modules.pop("bot", None)
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = int(pytest.main(command))
    finally:
        os.chdir(before)
        sys.path[:] = path
    try:
        gate = json.loads((folder / "report.json").read_text(encoding="utf-8"))["gate"]
    except FileNotFoundError:
        sys.exit(f"the run wrote no report:\n{printed.getvalue()}")
    findings = gate["findings"] if gate else []
    return status, {finding["gate"]: finding["verdict"] for finding in findings}


def measure(kinds: dict[str, list[Build]]) -> dict[str, list[Row]]:
    """Run all builds against the baseline of the bot."""
    clean = answers(BOT)
    found: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        baseline = f"--dst-baseline={folder / 'baseline.json'}"
        run(BOT, folder / "bot", baseline, "--dst-update-baseline")
        for kind, made in kinds.items():
            found[kind] = []
            for build in made:
                text = source(build)
                moved = zip(clean, answers(text), strict=True)
                changed = sum(before != after for before, after in moved)
                status, verdicts = run(text, folder / build.name, baseline)
                found[kind].append(Row(build, changed, status, verdicts))
    return found


def main() -> int:
    """Print the table, and return the exit status."""
    found = measure({kind: builds(kind) for kind in ("mutant", "rewrite")})
    mutants, rewrites = found["mutant"], found["rewrite"]
    turns = len(answers(BOT))
    head = ("build", "what it does", f"clean answers changed, of {turns}", "exit status", *LIMITS)
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in (*mutants, *rewrites):
        cells = (row.build.name, row.build.what, str(row.changed), str(row.status))
        said = (row.verdicts.get(limit, "") for limit in LIMITS)
        print(f"| {' | '.join((*cells, *said))} |")
    caught = sum(row.status != 0 for row in mutants)
    passed = sum(row.status == 0 for row in rewrites)
    print(f"\n{caught} of {len(mutants)} mutants fail, {passed} of {len(rewrites)} rewrites pass.")
    idle = [row.build.name for row in mutants if not row.changed]
    moved = [row.build.name for row in rewrites if row.changed]
    for names, what in ((idle, "mutants that change nothing"), (moved, "rewrites that do")):
        if names:
            print(f"{what}: {', '.join(names)}")
    return int(caught < ENOUGH or passed < len(rewrites) or bool(idle) or bool(moved))


if __name__ == "__main__":
    sys.exit(main())
