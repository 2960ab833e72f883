"""Policies of the agent by the name of the search: the shipped one, or one in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_dstfuzz.agents.checkpoint import SavedPolicy, load_policy
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.search.policy import AgentSearch

#: The policy that ships with the package, for the tracker that ships with it.
SHIPPED: Final = Path(__file__).parents[1] / "resources" / "agents" / "trade.safetensors"
_NAME: Final = AgentSearch.name
_PREFIX: Final = f"{_NAME}:"


def is_agent(name: str) -> bool:
    """Whether the search called ``name`` is a trained agent: ``agent`` or ``agent:PATH``."""
    return name == _NAME or name.startswith(_PREFIX)


def named_policy(name: str) -> SavedPolicy:
    """Return the policy of the search called ``agent`` or ``agent:PATH``.

    Raises:
        UserError: no policy is shipped, or there is none at the path, see `load_policy`.
    """
    if name != _NAME:
        path = name.removeprefix(_PREFIX)
        if not path:
            raise UserError("the search 'agent:' names no file: write agent:PATH, or agent")
        return load_policy(path)
    if not SHIPPED.is_file():
        raise UserError(
            "this installation ships no trained agent: train one with 'dstfuzz train-agent', and "
            "name its file with agent:PATH"
        )
    return load_policy(SHIPPED)


def agent_search(name: str, seed: int, k: int) -> AgentSearch:
    """Build the search called ``agent`` or ``agent:PATH``.

    Args:
        name: value of the option ``search``.
        seed: seed of the campaign.
        k: number of transformations that one variant associates, 1 to 6.

    Raises:
        UserError: there is no such policy, or it will not do.
    """
    saved = named_policy(name)
    return AgentSearch(saved.policy, seed, k, saved.about.order)


def policy_note(name: str, saved: SavedPolicy, model: str) -> str:
    """Say whose agent a search is.

    Args:
        name: of the search, as the user gave it.
        saved: its policy.
        model: the tracker under test, as the user named it, or what it is.
    """
    about = saved.about
    transfer = "" if model == about.tracker else f", and is used on {model}"
    return (
        f"the search {name} is a policy (sha256 {saved.fingerprint}) that was trained on the "
        f"tracker {about.tracker}, {about.data}, {about.validity} profile{transfer}"
    )
