"""The file of a baseline: nothing is lost, the same bytes, and what differs is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gate_cases import CAMPAIGN, baseline, build, turn, variant
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.fingerprint import content_fingerprint
from pytest_dstfuzz.dialogue.types import BeliefState, Dialogue, DialogueSet, Ontology, Turn
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.gate.baseline import (
    Outcome,
    baseline_text,
    campaign_identity,
    changes,
    make_baseline,
    read_baseline,
)

LETTERS = st.text("hvcied", min_size=1, max_size=5)
DIALOGUES = st.lists(st.lists(LETTERS, min_size=1, max_size=3).map(" ".join), max_size=4)


def written(folder: Path, text: str) -> Path:
    path = folder / "baseline.json"
    path.write_text(text, encoding="utf-8")
    return path


@given(DIALOGUES)
def test_a_baseline_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, dialogues: list[str]
) -> None:
    one = baseline(*dialogues)
    again = read_baseline(written(tmp_path_factory.mktemp("b"), baseline_text(one)))
    assert {name: list(turns) for name, turns in one.groups.items()} == again.groups
    assert (one.model, one.version, one.campaign) == (again.model, again.version, again.campaign)
    assert baseline_text(again) == baseline_text(one)


def test_a_turn_stands_on_each_line_in_the_order_of_the_dialogue() -> None:
    turns = [turn("B", index, "hv") for index in (10, 2, 0)] + [turn("A", 1, "h")]
    text = baseline_text(make_baseline({"x": turns}, CAMPAIGN, "mybot"))
    assert text == baseline_text(make_baseline({"x": turns[::-1]}, CAMPAIGN, "mybot"))
    lines = [line for line in text.splitlines() if '"dialogue"' in line]
    found = [line.split('"id":"')[1].split('"')[0] for line in lines]
    assert found == [f"sample-test-{name}" for name in ("A-t1", "B-t0", "B-t2", "B-t10")]
    assert '[1,"' in lines[1]
    assert '","violation","turn",["hotel-area"],[]]' in lines[1]


def test_odd_names_survive(tmp_path: Path) -> None:
    odd = turn("caf\u00e9 \ud800 \u2028", 0, [variant(0, "v", slot="h\u00f4tel-\ud800")])
    one = make_baseline({"x": [odd]}, CAMPAIGN, "b\u00f6t")
    again = read_baseline(written(tmp_path, baseline_text(one)))
    assert again.groups["x"][0] == one.groups["x"][0]


def test_a_digest_is_of_the_text_in_its_context() -> None:
    one = variant(0, "h", text="hello there")
    digests = {
        Outcome.of(other).digest
        for other in (
            one,
            replace(one, text="hello ther"),
            replace(one, context=("hell",)),
            replace(one, context=(), text="hellohello there"),
        )
    }
    assert len(digests) == 4
    assert Outcome.of(replace(one, outcome="violation")).digest in digests


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no baseline .*: write one with --dst-update-baseline"),
        ("", "is no baseline, or a truncated one"),
        ("[" * 100_000, "is no baseline, or a truncated one"),
        ("[]", "has no 'baseline_version'"),
        ('{"schema_version": 1}', "has no 'baseline_version'"),
        ('{"baseline_version": 2}', "update pytest-dstfuzz"),
        ('{"baseline_version": 1}', "damaged baseline .KeyError 'groups'"),
        ('{"baseline_version": 1, "groups": 3}', "damaged baseline"),
    ],
)
def test_what_is_no_baseline(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "baseline.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_baseline(path)


def test_damaged_turns_are_refused(tmp_path: Path) -> None:
    text = baseline_text(baseline("hv h"))
    for old, new in (('"held"', '"helt"'), ('"group":0', '"group":1'), ('"slots"', '"slot"')):
        assert old in text
        with pytest.raises(DataError, match="damaged baseline"):
            read_baseline(written(tmp_path, text.replace(old, new)))
    with pytest.raises(DataError, match="cannot read the baseline"):
        read_baseline(tmp_path)


DATA = DialogueSet(
    "talks",
    "test",
    (Dialogue("a", (Turn(0, "", "hello", BeliefState({"hotel-area": "north"})),)),),
    Ontology({"hotel-area": ("north", "south")}),
)


def identity(data: DialogueSet = DATA, lexicon: str = "words", **given: Any) -> dict[str, Any]:
    return campaign_identity(Settings(**given), data, lexicon=lexicon, policy="")


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (identity(seed=1), "seed: 0 in the baseline, 1 now"),
        (identity(lexicon="others"), "the lexicon: words in the baseline, others now"),
        (
            identity(validity="edit-rate"),
            "the validity profile: strict in the baseline, edit-rate now",
        ),
        (identity(lock=("x", "y")), "lock: none in the baseline, x, y now"),
        (identity(until_broken=True), "until-broken: no in the baseline, yes now"),
        (identity(transformations=1), "transformations: 3 in the baseline, 1 now"),
        (identity(replace(DATA, split="val")), "the split: test in the baseline, val now"),
        (identity(replace(DATA, dialogues=())), "the content of the data: *"),
        (identity(search="agent"), "search: random in the baseline, agent now"),
    ],
)
def test_what_differs_is_named(other: dict[str, Any], named: str) -> None:
    (found,) = changes(identity(), other)
    assert found == named or (named.endswith("*") and found.startswith(named[:-1]))


def test_what_does_not_change_variants_may_differ() -> None:
    given = {"turns": 7, "domains": ("hotel",), "variants": 2, "model": "other", "device": "cuda"}
    assert changes(identity(), identity(**given)) == []
    policies = (identity(search="agent:/here/a.safetensors"), identity(search="agent:b"))
    assert changes(*policies) == []
    assert changes({"seed": 0}, {"seed": 0, "design": 1}) == ["design: none in the baseline, 1 now"]


@pytest.mark.parametrize(
    "other",
    [
        replace(DATA, cue_words=("guests",)),
        replace(DATA, normalisation="multiwoz"),
        replace(DATA, ontology=None),
        replace(DATA, ontology=Ontology({"hotel-area": ("north",)})),
        replace(DATA, dialogues=(replace(DATA.dialogues[0], id="b"),)),
        replace(DATA, dialogues=(Dialogue("a", (Turn(0, "", "hello"),)),)),
        replace(DATA, dialogues=(Dialogue("a", (Turn(0, "hello", ""),)),)),
    ],
)
def test_a_change_of_the_data_changes_its_fingerprint(other: DialogueSet) -> None:
    assert content_fingerprint(other) != content_fingerprint(DATA)


def test_the_place_of_the_data_does_not_change_its_fingerprint() -> None:
    moved = replace(DATA, name="copy", layout="trade", notes=("read from elsewhere",))
    assert content_fingerprint(moved) == content_fingerprint(DATA)


def test_groups_are_sorted() -> None:
    groups = {**build("h"), "another": [turn("Z", 0, "v")]}
    assert list(make_baseline(groups, CAMPAIGN, "m").groups) == ["another", "only"]
