"""Whole runs against trackers whose answers vary: said so, told by an option, or found out."""

from __future__ import annotations

import json
from typing import Any

import pytest

FEW = ("--dst-turns=20", "--dst-variants=3", "--dst-fail-on=gate", "--dst-report=out.json")
#: Believes the first word of the newest utterance; ``odd`` says when it does not.
BOT = """
import itertools, zlib
counter = itertools.count(1)
def track(context):
    number = next(counter)
    word = context.user.split()[0] if context.user.split() else "nothing"
    return {{"hotel-name": f"odd {{number % 2}}" if {odd} else word}}
"""


@pytest.fixture
def bot(pytester: pytest.Pytester) -> Any:
    def make(odd: str) -> None:
        pytester.makepyfile(mybot=BOT.format(odd=odd))

    return make


def run(pytester: pytest.Pytester, *options: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    result = pytester.runpytest_inprocess("--dst-model=mybot:track", *FEW, *options)
    path = pytester.path / "out.json"
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return result, report


def words(result: pytest.RunResult) -> str:
    """Return what was printed, its lines joined."""
    return " ".join(result.stdout.str().split())


def test_a_tracker_that_varies_is_refused_with_what_to_do(
    pytester: pytest.Pytester, bot: Any
) -> None:
    bot("number % 5 == 0")
    result, report = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert report == {}
    result.stderr.fnmatch_lines(["*--dst-repeatable=no*"])


def test_an_option_says_that_it_varies(pytester: pytest.Pytester, bot: Any) -> None:
    bot("number % 5 == 0")
    result, report = run(pytester, "--dst-repeatable=no", "-odst_votes=5", "-v")
    assert result.ret == pytest.ExitCode.OK
    noise = report["summary"]["noise"]
    assert noise["answers"] == 5
    assert noise["differed"] > 0
    low, high = noise["real_violations"]
    assert low <= report["summary"]["violations"] <= high + noise["expected_noise"] + 1
    assert (report["settings"]["repeatable"], report["settings"]["votes"]) == (False, 5)
    assert report["summary"]["repeats"] is None
    result.stdout.fnmatch_lines(
        ["clean answers *clean turns, asked 5 times each*", "noise *about * of * violations *"],
        consecutive=False,
    )


#: Bots with another value, or another slot, each time.
RANDOM_BOTS = {
    "values": 'return {"hotel-name": f"name {next(counter)}"}',
    "slots": 'return {SLOTS[zlib.crc32(str(next(counter)).encode()) % len(SLOTS)]: "ely"}',
}


@pytest.mark.parametrize("kind", RANDOM_BOTS)
def test_a_bot_that_answers_at_random_passes_no_gate(pytester: pytest.Pytester, kind: str) -> None:
    pytester.makepyfile(
        mybot="import itertools, zlib\ncounter = itertools.count()\n"
        "SLOTS = [f'{part}-name' for part in ('hotel', 'restaurant', 'attraction')]\n"
        "SLOTS += [f'{part}-{end}' for part in ('train', 'taxi') for end in ('departure', "
        "'destination')]\n"
        f"def track(context):\n    {RANDOM_BOTS[kind]}\n"
    )
    result, report = run(pytester, "--dst-repeatable=no", "--dst-max-failure-rate=5%")
    assert result.ret == 1
    assert report["gate"]["verdict"] == "infrastructure"
    assert "turns could not be tested, more than 5 %: the tracker's answers" in words(result)
    # A few turns may have a majority by chance.
    assert report["summary"]["turns_tested"] <= 2


#: Answers of bots to an edited text, with ``n`` counting the calls, and whether all are wrong.
WRONG_BOTS = {
    "another-value": ('{**right, "hotel-name": f"name {n}"}', True),
    "another-slot": ('{**right, f"hotel-{n}": "ely"}', True),
    "now-and-then": ("[right, {}][zlib.crc32(str(n).encode()) % 2]", False),
}


@pytest.mark.parametrize("kind", WRONG_BOTS)
def test_a_bot_that_is_random_on_edited_texts_passes_no_gate(
    pytester: pytest.Pytester, kind: str
) -> None:
    texts = [f"please book the hotel number {number} for my friend" for number in range(10)]
    rows = [{"dialogue_id": f"d{n}", "utterances": [text]} for n, text in enumerate(texts)]
    pytester.makefile(".jsonl", own="\n".join(map(json.dumps, rows)))
    answer, always = WRONG_BOTS[kind]
    pytester.makepyfile(
        mybot="import itertools, zlib\ncounter = itertools.count()\n"
        f"TEXTS = {texts!r}\n"
        "def track(context):\n    n, text = next(counter), context.user_utterances[-1]\n"
        "    right = {'hotel-name': 'h' + ''.join(filter(str.isdigit, text))}\n"
        f"    return right if text in TEXTS else {answer}\n"
    )
    result, report = run(
        pytester, "--dst-data=own.jsonl", "--dst-repeatable=no", "--dst-max-failure-rate=5%"
    )
    assert result.ret == 1
    assert report["gate"]["verdict"] == "regression"
    if always:
        assert report["summary"]["turns_broken"] == report["summary"]["turns_tested"] > 0


def test_one_answer_each_measures_no_noise(pytester: pytest.Pytester, bot: Any) -> None:
    bot("False")
    result, report = run(pytester, "--dst-repeatable=no", "--dst-error-rate=no", "-v")
    assert report["summary"]["noise"] is None
    assert "asks each context only once (--dst-error-rate=no)" in words(result)


def test_a_test_of_a_tracker_that_repeats_itself_is_noted(
    pytester: pytest.Pytester, bot: Any
) -> None:
    bot("False")
    result, report = run(pytester, "--dst-turns=2", "--dst-error-rate=5%", "-v")
    assert (
        "--dst-error-rate had no effect, because the tracker declares that it is repeatable"
        in words(result)
    )
    assert any("had no effect" in note for note in report["run"]["notes"])


def test_rare_randomness_is_found_out_and_said(pytester: pytest.Pytester, bot: Any) -> None:
    # The preflight, some 30 answers, sees nothing of it.
    bot("number > 60 and zlib.crc32(str(number).encode()) % 6 == 0")
    result, report = run(pytester)
    assert result.ret == pytest.ExitCode.OK
    found = report["summary"]["repeats"]
    assert found["violations_changed"] + found["held_changed"] > 0
    marked = [v for turn in report["turns"] for v in turn["variants"] if v["repeated"] is False]
    assert len(marked) == found["violations_changed"] + found["held_changed"]
    assert " got another answer when asked once more" in words(result)
    assert "the tracker answers the same messages differently each time" in words(result)
    assert "repeatable = False" in words(result)


def test_a_failing_test_shows_the_doubt(pytester: pytest.Pytester, bot: Any) -> None:
    bot("number > 60 and number % 3 == 0")
    result, _ = run(pytester, "--dst-fail-on=violation")
    result.stdout.fnmatch_lines(
        ["*doubt: *the variant or its clean turn got another answer when repeated*"]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("-odst_votes=4",),
            "*-o dst_votes: '4' must be odd*: write 3 or 5",
        ),
        (("-odst_votes=0",), "*-o dst_votes: '0' must be a whole number from 1 to 99*"),
        (
            ("--dst-repeatable=maybe",),
            "*--dst-repeatable=no/--no-dst-repeatable: ignored explicit argument 'maybe'*",
        ),
    ],
)
def test_mistakes_are_one_message(
    pytester: pytest.Pytester, bot: Any, options: tuple[str, ...], message: str
) -> None:
    bot("False")
    result, _ = run(pytester, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_second_answers_are_kept_apart_in_a_cache(pytester: pytest.Pytester, bot: Any) -> None:
    bot("False")
    with (pytester.path / "mybot.py").open("a", encoding="utf-8") as file:
        file.write("\ntrack.fingerprint = 'one'\n")
    _, first = run(pytester, "--dst-cache=kept.db", "--dst-turns=60")
    _, second = run(pytester, "--dst-cache=kept.db", "--dst-turns=60")
    repeated = first["summary"]["repeats"]
    assert repeated["violations"] + repeated["held"] > 0
    assert second["summary"] == first["summary"]
    assert second["turns"] == first["turns"]
    assert second["run"]["contexts"]["asked"] == 0
    # Another seed asks for other second answers of contexts that are known.
    (pytester.path / "mybot.py").write_text(
        BOT.format(odd="number > 60") + "\ntrack.fingerprint = 'one'\n", encoding="utf-8"
    )
    _, third = run(pytester, "--dst-cache=kept.db", "--dst-turns=60", "--dst-seed=1")
    changed = third["summary"]["repeats"]
    assert changed["violations_changed"] + changed["held_changed"] > 0
