"""Checks variants: edit rates, locks, and typing errors of people."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from rapidfuzz.distance import DamerauLevenshtein, Jaro

from pytest_dstfuzz.perturb.draft import FREE, KEPT, LOCKED, NEGATED, Source
from pytest_dstfuzz.perturb.edits import Hunk, hunks
from pytest_dstfuzz.perturb.exact import EXACT, breaks_exact
from pytest_dstfuzz.perturb.locks import DEGREES, Locks
from pytest_dstfuzz.perturb.operators import (
    ENDINGS,
    SEPARATORS,
    EditPolicy,
    keeps_letters,
    typo_limit,
)
from pytest_dstfuzz.perturb.words import Edit, Word, equal_ends, is_word_character, marks, word_list

#: Maximum length, in characters, of an utterance that is edited. The time of Jaro similarity is
#: quadratic in the length: a quarter of a second here, more than a minute for 164,000 characters.
LONGEST_EDITED: Final = 10_000
#: Maximum length of words that are compared letter by letter. This takes quadratic time, too.
_LONGEST_WORD: Final = 100


def distinct_words(text: str) -> frozenset[str]:
    """Return the set of lower-cased words of ``text``, without punctuation."""
    return frozenset(word_list(text))


def edit_w(before: frozenset[str], after: str) -> float:
    """Return the Jaccard distance of two word sets, in [0, 1]. It is 0 if both are empty.

    Args:
        before: `distinct_words` of the clean utterance, shared by all its variants.
        after: the text to compare with it.
    """
    new = distinct_words(after)
    # Divide only once, so that 2 of 3 words is the same float as the limit 2 / 3.
    return len(before ^ new) / len(before | new) if before or new else 0.0


def edit_c(before: str, after: str) -> float:
    """Return 1 - Jaro similarity of two texts, in [0, 1]. It is 0 if they are equal.

    The time is quadratic in the length of the texts, see `LONGEST_EDITED`.
    """
    if before == after:
        return 0.0
    return 1.0 - Jaro.similarity(before, after)


def typing_distance(one: str, other: str) -> int:
    """Return the Damerau-Levenshtein distance: the number of drops, inserts, changes and swaps.

    If a word has more than 100 letters, the common prefix and suffix are removed first. If more
    than 100 letters are left, return the length of the longer word, which exceeds every limit.
    """
    longest = max(len(one), len(other))
    if longest > _LONGEST_WORD:
        head, tail = equal_ends(one, other)
        one, other = one[head : len(one) - tail], other[head : len(other) - tail]
        if max(len(one), len(other)) > _LONGEST_WORD:
            return longest
    return DamerauLevenshtein.distance(one, other)


def word_limit(source: frozenset[str], limit: float, *, flat: bool = False) -> float:
    """Return the largest `edit_w` allowed for variants of an utterance with the words ``source``.

    For n different words, it is ``max(limit, 2 / (n + 1))``, so that one word can always be
    replaced. If ``flat`` is true, it is ``limit``, as in the thesis. A limit of 0 forbids every
    edit.
    """
    if flat or limit <= 0.0:
        return limit
    return max(limit, 2.0 / (len(source) + 1))


_ADDED_MARKS: Final = frozenset((*ENDINGS, *SEPARATORS)) - {" "}
_IMPOSSIBLE: Final = 1 << 20


class StrictCheck:
    """The check of variants by the rules of ``strict``."""

    def __init__(self, locks: Locks, edit_policy: EditPolicy) -> None:
        """Store the locks and the edit policy of the profile."""
        self._locks = locks
        self._edit_policy = edit_policy

    def veto(self, source: Source, text: str, edits: Sequence[Edit]) -> str:
        """Return the lock that vetoes a variant, ``""`` if none does."""
        touched, reason = self.count_touched(source, text, edits)
        return reason or ("too-many-words" if touched > source.draft.quota else "")

    def count_touched(self, source: Source, text: str, edits: Sequence[Edit]) -> tuple[int, str]:
        """Return how many words the edits touch, and the lock that forbids them, ``""`` if none."""
        # Ignore text that an edit spans but does not change.
        trimmed = [h for hunk in hunks(edits) if (h := _trimmed(hunk, source.text, text))]
        changed = _whole_words(trimmed, source.text, text)
        if breaks_exact(source.mask.exact, trimmed):
            return 0, self._moved(source, text, changed) or EXACT
        touched = 0
        if source.support and source.support.explained:
            count = len(changed)
            changed = [h for h in changed if not _slipped(source, h, text)]
            touched = count - len(changed)
        reason = self._moved(source, text, changed)
        if reason:
            return 0, reason
        for hunk in changed:
            cost, reason = self._explain(source, text, hunk)
            if reason:
                return 0, reason
            touched += cost
        return touched, ""

    def _moved(self, source: Source, text: str, changed: Sequence[Hunk]) -> str:
        """Return the lock of a word that was changed or extended by an edit."""
        words, roles = source.words, source.mask.roles
        for hunk in changed:
            for index in range(bisect_left(source.parts.ends, hunk.start), len(words)):
                word = words[index]
                if word.start > hunk.end:
                    break
                if roles[index] != LOCKED:
                    continue
                overlaps = hunk.start < word.end and word.start < hunk.end
                if overlaps or _sticks(word, source.text, hunk, text):
                    return source.mask.reasons[index] or "clitic"
        return ""

    def _explain(self, source: Source, text: str, hunk: Hunk) -> tuple[int, str]:
        """Return how many words a hunk touches, and which lock forbids it."""
        old_text = source.text[hunk.start : hunk.end]
        new_text = text[hunk.new_start : hunk.new_end]
        first = bisect_right(source.parts.ends, hunk.start)
        last = max(first, bisect_left(source.parts.starts, hunk.end))
        # Fast path: usually the text is a single word without punctuation.
        plain = new_text.isalpha()
        new = [new_text.lower()] if plain else word_list(new_text)
        cost = self._align(source, first, last, new)
        if cost >= _IMPOSSIBLE:
            return 0, self._why(source, first, last, new)
        if not (plain and old_text.isalpha()) and not _marks_kept(old_text, new_text):
            return 0, "punctuation"
        return max(cost, int(old_text != new_text)), ""

    def _align(self, source: Source, first: int, last: int, new: Sequence[str]) -> int:
        """Return the minimum number of touched words between ``words[first:last]`` and ``new``."""
        rows = last - first
        if rows == len(new) == 1:
            # Fast path: usually a single word replaces a single word.
            word, role = source.words[first].lower, source.mask.roles[first]
            if role != LOCKED and self._may_become(word, role, new[0]):
                return int(word != new[0])
        best = [[_IMPOSSIBLE] * (len(new) + 1) for _ in range(rows + 1)]
        best[0][0] = 0
        for i in range(rows + 1):
            for j in range(len(new) + 1):
                here = best[i][j]
                if here >= _IMPOSSIBLE:
                    continue
                for di, dj, cost in self._moves(source, first + i, last, new, j):
                    best[i + di][j + dj] = min(best[i + di][j + dj], here + cost)
        return best[rows][len(new)]

    def _moves(
        self, source: Source, i: int, last: int, new: Sequence[str], j: int
    ) -> list[tuple[int, int, int]]:
        """Return the allowed steps: source words consumed, variant words consumed, cost."""
        moves: list[tuple[int, int, int]] = []
        left = len(new) - j
        if left and source.mask.open[i] and self._may_insert(source, i, new, j):
            moves.append((0, 1, 1))
        if i >= last:
            return moves
        word, role = source.words[i].lower, source.mask.roles[i]
        if left and word == new[j]:
            moves.append((1, 1, 0))
        if role == LOCKED:
            return moves
        if role == FREE and any(goes(word) for goes in self._edit_policy.judged["drop"]):
            moves.append((1, 0, 1))
        if left and self._may_become(word, role, new[j]):
            moves.append((1, 1, 1))
        harmless = self._edit_policy.harmless
        parted = new[j : j + 2]
        if left > 1 and "".join(parted) == word and harmless(" ".join(parted)):
            moves.append((1, 2, 1))
        joinable = left and i + 1 < last and source.mask.roles[i + 1] != LOCKED
        if joinable and word + source.words[i + 1].lower == new[j] and harmless(new[j]):
            moves.append((2, 1, 2))
        return moves

    def _may_insert(self, source: Source, i: int, new: Sequence[str], j: int) -> bool:
        policy, words, word = self._edit_policy, source.words, new[j]
        if source.mask.open[i] == NEGATED and word in DEGREES:
            return False
        if word in policy.fillers or word in policy.emoji:
            return True
        if i and words[i - 1].lower == word and source.mask.roles[i - 1] in {FREE, KEPT}:
            return True
        if word in policy.safe_insertions:
            return True
        lefts = {words[i - 1].lower if i else "", *new[max(j - 1, 0) : j]}
        rights = {words[i].lower if i < len(words) else "", *new[j + 1 : j + 2]}
        return any(
            _among(word, fits(left, right))
            for fits in policy.judged["insert"]
            for left in lefts
            for right in rights
        )

    def _may_become(self, old: str, role: int, new: str) -> bool:
        policy = self._edit_policy
        if not keeps_letters(old, new):
            return False
        if policy.harmless(new) and (
            typing_distance(old, new) <= typo_limit(len(old))
            or any(_among(new, spells(old)) for spells in policy.judged["respell"])
        ):
            return True
        replaces = policy.judged["replace"]
        return role == FREE and any(_among(new, others(old)) for others in replaces)

    def _why(self, source: Source, first: int, last: int, new: Sequence[str]) -> str:
        """Return the lock that an unexplained change violates."""
        mask = source.mask
        old = Counter(word.lower for word in source.words[first:last])
        added = list((Counter(new) - old).elements())
        gone = Counter(old) - Counter(new)
        for word in added:
            if guard := self._locks.guard_of(word):
                return guard
        for index in range(first, last):
            if source.words[index].lower in gone and mask.reasons[index]:
                return mask.reasons[index]
        if not gone and first < len(mask.reasons) and not mask.open[first]:
            return mask.reasons[first] or mask.reasons[first - 1] or "insertion"
        if not gone and mask.open[first] == NEGATED and not DEGREES.isdisjoint(added):
            return "negated"
        if added and gone:
            is_word = any(not self._edit_policy.harmless(word) for word in added)
            near = any(typing_distance(a, b) <= typo_limit(len(b)) for a in added for b in gone)
            return "typo-is-word" if is_word and near else "replacement"
        return "insertion" if added or not gone else "drop"


def _slipped(source: Source, hunk: Hunk, text: str) -> bool:
    """Return whether a hunk is a slip of the noise model that no lock forbids."""
    if source.support is None:
        return False
    clean, new = source.text, text[hunk.new_start : hunk.new_end]
    for at, part in source.support.explained:
        end = at + len(part.text)
        if not (at <= hunk.end and hunk.start <= end):
            continue
        made = clean[at : hunk.start] + new + clean[hunk.end : end]
        change = part.between(clean[hunk.start : at], made, clean[end : hunk.end])
        # The hunk may be inside of the part, and the change in another place there.
        if change and hunk.start <= at + change.start and at + change.end <= hunk.end:
            return True
    return False


def _among(word: str, found: Sequence[str]) -> bool:
    """Return whether a lower-cased word is in ``found``, regardless of case."""
    return word in found or any(word == other.lower() for other in found)


def _trimmed(hunk: Hunk, old: str, new: str) -> Hunk | None:
    """Remove equal text from both ends of a hunk. Return ``None`` if nothing is left."""
    start, end, new_start, new_end = hunk
    if start == end or new_start == new_end:  # One side is empty: there is no equal text.
        return hunk if start < end or new_start < new_end else None
    head, tail = equal_ends(old[start:end], new[new_start:new_end])
    trimmed = Hunk(start + head, end - tail, new_start + head, new_end - tail)
    changed = trimmed.start < trimmed.end or trimmed.new_start < trimmed.new_end
    return trimmed if changed else None


def _whole_words(changed: Sequence[Hunk], old: str, new: str) -> list[Hunk]:
    """Extend hunks to whole words, in the source and in the variant."""
    whole: list[Hunk] = []
    for number, (first, last, new_first, new_last) in enumerate(changed, 1):
        start, end = first, last
        # Between hunks both texts are equal, so only look at the source.
        if _inside(old, start, new, new_first):
            floor = whole[-1].end if whole else 0
            while start > floor and _sticky(old[start - 1]):
                start -= 1
        new_start = new_first - (first - start)
        if whole and start == whole[-1].end and _inside(old, start, new, new_start):
            # The previous hunk was extended up to here, so merge both.
            start, new_start = whole[-1].start, whole[-1].new_start
            whole.pop()
        nearest = changed[number].start if number < len(changed) else len(old)
        if _inside(old, end, new, new_last):
            while end < nearest and _sticky(old[end]):
                end += 1
        whole.append(Hunk(start, end, new_start, new_last + end - last))
    return whole


def _sticks(word: Word, old: str, hunk: Hunk, new: str) -> bool:
    """Return whether a hunk attaches new text to a locked word beside it."""
    if hunk.end == word.start:
        before, after = old[max(0, word.start - 1) : word.start], new[: hunk.new_end][-1:]
    else:
        before, after = old[word.end : word.end + 1], new[hunk.new_start : hunk.new_start + 1]
    return bool(after) and after != before and not after.isspace()


def _inside(old: str, at: int, new: str, new_at: int) -> bool:
    return _parts_word(old, at) or _parts_word(new, new_at)


def _parts_word(text: str, at: int) -> bool:
    """Return whether the offset ``at`` is inside a word of ``text``."""
    return 0 < at < len(text) and _sticky(text[at - 1]) and _sticky(text[at])


@lru_cache(maxsize=8192)
def _sticky(character: str) -> bool:
    return character in "'’-" or is_word_character(character)


def _marks_kept(old: str, new: str) -> bool:
    """Return whether no punctuation was removed and only harmless marks were added."""
    before, after = marks(old), marks(new)
    if before == after:
        return True
    added, gone = Counter(after), Counter(before)
    return not gone - added and set(added - gone) <= _ADDED_MARKS
