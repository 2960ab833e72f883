"""Disfluency: what people say while they think, begin again, and put right at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from pytest_dstfuzz.perturb.draft import FREE, KEPT, OPEN, SHUT
from pytest_dstfuzz.perturb.words import listed
from pytest_dstfuzz.relations.paraphrase.choices import Paraphrase, Places, begins_sentence
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Replacement, Scene
from pytest_dstfuzz.relations.should_change.sites import ValueSite, sites_of
from pytest_dstfuzz.relations.should_change.value_swap import unsaid
from pytest_dstfuzz.relations.values import article_before, written

_NONE: Final = "no place that is free of locks for a filler or a restart"
_MOST: Final = 3
#: Of the lexicon's fillers, those that nobody could take for an answer or a correction: where
#: `i mean` is, something is put right.
_ANYWHERE: Final = ("um", "uh", "er", "erm", "hmm")
_FIRST: Final = (*_ANYWHERE, "well")
#: Words that are said twice where somebody begins again, at most.
_AGAIN: Final = 3
#: Repairs of one slot.
_REPAIRS: Final = 2
_ARTICLES: Final = listed("a an")
_THANKS: Final = listed("thank")


@register_relation
class Disfluency(Paraphrase):
    """The state stays when somebody speaks with fillers, begins again, or puts a slip right.

    A repair says another value first and then, after `no`, the one that was said: the last one
    counts.

    Source: Liu et al., Robustness testing of language understanding in task-oriented dialog
    (LAUG), ACL 2021 (disfluency).
    """

    name = "disfluency"
    source = "fillers of the lexicon, of this package (MIT)"
    reasons = (_NONE,)

    def places(self, scene: Scene) -> Places | str:
        """Return where a filler may stand, and what may be said twice."""
        found = [*_fillers(scene), *_restarts(scene)]
        return self.places_of(found, _MOST)

    def begin(self, scene: Scene) -> Begun:
        """Return rewrites with fillers and restarts, and one for each repair."""
        begun = super().begin(scene)
        repairs = list(_repairs(scene))
        if isinstance(begun, Inapplicable):
            return repairs or begun
        return chain(begun, repairs)  # type: ignore[arg-type]  # it gives nothing but rewrites


def _fillers(scene: Scene) -> Iterator[Replacement]:
    """Yield one filler for each place, drawn."""
    words, states, reasons = scene.parts.words, scene.guarded.open, scene.guarded.reasons
    for index, word in enumerate(words):
        first = begins_sentence(scene, index)
        fillers = [one for one in (_FIRST if first else _ANYWHERE) if one in scene.lexicon.fillers]
        if not fillers:
            continue
        place = int(scene.rng.integers(len(fillers)))
        if states[index] == SHUT or scene.guards.guard_of(fillers[place]):
            continue
        # A cue and its value stay together: `to Oslo`.
        if index and (words[index - 1].lower in _THANKS or (reasons[index - 1] and reasons[index])):
            continue
        filler = f"{fillers[place].capitalize()}," if first else fillers[place]
        yield Replacement(word.start, word.start, f"{filler} ", "filler")


def _restarts(scene: Scene) -> Iterator[Replacement]:
    """Yield the first words of each sentence, said twice."""
    words, gaps, mask = scene.parts.words, scene.parts.gaps, scene.guarded
    for first in range(len(words)):
        if not begins_sentence(scene, first):
            continue
        for last in range(first, min(first + _AGAIN, len(words) - 1)):
            if mask.roles[last] not in {FREE, KEPT} or (last > first and gaps[last] != " "):
                break
            if mask.open[last + 1] != OPEN or gaps[last + 1] != " ":
                continue
            said = scene.turn.user[words[first].start : words[last].end]
            if words[first].lower.partition("'")[0] != "i" and not words[first].text.isupper():
                said = said[0].lower() + said[1:]
            yield Replacement(words[last].end, words[last].end, f", {said}", "restart")


def _repairs(scene: Scene) -> Iterator[Rewrite]:
    """Yield the turn with another value before one that it gives: `sunday, no, friday`."""
    for site in sites_of(scene).found:
        for value in islice(unsaid(scene, site.slot, site.value), _REPAIRS):
            text = _other(scene, site, value)
            if text:
                start = site.mention.start
                one = Replacement(start, start, f"{text}, no, ", "repair")
                yield scene.rewrite([one], about=f"{text}, no, {site.surface}")


def _other(scene: Scene, site: ValueSite, value: str) -> str | None:
    """Return another value as the old one is written, if the article before it fits."""
    first = site.mention.first
    if first != site.mention.last and site.kind != "time":
        return None
    if site.mention.spelled == "other" or len(value.split()) > 1:
        return None
    before = scene.parts.words[first - 1].lower if first else ""
    text = written(site.kind, value, site.surface)
    if text is None or (before in _ARTICLES and before != article_before(text)):
        return None
    return None if scene.guarded.open[first] == SHUT else text
