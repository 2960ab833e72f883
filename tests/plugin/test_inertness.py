"""A project that does not use the plugin does not notice it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

#: All that a run loads which uses nothing of the plugin.
IDLE = [
    "_dstfuzz_pytestplugin",
    "pytest_dstfuzz",
    "pytest_dstfuzz.agents",
    "pytest_dstfuzz.agents.plugin",
    "pytest_dstfuzz.games",
    "pytest_dstfuzz.games.plugin",
    "pytest_dstfuzz.plugin",
    "pytest_dstfuzz.plugin.entry",
]
HEAVY = ("torch", "transformers", "nltk", "gensim", "numpy", "rapidfuzz", "scipy", "jinja2")
#: Other plugins of this environment may load what they like.
OTHERS = tuple(f"-pno:{name}" for name in ("hypothesispytest", "anyio", "cov", "xdist"))

WATCHED = (*HEAVY, "hypothesis", "conftest", "helpers")
WATCHED += ("pytest_dstfuzz", "_dstfuzz_pytestplugin")

TELL = f"""
import atexit, json, sys

def finders():
    return [type(finder).__name__ for finder in sys.meta_path].count("PlainImports")

def pytest_sessionfinish(session):
    loaded = {{
        name: type(module.__spec__.loader).__name__
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] in {WATCHED} and getattr(module, "__spec__", None)
    }}
    print("TOLD", json.dumps([loaded, finders()]), file=sys.__stderr__)

atexit.register(lambda: print("LEFT", finders(), file=sys.__stderr__))
"""


def run(pytester: pytest.Pytester, *options: str) -> tuple[dict[str, str], int, str]:
    """Run pytest, and return modules with their loaders, and how many finders there were."""
    pytester.makeconftest(TELL)
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *OTHERS, "-q", *options],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    told = next(line for line in found.stderr.splitlines() if line.startswith("TOLD "))
    loaded, finders = json.loads(told.removeprefix("TOLD "))
    return loaded, finders, found.stderr


@pytest.mark.parametrize("paths", [(), ("dst_tests",)])
def test_an_idle_run_loads_small_modules_alone(
    pytester: pytest.Pytester, paths: tuple[str, ...]
) -> None:
    pytester.mkdir("dst_tests").joinpath("test_it.py").write_text("def test_other(): pass")
    loaded, finders, stderr = run(pytester, *paths)
    assert [name for name in loaded if "dstfuzz" in name] == IDLE
    assert [name for name in loaded if name.partition(".")[0] in (*HEAVY, "hypothesis")] == []
    assert (finders, "LEFT 0" in stderr) == (0, True)


def test_pytest_rewrites_only_the_entry_points(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        helpers="def track(context):\n    return {'hotel-area': 'north'}\n",
        test_mine="def test_mine(dst_turn):\n    dst_turn.assert_unchanged()\n",
    )
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\npythonpath = '.'\n")
    options = ("--dst-model=helpers:track", "--dst-turns=2", "-phelpers")
    loaded, finders, stderr = run(pytester, *options)
    ours = {name for name in loaded if "dstfuzz" in name}
    rewritten = {name for name, loader in loaded.items() if loader == "AssertionRewritingHook"}
    assert "pytest_dstfuzz.campaign.engine" in ours
    entries = set(IDLE) - {"pytest_dstfuzz", "pytest_dstfuzz.plugin", "pytest_dstfuzz.plugin.entry"}
    # pytest 8 rewrites nothing of an editable install.
    allowed = [entries] if pytest.version_tuple >= (9, 0) else [entries, set()]
    assert rewritten & ours in allowed
    # What is the user's is rewritten as ever.
    assert rewritten >= {"conftest", "helpers"}
    assert (finders, "LEFT 0" in stderr) == (1, True)


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "workers"])
def test_options_are_there_for_a_suite_that_gives_none(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '--strict-config'\n")
    pytester.makepyfile(
        "def test_other(pytestconfig):\n"
        "    assert pytestconfig.getoption('--dst-model') is None\n"
        "    assert pytestconfig.getoption('dst_lock') is None\n"
        "    assert pytestconfig.getini('dst_turns') is None\n"
        "    assert pytestconfig.option.dst_stop_at_first is None\n"
    )
    pytester.runpytest_inprocess(*workers).assert_outcomes(passed=1)


def test_workers_know_the_options_that_were_given(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_other(pytestconfig):\n"
        "    assert pytestconfig.getoption('--dst-turns') == '3'\n"
        "    assert pytestconfig.getoption('--dst-seed') is None\n"
    )
    pytester.runpytest_inprocess("--dst-turns=3", "-n1").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "how", ["arguments", "environment", "addopts", "ini", "override", "file", "plugin"]
)
def test_options_are_found_wherever_they_are_given(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    pytester.makepyfile("def test_other(): pass")
    table = {"addopts": "addopts = '--dst-turns=x'", "ini": "dst_turns = 'x'"}
    pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\n{table.get(how, '')}\n")
    if how == "environment":
        monkeypatch.setenv("PYTEST_ADDOPTS", "--dst-turns=x")
    (pytester.path / "more.txt").write_text("--dst-turns=x\n", encoding="utf-8")
    pytester.makepyfile(
        giving="def pytest_load_initial_conftests(args): args.append('--dst-turns=x')\n"
    )
    pytester.syspathinsert()
    given = {"arguments": ["--dst-turns", "x"], "override": ["-o", "dst_turns=x"]}
    given |= {"file": ["@more.txt"], "plugin": ["-p", "giving"]}
    result = pytester.runpytest_inprocess("--strict-config", *given.get(how, ()))
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *dst*turns*: 'x' must be a whole number*"])


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_other(pytestconfig): pytestconfig.getini('dst_turns')")
    result = pytester.runpytest_subprocess("-p", "no:dstfuzz")
    result.assert_outcomes(failed=1)
    assert pytester.runpytest_subprocess("-p", "no:dstfuzz", "--dst-model=trade").ret == 4


def test_help_and_markers_teach(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest_inprocess("--help").stdout.str()
    assert "dstfuzz: tracker or assistant to test:" in shown
    assert "--dst-max-failure-rate=RATE" in shown
    assert "dst_lock (linelist)" in shown
    markers = pytester.runpytest_inprocess("--markers")
    markers.stdout.fnmatch_lines(["@pytest.mark.dst(name=value, ...): settings of one robustness*"])
