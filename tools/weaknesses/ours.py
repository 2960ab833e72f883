"""Groups the violations of a sheet as the package does, in the columns that readers write.

``python -m tools.weaknesses.ours KEY`` reads ``violations.json`` in the folder of the key, and
writes ``ours.csv`` there. A weakness belongs to one tracker, so a group has violations of one
tracker only.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.weaknesses.groups import read


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("key", type=Path, help="folder of the key")
    folder = parser.parse_args(arguments).key
    lines = ["row,group,name"]
    for kept in json.loads((folder / "violations.json").read_text(encoding="utf-8")):
        turn = TurnResult.from_json(kept["turn"])
        (variant,) = turn.variants
        name = read(turn, variant).key.id
        lines.append(f"{kept['row']},{kept['tracker']} {name},{name}")
    write_text(folder / "ours.csv", "\n".join([*lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
