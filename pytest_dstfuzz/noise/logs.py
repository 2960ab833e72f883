"""Fits a model to a team's own logs, from the shipped models on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.json_data import parse_json
from pytest_dstfuzz.noise.evidence import Evidence
from pytest_dstfuzz.noise.find import Slipped, Text, TextCounts, find, propose
from pytest_dstfuzz.noise.fit import fit_typing, model_file
from pytest_dstfuzz.noise.habits import find_habits, weigh
from pytest_dstfuzz.noise.tables import ModelFile, NoiseKind
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import take_apart, word_list

#: Of the turns of texts as they were typed at least so many have a capital, or end with a mark.
_RAW: Final = 0.05
#: A word in capitals inside of so many of its places is a name.
_NAMED: Final = 0.5
_KINDS_OF_CASE: Final = ("lower_i", "lower_first")
#: Turns that are enough to see how often a table applies.
_ENOUGH: Final = 20_000
#: Words that the shipped models weigh as much as.
_PRIOR_WORDS: Final = 1000.0
#: Where both shipped models are in use they share the slips.
_HALF: Final = 0.5
#: How strongly what is rare goes back to what is known of others: see `fit_factors`.
_KAPPA: Final = 3.0


class Log(NamedTuple):
    """What users typed, turn by turn, and words that are names."""

    turns: tuple[Text, ...]
    names: frozenset[str]


class LogModel(NamedTuple):
    """A model that was fitted to logs, and what it was fitted to."""

    file: ModelFile
    words: int
    #: Of letters, blanks and known misspellings.
    slips: tuple[Slipped, ...]
    #: Kind of casual writing -> number, drawn towards what is known of others.
    habits: dict[str, float]
    #: Why some kinds could not be counted, for people.
    notes: tuple[str, ...]


def read_log(path: Path, split: str) -> Log:
    """Read what users typed: dialogues in any layout, or JSON Lines with a text each.

    Args:
        path: a file or a folder.
        split: of a data set that has some.

    Raises:
        DataError: there is nothing to read, or it is damaged; the message names the place.
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
            f"{error}. Logs without dialogues are JSON Lines with a turn of a user a line, "
            '"i need a taxi" or {"text": "i need a taxi"}, in a file that ends in .jsonl'
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
            f'{path}: line {number} needs the key "text" with a text, as the first line has'
        )
    return text


def _log(path: Path, turns: Iterable[Text], values: Iterable[str]) -> Log:
    kept = tuple(turn for turn in turns if word_list(turn.text))
    if not kept:
        raise DataError(f"{path} holds no text of a user with a word in it")
    return Log(kept, frozenset(values) | _names(turn.text for turn in kept))


def _names(texts: Iterable[str]) -> frozenset[str]:
    """Return words that mostly have a capital where no sentence begins."""
    inside: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text in texts:
        parts = take_apart(text)
        for word, gap in zip(parts.words[1:], parts.gaps[1:], strict=False):
            if gap.strip() in ("", ","):
                inside[word.lower] += 1
                capital[word.lower] += word.text[:1].isupper()
    return frozenset(word for word, count in inside.items() if capital[word] > _NAMED * count)


def fit_log(
    log: Log, name: str, lexicon: Lexicon, typing: ModelFile, casual: ModelFile
) -> LogModel:
    """Fit a model of typing and casual writing to logs; what they do not tell is as in the others.

    Args:
        log: what users typed.
        name: of the model.
        lexicon: says what a word is.
        typing: the model to start from, and
        casual: likewise.
    """
    texts = [turn.text for turn in log.turns]
    counts = TextCounts.of(texts)
    words = sum(counts.words.values())
    candidates = _known_forms(lexicon, counts) | propose(counts, lexicon.is_word, log.names)
    slips = find(log.turns, candidates, counts)
    evidence = Evidence(counts, slips, {}, typing.tables.keyboard)
    kinds, tables = fit_typing(evidence, kappa=_KAPPA, prior=typing)
    seen, forms = find_habits(texts, casual.tables.words, known=True)
    notes = list(_not_told(texts, seen))
    if words < _PRIOR_WORDS:
        notes.append(f"{words:,} words tell little: how often people slip is mostly as shipped")
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
    noted = (f"{len(log.turns)} turns of users, {words} words",)
    file = model_file(name, rate, (*noted, "what they do not tell: shipped models"), shares, merged)
    return LogModel(file, words, tuple(slips), seen, tuple(notes))


def _known_forms(lexicon: Lexicon, counts: TextCounts) -> dict[str, tuple[str, ...]]:
    """Return misspelled forms that the texts have -> their words."""
    found: dict[str, tuple[str, ...]] = {}
    for word, forms in sorted(lexicon.misspellings.items()):
        for form in forms:
            if counts.words[form] and not lexicon.is_word(form):
                found[form] = (*found.get(form, ()), word)
    return found


def _not_told(texts: Sequence[str], seen: dict[str, float]) -> Iterator[str]:
    """Take out what texts that were changed before they were kept do not tell; say so."""
    if sum(any(map(str.isupper, text)) for text in texts) < _RAW * len(texts):
        for kind in _KINDS_OF_CASE:
            seen.pop(kind, None)
        yield "the texts are in small letters: nothing is said of capitals that are missing"
    ended = sum(text.rstrip()[-1:] in ("?", "!", ".") for text in texts)
    apart = sum(text.rstrip()[-2:] in (" .", " ?", " !") for text in texts)
    if ended - apart < _RAW * len(texts):
        seen.pop("full_stop", None)
        yield "the texts have no marks at their ends: nothing is said of full stops"
    if not any("'" in text or "’" in text for text in texts):
        seen.pop("apostrophe", None)
        yield "the texts have no apostrophes: nothing is said of those that are missing"


def _complete(seen: dict[str, float], casual: ModelFile, words: int) -> None:
    """Draw the numbers of few words towards those of a model; add what cannot be counted."""
    rates = {kind.name: _HALF * casual.slip_rate * kind.share for kind in casual.kinds}
    for kind, count in seen.items():
        seen[kind] = _drawn(count, rates.get(kind, 0.0), words)
    for kind in ("dropped", "emoji"):
        seen[kind] = words * rates.get(kind, 0.0)


def _drawn(count: float, rate: float, words: int) -> float:
    """Return a number in so many words, drawn towards a rate as if that were of `_PRIOR_WORDS`."""
    return words * (count + rate * _PRIOR_WORDS) / (words + _PRIOR_WORDS)
