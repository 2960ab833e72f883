"""The dialogues used to measure a trained bot. They must not be used for its training."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pytest_dstfuzz import Dialogue, DialogueSet, UserError
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.repair.trainable import NOTHING


class MeasuredDialogues:
    """Finds dialogues of other data that are also among the measured dialogues.

    Two dialogues are the same if they have the same id, or if the user texts are equal up to the
    end of the shorter dialogue. Case and punctuation do not matter. A dialogue of one turn is only
    the same as another one of one turn, because many dialogues begin alike.
    """

    def __init__(self, data: DialogueSet) -> None:
        self.data = data
        self.ids = frozenset(data.ids)
        self._known = {_said(one): one.id for one in data.dialogues}
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for said in self._known:
            self._by_first.setdefault(said[0], []).append(said)

    def twin(self, dialogue: Dialogue) -> str | None:
        """Return the id of a measured dialogue with the same texts, or ``None``."""
        said = _said(dialogue)
        twins = (other for other in self._by_first.get(said[0], ()) if _same(said, other))
        return next(map(self._known.__getitem__, twins), None)


def refuse_measured(
    dialogues: Iterable[Dialogue], measured: DialogueSet, option: str = "--measured"
) -> None:
    """Refuse the dialogues of a report if the trained bot is measured on any of them.

    Raises:
        UserError: the bot is measured on a dialogue of the report.
    """
    known = MeasuredDialogues(measured)
    for one in dialogues:
        if one.id in known.ids:
            why = f"has the dialogue {one.id!r}"
        elif other := known.twin(one):
            why = f"has the texts of {one.id!r} in the dialogue {other!r}"
        else:
            continue
        raise UserError(
            f"the data that measures the trained bot ({option} {measured.name}, split "
            f"{measured.split}) {why} of the report: test the bot on other dialogues, such as with "
            "--dst-split=train, and export that report"
        )


def without_measured(
    data: DialogueSet, measured: DialogueSet, name: str, progress: Callable[[str], None]
) -> DialogueSet:
    """Return training data without dialogues whose users say the same as in a measured dialogue.

    ``name`` is the value of ``--measured``.

    Raises:
        UserError: a dialogue has the id of a measured dialogue.
    """
    known = MeasuredDialogues(measured)
    if shared := known.ids.intersection(data.ids):
        raise UserError(
            f"the dialogue {min(shared)!r} of the split {data.split} is also among those that "
            f"measure the tracker (--measured {name}, split {measured.split}): train on other "
            f"dialogues, or write --measured {NOTHING} if no recorded dialogues measure it"
        )
    kept = [one for one in data.dialogues if known.twin(one) is None]
    if left_out := len(data.dialogues) - len(kept):
        progress(
            f"split {data.split}: {format_count(left_out, 'dialogue')} left out, whose users say "
            f"the same as in one of {measured.name}, split {measured.split}"
        )
    return replace(data, dialogues=kept)


def _said(dialogue: Dialogue) -> tuple[str, ...]:
    return tuple(
        " ".join(word_list(unicodedata.normalize("NFKC", turn.user))) for turn in dialogue.turns
    )


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two dialogues are equal up to the end of the shorter dialogue."""
    size = min(len(one), len(other))
    return one[:size] == other[:size] and (size > 1 or len(one) == len(other))
