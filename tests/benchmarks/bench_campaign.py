"""What a campaign costs beside the tracker's own time, and what the plugin costs unused.

Run with ``make bench``; every figure is a ratio, or a difference, of one run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("DSTFUZZ_SHARED", HERE.parents[1].parent / "shared"))
MULTIWOZ = SHARED / "data" / "multiwoz21"
#: With compiled modules, as pip installs them; else each run compiles all of them anew.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def test_a_campaign_costs_little_more_than_its_predictions() -> None:
    if not MULTIWOZ.is_dir():
        pytest.skip("needs the MultiWOZ files of ../shared: the whole test split")
    # All 7,372 turns, or fewer where the time is short: start-up and the reading of the data count.
    turns = os.environ.get("BENCH_TURNS", "all")
    ran = subprocess.run(
        [sys.executable, HERE / "campaign_run.py", str(MULTIWOZ), turns],
        capture_output=True,
        text=True,
        check=True,
        cwd=HERE,
        env=ENVIRONMENT,
    )
    figures = json.loads(ran.stdout.splitlines()[-1])
    assert figures["status"] == 0
    ratio = figures["campaign"] / figures["prediction"]
    share = figures["perturbation"] / figures["campaign"]
    print(f"\n{figures}")
    print(f"campaign / prediction: {ratio:.3f}; perturbation / campaign: {share:.4f}")
    assert ratio <= 1.25
    assert share <= 0.05


def test_an_unused_plugin_costs_next_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other(): pass\n", encoding="utf-8")

    def seconds(*options: str) -> float:
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            check=True,
        )
        return time.perf_counter() - start

    seconds(), seconds("-p", "no:dstfuzz")
    pairs = [(seconds(), seconds("-p", "no:dstfuzz")) for _ in range(21)]
    extra = statistics.median(with_it - without for with_it, without in pairs)
    print(f"\nunused plugin: {1000 * extra:.1f} ms of {1000 * pairs[0][1]:.0f} ms")
    assert extra <= 0.010
