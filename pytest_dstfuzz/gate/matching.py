"""The dialogues of two builds: which are the same, under whatever name, and which changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_dstfuzz.gate.baseline import Contents, TurnOutcomes
from pytest_dstfuzz.json_data import to_json


@dataclass(frozen=True, slots=True)
class Matching:
    """The dialogues of two builds, each by its id.

    A dialogue that both have may have been renamed. One that was changed is still compared up
    to the turn before the change.
    """

    #: Baseline's id -> run's id of what is the same, or changed.
    known: Mapping[str, str]
    #: Ids of this run, and those of the baseline that the data does not have any more.
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    #: Baseline's id and run's id.
    renamed: tuple[tuple[str, str], ...] = ()

    def of_tested(self, tested: Collection[str]) -> Matching:
        """Return it for a run that tested these dialogues: the others were not added."""
        return replace(self, added=tuple(sorted(set(tested) - set(self.known.values()))))

    def to_json(self) -> dict[str, Any]:
        """Return the object ``suite`` of the JSON report's comparison."""
        plain: dict[str, Any] = to_json(self)
        return {name: plain[name] for name in ("added", "removed", "changed", "renamed")}


def match_dialogues(old: Iterable[TurnOutcomes], contents: Contents) -> Matching:
    """Find the dialogues of a baseline in the data of a run."""
    #: Place and key of the last turn that the baseline has of a dialogue.
    lasts: dict[str, tuple[int, str]] = {}
    for turn in old:
        lasts[turn.dialogue] = max(lasts.get(turn.dialogue, (-1, "")), (turn.turn, turn.key))
    holders: dict[tuple[int, str], list[str]] = {}
    for name, keys in contents.items():
        for place in enumerate(keys):
            holders.setdefault(place, []).append(name)
    known = {name: name for name, last in lasts.items() if name in holders.get(last, ())}
    taken = set(known)
    renamed = []
    for name, last in lasts.items():
        free = [other for other in holders.get(last, ()) if other not in taken]
        if name not in known and free:
            known[name] = free[0]
            taken.add(free[0])
            renamed.append((name, free[0]))
    left = contents.keys() - taken
    changed = [name for name in lasts if name not in known and name in left]
    known |= {name: name for name in changed}
    return Matching(
        known=known,
        removed=tuple(sorted(lasts.keys() - known.keys())),
        changed=tuple(sorted(changed)),
        renamed=tuple(sorted(renamed)),
    )
