"""Recordings of frameworks and benchmarks: each small file here has the keys of a real one."""

import json
import struct
import sys
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet, answer_of
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.messages import Message, decode_message
from pytest_dstfuzz.dialogue.readers.forms import FORMS
from pytest_dstfuzz.dialogue.readers.registry import find_readers
from pytest_dstfuzz.dialogue.readers.source import ReadOptions, SourceFile, begun_json
from pytest_dstfuzz.errors import DataError

#: What each conversation says: two users' turns, one or two calls after the first.
ASKS, THANKS = "a kayak for two", "thank you"
SCHEMA = {"type": "object", "properties": {"seats": {"type": "integer"}}}
RENT = {"name": "rent", "description": "Rent a boat.", "parameters": SCHEMA}
ARGUMENTS = {"seats": 2}
TEXT = json.dumps(ARGUMENTS)
#: The same in OpenAI's form.
USER = {"role": "user", "content": ASKS}
CALL = {"id": "c1", "type": "function", "function": {"name": "rent", "arguments": TEXT}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "rented"}
SAYS = {"role": "assistant", "content": "It is yours."}
AGAIN = {"role": "user", "content": THANKS}
BYE = {"role": "assistant", "content": "Bye."}
STOP = {"role": "user", "content": "###STOP###"}
CHAT = [USER, CALLS, RESULT, SAYS, AGAIN, BYE]


class Case(NamedTuple):
    layout: str
    content: Any
    #: Users' turns, calls, labels with a call, and names of tools.
    turns: int = 2
    calls: int = 1
    labels: int = 1
    tools: tuple[str, ...] = ("rent",)
    name: str = "a.json"
    prompt: str = ""


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def human(text: str) -> dict[str, Any]:
    return {"from": "human", "value": text}


def said(role: str, **part: Any) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASKS}]},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "rent", "arguments": TEXT},
    {"type": "function_call", "id": "fc2", "call_id": "c2", "name": "rent", "arguments": TEXT},
    {"type": "function_call_output", "call_id": "c1", "output": "rented"},
    {"type": "function_call_output", "call_id": "c2", "output": "rented"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Both are yours.", "annotations": []}],
    },
    {"role": "user", "content": THANKS},
]
RESPONSE = {"object": "response", "id": "r1", "output": ITEMS[2:4], "instructions": "Rent boats."}
COMPLETION = {"object": "chat.completion", "id": "x", "choices": [{"index": 0, "message": CALLS}]}
REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [USER],
    "tools": [{"type": "function", "function": RENT}],
}
LANGCHAIN: list[dict[str, Any]] = [
    {"type": "system", "content": "Rent boats."},
    {"type": "human", "content": ASKS},
    {"type": "ai", "content": "", "tool_calls": [{"name": "rent", "args": ARGUMENTS, "id": "c1"}]},
    {"type": "tool", "content": "rented", "tool_call_id": "c1"},
    {"type": "ai", "content": [{"type": "text", "text": "It is yours."}], "tool_calls": []},
    {"type": "human", "content": THANKS},
]
#: The begin of a prompt in one text, as LangChain writes it for models without chat.
PROMPT = f"System: Rent boats.\nHuman: {ASKS}\nAI: Yes.{LANGCHAIN[2]['tool_calls']}\nTool: rented\n"
CLASSES = {
    "system": "SystemMessage",
    "human": "HumanMessage",
    "ai": "AIMessage",
    "tool": "ToolMessage",
}
PYDANTIC = [
    {
        "kind": "request",
        "parts": [
            {"part_kind": "system-prompt", "content": "Rent boats."},
            {"part_kind": "user-prompt", "content": ASKS},
        ],
    },
    {
        "kind": "response",
        "parts": [
            {"part_kind": "tool-call", "tool_name": "rent", "args": TEXT, "tool_call_id": "c1"}
        ],
    },
    {
        "kind": "request",
        "parts": [
            {
                "part_kind": "tool-return",
                "tool_name": "rent",
                "content": {"ok": True},
                "tool_call_id": "c1",
            }
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "It is yours."}]},
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [THANKS]}]},
]
GEMINI = [
    said("user", text=ASKS),
    {
        "role": "model",
        "parts": [
            {"thought": True, "text": "A boat."},
            {"functionCall": {"name": "rent", "args": ARGUMENTS}},
        ],
    },
    said("user", functionResponse={"name": "rent", "response": {"ok": True}}),
    said("model", text="It is yours."),
    said("user", text=THANKS),
]
DECLARED = {
    "name": "rent",
    "parameters": {"type": "OBJECT", "properties": {"seats": {"type": "INTEGER"}}},
}
BEDROCK: dict[str, Any] = {
    "modelId": "m",
    "system": [{"text": "Rent boats."}],
    "messages": [
        {"role": "user", "content": [{"text": ASKS}]},
        {
            "role": "assistant",
            "content": [
                {"text": "Let me see."},
                {"toolUse": {"toolUseId": "t1", "name": "rent", "input": ARGUMENTS}},
            ],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "t1", "content": [{"json": {"ok": True}}]}}],
        },
        {"role": "assistant", "content": [{"text": "It is yours."}]},
        {"role": "user", "content": [{"text": THANKS}]},
    ],
    "toolConfig": {"tools": [{"toolSpec": {"name": "rent", "inputSchema": {"json": SCHEMA}}}]},
}
OTEL = [
    {"role": "user", "parts": [{"type": "text", "content": ASKS}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "rent", "arguments": ARGUMENTS}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rented"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "It is yours."}]},
    {"role": "user", "parts": [{"type": "text", "content": THANKS}]},
]
SPAN: dict[str, Any] = {
    "traceId": "t",
    "name": "chat",
    "attributes": {
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Rent boats."}]),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **RENT}]),
        "gen_ai.input.messages": json.dumps(OTEL),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "Bye."}]}]
        ),
    },
}
OTLP = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            **SPAN,
                            "attributes": [
                                {"key": key, "value": {"stringValue": value}}
                                for key, value in SPAN["attributes"].items()
                            ],
                        },
                        {"name": "http", "attributes": [{"key": "a", "value": {"intValue": "1"}}]},
                    ]
                }
            ]
        }
    ]
}
INVOCATION = {
    "invocation_id": "i",
    "user_content": said("user", text=ASKS, function_call=None),
    "final_response": {**said("model", text="It is yours."), "role": None},
    "intermediate_data": {"tool_uses": [{"id": None, "name": "rent", "args": ARGUMENTS}]},
}
SAMPLE = {
    "id": "s1",
    "epoch": 1,
    "messages": [
        {"role": "user", "content": "attachment://f0", "source": "input", "id": "m1"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": "rent", "arguments": ARGUMENTS}],
        },
        {"role": "tool", "content": "rented", "tool_call_id": "c1", "function": "rent"},
        {"role": "assistant", "content": [{"type": "text", "text": "It is yours."}]},
        AGAIN,
    ],
    "attachments": {"f0": ASKS},
    "events": [{"event": "model", "tools": [RENT]}],
}
LOG = {"version": 2, "status": "success", "eval": {"task": "boats"}, "plan": {}}
TAU2 = [
    {"role": "assistant", "content": "Hello, how can I help?", "tool_calls": None},
    {**USER, "tool_calls": [{"id": "u1", "name": "look", "arguments": {}, "requestor": "user"}]},
    {"role": "tool", "id": "u1", "content": "seen", "requestor": "user"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "name": "rent", "arguments": ARGUMENTS, "requestor": "assistant"}
        ],
    },
    {"role": "tool", "id": "c1", "content": "rented", "requestor": "assistant", "error": False},
    {**SAYS, "turn_idx": 4},
    AGAIN,
]


def observation(name: str, given: Any, answer: Any, kind: str = "GENERATION") -> dict[str, Any]:
    texts = json.dumps(given), json.dumps(answer)
    return {"id": name, "traceId": "t", "type": kind, "input": texts[0], "output": texts[1]}


GLAIVE_CALL = f'<functioncall> {{"name": "rent", "arguments": \'{TEXT}\'}} <|endoftext|>'
CASES = {
    "ShareGPT": Case(
        "sharegpt",
        [
            {
                "system": "Rent boats.",
                "tools": json.dumps([RENT]),
                "conversations": [
                    human(ASKS),
                    {"from": "function_call", "value": f'{{"name": "rent", "arguments": {TEXT}}}'},
                    {"from": "observation", "value": "rented"},
                    {"from": "gpt", "value": "It is yours."},
                    human(THANKS),
                    {"from": "gpt", "value": "Bye."},
                ],
            }
        ],
        prompt="Rent boats.",
    ),
    "ShareGPT with calls in texts": Case(
        "sharegpt",
        {
            "conversations": [
                human(ASKS),
                {
                    "from": "gpt",
                    "value": f'Yes.\n<tool_call>\n{{"name": "rent", "arguments": {TEXT}}}\n'
                    "</tool_call>",
                },
                {"from": "tool", "value": "rented"},
                {"from": "gpt", "value": "It is yours."},
            ]
        },
        turns=1,
        tools=(),
    ),
    "preferences of ShareGPT": Case(
        "sharegpt",
        [{"conversations": [human(ASKS)], "chosen": {"from": "gpt", "value": "Yes."}}],
        turns=1,
        calls=0,
        labels=0,
        tools=(),
    ),
    "LLaMA-Factory v1": Case(
        "messages",
        lines(
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "value": ASKS}]},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "reasoning", "value": "A boat."},
                            {
                                "type": "tool_call",
                                "value": f'{{"name": "rent", "arguments": {TEXT}}}',
                            },
                        ],
                    },
                    {"role": "tool", "content": [{"type": "text", "value": "rented"}]},
                ],
                "tools": json.dumps([RENT]),
            }
        ),
        turns=1,
    ),
    "Alpaca": Case(
        "alpaca",
        [
            {
                "instruction": THANKS,
                "input": "",
                "output": "Bye.",
                "history": [[ASKS, "It is yours."]],
            }
        ],
        calls=0,
        labels=0,
        tools=(),
    ),
    "Glaive": Case(
        "glaive",
        [
            {
                "system": f"SYSTEM: Rent boats.\n{json.dumps(RENT, indent=2)}\n",
                "chat": f"USER: {ASKS}\n\n\nASSISTANT: {GLAIVE_CALL}\n\n\nFUNCTION RESPONSE: "
                f"{{}}\n\n\nASSISTANT: It is yours. <|endoftext|>\n\n\nUSER: {THANKS}\n",
            }
        ],
    ),
    "tau-bench": Case(
        "tau",
        [{"task_id": 0, "reward": 1.0, "info": {}, "traj": [*CHAT, STOP], "trial": 0}] * 2,
        4,
        2,
        2,
        (),
    ),
    "tau2-bench": Case(
        "tau",
        {"info": {}, "tasks": [], "simulations": [{"id": "s", "task_id": "1", "messages": TAU2}]},
        tools=(),
    ),
    "tau2-bench, a single simulation": Case(
        "tau",
        {"id": "s", "task_id": "1", "termination_reason": "user_stop", "messages": [*TAU2, STOP]},
        tools=(),
    ),
    "ToolBench": Case(
        "toolbench",
        {
            "win": True,
            "tree": {"size": 3},
            "answer_generation": {
                "query": ASKS,
                "function": [RENT],
                "train_messages": [
                    [USER],
                    [
                        {"role": "user", "content": f"\n{ASKS}\nBegin!\n"},
                        {"role": "user", "content": "Try again."},
                        {
                            "role": "assistant",
                            "content": None,
                            "function_call": {"name": "rent", "arguments": TEXT},
                        },
                        {"role": "function", "name": "rent", "content": "rented"},
                    ],
                ],
            },
        },
        turns=1,
    ),
    "ms-swift": Case(
        "requests",
        lines({"query": THANKS, "response": "Bye.", "history": [[ASKS, "It is yours."]]}),
        calls=0,
        labels=0,
        tools=(),
    ),
    "BFCL": Case("bfcl", lines({"id": "b1", "question": [[USER]], "function": [RENT]}), 1, 0, 0),
    "BFCL of several turns": Case(
        "bfcl",
        lines({"id": "b1", "question": [[USER], [AGAIN]], "involved_classes": ["Boats"]}),
        2,
        0,
        0,
        (),
    ),
    "BFCL with a question alone": Case(
        "bfcl", lines({"question": ASKS, "function": ""}), 1, 0, 0, ()
    ),
    "ToolTalk": Case(
        "tooltalk",
        {
            "name": "boats",
            "conversation_id": "t1",
            "apis_used": ["rent"],
            "conversation": [
                {"index": 0, "role": "user", "text": ASKS},
                {
                    "index": 1,
                    "role": "assistant",
                    "text": "It is yours.",
                    "apis": [
                        {
                            "request": {"api_name": "rent", "parameters": ARGUMENTS},
                            "response": {"ok": True},
                            "exception": None,
                        }
                    ],
                },
                {"index": 2, "role": "user", "text": THANKS},
            ],
        },
        tools=(),
    ),
    "API-Bank": Case(
        "messages",
        lines(
            {"role": "User", "text": ASKS},
            {"role": "AI", "text": "Let me see."},
            {"role": "API", "api_name": "rent", "param_dict": ARGUMENTS, "result": {"ok": True}},
            {"role": "AI", "text": "It is yours."},
            {"role": "User", "text": THANKS},
        ),
        tools=(),
        name="a.jsonl",
    ),
    "items of Responses": Case("messages", ITEMS, calls=2, tools=()),
    "Responses beside their input": Case(
        "requests",
        lines({"input": ITEMS, "response": RESPONSE}, {"input": THANKS, "response": RESPONSE}),
        turns=3,
        calls=6,
        labels=3,
        tools=(),
        prompt="Rent boats.",
    ),
    "chat completions": Case(
        "requests", lines({"request": REQUEST, "response": COMPLETION}), turns=1
    ),
    "completions beside messages": Case(
        "requests", lines({**REQUEST, "response": COMPLETION}), turns=1
    ),
    "a batch": Case(
        "requests",
        lines({"custom_id": "a", "method": "POST", "url": "/v1", "body": REQUEST}),
        turns=1,
        calls=0,
        labels=0,
    ),
    "preferences": Case(
        "requests",
        lines({"input": REQUEST, "preferred_output": [SAYS], "non_preferred_output": [BYE]}),
        turns=1,
        calls=0,
        labels=0,
    ),
    "fine-tuning": Case("messages", lines({**REQUEST, "messages": CHAT})),
    "messages_to_dict": Case(
        "messages",
        [{"type": one["type"], "data": one} for one in LANGCHAIN],
        tools=(),
        prompt="Rent boats.",
    ),
    "model_dump": Case("messages", {"messages": LANGCHAIN}, tools=(), prompt="Rent boats."),
    "dumpd": Case(
        "messages",
        [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", CLASSES[str(one["type"])]],
                "kwargs": one,
            }
            for one in LANGCHAIN
        ],
        tools=(),
        prompt="Rent boats.",
    ),
    "LangSmith": Case(
        "requests",
        lines(
            {
                "id": "run",
                "run_type": "llm",
                "inputs": {"messages": [[{"type": o["type"], "data": o} for o in LANGCHAIN]]},
                "outputs": {"generations": [[{"text": "Bye.", "message": {**BYE}}]]},
            },
            {"id": "tool", "run_type": "tool", "inputs": {"input": {}}, "outputs": {"output": 1}},
        ),
        tools=(),
        prompt="Rent boats.",
    ),
    "Langfuse": Case(
        "requests",
        [
            {"id": "o1", "traceId": "t", "type": "GENERATION", "input": CHAT[:1], "output": CALLS},
            {"id": "o2", "traceId": "t", "type": "GENERATION", "input": CHAT[:5], "output": BYE},
        ],
        tools=(),
    ),
    "Langfuse's trace": Case(
        "requests",
        {
            "trace": {"id": "t", "input": None, "observations": ["o1", "o2"]},
            "observations": [
                observation("o2", CHAT[:3], [{**SAYS, "type": "message"}]),
                observation("o1", {"messages": CHAT[:1]}, {**CALLS, "id": "m1"}),
                observation("o3", {"query": "boats"}, ["a boat"], "TOOL"),
                observation("o4", {"messages": CHAT}, {"messages": [BYE]}, "AGENT"),
                # Another instrument writes the words of the last request as one text.
                observation("o5", f"system: Rent.\nuser: {THANKS}", "Bye."),
                observation("o6", [{"role": "system", "content": "Rent."}, AGAIN], BYE),
                # Nobody says who said this.
                observation("o7", {"content": "role"}, BYE),
            ],
        },
        tools=(),
    ),
    "Langfuse's trace of LangChain": Case(
        "requests",
        {
            "trace": {"id": "t"},
            "observations": [
                observation(
                    "o1",
                    [
                        USER,
                        {**BYE, "content": "", "additional_kwargs": {"tool_calls": [CALL]}},
                        {**RESULT, "role": "tool"},
                        {"role": "tool", "content": {"type": "function", "function": RENT}},
                    ],
                    SAYS,
                ),
                observation("o2", [AGAIN, CALLS, {"role": "rent", "content": "rented"}], BYE),
            ],
        },
        calls=2,
        labels=2,
    ),
    "Langfuse's trace of the AI SDK": Case(
        "requests",
        {
            "trace": {"id": "t"},
            "observations": [
                observation(
                    "o1",
                    {"prompt": ASKS},
                    [{"toolCallId": "c1", "toolName": "rent", "input": TEXT}],
                )
            ],
        },
        turns=1,
        tools=(),
    ),
    "messages of the AI SDK": Case(
        "messages",
        [
            USER,
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool-call",
                        "toolCallId": "c1",
                        "toolName": "rent",
                        "input": ARGUMENTS,
                    }
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "rent",
                        "output": {"type": "text", "value": "rented"},
                    }
                ],
            },
            SAYS,
            AGAIN,
        ],
        tools=(),
    ),
    "prompts of LangSmith": Case(
        "requests",
        {
            "id": "run",
            "run_type": "llm",
            "inputs": {
                "prompts": [
                    f"{PROMPT}AI: {SAYS['content']}\nHuman: {THANKS}",
                ]
            },
            "outputs": {"generations": [[{"text": "Bye."}]]},
        },
        tools=(),
        prompt="Rent boats.",
    ),
    "LangSmith's chain beside its runs": Case(
        "requests",
        lines(
            {
                "id": "chain",
                "run_type": "chain",
                "inputs": {"input": "boats"},
                "outputs": {"output": "yes"},
            },
            {
                "id": "run",
                "run_type": "llm",
                "inputs": {"messages": CHAT},
                "outputs": {"generations": [[{"text": "Bye.", "message": {**BYE}}]]},
            },
        ),
        tools=(),
    ),
    "LangSmith's chain alone": Case(
        "requests",
        {"id": "chain", "run_type": "chain", "inputs": {"messages": CHAT}, "outputs": {}},
        tools=(),
    ),
    "a list of an API": Case(
        "messages", {"object": "list", "data": ITEMS, "has_more": False}, calls=2, tools=()
    ),
    "a batch of Anthropic": Case(
        "requests",
        lines(
            {
                "custom_id": "a",
                "params": {
                    "messages": [USER],
                    "tools": [{"name": "rent", "description": "Rent.", "input_schema": SCHEMA}],
                },
            }
        ),
        turns=1,
        calls=0,
        labels=0,
    ),
    "spans": Case("spans", lines(SPAN), prompt="Rent boats."),
    "OTLP": Case("spans", OTLP, prompt="Rent boats."),
    "pydantic-ai": Case("messages", PYDANTIC, tools=(), prompt="Rent boats."),
    "Gemini": Case(
        "gemini",
        {
            "systemInstruction": {"parts": [{"text": "Rent boats."}]},
            "contents": GEMINI,
            "tools": [{"functionDeclarations": [DECLARED]}],
        },
        prompt="Rent boats.",
    ),
    "Gemini's history": Case("messages", GEMINI, tools=()),
    "Bedrock": Case("messages", BEDROCK, prompt="Rent boats."),
    "ADK": Case(
        "adk",
        {
            "eval_set_id": "e",
            "eval_cases": [
                {
                    "eval_id": "c",
                    "conversation": [
                        INVOCATION,
                        {"user_content": said("user", text=THANKS), "final_response": None},
                    ],
                }
            ],
        },
        tools=(),
    ),
    "ADK's old form": Case(
        "adk",
        [
            {
                "query": ASKS,
                "expected_tool_use": [{"tool_name": "rent", "tool_input": ARGUMENTS}],
                "reference": "It is yours.",
            },
            {"query": THANKS, "expected_tool_use": [], "reference": "Bye."},
        ],
        tools=(),
    ),
    "ADK's oldest sets": Case(
        "adk",
        [
            {
                "name": "boats",
                "initial_session": {},
                "data": [
                    {
                        "query": ASKS,
                        "expected_tool_use": [{"tool_name": "rent", "tool_input": ARGUMENTS}],
                        "reference": "It is yours.",
                    },
                    {"query": THANKS, "expected_tool_use": [], "reference": "Bye."},
                ],
            }
        ],
        tools=(),
    ),
    "ADK's session": Case(
        "adk",
        {
            "id": "s",
            "app_name": "boats",
            "events": [
                {"author": "user" if one["role"] == "user" else "boats", "content": one}
                for one in GEMINI[:-1]
            ]
            + [{"author": "user", "content": {"parts": [{"text": THANKS}]}}],
        },
        tools=(),
    ),
    "inspect_ai": Case("inspect", {**LOG, "samples": [SAMPLE]}),
}


def written(folder: Path, case: Case) -> Path:
    path = folder / case.name
    content = case.content if isinstance(case.content, str) else json.dumps(case.content)
    path.write_text(content)
    return path


def recorded(data: DialogueSet) -> Iterator[Message]:
    for dialogue in data.dialogues:
        for turn in dialogue.turns:
            yield from map(decode_message, turn.recorded or ())
        yield from map(decode_message, dialogue.closing)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_recording_is_recognised_and_read(tmp_path: Path, case: Case) -> None:
    data = load_dialogues(written(tmp_path, case), outcome="tool-calls")
    assert data.layout == case.layout
    assert data.turn_count() == case.turns
    assert {turn.user for turn in data.turns()} <= {ASKS, THANKS}
    made = [call for one in recorded(data) for call in one.calls]
    assert len(made) == case.calls
    assert all((call.name, call.values) == ("rent", ARGUMENTS) for call in made)
    assert sum(bool(turn.calls) for turn in data.turns()) == case.labels
    assert tuple(tool.name for tool in data.tools) == case.tools
    assert all(
        tool.schema.get("properties", {}).get("seats") == {"type": "integer"} for tool in data.tools
    )
    prompts = {one.text for one in recorded(data) if one.role == "system"}
    assert not case.prompt or prompts == {case.prompt}
    # Nothing of a framework is sent to an endpoint.
    for one in recorded(data):
        assert not one.more.keys() - {"name", "refusal"}
        assert all(not (call.more or call.of_function) for call in one.calls)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_recording_is_recognised_by_its_beginning(tmp_path: Path, case: Case) -> None:
    """The first 64 KB of a long file decide: a long text after the keys changes nothing."""
    if case.layout in ("messages", "glaive") or "\n" in str(case.content)[:-1]:
        pytest.skip("the long text is the whole dialogue, or there are several lines")
    path = written(tmp_path, case)
    path.write_text(path.read_text().replace("It is yours.", "yes " * 20_000))
    assert load_dialogues(path, outcome="tool-calls").layout == case.layout


def broken(value: Any, wrong: Any) -> Iterator[Any]:
    """Yield copies of a value, each with another value at one place, down to the third level."""

    def deeper(inner: Any, depth: int) -> Iterator[Any]:
        if depth == 3:
            return
        places: Any = inner if isinstance(inner, dict) else range(len(inner))
        for place in places:
            copy: Any = dict(inner) if isinstance(inner, dict) else list(inner)
            copy[place] = wrong
            yield copy
            if isinstance(inner[place], dict | list):
                for changed in deeper(inner[place], depth + 1):
                    yield (
                        {**copy, place: changed}
                        if isinstance(copy, dict)
                        else [changed if at == place else one for at, one in enumerate(copy)]
                    )

    yield from deeper(value, 0)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_value_of_another_type_is_no_traceback(tmp_path: Path, case: Case) -> None:
    if isinstance(case.content, str):
        content = [json.loads(line) for line in case.content.splitlines()]
    else:
        content = case.content
    path = tmp_path / "a.json"
    reader = next(one for one in find_readers() if one.name == case.layout)
    for changed in chain(broken(content, 3), broken(content, None)):
        path.write_text(json.dumps(changed))
        told = ""
        try:
            list(reader.read(SourceFile(path.name, path), ReadOptions()))
        except DataError as error:
            told = str(error)
        assert "\n" not in told
        assert not told or str(path) in told


def load(folder: Path, name: str, content: Any) -> DialogueSet:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_dialogues(path, outcome="tool-calls")


@pytest.mark.parametrize("where", ["file", "folder"])
@pytest.mark.parametrize("bad", ["rent(seats=1+1)", "rent(seats='2)"], ids=["no literal", "broken"])
def test_the_answers_of_bfcl_stand_in_a_file_beside(tmp_path: Path, where: str, bad: str) -> None:
    (tmp_path / "possible_answer").mkdir()
    one = {"id": "b1", "question": [[USER]], "function": [{**RENT, "parameters": {"type": "dict"}}]}
    many = {"id": "b2", "question": [[USER], [AGAIN], [USER]], "involved_classes": ["Boats"]}
    answers = lines(
        {"id": "b1", "ground_truth": [{"rent": {"seats": [2, "two"], "colour": [""]}}]},
        {"id": "b2", "ground_truth": [["rent(seats=2)", "pay('cash')"], [], ["rent(seats=2)"]]},
        {"id": "b3", "ground_truth": [["rent(seats=2)", bad], ["a boat"]]},
    )
    (tmp_path / "possible_answer" / "a.json").write_text(answers)
    beside = {"file": tmp_path, "folder": tmp_path / "question"}[where]
    beside.mkdir(exist_ok=True)
    data = load(beside, "a.json", lines(one, many, {**many, "id": "b3"}))
    first, second, third = data.dialogues
    assert dict(first.turns[0].calls or {}) == {"rent[0]": "call 1", "rent[0].seats": "2"}
    assert [tool.schema["type"] for tool in first.tools] == ["object"]
    # An argument without its name is no label.
    assert [turn.calls is None for turn in second.turns] == [True, False, False]
    assert not second.turns[1].calls
    assert second.turns[2].calls
    # A call that cannot be read is no label, and a text is no call.
    assert [turn.calls for turn in third.turns] == [None, None, None]


def test_a_request_that_another_one_continues_is_left_out(tmp_path: Path) -> None:
    first = {"input": CHAT[:1], "output": CALLS}
    second = {"input": CHAT[:3], "output": SAYS}
    # Other requests of the same conversation record the words and the call apart, or together.
    apart = {"input": [*CHAT[:4], CALLS, RESULT], "output": SAYS}
    together = {"input": [*CHAT[:3], {**CALLS, "content": SAYS["content"]}, RESULT], "output": SAYS}
    third = {"input": [AGAIN], "output": BYE}
    data = load(tmp_path, "b.json", [second, first, apart, third])
    assert [len(one.turns) for one in data.dialogues] == [1, 1]
    data = load(tmp_path, "c.json", [second, first, together, third])
    assert [len(one.turns) for one in data.dialogues] == [1, 1]
    data = load(tmp_path, "a.json", [second, first, third])
    assert [len(one.turns) for one in data.dialogues] == [1, 1]
    assert any("once at" in note for note in data.notes)


def trace(given: Any, answer: Any, **other: Any) -> dict[str, Any]:
    return {"id": "t1", "input": given, "output": answer, "observations": [], **other}


def replies(folder: Path, content: Any) -> list[list[tuple[str, str | None]]]:
    """Return the texts of the user in each dialogue, each with the recorded reply."""
    path = folder / "a.json"
    path.write_text(json.dumps(content))
    data = load_dialogues(path, outcome="reply")
    return [
        [(turn.user, answer_of(one, turn.index)) for turn in one.turns] for one in data.dialogues
    ]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ([USER], SAYS),
        (json.dumps([USER]), json.dumps(SAYS)),
        (ASKS, SAYS["content"]),
        ({"text": ASKS, "language": "en"}, {"text": SAYS["content"], "intent": "rent"}),
        ({"question": ASKS, "session": "s"}, {"answer": SAYS["content"], "score": 1}),
        ({"message": ASKS, "session": "s"}, {"reply": SAYS["content"], "score": 1}),
        ({"utterance": ASKS}, {"prediction": SAYS["content"]}),
    ],
    ids=["messages", "JSON as text", "texts", "text", "question", "message", "one value"],
)
def test_a_trace_without_observations_is_read(tmp_path: Path, given: Any, answer: Any) -> None:
    plain = trace(given, answer)
    expected = [[(ASKS, SAYS["content"])]]
    assert replies(tmp_path, [plain]) == expected
    assert replies(tmp_path, {"trace": plain, "observations": []}) == expected
    # The observations of another trace do not change this.
    other = trace(None, None, id="t2", observations=[observation("o1", [AGAIN], BYE)])
    assert replies(tmp_path, [other, plain]) == [[(THANKS, BYE["content"])], *expected]


@pytest.mark.parametrize(
    "given", [{"first": ASKS, "second": ASKS}, {"count": 2}, {"sessionId": "s"}, {"content": ASKS}]
)
def test_a_trace_without_known_words_is_named_by_its_keys(tmp_path: Path, given: Any) -> None:
    with pytest.raises(DataError, match=r"no message of the user in an object .*; expected req"):
        load(tmp_path, "a.json", [trace(given, SAYS)])


def session(key: str, started: str, moment: int, *texts: str, **other: Any) -> dict[str, Any]:
    """Return a turn of a session: the words of the user, and the answer."""
    # Times with and without fractions are no order of texts.
    shown = f"2026-01-01T10:00:0{moment // 2}{'.5' * (moment % 2)}Z"
    given = {"messages": [{"role": "system", "content": "Rent."}, _user(texts[0])]}
    return {"id": f"{texts[0]}", key: "s", started: shown, "input": given, **other} | {
        "output": texts[1]
    }


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("key", ["sessionId", "session_id", "conversation_id"])
def test_the_traces_of_a_session_are_one_dialogue(tmp_path: Path, key: str) -> None:
    turns = [
        session(key, "timestamp", 4, "three", "c", observations=[]),
        {**session(key, "timestamp", 1, "one", "x", observations=[]), key: "other"},
        session(key, "timestamp", 3, "two", "b", observations=[]),
        session(key, "timestamp", 2, "one", "a", observations=[]),
    ]
    assert replies(tmp_path, turns) == [
        [("one", "a"), ("two", "b"), ("three", "c")],
        [("one", "x")],
    ]
    data = load(tmp_path, "a.json", turns)
    assert list(data.ids) == ["s", "one"]
    assert [one.text for one in recorded(data) if one.role == "system"] == ["Rent."] * 2
    assert any("same session are joined" in note for note in data.notes)


def test_the_observations_of_a_session_are_one_dialogue(tmp_path: Path) -> None:
    def whole(name: str, moment: int, *asked: Any) -> dict[str, Any]:
        time = f"2026-01-01T10:00:0{moment}Z"
        seen = [{**observation(name, *asked), "traceId": name, "startTime": time}]
        return {"trace": {"id": name, "sessionId": "s"}, "observations": seen}

    found = [whole("t2", 2, [AGAIN], BYE), whole("t1", 1, [USER], SAYS)]
    path = tmp_path / "a.jsonl"
    path.write_text(lines(*found))
    data = load_dialogues(path, outcome="reply")
    assert [[turn.user for turn in one.turns] for one in data.dialogues] == [[ASKS, THANKS]]


def test_the_runs_of_a_thread_are_one_dialogue(tmp_path: Path) -> None:
    def run(thread: str, moment: int, *texts: str) -> dict[str, Any]:
        return {
            "id": texts[0],
            "run_type": "chain",
            "session_id": "the project",
            "trace_id": texts[0],
            "start_time": f"2026-01-01T10:00:0{moment}",
            "extra": {"metadata": {"thread_id": thread}},
            "inputs": {"question": texts[0]},
            "outputs": {"answer": texts[1]},
        }

    runs = [run("b", 3, "two", "b"), run("a", 2, "hi", "x"), run("b", 1, "one", "a")]
    expected = [[("one", "a"), ("two", "b")], [("hi", "x")]]
    assert replies(tmp_path, runs) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": None},
        {"traceId": "one trace"},
        {"input": {"messages": [_user("zero"), _user("two")]}},
    ],
    ids=["no time", "same trace", "earlier turns"],
)
def test_traces_of_a_session_that_are_no_turns_stay_apart(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    turns = [
        {**session("sessionId", "timestamp", moment, text, "a"), **change, "traceId": trace_id}
        for moment, text in enumerate(("one", "two"))
        for trace_id in [change.get("traceId", text)]
    ]
    data = load(tmp_path, "a.json", turns)
    assert len(data.dialogues) == 2
    assert any("same session are separate dialogues" in note for note in data.notes)


def test_a_log_without_requests_says_how_it_was_read(tmp_path: Path) -> None:
    calls = [observation(name, {"query": "boats"}, ["a boat"], "RETRIEVER") for name in "ab"]
    with pytest.raises(DataError, match=r"read in the layout 'requests': .* left out: none of"):
        load(tmp_path, "a.json", calls)


def test_requests_of_other_sessions_are_no_repeats(tmp_path: Path) -> None:
    first = trace("hi", None, sessionId="a")
    second = trace("hi", "Hello.", sessionId="b")
    assert len(replies(tmp_path, [first, second])) == 2


@pytest.mark.parametrize("answer", [COMPLETION, RESPONSE], ids=["completion", "response"])
def test_an_answer_without_its_request_is_named_by_its_keys(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(DataError, match=r"no message of the user in an object with the keys .*id"):
        load(tmp_path, "a.json", answer)


def test_a_log_of_inspect_is_read_from_its_archive(tmp_path: Path) -> None:
    path = tmp_path / "boats.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(LOG))
        for epoch in (1, 2):
            sample = {**SAMPLE, "epoch": epoch}
            archive.writestr(f"samples/s1_epoch_{epoch}.json", json.dumps(sample, indent=2))
        archive.writestr("summaries.json", json.dumps([{"id": "s1", "epoch": 1, "input": ASKS}]))
    data = load_dialogues(path, outcome="tool-calls")
    assert [one.id for one in data.dialogues] == ["s1", "s1-2"]


@pytest.mark.parametrize(
    "words", [[], [SAYS], [{**AGAIN, "content": " "}]], ids=["none", "the assistant's", "blank"]
)
def test_messages_without_words_of_the_user_are_left_out(tmp_path: Path, words: list[Any]) -> None:
    data = load(tmp_path, "a.jsonl", lines({"messages": words}, {"messages": CHAT}))
    assert list(data.ids) == ["a-2"]
    assert any("left out (once at" in note and "line 1" in note for note in data.notes)
    with pytest.raises(DataError, match="line 1 has no user message with a text"):
        load(tmp_path, "a.jsonl", lines({"messages": words}, {"messages": words}))


@pytest.mark.parametrize("words", [[], [{"role": "user", "content": " "}]], ids=["none", "blank"])
def test_entries_without_words_of_the_user_are_left_out(tmp_path: Path, words: list[Any]) -> None:
    empty = {**SAMPLE, "id": "s0", "messages": words}
    data = load(tmp_path, "a.json", {**LOG, "samples": [empty, SAMPLE]})
    assert list(data.ids) == ["s1"]
    assert any("left out" in note and "samples[0]" in note for note in data.notes)
    with pytest.raises(DataError, match=r"samples\[0\]: no message of the user in an object with"):
        load(tmp_path, "a.json", {**LOG, "samples": [empty]})


def test_a_failed_sample_of_inspect_is_noted(tmp_path: Path) -> None:
    failed = {"id": "s0", "epoch": 1, "error": {"message": "out of quota"}}
    data = load(tmp_path, "a.json", {**LOG, "samples": [failed, SAMPLE]})
    assert list(data.ids) == ["s1"]
    assert any("left out" in note and "samples[0]" in note for note in data.notes)


def test_a_text_among_the_samples_of_inspect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"samples\[0\]: 's0'; expected logs of inspect_ai"):
        load(tmp_path, "a.json", {**LOG, "samples": ["s0", SAMPLE]})


WANTS = {"role": "user", "content": "book a table"}
TEXT_CALL = '{"name": "book", "arguments": {"people": 2}}'
MADE = {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"people": 2}'}}
#: Answers that have a call in an unusual place.
PLACES: dict[str, Any] = {
    "langchain's old key": {
        "messages": [
            {"type": "human", "content": "book a table"},
            {
                "type": "ai",
                "content": "",
                "additional_kwargs": {"function_call": json.loads(TEXT_CALL)},
            },
        ]
    },
    **{
        f"text {begin}": {"messages": [WANTS, {"role": "assistant", "content": begin + said + end}]}
        for begin, said, end in (
            ("Sure. <tool_call>\n", TEXT_CALL, "\n</tool_call>"),
            ("<tool_call>", f"[{TEXT_CALL}]", "</tool_call>"),
            ("<function_call>", TEXT_CALL, "</function_call>"),
            ("[TOOL_CALLS] ", f"[{TEXT_CALL}]", ""),
        )
    },
    "beside a text": {"input": [WANTS], "output": {"answer": "Sure.", "tool_calls": [MADE]}},
    "beside no text": {"request": {"messages": [WANTS]}, "response": {"tool_calls": [MADE]}},
    "adk": {
        "eval_set_id": "e",
        "eval_cases": [
            {
                "eval_id": "a",
                "conversation": [
                    {
                        "user_content": {"role": "user", "parts": [{"text": "book a table"}]},
                        "intermediate_data": {
                            "invocation_events": [
                                {
                                    "author": "agent",
                                    "content": {
                                        "role": "model",
                                        "parts": [
                                            {
                                                "functionCall": {
                                                    "name": "book",
                                                    "args": {"people": 2},
                                                }
                                            }
                                        ],
                                    },
                                }
                            ]
                        },
                    }
                ],
            }
        ],
    },
}


@pytest.mark.parametrize("content", PLACES.values(), ids=PLACES)
def test_a_call_in_an_unusual_place_is_read(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    (dialogue,) = load_dialogues(path, outcome="tool-calls").dialogues
    (turn,) = dialogue.turns
    assert turn.user == "book a table"
    assert turn.calls is not None
    assert turn.calls["book[0].people"] == "2"


@pytest.mark.parametrize(
    "key", ["toolInvocations", "functionCall", "tool_use", "invalid_tool_calls", "steps"]
)
def test_calls_at_an_unknown_place_are_no_labels(tmp_path: Path, key: str) -> None:
    call = {"toolName" if key == "toolInvocations" else "name": "book", "args": {"people": 2}}
    lost = {"messages": [WANTS, {"role": "assistant", "content": "Sure.", key: [call]}]}
    path = tmp_path / "a.jsonl"
    path.write_text(lines(lost, {"messages": [WANTS, {"role": "assistant", "tool_calls": [MADE]}]}))
    data = load_dialogues(path, outcome="tool-calls")
    assert [one.turns[0].calls is None for one in data.dialogues] == [True, False]
    assert any("at an unknown place (book)" in note for note in data.notes)


@pytest.mark.parametrize("key", ["args", "params", "argumnets", "tool_input"])
def test_arguments_under_an_unknown_key_are_refused(tmp_path: Path, key: str) -> None:
    call = {"function": {"name": "book", key: {"people": 2}}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    with pytest.raises(DataError, match=f"unknown key '{key}'; did you mean 'arguments'"):
        load(tmp_path, "a.jsonl", lines({"messages": [WANTS, said]}))


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"text": "Done."}]},
        {"choices": [{"message": "Done."}]},
        {"candidates": [{"content": "Done."}]},
        {"generated_text": "Done.", "tokens": 3},
        {"result": {"text": "Done.", "tokens": 3}, "id": 7},
    ],
)
def test_the_text_of_an_answer_is_the_reply(tmp_path: Path, answer: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"request": {"prompt": "book a table"}, "response": answer}))
    (turn,) = load_dialogues(path, outcome="reply").dialogues[0].turns
    assert (turn.user, turn.answer) == ("book a table", "Done.")


def test_an_answer_without_a_known_text_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    answer = {"said": "Done.", "tokens": 3}
    path.write_text(json.dumps({"request": {"messages": [WANTS]}, "response": answer}))
    data = load_dialogues(path, outcome="reply")
    assert data.dialogues[0].turns[0].answer is None
    assert any("Answers are not read: an object with the keys said" in n for n in data.notes)


def test_an_evaluation_set_of_adk_may_have_keys_in_camel_case(tmp_path: Path) -> None:
    def says(text: str) -> dict[str, Any]:
        return {"parts": [{"text": text}]}

    cases = [
        {"evalId": name, "conversation": [{"userContent": says(name), "finalResponse": says("ok")}]}
        for name in ("one", "two")
    ]
    data = load(tmp_path, "a.json", {"evalSetId": "e", "evalCases": cases})
    assert list(data.ids) == ["one", "two"]


def test_states_of_a_layout_without_states_are_noted(tmp_path: Path) -> None:
    talk = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "Hello."}]
    data = load(tmp_path, "a.jsonl", lines({"conversations": talk, "states": [{"a": "b"}]}))
    assert any("Entries have 'states', which this layout does not have" in n for n in data.notes)


SAID = {
    "sharegpt": lambda said: {"conversations": [{"from": "human", "value": said}, TOLD]},
    "langchain": lambda said: {"messages": [{"type": "human", "content": said}, AGAIN]},
    "part": lambda said: {
        "messages": [{"type": "human", "content": [{"type": "text", "text": said}]}, AGAIN]
    },
}
TOLD = {"from": "human", "value": "hello"}


@pytest.mark.parametrize("form", SAID)
@pytest.mark.parametrize("said", [5, 0, True, 2.5])
def test_words_that_are_no_text_are_refused(tmp_path: Path, form: str, said: object) -> None:
    with pytest.raises(DataError, match=rf"messages\[0\]: {said} instead of a text"):
        load(tmp_path, "a.jsonl", lines(SAID[form](said)))


def test_a_text_of_openais_assistants_is_read(tmp_path: Path) -> None:
    text = {"type": "text", "text": {"value": "a boat, please", "annotations": []}}
    data = load(tmp_path, "a.jsonl", lines({"messages": [{"role": "user", "content": [text]}]}))
    assert data.dialogues[0].turns[0].user == "a boat, please"


@pytest.mark.parametrize("call", ["book", 3, None])
def test_a_call_of_langchain_that_is_no_object_is_refused(tmp_path: Path, call: object) -> None:
    said = {"type": "ai", "content": "", "tool_calls": [call]}
    with pytest.raises(DataError, match=r"messages\[1\]: .* instead of a call, \{\"name\""):
        load(tmp_path, "a.jsonl", lines({"messages": [{"type": "human", "content": "a"}, said]}))


def test_a_time_that_no_clock_has_is_no_time(tmp_path: Path) -> None:
    chat = {"messages": CHAT, "session_id": "s", "timestamp": 10**400}
    assert load(tmp_path, "a.jsonl", lines(chat)).dialogues


def test_a_run_of_tau2_has_its_simulations_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps({"info": {}, "tasks": []}))
    (tmp_path / "simulations").mkdir()
    for name in ("a", "b"):
        one = {"id": name, "task_id": "1", "termination_reason": "user_stop", "messages": TAU2}
        load(tmp_path / "simulations", f"{name}.json", one)
    data = load_dialogues(tmp_path, outcome="tool-calls")
    assert list(data.ids) == ["a", "b"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python unpacks zstd")
def test_an_archive_of_zstd_names_the_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zipfile_zstd", None)
    path = tmp_path / "boats.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("samples/s1.json", json.dumps(SAMPLE))
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        struct.pack_into("<H", content, content.index(signature) + place, 93)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"cannot be unpacked, .* install zipfile-zstd"):
        load_dialogues(path, outcome="tool-calls")


UNKNOWN: dict[str, tuple[str, Any, str]] = {
    "object": (
        "a.json",
        {"trajectory": [], "traje": 1, "score": 1},
        r"an object with the keys score, traje and trajectory\. The nearest layout is 'tau'",
    ),
    "list": (
        "a.json",
        [{"conversation": []}] * 3,
        r"a list of 3 objects with the key conversation\. The nearest layout is 'sharegpt'",
    ),
    "lines": (
        "a.jsonl",
        lines({"instructions": "", "outputs": ""}, {}),
        r"2 lines of JSON, the first an object .* nearest layout is 'alpaca'",
    ),
    "table": ("a.csv", "a,b\n1,2\n", r"a table with the header a,b\. .*a CSV with"),
}


@pytest.mark.parametrize(("name", "content", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_refusal_names_the_keys_and_the_nearest_layout(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message) as error:
        load(tmp_path, name, content)
    assert "check-data --help" in str(error.value)


def test_each_form_has_a_small_file() -> None:
    assert {form.name for form in FORMS} <= {case.layout for case in CASES.values()}


def test_a_text_that_is_cut_off_has_the_values_before() -> None:
    whole = {"a": [1, {"b": 'x"]'}], "c": {"d": "e", "f": [True, None]}}
    text = json.dumps(whole)
    assert begun_json(text) == whole
    for size in range(1, len(text)):
        found = begun_json(text[:size])
        assert isinstance(found, dict)
        assert found.keys() <= whole.keys()
    assert begun_json("hello") is None


def test_a_prompt_in_one_text_has_all_utterances(tmp_path: Path) -> None:
    case = CASES["prompts of LangSmith"]
    data = load_dialogues(written(tmp_path, case), outcome="tool-calls")
    said = [one.text for one in recorded(data) if one.role == "assistant"]
    assert said == ["Yes.", SAYS["content"], "Bye."]
