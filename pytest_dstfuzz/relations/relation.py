"""What a relation is: how an input is edited, and what is expected of the answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from itertools import islice
from typing import Final, Literal, Protocol, get_args

from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.outcome import Outcome, OutcomeKind
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.rates import LONGEST_EDITED
from pytest_dstfuzz.relations.rewrite import (
    OTHER_LANGUAGE,
    Begun,
    BySearch,
    Inapplicable,
    Rewrite,
    Shown,
    Side,
    TurnRelation,
    Unit,
    Verdict,
)
from pytest_dstfuzz.relations.scene import Scene

__all__ = ["MOST", "Relation"]

#: Rewrites that are taken of one turn, of a relation that has more.
MOST: Final = 64
#: Why a relation that edits by itself is not asked about a turn.
FAILED_EARLIER: Final = "the tracker failed on an earlier turn"
TOO_LONG: Final = f"the utterance has more than {LONGEST_EDITED:,} characters"


class Relation(Protocol):
    """What must hold between the predictions on a clean turn and on a rewrite of it.

    A class that inherits from it writes ``name`` and either ``judge``, where the search is to edit
    the turns, or ``begin``, where it edits them itself (``edits = "own"``); and the rest where it
    is to be otherwise. Its answers must depend on the arguments alone, and it never asks the
    tracker. Provisional, as `Verdict` is.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the option ``relation`` takes, and that reports show."""

    @property
    def expects(self) -> str:
        """What it expects, in one sentence for people: ``the slot takes the new value``.

        ``{stays}`` says that the state, the answer or the calls stay, see `Words.fill`.
        """
        return "{stays}"

    @property
    def source(self) -> str:
        """Where its word lists come from, and their licence; empty where it has none."""
        return ""

    @property
    def edits(self) -> Literal["search", "own"]:
        """Whether the search edits the turns, or the relation itself."""
        return "search"

    @property
    def side(self) -> Side:
        """Whether the state is to stay or to follow."""
        return "should-not-change"

    @property
    def unit(self) -> Unit:
        """Whether it edits turns or whole dialogues."""
        return "turn"

    @property
    def on(self) -> tuple[OutcomeKind, ...]:
        """What it can speak of: states, replies, tool calls; all of them, where it says nothing."""
        return get_args(OutcomeKind)

    @property
    def adaptive(self) -> bool:
        """Whether it wants to know what its earlier rewrites of a turn showed."""
        return False

    @property
    def english(self) -> bool:
        """Whether its edits are words of English, which have no place in another language."""
        return False

    @property
    def needs_labels(self) -> bool:
        """Whether it can say nothing about data without labels."""
        return False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it says nothing about a turn, in the order in which it looks.

        Where several slots are looked at, the turn is counted with the last of their reasons.
        """
        return (self.inapplicable,)

    @property
    def inapplicable(self) -> str:
        """Why it says nothing about a turn to which it does not apply, for reports."""
        return "the relation says nothing about this turn"

    def impossible(self, data: DialogueSet) -> str:
        """Say why no turn of the data can satisfy it, whatever the tracker; ``""`` = some may."""
        if self.needs_labels and all(
            turn.state is None and turn.calls is None
            for dialogue in data.dialogues
            for turn in dialogue.turns
        ):
            return "it compares with labels, and no turn has one"
        return ""

    def begin(self, scene: Scene) -> Begun:
        """Return what it makes of a turn.

        By default the search edits the turn, where `applies` says so, and `judge` judges.
        """
        if not self.applies(scene.now, scene.turn.state):
            return Inapplicable(self.inapplicable)
        return BySearch(self.judge)

    def applies(self, clean: Outcome, label: Outcome | None) -> bool:  # noqa: ARG002 - for others
        """Whether it says anything about a turn with this clean prediction."""
        return True

    def judge(self, clean: Outcome, perturbed: Outcome, label: Outcome | None) -> Verdict:
        """Compare the prediction on a variant with that on the clean turn.

        Args:
            clean: prediction on the clean turn in its clean context.
            perturbed: prediction on the variant in the context it is seen in.
            label: the right belief state; ``None`` where the data has none.
        """
        raise NotImplementedError(f"the relation {self.name!r} edits by itself")


#: What `begin` returns.
TurnBegun = list[Rewrite] | TurnRelation | BySearch | Inapplicable


def begin(relation: Relation, scene: Scene) -> TurnBegun:
    """Return what a relation makes of a turn: of many rewrites the first `MOST`, at least one.

    Raises:
        UserError: it leaves the edits to the search and has some of its own, or the other way
            round.
    """
    if relation.edits == "own":
        # Each message makes its own calls: those to earlier turns need not be known.
        if None in scene.states and scene.kind.needs_earlier:
            return Inapplicable(FAILED_EARLIER)
        if len(scene.turn.user) > LONGEST_EDITED:
            return Inapplicable(TOO_LONG)
        if relation.english and scene.guards.is_other_language(scene.parts):
            return Inapplicable(OTHER_LANGUAGE)
    begun = relation.begin(scene)
    if isinstance(begun, Inapplicable):
        return begun
    if isinstance(begun, BySearch) != (relation.edits == "search"):
        raise UserError(
            f"the relation {relation.name!r} has edits = {relation.edits!r}, and its begin() "
            f"returned {type(begun).__name__}: BySearch is for 'search', rewrites are for 'own'"
        )
    if isinstance(begun, Iterable) and not isinstance(begun, BySearch):
        return list(islice(begun, MOST)) or Inapplicable(relation.inapplicable)
    return begun


def proposed(begun: list[Rewrite] | TurnRelation) -> list[Rewrite]:
    """Return the rewrites of a turn, `MOST` at most: those that come where no answer is known."""
    if isinstance(begun, list):
        return begun
    found: list[Rewrite] = []
    while len(found) < MOST:
        rewrite = begun.propose(len(found), 0, [Shown(earlier) for earlier in found])
        if rewrite is None:
            break
        found.append(rewrite)
    return found
