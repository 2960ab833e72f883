"""Figures of an audit against examples that were worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz.audit.record import (
    agreement_lines,
    agreements,
    cohen_kappa,
    precision,
    precision_lines,
    wilson,
)
from pytest_dstfuzz.audit.sample import KEEPING, AuditRow, Draw, Sample

KEEPS, CHANGES = KEEPING.good, KEEPING.bad
VERDICT = st.sampled_from([KEEPS, CHANGES])


def sample(*kinds: str, dialogues: str = "") -> Sample:
    names = dialogues or "abcdefghij"
    return Sample(
        Draw(),
        tuple(
            AuditRow(f"q{n}", (), "", "a", "b", (), (), kind, f"{names[n]}-t0", names[n], 0, "")
            for n, kind in enumerate(kinds)
        ),
    )


def said(letters: str) -> dict[str, str]:
    words = {"k": KEEPS, "c": CHANGES}
    return {f"q{n}": words[letter] for n, letter in enumerate(letters) if letter != "-"}


# Wilson's interval by hand, z = 1.96: of 3 of 4 the centre is (3 + 1.9207) / (4 + 3.8415) =
# 0.6275, the spread 1.96 * sqrt(4 * 0.75 * 0.25 + 0.9604) / 7.8415 = 0.3269.
@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        (3, 4, 0.3006, 0.9544),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (195, 200, 0.9428, 0.9893),
    ],
)
def test_wilson(hits: int, trials: int, low: float, high: float) -> None:
    assert wilson(hits, trials) == pytest.approx((low, high), abs=1e-4)


def test_kappa_of_a_table_worked_by_hand() -> None:
    # Both keep 20, both change 15, apart 5 and 10: they agree on 35 of 50 = 0.7. The first
    # keeps half, the second 0.6, so by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / 0.5.
    pairs = [(KEEPS, KEEPS)] * 20 + [(KEEPS, CHANGES)] * 5
    pairs += [(CHANGES, KEEPS)] * 10 + [(CHANGES, CHANGES)] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("first", "second", "kappa"),
    [("kkcc", "kkcc", 1.0), ("kkcc", "cckk", -1.0), ("kkcc", "kckc", 0.0), ("kkkk", "kkkc", 0.0)],
)
def test_kappa_at_its_ends(first: str, second: str, kappa: float) -> None:
    assert cohen_kappa(list(zip(first, second, strict=True))) == pytest.approx(kappa)


@pytest.mark.parametrize("pairs", [[], [(KEEPS, KEEPS)] * 3])
def test_where_chance_explains_all_there_is_no_kappa(pairs: list[tuple[str, str]]) -> None:
    assert cohen_kappa(pairs) is None


@given(st.lists(st.tuples(VERDICT, VERDICT), min_size=1))
def test_kappa_does_not_depend_on_who_is_first(pairs: list[tuple[str, str]]) -> None:
    kappa = cohen_kappa(pairs)
    assert kappa == cohen_kappa([(two, one) for one, two in pairs])
    assert kappa is None or -1 <= kappa <= 1
    if all(one == two for one, two in pairs):
        assert kappa in (None, 1.0)


def test_precision_and_decoys() -> None:
    audited = sample(*["violation"] * 4, "value", "value", "dropped")
    result = precision(audited, said("kkkcckc"))
    assert precision_lines("anna", result) == [
        (
            "anna: 3 of 4 violations keep the meaning = precision 75.0 % "
            "(95 % Wilson interval 30.1 to 95.4 %)"
        ),
        "  decoys caught: 2 of 3 (value 1 of 2, dropped 1 of 1)",
        "  judged to change the meaning: q3",
        "  missed decoys: q5",
    ]


def test_rows_without_a_verdict_do_not_count() -> None:
    result = precision(sample(*["violation"] * 4, "value"), said("k-c--"))
    assert (result.keeps, result.violations, result.decoys) == (1, 2, 0)
    nothing = precision(sample("violation"), {})
    assert (nothing.precision, nothing.interval) == (None, None)
    assert precision_lines("anna", nothing) == []


def test_violations_of_one_dialogue_are_not_independent() -> None:
    # One dialogue gave all the false alarms.
    audited = sample(*["violation"] * 12, dialogues="aabbccddeeff")
    result = precision(audited, said("cckkkkkkkkkk"))
    assert result.method == "dialogues"
    low, high = result.interval or (1.0, 0.0)
    assert low < wilson(10, 12)[0] < wilson(10, 12)[1] < high
    shown = f"(approximate 95 % interval over dialogues {100 * low:.1f} to {100 * high:.1f} %)"
    assert shown in precision_lines("a", result)[0]


def test_several_violations_of_few_dialogues_have_no_interval() -> None:
    result = precision(sample(*["violation"] * 10, dialogues="aabbccddee"), said("k" * 10))
    assert result.interval is None
    assert "(no interval: needs 6 dialogues, got 5)" in precision_lines("a", result)[0]


def test_agreement_counts_rows_that_both_judged() -> None:
    audited = sample(*["violation"] * 5)
    (found,) = agreements(audited, {"anna": said("kkcc-"), "ben": said("kcc-k")})
    assert (found.rows, found.agreed, found.disagreements) == (3, 2, ("q1",))
    # 2 of 3 agree; by chance (2 * 1 + 1 * 2) / 9 = 4 / 9; (6 - 4) / (9 - 4).
    assert found.kappa == pytest.approx(0.4)
    assert agreement_lines(found) == [
        "anna and ben agree on 2 of 3 rows; Cohen's kappa 0.40",
        "  they disagree on: q1",
    ]
    (same,) = agreements(audited, {"anna": said("kkkkk"), "ben": said("kkkkk")})
    assert agreement_lines(same) == [
        "anna and ben agree on 5 of 5 rows; Cohen's kappa undefined: all verdicts are equal"
    ]
