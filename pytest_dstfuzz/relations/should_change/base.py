"""What relations share under which the answer must change, tool calls among them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import ClassVar, Final, Literal

from pytest_dstfuzz.dialogue.calls import AnswerPath, Outcome, OutcomeKind, Tool, text_of, value_of
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.messages import Message, decoded
from pytest_dstfuzz.dialogue.readers.tools import enum_members
from pytest_dstfuzz.relations.relation import (
    Admissible,
    Begun,
    BySearch,
    Delta,
    Expected,
    Inapplicable,
    Relation,
    Rewrite,
    Scene,
    Shown,
    Side,
    TurnRelation,
    begin,
    proposed,
)
from pytest_dstfuzz.relations.should_change.sites import ValueSite, asked_for, sites_of, spoken
from pytest_dstfuzz.relations.values import UNSPOKEN, ValueTable

#: A text of more words is something to pass on, such as the body of a mail, and no value.
_MOST_WORDS: Final = 8
#: Values that go without saying.
_ASSUMED: Final = frozenset({"1", "one", "today", "now"})


@dataclass(frozen=True, slots=True)
class CallArgument:
    """An argument of a call that people can say."""

    path: AnswerPath
    #: As people write it, in lower case.
    value: str
    #: As it stands in the outcome.
    text: str


@dataclass(frozen=True)
class CallView:
    """Data as the relations on slots see it, and the way back."""

    data: DialogueSet
    #: Slot and value -> the text that the value is in a call.
    texts: Mapping[tuple[str, str], str]
    #: Slot -> its tool and argument.
    places: Mapping[str, AnswerPath]
    #: Slots that the tools need, and those that may be left out; others are in no schema.
    required: frozenset[str]
    optional: frozenset[str]
    #: Slots whose values are texts to pass on.
    passages: frozenset[str]
    #: Slot -> the value that its schema takes where none is given.
    defaults: Mapping[str, str]
    #: Slot and value -> the turns whose recorded calls have it, by dialogue and number.
    recorded: Mapping[tuple[str, str], list[tuple[Dialogue, int]]]
    #: See `Scene.kept`.
    kept: dict[object, object] = field(default_factory=dict)

    @classmethod
    def of(cls, data: DialogueSet) -> CallView:
        """Read the recorded calls and the schemas of the tools."""
        texts: dict[tuple[str, str], str] = {}
        places: dict[str, AnswerPath] = {}
        values: dict[str, dict[str, None]] = {}
        required: dict[str, bool] = {}
        defaults: dict[str, str] = {}
        for tool in data.tools:
            for place, listed in _of_schema(tool):
                slot = slot_of(place)
                places.setdefault(slot, place)
                known = values.setdefault(slot, {})
                for value in listed:
                    if (told := spoken_value(value)) is not None:
                        known[told] = None
                        texts.setdefault((slot, told), text_of(value))
                required[slot] = place.argument in _required(tool)
                if (default := _default(tool, place.argument)) is not None:
                    defaults[slot] = default
        recorded: dict[tuple[str, str], list[tuple[Dialogue, int]]] = {}
        dialogues = []
        for one in data.dialogues:
            turns = []
            for number, turn in enumerate(one.turns):
                for slot, argument in spoken_arguments(turn.calls or Outcome()).items():
                    places.setdefault(slot, argument.path)
                    texts.setdefault((slot, argument.value), argument.text)
                    recorded.setdefault((slot, argument.value), []).append((one, number))
                turns.append(replace(turn, state=as_state(turn.calls), recorded=None))
            dialogues.append(Dialogue(one.id, tuple(turns)))
        ontology = Ontology({s: tuple(sorted(v)) for s, v in sorted(values.items())}, False)
        return cls(
            replace(data, dialogues=tuple(dialogues), ontology=ontology, normalisation="plain"),
            texts,
            places,
            frozenset(slot for slot, needed in required.items() if needed),
            frozenset(slot for slot, needed in required.items() if not needed),
            frozenset(slot for slot, value in texts if _is_passage(value)),
            defaults,
            recorded,
        )

    def worded(self, slot: str, value: str) -> str:
        """Return a value in the spelling of the data: `Elm Hill`, not `elm hill`."""
        text = self.texts.get((slot, value))
        return value if text is None else " ".join(str(value_of(text)).split())

    def may_be_default(self, slot: str, value: str) -> bool:
        """Say whether an assistant may choose a value that nobody says.

        Nobody has to say that they are one, or mean today. Of others the schema says it, or half of
        the recorded calls with the value follow no utterance that says it.
        """
        if value in _ASSUMED or self.defaults.get(slot) == value:
            return True
        if ("default", slot, value) not in self.kept:
            places = self.recorded.get((slot, value), [])
            unsaid = sum(not _is_said(value, one, turn) for one, turn in places)
            self.kept["default", slot, value] = bool(unsaid) and 2 * unsaid >= len(places)
        return bool(self.kept["default", slot, value])


def spoken_arguments(calls: Outcome) -> dict[str, CallArgument]:
    """Return the arguments of tool calls that people can say, by slot.

    Of a further call of a tool, and of a list, the slot has a number.
    """
    found: dict[str, CallArgument] = {}
    for path, text in calls.items():
        place = AnswerPath.of(path)
        value = spoken_value(value_of(text)) if place.in_call and not place.is_call else None
        if value is None:
            continue
        slot = name = slot_of(place)
        number = 1
        while slot in found:
            number += 1
            slot = f"{name}#{number}"
        found[slot] = CallArgument(place, value, text)
    return found


def as_state(calls: Outcome | None) -> BeliefState | None:
    """Return tool calls as a belief state."""
    if calls is None:
        return None
    return BeliefState({slot: one.value for slot, one in spoken_arguments(calls).items()})


def slot_of(place: AnswerPath) -> str:
    """Return what an argument is called as a slot: the tool stands for the domain."""
    argument = place.part[1].removeprefix(f"{place.tool}.")
    return f"{place.tool.replace('-', '_')}-{argument}"


def spoken_value(value: object) -> str | None:
    """Return a JSON value as people write it; ``None`` = nobody says such a one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        return None
    return str(value).strip().lower() or None


def _is_passage(value: str) -> bool:
    return "\n" in value or len(value.split()) > _MOST_WORDS


def _is_said(value: str, dialogue: Dialogue, last: int) -> bool:
    """Say whether anybody says a value up to a turn."""
    texts = (text for turn in dialogue.turns[: last + 1] for text in (turn.user, turn.system))
    return any(spoken(text).mentions(value) for text in texts)


def _of_schema(tool: Tool) -> Iterator[tuple[AnswerPath, list[object]]]:
    """Yield the arguments of a tool with the values that its schema lists."""
    found: dict[str, list[object]] = {}
    for argument, value in enum_members(tool):
        known = found.setdefault(argument, [])
        if value is not None:
            known.append(value)
    for name, inner in _properties(tool).items():
        if isinstance(inner, dict) and inner.get("type") == "boolean":
            found[name] = [True, False]
    for argument, values in found.items():
        yield AnswerPath.of(f"{tool.name}[0].{argument}"), values


def _default(tool: Tool, argument: str) -> str | None:
    inner = _properties(tool).get(argument)
    return spoken_value(inner.get("default")) if isinstance(inner, dict) else None


def _properties(tool: Tool) -> Mapping[str, object]:
    found = tool.schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required(tool: Tool) -> list[str]:
    needed = tool.schema.get("required")
    return needed if isinstance(needed, list) else []


#: Shorter texts stand in results for something else.
_SHORTEST: Final = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class CallScene(Scene):
    """A turn whose calls are seen as a belief state."""

    view: CallView
    #: The arguments that the utterance does not say.
    earlier: Outcome = field(default_factory=Outcome)

    @property
    def before(self) -> Outcome:
        """The arguments that the utterance does not say."""
        return self.earlier

    @property
    def names_domains(self) -> bool:
        """Nobody says the name of a tool."""
        return False

    def worded(self, slot: str, value: str) -> str:
        """Return a value as the data spells it."""
        return self.view.worded(slot, value)


def call_scene(scene: Scene) -> CallScene:
    """Return a turn of tool calls as the relations on slots see it."""
    view = scene.once(CallView.of)
    now = {slot: one.value for slot, one in spoken_arguments(scene.now).items()}
    said = {slot for slot, value in now.items() if _says(scene, slot, value)}
    return CallScene(
        relation=scene.relation,
        dialogue=_viewed(scene),
        index=scene.index,
        states=(*[Outcome()] * scene.index, BeliefState(now)),
        data=view.data,
        guards=scene.guards,
        lexicon=scene.lexicon,
        seed=scene.seed,
        variants=scene.variants,
        kept=view.kept,
        view=view,
        earlier=BeliefState({slot: value for slot, value in now.items() if slot not in said}),
    )


def told_of_calls(scene: Scene, seen: CallScene, rewrites: Iterable[Rewrite]) -> Iterator[Rewrite]:
    """Yield rewrites of a turn as a belief state as those of its tool calls.

    Left out are those that nothing exact can be said of: rounds that are added, as the assistant
    would have called already; members of lists, and texts to pass on; and values that are taken
    away although an earlier round has them, too, or an assistant may choose them by itself.
    """
    arguments = spoken_arguments(scene.now)
    for rewrite in rewrites:
        stated = rewrite.expected.deltas
        alone = len(stated) == 1
        deltas = [_told(scene, seen, arguments, delta, alone=alone) for delta in stated]
        whole = [one for delta in deltas for one in delta or ()]
        if rewrite.moves or not all(deltas):
            continue
        by_path = {one.slot: one for one in whole}
        expected = Expected(tuple(by_path[path] for path in sorted(by_path)))
        about = rewrite.about
        for old, new in zip(rewrite.expected.deltas, deltas, strict=True):
            about = about.replace(str(old), ", ".join(map(str, shortly(new))))
        yield replace(
            rewrite,
            seen=replace(scene.context, exchanges=rewrite.seen.exchanges),
            reference=scene.context,
            expected=expected,
            about=about,
        )


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


def _told(
    scene: Scene,
    seen: CallScene,
    arguments: Mapping[str, CallArgument],
    delta: Delta,
    *,
    alone: bool,
) -> tuple[Delta, ...]:
    """Return a delta by the paths of the calls; nothing where it cannot be told.

    ``alone`` = the rewrite has no other delta.
    """
    slot, after, view = delta.slot, delta.after, seen.view
    argument = arguments.get(slot)
    if argument is None:
        place = view.places.get(slot)
        if place is None or f"{place.tool}[0]" not in scene.now:
            return ()
        place, before = AnswerPath((place.tool, 0, *place[2:])), None
    else:
        place, before = argument.path, argument.text
    # A list is one value, and nobody knows what becomes of its other members.
    whole = slot not in view.passages and not any(isinstance(step, int) for step in place[2:])
    if not whole or (slot not in view.required | view.optional and None in after.values):
        return ()
    if after.values == (None,) and argument is not None:
        if any(_is_namesake(one, argument) for one in arguments.values()):
            return ()
        if alone:
            return _left_out(scene, seen, slot, argument)
        if slot in view.required or _is_known(scene, seen, slot, argument.value):
            return ()
    texts: list[str | None] = [
        None if value is None else _text(view, slot, value, before)
        for value in after.values
        if value is None or (slot, value) in view.texts or _has_type(value, before)
    ]
    if slot in view.required and len(texts) > 1:
        texts = [text for text in texts if text is not None]
    wanted = replace(after, values=tuple(dict.fromkeys(texts)))
    return () if not texts or before in wanted else (Delta(str(place), before, wanted),)


def _left_out(
    scene: Scene, seen: CallScene, slot: str, argument: CallArgument
) -> tuple[Delta, ...]:
    """Return what becomes of an argument that the utterance no longer says.

    Its value must go. An assistant may ask for another one, take what an earlier message gives, or
    choose one by itself. A tool is not called that needs it, if no earlier message gives any.
    """
    if _is_known(scene, seen, slot, argument.value):
        return ()
    if slot in seen.view.required and not _has_other_before(scene, seen, slot, argument):
        return gone(scene.now, argument.path.call)
    other = Admissible((argument.text,), anything_but=True, or_no_call=True)
    return (Delta(str(argument.path), argument.text, other),)


def _is_namesake(one: CallArgument, other: CallArgument) -> bool:
    """Say whether two arguments are those of two calls of one tool: either may have its value."""
    return one.path.part == other.path.part and one.path.call != other.path.call


def _is_known(scene: Scene, seen: CallScene, slot: str, value: str) -> bool:
    """Say whether an assistant may give an argument a value that the utterance does not say."""
    return _stands_before(scene, value) or seen.view.may_be_default(slot, value)


def _has_type(value: str, before: str | None) -> bool:
    """Say whether a value may be one of the old one's JSON type: `three` is no number."""
    text = before is None or isinstance(value_of(before), str)
    return text or not isinstance(value_of(value), str)


def _text(view: CallView, slot: str, value: str, before: str | None) -> str:
    """Return a value as a text of an outcome: as the data has it, else of the old one's type."""
    if (slot, value) in view.texts:
        return view.texts[slot, value]
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


def _has_other_before(scene: Scene, seen: CallScene, slot: str, argument: CallArgument) -> bool:
    """Say whether a message before the utterance may give an argument another value."""
    name = argument.path.argument
    messages = list(_messages_before(scene))
    if any(name in (call.values or {}) for message in messages for call in message.calls):
        return True
    texts = [*_texts_before(scene), *map(_content, messages)]
    values = seen.once(ValueTable.of).values.get(slot, ())
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


def _viewed(scene: Scene) -> Dialogue:
    """Return the dialogue of a scene, which may be cut, with the calls as states."""
    turns = (replace(turn, state=as_state(turn.calls)) for turn in scene.dialogue.turns)
    return replace(scene.dialogue, turns=tuple(turns))


NO_CALL: Final = "the turn calls no tool"
NOT_EXACT: Final = "what becomes of the call would have to be guessed"
#: Why nothing is said of a turn at which tools may be called, of each relation.
OF_CALLS: Final = (NO_CALL, NOT_EXACT)
#: Rewrites of one slot, at least one, or why there are none.
Made = Iterable[Rewrite] | str


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
    def edited(self, scene: Scene) -> Begun:
        """Return what it makes of a turn with a belief state."""

    def of_calls(self, scene: Scene) -> Begun:
        """Return what it makes of a turn at which tools are called."""
        seen = call_scene(scene)
        begun = begin(self, seen)
        if isinstance(begun, Inapplicable | BySearch):
            return begun
        return list(told_of_calls(scene, seen, proposed(begun))) or Inapplicable(NOT_EXACT)


def from_sites(
    relation: ShouldChange, scene: Scene, make: Callable[[Scene, ValueSite], Made]
) -> Begun:
    """Return the rewrites that ``make`` writes for the sites of a turn."""
    sites = sites_of(scene)
    if not sites.found:
        return Inapplicable(sites.reason)
    return in_turn(relation, scene, [make(scene, site) for site in sites.found])


def in_turn(relation: ShouldChange, scene: Scene, made: Sequence[Made]) -> Begun:
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
        yield ValueTable.of(CallView.of(data).data)
