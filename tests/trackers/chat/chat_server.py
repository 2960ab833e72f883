"""A small OpenAI-compatible service on loopback that answers as a test wants it to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from loopback import Asked, Says, Service, serving

Reply = Callable[[Asked], Says]
#: What the default prompt and that of `PROMPT` put before each user utterance.
PROMPT = "{% for exchange in exchanges %}\nUser: {{ exchange.user }}\n{% endfor %}"


def completion(text: str | None, *, finish: str = "stop", **more: Any) -> Says:
    """Return a chat completion with 10 tokens in and 5 out; ``more`` overrides its keys."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": finish, "message": message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return Says({"object": "chat.completion", "choices": [choice], "usage": usage, **more})


def state(**slots: str | None) -> Says:
    """Return a completion with a belief state; ``hotel_area`` is ``hotel-area``."""
    return completion(json.dumps({name.replace("_", "-"): slots[name] for name in slots}))


def refusal(status: int, message: str) -> Says:
    return Says({"error": {"message": message}}, status)


def prompt_of(asked: Asked) -> str:
    """Return the text that a request asks about."""
    (message,) = asked.body["messages"]
    assert message["role"] == "user"
    return str(message["content"])


def said(asked: Asked) -> list[str]:
    """Return the user utterances of the dialogue that a request asks about."""
    lines = prompt_of(asked).splitlines()
    return [line.removeprefix("User: ") for line in lines if line.startswith("User: ")]


def format_of(asked: Asked) -> str:
    """Return how a request asks for its answer."""
    return str(asked.body.get("response_format", {"type": "prompt"})["type"])


@contextmanager
def chat(reply: Reply, models: Sequence[str] = ("tiny",)) -> Iterator[Service]:
    """Serve a chat model whose completions are ``reply``'s."""

    def answer(asked: Asked) -> Says:
        if (asked.method, asked.path) == ("GET", "/v1/models"):
            return Says({"object": "list", "data": [{"id": name} for name in models]})
        assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
        return reply(asked)

    with serving(answer) as service:
        yield service


def asked_about(service: Service) -> list[Asked]:
    """Return the requests for completions."""
    return [asked for asked in service.asked if asked.method == "POST"]
