"""Regular English inflection, so that synonyms of a base form also give synonyms of its forms.

Irregular forms come from WordNet's exception lists. If a form of a word is irregular, the word does
not have this form here (``find`` gives no past tense): a missing synonym costs nothing, a wrong
form costs precision.
"""

from __future__ import annotations

from collections.abc import Mapping

_VOWELS = "aeiou"
_HISSING = ("s", "x", "z", "ch", "sh")

#: Forms of a part of speech that are carried over.
FORMS = {
    "noun": ("plural",),
    "verb": ("third", "past", "gerund"),
    "adj": ("comparative", "superlative"),
    "adv": (),
}

_DOUBLING = (
    "begin prefer refer transfer admit commit occur permit submit forget upset cancel travel"
)
_UNCHANGED = (
    "beset bet burst cast cost cut hit hurt let put quit read set shed shut slit split spread "
    "thrust upset"
)
#: Words of two syllables that double their last letter, unlike ``offer`` and ``visit``.
_STRESSED_END = frozenset(_DOUBLING.split())
#: Verbs whose past is the word itself, which WordNet's exception lists leave out.
_UNCHANGED_PAST = frozenset(_UNCHANGED.split())


class Inflector:
    """Makes the regular forms of a word and refuses those that are irregular.

    Args:
        irregular: part of speech -> irregular form -> its base forms, as WordNet lists them.
    """

    def __init__(self, irregular: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        self._irregular: dict[str, dict[str, set[str]]] = {}
        for pos, forms in irregular.items():
            bases = self._irregular.setdefault(pos, {})
            for form, words in forms.items():
                for word in words:
                    bases.setdefault(word, set()).add(form)

    def form(self, word: str, pos: str, form: str) -> str | None:
        """Return one form of a base word, or ``None`` if it is irregular or unlikely."""
        irregular = self._irregular.get(pos, {}).get(word, set())
        if pos == "noun":
            # A lemma such as ``amenities`` or ``series`` has no plural of its own.
            plural = word.endswith("s") and not word.endswith(("ss", "us"))
            return None if irregular or plural else _add_s(word)
        if pos == "verb":
            if form == "third":
                return _add_s(word)
            if form == "gerund":
                known = sorted(f for f in irregular if f.endswith("ing"))
                return known[0] if known else _add_vowel(word, "ing")
            past = {f for f in irregular if not f.endswith("ing")}
            regular = _add_vowel(word, "ed")
            return regular if past <= {regular} and word not in _UNCHANGED_PAST else None
        if pos == "adj" and (_syllables(word) == 1 or word.endswith("y")):
            return _add_vowel(word, "er" if form == "comparative" else "est")
        return None


def _add_s(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(_HISSING) or word in {"go", "do"} else "s")


def _add_vowel(word: str, suffix: str) -> str:
    if suffix == "ing":
        if word.endswith("ie"):
            return word[:-2] + "ying"
        if word.endswith("e") and not word.endswith(("ee", "ye", "oe")):
            return word[:-1] + "ing"
    elif word.endswith("y") and word[-2:-1] not in _VOWELS:
        return word[:-1] + "i" + suffix
    elif word.endswith("e"):
        return word + suffix[1:]
    return word + (word[-1] if _doubles(word) else "") + suffix


def _doubles(word: str) -> bool:
    if len(word) < 3 or word[-1] in _VOWELS + "wxy" or word[-2] not in _VOWELS:
        return False
    if word[-3] in _VOWELS and word[-3:-1] != "ui":
        return False
    return _syllables(word) == 1 or word in _STRESSED_END


def _syllables(word: str) -> int:
    """Count the groups of vowels, without a silent final ``e``."""
    stem = word[:-1] if word.endswith("e") and word[-2:-1] not in _VOWELS + "l" else word
    groups = 0
    for before, letter in zip(" " + stem, stem, strict=False):
        groups += letter in _VOWELS + "y" and before not in _VOWELS + "y"
    return max(1, groups)
