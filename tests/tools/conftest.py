"""The tools are in the repository and not installed: they are imported from its top folder."""

from __future__ import annotations

import sys
from pathlib import Path

# At the end, so that the package that is tested stays the one that is installed.
sys.path.append(str(Path(__file__).parents[2]))
