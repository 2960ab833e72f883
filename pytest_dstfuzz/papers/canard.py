"""CANARD's stand-alone rewrites as gold: the words that a person adds are the context needed.

A rewrite says what its question leaves to the context. What it adds, and the clean context has, is
what a question needs; a context that has all of it is equivalent. What a rewrite adds that stands
nowhere in the dialogue (the writers saw the article) is left out.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, answer_of
from pytest_dstfuzz.dialogue.readers.canard import questions
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.lexicon import Lexicon
from pytest_dstfuzz.relations.contexts.questions import AskedQuestion, opening_of, round_of
from pytest_dstfuzz.relations.contexts.texts import read

#: The perturbations of the experiments, in the order of their tables.
PERTURBED: Final = ("DRS", "DRR", "DRD", "DSR", "DSD")
_BLANKS: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Rewrites:
    """What persons made of the questions, each so that it stands alone."""

    data: DialogueSet
    #: By dialogue and turn.
    texts: dict[tuple[str, int], str]
    lexicon: Lexicon

    def differs(self, dialogue: Dialogue, index: int) -> bool:
        """Whether a rewrite says more than its question: by more than case and blanks."""
        texts = self.texts[dialogue.id, index], dialogue.turns[index].user
        one, other = (_BLANKS.sub(" ", text).strip().lower() for text in texts)
        return one != other

    def words(self, text: str) -> frozenset[str]:
        """Return the base forms of the words of a text, but for stop words."""
        return read(text, self.lexicon).content

    def brought(self, dialogue: Dialogue, rounds: tuple[int, ...]) -> frozenset[str]:
        """Return the words of the opening and of rounds."""
        texts = [opening_of(dialogue), *(t for one in rounds for t in round_of(dialogue, one))]
        return frozenset().union(*map(self.words, texts))

    def needed(self, dialogue: Dialogue, index: int) -> frozenset[str]:
        """Return the words that a rewrite adds, as far as the clean context has them."""
        added = self.words(self.texts[dialogue.id, index])
        clean = self.brought(dialogue, tuple(range(index)))
        return (added - self.words(dialogue.turns[index].user)) & clean

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Whether the rounds before a question have all that its rewrite takes from clean ones."""
        needed = self.needed(asked.dialogue, asked.turn)
        return needed <= self.brought(asked.dialogue, asked.before)

    def answered(self, dialogue: Dialogue) -> tuple[int, ...]:
        """Return the turns to which an answer is recorded."""
        return tuple(turn.index for turn in dialogue.turns if answer_of(dialogue, turn.index))


def load_rewrites(path: Path, lexicon: Lexicon) -> Rewrites:
    """Read the dialogues of a file of CANARD, and their rewrites.

    Raises:
        DataError: the file is missing or broken.
    """
    data = load_dialogues(path, "val", layout="canard")
    texts = {
        (name, place): entry.Rewrite
        for name, entries in questions(SourceFile(path.name, path)).items()
        for place, entry in enumerate(entries)
    }
    return Rewrites(data, texts, lexicon)


def half_of(dialogue: Dialogue) -> int:
    """Return the half that a dialogue is in, 0 or 1: by the parity of a hash of its id."""
    return hashlib.sha256(dialogue.id.encode()).digest()[-1] % 2
