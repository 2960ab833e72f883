"""SmolLM2-135M-Instruct as a help desk, as a tracker and as a caller of tools.

Each of the three functions asks the server that `transformers serve` starts, with a few examples.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from typing import Any

SERVER = os.environ.get("SMOL_SERVER", "http://localhost:8000/v1")
MODEL = os.environ.get("SMOL_MODEL", "build/smollm2")
#: For each role: the system message, and examples of messages and answers.
HELP_DESK = (
    "You are the help desk of a bicycle shop. Answer in one short sentence.",
    {
        "When do you open on Saturday?": "We open at 9 am on Saturday.",
        "Are you open on Sunday?": "No, we are closed on Sunday.",
        "How much is a repair?": "A repair costs 20 pounds.",
        "How long does a repair take?": "A repair takes two days.",
        "What does it cost to rent a bicycle?": "Renting a bicycle costs 12 pounds a day.",
        "When will my order arrive?": "Your order arrives after three days.",
        "Can I return a helmet?": "Yes, you can return anything within 30 days.",
        "May I bring my dog?": "Yes, dogs are allowed in the shop.",
    },
)
TRACKER = (
    "Extract the booking.",
    {
        "Hello, we are 5 and want to eat on Sunday.": "people=5; day=sunday; time=none",
        "a table at 8 pm": "people=none; day=none; time=8 pm",
        "On Tuesday at noon, please. I come with 2 friends.": "people=3; day=tuesday; time=noon",
    },
)
CALLER = (
    "Write the call of a tool.",
    {
        "A table for 3 on Tuesday.": 'book_table(people=3, day="tuesday")',
        "I must cancel my table on Thursday.": 'cancel_booking(day="thursday")',
        "We are 5 and would like to sit outside on Sunday.": (
            'book_table(people=5, day="sunday", outside=true)'
        ),
    },
)


def said(user: str) -> list[dict[str, str]]:
    """Return a conversation of one message."""
    return [{"role": "user", "content": user}]


def ask(role: tuple[str, dict[str, str]], messages: list[dict[str, str]], tokens: int) -> str:
    """Return the first line of the model's answer, which is cut after some tokens."""
    system, examples = role
    shown = [{"role": "system", "content": system}]
    for asked, answer in examples.items():
        shown += [*said(asked), {"role": "assistant", "content": answer}]
    body = {"model": MODEL, "messages": shown + messages, "temperature": 0, "max_tokens": tokens}
    request = urllib.request.Request(  # noqa: S310 - an address of the user
        f"{SERVER}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as found:  # noqa: S310
        text = json.load(found)["choices"][0]["message"]["content"]
    return str(text).strip().split("\n")[0]


def reply(messages: list[dict[str, str]]) -> str:
    """Return the help desk's reply to the last message."""
    return ask(HELP_DESK, messages, 32)


def track(context: Any) -> dict[str, str]:
    """Return the slots that the model reads in the last message."""
    found: dict[str, str] = {}
    for slot, value in re.findall(r"(\w+)=([^;]+)", ask(TRACKER, said(context.user), 24)):
        found.setdefault(slot, value.strip().lower())
    named = ((slot, found.get(slot, "none")) for slot in ("people", "day", "time"))
    return {f"table-{slot}": value for slot, value in named if value != "none"}


def call(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a message with the call that the model writes for the last message."""
    names = {tool.get("function", tool)["name"] for tool in tools}
    text = ask(CALLER, said(messages[-1]["content"]), 24)
    written = re.match(r"(\w+)\((.*)\)", text)
    if written is None or written[1] not in names:
        return {"role": "assistant", "content": text}
    pairs = re.findall(r"(\w+)=(\"[^\"]*\"|\w+)", written[2])
    arguments = ", ".join(f'"{name}": {value}' for name, value in pairs)
    function = {"name": written[1], "arguments": f"{{{arguments}}}"}
    return {"role": "assistant", "tool_calls": [{"function": function}]}
