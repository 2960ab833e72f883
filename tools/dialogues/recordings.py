"""Counts turns, calls and labels in recordings, to check the counts of the readers.

``python -m tools.dialogues.recordings FOLDER`` reads ``FOLDER/FORM/FILE`` for each form below. The
counts are independent of the readers. They look at the keys of each form, and write a conversation
as letters: ``u`` for words of the user, ``c`` for a call, ``r`` for a result and ``s`` for words of
the assistant. The exit status is 1 if a figure differs.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.messages import decode_message
from pytest_dstfuzz.errors import UserError

#: Dialogues, turns, calls, and turns whose next message has a call.
Figures = tuple[int, int, int, int]
OPEN_AI = {"user": "u", "assistant": "s", "tool": "r", "function": "r"}


def values(path: Path) -> list[Any]:
    """Return the values in a file of JSON or JSON Lines."""
    text = path.read_text("utf-8")
    try:
        found = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return found if isinstance(found, list) else [found]


def chat(messages: list[Any], calls: str = "tool_calls") -> str:
    """Return the letters of messages with roles."""
    made = []
    for one in messages:
        letter = OPEN_AI.get(one["role"], "")
        made.append("c" * len(one.get(calls) or ()) or letter)
    return "".join(made)


def each(key: str) -> Callable[[Path], list[str]]:
    """Return a function that counts the messages under a key."""
    return lambda path: [chat(one[key]) for one in values(path)]


def sharegpt(path: Path) -> list[str]:
    """Count conversations with ``from`` and ``value``."""
    letters = {"human": "u", "function_call": "c", "observation": "r", "gpt": "s"}
    return [
        "".join(letters.get(m["from"], "") for m in one["conversations"]) for one in values(path)
    ]


def parts_with_value(path: Path) -> list[str]:
    """Count LLaMA-Factory's messages, whose parts have a ``value``."""
    kinds = {"text": "s", "tool_call": "c"}
    found = []
    for one in values(path):
        said = one.get("messages") or one["chosen_messages"]
        found.append(
            "".join(
                "".join(kinds.get(p["type"], "") for p in m["content"])
                if m["role"] == "assistant"
                else OPEN_AI.get(m["role"], "")
                for m in said
            )
        )
    return found


def bfcl(path: Path) -> list[str]:
    """Count the questions of BFCL, and the calls in the file of answers."""
    beside = path.parent / "possible_answer" / path.name
    truth = {one["id"]: one["ground_truth"] for one in values(beside)} if beside.exists() else {}
    found = []
    for one in values(path):
        answers = truth.get(one["id"], [])
        many = (bool(answers) and isinstance(answers[0], list)) or len(one["question"]) > 1
        text = ""
        for number, said in enumerate(one["question"]):
            text += "u" * sum(message["role"] == "user" for message in said)
            given = (answers[number] if number < len(answers) else []) if many else answers
            for call in given if said else ():
                if isinstance(call, dict) or "(" in call:
                    unnamed = isinstance(call, str) and not re.search(r"\(\s*(\w+\s*=|\))", call)
                    text += "x" if unnamed else "c"
        found.append(text)
    return found


def tooltalk(path: Path) -> list[str]:
    """Count a conversation of ToolTalk. Each of its calls has a result."""
    (talk,) = values(path)
    said = ("cr" * len(one.get("apis", ())) + OPEN_AI[one["role"]] for one in talk["conversation"])
    return ["".join(said)]


def api_bank(path: Path) -> list[str]:
    """Count a file of API-Bank. Each of its calls has a result."""
    return ["".join({"User": "u", "AI": "s", "API": "cr"}[one["role"]] for one in values(path))]


def inspect(path: Path) -> list[str]:
    """Count the samples of inspect_ai."""
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as log:
            samples = [json.loads(log.read(n)) for n in log.namelist() if n.startswith("samples/")]
    else:
        samples = values(path)[0]["samples"]
    return [chat(sample["messages"]) for sample in samples]


def parts(contents: list[Any]) -> str:
    """Return the letters of Gemini's contents, with both spellings of the keys."""
    text = ""
    for one in contents:
        for part in one["parts"]:
            if part.get("functionCall") or part.get("function_call"):
                text += "c"
            elif part.get("functionResponse") or part.get("function_response"):
                text += "r"
            elif part.get("text") and not part.get("thought"):
                text += "u" if one["role"] == "user" else "s"
    return text


def adk(path: Path) -> list[str]:
    """Count cases, sessions and lists of Google ADK."""
    found = values(path)
    if "query" in found[0]:
        return ["".join("u" + "c" * len(turn["expected_tool_use"]) + "s" for turn in found)]
    (whole,) = found
    if "events" in whole:
        return [parts([event["content"] for event in whole["events"]])]
    return [
        "".join(
            f"u{'c' * len(turn['intermediate_data']['tool_uses'])}s"
            for turn in case["conversation"]
        )
        for case in whole["eval_cases"]
    ]


def gemini(path: Path) -> list[str]:
    """Count requests, histories and logs of Gemini."""
    found = values(path)
    if "parts" in found[0]:
        return [parts(found)]
    if "request" in found[0]:
        answer = [one["response"]["candidates"][0]["content"] for one in found]
        return [parts([*one["request"]["contents"], answer[n]]) for n, one in enumerate(found)]
    return [parts(one["contents"]) for one in found]


def langchain(path: Path) -> list[str]:
    """Count messages of LangChain, as a list or as a state."""
    found = values(path)
    listed = found[0].get("messages", found)
    text = ""
    for one in listed:
        inner = one.get("data") or one.get("kwargs") or one
        kind = str(inner.get("type"))
        calls = "c" * len(inner.get("tool_calls") or ())
        text += {"human": "u", "ai": calls or "s", "tool": "r"}.get(kind, "")
    return [text]


def langsmith(path: Path) -> list[str]:
    """Count runs of LangSmith.

    Only the run with the most messages counts: the others begin like it.
    """
    last = max(values(path), key=lambda one: len(one["inputs"]["messages"][0]))
    (batch,) = last["inputs"]["messages"]
    answer = last["outputs"]["generations"][0][0]["message"]["kwargs"]
    text = "".join(
        {
            "human": "u",
            "ai": "c" * len(one["kwargs"].get("tool_calls") or ()) or "s",
            "tool": "r",
        }.get(one["kwargs"]["type"], "")
        for one in batch
    )
    return [text + ("c" * len(answer.get("tool_calls") or ()) or "s")]


def langfuse(path: Path) -> list[str]:
    """Count observations and items, without those that others continue."""
    found = []
    for one in values(path):
        output = one.get("output") or one.get("expectedOutput")
        found.append(chat([*one["input"], output]))
    return [one for one in found if not any(o != one and o.startswith(one) for o in found)]


def spans(path: Path) -> list[str]:
    """Count spans. Only the span with the most messages counts, as for LangSmith."""
    texts = re.findall(r'"gen_ai\.input\.messages":\s*("(?:[^"\\]|\\.)*")', path.read_text("utf-8"))
    texts += re.findall(
        r'"gen_ai\.input\.messages",\s*"value":\s*\{\s*"stringValue":\s*("(?:[^"\\]|\\.)*")',
        path.read_text("utf-8"),
    )
    longest = max((json.loads(json.loads(text)) for text in texts), key=len)
    kinds = {"tool_call": "c", "tool_call_response": "r"}
    letters = (
        kinds.get(part["type"], "u" if one["role"] == "user" else "s")
        for one in longest
        if one["role"] != "system"
        for part in one["parts"]
    )
    return ["".join(letters) + "s"]


def pydantic_ai(path: Path) -> list[str]:
    """Count the parts of pydantic-ai."""
    kinds = {"user-prompt": "u", "text": "s", "tool-call": "c", "tool-return": "r"}
    return ["".join(kinds.get(p["part_kind"], "") for m in values(path) for p in m["parts"])]


def items(listed: list[Any] | str) -> str:
    """Return the letters of items of Responses."""
    kinds = {"function_call": "c", "function_call_output": "r"}
    if isinstance(listed, str):
        return "u"
    return "".join(kinds.get(o.get("type", ""), OPEN_AI.get(o.get("role", ""), "")) for o in listed)


def responses(path: Path) -> list[str]:
    """Count items of Responses, with those of a response."""
    found = values(path)
    if "response" not in found[0]:
        return [items(found)]
    return [
        items(one.get("request", one)["input"]) + items(one["response"]["output"]) for one in found
    ]


def requests(path: Path) -> list[str]:
    """Count requests with their answers."""
    found = []
    for one in values(path):
        asked = one.get("request") or one.get("body") or one.get("input") or one
        answer = [choice["message"] for choice in one.get("response", {}).get("choices", ())]
        found.append(chat([*asked["messages"], *answer, *one.get("preferred_output", ())]))
    return found


def bedrock(path: Path) -> list[str]:
    """Count messages of Bedrock."""
    found = []
    for one in values(path):
        said = list(one.get("request", one)["messages"])
        said += [one["response"]["output"]["message"]] if "response" in one else []
        kinds = ((message["role"], part) for message in said for part in message["content"])
        found.append(
            "".join(
                "c" if "toolUse" in p else "r" if "toolResult" in p else OPEN_AI[role]
                for role, p in kinds
            )
        )
    return found


def rasa_tests(path: Path) -> list[str]:
    """Count stories of Rasa. Only those count in which every user message has words."""
    found = []
    for story in YAML(typ="safe").load(path)["stories"]:
        users = [one for one in story["steps"] if "intent" in one or "user" in one]
        said = [one["user"] for one in users if "user" in one]
        if len(said) == len(users):
            found.append("u" * sum(not text.startswith("/") for text in said))
    return [one for one in found if one]


def rasa_nlu(path: Path) -> list[str]:
    """Count the examples of intents."""
    listed = YAML(typ="safe").load(path)["nlu"]
    texts = (one["examples"] for one in listed if "intent" in one)
    return ["u" for text in texts for line in text.splitlines() if line.strip().startswith("-")]


def tau_bench(path: Path) -> list[str]:
    """Count trajectories of tau-bench. The last word of the simulated user is no turn."""
    stop = "###STOP###"
    return [chat([m for m in one["traj"] if m.get("content") != stop]) for one in values(path)]


COUNTS: dict[str, Callable[[Path], list[str]]] = {
    "adk": adk,
    "alpaca": lambda path: ["us" for _ in values(path)],
    "api-bank": api_bank,
    "bedrock": bedrock,
    "bfcl": bfcl,
    "fine-tuning": each("messages"),
    "gemini": gemini,
    "inspect": inspect,
    "langchain": langchain,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "llama-factory-v1": parts_with_value,
    "otel": spans,
    "pydantic-ai": pydantic_ai,
    "rasa-nlu": rasa_nlu,
    "rasa-tests": rasa_tests,
    "requests": requests,
    "responses": responses,
    "sharegpt": sharegpt,
    "tau-bench": tau_bench,
    "tau2-bench": lambda path: [
        chat([m for m in one["messages"] if m.get("requestor") != "user" and not by_user(m)])
        for one in values(path)[0]["simulations"]
    ],
    "tooltalk": tooltalk,
}


def by_user(message: Any) -> bool:
    """Return whether a message has only calls of the simulated user."""
    return bool(message["role"] == "user" and message.get("tool_calls") and not message["content"])


def figures(conversations: list[str]) -> Figures:
    """Return the figures of conversations that are written as letters.

    ``x`` is a call without label.
    """
    turns = [re.split("r", part)[0] for one in conversations for part in one.split("u")[1:]]
    labels = sum("c" in turn and "x" not in turn for turn in turns)
    calls = sum(one.count("c") + one.count("x") for one in conversations)
    return len(conversations), len(turns), calls, labels


def read_figures(path: Path) -> Figures:
    """Return the same figures, as the readers count."""
    data = load_dialogues(path, outcome="tool-calls")
    texts = (
        text
        for one in data.dialogues
        for text in (*(t for turn in one.turns for t in turn.recorded or ()), *one.closing)
    )
    calls = sum(len(decode_message(text).calls) for text in texts)
    labels = sum(bool(turn.calls) for turn in data.turns())
    return len(data.ids), data.turn_count(), calls, labels


def compared(folder: Path) -> Iterator[tuple[str, bool]]:
    """For each file, yield a line and whether both counts agree."""
    for form, count in COUNTS.items():
        for path in sorted((folder / form).glob("*.*")):
            own = figures(count(path))
            try:
                read: Figures | str = read_figures(path)
            except UserError as error:
                read = str(error)
            same = read == own
            yield f"{'same' if same else 'DIFFERS':8} {form:18} {path.name:50} {own} {read}", same


if __name__ == "__main__":
    agree = True
    for line, same in compared(Path(sys.argv[1])):
        print(line, flush=True)
        agree &= same
    sys.exit(not agree)
