"""Internal: Multi-PDQN, an agent that learns which perturbations change a tracker's answer.

Every run of pytest loads this module. PYTEST_DONT_REWRITE keeps pytest from rewriting its asserts.
"""

from pathlib import Path

_FILES = (
    "agents/simpletod.safetensors",
    "agents/trade.safetensors",
    "scorers/trade.safetensors",
)
#: Data files that `dstfuzz doctor` checks: name -> path.
DATA_FILES = {
    f"agents/resources/{name}": Path(__file__).with_name("resources") / name for name in _FILES
}
