"""Made-up dialogues about rooms, and a bot with rules that a misspelt word breaks."""

from __future__ import annotations

import json
import random
from pathlib import Path

from pytest_dstfuzz import Campaign, Context, Settings, load_dialogues
from pytest_dstfuzz.report.json_report import RunInfo, build_report, write_report

KINDS = ("single", "double", "family")
VIEWS = ("garden", "harbour")
BOT = """
import re
def track(context):
    text = " ".join(context.user_utterances)
    found = {}
    for slot, pattern in (
        ("room-kind", "single|double|family"), ("room-view", "garden|harbour"),
        ("room-meal", "breakfast|supper"),
    ):
        if said := re.findall(rf"\\\\b(?:{pattern})\\\\b", text):
            found[slot] = said[-1]
    return found
""".replace("\\\\", "\\")


def track(context: Context) -> dict[str, str]:
    """Answer as the bot does whose source is `BOT`."""
    space: dict[str, object] = {}
    exec(BOT, space)  # noqa: S102 - our own text
    found: dict[str, str] = space["track"](context)  # type: ignore[operator]  # a function
    return found


def write_talks(folder: Path, count: int = 24) -> Path:
    """Write dialogues of two turns with labels."""
    path = folder / "rooms.jsonl"
    lines = []
    for number in range(count):
        kind, view = KINDS[number % 3], VIEWS[number % 2]
        first = {"room-kind": kind, "room-view": view}
        lines.append(
            {
                "dialogue_id": f"r{number:02d}",
                "turns": [
                    {
                        "user": f"I would like a {kind} room with a view of the {view}",
                        "state": first,
                    },
                    {
                        "system": "Would you like anything to eat at the zlorbine?",
                        "user": "Please add breakfast for us at the zlorbine",
                        "state": {**first, "room-meal": "breakfast"},
                    },
                ],
            }
        )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def campaign_on(path: Path, tracker: object = track, **options: object) -> Campaign:
    """Return a campaign on all turns of a file, with settings that many slips break."""
    settings = Settings.of(**{"turns": "all", "variants": 4, **options})
    return Campaign(tracker, load_dialogues(path), settings)


def write_run(folder: Path, module: str, **options: object) -> Path:
    """Run the bot, written as a module to the folder, and write its JSON report there."""
    (folder / f"{module}.py").write_text(BOT, encoding="utf-8")
    data = write_talks(folder)
    given = {"model": f"{module}:track", "data": str(data), "turns": "all", **options}
    campaign = Campaign(given["model"], settings=Settings.of(**given))
    results = tuple(campaign)
    path = folder / "report.json"
    write_report(path, build_report(results, campaign.settings, RunInfo.of(campaign.data)))
    return path


class CoinTracker:
    """Answers at random, whatever the user says."""

    repeatable = False

    def __init__(self) -> None:
        self._coin = random.Random(0)

    def __call__(self, context: Context) -> dict[str, str]:
        del context
        return {"room-kind": self._coin.choice(KINDS)}
