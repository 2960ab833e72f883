"""A chat model behind an OpenAI-compatible endpoint as a tracker: one request a context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, DialogueSet
from pytest_dstfuzz.dialogue.outcome import REPLY, TOOL_CALLS
from pytest_dstfuzz.errors import MalformedAnswerError, TrackerError, UserError
from pytest_dstfuzz.printable import shortened
from pytest_dstfuzz.trackers.arriving import taker_of
from pytest_dstfuzz.trackers.chat.calls import ChatCalls, chosen
from pytest_dstfuzz.trackers.chat.client import REFUSED, ChatClient, client_at
from pytest_dstfuzz.trackers.chat.parse import NoStateError, parse_answer
from pytest_dstfuzz.trackers.chat.prompt import Prompt, answer_formats, prompt_slots
from pytest_dstfuzz.trackers.chat.replies import ChatReplies, system_message
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.tracker import Prediction, Usage
from pytest_dstfuzz.trackers.web.transport import ServiceError

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
