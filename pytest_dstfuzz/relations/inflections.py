"""Plurals of nouns, and the infinitives of inflected verbs.

The table is made by ``python -m tools.relations.words``; the README beside it names its sources.
All words are in lower case, what is asked may have any; answers are in lower case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Inflections:
    """Forms of words, both ways; see `inflections`."""

    plurals: Mapping[str, str]
    singulars: Mapping[str, str]
    infinitives: Mapping[str, str]

    def plural(self, word: str) -> str | None:
        """Return the plural of a noun in the singular, ``None`` for any other word."""
        return self.plurals.get(word.lower())

    def singular(self, word: str) -> str | None:
        """Return the singular of a noun in the plural, ``None`` for any other word."""
        return self.singulars.get(word.lower())

    def infinitive(self, word: str) -> str | None:
        """Return the infinitive of an inflected verb, ``None`` for any other word."""
        return self.infinitives.get(word.lower())


@cache
def inflections() -> Inflections:
    """Return the shipped table, which is read once a process."""
    shipped = resources.files("pytest_dstfuzz") / "resources" / "relations" / "inflections.json"
    tables: Mapping[str, Mapping[str, str]] = json.loads(shipped.read_text(encoding="utf-8"))
    plurals = dict(_pairs(tables["plurals"]))
    return Inflections(
        plurals,
        {form: base for base, form in plurals.items()},
        {form: base for base, form in _pairs(tables["verb_forms"])},
    )


def _pairs(table: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield base and form of a table ``old>new`` ending -> bases."""
    for ending, bases in table.items():
        old, _, new = ending.partition(">")
        for base in bases.split(" "):
            yield base, base.removesuffix(old) + new
