"""The commands ``mend``, ``export`` and ``harden``, which make a bot better."""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_dstfuzz.cli.command import (
    Command,
    ProgressLine,
    build_given_settings,
    check_output,
    load_data,
    print_page,
    say,
    terminal_page,
)
from pytest_dstfuzz.config import ADAPTER, canonical_split
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer, per_1000, percent
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_writable, write_lines
from pytest_dstfuzz.printable import format_count, printable
from pytest_dstfuzz.repair.trainable import NOTHING

if TYPE_CHECKING:
    from pytest_dstfuzz import Campaign, DialogueSet, Settings
    from pytest_dstfuzz.repair.examples import Example, ExampleSet
    from pytest_dstfuzz.repair.mending import (
        HalfResult,
        MendingResult,
        PromisedFigure,
        RemedyResult,
    )

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
    report = read_report(given.report)
    settings = _settings(given, report, _GIVEN, given.report)
    read = {"the report": given.report, "--tools": settings.data.tools}
    check_output({"--words": given.words}, read, {"--data": settings.data.data})
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


def _settings(
    given: Namespace, report: Mapping[str, Any], names: Sequence[str], path: Path
) -> Settings:
    """Return the settings of a report. Options on the command line override them."""
    from pytest_dstfuzz.repair.sources import settings_of_report  # noqa: PLC0415 - as above

    values = {name: getattr(given, name) for name in names}
    own = {name: value for name, value in values.items() if value is not None}
    return settings_of_report(report, own, path)


def _print_page(found: MendingResult, model: str) -> None:
    page = terminal_page()
    page.field("bot           ", f"{model}, asked for {format_count(found.asked, 'context')}")
    if found.ended:
        page.field("note          ", f"not all dialogues were measured: {found.ended}")
    if found.left_out:
        left = format_count(found.left_out, "turn")
        failed = format_count(found.failures, "context")
        text = f"{left} left out, because the bot failed on {failed}"
        page.field("note          ", text, "warning")
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
    if found.trouble:
        page.field("advice        ", f"none: {found.trouble}", "warning")
    elif found.advised is None and best.first.pays:
        page.field(
            "advice        ",
            f"none: on the second half, {best.remedy.name} breaks as many answers as it mends. "
            "Test more dialogues",
            "warning",
        )
    elif found.advised is None:
        page.field(
            "advice        ",
            "no remedy helps: each restores too few answers, or breaks too many",
            "warning",
        )
    else:
        page.field("advice        ", f"put {best.remedy.name} before the bot", "good")
    print_page(page)


def _cells(half: HalfResult) -> Iterator[str]:
    for share in half.shares.values():
        yield f"{share.part} of {share.whole}"
    if half.failures is None:
        yield from ("", "")
    else:
        yield from (per_1000(one.value) for one in half.failures)


def _promises(best: RemedyResult) -> Iterator[str]:
    """Yield a line for each figure of the first half, with its check on the second half."""
    words = {None: "not checked: too few dialogues", True: "holds", False: "does not hold"}
    first, second = best.first.promises, best.second.promises
    for name, holds in best.holds.items():
        label, told = _WORDS.get(name, (name, _told_share))
        other = told(second[name]) if name in second else "no estimate"
        yield f"{label}: {told(first[name])}; second half {other}: {words[holds]}"


def _told_share(one: PromisedFigure) -> str:
    return _told(one, lambda share: percent(share, 1))


def _told_count(one: PromisedFigure) -> str:
    return _told(one, per_1000)


def _told(one: PromisedFigure, in_words: Callable[[float], str]) -> str:
    if one.interval is None:
        return in_words(one.value)
    low, high = one.interval
    return f"{in_words(one.value)} ({in_words(low)} to {in_words(high)})"


#: Promise that is not a share -> its name on the page, and the function that formats it.
_WORDS: Final = {"failures": ("failures of 1,000 turns behind it", _told_count)}


MEND = Command(
    "mend",
    "measure how a spelling corrector before the bot would change its answers",
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


#: Maximum number of examples by default.
_ROWS: Final = 1_000


def _export_options(parser: Parser) -> None:
    from pytest_dstfuzz.repair.forms import FORMS, INTENT  # noqa: PLC0415 - keeps commands fast

    parser.add_argument(
        "reports",
        type=Path,
        nargs="+",
        metavar="REPORT",
        help="JSON reports, as written by pytest --dst-report",
    )
    listed = "; ".join(f"{one.name}: {one.about}" for one in FORMS.values())
    parser.value(
        "--form", choice("form", FORMS), "NAME", required=True, help=f"form of the file ({listed})"
    )
    parser.option("--output", type=Path, required=True, metavar="PATH", help="file to write")
    parser.option(
        "--measured",
        required=True,
        metavar="DATA",
        help="dialogues that measure the trained bot, and are therefore refused: a path or a name "
        f"as for --data, or {NOTHING}",
    )
    parser.value(
        "--measured-split",
        canonical_split,
        "SPLIT",
        default="test",
        help="split of the data of --measured (default: test)",
    )
    parser.value(
        "--rows",
        integer(1),
        "N",
        default=_ROWS,
        help=f"maximum number of examples, the same for each weakness if possible (default: "
        f"{_ROWS})",
    )
    parser.value("--seed", integer(0), "N", default=0, help="seed of the choice (default: 0)")
    parser.option(
        "--intent",
        default=INTENT,
        metavar="NAME",
        help=f"intent of the examples for Rasa (default: {INTENT})",
    )
    parser.shared(*_OF_DATA)


def _export(given: Namespace) -> None:
    # Imported late, as above.
    from pytest_dstfuzz import load_dialogues  # noqa: PLC0415
    from pytest_dstfuzz.repair.examples import ExampleSet  # noqa: PLC0415
    from pytest_dstfuzz.repair.forms import FORMS  # noqa: PLC0415
    from pytest_dstfuzz.repair.measured import refuse_measured  # noqa: PLC0415
    from pytest_dstfuzz.report.json_report import read_report, report_turns  # noqa: PLC0415

    form, found, measured = FORMS[given.form], ExampleSet(), None
    check_writable(given.output)
    for path in given.reports:
        report = read_report(path)
        settings = _settings(given, report, _OF_DATA, path)
        read = {"the report": path, "--tools": settings.data.tools}
        measures = None if given.measured == NOTHING else given.measured
        dialogues = {"--data": settings.data.data, "--measured": measures}
        check_output({"--output": given.output}, read, dialogues)
        outcome, data = settings.reply.outcome, load_data(settings)
        form.check(outcome, data.normalisation)
        results = report_turns(report)
        if given.measured != NOTHING:
            measured = measured or load_dialogues(
                given.measured, given.measured_split, outcome=outcome
            )
            names = {turn.dialogue_id for turn in results}
            refuse_measured((one for one in data.dialogues if one.id in names), measured)
        found.add(results, data, unlabelled=not form.multiwoz)
    drawn = found.drawn(given.rows, given.seed)
    if not drawn:
        raise UserError(
            "the reports have no example: no variant is a violation, or none has a right answer"
        )
    write_lines(given.output, form.write(drawn, given.intent))
    print(printable("\n".join(_export_lines(given.output, found, drawn))))


def _export_lines(path: Path, found: ExampleSet, drawn: Sequence[Example]) -> Iterator[str]:
    """Yield lines about the written file."""
    yield f"wrote {path}: {format_count(len(drawn), 'example')} of {len(found.examples)}"
    for group, count in sorted(Counter(one.group for one in drawn).items()):
        yield f"  {count:>6}  {group}"
    if found.repeated:
        yield f"left out: {found.repeated} that repeat another example"
    for reason, count in sorted(found.left_out.items()):
        yield f"left out: {count}: {reason}"


EXPORT = Command(
    "export",
    "write training data with the right answers from the violations of reports",
    "nothing was written",
    """\
  dstfuzz export report.json --form jsonl --output train.jsonl --measured multiwoz21
  dstfuzz export report.json --form messages --output tune.jsonl --measured test.jsonl
  dstfuzz export report.json --form rasa --output nlu.yml --measured no""",
    _export_options,
    _export,
    about="Write the dialogues of violations, and of variants that change the request, with the\n"
    "right answer. Reports on the dialogues of --measured are refused.",
)


#: Split for training and split for the choice of the best round.
_SPLITS: Final = ("train", "val")
#: Options that are settings of the training.
_OF_HARDENING: Final = (
    *("output", "relations", "rounds", "patience", "rewrites", "draws", "replay"),
    *("dialogues", "checked", "loss_limit", "seed"),
)


def _harden_options(parser: Parser) -> None:
    from pytest_dstfuzz.repair.hardening import HardeningSettings  # noqa: PLC0415 - as above

    default = HardeningSettings(Path())
    parser.shared(*_OF_BOT, "data", required=("model", "data"))
    parser.option(
        "--output", type=Path, required=True, metavar="DIR", help="folder for the trained bots"
    )
    parser.option(
        "--measured",
        metavar="DATA",
        help="data whose test split will measure the bot; its dialogues are not used for training; "
        f"{NOTHING} means none (default: as --data)",
    )
    parser.option(
        "--relations",
        default=default.relations,
        metavar="NAME,...",
        help=f"relations that rewrite single turns (default: {default.relations})",
    )
    parser.value(
        "--loss-limit",
        _fraction,
        "X",
        default=default.loss_limit,
        help="maximum loss of accuracy on clean turns, from 0 to 1; of the rounds within this "
        f"limit, the best one on rewritten turns counts (default: {default.loss_limit})",
    )
    for name, help_text in (
        ("rounds", "maximum number of rounds of attack and training"),
        ("patience", "end the training after this number of rounds without a better result"),
        ("rewrites", "number of rewrites of each relation in a round"),
        ("draws", "number of rewrites to draw for each one that is used; broken ones come first"),
        ("replay", "number of clean turns for each rewrite"),
        ("dialogues", "number of validation dialogues to measure clean turns on"),
        ("checked", "number of rewrites of each relation to measure on validation"),
    ):
        number = getattr(default, name)
        parser.value(
            f"--{name}",
            integer(1),
            "N",
            default=number,
            help=f"{help_text} (default: {number})",
        )
    parser.value(
        "--seed", integer(0), "N", default=0, help="seed of all random choices (default: 0)"
    )
    parser.option(
        "--resume", action="store_true", help="continue from the last round in the output folder"
    )


def _fraction(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise ValueError("must be a number from 0 to 1")
    return found


def _harden(given: Namespace) -> int:
    # Imported late, as above.
    from pytest_dstfuzz import Campaign  # noqa: PLC0415
    from pytest_dstfuzz.repair.hardening import (  # noqa: PLC0415
        RUN_FILE,
        HardeningSettings,
        TrackerHardener,
        folder_of,
        trainable_of,
    )

    if not given.resume and (given.output / RUN_FILE).exists():
        raise UserError(
            f"{given.output} already has a training run: continue it with --resume, or name "
            "another folder"
        )
    settings = build_given_settings(given, (*_OF_BOT, "data"))
    train, valid = (_training_data(given, settings, split) for split in _SPLITS)
    name = str(settings.tracker.model)
    campaign = Campaign(name, train, settings, relation=given.relations)
    learner = trainable_of(campaign.tracker, name)
    chosen = HardeningSettings(
        **{name: getattr(given, name) for name in _OF_HARDENING},
        batch_size=settings.tracker.batch_size,
    )
    hardener = TrackerHardener(
        campaign.tracker, learner, (train, valid), chosen, say, _bot_digest(campaign)
    )
    result = hardener.run(resume=given.resume)
    best = result.best
    print(printable(f"best: {best.line()} (ended by {result.ended_by})"))
    if not result.better:
        print("no round is better than the bot before the training")
        return 1
    print(printable(f"the trained bot is in {folder_of(given.output, best.number)}"))
    return 0


def _bot_digest(campaign: Campaign) -> str:
    """Return a digest of the bot, of the user's relations, and of this package."""
    from pytest_dstfuzz.campaign.engine import digest_of_package  # noqa: PLC0415 - as above
    from pytest_dstfuzz.json_data import json_encoded  # noqa: PLC0415 - as above

    # The hardener compares the data, which may have another path when the run is resumed.
    about = {name: value for name, value in campaign.identity.items() if name != "data"}
    return hashlib.sha256(json_encoded([about, digest_of_package()])).hexdigest()


def _training_data(given: Namespace, settings: Settings, split: str) -> DialogueSet:
    """Return a split of the data without the dialogues that will measure the bot."""
    from pytest_dstfuzz import load_dialogues  # noqa: PLC0415 - as above
    from pytest_dstfuzz.repair.measured import without_measured  # noqa: PLC0415 - as above

    found = load_dialogues(settings.data.data, split)
    if given.measured == NOTHING:
        return found
    name = given.measured or str(settings.data.data)
    return without_measured(found, load_dialogues(name, "test"), name, say)


HARDEN = Command(
    "harden",
    "train a tracker against rewritten turns",
    "every finished round is saved, and the same command with --resume continues",
    """\
  dstfuzz harden --model my_bot:Tracker --data conversations --output hardened
  dstfuzz harden --model my_bot:Tracker --data conversations --output hardened --resume""",
    _harden_options,
    _harden,
    about="Train a tracker in rounds, on rewritten turns with the right states and on clean\n"
    "turns. The tracker has methods to train, to save and to load it. The data has the splits\n"
    "train, val and test.",
)
