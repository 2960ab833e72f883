"""The weaknesses shown are there: the trackers are asked again for each conversation."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from pages_of_docs import texts

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.report.json_report import RunInfo, build_report
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.weaknesses.groups import key_of_id
from tools.docs.gallery import EXAMPLES, RUN, SHOWN, SYSTEMS, page, systems_page

SHOWN_ONE = re.compile(
    r"^### (TRADE|SimpleTOD) \d+: .*\n\n.*dialogue `(\w+)`, turn (\d+):\n\n```text\n([^`]*?)^```$",
    re.MULTILINE,
)
DATA = load_dialogues("sample", "test")
DIALOGUES: dict[str, Dialogue] = {dialogue.id: dialogue for dialogue in DATA.dialogues}


@pytest.mark.parametrize("name", ["TRADE", "SimpleTOD"])
def test_each_weakness_is_there(name: str) -> None:
    pytest.importorskip("torch" if name == "TRADE" else "transformers")
    found = [
        shown for shown in SHOWN_ONE.findall(texts()["gallery/weaknesses.md"]) if shown[0] == name
    ]
    assert len(found) == SHOWN
    contexts, told = [], []
    for _, dialogue_id, turn, text in found:
        dialogue, index = DIALOGUES[dialogue_id], int(turn)
        lines = re.split(
            r"^(system:|user:|does:) +", re.sub(r"\n +", " ", text), flags=re.MULTILINE
        )[1:]
        said = list(zip(lines[::2], (line.strip() for line in lines[1::2]), strict=True))
        users = [user for who, user in said if who == "user:"]
        clean = [re.sub(r"\[-(.*?)-\]|\{\+.*?\+\}", r"\1", user) for user in users]
        turns = dialogue.turns[: index + 1]
        assert [user.split() for user in clean] == [turn.user.split() for turn in turns]
        changed = {
            place: re.sub(r"\[-.*?-\]|\{\+(.*?)\+\}", r"\1", user)
            for place, user in enumerate(users)
            if user != clean[place]
        }
        contexts += [dialogue.context(index), dialogue.context(index, changed)]
        told.append(
            [re.fullmatch(r"(.+?): (.+) -> (.+)", does) for who, does in said if who == "does:"]
        )
    states = [prediction.state for prediction in tracker(name).predict(contexts)]
    for changes, before, after in zip(told, states[::2], states[1::2], strict=True):
        assert changes
        for match in changes:
            assert match is not None
            assert (before.get(match[1]) or "none") == match[2], match[0]
            assert (after.get(match[1]) or "none") == match[3], match[0]


def tracker(name: str) -> Tracker:
    """The shipped tracker of that name."""
    return resolve_tracker(name.lower(), batch_size=8)


def test_the_page_has_the_words_of_this_version() -> None:
    page_text = texts()["gallery/weaknesses.md"]
    shown = re.findall(r"^### \w+ \d+: (.*)\n\n.* Id: `([\w:.-]+)`\.", page_text, re.MULTILINE)
    assert len(shown) == 2 * SHOWN
    for title, name in shown:
        key = key_of_id(name)
        assert key is not None, f"{name} is gone: make the page again"
        assert title == key.description


def test_the_page_of_a_run() -> None:
    """The command of the page, with a tracker that is quick."""

    def track(context: Context) -> dict[str, str]:
        return {"hotel-parking": "yes"} if "parking" in context.user.split() else {}

    settings = Settings.of(validity="natural", search="noise", turns=30, variants=20)
    asks = [one for one in DATA.dialogues if any("parking" in turn.user for turn in one.turns)]
    data = replace(DATA, dialogues=tuple(asks[:6]))
    report = build_report(list(Campaign(track, data, settings)), settings, RunInfo.of(data))
    text = page({"Parking": report})
    assert RUN in text
    assert re.search(r"^### Parking 1: [a-z]", text, re.MULTILINE)
    assert re.search(
        r"^About [0-9.]+ of 1,000 user turns; here [0-9]+ violations? in ", text, re.MULTILINE
    )
    assert re.search(r"^user: .*\[-.*parking.*-\]", text, re.MULTILINE)
    assert "does:   hotel-parking: yes -> none" in text


def test_the_page_of_systems_has_screen_weaknesses_and_cost() -> None:
    def reply(messages: list[dict[str, str]]) -> str:
        return "20 pounds" if "much" in messages[-1]["content"].split() else "Sorry?"

    settings = Settings.of(outcome="reply", variants=5, repeatable=True)
    data = load_dialogues(str(EXAMPLES / "helpdesk.jsonl"), "test", outcome="reply")
    results = list(Campaign(reply, data, settings))
    report = build_report(results, settings, RunInfo.of(data))
    text = systems_page({"smollm2-help-desk": report})
    shown = SYSTEMS["smollm2-help-desk"]
    assert f"## {shown.title} {shown.about}" in " ".join(text.split())
    assert f"{shown.start}\npytest {shown.options}\n```" in text
    assert re.search(
        rf"^\| \[{shown.title}\]\(#\S+\) \| 1 of 8 .+ \| .+ \| [0-9]+ calls, 0 s",
        text,
        re.MULTILINE,
    )
    assert "\nverdict       failed: " in text
    assert re.search(
        r"^Weakness 1: .+, 1 turn\.\n\n```text\n  user: .*\[-much-\]", text, re.MULTILINE
    )
    assert re.search(r"^  before: +20 pounds\n  replied: +Sorry\?$", text, re.MULTILINE)
    assert [system.title for system in SYSTEMS.values() if f"## {system.title}" in text] == [
        shown.title
    ]


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_the_conversations_of_a_system_can_be_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(re.findall(r"--dst-([\w-]+)=(\S+)", SYSTEMS[name].options))
    settings = Settings.of(outcome=options.get("outcome", "state"))
    monkeypatch.chdir(EXAMPLES)
    data = load_dialogues(
        options.get("data", "sample"),
        outcome=settings.reply.outcome,
        tools=options.get("tools"),
    )
    assert data.turn_count() >= 6
