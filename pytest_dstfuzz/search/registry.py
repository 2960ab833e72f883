"""Searches by name."""

from __future__ import annotations

from collections.abc import Callable

from pytest_dstfuzz.errors import unknown_name
from pytest_dstfuzz.search.hill_climb import DIALTEST, GREEDY, HillClimbSearch
from pytest_dstfuzz.search.near_value import NearValueSearch
from pytest_dstfuzz.search.policy_file import agent_search, is_agent
from pytest_dstfuzz.search.protocol import Search
from pytest_dstfuzz.search.uniform import RandomSearch

#: Name -> constructor that takes the seed and the number of associated transformations.
_SEARCHES: dict[str, Callable[[int, int], Search]] = {
    RandomSearch.name: RandomSearch,
    NearValueSearch.name: NearValueSearch,
    GREEDY.name: lambda seed, k: HillClimbSearch(GREEDY, seed),  # noqa: ARG005 - one edit a step
    DIALTEST.name: lambda seed, k: HillClimbSearch(DIALTEST, seed),  # noqa: ARG005 - likewise
}


def search_by_name(name: str, *, seed: int, k: int) -> Search:
    """Build the search called ``name``.

    Args:
        name: value of the option ``search``: a name, ``agent``, ``agent:TRACKER`` or
            ``agent:PATH``.
        seed: seed of the campaign.
        k: number of transformations that one variant associates, 1 to 6.

    Raises:
        UserError: there is no such search, or the agent's policy will not do.
    """
    if is_agent(name):
        return agent_search(name, seed, k)
    if name not in _SEARCHES:
        raise unknown_name("search", name, (*_SEARCHES, "agent", "agent:PATH"))
    return _SEARCHES[name](seed, k)
