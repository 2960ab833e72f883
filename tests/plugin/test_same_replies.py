"""Runs of systems that reply: the same bytes whoever runs them, and no reply is lost."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from processes import run_python

BOT = '''
"""Rewords what it says at each repetition, and writes down what it is asked."""
import os
import zlib
from pathlib import Path

WAYS = ("{}", "Sure: {}", "{} I hope that helps.", "Let me see. {}")
KNOWN = {"order": "Your order comes on Tuesday.", "open": "We are open from 9 to 6."}

class Bot:
    fingerprint = "1"
    def predict(self, contexts):
        with open("asked", "a", encoding="utf-8") as file:
            file.write("".join(f"{one!r}\\n" for one in contexts))
        asked = len(Path("asked").read_text(encoding="utf-8").splitlines())
        if asked > int(os.environ.get("BOT_DIES_AFTER", "1000000")):
            os.kill(os.getpid(), 9)
        return [self.one(context) for context in contexts]
    def one(self, context):
        words = context.user.lower().split()
        known = [answer for word, answer in KNOWN.items() if word in words]
        text = (known or ["Pardon? Say it in other words."])[0]
        seed = f"{context.exchanges!r} {getattr(context, 'repetition', 0)}"
        return WAYS[zlib.crc32(seed.encode()) % len(WAYS)].format(text)
'''
ASKED = (
    ["where is my order please", "and when do you open on sunday"],
    ["i would like to know when you open"],
    ["hello my order has not arrived yet", "can i get the money for my order back"],
    [
        "where is my order please",
        "and when do you open on sunday",
        "what is the name of the shop",
        "can i get the money for my order back",
        "and is it open on monday",
    ],
)
OPTIONS = (
    *("-q", "--dst-model=talkbot:Bot", "--dst-outcome=reply", "--dst-data=asked.jsonl"),
    *("--dst-variants=4", "--dst-batch-size=8", "--dst-fail-on=gate", "--dst-report=out.json"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talkbot.py").write_text(BOT, encoding="utf-8")
    lines = [json.dumps({"dialogue_id": f"d{n}", "users": users}) for n, users in enumerate(ASKED)]
    (tmp_path / "asked.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def run(folder: Path, *options: str, dies_after: int | None = None, **more: str) -> list[str]:
    """Run in a process of its own; return the report but for settings and what is about the run."""
    env = {**os.environ, **more}
    if dies_after is not None:
        env["BOT_DIES_AFTER"] = str(dies_after)
    path = folder / "out.json"
    path.unlink(missing_ok=True)
    done = run_python("-m", "pytest", *OPTIONS, *options, cwd=folder, env=env)
    if dies_after is not None:
        assert done.returncode == -signal.SIGKILL
        return []
    assert path.exists(), done.stdout + done.stderr
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith(('"run": ', '"settings": '))]


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text(encoding="utf-8").splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_run_asks_for_what_is_left_and_workers_change_nothing(folder: Path) -> None:
    whole = run(folder, "--dst-cache=no")
    turns = [json.loads(line.rstrip(",")) for line in whole if '"dialogue_id"' in line]
    assert {turn["outcome"] for turn in turns} == {"held", "violation"}
    assert all(len(turn["clean_votes"]) >= 3 for turn in turns)
    expected = asked(folder)
    (folder / "asked").unlink()

    run(folder, dies_after=40)
    known = len(asked(folder))
    assert known < len(expected)
    assert run(folder) == whole
    # The preflight's answers and one batch were lost with the process.
    assert len(asked(folder)) <= len(expected) + 8 + 24

    assert run(folder, "-n", "2", "--dst-cache=no", PYTHONHASHSEED="7") == whole


@pytest.mark.parametrize("history", ["own", "recorded"])
def test_workers_change_nothing_of_many_relations(folder: Path, history: str) -> None:
    relations = "--dst-relation=metamorphic,mortar"
    options = (f"--dst-history={history}", "--dst-cache=no", "--dst-variants=2", relations)
    alone = run(folder, *options)
    turns = [json.loads(line.rstrip(",")) for line in alone if '"dialogue_id"' in line]
    tested = {turn["relation"] for turn in turns if turn["outcome"] in ("held", "violation")}
    assert tested >= {"metamorphic", "same-context", "contexts-agree"}
    assert any('"violation"' in line for line in alone)
    assert run(folder, *options, "-n", "2", PYTHONHASHSEED="7") == alone
