"""Estimates of how many contexts a campaign requests: before it starts, and from its first part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.deciding import ONCE, Decider, is_repeated
from pytest_dstfuzz.campaign.dialogue_run import run_dialogue
from pytest_dstfuzz.campaign.figures import t_quantile
from pytest_dstfuzz.campaign.predictor import Budget
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import VariantSettings
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.dialogue.sampling import rank_in_draw
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.registry import SAMPLED
from pytest_dstfuzz.search.searches import NoiseSearch
from pytest_dstfuzz.trackers.tracker import Prediction

#: Number of contexts that the minimisation of a violation needs on average, at most.
SHRINKING: Final = 5
#: A pilot is run if the whole campaign takes at least this number of seconds, or costs money.
SLOW: Final = 20.0
#: A pilot is run only if this part of the budget pays for the whole campaign. A pilot tests a turn
#: with other variants than the first, so too little might be left for the first variants of all.
PILOT_BUDGET: Final = 0.5
#: Maximum number of turns in a part of a pilot. More turns would not make the estimate much better.
PILOT_TURNS: Final = 240
#: Maximum shares of the expected calls for the first part of a pilot, and for the whole pilot.
PILOT_SHARES: Final = (0.5, 0.65)
#: The same for a pilot of whole dialogues, as shares of the turns.
PILOT_DIALOGUES: Final = (0.25, 0.45)
#: A pilot ends if the 95 % interval of its estimate is at most this wide on each side.
NARROW: Final = 0.1
#: Number of turns of a rehearsal.
REHEARSED: Final = 60

#: A dialogue of the plan and the index of its last turn.
PlannedTurn = tuple[Dialogue, int]


class ExpectedCalls(NamedTuple):
    """Estimates of how many contexts a campaign will request."""

    turns: int
    #: The number if no variant breaks the relation.
    least: int
    #: About the maximum: the number if all variants break the relation, since violations need extra
    #: contexts for their causes and minimal versions.
    most: int
    #: The number for one variant of each turn, if it is no violation.
    first: int

    def without_clean(self) -> ExpectedCalls:
        """Return the estimates if the answers to clean turns are already known."""
        numbers = (one - self.turns for one in (self.least, self.most, self.first))
        return ExpectedCalls(self.turns, *numbers)


def expected_calls(
    settings: VariantSettings, relation: Relation, decider: Decider, plan: Sequence[PlannedTurn]
) -> ExpectedCalls:
    """Return an estimate of how many contexts a campaign will request, if all variants are valid.

    See `rehearse` for a closer estimate.
    """
    turns = _turns(plan)
    variants = settings.variants * (len(plan) if relation.unit == "dialogue" else turns)
    probed = settings.attack != "non-cumulative" and relation.edits == "search"
    each = 1 + 2 * probed + SHRINKING * settings.shrink
    typed = turns * _conversations(settings, relation)
    first = turns * (1 + (decider.votes if decider.again else 1))
    if not decider.again:
        least, most = turns + variants + typed, turns + each * variants + typed
        return ExpectedCalls(turns, least, most, first)
    # Repeated requests until the votes decide, see `deciding`.
    votes = decider.votes
    answers = 2 * votes - 1
    least = votes * turns + variants + typed
    most = (answers + 2) * turns + answers * (each * variants + typed)
    return ExpectedCalls(turns, least, most, first)


def rehearse(
    expected: ExpectedCalls, rules: CampaignSpec, plan: Sequence[PlannedTurn]
) -> ExpectedCalls:
    """Return the estimates for the variants that the turns really have.

    The variants are made as in the campaign, but nothing is requested: the labels replace the
    answers, and rules replace the language model that decides about contexts. If the plan is large,
    this is done for a sample of its dialogues.
    """
    settings, votes = rules.settings, rules.decider.votes if rules.decider.again else 1
    sample = _at_most(REHEARSED, in_drawn_order(settings.seed, plan))
    results = [
        turn
        for dialogue, last in sample
        for turn in _without_violations(
            rules, dialogue, [rules.kind.label(dialogue, index) for index in range(last + 1)]
        )
    ]
    tested = sum(_tested(turn) for turn in results)
    calls = sum(_all_calls(turn) for turn in results) + (votes - 1) * _turns(sample)
    if rules.repeats:
        calls += sum(
            2 * is_repeated(settings.seed, turn.dialogue_id, turn.turn_index, "held")
            for turn in results
            if _tested(turn)
        )
    least = round(calls * expected.turns / _turns(sample))
    share = tested / (settings.variants * len(results))
    most = least + round((expected.most - expected.least) * min(share, 1.0))
    return expected._replace(least=least, most=most, first=min(expected.first, most))


def _without_violations(
    rules: CampaignSpec, dialogue: Dialogue, clean: Sequence[Outcome | None]
) -> list[TurnResult]:
    """Return the results of a dialogue if each turn has its clean answer for all its variants.

    Each context is requested once, and nothing is minimised.
    """
    settings = replace(rules.settings, shrink=False)
    scenes = rules.scenes.without_judge()
    once = replace(rules, decider=ONCE, repeats=False, settings=settings, scenes=scenes)
    run = run_dialogue(once, dialogue, len(clean) - 1)
    answers: dict[Context, Answer] = {}
    wanted = next(run)
    while True:
        for context in wanted:
            # A variant may have more rounds than the dialogue.
            answer = clean[min(len(context.exchanges), len(clean)) - 1]
            answers[context] = Prediction(Outcome() if answer is None else answer)
        try:
            wanted = run.send(answers)
        except StopIteration as stop:
            found: list[TurnResult] = stop.value
            return found


class _Sampled(NamedTuple):
    """A dialogue of a pilot."""

    turns: int
    #: Number of contexts that do not depend on violations.
    fixed: float
    #: For each tested number of a variant: the contexts for violations of it.
    each: tuple[int, ...] = ()
    #: Number of contexts of all variants, and of those with the tested numbers, on average.
    made: int = 0
    alone: float = 0.0


class Estimate(NamedTuple):
    """The estimated number of contexts of a campaign."""

    calls: float
    #: The ends of its 95 % interval; equal to ``calls`` if they are unknown.
    low: float
    high: float

    @property
    def narrow(self) -> bool:
        """Whether the interval is narrow enough to end a pilot."""
        return max(self.calls - self.low, self.high - self.calls) <= NARROW * self.calls

    def without(self, calls: int, least: int) -> Estimate:
        """Return the estimate without some contexts, but with at least ``least``."""
        return Estimate(*(max(one - calls, least) for one in self))


class Pilot:
    """A part of a campaign that runs first, to estimate the number of contexts of the whole.

    If the variants of a turn do not depend on each other, the pilot tests one or two variants of
    every turn, others in each dialogue. So every turn counts, and few turns with many violations do
    not mislead. Otherwise the pilot tests some dialogues with all their variants. In both cases
    the campaign needs the same contexts, so they cost nothing extra.
    """

    def __init__(self, rules: CampaignSpec, plan: Sequence[PlannedTurn]) -> None:
        self._rules = rules
        self._planned = _turns(plan)
        self._drawn = in_drawn_order(rules.settings.seed, plan)
        #: Dialogue id -> the dialogue, and its place in the draw.
        self._places = {one.id: (one, place) for place, (one, _) in enumerate(self._drawn)}
        self._by_number = _independent(rules) and self._share(1) <= PILOT_SHARES[0]
        #: Dialogue id -> the results of its turns, for each part that had the dialogue.
        self._found: dict[str, list[Sequence[TurnResult]]] = {}

    def parts(self) -> Iterable[Sequence[tuple[PlannedTurn, CampaignSpec]]]:
        """Yield the parts of the pilot: dialogues, each with the rules under which it runs."""
        if self._by_number:
            sample = _at_most(PILOT_TURNS, self._drawn)
            part = 0
            while self._share(part + 1) <= PILOT_SHARES[min(part, 1)]:
                yield [(planned, self._only(planned[0].id, part)) for planned in sample]
                part += 1
            return
        before = 0
        for part, share in enumerate(PILOT_DIALOGUES, 1):
            most = min(share * self._planned, part * PILOT_TURNS)
            sample = _at_most(most, self._drawn)
            if len(sample) > before:
                yield [(planned, self._rules) for planned in sample[before:]]
            before = len(sample)

    def add(self, results: Mapping[str, Sequence[TurnResult]]) -> Estimate:
        """Add the results of a part by dialogue. Return the estimate from all parts so far."""
        for name, turns in results.items():
            self._found.setdefault(name, []).append(turns)
        sizes = {dialogue.id: last + 1 for dialogue, last in self._drawn}
        sampled = [self._sampled(sizes[name], runs) for name, runs in self._found.items()]
        alone = sum(one.alone for one in sampled)
        # A turn has fewer variants than numbers if some of them are equal.
        variants = sum(one.made for one in sampled) / alone if alone else 1.0
        totals = [
            one.fixed + variants * sum(one.each) / len(one.each) if one.each else one.fixed
            for one in sampled
        ]
        scale = self._planned / sum(one.turns for one in sampled)
        calls = sum(totals) * scale
        among = _squared_error(sampled, totals)
        within, freedom = 0.0, len(sampled) - 1
        if self._by_number:
            count = len(sampled[0].each)
            if count > 1:
                freedom = len(sampled) * (count - 1)
                within = sum(count * _variance(one.each) for one in sampled)
                within *= max(1 - count / variants, 0) / count**2
            else:
                # One number of each dialogue says nothing about the others. Dialogues differ more.
                within = _squared_error(sampled, [float(one.each[0]) for one in sampled])
                within *= max(1 - 1 / variants, 0)
            within *= variants**2
        squared = scale * (scale - 1) * among + scale * within
        margin = t_quantile(freedom, 0.95) * math.sqrt(squared) if freedom > 0 else 0.0
        return Estimate(calls, calls - margin, calls + max(margin, self._unseen(scale)))

    def _unseen(self, scale: float) -> float:
        """Return how many contexts violations may need if the pilot has none (rule of three)."""
        every = (turn for runs in self._found.values() for turns in runs for turn in turns)
        outcomes = [one.outcome for turn in every for one in turn.variants]
        tested, settings = outcomes.count("held"), self._rules.settings
        if "violation" in outcomes or not tested:
            return 0.0
        parts = settings.variants / len(next(iter(self._found.values()))) if self._by_number else 1
        votes = self._rules.decider.votes if self._rules.decider.again else 1
        probed = settings.attack != "non-cumulative" and self._rules.relation.edits == "search"
        each = votes * (2 * probed + SHRINKING * settings.shrink)
        return 3 * (scale * parts - 1) * each

    def _share(self, numbers: int) -> float:
        """Return the share of a campaign's contexts for some variants of each turn."""
        rules = self._rules
        clean = rules.decider.votes if rules.decider.again else 1
        return (clean + numbers) / (clean + rules.settings.variants)

    def _only(self, dialogue: str, part: int) -> CampaignSpec:
        """Return the rules for the single variant of a dialogue's turns in a part of the pilot."""
        number = (self._places[dialogue][1] + part) % self._rules.settings.variants
        settings = replace(self._rules.settings, variant=number)
        return replace(self._rules, settings=settings, repeats=False)

    def _sampled(self, size: int, runs: Sequence[Sequence[TurnResult]]) -> _Sampled:
        """Return the numbers of contexts of a dialogue from the results of its runs."""
        if not self._by_number:
            return _Sampled(size, sum(_all_calls(turn) for turn in runs[0]))
        clean = sum(max(len(turn.clean_votes), 1) for turn in runs[0])
        made = self._made(self._rules, runs[0])
        name = runs[0][0].dialogue_id
        alone = [self._made(self._only(name, part), runs[0]) for part in range(len(runs))]
        each = tuple(
            sum(_all_calls(turn) for turn in turns) - clean - count
            for turns, count in zip(runs, alone, strict=True)
        )
        fixed = clean + made + self._repeated(runs)
        fixed += size * _conversations(self._rules.settings, self._rules.relation)
        return _Sampled(size, fixed, each, made, sum(alone) / len(alone))

    def _made(self, rules: CampaignSpec, turns: Sequence[TurnResult]) -> int:
        """Return the number of contexts that variants of a dialogue need without violations."""
        dialogue, _ = self._places[turns[0].dialogue_id]
        found = _without_violations(rules, dialogue, [turn.clean_state for turn in turns])
        return sum(turn.calls for turn in found) - len(found)

    def _repeated(self, runs: Sequence[Sequence[TurnResult]]) -> float:
        """Return the expected number of contexts that a dialogue requests again."""
        if not self._rules.repeats:
            return 0.0
        calls, left = 0.0, self._rules.settings.variants - len(runs)
        every = [one for turns in runs for turn in turns for one in turn.variants]
        tested = [one.outcome for one in every if one.outcome in ("held", "violation")]
        for of_turn in zip(*runs, strict=True):
            here = {one.outcome for turn in of_turn for one in turn.variants}
            if here.isdisjoint(("held", "violation")):
                continue
            alone = 1.0
            for outcome in ("held", "violation"):
                rest = 1 - tested.count(outcome) / len(tested)
                seen = 1.0 if outcome in here else 1 - rest**left
                turn = of_turn[0]
                seed = self._rules.settings.seed
                seen *= is_repeated(seed, turn.dialogue_id, turn.turn_index, outcome)
                calls, alone = calls + seen, alone * (1 - seen)
            calls += 1 - alone  # The clean turn is requested again at most once.
        return calls


def wants_pilot(
    rules: CampaignSpec, plan: Sequence[PlannedTurn], budget: Budget, spared: int
) -> bool:
    """Return whether a campaign needs a pilot: it is slow or paid, and the budget allows it.

    ``spared`` is the number of its contexts with a known answer.
    """
    expected = expected_calls(rules.settings, rules.relation, rules.decider, plan)
    seconds = (budget.seconds_each or 0.0) * (expected.least - spared)
    dear = seconds >= SLOW or budget.cost_each is not None
    return dear and PILOT_BUDGET * budget.guess() >= expected.least


def in_drawn_order(seed: int, plan: Iterable[PlannedTurn]) -> list[PlannedTurn]:
    """Return dialogues in the order of the draw. The first dialogues form a smaller sample."""
    return sorted(plan, key=lambda planned: rank_in_draw(seed, planned[0].id))


def first_variant(decider: Decider) -> int:
    """Return the number of contexts for a turn and its first variant.

    With a majority vote, a violation needs more contexts than a variant that holds. The result is
    the number for a violation. So a budget also suffices for turns with violations.
    """
    return 4 * decider.votes if decider.again else 2


def _conversations(settings: VariantSettings, relation: Relation) -> int:
    """Return the number of whole conversations with slips. See `CampaignSpec.conversations`."""
    if settings.attack != "cumulative" or relation.edits != "search":
        return 0
    if settings.search == NoiseSearch.name:
        return settings.variants
    return (settings.variants + 1) // 2 if settings.search.startswith(SAMPLED) else 0


def _independent(rules: CampaignSpec) -> bool:
    """Return whether a single variant of a turn can run without the variants before it."""
    settings = rules.settings
    if rules.learns or settings.stop_at_first or settings.variant is not None:
        return False
    if rules.relation.unit == "dialogue":
        return False
    numbers = range(settings.variants)
    return rules.own_edits or all(rules.search.context_variant(one) == one for one in numbers)


def _squared_error(sampled: Sequence[_Sampled], values: Sequence[float]) -> float:
    """Return the estimated variance of the sum of dialogues' values around their mean per turn."""
    count = len(sampled)
    if count < 2:
        return 0.0
    each = sum(values) / sum(one.turns for one in sampled)
    squares = ((value - each * one.turns) ** 2 for one, value in zip(sampled, values, strict=True))
    return sum(squares) * count / (count - 1)


def _variance(values: Sequence[int]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _all_calls(turn: TurnResult) -> int:
    return turn.calls + turn.minimiser_calls + turn.repeat_calls + turn.conversation_calls


def _tested(turn: TurnResult) -> int:
    """Return the number of tested variants of a turn."""
    return sum(one.outcome in ("held", "violation", "carried") for one in turn.variants)


def _turns(plan: Iterable[PlannedTurn]) -> int:
    return sum(last + 1 for _, last in plan)


def _at_most(turns: float, plan: Sequence[PlannedTurn]) -> Sequence[PlannedTurn]:
    """Return the first dialogues with at most this number of turns, but at least one dialogue."""
    sizes = accumulate(last + 1 for _, last in plan)
    return plan[: max(1, sum(size <= turns for size in sizes))]
