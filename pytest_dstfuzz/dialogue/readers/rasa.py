"""Readers of Rasa's files: stories and end-to-end tests, NLU examples, and dumps of trackers.

The domain of the project gives the texts of the bot's responses and the slots that an entity fills.
The slots of the domain are the ontology. Their values come from categorical slots, and from
entities in NLU examples. A step without the user's words gets the first NLU example of its intent.
If there is none, the step is the payload of a button, which is sent, but never edited.
The label of an NLU example is its intent, under the name ``intent``, and its entities. A turn of a
story has a belief state as its label only if all slots so far were filled by entities,
``slot_was_set`` or their initial values. Turns after a form or an action have no label, because
both may fill slots. In the dump of a tracker, events name every filled slot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.messages import Message
from pytest_dstfuzz.dialogue.readers.messages import values_of
from pytest_dstfuzz.dialogue.readers.source import (
    Oddities,
    Reader,
    ReadOptions,
    SourceFile,
    as_state,
    begun_object,
    json_start,
)
from pytest_dstfuzz.errors import DataError, needs_extra, redact_text
from pytest_dstfuzz.json_data import load_json, shorten_value
from pytest_dstfuzz.printable import shorten_text

_YAML: Final = (".yml", ".yaml")
#: The layout of NLU examples.
NLU: Final = "rasa-nlu"
#: The slot for the intent of an NLU example.
INTENT: Final = "intent"
#: An annotated entity: ``[big](size)``, ``[big](size:large)`` or ``[big]{"entity": "size"}``.
_ENTITY: Final = re.compile(
    r"\[(?P<text>[^\[\]]+)\](?:\((?P<name>[^()\[\]]*)\)|(?P<json>\{[^{}]*\}))"
)
_PLACEHOLDER: Final = re.compile(r"\{\w+\}")
#: Slots that Rasa itself sets.
_OWN: Final = ("requested_slot", "session_started_metadata")
#: Actions that say nothing.
_SILENT: Final = re.compile(
    r"action_(listen|session_start|restart|default_fallback|deactivate_loop)"
)


def _parsed(file: SourceFile) -> Any:
    with needs_extra("reading Rasa's YAML", "yaml", "ruamel.yaml"):
        from ruamel.yaml import YAML  # noqa: PLC0415 - optional
        from ruamel.yaml.error import YAMLError  # noqa: PLC0415 - likewise
    try:
        # YAML 1.2, as Rasa reads it. Version 1.1 takes `yes` for true and 12:30 for 750.
        return YAML(typ="safe", pure=True).load(file.text())
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f": line {mark.line + 1}"
        raise DataError(f"{file.place}{line} is not valid YAML") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A value that does not fit its tag, or a date such as 2024-02-30.
        why = redact_text(shorten_text(str(error), 80))
        raise DataError(
            f"{file.place} has a value that YAML cannot read: {why}: write it in quotes"
        ) from None
    except RecursionError:
        raise DataError(f"{file.place} is nested too deeply") from None


@dataclass
class _Project:
    """The words of the bot, and the slots, from the files of a project."""

    #: Name of a response -> its first text. ``None`` if it depends on slots.
    responses: dict[str, str | None] = field(default_factory=dict)
    #: Slot -> its known values.
    values: dict[str, list[object]] = field(default_factory=dict)
    #: Slots whose values the domain does not list.
    open: set[str] = field(default_factory=set)
    #: Entity -> the slots that it fills.
    filled: dict[str, list[str]] = field(default_factory=dict)
    #: Slot -> its value at the start of a conversation, if it has one.
    initial: dict[str, Any] = field(default_factory=dict)
    #: Whether nothing else fills a slot, apart from forms and actions.
    complete: bool = False
    #: Intent -> its first example.
    examples: dict[str, str] = field(default_factory=dict)
    #: ``intent`` and the entities of the domain -> their values in the NLU examples.
    understood: dict[str, list[object]] = field(default_factory=dict)


def _project(file: SourceFile) -> _Project:
    found = _Project()
    if file.member is not None:
        return found
    folders = [folder for folder in file.path.absolute().parents[:4] if _domains(folder)]
    found.complete = bool(folders)
    for path in _domains(folders[0]) if folders else ():
        domain = _parsed(SourceFile(path.name, path))
        if isinstance(domain, Mapping):
            _add_domain(found, domain)
    for path in sorted((folders[0] / "data").rglob("*.yml")) if folders else ():
        text = path.read_text(encoding="utf-8", errors="replace")
        if re.search(r"^nlu:", text, re.MULTILINE):
            for example in _of_file(SourceFile(path.name, path)):
                for name in (example.intent, example.base):
                    found.examples.setdefault(name, example.text)
                _add_values(found.understood, example)
                for entity, value in example.entities:
                    for slot in found.open.intersection(found.filled.get(entity, ())):
                        found.values[slot].append(value)
    return found


def _add_values(values: dict[str, list[object]], example: _Example) -> None:
    """Add the intent and the entities of an example to the known values."""
    for name, value in ((INTENT, example.base), *example.entities):
        values.setdefault(name, []).append(value)


def _domains(folder: Path) -> list[Path]:
    single = [folder / f"domain{suffix}" for suffix in _YAML]
    return [path for path in single if path.is_file()] or sorted((folder / "domain").rglob("*.yml"))


def _add_domain(found: _Project, domain: Mapping[str, Any]) -> None:
    for name, variations in _of(domain, "responses").items():
        first = variations[0] if isinstance(variations, list) and variations else {}
        text = first.get("text") if isinstance(first, Mapping) else None
        plain = isinstance(text, str) and not _PLACEHOLDER.search(text)
        found.responses[name] = text.strip() if plain and isinstance(text, str) else None
    for one in _list(domain, "entities"):
        for entity in one if isinstance(one, Mapping) else [one]:
            found.understood.setdefault(str(entity), [])
    for slot, about in _of(domain, "slots").items():
        if isinstance(about, Mapping):
            _add_slot(found, str(slot), about)


def _add_slot(found: _Project, slot: str, about: Mapping[str, Any]) -> None:
    if slot not in _OWN:
        listed = about.get("values") if about.get("type") == "categorical" else None
        found.values[slot] = listed if isinstance(listed, list) else []
        if not isinstance(listed, list):
            found.open.add(slot)
        if about.get("initial_value") is not None:
            found.initial[slot] = about["initial_value"]
    mappings = about.get("mappings")
    # Before Rasa 3 an entity filled the slot of its name.
    old = [{"type": "from_entity", "entity": slot}] if about.get("auto_fill", True) else []
    for one in mappings if isinstance(mappings, list) else old:
        kind = one.get("type") if not one.get("conditions") else None
        if kind == "from_entity":
            found.filled.setdefault(str(one.get("entity")), []).append(slot)
        elif kind not in (None, "custom", "from_trigger_intent"):
            found.complete = False  # A trigger intent fills a slot only with its form.


def _of(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _without_entities(text: str) -> tuple[str, list[tuple[str, Any]]]:
    """Return an annotated text in the user's words, and its entities with their values.

    >>> _without_entities('a [big](size) [one]{"entity": "count", "value": "1"}')
    ('a big one', [('size', 'big'), ('count', '1')])
    """
    entities: list[tuple[str, Any]] = []
    for one in _ENTITY.finditer(text):
        said = one["text"]
        if one["json"]:
            try:
                about = load_json(one["json"])
            except ValueError:
                continue
            entities.append((str(about.get("entity")), about.get("value", said)))
        else:
            name, _, value = one["name"].partition(":")
            entities.append((name, value or said))
    return _ENTITY.sub(lambda one: one["text"], text).strip(), entities


def _payload_entities(text: str) -> Mapping[str, Any]:
    """Return the entities in the payload of a button.

    >>> _payload_entities('/inform{"size": "big"}')
    {'size': 'big'}
    """
    _, brace, rest = text.partition("{")
    try:
        found = load_json(brace + rest) if brace else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class _Example(NamedTuple):
    """An NLU example."""

    intent: str
    text: str
    entities: list[tuple[str, Any]]

    @property
    def base(self) -> str:
        """The intent that the NLU returns, which of ``faq/hours`` is ``faq``."""
        return self.intent.partition("/")[0]


class _Event(NamedTuple):
    #: ``user``, ``bot``, ``slot`` or ``unknown``: from here on slots are not known.
    kind: str
    #: The words, or the name of the slot. ``None`` for words that are not known.
    text: str | None = None
    #: Values of entities, or of the slot.
    value: Any = None


def _story(steps: Iterable[Any], project: _Project) -> Iterator[_Event]:
    """Yield the events of a story, or of a test."""
    for given in steps:
        step = given["or"][0] if "or" in given else given
        if "user" in step or "intent" in step:
            yield from _user(step, project)
        elif "bot" in step:
            yield _Event("bot", _words(step["bot"]).strip())
        elif "action" in step or "utter" in step:
            name = str(step.get("action", step.get("utter")))
            if not name.startswith("utter_") and not _SILENT.fullmatch(name):
                yield _Event("unknown")  # A form or an action may fill any slot.
            if not name.endswith("_form") and not _SILENT.fullmatch(name):
                yield _Event("bot", project.responses.get(name))
        elif step.get("active_loop"):
            yield _Event("unknown")  # A form fills slots that no step names.
        for slots in step.get("slot_was_set") or ():
            if not isinstance(slots, Mapping):
                yield _Event("unknown")  # It may have any value.
                continue
            yield from (_Event("slot", str(slot), value) for slot, value in slots.items())


def _words(said: object) -> str:
    """Return what someone said.

    Raises:
        DataError: YAML reads it as another value than a text. Rasa refuses such a step, too.
    """
    if not isinstance(said, str):
        raise DataError(f"{shorten_value(said)} is not a text: write the words in quotes")
    return said


def _user(step: Mapping[str, Any], project: _Project) -> Iterator[_Event]:
    if "user" in step:
        text, said = _without_entities(_words(step["user"]))
        entities = dict(said)
        for named in step.get("entities") or ():
            entities |= named if isinstance(named, Mapping) else {}
        yield _Event("user", text, entities)
        if step.get("assertions"):
            yield _Event("unknown")  # They name some of the slots that a flow fills.
        return
    intent, given = str(step["intent"]), step.get("entities") or []
    if intent not in project.examples and project.examples:
        # Nobody types such an intent. Rasa reads it from the payload of a button.
        values = {
            name: value for one in given if isinstance(one, Mapping) for name, value in one.items()
        }
        yield _Event("user", f"/{intent}{json.dumps(values) if values else ''}", values)
        return
    yield _Event("user", project.examples.get(intent), {})
    if given:
        yield _Event("unknown")  # The example has other values.


def _tracker(events: Iterable[Any]) -> Iterator[_Event]:
    """Yield the events of a tracker dump."""
    for one in events:
        kind, name = one.get("event"), one.get("name")
        text = one.get("text")
        if kind == "user" and text not in (None, ""):
            yield _Event("user", _words(text), {})
        elif kind == "bot":
            yield _Event("bot", _words("" if text is None else text))
        elif kind == "slot" and name not in _OWN:
            yield _Event("slot", str(name), one.get("value"))
        elif kind in ("restart", "reset_slots"):
            yield _Event("reset")
        elif kind in ("undo", "rewind"):
            yield _Event("unknown")  # Slots get back the values that they had before.


class _Talk:
    """A dialogue in construction, from events."""

    def __init__(self, project: _Project) -> None:
        self._filled = project.filled
        #: Whether all slots are known, and their values.
        self._known = project.complete
        self._slots: dict[str, Any] = dict(project.initial)
        #: The user's words, with the messages before and the slots after.
        self._users: list[str] = []
        self._before: list[list[Message]] = [[]]
        self._states: list[dict[str, Any] | None] = []
        #: Whether the last turn still fills slots. The payload of a button ends it.
        self._in_turn = False
        #: Numbers of the blocks of messages that lack a reply.
        self._mute: set[int] = set()

    def add(self, event: _Event) -> None:
        """Add one event to the dialogue."""
        if event.kind == "bot" and event.text is None:
            self._mute.add(len(self._users))
        elif event.kind == "bot":
            self._before[-1].append(Message("assistant", event.text))
        elif event.kind == "user" and (event.text or "").startswith("/"):
            # The payload of a button is sent, but never edited.
            self._before[-1].append(Message("user", event.text))
            self._in_turn = False
            self._fill(event.value or _payload_entities(event.text or ""))
        elif event.kind == "user":
            self._users.append(event.text or "")
            self._before.append([])
            self._states.append(None)
            self._in_turn = True
            self._fill(event.value)
        elif event.kind == "slot":
            self._slots[str(event.text)] = event.value
        elif event.kind == "reset":
            self._slots.clear()
        else:
            self._known = False
        if self._in_turn:
            self._states[-1] = dict(self._slots) if self._known else None

    def _fill(self, entities: Mapping[str, Any]) -> None:
        for entity, value in entities.items():
            self._slots |= dict.fromkeys(self._filled.get(entity, ()), value)

    def dialogue(self, name: str, place: str, how: ReadOptions) -> Dialogue | None:
        """Return the dialogue, or ``None`` if the words of a user turn are not in the files."""
        if not all(map(str.strip, self._users)) or not self._users:
            return None
        turns = tuple(
            Turn(
                index,
                self._reply(index),
                user,
                as_state(self._states[index], f"{place}, turn {index}", how.normalisation),
                answer=(self._reply(index + 1) or None) if index + 1 == len(self._users) else None,
                recorded=self._recorded(index),
            )
            for index, user in enumerate(self._users)
        )
        return Dialogue(name, turns)

    def _reply(self, number: int) -> str:
        """Return the bot's utterances before a turn, or ``""`` if some are not in the files."""
        said = [one.text for one in self._before[number] if one.role == "assistant"]
        return "" if number in self._mute else "\n".join(said)

    def _recorded(self, number: int) -> tuple[str, ...] | None:
        """Return the messages before a turn, or ``None`` if all of them are bot utterances."""
        block = self._before[number]
        if all(one.role == "assistant" for one in block):
            return None
        return tuple(one.encoded() for one in block)


_FORM: Final = 'a story has a name and steps, {"story": "...", "steps": [{"user": "..."}]}'


class _RasaReader(Reader):
    """The common parts of the readers of Rasa's files."""

    def _talks(self, file: SourceFile) -> Iterator[tuple[str, str, Iterable[_Event], _Project]]:
        """Yield the name of each dialogue, its place, its events and its project."""
        raise NotImplementedError

    def slot_values(self, file: SourceFile) -> Mapping[str, Sequence[object]]:
        """Return the slots of the domain, with the values in the domain and in the NLU examples."""
        return _project(file).values

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a file. Note dialogues without words of the user."""
        odd = Oddities()
        used: dict[str, int] = {}
        for name, place, events, project in self._talks(file):
            talk = _Talk(project)
            try:
                for event in events:
                    talk.add(event)
            except (AttributeError, IndexError, KeyError, TypeError):
                raise DataError(f"{place}: expected {self.about}") from None
            except DataError as error:
                raise DataError(f"{place}: {error}") from None
            used[name] = used.get(name, 0) + 1
            again = f"-{used[name]}" if used[name] > 1 else ""
            found = talk.dialogue(f"{name}{again}", place, how)
            if found is None:
                odd.add("Dialogues without the words of the user are left out", place)
            else:
                yield found
        odd.tell(how.tell)


class RasaStories(_RasaReader):
    """Stories and end-to-end tests of Rasa."""

    name = "rasa"
    about = "Rasa's stories or end-to-end tests, YAML with stories: or test_cases:"

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise YAML with a list of stories or of test cases."""
        named = file.name.lower().endswith(_YAML)
        return 0.9 if named and re.search(r"^(stories|test_cases):", head, re.MULTILINE) else 0

    def _talks(self, file: SourceFile) -> Iterator[tuple[str, str, Iterable[_Event], _Project]]:
        parsed = _parsed(file)
        project = _project(file)
        listed = [(one, key) for key in ("stories", "test_cases") for one in _list(parsed, key)]
        for number, (one, key) in enumerate(listed):
            place = f"{file.place}: {key}[{number}]"
            if not isinstance(one, Mapping) or not isinstance(one.get("steps"), list):
                raise DataError(f"{place}: {shorten_value(one)}; {_FORM}")
            name = one.get("story", one.get("test_case", f"{file.stem}-{number + 1}"))
            events = _story(one["steps"], project)
            # A fixture fills slots before the first turn.
            start = [_Event("unknown")] if one.get("fixtures") else []
            yield str(name), place, chain(start, events), project


class RasaExamples(_RasaReader):
    """Examples of Rasa's NLU data, each a dialogue of one turn."""

    name = NLU
    about = "Rasa's NLU examples, YAML with nlu:"

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise YAML with intents, and the older JSON."""
        if json_start(file, head):
            return 0.9 if "rasa_nlu_data" in begun_object(head) else 0
        named = file.name.lower().endswith(_YAML)
        return 0.8 if named and re.search(r"^nlu:", head, re.MULTILINE) else 0

    def _talks(self, file: SourceFile) -> Iterator[tuple[str, str, Iterable[_Event], _Project]]:
        for example in _of_file(file):
            place = f"{file.place}: intent {example.intent}"
            label: dict[str, Any] = {INTENT: example.base}
            for entity, value in example.entities:
                label[entity] = [*_listed(label[entity]), value] if entity in label else value
            slots = (_Event("slot", name, value) for name, value in label.items())
            events = [_Event("user", example.text.lstrip("/"), {}), *slots]
            yield example.intent, place, events, _Project(complete=True)

    def slot_values(self, file: SourceFile) -> Mapping[str, Sequence[object]]:
        """Return ``intent`` and the entities of the project, with their values in all examples."""
        known = _project(file).understood
        for example in _of_file(file) if known else ():
            _add_values(known, example)
        return known


class RasaTrackers(_RasaReader):
    """Dumps of Rasa's trackers, with all events of a conversation."""

    name = "rasa-tracker"
    about = 'dumps of Rasa\'s trackers, {"sender_id": "...", "events": [...]}'
    keys = (("sender_id", "events"),)

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise a dump by the keys of a tracker."""
        found = begun_object(head) if json_start(file, head) else {}
        known = {"sender_id", "events"} <= found.keys() or {"sender_id", "slots"} <= found.keys()
        return 0.9 if known else 0

    def _talks(self, file: SourceFile) -> Iterator[tuple[str, str, Iterable[_Event], _Project]]:
        for one, place, name in values_of(file):
            if not isinstance(one, Mapping) or not isinstance(one.get("events"), list):
                raise DataError(f"{place}: {shorten_value(one)}; expected {self.about}")
            yield (
                str(one.get("sender_id") or name),
                place,
                _tracker(one["events"]),
                _Project(complete=True),
            )


def _list(parsed: object, key: str) -> list[Any]:
    found = parsed.get(key) if isinstance(parsed, Mapping) else None
    return found if isinstance(found, list) else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _of_file(file: SourceFile) -> Iterator[_Example]:
    """Yield the examples of an NLU file, YAML or the older JSON."""
    is_json = file.name.lower().endswith(".json")
    yield from _examples(file.json() if is_json else _parsed(file), file.place)


def _examples(parsed: Any, place: str) -> Iterator[_Example]:
    """Yield the examples of parsed NLU data."""
    old = _list(_of(parsed, "rasa_nlu_data"), "common_examples") if isinstance(parsed, dict) else []
    for one in old:
        if isinstance(one, Mapping) and isinstance(one.get("text"), str):
            named = (each for each in _list(one, "entities") if isinstance(each, Mapping))
            entities = [(str(each.get("entity")), each.get("value")) for each in named]
            yield _Example(str(one.get("intent")), one["text"], entities)
    for one in _list(parsed, "nlu"):
        if not isinstance(one, Mapping) or "intent" not in one:
            continue  # Synonyms, lookup tables and regular expressions.
        listed = one.get("examples")
        if isinstance(listed, str):
            listed = [line.strip()[1:] for line in listed.splitlines() if line.strip()[:1] == "-"]
        for example in listed if isinstance(listed, list) else ():
            text = example.get("text") if isinstance(example, Mapping) else example
            try:
                words = _words(text).strip()
            except DataError as error:
                raise DataError(f"{place}: intent {one['intent']}: {error}") from None
            if words:
                yield _Example(str(one["intent"]), *_without_entities(words.removeprefix("- ")))
