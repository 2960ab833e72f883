"""Violations as the page draws them: plain values, short, everything shown as it is read.

Texts are those that a reader sees: characters that cannot be seen are written by number.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from pytest_dstfuzz.campaign.results import (
    BY_LABEL,
    ChangedSlot,
    Minimal,
    Results,
    TurnResult,
    VariantResult,
)
from pytest_dstfuzz.campaign.sums import tallied
from pytest_dstfuzz.dialogue.call_trees import made_calls
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.dialogue.values import shown_value
from pytest_dstfuzz.perturb.types import Edit
from pytest_dstfuzz.report.calls import LONGEST_ON_PAGE, call_changes, code_of
from pytest_dstfuzz.report.cards import Card
from pytest_dstfuzz.report.chances import likely_text
from pytest_dstfuzz.report.edits import earlier_edits, legend, shown_spans, visible
from pytest_dstfuzz.report.explain import blame, doubts, keyword
from pytest_dstfuzz.report.replies import reply_pairs
from pytest_dstfuzz.report.rounds import move_texts, shown_rounds
from pytest_dstfuzz.totals.plainest import OnPage, OnPageTally, PlainKey, simplicity
from pytest_dstfuzz.weaknesses.groups import member_id


def page_data(
    turns: Results, cards: Sequence[Card] = (), on_page: OnPage | None = None
) -> dict[str, Any]:
    """Return what the page's script draws.

    Args:
        turns: what was found.
        cards: the weaknesses.
        on_page: the violations to show; those that `OnPageTally` chooses unless they are given.

    Returns:
        ``turns``: all turns of dialogues with a violation: ``id``, ``dialogue``, ``index``,
        ``system``, ``user``; with a violation also ``state`` (of a tracker) or ``called`` (of an
        assistant), and ``repeat`` where the word that selects the turn is not its id.
        ``violations``, the plainest first: see
        `violation_record`. ``weaknesses``: [id, numbers in that list] of each of the ``cards``.
        ``earlier``: perturbed turns that violations were seen after, each once, as [number of the
        one before it in this list or null, turn index, spans].
    """
    if on_page is None:
        on_page = tallied(OnPageTally([card.members for card in cards]), turns).chosen
    kept: list[dict[str, Any]] = []
    found: list[tuple[PlainKey, str, dict[str, Any]]] = []
    earlier = _PerturbedTurns()
    seen = 0
    for turn in turns:
        for variant in turn.violations:
            if seen in on_page.numbers:
                key = (simplicity(variant), turn.dialogue_id, turn.turn_index, seen)
                record = violation_record(len(kept), turn, variant, earlier)
                record |= _relation(turn) if on_page.several else {}
                found.append((key, member_id(turn, variant), record))
            seen += 1
        if turn.dialogue_id in on_page.dialogues:
            kept.append(_turn(turn))
    found.sort(key=itemgetter(0))
    places = {name: place for place, (_, name, _) in enumerate(found)}
    return {
        "turns": kept,
        "violations": [record for *_, record in found],
        "weaknesses": [
            [visible(card.id), sorted(places[name] for name in card.members if name in places)]
            for card in cards
        ],
        "earlier": earlier.entries,
    }


class _PerturbedTurns:
    """Perturbed turns of dialogues, each once: variants of one number are seen after the same."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self._numbers: dict[tuple[int | None, int, str, tuple[Edit, ...]], int] = {}

    def add(self, shown: VariantResult) -> int | None:
        """Return the number of the last perturbed turn; each leads to the one before it."""
        last: int | None = None
        for index, source, edits in earlier_edits(shown):
            key = (last, index, source, edits)
            if key not in self._numbers:
                self._numbers[key] = len(self.entries)
                self.entries.append([last, index, shown_spans(source, edits)])
            last = self._numbers[key]
        return last


def violation_record(
    number: int, turn: TurnResult, variant: VariantResult, earlier: _PerturbedTurns
) -> dict[str, Any]:
    """Return one violation of the turn that is at ``number`` in the page's list.

    Returns:
        ``turn``, ``variant`` (its number), ``cause``, ``rates`` (words, characters),
        ``spans`` of the utterance, ``edits`` as [transformation, operator, before, after,
        place], ``changes`` as [slot, before, after, carried, what was expected if anything,
        what the label says of it if there is one], and where there are any
        ``context`` (number of the last perturbed turn in ``earlier``), ``legend``, and ``blames``
        (``what``, ``spans``, ``context`` as [turn index, spans]) of a smaller version that breaks
        as well,
        ``failure``, ``about`` and ``rounds`` ([mark, system, user], with ``moves`` as texts) of a
        rewrite of a relation.
        Of a bot that replies ``replies``, see `reply_pairs`. Of an assistant ``calls``, as
        [what, spans, notes], and ``tools``; ``changes`` name the arguments alone.
        ``doubts`` (texts) about one of a tracker whose answers vary, and ``likely``, a text: how
        many users type it.
    """
    record: dict[str, Any] = {
        "turn": number,
        "variant": variant.index,
        "cause": variant.cause or "unknown",
        "rates": [round(variant.edit_w, 3), round(variant.edit_c, 3)],
        "spans": shown_spans(turn.user, variant.edits),
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
        # What filters ask for: whichever call of the message it is.
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
            "spans": shown_spans(turn.user, variant.reduced.edits),
            "context": _context(variant.reduced),
        }
    return record | _notes(variant)


def _notes(variant: VariantResult) -> dict[str, Any]:
    """Return what is to be said about a variant beside its texts and changes."""
    found: dict[str, Any] = {}
    if texts := doubts(variant):
        found["doubts"] = texts
    if text := likely_text(variant):
        found["likely"] = text
    if lines := legend(variant.edits):
        found["legend"] = list(lines)
    return found


def _rewritten(variant: VariantResult) -> dict[str, Any]:
    """Return what is to be said of a rewrite of a relation."""
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
            made = made_calls(turn.clean_state or Outcome())
            entry["called"] = [code_of(call, LONGEST_ON_PAGE) for call in made] or ["nothing"]
        elif turn.kind.words.values:
            entry["state"] = _pairs(turn.clean_state)
        word = shlex.quote(keyword(turn.id))
        if word != turn.id:
            entry["repeat"] = visible(word)
    return entry


def _pairs(state: Outcome | None) -> list[list[str]]:
    pairs: Iterable[tuple[str, str]] = () if state is None else state.items()
    return [[visible(slot), visible(value)] for slot, value in pairs]


def _edit(edit: Edit) -> list[str | int]:
    before, after = visible(edit.before), visible(edit.after)
    return [visible(edit.transformation), visible(edit.operator), before, after, edit.start]


def _context(shown: Minimal) -> list[Any]:
    return [[index, shown_spans(source, edits)] for index, source, edits in earlier_edits(shown)]


def _more(change: ChangedSlot) -> list[str | None]:
    """Return what was expected of a slot, and what the label says of it, as far as there is any."""
    expected = _value(None if change.expected is None else str(change.expected))
    if change.by_label is not None:
        return [expected, BY_LABEL[change.by_label]]
    return [] if expected is None else [expected]


def _value(value: str | None) -> str | None:
    return None if value is None else visible(shown_value(value))
