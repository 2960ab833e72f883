"""Advice on a weakness: changes of the bot that may help, by the kind of bot."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final, Literal, NamedTuple, get_args

from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.perturb.edits import undo_edits
from pytest_dstfuzz.perturb.spelling import SpellingCorrector
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.weaknesses.mechanisms import IGNORED, OTHER, RESTARTED

__all__ = ["to_try"]

#: A part of a bot, or the settings of the bot or the test.
Part = Literal["rule", "training data", "prompt", "schema", "knowledge base", "settings"]
#: The parts of a bot that advice may name. There is one list for trackers that predict states, one
#: for assistants that call tools, and one for bots that reply.
_OF_STATES: Final[tuple[Part, ...]] = ("rule", "training data", "settings")
_OF_CALLS: Final[tuple[Part, ...]] = ("prompt", "schema", "settings")
_OF_REPLIES: Final[tuple[Part, ...]] = (
    *("prompt", "knowledge base", "rule", "training data", "settings"),
)

_STATES: Final[dict[str, dict[Part, str]]] = {
    "two values run together": {
        "rule": "end a value before the name of the next slot",
        "training data": "add turns that give several values without punctuation",
    },
    "misspelt value copied": {
        "rule": "replace an unknown value with the most similar known one",
        "training data": "misspell some values and keep their labels",
    },
    "misspelt value lost or changed": {
        "rule": "match misspelt values, such as by their edit distance to known ones",
        "training data": "misspell some values and keep their labels",
    },
    "value in wrong domain": {
        "rule": "keep the domain until the user names another one",
        "training data": "add turns about two domains",
    },
    "no preference lost or changed": {
        "rule": "list the phrases that mean any value will do",
        "training data": "add many ways to say that any value will do",
    },
    "slip in key word, yes/no wrong": {
        "rule": "fill a yes/no slot only if the user names it, and match misspelt names",
        "training data": "misspell some names of yes/no slots",
    },
    "cross-domain value lost or changed": {
        "rule": "resolve references such as `the same area`",
        "training data": "add turns that refer to a value of another domain",
    },
    "slip in key word, value wrong": {
        "rule": "match misspelt key words, such as the names of slots",
        "training data": "misspell some key words",
    },
    "number or time changed": {
        "rule": "copy numbers and times from the dialogue",
        "training data": "vary the numbers and times",
        "prompt": "tell the model to copy numbers and times from the dialogue",
        "schema": "give the format of the argument",
    },
    "departure and destination confused": {
        "rule": "tell the two ends of a journey apart by `from` and `to`",
        "training data": "add departure and destination in separate turns",
    },
    "name changed or made up": {
        "rule": "accept only names from the dialogue or the ontology",
        "training data": "vary the names",
    },
    "value replaced by another": {
        "rule": "prefer the last value that the user gives",
        "training data": "add turns that mention several values of a slot",
    },
    "value copied to another slot": {
        "rule": "fill only slots of the domain that the user talks about",
        "training data": "add turns about only one of the domains",
    },
    "slip in unrelated word, value lost": {
        "rule": "skip unknown words between known ones",
        "training data": "misspell words that no slot depends on",
    },
    "offered value lost or added": {
        "rule": "accept an offer only after a clear yes",
        "training data": "label all accepted offers by the same rule",
    },
    "number or time made up": {
        "rule": "reject numbers and times that are not in the dialogue",
        "training data": "remove labels that no turn mentions",
    },
    "value made up": {
        "rule": "reject values that are not in the dialogue",
        "training data": "remove labels that no turn mentions",
    },
}

_CHANGES: Final[dict[str, dict[Part, str]]] = {
    "new value ignored": {
        "rule": "overwrite a value if the user gives another one",
        "training data": "add the same sentences with other values",
        "prompt": "state that the latest value counts",
        "schema": "list the allowed values of the argument",
    },
    "correction ignored": {
        "rule": "replace a value that the user corrects",
        "training data": "add turns that correct a value",
        "prompt": "state that a corrected value replaces the first one",
    },
    "negation ignored": {
        "rule": "drop a value that the user refuses",
        "training data": "add negated requests",
        "prompt": "tell the model never to pass a value that the user refuses",
    },
    "removed value still present": {
        "rule": "reject values that are not in the dialogue",
        "training data": "remove labels that no turn mentions",
        "schema": "tell the model to omit the argument if the user does not give it",
    },
    "swapped values ignored": {
        "rule": "choose the slot by the words before the value",
        "training data": "add the same sentences with swapped values",
        "schema": "give the role of each argument",
    },
    "value found in random words": {
        "rule": "ignore turns that make no sense",
        "training data": "add turns of random words without labels",
        "prompt": "tell the model not to call a tool if a message makes no sense",
    },
    "value of dropped round kept": {
        "rule": "clear all stored values when a dialogue starts",
        "prompt": "include only messages of the current dialogue",
    },
    IGNORED: {
        "rule": "handle such a change of the request",
        "training data": "add turns with such a change of the request",
        "prompt": "tell the model how to handle such a change of the request",
    },
    "only some values changed": {
        "rule": "read all values of a turn",
        "training data": "add turns that change several slots",
        "prompt": "tell the model to pass all values of a message",
    },
    "new value in wrong place": {
        "rule": "choose the slot by the words before the value",
        "training data": "add turns that give the same value for different slots",
        "schema": "describe each argument in the words of your users",
    },
    "changed to wrong value": {
        "rule": "accept only values from the dialogue or the ontology",
        "training data": "vary the values",
        "schema": "list the allowed values of the argument",
    },
    "another value changed too": {
        "rule": "change only slots that the turn is about",
        "training data": "add turns that differ in one value",
        "prompt": "tell the model to change only the values that the message gives",
    },
    "repeated round changes answer": {
        "rule": "change nothing if a turn is repeated",
        "training data": "repeat some rounds",
        "prompt": "state that a repeated request counts once",
    },
    "order of rounds matters": {
        "rule": "read each turn independently of the order of earlier turns",
        "training data": "add rounds in other orders",
        "prompt": "state that the order of independent requests does not matter",
    },
    RESTARTED: {"settings": "switch off sampling, and clear all memory before each dialogue"},
}

_REPLIES: Final[dict[str, dict[Part, str]]] = {
    "fallback instead of answer": {
        "prompt": "tell the bot to answer questions with misspelt words",
        "rule": "match misspelt key words",
        "training data": "misspell some examples of the intent",
    },
    "earlier reply repeated": {
        "prompt": "tell the bot to answer the last question",
        "rule": "ask the user to clarify before a reply is repeated",
    },
    "changed question, same reply": {
        "prompt": "tell the bot to answer only the question that is asked",
        "knowledge base": "add an entry for the changed question",
    },
    "equivalent context, different reply": {
        "prompt": "include all earlier messages of the conversation",
        "rule": "store the facts of earlier turns",
    },
    "number in reply changed": {
        "prompt": "tell the bot to quote only numbers from the given texts",
        "knowledge base": "store numbers, dates and amounts in a table",
    },
    "yes and no reversed": {
        "prompt": "tell the bot to ask the user if a question is unclear",
        "knowledge base": "state each fact as yes or no",
    },
    "name in reply changed": {
        "prompt": "tell the bot to use only names from the question or the given texts",
        "rule": "reject replies with other names",
    },
    "question instead of answer": {
        "prompt": "tell the bot to answer questions with misspelt words",
        "training data": "misspell some examples of the intent",
    },
    "different reply": {
        "prompt": "tell the bot to read a misspelt word as the most similar known word",
        "rule": "match misspelt key words",
        "training data": "misspell some examples of the intent",
    },
}

_CALLS: Final[dict[str, dict[Part, str]]] = {
    "unknown tool called": {"prompt": "list the tools, and tell the model to call no others"},
    "different tool called": {
        "schema": "state in the descriptions of both tools when to call each"
    },
    "call dropped": {
        "prompt": "tell the model when it must call the tool",
        "schema": "name the requests for which the tool is called in its description",
    },
    "one of several calls dropped": {"prompt": "state that each part of a request needs a call"},
    "call added": {"schema": "tell the model when it must not call the tool"},
    "order of calls changed": {
        "prompt": "tell the model in which order to call the tools",
        "settings": "add --dst-call-order=any if the order does not matter",
    },
    "misspelt argument copied": {
        "prompt": "tell the model to correct the spelling of values",
        "schema": "list the allowed values of the argument",
    },
    "arguments mixed up": {"schema": "describe each argument in the words of your users"},
    "number or time dropped": {
        "prompt": "tell the model to pass all values of a message",
        "schema": "make the argument required if the call needs it",
    },
    "argument dropped": {
        "prompt": "tell the model to pass all values of a message",
        "schema": "make the argument required if the call needs it",
    },
    "argument shortened or extended": {
        "schema": "describe where the value ends in the user's sentence",
        "settings": "add --dst-arguments 'TOOL.ARGUMENT=text' if the wording does not matter",
    },
    "argument type changed": {"schema": "give the JSON type of the argument"},
    "argument value changed": {"schema": "list the allowed values of the argument"},
    "argument added": {
        "schema": "tell the model to omit the argument if the user does not give it"
    },
}

_ADVICE: Final[Mapping[str, Mapping[Part, str]]] = {
    **_STATES,
    **_CHANGES,
    **_REPLIES,
    **_CALLS,
    OTHER: {"settings": "check which answer the relation expects"},
}


def to_try(mechanism: str, kind: AnswerKind) -> str:
    """Return changes of the bot that may remove a weakness. They depend on its mechanism.

    >>> from pytest_dstfuzz.kinds.tool_calls import TOOL_CALLS
    >>> to_try("correction ignored", TOOL_CALLS)
    'prompt: state that a corrected value replaces the first one'
    """
    advice = _ADVICE[mechanism]
    parts = _OF_CALLS if kind.has_tools else _OF_STATES if kind.words.values else _OF_REPLIES
    # A violation of another package's relation may be typical of another kind of bot.
    parts = tuple(part for part in parts if part in advice) or get_args(Part)
    return "; ".join(f"{part}: {advice[part]}" for part in parts if part in advice)


def _system_words(turn: TurnResult) -> frozenset[str]:
    """Return the words that the system says in a dialogue, in lower case."""
    return frozenset(chain.from_iterable(map(word_list, (*turn.earlier_system, turn.system))))


def is_altered(corrector: SpellingCorrector, turn: TurnResult) -> bool:
    """Return whether a spelling corrector alters the clean turn."""
    # Look up the words of the system only if the turn has an unknown word, which is rare.
    if corrector.correct(turn.user) == turn.user:
        return False
    return corrector.correct(turn.user, _system_words(turn)) != turn.user


def is_mended(corrector: SpellingCorrector, turn: TurnResult, variant: VariantResult) -> bool:
    """Return whether a spelling corrector restores the clean texts of a violation.

    A bot that gets the clean texts gives the clean answer, so the bot is not called again. The
    result is false for relations that change the meaning or move rounds, because they make no
    spelling errors.
    """
    plain = variant.plain
    if turn.side == "should-change" or variant.moves:
        return False
    said = _system_words(turn)
    pairs = [(plain.text, plain.edits)]
    pairs += [(plain.context[one.turn_index], one.edits) for one in plain.context_edits]
    return any(edits for _, edits in pairs) and all(
        corrector.correct(text, said) == undo_edits(text, edits) for text, edits in pairs
    )


class Mending(NamedTuple):
    """The effect of a spelling corrector before the bot, computed without calls of the bot."""

    #: The number of violations whose clean texts it restores, and the number of all violations.
    mended: int
    violations: int
    #: The number of clean turns that it alters, and the number of turns with a valid variant.
    altered: int
    turns: int

    @property
    def pays(self) -> bool:
        """Whether the corrector prevents at least a quarter of the violations."""
        return bool(self.mended) and 4 * self.mended >= self.violations
