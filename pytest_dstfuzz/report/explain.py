"""The text of a failed turn: dialogue, edits, result, and the command to repeat it."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.results import (
    BY_LABEL,
    Cause,
    Minimal,
    SeenRound,
    TurnResult,
    VariantResult,
)
from pytest_dstfuzz.config import Settings, VariantSettings
from pytest_dstfuzz.dialogue.calls import Outcome, format_value
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import format_count, printable, without_commands
from pytest_dstfuzz.report.answers import MOST_SAID, call_lines, reply_lines, show_calls
from pytest_dstfuzz.report.page import hanging
from pytest_dstfuzz.report.wording import (
    MARGIN,
    diff_spans,
    earlier_edits,
    legend,
    mark_edits,
    needed_context,
    shorten,
    visible,
)
from pytest_dstfuzz.totals.plainest import simplicity
from pytest_dstfuzz.weaknesses.groups import Key, read

__all__ = ["move_texts"]


#: Stands for the command of a run if the command is unknown.
OPTIONS: Final = "pytest ..."
_MARKS = {"repeat": "said twice", "move": "moved", "add": "added", "join": "joined"}


class ShownRound(NamedTuple):
    """One round of the dialogue, as the tracker saw it."""

    #: The move of this round, or ``""``.
    mark: str
    system: str
    user: str


def shown_rounds(variant: VariantResult) -> list[ShownRound]:
    """Return the rounds that the tracker saw. Return nothing if the variant moves no rounds."""
    rounds = variant.exchanges or ()
    marks = _marks(variant, len(rounds))
    return [ShownRound(mark, one.system, one.user) for mark, one in zip(marks, rounds, strict=True)]


def move_texts(variant: VariantResult) -> Iterator[str]:
    """Yield texts that say how rounds were moved. Rounds are numbered from 1."""
    new = (one.user for one in shown_rounds(variant) if one.mark == "added")
    for move in variant.moves:
        one, other = f"round {move.turn + 1}", f"round {(move.to or 0) + 1}"
        if move.kind == "repeat":
            yield f"{one} is said twice"
        elif move.kind == "move":
            yield f"{one} comes before {other}"
        elif move.kind == "drop":
            yield f"{one} is left out"
        elif move.kind == "join":
            yield f"{one} and {other} are said in one"
        elif move.kind == "add":
            said = next(new, "")
            yield f"a round is added: {said}" if said else "a round is added"
        else:
            yield "the same dialogue is asked once more"


def _marks(variant: VariantResult, seen: int) -> list[str]:
    """Return a mark for each round, such as ``added``. Unusable moves give empty marks."""
    added = sum(move.kind in ("repeat", "add") for move in variant.moves)
    dropped = sum(move.kind in ("drop", "join") for move in variant.moves)
    order: list[tuple[int, str]] = [(number, "") for number in range(seen - added + dropped)]
    for move in variant.moves:
        numbers = [number for number, _ in order]
        if move.kind == "add":
            after = move.turn if move.to is None else move.to
            order.insert(
                numbers.index(after) + 1 if after in numbers else len(order), (-1, "added")
            )
        elif move.kind != "again" and move.turn in numbers:
            place = numbers.index(move.turn)
            if move.kind != "repeat":
                order.pop(place)
                numbers.pop(place)
            if move.kind == "join" and move.to in numbers:
                order[numbers.index(move.to)] = (move.to, _MARKS["join"])
            elif move.kind != "drop" and move.to in numbers:
                behind = move.kind == "repeat"
                order.insert(numbers.index(move.to) + behind, (move.turn, _MARKS[move.kind]))
    marks = [mark for _, mark in order]
    return marks if len(marks) == seen else [""] * seen


#: Maximum number of correct slots shown.
_MOST_HELD: Final = 6
#: Maximum number of characters shown of a value.
_LONGEST: Final = 30
#: Maximum number of rounds shown if rounds were moved. The first rounds are left out.
_MOST_ROUNDS: Final = 12


class SlotRow(NamedTuple):
    """One slot of a rewritten turn. ``None`` means that the slot has no value."""

    slot: str
    before: str | None
    #: The admissible values, in words.
    expected: str
    found: str | None
    #: The error: ``stuck``, ``not expected`` or ``changed``, with the verdict of the label. It is
    #: ``""`` if the value is as expected.
    wrong: str = ""


def is_rewritten(variant: VariantResult) -> bool:
    """Return whether the edits come from the relation instead of the search."""
    return bool(variant.about or variant.expected or variant.moves)


def slot_rows(variant: VariantResult) -> list[SlotRow]:
    """Return the slots of an answered rewrite: wrong ones, expected changes, then the rest."""
    deltas = {delta.slot: delta for delta in variant.expected}
    missed = {change.slot: change for change in variant.changed_slots}
    state = variant.state or Outcome()
    rows = []
    for slot in sorted({*deltas, *missed, *state}):
        found = state.get(slot)
        if slot in missed:
            before, found = missed[slot].before, missed[slot].after
        else:
            # The relation expects no change of this slot, and it did not change.
            before = deltas[slot].before if slot in deltas else found
        expected = str(deltas[slot].after) if slot in deltas else format_value(before)
        wrong = ""
        if slot in missed:
            stuck = slot in deltas and before == found
            wrong = "stuck" if stuck else "not expected" if slot in deltas else "changed"
            if (told := missed[slot].by_label) is not None:
                wrong = f"{wrong}: {BY_LABEL[told]}"
        rows.append(SlotRow(slot, before, expected, found, wrong))
    return sorted(rows, key=lambda row: (not row.wrong, row.slot not in deltas, row.slot))


def slot_table(variant: VariantResult, what: str = "slot") -> list[str]:
    """Return the slots of a rewrite as table lines. Only a few correct slots are included.

    The columns are the slot, before, expected, found and the error. ``what`` is the heading of the
    first column.
    """
    rows = slot_rows(variant)
    fine = [row for row in rows if not row.wrong]
    wrong = [row for row in rows if row.wrong]
    cells = [(what, "before", "expected", "found", "")]
    for row in [*wrong, *fine[:_MOST_HELD]]:
        values = (
            *(row.slot, format_value(row.before), row.expected, format_value(row.found)),
            row.wrong,
        )
        cells.append(tuple(shorten(value, _LONGEST) for value in values))  # type: ignore[arg-type]  # five of them
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = ["  ".join([*map(str.ljust, line[:4], widths), line[4]]).rstrip() for line in cells]
    if more := len(fine[_MOST_HELD:]):
        lines.append(f"... and {more} more that are as expected")
    return lines


def round_lines(rounds: Sequence[SeenRound]) -> Iterator[tuple[str, str]]:
    """Yield the speaker and the text of each utterance in the last rounds of a variant.

    If earlier rounds are left out, yield their number first.
    """
    left = max(0, len(rounds) - _MOST_ROUNDS)
    if left:
        yield "...", f"{left} rounds before"
    for said in rounds[left:]:
        if said.system:
            yield "system", shorten(said.system, 160)
        yield "user", shorten(said.user, 160)


def rewritten_text(variant: VariantResult) -> str:
    """Return the utterance of a rewrite with its edits marked."""
    return mark_edits(undo_edits(variant.text, variant.edits), variant.edits, margin=MARGIN)


def rewrites_headline(result: TurnResult, broken: int, tested: int) -> str:
    """Return how many rewrites of a turn did not get the expected answer, as text."""
    follow, what = result.side == "should-change", result.kind.words.what
    if broken == 1:
        verb = "is not followed" if follow else f"changes the {what}"
    else:
        verb = "are not followed" if follow else f"change the {what}"
    if follow and not result.kind.words.values:
        verb = "gets the same reply" if broken == 1 else "get the same reply"
    noun = "rewrite" if tested == 1 else "rewrites"
    return printable(f"{broken} of {tested} {noun} {verb}")


#: Maximum number of variants in one text. The report has all variants.
MOST_SHOWN = 5
_WIDTH = 100
_NOT_REPEATED = (
    "the variant or its clean turn got another answer when repeated, so this may be noise"
)
#: A word that pytest accepts for -k, and the characters that it does not accept.
_WORD = re.compile(r"[\w:+\-.\[\]\\/]+")
_OTHER = re.compile(r"[^\w:+\-.\[\]\\/]+")
#: Keywords of -k.
_RESERVED = ("and", "or", "not", "none", "true", "false")
_CAUSES: dict[Cause, str] = {
    "turn": "the edits of this turn",
    "context": "the edits of earlier turns",
    "both": "the edits of this turn together with those of earlier turns",
}


#: Maximum number of lines of the text of a failed turn, and of the part about its violation.
MOST_LINES: Final = 15
_MOST_OF_VIOLATION: Final = 9
#: Maximum number of characters of a part of a violation in one line.
_PART: Final = 40


def explain(
    result: TurnResult,
    settings: Settings,
    *,
    command: str | None,
    verbose: bool = False,
    weakness: Key | None = None,
) -> str:
    """Return the text of a failed turn, similar to an assertion message of pytest.

    The text has at most `MOST_LINES` lines and shows the plainest variant, which has the fewest
    edits. With ``verbose``, it shows up to `MOST_SHOWN` variants with all their edits. ``command``
    repeats only the plainest variant. ``weakness`` is the result of `weakness_of`.
    """
    failed = _failed(result)
    plainest = failed[0].index if failed and settings.variant.variant is None else None
    repeat = ""
    if command:
        only = "" if plainest is None else f" --dst-variant={plainest}"
        repeat = f"  repeat with: {printable(command)}{only}"
    if verbose:
        text = _in_full(result, settings, failed, repeat)
    else:
        text = _in_short(result, settings, failed, repeat, weakness)
    # Wrapping may also move a command to the start of a line.
    return without_commands(text)


def weakness_of(result: TurnResult) -> Key | None:
    """Return the weakness that `explain` shows first, or ``None`` if there is no violation.

    The weakness depends on texts that redaction hides, so it changes if a result is redacted.
    """
    shown = next(iter(_failed(result)), None)
    return None if shown is None or shown.outcome == "error" else read(result, shown).key


def explain_in_a_line(result: TurnResult, weakness: Key) -> str:
    """Return one line about the plainest variant: its weakness, its edits and one change."""
    variant = next(iter(_failed(result)))
    plain = variant.plain
    edits = [
        f"{_shown_part(before)} -> {_shown_part(after)}"
        for source, made in (
            (undo_edits(plain.text, plain.edits), plain.edits),
            *((clean, edits) for _, clean, edits in needed_context(variant)),
        )
        for before, after in diff_spans(source, made)
        if before != after
    ]
    moves = variant.about or "; ".join(move_texts(variant))
    if variant.outcome == "error":
        change = variant.reason
    elif not result.kind.words.values:
        change = dict(reply_lines(plain.changed_slots, None, result.own)).get("replied", "")
    else:
        change = next(iter(change_lines(plain.changed_slots, result)), "")
    parts = (moves or ", ".join(edits), change)
    shown = (printable(_clipped(part)) for part in parts if part)
    return without_commands(" | ".join([printable(weakness.description), *shown, "-v: in full"]))


def _shown_part(text: str) -> str:
    return visible(text.strip()) or "nothing"


def _clipped(text: str) -> str:
    return text if len(text) <= _PART else f"{text[: _PART - 4]} ..."


def _failed(result: TurnResult) -> list[VariantResult]:
    """Return the variants that fail a turn.

    Variants with an error come first, then the plainest.
    """
    if _fails_unedited(result):
        return []  # The tracker was asked for no variant.
    failed = [item for item in result.variants if item.outcome in ("violation", "error")]
    return sorted(failed, key=lambda item: (item.outcome != "error", *simplicity(item)))


def _in_full(
    result: TurnResult, settings: Settings, failed: Sequence[VariantResult], repeat: str
) -> str:
    blocks = ["\n".join([_headline(result), "", *_said(result)]).rstrip()]
    blocks += [
        "\n".join((_rewrite if is_rewritten(item) else _variant)(item, result))
        for item in failed[:MOST_SHOWN]
    ]
    if more := len(failed[MOST_SHOWN:]):
        blocks.append(f"  ... and {format_count(more, 'more variant')}: the JSON report has them")
    blocks.append("\n".join(filter(None, [_circumstances(result, settings.variant), repeat])))
    return "\n\n".join(blocks)


def _in_short(
    result: TurnResult,
    settings: Settings,
    failed: Sequence[VariantResult],
    repeat: str,
    weakness: Key | None,
) -> str:
    lines = [_headline(result), ""]
    lines += _fitted(_violation(failed[0], result, weakness) if failed else _turn_said(result))
    if more := len(failed) - 1 if failed else 0:
        lines.append(f"  ... and {format_count(more, 'more variant')}: -v shows them")
    # The command has the seed and all settings.
    lines += ["", repeat or _circumstances(result, settings.variant)]
    if repeat and weakness:
        accept = f"dstfuzz accept {weakness.id} --reason '...', after --dst-remember"
        lines.append(f"  accept with: {accept}")
    return "\n".join(lines)


def _turn_said(turn: TurnResult) -> list[list[str]]:
    texts = (("  system", turn.system), ("  user", turn.user))
    return [[*_field(name, shorten(text, 160))] for name, text in texts if text]


def _violation(variant: VariantResult, turn: TurnResult, weakness: Key | None) -> list[list[str]]:
    """Return the text about a violation in parts. Each part is a list of lines.

    The parts are the dialogue, the edit in the user's words, the change and its cause.
    """
    plain = variant.plain
    rounds = list(_new_rounds(variant))
    moves = variant.about or "; ".join(move_texts(variant))
    parts = [
        [("  system", shorten(turn.system, 160))] if turn.system else [],
        [
            (f"  turn {index}", mark_edits(clean, edits, margin=MARGIN))
            for index, clean, edits in needed_context(variant)
        ],
        [("  rewrite", printable(moves))] if moves else [],
        [(name, shorten(text, 160)) for name, text in rounds],
        [("  user", mark_edits(_source(plain), plain.edits, margin=MARGIN))],
    ]
    if variant.outcome == "error":
        parts.append([("  error", shorten(variant.reason))])
    else:
        parts += _changes(plain, turn)
        parts.append([("  cause", text) for text in _cause(variant, weakness)])
        name = "  doubt" if _wavers(variant) else "  votes"
        parts.append([(name, text) for text in doubts(variant)])
    return [[line for name, text in part for line in _field(name, text)] for part in parts]


def _new_rounds(variant: VariantResult) -> Iterator[tuple[str, str]]:
    """Yield a name and the user's text of each moved or added round.

    If the last round is added, it is shown as the turn, so yield the round before it instead.
    """
    rounds = shown_rounds(variant)
    if len(rounds) > 1 and rounds[-1].mark == "added":
        rounds[-2:] = [rounds[-2]._replace(mark="first")]
    for one in rounds:
        if one.mark:
            yield f"  {one.mark}", one.user


def _cause(variant: VariantResult, weakness: Key | None) -> Iterator[str]:
    """Yield one line with the edits that cause a violation and the name of its weakness."""
    blamed = "" if variant.cause is None else _CAUSES[variant.cause]
    if variant.reduced is not None:
        blamed = blame(variant.reduced)
    # If the variant is a rewrite, all its edits are to blame.
    texts = ("" if is_rewritten(variant) else blamed, weakness.description if weakness else "")
    if any(texts):
        yield printable(": ".join(filter(None, texts)))


def _changes(plain: VariantResult | Minimal, turn: TurnResult) -> list[list[tuple[str, str]]]:
    changes = plain.changed_slots
    if not turn.kind.words.values:
        lines = reply_lines(changes, None, turn.own)
        return [[(f"  {name}", shorten(text, 160))] for name, text in lines]
    told = enumerate(change_lines(changes, turn))
    return [[("        +" if n else "  changed", shorten(line, 160)) for n, line in told]]


def _fitted(parts: Sequence[list[str]]) -> list[str]:
    """Return the lines of all parts. Shorten the longest parts until all lines fit."""
    shown = [part for part in parts if part]
    while sum(map(len, shown)) > _MOST_OF_VIOLATION:
        longest = max(shown, key=len)
        if len(longest) == 1:
            shown.remove(longest)
            continue
        longest.pop()
        longest[-1] = f"{longest[-1].removesuffix(' ...')} ..."
    return [line for part in shown for line in part]


def _source(plain: VariantResult | Minimal) -> str:
    return undo_edits(plain.text, plain.edits)


def keyword(name: str) -> str:
    """Return the name if ``-k`` accepts it as one word, otherwise a similar word.

    >>> keyword("sample-test-0001-t2")
    'sample-test-0001-t2'
    >>> keyword("calls-test-call 17 (monday)-t0")
    'calls-test-call_17_monday_-t0-7dbda4a8'
    """
    if _WORD.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return unlike(name)


def bracket(word: str) -> str:
    """Return the word by which ``-k`` selects the tests of a turn, but not of others: t1, not t10.

    >>> bracket("sample-test-0001-t2")
    '[sample-test-0001-t2]'
    """
    return f"[{word}]"


def repeat_command(command: str, word: str, variant: int | str) -> str:
    """Return the command that repeats a violation.

    Args:
        command: the command that repeats the run, or ``""`` without one, for example for results
            from a file.
        word: the `keyword` of the turn.
        variant: the number of the variant.
    """
    # The run may itself repeat one variant.
    own = _VARIANT.sub("", command) or OPTIONS
    return f"{own} --dst-variant={variant} -k '{bracket(word)}'"


_VARIANT: Final = re.compile(r" --dst-variant=\d+(?!\S)")


def accept_command(command: str, word: str, turn: str, baseline: str = "") -> str:
    """Return the commands that accept the violations of a turn.

    If the run is compared with a ``baseline``, the results of the turn go into that file. Otherwise
    its violations are remembered and marked as accepted. For the other arguments see
    `repeat_command`.
    """
    end = accept_options(turn)
    if baseline:
        end = f"--dst-baseline={shlex.quote(baseline)} --dst-update-baseline"
    return f"{command or OPTIONS} -k '{bracket(word)}' {end}"


def accept_options(name: str) -> str:
    """Return the last part of a command that accepts the violations of a turn or weakness.

    >>> accept_options("sample-test-0001-t2")
    "--dst-remember; dstfuzz accept sample-test-0001-t2 --reason '...'"
    """
    return f"--dst-remember; dstfuzz accept {shlex.quote(name)} --reason '...'"


def unlike(name: str) -> str:
    """Return a unique word that resembles the name."""
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{_OTHER.sub('_', name)}-{digest[:8]}"


def blame(minimal: Minimal) -> str:
    """Return the number of edits that a violation needs, and their turns, as text."""
    size = minimal.size
    if minimal.cause == "turn":
        return "this edit alone" if size == 1 else f"these {size} edits, each of them needed"
    if minimal.cause == "context":
        where = "an earlier turn" if len(minimal.context_edits) == 1 else "earlier turns"
        alone = f"one edit of {where} alone"
        return alone if size == 1 else f"{size} edits of {where}, each of them needed"
    return f"{size} edits of this turn and of earlier turns, each of them needed"


def doubts(variant: VariantResult) -> list[str]:
    """Return evidence for and against a violation, for trackers whose answers vary."""
    found = []
    if (votes := variant.votes) is not None:
        against = f" ({votes.against} had the new value)" if votes.against else ""
        found.append(
            f"{votes.changed} of {votes.asked} answers have the change; {votes.clean} of "
            f"{votes.clean + votes.against} answers to the clean turn agree{against}"
        )
    return [*found, _NOT_REPEATED] if variant.repeated is False else found


def _wavers(variant: VariantResult) -> bool:
    """Return whether any repeated answer contradicts a violation."""
    votes = variant.votes
    unsure = votes is not None and (votes.changed < votes.asked or votes.against > 0)
    return unsure or variant.repeated is False


def change_lines(changes: Sequence[Difference], turn: TurnResult) -> list[str]:
    """Return one line per slot. Mark slots that had already changed at an earlier turn.

    For a reply, return the new reply and the reason why it differs. For tool calls, return one line
    per call.
    """
    if not turn.kind.words.values:
        lines = reply_lines(changes, None, turn.own)
        return [printable(f"{name + ':':<8} {text}") for name, text in lines]
    if turn.kind.has_tools:
        return [printable(line) for line in call_lines(turn, changes)]
    return [
        printable(change.told())
        + ("  (carried: had changed at an earlier turn)" if change.carried else "")
        + (f"  ({_by_label(change, turn)})" if change.by_label else "")
        for change in changes
    ]


def _by_label(change: Difference, turn: TurnResult) -> str:
    """Return the verdict of the label. Include a label that is neither the old nor the new value.

    Include the label if it is neither the old nor the new value.
    """
    verdict = BY_LABEL[change.by_label] if change.by_label else ""
    if change.by_label != "wrong-to-wrong" or turn.label is None:
        return verdict
    return f"{verdict}: the label is {format_value(turn.label.get(change.slot))}"


def _headline(result: TurnResult) -> str:
    place = f"turn {result.turn_index} of dialogue {printable(result.dialogue_id)}"
    tested = [item for item in result.variants if item.valid]
    broken = len(result.violations)
    errors = sum(item.outcome == "error" for item in result.variants)
    words = result.kind.words
    if _fails_unedited(result):
        why = shorten(result.reason)
        return _capital(f"{words.who} fails on the unedited question, {place}: {why}")
    if result.outcome == "error" and not errors:
        return _capital(f"{words.who} failed on {place}: {shorten(result.reason)}")
    if not broken and not errors:
        why = f" ({shorten(result.reason)})" if result.reason else ""
        return f"No violation at {place}: {result.outcome}{why}"
    parts = []
    rewritten = any(map(is_rewritten, result.variants))
    if broken and rewritten:
        parts.append(rewrites_headline(result, broken, len(tested)))
    elif broken:
        verb = "changes" if broken == 1 else "change"
        parts.append(f"{broken} of {len(tested)} valid variants {verb} the {words.what}")
    if errors:
        noun = "rewrites" if rewritten else "valid variants"
        parts.append(f"{words.who} failed on {errors} of {len(tested)} {noun}")
    named = f" ({printable(result.relation)})" if rewritten else ""
    return _capital(f"{' and '.join(parts)} at {place}{named}")


def _fails_unedited(result: TurnResult) -> bool:
    """Return whether a bot has no reply to the clean turn, so that no variant was tested."""
    return not result.kind.words.values and result.outcome == "error" and result.clean_state is None


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _said(result: TurnResult) -> Iterator[str]:
    yield from _field("  system", shorten(result.system) if result.system else "(nothing yet)")
    yield from _field("  user", shorten(result.user))
    if not result.kind.words.values:
        if result.clean_state is not None:
            yield from _field("  replied", shorten(result.kind.text(result.clean_state), MOST_SAID))
    elif result.kind.has_tools:
        if result.clean_state is not None:
            yield from _field("  called", printable(show_calls(result.clean_state)))
    elif result.clean_state is not None:
        pairs = [printable(f"{slot} = {value}") for slot, value in result.clean_state.items()]
        yield from _field("  state", ", ".join(pairs) or "(empty)")


def _variant(variant: VariantResult, turn: TurnResult) -> Iterator[str]:
    source = undo_edits(variant.text, variant.edits)
    yield f"  Variant {variant.index}"
    if variant.reduced is not None:
        yield from _blamed(variant.reduced, turn, wavers=_wavers(variant))
    yield from _field("    edits", mark_edits(source, variant.edits, margin=MARGIN))
    yield from _field("    seen as", shorten(variant.text))
    for edit in variant.edits:
        what = f"{edit.transformation}/{edit.operator}"
        yield f"      {what}: {_quoted(edit.before)} -> {_quoted(edit.after)} at {edit.start}"
    for line in legend(variant.edits):
        yield f"      {line}"
    yield from _context(variant)
    if variant.outcome == "error":
        yield from _field("    error", shorten(variant.reason))
    if not turn.kind.words.values:
        yield from _replied(variant.changed_slots, turn)
    else:
        for number, line in enumerate(change_lines(variant.changed_slots, turn)):
            yield from _field("    changed" if not number else "          +", line)
    if variant.cause is not None:
        hedge = " (uncertain, because the answers vary)" if _wavers(variant) else ""
        yield from _field("    cause", f"{_CAUSES[variant.cause]}{hedge}")
    for text in doubts(variant):
        yield from _field("    doubt" if _wavers(variant) else "    votes", text)
    yield from _field("    rates", f"words {variant.edit_w:.3f}, characters {variant.edit_c:.3f}")


def _rewrite(variant: VariantResult, turn: TurnResult) -> Iterator[str]:
    """Yield the rewritten turn, then the result of each slot or the reply."""
    yield from hanging(f"  Variant {variant.index}: ", printable(variant.about), _WIDTH)
    if variant.edits:
        yield from _field("    user", rewritten_text(variant))
    if variant.exchanges is not None:
        yield f"    {turn.kind.words.who} saw"
        for who, said in round_lines(variant.exchanges):
            yield from _field(f"      {who}", said)
    if variant.outcome == "error":
        yield from _field("    error", shorten(variant.reason))
        return
    if variant.reduced is not None:
        yield from _blamed(variant.reduced, turn, wavers=_wavers(variant))
    if not turn.kind.words.values:
        yield from _replied(variant.changed_slots, turn)
    else:
        yield from (f"    {printable(line)}" for line in slot_table(variant, turn.kind.words.slot))
    for text in doubts(variant):
        yield from _field("    doubt" if _wavers(variant) else "    votes", text)


def _replied(
    changes: Sequence[Difference], turn: TurnResult, margin: str = "    "
) -> Iterator[str]:
    shown = None if turn.clean_state is None else turn.kind.text(turn.clean_state)
    for name, text in reply_lines(changes, shown, turn.own):
        yield from _field(f"{margin}{name}", text)


def _blamed(minimal: Minimal, turn: TurnResult, *, wavers: bool) -> Iterator[str]:
    """Yield a text about the smallest version of a violation. All its edits are needed."""
    source = undo_edits(minimal.text, minimal.edits)
    marked = mark_edits(source, minimal.edits, margin=MARGIN)
    hedge = " (uncertain, because the answers vary)" if wavers else ""
    yield from _field("    blames", f"{blame(minimal)}{hedge}")
    yield from _field("      said", marked)
    yield from _context(minimal)
    if not turn.kind.words.values:
        yield from _replied(minimal.changed_slots, turn, "      ")
        return
    for line in change_lines(minimal.changed_slots, turn):
        yield from _field("      does", line)


def _context(shown: VariantResult | Minimal) -> Iterator[str]:
    for index, clean, edits in earlier_edits(shown):
        marked = mark_edits(clean, edits, margin=MARGIN)
        yield from _field(f"    turn {index}", marked)


def _quoted(text: str) -> str:
    return f'"{shorten(text, 60)}"'


def _circumstances(result: TurnResult, settings: VariantSettings) -> str:
    if any(map(is_rewritten, result.variants)):
        # If a relation makes its own edits, search, profile and attack do not affect them.
        return f"  seed {settings.seed}, clean context, {settings.relation} relation"
    what = f"seed {settings.seed}, {settings.validity} profile, {settings.attack} attack"
    return f"  {what}, {settings.search} search, {settings.relation} relation"


def _field(name: str, text: str) -> Iterator[str]:
    return hanging(f"{name + ': ':<13}", text, _WIDTH)
