import json
import re
from difflib import get_close_matches

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"function": function}]}


def answer(messages, tools):
    text = messages[-1]["content"].lower()
    words = re.findall(r"\w+", text)
    days = [day for word in words for day in get_close_matches(word, DAYS, n=1, cutoff=0.65)]
    people = re.search(r"\d+", text)
    if not days:
        return {"role": "assistant", "content": "On which day?"}
    if people is None:
        return call("cancel_booking", day=days[0])
    if "outside" in text:
        return call("book_table", people=int(people[0]), day=days[0], outside=True)
    return call("book_table", people=int(people[0]), day=days[0])
