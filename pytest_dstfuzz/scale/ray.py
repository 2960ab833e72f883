"""Ray for a campaign or a training: how it begins and ends, and shares of a budget."""

from __future__ import annotations

import io
import logging
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any, Final

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError, needs_extra


def refuse_what_cannot_be_kept(settings: Settings) -> None:
    """Refuse limits that several processes cannot keep.

    Raises:
        UserError: tokens or money are limited: what an actor that dies had used is not known.
    """
    budget = settings.budget
    for flag, limit in (("--max-tokens", budget.max_tokens), ("--max-cost", budget.max_cost)):
        if limit is not None:
            raise UserError(
                f"{flag} cannot be kept with --ray: what an actor used that dies is known to nobody"
                ". Leave --ray out, or limit --max-calls"
            )


def shares_of(settings: Settings, actors: int) -> list[Settings]:
    """Return the settings of each actor: contexts are shared out, seconds are those of all.

    Raises:
        UserError: there is less than one context for each.
    """
    calls = settings.budget.max_calls
    if calls is None:
        return [settings] * actors
    if calls < actors:
        raise UserError(
            f"--max-calls {calls} is less than one for each of {actors} actors: give "
            f"--ray-actors {max(1, calls)}"
        )
    return [
        settings.replace_options(max_calls=calls // actors + (number < calls % actors))
        for number in range(actors)
    ]


def left_of(settings: Settings, asked: int) -> Settings | None:
    """Return the settings of who goes on for an actor that asked so much; ``None`` = nothing."""
    calls = settings.budget.max_calls
    if calls is None:
        return settings
    return settings.replace_options(max_calls=calls - asked) if asked < calls else None


def why_ended(settings: Settings, reasons: list[str], asked: int) -> str:
    """Return why a run ended, from the reasons of all of its actors."""
    calls = settings.budget.max_calls
    # An actor names its own share, and what the checks before a run ask is not in ``asked``.
    of_calls = any(reason.endswith(" calls ended") for reason in reasons)
    if calls is not None and (of_calls or asked >= calls):
        return f"the budget of {calls} calls ended"
    return reasons[0] if reasons else ""


#: Bytes of the store in which results wait to be fetched: there are a few blocks at most.
_STORE: Final = 150_000_000
#: Seconds in which the head of a cluster must answer.
_ANSWER: Final = 10.0
#: Of each Ray that this process begins: Ray reads a token once a process.
_TOKEN: Final = secrets.token_hex(32)
#: What a Ray of our own is begun with: it tells nobody, is reached from this machine alone and only
#: by who has the token of this process, and leaves it to trackers which accelerators they see.
_QUIET: Final[Mapping[str, str]] = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


@dataclass(frozen=True, slots=True)
class RayOptions:
    """How many actors there are, and where.

    ``address``: of a cluster, ``""`` = Ray is begun on this machine. ``actors``: how many;
    ``None`` = as many as there is room for. ``gpus``: what each of them has of an accelerator, or
    how many; ``None`` = one where there are any.
    """

    address: str = ""
    actors: int | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        if self.address.startswith("ray://"):
            raise UserError(
                f"{self.address} is an address of the Ray client, which does not carry results as "
                "they come: start on a machine of the cluster, with --ray=auto or the HOST:PORT of "
                "its head"
            )


@dataclass(frozen=True, slots=True)
class Room:
    """The actors that a cluster is asked for, and what each of them takes."""

    actors: int
    cpus: float
    gpus: float


def room_for(options: RayOptions, nodes: list[dict[str, Any]]) -> Room:
    """Return what to ask the nodes of a cluster for.

    Raises:
        UserError: there is no room for it.
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = options.gpus
    if gpus is None:
        gpus = 1.0 if any(node.get("GPU", 0) >= 1 for node in alive) else 0.0
    # An actor with an accelerator waits for it most of the time.
    cpus = 0.0 if gpus else 1.0
    what, each = ("GPU", gpus) if gpus else ("CPU", cpus)
    # What is left over of a node is of no use: an actor is on one.
    most = sum(int(node.get(what, 0) / each + 1e-9) for node in alive)
    if most < (options.actors or 1):
        share = f"{each:g} {what} for each" + (" (--ray-gpus)" if gpus else "")
        raise UserError(
            f"there is room for {most} actors with {share}, not for {options.actors or 1}: give "
            + (f"--ray-actors {most} or fewer" if most else "--ray-gpus 0, or another cluster")
        )
    return Room(options.actors or most, cpus, gpus)


def refuse_without_room(room: Room) -> None:
    """Refuse to wait for an actor where no node that is left has room for one.

    Raises:
        UserError: there is none.
    """
    import ray  # noqa: PLC0415 - begun before

    nodes: Any = ray.nodes
    room_for(RayOptions(actors=1, gpus=room.gpus), nodes())


def _refuse_silent(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would try for many minutes.

    Raises:
        UserError: nobody does, or it is no address.
    """
    if address in ("", "auto"):
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise UserError(f"--ray {address!r} is no address: give HOST:PORT of a head node, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"nobody answers at --ray {address}: {reason}") from None


@contextmanager
def connected(options: RayOptions) -> Iterator[Room]:
    """Begin Ray or join a cluster, and leave it as it was.

    What Ray itself says of actors that die goes to its log files: whoever runs them says it in one
    line.

    Raises:
        UserError: Ray is not installed, the cluster does not answer, or there is no room.
    """
    _refuse_silent(options.address)
    own = not options.address
    before = dict(os.environ)
    if own:
        os.environ.update(_QUIET, RAY_AUTH_TOKEN=_TOKEN)
    try:
        with needs_extra("--ray", "ray", "ray"):
            # After the environment, which it reads then.
            import ray  # noqa: PLC0415
        how: dict[str, Any] = {"address": options.address}
        if own:
            cpus = max(os.cpu_count() or 1, options.actors or 1)
            how = {"address": "local", "num_cpus": cpus, "object_store_memory": _STORE}
            how["include_dashboard"] = False
        # It prints on this stream whatever happens to a process of its own.
        with redirect_stdout(io.StringIO()):
            try:
                ray.init(**how, log_to_driver=False, logging_level=logging.ERROR)
            except Exception as error:  # noqa: BLE001 - Ray raises plain ones when it does not begin
                where = options.address or "on this machine"
                reason = str(error).strip().partition("\n")[0]
                raise UserError(f"Ray cannot be used, {where}: {reason}") from None
            try:
                nodes: Any = ray.nodes  # Ray gives it no types.
                yield room_for(options, nodes())
            finally:
                ray.shutdown()
    finally:
        os.environ.clear()
        os.environ.update(before)
