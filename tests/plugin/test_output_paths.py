"""No file that a run reads, or writes for something else, is taken for a report."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pytest_dstfuzz.cli import main

USER = "please would you find us some quiet rooms around kilimanjaro for later"
ARGS = ("--dst-model=bots:steady", "--dst-variants=2", "--dst-search=random")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(bots="def steady(context):\n    return {'hotel-area': 'north'}\n")
    pytester.makeini("[pytest]\n")
    Path("data").mkdir()
    line = {"dialogue_id": "p1", "turns": [{"system": "", "user": USER}]}
    Path("data", "talks.jsonl").write_text(f"{json.dumps(line)}\n")
    options = ("--dst-baseline=base.json", "--dst-update-baseline")
    assert pytester.runpytest(*ARGS, "--dst-data=data", *options).ret == 0
    return pytester


def refused(folder: pytest.Pytester, kept: str, *options: str) -> None:
    before = Path(kept).read_bytes()
    result = folder.runpytest(*ARGS, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.stdout.str()
    result.stderr.fnmatch_lines(["*are the same file, *, which would be overwritten*"])
    assert Path(kept).read_bytes() == before


@pytest.mark.parametrize("output", ["--dst-report", "--junitxml"])
@pytest.mark.parametrize("how", ["same", "dots", "symlink", "hard link"])
def test_a_report_is_not_the_baseline(folder: pytest.Pytester, output: str, how: str) -> None:
    path = {"same": "base.json", "dots": "data/../base.json"}.get(how, "other.json")
    if how == "symlink":
        Path("other.json").symlink_to("base.json")
    elif how == "hard link":
        os.link("base.json", "other.json")
    refused(folder, "base.json", "--dst-data=data", "--dst-baseline=base.json", f"{output}={path}")


@pytest.mark.parametrize("data", ["data", "data/talks.jsonl"])
def test_a_report_is_no_data(folder: pytest.Pytester, data: str) -> None:
    kept = "data/talks.jsonl"
    Path("link.json").symlink_to(kept)
    refused(folder, kept, f"--dst-data={data}", "--dst-report=link.json")
    refused(folder, kept, f"--dst-data={data}", f"--dst-baseline={kept}", "--dst-update-baseline")
    # But it may lie beside the data, also in the second run.
    for _ in range(2):
        result = folder.runpytest(*ARGS, f"--dst-data={data}", "--dst-report=data/report.json")
        assert result.ret == 0


def test_outputs_are_files_of_their_own(folder: pytest.Pytester) -> None:
    Path("r.json").write_text("{}")
    data = "--dst-data=data"
    refused(folder, "r.json", data, "--dst-report=r.json", "--dst-report=./r.json")
    refused(folder, "r.json", data, "--dst-report=r.json", "--dst-cache=r.json")
    refused(folder, "r.json", data, "--dst-report=r.json", "--junitxml=r.json")
    refused(folder, "tox.ini", data, "--dst-cache=tox.ini")
    Path("r.safetensors").write_text("{}")
    refused(
        folder,
        "r.safetensors",
        data,
        "--dst-cache=r.safetensors",
        "--dst-tracker=checkpoint=r.safetensors",
    )


def test_what_pytest_and_the_cache_write_is_nothing_that_is_read(folder: pytest.Pytester) -> None:
    kept, base = "data/talks.jsonl", "--dst-baseline=base.json"
    for option in ("--junitxml", "--dst-cache"):
        refused(folder, kept, f"--dst-data={kept}", f"{option}={kept}")
        refused(folder, "base.json", "--dst-data=data", base, f"{option}=base.json")


@pytest.mark.parametrize("output", ["--junitxml", "--dst-cache"])
def test_regressions_that_are_only_read_are_kept(folder: pytest.Pytester, output: str) -> None:
    kept = Path(".dstfuzz", "regressions", "talks.jsonl")
    kept.parent.mkdir(parents=True)
    kept.write_text("")
    refused(folder, str(kept), "--dst-data=data/talks.jsonl", f"{output}={kept}")


def test_the_ontology_beside_a_file_is_data_too(folder: pytest.Pytester) -> None:
    kept = Path("data", "talks.ontology.json")
    kept.write_text(json.dumps({"hotel-area": ["north"]}))
    refused(folder, str(kept), "--dst-data=data/talks.jsonl", f"--dst-report={kept}")


def test_limits_are_no_report(folder: pytest.Pytester) -> None:
    Path("pyproject.toml").write_text("[tool.dstfuzz.gates]\nmax-failure-rate = '5%'\n")
    refused(folder, "pyproject.toml", "--dst-data=data", "--dst-cache=pyproject.toml")


def test_a_suite_with_its_own_tracker_is_asked_too(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        test_mine="import bots, pytest\n\n@pytest.fixture(scope='session')\ndef dst_model():\n"
        "    return bots.steady\n\ndef test_it(dst_turn):\n    dst_turn.assert_unchanged()\n"
    )
    before = Path("base.json").read_bytes()
    options = ("--dst-data=data", "--dst-baseline=base.json", "--dst-report=base.json")
    result = folder.runpytest(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert Path("base.json").read_bytes() == before


def test_commands_keep_what_they_read(
    folder: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder.runpytest(*ARGS, "--dst-data=data", "--dst-report=r.json").ret == 0
    shutil.copy("r.json", "kept.json")
    for words in (
        ["report", "r.json", "--html", "r.json"],
        ["report", "r.json", "--markdown=./r.json"],
        ["report", "r.json", "--html=page", "--markdown=page"],
        ["audit", "r.json", "--html=r.json"],
        ["audit", "r.json", "--html=r.audit.json"],
    ):
        assert main(words) == 2
        assert "are the same file" in capsys.readouterr().err
    assert Path("r.json").read_bytes() == Path("kept.json").read_bytes()
    assert not Path("page").exists()


@pytest.mark.parametrize("limit", ["--dst-max-failure-rate=5%", "--dst-baseline=kept.json"])
def test_limits_on_a_part_are_refused_before_anything_is_asked(
    suite: pytest.Pytester, limit: str
) -> None:
    options = ("--dst-model=mybot:steady", "--dst-turns=4")
    result = suite.runpytest_inprocess(*options, "--dst-shard=1/3", limit)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*dstfuzz campaign --shard 1/3 *dstfuzz merge*--dst-results*"])


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("[tool.dstfuzz.gate]\nmax-failure-rate = 1\n", (), "Did you mean 'gates'"),
        ("[tool.dstfuzz]\nturns = 3\n", (), "unknown table of"),
        ("[tool.dstfuz.gates]\nmax-failure-rate = 1\n", (), "unknown table [tool.dstfuz]"),
        ("[tool.dst.gates]\nmax-failure-rate = 1\n", (), "unknown table [tool.dst]"),
        ("[tool.pytest-dstfuzz.gates]\nmax-failure-rate = 1\n", (), "mean [tool.dstfuzz]"),
        ("[dstfuzz.gates]\nmax-failure-rate = 1\n", (), "mean [tool.dstfuzz]"),
        ("[tool.pytest.dstfuzz.gates]\nmax-failure-rate = 1\n", (), "mean [tool.dstfuzz]"),
        (
            "[tool.pytest.ini_options.dstfuzz.gates]\nmax-failure-rate = 1\n",
            (),
            "mean [tool.dstfuzz]",
        ),
        (
            "",
            ("--dst-relation=negation", "-odst_max_estimated_failures=5"),
            "negation makes its own edits",
        ),
    ],
)
def test_a_limit_that_judges_nothing_is_refused(
    suite: pytest.Pytester, table: str, options: tuple[str, ...], message: str
) -> None:
    suite.makepyprojecttoml(table)
    result = suite.runpytest_inprocess("--dst-model=mybot:steady", "--dst-turns=4", *options)
    assert result.ret == 4
    assert message in result.stderr.str()


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("pytest.ini", "[pytest]\n[tool.dstfuzz.gates]\nmax-failure-rate = 5%\n", "tool.dstfuzz"),
        ("tox.ini", "[pytest]\n[dstfuzz]\nmax-failure-rate = 5%\n", "dstfuzz"),
        ("setup.cfg", "[tool:pytest]\n[tool:dstfuzz.gates]\nx = 1\n", "tool:dstfuzz"),
    ],
)
def test_a_table_in_another_file_is_refused(
    suite: pytest.Pytester, file: str, text: str, named: str
) -> None:
    Path(file).write_text(text)
    result = suite.runpytest_inprocess("--dst-model=mybot:steady", "--dst-turns=4")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{file}: the table [[]{named}*pyproject.toml*"])
    Path(file).write_text(text.replace("dstfuzz", "testenv:dstfuzz"))
    assert suite.runpytest_inprocess("--dst-model=mybot:steady", "--dst-turns=4").ret == 0


@pytest.mark.parametrize("option", ["--fixtures", "--fixtures-per-test", "--collect-only"])
def test_a_run_that_only_lists_judges_nothing(suite: pytest.Pytester, option: str) -> None:
    typed = ("--dst-model=mybot:steady", "--dst-turns=4", "--dst-max-failure-rate=5%")
    result = suite.runpytest_inprocess(*typed, option)
    assert result.ret == 0
    assert not any(word in result.stdout.str() for word in ("failed", "verdict", "no turn"))


def test_a_misspelled_table_fails_tests_of_turns_and_no_others(suite: pytest.Pytester) -> None:
    suite.makepyprojecttoml("[tool.dstfuz.gates]\nmax-failure-rate = 1\n[tool.fuzz]\nruns = 3\n")
    suite.makepyfile(
        test_other="def test_it(): pass\n",
        test_mine="import mybot, pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def dst_model(): return mybot.steady\n"
        "def test_turns(dst_turn): dst_turn.assert_unchanged()\n",
    )
    assert suite.runpytest_inprocess("test_other.py").ret == 0
    result = suite.runpytest_inprocess("test_mine.py")
    assert result.ret not in (0, 1)
    result.stdout.fnmatch_lines(["*unknown table [[]tool.dstfuz]*"])


@pytest.mark.parametrize("output", ["--dst-report=part.json", "--dst-report=part.html"])
def test_a_report_of_a_part_is_refused_before_anything_is_asked(
    suite: pytest.Pytester, output: str
) -> None:
    options = ("--dst-model=mybot:steady", "--dst-turns=4")
    result = suite.runpytest_inprocess(*options, "--dst-shard=1/3", output)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*dstfuzz campaign --shard 1/3 *dstfuzz merge*--dst-results*"])
    assert not (suite.path / "part.json").exists()
    # A part without a report fails its own tests, and one part of one is all.
    assert suite.runpytest_inprocess(*options, "--dst-shard=1/3").ret in (0, 1)
    suite.runpytest_inprocess(*options, "--dst-shard=1/1", output)
    assert [*suite.path.glob("part.*")]


@pytest.mark.parametrize("content", ['{"scores": [1, 2]}', "notes\n", "[]"])
def test_a_baseline_replaces_no_file_of_others(folder: pytest.Pytester, content: str) -> None:
    kept = Path("mine.json")
    kept.write_text(content, encoding="utf-8")
    given = ("--dst-data=data", "--dst-baseline=mine.json", "--dst-update-baseline")
    result = folder.runpytest(*ARGS, *given)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*mine.json exists and is not a baseline*"])
    assert kept.read_text(encoding="utf-8") == content
    # An empty file and an earlier baseline may be overwritten.
    kept.write_text("", encoding="utf-8")
    for _ in range(2):
        assert folder.runpytest(*ARGS, *given).ret == 0
