"""A dialogue as the messages that chat systems are given."""

from __future__ import annotations

from typing import Literal

from pytest_dstfuzz.dialogue.dialogues import Context

#: Whose message is what the system says before the user has said anything: a greeting, or a
#: title and a story that the questions are about.
OpeningRole = Literal["assistant", "system"]


def messages_of(context: Context, opening: OpeningRole = "assistant") -> list[dict[str, str]]:
    """Return a dialogue as messages in the form of OpenAI's API, oldest first.

    Each has a ``role``, ``user`` or ``assistant``, and its text as ``content``; where the system
    said nothing, there is no message of it. What it said before the first user utterance has the
    role ``opening``.
    """
    messages = []
    role: str = opening
    for system, user in context.exchanges:
        if system:
            messages.append({"role": role, "content": system})
        messages.append({"role": "user", "content": user})
        role = "assistant"
    return messages
