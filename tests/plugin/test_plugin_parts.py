"""The parts of the plugin, one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.campaign.results import (
    BatchDone,
    BudgetReached,
    CampaignStarted,
    PilotFinished,
    TurnOutcome,
    TurnResult,
    VariantResult,
)
from pytest_dstfuzz.config import OPTIONS, Settings, build_settings
from pytest_dstfuzz.config.options import KEYS
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.plugin import campaigns
from pytest_dstfuzz.plugin.campaigns import Progress
from pytest_dstfuzz.plugin.options import given_options, read_settings, repeat_options
from pytest_dstfuzz.plugin.results import ItemOutcome, ResultCollector
from pytest_dstfuzz.plugin.selection import marker_values


def turn(
    dialogue: str = "d", index: int = 0, outcome: TurnOutcome = "held", *, valid: bool = True
) -> TurnResult:
    variant = VariantResult(
        index=0, text="b", context=(), edits=(), edit_w=0.0, edit_c=0.1, valid=valid, reason="",
        outcome="held" if valid else "vetoed",
    )  # fmt: skip
    return TurnResult(
        id=f"s-test-{dialogue}-t{index}", dialogue_id=dialogue, turn_index=index, system="",
        user="a", clean_state=None, outcome=outcome, variants=(variant,),
    )  # fmt: skip


def mark(*args: Any, **kwargs: Any) -> pytest.Mark:
    return pytest.mark.dst(*args, **kwargs).mark


def test_the_command_line_wins_over_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ndst_turns = 5\ndst_variants = 2\n")
    settings = read_settings(pytester.parseconfig("--dst-turns=7"))
    assert (settings.data.turns, settings.variant.variants, settings.variant.seed) == (7, 2, 0)


def test_a_limit_implies_the_gate_unless_a_policy_was_given(pytester: pytest.Pytester) -> None:
    assert read_settings(pytester.parseconfig("--dst-max-failure-rate=0.1")).gate.fail_on == "gate"
    both = pytester.parseconfig("--dst-max-failure-rate=0.1", "--dst-fail-on=violation")
    session = read_settings(both)
    assert build_settings({"variants": 2}, session) == session.replace_options(variants=2)
    assert session.gate.fail_on == "violation"


def test_nothing_given_means_the_defaults(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    assert given_options(config) == ()
    assert read_settings(config) == Settings.of(search="noise+random")


def test_every_option_has_an_ini_key(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    for item in (item for item in OPTIONS if item.name not in KEYS):
        assert not item.has_flag or config.getoption(f"--dst-{item.flag}") is None
        assert config.getini(f"dst_{item.name}") is None


def test_locks_may_be_repeated_and_hold_commas(pytester: pytest.Pytester) -> None:
    settings = read_settings(pytester.parseconfig("--dst-lock=/a{1,2}/", "--dst-lock=please"))
    assert settings.variant.lock == ("/a{1,2}/", "please")
    pytester.makeini("[pytest]\ndst_lock =\n  /a{1,2}/\n  please\n")
    assert read_settings(pytester.parseconfig()).variant.lock == ("/a{1,2}/", "please")


def test_paths_of_an_ini_file_are_beside_it(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ndst_data = talks\ndst_report = out.json\n")
    (pytester.path / "talks").mkdir()
    inner = pytester.mkdir("inner")
    settings = read_settings(pytester.parseconfig(str(inner)))
    assert Path(settings.data.data) == pytester.path / "talks"
    assert settings.output.report == (str(pytester.path / "out.json"),)


def test_a_named_data_set_of_an_ini_file_stays_a_name(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ndst_data = multiwoz21\n")
    assert read_settings(pytester.parseconfig()).data.data == "multiwoz21"


def test_repeating_leaves_out_what_concerns_the_session(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig(
        "--dst-model=a b:c",
        "--dst-max-failure-rate=0.1",
        "--dst-report=x.json",
        "--dst-lock=a",
        "--dst-lock=b",
        "--dst-seed=3",
    )
    shown = repeat_options(config, 9)
    assert shown == "'--dst-model=a b:c' --dst-lock=a --dst-lock=b --dst-seed=9"


def test_markers_take_python_values_and_texts() -> None:
    values = marker_values(
        [mark(edits=["char-drop", "word_drop"], lock=("x, y", "z"), variants="2")]
    )
    assert values == {"edits": ("word_drop", "char_drop"), "lock": ("x, y", "z"), "variants": 2}


def test_the_closest_marker_wins() -> None:
    values = marker_values([mark(variants=2), mark(variants=9, seed=4)])
    assert values == {"variants": 2, "seed": 4}


def test_a_set_is_no_value() -> None:
    with pytest.raises(UserError, match=r"has the wrong type \(set\)"):
        marker_values([mark(edits={"char_drop"})])


def test_a_record_sorts_by_the_data_and_keeps_each_once() -> None:
    data = DialogueSet("s", "test", (Dialogue("z", ()), Dialogue("a", ())))
    record = ResultCollector()
    for result in (turn("a", 1), turn("z", 3), turn("a", 0), turn("a", 1)):
        record.add(ItemOutcome(key="key", result=result, lexicon="words"))
    assert [(found.dialogue_id, found.turn_index) for found in record.results(data)] == [
        ("z", 3),
        ("a", 0),
        ("a", 1),
    ]
    assert len(record) == 3
    assert record.lexicons == {"words"}


def test_a_record_keeps_the_first_problem() -> None:
    record = ResultCollector()
    record.add(ItemOutcome(problem="one", status=6))
    record.add(ItemOutcome(problem="two", status=4))
    assert (record.problem, record.problem_status) == ("one", 6)


def test_progress_is_told_after_a_long_silence(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "PATIENCE", 0.0)
    pytester.makeconftest(
        "import pytest\n"
        "from pytest_dstfuzz.campaign.results import BatchDone, PilotFinished\n"
        "from pytest_dstfuzz.plugin.campaigns import Progress\n"
        "@pytest.fixture\n"
        "def say(pytestconfig):\n"
        "    progress = Progress(pytestconfig)\n"
        "    progress.planned = 20\n"
        "    progress(BatchDone(12, 0, 12))\n"
        "    progress(PilotFinished(12, 60.0, 48.0, 72.0, 10))\n"
        "    progress(BatchDone(20, 0, 32))\n"
        "    progress(BatchDone(40, 0, 72))\n"
    )
    pytester.makepyfile("def test_long(say): print('captured')")
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(
        [
            "dstfuzz: 12 contexts predicted, 0 turns done",
            "dstfuzz: after 12 calls: about 60 calls (48 to 72) for all 10 turns",
            "dstfuzz: 32 of about 60 contexts predicted",
            "dstfuzz: 72 contexts predicted, 0 turns done",
        ]
    )
    result.stdout.no_fnmatch_line("captured")
    assert "predicted" not in pytester.runpytest_inprocess("-q").stdout.str()
    assert pytester.runpytest_inprocess("-s").ret == 0


def test_progress_without_a_terminal_is_silent(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    progress = Progress(config)
    progress(CampaignStarted(1, 1))
    progress(PilotFinished(6, 6.0, 6.0, 6.0, 1))
    progress(BatchDone(6, 0, 6))
    progress(BudgetReached("the budget ended", 6))
