"""What an installed plugin costs a pytest run that uses nothing of it, in processor time.

    python bench_idle.py [PYTHON] [--pairs N] [--without PYTHON]

PYTHON is that of an environment with the wheel installed (not an editable checkout, whose cost
differs); without it, the one that runs this file. Runs of one trivial test with the plugin and
without it (``-p no:dstfuzz``, or another environment without the distribution) take turns, with
and without PYTHONDONTWRITEBYTECODE, and are compared pair by pair.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

#: Share of pytest's own processor time that an unused plugin may take.
LIMIT = 0.015
_RESAMPLES = 2000


def seconds(command: list[str], folder: str, environment: dict[str, str]) -> float:
    """Run a command in a folder, and return the processor seconds that it took."""
    process = os.fork()
    if process == 0:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execve(command[0], command, environment)  # noqa: S606 - our own interpreter
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"exit status {status}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime


def interval(logs: list[float]) -> tuple[float, float]:
    """Return a 95 % bootstrap interval of the median of log ratios, as shares."""
    draws = random.Random(0)
    found = sorted(statistics.median(draws.choices(logs, k=len(logs))) for _ in range(_RESAMPLES))
    return tuple(math.expm1(found[int(_RESAMPLES * p)]) for p in (0.025, 0.975))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs="?", default=sys.executable)
    parser.add_argument("--without", help="python of an environment without the distribution")
    parser.add_argument("--pairs", type=int, default=60)
    given = parser.parse_args()
    with_it = [given.python, "-m", "pytest", "-q"]
    without = [given.without, *with_it[1:]] if given.without else [*with_it, "-p", "no:dstfuzz"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        Path(folder, "test_one.py").write_text("def test_one():\n    assert 1\n", encoding="utf-8")
        for keeps_nothing in (False, True):
            environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
            environment |= {"PYTHONDONTWRITEBYTECODE": "1"} if keeps_nothing else {}
            for command in (with_it, without):  # what may be cached is cached
                seconds(command, folder, environment)
            pairs = []
            for number in range(given.pairs):
                order = [with_it, without] if number % 2 else [without, with_it]
                took = [seconds(command, folder, environment) for command in order]
                pairs.append(took if number % 2 else took[::-1])
            logs = [math.log(used / bare) for used, bare in pairs]
            low, high = interval(logs)
            print(
                f"PYTHONDONTWRITEBYTECODE={int(keeps_nothing)}: "
                f"{statistics.median(bare for _, bare in pairs) * 1000:.1f} ms without, "
                f"{math.expm1(statistics.median(logs)):+.2%} [{low:+.2%}, {high:+.2%}] with the "
                f"plugin, {given.pairs} pairs, limit {LIMIT:.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
