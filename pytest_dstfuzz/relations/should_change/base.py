"""The common base of relations that expect another answer, for states and tool calls."""

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
from pytest_dstfuzz.dialogue.messages import Message, decode_message
from pytest_dstfuzz.kinds.kind import SlotRules
from pytest_dstfuzz.kinds.tool_calls import (
    TOOL_CALLS,
    CallArgument,
    list_spoken_arguments,
    spell_value,
)
from pytest_dstfuzz.relations.relation import (
    Delta,
    EarlierResult,
    Expectation,
    Inapplicable,
    Relation,
    Replacement,
    Rewrite,
    Scene,
    Side,
    TurnRelation,
    TurnStart,
    list_rewrites,
)
from pytest_dstfuzz.relations.should_change.sites import (
    ValueSite,
    find_requests,
    sites_of,
    split_spoken,
)
from pytest_dstfuzz.relations.values import UNSPOKEN, ValueTable

#: Maximum number of words of a value. A longer text is content to pass on, such as a mail.
_MOST_WORDS: Final = 8
#: Values that users need not say.
_ASSUMED: Final = frozenset({"1", "one", "today", "now"})


@dataclass(frozen=True)
class ArgumentFacts:
    """Facts about the arguments of tools, from schemas and recorded calls. Arguments are slots."""

    rules: Mapping[str, SlotRules]
    #: Slot and value -> the text of the value in a call.
    texts: Mapping[tuple[str, str], str]
    #: Slot -> its tool and argument.
    places: Mapping[str, AnswerPath]
    #: Slots whose values are texts to pass on.
    passages: frozenset[str]
    #: Slot and value -> dialogues and turn indices of the recorded calls with this value.
    recorded: Mapping[tuple[str, str], list[tuple[Dialogue, int]]]
    #: Cache of `may_be_default`.
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
                for slot, argument in list_spoken_arguments(turn.calls or Outcome()).items():
                    places.setdefault(slot, argument.path)
                    texts.setdefault((slot, argument.value), argument.text)
                    recorded.setdefault((slot, argument.value), []).append((one, number))
        passages = frozenset(slot for slot, value in texts if _is_passage(value))
        return cls(rules, texts, places, passages, recorded)

    def is_required(self, slot: str) -> bool:
        """Return whether the tool requires an argument."""
        return slot in self.rules and self.rules[slot].required

    def may_be_default(self, slot: str, value: str) -> bool:
        """Return whether an assistant may choose a value that nobody said.

        An assistant may assume some values, such as one person or today. It may also choose the
        default of the schema. And it may choose a value if nobody said it in at least half of the
        recorded calls with it.
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
    """Return whether the user or the system says a value in the turns up to ``last``."""
    texts = (text for turn in dialogue.turns[: last + 1] for text in (turn.user, turn.system))
    return any(split_spoken(text).mentions(value) for text in texts)


def _call_values(data: DialogueSet) -> ValueTable:
    return ValueTable.of(data, TOOL_CALLS)


#: Minimum length of a text that is looked for in results. Shorter texts may occur by coincidence.
_SHORTEST: Final = 3


@dataclass(frozen=True, eq=False)
class CallScene(Scene):
    """A turn with tool calls in the form of slots. The slots are the arguments users can say."""

    @classmethod
    def of(cls, scene: Scene) -> CallScene:
        """Return the scene of a turn with its arguments as slots."""
        return cls(**{one.name: getattr(scene, one.name) for one in fields(scene)})

    @property
    def calls(self) -> Outcome:
        """The calls of the turn."""
        return self.state(self.index)

    @cached_property
    def arguments(self) -> Mapping[str, CallArgument]:
        """The arguments of the calls, by slot."""
        return list_spoken_arguments(self.calls)

    @cached_property
    def now(self) -> Outcome:
        """The values of the arguments by slot."""
        return Outcome({slot: one.value for slot, one in self.arguments.items()})

    @cached_property
    def before(self) -> Outcome:
        """The arguments of the calls, without those that the user says in this turn."""
        return Outcome({slot: v for slot, v in self.now.items() if not _says(self, slot, v)})

    @property
    def label(self) -> Outcome | None:
        """The arguments of the recorded calls, as the label."""
        calls = self.turn.calls
        return None if calls is None else Outcome(self.kind.slot_values(calls))

    @property
    def table(self) -> ValueTable:
        """Statistics on the arguments of the data and their values."""
        return self.once(_call_values)

    @property
    def names_domains(self) -> bool:
        """Always false, because nobody says the name of a tool."""
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
        """Return a rewrite with the expected change of the calls.

        If the change is unpredictable, the rewrite has no deltas. This is the case for members of
        lists and for texts that the assistant passes on. It is also the case for a removed value
        that an earlier round has, or that an assistant may choose.
        """
        made = super().rewrite(replacements, deltas, about=about, separable=separable)
        stated = made.expected.deltas
        exact = [_exact(self, delta, alone=len(stated) == 1) for delta in stated]
        by_path = {one.slot: one for delta in exact for one in delta}
        expected = Expectation(
            tuple(by_path[path] for path in sorted(by_path)) if all(exact) else ()
        )
        about = made.about
        for old, new in zip(stated, exact, strict=True):
            about = about.replace(str(old), ", ".join(map(str, shortly(new))))
        return replace(made, expected=expected, about=about)


def remove_calls(calls: Outcome, call: AnswerPath | None = None) -> tuple[Delta, ...]:
    """Return the changes that remove one call, or all calls if none is named."""
    return tuple(
        Delta(path, text, Admissible((None,)))
        for path, text in sorted(calls.items())
        if call is None or AnswerPath.of(path).call == call
    )


def shortly(deltas: Sequence[Delta]) -> list[Delta]:
    """Return the changes for display. Leave out the arguments of removed calls."""
    paths = [AnswerPath.of(one.slot) for one in deltas]
    gone_calls = {path for path in paths if path.is_call}
    return [
        one
        for one, path in zip(deltas, paths, strict=True)
        if path in gone_calls or path.call not in gone_calls
    ]


def _exact(scene: CallScene, delta: Delta, *, alone: bool) -> tuple[Delta, ...]:
    """Convert the change of a slot to changes of the calls, if they are predictable.

    ``alone`` is true if the rewrite changes no other slot.
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
    # A list is one value, and the effect on its other members is not predictable.
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
    """Return the expected changes for an argument that the user no longer says.

    The calls must not have the old value. The assistant may ask for another value, take one from an
    earlier message, or choose one. If the tool requires the argument and no earlier message gives a
    value, the whole call must be missing.
    """
    if _is_known(scene, slot, argument.value):
        return ()
    required = scene.once(ArgumentFacts.of).is_required(slot)
    if required and not _has_other_before(scene, slot, argument):
        return remove_calls(scene.calls, argument.path.call)
    other = Admissible((argument.text,), anything_but=True, or_no_call=True)
    return (Delta(str(argument.path), argument.text, other),)


def _is_namesake(one: CallArgument, other: CallArgument) -> bool:
    """Return whether two arguments have the same name but belong to different calls of a tool."""
    return one.path.part == other.path.part and one.path.call != other.path.call


def _is_known(scene: CallScene, slot: str, value: str) -> bool:
    """Return whether an assistant may use a value that the utterance does not say."""
    return _stands_before(scene, value) or scene.once(ArgumentFacts.of).may_be_default(slot, value)


def _has_type(value: str, before: str | None) -> bool:
    """Return whether a value fits the JSON type of the old value: `three` is not a number."""
    text = before is None or isinstance(value_of(before), str)
    return text or not isinstance(value_of(value), str)


def _text(facts: ArgumentFacts, slot: str, value: str, before: str | None) -> str:
    """Return a value as an answer spells it: as in the data, or in the style of the old value."""
    if (slot, value) in facts.texts:
        return facts.texts[slot, value]
    return text_of(value) if before is None or isinstance(value_of(before), str) else value


def _stands_before(scene: Scene, value: str) -> bool:
    """Return whether a value was said or recorded before the user's utterance."""
    if value in UNSPOKEN:
        return False
    if any(split_spoken(text).mentions(value) for text in _texts_before(scene)):
        return True
    for message in _messages_before(scene):
        if any(value in map(spell_value, (call.values or {}).values()) for call in message.calls):
            return True
        if len(value) >= _SHORTEST and value in _content(message).lower():
            return True
    return False


def _has_other_before(scene: CallScene, slot: str, argument: CallArgument) -> bool:
    """Return whether an earlier message may give an argument another value."""
    name = argument.path.argument
    messages = list(_messages_before(scene))
    if any(name in (call.values or {}) for message in messages for call in message.calls):
        return True
    texts = [*_texts_before(scene), *map(_content, messages)]
    values = scene.table.values.get(slot, ())
    return any(split_spoken(text).mentions(value) for text in texts for value in values)


def _texts_before(scene: Scene) -> Iterator[str]:
    """Yield the texts of the dialogue before the user's utterance."""
    *earlier, last = scene.context.exchanges
    yield from chain.from_iterable(earlier)
    yield last.system


def _messages_before(scene: Scene) -> Iterator[Message]:
    """Yield the recorded messages before the user's utterance."""
    transcript = scene.context.transcript
    for block in () if transcript is None else transcript.before:
        yield from map(decode_message, block or ())


def _content(message: Message) -> str:
    return message.content if isinstance(message.content, str) else json.dumps(message.content)


def _says(scene: Scene, slot: str, value: str) -> bool:
    """Return whether the user's utterance says the value of an argument."""
    if value in UNSPOKEN:
        return bool(find_requests(scene, slot, scene.turn.user))
    return bool(split_spoken(scene.turn.user).mentions(value))


NO_CALL: Final = "the turn calls no tool"
NOT_EXACT: Final = "the effect on the call is uncertain"
#: Reasons of every relation on tool calls.
OF_CALLS: Final = (NO_CALL, NOT_EXACT)
#: Rewrites for one slot, at least one, or the reason why there are none.
RewritesOrReason = Iterable[Rewrite] | str
#: The result of a relation that expects another answer, for a turn.
EditedTurn = list[Rewrite] | TurnRelation | Inapplicable


class ShouldChange(Relation):
    """Edits the user's words and predicts the change of each slot.

    A subclass defines ``name``, ``expects``, ``reasons`` and `edited`. For tool calls, the slots
    are the arguments of the calls, see `CallScene`.
    """

    on: ClassVar[tuple[OutcomeKind, ...]] = ("state", "tool-calls")
    edits: ClassVar[Literal["search", "own"]] = "own"
    side: ClassVar[Side] = "should-change"
    english: ClassVar[bool] = True

    def begin(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a turn, or the reason why there are none."""
        if not scene.kind.has_tools:
            return self.edited(scene)
        if not scene.now:
            return Inapplicable(NO_CALL)
        return self.of_calls(scene)

    @abstractmethod
    def edited(self, scene: Scene) -> EditedTurn:
        """Return the rewrites of a turn with a belief state, or why the relation does not apply."""

    def of_calls(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a turn with tool calls, or why the relation does not apply."""
        begun = self.edited(CallScene.of(scene))
        if isinstance(begun, Inapplicable):
            return begun
        # An added round would come too late, because the assistant has already called.
        exact = [one for one in list_rewrites(begun) if one.expected.deltas and not one.moves]
        return exact or Inapplicable(NOT_EXACT)


def from_sites(
    relation: ShouldChange, scene: Scene, make: Callable[[Scene, ValueSite], RewritesOrReason]
) -> EditedTurn:
    """Make rewrites for each value site of the turn. ``make`` handles one site."""
    sites = sites_of(scene)
    if not sites.found:
        return Inapplicable(sites.reason)
    return in_turn(relation, scene, [make(scene, site) for site in sites.found])


def in_turn(relation: ShouldChange, scene: Scene, made: Sequence[RewritesOrReason]) -> EditedTurn:
    """Combine the rewrites of several slots: first one rewrite of each slot, then the next.

    The order of the slots is random. If there are no rewrites, return the last reason in the order
    of the checks.
    """
    found = [iter(one) for one in made if not isinstance(one, str)]
    if not found:
        return Inapplicable(
            max((r for r in made if isinstance(r, str)), key=relation.reasons.index)
        )
    rows = zip_longest(*[found[place] for place in scene.rng.permutation(len(found))])
    return Lazily(one for row in rows for one in row if one is not None)


def some(rewrites: Iterator[Rewrite]) -> Iterator[Rewrite] | None:
    """Make the first rewrite. Return ``None`` if there is none, otherwise all rewrites."""
    first = next(rewrites, None)
    return None if first is None else chain((first,), rewrites)


class Lazily(TurnRelation):
    """Makes the rewrites of a turn on demand, and skips equal utterances.

    If a campaign uses only two rewrites of a turn, it need not wait for the others.
    """

    def __init__(self, rewrites: Iterator[Rewrite]) -> None:
        self._rewrites = rewrites
        self._made: list[Rewrite] = []

    def propose(self, number: int, draw: int, seen: Sequence[EarlierResult]) -> Rewrite | None:  # noqa: ARG002 - does not look
        """Return rewrite ``number``."""
        while len(self._made) <= number:
            written = next(self._rewrites, None)
            if written is None:
                return None
            if all(written.seen != one.seen for one in self._made):
                self._made.append(written)
        return None if draw else self._made[number]


def needs_values(relation: str, data: DialogueSet) -> str:
    """Return why no slot of the data can get another value, or ``""``."""
    tables = list(tables_of(data))
    if any(len(found) > 1 for table in tables for found in table.values.values()):
        return ""
    if needed := max(table.needed for table in tables):
        return (
            f"{relation} needs a slot with at least two values, each of them labelled in {needed} "
            "dialogues or more, because rare labels of large data may be errors. No slot of the "
            "data has two such values: add dialogues that have the same values"
        )
    return (
        f"{relation} needs a slot with at least two known values, and the data has neither an "
        "ontology nor labels with two values of one slot"
    )


def tables_of(data: DialogueSet) -> Iterator[ValueTable]:
    """Yield the tables of known values, for the slots of the data and for tool arguments."""
    yield ValueTable.of(data)
    if any(turn.calls is not None for one in data.dialogues for turn in one.turns):
        yield _call_values(data)
