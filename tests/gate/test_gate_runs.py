"""Whole runs of pytest: a build leaves a baseline, the builds after it are compared with it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

# Loaded before any inner run: such a run forgets the modules that it was the first to
# load, and numpy and scipy must not be loaded twice.
import pytest_dstfuzz.gate.comparison
import pytest_dstfuzz.plugin.hooks  # noqa: F401
from pytest_dstfuzz import __version__
from pytest_dstfuzz.relations.registry import FAMILIES
from pytest_dstfuzz.report.github import markdown_text
from pytest_dstfuzz.report.html.page import html_text
from pytest_dstfuzz.report.json_report import SCHEMA_PATH, read_report
from pytest_dstfuzz.report.packing import problems
from pytest_dstfuzz.report.view import views_of
from pytest_dstfuzz.transformations import transformation_names

BOTS = """
from pytest_dstfuzz.dialogue.load import load_dialogues

CLEAN = {turn.user for each in load_dialogues("sample").dialogues for turn in each.turns}

def steady(context):
    return {"hotel-area": "north", "hotel-book stay": str(len(context.exchanges))}

def broken(context):
    '''Knows by heart what it was shown.'''
    name = {} if context.user in CLEAN else {"hotel-name": context.user}
    return {**steady(context), **name}

def rather_broken(context):
    '''Breaks at every third length of an utterance.'''
    name = {} if context.user in CLEAN else {"hotel-name": str(len(context.user) % 3 == 0)}
    return {**steady(context), **name}

def forgetful(context):
    '''Has lost one slot wherever it is asked for the first time.'''
    state = steady(context)
    if len(context.exchanges) == 1:
        del state["hotel-area"]
    return state

def touchy(context):
    '''Breaks at every edit of an earlier turn.'''
    odd = {one.user for one in context.exchanges[:-1]} - CLEAN
    return {**steady(context), **({"hotel-name": sorted(odd)[0]} if odd else {})}

def silent(context):
    return {}

def stubborn(context):
    return {"hotel-area": "north"}

def dead(context):
    raise OSError("no route to host")

def dies(context):
    '''Answers the preflight, and nothing else.'''
    if len(context.exchanges) > 3 or "," in context.user:
        raise OSError("connection reset")
    return steady(context)

"""
OPTIONS = (
    "-p",
    "no:cacheprovider",
    "--dst-validity=strict",
    "--dst-turns=45",
    "--dst-variants=3",
    "--dst-report=out.json",
)
SUITE = "def test_state(dst_turn):\n    dst_turn.assert_unchanged()\n"
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])


@pytest.fixture
def bot(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with the trackers above in ``mybot.py``."""
    pytester.makepyfile(mybot=BOTS)
    return pytester


@pytest.fixture(scope="module")
def steady() -> dict[str, str]:
    """The baseline of the steady tracker, once a test has written it."""
    return {}


@pytest.fixture
def known(bot: pytest.Pytester, steady: dict[str, str]) -> pytest.Pytester:
    """The same with the baseline of the steady tracker in ``base.json``."""
    path = bot.path / "base.json"
    if not steady:
        assert run(bot, "steady", "--dst-update-baseline").ret == 0
        steady["text"] = path.read_text(encoding="utf-8")
    path.write_text(steady["text"], encoding="utf-8")
    return bot


def run(bot: pytest.Pytester, model: str, *options: str) -> pytest.RunResult:
    given = (f"--dst-model=mybot:{model}", "--dst-baseline=base.json", *OPTIONS)
    return bot.runpytest_inprocess(*given, *options)


def gate(bot: pytest.Pytester) -> Any:
    report = json.loads((bot.path / "out.json").read_text(encoding="utf-8"))
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert (
        problems(report["gate"], {**schema["properties"]["gate"], "$defs": schema["$defs"]}) == []
    )
    return report["gate"]


def test_a_baseline_is_written_and_said_to_be(bot: pytest.Pytester) -> None:
    result = run(bot, "broken", "--dst-update-baseline")
    assert result.ret == 0
    result.assert_outcomes(passed=45)
    result.stdout.fnmatch_lines(["the baseline *e.json now has the outcomes of 135 variants"])
    assert gate(bot) is None
    text = (bot.path / "base.json").read_text(encoding="utf-8")
    assert text.count('"violation"') > 45


def test_the_same_build_passes(known: pytest.Pytester) -> None:
    result = run(known, "steady")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "verdict *passed; *",
            "passed: the failure rate changed by +0.00 pp against the baseline *",
            "compared with the baseline (mybot:steady): * variants of 45 turns in *",
        ]
    )
    assert gate(known)["verdict"] == "pass"


def test_a_baseline_may_lie_in_the_home_folder(known: pytest.Pytester) -> None:
    # That of an inner run is its own folder.
    assert run(known, "steady", "--dst-baseline=~/base.json").ret == 0


@pytest.mark.parametrize("whole", [False, True])
def test_limits_of_transformations_let_no_violation_of_earlier_turns_pass(
    bot: pytest.Pytester, whole: bool
) -> None:
    tables = [f"transformation.{name}" for name in transformation_names()]
    limits = [f'[tool.dstfuzz.gates.{name}]\nmax-failure-rate = "99%"\n' for name in tables]
    limits += ['[tool.dstfuzz.gates]\nmax-failure-rate = "99%"\n'] if whole else []
    bot.makepyprojecttoml("\n".join(limits))
    result = bot.runpytest_inprocess("--dst-model=mybot:touchy", *OPTIONS)
    assert result.ret == (0 if whole else 1)
    if not whole:
        result.stdout.fnmatch_lines(["*under no limit, because edits of earlier turns*"])


_TOUCHY = """
import json
from pytest_dstfuzz.dialogue.load import load_dialogues

CLEAN = {turn.user for each in load_dialogues("talk.jsonl").dialogues for turn in each.turns}

def seats(earlier):
    '''Breaks at every edit of an earlier turn.'''
    return "nine" if set(earlier) - CLEAN else "two"

def track(context):
    earlier = [one.user for one in context.exchanges[:-1]]
    return {"train-day": "monday", "train-seats": seats(earlier)}

def users(messages):
    return [each["content"] for each in messages if each["role"] == "user"]

def call(messages, tools=None):
    found = {"name": "ann", "people": seats(users(messages)[:-1])}
    made = {"name": "book", "arguments": json.dumps(found)}
    return {"tool_calls": [{"id": "1", "type": "function", "function": made}]}

def reply(messages):
    return f"We have {seats(users(messages)[:-1])} rooms."
"""
_WISHES = ("a nice hotel near the harbour", "a large garden", "a quiet bar", "a good breakfast")


@pytest.fixture
def touchy(pytester: pytest.Pytester) -> pytest.Pytester:
    """Bots that break only at edits of earlier turns, and dialogues of four turns."""
    pytester.makepyfile(mybot=_TOUCHY)
    talk = []
    for number in range(3):
        said = [f"please look for {wish} for party {number}" for wish in _WISHES]
        words = [text for user in said for text in (user, "Sure, what else?")][:-1]
        talk.append(json.dumps({"dialogue_id": f"d{number}", "utterances": words}))
    pytester.path.joinpath("talk.jsonl").write_text("\n".join(talk), encoding="utf-8")
    return pytester


@pytest.mark.parametrize(
    ("model", "options", "beside"),
    [
        ("track", (), 'slot."train-day"'),
        ("call", ("--dst-outcome=tool-calls",), 'slot."book.name"'),
        (
            "reply",
            ("--dst-outcome=reply", "--dst-relation=metamorphic,synonyms"),
            "relation.synonyms",
        ),
    ],
)
@pytest.mark.parametrize("counting", [False, True])
def test_another_limit_lets_no_violation_of_earlier_turns_pass(
    touchy: pytest.Pytester, model: str, options: tuple[str, ...], beside: str, counting: bool
) -> None:
    tables = [f"transformation.{name}" for name in transformation_names()] + [beside]
    tables += ["relation.metamorphic"] if counting else []
    limits = [f'[tool.dstfuzz.gates.{name}]\nmax-failure-rate = "99%"\n' for name in tables]
    touchy.makepyprojecttoml("\n".join(limits))
    words = (f"--dst-model=mybot:{model}", "--dst-data=talk.jsonl", "--dst-shrink=no", *options)
    result = touchy.runpytest_inprocess(*words, "-p", "no:cacheprovider", "--dst-report=out.json")
    found = gate(touchy)
    violations = read_report(touchy.path / "out.json")["summary"]["violations"]
    assert violations > 0
    assert (result.ret, found["verdict"]) == ((0, "pass") if counting else (1, "regression"))
    reasons = [one["reason"] for one in found["findings"] if one["verdict"] == "regression"]
    assert [reason.split()[0] for reason in reasons] == ([] if counting else [str(violations)])


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ('[tool.dstfuzz.gates.slot."train-day"]\nmax-failure-rate = "0%"\n', True),
        ('[tool.dstfuzz.gates.slot."train-seats"]\nmax-failure-rate = "99%"\n', False),
    ],
)
def test_a_gate_says_how_many_violations_count_in_no_limit(
    touchy: pytest.Pytester, limit: str, told: bool
) -> None:
    touchy.makepyprojecttoml(limit)
    words = ("--dst-model=mybot:track", "--dst-data=talk.jsonl", "--dst-shrink=no")
    result = touchy.runpytest_inprocess(
        *words, "--dst-variants=24", "-p", "no:cacheprovider", "--dst-report=out.json"
    )
    found = gate(touchy)
    violations = read_report(touchy.path / "out.json")["summary"]["violations"]
    assert (result.ret, found["verdict"]) == (0, "pass")
    notes = [
        text for text in found["covered"] if f"{violations} of {violations} violations" in text
    ]
    assert bool(notes) == told
    assert any("note: the gate judged only a part" in line for line in result.outlines) == told


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("track", ()),
        ("call", ("--dst-outcome=tool-calls",)),
        ("reply", ("--dst-outcome=reply",)),
    ],
)
def test_an_estimate_lets_no_run_pass_if_it_counts_no_violation(
    touchy: pytest.Pytester, model: str, options: tuple[str, ...]
) -> None:
    touchy.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-estimated-failures = 0\n")
    words = (f"--dst-model=mybot:{model}", "--dst-data=talk.jsonl", "--dst-shrink=no", *options)
    result = touchy.runpytest_inprocess(
        *words, "--dst-variants=24", "-p", "no:cacheprovider", "--dst-report=out.json"
    )
    found = gate(touchy)
    violations = read_report(touchy.path / "out.json")["summary"]["violations"]
    assert (result.ret, found["verdict"]) == (1, "regression")
    reasons = [one["reason"] for one in found["findings"] if one["verdict"] == "regression"]
    assert [reason.split()[0] for reason in reasons] == [str(violations)]
    assert "edits of earlier turns" in reasons[0]


@WORKERS
def test_a_build_that_got_worse_is_a_regression(
    known: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run(known, "broken", *workers)
    assert result.ret == 1
    assert "failed" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(
        [
            "verdict *(regression); *",
            "failed: the failure rate changed by +*; +2.00 pp are allowed",
        ]
    )
    found = gate(known)
    assert found["verdict"] == "regression"
    assert found["comparison"]["new_violations"]
    assert found["comparison"]["slots"]["hotel-name"]["after"] > 0.3


@pytest.mark.usefixtures("other_hashes")
def test_neither_report_nor_baseline_depends_on_the_workers(known: pytest.Pytester) -> None:
    texts = []
    for workers in ((), ("-n", "2")):
        run(known, "rather_broken", *workers)
        lines = (known.path / "out.json").read_text(encoding="utf-8").splitlines()
        run(known, "steady", "--dst-update-baseline", *workers)
        baseline = (known.path / "base.json").read_text(encoding="utf-8")
        texts.append(([line for line in lines if not line.startswith('"run": ')], baseline))
    assert texts[0] == texts[1]


def test_a_build_that_got_better_passes(known: pytest.Pytester) -> None:
    run(known, "broken", "--dst-update-baseline")
    assert run(known, "steady").ret == 0


@pytest.mark.parametrize(("policy", "status"), [("warn", 0), ("fail", 7)])
def test_few_dialogues_are_inconclusive(bot: pytest.Pytester, policy: str, status: int) -> None:
    few = ("--dst-turns=8", f"-odst_inconclusive={policy}", "-odst_max_new_violations=1000")
    run(bot, "steady", "--dst-update-baseline", *few)
    result = run(bot, "broken", *few)
    assert result.ret == status
    result.stdout.fnmatch_lines(
        [
            "verdict *inconclusive; *",
            "inconclusive: *too few dialogues for an interval*; about 6 dialogues are needed*",
        ]
    )
    assert gate(bot)["findings"][1]["dialogues_needed"] == 6


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--dst-seed=1", "seed: 0 in the baseline, 1 now"),
        ("--dst-validity=edit-rate", "the validity profile: strict in the baseline, edit-rate now"),
        ("--dst-attack=cumulative", "attack: hybrid in the baseline, cumulative now"),
    ],
)
def test_another_campaign_is_named(known: pytest.Pytester, option: str, named: str) -> None:
    result = run(known, "steady", option)
    assert result.ret == 9
    result.stdout.fnmatch_lines(
        [
            "verdict *(not-compared); *",
            f"not compared with the baseline: {named}",
            "write the baseline again with --dst-update-baseline, *",
        ]
    )
    assert gate(known)["not_compared"] == [named]
    assert run(known, "steady", option, "-odst_inconclusive=fail").ret == 9
    assert run(known, "steady", option, "-odst_inconclusive=allow").ret == 0


def test_a_baseline_of_another_version_names_both(known: pytest.Pytester) -> None:
    path = known.path / "base.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f'"tool": "{__version__}"', '"tool": "0.0.7"'), encoding="utf-8")
    result = run(known, "steady", "--dst-seed=1")
    assert result.ret == 9
    result.stdout.fnmatch_lines(["pytest-dstfuzz 0.0.7 wrote the baseline*==0.0.7*"])


def test_other_data_of_the_same_name_has_nothing_in_common(bot: pytest.Pytester) -> None:
    talk = {"dialogue_id": "p1", "utterances": ["A large one with olives", "Thin, please"]}
    path = bot.path / "talks.jsonl"
    for word, options in (("olives", ("--dst-update-baseline",)), ("capers", ())):
        talk["utterances"] = [f"A large one with {word} on top", "And deliver it please"]
        path.write_text(json.dumps(talk) + "\n", encoding="utf-8")
        result = run(bot, "steady", "--dst-data=talks.jsonl", *options)
    result.stdout.fnmatch_lines(
        [
            "verdict *(not-compared); *",
            "not compared *: the baseline and this run have no turn in common",
            "compared: 0 of the 1 dialogues of this run",
            "dialogues that changed, compared up to the change: 1 (p1)",
        ]
    )


def test_another_lexicon_is_named(known: pytest.Pytester) -> None:
    known.makepyfile(
        test_mine="import pytest\n"
        "from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon\n"
        "class Zebras:\n"
        "    name = 'zebras'\n"
        "    def synonyms(self, word, pos=None): return ('zebra',)\n"
        "@pytest.fixture(scope='session')\n"
        "def dst_lexicon(): return load_lexicon().with_sources(synonyms=Zebras())\n" + SUITE
    )
    result = run(known, "steady")
    assert result.ret == 9
    result.stdout.fnmatch_lines(["not compared *: the lexicon: * in the baseline, * now"])


def test_part_of_the_turns_is_compared(known: pytest.Pytester) -> None:
    known.makepyfile(test_mine=SUITE)  # Another name of the test is no other campaign.
    result = run(known, "steady", "-k", "t0]")
    result.stdout.fnmatch_lines(["turns only in the baseline: 3*, only in this run: 0"])
    assert gate(known)["verdict"] == "pass"


@WORKERS
def test_a_build_that_forgets_is_drift(known: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = run(known, "forgetful", *workers)
    assert result.ret == 8
    result.stdout.fnmatch_lines(
        [
            "verdict *(drift); *",
            "failed: clean answers changed at 9 of 45 turns: slots lost hotel-area (9); *",
            "  *-t*: hotel-area: * -> none",
            "  and 4 more turns, in the JSON report (--dst-report)",
            "if the new answers are right, *",
            "compared with the baseline *",
        ]
    )
    found = gate(known)
    assert found["verdict"] == "drift"
    assert found["comparison"]["clean"]["lost"] == {"hotel-area": 9}
    report = read_report(known.path / "out.json")
    for text in (html_text(report), markdown_text(views_of(report))):
        assert re.search("-t0(</span>)?: hotel-area: north -> none", html.unescape(text))
    redacted = run(known, "forgetful", "--dst-redact", *workers)
    redacted.stdout.fnmatch_lines(["  *-t*: hotel-area: x -> none"])
    redacted.stdout.no_fnmatch_line("*north*")
    assert run(known, "forgetful", "-odst_max_clean_drift=20%").ret == 0
    assert run(known, "forgetful", "--dst-update-baseline").ret == 0
    assert run(known, "forgetful").ret == 0


@pytest.mark.parametrize(
    ("model", "what"), [("silent", "empty"), ("stubborn", "the same: hotel-*")]
)
def test_one_answer_to_everything_is_never_green(
    known: pytest.Pytester, model: str, what: str
) -> None:
    message = f"failed: the clean answers to all 45 turns are {what}; a tracker that *"
    result = run(known, model)
    assert result.ret == 8
    result.stdout.fnmatch_lines(["failed: clean answers changed at 45 of 45 *", message])
    result = run(known, model, "--dst-update-baseline")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: the baseline was not written: the clean *"])
    for options in ((), ("--dst-max-failure-rate=5%",), ("--dst-fail-on=violation",)):
        result = known.runpytest_inprocess(f"--dst-model=mybot:{model}", *OPTIONS, *options)
        assert result.ret == 1, options
        result.stdout.fnmatch_lines([message])
    picked = known.runpytest_inprocess(f"--dst-model=mybot:{model}", *OPTIONS, "-k", "t0]")
    assert picked.ret == 0


def test_one_answer_of_a_suites_own_tracker_is_never_green(bot: pytest.Pytester) -> None:
    fixture = "import pytest, mybot\n@pytest.fixture(scope='session')\n"
    bot.makepyfile(test_mine=f"{fixture}def dst_model(): return mybot.silent\n{SUITE}")
    result = bot.runpytest_inprocess(*OPTIONS)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: the clean answers to all 45 turns are empty; *"])
    assert bot.runpytest_inprocess(*OPTIONS, "-k", "t0]").ret == 0


#: A bot whose answers differ, although none says anything -> the options of its run.
EMPTY_BOTS = {
    "ignored-slot": ('{"request-id": number}', ("--dst-arguments=request-id=ignore",)),
    "ignored-tool": (
        '{"tool_calls": [{"function": {"name": "log", "arguments": {"id": number}}}]}',
        ("--dst-outcome=tool-calls", "--dst-arguments=log=ignore"),
    ),
    "fallbacks": (
        '["I do not know.", "What do you mean?"][int(number, 16) % 2]',
        ("--dst-outcome=reply", "--dst-repeatable"),
    ),
    "ticket": (
        '"Thank you, I noted that as case " + number',
        ("--dst-outcome=reply", "--dst-repeatable", "--dst-compare=polarity"),
    ),
}


def write_empty_bot(pytester: pytest.Pytester, answer: str, *, tools: bool) -> None:
    """Write a bot whose answers depend on the message, and 20 dialogues of one turn."""
    taken = "messages, tools" if tools else "context"
    asked = "messages[-1]['content']" if tools else "context.user"
    pytester.makepyfile(
        mybot="import hashlib\n"
        f"def track({taken}):\n"
        f"    number = hashlib.md5({asked}.encode()).hexdigest()\n"
        f"    return {answer}\n"
    )
    texts = [f"please book the table number {number} for my friend" for number in range(20)]
    log = {"name": "log", "parameters": {"type": "object", "properties": {"id": {}}}}
    rows = [
        {
            "messages": [{"role": "user", "content": text}],
            "tools": [{"type": "function", "function": log}],
        }
        for text in texts
    ]
    pytester.makefile(".jsonl", own="\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize("kind", EMPTY_BOTS)
def test_answers_that_agree_by_the_comparison_are_never_green(
    pytester: pytest.Pytester, kind: str
) -> None:
    answer, options = EMPTY_BOTS[kind]
    write_empty_bot(pytester, answer, tools="--dst-outcome=tool-calls" in options)
    own = ("--dst-model=mybot:track", "--dst-data=own.jsonl", "--dst-variants=1", *options)
    result = pytester.runpytest_inprocess(*own, "--dst-max-failure-rate=5%")
    assert result.ret == 1
    text = " ".join(result.stdout.str().split())
    assert "nothing was compared: " in text or "are fallback replies" in text


OWN_COMPARISONS = {
    "marker": (
        "states",
        (
            "@pytest.mark.dst(arguments={'*': 'ignore'})\n"
            "def test_own(dst_turn):\n"
            "    dst_turn.assert_unchanged()\n"
        ),
    ),
    "assertion": (
        "states",
        (
            "def test_own(dst_turn):\n"
            "    dst_turn.assert_unchanged(arguments={'request-id': 'ignore'})\n"
        ),
    ),
    "tool": (
        "tools",
        (
            "@pytest.mark.dst(arguments={'log': 'ignore'})\n"
            "def test_own(dst_turn):\n"
            "    dst_turn.assert_unchanged()\n"
        ),
    ),
    "fixture": (
        "replies",
        (
            "@pytest.fixture(scope='session')\n"
            "def dst_compare():\n"
            "    return lambda before, after: True\n"
            "def test_own(dst_turn):\n"
            "    dst_turn.assert_unchanged()\n"
        ),
    ),
}


@pytest.mark.parametrize("workers", [(), ("-n2", "-pno:cacheprovider")], ids=["one", "xdist"])
@pytest.mark.parametrize("kind", OWN_COMPARISONS)
def test_no_test_passes_a_gate_with_a_comparison_of_its_own_that_sees_no_difference(
    pytester: pytest.Pytester, kind: str, workers: tuple[str, ...]
) -> None:
    bot, code = OWN_COMPARISONS[kind]
    answer, options = {
        "states": ('{"request-id": number}', ()),
        "tools": (EMPTY_BOTS["ignored-tool"][0], ("--dst-outcome=tool-calls",)),
        # One clean answer is a fallback, which the comparison takes for an answer, too.
        "replies": (
            '"I do not know." if "number 7 " in context.user else "Your case is " + number',
            ("--dst-outcome=reply", "--dst-repeatable"),
        ),
    }[bot]
    write_empty_bot(pytester, answer, tools=bot == "tools")
    pytester.makepyfile(
        test_own=f"import pytest\n{code}"
        # Another test, whose comparison sees each difference, does not help.
        "def test_twice(dst_turn):\n"
        "    dst_turn.result\n"
    )
    own = ("--dst-model=mybot:track", "--dst-data=own.jsonl", "--dst-variants=1", *options)
    gated = (*own, "--dst-turns=20", "--dst-max-failure-rate=100%", "test_own.py", *workers)
    result = pytester.runpytest_inprocess(*gated)
    assert result.ret == 1
    assert "nothing was compared: " in " ".join(result.stdout.str().split())


def test_the_accuracy_of_the_clean_answers_is_shown_and_gated(bot: pytest.Pytester) -> None:
    options = ("--dst-model=mybot:steady", *OPTIONS, "--junitxml=junit.xml")
    result = bot.runpytest_inprocess(*options)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["unmodified *0.00 % of the clean answers are right (0 of 45 with labels)"]
    )
    assert '"dst_accuracy" value="0.0000"' in (bot.path / "junit.xml").read_text(encoding="utf-8")
    result = bot.runpytest_inprocess(*options, "-odst_min_accuracy=50%")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: the accuracy of * is under the limit of 50.00 %"])
    assert gate(bot)["findings"][0]["gate"] == "min-accuracy"
    # It says nothing about violations: each still fails its test.
    broken = ("--dst-model=mybot:broken", *OPTIONS, "-odst_min_accuracy=0%")
    assert bot.runpytest_inprocess(*broken).parseoutcomes()["failed"] == 45


def test_accuracy_without_labels_is_told_before_the_run(bot: pytest.Pytester) -> None:
    talk = {"dialogue_id": "p1", "utterances": ["A large one with olives", "Thin, please"]}
    (bot.path / "talks.jsonl").write_text(json.dumps(talk) + "\n", encoding="utf-8")
    result = bot.runpytest_inprocess(
        "--dst-model=mybot:steady", "--dst-data=talks.jsonl", "-odst_min_accuracy=50%"
    )
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["ERROR: *min-accuracy needs labels, and the data 'talks' has none*"]
    )


def test_a_run_that_a_budget_ended_passes_only_if_it_covered_half_of_the_turns(
    bot: pytest.Pytester,
) -> None:
    options = ("--dst-model=mybot:steady", *OPTIONS, "--dst-max-failure-rate=20%")
    covered = bot.runpytest_inprocess(*options, "--dst-max-calls=150")
    assert covered.ret == 0
    covered.stdout.fnmatch_lines(["not tested*the budget of*"])
    assert bot.runpytest_inprocess(*options, "--dst-max-calls=30").ret == 1


@pytest.mark.parametrize(
    ("mark", "workers"),
    [
        ("skip(reason='flaky')", ()),
        ("xfail(run=False)", ()),
        ("xfail(run=False)", ("-n", "2")),
    ],
)
def test_a_suite_that_asks_for_nothing_passes_no_gate(
    known: pytest.Pytester, workers: tuple[str, ...], mark: str
) -> None:
    fixture = "import pytest, mybot\n@pytest.fixture(scope='session')\n"
    fixture += f"def dst_model(): return mybot.steady\n@pytest.mark.{mark}\n"
    known.makepyfile(test_mine=f"{fixture}{SUITE}", test_other="def test_it(): pass\n")
    for options, status in (
        (("--dst-baseline=base.json",), 6),
        (("--dst-max-failure-rate=50%",), 1),
        ((), 0),
    ):
        result = known.runpytest_inprocess(*options, *OPTIONS, *workers)
        assert result.ret == status
        failed = "failed: no turn was tested (45 selected turns have no result)"
        assert (failed in result.outlines) == bool(status)
    # The user asked for a verdict, and the other tests give none.
    assert known.runpytest_inprocess("--dst-baseline=base.json", *OPTIONS, "test_other.py").ret == 6


#: Tests, and hooks of ``conftest.py``, that leave all turns but the first without a result.
UNRUN = {
    "body": ("if dst_turn.turn.index: pytest.skip('later')\n    dst_turn.assert_unchanged()", ""),
    "unused": ("dst_turn.turn.index or dst_turn.assert_unchanged()", ""),
    "mark": (
        "dst_turn.assert_unchanged()",
        """
def pytest_collection_modifyitems(items):
    for item in items:
        if "-t0]" not in item.name:
            item.add_marker(pytest.mark.xfail(run=False))
""",
    ),
    "protocol": (
        "dst_turn.assert_unchanged()",
        """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return None if "-t0]" in item.name else True
""",
    ),
}


@pytest.mark.parametrize("way", UNRUN)
def test_tests_without_a_result_pass_no_gate(bot: pytest.Pytester, way: str) -> None:
    test, hook = UNRUN[way]
    own = "import pytest, mybot\n@pytest.fixture(scope='session')\ndef dst_model(): "
    bot.makepyfile(test_mine=f"{own}return mybot.steady\ndef test_state(dst_turn):\n    {test}\n")
    bot.makeconftest(f"import pytest\n{hook}")
    few = (*OPTIONS, "--dst-turns=6", "--junitxml=junit.xml")
    update = ("--dst-baseline=base.json", "--dst-update-baseline")
    result = bot.runpytest_inprocess(*few, *update)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: the baseline was not written: * no result*Deselect*"])
    assert not (bot.path / "base.json").exists()
    # Tests that a user deselects need not count.
    assert bot.runpytest_inprocess(*few, *update, "-k", "t0]").ret == 0
    assert bot.runpytest_inprocess(*few, "--dst-baseline=base.json").ret == 6
    bot.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-failure-rate = '50%'\n")
    result = bot.runpytest_inprocess(*few)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: only * of 6 turns were run (* no result): *Deselect*"])
    assert "turns were run" in (bot.path / "junit.xml").read_text(encoding="utf-8")


def test_a_session_that_a_test_ends_in_peace_passes_no_gate(known: pytest.Pytester) -> None:
    fixture = "import pytest, mybot\n@pytest.fixture(scope='session')\n"
    fixture += f"def dst_model(): return mybot.steady\n{SUITE}"
    leave = "def test_then():\n    pytest.exit('enough', returncode=0)\n"
    known.makepyfile(
        test_mine=f"{fixture}{leave}@pytest.mark.dst(seed=1)\n{SUITE.replace('state', 'more')}"
    )
    result = known.runpytest_inprocess("--dst-max-failure-rate=50%", *OPTIONS)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: only * turns were run (pytest.exit(): enough): *"])


#: A tracker that ends pytest with status 0 after so many contexts, in each process.
LEAVES = """
import itertools, pytest
numbers = itertools.count(1)
def bot(context):
    if next(numbers) == {asked}:
        pytest.exit("enough of it", returncode=0)
    return {{"hotel-name": context.user}}
"""


@WORKERS
@pytest.mark.parametrize("options", [(), ("--dst-max-failure-rate=100%",)], ids=["no", "gate"])
def test_a_tracker_that_ends_pytest_before_the_first_test_passes_nothing(
    pytester: pytest.Pytester, workers: tuple[str, ...], options: tuple[str, ...]
) -> None:
    pytester.makepyfile(leaves=LEAVES.format(asked=2))
    result = pytester.runpytest_inprocess("--dst-model=leaves:bot", *OPTIONS, *options, *workers)
    assert result.ret == 6
    assert result.errlines[0].startswith("Exit: nothing was tested:")
    assert "enough of it" in result.errlines[0]


@pytest.mark.parametrize(("workers", "status"), [((), 1), (("-n", "2"), 2)])
def test_a_tracker_that_ends_pytest_in_a_test_passes_no_gate(
    pytester: pytest.Pytester, workers: tuple[str, ...], status: int
) -> None:
    pytester.makepyfile(leaves=LEAVES.format(asked=1), test_mine=f"{OWN}{SUITE}")
    result = pytester.runpytest_inprocess("--dst-max-failure-rate=100%", *OPTIONS, *workers)
    assert result.ret == status
    result.stdout.fnmatch_lines(["failed: only 0 of 45 turns were run (pytest.exit(): enough of*"])
    if not workers:  # A run without a gate may end as the suite likes.
        assert pytester.runpytest_inprocess(*OPTIONS).ret == 0


OWN = """
import leaves, pytest
@pytest.fixture(scope="session")
def dst_model():
    return leaves.bot
"""
EXITS = "import pytest\n{hook}\n    pytest.exit('no service', returncode=0)\n"


def test_a_hook_that_ends_pytest_passes_no_gate_of_our_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(leaves=LEAVES.format(asked=1), test_mine=f"{OWN}{SUITE}")
    pytester.makepyfile(test_other="def test_it(): pass\n")
    pytester.makeini("[pytest]\ndst_max_failure_rate = 100%\ndst_turns = 4\n")
    for hook, typed, status in (
        ("def pytest_configure():", (), 6),
        ("def pytest_configure():", ("-n", "2"), 6),
        ("def pytest_configure():", ("--no-dst-max-failure-rate",), 0),
        ("def pytest_configure():", ("--no-dst-max-failure-rate", "--dst-model=leaves:bot"), 6),
        ("def pytest_configure():", ("--collect-only",), 0),
        ("def pytest_sessionstart():", (), 6),
        ("def pytest_sessionstart():", ("-n", "2"), 6),
        ("def pytest_sessionstart():", ("--no-dst-max-failure-rate",), 0),
        ("def pytest_sessionstart():", ("--dst-max-failure-rate=5%",), 6),
        ("def pytest_collection():", (), 6),
        ("def pytest_collectstart():", (), 6),
        ("def pytest_collection_modifyitems():", (), 1),
        ("def pytest_collection_modifyitems():", ("test_other.py",), 0),
        ("def pytest_runtest_setup():", (), 1),
        ("def pytest_runtest_setup():", ("test_other.py",), 0),
    ):
        pytester.makeconftest(EXITS.format(hook=hook))
        found = pytester.runpytest_inprocess("-p", "no:cacheprovider", *typed)
        assert found.ret == status, (hook, typed)


@pytest.mark.parametrize("start", ["configure", "sessionstart", "collection"])
def test_a_hook_that_ends_pytest_passes_no_gate_of_a_table(
    pytester: pytest.Pytester, start: str
) -> None:
    pytester.makepyfile(test_other="def test_it(): pass\n")
    pytester.makeconftest(EXITS.format(hook=f"def pytest_{start}():"))
    assert pytester.runpytest_inprocess().ret == 0
    pytester.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-failure-rate = '5%'\n")
    found = pytester.runpytest_inprocess()
    assert found.ret == 6
    assert "nothing was tested" in found.errlines[-1]


FIRST = "@pytest.hookimpl(tryfirst=True)\n"
#: Hooks at the end of a run that would turn its status into 0.
LATE = [
    "def pytest_sessionfinish():\n    pytest.exit('x', returncode=0)",
    f"{FIRST}def pytest_sessionfinish():\n    pytest.exit('x', returncode=0)",
    f"{FIRST}def pytest_sessionfinish(session):\n    session.exitstatus = 0",
    "def pytest_sessionfinish(session):\n    session.exitstatus = 0",
    f"{FIRST}def pytest_terminal_summary():\n    pytest.exit('x', returncode=0)",
    "def pytest_sessionfinish():\n    sys.exit(0)",
    "def pytest_terminal_summary():\n    sys.exit()",
    "def pytest_unconfigure():\n    sys.exit(0)",
]


PASSING = [
    (("--dst-max-failure-rate=100%",), 0),
    (("--no-dst-max-failure-rate", "--dst-fail-on=gate"), 0),
    (("test_other.py",), 0),
    (("--collect-only",), 0),
]


@pytest.mark.parametrize("hook", LATE)
def test_a_hook_at_the_end_leaves_the_status_of_a_gate(
    pytester: pytest.Pytester, hook: str
) -> None:
    pytester.makepyfile(leaves=LEAVES.format(asked=0), test_mine=f"{OWN}{SUITE}")
    pytester.makepyfile(test_other="def test_it(): pass\n")
    pytester.makeini("[pytest]\ndst_max_failure_rate = 5%\ndst_turns = 4\n")
    pytester.makeconftest(f"import pytest, sys\n{hook}\n")
    for typed, status in (
        ((), 1),
        # A process that sys.exit() ends has no result in this process.
        *(() if "sys.exit" in hook else PASSING),
    ):
        found = pytester.runpytest_inprocess("-p", "no:cacheprovider", *typed)
        assert found.ret == status, typed
        assert ("a hook set the exit status 0" in found.stderr.str()) == bool(status)


@WORKERS
def test_a_service_that_dies_is_infrastructure(
    known: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run(known, "dies", "--dst-max-failure-rate=0", *workers)
    assert result.ret == 6
    assert "failed" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(
        [
            "verdict *(infrastructure); *",
            "failed: the tracker failed on * of 45 turns, more than *connection reset*",
        ]
    )
    assert gate(known)["verdict"] == "infrastructure"


def test_a_service_that_is_dead_is_infrastructure(known: pytest.Pytester) -> None:
    result = run(known, "dead")
    assert result.ret == 6
    result.stderr.fnmatch_lines(["*no route to host* (verdict: *(infrastructure))"])
    # Without a baseline it is what it was.
    assert known.runpytest_inprocess("--dst-model=mybot:dead", *OPTIONS).ret == 4


def test_a_dead_tracker_of_a_suite_is_infrastructure(known: pytest.Pytester) -> None:
    fixture = "import pytest, mybot\n@pytest.fixture(scope='session')\n"
    known.makepyfile(test_mine=f"{fixture}def dst_model(): return mybot.dead\n{SUITE}")
    options = ("--dst-baseline=base.json", *OPTIONS)
    assert known.runpytest_inprocess(*options).ret == 6


def test_a_run_that_a_budget_ended_early_is_infrastructure(known: pytest.Pytester) -> None:
    result = run(known, "broken", "--dst-max-calls=30")
    assert result.ret == 6
    result.stdout.fnmatch_lines(["failed: only * of 45 turns were run (the budget of 30 *"])
    result = run(known, "broken", "--dst-max-calls=60", "--dst-update-baseline")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed: the baseline was not written: the budget of *"])


def test_a_dying_service_leaves_no_baseline(bot: pytest.Pytester) -> None:
    result = run(bot, "dies", "--dst-update-baseline")
    assert result.ret == 6
    result.stdout.fnmatch_lines(["failed: the baseline was not written: the tracker fa*"])
    assert not (bot.path / "base.json").exists()


def test_pytests_own_exit_statuses_stay(known: pytest.Pytester) -> None:
    known.makepyfile(test_mine=SUITE, test_other="def test_other(): assert False")
    assert run(known, "steady").ret == 1
    assert run(known, "steady", "--dst-turns=none").ret == 4
    assert run(known, "steady", "-k", "nothing_of_that_name").ret == 5


def test_a_missing_baseline_is_one_message_before_the_run(bot: pytest.Pytester) -> None:
    result = run(bot, "steady")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["ERROR: there is no baseline base.json: write one with --dst-update-baseline"]
    )
    bot.makepyfile(test_mine=SUITE)
    bot.makeini("[pytest]\ndst_baseline = nowhere.json\n")
    fixture = "import pytest, mybot\n@pytest.fixture(scope='session')\n"
    bot.makepyfile(test_mine=f"{fixture}def dst_model(): return mybot.steady\n{SUITE}")
    result = bot.runpytest_inprocess()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: there is no baseline *nowhere.json: *"])


@pytest.mark.parametrize("option", ["--dst-update-baseline", "-odst_max_regression=1pp"])
def test_what_needs_a_baseline_says_so(bot: pytest.Pytester, option: str) -> None:
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", option)
    assert result.ret == 4
    name = option.partition("=")[0].replace("-o", "-o ")
    result.stderr.fnmatch_lines(
        [f"ERROR: {name} needs a baseline: name it with --dst-baseline=FILE"]
    )


def test_a_baseline_that_cannot_be_written_is_told_before(bot: pytest.Pytester) -> None:
    (bot.path / "base.json").mkdir()
    result = run(bot, "steady", "--dst-update-baseline")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: cannot write base.json: it is a folder"])


def table(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{text}", encoding="utf-8")


def test_the_table_judges_parts_with_and_without_a_baseline(known: pytest.Pytester) -> None:
    table(
        known.path,
        "[tool.dstfuzz.gates]\nmax-regression = '100pp'\n"
        "[tool.dstfuzz.gates.domain.hotel]\nmax-failure-rate = '1%'\n"
        "[tool.dstfuzz.gates.slot.hotel-name]\nmax-regression = '1pp'\n",
    )
    result = run(known, "broken")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "failed: the failure rate of slot hotel-name changed by *",
            "failed: the failure rate of domain hotel * is over the limit of 1.00 %",
            "passed: the failure rate changed by *",
        ]
    )
    result = known.runpytest_inprocess("--dst-model=mybot:broken", *OPTIONS)
    result.assert_outcomes(passed=45)
    assert result.ret == 1
    assert [each["verdict"] for each in gate(known)["findings"]] == ["regression"]


@pytest.mark.parametrize(
    "limits",
    [
        "[tool.dstfuzz.gates]\nmax-regression = '2pp'\nmax-clean-drift = '1%'\n",
        "[tool.dstfuzz.gates.slot.hotel-name]\nmax-regression = '1pp'\n",
        "dst_max_regression = '2pp'\n",
    ],
)
def test_limits_of_a_comparison_let_nothing_pass_without_a_baseline(
    known: pytest.Pytester, limits: str
) -> None:
    table(known.path, limits)
    result = known.runpytest_inprocess("--dst-model=mybot:broken", *OPTIONS)
    assert result.ret == 1
    assert result.parseoutcomes()["failed"]
    assert run(known, "steady").ret == 0


def test_options_go_before_the_table(known: pytest.Pytester) -> None:
    table(
        known.path,
        "[tool.dstfuzz.gates]\nmax-regression = '100pp'\nmax-failure-rate = '100%'\n"
        "max-new-violations = 1000\n",
    )
    assert run(known, "broken").ret == 0
    assert run(known, "broken", "-odst_max_regression=1pp").ret == 1
    assert run(known, "broken", "--dst-max-failure-rate=1%").ret == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-failure = 1", "*unknown key of *'max-failure'. Did you mean 'max-failure-rate'*"),
        ("slot.hotel-aera = {}", "*unknown slot in *'hotel-aera'. Did you mean 'hotel-area'*"),
        ("domain.hotl = {}", "*unknown domain in *'hotl'. Did you mean 'hotel'*"),
        ("relation.all = {}", "*unknown relation in *'all'*value-swap*"),
        *((f"relation.{name} = {{}}", f"*{name}*{FAMILIES[name][0]}*") for name in FAMILIES),
    ],
)
def test_a_wrong_table_is_one_message(bot: pytest.Pytester, text: str, message: str) -> None:
    table(bot.path, f"[tool.dstfuzz.gates]\n{text}\n")
    result = bot.runpytest_inprocess("--dst-model=mybot:steady", *OPTIONS)
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\ndst_max_failure_rate = '1%'\n"),
        ("tox.ini", "[pytest]\ndst_max_failure_rate = 1%\n"),
        ("setup.cfg", "[tool:pytest]\ndst_max_failure_rate = 1%\n"),
    ],
)
def test_a_limit_in_a_file_that_pytest_does_not_read(
    bot: pytest.Pytester, name: str, text: str
) -> None:
    (bot.path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (bot.path / name).write_text(text, encoding="utf-8")
    result = bot.runpytest_inprocess("--dst-model=mybot:broken", *OPTIONS)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{name}*dst_max_failure_rate*pytest.ini*"])


def test_without_limits_the_report_has_no_verdict(bot: pytest.Pytester) -> None:
    bot.runpytest_inprocess("--dst-model=mybot:steady", *OPTIONS)
    assert gate(bot) is None


TWO = """
import pytest, mybot

@pytest.fixture(scope="session", params=["steady", "broken"])
def dst_model(request):
    return getattr(mybot, request.param)

"""


def test_two_trackers_are_compared_each_with_itself(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_two=TWO + SUITE)
    options = ("--dst-baseline=base.json", *OPTIONS)
    bot.runpytest_inprocess(*options, "--dst-update-baseline")
    assert bot.runpytest_inprocess(*options).ret == 0
    assert gate(bot)["verdict"] == "pass"
    after = []
    for each in json.loads((bot.path / "out.json").read_text(encoding="utf-8"))["models"]:
        found = each["gate"]["comparison"]
        assert found["share"] == 1.0
        assert found["new_violations"] == found["gone_violations"] == []
        after.append(found["after"])
    assert min(after) == 0
    assert max(after) > 0.3
    # Both have other variants now, and the verdict on the session says so.
    assert bot.runpytest_inprocess(*options, "--dst-seed=1").ret == 9
    assert gate(bot)["verdict"] == "not-compared"


def test_trackers_that_the_baseline_lacks_are_named_as_such(bot: pytest.Pytester) -> None:
    bot.makepyfile(test_two=TWO + SUITE)
    options = ("--dst-baseline=base.json", *OPTIONS)
    bot.runpytest_inprocess(*options, "--dst-update-baseline")
    renamed = TWO.replace('params=["steady", "broken"]', "params=[0, 1]")
    renamed = renamed.replace("request.param)", '["steady", "broken"][request.param])')
    bot.makepyfile(test_two=renamed + SUITE)
    done = bot.runpytest_inprocess(*options)
    assert done.ret == 9
    old = "test_two.py::dst_model[[]broken], test_two.py::dst_model[[]steady]"
    done.stdout.fnmatch_lines(
        [f"*not compared *: the baseline has no results of this tracker, only of {old}"] * 2
    )


@pytest.mark.parametrize(
    ("part", "status"),
    [("slot.hotel-nam", 1), ("domain.hotl", 1), ("slot.hotel-stars", 0), ("domain.hotel", 0)],
)
def test_a_limit_of_a_slot_that_nothing_has_does_not_pass(
    pytester: pytest.Pytester, part: str, status: int
) -> None:
    pytester.makepyfile(mybot="def track(context):\n    return {'hotel-name': context.user[:9]}\n")
    said = {"system": "", "user": "a room with four stars please", "state": {"hotel-stars": "four"}}
    talk = json.dumps({"dialogue_id": "d", "turns": [said]})
    pytester.path.joinpath("talk.jsonl").write_text(talk, encoding="utf-8")
    pytester.makepyprojecttoml(f"[tool.dstfuzz.gates.{part}]\nmax-failure-rate = '100%'\n")
    words = ("--dst-model=mybot:track", "--dst-data=talk.jsonl", "-p", "no:cacheprovider")
    result = pytester.runpytest_inprocess(*words)
    assert result.ret == status
    if status:
        result.stdout.fnmatch_lines(["failed: unknown * in *Did you mean 'hotel*"])


_SLOTS_OF_CALLS = """
import json
from pytest_dstfuzz.dialogue.load import load_dialogues

CLEAN = {turn.user for each in load_dialogues("talk.jsonl").dialogues for turn in each.turns}

def track(context):
    return {"train-day": "monday", "hotel-area": "west",
            "train-goal": "ely" if context.user in CLEAN else context.user[:5]}

def call(messages, tools=None):
    user = [each["content"] for each in messages if each["role"] == "user"][-1]
    found = {"name": "ann", "people": 2 if user in CLEAN else 9}
    made = {"name": "book", "arguments": json.dumps(found)}
    return {"tool_calls": [{"id": "1", "type": "function", "function": made}]}

def reply(messages):
    user = [each["content"] for each in messages if each["role"] == "user"][-1]
    return "We have 2 rooms." if user in CLEAN else "We have 9 rooms."
"""
_CALLS, _REPLY = ("call", "--dst-outcome=tool-calls"), ("reply", "--dst-outcome=reply")


@pytest.mark.parametrize(
    ("bot", "parts", "status"),
    [
        (("track",), ("slot.train-day", "slot.train-gaol"), 1),
        (("track",), ("domain.hotel", "domain.trian"), 1),
        (("track",), ("slot.train-day", "slot.taxi-seats"), 1),
        # Not a typo of a slot that has violations: a part of a run may lack a slot.
        (("track", "-k", "d0"), ("slot.train-day", "slot.taxi-seats"), 0),
        (("track", "-k", "d0"), ("slot.train-day", "slot.train-gaol"), 1),
        # All slots with violations have a limit.
        (("track",), ("slot.train-goal", "slot.taxi-seats"), 0),
        (_CALLS, ('slot."book.name"', 'slot."book.poeple"'), 1),
        (_CALLS, ('slot."book.name"', 'slot."book.people"'), 0),
        (_CALLS, ("domain.book", "domain.bok"), 0),
        (_REPLY, ("transformation.word_insert", "slot.rooms"), 1),
    ],
)
def test_a_typo_beside_a_limit_that_holds_fails_without_an_ontology(
    pytester: pytest.Pytester, bot: tuple[str, ...], parts: tuple[str, ...], status: int
) -> None:
    pytester.makepyfile(mybot=_SLOTS_OF_CALLS)
    talk = [
        {"dialogue_id": f"d{number}", "utterances": [f"please find me a nice train for {number}"]}
        for number in range(3)
    ]
    text = "\n".join(json.dumps(each) for each in talk)
    pytester.path.joinpath("talk.jsonl").write_text(text, encoding="utf-8")
    pytester.makepyprojecttoml(
        "".join(f"[tool.dstfuzz.gates.{part}]\nmax-failure-rate = '100%'\n" for part in parts)
    )
    words = (f"--dst-model=mybot:{bot[0]}", "--dst-data=talk.jsonl", "-p", "no:cacheprovider")
    result = pytester.runpytest_inprocess(*words, "--dst-shrink=no", *bot[1:])
    assert result.ret == status, result.outlines
    named = any(f"unknown {parts[-1].partition('.')[0]} in" in line for line in result.outlines)
    assert named == bool(status)


def test_a_typo_in_a_limit_that_compares_with_a_baseline_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mybot=_SLOTS_OF_CALLS)
    said = {"dialogue_id": "d", "utterances": ["please find me a nice train to the sea"]}
    pytester.path.joinpath("talk.jsonl").write_text(json.dumps(said), encoding="utf-8")
    given = ("--dst-model=mybot:track", "--dst-data=talk.jsonl", "-p", "no:cacheprovider")
    words = (*given, "--dst-baseline=base.json", "--dst-shrink=no", "-odst_inconclusive=allow")
    assert pytester.runpytest_inprocess(*words, "--dst-update-baseline").ret == 0
    for slot, unknown in (("train-gaol", True), ("train-goal", False)):
        pytester.makepyprojecttoml(
            "[tool.dstfuzz.gates.slot.train-day]\nmax-failure-rate = '5%'\n"
            f"[tool.dstfuzz.gates.slot.{slot}]\nmax-regression = '5pp'\n"
        )
        result = pytester.runpytest_inprocess(*words)
        assert bool(result.ret) == unknown
        assert any("unknown slot in" in line for line in result.outlines) == unknown
