"""Makes the prior of the search ``adaptive``, and compares the search with others at equal calls.

``python -m tools.agents.adaptive learn --output FOLDER`` runs the search on each of `BOTS`, without
a prior, and writes the edits with their results. ``... prior --rows FOLDER`` writes the shipped
prior from them. ``... compare --rows FOLDER --output FOLDER`` compares the searches on each bot,
with a prior that is made without this bot. ``... cost --bots TRADE`` measures the processor time of
`adaptive` and `random` themselves. `--bots` names some of them.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.papers.comparison import TurnFigures, all_turn_figures
from pytest_dstfuzz.papers.formatting import markdown_table
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.search.adaptive import FEATURES, AdaptiveSearch, Belief
from pytest_dstfuzz.search.protocol import (
    Feedback,
    Lesson,
    Proposal,
    Search,
    SearchTask,
    TurnSearch,
)
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.search.searches import NearValueSearch, RandomSearch
from pytest_dstfuzz.seeding import stream
from tools.ci_year import clinic, museum, parcels
from tools.house import ordinary_data
from tools.weaknesses.planted_bot import PlantedBot, dialogues

_DATA: Final = Path(__file__).parents[1] / "ci_year" / "data"
_PRIOR: Final = (
    Path(__file__).parents[2] / "pytest_dstfuzz" / "resources" / "search" / "adaptive.json"
)
#: The searches that `adaptive` is compared with.
_OTHERS: Final = (RandomSearch.name, NearValueSearch.name)
#: Variants of the other searches per variant of `adaptive`, so that they can make as many calls.
_MORE: Final = 1.5
#: Number of resamples for an interval.
_RESAMPLES: Final = 2_000
#: Each bot counts like this number of edits in the prior, however many it has.
_EDITS: Final = 600.0
#: Limits of the precision of a weight in the prior, and the variance added to that between bots.
_LEAST, _MOST, _NOISE = 0.5, 2.0, 0.05
#: Factor of the mean, because a bot may be unlike the few that taught the prior.
_TRUST: Final = 0.5
#: Seed of the runs behind the prior; comparisons use others.
_SEED: Final = 100


class RetrievalBot:
    """Answers with the recorded reply to the most similar recorded question (TF-IDF)."""

    def __init__(self, data: DialogueSet) -> None:
        pairs = [
            (turn.user, after.system)
            for dialogue in data.dialogues
            for turn, after in zip(dialogue.turns, dialogue.turns[1:], strict=False)
        ]
        self._replies = [reply for _, reply in pairs]
        said = [Counter(word_list(question)) for question, _ in pairs]
        spread = Counter(word for words in said for word in words)
        self._rarity = {word: math.log(1 + len(said) / count) for word, count in spread.items()}
        self._questions = [self._weighed(words) for words in said]

    def _weighed(self, words: Counter[str]) -> dict[str, float]:
        found = {word: count * self._rarity.get(word, 0.0) for word, count in words.items()}
        size = math.sqrt(sum(value * value for value in found.values())) or 1.0
        return {word: value / size for word, value in found.items()}

    def reply(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the reply to the last message."""
        asked = self._weighed(Counter(word_list(messages[-1]["content"])))
        scores = [sum(asked.get(w, 0.0) * v for w, v in one.items()) for one in self._questions]
        return self._replies[int(np.argmax(scores))]


def _clinic(settings: Settings, search: Search) -> Campaign:
    return Campaign(clinic.track, _DATA / "clinic.jsonl", settings, search=search)


def _parcels(settings: Settings, search: Search) -> Campaign:
    tools = str(_DATA / "parcels.tools.json")
    settings = settings.replace_options(outcome="tool-calls", tools=tools)
    return Campaign(parcels.answer, _DATA / "parcels.jsonl", settings, search=search)


def _museum(settings: Settings, search: Search) -> Campaign:
    settings = settings.replace_options(outcome="reply", repeatable="yes")
    return Campaign(museum.reply, _DATA / "museum.jsonl", settings, search=search)


def _planted(settings: Settings, search: Search) -> Campaign:
    return Campaign(PlantedBot(), dialogues(24), settings, search=search)


def _travel(settings: Settings, search: Search) -> Campaign:
    return Campaign(ordinary_data.track, "sample", settings, search=search)


def _retrieval(settings: Settings, search: Search) -> Campaign:
    settings = settings.replace_options(outcome="reply", repeatable="yes")
    data = load_dialogues("sample", "test")
    return Campaign(RetrievalBot(data).reply, data, settings, search=search)


def _assistant(settings: Settings, search: Search) -> Campaign:
    settings = settings.replace_options(outcome="tool-calls")
    return Campaign("assistant", "sample-tools", settings, search=search)


def _trade(settings: Settings, search: Search) -> Campaign:
    return Campaign("trade", "sample", settings, search=search)


def _simpletod(settings: Settings, search: Search) -> Campaign:
    return Campaign("simpletod", "sample", settings, search=search)


#: Name of a bot -> builds a campaign with it.
BOTS: Final = {
    "clinic (rules, states)": _clinic,
    "travel (rules, states)": _travel,
    "planted faults (rules, states)": _planted,
    "parcels (rules, calls)": _parcels,
    "museum (keywords, replies)": _museum,
    "retrieval (TF-IDF, replies)": _retrieval,
    "assistant (network, calls)": _assistant,
    "TRADE (network, states)": _trade,
    "SimpleTOD (network, states)": _simpletod,
}
#: The prior learns from all bots but these.
_UNUSED: Final = ("SimpleTOD (network, states)",)


class _Noting(AdaptiveSearch):
    """The search without a prior. It notes each search that has learned."""

    name = "noting"

    def __init__(self, seed: int, noted: list[AdaptiveSearch]) -> None:
        flat = Belief(-2.0 * np.eye(len(FEATURES))[0], np.eye(len(FEATURES)))
        super().__init__(seed, 3, flat)
        self._noted = noted

    def learn(self, lessons: Sequence[Lesson]) -> AdaptiveSearch:
        """Learn, and note the search."""
        made = _Noting(self.seed, self._noted)
        made.past = self.past.with_lessons(lessons, self.now.mean)
        self._noted.append(made)
        return made


def learn(bots: Iterable[str], folder: Path, turns: int, variants: int) -> None:
    """Run the search without a prior on some bots, and write the edits and their results."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in bots:
        noted: list[AdaptiveSearch] = []
        settings = Settings.of(turns=turns, variants=variants, seed=_SEED)
        list(BOTS[name](settings, _Noting(_SEED, noted)))
        past = noted[-1].past
        print(f"{name}: {past.variants} variants, {past.broken} broken, {len(past.rows)} edits")
        np.savez(
            folder / f"{_slug(name)}.npz",
            rows=np.array(past.rows),
            labels=np.array(past.labels),
            weights=np.array(past.weights),
        )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z]+", "-", name.lower()).strip("-")


def prior_of(folder: Path, without: str = "") -> dict[str, dict[str, float]]:
    """Return the mean and the precision of each weight over the bots, without one of them.

    The mean is that of one regression on the edits of all bots, each with the same weight. The
    precision is the inverse of the variance of the bots' own weights around it.
    """
    paths = [path for path in sorted(folder.glob("*.npz")) if path.stem != _slug(without)]
    parts = []
    for path in paths:
        with np.load(path) as one:
            weights = one["weights"] * _EDITS / len(one["rows"])
            parts.append((one["rows"], one["labels"], weights))
    flat = Belief(np.zeros(len(FEATURES)), 0.5 * np.eye(len(FEATURES)))
    rows, labels, all_weights = (np.concatenate(some) for some in zip(*parts, strict=True))
    mean = flat.fit(rows, labels, all_weights).mean
    own = np.array([Belief(mean, np.eye(len(FEATURES))).fit(*one).mean for one in parts])
    variance = ((own - mean) ** 2).mean(axis=0) + _NOISE
    precision = np.clip(1.0 / variance, _LEAST, _MOST)
    mean[1:] *= _TRUST  # The first weight is the usual rate.
    pairs = (("mean", mean), ("precision", precision))
    return {
        part: {name: round(float(one), 3) for name, one in zip(FEATURES, values, strict=True)}
        for part, values in pairs
    }


def belief_of(stored: Mapping[str, Mapping[str, float]]) -> Belief:
    """Return a prior from its JSON form."""
    mean, precision = ([stored[part][name] for name in FEATURES] for part in ("mean", "precision"))
    return Belief(np.array(mean), np.diag(np.array(precision)))


#: A weakness, and the slot that names it.
_Pair = tuple[str, str]


class Found(NamedTuple):
    """The findings of one search on one bot with one seed, cut at a number of calls."""

    broken: dict[str, float]  #: Dialogue -> turns broken.
    weak: dict[str, dict[_Pair, float]]  #: Dialogue -> weakness -> share in which it was found.


def cut(turns: Sequence[TurnFigures], calls: float) -> Found:
    """Return the findings after the same number of variants at each turn, within some calls.

    Findings of the variant in which the calls end count in part.
    """
    most = max(len(turn.calls_after) for turn in turns) - 1
    totals = [
        sum(turn.calls_after[min(number, len(turn.calls_after) - 1)] for turn in turns)
        for number in range(most + 1)
    ]
    whole = max((number for number, total in enumerate(totals) if total <= calls), default=0)
    rest = 0.0
    if whole < most:
        rest = (calls - totals[whole]) / max(totals[whole + 1] - totals[whole], 1)
    found = Found({}, {})
    for turn in turns:
        shares = [
            (1.0 if one.number <= whole else rest, (one.key, one.slot))
            for one in turn.violations
            if one.number <= whole + 1
        ]
        most_sure = max((share for share, _ in shares), default=0.0)
        found.broken[turn.dialogue] = found.broken.get(turn.dialogue, 0.0) + most_sure
        known = found.weak.setdefault(turn.dialogue, {})
        for share, pair in shares:
            known[pair] = max(share, known.get(pair, 0.0))
    return found


def measure(found: Sequence[Found], names: Sequence[str]) -> tuple[float, float]:
    """Return turns broken and distinct weaknesses in some dialogues, as means over the seeds."""
    weak = []
    for one in found:
        best: dict[_Pair, float] = {}
        for name in set(names):
            for pair, share in one.weak.get(name, {}).items():
                best[pair] = max(share, best.get(pair, 0.0))
        weak.append(sum(best.values()))
    broken = [sum(one.broken.get(name, 0.0) for name in names) for one in found]
    return float(np.mean(broken)), float(np.mean(weak))


class Comparison:
    """The findings of all searches on one bot."""

    def __init__(self, bot: str) -> None:
        self.bot = bot
        self.turns = 0
        #: Calls of each seed.
        self.calls: list[float] = []
        #: Name of a search -> its findings, by seed.
        self.found: dict[str, list[Found]] = {}

    def rows(self) -> Iterator[list[str]]:
        """Yield a row for each search."""
        subject = self.found[AdaptiveSearch.name]
        # Each seed draws its own sample of the dialogues.
        names = sorted({name for one in subject for name in one.broken})
        for search, found in self.found.items():
            broken, weak = measure(found, names)
            row = [self.bot, str(self.turns), f"{np.mean(self.calls) / self.turns:.1f}", search]
            row += [f"{broken:.1f}", f"{weak:.1f}"]
            if search != AdaptiveSearch.name:
                row += [self._ratio(subject, found, names, place) for place in (0, 1)]
            yield row + [""] * (len(_HEAD) - len(row))

    def _ratio(
        self, subject: Sequence[Found], other: Sequence[Found], names: Sequence[str], place: int
    ) -> str:
        rng = stream(0, "adaptive", self.bot)
        ratios = []
        for number in range(_RESAMPLES + 1):
            drawn = rng.choice(names, len(names)).tolist() if number else names
            mine, others = (measure(one, drawn)[place] for one in (subject, other))
            ratios.append(mine / others if others else math.inf if mine else 1.0)
        low, high = np.quantile(ratios[1:], (0.025, 0.975))
        return f"{ratios[0]:.2f} [{low:.2f}, {high:.2f}]"


_HEAD: Final = (
    *("bot", "turns", "calls a turn", "search", "turns broken", "weaknesses"),
    *("turns, adaptive / this", "weaknesses, adaptive / this"),
)


def compare(
    bots: Iterable[str], rows: Path, output: Path, seeds: Sequence[int], turns: int, variants: int
) -> None:
    """Compare the searches on some bots, and write a table.

    `adaptive` makes at most ``variants`` variants of a turn. The other searches are cut where they
    have made as many calls.
    """
    output.mkdir(parents=True, exist_ok=True)
    for name in bots:
        prior, result = belief_of(prior_of(rows, name)), Comparison(name)
        for seed in seeds:
            made = _run(name, AdaptiveSearch(seed, 3, prior), seed, turns, variants)
            calls = float(sum(turn.calls_after[-1] for turn in made))
            result.turns = len(made)
            result.calls.append(calls)
            result.found.setdefault(AdaptiveSearch.name, []).append(cut(made, calls))
            for other in _OTHERS:
                search = search_by_name(other, seed=seed, k=3)
                run = _run(name, search, seed, turns, math.ceil(_MORE * variants))
                result.found.setdefault(other, []).append(cut(run, calls))
        table = [*result.rows()]
        print("\n".join("  ".join(row) for row in table), flush=True)
        lines = "\n".join(markdown_table(_HEAD, table))
        write_text(output / f"{_slug(name)}-{variants}.md", f"{lines}\n")


def _run(
    name: str, search: Search, seed: int, turns: int, variants: int
) -> tuple[TurnFigures, ...]:
    settings = Settings.of(turns=turns, variants=variants, seed=seed)
    return all_turn_figures(list(BOTS[name](settings, search)), None)


class _TimedTurn(TurnSearch):
    """Proposes the variants of another object, and adds up the seconds."""

    def __init__(self, turn: TurnSearch, spent: list[float]) -> None:
        self._turn = turn
        self._spent = spent

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Propose a variant."""
        begun = process_time()
        found = self._turn.propose(number, draw, seen)
        self._spent.append(process_time() - begun)
        return found


class _TimedRandom(RandomSearch):
    """The search `random`, with the seconds of each of its steps."""

    name = "timed-random"

    def __init__(self, seed: int, k: int) -> None:
        super().__init__(seed, k)
        self.spent: list[float] = []

    def turn(self, task: SearchTask) -> TurnSearch:
        """Return an object that proposes variants of one turn."""
        return _TimedTurn(super().turn(task), self.spent)


class _TimedAdaptive(AdaptiveSearch):
    """The search `adaptive`, with the seconds of each of its steps."""

    name = "timed-adaptive"

    def __init__(self, seed: int, k: int) -> None:
        super().__init__(seed, k)
        self.spent: list[float] = []

    def learn(self, lessons: Sequence[Lesson]) -> AdaptiveSearch:
        """Learn from some dialogues."""
        begun = process_time()
        other = _TimedAdaptive(self.seed, 3)
        other.past = self.past.with_lessons(lessons, self.now.mean)
        other.spent = self.spent
        self.spent.append(process_time() - begun)
        return other

    def turn(self, task: SearchTask) -> TurnSearch:  # type: ignore[override]
        """Return an object that proposes variants of one turn."""
        return _TimedTurn(super().turn(task), self.spent)


def measure_cost(name: str, turns: int, variants: int, seed: int) -> Iterator[list[str]]:
    """Yield for two searches the processor time of a run, and that of the search itself.

    The first run includes the start: it loads the bot and the word lists.
    """
    searches: tuple[_TimedAdaptive | _TimedRandom, ...]
    searches = (_TimedAdaptive(seed, 3), _TimedRandom(seed, 3))
    for search in searches:
        begun = process_time()
        settings = Settings.of(turns=turns, variants=variants, seed=seed)
        results = list(BOTS[name](settings, search))
        whole = process_time() - begun
        calls = sum(one.calls + one.minimiser_calls for one in results)
        spent = sum(search.spent)
        yield [
            name,
            search.name,
            f"{calls}",
            f"{whole:.1f}",
            f"{spent:.2f}",
            f"{spent / whole:.1%}",
        ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(prog="python -m tools.agents.adaptive")
    parser.add_argument("command", choices=("learn", "prior", "compare", "cost"))
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--bots", default="", help="first words of names, with commas")
    parser.add_argument("--seeds", default="0,1,2", help="seeds, with commas")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--variants", type=int, default=8)
    given = parser.parse_args(arguments)
    wanted = [one for one in given.bots.split(",") if one]
    bots = [name for name in BOTS if not wanted or name.partition(" ")[0] in wanted]
    if given.command == "learn":
        learn(
            (name for name in bots if name not in _UNUSED),
            given.output,
            given.turns,
            given.variants,
        )
    elif given.command == "prior":
        write_text(_PRIOR, json.dumps(prior_of(given.rows), indent=1) + "\n")
    seeds = [*map(int, given.seeds.split(","))]
    if given.command == "cost":
        for name in bots:
            for row in measure_cost(name, given.turns, given.variants, seeds[0]):
                print("  ".join(row))
    elif given.command == "compare":
        compare(bots, given.rows, given.output, seeds, given.turns, given.variants)


if __name__ == "__main__":
    main()
