"""Tests bots with the relations of MORTAR and METAL, as in MORTAR's paper."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple, cast

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.engine import CampaignEngine, predictor_for
from pytest_dstfuzz.campaign.figures import ratio, tally_results
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult
from pytest_dstfuzz.comparisons.registry import DEFAULT, comparison_by_name
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import choice, integer
from pytest_dstfuzz.dialogue.dialogues import Context, DialogueSet, Exchange
from pytest_dstfuzz.errors import UserError, unknown_name
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.papers.canard import (
    PERTURBED,
    FaultyBot,
    RetrievalBot,
    Rewrites,
    faults,
    load_rewrites,
)
from pytest_dstfuzz.papers.command_line import say
from pytest_dstfuzz.papers.formatting import (
    NONE,
    Rate,
    Resamples,
    csv_text,
    markdown_table,
    rate_text,
    share,
)
from pytest_dstfuzz.relations.checks import CheckedRelation
from pytest_dstfuzz.relations.contexts import (
    ContextsAgree,
    ContextsDiffer,
    LostContext,
    SameContext,
    without_opening,
)
from pytest_dstfuzz.relations.metal import MetalLeet, MetalSynonyms, MetalTypos, MetalWord
from pytest_dstfuzz.relations.relation import (
    MOST,
    BySearch,
    Inapplicable,
    Relation,
    Rewrite,
    Scene,
    TurnStart,
)
from pytest_dstfuzz.seeding import stream
from pytest_dstfuzz.totals.cases import CaseFigures, CasesTally
from pytest_dstfuzz.trackers.rolling import RollingReplies
from pytest_dstfuzz.trackers.tracker import Prediction, Tracker

SOUND: Final = "sound"
MORTAR: Final = "mortar"
METAL: Final = "metal"
#: Relations of each family. In MORTAR's sequences, each perturbation is drawn once.
FAMILIES: Final[Mapping[str, tuple[type[Relation], ...]]] = {
    MORTAR: (SameContext, LostContext, ContextsAgree, ContextsDiffer),
    METAL: (MetalSynonyms, MetalWord, MetalTypos, MetalLeet),
}


@dataclass(frozen=True, slots=True)
class BotRun:
    """The settings for testing a bot."""

    gold: Rewrites
    data: DialogueSet
    settings: Settings
    #: Whether the history of a question has the bot's own replies.
    own: bool


@dataclass(frozen=True, slots=True)
class FoundCheck:
    """One comparison of two replies by a relation."""

    bot: str
    family: str
    relation: str
    dialogue: str
    turn: int
    case: str
    #: Contexts of the reference and of the rewrite, as seen by the bot, and the two replies.
    contexts: tuple[Context, Context]
    before: str
    after: str
    broken: bool
    #: Whether one of the two replies differs from that of the sound bot.
    true: bool


@dataclass(frozen=True, slots=True)
class BotResults:
    """The results of one bot with all relations."""

    bot: str
    #: Family -> results of its relations.
    turns: dict[str, list[TurnResult]]
    found: tuple[FoundCheck, ...]
    #: Family -> number of questions to the bot, including those of histories.
    requests: dict[str, int]


class _RecordingRelation(CheckedRelation):
    """Wraps a relation, and stores its rewrites."""

    def __init__(self, relation: Relation) -> None:
        super().__init__(relation, relation.name)
        self.rewrites: dict[tuple[str, int, str], Rewrite] = {}

    def begin(self, scene: Scene) -> TurnStart:
        """Return the rewrites of a turn, and store them by dialogue, turn and description."""
        begun: TurnStart = self.wrapped.begin(scene)
        if isinstance(begun, Inapplicable | BySearch) or not isinstance(begun, Iterable):
            return begun
        found = list(islice(begun, MOST))
        for one in found:
            self.rewrites.setdefault((scene.dialogue.id, scene.index, one.about), one)
        return found


class AskedBot:
    """A bot whose replies are cached and whose questions are counted."""

    def __init__(self, bot: RetrievalBot, *, own: bool) -> None:
        rolling = RollingReplies(bot, 1 << 30)
        self.tracker: RollingReplies | RetrievalBot = rolling if own else bot
        self._kept: dict[Context, str] = {}

    def reply(self, context: Context) -> str:
        """Return the bot's reply to a context."""
        if context not in self._kept:
            (answer,) = self.tracker.predict([context])
            self._kept[context] = (answer.reply or "") if isinstance(answer, Prediction) else ""
        return self._kept[context]

    def seen(self, context: Context) -> Context:
        """Return a context as the bot sees it. It may contain the bot's own replies."""
        if isinstance(self.tracker, RetrievalBot):
            return context
        first, *later = context.exchanges
        places = range(1, len(context.exchanges))
        own = (self.reply(Context(context.exchanges[:place])) for place in places)
        said = (Exchange(reply, one.user) for reply, one in zip(own, later, strict=True))
        return Context((first, *said))

    @property
    def requests(self) -> int:
        """Number of questions to the bot so far."""
        return getattr(self.tracker, "requests", 0)


def bot_of(gold: Rewrites, name: str) -> RetrievalBot:
    """Return the bot with the named fault, or the sound bot, which has no fault."""
    return RetrievalBot(gold) if name == SOUND else FaultyBot(gold, faults(gold)[name])


def withheld(data: DialogueSet) -> DialogueSet:
    """Return the dialogues without their titles, which the bot must not see."""
    return replace(data, dialogues=tuple(map(without_opening, data.dialogues)))


def run_bot(run: BotRun, name: str, families: Iterable[str], sound: AskedBot) -> BotResults:
    """Test one bot with all relations of some families.

    ``sound`` is the bot without a fault. Its replies count as correct.
    """
    asked = AskedBot(bot_of(run.gold, name), own=run.own)
    turns: dict[str, list[TurnResult]] = {}
    found: list[FoundCheck] = []
    requests: dict[str, int] = {}
    predictor = predictor_for(run.settings, run.data, cast("Tracker", asked.tracker))
    comparison = comparison_by_name(run.settings.reply.compare, run.settings.reply)
    for family in families:
        before = asked.requests
        for make in FAMILIES[family]:
            relation = _RecordingRelation(make(1) if family == MORTAR else make())  # type: ignore[call-arg]  # draws
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
    relation: _RecordingRelation,
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
            # Use the pair of a question that breaks the relation by the fault, if there is one.
            checks.append(max(pairs, key=lambda one: (one.broken, one.true)))
        yield from checks


def _one(
    bot: str,
    family: str,
    relation: _RecordingRelation,
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


DRAWN: Final = 100
DECOYS: Final = 25
_HEAD: Final = """# Is a reply wrong?

Each item shows two conversations with one bot. Its users ask about an article of an encyclopedia.
The bot is told the title and the section of the article. The last question is the same in both
conversations, except perhaps for a few words or letters. The earlier questions may differ. All
replies are the bot's own. If question, title and earlier rounds make clear what is asked, the bot
must reply with a passage of the article. If not, it must say that it does not know or does not
understand. The bot knows the article. If a quoted passage fits the question, assume that it is
true.

For each item: is **at least one of the two last replies** (marked **A** and **B**) wrong for such a
bot? A reply is wrong if it answers another question, if it repeats an earlier reply instead of
answering, if it gives up although the question is clear, or if it answers although the question is
not clear. Write one line for each item, `number,wrong` or `number,fine`, to a file. Judge each item
alone. Some items are fine. Do not look for the code of the bot.
"""


def drawn(
    found: Sequence[FoundCheck], family: str, seed: int, decoys: int = DECOYS
) -> list[tuple[FoundCheck, bool]]:
    """Draw violations of a family of relations for a judge, mixed with decoys.

    The draws are uniform. Decoys are checks that passed. Each returned item has a flag, which is
    true for a violation.
    """
    rng = stream(seed, "sheet", family)
    chosen: list[tuple[FoundCheck, bool]] = []
    for broken, count in ((True, DRAWN), (False, decoys)):
        of = [one for one in found if one.family == family and one.broken == broken]
        places = rng.choice(len(of), size=min(count, len(of)), replace=False)
        chosen += [(of[place], broken) for place in sorted(places.tolist())]
    return [chosen[place] for place in rng.permutation(len(chosen))]


def sheet_text(items: Iterable[tuple[FoundCheck, bool]]) -> str:
    """Return the sheet for a human judge, in Markdown."""
    lines = [_HEAD]
    for number, (one, _) in enumerate(items, start=1):
        lines += [f"## {number}", "", *_conversation("A", one.contexts[0], one.before)]
        lines += ["", *_conversation("B", one.contexts[1], one.after), ""]
    return "\n".join(lines) + "\n"


def _conversation(name: str, context: Context, reply: str) -> Iterator[str]:
    """Yield one conversation. ``name`` marks its last reply."""
    opening = context.exchanges[0].system.replace("\n", " / ")
    yield f"Conversation {name}. Title: {opening or '(withheld)'}"
    yield ""
    for place, exchange in enumerate(context.exchanges):
        if place:
            yield f"- bot: {exchange.system}"
        yield f"- user: {exchange.user}"
    yield f"- **{name}: bot: {reply}**"


def key_text(items: Sequence[tuple[FoundCheck, bool]]) -> str:
    """Return the answer key of a sheet as CSV."""
    rows = [(number, *item) for number, item in enumerate(items, start=1)]
    return csv_text(
        {
            "number": lambda row: row[0],
            "bot": lambda row: row[1].bot,
            "relation": lambda row: row[1].relation,
            "dialogue": lambda row: row[1].dialogue,
            "turn": lambda row: row[1].turn,
            "case": lambda row: row[1].case,
            "detection": lambda row: "yes" if row[2] else "decoy",
            "true": lambda row: "yes" if row[1].true else "no",
        },
        rows,
    )


#: Published means over six chat models on other data: RETC, BPTC, Rate+, precision.
_PUBLISHED: Final = {
    MORTAR: ("100.0 %", "11.36", "62.0 %", "70.5 %"),
    METAL: ("99.7 %", "4.49", "61.2 %", "45.5 %"),
}
#: Published shares of MORTAR's bugs, by relation and by perturbation.
_SHARES: Final = {
    "same-context": "80.0 %",
    "lost-context": "0.04 %",
    "contexts-agree": "19.4 %",
    "contexts-differ": "0.5 %",
    "DRS": "36.1 %",
    "DRR": "21.3 %",
    "DRD": "26.1 %",
    "DSR": "14.0 %",
    "DSD": "22.5 %",
}
#: Published mean numbers of L1, L2 and L3, and CV.
_LEVELS: Final = {MORTAR: "17,366 / 5,422 / 104, 0.654", METAL: "6,799 / 2,138 / 31, 0.663"}
#: Published mean shares of unique bugs: of L1, L2, L3 and all bugs. METAL's shares in parentheses
#: use only the dialogues that MORTAR could use, too.
_UNIQUE: Final = {
    MORTAR: ("30.3 %", "45.4 %", "32.6 %", "35.6 %"),
    METAL: ("21.6 % (2.7 %)", "35.2 % (19.4 %)", "24.2 % (14.9 %)", "25.9 % (8.0 %)"),
}
_NAMES: Final = {MORTAR: "MORTAR", METAL: "METAL"}


@dataclass(frozen=True, slots=True)
class MortarTable:
    """The results so far. The first way of testing is the main one."""

    data: DialogueSet
    #: Way to test -> results of the bots.
    ways: dict[str, list[BotResults]]
    command: str
    seed: int
    history: str
    comparison: str


class _FaultRow(NamedTuple):
    way: str
    bot: str
    family: str
    relation: str
    checks: int
    detections: int
    true: int


def _rows(table: MortarTable) -> Iterator[_FaultRow]:
    for way, bots in table.ways.items():
        for bot in bots:
            for name, group in groupby(bot.found, key=lambda one: (one.family, one.relation)):
                found = list(group)
                broken = [one for one in found if one.broken]
                yield _FaultRow(
                    way, bot.bot, *name, len(found), len(broken), sum(b.true for b in broken)
                )


def tables(table: MortarTable) -> dict[str, str]:
    """Return the contents of the output files by name."""
    rows = list(_rows(table))
    fields = {name: _getter(name) for name in _FaultRow._fields}
    return {"mortar.md": _markdown(table, rows), "mortar.csv": csv_text(fields, rows)}


def _getter(name: str) -> Callable[[object], object]:
    return lambda row: getattr(row, name)


def _markdown(table: MortarTable, rows: Sequence[_FaultRow]) -> str:
    main, *_ = table.ways
    draws = Resamples([dialogue.id for dialogue in table.data.dialogues], table.seed)
    lines = [
        "# Planted faults",
        "",
        (
            "**Not comparable with the published figures**, which come from six chat models on "
            "CoQA and have their own rows and columns. The figures here come from a bot that looks "
            "up answers, on CANARD."
        ),
        "",
        f"- command: `{table.command}` (pytest-dstfuzz {__version__})",
        (
            f"- data: CANARD's development split, {len(table.data.dialogues):,} dialogues, "
            f"{table.data.turn_count():,} questions; history: {table.history}"
        ),
        (
            "- a detection is true if the fault changes one of the two compared replies, and false "
            "if the sound bot gives the same two replies as the bot with the fault"
        ),
        f"- comparison of replies: `{table.comparison}`",
        *_requests(table.ways[main]),
    ]
    lines += ["", "## Which relation finds which fault", ""]
    lines.append(
        f"Number of detections, and the share of true ones ({main}). All detections in the sound "
        "bot are false: errors of the context check or of the edit."
    )
    lines += ["", *_by_fault([row for row in rows if row.way == main])]
    lines += ["", "## Precision", ""]
    lines.append(
        "Share of true detections in the bots with a fault. Brackets: 95 % intervals over "
        "dialogues."
    )
    lines += ["", *_precision(table, draws)]
    lines += ["", f"## Test cases ({main})", ""]
    lines.append(
        "MORTAR divides the number of bugs by the number of test cases. A test case is a dialogue "
        "under one perturbation, and it counts even if no relation checks a question in it."
    )
    lines += ["", *_cases(table.ways[main])]
    lines += ["", "## Bugs by relation and perturbation", ""]
    lines += _contributions(table.ways[main])
    lines += [*_levels(table), *_uniqueness(table)]
    return "\n".join(lines) + "\n"


def _requests(bots: Sequence[BotResults]) -> Iterator[str]:
    sums = {name: sum(bot.requests.get(name, 0) for bot in bots) for name in FAMILIES}
    if all(sums.values()):
        yield (
            "- number of questions that all bots were asked, including those of histories: MORTAR "
            f"{sums[MORTAR]:,} (with "
            f"the clean dialogues, which METAL needs too), METAL {sums[METAL]:,}"
        )


def _by_fault(rows: Sequence[_FaultRow]) -> list[str]:
    names = [_name(make) for makes in FAMILIES.values() for make in makes]
    cells = []
    for bot in dict.fromkeys(row.bot for row in rows):
        of = {row.relation: row for row in rows if row.bot == bot}
        cells.append([bot, *(_cell(of.get(name), sound=bot == SOUND) for name in names)])
    return markdown_table(["bot", *(f"`{name}`" for name in names)], cells)


def _name(make: type[Relation]) -> str:
    return str(make.name)


def _cell(row: _FaultRow | None, *, sound: bool) -> str:
    if row is None:
        return "0"
    if sound or not row.detections:
        return f"{row.detections:,} of {row.checks:,}"
    return f"{row.detections:,} ({share(row.true / row.detections, 0)})"


def _precision(table: MortarTable, draws: Resamples) -> list[str]:
    cells = []
    bots = list(dict.fromkeys(bot.bot for of in table.ways.values() for bot in of))
    bots.remove(SOUND)
    for way, of in table.ways.items():
        for family in FAMILIES:
            found = [one for bot in of for one in bot.found if _counts(one, family)]
            if not found:
                continue
            shares = [_share([one for one in found if one.bot == bot]) for bot in bots]
            known = [one for one in shares if one is not None]
            pooled = rate_text(_pooled(found, draws))
            head = [_NAMES[family], way, f"{len(found):,}", pooled, share(fmean(known))]
            cells.append([*head, *map(share, shares)])
    head = ["relations", "way", "detections", "pooled", "mean of the faults", *bots]
    return markdown_table(head, cells)


def _counts(one: FoundCheck, family: str) -> bool:
    return one.broken and one.family == family and one.bot != SOUND


def _share(found: Sequence[FoundCheck]) -> float | None:
    return ratio(sum(one.true for one in found), len(found))


def _pooled(found: Iterable[FoundCheck], draws: Resamples) -> Rate:
    tally: dict[str, tuple[float, float]] = {}
    for one in found:
        part, whole = tally.get(one.dialogue, (0.0, 0.0))
        tally[one.dialogue] = (part + one.true, whole + 1)
    return draws.rate([tally])


def _together(bot: BotResults, family: str) -> CaseFigures | None:
    found = tally_results(CasesTally(), bot.turns.get(family, [])).figures
    return found[-1] if found else None


def _cases(bots: Sequence[BotResults]) -> list[str]:
    cells = []
    for bot in bots:
        for family, name in _NAMES.items():
            one = _together(bot, family)
            if one is not None:
                bptc = "n/a" if one.bptc is None else f"{one.bptc:.2f}"
                counts = [f"{n:,}" for n in (one.cases, one.detections, one.bugs)]
                cells.append([bot.bot, name, *counts, share(one.retc), bptc, share(one.rate)])
    for family, (retc, bptc, rate, _) in _PUBLISHED.items():
        cells.append(["*published mean*", _NAMES[family], "", "", "", retc, bptc, rate])
    head = ["bot", "relations", "test cases", "checks", "bugs", "RETC", "BPTC", "Rate+"]
    return markdown_table(head, cells)


def _contributions(bots: Sequence[BotResults]) -> list[str]:
    faulty = [bot for bot in bots if bot.bot != SOUND]
    parts: dict[str, int] = {}
    whole = 0
    for bot in faulty:
        for one in tally_results(CasesTally(), bot.turns[MORTAR]).figures[:-1]:
            parts[one.name] = parts.get(one.name, 0) + one.bugs
            whole += one.bugs
            for name, count in one.perturbations.items():
                parts[name] = parts.get(name, 0) + count
    cells = (
        [
            f"`{name}`" if "-" in name else name,
            f"{parts.get(name, 0):,}",
            share(ratio(parts.get(name, 0), whole)),
            published,
        ]
        for name, published in _SHARES.items()
    )
    return markdown_table(["by", "bugs", "share in all faulty bots", "published"], cells)


def _levels(table: MortarTable) -> list[str]:
    bots = _against_answers(table)
    cells = []
    for bot in bots:
        for family, name in _NAMES.items():
            one = _together(bot, family)
            if one is not None and one.levels is not None:
                cv = "n/a" if one.variation is None else f"{one.variation:.3f}"
                cells.append([bot.bot, name, *(f"{n:,}" for n in one.levels), cv, ""])
    if not cells:
        return []
    for family, text in _LEVELS.items():
        cells.append(["*published mean*", _NAMES[family], "", "", "", "", text])
    head = ["bot", "relations", "L1", "L2", "L3", "CV", "published"]
    told = (
        "L1: the clean reply is wrong too. L2: the clean reply is right, in a dialogue with a "
        "wrong one. L3: all clean replies of the dialogue are right. CV: the standard deviation of "
        "a sample of the numbers of L1 and L2, over their mean, as in the published table. The "
        "checks here compare with the recorded answers, as in the published study."
    )
    return ["", "## Levels of bugs", "", told, "", *markdown_table(head, cells)]


def _against_answers(table: MortarTable) -> Sequence[BotResults]:
    """Return the results of the first way that compares replies with recorded answers."""
    found = (
        table.ways[WAYS[name]] for name in ("answers", "published") if WAYS[name] in table.ways
    )
    return next(found, ())


def count_unique(bot: BotResults, family: str) -> tuple[tuple[int, int], ...]:
    """Count the unique bugs and all bugs of a family, for each of the levels L1, L2 and L3.

    A bug is unique if the other family finds no bug at the same question. Bugs at questions
    without a recorded answer have no level and do not count.
    """
    right = {
        (turn.dialogue_id, turn.turn_index): turn.is_right
        for turns in bot.turns.values()
        for turn in turns
        if turn.label is not None and turn.clean_state is not None
    }
    wrong = {dialogue for (dialogue, _), is_right in right.items() if not is_right}
    others = {(one.dialogue, one.turn) for one in bot.found if one.broken and one.family != family}
    counts = [[0, 0], [0, 0], [0, 0]]
    for one in bot.found:
        place = one.dialogue, one.turn
        if one.broken and one.family == family and place in right:
            level = 0 if not right[place] else 1 if one.dialogue in wrong else 2
            counts[level][0] += place not in others
            counts[level][1] += 1
    return tuple((unique, every) for unique, every in counts)


def _uniqueness(table: MortarTable) -> list[str]:
    bots = _against_answers(table)
    cells = []
    for bot in bots:
        for family, name in _NAMES.items():
            levels = count_unique(bot, family)
            pairs = [*levels, tuple(map(sum, zip(*levels, strict=True)))]
            texts = (f"{share(ratio(one, of))} of {of:,}" if of else NONE for one, of in pairs)
            cells.append([bot.bot, name, *texts])
    if not any(METAL in bot.turns for bot in bots):
        return []
    for family, published in _UNIQUE.items():
        cells.append(["*published mean*", _NAMES[family], *published])
    told = (
        "Share of bugs at questions without a bug of the other family of relations. In "
        "parentheses: METAL on the dialogues that MORTAR could use."
    )
    head = ["bot", "relations", "L1", "L2", "L3", "all"]
    return ["", "## Unique bugs", "", told, "", *markdown_table(head, cells)]


_ALL: Final = "all"
#: Ways to test: name in the command -> name in the tables. The first one that is run is reported in
#: full.
WAYS: Final = {
    "main": "needed, title given",
    "checks": "MORTAR's checks",
    "withheld": "needed, title withheld",
    "answers": "against recorded answers",
    "published": "MORTAR's checks, against recorded answers",
}
_BOTH: Final = (MORTAR, METAL)
#: Maximum rewrites per question, more than five sequences can give.
_VARIANTS: Final = 16


def ways(
    gold: Rewrites, *, own: bool, seed: int, compare: str = DEFAULT
) -> Iterator[tuple[str, BotRun, tuple[str, ...]]]:
    """Yield the ways of testing: name, settings, and families of relations."""
    settings = partial(_settings, seed, compare=compare)
    given = partial(BotRun, gold, own=own)
    yield WAYS["main"], given(gold.data, settings()), _BOTH
    yield WAYS["checks"], given(gold.data, settings(context_checks=("mortar",))), (MORTAR,)
    yield WAYS["withheld"], given(withheld(gold.data), settings()), (MORTAR,)
    yield WAYS["answers"], given(gold.data, settings(reference="answer")), _BOTH
    theirs = settings(reference="answer", context_checks=("mortar",))
    yield WAYS["published"], given(gold.data, theirs), _BOTH


def _settings(seed: int, **reply: Any) -> Settings:
    options = {"outcome": "reply", "variants": _VARIANTS, "seed": seed, "perturbations": PERTURBED}
    return Settings.of(**options, **reply)


def run_mortar(
    gold: Rewrites,
    names: Sequence[str],
    *,
    own: bool,
    seed: int,
    only: Sequence[str],
    compare: str = DEFAULT,
) -> Iterator[tuple[str, list[BotResults]]]:
    """Yield for each way of testing the results of all bots."""
    for way, run, families in ways(gold, own=own, seed=seed, compare=compare):
        if way not in only:
            continue
        results = []
        # The correct replies depend only on the data, so they are computed once for all bots.
        sound = AskedBot(RetrievalBot(gold), own=own)
        for name in (SOUND, *names):
            results.append(run_bot(run, name, families, sound))
            broken = sum(one.broken for one in results[-1].found)
            true = sum(one.broken and one.true for one in results[-1].found)
            say(f"{way}: {name}: {broken:,} detections, {true:,} true")
        yield way, results


def main(arguments: Sequence[str]) -> int:
    """Run the experiment with the arguments of the command line."""
    given = vars(_parser().parse_all(arguments))
    gold = load_rewrites(given["canard"], load_lexicon())
    if given["dialogues"] is not None:
        few = gold.data.dialogues[: given["dialogues"]]
        gold = replace(gold, data=replace(gold.data, dialogues=few))
    names = _known(given["faults"], tuple(faults(gold)), "fault")
    command = " ".join(
        [
            "python -m pytest_dstfuzz.papers.mortar --canard dev.json",
            f"--history {given['history']} --faults {given['faults']} --ways {given['ways']}",
            *([f"--dialogues {given['dialogues']}"] if given["dialogues"] else []),
            *([f"--compare {given['compare']}"] if given["compare"] != DEFAULT else []),
            f"--seed {given['seed']} --out {given['out'].name}",
        ]
    )
    own, compare = given["history"] == "own", given["compare"]
    found: dict[str, list[BotResults]] = {}
    only = _known(given["ways"], tuple(WAYS), "way")
    chosen = [WAYS[name] for name in only]
    found_ways = run_mortar(gold, names, own=own, seed=given["seed"], only=chosen, compare=compare)
    for way, results in found_ways:
        found[way] = results
        if len(found) == 1 and given["sheets"] is not None:
            _write_sheets(given["sheets"], results, given["seed"])
        table = MortarTable(gold.data, found, command, given["seed"], given["history"], compare)
        for name, text in tables(table).items():
            write_text(given["out"] / name, text)
    return 0


def _known(text: str, known: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Read a list of names. ``all`` means all names."""
    names = known if text == _ALL else tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names


def _write_sheets(folder: Path, results: Sequence[BotResults], seed: int) -> None:
    """Write sheets for human judges, and their answer keys.

    For both families of relations, the violations are drawn from the bots with a fault.
    """
    found = [one for bot in results if bot.bot != SOUND for one in bot.found]
    for family in _BOTH:
        if not any(one.broken and one.family == family for one in found):
            raise UserError(f"--sheets: there are no detections by {family} to draw from")
        items = drawn(found, family, seed)
        write_text(folder / f"{family}.md", sheet_text(items))
        write_text(folder / f"{family}_key.csv", key_text(items))


def _parser() -> Parser:
    parser = Parser("python -m pytest_dstfuzz.papers.mortar", __doc__ or "")
    parser.value("--canard", Path, "FILE", required=True, help="development split of CANARD (JSON)")
    out = "write mortar.md and mortar.csv into this folder"
    parser.value("--out", Path, "DIR", required=True, help=out)
    parser.value(
        "--history",
        choice("history", ("own", "recorded")),
        "WHOSE",
        default="own",
        help="replies before a question: own (default) or recorded",
    )
    parser.value("--faults", str, "NAME,...", default=_ALL, help="planted faults (default: all)")
    parser.value(
        "--ways",
        str,
        "NAME,...",
        default=_ALL,
        help="ways to test: main, checks (MORTAR's context checks), withheld (without titles), "
        "answers (compare with recorded answers), published (both, as in the paper), or all "
        "(default)",
    )
    compare = (
        "how to compare replies, as --dst-compare; MORTAR's own comparison is "
        "embedding:all-MiniLM-L6-v2:threshold=0.4 (default: the shipped comparison)"
    )
    parser.value("--compare", str, "NAME,...", default=DEFAULT, help=compare)
    parser.value("--dialogues", integer(1), "N", help="use only the first N dialogues")
    sheets = "draw detections for human judges, and write the sheets into this folder"
    parser.value("--sheets", Path, "DIR", help=sheets)
    seed = (
        "seed for the random sequences and for the choice of the detections to judge (default: 0)"
    )
    parser.value("--seed", integer(0), "N", default=0, help=seed)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
