"""How long whole runs of pytest take against services that make them wait.

    python tests/benchmarks/bench_deadlines.py [SECONDS]

Each line is one process of pytest with ``--dst-max-seconds=SECONDS`` (default: 5), from before
its start until it is gone: the start of Python, of pytest and of the plugin is part of it. The
first lines are runs that end by themselves: what they take is what everything but waiting takes.
"cpu" is what the process computed; on a busy machine that takes longer than it should.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "trackers" / "web"))

from loopback import Asked, Says, Service
from stuck import STUCK, run_pytest, running

OPTIONS = ("--dst-turns=60", "--no-dst-shrink", "--dst-fail-on=gate")


def healthy(_: Service, asked: Asked) -> Says:
    """Answer at once."""
    if asked.method == "GET":
        return Says({"name": "bot"})
    return Says({"state": {"hotel-name": asked.body["dialogue"][-1]["user"]}})


def measure(answer: Callable[[Service, Asked], Says], seconds: float) -> tuple[float, int, str]:
    """Run pytest against a service once."""
    with running(answer) as service, tempfile.TemporaryDirectory() as folder:
        options = (f"--dst-model={service.url}", f"--dst-max-seconds={seconds:g}", *OPTIONS)
        return run_pytest(Path(folder), *options)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    print(f"--dst-max-seconds={seconds:g}: wall time of the whole process")
    cases = {"(answers at once)": healthy, "(answers at once) again": healthy, **STUCK}
    for name, answer in cases.items():
        before = _cpu()
        wall, status, said = measure(answer, seconds)
        cpu = _cpu() - before
        why = next(
            (line for line in said.splitlines()[::-1] if "ended" in line or "dead" in line), ""
        )
        within = "" if wall <= seconds + 2 else "  LATE"
        print(
            f"{name:30} {wall:6.1f} s  cpu {cpu:4.1f} s  status {status}{within}  {why[:150]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
