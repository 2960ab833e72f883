"""A relation that makes a message long: two or three sentences of small talk around a request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from pytest_dstfuzz.perturb.values import spell_compared
from pytest_dstfuzz.perturb.words import word_list, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Replacement, Scene
from pytest_dstfuzz.relations.wording import Change, Wording, is_polite, requests, sentences, speaks

_NO_STORY: Final = "the turn is not the first one, or has no single request"
#: Stories before a request of anybody, and of a business.
_BEFORE: Final = (
    "It has been a long week. I keep forgetting things.",
    "I am new to this. My daughter usually does it for me. She is away at the moment.",
    "Sorry if I am slow. I got this phone 3 days ago.",
    "Sorry, I am typing on my phone. It is rather slow.",
    "My sister told me to write here. She does this all the time.",
)
_BEFORE_BUSINESS: Final = (
    "I have been coming to you ever since you opened. I have always been happy with you.",
    "My neighbour told me about you. She says that you helped her a lot.",
    "I tried to call you earlier. Nobody picked up the phone.",
    "I looked at your website first. It did not help me much.",
    "We moved here a while ago. So far we like it. The neighbours are nice.",
)
#: Stories after a request.
_AFTER: Final = (
    "I have a busy week ahead of me. So I want to get this done.",
    "My family is visiting me. We have a lot to do before they come.",
    "I am in a bit of a hurry. My break ends soon.",
)
#: First words of a greeting, before which nobody tells a story.
_GREETINGS: Final = word_set("hi hello hey good greetings")
#: Words with which a user speaks of himself or to a business. Nobody asks for facts in this way.
_US: Final = word_set("i we me us my our you your")
#: Words with which a system speaks for a business.
_WE: Final = word_set("we our us")


@register_relation
class LongMessage(Wording):
    """Adds two or three sentences of small talk to a request. The answer must stay the same.

    Source: own.
    """

    name = "long-message"
    source = "sentences of this package (MIT)"
    reasons = (_NO_STORY,)
    most = 1
    checks_locks = False  # The user's own words stay, and no story has a value of the data.

    def changes(self, scene: Scene) -> Iterator[Change]:
        """Return the first turn with a story before or after its only request or question."""
        parts = [one for one in sentences(scene.turn.user) if not is_polite(one)]
        if scene.index or len(parts) != 1 or not speaks(parts[0]) or not parts[0].mark:
            return
        one, greets = parts[0], word_list(scene.turn.user)[0] in _GREETINGS
        if _US.isdisjoint(one.said) and not requests(one):
            return
        spoken = {word for turn in scene.dialogue.turns for word in word_list(turn.system)}
        before = (*_BEFORE, *(() if _WE.isdisjoint(spoken) else _BEFORE_BUSINESS))
        for text in filter(partial(_has_no_value, scene), () if greets else before):
            yield (Replacement(one.start, one.start, f"{text} ", "story_before"),)
        at = one.mark_at + len(one.mark)
        for text in filter(partial(_has_no_value, scene), _AFTER):
            yield (Replacement(at, at, f" {text}", "story_after"),)


def _has_no_value(scene: Scene, text: str) -> bool:
    """Return whether no word of a text is in a value of the data."""
    return not any(spell_compared(word) in scene.table.words for word in word_list(text))
