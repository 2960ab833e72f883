"""The tables of attacks on negotiators, beside those that were published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pytest_dstfuzz import __version__
from pytest_dstfuzz.papers.formatting import NONE, Columns, csv_number, csv_text, markdown_table
from pytest_dstfuzz.papers.negotiation_rows import ROWS, TARGETS, PlayedRow

#: Advantage of the adversary as published (Cheng et al. 2019, tables 2, 6 and 7, 2,000 games):
#: row -> by target.
PUBLISHED: Final[Mapping[str, Mapping[str, float]]] = {
    "no-attack": {"sv": 2.68, "rl": 0.05, "hardened": -0.13},
    "transfer": {"sv": -0.13, "rl": -1.19, "hardened": -2.66},
    "rl-attack": {"sv": 4.25, "rl": 2.32, "hardened": -1.80},
    "reactive": {"sv": 5.40, "rl": 4.95, "hardened": 4.52},
    "preemptive": {"sv": 2.81, "rl": 0.77, "hardened": -1.77},
    "delayed": {"sv": 5.83, "rl": 5.78, "hardened": 3.98},
    "transferred": {"sv": 5.62, "rl": 5.70, "hardened": 3.93},
    "reactive-1": {"rl": 5.52},
    "reactive-3": {"rl": 5.19},
    "reactive-4": {"rl": 4.84},
}
#: What Lewis et al. (2017) and Cheng et al. (2019) give for the negotiators themselves.
_PUBLISHED_FIT: Final = (
    "Published: perplexity 5.47 (supervised) and 5.86 (by score) on test, counted over all words "
    "of a talk, of which the first is not predicted; in games against the supervised one the one "
    "by score has 7.23 to 4.55, agreed 89.57 % (Cheng et al. 2019, section 7.1 and table 2), and "
    "two supervised ones 5.4 to 5.5, agreed 87.9 % (Lewis et al. 2017, table 1)."
)


def tables(
    measured: Mapping[str, Any], rows: Sequence[PlayedRow], command: str, game: str
) -> dict[str, str]:
    """Return the tables as Markdown and CSV, by the names of their files."""
    lines = [
        "# Attacks on negotiators",
        "",
        f"- command: `{command}` (pytest-dstfuzz {__version__})",
        f"- game: {game}, scenarios drawn by chance; in brackets 95 % intervals over games",
        "",
        "## The negotiators",
        "",
        *_fits(measured),
        "",
        _PUBLISHED_FIT,
    ]
    for target, about in TARGETS.items():
        found = [row for row in rows if row.target == target]
        if found:
            lines += ["", f"## Against `{target}`: {about}", "", *_attacks(found)]
    csv = csv_text(_COLUMNS, rows)
    return {"negotiation.md": "\n".join(lines) + "\n", "negotiation.csv": csv}


def _fits(measured: Mapping[str, Any]) -> list[str]:
    head = ["negotiator", "perplexity", "as published counts", "selections right", "against"]
    head += ["own score", "other's", "agreed"]
    rows = []
    for name, one in measured.items():
        fit = one["test"]
        for other, figures in one["against"].items():
            rows.append(
                [
                    f"`{name}`",
                    f"{fit['perplexity']:.2f}",
                    f"{fit['published']:.2f}",
                    f"{100 * fit['selected']:.1f} %",
                    f"`{other}`",
                    f"{figures['adversary']:.2f}",
                    f"{figures['target']:.2f}",
                    f"{100 * figures['agreement']:.1f} %",
                ]
            )
    return markdown_table(head, rows)


def _attacks(rows: Iterable[PlayedRow]) -> list[str]:
    head = ["attack", "games", "positive", "score", "advantage", "published", "agreed", "attacked"]
    head += ["perplexity", "last line that won most"]
    cells = []
    for row in rows:
        found = row.figures
        known = PUBLISHED.get(row.name, {}).get(row.target)
        cells.append(
            [
                ROWS[row.name].about,
                f"{found.games:,}",
                f"{100 * found.positive.value:.1f} %",
                f"{found.adversary:.2f} : {found.target:.2f}",
                found.advantage.text(),
                NONE if known is None else f"{known:.2f}",
                f"{100 * found.agreement:.1f} %",
                NONE if row.attacked is None else f"{100 * row.attacked:.0f} %",
                NONE if row.perplexity is None else f"{row.perplexity:.1f}",
                f"{row.line} ({100 * row.line_share:.0f} %)" if row.line else NONE,
            ]
        )
    return markdown_table(head, cells)


_COLUMNS: Final[Columns] = {
    "target": lambda row: row.target,
    "row": lambda row: row.name,
    "games": lambda row: row.figures.games,
    "positive": lambda row: csv_number(row.figures.positive.value),
    "adversary": lambda row: csv_number(row.figures.adversary),
    "target_score": lambda row: csv_number(row.figures.target),
    "advantage": lambda row: csv_number(row.figures.advantage.value),
    "advantage_low": lambda row: csv_number(row.figures.advantage.low),
    "advantage_high": lambda row: csv_number(row.figures.advantage.high),
    "published": lambda row: csv_number(PUBLISHED.get(row.name, {}).get(row.target)),
    "agreement": lambda row: csv_number(row.figures.agreement),
    "attacked": lambda row: csv_number(row.attacked),
    "perplexity": lambda row: csv_number(row.perplexity),
    "line_share": lambda row: csv_number(row.line_share),
}
