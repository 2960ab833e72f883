"""How much of what users say about arguments and slots is locked: a calibration of the locks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.draft import LOCKED
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import take_apart, word_list


@dataclass
class LockShare:
    """Values of labels: how many users say word by word, and how many of those are locked."""

    #: Turns that were looked at, and those of the data with a label that has a value.
    turns: int = 0
    of_turns: int = 0
    values: int = 0
    #: That stand in the user's utterance of the turn, and in an earlier one alone.
    here: int = 0
    before: int = 0
    #: Of all that stand somewhere: locked as in a run; and by their form alone, as dates, numbers
    #: and names are, where no label and no schema has the value.
    locked: int = 0
    by_form: int = 0
    #: Slots of values that stand somewhere and are not locked.
    loose: Counter[str] = field(default_factory=Counter)

    @property
    def said(self) -> int:
        """Values that stand in an utterance of the user."""
        return self.here + self.before


def lock_share(
    data: DialogueSet,
    kind: AnswerKind,
    lexicon: Lexicon,
    user: Sequence[str] = (),
    most: int = 1000,
) -> LockShare:
    """Look at the values of the labels of at most ``most`` turns, spread evenly over the data.

    A value counts where its words stand in an utterance one after the other. It is locked where
    all of them are. ``user`` are the user's own locks.
    """
    guards = Locks(lexicon, data.ontology, data.cue_words, user)
    plain = Locks(lexicon, None, (), user)

    def places() -> Iterator[tuple[Dialogue, int, list[tuple[str, str]]]]:
        for dialogue in data.dialogues:
            for turn in dialogue.turns:
                if values := list(kind.label_values(dialogue, turn.index)):
                    yield dialogue, turn.index, values

    found = LockShare(of_turns=sum(1 for _ in places()))
    step = -(-found.of_turns // most) or 1
    for dialogue, index, values in islice(places(), 0, None, step):
        found.turns += 1
        for slot, text in values:
            found.values += 1
            place = _mention(dialogue, index, text)
            if place is None:
                continue
            at, span = place
            found.here += at == index
            found.before += at < index
            turn = dialogue.turns[at]
            known = kind.locked_values(data, turn, None)
            locked = _is_locked(guards, turn.user, known, turn.system, span)
            found.locked += locked
            found.by_form += _is_locked(plain, turn.user, (), turn.system, span)
            if not locked:
                found.loose[slot] += 1
    return found


def _mention(dialogue: Dialogue, index: int, value: str) -> tuple[int, range] | None:
    """Return the last turn in which the user says a value, and which words of it those are."""
    wanted = word_list(value)
    for at in range(index, -1 if wanted else index, -1):
        words = [word.text.lower() for word in take_apart(dialogue.turns[at].user).words]
        for first in range(len(words) - len(wanted) + 1):
            if words[first : first + len(wanted)] == wanted:
                return at, range(first, first + len(wanted))
    return None


def _is_locked(
    locks: Locks, text: str, values: Sequence[str], system: str, span: Sequence[int]
) -> bool:
    roles = locks.mask(text, take_apart(text), values, system).roles
    return all(roles[index] == LOCKED for index in span)
