"""A tracker that must repeat itself is taken at its word, but for a few contexts asked once more.

The preflight sees trackers that answer at random, but not one that does so once in a hundred times,
nor one that keeps something from one dialogue to the next only later on. So of every second turn
that is broken a violation, and of every eighth one a variant that held, are asked for again, with
the clean turn, when their dialogue is done. Which ones is drawn by the seed for each turn, so that
the result of a turn does not depend on the others. A cache keeps second answers apart from first
ones, and none stands for the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from pytest_dstfuzz.campaign.answers import UNSTABLE, Answer, TrackerFailure
from pytest_dstfuzz.campaign.attempts import TurnAttempts
from pytest_dstfuzz.campaign.folding import AS_GIVEN, Folding
from pytest_dstfuzz.campaign.judge import JudgedVariant
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.dialogues import Again, Context
from pytest_dstfuzz.seeding import stream

#: Outcome of a variant -> share of the turns with one such in which one is asked again.
SHARES: Final = {"violation": 1 / 2, "held": 1 / 8}


@dataclass(frozen=True, slots=True)
class Repeat:
    """A variant of a turn that is asked for again, with its clean turn."""

    #: Place of the turn in its dialogue, and number of the variant.
    place: int
    number: int
    #: Contexts of the clean turn and of the variant.
    contexts: tuple[Context, Context]
    folding: Folding = AS_GIVEN

    @property
    def wanted(self) -> list[Again]:
        """What to ask for: no answer of a vote, which are numbered from 1."""
        return [context.again(-1) for context in self.contexts]

    def same(self, answers: Mapping[Context, Answer]) -> bool | None:
        """Whether both had the same answers again; ``None`` = one has no second answer."""
        found = []
        for first, again in zip(self.contexts, self.wanted, strict=True):
            one, other = answers[first], answers.get(again)
            if (
                other is None
                or isinstance(one, TrackerFailure)
                or isinstance(other, TrackerFailure)
            ):
                return None
            found.append(self.folding.agree(one.state, other.state, self.contexts[0]))
        return all(found)


def choose_repeats(
    turns: Sequence[TurnAttempts],
    judged: Sequence[Sequence[JudgedVariant]],
    seed: int,
    dialogue: str,
) -> list[Repeat]:
    """Choose violations of a dialogue and variants that held, see `SHARES`."""
    chosen = []
    for (place, items), outcome in product(enumerate(judged), SHARES):
        found = [item.result.index for item in items if item.result.outcome == outcome]
        rng = stream(seed, "repeat", dialogue, place, outcome)
        if found and rng.random() < SHARES[outcome]:
            number, turn = found[int(rng.integers(len(found)))], turns[place]
            attempt = turn.attempts[number]
            contexts = turn.reference(attempt), attempt.context
            chosen.append(Repeat(place, number, contexts, turn.rules.folding))
    return chosen


@dataclass(frozen=True, slots=True)
class Repeats:
    """What came of asking again."""

    #: Violations that were asked for again, and those of them with other answers than before.
    violations: int
    violations_changed: int
    #: Likewise variants that held.
    held: int
    held_changed: int

    @property
    def changed(self) -> int:
        """How many had other answers than before."""
        return self.violations_changed + self.held_changed


class RepetitionTally:
    """Says whether a bot repeats itself, as far as a run asked it anything more than once."""

    def __init__(self) -> None:
        self.same = True

    def add(self, turn: TurnResult) -> None:
        """Take in the answers to a turn."""
        answered = {kind for kind in turn.clean_votes if kind >= 0}
        self.same = (
            self.same
            and len(answered) <= 1
            and turn.reason != UNSTABLE
            and all(map(_repeated, turn.variants))
        )


def _repeated(variant: VariantResult) -> bool:
    """Whether no second answer to a variant, or to its clean turn, was another one."""
    votes = variant.votes
    voted = votes is None or (votes.against == 0 and votes.changed in (0, votes.asked))
    return voted and variant.outcome != "unstable" and variant.repeated is not False


class RepeatsTally:
    """Counts what was asked again, one turn after the other."""

    def __init__(self) -> None:
        #: (whether it had been a violation, whether the answers were the same) -> variants.
        self._asked: Counter[tuple[bool, bool]] = Counter()

    def add(self, turn: TurnResult) -> None:
        """Take in what was asked again at a turn."""
        for item in turn.variants:
            if item.repeated is not None:
                self._asked[item.outcome == "violation", item.repeated] += 1

    @property
    def repeats(self) -> Repeats | None:
        """What came of it; ``None`` where nothing was asked again."""
        asked = self._asked
        if not asked:
            return None
        return Repeats(
            violations=asked[True, True] + asked[True, False],
            violations_changed=asked[True, False],
            held=asked[False, True] + asked[False, False],
            held_changed=asked[False, False],
        )
