"""What the installed plugin costs a pytest run that does not use it: at most 10 ms."""

from __future__ import annotations

import statistics
import subprocess
import sys

LIMIT_MS = 10.0
RUNS = 9

#: All that the plugin does in such a run, timed: it is loaded, it registers its options, and
#: it looks whether one of them was given. Processor time: a busy machine stretches the rest.
MEASURED = """
import time, pytest
clock = time.process_time
start = clock()
import pytest_dstfuzz.plugin as plugin
spent = clock() - start

class Timed:
    '''The plugin, with a clock around each of its hooks.'''

    def pytest_addoption(self, parser):
        global spent
        start = clock()
        plugin.pytest_addoption(parser)
        spent += clock() - start

    def pytest_configure(self, config):
        global spent
        start = clock()
        plugin.pytest_configure(config)
        plugin.given_options(config)
        spent += clock() - start

arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:dstfuzz", "--collect-only", "/dev/null"]
pytest.main(arguments, plugins=[Timed()])
print(1000 * spent)
"""


def test_start_up_cost() -> None:
    command = [sys.executable, "-c", MEASURED]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for _ in range(RUNS)
    ]
    cost = statistics.median(float(run.splitlines()[-1]) for run in runs)
    print(f"\nstart-up cost of the unused plugin: {cost:.1f} ms (limit {LIMIT_MS:.0f} ms)")
    assert cost <= LIMIT_MS
