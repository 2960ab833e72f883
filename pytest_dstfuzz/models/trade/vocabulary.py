"""The vocabulary of a TRADE network, ordered for a small output layer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Context, Dialogue
from pytest_dstfuzz.models.tokenise import tokenise, usual_spellings
from pytest_dstfuzz.models.trade.nearest import NearestWords
from pytest_dstfuzz.models.trade.subwords import Pair, Subwords, join_pieces, learn_merges

#: Marks before each utterance of a history.
SYSTEM_MARK = "<sys>"
USER_MARK = "<usr>"
PAD, UNKNOWN, END = 0, 1, 2
SPECIAL_WORDS = ("<pad>", "<unk>", "<end>", SYSTEM_MARK, USER_MARK)


@dataclass(frozen=True)
class Vocabulary:
    """Words with an index: first special words, then words of slot values, then other words.

    Only the first ``outputs`` words can be generated, but any word of the history can be copied.
    The original TRADE generates from the whole vocabulary. In the training split, all targets are
    words of values, so generating other words would only add cost.
    """

    words: tuple[str, ...]
    outputs: int
    slots: tuple[str, ...]
    #: Value words joined by spaces -> the value in the labels.
    spellings: Mapping[str, str]
    #: Merges of byte-pair encoding. With merges, the "words" are pieces of words.
    merges: tuple[Pair, ...] = ()
    #: Words with their frequencies in training. A word of the user that is not among them is read
    #: as the nearest of them. Without any, all words are read as they are.
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def _nearest(self) -> NearestWords:
        return NearestWords(self.counts)

    @cached_property
    def _subwords(self) -> Subwords:
        return Subwords(self.merges)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Word -> its index."""
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
        """Return a short text that identifies the vocabulary."""
        parts = [self.words, self.outputs, self.slots, sorted(self.spellings.items())]
        if self.merges:
            parts.append(self.merges)
        if self.counts:
            parts.append(sorted(self.counts.items()))
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return f"{len(self.words)} words, sha256 {digest[:16]}"

    def split(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the pieces of words. Marks, and words without any merges, stay whole."""
        if not self.merges:
            return tuple(words)
        split = self._subwords.split
        pieces = ((word,) if word in SPECIAL_WORDS else split(word) for word in words)
        return tuple(piece for of_word in pieces for piece in of_word)

    def history(self, context: Context, limit: int) -> tuple[str, ...]:
        """Return the last ``limit`` pieces of all utterances, as `history_words` marks them."""
        nearest = self._nearest if self.counts else None
        return self.split(history_words(context, limit, nearest))[-limit:]

    def encode(self, words: Sequence[str]) -> list[int]:
        """Return the indices of words, with ``UNKNOWN`` for unknown ones."""
        numbers = self.numbers
        return [numbers.get(word, UNKNOWN) for word in words]

    def copy_numbers(self, words: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the copy indices of a history's words, and the words that cannot be generated.

        A word that can be generated keeps its own index. The k-th distinct other word has the index
        ``outputs + k``.
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
        """Join generated words to a value, in the spelling of the labels."""
        text = join_pieces(words) if self.merges else " ".join(words)
        return self.spellings.get(text, text)


def training_vocabulary(dialogues: Sequence[Dialogue], merges: int = 0) -> Vocabulary:
    """Build the vocabulary of labelled dialogues, which should be a training split.

    The vocabulary has all slots that have a value in any label. Its words are all words that occur
    at least twice, and all words of values and slot names. With ``merges``, it has pieces of words
    instead, from at most this number of merges.
    """
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    states = [turn.state for turn in turns if turn.state]
    texts = (text for turn in turns for text in (turn.system, turn.user))
    counts = Counter(word for text in texts for word in tokenise(text))
    values = Counter(value for state in states for value in state.values() if value != DONTCARE)
    slots = tuple(sorted({slot for state in states for slot in state}))
    value_words = {word for value in values for word in tokenise(value)}
    others = {word for slot in slots for word in tokenise(slot.replace("-", " "))}
    learned = learn_merges(counts, merges)
    if learned:
        split = Subwords(learned).split
        pieces = Counter[str]()
        for word, count in counts.items():
            pieces.update(dict.fromkeys(split(word), count))
        counts = pieces
        value_words, others = (
            {piece for word in words for piece in split(word)} for words in (value_words, others)
        )
    others |= {word for word, count in counts.items() if count > 1}
    others -= value_words | set(SPECIAL_WORDS)
    return Vocabulary(
        words=(*SPECIAL_WORDS, *sorted(value_words), *sorted(others)),
        outputs=len(SPECIAL_WORDS) + len(value_words),
        slots=slots,
        spellings=usual_spellings(values),
        merges=learned,
    )


def history_words(
    context: Context, limit: int, nearest: NearestWords | None = None
) -> tuple[str, ...]:
    """Return the last ``limit`` words of all utterances, with a speaker mark before each one.

    ``nearest`` reads the words of the user. It keeps those that the system has said before.
    """
    words: list[str] = []
    said: set[str] = set()
    for system, user in context.exchanges:
        if system:
            told = tokenise(system)
            said.update(told)
            words += (SYSTEM_MARK, *told)
        own = tokenise(user)
        words += (USER_MARK, *(own if nearest is None else nearest.read(own, said)))
    return tuple(words[-limit:])
