"""The six transformations and their sub-operators, as pure functions in one registry.

An operator lists its candidates in a draft, in reading order, and makes the edit at one
of them. `transform` draws: the operator parameter chooses among the operators that have
candidates, the position parameter among the candidates, the choice parameter among what
may be put there. Nothing here is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.perturb import char_operators, word_operators
from pytest_dstfuzz.perturb.draft import Draft, EditResult, choose_place, pick
from pytest_dstfuzz.perturb.edit_policy import EditPolicy


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to carry a transformation out.

    Attributes:
        name: as edits record it.
        candidates: yields the places; what a place is, is the operator's own affair.
        choose: returns the place that a parameter in [0, 1] selects of all.
        remoteness: what places are sorted by where the nearest to a slot value comes first.
        words: the word of each thing that the position parameter may select at a place.
        make: makes the edit at a place; the parameter in [0, 1] chooses what is put there.
    """

    name: str
    candidates: Callable[[Draft, EditPolicy], Iterator[Any]]
    make: Callable[[Draft, EditPolicy, Any, float], EditResult]
    choose: Callable[[list[Any], float], Any] = choose_place
    remoteness: Callable[[Draft, Any], tuple[int, bool]] = word_operators.word_remoteness
    words: Callable[[Draft, Any], Sequence[int]] = word_operators.word_of_word


_WORD_INSERT: Final = (
    Operator("repeat", word_operators.repeatable, word_operators.repeat),
    *(
        Operator(
            name,
            candidates,
            make,
            remoteness=word_operators.gap_remoteness,
            words=word_operators.word_of_gap,
        )
        for name, candidates, make in (
            ("filler", word_operators.filler_gaps, word_operators.insert_filler),
            ("emoji", word_operators.emoji_gaps, word_operators.insert_emoji),
            ("mlm", word_operators.proposal_gaps, word_operators.insert_proposal),
        )
    ),
)
_WORD_REPLACE: Final = tuple(
    Operator(kind, word_operators.replaceable(kind), word_operators.replace(kind))
    for kind in ("misspelling", "synonym", "neighbour")
)
_WORD_DROP: Final = (
    Operator("stop_word", word_operators.droppable_stop_words, word_operators.drop("stop_word")),
    Operator("any_word", word_operators.droppable_words, word_operators.drop("any_word")),
)


def _slips(transformation: str, *kinds: str) -> tuple[Operator, ...]:
    return tuple(
        Operator(
            kind,
            char_operators.slips(kind),
            char_operators.slip(transformation, kind),
            char_operators.choose_slip,
            char_operators.slip_remoteness,
            char_operators.words_of_slips,
        )
        for kind in kinds
    )


#: Transformation -> its operators, in the order in which the operator parameter has them.
OPERATORS: Final[Mapping[str, tuple[Operator, ...]]] = MappingProxyType(
    {
        "word_insert": _WORD_INSERT,
        "word_replace": _WORD_REPLACE,
        "word_drop": _WORD_DROP,
        "char_insert": _slips("char_insert", "repeat", "keyboard_insert", "punctuation"),
        "char_replace": _slips("char_replace", "look_alike", "keyboard", "swap"),
        "char_drop": (
            Operator(
                "blank",
                char_operators.blanks,
                char_operators.drop_blank,
                remoteness=word_operators.gap_remoteness,
                words=word_operators.word_of_gap,
            ),
            *_slips("char_drop", "any"),
        ),
    }
)


class Candidates(NamedTuple):
    """What a transformation can do to an utterance.

    Attributes:
        operators: numbers, in `OPERATORS`, of those which have a place.
        words: for each of them the word of every place, in the order in which the position
            parameter counts; of a gap the one beside it that is nearer to a slot value.
    """

    operators: tuple[int, ...]
    words: tuple[tuple[int, ...], ...]


def candidates(draft: Draft, rules: EditPolicy, transformation: str) -> Candidates:
    """Return what `transform` chooses from."""
    found = []
    for number, operator in enumerate(OPERATORS[transformation]):
        places = list(operator.candidates(draft, rules))
        if places:
            if rules.nearest_first:
                places.sort(key=partial(operator.remoteness, draft))
            found.append((number, tuple(w for p in places for w in operator.words(draft, p))))
    return Candidates(tuple(number for number, _ in found), tuple(words for _, words in found))


def transform(
    draft: Draft, rules: EditPolicy, transformation: str, parameters: tuple[float, ...]
) -> EditResult | None:
    """Make one edit, or return ``None`` where no operator has a candidate.

    Args:
        draft: the utterance so far.
        rules: what the validity profile allows.
        transformation: one of `OPERATORS`.
        parameters: position, operator and (but for the drops) choice, each in [0, 1].
    """
    found = []
    for operator in OPERATORS[transformation]:
        candidates = operator.candidates(draft, rules)
        # Whether there is one is all that is asked of an operator which is not chosen.
        if (first := next(candidates, None)) is not None:
            found.append((operator, first, candidates))
    if not found:
        return None
    position, which, *choice = parameters
    operator, first, rest = found[pick(which, len(found))]
    places = [first, *rest]
    if rules.nearest_first:
        # A stable sort: places equally near stay in reading order.
        places.sort(key=partial(operator.remoteness, draft))
    place = operator.choose(places, position)
    return operator.make(draft, rules, place, choice[0] if choice else 0.0)
