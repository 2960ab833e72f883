"""Internal: trained trackers and the shipped assistant, with their training and weights."""

from pathlib import Path

_FILES = (
    "assistant/assistant.npz",
    "simpletod/config.json",
    "simpletod/generation_config.json",
    "simpletod/model.safetensors",
    "simpletod/simpletod.json",
    "simpletod/tokenizer.json",
    "simpletod/tokenizer_config.json",
    "trade/config.json",
    "trade/model.safetensors",
    "trade/vocabulary.json",
    "trade-hardened/config.json",
    "trade-hardened/model.safetensors",
    "trade-hardened/vocabulary.json",
)
#: Data files that `dstfuzz doctor` checks: name -> path.
DATA_FILES = {
    f"models/resources/{name}": Path(__file__).with_name("resources") / name for name in _FILES
}
