"""Turns, dialogues, belief states and contexts, and their conversion to messages and JSON."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from operator import eq
from typing import Any, Final, Literal, NamedTuple, Protocol, overload

from pytest_dstfuzz.dialogue.calls import (
    AnswerPath,
    Outcome,
    Tool,
    ToolCall,
    Transcript,
    canonical,
    format_value,
)
from pytest_dstfuzz.dialogue.messages import Json, MessageCall, decode_message

__all__ = [
    "DONTCARE",
    "BeliefState",
    "Context",
    "Dialogue",
    "DialogueSet",
    "Exchange",
    "Turn",
    "answer_of",
    "entry_of",
    "turn_keys",
]


#: Suffix of an original name if a system calls it although the tool was renamed.
OLD_NAME: Final = " (old name)"


@dataclass(frozen=True)
class ToolParaphrase:
    """Tools with other names and descriptions.

    Tools and arguments without an entry stay unchanged.
    """

    #: Short name for reports: ``v1`` to ``v5`` of SGD-X.
    name: str
    #: Name of the original tool -> the paraphrased tool.
    tools: Mapping[str, Tool]
    #: Name of the original tool -> name of an argument -> its new name.
    arguments: Mapping[str, Mapping[str, str]]

    def applied(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return the paraphrased tools, in the same order."""
        return tuple(self.tools.get(tool.name, tool) for tool in tools)

    def renamed(self, call: ToolCall) -> ToolCall:
        """Convert a call of an original tool to a call of the paraphrased one."""
        tool = self.tools.get(call.name)
        return _renamed(call, tool.name if tool else call.name, self.arguments.get(call.name, {}))

    def original(self, call: ToolCall) -> ToolCall:
        """Convert a call of a paraphrased tool to a call of the original one."""
        name = self._names.get(call.name, call.name)
        back = {new: old for old, new in self.arguments.get(name, {}).items()}
        return _renamed(call, name, back if call.name in self._names else {})

    def names(self, tools: Iterable[Tool]) -> tuple[tuple[str, str], ...]:
        """Return ``(new name, original name)`` of tools and arguments, see `Transcript.names`.

        Arguments are ``new tool.new argument`` and ``original tool.original argument``.
        """
        found: list[tuple[str, str]] = []
        for tool in tools:
            if tool.name in self.tools:
                new = self.tools[tool.name].name
                pairs = self.arguments.get(tool.name, {}).items()
                found.append((new, tool.name))
                found += [(f"{new}.{other}", f"{tool.name}.{own}") for own, other in pairs]
        return tuple(found)

    def message(self, recorded: str) -> str:
        """Return a recorded JSON message with the new names in its calls and results."""
        message = decode_message(recorded)
        calls = tuple(map(self._renamed_call, message.calls))
        more = message.more
        if message.role == "tool" and more.get("name") in self.tools:
            more = {**more, "name": self.tools[more["name"]].name}
        return replace(message, calls=calls, more=more).encoded()

    def _renamed_call(self, made: MessageCall) -> MessageCall:
        values = made.values
        call = self.renamed(ToolCall(made.name, values or {}))
        # Keep arguments that are not a JSON object as recorded.
        arguments = made.arguments if values is None else canonical(call.arguments)
        return replace(made, name=call.name, arguments=arguments)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {tool.name: old for old, tool in self.tools.items()}


def _renamed(call: ToolCall, name: str, arguments: Mapping[str, str]) -> ToolCall:
    """Return a call with other names. Arguments inside other arguments keep their names."""
    return ToolCall(name, {arguments.get(key, key): value for key, value in call.arguments.items()})


def in_own_names(calls: Outcome, names: Iterable[tuple[str, str]]) -> Outcome:
    """Convert calls of renamed tools to the names in the data, see `Transcript.names`.

    If a system calls a renamed tool by its original name, it calls an unknown tool. The name
    becomes ``book_table (old name)``. Arguments are treated likewise.
    >>> names = [("reserve", "book"), ("reserve.guests", "book.people")]
    >>> dict(in_own_names(Outcome({"reserve[0]": "call 1", "reserve[0].guests": "2"}), names))
    {'book[0]': 'call 1', 'book[0].people': '2'}
    >>> dict(in_own_names(Outcome({"reserve[0].people": "2"}), names))
    {'book[0].people (old name)': '2'}
    """
    known = dict(names)
    gone = frozenset(known.values()) - known.keys()
    return Outcome({_own_path(path, known, gone): text for path, text in calls.items()})


def _own_path(path: str, known: Mapping[str, str], gone: frozenset[str]) -> str:
    place = AnswerPath.of(path)
    if not place.in_call:
        return path
    if place.tool in gone:
        return str(AnswerPath((place.tool + OLD_NAME, *place[1:])))
    tool = known.get(place.tool, place.tool)
    if place.is_call:
        return str(AnswerPath((tool, place[1])))
    number, first, *rest = place[1:]
    own = known.get(f"{place.tool}.{first}")
    if own is not None:
        first = own.removeprefix(f"{tool}.")
    elif f"{tool}.{first}" in gone:
        first = f"{first}{OLD_NAME}"
    return str(AnswerPath((tool, number, first, *rest)))


#: The value of a slot if the user said that any value will do.
DONTCARE = "dontcare"


class BeliefState(Outcome):
    """An immutable mapping ``domain-slot -> value``. Slots without a value are absent.

    ``dontcare`` is a value. Lists are values in the form of `list_text`.
    """

    __slots__ = ()


#: The comparison of a changed slot with the label: the old value was right, the new value is right,
#: or neither is.
ByLabel = Literal["right-to-wrong", "corrected", "wrong-to-wrong"]


@dataclass(frozen=True, slots=True)
class Admissible:
    """The accepted values of a slot. ``None`` means that the slot may be absent."""

    values: tuple[str | None, ...]
    #: If true, ``values`` are the rejected values, and all other values are accepted.
    anything_but: bool = False
    #: Whether it is also right if the tool call with this argument is missing.
    or_no_call: bool = False

    def __contains__(self, value: str | None) -> bool:
        return (value in self.values) != self.anything_but

    def __str__(self) -> str:
        return self.told()

    def told(self, show: Callable[[str | None], str] = format_value) -> str:
        """Describe the accepted values, each formatted by ``show``.

        >>> Admissible(("north",), anything_but=True, or_no_call=True).told()
        'anything but north, or no call'
        """
        listed = " or ".join(map(show, self.values))
        no_call = ", or no call" if self.or_no_call else ""
        return f"{'anything but ' if self.anything_but else ''}{listed}{no_call}"


@dataclass(frozen=True, slots=True)
class Difference:
    """A slot, or a path of an answer, with an unexpected value. ``None`` means absent.

    ``before`` equals ``after`` if the slot should have changed but did not.
    """

    slot: str
    before: str | None
    after: str | None
    #: Whether the slot changed in the same way at an earlier turn, in the same variant number.
    carried: bool = False
    #: The expected values. ``None`` if the value should stay.
    expected: Admissible | None = None
    #: Distance of the two values, from 0 to 2. ``None`` if the comparison has no distances.
    distance: float | None = None
    #: The difference in one readable line: ``1969 / 1970``. ``""`` if the values are clear.
    why: str = ""
    #: Comparison with the label. ``None`` if there is no label, or if the slot should change.
    by_label: ByLabel | None = None

    @property
    def path(self) -> AnswerPath:
        """The parsed name of the slot. In tests of tool calls it is a path into the calls."""
        return AnswerPath.of(self.slot)

    @property
    def is_fault(self) -> bool:
        """Whether the slot changed at this turn to a value that is not right."""
        return not self.carried and self.by_label != "corrected"

    @property
    def bare(self) -> Difference:
        """The plain change: slot, old value and new value."""
        return Difference(self.slot, self.before, self.after)

    def __str__(self) -> str:
        return self.bare.told()

    def told(self, show: Callable[[str], str] = str) -> str:
        """Describe the change and the expected values, with values formatted by ``show``.

        >>> Difference("area", "north", "north", expected=Admissible(("south",))).told()
        'area stayed north, expected south'
        """

        def shown(value: str | None) -> str:
            return show(format_value(value)) if value else "none"

        text = f"{self.slot}: {shown(self.before)} -> {shown(self.after)}"
        if self.expected is None:
            return text
        if self.before == self.after:
            text = f"{self.slot} stayed {shown(self.before)}"
        return f"{text}, expected {self.expected.told(shown)}"


def diff_states(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return the slots whose values differ, sorted by slot."""
    slots = sorted({*before, *after})
    pairs = ((slot, before.get(slot), after.get(slot)) for slot in slots)
    return tuple(Difference(*pair) for pair in pairs if pair[1] != pair[2])


class Exchange(NamedTuple):
    """A system utterance (``""`` at the start of a dialogue) and the user's answer."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Context:
    """The dialogue so far, as a tracker sees it. It has at least one exchange, oldest first."""

    exchanges: tuple[Exchange, ...]
    #: Tools and recorded messages. ``None`` if there are only texts.
    transcript: Transcript | None = field(default=None, kw_only=True)

    @property
    def user(self) -> str:
        """The newest user utterance."""
        return self.exchanges[-1].user

    @property
    def system(self) -> str:
        """The system utterance before the newest user utterance."""
        return self.exchanges[-1].system

    @property
    def user_utterances(self) -> tuple[str, ...]:
        """All user utterances, oldest first."""
        return tuple(exchange.user for exchange in self.exchanges)

    @property
    def user_messages(self) -> tuple[str, ...]:
        """All messages of the user, oldest first.

        These are the utterances, and recorded messages that are never edited, such as the payload
        of a button.
        """
        before = () if self.transcript is None else self.transcript.before
        found: list[str] = []
        for exchange, block in zip_longest(self.exchanges, before[: len(self.exchanges)]):
            recorded = map(decode_message, block or ())
            found += [one.text for one in recorded if one.role == "user" and one.text]
            found.append(exchange.user)
        return tuple(found)

    @property
    def utterances(self) -> tuple[str, ...]:
        """System and user utterances alternately, oldest first, without empty system ones."""
        both = (text for exchange in self.exchanges for text in exchange)
        return tuple(text for index, text in enumerate(both) if text or index % 2)

    def again(self, repetition: int) -> Again:
        """Return this context as another repetition of the same request."""
        return Again(self.exchanges, repetition, transcript=self.transcript)

    def saying(self, user: str) -> Context:
        """Return the context with another text as the last user utterance."""
        *earlier, last = self.exchanges
        return replace(self, exchanges=(*earlier, Exchange(last.system, user)))

    def going_on(self, system: str, user: str) -> Context:
        """Return the context with one more exchange."""
        return replace(self, exchanges=(*self.exchanges, Exchange(system, user)))

    def key(self) -> list[object]:
        """Return all data that a tracker sees, for a digest. Equal contexts have equal keys."""
        told = [] if self.transcript is None else [self.transcript.key]
        return [self.exchanges, *told]

    def size(self) -> int:
        """Number of characters in all utterances. Batches consist of contexts of similar length."""
        return sum(len(system) + len(user) for system, user in self.exchanges)


@dataclass(frozen=True, slots=True)
class Again(Context):
    """A repeated request of a context. Its answer is cached separately.

    The tracker does not see the number of the repetition. Votes use the numbers from 1. The check
    for varying answers uses -1. Restarted dialogues use `RESTART` and lower numbers, and their
    answers are never cached.
    """

    repetition: int


#: The first repetition of a whole dialogue.
RESTART = -2


class ContextJudge(Protocol):
    """Decides whether a question means the same in two conversations."""

    def keeps_context(self, clean: Context, changed: Context) -> bool | None:
        """Return whether the last question is as clear in the changed conversation.

        ``None`` means that there is no verdict.
        """


@dataclass(frozen=True, slots=True)
class Turn:
    """One user utterance, the system utterance before it, and the belief state after it."""

    index: int
    system: str
    user: str
    #: The normalised label. ``None`` if the data has none.
    state: BeliefState | None = None
    #: The recorded answer of the system, if it is not in the next turn. It is ``""`` if the
    #: recording says that the question has no answer.
    answer: str | None = None
    #: The recorded messages between the previous user utterance and this one, each as JSON in the
    #: form of OpenAI's API. ``None`` if only the text of the system is known.
    recorded: tuple[str, ...] | None = None
    #: The tool calls in the next recorded answer of the system, see `calls_outcome`. ``None`` if
    #: this answer is not recorded.
    calls: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation: its turns in order, with ``turns[i].index == i``."""

    id: str
    turns: tuple[Turn, ...]
    #: The tools that the system could call.
    tools: tuple[Tool, ...] = ()
    #: The messages after the last user utterance, in the form of `Turn.recorded`.
    closing: tuple[str, ...] = ()
    #: See `Transcript.results`.
    results: tuple[tuple[str, str], ...] = ()

    def context(self, index: int, users: Mapping[int, str] | None = None) -> Context:
        """Return the context of turn ``index``, with some user utterances replaced.

        Args:
            index: the turn with the newest utterance of the context.
            users: turn index -> utterance that replaces the clean one.
        """
        users = users or {}
        turns = self.turns[: index + 1]
        transcript = None
        if self.tools or any(turn.recorded is not None for turn in turns):
            before = tuple(turn.recorded for turn in turns)
            transcript = Transcript(self.tools, before, results=self.results)
        return Context(
            tuple(Exchange(turn.system, users.get(turn.index, turn.user)) for turn in turns),
            transcript=transcript,
        )


def answer_of(dialogue: Dialogue, index: int) -> str | None:
    """Return the recorded answer of the system to a turn, or ``None`` if there is none.

    This is the turn's own answer. If that is missing, it is the system utterance of the next turn.
    It is ``""`` if the recording says that the question has no answer.
    """
    own = dialogue.turns[index].answer
    if own is not None or index + 1 == len(dialogue.turns):
        return own
    return dialogue.turns[index + 1].system or None


class StoredDialogues(Sequence[Dialogue]):  # noqa: PLW1641 - like lists, see the docstring
    """Dialogues of large data, read on access. Only ids and lengths are in memory.

    Any other sequence of the same dialogues is equal.
    """

    @property
    @abstractmethod
    def places(self) -> Mapping[str, int]:
        """Id of each dialogue -> its index."""

    @property
    @abstractmethod
    def lengths(self) -> Sequence[int]:
        """Number of turns of each dialogue."""

    @property
    @abstractmethod
    def labelled(self) -> bool:
        """Whether every turn has a belief state label."""

    @property
    @abstractmethod
    def tools(self) -> tuple[Tool, ...]:
        """All tools of the dialogues, without duplicates, in order of appearance."""

    @abstractmethod
    def read(self, place: int) -> Dialogue:
        """Return the dialogue at an index."""

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, place: int) -> Dialogue: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Dialogue, ...]: ...
    def __getitem__(self, place: int | slice) -> Dialogue | tuple[Dialogue, ...]:
        found = range(len(self))[place]
        return self.read(found) if isinstance(found, int) else tuple(map(self.read, found))

    def __iter__(self) -> Iterator[Dialogue]:
        return map(self.read, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))


@dataclass(frozen=True, slots=True)
class Ontology:
    """The slots of the data and their known values."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Whether there are no other slots. It is false if labels are the only source, since a tracker
    #: may correctly predict a slot that no label uses.
    complete: bool = True
    #: Name of the normalisation of slots and values.
    normalisation: str = "plain"
    #: Source of the list of slots, for messages.
    source: str = "the ontology of the data"

    @property
    def slots(self) -> tuple[str, ...]:
        """Slot names, sorted."""
        return tuple(sorted(self.values))


@dataclass(frozen=True, slots=True)
class DialogueSet:
    """One split of one data set, read and normalised."""

    #: Short name in test ids and reports: ``sample``, ``multiwoz21``, or a file's stem.
    name: str
    split: str
    #: A tuple, or `StoredDialogues` if there are many (see `sampling.gathered`).
    dialogues: Sequence[Dialogue]
    #: ``None`` if the data has none.
    ontology: Ontology | None = None
    #: Name of the value normalisation that was applied (``multiwoz`` or ``plain``).
    normalisation: str = "plain"
    #: The layout of the data, as the name of a reader.
    layout: str = "jsonl"
    #: Sentences for the user about choices made while reading. They are printed once.
    notes: tuple[str, ...] = ()
    #: Additional words that name the purpose of a value (slot and domain words), for the locks.
    cue_words: tuple[str, ...] = ()
    #: Slot -> ordinary words for it, without its domain: ``{"train-leaveat": "departure time"}``.
    slot_phrases: Mapping[str, str] = field(default_factory=dict)
    #: Yes/no slot -> words with which people request it, besides its name:
    #: ``{"hotel-internet": ("wifi",)}``.
    flag_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Paraphrases of utterances that a person has confirmed, by `turn_keys`. ``None`` if no file of
    #: paraphrases was given.
    frozen: Mapping[str, tuple[str, ...]] | None = None
    #: Paraphrases of the tools, if any were given.
    paraphrases: tuple[ToolParaphrase, ...] = ()

    @property
    def labelled(self) -> bool:
        """Whether every turn has a belief state label."""
        many = self._stored
        if many is not None:
            return many.labelled
        return all(turn.state is not None for turn in self.turns())

    @property
    def says_slots(self) -> bool:
        """Whether the set of slots is known, from an ontology or from labels on every turn."""
        return self.ontology is not None and (self.ontology.complete or self.labelled)

    @property
    def lengths(self) -> Sequence[int]:
        """Number of turns of each dialogue."""
        many = self._stored
        return [len(one.turns) for one in self.dialogues] if many is None else many.lengths

    @property
    def ids(self) -> Collection[str]:
        """The ids of the dialogues, in order."""
        many = self._stored
        return [one.id for one in self.dialogues] if many is None else many.places.keys()

    def dialogue(self, name: str) -> Dialogue:
        """Return the dialogue with an id, which must exist."""
        many = self._stored
        if many is None:
            return next(one for one in self.dialogues if one.id == name)
        return many.read(many.places[name])

    def turns(self) -> Iterator[Turn]:
        """Yield the turns of all dialogues."""
        return (turn for dialogue in self.dialogues for turn in dialogue.turns)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools of the dialogues, without duplicates, in order of appearance."""
        many = self._stored
        if many is not None:
            return many.tools
        return tuple(dict.fromkeys(tool for one in self.dialogues for tool in one.tools))

    def turn_count(self) -> int:
        """Number of turns in all dialogues."""
        return sum(self.lengths)

    @property
    def _stored(self) -> StoredDialogues | None:
        return self.dialogues if isinstance(self.dialogues, StoredDialogues) else None


def domains_of_slots(slots: Iterable[str]) -> frozenset[str]:
    """Return the domains of slots. A slot without a dash has no domain."""
    return frozenset(slot.partition("-")[0] for slot in slots if "-" in slot)


def turn_keys(dialogue: Dialogue) -> tuple[str, ...]:
    """Return a digest of all that a tracker sees for each turn, as 16 hexadecimal digits.

    The digest includes the tools and all utterances and messages up to the turn. It does not
    include ids, labels or later turns. If a dialogue gets more turns, its first turns keep their
    keys.
    """
    digest = hashlib.sha256()
    keys = []
    if dialogue.tools:
        digest.update(json.dumps(dialogue.tools).encode("ascii"))
    for turn in dialogue.turns:
        seen = [turn.system, turn.user, *(turn.recorded or ())]
        # ASCII, because an utterance may contain half of a surrogate pair.
        digest.update(json.dumps(seen).encode("ascii"))
        keys.append(digest.hexdigest()[:16])
    return tuple(keys)


#: Role of the system's message before the first user utterance. The message may be a greeting, or a
#: title and a story to which the questions refer.
OpeningRole = Literal["assistant", "system"]


class AssistantInput(NamedTuple):
    """The input of an assistant."""

    messages: list[Json]
    tools: list[Json]


def messages_of(context: Context, opening: OpeningRole = "assistant") -> list[dict[str, str]]:
    """Return a dialogue as messages in the form of OpenAI's API, oldest first.

    Each has a ``role``, ``user`` or ``assistant``, and its text as ``content``. An empty system
    utterance gives no message. A system utterance before the first user utterance has the role
    ``opening``.
    """
    messages = []
    role: str = opening
    for system, user in context.exchanges:
        if system:
            messages.append({"role": role, "content": system})
        messages.append({"role": "user", "content": user})
        role = "assistant"
    return messages


def messages_and_tools(context: Context, opening: OpeningRole = "assistant") -> AssistantInput:
    """Return a context as messages and tools in the form of OpenAI's API, oldest first.

    Recorded messages are kept unchanged: system prompts, tool calls, their results. If only texts
    are known, the messages are those of `messages_of`.
    """
    transcript = context.transcript
    if transcript is None:
        return AssistantInput([dict(one) for one in messages_of(context, opening)], [])
    messages: list[Json] = []
    for place, exchange in enumerate(context.exchanges):
        before = transcript.before[place] if place < len(transcript.before) else None
        if before is not None:
            messages += map(json.loads, before)
        elif exchange.system:
            role = "assistant" if place else opening
            messages.append({"role": role, "content": exchange.system})
        messages.append({"role": "user", "content": exchange.user})
    messages += map(json.loads, transcript.after)
    return AssistantInput(messages, [tool.to_json() for tool in transcript.tools])


def whole_dialogue(dialogue: Dialogue) -> list[Json]:
    """Return all messages of a dialogue."""
    messages: list[Json] = []
    for turn in dialogue.turns:
        if turn.recorded is not None:
            messages += map(json.loads, turn.recorded)
        elif turn.system:
            messages.append({"role": "assistant", "content": turn.system})
        messages.append({"role": "user", "content": turn.user})
    messages += map(json.loads, dialogue.closing)
    last = dialogue.turns[-1].answer if dialogue.turns else None
    if last and not dialogue.closing:
        messages.append({"role": "assistant", "content": last})
    return messages


def entry_of(dialogue: Dialogue) -> dict[str, Any]:
    """Return a dialogue as a JSON entry: id, messages, and tools and states if it has any."""
    entry: dict[str, Any] = {"id": dialogue.id, "messages": whole_dialogue(dialogue)}
    if dialogue.tools:
        entry["tools"] = [_tool(tool) for tool in dialogue.tools]
    if any(turn.state is not None for turn in dialogue.turns):
        states = (turn.state for turn in dialogue.turns)
        entry["states"] = [None if state is None else state.to_json() for state in states]
    return entry


def _tool(tool: Tool) -> dict[str, Any]:
    """Return a tool in the form of OpenAI's API, with MCP's annotation if it is read-only."""
    hint = {"annotations": {"readOnlyHint": True}} if tool.read_only else {}
    return tool.to_json() | hint


def json_lines(dialogues: Iterable[Dialogue]) -> Iterator[str]:
    """Yield dialogues as JSON Lines, each line with its line end."""
    return (f"{json.dumps(entry_of(one), ensure_ascii=False)}\n" for one in dialogues)
