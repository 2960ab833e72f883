"""One more tool that has nothing to do with the dialogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from pytest_dstfuzz.dialogue.calls import Tool, Transcript
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.perturb.words import listed, word_list
from pytest_dstfuzz.relations.kinds import name_words
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.tools.base import (
    MOST,
    NO_TOOLS,
    Told,
    ToolRelation,
    once_each,
    with_tools,
)

NONE_APART: Final = "every other tool that is known has to do with the dialogue"
#: What tools of all kinds do: words of their names that say nothing about what for.
_DOING: Final = listed(
    "get find search book buy reserve add set make call list show check look lookup create update "
    "play request schedule send a an the of for to in at on by and or with"
)
_LETTERS: Final = re.compile(r"[a-z]+")


@register_relation
class ToolsDistractor(ToolRelation):
    """The calls stay where a tool for something else is on the list as well."""

    name = "tools-distractor"
    source = "tools of other dialogues of the data; resources/relations/tools.json, of this package"
    reasons = (NO_TOOLS, NONE_APART)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[Told] | str:
        """Return the list with one tool more: from the data first, else one that ships."""
        here = _said(scene, clean.tools)
        names = {tool.name for tool in clean.tools}
        apart: list[Tool] = []
        for pool in (scene.once(_tools_of), _shipped()):
            found = [
                tool for tool in pool if tool.name not in names and not (_about(tool.name) & here)
            ]
            apart += [found[at] for at in scene.rng.permutation(len(found)).tolist()]
        if not apart:
            return NONE_APART
        return once_each(scene, _with_one(scene, clean, apart[:MOST]))


def _with_one(scene: Scene, clean: Transcript, apart: Iterable[Tool]) -> Iterator[Told]:
    for tool in apart:
        place = int(scene.rng.integers(len(clean.tools) + 1))
        tools = (*clean.tools[:place], tool, *clean.tools[place:])
        yield f"one more tool, {tool.name}, in place {place + 1}", with_tools(clean, tools)


def _tools_of(data: DialogueSet) -> tuple[Tool, ...]:
    """Return the tools of the data, each name once."""
    found: dict[str, Tool] = {}
    for tool in data.tools:
        found.setdefault(tool.name, tool)
    return tuple(found.values())


@cache
def _shipped() -> tuple[Tool, ...]:
    path = resources.files("pytest_dstfuzz") / "resources" / "relations" / "tools.json"
    return read_tools(path.read_text(encoding="utf-8"), "the tools that ship")


@lru_cache(maxsize=4096)
def _about(name: str) -> frozenset[str]:
    """Return what a tool is about: the words of its name but for `_DOING`, without a plural.

    >>> sorted(_about("Hotels_2_SearchHouse"))
    ['hotel', 'house']
    """
    words = (word for part in re.split(r"[^A-Za-z]+", name) if part for word in name_words(part))
    return frozenset(_single(word) for word in words if word not in _DOING)


def _single(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _said(scene: Scene, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the words of the dialogue up to the turn, and of what its tools are for."""
    found: set[str] = set()
    for tool in tools:
        found |= _about(tool.name)
        found.update(_LETTERS.findall(tool.description.lower()))
    for text in scene.context.utterances:
        found.update(word_list(text))
    return frozenset(map(_single, found))
