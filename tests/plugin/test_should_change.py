"""Relations under which the state has to follow: their tests, their failures, their sections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

#: Every dialogue opens with another number, by which the bot that never moves knows it again.
AREAS = ("north", "south", "east", "west")
BOTS = """
    import re
    from rapidfuzz.distance import OSA

    AREAS = ("north", "south", "east", "west")

    def right(context):
        state = {}
        for text in context.user_utterances:
            for area in AREAS:
                # Also with a slip, and with a blank inside.
                text = re.sub(" ?".join(area), area, text.lower())
            slips, area = min((OSA.distance(w, a), a) for w in text.split() for a in AREAS)
            state = {"hotel-area": area} if slips <= 2 else state
        return state

    def never_moves(context):
        number = int(context.exchanges[0].system.split()[1])
        return {"hotel-area": AREAS[number % 4]}
"""
BOTH = "--dst-relation=metamorphic,value-swap"
NEVER = "--dst-model=areas:never_moves"
RIGHT = "--dst-model=areas:right"


@pytest.fixture
def desk(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with two bots, and eight dialogues with labels."""
    pytester.makepyfile(areas=BOTS)
    pytester.makeini("[pytest]\ndst_data = talks.jsonl\ndst_split = test\ndst_search = random")
    talks = []
    for number in range(8):
        area = AREAS[number % 4]
        said = {"system": f"Desk {number} here.", "user": f"Find me a hotel in the {area} please"}
        turn = {**said, "state": {"hotel-area": area}}
        talks.append(json.dumps({"dialogue_id": f"d{number}", "turns": [turn]}))
    (pytester.path / "talks.jsonl").write_text("\n".join(talks), encoding="utf-8")
    return pytester


def test_a_bot_that_never_moves_passes_one_side_and_fails_the_other(desk: pytest.Pytester) -> None:
    run = desk.runpytest_inprocess(NEVER, BOTH, "--dst-variants=2", "-v")
    run.assert_outcomes(passed=8, failed=8)
    text = run.stdout.str()
    assert text.count("test_belief_state_survives[talks-test-d") == 8
    assert "test_belief_state_follows[talks-test-d3-t0-value-swap] FAILED" in text
    assert "2 of 2 rewrites are not followed at turn 0 of dialogue d0 (value-swap)" in text
    assert "    user:    Find me a hotel in the [-north-]{+" in text
    assert " north  stuck" in text
    assert "over-stable   100.00 % of the rewrites left the state as it was" in text


def test_a_right_bot_passes_both(desk: pytest.Pytester) -> None:
    desk.runpytest_inprocess(RIGHT, BOTH, "--dst-variants=2").assert_outcomes(passed=16)


def test_the_first_relation_of_all_is_the_first_of_the_gate(desk: pytest.Pytester) -> None:
    options = ("--dst-relation=all", "--dst-variants=1", "--dst-turns=2")
    desk.runpytest_inprocess(
        NEVER, *options, "--dst-max-failure-rate=100%", "--dst-report=report.json"
    )
    report = json.loads((desk.path / "report.json").read_text(encoding="utf-8"))
    rates = [one for one in report["gate"]["findings"] if one["gate"] == "max-failure-rate"]
    assert rates[0]["part"] == {"kind": "relation", "name": "metamorphic"}
    assert len(rates) > 1


def test_the_other_assertion_is_a_mistake_that_names_the_right_one(desk: pytest.Pytester) -> None:
    desk.makepyfile(test_own="def test_it(dst_turn):\n    dst_turn.assert_unchanged()\n")
    run = desk.runpytest_inprocess(RIGHT, "--dst-relation=value-swap")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "dst_turn.assert_unchanged() does not fit the relation 'value-swap': the belief state must "
        "change. Write dst_turn.assert_changes(), or assert_holds(), which fits both. To test only "
        "one relation, name it: @pytest.mark.dst(relation='metamorphic')"
    ) in run.stdout.str()


def test_each_assertion_where_it_belongs(desk: pytest.Pytester) -> None:
    desk.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.dst(relation="value-swap", variants=2)
        def test_follows(dst_turn):
            dst_turn.assert_changes()

        @pytest.mark.dst(variants=2)
        def test_stays(dst_turn):
            dst_turn.assert_unchanged()

        @pytest.mark.dst(relation="metamorphic,value-swap", variants=2)
        def test_both(dst_turn):
            dst_turn.assert_holds()
        """
    )
    run = desk.runpytest_inprocess(NEVER, "--dst-report=report.json")
    run.assert_outcomes(passed=16, failed=16)
    report = json.loads((desk.path / "report.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in report["relations"]] == ["metamorphic", "value-swap"]
    assert {turn["relation"]: turn["side"] for turn in report["turns"]} == {
        "metamorphic": "should-not-change",
        "value-swap": "should-change",
    }
    (swapped,) = [one for one in report["relations"] if one["name"] == "value-swap"]
    # Two tests of one turn with the same settings have one result.
    assert swapped["failures"] == {"changed": 0, "stuck": 16, "partial": 0, "other": 0}
    assert (swapped["over_stability"], report["summary"]["violations"]) == (1.0, 0)


def test_a_fixture_gives_a_relation_of_the_other_side(desk: pytest.Pytester) -> None:
    desk.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def dst_relation():
            return "value-swap"
        """
    )
    run = desk.runpytest_inprocess(NEVER, "--dst-variants=1", "--dst-suite=yes")
    run.assert_outcomes(failed=8)


@pytest.mark.nightly
def test_workers_report_the_same_of_all(
    desk: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [NEVER, "--dst-relation=all", "--dst-turns=4", "--dst-variants=2", "--dst-seed=1"]
    found = []
    for workers in ("0", "2"):
        path = tmp_path / f"{workers}.json"
        monkeypatch.setenv("PYTHONHASHSEED", workers)
        desk.runpytest_subprocess(*options, f"--dst-report={path}", "-n", workers)
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report.pop("run")
        found.append(report)
    assert found[0] == found[1]
    names = [one["name"] for one in found[0]["relations"]]
    assert names[:2] == ["metamorphic", "value-swap"]  # gold repeats metamorphic
    assert "shuffle" not in names
