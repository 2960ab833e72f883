"""A chat model as an assistant: messages and tools in, the tool calls of its next message out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.dialogue.writing import messages_and_tools
from pytest_dstfuzz.errors import TrackerError, UserError, unknown_name
from pytest_dstfuzz.trackers.calls.adapters import as_calls
from pytest_dstfuzz.trackers.chat.replies import ChatReplies
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web.secrets import in_json

#: Choices of tools that are no tool.
_CHOICES: Final = ("auto", "required", "none")


@dataclass(eq=False, repr=False, kw_only=True)
class ChatCalls(ChatReplies):
    """Asks a chat model for its next message, and reads the tool calls in it."""

    #: How it is to choose among the tools, in the form of OpenAI's API; ``None`` = it is not said.
    choice: str | Mapping[str, Any] | None = None

    async def _answer(self, context: Context) -> Prediction:
        messages, tools = messages_and_tools(context, self.opening)
        more: dict[str, Any] = {}
        if tools:
            more["tools"] = tools
            if self.choice is not None:
                more["tool_choice"] = self.choice
        return self._read(await self._choice(messages, **more))

    def _read(self, choice: Mapping[str, Any]) -> Prediction:
        """Return the calls of a message; one that calls nothing, as a refusal, has none."""
        if choice.get("finish_reason") == "length":
            raise TrackerError("the model's answer was cut off: the service limits its length")
        message = choice["message"]
        with suppress(TrackerError):
            return as_calls(message)
        # Masked before it is cut, as the message of the error shows the beginning of what is wrong.
        return as_calls(in_json(self.client.transport.secrets.redact, message))


def chosen(choice: str | None, data: DialogueSet) -> str | Mapping[str, Any] | None:
    """Return a choice of tools in the form of OpenAI's API; ``auto``, or the name of a tool.

    Raises:
        UserError: no dialogue has tools, or none of them has that name.
    """
    names = {tool.name for tool in data.tools}
    if data.dialogues and not names:
        raise UserError(
            "the data brings no tools, so that a model has nothing to call: give them beside the "
            'messages of each dialogue, {"messages": [...], "tools": [...]}'
        )
    if choice is None or choice in _CHOICES:
        return choice
    if choice not in names:
        raise unknown_name("choice of tools", choice, {*_CHOICES, *names})
    return {"type": "function", "function": {"name": choice}}
