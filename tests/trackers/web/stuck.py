"""Services that make whoever asks them wait, for tests and the benchmark of deadlines."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from loopback import Asked, Says, Service, serving

#: Requests for a dialogue that are answered before a service gets stuck midway.
ANSWERED = 40


def _from_the_start(how: str) -> Callable[[Service, Asked], Says]:
    """Be stuck at every request for a dialogue."""
    return lambda _, asked: Says({}) if asked.method == "GET" else _stuck(how)


def _midway(how: str) -> Callable[[Service, Asked], Says]:
    """Answer some requests before."""

    def answer(service: Service, asked: Asked) -> Says:
        if asked.method == "GET":
            return Says({"name": "bot"})
        if sum(one.method == "POST" for one in service.asked) <= ANSWERED:
            return Says({"state": {"hotel-name": asked.body["dialogue"][-1]["user"]}})
        if how == "death" and not service.dead.is_set():
            threading.Thread(target=service.die).start()
            service.dead.wait()
        return Says(how="hang-up") if how == "death" else _stuck(how)

    return answer


def _stuck(how: str) -> Says:
    if how == "429":
        return Says({"error": "slow down"}, 429, {"Retry-After": "99999"})
    if how == "patience":
        return Says({"error": "slow down"}, 429, {"Retry-After": "50"})
    return Says({"state": {"hotel-name": "x" * 5000}}, how=how)


#: What is wrong -> what the service says.
STUCK: dict[str, Callable[[Service, Asked], Says]] = {
    "hangs from the first request": lambda _, __: Says(how="silence"),
    "hangs for dialogues": _from_the_start("silence"),
    "hangs midway": _midway("silence"),
    "dies midway": _midway("death"),
    "body a byte at a time": _midway("drip"),
    "headers a byte at a time": _midway("slow head"),
    "100 Continue without end": _midway("continue"),
    "429, Retry-After: 99999": _from_the_start("429"),
    "429, Retry-After: 50": _from_the_start("patience"),
    "429, Retry-After: 50, midway": _midway("patience"),
}


@contextmanager
def running(answer: Callable[[Service, Asked], Says]) -> Iterator[Service]:
    """Run a service; what it says knows the service, so that it can die."""
    with serving(lambda _: Says()) as service:
        service.answer = lambda asked: answer(service, asked)
        yield service


def run_pytest(folder: Path, *options: str) -> tuple[float, int, str]:
    """Run pytest in a process of its own.

    Returns:
        Seconds from before its start until it was gone, exit status, and what it said.
    """
    # hypothesis' plugin loads all of hypothesis when a session ends.
    without = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    command = [sys.executable, "-m", "pytest", "-q", *without, *options]
    # Compiled modules are kept, as they are where nobody forbids it.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return time.monotonic() - started, done.returncode, done.stdout + done.stderr
