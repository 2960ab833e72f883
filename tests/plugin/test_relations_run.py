"""Several relations in one run: an item each, and one message where that cannot be."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.dialogue.dialogues import turn_keys
from pytest_dstfuzz.relations.registry import relations_named
from pytest_dstfuzz.relations.sources import FrozenFile, FrozenRow

FEW = ("--dst-turns=2", "--dst-variants=2")
STEADY = "--dst-model=mybot:steady"


def collected(bot: pytest.Pytester, *options: str) -> list[str]:
    run = bot.runpytest_inprocess(STEADY, *FEW, "--collect-only", "-q", *options)
    assert run.ret == pytest.ExitCode.OK
    return [line for line in run.outlines if "::" in line]


def test_items_of_one_searched_relation_are_called_by_their_turn(bot: pytest.Pytester) -> None:
    plain = collected(bot)
    assert plain == collected(bot, "--dst-relation=gold")
    assert all(
        name.startswith("dstfuzz::test_belief_state_survives[sample-test-") for name in plain
    )


def test_items_of_several_are_told_apart(bot: pytest.Pytester) -> None:
    plain = [name.removesuffix("]") for name in collected(bot)]
    both = collected(bot, "--dst-relation", "metamorphic, gold")
    assert both == [f"{name}-{one}]" for one in ("metamorphic", "gold") for name in plain]


def test_an_ini_file_and_a_marker_name_several(bot: pytest.Pytester) -> None:
    bot.makeini("[pytest]\ndst_relation = metamorphic,gold")
    assert len(collected(bot)) == 4
    bot.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.dst(relation=["gold", "metamorphic"])
        def test_both(dst_turn):
            dst_turn.assert_unchanged()
        """
    )
    assert len([name for name in collected(bot) if "test_both[" in name]) == 4


def test_a_marker_gives_a_relation_its_value(bot: pytest.Pytester) -> None:
    """The path is as from the ini file, and other tests have another file, or none."""
    turn = '{"user": "a room near the sea please", "state": {"hotel-area": "north"}}'
    talk = f'{{"dialogue_id": "d", "turns": [{turn}]}}'
    bot.path.joinpath("talks.jsonl").write_text(talk, encoding="utf-8")
    key = turn_keys(load_dialogues(bot.path / "talks.jsonl", "test").dialogues[0])[0]
    for name, text in (("one", "a chamber near the sea please"), ("two", "a bed near the sea")):
        row = FrozenRow(key, "", text, "me", verdict="keeps", reviewer="me")
        FrozenFile({}, (row,)).write(bot.path / f"{name}.jsonl")
    bot.makeini("[pytest]\n")
    bot.mkdir("tests").joinpath("test_own.py").write_text(
        """
import pytest

@pytest.mark.dst(relation="frozen:one.jsonl")
def test_marked(dst_turn):
    assert [one.text for one in dst_turn.result.variants] == ["a chamber near the sea please"]

@pytest.mark.dst(relation="frozen:two.jsonl")
def test_other(dst_turn):
    assert [one.text for one in dst_turn.result.variants] == ["a bed near the sea"]
""",
        encoding="utf-8",
    )
    os.chdir(bot.path / "tests")
    run = bot.runpytest_inprocess(STEADY, "--dst-data=../talks.jsonl", "--rootdir=..")
    run.assert_outcomes(passed=2)


def test_each_relation_has_its_result(suite: pytest.Pytester) -> None:
    run = suite.runpytest_inprocess(STEADY, *FEW, "--dst-relation=metamorphic,gold", "-v")
    held, gold = (run.stdout.str().count(f"-{one}] PASSED") for one in ("metamorphic", "gold"))
    # The clean answers of this bot are wrong, and `gold` says nothing about such turns.
    assert (held, gold) == (2, 0)
    run.assert_outcomes(passed=2, skipped=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("metamorphic,glod", "unknown relation 'glod'. Did you mean 'gold'?"),
        ("gold,gold", "--dst-relation: 'gold,gold' names 'gold' twice"),
        (",", "--dst-relation: ',' contains no name: leave the option out to use 'metamorphic'"),
        ("all,gold", "--dst-relation: 'all,gold' combines 'all' with other names: use 'all' alone"),
    ],
)
def test_names_that_are_none(bot: pytest.Pytester, given: str, said: str) -> None:
    run = bot.runpytest_inprocess(STEADY, *FEW, f"--dst-relation={given}")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert said in run.stderr.str()


def test_a_fixture_gives_one_relation_and_not_several(
    suite: pytest.Pytester, fixture_of: Callable[[str], None]
) -> None:
    fixture_of("gold")
    run = suite.runpytest_inprocess(STEADY, *FEW)
    run.assert_outcomes(skipped=2)
    run = suite.runpytest_inprocess(STEADY, *FEW, "--dst-relation=metamorphic,gold")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert "the fixture dst_relation returns one relation for test_state[" in run.stdout.str()


@pytest.fixture
def fixture_of(suite: pytest.Pytester) -> Callable[[str], None]:
    """Let a suite's own fixture give the relation of a name."""

    def write(name: str) -> None:
        suite.makeconftest(
            f"""
            import pytest

            @pytest.fixture(scope="session")
            def dst_relation():
                return {name!r}
            """
        )

    return write


def test_a_relation_that_no_turn_can_satisfy_is_refused(bot: pytest.Pytester) -> None:
    """Before the run and with the reason: the user of each turn names no value."""
    turn = '{"user": "hello there", "state": {"hotel-area": "north"}}'
    talk = f'{{"dialogue_id": "d", "turns": [{turn}]}}'
    bot.path.joinpath("talks.jsonl").write_text(talk, encoding="utf-8")
    bot.makeconftest(VALUES)
    run = bot.runpytest_inprocess(STEADY, "--dst-data=talks.jsonl", "--dst-relation=says-values")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "the relation 'says-values' applies to no turn of 'talks' (split test, 1 turn with "
        "labels): 1 x no value of the state is mentioned"
    ) in run.stderr.str()
    run = bot.runpytest_inprocess(STEADY, *FEW, "--dst-relation=says-values", "--collect-only")
    assert run.ret == pytest.ExitCode.OK


def test_a_family_leaves_out_what_no_turn_fits(bot: pytest.Pytester) -> None:
    turn = '{"user": "i need a room in the north", "state": {"hotel-area": "north"}}'
    talk = f'{{"dialogue_id": "d", "turns": [{turn}]}}'
    bot.path.joinpath("talks.jsonl").write_text(talk, encoding="utf-8")
    given = (STEADY, "--dst-data=talks.jsonl", "--dst-report=out.json")
    run = bot.runpytest_inprocess(*given, "--dst-relation=wording")
    run.assert_outcomes(passed=7)
    notes = json.loads((bot.path / "out.json").read_text(encoding="utf-8"))["run"]["notes"]
    (left_out,) = (note for note in notes if note.startswith("left out"))
    assert "number-format" in left_out
    assert "politeness" not in left_out
    run = bot.runpytest_inprocess(STEADY, "--dst-data=talks.jsonl", "--dst-relation=number-format")
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_a_family_leaves_out_what_does_not_test_the_answers() -> None:
    names = {
        outcome: {one.name for one in relations_named("everyday", outcome=outcome)}
        for outcome in ("state", "reply")
    }
    assert {"synonyms", "stated-need", "negation", "aside", "split"} <= names["state"]
    assert "metamorphic" not in names["state"]  # The default run tests typing errors.
    assert names["state"] - names["reply"] == {"restate"}


VALUES = """
    from pytest_dstfuzz import register_relation, Relation
    from pytest_dstfuzz.relations.relation import Admissible, Delta, Inapplicable
    from pytest_dstfuzz.relations.relation import Replacement

    @register_relation
    class SaysValues(Relation):
        name = "says-values"
        edits = "own"
        side = "should-change"
        reasons = ("no value of the state is mentioned",)

        def begin(self, scene):
            for slot, value in scene.now.items():
                place = scene.turn.user.find(value)
                if place >= 0:
                    gone = Replacement(place, place + len(value), "", "gone")
                    return [scene.rewrite([gone], [Delta(slot, value, Admissible((None,)))])]
            return Inapplicable(self.reasons[0])
"""
