"""Options of what of an answer is compared, and of bots that reply: how two replies are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Final, Literal

from pytest_dstfuzz.config.call_options import CALL_OPTIONS
from pytest_dstfuzz.config.parsers import Option, Value, choice, count, once, prices, text
from pytest_dstfuzz.config.secret import Address
from pytest_dstfuzz.errors import UserError, unknown_name

STATE: Final = "state"
REPLY: Final = "reply"
TOOL_CALLS: Final = "tool-calls"
#: The comparison of cited ids.
IDS: Final = "ids"
#: The comparison that asks a chat model.
JUDGE: Final = "judge"
#: What an answer may be.
OUTCOMES: Final = (STATE, REPLY, TOOL_CALLS)
#: What replies in other contexts are compared with.
REFERENCES: Final = ("clean", "answer")
#: What there is to say of assistants that call tools.
_OF_CALLS: Final = ("outcome", *(item.name for item in CALL_OPTIONS))


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """What of an answer is tested, and when two replies say the same."""

    outcome: Literal["state", "reply", "tool-calls"] = STATE
    #: Names of comparisons with commas between them; ``None`` = the default of the outcome.
    compare: str | None = None
    #: Distance up to which two replies are the same, from 0 to 2; ``None`` = the comparison's own.
    threshold: float | None = None
    #: Regular expression of the ids that a reply cites; ``None`` = ``[3]``, ``#17``, addresses.
    cited: str | None = None
    #: Regular expressions of replies that are no answer, beside the shipped ones.
    fallback: tuple[str, ...] = ()
    #: Address of the chat model that judges replies, how it is called there, and its prices.
    judge: Address | None = None
    judge_model: str | None = None
    judge_prices: tuple[float, float] | None = None
    #: How often it may be asked; ``None`` = as often as it takes.
    judge_calls: int | None = None
    #: Whose replies stand in the history of a question.
    history: Literal["recorded", "own"] = "recorded"
    #: Perturbations of the questions of a dialogue, by name.
    perturbations: tuple[str, ...] = ("DRS", "DRR", "DRD", "DSR", "DSD")
    #: Checks that say whether a question has an equivalent context, by name.
    context_checks: tuple[str, ...] = ("needed",)
    #: What replies in other contexts are compared with: the clean reply, or the recorded answer.
    reference: Literal["clean", "answer"] = "clean"
    #: Whether the order counts in which tools are called.
    call_order: Literal["any", "exact"] = "any"
    #: Rules of arguments of tools and of slots, ``book_table.people=number``; the last that fits
    #: counts.
    arguments: tuple[str, ...] = ()


def outcome(value: str) -> str:
    """Take what of an answer is tested."""
    if "," in value:
        raise ValueError(f"names several, and a run tests one: {', '.join(OUTCOMES)}")
    if value not in OUTCOMES:
        raise unknown_name("outcome", value, OUTCOMES)
    return value


def comparisons(value: str) -> str:
    """Take names of comparisons with commas between them; the result has no blanks."""
    found = [part.strip() for part in value.split(",") if part.strip()]
    if not found:
        raise ValueError("names nothing: leave the option out for the default")
    return once(found)


def threshold(value: str) -> float:
    """Take a distance."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError("is no number: 0 (the same) to 2") from None
    if not 0 <= number <= 2:
        raise ValueError("is no distance: 0 (the same) to 2")
    return number


def judge(value: str) -> Address:
    """Take the address of a chat model."""
    # No message repeats it: it may hold credentials.
    if re.match(r"openai\+https?://[^/]", value) is None:
        raise UserError(
            "--dst-compare=judge:ADDRESS is no address of a chat model: openai+http://... or openai+https://..."
        )
    return Address(value)


def expression(value: str) -> str:
    """Take a regular expression, within slashes or not."""
    bare = value[1:-1] if len(value) > 2 and value[0] == value[-1] == "/" else value
    try:
        compiled = re.compile(bare)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if compiled.search("") is not None:
        raise ValueError("matches every reply: it matches nothing at all")
    return bare


def expressions(value: str) -> tuple[str, ...]:
    """Take regular expressions, one a line."""
    return tuple(expression(line.strip()) for line in value.split("\n") if line.strip())


#: Whose replies a bot may be shown as its own.
HISTORIES: Final = ("recorded", "own")


def names(value: str) -> tuple[str, ...]:
    """Take names with commas between them."""
    return tuple(comparisons(value).split(","))


#: The relations of two papers, and the names that stand for all of one.
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
        Value(comparisons, "NAME,..."),
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
        "address, openai+http://... or openai+https://...",
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
#: Name of each -> how messages call it.
_SPELLED: Final = {item.name: item.spelled for item in REPLY_OPTIONS}


def refuse_without_replies(settings: ReplySettings) -> None:
    """Refuse what does nothing for what is tested of an answer."""
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
    """Refuse what is given of a judge where none is asked, each in one message."""
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
