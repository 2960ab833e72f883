"""The fixture ``dst_agent``. Every run of pytest loads this module: PYTEST_DONT_REWRITE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_dstfuzz import DstProposer


@pytest.fixture(scope="session")
def dst_agent(dst_proposer: Callable[[str], DstProposer], dst_search: object) -> DstProposer:
    """The trained agent: ``dst_agent.variants(dialogue, turn_index, count)`` proposes variants.

    If the configured search is an agent, the fixture uses its policy. Otherwise the fixture uses
    the shipped policy.
    """
    search = dst_search if isinstance(dst_search, str) else ""
    return dst_proposer(search if search.partition(":")[0] == "agent" else "agent")
