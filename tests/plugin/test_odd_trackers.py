"""Trackers that do what nobody expects of one: the run goes on, or ends with one message."""

from __future__ import annotations

import json
import sys

import pytest

OPTIONS = ("--dst-turns=8", "--dst-variants=2", "--dst-fail-on=gate", "--dst-report=out.json")

BOTS = '''
"""Trackers with an oddity each."""
import json
import sys

class Bot:
    def predict(self, contexts):
        return [{"hotel-name": context.user[:9]} for context in contexts]

class Usage(Bot):
    usage = "call me with a list of contexts"

class UsageRaises(Bot):
    @property
    def usage(self):
        raise RuntimeError("not before login")

class Fingerprint(Bot):
    @property
    def fingerprint(self):
        raise RuntimeError("no weights yet")

class Number(Bot):
    fingerprint = 7

class Method(Bot):
    def fingerprint(self):
        return "7"

class Everything(Bot):
    """Other attributes that are looked at."""
    @property
    def training(self):
        raise RuntimeError("no module yet")
    repeatable = notes = model = wrapped = fingerprint = training

class Empties(Bot):
    def predict(self, contexts):
        answers = super().predict(contexts)
        del contexts[:]
        return answers

class Reverses(Bot):
    def predict(self, contexts):
        contexts.reverse()
        answers = super().predict(contexts)
        return answers[::-1]

def exits(context):
    sys.exit("no licence")

def closes(context):
    raise GeneratorExit("no licence")

async def closes_late(context):
    raise GeneratorExit("no licence")

def first(count, error, answer):
    def bot(context):
        known.setdefault(len(known), context)
        if len(known) > count:
            raise error
        return answer(context)
    return bot

def state(context):
    return {"hotel-name": context.user[:9]}

def says(context):
    return "So: " + context.user

def call(context):
    called = {"name": "find", "arguments": json.dumps({"what": context.user})}
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": called}]}

exits_at_edits = first(40, SystemExit(3), state)
closes_at_edits = first(40, GeneratorExit(3), state)
replies_close = first(40, GeneratorExit(3), says)
calls_close = first(40, GeneratorExit(3), call)

known = {}

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")
    __repr__ = __str__

class Lazy(dict):
    def items(self):
        raise Silent

class Unnamed:
    def __repr__(self):
        raise Silent

class Answers:
    """Gives one odd answer, to whatever it is asked."""
    def __init__(self, answer):
        self.answer = answer
    def predict(self, contexts):
        return [self.answer] * len(contexts)

lazy, unnamed = Answers(Lazy({"hotel-name": "x"})), Answers({Unnamed(): "x"})
endless = Answers({"hotel-name": "x" * 5_000_000})

def nothing(context):
    return {"hotel-stars": float("nan")}

def countless(context):
    return {"hotel-stars": 10**5000}

def silent(context):
    raise Silent

def odd_value(context):
    return {"hotel-name": Unnamed()}

def skips(context):
    import pytest
    pytest.importorskip("no_such_module")

class Closed:
    def __init__(self):
        raise Silent
'''


@pytest.fixture
def odd(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makepyfile(oddbot=BOTS, leaves="import sys\nsys.exit('usage: leaves FILE')\n")
    monkeypatch.delitem(sys.modules, "oddbot", raising=False)
    return pytester


@pytest.mark.parametrize(
    "name",
    [
        *("Usage", "UsageRaises", "Fingerprint", "Number", "Method"),
        *("Everything", "Empties", "Reverses"),
    ],
)
def test_an_odd_tracker_is_tested_like_any_other(odd: pytest.Pytester, name: str) -> None:
    reports = []
    for model in ("Bot", name):
        run = odd.runpytest(f"--dst-model=oddbot:{model}", *OPTIONS)
        assert run.ret == 0, run.stdout.str()
        reports.append(json.loads((odd.path / "out.json").read_text(encoding="utf-8")))
        run.stdout.no_fnmatch_line("*Traceback*")
    assert reports[0]["summary"] == reports[1]["summary"]
    assert reports[1]["summary"]["violations"] > 0
    assert reports[1]["summary"]["errors"] == 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Fingerprint", "it cannot be read (RuntimeError: no weights yet)"),
        ("Number", "it is an int"),
        ("Method", "it is a method"),
    ],
)
def test_a_fingerprint_that_is_none_is_named(odd: pytest.Pytester, name: str, reason: str) -> None:
    run = odd.runpytest(f"--dst-model=oddbot:{name}", *OPTIONS)
    run.stdout.fnmatch_lines(
        [f"predictions are not cached: the tracker's 'fingerprint' must *{reason}*"]
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [("exits", "SystemExit"), ("closes", "GeneratorExit"), ("closes_late", "GeneratorExit")],
)
def test_a_tracker_that_exits_is_refused(odd: pytest.Pytester, name: str, kind: str) -> None:
    run = odd.runpytest(f"--dst-model=oddbot:{name}", *OPTIONS)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(
        [f"ERROR: the tracker raised an exception on *: {kind}: no licence (*oddbot*"]
    )
    assert "Traceback" not in run.stderr.str() + run.stdout.str()


@pytest.mark.parametrize(
    ("name", "kind", "outcome"),
    [
        ("exits_at_edits", "SystemExit", "state"),
        ("closes_at_edits", "GeneratorExit", "state"),
        ("replies_close", "GeneratorExit", "reply"),
        ("calls_close", "GeneratorExit", "tool-calls"),
    ],
)
def test_a_tracker_that_exits_later_failed_on_those_contexts(
    odd: pytest.Pytester, name: str, kind: str, outcome: str
) -> None:
    run = odd.runpytest(f"--dst-model=oddbot:{name}", f"--dst-outcome={outcome}", *OPTIONS)
    assert run.ret != 0
    report = json.loads((odd.path / "out.json").read_text(encoding="utf-8"))
    assert report["summary"]["errors"] > 0
    reasons = {v["reason"] for turn in report["turns"] for v in turn["variants"]}
    assert any(reason.startswith(f"{kind}: 3 (oddbot.py:") for reason in reasons)


@pytest.mark.parametrize("kind", ["SystemExit", "GeneratorExit"])
@pytest.mark.parametrize("name", ["dst_model", "dst_lexicon"])
def test_a_fixture_that_exits_ends_the_session_once(
    odd: pytest.Pytester, name: str, kind: str
) -> None:
    odd.makeconftest(
        f"import pytest\n\n@pytest.fixture(scope='session')\ndef {name}():\n"
        f"    raise {kind}('no licence')\n"
    )
    odd.makepyfile("def test_it(dst_turn):\n    dst_turn.assert_holds()\n")
    model = () if name == "dst_model" else ("--dst-model=oddbot:Bot",)
    run = odd.runpytest(*model, *OPTIONS)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines([f"*the fixture {name} raised {kind}: no licence (*conftest.py*"])


def test_a_comparison_that_interrupts_the_end_costs_no_report(odd: pytest.Pytester) -> None:
    odd.makepyfile(
        same="calls = []\ndef same(before, found):\n    calls.append(before)\n"
        "    if len(calls) > 100:\n        raise KeyboardInterrupt('again')\n"
        "    return before == found\n",
    )
    run = odd.runpytest(
        *("--dst-model=oddbot:says", "--dst-outcome=reply", "--dst-compare=same:same"),
        *("--dst-batch-size=4", *OPTIONS, "--dst-turns=60"),
        no_reraise_ctrlc=True,
    )
    assert run.ret == pytest.ExitCode.INTERRUPTED
    run.stdout.fnmatch_lines(["*failed: KeyboardInterrupt: again*"])
    report = json.loads((odd.path / "out.json").read_text(encoding="utf-8"))
    assert report["summary"]["turns"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("silent", "the tracker raised an exception on a clean context: Silent (*oddbot*"),
        ("Closed", "the tracker class 'Closed' cannot be created without arguments: Silent:*"),
        ("lazy", "*the tracker returned a Lazy that cannot be read: Silent"),
        ("unnamed", "*the slot <Unnamed>, which is an Unnamed; slots must be strings"),
        ("odd_value", "*the value of slot 'hotel-name' must be a string*got Unnamed <Unnamed*"),
        (
            "endless",
            "*a value of 'hotel-name' of 5,000,000 characters; at most 10,000 are allowed*",
        ),
        ("nothing", "*the value of slot 'hotel-stars' is nan, which is not allowed*"),
        ("countless", "*the value of slot 'hotel-stars' is a number of more than 100 digits"),
        ("skips", "*it called pytest.skip() before the first test: *no_such_module*"),
    ],
)
def test_what_a_tracker_cannot_say_is_one_message(
    odd: pytest.Pytester, name: str, message: str
) -> None:
    run = odd.runpytest(f"--dst-model=oddbot:{name}", *OPTIONS)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert "Traceback" not in run.stderr.str() + run.stdout.str()


def test_a_module_that_exits_when_it_is_imported_is_named(odd: pytest.Pytester) -> None:
    run = odd.runpytest("--dst-model=leaves:track", *OPTIONS)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(
        ["ERROR: *the module 'leaves' cannot be imported: SystemExit: usage: leaves FILE (*"]
    )
