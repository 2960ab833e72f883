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
from pytest_dstfuzz.config.secret import (
    JUDGE_TOKEN_VARIABLE,
    TOKEN_VARIABLE,
    Address,
)
from pytest_dstfuzz.errors import UserError, mask_credentials, nearest, unknown_name
from pytest_dstfuzz.files import read_table, read_text
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
            "is not a rule for an argument or a slot: write ARGUMENT=RULE, such as "
            "book_table.people=number"
        )
    return f"{pattern}={rule}"


def argument_rules(value: str) -> tuple[str, ...]:
    """Parse rules of arguments, one per line."""
    return tuple(argument_rule(line) for line in value.split("\n") if line.strip())


def rule_lines(given: object, where: str) -> list[str]:
    """Return the rules in a mapping as texts ``ARGUMENT=RULE``.

    Args:
        given: argument or pattern -> rule, which is a name or a list of admissible values. Keys of
            a nested table are appended after a dot.
        where: prefix of error messages.

    Raises:
        UserError: ``given`` is not a mapping, or a rule has the wrong type.
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
                    f"{where}: {pattern}: a list of admissible values may contain only JSON values"
                ) from None
        else:
            named = getattr(rule, "__name__", None)
            hint = f': name it as "module:{named}"' if callable(rule) and named else ""
            raise UserError(
                f"{where}: {pattern} must be the name of a rule, or a list of admissible values, "
                f"not {rule!r}{hint}"
            )


def table_rules(path: Path) -> list[str]:
    """Return the rules in the table ``[tool.dstfuzz.arguments]`` as texts ``ARGUMENT=RULE``."""
    return rule_lines(read_table(path, ARGUMENTS_TABLE), f"{path}: {ARGUMENTS_TABLE}")


SYNONYMS_TABLE: Final = "[tool.dstfuzz.synonyms]"


def _phrase(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


def table_synonyms(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the pairs of phrases in the table ``[tool.dstfuzz.synonyms]``.

    Raises:
        UserError: the table does not have a phrase or a list of phrases for each phrase.
    """
    table, where = read_table(path, SYNONYMS_TABLE), f"{path}: {SYNONYMS_TABLE}"
    if not isinstance(table, Mapping):
        raise UserError(f'{where} must be a table of words, such as fix = ["repair", "mend"]')
    found: list[tuple[str, str]] = []
    for name, given in table.items():
        others = [given] if isinstance(given, str) else given
        if not isinstance(others, list) or not all(isinstance(one, str) for one in others):
            raise UserError(f"{where}: {name} must be a text or a list of texts, not {given!r}")
        pairs = [(_phrase(name), _phrase(one)) for one in others]
        if odd := next((pair for pair in pairs if not all(pair) or pair[0] == pair[1]), None):
            raise UserError(
                f"{where}: {name} = {odd[1]!r} is no synonym: write two different words or phrases"
            )
        found += pairs
    return tuple(found)


CALL_OPTIONS: tuple[Option, ...] = (
    _call(
        "call_order",
        Value(choice("order of calls", CALL_ORDERS), "ORDER"),
        "whether the order of an assistant's tool calls matters: any (default; it does not) "
        "or exact",
    ),
    _call(
        "arguments",
        Value(argument_rules, "ARGUMENT=RULE", str, "\n"),
        "rule that decides whether two values of a tool's argument, or of a slot in a belief "
        "state, are equal, such as book_table.people=number, '*.id=ignore' or "
        "restaurant-time=instant. May be repeated; the last rule that matches applies. RULE "
        "is auto (default), exact, ignore, number, case, instant, subset, superset, "
        "unordered, text, a JSON list of admissible values, or module:function, your own "
        "function of two values",
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
        "fail the run if the failure rate is above RATE, such as 5% (implies fail-on=gate)",
    ),
    Option(
        "min_accuracy",
        _RATE,
        "fail the run if the share of clean answers that agree with the labels is below RATE, "
        "such as 60%",
        scopes=("session", "ini"),
    ),
    Option(
        "max_estimated_failures",
        Value(parsers.parse_per_1000, "N", float),
        "fail the run if more than N of 1,000 user turns are estimated to fail, such as 5 or 7.5 "
        "(implies fail-on=gate; needs --dst-search=noise)",
        scopes=("session", "ini"),
    ),
    Option(
        "baseline",
        Value(parsers.text, "PATH"),
        "compare the run with the outcomes of an earlier build in this file, and fail if it "
        "got worse (implies fail-on=gate)",
        scopes=("path", "written", "session", "place"),
    ),
    _of_baseline(
        "update_baseline",
        SWITCH,
        "write the outcomes of this run to the file of --dst-baseline",
    ),
    Option(
        "max_regression",
        Value(parsers.parse_points, "POINTS", float),
        "fail the run if the failure rate is significantly higher than the baseline's, by "
        "more than POINTS, such as 2pp (percentage points; default: 2pp)",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_estimated_rise",
        Value(parsers.parse_per_1000, "N", float),
        "fail the run if the estimated failures in 1,000 user turns rise by more than N over "
        "the baseline's, such as 2 (needs --dst-search=noise)",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_new_weaknesses",
        parsers.count(0, 1000),
        "fail the run if it has more than N weaknesses (such as 0) that the baseline does not have",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_new_violations",
        parsers.count(0, 1000),
        "fail the run if more than N variants (such as 0) break now but held in the baseline "
        "(default: 0 if the bot always gives the same answer to the same dialogue, otherwise no "
        "limit)",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "max_clean_drift",
        _RATE,
        "maximum share of turns with another clean answer than in the baseline, such as 2% "
        "(default: 0). Above it, the run fails with exit status 8, unless the labels show that "
        "the answers did not get worse",
        scopes=("session", "baseline", "ini"),
    ),
    Option(
        "inconclusive",
        Value(parsers.choice("policy", parsers.INCONCLUSIVE), "WHAT"),
        "result if the comparison with the baseline is inconclusive: warn (default), fail (exit "
        "status 7) or allow. With warn, the run still fails if nothing could be compared (exit "
        "status 9). With allow, it never fails for this reason",
        scopes=("session", "ini"),
    ),
    _session(
        "fail_on",
        Value(parsers.choice("failure policy", parsers.FAIL_ON), "WHAT"),
        "failure policy: violation (each violation fails its test; default) or gate (only the "
        "rates and limits of the whole run decide)",
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
#: How requests are sent, which decides no answer.
_sending = partial(Option, scopes=("place", "neutral"), of="tracker", kinds=SERVICES)

#: Keys of trackers that are loaded in this process.
WEIGHT_KEYS: tuple[Option, ...] = (
    Option(
        "checkpoint",
        Value(parsers.text, "PATH"),
        "file with the weights of the tracker (default: the shipped weights)",
        scopes=("path", "place", "ini"),
        of="tracker",
    ),
    Option(
        "device",
        Value(parsers.text, "NAME"),
        "device that the tracker runs on: cpu, cuda, cuda:1, ... (default: cpu)",
        scopes=("place", "ini"),
        of="tracker",
    ),
)
TRACKER_KEYS: tuple[Option, ...] = (
    _sending(
        "timeout",
        parsers.SECONDS,
        "maximum seconds for each attempt of a request to a service (default: 30)",
    ),
    _sending(
        "retries",
        parsers.count(0, 100),
        "maximum number of retries if a service is busy, fails or does not answer (default: 4)",
    ),
    _sending(
        "dead_after",
        parsers.count(0, 1_000_000),
        "number of consecutive requests without an answer, after all retries, until the "
        "service counts as down: the run then sends no more requests and ends with exit "
        "status 6 (default: 20; 0: never)",
    ),
    _sending(
        "concurrency",
        parsers.count(1, 1024),
        "maximum number of simultaneous requests to a service, or of calls of an async "
        "function (default: 16)",
    ),
    _sending(
        "rate_limit",
        Value(parsers.positive("requests a second"), "requests per second", float),
        "maximum number of requests to a service per second (default: no limit)",
    ),
    _service(
        "header",
        Value(parsers.headers, "'NAME: VALUE'", separator="\n"),
        "HTTP header of each request to a service; $NAME in the value is replaced from the "
        "environment; may be repeated (a list in the table). The variable DSTFUZZ_TOKEN in "
        "the environment is sent as a bearer token",
    ),
    Option(
        "opening",
        Value(parsers.choice("role", OPENING_ROLES), "ROLE"),
        "for --dst-outcome=reply or tool-calls: role of the system's words before the first "
        "user message: assistant (default), or system if the service requires the user to "
        "speak first",
        of="tracker",
        kinds=SERVICES,
    ),
    Option(
        "request",
        Value(parsers.text, "TEXT"),
        "for a service with its own JSON and sessions: the JSON of a message, with the "
        "placeholders $text and $session. A path comes before it if the address needs one. Needs "
        "response, too",
        scopes=("place",),
        of="tracker",
        kinds=("",),
    ),
    Option(
        "response",
        Value(parsers.text, "POINTERS"),
        "for a service with its own JSON: JSON pointer to the slots or to the reply in its "
        "answer, or a JSON object with one pointer for each slot",
        scopes=("place",),
        of="tracker",
        kinds=("",),
    ),
    Option(
        "session",
        Value(parsers.text, "POINTER"),
        "for a service that makes the ids of its sessions: JSON pointer to the id in its answers. "
        "Later requests have this id in place of $session",
        scopes=("place",),
        of="tracker",
        kinds=("",),
    ),
    Option(
        "start",
        Value(parsers.text, "TEXT"),
        "for a service that needs a request before the first message: its path and JSON, as in "
        "the key request",
        scopes=("place",),
        of="tracker",
        kinds=("",),
    ),
    Option(
        "slot_map",
        Value(parsers.text, "PATH"),
        "TOML or JSON file that maps the slots of a Rasa bot to the slots of the data "
        "(default: slots with the same name)",
        scopes=("path", "place"),
        of="tracker",
        kinds=("rasa",),
    ),
    Option(
        "service_model",
        Value(parsers.text, "NAME"),
        "name of the chat model (default: the only model that the service lists)",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "prompt",
        Value(parsers.text, "PATH"),
        "file with a Jinja2 template of the chat model's prompt (default: a shipped "
        "template); with --dst-outcome=reply or tool-calls, a file with the text of its "
        "system message (default: none)",
        scopes=("path", "place"),
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "prices",
        Value(parsers.prices, "IN,OUT", float, separator=","),
        "prices of a million tokens of prompts and of answers, for the report and for max-cost",
        scopes=("neutral",),
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "stream",
        parsers.SWITCH,
        "whether to request streamed answers from the chat model, as chat applications do "
        "(default: no)",
        of="tracker",
        kinds=MODELS,
    ),
    Option(
        "tool_choice",
        Value(parsers.text, "HOW"),
        "for --dst-outcome=tool-calls: tool choice that is sent to the chat model: auto, "
        "required (at least one call), none, or the name of a tool (default: not sent)",
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


#: The tables of this package in ``pyproject.toml``.
TABLES: Final = tuple(
    f"[tool.dstfuzz.{name}]" for name in ("arguments", "gates", "synonyms", "tracker")
)

#: Least similarity of a misspelled name of the package. That of ``fuzz`` is 0.73.
_SAME_NAME: Final = 0.8


def check_tables(path: Path) -> None:
    """Raise an error for an unknown table of this package in a ``pyproject.toml``.

    A table with a misspelled name of the package counts too: its limits would not apply.
    """
    for name in _list_tables(read_table(path, "[]")):
        if name != "tool.dstfuzz" and _is_ours(name):
            raise UserError(f"{path}: unknown table [{name}]. Did you mean [tool.dstfuzz]?")
    names = [name.strip("[]").rpartition(".")[2] for name in TABLES]
    found = read_table(path, "[tool.dstfuzz]")
    for name in found if isinstance(found, Mapping) else ():
        if name not in names:
            raise UserError(f"{path}: {unknown_name('table of [tool.dstfuzz]', name, names)}")


def check_sections(path: Path) -> None:
    """Raise an error for a table of this package in another file with settings of pytest."""
    names = (
        _list_tables(read_table(path, "[]"))
        if path.suffix == ".toml"
        else re.findall(r"^\[([^\]\n]+)\]", read_text(path), re.MULTILINE)
    )
    for name in filter(_is_ours, names):
        raise UserError(
            f"{path}: the table [{name}] has no effect in this file: write it as [tool.dstfuzz] in "
            "pyproject.toml"
        )


def _list_tables(whole: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tables of a file that may be meant for this package."""
    for start in ("", "tool", "pytest", "tool.pytest", "tool.pytest.ini_options"):
        table: object = whole
        for part in filter(None, start.split(".")):
            table = table.get(part) if isinstance(table, Mapping) else None
        for name, value in table.items() if isinstance(table, Mapping) else ():
            if start in ("", "tool") or isinstance(value, Mapping):
                yield f"{start}.{name}" if start else name


def _is_ours(table: str) -> bool:
    """Return whether the name of a table equals or resembles the name of this package."""
    own = re.sub(r"^(tool[.:])?(pytest[.:])?(ini_options[.:])?", "", table.lower())
    plain = re.sub(r"^pytest|[^a-z]", "", re.split(r"[.:]", own)[0])
    # The options, fixtures and the marker are called `dst`.
    return plain == "dst" or nearest(plain, ["dstfuzz"], cutoff=_SAME_NAME) is not None


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
        raise ValueError(f"names several outcomes, but a run tests one: {', '.join(OUTCOMES)}")
    if value not in OUTCOMES:
        raise unknown_name("outcome", value, OUTCOMES)
    return value


def comparisons(value: str) -> str:
    """Parse names of comparisons, separated by commas. The result has no blanks."""
    found = entries(value)
    if not found:
        raise ValueError("contains no name: leave the option out to use the default")
    return once(found)


def threshold(value: str) -> float:
    """Parse a distance."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError("is not a number: write a distance from 0 (equal) to 2") from None
    if not 0 <= number <= 2:
        raise ValueError("is out of range: write a distance from 0 (equal) to 2")
    return number


def judge(value: str) -> Address:
    """Parse the address of a chat model."""
    # The message does not repeat the value, which may contain credentials.
    if re.match(r"openai\+https?://[^/]", value) is None:
        raise UserError(
            "--dst-compare=judge:ADDRESS is not the address of a chat model: write "
            "openai+http://... or openai+https://..."
        )
    return Address(value)


def expression(value: str) -> str:
    """Parse a regular expression, with or without slashes around it."""
    bare = value[1:-1] if len(value) > 2 and value[0] == value[-1] == "/" else value
    try:
        compiled = re.compile(bare)
    except re.error as error:
        raise ValueError(
            f"is not a regular expression: {error} (if the list has other names, {QUOTES})"
        ) from None
    if compiled.search("") is not None:
        raise ValueError("matches the empty text, and so almost any reply")
    return bare


#: Replies that no expression for fallback replies may match all of.
_ANY_REPLIES: Final = ("Yes.", "7", "We open at nine.", "It is free")


def expressions(value: str) -> tuple[str, ...]:
    """Parse regular expressions for fallback replies, one per line."""
    found = tuple(expression(line.strip()) for line in value.split("\n") if line.strip())
    for one in found:
        if all(re.search(one, reply, re.IGNORECASE) for reply in _ANY_REPLIES):
            raise ValueError(f"has {one!r}, which matches almost any reply, such as 'Yes.' and '7'")
    return found


#: The origins of the earlier replies that a bot is shown.
HISTORIES: Final = ("recorded", "own")


def names(value: str) -> tuple[str, ...]:
    """Parse names, separated by commas."""
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
        "part of the answers to test: state (slots and their values; default), reply (the "
        "text of a bot's reply) or tool-calls (the tools that an assistant calls, with the "
        "arguments)",
    ),
    _reply(
        "compare",
        Value(comparisons, "NAME,...", separator=","),
        "comparisons that decide whether two replies mean the same; all must agree: "
        "exact, numbers, names, entities, polarity, ids, embedding, judge, a comparison of a "
        "package or of your suite, or module:function, your own function of two texts "
        "(default: numbers,entities,polarity,embedding)",
    ),
    Option(
        "threshold",
        Value(threshold, "DISTANCE", float),
        "maximum distance of two replies that mean the same, from 0 (equal) to 2, if the "
        "comparison computes distances",
        scopes=("test", "ini"),
        of="compare",
        key="threshold",
    ),
    Option(
        "cited",
        Value(expression, "REGEX"),
        "regular expression of the ids that a reply cites (default: [3], #17 and addresses)",
        scopes=("test", "ini"),
        of="compare",
        kinds=(IDS,),
        key="cited",
    ),
    Option(
        "fallback",
        Value(expressions, "REGEX", str, "\n"),
        "regular expression of replies that are not an answer, in addition to the shipped "
        "ones such as 'I do not know'; may be repeated",
        scopes=("test", "ini"),
    ),
    Option(
        "judge",
        Value(judge, "ADDRESS"),
        "OpenAI-compatible address of the chat model that judges whether two replies mean the "
        "same: openai+http://... or openai+https://... (--dst-compare=judge:ADDRESS "
        "overrides it)",
        scopes=("ini",),
        of="compare",
        kinds=(JUDGE,),
        variable=JUDGE_TOKEN_VARIABLE,
    ),
    Option(
        "judge_model",
        Value(text, "NAME"),
        "name of the judge's model (default: the only model that its service lists)",
        scopes=("ini",),
        of="compare",
        kinds=(JUDGE,),
        key="model",
    ),
    Option(
        "judge_prices",
        Value(prices, "IN,OUT", float, separator=","),
        "prices of a million tokens of the judge's prompts and of its answers, for the report",
        scopes=("ini", "neutral"),
        of="compare",
        kinds=(JUDGE,),
        key="prices",
    ),
    Option(
        "judge_calls",
        count(2, 1_000_000_000),
        "maximum number of calls of the judge, two for each pair of replies. Further pairs do "
        "not count as violations (default: no limit)",
        scopes=("ini",),
        of="compare",
        kinds=(JUDGE,),
        key="calls",
    ),
    Option(
        "history",
        Value(choice("history", HISTORIES), "WHOSE"),
        "earlier answers in the history of a question: recorded (those of the data; default) "
        "or own (those of the tested bot or assistant, which is then asked from the start of "
        "each dialogue). With --dst-outcome=tool-calls, own means full rollouts: calls are "
        "answered from the recording, and the end states are compared",
    ),
    _mortar(
        "perturbations",
        Value(names, "NAME+...", str, ","),
        "orders of a dialogue's questions for the relations of mortar: DRS (another order), DRR "
        "(some left out), DRD (some repeated), DSR and DSD (DRR and DRD in "
        "another order), or your own (default: all five)",
        key="perturbations",
    ),
    _mortar(
        "context_checks",
        Value(names, "NAME+...", str, ","),
        "check that decides whether a question has an equivalent context if the questions come "
        "in another order: needed (default), semantic, ontology, story, mortar (the last three "
        "together), judge (the chat model of --dst-compare=judge:ADDRESS), or your own",
        key="context-checks",
    ),
    _mortar(
        "reference",
        Value(choice("reference", REFERENCES), "WHAT"),
        "reply that the relations of mortar and metal compare with: clean (the reply in the "
        "clean dialogue; default) or answer (the recorded answer)",
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
            f"dst_cited applies only to the comparison {IDS}: add --dst-compare={IDS}, alone or "
            "in a list, or leave it out"
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
                f"{_SPELLED[item.name]} applies only to {whose}: add --dst-outcome={outcome}, or "
                "leave it out"
            )


def refuse_without_judge(settings: ReplySettings, given: Mapping[str, object]) -> None:
    """Reject options of a judge if no comparison asks a judge."""
    if given.get(JUDGE) is not None and JUDGE not in (settings.compare or "").split(","):
        raise UserError(
            f"dst_judge has no effect, because no comparison uses it: add --dst-compare={JUDGE}, "
            "alone or in a list such as numbers,judge, or leave it out"
        )
    for name in ("judge_model", "judge_prices", "judge_calls"):
        if given.get(name) is not None and settings.judge is None:
            raise UserError(
                f"{_SPELLED[name]} applies only to a judge, and no judge is named: add "
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
        "tracker or assistant to test: a registered name (such as trade), a Python object as "
        "module:attribute, the address of a service (http(s)://..., rasa+http(s)://..., "
        "openai+http(s)://..., anthropic+http(s)://...), or a name or address scheme that a "
        "package or a conftest.py registers",
        variable=TOKEN_VARIABLE,
    ),
    *WEIGHT_KEYS,
    Option(
        "batch_size",
        parsers.count(1, 65536),
        "maximum number of contexts that the tracker predicts in one batch (default: 64)",
        scopes=("neutral",),
    ),
    Option(
        "repeatable",
        SWITCH,
        "whether the tracker gives the same answer each time. If it does not, it is asked "
        "repeatedly, a majority vote decides, and the noise is measured (default: the "
        "tracker's own declaration, otherwise yes)",
    ),
    Option(
        "votes",
        Value(parsers.votes, "N", int),
        "number of answers in a majority vote, if the tracker's answers vary: an odd number, "
        "1 for no vote (default: 3)",
        scopes=("ini",),
    ),
    Option(
        "noise_floor",
        parsers.count(2, 32),
        "number of answers to each clean turn before its variants are tested. A sequential test "
        "then replaces the majority vote (default: a majority vote; 5 with error-rate)",
        scopes=("ini",),
    ),
    Option(
        "error_rate",
        Value(parsers.parse_error_rates, "RATE[,RATE]|no", float, separator=","),
        "use a sequential test if answers vary, with this maximum false-positive rate, such as "
        "5%. The same maximum applies to false negatives, unless there is a second rate, as in "
        "5%,10%. With no, each context is requested only once (default: a majority vote "
        "instead of a test)",
    ),
    _place(
        "tracker",
        Value(parsers.tracker_keys, "KEY=VALUE", separator="\n"),
        "setting of the tracker. It overrides the table [tool.dstfuzz.tracker] of "
        "pyproject.toml. Only pytest reads this table. May be repeated (one per line in an ini "
        "file). Keys of services: "
        f"{keys_of(SERVICES)}; of a shipped tracker: checkpoint, device; of Rasa: "
        f"{keys_of(('rasa',))}; of chat models: {keys_of(MODELS)}; of a tracker from a package "
        "or a conftest.py: the parameters of its factory",
    ),
    *TRACKER_KEYS,
)
_DATA = (
    Option(
        "suite",
        _WHEN,
        "whether to add the built-in tests: auto (default), yes or no. With auto, they are added "
        "if the command line names a tracker but no file, and your suite has no robustness test. "
        "With yes, they are also added for the tracker of an ini file",
        scopes=("neutral",),
    ),
    _read(
        "data",
        _PATH,
        "dialogues to test with: a folder, a file, a zip file, or the name of a data set "
        "(default: the shipped sample)",
    ),
    Option(
        "split",
        Value(parsers.canonical_split, "SPLIT"),
        "split of the data: train, val or test (default: test)",
    ),
    Option(
        "turns",
        Value(parsers.turns, "N|all", int),
        "number of turns to test, from dialogues drawn by the seed, or all (default: 300)",
    ),
    Option(
        "shard",
        Value(parsers.shard, "K/N", int, separator="/"),
        "run only part K of N of these turns, such as 3/16. Each part has whole dialogues; "
        "dstfuzz merge combines the results of the parts (default: all turns)",
        scopes=("session", "place", "neutral"),
    ),
    Option(
        "domains",
        _NAMES,
        "test only dialogues that touch one of these domains (default: all dialogues)",
    ),
    Option(
        "slots",
        _NAMES,
        "slots to ask for and compare, if the data and the ontology do not name all slots of "
        "the bot (default: those of the ontology, otherwise those of the labels and answers)",
    ),
    _read(
        "tools",
        _PATH,
        "JSON file of tools for dialogues without tools, in the format of OpenAI, Anthropic "
        "or MCP; for --dst-outcome=tool-calls",
    ),
    Option(
        "frozen",
        _PATH,
        "file of rewritten turns that a person has reviewed, as written by dstfuzz freeze",
        scopes=("path", "place", "ini"),
        of="relation",
        kinds=("frozen",),
    ),
    Option(
        "tools_paraphrase",
        _PATH,
        "paraphrases of the tools: a JSON file of other names and descriptions, or the folder "
        "with SGD and SGD-X",
        scopes=("path", "place", "ini"),
        of="relation",
        kinds=("tools-paraphrase",),
    ),
)
_VARIANT = (
    Option(
        "variants",
        parsers.count(1, 1000),
        "number of variants of each turn (default: 5)",
        scopes=("test",),
    ),
    Option(
        "variant",
        Value(parsers.integer(0, 999), "I", int),
        "run only the variant with this number, counted from 0, as in the command that "
        "repeats a failure",
        scopes=("test",),
    ),
    _decides(
        "transformations",
        Value(parsers.parse_associated, "K", int),
        "number of transformations that one variant combines, from 1 to "
        f"{len(TRANSFORMATIONS)}, or higher if other transformations are added (default: 3)",
    ),
    Option(
        "redraws",
        parsers.count(0, 1000),
        "maximum number of new draws of a variant that is invalid, a duplicate, or vacuous (equal "
        "to the clean turn) (default: 5)",
        scopes=("test", "decides", "ini"),
    ),
    _decides(
        "stop_at_first",
        SWITCH,
        "stop testing a turn at its first violation: finds failures with fewer calls, but "
        "gives no failure rate (default: no)",
    ),
    _decides(
        "edits",
        Value(parsers.edits, "NAME,+NAME,-NAME", separator=","),
        f"use only these transformations ({', '.join(TRANSFORMATIONS)}) and operators. An "
        "operator is NAME or TRANSFORMATION/NAME, such as emoji; +NAME adds and -NAME "
        f"excludes one, such as -emoji,-word_drop; {ALL} means the six transformations",
    ),
    Option(
        "search",
        _NAME,
        "search that chooses the edits. random, near-value, greedy and dialtest need no training. "
        "adaptive learns the bot's weak points during the run. agent uses a policy trained on "
        "the shipped trade, agent:simpletod one trained on simpletod, and agent:PATH your own. "
        "bandit uses a scorer of edits trained on the shipped trade, and bandit:PATH your own. "
        "noise makes typical slips of people, to estimate how many user turns fail; it needs "
        "validity=natural. Packages and suites may add searches. (default with validity=natural: "
        "noise for half of the variants, and bandit for the shipped trade or random for the "
        "others; default with other profiles: random)",
        scopes=("test", "decides", "content"),
    ),
    _decides(
        "attack",
        Value(parsers.choice("attack design", parsers.ATTACKS), "DESIGN"),
        "edits of earlier user turns in the history of a variant: hybrid (in half of the turns, "
        "at random; default), non-cumulative (in no turn) or cumulative (in all turns). If the "
        "noise model draws variants, cumulative also tests whole conversations with slips",
    ),
    _decides(
        "validity",
        Value(parsers.choice("validity profile", VALIDITIES), "PROFILE"),
        "profile that decides which edits are valid: natural (default), strict or edit-rate. All "
        "three limit the edit rates. natural allows only slips of people, by the noise models; a "
        "word that carries meaning may have a slip only if a reader recovers it. strict allows no "
        "edit of words that carry meaning",
    ),
    Option(
        "noise",
        Value(parsers.noise_models, "NAME,...", separator=","),
        "noise models of the slips that people make: typing, casual, speech, or the path of a "
        "file of dstfuzz fit-noise. Several models contribute equally, or by weights as in "
        "typing:3,casual (default: typing,casual)",
        scopes=("test", "decides", "content"),
    ),
    _decides(
        "slip_rate",
        Value(parsers.parse_slip_rate, "RATE", float),
        "average number of slips per word that people make, such as 2%, for the probabilities "
        "of variants (default: the rate of the noise models)",
    ),
    _decides(
        "max_edit_rate",
        Value(parsers.parse_rate, "R", float),
        "maximum edit rate of a variant, for words and for characters (default: 0.25)",
    ),
    Option(
        "flat_edit_rate",
        SWITCH,
        "apply the maximum edit rate to short utterances too. Otherwise one word may always "
        "be edited (default: no)",
        scopes=("test", "decides", "ini"),
    ),
    _decides(
        "lock",
        Value(parsers.lines, "WORD|/REGEX/", separator="\n"),
        "word or /regular expression/ that no edit may touch; may be repeated (one per line "
        "in an ini file)",
    ),
    _decides(
        "relation",
        Value(parsers.relations, "NAME,...", separator=","),
        "relations that must hold for each variant: metamorphic (the prediction equals that "
        "for the clean turn; default), gold (a correct prediction stays correct), value-swap, "
        "negation and others (a prediction must change; dstfuzz relations lists all), or a "
        "relation of a package or of your suite",
    ),
    Option(
        "shrink",
        SWITCH,
        "reduce each violation to the edits that cause it, with about 7 more calls each "
        "(default: yes)",
        scopes=("test",),
    ),
    _decides("seed", parsers.count(0, 2**63 - 1), "seed of all random choices (default: 0)"),
)
_BUDGET = (
    _session(
        "max_seconds",
        parsers.SECONDS,
        "stop the run gracefully after this number of seconds; pending answers are not waited for",
    ),
    Option(
        "preflight_seconds",
        parsers.SECONDS,
        "maximum seconds for the checks of the tracker before the run (default: 300)",
        scopes=("place", "ini"),
    ),
    _session("max_calls", parsers.count(1), "stop the run gracefully after N predicted contexts"),
    _session(
        "max_tokens", parsers.count(1), "stop the run gracefully after N tokens of a chat model"
    ),
    _session(
        "max_cost",
        Value(parsers.positive("units of money"), "X", float),
        "stop the run gracefully at this cost, computed from --dst-tracker=prices=IN,OUT",
    ),
    Option(
        "cache",
        Value(parsers.text, "PATH|no"),
        "file in which predictions are cached for later runs, if the tracker has a "
        "fingerprint; or no (default: a file in pytest's cache folder)",
        scopes=("path", "written", "place"),
    ),
    Option(
        "cache_size",
        Value(parsers.integer(1, 1_000_000), "MB", int),
        "maximum size of the cache file in megabytes; the entries that were not used for "
        "longest are removed first (default: 500)",
        scopes=("place", "ini"),
    ),
)
_OUTPUT = (
    _written(
        "report",
        Value(parsers.reports, "PATH", separator="\n"),
        "write a report to this file. Its suffix decides the format: .json (for programs), "
        ".html (a single page; needs the extra 'report') or .md (a summary). May be repeated",
    ),
    _shown(
        "annotations",
        _WHEN,
        "whether to write GitHub annotations of violations, and a job summary if "
        "$GITHUB_STEP_SUMMARY is set: auto (in GitHub Actions; default), yes or no",
    ),
    Option(
        "results",
        Value(parsers.text, "DIR"),
        "judge the results in this folder, written by dstfuzz campaign or dstfuzz merge, "
        "instead of running tests: gates, reports and regressions are as after a run, and the "
        "tracker is not asked",
        scopes=("path", "session", "place"),
    ),
    Option(
        "redact",
        SWITCH,
        "replace each character of utterances, replies and slot values with x in the terminal "
        "and in reports (default: no)",
    ),
    _shown(
        "remember",
        SWITCH,
        "store the violations as regressions, which later runs test before anything else "
        "(default: no)",
    ),
    _written(
        "regressions",
        _PATH,
        "folder of the remembered violations (default: .dstfuzz/regressions in pytest's root "
        "folder)",
    ),
    _shown("replay", Value(parsers.text, "ID"), "test only the remembered violation with this id"),
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
        raise UserError(f"{shown_as}: {mask_credentials(value)!r} {error}") from None
