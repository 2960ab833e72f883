"""Words of the user's that a reply repeats: they are none of what it says.

A bot that repeats a slip (``The pooool closes at 10 pm.``) says what it says without it, and one
that begins with the question's words (``Your order?``, ``About the order:``) says no more than one
that does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache, partial
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Word, listed, match_case, take_apart, word_list

#: Share of their words that two utterances have in common where one is the other with slips.
_ONE_UTTERANCE: Final = 0.4
#: Words that may stand beside the user's if a reply begins with those.
_BESIDE: Final = listed("about regarding concerning re question asked ask asking wanted know")
#: An opening with one of these answers the question.
_ANSWERS: Final = listed("yes no not never none nothing nobody neither nor sure ok okay without")
_OPENING: Final = re.compile(r"\s*([^:?!.\n]{1,80})[:?](?=\s)\s*")


def without_slips(reply: str, clean: Context, seen: Context, known: str = "") -> str:
    """Return a reply with the user's own words for those that edits made of them.

    Args:
        reply: to ``seen``.
        clean: the context as it was.
        seen: the one with edits.
        known: a reply to ``clean``: what stands in it, too, is no repeated slip.

    >>> from pytest_dstfuzz.dialogue.dialogues import Exchange
    >>> was, is_ = (Context((Exchange("", f"Is the {word} open?"),)) for word in ("pool", "pooool"))
    >>> without_slips("The pooool is open.", was, is_)
    'The pool is open.'
    """
    if clean.user_utterances == seen.user_utterances:
        return reply
    for typed, meant in _slips(clean, seen):
        found = re.compile(rf"(?<!\w){re.escape(typed)}(?!\w)", re.IGNORECASE)
        if found.search(reply) and not found.search(known):
            reply = found.sub(partial(_put_back, meant), reply)
    return reply


def _put_back(meant: str, match: re.Match[str]) -> str:
    return match_case(match[0], meant)


@lru_cache(maxsize=1 << 12)
def _slips(clean: Context, seen: Context) -> tuple[tuple[str, str], ...]:
    """Return what was typed and what it was, the longest first, of all utterances of the user."""
    if len(clean.exchanges) != len(seen.exchanges):
        return ()
    both = zip(clean.user_utterances, seen.user_utterances, strict=True)
    found = {
        typed: meant for pair in both if pair[0] != pair[1] for typed, meant in _changed(*pair)
    }
    return tuple(sorted(found.items(), key=lambda item: (-len(item[0]), item[0])))


def _changed(clean: str, seen: str) -> Iterator[tuple[str, str]]:
    were, are = take_apart(clean).words, take_apart(seen).words
    matcher = SequenceMatcher(None, [w.lower for w in were], [w.lower for w in are], autojunk=False)
    if matcher.ratio() < _ONE_UTTERANCE:
        return
    said = {word.lower for word in were}
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind != "replace":
            continue
        pairs = zip(were[first:last], are[begin:end], strict=False)
        if last - first == end - begin:
            yield from ((new.lower, old.lower) for old, new in pairs if new.lower not in said)
        elif any(word.lower not in said for word in are[begin:end]):
            yield _spanned(seen, are[begin:end]), _spanned(clean, were[first:last])


def _spanned(text: str, words: tuple[Word, ...]) -> str:
    return text[words[0].start : words[-1].end].lower()


@lru_cache(maxsize=1 << 14)
def without_echo(reply: str, question: str) -> str:
    """Return a reply without an opening that only repeats words of the question.

    >>> without_echo("Your order? It is on its way.", "Where is my order?")
    'It is on its way.'
    >>> without_echo("Two sizes: small and large.", "Which sizes are there?")
    'Two sizes: small and large.'
    """
    opening = _OPENING.match(reply)
    if opening is None or not reply[opening.end() :].strip():
        return reply
    words = set(word_list(opening[1]))
    repeated = words & set(word_list(question))
    others = words - repeated - _BESIDE - set(load_lexicon().stop_words)
    if repeated and not others and not words & _ANSWERS:
        return reply[opening.end() :]
    return reply
