"""``dstfuzz check-tracker``: the table, the JSON and the exit statuses."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from pytest_dstfuzz import cli
from pytest_dstfuzz.trackers.conformance import CHECKS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

BOTS = """
def track(context):
    words = " ".join(context.user_utterances).lower().split()
    return {"hotel-area": word for word in words if word in ("north", "south", "east", "west")}

def brittle(context):
    return track(context) if context.user.split()[0] else {}

def silent(context):
    return {}

class Speaks:
    notes = ("no slots are declared",)
    def predict(self, contexts):
        return [track(context) for context in contexts]

def stopped(context):
    raise KeyboardInterrupt
"""

AREAS = ("north", "south", "east", "west")
TALKS = [
    {
        "dialogue_id": f"{first}-{second}",
        "turns": [
            {"system": "", "user": f"a room in the {first}", "state": {"hotel-area": first}},
            {"system": "?", "user": f"or {second}", "state": {"hotel-area": second}},
            {"system": "Yes.", "user": "thank you", "state": {"hotel-area": second}},
        ],
    }
    for first in AREAS
    for second in AREAS[: AREAS.index(first)]
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own as the working folder, with trackers in it."""
    (tmp_path / "checked_bot.py").write_text(BOTS, encoding="utf-8")
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, TALKS)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "100")
    yield tmp_path
    for name in ("checked_bot", "my_bot"):
        sys.modules.pop(name, None)


DATA = ("--data", "talks.jsonl")
TRACK = ("--model", "checked_bot:track", *DATA)
BRITTLE = ("--model", "checked_bot:brittle", *DATA)


def run(*words: str) -> int:
    return cli.main(["check-tracker", *words])


def test_a_sound_tracker_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*TRACK, "--turns", "17") == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^  ok    ([a-z-]+) ", shown, re.MULTILINE) == [
        check.name for check in CHECKS if check.name != "slots"
    ]
    assert "tracker      checked_bot:track\n" in shown
    assert "data         talks, split test: 6 dialogues, 17 turns\n" in shown
    assert re.search(r"^contexts per second by batch size 1: [\d,.]+   2: ", shown, re.MULTILINE)
    assert re.search(r"^joint goal accuracy +100\.00 % of 17 turns$", shown, re.MULTILINE)
    assert shown.endswith("\n13 checks: 12 passed, 1 skipped\n")
    assert "\x1b" not in shown


def test_partial_labels_are_told_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [
        {**turn, "state": None if talk is not TALKS[0] else turn["state"]}
        for talk in TALKS
        for turn in talk["turns"]
    ]
    few = [
        {"dialogue_id": talk["dialogue_id"], "turns": turns[3 * place : 3 * place + 3]}
        for place, talk in enumerate(TALKS)
    ]
    (folder / "few.jsonl").write_text("\n".join(map(json.dumps, few)), encoding="utf-8")
    assert run("--model", "checked_bot:track", "--data", "few.jsonl") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "right at 3 of 3 turns with labels (15 have none)" in shown
    assert "joint goal accuracy 100.00 % of 3 turns with labels" in shown
    assert (
        "note 3 of 18 turns have labels, in 1 of 6 dialogues; they name 1 slot, but there may be"
        in shown
    )


def test_slots_that_are_named_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*TRACK, "--slots", "hotel-area,hotel-stars") == 0
    assert "1 of 2 slots predicted, none unknown" in capsys.readouterr().out
    assert run(*TRACK, "--slots", "hotel-stars") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "the slot 'hotel-area', which the option slots (--dst-slots must name all slots" in shown


def test_a_defect_is_shown_with_advice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*BRITTLE) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "FAIL odd-utterances no answer to 2 of 10 odd utterances: an empty utterance" in shown
    assert "Users send such utterances." in shown
    assert shown.endswith("13 checks: 1 failed, 11 passed, 1 skipped")


def test_a_warning_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--model", "checked_bot:silent", *DATA) == 0
    shown = capsys.readouterr().out
    assert "  warn  accuracy        the tracker predicts no slot at any of 18 turns\n" in shown
    assert shown.endswith("13 checks: 1 warned, 11 passed, 1 skipped\n")


def test_colour_is_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    run(*BRITTLE)
    shown = capsys.readouterr().out
    assert re.search(r"\x1b\[1;31m  FAIL  odd-utterances .*\x1b\[0m\n", shown)
    assert re.search(r"\x1b\[32m  ok    eval-mode .*\x1b\[0m\n", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    run(*BRITTLE)
    assert "\x1b" not in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*BRITTLE, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["tracker"], found["data"], found["turns"]) == ("checked_bot:brittle", "talks", 18)
    assert found["passed"] is False
    assert [item["check"] for item in found["findings"]] == [check.name for check in CHECKS]
    (failed,) = (item for item in found["findings"] if item["status"] == "failed")
    assert failed["check"] == "odd-utterances"
    assert failed["advice"]
    figures = found["figures"]
    assert list(figures["contexts_per_second"]) == ["1", "2", "7", "18"]
    assert figures["turns"] == 18
    assert figures["joint_goal_accuracy"] == figures["slot_accuracy"] == 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "required: --model"),
        ("--model trad", "unknown tracker 'trad'. Did you mean 'trade'?"),
        ("--model checked_bot:trakc", "no attribute 'trakc'. Did you mean 'track'?"),
        ("--model checked_bot:track --turns none", "--turns: "),
        ("--model checked_bot:track --trun 3", "unknown argument '--trun'; did you mean --turns?"),
        ("--model checked_bot:track --data nowhere", "no such file or folder: 'nowhere'"),
    ],
)
def test_what_cannot_be_checked_ends_with_2(
    capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert run(*words.split()) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert message in errors
    assert errors.count("\n") == 1


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("--help")
    assert ended.value.code == 0
    assert "examples:\n  dstfuzz check-tracker --model " in capsys.readouterr().out


def test_what_the_tracker_has_to_say_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--model", "checked_bot:Speaks", *DATA) == 0
    assert "note         no slots are declared\n" in capsys.readouterr().out
    assert run("--model", "checked_bot:Speaks", *DATA, "--json") == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["no slots are declared"]


def test_an_interrupt_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--model", "checked_bot:stopped", *DATA) == 130
    assert "dstfuzz: interrupted; no results were saved" in capsys.readouterr().err


def test_the_tracker_of_the_readme_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(# my_bot\.py\n.*?)^```$", README, re.DOTALL | re.MULTILINE)
    (folder / "my_bot.py").write_text(blocks[0], encoding="utf-8")
    assert run("--model", "my_bot:track") == 0
    shown = capsys.readouterr().out
    assert "  ok    odd-utterances " in shown
    assert "FAIL" not in shown


class Service(BaseHTTPRequestHandler):
    """Knows one slot; breaks down on the upper half of Unicode."""

    protocol_version = "HTTP/1.1"
    # Headers and body in one packet: the second of two would wait for the first one's receipt.
    wbufsize = -1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = " ".join(exchange["user"] for exchange in asked["dialogue"])
        answer = {"state": {"hotel-area": "north"} if "north" in said else {}}
        body = json.dumps(answer).encode()
        self.send_response(422 if "🍕" in said else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Server(ThreadingHTTPServer):
    #: By default 5 connections wait to be accepted, and 16 come at once.
    request_queue_size = 128


def test_a_service_is_checked_like_any_tracker(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("httpx")
    server = Server(("127.0.0.1", 0), Service)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        words = ("--turns", "20", "--tracker", "retries=0", "--json")
        assert run("--model", address, *words) == 1
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    found = json.loads(capsys.readouterr().out)
    (failed,) = (item for item in found["findings"] if item["status"] == "failed")
    assert failed["check"] == "odd-utterances"
    assert "only emoji" in failed["message"]
    assert "422" in failed["message"]
