"""A game that an adversary won, with as few words as win it, and the sentence that turned it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_dstfuzz.games.game import Scenario
from pytest_dstfuzz.games.playing import Arena, PlayedGame, Script


@dataclass(frozen=True)
class TurnedGame:
    """A won game in its plainest form."""

    played: PlayedGame
    sentence: str  #: Without it the advantage falls most.
    times: int  #: How often it is said.
    without: float  #: The advantage without it.
    #: Whether the talk that was found was played twice with one outcome.
    stays: bool = True


def shrink(arena: Arena, played: PlayedGame, budget: int) -> TurnedGame:
    """Leave out lines, then words, while the adversary wins as much; at most ``budget`` games.

    The target's answers may change meanwhile: what counts is the advantage.
    """
    end = arena.games + budget
    scenario, best = played.scenario, arena.fresh(played.scenario, played.script)
    stays = best == played
    shorter = True
    while shorter:
        shorter = False
        for script in _shorter(best.script):
            if arena.games >= end:
                break
            found = arena.play(scenario, script)
            if found.advantage >= best.advantage and _size(found.script) < _size(best.script):
                best, shorter = found, True
                break
    sentence, without = _turning(arena, scenario, best)
    return TurnedGame(best, sentence, best.script.count(sentence), without, stays)


def _shorter(script: Script) -> Iterator[Script]:
    """Yield what is left when one line is spared, or one word of it wherever it is said."""
    for place in range(len(script)):
        yield (*script[:place], *script[place + 1 :])
    for line in dict.fromkeys(script):
        words = line.split()
        for place in range(len(words) if len(words) > 1 else 0):
            text = " ".join(words[:place] + words[place + 1 :])
            yield tuple(text if other == line else other for other in script)


def _size(script: Script) -> tuple[int, int]:
    return len(script), sum(len(line.split()) for line in script)


def _turning(arena: Arena, scenario: Scenario, best: PlayedGame) -> tuple[str, float]:
    """Return the line without which the adversary has least, and what it has then."""
    if not best.script:
        return "", best.advantage
    left = {
        line: arena.play(scenario, tuple(one for one in best.script if one != line)).advantage
        for line in dict.fromkeys(best.script)
    }
    line = min(left, key=lambda text: left[text])
    return line, left[line]
