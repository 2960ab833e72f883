"""Weaknesses as reports show them: as JSON, and as the first thing on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.chances import of_turns
from pytest_dstfuzz.report.edits import mark_edits, needed_context
from pytest_dstfuzz.report.explain import change_lines
from pytest_dstfuzz.report.page import Style, TerminalPage
from pytest_dstfuzz.weaknesses.groups import Figures, Member, Ranking, Weakness, figures_of, ranked

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
