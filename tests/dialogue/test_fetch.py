import hashlib
import http.server
import io
import json
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue import load as fetching
from pytest_dstfuzz.dialogue.load import (
    DATASETS,
    Dataset,
    cache_folder,
    fetch,
    find_fetched,
    load_dialogues,
)
from pytest_dstfuzz.errors import DataError, UserError


def blob_id(content: bytes) -> str:
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


class Server:
    """Files on loopback, with the faults that transfers have."""

    def __init__(self) -> None:
        self.files = {}
        self.requests = []
        self.ranges = True
        self.length = True
        self.break_after = None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.requests.append((handler.path, wanted))
        content = self.files.get(handler.path)
        if content is None:
            handler.send_error(404)
            return
        start = int(wanted[6:-1]) if wanted and self.ranges else 0
        if start and start >= len(content):
            handler.send_error(416)
            return
        handler.send_response(206 if start else 200)
        if self.length:
            handler.send_header("Content-Length", str(len(content) - start))
        handler.end_headers()
        end = None if self.break_after is None else start + self.break_after
        handler.wfile.write(content[start:end])


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def zip_bytes(members: dict[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def link_bytes() -> bytes:
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    return zip_bytes({info: "/etc/passwd"})


CONTENT = bytes(range(256)) * 1000


def get(
    server: Server,
    path: str,
    target: Path,
    content: Any = None,
    expected: Any = None,
    progress: fetching.Progress | None = None,
) -> None:
    if content is not None:
        server.files[path] = content
    fetching.download(server.url + path, target, expected or blob_id(content), progress)


def test_download_verifies_tells_progress_and_is_not_repeated(server: Server, tmp_path: Path):
    seen = []
    target = tmp_path / "deep/file.bin"
    get(server, "/f", target, CONTENT, progress=lambda *told: seen.append(told))
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file.bin"]
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    get(server, "/f", target, CONTENT)
    assert len(server.requests) == 1


def test_changed_file_is_fetched_again(server: Server, tmp_path: Path):
    target = tmp_path / "f"
    target.write_text("old")
    get(server, "/f", target, CONTENT)
    assert target.read_bytes() == CONTENT


def test_interrupted_transfer_goes_on_where_it_stopped(server: Server, tmp_path: Path):
    target = tmp_path / "f"
    server.break_after = 100_000
    with pytest.raises(
        DataError, match=r"cannot be downloaded .*run the command again to continue"
    ):
        get(server, "/f", target, CONTENT)
    assert not target.exists()
    assert (tmp_path / "f.part").read_bytes() == CONTENT[:100_000]
    server.break_after = None
    get(server, "/f", target, CONTENT)
    assert target.read_bytes() == CONTENT
    assert server.requests[-1] == ("/f", "bytes=100000-")


def test_server_without_ranges_starts_again(server: Server, tmp_path: Path):
    server.ranges = False
    (tmp_path / "f.part").write_bytes(CONTENT[:7])
    get(server, "/f", tmp_path / "f", CONTENT)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_whole_part_needs_no_more_bytes(server: Server, tmp_path: Path):
    (tmp_path / "f.part").write_bytes(CONTENT)
    get(server, "/f", tmp_path / "f", CONTENT)
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_server_that_does_not_tell_the_length(server: Server, tmp_path: Path):
    server.length = False
    seen = []
    get(server, "/f", tmp_path / "f", CONTENT, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("f", len(CONTENT), None)


def test_wrong_content_is_refused_and_the_old_file_kept(server: Server, tmp_path: Path):
    target = tmp_path / "f"
    target.write_text("old")
    with pytest.raises(
        DataError, match=r"differs from the published file, so the download was deleted"
    ):
        get(server, "/f", target, CONTENT, "00")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_pointer_of_lfs(server: Server, tmp_path: Path):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
    with pytest.raises(DataError, match="is a pointer of Git LFS"):
        get(server, "/f", tmp_path / "f", pointer)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            zip_bytes({"a/../../b.json": "x"}),
            r"f\.zip\.part is rejected: its member .* lies outside",
        ),
        (zip_bytes({"..\\b.json": "x"}), "is rejected"),
        (zip_bytes({"/etc/b.json": "x"}), "is rejected"),
        (zip_bytes({"C:/b.json": "x"}), "is rejected"),
        (link_bytes(), "member 'link' is a link"),
        (b"PK no zip", "not a zip file or is cut off"),
    ],
)
def test_unsafe_archives(server: Server, tmp_path: Path, content: Any, message: str):
    with pytest.raises(DataError, match=message):
        get(server, "/f.zip", tmp_path / "f.zip", content)
    assert list(tmp_path.iterdir()) == []


def test_failures_of_the_server(server: Server, tmp_path: Path):
    with pytest.raises(DataError, match="answered 404"):
        get(server, "/nothing", tmp_path / "f", expected="00")
    server.http.server_close()
    dead = "http://127.0.0.1:9/f"
    with pytest.raises(DataError, match="cannot be downloaded"):
        fetching.download(dead, tmp_path / "f", "00")
    with pytest.raises(DataError, match="only http and https"):
        fetching.download("file:///etc/passwd", tmp_path / "f", "00")


def test_folder_that_cannot_be_made(server: Server, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"):
        get(server, "/f", tmp_path / "file/f", CONTENT)


def test_fetch_and_load_by_name(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, original: dict[str, Any]
):
    lists = zip_bytes({"W/valListFile.txt": "AAA01.json", "W/testListFile.txt": "BBB02.json"})
    data = zip_bytes({"V/data.json": json.dumps(original)})
    made = {
        "multiwoz21": Dataset("o/r", "c0", "data", {"l.zip": blob_id(lists)}),
        "multiwoz23": Dataset("o/r", "c0", "", {"d.zip": blob_id(data)}, lists_from="multiwoz21"),
    }
    server.files = {"/o/r/c0/data/l.zip": lists, "/o/r/c0/d.zip": data}
    monkeypatch.setenv("DSTFUZZ_CACHE", str(tmp_path))
    with pytest.raises(DataError, match="run `dstfuzz fetch multiwoz23`, or give the path"):
        load_dialogues("multiwoz23")
    monkeypatch.setattr(fetching, "RAW_URL", server.url)
    monkeypatch.setattr(fetching, "DATASETS", made)
    folder = fetch("multiwoz23")
    assert folder == tmp_path / "multiwoz23"
    assert find_fetched("multiwoz23") == (folder, tmp_path / "multiwoz21")
    found = load_dialogues("multiwoz23", "val")
    assert (found.name, [d.id for d in found.dialogues]) == ("multiwoz23", ["AAA01"])
    (tmp_path / "multiwoz21/l.zip").unlink()
    assert find_fetched("multiwoz23") is None


def test_half_of_a_data_set_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DSTFUZZ_CACHE", str(tmp_path))
    for file in list(DATASETS["multiwoz22"].files)[:-1]:
        (tmp_path / "multiwoz22" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "multiwoz22" / file).touch()
    assert find_fetched("multiwoz22") is None


def test_unknown_data_set():
    with pytest.raises(UserError, match=r"unknown data set 'multiwoz2.1'. Did you mean 'multiw"):
        fetch("multiwoz2.1")


def test_named_data_sets_are_pinned():
    assert list(DATASETS) == ["multiwoz20", "multiwoz21", "multiwoz22", "multiwoz23", "multiwoz24"]
    for dataset in DATASETS.values():
        assert len(dataset.commit) == 40
        assert all(len(blob) == 40 for blob in dataset.files.values())
    assert len(DATASETS["multiwoz22"].files) == 22
    url = DATASETS["multiwoz22"].url("schema.json")
    assert url == (
        "https://raw.githubusercontent.com/budzianowski/multiwoz/"
        "fe0c8e65cfcd8462bd33c86e35f21addc84ca82b/data/MultiWOZ_2.2/schema.json"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="folders of XDG")
@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"DSTFUZZ_CACHE": "/mine", "XDG_CACHE_HOME": "/xdg"}, Path("/mine")),
        ({"DSTFUZZ_CACHE": "~/mine"}, Path("~/mine").expanduser()),
        ({"XDG_CACHE_HOME": "/xdg", "LOCALAPPDATA": "/app"}, Path("/xdg/dstfuzz")),
        ({"XDG_CACHE_HOME": ""}, Path("~/.cache/dstfuzz").expanduser()),
        ({}, Path("~/.cache/dstfuzz").expanduser()),
    ],
)
def test_cache_folder(
    environ: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DSTFUZZ_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == folder


def test_cache_folder_of_this_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DSTFUZZ_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
