"""Files in other encodings, and with other ends of lines, than most: they are read, or named."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text

SAID = ["A table for two in the Grüne Gans, please", "And is there parking?"]
FILES = {
    "a.csv": "id,speaker,text\n" + "".join(f'{n},user,"{s}"\n' for n, s in enumerate(SAID)),
    "a.jsonl": "".join(f'{{"dialogue_id": "{n}", "users": ["{s}"]}}\n' for n, s in enumerate(SAID)),
    "a.txt": "".join(f"{said}\n" for said in SAID),
    "a.json": json.dumps([{"role": "user", "content": said} for said in SAID], indent=1),
}
MARKED = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", FILES)
def test_data_is_read_whatever_its_encoding_and_ends_of_lines(
    tmp_path: Path, name: str, encoding: str, end: str
) -> None:
    content = FILES[name].replace("\n", end).encode(encoding)
    for mark in {b"", MARKED.get(encoding, b"")}:
        (tmp_path / name).write_bytes(mark + content)
        found = load_dialogues(tmp_path / name).dialogues
        assert [turn.user for one in found for turn in one.turns] == SAID


@pytest.mark.parametrize("end", ["\n", "\r"], ids=["lf", "cr"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt"])
def test_what_is_in_no_known_encoding_is_named_with_its_line(
    tmp_path: Path, name: str, end: str
) -> None:
    lines = ["no umlaut here", "nor here"] if name == "a.txt" else FILES[name].split("\n")[:1]
    content = end.join([*lines, FILES[name].split("\n")[-3 if name == "a.csv" else 0], ""])
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    line = content[: content.index("ü")].count(end) + 1
    with pytest.raises(DataError, match=rf"{name}: line {line} is not UTF-8 .*convert the file"):
        load_dialogues(tmp_path / name)


def test_utf_16_that_is_cut_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("One\nTwo\nThree".encode("utf-16")[:-1])
    with pytest.raises(DataError, match=r"line \d is not UTF-16 .*convert the file to UTF-8"):
        load_dialogues(tmp_path / "a.txt")


@pytest.mark.parametrize(
    "content",
    [b"name,size\rlarge,1\r", "name,size\r\nübel,2\r\n".encode("utf-16"), b"x" * 200_000, b"a,\0"],
    ids=["cr", "utf-16", "a long cell", "a zero byte"],
)
@pytest.mark.parametrize("folder", [False, True], ids=["beside a file", "in a folder"])
def test_any_table_may_lie_with_the_data(tmp_path: Path, content: bytes, folder: bool) -> None:
    (tmp_path / "a.jsonl").write_text(FILES["a.jsonl"], encoding="utf-8")
    (tmp_path / "prices.csv").write_bytes(content)
    assert len(load_dialogues(tmp_path if folder else tmp_path / "a.jsonl").dialogues) == 2


def test_files_beside_the_data_may_be_utf_16(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(FILES["a.txt"], encoding="utf-8")
    ontology = tmp_path / "a.ontology.json"
    ontology.write_bytes('{"place-name": ["Grüne Gans"]}'.encode("utf-16"))
    found = load_dialogues(tmp_path / "a.txt", ontology=ontology).ontology
    assert found is not None
    assert found.slots == ("place-name",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_files_are_read_in_these_encodings_too(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "prompt"
    path.write_bytes("Sei höflich.\r\nUnd kurz.\rDanke.".encode(encoding))
    assert read_text(path, "prompt") == "Sei höflich.\nUnd kurz.\nDanke."
    path.write_bytes("höflich".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8 text; convert the file to UTF-8"):
        read_text(path, "prompt")
