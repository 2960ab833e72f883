"""Which slips of a noise model no lock forbids, in one utterance.

The model makes slips in names and numbers too, as people do. Those are taken out here: what is left
is what the profile ``natural`` draws from, and the condition that its probabilities are on.
"""

from __future__ import annotations

import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.letters import LETTER_KINDS
from pytest_dstfuzz.noise.mix import load_models
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.sites import Change, Changes, Kept, Site
from pytest_dstfuzz.noise.tables import KINDS
from pytest_dstfuzz.perturb.draft import (
    FREE,
    KEPT,
    LOCKED,
    NEGATED,
    SHUT,
    Mask,
    SlipPlace,
    Slips,
    Support,
)
from pytest_dstfuzz.perturb.edit_policy import EditPolicy
from pytest_dstfuzz.perturb.scopes import DEGREES
from pytest_dstfuzz.perturb.words import Parts, Word, take_apart, word_list
from pytest_dstfuzz.transformations import SLIP, Typo

#: What keyboards of English have.
_KEYS: Final = frozenset(string.printable)
#: Words shorter than this lose no letter and swap none, as in ``strict``.
_SHORTEST: Final = 4
_SHORTENING: Final = frozenset({"missing", "swap"})
#: Locks of words whose letters carry the meaning: another case, a clitic or a missing apostrophe
#: leaves those as they are. `""` is that of a clitic.
_SPELLABLE: Final = frozenset({"", "reference", "cue"})
_UNGUARDED: Final = frozenset({""})
#: Kinds that say first words again, which no operator of words explains.
_PHRASES: Final = frozenset({"restart"})


class NoiseInUse:
    """A noise model under the locks of a run.

    Attributes:
        model: the model.
        rate: slips per word that probabilities are reckoned with.
    """

    def __init__(self, model: NoiseModel, rate: float | None) -> None:
        """Take a model, and the slip rate, where it is not to be the model's own."""
        self.model = model
        self.rate = model.slip_rate if rate is None else rate
        tables = model.file.tables
        drawn = "".join((*tables.keyboard, *tables.keyboard.values()))
        self.keys = _KEYS | set(drawn) | set(drawn.upper())

    @classmethod
    def of(cls, names: tuple[str, ...], rate: float | None) -> NoiseInUse:
        """Take the models of some names or paths as one; see `load_models`."""
        return cls(load_models(names), rate)

    @property
    def makes(self) -> frozenset[tuple[str, str]]:
        """The transformations and operators that the slips of the model are of."""
        return frozenset(KINDS[kind.name] for kind in self.model.file.kinds if kind.name in KINDS)

    @property
    def identity(self) -> str:
        """What tells the model apart from others, wherever the files of it lie."""
        return f"{self.model.name} ({self.model.fingerprint[:12]})"


class NoiseSupport:
    """Says what of a noise model the locks leave."""

    def __init__(self, noise: NoiseInUse, policy: EditPolicy) -> None:
        """Take the noise, and what the profile allows of words."""
        self._noise = noise
        self._policy = policy
        in_use = [used for some in policy.operators.values() for used in some]
        self._used = frozenset(used.names for used in in_use)
        self._explained = frozenset(used.names for used in in_use if used.operator.kind == SLIP)
        self._again = noise.model.again
        self._of_word = lru_cache(maxsize=1 << 13)(self._allowed)
        self._of_rest = lru_cache(maxsize=1 << 14)(self._allowed)

    def of(self, utterance: str, parts: Parts, mask: Mask) -> Support:
        """Return what locks and operators in use leave of what people make of an utterance."""
        more = frozenset(utterance) - self._noise.keys
        slips: list[dict[tuple[str, str], Slips]] = [{} for _ in parts.words]
        explained = []

        def kept(site: Site) -> list[Kept]:
            first = bisect_left(parts.starts, site.start)
            last = max(bisect_left(parts.starts, site.end), first + 1)
            begin = max(first - 1, 0)
            end = last if first else max(last, self._again)
            left = parts.words[begin].lower if first else ""
            found = []
            for at, part in site.parts:
                if part.of_word:
                    one = Guards("", mask.roles[first:last], mask.reasons[first:last], (), more)
                    shift, allowed = first, self._of_word(part, one)
                else:
                    roles, reasons = mask.roles[begin:end], mask.reasons[begin:end]
                    several = Guards(left, roles, reasons, mask.open[begin : end + 1], more)
                    shift, allowed = begin, self._of_rest(part, several)
                for (index, name), some in allowed.slips:
                    here = slips[shift + index]
                    here[name] = here[name].and_also(some) if name in here else some
                if allowed.explained.changes:
                    explained.append((at, allowed.explained))
                found.append(allowed.kept)
            return found

        noisy = self._noise.model.of(utterance).given(kept)
        return Support(noisy, tuple(slips), tuple(explained))

    def _allowed(self, part: Changes, guards: Guards) -> Allowed:
        """Return which changes of a part of an utterance no lock forbids."""
        # The word before it ends where the part begins.
        left = (Word(guards.left, 0, 0, guards.left),) if guards.left else ()
        words = (*left, *take_apart(part.text).words)
        ends = [word.end for word in words]
        keys = self._noise.keys | guards.more
        owners = range(len(left), len(words))
        mates = [tuple([other - at for other in owners if other != at]) for at in range(len(words))]
        kept, lost, explained = [], [], []
        found: dict[tuple[int, tuple[str, str]], list[SlipPlace]] = {}
        for change in part.changes:
            kind, start, end, after, weight = change
            before = part.text[start:end]
            at = owner(start, before, ends)
            name = KINDS[kind]
            if name not in self._used or not keys.issuperset(after):
                allowed = False
            elif kind in LETTER_KINDS:
                typo = Typo(start - words[at].start, end - words[at].start, (after,))
                allowed = guards.roles[at] != LOCKED and self._may_type(words[at].text, kind, typo)
            else:
                allowed = _RULES[kind](
                    GuardedChange(change, before, at, words, guards, self._policy)
                )
            if not allowed:
                lost.append(weight)
                continue
            kept.append(change)
            others = (*mates[at], -1) if kind == "blank" and at == len(left) else mates[at]
            place = SlipPlace(kind, start - words[at].start, before, after, others)
            found.setdefault((at, name), []).append(place)
            if name in self._explained or kind in _PHRASES:
                explained.append(change)
        slips = {
            (at, name): Slips(tuple(places), all(place.is_in(words[at].text) for place in places))
            for (at, name), places in found.items()
        }
        return Allowed(
            Kept(Changes(part.text, tuple(kept), part.of_word), tuple(lost)),
            tuple(slips.items()),
            Changes(part.text, tuple(explained), part.of_word),
        )

    def _may_type(self, word: str, kind: str, typo: Typo) -> bool:
        """Say whether a slip of letters leaves a word to be read as nothing else."""
        if kind in _SHORTENING and len(word) < _SHORTEST:
            return False
        if kind != "swap" and any(map(str.isdigit, typo.choices[0])):
            return False  # It would be a number.
        return self._policy.takes(word, typo)


def owner(start: int, before: str, ends: Sequence[int]) -> int:
    """Return the word that a change is about, by where words end.

    Of a gap it is the word after it, at the end the last one.
    """
    search: Callable[..., int] = bisect_right if before else bisect_left
    return min(search(ends, start), len(ends) - 1)


class Guards(NamedTuple):
    """What guards the words of a part of an utterance."""

    #: The word before it, in lower case; ``""`` for none, and where it does not matter.
    left: str
    #: As in `Mask`, from that word on.
    roles: tuple[int, ...]
    reasons: tuple[str, ...]
    open: tuple[int, ...]
    #: Characters of the utterance that are not on the keyboard.
    more: frozenset[str]


class Allowed(NamedTuple):
    """What no lock forbids of the changes of a part of an utterance."""

    kept: Kept
    #: Word, counted from the first that has guards; transformation and operator; their slips.
    slips: tuple[tuple[tuple[int, tuple[str, str]], Slips], ...]
    #: Those that the second check has to know.
    explained: Changes


class GuardedChange(NamedTuple):
    """One change of a part of an utterance, with what guards the words."""

    change: Change
    #: What is changed.
    before: str
    #: The word that it is about, see `owner`.
    at: int
    #: Those of the part, and the one before it.
    words: tuple[Word, ...]
    guards: Guards
    policy: EditPolicy

    @property
    def word(self) -> Word:
        """The word that it is about."""
        return self.words[self.at]

    @property
    def role(self) -> int:
        """What may happen to that word."""
        return self.guards.roles[self.at]

    @property
    def brought(self) -> frozenset[str]:
        """The locks that what is written brings with it."""
        guard_of, text = self.policy.guard_of, self.change.after
        return frozenset(guard_of(word) for word in (text, *word_list(text)))

    def is_same(self, count: int = 1) -> bool:
        """Say whether words may be written another way, with the same letters or a clitic."""
        here = slice(self.at, self.at + count)
        pairs = zip(self.guards.roles[here], self.guards.reasons[here], strict=True)
        return all(role != LOCKED or reason in _SPELLABLE for role, reason in pairs)


def _misspells(case: GuardedChange) -> bool:
    word, new = case.word.lower, case.change.after.lower()
    return case.role != LOCKED and case.policy.respells(word, new)


def _joins(case: GuardedChange) -> bool:
    roles = case.guards.roles[case.at - 1 : case.at + 1]
    if LOCKED in roles or not case.guards.open[case.at]:
        return False
    left, right = case.words[case.at - 1 : case.at + 1]
    return case.policy.harmless(left.lower + right.lower)


def _rewrites(case: GuardedChange) -> bool:
    """Write a word as in messages, or two as one: nothing that has a lock comes of it."""
    return case.role != LOCKED and case.brought == _UNGUARDED


def _contracts(case: GuardedChange) -> bool:
    """Write two words as one; the first stays as it is but in `gonna` and its like."""
    words = word_list(case.before)
    if case.change.after.lower().startswith((f"{words[0]}'", f"{words[0]}’")):
        return case.is_same(len(words)) and case.brought <= _SPELLABLE
    roles = case.guards.roles[case.at : case.at + len(words)]
    return LOCKED not in roles and case.brought == _UNGUARDED


def _sounds(case: GuardedChange) -> bool:
    return case.role == FREE and case.brought == _UNGUARDED


def _changes_case(case: GuardedChange) -> bool:
    return case.is_same()


def _drops_apostrophe(case: GuardedChange) -> bool:
    return case.is_same() and case.brought <= _SPELLABLE


def _unstops(case: GuardedChange) -> bool:
    """Leave a final full stop out, but where it may belong to what is before it."""
    return case.guards.open[case.at + 1] != SHUT


def _repeats(case: GuardedChange) -> bool:
    """Say one word, or the first ones, twice: each of them may be."""
    guards, index = case.guards, case.at
    words = word_list(case.change.after)
    opening = guards.open[index + 1 if case.change.kind == "doubled" else index]
    if opening == SHUT or not {FREE, KEPT}.issuperset(guards.roles[index : index + len(words)]):
        return False
    return opening != NEGATED or DEGREES.isdisjoint(words)


def _drops(case: GuardedChange) -> bool:
    if case.role != FREE or len(case.words) < 2:
        return False
    return any(goes(case.word.lower) for goes in case.policy.judged["drop"])


def _inserts(case: GuardedChange) -> bool:
    at_end = case.change.start >= case.word.end
    word = case.change.after.strip().lower()
    known = word in case.policy.fillers or word in case.policy.emoji
    return known and case.guards.open[case.at + at_end] != SHUT


#: Kind of slips of words, or of what is between them -> whether no lock forbids one.
_RULES: Final[Mapping[str, Callable[[GuardedChange], bool]]] = {
    "blank": _joins,
    "misspelling": _misspells,
    "apostrophe": _drops_apostrophe,
    "lower_i": _changes_case,
    "lower_first": _changes_case,
    "full_stop": _unstops,
    "texting": _rewrites,
    "contraction": _contracts,
    "doubled": _repeats,
    "restart": _repeats,
    "dropped": _drops,
    "emoji": _inserts,
    "homophone": _sounds,
    "filler": _inserts,
}
