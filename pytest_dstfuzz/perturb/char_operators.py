"""The sub-operators of the three character-level transformations.

A place is a word and a `Typo` in it, or, for dropped blanks, the word after the blank.
Slips are listed by the word, and only the chosen one is taken out of its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_dstfuzz.perturb.draft import TYPO, Draft, EditResult, join_words, pick, retype
from pytest_dstfuzz.perturb.edit_policy import EditPolicy
from pytest_dstfuzz.perturb.typos import Typo

#: A word and a slip in it.
Place = tuple[int, Typo]
#: A word and all slips in it, at least one.
Places = tuple[int, tuple[Typo, ...]]


def slips(kind: str) -> Callable[[Draft, EditPolicy], Iterator[Places]]:
    """Return the generator of the slips of one kind."""

    def places(draft: Draft, rules: EditPolicy) -> Iterator[Places]:
        table, strict = rules.typist.slips, rules.strict
        full = strict and draft.quota < 1
        # A word that is misspelled and then parted is no longer the word that it was.
        whole = strict and kind == "punctuation"
        for index, token in enumerate(draft.tokens):
            # What `Rules.typable` says, without a call for each word of the utterance.
            if strict and (token.typos < 1 or (whole if token.touched else full)):
                continue
            found = table(kind, token.text)
            if found:
                yield index, found

    return places


def choose_slip(places: list[Places], parameter: float) -> Place:
    """Return the slip that ``parameter`` selects of all slips in all words."""
    rest = pick(parameter, sum([len(found) for _, found in places]))
    for index, found in places:
        if rest < len(found):
            return index, found[rest]
        rest -= len(found)
    raise AssertionError("pick returned no index")


def slip_remoteness(draft: Draft, places: Places) -> tuple[int, bool]:
    """Return how far a word is from a slot value, words that say what it is for first."""
    token = draft.tokens[places[0]]
    return token.distance, token.role != TYPO


def words_of_slips(draft: Draft, places: Places) -> tuple[int, ...]:  # noqa: ARG001 - as above
    """Return the word once for each slip in it."""
    index, found = places
    return (index,) * len(found)


def slip(transformation: str, kind: str) -> Callable[[Draft, EditPolicy, Place, float], EditResult]:
    """Return the maker of slips of one kind."""

    def make(draft: Draft, rules: EditPolicy, place: Place, choice: float) -> EditResult:  # noqa: ARG001
        index, (start, end, choices) = place
        after = choices[pick(choice, len(choices))]
        return retype(draft, index, (start, end), after, (transformation, kind))

    return make


def blanks(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the words whose blank before them may go."""
    tokens = draft.tokens
    if rules.strict and draft.quota < 2:
        return
    for index in range(1, len(tokens)):
        if rules.joinable(tokens[index - 1], tokens[index]):
            yield index


def drop_blank(draft: Draft, rules: EditPolicy, place: int, choice: float) -> EditResult:  # noqa: ARG001
    """Join a word to the one before it."""
    return join_words(draft, place, ("char_drop", "blank"))
