"""Readers for recordings of frameworks and benchmarks, described by their keys.

A `Form` says which keys an entry has, and where its messages, tools and prompt are.
`conversion.chat_form` converts the messages. If the entries of a form have no messages, a function
of the form makes messages from them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from pytest_dstfuzz.dialogue.calls import canonical
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.dialogue.messages import Json, text_of_content, without_text
from pytest_dstfuzz.dialogue.readers.conversion import (
    chat_form,
    is_foreign,
    json_types,
    role_of,
)
from pytest_dstfuzz.dialogue.readers.messages import (
    ROLES,
    Entry,
    NoTurnsError,
    dialogue_of,
    values_of,
)
from pytest_dstfuzz.dialogue.readers.source import (
    Oddities,
    Reader,
    ReadOptions,
    SourceFile,
    begun_json,
    begun_object,
    json_start,
    moment_of,
    shown_keys,
)
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import parse_json, shorten_value

#: Keys for the id of a dialogue.
_IDS: Final = (
    *("id", "dialogue_id", "conversation_id", "sessionId", "session_id", "traceId", "trace_id"),
    *("eval_id", "evalId", "custom_id", "task_id", "uuid"),
)
#: Errors of `ast` for a text that is no Python, or is nested too deeply.
_NOT_PYTHON: Final = (SyntaxError, TypeError, ValueError, MemoryError, RecursionError)
#: Keys for the trace of a request.
_TRACES: Final = ("traceId", "trace_id")
#: Keys for the system prompt and the tools of an entry, or of a request in it.
_PROMPTS: Final = (
    *("system", "instructions", "system_instruction", "systemInstruction", "system_prompt"),
    "config.system_instruction",
)
_TOOLS: Final = ("tools", "toolConfig.tools", "functions", "function", "config.tools")


@dataclass(frozen=True)
class Form(Reader):
    """A form of recordings."""

    name: str = field(kw_only=True)
    about: str = field(kw_only=True)
    keys: tuple[tuple[str, ...], ...] = field(kw_only=True)
    #: Paths of messages in an entry, in order. ``a.b`` is the key ``b`` of the object at ``a``.
    messages: tuple[str, ...] = ()
    #: The path of the entries, if the file is an object that has them.
    entries: str = ""
    #: Returns the entries of a value, each with ``messages`` and maybe ``system`` and ``tools``.
    #: The second argument is the result of ``beside``.
    convert: Callable[[Any, Any], Iterator[Json]] | None = None
    #: Returns data of another file that belongs to this file.
    beside: Callable[[SourceFile], Any] | None = None
    #: Whether a list is a single entry. Otherwise it is a list of entries.
    whole: bool = False
    #: Whether the entries are calls of a model. An entry is left out if another entry continues it,
    #: or if it is recorded twice.
    growing: bool = False

    def detect(self, file: SourceFile, head: str) -> float:
        """Recognise a file by the keys of its first object."""
        found = begun_object(head) if json_start(file, head) else {}
        return 0.9 if any(found.keys() >= {*keys} for keys in self.keys) else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:
        """Yield the dialogues of a file. Note data that looks faulty."""
        odd = Oddities()
        used: Counter[str] = Counter()
        mute = ""
        entries = self._entries(file)
        if self.growing:
            repeated = _Repeated(self._entries(file))
            entries = _joined(repeated.without(entries, odd), odd)
        for entry in entries:
            dialogue = self._dialogue(entry, used, how, odd)
            if dialogue is None:
                told = f"no message of the user in {shown_keys(entry.raw['given'])}"
                mute = mute or f"{entry.place}: {told}; expected {self.about}"
                odd.add(f"Entries are left out: {told}", entry.place)
            else:
                yield dialogue
        if mute and not used:
            raise DataError(mute)
        if self.growing and not used:
            how.tell(
                f"All entries of {file.place} are left out: none of them is a request to a model. "
                "Calls of tools, retrievers, parsers and the like are no conversations."
            )
        odd.tell(how.tell)

    def _dialogue(
        self, entry: Entry, used: Counter[str], how: ReadOptions, odd: Oddities
    ) -> Dialogue | None:
        """Return the dialogue of an entry, or ``None`` if it has no words of the user."""
        messages = _messages(entry, odd)
        if not any(isinstance(one, dict) and one.get("role") == "user" for one in messages):
            return None
        if prompt := text_of_content(_prompt_parts(entry.raw.get("system"))):
            messages.insert(0, {"role": "system", "content": prompt})
        again = f"-{used[entry.name] + 1}" if used[entry.name] else ""
        made = {
            "messages": messages,
            "tools": entry.raw.get("tools"),
            "given": entry.raw["given"],
        }
        plain = Entry(made, entry.place, f"{entry.name}{again}")
        if unread := entry.raw.get("unread"):
            odd.add(f"Answers are not read: {shown_keys(unread)} without a known text", entry.place)
        if isinstance(at(entry.raw["given"], "states"), list):
            odd.add("Entries have 'states', which this layout does not have", entry.place)
        try:
            found = dialogue_of(plain, how.normalisation, odd)
        except NoTurnsError:
            return None
        used[entry.name] += 1
        return found

    def _entries(self, file: SourceFile) -> Iterator[Entry]:
        """Yield the entries of a file. Their key ``given`` has the original value."""
        beside = None if self.beside is None else self.beside(file)
        whole = [(file.json(), file.place, file.stem)] if self.whole else values_of(file)
        for value, place, name in whole:
            inside = at(value, self.entries) if self.entries else None
            # A list of traces has only the ids of their observations. Some traces have none.
            texts = isinstance(inside, list) and all(isinstance(one, str) for one in inside)
            ids = bool(inside) and texts
            lone = self.growing and inside == []
            listed = inside if isinstance(inside, list) and not ids and not lone else [value]
            for number, raw in enumerate(listed):
                where = f"{place}: {self.entries}[{number}]" if listed is inside else place
                own = f"{name}-{number + 1}" if listed is inside else name
                if not isinstance(raw, dict | list):
                    raise DataError(f"{where}: {shorten_value(raw)}; expected {self.about}")
                for made in self._all_made(raw, beside, where):
                    key = next((key for key in _IDS if isinstance(made.get(key), str | int)), None)
                    name_of = own if key is None else str(made[key])
                    session, time = _session_of(raw) or _session_of(value), _time_of(raw)
                    more = {"given": raw, "session": session, "time": time}
                    yield Entry({**made, **more}, where, name_of or own)

    def _all_made(self, raw: Any, beside: Any, where: str) -> list[Json]:
        try:
            made = list(self._made(raw, beside))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            made = [{"messages": None}]  # The keys have the form, but the values do not.
        if all(isinstance(one["messages"], list) for one in made):
            return made
        raise DataError(
            f"{where}: {shown_keys(raw)}, but not with values of the layout {self.name!r}; "
            f"expected {self.about}"
        )

    def _made(self, raw: Any, beside: Any) -> Iterator[Json]:
        if self.convert is not None:
            yield from self.convert(raw, beside)
        elif isinstance(raw, dict):
            listed = [one for path in self.messages for one in _listed(at(raw, path))]
            prompt, tools = _first(raw, _PROMPTS), _first(raw, _TOOLS)
            yield {**raw, "messages": listed, "system": prompt, "tools": tools}


def at(value: object, path: str) -> Any:
    """Return the value at a path of keys, or ``None`` if a key is missing."""
    for key in path.split(".") if path else ():
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _messages(entry: Entry, odd: Oddities) -> list[Any]:
    """Return the messages of an entry in OpenAI's form, without data of the framework."""
    found = chat_form(entry.raw["messages"], f"{entry.place}: messages", odd)
    return [_only_known(one) for one in found]


class _Repeated:
    """The requests of a log that others of the session repeat, compared by their content."""

    def __init__(self, entries: Iterator[Entry]) -> None:
        found = sorted({self._key(entry) for entry in entries})
        # In this order, messages stand directly before messages that continue them.
        pairs = pairwise(found)
        self._begun = {key for key, after in pairs if key[1:] and after[: len(key)] == key}
        self._seen: set[tuple[str, tuple[str, ...]]] = set()

    def without(self, entries: Iterable[Entry], odd: Oddities) -> Iterator[Entry]:
        """Yield the requests that no other request repeats. Note the others."""
        for entry in entries:
            if why := self._reason(entry):
                odd.add(f"Requests are left out if {why}", entry.place)
            else:
                yield entry

    def _reason(self, entry: Entry) -> str:
        """Return why a request is left out, or ``""``."""
        key = self._key(entry)
        if key in self._begun:
            return "a later request continues them"
        trace = str(_first(entry.raw["given"], _TRACES) or "")
        if trace and (trace, key) in self._seen:
            return "another instrument recorded them, too"
        self._seen.add((trace, key))
        return ""

    @staticmethod
    def _key(entry: Entry) -> tuple[str, ...]:
        parts = (part for one in _messages(entry, Oddities()) for part in _parts_of(one))
        return (entry.raw["session"] or "", *parts)


def _joined(entries: Iterable[Entry], odd: Oddities) -> Iterator[Entry]:
    """Yield the entries, those of the same session as one entry in the order of their times."""
    sessions: dict[str | int, list[Entry]] = {}
    for number, entry in enumerate(entries):
        session = entry.raw.get("session") if _count_turns(entry) else None
        sessions.setdefault(number if session is None else session, []).append(entry)
    for name, found in sessions.items():
        if len(found) == 1:
            yield from found
        elif why := _why_apart(found):
            odd.add(f"Requests of the same session are separate dialogues: {why}", found[0].place)
            yield from found
        else:
            odd.add("Requests of the same session are joined to one dialogue", found[0].place)
            found.sort(key=lambda one: one.raw["time"])
            first, *rest = found
            # Each request repeats the system prompt.
            later = [said for one in rest for said in one.raw["messages"] if not _is_prompt(said)]
            tools = next((tools for one in found if (tools := one.raw.get("tools"))), None)
            made = {"messages": [*first.raw["messages"], *later], "tools": tools}
            yield Entry({**first.raw, **made}, first.place, str(name))


def _is_prompt(message: object) -> bool:
    return isinstance(message, Mapping) and role_of(message) in ("system", "developer")


def _count_turns(entry: Entry) -> int:
    return sum(at(one, "role") == "user" for one in _messages(entry, Oddities()))


def _why_apart(found: list[Entry]) -> str:
    """Return why the entries of a session are no consecutive turns, or ``""``."""
    if any(one.raw["time"] is None for one in found):
        return "some of them have no time"
    if any(_count_turns(one) > 1 for one in found):
        return "some of them have several turns of the user"
    traces = [trace for one in found if (trace := _first(one.raw["given"], _TRACES)) is not None]
    return "several of them are of the same trace" if len(set(traces)) < len(traces) else ""


def _session_of(raw: object) -> str | None:
    """Return the session of a trace or a run."""
    # The `session_id` of a LangSmith run is its project.
    paths = _THREADS if at(raw, "run_type") is not None else _SESSIONS
    found = _first(raw, paths) if isinstance(raw, Mapping) else None
    return str(found) if isinstance(found, str | int) and found != "" else None


#: Paths of the session of a trace, and of the thread of a LangSmith run.
_SESSIONS: Final = ("sessionId", "session_id", "conversation_id", "thread_id", "trace.sessionId")
_THREADS: Final = tuple(
    f"{path}{key}"
    for path in ("", "extra.metadata.", "metadata.")
    for key in ("thread_id", "session_id", "conversation_id")
    if path or key == "thread_id"
)


def _time_of(raw: object) -> float | None:
    """Return the time of a trace or a run in seconds, or ``None`` if it has none."""
    found = _first(raw, _TIMES) if isinstance(raw, Mapping) else None
    return moment_of(found)


_TIMES: Final = ("timestamp", "startTime", "start_time", "trace.timestamp", "created_at")


def _parts_of(message: Any) -> Iterator[str]:
    """Yield the content and each call of a message, without ids.

    Frameworks may record the words and the calls of an answer as one or as several messages.
    """
    if not isinstance(message, Mapping):
        yield canonical(message)
        return
    content = message.get("content")
    text, beside = text_of_content(content), without_text(content)
    if text or beside or message.get("role") != "assistant":
        yield canonical([message.get("role"), text, beside])
    for call in _listed(message.get("tool_calls")):
        made = at(call, "function")
        yield canonical([at(made, "name"), _parsed(at(made, "arguments"))])


def _first(raw: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    return next((found for path in paths if (found := at(raw, path)) is not None), None)


#: The begin of an utterance in a text with a whole conversation.
_SPEAKER: Final = re.compile(
    r"^(system|developer|human|user|assistant|ai|tool|function): ", re.MULTILINE | re.IGNORECASE
)


def _listed(value: object, role: str = "user") -> list[Any]:
    """Return a list of messages, from a list, a single message, or the text of a message."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]  # LangChain's models without chat have a list of prompts.
    if isinstance(value, str):
        begin, *parts = _SPEAKER.split(value)
        if role == "user" and not begin and {"human", "user"} & {*map(str.lower, parts[::2])}:
            said = zip(parts[::2], parts[1::2], strict=True)
            return [one for who, text in said for one in _spoken(who.lower(), text.strip())]
        return [{"role": role, "content": value}]
    if isinstance(value, list) and value and isinstance(value[0], list):
        return value[0]  # LangChain's runs have a list of prompts.
    return value if isinstance(value, list) else [] if value is None else [value]


def _spoken(who: str, text: str) -> Iterator[Json]:
    """Yield an utterance, and the calls that LangChain writes after it."""
    words, mark, rest = text.rpartition("[{'name': ")
    try:
        calls = ast.literal_eval(mark + rest) if mark and who == "ai" else []
    except _NOT_PYTHON:
        calls = []
    words = words.strip() if calls else text
    if words or not calls:
        yield {"from": who, "value": words}
    for one in calls:
        yield _call(one.get("name"), one.get("args"), one.get("id"))


def _prompt_parts(prompt: Any) -> list[Any]:
    """Return the texts of a system prompt: a text, a list of parts, or Gemini's object."""
    found = prompt.get("parts") if isinstance(prompt, Mapping) else prompt
    listed = found if isinstance(found, list) else [found]
    return [
        one["content"] if isinstance(one, Mapping) and "content" in one else one for one in listed
    ]


_KNOWN: Final = ("role", "content", "tool_calls", "tool_call_id", "name", "refusal")


def _only_known(message: Any) -> Any:
    """Return a message without the framework's extra data, such as time and model."""
    if not isinstance(message, dict):
        return message
    return {key: value for key, value in message.items() if key in (*_KNOWN, "function_call")}


def _call(name: object, arguments: object, known: object = None) -> Json:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": known}


def _result(output: object, known: object = None) -> Json:
    return {"type": "function_call_output", "output": output, "call_id": known}


def _says(role: str, text: object) -> Json:
    return {"role": role, "content": text if isinstance(text, str) else ""}


def _alpaca(raw: Json, beside: Any) -> Iterator[Json]:  # noqa: ARG001 - as the others
    asked = "\n".join(filter(None, (raw.get("instruction"), raw.get("input"))))
    answers = raw["output"] if isinstance(raw["output"], list) else [raw["output"]]
    said = [*_pairs(raw), _says("user", asked), *(_says("assistant", one) for one in answers[:1])]
    yield {**raw, "messages": said}


def _pairs(raw: Json) -> list[Json]:
    """Return earlier questions and answers, which Alpaca and ms-swift have in pairs."""
    return [
        _says(role, text)
        for pair in raw.get("history") or ()
        for role, text in zip(("user", "assistant"), pair, strict=False)
    ]


_GLAIVE: Final = re.compile(r"^[^\S\n]*(USER|ASSISTANT|A|FUNCTION RESPONSE):\s*", re.MULTILINE)
_GLAIVE_ROLES: Final = {"USER": "user", "FUNCTION RESPONSE": "tool"}


def _glaive(raw: Json, beside: Any) -> Iterator[Json]:  # noqa: ARG001 - as the others
    _, *parts = _GLAIVE.split(raw["chat"])
    said = [
        {"from": _GLAIVE_ROLES.get(who, "assistant"), "value": text.strip()}
        for who, text in zip(parts[::2], parts[1::2], strict=True)
    ]
    said = [
        one
        if "<functioncall>" in one["value"]
        else {**one, "value": one["value"].replace("<|endoftext|>", "").strip()}
        for one in said
    ]
    prompt = raw["system"].removeprefix("SYSTEM:").strip()
    yield {"messages": said, "system": prompt, "tools": [*_objects(prompt)]}


def _objects(text: str) -> Iterator[Json]:
    """Yield the functions in a text that are JSON objects between other words."""
    place = text.find("{")
    while place >= 0:
        found = begun_json(text[place:])
        if isinstance(found, dict) and "name" in found and "parameters" in found:
            yield found
        place = text.find("\n{", place)
        place += place >= 0


def _asks_models(file: SourceFile) -> bool:
    """Return whether a log has requests to models among observations or runs of other kinds."""
    for value, _, _ in values_of(file):
        for one in _listed(at(value, "observations") or value):
            if at(one, "type") in _OF_MODELS or at(one, "run_type") in _OF_MODELS:
                return True
    return False


def _exchange(raw: Json, beside: bool) -> Iterator[Json]:
    """Yield a request to a model and its answer as one conversation.

    ``beside`` says whether the log marks the requests to models. Then observations of other kinds
    repeat the messages of these requests.
    """
    kind = raw.get("type") if "traceId" in raw else raw.get("run_type")
    # A trace has no kind. It is here only if none of its observations are.
    if kind in _NO_REQUESTS or (beside and kind is not None and kind not in _OF_MODELS):
        return
    if isinstance(raw.get("trace"), Mapping):
        raw = raw["trace"]
    given = _first(raw, _REQUESTS)
    answered = _first(raw, _ANSWERS)
    if "traceId" in raw or "observations" in raw:  # Langfuse may store JSON as a text.
        given, answered = _parsed(given, '[{"'), _parsed(answered, '[{"')
    request = given if isinstance(given, Mapping) else {}
    asked = [*_pairs(raw), *_asked(given if given is not None else raw.get("messages"))]
    asked, own = _without_tools(asked)
    said = _answered(answered, asked)
    sources = [request, {"tools": own or None}, answered, raw]
    sources = [one for one in sources if isinstance(one, Mapping)]
    found = {key: value for key, value in raw.items() if key in _IDS}
    repeats = isinstance(answered, Mapping) and answered.get("messages")
    yield {
        **found,
        "messages": [*asked, *said],
        "unread": isinstance(answered, Mapping) and not said and not repeats and answered,
        "system": next((p for one in sources if (p := _first(one, _PROMPTS)) is not None), None),
        "tools": next((t for one in sources if (t := _first(one, _TOOLS)) is not None), None),
    }


#: Paths of a request in an entry with its answer.
_REQUESTS: Final = ("request.body", "request", "body", "params", "inputs", "input", "query")
#: Types of Langfuse's observations and LangSmith's runs that are requests to a model.
_OF_MODELS: Final = ("GENERATION", "llm")
#: Types of observations and runs that are no conversations.
_NO_REQUESTS: Final = (
    *("TOOL", "EVENT", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"),
    *("tool", "retriever", "embedding", "prompt", "parser"),
)
#: Paths of a model's answer in an entry with its request.
_ANSWERS: Final = (
    *("response.body", "response", "outputs", "output", "expectedOutput", "expected_output"),
    *("completion", "preferred_output", "chosen_messages"),
)
#: Keys for the question in a request.
_QUESTIONS: Final = (
    *("messages", "input", "contents", "prompt", "prompts", "question", "query", "args"),
    *("message", "text"),
)
#: Keys for the calls beside the answer in an object without a role.
_CALLS: Final = ("tool_calls", "function_call", "toolCalls")
#: Keys for the answer in an object without a whole response.
_SAID: Final = (
    *("messages", "output.message", "output", "message", "content", "answer", "text"),
    *("reply", "response", "generated_text", "output_text", "generation", "result"),
)


def _without_tools(messages: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return messages and tools. Langfuse's handler of LangChain mixes them in one list."""
    found: list[Any] = []
    tools: list[Any] = []
    names: set[object] = set()
    for one in messages:
        role = at(one, "role")
        if role == "tool" and isinstance(at(one, "content.function"), Mapping):
            tools.append(one["content"])
            continue
        names |= {str(at(call, "function.name")) for call in _listed(at(one, "tool_calls"))}
        # In JavaScript, the role of a result is the name of its tool.
        found.append({**one, "role": "tool"} if role in names else one)
    return found, tools


def _asked(given: object) -> list[Any]:
    """Return the messages of a request."""
    if isinstance(given, Mapping) and not _is_message(given):
        found = _first(given, _QUESTIONS)
        return _listed(_only_text(given) if found is None else found)
    return _listed(given)


def _only_text(given: Mapping[str, Any]) -> str | None:
    """Return the text of an object that has nothing else, such as ``{"utterance": "hi"}``."""
    for key, value in given.items() if len(given) == 1 else ():
        # Nobody says who said the content of a message without a role.
        if isinstance(value, str) and key not in (*_IDS, "content"):
            return value
    return None


def _answered(given: object, asked: list[Any]) -> list[Any]:
    """Return the messages of an answer: a whole response object, messages, or a text."""
    if not isinstance(given, Mapping) or _is_message(given):
        said = _listed(given, "assistant")
    elif isinstance(choices := given.get("choices") or given.get("candidates"), list):
        first = choices[0] if choices and isinstance(choices[0], Mapping) else {}
        found = first.get("message") or first.get("content") or first.get("text")
        said = _listed(found, "assistant")
    elif isinstance(runs := given.get("generations"), list):
        inner = _listed(runs)[:1]
        said = [one.get("message") or _says("assistant", one.get("text")) for one in inner]
    else:
        found = _first(given, _SAID)
        if isinstance(found, Mapping) and not _is_message(found):
            inner = _first(found, _SAID)
            found = inner if isinstance(inner, str) else None
        calls = {key: given[key] for key in _CALLS if given.get(key)}
        if calls and (found is None or isinstance(found, str)):
            found = {"role": "assistant", "content": found, **calls}
        said = _listed(_only_text(given) if found is None else found, "assistant")
    # A graph's state repeats the question.
    return said[len(asked) :] if asked and said[: len(asked)] == asked else said


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and (is_foreign(value) or value.get("role") in ROLES)


def _spans(raw: Any, beside: Any) -> Iterator[Json]:  # noqa: ARG001 - as the others
    """Yield the conversations in OpenTelemetry spans, plain or in an OTLP export."""
    for span in _each_span(raw):
        attributes = span.get("attributes")
        if isinstance(attributes, list):
            attributes = {one.get("key"): _otlp_value(one.get("value")) for one in attributes}
        found = {
            key: _parsed(value)
            for key, value in (attributes if isinstance(attributes, Mapping) else {}).items()
        }
        given = found.get("gen_ai.input.messages")
        if given is None:
            continue
        known = found.get("gen_ai.conversation.id") or _first(span, _IDS)
        yield {
            "id": known,
            "messages": [*_listed(given), *_listed(found.get("gen_ai.output.messages"))],
            "system": found.get("gen_ai.system_instructions"),
            "tools": found.get("gen_ai.tool.definitions"),
        }


def _each_span(raw: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(raw, list):
        for one in raw:
            yield from _each_span(one)
    elif isinstance(raw, Mapping):
        inner = [raw[key] for key in ("resourceSpans", "scopeSpans", "spans") if key in raw]
        if inner:
            yield from _each_span(inner)
        else:
            yield raw


def _otlp_value(value: Any) -> Any:
    """Return a value of OTLP's JSON, such as ``{"stringValue": "a"}``."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(listed := at(value, "arrayValue.values"), list):
        return [_otlp_value(one) for one in listed]
    if isinstance(listed := at(value, "kvlistValue.values"), list):
        return {one.get("key"): _otlp_value(one.get("value")) for one in listed}
    return next(iter(value.values()), None)


def _parsed(value: Any, starts: str = "[{") -> Any:
    """Return the JSON in a text that begins with one of some letters, or the value itself."""
    if isinstance(value, str) and value[:1] in starts:
        try:
            return parse_json(value)
        except DataError:
            return value
    return value


def _possible_answers(file: SourceFile) -> Mapping[str, Any]:
    """Return the answers of BFCL by id, from the file with this name in ``possible_answer``."""
    folder = file.path.parent
    paths = [one / "possible_answer" / file.path.name for one in (folder, folder.parent)]
    path = next((one for one in paths if one.is_file()), None)
    if file.member is not None or path is None:
        return {}
    answers = values_of(SourceFile(path.name, path))
    return {str(one.get("id")): one.get("ground_truth") for one, _, _ in answers}


def _bfcl(raw: Json, beside: Mapping[str, Any]) -> Iterator[Json]:
    """Yield a question of BFCL, with the calls of its answer if one is recorded."""
    truth = beside.get(str(raw.get("id")))
    asked = raw["question"]
    asked = [asked] if isinstance(asked, str) else asked
    turns = [_listed([one] if isinstance(one, Mapping) else one) for one in asked]
    nested = isinstance(truth, list) and any(isinstance(one, list) for one in truth)
    of_turns: list[Any] = truth if nested and isinstance(truth, list) else [truth]
    messages: list[Any] = []
    for number, said in enumerate(turns):
        messages += said
        calls = of_turns[number] if number < len(of_turns) else None
        calls = calls if isinstance(calls, list) else None
        if said:  # Otherwise the turn only adds a tool.
            messages += [call for one in calls or () for call in _bfcl_calls(one)]
        if said and calls == []:
            messages.append(_says("assistant", ""))
    given = raw.get("function")
    tools = json_types(given if isinstance(given, list) else [given]) if given else []
    yield {"id": raw.get("id"), "messages": messages, "tools": tools or None}


def _bfcl_calls(one: Any) -> Iterator[Json]:
    """Yield the calls of an answer. Arguments may have alternatives, or calls may be Python."""
    if isinstance(one, str):
        found = _python_call(one)
        if found is not None:
            yield _call(*found)
        return
    for name, arguments in one.items():
        yield _call(name, _first_values(arguments))


def _first_values(arguments: Mapping[str, Any]) -> Json:
    """Return the first value of each argument. Omit an argument if its first value is empty."""
    return {
        name: _chosen(values[0])
        for name, values in arguments.items()
        if isinstance(values, list) and values and values[0] != ""
    }


def _chosen(value: Any) -> Any:
    if isinstance(value, list):
        return [_chosen(one) for one in value]
    return _first_values(value) if isinstance(value, Mapping) else value


#: The begin of a call in Python.
_CALLED: Final = re.compile(r"\s*([A-Za-z_][\w.]*)\(")


def _python_call(text: str) -> tuple[str, object] | None:
    """Return the name and the arguments of a call in Python, or ``None`` for another text.

    If an argument has no name or is no literal, all arguments are one text. A call with such
    arguments is no label.
    """
    called = _CALLED.match(text)
    if called is None:
        return None
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
        if isinstance(parsed, ast.Call) and not parsed.args:
            return called[1], {one.arg: ast.literal_eval(one.value) for one in parsed.keywords}
    except _NOT_PYTHON:
        pass
    return called[1], text


def _tooltalk(raw: Json, beside: Any) -> Iterator[Json]:  # noqa: ARG001 - as the others
    messages: list[Any] = []
    for said in raw["conversation"]:
        for one in said.get("apis") or ():
            messages.append(_call(at(one, "request.api_name"), at(one, "request.parameters")))
            answer = one.get("response")
            messages.append(_result(one.get("exception") if answer is None else answer))
        messages.append(_says(said.get("role"), said.get("text")))
    yield {**raw, "messages": messages}


def _toolbench(raw: Json, beside: Any) -> Iterator[Json]:  # noqa: ARG001 - as the others
    """Yield the last path of an answer, with the query instead of the prompts around it."""
    answer = raw["answer_generation"]
    query = answer["query"]
    for path in (answer.get("train_messages") or ())[-1:]:
        messages = [
            {**one, "content": query} if one["role"] == "user" else one
            for one in path
            if one["role"] != "user" or query in one["content"]
        ]
        yield {"messages": messages, "tools": answer.get("function")}


def _adk(raw: Any, beside: Any) -> Iterator[Json]:
    """Yield the conversation of an evaluation case, a session, or a list in the old form."""
    if isinstance(raw, list) and any("data" in one for one in raw):
        for one in raw:
            yield from _adk({"id": one.get("name"), "conversation": one["data"]}, beside)
        return
    if isinstance(raw, dict) and "evalCases" in raw:
        for one in raw["evalCases"]:
            yield from _adk(one, beside)
        return
    turns = raw if isinstance(raw, list) else raw.get("conversation") or ()
    messages = [
        _by("user" if one.get("author") == "user" else "model", one.get("content"))
        for one in _listed(at(raw, "events"))
    ]
    for turn in turns:
        between = _first(turn, ("intermediate_data", "intermediateData")) or {}
        made = _first(between, ("tool_uses", "toolUses")) or turn.get("expected_tool_use") or ()
        results = _first(between, ("tool_responses", "toolResponses")) or ()
        asked = _first(turn, ("user_content", "userContent"))
        messages.append(_by("user", asked) or _says("user", turn.get("query")))
        messages += [
            _call(_first(one, ("name", "tool_name")), _first(one, _ADK_ARGUMENTS)) for one in made
        ]
        messages += [_result(one.get("response")) for one in results]
        events = _first(between, ("invocation_events", "invocationEvents"))
        messages += [_by("model", one.get("content")) for one in _listed(events)]
        last = _first(turn, ("final_response", "finalResponse", "reference"))
        messages += _listed(_by("model", last), "assistant")
    known = {} if isinstance(raw, list) else {key: raw[key] for key in _IDS if key in raw}
    yield {**known, "messages": [one for one in messages if one]}


_ADK_ARGUMENTS: Final = ("args", "tool_input", "tool_args")


def _by(role: str, content: Any) -> Any:
    """Return a content with a role, if it has none."""
    if not isinstance(content, Mapping):
        return content
    return {**content, "role": content.get("role") or role}


#: A word that a simulated user sends to its own program.
_SIGNAL: Final = re.compile(r"(?:(?<!\s)\s+)?###[A-Z_-]+###\s*")


def _tau(raw: Json, beside: Any) -> Iterator[Json]:  # noqa: ARG001 - as the others
    if "tasks" in raw and "traj" not in raw and "messages" not in raw:
        return  # A summary. The simulations are files in a folder beside it.
    listed = raw["traj"] if raw.get("traj") is not None else raw["messages"]
    spoken = (_without_signal(one) for one in listed)
    yield {**raw, "messages": [one for one in spoken if one is not None]}


def _without_signal(message: Json) -> Json | None:
    """Return a message without signals of a simulated user, or ``None`` if nothing is left."""
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str):
        return message
    said = _SIGNAL.sub(" ", content).strip()
    return {**message, "content": said} if said or not content.strip() else None


def _inspect(raw: Any, beside: Any) -> Iterator[Json]:  # noqa: ARG001 - as the others
    """Yield the messages of an inspect_ai sample. Long texts are in its attachments."""
    if not isinstance(raw, dict) or not raw.keys() & {"messages", "epoch"}:
        return  # The header of a log.
    attached = raw.get("attachments")
    attached = attached if isinstance(attached, dict) else {}
    asked = (one for one in _listed(raw.get("events")) if at(one, "event") == "model")
    tools = next((one.get("tools") for one in asked), None)
    again = f"-{raw['epoch']}" if raw.get("epoch", 1) != 1 else ""
    found = {
        "id": f"{raw.get('id')}{again}",
        "messages": raw.get("messages", []),
        "tools": tools or None,
    }
    yield _filled(found, attached)


def _filled(value: Any, attached: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, attached) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(one, attached) for one in value]
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    return value


_ATTACHMENT: Final = "attachment://"

#: The forms, in order of preference.
FORMS: Final = (
    Form(
        name="sharegpt",
        about='ShareGPT and LLaMA-Factory, {"conversations": [{"from": "human", "value": "..."}]}',
        keys=(("conversations",), ("chosen_messages",)),
        messages=("conversations", "chosen", "chosen_messages"),
    ),
    Form(
        name="alpaca",
        about='Alpaca, {"instruction": "...", "output": "..."}',
        keys=(("instruction", "output"),),
        convert=_alpaca,
    ),
    Form(
        name="glaive",
        about='Glaive, {"system": "...", "chat": "USER: ..."}',
        keys=(("system", "chat"),),
        convert=_glaive,
    ),
    Form(
        name="tau",
        about='runs of tau-bench and tau2-bench, with "traj" or "simulations"',
        keys=(
            ("traj",),
            ("tasks", "simulations"),
            ("info", "tasks"),
            ("task_id", "reward", "info"),
            ("task_id", "termination_reason"),
        ),
        entries="simulations",
        convert=_tau,
    ),
    Form(
        name="bfcl",
        about='BFCL, {"question": [[{"role": "user", "content": "..."}]], "function": [...]}',
        keys=(("question", "function"), ("question", "involved_classes")),
        convert=_bfcl,
        beside=_possible_answers,
    ),
    Form(
        name="tooltalk",
        about='ToolTalk, {"conversation": [{"role": "user", "text": "..."}]}',
        keys=(("conversation", "apis_used"), ("conversation", "conversation_id")),
        convert=_tooltalk,
    ),
    Form(
        name="toolbench",
        about='answers of ToolBench, with "answer_generation" and "tree"',
        keys=(("answer_generation", "tree"), ("win", "tree")),
        convert=_toolbench,
    ),
    Form(
        name="adk",
        about='sets and sessions of Google ADK, with "eval_cases" or "events"',
        keys=(
            *(("eval_cases",), ("evalCases",), ("eval_id", "conversation")),
            *(("query", "reference"), ("query", "expected_tool_use")),
            *(("data", "initial_session"), ("data", "initial_state")),
            *(("app_name", "events"), ("appName", "events"), ("past_events", "events")),
        ),
        entries="eval_cases",
        convert=_adk,
        whole=True,
    ),
    Form(
        name="inspect",
        about='logs of inspect_ai, .eval or JSON with "eval" and "samples"',
        keys=(("eval", "plan"), ("epoch", "messages")),
        entries="samples",
        convert=_inspect,
    ),
    Form(
        name="spans",
        about='spans of OpenTelemetry with "gen_ai.input.messages"',
        keys=(
            *(("resourceSpans",), ("attributes", "context"), ("attributes", "traceId")),
            *(("attributes", "trace_id"), ("attributes", "span_id")),
        ),
        convert=_spans,
        growing=True,
    ),
    Form(
        name="gemini",
        about='Gemini, {"contents": [{"role": "user", "parts": [{"text": "..."}]}]}',
        keys=(("contents",),),
        messages=("contents",),
    ),
    Form(
        name="requests",
        about='requests with their answers, {"request": {...}, "response": {...}} or '
        '{"input": [...], "output": [...]}',
        keys=(
            *(("request", "response"), ("input", "output"), ("inputs", "outputs")),
            *(("messages", "response"), ("messages", "completion"), ("messages", "output")),
            *(("custom_id", "body"), ("custom_id", "response"), ("custom_id", "params")),
            ("prompt", "completion"),
            *(("prompt", "response"), ("input", "expectedOutput"), ("input", "expected_output")),
            *(("input", "preferred_output"), ("object", "choices"), ("object", "output")),
            *(("input", "response"), ("contents", "candidates"), ("query", "response")),
            *(("trace", "observations"), ("run_type", "inputs"), ("traceId", "input")),
        ),
        entries="observations",
        convert=_exchange,
        beside=_asks_models,
        growing=True,
    ),
)
