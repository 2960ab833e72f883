"""dstfuzz train-agent --ray: the bytes of one process that learns after each round."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from started_ray import StartedRay, started_ray

pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("ray", reason="the extra ray is not installed")
if not Path("/proc").is_dir():
    pytest.skip("Ray is begun on Linux alone", allow_module_level=True)

FILES = ("agent.safetensors", "training.safetensors")
#: It dies in an actor, in the middle of a part, while it is said to: there are no clean contexts.
BOT = """
import os
from pathlib import Path

CLEAN = "kindly keep a fresh loaf of rye behind the counter"

def track(context):
    doom = Path("doom")
    if not context.user.startswith(CLEAN) and doom.exists():
        if doom.read_text() == "once":
            doom.unlink()
        os._exit(1)
    words = context.user.split()
    bread = "rye" if "rye" in words else "spelt"
    return {"bread-kind": bread} if "counter" in words else {}
"""
#: `OUTPUT ADDRESS ACTORS`: a training that learns early, in the folder that it is started in.
TRAIN = """
import sys
from pathlib import Path

from pytest_dstfuzz.scale.driver import rounds_on_ray
from pytest_dstfuzz.scale.ray import RayOptions
from pytest_dstfuzz.agents.training.train_agent import AgentRun, train_agent
from pytest_dstfuzz.agents.training.trainer import TrainingConfig

def run(output):
    config = TrainingConfig(calls=60, attempts=3, batch=16, learning_starts=10)
    return AgentRun("breadbot:track", "talks", Path(output), training=config)

def tell(line):
    print(line, file=sys.__stdout__, flush=True)

if __name__ == "__main__":
    with rounds_on_ray(RayOptions(sys.argv[2], int(sys.argv[3]), 0)) as rounds:
        train_agent(run(sys.argv[1]), tell, rollouts=rounds)
"""
LINE = '{"dialogue_id": "NAME", "turns": [{"user": "SAID", "state": {"bread-kind": "rye"}}]}\n'
SAID = "kindly keep a fresh loaf of rye behind the counter"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bot, and dialogues of three parts."""
    folder = tmp_path_factory.mktemp("trainings")
    (folder / "breadbot.py").write_text(BOT, encoding="utf-8")
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "talks").mkdir()
    for split in ("val", "test"):
        lines = [
            LINE.replace("NAME", f"{split}{n}").replace("SAID", f"{SAID} and {split} {n}")
            for n in range(7)
        ]
        (folder / "talks" / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def ray(folder: Path) -> Iterator[StartedRay]:
    with started_ray(folder) as found:
        yield found


@pytest.fixture(scope="module")
def here(folder: Path) -> list[bytes]:
    """What the same schedule makes in one process, without Ray."""
    code = (
        "from train import run, train_agent\n"
        "from pytest_dstfuzz.agents.training.trainer import PlayedHere\n"
        "train_agent(run('here'), print, rollouts=PlayedHere())\n"
    )
    done = started(folder, None, "-c", code)
    assert done.returncode == 0, done.stderr
    rounds = [line for line in done.stdout.splitlines() if line.startswith("round ")]
    # Something was learned.
    assert any("loss 0.0000 (critic) 0.0000 (actor)" not in line for line in rounds)
    return made(folder / "here")


def made(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


def started(folder: Path, ray: StartedRay | None, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=None if ray is None else ray.surroundings,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("actors", "doom"), [(2, ""), (1, "once")])
def test_what_is_learned_is_what_one_process_learns(
    folder: Path, ray: StartedRay, here: list[bytes], actors: int, doom: str
) -> None:
    if doom:
        (folder / "doom").write_text(doom, encoding="utf-8")
    done = started(folder, ray, "train.py", f"by-{actors}", ray.address, str(actors))
    assert done.returncode == 0, done.stderr
    # The actor has died, and what it played was played again.
    assert not (folder / "doom").exists()
    assert made(folder / f"by-{actors}") == here


@pytest.mark.nightly
def test_the_command_says_how_far_it_is_and_keeps_schedules_apart(
    folder: Path, ray: StartedRay
) -> None:
    own = ("-m", "pytest_dstfuzz.cli", "train-agent", "--model=breadbot:track", "--data=talks")
    line = (*own, "--output=told", "--calls=40", "--attempts=2")
    done = started(folder, ray, *line, f"--ray={ray.address}", "--ray-actors=1", "--ray-gpus=0")
    assert done.returncode == 0, done.stderr
    assert "round 1: " in done.stdout
    assert "(ended by calls); use it with --dst-search=agent:told" in done.stdout
    done = started(folder, None, *line, "--resume")
    assert done.returncode == 2
    assert done.stderr == (
        "dstfuzz: error: cannot resume from told: the earlier run learned after each round "
        "(--ray), but this run would learn between attempts (without --ray)\n"
    )


@pytest.mark.nightly
def test_dialogues_that_end_every_actor_are_told_in_a_line(folder: Path, ray: StartedRay) -> None:
    (folder / "doom").write_text("always", encoding="utf-8")
    try:
        done = started(folder, ray, "train.py", "doomed", ray.address, "1")
    finally:
        (folder / "doom").unlink()
    assert done.returncode == 1
    told = "UserError: 3 actors ended in succession while they played the same dialogues, "
    assert told in done.stderr
    # What there was before is kept.
    assert (folder / "doomed" / "training.safetensors").exists()
