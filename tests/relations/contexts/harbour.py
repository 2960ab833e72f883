"""Questions about a harbour and a baker that were written here, in CANARD's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.dialogue.load import load_dialogues

#: Question, answer, stand-alone rewrite.
ROUNDS = {
    ("Lerwick harbour", "History"): [
        ("Who built the harbour?", "The merchant Magnus Troup built it.", None),
        ("When did he build it?", "In 1848.", "When did Magnus Troup build the harbour?"),
        ("Did he get help?", "Two brothers from Bergen helped him.", "Did Magnus Troup get help?"),
        ("What did Bergen send?", "Timber and forty masons.", None),
        (
            "What else was sent?",
            "A lighthouse lamp.",
            "What was sent besides timber and forty masons?",
        ),
        ("How long did that last?", "I don't know.", "How long did the lighthouse lamp last?"),
        ("Is it open today?", None, "Is Lerwick harbour open today?"),
    ],
    ("Ada Quill", "Bakery"): [
        ("What did Ada Quill bake?", "Rye loaves with caraway.", None),
        ("Where did she sell them?", "At the Corn Market.", "Where did Ada Quill sell rye loaves?"),
        ("Was she successful?", None, "Was Ada Quill successful?"),
    ],
    ("The cutter Tern", "Voyages"): [
        ("Who sailed the cutter?", "Captain Oskar Lind sailed it to Aden.", None),
        (
            "What did that man carry?",
            "Captain Lind carried copper wire.",
            "What did Captain Oskar Lind carry?",
        ),
        ("When did the cutter sink?", None, None),
    ],
}


def entries() -> list[dict[str, Any]]:
    found = []
    for number, (head, rounds) in enumerate(ROUNDS.items()):
        history = list(head)
        for place, (question, answer, rewrite) in enumerate(rounds, start=1):
            found.append(
                {
                    "History": list(history),
                    "QuAC_dialog_id": f"C_{number}",
                    "Question": question,
                    "Question_no": place,
                    "Rewrite": rewrite or question,
                }
            )
            history += [question, answer or ""]
    return found


def write(folder: Path, found: list[dict[str, Any]] | None = None) -> Path:
    path = folder / "dev.json"
    path.write_text(json.dumps(entries() if found is None else found), encoding="utf-8")
    return path


def dialogues(folder: Path) -> tuple[Dialogue, ...]:
    return load_dialogues(write(folder), "val").dialogues
