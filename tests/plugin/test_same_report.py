"""The same seed gives the same report: whoever runs the tests, and in whatever order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.report.packing import unpack_turns

EXAMPLES = Path(__file__).parents[2] / "examples"

OPTIONS = (
    *("--dst-model=mybot:fragile", "--dst-turns=12", "--dst-variants=3", "--dst-fail-on=gate"),
    # In the profile `natural`, each new process learns for seconds how slips are read.
    "--dst-validity=strict",
)

#: A suite whose tests run from the last to the first.
REVERSED = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.reverse()
"""


def report(pytester: pytest.Pytester, *options: str) -> list[str]:
    """Run, and return the report without its last entry, which is about the run."""
    path = Path(pytester.path / "out.json")
    path.unlink(missing_ok=True)
    pytester.runpytest_inprocess(*OPTIONS, f"--dst-report={path}", *options)
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith('"run": ')]


@pytest.mark.usefixtures("other_hashes")
@pytest.mark.parametrize("options", [("-n", "2"), ("-n", "2", "--dist=worksteal"), ()])
def test_a_report_does_not_depend_on_the_workers(
    suite: pytest.Pytester, options: tuple[str, ...]
) -> None:
    assert report(suite, *options) == report(suite)


@pytest.mark.usefixtures("other_hashes")
def test_nor_does_that_of_what_people_make_of_the_turns(suite: pytest.Pytester) -> None:
    natural = (
        *("--dst-validity=natural", "--dst-search=noise", "--dst-slip-rate=20%"),
        "--dst-attack=cumulative",
    )
    alone = report(suite, *natural)
    assert report(suite, *natural, "-n", "2") == alone
    assert any('"estimated_failures"' in line for line in alone)


def test_a_report_does_not_depend_on_the_order(suite: pytest.Pytester) -> None:
    first = report(suite)
    suite.makeconftest(REVERSED)
    assert report(suite) == first


@pytest.mark.nightly
@pytest.mark.usefixtures("other_hashes")
def test_nor_do_those_of_relations_with_edits_of_their_own(suite: pytest.Pytester) -> None:
    travel = EXAMPLES / "travel_bot" / "conversations.jsonl"
    suite.makepyfile(
        test_mine="def test_state(dst_turn):\n    dst_turn.assert_holds()\n",
        mybot=f"""
        from pytest_dstfuzz import load_dialogues

        TURNS = [turn for one in load_dialogues({str(travel)!r}).dialogues for turn in one.turns]
        KNOWN = {{turn.user: turn.state for turn in TURNS}}

        def fragile(context):
            # What the labels say; of what they do not know, as after the turn before.
            known = [KNOWN[text] for text in context.user_utterances if text in KNOWN]
            return dict(known[-1]) if known else {{}}
        """,
    )
    every = ("--dst-relation=all", f"--dst-data={travel}", "--dst-turns=8", "--dst-variants=2")
    alone = report(suite, *every)
    turns = [json.loads(line.rstrip(",")) for line in alone if '"dialogue_id"' in line]
    broken = {turn["relation"] for turn in turns if turn["outcome"] == "violation"}
    assert broken > {"metamorphic", "value-swap", "repair", "plug-in", "shuffle", "drop"}
    assert report(suite, *every, "-n", "2") == alone
    suite.makeconftest(REVERSED)
    assert report(suite, *every) == alone


def test_a_turn_does_not_depend_on_the_others(suite: pytest.Pytester) -> None:
    def turns(*options: str) -> dict[str, Any]:
        lines = [line.rstrip(",") for line in report(suite, *options) if '"dialogue_id"' in line]
        # A turn refers to what those before it in the report say.
        return {turn["id"]: turn for turn in unpack_turns(map(json.loads, lines))}

    whole, some = turns(), turns("-k", "t1]")
    assert 0 < len(some) < len(whole)
    assert some == {name: whole[name] for name in some}


@pytest.mark.usefixtures("other_hashes")
def test_ids_are_the_same_in_every_process(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_mine="import pytest\n"
        "@pytest.mark.dst(seed=5, transformations=1)\n"
        "def test_state(dst_turn):\n    dst_turn.assert_unchanged()\n"
    )
    alone = suite.runpytest_inprocess(*OPTIONS, "-v")
    spread = suite.runpytest_inprocess(*OPTIONS, "-v", "-n", "2")
    ids = {line.split(" ")[0] for line in alone.outlines if "PASSED" in line}
    assert len(ids) == 12
    assert all(any(one in line for line in spread.outlines) for one in ids)


def test_two_tests_with_other_settings_are_both_reported(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_mine="import pytest\n"
        "@pytest.mark.dst(variants=1)\n"
        "def test_one(dst_turn):\n    dst_turn.assert_unchanged()\n"
        "@pytest.mark.dst(variants=2)\n"
        "def test_two(dst_turn):\n    dst_turn.assert_unchanged()\n"
        "@pytest.mark.dst(variants=2)\n"
        "def test_two_again(dst_turn):\n    dst_turn.assert_unchanged()\n"
    )
    turns = [line for line in report(suite) if '"dialogue_id"' in line]
    assert len(turns) == 24


def test_workers_say_that_a_tracker_is_missing(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess("-n", "2", "--dst-turns=4")
    assert result.ret == 4
    result.stdout.fnmatch_lines(["*no tracker to test: name one with --dst-model*"])


def test_workers_share_a_budget_of_calls(suite: pytest.Pytester) -> None:
    result = suite.runpytest_inprocess(*OPTIONS, "-n", "2", "--dst-max-calls=24", "-rs")
    # The check before the run took three of them.
    result.stdout.fnmatch_lines(["SKIPPED*the budget of 10 calls ended*"])
