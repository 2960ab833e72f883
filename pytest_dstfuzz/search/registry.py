"""Searches by name: those that ship, trained ones too, those of packages, those of a suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_dstfuzz.agents.agent_search import AgentSearch
from pytest_dstfuzz.agents.bandit_search import BanditSearch
from pytest_dstfuzz.agents.trained import TRAINED, is_trained, trained_search
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.perturb.engine import ORDERS
from pytest_dstfuzz.registry import Registry, blamed
from pytest_dstfuzz.search.draws import NearValueSearch, RandomSearch
from pytest_dstfuzz.search.hill_climb import DIALTEST, GREEDY, HillClimbSearch
from pytest_dstfuzz.search.noise import NoiseSearch
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask, TurnSearch

#: Called as ``factory(seed=..., k=...)``: the seed of the campaign, and how many transformations
#: one variant associates.
SearchFactory = Callable[..., object]
#: A package brings a search by an entry point of this group that names its factory.
ENTRY_POINT_GROUP: Final = "pytest_dstfuzz.searches"
_SHIPPED: Final = (
    RandomSearch,
    NearValueSearch,
    HillClimbSearch,
    AgentSearch,
    BanditSearch,
    NoiseSearch,
)
SEARCHES: Final[Registry[SearchFactory]] = Registry(
    "search",
    ENTRY_POINT_GROUP,
    {
        RandomSearch.name: RandomSearch,
        NearValueSearch.name: NearValueSearch,
        GREEDY.name: lambda seed, k: HillClimbSearch(GREEDY, seed),  # noqa: ARG005 - one edit a step
        DIALTEST.name: lambda seed, k: HillClimbSearch(DIALTEST, seed),  # noqa: ARG005 - likewise
        NoiseSearch.name: NoiseSearch,
    },
    TRAINED,
)


def register_search(name: str, factory: SearchFactory) -> None:
    """Make a search known by a name, such as in a ``conftest.py``.

    Args:
        name: that the option ``search`` takes.
        factory: called as ``factory(seed=..., k=...)``, returns a `Search`; a class will do.

    Raises:
        UserError: one that ships has this name, or it is none.
    """
    SEARCHES.register(name, factory)


def names_shipped(name: str) -> bool:
    """Whether a name stands for a search that ships, or for a trained one of their kind."""
    return name in SEARCHES.shipped or is_trained(name)


def search_by_name(name: str, *, seed: int, k: int) -> Search:
    """Build the search that the option ``search`` names; for ``k`` see `SearchFactory`."""
    if is_trained(name):
        return trained_search(name, seed, k)
    factory, where = SEARCHES.find(name), f"the search {name!r}"
    with blamed(f"the factory of {where}, called with seed= and k=,"):
        made = factory(seed=seed, k=k)
    found = as_search(made, where)
    if found.name != name:
        raise UserError(f"{where} says that its name is {found.name!r}: give it the name {name!r}")
    return found


def as_search(given: object, where: str) -> Search:
    """Return a search that is safe to ask: somebody else's is checked whenever it proposes.

    Messages begin with ``where`` it comes from.
    """
    if isinstance(given, CheckedSearch) or type(given) in _SHIPPED:
        return given  # type: ignore[return-value]  # all of them are searches
    return CheckedSearch(given, where)


class CheckedSearch(Search):
    """Somebody else's search; its shape is checked, and what it proposes."""

    name = order = ""
    adaptive = by_density = waits = False
    associates = True

    def __init__(self, search: Any, where: str) -> None:
        answer = "an object with propose(number, draw, seen)"
        SEARCHES.check_shape(search, where, "turn(task)", answer)
        self.wrapped = search
        self.name = str(search.name)
        self.order = str(getattr(search, "order", super().order))
        self.adaptive = bool(getattr(search, "adaptive", super().adaptive))
        self.associates = bool(getattr(search, "associates", super().associates))
        self.by_density = bool(getattr(search, "by_density", super().by_density))
        self.waits = bool(getattr(search, "waits", super().waits))
        if self.order not in ORDERS:
            raise UserError(
                f"{where}: order of {type(search).__name__} is {self.order!r}: it must be "
                f"{' or '.join(ORDERS)}"
            )

    def context_variant(self, number: int) -> int:
        """Return the number of an attempt made so far; see `Search.context_variant`."""
        ask = getattr(self.wrapped, "context_variant", super().context_variant)
        with blamed(f"context_variant() of the search {self.name!r}"):
            found: object = ask(number)
        if not isinstance(found, int) or not 0 <= found <= number:
            raise UserError(
                f"context_variant({number}) of the search {self.name!r} returned {found!r}: it "
                f"must return a number from 0 to {number}"
            )
        return found

    def turn(self, task: SearchTask) -> TurnSearch:
        """Begin a turn with what can propose."""
        with blamed(f"turn() of the search {self.name!r}"):
            begun = self.wrapped.turn(task)
        if not callable(getattr(begun, "propose", None)):
            raise UserError(
                f"turn() of the search {self.name!r} returned {type(begun).__name__}: it must "
                "return an object with propose(number, draw, seen)"
            )
        return CheckedTurn(self.name, begun)


class CheckedTurn(TurnSearch):
    """The attempts of somebody else's search at one turn."""

    def __init__(self, search: str, begun: Any) -> None:
        self._search = search
        self._begun = begun

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        """Return what it proposes, if that is a proposal."""
        with blamed(f"propose() of the search {self._search!r}"):
            found: object = self._begun.propose(number, draw, seen)
        if not isinstance(found, Proposal):
            raise UserError(
                f"propose() of the search {self._search!r} returned {type(found).__name__}: it "
                "must return a Proposal, such as task.proposal(action)"
            )
        return found
