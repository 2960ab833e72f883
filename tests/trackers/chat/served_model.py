"""The server that ships with transformers, in a process of its own, where all that it needs is."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

_NEEDS = ("transformers", "fastapi", "uvicorn", "openai", "accelerate")
_MISSING = [name for name in _NEEDS if importlib.util.find_spec(name) is None]
#: Of tests that need the server: they skip where it cannot be started.
NEEDS_SERVER = pytest.mark.skipif(
    bool(_MISSING), reason=f"transformers serve needs {', '.join(_MISSING)}"
)
#: Seconds that the server may take to load torch and the model on a busy machine.
_PATIENCE = 120


@contextmanager
def serving_model(folder: Path) -> Iterator[str]:
    """Serve the model in a folder until the block ends; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()"]
    command += ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    outside = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=outside, stdout=output, stderr=output)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield f"openai+http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")
