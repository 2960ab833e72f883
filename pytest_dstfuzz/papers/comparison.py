"""Runs and compares several searches on the same dialogues and tracker."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz import __version__, load_dialogues
from pytest_dstfuzz.agents.training.environment import (
    PacedOutput,
    RightDialogues,
    Say,
    hold_out,
    join_splits,
    right_dialogues,
)
from pytest_dstfuzz.campaign.attempts import lock_values
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.figures import Counts, count
from pytest_dstfuzz.campaign.results import Event, TurnDone, TurnResult, VariantResult
from pytest_dstfuzz.config import PROFILES, Settings, VariantSettings, names_of, settings_json
from pytest_dstfuzz.config.parsers import percent
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.files import digest_of, write_text
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.papers.formatting import (
    Columns,
    Rate,
    Resamples,
    Tally,
    csv_number,
    rate_columns,
)
from pytest_dstfuzz.perturb.engine import ActionSpace, Perturber, inertia
from pytest_dstfuzz.perturb.words import Action, Edit
from pytest_dstfuzz.printable import format_count
from pytest_dstfuzz.search.protocol import (
    Feedback,
    Lesson,
    Proposal,
    Search,
    SearchTask,
    TrainingRecord,
    TurnSearch,
)
from pytest_dstfuzz.search.registry import find_training, search_by_name
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.evaluate import Evaluation
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.weaknesses.groups import read


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation that a campaign found."""

    cause: str | None  #: ``turn``, ``context`` or ``both``.
    #: Newly changed slots with their new values, sorted.
    weakness: tuple[tuple[str, str | None], ...]
    vetoed: bool  #: Whether the profile `strict` vetoes its own edits.
    vetoed_context: bool  #: Whether it vetoes these, or edits of an earlier turn in the context.
    number: int  #: Number of the variant in its turn, from 1.
    key: str  #: Id of its weakness.
    slot: str  #: The slot with the most informative change.
    mass: float  #: Probability that people type the turn like this; 0 if its context is the cause.
    #: ``TRANSFORMATION/OPERATOR`` of the edits in its smallest version, sorted, without duplicates.
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """The results of one turn."""

    dialogue: str
    turn: int
    calls: int  #: Number of contexts sent to the tracker.
    #: Calls after the first 0, 1, 2, ... variants: the calls of a campaign with fewer variants.
    calls_after: tuple[int, ...]
    #: Number of variants until the first violation. ``None`` without violations.
    broken_after: int | None
    counts: Counts
    draws: int  #: Draws of its variants, including redraws.
    edit_w: float  #: Sums of the edit rates of the valid variants.
    edit_c: float
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class CampaignFigures:
    """The results of one campaign. `json_data` converts them to JSON."""

    turns: tuple[TurnFigures, ...]
    inertia: float  #: Inertia of the actions of all draws, see `engine.inertia`.
    seconds: float  #: Duration.

    @property
    def calls(self) -> int:
        """Number of contexts sent to the tracker."""
        return sum(turn.calls for turn in self.turns)

    @property
    def turns_broken(self) -> int:
        """Number of turns with a violation."""
        return sum(bool(turn.violations) for turn in self.turns)


class StrictVeto:
    """Finds variants that the profile `strict` would veto, in campaigns with other ``settings``."""

    def __init__(self, settings: VariantSettings, data: DialogueSet) -> None:
        strict = replace(settings, validity="strict")
        self._perturber = Perturber.of(strict, data, load_lexicon())
        self._data = data
        self._dialogues: dict[str, Dialogue] = {item.id: item for item in data.dialogues}

    def vetoes(self, result: TurnResult, text: str, edits: Sequence[Edit]) -> bool:
        """Return whether the profile `strict` would veto the edits of a variant."""
        turn = self._dialogues[result.dialogue_id].turns[result.turn_index]
        # A turn only has violations if the tracker answered its clean context.
        assert result.clean_state is not None  # noqa: S101
        values = lock_values(self._data, turn, Prediction(result.clean_state))
        source = self._perturber.prepare(turn.user, values, turn.system)
        return self._perturber.check(source, text, edits)[0] == "vetoed"


def calls_after(result: TurnResult, users: Sequence[str]) -> tuple[int, ...]:
    """Count the contexts that a turn needs if it ends after 0, 1, 2, ... variants.

    A variant never depends on later ones, so these are the calls of campaigns with fewer variants.
    The turn must be complete. The numbers agree with `TurnResult.calls`, unless the tracker's
    answers vary and requests are repeated. ``users`` are the clean utterances of earlier turns.
    """
    clean = tuple(users)
    asked = {(clean, result.user)}
    counted = [len(asked)]
    for variant in result.variants:
        if variant.valid:
            asked.add((variant.context, variant.text))
        if variant.outcome == "violation" and variant.context_edits:
            # The second passes that find the cause.
            asked.update({(clean, variant.text), (variant.context, result.user)})
        counted.append(len(asked))
    return tuple(counted)


def turn_figures(
    result: TurnResult, earlier: Mapping[int, TurnResult], veto: StrictVeto | None
) -> TurnFigures:
    """Return the results of a turn. ``veto`` is ``None`` if the campaign was strict."""

    def violation(number: int, variant: VariantResult) -> Violation:
        own = around = False
        if veto is not None:
            own = veto.vetoes(result, variant.text, variant.edits)
            around = any(
                veto.vetoes(earlier[past.turn_index], variant.context[past.turn_index], past.edits)
                for past in variant.context_edits
            )
        new = [change for change in variant.changed_slots if change.is_fault]
        weakness = tuple((change.slot, change.after) for change in new)
        reading = read(result, variant)
        return Violation(
            cause=variant.cause,
            weakness=weakness,
            vetoed=own,
            vetoed_context=own or around,
            number=number,
            key=reading.key.id,
            slot=reading.slot,
            mass=_chance(variant),
            operators=_operators(variant),
        )

    valid = [variant for variant in result.variants if variant.valid]
    outcomes = [variant.outcome for variant in result.variants]
    users = [earlier[index].user for index in range(result.turn_index)]
    return TurnFigures(
        dialogue=result.dialogue_id,
        turn=result.turn_index,
        calls=result.calls,
        calls_after=calls_after(result, users),
        broken_after=outcomes.index("violation") + 1 if "violation" in outcomes else None,
        counts=count(result.variants),
        draws=sum(variant.draws for variant in result.variants),
        edit_w=sum(variant.edit_w for variant in valid),
        edit_c=sum(variant.edit_c for variant in valid),
        violations=tuple(
            violation(number, variant)
            for number, variant in enumerate(result.variants, start=1)
            if variant.outcome == "violation"
        ),
    )


def _chance(variant: VariantResult) -> float:
    """Return the probability that people type the turn as in the variant.

    The probability is 0 if the violation comes from the context.
    """
    if variant.log_probability is None or (variant.context_edits and variant.cause != "turn"):
        return 0.0
    return math.exp(variant.log_probability)


def _operators(variant: VariantResult) -> tuple[str, ...]:
    plain = variant.plain
    edits = [*plain.edits, *(edit for past in plain.context_edits for edit in past.edits)]
    return tuple(sorted({f"{edit.transformation}/{edit.operator}" for edit in edits}))


def all_turn_figures(
    results: Sequence[TurnResult], veto: StrictVeto | None
) -> tuple[TurnFigures, ...]:
    """Return the results of all turns of a campaign, as `turn_figures` computes them."""
    dialogues: dict[str, dict[int, TurnResult]] = {}
    for result in results:
        dialogues.setdefault(result.dialogue_id, {})[result.turn_index] = result
    return tuple(turn_figures(result, dialogues[result.dialogue_id], veto) for result in results)


AGENT: Final = "agent"
_SPACE: Final = ActionSpace()


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of a comparison: a search, possibly with several policies from several trainings."""

    label: str
    searches: tuple[str, ...]  #: In the form of the option ``search``.
    associates: bool = True  #: See `Search.associates`.

    def ks(self, ks: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of transformations to try.

        One is enough for a search that ignores k.
        """
        return tuple(ks if self.associates else ks[:1])

    def runs(self, seeds: Sequence[int]) -> list[tuple[str, int]]:
        """Return the search and the seed of each run.

        Every search and seed occurs at least once.
        """
        runs = zip(cycle(self.searches), cycle(seeds))
        return list(islice(runs, max(len(self.searches), len(seeds))))


def parse_contenders(text: str) -> tuple[Contender, ...]:
    """Read ``[LABEL=]SEARCH,...``. Searches with the same label become one row.

    The default label is the name of the search: in ``agent:PATH,agent:PATH`` both have the label
    ``agent``. Each search is built once, so that errors show before the run.
    """
    found: dict[str, list[str]] = {}
    associate: dict[str, bool] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        label, equals, search = part.rpartition("=")
        made = search_by_name(search, seed=0, k=1)
        name = label if equals else search.partition(":")[0]
        found.setdefault(name, []).append(search)
        associate[name] = associate.get(name, False) or made.associates
    if not found:
        raise ValueError("must name at least one search")
    return tuple(
        Contender(label, tuple(searches), associate[label]) for label, searches in found.items()
    )


def subject_of(contenders: Sequence[Contender]) -> Contender:
    """Return the reference search: the agent, or else the last search."""
    return next((item for item in contenders if item.label == AGENT), contenders[-1])


def _of_violations(holds: Callable[[Violation], bool]) -> Callable[[TurnFigures], _Pair]:
    return lambda turn: (sum(map(holds, turn.violations)), len(turn.violations))


_Pair = tuple[float, float]
#: Lines for the tables that explain their rates.
RATE_NOTES: Final = (
    "- failure rate: violations / valid variants; yield: violations / all variants",
    (
        "- failure rate (thesis): (violations + carried) / valid variants; a variant is carried if "
        "its changes come only from a violation in an earlier turn"
    ),
)
#: Name of a rate -> function that returns (part, whole) of a turn.
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
    "cause_turn": _of_violations(lambda item: item.cause == "turn"),
    "cause_context": _of_violations(lambda item: item.cause == "context"),
    "cause_both": _of_violations(lambda item: item.cause == "both"),
    "strict_vetoes": _of_violations(lambda item: item.vetoed),
    "strict_vetoes_with_context": _of_violations(lambda item: item.vetoed_context),
}


def tallies(runs: Sequence[CampaignFigures], pair: Callable[[TurnFigures], _Pair]) -> list[Tally]:
    """Return for each run the two parts of a rate, summed by dialogue."""
    found: list[Tally] = []
    for run in runs:
        sums: dict[str, _Pair] = {}
        for turn in run.turns:
            (part, whole), (more, of) = sums.get(turn.dialogue, (0.0, 0.0)), pair(turn)
            sums[turn.dialogue] = (part + more, whole + of)
        found.append(sums)
    return found


@dataclass(frozen=True, slots=True)
class MeanFigures:
    """The results of a search with one number of transformations: means over its runs."""

    runs: int  #: Number of campaigns.
    turns: int
    calls: float
    turns_broken: float
    inertia: float  #: Inertia of the actions of all draws.
    rates: Mapping[str, Rate]  #: See `RATES`.

    @classmethod
    def of(cls, resamples: Resamples, runs: Sequence[CampaignFigures]) -> MeanFigures:
        """Return the means over campaigns that ran on the same dialogues."""
        return cls(
            runs=len(runs),
            turns=len(runs[0].turns),
            calls=mean([run.calls for run in runs]),
            turns_broken=mean([run.turns_broken for run in runs]),
            inertia=mean([run.inertia for run in runs]),
            rates={name: resamples.rate(tallies(runs, pair)) for name, pair in RATES.items()},
        )

    @property
    def broken_per_1000_calls(self) -> Rate:
        """Turns broken per 1,000 calls."""
        return self.rates["broken_per_call"].scaled(1000)


#: Columns of a row whose ``means`` are `MeanFigures`.
COUNT_COLUMNS: Final[Columns] = {
    "turns": lambda row: row.means.turns,
    "calls": lambda row: csv_number(row.means.calls, 1),
    "turns_broken": lambda row: csv_number(row.means.turns_broken, 1),
    **rate_columns("broken_per_1000_calls", lambda row: row.means.broken_per_1000_calls),
}


def _rate_columns(rate: str) -> Columns:
    return rate_columns(rate, lambda row: row.means.rates[rate])


RATE_COLUMNS: Final[Columns] = {
    name: cell
    for rate in RATES
    if rate != "broken_per_call"
    for name, cell in _rate_columns(rate).items()
}


def inertia_share(inertia: float, k: int | None) -> float:
    """Divide an inertia by the inertia of uniform sampling with as many transformations.

    If ``k`` is ``None``, the search makes one edit per step.
    """
    return inertia / _SPACE.uniform_inertia(k or 1)


def mean(numbers: Sequence[float]) -> float:
    """Return the arithmetic mean of some numbers."""
    return sum(numbers) / len(numbers)


def list_broken_alone(
    resamples: Resamples, runs: Sequence[CampaignFigures], others: Sequence[CampaignFigures]
) -> Rate:
    """Return the share of turns that ``runs`` break and ``others`` do not.

    Each run is compared with one run of ``others``. If ``others`` has fewer runs, its runs are
    used again.
    """

    def alone(run: CampaignFigures, other: CampaignFigures) -> Tally:
        theirs = {_place(turn) for turn in other.turns if turn.violations}

        def pair(turn: TurnFigures) -> _Pair:
            broken = bool(turn.violations)
            return broken and _place(turn) not in theirs, broken

        return tallies([run], pair)[0]

    return resamples.rate([alone(run, other) for run, other in zip(runs, cycle(others))])


class Weaknesses(NamedTuple):
    """The variety of the found weaknesses. Numbers are means over runs."""

    number: float  #: Number of distinct sets of changed slots and new values.
    #: Share of the most frequent one among the violations. ``None`` without violations.
    most_frequent: float | None
    name: str  #: Name of the most frequent one in the first run.


def weaknesses_of(runs: Sequence[CampaignFigures]) -> Weaknesses:
    """Return how varied the violations of some runs are."""
    counted = [
        Counter(item.weakness for turn in run.turns for item in turn.violations) for run in runs
    ]
    shares = [max(found.values()) / found.total() for found in counted if found]
    # If several are equally frequent, take the first in alphabetical order.
    top = min(counted[0].items(), key=lambda item: (-item[1], str(item[0])), default=((), 0))[0]
    return Weaknesses(
        number=mean([*map(len, counted)]),
        most_frequent=mean(shares) if shares else None,
        name=", ".join(f"{slot} -> {after or 'none'}" for slot, after in top),
    )


def _place(turn: TurnFigures) -> tuple[str, int]:
    return turn.dialogue, turn.turn


class Against(NamedTuple):
    """The comparison of a search with the reference search (the subject)."""

    ratio: Rate  #: Turns broken per call: the subject's rate divided by this search's.
    alone: Rate  #: Share of the subject's broken turns that this search did not break.

    @classmethod
    def of(
        cls,
        resamples: Resamples,
        subject: Sequence[CampaignFigures],
        runs: Sequence[CampaignFigures],
    ) -> Against:
        """Compare the runs of a search with the runs of the subject."""
        pair = RATES["broken_per_call"]
        ratio = resamples.ratio(tallies(subject, pair), tallies(runs, pair))
        return cls(ratio, list_broken_alone(resamples, subject, runs))


_PACKAGE: Final = Path(__file__).parents[1]
#: Packages and modules that the results of a campaign depend on.
_CODE: Final = (
    *(
        "agents",
        "campaign",
        "dialogue",
        "kinds",
        "noise",
        "perturb",
        "relations",
        "resources",
        "search",
    ),
    *("models", "trackers", "weaknesses", "papers/comparison.py"),
)
#: Settings that are locations. Their contents are part of the key instead.
_PLACES: Final = {"search", *names_of("place")} - {"slot_map", "prompt", "device"}
#: Dialogue, turn, variant and draw of an action.
_Place = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class CampaignRunner:
    """Runs campaigns on the same dialogues and tracker."""

    tracker: Tracker
    data: DialogueSet
    #: Seconds between progress lines. ``None`` means the default.
    pace: float | None = None

    def run(
        self, settings: Settings, say: Say | None = None, name: str | None = None
    ) -> CampaignFigures:
        """Run a campaign over all dialogues, and report its progress to ``say`` under ``name``."""
        started, done, turns = time.monotonic(), 0, self.data.turn_count()
        tell = say and PacedOutput(say, self.pace)

        def listen(event: Event) -> None:
            nonlocal done
            done += isinstance(event, TurnDone)
            if tell and isinstance(event, TurnDone):
                tell(f"{name or title(settings.variant)}: {done} of {turns} turns")

        k = settings.variant.transformations
        # A new predictor, so that clean contexts count as calls of every search.
        predictor = predictor_for(settings, self.data, self.tracker)
        search = Recording(search_by_name(settings.variant.search, seed=settings.variant.seed, k=k))
        campaign = CampaignEngine(
            settings,
            self.data,
            predictor,
            load_lexicon(),
            plan=[(dialogue, len(dialogue.turns) - 1) for dialogue in self.data.dialogues],
            listener=listen,
            search=search,
        )
        results = list(campaign.run())
        predictor.refuse_if_given_up()
        locked = PROFILES[settings.variant.validity].locks
        veto = None if locked else StrictVeto(settings.variant, self.data)
        figures = all_turn_figures(results, veto)
        spread = inertia(ActionSpace(settings.variant.selection), search.actions)
        return CampaignFigures(figures, spread, time.monotonic() - started)


def title(settings: VariantSettings) -> str:
    """Return the name of a campaign in progress lines."""
    until = ", until broken" if settings.stop_at_first else ""
    return (
        f"{settings.validity}, {settings.search}, k = {settings.transformations}, "
        f"{format_count(settings.variants, 'variant')}{until}, seed {settings.seed}"
    )


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The common part of the keys of all campaigns in an experiment."""

    code: str  #: Digest of the code and shipped resources that affect results.
    #: Results of the tracker on the data. They identify trackers whose code is not accessible.
    tracker: tuple[tuple[str, int, int, int], ...]
    dialogues: str  #: Digest of the dialogues.
    checkpoint: str  #: Digest of the checkpoint.

    @classmethod
    def of(
        cls, data: DialogueSet, evaluations: Sequence[Evaluation], checkpoint: str | None
    ) -> Fingerprint:
        """Return the common part for a tracker and its dialogues."""
        code = [path for part in _CODE for path in _files(_PACKAGE / part)]
        return cls(
            code=digest_of(path for path in code if path.suffix not in (".pyc", ".md")),
            tracker=tuple(
                (item.split, item.turns, item.right, item.right_slots) for item in evaluations
            ),
            dialogues=hashlib.sha256(repr(data).encode("utf-8")).hexdigest(),
            checkpoint=digest_of(_files(Path(checkpoint))) if checkpoint else "",
        )

    def key(self, settings: Settings) -> dict[str, Any]:
        """Return the key, as JSON, for storing the result of a campaign."""
        search, given = settings.variant.search, settings_json(settings)
        policy = find_training(search)
        return {
            **{name: value for name, value in given.items() if name not in _PLACES},
            "search": search if policy is None else search.partition(":")[0],
            "policy": "" if policy is None else policy.fingerprint,
            "code": self.code,
            "tracker": [list(item) for item in self.tracker],
            "dialogues": self.dialogues,
            "checkpoint": self.checkpoint,
        }


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(item for item in path.rglob("*") if item.is_file())
    return [path] if path.is_file() else []


class Recording:
    """Wraps a search and records the actions of all its proposals."""

    def __init__(self, search: Search) -> None:
        self.name, self.order, self.adaptive = search.name, search.order, search.adaptive
        self.associates = search.associates
        self.by_density, self.waits = search.by_density, search.waits
        self.context_variant, self.samples = search.context_variant, search.samples
        self.lessons, self.learned = search.lessons, search.learned
        self._search = search
        # By place, so that a repeated turn is not counted twice.
        self._taken: dict[_Place, Action] = {}

    def learn(self, lessons: Sequence[Lesson]) -> Recording:
        """Return the search after learning from these results. It still records actions."""
        other = Recording(self._search.learn(lessons))
        other._taken = self._taken
        return other

    @property
    def actions(self) -> tuple[Action, ...]:
        """All drawn actions so far, including redraws, sorted by dialogue and turn."""
        return tuple(action for _, action in sorted(self._taken.items(), key=lambda item: item[0]))

    def turn(self, task: SearchTask) -> RecordingTurn:
        """Return an object that proposes and records the variants of one turn."""
        return RecordingTurn(
            self._search.turn(task), (task.dialogue.id, task.turn_index), self._taken
        )


@dataclass(frozen=True, slots=True)
class RecordingTurn:
    """Proposes the variants of one turn, and records their actions."""

    attempts: TurnSearch
    place: tuple[str, int]
    taken: dict[_Place, Action]

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return the proposal of the wrapped search, and record its action."""
        proposal = self.attempts.propose(number, draw, seen)
        self.taken[(*self.place, number, draw)] = proposal.action
        return proposal


#: Folder of the finished campaigns, inside the output folder.
FOLDER: Final = "campaigns"


class Campaigns:
    """Runs campaigns in several processes and stores their results in the output folder.

    Each process loads the dialogues again from their splits.
    """

    def __init__(
        self,
        bench: CampaignRunner,
        fingerprint: Fingerprint,
        *,
        splits: Sequence[str],
        folder: Path | None,
        jobs: int,
        say: Say,
    ) -> None:
        self._bench = bench
        self._fingerprint = fingerprint
        self._splits = tuple(splits)
        self._folder = None if folder is None else folder / FOLDER
        self._jobs = jobs
        self._say = say
        self._done: dict[Settings, CampaignFigures] = {}

    def figures(self, wanted: Sequence[Settings]) -> list[CampaignFigures]:
        """Return the results of finished campaigns."""
        return [self._done[settings] for settings in wanted]

    def run(self, wanted: Sequence[Settings]) -> None:
        """Run the campaigns that have no result yet."""
        for settings in wanted:
            if settings not in self._done and (kept := self._kept(settings)) is not None:
                self._done[settings] = kept
        missing = [item for item in dict.fromkeys(wanted) if item not in self._done]
        if count := len(set(wanted)):
            done = count - len(missing)
            self._say(f"{format_count(count, 'campaign')}, {done} finished before")
        several = self._jobs > 1 and len(missing) > 1
        finished = self._side_by_side(missing) if several else self._one_by_one(missing)
        for number, (settings, figures) in enumerate(finished, start=1):
            self._done[settings] = figures
            self._keep(settings, figures)
            found = f"{figures.turns_broken} turns broken in {figures.calls:,} calls"
            name = title(settings.variant)
            self._say(f"[{number}/{len(missing)}] {name}: {found}, {figures.seconds:.0f} s")

    def _one_by_one(self, wanted: Sequence[Settings]) -> Iterator[tuple[Settings, CampaignFigures]]:
        for settings in wanted:
            yield settings, self._bench.run(settings, self._say)

    def _side_by_side(
        self, wanted: Sequence[Settings]
    ) -> Iterator[tuple[Settings, CampaignFigures]]:
        # Forking may hang if libraries of this process have threads.
        context = multiprocessing.get_context("spawn")
        ids = frozenset(dialogue.id for dialogue in self._bench.data.dialogues)
        begin = (wanted[0], self._splits, ids)
        with ProcessPoolExecutor(min(self._jobs, len(wanted)), context, _begin, begin) as pool:
            futures = {pool.submit(_work, settings): settings for settings in wanted}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BrokenProcessPool:
                raise UserError(
                    "a process that ran campaigns was killed, perhaps because memory ran out. If "
                    "--output is given, finished campaigns are kept, and the same command "
                    "continues after them"
                ) from None
            except BaseException:
                # The pool would otherwise wait for campaigns whose results are not needed.
                for process in multiprocessing.active_children():
                    process.terminate()
                raise

    def _kept(self, settings: Settings) -> CampaignFigures | None:
        """Return the stored results of a campaign, or ``None`` without such results."""
        if self._folder is None:
            return None
        key = self._fingerprint.key(settings)
        try:
            found = json.loads(_file_in(self._folder, key).read_text(encoding="utf-8"))
            known = found["key"] == key
            return from_json(CampaignFigures, found["figures"]) if known else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # Missing, incomplete, or another format: run it again.

    def _keep(self, settings: Settings, figures: CampaignFigures) -> None:
        if self._folder is not None:
            key = self._fingerprint.key(settings)
            kept = json.dumps({"key": key, "figures": to_json(figures)})
            write_text(_file_in(self._folder, key), kept + "\n")


def _file_in(folder: Path, key: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode("utf-8")).hexdigest()
    return folder / f"{digest[:24]}.json"


#: The runner of a worker process.
_bench: list[CampaignRunner] = []


def _begin(settings: Settings, splits: Sequence[str], ids: frozenset[str]) -> None:
    """Create the object that runs the campaigns in this worker process."""
    # Only the main process should handle an interrupt.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parts = [load_dialogues(settings.data.data, split) for split in splits]
    kept = [dialogue for part in parts for dialogue in part.dialogues if dialogue.id in ids]
    _bench.append(CampaignRunner(tracker_for(settings, parts[0]), join_splits(parts, kept)))


def _work(settings: Settings) -> CampaignFigures:
    return _bench[0].run(settings)


def common_settings(**given: Any) -> Settings:
    """Return the settings that all campaigns share. ``None`` means that an option was not given."""
    own = {name: value for name, value in given.items() if value is not None}
    return Settings.of(**{"turns": None, "shrink": False, "redraws": 8, **own})


@dataclass(frozen=True, slots=True)
class GroundConfig:
    """The configuration that all campaigns of a comparison share."""

    settings: Settings  #: See `common_settings`.
    splits: tuple[str, ...] = ("val", "test")
    seeds: tuple[int, ...] = (0, 1, 2)  #: Campaign seeds; see `Contender.runs`.
    #: Maximum number of held-out dialogues, drawn with the first seed. ``None`` means all.
    max_dialogues: int | None = None
    command: str = ""  #: Command line, for the header of the table.
    #: If no policy names held-out dialogues, use all right dialogues, not only the share that a
    #: training would hold out.
    all_right: bool = False
    keep: tuple[str, ...] = ()  #: Ids of the dialogues to use. Empty means all.
    leave_out: tuple[str, ...] = ()  #: Ids of dialogues to exclude.

    @property
    def tracker_and_weights(self) -> str:
        """The tracker, for the header of the table."""
        tracker = self.settings.tracker
        weights = f", checkpoint `{tracker.checkpoint}`" if tracker.checkpoint else ""
        return f"{tracker.model}{weights}"

    @property
    def rates(self) -> str:
        """The limit of edit rates, for the header of the table."""
        variant = self.settings.variant
        flat = ", also in short utterances" if variant.flat_edit_rate else ""
        return f"edit rates up to {variant.max_edit_rate:g}{flat}"


class Contest(NamedTuple):
    """The rules of a contest of searches: profile, budget, and when a turn ends."""

    validity: str
    budget: int  #: Variants per turn and search.
    #: Whether a turn ends at its first violation. Otherwise every turn uses the whole budget.
    until_broken: bool = False

    @property
    def counting(self) -> str:
        """The name of the counting rule for the budget."""
        return "until broken" if self.until_broken else "whole"


@dataclass(frozen=True, slots=True)
class SearchComparison:
    """The data, campaigns and trained policies that a comparison of searches needs."""

    config: GroundConfig
    right: RightDialogues
    data: DialogueSet  #: The held-out dialogues.
    campaigns: Campaigns
    resamples: Resamples
    #: Name of a search -> its policy, for trained searches.
    policies: Mapping[str, TrainingRecord]

    def settings(self, contest: Contest, item: Contender, k: int) -> list[Settings]:
        """Return the settings of each run of a search in a contest."""
        return [
            self.config.settings.replace_options(
                validity=contest.validity,
                stop_at_first=contest.until_broken,
                variants=contest.budget,
                transformations=k,
                search=search,
                seed=seed,
            )
            for search, seed in item.runs(self.config.seeds)
        ]

    def header(self) -> list[str]:
        """Return the lines of Markdown that describe how the figures were measured."""
        config, variant = self.config, self.config.settings.variant
        data = config.settings.data.data
        drawn = f", and {len(config.leave_out):,} of --leave-out" if config.leave_out else ""
        drawn += "; only those of --keep" if config.keep else ""
        if config.max_dialogues is not None:
            drawn += f"; at most {config.max_dialogues}, drawn by seed"
        words = ", ".join(f"`{lock}`" for lock in variant.lock)
        locks = f", no edit of {words} under `strict`" if words else ""
        accuracies = ", ".join(
            f"{item.split} {percent(item.joint_goal_accuracy)}" for item in self.right.evaluations
        )
        return [
            f"- command: `{config.command}` (pytest-dstfuzz {__version__})",
            f"- tracker: {config.tracker_and_weights}; joint goal accuracy {accuracies}",
            (
                f"- data: `{data}`, values normalised as `{self.data.normalisation}`; "
                f"the tracker is right at every turn of {len(self.right.data.dialogues):,} "
                f"dialogues; the searches use {len(self.data.dialogues):,}, with "
                f"{self.data.turn_count():,} turns, without those that an agent was trained on"
                f"{drawn}"
            ),
            (
                f"- attack {variant.attack}, {config.rates}{locks}; a variant that is unchanged, a "
                f"duplicate or invalid is drawn again, up to {variant.redraws} times; seeds "
                f"{', '.join(map(str, config.seeds))}"
            ),
            (
                "- brackets: 95 % intervals, bootstrapped over dialogues; if a search ran several "
                "times (with several seeds, or with several trained policies), its figures are "
                "means"
            ),
            *(_described(name, saved) for name, saved in self.policies.items()),
        ]


def prepare(
    config: GroundConfig,
    searches: Iterable[str],
    *,
    folder: Path | None,
    jobs: int,
    say: Say,
) -> SearchComparison:
    """Return the dialogues for a comparison. For ``folder`` and ``jobs`` see `Campaigns`."""
    policies = {name: saved for name in searches if (saved := find_training(name)) is not None}
    given = config.settings
    splits = [load_dialogues(given.data.data, split) for split in config.splits]
    tracker = tracker_for(given, splits[0])
    right = right_dialogues(tracker, splits, given.tracker.batch_size, say)
    unseen = _chosen(config, _unseen(config, splits, right.data, policies))
    data = draw_dialogues(unseen, config.max_dialogues, config.seeds[0], "held-out", "dialogues")
    say(f"{len(data.dialogues)} dialogues held out, {data.turn_count()} turns to perturb")
    campaigns = Campaigns(
        CampaignRunner(tracker, data),
        Fingerprint.of(data, right.evaluations, given.tracker.checkpoint),
        splits=config.splits,
        folder=folder,
        jobs=jobs,
        say=say,
    )
    ids = [dialogue.id for dialogue in data.dialogues]
    return SearchComparison(
        config, right, data, campaigns, Resamples(ids, config.seeds[0]), policies
    )


def _unseen(
    config: GroundConfig,
    splits: Sequence[DialogueSet],
    right: DialogueSet,
    policies: Mapping[str, TrainingRecord],
) -> DialogueSet:
    """Return the dialogues that no policy was trained on.

    A policy names the dialogues that its training held out. Another tracker might hold out other
    dialogues. A policy that names no dialogue of this data was trained on other data.
    """
    known = {dialogue.id for data in splits for dialogue in data.dialogues}
    named = [set(saved.held_out) & known for saved in policies.values()]
    unseen = [ids for ids in named if ids]
    if not unseen:
        return right if config.all_right else hold_out(right)[1]
    ids = set.intersection(*unseen)
    kept = tuple(dialogue for dialogue in right.dialogues if dialogue.id in ids)
    if not kept:
        raise UserError(
            "no dialogue is left to compare on: the policies were trained on all dialogues that "
            "the tracker gets right at every turn; compare one policy at a time"
        )
    return replace(right, dialogues=kept)


def _chosen(config: GroundConfig, data: DialogueSet) -> DialogueSet:
    """Return the dialogues that remain after --keep and --leave-out."""
    wanted, unwanted = frozenset(config.keep), frozenset(config.leave_out)
    kept = tuple(
        dialogue
        for dialogue in data.dialogues
        if (not wanted or dialogue.id in wanted) and dialogue.id not in unwanted
    )
    if not kept:
        raise UserError(
            f"--keep and --leave-out leave none of the {len(data.dialogues)} dialogues that are "
            "right at every turn"
        )
    return replace(data, dialogues=kept)


def _described(name: str, saved: TrainingRecord) -> str:
    reward = f"reward {saved.reward}, " if saved.reward else ""
    return (
        f"- `{name}`: {saved.what} (sha256 {saved.fingerprint}), trained on the tracker "
        f"{saved.tracker}, {saved.data}, profile {saved.validity}, {reward}{saved.calls:,} calls, "
        f"seed {saved.seed}"
    )


def draw_dialogues(data: DialogueSet, count: int | None, seed: int, *purpose: str) -> DialogueSet:
    """Draw ``count`` dialogues by seed, in the order of the data. ``None`` means all dialogues."""
    if count is None:
        return data
    order = stream(seed, *purpose).permutation(len(data.dialogues))
    chosen: Sequence[int] = sorted(order[:count].tolist())
    return replace(data, dialogues=tuple(data.dialogues[place] for place in chosen))
