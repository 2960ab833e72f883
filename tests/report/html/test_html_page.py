"""The page as text: what may be in it, that it is whole, and that it is always the same."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from html_pages import INFO, NASTY, build, judgement, nasty_report, nasty_turn, repeated
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("jinja2")

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import DataError, MissingExtraError
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html import check_installed, write_html
from pytest_dstfuzz.report.html.page import heat_level, html_text, page_data, script_json
from pytest_dstfuzz.report.json_report import build_report
from pytest_dstfuzz.report.redact import redact_turn
from pytest_dstfuzz.report.screen import GateRuling, screen_lines
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.totals.plainest import KNOWN, Novelty
from pytest_dstfuzz.totals.totals import Totals


class Parsed(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]


def test_nothing_is_loaded_and_nothing_else_may_run() -> None:
    text = html_text(nasty_report())
    page = Parsed(text)
    assert page.tags["script"] == 2
    assert page.tags["style"] == 1
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | names & {
        "src",
        "style",
        "action",
    }
    links = [value for name, value in page.attributes if name in ("href", "xlink:href")]
    assert {link[:1] for link in links} - {"#"} == {"d"}
    assert [link for link in links if link.startswith("d")] == ["data:,"]
    policy = next(value for name, value in page.attributes if value.startswith("default-src"))
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (inner,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@cache
def plain_page(texts: int) -> Parsed:
    return Parsed(html_text(nasty_report([f"text{number}" for number in range(texts)])))


@settings(max_examples=8, deadline=None, phases=[Phase.generate])  # A page takes its time.
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=2, unique=True))
def test_texts_never_become_elements(texts: list[str]) -> None:
    plain = plain_page(len(texts))
    odd = Parsed(html_text(nasty_report(texts)))
    for tag in ("script", "style", "section", "form", "h2", "svg"):
        assert odd.tags[tag] == plain.tags[tag], tag
    assert set(odd.tags) == set(plain.tags)
    assert {name for name, _ in odd.attributes} == {name for name, _ in plain.attributes}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(deadline=None)
@given(json_values | st.sampled_from(NASTY))
def test_data_means_the_same_and_cannot_end_its_script(value: object) -> None:
    text = script_json(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff]", text)


def test_the_same_report_gives_the_same_bytes(results: list[TurnResult]) -> None:
    report = build(results, judgement())
    text = html_text(report)
    assert text == html_text(report)
    assert text == html_text(json.loads(json.dumps(build(results[::-1], judgement()))))


def test_remembered_violations_are_shown(results: list[TurnResult]) -> None:
    entry = {
        "id": "3f2a9c0b1d",
        "status": "accepted",
        "reason": "<b>nobody</b> types this",
        "turn": "t7",
        "changed": ["hotel-name: none -> <i>acorn</i>"],
        "outcome": "broken",
    }
    report = {**build(results), "regressions": [entry]}
    text = html_text(report)
    for found in ("Remembered violations", "3f2a9c0b1d", "broken", "&lt;b&gt;nobody", "&lt;i&gt;"):
        assert found in text
    assert "Remembered violations" not in html_text({**report, "regressions": []})
    for wrong in (7, [7], [{**entry, "id": 1} | {"x": 1}, {}]):
        with pytest.raises(DataError, match="not a complete report"):
            html_text({**report, "regressions": wrong})


def test_a_limit_without_a_baseline_is_no_regression(results: list[TurnResult]) -> None:
    gate = judgement("nothing")
    finding = {**gate["findings"][0], "gate": "max-failure-rate", "reason": "20 % is over 10 %"}
    report = build(results, {**gate, "findings": [finding] * 2, "comparison": None})
    for text in (html_text(report), markdown_text(views_of(report))):
        assert "Failed: outside the limits" in text.replace("&#58;", ":")
    assert html_text(report).count(">failed: outside the limits (regression)<") == 2


def test_what_a_reader_finds(results: list[TurnResult]) -> None:
    text = html_text(build(results, judgement()))
    for found in (
        "Failed: outside the limits",
        "The failure rate rose by 6 pp against the baseline hotel-area.",
        "14.29 %",  # 1 of 7 valid variants
        "1 of 3 turns",
        "ValueError: no",  # the tracker's error
        "+6.00 pp",
        "Violations that are new: 2",
        "1 of 3 turns",
        "slot hotel-area",
    ):
        assert found in text
    quiet = html_text(build([turn for turn in results if not turn.violations]))
    assert "0 of 2 tested turns break" in quiet
    assert "<script" not in quiet
    assert "Against the baseline" not in quiet
    assert "Not judged: nothing was tested" in html_text(build([]))


def test_pages_begin_as_the_first_screen_does(sampled: list[TurnResult]) -> None:
    info = replace(INFO, repeat="pytest --dst-seed=0", ended="interrupted", seconds=3.0)
    options = Settings.of(model="bot")
    gate = judgement()
    gate["comparison"]["violations"] = {"new": ["m-test-10-t1-v1"], "known": ["m-test-0-t1-v1"]}
    totals = Totals.of(sampled)
    totals.novelty = Novelty.of(gate["comparison"])
    screen = screen_lines(
        sampled, options, info, totals, ruling=GateRuling("regression"), width=1000
    )
    # Pages mark edits in another way, have a command for each violation, and show more themselves.
    said = [
        re.sub(r"^[a-z ]{14}|^ +(?:\d\. )?", "", line.text)
        for line in screen
        if line.text and not line.text.startswith(("more", "repeat")) and "{+" not in line.text
    ]
    report = build(sampled, gate, options, info)
    for text in (html_text(report), markdown_text(views_of(report))):
        shown = html.unescape(re.sub("<[^>]*>", "", text)).lower()
        rest = shown[shown.index("failed: outside the limits") :]
        for line in map(str.lower, said):
            assert line in rest
            rest = rest[rest.index(line) :]
    assert len(said) > 5


def test_new_violations_come_first_and_have_their_commands(sampled: list[TurnResult]) -> None:
    gate = judgement()
    gate["comparison"]["violations"] = {"new": ["m-test-10-t1-v1"], "known": ["m-test-0-t1-v1"]}
    info = replace(INFO, repeat="pytest --dst-seed=0")
    report = build(sampled, gate, info=info)
    report["run"]["baseline"] = "base.json"
    whole = html_text(report)
    text = html.unescape(re.sub("<[^>]*>", "", whole))
    new, rest = text[text.index("1 new violation since the") :].split("1 weakness", 1)
    assert "m-test-10-t1, variant 1" in new
    assert "pytest --dst-seed=0 --dst-variant=1 -k '[m-test-10-t1]'" in new
    # What a run against a baseline accepts goes into the baseline.
    assert "-k '[m-test-10-t1]' --dst-baseline=base.json --dst-update-baseline" in new
    assert "--dst-remember; dstfuzz accept slip-in-key-word-value-wrong --reason '...'" in rest
    data = json.loads(re.findall('id="data">(.*?)</script>', whole, re.DOTALL)[0])
    assert [one.get("note") for one in data["violations"]] == ["new", KNOWN]
    assert data["commands"]["repeat"] == ["pytest --dst-seed=0 --dst-variant=", " -k '[", "]'"]


def test_data_of_the_list(broken: TurnResult) -> None:
    other = nasty_turn("quiet")
    data = page_data([broken, other])
    assert [turn["id"] for turn in data["turns"]] == [broken.id, "quiet-t0"]
    record = next(item for item in data["violations"] if item["turn"] == 0)
    assert record["variant"] == 1
    assert record["spans"] == ["i am ", ("leaving", "leaivng"), " on friday from ely"]
    last = data["earlier"][record["context"]]
    assert last == [None, 0, ["hello i need a ", ("train", "ttrain")]]
    assert record["changes"] == [["train-day", "friday", None, False]]
    assert record["edits"] == [["char_replace", "swap", "vi", "iv", 8]]
    assert data["turns"][0]["state"] == [["train-day", "friday"], ["train-departure", "ely"]]
    assert not {"word", "name"} & data["turns"][0].keys()
    assert page_data([replace(broken, id="a b")])["turns"][0]["name"] == "'a b'"


def test_estimated_failures_and_how_likely_each_violation_is(sampled: list[TurnResult]) -> None:
    text = html_text(build(sampled))
    said = "2.0 of 1,000 user turns with slips in 2 % of the words change the belief state"
    assert f"<dt>estimate</dt><dd>{said} (95 % interval 0." in text
    assert "of the valid variants, all with slips" in text
    left_out = "with a slip that this run does not make, or in a locked word: left out"
    assert f"<dt>{left_out}</dt><dd>80.0</dd>" in text
    record = page_data(sampled)["violations"][0]
    assert record["likely"] == "drawn by the noise model; stands for 20.0 of 1,000"
    few = html_text(build(sampled[:3]))
    assert "<dt>estimate</dt><dd>none: needs a sample of 30 variants, got 6" in few


def test_reports_of_before_have_no_estimated_failures(sampled: list[TurnResult]) -> None:
    report = json.loads(json.dumps(build(sampled)))
    del report["summary"]["estimated_failures"]
    for turn in report["turns"]:
        del turn["noise"]
        for variant in turn["variants"]:
            del variant["weight"], variant["log_probability"]
    text = html_text(report)
    assert "Failure rate" in text
    for absent in ("<dt>estimate</dt>", "that this run does not make", "drawn by the noise model"):
        assert absent not in text
    assert "| estimate |" not in markdown_text(views_of(report))


def test_a_card_for_each_weakness(sampled: list[TurnResult]) -> None:
    report = build(sampled)
    text = html_text(report)
    for found in (
        '<a href="#weaknesses">1 weakness</a>',
        "1. slip in key word, value wrong: 2 turns, 2 of 1,000",
        "<bdi>leaving</bdi>",
        "<bdi>leaivng</bdi>",
        report["weaknesses"][0]["to_try"],
        "<summary>2 violations in 2 turns</summary>",
        "<li>m-test-10-t1: 1</li>",
        "<option>slip-in-key-word-value-wrong</option>",
    ):
        assert found in text
    assert '"weaknesses":[["slip-in-key-word-value-wrong",[0,1]]]' in text
    (entry,) = report["weaknesses"]
    ranked = [{**entry, "id": f"w{number}", "estimated_failures": None} for number in (3, 1, 2)]
    by_turns = html_text({**report, "weaknesses": ranked * 4})
    assert re.findall('id="weakness-(w[0-9])"', by_turns) == ["w3", "w1", "w2"] * 4
    assert "<summary>7 more</summary>" in by_turns
    # Accepted ones come last.
    ranked[1]["accepted"] = "known"
    known = html_text({**report, "weaknesses": ranked})
    assert re.findall('id="weakness-(w[0-9])"', known) == ["w3", "w2", "w1"]
    assert "3. slip in key word, value wrong: 2 turns; accepted: known" in known


def test_weaknesses_of_other_reports(results: list[TurnResult]) -> None:
    report = build(results)
    before = {name: value for name, value in report.items() if name != "weaknesses"}
    held = build([turn for turn in results if not turn.violations])
    for text in (html_text(before), html_text(held)):
        assert 'id="weaknesses"' not in text
    (entry,) = report["weaknesses"]
    elsewhere = {**entry, "example": {**entry["example"], "id": "gone-v1"}}
    for wrong in (3, [3], [{}], [elsewhere]):
        with pytest.raises(DataError, match="'weaknesses' lack"):
            html_text({**report, "weaknesses": wrong})


def test_weaknesses_of_private_dialogues(results: list[TurnResult]) -> None:
    totals = Totals.of(results, redact=redact_turn)
    found, hidden = totals.weaknesses, list(map(redact_turn, results))
    report = build_report(hidden, Settings(), INFO, totals=totals)
    for text in (html_text(report), markdown_text(views_of(report))):
        assert found[0].description[1:].partition(",")[0] in text
        assert not re.search("leaving|leaivng|friday", text)
    assert "<dt>words</dt>" not in html_text(report)
    assert "<dt>slots</dt><dd>train-day</dd>" in html_text(report)


def test_turns_without_a_violation_tell_the_conversation_alone(
    broken: TurnResult, results: list[TurnResult]
) -> None:
    data = page_data(results)
    # MUL0001 has no violation, SNG0073 one at its second turn.
    assert [turn["index"] for turn in data["turns"]] == [0, 1]
    assert {turn["dialogue"] for turn in data["turns"]} == {broken.dialogue_id}
    assert ["state" in turn for turn in data["turns"]] == [False, True]


def test_the_plainest_violation_is_first(results: list[TurnResult]) -> None:
    data = page_data([*results, nasty_turn("long one")])
    # That of the turn with one edit of its own and none of its context.
    assert data["turns"][data["violations"][0]["turn"]]["dialogue"] == "long one"


@pytest.mark.parametrize(
    ("rate", "level"), [(0.0, 0), (0.001, 1), (0.05, 1), (0.051, 2), (0.2, 3), (0.4, 4), (1.0, 5)]
)
def test_shades(rate: float, level: int) -> None:
    assert heat_level(rate) == level


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda report: report.pop("data"), "data missing"),
        (lambda report: report["turns"].append({}), "no turn"),
        (lambda report: report["settings"].update(seed="x"), "setting 'seed' has the value 'x'"),
        (lambda report: report["gate"].pop("troubles"), "'gate' lacks 'troubles'"),
        (lambda report: report["gate"]["comparison"].pop("share"), "'gate' lacks 'share'"),
        (lambda report: report.update(gate=3), "'gate' lacks"),
    ],
)
def test_what_is_no_whole_report(
    results: list[TurnResult], change: Callable[[dict[str, object]], object], message: str
) -> None:
    report = build(results, judgement())
    change(report)
    with pytest.raises(DataError, match=message):
        html_text(report)


def test_settings_of_other_versions_are_passed_over(results: list[TurnResult]) -> None:
    report = build(results, settings=Settings.of(variants=7))
    report["settings"]["from_the_future"] = 1
    assert "7 variants a turn" in html_text(report)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2.*pytest-dstfuzz\[report\]"):
        check_installed()
    with pytest.raises(MissingExtraError):
        write_html(tmp_path / "page.html", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_many_violations_stay_small(results: list[TurnResult]) -> None:
    one = len(html_text(build(results)))
    many = len(html_text(repeated(build(results), 200)))
    assert (many - one) / 199 < 1500
    report = repeated(build(results), 1000)
    without = {**report, "weaknesses": []}
    assert len(html_text(report)) < 1.1 * len(html_text(without))
