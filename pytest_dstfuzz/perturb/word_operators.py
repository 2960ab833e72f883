"""The operators of the three word-level transformations: what may be done to which word.

Each is a pure function of words in lower case and, where it needs to know more, of what the
validity profile allows; `operator` says what each kind of them is asked. The examples are run
as tests, with the policies ``strict`` and ``edit_rate`` over the shipped lexicon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.perturb.words import listed
from pytest_dstfuzz.transformations import operator

if TYPE_CHECKING:
    from pytest_dstfuzz.perturb.edit_policy import EditPolicy

#: Words whose loss leaves every slot as it was: articles, forms of `be`, auxiliaries of
#: polite requests, `I`. No pronoun that points to a value, nothing that asks or negates.
_DROPPABLE_STOP_WORDS: Final = listed(
    "a an the i am is are be been being will would could can very so just too"
)
#: Other words of that kind: politeness, greetings, emphasis.
_DROPPABLE_WORDS: Final = _DROPPABLE_STOP_WORDS | listed(
    """please kindly thanks hello hi hey oh um uh er erm hmm well really actually basically
    honestly simply truly hopefully anyway maybe perhaps possibly great nice wonderful awesome
    some"""
)


@operator("word_insert", "repeat")
def repeat(word: str) -> bool:
    """Say a word twice.

    >>> repeat("need")
    True
    """
    return bool(word)


@operator("word_insert", "insert")
def filler(policy: EditPolicy) -> tuple[str, ...]:
    """Insert a filler or a stop word.

    >>> filler(strict)[:3], "not" in filler(strict), "not" in filler(edit_rate)
    (('um', 'uh', 'er'), False, True)
    """
    return policy.fillers


@operator("word_insert", "insert")
def emoji(policy: EditPolicy) -> tuple[str, ...]:
    """Insert an emoji.

    >>> emoji(strict)[:3]
    ('🙂', '😀', '😃')
    """
    return policy.emoji


@operator("word_insert", "insert")
def mlm(left: str, right: str, policy: EditPolicy) -> tuple[str, ...]:
    """Insert a word that a masked language model proposes there.

    >>> mlm("need", "a", strict), mlm("need", "a", edit_rate)[:3]
    (('just', 'please'), ('me', 'book', 'for'))
    """
    if not policy.strict:
        return policy.lexicon.insertions(left, right)
    return tuple(filter(policy.insertable, policy.lexicon.insertions_strict(left, right)))


@operator("word_replace", "respell")
def misspelling(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Misspell a word as people often do.

    >>> misspelling("restaurant", strict)
    ('restaraunt', 'restaurent', 'restraunt', 'resturant')
    """
    known = policy.lexicon.misspellings.get(word, ())
    return tuple(new for new in known if policy.respells(word, new))


@operator("word_replace", "replace")
def synonym(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Put a dictionary synonym in the place of a word.

    >>> synonym("assist", strict), synonym("not", strict)
    (('help',), ())
    """
    if policy.strict:
        return _keeps_the_meaning(word, policy.lexicon.synonyms(word), policy)
    return tuple(new for new in policy.lexicon.synonyms_all(word) if new != word)


@operator("word_replace", "replace")
def neighbour(word: str, policy: EditPolicy) -> tuple[str, ...]:
    """Put a neighbour in an embedding space in the place of a word.

    >>> neighbour("monday", strict), neighbour("monday", edit_rate)[:2]
    ((), ('saturday', 'sunday'))
    """
    if policy.strict:
        return _keeps_the_meaning(word, policy.lexicon.neighbours_strict(word), policy)
    return tuple(new for new, _ in policy.lexicon.neighbours(word) if new != word)


def _keeps_the_meaning(word: str, found: tuple[str, ...], policy: EditPolicy) -> tuple[str, ...]:
    """Return what of a reviewed table may stand for a word in an utterance."""
    lexicon = policy.lexicon
    if word in lexicon.stop_words or lexicon.majority_pos(word) in {None, "function"}:
        return ()
    if lexicon.frequency_rank(word) is None:
        return ()  # Rather a typing error of the user's than the word: `book it foe 2 people`.
    # What nobody says in a request hardly has the sense that is meant: `psyche`.
    said = (new for new in found if lexicon.frequency_rank(new) is not None)
    return tuple(new for new in said if policy.replaces(word, new))


@operator("word_drop", "drop")
def stop_word(word: str, policy: EditPolicy) -> bool:
    """Leave a stop word out.

    >>> stop_word("the", strict), stop_word("not", strict), stop_word("not", edit_rate)
    (True, False, True)
    """
    return word in (_DROPPABLE_STOP_WORDS if policy.strict else policy.lexicon.stop_words)


@operator("word_drop", "drop")
def any_word(word: str, policy: EditPolicy) -> bool:
    """Leave a word of any kind out.

    >>> any_word("please", strict), any_word("taxi", strict), any_word("taxi", edit_rate)
    (True, False, True)
    """
    return not policy.strict or word in _DROPPABLE_WORDS
