"""pytest --dst-results: a folder is judged as if pytest had run the campaign; nobody is asked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

# Loaded before any inner run, which forgets the modules that it was the first to load.
from pytest_dstfuzz import __version__
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.config import Settings, settings_json, settings_of_json

BOT = """
WORDS = {"cheap": "restaurant-pricerange", "north": "hotel-area", "centre": "restaurant-area"}

def heard(context):
    said = " ".join(context.user_utterances).lower().split()
    found = {slot: word for word, slot in WORDS.items() if word in said}
    return {**found, "hotel-name": context.user.lower().split()[0]}

def hasty(context):
    # Also what is only begun to be said.
    said = " ".join(context.user_utterances).lower()
    found = {slot: word for word, slot in WORDS.items() if word[:4] in said}
    return {**found, "hotel-name": context.user.lower().split()[0][:3]}

def failing(context):
    if "cheap" in context.user:
        raise RuntimeError("out of order")
    return heard(context)
"""
#: In the place of the tracker, where none may be asked.
NO_BOT = 'raise RuntimeError("the tracker was asked for")\n'
OPTIONS = ("--turns=48", "--variants=3", "--relation=metamorphic,value-swap", "--slip-rate=20%")
TYPED = tuple(word.replace("--", "--dst-", 1) for word in OPTIONS)
PLAIN = ("-p", "no:cacheprovider", "--rootdir=.")


def campaign(folder: Path, *words: str) -> None:
    done = run_python("-m", "pytest_dstfuzz.cli", "campaign", *words, cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of one run, those of three parts put together, and baselines of two builds."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "wordbot.py").write_text(BOT, encoding="utf-8")
    line = ("--model=wordbot:heard", *OPTIONS)
    campaign(folder, *line, "--results=whole")
    for part in (1, 2, 3):
        campaign(folder, *line, f"--shard={part}/3", f"--results=part-{part}")
    words = ["merge", *(str(folder / f"part-{part}") for part in (3, 1, 2))]
    assert main([*words, f"--output={folder / 'merged'}"]) == 0
    return folder


@pytest.fixture(params=["whole", "merged"])
def results(
    made: Path, request: pytest.FixtureRequest, pytester: pytest.Pytester
) -> Iterator[Path]:
    """A folder of results, in a place without a tracker."""
    shutil.copytree(made / request.param, "found")
    pytester.makepyfile(wordbot=NO_BOT)
    yield pytester.path / "found"
    sys.modules.pop("wordbot", None)


def run(pytester: pytest.Pytester, *words: str, bot: str = BOT) -> pytest.RunResult:
    """Run a session with a tracker."""
    pytester.makepyfile(wordbot=bot)
    sys.modules.pop("wordbot", None)
    done = pytester.runpytest_inprocess("--dst-model=wordbot:heard", *TYPED, *PLAIN, *words)
    pytester.makepyfile(wordbot=NO_BOT)
    return done


def judged(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """Judge the folder."""
    return pytester.runpytest_inprocess("--dst-results=found", *PLAIN, *words)


def report(name: str) -> dict[str, str]:
    lines = Path(name).read_text(encoding="utf-8").splitlines()
    keys = [line.partition(":")[0] for line in lines]
    assert '"run"' in keys
    return {
        f"{number} {key}": line
        for number, (key, line) in enumerate(zip(keys, lines, strict=True))
        if key != '"run"'
    }


def said(done: pytest.RunResult) -> list[str]:
    """Return the verdict and its reasons, which stand at the top of the screen."""
    top = next(n for n, line in enumerate(done.outlines) if " dstfuzz ==" in line)
    return list(takewhile(lambda line: not line.startswith("unmodified"), done.outlines[top:]))


@pytest.mark.parametrize(("limit", "status"), [("0%", 1), ("100%", 5)])
def test_a_limit_fails_the_run_even_if_the_selection_leaves_no_test(
    pytester: pytest.Pytester, results: Path, limit: str, status: int
) -> None:
    done = judged(pytester, f"--dst-max-failure-rate={limit}", "-k", "nothing")
    assert done.ret == status, results


@pytest.mark.parametrize("limits", [(), ("--dst-max-failure-rate=50%",), ("--dst-redact",)])
def test_the_report_is_that_of_a_run(
    pytester: pytest.Pytester, results: Path, limits: tuple[str, ...]
) -> None:
    own = run(pytester, "--dst-report=own.json", *limits)
    done = judged(pytester, "--dst-report=found.json", "--dst-report=found.html", *limits)
    assert done.ret == own.ret
    assert report("found.json") == report("own.json")
    text = Path("own.json").read_text(encoding="utf-8")
    assert len(json.loads(text)["weaknesses"]) > 1
    assert "xx" in text or not limits or "redact" not in limits[0]
    assert Path("found.html").stat().st_size > 10_000
    figures = [line for line in own.outlines if re.match(r"(verdict|unmodified|estimate) ", line)]
    assert figures
    assert all(line in done.outlines for line in figures)
    assert results.is_dir()


def test_the_baseline_is_that_of_a_run(pytester: pytest.Pytester, results: Path) -> None:
    run(pytester, "--dst-baseline=own.json", "--dst-update-baseline")
    done = judged(pytester, "--dst-baseline=found.json", "--dst-update-baseline")
    assert done.ret == 0, results
    assert Path("found.json").read_bytes() == Path("own.json").read_bytes()


@pytest.mark.parametrize("drift", ["0%", "100%"])
def test_the_gate_is_that_of_a_run(pytester: pytest.Pytester, results: Path, drift: str) -> None:
    before = BOT.replace("def heard", "def other").replace("def hasty", "def heard")
    run(pytester, "--dst-baseline=old.json", "--dst-update-baseline", bot=before)
    limits = ("--dst-baseline=old.json", f"-odst_max_clean_drift={drift}")
    limits += ("-odst_max_new_weaknesses=0", "-odst_max_regression=0.1pp")
    own = run(pytester, "--dst-report=own.json", *limits)
    done = judged(pytester, "--dst-report=found.json", *limits)
    assert done.ret == own.ret, results
    assert done.ret in (1, 8)
    assert report("found.json") == report("own.json")
    gate = json.loads(Path("found.json").read_text(encoding="utf-8"))["gate"]
    assert gate["comparison"]["variants"]
    assert gate["verdict"] in ("drift", "regression")
    assert said(done) == said(own)


def test_its_violations_are_remembered_and_accepted(
    pytester: pytest.Pytester, results: Path
) -> None:
    run(pytester, "--dst-remember", "--dst-regressions=own")
    judged(pytester, "--dst-remember", "--dst-regressions=found-too")
    (own,), (found,) = Path("own").iterdir(), Path("found-too").iterdir()
    assert own.read_bytes() == found.read_bytes()
    entries = [json.loads(line) for line in own.read_text(encoding="utf-8").splitlines()]
    for weakness in {entry["weakness"] for entry in entries}:
        words = ["accept", weakness, "--reason=it may stay", "--regressions=own"]
        assert main(words) == 0
    run(pytester, "--dst-regressions=own", "--dst-report=own.json")
    done = judged(pytester, "--dst-regressions=own", "--dst-report=found.json")
    assert done.ret == 0, results
    done.assert_outcomes(xfailed=2)
    done.stdout.fnmatch_lines([f"{len(entries)} remembered violations are not replayed*"])
    ours, theirs = (json.loads(Path(f"{n}.json").read_text("utf-8")) for n in ("found", "own"))
    assert ours["weaknesses"] == theirs["weaknesses"]
    assert {one["accepted"] for one in ours["weaknesses"]} == {"it may stay"}
    # They are known from what they were, as nobody is asked again.
    assert (ours["regressions"], len(theirs["regressions"])) == ([], len(entries))


def test_a_relation_is_an_item(pytester: pytest.Pytester, results: Path) -> None:
    pytester.makepyfile(
        test_mine="""
        def test_turns(dst_turn):
            dst_turn.assert_holds()

        def test_tracker(dst_model):
            pass

        def test_figures(dst_report):
            assert not dst_report.results or dst_report.summary.violations

        def test_else():
            pass
        """
    )
    done = judged(pytester, "--junitxml=j.xml", "-v", "--dst-annotations=yes")
    done.assert_outcomes(passed=2, failed=2, deselected=2)
    done.stdout.fnmatch_lines(["*dstfuzz::results[[]metamorphic] FAILED*"])
    done.stdout.fnmatch_lines(
        ["*of * turns tested with the relation value-swap are broken; the plainest:"]
    )
    done.stdout.fnmatch_lines(["::error title=*"])
    text = Path("j.xml").read_text(encoding="utf-8")
    assert 'name="dst_failure_rate"' in text
    assert 'name="dst_turns_broken"' in text
    alone = judged(pytester, "dstfuzz::results[value-swap]")
    alone.assert_outcomes(failed=1)
    wrong = judged(pytester, "dstfuzz::results[negation]")
    wrong.stderr.fnmatch_lines(["*has no result under that relation*"])
    assert results.is_dir()


#: Hooks by which the tests of a folder do not run.
UNRUN = {
    "mark": "def pytest_collection_modifyitems(items):\n"
    "    for item in items: item.add_marker(pytest.mark.skip)",
    "protocol": "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_protocol(): return True",
    "loop": "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtestloop(): return True",
    "exit": "@pytest.hookimpl(tryfirst=True)\n"
    "def pytest_runtestloop(): pytest.exit('x', returncode=0)",
}


@pytest.mark.parametrize("way", UNRUN)
def test_results_that_no_test_judged_do_not_pass(
    pytester: pytest.Pytester, made: Path, way: str
) -> None:
    shutil.copytree(made / "whole", "found")
    pytester.makeconftest(f"import pytest\n{UNRUN[way]}\n")
    done = judged(pytester, "--junitxml=j.xml")
    assert done.ret == 1
    done.stdout.fnmatch_lines(["failed: the results of metamorphic, value-* were not judged*"])
    assert "were not judged" in Path("j.xml").read_text(encoding="utf-8")
    assert judged(pytester, "--dst-max-failure-rate=100%").ret == 0


def test_failures_of_the_tracker_fail(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(wordbot=BOT)
    campaign(pytester.path, "--model=wordbot:failing", *OPTIONS, "--results=found")
    done = judged(pytester)
    assert done.ret == 1
    done.stdout.fnmatch_lines(
        ["the tracker failed at * turns tested with the relation metamorphic: *out of order*"]
    )


def spoiled(results: Path, **changes: Any) -> None:
    path = results / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


@pytest.mark.parametrize("results", ["whole"], indirect=True)
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--dst-turns=100",), "--dst-turns: the results in found have turns = 48, not 100"),
        (("--dst-seed=7",), "--dst-seed: the results in found have seed = 0, not 7"),
        (("--dst-model=trade",), "have model = wordbot:heard, not trade"),
        (("--dst-relation=gold",), "relation = metamorphic,value-swap, not gold"),
        (("--dst-search=greedy",), "have search = noise+random, not greedy"),
        (("--dst-max-calls=7",), "have max-calls = none, not 7"),
        (("--dst-shard=1/2",), "--dst-shard does not work with --dst-results"),
        (("--dst-replay=abc",), "--dst-replay does not work with --dst-results"),
        (("-n2",), "-n starts several: leave -n out"),
        (("--dst-results=none",), "there is no folder none"),
        (("--dst-results=.",), "is not a folder of results, because it has no run.json"),
        (("--dst-data=other.jsonl",), "the dialogues of other.jsonl differ from those"),
    ],
)
def test_what_does_not_fit_is_refused(
    pytester: pytest.Pytester, results: Path, words: tuple[str, ...], text: str
) -> None:
    turn = {"system": "", "user": "something cheap", "state": {}}
    line = {"dialogue_id": "d", "turns": [turn]}
    Path("other.jsonl").write_text(json.dumps(line), encoding="utf-8")
    done = judged(pytester, *words)
    assert done.ret == pytest.ExitCode.USAGE_ERROR, results
    lines = [one for one in done.errlines if one]
    assert text in " ".join(lines)
    assert len(lines) == 1


def test_what_is_as_in_the_folder_may_be_said(pytester: pytest.Pytester, results: Path) -> None:
    pytester.makeini("[pytest]\ndst_model = trade\ndst_turns = 7\n")
    done = judged(pytester, *TYPED, "--dst-model=wordbot:heard", "--dst-fail-on=gate")
    assert done.ret == 0, results
    done.assert_outcomes(passed=2)


@pytest.mark.parametrize("results", ["whole"], indirect=True)
def test_what_is_not_whole_is_refused(pytester: pytest.Pytester, made: Path, results: Path) -> None:
    part = results / "results-0001.jsonl"
    content = part.read_bytes()

    def refused(text: str) -> None:
        done = judged(pytester)
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        assert text in done.stdout.str() + done.stderr.str()
        assert "Traceback" not in done.stdout.str() + done.stderr.str()

    part.write_bytes(content[:-20])
    refused("results: continue with dstfuzz campaign --model=wordbot:heard")
    part.write_bytes(content.replace(b'"outcome"', b'"outcame"', 1))
    refused("damaged results")
    part.write_bytes(b"{}\n" + content)
    refused("byte 0: not a line of results")
    part.write_bytes(content)
    spoiled(results, version="0.0.1")
    refused(f"pytest-dstfuzz 0.0.1, but this is {__version__}")
    (results / "run.json").write_text("{", encoding="utf-8")
    refused("run.json")
    shutil.rmtree(results)
    shutil.copytree(made / "part-2", results)
    refused("is part 2/3 of a run")


def settings_with(results: Path, **values: Any) -> None:
    """Write other settings to the folder, as somebody might who sends one."""
    path = results / "run.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["settings"] |= values
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("results", ["whole"], indirect=True)
def test_a_folder_runs_no_code_and_chooses_no_file(
    pytester: pytest.Pytester, results: Path
) -> None:
    evil = "from pathlib import Path\nPath('ran').write_text('')\nf = lambda one, other: True\n"
    pytester.makepyfile(evil=evil)
    settings_with(results, cache=str(pytester.path / "chosen.sqlite"))
    assert judged(pytester, "--dst-fail-on=gate").ret == 0
    settings_with(results, arguments=["hotel-name=evil:f"])
    done = judged(pytester)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "your own evil:f" in done.stderr.str()
    assert not [*pytester.path.glob("ran"), *pytester.path.glob("chosen*")]
    # Whoever judges may name it, but the run did not compare by it.
    pytester.makeini("[pytest]\ndst_arguments = hotel-name=evil:f\n")
    done = judged(pytester)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "the code of evil:f" in done.stderr.str()


@pytest.mark.parametrize("results", ["whole"], indirect=True)
def test_a_file_that_looks_the_same_is_another(pytester: pytest.Pytester, results: Path) -> None:
    path = results / "run.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["decided"]["noise"] = ["of another file"]
    path.write_text(json.dumps(content), encoding="utf-8")
    done = judged(pytester, "--dst-noise=typing,casual")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "that noise uses differs" in done.stderr.str()


OWN_RULES = {
    "comparison": ("--outcome=reply", "--compare=ownrule:same"),
    "comparison from a list": ("--outcome=reply", "--compare=numbers,ownrule:same"),
    "rule of an argument": ("--arguments=hotel-name=ownrule:same",),
}


@pytest.mark.parametrize("words", OWN_RULES.values(), ids=OWN_RULES)
def test_results_of_a_rule_that_has_changed_are_refused(
    pytester: pytest.Pytester, words: tuple[str, ...]
) -> None:
    """A gate on results that were judged by another rule would pass or fail wrongly."""
    reply = "def reply(messages):\n    return messages[-1]['content'][:9]\n"
    pytester.makepyfile(wordbot=BOT + reply, ownrule="def same(one, other):\n    return True\n")
    bot = "wordbot:reply" if "--outcome=reply" in words else "wordbot:heard"
    campaign(pytester.path, f"--model={bot}", *words, "--turns=4", "--results=found")
    pytester.makepyfile(wordbot=NO_BOT)
    typed = [word.replace("--", "--dst-", 1) for word in words if "arguments" not in word]
    if not typed:
        pytester.makeini("[pytest]\ndst_arguments = hotel-name=ownrule:same\n")
    gate = "--dst-max-failure-rate=1%"

    def judge(*more: str) -> subprocess.CompletedProcess[str]:
        line = (*PLAIN, "--dst-results=found", gate, *more)
        return run_python("-m", "pytest", *line, cwd=pytester.path)

    # All options that the results need may be repeated.
    assert judge(*typed).returncode == 0
    pytester.makepyfile(ownrule="def same(one, other):\n    return one == other\n")
    done = judge(*typed, "--dst-baseline=base.json", "--dst-update-baseline")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "the code of ownrule:same" in done.stderr
    assert not (pytester.path / "base.json").exists()


def test_results_of_another_policy_of_the_search_are_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(wordbot=BOT)
    policy, gate = pytester.path / "p.safetensors", "--dst-max-failure-rate=100%"
    agents = pytest.importorskip("pytest_dstfuzz.agents")  # A wing of its own.
    shipped = Path(agents.__file__).parent / "resources" / "agents"
    shutil.copy(shipped / "trade.safetensors", policy)
    line = ("--validity=strict", "--search=agent:./p.safetensors", "--turns=4", "--variants=1")
    campaign(pytester.path, "--model=wordbot:heard", *line, "--results=found")

    def judge() -> subprocess.CompletedProcess[str]:
        return run_python("-m", "pytest", *PLAIN, "--dst-results=found", gate, cwd=pytester.path)

    assert judge().returncode == 0
    shutil.copy(shipped / "simpletod.safetensors", policy)
    done = judge()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "policy" in done.stderr
    # Results may be judged on a machine without the policy.
    policy.unlink()
    assert judge().returncode == 0


def test_settings_of_a_judge_and_of_credentials_come_back() -> None:
    settings = Settings.of(
        outcome="reply",
        compare="judge:openai+http://me:secret@host/v1",
        model="http://host/?key=secret",
        header="X-Key: secret",
        tracker="key=secret",
    )
    plain = settings_json(settings)
    assert "secret" not in json.dumps(plain)
    again = settings_of_json(plain)
    assert again.reply.judge is not None
    assert again.reply.judge.full == str(settings.reply.judge)
    assert settings_json(again) == plain


#: Outcome -> a bot that gives this kind of answer.
KINDS = {
    "state": "def bot(context):\n    return {'hotel-area': AREA}\n",
    "reply": "def bot(messages):\n    return f'It is in the {AREA}.'\n",
    "tool-calls": (
        "def bot(messages, tools):\n    return [{'name': 'book', 'arguments': {'area': AREA}}]\n"
    ),
}
TALK = {"dialogue_id": "d", "users": ["I need a cheap hotel in the north of town, please."]}
BOOK = {"name": "book", "parameters": {"type": "object", "properties": {"area": {}}}}


def write_talks(folder: Path, outcome: str) -> tuple[str, ...]:
    """Write dialogues and tools, and return the options of a campaign for a kind of answer."""
    (folder / "talks.jsonl").write_text(json.dumps(TALK) + "\n", encoding="utf-8")
    (folder / "tools.json").write_text(json.dumps([BOOK]), encoding="utf-8")
    tools = ("--tools=tools.json",) if outcome == "tool-calls" else ()
    return (f"--outcome={outcome}", "--data=talks.jsonl", "--search=random", *tools)


@pytest.mark.parametrize("outcome", KINDS)
def test_paraphrases_with_other_verdicts_are_refused(
    pytester: pytest.Pytester, outcome: str
) -> None:
    pytester.makepyfile(kindbot=f"AREA = 'north'\n{KINDS[outcome]}")
    line = write_talks(pytester.path, outcome)
    given = [word for word in line if "search" not in word]
    assert main(["freeze", *given, "--source=phrase-table", "--output=frozen.jsonl"]) == 0
    written = Path("frozen.jsonl").read_text(encoding="utf-8")

    def review(verdict: str) -> None:
        rows = [json.loads(row) for row in written.splitlines()]
        rows = [
            row | ({"verdict": verdict, "reviewer": "a"} if "text" in row else {}) for row in rows
        ]
        Path("frozen.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")

    review("keeps")
    campaign(
        pytester.path,
        "--model=kindbot:bot",
        *line,
        "--relation=frozen:frozen.jsonl",
        "--results=found",
    )
    Path("talks.jsonl").rename("moved.jsonl")
    assert judged(pytester, "--dst-data=moved.jsonl").ret == 0
    review("changes")
    done = judged(pytester, "--dst-data=moved.jsonl", "--dst-max-failure-rate=100%")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "the reviewed paraphrases" in " ".join(done.errlines)


def test_another_ontology_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(kindbot=f"AREA = 'north'\n{KINDS['state']}")
    campaign(
        pytester.path,
        "--model=kindbot:bot",
        *write_talks(pytester.path, "state"),
        "--results=found",
    )
    assert judged(pytester).ret == 0
    Path("talks.ontology.json").write_text('{"hotel-area": ["north", "south"]}', encoding="utf-8")
    done = judged(pytester, "--dst-max-failure-rate=100%")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "the ontology" in " ".join(done.errlines)


@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize("outcome", KINDS)
def test_a_verdict_says_that_the_bot_changed_during_the_run(
    pytester: pytest.Pytester, outcome: str, changes: bool
) -> None:
    """A deployment replaces a module of the bot before Python loads it."""
    head, _, tail = KINDS[outcome].partition("\n")
    write = "    pathlib.Path('latewords.py').write_text('AREA = \"south\"\\n')\n"
    load = f"{write if changes else ''}    from latewords import AREA\n"
    pytester.makepyfile(
        kindbot=f"import pathlib\n{head}\n{load}{tail}", latewords="AREA = 'north'\n"
    )
    line = write_talks(pytester.path, outcome)
    campaign(pytester.path, "--model=kindbot:bot", *line, "--results=part")
    assert main(["merge", "part", "--output=found"]) == 0
    for words in ((), ("--dst-max-failure-rate=100%",), ("-q", "--dst-max-failure-rate=100%")):
        done = judged(pytester, *words)
        assert done.ret == 0
        assert ("may belong to two versions" in " ".join(done.outlines)) == changes, words


OWN_SEARCHES = """
from pathlib import Path
from pytest_dstfuzz.search.protocol import SearchFamily
from pytest_dstfuzz.search.searches import RandomSearch
class Own(RandomSearch):
    name = "own"
class Owns(SearchFamily):
    forms = ("own:FOLDER",)
    def make(self, name, *, seed, k):
        return Own(int(Path(name.partition(":")[2], "seed.txt").read_text()), k)
OWNS = Owns()
"""


def test_results_of_another_folder_of_an_own_search_are_refused(tmp_path: Path) -> None:
    texts = {
        "wordbot.py": BOT,
        "ownsearches.py": OWN_SEARCHES,
        "own-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: own\nVersion: 1\n",
        "own-1.dist-info/entry_points.txt": "[pytest_dstfuzz.searches]\nown = ownsearches:OWNS\n",
        "seeds/seed.txt": "1",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    seed = tmp_path / "seeds" / "seed.txt"
    line = ("--search=own:seeds", "--turns=4", "--variants=1")
    campaign(tmp_path, "--model=wordbot:heard", *line, "--results=found")

    def judge() -> subprocess.CompletedProcess[str]:
        line = (*PLAIN, "--dst-results=found", "--dst-max-failure-rate=100%")
        return run_python("-m", "pytest", *line, cwd=tmp_path)

    assert judge().returncode == 0
    seed.write_text("2", encoding="utf-8")
    changed = judge()
    assert changed.returncode == pytest.ExitCode.USAGE_ERROR
    assert "search own:seeds" in changed.stderr
    shutil.rmtree(seed.parent)
    assert judge().returncode == pytest.ExitCode.USAGE_ERROR
