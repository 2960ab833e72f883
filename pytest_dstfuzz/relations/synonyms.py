"""Relations that replace words by synonyms, or by casual or formal words, from a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import chain, permutations
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.calls import argument_texts
from pytest_dstfuzz.dialogue.number_words import NUMBER_WORDS
from pytest_dstfuzz.perturb.words import Word, match_case, take_apart, word_list, word_set
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
#: Begins a line of a table if only the first phrase may be replaced.
_ONE_WAY: Final = "> "
_MOST_COUNTED: Final = 1000
#: Classes of words in the tables.
CLASSES: Final = {
    "@det": word_set(
        """a an the my our your this that any some these those their his her its one two three
        four"""
    ),
    "@a": word_set("a an"),
    "@my": word_set("my our the this that"),
    "@obj": word_set(
        "a an the my our your this that any some these those their his her it them you"
    ),
    "@it": word_set("it them this that these those"),
    "@you": word_set("you me us him her them"),
    "@who": word_set("the my our your someone somebody"),
    "@ask": word_set("to please can you i we could should must would will they also just and or")
    | {_BEGIN},
    "@place": word_set("in near that with serving which to on close by for around") | {_END},
    "@end": word_set("for in on at to from and by before today tomorrow this next") | {_END},
    "@on": word_set("on at today tomorrow tonight this for") | {_END},
    "@verb": word_set(
        """need want have do get go think hope like love see know be take book find leave stay eat
        visit try make buy arrive travel check look pay"""
    ),
    "@do": word_set(
        """book reserve find cancel change buy order pay get return exchange rent hire bring see
        make talk speak send track report schedule reschedule use park add remove update transfer
        print swim recycle fish camp wash enter leave sit smoke cook work study learn teach order
        renew join attend visit borrow open close check move extend collect pick take try switch
        upgrade repair fix register sign apply stay travel download reset watch read eat come"""
    ),
    "@oc": word_set("open close start begin finish"),
    "@tv": word_set("open close leave depart arrive"),
    "@ride": word_set("train bus flight tram ferry plane coach"),
    "@late": word_set("train bus flight tram ferry plane coach order parcel package delivery"),
    "@veh": word_set("car bike bicycle van boat scooter motorbike truck room"),
    "@spot": word_set("table room hotel seat place spot car ticket court flight tour"),
    "@find": word_set(
        """hotel restaurant room flat apartment house job doctor dentist lawyer plumber flight bus
        train car gift present place movie film tour museum song salon therapist"""
    ),
    "@bk": word_set("booking reservation order appointment flight delivery parcel package"),
    "@data": word_set("address email password phone number details name"),
    "@sub": word_set("subscription membership contract plan"),
    "@dish": word_set("dish dishes food meal meals option options menu pizza restaurant"),
    "@gratis": word_set(
        "breakfast wifi parking drinks coffee dinner lunch shipping delivery admission"
    ),
    "@got": word_set("size item order address number amount colour color product bill date"),
    "@thing": word_set(
        """screen display phone laptop computer tablet bike bicycle item product order lamp chair
        dishwasher boiler heater window door lock printer tv car toy watch camera machine fridge
        oven shower tap lift elevator keyboard charger"""
    ),
    "@pay": word_set("paypal cash cheque cheques cards vouchers euros dollars pounds"),
    "@wh": word_set("what when where how which who if whether why"),
    "@ing": word_set("smoking parking camping swimming filming fishing cooking"),
    "@n": frozenset(NUMBER_WORDS) | frozenset(map(str, range(_MOST_COUNTED))),
    "^": frozenset({_BEGIN}),
    "$": frozenset({_END}),
}
#: Words with these locks may be replaced: words that name the purpose of a request, `do not` and
#: `yes`. Both phrases of a row have the same purpose and polarity.
_LOOSE: Final = frozenset(
    {"", "cue", "request", "negation", "affirmation", "negated", "reference", "dontcare"}
)


class WordRow(NamedTuple):
    """A phrase of a table, and the words that replace a part of it."""

    phrase: tuple[str, ...]
    #: The words ``first`` to ``end`` of the phrase are replaced by ``words``. A class of words in
    #: ``words`` stands for the user's word.
    first: int
    end: int
    words: tuple[str, ...]


class WordTable(NamedTuple):
    """Rows of a table, grouped by the first word that a row replaces."""

    rows: Mapping[str, tuple[WordRow, ...]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> WordTable:
        """Return a table from pairs of phrases. The second phrase replaces the first."""
        rows: dict[str, dict[WordRow, None]] = {}
        for old, new in pairs:
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
    """Return the row that changes the fewest words.

    It is ``None`` if a class of words would be lost, or new, or change its place among the others.
    """
    shorter = min(len(old), len(new))
    pairs = zip(old, new, strict=False)
    first = next((n for n, (a, b) in enumerate(pairs) if a != b), shorter)
    most = shorter - first
    tail = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    # An edit replaces at least one word by at least one, and begins with a word of the table.
    if shorter == first + tail:
        if tail and (not first or old[first - 1][0] in "@^"):
            tail -= 1
        else:
            first -= 1
    while first and old[first][0] == "@":
        first -= 1
    row = WordRow(old, first, len(old) - tail, new[first : len(new) - tail])
    lost, written = (
        [word for word in words if word[0] in "@^$"] for words in (old[first : row.end], row.words)
    )
    usable = lost == written and old[first][0] != "@" and {_BEGIN, _END}.isdisjoint(lost)
    return row if usable else None


def _matches(phrase: Sequence[str], words: Sequence[str]) -> bool:
    return len(phrase) == len(words) and all(
        word in CLASSES[one] if one in CLASSES else word == one or (one == _ANY and word != _END)
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
    if _repeats(one, place, count, row.words) or _named(one, place, row):
        return None
    at = one.first + place
    words = one.words[place : place + count]
    reasons = scene.guarded.reasons[at : at + count]
    phrase = row.phrase[row.first : row.end]
    kept = iter([word.text for word, old in zip(words, phrase, strict=True) if old[0] == "@"])
    if not all(
        _may_replace(scene, word, reason)
        for word, reason, old in zip(words, reasons, phrase, strict=True)
        if old[0] != "@"
    ):
        return None
    written = (next(kept) if word[0] == "@" else word for word in row.words)
    text = " ".join("I" if word == "i" else word for word in written)
    # `OK` is no word in capitals.
    model = "Ok" if words[0].text == "OK" else words[0].text
    text = match_case(model, text) if not text.startswith("I") else text
    start = words[0].start
    before = one.words[place - 1] if place else None
    if before is not None and before.lower in {"a", "an"}:
        article = article_before(text)
        if article != before.lower:
            start, text = before.start, f"{match_case(before.text, article)} {text}"
    return Replacement(start, words[-1].end, text, operator)


def _named(one: Sentence, place: int, row: WordRow) -> bool:
    """Return whether a replaced word inside a sentence has a capital letter, as names have."""
    return any(
        word.text[0].isupper() and not word.text.startswith(("I'", "I’")) and len(word.text) > 1
        for number, word in enumerate(one.words[place : place + row.end - row.first])
        if place + number and row.phrase[row.first + number][0] != "@"
    )


def _may_replace(scene: Scene, word: Word, reason: str) -> bool:
    """Return whether the lock on a word permits a reviewed synonym."""
    if reason in _LOOSE:
        return True
    if reason == "name":
        # At the beginning of a sentence, the locks take `What's` for a name, and anywhere a word
        # that the lexicon lacks.
        contracted = word.lower.replace("’", "'").partition("'")[0]
        return word.text == word.lower or contracted in scene.lexicon.stop_words
    if reason not in {"value", "number"} or scene.kind.name == "state":
        return False
    # Such a word may be a value of a slot: `cheap`. Replies have none.
    if not scene.kind.has_tools:
        values = scene.kind.locked_values(scene.data, scene.turn, scene.states[scene.index])
        return not any(word.lower in word_list(value) for value in values)
    # If a schema lists the values of an argument, the bot chooses one of them, and copies no word.
    return all(
        word.lower not in word_list(text) or scene.kind.is_closed(scene.data, str(place))
        for answer in (scene.states[scene.index], scene.label)
        for place, text in argument_texts(answer or {})
    )


def _repeats(one: Sentence, place: int, count: int, words: Sequence[str]) -> bool:
    """Return whether a word would then stand twice in a row, as in `swimming swimming pool`."""
    before = one.said[place - 1] if place else ""
    return before == words[0] or one.said[place + count : place + count + 1] == (words[-1],)


def _keeps_locks(scene: Scene, text: str) -> bool:
    """Return whether a text with reviewed replacements keeps the locked words.

    The words of a belief state may be values of any slot. Other answers have no ontology, so the
    locks on the replaced words were enough.
    """
    return scene.kind.name != "state" or find_broken_lock(scene, text) in {"", "negation"}


@cache
def shipped_table(name: str) -> WordTable:
    """Return a shipped table of words."""
    rows = (line for line in table_lines(name) if not line.startswith("#"))
    return WordTable.of(chain.from_iterable(map(line_pairs, rows)))


def table_lines(name: str) -> list[str]:
    """Return the lines of a shipped table."""
    return (_SHIPPED / name).read_text(encoding="utf-8").splitlines()


def line_pairs(line: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of phrases in a line: each with each other, or the first with the others."""
    phrases = line.removeprefix(_ONE_WAY).split("\t")
    pairs = permutations(phrases, 2)
    return (pair for pair in pairs if pair[0] == phrases[0] or not line.startswith(_ONE_WAY))


@cache
def _own_table(pairs: tuple[tuple[str, str], ...]) -> WordTable:
    return WordTable.of([*pairs, *(pair[::-1] for pair in pairs)])


@register_relation
class Synonyms(Wording):
    """Replaces words by synonyms that fit the words around them. The answer must stay the same.

    Source: own.
    """

    name = "synonyms"
    source = "resources/relations/synonyms.tsv, of this package (MIT)"
    reasons = (_NO_SYNONYM,)
    most = 3
    between = 2
    most_alone = 8

    def keeps_locks(self, scene: Scene, text: str) -> bool:
        """Return whether a text keeps the locked words: `I do not eat` may be `I never eat`."""
        return _keeps_locks(scene, text)

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the words that have a synonym in the tables."""
        shipped, own = shipped_table("synonyms.tsv"), _own_table(scene.lexicon.own_synonyms)
        for one in sentences(scene.turn.user):
            for found in shipped.replacements(scene, one, "synonym"):
                yield (found,)
            for found in own.replacements(scene, one, "synonym"):
                # Nobody reviewed these pairs.
                if not find_broken_lock(scene, scene.rewrite([found]).seen.user):
                    yield (found,)


#: Words of letters and words of text messages, which nobody writes in one message.
_FORMAL: Final = word_set("kindly")
_TEXTED: Final = word_set("u ur r pls plz thx wanna gonna gotta")
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
    between = 2
    most_alone = 8

    def keeps_locks(self, scene: Scene, text: str) -> bool:
        """Return whether a text keeps the locked words in one register. Negations may contract."""
        said = {word.lower for word in take_apart(text).words}
        mixed = not (_FORMAL.isdisjoint(said) or _TEXTED.isdisjoint(said))
        return not mixed and _keeps_locks(scene, text)

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the phrases that can be more formal, or less formal."""
        table = shipped_table("register.tsv")
        for one in sentences(scene.turn.user):
            for found in table.replacements(scene, one, "register"):
                yield (found,)
