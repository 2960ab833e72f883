"""Another fingerprint whenever a tracker may answer otherwise, and the same one otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

from pytest_dstfuzz.models import fingerprints
from pytest_dstfuzz.models.fingerprints import files_fingerprint
from pytest_dstfuzz.models.trade.files import SHIPPED
from pytest_dstfuzz.models.trade.tracker import load_trade
from pytest_dstfuzz.trackers.tracker import fingerprint_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name in ("model/weights", "model/words", "code/read.py", "code/run.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {name}")
    return tmp_path


def taken(model: Path, *more: str) -> str:
    return files_fingerprint((model / "model").iterdir(), model / "code", *more)


def test_it_follows_content_and_not_place(model: Path) -> None:
    first = taken(model, "1.0", "cpu")
    moved = model.parent / "moved"
    shutil.copytree(model, moved)
    assert len(first) == 64
    assert taken(moved, "1.0", "cpu") == first


@pytest.mark.parametrize("name", ["model/weights", "model/words", "code/read.py"])
def test_every_file_counts(model: Path, name: str) -> None:
    first = taken(model)
    path = model / name
    path.write_text(path.read_text() + " ")
    second = taken(model)
    path.rename(path.with_name(f"a{path.name}"))
    assert len({first, second, taken(model)}) == 3


def test_the_shared_tokeniser_counts(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = taken(model)
    other = model / "tokenise.py"
    other.write_bytes(fingerprints.TOKENISER.read_bytes() + b"#")
    monkeypatch.setattr(fingerprints, "TOKENISER", other)
    assert taken(model) != first


def test_what_else_is_named_counts(model: Path) -> None:
    found = [taken(model, *more) for more in ((), ("1.0",), ("1.0", "cpu"), ("1.0c", "pu"))]
    assert len(set(found)) == 4


def test_trade_has_one_of_its_own_files(tmp_path: Path) -> None:
    shipped = fingerprint_of(load_trade())
    copied = tmp_path / "copied"
    shutil.copytree(SHIPPED, copied)
    assert fingerprint_of(load_trade(copied, batch_size=3)) == shipped
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    config["history_limit"] -= 1
    (copied / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert fingerprint_of(load_trade(copied)) not in (None, shipped)
