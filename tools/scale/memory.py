"""Peak memory and time of a command on data sets: ``python -m tools.scale.memory DATA ...``.

The command stands after ``--``, with ``{}`` in place of the data. If there is none, it is
`tools.scale.reading`. Each run is a process of its own. Its peak is the largest resident set of the
process or of a process that it waited for, as the system counts it. This module imports nothing of
the package: a process begins with the memory of the one that started it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

_READING: Final = (sys.executable, "-m", "tools.scale.reading", "{}")
#: Bytes of the unit in which the system counts.
_UNIT: Final = 1 if sys.platform == "darwin" else 1024


class Cost(NamedTuple):
    """The time and the memory that a process needed."""

    seconds: float
    #: Seconds of the processor, which other work of the machine does not add to.
    processor: float
    #: Greatest resident set, in bytes.
    peak: int


def cost_of(command: Sequence[str]) -> Cost:
    """Run a command to its end. If it fails, end this process with its exit status."""
    started = time.perf_counter()
    process = subprocess.Popen(command)  # noqa: S603 - the command of the user
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    processor = used.ru_utime + used.ru_stime
    return Cost(time.perf_counter() - started, processor, used.ru_maxrss * _UNIT)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table with data, seconds, processor seconds and peak memory."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    place = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "data", nargs="+", help="data sets to put in place of {}, each with a run of its own"
    )
    data = parser.parse_args(given[:place]).data
    command = given[place + 1 :] or _READING
    costs = [cost_of([part.replace("{}", one) for part in command]) for one in data]
    print("| data | seconds | processor | peak MB |\n| --- | ---: | ---: | ---: |")
    for one, cost in zip(data, costs, strict=True):
        seconds = f"{cost.seconds:.1f} | {cost.processor:.1f}"
        print(f"| {one} | {seconds} | {cost.peak / 1e6:,.0f} |")
    peaks = [cost.peak for cost in costs]
    print(f"\ngreatest peak: {max(peaks) / min(peaks):.2f} times the smallest")


if __name__ == "__main__":
    main()
