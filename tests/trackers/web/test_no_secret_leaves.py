"""Credentials in every place that a user can put them, and services that repeat them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from loopback import Asked, Says, Service

from pytest_dstfuzz.cli import main
from pytest_dstfuzz.dialogue.load import load_dialogues

Serve = Callable[[Callable[[Asked], Says]], Service]
MARKER = "mArKeR"
RUN = ("--dst-turns=3", "--dst-variants=1", "--dst-report=out.json", "--junitxml=out.xml")
LOUD = ("-vv", "--tb=long", "--showlocals", "-rA")


def state(asked: Asked) -> Says:
    return Says({"state": {"hotel-name": asked.body["dialogue"][-1]["user"]}})


def repeat(asked: Asked) -> str:
    """Say everything that the caller sent, as a careless service does."""
    return f"{asked.method} {asked.path} {json.dumps(dict(asked.headers))} bad token"


def good(asked: Asked) -> Says:
    return Says({"name": "bot"}) if asked.method == "GET" else state(asked)


def refusing(asked: Asked) -> Says:
    return Says(repeat(asked).encode(), 401, {"WWW-Authenticate": f"Bearer {MARKER}"})


def failing(asked: Asked) -> Says:
    if asked.method == "GET":
        return Says(repeat(asked).encode(), 404)
    if len(asked.body["dialogue"]) % 2:
        return state(asked)
    return Says(repeat(asked).encode(), 500)


def malformed(asked: Asked) -> Says:
    if asked.method == "GET" or len(asked.body["dialogue"]) % 2:
        return good(asked)
    return Says({"state": repeat(asked), "headers": dict(asked.headers)})


def declaring(asked: Asked) -> Says:
    return Says({"name": repeat(asked), "version": [repeat(asked)]})


def grouped(asked: Asked) -> Says:
    if asked.method == "GET":
        return Says({"name": "bot", "dialogues": 4})
    if "dialogues" not in asked.body or len(asked.body["dialogues"]) == 2:
        return Says({"state": repeat(asked)})
    answers = [
        {"state": {}} if len(one) % 2 else {"error": repeat(asked)}
        for one in asked.body["dialogues"]
    ]
    return Says({"answers": answers})


SERVICES = (good, refusing, failing, malformed, declaring, grouped)


@pytest.fixture
def address(request: pytest.FixtureRequest, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a service, with credentials; there are more in the environment."""
    monkeypatch.setenv("DSTFUZZ_TOKEN", f"{MARKER}-of-the-environment")
    monkeypatch.setenv("OTHER_KEY", f"{MARKER}-of-another-variable")
    service = serve(request.param)
    user, password, key = f"{MARKER}-user", f"{MARKER}%20pass%2Fword", f"{MARKER}%2Bkey"
    return service.url.replace("//", f"//{user}:{password}@") + f"/api?key={key}"


def options(prefix: str, address: str) -> list[str]:
    return [
        f"--{prefix}model={address}",
        f"--{prefix}tracker=retries=0",
        f"--{prefix}tracker=header=X-Key: {MARKER}-of-an-option",
        f"--{prefix}tracker",
        "header=X-Other: Bearer $OTHER_KEY",
    ]


#: Suffixes of the files that runs write.
WRITTEN = (".json", ".jsonl", ".xml", ".md", ".csv", ".html")


def written(folder: Path, *texts: str) -> str:
    """Return texts, and all that lies in a folder, in lower case."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in WRITTEN]
    return "\n".join([*texts, *(path.read_text(encoding="utf-8") for path in files)]).lower()


SUITE = """
import pytest
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange

def test_state(dst_turn):
    dst_turn.assert_unchanged()

def test_raises(dst_model):
    one = Context((Exchange("", "hi"), Exchange("yes?", "bye")))
    answer = dst_model.predict([one])[0]
    if isinstance(answer, Exception):
        raise answer
    assert answer is None
"""


@pytest.mark.parametrize(
    ("address", "more"),
    [*((answer, ()) for answer in SERVICES), (failing, ("-n", "1"))],
    indirect=["address"],
)
def test_a_run_tells_no_secret(
    pytester: pytest.Pytester, address: str, more: Sequence[str]
) -> None:
    pytester.makepyfile(test_mine=SUITE)
    result = pytester.runpytest_inprocess(*options("dst-", address), *RUN, *LOUD, *more)
    said = written(pytester.path, result.stdout.str(), result.stderr.str())
    assert MARKER.lower() not in said
    assert "***@127.0.0.1" in said
    # Whatever came of it, pytest itself did not break.
    assert "internalerror" not in said


def test_a_violation_is_repeated_without_secrets(
    pytester: pytest.Pytester, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", MARKER)
    address = serve(good).url.replace("//", f"//u:{MARKER}@")
    result = pytester.runpytest_inprocess(*options("dst-", address), *RUN)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*repeat with: pytest -k *",
            "*'--dst-tracker=header=X-Key: ***' '--dst-tracker=header=X-Other: Bearer $OTHER_K*",
        ]
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ("--dst-tracker", f"header=X Y: {MARKER}"),
        (f"--dst-tracker={MARKER}",),
        (f"--dst-tracker=header={MARKER}",),
        ("--dst-tracker", f"header=X-Key: {MARKER}$"),
        ("--dst-tracker", f"api_key={MARKER}"),
        ("-o", f"dst_tracker=header={MARKER}"),
        (f"--dst-tracker=password={MARKER}", f"--dst-model=http://u:{MARKER}@h"),
        (f"--dst-model=htp://u:{MARKER}@h",),
        (f"--dst-model=openai+http:/u:{MARKER}@h/v1",),
        (f"--dst-model=http//u:{MARKER}@h",),
        (f"--dst-model=http:u:{MARKER}@h",),
        (f"--dst-model=//u:{MARKER}@h",),
        (f"--dst-model=u:{MARKER}@h",),
        (f"--dst-model=http:/h/x?key={MARKER}",),
        ("--dst-tracker", f"header=X-Key: ab${MARKER}"),
        ("--dst-tracker", f"header=X-Key: ${MARKER}"),
        (f"--dst-model=http://u:{MARKER}@h:port",),
        (f"--dst-model=http://u:{MARKER}@h", "--dst-tracker=device=cuda"),
        (f"--dst-model=http://u:{MARKER}@h", "--dst-turns=many"),
        (f"--dst-model=http://u:{MARKER}@h/?k={MARKER}", "--dst-tracker=checkpoint=x"),
    ],
)
def test_a_wrong_option_tells_no_secret(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", f"{MARKER}\n{MARKER}")
    result = pytester.runpytest_inprocess("--dst-model=http://h", "-vv", *RUN, *wrong)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert MARKER not in result.stdout.str() + result.stderr.str()
    assert "ERROR: " in result.stderr.str()


#: A tracker that repeats its key in its error.
TALKER = """
from pytest_dstfuzz import register_tracker

class Bot:
    def __init__(self, api_key="", header=""):
        self.key, self.times = api_key, 0
    def predict(self, contexts):
        self.times += 1
        {condition}raise ValueError(f"bad key {{self.key}} in {{[self.key]}}")
        return [{{}} for _ in contexts]

register_tracker("talker", Bot)
"""


@pytest.mark.parametrize("condition", ["", "if self.times > 2: "])
@pytest.mark.parametrize("value", [MARKER, "$OWN_KEY"])
def test_a_bot_that_repeats_its_key_tells_no_secret(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, value: str, condition: str
) -> None:
    monkeypatch.setenv("OWN_KEY", MARKER)
    pytester.makeconftest(TALKER.format(condition=condition))
    typed = ("--dst-model=talker", f"--dst-tracker=api_key={value}", "--dst-report=r.json")
    result = pytester.runpytest_inprocess(*typed, "-vv", "--junitxml=j.xml", *RUN)
    assert result.ret != 0
    said = written(pytester.path, result.stdout.str(), result.stderr.str())
    assert MARKER.lower() not in said
    assert "bad key ***" in said


def test_a_key_that_is_a_plain_word_stays_readable(pytester: pytest.Pytester) -> None:
    bot = TALKER.format(condition="").replace("api_key", "mode")
    pytester.makeconftest(bot)
    typed = ("--dst-model=talker", "--dst-tracker=mode=strict")
    result = pytester.runpytest_inprocess(*typed, *RUN)
    assert "bad key strict" in result.stdout.str() + result.stderr.str()


@cache
def labels() -> dict[tuple[str, ...], dict[str, str]]:
    """Return what the shipped dialogues say: user utterances -> belief state."""
    return {
        dialogue.context(turn.index).user_utterances: dict(turn.state or {})
        for dialogue in load_dialogues("sample", "test").dialogues
        for turn in dialogue.turns
    }


def right(asked: Asked) -> Says:
    """Answer by the labels, so that there is something to test."""
    exchanges = asked.body["dialogue"] if asked.body else []
    return Says({"state": labels().get(tuple(part["user"] for part in exchanges), {})})


#: Command -> what the service answers, more options, and the exit status.
COMMANDS = {
    "evaluate": (failing, [], 0),
    "check-tracker": (refusing, [], 2),
    "campaign": (right, ["--results=out", "--turns=2", "--variants=1", "--report=r.html"], 0),
    "train-agent": (good, ["--data=sample", "--split=test", "--output=agent"], 2),
    "experiment rq1": (right, ["--k=1", "--output=rq1", "--max-dialogues=1", "--split=test"], 0),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_tells_no_secret(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    serve: Serve,
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DSTFUZZ_TOKEN", f"{MARKER}-of-the-environment")
    monkeypatch.setenv("OTHER_KEY", f"{MARKER}-of-another-variable")
    answer, more, expected = COMMANDS[command]
    address = serve(answer).url.replace("//", f"//u:{MARKER}@") + f"?key={MARKER}"
    status = main([*command.split(" "), *options("", address), *more])
    assert status == expected
    said = written(tmp_path, *capsys.readouterr())
    assert MARKER.lower() not in said
    assert "***@127.0.0.1" in said or command == "train-agent"


def test_a_sweep_tells_no_secret(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    serve: Serve,
) -> None:
    monkeypatch.chdir(tmp_path)
    address = serve(right).url.replace("//", f"//u:{MARKER}@")
    models = [f"{address}?key={MARKER}-{number}" for number in range(2)]
    # The file of the user may have it, so it is in another folder.
    file = tmp_path_factory.mktemp("sweep") / "sweep.toml"
    file.write_text(
        f"[settings]\nturns = 2\nvariants = 1\n[axes]\nmodel = {json.dumps(models)}\n"
        f'header = ["X-Key: {MARKER}-1", "X-Key: {MARKER}-2"]\n',
        encoding="utf-8",
    )
    assert main(["sweep", str(file), "--output", "out"]) == 0
    said = written(tmp_path, *capsys.readouterr())
    assert MARKER.lower() not in said
    assert "***@127.0.0.1" in said
    assert MARKER.lower() not in " ".join(map(str, tmp_path.rglob("*"))).lower()


@pytest.mark.parametrize(
    "words",
    [
        ["--tracker", "header=X-Key: v", f"{MARKER}"],
        [f"--hedder=X-Key: {MARKER}"],
        ["--tracker", f"header=X-Key {MARKER}"],
        ["--tracker", "header=X-Key:", f"{MARKER}"],
        ["--tracker", f"{MARKER}"],
        ["--tracker", f"=X-Key: {MARKER}"],
        [f"--trakcer=header=X-Key: {MARKER}"],
        ["--hedder", f"X-Key: {MARKER}"],
    ],
)
def test_a_header_that_is_mistyped_is_not_repeated(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--model=http://h", *words]) == 2
    err = capsys.readouterr().err
    assert MARKER not in err
    assert err.startswith("dstfuzz: error: ")
