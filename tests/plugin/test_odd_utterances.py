"""What users really type, through a whole run: no traceback, and figures that add up."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from pytest_dstfuzz.report.json_report import read_report

ODD = {
    "empty": "",
    "blank": "   ",
    "one word": "hotel",
    "one letter": "a",
    "emoji only": "🙂🙂 👍🏽 👩\u200d👩\u200d👧",
    "right to left": "أريد غرفة رخيصة في الشمال",
    "mixed directions": "a hotel called \u202bמלון צפון\u202c in the north",
    "10,000 characters": "I would like a large hotel in the north please " * 212,
    "164,000 characters": "I would like a large hotel in the north please " * 3500,
    "one word of 10,000": "hotel" * 2000,
    "zero width": "a\u200bcheap\u200d hotel\ufeff in the\u2060north",
    "combining marks": "a\u0301 che\u0300ap\u0323 hote\u0308l in the no\u0302rth",
    "digits only": "12345 67 89",
    "punctuation only": "?!... --- ,;",
    "a newline inside": "a cheap hotel\nin the north\r\n\tplease",
    "control characters": "a cheap\x00 hotel \x1b[31mred\x07",
}
#: Finds words by rules; what it knows nothing of, it copies: the empty string too.
BOT = """
import re

def track(context):
    state = {}
    for said in context.user_utterances:
        for area in re.findall("north|south", said):
            state["hotel-area"] = area
        if digits := re.search("[0-9]+", said):
            state["hotel-stay"] = digits[0]
    state["hotel-name"] = context.user[:40]
    return state
"""


@pytest.fixture
def odd(pytester: pytest.Pytester) -> pytest.Pytester:
    """Each odd utterance alone, and as the second turn of three."""
    pytester.makepyfile(oddbot=BOT)
    talks = [{"dialogue_id": f"{name} alone", "utterances": [text]} for name, text in ODD.items()]
    talks += [
        {"dialogue_id": f"{name} inside", "utterances": ["a hotel", "Where?", text, "Yes?", "ok"]}
        for name, text in ODD.items()
    ]
    lines = "".join(json.dumps(talk) + "\n" for talk in talks)
    (pytester.path / "odd.jsonl").write_text(lines, encoding="utf-8")
    return pytester


def check_figures(report: Any) -> None:
    found = report["summary"]
    assert found["generated"] == sum(
        found[name] for name in ("vacuous", "duplicate", "vetoed", "over_rate", "valid")
    )
    assert found["valid"] == sum(
        found[name] for name in ("held", "violations", "carried", "improved", "errors")
    )
    outcomes = Counter(v["outcome"] for turn in report["turns"] for v in turn["variants"])
    assert outcomes["vacuous"] == found["vacuous"]
    assert outcomes["violation"] == found["violations"]
    # Nothing is edited in another language.
    edited = [turn for turn in report["turns"] if turn["outcome"] != "inapplicable"]
    assert sum(outcomes.values()) == found["generated"] == 2 * len(edited)
    assert found["turns"] - len(edited) in (0, 4)


def check_edits(report: Any) -> None:
    """The edits of every variant lead from the utterance to its text."""
    for turn in report["turns"]:
        for variant in turn["variants"]:
            text = turn["user"]
            for edit in variant["edits"]:
                assert text[edit["start"] : edit["end"]] == edit["before"]
                text = text[: edit["start"]] + edit["after"] + text[edit["end"] :]
            assert text == variant["text"]


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("validity", ["strict", "edit-rate"])
def test_a_run_ends_with_a_summary(odd: pytest.Pytester, validity: str, k: int) -> None:
    result = odd.runpytest_inprocess(
        "--dst-model=oddbot:track",
        "--dst-data=odd.jsonl",
        "--dst-turns=all",
        "--dst-variants=2",
        f"--dst-transformations={k}",
        f"--dst-validity={validity}",
        "--dst-report=out.json",
    )
    assert result.ret == 1
    shown = result.stdout.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    # One utterance of 10,000 characters must not fill the screen.
    assert max(map(len, result.outlines)) < 1000
    result.stdout.fnmatch_lines(["verdict *tested turns break*"])
    report = json.loads((odd.path / "out.json").read_text(encoding="utf-8"))
    assert report["summary"]["turns"] == 4 * len(ODD)
    assert report["summary"]["errors"] == 0
    assert report["summary"]["violations"] > 0
    check_figures(report)
    check_edits(report)


def test_natural_leaves_alone_what_nobody_types(odd: pytest.Pytester) -> None:
    result = odd.runpytest_inprocess(
        *("--dst-model=oddbot:track", "--dst-data=odd.jsonl", "--dst-turns=all"),
        *("--dst-variants=2", "--dst-validity=natural", "--dst-report=out.json"),
        "--dst-search=random",
    )
    assert result.ret in {0, 1}  # A recoverable slip may break the bot.
    report = json.loads((odd.path / "out.json").read_text(encoding="utf-8"))
    assert report["summary"]["turns"] == 4 * len(ODD)
    assert report["summary"]["errors"] == 0
    assert 0 < report["summary"]["valid"] < report["summary"]["generated"]
    check_figures(report)
    check_edits(report)


def test_utterances_are_reported_as_they_were_typed(odd: pytest.Pytester) -> None:
    odd.runpytest_inprocess(
        "--dst-model=oddbot:track", "--dst-data=odd.jsonl", "--dst-report=out.json", "-q"
    )
    report = json.loads((odd.path / "out.json").read_text(encoding="utf-8"))
    said = {turn["dialogue_id"]: turn["user"] for turn in report["turns"]}
    assert {name: said[f"{name} alone"] for name in ODD} == ODD


def test_what_is_too_long_is_not_edited_and_said_so(odd: pytest.Pytester) -> None:
    result = odd.runpytest_inprocess(
        *("--dst-model=oddbot:track", "--dst-data=odd.jsonl", "--dst-turns=all", "-rs"),
        *("--dst-report=out.json", "--dst-fail-on=gate"),
    )
    reason = (
        "the utterance has 164,500 characters, but only utterances of at most 10,000 are edited"
    )
    result.stdout.fnmatch_lines([f"SKIPPED*{reason}"])
    report = read_report(odd.path / "out.json")
    long = [turn for turn in report["turns"] if turn["dialogue_id"].startswith("164")]
    assert [turn["outcome"] for turn in long if turn["reason"] == reason] == ["untested"] * 2
    # Later turns see it as it was said.
    contexts = {tuple(variant["context"][1:]) for variant in long[-1]["variants"]}
    assert contexts == {(ODD["164,000 characters"],)}
    # Shorter ones are edited, however long.
    rest = [turn for turn in report["turns"] if turn["dialogue_id"] == "10,000 characters alone"]
    assert any(variant["edits"] for variant in rest[0]["variants"])


def test_what_has_no_word_to_change_is_said_to_be_untested(odd: pytest.Pytester) -> None:
    result = odd.runpytest_inprocess(
        "--dst-model=oddbot:track", "--dst-data=odd.jsonl", "--dst-edits=word_drop", "-rs"
    )
    result.stdout.fnmatch_lines(["SKIPPED*this turn has no valid variant"])
