"""Fits the kinds of typed text to slips that were found: letters, known misspellings, blanks."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.noise.backoff import Features, Fitted, fit_factors
from pytest_dstfuzz.noise.evidence import Evidence, distinct_slips
from pytest_dstfuzz.noise.find import Slipped, TextCounts
from pytest_dstfuzz.noise.forms import forms_per_word, known_forms, share_of_forms
from pytest_dstfuzz.noise.letters import LETTER_KINDS, Habits, letter_slips
from pytest_dstfuzz.noise.phrases import apostrophe_form, pair_features
from pytest_dstfuzz.noise.tables import FORMAT, ModelFile, NoiseKind, Tables

#: How often a letter is typed for one that is not beside it, to be a habit.
_HABIT: Final = 3
#: Where there are many different words, rarer ones give no occasions: most of them are names.
_RARE: Final = 5
_MANY: Final = 2000
#: Strengths of the prior of which held-out likelihood chooses one.
KAPPAS: Final = (1.0, 3.0, 10.0, 30.0)
#: Slips that the shares of a model to start from weigh as much as.
PRIOR_SLIPS: Final = 20.0


def fit_typing(
    evidence: Evidence,
    slips: Sequence[Slipped] | None = None,
    kappa: float = 3.0,
    prior: ModelFile | None = None,
) -> tuple[tuple[NoiseKind, ...], Tables]:
    """Fit the kinds of typed text, their shares and tables.

    Args:
        evidence: texts, lists, and slips.
        slips: instead of those of the evidence.
        kappa: slips that the coarser level weighs as much as.
        prior: a model to start from, which was fitted to more.
    """
    given = list(evidence.slips if slips is None else slips)
    letters = [slip for slip in given if " " not in slip.word]
    blanks = [slip for slip in given if " " in slip.word]
    seen = distinct_slips(letters)
    known = prior.tables if prior else Tables()
    before = _Before.of(prior)
    habits = Habits(evidence.keyboard, _confusions(seen, evidence.keyboard, known.confusions))
    fitted, numbers = _fit_letters(evidence.counts, seen, habits, kappa, known.factors)
    words = float(sum(evidence.counts.words.values()))
    joined = fit_blanks(evidence.counts, blanks, kappa, words, known.factors.get("blank"))
    forms = known_forms(evidence, letters, known.words.get("misspelling", {}))
    # Every kind is possible, even where it was never seen.
    numbers = {
        name: count + before.slips * before.letters.get(name, 0.0) if prior else count + 0.5
        for name, count in numbers.items()
    }
    kinds = [
        NoiseKind(name, numbers[name] / math.fsum(numbers.values()), found.per_word)
        for name, found in fitted.items()
    ]
    tables = Tables(
        {key: evidence.keyboard[key] for key in sorted(evidence.keyboard)},
        habits.confusions,
        {**{name: found.factors for name, found in fitted.items()}, "blank": joined.factors},
        {"misspelling": forms},
    )
    per_word = forms_per_word(forms, evidence.counts)
    listed = share_of_forms(kinds, tables, evidence, letters, per_word, before.listed, before.slips)
    apart = (len(blanks) + before.slips * before.apart) / max(1.0, len(given) + before.slips)
    shares = [NoiseKind(k.name, k.share * (1 - listed) * (1 - apart), k.per_word) for k in kinds]
    shares.append(NoiseKind("misspelling", listed * (1 - apart), per_word))
    shares.append(NoiseKind("blank", apart, joined.per_word))
    return tuple(shares), tables


@dataclass(frozen=True, slots=True)
class _Before:
    """What a model to start from says of the shares, and how many slips it weighs as much as."""

    slips: float
    #: Of slips of letters, by kind.
    letters: Mapping[str, float]
    #: Of slips of words, known misspellings.
    listed: float
    #: Of all slips, missing blanks.
    apart: float

    @classmethod
    def of(cls, prior: ModelFile | None) -> _Before:
        if prior is None:
            return cls(0.0, {}, 0.3, 0.0)
        shares = {kind.name: kind.share for kind in prior.kinds}
        letters = math.fsum(shares.get(name, 0.0) for name in LETTER_KINDS) or 1.0
        by_kind = {name: shares.get(name, 0.0) / letters for name in LETTER_KINDS}
        listed = shares.get("misspelling", 0.0)
        return cls(PRIOR_SLIPS, by_kind, listed / (listed + letters), shares.get("blank", 0.0))


def _confusions(
    seen: Mapping[tuple[str, str], int], keyboard: Mapping[str, str], known: Mapping[str, str]
) -> dict[str, str]:
    """Return letter -> letters written for it, but for those beside it."""
    found: Counter[tuple[str, str]] = Counter()
    for (word, typed), count in seen.items():
        if len(word) == len(typed):
            apart = [pair for pair in zip(word, typed, strict=True) if pair[0] != pair[1]]
            if len(apart) == 1 and apart[0][1] not in keyboard.get(apart[0][0], ""):
                found[apart[0]] += count
    letters: defaultdict[str, set[str]] = defaultdict(set)
    for (right, wrong), count in found.items():
        if count >= _HABIT and (right + wrong).isalpha():
            letters[right].add(wrong)
    for right, wrong_ones in known.items():
        letters[right].update(wrong_ones)
    return {right: "".join(sorted(letters[right])) for right in sorted(letters)}


def _fit_letters(
    counts: TextCounts,
    seen: Mapping[tuple[str, str], int],
    habits: Habits,
    kappa: float,
    start: Mapping[str, Mapping[str, float]],
) -> tuple[dict[str, Fitted], dict[str, float]]:
    """Fit the factors of each kind of slips of letters; and how many slips each has."""
    exposure: dict[str, Counter[Features]] = {kind: Counter() for kind in LETTER_KINDS}
    happened: dict[str, Counter[Features]] = {kind: Counter() for kind in LETTER_KINDS}
    by_word: defaultdict[str, dict[str, int]] = defaultdict(dict)
    rare = _RARE if len(counts.words) > _MANY else 1
    for (word, typed), count in seen.items():
        by_word[word][typed] = count
    for word, times in counts.words.items():
        typed_for = by_word.get(word, {})
        # Slips in numbers are never found: no occasions.
        if (times < rare and not typed_for) or not apostrophe_form(word).replace("'", "").isalpha():
            continue
        for slip in letter_slips(word, habits, every=True):
            exposure[slip.kind][slip.features] += times
            if typed_for:
                happened[slip.kind][slip.features] += typed_for.get(slip.put_into(word), 0)
    words = float(sum(counts.words.values()))
    fitted = {
        kind: fit_factors(
            # Of a kind that explains nothing there is only how long the word is.
            exposure[kind],
            happened[kind],
            kappa,
            words,
            start.get(kind),
        )
        for kind in LETTER_KINDS
    }
    return fitted, {kind: float(sum(happened[kind].values())) for kind in LETTER_KINDS}


def fit_blanks(
    counts: TextCounts,
    slips: Iterable[Slipped],
    kappa: float,
    words: float,
    start: Mapping[str, float] | None,
) -> Fitted:
    """Fit which blanks are left out."""
    exposure: Counter[Features] = Counter()
    for (left, right), times in counts.pairs.items():
        if left.isalpha() and right.isalpha():
            exposure[pair_features(left, right)] += times
    seen: Counter[Features] = Counter()
    for (word, _), count in distinct_slips(slips).items():
        left, _, right = word.partition(" ")
        seen[pair_features(left, right)] += count
        exposure.setdefault(pair_features(left, right), 1)
    fitted = fit_factors(exposure, seen, kappa, words, start)
    # Words that nothing is known of: only what was seen, and what is rare in spite of its number.
    named = {name for cell in seen for name in cell} | set(start or {})
    kept = {n: f for n, f in fitted.factors.items() if n in named or f < 0.5}
    mean = sum(
        times * math.prod(kept.get(feature, 1.0) for feature in cell)
        for cell, times in exposure.items()
    )
    return Fitted(kept, mean / max(words, 1.0))


def model_file(
    name: str,
    slip_rate: float,
    sources: Iterable[str],
    kinds: Iterable[NoiseKind],
    tables: Tables,
) -> ModelFile:
    """Put a model together; the shares are brought to the sum 1."""
    known = [kind for kind in kinds if kind.share > 0.0 and kind.per_word > 0.0]
    total = math.fsum(kind.share for kind in known)
    shares = tuple(NoiseKind(kind.name, kind.share / total, kind.per_word) for kind in known)
    return ModelFile(FORMAT, name, slip_rate, tuple(sources), shares, tables)
