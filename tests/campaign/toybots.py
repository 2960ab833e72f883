"""Small rule-based trackers and scripted perturbations: real objects, worked by hand."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

from pytest_dstfuzz.campaign.engine import CampaignEngine
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.options import PROFILES, Profile
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Context,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
)
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.perturb.words import Action, Edit, Variant
from pytest_dstfuzz.relations.registry import relation_for
from pytest_dstfuzz.relations.relation import UNCHANGED, Expectation, Scenes
from pytest_dstfuzz.search.protocol import Feedback, Proposal, Search, SearchTask
from pytest_dstfuzz.trackers.tracker import Prediction

#: What the fixture ``play`` gives: builds a scripted campaign.
Play = Callable[..., SimpleNamespace]

WORDS = {
    "north": ("hotel-area", "north"),
    "south": ("hotel-area", "south"),
    "cheap": ("hotel-price", "cheap"),
    "chinese": ("food-kind", "chinese"),
    "italian": ("food-kind", "italian"),
}
ONTOLOGY = Ontology(
    {
        "hotel-area": ("north", "south"),
        "hotel-price": ("cheap",),
        "food-kind": ("chinese", "italian"),
    }
)


@dataclass
class WordBot:
    """Fills a slot when its word is said; the newest word wins, nothing is forgotten."""

    words: Mapping[str, tuple[str, str]] = field(default_factory=lambda: WORDS)
    asked: list[Context] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def predict(self, contexts: Sequence[Context]) -> list[Prediction]:
        self.batches.append(len(contexts))
        self.asked.extend(contexts)
        return [self.answer(context) for context in contexts]

    def answer(self, context: Context) -> Prediction:
        return Prediction(BeliefState(self.state(context)))

    def state(self, context: Context) -> dict[str, str]:
        said = [word for text in context.user_utterances for word in text.split()]
        return dict(self.words[word] for word in said if word in self.words)


class PairBot(WordBot):
    """Like `WordBot`, but two misspelt turns in one context make it forget the price."""

    def state(self, context: Context) -> dict[str, str]:
        state = super().state(context)
        if sum("!" in text for text in context.user_utterances) >= 2:
            state.pop("hotel-price", None)
        return state


class UnsureBot(WordBot):
    """As sure of the area as the checksum of the newest utterance says, ``?`` makes it unsure."""

    def answer(self, context: Context) -> Prediction:
        doubt = 0.9 if "?" in context.user else zlib.crc32(context.user.encode()) % 50 / 100
        return Prediction(BeliefState(self.state(context)), {"hotel-area": doubt})


class FussyBot(WordBot):
    """Raises on a context in which the newest utterance holds the word ``boom``."""

    def answer(self, context: Context) -> Prediction:
        if "boom" in context.user.split():
            raise ValueError(f"cannot read {context.user!r}")
        return super().answer(context)


class PanicError(BaseException):
    """A panic in Rust as Python sees it: no `Exception`."""


def talk(name: str, *users: str, labels: Sequence[Mapping[str, str] | None] = ()) -> Dialogue:
    """Return a dialogue of user utterances, with the labels where given."""
    states = [None if label is None else BeliefState(label) for label in labels]
    states += [None] * (len(users) - len(states))
    return Dialogue(
        name,
        tuple(Turn(i, f"system {i}" if i else "", user, states[i]) for i, user in enumerate(users)),
    )


def data_of(*dialogues: Dialogue, ontology: Ontology | None = ONTOLOGY) -> DialogueSet:
    return DialogueSet("toy", "test", tuple(dialogues), ontology)


class NumberSearch(Search):
    """Hands the number of the variant to the perturber."""

    name = "number"

    def turn(self, task: SearchTask) -> NumberTurn:
        return NumberTurn(task)


@dataclass
class NumberTurn:
    task: SearchTask

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:  # noqa: ARG002
        action = Action((float(number),), 1)
        return Proposal(self.task.perturber.apply(self.task.source, action), action)


@dataclass
class SpySearch(Search):
    """Like `NumberSearch`, but it writes down what it is told; a draw counts on by ``stride``."""

    adaptive: bool = True
    steps: int = 1
    stride: int = 0
    told: dict[tuple[str, int, int, int], tuple[Feedback, ...]] = field(default_factory=dict)

    name = "spy"

    def context_variant(self, number: int) -> int:
        return number - number % self.steps

    def turn(self, task: SearchTask) -> SpyTurn:
        return SpyTurn(self, task)


@dataclass
class SpyTurn:
    search: SpySearch
    task: SearchTask

    def propose(self, number: int, draw: int, seen: Sequence[Feedback]) -> Proposal:
        assert len(seen) == number
        task = self.task
        self.search.told[task.dialogue.id, task.turn_index, number, draw] = tuple(seen)
        action = Action((float(number * max(self.search.stride, 1) + draw),), 1)
        return Proposal(task.perturber.apply(task.source, action), action)


@dataclass
class Script:
    """A perturber that looks its variants up: clean utterance -> texts by number.

    A text that starts with ``VETO`` or ``OVER`` is not valid, one that equals the
    utterance is vacuous; an utterance without an entry gives only vacuous variants.
    """

    texts: Mapping[str, Sequence[str]]
    prepared: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    applied: int = 0
    profile: Profile = PROFILES["edit-rate"]

    def prepare(
        self, utterance: str, values: tuple[str, ...], system: str = "", said: Iterable[str] = ()
    ) -> str:
        del said
        self.prepared.append((utterance, tuple(values), system))
        return utterance

    def apply(self, source: str, action: Action) -> Variant:
        self.applied += 1
        number = int(action.vector[0])
        texts = self.texts.get(source, ())
        text = texts[number] if number < len(texts) else source
        if text == source:
            return Variant(source, text, (), 0.0, 0.0, "vacuous", "nothing was changed")
        edit = Edit("word_replace", "misspelling", 0, len(source), source, text)
        for mark, status in (("VETO", "vetoed"), ("OVER", "over_rate")):
            if text.startswith(mark):
                return Variant(source, text, (edit,), 0.1, 0.1, status, mark.lower())
        return Variant(source, text, (edit,), 0.1, 0.0, "valid")


def scripted(
    campaign: CampaignEngine,
    texts: Mapping[str, Sequence[str]],
    settings: Settings,
    data: DialogueSet,
    search: Search | None = None,
) -> Script:
    """Let ``campaign`` take its variants from a script; return the script."""
    script = Script(texts)
    relation = relation_for(settings.variant.relation, data)
    door = campaign._predictor
    campaign._rules = CampaignSpec(
        settings.variant,
        data,
        relation,
        search or NumberSearch(),
        script,  # type: ignore[arg-type]
        Scenes(data, load_lexicon(), Locks(load_lexicon()), settings.variant.seed),
        door.decider,
        door.repeats,
    )
    return script


def misses(expected: Expectation = UNCHANGED) -> Callable[[Outcome, Outcome], bool]:
    """Return a function that judges one answer by the expected changes alone."""
    return lambda before, found: expected.against(before).judge(before, found).kind == "violation"
