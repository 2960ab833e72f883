"""Relations that change an assistant's list of tools, but not their functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from itertools import chain
from typing import ClassVar, Final, Literal

from pytest_dstfuzz.dialogue.calls import (
    AnswerPath,
    Outcome,
    OutcomeKind,
    Tool,
    Transcript,
    arguments_in,
    calls_outcome,
    canonical,
)
from pytest_dstfuzz.dialogue.dialogues import DialogueSet, ToolParaphrase
from pytest_dstfuzz.dialogue.ontology import iterate_recorded_calls, unread_tools
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.perturb.words import word_list, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Inapplicable, Relation, Rewrite, Scene, TurnStart
from pytest_dstfuzz.relations.values import name_words

NO_TOOLS: Final = "the dialogue has no tools"
#: Maximum number of rewrites per turn.
MOST: Final = 16
#: A description of the change, and the resulting transcript.
RenamedTools = tuple[str, Transcript]


class ToolRelation(Relation):
    """Changes the assistant's list of tools. The calls must stay the same.

    A subclass defines ``name``, ``reasons`` and `transcripts`.
    """

    on: ClassVar[tuple[OutcomeKind, ...]] = ("tool-calls",)
    edits: ClassVar[Literal["search", "own"]] = "own"
    expects: ClassVar[str] = "{stays}"

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no dialogue has tools, otherwise ``""``."""
        if data.tools:
            return ""
        return "it edits the list of tools, and no dialogue has tools"

    def begin(self, scene: Scene) -> TurnStart:
        """Return the turn with other lists of tools, or the reason why no list is possible."""
        transcript = scene.context.transcript
        if transcript is None or not transcript.tools:
            return Inapplicable(NO_TOOLS)
        found = self.transcripts(scene, transcript)
        if isinstance(found, str):
            return Inapplicable(found)
        return (_rewritten(scene, one, about) for about, one in found)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterable[RenamedTools] | str:
        """Return the dialogue with other lists of tools, or the reason why no list is possible."""
        raise NotImplementedError


def with_tools(clean: Transcript, tools: Iterable[Tool]) -> Transcript:
    """Return a dialogue with another list of tools."""
    return replace(clean, tools=tuple(tools))


def once_each(scene: Scene, made: Iterable[RenamedTools]) -> Iterator[RenamedTools]:
    """Yield at most `MOST` different dialogues. None equals the clean dialogue."""
    seen = {scene.context.transcript}
    for about, one in made:
        if len(seen) > MOST:
            return
        if one not in seen:
            seen.add(one)
            yield about, one


def _rewritten(scene: Scene, transcript: Transcript, about: str) -> Rewrite:
    return Rewrite(
        seen=replace(scene.context, transcript=transcript),
        reference=scene.context,
        about=about,
    )


ONE_TOOL: Final = "the dialogue has only one tool"


@register_relation
class ToolsOrder(ToolRelation):
    """Changes the order of the tools. The calls must stay the same."""

    name = "tools-order"
    reasons = (NO_TOOLS, ONE_TOOL)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[RenamedTools] | str:
        """Return the dialogue with the tools in reverse order and in random orders."""
        if len(clean.tools) < 2:
            return ONE_TOOL
        return once_each(scene, _orders(scene, clean))


def _orders(scene: Scene, clean: Transcript) -> Iterator[RenamedTools]:
    yield "the tools in reverse order", with_tools(clean, clean.tools[::-1])
    for _ in range(MOST):
        order = scene.rng.permutation(len(clean.tools)).tolist()
        told = ", ".join(str(place + 1) for place in order)
        yield (
            f"the tools in the order {told}",
            with_tools(clean, (clean.tools[place] for place in order)),
        )


NONE_APART: Final = "every other known tool is related to the dialogue"
#: Words in the names of tools of any kind, which do not show their subject.
_DOING: Final = word_set(
    "get find search book buy reserve add set make call list show check look lookup create update "
    "play request schedule send a an the of for to in at on by and or with"
)
_LETTERS: Final = re.compile(r"[a-z]+")


@register_relation
class ToolsDistractor(ToolRelation):
    """Adds a tool that has nothing to do with the dialogue. The calls must stay the same."""

    name = "tools-distractor"
    source = "tools of other dialogues of the data; resources/relations/tools.json, of this package"
    reasons = (NO_TOOLS, NONE_APART)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[RenamedTools] | str:
        """Return dialogues with one more tool: first a tool of the data, then a shipped tool."""
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


def _with_one(scene: Scene, clean: Transcript, apart: Iterable[Tool]) -> Iterator[RenamedTools]:
    for tool in apart:
        place = int(scene.rng.integers(len(clean.tools) + 1))
        tools = (*clean.tools[:place], tool, *clean.tools[place:])
        yield f"one more tool, {tool.name}, at position {place + 1}", with_tools(clean, tools)


def _tools_of(data: DialogueSet) -> tuple[Tool, ...]:
    """Return the tools of the data, one for each name."""
    found: dict[str, Tool] = {}
    for tool in data.tools:
        found.setdefault(tool.name, tool)
    return tuple(found.values())


@cache
def _shipped() -> tuple[Tool, ...]:
    path = resources.files("pytest_dstfuzz") / "resources" / "relations" / "tools.json"
    return read_tools(path.read_text(encoding="utf-8"), "the shipped tools")


@lru_cache(maxsize=4096)
def _about(name: str) -> frozenset[str]:
    """Return the subject of a tool: the words of its name without verbs and plural endings.

    >>> sorted(_about("Hotels_2_SearchHouse"))
    ['hotel', 'house']
    """
    words = (word for part in re.split(r"[^A-Za-z]+", name) if part for word in name_words(part))
    return frozenset(_single(word) for word in words if word not in _DOING)


def _single(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _said(scene: Scene, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the words of the dialogue up to the turn, and of its tools' descriptions."""
    found: set[str] = set()
    for tool in tools:
        found |= _about(tool.name)
        found.update(_LETTERS.findall(tool.description.lower()))
    for text in scene.context.utterances:
        found.update(word_list(text))
    return frozenset(map(_single, found))


NONE_SPARE: Final = "no tool has an unused optional parameter"


@register_relation
class ToolsOptional(ToolRelation):
    """Removes an optional parameter that the calls do not use. The calls must stay the same."""

    name = "tools-optional"
    reasons = (NO_TOOLS, NONE_SPARE)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[RenamedTools] | str:
        """Return dialogues without one parameter. Parameters of tools with calls come first."""
        used, unread = used_parameters(scene), unread_tools(scene.dialogue)
        spare = [
            (place, name)
            for place, tool in enumerate(clean.tools)
            if tool.name not in unread
            for name in optional_parameters(tool)
            if f"{tool.name}.{name}" not in used
        ]
        if not spare:
            return NONE_SPARE
        called = {place.tool for path in scene.now if (place := AnswerPath.of(path)).in_call}
        drawn = [spare[at] for at in scene.rng.permutation(len(spare)).tolist()]
        drawn.sort(key=lambda one: clean.tools[one[0]].name not in called)
        return once_each(scene, (_without(clean, *one) for one in drawn))


def optional_parameters(tool: Tool) -> list[str]:
    """Return the parameters that the schema of a tool does not require."""
    schema = tool.schema
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    names = properties if isinstance(properties, dict) else {}
    return [name for name in names if name not in needed]


def used_parameters(scene: Scene) -> frozenset[str]:
    """Return the parameters that the clean answer or recorded calls use, as ``tool.parameter``.

    Calls of later turns count, too, because an assistant may make them as soon as it knows enough.
    """
    dialogue = scene.dialogue
    made = [turn.calls or Outcome() for turn in dialogue.turns]
    made += (calls_outcome([call]) for call in iterate_recorded_calls(dialogue))
    used = chain.from_iterable(map(arguments_in, (scene.now, *made)))
    return frozenset(f"{path.tool}.{path[2]}" for path, _ in used)


def _without(clean: Transcript, at: int, name: str) -> RenamedTools:
    tool = clean.tools[at]
    schema = tool.schema
    del schema["properties"][name]
    less = tool._replace(parameters=canonical(schema))
    tools = (less if place == at else other for place, other in enumerate(clean.tools))
    return f"{tool.name} without its optional parameter {name}", with_tools(clean, tools)


NO_OTHER_WORDS: Final = "no tool of the dialogue has a paraphrase"


@register_relation
class ToolsParaphrase(ToolRelation):
    """Describes the tools in other words. The calls must stay the same, except for the names.

    ``--dst-relation=tools-paraphrase:PATH`` names the source of the words: a file of the user, or
    SGD-X. The recorded calls get the new names, too. The names in an answer are converted back.
    """

    name = "tools-paraphrase"
    expects = "{stays}, under the new names"
    source = "as its file says; SGD-X: Lee et al., AAAI 2022"
    reasons = (NO_TOOLS, NO_OTHER_WORDS)

    def impossible(self, data: DialogueSet) -> str:
        """Return an error text if no dialogue has tools, or no tool has a paraphrase."""
        if why := super().impossible(data):
            return why
        if not data.paraphrases:
            return (
                "it needs other names and descriptions of the tools: give "
                "--dst-relation=tools-paraphrase:PATH, a JSON file or the folder with SGD and SGD-X"
            )
        named = {tool.name for tool in data.tools}
        if not any(named & one.tools.keys() for one in data.paraphrases):
            return "the file of tools-paraphrase has no tool of the data"
        return ""

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[RenamedTools] | str:
        """Return the dialogue in the words of each paraphrase."""
        names = {tool.name for tool in clean.tools}
        known = [one for one in scene.data.paraphrases if names & one.tools.keys()]
        if not known:
            return NO_OTHER_WORDS
        return once_each(scene, ((_told(one), paraphrase_transcript(clean, one)) for one in known))


def paraphrase_transcript(clean: Transcript, words: ToolParaphrase) -> Transcript:
    """Return a dialogue with its tools and recorded calls renamed."""
    before = tuple(
        None if block is None else tuple(map(words.message, block)) for block in clean.before
    )
    return replace(
        clean,
        tools=words.applied(clean.tools),
        before=before,
        names=words.names(clean.tools),
    )


def _told(words: ToolParaphrase) -> str:
    return f"the tools in the wording of {words.name}"
