"""What one item of a robustness test is about, and the names that it goes by."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.plugin.selection import NODE
from pytest_dstfuzz.report.keyword import keyword, unlike
from pytest_dstfuzz.report.redact import KEPT_BACK

#: What ``-k`` selects an item with, where that is not the item's name.
KEYWORD: pytest.StashKey[str] = pytest.StashKey()


class TurnParam(NamedTuple):
    """What one item of a parametrised test is about."""

    settings: Settings
    #: Names of the settings that markers of the test gave.
    marked: tuple[str, ...]
    dialogue: Dialogue
    turn_index: int
    #: Readable id of the turn.
    turn_id: str


def param_of(item: pytest.Item) -> TurnParam | None:
    """Return what an item is about, if it is about a turn."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    param = params.get("dst_turn")
    return param if isinstance(param, TurnParam) else None


def make_selectable(items: Iterable[pytest.Item]) -> None:
    """Give a keyword to every item that ``-k`` could not select, or not alone, by its name.

    Ids of dialogues are free text, but ``-k`` takes neither blanks nor parentheses, and
    upper and lower case are the same to it.
    """
    about = [(item, param) for item in items if (param := param_of(item)) is not None]
    names = Counter(item.name.lower() for item in {item.name: item for item, _ in about}.values())
    for item, param in about:
        alone = names[item.name.lower()] == 1
        word = keyword(item.name) if alone else unlike(item.name)
        if word != item.name:
            item.stash[KEYWORD] = word
            item.extra_keyword_matches.add(word)
        # What the summary shows of a turn; pytest spells odd ids in its own way.
        if (shown := keyword(param.turn_id)) not in item.name:
            item.extra_keyword_matches.add(f"[{shown}]")


def own_settings(settings: Settings, base: Settings) -> str:
    """Spell in what a test's settings differ from the session's, as its marker would.

    Not the search: that is the one of the fixture ``dst_search``.
    """
    own, common = settings.options(), base.options()
    return ", ".join(
        f"{name}={list(value) if isinstance(value, tuple) else value!r}"
        for name, value in own.items()
        if name != "search" and value != common[name]
    )


def result_key(own: str, origin: str, search: str, fingerprint: str) -> str:
    """Return what tells the results of one turn apart.

    Args:
        own: settings of the test that the session does not have.
        origin: where the tracker came from.
        search: the search that chose what to change.
        fingerprint: of the lexicon.
    """
    return f"{origin} {own} {search} {fingerprint}"


def properties(result: TurnResult, settings: Settings) -> list[tuple[str, object]]:
    """Return what --junitxml shows of a turn."""
    outcomes = [variant.outcome for variant in result.variants]
    shown: list[tuple[str, object]] = [
        ("dst_turn", result.id),
        ("dst_outcome", result.outcome),
        ("dst_variants", len(outcomes)),
        ("dst_valid", sum(variant.valid for variant in result.variants)),
        ("dst_violations", outcomes.count("violation")),
        ("dst_seed", settings.variant.seed),
    ]
    if result.reason:
        shown.append(("dst_reason", KEPT_BACK if settings.output.redact else result.reason))
    return shown


def place_of(item: pytest.Item) -> tuple[str, int] | None:
    """Return file and line of a test, as GitHub wants them; ``None`` for one that is no file's.

    The file is seen from the root of the repository where that is known, and else from where
    pytest was called.
    """
    file, line, _ = item.location
    path = item.config.rootpath / file
    if line is None or not path.is_file() or item.nodeid.startswith(f"{NODE}::"):
        return None
    root = Path(os.environ.get("GITHUB_WORKSPACE") or item.config.invocation_params.dir)
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return shown.as_posix(), line + 1
