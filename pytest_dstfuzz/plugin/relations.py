"""The relations of a run, with their settings, turns and suffixes of item ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Dialogue
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.relations.relation import Relation, Side

#: Kind of answer -> tests of the built-in suite, with the side of the relations that each tests.
SUITES: Final[dict[OutcomeKind, dict[str, Side]]] = {
    name: {
        kind.words.test_name("survive"): "should-not-change",
        kind.words.test_name("follow"): "should-change",
    }
    for name, kind in KINDS.items()
}
#: The assertion for each side of relations.
ASSERTIONS: Final[dict[Side, str]] = {
    "should-not-change": "assert_unchanged",
    "should-change": "assert_changes",
}
#: Separator of relation names in a setting.
PARTED: Final = ","


class ItemOf(NamedTuple):
    """A relation with its settings and the suffix of its items."""

    relation: Relation
    #: Settings of the test, with this relation only.
    settings: Settings
    #: Suffix of the item ids after the turn. May be ``""``.
    suffix: str


def each_of(settings: Settings, relations: Sequence[Relation]) -> Iterator[ItemOf]:
    """Yield each relation with its settings and suffix.

    Relations whose edits come from the search have the suffix ``""``, because older versions had no
    others. If there are several such relations, each has a suffix that makes its ids unique.
    """
    searched = sum(relation.edits == "search" for relation in relations)
    for relation in relations:
        plain = relation.edits == "search" and searched == 1
        own = settings.replace_options(relation=relation.name)
        yield ItemOf(relation, own, "" if plain else f"-{relation.name}")


def turns_for(
    relation: Relation, turns: Sequence[tuple[Dialogue, int]]
) -> list[tuple[Dialogue, int]]:
    """Return the turns to test under a relation: one per dialogue, or all sampled turns."""
    if relation.unit == "turn":
        return list(turns)
    dialogues = {dialogue.id: dialogue for dialogue, _ in turns}
    return [(dialogue, len(dialogue.turns) - 1) for dialogue in dialogues.values()]


def other_side(relation: str, side: Side, called: str, what: str) -> str:
    """Return the error message for an assertion that contradicts the relation."""
    # ``what`` is the subject of the relation: the belief state, the reply.
    asks = "change" if side == "should-change" else "stay the same"
    other = "value-swap" if called == ASSERTIONS["should-change"] else "metamorphic"
    return (
        f"dst_turn.{called}() does not fit the relation {relation!r}: the {what} must "
        f"{asks}. Write dst_turn.{ASSERTIONS[side]}(), or assert_holds(), which fits both. To "
        f"test only one relation, name it: @pytest.mark.dst(relation={other!r})"
    )
