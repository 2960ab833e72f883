"""What the edits of a violation did, in words of the method, and to which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.perturb.edits import source_spans, undo_edits
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.perturb.words import Word, take_apart, word_list

#: Class of edit -> what it is called. Where the edits of a violation are of several classes, the
#: first of them here names the violation: a word more or less says more than a letter.
CLASSES: Final = {
    "word-out": "a word is left out",
    "word-twice": "a word is said twice",
    "word-in": "a word is put in",
    "other-word": "another word is used",
    "short-form": "a word is written short",
    "mark": "a mark is missing or too many",
    "case": "capitals are others",
    "look-alike": "a letter is one that looks alike",
    "typo": "a word is mistyped",
}
#: Transformation, with an operator where that is an exception -> class; all others are typing
#: errors.
_CLASS_OF: Final = {
    "word_insert": "word-in",
    "word_insert/repeat": "word-twice",
    "word_replace": "other-word",
    "word_replace/misspelling": "typo",
    "word_replace/texting": "short-form",
    "word_drop": "word-out",
    "char_insert/punctuation": "mark",
    "char_replace/case": "case",
    "char_replace/look_alike": "look-alike",
    "char_drop/apostrophe": "mark",
    "char_drop/full_stop": "mark",
}


class Edited(NamedTuple):
    """An utterance and the edits in it that a violation is blamed on."""

    clean: str
    text: str
    edits: tuple[Edit, ...]

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Of each edit what it is, and its clean word in lower case, or the one beside it."""
        words = take_apart(self.clean).words or (Word("", 0, 0, ""),)
        found = [(span, _word_at(span, words)) for span in source_spans(self.edits)]
        return tuple(
            (_class_there(edit, span, word), word.lower)
            for edit, (span, word) in zip(self.edits, found, strict=True)
        )

    @property
    def brought(self) -> frozenset[str]:
        """The words, in lower case, that only the edits brought."""
        return frozenset(word_list(self.text)).difference(word_list(self.clean))


def class_of(edit: Edit) -> str:
    """Return what an edit is: one of `CLASSES`.

    >>> class_of(Edit("char_replace", "swap", 0, 2, "th", "ht"))
    'typo'
    >>> class_of(Edit("word_drop", "stop_word", 0, 4, "the ", ""))
    'word-out'
    """
    label = f"{edit.transformation}/{edit.operator}"
    return _CLASS_OF.get(label) or _CLASS_OF.get(edit.transformation, "typo")


def blamed(turn: TurnResult, variant: VariantResult) -> Edited:
    """Return the edits that are to blame, of the smallest version where that is known.

    They are those of the turn, or of the last earlier turn with any where these are to blame.
    """
    plain = variant.plain
    earlier = plain.context_edits
    if earlier and (variant.cause == "context" or not plain.edits):
        text = plain.context[earlier[-1].turn_index]
        return Edited(undo_edits(text, earlier[-1].edits), text, earlier[-1].edits)
    return Edited(turn.user, plain.text, plain.edits)


def _class_there(edit: Edit, span: tuple[int, int], word: Word) -> str:
    """Return what an edit is: a mark in the midst of a word makes it another, as a letter does."""
    found = class_of(edit)
    inside = word.start < span[0] and span[1] < word.end
    return "typo" if found == "mark" and inside and edit.transformation == "char_insert" else found


def _word_at(span: tuple[int, int], words: Sequence[Word]) -> Word:
    """Return the first word that a span of the clean text reaches into, or the nearest one."""
    start, end = span
    return min(words, key=lambda word: max(word.start - end, start - word.end + 1, 0))
