"""A small tracker and dialogues, on which the commands that train searches are tried."""

from __future__ import annotations

from pathlib import Path

BOT = """
def track(context):
    words = context.user.split()
    bread = "rye" if "rye" in words else "spelt"
    return {"bread-kind": bread} if "counter" in words else {}
"""
LINE = (
    '{"dialogue_id": "NAME", "turns": [{"user": "kindly keep a fresh loaf of rye behind the '
    'counter", "state": {"bread-kind": "rye"}}]}\n'
)
#: What every such command is given.
GIVEN = "--model loaf_bot:track --data talks --output out"


def write(folder: Path) -> None:
    """Write the tracker, and dialogues in two splits."""
    (folder / "loaf_bot.py").write_text(BOT, encoding="utf-8")
    (folder / "talks").mkdir()
    for split in ("val", "test"):
        lines = [LINE.replace("NAME", f"{split}{number}") for number in range(5)]
        (folder / "talks" / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
