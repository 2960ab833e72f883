"""Comparisons by name, and those of a suite: what is taken, and what each mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dstfuzz.comparisons.comparison import Comparison, ComparisonResult
from pytest_dstfuzz.comparisons.registry import (
    COMPARISONS,
    as_comparison,
    comparison_by_name,
    register_comparison,
)
from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import UserError

ASKED = Context((Exchange("", "is there breakfast"),))
PLAIN = ReplySettings()


def says(comparison: Comparison, before: str, found: str) -> ComparisonResult:
    return comparison.compare("reply", before, found, ASKED)


def test_several_must_all_agree_and_the_first_that_does_not_says_why() -> None:
    both = comparison_by_name("numbers,polarity", PLAIN)
    assert (both.name, both.exact) == ("numbers,polarity", False)
    assert says(both, "Yes, until 10.", "Yes, until ten.").same
    assert says(both, "Yes, until 10.", "No, until 11.") == ComparisonResult(
        same=False, why="10 / 11"
    )
    assert says(both, "Yes, until 10.", "No, from 10.").why == "yes / no"


def test_a_wrong_name_is_told_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown comparison 'nubmers'. Did you mean 'numbers'\?"):
        comparison_by_name("nubmers", PLAIN)


def test_a_function_of_a_module_is_called_with_what_it_takes(tmp_path: Path) -> None:
    (tmp_path / "my_rules.py").write_text(
        "def same(before, found): return before.lower() == found.lower()\n"
        "def asked(before, found, asked): return 'breakfast' in asked.user\n"
        "def optional(before, found, strict=True): return strict is True\n"
        "def far(before, found): return 0.4\n"
        "def none(before, found): pass\n"
        "def wrong(before, found): return before[999]\n"
        "def one(before): return True\n"
        "def huge(before, found): return 3.5\n"
        "from pytest_dstfuzz.comparisons.registry import ComparisonResult\n"
        "def text(before, found): return ComparisonResult('False')\n"
        "def more(before, found, asked, **more): return 'breakfast' in asked.user\n"
        "def rest(before, found, asked, *more): return 'breakfast' in asked.user\n"
        "def pair(before, found, *more): return not more\n"
        "def endless(before, found): return 10**400\n"
        "def several(before, found): import numpy; return numpy.zeros(2)\n"
        "def named(before, found): return ComparisonResult(True, 'far')\n",
        encoding="utf-8",
    )

    def own(name: str, settings: ReplySettings = PLAIN) -> Comparison:
        return comparison_by_name(f"my_rules:{name}", settings, (str(tmp_path),))

    assert says(own("same"), "Yes", "YES").same
    assert own("same").identity.startswith("my_rules:same#")
    assert own("same").identity != own("asked").identity
    assert says(own("asked"), "a", "b").same
    for name in ("optional", "more", "rest", "pair"):
        assert says(own(name), "a", "b").same, name
    half = own("far", ReplySettings(threshold=0.5))
    assert says(half, "a", "b") == ComparisonResult(same=True, distance=0.4)
    assert half.name == "my_rules:far<=0.5"
    strict = says(own("far", ReplySettings(threshold=0.3)), "a", "b")
    assert strict == ComparisonResult(same=False, distance=0.4, why="0.40 apart, 0.3 allowed")
    for name, settings, message in (
        ("far", PLAIN, "returned a distance, 0.4, but has no threshold"),
        ("none", PLAIN, "returned nothing: it must return True or False"),
        ("wrong", PLAIN, r"the comparison 'my_rules:wrong'.* IndexError"),
        ("one", PLAIN, "cannot be called with two texts: write def same"),
        (
            "huge",
            ReplySettings(threshold=1),
            r"the distance 3.5: it must be a number from 0 \(the same\) to",
        ),
        ("endless", ReplySettings(threshold=1), "the distance 1000"),
        ("several", PLAIN, "the comparison 'my_rules:several'.* ValueError"),
        ("named", PLAIN, "returned the distance 'far': it must be a number"),
        ("text", PLAIN, "with same='False': it must be True or False"),
        ("sme", PLAIN, "has no attribute 'sme'. Did you mean 'same'"),
    ):
        with pytest.raises(UserError, match=message):
            says(own(name, settings), "a", "b")


def test_a_threshold_that_nothing_is_held_against_is_refused() -> None:
    with pytest.raises(UserError, match="a threshold needs a comparison with distances"):
        comparison_by_name("numbers,polarity", ReplySettings(threshold=0.3))


def test_a_suite_registers_a_function_or_an_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMPARISONS, "_registered", {})

    @register_comparison
    def shouting(before: str, found: str) -> bool:
        return before.upper() == found.upper()

    @register_comparison
    class Length:
        name = "length"

        def compare(self, path: str, before: str, found: str, asked: Context) -> object:
            del path, asked
            return ComparisonResult(len(before) == len(found)) if found else "no"

    assert says(comparison_by_name("shouting", PLAIN), "yes", "YES").same
    assert says(comparison_by_name("length,numbers", PLAIN), "yes 1", "no 12").same is False
    with pytest.raises(UserError, match="returned 'no': it must return a ComparisonResult"):
        says(comparison_by_name("length", PLAIN), "a", "")
    with pytest.raises(UserError, match="ships with pytest-dstfuzz"):

        @register_comparison
        def numbers(before: str, found: str) -> bool:
            return before == found

    assert says(as_comparison(shouting, "dst_compare", PLAIN), "a", "A").same
    with pytest.raises(UserError, match=r"dst_compare: int is not a comparison: it lacks"):
        as_comparison(3, "dst_compare", PLAIN)
