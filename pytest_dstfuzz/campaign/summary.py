"""The figures of a campaign: rates, the interval over dialogues, yields by domain and slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.ledger import Counts, column, count
from pytest_dstfuzz.campaign.noise import Noise, noise_of
from pytest_dstfuzz.campaign.repeats import Repeats, repeats_of
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.json_data import to_json


class CleanAnswers(NamedTuple):
    """The clean answers of a campaign."""

    #: Turns with an answer, and those whose answer is a state without a slot.
    answered: int
    empty: int
    #: Turns with a label, and those of them whose answer is the label. A turn at which the
    #: tracker failed is wrong, as in `trackers.evaluate`.
    labelled: int
    right: int
    #: Violations / valid, over the turns whose answer is not empty: most variants of the others
    #: have nothing that they could change. ``None`` without a valid variant.
    failure_rate: float | None

    @property
    def empty_share(self) -> float | None:
        """Share of the answers that are empty; ``None`` without an answer."""
        return self.empty / self.answered if self.answered else None

    @property
    def accuracy(self) -> float | None:
        """Joint goal accuracy of the answers; ``None`` without a label."""
        return self.right / self.labelled if self.labelled else None


def clean_answers(results: Iterable[TurnResult]) -> CleanAnswers:
    """Count the clean answers of a campaign, those of turns that it did not come to left out.

    Labels and answers went through the same normalisation before they came here.
    """
    turns = [turn for turn in results if turn.outcome != "skipped"]
    known = [turn for turn in turns if turn.clean_state is not None]
    labelled = [turn for turn in turns if turn.label is not None]
    telling = count(variant for turn in known if turn.clean_state for variant in turn.variants)
    return CleanAnswers(
        answered=len(known),
        empty=sum(not turn.clean_state for turn in known),
        labelled=len(labelled),
        right=sum(turn.clean_state == turn.label for turn in labelled),
        failure_rate=telling.failure_rate,
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures that every report shows; the fields are the keys of the JSON report."""

    #: Turns with a result, those that the budget left out apart.
    turns: int
    generated: int
    vacuous: int
    duplicate: int
    vetoed: int
    over_rate: int
    valid: int
    held: int
    violations: int
    carried: int
    improved: int
    errors: int
    #: Valid / generated; ``None`` when nothing was generated.
    valid_rate: float | None
    #: Violations / valid; ``None`` without a valid variant.
    failure_rate: float | None
    #: 95 % interval over dialogues; ``None`` with valid variants of fewer than
    #: `intervals.FEWEST_DIALOGUES`, as too few say too little about others.
    failure_rate_interval: tuple[float, float] | None
    #: Violations / generated (``yield`` in JSON).
    yield_rate: float | None
    #: Contexts that the tracker was asked for.
    calls: int
    #: Those that it was asked for to make violations smaller; none of them is a call above.
    minimiser_calls: int
    #: Turns with at least one violation.
    turns_broken: int
    #: Turns with at least one valid variant, and dialogues with one: the intervals' units.
    turns_tested: int
    dialogues_tested: int
    #: Turns broken / turns tested; ``None`` without any that was tested.
    turn_failure_rate: float | None
    #: Its interval, as that of the failure rate.
    turn_failure_rate_interval: tuple[float, float] | None
    #: Turns with an answer to the clean turn, those whose answer is empty, and their share.
    clean_answered: int
    clean_empty: int
    clean_empty_share: float | None
    #: Failure rate over the turns whose clean answer is not empty.
    failure_rate_not_empty: float | None
    #: Turns with a label, those whose clean answer is the label, and their share: joint goal
    #: accuracy, ``None`` without labels.
    clean_labelled: int
    clean_right: int
    clean_accuracy: float | None
    #: Of a tracker that need not be repeatable; ``None`` where no clean turn was asked again.
    noise: Noise | None = None
    #: Of one that must be: what came of asking a few contexts again; ``None`` where none was.
    repeats: Repeats | None = None

    @property
    def broken_per_1000_calls(self) -> float | None:
        """Turns broken per 1,000 calls; ``None`` without a call."""
        return 1000 * self.turns_broken / self.calls if self.calls else None

    def to_json(self) -> dict[str, Any]:
        """Return the ``summary`` of the JSON report; floats keep their value."""
        plain: dict[str, Any] = to_json(self)
        return {("yield" if name == "yield_rate" else name): plain[name] for name in plain}


def summarise(results: Iterable[TurnResult]) -> Summary:
    """Return the figures of ``results``; their order does not matter."""
    turns = list(results)
    counts = count(variant for turn in turns for variant in turn.variants)
    tested = sum(turn.tested for turn in turns)
    dialogues = {turn.dialogue_id for turn in turns if turn.tested}
    broken = sum(bool(turn.violations) for turn in turns)
    clean = clean_answers(turns)
    return Summary(
        turns=sum(turn.outcome != "skipped" for turn in turns),
        generated=counts.generated,
        vacuous=counts.vacuous,
        duplicate=counts.duplicate,
        vetoed=counts.vetoed,
        over_rate=counts.over_rate,
        valid=counts.valid,
        held=counts.held,
        violations=counts.violations,
        carried=counts.carried,
        improved=counts.improved,
        errors=counts.errors,
        valid_rate=counts.valid_rate,
        failure_rate=counts.failure_rate,
        failure_rate_interval=failure_rate_interval(turns),
        yield_rate=counts.yield_rate,
        calls=sum(turn.calls for turn in turns),
        minimiser_calls=sum(turn.minimiser_calls for turn in turns),
        turns_broken=broken,
        turns_tested=tested,
        dialogues_tested=len(dialogues),
        turn_failure_rate=broken / tested if tested else None,
        turn_failure_rate_interval=turn_failure_rate_interval(turns),
        clean_answered=clean.answered,
        clean_empty=clean.empty,
        clean_empty_share=clean.empty_share,
        failure_rate_not_empty=clean.failure_rate,
        clean_labelled=clean.labelled,
        clean_right=clean.right,
        clean_accuracy=clean.accuracy,
        noise=noise_of(turns),
        repeats=repeats_of(turns),
    )


def failure_rate_interval(
    results: Iterable[TurnResult], level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of the failure rate, or ``None``; see `intervals.ratio_interval`.

    Dialogues are its units: the variants of one are not independent.
    """
    by_dialogue: dict[str, Counts] = {}
    for turn in results:
        counts = count(turn.variants)
        by_dialogue[turn.dialogue_id] = by_dialogue.get(turn.dialogue_id, Counts()) + counts
    parts = [(counts.violations, counts.valid) for counts in by_dialogue.values()]
    return ratio_interval(parts, level)


def turn_failure_rate_interval(
    results: Iterable[TurnResult], level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of the share of the tested turns that are broken, or ``None``.

    As `failure_rate_interval`, with turns in the place of variants.
    """
    by_dialogue: dict[str, tuple[int, int]] = {}
    for turn in results:
        broken, tested = by_dialogue.get(turn.dialogue_id, (0, 0))
        by_dialogue[turn.dialogue_id] = (broken + bool(turn.violations), tested + turn.tested)
    return ratio_interval(list(by_dialogue.values()), level)


def yields_by_slot(results: Iterable[TurnResult]) -> dict[str, Counts]:
    """Return counts by slot, sorted by slot.

    A variant is counted for each slot that is at stake: one that the clean prediction
    holds or that the variant changed. A violation is one of the slots that it changed
    anew; for the others at stake the variant counts as held (as carried, where the
    change was carried).
    """
    return _yields(results, lambda slot: slot)


def yields_by_domain(results: Iterable[TurnResult]) -> dict[str, Counts]:
    """Return counts by domain, the part of a slot before its first dash; see `yields_by_slot`.

    Slots without a dash have no domain and are left out.
    """
    return _yields(results, lambda slot: slot.partition("-")[0] if "-" in slot else None)


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
