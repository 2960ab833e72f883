"""The weaknesses of a report that was read, as pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.weaknesses import (
    RankedList,
    accepted_text,
    often_text,
    ranked_lists,
)
from pytest_dstfuzz.totals.plainest import MOST_ON_PAGE
from pytest_dstfuzz.weaknesses.groups import Figures


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
