"""Checks whether default runs agree on the order of weaknesses, and with an independent estimate.

::

    python -m tools.weaknesses.order .work/order --model trade
    python -m tools.weaknesses.order .work/order --model assistant

Makes a default run for each seed, a large run of the search ``noise``, and a plain count, and
keeps what the tables need of each in the folder. A run that is there is not made again. Writes
Markdown to standard output.

The rank correlation is Spearman's, with the mean rank for ties. It is over the weaknesses that both
runs found. A second figure is over those that either found: one that a run did not find is in its
last place. *Own turns* are turns broken, but not because of earlier turns alone. *Pooled* counts
sampled and other variants alike: the share of a turn's variants that the weakness breaks, times the
probability that people distort the turn. The first seeds choose the order, the others test it.

The plain count draws users, not outcomes: at every turn each word slips or not, as the noise model
says, and the failures are counted. No draw has a weight.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
from scipy.stats import rankdata

from pytest_dstfuzz.campaign.attempts import TurnAttempts, begin_turn
from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.engine import predictor_for
from pytest_dstfuzz.campaign.figures import TURNS, ExpectedTally, has_expectation, tally_results
from pytest_dstfuzz.campaign.results import TurnResult, turn_id
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.relation import BySearch
from pytest_dstfuzz.search.registry import default_search
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from pytest_dstfuzz.weaknesses.groups import find_weaknesses, read

#: Model -> its kind of answer.
MODELS: Final = {"trade": "state", "assistant": "tool-calls"}
#: Variants of a turn in the large run, and its seed.
LARGE: Final = 20
LARGE_SEED: Final = 1_001
#: The sample of a default run, which has at most three of five variants, without its search.
SAMPLE: Final[Mapping[str, Any]] = {"search": "noise", "variants": 3, "shrink": False}
#: Plain draws of a turn. One in ten is distorted: ten times those of a default run.
PLAIN: Final = 300
#: A stored run.
Run = dict[str, Any]
Row = Mapping[str, Any]


def settings_of(model: str, seed: int, **options: Any) -> Settings:
    """Return the settings of a default run, or those with other options."""
    given = Settings.of(model=model, outcome=MODELS[model], seed=seed, **options)
    search = options.get("search") or default_search(given)
    return given.replace_options(search=search)


class OnceAsked:
    """A tracker that is asked for each context only once, because the runs share many contexts."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._answers: dict[Context, Prediction] = {}

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return the answer to each context."""
        new = [one for one in dict.fromkeys(contexts) if one not in self._answers]
        if new:
            self._answers.update(zip(new, self._tracker.predict(new), strict=True))
        return [self._answers[one] for one in contexts]


def kept(results: Sequence[TurnResult]) -> Run:
    """Return the part of a run that the tables need."""
    expected = tally_results(ExpectedTally(), results).expected
    assert expected is not None  # noqa: S101 - every run here samples
    variants = [one for turn in results for one in turn.variants]
    own = {
        (read(turn, one).key.id, turn.id)
        for turn in results
        for one in turn.violations
        if one.cause != "context"
    }
    pooled: defaultdict[str, float] = defaultdict(float)
    for turn in results:
        tested = sum(one.valid for one in turn.variants)
        for one in turn.violations:
            if one.cause != "context" and turn.noise is not None:
                pooled[read(turn, one).key.id] += turn.noise.distorted / tested
    return {
        "variants": len(variants),
        "sampled": sum(one.weight is not None for one in variants),
        "vacuous": sum(one.outcome == "vacuous" for one in variants),
        "per_1000": expected.per_1000,
        "interval": expected.interval,
        "turns": [turn.id for turn in results if has_expectation(turn)],
        "weaknesses": [
            {
                "id": one.id,
                "turns": one.turns,
                "own": sum(weakness == one.id for weakness, _ in own),
                "pooled": pooled[one.id],
                "rate": one.expected or 0.0,
            }
            for one in find_weaknesses(results)
        ],
    }


def count(model: str, tracker: Tracker, data: DialogueSet) -> Run:
    """Return the share of plain draws that fail, for each turn."""
    settings = settings_of(model, LARGE_SEED)
    rules = CampaignSpec.of(settings.variant, data, load_lexicon(), reply=settings.reply)
    predictor = predictor_for(settings, data, tracker)
    shares = {}
    for dialogue in data.dialogues:
        contexts = [dialogue.context(index) for index in range(len(dialogue.turns))]
        answers = predictor.predict(contexts)
        turns = [begin_turn(rules, dialogue, i, answers[c]) for i, c in enumerate(contexts)]
        for turn in turns:
            draws = [halves(turns, one) for one in drawn(turns, turn.turn.index)]
            answers |= predictor.predict(dict.fromkeys(both for both, *_ in draws))
            broken = [asked for asked in draws if breaks(turn, answers[asked[0]])]
            answers |= predictor.predict(dict.fromkeys(one for asked in broken for one in asked))
            # A change that the earlier turns make alone is not counted at this turn.
            failed = sum(
                breaks(turn, answers[alone]) or not breaks(turn, answers[around])
                for _, alone, around in broken
            )
            shares[turn_id(data, dialogue.id, turn.turn.index)] = failed / PLAIN
    return {"shares": shares}


def drawn(turns: Sequence[TurnAttempts], place: int) -> list[dict[int, str]]:
    """Return the users of `PLAIN` who mistype a turn, as number -> text of the turn."""
    turn, found = turns[place], []
    rng = stream(LARGE_SEED, "plain", turn.dialogue.id, place)
    for _ in range(PLAIN):
        # An earlier turn is clean or as people type it, by a fair coin.
        coins = rng.integers(2, size=place)
        users = {n: text for n in range(place) if coins[n] and (text := typed(turns[n], rng))}
        if text := typed(turn, rng):
            found.append({**users, place: text})
    return found


def typed(turn: TurnAttempts, rng: np.random.Generator) -> str:
    """Return a turn as a user types it, or ``""`` if it is clean or must not be tested."""
    source, perturber = turn.source, turn.rules.perturber
    if source is None or source.support is None or not isinstance(turn.clean, Prediction):
        return ""
    edits = source.support.noisy.draw(rng, perturber.noise.rate)
    variant = perturber.remake(source, edits)
    return variant.text if edits and variant.valid else ""


def halves(turns: Sequence[TurnAttempts], users: Mapping[int, str]) -> tuple[Context, ...]:
    """Return three contexts of a draw: with all turns as drawn, only the last, all others."""
    place = max(users)
    context, last = turns[0].dialogue.context, {place: users[place]}
    around = {number: text for number, text in users.items() if number != place}
    return context(place, dict(users)), context(place, last), context(place, around)


def breaks(turn: TurnAttempts, answer: object) -> bool:
    """Return whether an answer differs from the clean one, other than to the better."""
    if not isinstance(turn.begun, BySearch) or not isinstance(turn.clean, Prediction):
        return False
    if not isinstance(answer, Prediction):
        return False
    label = turn.rules.kind.label(turn.dialogue, turn.turn.index)
    return turn.begun.judge(turn.clean.state, answer.state, label).kind == "violation"


def read_or_make(path: Path, make: Callable[[], Run]) -> Run:
    """Read a stored result, or make it and store it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make()), encoding="utf-8")
        print(path, file=sys.stderr, flush=True)
    found: Run = json.loads(path.read_text(encoding="utf-8"))
    return found


#: Name of an order -> the figure that ranks a weakness, of its row and those of its run.
ORDERS: Final[dict[str, Callable[[Row, Sequence[Row]], float]]] = {
    "estimated rate": lambda one, _: one["rate"],
    "rate, then turns": lambda one, every: 1e6 * share("rate", one, every) + one["turns"],
    "turns broken": lambda one, _: one["turns"],
    "own turns": lambda one, _: one["own"],
    "shares of rate and all turns": lambda one, every: shares(one, every, "rate", "turns"),
    "pooled": lambda one, _: one["pooled"],
    "shares of rate and pooled": lambda one, every: shares(one, every, "rate", "pooled"),
    # The order of reports, but for ties.
    "shares of rate and own turns": lambda one, every: shares(one, every, "rate", "own"),
}


def shares(one: Row, every: Sequence[Row], *names: str) -> float:
    """Return the sum of a weakness's shares in several figures."""
    return sum(share(name, one, every) for name in names)


def share(name: str, one: Row, every: Sequence[Row]) -> float:
    """Return the share of a weakness in the sum of a figure over all weaknesses."""
    whole = sum(row[name] for row in every)
    return float(one[name] / whole) if whole else 0.0


def correlation(one: Run, two: Run, order: str, *, common: bool) -> float:
    """Return the rank correlation of two runs, or ``nan`` if one of them has no order."""
    figures = [
        {row["id"]: ORDERS[order](row, run["weaknesses"]) for row in run["weaknesses"]}
        for run in (one, two)
    ]
    ids = sorted(figures[0].keys() & figures[1] if common else figures[0].keys() | figures[1])
    ranks = [rankdata([figure.get(name, -1.0) for name in ids]) for figure in figures]
    if len(ids) < 2 or any(np.ptp(rank) == 0.0 for rank in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


def order_table(runs: Sequence[Run], large: Run, chosen: int) -> Iterator[str]:
    """Yield the mean rank correlations of each order, for the seeds that chose it and others."""
    yield "| order | seeds | two seeds | a seed and the large run | over all: two seeds | large |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in ORDERS:
        for how, some in (("choose", runs[:chosen]), ("test", runs[chosen:])):
            if not some:
                continue
            cells = []
            for common in (True, False):
                pairs = [correlation(*two, name, common=common) for two in combinations(some, 2)]
                with_large = [correlation(one, large, name, common=common) for one in some]
                cells += [mean_of(pairs), mean_of(with_large)]
            yield f"| {name} | {how} | {' | '.join(cells)} |"


def mean_of(figures: Sequence[float]) -> str:
    """Return the mean and the minimum of figures, as text."""
    known = [one for one in figures if not math.isnan(one)]
    return f"{fmean(known):.2f} (lowest {min(known):.2f})" if known else "n/a"


def coverage_table(runs: Sequence[Run], shares: Mapping[str, float]) -> Iterator[str]:
    """Yield a row for each seed, and how many intervals contain the plain count."""
    yield "| seed | variants | sampled | vacuous | estimate | interval | plain count | held |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    held = 0
    for seed, run in enumerate(runs, 1):
        truth = TURNS * fmean(shares[name] for name in run["turns"])
        low, high = run["interval"]
        held += low <= truth <= high
        yield (
            f"| {seed} | {run['variants']:,} | {run['sampled']:,} | {run['vacuous']:,} "
            f"| {run['per_1000']:.2f} | {low:.2f} to {high:.2f} | {truth:.2f} "
            f"| {'yes' if low <= truth <= high else 'no'} |"
        )
    yield f"\nThe interval holds the plain count in {held} of {len(runs)} seeds."


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the missing runs, and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the stored runs")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--seeds", type=int, default=20, help="number of default runs")
    parser.add_argument("--chosen", type=int, default=8, help="number of seeds that choose")
    parser.add_argument("--search", help="search of the default runs; use a folder of its own")
    parser.add_argument("--ranked", type=int, help="seeds with a whole run; the others: its sample")
    given = parser.parse_args(arguments)
    model, folder = given.model, given.folder / given.model
    large = settings_of(model, LARGE_SEED, search="noise", variants=LARGE, turns="all")
    first = Campaign(model, None, large)
    tracker = OnceAsked(first.tracker)

    def run(settings: Settings) -> Run:
        return kept(tuple(Campaign(tracker, None, settings)))

    whole = read_or_make(folder / "large.json", lambda: run(large))
    plain = read_or_make(folder / "plain.json", lambda: count(model, tracker, first.data))
    ranked = given.ranked or given.seeds
    runs = []
    for seed in range(1, given.seeds + 1):
        options = SAMPLE if seed > ranked else {"search": given.search} if given.search else {}
        settings = settings_of(model, seed, **options)
        runs.append(read_or_make(folder / f"{seed}.json", partial(run, settings)))
    print("\n".join(order_table(runs[:ranked], whole, given.chosen)), end="\n\n")
    print("\n".join(coverage_table(runs, plain["shares"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
