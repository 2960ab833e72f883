"""Each relation on rounds and on larger units has its page, with all that it says there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dstfuzz.relations.registry import MODULES, relation_by_name

PAGES = Path(__file__).parents[2] / "docs" / "relations"
NAMES = [
    *("drop", "duplicate", "restart", "shuffle"),
    *("disfluency", "masked-replacement", "plug-in", "speech"),
    "frozen",
    *("same-context", "lost-context", "contexts-agree", "contexts-differ"),
    *("metal-synonyms", "metal-word", "metal-typos", "metal-leet"),
    *("tools-order", "tools-distractor", "tools-optional", "tools-paraphrase"),
    *("grammar-errors", "neighbour-swap", "phrase-table", "retrieval", "stop-word-dropout"),
]
HEADINGS = ["Edits", "Expects", "Does not apply", "Example", "Words"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_a_relation_does(name: str) -> None:
    relation = relation_by_name(name)
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    side, unit = relation.side.replace("-", " ").capitalize(), relation.unit
    edited = "whole dialogues" if unit == "dialogue" else "turns"
    assert f"# {name}\n\n{side}; edits {edited}." in text
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == HEADINGS
    assert [reason for reason in relation.reasons if f"- {reason}" not in text] == []
    assert relation.source in text


def test_each_module_of_these_rooms_is_listed() -> None:
    room = Path(__file__).parents[2] / "pytest_dstfuzz" / "relations"
    ours = [
        p
        for part in ("rounds", "paraphrase", "sources", "contexts", "tools")
        for p in sorted((room / part).glob("*.py"))
    ]
    written = [p for p in ours if "@register_relation" in p.read_text(encoding="utf-8")]
    assert {f"{path.parent.name}.{path.stem}" for path in written} <= set(MODULES)
