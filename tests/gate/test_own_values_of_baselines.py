"""A baseline is not compared after a change of a value in the user's own rules."""

from __future__ import annotations

import argparse
import configparser
import ctypes
import functools
import os
import re
import subprocess
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from array import array
from collections import ChainMap, Counter, UserDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import field, make_dataclass
from datetime import datetime, timedelta, tzinfo
from enum import Enum
from importlib import import_module, invalidate_caches
from operator import methodcaller
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import nltk
import numpy as np
import pytest
import regex
from processes import run_python
from rapidfuzz.distance import JaroWinkler, Levenshtein

from pytest_dstfuzz import register_search
from pytest_dstfuzz.campaign.code import code_of_rules
from pytest_dstfuzz.comparisons.comparison import (
    CheckedComparison,
    Comparison,
    ComparisonResult,
    OwnFunction,
)
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.own_values import _codes_in, digest_with_values, hint_of, values_of
from pytest_dstfuzz.relations.registry import as_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.registry import SEARCHES, as_search
from pytest_dstfuzz.search.searches import RandomSearch


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Rule:
    calls: object = 0

    def __init__(self, value: object) -> None:
        self.value = value

    def same(self, before: str, found: str) -> bool:
        return found in (before, self.value)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def closure(value: object) -> object:
    return lambda before, found: found in (before, value)


def nested(value: object) -> object:
    def inner(found: str) -> bool:
        return found == value

    return lambda before, found: before == found or inner(found)


def local_class(value: object) -> object:
    class Local:
        def __call__(self, before: str, found: str) -> bool:
            return found in (before, value)

    return Local()


def wrapped(value: object) -> object:
    @functools.cache
    def same(before: str, found: str) -> bool:
        return found in (before, value)

    return same


class Private:
    __slots__ = ("__value",)

    def __init__(self, value: object) -> None:
        self.__value = value

    def same(self, before: str, found: str) -> bool:
        return found in (before, self.__value)


class Text(str):
    __slots__ = ("__dict__", "value")

    value: object


def text_with(value: object) -> Text:
    made = Text("a")
    made.value = value
    return made


TABLE: object = None


def own_names(value: object) -> object:
    def same(before: str, found: str) -> bool:
        return found in (before, TABLE)

    return FunctionType(same.__code__, {"TABLE": value, "__name__": __name__})


def unregistered(value: object) -> object:
    names: dict[str, Any] = {"__name__": "nowhere", "__file__": __file__}
    exec("class Loaded:\n    def same(self, before, found): return True\n", names)  # noqa: S102 - ours
    loaded = names["Loaded"]()
    loaded.value = value
    return loaded.same


def constant_of_code(value: object) -> object:
    def same(before: str, found: str) -> bool:
        return found in (before, "constant")

    constants = tuple(repr(value) if one == "constant" else one for one in same.__code__.co_consts)
    assert constants != same.__code__.co_consts
    same.__code__ = same.__code__.replace(co_consts=constants)
    return same


class PerThread(threading.local):
    pass


def thread_with(value: object) -> object:
    made = PerThread()
    made.value = value
    return made


def holding(*values: object) -> object:
    made = argparse.ArgumentParser()
    made.rules = values  # type: ignore[attr-defined]
    return made


def package(value: object) -> object:
    """Return an object of a package that holds a user's function deep within it."""
    made = argparse.ArgumentParser()
    inner = argparse.ArgumentParser()
    inner.rules = {"a": [closure(value)]}  # type: ignore[attr-defined]
    made.inner = (inner,)  # type: ignore[attr-defined]
    return made


def member(value: object) -> object:
    return Rule(Enum("Made", {"ONLY": (value,)}, module=__name__)["ONLY"])  # type: ignore[misc]


HOLDERS: dict[str, Callable[[object], object]] = {
    "closure": closure,
    "nested": nested,
    "local class": local_class,
    "cached": wrapped,
    "partial": lambda value: functools.partial(Rule.same, value),
    "named argument": lambda value: functools.partial(Rule.same, other=value),
    "attribute": Rule,
    "slot": Slotted,
    "method": lambda value: Rule(value).same,
    "object in a closure": lambda value: closure(Rule(value)),
    "list": lambda value: Rule([value]),
    "private slot": Private,
    "deep in an object of a package": lambda value: closure(package(value)),
    "value of a member": member,
    "object of a package": lambda value: closure(holding(closure(value))),
    "module without a name": unregistered,
    "attribute of a text": lambda value: Rule(text_with(value)),
    "attribute of a thread": thread_with,
    "names of its own": own_names,
    "beside a long table": lambda value: closure(
        holding([[n] for n in range(2_000)], [[closure(value)]])
    ),
}


def limited(value: int) -> Enum:
    class Rule(Enum):
        ONLY = "only"

        def __init__(self, _: str) -> None:
            self._limit = value

    return Rule.ONLY


def inner_class(value: object) -> object:
    class Rule:
        __limit__ = value

    return Rule()


class Pair(ctypes.Structure):
    _fields_ = (("value", ctypes.c_int),)


class OwnBytes(bytearray):
    pass


class OwnArray(array):  # type: ignore[type-arg]  # it has no types before Python 3.12
    pass


class OwnError(Exception):
    pass


class Zone(tzinfo):
    def __init__(self, hours: int) -> None:
        self.hours = hours

    def utcoffset(self, when: datetime | None) -> timedelta:
        del when
        return timedelta(hours=self.hours)

    def __repr__(self) -> str:
        return "Zone"


def at_zone(hours: int) -> datetime:
    return datetime(2024, 1, 1, tzinfo=Zone(hours))


def of_metaclass(value: object) -> object:
    class Meta(type):
        limit = value

    return Meta("Made", (), {})


OF_ONE_NAME = []


def named_once(text: str) -> str:
    return text


OF_ONE_NAME.append(named_once)


def named_once(text: str) -> str:  # type: ignore[no-redef]
    return text * 2


OF_ONE_NAME.append(named_once)


class Shy(list[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(())


def fields(name: str) -> object:
    return namedtuple("fields", name)  # type: ignore[misc]


def made_class(value: object) -> object:
    return make_dataclass("made_class", [("limit", object, field(default=value))])


def derived(base: type) -> object:
    class Derived(base):  # type: ignore[misc]  # it is chosen when the program runs
        pass

    return Derived(1)


class OwnPair:
    def __init__(self, first: object) -> None:
        self.first = first


def weak(value: object) -> object:
    return functools.partial(print, weakref.ref(value), value)


class OwnMeta(type):
    pass


class OtherMeta(type):
    pass


def meta(base: type) -> object:
    class Meta(base):  # type: ignore[misc]  # it is chosen when the program runs
        pass

    return Meta("A", (), {})()


def abstract(value: object) -> object:
    class Rule(ABC):
        limit = value

        @abstractmethod
        def never(self) -> None: ...

    return Rule


def made_module(value: object) -> ModuleType:
    module = ModuleType("made_module")
    module.limit = value  # type: ignore[attr-defined]
    return module


class OwnModule(ModuleType):
    def __init__(self, value: object) -> None:
        super().__init__("own")
        self.limit = value


def made_with_helper(text: str) -> object:
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def helper(): return {text}\ndef rule(): return helper()", names)  # noqa: S102 - ours
    return names["rule"]


def cached_with(value: object) -> object:
    @functools.cache
    def rule() -> None:
        pass

    rule.limit = value  # type: ignore[attr-defined]
    return rule


def member_with(value: object) -> object:
    class Rule(Enum):
        ONLY = 1

        @property
        def limit(self) -> object:
            return value

    return Rule.ONLY


def own_partial(value: object) -> object:
    class Partial(functools.partial):  # type: ignore[type-arg]  # no types when it runs
        limit = value

    return Partial(print)


class OwnProperty(property):
    def __init__(self, limit: object) -> None:
        super().__init__(None)
        self.limit = limit


def renamed(value: object) -> object:
    @functools.wraps(Rule, updated=())
    class Renamed(Rule):
        limit = value

    return Renamed(1)


def settings(value: str) -> configparser.ConfigParser:
    made = configparser.ConfigParser()
    made["rules"] = {"a": value}
    return made


def made_of(text: str, names: dict[str, Any] | None = None) -> object:
    names = {"__name__": __name__} if names is None else names
    exec(compile(f"def rule(): return {text}", "rules", "exec"), names)  # noqa: S102 - ours
    return names["rule"]


#: Pairs of values. Each value is made twice, as two runs make it.
VALUES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "text": (lambda: "a", lambda: "b"),
    "number": (lambda: 1, lambda: True),
    "bytes": (lambda: b"a", lambda: b"b"),
    "pattern": (lambda: re.compile("a"), lambda: re.compile("a", re.IGNORECASE)),
    "set": (lambda: {"a", "b", "c"}, lambda: {"a", "b", "d"}),
    "dictionary": (lambda: {"a": {"b": 1}}, lambda: {"a": {"b": 2}}),
    "search of a pattern": (lambda: re.compile("a").search, lambda: re.compile("b").search),
    "method of text": (lambda: str.lower, lambda: str.upper),
    "function": (lambda: closure, lambda: nested),
    "number of a package": (lambda: np.int64(1), lambda: np.int64(2)),
    "code": (lambda: compile("1", "<a>", "eval"), lambda: compile("2", "<a>", "eval")),
    "namespace": (lambda: SimpleNamespace(a=1), lambda: SimpleNamespace(a=2)),
    "chain": (lambda: ChainMap({"a": 1}), lambda: ChainMap({"a": 2})),
    "wrapped dictionary": (lambda: UserDict({"a": 1}), lambda: UserDict({"a": 2})),
    "bytearray": (lambda: bytearray(b"a"), lambda: bytearray(b"b")),
    "default": (lambda: defaultdict(int), lambda: defaultdict(list)),
    "caller": (lambda: methodcaller("strip", "a"), lambda: methodcaller("strip", "b")),
    "view": (lambda: Counter("a").keys(), lambda: Counter("b").keys()),
    "array": (lambda: array("i", [1]), lambda: array("i", [2])),
    "length of a deque": (lambda: deque("a", 2), lambda: deque("a", 3)),
    "function of a package": (lambda: np.minimum, lambda: np.maximum),
    "method of a value": (lambda: "a".__eq__, lambda: "a".__ne__),
    "structure": (lambda: Pair(1), lambda: Pair(2)),
    "bytes of an own class": (lambda: OwnBytes(b"a"), lambda: OwnBytes(b"b")),
    "array of an own class": (lambda: OwnArray("i", [1]), lambda: OwnArray("i", [2])),
    "code without a module": (lambda: made_of("1", {}), lambda: made_of("2", {})),
    "class with another name": (lambda: renamed(1), lambda: renamed(2)),
    "pattern of a package": (lambda: regex.compile("a"), lambda: regex.compile("b")),
    "metaclass": (lambda: of_metaclass(1), lambda: of_metaclass(2)),
    "own time zone": (lambda: at_zone(1), lambda: at_zone(2)),
    "function of one name": (lambda: OF_ONE_NAME[0], lambda: OF_ONE_NAME[1]),
    "list with other elements": (lambda: Shy([1]), lambda: Shy([2])),
    "function of C": (lambda: Levenshtein.similarity, lambda: JaroWinkler.similarity),
    "list of a package": (lambda: nltk.Tree("a", []), lambda: nltk.Tree("b", [])),
    "made tuple": (lambda: fields("a"), lambda: fields("b")),
    "made data class": (lambda: made_class(1), lambda: made_class(2)),
    "made module": (lambda: made_module(1), lambda: made_module(2)),
    "own module class": (lambda: OwnModule(1), lambda: OwnModule(2)),
    "helper of made code": (lambda: made_with_helper("1"), lambda: made_with_helper("2")),
    "attribute of a cache": (lambda: cached_with(1), lambda: cached_with(2)),
    "property of a member": (lambda: member_with(1), lambda: member_with(2)),
    "own partial": (lambda: own_partial(1), lambda: own_partial(2)),
    "own property": (lambda: OwnProperty(1), lambda: OwnProperty(2)),
    "weak reference": (lambda: weak(OwnPair(1)), lambda: weak(OwnPair(2))),
    "chosen metaclass": (
        OwnMeta("A", (), {}),
        OtherMeta("A", (), {}),
    ),
    "base of a metaclass": (lambda: meta(OwnMeta), lambda: meta(OtherMeta)),
    "base of a class": (lambda: derived(Rule), lambda: derived(Slotted)),
    "abstract class": (lambda: abstract(1), lambda: abstract(2)),
    "error": (lambda: OwnError(1), lambda: OwnError(2)),
    "configuration": (lambda: settings("1"), lambda: settings("2")),
    "array of numpy": (lambda: np.arange(2), lambda: np.arange(3)),
    "partial method": (
        lambda: functools.partialmethod(closure("a")),
        lambda: functools.partialmethod(closure("b")),
    ),
    "code of a file name": (lambda: made_of("1"), lambda: made_of("2")),
    "class": (lambda: type("Made", (), {"a": 1}), lambda: type("Made", (), {"a": 2})),
    "boolean of numpy": (lambda: np.bool_(1), lambda: np.bool_(0)),
    "module": (lambda: re, lambda: sys),
    "path": (lambda: Path("a"), lambda: Path("b")),
    "private attribute of a member": (lambda: limited(1), lambda: limited(2)),
    "attribute of an inner class": (lambda: inner_class(1), lambda: inner_class(2)),
    "member": (lambda: Size.SMALL, lambda: Size.LARGE),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_another_value_has_another_digest(holder: str, kind: str) -> None:
    hold, (one, other) = HOLDERS[holder], VALUES[kind]
    assert not hint_of(values_of(hold(one())))
    assert values_of(hold(one())) == values_of(hold(one())) != values_of(hold(other()))


def test_objects_that_contain_themselves_have_values() -> None:
    def rule(value: object) -> Rule:
        endless: list[object] = [value]
        endless.append(endless)
        made = Rule(endless)
        made.itself = made  # type: ignore[attr-defined]
        return made

    assert values_of(rule(1)) == values_of(rule(1)) != values_of(rule(2))
    assert not values_of(lambda before, found: before == found)


@pytest.mark.parametrize(
    "value",
    [sys.stdout, threading.Thread(), (letter for letter in "abc"), ContextVar("a")],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_not_known_differ_in_each_run(value: object) -> None:
    found = values_of(closure(value))
    assert found.startswith("unknown-")
    assert "attribute fingerprint" in hint_of(digest_with_values("", found))
    text = (
        "import sys; from functools import partial;"
        "from pytest_dstfuzz.own_values import values_of;"
        "print(values_of(partial(print, sys.stdout)))"
    )

    def digests(env: dict[str, str]) -> set[bytes]:
        command = [sys.executable, "-c", text]
        runs = [subprocess.run(command, env=env, capture_output=True, check=True) for _ in range(2)]
        return {run.stdout for run in runs}

    # All workers of pytest-xdist belong to one run.
    env = {name: one for name, one in os.environ.items() if "TESTRUNUID" not in name}
    assert len(digests(env)) == 2
    assert len(digests({**env, "PYTEST_XDIST_TESTRUNUID": "one"})) == 1


def test_a_fingerprint_stands_for_the_values() -> None:
    def made(value: object, fingerprint: str) -> Rule:
        rule = Rule(value)
        rule.fingerprint = fingerprint  # type: ignore[attr-defined]
        return rule

    same, other = made(sys.stdout, "a"), made(sys.stderr, "a")
    assert values_of(same) == values_of(other) != values_of(made(sys.stdout, "b"))
    assert values_of(closure(same)) == values_of(closure(other))
    assert not hint_of(values_of(closure(same)))


def test_code_counts_that_a_text_makes() -> None:
    def made(text: str) -> str:
        return values_of(eval(f"lambda before, found: {text}"))  # noqa: S307 - our own text

    assert made("before == found") == made("before == found") != made("before != found")


def test_a_constant_counts_that_a_program_puts_into_code() -> None:
    assert values_of(constant_of_code(1)) == values_of(constant_of_code(1))
    assert values_of(constant_of_code(1)) != values_of(constant_of_code(2))


def test_code_counts_that_a_program_puts_into_another_function() -> None:
    def function() -> Callable[[str, str], bool]:
        return lambda before, found: before == found

    other = function()
    other.__code__ = closure.__code__.replace(co_name="<lambda>")
    assert values_of(function()) != values_of(other)


TWICE = {
    "function": """
try:
    import MODULE
    def rule(): return 1
except ImportError:
    def rule(): return 2
""",
    "method": """
class Rule:
    try:
        import MODULE
        def same(self): return 1
    except ImportError:
        def same(self): return 2
rule = Rule()
""",
    **{
        f"method with {decorator}": f"""
from functools import cache
class Rule:
    try:
        import MODULE
        @{decorator}
        def same(self=None): return 1
    except ImportError:
        @{decorator}
        def same(self=None): return 2
rule = Rule()
"""
        for decorator in ("staticmethod", "classmethod", "property", "cache")
    },
    "order of bases": """
class A: limit = 1
class B: limit = 2
try:
    import MODULE
    class Rule(A, B): pass
except ImportError:
    class Rule(B, A): pass
rule = Rule()
""",
}


@pytest.mark.parametrize("kind", TWICE)
def test_functions_and_classes_that_a_file_defines_twice_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for module in ("json", "json", "no_json"):
        monkeypatch.delitem(sys.modules, "twice", raising=False)
        text = TWICE[kind].replace("MODULE", module)
        (tmp_path / "twice.py").write_text(text, encoding="utf-8")
        invalidate_caches()
        _codes_in.cache_clear()
        found.append(values_of(closure(import_module("twice").rule)))
    assert found[0] == found[1] != found[2]


def test_a_function_of_a_file_that_has_changed_has_known_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = TWICE["function"].replace("MODULE", "json")
    (tmp_path / "late.py").write_text(text, encoding="utf-8")
    invalidate_caches()
    rule = import_module("late").rule
    (tmp_path / "late.py").write_text(f"# New line.\n{text}", encoding="utf-8")
    _codes_in.cache_clear()
    assert not hint_of(values_of(closure(rule)))


def test_a_name_that_looks_like_unknown_values_gives_no_hint() -> None:
    assert not hint_of("unknown-or-none", "search: unknown-slot-first in the baseline")


def test_a_comparison_class_in_a_function_has_known_values() -> None:
    def made(value: object) -> Comparison:
        class Local(Comparison):
            name = "local"

            def compare(self, path: str, before: str, found: str, asked: Context) -> Any:
                return ComparisonResult(before == found or (path, found, asked) == value)

        return Local()

    assert not hint_of(values_of(made(1)))
    assert values_of(made(1)) == values_of(made(1)) != values_of(made(2))


def test_a_fingerprint_that_a_wrapper_copies_does_not_stand_for_it() -> None:
    def wrapper(value: object) -> object:
        @functools.wraps(same)
        def wrapped(before: str, found: str) -> bool:
            return before == found or bool(value)

        return wrapped

    def same(before: str, found: str) -> bool:
        return before == found

    same.fingerprint = "a"  # type: ignore[attr-defined]
    assert values_of(wrapper(1)) != values_of(wrapper(2))


def test_functions_of_one_line_are_told_apart() -> None:
    one, other = (lambda before, found: before == found), (lambda before, found: before != found)
    assert values_of(closure(one)) != values_of(closure(other))


@pytest.mark.parametrize("value", ["port 80", ["a"], {"a": 1}])
def test_global_names_and_attributes_of_classes_may_change_during_a_run(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a cache or a counter."""

    def same(before: str, found: str) -> bool:
        return found in (before, TABLE)

    before = values_of(same), values_of(Rule("a"))
    monkeypatch.setitem(globals(), "TABLE", value)
    monkeypatch.setattr(Rule, "calls", value)
    assert (values_of(same), values_of(Rule("a"))) == before


def test_objects_that_cannot_be_looked_at_are_left_out() -> None:
    class Unbound:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    class Endless(list[object]):
        def __iter__(self) -> Any:
            raise RuntimeError

    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    near = [Rule(None) for _ in range(40)]
    for one in near:
        one.value = [other for other in near if other is not one]
    pair = Enum("Pair", "A B")
    pair["A"].other, pair["B"].other = pair["B"], pair["A"]  # type: ignore[attr-defined]
    assert values_of(closure(pair["A"]))
    for value in (Unbound(), Endless([1]), deep, near):
        values_of(closure(value))
        code_of_rules(Settings(), [as_relation(Mine({"a"}), "here")])


@pytest.mark.parametrize(
    "value",
    [
        "partial(print, {'a', 'b', 'c', ('d', 1)}, set('hello'))",
        "eval(\"lambda b, f: f in {'a', 'b', 'c', 'd'}\")",
        "partial(print, {SimpleNamespace: 1, 'x': frozenset(map(Fraction, range(9)))})",
        "partial(print, {n: SimpleNamespace(n=n, s=S) for n in {'a', 'b', 'c', 'd'}})",
        "partial(print, defaultdict(list, {n: [S] for n in {'a', 'b', 'c', 'd'}}))",
        # A vectorizer of scikit-learn has the id of its stop words.
        "(lambda words: partial(print, SimpleNamespace(words=words, id=id(words))))(['a'])",
    ],
)
def test_values_have_one_form_in_all_processes(value: str) -> None:
    text = (
        "from pytest_dstfuzz.own_values import values_of; from functools import partial;"
        "from fractions import Fraction; from types import SimpleNamespace;"
        "from collections import defaultdict; S = SimpleNamespace(a=1);"
        f"print(values_of({value}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "012"
    }
    assert len(found) == 1
    assert found != {b"\n"}


LINKED = """
from pytest_dstfuzz.own_values import _codes_in, digest_with_values, hint_of, values_of
class Word:
    def __init__(self, name):
        self.name, self.near = name, set()
    def __hash__(self):
        return hash(self.name)
words = [Word(name) for name in "abcde"]
for one, other in zip(words, [*words[1:], words[LAST]]):
    one.near.add(other)
    other.near.update([one, words[0]])
def same():
    return False
same.words = set(words)
print(values_of(same))
"""


def test_objects_that_refer_to_each_other_have_one_form_in_all_processes(tmp_path: Path) -> None:
    def digest(seed: str, last: int) -> bytes:
        text = LINKED.replace("LAST", str(last))
        (tmp_path / "links.py").write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-c", "import links"],
            env={
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": ":".join([str(tmp_path), *sys.path]),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            check=True,
        ).stdout

    found = {digest(seed, 0) for seed in "012345"}
    assert len(found) == 1
    assert found != {b"\n"}
    assert digest("0", 2) not in found


def test_comparisons_keep_the_values_that_they_had_first() -> None:
    def made(value: str) -> tuple[Rule, OwnFunction]:
        rule = Rule(value)
        return rule, OwnFunction(rule.same, "same", None)

    (rule, one), (_, other) = made("a"), made("b")
    before = one.identity
    rule.value = "b"
    assert before == one.identity != other.identity


def test_objects_that_compare_are_told_apart_by_patterns() -> None:
    class Compares(Rule):
        name = "compares"

        def compare(self, *given: object) -> ComparisonResult:
            return ComparisonResult(same=given == self.value)

    one, again, other = (
        CheckedComparison(Compares(re.compile(text)), "here").identity for text in "aab"
    )
    assert one == again != other


class Mine(Relation):
    name = "mine"

    def __init__(self, allowed: set[str]) -> None:
        self.allowed = allowed

    def judge(self, *given: object) -> Any:
        raise NotImplementedError


class Own(RandomSearch):
    name = "own"

    def __init__(self, allowed: set[str]) -> None:
        self.allowed = allowed


@pytest.mark.parametrize("kind", ["relation", "search"])
def test_relations_and_searches_are_told_apart_by_their_values(kind: str) -> None:
    def digests(allowed: str, later: str = "") -> dict[str, str]:
        given = (Mine if kind == "relation" else Own)({allowed})
        if kind == "relation":
            relation = as_relation(given, "here")
            given.allowed |= {later}
            return code_of_rules(Settings(), [relation])
        search = as_search(given, "here")
        given.allowed |= {later}
        return code_of_rules(Settings(), [], search)

    before = digests("a")
    assert before
    assert before == digests("a", "later") != digests("b")


def test_searches_by_name_are_told_apart_by_the_values_of_their_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def digests(allowed: set[str], later: str = "") -> dict[str, str]:
        monkeypatch.setattr(SEARCHES, "_registered", {})
        register_search("own", lambda **_: Own(allowed))
        settings = Settings.of(search="noise+own")
        found = code_of_rules(settings, [])
        allowed |= {later}
        assert code_of_rules(settings, []) == found
        return found

    before = digests({"a"})
    assert before
    assert before == digests({"a"}, "later") != digests({"b"})


CONFTEST = """
import re
import pytest
def pytest_addoption(parser):
    parser.addini("lenient", "replies that count as the same")
def make(pattern):
    return lambda before, found: before == found or bool(re.match(pattern, found))
@pytest.fixture(scope="session")
def dst_compare(pytestconfig):
    return make(pytestconfig.getini("lenient"))
"""
BOT = """
def reply(messages):
    return messages[-1]['content'][:9]
"""


def test_another_value_of_a_comparison_is_not_compared_with_the_baseline(tmp_path: Path) -> None:
    for name, text in {"bot": BOT, "conftest": CONFTEST}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    options = ("--dst-model=bot:reply", "--dst-outcome=reply", "--dst-turns=4", "--dst-variants=2")

    def status(lenient: str, *more: str) -> int:
        given = ("-o", f"lenient={lenient}", "--dst-fail-on=gate", "--dst-baseline=base.json")
        line = ("-p", "no:cacheprovider", *options, *given, *more)
        return run_python("-m", "pytest", *line, cwd=tmp_path).returncode

    status("NEVER", "--dst-update-baseline")
    assert (status("NEVER"), status(".")) == (0, 9)


def test_no_baseline_is_written_if_a_value_of_a_comparison_is_not_known(tmp_path: Path) -> None:
    text = CONFTEST.replace('make(pytestconfig.getini("lenient"))', "make(sys.stderr)")
    text = f"import sys\n{text}".replace("bool(re.match(pattern, found))", "pattern is None")
    for name, content in {"bot": BOT, "conftest": text}.items():
        (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    found = run_python(
        "-m", "pytest", "-p", "no:cacheprovider", "--dst-model=bot:reply", "--dst-outcome=reply",
        "--dst-turns=4", "--dst-variants=2", "--dst-baseline=base.json", "--dst-update-baseline",
        cwd=tmp_path,
    )  # fmt: skip
    assert found.returncode != 0
    assert "the baseline was not written" in found.stdout
    assert "attribute fingerprint" in found.stdout
    assert not (tmp_path / "base.json").exists()
