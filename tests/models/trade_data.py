"""Hand-made dialogues about two slots and a half, in the TRADE layout, for small networks."""

from __future__ import annotations

from pathlib import Path

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn
from pytest_dstfuzz.models.trade.files import TradeTrainingConfig

SLOTS = ("hotel-area", "hotel-name", "train-leaveat")
_AREAS = ("north", "south", "east", "west", "centre")
_NAMES = ("acorn guest house", "bridge", "cedar lodge", "dover arms", "elm tree inn")
_TIMES = ("09:15", "10:30", "12:00", "17:45", "20:05")


def dialogues() -> tuple[Dialogue, ...]:
    """Return ten dialogues of two turns."""
    made = []
    for number in range(10):
        area, name = _AREAS[number % 5], _NAMES[(number + number // 5) % 5]
        time = _TIMES[(2 * number) % 5]
        asked = "dontcare" if number in {3, 8} else area
        first = "any area will do" if asked == "dontcare" else f"a hotel in the {area}"
        state = {"hotel-area": asked}
        more = {**state, "hotel-name": name, "train-leaveat": time}
        made.append(
            Dialogue(
                f"D{number}",
                (
                    Turn(0, "", f"{first} , please .", BeliefState(state)),
                    Turn(1, "what else ?", f"the {name} . leave at {time}", BeliefState(more)),
                ),
            )
        )
    return tuple(made)


def write_folder(folder: Path) -> Path:
    """Write the dialogues as the training and the validation split."""
    head = ["# Dialogue ID", "Turn Index", "Last Turn", "System Response", "User Utterance"]
    lines = ["\t".join([*head, *SLOTS])]
    for dialogue in dialogues():
        for turn in dialogue.turns:
            state = turn.state or BeliefState()
            values = [state.get(slot, "none") for slot in SLOTS]
            end = str(turn.index == len(dialogue.turns) - 1)
            row = [dialogue.id, str(turn.index), end, turn.system, turn.user, *values]
            lines.append("\t".join(row))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def swap_labels(table: Path) -> None:
    """Swap two values of the labels. The utterances and the set of words stay the same."""
    text = table.read_text(encoding="utf-8")
    first, second = "\tnorth", "\tsouth"
    assert first in text
    assert second in text
    text = text.replace(first, "\t#").replace(second, first).replace("\t#", second)
    table.write_text(text, encoding="utf-8")


def small_config(folder: Path, output: Path, **changes: object) -> TradeTrainingConfig:
    """Return settings for a network that trains in seconds."""
    settings: dict[str, object] = {
        "epochs": 2,
        "batch_size": 4,
        "hidden": 32,
        "embedding": 32,
        "learning_rate": 0.02,
        "average_decay": 0.9,
        "pretrained_vectors": False,
        "report_every": 2,
    }
    return TradeTrainingConfig(folder, output, **(settings | changes))  # type: ignore[arg-type]


def silent(_: str) -> None:
    """Take a progress line and drop it."""
