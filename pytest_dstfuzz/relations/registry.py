"""Relations by name: those that ship, those of packages, those of a suite."""

from __future__ import annotations

from importlib import import_module
from typing import Final, TypeVar

from pytest_dstfuzz.config.parsers import QUOTES, is_word
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.registry import Registry, blamed
from pytest_dstfuzz.relations.checks import CheckedRelation, overrides
from pytest_dstfuzz.relations.relation import Relation

__all__ = ["relations_named"]


MODULES: Final = (
    "unchanged",
    "should_change.relations",
    "paraphrase",
    "sources",
    "rounds",
    "tools",
    "contexts",
    "metal",
)


#: A package brings a relation by an entry point of this group that names an object, or a class
#: that is made without arguments.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.relations"
#: Stands for all that ship and can say something about the data, but for `REPEATS`.
ALL: Final = "all"
#: Makes the variants of ``metamorphic`` again, where the clean answer is right.
REPEATS: Final = "gold"
#: Published sets of relations, each under one name.
FAMILIES: Final = {
    "mortar": ("same-context", "lost-context", "contexts-agree", "contexts-differ"),
    "metal": ("metal-synonyms", "metal-word", "metal-typos", "metal-leet"),
}
#: What ``all`` leaves out: what repeats others, and a baseline whose edits no lock holds back.
_APART: Final = (REPEATS, *FAMILIES["metal"])
_HOMES: Final = tuple(f"{__package__}.{name}" for name in MODULES)
_shipped: dict[str, object] = {}
_Given = TypeVar("_Given")


def _load() -> dict[str, object]:
    """Return the relations that ship, by name and in the order of their modules."""
    for home in _HOMES:
        import_module(home)
    places = {home: place for place, home in enumerate(_HOMES)}
    ranked = sorted(_shipped.items(), key=lambda item: places[type(item[1]).__module__])
    return dict(ranked)


RELATIONS: Final[Registry[object]] = Registry(
    "relation", ENTRY_POINT_GROUP, families=(ALL, *FAMILIES), load=_load
)


def register_relation(relation: _Given) -> _Given:
    """Make a relation known by its name, such as in a ``conftest.py``.

    Args:
        relation: a `Relation`, or a class of one that is made without arguments, for which this
            is a decorator too.

    Returns:
        What was given.

    Raises:
        UserError: it is none, or one that ships has its name.
    """
    found = as_relation(relation, "register_relation()")
    if _ships(found):
        _shipped[found.name] = found
    else:
        RELATIONS.register(found.name, found)
    return relation


def relation_by_name(name: str) -> Relation:
    """Return the relation called ``name``."""
    found = as_relation(RELATIONS.find(name), RELATIONS.where(name))
    if found.name != name:
        raise UserError(f"{RELATIONS.where(name)} says that its name is {found.name!r}")
    return found


def relations_named(
    text: str, data: DialogueSet | None = None, outcome: OutcomeKind | None = None
) -> tuple[Relation, ...]:
    """Return the relations of a list of names, parted by commas, in their order.

    ``all`` = those that ship but ``gold``, which repeats ``metamorphic``, and the baseline
    ``metal``; with ``data``, those of them that can say something about it, and with ``outcome``,
    about answers of that kind. ``mortar`` and ``metal`` stand for four relations each.

    Raises:
        UserError: there is no such relation, the nearest name is said; one is named twice; or
            none is named.
    """
    given = [name.strip() for name in text.split(",")]
    names = [one for name in given for one in FAMILIES.get(name, (name,))]
    if names == [ALL]:
        shipped = [relation_by_name(name) for name in RELATIONS.shipped if name not in _APART]
        return tuple(
            one
            for one in shipped
            if (outcome is None or outcome in one.on) and (data is None or not one.impossible(data))
        )
    if ALL in names:
        raise UserError(f"{ALL!r} stands alone, not beside others as in {text!r}")
    if "" in names:
        raise UserError(f"{text!r} is no list of relations: write names with commas between them")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"the relation {twice!r} is named twice in {text!r}")
    if odd := next((one for one in names if one not in RELATIONS.names and not is_word(one)), None):
        raise UserError(f"{unknown_name('relation', odd, RELATIONS.names)} Or {QUOTES}.")
    return tuple(relation_by_name(name) for name in names)


def relation_for(
    given: str | Relation, data: DialogueSet, outcome: OutcomeKind = "state"
) -> Relation:
    """Return a relation after checking that it can say something about ``data``, and answers."""
    relation = relation_by_name(given) if isinstance(given, str) else given
    if outcome not in relation.on:
        others = [name for name in RELATIONS.shipped if outcome in relation_by_name(name).on]
        raise UserError(
            f"the relation {relation.name!r} speaks of {KINDS[relation.on[0]].words.several}: for "
            f"{KINDS[outcome].words.several} there are {', '.join(others)}"
        )
    if why := relation.impossible(data):
        raise UserError(
            f"the relation {relation.name!r} can say nothing about the data {data.name!r} (split "
            f"{data.split}): {why}. The relation 'metamorphic' needs nothing of them"
        )
    return relation


def as_relation(given: object, where: str) -> Relation:
    """Return a relation that is safe to ask: somebody else's is checked whenever it answers.

    A class of one is made without arguments. Messages begin with ``where`` it comes from.
    """
    if isinstance(given, type):
        with blamed(f"{where}: {given.__name__}()"):
            given = given()
    if isinstance(given, CheckedRelation) or _ships(given):
        return given  # type: ignore[return-value]  # both are relations
    method = "begin(scene)" if overrides(given, "begin") else "judge(clean, perturbed, label)"
    answer = "rewrites" if method.startswith("begin") else "a Verdict"
    RELATIONS.check_shape(given, where, method, answer)
    if not (overrides(given, "begin") or overrides(given, "judge")):
        raise UserError(
            f"{where}: {type(given).__name__} has neither judge(), for turns that the search "
            "edits, nor begin(), for edits of its own"
        )
    return CheckedRelation(given, where)


def spoken_of(relation: Relation) -> str:
    """Return what a relation speaks of, in words.

    >>> spoken_of(relation_by_name("tools-order")), spoken_of(relation_by_name("speech"))
    ('tool calls', 'slots, replies, tool calls')
    """
    return ", ".join(kind.words.several for kind in KINDS.values() if kind.name in relation.on)


def is_shipped(relation: Relation) -> bool:
    """Whether a relation is the one that ships under its name."""
    return _ships(relation) and RELATIONS.find(relation.name) is relation


def _ships(relation: object) -> bool:
    return type(relation).__module__ in _HOMES
