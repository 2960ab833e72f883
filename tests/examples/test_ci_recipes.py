"""Every option and command of the recipes exists, and the gate before a release works."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ci_project import CI, project
from processes import run_python

from pytest_dstfuzz import __version__
from pytest_dstfuzz.cli import COMMANDS
from pytest_dstfuzz.config import OPTIONS, parse_option
from pytest_dstfuzz.trackers.schemes import SCHEMES

RECIPES = ("github-actions.yml", "gitlab-ci.yml")
#: Jobs in parts.
SHARDED = ("github-shards.yml", "gitlab-shards.yml")
SHELL = ("release_gate.sh", "slurm_shard.sh", "slurm_gate.sh")
FLAGS = {item.flag: item for item in OPTIONS}


def scripts(part: Any) -> Iterator[str]:
    """Yield every command of a recipe, wherever it stands."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name in ("run", "script", "before_script"):
                yield from [value] if isinstance(value, str) else value
            else:
                yield from scripts(value)
    elif isinstance(part, list):
        for value in part:
            yield from scripts(value)


def commands() -> list[Any]:
    found = [
        pytest.param(command, id=f"{name}-{number}")
        for name in (*RECIPES, *SHARDED)
        for number, command in enumerate(scripts(yaml.safe_load((CI / name).read_text("utf-8"))))
    ]
    shell = "\n".join((CI / name).read_text("utf-8").replace("\\\n", " ") for name in SHELL)
    code = [line for line in shell.splitlines() if not line.startswith("#")]
    lines = [line.strip() for line in code if "dstfuzz " in line or "--dst-" in line]
    readme = (CI / "README.md").read_text("utf-8")
    lines += [line for line in readme.splitlines() if line.startswith("    dstfuzz ")]
    return [*found, *(pytest.param(line, id=f"line-{n}") for n, line in enumerate(lines))]


@pytest.mark.parametrize("recipe", [*RECIPES, *SHARDED])
def test_each_recipe_pins_this_version(recipe: str) -> None:
    text = (CI / recipe).read_text("utf-8")
    assert f'DSTFUZZ_VERSION: "{__version__}"' in text
    installed = re.findall(r'"pytest-dstfuzz\[.*?\](.*?)"', text)
    assert set(installed) == {"==$DSTFUZZ_VERSION"}


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "examples/ci/README.md",
        "docs/tutorials/into-ci.md",
        "docs/guides/compare-builds.md",
    ],
)
def test_pages_about_baselines_pin_this_version(page: str) -> None:
    pins = re.findall(
        r"pytest-dstfuzz(?:\[report\])?==([\d.]+\d)", (CI.parents[1] / page).read_text("utf-8")
    )
    assert pins
    assert set(pins) == {__version__}


@pytest.mark.parametrize("command", commands())
def test_what_a_recipe_names_exists(command: str) -> None:
    words = shlex.split(command)
    for word in words:
        if word.startswith("dst_"):
            name, _, value = word.removeprefix("dst_").partition("=")
            assert "$" in value or parse_option(name, value, word) is not None
        if not word.startswith("--dst-"):
            continue
        flag, given, value = word.removeprefix("--dst-").partition("=")
        assert flag in FLAGS, f"{word}: there is no such option"
        assert FLAGS[flag].has_flag, f"{word}: an ini key alone"
        assert given or FLAGS[flag].is_switch, f"{word}: needs a value"
        if given and "$" not in value:
            parse_option(FLAGS[flag].name, value, word)
    if words and words[0] == "dstfuzz":
        assert words[1] in COMMANDS.names
        done = run_python("-m", "pytest_dstfuzz.cli", words[1], "--help", cwd=Path.cwd())
        done.check_returncode()
        for word in words[2:]:
            assert not word.startswith("--") or word.partition("=")[0] in done.stdout, word


def test_the_recipes_do_what_they_are_for() -> None:
    for name in RECIPES:
        runs = list(scripts(yaml.safe_load((CI / name).read_text("utf-8"))))
        (smoke,) = (line for line in runs if "--dst-turns=100" in line)
        (nightly,) = (line for line in runs if "--dst-turns=all" in line)
        assert "--junitxml=" in smoke
        assert "--dst-baseline=" in nightly
        assert "-o dst_inconclusive=fail" in nightly


#: --dst-model -> the extra without which it is refused; none for a tracker of one's own.
NEEDS = {
    "my_bot:track": "",
    "trade": "trade",
    "simpletod": "simpletod",
    **{f"{name}://localhost:1": SCHEMES.find(name).extra for name in SCHEMES.names},
}


@pytest.mark.skipif(shutil.which("sh") is None, reason="the steps of a job are shell scripts")
@pytest.mark.parametrize("recipe", [*RECIPES, *SHARDED])
@pytest.mark.parametrize("model", NEEDS)
def test_a_recipe_installs_what_its_model_needs(recipe: str, model: str) -> None:
    runs = scripts(yaml.safe_load((CI / recipe).read_text("utf-8")))
    # What judges results needs no model.
    installs = [line for line in runs if "pip install $bot" in line]
    assert installs
    for script in installs:
        # What pip would be asked for.
        command = ["sh", "-euc", f'pip() {{ printf "%s\\n" "$@"; }}\n{script}']
        done = subprocess.run(
            command,
            env={**os.environ, "DST_MODEL": model, "DSTFUZZ_VERSION": "1.2.3"},
            capture_output=True,
            text=True,
            check=True,
        )
        (package,) = re.findall(r"^pytest-dstfuzz\[(.*)\]==1\.2\.3$", done.stdout, re.MULTILINE)
        needed = [NEEDS[model]] if NEEDS[model] else []
        assert package.split(",") == ["report", *needed]


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("bash") is None, reason="the gate is a bash script")
def test_the_gate_before_a_release(tmp_path: Path) -> None:
    environment = project(tmp_path)

    def gate(**more: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", str(CI / "release_gate.sh"), "-q"]
        command += ["--dst-turns=80", "--dst-variants=2"]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    first = gate()
    assert first.returncode == 0, first.stdout + first.stderr
    baseline = (tmp_path / "dst-baseline.json").read_bytes()
    second = gate()
    assert second.returncode == 0, second.stdout + second.stderr
    assert json.loads((tmp_path / "robustness" / "report.json").read_text("utf-8"))["gate"]
    assert (tmp_path / "dst-baseline.json").read_bytes() == baseline
    # A build that fails its gate leaves the baseline as it was.
    for drift, status in (("0%", 8), ("100%", 1)):
        worse = gate(DST_MAX_FAILURE_RATE="0%", DST_MAX_CLEAN_DRIFT=drift, BROKEN="1")
        assert worse.returncode == status, worse.stdout + worse.stderr
    assert (tmp_path / "dst-baseline.json").read_bytes() == baseline
