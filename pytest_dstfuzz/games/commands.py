"""The command ``harden-negotiator``, which trains a negotiator against attacks."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.cli.command import Command, say
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.errors import UserError, needs_extra

#: Game -> the agents that can be hardened in it.
_HARDENED: Final = {"deal-or-no-deal": "negotiators that this package has trained"}


def _options(parser: Parser) -> None:
    parser.value(
        "--game",
        choice("game", _HARDENED),
        "NAME",
        required=True,
        help=", ".join(f"{name} ({whose})" for name, whose in _HARDENED.items()),
    )
    needed = {"required": True}
    parser.value(
        "--data",
        Path,
        "DIR",
        **needed,
        help="negotiations between people, which keep the trained language natural",
    )
    parser.value("--target", Path, "FILE", **needed, help="negotiator to harden")
    parser.value("--attack", Path, "FILE", **needed, help="file of the attacker at the beginning")
    partner = (
        "negotiator that both also play against, with a reward only if they agree (default: the "
        "target as it was before)"
    )
    parser.value("--partner", Path, "FILE", help=partner)
    parser.value("--output", Path, "DIR", **needed, help="folder for the trained negotiators")
    parser.value("--rounds", integer(1), "N", default=8, help="number of rounds (default: 8)")
    parser.value("--seed", integer(0), "N", default=0, help="seed of all random choices")
    parser.option(
        "--resume", action="store_true", help="continue from the last round in the output folder"
    )


def _harden(given: Namespace) -> None:
    values = vars(given)
    del values["game"]
    values["partner"] = values["partner"] or values["target"]
    for flag in ("target", "attack", "partner"):
        if not values[flag].is_file():
            raise UserError(
                f"--{flag}: there is no file {values[flag]}: train a negotiator with python -m "
                "pytest_dstfuzz.games.negotiation"
            )
    with needs_extra("hardening a negotiator", "train", "torch"):
        from pytest_dstfuzz.games.negotiation.hardening import (  # noqa: PLC0415 - torch
            HardenConfig,
            harden,
        )
        from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE  # noqa: PLC0415 - torch
        from pytest_dstfuzz.models.neural import threads  # noqa: PLC0415 - torch

    with threads(1):
        history = harden(HardenConfig(**values), say)
    first, last = history[0], history[-1]
    print(
        f"the advantage of the attack, which learns too, was {first.advantage:+.2f} after the "
        f"first round and is {last.advantage:+.2f} now. To measure it with a new attack, run "
        "python -m pytest_dstfuzz.games.negotiation reinforced --aim advantage --partner "
        f"{values['output'] / MODEL_FILE} ..."
    )


HARDEN_NEGOTIATOR = Command(
    "harden-negotiator",
    "train an agent with a goal against attacks that learn at the same time",
    "every finished round is saved, and the same command with --resume continues",
    """\
  dstfuzz harden-negotiator --game deal-or-no-deal --data negotiation --output hardened \\
  --target rl/negotiator.safetensors --attack attack/negotiator.safetensors""",
    _options,
    _harden,
    about="Train a negotiator and its attacker in turn (iterative adversarial training).",
)
