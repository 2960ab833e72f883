"""A client for chat models behind an OpenAI-compatible endpoint, with replies and calls."""

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
    report_early_end,
)

__all__ = ["ChatClient", "client_at"]


def join_completion(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the events of a stream to a chat completion.

    Texts and arguments of tool calls arrive in pieces. The pieces of several calls may alternate.
    If token counts arrive more than once, the last ones apply.

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
        raise report_early_end()
    if calls.whole:
        message["tool_calls"] = calls.whole
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


class _StreamedCalls:
    """The tool calls of a message, collected from their pieces."""

    def __init__(self) -> None:
        self.whole: list[dict[str, Any]] = []
        #: Index of a call in the stream -> place of the newest call with this index.
        self._places: dict[object, int] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        """Append a streamed piece to its tool call.

        A new id begins a new call, because some services give all calls of a message the same index
        or none.
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
        """Return whether a piece begins a new call, although its index is not new."""
        if id_ is not None and call["id"] is not None:
            return bool(id_ != call["id"])
        return number is None and bool(function.get("name")) and "arguments" in call["function"]


def _add_function(function: dict[str, Any], piece: Mapping[str, Any]) -> None:
    name, arguments = piece.get("name"), piece.get("arguments")
    # Some services repeat the whole name in every piece.
    if isinstance(name, str) and name != function.get("name"):
        function["name"] = function.get("name", "") + name
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments)
    if isinstance(arguments, str):
        function["arguments"] = function.get("arguments", "") + arguments


def _first_choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of an event. The last event may have none."""
    choices = _mappings(event.get("choices"))
    return next((one for one in choices if not one.get("index")), {})


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


#: Path of the API if the address has none.
_DEFAULT_PATH: Final = "/v1"
#: Maximum number of model names in a message.
_LISTED: Final = 10
#: Statuses of a request that is refused because of its content.
REFUSED: Final = (400, 422)
#: The answer of a model that reached the limit for its length.
_CUT_OFF: Final = "the model's answer was cut off: it reached the limit of tokens"

#: A function of the answer to a request. It returns the usage and the choice of a completion.
ReadChoice = Callable[[Reply], tuple[Usage, Mapping[str, Any]]]


@dataclass(eq=False, repr=False, kw_only=True)
class ChatClient:
    """A client that asks a chat model at temperature 0, and counts its usage."""

    #: Keys that some services refuse and that a request can omit.
    spared: ClassVar[tuple[str, ...]] = ("temperature", "stream_options", "seed", "max_tokens")

    #: The connection to the service. Its address is the base of the API's paths.
    transport: Transport
    #: The name under which the service knows the model.
    model: str
    #: Price of a million prompt tokens, and of a million completion tokens, or ``None``.
    prices: tuple[float, float] | None
    #: Whether to stream answers, as interactive programs do.
    stream: bool = False
    #: Keys that the service refuses, and that requests therefore omit.
    _refused: frozenset[str] = field(default=frozenset(), init=False)
    _used: Usage = field(default_factory=Usage, init=False)

    @property
    def usage(self) -> Usage:
        """The usage of all answers so far."""
        used = self._used
        if self.prices is None:
            return used
        per_prompt, per_answer = self.prices
        cost = (used.prompt_tokens * per_prompt + used.completion_tokens * per_answer) / 1e6
        return replace(used, cost=cost)

    async def complete(self, messages: list[dict[str, Any]], **more: Any) -> Mapping[str, Any]:
        """Return the first choice of a completion. ``more`` is added to the request.

        Raises:
            TrackerError: see `Transport.ask`.
        """
        body = {"model": self.model, "messages": messages, "temperature": 0, **more}
        if self.stream:
            # Without this option, a stream has no token counts.
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return await self._asked("chat/completions", body, _completion)

    async def _asked(
        self, path: str, body: Mapping[str, Any], read: ReadChoice
    ) -> Mapping[str, Any]:
        """Send a request and return the first choice. Drop keys that the service refuses."""
        refused = self._refused
        while True:
            sent = {key: value for key, value in body.items() if key not in refused}
            try:
                choice = await self._once(path, sent, read)
            except ServiceError as error:
                named = {key for key in self.spared if key in sent and key in error.text}
                if error.status not in REFUSED or not named:
                    raise
                refused = refused | named
            else:
                # Remember the keys only after a request without them succeeded.
                self._refused |= refused
                return choice

    async def _once(
        self, path: str, body: Mapping[str, Any], read: ReadChoice
    ) -> Mapping[str, Any]:
        """Send a request, count the usage, and return the first choice."""
        usage, choice = await self.transport.ask("POST", path, body, read=read)
        self._used += usage
        if not self.stream:
            return choice
        # Mask again, because a credential that was split over pieces was not masked in the body.
        cleaned: Mapping[str, Any] = in_json(self.transport.secrets.scrub_text, choice)
        return cleaned

    def text_of(self, choice: Mapping[str, Any], *, cut_off: bool = False) -> str:
        """Return the text of a choice. ``cut_off`` accepts a text without its end.

        Raises:
            MalformedAnswerError: the answer has no text.
            TrackerError: the model refused or was cut off. At temperature 0, that is its answer.
        """
        message = choice["message"]
        text, refusal = message.get("content"), message.get("refusal")
        if refusal:
            refused = f"the model refused to answer: {refusal}"
            raise TrackerError(self.transport.secrets.redact(refused))
        if choice.get("finish_reason") == "length" and not cut_off:
            raise TrackerError(_CUT_OFF)
        if not isinstance(text, str):
            raise MalformedAnswerError("the model's answer has no text")
        return text


#: The option that names the model of a tested system.
_NAMED: Final = "--dst-tracker service-model=NAME"


def client_at(
    url: Address,
    service: ServiceSettings,
    settings: TrackerSettings,
    named: str = _NAMED,
    kind: type[ChatClient] = ChatClient,
) -> ChatClient:
    """Return a client for the model in the settings, or for the service's only model.

    The address is the base URL of the API, as for OpenAI's client, such as
    ``http://localhost:8000/v1``. If it has no path, ``/v1`` is added. ``named`` is the option that
    names a model, for messages. ``kind`` is the class of the client.
    """
    transport = Transport(_with_path(url), service)
    return kind(
        transport=transport,
        model=settings.service_model or model_name(transport, named),
        prices=settings.prices,
        stream=settings.stream,
    )


def model_name(transport: Transport, named: str = _NAMED) -> str:
    """Return the name of the service's only model.

    Raises:
        UserError: the service lists no model or several, or does not list them.
        NoAnswerError: the service cannot be reached.
    """
    which = f"name the model with {named}"
    try:
        names = transport.wait(transport.ask("GET", "models", read=_names))
    except GivenUpError:
        raise
    except TrackerError as error:
        if isinstance(error, ServiceError) and error.status is None:
            raise NoAnswerError(str(error)) from None
        raise UserError(f"the service does not list its models ({error}): {which}") from None
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    listed = transport.secrets.redact(shown) or "no models"
    raise UserError(f"the service at {transport.address} lists {listed}: {which}")


def _names(reply: Reply) -> list[str]:
    body = reply.json()
    listed = body.get("data") if isinstance(body, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    names = (entry.get("id") for entry in entries if isinstance(entry, Mapping))
    return sorted(name for name in names if isinstance(name, str))


def _completion(reply: Reply) -> tuple[Usage, Mapping[str, Any]]:
    """Return the usage of a chat completion, and its first choice."""
    body = join_completion(reply.events()) if reply.is_stream else reply.json()
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        # Some services report a temporary failure with status 200.
        passing = isinstance(body, Mapping) and "error" in body
        raise MalformedReply(
            f"answered with {describe(body)} instead of a chat completion with choices[0].message",
            passing=passing,
        )
    found = body.get("usage")
    counts = found if isinstance(found, Mapping) else {}
    return count_usage(counts.get("prompt_tokens"), counts.get("completion_tokens")), choice


def count_usage(prompt: object, completion: object) -> Usage:
    """Return the usage of one answer. Ignore counts that are not numbers of tokens."""
    # Exclude True, which is an int in Python.
    if type(prompt) is int and type(completion) is int and min(prompt, completion) >= 0:
        return Usage(1, 0, prompt, completion)
    return Usage(1, 1)


def _with_path(url: Address) -> Address:
    try:
        parts = urlsplit(url.full)
    except ValueError:
        # The transport reports the error.
        return url
    if parts.path not in ("", "/"):
        return url
    return Address(urlunsplit(parts._replace(path=_DEFAULT_PATH)))


@dataclass(eq=False, repr=False, kw_only=True)
class ChatReplies:
    """A bot that asks a chat model for its reply to a dialogue, at temperature 0."""

    #: Services may answer the same question differently each time, even at temperature 0.
    repeatable: ClassVar = False
    #: The API has no version that is known before the first answer and identifies all answers.
    fingerprint: ClassVar = None

    client: ChatClient
    #: System message before the dialogue, or ``""`` for none.
    system: str = ""
    #: Role of the system's words before the first user message.
    opening: OpeningRole = "assistant"

    @property
    def service_model(self) -> str:
        """The name of the model, from the user or from the service."""
        return self.client.model

    @property
    def usage(self) -> Usage:
        """The usage of all answers so far."""
        return self.client.usage

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return a reply for each context, or an error in its place."""
        jobs = [partial(self._answer, context) for context in contexts]
        return self.client.transport.map(jobs, taker_of(self))

    async def _answer(self, context: Context) -> Prediction:
        choice = await self._choice([*messages_of(context, self.opening)])
        return Prediction(BeliefState(), reply=self.client.text_of(choice))

    async def _choice(self, messages: list[dict[str, Any]], **more: Any) -> Mapping[str, Any]:
        """Return the model's choice for messages. ``more`` is added to the request."""
        first = messages[0]["role"]
        try:
            return await self.client.complete(self._told(messages), **more)
        except ServiceError as error:
            if error.status not in REFUSED or first != "assistant":
                raise
            raise TrackerError(
                f"{error}; if the user must speak first, put the system's opening words into the "
                "system message with --dst-tracker opening=system"
            ) from None

    def _told(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages after the system message."""
        if not self.system:
            return messages
        first, *others = messages
        if first["role"] == "system" and isinstance(first["content"], str):
            # Templates of many models accept only one system message.
            return [{**first, "content": f"{self.system}\n\n{first['content']}"}, *others]
        return [{"role": "system", "content": self.system}, *messages]


def system_message(path: str | None) -> str:
    """Return the system message in a file, or ``""`` if no file is given."""
    if path is None:
        return ""
    text = read_text(Path(path), "prompt").strip()
    if not text:
        raise UserError(f"{path}: the prompt is empty; to use none, leave --dst-tracker prompt out")
    return text


#: Values of ``tool_choice`` that are not the name of a tool.
_CHOICES: Final = ("auto", "required", "none")


@dataclass(eq=False, repr=False, kw_only=True)
class ChatCalls(ChatReplies):
    """An assistant that asks a chat model for its next message, and reads its tool calls."""

    #: ``tool_choice`` in the form of OpenAI's API, or ``None`` to leave it out.
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
        """Return the calls of a message. A message without calls, such as a refusal, has none."""
        if choice.get("finish_reason") == "length":
            raise TrackerError(_CUT_OFF)
        message = choice["message"]
        with suppress(TrackerError):
            return as_calls(message)
        # Mask first, because the error message shows only the beginning of a bad value.
        return as_calls(in_json(self.client.transport.secrets.redact, message))


def convert_choice(choice: str | None, data: DialogueSet) -> str | Mapping[str, Any] | None:
    """Return ``tool_choice`` in the form of OpenAI's API.

    ``choice`` is ``auto``, ``required``, ``none`` or the name of a tool.

    Raises:
        UserError: no dialogue has tools, or none has a tool of this name.
    """
    names = {tool.name for tool in data.tools}
    if data.dialogues and not names:
        raise UserError(
            "the data has no tools, so the model cannot call any: add them to the messages of each "
            'dialogue, {"messages": [...], "tools": [...]}, or in a file with --dst-tools'
        )
    if choice is None or choice in _CHOICES:
        return choice
    if choice not in names:
        raise unknown_name("choice of tools", choice, {*_CHOICES, *names})
    return {"type": "function", "function": {"name": choice}}
