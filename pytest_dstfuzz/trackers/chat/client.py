"""A chat model behind an OpenAI-compatible endpoint: its requests, and what they took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from pytest_dstfuzz.config import Address, TrackerSettings
from pytest_dstfuzz.errors import (
    GivenUpError,
    MalformedAnswerError,
    NoAnswerError,
    TrackerError,
    UserError,
)
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.chat.stream import joined_completion
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Usage
from pytest_dstfuzz.trackers.web.secrets import in_json
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply, ServiceError, Transport

__all__ = ["ChatClient", "client_at"]

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
