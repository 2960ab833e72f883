"""The one option table that pytest and the ``dstfuzz`` command share."""

from __future__ import annotations

from functools import partial
from typing import Any

from pytest_dstfuzz.config import parsers, rates
from pytest_dstfuzz.config.gate_options import GATE_OPTIONS
from pytest_dstfuzz.config.parsers import PARTS, SWITCH, Option, Scope, Value
from pytest_dstfuzz.config.profiles import VALIDITIES
from pytest_dstfuzz.config.reply_options import REPLY_OPTIONS
from pytest_dstfuzz.config.tracker_keys import (
    MODELS,
    SERVICES,
    TRACKER_KEYS,
    WEIGHT_KEYS,
    keys_of,
)
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.transformations import ALL, TRANSFORMATIONS

_PATH = Value(parsers.text, "PATH")
_NAME = Value(parsers.text, "NAME")
_WHEN = Value(parsers.choice("policy", parsers.WHEN), "WHEN")
_NAMES = Value(parsers.names, "NAME,...", separator=",")

_place = partial(Option, scopes=("place",))
_read = partial(Option, scopes=("path", "place"))
_session = partial(Option, scopes=("session",))
_shown = partial(Option, scopes=("session", "place"))
_written = partial(Option, scopes=("path", "written", "session", "place"))
_decides = partial(Option, scopes=("test", "decides"))

_TRACKER = (
    Option(
        "model",
        Value(parsers.tracker, "NAME"),
        "tracker: a registered name ('trade'), module:attribute, or the address of a service: "
        "http(s)://..., rasa+http(s)://..., openai+http(s)://..., anthropic+http(s)://..., or "
        "what a package or a conftest.py registers",
    ),
    *WEIGHT_KEYS,
    Option("batch_size", parsers.count(1, 65536), "contexts predicted at once (default: 64)"),
    Option(
        "repeatable",
        SWITCH,
        "whether the tracker gives the same answer each time; no: answers are put to the vote, and "
        "the noise is measured (default: what the tracker says of itself, else yes)",
    ),
    Option(
        "votes",
        Value(parsers.votes, "N", int),
        "answers of a vote, where the tracker need not repeat itself: an odd number, 1 for no "
        "vote (default: 3)",
        scopes=("ini",),
    ),
    Option(
        "noise_floor",
        parsers.count(2, 32),
        "ask each clean turn so often before it is perturbed; a sequential test then takes the "
        "place of the vote (default: a vote; 5 with error-rate)",
        scopes=("ini",),
    ),
    Option(
        "error_rate",
        Value(rates.parse_error_rates, "RATE[,RATE]|no", float, separator=","),
        "what decides if answers vary: a vote (default), a sequential test by which so many "
        "unchanged variants at most are taken for changed, such as 5%, and as many changed ones "
        "missed, or as the second rate says, or no: one answer each",
    ),
    _place(
        "tracker",
        Value(parsers.tracker_keys, "KEY=VALUE", separator="\n"),
        "a key of the tracker, which may be repeated (one a line in an ini file), and goes before "
        "the same key of the table [tool.dstfuzz.tracker] of pyproject.toml. Of services: "
        f"{keys_of(SERVICES)}; of a shipped tracker: checkpoint, device; of Rasa: "
        f"{keys_of(('rasa',))}; of chat models: {keys_of(MODELS)}; of a tracker from a package or "
        "a conftest.py: the parameters of its factory",
    ),
    *TRACKER_KEYS,
)
_DATA = (
    Option(
        "suite",
        _WHEN,
        "add the built-in suite: auto (the command line names a tracker and no file, and no test "
        "of your own is about robustness; default), yes (also for the tracker of an ini file) or "
        "no",
    ),
    _read(
        "data",
        _PATH,
        "dialogues: a folder, a file, a zip, or a named data set (default: the shipped sample)",
    ),
    Option("split", Value(parsers.canonical_split, "SPLIT"), "train, val or test (default: test)"),
    Option(
        "turns",
        Value(parsers.turns, "N|all", int),
        "turns to test, of dialogues drawn by seed (default: 300)",
    ),
    Option(
        "shard",
        Value(parsers.shard, "K/N", int, separator="/"),
        "only part K of N of those turns, such as 3/16: whole dialogues, by their ids; dstfuzz "
        "merge puts the parts together (default: all)",
        scopes=("session", "place"),
    ),
    Option("domains", _NAMES, "only dialogues that touch one of these"),
    Option(
        "slots",
        _NAMES,
        "the slots of the bot, where data and ontology do not say them all: no others are asked "
        "for and compared (default: those of an ontology, else of the labels and of the answers)",
    ),
    _read(
        "tools",
        _PATH,
        "JSON file of the tools of dialogues that bring none, in OpenAI's, Anthropic's or MCP's "
        "form; for --dst-outcome=tool-calls",
    ),
    Option(
        "frozen",
        _PATH,
        "file of turns in other words that a person has read: dstfuzz freeze writes one",
        scopes=("path", "place", "ini"),
        of="relation",
        kinds=("frozen",),
    ),
    Option(
        "tools_paraphrase",
        _PATH,
        "the tools in other words: a JSON file of other names and descriptions, or the folder with "
        "SGD and SGD-X",
        scopes=("path", "place", "ini"),
        of="relation",
        kinds=("tools-paraphrase",),
    ),
)
_VARIANT = (
    Option(
        "variants", parsers.count(1, 1000), "variants of each turn (default: 5)", scopes=("test",)
    ),
    Option(
        "variant",
        Value(parsers.integer(0, 999), "I", int),
        "only the variant of this number, from 0: what a failure gives to repeat it",
        scopes=("test",),
    ),
    _decides(
        "transformations",
        Value(parsers.associated, "K", int),
        f"transformations that one variant associates, 1 to {len(TRANSFORMATIONS)}, or more with "
        "those of others (default: 3)",
    ),
    Option(
        "redraws",
        parsers.count(0, 1000),
        "draw a vacuous, duplicate or invalid variant again, up to N times (default: 5)",
        scopes=("test", "decides", "ini"),
    ),
    _decides(
        "stop_at_first",
        SWITCH,
        "no more variants of a turn once one breaks it: to hunt, not for rates (default: no)",
    ),
    _decides(
        "edits",
        Value(parsers.edits, "NAME,+NAME,-NAME", separator=","),
        f"only these transformations ({', '.join(TRANSFORMATIONS)}) and operators: NAME or "
        f"TRANSFORMATION/NAME, such as emoji; +NAME adds and -NAME leaves out, such as "
        f"-emoji,-word_drop; {ALL} stands for these six",
    ),
    _decides(
        "search",
        _NAME,
        "who chooses what to change: random, near-value, greedy, dialtest, agent (trained on "
        "the shipped trade), agent:simpletod (on the shipped simpletod), agent:PATH, a policy of "
        "your own, bandit (a scorer of edits, learned on the shipped trade), bandit:PATH, one of "
        "your own, noise (what people type, for expected failures; under validity=natural), or a "
        "search of a package or of your suite (default: bandit for the shipped trade under "
        "validity=natural, else random)",
    ),
    _decides(
        "attack",
        Value(parsers.choice("attack design", parsers.ATTACKS), "DESIGN"),
        "earlier user turns as the tracker sees them: non-cumulative (clean), cumulative "
        "(perturbed) or hybrid (half of them; default)",
    ),
    _decides(
        "validity",
        Value(parsers.choice("validity profile", VALIDITIES), "PROFILE"),
        "natural (edit rates, locks on meaning, and only slips that people make, by the noise "
        "model; default), strict (edit rates and locks) or edit-rate (edit rates alone)",
    ),
    _decides(
        "noise",
        Value(parsers.noise_models, "NAME,...", separator=","),
        "noise models: typing, casual, speech, or the path of a file of dstfuzz fit-noise; several "
        "share the slips, equally or by weights as in typing:3,casual (default: typing,casual)",
    ),
    _decides(
        "slip_rate",
        Value(rates.parse_slip_rate, "RATE", float),
        "slips per word that people make, such as 2%: what the probabilities of variants are "
        "reckoned with (default: that of the noise models)",
    ),
    _decides(
        "max_edit_rate",
        Value(rates.parse_rate, "R", float),
        "limit of both edit rates (default: 0.25)",
    ),
    Option(
        "flat_edit_rate",
        SWITCH,
        "hold short utterances to the word limit too, as the thesis does (default: no)",
        scopes=("test", "decides", "ini"),
    ),
    _decides(
        "lock",
        Value(parsers.lines, "WORD|/REGEX/", separator="\n"),
        "a word or /regular expression/ that no edit may touch; may be repeated (one a line "
        "in an ini file)",
    ),
    _decides(
        "relation",
        Value(parsers.relations, "NAME,...", separator=","),
        "what must hold, one or several: metamorphic (prediction stays as on the clean turn; "
        "default), gold (a right prediction stays right), value-swap, negation and others (what "
        "must change: dstfuzz relations lists all), one of a package or of your suite",
    ),
    Option(
        "shrink",
        SWITCH,
        "leave out of each violation the edits that do not break it: some 7 calls each (default: "
        "yes)",
        scopes=("test",),
    ),
    _decides("seed", parsers.count(0, 2**63 - 1), "seed of every draw (default: 0)"),
)
_BUDGET = (
    _session(
        "max_seconds",
        parsers.SECONDS,
        "stop the run gracefully after so many seconds; no answer is waited for beyond that",
    ),
    Option(
        "preflight_seconds",
        parsers.SECONDS,
        "seconds that testing the tracker before the run may take (default: 300)",
        scopes=("place", "ini"),
    ),
    _session("max_calls", parsers.count(1), "stop it gracefully after so many predicted contexts"),
    _session(
        "max_tokens", parsers.count(1), "stop it gracefully after so many tokens of a chat model"
    ),
    _session(
        "max_cost",
        Value(parsers.positive("units of money"), "X", float),
        "stop it gracefully after so much money, by the prices",
    ),
    Option(
        "cache",
        Value(parsers.text, "PATH|no"),
        "file of predictions that later runs use, of a tracker with a fingerprint, or no (default: "
        "one in pytest's cache folder)",
        scopes=("path", "written", "place"),
    ),
    Option(
        "cache_size",
        Value(parsers.integer(1, 1_000_000), "MB", int),
        "megabytes that this file may take; what was not used for longest goes first (default: "
        "500)",
        scopes=("place", "ini"),
    ),
)
_OUTPUT = (
    _written(
        "report",
        Value(parsers.reports, "PATH", separator="\n"),
        "write a report to this file, whose suffix says which: .json for programs, .html a page in "
        "one file (needs the extra 'report'), .md a summary; may be repeated",
    ),
    _shown(
        "annotations",
        _WHEN,
        "GitHub annotations of violations, and a job summary where $GITHUB_STEP_SUMMARY is set: "
        "auto (in GitHub Actions; default), yes or no",
    ),
    Option(
        "results",
        Value(parsers.text, "DIR"),
        "judge the folder of results that dstfuzz campaign or dstfuzz merge wrote, in the place of "
        "a run: gate, reports and regressions as of a run, and the tracker is asked nothing",
        scopes=("path", "session", "place"),
    ),
    Option(
        "redact",
        SWITCH,
        "write x for every character of what was said and of slot values, wherever it is shown",
    ),
    _shown(
        "remember",
        SWITCH,
        "add the violations to the regressions, which later runs replay before anything else",
    ),
    _written(
        "regressions",
        _PATH,
        "folder of remembered violations (default: .dstfuzz/regressions in pytest's root folder)",
    ),
    _shown("replay", Value(parsers.text, "ID"), "only ask again for this remembered violation"),
)
#: Every option, by part and in the order in which help shows them.
OPTIONS: tuple[Option, ...] = tuple(
    item._replace(part=part)
    for part, items in zip(
        PARTS,
        (_TRACKER, _DATA, _VARIANT, REPLY_OPTIONS, _BUDGET, _OUTPUT, GATE_OPTIONS),
        strict=True,
    )
    for item in items
)

BY_NAME: dict[str, Option] = {item.name: item for item in OPTIONS}
OPTION_NAMES: tuple[str, ...] = tuple(BY_NAME)


def names_of(scope: Scope) -> tuple[str, ...]:
    """Return the names of the options of a scope, in the order of the table."""
    return tuple(item.name for item in OPTIONS if scope in item.scopes)


MARKER_NAMES: tuple[str, ...] = names_of("test")


def option(name: str) -> Option:
    """Return the option called ``name``, as settings spell it, or raise with the nearest one."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise unknown_name("option", name, OPTION_NAMES) from None


def parse_option(name: str, value: str, shown_as: str) -> Any:
    """Parse the text of one option; messages call the option as the user spelled it."""
    try:
        return option(name).value.parse(value)
    except UserError as error:
        raise UserError(f"{shown_as}: {error}") from None
    except ValueError as error:
        raise UserError(f"{shown_as}: {value!r} {error}") from None
