"""An audit of a relation that expects a change: is what it states right?"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dstfuzz.audit.decoys import ALL_KINDS, NOTHING, STATED_KINDS
from pytest_dstfuzz.audit.judging import judge_rows, read_judgements, write_sheet
from pytest_dstfuzz.audit.page import page_text
from pytest_dstfuzz.audit.record import audit_path, open_audit
from pytest_dstfuzz.audit.sample import Draw, draw_sample
from pytest_dstfuzz.campaign.results import SeenRound, TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import Admissible, BeliefState, Difference
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.relation import Delta, Move

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PLACES = ("ely", "norwich", "stevenage")


def swapped(number: int) -> TurnResult:
    """Return a turn whose day, or whose place, was swapped, and the state stayed."""
    old, new, place = DAYS[number % 7], DAYS[(number + 3) % 7], PLACES[number % 3]
    state = {"train-day": old, "train-destination": place}
    slot = "train-day"
    if number % 2:
        slot, old, new = "train-destination", place, PLACES[(number + 1) % 3]
    text = f"a train to {place} on {DAYS[number % 7]}"
    start = text.index(old)
    after = Admissible((new,))
    variant = VariantResult(
        index=0,
        text=text.replace(old, new),
        context=(),
        edits=(Edit("value-swap", "value", start, start + len(old), old, new),),
        edit_w=0.0,
        edit_c=0.0,
        valid=True,
        reason="",
        state=BeliefState(state),
        changed_slots=(Difference(slot, old, old, expected=after),),
        cause="turn",
        outcome="violation",
        failure="stuck",
        expected=(Delta(slot, old, after),),
    )
    return TurnResult(
        id=f"own-test-D{number:02}-t0",
        dialogue_id=f"D{number:02}",
        turn_index=0,
        system="",
        user=text,
        clean_state=BeliefState(state),
        outcome="violation",
        relation="value-swap",
        side="should-change",
        variants=(variant,),
    )


SWAPS = tuple(swapped(number) for number in range(30))


def test_decoys_state_what_is_wrong_and_texts_are_those_of_real_rewrites() -> None:
    sample = draw_sample(SWAPS, Draw(violations=10, decoys=8, seed=3))
    real = {turn.id: str(turn.variants[0].expected[0]) for turn in SWAPS}
    texts = {turn.id: turn.variants[0].text for turn in SWAPS}
    for row in sample.rows:
        assert row.perturbed == texts[row.turn]
        assert row.edits
        assert (row.stated == (real[row.turn],)) == row.real
    decoys = [row.kind for row in sample.rows if not row.real]
    assert sorted(decoys) == sorted(STATED_KINDS * 2)
    assert any(row.stated == (NOTHING,) for row in sample.rows)
    assert set(STATED_KINDS) < set(ALL_KINDS)
    again = draw_sample(tuple(reversed(SWAPS)), Draw(violations=10, decoys=8, seed=3))
    assert again.fingerprint == sample.fingerprint


def test_fine_decoys_are_of_slips() -> None:
    with pytest.raises(UserError, match="use --decoys"):
        draw_sample(SWAPS, Draw(violations=5, fine_decoys=1))


def test_a_sample_is_of_one_relation() -> None:
    other = tuple(replace(turn, relation="metamorphic", side="should-not-change") for turn in SWAPS)
    with pytest.raises(UserError, match=r"several relations \(metamorphic, value-swap\)"):
        draw_sample((*SWAPS, *other), Draw())
    found = draw_sample((*SWAPS, *other), Draw(relation="value-swap"))
    assert all(row.stated for row in found.rows)
    with pytest.raises(UserError, match="value-swap"):
        draw_sample(SWAPS, Draw(relation="value-swop"))


def test_each_relation_of_a_report_has_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    others = [replace(turn, relation=name) for turn in SWAPS for name in ("turn-back", "mine / x")]
    assert audit_path(path, SWAPS, "").name == "report.audit.json"
    assert audit_path(path, SWAPS, "value-swap").name == "report.audit.json"
    both = [*SWAPS, *others]
    assert audit_path(path, both, "turn-back").name == "report.turn-back.audit.json"
    assert audit_path(path, both, "mine / x") == tmp_path / "report.mine___x.audit.json"
    for name, message in (("", "several relations"), ("turn-bak", "turn-back")):
        with pytest.raises(UserError, match=message):
            audit_path(path, both, name)
    for name in ("value-swap", "turn-back", "value-swap"):
        audit = open_audit(audit_path(path, both, name), both, {"relation": name})
        audit.say("anna", {audit.sample.order("anna")[0].id: "right"})
        assert len(audit.verdicts("anna")) == 1


def test_judges_are_asked_whether_it_is_right(tmp_path: Path) -> None:
    audit = open_audit(tmp_path / "a.json", SWAPS, {"violations": 3, "decoys": 1, "seed": 1})
    out = io.StringIO()
    keys = iter("rwkr")
    judge_rows(audit, "ann", out, lambda: next(keys, ""), colour=False)
    asked = out.getvalue()
    assert asked.count("Is the stated change right? r right, w wrong, s skip") == 4
    assert "> stated: train-" in asked
    with pytest.raises(DataError, match="right or wrong, not 'keeps'"):
        audit.say("ann", {"q001": "keeps"})
    key = {row.id: "right" if row.real else "wrong" for row in audit.sample.rows}
    audit.say("bob", key)
    lines = audit.lines("bob")
    assert lines[0].startswith("bob: 3 of 3 violations state the right change = precision 100.0 %")
    assert "decoys caught: 1 of 1" in lines[1]
    known = open_audit(tmp_path / "a.json", SWAPS, {})
    assert known.verdicts("bob") == key


def test_sheets_and_pages_show_what_is_stated(tmp_path: Path) -> None:
    audit = open_audit(tmp_path / "a.json", SWAPS, {"violations": 3, "decoys": 2})
    write_sheet(tmp_path / "s.csv", audit.sample, "ann")
    with (tmp_path / "s.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[5:] == ["stated", "changes", "sample", "verdict"]
    assert {row["stated"] for row in rows} == {"\n".join(r.stated) for r in audit.sample.rows}
    filled = tmp_path / "filled.jsonl"
    filled.write_text(
        "".join(json.dumps({"id": row["id"], "verdict": "Right"}) + "\n" for row in rows)
    )
    assert set(read_judgements(filled, audit.sample).values()) == {"right"}
    page = page_text(audit, "ann")
    assert "<h1>Is the stated change right?</h1>" in page
    assert '"keys":{"r":"right","w":"wrong"}' in page.replace('": ', '":').replace(", ", ",")


def test_rounds_that_moved_are_shown_as_they_were_seen() -> None:
    one = SWAPS[0]
    rounds = (SeenRound("", one.user), SeenRound("", one.user))
    variant = replace(
        one.variants[0],
        text=one.user,
        edits=(),
        expected=(),
        exchanges=rounds,
        moves=(Move("repeat", 0, 0),),
        failure="changed",
    )
    turn = replace(one, relation="duplicate", side="should-not-change", variants=(variant,))
    (row,) = draw_sample([turn], Draw()).rows
    assert row.moves == ("round 1 is said twice",)
    assert [earlier.user for earlier in row.earlier] == [one.user]
    assert (row.clean, row.perturbed, row.stated) == (one.user, one.user, ())
    assert row.shown()["moves"] == ["round 1 is said twice"]
