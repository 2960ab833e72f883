"""The file of a baseline: nothing is lost, the same bytes, and what differs is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gate_cases import CAMPAIGN, Contents, baseline, build, saved, turn, variant
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.code import SEARCH
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
    turn_keys,
)
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.gate.baseline import (
    CODE,
    ComparedVariant,
    TurnOutcomes,
    baseline_text,
    campaign_identity,
    changes,
    make_baseline,
    other_estimates,
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
    text = baseline_text(saved({"x": turns}))
    assert text == baseline_text(saved({"x": turns[::-1]}))
    lines = [line for line in text.splitlines() if '"dialogue"' in line]
    found = [line.partition(',"key"')[0] for line in lines]
    places = (("A", 1), ("B", 0), ("B", 2), ("B", 10))
    assert found == [f'{{"group":0,"dialogue":"{name}","turn":{place}' for name, place in places]
    assert '"state":{"hotel-area":"north","train-day":"B 0"}' in lines[1]
    assert '[1,"' in lines[1]
    assert '","violation","turn",["hotel-area"],[],"value-made-up"]]' in lines[1]


def test_estimates_are_kept_and_turns_without_one_are_as_they_were(tmp_path: Path) -> None:
    old = baseline("hv h")
    one, other = old.groups["only"]
    kept = replace(old, groups={"only": [replace(one, failures=0.1), other]})
    text = baseline_text(kept)
    assert '"failures":0.1}' in text
    assert text.replace(',"failures":0.1}', "}") == baseline_text(old)
    assert read_baseline(written(tmp_path, text)).groups == kept.groups
    assert read_baseline(written(tmp_path, baseline_text(old))).groups["only"][0].failures is None


def test_odd_names_survive(tmp_path: Path) -> None:
    odd = turn("caf\u00e9 \ud800 \u2028", 0, [variant(0, "v", slot="h\u00f4tel-\ud800")])
    one = replace(saved({"x": [odd]}), model="b\u00f6t")
    again = read_baseline(written(tmp_path, baseline_text(one)))
    assert again.groups["x"][0] == one.groups["x"][0]


def test_a_digest_is_of_the_text_in_its_context() -> None:
    one = variant(0, "h", text="hello there")
    digests = {
        ComparedVariant.of(turn("D1", 0, ""), other).digest
        for other in (
            one,
            replace(one, text="hello ther"),
            replace(one, context=("hell",)),
            replace(one, context=(), text="hellohello there"),
        )
    }
    assert len(digests) == 4
    assert (
        ComparedVariant.of(turn("D1", 0, ""), replace(one, outcome="violation")).digest in digests
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no baseline .*: write one with --dst-update-baseline"),
        ("", "is not a valid baseline: it is not valid JSON, perhaps cut off"),
        ("[" * 100_000, "is not a valid baseline: it is nested too deeply"),
        ("[]", "has no 'baseline_version'"),
        ('{"schema_version": 1}', "has no 'baseline_version'"),
        ('{"baseline_version": true}', "has no 'baseline_version'"),
        ('{"baseline_version": 4}', "update pytest-dstfuzz"),
        ('{"baseline_version": 1}', "write the baseline again"),
        ('{"baseline_version": 2}', "damaged baseline .lacks 'tool'"),
        ('{"baseline_version": 2, "groups": 3}', "damaged baseline"),
        (
            '{"baseline_version": 1e999}',
            "baseline: it contains 1e999, which is not a JSON value",
        ),
        (
            '{"baseline_version": NaN}',
            "baseline: it contains NaN, which is not a JSON value",
        ),
        (
            '{"baseline_version": 2, "baseline_version": 3}',
            "has two values for the key 'baseline_version'",
        ),
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
    for old, new in (
        ('"held"', '"helt"'),
        ('"held"', "1e999"),
        ('"group":0', '"group":1'),
        ('"group":0', '"group":-1'),
        ('"group":0', '"group":1e999'),
        ('"group":0', '"group":false'),
        ('"state"', '"slot"'),
        ('"state":{"hotel-area":"north"', '"state":{"hotel-area":3'),
        ('"turn":0', '"turn":1'),
        ('"turn":0', '"turn":1e999'),
        ('[1,"', '[0,"'),
        ('[1,"', '[1e999,"'),
        ('[1,"', '[1.0,"'),
        ('"violation","turn"', '"violation","trun"'),
        ('"violation","turn"', '"violation",7'),
        ('["hotel-area"]', '"hotel-area"'),
        ('"key":"D000 0"', '"key":7'),
        ('"key":"D000 0"', '"failures":-0.1,"key":"D000 0"'),
        ('"key":"D000 0"', '"failures":"0.1","key":"D000 0"'),
        ('"values": "plain"', '"values": "plan"'),
        ('"groups": ["only"]', '"groups": ["only","only"]'),
    ):
        assert old in text, old
        with pytest.raises(DataError, match=r"damaged baseline|is not a valid baseline"):
            read_baseline(written(tmp_path, text.replace(old, new, 1)))
    with pytest.raises(DataError, match="cannot read the baseline"):
        read_baseline(tmp_path)


DATA = DialogueSet(
    "talks",
    "test",
    (Dialogue("a", (Turn(0, "", "hello", BeliefState({"hotel-area": "north"})),)),),
    Ontology({"hotel-area": ("north", "south")}),
)


def identity(
    data: DialogueSet = DATA, lexicon: str = "words", model: str = "slips", **given: Any
) -> dict[str, Any]:
    settings = Settings.of(**{"validity": "strict", **given})
    return campaign_identity(settings, data, lexicon=lexicon, policy="", noise=model)


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
        (identity(stop_at_first=True), "stop-at-first: no in the baseline, yes now"),
        (identity(transformations=1), "transformations: 3 in the baseline, 1 now"),
        (
            identity(replace(DATA, normalisation="multiwoz")),
            "the normalisation of the values: plain in the baseline, multiwoz now",
        ),
        (identity(search="agent"), "search: random in the baseline, agent now"),
    ],
)
def test_what_differs_is_named(other: dict[str, Any], named: str) -> None:
    assert changes(identity(), other) == [named]


def test_the_code_of_other_searches_does_not_count() -> None:
    def of(search: str, code: str) -> dict[str, Any]:
        found = {f"{SEARCH}{search}": code} if code else {}
        return {**identity(search=search), **({CODE: found} if found else {})}

    mine, changed, yours = of("mine", "a"), of("mine", "b"), of("yours", "c")
    assert changes(mine, yours) == ["search: mine in the baseline, yours now"]
    assert changes(of("random", ""), mine) == ["search: random in the baseline, mine now"]
    assert "the code of the search mine" in " ".join(changes(mine, changed))
    for other in (changed, yours):
        assert other_estimates(mine, other) == []


def test_estimates_compare_whatever_was_drawn_and_not_of_other_failures() -> None:
    one = identity(validity="natural", search="noise")
    drawn = {"seed": 3, "search": "mine", "transformations": 1, "redraws": 0}
    assert other_estimates(one, identity(validity="natural", **drawn)) == []
    for other in (
        {"slip_rate": 0.05},
        {"model": "others"},
        {"validity": "strict"},
        {"attack": "cumulative"},
        {"lock": ("x",)},
        {"max_edit_rate": 0.5},
        {"edits": "-case"},
    ):
        assert other_estimates(one, identity(**{"validity": "natural", **other})), other


def test_what_does_not_change_variants_may_differ() -> None:
    given = {"turns": 7, "domains": ("hotel",), "variants": 2, "model": "other", "device": "cuda"}
    assert changes(identity(), identity(**given)) == []
    for grown in (
        replace(DATA, name="copy", split="val", layout="trade", notes=("from elsewhere",)),
        replace(DATA, dialogues=()),
        replace(DATA, ontology=None),
        replace(DATA, ontology=Ontology({"hotel-area": ("north",)})),
    ):
        assert changes(identity(), identity(grown)) == []
    policies = (identity(search="agent:/here/a.safetensors"), identity(search="agent:b"))
    assert changes(*policies) == []
    (gone,) = changes({**identity(), "only": []}, identity())
    assert gone == "only: an earlier pytest-dstfuzz with this setting wrote the baseline"
    assert changes({"seed": 0}, {"seed": 0, "design": 1}) == ["design: none in the baseline, 1 now"]


SAID = (Turn(0, "", "hello", BeliefState({"hotel-area": "north"})), Turn(1, "where?", "north"))


@pytest.mark.parametrize(
    "turns",
    [
        (Turn(0, "", "hello!"),),
        (Turn(0, "hello", ""),),
        (Turn(0, "", "hello"), Turn(1, "what?", "north")),
        (Turn(0, "", "hello"), Turn(1, "where?", "south")),
        (Turn(0, "", "well"), Turn(1, "where?", "north")),
    ],
)
def test_another_word_up_to_a_turn_is_another_key(turns: tuple[Turn, ...]) -> None:
    assert turn_keys(Dialogue("a", turns))[-1] != turn_keys(Dialogue("a", SAID))[len(turns) - 1]


def test_neither_name_nor_label_nor_what_comes_later_changes_a_key() -> None:
    other = Dialogue("b", (Turn(0, "", "hello"), *SAID[1:], Turn(2, "", "odd \ud800")))
    assert turn_keys(other)[:2] == turn_keys(Dialogue("a", SAID))


def test_digests_stand_for_slot_values_where_those_are_kept_back(tmp_path: Path) -> None:
    groups = build("h")
    one = make_baseline(groups, CAMPAIGN, "m", Contents(groups), hidden=True)
    text = baseline_text(one)
    assert "north" not in text
    assert "hotel-area" in text
    again = read_baseline(written(tmp_path, text))
    assert again.hidden
    assert again.groups["only"] == [TurnOutcomes.of(groups["only"][0], "D000 0", hidden=True)]


def test_a_turn_that_failed_has_no_answer(tmp_path: Path) -> None:
    failed = replace(turn("A", 0, "e"), clean_state=None)
    again = read_baseline(written(tmp_path, baseline_text(saved({"x": [failed]}))))
    assert again.groups["x"][0].state is None


def test_groups_are_sorted() -> None:
    groups = {**build("h"), "another": [turn("Z", 0, "v")]}
    assert list(saved(groups).groups) == ["another", "only"]


def test_noise_counts_only_where_it_is_in_use() -> None:
    assert identity() == identity(noise="speech", model="others", slip_rate=0.1)
    assert "noise" not in identity()
    for used in ({"validity": "natural"}, {"edits": "+texting"}):
        one = identity(**used)
        # A model is what it holds, wherever the file of it lies.
        assert changes(one, identity(noise="typing", **used)) == []
        assert changes(one, identity(model="typing (0a)", slip_rate=0.1, **used)) == [
            "noise: slips in the baseline, typing (0a) now",
            "slip-rate: none in the baseline, 0.1 now",
        ]
