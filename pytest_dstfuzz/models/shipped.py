"""The registered trackers and assistant of this package."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from pytest_dstfuzz.errors import needs_extra
from pytest_dstfuzz.trackers.registry import TrackerMaker
from pytest_dstfuzz.trackers.tracker import Tracker


@dataclass(frozen=True, slots=True)
class ShippedTracker(TrackerMaker):
    """The factory of a shipped network. A call imports torch.

    ``name`` is also the name of its folder and of its extra, which installs the packages in
    ``needs``. If ``known``, the module ``files`` in its folder has a ``fingerprint`` that imports
    none of them.
    """

    name: str
    needs: tuple[str, ...]
    known: bool = False

    def __call__(
        self, checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
    ) -> Tracker:
        """Return the tracker, with the shipped weights if there is no checkpoint."""
        with needs_extra(f"the tracker {self.name!r}", self.name, *self.needs):
            module = importlib.import_module(f"{__package__}.{self.name}.tracker")
        load = getattr(module, f"load_{self.name}")
        return cast("Tracker", load(checkpoint, device, batch_size))

    def refusal(self, outcome: str) -> str:
        """Refuse outcomes other than the belief state."""
        lacks = {
            "reply": "does not reply: leave --dst-outcome=reply out",
            "tool-calls": "does not call tools: leave --dst-outcome=tool-calls out, or name the "
            "model 'assistant'",
        }.get(outcome)
        return f"{self.name} keeps a belief state and {lacks}" if lacks else ""

    def fingerprint(self, checkpoint: str | None, device: str) -> str:
        """Return the fingerprint from the module ``files``, or ``""`` if there is none."""
        if not self.known:
            return ""
        files = importlib.import_module(f"{__package__}.{self.name}.files")
        with needs_extra(f"the tracker {self.name!r}", self.name, *self.needs):
            return str(files.fingerprint(checkpoint, device))


@dataclass(frozen=True, slots=True)
class ShippedAssistant(TrackerMaker):
    """The factory of the shipped assistant, which calls tools. It needs only numpy."""

    name: str = "assistant"

    def __call__(self) -> object:
        """Return the assistant with the shipped weights."""
        return importlib.import_module(f"{__package__}.assistant.assistant").Assistant()

    def refusal(self, outcome: str) -> str:
        """Refuse outcomes other than tool calls."""
        if outcome == "tool-calls":
            return ""
        return (
            f"{self.name} calls tools, and its texts are not worth testing: add "
            "--dst-outcome=tool-calls"
        )


TRADE: Final = ShippedTracker("trade", ("torch", "safetensors"), known=True)
SIMPLETOD: Final = ShippedTracker(
    "simpletod", ("torch", "transformers", "tokenizers", "safetensors")
)
ASSISTANT: Final = ShippedAssistant()
