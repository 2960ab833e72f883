"""The commands of `dstfuzz`, and mistakes, each with one message."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from seaside import CALLS, STATES, VIOLATIONS, BotKind
from user_runs import run_command, run_pytest, violations


def numbers(text: str, words: str) -> list[float]:
    """Return the numbers of the first line in which these words stand."""
    line = next(line for line in text.splitlines() if words in line)
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", line)]


@pytest.mark.parametrize(
    ("words", "turns", "dialogues"),
    [
        (["stays.jsonl"], 15, 8),
        (["unlabelled.jsonl"], 15, 8),
        (["questions.jsonl", "--outcome", "reply"], 9, 7),
        (["requests.jsonl", "--outcome", "tool-calls"], 8, 7),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_data_are_checked(folder: Path, words: list[str], turns: int, dialogues: int) -> None:
    done = run_command(folder, "check-data", *words)
    assert done.status == 0
    assert numbers(done.printed, "dialogues  ")[0] == dialogues
    assert numbers(done.printed, "turns  ")[0] == turns


@pytest.mark.parametrize("kind", [STATES, CALLS], ids=lambda kind: kind.name)
def test_converted_dialogues_are_tested_alike(fresh: Path, kind: BotKind) -> None:
    run_pytest(fresh, *kind.run_options(), "--dst-report=before.json")
    # Ids of turns begin with the name of the data.
    (fresh / "converted").mkdir()
    written = run_command(
        fresh, "convert", "--data", kind.data, "--output", f"converted/{kind.data}"
    )
    assert written.status == 0
    moved = f"--dst-data=converted/{kind.data}"
    done = run_pytest(fresh, *kind.run_options(), moved, "--dst-report=after.json")
    assert violations(done.json("after.json")) == violations(done.json("before.json"))


def test_relations_are_listed_and_counted(folder: Path) -> None:
    done = run_command(folder, "relations")
    assert done.status == 0
    rows = {line.split()[0]: line for line in done.printed.splitlines() if line.strip()}
    for name in ("metamorphic", "value-swap", "tools-order", "lost-context"):
        assert name in rows
    assert "should-change" in rows["value-swap"]
    counted = run_command(folder, "relations", "value-swap", "--data", "stays.jsonl")
    assert numbers(counted.printed, "applies")[:2] == [9, 15]


@pytest.mark.parametrize(
    ("words", "figure", "value"),
    [
        (["statebot:forgetful", "--data", "stays.jsonl"], "joint goal accuracy", 60),
        (["statebot:fragile", "--data", "stays.jsonl"], "slot accuracy", 100),
        (
            ["callbot:answer", "--data", "requests.jsonl", "--outcome", "tool-calls"],
            "right messages",
            100,
        ),
        (
            ["callbot:idle", "--data", "requests.jsonl", "--outcome", "tool-calls"],
            "right messages",
            0,
        ),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_a_bot_is_evaluated(folder: Path, words: list[str], figure: str, value: int) -> None:
    done = run_command(folder, "evaluate", "--model", *words)
    assert done.status == 0
    assert numbers(done.printed, figure)[0] == value


@pytest.mark.parametrize(("bot", "status"), [("sturdy", 0), ("dead", 1)])
def test_a_bot_is_checked(folder: Path, bot: str, status: int) -> None:
    words = ("check-tracker", "--model", f"statebot:{bot}", "--data", "stays.jsonl")
    assert run_command(folder, *words).status == status


def test_the_doctor_says_what_is_there(folder: Path) -> None:
    done = run_command(folder, "doctor", "--json")
    found = json.loads(done.printed)
    assert done.status == bool(found["problems"])
    assert found["version"]


def test_results_become_a_table(fresh: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    words = [word.replace("--dst-", "--") for word in STATES.run_options()]
    run_command(fresh, "campaign", *words, "--results", "found")
    assert run_command(fresh, "results", "found", "--parquet", "found.parquet").status == 0
    rows = parquet.read_table(fresh / "found.parquet").to_pylist()
    assert len(rows) == 75
    assert sum(row["outcome"] == "violation" for row in rows) == VIOLATIONS["state"]


def test_all_commands_have_help(folder: Path) -> None:
    listed = run_command(folder, "--help").printed
    names = re.findall(r"^  ([a-z]+(?:-[a-z]+)*)  ", listed, re.MULTILINE)
    assert set(names) >= {
        *("campaign", "merge", "results", "evaluate", "check-tracker", "check-data", "convert"),
        *("tools", "relations", "report", "regressions", "accept", "retire", "promote", "doctor"),
    }
    for name in names:
        done = run_command(folder, name, "--help")
        assert (done.status, name in done.printed) == (0, True)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["report", "none.json", "--html", "page.html"], "none.json"),
        (["report", "stays.jsonl", "--html", "page.html"], "stays.jsonl"),
        (["check-data", "none.jsonl"], "none.jsonl"),
        (["check-data", "stays.jsonl", "--outcome", "stat"], "stat"),
        (["campaign", "--model", "statebot:sturdy"], "--results"),
        (["promot"], "promote"),
        (["relations", "value-swp"], "value-swap"),
        (["evaluate", "--model", "statebot:nobody"], "nobody"),
        (["merge", "none", "--output", "new"], "none"),
    ],
    ids=" ".join,
)
def test_a_mistake_in_a_command_is_one_message(folder: Path, words: list[str], named: str) -> None:
    done = run_command(folder, *words)
    assert done.status == 2
    (line,) = (line for line in done.printed.splitlines() if line.startswith("dstfuzz: error: "))
    assert named in line


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--dst-model=statebot:nobody"], "nobody"),
        (["--dst-model=trad"], "trade"),
        (["--dst-model=statebot:fragile", "--dst-data=none.jsonl"], "none.jsonl"),
        (["--dst-model=statebot:fragile", "--dst-validity=natral"], "natural"),
        (["--dst-model=statebot:fragile", "--dst-relation=value-swp"], "value-swap"),
        (["--dst-model=statebot:fragile", "--dst-edits=emoj"], "emoji"),
        (["--dst-model=statebot:fragile", "--dst-variants=0"], "variants"),
        (["--dst-model=statebot:fragile", "--dst-max-failure-rate=1"], "1%"),
        (["--dst-model=replybot:reply", "--dst-data=questions.jsonl"], "reply"),
        (["--dst-model=callbot:answer", "--dst-outcome=reply", "--dst-data=requests.jsonl"], ""),
        (["--dst-model=statebot:fragile", "--dst-baseline=none.json"], "none.json"),
        (["--dst-results=none"], "none"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_a_mistake_in_an_option_is_one_message(
    folder: Path, options: list[str], named: str
) -> None:
    done = run_pytest(folder, *options)
    assert done.status == 4
    (line,) = (line for line in done.printed.splitlines() if line.startswith("ERROR: "))
    assert named in line


def test_damaged_dialogues_are_named_by_file_and_line(fresh: Path) -> None:
    lines = (fresh / "stays.jsonl").read_text(encoding="utf-8").splitlines()
    lines[2] = lines[2][:-5]
    (fresh / "stays.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for done in (
        run_pytest(fresh, *STATES.run_options()),
        run_command(fresh, "check-data", "stays.jsonl"),
    ):
        assert done.status in (4, 2)
        assert re.search(r"stays\.jsonl.*\b3\b", done.printed)
