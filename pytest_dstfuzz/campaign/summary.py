"""The figures of a campaign: rates, the interval over dialogues, yields by domain and slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pytest_dstfuzz.campaign.deciding import Repeats, RepeatsTally
from pytest_dstfuzz.campaign.expected import (
    ExpectedFailures,
    ExpectedTally,
    FailingMass,
    MassTally,
)
from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.ledger import Counts, column, ratio
from pytest_dstfuzz.campaign.noise import Noise, NoiseTally
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, faults
from pytest_dstfuzz.campaign.sums import DialogueNumbers, DialogueSums, tallied
from pytest_dstfuzz.dialogue.calls import AnswerPath
from pytest_dstfuzz.json_data import to_json

__all__ = ["Summary", "summarise"]

#: The keys of the JSON report, in their order.
_KEYS: Final = (
    "turns generated vacuous duplicate vetoed over_rate valid held violations carried improved "
    "errors valid_rate failure_rate failure_rate_interval yield calls minimiser_calls "
    "turns_broken turns_tested dialogues_tested turn_failure_rate turn_failure_rate_interval "
    "clean_answered clean_empty clean_empty_share failure_rate_not_empty clean_labelled "
    "clean_right clean_accuracy noise repeats expected_failures failing_mass unstable malformed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Counts):
    """The figures that every report shows: counts and rates of variants, and those of turns."""

    #: Turns with a result, those that the budget left out apart.
    turns: int
    #: 95 % interval over dialogues; ``None`` with valid variants of fewer than
    #: `intervals.FEWEST_DIALOGUES`, as too few say too little about others, and where no valid
    #: variant was answered.
    failure_rate_interval: tuple[float, float] | None
    #: Contexts that the tracker was asked for.
    calls: int
    #: Those that it was asked for to make violations smaller; none of them is a call above.
    minimiser_calls: int
    #: Turns with at least one violation.
    turns_broken: int
    #: Turns with at least one valid variant, and dialogues with one: the intervals' units.
    turns_tested: int
    dialogues_tested: int
    #: Of the share of the tested turns that are broken, as that of the failure rate.
    turn_failure_rate_interval: tuple[float, float] | None
    #: Turns with an answer to the clean turn, and those whose answer is a state without a slot.
    clean_answered: int
    clean_empty: int
    #: Violations / valid, over the turns whose answer is not empty: most variants of the others
    #: have nothing that they could change. ``None`` where no valid variant was answered.
    failure_rate_not_empty: float | None
    #: Turns with a label, and those of them whose clean answer is the label. A turn at which the
    #: tracker failed is wrong, as in `trackers.evaluate`. Labels and answers went through the
    #: same normalisation before they came here.
    clean_labelled: int
    clean_right: int
    #: Answers that could not be read, as arguments that are no JSON; each was asked for again.
    malformed: int = 0
    #: Of a tracker that need not be repeatable; ``None`` where no clean turn was asked again.
    noise: Noise | None = None
    #: Of one that must be: what came of asking a few contexts again; ``None`` where none was.
    repeats: Repeats | None = None
    #: Of a search by density; ``None`` of any other, and in profiles without a noise model.
    expected_failures: ExpectedFailures | None = None
    #: Of searches without a density, under a noise model; ``None`` where there is none.
    failing_mass: FailingMass | None = None

    @property
    def turn_failure_rate(self) -> float | None:
        """Turns broken / turns tested; ``None`` where no variant of any was answered."""
        return ratio(self.turns_broken, self.turns_tested) if self.answered else None

    @property
    def malformed_share(self) -> float | None:
        """Malformed answers for each context asked and each malformed answer; ``None`` of none."""
        return ratio(self.malformed, self.malformed + self.calls)

    @property
    def clean_empty_share(self) -> float | None:
        """Share of the clean answers that are empty; ``None`` without an answer."""
        return ratio(self.clean_empty, self.clean_answered)

    @property
    def clean_accuracy(self) -> float | None:
        """Joint goal accuracy of the clean answers; ``None`` without a label."""
        return ratio(self.clean_right, self.clean_labelled)

    @property
    def broken_per_1000_calls(self) -> float | None:
        """Turns broken per 1,000 calls; ``None`` without a call."""
        return 1000 * self.turns_broken / self.calls if self.calls else None

    def to_json(self) -> dict[str, Any]:
        """Return the ``summary`` of the JSON report; floats keep their value."""
        names = {key: "yield_rate" if key == "yield" else key for key in _KEYS.split()}
        return {key: to_json(getattr(self, name)) for key, name in names.items()}


class SummaryTally:
    """Adds up the figures of results, one turn after the other."""

    def __init__(self, numbers: DialogueNumbers | None = None) -> None:
        self._counted: Counter[str] = Counter()
        #: Likewise of the variants of turns whose clean answer is not empty.
        self._telling: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        #: Violations, valid variants, turns broken and turns tested of each dialogue.
        self._dialogues = DialogueSums(4, numbers)
        self._noise, self._repeats = NoiseTally(), RepeatsTally()
        self._expected, self._mass = ExpectedTally(), MassTally()

    def add(self, turn: TurnResult) -> None:
        """Take in a turn."""
        counts = Counter(column(variant, credit=False) for variant in turn.variants)
        self._counted.update(counts)
        if turn.outcome != "skipped":
            self._turns["ran"] += 1
            if turn.clean_state is not None:
                self._turns["answered"] += 1
                self._turns["empty"] += not turn.clean_state
                if turn.clean_state:
                    self._telling.update(counts)
            if turn.label is not None:
                self._turns["labelled"] += 1
                self._turns["right"] += turn.is_right
        self._turns["calls"] += turn.calls
        self._turns["minimiser_calls"] += turn.minimiser_calls
        self._turns["malformed"] += turn.malformed
        of_turn = Counts(**counts)
        broken, tested = bool(turn.violations), turn.tested
        self._turns["broken"] += broken
        self._turns["tested"] += tested
        self._dialogues.add(turn.dialogue_id, of_turn.violations, of_turn.valid, broken, tested)
        for tally in (self._noise, self._repeats, self._expected, self._mass):
            tally.add(turn)

    @property
    def summary(self) -> Summary:
        """The figures of what was taken in."""
        turns = self._turns
        # Where the tracker failed on all variants, there is nothing that a rate could be of.
        rated = self._dialogues if Counts(**self._counted).answered else DialogueSums(4)
        return Summary(
            **self._counted,
            turns=turns["ran"],
            failure_rate_interval=ratio_interval(rated.pairs(0, 1)),
            calls=turns["calls"],
            minimiser_calls=turns["minimiser_calls"],
            malformed=turns["malformed"],
            turns_broken=turns["broken"],
            turns_tested=turns["tested"],
            dialogues_tested=sum(tested > 0 for (tested,) in self._dialogues.rows(3)),
            turn_failure_rate_interval=ratio_interval(rated.pairs(2, 3)),
            clean_answered=turns["answered"],
            clean_empty=turns["empty"],
            failure_rate_not_empty=Counts(**self._telling).failure_rate,
            clean_labelled=turns["labelled"],
            clean_right=turns["right"],
            noise=self._noise.noise,
            repeats=self._repeats.repeats,
            expected_failures=self._expected.expected,
            failing_mass=self._mass.mass,
        )


def summarise(results: Iterable[TurnResult]) -> Summary:
    """Return the figures of ``results``; their order does not matter."""
    return tallied(SummaryTally(), results).summary


class YieldsTally:
    """Counts variants by slot and by domain, one turn after the other.

    A variant is counted for each slot that is at stake: one that the clean prediction
    holds or that the variant changed. A violation is one of the slots that it changed
    anew; for the others at stake the variant counts as held (as carried, where the
    change was carried, and as improved, if the slot became right). An argument of a tool is one
    slot, whichever call it is of.

    A domain is the part of a slot before its first dash; slots without a dash have none and are
    left out. Of tool calls it is the tool.
    """

    def __init__(self) -> None:
        self._slots: dict[str, Counter[str]] = {}
        self._domains: dict[str, Counter[str]] = {}

    def add(self, turn: TurnResult) -> None:
        """Take in the variants of a turn."""
        for variant in turn.variants:
            for rows, group in ((self._slots, _slot), (self._domains, _domain)):
                for name, field in _at_stake(turn, variant, group).items():
                    rows.setdefault(name, Counter())[field] += 1

    @property
    def slots(self) -> dict[str, Counts]:
        """Counts by slot, sorted by slot."""
        return {name: Counts(**row) for name, row in sorted(self._slots.items())}

    @property
    def domains(self) -> dict[str, Counts]:
        """Counts by domain, sorted by domain."""
        return {name: Counts(**row) for name, row in sorted(self._domains.items())}


#: The outcomes of a slot of a violation, the strongest last.
_STRENGTH: Final = ("carried", "improved", "violations")


def _slot(path: str) -> str:
    return AnswerPath.of(path).part[1]


def _domain(path: str) -> str | None:
    return AnswerPath.of(path).part[0] or None


def _at_stake(
    turn: TurnResult, variant: VariantResult, group: Callable[[str], str | None]
) -> dict[str, str]:
    """Return group -> field of `Counts` for the groups of slots that a variant puts at stake."""
    # For a group the strongest of what happened to its slots counts.
    found = {group(slot): "held" for slot in turn.clean_state or ()}
    about = faults(variant.changed_slots)
    kinds = {
        change: "carried" if change.carried else "violations" if change in about else "improved"
        for change in variant.changed_slots
    }
    for change in sorted(kinds, key=lambda one: _STRENGTH.index(kinds[one])):
        found[group(change.slot)] = kinds[change]
    if variant.outcome not in ("violation", "carried"):
        found = dict.fromkeys(found, column(variant, credit=False))
    return {name: field for name, field in found.items() if name is not None}
