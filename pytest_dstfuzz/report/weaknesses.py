"""Weaknesses as reports show them, and what users meet, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pytest_dstfuzz.campaign.figures import (
    FEWEST_DIALOGUES,
    TURNS,
    ExpectedFailures,
    FailingMass,
    interval_name,
)
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config.parsers import per_1000
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.explain import change_lines
from pytest_dstfuzz.report.page import Style, TerminalPage
from pytest_dstfuzz.report.wording import mark_edits, needed_context
from pytest_dstfuzz.totals.plainest import MOST_ON_PAGE
from pytest_dstfuzz.weaknesses.groups import Figures, Member, Ranking, Weakness, figures_of, ranked

EXPECTED: Final = "expected failures"
#: Above this share a text is so frequent that "1 of n" says too little.
_FREQUENT: Final = 0.4
#: Below so many of 1,000, "1 of n" says more.
_FEW: Final = 0.01
#: Nobody counts so many turns.
_MOST: Final = 1e9
#: What a failure rate is not where variants are drawn by what people do.
ALL_DISTORTED: Final = "all of them distorted, likely and unlikely ones counted alike"


class UserTurns(NamedTuple):
    """How many user turns fail, as reports show it."""

    #: The figure itself, in as few words as can be.
    value: str
    #: What else there is to say, for a table or a card.
    detail: str
    #: Both.
    text: str


def user_turns(summary: Summary) -> UserTurns | None:
    """Say how many user turns fail; ``None`` where no noise model was in use, or found nothing."""
    expected, mass = summary.expected_failures, summary.failing_mass
    if expected is not None:
        return _expected(expected, summary.dialogues_tested)
    return None if mass is None or not mass.variants else _at_least(mass)


def show_user_turns(page: TerminalPage, summary: Summary, *, verbose: bool) -> None:
    """Say in a terminal how many user turns fail, where a noise model was in use."""
    shown, expected = user_turns(summary), summary.expected_failures
    if shown is None:
        return
    style: Style = "bad"
    if expected is not None and not expected.per_1000:
        style = "warning" if expected.per_1000 is None else "good"
    head = f"{EXPECTED}  "
    page.field(head, shown.text, style)
    if verbose and expected is not None:
        page.field(" " * len(head), taken_out_text(expected))


def user_turns_short(summary: Summary) -> str:
    """Return the figure for a line that says all; ``""`` where there is none."""
    expected, shown = summary.expected_failures, user_turns(summary)
    if shown is None or (expected is not None and expected.per_1000 is None):
        return ""
    bounds = expected and expected.interval
    return f"{EXPECTED} {shown.value}{'' if not bounds else f' ({_ends(bounds)})'}"


def taken_out(expected: ExpectedFailures) -> list[tuple[str, str]]:
    """Return of how many turns the figure is, and of how many it is not, as names and figures."""
    return [
        ("with a slip that is locked or not in use: left out", per_1000(expected.locked_per_1000)),
        ("of 1,000 others: distorted", per_1000(expected.distorted_per_1000)),
        (
            "of 1,000 others: not judged (too much edited, or no answer), counted as no failure",
            per_1000(expected.unjudged_per_1000),
        ),
    ]


def taken_out_text(expected: ExpectedFailures) -> str:
    """Return the same as a sentence."""
    locked, unjudged = per_1000(expected.locked_per_1000), per_1000(expected.unjudged_per_1000)
    return (
        f"of {TURNS:,} user turns {locked} have a slip that is locked or not in use, and are left "
        f"out; of {TURNS:,} others {per_1000(expected.distorted_per_1000)} are distorted, and "
        f"{unjudged} of these count as no failure since they were not judged (too much edited, or "
        "no answer)"
    )


def likely_text(variant: VariantResult) -> str:
    """Say how many users say or type a variant; ``""`` where no noise model says so."""
    if variant.log_probability is None:
        return ""
    text = f"{_odds(math.exp(variant.log_probability))} said or typed like this"
    if variant.weight is None:
        return text
    return f"{text}; in the estimate it stands for {per_1000(TURNS * variant.weight)} of {TURNS:,}"


def _expected(expected: ExpectedFailures, dialogues: int) -> UserTurns:
    if expected.per_1000 is None:
        return UserTurns("n/a", expected.reason, f"n/a: {expected.reason}")
    value = f"{per_1000(expected.per_1000)} of {TURNS:,} user turns"
    interval = f"no interval: it takes {FEWEST_DIALOGUES} dialogues"
    if expected.interval is not None:
        interval = f"{interval_name(dialogues)} {_ends(expected.interval)}"
    rests = _model(expected.slip_rate, expected.noise)
    rests += f"; effective sample size {expected.effective_sample_size:,.0f}"
    return UserTurns(value, f"{interval}; {rests}", f"{value} ({interval}), {rests}")


def _at_least(mass: FailingMass) -> UserTurns:
    value = f"at least {of_turns(mass.per_1000_at_least)} user turns"
    found = "the violation" if mass.variants == 1 else f"one of the {mass.variants:,} violations"
    detail = (
        f"are said or typed as {found} found, {_model(mass.slip_rate, mass.noise)}; a lower bound, "
        "not a rate: --dst-search=noise estimates one"
    )
    return UserTurns(value, detail, f"{value} {detail}")


def of_turns(number: float) -> str:
    """Return so many of 1,000, or 1 of many more where they are few."""
    if 0 < number < _FEW:
        return f"1 of {_round(TURNS / number):,.0f}"
    return f"{per_1000(number)} of {TURNS:,}"


def _round(number: float) -> float:
    """Return a number with two digits."""
    return float(f"{number:.1e}")


def _model(slip_rate: float | None, noise: str) -> str:
    return f"at a slip rate of {100 * (slip_rate or 0.0):g} % ({noise})"


def _ends(interval: tuple[float, float]) -> str:
    return f"{per_1000(interval[0])} to {per_1000(interval[1])}"


def _odds(probability: float) -> str:
    if probability > _FREQUENT:
        return f"about {100 * probability:.0f} of 100 such turns are"
    if probability * _MOST < 1:
        return f"fewer than 1 of {_MOST:,.0f} such turns is"
    return f"about 1 of {_round(1 / probability):,.0f} such turns is"


#: Weaknesses that are shown where nobody asks for more.
MOST: Final = 10
#: Unchanged characters shown on each side of an edit.
_MARGIN: Final = 40
_T = TypeVar("_T")
#: What parts those that have no such figure from the others.
_UNKNOWN: Final = "under edits of which nobody knows how often people make them"
#: Ranking -> what weaknesses are ranked by, in words.
_RANKED: Final[dict[Ranking, str]] = {
    "expected failures": "by the failures that they cause in 1,000 user turns",
    "failing mass": (
        "by how many of 1,000 user turns are said or typed as one of the violations found"
    ),
    "turns": "by the turns that they break",
}


class RankedList(NamedTuple, Generic[_T]):
    """Weaknesses that are ranked by one figure, worst first."""

    #: What parts them from those of the list before, in words; ``""`` of the first list.
    kind: str
    #: What they are ranked by, in words.
    how: str
    weaknesses: tuple[_T, ...]


def ranked_lists(
    weaknesses: Sequence[_T], figures: Callable[[_T], Figures]
) -> tuple[RankedList[_T], ...]:
    """Return the lists that weaknesses are shown in, see `ranked`."""
    return tuple(
        RankedList(_UNKNOWN if number else "", _RANKED[how], those)
        for number, (how, those) in enumerate(ranked(weaknesses, figures))
    )


def weaknesses_json(weaknesses: Sequence[Weakness]) -> list[dict[str, Any]]:
    """Return the ``weaknesses`` of the JSON report; floats keep their value."""
    return [
        {
            "id": one.id,
            "description": one.description,
            "to_try": one.to_try,
            "count": one.count,
            "turns": one.turns,
            "expected_failures": one.expected,
            "failing_mass": one.mass,
            "accepted": one.accepted or None,
            "words": list(one.words),
            "slots": list(one.slots),
            "example": {
                "id": one.example.id,
                "turn": one.example.turn.id,
                "variant": one.example.variant.index,
                "said": said(one.example),
                "changed": [str(slot) for slot in one.example.variant.plain.changed_slots],
            },
            "members": list(one.members),
        }
        for one in weaknesses
    ]


def show_weaknesses(page: TerminalPage, weaknesses: Sequence[Weakness], *, verbose: bool) -> None:
    """Add the weaknesses, worst first: the first ten of each list, or all."""
    for listed in ranked_lists(weaknesses, figures_of):
        _show_list(page, listed, verbose=verbose)


def _show_list(page: TerminalPage, listed: RankedList[Weakness], *, verbose: bool) -> None:
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
        page.field("        ", said(one.example))
        changes = change_lines(one.example.variant.plain.changed_slots, one.example.turn)
        words = one.example.turn.kind.words
        # Slots have their names before them, replies are sentences.
        lines = changes if verbose else changes[:2]
        for line in ["; ".join(lines)] if words.values else lines:
            page.field("        ", line)
        if verbose:
            changed = f"; {words.slot}s: {', '.join(one.slots)}" if words.values else ""
            page.field("        ", f"words: {', '.join(one.words)}{changed}")
            page.field("        ", f"to try: {one.to_try}", "dim")
            page.field("        ", one.id, "dim")


def often_text(expected: float | None, mass: float | None) -> str:
    """Say how often people meet a weakness, ``""`` where the run does not know it.

    >>> often_text(3.389, None), often_text(None, 0.0007)
    ('about 3.4 of 1,000 user turns', 'at least 1 of 1,400,000 user turns')
    """
    if expected is not None:
        return f"about {expected:.2g} of 1,000 user turns"
    # In the context of noisy turns alone, nobody knows how often.
    return f"at least {of_turns(mass)} user turns" if mass else ""


def accepted_text(reason: str) -> str:
    """Say that a weakness is accepted, and why; ``""`` where it is not.

    >>> accepted_text("nobody types this to our bot")
    'accepted: nobody types this to our bot'
    """
    return f"accepted: {reason}" if reason else ""


def weaknesses_text(weaknesses: Sequence[Weakness]) -> str:
    """Return how many there are."""
    return counted_weaknesses(len(weaknesses))


def counted_weaknesses(number: int, kind: str = "") -> str:
    """Return a number of weaknesses, of a kind where one is given."""
    return f"{number} {kind}weakness{'' if number == 1 else 'es'}"


def moved_weaknesses(comparison: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Say how many weaknesses are new since a baseline, and fixed; and which, one a line.

    Nothing is said (``""``) where neither build has any, or of reports of earlier versions.
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
        text += f"; what is new or fixed may not have been looked for: {found['caveat']}"
    lines = []
    for kind, those, where in (("new", new, ""), ("fixed", fixed, " in the baseline")):
        for each in those:
            sure = "" if each["looked_for"] else "perhaps "
            many = f"{each['id']}, {counted(each['count'], 'violation')}{where}"
            lines.append(f"{sure}{kind}: {each['description']} ({many})")
    return text, lines


def said(example: Member) -> str:
    """Return what was said in a violation, its edits marked, with the earlier turn to blame."""
    plain = example.variant.plain
    texts = [mark_edits(undo_edits(plain.text, plain.edits), plain.edits, margin=_MARGIN)]
    for index, clean, edits in needed_context(example.variant):
        texts.append(f"(turn {index}: {mark_edits(clean, edits, margin=_MARGIN)})")
    return " ".join(texts)


def _facts(weakness: Weakness) -> str:
    """Return how often it shows, in few words."""
    text = f"{counted(weakness.turns, 'turn')}, {counted(weakness.count, 'violation')}"
    often = often_text(weakness.expected, weakness.mass)
    return f"{often}; here {text}" if often else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A weakness, and where its plainest violation is in the report.

    Attributes:
        title: what its violations have in common.
        often: how often people meet it, ``""`` where the run does not know.
        counts: how many violations of how many turns.
        count: how many violations it has.
        members: the names of the first `MOST_MEMBERS` of them.
        accepted: that it is accepted, and why; ``""`` where it is not.
    """

    id: str
    title: str
    often: str
    counts: str
    words: tuple[str, ...]
    slots: tuple[str, ...]
    to_try: str
    turn: TurnResult
    variant: VariantResult
    count: int
    members: tuple[str, ...]
    accepted: str

    @property
    def unlisted(self) -> int:
        """How many violations `places` leaves out."""
        return max(0, self.count - MOST_ON_PAGE)

    @property
    def places(self) -> dict[str, list[str]]:
        """Turn -> the numbers of its variants that are among the first members."""
        found: dict[str, list[str]] = {}
        for name in self.members[:MOST_ON_PAGE]:
            turn, _, variant = name.rpartition("-v")
            found.setdefault(turn, []).append(variant)
        return found


@dataclass(frozen=True, slots=True)
class Cards:
    """The weaknesses of a report, worst first; none in reports of before there were any."""

    lists: tuple[RankedList[Card], ...]

    @property
    def cards(self) -> tuple[Card, ...]:
        """All of them."""
        return tuple(card for one in self.lists for card in one.weaknesses)


def wanted_examples(report: Mapping[str, Any]) -> set[str]:
    """Return the names of the plainest violations of a report's weaknesses."""
    try:
        return {str(entry["example"]["id"]) for entry in report.get("weaknesses", ())}
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None


def cards_of(
    report: Mapping[str, Any], found: Mapping[str, tuple[TurnResult, VariantResult]]
) -> Cards:
    """Return the weaknesses of a report, whose plainest violations were found by their names.

    Raises:
        DataError: one of them lacks something, or its violation is gone.
    """
    try:
        return Cards(
            tuple(
                one._replace(weaknesses=tuple(_card(each, found) for each in one.weaknesses))
                for one in ranked_lists(list(report.get("weaknesses", ())), _figures)
            )
        )
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None


def _lacking(error: Exception) -> DataError:
    return DataError(f"this is no whole report: its 'weaknesses' lack {error}")


def _figures(entry: Mapping[str, Any]) -> Figures:
    return entry["expected_failures"], entry["failing_mass"]


def _card(entry: Mapping[str, Any], found: Mapping[str, tuple[TurnResult, VariantResult]]) -> Card:
    turn, variant = found[entry["example"]["id"]]
    description = str(entry["description"])
    return Card(
        id=str(entry["id"]),
        title=f"{description[:1].upper()}{description[1:]}",
        often=often_text(entry["expected_failures"], entry["failing_mass"]),
        counts=f"{counted(entry['count'], 'violation')} in {counted(entry['turns'], 'turn')}",
        words=tuple(map(str, entry["words"])),
        slots=tuple(map(str, entry["slots"])),
        to_try=str(entry["to_try"]),
        turn=turn,
        variant=variant,
        count=int(entry["count"]),
        members=tuple(map(str, entry["members"])),
        # Reports of before do not say it.
        accepted=accepted_text(str(entry.get("accepted") or "")),
    )
