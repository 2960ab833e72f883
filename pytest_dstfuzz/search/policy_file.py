"""Policies of the agent by the name of the search: the shipped one, or one in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_dstfuzz.agents.checkpoint import SavedPolicy, load_policy
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.search.policy import AgentSearch

#: Where the policies lie that ship with the package.
SHIPPED: Final = Path(__file__).parents[1] / "resources" / "agents"
#: The trackers that they were trained on, those that ship. ``agent`` is that of the first.
SHIPPED_FOR: Final = ("trade", "simpletod")
_NAME: Final = AgentSearch.name
_PREFIX: Final = f"{_NAME}:"


def is_agent(name: str) -> bool:
    """Whether the search called ``name`` is a trained agent: ``agent`` or ``agent:...``."""
    return name == _NAME or name.startswith(_PREFIX)


def named_policy(name: str) -> SavedPolicy:
    """Return the policy of the search called ``agent``, ``agent:TRACKER`` or ``agent:PATH``.

    Raises:
        UserError: no policy is shipped, or there is none at the path, see `load_policy`.
    """
    wanted = SHIPPED_FOR[0] if name == _NAME else name.removeprefix(_PREFIX)
    if not wanted:
        raise UserError("the search 'agent:' names no file: write agent:PATH, or agent")
    if wanted not in SHIPPED_FOR:
        return load_policy(wanted)
    path = SHIPPED / f"{wanted}.safetensors"
    if not path.is_file():
        raise UserError(
            "this installation ships no trained agent: train one with 'dstfuzz train-agent', and "
            "name its file with agent:PATH"
        )
    return load_policy(path)


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


def describe_policy(name: str, model: str | None, checkpoint: str | None) -> tuple[str, str]:
    """Return the fingerprint of a search's policy, and a note that says whose agent it is.

    Args:
        name: ``agent`` or ``agent:PATH``, as the user gave it.
        model: the tracker under test, as the user named it; ``None`` = a suite's own.
        checkpoint: weights that it has in the place of its own.

    Raises:
        UserError: as `named_policy`.
    """
    saved = named_policy(name)
    about = saved.about
    used = model or "the suite's own tracker"
    if checkpoint is not None:
        used += f" with the checkpoint {checkpoint}"
    elsewhere = "" if used == about.tracker else f", and is used on {used}"
    return saved.fingerprint, (
        f"the search {name} is a policy (sha256 {saved.fingerprint}) that was trained on the "
        f"tracker {about.tracker}, {about.data}, {about.validity} profile{elsewhere}"
    )
