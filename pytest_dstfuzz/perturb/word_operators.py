"""The sub-operators of the three word-level transformations.

Each has a function that lists its places in reading order and one that makes the edit.
A place is the index of a word or of a gap (gap i is before word i).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_dstfuzz.perturb.draft import (
    FREE,
    TYPO,
    Draft,
    EditResult,
    drop_word,
    insert_after,
    insert_before,
    pick,
    replace_word,
)
from pytest_dstfuzz.perturb.edit_policy import EditPolicy
from pytest_dstfuzz.perturb.words import match_case


def gaps(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the gaps in which a word may be put."""
    if not draft.tokens or (rules.strict and draft.quota < 1):
        return
    for index, token in enumerate(draft.tokens):
        if token.open:
            yield index
    if draft.open_end:
        yield len(draft.tokens)


def word_remoteness(draft: Draft, place: int) -> tuple[int, bool]:
    """Return how far a word is from a slot value, words that say what it is for first."""
    token = draft.tokens[place]
    return token.distance, token.role != TYPO


def gap_remoteness(draft: Draft, place: int) -> tuple[int, bool]:
    """Return how far the gap before a word is from a slot value; a word beside it is 1 away."""
    sides = draft.tokens[max(place - 1, 0) : place + 1]
    return 1 + min(token.distance for token in sides), all(t.role != TYPO for t in sides)


def word_of_word(draft: Draft, place: int) -> tuple[int]:  # noqa: ARG001 - see `Operator.words`
    """Return the word itself."""
    return (place,)


def word_of_gap(draft: Draft, place: int) -> tuple[int]:
    """Return the word beside a gap that is nearer to a slot value."""
    sides = range(max(place - 1, 0), min(place + 1, len(draft.tokens)))
    return (min(sides, key=lambda index: draft.tokens[index].distance),)


def filler_gaps(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the gaps for a filler; a user's locks may leave none to put there."""
    return gaps(draft, rules) if rules.fillers else iter(())


def emoji_gaps(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the gaps for an emoji; a user's locks or lexicon may leave none."""
    return gaps(draft, rules) if rules.emoji else iter(())


def insert_filler(draft: Draft, rules: EditPolicy, place: int, choice: float) -> EditResult:
    """Insert a filler or a stop word."""
    word = rules.fillers[pick(choice, len(rules.fillers))]
    return insert_before(draft, place, word, ("word_insert", "filler"))


def insert_emoji(draft: Draft, rules: EditPolicy, place: int, choice: float) -> EditResult:
    """Insert an emoji."""
    word = rules.emoji[pick(choice, len(rules.emoji))]
    return insert_before(draft, place, word, ("word_insert", "emoji"))


def proposal_gaps(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the gaps for which the masked language model proposes a word."""
    return (place for place in gaps(draft, rules) if rules.proposals(*_sides(draft, place)))


def insert_proposal(draft: Draft, rules: EditPolicy, place: int, choice: float) -> EditResult:
    """Insert a word that the masked language model proposes there."""
    words = rules.proposals(*_sides(draft, place))
    word = words[pick(choice, len(words))]
    return insert_before(draft, place, word, ("word_insert", "mlm"))


def _sides(draft: Draft, place: int) -> tuple[str, str]:
    """Return the words on both sides of a gap, ``""`` at an edge; of an inserted phrase, one."""
    tokens = draft.tokens
    left = tokens[place - 1].lower.split()[-1] if place else ""
    return left, tokens[place].lower.split()[0] if place < len(tokens) else ""


def repeatable(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the words that may be said twice."""
    if rules.strict and draft.quota < 1:
        return
    tokens = draft.tokens
    for index, token in enumerate(tokens):
        open_after = tokens[index + 1].open if index + 1 < len(tokens) else draft.open_end
        if open_after and rules.repeatable(token):
            yield index


def repeat(draft: Draft, rules: EditPolicy, place: int, choice: float) -> EditResult:  # noqa: ARG001
    """Say a word twice; the second time in lower case, but for ``I``."""
    token = draft.tokens[place]
    word = token.text if token.lower == "i" else token.lower
    # The first of the two stays as it is, else it would no longer be said twice.
    kept = token._replace(touched=True, typos=0)
    draft = draft._replace(tokens=(*draft.tokens[:place], kept, *draft.tokens[place + 1 :]))
    return insert_after(draft, place, word, ("word_insert", "repeat"))


def replaceable(kind: str) -> Callable[[Draft, EditPolicy], Iterator[int]]:
    """Return the generator of the words which have a replacement of one kind."""

    def places(draft: Draft, rules: EditPolicy) -> Iterator[int]:
        if rules.strict and draft.quota < 1:
            return
        for index, token in enumerate(draft.tokens):
            # A common misspelling is a typing error: cue words of some length take it.
            allowed = rules.typable(token) if kind == "misspelling" else token.role == FREE
            untouched = not (rules.strict and token.touched)
            if allowed and untouched and rules.replacements(kind, token.lower):
                yield index

    return places


def replace(kind: str) -> Callable[[Draft, EditPolicy, int, float], EditResult]:
    """Return the maker of replacements of one kind, in the case of the word replaced."""

    def make(draft: Draft, rules: EditPolicy, place: int, choice: float) -> EditResult:
        token = draft.tokens[place]
        words = rules.replacements(kind, token.lower)
        word = match_case(token.text, words[pick(choice, len(words))])
        return replace_word(draft, place, word, ("word_replace", kind))

    return make


def droppable_stop_words(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the stop words that may go."""
    return _droppable(draft, rules, stop_word=True)


def droppable_words(draft: Draft, rules: EditPolicy) -> Iterator[int]:
    """Yield the words of any kind that may go."""
    return _droppable(draft, rules, stop_word=False)


def _droppable(draft: Draft, rules: EditPolicy, *, stop_word: bool) -> Iterator[int]:
    if rules.strict and (draft.quota < 1 or len(draft.tokens) < 2):
        return
    for index, token in enumerate(draft.tokens):
        untouched = not (rules.strict and token.touched)
        if token.role == FREE and untouched and rules.droppable(token.lower, stop_word=stop_word):
            yield index


def drop(kind: str) -> Callable[[Draft, EditPolicy, int, float], EditResult]:
    """Return the maker of drops, recorded as ``kind``."""

    def make(draft: Draft, rules: EditPolicy, place: int, choice: float) -> EditResult:  # noqa: ARG001
        made = drop_word(draft, place, ("word_drop", kind))
        tokens = made.draft.tokens
        if not rules.strict or place == len(tokens):
            return made
        # One edit a gap: nothing is put where a word went, and its neighbours do not join.
        shut = tokens[place]._replace(open=False)
        changed = (*tokens[:place], shut, *tokens[place + 1 :])
        return made._replace(draft=made.draft._replace(tokens=changed))

    return make
