"""A chat model behind an OpenAI-compatible endpoint as a tracker: one request a context."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit, urlunsplit

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet
from pytest_dstfuzz.errors import GivenUpError, NoAnswerError, TrackerError, UserError
from pytest_dstfuzz.printable import shortened
from pytest_dstfuzz.trackers.chat.parse import NoStateError, parse_answer
from pytest_dstfuzz.trackers.chat.prompt import Prompt, answer_formats, prompt_slots
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction, Usage
from pytest_dstfuzz.trackers.validation import describe
from pytest_dstfuzz.trackers.web.transport import MalformedReply, Reply, ServiceError, Transport

#: Where the API is under an address that names no path.
_DEFAULT_PATH = "/v1"
#: Names of models that a message lists.
_LISTED: Final = 10


def model_name(transport: Transport) -> str:
    """Return the name of the service's only model; none or several are a `UserError`."""
    which = "name the model with --dst-tracker service-model=NAME"
    try:
        names = transport.ask("GET", "models", read=_names)
    except GivenUpError:
        raise
    except TrackerError as error:
        if isinstance(error, ServiceError) and error.status is None:
            raise NoAnswerError(str(error)) from None
        raise UserError(f"{which}: the service does not list its models ({error})") from None
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    listed = transport.secrets.redact(shown) or "none"
    raise UserError(f"{which}: the service at {transport.address} lists {listed}")


def _names(reply: Reply) -> list[str]:
    body = reply.json()
    listed = body.get("data") if isinstance(body, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    names = (entry.get("id") for entry in entries if isinstance(entry, Mapping))
    return sorted(name for name in names if isinstance(name, str))


#: Statuses with which a service refuses a request for what it asks.
_REFUSED: Final = (400, 422)
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

    #: To the address that the API's paths are joined to.
    transport: Transport
    #: The name under which the service knows the model.
    model: str
    #: What it is told.
    prompt: Prompt
    #: Ways to ask for JSON, the strictest first, the prompt alone last.
    formats: Sequence[dict[str, Any] | None]
    #: Of the data.
    normalisation: str
    #: Money for a million tokens of prompts, and of answers; ``None`` = not known.
    prices: tuple[float, float] | None
    _used: Usage = field(default_factory=Usage, init=False)
    #: Of the format that is asked for.
    _place: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def usage(self) -> Usage:
        """What all answers so far took."""
        used = self._used
        if self.prices is None:
            return used
        per_prompt, per_answer = self.prices
        cost = (used.prompt_tokens * per_prompt + used.completion_tokens * per_answer) / 1e6
        return replace(used, cost=cost)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction | TrackerError]:
        """Return a prediction, or why there is none, for each context."""
        return self.transport.map([partial(self._predict, context) for context in contexts])

    def _predict(self, context: Context) -> Prediction:
        message = {"role": "user", "content": self.prompt.render(context)}
        body = {"model": self.model, "messages": [message], "temperature": 0}
        while True:
            place = self._place
            wanted = self.formats[place]
            full = body if wanted is None else {**body, "response_format": wanted}
            try:
                usage, choice = self.transport.ask(
                    "POST", "chat/completions", full, read=_completion
                )
            except ServiceError as error:
                if wanted is None or not _refuses_format(error):
                    raise
                with self._lock:
                    self._place = max(self._place, place + 1)
            else:
                with self._lock:
                    self._used += usage
                return Prediction(self._state(choice))

    def _state(self, choice: Mapping[str, Any]) -> BeliefState:
        """Return the belief state of a choice.

        Where the model refused, was cut off, or wrote something else, it is not asked again: at
        temperature 0 that is its answer.
        """
        message = choice["message"]
        text, refusal = message.get("content"), message.get("refusal")
        redact = self.transport.secrets.redact
        if refusal:
            raise TrackerError(redact(f"the model refused to answer: {refusal}"))
        if choice.get("finish_reason") == "length":
            raise TrackerError("the model's answer was cut off: the service limits its length")
        if not isinstance(text, str):
            raise TrackerError("the model's answer holds no text")
        try:
            return parse_answer(text, self.normalisation)
        except NoStateError as error:
            # Masked before it is cut: half a credential would not be found.
            shown = shortened(" ".join(redact(text).split()), _SHOWN)
            raise TrackerError(
                f"the model's answer is no belief state: {redact(str(error))}; it begins with "
                f"{shown!r}"
            ) from None


def _completion(reply: Reply) -> tuple[Usage, Mapping[str, Any]]:
    """Return what a chat completion took, and its first choice."""
    body = reply.json()
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        # Some put a failure that will pass into an answer of status 200.
        passing = isinstance(body, Mapping) and "error" in body
        raise MalformedReply(
            f"answered with no chat completion, {describe(body)}: it has no choices[0].message",
            passing=passing,
        )
    return _counted(body.get("usage")), choice


def _counted(counts: object) -> Usage:
    """Return what one answer took: its ``usage``; anything else gives no counts."""
    found = counts if isinstance(counts, Mapping) else {}
    prompt, completion = found.get("prompt_tokens"), found.get("completion_tokens")
    # True is an int to Python, but it is no number of tokens.
    if type(prompt) is type(completion) is int and min(prompt, completion) >= 0:
        return Usage(1, 0, prompt, completion)
    return Usage(1, 1)


def _refuses_format(error: ServiceError) -> bool:
    """Whether a service refused a request for the format of the answer that it asks for."""
    text = error.text.lower()
    return error.status in _REFUSED and any(word in text for word in _FORMAT_WORDS)


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> ChatTracker:
    """Return a tracker that asks the chat model at an address.

    The address is that of the API as OpenAI's client takes it, such as
    ``http://localhost:8000/v1``; without a path, ``/v1`` is meant.
    """
    # The prompt first: a mistake in it should not wait for a service.
    # Where only some turns have labels, those are not all slots, and no schema may say so.
    others = not data.says_slots
    prompt = Prompt(settings.tracker.prompt, data.ontology, others=others)
    slots = [] if others else [slot.name for slot in prompt_slots(data.ontology)]
    transport = Transport(_with_path(url), service)
    return ChatTracker(
        transport=transport,
        model=settings.tracker.service_model or model_name(transport),
        prompt=prompt,
        formats=answer_formats(slots),
        normalisation=data.normalisation,
        prices=settings.tracker.prices,
    )


def _with_path(url: Address) -> Address:
    try:
        parts = urlsplit(url.full)
    except ValueError:
        # The transport says what is wrong with it.
        return url
    if parts.path not in ("", "/"):
        return url
    return Address(urlunsplit(parts._replace(path=_DEFAULT_PATH)))
