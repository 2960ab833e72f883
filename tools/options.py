"""Writes the option table as data that every pytest run reads: ``python -m tools.options``.

For an unused plugin, reading the data is cheaper than importing the table of
`pytest_dstfuzz.config`. A test checks that both have the same values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz import plugin
from pytest_dstfuzz.config import MARKER_NAMES, OPTIONS, Option
from pytest_dstfuzz.config.parsers import PARTS

#: The file of data.
TABLE: Final = Path(str(plugin.__file__)).with_name("options.json")


def option_table() -> dict[str, Any]:
    """Return the option table as the plain values that every pytest run reads.

    ``spellings`` has the spellings without a value, each with the option's name and its meaning.
    ``--no-dst-NAME`` switches an option off, even if an ini file sets it: a switch is then off, and
    any other option has its default. ``--dst-NAME=yes`` is one spelling as a whole. If it were an
    option with an optional value, ``--dst-NAME tests`` would take the folder for the value.
    """
    options = []
    spellings: dict[str, list[Any]] = {}
    for item in OPTIONS:
        flag, off = f"--dst-{item.flag}", f"--no-dst-{item.flag}"
        if not item.has_flag:
            continue
        flags = [flag]
        if item.is_switch:
            flags += [f"{flag}=yes", f"{flag}=no", off]
            for spelling, text in zip(flags, ("yes", "yes", "no", "no"), strict=True):
                spellings[spelling] = [item.name, text]
        else:
            spellings[off] = [item.name, [] if item.repeated else False]
        options.append(_row(item, flags))
    return {"options": options, "spellings": spellings}


def _row(item: Option, flags: list[str]) -> dict[str, Any]:
    how = {"metavar": item.value.metavar or "yes|no", "action": "store"}
    if item.repeated:
        how["action"] = "append"
    return {
        "name": item.name,
        "flags": flags,
        "group": [f"dstfuzz-{item.part}", f"dstfuzz: {PARTS[item.part]}"],
        "command_line": {"help": item.help.replace("%", "%%")} | ({} if len(flags) > 1 else how),
    }


def _ini_kinds(item: Option) -> list[str]:
    """Return the kinds of value that an ini key may have, by the type of the setting."""
    if item.value.separator:
        return ["linelist"]
    kinds = {bool if item.is_switch else item.value.holds} - {str}
    if float in kinds:
        kinds.add(int)  # 0 is a rate too
    # The text first: what an ini file gives stays one, and the option table reads it.
    return ["str", *sorted(kind.__name__ for kind in kinds)]


def table_text() -> str:
    """Return the text of the data file: a line for every run, then one for each option.

    The first line lists the ini keys with their kinds of value, the help of those that are no
    options, and the arguments of the marker.
    """
    table = option_table()
    keys = [item for item in OPTIONS if item.has_ini]
    always = {
        "ini": {item.name: " ".join(_ini_kinds(item)) for item in keys},
        "help": {item.name: item.help for item in keys if not item.has_flag},
        "marker": MARKER_NAMES,
    }
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table["options"])
    spellings = json.dumps(table["spellings"])
    return f'{json.dumps(always)}\n{{"options": [\n{rows}\n],\n"spellings": {spellings}}}\n'


if __name__ == "__main__":
    TABLE.write_text(table_text(), encoding="utf-8")
