"""Finds shipped relations, and relations of installed packages and test suites, by name."""

from __future__ import annotations

from importlib import import_module
from typing import Final, TypeVar

from pytest_dstfuzz.config.parsers import QUOTES, is_word
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.registry import Registry, blame_errors
from pytest_dstfuzz.relations.checks import CheckedRelation, overrides
from pytest_dstfuzz.relations.relation import Relation

__all__ = ["relations_named"]


MODULES: Final = (
    "unchanged",
    "should_change.relations",
    "paraphrase",
    "wording",
    "need",
    "story",
    "contrast",
    "synonyms",
    "notation",
    "order",
    "sources",
    "rounds",
    "shape",
    "follow_up",
    "tools",
    "contexts",
    "metal",
    "published",
)


#: A package provides a relation by an entry point in this group. The entry point names an object,
#: or a class that takes no arguments.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.relations"
#: Stands for all shipped relations that apply to the data, except those in `_APART`.
ALL: Final = "all"
#: This relation has the variants of ``metamorphic``, but only if the clean answer is right.
REPEATS: Final = "gold"
_WORDING: Final = (
    "politeness",
    "indirect-question",
    "stated-need",
    "filler-sentences",
    "long-message",
    "contrast",
    "synonyms",
    "register",
    "number-format",
    "letter-case",
    "phrase-order",
    "phrase-table",
)
_SHAPE: Final = ("follow-up", "aside", "restate", "split", "join")
#: Sets of relations, each with one name.
FAMILIES: Final = {
    "everyday": (*_WORDING, "negation", *_SHAPE),
    "mortar": ("same-context", "lost-context", "contexts-agree", "contexts-differ"),
    "wording": _WORDING,
    "metal": ("metal-synonyms", "metal-word", "metal-typos", "metal-leet"),
}
#: Relations that ``all`` leaves out: `REPEATS`, and relations in the form of a paper, which edit
#: without locks.
_APART: Final = (
    REPEATS,
    *FAMILIES["metal"],
    *("first-negation", "first-antonym", "values-only"),
)
_HOMES: Final = tuple(f"{__package__}.{name}" for name in MODULES)
_shipped: dict[str, object] = {}
_Given = TypeVar("_Given")


def _load() -> dict[str, object]:
    """Load the shipped relations, and return them by name in the order of their modules."""
    for home in _HOMES:
        import_module(home)
    places = {home: place for place, home in enumerate(_HOMES)}
    ranked = sorted(_shipped.items(), key=lambda item: places[type(item[1]).__module__])
    return dict(ranked)


RELATIONS: Final[Registry[object]] = Registry(
    "relation", ENTRY_POINT_GROUP, families=(ALL, *FAMILIES), load=_load
)


def register_relation(relation: _Given) -> _Given:
    """Register a relation under its name, for example in a ``conftest.py``.

    Args:
        relation: a `Relation`, or a relation class that takes no arguments. For a class, this
            function is also a decorator.

    Returns:
        The argument, so that the function can be a decorator.

    Raises:
        UserError: the argument is no relation, or a shipped relation has the same name.
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
        raise UserError(
            f"{RELATIONS.where(name)} calls itself {found.name!r}: give it the name {name!r}"
        )
    return found


def relations_named(
    text: str, data: DialogueSet | None = None, outcome: OutcomeKind | None = None
) -> tuple[Relation, ...]:
    """Return the relations of a comma-separated list of names, in the given order.

    ``all`` means the shipped relations, with two exceptions: ``gold`` repeats ``metamorphic``, and
    relations such as ``metal`` only reproduce a paper. If ``data`` is given, ``all`` leaves out
    relations that cannot apply to this data. If ``outcome`` is given, ``all`` leaves out relations
    that do not support this kind of answer, as a family does. ``FAMILIES`` has the families, such
    as ``everyday`` and ``wording``.

    Raises:
        UserError: a relation does not exist (the message suggests the nearest name), a name
            appears twice, or the list is empty.
    """
    given = [name.strip() for name in text.split(",")]
    names = [one for name in given for one in _members(name, outcome)]
    if names == [ALL]:
        shipped = [relation_by_name(name) for name in RELATIONS.shipped if name not in _APART]
        return tuple(
            one
            for one in shipped
            if (outcome is None or outcome in one.on) and (data is None or not one.impossible(data))
        )
    if ALL in names:
        raise UserError(f"{ALL!r} cannot be combined with other relations, as in {text!r}")
    if "" in names:
        raise UserError(f"{text!r} is not a list of relations: separate their names by commas")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"the relation {twice!r} is named twice in {text!r}")
    if odd := next((one for one in names if one not in RELATIONS.names and not is_word(one)), None):
        raise UserError(f"{unknown_name('relation', odd, RELATIONS.names)} Or {QUOTES}.")
    return tuple(relation_by_name(name) for name in names)


def _members(name: str, outcome: OutcomeKind | None) -> tuple[str, ...]:
    """Return the relations of a family that support a kind of answer, or another name alone.

    If none supports it, return all.
    """
    members = FAMILIES.get(name, (name,))
    if outcome is None or name not in FAMILIES:
        return members
    return tuple(one for one in members if outcome in relation_by_name(one).on) or members


def family_members(text: str) -> frozenset[str]:
    """Return the names that ``all`` and the families in a list of relations stand for."""
    if text.strip() == ALL:
        return frozenset(RELATIONS.shipped)
    given = (name.strip() for name in text.split(","))
    return frozenset(member for name in given for member in FAMILIES.get(name, ()))


def relation_for(
    given: str | Relation, data: DialogueSet, outcome: OutcomeKind = "state"
) -> Relation:
    """Return a relation after checking that it supports the data and the kind of answer.

    Raises:
        UserError: the relation does not support the kind of answer, or cannot apply to the data.
    """
    relation = relation_by_name(given) if isinstance(given, str) else given
    if outcome not in relation.on:
        others = [name for name in RELATIONS.shipped if outcome in relation_by_name(name).on]
        raise UserError(
            f"the relation {relation.name!r} tests {KINDS[relation.on[0]].words.several}, not "
            f"{KINDS[outcome].words.several}: use one of {', '.join(others)}"
        )
    if why := relation.impossible(data):
        raise UserError(
            f"the relation {relation.name!r} does not apply to the data {data.name!r} (split "
            f"{data.split}): {why}. The relation 'metamorphic' works with all data"
        )
    return relation


def as_relation(given: object, where: str) -> Relation:
    """Return a relation whose results are checked, unless it is shipped.

    If ``given`` is a class, an instance is made without arguments. Error messages begin with
    ``where``, the place of the registration.
    """
    if isinstance(given, type):
        with blame_errors(f"{where}: {given.__name__}()"):
            given = given()
    if isinstance(given, CheckedRelation) or _ships(given):
        return given  # type: ignore[return-value]  # both are relations
    method = "begin(scene)" if overrides(given, "begin") else "judge(clean, perturbed, label)"
    answer = "rewrites" if method.startswith("begin") else "a Verdict"
    RELATIONS.check_shape(given, where, method, answer)
    if not (overrides(given, "begin") or overrides(given, "judge")):
        raise UserError(
            f"{where}: {type(given).__name__} has neither judge() nor begin(): define judge() if "
            "the search makes the edits, or begin() if the relation makes its own"
        )
    return CheckedRelation(given, where)


def name_outcomes(relation: Relation) -> str:
    """Return the kinds of answer that a relation supports, in words.

    >>> name_outcomes(relation_by_name("tools-order")), name_outcomes(relation_by_name("speech"))
    ('tool calls', 'slots, replies, tool calls')
    """
    return ", ".join(kind.words.several for kind in KINDS.values() if kind.name in relation.on)


def is_shipped(relation: Relation) -> bool:
    """Return whether this package ships the relation under its name."""
    return _ships(relation) and RELATIONS.find(relation.name) is relation


def _ships(relation: object) -> bool:
    return type(relation).__module__ in _HOMES
