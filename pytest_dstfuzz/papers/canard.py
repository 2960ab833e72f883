"""CANARD on the research pages, and the retrieval bot that answers its questions."""

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

#: The perturbations of the experiments, in the order of their tables.
PERTURBED: Final = ("DRS", "DRR", "DRD", "DSR", "DSD")
_BLANKS: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Rewrites:
    """What persons made of the questions, each so that it stands alone."""

    data: DialogueSet
    #: By dialogue and turn.
    texts: dict[tuple[str, int], str]
    lexicon: Lexicon

    def differs(self, dialogue: Dialogue, index: int) -> bool:
        """Whether a rewrite says more than its question: by more than case and blanks."""
        texts = self.texts[dialogue.id, index], dialogue.turns[index].user
        one, other = (_BLANKS.sub(" ", text).strip().lower() for text in texts)
        return one != other

    def words(self, text: str) -> frozenset[str]:
        """Return the base forms of the words of a text, but for stop words."""
        return read(text, self.lexicon).content

    def brought(self, dialogue: Dialogue, rounds: tuple[int, ...]) -> frozenset[str]:
        """Return the words of the opening and of rounds."""
        texts = [opening_of(dialogue), *(t for one in rounds for t in round_of(dialogue, one))]
        return frozenset().union(*map(self.words, texts))

    def needed(self, dialogue: Dialogue, index: int) -> frozenset[str]:
        """Return the words that a rewrite adds, as far as the clean context has them."""
        added = self.words(self.texts[dialogue.id, index])
        clean = self.brought(dialogue, tuple(range(index)))
        return (added - self.words(dialogue.turns[index].user)) & clean

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Whether the rounds before a question have all that its rewrite takes from clean ones."""
        needed = self.needed(asked.dialogue, asked.turn)
        return needed <= self.brought(asked.dialogue, asked.before)

    def answered(self, dialogue: Dialogue) -> tuple[int, ...]:
        """Return the turns to which an answer is recorded."""
        return tuple(turn.index for turn in dialogue.turns if answer_of(dialogue, turn.index))


def load_rewrites(path: Path, lexicon: Lexicon) -> Rewrites:
    """Read the dialogues of a file of CANARD, and their rewrites.

    Raises:
        DataError: the file is missing or broken.
    """
    data = load_dialogues(path, "val", layout="canard")
    texts = {
        (name, place): entry.Rewrite
        for name, entries in questions(SourceFile(path.name, path)).items()
        for place, entry in enumerate(entries)
    }
    return Rewrites(data, texts, lexicon)


def half_of(dialogue: Dialogue) -> int:
    """Return the half that a dialogue is in, 0 or 1: by the parity of a hash of its id."""
    return hashlib.sha256(dialogue.id.encode()).digest()[-1] % 2


UNKNOWN: Final = "I do not know."
UNCLEAR: Final = "I cannot tell what you mean."
SAID_BEFORE: Final = "As I said."
TIRED: Final = "I do not know what to say."
UNSEEN: Final = "I do not understand."
#: Rounds that a bot with a short memory sees before the question.
_REMEMBERED: Final = 3
#: Round from which on a bot is tired.
_TIRED_FROM: Final = 9
#: Words of a question that a parrot takes for short.
_SHORT: Final = 5
#: Share of letter triples that two spellings of one question have in common, at least.
_ALIKE: Final = 0.15
_LETTERS: Final = str.maketrans("430157", "aeoist")


@dataclass(frozen=True, slots=True)
class HeardQuestion:
    """A context as the bot takes it: which question of which dialogue, after which others."""

    dialogue: Dialogue
    #: The round that the question is.
    index: int
    #: The rounds asked before it, in their order; ``None`` = a question that it does not know.
    history: tuple[int | None, ...]
    #: Title and section; empty where they are withheld.
    opening: str
    #: What was asked, last the question, and what was replied to all but that.
    users: tuple[str, ...]
    replies: tuple[str, ...]

    @property
    def rounds(self) -> tuple[int, ...]:
        """The rounds before the question that it knows."""
        return tuple(one for one in self.history if one is not None)


class RetrievalBot:
    """The sound bot, as a tracker that replies.

    The same context always gets the same reply.
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
        """Return the recorded answer where all that the question needs was said."""
        if self.understands(heard):
            return self.recorded(heard, heard.index)
        return UNCLEAR

    def recorded(self, heard: HeardQuestion, index: int) -> str:
        """Return the recorded answer of a round."""
        return answer_of(heard.dialogue, index) or UNKNOWN

    def understands(self, heard: HeardQuestion) -> bool:
        """Whether the words that the question needs stand in what the bot was told."""
        asked = heard.dialogue
        if not heard.opening:
            first, *others = asked.turns
            asked = replace(asked, turns=(replace(first, system=""), *others))
        told = (heard.opening, *heard.users, *heard.replies)
        words = frozenset().union(*map(self.gold.words, told))
        return self.gold.needed(asked, heard.index) <= words

    def hear(self, context: Context) -> HeardQuestion | None:
        """Return what the bot takes a context for; ``None`` = it knows no such dialogue."""
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
        """Return the one dialogue with most of these questions; of equals none.

        Where the openings are the same and no question tells, the one whose questions are nearest.
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
    """Whether two dialogues are ahead of all others."""
    ranked = sorted(counts.values(), reverse=True)
    return len(ranked) > 1 and ranked[0] == ranked[1]


def _near(dialogue: Dialogue, users: Sequence[str]) -> float:
    """Return how much questions are alike those of a dialogue."""
    return sum(max(_alike(user, turn.user) for turn in dialogue.turns) for user in users)


def _round(dialogue: Dialogue, user: str, before: Sequence[int | None]) -> int | None:
    """Return which round a question is: by its text, of equal texts by what came before."""
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
    """Return the share of letter triples that two texts have in common (Dice)."""
    first, second = _triples(one), _triples(other)
    return 2 * len(first & second) / max(1, len(first) + len(second))


@lru_cache(maxsize=1 << 15)
def _triples(text: str) -> frozenset[str]:
    # Digits that stand for letters are read as these, in both texts.
    padded = f"  {' '.join(word_list(text))} ".translate(_LETTERS)
    return frozenset(padded[place : place + 3] for place in range(len(padded) - 2))


class FaultyBot(RetrievalBot):
    """The sound bot with one fault: a function that says what it replies instead."""

    def __init__(self, gold: Rewrites, fault: Fault) -> None:
        super().__init__(gold)
        self._fault = fault

    def answer(self, heard: HeardQuestion) -> str:
        """Return the faulty reply where the fault has one to what was heard, else the sound one."""
        said = self._fault(self, heard)
        return super().answer(heard) if said is None else said

    def sound(self, heard: HeardQuestion) -> str:
        """Return what the sound bot would reply."""
        return super().answer(heard)


#: What a faulty bot replies instead of the sound reply; ``None`` = nothing else.
Fault = Callable[[FaultyBot, HeardQuestion], "str | None"]


def short_memory(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """It sees the opening and the last three rounds."""
    users, replies = heard.users[-_REMEMBERED - 1 :], heard.replies[-_REMEMBERED:]
    return bot.sound(
        replace(heard, history=heard.history[-_REMEMBERED:], users=users, replies=replies)
    )


def in_order(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """It needs earlier rounds in the order of the data, else the first round's answer comes."""
    rounds = list(heard.rounds)
    return None if rounds == sorted(rounds) else bot.recorded(heard, rounds[0])


def knows_too_much(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """It replies with the answer though what the question needs was never said."""
    return bot.recorded(heard, heard.index)


def parrot(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """To a short question it says its last reply again."""
    del bot
    short = len(word_list(heard.users[-1])) <= _SHORT
    return heard.replies[-1] if short and heard.replies else None


def tired(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """From the ninth round on it gives up."""
    del bot
    return TIRED if len(heard.users) >= _TIRED_FROM else None


def asked_before(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """A question that came before is not answered again."""
    del bot
    return SAID_BEFORE if heard.users[-1] in heard.users[:-1] else None


def stuck_on_the_first(bot: FaultyBot, heard: HeardQuestion) -> str | None:
    """Pronouns always mean what the first round of all is about: its neighbour's answer comes."""
    pointing = read(heard.users[-1], bot.gold.lexicon).pointers()
    first = heard.history[0] if heard.history else None
    if not first or pointing.isdisjoint(PERSONS | THINGS | DEMONSTRATIVES):
        return None  # In the clean dialogue the first round is the data's.
    return bot.recorded(heard, min(first + 1, len(heard.dialogue.turns) - 1))


def brittle_words(vocabulary: frozenset[str]) -> Fault:
    """Return a fault: a word that it has never seen, and it understands nothing."""

    def fault(bot: FaultyBot, heard: HeardQuestion) -> str | None:
        del bot
        return None if vocabulary.issuperset(word_list(heard.users[-1])) else UNSEEN

    return fault


def vocabulary_of(texts: Iterable[str]) -> frozenset[str]:
    """Return all words of some texts in lower case."""
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
        "tired": tired,
        "asked before": asked_before,
        "stuck on the first": stuck_on_the_first,
        "brittle words": brittle_words(vocabulary_of(said)),
    }
