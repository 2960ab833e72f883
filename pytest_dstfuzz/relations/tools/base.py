"""What the relations on tools share: the user says the same, and the list of tools is another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Final, Literal

from pytest_dstfuzz.dialogue.calls import Tool, Transcript
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.outcome import OutcomeKind
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Scene

NO_TOOLS: Final = "the dialogue has no tools"
#: Rewrites of a turn.
MOST: Final = 16
#: What is done, in words, and what comes of it.
Told = tuple[str, Transcript]


class ToolRelation(Relation):
    """The calls stay where the assistant is told of its tools in another way.

    A class that inherits from it writes ``name``, ``reasons`` and `transcripts`.
    """

    on: ClassVar[tuple[OutcomeKind, ...]] = ("tool-calls",)
    edits: ClassVar[Literal["search", "own"]] = "own"
    expects: ClassVar[str] = "{stays}"

    def impossible(self, data: DialogueSet) -> str:
        """Say so where no dialogue has tools."""
        if data.tools:
            return ""
        return "it edits the list of tools, and no dialogue has one"

    def begin(self, scene: Scene) -> Begun:
        """Return the turn with other lists of tools."""
        transcript = scene.context.transcript
        if transcript is None or not transcript.tools:
            return Inapplicable(NO_TOOLS)
        found = self.transcripts(scene, transcript)
        if isinstance(found, str):
            return Inapplicable(found)
        return (_rewritten(scene, one, about) for about, one in found)

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterable[Told] | str:
        """Return what comes of it, or why nothing does."""
        raise NotImplementedError


def with_tools(clean: Transcript, tools: Iterable[Tool]) -> Transcript:
    """Return what was recorded with another list of tools."""
    return replace(clean, tools=tuple(tools))


def once_each(scene: Scene, made: Iterable[Told]) -> Iterator[Told]:
    """Yield those that differ from the clean one and from each other, `MOST` at most."""
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
