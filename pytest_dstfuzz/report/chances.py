"""What users meet, in words: expected failures, the mass found, how likely a text is."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from pytest_dstfuzz.campaign.expected import TURNS, ExpectedFailures, FailingMass
from pytest_dstfuzz.campaign.intervals import FEWEST_DIALOGUES, interval_name
from pytest_dstfuzz.campaign.results import VariantResult
from pytest_dstfuzz.campaign.summary import Summary
from pytest_dstfuzz.config.rates import per_1000
from pytest_dstfuzz.report.page import Style, TerminalPage

EXPECTED: Final = "expected failures"
#: Above this share a text is so frequent that "1 of n" says too little.
_FREQUENT: Final = 0.4
#: Below so many of 1,000, "1 of n" says more.
_FEW: Final = 0.01
#: Nobody counts so many turns.
_MOST: Final = 1e9
#: What a failure rate is not where variants are drawn by what people do.
ALL_DISTORTED: Final = "all of them distorted, likely and unlikely ones counted alike"


class UserTurns(NamedTuple):
    """How many user turns fail, as reports show it."""

    #: The figure itself, in as few words as can be.
    value: str
    #: What else there is to say, for a table or a card.
    detail: str
    #: Both.
    text: str


def user_turns(summary: Summary) -> UserTurns | None:
    """Say how many user turns fail; ``None`` where no noise model was in use, or found nothing."""
    expected, mass = summary.expected_failures, summary.failing_mass
    if expected is not None:
        return _expected(expected, summary.dialogues_tested)
    return None if mass is None or not mass.variants else _at_least(mass)


def show_user_turns(page: TerminalPage, summary: Summary, *, verbose: bool) -> None:
    """Say in a terminal how many user turns fail, where a noise model was in use."""
    shown, expected = user_turns(summary), summary.expected_failures
    if shown is None:
        return
    style: Style = "bad"
    if expected is not None and not expected.per_1000:
        style = "warning" if expected.per_1000 is None else "good"
    head = f"{EXPECTED}  "
    page.field(head, shown.text, style)
    if verbose and expected is not None:
        page.field(" " * len(head), taken_out_text(expected))


def user_turns_short(summary: Summary) -> str:
    """Return the figure for a line that says all; ``""`` where there is none."""
    expected, shown = summary.expected_failures, user_turns(summary)
    if shown is None or (expected is not None and expected.per_1000 is None):
        return ""
    bounds = expected and expected.interval
    return f"{EXPECTED} {shown.value}{'' if not bounds else f' ({_ends(bounds)})'}"


def taken_out(expected: ExpectedFailures) -> list[tuple[str, str]]:
    """Return of how many turns the figure is, and of how many it is not, as names and figures."""
    return [
        ("with a slip that is locked or not in use: left out", per_1000(expected.locked_per_1000)),
        ("of 1,000 others: distorted", per_1000(expected.distorted_per_1000)),
        (
            "of 1,000 others: not judged (too much edited, or no answer), counted as no failure",
            per_1000(expected.unjudged_per_1000),
        ),
    ]


def taken_out_text(expected: ExpectedFailures) -> str:
    """Return the same as a sentence."""
    locked, unjudged = per_1000(expected.locked_per_1000), per_1000(expected.unjudged_per_1000)
    return (
        f"of {TURNS:,} user turns {locked} have a slip that is locked or not in use, and are left "
        f"out; of {TURNS:,} others {per_1000(expected.distorted_per_1000)} are distorted, and "
        f"{unjudged} of these count as no failure since they were not judged (too much edited, or "
        "no answer)"
    )


def likely_text(variant: VariantResult) -> str:
    """Say how many users say or type a variant; ``""`` where no noise model says so."""
    if variant.log_probability is None:
        return ""
    text = f"{_odds(math.exp(variant.log_probability))} said or typed like this"
    if variant.weight is None:
        return text
    return f"{text}; in the estimate it stands for {per_1000(TURNS * variant.weight)} of {TURNS:,}"


def _expected(expected: ExpectedFailures, dialogues: int) -> UserTurns:
    if expected.per_1000 is None:
        return UserTurns("n/a", expected.reason, f"n/a: {expected.reason}")
    value = f"{per_1000(expected.per_1000)} of {TURNS:,} user turns"
    interval = f"no interval: it takes {FEWEST_DIALOGUES} dialogues"
    if expected.interval is not None:
        interval = f"{interval_name(dialogues)} {_ends(expected.interval)}"
    rests = _model(expected.slip_rate, expected.noise)
    rests += f"; effective sample size {expected.effective_sample_size:,.0f}"
    return UserTurns(value, f"{interval}; {rests}", f"{value} ({interval}), {rests}")


def _at_least(mass: FailingMass) -> UserTurns:
    value = f"at least {of_turns(mass.per_1000_at_least)} user turns"
    found = "the violation" if mass.variants == 1 else f"one of the {mass.variants:,} violations"
    detail = (
        f"are said or typed as {found} found, {_model(mass.slip_rate, mass.noise)}; a lower bound, "
        "not a rate: --dst-search=noise estimates one"
    )
    return UserTurns(value, detail, f"{value} {detail}")


def of_turns(number: float) -> str:
    """Return so many of 1,000, or 1 of many more where they are few."""
    if 0 < number < _FEW:
        return f"1 of {_round(TURNS / number):,.0f}"
    return f"{per_1000(number)} of {TURNS:,}"


def _round(number: float) -> float:
    """Return a number with two digits."""
    return float(f"{number:.1e}")


def _model(slip_rate: float | None, noise: str) -> str:
    return f"at a slip rate of {100 * (slip_rate or 0.0):g} % ({noise})"


def _ends(interval: tuple[float, float]) -> str:
    return f"{per_1000(interval[0])} to {per_1000(interval[1])}"


def _odds(probability: float) -> str:
    if probability > _FREQUENT:
        return f"about {100 * probability:.0f} of 100 such turns are"
    if probability * _MOST < 1:
        return f"fewer than 1 of {_MOST:,.0f} such turns is"
    return f"about 1 of {_round(1 / probability):,.0f} such turns is"
