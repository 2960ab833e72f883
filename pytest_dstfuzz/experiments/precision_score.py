"""Score a reader's judgements of a sheet.

``dstfuzz experiment precision-score KEY JUDGEMENTS`` compares judgements, one JSON object
``{"id": "q001", "same": true}`` a line, with the key of `precision_sheet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.experiments.arguments import Parser
from pytest_dstfuzz.experiments.precision import read_jsonl, score, score_lines


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments that follow its name.

    Raises:
        UserError: an argument will not do, or the judgements do not fit the key.
    """
    parser = Parser("dstfuzz experiment precision-score", __doc__ or "")
    parser.add_argument("key", type=Path, metavar="KEY", help="written with the sheet")
    parser.add_argument("judgements", type=Path, metavar="JUDGEMENTS", help="of the reader")
    given = parser.parse_all(arguments)
    print("\n".join(score_lines(score(read_jsonl(given.key), read_jsonl(given.judgements)))))
    return 0
