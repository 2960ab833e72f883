"""What the workers of a killed run had shared is gone after the next run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_dstfuzz.files import hold_folder, remove_leftovers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders have no locks here")

HOLDS = """
import sys, time
from pathlib import Path
from pytest_dstfuzz.files import hold_folder
keep = hold_folder(Path(sys.argv[1]))
Path(sys.argv[1], "predictions.sqlite").write_text("what was said")
print("held", flush=True)
time.sleep(600)
"""
NAME = f"dstfuzz-{'0a' * 12}"


def test_only_what_nobody_uses_is_removed(tmp_path: Path) -> None:
    used, other = tmp_path / NAME, tmp_path / "dstfuzz-of-somebody"
    other.mkdir()
    release = hold_folder(used)
    assert used.stat().st_mode & 0o777 == 0o700
    another = hold_folder(used)
    remove_leftovers(tmp_path, "dstfuzz-0*")
    assert used.exists()
    release()
    remove_leftovers(tmp_path, "dstfuzz-0*")
    assert used.exists()
    another()
    remove_leftovers(tmp_path, "dstfuzz-0*")
    assert not used.exists()
    assert other.exists()


def test_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / NAME).symlink_to(tmp_path / "mine")
    remove_leftovers(tmp_path, "dstfuzz-0*")
    assert (tmp_path / "mine").exists()
    with pytest.raises(OSError, match=r"symbolic|Not a directory"):
        hold_folder(tmp_path / NAME)


def test_the_next_run_removes_what_a_killed_one_left(
    bot: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = bot.mkdir("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    folder = place / NAME
    command = [sys.executable, "-c", HOLDS, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        options = ("--dst-model=mybot:steady", "--dst-turns=2", "--dst-variants=1")
        assert bot.runpytest_inprocess(*options).ret == 0
        assert (folder / "predictions.sqlite").exists()
        process.kill()
    assert folder.exists()
    assert bot.runpytest_inprocess(*options).ret == 0
    assert not folder.exists()
