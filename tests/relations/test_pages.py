"""Each relation on rounds and on larger units has its page, with all that it says there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dstfuzz.relations.registry import MODULES, RELATIONS, relation_by_name

PAGES = Path(__file__).parents[2] / "docs" / "relations"
#: The pages of these two are the concepts; they leave the edits to the search.
NAMES = [name for name in RELATIONS.shipped if name not in ("metamorphic", "gold")]
HEADINGS = ["Edits", "Expects", "Does not apply", "Example", "Words"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_a_relation_does(name: str) -> None:
    relation = relation_by_name(name)
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    side = relation.side.replace("-", " ")
    unit = "whole dialogues" if relation.unit == "dialogue" else "single turns"
    assert f"# {name}\n\nThe bot's answer {side}. The relation tests {unit}." in text
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == HEADINGS
    assert [reason for reason in relation.reasons if f"- {reason}" not in text] == []
    assert relation.source in " ".join(text.split())


def test_each_module_with_a_relation_is_listed() -> None:
    room = Path(__file__).parents[2] / "pytest_dstfuzz" / "relations"
    written = [p for p in room.rglob("*.py") if "\n@register_relation" in p.read_text("utf-8")]
    found = {".".join(path.relative_to(room).with_suffix("").parts) for path in written}
    assert found == set(MODULES)
