"""The marker ``dst``: settings of one test, read and checked while tests are collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from pytest_dstfuzz.config import MARKER_NAMES, OPTION_NAMES, option_text, parse_option
from pytest_dstfuzz.errors import UserError, unknown_name


def marker_values(markers: Iterable[pytest.Mark]) -> dict[str, Any]:
    """Return the parsed settings of the ``dst`` markers of one test.

    Args:
        markers: the closest first, as ``iter_markers`` yields them; the closest wins.

    Raises:
        UserError: an argument that the marker does not have, or a value it does not take.
    """
    values: dict[str, Any] = {}
    for marker in markers:
        if marker.args:
            raise UserError(
                "@pytest.mark.dst takes named arguments only, such as transformations=2, "
                f"not {marker.args[0]!r}"
            )
        values = {**_values(marker.kwargs), **values}
    return values


def _values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    for name in arguments:
        if name in OPTION_NAMES and name not in MARKER_NAMES:
            raise UserError(
                f"@pytest.mark.dst does not take {name!r}, which holds for a whole session "
                f"(--dst-{name.replace('_', '-')}). Valid: {', '.join(sorted(MARKER_NAMES))}."
            )
        if name not in MARKER_NAMES:
            raise unknown_name("argument of @pytest.mark.dst", name, MARKER_NAMES)
    return {
        name: parse_option(name, _as_text(name, value), f"@pytest.mark.dst({name}=...)")
        for name, value in arguments.items()
    }


def _as_text(name: str, value: object) -> str:
    text = option_text(name, value)
    if text is None:
        raise UserError(f"@pytest.mark.dst({name}=...): {value!r} is no value that it takes")
    return text
