"""Remembered violations: written, replayed, fixed, accepted, retired, promoted; and redaction."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.cli import main

#: A tracker that believes whatever the user said last, but for the first turn of a dialogue, one
#: that has been mended, and one that understands nothing any more.
BOTS = """
CLEAN = (
    "good morning to all of you over there in zanzibar today",
    "please would you find us some quiet rooms around kilimanjaro for later",
)
SAID = "please would you find us some quiet rooms around kilimanjaro for later"

def fragile(context):
    return {"hotel-name": context.user} if len(context.exchanges) == 2 else {}

def mended(context):
    return {"hotel-name": SAID} if len(context.exchanges) == 2 else {}

def deaf(context):
    return {}

def right(context):
    return {"hotel-name": "acorn"} if len(context.exchanges) == 2 else {}

def adds(context):
    area = {"hotel-area": "north"}
    return {**area, "hotel-name": context.user} if context.user not in CLEAN else area

def lost(context):
    return {}

def stuck(context):
    return {"hotel-area": "south"}

def helped(context):
    return {"hotel-area": "north"}

def moody(context, asked=[]):
    asked.append(context)
    return {"hotel-name": f"{context.user} {len(asked)}"}

def dead(context):
    raise ValueError("cannot read " + context.user)

def silent(context):
    if context.user.startswith("never"):
        raise ValueError("cannot read " + context.user)
    return {"hotel-name": context.user}
"""
#: What must not leave where texts are kept back.
MARKERS = ("zanzibar", "kilimanjaro", "serengeti")
DATA = [
    {
        "dialogue_id": "p1",
        "turns": [
            {"system": "", "user": "good morning to all of you over there in zanzibar today"},
            {
                "system": "serengeti or what else can we do for you and yours?",
                "user": "please would you find us some quiet rooms around kilimanjaro for later",
            },
        ],
    }
]
ARGS = (
    "--dst-data=talks.jsonl",
    "--dst-variants=4",
    "--dst-validity=strict",
    "--dst-search=random",
)
FILE = Path(".dstfuzz", "regressions", "talks.jsonl")


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(bots=BOTS)
    Path("talks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in DATA))
    return pytester


def run(folder: pytest.Pytester, bot: str, *more: str) -> pytest.RunResult:
    return folder.runpytest(f"--dst-model=bots:{bot}", *ARGS, *more)


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def remembered(folder: pytest.Pytester) -> pytest.Pytester:
    run(folder, "fragile", "--dst-remember").assert_outcomes(failed=1, passed=1)
    return folder


def test_where_the_clean_answer_is_lost_nobody_can_tell(remembered: pytest.Pytester) -> None:
    names = [entry["id"] for entry in lines()]
    result = run(remembered, "deaf", "-rs", "--dst-report=r.json", "--dst-report=r.html")
    result.assert_outcomes(passed=2, skipped=len(names))
    report = json.loads(Path("r.json").read_text())
    assert {entry["outcome"] for entry in report["regressions"]} == {"unclear"}
    unclear = "the clean answer changed, or the comparison has no verdict"
    assert f"unknown: {unclear}" in Path("r.html").read_text()
    result.stdout.no_fnmatch_line("*: dstfuzz retire*")
    count = f"it is unclear whether {len(names)} of {len(names)} regressions would be fixed"
    result.stdout.fnmatch_lines(
        [
            f"SKIPPED*: unknown: {unclear} (hotel-name: please * -> none)",
            f"{count}, because {unclear}: {' '.join(names)}",
        ]
    )
    alone = run(remembered, "deaf", f"--dst-replay={names[0]}")
    alone.stdout.fnmatch_lines([f"*at turn *: unknown: {unclear}"])


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize(("bot", "fixed"), [("helped", 1), ("lost", 0), ("stuck", 0)])
def test_a_bot_that_no_longer_understands_the_turn_fixes_nothing(
    folder: pytest.Pytester, bot: str, fixed: int, labels: bool
) -> None:
    data = json.loads(json.dumps(DATA))
    for turn in data[0]["turns"] if labels else ():
        turn["state"] = {"hotel-area": "north"}
    Path("talks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in data))
    run(folder, "adds", "--dst-remember")
    names = [entry["id"] for entry in lines()]
    result = run(folder, bot, f"--dst-replay={names[0]}")
    result.assert_outcomes(passed=fixed, skipped=1 - fixed, deselected=2)
    if not fixed:
        result.stdout.no_fnmatch_line("*dstfuzz retire*")
    # Lines of earlier versions have no clean answer. An empty answer shows nothing then either.
    old = [{key: one[key] for key in one if key != "answer"} for one in lines()]
    FILE.write_text("".join(f"{json.dumps(one)}\n" for one in old))
    if labels and bot == "lost":
        run(folder, bot, f"--dst-replay={names[0]}").assert_outcomes(skipped=1, deselected=2)


@pytest.mark.parametrize("chosen", ["--dst-replay={}", "-k{}"])
def test_a_replay_that_the_budget_left_out_does_not_pass(
    remembered: pytest.Pytester, chosen: str
) -> None:
    named = chosen.format(lines()[0]["id"])
    result = run(remembered, "fragile", named, "--dst-max-calls=1")
    assert result.parseoutcomes()["skipped"] == 1
    assert result.ret != 0


def test_where_the_label_has_the_new_clean_answer_it_is_fixed(folder: pytest.Pytester) -> None:
    labelled = json.loads(json.dumps(DATA))
    labelled[0]["turns"][0]["state"] = {}
    labelled[0]["turns"][1]["state"] = {"hotel-name": "acorn"}
    Path("talks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in labelled))
    run(folder, "fragile", "--dst-remember")
    run(folder, "right").stdout.fnmatch_lines([f"*{len(lines())} of * fixed: dstfuzz retire *"])


def test_nothing_is_written_unasked(folder: pytest.Pytester) -> None:
    run(folder, "fragile").assert_outcomes(failed=1, passed=1)
    assert not Path(".dstfuzz").exists()


def test_violations_are_written_once_and_in_order(remembered: pytest.Pytester) -> None:
    before = FILE.read_bytes()
    found = lines()
    assert found
    assert [entry["id"] for entry in found] == sorted({entry["id"] for entry in found})
    for entry in found:
        assert entry["status"] == "open"
        # The smallest version: one edit, of the turn itself.
        assert len(entry["edits"]) == 1
        first, second = entry["dialogue"]
        assert "seen" not in first
        assert second["seen"] != second["user"]
    result = run(remembered, "fragile", "--dst-remember")
    result.stdout.fnmatch_lines(["*0 new violations were remembered*"])
    assert FILE.read_bytes() == before


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_they_are_replayed_first_and_fail_while_they_are_there(
    remembered: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    count = len(lines())
    result = run(remembered, "fragile", "-v", *workers)
    result.assert_outcomes(failed=count + 1, passed=1)
    result.stdout.fnmatch_lines(["*regression ?????????? is still broken, at turn talks-*-p1-t1*"])
    if not workers:
        seen = [line for line in result.outlines if line.startswith("dstfuzz::")]
        assert all("::regression[" in line for line in seen[:count])


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_those_that_are_fixed_are_named_and_can_be_retired(
    remembered: pytest.Pytester, workers: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    names = [entry["id"] for entry in lines()]
    result = run(remembered, "mended", *workers, "--dst-report=r.json", "--dst-report=r.html")
    result.assert_outcomes(passed=len(names) + 2)
    report = json.loads(Path("r.json").read_text())
    assert [entry["id"] for entry in report["regressions"]] == names
    assert {entry["outcome"] for entry in report["regressions"]} == {"fixed"}
    assert "Remembered violations" in Path("r.html").read_text()
    count = f"{len(names)} of {len(names)} regressions are fixed"
    result.stdout.fnmatch_lines([f"{count}: dstfuzz retire {' '.join(names)}"])
    assert main(["retire", *names]) == 0
    assert FILE.read_text() == ""
    run(remembered, "fragile").assert_outcomes(failed=1, passed=1)
    assert main(["retire", names[0]]) == 2
    assert f"unknown regression '{names[0]}'" in capsys.readouterr().err


def test_what_is_accepted_fails_no_build(remembered: pytest.Pytester) -> None:
    names = [entry["id"] for entry in lines()]
    for name in names[:-1]:
        assert main(["accept", name, "--reason", "nobody types this"]) == 0
    # The turn has one violation that nobody accepted.
    result = run(remembered, "fragile", "--dst-annotations=yes")
    result.assert_outcomes(failed=2, passed=1, xfailed=len(names) - 1)
    result.stdout.fnmatch_lines(["::error *"])
    assert main(["accept", names[-1], "--reason", "nor this"]) == 0
    assert [entry["reason"] for entry in lines()].count("nobody types this") == len(names) - 1
    result = run(remembered, "fragile", "-rx", "--dst-annotations=yes")
    result.assert_outcomes(passed=1, xfailed=len(names) + 1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*accepted: *nobody types this*"])
    # What fails no build is no error beside a commit either.
    result.stdout.no_fnmatch_line("::*")
    # Remembering again does not forget what was accepted.
    result = run(remembered, "fragile", "--dst-remember")
    result.assert_outcomes(passed=1, xfailed=len(names) + 1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*0 new violations were remembered*"])
    assert {entry["status"] for entry in lines()} == {"accepted"}


def test_what_is_accepted_of_one_slot_excuses_no_other(remembered: pytest.Pytester) -> None:
    for entry in lines():
        assert main(["accept", entry["id"], "--reason", "known"]) == 0
    assert run(remembered, "fragile").ret == 0
    # The same variants break another slot now, alone or as well.
    for more in ('{"hotel-area": said}', '{"hotel-name": said, "hotel-area": said}'):
        remembered.makepyfile(
            worse="import bots\n\ndef worse(context):\n"
            f"    said = context.user\n    return {more} if bots.fragile(context) else {{}}\n"
        )
        result = remembered.runpytest_subprocess("--dst-model=worse:worse", *ARGS)
        assert result.ret == 1
        assert result.parseoutcomes()["failed"] == 1


def test_an_annotation_has_the_commands_that_accept_its_violations(
    folder: pytest.Pytester,
) -> None:
    result = run(folder, "fragile", "--dst-annotations=yes")
    result.assert_outcomes(failed=1, passed=1)
    (line,) = (line for line in result.outlines if line.startswith("::error"))
    tests, accept = line.rpartition("accept: ")[2].split("; ")
    assert folder.runpytest(*shlex.split(tests)[1:]).ret == 1
    assert main(shlex.split(accept)[1:]) == 0
    assert {entry["status"] for entry in lines()} == {"accepted"}
    later = run(folder, "fragile")
    later.assert_outcomes(passed=1, xfailed=len(lines()) + 1)
    assert later.ret == 0


def test_accepting_takes_a_reason_and_a_violation(
    remembered: pytest.Pytester,  # noqa: ARG001 - its files
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = lines()[0]["id"]
    assert main(["accept", name, "--reason", " "]) == 2
    assert "needs a reason" in capsys.readouterr().err
    assert main(["accept", name[:-1] + "_", "--reason", "x"]) == 2
    assert f"Did you mean '{name}'" in capsys.readouterr().err
    assert main(["accept", name, "--reason", "x", "--regressions", "nowhere"]) == 2
    assert "no remembered violations in nowhere" in capsys.readouterr().err


def test_one_can_be_replayed_alone(remembered: pytest.Pytester) -> None:
    name = lines()[0]["id"]
    assert main(["accept", name, "--reason", "known"]) == 0
    result = run(remembered, "fragile", f"--dst-replay={name[:6]}")
    result.assert_outcomes(failed=1, deselected=2)
    what = f"regression {name} (accepted: known), hotel-name at turn talks-test-p1-t1"
    result.stdout.fnmatch_lines(
        ["*accepted: known (it fails only with --dst-replay)", f"{what}: broken"]
    )
    result.stdout.no_fnmatch_line("*to accept it*")
    result = run(remembered, "mended", f"--dst-replay={name}")
    result.assert_outcomes(passed=1, deselected=2)
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"{what}: fixed"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_one_that_there_is_not_cannot_be_replayed(
    remembered: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run(remembered, "mended", "--dst-replay=ffff", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown regression 'ffff'*"])


def test_a_promoted_one_is_a_test_of_its_own(remembered: pytest.Pytester) -> None:
    name = lines()[0]["id"]
    assert main(["promote", name[:6], "-o", "test_kept.py"]) == 0
    before = Path("test_kept.py").read_text()
    assert main(["promote", name, "-o", "test_kept.py"]) == 2
    assert Path("test_kept.py").read_text() == before
    FILE.unlink()
    remembered.makeconftest(
        "import pytest, bots\n\n@pytest.fixture(scope='session')\ndef dst_model():\n"
        "    return bots.fragile\n"
    )
    remembered.runpytest("test_kept.py").assert_outcomes(failed=1)
    conftest = Path("conftest.py")
    conftest.write_text(conftest.read_text().replace("bots.fragile", "bots.mended"))
    remembered.runpytest("test_kept.py").assert_outcomes(passed=1)


def test_a_suite_with_a_tracker_of_its_own_replays_with_it(remembered: pytest.Pytester) -> None:
    remembered.makeconftest(
        "import pytest, bots\n\n@pytest.fixture(scope='session')\ndef dst_model():\n"
        "    return bots.mended\n"
    )
    remembered.makepyfile(test_mine="def test_it(dst_turn):\n    dst_turn.assert_unchanged()\n")
    count = len(lines())
    remembered.runpytest(*ARGS).assert_outcomes(passed=count + 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line[:-9], "line 1 is not a violation"),
        (lambda line: line.replace('"open"', '"opne"'), "'status' is 'opne'"),
        (lambda line: line.replace("quiet", "loud"), "does not fit the edited texts"),
        (lambda line: line.replace('"status"', '"stat"'), "lacks 'status'"),
        (
            lambda line: line.replace('"slot": "hotel-name"', '"slot": " "'),
            "not the name of a slot",
        ),
        (lambda line: line.replace('"slot": "hotel-name"', '"slot": 7'), "7 instead of a text"),
        (lambda line: line.replace('"slot"', '"slots"'), "changed[[]0]: lacks 'slot'"),
        # As a merge by hand leaves it: accepted by the second of two keys.
        (lambda line: f'{line[:-1]}, "status": "accepted"}}', "two values for the key 'status'"),
        (lambda line: line.replace('"label": null', '"label": {"a": NaN}'), "contains NaN"),
        (lambda _: "[" * 100_000, "nested too deeply"),
        (lambda _: "[1]", "violation: [[]1] instead of an object"),
        (lambda line: json.dumps({**json.loads(line), "edits": "abc"}), "edits: 'abc' instead"),
        (
            lambda line: json.dumps({**json.loads(line), "dialogue": ["x"]}),
            "dialogue[[]0]: 'x' instead",
        ),
        (lambda line: json.dumps({**json.loads(line), "relation": []}), "relation: []* instead"),
    ],
)
def test_a_broken_line_is_named(remembered: pytest.Pytester, change: Any, message: str) -> None:
    text = FILE.read_text()
    first, _, rest = text.partition("\n")
    FILE.write_text(f"{change(first)}\n{rest}")
    result = run(remembered, "fragile")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{FILE}*{message}*"])


def test_a_folder_that_cannot_be_written_is_found_out_before_the_run(
    folder: pytest.Pytester,
) -> None:
    Path(".dstfuzz").write_text("a file")
    result = run(folder, "fragile", "--dst-remember")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot write*talks.jsonl*"])


# -- redaction ----------------------------------------------------------------------------


@pytest.mark.parametrize("bot", ["fragile", "silent"])
@pytest.mark.parametrize("gate", [(), ("--dst-max-failure-rate=1%",)], ids=["tests", "gate"])
def test_nothing_that_was_said_leaves(
    folder: pytest.Pytester, bot: str, gate: tuple[str, ...]
) -> None:
    if bot == "silent":
        Path("talks.jsonl").write_text(json.dumps(DATA[0]).replace("please", "never") + "\n")
    files = ("--dst-report=r.json", "--dst-report=r.html", "--junitxml=r.xml")
    result = run(folder, bot, "--dst-redact", "--dst-annotations=yes", "-v", "-rA", *files, *gate)
    written = [Path(name).read_text(encoding="utf-8") for name in ("r.json", "r.html", "r.xml")]
    shown = "\n".join([result.stdout.str(), result.stderr.str(), *written])
    assert "p1-t1" in shown
    assert not [marker for marker in (*MARKERS, "quiet rooms") if marker in shown]
    report = json.loads(written[0])
    assert {turn["user"].replace(" ", "").strip("x") for turn in report["turns"]} == {""}
    assert report["summary"]["turns"] == 2


@pytest.mark.parametrize("bot", ["moody", "dead"])
def test_why_a_tracker_is_refused_is_kept_back(folder: pytest.Pytester, bot: str) -> None:
    result = run(folder, bot, "--dst-redact")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the tracker cannot be tested; the reason is *"])
    shown = result.stdout.str() + result.stderr.str()
    assert not [marker for marker in MARKERS if marker in shown]


def test_redaction_and_remembering_exclude_each_other(folder: pytest.Pytester) -> None:
    result = run(folder, "fragile", "--dst-redact", "--dst-remember")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--dst-remember stores utterances and --dst-redact hides them*"])


def test_regressions_are_replayed_without_their_texts(remembered: pytest.Pytester) -> None:
    result = run(remembered, "fragile", "--dst-redact")
    result.stdout.fnmatch_lines(["*regression * is still broken*"])
    assert not [marker for marker in MARKERS if marker in result.stdout.str()]


def test_a_slot_that_there_is_not_is_no_regression(remembered: pytest.Pytester) -> None:
    Path("talks.ontology.json").write_text('{"hotel-area": ["north"], "hotel-stars": ["4"]}')
    result = run(remembered, "mended")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*talks.jsonl: the regression * 'hotel-name'*dstfuzz retire *"])


#: Answers of a tracker: what `predict` may return.
ANSWERS = {
    "mappings": "{'hotel-name': text}",
    "predictions": "Prediction(BeliefState({'hotel-name': text}))",
    "spelled otherwise": "{'Hotel-Name': f'  {text.upper()} '}",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_what_a_campaign_takes_a_promoted_test_takes(
    remembered: pytest.Pytester, answer: str
) -> None:
    remembered.makepyfile(
        batch="from pytest_dstfuzz.dialogue.dialogues import BeliefState\n"
        "from pytest_dstfuzz.trackers.tracker import Prediction\n\n"
        "class Bot:\n    def __init__(self, mended):\n        self.mended = mended\n\n"
        "    def predict(self, contexts):\n"
        "        texts = ['acorn' if self.mended else one.user for one in contexts]\n"
        f"        return [{answer} for text in texts]\n"
    )
    Path("test_own.py").write_text(
        '"""Own tests."""\nfrom __future__ import annotations\n\nimport pytest, batch\n\n'
        "@pytest.fixture(scope='session', params=[False, True])\ndef dst_model(request):\n"
        "    return batch.Bot(request.param)\n\ndef test_nothing():\n    pass\n"
    )
    names = [entry["id"] for entry in lines()]
    assert main(["promote", names[0], "-o", "test_own.py"]) == 0
    assert main(["promote", *names[1:], "-o", "test_own.py"]) == 0
    result = remembered.runpytest("test_own.py")
    result.assert_outcomes(passed=1 + len(names), failed=len(names))
    assert Path("test_own.py").read_text().count("import assert_follows") == 1


def test_a_file_that_is_no_python_is_not_added_to(
    remembered: pytest.Pytester,  # noqa: ARG001 - its files
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = lines()[0]["id"]
    # The lines of the corpus itself are Python by chance: dictionaries.
    corpus = next(Path(".dstfuzz", "regressions").iterdir())
    Path("notes.py").write_text("not a python file")
    for path in (Path("notes.py"), corpus):
        before = path.read_text()
        assert main(["promote", name, "-o", str(path)]) == 2
        shown = capsys.readouterr().err
        assert str(path) in shown
        assert "Python" in shown
        assert path.read_text() == before
    assert main(["promote", name]) == 0
    compile(capsys.readouterr().out, "printed", "exec")


def test_they_are_listed(
    remembered: pytest.Pytester,  # noqa: ARG001 - its files
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = lines()
    first = found[0]["id"]
    assert main(["accept", first[:7], "--reason", "nobody types this"]) == 0
    capsys.readouterr()
    assert main(["regressions"]) == 0
    shown = capsys.readouterr().out
    assert f"talks.jsonl: {len(found) - 1} open, 1 accepted" in " ".join(shown.split())
    assert [entry["id"] for entry in found if entry["id"] in shown] == [one["id"] for one in found]
    assert "accepted: nobody types this" in shown
    assert shown.count("talks-test-p1-t1") == shown.count("hotel-name: ") == len(found)
    assert main(["regressions", "--status=open"]) == 0
    assert first not in capsys.readouterr().out
    assert main(["regressions", first[:7]]) == 0
    shown = capsys.readouterr().out
    assert found[1]["id"] not in shown
    assert "seen as: " in shown
    assert main(["regressions", "zz"]) == 2
    assert "unknown regression 'zz'" in capsys.readouterr().err
    assert main(["regressions", "--regressions", "nowhere"]) == 2


@pytest.mark.parametrize("kind", ["missing", "file", "empty file", "loop", "broken link"])
def test_a_folder_that_is_none_is_refused(remembered: pytest.Pytester, kind: str) -> None:
    place = Path("other")
    if kind.endswith("file"):
        place.write_text("" if kind == "empty file" else FILE.read_text(encoding="utf-8"))
    elif kind != "missing":
        place.symlink_to("other" if kind == "loop" else "nowhere")
    result = run(remembered, "fragile", "--dst-regressions=other")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dst-regressions: *other*"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
    if kind == "missing":
        run(remembered, "fragile", "--dst-regressions=other", "--dst-remember")
        assert (place / FILE.name).exists()


def test_an_ini_file_may_name_a_folder_for_later(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\ndst_regressions = later")
    assert run(folder, "mended").ret == 0


def test_a_folder_with_violations_of_other_data_only_is_told(remembered: pytest.Pytester) -> None:
    FILE.rename(FILE.with_name("shop.jsonl"))
    said = "no remembered violation was replayed: * has those of shop, but none of talks*"
    result = run(remembered, "mended", f"--dst-regressions={FILE.parent}")
    result.stdout.fnmatch_lines([said])
    run(remembered, "mended").stdout.fnmatch_lines([said])
    FILE.with_name("shop.jsonl").unlink()
    run(remembered, "mended").stdout.no_fnmatch_line(said)


FRAGILE = """
import pytest
def track(context):
    *_, last = context.user_utterances
    return {"hotel-area": "north"} if "cheap hotel" in last else {}
"""
TESTED = "def test_it(dst_turn): dst_turn.assert_unchanged()\n"
ASKED = {
    "dialogue_id": "d",
    "users": ["I would like a cheap hotel in the north of the town please"],
}


FIXTURE = "@pytest.fixture(scope='session')\ndef dst_model(): return track\n"
#: The only trackers that no replay can ask.
ALONE = {
    "class": """
class TestIt:
    @pytest.fixture
    def dst_model(self): return track
    def test_it(self, dst_turn): dst_turn.assert_unchanged()
""",
    "parameter": f"@pytest.mark.parametrize('dst_model', [track])\n{TESTED}",
    "indirect": """
@pytest.fixture
def dst_model(request): return request.param
@pytest.mark.parametrize('dst_model', [track], indirect=True)
"""
    + TESTED,
}
#: The place of the fixture dst_model -> its file and the source with the fixture.
PLACES = {
    "root": ("conftest.py", FRAGILE + FIXTURE.replace(")", ", params=[0, 1])", 1)),
    "folder": ("tests/conftest.py", FRAGILE + FIXTURE),
    "file": ("tests/test_it.py", FRAGILE + FIXTURE + TESTED),
}


def remember_own(pytester: pytest.Pytester, files: Mapping[str, str]) -> list[str]:
    """Remember the violations of a suite's own tracker. Return their ids."""
    for name, text in {"tests/test_it.py": TESTED, **files}.items():
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    pytester.path.joinpath("asked.jsonl").write_text(json.dumps(ASKED), encoding="utf-8")
    assert run_own(pytester, "--dst-remember", "-odst_validity=strict").ret == 1
    found = pytester.path.joinpath(".dstfuzz/regressions/asked.jsonl").read_text().splitlines()
    return [json.loads(line)["id"] for line in found]


def run_own(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    data = ("--dst-data=asked.jsonl", "--dst-search=random", "--dst-edits=char_drop")
    # A worker of xdist needs a process of its own.
    go = pytester.runpytest_subprocess if "-n1" in words else pytester.runpytest_inprocess
    return go(*data, "--rootdir=.", "-pno:cacheprovider", *words)


@pytest.mark.parametrize("place", PLACES)
def test_a_replay_asks_the_tracker_of_the_tests(pytester: pytest.Pytester, place: str) -> None:
    file, text = PLACES[place]
    names = remember_own(pytester, {file: text})
    # Other edits give other variants.
    later = ("--dst-variants=1", "--dst-edits=word_drop")
    for words in (later, (*later, "-n1")):
        shown = run_own(pytester, *words).stdout.str()
        assert shown.count("is still broken") >= len(names) * (2 if "params" in text else 1)
    assert run_own(pytester, f"--dst-replay={names[0]}").ret == 1
    place = {"root": "", "folder": "tests::", "file": "tests/test_it.py::"}[place]
    param = "-1" if "params" in text else ""
    node = f"dstfuzz::{place}regression[{names[0]}{param}]"
    run_own(pytester, node).assert_outcomes(failed=1)
    pytester.path.joinpath(file).write_text(text.replace("cheap hotel", "a"), encoding="utf-8")
    mended = run_own(pytester, *later)
    mended.stdout.fnmatch_lines([f"{len(names)} of {len(names)} * fixed: dstfuzz retire *"])
    assert mended.ret == 0


def test_a_replay_asks_each_of_two_trackers(pytester: pytest.Pytester) -> None:
    broken = FRAGILE + FIXTURE + TESTED
    mended = broken.replace("cheap hotel", "a")
    names = remember_own(pytester, {"tests/test_it.py": mended, "tests/test_more.py": broken})
    result = run_own(pytester, "--dst-variants=1", "--dst-edits=word_drop", "-v")
    for file, outcome in (("test_it", "PASSED"), ("test_more", "FAILED")):
        ids = [f"dstfuzz::tests/{file}.py::regression[[]{name}] {outcome}*" for name in names]
        result.stdout.fnmatch_lines(ids)
    result.stdout.no_fnmatch_line("*fixed*")


@pytest.mark.parametrize("tracker", ALONE)
@pytest.mark.parametrize("workers", [(), ("-n1",)])
def test_a_run_says_which_trackers_it_cannot_ask_again(
    pytester: pytest.Pytester, tracker: str, workers: tuple[str, ...]
) -> None:
    names = remember_own(pytester, {"tests/test_it.py": FRAGILE + ALONE[tracker]})
    result = run_own(pytester, "--dst-variants=1", "--dst-edits=word_drop", *workers)
    line = f"{len(names)} remembered violation* not replayed *, because its dst_model is *"
    result.stdout.fnmatch_lines([line])
    result.stdout.no_fnmatch_line("*still broken*")
    alone = run_own(pytester, f"--dst-replay={names[0]}", *workers)
    assert "no tracker to test: name one with --dst-model" in alone.stdout.str()
    assert alone.ret == 4
