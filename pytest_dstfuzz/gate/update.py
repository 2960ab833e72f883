"""A baseline that a run of some of its turns writes anew: the other turns stay as they were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter

from pytest_dstfuzz.gate.baseline import (
    Baseline,
    KnownWeakness,
    TurnOutcomes,
    changes,
    same_names,
)
from pytest_dstfuzz.printable import counted

Turns = Mapping[str, Sequence[TurnOutcomes]]


@dataclass(frozen=True, slots=True)
class Update:
    """The baselines that replace those of an earlier file."""

    #: By the name of the tracker.
    baselines: Mapping[str, Baseline]
    #: Turns of the earlier file that stay.
    kept: int = 0
    #: Why nothing may be written; ``""`` if it may.
    refused: str = ""


def update_all(
    old: Mapping[str, Baseline],
    new: Mapping[str, Baseline],
    contents: Mapping[str, Sequence[str]],
    *,
    narrowed: bool,
) -> Update:
    """Return the baselines of a run together with the turns of the old ones that were not run.

    Args:
        old: what the file holds, by the name of the tracker; ``""`` where it is of one.
        new: of the run, likewise.
        contents: as `contents_of` returns them: a turn that the data does not have any more is
            dropped, unless the run is a selection.
        narrowed: whether the command line selects some of the tests. Such a run never takes the
            place of a baseline that it cannot be put together with; a whole run does.
    """
    # A selection may have left out whole trackers.
    found = dict(old) if narrowed else {}
    kept = 0
    for name, one in new.items():
        known = _known_as(name, one, old)
        if known is None:
            if narrowed:
                reason = "it has no turn of the tests that were selected. Run all tests"
                return Update(new, refused=reason)
            found[name] = one
            continue
        updated, stay = _update(old[known], one, contents, narrowed=narrowed)
        if isinstance(updated, str):
            return Update(new, refused=updated)
        found[known if narrowed else name] = updated
        kept += stay
        old = {other: each for other, each in old.items() if other != known}
    if narrowed:
        kept += sum(_count(one) for one in old.values())
    return Update(found, kept)


def _known_as(name: str, one: Baseline, old: Mapping[str, Baseline]) -> str | None:
    """Return the name that a tracker has in the file: that of its tests, where it has another."""
    if name in old:
        return name
    shared = (other for other, each in old.items() if set(each.groups) & set(one.groups))
    return next(shared, None)


def _count(baseline: Baseline) -> int:
    return sum(map(len, baseline.groups.values()))


def _update(
    old: Baseline, new: Baseline, contents: Mapping[str, Sequence[str]], *, narrowed: bool
) -> tuple[Baseline | str, int]:
    """Return the baseline of one tracker and how many turns stay, or why nothing is written."""
    names = same_names(old.groups, new.groups)
    before = {names.get(name, name): turns for name, turns in old.groups.items()}
    rest = _rest(before, new.groups, lambda turn: narrowed or _is_there(turn, contents))
    kept = sum(map(len, rest.values()))
    if not kept:
        return new, 0
    if unlike := _unlike(old, new):
        if not narrowed:
            return new, 0
        reason = (
            f"this run tested {counted(_count(new), 'turn')}, and {kept:,} others of the baseline "
            f"cannot stay beside them, as they were made in another way ({'; '.join(unlike)}). "
            "Run all tests, or repeat the settings of the baseline"
        )
        return reason, 0
    groups = {
        name: sorted(
            chain(rest.get(name, ()), new.groups.get(name, ())), key=attrgetter("dialogue", "turn")
        )
        for name in sorted({*rest, *new.groups})
    }
    found = replace(
        new,
        groups=groups,
        weaknesses=_weaknesses(old, new, groups),
        shrunk=old.shrunk if new.shrunk is None else new.shrunk,
        repeats=None if old.repeats is None else old.repeats and bool(new.repeats),
    )
    return found, kept


def _rest(
    before: Turns, now: Turns, wanted: Callable[[TurnOutcomes], bool]
) -> dict[str, list[TurnOutcomes]]:
    """Return the turns of each group that were not run now, without the groups that have none."""
    found = {}
    for name, turns in before.items():
        run = {(turn.dialogue, turn.turn) for turn in now.get(name, ())}
        rest = [turn for turn in turns if (turn.dialogue, turn.turn) not in run and wanted(turn)]
        if rest:
            found[name] = rest
    return found


def _is_there(turn: TurnOutcomes, contents: Mapping[str, Sequence[str]]) -> bool:
    keys = contents.get(turn.dialogue, ())
    return turn.turn < len(keys) and keys[turn.turn] == turn.key


def _unlike(old: Baseline, new: Baseline) -> list[str]:
    """Say why turns of both cannot stand in one file; nothing if they can."""
    found = changes(old.campaign, new.campaign)
    if old.hidden != new.hidden:
        found.append("--dst-redact was given for one of the two")
    if {old.shrunk, new.shrunk} == {True, False}:
        found.append("--dst-shrink differs")
    if old.weaknesses is None:
        found.append("the baseline is of an earlier pytest-dstfuzz")
    return found


def _weaknesses(old: Baseline, new: Baseline, groups: Turns) -> tuple[KnownWeakness, ...]:
    """Count the weaknesses of turns of two runs; no expected failures are known of all of them."""
    counts: dict[str, int] = {}
    turns: dict[str, set[tuple[str, int]]] = {}
    for turn in chain.from_iterable(groups.values()):
        for variant in turn.variants:
            if variant.weakness:
                counts[variant.weakness] = counts.get(variant.weakness, 0) + 1
                turns.setdefault(variant.weakness, set()).add((turn.dialogue, turn.turn))
    known = {each.id: each for each in (*(old.weaknesses or ()), *(new.weaknesses or ()))}
    return tuple(
        KnownWeakness(name, known[name].description, count, len(turns[name]))
        for name, count in sorted(counts.items())
        if name in known
    )
