"""Merging of the result folders of all shards of a run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pytest_dstfuzz.config import shard_text
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import format_list
from pytest_dstfuzz.scale.manifest import (
    MOST_NAMED,
    compare_answers,
    list_differences,
    merge_manifests,
)
from pytest_dstfuzz.scale.results import ResultFolder, describe_unfinished, replacing


def merge(folders: Sequence[ResultFolder], output: Path) -> ResultFolder:
    """Copy the results of all shards of a run to one folder.

    Args:
        folders: one for each shard, in any order. An unsharded run is its only shard.
        output: the folder to write. It appears when it is complete, and replaces a result folder of
            the same run.

    Raises:
        UserError: the shards belong to several runs, overlap, or are missing or incomplete. Or the
            output path is in use.
    """
    folders = sorted(folders, key=lambda folder: folder.manifest.shard)
    check_parts(folders)
    merged = merge_manifests([folder.manifest for folder in folders])
    with replacing(output, merged) as draft:
        sources = [part for folder in folders for part in folder.parts]
        for number, source in enumerate(sources, 1):
            shutil.copyfile(source, draft / ResultFolder.part_name(number))
    return ResultFolder.open(output)


def check_parts(folders: Sequence[ResultFolder]) -> None:
    """Check that the folders are all shards of one run, each of them complete and given once.

    Raises:
        UserError: a shard differs, or is missing, incomplete or repeated. The message names the
            differences, or the shards.
    """
    first = folders[0]
    parts = first.manifest.shard[1]
    by_number: dict[int, ResultFolder] = {}
    for folder in folders:
        manifest = folder.manifest
        if differing := first.manifest.differing(manifest):
            told = list_differences(
                differing,
                lambda name, one, other: (
                    f"{name} is {one!r} in {first.path} and {other!r} in {folder.path}"  # noqa: B023 - called at once
                ),
            )
            raise UserError(f"{first.path} and {folder.path} are not parts of one run: {told}")
        if problem := first.manifest.unlike_answers(manifest):
            raise UserError(f"{first.path} and {folder.path} are not parts of one run: {problem}")
        answers = first.manifest.answers, manifest.answers
        if all(answers) and not compare_answers(*answers)[1]:
            raise UserError(
                f"nothing shows that {first.path} and {folder.path} are of one bot, because it "
                "answered other unmodified turns in each: run both commands again, without a budget"
            )
        number, others = manifest.shard
        if others != parts:
            raise UserError(
                f"{first.path} is part {shard_text(first.manifest.shard)} and {folder.path} is "
                f"part {shard_text(manifest.shard)}: all parts of a run must have the same number "
                "of parts"
            )
        if number in by_number:
            raise UserError(
                f"part {shard_text(manifest.shard)} was given twice, in {by_number[number].path} "
                f"and in {folder.path}: leave one out"
            )
        by_number[number] = folder
    missing = [
        shard_text((number, parts)) for number in range(1, parts + 1) if number not in by_number
    ]
    if missing:
        raise UserError(f"parts of the run are missing: {format_list(missing, MOST_NAMED)}")
    if lacking := [describe_unfinished(folder) for folder in folders if not folder.complete]:
        raise UserError("; ".join(lacking))
