"""A line of a corpus as it is written, and what was recorded in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pytest_dstfuzz.campaign.results import ChangedSlot, SeenRound
from pytest_dstfuzz.dialogue.calls import Transcript
from pytest_dstfuzz.dialogue.outcome import History, Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.transcripts import transcript_json, transcript_of_json
from pytest_dstfuzz.relations.rewrite import Delta

#: What was accepted: this violation alone, or all of its weakness.
Scope = Literal["violation", "weakness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidEntry:
    """An exchange of a line."""

    system: str
    user: str
    #: ``None`` where nothing was changed.
    seen: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusLine:
    """A line of a corpus, as it is written."""

    id: str
    status: str
    reason: str
    scope: Scope = "violation"
    #: Files of earlier versions do not say it, nor the normalisation.
    weakness: str = ""
    turn: str
    relation: str
    normalisation: str = "plain"
    changed: tuple[ChangedSlot, ...]
    edits: tuple[str, ...]
    #: Of relations that expect a change, and of those that move rounds.
    expected: tuple[Delta, ...] = ()
    dialogue: tuple[SaidEntry, ...]
    seen: tuple[SeenRound, ...] | None = None
    #: Of replies and tool calls.
    outcome: OutcomeKind = "state"
    compare: str = ""
    history: History = "recorded"
    #: Of tool calls.
    answer: Outcome | None = None
    transcript: dict[str, Any] | None = None
    given: dict[str, Any] | None = None
    label: Outcome | None


def with_sorted_keys(transcript: Transcript | None) -> Transcript | None:
    """Return a transcript as it comes back from a line, whatever the order of its keys was."""
    return None if transcript is None else transcript_of_json(transcript_json(transcript))


def transcript_of_line(name: str, data: dict[str, Any] | None) -> Transcript | None:
    """Return the transcript under a key of a line; a ``ValueError`` names the key."""
    try:
        return None if data is None else transcript_of_json(data)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
