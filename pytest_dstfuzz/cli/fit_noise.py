"""``dstfuzz fit-noise``: fit a noise model to texts of a team's own users."""

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

#: If the texts have fewer slips, the fitted model is mostly the shipped model.
_FEW: Final = 100
#: Maximum number of kinds, and of slips, that are shown.
_SHOWN: Final = 10
_EXAMPLES = """\
  dstfuzz fit-noise logs.jsonl --output noise.json       a line: {"text": "i need a taxi"}
  dstfuzz fit-noise conversations.jsonl --output noise.json
  dstfuzz fit-noise MultiWOZ_2.1 --split train --output noise.json
LOGS are texts exactly as users typed them: not corrected, and not in lower case. They are either
JSON Lines with one user turn per line ("..." or {"text": "..."}), or dialogues in any layout that
--dst-data reads (only the user turns are used). 1,000 turns are enough to estimate habits of
capitals and punctuation, and 100,000 to estimate slips of letters. Everything else stays as in the
shipped models. The file contains words and counts, but no turns. It does contain the words that at
least two dialogues misspell in the same way: read it before you share it."""


def _options(parser: Parser) -> None:
    parser.add_argument(
        "logs", type=Path, metavar="LOGS", help="texts that users typed (see below)"
    )
    parser.option("--output", type=Path, metavar="FILE", required=True, help="file to write")
    parser.option(
        "--split",
        default="test",
        metavar="NAME",
        help="split of the dialogues, if they have splits: train, val or test (default: test)",
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
    slips = len(found.slips)
    yield f"user turns: {turns:,}; words: {found.words:,}; typing slips found: {slips:,}"
    casual = sum(kind.share for kind in found.file.kinds if kind.name in found.habits)
    yield (
        f"combined with the shipped models: {found.file.slip_rate:.4f} slips per word, "
        f"{casual:.0%} of them casual writing:"
    )
    kinds = sorted(found.file.kinds, key=lambda kind: -kind.share)
    for kind in kinds[:_SHOWN]:
        yield f"  {kind.name:<16} {kind.share:6.1%}"
    counted = Counter((slip.word, slip.typed) for slip in found.slips).most_common(_SHOWN)
    if counted:
        yield f"most frequent: {', '.join((f'{typed} ({word})' for (word, typed), _ in counted))}"
        yield "If a name or a word of yours is in this list, it is not a slip: leave out its turns."
    for note in found.notes:
        yield f"note: {note}"
    if slips < _FEW:
        yield (
            f"note: fewer than {_FEW} typing slips were found, so the letters that slip are mostly "
            "those of the shipped model"
        )
    yield f"written to {output}"


COMMANDS = (
    Command(
        "fit-noise",
        "fit a noise model of typing errors and casual writing to your own logs",
        "nothing was written",
        _EXAMPLES,
        _options,
        _fit,
    ),
)
