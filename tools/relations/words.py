"""Builds ``inflections.json``: ``python -m tools.relations.words --help``.

`tools.lexicon.inflect` makes the regular forms. The irregular ones come from WordNet's exception
lists. The words come from the shipped lexicon, so build the lexicon first. The same sources give
the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.words import equal_ends, word_set
from tools.lexicon.inflect import Inflector
from tools.lexicon.own_lists import read_words
from tools.lexicon.vocabulary import FORM_FACTOR, plain
from tools.lexicon.wndb import WordNet, read_wordnet

#: A word that was tagged so often is taken, and one that the training split has.
MIN_TAGS: Final = 2
#: How the irregular plurals end that everybody uses.
_ENGLISH_PLURALS: Final = word_set(
    ">ren >zes an>en f>ves fe>ves is>es on>a oose>eese oot>eet ooth>eeth ouse>ice"
)
_NOUNS: Final = Path(__file__).parent / "own" / "nouns.txt"

#: (base, form)
Pair = tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun, ...")
    parser.add_argument("--output", type=Path, required=True, help="file to write (.json)")
    options = parser.parse_args(arguments)
    try:
        build(options.wordnet, load_lexicon(), options.output)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def build(wordnet_folder: Path, lexicon: Lexicon, output: Path) -> None:
    """Write the plurals of nouns and the forms of verbs that are not their infinitive."""
    wordnet = read_wordnet(wordnet_folder)
    inflector = Inflector(wordnet.irregular)
    own = read_words(_NOUNS)
    added = own.pop("added")
    uncountable = {word for words in own.values() for word in words}
    nouns = sorted({*_bases(wordnet, lexicon, "noun"), *added} - uncountable)
    verbs = _bases(wordnet, lexicon, "verb")
    plurals = [(word, _plural(word, wordnet, lexicon)) for word in nouns]
    tables = {
        "plurals": by_ending((base, form) for base, form in plurals if form),
        "verb_forms": by_ending(_of_one_verb(wordnet, _verb_forms(wordnet, inflector, verbs))),
    }
    write_text(output, json.dumps(tables, indent=1, sort_keys=True) + "\n")


def by_ending(pairs: Iterable[Pair]) -> dict[str, str]:
    """Return ``old>new`` ending -> the bases that change in this way, separated by blanks.

    >>> by_ending([("city", "cities"), ("foot", "feet"), ("room", "rooms"), ("key", "keys")])
    {'y>ies': 'city', 'oot>eet': 'foot', '>s': 'room key'}
    """
    found: dict[str, list[str]] = {}
    for base, form in pairs:
        found.setdefault(_ending(base, form), []).append(base)
    return {ending: " ".join(bases) for ending, bases in found.items()}


def _ending(base: str, form: str) -> str:
    kept, _ = equal_ends(base, form)
    return f"{base[kept:]}>{form[kept:]}"


def _bases(wordnet: WordNet, lexicon: Lexicon, pos: str) -> list[str]:
    """Return the words with this part of speech in WordNet's corpus or in the training split."""
    lemmas = sorted(lemma for lemma, part in wordnet.senses if part == pos and plain(lemma))
    return [
        lemma
        for lemma in lemmas
        if len(lemma) > 2
        and lexicon.is_word(lemma)
        and lexicon.majority_pos(lemma) != "function"
        and (lexicon.frequency_rank(lemma) is not None or wordnet.count(lemma, pos))
    ]


def _plural(word: str, wordnet: WordNet, lexicon: Lexicon) -> str | None:
    """Return the plural of a noun as requests use it, or ``None`` if that is not clear."""
    word_set = [form for form, bases in wordnet.irregular["noun"].items() if word in bases]
    irregular = [form for form in word_set if _ending(word, form) in _ENGLISH_PLURALS]
    if irregular:
        return irregular[0] if len(irregular) == 1 and lexicon.is_word(irregular[0]) else None
    # Of Latin, Greek and Italian plurals the regular one is as good, and more people write it.
    return Inflector({}).form(word, "noun", "plural")


def _verb_forms(wordnet: WordNet, inflector: Inflector, verbs: Iterable[str]) -> list[Pair]:
    found: list[Pair] = []
    irregular: dict[str, list[str]] = {}
    for form, bases in wordnet.irregular["verb"].items():
        for base in bases:
            irregular.setdefault(base, []).append(form)
    for verb in verbs:
        regular = (inflector.form(verb, "verb", name) for name in ("third", "past", "gerund"))
        forms = {form for form in (*regular, *irregular.get(verb, ())) if form and plain(form)}
        found += [(verb, form) for form in sorted(forms) if form != verb]
    return found


def _of_one_verb(wordnet: WordNet, pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs whose form belongs to one verb, or far more often to one than to others."""
    bases: dict[str, list[str]] = {}
    for base, form in pairs:
        bases.setdefault(form, []).append(base)
    kept = []
    for form, verbs in bases.items():
        ranked = sorted(verbs, key=lambda verb: (-wordnet.count(verb, "verb"), verb))
        first, *others = [wordnet.count(verb, "verb") for verb in ranked]
        if not others or first >= FORM_FACTOR * max(1, others[0]):
            kept.append((ranked[0], form))
    return sorted(kept)


if __name__ == "__main__":
    raise SystemExit(main())
