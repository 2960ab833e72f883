"""What a kind of answer knows of itself: labels, values, words; and what differs in two answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from pytest_dstfuzz.dialogue.calls import AnswerPath, History, Outcome, OutcomeKind, members_of
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn


class Words(NamedTuple):
    """The words of messages and reports for one kind of answer."""

    #: Who answers.
    who: str
    #: What is tested of an answer, its short form, and an answer as relations speak of it.
    what: str
    short: str
    noun: str
    #: What a relation of this kind alone speaks of.
    several: str
    #: What answers are called, and what says that they are right, each of many.
    answers: str
    labels: str
    #: Name of the share of those that are right.
    right: str
    #: The same in a verdict of a gate, with the clean answers and one that is recorded.
    accuracy: tuple[str, str, str]
    #: What tests are called that are about it.
    identifier: str
    #: What a system does whose answers are all empty.
    nothing: str
    #: Whether an answer has several values, each with a name.
    values: bool = True
    #: What such a name is, and what several of them belong to.
    slot: str = "slot"
    domain: str = "domain"
    #: What somebody who answers otherwise does otherwise.
    does: str = "says"
    #: What an answer without any value is, and what is to be said of many such.
    empty: str = "empty answers"
    are_empty: str = ", which hardly any variant can change"
    #: Whether ``short`` and ``noun`` name several things.
    plural: bool = False

    @property
    def do(self) -> str:
        """The verb of ``short``."""
        return "do" if self.plural else "does"

    @property
    def some(self) -> str:
        """Any of those who answer."""
        who = self.who.removeprefix("the ")
        return f"an {who}" if who.startswith("a") else f"a {who}"

    @property
    def one(self) -> str:
        """What is tested of one answer."""
        return self.what if self.plural else f"a {self.short}"

    @property
    def subject(self) -> str:
        """What is tested, before what it is."""
        return f"{self.what} are" if self.plural else f"{self.short} is"

    def test_name(self, verb: str) -> str:
        """Return what a test is called that says what an answer does: ``test_reply_survives``."""
        return f"test_{self.identifier}_{verb}{'' if self.plural else 's'}"

    def fill(self, text: str) -> str:
        """Return a text with the words of this kind in the place of their names.

        >>> from pytest_dstfuzz.kinds.tool_calls import TOOL_CALLS
        >>> TOOL_CALLS.words.fill("{stays} after the round that is said twice")
        'the calls stay as they are after the round that is said twice'
        """
        end, it_is, it_was = (
            ("", "they are", "they were") if self.plural else ("s", "it is", "it was")
        )
        names = {
            "stays": f"the {self.noun} stay{end} as {it_is}",
            "stayed": f"the {self.noun} stay{end} as {it_was}",
            "changes": f"the {self.noun} change{end}",
            "answers": self.noun if self.plural else f"{self.noun}s",
            "slot": self.slot,
            "slots": f"{self.slot}s",
            "system": self.who.removeprefix("the "),
        }
        for name, word in names.items():
            text = text.replace(f"{{{name}}}", word)
        return text


class SlotRules(NamedTuple):
    """What the ontology, or the schema of a tool, says of a slot."""

    path: AnswerPath
    #: The values that it lists, as people write them -> as they stand in an answer.
    values: dict[str, str]
    required: bool = False
    #: The value that is taken if none is given, as people write it.
    default: str | None = None


class AnswerKind(ABC):
    """A kind of answer: all that differs between belief states, replies and tool calls."""

    #: As options and reports name it.
    name: ClassVar[OutcomeKind]
    words: ClassVar[Words]
    #: Whether an answer has the slots of an ontology. A system with such answers repeats itself
    #: unless it says otherwise, and its answer does not depend on whose messages it sees.
    has_slots: ClassVar[bool] = False
    #: Whether an answer uses tools, whose list a system is given.
    has_tools: ClassVar[bool] = False
    #: Whether an answer builds on those to the earlier turns, so that these must be known.
    needs_earlier: ClassVar[bool] = True
    #: Whether a recorded answer may stand for the one of the system.
    has_exact_labels: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"<kind {self.name}>"

    @abstractmethod
    def label(self, dialogue: Dialogue, index: int) -> Outcome | None:
        """Return the right answer to a turn; ``None`` = the data does not say it."""

    def adds_up(self, history: History) -> bool:
        """Say whether an answer is a running total, where messages of somebody are the history."""
        del history
        return False

    def text(self, answer: Outcome) -> str:
        """Return what an answer says in sentences, ``""`` if it has none."""
        del answer
        return ""

    def tools(self, dialogue: Dialogue) -> tuple[str, ...]:
        """Return the names of the tools that an answer may use."""
        return tuple(tool.name for tool in dialogue.tools) if self.has_tools else ()

    def label_values(self, dialogue: Dialogue, index: int) -> Iterator[tuple[str, str]]:
        """Yield the slots and values that the label of a turn adds to what was known."""
        del dialogue, index
        yield from ()

    def slot_values(self, answer: Outcome) -> Mapping[str, str]:
        """Return the values of an answer that people can say, by slot."""
        del answer
        return {}

    def slot_rules(self, data: DialogueSet) -> Mapping[str, SlotRules]:
        """Return what the data says of the slots that an answer may have."""
        del data
        return {}

    def locked_values(
        self, data: DialogueSet, turn: Turn, clean: Outcome | None
    ) -> tuple[str, ...]:
        """Return the values that no edit of a turn may touch, sorted, each member of a list once.

        They are those of its belief state in the data, if there is one, and those of the kind,
        some of them in the ``clean`` answer.
        """
        values = set() if turn.state is None else set(turn.state.values())
        values.update(self.values(data, turn, clean))
        return tuple(sorted({member for value in values for member in members_of(value)}))

    def values(self, data: DialogueSet, turn: Turn, clean: Outcome | None) -> Iterator[str]:
        """Yield the values that the user gave, by the labels and by the ``clean`` answer."""
        del data, turn, clean
        yield from ()
