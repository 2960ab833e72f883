"""A chat model behind an OpenAI-compatible endpoint: its requests, replies and calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit, urlunsplit

from pytest_dstfuzz.config import Address, TrackerSettings
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    DialogueSet,
    OpeningRole,
    messages_and_tools,
    messages_of,
)
from pytest_dstfuzz.errors import (
    GivenUpError,
    MalformedAnswerError,
    NoAnswerError,
    TrackerError,
    UserError,
    unknown_name,
)
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.adapting import taker_of
from pytest_dstfuzz.trackers.calls import as_calls
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction, Usage
from pytest_dstfuzz.trackers.web.secrets import in_json
from pytest_dstfuzz.trackers.web.transport import (
    MalformedReply,
    Reply,
    ServiceError,
    Transport,
    ended_early,
)

__all__ = ["ChatClient", "client_at"]


def joined_completion(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the chat completion whose parts, in their order, are events of a stream.

    Texts and the arguments of tool calls come in pieces, of several calls in turns. Of the counts
    of tokens the last ones count.

    Raises:
        MalformedReply: the stream ends before the answer does.
    """
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls = _StreamedCalls()
    finish = usage = None
    for event in events:
        usage = event.get("usage") or usage
        choice = _first_choice(event)
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            continue
        for key in ("content", "refusal"):
            if isinstance(piece := delta.get(key), str):
                message[key] = (message.get(key) or "") + piece
        for piece in _mappings(delta.get("tool_calls")):
            calls.add(piece)
        if isinstance(old := delta.get("function_call"), Mapping):
            _add_function(message.setdefault("function_call", {}), old)
    if finish is None:
        raise ended_early()
    if calls.whole:
        message["tool_calls"] = calls.whole
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


class _StreamedCalls:
    """The tool calls of a message while their pieces come."""

    def __init__(self) -> None:
        self.whole: list[dict[str, Any]] = []
        #: What a service numbers a call with -> the place of the newest call with that number.
        self._places: dict[object, int] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        """Put a piece to its call.

        A new id begins a call of its own: some services give all calls of a message one number, or
        none.
        """
        number, id_ = piece.get("index"), piece.get("id") or None
        given = piece.get("function")
        function = given if isinstance(given, Mapping) else {}
        place = self._places.get(number)
        if place is None or self._is_another(self.whole[place], id_, number, function):
            place = self._places[number] = len(self.whole)
            self.whole.append({"id": None, "type": "function", "function": {}})
        call = self.whole[place]
        call["id"] = call["id"] or id_
        _add_function(call["function"], function)

    @staticmethod
    def _is_another(
        call: Mapping[str, Any], id_: object, number: object, function: Mapping[str, Any]
    ) -> bool:
        """Whether a piece with the number of a call is of another one."""
        if id_ is not None and call["id"] is not None:
            return bool(id_ != call["id"])
        return number is None and bool(function.get("name")) and "arguments" in call["function"]


def _add_function(function: dict[str, Any], piece: Mapping[str, Any]) -> None:
    name, arguments = piece.get("name"), piece.get("arguments")
    # Some repeat the whole name with every piece.
    if isinstance(name, str) and name != function.get("name"):
        function["name"] = function.get("name", "") + name
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments)
    if isinstance(arguments, str):
        function["arguments"] = function.get("arguments", "") + arguments


def _first_choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of an event that is of the first choice; the last event may have none."""
    choices = _mappings(event.get("choices"))
    return next((one for one in choices if not one.get("index")), {})


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


#: Where the API is under an address that names no path.
_DEFAULT_PATH: Final = "/v1"
#: Names of models that a message lists.
_LISTED: Final = 10
#: Statuses with which a service refuses a request for what it asks.
REFUSED: Final = (400, 422)
#: What some services refuse, and a request can do without.
_SPARED: Final = ("temperature", "stream_options")

#: From the answer to a request for a message: what it took, and its choice of a completion.
ReadChoice = Callable[[Reply], tuple[Usage, Mapping[str, Any]]]


@dataclass(eq=False, repr=False, kw_only=True)
class ChatClient:
    """Asks a chat model at temperature 0, and counts what its answers took."""

    #: To the address that the API's paths are joined to.
    transport: Transport
    #: The name under which the service knows the model.
    model: str
    #: Money for a million tokens of prompts, and of answers; ``None`` = not known.
    prices: tuple[float, float] | None
    #: Whether answers are to come in pieces, as a program for people asks for them.
    stream: bool = False
    #: What the service was asked without, as it refuses it.
    _refused: frozenset[str] = field(default=frozenset(), init=False)
    _used: Usage = field(default_factory=Usage, init=False)

    @property
    def usage(self) -> Usage:
        """What all answers so far took."""
        used = self._used
        if self.prices is None:
            return used
        per_prompt, per_answer = self.prices
        cost = (used.prompt_tokens * per_prompt + used.completion_tokens * per_answer) / 1e6
        return replace(used, cost=cost)

    async def complete(self, messages: list[dict[str, Any]], **more: Any) -> Mapping[str, Any]:
        """Return the first choice of a completion; ``more`` goes into the request.

        Raises:
            TrackerError: as `Transport.ask`.
        """
        body = {"model": self.model, "messages": messages, "temperature": 0, **more}
        if self.stream:
            # Without it a stream has no counts of tokens.
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return await self._asked("chat/completions", body, _completion)

    async def _asked(
        self, path: str, body: Mapping[str, Any], read: ReadChoice
    ) -> Mapping[str, Any]:
        """Return the choice that a request brings; without what the service refuses of it."""
        refused = self._refused
        while True:
            sent = {key: value for key, value in body.items() if key not in refused}
            try:
                choice = await self._once(path, sent, read)
            except ServiceError as error:
                named = {key for key in _SPARED if key in sent and key in error.text}
                if error.status not in REFUSED or not named:
                    raise
                refused = refused | named
            else:
                # Not before it has shown that it was refused for that.
                self._refused |= refused
                return choice

    async def _once(
        self, path: str, body: Mapping[str, Any], read: ReadChoice
    ) -> Mapping[str, Any]:
        """Return the choice that a request brings, and count what it took."""
        usage, choice = await self.transport.ask("POST", path, body, read=read)
        self._used += usage
        if not self.stream:
            return choice
        # In pieces, what is masked in whole bodies was not found.
        cleaned: Mapping[str, Any] = in_json(self.transport.secrets.scrub_text, choice)
        return cleaned

    def text_of(self, choice: Mapping[str, Any]) -> str:
        """Return the text of a choice.

        Raises:
            TrackerError: the model refused or was cut off: at temperature 0 that is its answer. If
                it wrote no text, it is a `MalformedAnswerError`.
        """
        message = choice["message"]
        text, refusal = message.get("content"), message.get("refusal")
        if refusal:
            refused = f"the model refused to answer: {refusal}"
            raise TrackerError(self.transport.secrets.redact(refused))
        if choice.get("finish_reason") == "length":
            raise TrackerError("the model's answer was cut off: the service limits its length")
        if not isinstance(text, str):
            raise MalformedAnswerError("the model's answer holds no text")
        return text


#: How the model of a tested system is named.
_NAMED: Final = "--dst-tracker service-model=NAME"


def client_at(
    url: Address,
    service: ServiceSettings,
    settings: TrackerSettings,
    named: str = _NAMED,
    kind: type[ChatClient] = ChatClient,
) -> ChatClient:
    """Return the client of the model that settings name, or else of the only one at an address.

    The address is that of the API as OpenAI's client takes it, such as
    ``http://localhost:8000/v1``; without a path, ``/v1`` is meant. Messages say how a model is
    ``named``; the client is one of a ``kind``.
    """
    transport = Transport(_with_path(url), service)
    return kind(
        transport=transport,
        model=settings.service_model or model_name(transport, named),
        prices=settings.prices,
        stream=settings.stream,
    )


def model_name(transport: Transport, named: str = _NAMED) -> str:
    """Return the name of the service's only model; none or several are a `UserError`."""
    which = f"name the model with {named}"
    try:
        names = transport.wait(transport.ask("GET", "models", read=_names))
    except GivenUpError:
        raise
    except TrackerError as error:
        if isinstance(error, ServiceError) and error.status is None:
            raise NoAnswerError(str(error)) from None
        raise UserError(f"{which}: the service does not list its models ({error})") from None
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    listed = transport.secrets.redact(shown) or "none"
    raise UserError(f"{which}: the service at {transport.address} lists {listed}")


def _names(reply: Reply) -> list[str]:
    body = reply.json()
    listed = body.get("data") if isinstance(body, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    names = (entry.get("id") for entry in entries if isinstance(entry, Mapping))
    return sorted(name for name in names if isinstance(name, str))


def _completion(reply: Reply) -> tuple[Usage, Mapping[str, Any]]:
    """Return what a chat completion took, and its first choice."""
    body = joined_completion(reply.events()) if reply.is_stream else reply.json()
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        # Some put a failure that will pass into an answer of status 200.
        passing = isinstance(body, Mapping) and "error" in body
        raise MalformedReply(
            f"answered with no chat completion, {describe(body)}: it has no choices[0].message",
            passing=passing,
        )
    found = body.get("usage")
    counts = found if isinstance(found, Mapping) else {}
    return counted(counts.get("prompt_tokens"), counts.get("completion_tokens")), choice


def counted(prompt: object, completion: object) -> Usage:
    """Return what one answer took; what is no number of tokens gives no counts."""
    # True is an int to Python, but it is no number of tokens.
    if type(prompt) is int and type(completion) is int and min(prompt, completion) >= 0:
        return Usage(1, 0, prompt, completion)
    return Usage(1, 1)


def _with_path(url: Address) -> Address:
    try:
        parts = urlsplit(url.full)
    except ValueError:
        # The transport says what is wrong with it.
        return url
    if parts.path not in ("", "/"):
        return url
    return Address(urlunsplit(parts._replace(path=_DEFAULT_PATH)))


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
