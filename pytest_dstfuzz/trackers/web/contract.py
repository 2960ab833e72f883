"""The contract of a tracker over HTTP, in JSON. See docs/guides/http.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from pytest_dstfuzz.dialogue.calls import TOOL_CALLS, Outcome, OutcomeKind, Transcript, list_calls
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    Exchange,
    OpeningRole,
    messages_and_tools,
    messages_of,
)
from pytest_dstfuzz.dialogue.messages import calling, decode_message
from pytest_dstfuzz.dialogue.normalise import value_text
from pytest_dstfuzz.dialogue.readers.messages import read_messages, turns_of
from pytest_dstfuzz.dialogue.readers.source import Oddities
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.errors import (
    DataError,
    DstFuzzError,
    MalformedAnswerError,
    TrackerError,
    nearest,
)
from pytest_dstfuzz.json_data import to_json
from pytest_dstfuzz.printable import describe, format_count
from pytest_dstfuzz.trackers.calls import as_calls
from pytest_dstfuzz.trackers.tracker import Prediction

#: Advice if a service that may reply is asked for a belief state.
REPLIES: Final = "; if the service replies to users, add --dst-outcome=reply"
_LEAVE_OUT: Final = "; if the service keeps a belief state, leave --dst-outcome={} out"
#: Advice if a service returns another kind of answer: the tested outcome and a key of the answer ->
#: advice.
_OTHER_KINDS: Final[Mapping[tuple[OutcomeKind, str], str]] = {
    ("state", "reply"): REPLIES,
    ("state", "tool_calls"): "; if the service calls tools, add --dst-outcome=tool-calls",
    ("reply", "state"): _LEAVE_OUT.format("reply"),
    ("reply", "tool_calls"): "; if the service calls tools, use --dst-outcome=tool-calls",
    ("tool-calls", "state"): _LEAVE_OUT.format("tool-calls"),
    ("tool-calls", "reply"): "; if the service replies to users, use --dst-outcome=reply",
    ("tool-calls", "choices"): "; if the service returns chat completions, use openai+http://...",
}


class ContractError(DstFuzzError):
    """A request or an answer has the wrong form. The message shows the right form."""


class UnreadableAnswerError(ContractError):
    """The reply to a dialogue does not have the form of an answer. The next one may have it."""


def wrong(value: object, place: str, right: str) -> ContractError:
    """Return the error for a wrong value at a place in an answer."""
    return ContractError(f"answered with {describe(value)} {place}; {right}")


def other_kind(body: object, outcome: OutcomeKind) -> str:
    """Return advice if a service returns another kind of answer than the tested one, or ``""``."""
    keys = body if isinstance(body, Mapping) else ()
    return next((_OTHER_KINDS[outcome, key] for key in keys if (outcome, key) in _OTHER_KINDS), "")


def show_without_key(body: object, key: str) -> str:
    """Return the beginning of an answer without the key, and a similar key if there is one."""
    keys = map(str, body) if isinstance(body, Mapping) and key not in body else ()
    guess = nearest(key, keys)
    return describe(body) + (f' (there is a key "{guess}")' if guess else "")


#: Keys of a message. Every message has at least one of them.
_KEYS: Final = ("tool_calls", "content", "function_call")
#: The expected answer.
_MESSAGE: Final = (
    'a message, {"role": "assistant", "content": "..."} or {"role": "assistant", "tool_calls": '
    '[{"function": {"name": "...", "arguments": "{...}"}}]}'
)


def call_context(messages: object, tools: object, place: str) -> Context:
    """Return the context for messages and tools.

    The last message must be a user message or a tool result. ``place`` begins the error message.

    Raises:
        ContractError: a message or a tool is malformed.
    """
    odd = Oddities()
    try:
        turns, closing = turns_of(read_messages(messages, place, odd), place, odd)
        listed = () if tools is None else read_tools(tools, place.replace("messages", "tools"))
    except DataError as error:
        raise ContractError(str(error)) from None
    if not turns or (closing and decode_message(closing[-1]).role != "tool"):
        raise ContractError(
            f"{place} must end with a user message that has a text, or with the result of a tool"
        )
    context = Dialogue("", turns, listed).context(len(turns) - 1)
    told = context.transcript or Transcript(listed)
    return replace(context, transcript=replace(told, after=closing)) if closing else context


def call_contexts(keys: Mapping[str, object], count: int) -> list[Context]:
    """Return the contexts of ``count`` dialogues, from lists of messages and lists of tools."""
    messages, tools = (_lists(keys, name, count) for name in ("messages", "tools"))
    places = (f'"messages"[{place}]' for place in range(count))
    return [call_context(*each) for each in zip(messages, tools, places, strict=True)]


def _lists(keys: Mapping[str, object], name: str, count: int) -> list[object]:
    given = keys.get(name, [None] * count)
    if not isinstance(given, list) or len(given) != count:
        raise ContractError(
            f'"{name}" is {describe(given)}; it must be a list of {format_count(count, "list")}, '
            'one for each of the "dialogues"'
        )
    return given


def read_message(body: object) -> Prediction:
    """Return the prediction in an answer that is the next message of an assistant."""
    if not isinstance(body, Mapping) or not any(key in body for key in _KEYS):
        raise ContractError(
            f"answered with {show_without_key(body, _KEYS[0])}; it must be {_MESSAGE}"
            f"{other_kind(body, TOOL_CALLS)}"
        )
    try:
        return as_calls(body)
    except MalformedAnswerError as error:
        raise ContractError(f"answered with a message that cannot be read: {error}") from None


def message_json(answer: Prediction | Mapping[str, str]) -> dict[str, Any]:
    """Return an assistant's message with the numbered calls of a prediction."""
    calls = answer.calls if isinstance(answer, Prediction) else answer
    made = list_calls(Outcome(calls))
    said = answer.reply if isinstance(answer, Prediction) else None
    return calling(said, made, (f"call_{place + 1}" for place in range(len(made)))).to_json()


#: Version of the contract. It grows if a key changes its meaning. New keys do not change it.
VERSION: Final = 1
#: Tested outcome -> allowed keys of an answer.
_ANSWER_KEYS: Final[Mapping[OutcomeKind, tuple[str, ...]]] = {
    "state": ("state", "distributions", "impurities"),
    "reply": ("reply",),
}
#: Expected answer to one dialogue.
_ANSWER: Final[Mapping[str, str]] = {
    "state": '{"state": {"domain-slot": "value"}}, with or without "distributions" or "impurities"',
    "reply": '{"reply": "..."}',
}
_EXCHANGE: Final = '{"system": "...", "user": "..."}'
#: Rounding tolerance: a distribution may exceed 1, and an impurity may be below 0, by this much.
_ROUNDING: Final = 1e-3
_DISTRIBUTIONS: Final = list[
    Annotated[list[Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]], msgspec.Meta(min_length=1)]
]
_IMPURITY: Final = Annotated[float, msgspec.Meta(ge=-_ROUNDING, le=1.0)]
#: Self-description of a service: key -> its type, and the expected value for messages.
_ABOUT: Final[Mapping[str, tuple[Any, str]]] = {
    "name": (str, "a text"),
    "version": (str, "a text"),
    "slots": (tuple[str, ...], 'a list of texts, ["domain-slot"]'),
    "dialogues": (
        Annotated[int, msgspec.Meta(ge=1)],
        "the maximum number of dialogues per request, at least 1",
    ),
    "repeatable": (bool, "false if the same dialogue may get different answers, otherwise true"),
}
#: A tracker's answer to one context of several. An error gives the reason for no answer.
ServiceAnswer: TypeAlias = Prediction | Mapping[str, str] | str | TrackerError


@dataclass(frozen=True, slots=True)
class About:
    """The self-description of a service. Missing keys are ``None`` or empty."""

    name: str | None = None
    #: Must change whenever the same dialogue may get another answer.
    version: str | None = None
    slots: tuple[str, ...] = ()
    #: Most dialogues per request. ``None`` means one, in the form for a single dialogue.
    dialogues: int | None = None
    #: Whether the same dialogue always gets the same answer.
    repeatable: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the body of the answer to ``GET``."""
        said = to_json(self)
        return {key: value for key, value in said.items() if value or value is False}


def request_json(
    context: Context, outcome: OutcomeKind = "state", opening: OpeningRole = "assistant"
) -> dict[str, Any]:
    """Return the request body for a context. For ``opening`` see `messages_of`."""
    body: dict[str, Any] = {"version": VERSION, "dialogue": _dialogue_json(context)}
    return body | _beside(context, outcome, opening)


def _beside(context: Context, outcome: OutcomeKind, opening: OpeningRole) -> dict[str, Any]:
    """Return the keys of a request except the dialogue."""
    if outcome == TOOL_CALLS:
        return messages_and_tools(context, opening)._asdict()
    return {} if outcome == "state" else {"messages": messages_of(context, opening)}


def group_json(
    contexts: Iterable[Context], outcome: OutcomeKind = "state", opening: OpeningRole = "assistant"
) -> dict[str, Any]:
    """Return the body of one request for several contexts. Each key has a list."""
    asked = list(contexts)
    body: dict[str, Any] = {
        "version": VERSION,
        "dialogues": [_dialogue_json(context) for context in asked],
    }
    for context in asked:
        for key, part in _beside(context, outcome, opening).items():
            body.setdefault(key, []).append(part)
    return body


def _dialogue_json(context: Context) -> list[dict[str, str]]:
    return [{"system": system, "user": user} for system, user in context.exchanges]


def is_group(body: object) -> bool:
    """Return whether a request is for several dialogues."""
    return isinstance(body, Mapping) and "dialogues" in body


def read_request(body: object, outcome: OutcomeKind = "state") -> Context:
    """Return the context of a request."""
    keys = _of_this_version(body)
    if outcome == TOOL_CALLS:
        return call_context(keys.get("messages"), keys.get("tools"), '"messages"')
    return _dialogue(keys.get("dialogue"), '"dialogue"')


def read_group(body: object, most: int, outcome: OutcomeKind = "state") -> list[Context]:
    """Return the contexts of a request for several dialogues, at most ``most``."""
    keys = _of_this_version(body)
    dialogues = keys.get("dialogues")
    if "dialogue" in keys:
        raise ContractError('the request has both "dialogue" and "dialogues"; send only one')
    if not isinstance(dialogues, list) or not dialogues:
        raise ContractError(
            f'"dialogues" is {describe(dialogues)}; it must be a list of at least one dialogue'
        )
    if len(dialogues) > most:
        raise ContractError(
            f'"dialogues" has {len(dialogues)} entries; this service accepts at most {most} per '
            "request"
        )
    if outcome == TOOL_CALLS:
        return call_contexts(keys, len(dialogues))
    return [_dialogue(part, f'"dialogues"[{place}]') for place, part in enumerate(dialogues)]


def _of_this_version(body: object) -> Mapping[str, object]:
    if not isinstance(body, Mapping):
        raise ContractError(f'the request is {describe(body)}; write {{"dialogue": [...]}}')
    version = body.get("version", VERSION)
    if version != VERSION:
        raise ContractError(
            f'"version" is {describe(version)}; this service supports version {VERSION}'
        )
    return body


def _dialogue(dialogue: object, key: str) -> Context:
    """Return the context of the dialogue at ``key`` of a request."""
    if not isinstance(dialogue, list) or not dialogue:
        raise ContractError(
            f"{key} is {describe(dialogue)}; it must be a list of at least one {_EXCHANGE}"
        )
    exchanges = []
    for place, part in enumerate(dialogue):
        said = part if isinstance(part, Mapping) else {}
        system, user = said.get("system", ""), said.get("user")
        if not isinstance(system, str) or not isinstance(user, str):
            raise ContractError(f"{key}[{place}] is {describe(part)}; it must be {_EXCHANGE}")
        exchanges.append(Exchange(system, user))
    return Context(tuple(exchanges))


def answer_json(
    prediction: Prediction | Mapping[str, str] | str, outcome: OutcomeKind = "state"
) -> dict[str, Any]:
    """Return the body of the answer for a prediction. Floats keep their exact values."""
    if outcome == TOOL_CALLS and not isinstance(prediction, str):
        return message_json(prediction)
    if isinstance(prediction, str):
        return {"reply": prediction}
    if not isinstance(prediction, Prediction):
        return {"state": dict(prediction)}
    answer: dict[str, Any] = {}
    if prediction.reply is not None:
        answer["reply"] = prediction.reply
    if prediction.state or prediction.reply is None:
        answer["state"] = dict(prediction.state)
    if prediction.impurities is not None:
        answer["impurities"] = {slot: float(value) for slot, value in prediction.impurities.items()}
    return answer


def answers_json(
    answers: Iterable[ServiceAnswer], outcome: OutcomeKind = "state"
) -> dict[str, Any]:
    """Return the body of the answer to a request for several contexts."""
    return {
        "answers": [
            {"error": str(answer)}
            if isinstance(answer, TrackerError)
            else answer_json(answer, outcome)
            for answer in answers
        ]
    }


def read_answers(
    body: object, asked: int, outcome: OutcomeKind = "state"
) -> list[Prediction | str | UnreadableAnswerError]:
    """Return the predictions in an answer to ``asked`` dialogues.

    If a dialogue failed, its error text replaces the prediction. If an answer cannot be read, its
    error replaces the prediction.
    """
    answers = body.get("answers") if isinstance(body, Mapping) else None
    if not isinstance(answers, list):
        each = "MESSAGE" if outcome == TOOL_CALLS else f'{{"{outcome}": ...}}'
        raise ContractError(
            f"answered with {show_without_key(body, 'answers')} to "
            f"{format_count(asked, 'dialogue')}; "
            f'it must be {{"answers": [{each} or {{"error": "why"}}, ...]}}'
        )
    if len(answers) != asked:
        raise ContractError(
            f'answered with {len(answers)} "answers" to {format_count(asked, "dialogue")}; there '
            "must be one for each, in the order of the dialogues"
        )
    return [_part(answer, place, outcome) for place, answer in enumerate(answers)]


def _part(
    answer: object, place: int, outcome: OutcomeKind
) -> Prediction | str | UnreadableAnswerError:
    if isinstance(answer, Mapping) and outcome not in answer and "error" in answer:
        if isinstance(why := answer["error"], str):
            return why
        raise wrong(why, f'as "error" of "answers"[{place}]', "it must be a text")
    try:
        return read_answer(answer, outcome)
    except UnreadableAnswerError as error:
        return UnreadableAnswerError(f'{error} (in "answers"[{place}])')


def read_answer(body: object, outcome: OutcomeKind = "state") -> Prediction:
    """Return the prediction in an answer, with the tested outcome.

    States are not normalised or checked for unknown slots. The caller does that.

    Raises:
        UnreadableAnswerError: the answer does not have this form.
    """
    try:
        return _answered(body, outcome)
    except ContractError as error:
        raise UnreadableAnswerError(str(error)) from None


def _answered(body: object, outcome: OutcomeKind) -> Prediction:
    if outcome == TOOL_CALLS:
        return read_message(body)
    if not isinstance(body, Mapping) or outcome not in body:
        raise ContractError(
            f"answered with {show_without_key(body, outcome)}; it must be {_ANSWER[outcome]}"
            f"{other_kind(body, outcome)}"
        )
    keys = _ANSWER_KEYS[outcome]
    for key in body:
        # A misspelt key would silently make a tracker without probabilities.
        guess = nearest(key, keys)
        if key not in keys and guess is not None and guess not in body:
            raise ContractError(f'answered with an unknown key "{key}"; did you mean "{guess}"?')
    if outcome == "reply":
        if not isinstance(body["reply"], str):
            raise wrong(body["reply"], 'as "reply"', "it must be a text")
        return Prediction(BeliefState(), reply=body["reply"])
    state = body["state"]
    if not isinstance(state, Mapping):
        raise wrong(state, 'as "state"', 'it must be an object {"domain-slot": "value"}')
    texts = {slot: _value(slot, value) for slot, value in state.items() if value is not None}
    return _with_probabilities(BeliefState(texts), body)


def _value(slot: str, value: object) -> str:
    """Return the value of a slot as text. All trackers share the rules."""
    try:
        return value_text(slot, value)
    except DataError:
        raise wrong(
            value,
            f'as the value of "{slot}"',
            "a value must be a text, a number, true, false or a list of these; leave out a slot "
            "that was not mentioned, or set it to null",
        ) from None


def _with_probabilities(state: BeliefState, body: Mapping[str, object]) -> Prediction:
    distributions, impurities = body.get("distributions"), body.get("impurities")
    if distributions is not None and impurities is not None:
        raise ContractError('answered with both "distributions" and "impurities"; give only one')
    if distributions is not None:
        right = (
            'it must be {"domain-slot": [[0.9, 0.1], ...]}, with numbers from 0 to 1 that add up '
            "to at most 1 in each list"
        )
        place = '"distributions" of'
        found = _by_slot(distributions, "distributions", _DISTRIBUTIONS, f"as {place}", right)
        for slot, parts in found.items():
            if any(math.fsum(part) > 1.0 + _ROUNDING for part in parts):
                raise wrong(parts, f'as {place} "{slot}"', right)
        return Prediction.from_distributions(state, found)
    if impurities is None:
        return Prediction(state)
    right = 'it must be {"domain-slot": number}, with numbers from 0 to 1'
    found = _by_slot(impurities, "impurities", _IMPURITY, "as the impurity of", right)
    return Prediction(state, {slot: max(0.0, share) for slot, share in found.items()})


def _by_slot(value: object, key: str, kind: Any, place: str, right: str) -> dict[str, Any]:
    """Convert the value of each slot in an object to a type of `msgspec`."""
    if not isinstance(value, Mapping):
        raise wrong(value, f'as "{key}"', right)
    found = {}
    for slot, part in value.items():
        try:
            found[slot] = msgspec.convert(part, kind)
        except msgspec.ValidationError:
            raise wrong(part, f'{place} "{slot}"', right) from None
    return found


def read_about(body: object) -> About:
    """Return the self-description of a service.

    An object without any of the keys gives an empty description, because the service may use
    ``GET`` for another purpose.
    """
    said: dict[str, Any] = {}
    for key, (kind, right) in _ABOUT.items():
        value = body.get(key) if isinstance(body, Mapping) else None
        if value is not None:
            try:
                said[key] = msgspec.convert(value, kind)
            except msgspec.ValidationError:
                verb = "are" if key.endswith("s") else "is"
                raise ContractError(
                    f'says that its "{key}" {verb} {describe(value)}; write {right}'
                ) from None
    return About(**{key: value for key, value in said.items() if value != ""})
