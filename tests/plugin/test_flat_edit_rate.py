"""The thesis' flat limit: short utterances allow no replaced word under it."""

from __future__ import annotations

import json
from typing import Any

import pytest

#: Of four different words one replaced word is 2 of 5: within 2 / (n + 1), over 0.25.
TALK = {"dialogue_id": "short", "utterances": ["find an inexpensive hotel"]}
OPTIONS = (
    "--dst-model=mybot:steady",
    "--dst-data=talk.jsonl",
    "--dst-edits=word_replace",
    "--dst-variants=20",
    "--dst-report=out.json",
)


@pytest.fixture
def talk(bot: pytest.Pytester) -> pytest.Pytester:
    (bot.path / "talk.jsonl").write_text(json.dumps(TALK), encoding="utf-8")
    return bot


def run(pytester: pytest.Pytester, *options: str) -> Any:
    pytester.runpytest_inprocess(*OPTIONS, *options)
    return json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))


def test_it_turns_valid_variants_into_variants_over_the_rate(talk: pytest.Pytester) -> None:
    usual = run(talk, "--dst-validity=edit-rate")
    flat = run(talk, "--dst-validity=edit-rate", "-odst_flat_edit_rate=yes")
    assert (usual["settings"]["flat_edit_rate"], flat["settings"]["flat_edit_rate"]) == (0, 1)
    assert usual["summary"]["valid"] > 0
    assert usual["summary"]["over_rate"] == 0
    assert flat["summary"]["valid"] == 0
    assert flat["summary"]["over_rate"] > usual["summary"]["valid"]  # duplicates too
    assert {v["edit_w"] for turn in flat["turns"] for v in turn["variants"]} <= {0.0, 0.4}


def test_strict_makes_no_such_edit_at_all(talk: pytest.Pytester) -> None:
    strict = "--dst-validity=strict"
    assert run(talk, strict)["summary"]["valid"] > 0
    flat = run(talk, strict, "-odst_flat_edit_rate=yes")["summary"]
    assert flat["vacuous"] == flat["generated"] == 20


@pytest.mark.parametrize("value", ["True", "'yes'"])
def test_a_marker_sets_it_for_one_test(talk: pytest.Pytester, value: str) -> None:
    talk.makepyfile(
        "import pytest\n"
        f"@pytest.mark.dst(flat_edit_rate={value})\n"
        "def test_state(dst_turn):\n"
        "    assert all(not variant.valid for variant in dst_turn.result.variants)\n"
    )
    talk.runpytest_inprocess(*OPTIONS).assert_outcomes(passed=1)


def test_the_summary_says_so(talk: pytest.Pytester) -> None:
    own = ("-odst_flat_edit_rate=yes", "--dst-validity=strict", "-v")
    result = talk.runpytest_inprocess(*OPTIONS, *own)
    result.stdout.fnmatch_lines(["*0.25 in short utterances too), relation*"])


def test_another_word_is_refused(talk: pytest.Pytester) -> None:
    result = talk.runpytest_inprocess("-odst_flat_edit_rate=true")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*-o dst_flat_edit_rate: 'true' must be yes or no"])
