"""Trains the supervised negotiator, and measures it on what it never saw and against itself.

``python -m pytest_dstfuzz.games.negotiation --data DIR --output DIR`` reads the files of Lewis et
al. (2017) and writes ``negotiator.safetensors`` and ``negotiation.json``. The data is for research
and not for trade (CC BY-NC), and so is what is trained on it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.files import write_json


def main(arguments: Sequence[str]) -> int:
    """Train and measure."""
    given = vars(_parser().parse_all(arguments))
    games = given.pop("games")
    with needs_extra("training a negotiator", "train", "torch"):
        from pytest_dstfuzz.games.negotiation.agent import (  # noqa: PLC0415 - torch
            NegotiatorAgent,
            negotiate,
        )
        from pytest_dstfuzz.games.negotiation.corpus import load_negotiations  # noqa: PLC0415 - with it
        from pytest_dstfuzz.games.negotiation.supervised import (  # noqa: PLC0415 - torch
            MODEL_FILE,
            SupervisedConfig,
            measure,
            train_supervised,
        )
        from pytest_dstfuzz.trackers.neural import threads  # noqa: PLC0415 - torch
    from pytest_dstfuzz.games.deal import DealGame  # noqa: PLC0415 - help should not wait
    from pytest_dstfuzz.games.figures import GameFigures  # noqa: PLC0415 - likewise

    config = SupervisedConfig(**given)
    with threads(1):
        history = train_supervised(config, lambda line: print(line, flush=True))
        agent = NegotiatorAgent.load(config.output / MODEL_FILE, seed=config.seed)
        fit = measure(agent.network, load_negotiations(config.data).test)
        print(
            f"test: perplexity {fit.perplexity:.3f} ({fit.published:.3f} as the published figures "
            f"count), selections right {fit.selected:.3f}",
            flush=True,
        )
        start = time.monotonic()
        other = NegotiatorAgent(agent.network, seed=config.seed + 1)
        scenarios = DealGame().scenarios(games, config.seed)
        ends = [negotiate(scenario, agent, other) for scenario in scenarios]
        pace = games / (time.monotonic() - start)
    figures = GameFigures.of([scores for scores, _ in ends], sum(agreed for _, agreed in ends))
    print(
        f"self-play, {games} games: {figures.adversary:.2f} : {figures.target:.2f}, agreed "
        f"{figures.agreement:.3f}, {pace:.1f} games a second"
    )
    write_json(
        config.output / "negotiation.json",
        {
            "epochs": [asdict(epoch) for epoch in history],
            "test": fit._asdict(),
            "self_play": asdict(figures),
        },
    )
    return 0


def _parser() -> Parser:
    parser = Parser("python -m pytest_dstfuzz.games.negotiation", __doc__ or "")
    parser.value("--data", Path, "DIR", required=True, help="folder of data.txt, val.txt, test.txt")
    parser.value("--output", Path, "DIR", required=True, help="folder for what is trained")
    number = integer(1)
    parser.value("--epochs", number, "N", default=12, help="passes over the data (default: 12)")
    parser.value("--games", number, "N", default=500, help="games against itself (default: 500)")
    parser.value("--seed", integer(0), "N", default=0, help="seed of every draw")
    goes_on = "go on from the last epoch in the output folder"
    parser.option("--resume", action="store_true", help=goes_on)
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"error: {error}")
