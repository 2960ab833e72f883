"""How the default comparison does on replies of our own: see ``pairs.txt``.

The pairs were written before the comparisons were tuned. All of them were looked at when the
present distance was chosen, so the floors guard against changes and measure nothing new.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

ASKED = Context((Exchange("", "what about it"),))


class Row(NamedTuple):
    domain: str
    kind: str
    before: str
    found: str


def rows() -> list[Row]:
    lines = (Path(__file__).parent / "pairs.txt").read_text(encoding="utf-8").splitlines()
    told = [line.replace("\\n", "\n").split("|") for line in lines if line[0] != "#"]
    return [Row(*parts) for parts in told]


def right(half: list[Row], names: str | None = None) -> Counter[str]:
    comparison = comparison_by_name(names, ReplySettings())
    return Counter(
        row.kind
        for row in half
        if comparison.compare("reply", row.before, row.found, ASKED).same == (row.kind[0] == "=")
    )


@pytest.mark.parametrize(("half", "same", "other"), [(0, 50, 50), (1, 50, 46)])
def test_wordings_stay_the_same_and_differences_are_found(half: int, same: int, other: int) -> None:
    chosen = rows()[half::2]
    found = right(chosen)
    assert Counter(row.kind[0] for row in chosen) == {"=": 50, "!": 50}
    assert sum(count for kind, count in found.items() if kind[0] == "=") >= same
    assert sum(count for kind, count in found.items() if kind[0] == "!") >= other


def test_facts_are_found_whatever_the_embedding_says() -> None:
    sure = [row for row in rows() if row.kind in ("!number", "!money", "!date", "!time", "!unit")]
    assert sum(right(sure, "numbers").values()) == len(sure)
    denied = [row for row in rows() if row.kind in ("!polarity", "!refusal")]
    assert sum(right(denied, "polarity").values()) >= len(denied) - 1
