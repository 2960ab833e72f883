"""The violations of a dialogue with no edit to spare, each seen to break the relation.

All violations of a dialogue are made smaller side by side, and a campaign runs many dialogues
side by side, so that the tracker gets full batches. What the second passes showed is known
here: each half that they blame is begun with, and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure, count_asked
from pytest_dstfuzz.campaign.attempts import CampaignSpec, TurnAttempts
from pytest_dstfuzz.campaign.judge import JudgedVariant
from pytest_dstfuzz.campaign.minimise import Steps, Subset, minimise
from pytest_dstfuzz.campaign.results import ChangedSlot, ContextEdits, Minimal
from pytest_dstfuzz.campaign.voting import settled, variant_wanted
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, SlotChange
from pytest_dstfuzz.perturb.edits import apply_edits, without
from pytest_dstfuzz.perturb.types import Edit

_Answers = Mapping[Context, Answer]


class OptionalRequest(list[Context]):
    """Contexts without whose answers a dialogue is done as well, with less to say."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What became of the violations of one turn."""

    #: Number of a variant -> its smallest version; those that were not found are missing.
    minimal: Mapping[int, Minimal] = field(default_factory=dict)
    #: Contexts that were asked for.
    calls: int = 0


def shrink(
    rules: CampaignSpec,
    dialogue: Dialogue,
    turns: Sequence[TurnAttempts],
    judged: Sequence[Sequence[JudgedVariant]],
    answers: _Answers,
) -> Generator[OptionalRequest, _Answers, list[Shrunk]]:
    """Make the violations of a dialogue smaller.

    Args:
        rules: of the campaign.
        dialogue: the dialogue.
        turns: its turns from the first on.
        judged: the results of each of them; causes need not be known.
        answers: all that were given so far, those to the second passes among them.

    Returns:
        One entry for each turn.
    """
    cases = [
        [
            _ShrinkCase(rules, dialogue, turns, place, item)
            for item in results
            if item.result.outcome == "violation"
        ]
        for place, results in enumerate(judged)
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
            {case.number: case.minimal for case in of_turn if case.minimal is not None},
            count_asked({context for case in of_turn for context in case.asked}, answers),
        )
        for of_turn in cases
    ]


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

    def __init__(
        self,
        rules: CampaignSpec,
        dialogue: Dialogue,
        turns: Sequence[TurnAttempts],
        place: int,
        judged: JudgedVariant,
    ) -> None:
        self.number = judged.result.index
        #: Contexts that it waits for; none once it is done.
        self.wanted: list[Context] = []
        #: All that it has asked for: what other violations had asked for is not among it.
        self.asked: dict[Context, None] = {}
        self.minimal: Minimal | None = None
        self._rules = rules
        self._dialogue = dialogue
        self._turns = turns
        self._place = place
        self._result = judged.result
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
        if self._rules.votes > 1 and rebuilt.context in answers and self._changes(edits, answers):
            clean, votes = self._turns[self._place].clean_context, self._rules.votes
            needed += variant_wanted(clean, rebuilt.context, answers, votes, votes)
        self._needed.update(dict.fromkeys(needed))
        return [context for context in needed if context not in answers]

    def _changes(self, edits: Subset, answers: _Answers) -> tuple[SlotChange, ...]:
        """Return the slots that change, where one of those that the violation changed anew does.

        None otherwise: what then breaks, if anything, is another weakness. An utterance that
        is no valid variant breaks nothing: one typing error the less may make another word.
        """
        rebuilt, turn = self._with(edits), self._turns[self._place]
        if not rebuilt.valid:
            return ()
        clean, answer = settled(turn.clean_context, rebuilt.context, answers)
        if isinstance(answer, TrackerFailure):
            return ()
        verdict = self._rules.relation.judge(clean, answer.state, turn.turn.state)
        anew = {change.slot for change in self._result.changed_slots if not change.carried}
        broken = verdict.kind == "violation" and any(c.slot in anew for c in verdict.changes)
        return verdict.changes if broken else ()

    def _with(self, edits: Subset) -> _Rebuilt:
        """Return the violation with some of its edits."""
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
            users[index] = apply_edits(self._dialogue.turns[index].user, kept[index])
            if kept[index] and dropped:
                source = self._turns[index].source
                status, _ = self._rules.perturber.check(source, users[index], kept[index])
                valid = valid and status in ("valid", "vacuous")
        return _Rebuilt(
            self._dialogue.context(self._place, users),
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
        carried = {change.slot for change in self._result.changed_slots if change.carried}
        return Minimal(
            text=rebuilt.context.user,
            context=rebuilt.context.user_utterances[:-1],
            edits=rebuilt.edits,
            context_edits=rebuilt.context_edits,
            changed_slots=tuple(
                ChangedSlot(*change, carried=change.slot in carried)
                for change in self._changes(edits, answers)
            ),
            calls=count_asked(
                {one for one in self._needed if one.exchanges not in self._passes}, answers
            ),
        )
