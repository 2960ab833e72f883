"""Fifteen small bots with five planted faults each, and the dialogues that they understand.

`own/planted_bots.toml` describes them. Each bot knows its sentences and finds the one that is most
similar to an utterance, so that slips do not matter. Five topics of each bot have a fault: an
additional rule that looks at the spelling, as a person might have written it.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

from pytest_dstfuzz import Campaign, Settings
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.files import read_text
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.trackers.tracker import Prediction

_PATH: Final = Path(__file__).parent / "own" / "planted_bots.toml"
_WORD: Final = re.compile(r"[\w']+")
#: Number of turns with a topic in a dialogue.
_TOPICS: Final = 4
_ANSWER: Final = "All right, I have noted that."
_FALLBACK: Final = "I am afraid I did not get that."


class Fault(NamedTuple):
    """A rule that looks at the spelling of an utterance."""

    kind: str  #: A name in `_KINDS`.
    word: str = ""  #: The word or mark that the rule looks at, if any.
    effect: str = "lost"  #: ``lost``, or ``another``, if the bot takes another value.


class Sentence(NamedTuple):
    """A sentence that a bot understands."""

    text: str
    topic: str = ""  #: ``""`` for the ends of dialogues.
    value: str = ""  #: As the sentence writes it.


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _is_missing(said: str, _clean: Sentence, word: str) -> bool:
    return word not in _words(said)


def _lost_apostrophe(said: str, _clean: Sentence, word: str) -> bool:
    return word.replace("'", "") in _words(said)


def _lost_mark(said: str, clean: Sentence, word: str) -> bool:
    return said.count(word) < clean.text.count(word)


def _lost_capital(said: str, clean: Sentence, word: str) -> bool:
    if word == "first":
        return said[:1].islower()
    return clean.value not in said and clean.value.lower() in said.lower()


def _near_value(said: str, clean: Sentence, _word: str) -> bool:
    right = _words(clean.text)
    place = right.index(clean.value.lower())
    neighbour = right[place - 1 if place else 1]
    return _words(said).count(neighbour) < right.count(neighbour)


def _in_value(said: str, clean: Sentence, _word: str) -> bool:
    return clean.value.lower() not in _words(said)


def _joined(said: str, clean: Sentence, _word: str) -> bool:
    return any("".join(pair) in _words(said) for pair in pairwise(_words(clean.text)))


def _said_twice(said: str, _clean: Sentence, _word: str) -> bool:
    return any(one == other for one, other in pairwise(_words(said)))


def _dropped(said: str, clean: Sentence, _word: str) -> bool:
    wanted, found = Counter(_words(clean.text)), Counter(_words(said))
    return found < wanted


def _strange(said: str, clean: Sentence) -> set[str]:
    return {*_words(said)} - {*_words(clean.text)}


def _doubled_letter(said: str, clean: Sentence, _word: str) -> bool:
    right = _words(clean.text)
    return any(
        one == other and word[:place] + word[place + 1 :] in right
        for word in _strange(said, clean)
        for place, (one, other) in enumerate(pairwise(word))
    )


def _swapped_letters(said: str, clean: Sentence, _word: str) -> bool:
    right = {"".join(sorted(word)) for word in _words(clean.text)}
    return any("".join(sorted(word)) in right for word in _strange(said, clean))


def _first_word(said: str, clean: Sentence, _word: str) -> bool:
    return _words(said)[:1] != _words(clean.text)[:1]


def _two_words(said: str, clean: Sentence, _word: str) -> bool:
    return (Counter(_words(clean.text)) - Counter(_words(said))).total() > 1


#: Kind of fault -> whether an utterance has the slip, given the clean sentence and the word.
_KINDS: Final[Mapping[str, Callable[[str, Sentence, str], bool]]] = {
    "cue": _is_missing,
    "apostrophe": _lost_apostrophe,
    "mark": _lost_mark,
    "case": _lost_capital,
    "near": _near_value,
    "value": _in_value,
    "joined": _joined,
    "repeat": _said_twice,
    "dropped": _dropped,
    "doubled": _doubled_letter,
    "swapped": _swapped_letters,
    "first": _first_word,
    "two": _two_words,
}


class Topic(NamedTuple):
    """A topic as the bot knows it."""

    name: str
    values: tuple[str, ...]
    wordings: tuple[str, ...]
    fault: Fault | None


class Bot:
    """A bot with faults. It answers with states, tool calls or replies."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.name: str = about["name"]
        self.use: str = about["use"]
        self.answers: str = about["answers"]
        self.reader: str = about["reader"]
        self._endings: tuple[str, ...] = tuple(about["endings"])
        self._topics = {
            one["name"]: Topic(
                one["name"],
                tuple(one["values"]),
                tuple(one["wordings"]),
                Fault(**one["fault"]) if "fault" in one else None,
            )
            for one in about["topics"]
        }
        #: Topic -> kind of its fault.
        self.faults = {one.name: one.fault.kind for one in self._topics.values() if one.fault}
        self._read = lru_cache(maxsize=1 << 15)(self._read_anew)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences that the bot understands."""
        said = [
            Sentence(wording.format(value), topic.name, value)
            for topic in self._topics.values()
            for wording in topic.wordings
            for value in topic.values
        ]
        return (*said, *map(Sentence, self._endings))

    @cached_property
    def _bags(self) -> list[dict[str, float]]:
        bags = [Counter(_trigrams(one.text)) for one in self.sentences]
        spread = Counter(part for bag in bags for part in bag)
        rarity = {part: math.log(1 + len(bags) / count) for part, count in spread.items()}
        return [_unit({part: n * rarity[part] for part, n in bag.items()}) for bag in bags]

    def _read_anew(self, said: str) -> Sentence:
        """Return the sentence that is most similar to an utterance."""
        if self.reader == "letters":
            known = [one.text.lower() for one in self.sentences]
            return self.sentences[process.extractOne(said.lower(), known, scorer=OSA.distance)[2]]
        if self.reader == "trigrams":
            asked = Counter(_trigrams(said))
            scores = [sum(asked[part] * size for part, size in bag.items()) for bag in self._bags]
            return self.sentences[scores.index(max(scores))]
        heard = _words(said)
        lost = [
            sum(min(OSA.distance(word, other) / len(word) for other in heard) for word in right)
            / len(right)
            for right in (_words(one.text) for one in self.sentences)
        ]
        return self.sentences[lost.index(min(lost))]

    def understand(self, said: str, faults: Collection[str]) -> tuple[str, str]:
        """Return the topic and the value of an utterance, or two empty texts.

        The rules of the topics in ``faults`` err.
        """
        found = self._read(said)
        if not found.topic:
            return "", ""
        topic, value = self._topics[found.topic], found.value.lower()
        fault = topic.fault if topic.name in faults else None
        if fault and _KINDS[fault.kind](said, found, fault.word):
            if fault.effect == "lost":
                return "", ""
            place = topic.values.index(found.value) + 1
            value = topic.values[place % len(topic.values)].lower()
        return topic.name, value

    def results(self, users: Sequence[str], faults: Collection[str]) -> Mapping[str, str]:
        """Return what the answer to the last utterance contains."""
        heard = users if self.answers == "states" else users[-1:]
        found = (self.understand(said, faults) for said in heard)
        return {topic: value for topic, value in found if topic}

    def causes(self, context: Context) -> tuple[str, ...]:
        """Return the faults that each alone explain the bot's mistake in a context."""
        users = context.user_utterances
        right = self.results(users, ())
        if self.results(users, self.faults) == right:
            return ()
        return tuple(
            one for one in self.faults if self.results(users, {*self.faults} - {one}) == right
        )

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        """Return one state for each context."""
        users = (context.user_utterances for context in contexts)
        return [Prediction(BeliefState(self.results(one, self.faults))) for one in users]

    def answer(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | str:
        """Return the reply to the last message, or the message with a tool call."""
        found = self.results([str(messages[-1]["content"])], self.faults)
        if not found:
            return _FALLBACK
        ((topic, value),) = found.items()
        if self.answers == "calls":
            function = {"name": f"note_{topic}", "arguments": json.dumps({topic: value})}
            call = {"id": "call_1", "type": "function", "function": function}
            return {"role": "assistant", "tool_calls": [call]}
        values = [one.lower() for one in self._topics[topic].values]
        number = 100 * [*self._topics].index(topic) + 7 * values.index(value) + 12
        return f"You find all about {topic} and {value} on page {number}."

    def dialogues(self, count: int) -> DialogueSet:
        """Return dialogues of some turns with a topic each, and an end."""
        made = [self._dialogue(number) for number in range(count)]
        ontology = Ontology(
            {name: tuple(map(str.lower, one.values)) for name, one in self._topics.items()}
        )
        return DialogueSet(self.name, "test", tuple(made), ontology)

    def _dialogue(self, number: int) -> Dialogue:
        rng = stream(0, "planted", self.name, number)
        topics = [*self._topics.values()]
        state: dict[str, str] = {}
        turns: list[Turn] = []
        for place in rng.permutation(len(topics))[:_TOPICS]:
            topic = topics[place]
            value = str(rng.choice(topic.values))
            state[topic.name] = value.lower()
            user = str(rng.choice(topic.wordings)).format(value)
            turns.append(Turn(len(turns), _ANSWER if turns else "", user, BeliefState(state)))
        ending = str(rng.choice(self._endings))
        turns.append(Turn(len(turns), _ANSWER, ending, BeliefState(state)))
        return Dialogue(f"{self.name.replace(' ', '-')}-{number:02d}", tuple(turns))

    def campaign(self, data: DialogueSet, settings: Settings) -> Campaign:
        """Return a campaign that tests the bot."""
        if self.answers == "states":
            return Campaign(self, data, settings)
        outcome = "tool-calls" if self.answers == "calls" else "reply"
        settings = settings.replace_options(outcome=outcome, repeatable="yes")
        return Campaign(self.answer, data, settings)


def _trigrams(text: str) -> list[str]:
    text = f"  {text.lower()} "
    return [text[place : place + 3] for place in range(len(text) - 2)]


def _unit(bag: Mapping[str, float]) -> dict[str, float]:
    size = math.sqrt(sum(value * value for value in bag.values()))
    return {part: value / size for part, value in bag.items()}


@cache
def bots() -> tuple[Bot, ...]:
    """Return all bots."""
    return tuple(map(Bot, tomllib.loads(read_text(_PATH))["bots"]))
