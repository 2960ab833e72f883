"""The page of a run with several relations: each by itself, what was expected, moved rounds."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from html_pages import NASTY, build

from pytest_dstfuzz.dialogue.dialogues import Admissible

pytest.importorskip("jinja2")

from pytest_dstfuzz.campaign.results import SeenRound, TurnResult, VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.plugin.items import properties
from pytest_dstfuzz.relations.relation import Delta, Expectation, Move
from pytest_dstfuzz.report.explain import move_texts, shown_rounds
from pytest_dstfuzz.report.github import markdown_text, violation_commands
from pytest_dstfuzz.report.html.page import html_text, page_data
from pytest_dstfuzz.report.view import View, views_of

TEXT = "a train on friday"
CLEAN = BeliefState({"train-day": "friday"})
NAMED = "metamorphic,duplicate,value-swap"


def variant(state: Mapping[str, str], new: str | None, index: int = 0) -> VariantResult:
    """Return a rewrite with this answer: ``new`` is what the day was to become."""
    deltas = (Delta("train-day", "friday", Admissible((new,))),) if new else ()
    verdict = Expectation(deltas).judge(CLEAN, BeliefState(state))
    wanted = {delta.slot: delta.after for delta in deltas}
    edits = (Edit("value-swap", "value", 11, 17, "friday", new),) if new else ()
    return VariantResult(
        index=index,
        text=f"a train on {new or 'friday'}",
        context=(),
        edits=edits,
        edit_w=0.0,
        edit_c=0.0,
        valid=True,
        reason="",
        state=BeliefState(state),
        changed_slots=tuple(replace(one, expected=wanted.get(one.slot)) for one in verdict.changes),
        outcome="held" if verdict.kind == "held" else "violation",
        cause="turn",
        failure=verdict.failure,
        expected=deltas,
        about=f"train-day: friday -> {new}" if new else "",
    )


def turn(relation: str, *variants: VariantResult, **given: Any) -> TurnResult:
    made = TurnResult(
        id="own-test-D1-t0",
        dialogue_id="D1",
        turn_index=0,
        system="",
        user=TEXT,
        clean_state=CLEAN,
        outcome="violation" if any(one.outcome == "violation" for one in variants) else "held",
        relation=relation,
        side="should-change" if relation == "value-swap" else "should-not-change",
        variants=variants,
    )
    return replace(made, **given)


def twice(text: str = TEXT) -> VariantResult:
    """Return a round said twice, after which the state is empty."""
    rounds = (SeenRound("", text), SeenRound("", text), SeenRound("When?", "ten"))
    moves = (Move("repeat", 0, 0),)
    return replace(variant({}, None), exchanges=rounds, moves=moves, about="round 1 is said twice")


def report(*turns: TurnResult, named: str = NAMED) -> dict[str, Any]:
    return build(turns, settings=Settings.of(relation=named))


def some() -> dict[str, Any]:
    return report(
        turn("metamorphic", variant(CLEAN, None)),
        turn("duplicate", twice()),
        turn(
            "value-swap",
            variant(CLEAN, "sunday"),
            variant({"train-day": "monday"}, "monday", 1),
        ),
        turn(
            "value-swap",
            id="own-test-D2-t0",
            dialogue_id="D2",
            outcome="inapplicable",
            reason="no value of the state is mentioned",
        ),
    )


def test_each_relation_stands_by_itself_and_nothing_is_added_up() -> None:
    text = html_text(some())
    tables = re.findall(r"<caption><strong>(.*?)</strong>(.*?)</table>", text, re.DOTALL)
    assert [name for name, _ in tables] == ["Over-sensitive", "Over-stable"]
    shown = [re.findall(r'<tr><th scope="row">(.*?)</tr>', table, re.DOTALL) for _, table in tables]
    cells = [[re.sub(r"<[^>]+>", " ", row).split() for row in rows] for rows in shown]
    assert [[row[0] for row in rows] for rows in cells] == [
        ["metamorphic", "duplicate"],
        ["value-swap"],
    ]
    # Failure rate, over-stability, applicable of all, rewrites, held, stuck, partial, other.
    swap = cells[1][0]
    assert " ".join(swap[1:]) == "50.00 % 50.00 % 1 of 2 turns 2 1 1 0 0"
    assert "no value of the state is mentioned" in text
    assert not re.search(
        r"\b(?:mean|average|total|overall|any relation)\b",
        text.split("<main>")[1].split("<script")[0],
    )


PARTLY = "value-swap applied to 1 of 2 turns; main reason for the others (1)"


def test_the_headline_says_what_came_of_each() -> None:
    view = View.of(some())
    assert view.verdict.headline.startswith("Failed: 2 of 3 relations are broken; no limit is set")
    assert view.verdict.reasons == (f"{PARTLY}: no value of the state is mentioned.",)
    assert [fact.text for fact in view.facts if fact.name == "relation"] == [
        "duplicate: 1 violation in 1 of 1 turn",
        "value-swap: 1 violation in 1 of 1 turn",
        "metamorphic: 0 violations in 0 of 1 turn",
    ]
    # The figures above the fold are those of the first relation.
    assert view.summary.violations == 0


def test_violations_have_names_of_their_own_under_each_relation() -> None:
    found = some()
    members = [name for one in found["weaknesses"] for name in one["members"]]
    assert sorted(members) == ["own-test-D1-t0-duplicate-v0", "own-test-D1-t0-value-swap-v0"]
    data = page_data(View.of(found).turns, View.of(found).weaknesses)
    assert sorted(places for _, (places,) in data["weaknesses"]) == [0, 1]
    by_relation = {one["relation"]: one for one in data["violations"]}
    assert by_relation["value-swap"]["failure"] == "stuck"
    assert by_relation["value-swap"]["changes"] == [
        ["train-day", "friday", "friday", False, "sunday"]
    ]
    assert by_relation["duplicate"]["rounds"] == [
        ["", "", TEXT],
        ["said twice", "", TEXT],
        ["", "When?", "ten"],
    ]
    assert by_relation["duplicate"]["moves"] == ["round 1 is said twice"]


def test_one_relation_whose_turns_a_search_edits_has_no_section_of_relations() -> None:
    text = html_text(report(turn("metamorphic", variant({}, None)), named="metamorphic"))
    assert 'id="relations"' not in text
    assert 'name="relation"' not in text
    (only,) = page_data([turn("metamorphic", variant({}, None))])["violations"]
    assert not {"relation", "failure", "about", "rounds", "moves"} & only.keys()
    assert 'id="relations"' in html_text(report(turn("value-swap", variant(CLEAN, "sunday"))))


@pytest.mark.parametrize(
    ("moves", "seen", "marks"),
    [
        ((Move("repeat", 0, 0),), 3, ["", "said twice", ""]),
        ((Move("move", 2, 0),), 3, ["moved", "", ""]),
        ((Move("drop", 1),), 2, ["", ""]),
        ((Move("add", 2, 1),), 3, ["", "", "added"]),
        ((Move("again", 1),), 2, ["", ""]),
        # What does not fit is shown without marks.
        ((Move("repeat", 7, 7),), 3, ["", "", ""]),
    ],
)
def test_rounds_are_marked_where_they_moved(
    moves: tuple[Move, ...], seen: int, marks: list[str]
) -> None:
    rounds = tuple(SeenRound("", str(number)) for number in range(seen))
    one = replace(variant({}, None), moves=moves, exchanges=rounds)
    assert [each.mark for each in shown_rounds(one)] == marks
    assert len(list(move_texts(one))) == 1
    new = [f"a round is added: {each.user}" for each in shown_rounds(one) if each.mark == "added"]
    assert not new or list(move_texts(one)) == new


@pytest.mark.parametrize("nasty", NASTY)
def test_nothing_that_a_relation_says_is_markup(nasty: str) -> None:
    said = variant(CLEAN, nasty)
    moved = replace(twice(nasty), about=nasty)
    text = html_text(report(turn("value-swap", said), turn("duplicate", moved)))
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "<svg onload" not in text


def test_the_browser_shows_what_was_expected_and_filters_by_relation(open_page: Any) -> None:
    page = open_page(html_text(some()))
    assert page.locator("#list > li").count() == 2
    assert page.locator("#list").get_by_text("expected sunday").count() == 1
    assert page.locator("#list ins").get_by_text(TEXT).count() == 1
    page.locator("#relations a", has_text="value-swap").click()
    assert page.locator("#list > li").count() == 1
    assert page.locator("#list").get_by_text("stuck", exact=True).count() == 1
    page.select_option("select[name=relation]", "duplicate")
    page.wait_for_timeout(300)
    assert page.locator("#list").get_by_text("round 1 is said twice").count() == 1


def test_the_summary_of_a_job_has_a_table_for_each_side() -> None:
    text = html.unescape(markdown_text(views_of(some())))
    assert "### Figures of metamorphic" in text
    stable = text.split("### Over-stable: the state should change")[1].split("###")[0]
    assert "| value-swap | 1 of 2 turns | 2 | 1 | 1 | 0 | 0 | 50.00 % | n/a |" in stable
    assert "| duplicate | 1 of 1 turns | 1 | 0 | 1 | 100.00 % | n/a |" in text
    assert "**own-test-D1-t0, duplicate, variant 0**<br>round 1 is said twice<br>" in text
    swap = html.unescape(
        markdown_text(views_of(report(turn("value-swap", variant(CLEAN, "sunday")))))
    )
    assert "own-test-D1-t0, value-swap stuck, variant 0" in swap
    assert "expected sunday" in swap
    one = html.unescape(markdown_text(views_of(report(turn("metamorphic", variant({}, None))))))
    assert "### Over-" not in one


def test_annotations_and_properties_name_relation_and_failure() -> None:
    one = turn("value-swap", variant(CLEAN, "sunday"))
    (line,) = violation_commands([one], Settings().gate, "utf-8")
    assert "title=own-test-D1-t0%2C value-swap stuck%2C variant 0" in line
    assert "expected sunday" in line
    (moved,) = violation_commands([turn("duplicate", twice())], Settings().gate, "utf-8")
    assert "round 1 is said twice" in moved
    shown = dict(properties(one, Settings()))
    assert (shown["dst_relation"], shown["dst_failure"]) == ("value-swap", "stuck")
    plain = dict(properties(turn("metamorphic", variant({}, None)), Settings()))
    assert not {"dst_relation", "dst_failure"} & plain.keys()
