"""How options are spelled: switches, what takes an ini value back, keys of a tracker."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import KEYS, OPTIONS, Address, Option, Settings, option, parse_option
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.options import CALL_OPTIONS
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.plugin.options import read_settings, repeat_options
from pytest_dstfuzz.relations.registry import relations_named

#: A value that each option takes, and that is not its default.
VALUES = {
    "model": "m:t",
    "checkpoint": "c",
    "device": "cuda",
    "batch_size": "2",
    "votes": "5",
    "tracker": "a=b",
    "suite": "no",
    "data": "d",
    "split": "val",
    "turns": "3",
    "shard": "3/16",
    "domains": "hotel",
    "noise_floor": "4",
    "error_rate": "1%,10%",
    "slots": "hotel-area",
    "tools": "tools.json",
    "tools_paraphrase": "words.json",
    "frozen": "f.jsonl",
    "variants": "2",
    "variant": "1",
    "transformations": "2",
    "redraws": "1",
    "edits": "char_drop,-emoji",
    "search": "greedy",
    "attack": "cumulative",
    "validity": "edit-rate",
    "noise": "typing:3,casual",
    "slip_rate": "5%",
    "max_edit_rate": "0.5",
    "lock": "x",
    "relation": "gold",
    "seed": "9",
    "outcome": "reply",
    "compare": "m:f",
    "threshold": "0.3",
    "cited": "x",
    "fallback": "y",
    "judge": "openai+http://localhost:1",
    "judge_model": "m",
    "judge_prices": "1,2",
    "judge_calls": "9",
    "history": "own",
    "perturbations": "DRS",
    "context_checks": "mortar",
    "reference": "answer",
    "call_order": "exact",
    "arguments": "book.people=number",
    "max_seconds": "5",
    "preflight_seconds": "6",
    "max_calls": "7",
    "max_tokens": "8",
    "cache": "no",
    "cache_size": "9",
    "report": "r.json",
    "html": "r.html",
    "annotations": "yes",
    "regressions": "f",
    "replay": "id",
    "max_failure_rate": "5%",
    "min_accuracy": "60%",
    "max_estimated_failures": "7.5",
    "max_estimated_rise": "2",
    "max_new_weaknesses": "1",
    "max_new_violations": "1",
    "baseline": "b",
    "max_regression": "1pp",
    "max_clean_drift": "1%",
    "inconclusive": "fail",
    "timeout": "5",
    "retries": "1",
    "dead_after": "2",
    "concurrency": "3",
    "rate_limit": "4",
    "header": "X-A: $B",
    "opening": "system",
    "request": '{"text": "$text"}',
    "response": "/slots",
    "session": "/id",
    "start": "/new {}",
    "slot_map": "s.toml",
    "service_model": "n",
    "prompt": "p.j2",
    "prices": "1,2",
    "stream": "yes",
    "tool_choice": "auto",
    "fail_on": "gate",
}
SWITCHES = [item for item in OPTIONS if item.is_switch and item.has_flag]
VALUED = [item for item in OPTIONS if not item.is_switch and item.has_ini]
#: Of those, what an ini file sets and no option does.
KEYS_ALONE = [item for item in OPTIONS if not item.has_flag and item.has_ini]
#: max_cost needs prices as well, cited its comparison, a judge something to judge, and results a
#: folder that is there.
NOT_ALONE = {"max_cost", "cited", "judge", "judge_model", "judge_prices", "judge_calls", "results"}
OF_CALLS = {item.name for item in CALL_OPTIONS}


def named(items: list[Option]) -> list[object]:
    return [pytest.param(item, id=item.name) for item in items]


def settings(pytester: pytest.Pytester, ini: str, *words: str) -> Settings:
    pytester.makeini(f"[pytest]\n{ini}\n")
    return read_settings(pytester.parseconfig(*words))


@pytest.mark.parametrize("item", named(SWITCHES))
def test_a_switch_has_one_grammar(pytester: pytest.Pytester, item: Option) -> None:
    also = ["--dst-baseline=b"] if "baseline" in item.scopes else []
    said = {
        f"--dst-{item.flag}": True,
        f"--dst-{item.flag}=yes": True,
        f"--dst-{item.flag}=no": False,
        f"--no-dst-{item.flag}": False,
    }
    for word, value in said.items():
        # A word behind it is no value of it.
        assert settings(pytester, "", word, *also, ".").option(item.name) is value, word
    for text, value in (("yes", True), ("no", False)):
        assert settings(pytester, f"dst_{item.name} = {text}", *also).option(item.name) is value
    off = settings(pytester, f"dst_{item.name} = yes", *also, f"--no-dst-{item.flag}")
    assert off.option(item.name) is False


@pytest.mark.parametrize("item", named([item for item in VALUED if item.name not in NOT_ALONE]))
def test_the_command_line_takes_back_what_an_ini_file_says(
    pytester: pytest.Pytester, item: Option
) -> None:
    ini = f"dst_{item.name} = {VALUES[item.name]}"
    if item.part == "reply" and item.name != "outcome":
        outcome = "tool-calls" if item.name in OF_CALLS else "reply"
        ini = f"dst_outcome = {outcome}\n{ini}"
    default = settings(pytester, "").option(item.name)
    assert settings(pytester, ini).option(item.name) != default
    off = f"--no-dst-{item.flag}" if item.has_flag else f"-odst_{item.name}="
    assert settings(pytester, ini, off).option(item.name) == default


@pytest.mark.parametrize("item", named(KEYS_ALONE))
def test_a_key_of_an_ini_file_is_set_once_on_the_command_line(
    pytester: pytest.Pytester, item: Option
) -> None:
    text = VALUES.get(item.name, "yes")
    words = [f"-odst_{item.name}={text}"]
    if "baseline" in item.scopes:
        words.append("--dst-baseline=b")
    if item.part == "reply":
        words += ["--dst-outcome=reply", "--dst-compare=ids,judge:openai+http://localhost:1"]
    given = parse_option(item.name, text, "")
    assert settings(pytester, "", *words).option(item.name) == given
    assert f"-o {shlex.quote(words[0][2:])}" in repeat_options(pytester.parseconfig(*words), 0) or (
        "session" in item.scopes
    )
    flag = f"--dst-{item.flag}={text}"
    assert pytester.runpytest_inprocess(flag).ret == pytest.ExitCode.USAGE_ERROR


def test_an_unknown_key_on_the_command_line_is_one_message(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    found = pytester.runpytest_inprocess("-odst_redrwas=3")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert "dst_redraws" in found.errlines[0]


def test_a_list_may_begin_anew_on_the_command_line(pytester: pytest.Pytester) -> None:
    found = settings(pytester, "dst_lock = a", "--dst-lock=b", "--no-dst-lock", "--dst-lock=c")
    assert found.variant.lock == ("c",)


@pytest.mark.parametrize("path", [".html", "out/.json", "page.txt", "page"])
def test_a_report_has_a_name_and_a_suffix(pytester: pytest.Pytester, path: str) -> None:
    with pytest.raises(UserError, match=r"--dst-report: .* such as report\.html"):
        settings(pytester, "", f"--dst-report={path}")


@pytest.mark.parametrize(
    ("ini", "words", "dropped"),
    [
        ("dst_votes = 5", ["--dst-error-rate=no"], "dst_votes"),
        ("", ["-odst_noise_floor=4", "--dst-error-rate=no"], "dst_noise_floor"),
        ("dst_error_rate = no\ndst_noise_floor = 4", [], "dst_noise_floor"),
    ],
)
def test_one_answer_each_has_no_vote(
    pytester: pytest.Pytester, ini: str, words: list[str], dropped: str
) -> None:
    with pytest.raises(UserError, match=f"{dropped}.*leave"):
        settings(pytester, ini, *words)


def test_a_limit_of_the_table_is_taken_back_too(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.dstfuzz.gates]\nmax-failure-rate = '5%'\n")
    assert settings(pytester, "").gate.fail_on == "gate"
    assert settings(pytester, "", "--no-dst-max-failure-rate").gate.fail_on == "violation"


def test_what_is_off_is_off_when_a_test_is_repeated(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ndst_variants = 9\ndst_shrink = yes\n")
    config = pytester.parseconfig("--no-dst-variants", "--no-dst-shrink", "--no-dst-max-calls")
    assert repeat_options(config, 3) == "--no-dst-variants --dst-shrink=no --dst-seed=3"


def test_keys_of_a_tracker_are_read_from_all_places(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml(
        "[tool.dstfuzz.tracker]\ntimeout = 1\nretries = 1\ndead-after = 1\nregion = 'eu'\n"
        "header = ['X-A: 1', 'X-B: 2']\nslot_map = 'beside.toml'\n"
    )
    pytester.path.joinpath("beside.toml").touch()
    ini = "dst_tracker =\n    retries=2\n    dead-after=2"
    words = ("--dst-model=m:t", "--dst-tracker", "dead-after=3", "--dst-tracker=zone=b")
    found = settings(pytester, ini, *words).tracker
    assert (found.timeout, found.retries, found.dead_after) == (1.0, 2, 3)
    assert found.slot_map == str(pytester.path / "beside.toml")
    assert [header.name for header in found.header] == ["X-A", "X-B"]
    assert [(key.name, key.value) for key in found.tracker] == [("region", "eu"), ("zone", "b")]
    assert settings(pytester, ini, "--no-dst-tracker").tracker == Settings().tracker


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["timeout"],
            "--dst-tracker: a key of a tracker must be written as KEY=VALUE, such as timeout=60",
        ),
        (["timeout=0"], "--dst-tracker timeout: '0' must be a number of seconds above 0"),
        (["header=secret"], "--dst-tracker header: a header must be written as 'Name: value'"),
        (["tiemout=3"], "--dst-tracker tiemout needs a tracker: name one with --dst-model"),
    ],
)
def test_a_wrong_key_is_one_message(
    pytester: pytest.Pytester, words: list[str], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        settings(pytester, "", *(f"--dst-tracker={word}" for word in words))
    assert str(caught.value).startswith(message)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("timeout = []", "timeout must be a text or a number"),
        ("header = 3.5\nregion = {}", "region must be a text or a number"),
        ("header = [1]", "header must be a list of texts"),
    ],
)
def test_a_wrong_table_is_one_message(pytester: pytest.Pytester, table: str, message: str) -> None:
    pytester.makepyprojecttoml(f"[tool.dstfuzz.tracker]\n{table}\n")
    with pytest.raises(UserError, match=message):
        settings(pytester, "", "--dst-seed=1")


@pytest.mark.parametrize("name", KEYS)
def test_a_key_of_a_tracker_is_no_option(pytester: pytest.Pytester, name: str) -> None:
    flag = f"--dst-{name.replace('_', '-')}={VALUES[name]}"
    assert pytester.runpytest_inprocess(flag).ret == pytest.ExitCode.USAGE_ERROR
    default = Settings().option(name)
    assert settings(pytester, "", f"--dst-tracker={flag[6:]}").option(name) != default
    if option(name).has_ini:
        return
    pytester.makepyfile("def test_nothing(): pass")
    pytester.makeini(f"[pytest]\ndst_{name} = {VALUES[name]}\n")
    found = pytester.runpytest_inprocess("--dst-seed=0")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert f"dst_{name}" in found.errlines[0]


@pytest.mark.parametrize(
    ("word", "names", "keys"),
    [
        ("relation=frozen:a.jsonl,gold", "frozen,gold", {"frozen": "a.jsonl"}),
        ("relation=tools-paraphrase:w.json", "tools-paraphrase", {"tools_paraphrase": "w.json"}),
        (
            "relation=mortar:perturbations=DRS+DRR:context-checks=story:reference=answer",
            "mortar",
            {
                "perturbations": ("DRS", "DRR"),
                "context_checks": ("story",),
                "reference": "answer",
            },
        ),
        (
            "compare=numbers,embedding:mini:threshold=0.3,ids:cited=K[0-9]+",
            "numbers,embedding:mini,ids",
            {"threshold": 0.3, "cited": "K[0-9]+"},
        ),
        (
            "compare=judge:openai+http://h:1/v1:model=m:calls=9:prices=1+2",
            "judge",
            {"judge_model": "m", "judge_calls": 9, "judge_prices": (1.0, 2.0)},
        ),
        ("compare=my_bot:same", "my_bot:same", {}),
        ('relation=frozen:"a,b:c=1.jsonl",gold', "frozen,gold", {"frozen": "a,b:c=1.jsonl"}),
        ("relation=frozen:C:/a b.jsonl,gold", "frozen,gold", {"frozen": "C:/a b.jsonl"}),
        ('compare=ids:cited="K[0-9]{1,3}",numbers', "ids,numbers", {"cited": "K[0-9]{1,3}"}),
        (
            'compare=judge:"openai+http://h:1/v1?a=b,c:model=d":model=m,numbers',
            "judge,numbers",
            {"judge": Address("openai+http://h:1/v1?a=b,c:model=d"), "judge_model": "m"},
        ),
    ],
)
def test_a_name_has_its_keys_beside_it(
    pytester: pytest.Pytester, word: str, names: str, keys: dict[str, object]
) -> None:
    ini = "dst_outcome = reply\ndst_frozen = b.jsonl\ndst_perturbations = DSD\ndst_threshold = 1"
    found = settings(pytester, ini, f"--dst-{word}")
    assert found.option(word.partition("=")[0]) == names
    assert {name: found.option(name) for name in keys} == keys
    shown = repeat_options(pytester.parseconfig(f"--dst-{word}"), 0)
    assert word.replace("b,c:model=d", "***") in shown


LISTS = [
    ("relation", "frozen:a.jsonl", "gold"),
    ("compare", "ids:cited=K[0-9]+", "numbers"),
    ("edits", "char_drop", "-emoji"),
    ("noise", "typing:3", "casual"),
    ("noise", '"a,b:1.json":2', "C:/noise.json"),
    ("domains", "hotel", "taxi"),
]


@pytest.mark.parametrize(("name", "first", "second"), LISTS)
def test_a_list_that_is_given_twice_grows(
    pytester: pytest.Pytester, name: str, first: str, second: str
) -> None:
    ini = "dst_outcome = reply"
    twice = (f"--dst-{name}={first}", f"--dst-{name}={second}")
    together = settings(pytester, ini, f"--dst-{name}={first},{second}")
    assert settings(pytester, ini, *twice) == together
    assert f"{first},{second}" in repeat_options(pytester.parseconfig(*twice), 0)
    alone = settings(pytester, ini, f"--dst-{name}={second}")
    assert settings(pytester, ini, twice[0], f"--no-dst-{name}", twice[1]) == alone
    parser = Parser("dstfuzz x", "y")
    parser.shared(name, "frozen", "cited")
    words = [[f"--{name}={first}", f"--{name}={second}"], [f"--{name}={first},{second}"]]
    assert parser.parse_all(words[0]) == parser.parse_all(words[1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("relation", "frozen:a.jsonl,frozen:b.jsonl"),
        ("relation", "same-context:reference=answer,lost-context:reference=clean"),
        ("compare", "ids:cited=a:cited=b"),
        ("compare", "judge:openai+http://h:1,judge:openai+http://h:2"),
    ],
)
def test_two_values_for_one_setting_are_refused(
    pytester: pytest.Pytester, name: str, value: str
) -> None:
    with pytest.raises(UserError, match="tw"):
        Settings.of(**{name: value}, outcome="reply")
    with pytest.raises(UserError, match="tw"):
        settings(
            pytester, "dst_outcome = reply", *(f"--dst-{name}={one}" for one in value.split(","))
        )


JUDGED = "dst_outcome = reply\ndst_compare = judge\ndst_judge = openai+http://ini:1\n"


@pytest.mark.parametrize(
    ("words", "names", "judge"),
    [
        ([], "judge", "ini"),
        (["--dst-compare=judge"], "judge", "ini"),
        (["--dst-compare=numbers,judge:openai+http://line:1"], "numbers,judge", "line"),
        (["-odst_judge=openai+http://o:1"], "judge", "o"),
        (
            ["-odst_judge=openai+http://o:1", "--dst-compare=judge:openai+http://line:1"],
            "judge",
            "line",
        ),
        (["-odst_compare=judge:openai+http://line:1"], "judge", "line"),
        (["--dst-compare=numbers"], "numbers", ""),
        (["--no-dst-compare"], None, ""),
    ],
)
def test_the_command_line_goes_before_the_ini_file(
    pytester: pytest.Pytester, words: list[str], names: str | None, judge: str
) -> None:
    for ini in (JUDGED, JUDGED.replace("judge\n", "judge:openai+http://ini:1\n", 1)):
        found = settings(pytester, ini, *words).reply
        assert found.compare == names
        assert found.judge == (f"openai+http://{judge}:1" if judge else None)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("relation=mortar:perturbation=DRS", "perturbations"),
        ("relation=gold:reference=answer", "reference"),
        ("compare=embedding:threshold=3", "--dst-compare=NAME:threshold: '3' is out of range"),
        ("relation=frozen:a.jsonl,frozen:b.jsonl", "twice"),
        ("relation=frozen:a:word=b.jsonl", "double quotes"),
        ("compare=ids:cited=(?:a,b)", "double quotes"),
        ("compare=judge:openai+http://h:1/v1?a=b:word=c", "double quotes"),
        ("compare=judge:openai+http://me:secret,secret@h:1/v1", "double quotes"),
        ("compare=judge:openai+http://me:secret=secret@h:1/v1", "double quotes"),
        ('compare=embedding:"a,b"', "no value in double quotes"),
    ],
)
def test_a_key_that_a_name_does_not_have_is_one_message(
    pytester: pytest.Pytester, word: str, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        settings(pytester, "dst_outcome = reply", f"--dst-{word}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("relation=frozen:a,b.jsonl", relations_named),
        ("compare=ids:cited=a{1,3}", comparison_by_name),
    ],
)
def test_the_end_of_a_value_is_no_name(
    pytester: pytest.Pytester, word: str, named: Callable[..., object]
) -> None:
    found = settings(pytester, "dst_outcome = reply", f"--dst-{word}")
    about = {} if named is relations_named else {"settings": found.reply}
    with pytest.raises(UserError, match="double quotes"):
        named(found.option(word.partition("=")[0]), **about)


def test_the_command_has_the_same_spellings(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("dstfuzz x", "y")
    parser.shared("model", "shrink", "tracker", *KEYS)
    words = ["--tracker", "timeout=5", "--tracker=region=eu", "--no-shrink", "--tracker=retries=2"]
    found = vars(parser.parse_all(words))
    assert (found["timeout"], found["retries"], found["shrink"]) == (5.0, 2, False)
    assert [str(key) for key in found["tracker"]] == ["region=***"]
    assert capsys.readouterr().err == ""
    for text, value in (("--shrink", True), ("--shrink=no", False)):
        assert vars(parser.parse_all([text]))["shrink"] is value
    with pytest.raises(UserError, match="unknown argument '--retries'"):
        parser.parse_all(["--retries=2"])


@pytest.mark.parametrize(
    "word",
    [
        "--dst-modle=http://user:secret@host/chat",
        "--dst-modle=user:secret@host",
        "--dst-modle=http://host/chat?key=secret",
        "--dst-modle=password=secret",
        "--dst-modle=",
        "--dst-modle=header=Authorization: Bearer secret",
        "--dst_modle=password=secret",
        "--DST-modle=password=secret",
        "\u2013dst-modle=password=secret",
        "\u2014\u2014dst-modle=password=secret",
        "---dst-modle=password=secret",
        "--dstmodle=password=secret",
        "--no-dst-modle=password=secret",
    ],
)
def test_a_misspelled_option_shows_no_credentials(pytester: pytest.Pytester, word: str) -> None:
    done = pytester.runpytest_inprocess(word, "--other=a@b")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    said = done.stdout.str() + done.stderr.str()
    assert f"unrecognized arguments: {word.partition('=')[0]}=***" in said
    assert "Did you mean '--dst-model'?" in said
    assert "--other=a@b" in said
    assert "secret" not in said


def test_an_option_of_a_suite_may_have_an_address(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "def pytest_addoption(parser): parser.addoption('--dst-proxy')\n"
        "def pytest_report_header(config): return config.getoption('--dst-proxy')"
    )
    done = pytester.runpytest_inprocess("--dst-proxy=http://user:secret@host")
    assert done.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    done.stdout.fnmatch_lines(["http://user:secret@host"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2", "at most 1 turn x 2 variants"),
        ("[2]", "--dst-variants: config.option.dst_variants has the wrong type (list [2]): set"),
    ],
)
def test_a_conftest_may_set_an_option(pytester: pytest.Pytester, value: str, message: str) -> None:
    pytester.makepyfile(bot="def track(context):\n    return {}")
    pytester.makeconftest(
        f"def pytest_configure(config):\n    config.option.dst_variants = {value}\n"
    )
    done = pytester.runpytest_subprocess(
        "--dst-model=bot:track", "--dst-data=sample", "--dst-turns=1"
    )
    assert message in done.stdout.str() + done.stderr.str()
