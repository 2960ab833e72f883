"""Registers the trackers and the assistant that this package ships."""

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
    """Makes the tracker of a shipped network. Only a call imports torch.

    ``network`` is the name of the network's folder, and of the extra that installs the packages in
    ``needs``. If ``known`` is true, the module ``files`` in this folder has a function
    ``fingerprint`` that needs no such package. If the network ships with several weights,
    ``weights`` is the folder of those of this tracker.
    """

    network: str
    needs: tuple[str, ...]
    known: bool = False
    weights: str = ""

    @property
    def name(self) -> str:
        """The name of the tracker."""
        return self.weights or self.network

    def __call__(
        self, checkpoint: str | Path | None = None, device: str = "cpu", batch_size: int = 64
    ) -> Tracker:
        """Return the tracker. Without a checkpoint, the tracker has the shipped weights."""
        with needs_extra(f"the tracker {self.name!r}", self.network, *self.needs):
            module = importlib.import_module(f"{__package__}.{self.network}.tracker")
        load = getattr(module, f"load_{self.network}")
        return cast("Tracker", load(self._checkpoint(checkpoint), device, batch_size))

    def refusal(self, outcome: str) -> str:
        """Return why the tracker cannot give an outcome, or ``""`` for the belief state."""
        lacks = {
            "reply": "does not reply: leave --dst-outcome=reply out",
            "tool-calls": "does not call tools: leave --dst-outcome=tool-calls out, or name "
            "the model 'assistant'",
        }.get(outcome)
        return f"{self.name} keeps a belief state and {lacks}" if lacks else ""

    def fingerprint(self, checkpoint: str | None, device: str) -> str:
        """Compute the fingerprint with the module ``files``, or return ``""`` if it is missing."""
        if not self.known:
            return ""
        files = importlib.import_module(f"{__package__}.{self.network}.files")
        with needs_extra(f"the tracker {self.name!r}", self.network, *self.needs):
            return str(files.fingerprint(self._checkpoint(checkpoint), device))

    def _checkpoint(self, given: str | Path | None) -> str | Path | None:
        """Return the given checkpoint, or by default the shipped weights of this tracker."""
        if given is None and self.weights:
            return Path(__file__).with_name("resources") / self.weights
        return given


@dataclass(frozen=True, slots=True)
class ShippedAssistant(TrackerMaker):
    """Makes the shipped assistant, which calls tools and needs only numpy."""

    name: str = "assistant"

    def __call__(self) -> object:
        """Return the assistant with the shipped weights."""
        return importlib.import_module(f"{__package__}.assistant.assistant").Assistant()

    def refusal(self, outcome: str) -> str:
        """Return why the assistant cannot give an outcome, or ``""`` for tool calls."""
        if outcome == "tool-calls":
            return ""
        return (
            f"{self.name} calls tools, and its texts are not worth testing: add "
            "--dst-outcome=tool-calls"
        )


TRADE: Final = ShippedTracker("trade", ("torch", "safetensors"), known=True)
TRADE_HARDENED: Final = ShippedTracker(
    "trade", ("torch", "safetensors"), known=True, weights="trade-hardened"
)
SIMPLETOD: Final = ShippedTracker(
    "simpletod", ("torch", "transformers", "tokenizers", "safetensors")
)
ASSISTANT: Final = ShippedAssistant()
