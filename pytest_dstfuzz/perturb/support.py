"""Which slips of a noise model no lock forbids, in one utterance.

The model makes slips in names and numbers too, as people do. Those are taken out here: what is left
is what the profile ``natural`` draws from, and the condition that its probabilities are on.
"""

from __future__ import annotations

import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_dstfuzz.noise.letters import LETTER_KINDS
from pytest_dstfuzz.noise.mix import load_models
from pytest_dstfuzz.noise.model import NoiseModel
from pytest_dstfuzz.noise.sites import Slip
from pytest_dstfuzz.perturb.draft import FREE, KEPT, LOCKED, NEGATED, SHUT, Mask, SlipPlace, Support
from pytest_dstfuzz.perturb.edit_policy import EditPolicy
from pytest_dstfuzz.perturb.scopes import DEGREES
from pytest_dstfuzz.perturb.words import Parts, word_list
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
        self._types = lru_cache(maxsize=1 << 17)(self._may_type)

    def of(self, utterance: str, parts: Parts, mask: Mask) -> Support:
        """Return what locks and operators in use leave of what people make of an utterance."""
        keys = self._noise.keys.union(utterance)

        def allowed(slip: Slip) -> bool:
            used = (slip.transformation, slip.operator) in self._used
            return used and keys.issuperset(slip.after) and self._unlocked(slip, parts, mask)

        noisy = self._noise.model.of(utterance).given(allowed)
        places: list[dict[tuple[str, str], list[SlipPlace]]] = [{} for _ in parts.words]
        explained = []
        for site in noisy.sites:
            first = bisect_left(parts.starts, site.start)
            last = max(bisect_left(parts.starts, site.end), first + 1)
            for slip in site.slips:
                index = owner(slip, parts)
                mates = [other - index for other in range(first, last) if other != index]
                if slip.operator == "blank" and index == first:
                    mates.append(-1)
                start = slip.start - parts.starts[index]
                name = slip.transformation, slip.operator
                places[index].setdefault(name, []).append(SlipPlace(slip, start, tuple(mates)))
                if name in self._explained or slip.kind in _PHRASES:
                    explained.append(slip)
        slips = tuple({name: tuple(some) for name, some in found.items()} for found in places)
        return Support(noisy, slips, tuple(explained))

    def _unlocked(self, slip: Slip, parts: Parts, mask: Mask) -> bool:
        """Say whether no lock forbids a slip."""
        index = owner(slip, parts)
        if slip.kind not in LETTER_KINDS:
            return _RULES[slip.kind](_GuardedSlip(slip, index, parts, mask, self._policy))
        if mask.roles[index] == LOCKED:
            return False
        word = parts.words[index]
        place = slip.start - word.start, slip.end - word.start
        return self._types(word.text, slip.kind, *place, slip.after)

    def _may_type(self, word: str, kind: str, start: int, end: int, after: str) -> bool:
        """Say whether a slip of letters leaves a word to be read as nothing else."""
        if kind in _SHORTENING and len(word) < _SHORTEST:
            return False
        if any(map(str.isdigit, after)) and kind != "swap":
            return False  # It would be a number.
        return bool(self._policy.kept(word, [Typo(start, end, (after,))]))


def owner(slip: Slip, parts: Parts) -> int:
    """Return the word that a slip is about: of a gap the word after it, at the end the last one."""
    search: Callable[..., int] = bisect_right if slip.before else bisect_left
    return min(search(parts.ends, slip.start), len(parts.words) - 1)


class _GuardedSlip(NamedTuple):
    """One slip of one utterance, with what guards the words."""

    slip: Slip
    #: Index of the word that it is about.
    at: int
    parts: Parts
    mask: Mask
    policy: EditPolicy

    @property
    def role(self) -> int:
        """What may happen to that word."""
        return self.mask.roles[self.at]

    @property
    def guard(self) -> frozenset[str]:
        """The locks that what is written brings with it."""
        guard_of, text = self.policy.guard_of, self.slip.after
        return frozenset(guard_of(word) for word in (text, *word_list(text)))

    def is_same(self, count: int = 1) -> bool:
        """Say whether words may be written another way, with the same letters or a clitic."""
        end = self.at + count
        guards = zip(self.mask.roles[self.at : end], self.mask.reasons[self.at : end], strict=True)
        return all(role != LOCKED or reason in _SPELLABLE for role, reason in guards)


def _misspells(case: _GuardedSlip) -> bool:
    word = case.parts.words[case.at].lower
    return case.role != LOCKED and case.policy.respells(word, case.slip.after.lower())


def _joins(case: _GuardedSlip) -> bool:
    roles = case.mask.roles[case.at - 1 : case.at + 1]
    if LOCKED in roles or not case.mask.open[case.at]:
        return False
    left, right = case.parts.words[case.at - 1 : case.at + 1]
    return case.policy.harmless(left.lower + right.lower)


def _rewrites(case: _GuardedSlip) -> bool:
    """Write a word as in messages, or two as one: nothing that has a lock comes of it."""
    return case.role != LOCKED and case.guard == _UNGUARDED


def _contracts(case: _GuardedSlip) -> bool:
    """Write two words as one; the first stays as it is but in `gonna` and its like."""
    slip, words = case.slip, word_list(case.slip.before)
    if slip.after.lower().startswith((f"{words[0]}'", f"{words[0]}’")):
        return case.is_same(len(words)) and case.guard <= _SPELLABLE
    roles = case.mask.roles[case.at : case.at + len(words)]
    return LOCKED not in roles and case.guard == _UNGUARDED


def _sounds(case: _GuardedSlip) -> bool:
    return case.role == FREE and case.guard == _UNGUARDED


def _changes_case(case: _GuardedSlip) -> bool:
    return case.is_same()


def _drops_apostrophe(case: _GuardedSlip) -> bool:
    return case.is_same() and case.guard <= _SPELLABLE


def _is_harmless(case: _GuardedSlip) -> bool:  # noqa: ARG001 - asked like the others
    """Leave a final full stop out: whatever is before it stays as it is."""
    return True


def _repeats(case: _GuardedSlip) -> bool:
    """Say one word, or the first ones, twice: each of them may be."""
    slip, index = case.slip, case.at
    count = len(word_list(slip.after))
    opening = case.mask.open[index + 1 if slip.kind == "doubled" else index]
    if opening == SHUT or not {FREE, KEPT}.issuperset(case.mask.roles[index : index + count]):
        return False
    words = case.parts.words[index : index + count]
    return opening != NEGATED or all(word.lower not in DEGREES for word in words)


def _drops(case: _GuardedSlip) -> bool:
    word = case.parts.words[case.at].lower
    if case.role != FREE or len(case.parts.words) < 2:
        return False
    return any(goes(word) for goes in case.policy.judged["drop"])


def _inserts(case: _GuardedSlip) -> bool:
    at_end = case.slip.start >= case.parts.ends[case.at]
    word = case.slip.after.strip().lower()
    known = word in case.policy.fillers or word in case.policy.emoji
    return known and case.mask.open[case.at + at_end] != SHUT


#: Kind of slips of words, or of what is between them -> whether no lock forbids one.
_RULES: Final[Mapping[str, Callable[[_GuardedSlip], bool]]] = {
    "blank": _joins,
    "misspelling": _misspells,
    "apostrophe": _drops_apostrophe,
    "lower_i": _changes_case,
    "lower_first": _changes_case,
    "full_stop": _is_harmless,
    "texting": _rewrites,
    "contraction": _contracts,
    "doubled": _repeats,
    "restart": _repeats,
    "dropped": _drops,
    "emoji": _inserts,
    "homophone": _sounds,
    "filler": _inserts,
}
