"""Words that a small masked language model proposes between two neighbouring words."""

from __future__ import annotations

from collections.abc import Sequence


def insertion_tables(
    utterances: Sequence[Sequence[str]], safe: Sequence[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Placeholder tables: the safe words anywhere."""
    del utterances
    return {"* *": list(safe)}, {"* *": list(safe)}
