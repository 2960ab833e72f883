"""The command ``mend``, which measures remedies before a bot."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_dstfuzz.cli.command import Command, ProgressLine, print_page, terminal_page
from pytest_dstfuzz.config import (
    ADAPTER,
    Settings,
    build_settings,
    names_of,
    settings_of_json,
)
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer, per_1000, percent
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_apart, check_writable, write_lines
from pytest_dstfuzz.printable import format_count

if TYPE_CHECKING:
    from pytest_dstfuzz.repair.mending import HalfResult, MendingResult, RemedyResult, Share

#: Options that replace those of the report.
_OF_BOT: Final = ("model", "checkpoint", "device", "batch_size", *ADAPTER)
_OF_DATA: Final = ("data", "tools", "split")
_OF_BUDGET: Final = ("max_seconds", "max_calls", "max_tokens", "max_cost")
_GIVEN: Final = (*_OF_BOT, *_OF_DATA, *_OF_BUDGET)
#: Maximum number of dialogues by default.
_DIALOGUES: Final = 200


def _mend_options(parser: Parser) -> None:
    parser.add_argument(
        "report", type=Path, metavar="REPORT", help="JSON report, as written by pytest --dst-report"
    )
    parser.option(
        "--words", type=Path, metavar="PATH", help="write the words of the corrector, one per line"
    )
    parser.value(
        "--dialogues",
        integer(2),
        "N",
        default=_DIALOGUES,
        help=f"maximum number of dialogues, drawn by the seed (default: {_DIALOGUES})",
    )
    parser.value(
        "--seed", integer(0), "N", default=0, help="seed of the halves and the sample (default: 0)"
    )
    parser.option("--json", action="store_true", help="print the figures as JSON")
    parser.shared(*_GIVEN)


def _mend(given: Namespace) -> int:
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz import Campaign  # noqa: PLC0415
    from pytest_dstfuzz.repair.mending import draw_turns, try_remedies  # noqa: PLC0415
    from pytest_dstfuzz.repair.remedies import REMEDIES  # noqa: PLC0415
    from pytest_dstfuzz.report.json_report import read_report, report_turns  # noqa: PLC0415

    if given.words is not None:
        check_writable(given.words)
        check_apart({"--words": given.words}, {"the report": given.report})
    report = read_report(given.report)
    settings = _settings(given, report)
    drawn = draw_turns(report_turns(report), given.dialogues, given.seed)
    model = settings.tracker.model
    if model is None:
        raise UserError(f"{given.report} does not name its bot: name it with --model")
    # The report has the variants, so relation and search are those that need nothing.
    campaign = Campaign(model, settings=settings)
    with closing(ProgressLine("dialogues")) as progress:
        found = try_remedies(campaign, drawn, progress)
    if given.words is not None:
        words = found.words[found.best.remedy.corrector or REMEDIES[0].name]
        write_lines(given.words, (f"{word}\n" for word in sorted(words)))
    if given.json:
        print(json.dumps(found.to_json(), indent=2))
    else:
        _print_page(found, model)
    return 0 if found.advised else 1


def _settings(given: Namespace, report: Mapping[str, Any]) -> Settings:
    """Return the settings of a report, with those of the command line in their place."""
    if report["settings"].get("redact"):
        raise UserError(
            f"{given.report} was written with --dst-redact, so its texts cannot be sent: write a "
            "report without it"
        )
    if "models" in report:
        raise UserError(f"{given.report} has several bots: write a report of one")
    run = report.get("run", {})
    told = {
        **report["settings"],
        **{name: run[name] for name in names_of("place") if name in run},
        "relation": Settings().variant.relation,
        "search": Settings().variant.search,
        "shard": None,
    }
    values = {name: getattr(given, name) for name in _GIVEN}
    own = {name: value for name, value in values.items() if value is not None}
    return build_settings(own, settings_of_json(told))


def _print_page(found: MendingResult, model: str) -> None:
    page = terminal_page()
    page.field("bot           ", f"{model}, asked for {format_count(found.asked, 'context')}")
    if found.ended:
        page.field("note          ", f"not all dialogues were measured: {found.ended}")
    page.gap()
    heads = ("mended", "spoilt", "changed", "of 1,000 turns", "behind it")
    page.table(
        [("", *heads)]
        + [
            (f"{one.remedy.name}, {half} half", *_cells(one.of(half)))
            for one in found.remedies
            for half in ("first", "second")
        ]
    )
    page.gap()
    best = found.best
    page.field("best          ", f"{best.remedy.name}, by the first half")
    for line in _promises(best):
        page.field("              ", line)
    if found.advised is None:
        page.field("advice        ", "no remedy: each mends too little, or breaks more", "warning")
    else:
        page.field("advice        ", f"put {best.remedy.name} before the bot", "good")
    print_page(page)


def _cells(half: HalfResult) -> Iterator[str]:
    for share in half.shares.values():
        yield f"{share.part} of {share.whole}"
    yield from ("", "") if half.failures is None else map(per_1000, half.failures)


def _promises(best: RemedyResult) -> Iterator[str]:
    """Yield a line for each promise of the first half, with its check on the second."""
    words = {None: "not checked: too few dialogues", True: "holds", False: "does not hold"}
    for name, holds in best.holds.items():
        one, other = best.first.shares[name], best.second.shares[name]
        yield f"{name}: {_told(one)}; second half {_told(other)}: {words[holds]}"


def _told(share: Share) -> str:
    if share.interval is None:
        return percent(share.value, 1)
    low, high = share.interval
    return f"{percent(share.value, 1)} ({percent(low, 1)} to {percent(high, 1)})"


MEND = Command(
    "mend",
    "measure what a spelling corrector before the bot would mend and break",
    "nothing was written",
    """\
  dstfuzz mend report.json                               the bot and the data of the report
  dstfuzz mend report.json --words words.txt             write the words of the corrector
  dstfuzz mend report.json --model my_bot:track --json""",
    _mend_options,
    _mend,
    about="Ask the bot of a report again, with each message of the user corrected, and print how\n"
    "many violations no longer occur and how many clean answers change.",
)
