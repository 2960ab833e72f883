"""A Ray of its own for the tests beside this file, begun once: it takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CODE = """
import os, sys
from pytest_dstfuzz.scale.ray import RayOptions, connect_to_ray
with connect_to_ray(RayOptions(actors=2, gpus=0)):
    import ray
    address = ray.get_runtime_context().gcs_address
    sys.stderr.write("begun: " + address + " " + os.environ["RAY_AUTH_TOKEN"] + "\\n")
    sys.stderr.flush()
    sys.stdin.read()
"""

_SAID = "begun: "
_TRIES = 3


@dataclass(frozen=True)
class StartedRay:
    """A Ray that is there: what starts it, where it is, and what opens it."""

    process: int
    address: str
    token: str

    @property
    def surroundings(self) -> dict[str, str]:
        """Return the environment of commands that join it."""
        own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
        # Else Ray takes an address of this machine for one that others see, where it does not
        # listen.
        return {**os.environ, **own, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@contextmanager
def started_ray(folder: Path) -> Iterator[StartedRay]:
    """Begin Ray in another process, and end it afterwards."""
    told = ""
    # Ray gives itself 30 seconds to begin, which a busy machine may need for something else.
    for _ in range(_TRIES):
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            cwd=folder,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            while line := process.stderr.readline():
                if line.startswith(_SAID):
                    yield StartedRay(process.pid, *line.removeprefix(_SAID).split())
                    return
                told += line
        finally:
            process.stdin.close()
            process.wait(60)
            process.stderr.close()
    raise AssertionError(f"Ray did not begin: {told}")
