"""``dstfuzz freeze`` with a chat model as the source, against a service on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import asked_about, chat, completion, refusal
from loopback import Asked, Says, Service, serving

import pytest_dstfuzz.plugin.hooks  # noqa: F401 - before inner runs, which forget what they load
from pytest_dstfuzz.cli import main

USERS = ("I need a table for 4 people.", "Do not send it to bob@example.com.", "Are you open?")


def last(asked: Asked) -> str:
    content = asked.body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def is_check(asked: Asked) -> bool:
    return "message A" in last(asked)


def user_of(asked: Asked) -> str:
    found = re.search(r"^message(?: A)?: (.*)$", last(asked), re.MULTILINE)
    assert found is not None
    return str(json.loads(found[1]))


def lines(*texts: str) -> str:
    return "\n".join(json.dumps({"text": text}) for text in texts)


def writes(texts: dict[str, str], said: str = "yes") -> Callable[[Asked], Says]:
    """Return a model with an answer for each turn, and one answer to all back-checks."""
    return lambda asked: completion(said if is_check(asked) else texts.get(user_of(asked), ""))


def politely(asked: Asked) -> Says:
    return completion("Yes." if is_check(asked) else lines(f"Hello! {user_of(asked)}"))


class Freezer:
    """Freezes paraphrases of some turns."""

    def __init__(self, folder: Path, users: Sequence[str] = USERS) -> None:
        self.data, self.path = folder / "questions.jsonl", folder / "frozen.jsonl"
        talks = ({"dialogue_id": str(n), "users": [user]} for n, user in enumerate(users))
        self.data.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")

    def __call__(self, source: str, *more: str) -> int:
        given = ["--data", str(self.data), "--outcome", "reply", "--output", str(self.path)]
        return main(["freeze", *given, "--source", source, *more])

    @property
    def rows(self) -> list[dict[str, Any]]:
        _, *rows = self.path.read_text(encoding="utf-8").splitlines()
        return [json.loads(row) for row in rows]


@pytest.fixture
def freezer(tmp_path: Path) -> Freezer:
    return Freezer(tmp_path)


def address(service: Service, query: str = "") -> str:
    return f"openai+{service.url}/v1{query}"


def figure(text: str, label: str) -> int:
    found = re.search(rf"{re.escape(label)} +(\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def test_candidates_are_checked_by_rules_and_by_the_model(
    freezer: Freezer, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        USERS[0]: lines(
            "A table for 4 people, please.",
            "I need a table for 5 people tonight.",
            "a table for 4 people please",
            "I NEED A TABLE FOR 4 PEOPLE",
            "Could I get a table for 4 people?",
            "Is a table for 4 people free?",
        ),
        USERS[1]: lines("Please send it to bob@example.com.", "Do not send it to bob@example.org."),
        USERS[2]: "Sure! Here you go:\n```json\n" + lines("Is the shop open?") + "\n```",
    }
    with chat(writes(answers)) as service:
        assert freezer(address(service)) == 0
        asked = asked_about(service)
    found = {row["text"]: (row["lock"], row.get("back_check")) for row in freezer.rows}
    assert found == {
        "A table for 4 people, please.": ("", "same"),
        "I need a table for 5 people tonight.": ("value", None),
        "Could I get a table for 4 people?": ("", "same"),
        "Please send it to bob@example.com.": ("negation", None),
        "Do not send it to bob@example.org.": ("exact", None),
        "Is the shop open?": ("", "same"),
    }
    assert {(row["verdict"], row["reviewer"]) for row in freezer.rows} == {("", "")}
    assert {row["source"] for row in freezer.rows} == {"openai:tiny"}
    out = capsys.readouterr().out
    reasons = {
        "texts of openai:tiny": 10,
        "accepted by the rules": 3,
        "refused: changed a value or a number": 1,
        "refused: lost or added a negation": 1,
        "refused: changed an address, a code or a quotation": 1,
        "refused: same as the turn": 1,
        "refused: same as another candidate": 1,
        "refused: more than --each": 1,
        "refused: not a JSON line with a text": 1,
    }
    assert {label: figure(out, label) for label in reasons} == reasons
    assert "not by a person: 3 same, 0 different, 0 unclear" in out
    assert "6 calls" in out
    assert "90 for 6 answers" in out
    assert {(one.body["temperature"], one.body["seed"]) for one in asked} == {(0, 0)}
    # Requests at once may arrive in any order.
    told = [last(one) for one in asked]
    assert any('"4"' in one for one in told)
    assert any('"bob@example.com"' in one for one in told)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("Yes, both do.", "same"),
        ("No.", "different"),
        ("<think>yes or no?</think>no", "different"),
        ("Yes and no.", "unclear"),
        ("Perhaps", "unclear"),
    ],
)
def test_the_back_check_is_a_verdict_of_the_model_alone(
    freezer: Freezer, capsys: pytest.CaptureFixture[str], said: str, verdict: str
) -> None:
    with chat(writes({USERS[2]: lines("Is the shop open now?")}, said)) as service:
        assert freezer(address(service)) == 0
    (row,) = freezer.rows
    assert (row["back_check"], row["verdict"], row["reviewer"]) == (verdict, "", "")
    assert f"to be reviewed: {int(verdict != 'different')}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ('["Is the shop open now?", {"text": "Now?"}]', ["Is the shop open now?", "Now?"]),
        ('[\n {"text": "Is the shop open now?"},\n {"text": "Open now?"}\n]',
         ["Is the shop open now?", "Open now?"]),
        ('<think>Hm.</think>{"text": "Is the shop\\nopen  now?"}', ["Is the shop open now?"]),
        ('"Is the shop open now?"', ["Is the shop open now?"]),
        ('{"text": "Half \\ud83d of it, open?"}', ["Half ? of it, open?"]),
        ('{"text": 3}', []),
        ('{"text": "open?", "text": "Open now?"}', []),
        ('{"words": "Is the shop open now?"}', []),
        ('{"text": "Is it', []),
        ("NaN", []),
        ("", []),
    ],
)  # fmt: skip
def test_answers_of_other_forms(freezer: Freezer, answer: str, texts: list[str]) -> None:
    with chat(writes({USERS[2]: answer})) as service:
        assert freezer(address(service)) == 0
    assert [row["text"] for row in freezer.rows] == texts


def test_what_is_cut_off_is_read_and_thoughts_end_the_limit(freezer: Freezer) -> None:
    def answer(asked: Asked) -> Says:
        if is_check(asked):
            return completion("yes")
        if user_of(asked) == USERS[0]:
            text = lines("A table for 4 people.") + '\n{"text": "I wou'
            return completion(text, finish="length")
        if "max_tokens" in asked.body:
            return completion("<think>What could it", finish="length")
        return completion(lines(f"Hello! {user_of(asked)}"))

    with chat(answer) as service:
        assert freezer(address(service), "--tracker", "concurrency=1") == 0
        limited = ["max_tokens" in one.body for one in asked_about(service)]
    assert len(freezer.rows) == 3
    assert limited == [True, True, False, False, False, False, False]


def test_reruns_give_the_same_file_and_ask_nothing_again(freezer: Freezer) -> None:
    with chat(politely) as service:
        assert freezer(address(service)) == 0
        first, asked = freezer.path.read_bytes(), len(asked_about(service))
        assert freezer(address(service)) == 0
        assert (freezer.path.read_bytes(), len(asked_about(service))) == (first, asked)
        freezer.path.unlink()
        assert freezer(address(service), "--tracker", "concurrency=1") == 0
    assert freezer.path.read_bytes() == first


def test_a_budget_ends_the_run_and_the_next_run_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    freezer = Freezer(tmp_path, [f"Where is shop number {number}?" for number in range(20)])
    with chat(politely) as service:
        for calls in (9, 16, 30):
            before = len(asked_about(service))
            assert freezer(address(service), "--max-calls", str(calls)) == 0
            assert len(asked_about(service)) - before <= calls
            ended = "the same command continues" in capsys.readouterr().out
            assert ended == (calls != 30)
        assert len(asked_about(service)) == 40
    assert [row["back_check"] for row in freezer.rows] == ["same"] * 20


def test_tokens_and_cost_have_budgets(freezer: Freezer, capsys: pytest.CaptureFixture[str]) -> None:
    with chat(politely) as service:
        assert freezer(address(service), "--max-tokens", "20") == 0
        assert "the budget of 20 tokens ended" in capsys.readouterr().out
        money = ["--tracker", "prices=1000000,0", "--max-cost", "500"]
        assert freezer(address(service), *money) == 0
        assert "cost" in capsys.readouterr().out
    assert [row["back_check"] for row in freezer.rows] == ["same"] * 3


def test_after_ctrl_c_the_file_has_all_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_dstfuzz.trackers.web.transport import Transport  # noqa: PLC0415 - httpx

    freezer = Freezer(tmp_path, [f"Where is shop number {number}?" for number in range(20)])
    mapped = Transport.map

    def interrupted(self: Transport, jobs: Sequence[Any]) -> Any:
        def arrived(place: int, _: object) -> None:
            if place == 4 and len(asked_about(service)) > 20:
                raise KeyboardInterrupt

        return mapped(self, jobs, arrived)

    with chat(politely) as service:
        with monkeypatch.context() as patch:
            patch.setattr(Transport, "map", interrupted)
            assert freezer(address(service), "--tracker", "concurrency=1") == 130
        assert "the same command continues it" in capsys.readouterr().err
        texts = len(freezer.rows)
        assert 8 < texts < 20
        assert freezer(address(service)) == 0
        # The answers that had arrived are not asked for again. One may have been under way.
        assert 40 <= len(asked_about(service)) <= 41
    assert [row["back_check"] for row in freezer.rows] == ["same"] * 20


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_a_service_that_fails_is_one_message(
    freezer: Freezer, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    with chat(lambda _: refusal(status, "no")) as service:
        assert freezer(address(service), "--tracker", "retries=0") == 2
    err = capsys.readouterr().err
    assert f"does not answer: the service at {service.url}/v1 answered {status}" in err
    assert err.count("dstfuzz: error") == 1
    assert not freezer.path.exists()


def test_a_service_that_dies_leaves_the_candidates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    freezer = Freezer(tmp_path, [f"Where is shop number {number}?" for number in range(20)])

    def answer(asked: Asked) -> Says:
        return politely(asked) if len(asked_about(service)) <= 16 else refusal(503, "away")

    fast = ["--tracker", "retries=0", "--tracker", "dead-after=3", "--tracker", "concurrency=1"]
    with chat(answer) as service:
        assert freezer(address(service), *fast) == 2
    assert "has 8 candidates of the model" in capsys.readouterr().err
    with chat(politely) as service:
        assert freezer(address(service)) == 0
        assert len(asked_about(service)) == 24
    assert len(freezer.rows) == 20


def test_busy_answers_are_asked_again_and_one_refusal_is_no_end(
    freezer: Freezer, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(asked: Asked) -> Says:
        if user_of(asked) == USERS[1]:
            return refusal(400, "content filter")
        if asked.number == 0:
            return Says({"error": "slow down"}, 429, {"Retry-After": "0"})
        return politely(asked)

    with chat(answer) as service:
        assert freezer(address(service)) == 0
    assert [row["user"] for row in freezer.rows] == [USERS[0], USERS[2]]
    assert "requests without an answer: 1; the last:" in capsys.readouterr().out


def test_no_secret_is_shown_or_written(
    freezer: Freezer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", "tok-12345")
    with chat(lambda asked: refusal(401, str(asked.headers))) as service:
        source = address(service, "?model=tiny&key=hush-hush").replace("//", "//ann:pass-word@", 1)
        assert freezer(source, "--tracker", "retries=0") == 2
        (asked, *_) = asked_about(service)
    assert (asked.path, asked.body["model"]) == ("/v1/chat/completions?key=hush-hush", "tiny")
    out = capsys.readouterr()
    for wrong in ("openai+http:/ann:pass-word@host/v1", "ftp://ann:pass-word@host/v1"):
        assert freezer(wrong) == 2
        shown = capsys.readouterr().err
        assert "is not the address of a language model" in shown
        assert "pass-word" not in shown
    for secret in ("tok-12345", "hush-hush", "pass-word"):
        assert secret not in out.out + out.err


def test_the_token_and_the_model_are_sent(
    freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", "tok-12345")
    with chat(politely, models=("a/small", "large")) as service:
        assert freezer(address(service, "?model=a/small")) == 0
        found = asked_about(service)
    assert {one.headers["authorization"] for one in found} == {"Bearer tok-12345"}
    assert {one.body["model"] for one in found} == {"a/small"}
    assert {row["source"] for row in freezer.rows} == {"openai:a/small"}


def test_anthropics_api_has_its_own_form(freezer: Freezer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSTFUZZ_TOKEN", "tok-12345")

    def answer(asked: Asked) -> Says:
        said = politely(asked).body["choices"][0]["message"]["content"]  # type: ignore[index]
        return Says(
            {
                "type": "message",
                "content": [{"type": "text", "text": said}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 10, "output_tokens": 5},
            }
        )

    with serving(answer) as service:
        assert freezer(f"anthropic+{service.url}/v1?model=calm") == 0
        found = asked_about(service)
    assert {(one.path, one.headers["x-api-key"]) for one in found} == {
        ("/v1/messages", "tok-12345")
    }
    assert all(one.body["max_tokens"] < 1000 and "seed" not in one.body for one in found)
    assert {row["source"] for row in freezer.rows} == {"anthropic:calm"}
    assert [row["back_check"] for row in freezer.rows] == ["same"] * 3


def test_a_service_that_refuses_seed_and_limit_is_asked_without(freezer: Freezer) -> None:
    def answer(asked: Asked) -> Says:
        for key in ("seed", "max_tokens"):
            if key in asked.body:
                return refusal(400, f"unsupported parameter: '{key}'")
        return politely(asked)

    with chat(answer) as service:
        assert freezer(address(service)) == 0
    assert len(freezer.rows) == 3


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("phrase-table", ["--max-calls", "3"], "--max-calls applies only if --source is"),
        ("phrase-table", ["--tracker", "timeout=3"], "--tracker applies only if --source is"),
        ("openai+http://x", ["--tracker", "prompt=a.txt"], "--tracker prompt has no effect"),
        ("openai+http://x", ["--tracker", "colour=red"], "--tracker colour has no effect"),
        ("openai+http://x", ["--pool", "sample"], "--pool applies only"),
        (
            "openai+http://x?model=a",
            ["--tracker", "service-model=b"],
            "name different models: leave one out",
        ),
    ],
)
def test_options_without_effect_are_refused(
    freezer: Freezer,
    capsys: pytest.CaptureFixture[str],
    source: str,
    more: list[str],
    message: str,
) -> None:
    assert freezer(source, *more) == 2
    assert message in capsys.readouterr().err
    assert not freezer.path.exists()
