"""The rounds of a dialogue: what each changed, what it says, and what of the rest it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, BeliefState, SlotChange, Turn, diff_states
from pytest_dstfuzz.perturb.lexicon.lexicon import Lexicon
from pytest_dstfuzz.perturb.spelling import Mentions, content, spelled
from pytest_dstfuzz.perturb.words import listed, word_list
from pytest_dstfuzz.relations.kinds import FLAG_VALUES, domain_of, name_words
from pytest_dstfuzz.relations.other_values import says_other
from pytest_dstfuzz.relations.scene import Scene

#: Letters that a longer form of a value begins with.
_STEM: Final = 6
#: Words of a correction. What was said before may be for another slot than it seemed to be.
CORRECTIONS: Final = listed("actually instead rather sorry wrong oops correction meant mistake")
#: What `there` and `that` follow, and what follows them, where they point to nothing said before:
#: `is there a hotel that has parking`.
_ASKED_BY: Final = listed("is are was were if do does")
_RELATIVE: Final = listed(
    """is are has have serves serve offers offer includes include leaves leave departs depart
    arrives arrive goes go will would can gets runs costs stays starts"""
)


@dataclass(frozen=True)
class SpokenRound:
    """One exchange: the system's words, the user's answer, and what these changed."""

    index: int
    system: str
    user: str
    #: By the states of the scene, sorted by slot.
    delta: tuple[SlotChange, ...]
    #: By the labels; ``None`` where one of the two turns has none.
    labelled: tuple[SlotChange, ...] | None
    #: What both say, in a form in which values are found.
    said: Mentions
    #: The same of the user alone.
    words_of_user: Mentions
    #: Its words, in that form.
    forms: frozenset[str]

    @property
    def slots(self) -> frozenset[str]:
        """Slots that it changed, by the states or by the labels."""
        return frozenset(change.slot for change in (*self.delta, *(self.labelled or ())))

    @property
    def domains(self) -> frozenset[str]:
        """Domains of the slots that it changed."""
        return frozenset(map(domain_of, self.slots))

    def says(self, change: SlotChange) -> bool:
        """Say whether the round says the value that it gave a slot.

        Of yes and no, whether it names the slot. What it took away nobody says.
        """
        return _says(self.said, change)

    def hints_at(self, change: SlotChange) -> bool:
        """Say whether the round says the value of another one, be it in a longer form.

        `moderately` hints at `moderate`.
        """
        words = [word for word in content(change.after or "") if len(word) > _STEM]
        longer = any(form.startswith(word[:_STEM]) for word in words for form in self.forms)
        return self.says(change) or (longer and change.after != DONTCARE)

    @property
    def complete(self) -> bool:
        """Whether it says all that it changed, so that nothing of it came from another round."""
        return bool(self.delta) and all(map(self.says, self.changes))

    @property
    def given_by_user(self) -> bool:
        """Whether the user says all that it changed."""
        return bool(self.delta) and all(_says(self.words_of_user, one) for one in self.changes)

    @property
    def changes(self) -> tuple[SlotChange, ...]:
        """What it changed, by the states and by the labels."""
        return tuple(dict.fromkeys((*self.delta, *(self.labelled or ()))))

    def takes_back(self, scene: Scene, other: SpokenRound) -> bool:
        """Say whether the user may give a slot of another round another value here.

        Whatever the states say: a tracker that misses a correction has none of it in them. What
        the round gives by its labels is no such value.
        """
        given = self.labelled or ()
        if not given and not CORRECTIONS.isdisjoint(word_list(self.user)):
            return True
        return any(says_other(scene, self.user, change, given) for change in other.changes)

    def names(self, domain: str) -> bool:
        """Say whether one of the two says the word for a domain; that of none is said."""
        return not domain or self.said.says(domain)

    def points(self, lexicon: Lexicon) -> bool:
        """Say whether the user points to what was said before, see `points_back`."""
        return points_back(self.user, lexicon)


def points_back(user: str, lexicon: Lexicon) -> bool:
    """Say whether what a user says points to what was said before.

    `there` in `is there` does not, nor does `that` in `one that has parking`.
    """
    words = [word.replace("’", "'").partition("'")[0] for word in word_list(user)]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        idle = (word == "there" and before in _ASKED_BY) or (
            word == "that" and after in _RELATIVE and before not in {"", "and", "if"}
        )
        if word in lexicon.references and not idle:
            return True
    return False


def _says(said: Mentions, change: SlotChange) -> bool:
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
        frozenset(map(spelled, word_list(f"{turn.system}\n{turn.user}"))),
    )
