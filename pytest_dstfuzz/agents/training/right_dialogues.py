"""The dialogues that a tracker gets right at every turn, and those that an agent never sees.

On a dialogue that is right throughout, a failure is the perturbation's doing. An agent is
trained on 80 % of them; figures are taken on the other 20 %.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pytest_dstfuzz.config.rates import percent
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.evaluate import Evaluation, evaluate
from pytest_dstfuzz.trackers.preflight import preflight
from pytest_dstfuzz.trackers.tracker import Tracker

#: Told what is going on, a line at a time.
Say = Callable[[str], None]
#: Share of the dialogues that is held out.
HELD_OUT: Final = 0.2
#: Between lines that say how far something is.
SECONDS_BETWEEN_LINES: Final = 15.0


class Paced:
    """Passes on a line now and then, at most one in so many ``seconds`` (``None`` = the usual)."""

    def __init__(self, say: Say, seconds: float | None = None) -> None:
        self._say = say
        self._seconds = SECONDS_BETWEEN_LINES if seconds is None else seconds
        self._next = time.monotonic() + self._seconds

    def __call__(self, line: str) -> None:
        """Pass a line on, when it is time to."""
        if time.monotonic() >= self._next:
            self._say(line)
            self._next = time.monotonic() + self._seconds


@dataclass(frozen=True, slots=True)
class RightDialogues:
    """What a tracker got right."""

    #: The dialogues that are right at every turn, split by split, in data order; ontology
    #: and cue words are those of the first split.
    data: DialogueSet
    evaluations: tuple[Evaluation, ...]  #: One for each split; of one without a label none.
    unlabelled: int = 0  #: Dialogues without a label that were taken as well.


def right_dialogues(
    tracker: Tracker,
    splits: Sequence[DialogueSet],
    batch_size: int,
    say: Say,
    *,
    unlabelled: bool = False,
) -> RightDialogues:
    """Find the dialogues that the tracker gets right at every turn that has a label.

    The tracker is checked first, see `preflight`. With ``unlabelled``, dialogues without a label
    are taken too: there its own clean answers are all that can change.
    """
    first = splits[0]
    last_turns = [dialogue.context(len(dialogue.turns) - 1) for dialogue in first.dialogues]
    preflight(tracker, last_turns, ontology=first.ontology)
    evaluations = []
    kept: list[Dialogue] = []
    without = 0
    for data in splits:
        right = {d.id for d in data.dialogues if unlabelled and not _has_labels(d)}
        without += len(right)
        if len(right) < len(data.dialogues):
            evaluations.append(_evaluated(tracker, data, batch_size, say))
            right |= set(evaluations[-1].right_dialogues)
        kept += [dialogue for dialogue in data.dialogues if dialogue.id in right]
    if not kept:
        raise UserError("the tracker gets no dialogue right at every turn: nothing to perturb")
    return RightDialogues(joined(splits, kept), tuple(evaluations), without)


def joined(splits: Sequence[DialogueSet], dialogues: Sequence[Dialogue]) -> DialogueSet:
    """Return some dialogues of several splits together; all else is as the first split has it."""
    counted = Counter(dialogue.id for dialogue in dialogues)
    if twice := next((name for name, count in counted.items() if count > 1), None):
        raise UserError(f"the dialogue {twice!r} is in two of the splits")
    name = "+".join(data.split for data in splits)
    return replace(splits[0], split=name, dialogues=tuple(dialogues))


def unlabelled(dialogues: Sequence[Dialogue]) -> str:
    """Return what a policy says of its dialogues without labels; ``""`` where all have some."""
    without = sum(not _has_labels(dialogue) for dialogue in dialogues)
    if not without:
        return ""
    return f" ({without} of {len(dialogues)} without labels: the tracker's own clean answers)"


def held_out(data: DialogueSet) -> tuple[DialogueSet, DialogueSet]:
    """Part dialogues into those to train on and those held out, each in data order."""
    drawn = stream(0, "agent", "split").permutation(len(data.dialogues)).tolist()
    count = round(HELD_OUT * len(drawn))
    if not 0 < count < len(drawn):
        raise UserError(
            f"{len(drawn)} dialogues cannot be parted into some to train on and "
            f"{percent(HELD_OUT, 0)} held out"
        )

    def part(places: Sequence[int]) -> DialogueSet:
        return replace(data, dialogues=tuple(data.dialogues[place] for place in sorted(places)))

    return part(drawn[count:]), part(drawn[:count])


def _has_labels(dialogue: Dialogue) -> bool:
    return any(turn.state is not None for turn in dialogue.turns)


def _evaluated(tracker: Tracker, data: DialogueSet, batch_size: int, say: Say) -> Evaluation:
    tell = Paced(say)
    result = evaluate(
        tracker,
        data,
        batch_size,
        lambda done, whole: tell(f"{data.split}: {done} of {whole} turns predicted"),
    )
    say(
        f"{data.name} {data.split}: joint goal accuracy "
        f"{percent(result.joint_goal_accuracy)}, "
        f"{len(result.right_dialogues)} of {result.dialogues} dialogues right at every turn"
        + (f" of the {result.turns} with labels" if result.unlabelled else "")
    )
    return result
