"""The page of a JSON report as one file that loads nothing and escapes every text."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pytest_dstfuzz.campaign.figures import FEW_DIALOGUES, FEWEST_DIALOGUES, tally_results
from pytest_dstfuzz.campaign.results import (
    BY_LABEL,
    Minimal,
    Results,
    TurnResult,
    VariantResult,
)
from pytest_dstfuzz.config.parsers import percent, points
from pytest_dstfuzz.dialogue.calls import Outcome, format_value, list_calls
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.report.answers import LONGEST_ON_PAGE, call_changes, code_of, reply_pairs
from pytest_dstfuzz.report.charts import (
    PAGE,
    Chart,
    ChartLine,
    DotPanel,
    RateWithInterval,
    dot_panels,
    line_charts,
)
from pytest_dstfuzz.report.explain import (
    accept_command,
    blame,
    doubts,
    keyword,
    move_texts,
    repeat_command,
    shown_rounds,
)
from pytest_dstfuzz.report.figures import (
    causes_text,
    describe_expected,
    list_changed_answers,
    list_moved_dialogues,
)
from pytest_dstfuzz.report.screen import (
    VERDICTS,
    estimated,
    new_heading,
    open_first,
    place_text,
    weakness_text,
)
from pytest_dstfuzz.report.terminal import between, how_text, interval_text
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.report.weaknesses import (
    ALL_DISTORTED,
    Card,
    conversation_rows,
    counted_weaknesses,
    likely_text,
    moved_weaknesses,
    reach_text,
    taken_out,
)
from pytest_dstfuzz.report.wording import (
    Span,
    earlier_edits,
    legend,
    mark_spans,
    needed_context,
    visible,
)
from pytest_dstfuzz.totals.plainest import (
    MOST_ON_PAGE,
    NEW,
    Novelty,
    OnPage,
    OnPageTally,
    PlainKey,
    simplicity,
)
from pytest_dstfuzz.totals.tallies import (
    EDIT_RATE_RANGES,
    Interval,
    RateRow,
    heat_map,
)
from pytest_dstfuzz.totals.totals import RelationTotals, outcome_columns
from pytest_dstfuzz.weaknesses.groups import member_id

__all__ = ["environment", "insides"]


#: Characters that could end a script element, begin a comment in it, or end a JavaScript line.
_UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
#: Placeholders for keyword, name and variant in a command. Quoting for a shell leaves them as is.
_WORD: Final = "@word@"
_NAME: Final = "@name@"
_NUMBER: Final = "@number@"
_TEMPLATES: Final = Path(__file__).with_name("templates")


def environment(**more: Any) -> Environment:
    """Return a jinja2 environment that escapes every text; ``more`` are its options."""
    loader = FileSystemLoader(_TEMPLATES)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **more)


def insides(script: str = "", data: Any = None) -> dict[str, Any]:
    """Return the template variables for style, script, data and content policy.

    ``script`` is a file name. Without a script, the policy of the page forbids scripts.
    """
    parts = {"style": _file("style.css")}
    if script:
        parts["script"] = _file(script)
    found: dict[str, Any] = {name: trusted(text) for name, text in parts.items()}
    found["policy"] = content_policy(dict(sorted(parts.items())))
    return found | {"data": trusted(script_json(data))} if script else found


def trusted(text: str) -> Markup:
    """Mark a text as safe. Use it only for texts that this package generated and escaped."""
    return Markup(text)  # noqa: S704 - style, script and plots are ours, the data is escaped


def _file(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def script_json(value: Any) -> str:
    r"""Return JSON without ``<``, ``>`` and ``&``, for a script element.

    In JSON these characters occur only within strings. They are escaped, for example as ``\u003c``.
    Lone surrogates, which UTF-8 cannot encode, are escaped too.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE).encode("utf-8", "backslashreplace").decode("utf-8")


def content_policy(parts: Mapping[str, str]) -> str:
    """Return a content security policy that allows only the given texts of script and style."""
    allowed = [f"{name}-src 'sha256-{_digest(text)}'" for name, text in parts.items()]
    return "; ".join(
        ["default-src 'none'", *allowed, "img-src data:", "base-uri 'none'", "form-action 'none'"]
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def page_data(
    turns: Results,
    cards: Sequence[Card] = (),
    on_page: OnPage | None = None,
    *,
    novelty: Novelty | None = None,
    command: str = "",
    baseline: str = "",
) -> dict[str, Any]:
    """Return the data for the page's script.

    Args:
        turns: the results.
        cards: the weaknesses.
        on_page: the violations to show; by default chosen by `OnPageTally`.
        novelty: the violations that are new since the baseline.
        command: the command that repeats the run, or ``""``.
        baseline: file of the baseline, or ``""``.

    Returns:
        ``turns``: all turns of dialogues with a violation. Keys: ``id``, ``dialogue``, ``index``,
            ``system``, ``user``. A turn with a violation also has ``state`` (of a tracker) or
            ``called`` (of an assistant). It has ``word``, its keyword, and ``name``, its quoted id,
            if these differ from the id.
        ``violations``: see `violation_record`; new violations come first, then the plainest.
        ``weaknesses``: for each of the ``cards``, [id, indices in ``violations``].
        ``earlier``: perturbed earlier turns without duplicates, as [previous, turn index, spans].
            ``previous`` is the index of the preceding perturbed turn in this list, or null.
        ``commands``: see `command_parts`.
    """
    novelty = novelty or Novelty()
    if on_page is None:
        on_page = tally_results(OnPageTally([card.members for card in cards]), turns).chosen
    kept: list[dict[str, Any]] = []
    found: list[tuple[tuple[bool, PlainKey], str, dict[str, Any]]] = []
    earlier = _PerturbedTurns()
    seen = 0
    for turn in turns:
        for variant in turn.violations:
            if seen in on_page.numbers:
                key = (simplicity(variant), turn.dialogue_id, turn.turn_index, seen)
                record = violation_record(len(kept), turn, variant, earlier)
                record |= _relation(turn) if on_page.several else {}
                note = novelty.note(turn, variant)
                record |= {"note": note} if note else {}
                found.append(((note != NEW, key), member_id(turn, variant), record))
            seen += 1
        if turn.dialogue_id in on_page.dialogues:
            kept.append(_turn(turn))
    found.sort(key=itemgetter(0))
    return {
        "turns": kept,
        "violations": [record for *_, record in found],
        "weaknesses": _members_of(cards, [name for _, name, _ in found]),
        "earlier": earlier.entries,
        "commands": command_parts(command, baseline),
    }


def _members_of(cards: Sequence[Card], names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return each weakness id with the positions of its violations in a list of names."""
    places = {name: place for place, name in enumerate(names)}
    return [
        (visible(card.id), sorted(places[name] for name in card.members if name in places))
        for card in cards
    ]


class _PerturbedTurns:
    """Perturbed turns without duplicates. Variants with the same number share their context."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self._numbers: dict[tuple[int | None, int, str, tuple[Edit, ...]], int] = {}

    def add(self, shown: VariantResult) -> int | None:
        """Add the perturbed turns of a context. Return the index of the last turn."""
        last: int | None = None
        for index, source, edits in earlier_edits(shown):
            key = (last, index, source, edits)
            if key not in self._numbers:
                self._numbers[key] = len(self.entries)
                self.entries.append([last, index, mark_spans(source, edits)])
            last = self._numbers[key]
        return last


def violation_record(
    number: int, turn: TurnResult, variant: VariantResult, earlier: _PerturbedTurns
) -> dict[str, Any]:
    """Return the record of a violation; ``number`` is the index of its turn on the page.

    Returns:
        ``turn``, ``variant`` (its number), ``cause``, ``rates`` (words, characters), ``spans`` of
        the utterance, ``edits`` as [transformation, operator, before, after, place], and
        ``changes`` as [slot, before, after, carried, expected value if any, verdict of the label
        if any]. Optional keys: ``context`` (index of the last perturbed turn in ``earlier``),
        ``legend``, and ``blames`` (``what``, ``spans``, ``context`` as [turn index, spans]) of a
        smaller version.
        A rewrite of a relation has ``failure``, ``about`` and ``rounds`` ([mark, system, user],
        with ``moves`` as texts). A bot that replies has ``replies``, see `reply_pairs`. An
        assistant has ``calls`` as [what, spans, notes], and ``tools``; its ``changes`` contain
        only the argument names. ``doubts`` (texts) is present if the tracker's answers vary.
        ``likely`` (a text) is the share of users who type the variant.
    """
    record: dict[str, Any] = {
        "turn": number,
        "variant": variant.index,
        "cause": variant.cause or "unknown",
        "rates": [round(variant.edit_w, 3), round(variant.edit_c, 3)],
        "spans": mark_spans(turn.user, variant.edits),
        "edits": [_edit(edit) for edit in variant.edits],
        "changes": [
            [
                *(visible(change.slot), _value(change.before), _value(change.after)),
                change.carried,
                *_more(change),
            ]
            for change in variant.changed_slots
        ],
        **_rewritten(variant),
    }
    if calls := call_changes(turn, variant.changed_slots, page=True):
        record["calls"] = calls
        # A filter for a tool or an argument applies to all calls of the message.
        parts = [change.path.part for change in variant.changed_slots]
        record["tools"] = [visible(tool) for tool in dict.fromkeys(tool for tool, _ in parts)]
        slots = dict.fromkeys(visible(slot) for _, slot in parts)
        record["changes"] = [[slot, None, None, False] for slot in slots]
    if pairs := reply_pairs(turn, variant.changed_slots):
        record["replies"] = pairs
    if variant.context_edits:
        record["context"] = earlier.add(variant)
    if variant.reduced is not None:
        record["blames"] = {
            "what": blame(variant.reduced),
            "spans": mark_spans(turn.user, variant.reduced.edits),
            "context": _context(variant.reduced),
        }
    return record | _notes(variant)


def _notes(variant: VariantResult) -> dict[str, Any]:
    """Return optional notes on a variant."""
    found: dict[str, Any] = {}
    if texts := doubts(variant):
        found["doubts"] = texts
    if text := likely_text(variant):
        found["likely"] = text
    if lines := legend(variant.edits):
        found["legend"] = list(lines)
    return found


def _rewritten(variant: VariantResult) -> dict[str, Any]:
    """Return notes on a rewrite of a relation."""
    found: dict[str, Any] = {}
    if variant.failure not in (None, "changed"):
        found["failure"] = variant.failure
    if variant.about:
        found["about"] = visible(variant.about)
    if variant.moves:
        found["moves"] = list(move_texts(variant))
    if variant.exchanges is not None:
        found["rounds"] = [list(map(visible, one)) for one in shown_rounds(variant)]
    return found


def _relation(turn: TurnResult) -> dict[str, Any]:
    return {"relation": visible(turn.relation)}


def _turn(turn: TurnResult) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": visible(turn.id),
        "dialogue": visible(turn.dialogue_id),
        "index": turn.turn_index,
        "system": visible(turn.system),
        "user": visible(turn.user),
    }
    if turn.violations:
        if turn.kind.has_tools:
            made = list_calls(turn.clean_state or Outcome())
            entry["called"] = [code_of(call, LONGEST_ON_PAGE) for call in made] or ["nothing"]
        elif turn.kind.words.values:
            entry["state"] = _pairs(turn.clean_state)
        word, name = keyword(turn.id), shlex.quote(turn.id)
        entry |= {"word": visible(word)} if word != turn.id else {}
        entry |= {"name": visible(name)} if name != turn.id else {}
    return entry


def command_parts(command: str, baseline: str) -> dict[str, list[str]]:
    """Return the fixed parts of the commands that repeat and accept a violation.

    The page inserts two texts between the parts of ``repeat``: the number of the variant and the
    keyword of the turn. It also inserts two texts between the parts of ``accept``: the keyword and
    the name of the turn.
    """
    return {
        "repeat": _parted(repeat_command(command, _WORD, _NUMBER), _NUMBER, _WORD),
        "accept": _parted(accept_command(command, _WORD, _NAME, baseline), _WORD, _NAME),
    }


def _parted(text: str, *marks: str) -> list[str]:
    parts: list[str] = []
    for mark in reversed(marks):
        # Look for the placeholders after the user's command, since it may contain the same text.
        text, _, rest = text.rpartition(mark)
        parts.insert(0, visible(rest))
    return [visible(text), *parts]


def _pairs(state: Outcome | None) -> list[list[str]]:
    pairs: Iterable[tuple[str, str]] = () if state is None else state.items()
    return [[visible(slot), visible(value)] for slot, value in pairs]


def _edit(edit: Edit) -> list[str | int]:
    before, after = visible(edit.before), visible(edit.after)
    return [visible(edit.transformation), visible(edit.operator), before, after, edit.start]


def _context(shown: Minimal) -> list[Any]:
    return [[index, mark_spans(source, edits)] for index, source, edits in earlier_edits(shown)]


def _more(change: Difference) -> list[str | None]:
    """Return the expected value of a slot and the verdict of the label, if any."""
    expected = _value(None if change.expected is None else str(change.expected))
    if change.by_label is not None:
        return [expected, BY_LABEL[change.by_label]]
    return [] if expected is None else [expected]


def _value(value: str | None) -> str | None:
    return None if value is None else visible(format_value(value))


#: Upper bound of the failure rate for each shade of the heat map. For higher rates, it is darkest.
_SHADES: Final = (0.0, 0.05, 0.10, 0.20, 0.40)
_SHADE_NAMES: Final = ["0 %", *(f"to {100 * end:g} %" for end in _SHADES[1:]), "over 40 %"]
_MOST_REASONS: Final = 20
#: Maximum number of reasons to show why a relation does not apply.
_MOST_UNMET: Final = 5
#: Maximum number of new or fixed violations in a list.
_MOST_PLACES: Final = 25
#: Number of weaknesses, and of new violations, that are visible before the user unfolds the rest.
_MOST_OPEN: Final = 5


def html_text(report: Mapping[str, Any]) -> str:
    """Return the page of a report from `build_report` or `read_report`."""
    return "".join(html_pieces(View.of(report)))


def html_pieces(view: View) -> Iterator[str]:
    """Yield the page in pieces, because the page of a large run has several megabytes."""
    data = page_data(
        view.turns,
        view.weaknesses,
        view.on_page,
        novelty=view.totals.novelty,
        command=view.info.repeat,
        baseline=view.baseline,
    )
    data["words"] = {"who": view.words.who, "what": view.words.what, "slot": view.words.slot}
    return (
        _environment()
        .get_template("report.html.j2")
        .generate(
            view=view,
            words=view.words,
            summary=view.summary,
            broken=view.on_page.total > 0,
            weaknesses=open_first(view.weaknesses),
            tool=_tool(view),
            started=_moment(str(view.report["run"].get("started") or "")),
            how=how_text(view.settings.variant, view.first.slip_rates),
            **_figures(view),
            sample=_sample(view),
            outcomes=_outcomes(view),
            vetoes=_counted(view.first.reasons.vetoes),
            failures=_counted(view.first.reasons.errors)[:_MOST_REASONS],
            causes=causes_text(view.first.reasons.causes),
            **insides("report.js", data),
        )
    )


def _sample(view: View) -> list[tuple[str, str]]:
    """Return the details of the estimate of failing user turns, if there is one."""
    section = estimated(view.sections)
    expected = None if section is None else section.summary.estimated_failures
    if section is None or expected is None:
        return []
    rows = [
        *taken_out(expected),
        *conversation_rows(section.summary, view.words),
        ("effective sample size", f"{expected.effective_sample_size:,.0f}"),
        ("noise", expected.noise),
    ]
    reach = section.summary.reach
    return rows if reach is None else [*rows, ("words without slips", reach_text(reach))]


def models_page(views: Mapping[str, View]) -> Iterator[str]:
    """Yield the page that links to the pages of several trackers, given by file name."""
    rows = [{"link": quote(name), "view": view} for name, view in views.items()]
    first = next(iter(views.values()))
    template = _environment().get_template("models.html.j2")
    noun = first.words.who.removeprefix("the ")
    return template.generate(tool=_tool(first), noun=noun, rows=rows, **insides())


def _tool(view: View) -> str:
    tool = view.report.get("tool", {})
    return " ".join(str(tool.get(name, "")) for name in ("name", "version")).strip()


def _environment() -> Environment:
    """Return the jinja2 environment with the functions that the templates use."""
    made = environment(finalize=_shown, keep_trailing_newline=True)
    made.globals.update(
        address=_address,
        all_distorted=ALL_DISTORTED,
        between=between,
        by_label=BY_LABEL,
        changed_answers=list_changed_answers,
        chance=_chance,
        few_dialogues=FEW_DIALOGUES,
        outcome_columns=outcome_columns,
        fewest_dialogues=FEWEST_DIALOGUES,
        expected_text=describe_expected,
        calls=lambda turn, one: call_changes(turn, one.plain.changed_slots, page=True),
        counted=lambda part, whole: f"{part:,} of {whole:,}",
        heat_level=heat_level,
        new_heading=new_heading,
        place_text=place_text,
        weakness_text=weakness_text,
        weaknesses_heading=lambda found: counted_weaknesses(len(found)),
        interval_text=interval_text,
        most_places=_MOST_PLACES,
        moved=lambda before, after: points(None if before is None else after - before),
        moved_dialogues=list_moved_dialogues,
        moved_weaknesses=moved_weaknesses,
        number=_number,
        percent=percent,
        points=points,
        points_between=_points_between,
        reasons=_reasons,
        replies=lambda turn, one: reply_pairs(turn, one.plain.changed_slots),
        said=_said,
        most_on_page=MOST_ON_PAGE,
        most_shown=_MOST_OPEN,
        verdicts=VERDICTS,
    )
    return made


def _figures(view: View) -> dict[str, Any]:
    """Return figures and plots by template variable."""
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
    """Return the shade for a failure rate, from 0 (no failure or no answer) to 5."""
    return 0 if rate is None else sum(rate > shade for shade in _SHADES)


def _said(turn: TurnResult, variant: VariantResult) -> list[tuple[str, list[str | Span]]]:
    """Return the speakers and the marked texts of a violation."""
    earlier = [
        (f"turn {index}", mark_spans(source, edits))
        for index, source, edits in needed_context(variant)
    ]
    system: list[tuple[str, list[str | Span]]] = [("system", [turn.system])] if turn.system else []
    if variant.exchanges is not None:
        moved: list[str | Span] = ["; ".join(move_texts(variant))]
        rounds = shown_rounds(variant)
        texts = [f"{one.system} / {one.user}" if one.system else one.user for one in rounds]
        seen: list[tuple[str, list[str | Span]]] = [
            (f"round {number}", [text]) for number, text in enumerate(texts, 1)
        ]
        return [("moved", moved), *seen]
    about: list[tuple[str, list[str | Span]]] = (
        [("rewrite", [variant.about])] if variant.about else []
    )
    return [*earlier, *system, *about, ("user", mark_spans(turn.user, variant.plain.edits))]


def _reasons(section: RelationTotals) -> list[tuple[str, str]]:
    """Return the most frequent reasons why a relation did not apply."""
    return _counted(section.inapplicable)[:_MOST_UNMET]


def _address(filters: Mapping[str, str]) -> str:
    """Return the URL fragment that filters violations by ``filters``."""
    return "#" + urlencode({name: visible(value) for name, value in filters.items()})


def _points_between(interval: Interval | None) -> str:
    if interval is None:
        return "too few dialogues for an interval"
    return f"95 % interval {points(interval[0])} to {points(interval[1])}, dialogues as unit"


def _chance(p_value: float | None) -> str:
    """Return the p-value of the permutation test of two builds as text."""
    return "" if p_value is None else f"; p = {p_value:.3g}, permutation test"


def _moment(text: str) -> str:
    """Return an ISO timestamp in readable form.

    >>> _moment("2026-05-04T18:35:16+00:00")
    '2026-05-04 18:35 UTC'
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M %Z}".rstrip()


def _transformation_plot(rows: Sequence[RateRow]) -> str:
    valid: list[RateWithInterval] = [(row.counts.valid_rate, row.valid_interval) for row in rows]
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


def _failure(row: RateRow | None) -> RateWithInterval:
    return (None, None) if row is None else (row.counts.failure_rate, row.failure_interval)


def _shown_as(what: str) -> str:
    """Return SVG attributes that give a plot a text alternative."""
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
    """Replace invisible characters by their code points, in any text of the page."""
    return visible(value) if type(value) is str else value
