"""Runs of a campaign into a result folder, block by block."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz import Campaign, __version__
from pytest_dstfuzz.campaign.answers import Answer, TrackerFailure
from pytest_dstfuzz.campaign.engine import (
    CampaignEngine,
    PlannedTurn,
    digest_of_package,
)
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.comparisons.judge import JudgeFacts
from pytest_dstfuzz.config import settings_json
from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.dialogue.sampling import in_shard
from pytest_dstfuzz.json_data import json_encoded
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.printable import shorten_text
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.scale.manifest import (
    FAILED,
    AnotherRunError,
    RunManifest,
    compare_answers,
    data_of,
    failed_answers,
    fill_answers,
    plan_digest,
    refuse_failing,
)
from pytest_dstfuzz.scale.results import DialogueResults, ResultFolder, closed_on_error, open_folder
from pytest_dstfuzz.search.registry import describe_trained
from pytest_dstfuzz.totals.totals import RelationFacts
from pytest_dstfuzz.trackers.tracker import Prediction

#: Minimum number of turns in a block: enough to fill batches, few enough to be repeated.
BLOCK_TURNS: Final = 256


@dataclass(frozen=True, slots=True)
class PlannedDialogue:
    """A dialogue of a block, with its index in the data."""

    place: int  #: The index in the plan of all dialogues.
    planned: PlannedTurn


Block = tuple[PlannedDialogue, ...]


def blocks_of(
    plan: Iterable[PlannedTurn], turns: int = BLOCK_TURNS, shard: tuple[int, int] | None = None
) -> Iterator[Block]:
    """Divide a plan into blocks of consecutive dialogues with enough turns in total.

    If a ``shard`` is given, only its dialogues are included, with their indices among all
    dialogues.
    """
    found: list[PlannedDialogue] = []
    size = 0
    for place, planned in enumerate(plan):
        if not in_shard(planned[0].id, shard):
            continue
        found.append(PlannedDialogue(place, planned))
        size += planned[1] + 1
        if size >= turns:
            yield tuple(found)
            found, size = [], 0
    if found:
        yield tuple(found)


class BlockRunner:
    """Runs blocks of dialogues one by one, under all relations of a campaign."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign

    @property
    def ended(self) -> str:
        """The reason why no more contexts may be sent to the tracker, or ``""``."""
        return self._campaign.predictor.stopped()

    @property
    def asked(self) -> int:
        """The number of contexts sent to the tracker so far."""
        return self._campaign.predictor.calls

    def run(
        self, block: Block, has: Callable[[int, str], bool], keep: Callable[[DialogueResults], None]
    ) -> None:
        """Run the part of a block that has no results. Store results as they arrive.

        Args:
            block: the dialogues with their indices.
            has: returns whether there are results. It takes the index of a dialogue and the name of
                a relation.
            keep: stores the results of a dialogue. Dialogues that the budget left unfinished are
                not stored. If an exception is raised, all finished results are stored first.
        """
        source = self.found(block, has)
        try:
            for found in source:
                keep(found)
        except BaseException as error:
            # If `keep` raised the error, the source still has finished results to yield.
            with suppress(type(error)):
                found = source.throw(error)
                while True:
                    keep(found)
                    found = next(source)
            raise

    def found(
        self, block: Block, has: Callable[[int, str], bool]
    ) -> Generator[DialogueResults, None, None]:
        """Yield the results of a block as they arrive.

        An exception comes after all finished results.
        """
        try:
            for relation in self._campaign.relations:
                missing = [one for one in block if not has(one.place, relation.name)]
                engine = self._campaign.engine(relation, [one.planned for one in missing])
                judged = self._campaign.judges.new_facts
                yield from _found(engine, missing, relation.name, judged)
        finally:
            self._campaign.predictor.forget()


def _found(
    engine: CampaignEngine,
    missing: Sequence[PlannedDialogue],
    relation: str,
    judged: Callable[[], JudgeFacts | None],
) -> Iterator[DialogueResults]:
    left = {one.planned[0].id: one.place for one in missing}

    def done(results: Iterable[TurnResult]) -> Iterator[DialogueResults]:
        together: dict[str, list[TurnResult]] = {}
        for result in results:
            if result.dialogue_id in left:
                together.setdefault(result.dialogue_id, []).append(result)
        for name, found in together.items():
            place = left.pop(name)
            if all(result.outcome != "skipped" for result in found):
                yield DialogueResults(place, relation, tuple(found), judged())

    try:
        for one in missing:
            yield from done(engine.results_of(one.planned[0].id))
    except GeneratorExit:
        # The consumer has stopped.
        raise
    except BaseException:
        # Leave out dialogues whose variants are not minimised yet; they run again.
        yield from done(engine.known())
        raise


#: Number of unmodified turns that a bot without a fingerprint answers to show that it is the same.
CHECKED_TURNS: Final = 16
#: Number of times that such a turn is asked again if the answer has changed.
_REPEATS: Final = 4
#: Maximum number of characters of a failure in a note.
_LONGEST_REASON: Final = 200


def sample_answers(campaign: Campaign) -> tuple[str, ...]:
    """Return digests of a bot's answers to some unmodified turns, for a bot without a fingerprint.

    A failure is `FAILED`, and a turn that the budget leaves out is ``""``. Equal campaigns ask the
    same turns, whatever their shard. The turns are in the first block of all dialogues, so an
    unsharded campaign has to ask them anyway.
    """
    return tuple(_digest(answer) for answer in _sample(campaign))


def _sample(campaign: Campaign) -> list[Answer | None]:
    """Return the answers to the turns of `sample_answers`. ``None`` = the budget left it out."""
    if campaign.identity["fingerprint"]:
        return []
    contexts = _sample_contexts(campaign)
    answers = campaign.predictor.predict(contexts)
    # If the bot gave up, it failed on the rest.
    stopped = campaign.predictor.budget.stopped
    missing = TrackerFailure(stopped, asked=False) if stopped else None
    return [answers.get(context, missing) for context in contexts]


def _sample_contexts(campaign: Campaign) -> list[Context]:
    block = next(blocks_of(campaign.drawn), ())
    # With its own history, a bot decides what is said before later turns.
    first_only = campaign.settings.reply.history == "own"
    turns = [
        (dialogue, index)
        for dialogue, last in (one.planned for one in block)
        for index in range(1 if first_only else last + 1)
    ]
    count = min(CHECKED_TURNS, len(turns))
    chosen = (turns[number * len(turns) // count] for number in range(count))
    return [dialogue.context(index) for dialogue, index in chosen]


def _digest(answer: Answer | None) -> str:
    if not isinstance(answer, Prediction):
        return "" if answer is None else FAILED
    return hashlib.sha256(json_encoded(sorted(answer.state.items()))).hexdigest()[:16]


def _same_answers(
    campaign: Campaign, before: Sequence[str], where: Path
) -> tuple[tuple[str, ...], str]:
    """Return the answers to the unmodified turns, those of earlier calls for the folder first.

    A turn with another answer than before is asked again several times. It does not count if these
    answers differ, because then the bot varies. Also return a note on the turns that the bot
    answered before and that it fails on now, or ``""``.

    Raises:
        AnotherRunError: the bot now answers turns in another way, or fails on most of them.
    """
    found = _sample(campaign)
    now = tuple(map(_digest, found))
    if not before:
        return now, ""
    failed, known = failed_answers(before, now)
    reason = next((_reason(campaign, found[at]) for at in failed), "")
    refuse_failing(len(failed), known, reason, where)
    differing, both = compare_answers(before, now)
    contexts = _sample_contexts(campaign)
    again = {at: [contexts[at].again(n + 1) for n in range(_REPEATS)] for at in differing}
    answers = campaign.predictor.predict(one for some in again.values() for one in some)
    changed = [
        at
        for at in differing
        if {_digest(answers.get(one)) for one in again[at]} <= {now[at], "", FAILED}
    ]
    if changed:
        raise AnotherRunError(
            f"{where} has the results of another bot, and cannot be continued: the bot answers "
            f"{len(changed)} of {both} unmodified turns differently than the one that wrote the "
            "folder. Use another folder"
        )
    note = ""
    if failed:
        note = (
            f"the bot fails on {len(failed)} of {known} unmodified turns that it answered in "
            f"earlier calls, so they do not show whether it is the same ({reason})"
        )
    return fill_answers(before, now), note


def _reason(campaign: Campaign, answer: Answer | None) -> str:
    """Return the reason of a failure for a message. It may repeat utterances."""
    if campaign.settings.output.redact or not isinstance(answer, TrackerFailure):
        return "redact keeps the reason back"
    return f"first: {shorten_text(answer.reason, _LONGEST_REASON)}"


#: Called with the number of results so far and the total number.
Progress = Callable[[int, int], None]


def manifest_of(campaign: Campaign) -> RunManifest:
    """Return the manifest that a campaign has before its first run."""
    settings, data = campaign.settings, campaign.data
    variant, model = settings.variant, settings.tracker
    policy = note = ""
    searched = any(relation.edits == "search" for relation in campaign.relations)
    if searched:
        policy, note = describe_trained(variant.search, model.model, model.checkpoint)
    states = KINDS[settings.reply.outcome].has_slots
    whole = [relation.unit == "dialogue" for relation in campaign.relations]
    turns = sum(last + 1 for _, last in campaign.plan)
    dialogues = len(campaign.plan)
    begun = RunManifest(
        settings=settings_json(settings),
        decided=campaign.identity,
        version=__version__,
        plugin=digest_of_package() or "",
        relations=tuple(relation.name for relation in campaign.relations),
        facts={one.name: facts_of(one, campaign) for one in campaign.relations},
        digest=plan_digest(campaign.drawn),
        lexicon=campaign.lexicon.fingerprint,
        policy=policy,
        compared="" if states else campaign.identity["compared"],
        data=data_of(RunInfo.of(data)),
        notes=(*data.notes, *filter(None, [note])),
        shard=settings.data.shard or (1, 1),
        dialogues=dialogues,
        planned=whole.count(False) * turns + whole.count(True) * dialogues,
    )
    return replace(begun, run=begun.begun)


def facts_of(relation: Relation, campaign: Campaign) -> RelationFacts:
    """Return the facts about a relation that a manifest stores."""
    outcome = campaign.settings.reply.outcome
    expects = KINDS[outcome].words.fill(relation.expects)
    return RelationFacts(expects, relation.source, relation.unit, relation.edits)


def run_into(campaign: Campaign, path: Path, progress: Progress, command: str = "") -> ResultFolder:
    """Run a campaign, or the missing part of it, and write the results into a folder.

    Finished results are always kept: after Ctrl-C, at the end of a budget, or if the process is
    killed. The same call continues the run. Messages show ``command``, the command line that
    continues the run.

    Raises:
        UserError: the folder belongs to another run, or the tracker fails its tests.
    """
    manifest = replace(manifest_of(campaign), command=command)
    started, ended = time.monotonic(), "interrupted"
    folder = open_folder(path, manifest)
    runner = BlockRunner(campaign)
    with closed_on_error(folder):
        before = folder.manifest.answers
        answers, note = _same_answers(campaign, before, path)
        if answers != before or note:
            notes = (*folder.manifest.notes, *filter(None, [note]))
            folder.keep(replace(folder.manifest, answers=answers, notes=notes))

    def keep(found: DialogueResults) -> None:
        folder.append(found)
        progress(len(folder), manifest.planned)

    def missing(place: int) -> bool:
        return not all(folder.has(place, name) for name in manifest.relations)

    try:
        for block in blocks_of(campaign.drawn, shard=campaign.settings.data.shard):
            if any(missing(one.place) for one in block):
                runner.run(block, folder.has, keep)
                if runner.ended:
                    break
        ended = "" if folder.complete else runner.ended
    finally:
        seconds = time.monotonic() - started
        asked = runner.asked
        manifest = folder.manifest.gone_on(asked=asked, seconds=seconds, ended=ended)
        with closing(folder):
            folder.keep(manifest.closed_by(campaign.late_code(), campaign.late_settings()))
    return folder
