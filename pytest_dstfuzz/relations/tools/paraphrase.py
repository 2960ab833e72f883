"""Tools and their parameters under other names, and described in other words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pytest_dstfuzz.dialogue.calls import Transcript
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.renaming import ToolParaphrase
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.tools.base import NO_TOOLS, Told, ToolRelation, once_each

NO_OTHER_WORDS: Final = "none of its tools is there in other words"


@register_relation
class ToolsParaphrase(ToolRelation):
    """The calls stay, up to the names, where the tools are told of in other words.

    The words are those of ``--dst-relation=tools-paraphrase:PATH``: a file of the user's, or SGD-X.
    What was recorded has the other names, too, and those of an answer are mapped back.
    """

    name = "tools-paraphrase"
    expects = "{stays}, under the other names"
    source = "as its file says; SGD-X: Lee et al., AAAI 2022"
    reasons = (NO_TOOLS, NO_OTHER_WORDS)

    def impossible(self, data: DialogueSet) -> str:
        """Say why there is nothing to take: no tools, or no other words for one of them."""
        if why := super().impossible(data):
            return why
        if not data.paraphrases:
            return (
                "it needs the tools in other words (--dst-relation=tools-paraphrase:PATH, a JSON "
                "file, or the folder with SGD and SGD-X)"
            )
        named = {tool.name for tool in data.tools}
        if not any(named & one.tools.keys() for one in data.paraphrases):
            return "the file of tools-paraphrase has other words for none of the tools of the data"
        return ""

    def transcripts(self, scene: Scene, clean: Transcript) -> Iterator[Told] | str:
        """Return the list in the words of each paraphrase."""
        names = {tool.name for tool in clean.tools}
        known = [one for one in scene.data.paraphrases if names & one.tools.keys()]
        if not known:
            return NO_OTHER_WORDS
        return once_each(scene, ((_told(one), paraphrased(clean, one)) for one in known))


def paraphrased(clean: Transcript, words: ToolParaphrase) -> Transcript:
    """Return what was recorded, and the tools, under other names."""
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
    return f"the tools in the words of {words.name}"
