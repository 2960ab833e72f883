"""The words a TRADE network knows, in an order that makes its output layer small."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.trackers.tokenise import tokenise, usual_spellings

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

        Returns:
            one number for each word: its own when it can be generated, otherwise
            ``outputs + k`` for the k-th different word that cannot; and these words.
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


def build_vocabulary(
    utterances: Iterable[str],
    values: Iterable[str],
    slots: Iterable[str],
    min_count: int = 2,
) -> Vocabulary:
    """Build the vocabulary from a training split alone.

    Args:
        utterances: what was said; a word is kept when seen ``min_count`` times.
        values: value of each mentioned slot of each turn; all their words are kept.
        slots: ``domain-slot`` names; their words are kept.
        min_count: see ``utterances``.
    """
    counts = Counter(word for text in utterances for word in tokenise(text))
    said = Counter(values)
    value_words = {word for value in said for word in tokenise(value)}
    ordered = tuple(sorted(slots))
    slot_words = {word for slot in ordered for word in tokenise(slot.replace("-", " "))}
    others = {word for word, count in counts.items() if count >= min_count} | slot_words
    return Vocabulary(
        words=(
            *SPECIAL_WORDS,
            *sorted(value_words),
            *sorted(others - value_words - set(SPECIAL_WORDS)),
        ),
        outputs=len(SPECIAL_WORDS) + len(value_words),
        slots=ordered,
        spellings=usual_spellings(said),
    )


def history_words(context: Context, limit: int) -> tuple[str, ...]:
    """Return the words of all utterances, each after its speaker's mark.

    Args:
        context: the dialogue so far.
        limit: most words to return; the newest are kept.
    """
    words: list[str] = []
    for system, user in context.exchanges:
        if system:
            words += (SYSTEM_MARK, *tokenise(system))
        words += (USER_MARK, *tokenise(user))
    return tuple(words[-limit:])
