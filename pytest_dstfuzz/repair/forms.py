"""Formats of training data. A reader of the core can read each written file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pytest_dstfuzz import BeliefState, UserError
from pytest_dstfuzz.dialogue.calls import REPLY, list_calls
from pytest_dstfuzz.dialogue.dialogues import entry_of
from pytest_dstfuzz.dialogue.messages import Message, calling
from pytest_dstfuzz.dialogue.normalise import SLOTS
from pytest_dstfuzz.dialogue.readers.corpora import COLUMNS
from pytest_dstfuzz.repair.examples import Example

#: The intent of Rasa's examples by default. A report has no intents.
INTENT: Final = "inform"


@dataclass(frozen=True)
class TrainingForm:
    """A form of training data."""

    name: str
    #: A description for the help.
    about: str
    #: The kinds of answers that it can hold.
    kinds: tuple[str, ...]
    #: Takes examples and the intent of Rasa's, and yields the parts of the file.
    write: Callable[[Sequence[Example], str], Iterator[str]]
    #: Whether it can only hold the slots of MultiWOZ.
    multiwoz: bool = False

    def check(self, outcome: str, normalisation: str) -> None:
        """Raise an error if the format cannot store these answers."""
        if outcome not in self.kinds:
            fitting = [one.name for one in FORMS.values() if outcome in one.kinds]
            raise UserError(
                f"--form: {self.name} cannot hold {outcome}: use {' or '.join(fitting)}"
            )
        if self.multiwoz and normalisation == "plain":
            raise UserError(
                f"--form: {self.name} has only the slots of MultiWOZ, but the data has its own: "
                "use jsonl or messages"
            )


def _line(value: object) -> str:
    return f"{json.dumps(value, ensure_ascii=False)}\n"


def _json_lines(examples: Sequence[Example], intent: str) -> Iterator[str]:
    """Yield dialogues in the form of `readers.logs`, with spans and provenance."""
    del intent
    for one in examples:
        turns: list[dict[str, Any]] = []
        for turn in one.dialogue.turns:
            entry: dict[str, Any] = {"system": turn.system, "user": turn.user}
            if turn.state is not None:
                entry["state"] = turn.state.to_json()
            if turn.answer is not None:
                entry["answer"] = turn.answer
            turns.append(entry)
        turns[-1]["spans"] = [span._asdict() for span in one.spans]
        yield _line({"dialogue_id": one.id, "turns": turns, "provenance": one.provenance})


def _multiwoz(examples: Sequence[Example], intent: str) -> Iterator[str]:
    """Yield the parts of MultiWOZ's ``data.json``."""
    del intent
    found: dict[str, Any] = {}
    for one in examples:
        log: list[dict[str, Any]] = []
        for turn in one.dialogue.turns:
            if turn.index:
                log[-1]["text"] = turn.system
            log.append({"text": turn.user, "metadata": {}})
            log.append({"text": "", "metadata": _metadata(turn.state or BeliefState())})
        found[f"{one.id}.json"] = {"log": log, "provenance": one.provenance}
    yield json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _metadata(state: Mapping[str, str]) -> dict[str, Any]:
    """Return a state in the form of MultiWOZ's metadata."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for slot, value in state.items():
        domain, _, name = slot.partition("-")
        parts = found.setdefault(domain, {"semi": {}, "book": {}})
        if name.startswith("book "):
            parts["book"][name.removeprefix("book ")] = value
        else:
            parts["semi"][name] = value
    return found


def _trade(examples: Sequence[Example], intent: str) -> Iterator[str]:
    """Yield the lines of TRADE's TSV, one per turn."""
    del intent
    yield "\t".join((*COLUMNS, *SLOTS)) + "\n"
    for one in examples:
        last = len(one.dialogue.turns) - 1
        for turn in one.dialogue.turns:
            state = turn.state or BeliefState()
            cells = [
                f"{one.id}.json",
                str(turn.index),
                str(turn.index == last),
                *(" ".join(text.split()) for text in (turn.system, turn.user)),
                *(state.get(slot, "none") for slot in SLOTS),
            ]
            yield "\t".join(cells) + "\n"


def _messages(examples: Sequence[Example], intent: str) -> Iterator[str]:
    """Yield lines for fine-tuning in OpenAI's form.

    The answer to learn is the last message. Earlier messages of the assistant have the weight 0.
    """
    del intent
    for one in examples:
        dialogue = replace(one.dialogue, closing=(_answer(one).encoded(),))
        entry = entry_of(dialogue)
        *earlier, last = entry["messages"]
        earlier = [
            {**message, "weight": 0} if message["role"] == "assistant" else message
            for message in earlier
        ]
        yield _line({**entry, "messages": [*earlier, last], "provenance": one.provenance})


def _answer(one: Example) -> Message:
    """Return the message that the assistant should answer with."""
    last = one.dialogue.turns[-1]
    if last.calls is not None:
        calls = list_calls(one.target)
        ids = [f"call_{number}" for number in range(1, len(calls) + 1)]
        return calling(None, calls, ids) if calls else Message("assistant", "")
    if REPLY in one.target:
        return Message("assistant", one.target[REPLY])
    return Message("assistant", json.dumps(one.target.to_json(), ensure_ascii=False))


def _rasa(examples: Sequence[Example], intent: str) -> Iterator[str]:
    """Yield the lines of Rasa's NLU examples, with the values as entities."""
    yield f'version: "3.1"\nnlu:\n- intent: {intent}\n  examples: |\n'
    for text in dict.fromkeys(map(_annotated, examples)):
        yield f"    - {text}\n"


def _annotated(one: Example) -> str:
    """Return the last utterance with its values in Rasa's form, on one line."""
    text, found, end = one.dialogue.turns[-1].user, "", 0
    for span in one.spans:
        said = text[span.start : span.end]
        about = {"entity": span.slot} | ({} if said == span.value else {"value": span.value})
        entity = json.dumps(about, ensure_ascii=False)
        found += f"{_plain(text[end : span.start])}[{_plain(said)}]{entity}"
        end = span.end
    return " ".join((found + _plain(text[end:])).split())


def _plain(text: str) -> str:
    """Return a text without the marks that annotate entities."""
    return text.replace("[", "(").replace("]", ")")


FORMS: Final[Mapping[str, TrainingForm]] = {
    one.name: one
    for one in (
        TrainingForm("jsonl", "JSON Lines of dialogues", ("state", "reply"), _json_lines),
        TrainingForm(
            "messages", "messages for fine-tuning", ("state", "reply", "tool-calls"), _messages
        ),
        TrainingForm("multiwoz", "MultiWOZ's data.json", ("state",), _multiwoz, multiwoz=True),
        TrainingForm("trade", "TRADE's TSV", ("state",), _trade, multiwoz=True),
        TrainingForm("rasa", "Rasa's NLU examples", ("state",), _rasa),
    )
}
