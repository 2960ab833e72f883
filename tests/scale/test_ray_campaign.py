"""dstfuzz campaign --ray: the bytes of one process, whatever the actors and whatever dies."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import run_python
from started_ray import StartedRay, started_ray

from tools.scale.kills import actors_of
from tools.scale.runs import without_run
from tools.scale.synthetic import entries

pytest.importorskip("ray", reason="the extra ray is not installed")
if not Path("/proc").is_dir():
    pytest.skip("actors are found in /proc", allow_module_level=True)

BOT = """
import os
import time

WORDS = {"cheap": "restaurant-pricerange", "north": "hotel-area", "centre": "restaurant-area"}

def heard(context):
    said = " ".join(context.user_utterances).lower().split()
    return {slot: word for word, slot in WORDS.items() if word in said}

def slow(context):
    time.sleep(0.002)
    return heard(context)

def broken(context):
    raise ValueError("no weights")

def deadly(context):
    if open("doomed").read() in context.user_utterances:
        os._exit(1)
    return heard(context)
"""
OPTIONS = (
    *("--data=made.jsonl", "--turns=all", "--variants=1", "--relation=metamorphic,value-swap"),
    # In the profile `natural`, each process learns for seconds how slips are read.
    "--validity=strict",
)
PROGRESS = re.compile(r"[\d,]+ of [\d,]+ \(")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dialogues of three blocks, a bot, and the report of an undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("campaigns")
    (folder / "wordbot.py").write_text(BOT, encoding="utf-8")
    lines = [json.dumps(entry) + "\n" for entry in entries(520, 0)]
    (folder / "made.jsonl").write_text("".join(lines), encoding="utf-8")
    done = run_python(*line("plain", "--report=plain.json")[1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def ray(folder: Path) -> Iterator[StartedRay]:
    with started_ray(folder) as found:
        yield found


def line(results: str, *words: str, model: str = "heard") -> list[str]:
    own = ("campaign", f"--model=wordbot:{model}", *OPTIONS, f"--results={results}")
    return [sys.executable, "-m", "pytest_dstfuzz.cli", *own, *words]


def ran(
    folder: Path, ray: StartedRay | None, *words: str, model: str = "heard"
) -> subprocess.CompletedProcess[str]:
    if ray is None:
        return run_python(*line(*words, model=model)[1:], cwd=folder)
    return subprocess.run(
        line(*words, f"--ray={ray.address}", model=model),
        cwd=folder,
        env=ray.surroundings,
        capture_output=True,
        text=True,
        check=False,
    )


def begun(folder: Path, ray: StartedRay, results: str, *words: str) -> subprocess.Popen[str]:
    """Start a slow run, and return when some of its results are there."""
    process = subprocess.Popen(
        line(results, f"--ray={ray.address}", "--ray-actors=2", *words, model="slow"),
        cwd=folder,
        env=ray.surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = folder / results / "results-0001.jsonl"
    while not (lines.exists() and lines.stat().st_size):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("actors", [1, 2])
def test_the_report_is_that_of_one_process(folder: Path, ray: StartedRay, actors: int) -> None:
    name = f"actors-{actors}"
    done = ran(folder, ray, name, f"--ray-actors={actors}", f"--report={name}.json")
    assert done.returncode == 0, done.stderr
    assert without_run(folder / f"{name}.json") == without_run(folder / "plain.json")
    # Nothing of Ray is on the terminal.
    assert "ray" not in done.stdout.replace("--ray", "").lower()
    assert "results" in done.stderr or done.stderr == ""


@pytest.mark.nightly
def test_ray_begins_on_this_machine(folder: Path) -> None:
    natural = "--validity=natural"
    assert ran(folder, None, "natural", natural, "--report=natural.json").returncode == 0
    done = subprocess.run(
        line("own", "--ray", "--ray-actors=2", natural, "--report=own.json"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert without_run(folder / "own.json") == without_run(folder / "natural.json")


@pytest.mark.nightly
def test_an_actor_that_dies_is_replaced(folder: Path, ray: StartedRay) -> None:
    process = begun(folder, ray, "shot", "--report=shot.json")
    os.kill(min(actors_of(ray.process)), signal.SIGKILL)
    out, told = process.communicate()
    assert process.returncode == 0, told
    assert "died" not in out
    assert ran(folder, None, "slow", "--report=slow.json", model="slow").returncode == 0
    assert without_run(folder / "shot.json") == without_run(folder / "slow.json")


@pytest.mark.nightly
@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_driver_goes_on(
    folder: Path, ray: StartedRay, how: signal.Signals, status: int
) -> None:
    name = f"driver-{how}"
    process = begun(folder, ray, name)
    process.send_signal(how)
    _, told = process.communicate()
    assert process.returncode == status
    if how == signal.SIGINT:
        assert told.endswith(
            "interrupted; "
            "finished results are in the folder of --results, and the same command continues "
            "the run\n"
        )
    before = (folder / name / "results-0001.jsonl").read_bytes()
    whole = before[: before.rfind(b"\n") + 1]
    done = ran(folder, ray, name, f"--report={name}.json", model="slow")
    assert done.returncode == 0, done.stderr
    assert (folder / name / "results-0001.jsonl").read_bytes().startswith(whole)
    assert ran(folder, None, "slow", "--report=slow.json", model="slow").returncode == 0
    assert without_run(folder / f"{name}.json") == without_run(folder / "slow.json")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("dialogue", "turn", "told", "finished"),
    [
        # Its block is the second, from which nothing is asked before the run.
        (70, 2, "ran the same block, which begins with the dialogue 'made-", True),
        (0, 0, "tested the tracker", False),
    ],
)
def test_a_turn_that_ends_every_actor_is_told_in_a_line(
    folder: Path, ray: StartedRay, dialogue: int, turn: int, told: str, finished: bool
) -> None:
    lines = (folder / "made.jsonl").read_text(encoding="utf-8").splitlines()
    doomed = json.loads(lines[dialogue])["turns"][turn]["user"]
    (folder / "doomed").write_text(doomed, encoding="utf-8")
    results = f"deadly-{dialogue}"
    done = ran(folder, ray, results, model="deadly")
    assert done.returncode == 2
    # Blocks that end late on a slow machine are counted in lines of progress.
    (message,) = (one for one in done.stderr.splitlines() if not PROGRESS.match(one))
    assert "3 actors ended" in message
    assert told in message
    assert ".." not in message
    assert any((folder / results).glob("results-*.jsonl")) == finished


@pytest.mark.nightly
def test_mistakes_are_those_of_one_process(folder: Path, ray: StartedRay) -> None:
    for model in ("broken", "nothing"):
        plain = ran(folder, None, f"mine-{model}", model=model)
        assert plain.returncode == 2
        theirs = ran(folder, ray, f"theirs-{model}", model=model)
        assert (theirs.returncode, theirs.stderr) == (2, plain.stderr)
    other = ran(folder, ray, "plain", "--seed=7")
    assert other.returncode == 2
    assert "seed was 0 and is 7" in other.stderr


@pytest.mark.nightly
def test_a_budget_is_that_of_all_actors(folder: Path, ray: StartedRay) -> None:
    done = ran(folder, ray, "short", "--max-calls=400", "--ray-actors=2")
    assert done.returncode == 1, done.stderr
    assert "the budget of 400 calls ended: run the same command to continue in short" in done.stdout
    run = json.loads((folder / "short" / "run.json").read_text(encoding="utf-8"))
    assert 0 < run["asked"] <= 400
    assert run["settings"]["max_calls"] == 400


@pytest.mark.nightly
def test_what_is_wrong_with_an_option_is_told_in_a_line(folder: Path) -> None:
    for words, text in (
        (("--ray-actors=2",), "--ray-actors applies only to --ray"),
        (("--ray-gpus=0.5",), "--ray-gpus applies only to --ray"),
        (("--ray", "--ray-actors=0"), "must be a number of actors"),
        (("--ray", "--ray-gpus=1.5"), "must be a share of an accelerator"),
        (("--ray", "--max-tokens=1"), "--max-tokens cannot be combined with --ray"),
        (("--ray=ray://head:10001",), "an address of the Ray client"),
        (("--ray=head",), "write HOST:PORT of a head node, or auto"),
        (("--ray=127.0.0.1:1",), "no answer from --ray 127.0.0.1:1"),
    ):
        done = ran(folder, None, "wrong", *words)
        assert done.returncode == 2
        assert text in done.stderr
        assert done.stderr.count("\n") == 1
