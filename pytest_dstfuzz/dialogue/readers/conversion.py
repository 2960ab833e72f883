"""Conversion of recorded messages of other APIs and frameworks to OpenAI's form.

All these forms have the same content under different names: a role, texts, calls with arguments,
and results of calls. The tables below list the names. For example, ``human`` is a user,
``functionCall`` is a call, and ``args`` are its arguments. The tables cover the items of OpenAI's
Responses, ShareGPT, LangChain, pydantic-ai, Gemini, Bedrock, spans of OpenTelemetry, inspect_ai and
the tau benchmarks. Anthropic's form has a separate module, which also checks messages.

A message with unknown names stays unchanged, and the reader reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pytest_dstfuzz.dialogue.calls import canonical
from pytest_dstfuzz.dialogue.messages import Json, text_of_content
from pytest_dstfuzz.dialogue.readers.source import Oddities, refuse_misspelt
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.json_data import load_json, parse_json, shorten_value


def _by_name(names: Mapping[str, str]) -> dict[str, str]:
    """Map each name in a value of ``names`` to the key of the value."""
    return {name: key for key, text in names.items() for name in text.split()}


#: Names of a role, in small letters and without "message" -> role in OpenAI's form.
_ROLES: Final = _by_name(
    {
        "user": "user human request",
        "assistant": "assistant ai gpt model bot chatbot response functioncall toolcall",
        "system": "system developer",
        "tool": "tool function observation toolresponse api",
    }
)
#: Keys for the role of a message.
_SPEAKERS: Final = ("role", "from", "type", "kind")
#: Keys for the content of a message.
_CONTENTS: Final = ("content", "value", "text", "parts")
#: Names of a part, in small letters -> its kind.
_KINDS: Final = _by_name(
    {
        "text": "text inputtext outputtext userprompt refusal retryprompt",
        "system": "systemprompt",
        "thinking": "thinking redactedthinking reasoning reasoningcontent",
        "call": "tooluse toolcall functioncall customtoolcall builtintoolcall",
        "result": (
            "toolresult toolcallresponse toolcalloutput functioncalloutput customtoolcalloutput "
            "toolreturn builtintoolreturn functionresponse"
        ),
    }
)
#: Parts without a type have one of these keys.
_WRAPPERS: Final = {
    "functionCall": "call",
    "function_call": "call",
    "toolUse": "call",
    "functionResponse": "result",
    "function_response": "result",
    "toolResult": "result",
    "reasoningContent": "thinking",
}
_NAMES: Final = ("name", "tool_name", "toolName", "api_name", "tool", "function")
_ARGUMENTS: Final = (
    *("arguments", "args", "input", "parameters", "tool_input", "tool_args", "param_dict"),
)
_IDS: Final = ("call_id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "id")
_RESULTS: Final = ("content", "output", "response", "result", "return_value", "value", "text")
_TEXTS: Final = ("text", "content", "value", "refusal")
_NO_LETTER: Final = re.compile(r"[^a-z]")
_MESSAGE: Final = re.compile(r"message(chunk)?$")
#: A call within the text of an assistant, as in files for Hermes, Qwen and Glaive.
#: The beginning and the end of a call in a text. One expression for both would be quadratic.
_CALL_BEGINS: Final = re.compile(
    r"(?:<(?:tool_calls?|function_?calls?)>|\[TOOL_CALLS\])\s*(?=[\[{])"
)
_CALL_ENDS: Final = re.compile(
    r"[\]}]\s*(?:</(?:tool_calls?|function_?calls?)>|<\|endoftext\|>|\Z)"
)
#: Glaive's arguments: JSON in single quotes.
_QUOTED: Final = re.compile(r"'(\{.*\})'", re.DOTALL)
_A_CALL: Final = '{"name": "book", "arguments": {}}'
#: Other names that people give to arguments, for `refuse_misspelt`.
_OTHER_ARGUMENTS: Final = (
    "args params parameters input inputs kwargs payload toolargs toolarguments toolinput "
    "toolparameters functionargs functionarguments"
)
#: Keys that only a call has, but no other object with a name.
_OF_CALLS: Final = ("arguments", "args", "tool_input", "tool_args", "param_dict")
#: Keys of lists of tools, whose schemas are not searched for calls.
_LISTS_OF_TOOLS: Final = frozenset({"tools", "functions", "available_tools", "tool_definitions"})
_DROPPED: Final = "Messages have parts of the type {!r}, which are ignored"


def chat_form(messages: Iterable[Any], place: str, odd: Oddities) -> list[Any]:
    """Convert messages to OpenAI's form. Messages in an unknown form stay unchanged.

    Consecutive messages of the assistant become one if the second has calls, because some forms
    have an item for each call.
    """
    found: list[Any] = []
    own = False
    for number, message in enumerate(messages):
        refuse_misspelt_calls(message, f"{place}[{number}]")
        if not is_foreign(message):
            found.append(message)
            own = False
            continue
        for one in _converted(_unwrapped(message), f"{place}[{number}]", odd):
            if own and one.get("tool_calls") and found[-1]["role"] == "assistant":
                found[-1] = _joined(found[-1], one)
            else:
                found.append(one)
            own = True
    return found


def refuse_misspelt_calls(message: object, place: str) -> None:
    """Refuse a message whose calls would be lost because their key is unknown."""
    if isinstance(message, Mapping) and role_of(message) == "assistant":
        others = "call calls toolcall functioncalls"
        if not message.get("function_call"):
            refuse_misspelt(message, "tool_calls", others, (list, Mapping, str), place)


def is_foreign(message: object) -> bool:
    """Return whether a message has a known form other than OpenAI's."""
    if not isinstance(message, Mapping):
        return False
    message = _unwrapped(message)
    role = role_of(message)
    if role is None:
        return _kind(message) in ("call", "result", "thinking")
    calls = message.get("tool_calls")
    content = message.get("content")
    if role == "assistant" and isinstance(content, str) and _CALL_BEGINS.search(content):
        return True
    if role == "tool" and "tool_call_id" not in message and "id" in message:
        return True  # tau2-bench: this id is the id of the call.
    return (
        message.get("role") not in ("user", "assistant", "system", "developer", "tool", "function")
        or ("content" not in message and any(key in message for key in (*_CONTENTS, "api_name")))
        or any(isinstance(part, Mapping) and _is_foreign_part(part) for part in _listed(content))
        or any(isinstance(c, Mapping) and _is_flat(c) for c in _listed(calls))
        or bool(not calls and _calls_of_model(message))
    )


def role_of(message: Mapping[str, Any]) -> str | None:
    """Return the role of a message as OpenAI calls it, or ``None`` if it has no known role."""
    for key in _SPEAKERS:
        if isinstance(named := message.get(key), str):
            word = _MESSAGE.sub("", _letters(named)) or "message"
            if key in ("role", "from") or (word in _ROLES and word != "functioncall"):
                return _ROLES.get(word)
    return None


def _letters(name: str) -> str:
    return _NO_LETTER.sub("", name.lower())


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_flat(call: Mapping[str, Any]) -> bool:
    """Return whether a call has its name and arguments at the level of its id."""
    return not isinstance(call.get("function"), Mapping) and (
        _first(call, _ARGUMENTS) is not None and isinstance(_first(call, _NAMES), str)
    )


def _is_foreign_part(part: Mapping[str, Any]) -> bool:
    kind = _kind(part)
    return kind in ("call", "result", "thinking", "system") or (
        kind == "text" and (part.get("type") != "text" or not isinstance(part.get("text"), str))
    )


def _first(thing: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((thing[key] for key in keys if thing.get(key) is not None), None)


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message that LangChain wrapped with its type."""
    inner = message.get("data") or message.get("kwargs")
    if not isinstance(inner, Mapping):
        return message
    path = message.get("id")
    name = path[-1] if isinstance(path, list) and path else message.get("type")
    return {**inner, "type": name}


def _kind(part: object) -> str | None:
    """Return the kind of a part of a message, or ``None`` if it is unknown."""
    if isinstance(part, str):
        return "text"
    if not isinstance(part, Mapping):
        return None
    if part.get("thought") is True:
        return "thinking"
    wrapped = (kind for key, kind in _WRAPPERS.items() if isinstance(part.get(key), Mapping))
    named = part.get("type") or part.get("part_kind")
    if named == "retry-prompt" and part.get("tool_name"):
        named = "tool-return"
    if not isinstance(named, str) and "toolName" in part and "toolCallId" in part:
        return "call"  # Vercel's AI SDK lists the calls of a step without their type.
    if not isinstance(named, str):
        named = "text" if isinstance(part.get("text"), str) else ""
    return next(wrapped, _KINDS.get(_letters(named)))


def _body(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((part[key] for key in _WRAPPERS if isinstance(part.get(key), Mapping)), part)


def _converted(message: Mapping[str, Any], place: str, odd: Oddities) -> Iterator[Json]:
    """Convert a message to messages in OpenAI's form. Prompts and results come first."""
    role, parts, made = _role_and_parts(message, place)
    texts: list[Any] = []
    in_parts = not made  # LangChain repeats the calls of Anthropic's blocks.
    for part in parts:
        kind = _kind(part)
        if kind == "call" and in_parts:
            made += _calls(_body(part), place)
        elif kind == "result":
            yield from _results(part, message, place)
        elif kind == "system":
            yield {"role": "system", "content": _text(part)}
        elif kind != "call":
            texts += _texts(part, kind, role, place, odd)
    if made and role == "user":
        odd.add("Calls that the user made are ignored", place)
        made = []
    if texts or made or (role not in ("tool", "user") and any(map(_is_said, parts))):
        yield _message(role, texts, made)


def _role_and_parts(message: Mapping[str, Any], place: str) -> tuple[str, list[Any], list[Json]]:
    """Return the role of a message, its parts, and the calls outside its parts."""
    role, content = role_of(message), _first(message, _CONTENTS)
    made = [call for raw in _calls_beside(message) for call in _calls(raw, place)]
    if role is None:
        return "assistant", [message], made
    if role == "tool" and not any(_kind(part) == "result" for part in _listed(content)):
        return role, [{**message, "type": "tool-return"}], made
    if role == "assistant" and isinstance(content, str):
        rest, inside = _calls_in_text(content, message, place)
        return role, [rest], [*made, *inside]
    return role, content if isinstance(content, list) else [content], made


def _results(part: Mapping[str, Any], message: Mapping[str, Any], place: str) -> Iterator[Json]:
    """Yield the result of a call, unless the user made it."""
    if part.get("api_name"):  # API-Bank has a call and its result in one message.
        yield {"role": "assistant", "content": None, "tool_calls": _calls(part, place)}
    if message.get("requestor") != "user":
        yield _result(_body(part))


def _is_said(part: object) -> bool:
    """Return whether a part shows that somebody spoke. The text may be empty."""
    return isinstance(part, str) or _kind(part) == "text"


def _message(role: str, texts: list[Any], made: list[Json]) -> Json:
    if all(isinstance(text, str) for text in texts):
        content: Any = "\n".join(texts)
    else:
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in texts]
    if not made:
        return {"role": role, "content": content}
    return {"role": role, "content": content or None, "tool_calls": made}


def _joined(first: Json, second: Json) -> Json:
    texts = [one["content"] for one in (first, second) if one.get("content")]
    calls = [*(first.get("tool_calls") or ()), *second["tool_calls"]]
    return {"role": "assistant", "content": "\n".join(texts) or None, "tool_calls": calls}


def _text(part: Any) -> str:
    found = part if isinstance(part, str) else _first(part, _TEXTS)
    if isinstance(found, Mapping):
        found = _first(found, _TEXTS)  # OpenAI's Assistants: {"value": "...", "annotations": []}.
    return found if isinstance(found, str) else text_of_content(found)


def _texts(part: Any, kind: str | None, role: str, place: str, odd: Oddities) -> list[Any]:
    """Return the texts and pictures of a part. Count a dropped part in ``odd``.

    Raises:
        DataError: The part is a number or another value, which no API takes for words.
    """
    if kind == "text":
        inner = part if isinstance(part, str) else _first(part, _TEXTS)
        if inner is None or isinstance(inner, str | Mapping):
            return [_text(part)]
        if isinstance(inner, list):
            return [_picture(one) if isinstance(one, Mapping) else one for one in inner]
        part = inner
    if part is None:
        return []
    if not isinstance(part, Mapping):
        raise DataError(f"{place}: {shorten_value(part)} instead of a text")
    if kind is None and role == "user":
        return [_picture(part)]
    known = (key for key, value in part.items() if value is not None)
    named = kind or part.get("type") or part.get("part_kind") or next(known, "")
    odd.add(_DROPPED.format(named), place)
    return []


def _picture(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a picture of OpenAI's Responses, and keep other parts."""
    if part.get("type") != "input_image":
        return part
    return {"type": "image_url", "image_url": {"url": part.get("image_url")}}


def _calls_beside(message: Mapping[str, Any]) -> list[Any]:
    """Return the calls of a message that are not part of its content."""
    old = message.get("function_call")
    broken = message.get("invalid_tool_calls")
    listed = [*_listed(message.get("tool_calls")), *_listed(broken)] or _calls_of_model(message)
    return [*listed, *([old] if isinstance(old, Mapping) and role_of(message) else [])]


def _calls_of_model(message: Mapping[str, Any]) -> list[Any]:
    """Return the calls in the answer of a model that LangChain stores beside a message."""
    beside = message.get("additional_kwargs")
    if not isinstance(beside, Mapping):
        return []
    return _listed(beside.get("tool_calls")) or [
        old for old in [beside.get("function_call")] if isinstance(old, Mapping)
    ]


def find_called_tools(value: object) -> set[str]:
    """Return the names of tools in all objects within a value that have the form of a call.

    Calls that a simulated user makes are left out. So are JSON texts.
    """
    found: set[str] = set()
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, list):
            rest += one
        elif isinstance(one, Mapping) and one.get("requestor") != "user":
            name = _first(one, _NAMES)
            if isinstance(name, str) and (_kind(one) == "call" or one.keys() & {*_OF_CALLS}):
                found.add(name)
            rest += (inner for key, inner in one.items() if key not in _LISTS_OF_TOOLS)
    return found


def _calls(raw: Any, place: str) -> list[Json]:
    """Convert a call, or the JSON text of one or several calls, to OpenAI's form."""
    if not isinstance(raw, Mapping):
        raise DataError(f"{place}: {shorten_value(raw)} instead of a call, {_A_CALL}")
    text = raw.get("value")
    if isinstance(text, str):
        return [call for one in _parsed_calls(text, place) for call in _calls(one, place)]
    inner = raw.get("function")
    inner = inner if isinstance(inner, Mapping) else raw
    arguments = _first(inner, _ARGUMENTS)
    if arguments is None:
        refuse_misspelt_arguments(inner, place)
    if not isinstance(arguments, str):
        arguments = canonical({} if arguments is None else arguments)
    function = {"name": _first(inner, _NAMES), "arguments": arguments}
    known = _first(raw, _IDS)
    return [{"id": known or None, "type": "function", "function": function}]


def refuse_misspelt_arguments(call: Mapping[str, Any], place: str) -> None:
    """Refuse a call whose arguments would be lost because their key is unknown."""
    refuse_misspelt(call, "arguments", _OTHER_ARGUMENTS, (Mapping, str), place)


def _parsed_calls(text: str, place: str) -> list[Any]:
    try:
        found = parse_json(_QUOTED.sub(r"\1", text))
    except DataError as error:
        raise DataError(f"{place}: the call {error}") from None
    listed = found if isinstance(found, list) else [found]
    for one in listed:
        if not isinstance(one, Mapping) or not isinstance(_first(one, _NAMES), str):
            raise DataError(f"{place}: expected a call, {_A_CALL}")
    return listed


def _calls_in_text(
    text: str, message: Mapping[str, Any], place: str
) -> tuple[str | None, list[Json]]:
    """Return the words of an assistant, and the calls that its text contains."""
    if _letters(str(_first(message, _SPEAKERS))) in ("functioncall", "toolcall"):
        return None, [c for one in _parsed_calls(text, place) for c in _calls(one, place)]
    inside, others, at = list[str](), list[str](), 0
    ends = _CALL_ENDS.finditer(text)
    for begin in _CALL_BEGINS.finditer(text):
        if begin.start() < at:  # Within the call before.
            continue
        end = next((one for one in ends if one.start() > begin.end()), None)
        if end is None:
            break
        inside.append(text[begin.end() : end.start() + 1])
        others.append(text[at : begin.start()])
        at = end.end()
    if not inside:
        return text, []
    rest = "".join([*others, text[at:]]).strip()
    made = [c for one in inside for raw in _parsed_calls(one, place) for c in _calls(raw, place)]
    return rest or None, made


def _result(part: Mapping[str, Any]) -> Json:
    """Convert the result of a call. It may have no id, as in OpenAI's old form."""
    given = _first(part, _RESULTS)
    if isinstance(given, list) and (texts := text_of_content(given)):
        given = texts
    content = given if isinstance(given, str) else "" if given is None else canonical(given)
    known = _first(part, _IDS)
    if not known:
        return {"role": "function", "content": content}
    return {"role": "tool", "tool_call_id": known, "content": content}


#: Types in schemas that JSON Schema lacks.
_TYPES: Final = {"dict": "object", "float": "number", "double": "number", "tuple": "array"}
_BUILT_IN: Final = "Tools of the service, such as a web search, are ignored"


def chat_tools(given: object, place: str, odd: Oddities) -> object:
    """Return a list of tools without the wrappers of Gemini, Bedrock and others."""
    if isinstance(given, str) and given.strip():
        try:
            given = load_json(given)
        except ValueError:
            return given
    if not isinstance(given, list):
        return None if given == "" else given
    found: list[Any] = []
    for one in given:
        inner = one if isinstance(one, Mapping) else {}
        listed = inner.get("functionDeclarations") or inner.get("function_declarations")
        spec = inner.get("toolSpec")
        if isinstance(listed, list):
            found += map(json_types, listed)
        elif isinstance(spec, Mapping):
            schema = spec.get("inputSchema")
            inside = schema.get("json") if isinstance(schema, Mapping) else None
            found.append({**spec, "inputSchema": inside or schema})
        elif inner.keys() and not inner.keys() & {"name", "function", *_ARGUMENTS}:
            odd.add(_BUILT_IN, place)
        else:
            found.append(one)
    return found


def json_types(value: Any) -> Any:
    """Return a schema whose type names are in lower case, as in JSON Schema."""
    if isinstance(value, list):
        return [json_types(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = {key: json_types(inner) for key, inner in value.items()}
    named = found.get("type")
    if isinstance(named, str):
        found["type"] = _TYPES.get(named.lower(), named.lower())
        if found["type"] == "any":
            del found["type"]
    return found
