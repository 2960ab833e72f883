"""Draw a sheet for a reader who judges whether violations keep the meaning.

``dstfuzz experiment precision-sheet REPORT --sheet SHEET --key KEY`` draws violations out
of a JSON report, at most one a dialogue, and mixes hidden decoys among them; what the
files hold is told in `precision`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.experiments.arguments import Parser, whole_number
from pytest_dstfuzz.experiments.precision import write_sheet


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments that follow its name.

    Raises:
        UserError: an argument or the report will not do.
    """
    parser = Parser("dstfuzz experiment precision-sheet", __doc__ or "")
    parser.add_argument("report", type=Path, metavar="REPORT", help="JSON report of a campaign")
    parser.value("--sheet", Path, "PATH", help="for the reader", default=Path("sheet.jsonl"))
    parser.value("--key", Path, "PATH", help="not for the reader", default=Path("key.jsonl"))
    parser.value("--violations", whole_number(1), "N", help="at most (default: 200)", default=200)
    parser.value("--decoys", whole_number(0), "N", help="how many (default: 40)", default=40)
    parser.value("--seed", whole_number(0), "N", help="seed of the draw (default: 0)", default=0)
    given = parser.parse_all(arguments)
    sheet = write_sheet(
        given.report,
        given.sheet,
        given.key,
        violations=given.violations,
        decoys=given.decoys,
        seed=given.seed,
    )
    real = sum(row["kind"] == "violation" for row in sheet.key)
    print(
        f"{given.sheet}: {len(sheet.rows)} rows, of which {real} are violations and "
        f"{len(sheet.rows) - real} decoys; {given.key} tells which"
    )
    return 0
