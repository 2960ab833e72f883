"""Sessions under the profile ``natural``, and their reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_dstfuzz.report.json_report import SCHEMA_PATH
from pytest_dstfuzz.report.packing import problems

TALK = {
    "dialogue_id": "talk",
    "utterances": ["I am looking for a pottery class, please. It is for my parents."],
}
OPTIONS = (
    "--dst-model=mybot:steady",
    "--dst-data=talk.jsonl",
    "--dst-variants=20",
    "--dst-search=random",
    "--dst-report=out.json",
)


@pytest.fixture
def talk(bot: pytest.Pytester) -> pytest.Pytester:
    (bot.path / "talk.jsonl").write_text(json.dumps(TALK), encoding="utf-8")
    return bot


def run(pytester: pytest.Pytester, *options: str) -> Any:
    pytester.runpytest_inprocess(*OPTIONS, *options)
    return json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))


def operators(report: Any) -> set[str]:
    variants = [variant for turn in report["turns"] for variant in turn["variants"]]
    return {edit["operator"] for variant in variants for edit in variant["edits"]}


def chances(report: Any) -> list[Any]:
    return [variant["log_probability"] for turn in report["turns"] for variant in turn["variants"]]


def test_each_variant_has_a_probability(talk: pytest.Pytester) -> None:
    report = run(talk)
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert problems(report, schema) == []
    assert report["settings"]["noise"] == ["typing", "casual"]
    assert len(chances(report)) == 20
    assert all(chance < 0 for chance in chances(report))
    assert operators(report).isdisjoint({"look_alike", "emoji", "synonym", "mlm", "filler"})
    assert set(chances(run(talk, "--dst-validity=strict"))) == {None}


def test_models_and_slip_rate_are_chosen(talk: pytest.Pytester) -> None:
    usual = run(talk, "--dst-validity=natural", "--dst-noise=speech")
    often = run(talk, "--dst-validity=natural", "--dst-noise=speech", "--dst-slip-rate=10%")
    assert operators(usual) <= {"filler", "repeat", "stop_word", "homophone"}
    assert operators(usual) == operators(often)
    assert often["settings"]["slip_rate"] == 0.1
    pairs = zip(often["turns"][0]["variants"], usual["turns"][0]["variants"], strict=True)
    edited = [
        (one["log_probability"], two["log_probability"]) for one, two in pairs if one["edits"]
    ]
    assert all(more > less for more, less in edited)


def test_an_ini_file_and_a_marker_set_them_too(talk: pytest.Pytester) -> None:
    talk.makeini("[pytest]\ndst_validity = natural\ndst_noise = casual\ndst_slip_rate = 0.05\n")
    assert operators(run(talk)) <= {
        *("case", "full_stop", "apostrophe", "texting", "contraction", "repeat", "stop_word"),
        "blank",
    }
    talk.makepyfile(
        "import pytest\n"
        '@pytest.mark.dst(validity="natural", noise=["typing:2", "casual"], slip_rate="1%")\n'
        "def test_state(dst_turn):\n"
        "    edits = [edit for v in dst_turn.result.variants for edit in v.edits]\n"
        '    assert "any" in {edit.operator for edit in edits}\n'
        "    assert all(v.log_probability < 0 for v in dst_turn.result.variants)\n"
    )
    talk.runpytest_inprocess(*OPTIONS).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--dst-noise=typng", "unknown noise model 'typng'. Did you mean 'typing'?"),
        ("--dst-noise=typing:0", "must be a number of shares of the slips above 0"),
        ("--dst-noise=,", "contains no name"),
        ("--dst-slip-rate=2", "must be a rate between 0 and 1"),
    ],
)
def test_what_they_do_not_take(talk: pytest.Pytester, option: str, message: str) -> None:
    result = talk.runpytest_inprocess(*OPTIONS, "--dst-validity=natural", option)
    assert message in result.stdout.str() + result.stderr.str()


def test_the_summary_says_which_slips(talk: pytest.Pytester) -> None:
    result = talk.runpytest_inprocess(*OPTIONS, "--dst-validity=natural", "-v")
    text = " ".join(result.stdout.str().split())
    slips = "slips of typing and casual, slip rate 2 %)"
    assert f"validity profile natural (edit rates up to 0.25, {slips}" in text
    assert ", natural (typing and casual, slip rate 2 %), hybrid, metamorphic, seed 0" in text


def test_a_slip_rate_of_ones_own_is_in_both_headers(talk: pytest.Pytester) -> None:
    own = ("--dst-validity=natural", "--dst-noise=speech", "--dst-slip-rate=4.5%")
    result = talk.runpytest_inprocess(*OPTIONS, *own, "--dst-report=out.html", "-v")
    text = " ".join(result.stdout.str().split())
    assert ", natural (speech, slip rate 4.5 %), hybrid" in text
    assert "slips of speech, slip rate 4.5 %)" in text
    page = (talk.path / "out.html").read_text(encoding="utf-8")
    assert "slips of speech, slip rate 4.5 %)" in page
    # What is spoken is not typed.
    assert "of 1,000 user turns are typed" not in text
    assert "is typed like this" not in page


def test_extra_operators_are_named_in_strict(talk: pytest.Pytester) -> None:
    strict = "--dst-validity=strict"
    report = run(talk, strict, "--dst-edits=+texting,+full_stop")
    assert operators(report) & {"texting", "full_stop"}
    assert set(chances(report)) == {None}
    alone = run(talk, strict, "--dst-edits=contraction")
    assert operators(alone) == {"contraction"}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--dst-edits=char_drop,synonym"], "word_replace/synonym"),
        (["--dst-edits=filler"], "word_insert/filler"),
        (["--dst-edits=char_drop", "--dst-noise=speech"], "char_drop"),
    ],
)
def test_what_no_model_makes_cannot_be_named(
    talk: pytest.Pytester, options: list[str], name: str
) -> None:
    result = talk.runpytest_inprocess(*OPTIONS, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: the profile natural never makes '{name}', *=strict"])


def test_all_are_those_that_a_model_makes(talk: pytest.Pytester) -> None:
    report = run(talk, "--dst-edits=all", "--dst-noise=speech")
    assert {"word_insert", "word_replace"} & {
        edit["transformation"]
        for turn in report["turns"]
        for variant in turn["variants"]
        for edit in variant["edits"]
    }
