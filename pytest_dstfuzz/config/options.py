"""The option table that pytest and the ``dstfuzz`` command share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pytest_dstfuzz.config import parsers
from pytest_dstfuzz.config.parsers import (
    PARTS,
    QUOTES,
    SWITCH,
    Option,
    Scope,
    Value,
    choice,
    count,
    entries,
    once,
    prices,
    text,
)
from pytest_dstfuzz.config.secret import Address, masked
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.files import read_table
from pytest_dstfuzz.transformations import ALL, EXTRA, TRANSFORMATIONS


class Profile(NamedTuple):
    """The conditions for a variant, in addition to the edit rates."""

    name: str
    #: Whether the words that carry the meaning are locked.
    locks: bool
    #: Whether a variant may contain only edits to which the noise model gives a probability.
    noise: bool
    #: Default transformations and operators, in the form that `select` takes.
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


ARGUMENTS_TABLE: Final = "[tool.dstfuzz.arguments]"
#: Whether the order of calls counts.
CALL_ORDERS: Final = ("any", "exact")

_call = partial(Option, scopes=("test",))


def argument_rule(value: str) -> str:
    """Parse ``ARGUMENT=RULE``. The result has no blanks around the two parts."""
    pattern, equals, rule = (part.strip() for part in value.partition("="))
    if not (pattern and equals and rule):
        raise ValueError(
            "is no rule of an argument or a slot: write ARGUMENT=RULE, such as "
            "book_table.people=number"
        )
    return f"{pattern}={rule}"


def argument_rules(value: str) -> tuple[str, ...]:
    """Parse rules of arguments, one per line."""
    return tuple(argument_rule(line) for line in value.split("\n") if line.strip())


def rule_lines(given: object, where: str) -> list[str]:
    """Return rules from a mapping as lines of the option.

    Args:
        given: argument or pattern -> rule, which is a name or a list of admissible values. Keys of
            a nested table are appended after a dot.
        where: prefix of error messages.

    Raises:
        UserError: it is not a mapping, or a rule has the wrong type.
    """
    if not isinstance(given, Mapping):
        raise UserError(
            f'{where} must be a table of arguments and rules, such as {{"book_table.people": '
            '"number"}'
        )
    return [f"{pattern}={rule}" for pattern, rule in _flat(given, "", where)]


def _flat(given: Mapping[Any, Any], before: str, where: str) -> Iterator[tuple[str, str]]:
    for name, rule in given.items():
        pattern = f"{before}{name}"
        if isinstance(rule, Mapping):
            yield from _flat(rule, f"{pattern}.", where)
        elif isinstance(rule, str) and "\n" not in rule:
            yield pattern, rule
        elif isinstance(rule, Sequence) and not isinstance(rule, str):
            try:
                yield pattern, json.dumps(list(rule), ensure_ascii=False)
            except (TypeError, ValueError):
                raise UserError(
                    f"{where}: {pattern}: admissible values must be JSON values, not {rule!r}"
                ) from None
        else:
            named = getattr(rule, "__name__", None)
            hint = f': name it as "module:{named}"' if callable(rule) and named else ""
            raise UserError(
                f"{where}: {pattern} must be a rule by its name, or a list of admissible values, "
                f"not {rule!r}{hint}"
            )


def table_rules(path: Path) -> list[str]:
    """Return the rules in the table ``[tool.dstfuzz.arguments]`` as lines of the option."""
    return rule_lines(read_table(path, ARGUMENTS_TABLE), f"{path}: {ARGUMENTS_TABLE}")


CALL_OPTIONS: tuple[Option, ...] = (
    _call(
        "call_order",
        Value(choice("order of calls", CALL_ORDERS), "ORDER"),
        "whether the order counts in which an assistant calls tools: any (default) or exact",
    ),
    _call(
        "arguments",
        Value(argument_rules, "ARGUMENT=RULE", str, "\n"),
        "when two values of a tool's argument, or of a slot of a belief state, are the same, such "
        "as book_table.people=number, '*.id=ignore' or restaurant-time=instant; may be repeated, "
        "the last that fits counts. Rules: auto (default), exact, ignore, number, case, instant, "
        "subset, superset, unordered, text, a JSON list of admissible values, or module:function, "
        "a function of yours of two values",
    ),
)


_RATE: Final = Value(parsers.parse_limit, "RATE", float)

_session = partial(Option, scopes=("session",))
_of_baseline = partial(Option, scopes=("session", "baseline"))

#: Options for the conditions under which a run fails.
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
        Value(parsers.parse_per_1000, "N", float),
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
        Value(parsers.parse_points, "POINTS", float),
        "gate: by how much the failure rate may rise over the baseline's, such as 2pp (default: "
        "2pp)",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_expected_rise",
        Value(parsers.parse_per_1000, "N", float),
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


TABLE: Final = "[tool.dstfuzz.tracker]"

#: Address schemes without ``+http(s)``. ``""`` is the contract of this package.
SERVICES = ("", "rasa", "openai", "anthropic")
#: Schemes of plain models.
MODELS = ("openai", "anthropic")
#: Roles for the words of the system before the first user message.
OPENING_ROLES = ("assistant", "system")

_service = partial(Option, scopes=("place",), of="tracker", kinds=SERVICES)

#: Keys of trackers that are loaded in this process.
WEIGHT_KEYS: tuple[Option, ...] = (
    Option(
        "checkpoint",
        Value(parsers.text, "PATH"),
        "weights of the tracker instead of the shipped ones",
        scopes=("path", "place", "ini"),
        of="tracker",
    ),
    Option(
        "device",
        Value(parsers.text, "NAME"),
        "device of the tracker: cpu, cuda, cuda:1, ... (default: cpu)",
        scopes=("place", "ini"),
        of="tracker",
    ),
)
TRACKER_KEYS: tuple[Option, ...] = (
    _service(
        "timeout",
        parsers.SECONDS,
        "seconds that one attempt to ask a service may take (default: 30)",
    ),
    _service(
        "retries",
        parsers.count(0, 100),
        "more attempts where a service is busy, fails or does not answer (default: 4)",
    ),
    _service(
        "dead_after",
        parsers.count(0, 1_000_000),
        "after so many requests in a row that nobody answers, for all their attempts, the service "
        "is taken for dead: nothing more is asked, exit status 6 (default: 20; 0: never)",
    ),
    _service(
        "concurrency",
        parsers.count(1, 1024),
        "requests to a service in flight at once, and calls of an async function (default: 16)",
    ),
    _service(
        "rate_limit",
        Value(parsers.positive("requests a second"), "N", float),
        "at most so many requests to a service a second (default: no limit)",
    ),
    _service(
        "header",
        Value(parsers.headers, "'NAME: VALUE'", separator="\n"),
        "send this header to a service; $NAME in the value is taken from the environment; may be "
        "repeated (a list in the table). DSTFUZZ_TOKEN in the environment is sent as a "
        "bearer token",
    ),
    Option(
        "opening",
        Value(parsers.choice("role", OPENING_ROLES), "ROLE"),
        "for --dst-outcome=reply or tool-calls: role of what the system says before the user, "
        "assistant (default) or system, where the user has to speak first",
        of="tracker",
        kinds=SERVICES,
    ),
    Option(
        "slot_map",
        Value(parsers.text, "PATH"),
        "which slot of a Rasa bot is which slot of the data: a TOML or JSON file (default: those "
        "with the same name)",
        scopes=("path", "place"),
        of="tracker",
        kinds=("rasa",),
    ),
    Option(
        "service_model",
        Value(parsers.text, "NAME"),
        "name of the chat model (default: the only one that the service lists)",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "prompt",
        Value(parsers.text, "PATH"),
        "Jinja2 template of what the chat model is told (default: a shipped one); with "
        "--dst-outcome=reply or tool-calls a text, its system message (default: none)",
        scopes=("path", "place"),
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "prices",
        Value(parsers.prices, "IN,OUT", float, separator=","),
        "what a million tokens of prompts and of answers cost, for the report and max-cost",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "stream",
        parsers.SWITCH,
        "whether the chat model's answers are to come in pieces, as programs for people ask for "
        "them (default: no)",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "tool_choice",
        Value(parsers.text, "HOW"),
        "for --dst-outcome=tool-calls: how the chat model is to choose among the tools: auto, "
        "required (it calls one at least), none, or the name of a tool (default: nothing is said)",
        of="tracker",
        kinds=MODELS,
    ),
)


KEYS: tuple[str, ...] = tuple(item.name for item in (*WEIGHT_KEYS, *TRACKER_KEYS))
#: Options about a service that an experiment accepts, in addition to its name.
ADAPTER: tuple[str, ...] = ("tracker", *(item.name for item in TRACKER_KEYS))


def keys_of(kinds: tuple[str, ...]) -> str:
    """Return the keys of some address schemes as users write them, with commas between."""
    return ", ".join(item.flag for item in TRACKER_KEYS if item.kinds == kinds)


def table_keys(path: Path) -> dict[str, str]:
    """Return the keys in the table ``[tool.dstfuzz.tracker]`` with their values as text."""
    table = read_table(path, TABLE)
    if not isinstance(table, Mapping):
        raise UserError(f"{path}: {TABLE} must be a table")
    known = {item.name: item for item in (*WEIGHT_KEYS, *TRACKER_KEYS)}
    found: dict[str, str] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        # A factory's own parameter may be a boolean, so accept the values of a switch too.
        text = known.get(name, Option(name, parsers.SWITCH, "")).text_of(value)
        if text is None:
            several = name in known and known[name].value.separator
            how = "a list of texts" if several else "a text or a number"
            raise UserError(f"{path}: {TABLE}: {key} must be {how}")
        found[name] = text
    return found


STATE: Final = "state"
REPLY: Final = "reply"
TOOL_CALLS: Final = "tool-calls"
#: The comparison of cited ids.
IDS: Final = "ids"
#: The comparison that asks a chat model.
JUDGE: Final = "judge"
#: The kinds of answer.
OUTCOMES: Final = (STATE, REPLY, TOOL_CALLS)
#: The possible references for replies in other contexts.
REFERENCES: Final = ("clean", "answer")
#: Options for assistants that call tools.
_OF_CALLS: Final = ("outcome", *(item.name for item in CALL_OPTIONS))


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """The tested part of an answer, and the comparison of replies."""

    outcome: Literal["state", "reply", "tool-calls"] = STATE
    #: Names of comparisons with commas between them, or ``None`` for the default of the outcome.
    compare: str | None = None
    #: Largest distance of equivalent replies, from 0 to 2, or ``None`` for the comparison's
    #: default.
    threshold: float | None = None
    #: Regular expression of cited ids. ``None`` means ``[3]``, ``#17`` and addresses.
    cited: str | None = None
    #: Regular expressions of replies that are no answer, in addition to the shipped ones.
    fallback: tuple[str, ...] = ()
    #: Address of the chat model that judges replies, with its name and prices there.
    judge: Address | None = None
    judge_model: str | None = None
    judge_prices: tuple[float, float] | None = None
    #: Most calls of the judge, or ``None`` for no limit.
    judge_calls: int | None = None
    #: The origin of the replies in the history of a question.
    history: Literal["recorded", "own"] = "recorded"
    #: Perturbations of the questions of a dialogue, by name.
    perturbations: tuple[str, ...] = ("DRS", "DRR", "DRD", "DSR", "DSD")
    #: Names of checks that decide whether a question has an equivalent context.
    context_checks: tuple[str, ...] = ("needed",)
    #: Reference for replies in other contexts: the clean reply, or the recorded answer.
    reference: Literal["clean", "answer"] = "clean"
    #: Whether the order of tool calls counts.
    call_order: Literal["any", "exact"] = "any"
    #: Rules of tool arguments and of slots, ``book_table.people=number``. The last match applies.
    arguments: tuple[str, ...] = ()


def outcome(value: str) -> str:
    """Parse the tested kind of answer."""
    if "," in value:
        raise ValueError(f"names several, and a run tests one: {', '.join(OUTCOMES)}")
    if value not in OUTCOMES:
        raise unknown_name("outcome", value, OUTCOMES)
    return value


def comparisons(value: str) -> str:
    """Parse names of comparisons with commas between them. The result has no blanks."""
    found = entries(value)
    if not found:
        raise ValueError("names nothing: leave the option out for the default")
    return once(found)


def threshold(value: str) -> float:
    """Parse a distance."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError("is no number: 0 (the same) to 2") from None
    if not 0 <= number <= 2:
        raise ValueError("is no distance: 0 (the same) to 2")
    return number


def judge(value: str) -> Address:
    """Parse the address of a chat model."""
    # The message does not repeat the value, which may contain credentials.
    if re.match(r"openai\+https?://[^/]", value) is None:
        raise UserError(
            "--dst-compare=judge:ADDRESS is no address of a chat model: openai+http://... or openai+https://..."
        )
    return Address(value)


def expression(value: str) -> str:
    """Parse a regular expression, with or without slashes around it."""
    bare = value[1:-1] if len(value) > 2 and value[0] == value[-1] == "/" else value
    try:
        compiled = re.compile(bare)
    except re.error as error:
        raise ValueError(
            f"is no regular expression: {error} (beside other names {QUOTES})"
        ) from None
    if compiled.search("") is not None:
        raise ValueError("matches every reply: it matches nothing at all")
    return bare


def expressions(value: str) -> tuple[str, ...]:
    """Parse regular expressions, one per line."""
    return tuple(expression(line.strip()) for line in value.split("\n") if line.strip())


#: The origins of the earlier replies that a bot is shown.
HISTORIES: Final = ("recorded", "own")


def names(value: str) -> tuple[str, ...]:
    """Parse names with commas between them."""
    return tuple(comparisons(value).split(","))


#: The relations of two papers, with the names that stand for all relations of a paper.
_MORTAR: Final = ("mortar", "same-context", "lost-context", "contexts-agree", "contexts-differ")
_METAL: Final = ("metal", "metal-synonyms", "metal-word", "metal-typos", "metal-leet")

_reply = partial(Option, scopes=("test",))
_mortar = partial(Option, scopes=("ini",), of="relation", kinds=_MORTAR)

REPLY_OPTIONS: tuple[Option, ...] = (
    _reply(
        "outcome",
        Value(outcome, "WHAT"),
        "what of an answer is tested: state (slots and their values; default), reply (the text "
        "that a bot answers) or tool-calls (the tools that an assistant calls, and the arguments)",
    ),
    _reply(
        "compare",
        Value(comparisons, "NAME,...", separator=","),
        "when two replies say the same, all that are named agreeing: exact, numbers, names, "
        "entities, polarity, ids, embedding, judge, one of a package or "
        "of your suite, or module:function, a function of yours of two texts",
    ),
    Option(
        "threshold",
        Value(threshold, "DISTANCE", float),
        "distance up to which two replies say the same, from 0 (the same) to 2, where the "
        "comparison has distances",
        scopes=("test", "ini"),
        of="compare",
        key="threshold",
    ),
    Option(
        "cited",
        Value(expression, "REGEX"),
        "what is an id that a reply cites (default: [3], #17, addresses)",
        scopes=("test", "ini"),
        of="compare",
        kinds=(IDS,),
        key="cited",
    ),
    Option(
        "fallback",
        Value(expressions, "REGEX", str, "\n"),
        "what else a bot says instead of an answer, beside I do not know and its like; may be "
        "given several times",
        scopes=("test", "ini"),
    ),
    Option(
        "judge",
        Value(judge, "ADDRESS"),
        "the chat model that says whether two replies say the same, at an OpenAI-compatible "
        "address, openai+http://... or openai+https://...; --dst-compare=judge:ADDRESS goes before "
        "it",
        scopes=("ini",),
        of="compare",
        kinds=(JUDGE,),
    ),
    Option(
        "judge_model",
        Value(text, "NAME"),
        "name of the judge's model (default: the only one that its service lists)",
        scopes=("ini",),
        of="compare",
        kinds=(JUDGE,),
        key="model",
    ),
    Option(
        "judge_prices",
        Value(prices, "IN,OUT", float, separator=","),
        "what a million tokens of the judge's prompts and of its answers cost, for the report",
        scopes=("ini",),
        of="compare",
        kinds=(JUDGE,),
        key="prices",
    ),
    Option(
        "judge_calls",
        count(2, 1_000_000_000),
        "at most so many calls of the judge, two for each pair of replies; what is beyond is no "
        "violation (default: no limit)",
        scopes=("ini",),
        of="compare",
        kinds=(JUDGE,),
        key="calls",
    ),
    Option(
        "history",
        Value(choice("history", HISTORIES), "WHOSE"),
        "what stands before a question: recorded, what the data has (default), or own, what the "
        "bot or assistant itself said: it is then asked utterance by utterance from the start of "
        "each dialogue. Of tool calls these are full rollouts: calls are answered from the "
        "recording, and the end states are compared",
    ),
    _mortar(
        "perturbations",
        Value(names, "NAME+...", str, ","),
        "how the relations of mortar order the questions of a dialogue: DRS (another order), DRR "
        "(some left out), DRD (some twice), DSR and DSD (these in another order), or your own "
        "(default: all five)",
        key="perturbations",
    ),
    _mortar(
        "context_checks",
        Value(names, "NAME+...", str, ","),
        "who says whether a question in another order has an equivalent context: needed "
        "(default), semantic, ontology, story, mortar (these three), or your own",
        key="context-checks",
    ),
    _mortar(
        "reference",
        Value(choice("reference", REFERENCES), "WHAT"),
        "what the relations of mortar and metal compare replies with: clean, the reply to the "
        "clean dialogue (default), or answer, the recorded answer",
        kinds=(*_MORTAR, *_METAL),
        key="reference",
    ),
    *CALL_OPTIONS,
)
#: Name of an option -> its spelling in messages.
_SPELLED: Final = {item.name: item.spelled for item in REPLY_OPTIONS}


def refuse_without_replies(settings: ReplySettings) -> None:
    """Reject options that have no effect on the tested kind of answer."""
    plain = ReplySettings()
    no_ids = IDS not in (settings.compare or "").split(",")
    if settings.outcome == REPLY and settings.cited is not None and no_ids:
        raise UserError(
            f"dst_cited says what an id is for the comparison {IDS}: add --dst-compare={IDS}, "
            "alone or in a list, or leave it out"
        )
    for item in fields(ReplySettings):
        outcome, whose = REPLY, "bots that reply"
        if item.name in _OF_CALLS:
            outcome, whose = TOOL_CALLS, "assistants that call tools"
        if item.name == "outcome" or settings.outcome == outcome:
            continue
        if item.name == "history" and settings.outcome == TOOL_CALLS:
            continue
        if item.name == "arguments" and settings.outcome == STATE:
            continue  # Slots of belief states have the same rules.
        if getattr(settings, item.name) != getattr(plain, item.name):
            raise UserError(
                f"{_SPELLED[item.name]} is for {whose}: add "
                f"--dst-outcome={outcome}, or leave it out"
            )


def refuse_without_judge(settings: ReplySettings, given: Mapping[str, object]) -> None:
    """Reject options of a judge if no comparison asks a judge."""
    if given.get(JUDGE) is not None and JUDGE not in (settings.compare or "").split(","):
        raise UserError(
            f"dst_judge is asked where replies are compared by it: add --dst-compare={JUDGE}, "
            "alone or in a list such as numbers,judge, or leave it out"
        )
    for name in ("judge_model", "judge_prices", "judge_calls"):
        if given.get(name) is not None and settings.judge is None:
            raise UserError(
                f"{_SPELLED[name]} is about a judge, and none is named: add "
                "--dst-compare=judge:openai+http://..., or leave it out"
            )


_PATH = Value(parsers.text, "PATH")
_NAME = Value(parsers.text, "NAME")
_WHEN = Value(parsers.choice("policy", parsers.WHEN), "WHEN")
_NAMES = Value(parsers.names, "NAME,...", separator=",")

_place = partial(Option, scopes=("place",))
_read = partial(Option, scopes=("path", "place"))
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
        Value(parsers.parse_error_rates, "RATE[,RATE]|no", float, separator=","),
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
        Value(parsers.parse_slip_rate, "RATE", float),
        "slips per word that people make, such as 2%: what the probabilities of variants are "
        "reckoned with (default: that of the noise models)",
    ),
    _decides(
        "max_edit_rate",
        Value(parsers.parse_rate, "R", float),
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
#: Every option, by part and in the order of the help.
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
    """Return the names of the options with a scope, in the order of the table."""
    return tuple(item.name for item in OPTIONS if scope in item.scopes)


MARKER_NAMES: tuple[str, ...] = names_of("test")


def option(name: str) -> Option:
    """Return the option called ``name``, or raise a `UserError` that suggests a similar name."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise unknown_name("option", name, OPTION_NAMES) from None


def parse_option(name: str, value: str, shown_as: str) -> Any:
    """Parse the text of one option. Errors begin with ``shown_as``, the user's spelling."""
    try:
        return option(name).value.parse(value)
    except UserError as error:
        raise UserError(f"{shown_as}: {error}") from None
    except ValueError as error:
        raise UserError(f"{shown_as}: {masked(value)!r} {error}") from None
