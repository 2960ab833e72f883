"""Relations on wording: politeness, indirect questions, synonyms, register, numbers, fillers.

Each relation rephrases a turn without changing its meaning, and expects the same answer. It works
for any kind of answer.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from pytest_dstfuzz.perturb.exact import breaks_exact
from pytest_dstfuzz.perturb.words import Word, take_apart, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    Inapplicable,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.sources import find_broken_lock
from pytest_dstfuzz.relations.values import inflections, sentence_of

#: Replacements that belong together: a question mark goes with the words that ask.
Change = tuple[Replacement, ...]
#: Number of combinations of changes per turn.
_COMBINED: Final = 8
#: Maximum number of characters that the checks of a turn's changes read.
_CHECKED: Final = 1_000_000


class Wording(Relation):
    """Expects the same answer after a turn is rephrased.

    A subclass defines `changes` and ``most``. A rewrite makes one change, or several changes that
    do not touch each other. Rewrites that break a lock are left out.
    """

    expects = "{stays}"
    edits = "own"
    english = True
    #: Maximum number of changes in one rewrite.
    most = 2
    #: Minimum number of words between two changes in one rewrite.
    between = 0
    #: If a turn has more changes than this, no change is made alone.
    most_alone = 40
    #: Whether a rewrite must keep the locked words. Some relations keep them by their rules.
    checks_locks = True

    @abstractmethod
    def changes(self, scene: Scene) -> Iterable[Change]:
        """Return the changes of wording that fit the turn."""

    def keeps_locks(self, scene: Scene, text: str) -> bool:
        """Return whether a text keeps exactly the locked words of the turn."""
        return not (self.checks_locks and find_broken_lock(scene, text))

    def begin(self, scene: Scene) -> TurnStart:
        """Return rewrites with one or more changes, or the reason why no change is possible."""
        found = [one for one in self._checkable(scene) if self._fits(scene, one)]
        if not found:
            return Inapplicable(self.reasons[-1])
        return self._rewrites(scene, found)

    def _checkable(self, scene: Scene) -> Sequence[Change]:
        """Return the changes, or a sample of them if the checks of all would take too long.

        A check reads the whole text, and the number of changes grows with the text.
        """
        every = [*self.changes(scene)]
        most = max(1, _CHECKED // max(1, len(scene.turn.user)))
        if len(every) <= most:
            return every
        drawn = scene.rng.choice(len(every), size=most, replace=False)
        return [every[place] for place in sorted(drawn.tolist())]

    def _fits(self, scene: Scene, change: Change) -> bool:
        if breaks_exact(scene.guarded.exact, change):
            return False
        text = scene.rewrite(change).seen.user
        return text.split() != scene.turn.user.split() and self.keeps_locks(scene, text)

    def _rewrites(self, scene: Scene, found: Sequence[Change]) -> Iterator[Rewrite]:
        order = scene.rng.permutation(len(found)).tolist()
        alone: list[tuple[Change, ...]] = [(found[place],) for place in order]
        # A run draws only a few rewrites of a turn. If a turn has many changes, rewrites with
        # several of them reach more of the changes.
        left = order
        several: list[tuple[Change, ...]] = []
        while left and self.most > 1 and len(several) < _COMBINED:
            several.append(self._some(scene, [found[place] for place in left]))
            left = [place for place in left if found[place] not in several[-1]]
        more = (self._some(scene, found) for _ in range(_COMBINED - len(several)))
        many = len(found) > self.most_alone
        chosen = [*several, *more] if many else [*alone, *several, *more]
        seen = set()
        for some in chosen:
            edits = tuple(sorted(chain.from_iterable(some)))
            about = ", ".join(dict.fromkeys(one.operator.replace("_", " ") for one in edits))
            rewrite = scene.rewrite(edits, about=about, separable=len(edits) == len(some))
            text = rewrite.seen.user
            if text not in seen and (len(some) == 1 or self.keeps_locks(scene, text)):
                seen.add(text)
                yield rewrite

    def _some(self, scene: Scene, found: Sequence[Change]) -> tuple[Change, ...]:
        """Return random changes that do not touch each other."""
        chosen: list[Change] = []
        for place in scene.rng.permutation(len(found)).tolist():
            one = found[place]
            if len(chosen) < self.most and all(self._apart(scene, one, other) for other in chosen):
                chosen.append(one)
        return tuple(chosen)

    def _apart(self, scene: Scene, one: Change, other: Change) -> bool:
        first, second = sorted((one, other))
        end, start = first[-1].end, second[0].start
        return end < start and len(scene.turn.user[end:start].split()) >= self.between


class Sentence(NamedTuple):
    """A sentence of a turn: the words, and the marks that end it."""

    words: tuple[Word, ...]
    #: The words in lower case, with straight apostrophes.
    said: tuple[str, ...]
    #: Index of the first word in the utterance.
    first: int
    #: Offset of the first mark after the last word, and the mark, such as `?`, or ``""``.
    mark_at: int
    mark: str
    #: Whether it is the last sentence.
    last: bool
    #: The gaps between the words.
    gaps: tuple[str, ...]

    @property
    def start(self) -> int:
        """Offset of the first word."""
        return self.words[0].start

    @property
    def end(self) -> int:
        """Offset after the last word."""
        return self.words[-1].end

    @property
    def asks(self) -> bool:
        """Whether the sentence ends in a question mark."""
        return "?" in self.mark

    @property
    def capital(self) -> bool:
        """Whether the first word is capitalised only because it begins the sentence."""
        return self.words[0].text[0].isupper()


def sentences(user: str) -> Iterator[Sentence]:
    """Yield the sentences of an utterance."""
    parts = take_apart(user)
    words, gaps = parts.words, parts.gaps
    first = 0
    while first < len(words):
        last = sentence_of(parts, first)[-1]
        gap = gaps[last + 1]
        left = len(gap) - len(gap.lstrip())
        mark = gap.strip()[:1]
        mark = mark if mark in {".", "?", "!"} else ""
        inner = tuple(gaps[first + 1 : last + 1])
        part = words[first : last + 1]
        said = tuple(word.lower.replace("’", "'") for word in part)
        at = words[last].end + left if mark else words[last].end
        yield Sentence(part, said, first, at, mark, not user[at + len(mark) :].strip(), inner)
        first = last + 1


def lowered(scene: Scene, sentence: Sentence, place: int = 0) -> str:
    """Return a word of a sentence, spelled as inside a sentence."""
    word = sentence.words[place]
    named = scene.guarded.reasons[sentence.first + place] in {"name", "value", "user", "exact"}
    if named or word.lower.partition("'")[0] == "i" or (len(word.text) > 1 and word.text.isupper()):
        return word.text
    return word.text[0].lower() + word.text[1:]


def raised(text: str, like: Sentence) -> str:
    """Return a text with a capital letter if the text ``like`` has one."""
    return text[0].upper() + text[1:] if like.capital or text[0] == "I" else text


def at_end(sentence: Sentence, mark: str, operator: str) -> Change:
    """Return the change of the final mark of a sentence, if it must change."""
    if sentence.mark == mark:
        return ()
    at = sentence.mark_at
    return (Replacement(at, at + len(sentence.mark), mark, operator),)


#: Verbs that begin a request, and the words with which their object begins.
_ASKED: Final = word_set(
    """find book give show tell send make reserve get look search check list recommend suggest
    help play add order cancel change schedule transfer rent buy provide call reschedule renew
    repair fix deliver explain confirm"""
)
#: More verbs that begin a request.
_ALSO_ASKED: Final = word_set(
    """bring collect pick put remove update open close block unblock unlock activate register sign
    print move set turn switch pay return exchange replace install refund upgrade download clean
    wash describe compare translate forward lend keep hold extend track arrange start stop text
    email phone charge pack wrap correct adjust upload resend name quote remind create invite delete
    lower raise dim increase reduce lock submit join message calculate convert display record mute
    deactivate shut freeze unfreeze suspend refill reset withdraw hire mend fetch wake reorder"""
)
#: All verbs that begin a request.
REQUEST_VERBS: Final = _ASKED | _ALSO_ASKED
_OBJECTS: Final = word_set(
    """me us a an the my our your for it some this that these those him her them up all any another
    one two three four five six seven eight"""
)
_NEEDS: Final = re.compile(
    r"(?:i|we) (?:also )?(?:need|want|would like|am looking for|are looking for)\b"
    r"|(?:i'm|we're) (?:also )?looking for\b|(?:i'd|we'd) like\b|(?:i|we) 'd like\b"
)
_CAN_YOU: Final = ("can", "could", "would", "will")
_PERMITS: Final = re.compile(r"(?:can|could|may) (?:i|we) (?:please )?(?:get|have|book|reserve)\b")
#: Beginnings of a bare answer to a question: `A cheap one`.
_BARE: Final = word_set("a an the in for at on from to")
#: Words that no bare answer has, and no sentence before a final `please`.
_CLAUSED: Final = word_set(
    """is are was were am be i we you it that do does did have has but because since so if though
    although while thanks thank please goodbye bye sorry great perfect yes no not"""
)
_JOINED: Final = word_set("but because since so though although while thanks thank please")
_THANKS: Final = re.compile(
    r"(?:thank you|thanks)(?: so much| very much| a lot)?"
    r"(?: for (?:all )?(?:of )?(?:your|the|that) (?:help|assistance|time|info|information))?"
)
_GREETING: Final = re.compile(
    r"(?:hi|hello|hey)(?: there)?|good (?:morning|afternoon|evening)|greetings"
)
_ANSWERED: Final = word_set("yo yes yeah yep ok okay sure no nope well great and also so")
#: Words that begin a statement about the user's case.
_STATED: Final = word_set("my our the i i'm i've we we're we've there")
_FAREWELL: Final = word_set("thanks thank bye goodbye cheers")
_LONGEST: Final = 18
_FEWEST: Final = 3
_NO_POLITENESS: Final = "no polite words can be added or removed"


def requests(sentence: Sentence) -> bool:
    """Return whether a sentence is a request in the imperative, such as `Find me a room`."""
    said = sentence.said
    said = said[1:] if said[:1] == ("please",) else said
    if sentence.asks or len(said) < _FEWEST:
        return False
    return said[0] in REQUEST_VERBS and _has_object(said)


#: Particles between a verb and its object, as in `turn off the light`.
_PARTICLES: Final = word_set("on off down out back over")


def _has_object(said: Sequence[str]) -> bool:
    rest = said[2:] if said[1:2] and said[1] in _PARTICLES else said[1:]
    if not rest:
        return False
    bare = said[0] in _ONLY_VERBS and len(said) > _FEWEST and rest[0] not in _NO_OBJECTS
    return bare or rest[0] in _OBJECTS or (rest[0].isdigit() and len(rest) > 1)


#: Verbs that begin no noun phrase, so that any noun may follow: `Add milk to my list`.
_ONLY_VERBS: Final = word_set(
    "find add send cancel buy invite translate convert transfer reserve reschedule recommend play"
)
#: Words that begin no object.
_NO_OBJECTS: Final = word_set(
    """is are was were am be of to for in on at from with by and or out up if when where what who
    how which that so no not will would can could do does did has have had one's then"""
)


def says_need(sentence: Sentence) -> bool:
    """Return whether a sentence says that the user needs something."""
    return not sentence.asks and _NEEDS.match(" ".join(sentence.said)) is not None


def asks_to(sentence: Sentence) -> bool:
    """Return whether a sentence begins `Can you find me`, `Could you please book the`."""
    said = [word for word in sentence.said if word != "please"]
    return (
        said[:1] != []
        and said[0] in _CAN_YOU
        and said[1:2] == ["you"]
        and (len(said) > 3 and said[2] in REQUEST_VERBS and _has_object(said[2:]))
    )


def is_polite(sentence: Sentence) -> bool:
    """Return whether a sentence is only a greeting or thanks."""
    text = " ".join(sentence.said)
    return any(pattern.fullmatch(text) for pattern in (_GREETING, _THANKS))


#: Polite phrases with words that otherwise choose any value, or negate.
_CHOOSES_NOTHING: Final = re.compile(r"\bany chance\b|\bif you don['’]t mind\b", re.IGNORECASE)


@register_relation
class Politeness(Wording):
    """Adds or drops a greeting, `please`, `thanks` or `could you`. The answer must stay the same.

    Source: own.
    """

    name = "politeness"
    source = "rules of this package (MIT)"
    reasons = (_NO_POLITENESS,)

    def keeps_locks(self, scene: Scene, text: str) -> bool:
        """Return whether a text keeps the locked words. `any chance` chooses no value."""
        pleas = text.lower().count("please")
        if pleas > max(scene.turn.user.lower().count("please"), 1):
            return False
        broken = find_broken_lock(scene, text)
        idle = any(map(_CHOOSES_NOTHING.search, (text, scene.turn.user)))
        return not broken or (idle and broken in {"dontcare", "negation"})

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Yield the changes that add polite words to the turn or remove them."""
        parts = list(sentences(scene.turn.user))
        yield from _greetings(scene, parts)
        yield from _thanks(scene, parts)
        pleading = any("please" in one.said for one in parts)
        for one in parts:
            yield from _less_pleading(scene, one) if pleading else _pleases(scene, one)
            yield from _could_you(scene, one)
            yield from _wishes(one)
            yield from _asks_for(one)


def _greetings(scene: Scene, parts: Sequence[Sentence]) -> Iterator[Change]:
    """Yield a greeting before the first turn, or remove its greeting."""
    if not parts or scene.index:
        return
    first = parts[0]
    text = " ".join(first.said)
    greets = _GREETING.match(text)
    if not greets:
        stated = first.said[0] in _STATED and len(first.said) > _FEWEST
        if (any(map(speaks, parts)) or stated) and first.said[0] not in _ANSWERED:
            for hello in ("Hello", "Hi", "Hiya", "Hey there", "Good morning"):
                mark = "! " if first.capital else ", "
                said = hello if first.capital else hello.lower()
                yield (Replacement(first.start, first.start, f"{said}{mark}", "greeting_added"),)
            if not requests(first):
                asks = any(map(speaks, parts))
                for sorry in ("excuse me,", *(("sorry to bother you, but",) if asks else ())):
                    said = f"{raised(sorry, first)} {lowered(scene, first)}"
                    yield (Replacement(first.start, first.words[0].end, said, "greeting_added"),)
        return
    count = len(greets[0].split())
    if count == len(first.said) and len(parts) > 1:
        yield (Replacement(first.start, parts[1].start, "", "greeting_dropped"),)
    elif count < len(first.said) - 1 and "," in first.gaps[count - 1]:
        yield _from_word(scene, first, count, "greeting_dropped")


def _from_word(scene: Scene, sentence: Sentence, place: int, operator: str) -> Change:
    """Return the change that makes a sentence begin with one of its later words."""
    word = sentence.words[place]
    free = scene.guarded.reasons[sentence.first + place] in {"", "cue", "request"}
    text = raised(word.text, sentence) if free else word.text
    return (Replacement(sentence.start, word.end, text, operator),)


def speaks(sentence: Sentence) -> bool:
    """Return whether a sentence is a request."""
    asks = sentence.asks and len(sentence.said) >= _FEWEST
    return asks or requests(sentence) or says_need(sentence) or asks_to(sentence)


def _thanks(scene: Scene, parts: Sequence[Sentence]) -> Iterator[Change]:
    """Yield the turn with added thanks at its end, or without its thanks."""
    said = {word for one in parts for word in one.said}
    if _FAREWELL.isdisjoint(said):
        if parts and speaks(parts[-1]):
            last = parts[-1]
            at = last.mark_at + len(last.mark)
            at += len(scene.turn.user[at:].rstrip())  # As in `a room . ?`.
            if last.mark:
                yield (Replacement(at, at, " Thanks!", "thanks_added"),)
                yield (Replacement(at, at, " Thank you.", "thanks_added"),)
                yield (Replacement(at, at, " Many thanks in advance.", "thanks_added"),)
            elif last.said[-1] != "please":
                yield (Replacement(at, at, ", thanks", "thanks_added"),)
        return
    for place, one in enumerate(parts):
        found = _THANKS.match(" ".join(one.said))
        count = len(found[0].split()) if found else 0
        others = [other for other in parts if other is not one]
        if not count or (one.said[:1] and place and "no" in parts[place - 1].said):
            continue
        if count == len(one.said) and any(map(speaks, others)):
            if place:
                before = parts[place - 1]
                cut = before.mark_at + len(before.mark)
                end = one.mark_at + len(one.mark)
                yield (Replacement(cut, end, "", "thanks_dropped"),)
            else:
                yield (Replacement(one.start, parts[1].start, "", "thanks_dropped"),)
        elif count < len(one.said) - _FEWEST and "," in one.gaps[count - 1]:
            yield _from_word(scene, one, count, "thanks_dropped")


def _pleases(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield a sentence with `please`."""
    if not _JOINED.isdisjoint(one.said) or len(one.said) > _LONGEST:
        return
    if requests(one):
        text = f"{raised('please', one)} {lowered(scene, one)}"
        yield (Replacement(one.start, one.words[0].end, text, "please_added"),)
    if asks_to(one):
        at = one.words[1].end
        yield (Replacement(at, at, " please", "please_added"),)
    needs = one.last and says_need(one) and "help" not in one.said
    permits = one.asks and _PERMITS.match(" ".join(one.said))
    if requests(one) or asks_to(one) or needs or permits or _is_bare(scene, one):
        yield (Replacement(one.end, one.end, ", please", "please_added"),)


def _is_bare(scene: Scene, one: Sentence) -> bool:
    """Return whether a turn is a bare answer to a question, such as `In the north`."""
    few = 1 < len(one.said) <= 2 * _FEWEST
    alone = one.last and one.first == 0
    asked = scene.turn.system.rstrip().endswith("?")
    return few and alone and asked and one.said[0] in _BARE and _CLAUSED.isdisjoint(one.said)


def _less_pleading(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield a sentence without its `please`."""
    said = one.said
    place = said.index("please") if "please" in said else 0
    if not place and said[0] != "please":
        return
    if len(said) <= _FEWEST or said.count("please") > 1 or scene.guarded.reasons[one.first + place]:
        return
    word = one.words[place]
    if place == 0:
        if said[1] in _ASKED and not one.gaps[0].strip():
            yield _from_word(scene, one, 1, "please_dropped")
        return
    before = said[place - 1]
    if before in {"to", "yes", "yeah", "yep", "ok", "okay", "sure", "no", "and"}:
        return
    ends = place == len(said) - 1
    if ends or (not one.gaps[place].strip() and said[:2] in {(c, "you") for c in _CAN_YOU}):
        yield (Replacement(one.words[place - 1].end, word.end, "", "please_dropped"),)


def _could_you(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield `Could you find me a room?` for `Find me a room.`, and vice versa."""
    if requests(one) and _JOINED.isdisjoint(one.said) and len(one.said) <= _LONGEST:
        if one.said[0] != "please":
            yield from _asking(scene, one, 0, "could_you_added")
        return
    place = _verb_asked(one)
    if place and "help" not in one.said and _one_request(one):
        base = _base(one.said[place])
        text = raised(base, one)
        begins = Replacement(one.start, one.words[place].end, text, "could_you_dropped")
        yield (begins, *at_end(one, ".", "could_you_dropped"))
        if "please" not in one.said:
            yield from _asking(scene, one, place, "asked_otherwise")
    elif one.asks and one.said[:2] in _MAY_I and "please" not in one.said:
        if not _PERMITS.match(" ".join(one.said)) or not _one_request(one):
            return
        for text, mark in _MAY_BE:
            if mark == "." and text != _WONDERING and one.said[2] not in _BOOKED:
                continue
            begins = Replacement(one.start, one.words[1].end, raised(text, one), "wondering")
            yield (begins, *at_end(one, mark, "wondering"))


def _asking(scene: Scene, one: Sentence, place: int, operator: str) -> Iterator[Change]:
    """Yield a request with each polite beginning. The word ``place`` is the verb of the request."""
    verb = _base(one.said[place]) if place else lowered(scene, one)
    for ask, mark in _ASKING:
        if operator == "asked_otherwise" and " ".join(one.said[:place]) == ask.lower():
            continue
        said = with_ing(verb) if ask in _BEFORE_ING else verb
        begins = Replacement(
            one.start, one.words[place].end, f"{raised(ask, one)} {said}", operator
        )
        yield (begins, *at_end(one, mark, operator))


def _verb_asked(one: Sentence) -> int:
    """Return the index of the verb after a polite beginning such as `Could you`, or 0."""
    if asks_to(one) and one.asks:
        return one.said.index("you") + 1 + ("please" in one.said[: one.said.index("you") + 2])
    found = _ASKED_FOR.match(" ".join(one.said))
    place = len(found[0].split()) if found else 0
    if not place or place + 1 >= len(one.said):
        return 0
    known = _base(one.said[place]) in REQUEST_VERBS
    return place if known and _has_object(one.said[place:]) else 0


_DOUBLED: Final = word_set("get put set run stop swap cancel shut submit wrap dim transfer refer")


def with_ing(verb: str) -> str:
    """Return the form of a verb with `ing`: `booking`, `making`, `getting`."""
    if verb in _DOUBLED:
        return f"{verb}{verb[-1]}ing"
    silent = verb.endswith("e") and not verb.endswith("ee")
    return f"{verb[:-1] if silent else verb}ing"


def _base(verb: str) -> str:
    """Return a verb of a request without `ing`."""
    return _ING.get(verb, verb)


_MAY_I: Final = (("can", "i"), ("could", "i"), ("may", "i"))
_WONDERING: Final = "I was wondering if I could"
_BOOKED: Final = word_set("book reserve")
#: Polite beginnings of a request, and the mark after it.
_ASKING: Final = (
    ("could you", "?"),
    ("can you", "?"),
    ("would you", "?"),
    ("would you be able to", "?"),
    ("do you think you could", "?"),
    ("any chance you could", "?"),
    ("is there any chance you could", "?"),
    ("could I trouble you to", "?"),
    ("could I ask you to", "?"),
    ("would it be possible for you to", "?"),
    ("would you be so kind as to", "?"),
    ("would you mind", "?"),
    ("I was wondering if you could", "."),
    ("I would be grateful if you could", "."),
    ("I'd appreciate it if you could", "."),
    ("it would be great if you could", "."),
    ("if you don't mind,", "."),
)
#: After these, the verb ends in `ing`.
_BEFORE_ING: Final = ("would you mind",)
#: Other beginnings, which are only replaced.
_ALSO_ASKING: Final = (
    *("i'd be grateful if you could", "i would appreciate it if you could", "do you mind"),
    *("i'd like you to", "i would like you to", "i need you to", "i want you to"),
)
_KNOWN_ASKING: Final = sorted(
    (*_ALSO_ASKING, *(ask.lower().rstrip(",") for ask, _ in _ASKING)), key=len, reverse=True
)
_ASKED_FOR: Final = re.compile(f"(?:{'|'.join(map(re.escape, _KNOWN_ASKING))}) ")
_ING: Final = {with_ing(verb): verb for verb in sorted(REQUEST_VERBS)}
#: Polite beginnings of a question for permission, and the mark after it.
_MAY_BE: Final = (
    (_WONDERING, "."),
    ("would it be possible to", "?"),
    ("any chance I could", "?"),
    ("do you think I could", "?"),
    ("would I be able to", "?"),
    ("I'd like to", "."),
)
_SECOND: Final = re.compile(r"\b(?:and|or|but|if)\b|,")


def _one_request(one: Sentence) -> bool:
    """Return whether a sentence has one clause."""
    pairs = zip(one.said, (*one.gaps, ""), strict=True)
    return _SECOND.search(" ".join(f"{word}{gap.strip()}" for word, gap in pairs)) is None


def _wishes(one: Sentence) -> Iterator[Change]:
    """Yield `I'd like` for `I want`, and vice versa."""
    said = one.said
    if said[:2] in {("i", "want"), ("we", "want")} and said[2:3] and said[2] in _WANTED:
        whole = "I would like" if said[0] == "i" else raised("we would like", one)
        yield (Replacement(one.start, one.words[1].end, whole, "wish"),)
    if said[:2] in {("i'd", "like"), ("we'd", "like")} and said[2:3] and said[2] in _WANTED:
        yield (Replacement(one.words[0].end - 2, one.words[1].end, " want", "wish"),)
    wishes = said[:3] in {("i", "would", "like"), ("we", "would", "like")}
    if wishes and said[3:4] and said[3] in _WANTED:
        yield (Replacement(one.words[1].start, one.words[2].end, "want", "wish"),)
    found = _WISH_TO.match(" ".join(said))
    place = len(found[0].split()) if found else 0
    if not place or place + 1 >= len(said) or said[place] not in REQUEST_VERBS - _BOTS:
        return
    if one.asks or not _one_request(one) or said[place + 1] not in _OBJECTS or not one.last:
        return
    for text, mark in _MAY_BE[:-1] + _HOPES:
        begins = Replacement(one.start, one.words[place - 1].end, raised(text, one), "wish")
        yield (begins, *at_end(one, mark, "wish"))


_WANTED: Final = word_set("to a an the some two three four")
_WISH_TO: Final = re.compile(r"i(?: want to| need to| would like to|'d like to|'m hoping to) ")
#: Verbs that say what the assistant does, and not the user.
_BOTS: Final = word_set("give show tell send list recommend suggest provide deliver help explain")
_HOPES: Final = (("I was hoping to", "."), ("could I", "?"), ("if possible, I'd like to", "."))
_OWN_NEED: Final = re.compile(
    r"(?:i need|i want|i'd like|i would like) (?:a|an|some|two|three|four) "
)
_HAVES: Final = re.compile(r"(?:can|could|may) i (?:have|get) (?:a|an|some|two|three|four) ")
#: Things that an assistant may hand out.
_SERVED: Final = word_set(
    """room table ticket tickets taxi cab seat copy receipt coffee tea menu appointment reservation
    booking quote voucher map sandwich pizza salad beer towel blanket
    pillow bag catalogue brochure form"""
)


def _asks_for(one: Sentence) -> Iterator[Change]:
    """Yield `Could I have a room?` for `I need a room.`, and vice versa."""
    said = " ".join(one.said)
    if not one.last or _SERVED.isdisjoint(one.said) or not _one_request(one):
        return
    if not _JOINED.isdisjoint(one.said) or len(one.said) > _LONGEST:
        return
    if not one.asks and (found := _OWN_NEED.match(said)):
        begins, mark = ("could I have", "can I get"), "?"
    elif one.asks and (found := _HAVES.match(said)):
        begins, mark = ("I would like", "I need"), "."
    else:
        return
    last = one.words[len(found[0].split()) - 2]
    for text in begins:
        start = Replacement(one.start, last.end, raised(text, one), "asked_for")
        yield (start, *at_end(one, mark, "asked_for"))


_NO_QUESTION: Final = "the turn has no direct or indirect question that can be rewritten"
#: These begin no question about the bot itself.
_OTHERS: Final = ("Do you know", "Do you happen to know")
#: Words before an indirect question, and the mark after it.
_FRAMES: Final = (
    ("I'd like to know", "."),
    ("I would like to know", "."),
    ("Can you tell me", "?"),
    ("Could you tell me", "?"),
    ("Do you know", "?"),
    ("Please tell me", "."),
    ("I was wondering", "."),
    ("Would you mind telling me", "?"),
    ("Would you be able to tell me", "?"),
    ("Could I ask", "?"),
    ("Do you happen to know", "?"),
    ("I need to know", "."),
    ("I'm wondering", "."),
    ("I'd be interested to know", "."),
)
_INDIRECT: Final = re.compile(
    r"(?:i'd like to know|i would like to know|i want to know|i need to know|i was wondering"
    r"|(?:can|could) you (?:please )?tell me|tell me|please tell me|do you know"
    r"|would you (?:mind telling|be able to tell) me|(?:can|could|may) i ask(?: you)?"
    r"|do you happen to know|do you have any idea|any idea|i'd love to know|i'd like to find out"
    r"|i'm trying to find out|i am trying to find out|i want to find out|i need to find out"
    r"|i'd be interested to know|i wonder|i'm wondering|i am wondering) "
    r"(?=(?:what|when|where|how|which|who|if|whether)\b)"
)
#: Pronouns as subjects, with the form of `be` and whether `does` goes with it.
_BE: Final = {"you": "are", "they": "are", "we": "are", "i": "am", "it": "is", "there": "is"}
_DETERMINERS: Final = word_set("the your my our this that their its")
#: Verbs after a subject that is a noun: `When does the museum open?`
_VERBS: Final = word_set(
    """open close cost leave arrive take start begin end have offer serve accept include depart get
    run last need cover work charge deliver stop go come provide allow"""
)
_IRREGULAR: Final = {"have": "has", "do": "does", "go": "goes"}
#: Questions with `can` that are requests.
_REQUESTED: Final = word_set(
    """try change do get have book reserve ask see help find make order just also please you use
    speak talk know"""
)
_WH: Final = re.compile(
    r"(?:what time|what day|when|where|why|how (?:much|long|far|often|many [a-z]+|old|big|late)"
    r"|what|which [a-z]+|what (?:kind|type|sort) of [a-z]+|who|how)\b"
)
#: Words after which a question has more than one clause, or is a set phrase.
_BROKEN: Final = word_set("if because since but so when where while unless please thanks about or")
#: `and` before these joins a second question.
_SECOND_QUESTION: Final = re.compile(
    r"\b(?:and|or) (?:what|when|where|how|who|which|is|are|do|does|can|could|will|would)\b"
)
#: Verbs after `do you` in questions that ask for advice or are requests.
_ADVICE: Final = word_set(
    "think suggest recommend know want mind like not need prefer have mean happen"
)
_MOST_WORDS: Final = 14


def _edit(start: int, end: int, after: str) -> Replacement:
    return Replacement(start, end, after, "indirect")


@register_relation
class IndirectQuestion(Wording):
    """Makes direct questions indirect, or the other way round. The answer must stay the same.

    Source: own.
    """

    name = "indirect-question"
    source = "rules of this package (MIT)"
    reasons = (_NO_QUESTION,)

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the turn's questions in direct form, or with another indirect beginning."""
        for one in sentences(scene.turn.user):
            frame = _INDIRECT.match(" ".join(one.said))
            if frame:
                yield from _reframed(scene, one, len(frame[0].split()))
            elif one.asks and len(one.said) <= _MOST_WORDS:
                yield from _framed(scene, one)


def _framed(scene: Scene, one: Sentence) -> Iterator[Change]:
    """Yield a direct question as an indirect one."""
    if any(gap.strip() for gap in one.gaps) or _SECOND_QUESTION.search(" ".join(one.said)):
        return
    edits = _wh_question(scene, one) or _polar_question(scene, one)
    if edits is None:
        return
    polar = edits[0].after.split()[0] == "if"
    for frame, mark in _FRAMES:
        if frame == "I was wondering" and not polar:
            continue
        if frame in _OTHERS and not {"you", "your"}.isdisjoint(one.said):
            continue
        first = edits[0]
        said = frame if one.capital or frame[0] == "I" else frame[0].lower() + frame[1:]
        begins = first._replace(after=f"{said} {first.after}")
        yield (begins, *edits[1:], *at_end(one, mark, "indirect"))


def _reframed(scene: Scene, one: Sentence, count: int) -> Iterator[Change]:
    """Yield an indirect question with another beginning, and as a direct question if possible."""
    old = " ".join(one.said[:count])
    whether = one.said[count] in {"if", "whether"}
    if any(gap.strip() for gap in one.gaps[:count]) or len(one.said) > 2 * _MOST_WORDS:
        return
    if any("," in gap for gap in one.gaps) or not _BROKEN.isdisjoint(one.said[count + 1 :]):
        return
    after = " ".join(one.said[count:])
    if _SECOND_QUESTION.search(after) or re.search(r"\byou (?:can|could|would|will)\b", after):
        return
    yield from _direct(scene, one, count)
    for frame, mark in _FRAMES:
        if frame.lower() == old or (frame == "I was wondering" and not whether):
            continue
        if frame in _OTHERS and not {"you", "your"}.isdisjoint(one.said[count:]):
            continue
        said = frame if one.capital or frame[0] == "I" else frame[0].lower() + frame[1:]
        begins = Replacement(one.start, one.words[count - 1].end, said, "reframed")
        yield (begins, *at_end(one, mark, "reframed"))


def _direct(scene: Scene, one: Sentence, count: int) -> Iterator[Change]:
    """Yield an indirect question as a direct one: `When do you open?`."""
    said, words = one.said, one.words
    lead = said[count]
    turned = ""
    if lead in {"if", "whether"} and len(said) > count + 3:
        subject, verb = said[count + 1 : count + 3]
        last = count + 2
        if subject in _BE and verb in {"is", "are"} and _BE[subject] in {verb, "is"}:
            turned = f"{verb} {subject}"
        elif subject in {"you", "they", "we", "i"} and verb in _VERBS:
            turned, last = f"do {subject}", count + 1
    else:
        found = _WH.match(" ".join(said[count:]))
        last = count + len(found[0].split()) if found else 0
        pair = said[last : last + 2]
        if len(pair) == 2 and pair[0] in {"you", "they", "we", "i"} and pair[1] in _VERBS:
            turned = f"{lowered(scene, one, count)}"
            between = [words[place].text for place in range(count + 1, last)]
            turned = " ".join([turned, *between, "do", pair[0]])
    if turned:
        turned = re.sub(r"\bi$", "I", turned)
        begins = Replacement(one.start, words[last].end, raised(turned, one), "direct")
        yield (begins, *at_end(one, "?", "direct"))


def _acts(scene: Scene, said: Sequence[str]) -> bool:
    """Return whether `do you` asks about an action: `do you deliver`."""
    verb, by_user = said[2], said[1] in {"i", "we"}
    if verb in {"have", "need"}:
        return by_user == (verb == "need")
    known = verb in _VERBS or scene.lexicon.majority_pos(verb) == "verb"
    return known and verb not in _ADVICE and verb not in _ASKED - {"deliver", "repair", "fix"}


def _polar_question(scene: Scene, one: Sentence) -> list[Replacement] | None:
    """Return the edits from `Do they have a pool?` to `if they have a pool`."""
    said = one.said
    if len(said) < _FEWEST or not _BROKEN.isdisjoint(said[1:]):
        return None
    helper, subject = said[0], said[1]
    if helper == "does" and "and" not in said:
        return _third_person(one, 0, "if")
    turned, last = "", 1
    if helper == "do" and subject in {"you", "they", "we", "i"} and _acts(scene, said):
        turned, last = "if", 0
    if helper in {"is", "are"} and (subject == "there" or _BE.get(subject) == helper):
        sure = said[2] in {"sure", "able"}
        turned = "" if sure else f"if {lowered(scene, one, 1)} {helper}"
    if helper in {"is", "are"} and subject not in {*_BE, "that", "this", "these", "those"}:
        return _polar_predicate(one)
    if helper == "can" and subject in {"i", "we"} and said[2] not in _REQUESTED:
        turned = f"if {'I' if subject == 'i' else 'we'} can"
    return [_edit(one.start, one.words[last].end, turned)] if turned else None


def _polar_predicate(one: Sentence) -> list[Replacement] | None:
    """Return the edits from `Is the museum open?` to `if the museum is open`."""
    ends = range(2, min(_MOST_SUBJECT + 2, len(one.said)))
    place = next((n for n in ends if one.said[n] in _PREDICATES), 0)
    if not place or one.said[place - 1] in {"the", "a", "an", "be", "not"}:
        return None
    helper = one.words[0]
    at = one.words[place].start
    return [_edit(helper.start, helper.end, "if"), _edit(at, at, f"{helper.lower} ")]


def _third_person(one: Sentence, helper: int, lead: str) -> list[Replacement] | None:
    """Return the edits from `does it cost` to `it costs`. ``lead`` comes before it."""
    said = one.said
    verb = _verb_after(said, helper + 1)
    if verb is None:
        return None
    word = one.words[verb]
    base = word.lower
    form = _IRREGULAR.get(base) or base + ("es" if base.endswith(("s", "ch", "sh")) else "s")
    drop = _edit(one.words[helper].start, one.words[helper + 1].start, "")
    if not helper:
        drop = drop._replace(after=f"{lead} ")
    return [drop, _edit(word.start, word.end, form)]


def _verb_after(said: Sequence[str], subject: int) -> int | None:
    """Return the index of the verb after a subject of one to four words."""
    if said[subject : subject + 1] in (["it"], ("it",)):
        verb = subject + 1
        return verb if said[verb : verb + 1] and said[verb] in _VERBS else None
    if subject + 1 >= len(said):
        return None
    if said[subject] not in _DETERMINERS:
        bare = said[subject] not in _BE and said[subject + 1] in _VERBS
        return subject + 1 if bare else None
    for verb in range(subject + 2, min(subject + 5, len(said))):
        if said[verb] in _VERBS:
            return verb
    return None


def _ends_with_adjective(scene: Scene, said: Sequence[str]) -> bool:
    """Return whether words end with what they say of a noun: `amplifiers important`."""
    kinds = [scene.lexicon.majority_pos(word) for word in said[-2:]]
    return kinds == ["noun", "adj"] or (
        kinds[-1:] == ["adj"] and inflections().singular(said[max(0, len(said) - 2)]) is not None
    )


def _wh_question(scene: Scene, one: Sentence) -> list[Replacement] | None:
    """Return the edits from `When do you open?` to `when you open`."""
    said = one.said
    found = _WH.match(" ".join(said))
    count = len(found[0].split()) if found else 0
    if not count or len(said) < count + 2 or not _BROKEN.isdisjoint(said[count:]):
        return None
    helper, subject = said[count], said[count + 1]
    lower = lowered(scene, one)
    lead = _edit(one.start, one.words[0].end, lower)
    gone = _edit(one.words[count].start, one.words[count + 1].start, "")
    if helper == "does" and "and" not in said:
        edits = _third_person(one, count, "")
        return None if edits is None else [lead, *edits]
    long = found is not None and found[0] == "how" and len(said) > _MOST_AFTER_HOW
    if (
        helper in {"is", "are"}
        and subject in _DETERMINERS
        and not long
        and _AFTER_NOUN.isdisjoint(said)
        and not _ends_with_adjective(scene, said[count + 2 :])
    ):
        return _moved_to_end(one, lead, gone, count)
    if helper == "do" and subject in {"you", "they", "we", "i"}:
        verb = said[count + 2 : count + 3]
        return [lead, gone] if verb and verb[0] not in _ADVICE - {"need", "have"} else None
    if found is not None and found[0].split()[0] in {"who", "which", "what"}:
        base = inflections().infinitive(helper)
        if base is not None and base not in {"be", "do", "have"}:
            # In `what alarms do I have`, the word after `what` is no verb.
            return [lead] if {"do", "does", "did"}.isdisjoint(said[count:]) else None
    turned = ""
    if helper in {"is", "are"} and _BE.get(subject) == helper and subject != "there":
        turned = f"{lowered(scene, one, count + 1)} {helper}" if len(said) <= count + 3 else ""
    if helper in {"can", "should"} and subject in {"i", "we"}:
        turned = f"{'I' if subject == 'i' else 'we'} {helper}"
    swapped = _edit(one.words[count].start, one.words[count + 1].end, turned)
    return [lead, swapped] if turned else None


_BY_HELPER: Final = ("where", "when", "how much", "how old", "how big", "how long", "what time")


def subject_asked_about(scene: Scene, one: Sentence) -> tuple[int, int] | None:
    """Return the place of a subject such as `the museum` in `When does the museum open?`."""
    said = one.said
    found = _WH.match(" ".join(said))
    count = len(found[0].split()) if found else 0
    first = count + 1
    if first + 1 >= len(said) or said[first] not in {"the", "your", "my", "our"}:
        return None
    if not _BROKEN.isdisjoint(said[count:]) or "and" in said:
        return None
    end: int | None = None
    if said[count] in {"do", "does"}:
        end = _verb_after(said, first)
    elif said[count] in {"is", "are"}:
        end = next((n for n in range(first + 2, len(said)) if said[n] in _PREDICATES), None)
        if end is None and found is not None and found[0] in _BY_HELPER:
            end = len(said)
        last = scene.lexicon.majority_pos(said[-1]) == "adj" or said[-1].endswith("ed")
        if end is None and last and not count and len(said) == first + 3:
            end = len(said) - 1
    if end is None or not 1 < end - first <= _MOST_SUBJECT:
        return None
    nouns = said[first + 1 : end]
    plain = all(scene.lexicon.majority_pos(word) in {"noun", "adj", ""} for word in nouns)
    return (first, end) if plain and _AFTER_SUBJECT.isdisjoint(nouns) else None


#: Words that no short subject has.
_AFTER_SUBJECT: Final = word_set("of for to in on at from with by between near next last first own")


#: Words with which `is` at the end of a long question is hard to read.
_AFTER_NOUN: Final = word_set("and per that which who")
#: `I'd like to know how the weather in Oslo is` has too many words before `is`.
_MOST_AFTER_HOW: Final = 4
_LEAST_MOVED: Final = 2
_MOST_MOVED: Final = 9
#: Verb forms and adverbs before which `is` stands: `where the museum is located`.
_PREDICATES: Final = word_set(
    """located called closed open available included near like required allowed possible free
    permitted expected refundable accessible
    vegan safe valid ready broken full cancelled delayed insured"""
)
_MOST_SUBJECT: Final = 4


def _moved_to_end(
    one: Sentence, lead: Replacement, gone: Replacement, count: int
) -> list[Replacement] | None:
    """Return the edits from `What is the address?` to `what the address is`."""
    said = one.said
    if not _LEAST_MOVED < len(said) - count <= _MOST_MOVED:
        return None
    if said[-1].endswith("ing") and len(said) > count + 3:
        return None  # The last word may be a verb: `where the play is happening`.
    place = next((n for n in range(count + 2, len(said)) if said[n] in _PREDICATES), len(said))
    if place == len(said):
        return [lead, gone, _edit(one.end, one.end, f" {said[count]}")]
    at = one.words[place].start
    return [lead, gone, _edit(at, at, f"{said[count]} ")]


_NO_FILLER: Final = "no filler sentence fits before or after the turn"
#: Sentences before a question, before the first request, and before an answer.
_BEFORE_QUESTION: Final = (
    "I have a quick question.",
    "Just a quick question.",
    "I have a question.",
)
_BEFORE_REQUEST: Final = (
    "I hope you can help me.",
    "I could use some help.",
    "I was hoping you could help me.",
    "Sorry to bother you.",
)
_BEFORE_ANSWER: Final = ("Let me see.", "Let me think.")
#: Sentences after the first turn, after a later question, and after a later request.
_AFTER_FIRST: Final = ("I hope you can help me.", "I would really appreciate your help.")
_AFTER_QUESTION: Final = ("Just curious.", "Just so I know.")
_AFTER_REQUEST: Final = ("Take your time.", "I really appreciate your help.")
_QUESTION_WORDS: Final = word_set(
    "what what's when where where's which who how do does is are can could may will"
)
_ENOUGH: Final = 4


@register_relation
class FillerSentences(Wording):
    """Adds a filler sentence before or after a turn. The answer must stay the same.

    Source: own.
    """

    name = "filler-sentences"
    source = "sentences of this package (MIT)"
    reasons = (_NO_FILLER,)
    most = 1

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the filler sentences that fit the turn."""
        parts = list(sentences(scene.turn.user))
        if not parts or sum(len(one.said) for one in parts) < _ENOUGH:
            return
        first, last = parts[0], parts[-1]
        for text in _openers(scene, first):
            said = text if first.capital or text[:2] == "I " else text[0].lower() + text[1:]
            yield (Replacement(first.start, first.start, f"{said} ", "filler_before"),)
        if last.mark and _FAREWELL.isdisjoint(word for one in parts for word in one.said):
            at = last.mark_at + len(last.mark)
            for text in _closers(scene, last):
                yield (Replacement(at, at, f" {text}", "filler_after"),)


def _openers(scene: Scene, first: Sentence) -> Sequence[str]:
    """Return sentences that fit before the first sentence of a turn."""
    said = first.said
    if said[0] in _ANSWERED or _GREETING.match(" ".join(said)) or said[0] in _FAREWELL:
        return ()
    if not {"help", "question", "also", "another"}.isdisjoint(said):
        return ()
    if first.asks and not asks_to(first):
        fits = said[0] in _QUESTION_WORDS and said[1:2] != ("about",) and len(said) > _FEWEST
        return _BEFORE_QUESTION if fits else ()
    if scene.index == 0:
        return _BEFORE_REQUEST if requests(first) or asks_to(first) or says_need(first) else ()
    asked = scene.turn.system.rstrip().endswith("?")
    return _BEFORE_ANSWER if asked and says_need(first) else ()


def _closers(scene: Scene, last: Sentence) -> Sequence[str]:
    """Return sentences that fit after the last sentence of a turn."""
    if "help" in last.said or not speaks(last):
        return ()
    if scene.index == 0:
        return _AFTER_FIRST
    if requests(last) or asks_to(last):
        return _AFTER_REQUEST
    fits = last.asks and last.said[0] in _QUESTION_WORDS and not _PERMITS.match(" ".join(last.said))
    return _AFTER_QUESTION if fits and last.said[1] != "about" else ()
