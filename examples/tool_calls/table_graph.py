import re
from difflib import get_close_matches

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def book_table(people: int, day: str) -> str:
    """Book a table."""
    return f"booked for {people} on {day}"


def cancel_booking(day: str) -> str:
    """Cancel the booking of a day."""
    return f"cancelled on {day}"


def assistant(state):
    text = state["messages"][-1].content.lower()
    if "table" not in text:
        return {"messages": [AIMessage("Is it about a table?")]}
    words = re.findall(r"\w+", text)
    days = [day for word in words for day in get_close_matches(word, DAYS, n=1, cutoff=0.65)]
    day = days[0] if days else "today"
    numbers = re.findall(r"\d+", text)
    name = "book_table" if numbers else "cancel_booking"
    people = {"people": int(numbers[0])} if numbers else {}
    call = {"name": name, "args": {**people, "day": day}, "id": "call_1"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


graph = StateGraph(MessagesState)
graph.add_node("assistant", assistant)
graph.add_node("tools", ToolNode([book_table, cancel_booking]))
graph.add_edge(START, "assistant")
graph.add_conditional_edges("assistant", tools_condition)
graph.add_edge("tools", "assistant")
agent = graph.compile()


def answer(messages, tools):
    # The first step is the assistant's message: no tool is called for real.
    step = next(agent.stream({"messages": messages}, stream_mode="updates"))
    return step["assistant"]["messages"][-1]
