"""What it costs to test TRADE behind ``dstfuzz serve`` rather than in process.

Run with ``make bench``. The same campaign in process, over the network, and over the network
with a tracker whose answers are ready (that is the measured network time), in turns; every
process computes in one thread.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("uvicorn")

import torch
from remembered import Remembered

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.models.tokenise import tokenise
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.trackers.web.contract import answer_json, request_json

HERE = Path(__file__).parent
ROUNDS = 3
SETTINGS = Settings.of(model="trade", validity="strict", turns=120)
DATA = load_dialogues("sample", "test")


class Recorder:
    """A tracker, and what it was asked and answered."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self.pairs: list[tuple[Context, Prediction]] = []

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        answers = list(self._tracker.predict(contexts))
        self.pairs += zip(contexts, answers, strict=True)
        return answers


def campaign(tracker: Tracker) -> tuple[float, list[dict[str, Any]]]:
    """Run one campaign; return its seconds and its results."""
    tokenise.cache_clear()  # In a run of pytest no utterance was seen before.
    plan = sample_turns(DATA, SETTINGS.data.turns, SETTINGS.variant.seed)
    start = time.perf_counter()
    predictor = predictor_for(SETTINGS, DATA, tracker)
    results = list(CampaignEngine(SETTINGS, DATA, predictor, load_lexicon(), plan=plan).run())
    return time.perf_counter() - start, [result.to_json() for result in results]


@contextmanager
def served(model: str) -> Iterator[Tracker]:
    """Serve a tracker in a process of its own, and return the one that asks it."""
    command = [sys.executable, "-m", "pytest_dstfuzz.cli", "serve", "--port=0", f"--model={model}"]
    outside = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=HERE, env=outside
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split(" ")[3]
            yield tracker_for(Settings.of(model=address), DATA)
        finally:
            process.terminate()


def test_a_tracker_behind_an_address_is_nearly_as_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    trade = tracker_for(SETTINGS, DATA)
    recorder = Recorder(trade)
    _, expected = campaign(recorder)
    answers = tmp_path / "answers.json"
    pairs = [(request_json(context), answer_json(found)) for context, found in recorder.pairs]
    answers.write_text(json.dumps(pairs), encoding="utf-8")
    monkeypatch.setenv("REMEMBERED", str(answers))
    ready = Remembered()
    rows = []
    with served("trade") as web, served("remembered:Remembered") as line:
        for tracker in (web, line):
            campaign(tracker)
        for _ in range(ROUNDS):
            seconds = []
            for tracker in (trade, ready, line, web):
                took, found = campaign(tracker)
                assert found == expected
                seconds.append(took)
            rows.append(seconds)
    alone, own, linked, whole = (statistics.median(part) for part in zip(*rows, strict=True))
    ratio = statistics.median((row[3] - (row[2] - row[1])) / row[0] for row in rows)
    print(
        f"\n{len(pairs)} contexts, 16 in flight: {alone:.2f} s in process, {whole:.2f} s over the "
        f"network; network time {linked - own:.2f} s; (over the network - network time) / in "
        f"process: {ratio:.2f}"
    )
    assert ratio <= 1.3
