"""Does the stated interval hold the true number of violations of a bot that rewords its replies?

    python tests/campaign/reply_wobble_table.py --seeds 20

The bot of a shop answers every question right, however it is put, and says so in other words with
chance w, by draws from a generator of its own. Into some runs violations are planted: questions
that it answers with the reply to another one, each time. So the truth is known: those, and nothing
else. Compared by ``exact`` each way to reword a reply is another reply, which is the worst case.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from pytest_dstfuzz.campaign.answers import UNSTABLE
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.campaign.summary import Summary, summarise
from pytest_dstfuzz.comparisons.comparison import Comparison
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Exchange, Turn
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.seeding import stream

GOODS = (
    *("kettle", "bicycle", "raincoat", "lamp", "tent", "guitar", "toaster", "backpack", "pillow"),
    *("ladder", "camera", "blanket", "teapot", "hammer", "scarf", "mirror", "drill", "carpet"),
    *("printer", "saucepan"),
)
#: Questions about one of the goods, each with two ways to give the answer.
ASKED = (
    (
        "what does the {} cost in your shop",
        "The {} costs {} euros.",
        "You can have the {} for {} euros.",
    ),
    (
        "how long does it take to send it to me",
        "We deliver a {} within {} days.",
        "It takes {1} days until a {0} is at your door.",
    ),
    (
        "can you tell me how heavy it is please",
        "The {} weighs {} kilos.",
        "With its box the {} has a weight of {} kilos.",
    ),
)
BEFORE = ("", "Sure: ", "Of course. ", "Let me see. ", "Thank you for asking. ", "Here you are: ")
AFTER = ("", " I hope that helps.", " Is there anything else?", " Just ask if you need more.")
DIALOGUES = 60


@cache
def data() -> DialogueSet:
    dialogues = []
    for number in range(DIALOGUES):
        goods = GOODS[number % len(GOODS)]
        first = number // len(GOODS)
        users = [ASKED[(first + place) % len(ASKED)][0].format(goods) for place in range(2)]
        turns = tuple(
            Turn(place, f"You are looking at {goods} {number}." if not place else "", user)
            for place, user in enumerate(users)
        )
        dialogues.append(Dialogue(f"shop-{number:02}", turns))
    return DialogueSet("shop", "test", tuple(dialogues))


@cache
def openings() -> dict[str, Dialogue]:
    return {dialogue.turns[0].system: dialogue for dialogue in data().dialogues}


def said(dialogue: Dialogue, index: int, way: int) -> str:
    """Return the right reply to a question, in one of two ways."""
    place = data().dialogues.index(dialogue)
    asked = ASKED[(place // len(GOODS) + index) % len(ASKED)]
    return asked[1 + way].format(GOODS[place % len(GOODS)], 3 + 2 * place + 150 * index)


@dataclass
class ShopBot:
    """Knows by the opening and by the round what is asked, however it is put."""

    wobble: float
    seed: int
    #: Contexts that are answered with the reply to another question.
    planted: Mapping[tuple[Exchange, ...], str] = field(default_factory=dict)
    times: Counter[tuple[Exchange, ...]] = field(default_factory=Counter)

    def predict(self, contexts: Sequence[Context]) -> list[str]:
        return [self.reply(context.exchanges) for context in contexts]

    def reply(self, exchanges: tuple[Exchange, ...]) -> str:
        number = self.times[exchanges]
        self.times[exchanges] += 1
        digest = hashlib.sha256(f"{self.seed} {exchanges} {number}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        reworded = rng.random() < self.wobble
        found = self.planted.get(exchanges)
        if found is None:
            dialogue = openings()[exchanges[0].system]
            found = said(dialogue, len(exchanges) - 1, int(reworded and rng.random() < 0.5))
        if not reworded:
            return found
        return f"{BEFORE[rng.integers(len(BEFORE))]}{found}{AFTER[rng.integers(len(AFTER))]}"


def run(
    seed: int, bot: ShopBot, compared: Comparison, dialogues: int
) -> tuple[list[TurnResult], Summary]:
    """Run a campaign of the first dialogues; return its turns and its figures."""
    settings = Settings.of(
        outcome="reply", validity="strict", seed=seed, attack="non-cumulative", shrink=False
    )
    door = predictor_for(settings, data(), bot, wobbles=True)  # type: ignore[arg-type]
    plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in data().dialogues[:dialogues]]
    campaign = CampaignEngine(
        settings, data(), door, load_lexicon(), plan=plan, comparison=compared
    )
    results = list(campaign.run())
    return results, summarise(results)


@cache
def plants(seed: int, count: int, dialogues: int) -> dict[tuple[Exchange, ...], str]:
    """Draw variants of so many turns, each with the reply to another question."""
    turns, _ = run(
        seed, ShopBot(0.0, seed), comparison_by_name("exact", Settings().reply), dialogues
    )
    able = [turn for turn in turns if any(item.outcome == "held" for item in turn.variants)]
    rng = stream(seed, "planted")
    found = {}
    for place in rng.permutation(len(able))[:count].tolist():
        turn = able[place]
        run_ones = [item for item in turn.variants if item.outcome == "held"]
        text = run_ones[int(rng.integers(len(run_ones)))].text
        dialogue = next(one for one in data().dialogues if one.id == turn.dialogue_id)
        other = data().dialogues[(data().dialogues.index(dialogue) + 7) % len(data().dialogues)]
        exchanges = dialogue.context(turn.turn_index, {turn.turn_index: text}).exchanges
        found[exchanges] = said(other, turn.turn_index, 0)
    return found


@dataclass(frozen=True)
class Row:
    """One run beside the truth."""

    true: int
    reported: int
    hits: int
    low: int
    high: int
    noise: float
    missed: float
    unstable: int
    calls: int

    @property
    def holds(self) -> bool:
        return self.low <= self.true <= self.high


def row(seed: int, name: str | None, wobble: float, count: int, dialogues: int = DIALOGUES) -> Row:
    """Run the bot that rewords its replies, with so many planted violations."""
    planted = plants(seed, count, dialogues)
    bot = ShopBot(wobble, seed, planted)
    results, summary = run(seed, bot, comparison_by_name(name, Settings().reply), dialogues)
    said_wrong = {exchanges[-1].user for exchanges in planted}
    found = [item.text for turn in results for item in turn.violations]
    assert summary.noise is not None
    low, high = summary.noise.real_violations
    return Row(
        true=len(planted),
        reported=len(found),
        hits=sum(text in said_wrong for text in found),
        low=low,
        high=high,
        noise=summary.noise.expected_noise,
        missed=summary.noise.expected_missed,
        unstable=sum(turn.reason == UNSTABLE for turn in results),
        calls=summary.calls,
    )


def table(
    seeds: range,
    names: Sequence[str | None],
    wobbles: Sequence[float],
    counts: Sequence[int],
    dialogues: int,
) -> Iterator[str]:
    """Yield the lines of the table: one for each comparison, chance and number of planted ones."""
    yield (
        "compared by       w  planted  reported  false  expected  missed  expected  unstable"
        "  width  calls  interval holds"
    )
    for name in names:
        for wobble in wobbles:
            for count in counts:
                rows = [row(seed, name, wobble, count, dialogues) for seed in seeds]

                def mean(kind: str, of: Sequence[Row] = rows) -> float:
                    return sum(getattr(one, kind) for one in of) / len(of)

                yield (
                    f"{name or 'the default':<11}  {wobble:6.2f}  {mean('true'):7.1f}  "
                    f"{mean('reported'):8.1f}  {mean('reported') - mean('hits'):5.1f}  "
                    f"{mean('noise'):8.1f}  {mean('true') - mean('hits'):6.1f}  "
                    f"{mean('missed'):8.1f}  {mean('unstable'):8.1f}  "
                    f"{mean('high') - mean('low'):5.1f}  {mean('calls'):5.0f}  "
                    f"{sum(one.holds for one in rows)} of {len(rows)}"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--wobbles", type=float, nargs="*", default=[0.0, 0.05, 0.2])
    parser.add_argument("--planted", type=int, nargs="*", default=[0, 10])
    parser.add_argument("--compare", nargs="*", default=["exact", "embedding", ""])
    parser.add_argument("--dialogues", type=int, default=DIALOGUES)
    given = parser.parse_args()
    drawn = range(given.first_seed, given.first_seed + given.seeds)
    chosen = [name or None for name in given.compare]
    for line in table(drawn, chosen, given.wobbles, given.planted, given.dialogues):
        print(line, flush=True)
