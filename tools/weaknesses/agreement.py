"""Measures how well groupings of the same violations agree, by the adjusted Rand index.

``python -m tools.weaknesses.agreement ids.tsv ours.csv READER/groups.csv ...`` prints the index of
each two groupings, over all rows and over those of each tracker alone. The second does not reward
that every grouping separates the trackers. If there are three groupings, the first is ours and the
others are those of readers. The lower of their agreements with ours is then compared with their own
agreement.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import DataError, UserError

_WITH_TWO_READERS: Final = 3


def adjusted_rand(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return the adjusted Rand index of two groupings of the same things.

    The index is 1 for equal groupings, and 0 on average for random groups of these sizes (Hubert
    and Arabie, Journal of Classification 2, 1985, pages 193 to 218).

    >>> adjusted_rand("aabb", "ccdd"), adjusted_rand("aabb", "cdcd")
    (1.0, -0.5)
    """
    together = _pairs(zip(one, other, strict=True))
    ones, others = _pairs(one), _pairs(other)
    expected = ones * others / max(comb(len(one), 2), 1)
    most = (ones + others) / 2
    return 1.0 if most == expected else (together - expected) / (most - expected)


def _pairs(labels: Iterable[Hashable]) -> int:
    """Return how many pairs of things have the same label."""
    return sum(comb(count, 2) for count in Counter(labels).values())


def read_groups(path: Path) -> dict[int, str]:
    """Return row -> group of a file of comma-separated values with the columns row and group."""
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = [(int(row["row"]), row["group"].strip()) for row in csv.DictReader(lines)]
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path} has no columns row and group: {error}") from None
    groups = dict(rows)
    if len(groups) < len(rows) or not all(groups.values()):
        raise DataError(f"{path} has a row twice, or one without a group")
    return groups


def table(trackers: Mapping[int, str], groupings: Mapping[str, Mapping[int, str]]) -> list[str]:
    """Return a line for each two groupings, and the ratio that the first must reach."""
    for name, groups in groupings.items():
        if set(groups) != set(trackers):
            missing = sorted(set(trackers) ^ set(groups))
            raise DataError(f"{name} lacks rows, or has others: {missing[:10]}")
    parts = {"all": sorted(trackers)}
    for tracker in sorted(set(trackers.values())):
        parts[tracker] = [row for row in sorted(trackers) if trackers[row] == tracker]
    lines = [["", *parts]]
    for name, groups in groupings.items():
        counts = [len({groups[row] for row in rows}) for rows in parts.values()]
        lines.append([f"groups of {name}", *map(str, counts)])
    names = list(groupings)
    found = {
        (a, b): [_between(groupings[a], groupings[b], rows) for rows in parts.values()]
        for a, b in combinations(names, 2)
    }
    lines += [[f"{a} and {b}", *(f"{index:.3f}" for index in row)] for (a, b), row in found.items()]
    if len(names) == _WITH_TWO_READERS:
        first, second, readers = found.values()
        least = [min(pair) for pair in zip(first, second, strict=True)]
        ratios = [f"{a / b:.3f}" if b > 0 else "n/a" for a, b in zip(least, readers, strict=True)]
        lines.append(["the less of the first with a reader, of the readers'", *ratios])
    return ["\t".join(line) for line in lines]


def _between(one: Mapping[int, str], other: Mapping[int, str], rows: Sequence[int]) -> float:
    return adjusted_rand([one[row] for row in rows], [other[row] for row in rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ids", type=Path, help="ids.tsv of the sheet")
    parser.add_argument("groups", type=Path, nargs="+", help="files with the columns row and group")
    options = parser.parse_args(arguments)
    try:
        with options.ids.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines, delimiter="\t")
            trackers = {int(row["row"]): row["tracker"] for row in rows}
        lines = table(trackers, {str(path): read_groups(path) for path in options.groups})
    except (OSError, KeyError, ValueError) as error:
        print(f"{options.ids} is no list of ids: {error}", file=sys.stderr)
        return 2
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
