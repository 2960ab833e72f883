"""Attacks trained negotiators, and makes the tables of this experiment."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_dstfuzz import __version__
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.errors import DataError, UserError, needs_extra
from pytest_dstfuzz.files import read_json, write_json, write_text
from pytest_dstfuzz.games.adversaries import (
    AFTER,
    SHORTLIST,
    DelayedAdversary,
    HandedOnAdversary,
    HearingAdversary,
    LookaheadAdversary,
    PreemptiveAdversary,
    ReactiveAdversary,
    TransferredAdversary,
    VoicedAdversary,
    WhiteBoxAttack,
)
from pytest_dstfuzz.games.attack import unlike
from pytest_dstfuzz.games.deal import TRAINING_SEED, DealGame
from pytest_dstfuzz.games.game import Fluency, GameFigures, TargetView, TransparentAgent, perplexity
from pytest_dstfuzz.games.playing import AdversarySide, Arena, PlayedGame
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.papers.command_line import command_line, hand_out, say, several
from pytest_dstfuzz.papers.formatting import NONE, Columns, csv_number, csv_text, markdown_table

if TYPE_CHECKING:
    from pytest_dstfuzz.games.negotiation.agent import NegotiatorAgent
    from pytest_dstfuzz.games.negotiation.reinforce import Aim


T = TypeVar("T")

#: Target -> description.
TARGETS: Final = {
    "sv": "supervised",
    "rl": "trained on its score",
    "hardened": "after iterative adversarial training",
}
#: Number of games to collect winning lines, in scenarios that are not reported.
_LEARNING: Final = 100
_ALL: Final = tuple(TARGETS)


@dataclass(frozen=True)
class Row:
    """A row of the table: an adversary and its settings."""

    about: str
    make: Callable[[Arena], HearingAdversary] | None  #: ``None`` if there is no attack.
    targets: tuple[str, ...] = _ALL
    speaks: str = "rl"  #: Adversary's model; ``attack``: the one trained on the target.
    most_perplexity: float | None = None
    #: Whether to count the target's likely selection, even if it would go on talking.
    forced: bool = False


def _reactive(after: int, shortlist: int = SHORTLIST) -> Callable[[Arena], HearingAdversary]:
    def make(arena: Arena) -> HearingAdversary:
        adversary = ReactiveAdversary(arena)
        adversary.after, adversary.shortlist = after, shortlist
        return adversary

    return make


#: Number of drawn answers over which the published preemptive attack averages.
_DRAWN: Final = 10


def _preemptive(arena: Arena) -> HearingAdversary:
    adversary = PreemptiveAdversary(arena)
    adversary.draws = _DRAWN
    return adversary


#: Larger than any vocabulary, so that all words are tried.
_EVERY: Final = 1_000_000


#: Name -> row, in the order of the paper's table, followed by our own attacks.
ROWS: Final[dict[str, Row]] = {
    "no-attack": Row("RL model (w/o attack)", None),
    # The baseline: attacks are only worth their advantage over this row.
    "voice": Row(
        "No attack: the voice of the attacks speaks, and gets what the target leaves",
        VoicedAdversary,
    ),
    "transfer": Row("Transfer attack", HandedOnAdversary),
    "rl-attack": Row("RL attack", VoicedAdversary, speaks="attack"),
    "reactive": Row("Reactive attack", _reactive(2)),
    "preemptive": Row("Preemptive attack", PreemptiveAdversary),
    "delayed": Row("RA+PA+DA", DelayedAdversary),
    "transferred": Row("RA+PA+TA", TransferredAdversary),
    "reactive-1": Row("Reactive attack, n = 1", _reactive(1), ("rl",)),
    "reactive-3": Row("Reactive attack, n = 3", _reactive(3), ("rl",)),
    "reactive-4": Row("Reactive attack, n = 4", _reactive(4), ("rl",)),
    # Variations that may explain differences from the paper: the shortlist, the counting, and the
    # answers that the preemptive attack assumes.
    "reactive-every": Row("Reactive attack, every word tried", _reactive(2, _EVERY), ("sv", "rl")),
    "reactive-forced": Row(
        "Reactive attack, ended with the target's most likely selection",
        _reactive(2),
        ("sv", "rl"),
        forced=True,
    ),
    "preemptive-drawn": Row(
        f"Preemptive attack, judged by the mean of {_DRAWN} drawn answers",
        _preemptive,
        ("sv", "rl"),
    ),
    "lookahead": Row("Lookahead (ours)", LookaheadAdversary),
    "lookahead-fluent": Row(
        "Lookahead (ours), lines with a perplexity of at most 20",
        LookaheadAdversary,
        ("sv",),
        most_perplexity=20.0,
    ),
}


@dataclass(frozen=True)
class PlayedRow:
    """The games and figures of one row."""

    target: str
    name: str
    figures: GameFigures
    perplexity: float | None  #: Perplexity of the adversary's text under the supervised model.
    #: Share of games with an attack, as counted by the adversary. ``None`` if its voice is the
    #: attack.
    attacked: float | None
    line: str  #: The most frequent last line in won games,
    line_share: float  #: and its share of the won games.


def read_kept(path: Path, kind: type[T]) -> T:
    """Read a result that the experiment has stored.

    Raises:
        DataError: the file is damaged.
    """
    try:
        return from_json(kind, read_json(path, "file of this experiment"))
    except ValueError as error:
        raise DataError(
            f"{path} is damaged ({error}): remove it, then the same command writes it again"
        ) from None


def force_selection(arena: Arena, played: PlayedGame) -> PlayedGame:
    """Return a game with the target's selection right after the first attack.

    The published code of Cheng et al. counts games in this way. It uses the target's most likely
    selection, even if the target would continue to talk.
    """
    agent, scenario = arena.agent, played.scenario
    assert isinstance(agent, TransparentAgent)  # noqa: S101 - a white-box adversary needs this
    view = TargetView(agent, arena.game, scenario)
    places = [at for at, (target, _) in enumerate(played.lines) if at >= AFTER and not target]
    if not places:
        return played
    said, (_, text) = played.lines[: places[0]], played.lines[places[0]]
    found = WhiteBoxAttack(view, Fluency()).unconstrained(said, text)
    best = int(view.scores(view.talks(said, [found.text]))[0].argmax())
    selection = view.selections[best]
    scores = arena.game.scores(scenario, selection)
    return PlayedGame(scenario, (*said, (False, found.text)), selection, scores)


class RowPlayer:
    """Plays the games of the rows with trained negotiators."""

    def __init__(self, models: Mapping[str, Path], games: int, seed: int) -> None:
        self._models, self._games, self._seed = models, games, seed
        self._known: dict[tuple[str, int], NegotiatorAgent] = {}

    def _agent(self, name: str, seed: int) -> NegotiatorAgent:
        """Return a negotiator. Each seed has a separate object with separate random draws."""
        from pytest_dstfuzz.games.negotiation.agent import NegotiatorAgent  # noqa: PLC0415 - torch

        if (name, seed) not in self._known:
            self._known[name, seed] = NegotiatorAgent.load(self._models[name], seed=seed)
        return self._known[name, seed]

    def play(self, target: str, name: str) -> PlayedRow:
        """Play the games of one row."""
        row = ROWS[name]
        if row.make is None:
            return self._plain(target, name)
        attack = f"attack-{target}"
        side = AdversarySide(
            voice=self._agent(attack if row.speaks == "attack" else row.speaks, 1),
            teacher=self._agent(attack, 2),
            fluency=self._agent("sv", 3),
            most_perplexity=row.most_perplexity,
        )
        game = DealGame()
        arena = Arena(game, self._agent(target, 0), self._seed, side)
        adversary = row.make(arena)
        every = game.scenarios(self._games + _LEARNING, self._seed)
        if adversary.learns:
            adversary.learn(unlike(every[self._games :], every[: self._games]), _LEARNING)
        games = [arena.hear(one, adversary.speaker(one)) for one in every[: self._games]]
        if row.forced:
            games = [force_selection(arena, game) for game in games if len(game.lines) > AFTER]
        voiced = isinstance(adversary, VoicedAdversary)
        struck = None if voiced else len(adversary.struck) / len(games)
        return self._row(target, name, arena, games, struck)

    def _plain(self, target: str, name: str) -> PlayedRow:
        """Play the negotiator ``rl`` against the target, without an attack. Both must agree."""
        from pytest_dstfuzz.games.negotiation.reinforce import play_games  # noqa: PLC0415 - torch

        pair = self._agent("rl", 1).network, self._agent(target, 0).network
        figures = play_games(*pair, self._games, self._seed)
        return PlayedRow(target, name, figures, None, None, "", 0.0)

    def _row(
        self,
        target: str,
        name: str,
        arena: Arena,
        games: Sequence[PlayedGame],
        struck: float | None,
    ) -> PlayedRow:
        odd = [arena.fluency(game.scenario).surprise(game.lines) for game in games]
        won = [game.script[-1] for game in games if game.advantage > 0 and game.script]
        line, count = Counter(won).most_common(1)[0] if won else ("", 0)
        return PlayedRow(
            target,
            name,
            GameFigures.of([game.scores for game in games]),
            perplexity(sum(nats for nats, _ in odd), sum(words for _, words in odd)),
            struck,
            line,
            count / max(1, len(won)),
        )


#: Published advantage of the adversary (Cheng et al. 2019, tables 2, 6 and 7, 2,000 games): row ->
#: target -> advantage.
PUBLISHED: Final[Mapping[str, Mapping[str, float]]] = {
    "no-attack": {"sv": 2.68, "rl": 0.05, "hardened": -0.13},
    "transfer": {"sv": -0.13, "rl": -1.19, "hardened": -2.66},
    "rl-attack": {"sv": 4.25, "rl": 2.32, "hardened": -1.80},
    "reactive": {"sv": 5.40, "rl": 4.95, "hardened": 4.52},
    "preemptive": {"sv": 2.81, "rl": 0.77, "hardened": -1.77},
    "delayed": {"sv": 5.83, "rl": 5.78, "hardened": 3.98},
    "transferred": {"sv": 5.62, "rl": 5.70, "hardened": 3.93},
    "reactive-1": {"rl": 5.52},
    "reactive-3": {"rl": 5.19},
    "reactive-4": {"rl": 4.84},
}
#: Results of Lewis et al. (2017) and Cheng et al. (2019) for the negotiators themselves.
_PUBLISHED_FIT: Final = (
    "Published: perplexity 5.47 (supervised) and 5.86 (trained on its score) on test, averaged "
    "over all words of a dialogue, although the first word is not predicted. In games against the "
    "supervised negotiator, the one trained on its score wins 7.23 to 4.55, and they agree in "
    "89.57 % (Cheng "
    "et al. 2019, section 7.1 and table 2). Two supervised ones have 5.4 to 5.5, and agree in 87.9 "
    "% "
    "(Lewis et al. 2017, table 1)."
)


def tables(
    measured: Mapping[str, Any], rows: Sequence[PlayedRow], command: str, game: str
) -> dict[str, str]:
    """Return the tables as Markdown and CSV by file name."""
    lines = [
        "# Attacks on negotiators",
        "",
        f"- command: `{command}` (pytest-dstfuzz {__version__})",
        f"- game: {game}, random scenarios; brackets: 95 % intervals over games",
        "",
        "## The negotiators",
        "",
        *_fits(measured),
        "",
        _PUBLISHED_FIT,
    ]
    for target, about in TARGETS.items():
        found = [row for row in rows if row.target == target]
        if found:
            lines += ["", f"## Against `{target}`: {about}", "", *_attacks(found)]
    csv = csv_text(_COLUMNS, rows)
    return {"negotiation.md": "\n".join(lines) + "\n", "negotiation.csv": csv}


def _fits(measured: Mapping[str, Any]) -> list[str]:
    head = ["negotiator", "perplexity", "as in the paper", "right selections", "against"]
    head += ["own score", "other's", "agreed"]
    rows = []
    for name, one in measured.items():
        fit = one["test"]
        for other, figures in one["against"].items():
            rows.append(
                [
                    f"`{name}`",
                    f"{fit['perplexity']:.2f}",
                    f"{fit['published']:.2f}",
                    f"{100 * fit['selected']:.1f} %",
                    f"`{other}`",
                    f"{figures['adversary']:.2f}",
                    f"{figures['target']:.2f}",
                    f"{100 * figures['agreement']:.1f} %",
                ]
            )
    return markdown_table(head, rows)


def _attacks(rows: Iterable[PlayedRow]) -> list[str]:
    head = ["attack", "games", "positive", "score", "advantage", "published", "agreed", "attacked"]
    head += ["perplexity", "most frequent winning last line"]
    cells = []
    for row in rows:
        found = row.figures
        known = PUBLISHED.get(row.name, {}).get(row.target)
        cells.append(
            [
                ROWS[row.name].about,
                f"{found.games:,}",
                f"{100 * found.positive.value:.1f} %",
                f"{found.adversary:.2f} : {found.target:.2f}",
                found.advantage.text(),
                NONE if known is None else f"{known:.2f}",
                f"{100 * found.agreement:.1f} %",
                NONE if row.attacked is None else f"{100 * row.attacked:.0f} %",
                NONE if row.perplexity is None else f"{row.perplexity:.1f}",
                f"{row.line} ({100 * row.line_share:.0f} %)" if row.line else NONE,
            ]
        )
    return markdown_table(head, cells)


_COLUMNS: Final[Columns] = {
    "target": lambda row: row.target,
    "row": lambda row: row.name,
    "games": lambda row: row.figures.games,
    "positive": lambda row: csv_number(row.figures.positive.value),
    "adversary": lambda row: csv_number(row.figures.adversary),
    "target_score": lambda row: csv_number(row.figures.target),
    "advantage": lambda row: csv_number(row.figures.advantage.value),
    "advantage_low": lambda row: csv_number(row.figures.advantage.low),
    "advantage_high": lambda row: csv_number(row.figures.advantage.high),
    "published": lambda row: csv_number(PUBLISHED.get(row.name, {}).get(row.target)),
    "agreement": lambda row: csv_number(row.figures.agreement),
    "attacked": lambda row: csv_number(row.attacked),
    "perplexity": lambda row: csv_number(row.perplexity),
    "line_share": lambda row: csv_number(row.line_share),
}


#: Folder -> the model trained into it.
TRAINED: Final = {
    "sv": "a negotiator trained on talks of people",
    "rl": "`sv` trained further by games against `sv`, to raise its score",
    "attack-sv": "an attacker trained by policy gradient against `sv`",
    "attack-rl": "an attacker trained by policy gradient against `rl`",
    "hardened": "`rl` after iterative adversarial training",
    "attack-hardened": "a new attacker trained by policy gradient against `hardened`",
}


@dataclass(frozen=True)
class NegotiationRun:
    """The settings of the experiment with negotiators."""

    data: Path
    output: Path
    games: int = 500  #: Games per row.
    seed: int = 1_000  #: Seed of the reported games. Trainings use others.
    epochs: int = 12  #: Epochs of the supervised training.
    rounds: int = 8  #: Rounds of each training by games.
    steps: int = 40  #: Steps per round. If two negotiators learn, half as many for each.

    def model(self, name: str) -> Path:
        """Return the file of a trained negotiator."""
        from pytest_dstfuzz.games.negotiation.supervised import MODEL_FILE  # noqa: PLC0415 - torch

        return self.output / name / MODEL_FILE


def train(run: NegotiationRun) -> None:
    """Train the missing models. Resume unfinished trainings."""
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


def measure_results(run: NegotiationRun) -> dict[str, object]:
    """Measure each negotiator.

    The measurements use the test split, games against ``sv``, and games of a negotiator against
    itself.
    """
    from pytest_dstfuzz.games.negotiation.corpus import load_negotiations  # noqa: PLC0415 - with it
    from pytest_dstfuzz.games.negotiation.network import load_network  # noqa: PLC0415 - torch
    from pytest_dstfuzz.games.negotiation.reinforce import play_games  # noqa: PLC0415 - torch
    from pytest_dstfuzz.games.negotiation.supervised import measure  # noqa: PLC0415 - torch

    rows = load_negotiations(run.data).test
    found: dict[str, object] = {}
    for name in ("sv", "rl", "hardened"):
        network = load_network(run.model(name))
        fit = measure(network, rows)
        pairs = {
            other: to_json(play_games(network, load_network(run.model(other)), run.games, run.seed))
            for other in ("sv", name)
        }
        found[name] = {"test": fit._asdict(), "against": pairs}
    return found


def load_or_measure(run: NegotiationRun) -> dict[str, Any]:
    """Return the stored result of `measure_results`, or measure it if there is none.

    Raises:
        DataError: the file is damaged.
    """
    path = run.output / f"measured-{run.games}-{run.seed}.json"
    if not path.exists():
        write_json(path, measure_results(run))
    return read_kept(path, dict[str, Any])


def refuse_another(run: NegotiationRun) -> None:
    """Raise an error if the output folder has models from other settings.

    Raises:
        UserError: the settings differ. The message names each of them.
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
        raise UserError(
            f"{run.output} has models with other training settings: {'; '.join(told)}. Use the "
            "earlier settings, or another --output"
        )


def play(run: NegotiationRun, targets: Sequence[str], rows: Sequence[str]) -> list[PlayedRow]:
    """Play the rows that the table lacks. Each row has its own file."""
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
    """Run the experiment with the arguments after the command's name."""
    given = vars(_parser().parse_all(arguments))
    targets, rows = given.pop("targets"), given.pop("rows")
    run = NegotiationRun(**{name: value for name, value in given.items() if value is not None})
    if run.games < 2:
        raise UserError("--games must be at least 2: one game has no interval")
    if run.seed >= TRAINING_SEED:
        raise UserError(f"--seed must be below {TRAINING_SEED:,}: training uses larger seeds")
    if not (run.data / "data.txt").is_file():
        raise UserError(
            f"--data: {run.data / 'data.txt'} does not exist: give the folder with the data of "
            "Lewis et al. (2017)"
        )
    refuse_another(run)
    with needs_extra("training a negotiator", "train", "torch"):
        from pytest_dstfuzz.models.neural import threads  # noqa: PLC0415 - torch
    with threads(1):
        train(run)
        fits = load_or_measure(run)
        found = play(run, targets, rows)
    texts = tables(fits, found, command_line("negotiation", arguments), DealGame.name)
    for name, text in texts.items():
        write_text(run.output / name, text)
    hand_out(texts, run.output)
    return 0


def _parser() -> Parser:
    parser = Parser("dstfuzz experiment negotiation", __doc__ or "")
    data = "folder with data.txt, val.txt and test.txt"
    parser.value("--data", Path, "DIR", required=True, help=data)
    output = "folder for the models, the games and the tables"
    parser.value("--output", Path, "DIR", required=True, help=output)
    number = integer(1)
    parser.value("--games", number, "N", help="games in each row (default: 500)")
    parser.value("--seed", integer(0), "N", help="seed of the reported games (default: 1000)")
    parser.value("--epochs", number, "N", help="epochs of the supervised training (default: 12)")
    parser.value("--rounds", number, "N", help="rounds of each training by games (default: 8)")
    parser.value("--steps", number, "N", help="steps in a round, of 64 games each (default: 40)")
    about = "targets in the table (default: all)"
    names = several(choice("target", TARGETS))
    parser.value("--targets", names, "NAME,...", default=tuple(TARGETS), help=about)
    rows = several(choice("row", ROWS))
    parser.value(
        "--rows", rows, "NAME,...", default=tuple(ROWS), help="rows of the table (default: all)"
    )
    return parser
