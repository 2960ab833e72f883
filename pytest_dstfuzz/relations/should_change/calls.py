"""The relations on slots, on tool calls: the arguments of a turn's calls seen as a belief state.

An argument is a slot, see `CallView`. What an utterance says of the arguments is what it gives; all
others stood before. The relations edit such a turn as any other, and what they expect is then told
by the paths of the calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from pytest_dstfuzz.dialogue.calls import AnswerPath, text_of, value_of
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue
from pytest_dstfuzz.dialogue.messages import Message, decoded
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.relations.kinds import UNSPOKEN
from pytest_dstfuzz.relations.rewrite import Admissible, Delta, Expected, Rewrite
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.call_view import (
    CallArgument,
    CallView,
    as_state,
    spoken_arguments,
    spoken_value,
)
from pytest_dstfuzz.relations.should_change.flags import asked_for
from pytest_dstfuzz.relations.should_change.sites import spoken
from pytest_dstfuzz.relations.values import ValueTable

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
