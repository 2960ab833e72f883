"""The terminal summary: figures that add up, in any width and encoding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_dstfuzz.campaign.figures import tally_results
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.relations.relation import OTHER_LANGUAGE
from pytest_dstfuzz.report.explain import keyword
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.report.page import StyledLine, TerminalPage
from pytest_dstfuzz.report.screen import screen_lines
from pytest_dstfuzz.report.terminal import interval_text, report_lines
from pytest_dstfuzz.totals.plainest import PlainestTally
from pytest_dstfuzz.totals.tallies import ReasonsTally
from pytest_dstfuzz.totals.totals import Totals

INFO = RunInfo("multiwoz21", "test", "multiwoz", "original", 999, 7372)


def shown(
    results: list[TurnResult],
    info: RunInfo = INFO,
    settings: Settings | None = None,
    **options: Any,
) -> str:
    lines = report_lines(results, settings or Settings.of(model="trade"), info, **options)
    return "\n".join(line.text for line in lines)


def test_the_summary(results: list[TurnResult]) -> None:
    text = shown(results, replace(INFO, notes=("Both layouts were there.",)))
    for part in (
        "trade on multiwoz21, split test (original layout, values normalised as 'multiwoz'",
        "note          Both layouts were there.",
        "turns         3 of 3, in 2 dialogues: 1 held, 1 violation, 1 error",
        "9 = 0 vacuous + 0 duplicate + 2 vetoed + 0 over the rate + 7 valid",
        "7 = 5 held + 1 violations + 0 carried + 0 improved + 1 errors",
        "failure rate  14.29 % of the valid variants (no interval: needs 6 dialogues, got 2)",
        "turns broken  1 of 3 with a valid variant: 33.33 % (no interval: needs 6",
        "              111.1 for every 1,000 of 9 calls",
        "causes        1 violation caused by the turn's own edits",
        "vetoed by     value 2",
        "i am [-leaving-]{+leaivng+} on friday from ely",
        "train-day: friday -> none",
        "error         1 x ValueError: no",
    ):
        assert part in text
    assert "(a variant counts once for each of its transformations," in text
    assert "by operator" not in text
    assert "not tested" not in text
    # What the context does not need to break is not shown.
    assert "ttrain" not in text


def test_verbose_has_operators(results: list[TurnResult]) -> None:
    text = shown(results, verbosity=1)
    assert "by operator" in text
    assert "char_replace/swap " in text


def test_quiet_is_one_line(results: list[TurnResult], broken: TurnResult) -> None:
    lines = report_lines(results, Settings(), INFO, verbosity=-1)
    assert lines == [
        StyledLine(
            "dstfuzz: 1 weakness, 1 violations in 1 of 3 turns; failure rate 14.29 %, "
            "valid rate 77.78 %, accuracy 100.00 %; 1 turn with errors",
            "bad",
        )
    ]
    skipped = [replace(broken, variants=(), outcome="skipped")]
    assert shown(skipped, verbosity=-1) == (
        "dstfuzz: 0 violations in 0 of 0 turns; failure rate n/a, valid rate n/a; 1 turn not tested"
    )


def test_many_improved_variants_are_counted(results: list[TurnResult], broken: TurnResult) -> None:
    improved = replace(broken.variants[0], outcome="improved", index=1)
    turns = [*results[:2], replace(broken, variants=(improved,), outcome="held")]
    text = "1 of 6 variants got a right answer instead of a wrong one"
    assert text in shown(turns, verbosity=-1)
    totals = tally_results(Totals(), turns)
    lines = screen_lines(tuple(turns), Settings.of(model="trade"), INFO, totals)
    screen = " ".join(" ".join(line.text for line in lines).split())
    assert f"improved {text}, by the labels; they are no violations" in screen
    assert "instead of a wrong one" not in shown(results, verbosity=-1)


def test_context_edits_are_shown_where_they_matter(broken: TurnResult) -> None:
    one = replace(broken.violations[0], cause="context")
    text = shown([replace(broken, variants=(one,), system="")])
    assert "turn 0: hello i need a [-train-]{+ttrain+}" in text
    assert "system:" not in text


def test_turns_in_other_languages_are_named_once(broken: TurnResult) -> None:
    left = replace(broken, variants=(), outcome="inapplicable", reason=OTHER_LANGUAGE)
    text = shown([broken, replace(left, dialogue_id="b"), replace(left, dialogue_id="c")])
    assert text.count("not edited    2 turns that are not, or not only, in English") == 1
    assert "not edited" not in shown([broken])


def test_what_the_budget_left_out(broken: TurnResult) -> None:
    skipped = replace(broken, variants=(), outcome="skipped", reason="3 calls", calls=0)
    text = shown([broken, replace(skipped, dialogue_id="b"), replace(skipped, dialogue_id="c")])
    assert "turns         1 of 3, in 1 dialogue: 1 violation" in text
    assert "not tested    2 turns of 2 dialogues: 3 calls" in text
    text = shown([replace(skipped, reason="")], replace(INFO, ended="time is up"))
    assert "1 turn of 1 dialogue: time is up" in text
    assert "turns         0 of 1, in 0 dialogues\n" in text
    assert "not tested    1 turn of 1 dialogue\n" in shown([replace(skipped, reason="")]) + "\n"


@pytest.mark.parametrize(
    ("dialogues", "expected"),
    [
        (5, "no interval: needs 6 dialogues, got 5"),
        (6, "approximate 95 % interval 0.00 % to 45.93 %, 6 dialogues as unit"),
        (20, "95 % interval 0.00 % to 16.84 %, dialogues as unit"),
    ],
)
def test_few_dialogues(results: list[TurnResult], dialogues: int, expected: str) -> None:
    held = next(result for result in results if result.outcome == "held")
    many = [replace(held, dialogue_id=f"{number}") for number in range(dialogues)]
    assert interval_text(summarise(many).failure_rate_interval, dialogues) == expected
    assert expected in " ".join(shown(many, width=300).split())
    (line,) = report_lines(many, Settings(), INFO, verbosity=-1)
    assert ("(about 0.00 % to 45.93 %)" in line.text) == (dialogues == 6)


def test_nothing_at_all() -> None:
    text = shown([], settings=Settings.of(edits=("char_drop",)))
    assert "failure rate  n/a of the valid variants (no interval: needs 6" in text
    assert "turns broken  0 of 0 with a valid variant: n/a (no interval: needs 6" in text
    assert "the suite's own tracker on" in text
    assert "1 transformations each of char_drop" in text
    left = Settings.of(edits=("-emoji", "-word_drop", "-word_replace"), transformations=6)
    text = " ".join(shown([], settings=left).split())
    assert "4 transformations each without word_insert/emoji, word_replace, word_drop" in text


def test_many_reasons_and_slots_are_cut(broken: TurnResult) -> None:
    error = replace(broken.variants[0], outcome="error", state=None)
    vetoed = broken.variants[2]
    turns = [
        replace(
            broken,
            dialogue_id=f"d{n:02d}",
            variants=(
                replace(error, reason=f"Boom {n}"),
                replace(vetoed, reason=f"lock{n}: x"),
                replace(
                    broken.violations[0],
                    changed_slots=(Difference(f"train-{'x' * 90}{n:02d}", "a", "b"),),
                ),
            ),
        )
        for n in range(12)
    ]
    text = shown(turns)
    assert "by slot (top 10 of 12)" in text
    assert "error         ... and 7 other reasons" in text
    assert "lock0 1, lock1 1, lock10 1, lock11 1, lock2 1, others 7" in text
    assert max(map(len, text.splitlines())) <= 100
    verbose = shown(turns, verbosity=1)
    assert "other reasons" not in verbose
    assert "others" not in verbose
    failed = replace(broken, outcome="error", clean_state=None, reason="down", variants=())
    assert tally_results(ReasonsTally(), [failed, *turns]).errors["down"] == 1


@pytest.mark.parametrize("width", [1, 40, 63, 80, 100, 200])
def test_every_width(results: list[TurnResult], width: int) -> None:
    lines = shown(results, width=width, verbosity=1).splitlines()
    assert max(map(len, lines)) <= max(width, 40)


def test_a_terminal_without_unicode(results: list[TurnResult]) -> None:
    one = results[2]
    odd = replace(one.violations[0], changed_slots=(Difference("caf\u00e9-name", "\u00e9", None),))
    text = shown(
        [replace(one, system="\u00bfd\u00eda? \U0001f642", variants=(odd,))], encoding="ascii"
    )
    assert text.isascii()
    assert "<U+00BF>d<U+00ED>a? <U+1F642>" in text
    assert "caf<U+00E9>-name" in text
    latin = shown([replace(one, system="\u00bfd\u00eda? \U0001f642")], encoding="latin-1")
    assert "\u00bfd\u00eda? <U+1F642>" in latin


def test_plainest_are_of_distinct_dialogues(broken: TurnResult) -> None:
    one = broken.violations[0]

    def turn(dialogue: str, *variants: VariantResult) -> TurnResult:
        return replace(broken, dialogue_id=dialogue, variants=variants)

    two_edits = replace(one, edits=one.edits * 2)
    turns = [
        turn("a", two_edits, replace(one, index=5)),
        turn("b", replace(one, index=6, edit_c=0.2)),
        turn("c", two_edits),
        turn("d", replace(one, cause="context", edits=())),
    ]
    order = [
        (found.dialogue_id, variant.index)
        for found, variant in tally_results(PlainestTally(9), turns).pairs
    ]
    assert order == [("a", 5), ("b", 6), ("c", 1), ("d", 1)]
    assert len(tally_results(PlainestTally(3), turns).pairs) == 3


def test_a_gate_shows_five_and_how_to_repeat_them(broken: TurnResult) -> None:
    turns = [
        replace(broken, dialogue_id=str(n), id=f"s-test-{n}-t1" if n else "s-test-call 0-t1")
        for n in range(7)
    ]
    gate = Settings.of(fail_on="gate")
    command = "pytest --dst-seed=0"
    line = f"  to repeat one variant, number I of turn ID: {command} --dst-variant=I -k '[ID]'"
    text = shown(turns, settings=gate, command=command)
    assert text.count(", variant 1") == 5
    assert f"  s-test-call 0-t1 (ID {keyword('s-test-call 0-t1')}), variant 1\n" in text
    assert "  s-test-4-t1, variant 1\n" in text
    assert line in text.splitlines()
    one = shown(turns, settings=gate.replace_options(variant=1), command=command)
    for other in (one, shown(turns, command=command), shown(turns, settings=gate)):
        assert "to repeat" not in other
    assert shown(turns, command=command).count(", variant 1") == 3


def test_a_run_that_ended_early_without_skipped_turns(broken: TurnResult) -> None:
    text = shown([broken], replace(INFO, ended="stopping after 1 failures"))
    assert "ended early   stopping after 1 failures" in text
    assert "not tested" not in text


def test_tallies(results: list[TurnResult]) -> None:
    found = tally_results(ReasonsTally(), results)
    assert found.vetoes == {"value": 2}
    assert found.causes == {"turn": 1}
    assert found.errors == {"ValueError: no": 1}
    open_cause = replace(results[2].violations[0], cause=None)
    unnamed = replace(results[2].variants[2], reason="")
    odd = [replace(results[2], variants=(open_cause, unnamed))]
    found = tally_results(ReasonsTally(), odd)
    assert (found.causes, found.vetoes) == ({"unknown": 1}, {"unnamed": 1})


def test_gaps_are_single() -> None:
    page = TerminalPage()
    page.gap()
    page.line("a")
    page.gap()
    page.gap()
    assert page.lines == [StyledLine("a"), StyledLine("")]
