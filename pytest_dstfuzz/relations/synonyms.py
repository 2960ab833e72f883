"""Relations that replace words by synonyms, or by casual or formal words, from a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from pytest_dstfuzz.perturb.words import match_case, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Replacement, Scene
from pytest_dstfuzz.relations.sources import find_broken_lock
from pytest_dstfuzz.relations.values import article_before
from pytest_dstfuzz.relations.wording import Change, Sentence, Wording, sentences

_NO_SYNONYM: Final = "no unlocked word of the table fits the words around it"
_SHIPPED: Final = resources.files("pytest_dstfuzz") / "resources" / "relations"
#: Any word, and the beginning and the end of a sentence.
_ANY: Final = "@more"
_BEGIN: Final = "^"
_END: Final = "$"
#: Classes of words in the tables.
_CLASSES: Final = {
    "@det": word_set(
        """a an the my our your this that any some these those their his her its one two three
        four"""
    ),
    "@my": word_set("my our the this that"),
    "@obj": word_set(
        "a an the my our your this that any some these those their his her it them you"
    ),
    "@ask": word_set("to please can you i we could should must would will they also just")
    | {_BEGIN},
    "@place": word_set("in near that with serving which to on close by for around") | {_END},
    "@end": word_set("for in on at to from and by before today tomorrow this next") | {_END},
    "@verb": word_set(
        """need want have do get go think hope like love see know be take book find leave stay eat
        visit try make buy arrive travel check look pay"""
    ),
    "^": frozenset({_BEGIN}),
    "$": frozenset({_END}),
}
#: Words with these locks may be replaced: words that name the purpose of a request, `do not` and
#: `yes`. Both phrases of a row have the same purpose and polarity.
_LOOSE: Final = frozenset({"", "cue", "request", "negation", "affirmation", "negated"})


class WordRow(NamedTuple):
    """A phrase of a table, and the words that replace a part of it."""

    phrase: tuple[str, ...]
    #: The words ``first`` to ``end`` of the phrase are replaced by ``words``.
    first: int
    end: int
    words: tuple[str, ...]


class WordTable(NamedTuple):
    """Rows of a table, grouped by the first word that a row replaces."""

    rows: Mapping[str, tuple[WordRow, ...]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> WordTable:
        """Return a table from pairs of phrases. Each phrase of a pair may replace the other."""
        rows: dict[str, dict[WordRow, None]] = {}
        for pair in pairs:
            for old, new in (pair, pair[::-1]):
                row = _row(tuple(old.split()), tuple(new.split()))
                if row is not None:
                    rows.setdefault(row.phrase[row.first], {})[row] = None
        return cls({word: tuple(found) for word, found in rows.items()})

    def replacements(self, scene: Scene, one: Sentence, operator: str) -> Iterator[Replacement]:
        """Yield the replacements that fit a sentence. They keep values, numbers and names."""
        around = (_BEGIN, *one.said, _END)
        for place, word in enumerate(one.said, 1):
            for row in self.rows.get(word, ()):
                start = place - row.first
                if start >= 0 and _matches(row.phrase, around[start : start + len(row.phrase)]):
                    found = _replacement(scene, one, place - 1, row, operator)
                    if found is not None:
                        yield found


def _row(old: tuple[str, ...], new: tuple[str, ...]) -> WordRow | None:
    """Return the row that changes the fewest words, or ``None`` for a class of words."""
    shorter = min(len(old), len(new))
    pairs = zip(old, new, strict=False)
    first = next((n for n, (a, b) in enumerate(pairs) if a != b), shorter)
    most = min(len(old) - 1, shorter) - first
    tail = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), max(most, 0))
    if first == len(old):
        return None
    row = WordRow(old, first, len(old) - tail, new[first : len(new) - tail])
    return row if row.words and not any(word[0] in "@^$" for word in old[first : row.end]) else None


def _matches(phrase: Sequence[str], words: Sequence[str]) -> bool:
    return len(phrase) == len(words) and all(
        word in _CLASSES[one] if one in _CLASSES else word == one or (one == _ANY and word != _END)
        for one, word in zip(phrase, words, strict=True)
    )


def _replacement(
    scene: Scene, one: Sentence, place: int, row: WordRow, operator: str
) -> Replacement | None:
    """Return the replacement of words from ``place`` in a sentence, or ``None``."""
    count = row.end - row.first
    gaps = one.gaps[max(place - row.first, 0) : place + len(row.phrase) - row.first - 1]
    if any(gap.strip() for gap in gaps):
        return None
    at = one.first + place
    words = one.words[place : place + count]
    reasons = scene.guarded.reasons[at : at + count]
    stop_words = scene.lexicon.stop_words
    for word, reason in zip(words, reasons, strict=True):
        # At the beginning of a sentence, the locks take `What's` for a name.
        contracted = reason == "name" and word.lower.replace("’", "'").partition("'")[0]
        if reason not in _LOOSE and contracted not in stop_words:
            return None
    text = " ".join("I" if word == "i" else word for word in row.words)
    text = match_case(words[0].text, text) if not text.startswith("I") else text
    start = words[0].start
    before = one.words[place - 1] if place else None
    if before is not None and before.lower in {"a", "an"}:
        article = article_before(text)
        if article != before.lower:
            start, text = before.start, f"{match_case(before.text, article)} {text}"
    return Replacement(start, words[-1].end, text, operator)


@cache
def shipped_table(name: str) -> WordTable:
    """Return a shipped table of words."""
    lines = (_SHIPPED / name).read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return WordTable.of((one, other) for one, other in rows)


@cache
def _own_table(pairs: tuple[tuple[str, str], ...]) -> WordTable:
    return WordTable.of(pairs)


@register_relation
class Synonyms(Wording):
    """Replaces words by synonyms that fit the words around them. The answer must stay the same.

    Source: own.
    """

    name = "synonyms"
    source = "resources/relations/synonyms.tsv, of this package (MIT)"
    reasons = (_NO_SYNONYM,)
    most = 3

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the words that have a synonym in the tables."""
        tables = [shipped_table("synonyms.tsv")]
        if own := scene.lexicon.own_synonyms:
            tables.append(_own_table(own))
        for one in sentences(scene.turn.user):
            for table in tables:
                for found in table.replacements(scene, one, "synonym"):
                    yield (found,)


_NO_REGISTER: Final = "the turn has no contraction and no formal or casual word of the table"


@register_relation
class Register(Wording):
    """Writes out contractions, contracts words, and uses more or less formal words.

    The answer must stay the same.

    Source: own.
    """

    name = "register"
    source = "resources/relations/register.tsv, of this package (MIT)"
    reasons = (_NO_REGISTER,)
    most = 3

    def keeps_locks(self, scene: Scene, text: str) -> bool:
        """Return whether a text keeps the turn's locked words. Negations may be contracted."""
        return find_broken_lock(scene, text) in {"", "negation"}

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the phrases that can be more formal, or less formal."""
        table = shipped_table("register.tsv")
        for one in sentences(scene.turn.user):
            for found in table.replacements(scene, one, "register"):
                yield (found,)
