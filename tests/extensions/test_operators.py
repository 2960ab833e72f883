"""Operators and transformations of others: used where named, held to strict, and only there."""

from __future__ import annotations

import doctest
import json
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import find

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.settings import build_settings
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.perturb.edits import apply_edits, without
from pytest_dstfuzz.perturb.engine import Perturber
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.words import Edit, Variant
from pytest_dstfuzz.report.json_report import read_report
from pytest_dstfuzz.search.protocol import SearchTask
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.selection import select
from pytest_dstfuzz.strategies import variants
from pytest_dstfuzz.transformations import (
    SHIPPED,
    Transformation,
    operator,
    register,
)

pytestmark = pytest.mark.usefixtures("operators_as_before")

HERE = Path(__file__).parents[2] / "examples" / "extension"
TEXT = "please give me some more information about a movie, we are several people and thanks"
SHARES = ("word_replace/shorthand", "char_replace/wrong_case", "dialect")


@pytest.fixture
def examples(operators_as_before: None) -> None:  # noqa: ARG001 - what is known before is kept first
    """The three examples, registered as a conftest.py would, and forgotten after the test."""
    for name in ("shorthand", "wrong_case", "dialect"):
        runpy.run_path(str(HERE / f"{name}.py"), run_name=name)


def perturber_of(*only: str, validity: str = "strict", **settings: Any) -> Perturber:
    return Perturber(load_lexicon(), validity=validity, edits=only, **settings)


def drawn(perturber: Perturber, k: int = 3, text: str = TEXT, count: int = 200) -> list[Variant]:
    source, rng = perturber.prepare(text), np.random.default_rng(0)
    return [perturber.apply(source, perturber.space.sample(rng, k)) for _ in range(count)]


def made_by(found: list[Variant]) -> set[str]:
    edits = [edit for variant in found if variant.valid for edit in variant.edits]
    return {f"{edit.transformation}/{edit.operator}" for edit in edits}


@pytest.mark.parametrize("name", ["shorthand", "wrong_case", "dialect"])
def test_an_example_is_short_and_true(name: str) -> None:
    path = HERE / f"{name}.py"
    assert len(path.read_text().splitlines()) <= 25
    names = runpy.run_path(str(path), run_name=name)
    functions = [value for value in names.values() if getattr(value, "__module__", "") == name]
    runner = doctest.DocTestRunner()
    for function in filter(callable, functions):
        for test in doctest.DocTestFinder().find(function, globs=names):
            runner.run(test)
    assert runner.summarize().attempted
    assert not runner.summarize().failed


def test_what_is_added_changes_nothing_where_it_is_not_named(
    request: pytest.FixtureRequest,
) -> None:
    before = {k: drawn(perturber_of(), k) for k in (1, 3, 6)}
    only = drawn(perturber_of("word_replace", "char_drop"))
    request.getfixturevalue("examples")
    select.cache_clear()
    assert {k: drawn(perturber_of(), k) for k in (1, 3, 6)} == before
    assert drawn(perturber_of("word_replace", "char_drop")) == only
    # With a transformation more, what an action says of the six is the same.
    actions = [
        perturber_of(*names).space.sample(np.random.default_rng(1), 3).vector[:50]
        for names in ((), ("all", "dialect"))
    ]
    assert actions[0] == actions[1]


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
def test_named_ones_are_used_beside_the_shipped_ones(validity: str) -> None:
    found = drawn(perturber_of("all", *SHARES, validity=validity), k=6, count=600)
    assert made_by(found) >= {
        *("word_replace/shorthand", "char_replace/wrong_case"),
        *("dialect/british", "dialect/australian", "word_insert/filler", "char_drop/any"),
    }
    for variant in found:
        assert apply_edits(TEXT, variant.edits) == variant.text
        apply_edits(TEXT, without(variant.edits, [0]) if variant.edits else ())


@pytest.mark.usefixtures("examples")
def test_one_alone_and_operators_of_our_own_by_name() -> None:
    assert made_by(drawn(perturber_of("dialect"), k=1)) == {"dialect/british", "dialect/australian"}
    assert made_by(drawn(perturber_of("dialect/british"), k=1)) == {"dialect/british"}
    assert made_by(drawn(perturber_of("char-drop/blank"), k=1)) == {"char_drop/blank"}
    chosen = select(("dialect", "word_replace/shorthand", "char_drop", "word_replace/synonym"))
    assert chosen.written == (
        *("word_replace/synonym", "word_replace/shorthand", "dialect", "char_drop"),
    )
    assert select(("all", "word_insert/filler")) == select()
    assert select(("dialect/british", "dialect")) == select(("dialect",))


@pytest.mark.usefixtures("examples")
def test_strict_holds_them_to_its_locks_and_rates() -> None:
    locked = perturber_of("word_replace/shorthand", locks=["please", "info"])
    texts = {edit.after for variant in drawn(locked, k=1) for edit in variant.edits}
    assert texts
    assert not texts & {"pls", "plz", "info"}
    assert not any(v.valid for v in drawn(perturber_of("dialect", max_edit_rate=0.0), k=1))


@pytest.mark.usefixtures("examples")
def test_the_second_check_judges_their_edits_by_what_they_say() -> None:
    edit = Edit("word_replace", "shorthand", 0, 6, "please", "pls")
    using, without_it = perturber_of("all", "word_replace/shorthand"), perturber_of()
    text = TEXT.replace("please", "pls", 1)
    for perturber, status in ((using, "valid"), (without_it, "vetoed")):
        source = perturber.prepare(TEXT)
        assert perturber.check(source, text, [edit])[0] == status
        assert perturber.remake(source, [edit]).status == status
    source = using.prepare(TEXT)
    forged = replace(edit, after="taxi")
    assert using.check(source, TEXT.replace("please", "taxi", 1), [forged])[0] == "vetoed"
    assert using.check(source, text + "!", [edit]) == ("vetoed", "edits")
    word = perturber_of("dialect")
    mate = Edit("dialect", "australian", 6, 6, "", " mate")
    assert word.check(word.prepare(TEXT), "please mate" + TEXT[6:], [mate])[0] == "valid"
    assert from_json(Edit, json.loads(json.dumps(to_json(mate)))) == mate


@pytest.mark.usefixtures("examples")
def test_the_number_of_associated_transformations_follows_those_in_use() -> None:
    assert perturber_of("all", "dialect").space.most == 7
    assert (
        build_settings({"edits": ("all", "dialect"), "transformations": 7}).variant.transformations
        == 7
    )
    with pytest.raises(UserError, match="from 1 to 6"):
        build_settings({"transformations": 7})
    assert len(drawn(perturber_of("all", "dialect"), k=7, count=5)) == 5


@pytest.mark.usefixtures("examples")
def test_a_shipped_policy_uses_what_it_knows() -> None:
    def made(k: int, *only: str) -> list[Variant]:
        perturber = perturber_of(*only, order="distance")
        dialogue = Dialogue("d", (Turn(0, "", TEXT),))
        task = SearchTask(dialogue, 0, None, perturber, perturber.prepare(TEXT))
        turn = search_by_name("agent", seed=1, k=k).turn(task)
        return [turn.propose(number, 0, ()).variant for number in range(4)]

    assert made(3, "all", *SHARES) == made(3)
    assert made(7, "all", "dialect") == made(6)
    assert made_by(made(2, "word_replace/shorthand", "char_drop")) <= {
        "char_drop/blank",
        "char_drop/any",
    }
    with pytest.raises(UserError, match=r"an agent needs a shipped .* only dialect: choose"):
        made(1, "dialect")


@pytest.mark.usefixtures("examples")
def test_greedy_searches_and_hypothesis_use_them() -> None:
    perturber = perturber_of("dialect")
    dialogue = Dialogue("d", (Turn(0, "", TEXT),))
    task = SearchTask(dialogue, 0, None, perturber, perturber.prepare(TEXT))
    turn = search_by_name("greedy", seed=1, k=1).turn(task)
    assert made_by([turn.propose(n, 0, ()).variant for n in range(3)]) <= {
        "dialect/british",
        "dialect/australian",
    }
    settings = Settings.of(validity="strict", edits=select(("dialect", "char_drop")).written)
    least = find(
        variants(dialogue, settings=settings),
        lambda variant: variant.edits[0].transformation == "dialect",
    )
    assert len(least.edits) == 1


def say(*words: str) -> Callable[..., Any]:
    def said(word: str) -> tuple[str, ...]:
        return words if word else ()

    return said


def test_a_broken_registration_is_one_clear_message() -> None:
    def nothing() -> None: ...

    with pytest.raises(UserError, match=r"unknown kind of the operator word_drop/nothing: 'dorp'"):
        operator("word_drop", "dorp")(nothing)
    with pytest.raises(UserError, match=r"of the kind drop must take \(word\), .*, not \(\): "):
        operator("word_drop", "drop")(nothing)
    with pytest.raises(UserError, match="'Bad-Name' cannot be the name of an operator"):
        operator("word_replace", "replace", name="Bad-Name")(say("x"))
    with pytest.raises(UserError, match="word_replace/synonym is an operator of pytest-dstfuzz"):
        operator("word_replace", "replace", name="synonym")(say("x"))
    operator("word_replace", "replace", name="mine")(say("x"))
    operator("word_replace", "replace", name="mine")(say("y"))  # The same, read once more.
    with pytest.raises(UserError, match=r"there are two operators word_replace/mine: .* and .*"):
        operator("word_replace", "replace", name="mine")(lambda word: (word,))
    operator("char_drop", "replace", name="words")(say("x"))
    with pytest.raises(UserError, match=r"char_drop/words is of the kind replace, .* typo, punct"):
        select(("char_drop/words",))
    operator("gone", "replace", name="mine")(say("x"))
    with pytest.raises(UserError, match=r"unknown transformation 'gone'"):
        select(("gone/mine",))
    with pytest.raises(UserError, match=r"'word_replace/mime'. Did you mean 'word_replace/mine'\?"):
        select(("word_replace/mime",))


def test_a_badly_described_transformation_is_one_clear_message() -> None:
    for wrong, message in (
        (Transformation("Loud", "word", ("a",)), "'Loud' cannot be the name of a transformation"),
        (Transformation("all", "word", ("a",)), "do not use 'all'"),
        (Transformation("loud", "wrod", ("a",)), "Did you mean 'word'"),  # type: ignore[arg-type]
        (Transformation("loud", "word", ()), "needs at least one operator"),
        (Transformation("loud", "word", ("a", "a")), "each only once"),
        (Transformation("loud", "word", ("a",), ("position",)), "must have position, operator"),
        (SHIPPED[0], "ships with pytest-dstfuzz"),
    ):
        with pytest.raises(UserError, match=message):
            register(wrong)
    register(Transformation("loud", "word", ("a",)))
    with pytest.raises(UserError, match="there are two different transformations loud"):
        register(Transformation("loud", "char", ("a",)))
    with pytest.raises(UserError, match="unknown operator 'loud/a'"):
        perturber_of("loud")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"x", "y"}, "fails on 'please': TypeError: it returned a set, not a tuple or a list"),
        ("pls", "it returned a str, not"),
        ([3], "one of the choices that it returned is no word: 3"),
        (3, "TypeError"),
    ],
)
def test_an_operator_that_answers_badly_is_one_clear_message(said: Any, message: str) -> None:
    operator("word_replace", "replace", name="bad")(lambda word: said)  # noqa: ARG005
    with pytest.raises(UserError, match=message):
        drawn(perturber_of("word_replace/bad"), text="please")


def test_places_outside_of_the_word_are_one_clear_message() -> None:
    operator("char_drop", "typo", name="bad")(lambda word: [(0, len(word) + 1, ("",))])
    with pytest.raises(UserError, match=r"char_drop/bad fails on .* is not a place in 'please'"):
        drawn(perturber_of("char_drop/bad"), text="please")


def test_packages_bring_them_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {
        "pytest_dstfuzz.transformations": [("dialect", "dialect:DIALECT"), ("odd", "json:dumps")],
        "pytest_dstfuzz.operators": [
            ("word_replace/shorthand", "shorthand:shorthand"),
            ("word_replace/odd", "json:dumps"),
            ("word_replace/twice", "shorthand:shorthand"),
            ("word_replace/twice", "json:dumps"),
            ("word_replace/gone", "no_such_module:gone"),
        ],
    }
    for name in ("shorthand", "dialect"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def found(group: str) -> list[metadata.EntryPoint]:
        return [metadata.EntryPoint(*point, group) for point in groups.get(group, ())]

    monkeypatch.setattr("pytest_dstfuzz.registry.entry_points", found)
    assert made_by(drawn(perturber_of("dialect", "word_replace/shorthand"), k=2)) == {
        *("dialect/british", "dialect/australian", "word_replace/shorthand"),
    }
    for name, message in (
        ("odd", "'odd' of an installed package is dumps"),
        ("word_replace/odd", "lacks the decorator @operator"),
        ("word_replace/twice", "two packages provide the operator 'word_replace/twice': .* remove"),
        ("word_replace/gone", "cannot be loaded: no_such_module:gone raised ModuleNotFoundError"),
        ("word_replace/shorthnd", "Did you mean 'word_replace/shorthand'"),
    ):
        with pytest.raises(UserError, match=message):
            select((name,))


BOT = """
def track(context):
    return {"film-please": "yes"} if "please" in context.user else {}
"""


def test_a_conftest_registers_for_its_suite_also_under_xdist(pytester: pytest.Pytester) -> None:
    example = (HERE / "shorthand.py").read_text()
    pytester.makeconftest(example)
    pytester.makepyfile(bot=BOT)
    turn = {"system": "", "user": TEXT, "state": {"film-please": "yes"}}
    lines = [{"dialogue_id": f"d{n}", "turns": [turn]} for n in range(4)]
    pytester.path.joinpath("talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    reports = []
    for extra in (["-p", "no:xdist"], ["-n", "2"]):
        path = pytester.path / f"{len(reports)}.json"
        result = pytester.runpytest_subprocess(
            *("--dst-model=bot:track", "--dst-data=talk.jsonl", f"--dst-report={path}"),
            *("--dst-validity=strict", "--dst-edits=word-replace/shorthand"),
            *("--dst-transformations=1", "--dst-max-failure-rate=100%", "--dst-variants=3", *extra),
        )
        assert result.ret in (0, 1), result.stdout.str()
        reports.append(read_report(path))
    assert reports[0]["turns"] == reports[1]["turns"]
    assert reports[0]["settings"]["edits"] == ["word_replace/shorthand"]
    assert '"shorthand"' in json.dumps(reports[0]["turns"])
