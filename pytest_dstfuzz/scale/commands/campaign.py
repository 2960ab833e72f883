"""Commands that run campaigns of any size: campaign."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import (
    Command,
    EstimateLine,
    given_settings,
    print_page,
    terminal_page,
)
from pytest_dstfuzz.config import (
    OPTIONS,
    OutputSettings,
    Settings,
    default_search,
    masked_words,
    shard_text,
)
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.files import check_apart, check_writable
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.scale.commands.ray import given_ray, ray_options

if TYPE_CHECKING:
    from pytest_dstfuzz.scale.results.folder import ResultFolder

#: Parts of the settings that a campaign has; what remains is for pytest.
_PARTS: Final = ("tracker", "data", "variant", "reply")
_BUDGETS: Final = (
    *("max_seconds", "preflight_seconds", "max_calls", "max_tokens", "max_cost"),
    *("report", "redact"),
)
CAMPAIGN_OPTIONS: Final = (
    *(item.name for item in OPTIONS if item.part in _PARTS and item.name != "suite"),
    *_BUDGETS,
)


def _options(parser: Parser) -> None:
    parser.option(
        "--results",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder that results are written to as they come, with all that was said; one that "
        "is there is gone on with",
    )
    ray_options(parser)
    parser.shared(*CAMPAIGN_OPTIONS, required=("model",))


def campaign_settings(given: Namespace) -> Settings:
    """Return the settings of a campaign; as with pytest, a shipped tracker has its own search."""
    settings = given_settings(given, CAMPAIGN_OPTIONS)
    if given.search is None:
        settings = settings.replace_options(search=default_search(settings))
    return settings


def _campaign(given: Namespace) -> int:
    settings = campaign_settings(given)
    on_ray = given_ray(given)
    check_outputs(settings, given.results)
    line = EstimateLine("results")
    try:
        if on_ray is None:
            folder = _run_here(settings, given.results, line)
        else:
            from pytest_dstfuzz.scale.cluster.driver import run_on_ray  # noqa: PLC0415 - needs numpy

            folder = run_on_ray(settings, on_ray, given.results, line, command_line())
    finally:
        line.close()
    return told(folder, settings.output)


def _run_here(settings: Settings, results: Path, line: EstimateLine) -> ResultFolder:
    from pytest_dstfuzz import Campaign  # noqa: PLC0415 - needs numpy
    from pytest_dstfuzz.scale.results.running import run_into  # noqa: PLC0415 - likewise

    campaign = Campaign(settings.tracker.model, settings=settings)
    return run_into(campaign, results, line, command_line())


def _merge_options(parser: Parser) -> None:
    parser.add_argument(
        "folders", metavar="DIR", type=Path, nargs="+", help="folder of each part of one run"
    )
    parser.option(
        "--output",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder of the whole run; it is there once all parts are in it",
    )
    parser.shared("report", "redact")


def _merge(given: Namespace) -> int:
    settings = given_settings(given, ("report", "redact"))
    check_outputs(settings, given.output)
    from pytest_dstfuzz.scale.results.folder import ResultFolder  # noqa: PLC0415 - help should not wait
    from pytest_dstfuzz.scale.results.merging import merge  # noqa: PLC0415 - likewise

    folders = [ResultFolder.open(path) for path in given.folders]
    return told(merge(folders, given.output), settings.output)


def command_line() -> str:
    """Return the line that was given, without credentials."""
    return shlex.join(masked_words(["dstfuzz", *sys.argv[1:]]))


def check_outputs(settings: Settings, folder: Path) -> None:
    """Refuse before a run reports that cannot be written, or would take the place of something."""
    from pytest_dstfuzz.report.forms import check_forms  # noqa: PLC0415 - help should not wait

    written = settings.output.report
    check_forms(written)
    check_apart({**{f"--report={path}": path for path in written}, "--results": folder}, {})
    for path in written:
        check_writable(Path(path))


def told(folder: ResultFolder, output: OutputSettings) -> int:
    """Print the figures of a folder, write the reports asked for, and return the exit status."""
    from pytest_dstfuzz.scale.results.report import FolderReport  # noqa: PLC0415 - help should not wait

    manifest = folder.manifest
    if not manifest.planned:
        text = f"no dialogue is of part {shard_text(manifest.shard)}: {folder.path} is empty"
        print(printable(text))
        return 0
    report = FolderReport(folder, redact=output.redact)
    print_page(report.page(terminal_page()))
    for path in report.write(output, command=command_line()):
        print(printable(str(path)))
    if folder.complete:
        return 0
    why = manifest.ended or "not done"
    print(printable(f"{why}: the same command goes on in {folder.path}"))
    return 1


CAMPAIGN = Command(
    "campaign",
    "test a tracker on dialogues of any number, into a folder of results",
    "what is done is in the folder of --results, and the same command goes on from there",
    """\
  dstfuzz campaign --model trade --turns all --results nightly
  dstfuzz campaign --model trade --data logs.jsonl --turns all --results logs --report logs.json
  dstfuzz campaign --model trade --turns all --results nightly --ray --ray-actors 4
Options are those of pytest without dst-; memory does not grow with the number of dialogues.""",
    _options,
    _campaign,
)

MERGE = Command(
    "merge",
    "put the parts of one run together, which ran with --shard",
    "the folder of --output is as it was, or whole",
    """\
  dstfuzz campaign --model trade --turns all --shard 1/2 --results part-1
  dstfuzz campaign --model trade --turns all --shard 2/2 --results part-2
  dstfuzz merge part-1 part-2 --output nightly --report nightly.json
Report, statistics and weaknesses are the same bytes as those of one run, apart from `run`.""",
    _merge_options,
    _merge,
)
