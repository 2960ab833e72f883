"""A baseline belongs to a tracker: a renamed one keeps it, and another one is not compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from gate_cases import BOT

OPTIONS = ("--dst-turns=9", "--dst-variants=2", "--dst-baseline=base.json", "-pno:cacheprovider")
UPDATE = "--dst-update-baseline"
#: steady before fragile: the second breaks where the first holds, with other clean answers.
SUITE = """
import pytest, mybot

@pytest.fixture(scope="session", params=[PARAMS])
def dst_model(request):
    return getattr(mybot, request.param.partition("-")[0])

def test_it(dst_turn):
    dst_turn.assert_unchanged()
"""
WORKERS = pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "workers"])
OTHER = "not compared *: the baseline has no results of this tracker, only of *{}"


def write(pytester: pytest.Pytester, name: str, *params: str) -> None:
    text = SUITE.replace("PARAMS", ", ".join(map(repr, params)))
    pytester.path.joinpath(name).write_text(text, encoding="utf-8")


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    # A worker of xdist needs a process of its own.
    go = pytester.runpytest_subprocess if "-n1" in words else pytester.runpytest_inprocess
    return go(*OPTIONS, *words)


def trackers() -> list[str]:
    """Return the names of the trackers in the baseline, without their parameters' places."""
    content = json.loads(Path("base.json").read_text(encoding="utf-8"))
    return sorted(re.sub(r"dst_model", "", name) for name in content["models"])


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite of two trackers in one file."""
    pytester.makepyfile(mybot=BOT)
    write(pytester, "test_two.py", "steady", "fragile")
    return pytester


@WORKERS
def test_a_selected_tracker_is_not_compared_with_another(
    suite: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    assert run(suite, UPDATE, "-k", "[fragile", *workers).ret == 0
    result = run(suite, "-k", "[steady", *workers)
    assert result.ret == 9
    result.stdout.fnmatch_lines([OTHER.format("test_two.py::dst_model[[]fragile[]]")])
    # By id, pytest collects only the tests of one tracker.
    lines = run(suite, "--collect-only", "-q", "-k", "[steady").outlines
    ids = [line for line in lines if "[steady" in line]
    assert run(suite, *ids, *workers).ret == 9
    # A part of a tracker would be no baseline for the rest.
    refused = run(suite, UPDATE, "-k", "[steady", *workers)
    refused.stdout.fnmatch_lines(
        ["failed: the baseline was not written: * Run all tests of their files"]
    )
    assert run(suite, "-k", "[fragile", *workers).ret == 0


def test_a_tracker_of_another_file_is_not_compared_and_stays(suite: pytest.Pytester) -> None:
    write(suite, "test_other.py", "steady")
    assert run(suite, UPDATE, "test_two.py").ret == 0
    result = run(suite, "test_other.py")
    assert result.ret == 9
    result.stdout.fnmatch_lines([OTHER.format("test_two.py*")])
    result = run(suite, UPDATE, "test_other.py")
    result.stdout.fnmatch_lines(
        ["the baseline * 18 turns that this run did not test are unchanged"]
    )
    names = ["test_other.py::[steady]", "test_two.py::[fragile]", "test_two.py::[steady]"]
    assert trackers() == names
    assert run(suite).ret == 0
    # A tracker that the suite no longer has goes with the next run of its file.
    write(suite, "test_two.py", "steady")
    assert run(suite, UPDATE).ret == 0
    assert trackers() == names[:1] + names[2:]


@pytest.mark.parametrize("renamed", ["parameter", "file"])
def test_a_renamed_tracker_is_compared(suite: pytest.Pytester, renamed: str) -> None:
    write(suite, "test_two.py", "steady-1")
    assert run(suite, UPDATE).ret == 0
    if renamed == "parameter":
        write(suite, "test_two.py", "fragile-2")
    else:
        write(suite, "test_two.py", "fragile-1")
        suite.path.joinpath("test_two.py").rename(suite.path / "test_new.py")
    result = run(suite)
    assert result.ret == 8
    result.stdout.fnmatch_lines(
        ["compared with the baseline (test_two.py::dst_model[[]steady-1])*"]
    )


def test_the_tracker_of_the_options_is_compared_under_any_name(suite: pytest.Pytester) -> None:
    suite.path.joinpath("test_two.py").unlink()
    assert run(suite, UPDATE, "--dst-model=mybot:steady").ret == 0
    assert run(suite, "--dst-model=mybot:fragile").ret == 8
    # A fixture of a suite is another tracker: it does not take its place.
    write(suite, "test_two.py", "steady")
    assert run(suite, UPDATE).ret == 0
    result = run(suite, "--dst-model=mybot:steady", "--dst-suite=yes", "-k", "belief_state")
    assert result.ret == 9
    result.stdout.fnmatch_lines([OTHER.format("test_two.py*")])


LEFT_OUT = """
import pytest

def test_it(dst_turn):
    dst_turn.assert_unchanged()

@pytest.mark.dst(variants=3)
def test_more(dst_turn):
    dst_turn.assert_unchanged()
"""


def test_a_run_of_a_file_keeps_the_results_of_others(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=BOT)
    tested, other = LEFT_OUT.split("@pytest")
    files = {"test_a.py": tested, "test_b.py": f"{tested}@pytest{other}"}
    for name, text in files.items():
        pytester.path.joinpath(name).write_text(text, encoding="utf-8")

    def groups() -> dict[str, int]:
        content = json.loads(Path("base.json").read_text(encoding="utf-8"))
        names = [content["groups"][turn["group"]] for turn in content["turns"]]
        return {name: names.count(name) for name in sorted(set(names))}

    steady, fragile = (f"-odst_model=mybot:{name}" for name in ("steady", "fragile"))
    assert run(pytester, UPDATE, steady).ret == 0
    before = groups()
    assert [*before.values()] == [9, 9]
    for words in (["test_a.py"], ["--ignore=test_b.py"]):
        assert run(pytester, UPDATE, fragile, *words).ret == 0
        assert groups() == before
        # The results of the other file are still those of the build before.
        assert run(pytester, fragile).ret == 8
        assert run(pytester, fragile, *words).ret == 0
    pytester.path.joinpath("test_b.py").unlink()
    last = run(pytester, UPDATE, fragile)
    assert last.ret == 0
    last.stdout.fnmatch_lines(
        ["the baseline *, without 9 turns of tests that the suite no longer has"]
    )
    assert [*groups().values()] == [9]


PARAMS = """
import pytest, mybot, other

@pytest.fixture(scope="session", params=[mybot.track, other.track])
def dst_model(request):
    return request.param

def test_it(dst_turn):
    dst_turn.assert_unchanged()
"""
GIVEN = """
import pytest, mybot, other

@pytest.mark.parametrize("dst_model", [mybot.track, other.track])
def test_it(dst_turn):
    dst_turn.assert_unchanged()
"""


IDS = PARAMS.replace("other.track]", "other.track], ids=['a', 'a']")


MADE = """
import pytest, mybot, other

def make(track):
    return lambda context: track(context)

@pytest.mark.parametrize("dst_model", [make(mybot.track)], ids=["a"])
def test_it(dst_turn):
    dst_turn.assert_unchanged()

@pytest.mark.parametrize("dst_model", [make(other.track)], ids=["b"])
def test_other(dst_turn):
    dst_turn.assert_unchanged()
"""
JOINED = """
import pytest, mybot, other

@pytest.fixture(params=["a", "a-b"])
def name(request):
    return request.param

@pytest.fixture(params=["b-c", "c"])
def mode(request):
    return request.param

BOTS = {("a", "b-c"): mybot, ("a-b", "c"): other, ("a", "c"): other, ("a-b", "b-c"): other}

@pytest.fixture
def dst_model(name, mode):
    return BOTS[name, mode].track

def test_it(dst_turn):
    dst_turn.assert_unchanged()
"""


@pytest.mark.parametrize(
    ("text", "broken", "others"),
    [
        (PARAMS, "mybot.track]", ["other.track]"]),
        (GIVEN, "mybot.track]", ["other.track]"]),
        (IDS, "a]", ["a] (2)"]),
        (MADE, "a]", ["b]"]),
        (JOINED, "a,b-c]", ["a,c]", "a-b,b-c]", "a-b,c]"]),
    ],
    ids=["fixture", "test", "equal ids", "ids of tests", "joined"],
)
def test_trackers_of_one_name_are_not_added_up(
    pytester: pytest.Pytester, text: str, broken: str, others: list[str]
) -> None:
    worse = "def track(context):\n    return {'hotel-name': str(len(context.user) % 7)}\n"
    steady = "def track(context):\n    return {'hotel-area': 'north'}\n"
    pytester.makepyfile(mybot=worse, other=steady, test_it=text)
    options = ("--dst-turns=9", "--dst-max-failure-rate=45%", "-pno:cacheprovider")
    assert pytester.runpytest_inprocess(*options, "--dst-report=out.json").ret == 1
    found = json.loads(pytester.path.joinpath("out.json").read_text(encoding="utf-8"))["models"]
    verdicts = {one["name"].partition("[")[2]: one["gate"]["verdict"] for one in found}
    assert verdicts == {broken: "regression", **dict.fromkeys(others, "pass")}


OBJECTS = """
import pytest, mybot

class Bot:
    def __init__(self, name): self.name = name
    def __call__(self, context): return getattr(mybot, self.name)(context)

BOTS = {"a": "fragile", "b": "steady", "c": "steady"}

@pytest.fixture(scope="session", params=[Bot(BOTS[name]) for name in "ORDER"], ids=list("ORDER"))
def dst_model(request):
    return request.param

def test_it(dst_turn):
    dst_turn.assert_unchanged()
"""


def test_parameters_with_ids_are_known_in_any_order(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=BOT)
    test = pytester.path / "test_it.py"
    test.write_text(OBJECTS.replace("ORDER", "abc"), encoding="utf-8")
    assert run(pytester, UPDATE).ret == 0
    test.write_text(OBJECTS.replace("ORDER", "bac"), encoding="utf-8")
    assert run(pytester).ret == 0
    worse = OBJECTS.replace("ORDER", "bac").replace('"b": "steady"', '"b": "fragile"')
    test.write_text(worse, encoding="utf-8")
    assert run(pytester).ret == 8


def test_a_tracker_whose_fixture_moves_is_renamed(suite: pytest.Pytester) -> None:
    write(suite, "test_two.py", "steady")
    assert run(suite, UPDATE).ret == 0
    fixture, test = suite.path.joinpath("test_two.py").read_text().split("def test_it")
    suite.path.joinpath("conftest.py").write_text(fixture, encoding="utf-8")
    suite.path.joinpath("test_two.py").write_text(f"def test_it{test}", encoding="utf-8")
    assert run(suite).ret == 0
    assert run(suite, UPDATE).ret == 0
    assert trackers() == ["[steady]"]


def test_one_new_tracker_of_several_is_not_a_renamed_one(suite: pytest.Pytester) -> None:
    write(suite, "test_two.py", "steady-old")
    assert run(suite, UPDATE).ret == 0
    write(suite, "test_two.py", "steady-new", "fragile-new")
    assert run(suite).ret == 9
    assert run(suite, "-k", "[fragile").ret == 9


def test_a_new_tracker_does_not_take_the_place_of_that_of_the_options(
    suite: pytest.Pytester,
) -> None:
    suite.path.joinpath("test_two.py").unlink()
    assert run(suite, UPDATE, "--dst-model=mybot:steady").ret == 0
    before = Path("base.json").read_text(encoding="utf-8")
    write(suite, "test_new.py", "fragile")
    assert run(suite, "test_new.py").ret == 9
    assert run(suite, UPDATE, "test_new.py").ret == 0
    content = json.loads(Path("base.json").read_text(encoding="utf-8"))["models"]
    assert sorted(content) == ["", "test_new.py::dst_model[fragile]"]
    assert content[""]["turns"] == json.loads(before)["turns"]


def test_the_parameters_of_a_test_may_replace_those_of_its_fixture(
    suite: pytest.Pytester,
) -> None:
    suite.path.joinpath("test_two.py").write_text(
        SUITE.replace("PARAMS", '"steady"')
        .replace(
            "def test_it",
            "@pytest.mark.parametrize('dst_model', NAMES, indirect=True)\ndef test_it",
        )
        .replace("NAMES", "['steady', 'fragile', 'steady-2']"),
        encoding="utf-8",
    )
    assert run(suite, UPDATE).ret == 0
    assert trackers() == [f"test_two.py::[{name}]" for name in ("fragile", "steady-2", "steady")]


def test_a_file_that_is_skipped_keeps_its_results(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=BOT)
    test = "def test_it(dst_turn):\n    dst_turn.assert_unchanged()\n"
    mark = "import pytest\n@pytest.mark.dst(variants=3)\n"
    pytester.makepyfile(test_a=test, test_b=mark + test)
    assert run(pytester, UPDATE, "-odst_model=mybot:steady").ret == 0
    pytester.makepyfile(test_b="import pytest\npytest.importorskip('missing_extra')\n" + test)
    result = run(pytester, UPDATE, "-odst_model=mybot:steady")
    result.stdout.fnmatch_lines(["the baseline * 9 turns that this run did not test are unchanged"])
