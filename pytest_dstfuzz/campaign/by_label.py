"""Judge each slot that changes by the label: was right, becomes right, or wrong either way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_dstfuzz.campaign.folding import Folding
from pytest_dstfuzz.campaign.results import ByLabel
from pytest_dstfuzz.dialogue.dialogues import Context, SlotChange
from pytest_dstfuzz.dialogue.outcome import Outcome


def folded_label(
    folding: Folding, label: Outcome, clean: Outcome, found: Outcome, asked: Context
) -> Outcome:
    """Return a label in the words of two answers: each text as that of an answer that agrees.

    Args:
        folding: when two texts say the same.
        label: as the data has it.
        clean: the answer that is held against.
        found: the other answer, under the paths of the clean one. Where both agree with the label
            in other words, this one counts.
        asked: the clean context.
    """
    if folding.exact:
        return label
    if folding.agree(label, found, asked):
        return found
    if folding.agree(label, clean, asked):
        return clean
    by_found, by_clean = (folding.under(one, label) for one in (found, clean))
    told = {path: text for path, text in by_found.items() if path not in clean}
    for path in {**clean, **found}:
        own, right = (found, by_found) if path in found else (clean, by_clean)
        if path in right:
            same = folding.compare(path, own[path], right[path], asked).same
            told[path] = own[path] if same else right[path]
        elif path in clean and path in by_clean:
            same = folding.compare(path, clean[path], by_clean[path], asked).same
            told[path] = clean[path] if same else by_clean[path]
    return Outcome(told)


def judge_by_label(label: Outcome, changes: Iterable[SlotChange]) -> Mapping[str, ByLabel]:
    """Return what a label, in the words of both answers, says of each slot that changes.

    >>> label = Outcome({"area": "north", "food": "thai"})
    >>> changes = [SlotChange("area", "south", "north"), SlotChange("food", "thai", None)]
    >>> judge_by_label(label, changes)
    {'area': 'corrected', 'food': 'right-to-wrong'}
    """
    found: dict[str, ByLabel] = {}
    for change in changes:
        right = label.get(change.slot)
        found[change.slot] = "wrong-to-wrong"
        if change.before == right:
            found[change.slot] = "right-to-wrong"
        elif change.after == right:
            found[change.slot] = "corrected"
    return found
