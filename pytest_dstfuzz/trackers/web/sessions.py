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
from pytest_dstfuzz.json_data import load_json
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
_OPENING: Final = (
    "for ids that the service makes, session is a JSON pointer to the id in its answers, such as "
    "/session_id; start is a request before the first message, if the service needs one, such as "
    "/sessions {}"
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
    """Describes a request: a path, and a body with placeholders."""

    path: str = ""
    #: ``None`` means a ``GET`` without a body.
    body: object = None

    @classmethod
    def parse(cls, text: str, advice: str = _REQUEST) -> Request:
        """Read a path, JSON, or both.

        Raises:
            UserError: the text is not JSON.
        """
        path, rest = "", text.strip()
        if rest.startswith("/"):
            path, _, rest = re.sub(r"\s+", " ", rest, count=1).partition(" ")
        try:
            body = load_json(rest) if rest.strip() else None
        except ValueError:
            raise UserError(f"{advice}; got {describe(text)}, which is no JSON") from None
        return cls(path, body)

    def has(self, placeholder: str) -> bool:
        """Return whether the request has a placeholder."""
        return placeholder in self.path or placeholder in json.dumps(self.body)

    def filled(self, session: object, text: str) -> tuple[str, str, object]:
        """Return the HTTP method, path and body of the request that sends a message.

        ``session`` is the id of the session, or ``None`` before the service has given one.
        """
        named = quote(_text_of(session), safe="")
        path = _fill(self.path, named, quote(text, safe=""))
        method = "GET" if self.body is None else "POST"
        return method, str(path), _fill(self.body, session, text)


def _fill(value: Any, session: object, text: str) -> Any:
    """Return a part of a request with the session and the message.

    A key whose value is the id alone is left out while there is no id. Such a value keeps its type.
    """
    if isinstance(value, dict):
        return {
            key: _fill(part, session, text)
            for key, part in value.items()
            if session is not None or part != _SESSION
        }
    if isinstance(value, list):
        return [_fill(part, session, text) for part in value]
    if value == _SESSION:
        return session
    # The message comes last, because it may contain the other placeholder.
    if isinstance(value, str):
        return value.replace(_SESSION, _text_of(session)).replace(_TEXT, text)
    return value


def _text_of(session: object) -> str:
    """Return an id as it stands in a path or within a text."""
    if session is None:
        return ""
    return session if isinstance(session, str) else json.dumps(session)


@dataclass(frozen=True, slots=True)
class Opening:
    """Describes how a session begins, and which id it has."""

    #: The request before the first message. ``None`` = there is none.
    start: Request | None = None
    #: The pointer to the id in the answers. ``""`` = the plugin makes the ids.
    pointer: str = ""

    @classmethod
    def parse(cls, start: str | None, session: str | None, request: Request) -> Opening:
        """Read the options ``start`` and ``session``.

        Raises:
            UserError: they do not fit each other or the request.
        """
        if session is not None and not _is_pointer(session):
            raise UserError(f"{_OPENING}; got {describe(session)} for session")
        if session is not None and not request.has(_SESSION):
            raise UserError(f'session names an id of the service, but request has no "{_SESSION}"')
        first = None if start is None else Request.parse(start, _OPENING)
        if first is not None and first.has(_TEXT):
            raise UserError(f"start is sent before the first message, so it has no {_TEXT}")
        return cls(first, session or "")

    def id_in(self, body: object, known: object) -> object:
        """Return the id of the session after an answer. ``known`` is the id before it.

        Raises:
            ContractError: the service has not given an id.
        """
        if not self.pointer:
            return known
        found = next(_members(body, _parts(self.pointer)), known)
        if found is None:
            raise ContractError(
                f"answered with {describe(body)} without the id of the session at {self.pointer}"
            )
        return found


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
            found = load_json(text)
        except ValueError:
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
        opening: Opening,
        outcome: OutcomeKind,
        tries: int,
    ) -> None:
        self.transport = transport
        self._request = request
        self._response = response
        self._opening = opening
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
        opening = self._opening
        # Random ids: they do not affect results, and no two processes may share a conversation.
        session: object = None if opening.pointer else f"dstfuzz-{uuid.uuid4().hex}"
        if opening.start is not None:
            read = read_of_bot(partial(self._read_id, session))
            method, path, body = opening.start.filled(session, "")
            # The loop around the conversation retries.
            session = await self.transport.ask(method, path, body, read=read, once=True)
        collected: dict[str, str] = {}
        for message in messages:
            method, path, body = self._request.filled(session, message)
            answer = read_of_bot(partial(self._read, session))
            found, session = await self.transport.ask(method, path, body, read=answer, once=True)
            collected |= found.state
        return Prediction(BeliefState(collected)) if self._response.collects else found

    def _read(self, session: object, reply: Reply) -> tuple[Prediction, object]:
        """Return the prediction in an answer, and the id of the session after it."""
        try:
            found = self._response.read(reply.json(), self._outcome)
            return found, self._opening.id_in(reply.json(), session)
        except ContractError as error:
            raise MalformedReply(str(error)) from None

    def _read_id(self, session: object, reply: Reply) -> object:
        if not self._opening.pointer:
            return session
        try:
            return self._opening.id_in(reply.json(), session)
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
    if not request.has(_TEXT):
        raise UserError(f"{_REQUEST}; got {describe(how.request)}, without {_TEXT}")
    opening = Opening.parse(how.start, how.session, request)
    tries = service.retries + 1
    return SessionTracker(Transport(url, service), request, response, opening, outcome, tries)
