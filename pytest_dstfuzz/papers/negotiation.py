"""Who talks a trained negotiator into a bad deal, and what training against that helps?

``dstfuzz experiment negotiation --data DIR --output DIR`` repeats the tables of Cheng et al. (2019,
"Evaluating and Enhancing the Robustness of Dialogue Systems") on negotiators that it trains: a
supervised one, one trained further by policy gradient, attacks on both, one hardened by iterative
adversarial training, and an attack that is trained against that one anew. ``--data`` is the folder
of data.txt, val.txt and test.txt of Lewis et al. (2017), which is for research and not for trade.

What was trained and played is kept in the output folder, and the same command goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.files import write_json, write_text
from pytest_dstfuzz.games.deal import TRAINING_SEED, DealGame
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.papers.command_line import command_line, hand_out, say, several
from pytest_dstfuzz.papers.negotiation_rows import ROWS, TARGETS, PlayedRow, read_kept
from pytest_dstfuzz.papers.negotiation_tables import tables

if TYPE_CHECKING:
    from pytest_dstfuzz.games.negotiation.reinforce import Aim

#: Folder -> what is trained into it.
TRAINED: Final = {
    "sv": "the supervised negotiator",
    "rl": "the one trained further by its score, against sv",
    "attack-sv": "an attack on sv by policy gradient",
    "attack-rl": "an attack on rl by policy gradient",
    "hardened": "rl after iterative adversarial training",
    "attack-hardened": "an attack on hardened by policy gradient, trained anew",
}


@dataclass(frozen=True)
class NegotiationRun:
    """How the experiment is run."""

    data: Path
    output: Path
    games: int = 500  #: Of each row.
    seed: int = 1_000  #: Of the games that are reported; trainings draw others.
    epochs: int = 12  #: Of the supervised training.
    rounds: int = 8  #: Of each training by games.
    steps: int = 40  #: Of a round; half as many of each kind where two negotiators learn.

    def model(self, name: str) -> Path:
        """Return the file of a negotiator."""
        from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE  # noqa: PLC0415 - torch

        return self.output / name / MODEL_FILE


def train(run: NegotiationRun) -> None:
    """Train what is missing, or go on with it."""
    from pytest_dstfuzz.games.negotiation.hardening import (  # noqa: PLC0415 - torch
        HardenConfig,
        harden,
    )
    from pytest_dstfuzz.games.negotiation.reinforce import (  # noqa: PLC0415 - torch
        ReinforceConfig,
        train_reinforced,
    )
    from pytest_dstfuzz.games.negotiation.supervised import (  # noqa: PLC0415 - torch
        SupervisedConfig,
        train_supervised,
    )
    from pytest_dstfuzz.models.runs import STATE_FILE  # noqa: PLC0415 - torch

    def begun(name: str) -> bool:
        say(f"{name}: {TRAINED[name]}")
        return (run.output / name / STATE_FILE).exists()

    def reinforced(name: str, start: str, partner: str, aim: Aim, seed: int) -> None:
        config = ReinforceConfig(
            data=run.data,
            start=run.model(start),
            partner=run.model(partner),
            output=run.output / name,
            aim=aim,
            rounds=run.rounds,
            steps=run.steps,
            judged=min(run.games, ReinforceConfig.judged),
            seed=seed,
            resume=begun(name),
        )
        train_reinforced(config, say)

    config = SupervisedConfig(run.data, run.output / "sv", run.epochs, resume=begun("sv"))
    train_supervised(config, say)
    reinforced("rl", "sv", "sv", "score", 0)
    reinforced("attack-sv", "sv", "sv", "advantage", 0)
    reinforced("attack-rl", "sv", "rl", "advantage", 0)
    hardened = HardenConfig(
        data=run.data,
        target=run.model("rl"),
        attack=run.model("attack-rl"),
        partner=run.model("sv"),
        output=run.output / "hardened",
        rounds=run.rounds,
        steps=max(1, run.steps // 2),
        judged=min(run.games, HardenConfig.judged),
        resume=begun("hardened"),
    )
    harden(hardened, say)
    reinforced("attack-hardened", "sv", "hardened", "advantage", 1)


def measured(run: NegotiationRun) -> dict[str, object]:
    """Return what the supervised negotiator is worth, on the test split and against itself."""
    from pytest_dstfuzz.games.negotiation.corpus import load_negotiations  # noqa: PLC0415 - with it
    from pytest_dstfuzz.games.negotiation.network import load_network  # noqa: PLC0415 - torch
    from pytest_dstfuzz.games.negotiation.reinforce import played  # noqa: PLC0415 - torch
    from pytest_dstfuzz.games.negotiation.supervised import measure  # noqa: PLC0415 - torch

    rows = load_negotiations(run.data).test
    found: dict[str, object] = {}
    for name in ("sv", "rl", "hardened"):
        network = load_network(run.model(name))
        fit = measure(network, rows)
        pairs = {
            other: to_json(played(network, load_network(run.model(other)), run.games, run.seed))
            for other in ("sv", name)
        }
        found[name] = {"test": fit._asdict(), "against": pairs}
    return found


def known_or_measured(run: NegotiationRun) -> dict[str, Any]:
    """Return what `measured` says, from its file where it is there.

    Raises:
        DataError: the file is damaged.
    """
    path = run.output / f"measured-{run.games}-{run.seed}.json"
    if not path.exists():
        write_json(path, measured(run))
    return read_kept(path, dict[str, Any])


def refuse_another(run: NegotiationRun) -> None:
    """Refuse to go on with negotiators that were trained otherwise.

    Raises:
        UserError: the output folder is of other trainings; the message says of which.
    """
    path = run.output / "trained.json"
    now = {"epochs": run.epochs, "rounds": run.rounds, "steps": run.steps}
    if not path.exists():
        write_json(path, now)
        return
    before = read_kept(path, dict[str, int])
    told = [
        f"{name} was {before.get(name)}, is now {new}"
        for name, new in now.items()
        if before.get(name) != new
    ]
    if told:
        raise UserError(f"{run.output} is of other trainings: {'; '.join(told)}")


def play(run: NegotiationRun, targets: Sequence[str], rows: Sequence[str]) -> list[PlayedRow]:
    """Play what is missing of the table, a file for each row."""
    from pytest_dstfuzz.papers.negotiation_rows import RowPlayer  # noqa: PLC0415 - with it

    player = RowPlayer({name: run.model(name) for name in TRAINED}, run.games, run.seed)
    found = []
    for target in targets:
        for name, row in ROWS.items():
            if name not in rows or target not in row.targets:
                continue
            path = run.output / "rows" / f"{target}-{name}-{run.games}-{run.seed}.json"
            speed = ""
            if path.exists():
                known = read_kept(path, PlayedRow)
            else:
                started = time.monotonic()
                known = player.play(target, name)
                speed = f", {run.games / (time.monotonic() - started):.1f} games a second"
                write_json(path, to_json(known))
            found.append(known)
            say(f"{target}, {name}: {known.figures.advantage.text()}{speed}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments that follow its name."""
    given = vars(_parser().parse_all(arguments))
    targets, rows = given.pop("targets"), given.pop("rows")
    run = NegotiationRun(**{name: value for name, value in given.items() if value is not None})
    if run.games < 2:
        raise UserError("--games must be at least 2: one game has no interval")
    if run.seed >= TRAINING_SEED:
        raise UserError(f"--seed must be below {TRAINING_SEED:,}: trainings draw from there on")
    if not (run.data / "data.txt").is_file():
        raise UserError(f"--data: there is no {run.data / 'data.txt'}, of Lewis et al. (2017)")
    refuse_another(run)
    with needs_extra("training a negotiator", "train", "torch"):
        from pytest_dstfuzz.models.neural import threads  # noqa: PLC0415 - torch
    with threads(1):
        train(run)
        fits = known_or_measured(run)
        found = play(run, targets, rows)
    texts = tables(fits, found, command_line("negotiation", arguments), DealGame.name)
    for name, text in texts.items():
        write_text(run.output / name, text)
    hand_out(texts, run.output)
    return 0


def _parser() -> Parser:
    parser = Parser("dstfuzz experiment negotiation", __doc__ or "")
    parser.value("--data", Path, "DIR", required=True, help="folder of data.txt, val.txt, test.txt")
    parser.value("--output", Path, "DIR", required=True, help="folder for all that is made")
    number = integer(1)
    parser.value("--games", number, "N", help="games of each row (default: 500)")
    parser.value("--seed", integer(0), "N", help="seed of the games that are reported")
    parser.value("--epochs", number, "N", help="of the supervised training (default: 12)")
    parser.value("--rounds", number, "N", help="of each training by games (default: 8)")
    parser.value("--steps", number, "N", help="of a round of 64 games each (default: 40)")
    about = "targets of the table, or all of them (default)"
    names = several(choice("target", TARGETS))
    parser.value("--targets", names, "NAME,...", default=tuple(TARGETS), help=about)
    rows = several(choice("row", ROWS))
    parser.value(
        "--rows", rows, "NAME,...", default=tuple(ROWS), help="rows, or all of them (default)"
    )
    return parser
