"""The relations on slots, on tool calls: the arguments of a turn's calls seen as a belief state.

An argument is a slot, its tool the domain, and its value is written as people write it. What an
utterance says of the arguments is what it gives; all others stood before. The relations edit such a
turn as any other, and what they expect is then told by the paths of the calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_dstfuzz.dialogue.calls import CallPath, Tool, call_path, text_of, value_of
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Dialogue,
    DialogueSet,
    Ontology,
)
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.dialogue.readers.chat_form import arguments_of
from pytest_dstfuzz.dialogue.readers.tool_lists import enum_members
from pytest_dstfuzz.relations.kinds import UNSPOKEN
from pytest_dstfuzz.relations.rewrite import Admissible, Delta, Expected, Rewrite
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.flags import asked_for
from pytest_dstfuzz.relations.should_change.sites import spoken

#: Shorter texts stand in results for something else.
_SHORTEST: Final = 3


@dataclass(frozen=True)
class CallView:
    """Data as the relations on slots see it, and the way back."""

    data: DialogueSet
    #: Slot and value -> the text that the value is in a call.
    texts: Mapping[tuple[str, str], str]
    #: Slot -> its tool and argument.
    places: Mapping[str, CallPath]
    #: Slots that the tools need, and those that may be left out; others are in no schema.
    required: frozenset[str]
    optional: frozenset[str]
    #: See `Scene.kept`.
    kept: dict[object, object] = field(default_factory=dict)

    @classmethod
    def of(cls, data: DialogueSet) -> CallView:
        """Read the recorded calls and the schemas of the tools."""
        texts: dict[tuple[str, str], str] = {}
        places: dict[str, CallPath] = {}
        values: dict[str, dict[str, None]] = {}
        required: dict[str, bool] = {}
        for tool in data.tools:
            for place, listed in _of_schema(tool):
                slot = _slot(place)
                places.setdefault(slot, place)
                known = values.setdefault(slot, {})
                for value in listed:
                    if (told := _spoken_value(value)) is not None:
                        known[told] = None
                        texts.setdefault((slot, told), text_of(value))
                required[slot] = place.argument in _required(tool)
        dialogues = []
        for one in data.dialogues:
            turns = []
            for turn in one.turns:
                for slot, argument in spoken_arguments(turn.calls or Outcome()).items():
                    places.setdefault(slot, argument.path)
                    texts.setdefault((slot, argument.value), argument.text)
                turns.append(replace(turn, state=_as_state(turn.calls), recorded=None))
            dialogues.append(Dialogue(one.id, tuple(turns)))
        ontology = Ontology({s: tuple(sorted(v)) for s, v in sorted(values.items())}, False)
        return cls(
            replace(data, dialogues=tuple(dialogues), ontology=ontology, normalisation="plain"),
            texts,
            places,
            frozenset(slot for slot, needed in required.items() if needed),
            frozenset(slot for slot, needed in required.items() if not needed),
        )


@dataclass(frozen=True, slots=True)
class CallArgument:
    """An argument of a call that people can say."""

    path: CallPath
    #: As people write it, in lower case.
    value: str
    #: As it stands in the outcome.
    text: str


@dataclass(frozen=True, eq=False)
class CallScene(Scene):
    """A turn whose calls are seen as a belief state."""

    #: The arguments that the utterance does not say.
    earlier: Outcome = field(default_factory=Outcome)
    #: The arguments that their tools need.
    required: frozenset[str] = frozenset()

    @property
    def before(self) -> Outcome:
        """The arguments that the utterance does not say."""
        return self.earlier


def spoken_arguments(calls: Outcome) -> dict[str, CallArgument]:
    """Return the arguments of tool calls that people can say, by slot.

    Of a further call of a tool, and of a list, the slot has a number.
    """
    found: dict[str, CallArgument] = {}
    for path, text in calls.items():
        place = call_path(path)
        value = None if place is None else _spoken_value(value_of(text))
        if place is None or not place.argument or value is None:
            continue
        slot = name = _slot(place)
        number = 1
        while slot in found:
            number += 1
            slot = f"{name}#{number}"
        found[slot] = CallArgument(place, value, text)
    return found


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
        earlier=BeliefState({slot: value for slot, value in now.items() if slot not in said}),
        required=view.required,
    )


def told_of_calls(scene: Scene, rewrites: Iterable[Rewrite]) -> Iterator[Rewrite]:
    """Yield rewrites of a turn as a belief state as those of its tool calls.

    Left out are those that nothing exact can be said of: rounds that are added, as the assistant
    would have called already; and values that are taken away, and stand in an earlier round, too.
    """
    view, arguments = scene.once(CallView.of), spoken_arguments(scene.now)
    for rewrite in rewrites:
        deltas = [_told(scene, view, arguments, delta) for delta in rewrite.expected.deltas]
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


def gone(calls: Outcome, call: str = "") -> tuple[Delta, ...]:
    """Return that a call, or all of them, are no longer made."""
    return tuple(
        Delta(path, text, Admissible((None,)))
        for path, text in sorted(calls.items())
        if not call or path == call or path.startswith((f"{call}.", f"{call}["))
    )


def shortly(deltas: Sequence[Delta]) -> list[Delta]:
    """Return deltas without the arguments of calls that are gone themselves, for people."""
    calls = {one.slot for one in deltas if (path := call_path(one.slot)) and not path.argument}
    return [one for one in deltas if one.slot in calls or _call_of(one.slot) not in calls]


def _call_of(path: str) -> str:
    place = call_path(path)
    return "" if place is None else place.call


def _told(
    scene: Scene, view: CallView, arguments: Mapping[str, CallArgument], delta: Delta
) -> tuple[Delta, ...]:
    """Return a delta by the paths of the calls; nothing where it cannot be told."""
    slot, after = delta.slot, delta.after
    if (None in after.values or after.anything_but) and _stands_before(scene, delta.before):
        return ()
    argument = arguments.get(slot)
    if argument is None:
        place = view.places.get(slot)
        if place is None or f"{place.tool}[0]" not in scene.now:
            return ()
        path, before = str(place._replace(number=0)), None
    else:
        path, before = str(argument.path), argument.text
        if after.values == (None,) and slot in view.required:
            # A tool that lacks what it needs is not called.
            return gone(scene.now, argument.path.call)
    if slot not in view.required | view.optional and None in after.values:
        return ()
    texts: list[str | None] = [
        None if value is None else _text(view, slot, value, before) for value in after.values
    ]
    if slot in view.required and len(texts) > 1:
        texts = [text for text in texts if text is not None]
    wanted = Admissible(tuple(dict.fromkeys(texts)), after.anything_but)
    return () if before in wanted else (Delta(path, before, wanted),)


def _text(view: CallView, slot: str, value: str, before: str | None) -> str:
    """Return a value as a text of an outcome: as the data has it, else of the old one's type."""
    if (slot, value) in view.texts:
        return view.texts[slot, value]
    typed = before is not None and not isinstance(value_of(before), str)
    return value if typed and not isinstance(value_of(value), str) else text_of(value)


def _stands_before(scene: Scene, value: str | None) -> bool:
    """Say whether a value was said or recorded before the utterance, so that it is known."""
    if value is None or value in UNSPOKEN:
        return False
    *earlier, last = scene.context.exchanges
    texts = [text for one in earlier for text in one] + [last.system]
    if any(spoken(text).mentions(value) for text in texts):
        return True
    transcript = scene.context.transcript
    blocks = () if transcript is None else transcript.before
    for message in (json.loads(one) for block in blocks for one in block or ()):
        for called in message.get("tool_calls") or ():
            given = arguments_of(called["function"].get("arguments") or "") or {}
            if value in map(_spoken_value, given.values()):
                return True
        content = message.get("content")
        told = content if isinstance(content, str) else json.dumps(content)
        if len(value) >= _SHORTEST and value in told.lower():
            return True
    return False


def _says(scene: Scene, slot: str, value: str) -> bool:
    """Say whether the utterance gives an argument."""
    if value in UNSPOKEN:
        return bool(asked_for(scene, slot, scene.turn.user))
    return bool(spoken(scene.turn.user).mentions(value))


def _viewed(scene: Scene) -> Dialogue:
    """Return the dialogue of a scene, which may be cut, with the calls as states."""
    turns = (replace(turn, state=_as_state(turn.calls)) for turn in scene.dialogue.turns)
    return replace(scene.dialogue, turns=tuple(turns))


def _as_state(calls: Outcome | None) -> BeliefState | None:
    if calls is None:
        return None
    return BeliefState({slot: one.value for slot, one in spoken_arguments(calls).items()})


def _slot(place: CallPath) -> str:
    """Return what an argument is called as a slot: the tool stands for the domain."""
    argument = place.slot.removeprefix(f"{place.tool}.")
    return f"{place.tool.replace('-', '_')}-{argument}"


def _spoken_value(value: object) -> str | None:
    """Return a JSON value as people write it; ``None`` = nobody says such a one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        return None
    return str(value).strip().lower() or None


def _of_schema(tool: Tool) -> Iterator[tuple[CallPath, list[object]]]:
    """Yield the arguments of a tool with the values that its schema lists."""
    found: dict[str, list[object]] = {}
    for argument, value in enum_members(tool):
        known = found.setdefault(argument, [])
        if value is not None:
            known.append(value)
    properties = tool.schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict) and inner.get("type") == "boolean":
            found[name] = [True, False]
    for argument, values in found.items():
        yield CallPath(tool.name, 0, argument), values


def _required(tool: Tool) -> list[str]:
    needed = tool.schema.get("required")
    return needed if isinstance(needed, list) else []
