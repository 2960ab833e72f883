"""Positions by distance, menus, and variants that grow from others."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_engine import LAWS, TURNS, UTTERANCES

from pytest_dstfuzz.dialogue.dialogues import Ontology
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.draft import FAR, FREE, TYPO, Draft, Mask, Source, pick, value_distances
from pytest_dstfuzz.perturb.edits import apply_edits, source_spans
from pytest_dstfuzz.perturb.engine import GRID, ActionSpace, ActionStep, Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon, load_lexicon
from pytest_dstfuzz.perturb.operators import _STEPS, transform
from pytest_dstfuzz.transformations import TRANSFORMATIONS

SPACE = ActionSpace()
PARAMETERS = st.tuples(*[st.integers(0, GRID).map(lambda number: number / GRID)] * 3)
NAMES = st.sampled_from(TRANSFORMATIONS)
KINDS = st.tuples(
    st.sampled_from(["strict", "edit-rate"]), st.sampled_from(["reading", "distance"])
)
ONTOLOGY = Ontology(
    {
        "cafe-name": ("frankie and bennys restaurant", "the lucky star"),
        "bus-departure": ("new york", "new orleans", "ely"),
        "bus-leaveat": ("17:15", "09:00"),
        "bus-day": ("monday", "tuesday"),
    }
)
CUES = ("cafe", "wifi", "seats", "table")
LEAVE = "i would like to leave ely after 17:15 and arrive in New York by tuesday"


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    for kind in itertools.product(("strict", "edit-rate"), ("reading", "distance")):
        perturber_of(*kind)


@lru_cache
def perturber_of(validity: str, order: str, only: tuple[str, ...] = ()) -> Perturber:
    return Perturber(
        load_lexicon(),
        validity=validity,
        ontology=ONTOLOGY,
        cue_words=CUES,
        order=order,
        edits=only,
    )


def parameters_of(name: str, drawn: tuple[float, ...]) -> tuple[float, ...]:
    return drawn[:2] if name.endswith("drop") else drawn


def single(name: str, drawn: tuple[float, ...]) -> ActionStep:
    return ActionStep(name, 1.0, (parameters_of(name, drawn),), SPACE.repetitions)


def words_at(source: Source, span: tuple[int, int]) -> range:
    """Return the words that a span touches; of a gap those on its sides."""
    first = sum(word.end <= span[0] for word in source.words)
    end = sum(word.start < span[1] for word in source.words)
    if first < end:
        return range(first, end)
    return range(max(first - 1, 0), min(first + 1, len(source.words)))


@LAWS
@given(UTTERANCES, NAMES, PARAMETERS, KINDS)
def test_menus_say_what_parameters_select(
    utterance: str, name: str, drawn: tuple[float, ...], kind: tuple[str, str]
) -> None:
    perturber = perturber_of(*kind)
    source = perturber.prepare(utterance, ["new york"])
    menu = perturber.menus(source)[name]
    parameters = parameters_of(name, drawn)
    made = transform(source.draft, perturber._edit_policy, name, parameters)
    assert (made is None) == (not menu.operators)
    if made is None:
        return
    which = pick(parameters[1], len(menu.operators))
    assert menu.operators[which] == made.edit.operator
    words = menu.words[which]
    word = words[pick(parameters[0], len(words))]
    assert word in words_at(source, (made.edit.start, made.edit.end))


@LAWS
@given(UTTERANCES, NAMES, KINDS)
def test_menus_count_by_distance_or_in_reading_order(
    utterance: str, name: str, kind: tuple[str, str]
) -> None:
    perturber = perturber_of(*kind)
    source = perturber.prepare(utterance, ["new york"])
    tokens = source.draft.tokens
    menu = perturber.menus(source)[name]
    for operator, words in zip(menu.operators, menu.words, strict=True):
        gap = operator in ("filler", "emoji", "mlm", "blank")
        if kind[1] == "distance":
            distances = [tokens[word].distance for word in words]
            assert distances == sorted(distances), (operator, words)
            if not gap:
                ranks = [(tokens[w].distance, tokens[w].role != TYPO, w) for w in words]
                assert ranks == sorted(ranks), (operator, words)
        else:
            assert list(words) == sorted(words), (operator, words)


@LAWS
@given(UTTERANCES, st.integers(0, 9999), st.sampled_from(["strict", "edit-rate"]))
def test_without_distances_a_position_is_what_it_always_was(
    utterance: str, seed: int, validity: str
) -> None:
    perturber = perturber_of(validity, "reading")
    source = perturber.prepare(utterance, ["new york"])
    assert all(token.distance == 0 for token in source.draft.tokens)
    action = SPACE.sample(np.random.default_rng(seed), 1)
    (step,) = SPACE.decode(action)
    draft, policy = source.draft, perturber._edit_policy
    found = [
        (used, steps, places)
        for used in policy.operators[step.transformation]
        if (steps := _STEPS[used.operator.kind]) and (places := list(steps.places(draft, used)))
    ]
    made = transform(draft, policy, step.transformation, step.repetitions[0])
    assert (made is None) == (not found)
    if made is not None:
        position, which, *choice = step.repetitions[0]
        used, steps, places = found[pick(which, len(found))]
        place = steps.choose(places, position)
        assert made == steps.make(draft, used, place, (choice or [0.0])[0])


@given(
    st.lists(
        st.sampled_from(["", "value", "number", "name", "dontcare", "cue", "negation"]), max_size=12
    )
)
def test_distances_are_to_the_nearest_mention(reasons: list[str]) -> None:
    count = len(reasons)
    mask = Mask((FREE,) * count, tuple(reasons), (True,) * (count + 1))
    mentions = [
        i for i, reason in enumerate(reasons) if reason in {"value", "number", "name", "dontcare"}
    ]
    assert value_distances(mask) == [
        min((abs(i - mention) for mention in mentions), default=FAR) for i in range(count)
    ]


def test_distance_is_never_above_far() -> None:
    mask = Mask((FREE,) * 300, ("value", *[""] * 299), (True,) * 301)
    assert value_distances(mask)[90:] == [*range(90, FAR), *[FAR] * 201]


def test_cue_words_beside_a_value_come_first() -> None:
    perturber = perturber_of("strict", "distance")
    source = perturber.prepare(LEAVE, ["new york"])
    words = [token.text for token in source.draft.tokens]
    menu = perturber.menus(source)["char_replace"]
    swap = menu.operators.index("swap")
    order = list(dict.fromkeys(words[word] for word in menu.words[swap]))
    # `leave` and `after` touch a value and say what it is for.
    assert set(order[:2]) == {"leave", "after"}
    assert order.index("arrive") < order.index("would")
    reading = perturber_of("strict", "reading")
    menu = reading.menus(reading.prepare(LEAVE, ["new york"]))["char_replace"]
    first = [words[word] for word in menu.words[swap]]
    assert first == sorted(first, key=words.index)
    assert first[0] == "would"


def test_the_lowest_position_is_the_nearest_place() -> None:
    perturber = perturber_of("strict", "distance")
    for turn in TURNS[:4]:
        source = perturber.prepare(turn)
        distances = [token.distance for token in source.draft.tokens]
        if min(distances) == FAR:
            continue
        near, far = (
            perturber.apply(source, SPACE.encode([single("char_drop", (position, 1.0))]))
            for position in (0.0, 1.0)
        )
        spans = [source_spans(variant.edits)[0] for variant in (near, far)]
        reached = [min(distances[w] for w in words_at(source, span)) for span in spans]
        assert reached[0] <= reached[1]


def test_an_unknown_order_is_refused(lexicon: Lexicon) -> None:
    with pytest.raises(UserError, match=r"unknown order of positions 'distanse'.*'distance'"):
        Perturber(lexicon, validity="strict", order="distanse")


@LAWS
@given(UTTERANCES, st.lists(st.tuples(NAMES, PARAMETERS), min_size=1, max_size=5), KINDS)
def test_what_grows_keeps_the_edits_of_its_base(
    utterance: str, steps: list[tuple[str, tuple[float, ...]]], kind: tuple[str, str]
) -> None:
    perturber = perturber_of(*kind)
    source = perturber.prepare(utterance, ["new york"])
    base = None
    for name, drawn in steps:
        menus = perturber.menus(source, base)
        before = base.variant.edits if base else ()
        mistyped = any(edit.transformation.startswith("char") for edit in before)
        grown = perturber.grow(source, SPACE.encode([single(name, drawn)]), base)
        edits = grown.variant.edits
        assert edits[: len(before)] == before
        assert len(edits) <= len(before) + 1
        if mistyped and name.startswith("word"):
            assert edits == before
            assert name not in menus
        elif len(edits) > len(before):
            assert edits[-1].transformation == name
            names = menus[name].operators
            assert edits[-1].operator in names
        levels = [edit.transformation.startswith("char") for edit in edits]
        assert levels == sorted(levels)
        assert apply_edits(utterance, edits) == grown.variant.text == grown.draft.text
        assert perturber.check(source, grown.variant.text, edits) == grown.variant[5:7]
        base = grown


@LAWS
@given(UTTERANCES, st.integers(0, 9999), st.integers(1, 6), KINDS)
def test_growing_from_nothing_is_applying(
    utterance: str, seed: int, k: int, kind: tuple[str, str]
) -> None:
    perturber = perturber_of(*kind)
    source = perturber.prepare(utterance)
    action = SPACE.sample(np.random.default_rng(seed), k)
    assert perturber.grow(source, action).variant == perturber.apply(source, action)


def test_menus_have_only_what_is_allowed() -> None:
    perturber = perturber_of("strict", "distance", ("char_drop", "word_drop"))
    assert list(perturber.menus(perturber.prepare(LEAVE))) == ["word_drop", "char_drop"]


@given(st.integers(0, 9999), st.integers(1, 6), NAMES)
def test_a_single_action_has_one_edit_with_the_same_parameters(
    seed: int, k: int, name: str
) -> None:
    action = SPACE.sample(np.random.default_rng(seed), k)
    alone = SPACE.single(action, name)
    block, width = SPACE.block(name), 2 if name.endswith("drop") else 3
    own = action.vector[block.start + 1 : block.start + 1 + width]
    assert SPACE.decode(alone) == (ActionStep(name, 1.0, (own,), SPACE.repetitions),)
    assert alone.k == 1
    outside = [v for i, v in enumerate(alone.vector) if not block.start - 1 <= i < block.stop]
    assert set(outside) == {0.0}


@pytest.mark.parametrize("repetitions", [1, 2, 3])
def test_blocks_and_importances_are_the_whole_vector(repetitions: int) -> None:
    space = ActionSpace(repetitions=repetitions)
    places = []
    for name in TRANSFORMATIONS:
        block = space.block(name)
        places += [block.start - 1, *range(block.start, block.stop)]
        assert block.stop - block.start == repetitions * (3 if name.endswith("drop") else 4)
    assert places == list(range(space.dimension))


def test_distance_zero_stands_for_mentions() -> None:
    draft: Draft = perturber_of("edit-rate", "distance").prepare(LEAVE, ["new york"]).draft
    zero = [token.text for token in draft.tokens if token.distance == 0]
    assert zero == ["ely", "17:15", "New", "York", "tuesday"]
