"""A chat model as a tracker: the prompt, one request per context, and the parser of answers."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from jinja2 import StrictUndefined, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.calls import REPLY, TOOL_CALLS
from pytest_dstfuzz.dialogue.dialogues import (
    DONTCARE,
    BeliefState,
    Context,
    DialogueSet,
    Exchange,
    Ontology,
)
from pytest_dstfuzz.dialogue.normalise import normalise_state
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError, UserError, message_of
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.json_data import each_key_once
from pytest_dstfuzz.printable import shorten_text
from pytest_dstfuzz.trackers.adapting import taker_of
from pytest_dstfuzz.trackers.chat.client import (
    REFUSED,
    ChatCalls,
    ChatClient,
    ChatReplies,
    client_at,
    convert_choice,
    system_message,
)
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction, Usage
from pytest_dstfuzz.trackers.web.transport import ServiceError

#: The thoughts of a model before its answer, if the service does not remove them.
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
#: Words in braces that are not meant as JSON.
_WORDS = re.compile(r"""\{[^{}"':]*\}""")


class NoStateError(TrackerError):
    """An answer has no belief state, or more than one."""


def parse_answer(text: str, normalisation: str) -> BeliefState:
    """Return the belief state in an answer.

    The answer may contain only one JSON object. It may be in a fenced block or among other words. A
    slot whose value is ``null`` counts as not mentioned.

    Raises:
        NoStateError: there is no object or several different ones, a slot has two values, or a
            value is an object or a list of objects or lists.
    """
    found = _the_object(_THOUGHTS.sub("", text, count=1))
    for slot, value in found.items():
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, dict | list) for part in parts):
            kind = "an object" if isinstance(value, dict) else "a list of lists or objects"
            raise NoStateError(f"the value of {slot!r} is {kind}, not a text")
    return normalise_state(found, normalisation)


def _the_object(text: str) -> dict[str, Any]:
    """Return the only JSON object in a text."""
    found: list[dict[str, Any]] = []
    start = _OPENING.search(text)
    while start is not None:
        place = start.start()
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            # Do not skip a broken object, because a nested object would be found instead.
            if text[place] == "{" and not _WORDS.match(text, place):
                raise NoStateError(
                    "it contains an object that is cut off or not valid JSON"
                ) from None
            end = place + 1
        else:
            if isinstance(value, dict) and value not in found:
                found.append(value)
            elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
                raise NoStateError("it contains a list of objects")
        start = _OPENING.search(text, end)
    if len(found) > 1:
        raise NoStateError(f"it contains {len(found)} different JSON objects")
    if not found:
        raise NoStateError("it contains no JSON object")
    return found[0]


def _no_number(name: str) -> float:
    raise NoStateError(f"it contains {name}, which is not valid JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=each_key_once(lambda key: NoStateError(f"it has two values for {key!r}")),
    parse_constant=_no_number,
)


DEFAULT_PROMPT: Final = Path(__file__).with_name("default_prompt.jinja")
#: A prompt lists all values of a slot up to the first number. If there are more, it lists only the
#: second number of values.
_MOST_VALUES = 12
_FEW_VALUES = 5
#: Name that Jinja2 gives to a template from a string.
_INNER_NAME = "<template>"
#: Test context for a template, with both kinds of exchange.
_TRIAL = Context((Exchange("", "I need a room."), Exchange("Which area?", "Any will do.")))


@dataclass(frozen=True, slots=True)
class PromptSlot:
    """A slot in the form for templates."""

    name: str
    #: All known values, or an evenly spaced selection.
    values: tuple[str, ...]
    #: Whether ``values`` has all known values.
    complete: bool


class Prompt:
    """The template for the text of a request.

    If ``path`` is missing, the default template is used. ``others`` is true if the data may have
    slots that the ontology lacks. If the template is faulty, a `UserError` names file and line.
    """

    def __init__(
        self, path: str | None, ontology: Ontology | None, *, others: bool = False
    ) -> None:
        self._slots = prompt_slots(ontology)
        self._others = others
        self._example = _example(self._slots)
        if path is None and not self._slots:
            # Without a list of slots, a model invents new names at every turn.
            raise UserError(
                "the slots for the chat model are unknown: no labels and no ontology name them. "
                "If the model replies to users, add --dst-outcome=reply. To test belief states, "
                "name the slots with the option slots (--dst-slots=order-size,order-crust), in "
                "<data>.ontology.json next to the data, or in your own prompt "
                "(--dst-tracker prompt=FILE)"
            )
        self._name = place = DEFAULT_PROMPT if path is None else Path(path)
        # The output is not HTML, so nothing is escaped.
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        source = read_text(place, "prompt")
        try:
            self._template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise UserError(f"{place}:{error.lineno}: {error.message}") from None
        first = _TRIAL.exchanges[0]
        if self.render(_TRIAL) == self.render(Context((first, Exchange("", "No.")))):
            raise UserError(
                f"{place}: the prompt is the same for every dialogue: use the variable "
                "'exchanges' or 'user' in it"
            )

    def render(self, context: Context) -> str:
        """Return the text for one context. If the template fails, the error names its line."""
        try:
            return self._template.render(
                exchanges=context.exchanges,
                user=context.user,
                system=context.system,
                slots=self._slots,
                others=self._others,
                example=self._example,
                dontcare=DONTCARE,
            ).strip()
        except Exception as error:  # noqa: BLE001 - a template is the user's code
            raise UserError(
                f"{self._name}:{_line(error)}: {message_of(error) or type(error).__name__}"
            ) from None


def prompt_slots(ontology: Ontology | None) -> tuple[PromptSlot, ...]:
    """Return the slots of an ontology in the form for templates, sorted by name."""
    if ontology is None:
        return ()
    return tuple(
        PromptSlot(slot, _spread(ontology.values[slot]), len(ontology.values[slot]) <= _MOST_VALUES)
        for slot in ontology.slots
    )


def _spread(values: Sequence[str]) -> tuple[str, ...]:
    """Return all values if there are few, or an evenly spaced selection."""
    if len(values) <= _MOST_VALUES:
        return tuple(values)
    return tuple(values[place * len(values) // _FEW_VALUES] for place in range(_FEW_VALUES))


def _example(slots: Sequence[PromptSlot]) -> str:
    """Return an example belief state of two slots in JSON. The second value is ``dontcare``."""
    shown = [slot for slot in slots if slot.values] or slots
    state = {slot.name: (*slot.values, "...")[0] for slot in shown[:1]}
    if len(shown) > 1:
        state[shown[len(shown) // 2].name] = DONTCARE
    return json.dumps(state, ensure_ascii=False)


def _line(error: BaseException) -> int:
    """Return the line of the template that raised an exception, counted from 1."""
    walk = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in walk if frame.f_code.co_filename == _INNER_NAME]
    return lines[-1] if lines else 1


def answer_formats(slots: Sequence[str]) -> tuple[dict[str, Any] | None, ...]:
    """Return the values of ``response_format`` to try, the strictest first.

    The last value is ``None``: only the prompt asks for JSON. If no slots are known, there is no
    schema.
    """
    by_words = {"type": "json_object"}, None
    if not slots:
        return by_words
    # The strict mode of OpenAI's API requires every property and allows no others, so a slot that
    # was not mentioned is null. Values are not restricted, because a tracker may name a restaurant
    # that the ontology lacks.
    schema = {
        "type": "object",
        "properties": {slot: {"type": ["string", "null"]} for slot in slots},
        "required": list(slots),
        "additionalProperties": False,
    }
    named = {"name": "belief_state", "strict": True, "schema": schema}
    return ({"type": "json_schema", "json_schema": named}, *by_words)


#: Words in a refusal that is about the format of the answer.
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object")

#: Characters of an answer that a message shows.
_SHOWN: Final = 80


@dataclass(eq=False, repr=False, kw_only=True)
class ChatTracker:
    """A tracker that asks a chat model for the belief state, at temperature 0.

    It asks for the strictest answer format first. If the service refuses a format, the tracker uses
    the next one from then on.
    """

    #: Services may answer the same question differently each time, even at temperature 0.
    repeatable: ClassVar = False
    #: The API has no version that is known before the first answer and identifies all answers.
    fingerprint: ClassVar = None

    client: ChatClient
    #: The template of the requests.
    prompt: Prompt
    #: Values of ``response_format``, the strictest first. The last one is ``None``.
    formats: Sequence[dict[str, Any] | None]
    #: The normalisation of the data.
    normalisation: str
    #: Index of the current format.
    _place: int = field(default=0, init=False)

    @property
    def service_model(self) -> str:
        """The name of the model, from the user or from the service."""
        return self.client.model

    @property
    def usage(self) -> Usage:
        """The usage of all answers so far."""
        return self.client.usage

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return a prediction for each context, or an error in its place."""
        jobs = [partial(self._predict, context) for context in contexts]
        return self.client.transport.map(jobs, taker_of(self))

    async def _predict(self, context: Context) -> Prediction:
        messages = [{"role": "user", "content": self.prompt.render(context)}]
        while True:
            place = self._place
            wanted = self.formats[place]
            more: dict[str, Any] = {} if wanted is None else {"response_format": wanted}
            try:
                choice = await self.client.complete(messages, **more)
            except ServiceError as error:
                if wanted is None or not _refuses_format(error):
                    raise
                self._place = max(self._place, place + 1)
            else:
                return Prediction(self._state(choice))

    def _state(self, choice: Mapping[str, Any]) -> BeliefState:
        text, redact = self.client.text_of(choice), self.client.transport.secrets.redact
        try:
            return parse_answer(text, self.normalisation)
        except NoStateError as error:
            # Mask before the text is cut, because a part of a credential would not be found.
            shown = shorten_text(" ".join(redact(text).split()), _SHOWN)
            raise MalformedAnswerError(
                f"the model's answer is not a belief state: {redact(str(error))}; it begins with "
                f"{shown!r}"
            ) from None


def _refuses_format(error: ServiceError) -> bool:
    """Return whether a service refused a request because of its answer format."""
    text = error.text.lower()
    return error.status in REFUSED and any(word in text for word in _FORMAT_WORDS)


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> ChatTracker | ChatReplies:
    """Return the tracker, bot or assistant for the chat model at an address, see `client_at`."""
    return asking(partial(client_at, url, service, settings.tracker), data, settings)


def asking(
    connect: Callable[[], ChatClient],
    data: DialogueSet,
    settings: Settings,
    *,
    has_formats: bool = True,
) -> ChatTracker | ChatReplies:
    """Return the tracker, bot or assistant for a model.

    Prompt and options are checked before ``connect`` is called, so that errors do not wait for a
    service. ``has_formats`` says whether the service supports ``response_format``.
    """
    how, outcome = settings.tracker, settings.reply.outcome
    if how.tool_choice is not None and outcome != TOOL_CALLS:
        raise UserError(
            "--dst-tracker tool-choice applies only to assistants that call tools: add "
            "--dst-outcome=tool-calls, or leave it out"
        )
    if outcome == TOOL_CALLS:
        choice, system = convert_choice(how.tool_choice, data), system_message(how.prompt)
        return ChatCalls(client=connect(), system=system, opening=how.opening, choice=choice)
    if outcome == REPLY:
        system = system_message(how.prompt)
        return ChatReplies(client=connect(), system=system, opening=how.opening)
    # If only some turns have labels, there may be more slots, so no schema lists them.
    others = not data.says_slots
    prompt = Prompt(how.prompt, data.ontology, others=others)
    slots = [] if others else [slot.name for slot in prompt_slots(data.ontology)]
    return ChatTracker(
        client=connect(),
        prompt=prompt,
        formats=answer_formats(slots) if has_formats else (None,),
        normalisation=data.normalisation,
    )
