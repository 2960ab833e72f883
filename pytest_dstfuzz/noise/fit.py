"""Noise models fitted to the logs of a team's own users."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.json_data import parse_json
from pytest_dstfuzz.noise.casual import (
    apostrophe_form,
    find_habits,
    list_known_forms,
    names_in,
    pair_features,
    share_of_forms,
    weigh,
)
from pytest_dstfuzz.noise.evidence import (
    Evidence,
    SlipEvidence,
    Text,
    TextCounts,
    distinct_slips,
    find,
    propose,
    propose_split,
    propose_two,
)
from pytest_dstfuzz.noise.tables import (
    FORMAT,
    LETTER_KINDS,
    MISSPELLING,
    TWO,
    ModelFile,
    NoiseKind,
    Tables,
    letter_slips,
)
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.printable import format_count

#: A factor is dropped if the absolute value of its natural logarithm is below this.
_NEGLIGIBLE: Final = 0.03

Features = tuple[str, ...]


class KindFactors(NamedTuple):
    """The fitted factors of one kind of slip."""

    factors: dict[str, float]
    #: Sum of the products of factors over the slips of a word, as the mean over all words.
    per_word: float


def fit_factors(
    exposure: Mapping[Features, float],
    seen: Mapping[Features, float],
    kappa: float,
    words: float,
    prior: Mapping[str, float] | None = None,
) -> KindFactors:
    """Fit a factor for each feature, level by level.

    If a feature was seen ``n`` times and the coarser factors expect ``e``, its factor is ``(n +
    kappa) / (e + kappa)``. This is the mean of a gamma posterior. Its prior has the mean 1 and the
    weight of ``kappa`` slips. So unseen features fall back to the coarser levels.

    Args:
        exposure: features -> number of occasions; all with the same levels.
        seen: features -> number of slips.
        kappa: strength of the prior, above 0.
        words: number of words that the exposure comes from.
        prior: initial factors.
    """
    start = prior or {}
    factors: dict[str, float] = dict(start)
    current = {
        cell: count * math.prod(start.get(feature, 1.0) for feature in cell)
        for cell, count in exposure.items()
    }
    total_seen = math.fsum(seen.values())
    levels = max(map(len, exposure), default=0)
    for level in range(levels):
        total = math.fsum(current.values())
        if not total or not total_seen:
            break
        expected: defaultdict[str, float] = defaultdict(float)
        for cell, value in current.items():
            expected[cell[level]] += value * total_seen / total
        found: defaultdict[str, float] = defaultdict(float)
        for cell, count in seen.items():
            found[cell[level]] += count
        step = {name: (found[name] + kappa) / (e + kappa) for name, e in expected.items()}
        step = {name: f for name, f in step.items() if abs(math.log(f)) > _NEGLIGIBLE}
        for name, factor in step.items():
            factors[name] = factors.get(name, 1.0) * factor
        current = {cell: value * step.get(cell[level], 1.0) for cell, value in current.items()}
    return KindFactors(dict(sorted(factors.items())), math.fsum(current.values()) / max(words, 1.0))


#: In a large vocabulary, words with a lower count are not occasions, since most are names.
_RARE: Final = 5
_MANY: Final = 2000
#: Strengths of the prior; held-out likelihood chooses one.
KAPPAS: Final = (1.0, 3.0, 10.0, 30.0)
#: Weight of the prior model's shares, in slips.
PRIOR_SLIPS: Final = 20.0


def fit_typing(
    evidence: Evidence,
    slips: Sequence[SlipEvidence] | None = None,
    kappa: float = 3.0,
    prior: ModelFile | None = None,
) -> tuple[tuple[NoiseKind, ...], Tables]:
    """Fit the kinds of typed text, their shares and tables.

    Args:
        evidence: the texts, lists, and slips.
        slips: replaces the slips of the evidence.
        kappa: the weight of the coarser level, in slips.
        prior: a model to start from, fitted to more data.
    """
    given = list(evidence.slips if slips is None else slips)
    blanks = [slip for slip in given if " " in slip.word]
    letters = [slip for slip in given if " " not in slip.word]
    seen = distinct_slips(letters)
    known = prior.tables if prior else Tables()
    before = _Before.of(prior)
    fitted, numbers, rest = _fit_letters(evidence, seen, kappa, known.factors)
    words = float(sum(evidence.counts.words.values()))
    joined = fit_blanks(evidence.counts, blanks, kappa, words, known.factors.get("blank"))
    forms = list_known_forms(evidence, letters, known.words.get(MISSPELLING, {}))
    two = (rest + before.slips * before.two) / max(1.0, sum(seen.values()) + before.slips)
    # Every kind stays possible, even if it was never seen.
    numbers = {
        name: count + before.slips * before.letters.get(name, 0.0) if prior else count + 0.5
        for name, count in numbers.items()
    }
    tables = Tables(
        {key: evidence.keyboard[key] for key in sorted(evidence.keyboard)},
        {**{name: found.factors for name, found in fitted.items()}, "blank": joined.factors},
        {MISSPELLING: forms},
    )
    apart = (len(blanks) + before.slips * before.apart) / max(1.0, len(given) + before.slips)
    listed = share_of_forms(forms, letters, before.listed, before.slips)
    one = (1 - listed) * (1 - two) * (1 - apart)
    shares = [
        NoiseKind(name, one * numbers[name] / math.fsum(numbers.values()), found.per_word)
        for name, found in fitted.items()
    ]
    shares.append(NoiseKind(TWO, (1 - listed) * two * (1 - apart), 1.0))
    shares.append(NoiseKind(MISSPELLING, listed * (1 - apart), 1.0))
    shares.append(NoiseKind("blank", apart, joined.per_word))
    return tuple(shares), tables


@dataclass(frozen=True, slots=True)
class _Before:
    """The shares of a prior model, with their weight in slips."""

    slips: float
    #: Share of each kind in the letter slips.
    letters: Mapping[str, float]
    #: Share of two letters in the slips of letters that are no known misspelling.
    two: float
    #: Share of known misspellings in the word slips.
    listed: float
    #: Share of missing blanks in all slips.
    apart: float

    @classmethod
    def of(cls, prior: ModelFile | None) -> _Before:
        if prior is None:
            return cls(0.0, {}, 0.0, 0.0, 0.0)
        shares = {kind.name: kind.share for kind in prior.kinds}
        letters = math.fsum(shares.get(name, 0.0) for name in LETTER_KINDS) or 1.0
        by_kind = {name: shares.get(name, 0.0) / letters for name in LETTER_KINDS}
        two, listed = shares.get(TWO, 0.0), shares.get(MISSPELLING, 0.0)
        return cls(
            PRIOR_SLIPS,
            by_kind,
            two / (letters + two),
            listed / (listed + two + letters),
            shares.get("blank", 0.0),
        )


def _fit_letters(
    evidence: Evidence,
    seen: Mapping[tuple[str, str], int],
    kappa: float,
    start: Mapping[str, Mapping[str, float]],
) -> tuple[dict[str, KindFactors], dict[str, float], float]:
    """Return the factors of each kind of letter slips, and the numbers of slips.

    Slips that make another word cannot be found. So the factors are fitted to those occasions whose
    slips can be found. The numbers are extrapolated to all occasions.
    """
    counts = evidence.counts
    every: dict[str, Counter[Features]] = {kind: Counter() for kind in LETTER_KINDS}
    exposure: dict[str, Counter[Features]] = {kind: Counter() for kind in LETTER_KINDS}
    happened: dict[str, Counter[Features]] = {kind: Counter() for kind in LETTER_KINDS}
    by_word: defaultdict[str, dict[str, int]] = defaultdict(dict)
    rare = _RARE if len(counts.words) > _MANY else 1
    for (word, typed), count in seen.items():
        by_word[word][typed] = count
    for word, times in counts.words.items():
        typed_for = by_word.get(word, {})
        # Slips in numbers are never found, so numbers do not count as occasions.
        if (times < rare and not typed_for) or not apostrophe_form(word).replace("'", "").isalpha():
            continue
        for slip in letter_slips(word, evidence.keyboard):
            every[slip.kind][slip.features] += times
            made = slip.put_into(word)
            if evidence.finds(made):
                exposure[slip.kind][slip.features] += times
            if typed_for:
                happened[slip.kind][slip.features] += typed_for.get(made, 0)
    words = float(sum(counts.words.values()))
    fitted: dict[str, KindFactors] = {}
    numbers: dict[str, float] = {}
    for kind in LETTER_KINDS:
        found = fit_factors(exposure[kind], happened[kind], kappa, words, start.get(kind))
        mean = _per_word(every[kind], found.factors, words)
        fitted[kind] = KindFactors(found.factors, mean)
        hidden = mean / found.per_word if found.per_word else 1.0
        numbers[kind] = sum(happened[kind].values()) * hidden
    explained = sum(sum(cells.values()) for cells in happened.values())
    return fitted, numbers, float(sum(seen.values()) - explained)


def _per_word(cells: Mapping[Features, float], factors: Mapping[str, float], words: float) -> float:
    """Return the mean, over words, of the sum of products of factors."""
    total = math.fsum(
        times * math.prod(factors.get(feature, 1.0) for feature in cell)
        for cell, times in cells.items()
    )
    return total / max(words, 1.0)


def fit_blanks(
    counts: TextCounts,
    slips: Iterable[SlipEvidence],
    kappa: float,
    words: float,
    start: Mapping[str, float] | None,
) -> KindFactors:
    """Fit the factors of missing blanks."""
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
    # Keep seen and prior features: a low factor shows that a frequent word is rarely joined.
    named = {name for cell in seen for name in cell} | set(start or {})
    kept = {n: f for n, f in fitted.factors.items() if n in named or f < 0.5}
    return KindFactors(kept, _per_word(exposure, kept, words))


def model_file(
    name: str,
    slip_rate: float,
    sources: Iterable[str],
    kinds: Iterable[NoiseKind],
    tables: Tables,
) -> ModelFile:
    """Build a model file. The shares are scaled to sum up to 1."""
    known = [kind for kind in kinds if kind.share > 0.0 and kind.per_word > 0.0]
    total = math.fsum(kind.share for kind in known)
    shares = tuple(NoiseKind(kind.name, kind.share / total, kind.per_word) for kind in known)
    return ModelFile(FORMAT, name, slip_rate, tuple(sources), shares, tables)


#: Minimum share of turns with a capital, or with final punctuation, if texts are not preprocessed.
_RAW: Final = 0.05
_KINDS_OF_CASE: Final = ("lower_i", "lower_first", "lower_name")
#: Number of turns that suffices to estimate how often a table applies.
_ENOUGH: Final = 20_000
#: Weight of the shipped models, in words.
_PRIOR_WORDS: Final = 1000.0
#: Share of each shipped model in the slips, if both are used.
_HALF: Final = 0.5
#: Strength of the prior for rare features, see `fit_factors`.
_KAPPA: Final = 3.0


class Log(NamedTuple):
    """The turns that users typed, and words that are names."""

    turns: tuple[Text, ...]
    names: frozenset[str]


class LogModel(NamedTuple):
    """A model that was fitted to logs, with its evidence."""

    file: ModelFile
    words: int
    #: Slips of letters, missing blanks and known misspellings.
    slips: tuple[SlipEvidence, ...]
    #: Kind of casual writing -> number, smoothed with the shipped rates.
    habits: dict[str, float]
    #: Notes for people on kinds that could not be counted.
    notes: tuple[str, ...]


def read_log(path: Path, split: str) -> Log:
    """Read typed texts: dialogues in any layout, or JSON Lines with one text each.

    Args:
        path: a file or a folder.
        split: the split, if the data set has splits.

    Raises:
        DataError: there is no text, or the data is damaged; the message names the place.
    """
    if path.is_file() and path.suffix == ".jsonl":
        lines = [(n, line) for n, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]
        if lines and _is_text(parsed := _parse(path, *lines[0])):
            texts = [parsed, *(_parse(path, number, line) for number, line in lines[1:])]
            turns = [
                Text(f"line {number}", _text(path, number, value))
                for (number, _), value in zip(lines, texts, strict=True)
            ]
            return _log(path, turns, ())
    try:
        data = load_dialogues(path, split)
    except DataError as error:
        raise DataError(
            f"{error}. For logs without dialogues, give a .jsonl file with one user turn a line: "
            '"i need a taxi" or {"text": "i need a taxi"}'
        ) from None
    known = data.ontology.values if data.ontology else {}
    values = (value for values in known.values() for value in values)
    turns = [Text(found.id, turn.user) for found in data.dialogues for turn in found.turns]
    return _log(path, turns, (word for value in values for word in word_list(value)))


def _parse(path: Path, number: int, line: str) -> Any:
    try:
        return parse_json(line)
    except DataError as error:
        raise DataError(f"{path}: line {number} {error}") from None


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and "text" in value)


def _text(path: Path, number: int, value: object) -> str:
    text = value.get("text") if isinstance(value, dict) else value
    if not isinstance(text, str):
        raise DataError(
            f'{path}: line {number} has no text: it needs the key "text", like the first line'
        )
    return text


def _log(path: Path, turns: Iterable[Text], values: Iterable[str]) -> Log:
    kept = tuple(turn for turn in turns if word_list(turn.text))
    if not kept:
        raise DataError(f"{path} has no user turn with a word")
    return Log(kept, frozenset({*values, *names_in(turn.text for turn in kept)}))


def fit_log(
    log: Log, name: str, lexicon: Lexicon, typing: ModelFile, casual: ModelFile
) -> LogModel:
    """Fit a model of typing and casual writing to logs, with two models as priors.

    Args:
        log: the typed texts.
        name: the name of the new model.
        lexicon: the list of valid words.
        typing: the prior model of typing.
        casual: the prior model of casual writing.
    """
    texts = [turn.text for turn in log.turns]
    counts = TextCounts.of(texts)
    words = sum(counts.words.values())
    candidates = {
        **propose_two(counts, lexicon.is_word, log.names),
        **propose_split(counts, lexicon.is_word, log.names),
        **_known_forms(lexicon, counts),
        **propose(counts, lexicon.is_word, log.names),
    }
    slips = find(log.turns, candidates, counts)
    evidence = Evidence(counts, slips, {}, typing.tables.keyboard, lexicon.is_word)
    kinds, tables = fit_typing(evidence, kappa=_KAPPA, prior=typing)
    seen, forms = find_habits(texts, casual.tables.words, known=True)
    notes = list(_not_told(texts, seen))
    if words < _PRIOR_WORDS:
        notes.append(f"few words ({words:,}): the slip rates come mostly from the shipped models")
    rest = {kind: table for kind, table in casual.tables.words.items() if kind not in forms}
    merged = replace(tables, words={**tables.words, **rest, **forms})
    sample = texts[:: max(1, len(texts) // _ENOUGH)]
    _complete(seen, casual, words)
    casually = weigh(seen, merged, sample)
    habits = sum(seen.values())
    typed = _drawn(len(slips), _HALF * typing.slip_rate, words)
    total = typed + habits
    shares = [NoiseKind(k.name, k.share * typed / total, k.per_word) for k in kinds]
    shares += [NoiseKind(k.name, k.share * habits / total, k.per_word) for k in casually]
    rate = float(f"{min(total / words, 1.0):.3g}")
    noted = f"{format_count(len(log.turns), 'user turn')}, {format_count(words, 'word')}"
    file = model_file(name, rate, (noted, "the rest: shipped models"), shares, merged)
    return LogModel(file, words, tuple(slips), seen, tuple(notes))


def _known_forms(lexicon: Lexicon, counts: TextCounts) -> dict[str, tuple[str, ...]]:
    """Return misspelled form -> its words, for the known forms in the texts."""
    found: dict[str, tuple[str, ...]] = {}
    for word, forms in sorted(lexicon.misspellings.items()):
        for form in forms:
            if counts.words[form] and not lexicon.is_word(form):
                found[form] = (*found.get(form, ()), word)
    return found


def _not_told(texts: Sequence[str], seen: dict[str, float]) -> Iterator[str]:
    """Remove kinds that preprocessed texts cannot show. Yield a note for each."""
    if sum(any(map(str.isupper, text)) for text in texts) < _RAW * len(texts):
        for kind in _KINDS_OF_CASE:
            seen.pop(kind, None)
        yield "the texts are in lower case: missing capitals are not counted"
    ended = sum(text.rstrip()[-1:] in ("?", "!", ".") for text in texts)
    apart = sum(text.rstrip()[-2:] in (" .", " ?", " !") for text in texts)
    if ended - apart < _RAW * len(texts):
        seen.pop("full_stop", None)
        yield "the texts do not end with punctuation: missing full stops are not counted"
    if not any("'" in text or "’" in text for text in texts):
        seen.pop("apostrophe", None)
        yield "the texts have no apostrophes: missing apostrophes are not counted"


def _complete(seen: dict[str, float], casual: ModelFile, words: int) -> None:
    """Smooth the counts of casual slips with a model's rates. Add kinds that cannot be counted."""
    rates = {kind.name: _HALF * casual.slip_rate * kind.share for kind in casual.kinds}
    for kind, count in seen.items():
        seen[kind] = _drawn(count, rates.get(kind, 0.0), words)
    for kind in ("dropped", "emoji"):
        seen[kind] = words * rates.get(kind, 0.0)


def _drawn(count: float, rate: float, words: int) -> float:
    """Return a count smoothed with a prior rate. The prior weighs `_PRIOR_WORDS` words."""
    return words * (count + rate * _PRIOR_WORDS) / (words + _PRIOR_WORDS)
