"""A chat model as the judge of replies, against a service on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import asked_about, chat, completion, prompt_of, refusal
from loopback import Asked, Says, Service

import pytest_dstfuzz.plugin.hooks  # noqa: F401 - before inner runs, which forget what they load
from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.cli import main
from pytest_dstfuzz.comparisons.comparison import ComparisonResult, TextPair
from pytest_dstfuzz.comparisons.judge import (
    Judge,
    Judges,
    is_tested_model,
    protocol,
)
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import ReplySettings, Settings, TrackerSettings, build_settings
from pytest_dstfuzz.config.options import judge as address
from pytest_dstfuzz.config.secret import JUDGE_TOKEN_VARIABLE
from pytest_dstfuzz.dialogue.calls import reply_outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.report.figures import WhatItTook, judge_line, undecided_text
from pytest_dstfuzz.trackers.tracker import Prediction, Usage

ASKED = Context((Exchange("", "Are you open?"),))
SAME, OTHER = completion('{"same": true}'), completion('{"same": false}')


def replies_of(asked: Asked) -> tuple[str, str]:
    text, _, data = prompt_of(asked).partition("\n{\n")
    assert text == protocol()
    found = json.loads("{" + data)
    return found["reply A"], found["reply B"]


def by_first_letter(asked: Asked) -> Says:
    one, other = replies_of(asked)
    return SAME if one[:1] == other[:1] else OTHER


def settings_of(service: Service, **more: Any) -> ReplySettings:
    return ReplySettings(judge=address(f"openai+{service.url}"), **more)


def pairs(*texts: tuple[str, str]) -> list[TextPair]:
    return [TextPair("reply", *both, ASKED) for both in texts]


def test_each_pair_is_asked_once_in_both_orders() -> None:
    with chat(by_first_letter) as service:
        judge = Judge(settings_of(service, judge_prices=(1e6, 0.0)))
        assert judge.facts is None
        judge.prepare(pairs(("Yes.", "Yep."), ("Yup.", "Yep."), ("Yes.", "No.")))
        assert judge.compare("reply", "Yes.", "Yep.", ASKED) == ComparisonResult(same=True)
        assert judge.compare("reply", "Yep.", "Yes.", ASKED).same
        assert not judge.compare("reply", "No.", "Yes.", ASKED).same
        assert judge.compare("reply", "No.", "No.", ASKED).same
        asked = asked_about(service)
    assert {one.body["temperature"] for one in asked} == {0}
    assert sorted(map(replies_of, asked)) == [
        ("No.", "Yes."),
        ("Yep.", "Yes."),
        ("Yes.", "No."),
        ("Yes.", "Yep."),
    ]
    facts = judge.facts
    assert facts is not None
    assert (facts.model, facts.pairs, facts.unsure, facts.calls) == ("tiny", 2, 0, 4)
    assert (facts.usage.tokens, facts.usage.cost) == (60, 40.0)
    both = facts + facts
    assert (both.model, both.pairs, both.usage.answers) == ("tiny", 4, 8)
    assert judge.identity.startswith(f"judge:{service.url} tiny ")


def test_a_baseline_tells_judges_apart_by_their_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def identity(query: str, token: str | None = None) -> str:
        if token is not None:
            monkeypatch.setenv(JUDGE_TOKEN_VARIABLE, token)
        settings = ReplySettings(judge=address(f"openai+{service.url}{query}"), judge_model="tiny")
        return Judge(settings).identity

    with chat(by_first_letter) as service:
        monkeypatch.delenv(JUDGE_TOKEN_VARIABLE, raising=False)
        queries = "", "?deployment=night-shift", "?deployment=day-shift"
        found = [*map(identity, queries), identity("", "sk-mornings"), identity("", "sk-evenings")]
        assert len({*found}) == len(found)
        assert identity(queries[1], "") == found[1]
        assert identity("", "sk-evenings") == found[-1]
    secrets = "night-shift", "day-shift", "sk-mornings", "sk-evenings"
    assert not any(secret in text for text in found for secret in secrets)


def asked_context(asked: Asked) -> Says:
    text, _, data = prompt_of(asked).partition("\n{\n")
    assert text == protocol("judge-context")
    found = json.loads("{" + data)
    assert found["question"] == found["first"][-1]["user"] == found["second"][-1]["user"]
    known = any("Ada" in one["user"] for one in found["second"])
    return completion(json.dumps({"equivalent": known}))


def test_it_decides_whether_a_context_is_equivalent() -> None:
    clean = Context((Exchange("", "Who was Ada?"), Exchange("A poet.", "When was she born?")))
    kept = Context((Exchange("", "Where did Ada live?"), Exchange("Here.", "When was she born?")))
    lost = Context((Exchange("", "When was she born?"),))
    with chat(asked_context) as service:
        judge = Judge(settings_of(service, judge_calls=2))
        assert judge.keeps_context(clean, kept) is True
        assert judge.keeps_context(clean, lost) is False
        assert judge.keeps_context(clean, kept) is True
        assert len(asked_about(service)) == 2
        # The budget is spent.
        assert judge.keeps_context(kept, lost) is None
        assert len(asked_about(service)) == 2
    assert judge.facts is not None
    facts = judge.facts
    assert (facts.pairs, facts.unsure, facts.past_budget, facts.calls) == (2, 0, 1, 2)
    settings = settings_of(service)
    assert comparison_by_name("numbers,judge", settings).context_judge is not None
    assert comparison_by_name("numbers", settings).context_judge is None


def prefers_what_is_first(asked: Asked) -> Says:
    return SAME if replies_of(asked)[0] == "Yes." else OTHER


@pytest.mark.parametrize(
    "answer",
    [
        prefers_what_is_first,
        lambda _: completion("They are the same."),
        lambda _: completion('{"same": true} or {"same": false}'),
        lambda _: completion(None),
        lambda _: refusal(400, "no"),
    ],
)
def test_what_it_is_not_sure_of_is_no_violation(answer: Any) -> None:
    with chat(answer) as service:
        judge = Judge(settings_of(service))
        found = judge.compare("reply", "Yes.", "No.", ASKED)
        assert found == ComparisonResult(same=True, unsure=True)
        said = [Prediction(reply_outcome(text)) for text in ("Yes.", "No.")]
        # Nor where another reply was wanted.
        assert Folding(judge).unsure(["reply"], said[:1], said[1:], ASKED)
        assert len(asked_about(service)) == 2
    assert judge.facts is not None
    assert (judge.facts.pairs, judge.facts.unsure) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [lambda _: completion("Hm."), lambda _: completion(None), lambda _: refusal(401, "no")],
)
def test_a_judge_without_verdicts_ends_the_run(answer: Any) -> None:
    with chat(answer) as service:
        judge = Judge(settings_of(service))
        told = [(f"At {hour}.", f"From {hour}.") for hour in range(8, 20)]
        with pytest.raises(UserError, match="gave no verdict to its last 24 calls"):
            judge.prepare(pairs(*told))


@pytest.mark.parametrize(
    ("unsure", "past", "passes"), [(10, 0, True), (11, 0, False), (0, 50, False)]
)
def test_too_many_undecided_pairs_pass_no_gate(unsure: int, past: int, passes: bool) -> None:
    took = WhatItTook(100, unsure, past, 200, Usage())
    assert (undecided_text(took) == "") == passes
    assert str(unsure + past) in judge_line(took)


def test_it_is_asked_about_what_the_others_agree_on() -> None:
    with chat(lambda _: SAME) as service:
        settings = settings_of(service, fallback=("call us",))
        both = comparison_by_name("judge,numbers", settings)
        told = ("At 9.", "At 10."), ("At 9.", "From 9."), ("At 9.", "Please call us at 9.")
        both.prepare(pairs(*told))
        assert [both.compare(*one).same for one in pairs(*told)] == [False, True, False]
        assert len(asked_about(service)) == 2
    assert both.name == "numbers,judge"


def test_what_is_beyond_the_budget_is_not_asked() -> None:
    with chat(lambda _: OTHER) as service:
        judges = Judges(workers=2)
        judge = judges.of(settings_of(service, judge_calls=9))
        judge.prepare(pairs(("a", "b"), ("a", "c"), ("a", "d")))
        found = [judge.compare("reply", "a", text, ASKED) for text in "bcd"]
        assert [(one.same, one.unsure) for one in found] == [(False, False)] * 2 + [(True, True)]
        assert len(asked_about(service)) == 4
        assert judges.of(settings_of(service, judge_calls=9)) is judge
    facts = judges.facts
    assert facts is not None
    assert (facts.pairs, facts.unsure, facts.past_budget) == (2, 0, 1)


def test_its_token_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", "of the bot")
    with chat(lambda _: SAME) as service:
        Judge(settings_of(service)).reach()
        monkeypatch.setenv(JUDGE_TOKEN_VARIABLE, "of the judge")
        Judge(settings_of(service)).reach()
        found = [one.headers.get("authorization") for one in asked_about(service)]
    assert found == [None, "Bearer of the judge"]


def test_the_tested_model_is_known_by_address_and_name() -> None:
    tested = TrackerSettings(model="openai+http://here:1/v1", service_model="a")
    for url, model, same in (
        ("openai+http://here:1", "a", True),
        ("openai+http://here:1", None, True),
        ("openai+http://here:1", "b", False),
        ("openai+http://there:1/v1", "a", False),
    ):
        settings = ReplySettings(judge=address(url), judge_model=model)
        assert is_tested_model(settings, tested) is same


def test_a_mistake_is_one_message() -> None:
    with pytest.raises(
        UserError, match=r"needs a chat model: .* --dst-compare=judge:openai\+http://"
    ):
        comparison_by_name("judge", ReplySettings())
    reply = {"outcome": "reply"}
    with pytest.raises(UserError, match=r"add --dst-compare=judge, alone or in a list"):
        Settings.of(judge="openai+http://x", compare="numbers", **reply)
    with pytest.raises(UserError, match="judge:calls applies only to a judge"):
        build_settings({"judge_calls": 4, **reply})
    with pytest.raises(
        UserError,
        match=r"--dst-compare=judge:ADDRESS is not the address of a chat model: write openai\+http",
    ) as no:
        Settings.of(judge="http://user:secret@x", compare="judge", **reply)
    assert "secret" not in str(no.value)
    with (
        chat(lambda _: SAME, models=("a", "b")) as service,
        pytest.raises(UserError, match=r"name the model with .*judge:ADDRESS:model=NAME"),
    ):
        Judge(settings_of(service)).reach()


BOT = "def reply(messages):\n    return f'You said: {messages[-1][\"content\"]}'\n"


def test_a_run_says_who_judged_and_what_it_took(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(my_bot=BOT)
    talk = tmp_path / "asked.jsonl"
    lines = [{"dialogue_id": f"d{n}", "users": ["Where is my order?"]} for n in range(2)]
    talk.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with chat(lambda asked: SAME if asked.number % 2 else OTHER) as service:
        result = pytester.runpytest_subprocess(
            *("--dst-model=my_bot:reply", "--dst-outcome=reply", f"--dst-data={talk}", "-n2"),
            *(f"--dst-compare=judge:openai+{service.url}:model=tiny", "--dst-report=r.json"),
            *("--dst-suite=yes", "--dst-variants=2"),
        )
        calls = len(asked_about(service))
    printed = result.stdout.str()
    assert "a language model compares the replies: tiny" in " ".join(printed.split())
    report = json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))
    told, took = report["outcome"]["judge"], report["run"]["judge"]
    assert told["protocol"] == protocol()
    assert (told["model"], told["is_tested_model"]) == ("tiny", False)
    assert took["pairs"] > 0
    # One more looked whether it is there.
    assert took["calls"] == took["usage"]["answers"] == calls == 2 * took["pairs"] + 1
    assert report["run"]["usage"] is None


def test_a_run_may_ask_the_judge_about_contexts(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(my_bot=BOT)
    users = ["Who was Ada?", "When was she born?", "What did she bake?"]
    talk = tmp_path / "asked.jsonl"
    talk.write_text(json.dumps({"dialogue_id": "d", "users": users}), encoding="utf-8")

    def answer(asked: Asked) -> Says:
        about = prompt_of(asked).startswith(protocol("judge-context"))
        return completion('{"equivalent": true}') if about else SAME

    with chat(answer) as service:
        pytester.runpytest_subprocess(
            *("--dst-model=my_bot:reply", "--dst-outcome=reply", f"--dst-data={talk}"),
            f"--dst-compare=judge:openai+{service.url}:model=tiny",
            *("--dst-relation=same-context:context-checks=judge", "--dst-report=r.json"),
            *("--dst-suite=yes", "--dst-variants=5"),
        )
        prompts = [prompt_of(asked) for asked in asked_about(service)]
    contexts = [one for one in prompts if one.startswith(protocol("judge-context"))]
    assert contexts
    assert len(contexts) == len(set(contexts))
    report = json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))
    assert report["run"]["judge"]["calls"] == len(prompts)


def test_a_judge_that_nobody_reaches_ends_the_run_at_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(my_bot=BOT)
    pytester.path.joinpath("asked.jsonl").write_text(
        json.dumps({"dialogue_id": "d", "users": ["Hello"]}), encoding="utf-8"
    )
    with chat(lambda _: refusal(404, "no such model")) as service:
        result = pytester.runpytest_subprocess(
            *("--dst-model=my_bot:reply", "--dst-outcome=reply", "--dst-data=asked.jsonl"),
            *(f"--dst-compare=judge:openai+{service.url}", "--dst-suite=yes"),
        )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    printed = result.stdout.str() + result.stderr.str()
    assert "the judge of --dst-compare does not answer: " in printed
    assert "Traceback" not in printed


def unsure_of_odd_pairs(asked: Asked) -> Says:
    """Have no verdict on about half of the pairs, and else find them the same."""
    return completion("Hm.") if sum(map(len, replies_of(asked))) % 2 else SAME


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(my_bot=BOT)
    words = ("order", "parcel", "tickets", "new phone", "red bicycle")
    lines = [{"dialogue_id": f"d{n}", "users": [f"Where is my {n}?"]} for n in words]
    text = "\n".join(map(json.dumps, lines))
    pytester.path.joinpath("asked.jsonl").write_text(text, encoding="utf-8")
    return pytester


def line_with(service: Service, *words: str, dst: str = "") -> list[str]:
    given = ("model=my_bot:reply", "outcome=reply", "data=asked.jsonl", "variants=3")
    judge = f"compare=judge:openai+{service.url}:model=tiny"
    return [*words, *(f"--{dst}{word}" for word in (*given, judge))]


@pytest.mark.parametrize(
    "more", [(), ("-q",), ("--dst-shard=1/2",), ("-q", "--dst-relation=metamorphic,metal-typos")]
)
def test_an_undecided_judge_fails_every_run_and_is_named(
    project: pytest.Pytester, more: tuple[str, ...]
) -> None:
    with chat(unsure_of_odd_pairs) as service:
        result = project.runpytest_subprocess(*line_with(service, dst="dst-"), *more)
    assert result.ret == 1
    printed = " ".join(result.stdout.str().split())
    assert "the judge has no verdict on" in printed
    assert "failed: the judge decided too few pairs of replies" in printed


def test_a_folder_of_an_undecided_judge_says_so_and_passes_no_gate(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat(unsure_of_odd_pairs) as service:
        words = line_with(service, "campaign", "--results=found", "--report=r.json")
        assert main(words) == 1
        pairs = len(asked_about(service)) - 1
        # The same command again asks nothing, and the folder is not better.
        assert main(words) == 1
        assert len(asked_about(service)) - 1 <= pairs + 1
    said = " ".join(capsys.readouterr().out.split())
    assert "the judge has no verdict on" in said
    assert said.count("failed: the judge decided too few pairs of replies") == 2
    took = json.loads((project.path / "r.json").read_text(encoding="utf-8"))["run"]["judge"]
    assert took["calls"] == pairs + 1
    assert took["unsure"] > 0
    assert main(["merge", "found", "--output=all"]) == 1
    assert "the judge has no verdict on" in " ".join(capsys.readouterr().out.split())
    for folder in ("found", "all"):
        result = project.runpytest_inprocess(f"--dst-results={folder}", "-p", "no:cacheprovider")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["failed: the judge decided too few pairs of replies*"])


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("of", ["judge", "bot"])
@pytest.mark.usefixtures("project")
def test_a_folder_is_of_the_model_that_the_service_had(
    capsys: pytest.CaptureFixture[str], of: str, *, named: bool
) -> None:
    models = ["tiny"]
    with chat(lambda _: SAME, models=models) as service:
        address = f"openai+{service.url}"
        line = ["campaign", "--outcome=reply", "--data=asked.jsonl", "--variants=3"]
        if of == "judge":
            line += ["--model=my_bot:reply", f"--compare=judge:{address}"]
            line[-1] += ":model=tiny" if named else ""
        else:
            line += [f"--model={address}", "--compare=exact"]
            line += ["--tracker=service-model=tiny"] if named else []
        assert main([*line, "--results=found"]) == 0
        assert main([*line, "--results=found"]) == 0
        models[:] = ["other"]
        assert main([*line, "--results=found"]) == (0 if named else 2)
    told = capsys.readouterr().err
    assert ("tiny" in told) == ("other" in told) == (not named)


@pytest.mark.usefixtures("project")
def test_a_campaign_without_its_judge_ends_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with chat(lambda _: refusal(401, "no")) as service:
        assert main(line_with(service, "campaign", "--results=found")) == 2
    said = capsys.readouterr().err
    assert "the judge of --dst-compare does not answer" in said
    assert "Traceback" not in said


def test_a_cell_of_an_undecided_judge_is_not_done(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat(unsure_of_odd_pairs) as service:
        text = f"""[settings]
model = "my_bot:reply"
outcome = "reply"
data = "asked.jsonl"
compare = "judge:openai+{service.url}:model=tiny"
[axes]
seed = [0, 1]
"""
        project.path.joinpath("sweep.toml").write_text(text, encoding="utf-8")
        assert main(["sweep", "sweep.toml", "--output=swept"]) == 1
    assert capsys.readouterr().out.count("the judge decided too few pairs of replies") == 2


def test_undecided_replies_do_not_count_as_right(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [{"system": "", "user": "Where is it?", "answer": f"It is {n}."} for n in range(3)]
    lines = [{"dialogue_id": f"d{n}", "turns": [turn]} for n, turn in enumerate(turns)]
    project.path.joinpath("asked.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    given = ("--model=my_bot:reply", "--outcome=reply", "--data=asked.jsonl")
    with chat(lambda _: completion("Hm.")) as service:
        assert main(["evaluate", *given, f"--compare=judge:openai+{service.url}"]) == 0
    said = capsys.readouterr().out
    assert "undecided by a judge  3, which count as different" in said
    assert "0.00 %" in said


def test_a_remembered_violation_of_an_undecided_judge_is_not_fixed(
    project: pytest.Pytester,
) -> None:
    with chat(lambda _: OTHER) as service:
        words = line_with(service, dst="dst-")
        project.runpytest_subprocess(*words, "--dst-remember")
    (corpus,) = project.path.glob(".dstfuzz/regressions/*.jsonl")
    name = json.loads(corpus.read_text(encoding="utf-8").splitlines()[0])["id"]
    with chat(lambda _: completion("Hm.")) as service:
        words = line_with(service, dst="dst-")
        result = project.runpytest_subprocess(*words, f"--dst-replay={name}")
    assert result.ret == 1
    printed = result.stdout.str()
    assert "it is unclear whether" in printed
    assert "failed: the judge decided too few pairs of replies" in printed


STEADY = """
from difflib import get_close_matches

def reply(messages):
    things = "order", "parcel", "tickets", "new phone", "red bicycle"
    (thing,) = get_close_matches(messages[-1]["content"].split("my")[-1], things, 1, 0)
    return f"The {thing} is in the PLACE."
"""


@pytest.mark.parametrize("more", [(), ("-n1",)])
def test_an_undecided_judge_of_changed_clean_answers_passes_no_baseline(
    project: pytest.Pytester, more: tuple[str, ...]
) -> None:
    def run(place: str, answer: Says, *words: str) -> pytest.RunResult:
        project.makepyfile(my_bot=STEADY.replace("PLACE", place))
        with chat(lambda _: answer) as service:
            given = line_with(service, *words, "--dst-baseline=base.json", dst="dst-")
            return project.runpytest_subprocess(*given, *more)

    # The address of the judge is another one each time.
    project.makeconftest(
        "from pytest_dstfuzz.comparisons.judge import Judge\nJudge.identity = 'one judge'\n"
    )
    assert run("shed", OTHER, "--dst-update-baseline").ret == 0
    # Python takes a file of the same size and time for the same code.
    assert run("large hall", OTHER).ret == 8
    result = run("large hall", completion("Hm."))
    assert result.ret == 6
    result.stdout.fnmatch_lines(["failed: the judge decided too few pairs of replies: 100.00 %*"])
