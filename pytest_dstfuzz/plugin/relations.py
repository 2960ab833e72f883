"""The relations that a run names: the settings, the turns and the ids of each one's items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.relations.relation import Relation, Side

#: What is tested of an answer -> the tests of the built-in suite, each with the side of the
#: relations that it is about.
SUITES: Final[dict[OutcomeKind, dict[str, Side]]] = {
    name: {
        kind.words.test_name("survive"): "should-not-change",
        kind.words.test_name("follow"): "should-change",
    }
    for name, kind in KINDS.items()
}
#: How to assert what the relations of a side ask for.
ASSERTIONS: Final[dict[Side, str]] = {
    "should-not-change": "assert_unchanged",
    "should-change": "assert_changes",
}
#: What stands between the names of relations in a setting.
PARTED: Final = ","


class ItemOf(NamedTuple):
    """What one relation is tested with."""

    relation: Relation
    #: Those of the test, with this relation alone.
    settings: Settings
    #: What follows the turn in the id of its items, ``""`` where nothing does.
    suffix: str


def each_of(settings: Settings, relations: Sequence[Relation]) -> Iterator[ItemOf]:
    """Yield what each relation is tested with.

    Items are called by their turn alone where the search edits it, as they were before there
    were other relations; so that ids differ, this holds where one such relation is named.
    """
    searched = sum(relation.edits == "search" for relation in relations)
    for relation in relations:
        plain = relation.edits == "search" and searched == 1
        own = settings.replace_options(relation=relation.name)
        yield ItemOf(relation, own, "" if plain else f"-{relation.name}")


def turns_for(
    relation: Relation, turns: Sequence[tuple[Dialogue, int]]
) -> list[tuple[Dialogue, int]]:
    """Return the turns that a relation has a result for: one a dialogue, or those drawn."""
    if relation.unit == "turn":
        return list(turns)
    dialogues = {dialogue.id: dialogue for dialogue, _ in turns}
    return [(dialogue, len(dialogue.turns) - 1) for dialogue in dialogues.values()]


def other_side(relation: str, side: Side, called: str, what: str) -> str:
    """Return what to say of an assertion that is for the other side of relations."""
    # ``what`` is what the relation is about: the belief state, the reply.
    asks = "to follow" if side == "should-change" else "to stay"
    other = "value-swap" if called == ASSERTIONS["should-change"] else "metamorphic"
    return (
        f"dst_turn.{called}() under the relation {relation!r}, which asks the {what} {asks}: "
        f"write dst_turn.{ASSERTIONS[side]}(), or assert_holds(), which is right for both. A test "
        f"that is about one relation names it: @pytest.mark.dst(relation={other!r})"
    )
