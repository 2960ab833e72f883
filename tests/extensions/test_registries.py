"""Searches and relations of others: found by name, checked, and refused in one clear message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import metadata
from typing import Any

import pytest
from closed_slots import ClosedSlots
from vowel_search import VowelSearch

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Difference, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.registry import entry_points
from pytest_dstfuzz.relations.registry import (
    RELATIONS,
    as_relation,
    register_relation,
    relation_by_name,
)
from pytest_dstfuzz.relations.relation import Verdict
from pytest_dstfuzz.search.protocol import SearchTask
from pytest_dstfuzz.search.registry import (
    SEARCHES,
    as_search,
    register_search,
    search_by_name,
)

NORTH, SOUTH = BeliefState({"hotel-area": "north"}), BeliefState({"hotel-area": "south"})
TALK = Dialogue("talk", (Turn(0, "", "i need a cheap hotel in the north of town please"),))


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SEARCHES, "_registered", {})
    monkeypatch.setattr(RELATIONS, "_registered", {})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let an installed package bring something by an entry point."""
    points: list[metadata.EntryPoint] = []

    def found(group: str) -> list[metadata.EntryPoint]:
        return [*entry_points(group), *(point for point in points if point.group == group)]

    monkeypatch.setattr("pytest_dstfuzz.registry.entry_points", found)

    def bring(group: str, name: str, value: str) -> None:
        points.append(metadata.EntryPoint(name, value, f"pytest_dstfuzz.{group}"))

    return bring


def task() -> SearchTask:
    perturber = Perturber(load_lexicon(), validity="strict")
    return SearchTask(TALK, 0, None, perturber, perturber.prepare(TALK.turns[0].user))


def test_a_registered_search_is_found_by_its_name() -> None:
    register_search("vowels", VowelSearch)
    search = search_by_name("vowels", seed=3, k=2)
    assert (search.name, search.order, search.adaptive) == ("vowels", "reading", False)
    assert search.context_variant(4) == 4
    made = [search.turn(task()).propose(number, 0, ()) for number in range(3)]
    again = search_by_name("vowels", seed=3, k=2).turn(task())
    assert made == [again.propose(number, 0, ()) for number in range(3)]


def test_packages_bring_searches_and_relations(installed: Callable[..., None]) -> None:
    installed("searches", "vowels", "vowel_search:VowelSearch")
    installed("relations", "closed-slots", "closed_slots:ClosedSlots")
    assert search_by_name("vowels", seed=0, k=1).name == "vowels"
    relation = relation_by_name("closed-slots")
    change = (Difference("hotel-area", "north", "south"),)
    assert relation.judge(NORTH, SOUTH, None) == Verdict("violation", change)
    assert relation.judge(*(BeliefState({"taxi-name": n}) for n in "ab"), None).kind == "held"
    assert relation.applies(NORTH, None)
    assert not relation.needs_labels
    with pytest.raises(UserError, match=r"unknown search 'vovels'. Did you mean 'vowels'\?"):
        search_by_name("vovels", seed=0, k=1)
    with pytest.raises(UserError, match=r"'closed-slot'. Did you mean 'closed-slots'\? Valid: .*"):
        relation_by_name("closed-slot")


def test_all_names_are_listed() -> None:
    register_search("vowels", VowelSearch)
    register_relation(ClosedSlots)
    assert SEARCHES.names == (
        *("random", "near-value", "greedy", "dialtest", "noise", "adaptive"),
        *("agent", "agent:trade", "agent:simpletod", "agent:PATH"),
        *("bandit", "bandit:PATH", "vowels"),
    )
    assert RELATIONS.names[:2] == ("metamorphic", "gold")
    assert RELATIONS.names[-6:-3] == ("all", "everyday", "mortar")
    assert RELATIONS.names[-3:] == ("wording", "metal", "closed-slots")
    assert RELATIONS.single == (*RELATIONS.shipped, "closed-slots")


@pytest.mark.parametrize("name", ["random", "agent"])
def test_a_name_that_ships_is_taken(name: str) -> None:
    with pytest.raises(UserError, match=f"the search {name!r} ships with pytest-dstfuzz"):
        register_search(name, VowelSearch)


def test_a_package_that_cannot_be_loaded(installed: Callable[..., None]) -> None:
    installed("searches", "gone", "no_such_module_anywhere:Search")
    with pytest.raises(UserError, match="the search 'gone' cannot be loaded: no_such_module"):
        search_by_name("gone", seed=0, k=1)


class Odd:
    """Something that may lack or answer anything."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Odd(), r"dst_search: Odd is not a search: it lacks a name and a method turn\(\). A"),
        (Odd(name="x"), r"lacks a method turn\(\)"),
        (Odd(name="", turn=print), "lacks a name"),
        (
            Odd(name="x", turn=print, order="up"),
            "order of Odd is 'up', but must be reading or dist",
        ),
    ],
)
def test_what_is_no_search(given: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        as_search(given, "dst_search")


@pytest.mark.parametrize(
    ("begun", "message"),
    [
        (None, r"turn\(\) of the search 'x' returned NoneType: it must return an object with pro"),
        (Odd(propose=lambda *_: "hi"), r"propose\(\) of the search 'x' returned str: it must ret"),
        (
            Odd(propose=lambda *_: 1 / 0),
            r"of the search 'x' raised ZeroDivisionError: .*\(.*test_registries.py:\d+\)",
        ),
    ],
)
def test_searches_that_misbehave(begun: object, message: str) -> None:
    search = as_search(Odd(name="x", turn=lambda _: begun), "dst_search")
    with pytest.raises(UserError, match=message):
        search.turn(task()).propose(0, 0, ())


def test_a_context_is_that_of_an_attempt_made_already() -> None:
    later = Odd(name="x", turn=print, context_variant=lambda number: number + 1)
    with pytest.raises(UserError, match=r"context_variant\(2\) of the search 'x' returned 3"):
        as_search(later, "dst_search").context_variant(2)


def test_a_search_says_its_own_name() -> None:
    register_search("other", VowelSearch)
    with pytest.raises(UserError, match="the search 'other' calls itself 'vowels'"):
        search_by_name("other", seed=0, k=1)
    register_search("fixed", lambda: VowelSearch(0, 1))
    with pytest.raises(UserError, match=r"the factory of the search 'fixed', called with seed= "):
        search_by_name("fixed", seed=0, k=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Odd(), r"dst_relation: Odd is not a relation: it lacks a name and a method judge\(\)"),
        (Odd(judge=print), "lacks a name"),
        (type("Halved", (), {"__init__": lambda _, _x: None}), r"Halved\(\) raised TypeError"),
    ],
)
def test_what_is_no_relation(given: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        as_relation(given, "dst_relation")


@pytest.mark.parametrize(
    "verdict", [None, True, Verdict("broken"), Verdict("violation"), Verdict("held", ("a",))]
)
def test_a_verdict_is_checked(verdict: object) -> None:
    relation = as_relation(Odd(name="x", judge=lambda *_: verdict), "dst_relation")
    with pytest.raises(UserError, match=r"judge\(\) of the relation 'x' returned .* must return V"):
        relation.judge(NORTH, SOUTH, None)


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError])
def test_any_exception_is_one_of_the_search_or_relation(kind: type[BaseException]) -> None:
    def raises(*_: object) -> None:
        raise kind("no licence")

    search = as_search(Odd(name="x", turn=raises), "dst_search")
    with pytest.raises(UserError, match=rf"search 'x' raised {kind.__name__}: no licence"):
        search.turn(task())
    relation = as_relation(Odd(name="x", judge=raises), "dst_relation")
    with pytest.raises(UserError, match=rf"relation 'x' raised {kind.__name__}: no licence"):
        relation.judge(NORTH, SOUTH, None)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, pytest.skip.Exception])
def test_an_interrupt_is_no_error_of_the_relation(kind: type[BaseException]) -> None:
    def raises(*_: object) -> None:
        raise kind

    relation = as_relation(Odd(name="x", judge=raises), "dst_relation")
    with pytest.raises(kind):
        relation.judge(NORTH, SOUTH, None)


def test_a_relation_that_raises() -> None:
    relation = as_relation(Odd(name="x", judge=lambda *_: {}["a"]), "dst_relation")
    with pytest.raises(UserError, match=r"judge\(\) of the relation 'x' raised KeyError: 'a' \(.*"):
        relation.judge(NORTH, SOUTH, None)


def test_a_shipped_name_is_found_without_a_look_at_installed_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A run finds its relation once a turn, and to read all entry points takes milliseconds.
    monkeypatch.setattr(
        "pytest_dstfuzz.registry.entry_points", lambda _: pytest.fail("packages were read")
    )
    assert relation_by_name("negation").name == "negation"
