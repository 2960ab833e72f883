"""For the suite of whoever writes a tracker: can it be tested at all?

::

    from pytest_dstfuzz.testing import check_tracker

    def test_my_tracker_keeps_the_contract():
        check_tracker(track).assert_passed()

Needs neither an option of the plugin nor a running campaign.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import SAMPLE, load_dialogues
from pytest_dstfuzz.dialogue.ontology import complete_ontology
from pytest_dstfuzz.trackers.adapters import as_tracker
from pytest_dstfuzz.trackers.conformance import Conformance, Finding
from pytest_dstfuzz.trackers.conformance import check_tracker as _check

__all__ = ["Conformance", "Finding", "check_tracker"]


def check_tracker(
    tracker: object,
    dialogues: DialogueSet | Iterable[Dialogue] | str | Path = SAMPLE,
    *,
    batch_size: int = 64,
    repeatable: bool | None = None,
) -> Conformance:
    """Put all checks of the conformance kit to a tracker, and return what they found.

    It is asked for each turn once, and for some of them again and again, in other orders and
    batches: some 500 contexts more.

    Args:
        tracker: a tracker, or whatever the plugin takes for one: a function from a context to
            ``{slot: value}``, an object with ``reset()`` and ``update()``, ...
        dialogues: what to ask for: loaded or built ones, a path, or the name of a data set;
            those that ship by default.
        batch_size: contexts that a run would ask for at once.
        repeatable: whether it must give the same answer each time; ``None`` = what it says.

    Raises:
        UserError: there are no turns, or ``tracker`` is no tracker.
        DataError: the dialogues cannot be read.
    """
    if isinstance(dialogues, str | Path):
        data = load_dialogues(dialogues)
    elif isinstance(dialogues, DialogueSet):
        data = dialogues
    else:
        own = tuple(dialogues)
        data = DialogueSet("dialogues", "test", own, complete_ontology(None, own, "plain"))
    made = as_tracker(tracker, normalisation=data.normalisation)
    return _check(made, data, batch_size, repeatable=repeatable)
