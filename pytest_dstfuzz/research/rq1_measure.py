"""The measurements behind `rq1`: which dialogues, which campaigns, which figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_dstfuzz.campaign.campaign import Campaign, predictor_for
from pytest_dstfuzz.campaign.events import Event, TurnDone
from pytest_dstfuzz.campaign.intervals import ratio_interval
from pytest_dstfuzz.campaign.ledger import Counts, count
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import summarise
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.sampling import sample_turns
from pytest_dstfuzz.perturb.action import ActionSpace, inertia, uniform_inertia
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.types import Action
from pytest_dstfuzz.research.recording import Recording
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.evaluate import Evaluation
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Tracker
from pytest_dstfuzz.training.right_dialogues import Paced, Say, right_dialogues

#: A rate and its 95 % interval over dialogues; ``None`` where nothing was counted.
Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Rq1Config:
    """What to measure."""

    model: str
    data: str = "sample"
    splits: tuple[str, ...] = ("val", "test")
    checkpoint: str | None = None
    device: str = "cpu"
    batch_size: int = 64
    #: Settings of a tracker that is a service; see `config.ADAPTER`.
    adapter: Mapping[str, Any] = field(default_factory=dict)
    search: str = "random"
    attack: str = "hybrid"
    validities: tuple[str, ...] = ("edit-rate", "strict")
    max_edit_rate: float = 0.25
    flat_edit_rate: bool = False
    variants: int = 5
    ks: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    seed: int = 0
    #: Of the dialogues that are right throughout, draw so many by seed; ``None`` = all.
    max_dialogues: int | None = None
    #: The command line, for the table's header.
    command: str = ""


@dataclass(frozen=True, slots=True)
class Rq1Row:
    """One profile and one k."""

    validity: str
    k: int
    turns: int
    counts: Counts
    calls: int
    turns_broken: int
    valid_interval: Interval
    failure_interval: Interval
    #: Of the thesis' way of counting, `Counts.thesis_failure_rate`.
    thesis_interval: Interval
    yield_interval: Interval
    inertia: float
    #: `inertia` as a share of D/12, that of uniform sampling.
    inertia_share: float

    @property
    def broken_per_1000_calls(self) -> float | None:
        """Turns broken per 1,000 calls."""
        return 1000 * self.turns_broken / self.calls if self.calls else None


@dataclass(frozen=True, slots=True)
class Rq1Table:
    """The whole table, and what it was measured on."""

    config: Rq1Config
    evaluations: tuple[Evaluation, ...]
    layouts: tuple[str, ...]
    normalisation: str
    #: Dialogues and turns that were perturbed.
    dialogues: int
    turns: int
    dimension: int
    rows: tuple[Rq1Row, ...]


def run_rq1(config: Rq1Config, say: Say, tracker: Tracker | None = None) -> Rq1Table:
    """Measure the table.

    Args:
        config: what to measure.
        say: told about progress.
        tracker: the tracker, where it is there already; made from ``config`` otherwise.

    Raises:
        UserError: data or tracker will not do, or no dialogue is right throughout.
        TrackerError: the tracker failed while its accuracy was measured.
    """
    splits = [load_dialogues(config.data, split) for split in config.splits]
    if tracker is None:
        tracker = tracker_for(_settings(config), splits[0])
    right = right_dialogues(tracker, splits, config.batch_size, say)
    data = _drawn(right.data, config)
    say(f"{len(data.dialogues)} dialogues, {data.turn_count()} turns to perturb")
    rows = []
    for validity in config.validities:
        for k in config.ks:
            row = _row(config, data, tracker, validity, k, say)
            rows.append(row)
            say(_row_line(row))
    return Rq1Table(
        config=config,
        evaluations=right.evaluations,
        layouts=tuple(part.layout for part in splits),
        normalisation=data.normalisation,
        dialogues=len(data.dialogues),
        turns=data.turn_count(),
        dimension=ActionSpace().dimension,
        rows=tuple(rows),
    )


def _drawn(data: DialogueSet, config: Rq1Config) -> DialogueSet:
    """Draw dialogues by seed, where there are to be fewer."""
    if config.max_dialogues is None:
        return data
    drawn = stream(config.seed, "rq1", "dialogues").permutation(len(data.dialogues))
    chosen = sorted(drawn[: config.max_dialogues].tolist())
    return replace(data, dialogues=tuple(data.dialogues[place] for place in chosen))


def _settings(config: Rq1Config, **given: Any) -> Settings:
    return Settings(
        model=config.model,
        checkpoint=config.checkpoint,
        device=config.device,
        batch_size=config.batch_size,
        turns=None,
        variants=config.variants,
        # As in the thesis each variant is drawn once: the valid rate is one of the figures.
        redraws=0,
        search=config.search,
        attack=config.attack,
        max_edit_rate=config.max_edit_rate,
        flat_edit_rate=config.flat_edit_rate,
        seed=config.seed,
        minimise=False,
        **config.adapter,
        **given,
    )


def _row(
    config: Rq1Config, data: DialogueSet, tracker: Tracker, validity: str, k: int, say: Say
) -> Rq1Row:
    settings = _settings(config, validity=validity, transformations=k)
    tell, done = Paced(say), 0

    def listen(event: Event) -> None:
        nonlocal done
        if isinstance(event, TurnDone):
            done += 1
            tell(f"{validity}, k = {k}: {done} of {data.turn_count()} turns")

    plan = sample_turns(data, None, config.seed)
    # A predictor of its own for every row: the clean contexts are calls of each search.
    predictor = predictor_for(settings, data, tracker)
    search = Recording(search_by_name(config.search, seed=config.seed, k=k))
    campaign = Campaign(
        settings, data, predictor, load_lexicon(), plan=plan, listener=listen, search=search
    )
    results = list(campaign.run())
    predictor.refuse_if_given_up()
    return measure(settings, results, search.actions)


def measure(settings: Settings, results: Sequence[TurnResult], actions: Sequence[Action]) -> Rq1Row:
    """Return the figures of one campaign and of the actions that its search took."""
    summary = summarise(results)
    total = Counts()
    by_dialogue: dict[str, Counts] = {}
    for result in results:
        counts = count(result.variants)
        total += counts
        by_dialogue[result.dialogue_id] = by_dialogue.get(result.dialogue_id, Counts()) + counts
    units = list(by_dialogue.values())

    def interval(part: Callable[[Counts], int], whole: Callable[[Counts], int]) -> Interval:
        return ratio_interval([(part(unit), whole(unit)) for unit in units])

    spread = inertia(actions)
    return Rq1Row(
        validity=settings.validity,
        k=settings.transformations,
        turns=summary.turns,
        counts=total,
        calls=summary.calls,
        turns_broken=summary.turns_broken,
        valid_interval=interval(_valid, _generated),
        failure_interval=summary.failure_rate_interval,
        thesis_interval=interval(lambda unit: unit.violations + unit.carried, _valid),
        yield_interval=interval(lambda unit: unit.violations, _generated),
        inertia=spread,
        inertia_share=spread / uniform_inertia(ActionSpace().dimension),
    )


def _valid(counts: Counts) -> int:
    return counts.valid


def _generated(counts: Counts) -> int:
    return counts.generated


def _row_line(row: Rq1Row) -> str:
    rates = (row.counts.valid_rate, row.counts.failure_rate, row.counts.thesis_failure_rate)
    valid, failure, thesis = ("n/a" if rate is None else f"{rate:.2%}" for rate in rates)
    return (
        f"{row.validity}, k = {row.k}: valid rate {valid}, failure rate {failure} "
        f"(counted the thesis' way {thesis})"
    )
