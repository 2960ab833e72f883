"""A baseline is not compared after a change of the user's own rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import run_python

from pytest_dstfuzz.comparisons.comparison import (
    CheckedComparison,
    Comparison,
    ComparisonResult,
)
from pytest_dstfuzz.dialogue.dialogues import Context

BOT = """
def heard(context):
    return {'hotel-area': context.user.lower().split()[0]}
def reply(messages):
    return messages[-1]['content'][:9]
"""
RELATION = """
import rules
from pytest_dstfuzz import Relation, register_relation
from pytest_dstfuzz.relations.relation import Inapplicable, Replacement
@register_relation
class Mine(Relation):
    name = "mine"
    edits = "own"
    side = "should-not-change"
    reasons = ("it has no word",)
    def begin(self, scene):
        place = scene.turn.user.find(" ")
        if place < 0:
            return Inapplicable(self.reasons[0])
        return [scene.rewrite([Replacement(place, place + 1, "  ", "wide")], [])]
"""
SEARCH = """
import rules
from pytest_dstfuzz import register_search
from pytest_dstfuzz.search.searches import RandomSearch
class Own(RandomSearch):
    name = "own"
register_search("own", Own)
"""
COMPARISON = """
import rules
from pytest_dstfuzz import register_comparison
from table import Tabled
register_comparison(Tabled(rules.STRICT))
"""
TABLE = """
from pytest_dstfuzz.comparisons.comparison import ComparisonResult
class Tabled:
    name = "tabled"
    def __init__(self, strict):
        self.strict = strict
    def compare(self, path, before, found, asked):
        return ComparisonResult(before == found or not self.strict)
"""
PLAIN = "def test_replies(dst_turn):\n    dst_turn.assert_unchanged()\n"
#: The rule of a suite -> its `conftest.py` and the options.
RULES = {
    "relation": (RELATION, ("--dst-model=bot:heard", "--dst-relation=mine")),
    "search": (SEARCH, ("--dst-model=bot:heard", "--dst-search=own")),
    "object": (
        COMPARISON,
        ("--dst-model=bot:reply", "--dst-outcome=reply", "--dst-compare=tabled"),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_changed_rule_is_not_compared_with_the_baseline(tmp_path: Path, rule: str) -> None:
    conftest, options = RULES[rule]
    for name, text in {"bot": BOT, "conftest": conftest, "table": TABLE}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    def reasons(strict: bool, *more: str) -> str:
        (tmp_path / "rules.py").write_text(f"STRICT = {strict}\n", encoding="utf-8")
        line = (*options, "--dst-turns=4", "--dst-variants=2", "--dst-baseline=base.json")
        done = run_python("-m", "pytest", "-p", "no:cacheprovider", *line, *more, cwd=tmp_path)
        assert done.returncode in (0, 1, 9), done.stdout + done.stderr
        return " ".join(done.stdout.split())

    reasons(False, "--dst-update-baseline")
    changed = "has changed since the baseline"
    assert changed not in reasons(False)
    assert changed in reasons(True)


FAMILY = """
from pathlib import Path
from pytest_dstfuzz import register_search
from pytest_dstfuzz.search.protocol import SearchFamily
from pytest_dstfuzz.search.searches import RandomSearch
class Own(RandomSearch):
    name = "own"
class Owns(SearchFamily):
    forms = ("own:SEED",)
    def make(self, name, *, seed, k):
        _, _, given = name.partition(":")
        place = Path(given, "n.txt") if given == "d" else Path(given)
        return Own(int(given if given.isdigit() else place.read_text()), k)
register_search("own", Owns())
"""


@pytest.mark.parametrize(
    ("before", "after"), [("own:1", "own:9"), ("own:n.txt", "own:n.txt"), ("own:d", "own:d")]
)
def test_another_argument_of_a_search_is_not_compared_with_the_baseline(
    tmp_path: Path, before: str, after: str
) -> None:
    for name, text in {"bot": BOT, "conftest": FAMILY}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    def reasons(search: str, number: int, *more: str) -> str:
        for name in ("n.txt", "d/n.txt"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(f"{number}", encoding="utf-8")
        line = ("--dst-model=bot:heard", f"--dst-search=noise+{search}", "--dst-turns=4")
        base = ("--dst-variants=2", "--dst-baseline=base.json", *more)
        done = run_python("-m", "pytest", "-p", "no:cacheprovider", *line, *base, cwd=tmp_path)
        assert done.returncode in (0, 1, 9), done.stdout + done.stderr
        return " ".join(done.stdout.split())

    reasons(before, 1, "--dst-update-baseline")
    changed = "has changed since the baseline"
    assert changed not in reasons(before, 1)
    assert changed in reasons(after, 9)


FIXTURE = """
import pytest
import rules
@pytest.fixture(scope="session")
def dst_compare():
    return {value}
"""
MARKER = """
import pytest
import rules
@pytest.mark.dst(compare={value})
def test_replies(dst_turn):
    dst_turn.assert_unchanged()
"""
SAME = "def same(before, found):\n    return {}\n"
#: How a suite chooses the comparison -> its `conftest.py` and test, each before and after.
CHOSEN = {
    "function": [(FIXTURE.format(value="rules.same"), PLAIN, strict) for strict in (False, True)],
    "name": [(FIXTURE.format(value=f"'{name}'"), PLAIN, True) for name in ("numbers", "exact")],
    "marker": [("", MARKER.format(value=f"'{name}'"), True) for name in ("numbers", "exact")],
}


@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN)
def test_another_comparison_of_a_suite_is_not_compared_with_the_baseline(
    tmp_path: Path, chosen: list[tuple[str, str, bool]]
) -> None:
    (tmp_path / "bot.py").write_text(BOT, encoding="utf-8")

    def reasons(conftest: str, test: str, strict: bool, *more: str) -> str:
        rule = SAME.format("before == found" if strict else "True")
        files = {"conftest": conftest, "test_replies": test, "rules": rule}
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        line = ("--dst-model=bot:reply", "--dst-outcome=reply", "--dst-turns=4", "--dst-variants=2")
        base = ("--dst-baseline=base.json", *more)
        done = run_python("-m", "pytest", "-p", "no:cacheprovider", *line, *base, cwd=tmp_path)
        assert done.returncode in (0, 1, 9), done.stdout + done.stderr
        return " ".join(done.stdout.split())

    before, after = chosen
    reasons(*before, "--dst-update-baseline")
    changed = "compare:"
    assert changed not in reasons(*before)
    assert changed in reasons(*after)


def test_plain_values_of_a_comparison_count() -> None:
    """Two objects of a class may compare by different tables."""

    class Tabled(Comparison):
        name = "tabled"

        def __init__(self, table: object) -> None:
            self.table = table

        def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
            del path, asked
            return ComparisonResult(before == found)

    tables = ({"a": [1]}, {"a": [1]}, {"a": [2]})
    one, same, other = (CheckedComparison(Tabled(each), "here").identity for each in tables)
    assert one == same != other
