"""The commands that repeat a failure, whatever the ids of dialogues are made of."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from pytest_dstfuzz.report.explain import accept_command, keyword

#: Ids that -k does not take, that it cannot tell apart, that pytest spells its own way.
IDS = (
    "call 17 (monday)",
    "call 17 (tuesday)",
    "A",
    "a",
    "caf\u00e9",
    "not",
    "x and y",
    "'",
    "\U0001f642",
)
FAIL = "--dst-model=hashing:track"


@pytest.fixture
def calls(bot: pytest.Pytester) -> pytest.Pytester:
    """A folder with a conversation of each of these ids."""
    said = ["I need a cheap hotel please", "Somewhere in the north of town would be good"]
    talks = [{"dialogue_id": name, "utterances": [said[0], "Where?", said[1]]} for name in IDS]
    text = "\n".join(json.dumps(talk) for talk in talks)
    (bot.path / "calls.jsonl").write_text(text, encoding="utf-8")
    # What it predicts stands in no utterance, so it locks nothing.
    bot.makepyfile(
        hashing="import zlib\n"
        "def track(context): return {'size': str(zlib.crc32(context.user.encode()))}\n"
    )
    return bot


@pytest.mark.nightly
def test_every_command_repeats_one_test(calls: pytest.Pytester) -> None:
    first = calls.runpytest_inprocess(FAIL, "--dst-data=calls.jsonl", "-v")
    assert first.parseoutcomes() == {"failed": 2 * len(IDS)}
    commands = re.findall(r"repeat with: pytest (.*)", first.stdout.str())
    assert len(set(commands)) == 2 * len(IDS)
    for command in commands:
        again = calls.runpytest_inprocess(*shlex.split(command), "--tb=no")
        again.assert_outcomes(failed=1, deselected=2 * len(IDS) - 1)


def test_a_command_of_a_file_repeats_one_test(calls: pytest.Pytester) -> None:
    calls.makepyfile(test_mine="def test_state(dst_turn):\n    dst_turn.assert_unchanged()\n")
    first = calls.runpytest_inprocess(FAIL, "--dst-data=calls.jsonl", "-k", keyword(IDS[0]))
    assert first.ret == 5
    first = calls.runpytest_inprocess(FAIL, "--dst-data=calls.jsonl")
    command = re.search(r"repeat with: pytest (.*)", first.stdout.str())
    assert command is not None
    calls.runpytest_inprocess(*shlex.split(command[1])).assert_outcomes(failed=1)


@pytest.mark.parametrize("own", [True, False], ids=["own suite", "built in"])
def test_the_summary_of_a_gate_says_how_to_repeat(calls: pytest.Pytester, own: bool) -> None:
    if own:
        calls.makepyfile(test_mine="def test_state(dst_turn):\n    dst_turn.assert_unchanged()\n")
    options = (FAIL, "--dst-data=calls.jsonl", "--dst-max-failure-rate=100%", "-v")
    text = calls.runpytest_inprocess(*options, ".").stdout.str()
    text = re.sub(r"\s+", " ", text)
    shown = re.findall(r" calls-test-([^:]*?), variant (\d) ", text)
    assert len(set(shown)) == 5
    line = re.search(r"to repeat one variant, number I of turn ID: pytest (.*? -k '\[ID\]')", text)
    assert line is not None
    for name, variant in shown:
        word = re.search(r"\(ID (.*)\)$", name)
        chosen = word[1] if word else f"calls-test-{name}"
        words = [
            one.replace("[ID]", f"[{chosen}]").replace("variant=I", f"variant={variant}")
            for one in shlex.split(line[1])
        ]
        again = calls.runpytest_inprocess(*words, "--tb=short")
        assert again.parseoutcomes()["failed"] in (1, 2)  # to -k "A" and "a" are the same
        assert f"--dst-variant={variant}" in again.stdout.str()


@pytest.mark.parametrize("own", [True, False], ids=["own suite", "built in"])
@pytest.mark.parametrize("relations", ["metamorphic", "metamorphic,politeness"])
def test_the_command_for_a_turn_takes_no_other(
    bot: pytest.Pytester, own: bool, relations: str
) -> None:
    if own:
        bot.makepyfile(
            "import pytest\n@pytest.mark.parametrize('own', [1])\n"
            "def test_it(dst_turn, own): dst_turn.result\n"
        )
    users = [f"please find a room for {number} nights, it must be large" for number in range(12)]
    talk = json.dumps({"dialogue_id": "d", "users": users})
    bot.path.joinpath("long.jsonl").write_text(talk, encoding="utf-8")
    options = ("--dst-data=long.jsonl", f"--dst-relation={relations}", "--dst-variants=1")
    words = (
        ("--dst-model=mybot:steady", *options)
        if not own
        else (*options, "-odst_model=mybot:steady")
    )
    command = accept_command("", keyword("long-test-d-t1"), "long-test-d-t1", "base.json")
    found = bot.runpytest_inprocess(*words, *shlex.split(command)[2:], "--collect-only", "-q")
    ids = [line for line in found.outlines if "long-test-d-t" in line]
    assert len(ids) == len(relations.split(","))
    assert all(re.search(r"long-test-d-t1\b", line) for line in ids)


def test_a_variant_of_a_test_with_more_of_them_is_repeated(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        "import pytest\n"
        "@pytest.mark.dst(variants=2)\ndef test_few(dst_turn): dst_turn.assert_unchanged()\n"
        "@pytest.mark.dst(variants=9)\ndef test_many(dst_turn): dst_turn.assert_unchanged()\n"
    )
    options = ("--dst-model=mybot:fragile", "--dst-turns=1", "--dst-variant=7")
    bot.runpytest_inprocess(*options, "-k", "many").assert_outcomes(failed=1, deselected=1)
    result = bot.runpytest_inprocess(*options)
    assert result.ret == 4
    given = "--dst-variant=7 with @pytest.mark.dst(variants=2) at test_few"
    result.stdout.fnmatch_lines(
        [f"there is no variant 7: the variants are numbered from 0 to 1 ({given}*"]
    )
    assert bot.runpytest_inprocess(*options, "--dst-variants=7").ret == 4


def test_transformations_of_a_session_do_not_bind_a_test(bot: pytest.Pytester) -> None:
    bot.makepyfile(
        "import pytest\n"
        "def test_plain(dst_turn): assert dst_turn.settings.variant.edits == ('char_drop',)\n"
        "@pytest.mark.dst(edits=['char_drop', 'word_drop', 'char_insert'])\n"
        "def test_marked(dst_turn):\n"
        "    edits = [{e.transformation for e in v.edits} for v in dst_turn.result.variants]\n"
        "    assert max(map(len, edits)) > 1\n"
    )
    options = ("--dst-turns=2", "--dst-edits=char_drop", "--dst-max-edit-rate=1")
    bot.runpytest_inprocess("--dst-model=mybot:steady", *options).assert_outcomes(passed=4)
