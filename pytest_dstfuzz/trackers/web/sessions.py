"""A tracker for services with their own JSON. The user describes requests and answers.

In each conversation, the tracker sends the messages of the user one by one.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.calls import TOOL_CALLS, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError, UserError, nearest
from pytest_dstfuzz.printable import describe
from pytest_dstfuzz.trackers.adapting import taker_of
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web import contract
from pytest_dstfuzz.trackers.web.contract import ContractError
from pytest_dstfuzz.trackers.web.transport import (
    MalformedReply,
    Reply,
    ServiceError,
    Transport,
    read_of_bot,
)

#: Placeholders of a request.
_TEXT, _SESSION = "$text", "$session"
#: Part of a pointer that stands for every member of a list.
_EACH: Final = "*"
#: Advice in messages.
_REQUEST: Final = (
    'request must be JSON with "$text" for the message, such as {"id": "$session", "text": '
    '"$text"}, with a path before it if the address needs one: /chat {"text": "$text"}'
)
_RESPONSE: Final = (
    "response must be a JSON pointer, such as /slots. It may also be an object: each slot -> its "
    'pointer, such as {"hotel-area": "/slots/area"}, or, for entities, the pointer to the names -> '
    'the pointer to the values: {"/entities/*/name": "/entities/*/value"}'
)


def _members(found: object, parts: Sequence[str]) -> Iterator[object]:
    """Yield the values at the parts of a JSON pointer. `_EACH` means each member of a list."""
    for place, part in enumerate(parts):
        if part == _EACH and isinstance(found, list):
            for member in found:
                yield from _members(member, parts[place + 1 :])
            return
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return
    if found is not None:
        yield found


def _parts(pointer: str) -> tuple[str, ...]:
    """Return the parts of a JSON pointer (RFC 6901)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def _is_pointer(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/") and len(value) > 1


@dataclass(frozen=True, slots=True)
class Request:
    """Describes the request for one message: a path, and a body with placeholders."""

    path: str = ""
    #: ``None`` means a ``GET`` without a body.
    body: object = None

    @classmethod
    def parse(cls, text: str) -> Request:
        """Read the option ``request``.

        Raises:
            UserError: the text is not JSON, or has no placeholder for the message.
        """
        path, rest = "", text.strip()
        if rest.startswith("/"):
            path, _, rest = re.sub(r"\s+", " ", rest, count=1).partition(" ")
        try:
            body = json.loads(rest) if rest.strip() else None
        except (ValueError, RecursionError):
            raise UserError(f"{_REQUEST}; got {describe(text)}, which is no JSON") from None
        if _TEXT not in path and _TEXT not in json.dumps(body):
            raise UserError(f"{_REQUEST}; got {describe(text)}, without {_TEXT}")
        return cls(path, body)

    def filled(self, session: str, text: str) -> tuple[str, str, object]:
        """Return the HTTP method, path and body of the request that sends a message."""
        path = _fill(self.path, quote(session, safe=""), quote(text, safe=""))
        method = "GET" if self.body is None else "POST"
        return method, str(path), _fill(self.body, session, text)


def _fill(value: Any, session: str, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _fill(part, session, text) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, session, text) for part in value]
    # The message comes last, because it may contain the other placeholder.
    return (
        value.replace(_SESSION, session).replace(_TEXT, text) if isinstance(value, str) else value
    )


@dataclass(frozen=True, slots=True)
class Response:
    """Describes an answer by JSON pointers to its slots, entities or texts."""

    #: The pointer to an object slot -> value, or to a text; ``""`` if there are several pointers.
    whole: str = ""
    #: A slot, or a pointer to names of entities -> the pointer to its values.
    slots: Mapping[str, str] | None = None

    @classmethod
    def parse(cls, text: str, outcome: OutcomeKind) -> Response:
        """Read the option ``response``.

        Raises:
            UserError: the text has no JSON pointers, or pointers that do not fit the kind of
                answer.
        """
        if _is_pointer(text.strip()):
            return cls(text.strip())
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not found or not all(map(_is_pointer, found.values())):
            raise UserError(f"{_RESPONSE}; got {describe(text)}")
        if outcome != "state":
            raise UserError(f"with --dst-outcome={outcome}, response must be one JSON pointer")
        for name, value in found.items():
            if name.startswith("/") and name.count(_EACH) != value.count(_EACH):
                raise UserError(
                    f"response: {name} and {value} must have the same number of {_EACH}, for the "
                    "names of entities and their values"
                )
        return cls(slots=found)

    @property
    def collects(self) -> bool:
        """Whether the state consists of all answers' entities.

        Otherwise it is the last one's slots.
        """
        return any(name.startswith("/") for name in self.slots or ())

    def read(self, body: object, outcome: OutcomeKind) -> Prediction:
        """Return the prediction in an answer.

        Raises:
            ContractError: the pointers do not fit the answer.
        """
        if self.slots is not None:
            return contract.read_answer({"state": self._state(body, self.slots)}, outcome)
        found = [*_members(body, parts := _parts(self.whole))]
        if _EACH in parts and outcome == "reply":
            texts = [part for part in found if isinstance(part, str)]
            return contract.read_answer({outcome: "\n".join(texts)}, outcome)
        if len(found) != 1:
            keys = body if isinstance(body, Mapping) else ()
            guess = nearest(parts[0], map(str, keys)) if parts[0] not in keys else None
            near = f'; there is a key "{guess}"' if guess else ""
            raise ContractError(f"answered with {describe(body)} without {self.whole}{near}")
        return contract.read_answer({outcome: found[0]}, outcome)

    def _state(self, body: object, slots: Mapping[str, str]) -> dict[str, object]:
        state: dict[str, list[object]] = {}
        for name, pointer in slots.items():
            values = [*_members(body, _parts(pointer))]
            names = (
                [*_members(body, _parts(name))] if name.startswith("/") else [name] * len(values)
            )
            if len(names) != len(values):
                raise ContractError(
                    f"answered with {describe(body)}, which has {len(names)} names at {name} and "
                    f"{len(values)} values at {pointer}"
                )
            for slot, value in zip(names, values, strict=True):
                state.setdefault(str(slot), []).append(value)
        return {slot: found[0] if len(found) == 1 else found for slot, found in state.items()}


class SessionTracker:
    """A tracker with a separate conversation for each context. Several run at once."""

    def __init__(
        self,
        transport: Transport,
        request: Request,
        response: Response,
        outcome: OutcomeKind,
        tries: int,
    ) -> None:
        self.transport = transport
        self._request = request
        self._response = response
        self._outcome: OutcomeKind = outcome
        self._tries = tries

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return the answer to the last message of each context, or an error in its place."""
        jobs = [partial(self._answer, context.user_messages) for context in contexts]
        return self.transport.map(jobs, taker_of(self))

    async def _answer(self, messages: Sequence[str]) -> Prediction:
        for number in range(1, self._tries + 1):
            try:
                return await self._conversation(messages)
            except ServiceError as error:
                if error.unreadable:
                    raise MalformedAnswerError(str(error)) from None
                # After a lost answer nobody knows whether the bot has got the message.
                if number == self._tries or (error.status or 500) < 500:
                    raise
        raise AssertionError

    async def _conversation(self, messages: Sequence[str]) -> Prediction:
        # Random ids: they do not affect results, and no two processes may share a conversation.
        session = f"dstfuzz-{uuid.uuid4().hex}"
        collected: dict[str, str] = {}
        read = read_of_bot(self._read)
        for message in messages:
            method, path, body = self._request.filled(session, message)
            found = await self.transport.ask(method, path, body, read=read, once=True)
            collected |= found.state
        return Prediction(BeliefState(collected)) if self._response.collects else found

    def _read(self, reply: Reply) -> Prediction:
        try:
            return self._response.read(reply.json(), self._outcome)
        except ContractError as error:
            raise MalformedReply(str(error)) from None


def create(url: Address, service: ServiceSettings, settings: Settings) -> SessionTracker:
    """Return the tracker for an address with a description of its requests and answers."""
    how, outcome = settings.tracker, settings.reply.outcome
    if outcome == TOOL_CALLS:
        raise UserError(
            "with --dst-outcome=tool-calls the bot needs the recorded calls and their results, "
            "which a request for one message does not have: leave the keys request and response "
            "out, and let the address follow the protocol of HTTP services"
        )
    if how.request is None or how.response is None:
        raise UserError("a service with its own JSON needs both keys: request and response")
    request, response = Request.parse(how.request), Response.parse(how.response, outcome)
    return SessionTracker(Transport(url, service), request, response, outcome, service.retries + 1)
