"""Starts and stops Ray for a campaign or a training, and divides a budget among actors."""

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
    """Raise an error for limits that cannot be enforced across several processes.

    Raises:
        UserError: tokens or cost are limited, because the usage of a dead actor is unknown.
    """
    budget = settings.budget
    for flag, limit in (("--max-tokens", budget.max_tokens), ("--max-cost", budget.max_cost)):
        if limit is not None:
            raise UserError(
                f"{flag} cannot be combined with --ray: the usage of an actor that dies is "
                "unknown. "
                "Leave one out, or use --max-calls"
            )


def shares_of(settings: Settings, actors: int) -> list[Settings]:
    """Divide the calls of a budget among actors, and return the settings of each.

    Raises:
        UserError: there are fewer calls than actors.
    """
    calls = settings.budget.max_calls
    if calls is None:
        return [settings] * actors
    if calls < actors:
        raise UserError(
            f"--max-calls {calls} allows less than one call for each of {actors} actors: use "
            f"--ray-actors {max(1, calls)}"
        )
    return [
        settings.replace_options(max_calls=calls // actors + (number < calls % actors))
        for number in range(actors)
    ]


def left_of(settings: Settings, asked: int) -> Settings | None:
    """Return the settings for the replacement of a dead actor, or ``None`` if no call is left."""
    calls = settings.budget.max_calls
    if calls is None:
        return settings
    return settings.replace_options(max_calls=calls - asked) if asked < calls else None


def why_ended(settings: Settings, reasons: list[str], asked: int) -> str:
    """Return why a run ended, given the reasons of all its actors."""
    calls = settings.budget.max_calls
    # Actors report their shares. ``asked`` does not include the checks before the run.
    of_calls = any(reason.endswith(" calls ended") for reason in reasons)
    if calls is not None and (of_calls or asked >= calls):
        return f"the budget of {calls} calls ended"
    return reasons[0] if reasons else ""


#: Bytes of the object store, which holds the results of a few blocks at most.
_STORE: Final = 150_000_000
#: Seconds in which the head of a cluster must respond.
_ANSWER: Final = 10.0
#: The token of every Ray that this process starts, since Ray reads it only once.
_TOKEN: Final = secrets.token_hex(32)
#: The environment of our own Ray: no telemetry, access only from this machine with the token of
#: this process, and no changes to the accelerators that trackers see.
_QUIET: Final[Mapping[str, str]] = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


@dataclass(frozen=True, slots=True)
class RayOptions:
    """The number of Ray actors to start, and the machines to start them on.

    ``address`` is the address of a cluster; ``""`` starts Ray on this machine. ``actors`` is the
    number of actors; ``None`` means as many as the cluster has room for. ``gpus`` is the share or
    number of accelerators for each actor; ``None`` means one, or none if the cluster has no
    accelerator.
    """

    address: str = ""
    actors: int | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        if self.address.startswith("ray://"):
            raise UserError(
                f"{self.address} is an address of the Ray client, which cannot send results "
                "during the run: start the command on a machine of the cluster, with --ray=auto "
                "or the HOST:PORT of its head node"
            )


@dataclass(frozen=True, slots=True)
class Room:
    """The number of actors to request from a cluster, with the resources of each."""

    actors: int
    cpus: float
    gpus: float


def room_for(options: RayOptions, nodes: list[dict[str, Any]]) -> Room:
    """Return the number of actors that fit on the nodes of a cluster, and their resources.

    Raises:
        UserError: the cluster has too few resources.
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = options.gpus
    if gpus is None:
        gpus = 1.0 if any(node.get("GPU", 0) >= 1 for node in alive) else 0.0
    # An actor with an accelerator mostly waits for it, so it reserves no CPU.
    cpus = 0.0 if gpus else 1.0
    what, each = ("GPU", gpus) if gpus else ("CPU", cpus)
    # An actor cannot span nodes, so round down for each node.
    most = sum(int(node.get(what, 0) / each + 1e-9) for node in alive)
    if most < (options.actors or 1):
        share = f"{each:g} {what} for each" + (" (--ray-gpus)" if gpus else "")
        raise UserError(
            f"there is not enough room for {options.actors or 1} actors with {share}, only for "
            f"{most}: use "
            + (f"--ray-actors {most} or fewer" if most else "--ray-gpus 0, or another cluster")
        )
    return Room(options.actors or most, cpus, gpus)


def refuse_without_room(room: Room) -> None:
    """Raise an error if no remaining node has room for an actor.

    Raises:
        UserError: no node has room for an actor.
    """
    import ray  # noqa: PLC0415 - already initialised

    nodes: Any = ray.nodes
    room_for(RayOptions(actors=1, gpus=room.gpus), nodes())


def _refuse_silent(address: str) -> None:
    """Raise an error if nothing listens at an address. Ray itself would retry for minutes.

    Raises:
        UserError: nothing listens, or the address is invalid.
    """
    if address in ("", "auto"):
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise UserError(
            f"--ray {address!r} is not an address: write HOST:PORT of a head node, or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"no answer from --ray {address}: {reason}") from None


@contextmanager
def connect_to_ray(options: RayOptions) -> Iterator[Room]:
    """Start Ray or join a cluster. Close the connection at the end of the context.

    Ray's messages, about dead actors too, go only to its log files. The caller reports them in one
    line.

    Raises:
        UserError: Ray is not installed, the cluster does not respond, or no node has room.
    """
    _refuse_silent(options.address)
    own = not options.address
    before = dict(os.environ)
    if own:
        os.environ.update(_QUIET, RAY_AUTH_TOKEN=_TOKEN)
    try:
        with needs_extra("--ray", "ray", "ray"):
            # Import after the environment is set, since the import reads it.
            import ray  # noqa: PLC0415
        how: dict[str, Any] = {"address": options.address}
        if own:
            cpus = max(os.cpu_count() or 1, options.actors or 1)
            how = {"address": "local", "num_cpus": cpus, "object_store_memory": _STORE}
            how["include_dashboard"] = False
        # Ray prints on this stream if one of its own processes has a problem.
        with redirect_stdout(io.StringIO()):
            try:
                ray.init(**how, log_to_driver=False, logging_level=logging.CRITICAL)
            except Exception as error:  # noqa: BLE001 - Ray raises plain exceptions in init()
                where = options.address or "on this machine"
                reason = str(error).strip().partition("\n")[0]
                raise UserError(f"Ray cannot be used {where}: {reason}") from None
            try:
                nodes: Any = ray.nodes  # Ray has no types for it.
                yield room_for(options, nodes())
            finally:
                ray.shutdown()
    finally:
        os.environ.clear()
        os.environ.update(before)
