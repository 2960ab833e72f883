"""The validity profiles as data: what each of them asks of a variant."""

from __future__ import annotations

from typing import Final, NamedTuple

from pytest_dstfuzz.transformations import ALL, EXTRA


class Profile(NamedTuple):
    """What a variant has to pass, beside the edit rates."""

    name: str
    #: Whether what carries the meaning is locked.
    locks: bool
    #: Whether only edits are made that the noise model gives a probability to.
    noise: bool
    #: What is used of transformations and operators where a run names none, as `select` takes it.
    operators: tuple[str, ...] = (ALL,)


PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile("strict", locks=True, noise=False),
        Profile("natural", locks=True, noise=True, operators=(ALL, *EXTRA)),
        Profile("edit-rate", locks=False, noise=False),
    )
}
VALIDITIES: Final = tuple(PROFILES)
