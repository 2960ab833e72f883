"""A chat model as a tracker: its prompt, one request a context, and the state in its answer."""

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
from pytest_dstfuzz.printable import shortened
from pytest_dstfuzz.trackers.adapting import taker_of
from pytest_dstfuzz.trackers.chat.client import (
    REFUSED,
    ChatCalls,
    ChatClient,
    ChatReplies,
    chosen,
    client_at,
    system_message,
)
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction, Usage
from pytest_dstfuzz.trackers.web.transport import ServiceError

#: What a model thought aloud before its answer, where the service leaves it in.
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
#: Words in braces, which are no JSON and not meant to be.
_WORDS = re.compile(r"""\{[^{}"':]*\}""")


class NoStateError(TrackerError):
    """An answer that holds no belief state, or more than one."""


def parse_answer(text: str, normalisation: str) -> BeliefState:
    """Return the belief state that an answer holds.

    It is the one JSON object in the text: alone, in a fenced block, or among other words. An
    answer with two different objects is refused, as is a slot with two values, and a value
    that is an object or a list of them. ``null`` is a slot that was not mentioned.
    """
    found = _the_object(_THOUGHTS.sub("", text, count=1))
    for slot, value in found.items():
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, dict | list) for part in parts):
            kind = "an object" if isinstance(value, dict) else "a list of lists or objects"
            raise NoStateError(f"the value of {slot!r} is {kind}, not a text")
    return normalise_state(found, normalisation)


def _the_object(text: str) -> dict[str, Any]:
    """Return the one JSON object in a text."""
    found: list[dict[str, Any]] = []
    start = _OPENING.search(text)
    while start is not None:
        place = start.start()
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            # Half an object must not be skipped: an object inside of it would be found.
            if text[place] == "{" and not _WORDS.match(text, place):
                raise NoStateError("it holds an object that is no JSON, or half of one") from None
            end = place + 1
        else:
            if isinstance(value, dict) and value not in found:
                found.append(value)
            elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
                raise NoStateError("it holds a list of objects")
        start = _OPENING.search(text, end)
    if len(found) > 1:
        raise NoStateError(f"it holds {len(found)} different JSON objects")
    if not found:
        raise NoStateError("it holds no JSON object")
    return found[0]


def _no_number(name: str) -> float:
    raise NoStateError(f"it holds {name}, which is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=each_key_once(lambda key: NoStateError(f"it has two values for {key!r}")),
    parse_constant=_no_number,
)


DEFAULT_PROMPT: Final = Path(__file__).with_name("default_prompt.jinja")
#: Values of a slot that are shown: so many or fewer are all shown, of more a few.
_MOST_VALUES = 12
_FEW_VALUES = 5
#: What Jinja2 calls a template that was given as text.
_INNER_NAME = "<template>"
#: What a template is tried on before a run: both kinds of exchange.
_TRIAL = Context((Exchange("", "I need a room."), Exchange("Which area?", "Any will do.")))


@dataclass(frozen=True, slots=True)
class PromptSlot:
    """A slot as a template sees it."""

    name: str
    #: All values that are known, or a few of them, evenly spread.
    values: tuple[str, ...]
    #: Whether those are all that are known.
    complete: bool


class Prompt:
    """Makes the text of a request.

    Without a ``path`` the default template is used; ``others`` says whether there may be more slots
    than the ontology's. The `UserError` of a template names file and line.
    """

    def __init__(
        self, path: str | None, ontology: Ontology | None, *, others: bool = False
    ) -> None:
        self._slots = prompt_slots(ontology)
        self._others = others
        self._example = _example(self._slots)
        if path is None and not self._slots:
            # A model that is told of no slots invents other names at every turn.
            raise UserError(
                "neither labels nor an ontology say which slots the chat model is to keep. For a "
                "model that replies add --dst-outcome=reply. For belief states name the slots "
                "with the option slots (--dst-slots=order-size,order-crust), in "
                "<data>.ontology.json beside the data, or in a prompt of your own "
                "(--dst-tracker prompt=FILE)"
            )
        self._name = place = DEFAULT_PROMPT if path is None else Path(path)
        # No HTML is made here, so nothing is to be escaped.
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
                f"{place}: the prompt is the same for every dialogue: use exchanges, or user"
            )

    def render(self, context: Context) -> str:
        """Return the text for one context; where the template fails, the message says where."""
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
    """Return the slots of an ontology as a template sees them, sorted by name."""
    if ontology is None:
        return ()
    return tuple(
        PromptSlot(slot, _spread(ontology.values[slot]), len(ontology.values[slot]) <= _MOST_VALUES)
        for slot in ontology.slots
    )


def _spread(values: Sequence[str]) -> tuple[str, ...]:
    """Return all of few values, or a few of many: the first ones would be of one kind."""
    if len(values) <= _MOST_VALUES:
        return tuple(values)
    return tuple(values[place * len(values) // _FEW_VALUES] for place in range(_FEW_VALUES))


def _example(slots: Sequence[PromptSlot]) -> str:
    """Return a belief state of two slots in JSON, the second one ``dontcare``."""
    shown = [slot for slot in slots if slot.values] or slots
    state = {slot.name: (*slot.values, "...")[0] for slot in shown[:1]}
    if len(shown) > 1:
        state[shown[len(shown) // 2].name] = DONTCARE
    return json.dumps(state, ensure_ascii=False)


def _line(error: BaseException) -> int:
    """Return the line of the template at which an exception was raised, from 1."""
    walk = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in walk if frame.f_code.co_filename == _INNER_NAME]
    return lines[-1] if lines else 1


def answer_formats(slots: Sequence[str]) -> tuple[dict[str, Any] | None, ...]:
    """Return the ways to ask for a belief state, each a ``response_format``, the strictest first.

    ``None``: the prompt alone asks for JSON. Where no slots are known there is no schema to ask
    for.
    """
    by_words = {"type": "json_object"}, None
    if not slots:
        return by_words
    # As the strict mode of OpenAI's API wants it: there every property is required and no other
    # is allowed, so a slot that was not mentioned is null. Values are free: a tracker may name a
    # restaurant that no ontology lists.
    schema = {
        "type": "object",
        "properties": {slot: {"type": ["string", "null"]} for slot in slots},
        "required": list(slots),
        "additionalProperties": False,
    }
    named = {"name": "belief_state", "strict": True, "schema": schema}
    return ({"type": "json_schema", "json_schema": named}, *by_words)


#: What such a refusal names where it is about the format of the answer.
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object")

#: Characters of an answer that a message shows.
_SHOWN: Final = 80


@dataclass(eq=False, repr=False, kw_only=True)
class ChatTracker:
    """Asks a chat model for the belief state, at temperature 0.

    How the answer is asked for is negotiated: the strictest format first, and the next one
    for good once the service has refused it.
    """

    #: At temperature 0 too, services answer the same question now so and now so.
    repeatable: ClassVar = False
    #: The API has no version that is known before the first answer and stands for all.
    fingerprint: ClassVar = None

    client: ChatClient
    #: What it is told.
    prompt: Prompt
    #: Ways to ask for JSON, the strictest first, the prompt alone last.
    formats: Sequence[dict[str, Any] | None]
    #: Of the data.
    normalisation: str
    #: Of the format that is asked for.
    _place: int = field(default=0, init=False)

    @property
    def usage(self) -> Usage:
        """What all answers so far took."""
        return self.client.usage

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return a prediction, or why there is none, for each context."""
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
            # Masked before it is cut: half a credential would not be found.
            shown = shortened(" ".join(redact(text).split()), _SHOWN)
            raise MalformedAnswerError(
                f"the model's answer is no belief state: {redact(str(error))}; it begins with "
                f"{shown!r}"
            ) from None


def _refuses_format(error: ServiceError) -> bool:
    """Whether a service refused a request for the format of the answer that it asks for."""
    text = error.text.lower()
    return error.status in REFUSED and any(word in text for word in _FORMAT_WORDS)


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> ChatTracker | ChatReplies:
    """Return what asks the chat model at an address (see `client_at`) for what is tested."""
    return asking(partial(client_at, url, service, settings.tracker), data, settings)


def asking(
    connect: Callable[[], ChatClient],
    data: DialogueSet,
    settings: Settings,
    *,
    has_formats: bool = True,
) -> ChatTracker | ChatReplies:
    """Return what asks a model for what is tested.

    Mistakes in prompt and options are told before it ``connect``s: they should not wait for a
    service. Whether the service has formats of answers, a `ChatTracker` asks for one.
    """
    how, outcome = settings.tracker, settings.reply.outcome
    if how.tool_choice is not None and outcome != TOOL_CALLS:
        raise UserError(
            "--dst-tracker tool-choice is for assistants that call tools: add "
            "--dst-outcome=tool-calls, or leave it out"
        )
    if outcome == TOOL_CALLS:
        choice, system = chosen(how.tool_choice, data), system_message(how.prompt)
        return ChatCalls(client=connect(), system=system, opening=how.opening, choice=choice)
    if outcome == REPLY:
        system = system_message(how.prompt)
        return ChatReplies(client=connect(), system=system, opening=how.opening)
    # Where only some turns have labels, those are not all slots, and no schema may say so.
    others = not data.says_slots
    prompt = Prompt(how.prompt, data.ontology, others=others)
    slots = [] if others else [slot.name for slot in prompt_slots(data.ontology)]
    return ChatTracker(
        client=connect(),
        prompt=prompt,
        formats=answer_formats(slots) if has_formats else (None,),
        normalisation=data.normalisation,
    )
