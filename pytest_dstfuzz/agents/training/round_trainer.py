"""Training with dialogues that are played by others: a round is played, and then learned from.

The round goes out in parts, with the weights and the share of uniform actions that it begins with.
Whatever order the parts come back in, their steps are remembered in the order in which the round
was drawn, and all updates follow that are due for so many steps. What is learned thus depends
neither on who played nor on how many they are. It is another schedule than that of `AgentTrainer`,
whose weights change while a round is played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pytest_dstfuzz.agents.training.playing import PlayedPart, Rollouts, RoundPart
from pytest_dstfuzz.agents.training.trainer import LearningTrainer, PlayedRound, TrainingConfig
from pytest_dstfuzz.campaign.answers import Answer
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.seeding import stream

#: Dialogues of a part. What a tracker computes may depend on what it computes beside it, so the
#: number is that of every run; a round of 48 dialogues has work for 12 at a time.
PART: Final = 4


class RoundTrainer(LearningTrainer):
    """Learns after each round.

    Args:
        config: how to train.
        rollouts: who plays; they have begun.
        dialogues: all that may be played, as their rules have them.
        clean: the answers to the clean turns of one.
        device: of the networks.
    """

    def __init__(
        self,
        config: TrainingConfig,
        rollouts: Rollouts,
        dialogues: Sequence[Dialogue],
        clean: Callable[[Dialogue], tuple[Answer, ...]],
        device: str = "cpu",
    ) -> None:
        super().__init__(config, dialogues, device)
        self._rollouts, self._clean = rollouts, clean

    def play(self, group: Sequence[int], epsilon: float) -> PlayedRound:
        """Have the dialogues played, then learn from them."""
        parts = self._parts(group, epsilon)
        came: dict[int, PlayedPart] = dict(self._rollouts.played(parts))
        played = [came[place] for place in range(len(parts))]
        steps = [step for part in played for step in part.steps]
        for step in steps:
            self.replay.add(step)
        losses = self.learn(stream(self.config.seed, "agent", "replay", len(self.history)))
        broken = sum(part.broken for part in played)
        return PlayedRound(len(steps), broken, sum(part.calls for part in played), losses)

    def _parts(self, group: Sequence[int], epsilon: float) -> list[RoundPart]:
        weights = self.learner.weights()
        parts = []
        for first in range(0, len(group), PART):
            places = tuple(group[first : first + PART])
            clean = tuple(self._clean(self.dialogues[place]) for place in places)
            parts.append(RoundPart(len(self.history), first, places, clean, epsilon, weights))
        return parts
