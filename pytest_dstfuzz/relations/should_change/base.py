"""What relations share under which the answer must change, tool calls among them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, zip_longest
from typing import ClassVar, Final, Literal

from pytest_dstfuzz.dialogue.calls import AnswerPath, Outcome, OutcomeKind, text_of, value_of
from pytest_dstfuzz.dialogue.dialogues import Admissible, Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.messages import Message, decoded
from pytest_dstfuzz.kinds.kind import SlotRules
from pytest_dstfuzz.kinds.tool_calls import (
    TOOL_CALLS,
    CallArgument,
    spoken_arguments,
    spoken_value,
)
from pytest_dstfuzz.relations.relation import (
    Begun,
    Delta,
    Expected,
    Inapplicable,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    Shown,
    Side,
    TurnRelation,
    proposed,
)
from pytest_dstfuzz.relations.should_change.sites import ValueSite, asked_for, sites_of, spoken
from pytest_dstfuzz.relations.values import UNSPOKEN, ValueTable

#: A text of more words is something to pass on, such as the body of a mail, and no value.
_MOST_WORDS: Final = 8
#: Values that go without saying.
_ASSUMED: Final = frozenset({"1", "one", "today", "now"})


@dataclass(frozen=True)
class ArgumentFacts:
    """What the schemas and the recorded calls of data say of arguments, which have a slot each."""

    rules: Mapping[str, SlotRules]
    #: Slot and value -> the text that the value is in a call.
    texts: Mapping[tuple[str, str], str]
    #: Slot -> its tool and argument.
    places: Mapping[str, AnswerPath]
    #: Slots whose values are texts to pass on.
    passages: frozenset[str]
    #: Slot and value -> the turns whose recorded calls have it, by dialogue and number.
    recorded: Mapping[tuple[str, str], list[tuple[Dialogue, int]]]
    #: Results of `may_be_default`.
    _defaults: dict[tuple[str, str], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, data: DialogueSet) -> ArgumentFacts:
        """Read the recorded calls and the schemas of the tools."""
        rules = TOOL_CALLS.slot_rules(data)
        texts = {(slot, v): text for slot, one in rules.items() for v, text in one.values.items()}
        places = {slot: one.path for slot, one in rules.items()}
        recorded: dict[tuple[str, str], list[tuple[Dialogue, int]]] = {}
        for one in data.dialogues:
            for number, turn in enumerate(one.turns):
                for slot, argument in spoken_arguments(turn.calls or Outcome()).items():
                    places.setdefault(slot, argument.path)
                    texts.setdefault((slot, argument.value), argument.text)
                    recorded.setdefault((slot, argument.value), []).append((one, number))
        passages = frozenset(slot for slot, value in texts if _is_passage(value))
        return cls(rules, texts, places, passages, recorded)

    def is_required(self, slot: str) -> bool:
        """Say whether the tool needs an argument."""
        return slot in self.rules and self.rules[slot].required

    def may_be_default(self, slot: str, value: str) -> bool:
        """Say whether an assistant may choose a value that nobody says.

        Nobody has to say that they are one, or mean today. Of others the schema says it, or half of
        the recorded calls with the value follow no utterance that says it.
        """
        if value in _ASSUMED or (slot in self.rules and self.rules[slot].default == value):
            return True
        if (slot, value) not in self._defaults:
            places = self.recorded.get((slot, value), [])
            unsaid = sum(not _is_said(value, one, turn) for one, turn in places)
            self._defaults[slot, value] = bool(unsaid) and 2 * unsaid >= len(places)
        return self._defaults[slot, value]


def _is_passage(value: str) -> bool:
    return "\n" in value or len(value.split()) > _MOST_WORDS


def _is_said(value: str, dialogue: Dialogue, last: int) -> bool:
    """Say whether anybody says a value up to a turn."""
    texts = (text for turn in dialogue.turns[: last + 1] for text in (turn.user, turn.system))
    return any(spoken(text).mentions(value) for text in texts)


def _call_values(data: DialogueSet) -> ValueTable:
    return ValueTable.of(data, TOOL_CALLS)


#: Shorter texts stand in results for something else.
_SHORTEST: Final = 3


@dataclass(frozen=True, eq=False)
class CallScene(Scene):
    """A turn at which tools are called; its slots are the arguments that people can say."""

    @classmethod
    def of(cls, scene: Scene) -> CallScene:
        """Return the scene of a turn by its arguments."""
        return cls(**{one.name: getattr(scene, one.name) for one in fields(scene)})

    @property
    def calls(self) -> Outcome:
        """The calls."""
        return self.state(self.index)

    @cached_property
    def arguments(self) -> Mapping[str, CallArgument]:
        """The arguments of the calls by slot."""
        return spoken_arguments(self.calls)

    @cached_property
    def now(self) -> Outcome:
        """The values of the arguments."""
        return Outcome({slot: one.value for slot, one in self.arguments.items()})

    @cached_property
    def before(self) -> Outcome:
        """The arguments that the utterance does not say."""
        return Outcome({slot: v for slot, v in self.now.items() if not _says(self, slot, v)})

    @property
    def label(self) -> Outcome | None:
        """The arguments that were recorded."""
        calls = self.turn.calls
        return None if calls is None else Outcome(self.kind.slot_values(calls))

    @property
    def table(self) -> ValueTable:
        """What is known of the arguments of the data, and of their values."""
        return self.once(_call_values)

    @property
    def names_domains(self) -> bool:
        """Nobody says the name of a tool."""
        return False

    def worded(self, slot: str, value: str) -> str:
        """Return a value in the spelling of the data: `Elm Hill`, not `elm hill`."""
        text = self.once(ArgumentFacts.of).texts.get((slot, value))
        return value if text is None else " ".join(str(value_of(text)).split())

    def rewrite(
        self,
        replacements: Iterable[Replacement],
        deltas: Iterable[Delta] = (),
        *,
        about: str = "",
        separable: bool = False,
    ) -> Rewrite:
        """Return a rewrite that says what becomes of the calls, or nothing if nobody can know it.

        That is so of members of lists, and of texts to pass on; and of values that are taken away
        although an earlier round has them, too, or an assistant may choose them by itself.
        """
        made = super().rewrite(replacements, deltas, about=about, separable=separable)
        stated = made.expected.deltas
        exact = [_exact(self, delta, alone=len(stated) == 1) for delta in stated]
        by_path = {one.slot: one for delta in exact for one in delta}
        expected = Expected(tuple(by_path[path] for path in sorted(by_path)) if all(exact) else ())
        about = made.about
        for old, new in zip(stated, exact, strict=True):
            about = about.replace(str(old), ", ".join(map(str, shortly(new))))
        return replace(made, expected=expected, about=about)


def gone(calls: Outcome, call: AnswerPath | None = None) -> tuple[Delta, ...]:
    """Return that a call, or all of them, are no longer made."""
    return tuple(
        Delta(path, text, Admissible((None,)))
        for path, text in sorted(calls.items())
        if call is None or AnswerPath.of(path).call == call
    )


def shortly(deltas: Sequence[Delta]) -> list[Delta]:
    """Return deltas without the arguments of calls that are gone themselves, for people."""
    paths = [AnswerPath.of(one.slot) for one in deltas]
    gone_calls = {path for path in paths if path.is_call}
    return [
        one
        for one, path in zip(deltas, paths, strict=True)
        if path in gone_calls or path.call not in gone_calls
    ]


def _exact(scene: CallScene, delta: Delta, *, alone: bool) -> tuple[Delta, ...]:
    """Return a delta of a slot by the paths of the calls, and nothing if nobody can know it.

    ``alone`` = the rewrite has no other delta.
    """
    slot, after, table = delta.slot, delta.after, scene.once(ArgumentFacts.of)
    argument, required = scene.arguments.get(slot), table.is_required(slot)
    if argument is None:
        place = table.places.get(slot)
        if place is None or f"{place.tool}[0]" not in scene.calls:
            return ()
        place, before = AnswerPath((place.tool, 0, *place[2:])), None
    else:
        place, before = argument.path, argument.text
    # A list is one value, and nobody knows what becomes of its other members.
    whole = slot not in table.passages and not any(isinstance(step, int) for step in place[2:])
    if not whole or (slot not in table.rules and None in after.values):
        return ()
    if after.values == (None,) and argument is not None:
        if any(_is_namesake(one, argument) for one in scene.arguments.values()):
            return ()
        if alone:
            return _left_out(scene, slot, argument)
        if required or _is_known(scene, slot, argument.value):
            return ()
    texts: list[str | None] = [
        None if value is None else _text(table, slot, value, before)
        for value in after.values
        if value is None or (slot, value) in table.texts or _has_type(value, before)
    ]
    if required and len(texts) > 1:
        texts = [text for text in texts if text is not None]
    wanted = replace(after, values=tuple(dict.fromkeys(texts)))
    return () if not texts or before in wanted else (Delta(str(place), before, wanted),)


def _left_out(scene: CallScene, slot: str, argument: CallArgument) -> tuple[Delta, ...]:
    """Return what becomes of an argument that the utterance no longer says.

    Its value must go. An assistant may ask for another one, take what an earlier message gives, or
    choose one by itself. A tool is not called that needs it, if no earlier message gives any.
    """
    if _is_known(scene, slot, argument.value):
        return ()
    required = scene.once(ArgumentFacts.of).is_required(slot)
    if required and not _has_other_before(scene, slot, argument):
        return gone(scene.calls, argument.path.call)
    other = Admissible((argument.text,), anything_but=True, or_no_call=True)
    return (Delta(str(argument.path), argument.text, other),)


def _is_namesake(one: CallArgument, other: CallArgument) -> bool:
    """Say whether two arguments are those of two calls of one tool: either may have its value."""
    return one.path.part == other.path.part and one.path.call != other.path.call


def _is_known(scene: CallScene, slot: str, value: str) -> bool:
    """Say whether an assistant may give an argument a value that the utterance does not say."""
    return _stands_before(scene, value) or scene.once(ArgumentFacts.of).may_be_default(slot, value)


def _has_type(value: str, before: str | None) -> bool:
    """Say whether a value may be one of the old one's JSON type: `three` is no number."""
    text = before is None or isinstance(value_of(before), str)
    return text or not isinstance(value_of(value), str)


def _text(facts: ArgumentFacts, slot: str, value: str, before: str | None) -> str:
    """Return a value as a text of an outcome: as the data has it, else of the old one's type."""
    if (slot, value) in facts.texts:
        return facts.texts[slot, value]
    return text_of(value) if before is None or isinstance(value_of(before), str) else value


def _stands_before(scene: Scene, value: str) -> bool:
    """Say whether a value was said or recorded before the utterance, so that it is known."""
    if value in UNSPOKEN:
        return False
    if any(spoken(text).mentions(value) for text in _texts_before(scene)):
        return True
    for message in _messages_before(scene):
        if any(value in map(spoken_value, (call.values or {}).values()) for call in message.calls):
            return True
        if len(value) >= _SHORTEST and value in _content(message).lower():
            return True
    return False


def _has_other_before(scene: CallScene, slot: str, argument: CallArgument) -> bool:
    """Say whether a message before the utterance may give an argument another value."""
    name = argument.path.argument
    messages = list(_messages_before(scene))
    if any(name in (call.values or {}) for message in messages for call in message.calls):
        return True
    texts = [*_texts_before(scene), *map(_content, messages)]
    values = scene.table.values.get(slot, ())
    return any(spoken(text).mentions(value) for text in texts for value in values)


def _texts_before(scene: Scene) -> Iterator[str]:
    """Yield what was said before the utterance."""
    *earlier, last = scene.context.exchanges
    yield from chain.from_iterable(earlier)
    yield last.system


def _messages_before(scene: Scene) -> Iterator[Message]:
    """Yield the messages that were recorded before the utterance."""
    transcript = scene.context.transcript
    for block in () if transcript is None else transcript.before:
        yield from map(decoded, block or ())


def _content(message: Message) -> str:
    return message.content if isinstance(message.content, str) else json.dumps(message.content)


def _says(scene: Scene, slot: str, value: str) -> bool:
    """Say whether the utterance gives an argument."""
    if value in UNSPOKEN:
        return bool(asked_for(scene, slot, scene.turn.user))
    return bool(spoken(scene.turn.user).mentions(value))


NO_CALL: Final = "the turn calls no tool"
NOT_EXACT: Final = "what becomes of the call would have to be guessed"
#: Why nothing is said of a turn at which tools may be called, of each relation.
OF_CALLS: Final = (NO_CALL, NOT_EXACT)
#: Rewrites of one slot, at least one, or why there are none.
Made = Iterable[Rewrite] | str
#: What such a relation makes of a turn.
Edited = list[Rewrite] | TurnRelation | Inapplicable


class ShouldChange(Relation):
    """A relation that edits what the user says and states what becomes of which slot.

    It writes ``name``, ``expects``, ``reasons`` and `edited`. Of tool calls it is given the
    arguments as slots, see `calls`.
    """

    on: ClassVar[tuple[OutcomeKind, ...]] = ("state", "tool-calls")
    edits: ClassVar[Literal["search", "own"]] = "own"
    side: ClassVar[Side] = "should-change"
    english: ClassVar[bool] = True

    def begin(self, scene: Scene) -> Begun:
        """Return what it makes of a turn, of belief states or of tool calls."""
        if not scene.kind.has_tools:
            return self.edited(scene)
        if not scene.now:
            return Inapplicable(NO_CALL)
        return self.of_calls(scene)

    @abstractmethod
    def edited(self, scene: Scene) -> Edited:
        """Return what it makes of a turn with a belief state."""

    def of_calls(self, scene: Scene) -> Begun:
        """Return what it makes of a turn at which tools are called."""
        begun = self.edited(CallScene.of(scene))
        if isinstance(begun, Inapplicable):
            return begun
        # An assistant would have called already before a round that is added.
        exact = [one for one in proposed(begun) if one.expected.deltas and not one.moves]
        return exact or Inapplicable(NOT_EXACT)


def from_sites(
    relation: ShouldChange, scene: Scene, make: Callable[[Scene, ValueSite], Made]
) -> Edited:
    """Return the rewrites that ``make`` writes for the sites of a turn."""
    sites = sites_of(scene)
    if not sites.found:
        return Inapplicable(sites.reason)
    return in_turn(relation, scene, [make(scene, site) for site in sites.found])


def in_turn(relation: ShouldChange, scene: Scene, made: Sequence[Made]) -> Edited:
    """Return the rewrites of several slots: the first of each, in a drawn order, then the second.

    Where there are none, the turn is counted with the reason of the slot that got furthest.
    """
    found = [iter(one) for one in made if not isinstance(one, str)]
    if not found:
        return Inapplicable(
            max((r for r in made if isinstance(r, str)), key=relation.reasons.index)
        )
    rows = zip_longest(*[found[place] for place in scene.rng.permutation(len(found))])
    return Lazily(one for row in rows for one in row if one is not None)


def some(rewrites: Iterator[Rewrite]) -> Iterator[Rewrite] | None:
    """Return rewrites of which the first is written already; ``None`` where there is none."""
    first = next(rewrites, None)
    return None if first is None else chain((first,), rewrites)


class Lazily(TurnRelation):
    """Rewrites of a turn that are written when they are asked for, each utterance once.

    A campaign that takes two of a turn does not pay for the others.
    """

    def __init__(self, rewrites: Iterator[Rewrite]) -> None:
        self._rewrites = rewrites
        self._made: list[Rewrite] = []

    def propose(self, number: int, draw: int, seen: Sequence[Shown]) -> Rewrite | None:  # noqa: ARG002 - does not look
        """Return rewrite ``number``."""
        while len(self._made) <= number:
            written = next(self._rewrites, None)
            if written is None:
                return None
            if all(written.seen != one.seen for one in self._made):
                self._made.append(written)
        return None if draw else self._made[number]


def needs_values(relation: str, data: DialogueSet) -> str:
    """Say why no turn can satisfy a relation that puts in other values; ``""`` = some may."""
    if any(len(found) > 1 for table in tables_of(data) for found in table.values.values()):
        return ""
    return (
        f"{relation} needs other values of a slot, and the data has neither an ontology nor labels "
        "with two values of one slot"
    )


def tables_of(data: DialogueSet) -> Iterator[ValueTable]:
    """Yield what is known of the slots of data, and of the arguments of its tools."""
    yield ValueTable.of(data)
    if any(turn.calls is not None for one in data.dialogues for turn in one.turns):
        yield _call_values(data)
