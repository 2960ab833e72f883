"""The three kinds of bots that the guide of replies shows, tested in a fresh environment."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pages_of_docs import ROOT, of, title
from processes import run_python

PAGE = "guides/replies.md"
FILES = {
    title(block): block.text
    for page, block in of("python", "json")
    if page == PAGE and title(block)
}
#: Misspelt so often that each word of a short question is hit.
HARD = ("--dst-variants=20", "--dst-validity=edit-rate", "--dst-edits=char_drop")
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment in which the wheel of the package is installed."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    folder = tmp_path_factory.mktemp("fresh")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").iterdir()
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(make, check=True)
    python = folder / "venv" / "bin" / "python"
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    found = subprocess.run(ask, check=True, capture_output=True, text=True)
    site = Path(found.stdout.strip())
    # A wheel is installed by unpacking it. What it needs is that of the tests, so that nothing is
    # downloaded; the package itself is not taken from there, for it is in the wheel.
    shutil.unpack_archive(wheel, site, "zip")
    others = (path for path in sys.path if path.endswith("site-packages"))
    (site / "of_the_tests.pth").write_text("\n".join(dict.fromkeys(others)), encoding="utf-8")
    where = [str(python), "-c", "import pytest_dstfuzz; print(pytest_dstfuzz.__file__)"]
    found = subprocess.run(where, check=True, capture_output=True, text=True, cwd=folder)
    assert found.stdout.startswith(str(site))
    return python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that holds the files of the guide, and nothing else."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "system.txt").write_text("You answer for a shop.", encoding="utf-8")
    return tmp_path


def report_of(python: Path, folder: Path, model: str, *options: str) -> dict[str, Any]:
    """Run the line of the guide for a bot, and return the JSON report."""
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--dst-model={model}"]
    command += ["--dst-outcome=reply", "--dst-data=questions.jsonl", "--dst-report=report.json"]
    done = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    assert re.search(r"FAILED dstfuzz::test_reply_survives\[questions-", done.stdout)
    return report


def clean_replies(report: dict[str, Any]) -> list[str]:
    return [turn["clean_state"]["reply"] for turn in report["turns"]]


def losses(report: dict[str, Any]) -> set[tuple[str, str]]:
    """Return what was replied to a clean question, and what to a misspelt one."""
    return {
        (change["before"], change["after"])
        for turn in report["turns"]
        for variant in turn["variants"]
        if variant["outcome"] == "violation"
        for change in variant["changed_slots"]
    }


def test_orders_and_checks_of_ones_own(folder: Path) -> None:
    (shown,) = (b for page, b in of("python") if page == PAGE and "ContextCheck" in b.text)
    (command,) = (b for page, b in of("shell") if page == PAGE and "names-its-topic" in b.text)
    (folder / "conftest.py").write_text(shown.text, encoding="utf-8")
    words = shlex.split(command.text.replace("\\\n", " "))[1:]
    run = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--dst-report=r.json")
    done = run_python(*run, *words, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((folder / "r.json").read_text("utf-8"))
    (figures,) = (one for one in report["mortar"] if one["relation"] == "same-context")
    # One dialogue, five draws of the perturbation. All draws are equal, so one has checks.
    assert (figures["cases"], figures["detections"], figures["bugs"]) == (5, 2, 0)
    cases = {variant["case"] for turn in report["turns"] for variant in turn["variants"]}
    assert cases == {"backwards-0"}


HOURS, ORDER, OTHER = "We open at nine.", "Your order is on its way.", "Sorry, I do not know that."


def test_a_function(python: Path, folder: Path) -> None:
    report = report_of(python, folder, "my_bot:reply", *HARD)
    assert clean_replies(report) == [HOURS, ORDER, HOURS, HOURS]
    assert losses(report) == {(HOURS, OTHER), (ORDER, OTHER)}


def test_a_session_has_its_own_history(python: Path, folder: Path) -> None:
    report = report_of(python, folder, "session_bot:Bot", *HARD)
    assert clean_replies(report) == [HOURS, "Sorry?", HOURS, HOURS]
    assert any("consists of its own replies" in note for note in report["run"]["notes"])


def test_a_service(python: Path, folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = folder / "reply_service.py"
    service.write_text(FILES["reply_service.py"].replace("8766", str(port)), encoding="utf-8")
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen([str(python), str(service)], stdout=log, stderr=log)
    try:
        wait_for(port)
        address = f"http://127.0.0.1:{port}"
        report = report_of(python, folder, address, *HARD, "--dst-history=own")
    finally:
        process.terminate()
        process.wait()
    assert clean_replies(report) == [HOURS, OTHER, HOURS, HOURS]
    assert losses(report) == {(HOURS, OTHER)}


def test_a_chat_model(python: Path, folder: Path) -> None:
    with chat_model() as (address, asked):
        report = report_of(python, folder, address, *HARD, "--dst-tracker=prompt=system.txt")
    assert clean_replies(report) == [HOURS, OTHER, HOURS, HOURS]
    assert losses(report) == {(HOURS, OTHER)}
    assert {body["messages"][0]["role"] for body in asked} == {"system"}
    assert report["run"]["usage"]["answers"] == len(asked)


def wait_for(port: int) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the service did not start")


@contextmanager
def chat_model() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve a model of the OpenAI form; its address, and the requests for completions."""
    asked: list[dict[str, Any]] = []

    class Model(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.say({"data": [{"id": "shop"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            text = HOURS if "open" in body["messages"][-1]["content"].lower() else OTHER
            message = {"role": "assistant", "content": text}
            usage = {"prompt_tokens": 9, "completion_tokens": 4}
            self.say({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

        def say(self, answer: object) -> None:
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"openai+http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
