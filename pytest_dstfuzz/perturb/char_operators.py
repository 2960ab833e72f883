"""The sub-operators of the three character-level transformations.

A place is a word and a `Slip` in it, or, for dropped blanks, the word after the blank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_dstfuzz.perturb.draft import Draft, Made, join_words, pick, retype
from pytest_dstfuzz.perturb.rules import Rules
from pytest_dstfuzz.perturb.typos import Slip

#: A word and a slip in it.
Place = tuple[int, Slip]


def slips(kind: str) -> Callable[[Draft, Rules], Iterator[Place]]:
    """Return the generator of the slips of one kind."""

    def places(draft: Draft, rules: Rules) -> Iterator[Place]:
        table = rules.typist.slips
        full = rules.strict and draft.quota < 1
        # A word that is misspelled and then parted is no longer the word that it was.
        whole = rules.strict and kind == "punctuation"
        for index, token in enumerate(draft.tokens):
            if rules.typable(token) and not (whole if token.touched else full):
                for slip in table(kind, token.text):
                    yield index, slip

    return places


def slip(transformation: str, kind: str) -> Callable[[Draft, Rules, Place, float], Made]:
    """Return the maker of slips of one kind."""

    def make(draft: Draft, rules: Rules, place: Place, choice: float) -> Made:  # noqa: ARG001
        index, (start, end, choices) = place
        after = choices[pick(choice, len(choices))]
        return retype(draft, index, (start, end), after, (transformation, kind))

    return make


def blanks(draft: Draft, rules: Rules) -> Iterator[int]:
    """Yield the words whose blank before them may go."""
    tokens = draft.tokens
    if rules.strict and draft.quota < 2:
        return
    for index in range(1, len(tokens)):
        if rules.joinable(tokens[index - 1], tokens[index]):
            yield index


def drop_blank(draft: Draft, rules: Rules, place: int, choice: float) -> Made:  # noqa: ARG001
    """Join a word to the one before it."""
    return join_words(draft, place, ("char_drop", "blank"))
