"""``dstfuzz doctor``: it says what an issue needs, and no secret, wherever one may stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz import __version__, cli
from pytest_dstfuzz.cli import doctor
from pytest_dstfuzz.cli.doctor import find_config
from pytest_dstfuzz.lexicon import load_lexicon

#: Stands wherever a secret may; it must be nowhere in what is printed.
MARKER = "tell-nobody-4711"
PYPROJECT = f"""
[tool.pytest.ini_options]
dst_model = "https://user:{MARKER}@bots.example/parse?key={MARKER}"
dst_turns = "40"
dst_data = "HOME/talks.jsonl"
dst_max_tokens = "9000"
dst_tracker = [
    "token={MARKER} and {MARKER}",
    "header=X-Key: {MARKER}",
    "header=Authorization: Bearer {MARKER}",
    "header=X-Other: $BOT_TOKEN",
    "concurrency=4",
]
addopts = [
    "-q", "--dst-tracker=header=Cookie: {MARKER}", "--dst-model=rasa+http://u:{MARKER}@h:1/",
    "--dst-seed=3",
]

[tool.dstfuzz.tracker]
api_key = "{MARKER}"
concurrency = 2
headers = {{ "X-Any" = "{MARKER}" }}
url = "http://{MARKER}@localhost:1/"
note = "Authorization: Bearer {MARKER}"
prompt = "HOME/prompt.txt"
"""


def examined(folder: Path) -> dict[str, Any]:
    return doctor.examine(folder)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a package installed in it that registers trackers, and a home."""
    home = tmp_path / "home-of-alice"
    project = home / "project"
    project.mkdir(parents=True)
    text = PYPROJECT.replace("HOME", str(home))
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    site = tmp_path / "site"
    info = site / "acme_bots-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-bots\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[pytest_dstfuzz.trackers]\n"
        "acme = acme_bots:create\nleaky = acme_leaky:create\nlost = acme_bots:creat\n"
        "[pytest_dstfuzz.data_files]\nacme = acme_files:FILES\n"
    )
    (site / "acme_bots.py").write_text("print('loud')\ndef create(**options): ...\n")
    (site / "acme_files.py").write_text(
        "from pathlib import Path\n"
        "FILES = {f'acme/{name}': Path(__file__).with_name(name) for name in ('a.txt', 'b.txt')}\n"
    )
    (site / "a.txt").write_text("words")
    (site / "acme_leaky.py").write_text(f"raise RuntimeError('no access with {MARKER}')\n")
    return tmp_path


def run(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_dstfuzz.cli", "doctor", *options],
        cwd=place / "home-of-alice" / "project",
        env={
            **os.environ,
            "HOME": str(place / "home-of-alice"),
            "PYTHONPATH": f"{place / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "DSTFUZZ_TOKEN": MARKER,
            "HTTPS_PROXY": f"http://u:{MARKER}@proxy:1",
            "BOT_TOKEN": MARKER,
            "PYTEST_ADDOPTS": f"--dst-tracker='header=X: {MARKER}'",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_and_no_home_is_printed(place: Path, options: tuple[str, ...]) -> None:
    done = run(place, *options)
    assert done.returncode == 1, "two of the trackers do not load"
    assert done.stderr == ""
    assert MARKER not in done.stdout
    assert str(place / "home-of-alice") not in done.stdout
    for told in (
        "~/project/pyproject.toml",
        "~/talks.jsonl",
        "~/prompt.txt",
        "https://***@bots.example/parse?key=***",
        "Authorization: ***",
        "X-Other: $BOT_TOKEN",
        "--dst-seed=3",
        "9000",
        "concurrency=4",
        "DSTFUZZ_TOKEN",
        "HTTPS_PROXY",
        "acme-bots 1.2",
        "RuntimeError",
    ):
        assert told in done.stdout


def test_what_does_not_load_is_a_problem_with_its_place(place: Path) -> None:
    done = run(place, "--json")
    assert "loud" not in done.stdout
    found = json.loads(done.stdout)
    registered = {item["name"]: item["problem"] for item in found["registered"]}
    assert registered["acme"] == ""
    assert re.fullmatch(r"RuntimeError \(.*acme_leaky\.py:1\)", registered["leaky"])
    assert "has no attribute 'creat'" in registered["lost"]
    assert {item["name"]: item["bytes"] for item in found["resources"]}["acme/a.txt"] == 5
    lines = [line.partition(" cannot be loaded")[0] for line in found["problems"]]
    assert lines == [
        "the shipped file acme/b.txt is missing: install pytest-dstfuzz again",
        "trackers: leaky (acme_leaky:create)",
        "trackers: lost (acme_bots:creat)",
    ]


def test_a_sound_installation_has_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"pytest-dstfuzz  {__version__}\n")
    assert shown.endswith("no problem found\n")
    assert cli.main(["doctor", "--jsn"]) == 2
    assert "did you mean --json?" in capsys.readouterr().err


def test_fingerprints_are_those_of_the_reports(tmp_path: Path) -> None:
    found = {item["name"]: item["sha256"] for item in examined(tmp_path)["resources"]}
    assert set(doctor._SHIPPED) <= set(found)
    package = Path(doctor.__file__).parents[1]
    of_wings = [path for path in package.glob("*/resources/**/*.*") if path.suffix != ".md"]
    assert {path.relative_to(package).as_posix() for path in of_wings} <= set(found)
    assert load_lexicon().fingerprint.startswith(found["resources/lexicon/lexicon.json.gz"])


REQUIRES = [
    "numpy>=1.26",
    "pytest>=99.0",
    "no-such-base>=1",
    "no-such-thing>=2; extra == 'small'",
    "no-such-thing>=2; extra == 'large'",
    "other>=1.0,<2; extra == 'large'",
    "pytest-dstfuzz[small,large]; extra == 'all'",
    "ruff>=0.6; extra == 'dev'",
]


def test_absent_packages_name_the_smallest_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: REQUIRES)
    found = examined(tmp_path)
    packages = {item["name"]: item for item in found["packages"]}
    assert set(packages) == {"numpy", "pytest", "no-such-base", "no-such-thing", "other"}
    assert packages["numpy"]["installed"] == metadata.version("numpy")
    assert packages["no-such-thing"]["extras"] == ["small", "large"]
    assert packages["no-such-thing"]["install"] == 'pip install "pytest-dstfuzz[small]"'
    assert packages["other"]["install"] == 'pip install "pytest-dstfuzz[large]"'
    assert found["problems"] == [
        f"pytest {metadata.version('pytest')} is too old: install pytest>=99.0",
        "the package no-such-base is missing: pip install pytest-dstfuzz again",
    ]


def test_a_package_that_is_not_installed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    (problem,) = examined(tmp_path)["problems"]
    assert "pip install -e ." in problem


def test_damaged_and_missing_shipped_files_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "resources" / "noise" / "casual.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"cut off")
    monkeypatch.setattr(doctor, "_recorded", lambda: {damaged.resolve(): "another"})
    problems: list[str] = []
    found = {item["name"]: item["bytes"] for item in doctor._resources(tmp_path, problems)}
    assert found["resources/noise/casual.json"] == 7
    assert problems[0].startswith("the shipped file resources/noise/casual.json is not as it was")
    assert len(problems) == len(doctor._SHIPPED)  # The others of the core are missing.


@pytest.mark.parametrize(
    ("file", "text", "settings"),
    [
        ("pytest.ini", "[pytest]\ndst_turns = 4\n", {"dst_turns": "4"}),
        ("pytest.ini", "", {}),
        (".pytest.ini", "[pytest]\naddopts = -q\n", {}),
        ("tox.ini", "[pytest]\ndst_lock =\n  a\n  b\n", {"dst_lock": "\na\nb"}),
        ("setup.cfg", "[tool:pytest]\ndst_seed=1\n", {"dst_seed": "1"}),
        ("pyproject.toml", "[tool.pytest]\ndst_turns = 4\n", {"dst_turns": 4}),
        ("pytest.toml", "[pytest]\naddopts = ['--dst-seed=1']\n", {"addopts": ["--dst-seed=1"]}),
    ],
)
def test_the_file_that_pytest_reads_is_found(
    tmp_path: Path, file: str, text: str, settings: dict[str, Any]
) -> None:
    if file == "pytest.toml" and pytest.version_tuple < (9, 0):
        pytest.skip("pytest reads pytest.toml since 9.0")
    below = tmp_path / "below"
    below.mkdir()
    (below / "tox.ini").write_text("[tox]\n", encoding="utf-8")
    (below / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (tmp_path / file).write_text(text, encoding="utf-8")
    problems: list[str] = []
    found = find_config(below, problems)
    assert found["file"] == str(tmp_path / file)
    assert found["settings"] == settings
    assert problems == []


def test_a_misspelt_key_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ndst_modle = trade\ndst_seed = 1\n", "utf-8")
    problems: list[str] = []
    find_config(tmp_path, problems)
    (problem,) = problems
    assert "pytest.ini" in problem
    assert "Did you mean dst_model?" in problem


@pytest.mark.parametrize("file", ["pytest.ini", "pyproject.toml"])
def test_a_file_that_cannot_be_read_is_named_without_its_text(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text(f"[pytest]\n[{MARKER}\n{MARKER}", encoding="utf-8")
    problems: list[str] = []
    find_config(tmp_path, problems)
    (problem,) = problems
    assert str(tmp_path / file) in problem
    assert MARKER not in problem


def test_a_file_that_is_nested_without_end_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f"x = {'[' * 100_000}", encoding="utf-8")
    problems: list[str] = []
    assert find_config(tmp_path, problems)["table"] == {}
    assert problems == [f"{path} is nested too deeply to be read"]


def test_it_works_where_packages_of_the_base_install_are_missing(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "absent = ('numpy', 'rapidfuzz', 'safetensors', 'pytest')\n"
        "sys.modules.update(dict.fromkeys(absent))\n"
        "from pytest_dstfuzz.cli import main\n"
        "sys.exit(main(['doctor']))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith(f"pytest-dstfuzz  {__version__}\n")
