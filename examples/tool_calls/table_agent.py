import json
import re

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"function": function}]}


def answer(messages, tools):
    text = messages[-1]["content"].lower()
    day = next((day for day in DAYS if day in text), None)
    people = re.search(r"\d+", text)
    if day is None:
        return {"role": "assistant", "content": "On which day?"}
    if people is None:
        return call("cancel_booking", day=day)
    if "outside" in text:
        return call("book_table", people=int(people[0]), day=day, outside=True)
    return call("book_table", people=int(people[0]), day=day)
