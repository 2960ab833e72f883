"""What the fixture ``dst_agent`` gives: a trained policy that proposes variants."""

from __future__ import annotations

from pytest_dstfuzz.campaign.answers import TrackerFailure
from pytest_dstfuzz.campaign.attempts import CampaignSpec, begin_turn, draw_variant
from pytest_dstfuzz.campaign.predictor import Predictor
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.perturb.types import Variant

#: How often another proposal is asked for in the place of one that is not valid or not new.
REDRAWS = 8


class DstAgent:
    """Lets a test ask a policy for what is most likely to break the tracker at a turn.

    Args:
        rules: validity, seed, number of transformations, and the policy as their search.
        predictor: the tracker; it is asked about clean turns only.
    """

    def __init__(self, rules: CampaignSpec, predictor: Predictor) -> None:
        self.search = rules.search
        self._rules = rules
        self._predictor = predictor

    def variants(self, dialogue: Dialogue, turn_index: int, count: int = 1) -> list[Variant]:
        """Return variants of a turn, the one that the policy thinks best first.

        The same arguments give the same variants. What the tracker says to them is not
        asked: a test may do with them what it likes. (``--dst-search=agent`` lets the
        policy learn from its earlier attempts.)

        Args:
            dialogue: the dialogue; it need not be one of the session's data.
            turn_index: of the turn, from 0.
            count: how many variants to look for.

        Returns:
            At most ``count`` of them, all valid and different.

        Raises:
            IndexError: there is no such turn.
        """
        context = dialogue.context(turn_index)
        answers = self._predictor.predict([context])
        clean = answers.get(context, TrackerFailure("the budget ended", asked=False))
        turn = begin_turn(self._rules, dialogue, dialogue.turns[turn_index], context, clean)
        found: dict[str, Variant] = {}
        for number in range(count):
            variant = draw_variant(self._rules, turn, number)[0].variant
            if variant.valid:
                found.setdefault(variant.text, variant)
        return list(found.values())
