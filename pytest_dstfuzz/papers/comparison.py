"""Searches compared at equal calls."""

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
    Paced,
    RightDialogues,
    Say,
    held_out,
    joined,
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
from pytest_dstfuzz.search.protocol import (
    Feedback,
    Proposal,
    Search,
    SearchTask,
    Trained,
    TurnSearch,
)
from pytest_dstfuzz.search.registry import search_by_name, trained
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.evaluate import Evaluation
from pytest_dstfuzz.trackers.registry import tracker_for
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.weaknesses.groups import read


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation."""

    cause: str | None  #: ``turn``, ``context`` or ``both``.
    #: The slots that it changed anew, each with the value after, sorted: what broke.
    weakness: tuple[tuple[str, str | None], ...]
    vetoed: bool  #: The profile `strict` vetoes its own edits.
    vetoed_context: bool  #: ... or those of an earlier turn that it was seen with.
    number: int  #: How many variants the turn had been given with it.
    key: str  #: Id of its weakness.
    slot: str  #: The slot whose change says most.
    mass: float  #: Probability that people type the turn so; 0 where its context is to blame.
    #: ``TRANSFORMATION/OPERATOR`` of the edits of its smallest version, sorted, each once.
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """One turn."""

    dialogue: str
    turn: int
    calls: int  #: Contexts that the tracker was asked for.
    #: ... for its first 0, 1, 2, ... variants: what a campaign of fewer variants asks for.
    calls_after: tuple[int, ...]
    #: How many variants it takes until the first violation; ``None`` without one.
    broken_after: int | None
    counts: Counts
    draws: int  #: Draws of its variants, those that were drawn again included.
    edit_w: float  #: Sums of the edit rates of the valid variants.
    edit_c: float
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class CampaignFigures:
    """One campaign; JSON in and out, see `json_data`."""

    turns: tuple[TurnFigures, ...]
    inertia: float  #: Of the actions of all draws, see `engine.inertia`.
    seconds: float  #: How long it ran.

    @property
    def calls(self) -> int:
        """Contexts that the tracker was asked for."""
        return sum(turn.calls for turn in self.turns)

    @property
    def turns_broken(self) -> int:
        """Turns with a violation."""
        return sum(bool(turn.violations) for turn in self.turns)


class StrictVeto:
    """Says what `strict` vetoes, whichever profile made it; ``settings`` are the campaign's."""

    def __init__(self, settings: VariantSettings, data: DialogueSet) -> None:
        strict = replace(settings, validity="strict")
        self._perturber = Perturber.of(strict, data, load_lexicon())
        self._data = data
        self._dialogues: dict[str, Dialogue] = {item.id: item for item in data.dialogues}

    def vetoes(self, result: TurnResult, text: str, edits: Sequence[Edit]) -> bool:
        """Say whether the edits of a variant of a turn would be vetoed."""
        turn = self._dialogues[result.dialogue_id].turns[result.turn_index]
        # A turn has violations only where the tracker answered on its clean context.
        assert result.clean_state is not None  # noqa: S101
        values = lock_values(self._data, turn, Prediction(result.clean_state))
        source = self._perturber.prepare(turn.user, values, turn.system)
        return self._perturber.check(source, text, edits)[0] == "vetoed"


def calls_after(result: TurnResult, users: Sequence[str]) -> tuple[int, ...]:
    """Count the contexts that a turn, run to its end, takes for its first 0, 1, 2, ... variants.

    A variant of a number never depends on those of higher ones, so this is what campaigns of
    fewer variants ask for. It is what `TurnResult.calls` counts, but where a tracker that
    disagrees with itself is asked again. ``users`` are the clean utterances of earlier turns.
    """
    clean = tuple(users)
    asked = {(clean, result.user)}
    counted = [len(asked)]
    for variant in result.variants:
        if variant.valid:
            asked.add((variant.context, variant.text))
        if variant.outcome == "violation" and variant.context_edits:
            # The second passes that find its cause.
            asked.update({(clean, variant.text), (variant.context, result.user)})
        counted.append(len(asked))
    return tuple(counted)


def turn_figures(
    result: TurnResult, earlier: Mapping[int, TurnResult], veto: StrictVeto | None
) -> TurnFigures:
    """Return the figures of a turn; ``veto`` is ``None`` where the campaign was strict."""

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
    """Return how likely people type the turn so; 0 if its context is to blame."""
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
    """Return the figures of the turns of a campaign; see `turn_figures`."""
    dialogues: dict[str, dict[int, TurnResult]] = {}
    for result in results:
        dialogues.setdefault(result.dialogue_id, {})[result.turn_index] = result
    return tuple(turn_figures(result, dialogues[result.dialogue_id], veto) for result in results)


AGENT: Final = "agent"
_SPACE: Final = ActionSpace()


@dataclass(frozen=True, slots=True)
class Contender:
    """A search, or several that stand for one: policies of several training seeds."""

    label: str
    searches: tuple[str, ...]  #: As the option ``search`` takes them.
    associates: bool = True  #: See `Search.associates`.

    def ks(self, ks: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of transformations at which it differs."""
        return tuple(ks if self.associates else ks[:1])

    def runs(self, seeds: Sequence[int]) -> list[tuple[str, int]]:
        """Return search and seed of each run: every search and every seed at least once."""
        runs = zip(cycle(self.searches), cycle(seeds))
        return list(islice(runs, max(len(self.searches), len(seeds))))


def parse_contenders(text: str) -> tuple[Contender, ...]:
    """Read ``[LABEL=]SEARCH,...``: searches of the same label stand for one.

    Without one the label is the name of the search: all of ``agent:PATH,agent:PATH`` are
    the agent. Each search is made once, so that a mistake shows before anything is run.
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
        raise ValueError("names no search")
    return tuple(
        Contender(label, tuple(searches), associate[label]) for label, searches in found.items()
    )


def subject_of(contenders: Sequence[Contender]) -> Contender:
    """Return the one whom the others are compared with: the agent, else the last named."""
    return next((item for item in contenders if item.label == AGENT), contenders[-1])


def _of_violations(holds: Callable[[Violation], bool]) -> Callable[[TurnFigures], _Pair]:
    return lambda turn: (sum(map(holds, turn.violations)), len(turn.violations))


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
    "cause_turn": _of_violations(lambda item: item.cause == "turn"),
    "cause_context": _of_violations(lambda item: item.cause == "context"),
    "cause_both": _of_violations(lambda item: item.cause == "both"),
    "strict_vetoes": _of_violations(lambda item: item.vetoed),
    "strict_vetoes_with_context": _of_violations(lambda item: item.vetoed_context),
}


def tallies(runs: Sequence[CampaignFigures], pair: Callable[[TurnFigures], _Pair]) -> list[Tally]:
    """Sum (part, whole) of turns by dialogue, for each run."""
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
    """The figures of a search at one k: means over its runs."""

    runs: int  #: Campaigns.
    turns: int
    calls: float
    turns_broken: float
    inertia: float  #: Of the actions of all draws.
    rates: Mapping[str, Rate]  #: See `RATES`.

    @classmethod
    def of(cls, resamples: Resamples, runs: Sequence[CampaignFigures]) -> MeanFigures:
        """Return the means over campaigns on the same dialogues."""
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


#: Columns of a row whose ``means`` are such figures.
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
    """Return an inertia as a share of that of uniform sampling with as many transformations.

    A search without a number of them (``None``) makes one edit a step.
    """
    return inertia / _SPACE.uniform_inertia(k or 1)


def mean(numbers: Sequence[float]) -> float:
    """Return the mean of some numbers."""
    return sum(numbers) / len(numbers)


def broken_alone(
    resamples: Resamples, runs: Sequence[CampaignFigures], others: Sequence[CampaignFigures]
) -> Rate:
    """Return the share of the turns that ``runs`` break which ``others`` do not.

    The first run is held against the first of the others, and so on.
    """

    def alone(run: CampaignFigures, other: CampaignFigures) -> Tally:
        theirs = {_place(turn) for turn in other.turns if turn.violations}

        def pair(turn: TurnFigures) -> _Pair:
            broken = bool(turn.violations)
            return broken and _place(turn) not in theirs, broken

        return tallies([run], pair)[0]

    return resamples.rate([alone(run, other) for run, other in zip(runs, cycle(others))])


class Weaknesses(NamedTuple):
    """How varied what was found is; means over runs."""

    number: float  #: Different sets of changed slots and the values that they got.
    #: Share of the violations that the most frequent one has; ``None`` without violations.
    most_frequent: float | None
    name: str  #: That of the first run.


def weaknesses_of(runs: Sequence[CampaignFigures]) -> Weaknesses:
    """Return how varied the violations are."""
    counted = [
        Counter(item.weakness for turn in run.turns for item in turn.violations) for run in runs
    ]
    shares = [max(found.values()) / found.total() for found in counted if found]
    # Of equally frequent ones the first in the order of the alphabet.
    top = min(counted[0].items(), key=lambda item: (-item[1], str(item[0])), default=((), 0))[0]
    return Weaknesses(
        number=mean([*map(len, counted)]),
        most_frequent=mean(shares) if shares else None,
        name=", ".join(f"{slot} -> {after or 'none'}" for slot, after in top),
    )


def _place(turn: TurnFigures) -> tuple[str, int]:
    return turn.dialogue, turn.turn


class Against(NamedTuple):
    """A search beside the subject."""

    ratio: Rate  #: How many times as many turns the subject breaks for every call.
    alone: Rate  #: Share of the subject's broken turns that this search did not break.

    @classmethod
    def of(
        cls,
        resamples: Resamples,
        subject: Sequence[CampaignFigures],
        runs: Sequence[CampaignFigures],
    ) -> Against:
        """Compare the runs of a search with those of the subject."""
        pair = RATES["broken_per_call"]
        ratio = resamples.ratio(tallies(subject, pair), tallies(runs, pair))
        return cls(ratio, broken_alone(resamples, subject, runs))


_PACKAGE: Final = Path(__file__).parents[1]
#: What the outcome of a campaign depends on.
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
#: Settings that say where something lies, or how it is reached; what it is, is in the key.
_PLACES: Final = {"search", *names_of("place")} - {"slot_map", "prompt", "device"}
#: Dialogue, turn, number of the variant, draw: what an action was taken for.
_Place = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class CampaignRunner:
    """Runs campaigns on some dialogues."""

    tracker: Tracker
    data: DialogueSet
    #: Seconds between lines that say how far it is; ``None`` = the usual.
    pace: float | None = None

    def run(
        self, settings: Settings, say: Say | None = None, name: str | None = None
    ) -> CampaignFigures:
        """Run a campaign over all the dialogues; ``say`` is told of its turns, by its ``name``."""
        started, done, turns = time.monotonic(), 0, self.data.turn_count()
        tell = say and Paced(say, self.pace)

        def listen(event: Event) -> None:
            nonlocal done
            done += isinstance(event, TurnDone)
            if tell and isinstance(event, TurnDone):
                tell(f"{name or title(settings.variant)}: {done} of {turns} turns")

        k = settings.variant.transformations
        # The clean contexts are calls of every search.
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
    """Name a campaign in a line of progress."""
    until = ", until broken" if settings.stop_at_first else ""
    return (
        f"{settings.validity}, {settings.search}, k = {settings.transformations}, "
        f"{settings.variants} variants{until}, seed {settings.seed}"
    )


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What all campaigns of an experiment have in common, so that others are not taken for them."""

    code: str  #: Digest of the code and the shipped resources that outcomes depend on.
    #: How it did on the data: it may be an object whose code nobody sees.
    tracker: tuple[tuple[str, int, int, int], ...]
    dialogues: str  #: Digest of the dialogues.
    checkpoint: str  #: Digest of the weights that were named.

    @classmethod
    def of(
        cls, data: DialogueSet, evaluations: Sequence[Evaluation], checkpoint: str | None
    ) -> Fingerprint:
        """Take the fingerprint of a tracker and dialogues."""
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
        """Return what tells a campaign from every other one, as JSON."""
        search, given = settings.variant.search, settings_json(settings)
        policy = trained(search)
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
    """Hands everything on to another search and keeps the actions of its proposals."""

    def __init__(self, search: Search) -> None:
        self.name, self.order, self.adaptive = search.name, search.order, search.adaptive
        self.associates = search.associates
        self.by_density, self.waits = search.by_density, search.waits
        self.context_variant = search.context_variant
        self._begin = search.turn
        # By place, so that a turn that is run again is not counted twice.
        self._taken: dict[_Place, Action] = {}

    @property
    def actions(self) -> tuple[Action, ...]:
        """The action of every draw so far, redraws included, sorted by what it was for."""
        return tuple(action for _, action in sorted(self._taken.items(), key=lambda item: item[0]))

    def turn(self, task: SearchTask) -> RecordingTurn:
        """Begin a turn."""
        return RecordingTurn(self._begin(task), (task.dialogue.id, task.turn_index), self._taken)


@dataclass(frozen=True, slots=True)
class RecordingTurn:
    """The attempts of a `Recording` at one turn."""

    attempts: TurnSearch
    place: tuple[str, int]
    taken: dict[_Place, Action]

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return what the search proposes."""
        proposal = self.attempts.propose(number, draw, seen)
        self.taken[(*self.place, number, draw)] = proposal.action
        return proposal


#: Folder of the finished campaigns, in that of the tables.
FOLDER: Final = "campaigns"


class Campaigns:
    """Runs campaigns in so many processes, and keeps their figures, in the folder of the tables.

    The other processes read the dialogues again, from their splits.
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
        """Return the figures of campaigns that were run."""
        return [self._done[settings] for settings in wanted]

    def run(self, wanted: Sequence[Settings]) -> None:
        """Run what is not there yet."""
        for settings in wanted:
            if settings not in self._done and (kept := self._kept(settings)) is not None:
                self._done[settings] = kept
        missing = [item for item in dict.fromkeys(wanted) if item not in self._done]
        if count := len(set(wanted)):
            self._say(f"{count} campaigns, {count - len(missing)} of them are there already")
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
        # Forking a process whose libraries have threads may hang.
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
                    "a process that ran campaigns was ended from outside (too little memory?); "
                    "what was finished is kept"
                ) from None
            except BaseException:
                # The pool would wait for campaigns whose figures nobody will read.
                for process in multiprocessing.active_children():
                    process.terminate()
                raise

    def _kept(self, settings: Settings) -> CampaignFigures | None:
        """Return the figures on disk, where they are those of this very campaign."""
        if self._folder is None:
            return None
        key = self._fingerprint.key(settings)
        try:
            found = json.loads(_file_in(self._folder, key).read_text(encoding="utf-8"))
            known = found["key"] == key
            return from_json(CampaignFigures, found["figures"]) if known else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # None, half a file or another format: it is run again.

    def _keep(self, settings: Settings, figures: CampaignFigures) -> None:
        if self._folder is not None:
            key = self._fingerprint.key(settings)
            kept = json.dumps({"key": key, "figures": to_json(figures)})
            write_text(_file_in(self._folder, key), kept + "\n")


def _file_in(folder: Path, key: dict[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode("utf-8")).hexdigest()
    return folder / f"{digest[:24]}.json"


#: The bench of a process that runs campaigns for another one.
_bench: list[CampaignRunner] = []


def _begin(settings: Settings, splits: Sequence[str], ids: frozenset[str]) -> None:
    """Make the bench of this process."""
    # An interrupt is for the process that the user sees.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parts = [load_dialogues(settings.data.data, split) for split in splits]
    kept = [dialogue for part in parts for dialogue in part.dialogues if dialogue.id in ids]
    _bench.append(CampaignRunner(tracker_for(settings, parts[0]), joined(parts, kept)))


def _work(settings: Settings) -> CampaignFigures:
    return _bench[0].run(settings)


def common_settings(**given: Any) -> Settings:
    """Return what all campaigns of an experiment are set to; ``None`` = an option was not given."""
    own = {name: value for name, value in given.items() if value is not None}
    return Settings.of(**{"turns": None, "shrink": False, "redraws": 8, **own})


@dataclass(frozen=True, slots=True)
class GroundConfig:
    """What all campaigns of a comparison have in common."""

    settings: Settings  #: See `common_settings`.
    splits: tuple[str, ...] = ("val", "test")
    seeds: tuple[int, ...] = (0, 1, 2)  #: Campaign seeds; see `Contender.runs`.
    #: Of the held-out dialogues, draw so many by the first seed; ``None`` = all.
    max_dialogues: int | None = None
    command: str = ""  #: The command line, for the table's header.
    #: Where no policy says which of the dialogues it never saw: take all of them, none of which
    #: is its own, and not only those that would be held out in a training.
    all_right: bool = False
    keep: tuple[str, ...] = ()  #: Ids of the dialogues that are taken; none = all.
    leave_out: tuple[str, ...] = ()  #: Ids of dialogues that are not taken.

    @property
    def tracker_and_weights(self) -> str:
        """The tracker, for the table's header."""
        tracker = self.settings.tracker
        weights = f", checkpoint `{tracker.checkpoint}`" if tracker.checkpoint else ""
        return f"{tracker.model}{weights}"

    @property
    def rates(self) -> str:
        """The limit of edit rates, for the table's header."""
        variant = self.settings.variant
        flat = " in short utterances too" if variant.flat_edit_rate else ""
        return f"edit rates up to {variant.max_edit_rate:g}{flat}"


class Contest(NamedTuple):
    """The rules under which searches are compared: the same for all of them."""

    validity: str
    budget: int  #: Variants that a search gets run at a turn.
    #: Turns are left alone once broken; otherwise the budget is spent on every turn.
    until_broken: bool = False

    @property
    def counting(self) -> str:
        """What the budget is spent on."""
        return "until broken" if self.until_broken else "whole"


@dataclass(frozen=True, slots=True)
class SearchComparison:
    """Where searches are compared."""

    config: GroundConfig
    right: RightDialogues
    data: DialogueSet  #: The held-out dialogues.
    campaigns: Campaigns
    resamples: Resamples
    #: The agents that are compared: name of the search -> its policy.
    policies: Mapping[str, Trained]

    def settings(self, contest: Contest, item: Contender, k: int) -> list[Settings]:
        """Return the settings of the campaigns of a contender, one for each of its runs."""
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
        """Return the lines of Markdown that say what was measured on what."""
        config, variant = self.config, self.config.settings.variant
        data = config.settings.data.data
        drawn = (
            "" if not config.leave_out else f", without {len(config.leave_out):,} that are named"
        )
        drawn += ", only some that are named" if config.keep else ""
        if config.max_dialogues is not None:
            drawn += f", at most {config.max_dialogues} by seed"
        words = ", ".join(f"`{lock}`" for lock in variant.lock)
        locks = f", under `strict` no edit of {words}" if words else ""
        accuracies = ", ".join(
            f"{item.split} {percent(item.joint_goal_accuracy)}" for item in self.right.evaluations
        )
        return [
            f"- command: `{config.command}` (pytest-dstfuzz {__version__})",
            f"- tracker: {config.tracker_and_weights}; joint goal accuracy {accuracies}",
            (
                f"- data: `{data}`, values normalised as `{self.data.normalisation}`; of "
                f"{len(self.right.data.dialogues):,} dialogues right at every turn those that no "
                f"agent was trained on{drawn}: {len(self.data.dialogues):,} dialogues, "
                f"{self.data.turn_count():,} turns"
            ),
            (
                f"- attack {variant.attack}, {config.rates}{locks}, up to {variant.redraws} "
                "redraws of a variant that is vacuous, a duplicate or not valid; seeds "
                f"{', '.join(map(str, config.seeds))}"
            ),
            (
                "- in brackets 95 % intervals, bootstrapped over dialogues; of several runs "
                "(seeds of campaigns, and policies of several training seeds) the mean"
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
    """Find the held-out dialogues of a tracker; for folder and jobs see `Campaigns`."""
    policies = {name: saved for name in searches if (saved := trained(name)) is not None}
    given = config.settings
    splits = [load_dialogues(given.data.data, split) for split in config.splits]
    tracker = tracker_for(given, splits[0])
    right = right_dialogues(tracker, splits, given.tracker.batch_size, say)
    unseen = _chosen(config, _unseen(config, splits, right.data, policies))
    data = drawn(unseen, config.max_dialogues, config.seeds[0], "held-out", "dialogues")
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
    policies: Mapping[str, Trained],
) -> DialogueSet:
    """Return the dialogues that no policy was trained on.

    A policy names those that it never saw; they need not be those that would be held out
    for this tracker, if it was trained against another one. One that names none of the
    dialogues of this data was trained on other data.
    """
    known = {dialogue.id for data in splits for dialogue in data.dialogues}
    named = [set(saved.held_out) & known for saved in policies.values()]
    unseen = [ids for ids in named if ids]
    if not unseen:
        return right if config.all_right else held_out(right)[1]
    ids = set.intersection(*unseen)
    kept = tuple(dialogue for dialogue in right.dialogues if dialogue.id in ids)
    if not kept:
        raise UserError(
            "of the dialogues that the tracker gets right at every turn, the policies of the "
            "agent leave none that they have not seen: compare them one by one"
        )
    return replace(right, dialogues=kept)


def _chosen(config: GroundConfig, data: DialogueSet) -> DialogueSet:
    """Return the dialogues that are to be kept, without those to leave out."""
    wanted, unwanted = frozenset(config.keep), frozenset(config.leave_out)
    kept = tuple(
        dialogue
        for dialogue in data.dialogues
        if (not wanted or dialogue.id in wanted) and dialogue.id not in unwanted
    )
    if not kept:
        raise UserError(
            f"of {len(data.dialogues)} dialogues that are right at every turn, the ids to keep and "
            "to leave out leave none"
        )
    return replace(data, dialogues=kept)


def _described(name: str, saved: Trained) -> str:
    return (
        f"- `{name}`: {saved.what} (sha256 {saved.fingerprint}), trained on the tracker "
        f"{saved.tracker}, {saved.data}, profile {saved.validity}, {saved.calls:,} calls, "
        f"seed {saved.seed}"
    )


def drawn(data: DialogueSet, count: int | None, seed: int, *purpose: str) -> DialogueSet:
    """Draw so many dialogues by seed, in data order; all where ``count`` is ``None``."""
    if count is None:
        return data
    order = stream(seed, *purpose).permutation(len(data.dialogues))
    chosen: Sequence[int] = sorted(order[:count].tolist())
    return replace(data, dialogues=tuple(data.dialogues[place] for place in chosen))
