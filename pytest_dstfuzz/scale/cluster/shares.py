"""What the budget of a run means for several actors: each has a share, and all one end."""

from __future__ import annotations

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError


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
