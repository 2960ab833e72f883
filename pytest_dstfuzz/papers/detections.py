"""What relations detect in a bot with a planted fault, and whether the fault made it.

A detection is true where the faulty bot replies otherwise than the sound one, in one of the two
contexts that are compared; each bot is asked question by question, with its own replies before.
Of relations between two contexts a question is one detection, as MORTAR counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, cast

from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.comparisons.registry import comparison_by_name
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.papers.canard import Rewrites
from pytest_dstfuzz.papers.retrieval_bot import FaultyBot, RetrievalBot, faults
from pytest_dstfuzz.relations.checked import CheckedRelation
from pytest_dstfuzz.relations.contexts.mr import (
    ContextsAgree,
    ContextsDiffer,
    LostContext,
    SameContext,
)
from pytest_dstfuzz.relations.contexts.questions import without_opening
from pytest_dstfuzz.relations.metal import MetalLeet, MetalSynonyms, MetalTypos, MetalWord
from pytest_dstfuzz.relations.relation import MOST, Relation
from pytest_dstfuzz.relations.rewrite import Begun, BySearch, Inapplicable, Rewrite
from pytest_dstfuzz.relations.scene import Scene
from pytest_dstfuzz.trackers.rolling import RollingReplies
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker

SOUND: Final = "sound"
MORTAR: Final = "mortar"
METAL: Final = "metal"
#: The relations of each family; of MORTAR's sequences each perturbation is drawn once.
FAMILIES: Final[Mapping[str, tuple[type[Relation], ...]]] = {
    MORTAR: (SameContext, LostContext, ContextsAgree, ContextsDiffer),
    METAL: (MetalSynonyms, MetalWord, MetalTypos, MetalLeet),
}


@dataclass(frozen=True, slots=True)
class BotRun:
    """How bots are tested."""

    gold: Rewrites
    data: DialogueSet
    settings: Settings
    #: Whether the bot's own replies stand in the history of a question.
    own: bool


@dataclass(frozen=True, slots=True)
class FoundCheck:
    """One check of a relation that was run."""

    bot: str
    family: str
    relation: str
    dialogue: str
    turn: int
    case: str
    #: The context of the reference, and the other one, as the bot saw them; what it replied.
    contexts: tuple[Context, Context]
    before: str
    after: str
    broken: bool
    #: Of a bot with a fault: whether the fault shows in one of the two replies.
    true: bool


@dataclass(frozen=True, slots=True)
class BotResults:
    """All that the relations found out about one bot."""

    bot: str
    #: Family -> results of its relations.
    turns: dict[str, list[TurnResult]]
    found: tuple[FoundCheck, ...]
    #: Family -> questions that the bot was asked because of it, those of histories included.
    requests: dict[str, int]


class _Recorded(CheckedRelation):
    """A relation whose rewrites are kept, by dialogue, turn and what they say of themselves."""

    def __init__(self, relation: Relation) -> None:
        super().__init__(relation, relation.name)
        self.rewrites: dict[tuple[str, int, str], Rewrite] = {}

    def begin(self, scene: Scene) -> Begun:
        """Return what the relation makes of a turn, and keep it."""
        begun: Begun = self.wrapped.begin(scene)
        if isinstance(begun, Inapplicable | BySearch) or not isinstance(begun, Iterable):
            return begun
        found = list(islice(begun, MOST))
        for one in found:
            self.rewrites.setdefault((scene.dialogue.id, scene.index, one.about), one)
        return found


class AskedBot:
    """A bot that says what it replies to a context, and how often it was asked."""

    def __init__(self, bot: RetrievalBot, *, own: bool) -> None:
        rolling = RollingReplies(bot, 1 << 30)
        self.tracker: RollingReplies | RetrievalBot = rolling if own else bot
        self._kept: dict[Context, str] = {}

    def reply(self, context: Context) -> str:
        """Return the reply to a context."""
        if context not in self._kept:
            (answer,) = self.tracker.predict([context])
            self._kept[context] = (answer.reply or "") if isinstance(answer, Prediction) else ""
        return self._kept[context]

    def seen(self, context: Context) -> Context:
        """Return a context as the bot saw it: with its own replies, where they are its history."""
        if isinstance(self.tracker, RetrievalBot):
            return context
        first, *later = context.exchanges
        places = range(1, len(context.exchanges))
        own = (self.reply(Context(context.exchanges[:place])) for place in places)
        said = (Exchange(reply, one.user) for reply, one in zip(own, later, strict=True))
        return Context((first, *said))

    @property
    def requests(self) -> int:
        """Questions asked so far."""
        return getattr(self.tracker, "requests", 0)


def bot_of(gold: Rewrites, name: str) -> RetrievalBot:
    """Return the bot with a fault of some name, or the sound one."""
    return RetrievalBot(gold) if name == SOUND else FaultyBot(gold, faults(gold)[name])


def withheld(data: DialogueSet) -> DialogueSet:
    """Return dialogues whose titles are withheld."""
    return replace(data, dialogues=tuple(map(without_opening, data.dialogues)))


def run_bot(run: BotRun, name: str, families: Iterable[str], sound: AskedBot) -> BotResults:
    """Test one bot with all relations of some families; ``sound`` says what is right."""
    asked = AskedBot(bot_of(run.gold, name), own=run.own)
    turns: dict[str, list[TurnResult]] = {}
    found: list[FoundCheck] = []
    requests: dict[str, int] = {}
    predictor = predictor_for(run.settings, run.data, cast("Tracker", asked.tracker))
    comparison = comparison_by_name(None, run.settings.reply)
    for family in families:
        before = asked.requests
        for make in FAMILIES[family]:
            relation = _Recorded(make(1) if family == MORTAR else make())  # type: ignore[call-arg]  # draws
            settings = run.settings if family == MORTAR else _once(run.settings)
            plan = [(dialogue, len(dialogue.turns) - 1) for dialogue in run.data.dialogues]
            engine = CampaignEngine(
                settings,
                run.data,
                predictor,
                run.gold.lexicon,
                plan=plan,
                relation=relation,
                comparison=comparison,
            )
            results = list(engine.run())
            turns.setdefault(family, []).extend(results)
            found += _found(name, family, relation, results, (asked, sound))
        requests[family] = asked.requests - before
    return BotResults(name, turns, tuple(found), requests)


def _once(settings: Settings) -> Settings:
    return settings.replace_options(variants=1)


def _found(
    bot: str,
    family: str,
    relation: _Recorded,
    results: Iterable[TurnResult],
    replies: tuple[AskedBot, AskedBot],
) -> Iterator[FoundCheck]:
    for turn in results:
        run = [one for one in turn.variants if one.valid and one.state is not None]
        single = [one for one in run if " " not in one.case]
        checks = [_one(bot, family, relation, turn, one, replies) for one in single]
        pairs = [
            _one(bot, family, relation, turn, one, replies) for one in run if one not in single
        ]
        if pairs:
            # Of a question the pair that breaks the relation by the fault, if there is one.
            checks.append(max(pairs, key=lambda one: (one.broken, one.true)))
        yield from checks


def _one(
    bot: str,
    family: str,
    relation: _Recorded,
    turn: TurnResult,
    variant: VariantResult,
    replies: tuple[AskedBot, AskedBot],
) -> FoundCheck:
    rewrite = relation.rewrites[turn.dialogue_id, turn.turn_index, variant.about]
    asked, sound = replies
    contexts = rewrite.reference, rewrite.seen
    before, after = map(asked.reply, contexts)
    return FoundCheck(
        bot=bot,
        family=family,
        relation=relation.name,
        dialogue=turn.dialogue_id,
        turn=turn.turn_index,
        case=variant.case,
        contexts=(asked.seen(contexts[0]), asked.seen(contexts[1])),
        before=before,
        after=after,
        broken=variant.outcome == "violation",
        true=(before, after) != tuple(map(sound.reply, contexts)),
    )
