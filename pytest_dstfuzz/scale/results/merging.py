"""Folders of the parts of one run, put together to the folder of the run."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_dstfuzz.config import shard_text
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.printable import listed
from pytest_dstfuzz.scale.results.folder import ResultFolder
from pytest_dstfuzz.scale.results.manifest import RunManifest

#: Parts that a message names.
_MOST_NAMED = 10


def merge(folders: Sequence[ResultFolder], output: Path) -> ResultFolder:
    """Copy the results of the parts of a run to one folder, which is there when all of them are.

    Args:
        folders: one for each part, in any order; a run that was not parted is all of its parts.
        output: the folder to write; a folder of results of the same run is replaced.

    Raises:
        UserError: parts are of several runs, are missing, overlap, or are not complete; or there is
            something else in the way.
    """
    folders = sorted(folders, key=lambda folder: folder.manifest.shard)
    check_parts(folders)
    merged = merged_manifest([folder.manifest for folder in folders])
    with replacing(output, merged) as draft:
        sources = [part for folder in folders for part in folder.parts]
        for number, source in enumerate(sources, 1):
            shutil.copyfile(source, draft / ResultFolder.part_name(number))
    return ResultFolder.open(output)


def check_parts(folders: Sequence[ResultFolder]) -> None:
    """Refuse folders that are not each part of one run, once and whole.

    Raises:
        UserError: they are not; the message names what differs, or the numbers of the parts.
    """
    first = folders[0]
    parts = first.manifest.shard[1]
    by_number: dict[int, ResultFolder] = {}
    for folder in folders:
        manifest = folder.manifest
        if differing := first.manifest.differing(manifest):
            told = "; ".join(
                f"{name} is {one!r} in {first.path} and {other!r} in {folder.path}"
                for name, (one, other) in differing.items()
            )
            raise UserError(f"{first.path} and {folder.path} are no parts of one run: {told}")
        number, others = manifest.shard
        if others != parts:
            raise UserError(
                f"{first.path} is part {shard_text(first.manifest.shard)} and {folder.path} is "
                f"part {shard_text(manifest.shard)}: parts of one run have one number of parts"
            )
        if number in by_number:
            raise UserError(
                f"part {shard_text(manifest.shard)} is there twice, in {by_number[number].path} "
                f"and in {folder.path}: name one of them"
            )
        by_number[number] = folder
    missing = [
        shard_text((number, parts)) for number in range(1, parts + 1) if number not in by_number
    ]
    if missing:
        raise UserError(f"parts of the run are missing: {listed(missing, _MOST_NAMED)}")
    if lacking := [unfinished(folder) for folder in folders if not folder.complete]:
        raise UserError("; ".join(lacking))


def unfinished(folder: ResultFolder) -> str:
    """Say what a folder lacks, and what goes on with it."""
    manifest = folder.manifest
    part = "" if manifest.shard == (1, 1) else f", part {shard_text(manifest.shard)},"
    why = f" ({manifest.ended})" if manifest.ended else ""
    text = f"{folder.path}{part} has {len(folder):,} of {manifest.planned:,} results{why}"
    return f"{text}: go on with {manifest.command}" if manifest.command else text


def merged_manifest(parts: Sequence[RunManifest]) -> RunManifest:
    """Return the manifest of a run from those of all of its parts, in their order."""
    first = parts[0]
    return replace(
        first,
        settings={**first.settings, "shard": None},
        shard=(1, 1),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        dialogues=sum(part.dialogues for part in parts),
        planned=sum(part.planned for part in parts),
        ended="",
        command="",
        asked=sum(part.asked for part in parts),
        seconds=sum(part.seconds for part in parts),
    )


@contextmanager
def replacing(output: Path, manifest: RunManifest) -> Iterator[Path]:
    """Give a folder to fill, which takes its place and its manifest when all went well.

    Raises:
        UserError: in its place is something else than results of the same run.
    """
    check_replaceable(output, manifest)
    target = output.expanduser().resolve()
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        draft.mkdir(parents=True)
        yield draft
        manifest.write(draft)
        for file in draft.iterdir():
            _to_disk(file)
        if target.exists():
            old = draft.with_suffix(".old")
            target.rename(old)
            draft.rename(target)
            shutil.rmtree(old)
        else:
            draft.rename(target)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_replaceable(output: Path, manifest: RunManifest | None = None) -> None:
    """Refuse to write a folder of results in the place of something else.

    Raises:
        UserError: there is a file, a folder with other files, or results of another run than that
            of ``manifest``.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not ResultFolder.is_one(output):
        what = "holds other files" if output.is_dir() else "is no folder"
        raise UserError(f"{output} {what}: results want a folder of their own")
    if manifest is None:
        return
    old = RunManifest.read(output)
    if old.differing(manifest) or old.shard != manifest.shard:
        raise UserError(f"{output} holds results of another run: give another folder")


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
