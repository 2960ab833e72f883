"""Options of the gate: limits, and the baseline of an earlier build."""

from __future__ import annotations

from functools import partial
from typing import Final

from pytest_dstfuzz.config import parsers, rates
from pytest_dstfuzz.config.parsers import SWITCH, Option, Value

_RATE: Final = Value(rates.parse_limit, "RATE", float)

_session = partial(Option, scopes=("session",))
_of_baseline = partial(Option, scopes=("session", "baseline"))

#: What fails a run.
GATE_OPTIONS: Final = (
    _session(
        "max_failure_rate",
        _RATE,
        "gate: fail the session when the failure rate is above this, such as 5% (implies "
        "fail-on=gate)",
    ),
    Option(
        "min_accuracy",
        _RATE,
        "gate: fail the session when fewer of the clean answers than this are right by the labels, "
        "such as 60%",
        scopes=("session", "ini"),
    ),
    Option(
        "max_expected_failures",
        Value(rates.parse_per_1000, "N", float),
        "gate: fail the session when more of 1,000 user turns than this are expected to fail, such "
        "as 5 or 7.5 (implies fail-on=gate; needs --dst-search=noise)",
        scopes=("session", "ini"),
    ),
    Option(
        "baseline",
        Value(parsers.text, "PATH"),
        "gate: compare with the outcomes that an earlier build left in this file (implies "
        "fail-on=gate)",
        scopes=("path", "written", "session", "place"),
    ),
    _of_baseline(
        "update_baseline",
        SWITCH,
        "write this build's outcomes to the file of --dst-baseline instead",
    ),
    Option(
        "max_regression",
        Value(rates.parse_points, "POINTS", float),
        "gate: by how much the failure rate may rise over the baseline's, such as 2pp (default: "
        "2pp)",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_expected_rise",
        Value(rates.parse_per_1000, "N", float),
        "gate: by how many of 1,000 user turns the expected failures may rise over the baseline's, "
        "such as 2 (needs --dst-search=noise)",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_new_weaknesses",
        parsers.count(0, 1000),
        "gate: at most so many weaknesses may be new since the baseline, such as 0",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_new_violations",
        parsers.count(0, 1000),
        "gate: at most so many variants that held in the baseline may break now, such as 0 "
        "(default: 0 for a bot that repeats itself, otherwise no limit)",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_clean_drift",
        _RATE,
        "gate: share of the turns whose clean answer may differ from the baseline's, such as 2% "
        "(default: 0); more is exit status 8, unless labels say that the answers got no worse",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "inconclusive",
        Value(parsers.choice("policy", parsers.INCONCLUSIVE), "WHAT"),
        "a comparison that decides nothing: warn (default; if nothing could be compared at all, "
        "the run fails with exit status 9), fail (exit status 7) or allow (never fails)",
        scopes=("session", "ini"),
    ),
    _session(
        "fail_on",
        Value(parsers.choice("failure policy", parsers.FAIL_ON), "WHAT"),
        "violation (each one fails its test; default) or gate (only the session's rate decides)",
    ),
)
