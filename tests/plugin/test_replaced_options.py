"""Fixtures of a suite that replace an option which the command line names."""

from __future__ import annotations

import pytest

BOTS = """
def good(context):
    return {"hotel-name": str(len(context.exchanges))}

def bad(context):
    return {"hotel-name": context.user}

def reply(messages):
    return f"We have {len(messages)} rooms."
"""
_FIXTURE = "import mybot, pytest\n\n@pytest.fixture(scope='session'{})\ndef {}:\n    return {}\n"
_OWN = "\ndef test_own(dst_turn):\n    dst_turn.assert_unchanged()\n"
MODEL = _FIXTURE.format("", "dst_model()", "mybot.good")
COMPARE = _FIXTURE.format("", "dst_compare()", "lambda one, other: True")
_REPLIES = ("--dst-model=mybot:reply", "--dst-outcome=reply")


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    pytester.makepyfile(mybot=BOTS)
    options = ("-p", "no:cacheprovider", "--dst-turns=3", "--dst-variants=1", "--dst-suite=yes")
    return pytester.runpytest_inprocess(*options, "--dst-max-failure-rate=100%", *words)


@pytest.mark.parametrize(
    ("conftest", "words", "option"),
    [
        (MODEL, ("--dst-model=mybot:bad",), "model"),
        (
            _FIXTURE.format(", params=['good']", "dst_model(request)", "mybot.good"),
            ("--dst-model=mybot:bad",),
            "model",
        ),
        (COMPARE, (*_REPLIES, "--dst-compare=exact"), "compare"),
    ],
)
def test_a_replaced_option_is_a_usage_error(
    pytester: pytest.Pytester, conftest: str, words: tuple[str, ...], option: str
) -> None:
    pytester.makeconftest(conftest)
    result = run(pytester, *words)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*the fixture dst_{option} of *conftest.py* replaces it in*"])


@pytest.mark.parametrize(
    ("conftest", "words"),
    [
        (MODEL, ("-odst_model=mybot:bad",)),
        (MODEL, ()),
        (_FIXTURE.format("", "dst_model(dst_model)", "dst_model"), ("--dst-model=mybot:bad",)),
        (
            _FIXTURE.format("", "dst_model(request)", "request.getfixturevalue('dst_model')"),
            ("--dst-model=mybot:bad",),
        ),
        (COMPARE, _REPLIES),
        (_FIXTURE.format("", "dst_outcome()", "'reply'"), _REPLIES),
    ],
)
def test_a_fixture_that_contradicts_no_option_is_used(
    pytester: pytest.Pytester, conftest: str, words: tuple[str, ...]
) -> None:
    pytester.makeconftest(conftest)
    if "-odst_model=mybot:bad" in words:
        pytester.makeini("[pytest]\ndst_model = mybot:bad\n")
        words = ()
    if not words:
        pytester.makepyfile(test_own=_OWN)
    assert run(pytester, *words).ret == 0


def test_an_option_that_other_tests_use_is_tested_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_one=MODEL + _OWN, test_two=_OWN)
    assert run(pytester, "--dst-model=mybot:bad").ret == 0
    result = run(pytester, "--dst-model=mybot:bad", "-k", "test_one")
    assert result.ret == 4


def test_a_parameter_of_a_test_that_replaces_the_model_is_a_usage_error(
    pytester: pytest.Pytester,
) -> None:
    mark = "import mybot, pytest\n\n@pytest.mark.parametrize('dst_model', [mybot.good])"
    pytester.makepyfile(mybot=BOTS, test_one=mark + _OWN)
    assert run(pytester, "--dst-model=mybot:bad", "--dst-suite=no").ret == 4
