"""Conversations with a Rasa bot, and the slots that it has filled in their end.

Which part of the API, and why:

- What the user says goes to the REST channel, ``POST /webhooks/rest/webhook``: the bot's
  language understanding, policies, forms and actions do what they do for its users. The
  operation for messages of the HTTP API (``POST /conversations/{id}/messages``) is not
  used: by its description it "doesn't trigger the prediction loop", and ``predict`` leaves
  the tracker as it is, so that forms and actions would never fill a slot.
- What it then believes are the slots of ``GET /conversations/{id}/tracker``. They are
  described as a list of objects; servers answer with one object. Both are read.
- ``GET /domain`` says which slots and actions of its own the bot has, and ``GET /status`` which
  model is loaded.

Each context is a conversation of its own, under an id that no other has, and its turns are
sent one after the other: nothing is left of what was said before. The API has no way to
delete a conversation; all ids begin with ``dstfuzz-``, for whoever clears the store.

A message that is sent again, because its answer was lost, may have been taken in twice, and
the REST channel answers 200 also where the bot failed on it. So the events of the tracker
are counted: a conversation that does not have each message once is begun again.

If an action server fails or is away, Rasa goes on without it and answers 200: all that shows is
that an action left no event. A conversation in which the bot's own actions left none is a failure,
until one of them has left some.

What the bot says is its own: it may differ from the system's utterances of the dialogue,
which are not sent anywhere.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from pytest_dstfuzz.config import Address, Header, Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.errors import GivenUpError, TrackerError, UserError, unknown_name
from pytest_dstfuzz.printable import describe, listed
from pytest_dstfuzz.trackers.adapters import as_prediction
from pytest_dstfuzz.trackers.arriving import taker_of
from pytest_dstfuzz.trackers.rasa.slot_map import SlotMap, slot_map
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply, ServiceError, Transport

#: Rasa gives its domain in the form that the header ``Accept`` ends with, or refuses with 406.
_JSON: Final = "application/json"
#: How the names of actions begin that are texts alone. One of Rasa's own that a domain lists is
#: another one under its name.
_TEXTS: Final = "utter_"
#: Names of actions that a message shows.
_ACTIONS_SHOWN: Final = 3
#: Characters of an utterance that a message shows.
_SHOWN = 60


@dataclass(eq=False, repr=False)
class RasaTracker:
    """The belief states of a Rasa bot."""

    transport: Transport
    #: Which of its slots are compared.
    slots: SlotMap
    #: Of the data.
    normalisation: str
    #: How often a conversation is begun, until each message was taken in once.
    tries: int
    #: Of the model that the bot says it has loaded, and of the slot map; ``None`` if it says none,
    #: or has actions of its own: their code is no part of the model.
    fingerprint: str | None
    #: Sentences for the user.
    notes: tuple[str, ...]
    #: The actions of the bot that its action server runs.
    actions: frozenset[str] = frozenset()
    #: Whether one of them has left an event.
    _acted: bool = field(default=False, init=False)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Have one conversation for each context, several at once."""
        jobs = [partial(self._believed, context) for context in contexts]
        return self.transport.map(jobs, taker_of(self))

    async def _believed(self, context: Context) -> Prediction:
        messages = context.user_utterances
        for message in messages:
            if message.lstrip().startswith("/"):
                raise TrackerError(
                    f"{message[:_SHOWN]!r} was not sent: Rasa takes a message that begins with "
                    "'/' for an intent, and not for words"
                )
        heard = 0
        for _ in range(self.tries):
            told = await self._conversation(messages)
            heard = told.heard
            if heard == len(messages):
                self._refuse_idle_actions(told)
                return as_prediction(self.slots.state(told.slots), self.normalisation, "the bot")
        raise TrackerError(
            f"the bot's tracker has {heard} messages of the user where {len(messages)} were sent; "
            "its log may say why"
        )

    def _refuse_idle_actions(self, told: _RasaConversation) -> None:
        """Refuse the state of a bot none of whose own actions ever left an event."""
        ran = [left for name, left in told.actions if name in self.actions]
        if any(ran):
            self._acted = True
        elif ran and not self._acted:
            names = {name for name, _ in told.actions} & self.actions
            raise TrackerError(
                f"the bot ran {listed(sorted(names), _ACTIONS_SHOWN)} and got neither an event nor "
                "a message from there, as if its action server failed or was away: start it, or "
                "see the bot's log. An action that is meant to do nothing must return an event"
            )

    async def _conversation(self, messages: Sequence[str]) -> _RasaConversation:
        # Of the system: ids decide no result, and no two processes may share a conversation.
        name = f"dstfuzz-{uuid.uuid4().hex}"
        for message in messages:
            try:
                await self.transport.ask(
                    "POST",
                    "webhooks/rest/webhook",
                    {"sender": name, "message": message},
                    read=_check_answer,
                )
            except ServiceError as error:
                if error.status != 404:
                    raise
                raise TrackerError(
                    f"{error}: the bot has no REST channel; add a line 'rest:' to its "
                    "credentials.yml"
                ) from None
        # All events: a bot may restart the conversation itself.
        return await self.transport.ask(
            "GET", f"conversations/{name}/tracker?include_events=ALL", read=_read_tracker
        )


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> RasaTracker:
    """Return the tracker of the bot at an address, whose token may be in the query."""
    transport = Transport(url, _asking_for_json(service))
    try:
        version = transport.wait(transport.ask("GET", "status", read=_read_version))
        slots, actions = transport.wait(transport.ask("GET", "domain", read=_read_domain))
    except GivenUpError:
        raise
    except TrackerError as error:
        raise UserError(f"{error}{_hint(error)}") from error
    if not slots:
        raise UserError(f"the bot at {transport.address} has no slots: there is no state to test")
    chosen = slot_map(settings.tracker.slot_map, slots, data)
    reached = sorted(place.slot for place in chosen.places.values())
    wanted = data.ontology.slots if settings.data.slots and data.ontology is not None else ()
    if missing := [slot for slot in wanted if slot not in reached]:
        there = slots if settings.tracker.slot_map is None else reached
        raise UserError(f"slots: {unknown_name('slot of the bot', missing[0], there)}")
    notes = [chosen.note(slots)]
    fingerprint = None
    if version is not None and actions:
        notes.append(
            "the bot's answers are not kept for another run: its model id does not cover its own "
            f"actions ({listed(actions, _ACTIONS_SHOWN)}), which may change without it"
        )
    elif version is not None:
        text = json.dumps([version, chosen.to_json()], sort_keys=True)
        fingerprint = hashlib.sha256(text.encode("ascii")).hexdigest()
    return RasaTracker(
        transport,
        chosen,
        normalisation=data.normalisation,
        tries=service.retries + 1,
        fingerprint=fingerprint,
        notes=tuple(filter(None, notes)),
        actions=frozenset(actions),
    )


def _asking_for_json(service: ServiceSettings) -> ServiceSettings:
    """Return the settings of a service with the header without which it gives no domain."""
    if any(header.name.lower() == "accept" for header in service.headers):
        return service
    return replace(service, headers=(*service.headers, Header("Accept", _JSON)))


class _RasaConversation(NamedTuple):
    """What a tracker says of a conversation."""

    slots: dict[str, object]
    #: How many messages of the user the bot took in.
    heard: int
    #: The actions that it ran, each with whether events of its own follow it.
    actions: tuple[tuple[str, bool], ...]


def _read_tracker(reply: Reply) -> _RasaConversation:
    """Return what the tracker of a conversation says."""
    body = _object(reply, "a tracker")
    slots, events = body.get("slots"), body.get("events")
    found: dict[str, object] = {}
    for part in slots if isinstance(slots, list) else [slots]:
        if not isinstance(part, dict):
            raise MalformedReply(
                f"answered with a tracker whose 'slots' are no slot -> value: {describe(slots)}"
            )
        found |= part
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise MalformedReply(
            f"answered with a tracker whose 'events' are no list of events: {describe(events)}"
        )
    kinds = [event.get("event") for event in events]
    after = [*kinds[1:], "user"]
    actions = tuple(
        (str(event.get("name")), follows not in ("action", "user"))
        for event, follows in zip(events, after, strict=True)
        if event.get("event") == "action"
    )
    return _RasaConversation(found, kinds.count("user"), actions)


def _check_answer(reply: Reply) -> None:
    """Refuse what does not come from a REST channel; what the bot says is not looked at."""
    answer = reply.json()
    if not isinstance(answer, list):
        raise MalformedReply(
            f"answered a message with {describe(answer)} where a list of messages is expected"
        )


def _read_version(reply: Reply) -> object:
    """Return what says which model is loaded, or ``None``."""
    body = _object(reply, "a status")
    # Up to version 2 a fingerprint of all files of the model, since then an id.
    return body.get("model_id") or body.get("fingerprint") or None


def _read_domain(reply: Reply) -> tuple[list[str], list[str]]:
    """Return the slots of a bot, and the actions that its action server runs."""
    domain = _object(reply, "a domain")
    slots, actions = domain.get("slots", {}), domain.get("actions") or []
    if not isinstance(slots, dict):
        raise MalformedReply(f"answered with a domain whose 'slots' are {describe(slots)}")
    if not isinstance(actions, list):
        raise MalformedReply(f"answered with a domain whose 'actions' are {describe(actions)}")
    # One that is sent the domain is an object: its name, and that.
    names = [name for one in actions for name in (one if isinstance(one, dict) else [one])]
    return list(slots), sorted({str(name) for name in names if not str(name).startswith(_TEXTS)})


def _object(reply: Reply, what: str) -> dict[str, object]:
    body = reply.json()
    if not isinstance(body, dict):
        raise MalformedReply(f"answered with {describe(body)} where {what} of Rasa is expected")
    return body


def _hint(error: TrackerError) -> str:
    status = error.status if isinstance(error, ServiceError) else None
    if status == 404:
        return ". Is it a Rasa server, and was it started with --enable-api?"
    if status in (401, 403):
        return (
            ". Give its token as ?token=... of the address (of --auth-token), or in the "
            "environment as DSTFUZZ_TOKEN (a JSON web token of the role 'admin')"
        )
    return ""
