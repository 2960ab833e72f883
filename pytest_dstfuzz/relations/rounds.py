"""Relations that move, repeat or drop the rounds of a dialogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import (
    DONTCARE,
    Admissible,
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Difference,
    Exchange,
    Turn,
    diff_states,
)
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.values import Mentions, content, spell_compared
from pytest_dstfuzz.perturb.words import word_list, word_set
from pytest_dstfuzz.relations.registry import register_relation
from pytest_dstfuzz.relations.relation import (
    Delta,
    Expectation,
    Inapplicable,
    Move,
    Relation,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.relations.should_change.sites import says_more, says_other, spans, split_spoken
from pytest_dstfuzz.relations.values import FLAG_VALUES, domain_of, join_value, name_words


def rounds_after(count: int, moves: Iterable[Move]) -> tuple[int, ...]:
    """Return the order of the rounds of a dialogue after some moves.

    Args:
        count: number of rounds before the moves.
        moves: the moves, which are applied one after the other. A move identifies rounds by their
            index in the clean dialogue.

    >>> rounds_after(4, [Move("move", 2, 1), Move("drop", 0)])
    (2, 1, 3)
    >>> rounds_after(2, [Move("repeat", 0, 0)])
    (0, 0, 1)

    Raises:
        ValueError: a round does not exist, or a move does not move, repeat or drop a round.
    """
    order = list(range(count))
    for move in moves:
        if move.kind == "again":
            continue
        if move.kind in {"add", "join"} or (move.kind in {"move", "repeat"} and move.to is None):
            raise ValueError(f"cannot apply {move}: it makes a new round, or has no target round")
        place = order.index(move.turn)
        if move.kind == "repeat":
            order.insert(order.index(move.to or 0) + 1, move.turn)
            continue
        order.pop(place)
        if move.kind == "move":
            order.insert(order.index(move.to or 0), move.turn)
    return tuple(order)


def context_after(dialogue: Dialogue, count: int, moves: Sequence[Move]) -> Context:
    """Return the context of a dialogue's first ``count`` rounds after some moves.

    Raises:
        ValueError: see `rounds_after`.
    """
    turns = [dialogue.turns[index] for index in rounds_after(count, moves)]
    return Context(tuple(Exchange(turn.system, turn.user) for turn in turns))


def order_rounds(order: Sequence[int]) -> tuple[Move, ...]:
    """Return the moves that turn the order ``0, 1, ...`` of rounds into another order.

    >>> order_rounds([0, 3, 1, 2])
    (Move(kind='move', turn=3, to=1),)
    """
    moves, now = [], sorted(order)
    for place, wanted in enumerate(order):
        if now[place] != wanted:
            moves.append(Move("move", wanted, now[place]))
            now.remove(wanted)
            now.insert(place, wanted)
    return tuple(moves)


#: A word is a longer form of a value if it begins with this number of its letters.
_STEM: Final = 6
#: Words of a correction. A correction may show that an earlier value belongs to another slot.
CORRECTIONS: Final = word_set("actually instead rather sorry wrong oops correction meant mistake")
#: If these words are next to `there` or `that`, the user does not refer to an earlier round: `is
#: there a hotel that has parking`.
_ASKED_BY: Final = word_set("is are was were if do does")
_RELATIVE: Final = word_set(
    """is are has have serves serve offers offer includes include leaves leave departs depart
    arrives arrive goes go will would can gets runs costs stays starts"""
)


@dataclass(frozen=True)
class SpokenRound:
    """One round: the system's text, the user's answer, and the slots that it changes."""

    index: int
    system: str
    user: str
    #: Changes of the states of the scene, sorted by slot.
    delta: tuple[Difference, ...]
    #: Changes of the labels; ``None`` if this turn or the turn before has no label.
    labelled: tuple[Difference, ...] | None
    #: The values mentioned by the system or the user.
    said: Mentions
    #: The values mentioned by the user.
    words_of_user: Mentions
    #: The words of both in normalised form.
    forms: frozenset[str]

    @property
    def slots(self) -> frozenset[str]:
        """The slots that change, by the tracker's states or by the labels."""
        return frozenset(change.slot for change in (*self.delta, *(self.labelled or ())))

    @property
    def domains(self) -> frozenset[str]:
        """The domains of the slots that change."""
        return frozenset(map(domain_of, self.slots))

    def says(self, change: Difference) -> bool:
        """Return whether the round mentions the new value of a changed slot.

        If the value is yes or no, the round must name the slot. The deletion of a value is never
        mentioned.
        """
        return _says(self.said, change)

    def hints_at(self, change: Difference) -> bool:
        """Return whether the round mentions the changed value, or a longer form of it.

        `moderately` hints at `moderate`.
        """
        words = [word for word in content(change.after or "") if len(word) > _STEM]
        longer = any(form.startswith(word[:_STEM]) for word in words for form in self.forms)
        return self.says(change) or (longer and change.after != DONTCARE)

    @property
    def complete(self) -> bool:
        """Whether the round mentions all values that it changes. It then needs no other round."""
        return bool(self.delta) and all(map(self.says, self.changes))

    @property
    def given_by_user(self) -> bool:
        """Whether the user's answer mentions all values that the round changes."""
        return bool(self.delta) and all(_says(self.words_of_user, one) for one in self.changes)

    @property
    def changes(self) -> tuple[Difference, ...]:
        """The changed slots with their values, by the tracker's states and by the labels."""
        return tuple(dict.fromkeys((*self.delta, *(self.labelled or ()))))

    def takes_back(self, scene: Scene, other: SpokenRound) -> bool:
        """Return whether this round may change a slot that another round has filled.

        The result does not depend on the states of this round, because a tracker may have missed
        the change. Values in the labels of this round do not count.
        """
        given = self.labelled or ()
        if not given and not CORRECTIONS.isdisjoint(word_list(self.user)):
            return True
        return any(says_other(scene, self.user, change, given) for change in other.changes)

    def names(self, domain: str) -> bool:
        """Return whether the round names a domain. The empty domain counts as named."""
        return not domain or self.said.says(domain)

    def points(self, lexicon: Lexicon) -> bool:
        """Return whether the user refers to earlier rounds, see `points_back`."""
        return points_back(self.user, lexicon)


def has_conversations(data: DialogueSet) -> bool:
    """Return whether a user speaks more than once in a dialogue of the data.

    If not, the system may be made for single questions, and forget what was said before.
    """
    return any(len(dialogue.turns) > 1 for dialogue in data.dialogues)


def points_back(user: str, lexicon: Lexicon) -> bool:
    """Return whether the words of a user refer to earlier rounds of the dialogue.

    Some uses do not refer to earlier rounds: `there` in `is there`, and `that` in `one that has
    parking`.
    """
    words = [word.replace("’", "'").partition("'")[0] for word in word_list(user)]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        idle = (word == "there" and before in _ASKED_BY) or (
            word == "that" and after in _RELATIVE and before not in {"", "and", "if"}
        )
        if word in lexicon.references and not idle:
            return True
    return False


def _says(said: Mentions, change: Difference) -> bool:
    if change.after in FLAG_VALUES:
        return all(said.says(word) for word in name_words(change.slot))
    return change.after not in {None, DONTCARE} and said.says(change.after)


def rounds_of(scene: Scene) -> tuple[SpokenRound, ...]:
    """Return the rounds of a dialogue up to the turn of the scene."""
    turns = scene.dialogue.turns[: scene.index + 1]
    return tuple(_round(scene, turn) for turn in turns)


def _round(scene: Scene, turn: Turn) -> SpokenRound:
    index = turn.index
    labels = (scene.dialogue.turns[index - 1].state if index else BeliefState(), turn.state)
    labelled = None
    if labels[0] is not None and labels[1] is not None:
        labelled = diff_states(labels[0], labels[1])
    return SpokenRound(
        index,
        turn.system,
        turn.user,
        diff_states(scene.state(index - 1), scene.state(index)),
        labelled,
        Mentions([turn.system, turn.user]),
        Mentions([turn.user]),
        frozenset(map(spell_compared, word_list(f"{turn.system}\n{turn.user}"))),
    )


_ASKS_FOR_MORE: Final = "each round asks for something else or for more"
#: Words of a request that has another meaning if it is repeated.
_COUNTED: Final = re.compile(
    r"\b(?:another|again|more|extra|additional|further|later|earlier|else|other|different|instead"
    r"|next|less|fewer|cheaper|nearer|closer|larger|bigger|smaller|undo|previous|first|second|third"
    r"|last|both|neither|swap|switch|reverse|double|half|change|add|plus|as well)\b",
    re.IGNORECASE,
)


@register_relation
class Duplicate(Relation):
    """Repeats a round. The repetition must not change the state.

    The words of system and user are repeated directly after the round. The answer after both rounds
    is compared with the answer after one.

    Source: method, section 14.
    """

    name = "duplicate"
    expects = "{stays} after a repeated round"
    on = ("state",)
    edits = "own"
    unit = "dialogue"
    reasons = (_ASKS_FOR_MORE,)

    def begin(self, scene: Scene) -> TurnStart:
        """Return the dialogue up to each round, with that round repeated."""
        turns = scene.dialogue.turns[: scene.index + 1]
        rounds = [turn.index for turn in turns if not _COUNTED.search(turn.user)]
        if not rounds:
            return Inapplicable(_ASKS_FOR_MORE)
        return (_rewrite_duplicated(scene, index) for index in rounds)


def _rewrite_duplicated(scene: Scene, index: int) -> Rewrite:
    moves = (Move("repeat", index, index),)
    seen = context_after(scene.dialogue, index + 1, moves)
    reference = scene.dialogue.context(index)
    return Rewrite(seen, reference, moves=moves, about=f"round {index + 1} is said twice")


_FEW: Final = "no two adjacent rounds after the first change the state"
_SLOTS: Final = "adjacent rounds change the same slots"
_SHUFFLE_UNSAID: Final = "a round sets a value that the user does not mention"
_SHUFFLE_VALUES: Final = "a round mentions a value that another round sets"
_SHUFFLE_TAKEN_BACK: Final = "a round mentions another value for a slot that another round fills"
_SHUFFLE_POINTS: Final = "a round refers to earlier rounds"
_SHUFFLE_DOMAINS: Final = "the domain of a round's values would be unclear"
#: Number of random orders, in addition to those with one moved round.
_DRAWN: Final = 4


@register_relation
class Shuffle(Relation):
    """Changes the order of independent rounds. The final state must stay the same.

    Source: method, section 14.
    """

    name = "shuffle"
    expects = "the state at the end stays as it is"
    on = ("state",)
    edits = "own"
    unit = "dialogue"
    reasons = (
        _FEW,
        _SLOTS,
        _SHUFFLE_UNSAID,
        _SHUFFLE_VALUES,
        _SHUFFLE_TAKEN_BACK,
        _SHUFFLE_POINTS,
        _SHUFFLE_DOMAINS,
    )

    def begin(self, scene: Scene) -> TurnStart:
        """Return the dialogue with one round moved forward, then in random orders."""
        rounds = rounds_of(scene)
        bonds = _Bonds(scene, rounds)
        orders = dict.fromkeys(order for order in bonds.orders(scene) if bonds.continues(order))
        if not orders:
            found = [
                bonds.between(one, other) or _SHUFFLE_DOMAINS for one, other in pairwise(rounds)
            ]
            return Inapplicable(max(found, key=self.reasons.index, default=_FEW))
        return (_rewrite_shuffled(scene, order) for order in orders)


class _Bonds:
    """Finds rounds that depend on each other. Their order must stay."""

    def __init__(self, scene: Scene, rounds: Sequence[SpokenRound]) -> None:
        self._scene = scene
        self._rounds = rounds
        self._points = [one.points(scene.lexicon) for one in rounds]

    def between(self, one: SpokenRound, other: SpokenRound) -> str:
        """Return why two rounds must keep their order, or ``""`` if they are independent."""
        if not (one.delta and other.delta) or not one.system:
            return _FEW
        if not one.slots.isdisjoint(other.slots):
            return _SLOTS
        if not (one.complete and other.complete):
            return _SHUFFLE_UNSAID
        if any(map(one.hints_at, other.changes)) or any(map(other.hints_at, one.changes)):
            return _SHUFFLE_VALUES
        if one.takes_back(self._scene, other) or other.takes_back(self._scene, one):
            return _SHUFFLE_TAKEN_BACK
        return _SHUFFLE_POINTS if self._points[one.index] or self._points[other.index] else ""

    def orders(self, scene: Scene) -> Iterator[tuple[int, ...]]:
        """Yield other orders of the rounds that keep all dependencies."""
        rounds = self._rounds
        count = len(rounds)
        clean = tuple(range(count))
        for turn in clean:
            for to in range(turn - 1, -1, -1):
                if self.between(rounds[to], rounds[turn]):
                    break
                yield (*clean[:to], turn, *clean[to:turn], *clean[turn + 1 :])
        for _ in range(_DRAWN):
            order = list(clean)
            for place in scene.rng.permutation(max(count - 1, 0)).tolist():
                one, other = order[place], order[place + 1]
                if one < other and not self.between(rounds[one], rounds[other]):
                    order[place : place + 2] = [other, one]
            if tuple(order) != clean:
                yield tuple(order)

    def continues(self, order: Sequence[int]) -> bool:
        """Return whether the domain of each round's values stays clear.

        The domain is clear if the round names it. Otherwise, look at the last earlier round that
        changes the state. It must have the same domain, or be the same round as in the clean
        dialogue.
        """
        before = {one.index: _last_changed(self._rounds[: one.index]) for one in self._rounds}
        for place, index in enumerate(order):
            one = self._rounds[index]
            last = _last_changed([self._rounds[earlier] for earlier in order[:place]])
            if not one.delta or last == before[index]:
                continue
            known = last.domains if last else frozenset[str]()
            if not all(one.names(domain) for domain in one.domains - known):
                return False
        return True


def _last_changed(rounds: Sequence[SpokenRound]) -> SpokenRound | None:
    return next((one for one in reversed(rounds) if one.delta), None)


def _rewrite_shuffled(scene: Scene, order: Sequence[int]) -> Rewrite:
    moves = order_rounds(order)
    told = ", ".join(f"round {move.turn + 1} before round {(move.to or 0) + 1}" for move in moves)
    seen = context_after(scene.dialogue, len(order), moves)
    return Rewrite(seen, scene.context, moves=moves, about=told)


_NONE: Final = "no round between the first and the last changes the state"
_LATER: Final = "a later round changes the same slots as this round"
_LABELS: Final = (
    "the changes in this round disagree with the labels of this round or of the last turn"
)
_DROP_UNSAID: Final = "this round sets a value that the user does not mention"
_MORE_VALUES: Final = "the user mentions a value, but this round fills no slot with it"
_STANDS: Final = "without this round, an earlier value would be valid again"
_CORRECTS: Final = "the user corrects something in this round"
_DROP_VALUES: Final = "another round mentions a value that this round sets"
_DROP_TAKEN_BACK: Final = "a later turn mentions another value for the slot, or corrects something"
_NEEDED: Final = "this round mentions a value that a later round sets"
_DROP_POINTS: Final = "a later round refers to earlier rounds"
_DROP_DOMAINS: Final = "the domain of later values would be unclear"


@register_relation
class Drop(Relation):
    """Leaves out a round. Its values must then be missing in the final state.

    Source: method, section 14.
    """

    name = "drop"
    expects = "the slots that the round filled are empty at the end, and all others stay"
    on = ("state",)
    edits = "own"
    side = "should-change"
    unit = "dialogue"
    reasons = (
        _NONE,
        _LATER,
        _LABELS,
        _DROP_UNSAID,
        _MORE_VALUES,
        _STANDS,
        _CORRECTS,
        _DROP_VALUES,
        _DROP_TAKEN_BACK,
        _NEEDED,
        _DROP_POINTS,
        _DROP_DOMAINS,
    )

    def begin(self, scene: Scene) -> TurnStart:
        """Return the dialogue without one round, for each round that no other round depends on."""
        rounds = rounds_of(scene)
        reasons = {one.index: self._needed(scene, rounds, one) for one in rounds[1:-1] if one.delta}
        found = [index for index, reason in reasons.items() if not reason]
        if not found:
            return Inapplicable(max(reasons.values(), key=self.reasons.index, default=_NONE))
        return (_rewrite_dropped(scene, rounds[index]) for index in found)

    def _needed(self, scene: Scene, rounds: Sequence[SpokenRound], one: SpokenRound) -> str:
        """Return why a round cannot be left out, or ``""`` if it can be left out."""
        later = rounds[one.index + 1 :]
        others = [*rounds[: one.index], *later]
        # In the order of `reasons`.
        checks = (
            (_LATER, any(not one.slots.isdisjoint(other.slots) for other in later)),
            (_LABELS, not _agrees(scene, one)),
            (_DROP_UNSAID, not one.given_by_user),
            (_MORE_VALUES, says_more(scene, one.user, one.changes)),
            (_STANDS, _stands_again(scene, rounds, one)),
            (_CORRECTS, not CORRECTIONS.isdisjoint(word_list(one.user))),
            (
                _DROP_VALUES,
                any(other.hints_at(change) for other in others for change in one.changes),
            ),
            (_DROP_TAKEN_BACK, any(other.takes_back(scene, one) for other in later)),
            (_NEEDED, any(one.hints_at(change) for other in later for change in other.changes)),
            # The references of a round without changes do not matter.
            (_DROP_POINTS, any(other.changes and other.points(scene.lexicon) for other in later)),
            (_DROP_DOMAINS, not _continues(rounds, one)),
        )
        return next((reason for reason, holds in checks if holds), "")


def _agrees(scene: Scene, one: SpokenRound) -> bool:
    """Return whether the labels keep the round's changes until the last turn."""
    label = scene.turn.state
    if one.labelled is not None and one.labelled != one.delta:
        return False
    ends = (scene.now,) if label is None else (scene.now, label)
    return all(end.get(change.slot) == change.after for end in ends for change in one.delta)


def _stands_again(scene: Scene, rounds: Sequence[SpokenRound], one: SpokenRound) -> bool:
    """Return whether the changed slots had other values before, or other values were offered."""
    if any(change.before is not None for change in one.delta):
        return True
    values = scene.table.joined_values
    wanted = frozenset[str]().union(*(values.get(slot, frozenset()) for slot in one.slots))
    for earlier in rounds[: one.index]:
        words = [word.lower for word in split_spoken(earlier.system).parts.words]
        places = spans(range(len(words)))
        if any(join_value(" ".join(words[first : last + 1])) in wanted for first, last in places):
            return True
    return False


def _continues(rounds: Sequence[SpokenRound], one: SpokenRound) -> bool:
    """Return whether the domains of later values stay clear if a round is dropped."""
    known = frozenset[str]()
    for other in rounds[: one.index]:
        known = other.domains or known
    for other in rounds[one.index + 1 :]:
        if not other.domains:
            continue
        # All later rounds have the same predecessor as before.
        return all(other.names(domain) for domain in other.domains - known)
    return True


def _rewrite_dropped(scene: Scene, one: SpokenRound) -> Rewrite:
    moves = (Move("drop", one.index),)
    deltas = tuple(Delta(c.slot, c.after, Admissible((c.before,))) for c in one.delta)
    seen = context_after(scene.dialogue, scene.index + 1, moves)
    about = f"round {one.index + 1} left out"
    return Rewrite(seen, scene.context, Expectation(deltas), moves=moves, about=about)


@register_relation
class Restart(Relation):
    """Repeats the whole dialogue. Both times, the states must be the same.

    Each variant of a turn requests the same context again, without edits. If a tracker carries data
    over from an earlier dialogue, its answer changes.

    Source: method, section 14.
    """

    name = "restart"
    expects = "a repeated dialogue gets the same {answers}"
    on = ("state", "reply")
    edits = "own"
    unit = "dialogue"
    reasons = ()

    def begin(self, scene: Scene) -> TurnStart:
        """Return each context of the dialogue as a rewrite without edits."""
        return (_rewrite_restarted(scene, index) for index in range(scene.index + 1))


def _rewrite_restarted(scene: Scene, index: int) -> Rewrite:
    context = scene.dialogue.context(index)
    about = f"round {index + 1} of the dialogue asked again"
    return Rewrite(context, context, moves=(Move("again", index),), about=about)
