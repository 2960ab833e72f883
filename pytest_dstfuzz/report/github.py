"""GitHub output of a run: the job summary, and annotations for violations.

The summary is the report as short Markdown, with every text escaped. Annotations use workflow
commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_dstfuzz.campaign.figures import Counts, interval_name, tally_results
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config import GateSettings
from pytest_dstfuzz.config.parsers import percent, points
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.kinds.kind import Words
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.explain import (
    accept_command,
    change_lines,
    keyword,
    move_texts,
    repeat_command,
)
from pytest_dstfuzz.report.figures import (
    describe_expected,
    list_changed_answers,
    list_moved_dialogues,
)
from pytest_dstfuzz.report.page import encodable
from pytest_dstfuzz.report.screen import new_heading, open_first, place_text, weakness_text
from pytest_dstfuzz.report.terminal import between, interval_text, violation_lines
from pytest_dstfuzz.report.view import View
from pytest_dstfuzz.report.weaknesses import MOST, counted_weaknesses, moved_weaknesses
from pytest_dstfuzz.report.wording import Span, mark_spans, needed_context, shorten, visible
from pytest_dstfuzz.totals.plainest import KNOWN, PlainestTally
from pytest_dstfuzz.totals.totals import outcome_columns
from pytest_dstfuzz.weaknesses.groups import member_id

#: GitHub's maximum size of a step summary, in bytes.
MOST_BYTES: Final = 1 << 20
_MOST_SHOWN: Final = 20
_LONGEST: Final = 200
_CUT: Final = "\nThe rest is left out, because GitHub limits the size of a summary.\n"
_MARKS: Final = {"good": "\u2705", "bad": "\u274c", "warning": "\u26a0\ufe0f"}
#: Characters besides letters and digits that are never markup inside a line.
_PLAIN: Final = frozenset(" .,;?!'%/()+-")
_ADDRESS: Final = re.compile(r"www\.", re.IGNORECASE)
#: GitHub's maximum number of annotations of one kind per step.
MOST_COMMANDS: Final = 10
_DATA: Final[dict[str, str | int | None]] = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final[dict[str, str | int | None]] = {**_DATA, ":": "%3A", ",": "%2C"}


def markdown_text(views: Mapping[str, View], limit: int = MOST_BYTES) -> str:
    """Return the summary of a report, truncated to ``limit`` bytes.

    ``views`` maps tracker names to views.
    """
    parts = (
        *(_head, _new_violations, _weaknesses, _added, _end),
        *(_figures, _relations, _tables, _comparison, _violations),
    )
    lines: list[str] = []
    for name, view in views.items():
        lines += [f"# {escape(name)}", ""] if name else []
        lines += [line for part in parts for line in part(view)]
        lines += [""] if name else []
    text = "".join(f"{line}\n" for line in lines)
    if len(text.encode("utf-8")) <= limit:
        return text
    room = limit - len(_CUT.encode("utf-8"))
    kept: list[str] = []
    for line in lines:
        room -= len(line.encode("utf-8")) + 1
        if room < 0:
            break
        kept.append(f"{line}\n")
    return "".join([*kept, _CUT]) if kept else ""


def append_summary(path: Path, views: Mapping[str, View]) -> None:
    """Append the summary of a report to the file of a step, up to GitHub's size limit."""
    try:
        used = path.stat().st_size if path.exists() else 0
        text = markdown_text(views, MOST_BYTES - used)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None


def escape(text: str) -> str:
    """Return a text escaped as Markdown, for use inside a line or table cell.

    Characters that could be markup of Markdown or HTML, a link, a mention or the end of a cell
    become character references.
    """
    shown = "".join(
        char if char.isalnum() or char in _PLAIN else f"&#{ord(char)};" for char in visible(text)
    )
    return _ADDRESS.sub(lambda match: f"{match.group()[:3]}&#46;", shown)


def _head(view: View) -> Iterator[str]:
    """Yield the verdict and the facts at the start of the short summary."""
    verdict = view.verdict
    yield f"## {_MARKS[verdict.kind]} {escape(verdict.headline)}"
    yield ""
    yield f"Robustness of {escape(view.title)}."
    for reason in verdict.reasons:
        yield ""
        yield escape(reason)
    yield ""
    yield from _table(("", ""), [(fact.name, fact.text) for fact in view.facts])


def _end(view: View) -> Iterator[str]:
    """Yield the cost of the run."""
    yield f"Cost: {escape(view.cost)}."
    yield ""


def _figures(view: View) -> Iterator[str]:
    """Yield the rates of the first relation. For replies, also say how much they vary."""
    summary = view.summary
    dialogues = summary.dialogues_tested
    failed, broken = summary.failure_rate_interval, summary.turn_failure_rate_interval
    of = f" of {escape(view.sections[0].name)}" if len(view.sections) > 1 else ""
    yield f"### Figures{of}"
    yield ""
    yield from _table(
        ("", "", ""),
        [
            ("failure rate", percent(summary.failure_rate), interval_text(failed, dialogues)),
            ("turns broken", percent(summary.turn_failure_rate), interval_text(broken, dialogues)),
            ("violations", f"{summary.violations:,}", f"of {summary.valid:,} valid variants"),
            (
                "valid rate",
                percent(summary.valid_rate),
                f"{summary.valid:,} of {summary.generated:,} generated variants",
            ),
            ("turns tested", f"{summary.turns_tested:,}", f"of {summary.turns:,} turns"),
            *_clean(summary, view.words),
        ],
    )
    for text in view.own_spread:
        yield escape(f"Its own spread: {text}.")
        yield ""


def _clean(summary: Summary, words: Words) -> Iterator[tuple[str, str, str]]:
    if summary.clean_empty:
        without = percent(summary.failure_rate_not_empty)
        counts = f"{summary.clean_empty:,} of {summary.clean_answered:,} clean answers"
        share = percent(summary.clean_empty_share)
        yield words.empty, share, f"{counts}; failure rate without them {without}"
    if summary.clean_labelled:
        counts = f"{summary.clean_right:,} of {summary.clean_labelled:,} clean"
        shown = f"{counts} {words.answers} {words.are_right}, by the {words.labels}"
        yield words.right, percent(summary.clean_accuracy), shown


def _tables(view: View) -> Iterator[str]:
    """Yield the failure rates by transformation, by domain and by slot."""
    rows = view.first.rates.transformations
    interval = interval_name(view.summary.dialogues_tested)
    if rows:
        yield "### By transformation"
        yield ""
        yield from _table(
            ("transformation", "valid rate", "failure rate", interval, "violations"),
            [
                (
                    row.name,
                    percent(row.counts.valid_rate),
                    percent(row.counts.failure_rate),
                    between(row.failure_interval),
                    f"{row.counts.violations:,} of {row.counts.valid:,}",
                )
                for row in rows
            ],
        )
    words, yields = view.words, view.first.yields
    if words.values:
        yield from _counts(words.domain, yields.domains)
        yield from _counts(words.slot, yields.slots)


def _counts(noun: str, rows: Mapping[str, Counts]) -> Iterator[str]:
    """Yield the failure rates of the groups with violations, the most violations first."""
    broken = sorted(
        ((name, row) for name, row in rows.items() if row.violations),
        key=lambda item: (-item[1].violations, item[0]),
    )
    if not broken:
        return
    more = f", the first {_MOST_SHOWN} of {len(broken):,}" if len(broken) > _MOST_SHOWN else ""
    yield f"### By {noun}{more}"
    yield ""
    yield from _table(
        (noun, "failure rate", "violations"),
        [
            (name, percent(row.failure_rate), f"{row.violations:,} of {row.valid:,}")
            for name, row in broken[:_MOST_SHOWN]
        ],
    )


def _comparison(view: View) -> Iterator[str]:
    if view.comparison is None:
        return
    found = view.comparison
    yield "### Against the baseline"
    yield ""
    yield from _table(
        ("variants", "failure rate then", "now", "difference", "95 % interval", "new", "gone"),
        [
            (
                f"{found['variants']:,}",
                percent(found["before"]),
                percent(found["after"]),
                points(found["difference"]),
                "n/a"
                if found["interval"] is None
                else " to ".join(points(end) for end in found["interval"]),
                f"{len(found['new_violations']):,}",
                f"{len(found['gone_violations']):,}",
            )
        ],
    )
    if expected := describe_expected(found):
        yield f"{escape(f'{expected[:1].upper()}{expected[1:]}')}."
        yield ""
    moved, which = moved_weaknesses(found)
    if moved:
        yield f"{escape(f'{moved[:1].upper()}{moved[1:]}')}."
        yield ""
        yield from (escape(f"- {shorten(line, _LONGEST)}") for line in which[:_MOST_SHOWN])
        yield ""
    if clean := found.get("clean"):
        yield f"Clean answers changed at {len(clean['changed']):,} of {clean['turns']:,} turns."
        yield ""
        for turn, text in list_changed_answers(found)[:_MOST_SHOWN]:
            yield escape(f"- {shorten(turn, _LONGEST)}: {shorten(text, _LONGEST)}")
        yield ""
    for text, names in list_moved_dialogues(found):
        shown = ", ".join(shorten(name, _LONGEST) for name in names[:_MOST_SHOWN])
        yield escape(f"{text[:1].upper()}{text[1:]}: {len(names):,} ({shown}).")
    yield ""


def _relations(view: View) -> Iterator[str]:
    """Yield two tables of relations: those that expect no change, then the others."""
    short = view.words.short
    titles = (
        (False, f"Over-sensitive: the {short} should not change"),
        (True, f"Over-stable: the {short} should change"),
    )
    for follows, title in titles:
        those = [one for one in view.sections if one.follows == follows]
        if not those or not view.by_relation:
            continue
        columns = outcome_columns(those, follows=follows)
        yield f"### {title}"
        yield ""
        yield from _table(
            ("relation", "applicable", "rewrites", *columns, "failure rate", "95 % interval"),
            [
                (
                    one.name,
                    f"{one.applicable:,} of {one.count:,} {one.unit}s",
                    f"{one.summary.valid:,}",
                    *(f"{number:,}" for number in outcomes),
                    percent(one.summary.failure_rate),
                    between(one.summary.failure_rate_interval),
                )
                for one, *outcomes in zip(those, *columns.values(), strict=True)
            ],
        )


def _weaknesses(view: View) -> Iterator[str]:
    """Yield the weaknesses, each with an example and its commands."""
    found = open_first(view.weaknesses)
    if not found:
        return
    more = f", the first {MOST}" if len(found) > MOST else ""
    yield f"### {counted_weaknesses(len(found))}{more}"
    yield ""
    for number, card in enumerate(found[:MOST], 1):
        yield _item(
            f"{number}.",
            f"**{escape(weakness_text(card, view.sections))}**",
            *_shown(card.turn, card.variant),
            f"to try: {escape(card.to_try)}",
            f"repeat: {_code(view.repeat(card.turn, card.variant))}",
            f"accept: {_code(view.accept_weakness(card))}",
        )
    yield ""
    for fact in view.advice:
        yield f"{fact.name.capitalize()} {escape(fact.text)}."
        yield ""


def _violations(view: View) -> Iterator[str]:
    """Yield the plainest violations, except those already listed as new."""
    new = view.totals.novelty.new
    pairs = [pair for pair in view.totals.plainest.pairs if member_id(*pair) not in new]
    yield from _listed("The plainest violations", pairs, view)


def _added(view: View) -> Iterator[str]:
    for section in view.totals.added:
        yield f"### {escape(section.title)}"
        yield ""
        yield from (f"- {escape(shorten(line, _LONGEST))}" for line in section.lines)
        yield ""


def _new_violations(view: View) -> Iterator[str]:
    yield from _listed(new_heading(view.totals), view.new_violations, view)


def _listed(
    title: str, pairs: Sequence[tuple[TurnResult, VariantResult]], view: View
) -> Iterator[str]:
    """Yield violations, each with its texts, changes and commands."""
    if not pairs:
        return
    yield f"### {title}"
    yield ""
    for turn, variant in pairs:
        note = view.totals.novelty.note(turn, variant)
        known = f" ({note})" if note == KNOWN else ""
        yield _item(
            "-",
            f"**{escape(f'{place_text(turn, variant, _LONGEST)}{known}')}**",
            *_shown(turn, variant),
            f"repeat: {_code(view.repeat(turn, variant))}",
            f"accept: {_code(view.accept(turn))}",
        )
    yield ""


def _item(mark: str, *lines: str) -> str:
    """Return a list item as one line of Markdown. The given ``lines`` are already escaped."""
    return f"{mark} {'<br>'.join(lines)}"


def _code(command: str) -> str:
    return f"<code>{escape(command)}</code>"


def _shown(turn: TurnResult, variant: VariantResult) -> list[str]:
    """Return the texts of a violation with marked edits, and the changes."""
    plain = variant.plain
    texts = [
        f"turn {index}: {_said(source, edits)}" for index, source, edits in needed_context(variant)
    ]
    texts += [escape(text) for text in move_texts(variant)]
    said = [] if variant.moves else [f"user: {_said(turn.user, plain.edits)}"]
    changed = change_lines([one for one in plain.changed_slots if not one.carried], turn)
    return [*texts, *said, *(escape(shorten(line, _LONGEST)) for line in changed)]


def _said(source: str, edits: Sequence[Edit]) -> str:
    return "".join(_span(span) for span in mark_spans(source, edits))


def _span(span: str | Span) -> str:
    if isinstance(span, str):
        return escape(shorten(span, _LONGEST))
    marks = zip(("del", "ins"), span, strict=True)
    return "".join(
        f"<{tag}>{escape(shorten(text, _LONGEST))}</{tag}>" for tag, text in marks if text
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table with escaped texts, followed by an empty line."""
    yield f"| {' | '.join(map(escape, head))} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(escape, row))} |"
    yield ""


def violation_commands(
    results: Iterable[TurnResult],
    settings: GateSettings,
    encoding: str,
    places: Mapping[str, tuple[str, int]] | None = None,
    *,
    most: int = MOST_COMMANDS,
    note: str = "",
    repeat: str = "",
) -> list[str]:
    """Return annotations for the turns with the plainest violations, at most ``most``.

    ``places`` maps turn ids to the file and line of a test in the suite. If there is a ``note``,
    each title begins with it, and the annotations are errors. The command ``repeat`` repeats the
    run.
    """
    baseline = "" if settings.update_baseline else settings.baseline or ""
    level = "error" if note or settings.fail_on == "violation" else "warning"
    commands: list[str] = []
    if not most:
        return commands
    for turn, variant in tally_results(PlainestTally(most, each="turn"), results).pairs:
        word = keyword(turn.id)
        lines = [
            *violation_lines(turn, variant),
            f"repeat: {repeat_command(repeat, word, variant.index)}",
            f"accept: {accept_command(repeat, word, turn.id, baseline)}",
        ]
        title = f"{note}{place_text(turn, variant)}"
        place = (places or {}).get(turn.id)
        commands.append(encodable(command(level, title, "\n".join(lines), place), encoding))
    return commands


def command(level: str, title: str, message: str, place: tuple[str, int] | None = None) -> str:
    r"""Return a workflow command in one line. ``place`` is a file and a line.

    >>> command("error", "a: b", "50 %\nmore")
    '::error title=a%3A b::50 %25%0Amore'
    """
    given = {"title": title}
    if place is not None:
        given = {"file": place[0], "line": str(place[1]), **given}
    escaped = ",".join(
        f"{name}={printable(text).translate(str.maketrans(_PROPERTY))}"
        for name, text in given.items()
    )
    return f"::{level} {escaped}::{printable(message).translate(str.maketrans(_DATA))}"
