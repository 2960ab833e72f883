"""What a relation would say about data whose labels were the tracker's answers.

So it shows before a run, without a tracker, whether a relation can say anything at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.relations.relation import Relation, begin
from pytest_dstfuzz.relations.rewrite import Inapplicable
from pytest_dstfuzz.relations.scene import Scenes

__all__ = ["reasons_by_label"]

_MOST_REASONS = 3


def reasons_by_label(relation: Relation, data: DialogueSet, scenes: Scenes) -> Iterator[str]:
    """Yield why a relation says nothing about a turn, ``""`` where it says something.

    Of dialogues where every turn has a label: turn by turn, or at the last turn where the relation
    edits whole dialogues. Of tool calls, which are no running total, at each turn that has one.
    """
    for dialogue in data.dialogues:
        last = len(dialogue.turns) - 1
        labels = [scenes.kind.label(dialogue, index) for index in range(last + 1)]
        if scenes.kind.needs_earlier and None in labels:
            continue
        for index in [last] if relation.unit == "dialogue" else range(last + 1):
            if labels[index] is not None:
                begun = begin(relation, scenes.labelled(relation.name, dialogue, index))
                yield begun.reason if isinstance(begun, Inapplicable) else ""


def why_hopeless(relation: Relation, data: DialogueSet, scenes: Scenes) -> str:
    """Say why no turn of the data can satisfy a relation; ``""`` where one does, or may.

    The first turn that does ends the search. Without labels only the data as a whole can tell.
    """
    if why := relation.impossible(data):
        return (
            f"the relation {relation.name!r} can say nothing about the data {data.name!r} (split "
            f"{data.split}): {why}"
        )
    found: Counter[str] = Counter()
    for reason in reasons_by_label(relation, data, scenes):
        if not reason:
            return ""
        found[reason] += 1
    if not found:
        return ""
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{count:,} x {reason}" for reason, count in ranked[:_MOST_REASONS]]
    more = len(ranked) - _MOST_REASONS
    told += [f"{more} other reasons"] if more > 0 else []
    return (
        f"the relation {relation.name!r} applies to no {relation.unit} of {data.name!r} (split "
        f"{data.split}, {found.total():,} {relation.unit}s with labels): {'; '.join(told)}"
    )
