"""Conversations with a Rasa bot, and the slots that it has filled in their end.

Which part of the API, and why:

- What the user says goes to the REST channel, ``POST /webhooks/rest/webhook``: the bot's
  language understanding, policies, forms and actions do what they do for its users. The
  operation for messages of the HTTP API (``POST /conversations/{id}/messages``) is not
  used: by its description it "doesn't trigger the prediction loop", and ``predict`` leaves
  the tracker as it is, so that forms and actions would never fill a slot.
- What it then believes are the slots of ``GET /conversations/{id}/tracker``. They are
  described as a list of objects; servers answer with one object. Both are read.
- ``GET /domain`` says which slots there are, and ``GET /status`` which model is loaded.

Each context is a conversation of its own, under an id that no other has, and its turns are
sent one after the other: nothing is left of what was said before. The API has no way to
delete a conversation; all ids begin with ``dstfuzz-``, for whoever clears the store.

A message that is sent again, because its answer was lost, may have been taken in twice, and
the REST channel answers 200 also where the bot failed on it. So the events of the tracker
are counted: a conversation that does not have each message once is begun again.

What the bot says is its own: it may differ from the system's utterances of the dialogue,
which are not sent anywhere.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet
from pytest_dstfuzz.errors import GivenUpError, TrackerError, UserError, unknown_name
from pytest_dstfuzz.trackers.adapters import as_prediction
from pytest_dstfuzz.trackers.arriving import taker_of
from pytest_dstfuzz.trackers.rasa.slot_map import SlotMap, slot_map
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import describe
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply, ServiceError, Transport

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
    #: Of the model that the bot says it has loaded, and of the slot map; ``None`` where it says
    #: none. It does not cover the bot's action server.
    fingerprint: str | None
    #: Sentences for the user.
    notes: tuple[str, ...]

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Have one conversation for each context, several at once."""
        jobs = [partial(self._believed, context) for context in contexts]
        return self.transport.map(jobs, taker_of(self))

    def _believed(self, context: Context) -> Prediction:
        messages = context.user_utterances
        for message in messages:
            if message.lstrip().startswith("/"):
                raise TrackerError(
                    f"{message[:_SHOWN]!r} was not sent: Rasa takes a message that begins with "
                    "'/' for an intent, and not for words"
                )
        heard = 0
        for _ in range(self.tries):
            slots, heard = self._conversation(messages)
            if heard == len(messages):
                return as_prediction(self.slots.state(slots), self.normalisation, "the bot")
        raise TrackerError(
            f"the bot's tracker has {heard} messages of the user where {len(messages)} were sent; "
            "its log may say why"
        )

    def _conversation(self, messages: Sequence[str]) -> tuple[dict[str, object], int]:
        # Of the system: ids decide no result, and no two processes may share a conversation.
        name = f"dstfuzz-{uuid.uuid4().hex}"
        for message in messages:
            try:
                self.transport.ask(
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
        return self.transport.ask(
            "GET", f"conversations/{name}/tracker?include_events=ALL", read=_read_tracker
        )


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> RasaTracker:
    """Return the tracker of the bot at an address, whose token may be in the query."""
    transport = Transport(url, service)
    try:
        version = transport.ask("GET", "status", read=_read_version)
        slots = transport.ask("GET", "domain", read=_read_slots)
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
    note = chosen.note(slots)
    fingerprint = None
    if version is not None:
        text = json.dumps([version, chosen.to_json()], sort_keys=True)
        fingerprint = hashlib.sha256(text.encode("ascii")).hexdigest()
    return RasaTracker(
        transport,
        chosen,
        normalisation=data.normalisation,
        tries=service.retries + 1,
        fingerprint=fingerprint,
        notes=(note,) if note else (),
    )


def _read_tracker(reply: Reply) -> tuple[dict[str, object], int]:
    """Return the slots of a conversation, and how many messages of the user the bot took in."""
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
    return found, sum(event.get("event") == "user" for event in events)


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


def _read_slots(reply: Reply) -> list[str]:
    slots = _object(reply, "a domain").get("slots", {})
    if not isinstance(slots, dict):
        raise MalformedReply(f"answered with a domain whose 'slots' are {describe(slots)}")
    return list(slots)


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
