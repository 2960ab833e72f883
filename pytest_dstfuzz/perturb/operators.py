"""How operators are carried out, by their kinds: where they may work, and the edit they make.

An operator says what may be done to which words; its kind lists the places in a draft, in
reading order, and makes the edit at one of them. `transform` draws: the operator parameter
chooses among the operators that have a place, the position parameter among the places, the
choice parameter among what may be put there. Nothing here is random.

A place is the index of a word or of a gap (gap i is before word i), or, of typing errors, a word
and what it can take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.perturb import char_operators, word_operators
from pytest_dstfuzz.perturb.draft import (
    FREE,
    KEPT,
    LOCKED,
    NEGATED,
    SHUT,
    TYPO,
    Draft,
    EditResult,
    SlipPlace,
    Token,
    drop_word,
    insert_after,
    insert_before,
    join_words,
    pick,
    replace_word,
    retype,
    slip_through,
    touch,
)
from pytest_dstfuzz.perturb.edit_policy import EditPolicy, UsedOperator
from pytest_dstfuzz.perturb.scopes import DEGREES, without_degrees
from pytest_dstfuzz.perturb.words import match_case
from pytest_dstfuzz.transformations import SLIP, Typo

__all__ = ["Candidates"]

#: The shipped operators are registered when these are loaded.
OPERATOR_MODULES: Final = (word_operators, char_operators)

#: A word and all typing errors, or slips, of one kind that it can take, at least one.
Typos = tuple[int, tuple[Any, ...]]


def _gaps(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the gaps in which a word may be put."""
    if not draft.tokens or (used.strict and draft.quota < 1):
        return
    for index, token in enumerate(draft.tokens):
        if token.open:
            yield index
    if draft.open_end:
        yield len(draft.tokens)


def _insertable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the gaps for which there is something to insert."""
    return (place for place in _gaps(draft, used) if _insertions(draft, used, place))


def _insert(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    words = _insertions(draft, used, place)
    return insert_before(draft, place, words[pick(choice, len(words))], used.names)


def _insertions(draft: Draft, used: UsedOperator, place: int) -> tuple[str, ...]:
    """Return what may be put into a gap."""
    sides = _sides(draft, place) if used.operator.asks else ("", "")
    words: tuple[str, ...] = used.ask(*sides)
    return without_degrees(words) if draft.opening(place) == NEGATED else words


def _sides(draft: Draft, place: int) -> tuple[str, str]:
    """Return the words on both sides of a gap, ``""`` at an edge; of an inserted phrase, one."""
    tokens = draft.tokens
    left = tokens[place - 1].lower.split()[-1] if place else ""
    return left, tokens[place].lower.split()[0] if place < len(tokens) else ""


def _repeatable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    strict = used.strict
    if strict and draft.quota < 1:
        return
    tokens = draft.tokens
    for index, token in enumerate(tokens):
        allowed = not strict or (token.role in {FREE, KEPT} and not token.touched)
        opening = draft.opening(index + 1)
        degree = opening == NEGATED and token.lower in DEGREES
        if opening and allowed and not degree and used.ask(token.lower):
            yield index


def _repeat(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    """Say a word twice; the second time in lower case, but for ``I``."""
    token = draft.tokens[place]
    word = token.text if token.lower == "i" else token.lower
    # The first of the two stays as it is, else it would no longer be said twice.
    return insert_after(touch(draft, place), place, word, used.names)


def _replaceable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    strict = used.strict
    if strict and draft.quota < 1:
        return
    # Another spelling is a typing error: cue words of some length take it.
    spelled = used.operator.kind == "respell"
    for index, token in enumerate(draft.tokens):
        allowed = (not strict or token.typos > 0) if spelled else token.role == FREE
        if allowed and not (strict and token.touched) and used.ask(token.lower):
            yield index


def _replace(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    """Replace a word, in the case of the word replaced."""
    token = draft.tokens[place]
    words = used.ask(token.lower)
    word = match_case(token.text, words[pick(choice, len(words))])
    return replace_word(draft, place, word, used.names)


def _droppable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    strict = used.strict
    if strict and (draft.quota < 1 or len(draft.tokens) < 2):
        return
    for index, token in enumerate(draft.tokens):
        untouched = not (strict and token.touched)
        if token.role == FREE and untouched and used.ask(token.lower):
            yield index


def _drop(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    made = drop_word(draft, place, used.names)
    tokens = made.draft.tokens
    if not used.strict or place == len(tokens):
        return made
    # One edit a gap: nothing is put where a word went, and its neighbours do not join.
    shut = tokens[place]._replace(open=SHUT)
    changed = (*tokens[:place], shut, *tokens[place + 1 :])
    return made._replace(draft=made.draft._replace(tokens=changed))


def _typable(draft: Draft, used: UsedOperator) -> Iterator[Typos]:
    """Yield the words that can take a typing error, with all that they can take."""
    ask, strict = used.ask, used.strict
    full = strict and draft.quota < 1
    # A word that is misspelled and then parted is no longer the word that it was.
    whole = strict and used.operator.kind == "punctuate"
    for index, token in enumerate(draft.tokens):
        if strict and (token.typos < 1 or (whole if token.touched else full)):
            continue
        found = ask(token.text)
        if found:
            yield index, found


def _type(draft: Draft, used: UsedOperator, place: tuple[int, Typo], choice: float) -> EditResult:
    index, (start, end, choices) = place
    return retype(draft, index, (start, end), choices[pick(choice, len(choices))], used.names)


def _slippable(draft: Draft, used: UsedOperator) -> Iterator[Typos]:
    """Yield the words at which the noise model has slips of an operator, with those slips."""
    tokens, name = draft.tokens, used.names
    joins = used.operator.kind == "join"
    if name not in draft.slipping or draft.quota < 1 + joins:
        return
    for index, token in enumerate(tokens):
        slips = token.slips.get(name)
        if slips is None or token.touched or (joins and not token.open):
            continue
        places = slips.places
        if not slips.inside:
            at = draft.start(index)
            # Edits of words beside it may have taken away what a slip is about.
            places = tuple(
                place
                for place in places
                if all(_as_typed(tokens, index + mate) for mate in place.mates)
                and draft.text.startswith(place.before, at + place.start)
            )
        if places:
            yield index, places


def _as_typed(tokens: Sequence[Token], index: int) -> bool:
    return 0 <= index < len(tokens) and not tokens[index].touched


def _slip(
    draft: Draft, used: UsedOperator, place: tuple[int, SlipPlace], choice: float
) -> EditResult:
    index, slip = place
    length = len(draft.tokens[index].text)
    end = slip.start + len(slip.before)
    if slip.kind == "blank":
        return join_words(draft, index, used.names)
    if used.operator.transformation == "word_drop":
        return _drop(draft, used, index, choice)
    if used.operator.transformation == "word_insert" and slip.start <= length:
        if slip.start == 0:
            return insert_before(touch(draft, index), index, slip.after[:-1], used.names)
        if slip.start == length and slip.kind == "doubled":
            return insert_after(touch(draft, index), index, slip.after[1:], used.names)
    elif slip.start >= 0 and end <= length:
        return retype(draft, index, (slip.start, end), slip.after, used.names)
    return slip_through(draft, index, slip, used.names)


def _choose_typo(places: list[Typos], parameter: float) -> tuple[int, Any]:
    """Return the typing error that ``parameter`` selects of all those of all words."""
    rest = pick(parameter, sum([len(found) for _, found in places]))
    for index, found in places:
        if rest < len(found):
            return index, found[rest]
        rest -= len(found)
    raise AssertionError("pick returned no index")


def _joinable(draft: Draft, used: UsedOperator) -> Iterator[int]:
    """Yield the words whose blank before them may go."""
    tokens, strict = draft.tokens, used.strict
    if strict and draft.quota < 2:
        return
    for index in range(1, len(tokens)):
        left, right = tokens[index - 1], tokens[index]
        if not right.gap.isspace() or len(right.gap) > 1:
            continue
        free = LOCKED not in (left.role, right.role)
        whole = right.open and not (left.touched or right.touched)
        if (not strict or (free and whole)) and used.ask(left.lower, right.lower):
            yield index


def _join(draft: Draft, used: UsedOperator, place: int, choice: float) -> EditResult:
    return join_words(draft, place, used.names)


def _choose_place(places: Sequence[Any], parameter: float) -> Any:
    return places[pick(parameter, len(places))]


def _word_remoteness(draft: Draft, place: int) -> tuple[int, bool]:
    """Return how far a word is from a slot value, words that say what it is for first."""
    token = draft.tokens[place]
    return token.distance, token.role != TYPO


def _gap_remoteness(draft: Draft, place: int) -> tuple[int, bool]:
    """Return how far the gap before a word is from a slot value; a word beside it is 1 away."""
    sides = draft.tokens[max(place - 1, 0) : place + 1]
    return 1 + min(token.distance for token in sides), all(t.role != TYPO for t in sides)


def _typo_remoteness(draft: Draft, place: Typos) -> tuple[int, bool]:
    return _word_remoteness(draft, place[0])


def _word_of_word(draft: Draft, place: int) -> Sequence[int]:
    return (place,)


def _word_of_gap(draft: Draft, place: int) -> Sequence[int]:
    """Return the word beside a gap that is nearer to a slot value."""
    sides = range(max(place - 1, 0), min(place + 1, len(draft.tokens)))
    return (min(sides, key=lambda index: draft.tokens[index].distance),)


def _words_of_typos(draft: Draft, place: Typos) -> Sequence[int]:
    """Return the word once for each typing error in it."""
    return (place[0],) * len(place[1])


class Steps(NamedTuple):
    """How operators of one kind are carried out; not every kind looks at all arguments."""

    #: Yields where the operator may work.
    places: Callable[[Draft, UsedOperator], Iterator[Any]]
    #: Makes the edit at a place; the parameter in [0, 1] chooses what is put there.
    make: Callable[[Draft, UsedOperator, Any, float], EditResult]
    #: What places are sorted by where the nearest to a slot value comes first.
    remoteness: Callable[[Draft, Any], tuple[int, bool]] = _word_remoteness
    #: The word of each thing that the position parameter may select at a place.
    words: Callable[[Draft, Any], Sequence[int]] = _word_of_word
    #: Returns the place that a parameter in [0, 1] selects of all.
    choose: Callable[[list[Any], float], Any] = _choose_place


_TYPING: Final = Steps(_typable, _type, _typo_remoteness, _words_of_typos, _choose_typo)
_STEPS: Final[Mapping[str, Steps]] = {
    "insert": Steps(_insertable, _insert, _gap_remoteness, _word_of_gap),
    "repeat": Steps(_repeatable, _repeat),
    "replace": Steps(_replaceable, _replace),
    "respell": Steps(_replaceable, _replace),
    "drop": Steps(_droppable, _drop),
    "typo": _TYPING,
    "punctuate": _TYPING,
    "join": Steps(_joinable, _join, _gap_remoteness, _word_of_gap),
    SLIP: Steps(_slippable, _slip, _typo_remoteness, _words_of_typos, _choose_typo),
}


def _steps(used: UsedOperator) -> Steps:
    return _STEPS[SLIP if used.by_slips else used.operator.kind]


class Candidates(NamedTuple):
    """What a transformation can do to an utterance."""

    operators: tuple[str, ...]  #: Names of those which have a place.
    #: For each of them the word of every place, in the order in which the position parameter
    #: counts; of a gap the one beside it that is nearer to a slot value.
    words: tuple[tuple[int, ...], ...]


def candidates(draft: Draft, policy: EditPolicy, transformation: str) -> Candidates:
    """Return what `transform` chooses from."""
    found = []
    for used in policy.operators[transformation]:
        steps = _steps(used)
        places = list(steps.places(draft, used))
        if places:
            if policy.nearest_first:
                places.sort(key=partial(steps.remoteness, draft))
            words = tuple(word for place in places for word in steps.words(draft, place))
            found.append((used.operator.name, words))
    return Candidates(tuple(name for name, _ in found), tuple(words for _, words in found))


def transform(
    draft: Draft, policy: EditPolicy, transformation: str, parameters: tuple[float, ...]
) -> EditResult | None:
    """Make one edit, or return ``None`` where no operator has a candidate.

    Parameters: position, operator and, where there is one, choice, each in [0, 1].
    """
    found = []
    for used in policy.operators[transformation]:
        steps = _steps(used)
        candidates = steps.places(draft, used)
        # Whether there is one is all that is asked of an operator which is not chosen.
        if (first := next(candidates, None)) is not None:
            found.append((used, steps, first, candidates))
    if not found:
        return None
    position, which, *choice = parameters
    used, steps, first, rest = found[pick(which, len(found))]
    places = [first, *rest]
    if policy.nearest_first:
        # A stable sort: places equally near stay in reading order.
        places.sort(key=partial(steps.remoteness, draft))
    place = steps.choose(places, position)
    return steps.make(draft, used, place, choice[0] if choice else 0.0)
