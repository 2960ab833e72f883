"""``dstfuzz fit-noise``: a noise model of the typing of a team's own users."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import Command
from pytest_dstfuzz.config import canonical_split
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.printable import printable

if TYPE_CHECKING:
    from pytest_dstfuzz.noise.fit import LogModel

#: With fewer slips, the fitted model is mostly the shipped one.
_FEW: Final = 100
#: Most kinds and slips that are shown.
_SHOWN: Final = 10
_EXAMPLES = """\
  dstfuzz fit-noise logs.jsonl --output noise.json       {"text": "i need a taxi"} a line
  dstfuzz fit-noise conversations.jsonl --output noise.json
  dstfuzz fit-noise MultiWOZ_2.1 --split train --output noise.json
LOGS are what users typed, as they typed it: not corrected, not in small letters. Either JSON Lines
with a text a line ("..." or {"text": "..."}), one turn of a user each, or dialogues in any layout
that --dst-data reads, of which the users' turns are taken. 1,000 turns tell of capitals and marks,
100,000 of letters; what they do not tell stays as in the shipped models. The file holds words and
counts, no turn; but words that two dialogues or more misspell alike are in it: look it through
before you share it."""


def _options(parser: Parser) -> None:
    parser.add_argument("logs", type=Path, metavar="LOGS", help="what users typed: see below")
    parser.option("--output", type=Path, metavar="FILE", required=True, help="the file to write")
    parser.option(
        "--split",
        default="test",
        metavar="NAME",
        help="of dialogues that have splits: train, val or test (default: test)",
    )


def _fit(given: Namespace) -> None:
    split = canonical_split(given.split)
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.files import check_apart, check_writable, write_json  # noqa: PLC0415
    from pytest_dstfuzz.noise.fit import fit_log, read_log  # noqa: PLC0415
    from pytest_dstfuzz.noise.model import NoiseModel  # noqa: PLC0415
    from pytest_dstfuzz.noise.tables import plain  # noqa: PLC0415
    from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon  # noqa: PLC0415

    check_apart({"--output": given.output}, {"the logs": given.logs})
    check_writable(given.output)
    shipped = (NoiseModel.load(name).file for name in ("typing", "casual"))
    log = read_log(given.logs, split)
    found = fit_log(log, given.output.stem, load_lexicon(), *shipped)
    write_json(given.output, plain(found.file))
    print(printable("\n".join(_lines(found, len(log.turns), given.output))))


def _lines(found: LogModel, turns: int, output: Path) -> Iterator[str]:
    slips = f"{len(found.slips):,} slips of typing found"
    yield f"{turns:,} turns of users, {found.words:,} words; {slips}"
    casual = sum(kind.share for kind in found.file.kinds if kind.name in found.habits)
    yield (
        f"with what is known of others {found.file.slip_rate:.4f} slips per word, {casual:.0%} of "
        "them casual writing:"
    )
    kinds = sorted(found.file.kinds, key=lambda kind: -kind.share)
    for kind in kinds[:_SHOWN]:
        yield f"  {kind.name:<16} {kind.share:6.1%}"
    counted = Counter((slip.word, slip.typed) for slip in found.slips).most_common(_SHOWN)
    if counted:
        yield f"most often: {', '.join(f'{typed} ({word})' for (word, typed), _ in counted)}"
        yield "Is one of them a name or a word of yours? It is no slip: leave its turns out."
    for note in found.notes:
        yield f"note: {note}"
    if len(found.slips) < _FEW:
        yield (
            f"note: with {len(found.slips)} slips found, which letters slip is mostly as in the "
            "shipped model"
        )
    yield f"written to {output}"


COMMANDS = (
    Command(
        "fit-noise",
        "fit a model of typing errors and casual writing to your own logs",
        "nothing was written",
        _EXAMPLES,
        _options,
        _fit,
    ),
)
