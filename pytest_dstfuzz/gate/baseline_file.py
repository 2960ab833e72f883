"""The file of a baseline: one JSON object with a turn on each line, to be committed and diffed.

The same campaign gives the same bytes. Its keys:

``baseline_version``
    2. It grows when a key changes its meaning or goes. 3 has the file of a session that tests
    several trackers. It has ``models`` alone: name of a tracker -> all the other keys here.
``tool``, ``model``
    Version of this package and name of the tracker; for people, not compared.
``campaign``
    All that decides which variants a dialogue gets; see `campaign_identity`.
``values``
    ``plain``, or ``digests``: the slot values are digests, as of a run with ``--dst-redact``.
``weaknesses``
    What the violations have in common, sorted by id: ``id``, ``description``, ``count`` of the
    violations, ``turns`` that they break, ``expected_failures`` of 1,000 user turns or null.
    Missing in files of earlier versions, as is ``shrunk``: whether violations were shrunk (null
    without any), which decides the weakness that they are of.
``repeats``
    Whether the bot gave one answer to whatever it was asked more than once. Missing in files of
    earlier versions.
``groups``
    Names of the groups of results: one, unless a suite tests several trackers or relations, or has
    tests with settings of their own. The name ends with `` relation=NAME`` if the relation is
    not ``metamorphic``.
``turns``
    By group, dialogue and turn. Each has ``group`` (number), ``dialogue`` (id), ``turn`` (its
    place, from 0), ``key`` (16 hexadecimal digits of what was said up to it: dialogues are
    found again by it, whatever they are called), ``state`` (the clean answer, slot -> value;
    null where the tracker failed) and ``variants``. A variant is a list: its number, a digest
    of its text in its context (12 hexadecimal digits), its outcome, and where slots changed
    the cause or null, the slots that changed anew and those that were carried; of a violation
    also the id of its weakness. A turn of a
    search by density has ``failures``, too: the estimated probability that it fails. One whose
    clean turn was asked several times has ``own``: how often, and how many of these answers were
    not the usual one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_versioned
from pytest_dstfuzz.gate.baseline import (
    Baseline,
    ComparedVariant,
    KnownWeakness,
    TurnOutcomes,
)
from pytest_dstfuzz.json_data import from_json

BASELINE_VERSION: Final = 2
#: Of a file with the baselines of several trackers.
MODELS_VERSION: Final = 3
_VALUES: Final = ("plain", "digests")


def baselines_text(baselines: Mapping[str, Baseline]) -> str:
    """Return the baselines of some trackers, by their names, as the text of one file."""
    if len(baselines) == 1:
        return baseline_text(next(iter(baselines.values())))
    entries = (
        f"{json.dumps(name)}: {baseline_text(one).rstrip()}" for name, one in baselines.items()
    )
    models = ",\n".join(entries)
    return f'{{\n"baseline_version": {MODELS_VERSION},\n"models": {{\n{models}\n}}\n}}\n'


def baseline_text(baseline: Baseline) -> str:
    """Return the baseline of a tracker as the text of its file."""
    head = {
        "baseline_version": BASELINE_VERSION,
        "tool": baseline.version,
        "model": baseline.model,
        "campaign": dict(baseline.campaign),
        "values": _VALUES[baseline.hidden],
        **_weaknesses_json(baseline),
        **({} if baseline.repeats is None else {"repeats": baseline.repeats}),
        "groups": list(baseline.groups),
    }
    lines = [f"{json.dumps(name)}: {_compact(value)}" for name, value in head.items()]
    turns = ",\n".join(
        _compact(_turn_json(number, turn))
        for number, group in enumerate(baseline.groups.values())
        for turn in group
    )
    return "{\n" + ",\n".join(lines) + f',\n"turns": [\n{turns}\n]\n' + "}\n"


def read_baselines(path: Path) -> dict[str, Baseline]:
    """Read the baseline of each tracker, by its name; ``""`` where the file is of one."""
    if not path.exists():
        raise DataError(f"there is no baseline {path}: write one with --dst-update-baseline")
    content = read_versioned(
        path, "baseline", "baseline_version", MODELS_VERSION, oldest=BASELINE_VERSION
    )
    try:
        if content["baseline_version"] < MODELS_VERSION:
            return {"": _baseline(from_json(_File, content))}
        found = from_json(_ModelsFile, content).models
        return {name: _baseline(one) for name, one in found.items()}
    except ValueError as error:
        raise DataError(
            f"{path} is a damaged baseline ({error}): write a new one with --dst-update-baseline"
        ) from None


def read_baseline(path: Path) -> Baseline:
    """Read the baseline of a file that is of one tracker."""
    found = read_baselines(path)
    if len(found) > 1:
        raise DataError(f"{path} has the baselines of {len(found)} trackers, and one is wanted")
    return next(iter(found.values()))


def _turn_json(group: int, turn: TurnOutcomes) -> dict[str, Any]:
    return {
        "group": group,
        "dialogue": turn.dialogue,
        "turn": turn.turn,
        "key": turn.key,
        "state": None if turn.state is None else dict(turn.state),
        "variants": [_variant_json(each) for each in turn.variants],
        **({} if turn.failures is None else {"failures": turn.failures}),
        **({} if turn.own is None else {"own": turn.own}),
    }


def _variant_json(variant: ComparedVariant) -> tuple[Any, ...]:
    if variant.weakness:
        return variant
    return variant[:6] if variant.changed or variant.carried else variant[:3]


def _weaknesses_json(baseline: Baseline) -> dict[str, Any]:
    if baseline.weaknesses is None:
        return {}
    found = [each.to_json() for each in baseline.weaknesses]
    return {"weaknesses": found, "shrunk": baseline.shrunk}


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurnEntry(TurnOutcomes):
    group: int


@dataclass(frozen=True, slots=True)
class _File:
    """What a baseline's file holds beside its version."""

    tool: str
    model: str
    campaign: dict[str, Any]
    values: Literal["plain", "digests"]
    groups: list[str]
    turns: list[_TurnEntry]
    #: Files of earlier versions have none.
    weaknesses: list[KnownWeakness] | None = None
    shrunk: bool | None = None
    repeats: bool | None = None


@dataclass(frozen=True, slots=True)
class _ModelsFile:
    """Part of the file of several trackers, beside its version."""

    models: dict[str, _File]

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("it names no tracker")


def _baseline(content: _File) -> Baseline:
    names = content.groups
    if len(set(names)) != len(names):
        raise ValueError("two groups have one name")
    groups: dict[str, dict[tuple[str, int], TurnOutcomes]] = {name: {} for name in names}
    for entry in content.turns:
        if not 0 <= entry.group < len(names):
            raise ValueError(f"there is no group {entry.group}")
        group = groups[names[entry.group]]
        if (entry.dialogue, entry.turn) in group:
            raise ValueError(f"turn {entry.turn} of {entry.dialogue!r} is there twice")
        if len({variant.number for variant in entry.variants}) < len(entry.variants):
            raise ValueError(f"two variants of turn {entry.turn} of {entry.dialogue!r} are one")
        if entry.failures is not None and entry.failures < 0:
            raise ValueError(f"turn {entry.turn} of {entry.dialogue!r} fails less than never")
        group[entry.dialogue, entry.turn] = TurnOutcomes(
            *(entry.dialogue, entry.turn, entry.key, entry.state, entry.variants, entry.failures),
            own=entry.own,
        )
    return Baseline(
        model=content.model,
        version=content.tool,
        campaign=content.campaign,
        groups={name: list(turns.values()) for name, turns in groups.items()},
        hidden=content.values == "digests",
        weaknesses=None if content.weaknesses is None else tuple(content.weaknesses),
        shrunk=content.shrunk,
        repeats=content.repeats,
    )


def _compact(value: Any) -> str:
    # ASCII: half of a surrogate pair in an id or a slot has no UTF-8.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
