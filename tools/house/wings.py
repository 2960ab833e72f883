"""The wings of the package, and what each needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Wing -> the other wings that it needs.
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "models": (),
    "agents": ("models", "scale"),
    "games": ("models",),
    "scale": ("agents",),  # A door that is being closed.
    "papers": ("models", "agents", "games"),
    "audit": (),
}
