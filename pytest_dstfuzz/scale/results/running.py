"""A campaign into a folder of results: begun, gone on with after an interruption, ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_dstfuzz import Campaign, __version__
from pytest_dstfuzz.config import settings_json
from pytest_dstfuzz.kinds import KINDS
from pytest_dstfuzz.relations.relation import Relation
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.scale.results.blocks import BlockRunner, blocks_of
from pytest_dstfuzz.scale.results.folder import DialogueResults, ResultFolder
from pytest_dstfuzz.scale.results.manifest import RunManifest, data_of, plan_digest
from pytest_dstfuzz.search.registry import describe_trained
from pytest_dstfuzz.totals.totals import RelationFacts
from pytest_dstfuzz.trackers.tracker import fingerprint_of

#: Told how many results there are, and how many there will be.
Progress = Callable[[int, int], None]


def manifest_of(campaign: Campaign) -> RunManifest:
    """Return the manifest of a campaign of which nothing has been run."""
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
    return RunManifest(
        settings=settings_json(settings),
        version=__version__,
        relations=tuple(relation.name for relation in campaign.relations),
        facts={one.name: facts_of(one, campaign) for one in campaign.relations},
        digest=plan_digest(campaign.drawn),
        tracker=fingerprint_of(campaign.tracker) or "",
        lexicon=campaign.lexicon.fingerprint,
        policy=policy,
        compared="" if states or campaign.comparison.exact else campaign.comparison.name,
        data=data_of(RunInfo.of(data)),
        notes=(*data.notes, *filter(None, [note])),
        shard=settings.data.shard or (1, 1),
        dialogues=dialogues,
        planned=whole.count(False) * turns + whole.count(True) * dialogues,
    )


def facts_of(relation: Relation, campaign: Campaign) -> RelationFacts:
    """Return what a relation says of itself."""
    outcome = campaign.settings.reply.outcome
    expects = KINDS[outcome].words.fill(relation.expects)
    return RelationFacts(expects, relation.source, relation.unit, relation.edits)


def run_into(campaign: Campaign, path: Path, progress: Progress, command: str = "") -> ResultFolder:
    """Run a campaign, or what is missing of it, into a folder.

    What was done stays whatever ends the run: Ctrl-C, a budget, a kill. The same call goes on;
    ``command`` is the line that does, for those who find the folder unfinished.

    Raises:
        UserError: the folder is of another run, or the tracker cannot be tested.
    """
    manifest = replace(manifest_of(campaign), command=command)
    folder = opened(path, manifest)
    runner = BlockRunner(campaign)
    done, started, ended = len(folder), time.monotonic(), "interrupted"

    def keep(found: DialogueResults) -> None:
        nonlocal done
        folder.append(found)
        done += len(found.results)
        progress(done, manifest.planned)

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
        folder.keep(folder.manifest.gone_on(asked=asked, seconds=seconds, ended=ended))
        folder.close()
    return folder


def opened(path: Path, manifest: RunManifest) -> ResultFolder:
    """Return the folder of a run: as it is, or a new one.

    Raises:
        UserError: it is of another run.
    """
    if not ResultFolder.is_one(path):
        return ResultFolder.create(path, manifest)
    folder = ResultFolder.open(path)
    folder.manifest.refuse_another(manifest, path)
    folder.manifest = replace(folder.manifest, ended="")
    return folder
