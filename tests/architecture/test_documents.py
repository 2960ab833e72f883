"""ARCHITECTURE and CONTRIBUTING describe the house as it is."""

from __future__ import annotations

import re

import pytest
from test_layers import ALLOWED, LEAVES, PACKAGE

ROOT = PACKAGE.parent
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
#: Rooms in the order of the table, without `/` and `.py`.
ROOMS = [
    name.removesuffix("/").removesuffix(".py")
    for name in re.findall(r"^\| `([\w./]+)` \|", ARCHITECTURE, re.MULTILINE)
]


def test_every_room_is_named_and_every_name_is_a_room() -> None:
    rooms = {
        path.stem
        for path in PACKAGE.iterdir()
        # A folder that was moved away leaves its bytecode.
        if not path.name.startswith("__")
        and path.suffix in ("", ".py")
        and any(one.is_file() and one.suffix != ".pyc" for one in (path, *path.rglob("*")))
    }
    assert set(ROOMS) == rooms
    assert len(ROOMS) == len(set(ROOMS))


def test_rooms_import_only_what_stands_above_them_in_the_table() -> None:
    wrong = [
        f"{room} may import {name}, which stands below it"
        for room, names in ALLOWED.items()
        for name in sorted({name.partition(".")[0] for name in names - LEAVES} - {room})
        if ROOMS.index(name) > ROOMS.index(room)
    ]
    assert wrong == []


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_what_a_page_points_to_exists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = re.findall(r"`([\w.]+/[\w./]*)`", text) + re.findall(r"\]\(([\w./-]+)", text)
    assert len(named) > 3
    # A page of the package may leave out its first folder.
    lost = [name for name in named if not ((ROOT / name).exists() or (PACKAGE / name).exists())]
    assert lost == []
