"""Chat models behind an OpenAI-compatible endpoint, as trackers (extra ``chat``)."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.trackers.chat.prompt import Prompt, answer_formats, prompt_slots
from pytest_dstfuzz.trackers.chat.tracker import ChatTracker, model_name
from pytest_dstfuzz.trackers.schemes import ServiceSettings
from pytest_dstfuzz.trackers.web.transport import Transport

#: Where the API is under an address that names no path.
_DEFAULT_PATH = "/v1"


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> ChatTracker:
    """Return a tracker that asks the chat model at an address.

    The address is that of the API as OpenAI's client takes it, such as
    ``http://localhost:8000/v1``; without a path, ``/v1`` is meant.

    Raises:
        UserError: the prompt cannot be used, no slot is known to ask for, or the name of the model
            is missing and the service does not have exactly one.
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
