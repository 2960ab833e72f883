"""The schema of the report is checked by the same code as in the report's own tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "report"))
