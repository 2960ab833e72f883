"""The searches that an experiment compares, and the figures of their campaigns together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pytest_dstfuzz.research.campaign_figures import CampaignFigures, TurnFigures
from pytest_dstfuzz.research.resampling import Rate, Resamples, Tally
from pytest_dstfuzz.search.hill_climb import DIALTEST, GREEDY
from pytest_dstfuzz.search.registry import search_by_name

#: Searches that make one edit after the other and have no number of transformations.
WITHOUT_K: Final = (GREEDY.name, DIALTEST.name)
AGENT: Final = "agent"


@dataclass(frozen=True, slots=True)
class Contender:
    """A search, or several that stand for one: policies of several training seeds."""

    label: str
    #: As the option ``search`` takes them.
    searches: tuple[str, ...]

    def ks(self, ks: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of transformations at which it differs."""
        return tuple(ks[:1] if self.label in WITHOUT_K else ks)

    def runs(self, seeds: Sequence[int]) -> list[tuple[str, int]]:
        """Return search and seed of each run: every search and every seed at least once."""
        count = max(len(self.searches), len(seeds))
        return [
            (self.searches[number % len(self.searches)], seeds[number % len(seeds)])
            for number in range(count)
        ]


def parse_contenders(text: str) -> tuple[Contender, ...]:
    """Read ``[LABEL=]SEARCH,...``: searches of the same label stand for one.

    Without one the label is the name of the search: all of ``agent:PATH,agent:PATH`` are
    the agent. Each search is made once, so that a mistake shows before anything is run.

    Raises:
        UserError: there is no such search, or its policy will not do.
        ValueError: nothing is named.
    """
    found: dict[str, list[str]] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        label, equals, search = part.rpartition("=")
        search_by_name(search, seed=0, k=1)
        name = label if equals else search.partition(":")[0]
        found.setdefault(name, []).append(search)
    if not found:
        raise ValueError("names no search")
    return tuple(Contender(label, tuple(searches)) for label, searches in found.items())


def subject_of(contenders: Sequence[Contender]) -> Contender:
    """Return the one whom the others are compared with: the agent, else the last named."""
    return next((item for item in contenders if item.label == AGENT), contenders[-1])


def _of_violations(condition: Callable[[TurnFigures], int]) -> Callable[[TurnFigures], _Pair]:
    return lambda turn: (condition(turn), len(turn.violations))


def _caused_by(cause: str) -> Callable[[TurnFigures], int]:
    return lambda turn: sum(item.cause == cause for item in turn.violations)


_Pair = tuple[float, float]
#: Name of a rate -> (part, whole) of a turn.
RATES: Final[Mapping[str, Callable[[TurnFigures], _Pair]]] = {
    "broken_per_call": lambda turn: (bool(turn.violations), turn.calls),
    "valid_rate": lambda turn: (turn.counts.valid, turn.counts.generated),
    "valid_rate_per_draw": lambda turn: (turn.counts.valid, turn.draws),
    "failure_rate": lambda turn: (turn.counts.violations, turn.counts.valid),
    "thesis_failure_rate": lambda turn: (
        turn.counts.violations + turn.counts.carried,
        turn.counts.valid,
    ),
    "yield": lambda turn: (turn.counts.violations, turn.counts.generated),
    "edit_w": lambda turn: (turn.edit_w, turn.counts.valid),
    "edit_c": lambda turn: (turn.edit_c, turn.counts.valid),
    "cause_turn": _of_violations(_caused_by("turn")),
    "cause_context": _of_violations(_caused_by("context")),
    "cause_both": _of_violations(_caused_by("both")),
    "strict_vetoes": _of_violations(lambda turn: sum(item.vetoed for item in turn.violations)),
    "strict_vetoes_with_context": _of_violations(
        lambda turn: sum(item.vetoed_context for item in turn.violations)
    ),
}


def tallies(runs: Sequence[CampaignFigures], pair: Callable[[TurnFigures], _Pair]) -> list[Tally]:
    """Sum (part, whole) by dialogue, for each run."""
    return [tally((turn.dialogue, pair(turn)) for turn in run.turns) for run in runs]


def rates_of(resamples: Resamples, runs: Sequence[CampaignFigures]) -> dict[str, Rate]:
    """Return every rate of `RATES`."""
    return {name: resamples.rate(tallies(runs, pair)) for name, pair in RATES.items()}


def broken_ratio(
    resamples: Resamples, runs: Sequence[CampaignFigures], others: Sequence[CampaignFigures]
) -> Rate:
    """Return how many times as many turns ``runs`` break for every call as ``others``."""
    pair = RATES["broken_per_call"]
    return resamples.ratio(tallies(runs, pair), tallies(others, pair))


def broken_alone(
    resamples: Resamples, runs: Sequence[CampaignFigures], others: Sequence[CampaignFigures]
) -> Rate:
    """Return the share of the turns that ``runs`` break which ``others`` do not.

    The first run is held against the first of the others, and so on.
    """
    found: list[Tally] = []
    for number, run in enumerate(runs):
        theirs = {_place(turn) for turn in others[number % len(others)].turns if turn.violations}
        broken = [turn for turn in run.turns if turn.violations]
        found.append(tally((turn.dialogue, (_place(turn) not in theirs, 1)) for turn in broken))
    return resamples.rate(found)


class Weaknesses(NamedTuple):
    """How varied what was found is; means over runs."""

    #: Different sets of changed slots and the values that they got.
    number: float
    #: Share of the violations that the most frequent one has; ``None`` without violations.
    most_frequent: float | None
    #: That of the first run.
    name: str


def weaknesses_of(runs: Sequence[CampaignFigures]) -> Weaknesses:
    """Return how varied the violations are."""
    counted = [
        Counter(item.weakness for turn in run.turns for item in turn.violations) for run in runs
    ]
    shares = [max(found.values()) / found.total() for found in counted if found]
    # Of equally frequent ones the first in the order of the alphabet.
    top = min(counted[0].items(), key=lambda item: (-item[1], str(item[0])), default=((), 0))[0]
    return Weaknesses(
        number=sum(map(len, counted)) / len(counted),
        most_frequent=sum(shares) / len(shares) if shares else None,
        name=", ".join(f"{slot} -> {after or 'none'}" for slot, after in top),
    )


def _place(turn: TurnFigures) -> tuple[str, int]:
    return turn.dialogue, turn.turn


def tally(items: Iterable[tuple[str, _Pair]]) -> Tally:
    """Sum (part, whole) of turns by dialogue."""
    sums: dict[str, _Pair] = {}
    for dialogue, (part, whole) in items:
        before = sums.get(dialogue, (0.0, 0.0))
        sums[dialogue] = (before[0] + part, before[1] + whole)
    return sums
