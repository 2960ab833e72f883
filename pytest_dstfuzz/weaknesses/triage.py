"""Triage in words: what the tracker does, and what to try against it."""

from __future__ import annotations

from typing import Final, NamedTuple

from pytest_dstfuzz.kinds.belief_states import BELIEF_STATES
from pytest_dstfuzz.kinds.kind import AnswerKind
from pytest_dstfuzz.weaknesses.failures import IGNORED
from pytest_dstfuzz.weaknesses.keys import Key
from pytest_dstfuzz.weaknesses.mechanisms import OTHER


class _Words(NamedTuple):
    does: str
    to_try: str


_WORDS: Final = {
    "value-runs-on": _Words(
        "a value runs on into the name and the value of another {slot}",
        "let a name be no longer than one that is known, or end where the next {slot} begins",
    ),
    "domain-confused": _Words(
        "a value that the user said for one domain goes to another domain",
        "train with slips in the words that say which domain is meant; let a slip leave what is "
        "talked about as it was",
    ),
    "cue-word": _Words(
        "the word for a value is damaged, and the value is lost or goes to a sibling {slot}",
        "train with slips in these words, or correct spelling in the input",
    ),
    "any-value": _Words(
        "a {slot} for which any value will do is filled one time and left open the other",
        "train with more ways to say that it does not matter, and with slips in them; keep such an "
        "answer until the user names a value",
    ),
    "yes-no-confused": _Words(
        "the word for a yes or no, or for another {slot} beside it, is damaged, and a yes or no "
        "comes, goes or turns",
        "train with slips in these words, or correct spelling in the input; fill such a {slot} "
        "only where its own word stands",
    ),
    "slip-copied": _Words(
        "a slip is taken for a value, letter by letter",
        "let only known values, or words of a sort that the {slot} takes, be copied; train with "
        "slips in words that are no value",
    ),
    "ends-confused": _Words(
        "the two ends of a journey are mixed up, or one of them is another place",
        "train with journeys whose ends are said in turns of their own; let one end never be the "
        "other",
    ),
    "shared-value": _Words(
        "a value that another domain has too (the same area, the booked day) is lost or another",
        "train with more ways to point to another domain, or fill such {slots} by a rule",
    ),
    "number-changed": _Words(
        "a time or a number becomes another",
        "copy times and numbers from the dialogue and do not generate them; keep one until the user"
        " says another",
    ),
    "name-changed": _Words(
        "a name becomes another, or one that nobody said is made up",
        "let only names that were said or are known be written",
    ),
    "choice-changed": _Words(
        "one value becomes another of the {slot}",
        "train with turns that name several values, or take one back",
    ),
    "value-spread": _Words(
        "a value that was said for one {slot} is put into another one too",
        "train with turns of one domain that say nothing of others; look at how sure the {system} "
        "is when it fills the second {slot}",
    ),
    "stated-lost": _Words(
        "a value that the user said is lost, although the words for it stand as they were",
        "train with slips in words that say nothing of the {slot}",
    ),
    "number-made-up": _Words(
        "a time or a number that nobody said is there one time and not the other",
        "write no time and no number that the dialogue does not say",
    ),
    "made-up": _Words(
        "a value that nobody said is there one time and not the other",
        "train without labels that the dialogue does not tell; look at how sure the {system} is "
        "when it fills the {slot}",
    ),
    "offer-wavers": _Words(
        "a value that the system offered, or that was only asked about, is taken one time and not "
        "the other",
        "settle which offers count as taken, and label them alike; train with slips in turns that "
        "ask or thank",
    ),
    "new-value-ignored": _Words(
        "the user says another value, and the {slot} stays as it was",
        "see whether the {system} knows the new value at all; train with other values in the same "
        "sentences",
    ),
    "correction-ignored": _Words(
        "the user corrects a value, and the first one stays",
        "train with turns that take a value back; let the last value said for a {slot} win",
    ),
    "negation-ignored": _Words(
        "a wish is negated, and taken as if it were not",
        "see whether words such as `not` and `without` reach the {system}; train with refusals",
    ),
    "removal-ignored": _Words(
        "the words for a value are left out, and the value is there all the same",
        "see what else gives the value away; train without labels that the dialogue does not tell",
    ),
    "roles-ignored": _Words(
        "two values trade places (from and to, leave and arrive), and the {slots} stay as they "
        "were",
        "train with both orders of such phrases and with the same values in either place",
    ),
    "noise-believed": _Words(
        "words that say nothing are answered as if a value stood among them",
        "train with turns that say nothing; fill a {slot} only where something speaks for its "
        "value",
    ),
    "drop-ignored": _Words(
        "a round is left out, and its values are there all the same",
        "see what else gives the values away: words of the system, or a state kept outside of the "
        "dialogue",
    ),
    IGNORED: _Words(
        "the user asks for something else, and {stayed}",
        "see what the relation edits, and whether it reaches the {system}",
    ),
    "half-followed": _Words(
        "of several {slots} that should change, some do and some do not",
        "train with turns that change several {slots} at once",
    ),
    "wrong-slot": _Words(
        "the new value goes to another {slot}",
        "train with each value in the phrases of each {slot} that takes it",
    ),
    "wrong-value": _Words(
        "a {slot} that should change does, but to a value that is not the new one",
        "let only values that were said or are known be written; see how the new one is spelled",
    ),
    "bystander-changed": _Words(
        "the {slot} follows, and another one changes with it",
        "train with turns that differ in one value alone, their other labels as they are",
    ),
    "said-twice": _Words(
        "a round that is repeated changes the state",
        "train with repeated rounds; let no value be added up or taken back for being said again",
    ),
    "order-matters": _Words(
        "rounds that do not depend on each other come in another order, and the state is another",
        "train with rounds in other orders; see whether a {slot} is only read once another is "
        "there",
    ),
    "restart-differs": _Words(
        "the same dialogue asked from its start once more gets another answer",
        "see what is kept between two dialogues, and whether chance is in the answers",
    ),
    "no-answer": _Words(
        "the bot says that it does not know, or did not understand, in place of an answer",
        "correct spelling in what comes in; let one word that is not known not decide",
    ),
    "last-answer-again": _Words(
        "the bot says once more what it said before, in place of an answer",
        "see what it does with a question that it does not understand",
    ),
    "answers-anyway": _Words(
        "what a question is about is gone, or another, and the reply is the same",
        "see where the bot has it from: what it keeps of earlier conversations, or a guess",
    ),
    "disagrees": _Words(
        "the same question after other rounds that tell as much gets another reply",
        "see how many rounds the bot looks back, and whether their order matters",
    ),
    "other-number": _Words(
        "a number, a time, a date or an amount in the reply becomes another",
        "take such figures from one place, such as a table, and do not generate them",
    ),
    "other-polarity": _Words(
        "a yes becomes a no, or what the reply affirms is denied",
        "see which words of the question decide; ask back where they are not understood",
    ),
    "other-name": _Words(
        "a name in the reply becomes another",
        "let only names be said that the question or your own data have",
    ),
    "asks-back": _Words(
        "the bot asks back in place of an answer",
        "see which words it looks for, and what it takes from earlier rounds; correct spelling in "
        "what comes in",
    ),
    "other-answer": _Words(
        "the reply says something else",
        "see whether it answers another question: which words decide what is asked for",
    ),
    "unknown-tool": _Words(
        "a tool is called that there is not",
        "refuse a call whose name is not in the list, and ask the model again",
    ),
    "other-tool": _Words(
        "another tool is called",
        "see which words the choice hangs on; say in the descriptions of both tools when to call "
        "which",
    ),
    "no-call": _Words(
        "nothing is called: the answer is a text",
        "see what it says instead; say in the prompt when a tool is to be called at once, or set "
        "tool_choice",
    ),
    "call-left-out": _Words(
        "of several calls one is not made",
        "see whether parallel calls are allowed, and whether each part of the request is read",
    ),
    "needless-call": _Words(
        "a tool is called that was not to be called",
        "say in its description what it takes before it may be called",
    ),
    "calls-reordered": _Words(
        "the same calls are made in another order",
        "where their order does not matter, leave it out of the comparison: --dst-call-order=any",
    ),
    "slip-in-argument": _Words(
        "a slip of the user is copied into an argument",
        "let only known values be passed: an enum in the schema, or a look-up before the call; "
        "correct spelling in what comes in",
    ),
    "arguments-mixed-up": _Words(
        "an argument gets the value of another one",
        "describe each argument by the words that people use for it",
    ),
    "number-in-argument": _Words(
        "a number, a time or a date in an argument becomes another",
        "give its format in the schema, and read such values from the words rather than generate "
        "them",
    ),
    "number-left-out": _Words(
        "a number, a time or a date is not passed on",
        "make the argument required where the call means little without it; see which word beside "
        "it was read",
    ),
    "argument-left-out": _Words(
        "a value is not passed on",
        "make the argument required where the call means little without it, or give an enum",
    ),
    "argument-cut": _Words(
        "an argument has some words more, or fewer",
        "where that does not matter, compare it so: --dst-arguments 'TOOL.ARGUMENT=text'; else "
        "say in its description where it ends",
    ),
    "argument-retyped": _Words(
        "an argument is of another JSON type, with the same text",
        "give its type in the schema and check it before the call",
    ),
    "argument-changed": _Words(
        "an argument gets another value",
        "give an enum, or examples, in the schema; see which words of the user decide",
    ),
    "argument-added": _Words(
        "an argument is passed that nobody asked for",
        "say in its description that it is left out where the user does not say it",
    ),
    OTHER: _Words("the {system} answers otherwise", "see what the relation asks for"),
}


def description(key: Key, kind: AnswerKind = BELIEF_STATES) -> str:
    """Say what violations of a key have in common, in the words for a kind of outcome.

    >>> description(Key("number-changed"))
    'a time or a number becomes another'
    >>> description(Key("call-left-out", "book_taxi"), TOOL_CALLS).rpartition(": ")[2]
    'book_taxi'
    """
    does = kind.words.fill(_WORDS[key.mechanism].does)
    return f"{does}: {key.at}" if key.at else does


def to_try(key: Key, kind: AnswerKind = BELIEF_STATES) -> str:
    """Return what may help: a guess from the pattern, never a finding about the cause."""
    return kind.words.fill(_WORDS[key.mechanism].to_try)
