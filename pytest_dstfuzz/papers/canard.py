"""The CANARD data set, a retrieval bot for its questions, and faults to give the bot."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from pytest_dstfuzz import load_dialogues
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Dialogue, DialogueSet, answer_of
from pytest_dstfuzz.dialogue.readers.corpora import questions
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.lexicon import Lexicon
from pytest_dstfuzz.perturb.words import word_list
from pytest_dstfuzz.relations.contexts import (
    DEMONSTRATIVES,
    PERSONS,
    THINGS,
    AskedQuestion,
    opening_of,
    read,
    round_of,
)
from pytest_dstfuzz.trackers.tracker import Prediction

#: Perturbations of the experiments, in the order of the tables.
PERTURBED: Final = ("DRS", "DRR", "DRD", "DSR", "DSD")
_BLANKS: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Rewrites:
    """The questions of a data set, rewritten by people so that each is clear without context."""

    data: DialogueSet
    #: (dialogue, turn) -> rewrite.
    texts: dict[tuple[str, int], str]
    lexicon: Lexicon

    def differs(self, dialogue: Dialogue, index: int) -> bool:
        """Return whether a rewrite differs from its question by more than case and spaces."""
        texts = self.texts[dialogue.id, index], dialogue.turns[index].user
        one, other = (_BLANKS.sub(" ", text).strip().lower() for text in texts)
        return one != other

    def words(self, text: str) -> frozenset[str]:
        """Return the base forms of a text's words, without stop words."""
        return read(text, self.lexicon).content

    def brought(self, dialogue: Dialogue, rounds: tuple[int, ...]) -> frozenset[str]:
        """Return the words that the opening and some rounds add to a context."""
        texts = [opening_of(dialogue), *(t for one in rounds for t in round_of(dialogue, one))]
        return frozenset().union(*map(self.words, texts))

    def needed(self, dialogue: Dialogue, index: int) -> frozenset[str]:
        """Return the words of a rewrite that come from the question's clean context."""
        added = self.words(self.texts[dialogue.id, index])
        clean = self.brought(dialogue, tuple(range(index)))
        return (added - self.words(dialogue.turns[index].user)) & clean

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Return whether the rounds before a question contain all words that the question needs."""
        needed = self.needed(asked.dialogue, asked.turn)
        return needed <= self.brought(asked.dialogue, asked.before)

    def answered(self, dialogue: Dialogue) -> tuple[int, ...]:
        """Return the indices of the turns whose answer is recorded."""
        return tuple(turn.index for turn in dialogue.turns if answer_of(dialogue, turn.index))


def load_rewrites(path: Path, lexicon: Lexicon) -> Rewrites:
    """Read the dialogues of a CANARD file, and their rewrites.

    Raises:
        DataError: the file is missing or invalid.
    """
    data = load_dialogues(path, "val", layout="canard")
    texts = {
        (name, place): entry.Rewrite
        for name, entries in questions(SourceFile(path.name, path)).items()
        for place, entry in enumerate(entries)
    }
    return Rewrites(data, texts, lexicon)


def half_of(dialogue: Dialogue) -> int:
    """Return the half of the data with a dialogue, 0 or 1: the parity of its id's hash."""
    return hashlib.sha256(dialogue.id.encode()).digest()[-1] % 2


UNKNOWN: Final = "I do not know."
UNCLEAR: Final = "I cannot tell what you mean."
SAID_BEFORE: Final = "As I said."
TIRED: Final = "I do not know what to say."
UNSEEN: Final = "I do not understand."
#: Number of earlier rounds that a bot with a short memory sees.
_REMEMBERED: Final = 3
#: The first round in which a tired bot gives up.
_TIRED_FROM: Final = 9
#: Maximum number of words in a short question, for the parrot.
_SHORT: Final = 5
#: Minimum share of common letter trigrams in two spellings of a question.
_ALIKE: Final = 0.15
_LETTERS: Final = str.maketrans("430157", "aeoist")


@dataclass(frozen=True, slots=True)
class HeardQuestion:
    """A question as the bot understands it: its dialogue, and the rounds before it."""

    dialogue: Dialogue
    #: Round of the question.
    index: int
    #: Earlier rounds in the order asked. ``None`` stands for an unknown question.
    history: tuple[int | None, ...]
    #: Title and section, or an empty string if they are withheld.
    opening: str
    #: All questions including the last one, and the replies to the earlier ones.
    users: tuple[str, ...]
    replies: tuple[str, ...]

    @property
    def rounds(self) -> tuple[int, ...]:
        """The rounds before the question that the bot recognises."""
        return tuple(one for one in self.history if one is not None)


class RetrievalBot:
    """The bot without a fault, called sound. It looks up recorded answers.

    The bot is a tracker that replies. It gives equal replies to equal contexts.
    """

    repeatable = True

    def __init__(self, gold: Rewrites) -> None:
        self.gold = gold
        self._openings: dict[str, list[Dialogue]] = {}
        self._questions: dict[str, list[Dialogue]] = {}
        self._kept: dict[Context, HeardQuestion | None] = {}
        for dialogue in gold.data.dialogues:
            self._openings.setdefault(opening_of(dialogue), []).append(dialogue)
            for user in dict.fromkeys(turn.user for turn in dialogue.turns):
                self._questions.setdefault(user, []).append(dialogue)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return a reply to each context."""
        return [Prediction(BeliefState(), reply=self.reply(context)) for context in contexts]

    def reply(self, context: Context) -> str:
        """Return the reply to a context."""
        heard = self.hear(context)
        return UNCLEAR if heard is None else self.answer(heard)

    def answer(self, heard: HeardQuestion) -> str:
        """Return the recorded answer if the context has all words that the question needs."""
        if self.understands(heard):
            return self.recorded(heard, heard.index)
        return UNCLEAR

    def recorded(self, heard: HeardQuestion, index: int) -> str:
        """Return the recorded answer to the question of a round."""
        return answer_of(heard.dialogue, index) or UNKNOWN

    def understands(self, heard: HeardQuestion) -> bool:
        """Return whether the context contains all words that the question needs."""
        asked = heard.dialogue
        if not heard.opening:
            first, *others = asked.turns
            asked = replace(asked, turns=(replace(first, system=""), *others))
        told = (heard.opening, *heard.users, *heard.replies)
        words = frozenset().union(*map(self.gold.words, told))
        return self.gold.needed(asked, heard.index) <= words

    def hear(self, context: Context) -> HeardQuestion | None:
        """Return the question that a context asks, or ``None`` if its dialogue is unknown."""
        plain = Context(context.exchanges)
        if plain not in self._kept:
            self._kept[plain] = self._heard(plain)
        return self._kept[plain]

    def _heard(self, context: Context) -> HeardQuestion | None:
        opening, users = context.exchanges[0].system, context.user_utterances
        dialogue = self._dialogue(opening, users)
        if dialogue is None:
            return None
        history: list[int | None] = []
        for user in users:
            history.append(_round(dialogue, user, history))
        *before, index = history
        if index is None:
            return None
        replies = tuple(exchange.system for exchange in context.exchanges[1:])
        return HeardQuestion(dialogue, index, tuple(before), opening, users, replies)

    def _dialogue(self, opening: str, users: Sequence[str]) -> Dialogue | None:
        """Return the dialogue that has most of these questions, or ``None`` if several are equal.

        If several dialogues with one opening are equal, the dialogue with the most similar
        questions wins.
        """
        known = [one for user in users for one in self._questions.get(user, ())]
        found = {one.id: one for one in (self._openings.get(opening, ()) if opening else known)}
        counts = {name: (float(known.count(one)), 0.0) for name, one in found.items()}
        if opening and _tied(counts):
            counts = {
                name: (count, _near(found[name], users)) for name, (count, _) in counts.items()
            }
        if not counts or _tied(counts):
            return None
        return found[max(counts, key=lambda name: counts[name])]


def _tied(counts: Mapping[str, tuple[float, float]]) -> bool:
    """Return whether the two best dialogues match equally well."""
    ranked = sorted(counts.values(), reverse=True)
    return len(ranked) > 1 and ranked[0] == ranked[1]


def _near(dialogue: Dialogue, users: Sequence[str]) -> float:
    """Return the similarity between some questions and the questions of a dialogue."""
    return sum(max(_alike(user, turn.user) for turn in dialogue.turns) for user in users)


def _round(dialogue: Dialogue, user: str, before: Sequence[int | None]) -> int | None:
    """Return the round with a question's text. If several have it, the history decides."""
    found = [turn.index for turn in dialogue.turns if turn.user == user]
    if not found:
        shares = [(_alike(user, turn.user), -turn.index) for turn in dialogue.turns]
        best, place = max(shares)
        found = [-place] if best >= _ALIKE else []
    if len(found) < 2:
        return found[0] if found else None
    told = {one for one in before if one is not None}
    distances = [(len(told ^ set(range(index))), index in told, index) for index in found]
    return min(distances)[2]


def _alike(one: str, other: str) -> float:
    """Return the share of letter trigrams that two texts have in common (Dice coefficient)."""
    first, second = _triples(one), _triples(other)
    return 2 * len(first & second) / max(1, len(first) + len(second))


@lru_cache(maxsize=1 << 15)
def _triples(text: str) -> frozenset[str]:
    # Read digits that stand for letters as these letters, in both texts.
    padded = f"  {' '.join(word_list(text))} ".translate(_LETTERS)
    return frozenset(padded[place : place + 3] for place in range(len(padded) - 2))


class FaultyBot(RetrievalBot):
    """The sound bot with one fault. The fault is a function that may change the reply."""

    def __init__(self, gold: Rewrites, fault: Fault) -> None:
        super().__init__(gold)
        self._fault = fault

    def answer(self, heard: HeardQuestion) -> str:
        """Return the faulty reply, or the sound reply if the fault does not apply."""
        said = self._fault(self, heard)
        return super().answer(heard) if said is None else said

    def sound(self, heard: HeardQuestion) -> str:
        """Return the reply of the sound bot."""
        return super().answer(heard)


#: Returns the faulty reply, or ``None`` if the fault does not apply.
Fault = Callable[[FaultyBot, HeardQuestion], "str | None"]


def short_memory(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """Reply as if the bot saw only the opening and the last three rounds."""
    users, replies = heard.users[-_REMEMBERED - 1 :], heard.replies[-_REMEMBERED:]
    return bot.sound(
        replace(heard, history=heard.history[-_REMEMBERED:], users=users, replies=replies)
    )


def in_order(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """Reply with the first round's answer if the earlier rounds are in another order."""
    rounds = list(heard.rounds)
    return None if rounds == sorted(rounds) else bot.recorded(heard, rounds[0])


def knows_too_much(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """Reply with the answer even if the context lacks words that the question needs."""
    return bot.recorded(heard, heard.index)


def parrot(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """Repeat the last reply after a short question."""
    del bot
    short = len(word_list(heard.users[-1])) <= _SHORT
    return heard.replies[-1] if short and heard.replies else None


def score_repetition(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """Give up from the ninth round on."""
    del bot
    return TIRED if len(heard.users) >= _TIRED_FROM else None


def count_asked_before(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """Refuse to answer a question that was asked before."""
    del bot
    return SAID_BEFORE if heard.users[-1] in heard.users[:-1] else None


def stuck_on_the_first(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """If the question has a pronoun, reply with the answer after the first question."""
    pointing = read(heard.users[-1], bot.gold.lexicon).pointers()
    first = heard.history[0] if heard.history else None
    if not first or pointing.isdisjoint(PERSONS | THINGS | DEMONSTRATIVES):
        return None  # No fault if the first round asked is the original one.
    return bot.recorded(heard, min(first + 1, len(heard.dialogue.turns) - 1))


def brittle_words(vocabulary: frozenset[str]) -> Fault:
    """Return a fault: the bot understands no question with a word outside the vocabulary."""

    def fault(bot: FaultyBot, heard: HeardQuestion) -> str | None:
        del bot
        return None if vocabulary.issuperset(word_list(heard.users[-1])) else UNSEEN

    return fault


def vocabulary_of(texts: Iterable[str]) -> frozenset[str]:
    """Return all words of some texts, in lower case."""
    return frozenset(word for text in texts for word in word_list(text))


def faults(gold: Rewrites) -> Mapping[str, Fault]:
    """Return the eight faults by name, in the order of the tables."""
    said = (
        text
        for one in gold.data.dialogues
        for turn in one.turns
        for text in (turn.system, turn.user)
    )
    return {
        "short memory": short_memory,
        "order": in_order,
        "knows too much": knows_too_much,
        "parrot": parrot,
        "tired": score_repetition,
        "asked before": count_asked_before,
        "stuck on the first": stuck_on_the_first,
        "brittle words": brittle_words(vocabulary_of(said)),
    }
