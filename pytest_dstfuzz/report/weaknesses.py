"""Report texts about weaknesses, and about failures that users meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.campaign.figures import (
    FEWEST_DIALOGUES,
    TURNS,
    AccuracyWithSlips,
    ConversationFailures,
    EstimatedFailures,
    Reach,
    interval_name,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config.parsers import per_1000, percent
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.kinds.kind import Words
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.report.explain import change_lines
from pytest_dstfuzz.report.page import Style, TerminalPage
from pytest_dstfuzz.report.wording import mark_edits, needed_context
from pytest_dstfuzz.totals.plainest import MOST_ON_PAGE
from pytest_dstfuzz.weaknesses.groups import Ranking, Weakness, ranked

EXPECTED: Final = "estimated failures"
#: The name of figures of whole conversations with slips.
AT_ALL_TURNS: Final = "slips at all turns"
#: Remark on the failure rate if a noise model draws the variants: it is not a rate of user turns.
ALL_DISTORTED: Final = "all with slips; likely and unlikely variants count equally"


class UserTurns(NamedTuple):
    """The number of failing user turns, formatted for reports."""

    #: The figure in as few words as possible.
    value: str
    #: Details for a table or a card.
    detail: str
    #: Figure and details together.
    text: str


def user_turns(summary: Summary) -> UserTurns | None:
    """Return the estimated number of failing user turns, or ``None`` without a sample."""
    expected = summary.estimated_failures
    return None if expected is None else _expected(expected, summary.dialogues_tested)


def show_user_turns(page: TerminalPage, summary: Summary, words: Words, *, verbose: bool) -> None:
    """Add the number of failing user turns, if the run used a noise model."""
    shown, expected = user_turns(summary), summary.estimated_failures
    if shown is None:
        return
    style: Style = "bad"
    if expected is not None and not expected.per_1000:
        style = "warning" if expected.per_1000 is None else "good"
    head = f"{EXPECTED}  "
    page.field(head, shown.text, style)
    if verbose and expected is not None:
        page.field(" " * len(head), taken_out_text(expected))
        for name, text in conversation_rows(summary, words):
            page.field(" " * len(head), f"{name}: {text}")
    if verbose and summary.reach is not None and summary.reach.unreached:
        page.field(" " * len(head), reach_text(summary.reach))


def user_turns_short(summary: Summary) -> str:
    """Return the figure for a one-line summary, or ``""``."""
    expected, shown = summary.estimated_failures, user_turns(summary)
    if shown is None or (expected is not None and expected.per_1000 is None):
        return ""
    bounds = expected and expected.interval
    return f"{EXPECTED} {shown.value}{'' if not bounds else f' ({_ends(bounds)})'}"


def taken_out(expected: EstimatedFailures) -> list[tuple[str, str]]:
    """Return rates of user turns inside and outside the estimate, as pairs (name, figure)."""
    return [
        (
            "with a slip that this run does not make, or in a locked word: left out",
            per_1000(expected.locked_per_1000),
        ),
        ("of 1,000 others: with slips", per_1000(expected.distorted_per_1000)),
        (
            "of 1,000 others: not judged (too many edits, or no answer), counted as no failure",
            per_1000(expected.unjudged_per_1000),
        ),
    ]


def taken_out_text(expected: EstimatedFailures) -> str:
    """Return the figures of `taken_out` as a sentence."""
    locked, unjudged = per_1000(expected.locked_per_1000), per_1000(expected.unjudged_per_1000)
    return (
        f"of {TURNS:,} user turns {locked} have a slip that this run does not make, or in a "
        f"locked word, and are left out. Of {TURNS:,} others "
        f"{per_1000(expected.distorted_per_1000)} have slips; {unjudged} of these were not judged "
        "(too much edited, or no answer) and count as no failure"
    )


def conversation_rows(summary: Summary, words: Words) -> list[tuple[str, str]]:
    """Return figures of whole conversations with slips, as pairs (name, text)."""
    expected = summary.estimated_failures
    rows = []
    if expected is not None and (found := expected.conversation) is not None:
        rows.append((AT_ALL_TURNS, f"{conversation_text(found)}: {_parts(found)}"))
    if expected is not None and expected.accuracy is not None:
        rows.append((words.right, _accuracy(expected.accuracy)))
    return rows


def conversation_text(found: ConversationFailures) -> str:
    """Return a short text about failing turns in whole conversations with slips."""
    between = "" if found.interval is None else f" ({_ends(found.interval)})"
    return (
        f"{per_1000(found.per_1000)} of {TURNS:,}{between}, in "
        f"{percent(found.broken_share, 0)} of the conversations"
    )


def _parts(found: ConversationFailures) -> str:
    """Return the failures in whole conversations, split by kind, as text."""
    text = (
        f"{per_1000(found.in_locked_per_1000)} after a slip in a locked word, "
        f"{per_1000(found.per_1000 - found.in_locked_per_1000)} after other slips alone"
    )
    if by_label := by_label_text(found):
        text += f"; {by_label}"
    if found.unjudged_per_1000:
        text += f"; {per_1000(found.unjudged_per_1000)} have no answer and count as unchanged"
    text += f". These are {found.turns:,} turns of {found.conversations:,} conversations"
    if found.broken_share_interval is not None:
        low, high = map(percent, found.broken_share_interval)
        text += f"; the share of conversations is between {low} and {high}"
    return text


def by_label_text(found: EstimatedFailures | ConversationFailures) -> str:
    """Return a text about failures after right and wrong answers, or ``""`` without labels."""
    if found.right_to_wrong_per_1000 is None or found.wrong_to_wrong_per_1000 is None:
        return ""
    text = (
        f"{per_1000(found.right_to_wrong_per_1000)} from right to wrong, "
        f"{per_1000(found.wrong_to_wrong_per_1000)} from wrong to wrong"
    )
    if found.corrected_per_1000:
        text += f"; another {per_1000(found.corrected_per_1000)} from wrong to right"
    return text


def _accuracy(found: AccuracyWithSlips) -> str:
    """Return the shares of right answers with and without slips."""
    text = f"{percent(found.clean, 1)} without slips, {percent(found.one_turn, 1)} with slips in"
    if found.conversation is None:
        return f"{text} one turn"
    return f"{text} one turn, {percent(found.conversation, 1)} at all turns"


def reach_text(reach: Reach) -> str:
    """Return a sentence about words that are never mistyped, with the reasons."""
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in reach.reasons.items())
    words = ", ".join(f"{text} {count:,}" for text, count in reach.examples.items())
    return (
        f"{percent(reach.share, 1)} of {reach.words:,} words of users are never mistyped: "
        f"{reasons}. Most often: {words}"
    )


def likely_text(variant: VariantResult) -> str:
    """Return the share of user turns that a sampled variant stands for, as text.

    It is ``""`` for other variants.
    """
    if variant.weight is None:
        return ""
    return f"drawn by the noise model; stands for {per_1000(TURNS * variant.weight)} of {TURNS:,}"


def _expected(expected: EstimatedFailures, dialogues: int) -> UserTurns:
    if expected.per_1000 is None:
        return UserTurns("n/a", expected.reason, f"n/a: {expected.reason}")
    value = f"{per_1000(expected.per_1000)} of {TURNS:,} user turns"
    interval = f"no interval: needs {FEWEST_DIALOGUES} dialogues"
    if expected.interval is not None:
        interval = f"{interval_name(dialogues)} {_ends(expected.interval)}"
    rests = _model(expected.slip_rate, expected.noise)
    rests += f"; effective sample size {expected.effective_sample_size:,.0f}"
    return UserTurns(value, f"{interval}; {rests}", f"{value} ({interval}), {rests}")


def _model(slip_rate: float | None, noise: str) -> str:
    return f"at a slip rate of {100 * (slip_rate or 0.0):g} % ({noise})"


def _ends(interval: tuple[float, float]) -> str:
    return f"{per_1000(interval[0])} to {per_1000(interval[1])}"


MOST: Final = 10
#: Number of unchanged characters on each side of an edit.
_MARGIN: Final = 40
#: The heading of weaknesses without a known frequency.
_UNKNOWN: Final = "from edits with an unknown frequency among users"
#: Ranking -> its description.
_RANKED: Final[dict[Ranking, str]] = {
    "estimated failures": "by estimated failures and broken turns",
    "turns": "by the turns that they break",
}


class RankedList(NamedTuple):
    """Weaknesses in one order, worst first."""

    #: The words that distinguish this list from the first one; ``""`` for the first list.
    kind: str
    #: The words for the figures that decide the order.
    how: str
    weaknesses: tuple[Weakness, ...]


def ranked_lists(weaknesses: Sequence[Weakness]) -> tuple[RankedList, ...]:
    """Return the lists of weaknesses to show. See `ranked`."""
    return tuple(
        RankedList(_UNKNOWN if number else "", _RANKED[how], those)
        for number, (how, those) in enumerate(ranked(weaknesses, lambda one: one.expected))
    )


def weaknesses_json(weaknesses: Sequence[Weakness]) -> list[dict[str, Any]]:
    """Return the ``weaknesses`` of the JSON report, without rounding."""
    return [
        {
            "id": one.id,
            "description": one.description,
            "to_try": one.to_try,
            "count": one.count,
            "turns": one.turns,
            "estimated_failures": one.expected,
            "accepted": one.accepted or None,
            "mended": one.mended,
            "words": list(one.words),
            "slots": list(one.slots),
            "example": {
                "id": one.example.id,
                "turn": one.example.turn.id,
                "variant": one.example.variant.index,
                "said": said(one.example.variant),
                "changed": [str(slot) for slot in one.example.variant.plain.changed_slots],
            },
            "members": list(one.members),
        }
        for one in weaknesses
    ]


def show_weaknesses(page: TerminalPage, weaknesses: Sequence[Weakness], *, verbose: bool) -> None:
    """Add the weaknesses, worst first. Show ten of each list, or all if ``verbose``."""
    for listed in ranked_lists(weaknesses):
        _show_list(page, listed, verbose=verbose)


def _show_list(page: TerminalPage, listed: RankedList, *, verbose: bool) -> None:
    shown = listed.weaknesses if verbose else listed.weaknesses[:MOST]
    left = len(listed.weaknesses) - len(shown)
    more = f"; the first {len(shown)}, -v shows all" if left else ""
    kind = f" {listed.kind}" if listed.kind else ""
    text = f"{weaknesses_text(listed.weaknesses)}{kind}, {listed.how}{more}"
    page.line(text, "heading")
    for number, one in enumerate(shown, 1):
        style: Style = "dim" if one.accepted else "bad"
        page.field(f"{number:>4}. ", f"{one.description} ({_facts(one)})", style)
        if one.accepted:
            page.field("        ", accepted_text(one.accepted), "dim")
        page.field("        ", said(one.example.variant))
        changes = change_lines(one.example.variant.plain.changed_slots, one.example.turn)
        words = one.example.turn.kind.words
        # Changes of slots fit on one line; replies are whole sentences.
        lines = changes if verbose else changes[:2]
        for line in ["; ".join(lines)] if words.values else lines:
            page.field("        ", line)
        if verbose:
            changed = f"; {words.slot}s: {', '.join(one.slots)}" if words.values else ""
            page.field("        ", f"words: {', '.join(one.words)}{changed}")
            page.field("        ", f"to try: {one.to_try}", "dim")
            page.field("        ", one.id, "dim")


def often_text(expected: float | None) -> str:
    """Return the frequency of a weakness; ``""`` if the run has no estimate.

    >>> often_text(3.389), often_text(0.0)
    ('about 3.4 of 1,000 user turns', 'not in the sample')
    """
    if expected is None:
        return ""
    return f"about {expected:.2g} of 1,000 user turns" if expected else "not in the sample"


def accepted_text(reason: str) -> str:
    """Return the words for an accepted weakness with the reason, or ``""`` if not accepted.

    >>> accepted_text("nobody types this to our bot")
    'accepted: nobody types this to our bot'
    """
    return f"accepted: {reason}" if reason else ""


def weaknesses_text(weaknesses: Sequence[Weakness]) -> str:
    """Return the number of weaknesses as text."""
    return counted_weaknesses(len(weaknesses))


def counted_weaknesses(number: int, kind: str = "") -> str:
    """Return a number of weaknesses as text, with an optional kind."""
    return f"{number} {kind}weakness{'' if number == 1 else 'es'}"


def moved_weaknesses(comparison: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the number of new and fixed weaknesses as text, and a line for each one.

    The text is ``""`` if neither build has a weakness, or if the report is from an earlier version.
    """
    found = comparison.get("weaknesses")
    if found is None:
        return "", []
    if found["reason"]:
        return f"weaknesses not compared with the baseline: {found['reason']}", []
    new, fixed, common = (found[name] for name in ("new", "fixed", "common"))
    if not (new or fixed or common):
        return "", []
    text = f"{counted_weaknesses(len(new), 'new ')}, {len(fixed)} fixed, {len(common)} in both"
    if found["caveat"]:
        text += f"; a build may not have tested each of them: {found['caveat']}"
    lines = []
    for kind, those, where in (("new", new, ""), ("fixed", fixed, " in the baseline")):
        for each in those:
            sure = "" if each["looked_for"] else "perhaps "
            many = f"{format_count(each['count'], 'violation')}{where}"
            lines.append(f"{sure}{kind}: {each['description']} ({many})")
    return text, lines


def said(variant: VariantResult) -> str:
    """Return the texts of a violation with marked edits, including earlier turns that cause it."""
    plain = variant.plain
    texts = [mark_edits(undo_edits(plain.text, plain.edits), plain.edits, margin=_MARGIN)]
    for index, clean, edits in needed_context(variant):
        texts.append(f"(turn {index}: {mark_edits(clean, edits, margin=_MARGIN)})")
    return " ".join(texts)


def _facts(weakness: Weakness) -> str:
    """Return the frequency of a weakness in a few words."""
    text = f"{format_count(weakness.turns, 'turn')}, {format_count(weakness.count, 'violation')}"
    often = often_text(weakness.expected)
    return f"{often}; here {text}" if often else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A weakness with its plainest violation, prepared for reports.

    Attributes:
        description: the common property of its violations.
        count: the number of violations.
        turns: the number of broken turns.
        expected: estimated failures per 1,000 user turns because of the weakness; ``None`` if
            unknown.
        members: the names of at most `MOST_MEMBERS` violations.
        accepted: the reason if it was accepted, or ``""``.
    """

    id: str
    description: str
    count: int
    turns: int
    expected: float | None
    words: tuple[str, ...]
    slots: tuple[str, ...]
    to_try: str
    turn: TurnResult
    variant: VariantResult
    members: tuple[str, ...]
    accepted: str

    @property
    def often(self) -> str:
        """How often users meet the weakness; ``""`` if unknown."""
        return often_text(self.expected)

    @property
    def counts(self) -> str:
        """The number of violations and of turns."""
        return f"{format_count(self.count, 'violation')} in {format_count(self.turns, 'turn')}"

    @property
    def unlisted(self) -> int:
        """The number of violations that are not in `places`."""
        return max(0, self.count - MOST_ON_PAGE)

    @property
    def places(self) -> dict[str, list[str]]:
        """Maps each turn to the numbers of its variants, for the first members only."""
        found: dict[str, list[str]] = {}
        for name in self.members[:MOST_ON_PAGE]:
            turn, _, variant = name.rpartition("-v")
            found.setdefault(turn, []).append(variant)
        return found


def wanted_examples(report: Mapping[str, Any]) -> set[str]:
    """Return the names of the plainest violations of a report's weaknesses."""
    try:
        return {str(entry["example"]["id"]) for entry in report.get("weaknesses", ())}
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None


def cards_of(
    report: Mapping[str, Any], found: Mapping[str, tuple[TurnResult, VariantResult]]
) -> tuple[Card, ...]:
    """Return the weaknesses of a report, worst first.

    ``found`` maps the names of the plainest violations to these violations. Reports of earlier
    versions have no weaknesses.

    Raises:
        DataError: a weakness lacks a key, or the report lacks its plainest violation.
    """
    try:
        return tuple(_card(entry, found) for entry in report.get("weaknesses", ()))
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None


def _lacking(error: Exception) -> DataError:
    return DataError(f"this is not a complete report: its 'weaknesses' lack {error}")


def _card(entry: Mapping[str, Any], found: Mapping[str, tuple[TurnResult, VariantResult]]) -> Card:
    turn, variant = found[entry["example"]["id"]]
    return Card(
        id=str(entry["id"]),
        description=str(entry["description"]),
        count=int(entry["count"]),
        turns=int(entry["turns"]),
        expected=entry["estimated_failures"],
        words=tuple(map(str, entry["words"])),
        slots=tuple(map(str, entry["slots"])),
        to_try=str(entry["to_try"]),
        turn=turn,
        variant=variant,
        members=tuple(map(str, entry["members"])),
        # Missing in reports of earlier versions.
        accepted=str(entry.get("accepted") or ""),
    )
