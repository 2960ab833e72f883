"""Sheets on which others judge detections, without a word of what the planted fault is.

They hold sentences of the data and of the bot's replies, so they stay with whoever makes them; the
key, and what judges said, go by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.papers.detections import FoundCheck
from pytest_dstfuzz.papers.formatting import csv_text
from pytest_dstfuzz.seeding import stream

DRAWN: Final = 100
DECOYS: Final = 25
_HEAD: Final = """# Is a reply wrong?

Each item shows one bot, asked twice in a row of questions about an article of an encyclopedia, of
which it is told the title and the section alone. The last question is the same in both
conversations (or the same but for some words or letters), what was asked before it may differ. All
replies are the bot's own. The bot is to reply with a passage of the article wherever question,
title and what was said before tell what is asked about, and to say that it cannot tell what is
meant, or does not know, where they do not. It knows the article; you may take what it quotes for
true where it fits the question.

For each item: is **at least one of the two last replies** (marked **A** and **B**) wrong for such a
bot? Wrong is: an answer to another question, a reply that repeats what was said before instead of
an answer, giving up though what was said makes clear what is meant, or an answer where nothing that
was said makes clear what is meant. Write a line for each item, `number,wrong` or `number,fine`, to
a file of your own. Judge each item alone; some are fine. Do not look for the code of the bot.
"""


def drawn(
    found: Sequence[FoundCheck], family: str, seed: int, decoys: int = DECOYS
) -> list[tuple[FoundCheck, bool]]:
    """Return detections of a family drawn uniformly, and held checks as decoys, mixed.

    Each with whether it is a detection.
    """
    rng = stream(seed, "sheet", family)
    chosen: list[tuple[FoundCheck, bool]] = []
    for broken, count in ((True, DRAWN), (False, decoys)):
        of = [one for one in found if one.family == family and one.broken == broken]
        places = rng.choice(len(of), size=min(count, len(of)), replace=False)
        chosen += [(of[place], broken) for place in sorted(places.tolist())]
    return [chosen[place] for place in rng.permutation(len(chosen))]


def sheet_text(items: Iterable[tuple[FoundCheck, bool]]) -> str:
    """Return a sheet in Markdown."""
    lines = [_HEAD]
    for number, (one, _) in enumerate(items, start=1):
        lines += [f"## {number}", "", *_conversation("A", one.contexts[0], one.before)]
        lines += ["", *_conversation("B", one.contexts[1], one.after), ""]
    return "\n".join(lines) + "\n"


def _conversation(name: str, context: Context, reply: str) -> Iterator[str]:
    """Yield one conversation, its last reply marked with the name."""
    opening = context.exchanges[0].system.replace("\n", " / ")
    yield f"Conversation {name}. Title: {opening or '(withheld)'}"
    yield ""
    for place, exchange in enumerate(context.exchanges):
        if place:
            yield f"- bot: {exchange.system}"
        yield f"- user: {exchange.user}"
    yield f"- **{name}: bot: {reply}**"


def key_text(items: Sequence[tuple[FoundCheck, bool]]) -> str:
    """Return the key as CSV: ids, whether it is a detection, and whether the fault made it."""
    rows = [(number, *item) for number, item in enumerate(items, start=1)]
    return csv_text(
        {
            "number": lambda row: row[0],
            "bot": lambda row: row[1].bot,
            "relation": lambda row: row[1].relation,
            "dialogue": lambda row: row[1].dialogue,
            "turn": lambda row: row[1].turn,
            "case": lambda row: row[1].case,
            "detection": lambda row: "yes" if row[2] else "decoy",
            "true": lambda row: "yes" if row[1].true else "no",
        },
        rows,
    )
