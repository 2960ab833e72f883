"""What goes wrong with a reply, told by what came in its place."""

from __future__ import annotations

import re
from typing import Final

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.comparisons.comparison import Compared, Comparison
from pytest_dstfuzz.comparisons.exact import bare
from pytest_dstfuzz.comparisons.fallbacks import is_fallback
from pytest_dstfuzz.comparisons.names import SameNames
from pytest_dstfuzz.comparisons.numbers import SameNumbers
from pytest_dstfuzz.comparisons.polarity import SamePolarity
from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.dialogue.outcome import REPLY
from pytest_dstfuzz.weaknesses.failures import RESTARTED

#: The same reply where it was to be another one.
ANYWAY: Final = "answers-anyway"
#: Other replies to one question, in two contexts that both say what it is about.
_DISAGREES: Final = "disagrees"
#: What becomes another first, in this order.
_FACTS: Final[dict[str, Comparison]] = {
    "other-number": SameNumbers(),
    "other-polarity": SamePolarity(),
    "other-name": SameNames(),
}
REPLIES: Final = (
    *("no-answer", "last-answer-again", ANYWAY, _DISAGREES),
    *_FACTS,
    *("asks-back", "other-answer"),
)
#: A question at the end of a reply.
_ASKS: Final = re.compile(r"[^.!?\n]*\?\W*$")
#: Questions that whoever has answered may add.
_COURTESY: Final = re.compile(
    r"anything else|(?:can|may|could) (?:i|we) (?:help|assist|do)|does that help", re.IGNORECASE
)


def reply_failure(turn: TurnResult, variant: VariantResult) -> str:
    """Return the mechanism of a violation of a bot that replies: one of `REPLIES`, or a restart."""
    if any(move.kind == "again" for move in variant.moves):
        return RESTARTED
    changes = [(one.before or "", one.after or "") for one in variant.plain.changed_slots]
    before, after = changes[0] if changes else ("", "")
    if variant.failure == "stuck" or bare(before) == bare(after):
        return ANYWAY
    if is_fallback(after) and not is_fallback(before):
        return "no-answer"
    if turn.system and bare(after) == bare(turn.system):
        return "last-answer-again"
    if turn.relation == "contexts-agree":
        return _DISAGREES
    return _another(before, after, Context((Exchange(turn.system, turn.user),)))


def _another(before: str, after: str, asked: Context) -> str:
    for name, facts in _FACTS.items():
        if _becomes_another(facts.compare(REPLY, before, after, asked)):
            return name
    return "asks-back" if _asks(after) and not _asks(before) else "other-answer"


def _becomes_another(compared: Compared) -> bool:
    """Whether either reply has what the other one has otherwise: `1969 / 1970`, not `1969 / -`."""
    return not {"", "-", "no answer"} & set(compared.why.split(" / "))


def _asks(reply: str) -> bool:
    found = _ASKS.search(reply)
    return found is not None and not _COURTESY.search(found[0])
