"""The user's own code that decides a campaign's results, as digests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pytest_dstfuzz.comparisons.registry import COMPARISONS
from pytest_dstfuzz.config import Settings, content_named_in, is_own_function
from pytest_dstfuzz.own_code import code_of
from pytest_dstfuzz.own_values import digest_with_values, hint_of, values_of
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.relations.checks import CheckedRelation
from pytest_dstfuzz.relations.contexts import CONTEXT_CHECKS, PERTURBATIONS
from pytest_dstfuzz.relations.registry import RELATIONS
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.registry import SAMPLED, SEARCHES, CheckedSearch
from pytest_dstfuzz.trackers.registry import TRACKERS, load_attribute
from pytest_dstfuzz.trackers.schemes import SCHEMES
from pytest_dstfuzz.transformations import find_operator, operator_origin

__all__ = [
    "FACTORY",
    "FILES",
    "OF_TRACKER",
    "RELATION",
    "SEARCH",
    "TRACKER",
    "code_of_rules",
    "code_of_search",
    "code_of_tracker",
    "hint_of",
]

#: The names of the digests of a relation and of a search begin so.
RELATION: Final = "the relation "
SEARCH: Final = "the search "
#: The end of the name of a digest of the files that the argument of a search names.
FILES: Final = " and its files"
#: The names of the digests of a tracker and of its factory.
TRACKER: Final = "the tracker"
FACTORY: Final = "the factory of the tracker"
_PACKAGE: Final = __name__.partition(".")[0]
OF_TRACKER: Final = frozenset({TRACKER, FACTORY})
#: ``id()`` of a function that makes a search -> the function, and its values.
_VALUES: Final[dict[int, tuple[object, str]]] = {}


def code_of_tracker(model: str, tracker: object) -> dict[str, str]:
    """Return a digest of the files with code for a tracker, and for its factory, if they have any.

    Args:
        model: the name or address of the tracker; ``""`` if it has none.
        tracker: the tracker.
    """
    origin, scheme = model, model.partition("://")[0].lower()
    found = {}
    for registry, name in ((TRACKERS, model), (SCHEMES, scheme)):
        factories: Registry[Any] = registry
        if name in factories.single:
            origin = factories.origin(name)
            found[FACTORY] = code_of(factories.find(name), origin, loaders=True)
    found[TRACKER] = code_of(tracker, origin, loaders=True)
    return {name: digest for name, digest in found.items() if digest}


def code_of_rules(
    settings: Settings,
    relations: Sequence[Relation],
    search: object = None,
    search_path: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return a digest of the files with code for each user-defined object except the tracker.

    For a relation, and for a given search, the digest identifies its values, too, see `values_of`.
    The objects are the search, the relations, the comparisons, the rules of arguments, the checks
    and perturbations of contexts, and the operators.

    Args:
        settings: the settings that name the objects.
        relations: the relations.
        search: the search; ``None`` = the search of the settings.
        search_path: folders to search first for modules; empty = the working folder.
    """
    reply, variant = settings.reply, settings.variant
    compared = (reply.compare or "").split(",")
    rules = [*compared, *(one.partition("=")[2] for one in reply.arguments)]
    things: dict[str, tuple[object, str]] = {
        f"{RELATION}{one.name}": (one, RELATIONS.origin(one.name)) for one in relations
    }
    for registry, names in (
        (COMPARISONS, compared),
        (CONTEXT_CHECKS, reply.context_checks),
        (PERTURBATIONS, reply.perturbations),
    ):
        known: Registry[Any] = registry
        found = (name for name in names if name in known.single)
        things |= {name: (known.find(name), known.origin(name)) for name in found}
    for item, names in zip(*variant.selection, strict=True):
        operators = (find_operator(item.name, name) for name in names)
        things |= {one.label: (one.function, operator_origin(one.label)) for one in operators}
    digests = {name: code_of(one, origin) for name, (one, origin) in things.items()}
    if search is None:
        digests |= code_of_search(variant.search)
    else:
        digests[f"{SEARCH}{variant.search}"] = code_of(search)
    for name in filter(is_own_function, rules):
        digests[name] = code_of(load_attribute(name, search_path, "function"), name)
    holders: dict[str, object] = {f"{RELATION}{one.name}": one for one in relations}
    holders[f"{SEARCH}{variant.search}"] = search
    for name, one in holders.items():
        if isinstance(one, CheckedRelation | CheckedSearch) and one.values:
            digests[name] = digest_with_values(digests.get(name, ""), one.values)
    return {name: digest for name, digest in digests.items() if digest}


def code_of_search(name: str) -> dict[str, str]:
    """Return a digest of the files with code for a user's search, and of those its name names.

    The first digest also identifies the values of the function that makes the search. A search of
    this package has none. The fingerprint of its policy is known instead.

    Args:
        name: the name of the search. It may have an argument.
    """
    plain = name.removeprefix(SAMPLED)
    base, _, argument = plain.partition(":")
    if base not in SEARCHES.single:
        return {}
    found = SEARCHES.of(plain)
    digests = {f"{SEARCH}{name}": code_of(found, SEARCHES.origin(base))}
    if type(found).__module__.partition(".")[0] != _PACKAGE:
        # The files decide as the code does.
        digests[f"{SEARCH}{name}{FILES}"] = content_named_in(argument)
        if base not in SEARCHES.shipped and (values := _values_of(found)):
            digests[f"{SEARCH}{name}"] = digest_with_values(digests[f"{SEARCH}{name}"], values)
    return {one: digest for one, digest in digests.items() if digest}


def _values_of(factory: object) -> str:
    """Return `values_of` of the function that makes a search, when it was first needed."""
    known, values = _VALUES.get(id(factory), (None, ""))
    if known is not factory:
        values = values_of(factory)
        # The reference keeps the id from being used again.
        _VALUES[id(factory)] = factory, values
    return values
