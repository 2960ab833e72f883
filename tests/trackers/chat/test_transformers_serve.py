"""A real server (the one that ships with transformers) and a small real model, end to end."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

pytest.importorskip("transformers", reason="the extra models is not installed")
_NEEDS = ("fastapi", "uvicorn", "openai", "accelerate")
_MISSING = [name for name in _NEEDS if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(_MISSING), reason=f"transformers serve needs {', '.join(_MISSING)}"
)
#: Seconds that the server may take to load torch and the model on a busy machine.
_PATIENCE = 120
TALKS = [
    ["Hi, I want a large pizza with olives", "Thin crust, please"],
    ["We would like one small pizza", "A thick crust and olives, please"],
    ["I want pizza", "The medium one, please, with olives", "Thin"],
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Train the model, serve it in a process of its own; its address and folder."""
    from tiny_model import save_tiny_model  # noqa: PLC0415 - needs what may be missing

    folder = tmp_path_factory.mktemp("tiny")
    save_tiny_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()"]
    command += ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    outside = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=outside, stdout=output, stderr=output)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield f"openai+http://127.0.0.1:{port}", folder
    finally:
        process.terminate()
        process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")


@pytest.fixture
def shop(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with conversations about pizzas, their ontology and the model's prompt."""
    from tiny_model import CRUSTS, PROMPT, SIZES  # noqa: PLC0415 - likewise

    lines = [
        json.dumps({"dialogue_id": f"p{number}", "turns": [{"user": user} for user in users]})
        for number, users in enumerate(TALKS)
    ]
    files = {
        "talks.jsonl": "\n".join(lines),
        "talks.ontology.json": json.dumps({"pizza-size": SIZES, "pizza-crust": CRUSTS}),
        "prompt.jinja": PROMPT,
    }
    for name, text in files.items():
        (pytester.path / name).write_text(text, encoding="utf-8")
    return pytester


@pytest.mark.unmeasured
def test_a_chat_model_is_tested_end_to_end(shop: pytest.Pytester, server: tuple[str, Path]) -> None:
    address, folder = server
    options = (
        *(f"--dst-model={address}", f"--dst-service-model={folder}", "--dst-data=talks.jsonl"),
        *("--dst-prompt=prompt.jinja", "--dst-prices=1,2", "--dst-validity=edit-rate"),
        *("--dst-only=char_drop,char_replace", "--dst-max-failure-rate=100%"),
    )
    reports = []
    for number in range(2):
        run = shop.runpytest(*options, f"--dst-report={number}.json")
        run.assert_outcomes(passed=7)
        report = json.loads((shop.path / f"{number}.json").read_text(encoding="utf-8"))
        reports.append(report)
    report = reports[0]
    # It understood: the states of the clean turns are right.
    assert [turn["clean_state"] for turn in report["turns"]] == [
        {"pizza-size": "large"},
        {"pizza-size": "large", "pizza-crust": "thin"},
        {"pizza-size": "small"},
        {"pizza-size": "small", "pizza-crust": "thick"},
        {},
        {"pizza-size": "medium"},
        {"pizza-size": "medium", "pizza-crust": "thin"},
    ]
    # And a misspelt size is lost: a real weakness of a real model.
    summary, usage = report["summary"], report["run"]["usage"]
    assert summary["errors"] == 0
    assert summary["violations"] > 0
    changes = [c for t in report["turns"] for v in t["variants"] for c in v["changed_slots"]]
    assert ("pizza-size", None) in {(change["slot"], change["after"]) for change in changes}
    assert report["run"]["disagreement"] == {"contexts": 7, "answers": 3, "differed": 0}
    assert usage["answers"] == report["run"]["contexts"]["asked"] + 3 * 7
    assert usage["uncounted"] == 0
    assert usage["prompt_tokens"] > usage["completion_tokens"] > usage["answers"]
    assert usage["cost"] == pytest.approx(
        (usage["prompt_tokens"] + 2 * usage["completion_tokens"]) / 1e6, abs=1e-4
    )
    # The same bytes once more, but for `run`.
    assert [{**r, "run": None} for r in reports] == [{**report, "run": None}] * 2


def test_a_wrong_model_name_is_one_clear_message(
    shop: pytest.Pytester, server: tuple[str, Path]
) -> None:
    run = shop.runpytest(
        f"--dst-model={server[0]}", "--dst-service-model=gpt", "--dst-data=talks.jsonl"
    )
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(
        ["ERROR: the tracker cannot be tested: *answered 400*requested 'gpt'*"]
    )
