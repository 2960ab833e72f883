"""Writes the sample dialogues with tools: ``python -m tools.dialogues.build OUTPUT``.

Each kind of dialogue comes four times, with other wordings and values. The same seed gives the same
bytes. The calls follow from the steps, so they are right by construction.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from pytest_dstfuzz.seeding import derive
from tools.dialogues.errands import ERRANDS
from tools.dialogues.going_out import GOING_OUT
from tools.dialogues.sample_tools import TOOLS
from tools.dialogues.steps import Called, Said, Scenario
from tools.dialogues.wordings import THANKS, VALUES, WELCOME, YES

SEED: Final = 1
#: Dialogues of each kind: as many as there are wordings of each step.
_EACH: Final = 4
_WORDS: Final = {"2": "two", "3": "three", "4": "four", "5": "five", "6": "six"}


class _Pool:
    """Wordings in random order. Each is used once."""

    def __init__(self, wordings: Sequence[str], rng: np.random.Generator) -> None:
        self._left = [wordings[int(place)] for place in rng.permutation(len(wordings))]

    def take(self) -> str:
        return self._left.pop()


def dialogues() -> Iterator[dict[str, Any]]:
    """Yield the dialogues in the form of messages and tools."""
    rng = np.random.Generator(np.random.PCG64(derive(SEED, "sample dialogues with tools")))
    pools = {"yes": _Pool(YES, rng), "thanks": _Pool(THANKS, rng)}
    number = 0
    for scenario in (*GOING_OUT, *ERRANDS):
        for variant in range(_EACH):
            number += 1
            tools = [tool for domain in scenario.domains for tool in TOOLS[domain]]
            yield {
                "id": f"DST{number:04d}",
                "messages": list(_messages(scenario, variant, rng, pools)),
                "tools": tools,
            }


def _values(rng: np.random.Generator, variant: int) -> dict[str, str]:
    drawn = {}
    for name, values in VALUES.items():
        first, second = rng.choice(len(values), 2, replace=False)
        drawn[name], drawn[f"{name}2"] = values[int(first)], values[int(second)]
    # Every other dialogue says its small numbers as words.
    said = _WORDS if variant % 2 else {}
    for name in ("people", "people2"):
        drawn[f"{name} said"] = said.get(drawn[name], drawn[name])
    return drawn


def _messages(
    scenario: Scenario, variant: int, rng: np.random.Generator, pools: dict[str, _Pool]
) -> Iterator[dict[str, Any]]:
    values = _values(rng, variant)
    spoken = {**values, "people": values["people said"], "people2": values["people2 said"]}
    for place, step in enumerate(scenario.steps):
        if isinstance(step, Called):
            yield from _call(step, place, values)
        elif step.who == "yes":
            yield {"role": "user", "content": pools["yes"].take()}
        else:
            yield {"role": step.who, "content": _said(step, variant, spoken)}
    yield {"role": "user", "content": pools["thanks"].take()}
    yield {"role": "assistant", "content": WELCOME[variant % len(WELCOME)]}


def _said(step: Said, variant: int, values: dict[str, str]) -> str:
    text = step.wordings[variant].format(**values)
    return text[0].upper() + text[1:]


def _call(step: Called, place: int, values: dict[str, str]) -> Iterator[dict[str, Any]]:
    arguments: dict[str, Any] = {}
    for name, template in step.arguments.items():
        value = template.format(**values)
        arguments[name] = int(value) if name in ("people", "passengers") else value
    known = f"call_{place}"
    function = {"name": step.tool, "arguments": json.dumps(arguments)}
    call = {"id": known, "type": "function", "function": function}
    yield {"role": "assistant", "content": None, "tool_calls": [call]}
    result = json.dumps(_filled(step.result, values))
    yield {"role": "tool", "tool_call_id": known, "content": result}


def _filled(result: Any, values: dict[str, str]) -> Any:
    if isinstance(result, str):
        return result.format(**values)
    if isinstance(result, dict):
        return {key: _filled(value, values) for key, value in result.items()}
    return [_filled(value, values) for value in result]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    (output,) = sys.argv[1:] if arguments is None else arguments
    lines = [json.dumps(dialogue, ensure_ascii=False) for dialogue in dialogues()]
    Path(output).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
