"""A tracker that talks to a Rasa bot and reads the slots that the bot has filled.

If the data are NLU examples, only the bot's NLU is asked, for intents and entities.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pytest_dstfuzz.config import Address, Header, Settings
from pytest_dstfuzz.dialogue.calls import REPLY
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.rasa import INTENT, NLU
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.errors import (
    GivenUpError,
    MalformedAnswerError,
    TrackerError,
    UserError,
    nearest,
    unknown_name,
)
from pytest_dstfuzz.printable import describe, format_count, format_list
from pytest_dstfuzz.trackers.adapters import as_prediction
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import unknown_slot
from pytest_dstfuzz.trackers.web.transport import (
    MalformedReply,
    Reply,
    ServiceError,
    Transport,
    read_of_bot,
)
from pytest_dstfuzz.trackers.web.versions import VersionCheck

#: The option as shown in messages.
_OPTION = "--dst-tracker slot-map=FILE (TOML or JSON; dstfuzz: --tracker)"
#: Most slot names in a message.
_SLOTS = 8
#: From this size on, a float may stand for several whole numbers, so it is not converted.
_EXACT = 2.0**53
#: Slots that Rasa fills itself.
_INTERNAL = (
    *("requested_slot", "session_started_metadata", "return_value", "dialogue_stack"),
    "flow_hashes",
)


@dataclass(frozen=True, slots=True)
class SlotTarget:
    """The slot of the data that corresponds to a slot of the bot."""

    slot: str
    #: The bot's value -> the data's value, if they differ. The bot's values are in lower case and
    #: in JSON spelling (``true``, ``2``).
    values: Mapping[str, str] = field(default_factory=dict)

    def value(self, found: object) -> object:
        """Return a value of the bot as a value of the data, not normalised yet.

        Booleans become yes and no, and whole numbers lose their decimals.
        """
        if isinstance(found, list):
            return [self.value(part) for part in found]
        if isinstance(found, float) and found.is_integer() and abs(found) < _EXACT:
            found = int(found)
        spelled = str(found).lower()
        if isinstance(found, str | int | float) and spelled in self.values:
            return self.values[spelled]
        return ("no", "yes")[found] if isinstance(found, bool) else found


@dataclass(frozen=True, slots=True)
class SlotMap:
    """The mapping from slots of a bot to slots of the data."""

    places: Mapping[str, SlotTarget]
    #: Whether the data says which slots it has.
    complete: bool = True

    def state(self, slots: Mapping[str, object]) -> dict[str, object]:
        """Return the slots of a conversation as slots of the data, not normalised yet."""
        return {
            place.slot: place.value(slots[name])
            for name, place in self.places.items()
            if name in slots
        }

    def note(self, slots: Iterable[str]) -> str:
        """Return a sentence about the slots of the bot that are ignored, or ``""``."""
        ignored = sorted(set(slots) - set(self.places))
        if not self.complete:
            return (
                f"the data does not list its slots, so every slot of the bot is compared "
                f"({len(self.places)}): {format_list(sorted(self.places), _SLOTS)}; choose slots "
                "with a slot map, an ontology or the option slots (--dst-slots)"
            )
        if not ignored:
            return ""
        return (
            f"slots of the bot: {len(self.places)} compared, {len(ignored)} ignored because the "
            f"data does not have them: {format_list(ignored, _SLOTS)}"
        )

    def to_json(self) -> dict[str, object]:
        """Return the mapping as plain JSON values."""
        return {name: [place.slot, dict(place.values)] for name, place in self.places.items()}


def slot_map(path: str | None, slots: Iterable[str], data: DialogueSet) -> SlotMap:
    """Return the mapping from slots of the bot to slots of the data, from a file or by name."""
    known = sorted(slots)
    if path is not None:
        return _of_file(SourceFile(Path(path).name, Path(path)), known, data)
    if data.ontology is None or not data.says_slots:
        return _with_its_own(known, data)
    return _by_name(known, data.ontology)


def _with_its_own(slots: list[str], data: DialogueSet) -> SlotMap:
    """Return a mapping of all slots of the bot. Use the names of the labels if they match."""
    names = {_folded(slot): slot for slot in data.ontology.slots} if data.ontology else {}
    places = {}
    for name in slots:
        if name not in _INTERNAL:
            usual = normalise_slot(name, data.normalisation) or name
            places[name] = SlotTarget(names.get(_folded(name), usual))
    if not places:
        raise UserError(
            f"the bot has no slots of its own, only those of Rasa: {format_list(slots, _SLOTS)}"
        )
    return replace(_without_twins(places, "the bot's slots"), complete=False)


def _by_name(slots: list[str], ontology: Ontology) -> SlotMap:
    names = {_folded(slot): slot for slot in ontology.slots}
    places = {}
    for name in slots:
        usual = normalise_slot(name, ontology.normalisation)
        if slot := usual if usual in ontology.values else names.get(_folded(name)):
            places[name] = SlotTarget(slot)
    if not places:
        guesses = ((name, nearest(name, ontology.slots)) for name in slots)
        pair = next((f" ({name!r} may be {guess!r})" for name, guess in guesses if guess), "")
        raise UserError(
            f"none of the bot's slots has the name of a slot of the data{pair}: map them with "
            f"{_OPTION}. Slots of the bot: {format_list(slots, _SLOTS)}"
        )
    return _without_twins(places, "the bot's slots")


def _of_file(file: SourceFile, slots: list[str], data: DialogueSet) -> SlotMap:
    parsed = _parsed(file)
    if not parsed:
        raise UserError(f"{file.place}: the slot map is empty; map at least one slot")
    places = {}
    for name, entry in parsed.items():
        if name not in slots:
            raise UserError(f"{file.place}: {unknown_name('slot of the bot', name, slots)}")
        places[name] = _place(entry, f"{file.place}: {name!r}", data)
    return _without_twins(places, file.place)


def _parsed(file: SourceFile) -> Mapping[str, object]:
    kind = file.path.suffix.lower()
    if kind not in (".toml", ".json"):
        raise UserError(f"{file.place}: a slot map must be a .toml or .json file")
    try:
        parsed = tomllib.loads(file.text()) if kind == ".toml" else file.json()
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file.place} is not valid TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{file.place} is nested too deeply to be read") from None
    if not isinstance(parsed, dict):
        raise UserError(
            f"{file.place}: a slot map must be an object, slot of the bot -> slot of the data, "
            f"got {describe(parsed)}"
        )
    return parsed


def _place(entry: object, where: str, data: DialogueSet) -> SlotTarget:
    table = entry if isinstance(entry, dict) else {"slot": entry}
    for key in table:
        if key not in ("slot", "values"):
            raise UserError(f"{where}: {unknown_name('key', key, ('slot', 'values'))}")
    slot, values = table.get("slot"), table.get("values", {})
    if not isinstance(slot, str):
        raise UserError(f"{where} must be the name of a slot, or a table with 'slot' and 'values'")
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise UserError(
            f"{where}: 'values' must be a table, value of the bot -> value of the data (a text)"
        )
    usual = normalise_slot(slot, data.normalisation) or slot
    if problem := unknown_slot({usual: ""}, data.ontology):
        raise UserError(f"{where} is mapped to {problem}")
    return SlotTarget(usual, {str(value).lower(): named for value, named in values.items()})


def _without_twins(places: Mapping[str, SlotTarget], where: str) -> SlotMap:
    """Return the mapping. Raise an error if two slots of the bot have the same target."""
    owners: dict[str, str] = {}
    for name, place in places.items():
        if place.slot in owners:
            raise UserError(
                f"{where}: both {owners[place.slot]!r} and {name!r} are mapped to {place.slot!r}; "
                f"map only one with {_OPTION}"
            )
        owners[place.slot] = name
    return SlotMap(places)


def _folded(name: str) -> str:
    """Return a name in lower case, with a dash for each run of blanks, dashes and underscores."""
    return re.sub(r"[\W_]+", "-", name.casefold())


#: Rasa returns its domain as JSON only if the header ``Accept`` has this value.
_JSON: Final = "application/json"
#: Prefix of actions that only send a text. If a domain lists a built-in action, the bot overrides
#: it.
_TEXTS: Final = "utter_"
#: Most action names in a message.
_ACTIONS_SHOWN: Final = 3
#: Characters of an utterance that a message shows.
_LETTERS = 60


@dataclass(eq=False, repr=False)
class RasaTracker:
    """A tracker for the belief states, the replies, or the NLU of a Rasa bot."""

    transport: Transport
    #: The mapping of its slots; ``None`` if replies or the NLU are tested.
    slots: SlotMap | None
    #: The normalisation of the data.
    normalisation: str
    #: Most conversations per context, until the bot has received each message once.
    tries: int
    #: Hash of the bot's model id and of the slot map. ``None`` if there is no model id, or if the
    #: bot has custom actions, whose code is not part of the model.
    fingerprint: str | None
    #: Sentences for the user.
    notes: tuple[str, ...]
    #: Actions that run on the bot's action server.
    actions: frozenset[str] = frozenset()
    #: The id of the bot's model, or ``None``.
    version: object = None
    #: Whether the intents and entities of single messages are tested.
    parses: bool = False
    #: Whether one of them has left an event.
    _acted: bool = field(default=False, init=False)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Hold one conversation for each context, or parse its messages, several at once.

        Raises:
            ChangedTrackerError: the bot has loaded another model, or does not tell its id any more.
                The id is read after each batch.
            BatchInterrupt: Ctrl-C was pressed. The exception has the answers so far, unless the
                model has changed.
        """
        jobs = [partial(self._answered, context) for context in contexts]
        check = VersionCheck(
            self.transport, self.version, self._model, who="bot", what="model", named="the model"
        )
        takers = [taker] if (taker := check.taker_of(self)) else []
        return check.checked(lambda: self.transport.map(jobs, *takers))

    def _model(self, late: bool) -> object:
        """Request the id of the bot's model."""
        asked = self.transport.ask("GET", "status", read=_read_version, late=late)
        return self.transport.wait(asked)

    async def _answered(self, context: Context) -> Prediction:
        for message in context.user_utterances:
            if message.lstrip().startswith("/"):
                raise TrackerError(
                    f"{message[:_LETTERS]!r} was not sent: Rasa reads a message that begins with "
                    "'/' as an intent, not as text"
                )
        try:
            return await (self._understood(context) if self.parses else self._believed(context))
        except ServiceError as error:
            if error.unreadable:
                raise MalformedAnswerError(str(error)) from None
            raise

    async def _understood(self, context: Context) -> Prediction:
        """Return the intent of the last message and the entities of all messages."""
        found: dict[str, object] = {}
        for message in context.user_utterances:
            read = read_of_bot(_read_parse)
            found |= await self.transport.ask("POST", "model/parse", {"text": message}, read=read)
        return as_prediction(found, self.normalisation, "the bot")

    async def _believed(self, context: Context) -> Prediction:
        heard, messages = 0, context.user_messages
        for _ in range(self.tries):
            told = await self._conversation(messages)
            heard = told.heard
            if heard == len(messages):
                self._refuse_idle_actions(told)
                if self.slots is None:
                    return Prediction(BeliefState(), reply=told.reply)
                return as_prediction(self.slots.state(told.slots), self.normalisation, "the bot")
        raise TrackerError(
            f"the bot's tracker has {format_count(heard, 'user message')} instead of "
            f"{len(messages)}; see the bot's log for the reason"
        )

    def _refuse_idle_actions(self, told: _RasaConversation) -> None:
        """Raise an error if the custom actions leave no events, because they seem to fail."""
        ran = [left for name, left in told.actions if name in self.actions]
        if any(ran):
            self._acted = True
        elif ran and not self._acted:
            names = {name for name, _ in told.actions} & self.actions
            raise TrackerError(
                f"the bot ran {format_list(sorted(names), _ACTIONS_SHOWN)} but got neither an "
                "event nor a message back, so its action server seems to fail or not to run: "
                "start it, or see the bot's log. An action that does nothing on purpose must "
                "return an event"
            )

    async def _conversation(self, messages: Sequence[str]) -> _RasaConversation:
        # Random ids: they do not affect results, and no two processes may share a conversation.
        name, reply = f"dstfuzz-{uuid.uuid4().hex}", ""
        for message in messages:
            try:
                reply = await self.transport.ask(
                    "POST",
                    "webhooks/rest/webhook",
                    {"sender": name, "message": message},
                    read=_read_answer,
                )
            except ServiceError as error:
                if error.status != 404:
                    raise
                raise TrackerError(
                    f"{error}: the bot has no REST channel; add a line 'rest:' to its "
                    "credentials.yml"
                ) from None
        # Ask for all events, because a bot may restart the conversation.
        told = await self.transport.ask(
            "GET",
            f"conversations/{name}/tracker?include_events=ALL",
            read=read_of_bot(_read_tracker),
        )
        return told._replace(reply=reply)


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> RasaTracker:
    """Return the tracker for the bot at an address. The query may contain the bot's token."""
    transport = Transport(url, _asking_for_json(service))
    try:
        version = transport.wait(transport.ask("GET", "status", read=_read_version))
        slots, actions = transport.wait(transport.ask("GET", "domain", read=_read_domain))
    except GivenUpError:
        raise
    except TrackerError as error:
        raise UserError(f"{error}{_hint(error)}") from error
    says = settings.reply.outcome == REPLY
    parses = data.layout == NLU and not says
    if parses and settings.tracker.slot_map is not None:
        raise UserError(
            "the data are NLU examples, whose intents and entities are tested, so a slot map does "
            "not apply: leave out slot-map, or use stories"
        )
    chosen = None if says or parses else _chosen_slots(transport, slots, data, settings)
    notes = [] if chosen is None else [chosen.note(slots)]
    fingerprint = None
    if version is not None and actions and not parses:
        notes.append(
            "the bot's answers are not cached for other runs: its model id does not cover its "
            f"custom actions ({format_list(actions, _ACTIONS_SHOWN)}), which may change without it"
        )
    elif version is not None:
        told = NLU if parses else REPLY if chosen is None else chosen.to_json()
        text = json.dumps([version, told], sort_keys=True)
        fingerprint = hashlib.sha256(text.encode("ascii")).hexdigest()
    return RasaTracker(
        transport,
        chosen,
        normalisation=data.normalisation,
        tries=service.retries + 1,
        fingerprint=fingerprint,
        notes=tuple(filter(None, notes)),
        actions=frozenset(actions),
        version=version,
        parses=parses,
    )


def _chosen_slots(
    transport: Transport, slots: Sequence[str], data: DialogueSet, settings: Settings
) -> SlotMap:
    """Return the mapping of the bot's slots. Raise an error if it cannot be tested."""
    if not slots:
        raise UserError(
            f"the bot at {transport.address} has no slots, so there is no belief state to test: "
            "add --dst-outcome=reply to test its replies"
        )
    chosen = slot_map(settings.tracker.slot_map, slots, data)
    reached = sorted(place.slot for place in chosen.places.values())
    wanted = data.ontology.slots if settings.data.slots and data.ontology is not None else ()
    if missing := [slot for slot in wanted if slot not in reached]:
        there = slots if settings.tracker.slot_map is None else reached
        raise UserError(f"slots: {unknown_name('slot of the bot', missing[0], there)}")
    return chosen


def _asking_for_json(service: ServiceSettings) -> ServiceSettings:
    """Return the settings of a service with the ``Accept`` header that the domain requires."""
    if any(header.name.lower() == "accept" for header in service.headers):
        return service
    return replace(service, headers=(*service.headers, Header("Accept", _JSON)))


class _RasaConversation(NamedTuple):
    """The state of a conversation, as Rasa's tracker reports it."""

    slots: dict[str, object]
    #: Number of user messages that the bot received.
    heard: int
    #: The actions that ran, each with whether an event of its own follows it.
    actions: tuple[tuple[str, bool], ...]
    #: The bot's reply to the last message.
    reply: str = ""


def _read_tracker(reply: Reply) -> _RasaConversation:
    """Parse the tracker of a conversation."""
    body = _object(reply, "a tracker")
    slots, events = body.get("slots"), body.get("events")
    found: dict[str, object] = {}
    for part in slots if isinstance(slots, list) else [slots]:
        if not isinstance(part, dict):
            raise MalformedReply(
                f"answered with a tracker whose 'slots' are {describe(slots)} instead of slot -> "
                "value"
            )
        found |= part
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise MalformedReply(
            f"answered with a tracker whose 'events' are {describe(events)} instead of a list of "
            "events"
        )
    kinds = [event.get("event") for event in events]
    after = [*kinds[1:], "user"]
    actions = tuple(
        (str(event.get("name")), follows not in ("action", "user"))
        for event, follows in zip(events, after, strict=True)
        if event.get("event") == "action"
    )
    return _RasaConversation(found, kinds.count("user"), actions)


def _read_answer(reply: Reply) -> str:
    """Return the texts of the bot's messages in an answer of the REST channel, one per line."""
    answer = reply.json()
    if not isinstance(answer, list):
        raise MalformedReply(
            f"answered a message with {describe(answer)} instead of a list of messages"
        )
    texts = (one.get("text") for one in answer if isinstance(one, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _read_parse(reply: Reply) -> dict[str, object]:
    """Return the intent and the entities of a message. Several values of an entity are a list."""
    body = _object(reply, "a parsed message")
    intent, entities = body.get("intent"), body.get("entities") or []
    if not isinstance(intent, dict) or not isinstance(entities, list):
        raise MalformedReply(
            f"answered with {describe(body)} instead of a parsed message with intent and entities"
        )
    found: dict[str, list[object]] = {}
    for one in entities:
        if isinstance(one, dict):
            found.setdefault(str(one.get("entity")), []).append(one.get("value"))
    values = {name: each[0] if len(each) == 1 else each for name, each in found.items()}
    return {INTENT: intent.get("name"), **values}


def _read_version(reply: Reply) -> object:
    """Return the id of the loaded model, or ``None``."""
    body = _object(reply, "a status")
    # Up to version 2, this is a fingerprint of the model's files. Since version 3, it is an id.
    return body.get("model_id") or body.get("fingerprint") or None


def _read_domain(reply: Reply) -> tuple[list[str], list[str]]:
    """Return the slots of a bot, and the actions that its action server runs."""
    domain = _object(reply, "a domain")
    slots, actions = domain.get("slots", {}), domain.get("actions") or []
    if not isinstance(slots, dict):
        raise MalformedReply(
            f"answered with a domain whose 'slots' are {describe(slots)} instead of an object"
        )
    if not isinstance(actions, list):
        raise MalformedReply(
            f"answered with a domain whose 'actions' are {describe(actions)} instead of a list"
        )
    # An action that receives the domain is an object with its name as the key.
    names = [name for one in actions for name in (one if isinstance(one, dict) else [one])]
    return list(slots), sorted({str(name) for name in names if not str(name).startswith(_TEXTS)})


def _object(reply: Reply, what: str) -> dict[str, object]:
    body = reply.json()
    if not isinstance(body, dict):
        raise MalformedReply(f"answered with {describe(body)} instead of {what} of Rasa")
    return body


def _hint(error: TrackerError) -> str:
    status = error.status if isinstance(error, ServiceError) else None
    if status == 404:
        return ". Is it a Rasa server, and was it started with --enable-api?"
    if status in (401, 403):
        return (
            ". Add the token of --auth-token to the address as ?token=..., or set the environment "
            "variable DSTFUZZ_TOKEN to a JSON web token with the role 'admin'"
        )
    return ""
