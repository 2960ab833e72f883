"""What the README shows is what there is, and so is the end of the demo."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from pathlib import Path

import pytest
from processes import run_python

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO = (ROOT / "docs" / "tutorials" / "neural-tracker.md").read_text(encoding="utf-8")
(SHOWN,) = re.findall(r"^```text\n(.*?)^```$", DEMO, re.DOTALL | re.MULTILINE)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
TRADE = ROOT / "pytest_dstfuzz" / "models" / "resources" / "trade" / "model.safetensors"


def test_it_is_short() -> None:
    assert len(README.split()) < 600


@pytest.mark.nightly
def test_the_first_baseline_is_written_as_it_says(tmp_path: Path) -> None:
    assert "Add `--dst-update-baseline` once" in README
    (job,) = [text for language, text in BLOCKS if language == "yaml"]
    _, _, command = job.partition("pytest --dst-model")
    words = shlex.split(f"--dst-model{command}")
    talk = {"dialogue_id": "p", "turns": [{"system": "", "user": "a table for two, please"}]}
    talks = (json.dumps({**talk, "dialogue_id": f"p{number}"}) for number in range(12))
    (tmp_path / "conversations.jsonl").write_text("\n".join(talks), encoding="utf-8")
    bot = "def track(context):\n    return {'name': context.user.strip().lower()[:4]}\n"
    (tmp_path / "my_bot.py").write_text(bot, encoding="utf-8")
    run = ("-m", "pytest", "-p", "no:cacheprovider", *words)
    for more in (["--dst-update-baseline"], []):
        done = run_python(*run, *more, cwd=tmp_path)
        assert "the outcomes of" in done.stdout if more else "verdict " in done.stdout
    assert (tmp_path / "baseline.json").is_file()


@pytest.mark.nightly
def test_the_screen_shown_is_printed(tmp_path: Path) -> None:
    (install,) = [
        text for language, text in BLOCKS if "pip install" in text and language == "shell"
    ]
    command = install.splitlines()[-1]
    assert_prints(shlex.split(command)[1:], BLOCKS[0][1].splitlines(), tmp_path, status=1)


@pytest.mark.nightly
def test_the_failure_shown_is_printed(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guides" / "report.md").read_text(encoding="utf-8")
    found = re.search(r"`pytest ([^`]*)`:\n\n```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    assert_prints(shlex.split(found[1]), found[2].splitlines(), tmp_path, status=1)


@pytest.mark.parametrize("page", ["noise", "statistics"])
def test_pages_name_the_estimate_of_the_screen(page: str) -> None:
    figure = r"([\d.]+) of 1,000 user turns.*?([\d.]+ to [\d.]+)\)"
    (shown,) = re.findall(figure, README, re.DOTALL)
    text = (ROOT / "docs" / "concepts" / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(figure, text, re.DOTALL)
    assert found is not None
    assert found.groups() == shown


def test_the_tutorial_shows_the_screen_of_the_readme() -> None:
    # Both runs make the same variants. Only the verdict depends on the limit.
    end = SHOWN.splitlines()
    assert end[1:] == BLOCKS[0][1].splitlines()[1 : len(end)]


@pytest.mark.nightly
def test_the_run_of_the_tutorial_ends_as_shown(tmp_path: Path) -> None:
    (command,) = re.findall(r"^pytest (.*--dst-report=report.json)$", DEMO, re.MULTILINE)
    assert_prints(shlex.split(command), SHOWN.splitlines(), tmp_path)


@pytest.mark.nightly
def test_the_demo_finds_the_same(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    rate = re.search(r"^DEMO_RATE \?= (.*)$", makefile, re.MULTILINE)
    assert recipe is not None
    assert rate is not None
    text = recipe[1].replace("\\\n", " ").replace("$(DEMO_RATE)", rate[1])
    pytest_itself, *words = shlex.split(text.replace("demo-report.json", f"{tmp_path}/demo.json"))
    assert pytest_itself == "$(BIN)/pytest"
    assert_prints(words, SHOWN.splitlines(), ROOT)


def assert_prints(words: list[str], shown: list[str], folder: Path, status: int = 0) -> None:
    """Assert that a run of pytest with the shipped TRADE prints some lines, in their order."""
    pytest.importorskip("torch")
    if not TRADE.is_file():
        pytest.skip("this checkout has no trained checkpoint")
    # As in a fresh checkout: without what an earlier run has kept.
    command = ("-m", "pytest", "-p", "no:cacheprovider", "--color=no", *words)
    wide = {**os.environ, "COLUMNS": "100"}
    done = run_python(*command, cwd=folder, env=wide, with_torch=True)
    assert done.returncode == status, done.stdout + done.stderr
    printed = iter(done.stdout.splitlines())
    for line in shown:
        # Parts are left out, nothing is put in, and the order is that of the run.
        assert line in printed, f"not printed, or not after the lines before it: {line!r}"


def test_the_tracker_in_ten_lines_is_the_example() -> None:
    shown = next(text for _, text in BLOCKS if text.startswith("# my_bot.py\n"))
    shown = shown.removeprefix("# my_bot.py\n")
    example = (ROOT / "examples" / "own_tracker" / "my_bot.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(example), clean=False)
    assert example == f'"""{docstring}"""\n\n{shown}'
    assert len([line for line in shown.splitlines() if line]) <= 10


def test_the_tracker_in_ten_lines_breaks_as_its_page_says() -> None:
    shown = next(text for _, text in BLOCKS if text.startswith("# my_bot.py\n"))
    page = (ROOT / "examples" / "own_tracker" / "README.md").read_text(encoding="utf-8")
    understood, *not_understood = re.findall(r"`(leave[^`]*)`", page)
    assert len(not_understood) == 2
    scope: dict[str, object] = {}
    exec(compile(shown, "README.md", "exec"), scope)  # noqa: S102  # our own README
    track = scope["track"]
    assert callable(track)
    assert track(Context((Exchange("", understood),))) == {"train-leaveat": "17:30"}
    for text in not_understood:
        assert track(Context((Exchange("", text),))) == {}
