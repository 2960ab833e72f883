"""``dstfuzz freeze``: write rewritten turns to a file that a person reviews and commits."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import Command, build_given_settings, load_data
from pytest_dstfuzz.config import parsers
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError

if TYPE_CHECKING:
    from pytest_dstfuzz.relations.sources import CandidateSource

_READ: Final = (
    *("data", "split", "domains", "slots", "outcome", "tools"),
    *("turns", "lock", "seed"),
)
_EXAMPLES = """\
  dstfuzz freeze --data mine.jsonl --source phrase-table --output frozen.jsonl
  dstfuzz freeze --data mine.jsonl --source retrieval --pool multiwoz21 --output frozen.jsonl
  dstfuzz freeze --data mine.jsonl --outcome tool-calls --tools tools.json \\
    --source phrase-table --output frozen.jsonl
  (review the file: "verdict": "keeps" or "changes", and your name as "reviewer")
  pytest --dst-model=trade --dst-data=mine.jsonl --dst-relation=frozen:frozen.jsonl
If the file exists, new candidates are added. Its candidates and verdicts do not change."""


def _options(parser: Parser) -> None:
    parser.shared(*_READ)
    parser.option(
        "--source",
        required=True,
        metavar="SOURCE",
        help="source of the rewritten turns: a relation such as phrase-table, masked-replacement "
        "or retrieval; t5:MODEL; or marian:THERE,BACK, two translation models (both need the "
        "extra 'simpletod')",
    )
    parser.option(
        "--pool",
        metavar="PATH",
        help="other data with labels, such as a training split, for --source retrieval",
    )
    parser.value(
        "--pool-split",
        parsers.canonical_split,
        "SPLIT",
        default="train",
        help="split of the data of --pool (default: train)",
    )
    each = parsers.count(1, 100)
    parser.value(
        "--each",
        each.parse,
        each.metavar,
        default=3,
        help="maximum number of candidates for each turn (default: 3)",
    )
    parser.option(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON Lines file to write, or to extend if it exists",
    )


def _freeze(given: Namespace) -> None:
    # Imported late so that help and usage errors do not wait for numpy.
    from pytest_dstfuzz.dialogue.sampling import sample_turns  # noqa: PLC0415
    from pytest_dstfuzz.relations.sources import (  # noqa: PLC0415
        FrozenFile,
        candidate_rows,
        read_frozen,
    )

    settings = build_given_settings(given, _READ)
    how, seed = settings.data, settings.variant.seed
    there = read_frozen(given.output) if given.output.exists() else FrozenFile()
    source = _source(given)
    data = load_data(settings)
    sampled = sample_turns(data, how.turns, seed, how.domains)
    turns = [(dialogue, index) for dialogue, last in sampled for index in range(last + 1)]
    rows = list(
        candidate_rows(source, data, turns, each=given.each, seed=seed, locks=settings.variant.lock)
    )
    file = there.joined(source.name, source.licence, rows)
    file.write(given.output)
    new = file.rows[len(there.rows) :]
    broken = Counter(row.lock for row in new if row.lock)
    told = ", ".join(f"{count:,} x {lock}" for lock, count in sorted(broken.items()))
    print(
        f"new candidates of {source.name}: {len(new):,}, for {len({row.key for row in new}):,} of "
        f"{len(turns):,} turns; rejected by a lock: {broken.total():,}"
        f"{f' ({told})' if told else ''}"
    )
    unread = sum(not row.verdict and not row.lock for row in file.rows)
    print(f"candidates in {given.output}: {len(file.rows):,}; to be reviewed: {unread:,}")


def _source(given: Namespace) -> CandidateSource:
    from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.generative import generative_source  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.sources import pool_source, relation_source  # noqa: PLC0415 - as above

    if given.pool is not None:
        if given.source != "retrieval":
            raise UserError(f"--pool applies only to --source retrieval, not to {given.source!r}")
        return pool_source(load_dialogues(given.pool, given.pool_split))
    if ":" in given.source:
        return generative_source(given.source)
    return relation_source(given.source)


COMMANDS = (
    Command(
        name="freeze",
        summary="write rewritten turns to a file, for a person to review and commit",
        kept="the file is unchanged",
        examples=_EXAMPLES,
        options=_options,
        work=_freeze,
    ),
)
