"""Options of the commands that may run on Ray."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError

if TYPE_CHECKING:
    from pytest_dstfuzz.scale.cluster.session import RayOptions

#: Where their values are.
RAY_OPTIONS: Final = ("ray", "ray_actors", "ray_gpus")


def ray_options(parser: Parser, meaning: str = "") -> None:
    """Add the options to the parser of a command; ``meaning``: what else ``--ray`` does there."""
    parser.option(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="run by actors of Ray, each with a tracker of its own: on this machine, or on the "
        "cluster with this address (HOST:PORT of its head, or auto)" + meaning,
    )
    parser.value(
        "--ray-actors",
        _actors,
        "N",
        help="how many actors; by default one for each accelerator, or for each core where there "
        "is none",
    )
    parser.value(
        "--ray-gpus",
        _gpus,
        "SHARE",
        help="what each actor has of an accelerator: 0.5 puts two on each, 0 none on any; by "
        "default 1 where there are some",
    )


def given_ray(given: Namespace) -> RayOptions | None:
    """Return what was said of Ray; ``None`` = it is not to be used.

    Raises:
        UserError: something was said of its actors alone.
    """
    if given.ray is None:
        for name in RAY_OPTIONS[1:]:
            if getattr(given, name) is not None:
                raise UserError(f"--{name.replace('_', '-')} is for --ray: add it, or leave it out")
        return None
    from pytest_dstfuzz.scale.cluster.session import RayOptions  # noqa: PLC0415 - help should not wait

    return RayOptions(given.ray, given.ray_actors, given.ray_gpus)


def _actors(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError("is no number of actors, such as 4")
    return int(text)


def _gpus(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    # What is more than one is a whole number: Ray gives no one and a half.
    if not (0 <= share <= 1 or (share > 1 and share.is_integer())):
        raise ValueError("is no share of an accelerator, such as 0.5, and no number of them")
    return share
