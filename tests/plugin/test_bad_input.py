"""What users get wrong: one clear message each, exit status 4, with and without workers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_dstfuzz import transformations

MODEL = "--dst-model=mybot:steady"

#: Options -> a part of the message.
CASES: list[tuple[tuple[str, ...], str]] = [
    # tracker names
    (("--dst-model=trad",), "unknown tracker 'trad'. Did you mean 'trade'?"),
    (("--dst-model=",), "--dst-model: '' is empty"),
    (("--dst-model=mybot",), "For your own tracker, write package.module:attribute"),
    (("--dst-model=mybto:steady",), "there is no module 'mybto'"),
    (
        ("--dst-model=mybot.part:steady",),
        "there is no module 'mybot.part' for the tracker 'mybot.part:steady'",
    ),
    (("--dst-model=mybot.py:steady",), "(write 'mybot:steady', without .py)"),
    (("--dst-model=bots/my.py:steady",), "(write 'bots.my:steady', without .py)"),
    (("--dst-model=mybot:staedy",), "'mybot' has no attribute 'staedy'. Did you mean 'steady'?"),
    (("--dst-model=mybot:steady.deep",), "'mybot' has no attribute 'steady.deep'"),
    (("--dst-model=mybot:nothing.deep",), "'mybot' has no attribute 'nothing.deep'"),
    (("--dst-model=:steady",), "write package.module:attribute"),
    (("--dst-model=mybot:",), "write package.module:attribute"),
    (("--dst-model=broken:steady",), "'broken' cannot be imported: NameError"),
    (("--dst-model=needy:steady",), "'needy' cannot be imported: ModuleNotFoundError"),
    # what is no tracker, or none that could be tested
    (("--dst-model=mybot:nothing",), "int 3 is not a tracker"),
    (("--dst-model=mybot:NeedsArguments",), "'NeedsArguments' cannot be created without"),
    (("--dst-model=mybot:Short",), "the tracker returned 0 predictions for 1 context"),
    (("--dst-model=mybot:Wrong",), "the tracker returned a str instead of a Prediction"),
    (("--dst-model=mybot:NotANumber",), "the tracker returned nan as the impurity of 'hotel-area'"),
    (
        ("--dst-model=mybot:UnknownSlot",),
        "'hotel-aera', which the ontology of the data does not have; did",
    ),
    (
        ("--dst-model=mybot:Raising",),
        "the tracker raised an exception on a clean context: ZeroDivisionError",
    ),
    (("--dst-model=mybot:Training",), "the tracker is in training mode"),
    (("--dst-model=mybot:Random",), "the tracker is not deterministic"),
    (("--dst-model=mybot:SeesTheBatch",), "the tracker's answer depends on the batch"),
    (
        (MODEL, "--dst-tracker=checkpoint=x"),
        "checkpoint and device apply only to registered trackers",
    ),
    (
        (MODEL, "--dst-tracker=device=cuda"),
        "checkpoint and device apply only to registered trackers",
    ),
    # data
    ((MODEL, "--dst-data=nowhere"), "no such file or folder: 'nowhere'"),
    ((MODEL, "--dst-data=empty"), "empty has no file of dialogues; expected one of .json"),
    ((MODEL, "--dst-data=cut.json"), "cut.json is not valid JSON, perhaps cut off: Expecting"),
    ((MODEL, "--dst-data=latin.jsonl"), "latin.jsonl: line 1 is not UTF-8 (byte 0xe9)"),
    ((MODEL, "--dst-data=other.json"), "other.json has no dialogues in a known layout"),
    ((MODEL, "--dst-data=nothing.jsonl"), "nothing.jsonl is empty"),
    ((MODEL, "--dst-data=half.jsonl"), "half.jsonl: dialogue 1, turn 0 contains a lone surrogate"),
    ((MODEL, "--dst-data=typed.jsonl"), "typed.jsonl: line 1: turns[0].user: 3 instead of a text"),
    ((MODEL, "--dst-data=broken.zip"), "broken.zip is not a zip file or is cut off"),
    (
        (MODEL, "--dst-data=talk.jsonl", "--dst-relation=gold"),
        "it needs labels, and no turn has one",
    ),
    (
        (MODEL, "--dst-data=talk.jsonl", "--dst-domains=hotel"),
        "have no labels, so they cannot be chosen by",
    ),
    ((MODEL, "--dst-split=tset"), "--dst-split: unknown split 'tset'. Did you mean 'test'?"),
    ((MODEL, "--dst-domains=hotle"), "unknown domain 'hotle'. Did you mean 'hotel'?"),
    # numbers and names
    (("--dst-turns=0",), "--dst-turns: '0' must be a whole number of at least 1, or 'all'"),
    (("--dst-turns=many",), "--dst-turns: 'many' must be a whole number of at least 1, or 'all'"),
    (("--dst-variants=-1",), "--dst-variants: '-1' must be a whole number from 1 to 1000"),
    (("--dst-transformations=7",), "must be a whole number from 1 to 6"),
    (("--dst-edits=char_dorp",), "operator 'char_dorp'. Did you mean 'char_drop'?"),
    (
        ("--dst-edits=emojy",),
        "--dst-edits: unknown transformation or operator 'emojy'. Did you mean",
    ),
    (
        ("--dst-edits=char_drop/blnak",),
        "operator 'char_drop/blnak'. Did you mean 'char_drop/blank'",
    ),
    (("--dst-edits=-look-alke",), "--dst-edits: unknown transformation or operator 'look_alke'"),
    (
        ("--dst-edits=emoji,repeat,-word_insert,-repeat",),
        "no edit is left that could change a turn: edits=word_insert/repeat,word_insert/emoji,",
    ),
    ((MODEL, "--dst-search=ransom"), "unknown search 'ransom'. Did you mean 'random'?"),
    (("--dst-attack=hybird",), "unknown attack design 'hybird'. Did you mean 'hybrid'?"),
    (("--dst-validity=strcit",), "unknown validity profile 'strcit'. Did you mean 'strict'?"),
    (("--dst-relation=golden",), "unknown relation 'golden'. Did you mean 'gold'?"),
    (("--dst-fail-on=gates",), "unknown failure policy 'gates'. Did you mean 'gate'?"),
    (("--dst-max-edit-rate=1.5",), "'1.5' must be a rate between 0 and 1"),
    (
        ("--dst-slip-rate=0",),
        "'0' must be above 0, such as 2%: if the slip rate is 0, there is nothing to test",
    ),
    (("--dst-max-failure-rate=nan",), "'nan' must be a rate between 0 and 1"),
    (("--dst-max-failure-rate=120%",), "'120%' must be a rate between 0 and 1"),
    (("--dst-seed=1.5",), "--dst-seed: '1.5' must be a whole number from 0"),
    (("--dst-max-seconds=0",), "'0' must be a number of seconds above 0"),
    (("--dst-max-calls=none",), "--dst-max-calls: 'none' must be a whole number"),
    ((MODEL, "--dst-lock=/[/"), "/[/"),
    (("--dst-edits=",), "--dst-edits: '' contains no name: leave the option out to use all"),
    (("--dst-edits=,",), "--dst-edits: ',' contains no name: leave the option out to use all"),
    (
        ("--dst-domains= ,",),
        "--dst-domains: ' ,' contains no name: leave the option out to use all",
    ),
    (
        ("--dst-variants=3", "--dst-variant=3"),
        "there is no variant 3: the variants are numbered from 0 to 2",
    ),
    # report path
    ((MODEL, "--dst-report=empty.json"), "cannot write empty.json: it is a folder"),
    ((MODEL, "--dst-report=mybot.py/out.json"), "cannot write mybot.py/out.json"),
    ((MODEL, "--dst-report=/proc/dstfuzz/out.json"), "cannot write /proc/dstfuzz/out.json"),
]

#: One of each stage at which a mistake is found: options, tracker, preflight, data, relation,
#: locks, report. With workers it is found by the process that starts them.
STAGES = {
    ("--dst-turns=0",),
    ("--dst-model=trad",),
    ("--dst-model=broken:steady",),
    ("--dst-model=mybot:NeedsArguments",),
    ("--dst-model=mybot:Raising",),
    ("--dst-model=mybot:Random",),
    (MODEL, "--dst-data=nowhere"),
    (MODEL, "--dst-data=talk.jsonl", "--dst-relation=gold"),
    (MODEL, "--dst-lock=/[/"),
    (MODEL, "--dst-report=empty.json"),
}

MARKERS: list[tuple[str, str]] = [
    ("transformation=2", "unknown argument of @pytest.mark.dst 'transformation'. Did you mean"),
    ("flat_edit_rate=1", "'1' must be yes or no"),
    ("max_edit_rate=1.5", "'1.5' must be a rate between 0 and 1"),
    ("model='trade'", "does not take 'model', which applies to a whole session (--dst-model)"),
    ("max_calls=9", "(--dst-max-calls). Valid: arguments, attack, "),
    ("2", "@pytest.mark.dst takes named arguments only"),
    ("transformations=9", "@pytest.mark.dst(transformations=...): '9' must be a whole number"),
    ("transformations=True", "True has the wrong type"),
    ("edits=['char_dorp']", "operator 'char_dorp'. Did you mean 'char_drop'?"),
    ("edits='-emojy'", "(edits=...): unknown transformation or operator 'emojy'. Did you mean"),
    ("edits=['emoji', '-word_insert']", "excludes all of word_insert/emoji"),
    ("edits=[]", "'' contains no name: leave the option out to use all"),
    ("variants=2, variant=2", "there is no variant 2: the variants are numbered from 0 to 1"),
    ("edits=[1]", "[[]1[]] has the wrong type"),
    ("max_edit_rate='a lot'", "'a lot' must be a rate between 0 and 1"),
    ("search='ransom'", "unknown search 'ransom'. Did you mean 'random'?"),
    ("lock='/[/'", "/[[]/"),
    ("seed=None", "None has the wrong type"),
]


@pytest.fixture
def folder(bot: pytest.Pytester) -> Path:
    """A folder with files that are not what they should be."""
    (bot.path / "empty").mkdir()
    (bot.path / "empty.json").mkdir()
    (bot.path / "cut.json").write_text('{"SNG01.json": {"log": [', encoding="utf-8")
    (bot.path / "latin.jsonl").write_bytes('{"id": "1", "turns": ["café"]}'.encode("latin-1"))
    (bot.path / "other.json").write_text(json.dumps({"a": [1, 2]}), encoding="utf-8")
    (bot.path / "nothing.jsonl").write_text("", encoding="utf-8")
    half = {"dialogue_id": "1", "utterances": ["a hotel \ud800"]}
    (bot.path / "half.jsonl").write_text(json.dumps(half), encoding="utf-8")
    talk = {"dialogue_id": "1", "utterances": ["a hotel"]}
    (bot.path / "talk.jsonl").write_text(json.dumps(talk), encoding="utf-8")
    typed = {"dialogue_id": "1", "turns": [{"user": 3}]}
    (bot.path / "typed.jsonl").write_text(json.dumps(typed), encoding="utf-8")
    (bot.path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    (bot.path / "broken.py").write_text("steady = steddy", encoding="utf-8")
    (bot.path / "needy.py").write_text("import not_installed_anywhere", encoding="utf-8")
    return bot.path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\ndst_max_failure_rat = 5%\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\ndst_max_failure_rat = '5%'\n"),
        ("pytest.ini", "[pytest]\ndst-max-failure-rate = 5%\n"),
        ("tox.ini", "[pytest]\nDST_MAX_FAILURE_RATE = 5%\n"),
        ("setup.cfg", "[tool:pytest]\ndst_max_failure_rates = 5%\n"),
        pytest.param(
            "pyproject.toml",
            "[tool.pytest]\ndst_max_failure_rat = '5%'\n",
            marks=pytest.mark.skipif(
                pytest.version_tuple < (9, 0), reason="pytest reads [tool.pytest] since 9.0"
            ),
        ),
    ],
)
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_misspelled_key_is_no_gate_that_passes(
    suite: pytest.Pytester, name: str, text: str, workers: tuple[str, ...]
) -> None:
    (suite.path / name).write_text(text, encoding="utf-8")
    result = suite.runpytest_inprocess(*workers)
    assert result.ret == 4
    (line,) = filter(None, result.errlines)
    assert str(suite.path / name) in line
    assert "'dst_max_failure_rate'" in line


def test_a_key_that_somebody_else_registered_is_theirs(bot: pytest.Pytester) -> None:
    bot.makeini("[pytest]\ndst_zone = summer\n")
    bot.makeconftest("def pytest_addoption(parser): parser.addini('dst_zone', 'time')\n")
    bot.makepyfile("def test_it(request): assert request.config.getini('dst_zone')\n")
    for options in ((), ("-o", "dst_zone=winter"), ("-o", "dst_zone=winter", "--dst-turns=2")):
        assert bot.runpytest_inprocess(*options).ret == 0
    # Nobody has registered these.
    for key in ("dst_zoen", "dst-zone", "DST_ZONE"):
        found = bot.runpytest_inprocess("-o", f"{key}=winter")
        assert found.ret == 4
        assert f"-o: '{key}'" in found.errlines[0]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "message", "workers"),
    [
        *((*case, ()) for case in CASES),
        *((*case, ("-n", "2")) for case in CASES if case[0] in STAGES),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_usage_error_is_one_message(
    bot: pytest.Pytester,
    options: tuple[str, ...],
    message: str,
    workers: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Messages name what there is; nothing that another test registered is.
    monkeypatch.setattr(transformations._TRANSFORMATIONS, "_registered", {})
    few = "--dst-turns=8" if options[0] == MODEL else "-q"
    result = bot.runpytest_inprocess(*options, *workers, few)
    assert result.ret == 4
    errors = [line for line in result.errlines if line]
    assert len(errors) == 1
    assert errors[0].startswith("ERROR: ")
    assert message in errors[0]
    assert "no tests ran" in result.stdout.str() or not result.outlines


@pytest.mark.parametrize(("arguments", "message"), MARKERS)
def test_a_bad_marker_is_a_collection_error(
    bot: pytest.Pytester, arguments: str, message: str
) -> None:
    bot.makepyfile(
        f"import pytest\n@pytest.mark.dst({arguments})\ndef test_state(dst_turn): pass\n"
    )
    result = bot.runpytest_inprocess(MODEL, "--dst-turns=2")
    result.assert_outcomes(errors=1)
    assert result.ret == 2
    result.stdout.fnmatch_lines([f"test_a_bad_marker*::test_state: *{message}*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_bad_marker_is_a_collection_error_with_workers_too(bot: pytest.Pytester) -> None:
    bot.makepyfile("import pytest\n@pytest.mark.dst(seeed=1)\ndef test_state(dst_turn): pass\n")
    result = bot.runpytest_inprocess(MODEL, "--dst-turns=2", "-n", "1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*unknown argument of @pytest.mark.dst 'seeed'. Did you mean *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.assert_outcomes(errors=1)  # and no built-in suite in the place of the broken one


#: An unknown slot is not among them: the preflight refuses the tracker as a whole.
#: What a tracker answers from the second turn on -> the reason that is reported.
LATER: list[tuple[str, str]] = [
    ("[]", "the tracker returned 0 predictions for 1 context"),
    ("answers + answers", "the tracker returned 2 predictions for 1 context"),
    ("None", "the tracker returned None instead of a sequence of predictions"),
    ("['north'] * len(answers)", "the tracker returned a str instead of a Prediction"),
    ("[{'hotel-area': 1}] * len(answers)", "an int as the value of 'hotel-area'"),
    ("[Prediction(answers[0], {'hotel-area': float('nan')})] * len(answers)", "nan as the impu"),
    ("[{'hotel-area': chr(0xd800)}] * len(answers)", "contains a lone surrogate"),
    ("1 / 0", "ZeroDivisionError: division by zero"),
    ("recurse()", "RecursionError: maximum recursion depth exceeded"),
]


@pytest.mark.parametrize(
    ("answer", "reason", "workers"),
    [*((*case, ()) for case in LATER), (*LATER[-2], ("-n", "1"))],
)
def test_nonsense_that_comes_late_is_an_error_of_its_turn(
    bot: pytest.Pytester, answer: str, reason: str, workers: tuple[str, ...]
) -> None:
    bot.makepyfile(
        latebot="from pytest_dstfuzz.dialogue.dialogues import BeliefState\n"
        "from pytest_dstfuzz.trackers.tracker import Prediction\n"
        "def recurse(): recurse()\n"
        "class Late:\n"
        "    def predict(self, contexts):\n"
        "        answers = [BeliefState({'hotel-area': 'north'}) for _ in contexts]\n"
        "        if all(len(context.exchanges) == 1 for context in contexts):\n"
        "            return answers\n"
        f"        return {answer}\n"
    )
    options = ("--dst-model=latebot:Late", "--dst-turns=6", "--dst-batch-size=1")
    result = bot.runpytest_inprocess(*options, "--dst-report=out.json", *workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["verdict *failed*tested turns break, and * got no answer*", "failed: *", "error *"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    report = json.loads((bot.path / "out.json").read_text(encoding="utf-8"))
    outcomes = {turn["outcome"] for turn in report["turns"] if turn["turn_index"] > 0}
    reasons = {v["reason"] for turn in report["turns"] for v in turn["variants"] if v["valid"]}
    assert outcomes == {"error"}
    assert any(reason in text for text in reasons)


def test_wrong_data_of_a_suite_is_found_when_it_is_collected(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\ndst_data = nowhere\n")
    result = suite.runpytest_inprocess()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: no such file or folder: 'nowhere'*"])


def test_wrong_data_does_not_concern_other_tests(bot: pytest.Pytester) -> None:
    bot.makeini("[pytest]\ndst_data = nowhere\n")
    bot.makepyfile("def test_other(): pass")
    assert bot.runpytest_inprocess().ret == 0


def test_a_wrong_ini_value_says_where_it_is(bot: pytest.Pytester) -> None:
    bot.makeini("[pytest]\ndst_turns = few\n")
    bot.makepyfile("def test_other(): pass")
    result = bot.runpytest_inprocess()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: dst_turns (ini): 'few' must be a whole number *"])


@pytest.mark.parametrize(
    "options",
    [
        ("--dst-turns=x",),
        ("-k", "nothing"),
        ("--dst-model=mybot:Short",),
        ("--dst-data=nowhere",),
        ("--collect-only",),
        ("test_marked.py",),
        ("test_marked.py", "-n", "2"),
    ],
)
def test_a_report_that_is_there_survives(bot: pytest.Pytester, options: tuple[str, ...]) -> None:
    (bot.path / "out.json").write_text("precious", encoding="utf-8")
    bot.makepyfile(
        test_marked="import pytest\n@pytest.mark.dst(no=1)\ndef test_state(dst_turn): pass\n"
    )
    bot.runpytest_inprocess(MODEL, "--dst-report=out.json", "--dst-turns=2", *options)
    assert (bot.path / "out.json").read_text(encoding="utf-8") == "precious"


def test_a_report_that_cannot_be_written_at_the_end_is_told(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        "from pathlib import Path\n"
        "def test_state(dst_turn):\n"
        "    dst_turn.assert_unchanged()\n"
        "    Path('out.json').mkdir(exist_ok=True)\n"
    )
    result = bot.runpytest_inprocess(MODEL, "--dst-report=out.json", "--dst-turns=2")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: the report was not written: *is a folder"])


#: Options whose file is a pipe without a writer. Reading it never ends.
PIPES = {
    "data": ("--dst-data=p.jsonl",),
    "folder": ("--dst-data=folder",),
    "baseline": ("--dst-baseline=p.json",),
    "regressions": ("--dst-regressions=other", "--dst-data=talks.jsonl"),
    "noise": ("--dst-noise=p.json",),
    "frozen": ("--dst-relation=frozen:p.jsonl",),
    "tools": ("--dst-outcome=tool-calls", "--dst-tools=p.json", "--dst-data=talks.jsonl"),
    "device": ("--dst-data=/dev/zero",),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_or_a_device_is_one_message(pytester: pytest.Pytester, name: str) -> None:
    pytester.makepyfile(mybot="def steady(context):\n    return {}\n")
    Path("talks.jsonl").write_text('{"dialogue_id": "a", "turns": [{"user": "a room"}]}\n')
    for folder in ("folder", "other"):
        Path(folder).mkdir()
    for path in ("p.jsonl", "p.json", "folder/p.jsonl", "other/talks.jsonl"):
        os.mkfifo(path)
    result = pytester.runpytest_inprocess("--dst-model=mybot:steady", "--dst-turns=2", *PIPES[name])
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*it is a pipe or a device*"])
