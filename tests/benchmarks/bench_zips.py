"""A zip file with many files is read nearly as fast as a folder with the same files.

Run with ``make bench``. Each round reads both, so the ratio does not depend on the machine.
"""

from __future__ import annotations

import json
import statistics
import time
import zipfile
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues

FILES = 2_000
ROUNDS = 5
#: Most times that the zip takes as long as the folder. Reading the zip anew for each file takes
#: over 50 times as long.
MOST_RATIO = 3.0


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_a_zip_takes_nearly_as_long_as_a_folder(tmp_path: Path, suffix: str) -> None:
    folder, packed = tmp_path / "talks", tmp_path / "talks.zip"
    folder.mkdir()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as written:
        for number in range(FILES):
            user = {"role": "user", "content": f"I need {number} rooms in the north."}
            talk = {"id": str(number), "messages": [user]}
            path = folder / f"{number}{suffix}"
            path.write_text(json.dumps(talk), encoding="utf-8")
            written.write(path, path.name)
    ratios = []
    for _ in range(ROUNDS):
        plain, zipped = (_seconds_to_read(path) for path in (folder, packed))
        ratios.append(zipped / plain)
    middle = statistics.median(ratios)
    print(f"\n{FILES:,} files of {suffix}: {middle:.2f} times the time of the folder", end=" ")
    print(f"({min(ratios):.2f} to {max(ratios):.2f}, {ROUNDS} rounds)")
    assert middle <= MOST_RATIO


def _seconds_to_read(path: Path) -> float:
    begun = time.perf_counter()
    assert len(load_dialogues(path, outcome="reply").dialogues) == FILES
    return time.perf_counter() - begun
