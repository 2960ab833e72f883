"""The figures of a campaign: rates, the interval over dialogues, yields by domain and slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pytest_dstfuzz.campaign.expected import (
    ExpectedFailures,
    FailingMass,
    expected_failures,
    failing_mass,
)
from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.ledger import Counts, column, count, ratio
from pytest_dstfuzz.campaign.noise import Noise, noise_of
from pytest_dstfuzz.campaign.repeats import Repeats, repeats_of
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.dialogue.calls import part_of
from pytest_dstfuzz.json_data import to_json

#: The keys of the JSON report, in their order.
_KEYS: Final = (
    "turns generated vacuous duplicate vetoed over_rate valid held violations carried improved "
    "errors valid_rate failure_rate failure_rate_interval yield calls minimiser_calls "
    "turns_broken turns_tested dialogues_tested turn_failure_rate turn_failure_rate_interval "
    "clean_answered clean_empty clean_empty_share failure_rate_not_empty clean_labelled "
    "clean_right clean_accuracy noise repeats expected_failures failing_mass unstable"
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


def summarise(results: Iterable[TurnResult]) -> Summary:
    """Return the figures of ``results``; their order does not matter."""
    turns = list(results)
    counted = Counter(column(variant, credit=False) for turn in turns for variant in turn.variants)
    ran = [turn for turn in turns if turn.outcome != "skipped"]
    known = [turn for turn in ran if turn.clean_state is not None]
    labelled = [turn for turn in ran if turn.label is not None]
    telling = count(variant for turn in known if turn.clean_state for variant in turn.variants)
    # Where the tracker failed on all variants, there is nothing that a rate could be of.
    rated = turns if Counts(**counted).answered else []
    counts = [(turn, count(turn.variants)) for turn in rated]
    return Summary(
        **counted,
        turns=len(ran),
        failure_rate_interval=_interval((turn, n.violations, n.valid) for turn, n in counts),
        calls=sum(turn.calls for turn in turns),
        minimiser_calls=sum(turn.minimiser_calls for turn in turns),
        turns_broken=sum(bool(turn.violations) for turn in turns),
        turns_tested=sum(turn.tested for turn in turns),
        dialogues_tested=len({turn.dialogue_id for turn in turns if turn.tested}),
        turn_failure_rate_interval=_interval((t, bool(t.violations), t.tested) for t in rated),
        clean_answered=len(known),
        clean_empty=sum(not turn.clean_state for turn in known),
        failure_rate_not_empty=telling.failure_rate,
        clean_labelled=len(labelled),
        clean_right=sum(turn.is_right for turn in labelled),
        noise=noise_of(turns),
        repeats=repeats_of(turns),
        expected_failures=expected_failures(turns),
        failing_mass=failing_mass(turns),
    )


def _interval(parts: Iterable[tuple[TurnResult, int, int]]) -> tuple[float, float] | None:
    """Return the interval of a ratio, of the numerator and denominator of each turn.

    Dialogues are its units: the variants of one are not independent.
    """
    sums: dict[str, tuple[int, int]] = {}
    for turn, part, whole in parts:
        earlier = sums.get(turn.dialogue_id, (0, 0))
        sums[turn.dialogue_id] = earlier[0] + part, earlier[1] + whole
    return ratio_interval(list(sums.values()))


def yields_by_slot(results: Iterable[TurnResult]) -> dict[str, Counts]:
    """Return counts by slot, sorted by slot.

    A variant is counted for each slot that is at stake: one that the clean prediction
    holds or that the variant changed. A violation is one of the slots that it changed
    anew; for the others at stake the variant counts as held (as carried, where the
    change was carried). An argument of a tool is one slot, whichever call it is of.
    """
    return _yields(results, lambda path: part_of(path)[1])


def yields_by_domain(results: Iterable[TurnResult]) -> dict[str, Counts]:
    """Return counts by domain, the part of a slot before its first dash; see `yields_by_slot`.

    Slots without a dash have no domain and are left out. Of tool calls it is the tool.
    """
    return _yields(results, lambda path: part_of(path)[0] or None)


def _yields(results: Iterable[TurnResult], group: Callable[[str], str | None]) -> dict[str, Counts]:
    rows: dict[str, Counter[str]] = {}
    for turn in results:
        for variant in turn.variants:
            for name, field in _at_stake(turn, variant, group).items():
                rows.setdefault(name, Counter())[field] += 1
    return {name: Counts(**row) for name, row in sorted(rows.items())}


def _at_stake(
    turn: TurnResult, variant: VariantResult, group: Callable[[str], str | None]
) -> dict[str, str]:
    """Return group -> field of `Counts` for the groups of slots that a variant puts at stake."""
    # For a group the strongest of what happened to its slots counts.
    found = {group(slot): "held" for slot in turn.clean_state or ()}
    for change in sorted(variant.changed_slots, key=lambda change: not change.carried):
        found[group(change.slot)] = "carried" if change.carried else "violations"
    if variant.outcome not in ("violation", "carried"):
        found = dict.fromkeys(found, column(variant, credit=False))
    return {name: field for name, field in found.items() if name is not None}
