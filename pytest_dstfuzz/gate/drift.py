"""Drift: the clean answers of two builds to the same turns, and whether labels excuse a change.

A tracker that stops understanding breaks nothing more: what it does not answer no variant can
change. So a comparison begins with the answers to the clean turns. A turn at which the tracker
fails now is one that it understands no more; a service may fail by chance, after all its retries,
and that is what a limit above 0 is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_dstfuzz.config.rates import over, percent
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.dialogue.dialogues import diff_states
from pytest_dstfuzz.dialogue.outcome import REPLY
from pytest_dstfuzz.gate.baseline import State
from pytest_dstfuzz.gate.verdict import LimitFinding, Verdict
from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import Words
from pytest_dstfuzz.kinds.replies import REPLIES
from pytest_dstfuzz.kinds.tool_calls import TOOL_CALLS

#: Share of the turns whose clean answer may change, where nobody says.
DEFAULT_MAX_DRIFT: Final = 0.0
#: Slots that a sentence names of each kind.
_MOST_SLOTS: Final = 5
_KINDS: Final = ("lost", "gained", "with another value")


@dataclass(frozen=True, slots=True)
class CleanPair:
    """The answers of two builds to one clean turn; both as the baseline keeps them."""

    turn_id: str
    dialogue: str
    before: State
    after: State
    label: State | None = None

    @property
    def changed(self) -> bool:
        """Whether the answers differ."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the clean answers of two builds differ."""

    turns: int
    #: The turns whose answer changed.
    moved: tuple[CleanPair, ...] = ()
    #: What happened to the slots: kind -> slot -> turns, the most frequent first.
    slots: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Turns with a label, and how many of them each build got right.
    labelled: int = 0
    right_before: int = 0
    right_after: int = 0
    #: Whether the labels say that the answers did not get worse where they changed.
    excused: bool = False
    #: Changed turns for which no label speaks.
    unlabelled: int = 0
    #: Turns beside those compared that the baseline has an answer to, and at which this
    #: tracker failed. No label excuses them.
    silenced: int = 0
    #: The first of these turns, and what the tracker did there.
    failures: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Ids of the turns whose answer changed."""
        return tuple(pair.turn_id for pair in self.moved)

    @property
    def share(self) -> float:
        """Share of the turns that changed or were silenced, but for what the labels excuse."""
        return self.changed_share + (self.silenced / self._all if self._all else 0.0)

    @property
    def changed_share(self) -> float:
        """Share of the turns that changed, but for what the labels excuse."""
        count = self.unlabelled if self.excused else len(self.changed)
        return count / self._all if self._all else 0.0

    @property
    def _all(self) -> int:
        return self.turns + self.silenced

    def to_json(self, *, hidden: bool = False) -> dict[str, Any]:
        """Return ``clean`` of a report's comparison, ``hidden`` with an ``x`` for each value."""
        return {
            "turns": self.turns,
            "silenced": self.silenced,
            "changed": list(self.changed),
            "answers": [_answer(pair, hidden) for pair in self.moved],
            "lost": dict(self.slots.get("lost", {})),
            "gained": dict(self.slots.get("gained", {})),
            "other_value": dict(self.slots.get("with another value", {})),
            "labelled": self.labelled,
            "accuracy_before": self.right_before / self.labelled if self.labelled else None,
            "accuracy_after": self.right_after / self.labelled if self.labelled else None,
        }


class DriftTally:
    """Compares the answers of two builds to clean turns, one turn after the other.

    It keeps those that changed: a report names each of them.
    """

    def __init__(self) -> None:
        self.turns = 0
        self._moved: list[CleanPair] = []
        self._labelled = self._right_before = self._right_after = 0
        #: Whether either build ever meets a label that has a slot; the slots of labels.
        self._met = False
        self._known: set[str] = set()

    def add(self, pair: CleanPair) -> None:
        """Take in the answers to a turn that both builds answered."""
        self.turns += 1
        if pair.changed:
            self._moved.append(pair)
        if (label := pair.label) is not None:
            self._labelled += 1
            self._right_before += pair.before == label
            self._right_after += pair.after == label
            self._met = self._met or bool(label and label in (pair.before, pair.after))
            self._known.update(label)

    def drift(self, silenced: int = 0, failures: tuple[str, ...] = ()) -> Drift:
        """Return how far the answers differ; see `Drift`."""
        moved = sorted(self._moved, key=lambda pair: (pair.dialogue, pair.turn_id))
        return Drift(
            turns=self.turns,
            moved=tuple(moved),
            slots=_slots(moved),
            labelled=self._labelled,
            right_before=self._right_before,
            right_after=self._right_after,
            excused=self._met and _excused(moved, self._known),
            unlabelled=sum(pair.label is None for pair in moved),
            silenced=silenced,
            failures=failures,
        )


def judge_drift(
    drift: Drift, limit: float, disagreement: float = 0.0, unanswered: int = 0, compared: str = ""
) -> LimitFinding:
    """Judge a change of the clean answers by the share of the compared turns that may change.

    ``disagreement``, the chance that two answers of this build to one clean turn differ,
    excuses nothing, but is told; so are ``unanswered``, the turns that both builds have and one
    of them did not answer, those that were silenced included, and by what replies were
    ``compared``, where anything is to be said of it.
    """
    share, allowed = drift.share, f"{percent(limit)} are allowed"
    words = _words(drift)
    what = f"{words.slot}s"
    if not drift.turns:
        reason = "no turn was answered in both builds"
    elif not drift.changed:
        reason = f"the clean answers to all {drift.turns:,} turns are those of the baseline"
    else:
        reason = f"clean answers changed at {len(drift.changed):,} of {drift.turns:,} turns"
        reason += f": {_slots_text(drift.slots, what)}" if words.values else ""
    if drift.changed and drift.labelled:
        before, after = (
            percent(right / drift.labelled) for right in (drift.right_before, drift.right_after)
        )
        right, labels = words.right, words.labels
        reason += (
            f"; {right} on the {drift.labelled:,} turns with {labels}: {before} in the baseline, "
            f"{after} now"
        )
        if drift.excused:
            reason += f", and where answers changed the {labels} speak for the new ones"
    drifted = over(share, limit)
    reason += _silenced_text(drift, words)
    if drift.silenced or (drift.changed and (drifted or not drift.excused or drift.unlabelled)):
        without = ", without a label" if drift.excused and drift.labelled else ""
        reason += f"; {percent(share)} of the turns{without}, {allowed}"
    if drifted and disagreement:
        reason += (
            f"; two answers of this tracker to one clean turn differ in {percent(disagreement)} "
            "of cases, so some changes may be chance: dst_max_clean_drift allows a share"
        )
    if drift.changed and compared:
        reason += f"; {compared}"
    if others := unanswered - drift.silenced:
        reason += f"; {others:,} more had no answer in one of the builds"
    verdict: Verdict = "drift" if drifted else "pass"
    if drifted and not over(drift.changed_share, limit):
        # No new answer is to be accepted: there is none.
        verdict = "regression"
    return LimitFinding(None, "max-clean-drift", limit, verdict, reason, share)


def _silenced_text(drift: Drift, words: Words) -> str:
    """Say at how many turns the tracker failed now, and what it did first; ``""`` at none."""
    if not drift.silenced:
        return ""
    named = f" ({'; '.join(drift.failures)})" if drift.failures else ""
    return f"; at {drift.silenced:,} that the baseline answers {words.who} failed{named}"


def _words(drift: Drift) -> Words:
    """Return the words for the answers that changed, told by their paths."""
    paths = {path for pair in drift.moved for path in (*pair.before, *pair.after)}
    if paths <= {REPLY} and drift.moved:
        return REPLIES.words
    return (
        TOOL_CALLS if any(AnswerPath.of(path).in_call for path in paths) else BELIEF_STATES
    ).words


def _excused(changed: Iterable[CleanPair], known: Collection[str]) -> bool:
    """Whether labels say that the answers got no worse where they changed.

    No fewer turns may be right, no fewer slots, and no fewer values that the user did name:
    where no answer is right as a whole, every other one is as good, and an empty one has no
    wrong slot. Labels that neither build ever meets, as with slots of other names, say nothing,
    nor do labels without a slot about what becomes of that slot: ``known`` are those of labels.
    """
    turns = slots = named = 0
    moved = [(pair, pair.label) for pair in changed if pair.label is not None]
    for pair, label in moved:
        if any(slot not in known for slot, *_ in diff_states(pair.before, pair.after)):
            return False
        turns += (pair.after == label) - (pair.before == label)
        for slot in {*pair.before, *pair.after, *label}:
            wanted = label.get(slot)
            better = (pair.after.get(slot) == wanted) - (pair.before.get(slot) == wanted)
            slots += better
            named += better if slot in label else 0
    return bool(moved) and min(turns, slots, named) >= 0


def _answer(pair: CleanPair, hidden: bool) -> dict[str, Any]:
    """Return the slots of a turn whose value is not the same, with their values."""

    def shown(value: str | None) -> str | None:
        return "x" if hidden and value is not None else value

    changed = [
        {"slot": slot, "before": shown(before), "after": shown(after)}
        for slot, before, after in diff_states(pair.before, pair.after)
    ]
    return {"turn": pair.turn_id, "slots": changed}


def _slots(moved: Iterable[CleanPair]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {kind: Counter() for kind in _KINDS}
    for pair in moved:
        for slot, before, after in diff_states(pair.before, pair.after):
            kind = _KINDS[0 if after is None else 1 if before is None else 2]
            found[kind][AnswerPath.of(slot).part[1]] += 1
    return {
        kind: dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
        for kind, counts in found.items()
    }


def _slots_text(slots: Mapping[str, Mapping[str, int]], what: str) -> str:
    """Say what happened to the slots: ``slots lost origin (31), date (2); gained ...``."""
    parts = []
    for kind, counts in slots.items():
        if counts:
            named = [f"{slot} ({count:,})" for slot, count in counts.items()][:_MOST_SLOTS]
            more = len(counts) - len(named)
            parts.append(f"{kind} {', '.join(named)}" + (f" and {more} more" if more else ""))
    return f"{what} {'; '.join(parts)}"
