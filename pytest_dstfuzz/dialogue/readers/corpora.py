"""Readers of research corpora: MultiWOZ, TRADE's files, SGD, CANARD."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

import msgspec

from pytest_dstfuzz.dialogue.calls import TOOL_CALLS, Tool, ToolCall, canonical
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, ToolParaphrase, Turn
from pytest_dstfuzz.dialogue.messages import Message, calling
from pytest_dstfuzz.dialogue.normalise import normalise_slot
from pytest_dstfuzz.dialogue.readers.messages import turns_of
from pytest_dstfuzz.dialogue.readers.source import (
    HEAD_BYTES,
    Oddities,
    Reader,
    ReadOptions,
    SourceFile,
    as_label,
    as_state,
    convert_checked,
    json_start,
)
from pytest_dstfuzz.errors import DataError, did_you_mean
from pytest_dstfuzz.json_data import shorten_value
from pytest_dstfuzz.printable import format_count

__all__ = ["COLUMNS", "questions"]


#: The recorded answer if the article has none.
NO_ANSWER: Final = "I don't know."
#: Number of history entries before the first question: title and section.
_HEAD: Final = 2


class CanardQuestion(msgspec.Struct):
    """One object of CANARD's file: a question with the rounds before it."""

    History: list[str]
    QuAC_dialog_id: str
    Question: str
    Question_no: int
    Rewrite: str = ""


def questions(file: SourceFile) -> dict[str, list[CanardQuestion]]:
    """Return the questions of each dialogue, in order, with dialogues in the order of the file."""
    found: dict[str, list[CanardQuestion]] = {}
    for number, raw in enumerate(convert_checked(list[dict[str, Any]], file.json(), file.place)):
        entry = convert_checked(CanardQuestion, raw, f"{file.place}: question {number}")
        found.setdefault(entry.QuAC_dialog_id, []).append(entry)
    return {name: sorted(of, key=lambda one: one.Question_no) for name, of in found.items()}


class Canard(Reader):
    """Questions of CANARD, grouped into dialogues."""

    name = "canard"
    about = "CANARD's questions"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise a list of questions by the key for their dialogue."""
        return 0.9 if json_start(file, head) == "[" and '"QuAC_dialog_id"' in head else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:  # noqa: ARG002 - no labels
        """Yield the dialogues of one file. Unanswerable questions have the answer ``""``."""
        for name, entries in questions(file).items():
            for place, entry in enumerate(entries):
                if len(entry.History) != _HEAD + 2 * place:
                    raise DataError(
                        f"{file.place}: dialogue {name}, question {entry.Question_no}: its history "
                        f"has {len(entry.History)} entries instead of {_HEAD + 2 * place}: title, "
                        "section, and the question and answer of each earlier round"
                    )
            systems = ["\n".join(entries[0].History), *(one.History[-1] for one in entries[1:])]
            silent = [after == NO_ANSWER for _, after in pairwise(systems)]
            yield Dialogue(
                name,
                tuple(
                    Turn(index, system, entry.Question, answer="" if none else None)
                    for index, (entry, system, none) in enumerate(
                        zip(entries, systems, [*silent, False], strict=True)
                    )
                ),
            )


#: Names of SGD's services end in a number. Those of MultiWOZ 2.2 are its domains.
_SGD_SERVICE: Final = re.compile(r'"services?"\s*:\s*\[?\s*"[A-Za-z]+_\d+"')
_LOG: Final = re.compile(r'"log"\s*:\s*\[')


def schema_guided(file: SourceFile, head: str) -> str:
    """Return ``sharded`` or ``sgd`` for a schema-guided file, otherwise ``""``."""
    if json_start(file, head) != "[" or '"dialogue_id"' not in head or '"turns"' not in head:
        return ""
    return "sgd" if _SGD_SERVICE.search(head) else "sharded"


class _LogTurn(msgspec.Struct):
    text: str
    metadata: dict[str, Any] | None = None


class _Logs(msgspec.Struct):
    log: list[_LogTurn]


class _Domain(msgspec.Struct):
    semi: dict[str, Any] = {}
    book: dict[str, Any] = {}


class _Values(msgspec.Struct):
    slot_values: dict[str, Any] = {}


class _Frame(msgspec.Struct):
    #: Frames of services without a state have only spans.
    state: _Values = msgspec.field(default_factory=_Values)


class _Utterance(msgspec.Struct):
    utterance: str
    speaker: str
    frames: Any = None


class _Shard(msgspec.Struct):
    dialogue_id: str
    turns: list[_Utterance]


class OriginalMultiwoz(Reader):
    """``data.json`` of MultiWOZ 2.0, 2.1, 2.3 and 2.4."""

    name = "original"
    about = "MultiWOZ's data.json"
    normalisation = "multiwoz"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise an object whose dialogues have a log."""
        return 0.6 if json_start(file, head) == "{" and _LOG.search(head) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of ``file`` in order, with unchanged texts.

        A final user turn without a system turn after it has no label.
        """
        for raw_id, raw in convert_checked(dict[str, Any], file.json(), file.place).items():
            dialogue_id = raw_id.removesuffix(".json")
            place = f"{file.place}: dialogue {dialogue_id}"
            log = convert_checked(_Logs, raw, place).log
            states = [
                _labels(item.metadata, f"{place}, utterance {index}", how.normalisation)
                for index, item in enumerate(log)
                if index % 2
            ]
            turns = (
                Turn(
                    index=number,
                    system=log[start - 1].text if start else "",
                    user=log[start].text,
                    state=states[number] if number < len(states) else None,
                )
                for number, start in enumerate(range(0, len(log), 2))
            )
            yield Dialogue(dialogue_id, tuple(turns))


class ShardedMultiwoz(Reader):
    """The files of MultiWOZ 2.2."""

    name = "sharded"
    about = "the sharded files of MultiWOZ 2.2"
    normalisation = "multiwoz"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise schema-guided dialogues whose services have no numbers in their names."""
        return 0.8 if schema_guided(file, head) == self.name else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of one shard. Only the first of several values of a slot is used."""
        for entry, place in file.entries(_Shard, "dialogue_id"):
            turns: list[Turn] = []
            system = ""
            for number, said in enumerate(entry.turns):
                if said.speaker.upper() == "USER":
                    where = f"{place}, utterance {number}"
                    frames = convert_checked(list[_Frame], said.frames, f"{where}: 'frames'")
                    state: dict[str, Any] = {}
                    for frame in frames:
                        state |= frame.state.slot_values
                    label = as_label(state, where, how.normalisation)
                    turns.append(Turn(len(turns), system, said.utterance, label))
                    system = ""
                else:
                    system = said.utterance
            yield Dialogue(entry.dialogue_id.removesuffix(".json"), tuple(turns))


def _labels(metadata: object, place: str, normalisation: str) -> BeliefState | None:
    state: dict[str, object] = {}
    for domain, raw in convert_checked(dict[str, Any], metadata, f"{place}: 'metadata'").items():
        frame = convert_checked(_Domain, raw, f"{place}: 'metadata', domain {domain!r}")
        # ``booked`` is the booking by the system, not a request of the user.
        booked = {f"book {slot}": value for slot, value in frame.book.items() if slot != "booked"}
        for slot, value in {**frame.semi, **booked}.items():
            state[f"{domain}-{slot}"] = value
    return as_label(state, place, normalisation)


#: First columns of the TSV. One column per slot follows.
COLUMNS: Final = ("# Dialogue ID", "Turn Index", "Last Turn", "System Response", "User Utterance")


class _Act(msgspec.Struct):
    slots: list[tuple[str, Any]]
    act: Any = "inform"


class _TradeTurn(msgspec.Struct):
    transcript: str
    system_transcript: str = ""
    belief_state: list[_Act] | None = None


class _TradeDialogue(msgspec.Struct):
    dialogue_idx: str
    dialogue: list[_TradeTurn]


class _Row(NamedTuple):
    line: int
    dialogue: str
    turn: Turn


class Trade(Reader):
    """The two formats written by TRADE's preprocessing."""

    name = "trade"
    about = "TRADE's TSV or *_dials.json"
    normalisation = "multiwoz"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise the header of the TSV, or the key for dialogues in the JSON."""
        is_json = json_start(file, head) == "[" and '"dialogue_idx"' in head
        return 0.9 if is_json or _is_tsv(head) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a file in either format."""
        is_tsv = _is_tsv(file.head(HEAD_BYTES).lstrip())
        yield from (_read_tsv if is_tsv else _read_json)(file, how.normalisation)


def _is_tsv(head: str) -> bool:
    return head.startswith(COLUMNS[0])


def _read_tsv(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of a TSV with a header line and one line per turn."""
    for dialogue_id, group in groupby(_rows(file, normalisation), key=lambda row: row.dialogue):
        rows = list(group)
        for expected, row in enumerate(rows):
            if row.turn.index != expected:
                raise DataError(
                    f"{file.place}: line {row.line}: turn {row.turn.index} of dialogue "
                    f"{dialogue_id} instead of turn {expected}"
                )
        yield Dialogue(dialogue_id, tuple(row.turn for row in rows))


def _rows(file: SourceFile, normalisation: str) -> Iterator[_Row]:
    lines = file.lines()
    header = next(lines, "").rstrip("\r\t").split("\t")
    if tuple(header[: len(COLUMNS)]) != COLUMNS or len(header) == len(COLUMNS):
        raise DataError(
            f"{file.place}: line 1 is not a header of the TRADE layout; expected the columns "
            f"{', '.join(COLUMNS)} and one column per slot"
        )
    slots = header[len(COLUMNS) :]
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        if len(cells) != len(header):
            raise DataError(
                f"{file.place}: line {number} has {format_count(len(cells), 'column')}, but the "
                f"header has {len(header)}"
            )
        if not (cells[1].isascii() and cells[1].isdecimal()):
            raise DataError(
                f"{file.place}: line {number}: the turn index must be a number, "
                f"got {shorten_value(cells[1])}"
            )
        stated = dict(zip(slots, cells[5:], strict=True))
        state = as_label(stated, f"{file.place}: line {number}", normalisation)
        turn = Turn(int(cells[1]), cells[3], cells[4], state)
        yield _Row(number, cells[0].removesuffix(".json"), turn)


def _read_json(file: SourceFile, normalisation: str) -> Iterator[Dialogue]:
    """Yield the dialogues of a ``*_dials.json``: a list with ``dialogue_idx`` and ``dialogue``."""
    for entry, place in file.entries(_TradeDialogue, "dialogue_idx"):
        turns = []
        for index, turn in enumerate(entry.dialogue):
            state = None
            if turn.belief_state is not None:
                acts = (act for act in turn.belief_state if act.act == "inform")
                slots = {slot: value for act in acts for slot, value in act.slots}
                where = f"{place}, turn {index}: 'belief_state'"
                state = as_label(slots, where, normalisation)
            turns.append(Turn(index, turn.system_transcript, turn.transcript, state))
        yield Dialogue(entry.dialogue_idx.removesuffix(".json"), tuple(turns))


class _ServiceState(msgspec.Struct):
    slot_values: dict[str, list[str]] = {}


class _ServiceCall(msgspec.Struct):
    method: str
    parameters: dict[str, Any]


class _ServiceFrame(msgspec.Struct):
    service: str
    #: Frames of the system have no state.
    state: _ServiceState | None = None
    #: Only frames of the system may have a call.
    service_call: _ServiceCall | None = None
    service_results: list[dict[str, Any]] = []


class _SpokenTurn(msgspec.Struct):
    utterance: str
    speaker: str
    frames: Any = ()


class _Conversation(msgspec.Struct):
    dialogue_id: str
    turns: list[_SpokenTurn]
    services: list[str] = []


class Sgd(Reader):
    """SGD in its published form."""

    name = "sgd"
    about = "SGD's dialogues_*.json"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise schema-guided dialogues whose services have numbers in their names."""
        return 0.8 if schema_guided(file, head) == self.name else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of one file, with slots named ``service-slot``.

        A service keeps its state until a later turn changes it. If a value has several spellings,
        the previous turn's spelling is used if it is listed, otherwise the first spelling. If tool
        calls are tested, the calls of the services are also read.
        """
        tools = _tools_of(how) if how.outcome == TOOL_CALLS else None
        for entry, place in file.entries(_Conversation, "dialogue_id"):
            turns: list[Turn] = []
            system = ""
            states: dict[str, dict[str, str]] = {}
            for number, said in enumerate(entry.turns):
                if said.speaker.upper() != "USER":
                    system = said.utterance
                    continue
                where = f"{place}, utterance {number}"
                for frame in convert_checked(
                    list[_ServiceFrame], said.frames, f"{where}: 'frames'"
                ):
                    if frame.state is not None:
                        before = states.get(frame.service, {})
                        states[frame.service] = _values(frame.state.slot_values, before)
                label = {
                    f"{service}-{slot}": value
                    for service, values in states.items()
                    for slot, value in values.items()
                }
                state = as_state(label, where, how.normalisation)
                turns.append(Turn(len(turns), system, said.utterance, state))
                system = ""
            dialogue = Dialogue(entry.dialogue_id, tuple(turns))
            yield dialogue if tools is None else _with_calls(dialogue, entry, place, tools)

    def phrases(self, how: ReadOptions) -> Mapping[str, str]:
        """Return the names of the slots in the schema, if the source has a schema."""
        return schema_phrases(how.schemas[0], how.normalisation) if how.schemas else {}


@lru_cache(maxsize=1)  # All files of one load share a schema.
def _tools_of(how: ReadOptions) -> dict[str, tuple[Tool, ...]]:
    if not how.schemas:
        raise DataError(
            f"{how.source}: the schema.json with the tools of SGD's dialogues is missing: give the "
            "folder or zip of the split, which contains both"
        )
    return schema_tools(how.schemas[0])


def _with_calls(
    dialogue: Dialogue, entry: _Conversation, place: str, tools: Mapping[str, tuple[Tool, ...]]
) -> Dialogue:
    """Add the recorded calls to a dialogue. The states of its turns stay."""
    unknown = next((name for name in entry.services if name not in tools), None)
    if unknown is not None:
        hint = did_you_mean(unknown, tools)
        raise DataError(f"{place}: the service {unknown!r} is not in the schema.{hint}")
    messages: list[Message] = []
    for number, said in enumerate(entry.turns):
        if said.speaker.upper() == "USER":
            messages.append(Message("user", said.utterance))
            continue
        frames = convert_checked(
            list[_ServiceFrame], said.frames, f"{place}, utterance {number}: 'frames'"
        )
        messages += _called(frames, len(messages))
        messages.append(Message("assistant", said.utterance))
    turns, closing = turns_of(messages, place, Oddities())
    if len(turns) != len(dialogue.turns):
        raise DataError(f"{place}: a user utterance is empty; remove it")
    labelled = (
        replace(turn, state=before.state)
        for turn, before in zip(turns, dialogue.turns, strict=True)
    )
    offered = tuple(tool for name in entry.services for tool in tools[name])
    return Dialogue(dialogue.id, tuple(labelled), offered, closing)


def _called(frames: Sequence[_ServiceFrame], first: int) -> list[Message]:
    """Return the message with the calls of a system turn, followed by their results."""
    calls: dict[str, ToolCall] = {}
    results: list[Message] = []
    for number, frame in enumerate(frames, start=first):
        call = frame.service_call
        if call is not None:
            name = tool_name(frame.service, call.method)
            calls[f"call_{number}"] = ToolCall(name, call.parameters)
            content = canonical(frame.service_results)
            results.append(Message("tool", content, answers=f"call_{number}"))
    return [calling(None, calls.values(), calls), *results] if calls else []


def _values(given: Mapping[str, list[str]], before: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for slot, spellings in given.items():
        if spellings:
            old = before.get(slot)
            found[slot] = old if old in spellings else spellings[0]
    return found


class _Intent(msgspec.Struct):
    name: str = ""
    description: str = ""
    required_slots: list[str] = []
    #: In SGD a mapping from each slot to its default value.
    optional_slots: Any = ()
    #: Whether the intent changes something, such as a booking. Otherwise it only looks things up.
    is_transactional: bool = True


class _SchemaSlot(msgspec.Struct):
    name: str
    description: str = ""
    is_categorical: bool = False
    possible_values: list[Any] = []


class _SchemaService(msgspec.Struct):
    slots: list[_SchemaSlot]
    service_name: str = ""
    description: str = ""
    intents: list[_Intent] = []


#: Names of SGD's services end in a number. MultiWOZ 2.2 has domains, with full names of slots.
_NUMBERED: Final = re.compile(r"\w+_\d+")


def schema_values(file: SourceFile) -> Iterator[tuple[str, list[Any]]]:
    """Yield the slots of a schema with their listed values.

    For SGD these are only the slots of intents, because users fill no others. They are named
    ``service-slot``. Values of open slots are omitted, because SGD lists only a sample.
    """
    for service in convert_checked(list[_SchemaService], file.json(), file.place):
        of_sgd = _NUMBERED.fullmatch(service.service_name) is not None
        taken = {
            slot
            for intent in service.intents
            for slot in (*intent.required_slots, *intent.optional_slots)
        }
        for slot in service.slots:
            if not of_sgd:
                yield slot.name, slot.possible_values
            elif slot.name in taken or not service.intents:
                values = slot.possible_values if slot.is_categorical else []
                yield f"{service.service_name}-{slot.name}", values


def schema_phrases(file: SourceFile, normalisation: str) -> dict[str, str]:
    """Return ordinary words for the slots of a schema: their names, written with blanks.

    Boolean slots are omitted, because nobody mentions their values by name.
    """
    found = {}
    for slot, values in schema_values(file):
        name = normalise_slot(slot, normalisation)
        if name is not None and {str(value).lower() for value in values} != {"true", "false"}:
            found[name] = slot.partition("-")[2].replace("_", " ")
    return dict(sorted(found.items()))


def schema_tools(file: SourceFile) -> dict[str, tuple[Tool, ...]]:
    """Return the intents of each SGD service as tools, in the order of the schema.

    A tool is named ``service_intent``, because two services of a dialogue may have an intent with
    the same name. Its arguments are texts, as in the recorded calls.
    """
    services = convert_checked(list[_SchemaService], file.json(), file.place)
    return {
        service.service_name: tuple(
            _tool(service, intent, file.place) for intent in service.intents
        )
        for service in services
    }


def tool_name(service: str, intent: str) -> str:
    """Return the name of the tool for an intent."""
    return f"{service}_{intent}"


def _tool(service: _SchemaService, intent: _Intent, place: str) -> Tool:
    slots = {slot.name: slot for slot in service.slots}
    optional = convert_checked(
        dict[str, str],
        intent.optional_slots,
        f"{place}: {service.service_name}, {intent.name}: optional_slots",
    )
    properties: dict[str, dict[str, Any]] = {}
    for name in (*intent.required_slots, *optional):
        if name not in slots:
            raise DataError(
                f"{place}: the intent {intent.name} of {service.service_name} has the slot "
                f"{name!r}, which is not a slot of the service"
            )
        slot = slots[name]
        properties[name] = {"type": "string", "description": slot.description}
        if slot.is_categorical:
            properties[name]["enum"] = slot.possible_values
        if optional.get(name, "dontcare") != "dontcare":
            properties[name]["default"] = optional[name]
    parameters = {
        "type": "object",
        "properties": properties,
        "required": intent.required_slots,
    }
    described = f"{intent.description} ({service.description})"
    name = tool_name(service.service_name, intent.name)
    return Tool(name, described, canonical(parameters), not intent.is_transactional)


def paraphrase(original: SourceFile, other: SourceFile, name: str) -> ToolParaphrase:
    """Return the tools of a schema in the words of another schema, matched by position.

    Raises:
        DataError: If the numbers of services differ, or a service has other intents or slots. The
            message names the first such service.
    """
    ours = convert_checked(list[_SchemaService], original.json(), original.place)
    theirs = convert_checked(list[_SchemaService], other.json(), other.place)
    if len(ours) != len(theirs):
        raise DataError(
            f"{other.place} is not a paraphrase of {original.place}: it has "
            f"{format_count(len(theirs), 'service')} instead of {len(ours)}"
        )
    tools: dict[str, Tool] = {}
    arguments: dict[str, dict[str, str]] = {}
    for service, twin in zip(ours, theirs, strict=True):
        place = (
            f"{other.place}: the service {twin.service_name} is not a paraphrase of "
            f"{service.service_name}:"
        )
        if len(service.slots) != len(twin.slots) or len(service.intents) != len(twin.intents):
            raise DataError(f"{place} it has another number of slots or intents")
        slots = {a.name: b.name for a, b in zip(service.slots, twin.slots, strict=True)}
        for intent, new in zip(service.intents, twin.intents, strict=True):
            taken = (*intent.required_slots, *intent.optional_slots)
            if [slots.get(each) for each in taken] != [*new.required_slots, *new.optional_slots]:
                raise DataError(f"{place} its intent {new.name} has other slots than {intent.name}")
            old = tool_name(service.service_name, intent.name)
            tools[old] = _tool(twin, new, other.place)
            arguments[old] = {each: slots[each] for each in taken}
    return ToolParaphrase(name, tools, arguments)
