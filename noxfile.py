"""The tests on each Python and pytest that are supported: ``make matrix``, or ``nox --list``.

One of them: ``nox -s "tests(python='3.12', pytest='8')"``; what comes after ``--`` goes to pytest.
Versions are those of ``.ci/constraints.txt``, but for pytest. torch, the largest download by far,
is installed on the oldest Python alone, as for ``make test``, or everywhere with
``DSTFUZZ_MATRIX_TORCH=yes``; without it, the tests that need it are skipped.
"""

import os
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PYTHONS = ("3.11", "3.12", "3.13")
#: Major version of pytest -> what is installed.
PYTESTS = {"8": "pytest>=8,<9", "9": "pytest>=9,<10"}
WITHOUT_TORCH = "test,lexicon,report,http,serve,chat,hypothesis"

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True


@nox.session
@nox.parametrize("python,pytest", [(python, major) for python in PYTHONS for major in PYTESTS])
def tests(session: nox.Session, pytest: str) -> None:
    """Run the tests, or those that are named after ``--``, without coverage."""
    torch = session.python == PYTHONS[0] or os.environ.get("DSTFUZZ_MATRIX_TORCH") == "yes"
    pinned = (ROOT / ".ci" / "constraints.txt").read_text("utf-8").splitlines()
    constraints = Path(session.create_tmp()) / "constraints.txt"
    lines = [line for line in pinned if not line.startswith("pytest==")]
    constraints.write_text("\n".join([*lines, PYTESTS[pytest], ""]), "utf-8")
    extras = "all,dev" if torch else WITHOUT_TORCH
    session.install("-c", str(constraints), "-e", f".[{extras}]")
    session.run("pytest", "-q", *session.posargs, env={"OMP_NUM_THREADS": "1"})
