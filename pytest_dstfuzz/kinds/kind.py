"""The interface of a kind of answer: labels, values, and words for messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from pytest_dstfuzz.dialogue.calls import AnswerPath, History, Outcome, OutcomeKind, members_of
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Turn


class Words(NamedTuple):
    """The words of messages and reports for one kind of answer."""

    #: The system that answers.
    who: str
    #: The tested part of an answer, its short form, and the noun that relations use for an answer.
    what: str
    short: str
    noun: str
    #: The noun for relations that support this kind only.
    several: str
    #: Plural nouns for answers and for their labels.
    answers: str
    labels: str
    #: The name for the share of right answers.
    right: str
    #: The words for this share in a gate verdict: its name, the clean answers, and one label.
    accuracy: tuple[str, str, str]
    #: The word for this kind in the names of tests.
    identifier: str
    #: The verb phrase for a system whose answers are all empty.
    nothing: str
    #: Whether an answer has several named values.
    values: bool = True
    #: The nouns for a named value, and for a group of named values.
    slot: str = "slot"
    domain: str = "domain"
    #: The verb for giving a different answer.
    does: str = "says"
    #: The noun for empty answers, and the remark that reports add if there are many.
    empty: str = "empty answers"
    are_empty: str = ", which hardly any variant can change"
    #: The verb phrase for answers that are as their labels.
    are_right: str = "are right"
    #: Whether ``short`` and ``noun`` are plural.
    plural: bool = False

    @property
    def do(self) -> str:
        """``do`` or ``does``, to agree with ``short``."""
        return "do" if self.plural else "does"

    @property
    def some(self) -> str:
        """The indefinite noun phrase for the system."""
        who = self.who.removeprefix("the ")
        return f"an {who}" if who.startswith("a") else f"a {who}"

    @property
    def one(self) -> str:
        """The noun phrase for the tested part of one answer."""
        return self.what if self.plural else f"a {self.short}"

    @property
    def subject(self) -> str:
        """The tested part of an answer as a subject, with "is" or "are"."""
        return f"{self.what} are" if self.plural else f"{self.short} is"

    def test_name(self, verb: str) -> str:
        """Return the name of a test: ``test_reply_survives``."""
        return f"test_{self.identifier}_{verb}{'' if self.plural else 's'}"

    def fill(self, text: str) -> str:
        """Return a text with the words of this kind in place of placeholders.

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
        }
        for name, word in names.items():
            text = text.replace(f"{{{name}}}", word)
        return text


class SlotRules(NamedTuple):
    """The rules for a slot from the ontology or the schema of a tool."""

    path: AnswerPath
    #: Allowed value in the spelling of users -> the same value as written in an answer.
    values: dict[str, str]
    required: bool = False
    #: The default value, in the spelling of users.
    default: str | None = None


class AnswerKind(ABC):
    """A kind of answer. Its methods cover all differences of states, replies and tool calls."""

    #: The name in options and reports.
    name: ClassVar[OutcomeKind]
    words: ClassVar[Words]
    #: Whether an answer has the slots of an ontology. A system with such answers counts as
    #: deterministic unless it declares otherwise. Its answer is the same whether it sees its own
    #: earlier messages or the recorded ones.
    has_slots: ClassVar[bool] = False
    #: Whether the system gets a list of tools, and an answer calls tools from it.
    has_tools: ClassVar[bool] = False
    #: Whether an answer depends on the answers to earlier turns, so that these must be known.
    needs_earlier: ClassVar[bool] = True
    #: Whether a recorded answer may replace the system's answer.
    has_exact_labels: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"<kind {self.name}>"

    @abstractmethod
    def label(self, dialogue: Dialogue, index: int) -> Outcome | None:
        """Return the right answer to a turn, or ``None`` if the data has none."""

    def adds_up(self, history: History) -> bool:
        """Return whether an answer includes the answers to earlier turns with this history."""
        del history
        return False

    def text(self, answer: Outcome) -> str:
        """Return the sentences of an answer, or ``""`` if it has none."""
        del answer
        return ""

    def tools(self, dialogue: Dialogue) -> tuple[str, ...]:
        """Return the names of the tools that an answer may use."""
        return tuple(tool.name for tool in dialogue.tools) if self.has_tools else ()

    def label_values(self, dialogue: Dialogue, index: int) -> Iterator[tuple[str, str]]:
        """Yield the slots and values that the label of a turn adds."""
        del dialogue, index
        yield from ()

    def slot_values(self, answer: Outcome) -> Mapping[str, str]:
        """Return the values of an answer that users can say, by slot."""
        del answer
        return {}

    def slot_rules(self, data: DialogueSet) -> Mapping[str, SlotRules]:
        """Return the rules of the data for the slots of answers."""
        del data
        return {}

    def is_closed(self, data: DialogueSet, path: str) -> bool:
        """Return whether the data lists all values that the slot at a path may have."""
        del data, path
        return False

    def locked_values(
        self, data: DialogueSet, turn: Turn, clean: Outcome | None
    ) -> tuple[str, ...]:
        """Return the values that no edit of a turn may change, sorted. Lists are split.

        These are the values that `values` yields, and the values of the turn's belief state if the
        data has one.
        """
        values = set() if turn.state is None else set(turn.state.values())
        values.update(self.values(data, turn, clean))
        return tuple(sorted({member for value in values for member in members_of(value)}))

    def values(self, data: DialogueSet, turn: Turn, clean: Outcome | None) -> Iterator[str]:
        """Yield the values that the user gave, according to the labels and the ``clean`` answer."""
        del data, turn, clean
        yield from ()
