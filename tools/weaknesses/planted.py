"""Measures how many calls a search needs to find all five planted faults of a tracker.

``python -m tools.weaknesses.planted --searches random,near-value,greedy,noise --seeds 20`` writes
Markdown to standard output.

Each search runs on the same dialogues under the profile ``natural``, once for each seed. The calls
are counted in this order: the clean turns, then pass by pass the variants of all turns, with the
calls that show whether a violation comes from its turn or from its context. If the search learns
during the run, each round of dialogues is counted like this before the next one. A fault is found
by the first violation that vanishes if this fault alone is mended.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.learning import rounds_of
from pytest_dstfuzz.campaign.results import RUN_OUTCOMES, TurnResult, VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.search.registry import search_by_name
from pytest_dstfuzz.weaknesses.groups import read
from tools.weaknesses.planted_bot import FAULTS, PlantedBot, causes, dialogues

_QUARTILES: Final = (25, 50, 75)


class Found(NamedTuple):
    """The faults that one campaign found, and after how many calls."""

    #: Fault -> calls made once the first violation by it was there.
    calls: Mapping[str, int]
    #: Calls of the whole campaign.
    total: int
    #: (fault, weakness, slot) -> violations.
    weaknesses: Counter[tuple[str, str, str]]

    def until_all(self) -> float:
        """Return the calls until all faults were found, or infinity if some were not."""
        return max(self.calls.get(fault, math.inf) for fault in FAULTS)


def play(search: str, seed: int, data: DialogueSet, variants: int) -> Found:
    """Run a campaign with at most ``variants`` variants of a turn."""
    settings = Settings.of(
        validity="natural", search=search, seed=seed, variants=variants, turns=None
    )
    results = tuple(Campaign(PlantedBot(), data, settings))
    return look(rounds(results, data, settings), data)


def rounds(
    results: Sequence[TurnResult], data: DialogueSet, settings: Settings
) -> list[list[TurnResult]]:
    """Return the results of a campaign on all turns, by the order in which the dialogues ran."""
    variant = settings.variant
    search = search_by_name(variant.search, seed=variant.seed, k=variant.transformations)
    plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in data.dialogues]
    learned = rounds_of(search, variant.seed, plan)
    place = {one.id: number for number, some in enumerate(learned) for one, _ in some}
    found: dict[int, list[TurnResult]] = {}
    for turn in results:
        found.setdefault(place.get(turn.dialogue_id, len(learned)), []).append(turn)
    return [found[number] for number in sorted(found)]


def look(
    groups: Sequence[Sequence[TurnResult]],
    data: DialogueSet,
    causes: Callable[[Context], Sequence[str]] = causes,
) -> Found:
    """Go through the results of a campaign in the order of its calls.

    Args:
        groups: the results, as `rounds` returns them.
        data: the dialogues.
        causes: returns the faults that each alone explain the mistake in a context.
    """
    spoken = {dialogue.id: dialogue for dialogue in data.dialogues}
    # Like the engine's: the same context in two dialogues counts in each.
    asked: set[tuple[str, Context]] = set()
    found: dict[str, int] = {}
    weaknesses: Counter[tuple[str, str, str]] = Counter()
    for results in groups:
        asked |= {
            (turn.dialogue_id, spoken[turn.dialogue_id].context(turn.turn_index))
            for turn in results
        }
        for tried in _by_pass(results):
            probes: set[tuple[str, Context]] = set()
            for turn, variant in tried:
                dialogue = spoken[turn.dialogue_id]
                context = _context(dialogue, turn, variant, variant.text)
                asked.add((dialogue.id, context))
                if variant.outcome != "violation":
                    continue
                if variant.context_edits:
                    alone = dialogue.context(turn.turn_index, {turn.turn_index: variant.text})
                    around = _context(dialogue, turn, variant, turn.user)
                    probes |= {(dialogue.id, alone), (dialogue.id, around)}
                key, _, slot = read(turn, variant)
                for fault in causes(context):
                    found.setdefault(fault, len(asked))
                    weaknesses[fault, key.id, slot] += 1
            asked |= probes
    return Found(found, len(asked), weaknesses)


def _by_pass(results: Sequence[TurnResult]) -> Iterator[list[tuple[TurnResult, VariantResult]]]:
    """Yield the variants of each pass that were run, with their turns."""
    passes: dict[int, list[tuple[TurnResult, VariantResult]]] = {}
    for turn in results:
        for variant in turn.variants:
            if variant.valid and variant.outcome in RUN_OUTCOMES:
                passes.setdefault(variant.index, []).append((turn, variant))
    for number in sorted(passes):
        yield passes[number]


def _context(dialogue: Dialogue, turn: TurnResult, variant: VariantResult, user: str) -> Context:
    """Return the context of a variant, with an utterance at its end."""
    users = dict(enumerate(variant.context))
    return dialogue.context(turn.turn_index, {**users, turn.turn_index: user})


def lines(searches: Sequence[str], seeds: int, data: DialogueSet, variants: int) -> Iterator[str]:
    """Run all campaigns and yield the tables."""
    runs: dict[str, list[Found]] = {}
    for search in searches:
        runs[search] = [play(search, seed, data, variants) for seed in range(seeds)]
        print(f"{search}: done", file=sys.stderr, flush=True)
    yield (
        f"{len(data.dialogues)} dialogues, {data.turn_count()} turns, at most {variants} variants "
        f"of a turn, seeds 0 to {seeds - 1}."
    )
    yield ""
    yield from _until_all(runs, seeds)
    yield ""
    yield from _by_fault(runs)
    yield ""
    yield from _by_weakness(runs)


def _until_all(runs: Mapping[str, Sequence[Found]], seeds: int) -> Iterator[str]:
    yield "| search | all five: median | quartiles | seeds | calls of a run |"
    yield "| --- | --- | --- | --- | --- |"
    for search, found in runs.items():
        calls = [one.until_all() for one in found]
        low, median, high = _quartiles(calls)
        whole = _calls(float(np.median([one.total for one in found])))
        share = f"{sum(map(math.isfinite, calls))} of {seeds}"
        yield f"| `{search}` | {median} | {low} to {high} | {share} | {whole} |"


def _by_fault(runs: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    yield "| fault: median (seeds) | " + " | ".join(f"`{search}`" for search in runs) + " |"
    yield "| --- |" + " --- |" * len(runs)
    for slot, fault in FAULTS.items():
        cells = []
        for found in runs.values():
            calls = [one.calls.get(slot, math.inf) for one in found]
            cells.append(f"{_quartiles(calls)[1]} ({sum(map(math.isfinite, calls))})")
        yield f"| {fault} | " + " | ".join(cells) + " |"


def _by_weakness(runs: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    """Yield the ids of the weaknesses under which the violations of each fault are."""
    together: Counter[tuple[str, str, str]] = Counter()
    for found in runs.values():
        for one in found:
            together.update(one.weaknesses)
    yield "| fault | weakness | slot | violations |"
    yield "| --- | --- | --- | --- |"
    for of, fault in FAULTS.items():
        mine = [(-count, *key) for key, count in together.items() if key[0] == of]
        for count, _, weakness, slot in sorted(mine):
            yield f"| {fault} | `{weakness}` | `{slot}` | {-count:,} |"


def _quartiles(calls: Sequence[float]) -> tuple[str, str, str]:
    """Return quartiles that are calls of actual campaigns, so that one may be infinity."""
    low, median, high = np.percentile(calls, _QUARTILES, method="higher").tolist()
    return _calls(low), _calls(median), _calls(high)


def _calls(count: float) -> str:
    return f"{count:,.0f}" if math.isfinite(count) else "not found"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--searches", default="random,near-value,greedy,noise", help="by name")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument(
        "--variants", type=int, default=32, help="maximum number of variants of a turn"
    )
    parser.add_argument("--dialogues", type=int, default=16, help="how many")
    given = parser.parse_args(arguments)
    data = dialogues(given.dialogues)
    try:
        for line in lines(given.searches.split(","), given.seeds, data, given.variants):
            print(line, flush=True)
    except DstFuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
