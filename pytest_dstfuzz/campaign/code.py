"""The user's own code that decides a campaign's results, as digests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pytest_dstfuzz.comparisons.registry import COMPARISONS
from pytest_dstfuzz.config import Settings, is_own_function
from pytest_dstfuzz.files import content_of, names_file
from pytest_dstfuzz.own_code import code_of
from pytest_dstfuzz.registry import Registry
from pytest_dstfuzz.relations.contexts import CONTEXT_CHECKS, PERTURBATIONS
from pytest_dstfuzz.relations.registry import RELATIONS
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.search.registry import SAMPLED, SEARCHES
from pytest_dstfuzz.trackers.registry import TRACKERS, load_attribute
from pytest_dstfuzz.trackers.schemes import SCHEMES
from pytest_dstfuzz.transformations import find_operator, operator_origin

__all__ = [
    "FACTORY",
    "OF_TRACKER",
    "RELATION",
    "SEARCH",
    "TRACKER",
    "code_of_rules",
    "code_of_tracker",
]

#: The names of the digests of a relation and of a search begin so.
RELATION: Final = "the relation "
SEARCH: Final = "the search "
#: The names of the digests of a tracker and of its factory.
TRACKER: Final = "the tracker"
FACTORY: Final = "the factory of the tracker"
OF_TRACKER: Final = frozenset({TRACKER, FACTORY})


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
            found[FACTORY] = code_of(factories.find(name), origin)
    found[TRACKER] = code_of(tracker, origin)
    return {name: digest for name, digest in found.items() if digest}


def code_of_rules(
    settings: Settings,
    relations: Iterable[Relation],
    search: object = None,
    search_path: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return a digest of the files with code for each user-defined object except the tracker.

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
    plain = variant.search.removeprefix(SAMPLED)
    base = plain.partition(":")[0]
    if search is not None:
        things[f"{SEARCH}{variant.search}"] = search, ""
    elif base in SEARCHES.single:
        things[f"{SEARCH}{variant.search}"] = SEARCHES.of(plain), SEARCHES.origin(base)
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
    named, argument = f"{SEARCH}{variant.search}", plain.partition(":")[2]
    if search is None and digests.get(named) and names_file(argument):
        # The argument of a family may be a file, which decides as the code does.
        digests[f"{named} and its file"] = content_of(argument)
    for name in filter(is_own_function, rules):
        digests[name] = code_of(load_attribute(name, search_path, "function"), name)
    return {name: digest for name, digest in digests.items() if digest}
