"""The tables of planted faults: detections, precision, figures of test cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Final, NamedTuple

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.ledger import ratio
from pytest_dstfuzz.campaign.sums import tallied
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.papers.detections import (
    FAMILIES,
    METAL,
    MORTAR,
    SOUND,
    BotResults,
    FoundCheck,
)
from pytest_dstfuzz.papers.formatting import csv_text, markdown_table, rate_text, share
from pytest_dstfuzz.papers.resampling import Rate, Resamples
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.totals.cases import CaseFigures, CasesTally

#: Published means over six chat models on another data set: RETC, BPTC, Rate+, precision.
_PUBLISHED: Final = {
    MORTAR: ("100.0 %", "11.36", "62.0 %", "70.5 %"),
    METAL: ("99.7 %", "4.49", "61.2 %", "45.5 %"),
}
#: Likewise: shares of MORTAR's bugs by relation, and by perturbation.
_SHARES: Final = {
    "same-context": "80.0 %",
    "lost-context": "0.04 %",
    "contexts-agree": "19.4 %",
    "contexts-differ": "0.5 %",
    "DRS": "36.1 %",
    "DRR": "21.3 %",
    "DRD": "26.1 %",
    "DSR": "14.0 %",
    "DSD": "22.5 %",
}
#: Likewise: mean numbers of L1, L2 and L3, and CV.
_LEVELS: Final = {MORTAR: "17,366 / 5,422 / 104, 0.65", METAL: "6,799 / 2,138 / 31, 0.66"}
_NAMES: Final = {MORTAR: "MORTAR", METAL: "METAL"}


@dataclass(frozen=True, slots=True)
class MortarTable:
    """What was run so far: the first way to test is the main one."""

    data: DialogueSet
    #: Name of a way to test -> bots.
    ways: dict[str, list[BotResults]]
    command: str
    seed: int
    history: str


class _FaultRow(NamedTuple):
    way: str
    bot: str
    family: str
    relation: str
    checks: int
    detections: int
    true: int


def _rows(table: MortarTable) -> Iterator[_FaultRow]:
    for way, bots in table.ways.items():
        for bot in bots:
            for name, group in groupby(bot.found, key=lambda one: (one.family, one.relation)):
                found = list(group)
                broken = [one for one in found if one.broken]
                yield _FaultRow(
                    way, bot.bot, *name, len(found), len(broken), sum(b.true for b in broken)
                )


def tables(table: MortarTable) -> dict[str, str]:
    """Return the texts of the files, by name."""
    rows = list(_rows(table))
    fields = {name: _getter(name) for name in _FaultRow._fields}
    return {"mortar.md": _markdown(table, rows), "mortar.csv": csv_text(fields, rows)}


def _getter(name: str) -> Callable[[object], object]:
    return lambda row: getattr(row, name)


def _markdown(table: MortarTable, rows: Sequence[_FaultRow]) -> str:
    main, *_ = table.ways
    draws = Resamples([dialogue.id for dialogue in table.data.dialogues], table.seed)
    lines = [
        "# Planted faults",
        "",
        (
            "**Not comparable with the published figures**, which are of six chat models on CoQA "
            "and stand in rows and columns of their own; these are of a bot that looks answers up, "
            "on CANARD."
        ),
        "",
        f"- command: `{table.command}` (pytest-dstfuzz {__version__})",
        (
            f"- data: CANARD's development split, {len(table.data.dialogues):,} dialogues, "
            f"{table.data.turn_count():,} questions; history: {table.history}"
        ),
        (
            "- a detection is true where the fault shows in one of the two replies compared; what "
            "the sound bot does, too, is false by definition"
        ),
        *_requests(table.ways[main]),
    ]
    lines += ["", "## Which relation finds which fault", ""]
    lines.append(
        f"Detections, and the share that the fault made ({main}). Of the sound bot all are "
        "false: errors of the check of contexts, or of the edit."
    )
    lines += ["", *_by_fault([row for row in rows if row.way == main])]
    lines += ["", "## Precision", ""]
    lines.append(
        "Of the detections in the bots with a fault, in brackets 95 % intervals over dialogues."
    )
    lines += ["", *_precision(table, draws)]
    lines += ["", f"## Test cases ({main})", ""]
    lines.append("MORTAR divides bugs by test cases: a dialogue under one perturbation.")
    lines += ["", *_cases(table.ways[main])]
    lines += ["", "## What contributes", "", *_contributions(table.ways[main])]
    lines += _levels(table)
    return "\n".join(lines) + "\n"


def _requests(bots: Sequence[BotResults]) -> Iterator[str]:
    sums = {name: sum(bot.requests.get(name, 0) for bot in bots) for name in FAMILIES}
    if all(sums.values()):
        yield (
            f"- questions asked over all bots, those of histories included: MORTAR "
            f"{sums[MORTAR]:,} (the clean dialogues among them, which METAL is held against, too), "
            f"METAL {sums[METAL]:,}"
        )


def _by_fault(rows: Sequence[_FaultRow]) -> list[str]:
    names = [_name(make) for makes in FAMILIES.values() for make in makes]
    cells = []
    for bot in dict.fromkeys(row.bot for row in rows):
        of = {row.relation: row for row in rows if row.bot == bot}
        cells.append([bot, *(_cell(of.get(name), sound=bot == SOUND) for name in names)])
    return markdown_table(["bot", *(f"`{name}`" for name in names)], cells)


def _name(make: type[Relation]) -> str:
    return str(make.name)


def _cell(row: _FaultRow | None, *, sound: bool) -> str:
    if row is None:
        return "0"
    if sound or not row.detections:
        return f"{row.detections:,} of {row.checks:,}"
    return f"{row.detections:,} ({share(row.true / row.detections, 0)})"


def _precision(table: MortarTable, draws: Resamples) -> list[str]:
    cells = []
    bots = list(dict.fromkeys(bot.bot for of in table.ways.values() for bot in of))
    bots.remove(SOUND)
    for way, of in table.ways.items():
        for family in FAMILIES:
            found = [one for bot in of for one in bot.found if _counts(one, family)]
            if not found:
                continue
            shares = [_share([one for one in found if one.bot == bot]) for bot in bots]
            known = [one for one in shares if one is not None]
            pooled = rate_text(_pooled(found, draws))
            head = [_NAMES[family], way, f"{len(found):,}", pooled, share(fmean(known))]
            cells.append([*head, *map(share, shares)])
    head = ["relations", "way", "detections", "pooled", "mean of the faults", *bots]
    return markdown_table(head, cells)


def _counts(one: FoundCheck, family: str) -> bool:
    return one.broken and one.family == family and one.bot != SOUND


def _share(found: Sequence[FoundCheck]) -> float | None:
    return ratio(sum(one.true for one in found), len(found))


def _pooled(found: Iterable[FoundCheck], draws: Resamples) -> Rate:
    tally: dict[str, tuple[float, float]] = {}
    for one in found:
        part, whole = tally.get(one.dialogue, (0.0, 0.0))
        tally[one.dialogue] = (part + one.true, whole + 1)
    return draws.rate([tally])


def _together(bot: BotResults, family: str) -> CaseFigures | None:
    found = tallied(CasesTally(), bot.turns.get(family, [])).figures
    return found[-1] if found else None


def _cases(bots: Sequence[BotResults]) -> list[str]:
    cells = []
    for bot in bots:
        for family, name in _NAMES.items():
            one = _together(bot, family)
            if one is not None:
                bptc = "n/a" if one.bptc is None else f"{one.bptc:.2f}"
                counts = [f"{n:,}" for n in (one.cases, one.detections, one.bugs)]
                cells.append([bot.bot, name, *counts, share(one.retc), bptc, share(one.rate)])
    for family, (retc, bptc, rate, _) in _PUBLISHED.items():
        cells.append(["*published mean*", _NAMES[family], "", "", "", retc, bptc, rate])
    head = ["bot", "relations", "test cases", "checks", "bugs", "RETC", "BPTC", "Rate+"]
    return markdown_table(head, cells)


def _contributions(bots: Sequence[BotResults]) -> list[str]:
    faulty = [bot for bot in bots if bot.bot != SOUND]
    parts: dict[str, int] = {}
    whole = 0
    for bot in faulty:
        for one in tallied(CasesTally(), bot.turns[MORTAR]).figures[:-1]:
            parts[one.name] = parts.get(one.name, 0) + one.bugs
            whole += one.bugs
            for name, count in one.perturbations.items():
                parts[name] = parts.get(name, 0) + count
    cells = (
        [
            f"`{name}`" if "-" in name else name,
            f"{parts.get(name, 0):,}",
            share(ratio(parts.get(name, 0), whole)),
            published,
        ]
        for name, published in _SHARES.items()
    )
    return markdown_table(["by", "bugs", "of all of the faulty bots", "published"], cells)


def _levels(table: MortarTable) -> list[str]:
    bots = table.ways.get("against recorded answers")
    if bots is None:
        return []
    cells = []
    for bot in bots:
        for family, name in _NAMES.items():
            one = _together(bot, family)
            if one is not None and one.levels is not None:
                cv = "n/a" if one.variation is None else f"{one.variation:.2f}"
                cells.append([bot.bot, name, *(f"{n:,}" for n in one.levels), cv, ""])
    for family, text in _LEVELS.items():
        cells.append(["*published mean*", _NAMES[family], "", "", "", "", text])
    head = ["bot", "relations", "L1", "L2", "L3", "CV", "published"]
    told = (
        "L1: the clean reply is wrong, too; L2: right, in a dialogue with a wrong one; L3: in a "
        "dialogue without any. Checks compare with the recorded answers here, as the published "
        "ones do."
    )
    return ["", "## Levels of bugs", "", told, "", *markdown_table(head, cells)]
