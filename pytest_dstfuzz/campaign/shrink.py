"""The violations of a dialogue with no edit to spare, each seen to break the relation.

All violations of a dialogue are made smaller side by side, and a campaign runs many dialogues
side by side, so that the tracker gets full batches. What the second passes showed is known
here: each half that they blame is begun with, and costs nothing more.

A set of edits is made smaller by delta debugging: Zeller and Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input" (IEEE TSE 2002), with two changes. A set of few edits is taken
apart one by one at once: nine of ten violations are one edit's doing. And what cannot be spared
is tried as a whole before anything is left out bit by bit: where causes do not hide each other,
that is the answer.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeVar

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure, count_asked
from pytest_dstfuzz.campaign.attempts import Attempt, TurnAttempts
from pytest_dstfuzz.campaign.judge import JudgedVariant
from pytest_dstfuzz.campaign.requests import OptionalRequest
from pytest_dstfuzz.campaign.results import (
    ChangedSlot,
    ContextEdits,
    Minimal,
    VariantResult,
    faults,
    not_corrected,
)
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.perturb.edits import apply_edits, without
from pytest_dstfuzz.perturb.types import Edit

#: Sets of up to so many edits are taken apart one by one; larger ones are halved first.
FEW: Final = 8
#: Where more are left, each edit is tried alone before that is taken for an answer.
PLAIN: Final = 2

#: Some edits, by their numbers, in ascending order.
Subset = tuple[int, ...]
_Result = TypeVar("_Result")
#: Yields sets, is sent for each of them whether it breaks the relation, returns a result.
Steps = Generator[Sequence[Subset], Mapping[Subset, bool], _Result]


def minimise(groups: Sequence[Subset]) -> Steps[Subset]:
    """Return a 1-minimal set of edits that breaks: without any one of them it does not.

    All edits together are taken to break. Where every superset of a set that breaks does so
    too, no smaller set within the result breaks either. Of ``groups``, edits that belong together,
    none in two, one that breaks alone is all that is looked at. No set is asked for twice.
    """
    known: dict[Subset, bool] = {}
    whole = tuple(sorted(edit for group in groups for edit in group))
    parts = [tuple(sorted(group)) for group in groups if group]
    found = None
    if len(parts) > 1:
        found = yield from _first(parts, known)
    current = whole if found is None else found
    pieces = _begin(current)
    while len(current) > 1:
        chunks = _split(current, pieces)
        smaller = yield from _first(chunks, known)
        if smaller is not None:
            current = smaller
            pieces = _begin(current)
            continue
        smaller = yield from _spare(current, chunks, known)
        if smaller is not None:
            current = smaller
            pieces = len(current) if len(current) <= FEW else max(pieces - 1, 2)
        elif pieces < len(current):
            pieces = min(2 * pieces, len(current))
        else:
            break
    if len(current) > PLAIN:
        # Halves and groups may have passed by an edit that does it alone.
        alone = yield from _first([(edit,) for edit in whole], known)
        current = current if alone is None else alone
    return current


def _begin(edits: Subset) -> int:
    """Return into how many pieces a set is taken apart first."""
    return len(edits) if len(edits) <= FEW else 2


def _split(edits: Subset, pieces: int) -> list[Subset]:
    cuts = [len(edits) * number // pieces for number in range(pieces + 1)]
    return [edits[low:high] for low, high in pairwise(cuts)]


def _first(sets: Sequence[Subset], known: dict[Subset, bool]) -> Steps[Subset | None]:
    """Return the first of some sets that breaks, asking for those that are not known."""
    wanted = [edits for edits in dict.fromkeys(sets) if edits not in known]
    if wanted:
        answers = yield wanted
        known.update((edits, answers[edits]) for edits in wanted)
    return next((edits for edits in sets if known[edits]), None)


def _spare(
    current: Subset, chunks: Sequence[Subset], known: dict[Subset, bool]
) -> Steps[Subset | None]:
    """Return what still breaks when a chunk, or all that can be spared, is left out."""
    # The last ones go first: edits of the turn itself come before those of its context.
    rests = [_less(current, chunk) for chunk in reversed(chunks)]
    smaller = yield from _first(rests, known)
    if smaller is None:
        return None
    spared = {edit for rest in rests if known[rest] for edit in _less(current, rest)}
    needed = _less(current, tuple(spared))
    if needed and needed != smaller and (yield from _first([needed], known)) is not None:
        return needed
    return smaller


def _less(edits: Subset, dropped: Sequence[int]) -> Subset:
    return tuple(edit for edit in edits if edit not in dropped)


_Answers = Mapping[Context, Answer]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What became of the violations of one turn."""

    #: Number of a variant -> its smallest version; those that were not found are missing.
    minimal: Mapping[int, Minimal] = field(default_factory=dict)
    #: Contexts that were asked for.
    calls: int = 0


def shrink(
    turns: Sequence[TurnAttempts],
    judged: Sequence[Sequence[JudgedVariant]],
    answers: _Answers,
) -> Generator[OptionalRequest, _Answers, list[Shrunk]]:
    """Make the violations of a dialogue smaller; return what became of those of each turn.

    Their causes need not be known, but the answers to their second passes.
    """
    broken = [
        [item for item in results if item.result.outcome == "violation"] for results in judged
    ]
    whole = [
        {
            item.result.index: _as_made(item.result)
            for item in items
            if not _comes_apart(turns[place].attempts[item.result.index])
        }
        for place, items in enumerate(broken)
    ]
    cases = [
        [_ShrinkCase(turns, place, i) for i in items if i.result.index not in whole[place]]
        for place, items in enumerate(broken)
    ]
    waiting = [case for of_turn in cases for case in of_turn]
    while True:
        for case in waiting:
            case.advance(answers)
        waiting = [case for case in waiting if case.wanted]
        if not waiting:
            break
        answers = yield OptionalRequest(context for case in waiting for context in case.wanted)
        # Some are missing only once the budget ended: there will be no others.
        waiting = [case for case in waiting if all(map(answers.__contains__, case.wanted))]
    return [
        Shrunk(
            made | {case.number: case.minimal for case in of_turn if case.minimal is not None},
            count_asked({context for case in of_turn for context in case.asked}, answers),
        )
        for of_turn, made in zip(cases, whole, strict=True)
    ]


def _comes_apart(attempt: Attempt) -> bool:
    """Say whether some of the edits of an attempt may be left out.

    Not where a relation made them that expects what all of them together say, nor where rounds
    were moved.
    """
    rewrite = attempt.proposal.rewrite
    return rewrite is None or (rewrite.separable and not rewrite.moves)


def _as_made(result: VariantResult) -> Minimal:
    """Return a violation as its own smallest version."""
    return Minimal(result.text, result.context, result.edits, (), result.changed_slots)


@dataclass(frozen=True, slots=True)
class _Rebuilt:
    """A violation with some of its edits only."""

    context: Context
    edits: tuple[Edit, ...]
    context_edits: tuple[ContextEdits, ...]
    #: Whether each of its utterances passes the validity profile, or is clean.
    valid: bool


class _ShrinkCase:
    """One violation that is being made smaller."""

    def __init__(self, turns: Sequence[TurnAttempts], place: int, judged: JudgedVariant) -> None:
        self.number = judged.result.index
        #: Contexts that it waits for; none once it is done.
        self.wanted: list[Context] = []
        #: All that it has asked for: what other violations had asked for is not among it.
        self.asked: dict[Context, None] = {}
        self.minimal: Minimal | None = None
        self._turns = turns
        self._place = place
        self._turn = turns[place]
        self._rules = self._turn.rules
        self._result = judged.result
        self._attempt = self._turn.attempts[self.number]
        # Its own edits come first, then those of its context, the latest turn first.
        parts = [(place, judged.result.edits)]
        parts += [(earlier.turn_index, earlier.edits) for earlier in judged.result.context_edits]
        parts[1:] = sorted(parts[1:], key=lambda part: -part[0])
        self._parts = parts
        #: Number of an edit here -> turn, and place among the edits of that turn.
        self._edits = [(turn, index) for turn, edits in parts for index in range(len(edits))]
        self._rebuilt: dict[Subset, _Rebuilt] = {}
        own = len(judged.result.edits)
        numbers = tuple(range(len(self._edits)))
        halves = (numbers[:own], numbers[own:])
        #: What the passes of the violation itself showed, and what is needed besides.
        passes = [self._with(edits).context for edits in ((), *halves, numbers)]
        self._passes = {context.exchanges for context in passes}
        self._needed: dict[Context, None] = {}
        self._steps: Steps[Subset] = minimise(halves)
        #: What the search wants to know; nothing before it has begun.
        self._sets: Sequence[Subset] = ()

    def advance(self, answers: _Answers) -> None:
        """Take it as far as the answers will do."""
        while True:
            self.wanted = [
                context for edits in self._sets for context in self._missing(edits, answers)
            ]
            if self.wanted:
                self.asked.update(dict.fromkeys(self.wanted))
                return
            broke = {edits: bool(self._changes(edits, answers)) for edits in self._sets}
            try:
                self._sets = self._steps.send(broke) if self._sets else next(self._steps)
            except StopIteration as stop:
                self.minimal = self._described(stop.value, answers)
                return

    def _missing(self, edits: Subset, answers: _Answers) -> list[Context]:
        """Return what has to be asked to know whether some edits break."""
        rebuilt = self._with(edits)
        if not rebuilt.valid:
            return []
        needed = [rebuilt.context]
        if self._rules.decider.again and rebuilt.context in answers and self._looks(edits, answers):
            needed += self._rules.decider.part_wanted(
                self._turn, self._attempt, rebuilt.context, answers
            )
        self._needed.update(dict.fromkeys(needed))
        return [context for context in needed if context not in answers]

    def _changes(self, edits: Subset, answers: _Answers) -> tuple[ChangedSlot, ...]:
        """Return the slots that change, if one of those that the violation is about does.

        None otherwise, and none if that slot becomes right: what then breaks, if anything, is
        another weakness. An utterance that is no valid variant breaks nothing: one typing error
        the less may make another word. Nor does what a sequential test leaves undecided.
        """
        return self._looks(edits, answers, open_too=False)

    def _looks(
        self, edits: Subset, answers: _Answers, *, open_too: bool = True
    ) -> tuple[ChangedSlot, ...]:
        """Return what seems to change so far, what a test leaves ``open_too`` among it."""
        rebuilt, turn = self._with(edits), self._turn
        if not rebuilt.valid:
            return ()
        clean_context = turn.clean_context
        clean, answer, undecided, _ = self._rules.decider.sides(
            turn, self._attempt, clean_context, rebuilt.context, answers
        )
        if isinstance(answer, TrackerFailure) or (undecided and not open_too):
            return ()
        verdict = turn.verdict(self._attempt, clean, answer.state)
        if verdict.kind != "violation":
            return ()
        carried = {change.slot for change in self._result.changed_slots if change.carried}
        by_label = turn.by_label(self._attempt, clean, answer.state, verdict.changes)
        changes = tuple(
            ChangedSlot(*one, carried=one.slot in carried, by_label=by_label.get(one.slot))
            for one in verdict.changes
        )
        about = {change.slot for change in faults(self._result.changed_slots)}
        return changes if any(c.slot in about for c in not_corrected(changes)) else ()

    def _with(self, edits: Subset) -> _Rebuilt:
        if edits not in self._rebuilt:
            self._rebuilt[edits] = self._rebuild({self._edits[number] for number in edits})
        return self._rebuilt[edits]

    def _rebuild(self, chosen: set[tuple[int, int]]) -> _Rebuilt:
        users: dict[int, str] = {}
        kept: dict[int, tuple[Edit, ...]] = {}
        valid = True
        for index, edits in self._parts:
            dropped = [number for number in range(len(edits)) if (index, number) not in chosen]
            kept[index] = without(edits, dropped)
            users[index] = apply_edits(self._turn.dialogue.turns[index].user, kept[index])
            source = self._turns[index].source
            # Any part of a relation's own edits that come apart is a rewrite of it as well.
            if kept[index] and dropped and source is not None:
                status, _ = self._rules.perturber.check(source, users[index], kept[index])
                valid = valid and status in ("valid", "vacuous")
        return _Rebuilt(
            self._turn.dialogue.context(self._place, users),
            kept[self._place],
            tuple(
                ContextEdits(index, edits)
                for index, edits in sorted(kept.items())
                if index != self._place and edits
            ),
            valid,
        )

    def _described(self, edits: Subset, answers: _Answers) -> Minimal:
        """Return what is left of the violation, with what it was seen to change."""
        rebuilt = self._with(edits)
        return Minimal(
            text=rebuilt.context.user,
            context=rebuilt.context.user_utterances[:-1],
            edits=rebuilt.edits,
            context_edits=rebuilt.context_edits,
            changed_slots=tuple(
                self._rules.folding.told(change, self._turn.clean_context)
                # All edits together are what was found, whatever was asked since.
                for change in self._looks(edits, answers)
            ),
            calls=count_asked(
                {one for one in self._needed if one.exchanges not in self._passes}, answers
            ),
        )
