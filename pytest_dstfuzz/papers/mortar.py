"""Which relation finds which planted fault: MORTAR's procedure on CANARD, and METAL beside it.

``python -m pytest_dstfuzz.papers.mortar --canard dev.json --history own --faults all --out DIR``
tests a sound bot and bots with one fault each, and writes ``mortar.md`` and ``mortar.csv``. With
``--sheets DIR`` it also draws detections for judges: sheets and keys, which hold sentences of the
data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.papers.canard import PERTURBED, Rewrites, load_rewrites
from pytest_dstfuzz.papers.command_line import say
from pytest_dstfuzz.papers.detections import (
    METAL,
    MORTAR,
    SOUND,
    AskedBot,
    BotResults,
    BotRun,
    run_bot,
    withheld,
)
from pytest_dstfuzz.papers.mortar_sheet import drawn, key_text, sheet_text
from pytest_dstfuzz.papers.mortar_tables import MortarTable, tables
from pytest_dstfuzz.papers.retrieval_bot import RetrievalBot, faults

_ALL: Final = "all"
#: Ways to test: what the command calls them, and what the tables do. The first one that is run
#: is the one of which everything is reported.
WAYS: Final = {
    "main": "needed, title given",
    "checks": "MORTAR's checks",
    "withheld": "needed, title withheld",
    "answers": "against recorded answers",
}
_BOTH: Final = (MORTAR, METAL)
#: Rewrites of a question that are run: more than five sequences give.
_VARIANTS: Final = 16


def ways(gold: Rewrites, *, own: bool, seed: int) -> Iterator[tuple[str, BotRun, tuple[str, ...]]]:
    """Yield how bots are tested: a name, what is given, and the families of relations."""
    settings = partial(_settings, seed)
    given = partial(BotRun, gold, own=own)
    yield WAYS["main"], given(gold.data, settings()), _BOTH
    yield WAYS["checks"], given(gold.data, settings(context_checks=("mortar",))), (MORTAR,)
    yield WAYS["withheld"], given(withheld(gold.data), settings()), (MORTAR,)
    yield WAYS["answers"], given(gold.data, settings(reference="answer")), _BOTH


def _settings(seed: int, **reply: Any) -> Settings:
    options = {"outcome": "reply", "variants": _VARIANTS, "seed": seed, "perturbations": PERTURBED}
    return Settings.of(**options, **reply)


def run_mortar(
    gold: Rewrites, names: Sequence[str], *, own: bool, seed: int, only: Sequence[str]
) -> Iterator[tuple[str, list[BotResults]]]:
    """Yield the results of all bots for each way to test them, one after the other."""
    for way, run, families in ways(gold, own=own, seed=seed):
        if way not in only:
            continue
        results = []
        # What is right hangs on the data that is given: it is asked once for all bots.
        sound = AskedBot(RetrievalBot(gold), own=own)
        for name in (SOUND, *names):
            results.append(run_bot(run, name, families, sound))
            broken = sum(one.broken for one in results[-1].found)
            true = sum(one.broken and one.true for one in results[-1].found)
            say(f"{way}: {name}: {broken:,} detections, {true:,} of them true")
        yield way, results


def main(arguments: Sequence[str]) -> int:
    """Run the experiment."""
    given = vars(_parser().parse_all(arguments))
    gold = load_rewrites(given["canard"], load_lexicon())
    if given["dialogues"] is not None:
        few = gold.data.dialogues[: given["dialogues"]]
        gold = replace(gold, data=replace(gold.data, dialogues=few))
    names = _known(given["faults"], tuple(faults(gold)), "fault")
    command = " ".join(
        [
            "python -m pytest_dstfuzz.papers.mortar --canard dev.json",
            f"--history {given['history']} --faults {given['faults']} --ways {given['ways']}",
            *([f"--dialogues {given['dialogues']}"] if given["dialogues"] else []),
            f"--seed {given['seed']} --out {given['out'].name}",
        ]
    )
    own = given["history"] == "own"
    found: dict[str, list[BotResults]] = {}
    only = _known(given["ways"], tuple(WAYS), "way")
    chosen = [WAYS[name] for name in only]
    for way, results in run_mortar(gold, names, own=own, seed=given["seed"], only=chosen):
        found[way] = results
        if len(found) == 1 and given["sheets"] is not None:
            _write_sheets(given["sheets"], results, given["seed"])
        table = MortarTable(gold.data, found, command, given["seed"], given["history"])
        for name, text in tables(table).items():
            write_text(given["out"] / name, text)
    return 0


def _known(text: str, known: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Return the names of a list, or all that there are."""
    names = known if text == _ALL else tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names


def _write_sheets(folder: Path, results: Sequence[BotResults], seed: int) -> None:
    """Write sheets and keys of both families, drawn from the bots with a fault."""
    found = [one for bot in results if bot.bot != SOUND for one in bot.found]
    for family in _BOTH:
        if not any(one.broken and one.family == family for one in found):
            raise UserError(f"nothing to draw from: {family} detects nothing")
        items = drawn(found, family, seed)
        write_text(folder / f"{family}.md", sheet_text(items))
        write_text(folder / f"{family}_key.csv", key_text(items))


def _parser() -> Parser:
    parser = Parser("python -m pytest_dstfuzz.papers.mortar", __doc__ or "")
    parser.value("--canard", Path, "FILE", required=True, help="development split of CANARD (JSON)")
    parser.value("--out", Path, "DIR", required=True, help="write mortar.md and mortar.csv there")
    parser.value(
        "--history",
        choice("history", ("own", "recorded")),
        "WHOSE",
        default="own",
        help="replies before a question: own (default) or recorded",
    )
    parser.value("--faults", str, "NAME,...", default=_ALL, help="faults, or all of them (default)")
    parser.value(
        "--ways",
        str,
        "NAME,...",
        default=_ALL,
        help="main, checks (MORTAR's), withheld (the title), answers (the reference), or all",
    )
    parser.value("--dialogues", integer(1), "N", help="the first N dialogues only")
    parser.value("--sheets", Path, "DIR", help="draw detections for judges, and write them there")
    parser.value("--seed", integer(0), "N", default=0, help="seed of sequences and drawings")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
