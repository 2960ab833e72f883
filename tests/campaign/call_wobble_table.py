"""Faults found and false violations of an assistant whose tool calls vary, by who decides.

    python tests/campaign/call_wobble_table.py --seeds 20

A simulated endpoint books tables: of each request it knows the right call, and with chance w, by
draws from a generator of its own, it makes another one: always the same other one (the worst
case), or one with another number of guests each time. Planted into it are faults: variants for
which it books in another part of town, but for a chance of w, with which it makes the right call.
So the truth is known: those, and nothing else. Decided are they by three answers to each context
and the majority (three fixed votes), by ``dst_votes``, or by the sequential test.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.comparisons.calls import comparison_of_calls
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import Outcome, Tool, ToolCall, calls_outcome, canonical
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Exchange, Turn
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

DIALOGUES, PLANTED = 60, 40
ASKED = (
    "could you please find me a nice place to eat and book it for us",
    "we would like to have dinner somewhere quiet so please get us a table",
    "my friends and I are hungry, reserve something cheap that is not far away",
)
PARTS = ("north", "south", "east", "west")
SCHEMA = {"properties": {"people": {"type": "integer"}, "area": {"type": "string"}}}
Exchanges = tuple[Exchange, ...]


@cache
def data() -> DialogueSet:
    tool = Tool("book_table", "Book a table.", canonical(SCHEMA))
    dialogues = tuple(
        Dialogue(f"table-{n:02}", (Turn(0, f"Request {n}.", ASKED[n % len(ASKED)]),), (tool,))
        for n in range(DIALOGUES)
    )
    return DialogueSet("tables", "test", dialogues)


@dataclass
class BookingEndpoint:
    """Knows by the opening what is asked, however it is put."""

    wobble: float
    seed: int
    #: Whether its wrong calls are always the same.
    same: bool = True
    #: Contexts for which it books elsewhere.
    planted: frozenset[Exchanges] = frozenset()
    times: Counter[Exchanges] = field(default_factory=Counter)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        return [Prediction(Outcome(), calls=self.calls(context.exchanges)) for context in contexts]

    def calls(self, exchanges: Exchanges) -> Outcome:
        number = self.times[exchanges]
        self.times[exchanges] += 1
        digest = hashlib.sha256(f"{self.seed} {exchanges} {number}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        place = int(exchanges[0].system.split()[1].rstrip("."))
        people, area, faulty = 2 + place % 5, place % 4, exchanges in self.planted
        wobbles = rng.random() < self.wobble
        if faulty and not wobbles:
            area = (area + 2) % 4
        elif wobbles and not faulty:
            people += 7 if self.same else int(rng.integers(7, 99))
        return calls_outcome([ToolCall("book_table", {"people": people, "area": PARTS[area]})])


def run(
    seed: int, endpoint: BookingEndpoint, dialogues: int = DIALOGUES, **options: object
) -> list[TurnResult]:
    """Run a campaign; the options say how a violation is told from noise."""
    settings = Settings.of(
        outcome="tool-calls",
        validity="strict",
        seed=seed,
        attack="non-cumulative",
        shrink=False,
        **options,
    )
    door = predictor_for(settings, data(), endpoint, wobbles=True)  # type: ignore[arg-type]
    plan = [(dialogue, 0) for dialogue in data().dialogues[:dialogues]]
    comparison = comparison_of_calls(data(), settings.reply)
    campaign = CampaignEngine(
        settings, data(), door, load_lexicon(), plan=plan, comparison=comparison
    )
    return list(campaign.run())


@cache
def variants(seed: int) -> tuple[Exchanges, ...]:
    """Return what the variants of a seed show the endpoint: those that are run."""
    found = run(seed, BookingEndpoint(0.0, seed), votes=1)
    return tuple(
        data().dialogues[place].context(0, {0: item.text}).exchanges
        for place, turn in enumerate(found)
        for item in turn.variants
        if item.outcome == "held"
    )


@cache
def plants(seed: int) -> frozenset[Exchanges]:
    """Draw some of the variants: what is wrong with the endpoint."""
    known = variants(seed)
    chosen = stream(seed, "planted").permutation(len(known))[:PLANTED]
    return frozenset(known[place] for place in chosen.tolist())


@dataclass(frozen=True)
class Counted:
    """Counts of the variants of one run, beside the truth."""

    found: int
    missed: int
    false: int
    sound: int
    unstable: int
    calls: int


def counted(seed: int, told: Mapping[Exchanges, str], calls: int) -> Counted:
    """Count outcomes of variants: ``violation``, ``held`` or ``unstable``."""
    planted = plants(seed)
    kinds = Counter((exchanges in planted, outcome) for exchanges, outcome in told.items())
    return Counted(
        found=kinds[True, "violation"],
        missed=kinds[True, "held"],
        false=kinds[False, "violation"],
        sound=len(told) - len(planted),
        unstable=kinds[True, "unstable"] + kinds[False, "unstable"],
        calls=calls,
    )


def fixed(seed: int, endpoint: BookingEndpoint) -> Counted:
    """Ask for each context three times, and let the majority of whole answers decide."""

    def usual(exchanges: Exchanges) -> Outcome:
        answers = Counter(endpoint.calls(exchanges) for _ in range(3))
        return answers.most_common(1)[0][0]

    clean = {d.turns[0].system: usual(d.context(0).exchanges) for d in data().dialogues}
    told = {
        one: "held" if usual(one) == clean[one[0].system] else "violation" for one in variants(seed)
    }
    return counted(seed, told, endpoint.times.total())


def row(seed: int, wobble: float, *, same: bool, **options: object) -> Counted:
    """Run the endpoint with its faults; without options by three fixed votes."""
    endpoint = BookingEndpoint(wobble, seed, same, plants(seed))
    if not options:
        return fixed(seed, endpoint)
    results = run(seed, endpoint, **options)
    told = {
        data().dialogues[place].context(0, {0: item.text}).exchanges: str(item.outcome)
        for place, turn in enumerate(results)
        for item in turn.variants
        if item.outcome in ("held", "violation", "unstable")
    }
    # A clean turn without a usual answer is not tested, nor are its variants.
    told = {one: told.get(one, "unstable") for one in variants(seed)}
    return counted(seed, told, endpoint.times.total())


DECIDES: Mapping[str, Mapping[str, object]] = {
    "three fixed votes": {},
    "dst_votes=3": {"votes": 3},
    "--dst-error-rate=5%": {"error_rate": 0.05},
    "--dst-error-rate=5%,20%": {"error_rate": (0.05, 0.2)},
    "--dst-error-rate=1%": {"error_rate": 0.01},
}


def table(seeds: range, wobbles: Sequence[float]) -> Iterator[str]:
    """Yield the lines of the table in Markdown, means over the seeds."""
    heads = ("wrong calls", "chance", "who decides", "faults found", "false violations")
    yield f"| {' | '.join((*heads, 'missed', 'unstable', 'calls'))} |"
    yield f"|{' --- |' * 8}"
    for same in (True, False):
        for wobble in wobbles:
            for name, options in DECIDES.items():
                rows = [row(seed, wobble, same=same, **options) for seed in seeds]
                total = {
                    kind: sum(getattr(one, kind) for one in rows)
                    for kind in Counted.__dataclass_fields__
                }
                planted = PLANTED * len(rows)
                yield (
                    f"| {'always the same' if same else 'different ones'} | {100 * wobble:g} % "
                    f"| `{name}` | {total['found']} of {planted} "
                    f"| {total['false']} of {total['sound']} "
                    f"({100 * total['false'] / total['sound']:.2f} %) "
                    f"| {100 * total['missed'] / planted:.2f} % "
                    f"| {100 * total['unstable'] / (planted + total['sound']):.2f} % "
                    f"| {total['calls'] / len(rows):,.0f} |"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--wobbles", type=float, nargs="*", default=[0.0, 0.05, 0.2])
    given = parser.parse_args()
    drawn = range(given.first_seed, given.first_seed + given.seeds)
    for line in table(drawn, given.wobbles):
        print(line, flush=True)
