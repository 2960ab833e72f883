"""A chat model as what it is: the messages so far in, its reply out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.dialogue.writing import OpeningRole, messages_of
from pytest_dstfuzz.errors import TrackerError, UserError
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.trackers.arriving import taker_of
from pytest_dstfuzz.trackers.chat.client import REFUSED, ChatClient
from pytest_dstfuzz.trackers.tracker import Prediction, Usage
from pytest_dstfuzz.trackers.web.transport import ServiceError


@dataclass(eq=False, repr=False, kw_only=True)
class ChatReplies:
    """Asks a chat model for its reply to the messages of a dialogue, at temperature 0."""

    #: At temperature 0 too, services answer the same question now so and now so.
    repeatable: ClassVar = False
    #: The API has no version that is known before the first answer and stands for all.
    fingerprint: ClassVar = None

    client: ChatClient
    #: What it is told before the dialogue; ``""`` = nothing.
    system: str = ""
    #: Whose message is what the system says before the user has said anything.
    opening: OpeningRole = "assistant"

    @property
    def usage(self) -> Usage:
        """What all answers so far took."""
        return self.client.usage

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return a reply, or why there is none, for each context."""
        jobs = [partial(self._answer, context) for context in contexts]
        return self.client.transport.map(jobs, taker_of(self))

    async def _answer(self, context: Context) -> Prediction:
        choice = await self._choice([*messages_of(context, self.opening)])
        return Prediction(BeliefState(), reply=self.client.text_of(choice))

    async def _choice(self, messages: list[dict[str, Any]], **more: Any) -> Mapping[str, Any]:
        """Return what the model says to messages; ``more`` goes into the request."""
        first = messages[0]["role"]
        try:
            return await self.client.complete(self._told(messages), **more)
        except ServiceError as error:
            if error.status not in REFUSED or first != "assistant":
                raise
            raise TrackerError(
                f"{error}; if the user is to speak first there, the system's opening words can go "
                "into the system message: --dst-tracker opening=system"
            ) from None

    def _told(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return messages with what the model is told before them."""
        if not self.system:
            return messages
        first, *others = messages
        if first["role"] == "system" and isinstance(first["content"], str):
            # Templates of many models take one such message alone.
            return [{**first, "content": f"{self.system}\n\n{first['content']}"}, *others]
        return [{"role": "system", "content": self.system}, *messages]


def system_message(path: str | None) -> str:
    """Return what a file tells the model; of no file, ``""``."""
    if path is None:
        return ""
    text = read_text(Path(path), "prompt").strip()
    if not text:
        raise UserError(f"{path}: the prompt is empty; leave --dst-tracker prompt out for none")
    return text
