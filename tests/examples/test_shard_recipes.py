"""The jobs in parts, run as a matrix, `parallel` and an array run them: by variables alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ci_project import CI, GATE_BOT, project

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(shutil.which("bash") is None, reason="steps of jobs are shell scripts"),
]
DIALOGUES = 30
SAID = ("a room in the north please, for the two of us", "and what does that come to for a week")
BASH = shutil.which("bash") or "bash"


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., str]:
    """Run one job in a project; return what it says."""
    environment = project(tmp_path)
    turns = [
        {"system": "what else?" if number else "", "user": text} for number, text in enumerate(SAID)
    ]
    found = ({"dialogue_id": f"d{number}", "turns": turns} for number in range(DIALOGUES))
    lines = "".join(f"{json.dumps(one)}\n" for one in found)
    (tmp_path / "talks.jsonl").write_text(lines, encoding="utf-8")

    def run(command: str, *, fails: bool = False, **variables: str) -> str:
        done = subprocess.run(
            [BASH, "-euc", command],
            cwd=tmp_path,
            env={**environment, "DST_DATA": "talks.jsonl", **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CI / name).read_text("utf-8"))
    return found


def line_with(steps: Any, word: str) -> str:
    """Return the one command of a job that has a word."""
    texts = [one["run"] if isinstance(one, dict) else one for one in steps if "uses" not in one]
    (found,) = (text for text in texts if word in text)
    return str(found)


def evaluated(text: object, values: dict[str, object]) -> str:
    """Put values in the place of the expressions of GitHub."""
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: str(values[found[1]]), str(text))


@pytest.mark.nightly
def test_a_matrix_of_github(job: Callable[..., str], tmp_path: Path) -> None:
    found = jobs("github-shards.yml")
    shard, gate = found["jobs"]["shard"], found["jobs"]["gate"]
    parts = shard["strategy"]["matrix"]["part"]
    campaign = line_with(shard["steps"], "dstfuzz campaign")
    for part in parts:
        values = {"matrix.part": part, "strategy.job-total": len(parts)}
        variables = {name: evaluated(value, values) for name, value in shard["env"].items()}
        job(campaign, **variables)
        # What a job leaves goes through an artifact, each into a folder of its name.
        (upload,) = (one["with"] for one in shard["steps"] if "upload" in one.get("uses", ""))
        assert evaluated(upload["path"], values) == f"shards/{evaluated(upload['name'], values)}/"
    (download,) = (one["with"] for one in gate["steps"] if "download" in one.get("uses", ""))
    assert (download["pattern"], download["path"]) == ("part-*", "shards")
    assert gate["needs"] == "shard"
    job(line_with(gate["steps"], "dstfuzz merge"))
    judged(job, tmp_path, line_with(gate["steps"], "--dst-results"), found["env"]["DST_BASELINE"])


@pytest.mark.nightly
def test_parallel_jobs_of_gitlab(job: Callable[..., str], tmp_path: Path) -> None:
    found = jobs("gitlab-shards.yml")
    shard, gate = found["robustness-shard"], found["robustness-gate"]
    total = shard["parallel"]
    campaign = line_with(shard["script"], "dstfuzz campaign")
    for number in range(1, total + 1):
        job(campaign, CI_NODE_INDEX=str(number), CI_NODE_TOTAL=str(total))
    assert shard["artifacts"]["paths"] == ["shards/"]
    assert gate["needs"] == ["robustness-shard"]
    job(line_with(gate["script"], "dstfuzz merge"))
    baseline = found["variables"]["DST_BASELINE"]
    judged(job, tmp_path, line_with(gate["script"], "--dst-results"), baseline)


@pytest.mark.nightly
def test_an_array_of_slurm(job: Callable[..., str], tmp_path: Path) -> None:
    script, gate = CI / "slurm_shard.sh", f"bash {CI / 'slurm_gate.sh'}"
    text = script.read_text("utf-8")
    array = re.search(r"^#SBATCH --array=1-(\d+)$", text, re.MULTILINE)
    default = re.search(r"DST_PARTS:=(\d+)", text)
    assert array is not None
    assert default is not None
    assert array[1] == default[1]
    for number in range(2, int(array[1]) + 1):
        job(f"bash {script}", SLURM_ARRAY_TASK_ID=str(number))
    assert "parts of the run are missing: 1/4" in job(gate, fails=True)
    # The first is ended by its time, and goes on.
    job(f"bash {script} --max-calls=30", SLURM_ARRAY_TASK_ID="1", fails=True)
    assert "continue with dstfuzz campaign" in job(gate, fails=True)
    job(f"bash {script}", SLURM_ARRAY_TASK_ID="1")
    assert "the baseline dst-baseline.json now has" in job(gate)
    judged(job, tmp_path, gate, "dst-baseline.json", there=True)


def judged(
    job: Callable[..., str], folder: Path, gate: str, baseline: str, *, there: bool = False
) -> None:
    """Check that a gate judges what the parts found, and asks nobody."""
    (folder / "gate_bot.py").write_text("raise RuntimeError('asked')\n", encoding="utf-8")
    if not there:
        update = f"--dst-baseline={baseline} --dst-update-baseline"
        job(f"pytest tests/robustness --dst-results=robustness-results {update}")
    said = job(gate, DST_BASELINE=baseline)
    assert "verdict " in said
    report = json.loads((folder / "robustness" / "report.json").read_text("utf-8"))
    assert report["gate"]["verdict"] == "pass"
    assert len(report["turns"]) == DIALOGUES * len(SAID)
    assert (folder / "robustness" / "junit.xml").is_file()
    # Another build, whose results are other ones.
    shutil.rmtree(folder / "robustness-results")
    (folder / "gate_bot.py").write_text(GATE_BOT, encoding="utf-8")
    worse = "dstfuzz campaign --model=gate_bot:track --data=talks.jsonl --search=random --turns=all"
    job(f"{worse} --results robustness-results", BROKEN="1")
    command = gate.replace(f"bash {CI / 'slurm_gate.sh'}", _GATE)
    assert "(drift)" in job(command, fails=True, DST_BASELINE=baseline)


_GATE = "pytest tests/robustness --dst-results=robustness-results --dst-baseline=$DST_BASELINE"
