"""The one option table that pytest and the ``dstfuzz`` command share."""

from __future__ import annotations

from typing import Any

from pytest_dstfuzz.config import parsers, rates
from pytest_dstfuzz.config.option import Option
from pytest_dstfuzz.config.service_options import SERVICE_OPTIONS
from pytest_dstfuzz.config.settings import (
    ANNOTATIONS,
    ATTACKS,
    FAIL_ON,
    INCONCLUSIVE,
    SUITE,
    VALIDITIES,
)
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.transformations import ALL, TRANSFORMATIONS

#: Every option, in the order in which help shows them.
OPTIONS: tuple[Option, ...] = (
    Option(
        "model",
        parsers.tracker,
        "NAME",
        "tracker: a registered name ('trade'), module:attribute, or the address of a service, "
        "http(s)://... or rasa+http(s)://...",
    ),
    Option(
        "checkpoint", parsers.text, "PATH", "weights of the tracker instead of the shipped ones"
    ),
    Option(
        "suite",
        parsers.choice("policy", SUITE),
        "WHEN",
        "add the built-in suite: auto (the command line names a tracker and no file, and no test "
        "of your own is about robustness; default), yes (also for the tracker of an ini file) or "
        "no",
    ),
    Option(
        "data",
        parsers.text,
        "PATH",
        "dialogues: a folder, a file, a zip, or a named data set (default: the shipped sample)",
    ),
    Option("split", parsers.canonical_split, "SPLIT", "train, val or test (default: test)"),
    Option(
        "turns", parsers.turns, "N|all", "turns to test, of dialogues drawn by seed (default: 300)"
    ),
    Option(
        "domains",
        parsers.names,
        "NAME,...",
        "only dialogues that touch one of these",
        separator=",",
    ),
    Option(
        "slots",
        parsers.names,
        "NAME,...",
        "the slots of the bot, where data and ontology do not say them all: no others are asked "
        "for and compared (default: those of an ontology, else of the labels and of the answers)",
        separator=",",
    ),
    Option(
        "variants",
        parsers.integer(1, 1000),
        "N",
        "variants of each turn (default: 5)",
        per_test=True,
    ),
    Option(
        "variant",
        parsers.integer(0, 999),
        "I",
        "only the variant of this number, from 0: what a failure gives to repeat it",
        per_test=True,
    ),
    Option(
        "transformations",
        parsers.associated,
        "K",
        f"transformations that one variant associates, 1 to {len(TRANSFORMATIONS)}, or more with "
        "those of others (default: 3)",
        per_test=True,
    ),
    Option(
        "redraws",
        parsers.integer(0, 1000),
        "N",
        "draw a vacuous, duplicate or invalid variant again, up to N times (default: 5)",
        per_test=True,
    ),
    Option(
        "until_broken",
        parsers.switch,
        "yes|no",
        "no more variants of a turn once one breaks it: to hunt, not for rates (default: no)",
        per_test=True,
    ),
    Option(
        "only",
        parsers.transformations,
        "NAME,...",
        f"only these transformations: {', '.join(TRANSFORMATIONS)}; NAME/OPERATOR for one "
        f"operator, {ALL} for all of these beside those of others",
        per_test=True,
        separator=",",
    ),
    Option(
        "search",
        parsers.text,
        "NAME",
        "who chooses what to change: random, near-value, greedy, dialtest, agent (trained on "
        "the shipped trade), agent:simpletod (on the shipped simpletod), agent:PATH, a policy of "
        "your own, or a search of a package or of your suite (default: their own agents for the "
        "shipped two in strict, random for all else)",
        per_test=True,
    ),
    Option(
        "attack",
        parsers.choice("attack design", ATTACKS),
        "DESIGN",
        "earlier user turns as the tracker sees them: non-cumulative (clean), cumulative "
        "(perturbed) or hybrid (half of them; default)",
        per_test=True,
    ),
    Option(
        "validity",
        parsers.choice("validity profile", VALIDITIES),
        "PROFILE",
        "strict (edit rates and locks on meaning; default) or edit-rate (edit rates alone)",
        per_test=True,
    ),
    Option(
        "max_edit_rate",
        rates.parse_rate,
        "R",
        "limit of both edit rates (default: 0.25)",
        per_test=True,
    ),
    Option(
        "flat_edit_rate",
        parsers.switch,
        "yes|no",
        "hold short utterances to the word limit too, as the thesis does (default: no)",
        per_test=True,
    ),
    Option(
        "lock",
        parsers.lines,
        "WORD|/REGEX/",
        "a word or /regular expression/ that no edit may touch; may be repeated (one a line "
        "in an ini file)",
        per_test=True,
        separator="\n",
    ),
    Option(
        "relation",
        parsers.text,
        "NAME",
        "metamorphic (prediction stays as on the clean turn; default), gold (a right "
        "prediction stays right), or one of a package or of your suite",
        per_test=True,
    ),
    Option(
        "minimise",
        parsers.switch,
        "yes|no",
        "leave out of each violation the edits that do not break it: some 7 calls each (default: "
        "yes)",
        per_test=True,
    ),
    Option(
        "seed", parsers.integer(0, 2**63 - 1), "N", "seed of every draw (default: 0)", per_test=True
    ),
    Option(
        "device",
        parsers.text,
        "NAME",
        "device of the tracker: cpu, cuda, cuda:1, ... (default: cpu)",
    ),
    Option(
        "batch_size", parsers.integer(1, 65536), "N", "contexts predicted at once (default: 64)"
    ),
    Option(
        "repeatable",
        parsers.switch,
        "yes|no",
        "whether the tracker gives the same answer each time; no: answers are put to the vote, and "
        "the noise is measured (default: what the tracker says of itself, else yes)",
    ),
    Option(
        "votes",
        parsers.odd(1, 99),
        "N",
        "answers of a vote, where the tracker need not repeat itself: an odd number, 1 for no "
        "vote (default: 3)",
    ),
    *SERVICE_OPTIONS,
    Option(
        "cache",
        parsers.text,
        "PATH|no",
        "file of predictions that later runs use, of a tracker with a fingerprint, or no (default: "
        "one in pytest's cache folder)",
    ),
    Option(
        "cache_size",
        parsers.integer(1, 1_000_000),
        "MB",
        "megabytes that this file may take; what was not used for longest goes first (default: "
        "500)",
    ),
    Option(
        "max_seconds",
        parsers.positive("seconds"),
        "S",
        "end the run in order after so many seconds; no answer is waited for beyond that",
    ),
    Option(
        "preflight_seconds",
        parsers.positive("seconds"),
        "S",
        "seconds that testing the tracker before the run may take (default: 300)",
    ),
    Option(
        "max_calls", parsers.integer(1), "N", "end it in order after so many predicted contexts"
    ),
    Option(
        "max_tokens",
        parsers.integer(1),
        "N",
        "end it in order after so many tokens of a chat model",
    ),
    Option(
        "max_cost",
        parsers.positive("units of money"),
        "X",
        "end it in order after so much money, by the prices",
    ),
    Option("report", parsers.text, "PATH", "write the JSON report to this file"),
    Option(
        "html",
        parsers.text,
        "PATH",
        "write the HTML report, one self-contained file, to this file (needs the extra 'report')",
    ),
    Option(
        "annotations",
        parsers.choice("policy", ANNOTATIONS),
        "WHEN",
        "GitHub annotations of violations, and a job summary where $GITHUB_STEP_SUMMARY is set: "
        "auto (in GitHub Actions; default), yes or no",
    ),
    Option(
        "redact",
        parsers.switch,
        "yes|no",
        "write x for every character of what was said and of slot values, wherever it is shown",
        alone="yes",
    ),
    Option(
        "remember",
        parsers.switch,
        "yes|no",
        "add the violations to the regressions, which later runs replay before anything else",
        alone="yes",
    ),
    Option(
        "regressions",
        parsers.text,
        "PATH",
        "folder of remembered violations (default: .dstfuzz/regressions in pytest's root folder)",
    ),
    Option("replay", parsers.text, "ID", "only ask again for this remembered violation"),
    Option(
        "max_failure_rate",
        rates.parse_limit,
        "RATE",
        "gate: fail the session when the failure rate is above this, such as 5% (implies "
        "fail-on=gate)",
    ),
    Option(
        "min_accuracy",
        rates.parse_limit,
        "RATE",
        "gate: fail the session when fewer of the clean answers than this are right by the labels, "
        "such as 60%",
    ),
    Option(
        "baseline",
        parsers.text,
        "PATH",
        "gate: compare with the outcomes that an earlier build left in this file (implies "
        "fail-on=gate; needs the extra 'report')",
    ),
    Option(
        "update_baseline",
        parsers.switch,
        "yes|no",
        "write this build's outcomes to the file of --dst-baseline instead",
        alone="yes",
    ),
    Option(
        "max_regression",
        rates.parse_points,
        "POINTS",
        "gate: by how much the failure rate may rise over the baseline's, such as 2pp (default: "
        "2pp)",
    ),
    Option(
        "max_clean_drift",
        rates.parse_limit,
        "RATE",
        "gate: share of the turns whose clean answer may differ from the baseline's, such as 2% "
        "(default: 0); more is exit status 8, unless labels say that the answers got no worse",
    ),
    Option(
        "inconclusive",
        parsers.choice("policy", INCONCLUSIVE),
        "WHAT",
        "a comparison that decides nothing: warn (default) or fail (exit status 7)",
    ),
    Option(
        "fail_on",
        parsers.choice("failure policy", FAIL_ON),
        "WHAT",
        "violation (each one fails its test; default) or gate (only the session's rate decides)",
    ),
)

OPTION_NAMES: tuple[str, ...] = tuple(option.name for option in OPTIONS)
MARKER_NAMES: tuple[str, ...] = tuple(option.name for option in OPTIONS if option.per_test)


def option(name: str) -> Option:
    """Return the option called ``name`` (a field of `Settings`)."""
    for candidate in OPTIONS:
        if candidate.name == name:
            return candidate
    raise unknown_name("option", name, OPTION_NAMES)


def parse_option(name: str, value: str, shown_as: str) -> Any:
    """Parse the text of one option.

    Args:
        name: field of `Settings`.
        value: what the user wrote.
        shown_as: how the user spelled the option, for the message.

    Raises:
        UserError: the value is not one that the option takes.
    """
    try:
        return option(name).parse(value)
    except UserError as error:
        raise UserError(f"{shown_as}: {error}") from None
    except ValueError as error:
        raise UserError(f"{shown_as}: {value!r} {error}") from None


def option_text(name: str, value: object) -> str | None:
    """Spell a value of Python or TOML as the option would be written, for the one parser.

    Returns:
        The text, or ``None`` where the option takes no value of that type.
    """
    item = option(name)
    if isinstance(value, bool):
        # True is an int to Python, but it is no number of variants.
        return ("no", "yes")[value] if item.parse is parsers.switch else None
    if isinstance(value, str | int | float):
        return str(value)
    if item.separator and isinstance(value, list | tuple):
        parts = [part for part in value if isinstance(part, str)]
        return item.separator.join(parts) if len(parts) == len(value) else None
    return None
