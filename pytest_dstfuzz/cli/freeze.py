"""``dstfuzz freeze``: write rewritten turns to a file that a person reviews and commits."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.cli.command import Command, build_given_settings, load_data
from pytest_dstfuzz.config import KEYS, Address, Settings, parsers
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.secret import without_credentials
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import check_writable

if TYPE_CHECKING:
    from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
    from pytest_dstfuzz.relations.sources import CandidateSource, FrozenFile

_READ: Final = (
    *("data", "split", "domains", "slots", "outcome", "tools"),
    *("turns", "lock", "seed"),
)
#: The keys of ``--tracker`` that apply to the service of a language model.
_SERVICE: Final = (
    *("timeout", "retries", "dead_after", "concurrency", "rate_limit", "header"),
    *("service_model", "prices", "stream"),
)
_BUDGET: Final = ("max_calls", "max_seconds", "max_tokens", "max_cost")
_EXAMPLES = """\
  dstfuzz freeze --data mine.jsonl --source phrase-table --output frozen.jsonl
  dstfuzz freeze --data mine.jsonl --source retrieval --pool multiwoz21 --output frozen.jsonl
  dstfuzz freeze --data mine.jsonl --outcome tool-calls --tools tools.json \\
    --source phrase-table --output frozen.jsonl
  dstfuzz freeze --data mine.jsonl --source 'openai+http://localhost:8000/v1?model=NAME' \\
    --max-calls 500 --output frozen.jsonl
  dstfuzz freeze --data mine.jsonl --source 'anthropic+https://HOST?model=NAME' \\
    --tracker timeout=120 --output frozen.jsonl
  (review the file: "verdict": "keeps" or "changes", and your name as "reviewer")
  pytest --dst-model=trade --dst-data=mine.jsonl --dst-relation=frozen:frozen.jsonl
If the file exists, new candidates are added. Its candidates and verdicts do not change.
The variable DSTFUZZ_TOKEN is the key of a language model. A call of the budget is one request
to it. After the end of a budget or Ctrl-C, the same command continues the file."""


def _options(parser: Parser) -> None:
    parser.shared(*_READ)
    parser.option(
        "--source",
        required=True,
        metavar="SOURCE",
        help="source of the rewritten turns: a relation such as phrase-table, masked-replacement "
        "or retrieval; t5:MODEL; marian:THERE,BACK, two translation models (both need the extra "
        "'simpletod'); or the address of a language model, openai+http://... or "
        "anthropic+https://... (needs the extra 'chat'), which also compares each candidate with "
        "the turn",
    )
    parser.shared("tracker", *_SERVICE, *_BUDGET)
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

    _refuse_unused(given)
    settings = build_given_settings(given, (*_READ, *_SERVICE, *_BUDGET))
    how, seed = settings.data, settings.variant.seed
    there = read_frozen(given.output) if given.output.exists() else FrozenFile()
    source = None if _names_model(given.source) else _source(given)
    data = load_data(settings)
    sampled = sample_turns(data, how.turns, seed, how.domains)
    turns = [(dialogue, index) for dialogue, last in sampled for index in range(last + 1)]
    if source is None:
        file, name = _ask_model(given, settings, there, data, turns)
    else:
        locks, name = settings.variant.lock, source.name
        rows = candidate_rows(source, data, turns, each=given.each, seed=seed, locks=locks)
        file = there.joined(source.name, source.licence, rows).write_onto(given.output, there)
    known = {(row.key, row.text) for row in there.rows}
    new = [row for row in file.rows if (row.key, row.text) not in known and row.source == name]
    broken = Counter(row.lock for row in new if row.lock)
    told = ", ".join(f"{count:,} x {lock}" for lock, count in sorted(broken.items()))
    print(
        f"new candidates of {name}: {len(new):,}, for {len({row.key for row in new}):,} of "
        f"{len(turns):,} turns; rejected by a lock: {broken.total():,}"
        f"{f' ({told})' if told else ''}"
    )
    unread = sum(
        not (row.verdict or row.lock or row.back_check == "different") for row in file.rows
    )
    print(f"candidates in {given.output}: {len(file.rows):,}; to be reviewed: {unread:,}")


def _ask_model(
    given: Namespace,
    settings: Settings,
    there: FrozenFile,
    data: DialogueSet,
    turns: Sequence[tuple[Dialogue, int]],
) -> tuple[FrozenFile, str]:
    """Return the file with candidates of a language model, and the name of the source."""
    from pytest_dstfuzz.cli.paraphrases import connect  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.sources import candidate_scenes  # noqa: PLC0415 - as above

    check_writable(given.output)
    writer = connect(given.source, settings, given.output)
    locks, seed = settings.variant.lock, settings.variant.seed
    scenes = candidate_scenes(writer.name, data, turns, seed=seed, locks=locks)
    file = writer.extend(there, scenes, given.each)
    file = file.write_onto(given.output, file)
    writer.print_table()
    return file, writer.name


def _names_model(source: str) -> bool:
    """Return whether a source is the address of a language model, right or wrong."""
    is_address = isinstance(without_credentials(source), Address)
    return is_address or source.lower().startswith(("openai+", "anthropic+"))


def _refuse_unused(given: Namespace) -> None:
    """Refuse options that have no effect on the source."""
    if given.pool is not None and given.source != "retrieval":
        shown = str(without_credentials(given.source))
        raise UserError(f"--pool applies only to --source retrieval, not to {shown!r}")
    keys = {name for name in KEYS if vars(given).get(name) is not None}
    if unused := sorted(keys.difference(_SERVICE)) or sorted(
        one.name for one in given.tracker or ()
    ):
        raise UserError(
            f"--tracker {unused[0].replace('_', '-')} has no effect on --source: the keys of a "
            f"language model are {', '.join(_SERVICE).replace('_', '-')}"
        )
    budget = [name for name in _BUDGET if vars(given)[name] is not None]
    if (keys or budget) and not _names_model(given.source):
        option = f"--{budget[0]}" if budget else "--tracker"
        raise UserError(
            f"{option.replace('_', '-')} applies only if --source is the address of a language "
            "model, such as openai+http://localhost:8000/v1: leave it out"
        )


def _source(given: Namespace) -> CandidateSource:
    from pytest_dstfuzz.dialogue.load import load_dialogues  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.generative import generative_source  # noqa: PLC0415 - as above
    from pytest_dstfuzz.relations.sources import pool_source, relation_source  # noqa: PLC0415 - as above

    if given.pool is not None:
        return pool_source(load_dialogues(given.pool, given.pool_split))
    if ":" in given.source:
        return generative_source(given.source)
    return relation_source(given.source)


COMMANDS = (
    Command(
        name="freeze",
        summary="write rewritten turns to a file, for a person to review and commit",
        kept="the file has the candidates of a language model so far, and the same command "
        "continues it; another source has changed nothing",
        examples=_EXAMPLES,
        options=_options,
        work=_freeze,
    ),
)
