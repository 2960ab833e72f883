"""Reports of sessions that test several trackers: each has its part, and pages show one each.

No figure is made of two trackers. The keys at the top of such a report are those of the first
tracker, as those of the first relation are; ``models`` has them for each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from pytest_dstfuzz.report.turn_files import MOST_IN_ONE_FILE, SpooledTurns, TurnLines

#: Keys that the parts of a report share.
_SHARED: Final = ("schema_version", "tool", "regressions", "turns", "run")


def report_of_models(
    parts: Mapping[str, Mapping[str, Any]], verdicts: Sequence[str]
) -> dict[str, Any]:
    """Return one report of the reports of some trackers.

    The gate at its top is that of the session, which fails if one of the trackers does.

    Args:
        parts: by the names of the trackers.
        verdicts: those of a gate, the worst last.
    """
    first = dict(next(iter(parts.values())))
    if len(parts) == 1:
        return first
    entries = [
        {"name": name, **{key: value for key, value in one.items() if key not in _SHARED}}
        for name, one in parts.items()
    ]
    turns = [one["turns"] for one in parts.values()]
    run = first.pop("run")
    return {
        **first,
        "schema_version": max(one["schema_version"] for one in parts.values()),
        "gate": _gate({name: one["gate"] for name, one in parts.items()}, verdicts),
        "models": entries,
        "turns": _together(turns),
        "run": run,
    }


def reports_of(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the report of each tracker, by its name; ``""`` where a report is of one."""
    models = report.get("models") or ()
    if not models:
        return {"": report}
    shared = {name: report[name] for name in _SHARED if name in report}
    return {
        one["name"]: {**shared, **one, "turns": _of_model(report["turns"], one["name"])}
        for one in models
    }


def _gate(
    gates: Mapping[str, Mapping[str, Any] | None], verdicts: Sequence[str]
) -> dict[str, Any] | None:
    """Return the verdict on a session from those on its trackers; a reason names its tracker."""
    judged = {name: gate for name, gate in gates.items() if gate is not None}
    if not judged:
        return None
    texts = {
        key: [f"{name}: {text}" for name, gate in judged.items() for text in gate[key]]
        for key in ("troubles", "not_compared", "not_judged", "partly_applied", "raised")
    }
    findings = [
        {**finding, "reason": f"{name}: {finding['reason']}"}
        for name, gate in judged.items()
        for finding in gate["findings"]
    ]
    worst = max((str(gate["verdict"]) for gate in judged.values()), key=verdicts.index)
    return {"verdict": worst, **texts, "findings": findings, "comparison": None}


def _together(parts: Sequence[Collection[Mapping[str, Any]]]) -> list[Any] | TurnLines:
    """Return the turns of some reports as one report has them."""
    turns = chain.from_iterable(parts)
    if sum(map(len, parts)) > MOST_IN_ONE_FILE:
        return SpooledTurns(turns)
    return sorted(turns, key=lambda it: (it["dialogue_id"], it["turn_index"], it["id"]))


def _of_model(turns: Sequence[Any] | TurnLines, name: str) -> Sequence[Any] | TurnLines:
    if isinstance(turns, TurnLines):
        return _ChosenTurns(turns, name)
    return [turn for turn in turns if turn.get("model") == name]


class _ChosenTurns(TurnLines):
    """Those turns of a large report that are of one tracker."""

    def __init__(self, turns: TurnLines, model: str) -> None:
        self._turns: Final = turns
        self._model: Final = model

    def __len__(self) -> int:
        return sum(1 for _ in self.lines())

    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON."""
        return (line for line in self._turns.lines() if json.loads(line)["model"] == self._model)
