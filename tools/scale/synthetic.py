"""Dialogues made of the shipped ones: ``python -m tools.scale.synthetic --turns N --output FILE``.

Each is a randomly drawn shipped dialogue. Values that are said word for word are replaced by other
values of their slots, in texts and labels alike. So the texts differ, but the slots and values are
always those of the shipped dialogues. A dialogue need not make sense as a whole: it serves to
measure time and memory, not quality.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues
from pytest_dstfuzz.files import write_lines
from pytest_dstfuzz.seeding import stream

#: Characters of the shortest value that is replaced: "2" is said for many things.
_SHORTEST: Final = 3
_DIGITS: Final = 7


def entries(turns: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield dialogues as the lines of a JSON Lines file, with ``turns`` turns in all.

    The last dialogue is cut. A dialogue depends only on its number and the seed, so a larger file
    begins with the dialogues of a smaller one.
    """
    data = load_dialogues(SAMPLE)
    number = 0
    while turns:
        rng = stream(seed, "synthetic", number)
        template = data.dialogues[int(rng.integers(len(data.dialogues)))]
        made = _filled(template, _values(data, template, rng))[:turns]
        turns -= len(made)
        number += 1
        yield {"dialogue_id": f"made-{number:0{_DIGITS}d}", "turns": made}


def _values(data: DialogueSet, template: Dialogue, rng: np.random.Generator) -> dict[str, str]:
    """Return the values of a dialogue that are replaced, each with another value of its slot."""
    known = data.ontology.values if data.ontology is not None else {}
    found: dict[str, str] = {}
    for turn in template.turns:
        for slot, value in (turn.state or {}).items():
            others = [other for other in known.get(slot, ()) if len(other) >= _SHORTEST]
            if value not in found and value != DONTCARE and len(value) >= _SHORTEST and others:
                found[value] = others[int(rng.integers(len(others)))]
    return found


def _filled(template: Dialogue, values: dict[str, str]) -> list[dict[str, Any]]:
    """Return the turns of a template with other values."""
    said = sorted(values, key=lambda value: (-len(value), value))
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, said)) or '(?!)'})\b", re.IGNORECASE)

    def other(match: re.Match[str]) -> str:
        text = values[match[0].lower()]
        return text.title() if match[0][:1].isupper() else text

    return [
        {
            "system": pattern.sub(other, turn.system),
            "user": pattern.sub(other, turn.user),
            "state": {slot: values.get(v, v) for slot, v in (turn.state or {}).items()},
        }
        for turn in template.turns
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--turns", type=int, required=True, help="number of user turns in all dialogues"
    )
    parser.add_argument("--output", type=Path, required=True, help="the file, JSON Lines")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.turns < 1:
        parser.error("--turns: at least 1")
    made = entries(given.turns, given.seed)
    write_lines(given.output, (f"{json.dumps(one, ensure_ascii=False)}\n" for one in made))


if __name__ == "__main__":
    main()
