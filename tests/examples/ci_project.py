"""A project that the recipes of examples/ci are run in."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

CI = Path(__file__).parents[2] / "examples" / "ci"
GATE_BOT = (
    "import os\n"
    "def track(context):\n"
    "    letters = str(len(context.user)) if os.environ.get('BROKEN') else 'north'\n"
    "    return {'hotel-area': letters, 'hotel-book stay': str(len(context.exchanges))}\n"
)


def project(folder: Path) -> dict[str, str]:
    """Make a project as the README has it; return the environment of its jobs."""
    (folder / "gate_bot.py").write_text(GATE_BOT, encoding="utf-8")
    suite = folder / "tests" / "robustness"
    suite.mkdir(parents=True)
    body = re.search(r"```python\n(.*?)```", (CI / "README.md").read_text("utf-8"), re.DOTALL)
    assert body is not None
    (suite / "test_robustness.py").write_text(body.group(1), encoding="utf-8")
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])),
        "DST_MODEL": "gate_bot:track",
        "PYTEST_ADDOPTS": "-p no:cacheprovider --rootdir=.",
    }
