"""Which settings of a training make the model what it is; no torch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar


class RunSettings:
    """Base of the frozen dataclasses that say how to train a tracker."""

    #: Settings that a resumed run may change: when it ends, and where it computes.
    CHANGEABLE: ClassVar[tuple[str, ...]] = ("epochs", "max_minutes", "device")
    #: Settings that say nothing about the model: where things lie, and what is printed. The
    #: data is compared by what is made of it.
    INCIDENTAL: ClassVar[tuple[str, ...]] = ("data", "output", "layout", "resume", "report_every")

    def fixed(self) -> dict[str, Any]:
        """Return the settings that make the model what it is; they hold for a whole run."""
        left_out = {*self.CHANGEABLE, *self.INCIDENTAL}
        values = asdict(self)  # type: ignore[call-overload]  # every subclass is a dataclass
        return {name: value for name, value in values.items() if name not in left_out}

    def changeable(self) -> dict[str, Any]:
        """Return the settings that may differ between the parts of a run."""
        return {name: getattr(self, name) for name in self.CHANGEABLE}
