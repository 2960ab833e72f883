"""The belief state of a flight-booking bot, by rules: some forty lines as teams write them."""

from __future__ import annotations

import re

from pytest_dstfuzz import Context

CITY = r"(amsterdam|barcelona|berlin|dublin|lisbon|london|madrid|new york|oslo|paris|rome|vienna)"
DAY = r"(monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d{1,2}(?:st|nd|rd|th) of [a-z]+)"
COUNT = r"(one|two|three|four|five|\d)"
NUMBERS = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
RULES = {
    "flight-origin": rf"\b(?:from|leaving|out of) {CITY}\b",
    "flight-destination": rf"\b(?:to|into|reach) {CITY}\b",
    "flight-date": rf"\b(?:leave|leaving|fly|flying|departing|go)\b[^.]*? on (?:the )?{DAY}",
    "flight-return": rf"\b(?:back|return|returning)\b[^.]*? (?:on|by) (?:the )?{DAY}",
    "flight-passengers": rf"\b{COUNT} (?:passengers?|people|adults?|tickets?|seats?|of us)\b",
    "flight-bags": rf"\b{COUNT} (?:bags?|suitcases?|pieces? of luggage)\b",
    "flight-class": r"\b(economy|business|first)(?: class)?\b",
    "flight-time": r"\b(morning|afternoon|evening|night)\b",
    "flight-seat": r"\b(window|aisle)\b",
}
# Questions of the bot that a bare value answers, and the slot of each.
QUESTIONS = {
    r"where .*\bfrom\b": ("flight-origin", CITY),
    r"where .*\b(?:fly|go) to\b": ("flight-destination", CITY),
    r"which day|when": ("flight-date", DAY),
    r"how many .*\b(?:people|travelling)\b": ("flight-passengers", COUNT),
    r"how many bags|luggage": ("flight-bags", COUNT),
}


def track(context: Context) -> dict[str, str]:
    """Return the slots that the user has filled so far."""
    state: dict[str, str] = {}
    for exchange in context.exchanges:
        asked, said = exchange.system.lower(), exchange.user.lower()
        for question, (slot, value) in QUESTIONS.items():
            if re.search(question, asked) and (match := re.match(rf"(?:just )?{value}\b", said)):
                state[slot] = NUMBERS.get(match.group(1), match.group(1))
        for slot, rule in RULES.items():
            if match := re.search(rule, said):
                state[slot] = NUMBERS.get(match.group(1), match.group(1))
        if re.search(r"\b(?:no|without) (?:bags?|luggage|suitcases?)\b", said):
            state["flight-bags"] = "0"
        if re.search(r"\bone way\b", said):
            state.pop("flight-return", None)
    return state
