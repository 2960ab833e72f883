"""A file is written whole, or stays as it was."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_writable, is_pickled, write_text


def test_written_with_its_folders_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "report.json"
    write_text(path, "é\n")
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["report.json"]


def test_replaces_and_keeps_links(tmp_path: Path) -> None:
    path, link = tmp_path / "one.json", tmp_path / "link.json"
    write_text(path, "old")
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_lone_surrogates_are_escaped(tmp_path: Path) -> None:
    write_text(tmp_path / "x", '"\ud800"')
    assert (tmp_path / "x").read_bytes() == b'"\\ud800"'


def test_a_draft_of_a_killed_run_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    left = tmp_path / f".report.json.{os.getpid()}.tmp"
    left.write_text("half of a")
    check_writable(path)
    write_text(path, "whole")
    assert path.read_text() == "whole"


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 125)
    check_writable(path)
    write_text(path, "x")
    assert path.read_text() == "x"


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_failure_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "report.json"
    write_text(path, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path if step == "replace" else os, step, fail)
    with pytest.raises(UserError, match=r"report\.json: No space left on device"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_not_a_file(tmp_path: Path) -> None:
    for write in (check_writable, lambda path: write_text(path, "")):
        with pytest.raises(UserError, match="it is a folder"):
            write(tmp_path)
        with pytest.raises(UserError, match="it is not a regular file"):
            write(Path(os.devnull))
        with pytest.raises(UserError, match="cannot write"):
            write(tmp_path / "nul\0")
        (tmp_path / "file").write_text("kept")
        with pytest.raises(UserError, match=r"Not a directory|File exists"):
            write(tmp_path / "file" / "report.json")
        assert (tmp_path / "file").read_text() == "kept"


def test_checking_leaves_no_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "report.json")
    write_text(tmp_path / "old.json", "old")
    check_writable(tmp_path / "old.json")
    assert [entry.name for entry in tmp_path.iterdir()] == ["old.json"]
    assert (tmp_path / "old.json").read_text() == "old"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_known_by_how_it_begins(protocol: int) -> None:
    assert is_pickled(pickle.dumps({}, protocol))
    assert is_pickled(b"PK\x03\x04" + bytes(20))
    # The size of a header of safetensors, before its brace, is no protocol of a pickle.
    assert not is_pickled(bytes([0x80, protocol]) + bytes(6) + b"{}")
    assert not is_pickled(b"")
