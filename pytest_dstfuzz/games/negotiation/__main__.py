"""Train negotiators: ``python -m pytest_dstfuzz.games.negotiation supervised`` or ``reinforced``.

The supervised negotiator learns to talk and select as people did, from the files of Lewis et al.
(2017). The reinforced negotiator then learns from games. It maximises its score. As an attack, it
maximises its score minus the other side's. The data and the negotiators trained on it are for
research, not for commercial use (CC BY-NC).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.files import write_json

_PROGRAM: Final = "python -m pytest_dstfuzz.games.negotiation"
_EXAMPLES: Final = f"""\
  {_PROGRAM} supervised --data negotiation --output sv
  {_PROGRAM} reinforced --data negotiation --start sv/negotiator.safetensors --output rl
  {_PROGRAM} reinforced --data negotiation --start sv/negotiator.safetensors --output attack \\
      --partner rl/negotiator.safetensors --aim advantage
Each has its own --help."""
#: Aim of a training -> description.
_AIMS: Final = {
    "score": "own score",
    "advantage": "attack: own score minus the score of the other side",
}


def main(arguments: Sequence[str]) -> int:
    """Run the training that the arguments ask for."""
    parser = Parser(_PROGRAM, __doc__ or "", _EXAMPLES)
    kinds = {"supervised": _supervised, "reinforced": _reinforced}
    kind = choice("training", kinds)
    parser.add_argument("training", metavar="TRAINING", type=kind, help=" or ".join(kinds))
    train = kinds[parser.parse_all(arguments[:1]).training]
    with needs_extra("training a negotiator", "train", "torch"):
        from pytest_dstfuzz.models.neural import threads  # noqa: PLC0415 - torch
    with threads(1):
        train(arguments[1:])
    return 0


def _parser(name: str, about: str) -> Parser:
    parser = Parser(f"{_PROGRAM} {name}", about)
    parser.value(
        "--data", Path, "DIR", required=True, help="folder with data.txt, val.txt and test.txt"
    )
    parser.value("--output", Path, "DIR", required=True, help="folder for the trained negotiator")
    parser.value("--seed", integer(0), "N", default=0, help="seed of all random choices")
    goes_on = "continue the run in the output folder"
    parser.option("--resume", action="store_true", help=goes_on)
    return parser


def _say(line: str) -> None:
    print(line, flush=True)


def _supervised(arguments: Sequence[str]) -> None:
    parser = _parser(
        "supervised", "Train a negotiator on dialogues of people, then let it play against itself."
    )
    number = integer(1)
    parser.value(
        "--epochs", number, "N", default=12, help="number of passes over the data (default: 12)"
    )
    parser.value(
        "--games", number, "N", default=500, help="number of games against itself (default: 500)"
    )
    given: dict[str, Any] = vars(parser.parse_all(arguments))
    games = given.pop("games")
    from pytest_dstfuzz.games.deal import DealGame  # noqa: PLC0415 - help should not wait
    from pytest_dstfuzz.games.game import GameFigures  # noqa: PLC0415 - likewise
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

    config = SupervisedConfig(**given)
    history = train_supervised(config, _say)
    agent = NegotiatorAgent.load(config.output / MODEL_FILE, seed=config.seed)
    fit = measure(agent.network, load_negotiations(config.data).test)
    _say(
        f"test: perplexity {fit.perplexity:.3f} ({fit.published:.3f} computed as in the published "
        f"figures), correct selections {fit.selected:.3f}"
    )
    start = time.monotonic()
    other = NegotiatorAgent(agent.network, seed=config.seed + 1)
    ends = [negotiate(one, agent, other) for one in DealGame().scenarios(games, config.seed)]
    pace = games / (time.monotonic() - start)
    figures = GameFigures.of([scores for scores, _ in ends], sum(agreed for _, agreed in ends))
    _say(
        f"self-play, {games} games: {figures.adversary:.2f} : {figures.target:.2f}, agreed "
        f"{figures.agreement:.3f}, {pace:.1f} games per second"
    )
    write_json(
        config.output / "negotiation.json",
        {
            "epochs": [asdict(epoch) for epoch in history],
            "test": fit._asdict(),
            "self_play": asdict(figures),
        },
    )


def _reinforced(arguments: Sequence[str]) -> None:
    parser = _parser("reinforced", "Train a negotiator further by games against another.")
    parser.value("--start", Path, "FILE", required=True, help="negotiator to train")
    partner = "negotiator to play against. It is not trained (default: a copy of --start)"
    parser.value("--partner", Path, "FILE", help=partner)
    aims = "; ".join(f"{name}: {what}" for name, what in _AIMS.items())
    parser.value(
        "--aim", choice("aim", _AIMS), "NAME", default="score", help=f"{aims} (default: score)"
    )
    parser.value("--rounds", integer(1), "N", default=8, help="number of rounds (default: 8)")
    given: dict[str, Any] = vars(parser.parse_all(arguments))
    from pytest_dstfuzz.games.negotiation.reinforce import (  # noqa: PLC0415 - torch
        ReinforceConfig,
        train_reinforced,
    )

    given["partner"] = given["partner"] or given["start"]
    train_reinforced(ReinforceConfig(**given), _say)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"error: {error}")
