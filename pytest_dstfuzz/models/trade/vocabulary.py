"""The words a TRADE network knows, in an order that makes its output layer small."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Context, Dialogue
from pytest_dstfuzz.models.tokenise import tokenise, usual_spellings

#: Marks put before each utterance of a history.
SYSTEM_MARK = "<sys>"
USER_MARK = "<usr>"
PAD, UNKNOWN, END = 0, 1, 2
SPECIAL_WORDS = ("<pad>", "<unk>", "<end>", SYSTEM_MARK, USER_MARK)


@dataclass(frozen=True)
class Vocabulary:
    """Words by number: special ones, then those of slot values, then the other ones.

    Only the first ``outputs`` words can be generated; any word of the history can be
    copied. TRADE generates from the whole vocabulary, but no target in the training
    split lies outside of the words of its values, so the rest would cost and add nothing.
    """

    words: tuple[str, ...]
    outputs: int
    slots: tuple[str, ...]
    #: Value words joined by spaces -> the value as the labels write it.
    spellings: Mapping[str, str]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Word -> its number."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """Domains of the slots, sorted."""
        return tuple(sorted({slot.partition("-")[0] for slot in self.slots}))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Slot names without their domains, sorted."""
        return tuple(sorted({slot.partition("-")[2] for slot in self.slots}))

    def fingerprint(self) -> str:
        """Return a short text that another vocabulary does not have."""
        parts = [self.words, self.outputs, self.slots, sorted(self.spellings.items())]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return f"{len(self.words)} words, sha256 {digest[:16]}"

    def encode(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of words; unknown ones give ``UNKNOWN``."""
        numbers = self.numbers
        return [numbers.get(word, UNKNOWN) for word in words]

    def copy_numbers(self, words: Sequence[str]) -> tuple[list[int], list[str]]:
        """Number the words of one history for copying.

        A word that can be generated has its own number, the k-th different one that cannot
        ``outputs + k``; these words come second.
        """
        numbers, local = self.numbers, dict[str, int]()
        result = []
        for word in words:
            number = numbers.get(word, self.outputs)
            if number >= self.outputs:
                number = self.outputs + local.setdefault(word, len(local))
            result.append(number)
        return result, list(local)

    def value_text(self, words: Sequence[str]) -> str:
        """Return the value that generated words stand for, as labels write it."""
        text = " ".join(words)
        return self.spellings.get(text, text)


def training_vocabulary(dialogues: Sequence[Dialogue]) -> Vocabulary:
    """Build the vocabulary of labelled dialogues, those of a training split alone.

    Slots are those that ever have a value. It has the words that were said twice, and all of
    values and of the names of slots.
    """
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    states = [turn.state for turn in turns if turn.state]
    texts = (text for turn in turns for text in (turn.system, turn.user))
    counts = Counter(word for text in texts for word in tokenise(text))
    values = Counter(value for state in states for value in state.values() if value != DONTCARE)
    slots = tuple(sorted({slot for state in states for slot in state}))
    value_words = {word for value in values for word in tokenise(value)}
    others = {word for slot in slots for word in tokenise(slot.replace("-", " "))}
    others |= {word for word, count in counts.items() if count > 1}
    others -= value_words | set(SPECIAL_WORDS)
    return Vocabulary(
        words=(*SPECIAL_WORDS, *sorted(value_words), *sorted(others)),
        outputs=len(SPECIAL_WORDS) + len(value_words),
        slots=slots,
        spellings=usual_spellings(values),
    )


def history_words(context: Context, limit: int) -> tuple[str, ...]:
    """Return the newest words of all utterances, each of which comes after its speaker's mark."""
    words: list[str] = []
    for system, user in context.exchanges:
        if system:
            words += (SYSTEM_MARK, *tokenise(system))
        words += (USER_MARK, *tokenise(user))
    return tuple(words[-limit:])
