"""Each planted fault is found by the relation that is for it, and by no other without a reason.

The tables are those of ``docs/research/relations.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from domains import Domain, greeted, pizza, travel
from faults import (
    Bot,
    doubles_duplicates,
    heeds_order,
    ignores_negation,
    keeps_drops,
    keeps_ends,
    never_changes,
)

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.relations.registry import RELATIONS, relation_by_name

PAGE = Path(__file__).parents[3] / "docs" / "research" / "relations.md"
BOTS: dict[str, Callable[[Domain], Bot]] = {
    "right": lambda domain: domain.bot,
    "never changes": never_changes,
    "ignores negation": ignores_negation,
    "keeps ends": keeps_ends,
    "doubles": doubles_duplicates,
    "heeds order": heeds_order,
    "keeps drops": keeps_drops,
}
#: The relations that are to find a fault.
FINDERS = {
    "ignores negation": {"negation"},
    "keeps ends": {"role-swap"},
    "doubles": {"duplicate"},
    "heeds order": {"shuffle"},
    "keeps drops": {"drop"},
}
#: Those of states that edit by themselves; typing errors of a search are too much for a lexicon,
#: and `values-only` breaks every bot that knows names, also a right one.
OWN = [
    name
    for name in RELATIONS.shipped
    if (one := relation_by_name(name)).edits == "own"
    and "state" in one.on
    and name != "values-only"
]


def section(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading of the page, without its first two lines."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert rows, heading
    return [rows[0], *rows[2:]]


def table(domain: str) -> dict[str, dict[str, str]]:
    """Return what each relation finds in each tracker: tracker -> relation -> cell."""
    head, *rows = section(domain)
    assert head[1:] == list(BOTS)
    return {
        bot: {row[0].strip("`"): row[place] for row in rows}
        for place, bot in enumerate(head)
        if place
    }


@pytest.mark.parametrize("bot", BOTS)
@pytest.mark.parametrize("domain", [travel, pizza])
def test_what_each_relation_finds(domain: Callable[[], Domain], bot: str) -> None:
    known = greeted(domain())
    asked = [name for name in OWN if not relation_by_name(name).impossible(known.data)]
    settings = Settings.of(turns="all", variants=3)
    failures: dict[str, set[str]] = {name: set() for name in OWN}
    applicable = set()
    for turn in Campaign(BOTS[bot](known), known.data, settings, relation=asked):
        if turn.outcome != "inapplicable":
            applicable.add(turn.relation)
        failures[turn.relation] |= {
            v.failure or "" for v in turn.variants if v.outcome == "violation"
        }
    found = {
        name: " ".join(sorted(failures[name])) or ("0" if name in applicable else "-")
        for name in OWN
    }
    assert found == table(domain.__name__.capitalize())[bot]


def test_one_relation_is_for_each_fault_and_the_others_have_a_reason() -> None:
    both = [table("Travel"), table("Pizza")]
    _, *rows = section("The faults")
    told = {row[0]: set(re.findall(r"`([a-z-]+)`", f"{row[2]} {row[3]}")) for row in rows}
    assert ["right", *told] == list(BOTS)
    for domain in both:
        assert set(domain["right"].values()) <= {"0", "-"}
        stuck = {name for name, cell in domain["never changes"].items() if cell == "stuck"}
        follow = {name for name in OWN if relation_by_name(name).side == "should-change"}
        assert stuck == {n for n in follow if domain["never changes"][n] != "-"}
        # Without a message of the system, a tracker that reads only these answers otherwise.
        others = set(OWN) - follow - {"join"}
        assert all(domain["never changes"][n] in {"0", "-"} for n in others)
    for fault, finders in FINDERS.items():
        found = {
            name
            for domain in both
            for name, cell in domain[fault].items()
            if cell not in {"0", "-"}
        }
        assert finders <= found
        assert found == told[fault] & set(OWN)
