"""Compiles the proposals of the masked language model into tables by neighbouring words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pytest_dstfuzz.perturb.lexicon.lexicon import ANY, context_key
from tools.lexicon.masked_lm import MAX_WORDS, SPECIAL, MaskedModel
from tools.lexicon.vocabulary import plain

#: A pair of neighbours gets an entry when it is seen this often; the model is asked at so
#: many of its places, spread evenly, and the answers are averaged.
MIN_PAIR_COUNT = 10
PLACES = 8
#: A single neighbour gets an entry when its pairs with entries have this many places.
MIN_SINGLE_PLACES = 16
PROPOSALS = 8
STRICT_PROPOSALS = 6
#: A safe word below this probability does not fit here.
MIN_SAFE_PROBABILITY = 2e-4
_CHUNK = 256

Tables = tuple[dict[str, list[str]], dict[str, list[str]]]


def insertion_tables(
    model: MaskedModel, utterances: Sequence[Sequence[str]], safe: Sequence[str]
) -> Tables:
    """Return the table of all proposals, and the table of the safe words alone.

    Keys are those of :func:`~pytest_dstfuzz.perturb.lexicon.lexicon.context_key`, ``*``
    standing for any word.
    """
    sums = _ask(model, _places(utterances))
    usable = [word for word in model.words[len(SPECIAL) :] if plain(word)]
    allowed = frozenset(safe)
    columns = [model.numbers[word] for word in usable]
    proposals: dict[str, list[str]] = {}
    strict: dict[str, list[str]] = {}
    for key, (total, count) in sorted(sums.items()):
        mean = total[columns] / count
        near = set(key.split(" "))
        ranked = [
            (usable[i], float(mean[i]))
            for i in sorted(range(len(usable)), key=lambda i: (-mean[i], usable[i]))
            if usable[i] not in near
        ]
        proposals[key] = [word for word, _ in ranked[:PROPOSALS]]
        fitting = [w for w, p in ranked if w in allowed and p >= MIN_SAFE_PROBABILITY]
        if fitting:
            strict[key] = fitting[:STRICT_PROPOSALS]
    return proposals, strict


def _places(utterances: Sequence[Sequence[str]]) -> dict[str, list[tuple[Sequence[str], int]]]:
    """Return key -> places to insert a word at, for the frequent pairs of neighbours."""
    found: dict[str, list[tuple[Sequence[str], int]]] = defaultdict(list)
    for words in utterances:
        if not 0 < len(words) < MAX_WORDS:
            continue
        edged = ["", *words, ""]
        for at in range(len(words) + 1):
            found[context_key(edged[at], edged[at + 1])].append((words, at))
    frequent = {key: places for key, places in found.items() if len(places) >= MIN_PAIR_COUNT}
    return {
        key: [places[len(places) * n // PLACES] for n in range(min(PLACES, len(places)))]
        for key, places in sorted(frequent.items())
    }


def _ask(
    model: MaskedModel, places: dict[str, list[tuple[Sequence[str], int]]]
) -> dict[str, tuple[Any, int]]:
    """Return key -> summed probabilities and number of places, also for less specific keys."""
    flat = [(key, place) for key, found in places.items() for place in found]
    # Alike lengths are padded little; the sums do not depend on the order of equal keys.
    flat.sort(key=lambda pair: (len(pair[1][0]), pair[0]))
    sums: dict[str, tuple[Any, int]] = {}
    for start in range(0, len(flat), _CHUNK):
        chunk = flat[start : start + _CHUNK]
        answers = model.probabilities([place for _, place in chunk])
        for (key, _), answer in zip(chunk, answers, strict=True):
            left, right = key.split(" ")
            for name in (key, f"{left} {ANY}", f"{ANY} {right}", f"{ANY} {ANY}"):
                total, count = sums.get(name, (0.0, 0))
                sums[name] = (total + answer, count + 1)
    return {
        key: (total, count)
        for key, (total, count) in sums.items()
        if ANY not in key.split(" ") or count >= MIN_SINGLE_PLACES
    }
