"""Trackers, bots and assistants from a model behind Anthropic's Messages API."""

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
    """Return the tracker, bot or assistant for the model at an address."""
    connect = partial(
        client_at, url, service_of(url, service), settings.tracker, kind=AnthropicClient
    )
    return asking(connect, data, settings, has_formats=False)
