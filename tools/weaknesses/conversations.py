"""Checks the estimate for whole conversations with slips against an independent count.

::

    python -m tools.weaknesses.conversations .work/conversations --data ../shared/data/multiwoz21

Draws dialogues of the test split, and makes three things: a *plain count*, runs of the product with
different seeds, and a plain count with *slips anywhere*. It keeps the figures of each in the folder
and does not make them again. Writes Markdown to standard output.

The plain counts draw users, not outcomes: each word of each turn slips or not, as the noise model
says, and the turns are counted at which TRADE's answer is not that of the unmodified dialogue. With
slips anywhere, no lock and no reader of slips excludes any. The runs have one conversation of each
dialogue, so their intervals are as wide as they get.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.campaign.attempts import TurnAttempts, begin_turn
from pytest_dstfuzz.campaign.campaign import Campaign
from pytest_dstfuzz.campaign.engine import predictor_for
from pytest_dstfuzz.campaign.figures import TURNS, ExpectedTally, tally_results
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.facts import without_slips
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.perturb.edits import apply_edits
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker
from tools.weaknesses.order import OnceAsked, Run, read_or_make, typed

#: Types a turn, or returns ``""`` if it has no slip.
Typist = Callable[[TurnAttempts, np.random.Generator], str]


def settings_of(seed: int, **options: Any) -> Settings:
    """Return the settings of a run with whole conversations."""
    return Settings.of(
        model="trade",
        seed=seed,
        turns=None,
        search="noise",
        attack="cumulative",
        shrink=False,
        **options,
    )


def chosen(given: str, dialogues: int) -> DialogueSet:
    """Return dialogues of the test split, drawn by seed 0."""
    data = load_dialogues(given, "test")
    order = stream(0, "dialogues").permutation(len(data.dialogues))[:dialogues]
    return replace(data, dialogues=tuple(data.dialogues[place] for place in sorted(order)))


def anywhere(turn: TurnAttempts, rng: np.random.Generator) -> str:
    """Return a turn as a user types it, with slips in any word."""
    noise = turn.rules.perturber.noise
    edits = noise.model.draw(turn.turn.user, rng, noise.rate)
    return apply_edits(turn.turn.user, edits) if edits else ""


def count(tracker: Tracker, data: DialogueSet, users: int, seed: int, typist: Typist) -> Run:
    """Return what ``users`` users of each dialogue meet, one after the other."""
    settings = settings_of(seed)
    rules = CampaignSpec.of(settings.variant, data, load_lexicon(), reply=settings.reply)
    predictor = predictor_for(settings, data, tracker)
    counts, broken = Counter[str](), 0
    for dialogue in data.dialogues:
        contexts = [dialogue.context(index) for index in range(len(dialogue.turns))]
        answers = predictor.predict(contexts)
        turns = [begin_turn(rules, dialogue, i, answers[one]) for i, one in enumerate(contexts)]
        rng = stream(seed, typist.__name__, dialogue.id)
        met = [list(conversation(dialogue, turns, rng, typist)) for _ in range(users)]
        answers = predictor.predict([one for each in met for one in each if one is not None])
        for each in met:
            kinds = [
                "same" if one is None else kind_of(turn, one, answers[one])
                for turn, one in zip(turns, each, strict=True)
            ]
            counts.update(kinds)
            broken += "fails" in kinds
    turns_met = sum(counts.values())
    return {
        "turns": turns_met,
        "conversations": users * len(data.dialogues),
        "differ": TURNS * (turns_met - counts["same"]) / turns_met,
        "fail": TURNS * counts["fails"] / turns_met,
        "broken": broken / (users * len(data.dialogues)),
    }


def conversation(
    dialogue: Dialogue, turns: Sequence[TurnAttempts], rng: np.random.Generator, typist: Typist
) -> Iterator[Context | None]:
    """Yield the contexts of one user; ``None`` before the first slip."""
    users: dict[int, str] = {}
    for index, turn in enumerate(turns):
        if text := typist(turn, rng):
            users[index] = text
        yield dialogue.context(index, users) if users else None


def kind_of(turn: TurnAttempts, context: Context, answer: Answer) -> str:
    """Return ``same``, ``fails`` or ``other``: a correction, or an open value as it was typed."""
    assert isinstance(turn.clean, Prediction)  # noqa: S101 - TRADE always answers
    assert isinstance(answer, Prediction)  # noqa: S101
    clean, now = turn.clean.state, answer.state
    label = turn.turn.state or BeliefState()
    changed = [slot for slot in {**clean, **now} if clean.get(slot) != now.get(slot)]
    if not changed:
        return "same"
    as_typed = {
        slot
        for slot in changed
        if slot in clean and slot in now
        if without_slips(now[slot], turn.clean_context, context).lower() == clean[slot].lower()
        if not turn.rules.kind.is_closed(turn.rules.data, slot)
    }
    wrong = [slot for slot in changed if slot not in as_typed and now.get(slot) != label.get(slot)]
    return "fails" if wrong else "other"


def run(tracker: Tracker, data: DialogueSet, settings: Settings) -> Run:
    """Return the figures of a run of the product."""
    expected = tally_results(ExpectedTally(), tuple(Campaign(tracker, data, settings))).expected
    found: Run = to_json(expected)
    return found


def lines(plain: Run, free: Run, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the tables."""
    yield "| plain count | conversations | turns | differ | change, not corrected | conversations |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, one in (("slips that a reader recovers", plain), ("slips anywhere", free)):
        yield (
            f"| {name} | {one['conversations']:,} | {one['turns']:,} | {one['differ']:.1f} "
            f"| {one['fail']:.1f} | {one['broken']:.1%} |"
        )
    yield "\n| seed | of 1,000 turns | interval | held | conversations | interval | held |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    held = [0, 0]
    for seed, each in enumerate(runs, 1):
        one = each["conversation"]
        (low, high), (least, most) = one["interval"], one["broken_share_interval"]
        here = low <= plain["fail"] <= high, least <= plain["broken"] <= most
        held = [number + now for number, now in zip(held, here, strict=True)]
        said = ["yes" if now else "no" for now in here]
        yield (
            f"| {seed} | {one['per_1000']:.1f} | {low:.1f} to {high:.1f} | {said[0]} "
            f"| {one['broken_share']:.1%} | {least:.1%} to {most:.1%} | {said[1]} |"
        )
    mean = np.mean([one["conversation"]["per_1000"] for one in runs])
    share = np.mean([one["conversation"]["broken_share"] for one in runs])
    yield (
        f"\nMean {mean:.1f} of 1,000 turns and {share:.1%} of the conversations. The intervals "
        f"hold the plain count in {held[0]} and {held[1]} of {len(runs)} seeds."
    )
    for name in runs[0]["accuracy"]:
        yield f"Accuracy, {name}: {np.mean([one['accuracy'][name] for one in runs]):.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the missing counts and runs, and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the stored figures")
    parser.add_argument("--data", required=True, help="what --dst-data takes")
    parser.add_argument("--dialogues", type=int, default=200, help="number of dialogues")
    parser.add_argument("--users", type=int, default=10, help="users of each dialogue in a count")
    parser.add_argument("--seed", type=int, default=1_002, help="seed of the plain counts")
    parser.add_argument("--seeds", type=int, default=20, help="number of runs")
    given = parser.parse_args(arguments)
    data, folder = chosen(given.data, given.dialogues), given.folder
    tracker = OnceAsked(Campaign("trade", data, settings_of(given.seed)).tracker)
    counted = partial(count, tracker, data, given.users, given.seed)
    plain = read_or_make(folder / "plain.json", partial(counted, typed))
    free = read_or_make(folder / "anywhere.json", partial(counted, anywhere))
    runs = [
        read_or_make(
            folder / f"{seed}.json", partial(run, tracker, data, settings_of(seed, variants=1))
        )
        for seed in range(1, given.seeds + 1)
    ]
    print("\n".join(lines(plain, free, runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
