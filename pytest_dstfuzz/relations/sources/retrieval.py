"""Retrieval: the turn in the words of somebody else who gave the same slots in a like place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Final, NamedTuple

from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    DialogueSet,
    SlotChange,
    diff_states,
)
from pytest_dstfuzz.perturb.spelling import spelled
from pytest_dstfuzz.relations.kinds import UNSPOKEN, domain_of, name_words
from pytest_dstfuzz.relations.mentions import SpokenText, ValueMention
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.relations.rewrite import Begun, Inapplicable
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.relations.should_change.sites import spoken
from pytest_dstfuzz.relations.sources.locks import broken_lock, said_otherwise
from pytest_dstfuzz.relations.values import ValueTable, article_before, written

_NONE: Final = "the turn gives no slot a value"
_UNSAID: Final = "the turn does not say each value that it gives, once"
_LABELS: Final = "the labels have other changes than the answers"
_NOBODY: Final = "nobody else gives the same slots in a like place, with no lock broken"
#: Rewrites of a turn.
MOST_RETRIEVED: Final = 8


class _Place(NamedTuple):
    """What a turn gives, and where: turns of one place may be said in each other's words."""

    slots: tuple[str, ...]
    #: Whether the system has spoken, asks, and which of the slots it names.
    system: tuple[bool, bool, frozenset[str]]
    #: Whether the user asks.
    asks: bool
    #: Words for the domains of the slots that the user says.
    domains: frozenset[str]


class Template(NamedTuple):
    """An utterance, and where it says the value of each slot that it gives."""

    dialogue: str
    user: str
    #: Slot and its mention, in the order of the text.
    values: tuple[tuple[str, ValueMention], ...]

    def filled(self, table: ValueTable, values: Mapping[str, str]) -> str | None:
        """Return the utterance with other values, ``None`` where one cannot be written so."""
        text = self.user
        for slot, mention in reversed(self.values):
            model = text[mention.start : mention.end]
            new = written(table.kinds.get(slot, "name"), values[slot], model)
            if new is None:
                return None
            start = mention.start
            head = text[:start].rstrip()
            last = head.rpartition(" ")[2]
            if last.lower() in {"a", "an"}:
                right = article_before(new)
                start = len(head) - len(last)
                new = f"{right.capitalize() if last[0].isupper() else right} {new}"
            text = text[:start] + new + text[mention.end :]
        return text


@register_relation
class Retrieval(Relation):
    """The state stays when a turn is said in the words of another dialogue of the data.

    The meaning holds as far as the labels are right: both turns give the same slots, after a
    system turn that names the same ones of them, and the other's values give way to the turn's own.
    """

    name = "retrieval"
    expects = "{stays}"
    source = "the utterances of the data itself, under its licence"
    on = ("state",)
    edits = "own"
    reasons = (_NONE, _UNSAID, _LABELS, _NOBODY)

    def impossible(self, data: DialogueSet) -> str:
        """Say why there is nobody whose words could be taken."""
        labelled = sum(all(turn.state is not None for turn in one.turns) for one in data.dialogues)
        return "" if labelled > 1 else "it takes words of other dialogues with labels"

    def begin(self, scene: Scene) -> Begun:
        """Return the turn in the words of a few others, drawn at random."""
        changes = diff_states(scene.before, scene.now)
        if not changes:
            return Inapplicable(_NONE)
        found = _template(scene.dialogue.id, scene.turn.user, changes)
        if found is None:
            return Inapplicable(_UNSAID)
        if _mislabelled(scene, changes):
            return Inapplicable(_LABELS)
        texts = list(islice(said_by_others(scene, scene.once(templates)), MOST_RETRIEVED))
        if not texts:
            return Inapplicable(_NOBODY)
        return said_otherwise(scene, texts, "retrieved")


Templates = Mapping[_Place, Sequence[Template]]


def templates(data: DialogueSet) -> Templates:
    """Return the utterances of data that say all that they give, by their places."""
    table = ValueTable.of(data)
    found: dict[_Place, list[Template]] = {}
    for dialogue in data.dialogues:
        states = [BeliefState(), *(turn.state for turn in dialogue.turns)]
        for turn, (before, now) in zip(dialogue.turns, pairwise(states), strict=True):
            if before is None or now is None:
                continue
            changes = diff_states(before, now)
            one = _template(dialogue.id, turn.user, changes) if changes else None
            if one is not None:
                place = _place(table, turn.system, turn.user, [slot for slot, *_ in changes])
                found.setdefault(place, []).append(one)
    return found


def said_by_others(scene: Scene, others: Templates) -> Iterator[str]:
    """Yield a turn in the words of others, in an order drawn at random, each text once."""
    table = scene.once(ValueTable.of)
    changes = diff_states(scene.before, scene.now)
    values = {change.slot: change.after or "" for change in changes}
    place = _place(table, scene.turn.system, scene.turn.user, list(values))
    pool = others.get(place, ())
    seen = {_plain(scene.turn.user)}
    for index in scene.rng.permutation(len(pool)).tolist():
        one = pool[index]
        text = one.filled(table, values) if one.dialogue != scene.dialogue.id else None
        if text is None or _plain(text) in seen or broken_lock(scene, text):
            continue
        seen.add(_plain(text))
        yield text


def _plain(text: str) -> tuple[str, ...]:
    return tuple([word.lower for word in spoken(text).parts.words])


def _template(dialogue: str, user: str, changes: Sequence[SlotChange]) -> Template | None:
    """Return an utterance with its mentions; ``None`` where it does not say each value once."""
    said: SpokenText = spoken(user)
    found = []
    for change in changes:
        if change.after is None or change.after in UNSPOKEN:
            return None
        mentions = said.mentions(change.after)
        if len(mentions) != 1 or mentions[0].spelled == "other":
            return None
        found.append((mentions[0], change.slot))
    found.sort()
    if any(one.end > other.start for (one, _), (other, _) in pairwise(found)):
        return None
    return Template(dialogue, user, tuple((slot, mention) for mention, slot in found))


def _place(table: ValueTable, system: str, user: str, slots: Sequence[str]) -> _Place:
    asked = frozenset(spoken(system).forms)
    said = frozenset(spoken(user).forms)
    named = {
        slot
        for slot in slots
        if not asked.isdisjoint({*map(spelled, name_words(slot)), *_nouns(table, slot)})
    }
    domains = {spelled(domain_of(slot)) for slot in table.kinds if domain_of(slot)} & said
    return _Place(
        tuple(sorted(slots)),
        (bool(system.strip()), "?" in system, frozenset(named)),
        "?" in user,
        frozenset(domains),
    )


def _nouns(table: ValueTable, slot: str) -> frozenset[str]:
    """Return what else a system may say where it asks for a slot of a kind."""
    return _ASKED.get(table.kinds.get(slot, "name"), frozenset())


#: Kind of a slot -> words by which systems ask for it.
_ASKED: Final[Mapping[str, frozenset[str]]] = {
    "time": frozenset({"time", "when"}),
    "day": frozenset({"day", "when", "date"}),
    "end": frozenset({"where"}),
    "number": frozenset({"many"}),
}


def _mislabelled(scene: Scene, changes: Sequence[SlotChange]) -> bool:
    """Say whether the labels, where there are some, have other changes."""
    earlier = scene.dialogue.turns[scene.index - 1].state if scene.index else BeliefState()
    label = scene.turn.state
    if earlier is None or label is None:
        return False
    return diff_states(earlier, label) != tuple(changes)
