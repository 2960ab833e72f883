"""One self-contained page from a JSON report: nothing is loaded, every text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment

from pytest_dstfuzz.campaign.intervals import FEW_DIALOGUES, FEWEST_DIALOGUES
from pytest_dstfuzz.campaign.results import BY_LABEL
from pytest_dstfuzz.config.rates import percent, points
from pytest_dstfuzz.report.calls import call_changes
from pytest_dstfuzz.report.cards import Card
from pytest_dstfuzz.report.chances import ALL_DISTORTED, taken_out, user_turns
from pytest_dstfuzz.report.charts import (
    PAGE,
    Chart,
    ChartLine,
    DotPanel,
    Rated,
    dot_panels,
    line_charts,
)
from pytest_dstfuzz.report.edits import Span, needed_context, shown_spans, visible
from pytest_dstfuzz.report.html.records import page_data
from pytest_dstfuzz.report.html.shell import environment, insides, trusted
from pytest_dstfuzz.report.replies import reply_pairs
from pytest_dstfuzz.report.rounds import move_texts, shown_rounds
from pytest_dstfuzz.report.shown_violations import violation_lines
from pytest_dstfuzz.report.tally import (
    causes_text,
    changed_answers,
    expected_text,
    moved_dialogues,
)
from pytest_dstfuzz.report.terminal import between, how_text, interval_text
from pytest_dstfuzz.report.view import VERDICTS, View
from pytest_dstfuzz.report.weaknesses import MOST, moved_weaknesses
from pytest_dstfuzz.totals.plainest import MOST_ON_PAGE
from pytest_dstfuzz.totals.tallies import (
    EDIT_RATE_RANGES,
    Interval,
    RateRow,
    heat_map,
)
from pytest_dstfuzz.totals.totals import RelationTotals, outcome_columns

#: Highest failure rate of each shade of the heat map; above the last it is the darkest.
_SHADES: Final = (0.0, 0.05, 0.10, 0.20, 0.40)
_SHADE_NAMES: Final = ["0 %", *(f"to {100 * end:g} %" for end in _SHADES[1:]), "over 40 %"]
_MOST_REASONS: Final = 20
#: Reasons why a relation says nothing of a turn.
_MOST_UNMET: Final = 5
#: Violations that came or went since the baseline which are listed.
_MOST_PLACES: Final = 25


def html_text(report: Mapping[str, Any]) -> str:
    """Return the page of a report as `build_report` made or `read_report` read it."""
    return "".join(html_pieces(View.of(report)))


def html_pieces(view: View) -> Iterator[str]:
    """Yield the page piece by piece: that of a large run has some megabytes of data."""
    expected = view.summary.expected_failures
    return (
        _environment()
        .get_template("report.html.j2")
        .generate(
            view=view,
            words=view.words,
            summary=view.summary,
            broken=view.on_page.total > 0,
            weaknesses=view.weaknesses,
            tool=_tool(view),
            started=_moment(str(view.report["run"].get("started") or "")),
            how=how_text(view.settings.variant, view.first.slip_rates),
            **_figures(view),
            expected=user_turns(view.summary),
            taken_out=taken_out(expected) if expected else [],
            outcomes=_outcomes(view),
            vetoes=_counted(view.first.reasons.vetoes),
            failures=_counted(view.first.reasons.errors)[:_MOST_REASONS],
            new_violations=_new_violations(view),
            causes=causes_text(view.first.reasons.causes),
            **insides("report.js", page_data(view.turns, view.weaknesses.cards, view.on_page)),
        )
    )


def models_page(views: Mapping[str, View]) -> Iterator[str]:
    """Yield the page that leads to those of several trackers, by the names of their files."""
    rows = [{"link": quote(name), "view": view} for name, view in views.items()]
    tool = _tool(next(iter(views.values())))
    template = _environment().get_template("models.html.j2")
    return template.generate(tool=tool, rows=rows, **insides())


def _tool(view: View) -> str:
    tool = view.report.get("tool", {})
    return " ".join(str(tool.get(name, "")) for name in ("name", "version")).strip()


def _environment() -> Environment:
    """Return what renders the templates, with the functions that they call."""
    made = environment(finalize=_shown, keep_trailing_newline=True)
    made.globals.update(
        address=_address,
        all_distorted=ALL_DISTORTED,
        between=between,
        by_label=BY_LABEL,
        changed_answers=changed_answers,
        chance=_chance,
        few_dialogues=FEW_DIALOGUES,
        outcome_columns=outcome_columns,
        fewest_dialogues=FEWEST_DIALOGUES,
        expected_text=expected_text,
        calls=lambda card: call_changes(card.turn, card.variant.plain.changed_slots, page=True),
        counted=lambda part, whole: f"{part:,} of {whole:,}",
        heat_level=heat_level,
        interval_text=interval_text,
        most_places=_MOST_PLACES,
        moved=lambda before, after: points(None if before is None else after - before),
        moved_dialogues=moved_dialogues,
        moved_weaknesses=moved_weaknesses,
        number=_number,
        percent=percent,
        points=points,
        points_between=_points_between,
        reasons=_reasons,
        replies=lambda card: reply_pairs(card.turn, card.variant.plain.changed_slots),
        said=_said,
        most_on_page=MOST_ON_PAGE,
        most_weaknesses=MOST,
        tones={name: kind for name, (kind, _) in VERDICTS.items()},
    )
    return made


def _figures(view: View) -> dict[str, Any]:
    """Return figures and plots, by their names in the template."""
    rates = view.first.rates
    transformations, edit_rates = rates.transformations, rates.edit_rates
    return {
        "transformations": transformations,
        "edit_rates": edit_rates,
        "ranges": EDIT_RATE_RANGES,
        "heat": heat_map(view.first.yields, view.first.kind),
        "heat_names": _SHADE_NAMES,
        "plots": {
            "transformations": trusted(_transformation_plot(transformations)),
            "edit_rates": trusted(_edit_rate_plot(edit_rates)),
        },
    }


def heat_level(rate: float | None) -> int:
    """Return the shade of a failure rate: 0 where nothing failed or was answered, up to 5."""
    return 0 if rate is None else sum(rate > shade for shade in _SHADES)


def _said(card: Card) -> list[tuple[str, list[str | Span]]]:
    """Return what is said in the plainest violation of a weakness: by whom, with its edits."""
    earlier = [
        (f"turn {index}", shown_spans(source, edits))
        for index, source, edits in needed_context(card.variant)
    ]
    system: list[tuple[str, list[str | Span]]] = (
        [("system", [card.turn.system])] if card.turn.system else []
    )
    if card.variant.exchanges is not None:
        moved: list[str | Span] = ["; ".join(move_texts(card.variant))]
        rounds = shown_rounds(card.variant)
        texts = [f"{one.system} / {one.user}" if one.system else one.user for one in rounds]
        seen: list[tuple[str, list[str | Span]]] = [
            (f"round {number}", [text]) for number, text in enumerate(texts, 1)
        ]
        return [("moved", moved), *seen]
    user = shown_spans(card.turn.user, card.variant.plain.edits)
    return [*earlier, *system, ("user", user)]


def _new_violations(view: View) -> list[tuple[str, list[str]]]:
    """Return where the new violations are, and what was said and changed in each."""
    return [
        (f"{turn.id}, variant {variant.index}", violation_lines(turn, variant))
        for turn, variant in view.new_violations
    ]


def _reasons(section: RelationTotals) -> list[tuple[str, str]]:
    """Return why a relation said nothing of most of the turns that it said nothing of."""
    return _counted(section.inapplicable)[:_MOST_UNMET]


def _address(filters: Mapping[str, str]) -> str:
    """Return the address at which the page shows the violations that ``filters`` let through."""
    return "#" + urlencode({name: visible(value) for name, value in filters.items()})


def _points_between(interval: Interval | None) -> str:
    if interval is None:
        return "too few dialogues for an interval"
    return f"95 % interval {points(interval[0])} to {points(interval[1])}, dialogues as unit"


def _chance(p_value: float | None) -> str:
    """Say what a permutation test of the two builds gave."""
    return "" if p_value is None else f"; p = {p_value:.3g}, permutation test"


def _moment(text: str) -> str:
    """Return an ISO moment as people write it.

    >>> _moment("2026-05-04T18:35:16+00:00")
    '2026-05-04 18:35 UTC'
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M %Z}".rstrip()


def _transformation_plot(rows: Sequence[RateRow]) -> str:
    valid: list[Rated] = [(row.counts.valid_rate, row.valid_interval) for row in rows]
    failure = [_failure(row) for row in rows]
    return dot_panels(
        [row.name for row in rows],
        [
            DotPanel("valid rate", valid, "valid", low=90.0, high=100.0),
            DotPanel("failure rate", failure, "failure", low=0.0),
        ],
        _shown_as("Valid rate and failure rate by transformation"),
    )


def _edit_rate_plot(series: Mapping[str, Mapping[str, RateRow]]) -> str:
    names = [name.replace(" to ", "\u2013").removesuffix(" %") for name in EDIT_RATE_RANGES]
    lines = [
        ChartLine(level, [_failure(rows.get(name)) for name in EDIT_RATE_RANGES])
        for level, rows in series.items()
    ]
    return line_charts(
        [Chart("failure rate", names, "edit rate in %", lines)],
        width=440,
        theme=PAGE,
        attributes=_shown_as("Failure rate by edit rate of words and of characters"),
    )


def _failure(row: RateRow | None) -> Rated:
    return (None, None) if row is None else (row.counts.failure_rate, row.failure_interval)


def _shown_as(what: str) -> str:
    """Return what tells those who do not see a plot what it shows."""
    label = f"{what}, with 95 % intervals; the figures are in the table"
    return f' class="plot" role="img" aria-label="{label}"'


def _outcomes(view: View) -> list[tuple[str, str]]:
    summary = view.summary
    unstable = ("unstable",) if summary.unstable else ()
    names = ("generated", "vacuous", "duplicate", "vetoed", "over_rate", *unstable, "valid")
    run = ("held", "violations", "carried", "improved", "errors")
    rows = [(name.replace("_", " "), _number(getattr(summary, name))) for name in (*names, *run)]
    who = view.words.who
    return [*rows, (f"calls of {who}", _number(summary.calls))]


def _counted(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(name, _number(count)) for name, count in counts.items()]


def _number(value: int) -> str:
    return f"{value:,}"


def _shown(value: object) -> object:
    """Write characters that cannot be seen by their number, in every text of the page."""
    return visible(value) if type(value) is str else value
