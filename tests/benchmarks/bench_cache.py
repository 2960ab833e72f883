"""What keeping predictions costs, what it saves, and ten kills of a long run.

Run with ``make bench``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

try:
    import resource
except ImportError:  # On Windows.
    resource = None  # type: ignore[assignment]  # tests that need it are skipped

from pytest_dstfuzz.campaign.cache import PredictionCache, Store, scope_of
from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.validation import PREFLIGHT_CONTEXTS

HERE = Path(__file__).parent
DATA = load_dialogues("sample", "test")
ROUNDS = 4
#: With compiled modules, as pip installs them; else each run compiles all of them anew.
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def pytest_command(*options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "--dst-model=keeping_bot:Bot", *options]


def environment(folder: Path, seconds: float) -> dict[str, str]:
    """Return the environment of a run: the tracker's, and where it is found."""
    given = {"BOT_SECONDS": str(seconds), "BOT_ASKED": str(folder / "asked")}
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    return {**COMPILED, "PYTHONPATH": path, **given}


def test_keeping_costs_little_and_saves_the_tracker_s_time(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings, lexicon = Settings.of(model="trade", validity="strict", turns=120), load_lexicon()
    trade = tracker_for(settings, DATA)
    plan = sample_turns(DATA, settings.data.turns, settings.variant.seed)

    def campaign(file: str = "") -> tuple[float, list[TurnResult]]:
        store = Store(tmp_path / file, 10**9) if file else None
        cache = None if store is None else PredictionCache(store, scope_of(("trade",), DATA))
        door = Predictor(
            trade, ontology=DATA.ontology, normalisation=DATA.normalisation, cache=cache
        )
        # Of this process: the machine may have other work.
        start = time.process_time()
        results = list(CampaignEngine(settings, DATA, door, lexicon, plan=plan).run())
        if store is not None:
            store.close()
        return time.process_time() - start, results

    _, expected = campaign()
    rows = []
    for number in range(ROUNDS):
        runs = [campaign(file) for file in ("", f"{number}", f"{number}")]
        assert all(results == expected for _, results in runs)
        rows.append([seconds for seconds, _ in runs])
    # The least of each: other work of the machine only ever adds to it.
    plain, first, second = (min(part) for part in zip(*rows, strict=True))
    kept = first / plain
    print(
        f"\n{len(expected)} turns of TRADE: {plain:.2f} s without a cache, {first:.2f} s with a "
        f"new one ({kept:.3f} times), {second:.2f} s with a full one ({first / second:.1f} times "
        "faster)"
    )
    assert kept <= 1.05


def children_seconds() -> float:
    """Return the seconds of the processor that child processes took, start-up included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(usage.ru_utime + usage.ru_stime)


@pytest.mark.skipif(
    resource is None, reason="the seconds of a process are counted by POSIX systems"
)
def test_a_second_run_is_twenty_times_faster(tmp_path: Path) -> None:
    """With a tracker that takes 25 ms for a context, as a small chat model does.

    Seconds are those of the processor and those that the tracker takes: what a run takes on a
    machine that has no other work.
    """
    asked: list[str] = []

    def spent() -> float:
        return children_seconds() + 0.025 * len(asked)

    seconds = []
    for _ in range(2):
        start = spent()
        command = pytest_command("--dst-fail-on=gate")
        subprocess.run(command, cwd=tmp_path, env=environment(tmp_path, 0.0), check=True)
        asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
        seconds.append(spent() - start)
    ratio = seconds[0] / seconds[1]
    print(
        f"\n{len(asked)} contexts: {seconds[0]:.1f} s, then {seconds[1]:.1f} s: {ratio:.1f} times"
    )
    assert ratio >= 20


@pytest.mark.skipif(
    resource is None, reason="the seconds of a process are counted by POSIX systems"
)
def test_a_second_run_of_trade_is_five_times_faster(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "pytest", "-q", "--dst-model=trade", "--dst-fail-on=gate"]
    seconds = []
    for _ in range(2):
        start = children_seconds()
        subprocess.run([*command, "--dst-search=random"], cwd=tmp_path, env=COMPILED, check=True)
        seconds.append(children_seconds() - start)
    ratio = seconds[0] / seconds[1]
    print(f"\nTRADE: {seconds[0]:.1f} s, then {seconds[1]:.1f} s: {ratio:.1f} times")
    assert ratio >= 5


def many_dialogues(path: Path) -> Path:
    """Write the shipped dialogues six times over, each time with another greeting."""
    lines = []
    for number in range(6):
        for dialogue in DATA.dialogues:
            turns = [{"system": turn.system, "user": turn.user} for turn in dialogue.turns]
            turns[0]["system"] = f"Welcome to line {number}."
            lines.append(json.dumps({"dialogue_id": f"{dialogue.id}-{number}", "turns": turns}))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_run_that_is_killed_ten_times_asks_for_nothing_twice(tmp_path: Path) -> None:
    data = many_dialogues(tmp_path / "many.jsonl")
    options = [f"--dst-data={data}", "--dst-turns=2000", "--dst-variants=3", "--dst-fail-on=gate"]
    path = tmp_path / "asked"

    def report(name: str) -> dict[str, object]:
        command = pytest_command(*options, f"--dst-report={name}.json")
        subprocess.run(command, cwd=tmp_path, env=environment(tmp_path, 0.0), check=True)
        found: dict[str, object] = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        return found

    def lines() -> list[str]:
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    whole = report("whole")
    expected = lines()
    path.unlink()
    chance = random.Random(0)
    moments = sorted(chance.sample(range(100, len(expected) * 9 // 10), 10))
    for moment in moments:
        command = pytest_command(*options, "--dst-cache=kept.sqlite")
        killed = subprocess.Popen(
            command, cwd=tmp_path, env=environment(tmp_path, 0.001), stdout=subprocess.DEVNULL
        )
        while len(lines()) < moment:
            assert killed.poll() is None
            time.sleep(0.05)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    options.append("--dst-cache=kept.sqlite")
    resumed = report("resumed")
    again = Counter(lines()) - Counter(expected)
    print(
        f"\nkilled after {moments} of {len(expected)} contexts; asked for twice: "
        f"{sum(again.values())}; asked for after the last kill: {resumed['run']['contexts']}"  # type: ignore[index]  # an object of the report
    )
    for found in (whole, resumed):
        del found["run"]
    assert json.dumps(resumed) == json.dumps(whole)
    in_flight = 64 * len(moments)
    assert sum(again.values()) <= in_flight + 4 * PREFLIGHT_CONTEXTS
