"""Uses a chat model with an OpenAI-compatible API as an agent with a goal (extra ``http``)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.config import Address, TrackerSettings
from pytest_dstfuzz.errors import UserError, needs_extra
from pytest_dstfuzz.games.game import MOST_CHARACTERS, Goal, GoalSelection, TalkLine
from pytest_dstfuzz.json_data import load_json

if TYPE_CHECKING:
    from pytest_dstfuzz.trackers.chat.client import ChatClient

_SELECT: Final = re.compile(r"SELECT\s*(\{[^{}]*\})")
_RULE: Final = (
    "What you know, and the other side does not: {goal}\n"
    "As soon as you have decided, answer with one line: SELECT and a JSON object of whole "
    "numbers, such as SELECT {example}. That ends the talk. Until then, answer with what you say."
)
_OVER: Final = "The talk is over. Answer with your SELECT line alone."
_FIRST: Final = "You speak first."


class ChatGoalAgent:
    """A chat model that gets a task and a goal, and decides with a line ``SELECT {...}``.

    Args:
        address: the address of the API, such as ``http://localhost:8000/v1``.
        task: the instructions before the goal.
        otherwise: the default selection, for an empty answer or a talk without a selection. The
            prompt also shows it as an example.
        model: the name of the model; by default the only model of the service.
        name: the name in reports.

    The environment variable ``DSTFUZZ_TOKEN`` has the token of the service. The temperature is 0.
    Some services still vary their answers; reports mention this.
    """

    def __init__(
        self,
        address: str,
        task: str,
        *,
        otherwise: GoalSelection,
        model: str | None = None,
        name: str = "chat model",
    ) -> None:
        if not address.startswith(("http://", "https://")):
            raise UserError(
                f"{Address(address)!r} is not the address of a chat model: it must begin with "
                "http:// or https://, such as http://localhost:8000/v1"
            )
        self.name, self._address, self._model = name, Address(address), model
        self._task, self._otherwise = task, otherwise
        self._told = ""

    @cached_property
    def _client(self) -> ChatClient:
        with needs_extra("a chat model as an agent", "http", "httpx"):
            from pytest_dstfuzz.trackers.chat.client import client_at  # noqa: PLC0415 - httpx
        from pytest_dstfuzz.trackers.schemes import ServiceSettings  # noqa: PLC0415 - with it

        how = TrackerSettings(service_model=self._model)
        return client_at(self._address, ServiceSettings(), how, "ChatGoalAgent(model=NAME)")

    def start(self, goal: Goal) -> None:
        """Start a new game: build the instructions from the task and the goal."""
        example = json.dumps(dict(self._otherwise.amounts))
        told = _RULE.format(goal=json.dumps(dict(goal)), example=example)
        self._told = f"{self._task}\n{told}"

    def reply(self, history: Sequence[TalkLine]) -> str | GoalSelection:
        """Ask the model for its next utterance or selection.

        Raises:
            TrackerError: the service does not answer, or its answer has no text.
        """
        messages = [{"role": "system", "content": self._told}]
        for line in history:
            role = "assistant" if line.mine else "user"
            messages.append({"role": role, "content": _OVER if line.closes else line.text})
        if not history or history[0].mine:
            # Many models require that the user speaks first.
            messages.insert(1, {"role": "user", "content": _FIRST})
        client = self._client
        choice = client.transport.wait(client.complete(messages))
        text = client.text_of(choice).strip()[:MOST_CHARACTERS]
        found = _selection(text)
        if found is None and (not text or (history and history[-1].closes)):
            return self._otherwise
        return text if found is None else found


def _selection(text: str) -> GoalSelection | None:
    """Return the selection in the last SELECT line with whole numbers, or ``None``."""
    for body in reversed(_SELECT.findall(text)):
        try:
            amounts = load_json(body)
        except ValueError:
            continue
        if amounts and all(type(amount) is int for amount in amounts.values()):
            return GoalSelection(amounts)
    return None
