"""The rows of the table of attacks on negotiators: who plays, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_json
from pytest_dstfuzz.games.attack import unlike
from pytest_dstfuzz.games.deal import DealGame
from pytest_dstfuzz.games.figures import GameFigures
from pytest_dstfuzz.games.fluency import Fluency, perplexity
from pytest_dstfuzz.games.hearing import (
    AFTER,
    DelayedAdversary,
    HandedOnAdversary,
    HearingAdversary,
    PreemptiveAdversary,
    ReactiveAdversary,
    TransferredAdversary,
    VoicedAdversary,
)
from pytest_dstfuzz.games.insight import TargetView, TransparentAgent
from pytest_dstfuzz.games.lookahead import LookaheadAdversary
from pytest_dstfuzz.games.playing import AdversarySide, Arena, PlayedGame
from pytest_dstfuzz.games.whitebox import SHORTLIST, WhiteBoxAttack
from pytest_dstfuzz.json_data import from_json

if TYPE_CHECKING:
    from pytest_dstfuzz.games.negotiation.agent import NegotiatorAgent

T = TypeVar("T")

#: Target -> what it is.
TARGETS: Final = {
    "sv": "supervised",
    "rl": "trained by its score",
    "hardened": "after iterative adversarial training",
}
#: Games in which winning lines are gathered, in scenarios that are not reported.
_LEARNING: Final = 100
_ALL: Final = tuple(TARGETS)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    about: str
    make: Callable[[Arena], HearingAdversary] | None  #: ``None``: two negotiators, no attack.
    targets: tuple[str, ...] = _ALL
    speaks: str = "rl"  #: Who speaks for the adversary; ``attack`` = the one on the target.
    most_perplexity: float | None = None
    #: Whether what the target would select counts, though it would go on talking.
    forced: bool = False


def _reactive(after: int, shortlist: int = SHORTLIST) -> Callable[[Arena], HearingAdversary]:
    def make(arena: Arena) -> HearingAdversary:
        adversary = ReactiveAdversary(arena)
        adversary.after, adversary.shortlist = after, shortlist
        return adversary

    return make


#: More words than any negotiator knows: all are tried.
_EVERY: Final = 1_000_000


#: Name -> row, in the order of the paper's table; what is ours comes last.
ROWS: Final[dict[str, Row]] = {
    "no-attack": Row("RL model (w/o attack)", None),
    # What the attacks go on from: they are worth what they have more than this.
    "voice": Row("the voice of the attacks alone, taking what is left", VoicedAdversary),
    "transfer": Row("Transfer attack", HandedOnAdversary),
    "rl-attack": Row("RL attack", VoicedAdversary, speaks="attack"),
    "reactive": Row("Reactive attack", _reactive(2)),
    "preemptive": Row("Preemptive attack", PreemptiveAdversary),
    "delayed": Row("RA+PA+DA", DelayedAdversary),
    "transferred": Row("RA+PA+TA", TransferredAdversary),
    "reactive-1": Row("Reactive attack, n = 1", _reactive(1), ("rl",)),
    "reactive-3": Row("Reactive attack, n = 3", _reactive(3), ("rl",)),
    "reactive-4": Row("Reactive attack, n = 4", _reactive(4), ("rl",)),
    # Where the figures differ from the paper's: what the shortlist costs, and what counting costs.
    "reactive-every": Row("Reactive attack, every word tried", _reactive(2, _EVERY), ("sv", "rl")),
    "reactive-forced": Row(
        "Reactive attack, what the target would select if it did",
        _reactive(2),
        ("sv", "rl"),
        forced=True,
    ),
    "lookahead": Row("Lookahead (ours)", LookaheadAdversary),
    "lookahead-fluent": Row(
        "Lookahead (ours), lines at perplexity 20 at most",
        LookaheadAdversary,
        ("sv",),
        most_perplexity=20.0,
    ),
}


@dataclass(frozen=True)
class PlayedRow:
    """What came of a row."""

    target: str
    name: str
    figures: GameFigures
    perplexity: float | None  #: Of all that the adversary said, under the supervised model.
    #: Share of the games in which it attacked, by the adversary's own count; ``None`` where its
    #: voice is the attack.
    attacked: float | None
    line: str  #: The last line with which it won most games,
    line_share: float  #: and the share of the won games that ended with it.


def read_kept(path: Path, kind: type[T]) -> T:
    """Return what the experiment wrote before.

    Raises:
        DataError: the file is damaged.
    """
    try:
        return from_json(kind, read_json(path, "file of this experiment"))
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}): remove it to have it made again") from None


def forced(arena: Arena, played: PlayedGame) -> PlayedGame:
    """Return a game with the first attack in it counted as if the target selected after it.

    So the code that Cheng et al. published counts: by what the target would select, whether or not
    it would end the talk.
    """
    agent, scenario = arena.agent, played.scenario
    assert isinstance(agent, TransparentAgent)  # noqa: S101 - its adversary has looked into it
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
    """Plays rows with negotiators that were trained."""

    def __init__(self, models: Mapping[str, Path], games: int, seed: int) -> None:
        self._models, self._games, self._seed = models, games, seed
        self._known: dict[tuple[str, int], NegotiatorAgent] = {}

    def _agent(self, name: str, seed: int) -> NegotiatorAgent:
        """Return a negotiator; another seed is another object, which draws other words."""
        from pytest_dstfuzz.games.negotiation.agent import NegotiatorAgent  # noqa: PLC0415 - torch

        if (name, seed) not in self._known:
            self._known[name, seed] = NegotiatorAgent.load(self._models[name], seed=seed)
        return self._known[name, seed]

    def play(self, target: str, name: str) -> PlayedRow:
        """Play one row."""
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
            games = [forced(arena, game) for game in games if len(game.lines) > AFTER]
        voiced = isinstance(adversary, VoicedAdversary)
        struck = None if voiced else len(adversary.struck) / len(games)
        return self._row(target, name, arena, games, struck)

    def _plain(self, target: str, name: str) -> PlayedRow:
        """Let the negotiator trained by its score play, where both have to agree."""
        from pytest_dstfuzz.games.negotiation.reinforce import played  # noqa: PLC0415 - torch

        pair = self._agent("rl", 1).network, self._agent(target, 0).network
        figures = played(*pair, self._games, self._seed)
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
