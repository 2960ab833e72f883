"""A stream of server-sent events that has come to its end: what each event says, as JSON.

The format is that of the HTML standard, section 9.2; ``[DONE]`` ends a stream of a chat model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_dstfuzz.trackers.validation import describe
from pytest_dstfuzz.trackers.web.reply import MalformedReply, Reply

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_DONE: Final = "[DONE]"


def is_stream(reply: Reply) -> bool:
    """Whether a service answered with a stream of events, as it says."""
    return "event-stream" in reply.headers.get("content-type", "").lower()


def events_of(reply: Reply) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON object of each event of a stream.

    Raises:
        MalformedReply: an event is no JSON object, or tells of an error.
    """
    for text in _data(reply.text):
        if text == _DONE:
            return
        event = Reply(reply.status, text.encode(), {}).json()
        if not isinstance(event, Mapping):
            raise MalformedReply(f"streamed {describe(event)} where an object is expected")
        if event.get("error"):
            raise MalformedReply(
                f"ended its stream with an error, {describe(event['error'])}", passing=True
            )
        yield event


def ended_early() -> MalformedReply:
    """Return what is wrong with a stream that ends before its answer does."""
    return MalformedReply("ended its stream before its answer was complete", passing=True)


def _data(text: str) -> Iterator[str]:
    """Yield the data of each event; of the last one too where no blank line ends it."""
    data: list[str] = []
    for line in (*_LINE_END.split(text), ""):
        field, _, value = line.partition(":")
        if not line and data:
            yield "\n".join(data)
            data = []
        elif field == "data":
            data.append(value.removeprefix(" "))
