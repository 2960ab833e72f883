"""Made-up negotiations in the layout of the published files."""

from __future__ import annotations

from pathlib import Path

GOALS = (("1 4 3 2 1 0", "1 0 3 2 1 4"), ("2 2 2 3 2 0", "2 0 2 1 2 4"))


def talks(first: int, count: int) -> list[tuple[str, str, str, str, str]]:
    """Return made-up talks: both goals, the words as either side has them, what the first takes."""
    found = []
    for number in range(first, first + count):
        goal, other = GOALS[number % len(GOALS)]
        counts = [int(part) for part in goal.split()[::2]]
        words = f"YOU: number {number} : all hats for me <eos> THEM: fine <eos> YOU: <selection>"
        flipped = words.replace("YOU:", "?").replace("THEM:", "YOU:").replace("?", "THEM:")
        found.append((goal, other, words, flipped, f"item0=0 item1={counts[1]} item2=0"))
    return found


def write_talks(folder: Path) -> Path:
    """Write data.txt, val.txt and test.txt."""
    lines = []
    for goal, other, words, flipped, taken in talks(0, 30):
        lines.append(f"{goal} {words} {taken} <eos> reward=6 agree {other}")
        rest = "item0=1 item1=0 item2=1"
        lines.append(f"{other} {flipped} {rest} <eos> reward=4 agree {goal}")
    lines.append(f"{GOALS[0][0]} {words} no agreement <eos> reward=no agreement agree {other}")
    (folder / "data.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, first in (("val", 0), ("test", 3)):
        rows = [
            f"<input> {goal} </input> <dialogue> {words} </dialogue> <output> {taken} {taken} "
            f"</output> <partner_input> {other} </partner_input>"
            for goal, other, words, _, taken in talks(first, 3)
        ]
        (folder / f"{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder
