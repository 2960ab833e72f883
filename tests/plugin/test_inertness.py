"""A project that does not use the plugin does not notice it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    *("torch", "transformers", "nltk", "gensim", "numpy", "jellyfish", "scipy", "jinja2"),
    *("matplotlib", "pytest_dstfuzz.campaign"),
)


def test_an_unrelated_suite_loads_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys, atexit\n"
        "def test_other(): pass\n"
        "def tell():\n"
        f"    names = {(*HEAVY, 'hypothesis')!r}\n"
        "    loaded = [name for name in names if name in sys.modules]\n"
        "    print('LOADED', loaded, file=sys.__stderr__)\n"
        "    print('PLUGIN', 'pytest_dstfuzz.plugin' in sys.modules, file=sys.__stderr__)\n"
        "atexit.register(tell)\n"
    )
    # Other plugins of this environment may load what they like.
    others = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:cov", "-p", "no:xdist")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *others, "-q"],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "LOADED []" in run.stderr
    assert "PLUGIN True" in run.stderr


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_other(pytestconfig): pytestconfig.getini('dst_turns')")
    result = pytester.runpytest_subprocess("-p", "no:dstfuzz")
    result.assert_outcomes(failed=1)
    assert pytester.runpytest_subprocess("-p", "no:dstfuzz", "--dst-model=trade").ret == 4


def test_help_and_markers_teach(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest_inprocess("--help").stdout.str()
    assert "dstfuzz: robustness of dialogue state trackers:" in shown
    assert "--dst-max-failure-rate=RATE" in shown
    assert "dst_lock (linelist)" in shown
    markers = pytester.runpytest_inprocess("--markers")
    markers.stdout.fnmatch_lines(["@pytest.mark.dst(name=value, ...): settings of one robustness*"])
