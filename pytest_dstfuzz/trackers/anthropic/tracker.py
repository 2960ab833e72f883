"""A model behind Anthropic's Messages API, asked for what is tested: one request a context."""

from __future__ import annotations

from functools import partial

from pytest_dstfuzz.config import Address, Settings
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.trackers.anthropic.client import AnthropicClient, service_of
from pytest_dstfuzz.trackers.chat.client import ChatReplies, client_at
from pytest_dstfuzz.trackers.chat.tracker import ChatTracker, asking
from pytest_dstfuzz.trackers.schemes import ServiceSettings


def create(
    url: Address, service: ServiceSettings, data: DialogueSet, settings: Settings
) -> ChatTracker | ChatReplies:
    """Return what asks the model at an address for what is tested."""
    connect = partial(
        client_at, url, service_of(url, service), settings.tracker, kind=AnthropicClient
    )
    return asking(connect, data, settings, has_formats=False)
