"""Misspellings that are known: how often each is typed for its word, and their share of slips."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pytest_dstfuzz.noise.evidence import Evidence, distinct_slips
from pytest_dstfuzz.noise.find import Slipped, TextCounts
from pytest_dstfuzz.noise.letters import Habits, letter_slips
from pytest_dstfuzz.noise.tables import NoiseKind, Tables

#: Of the forms of a word that were seen: so much is taken off their counts, and so much is added
#: to those of a list; a word counts as if it had been typed so many times more.
_DISCOUNT: Final = 0.75
_LISTED: Final = 0.5
_MORE: Final = 500.0
_ROUNDS: Final = 30
#: Dialogues that make a form known.
_KNOWN: Final = 2

Forms = Mapping[str, Mapping[str, float]]


def known_forms(
    evidence: Evidence, slips: Iterable[Slipped], known: Forms
) -> dict[str, dict[str, float]]:
    """Return word -> misspelled form -> how often it is typed for the word, about.

    Forms of a list, and those that at least two dialogues have.
    """
    seen = distinct_slips(slips)
    forms: dict[str, dict[str, float]] = {w: dict(values) for w, values in known.items()}
    for word, listed in evidence.misspellings.items():
        for form in listed:
            forms.setdefault(word, {}).setdefault(form, 0.0)
            forms[word][form] += value_of(0, evidence.counts.words[word], len(listed))
    for (word, typed), count in seen.items():
        if count >= _KNOWN:
            value = value_of(count, evidence.counts.words[word])
            forms.setdefault(word, {})[typed] = forms.get(word, {}).get(typed, 0.0) + value
    return {word: dict(sorted(forms[word].items())) for word in sorted(forms)}


def value_of(count: float, times: int, listed: int = 0) -> float:
    """Return how often a form is typed for a word: seen ``count`` times, the word ``times``."""
    more = _LISTED / listed if listed else 0.0
    return (max(count - _DISCOUNT, 0.0) + more) / (times + _MORE)


def forms_per_word(forms: Forms, counts: TextCounts) -> float:
    """Return the mean value of the forms of a word, over all words of the texts."""
    total = math.fsum(
        counts.words[word] * math.fsum(values.values()) for word, values in forms.items()
    )
    return total / max(1, sum(counts.words.values()))


def share_of_forms(
    kinds: Sequence[NoiseKind],
    tables: Tables,
    evidence: Evidence,
    slips: Iterable[Slipped],
    per_word: float,
    start: float,
    weight: float,
) -> float:
    """Return the share of slips that are known misspellings, by likelihood.

    Each slip is judged by the forms that the *other* dialogues have, so that a form is no better
    known for having been typed once.

    Args:
        kinds: of slips of letters, with their shares of those, and
        tables: their factors.
        evidence: the texts.
        slips: found in them.
        per_word: see `forms_per_word`.
        start: a share that is known of others, and
        weight: the number of slips that it counts as.
    """
    if not per_word:
        return 0.0
    forms, counts = tables.words["misspelling"], evidence.counts
    scales = {kind.name: kind.scale for kind in kinds}
    habits = Habits(tables.keyboard, tables.confusions)
    pairs = []
    for (word, typed), count in distinct_slips(slips).items():
        by_letters = 0.0
        for slip in letter_slips(word, habits, every=True):
            if slip.put_into(word) == typed:
                known = tables.factors[slip.kind]
                value = math.prod(known.get(feature, 1.0) for feature in slip.features)
                by_letters += scales[slip.kind] * value
        known_for = forms.get(word, {}).get(typed, 0.0)
        times = counts.words[word]
        # Without one of the dialogues; one that is left alone would not make it known.
        left = value_of(count - 1, times) if count > _KNOWN else 0.0
        less = value_of(count, times) - left if count >= _KNOWN else 0.0
        pairs.append((count, by_letters, max(known_for - less, 0.0) / per_word))
    share = start
    total = math.fsum(count for count, *_ in pairs) + weight
    for _ in range(_ROUNDS if total else 0):
        mine = math.fsum(
            count * share * listed / (share * listed + (1 - share) * letters)
            for count, letters, listed in pairs
            if listed or letters
        )
        mine += weight * start
        share = min(max(mine / total, 0.001), 0.95)
    return share
