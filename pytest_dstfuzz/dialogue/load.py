"""The door of the room: ``load_dialogues`` finds, reads and normalises one split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pytest_dstfuzz.config import canonical_split
from pytest_dstfuzz.dialogue import multiwoz
from pytest_dstfuzz.dialogue.choose import Catalogue, SplitFiles, catalogue, choose
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.locate import locate
from pytest_dstfuzz.dialogue.normalise import check_normalisation
from pytest_dstfuzz.dialogue.ontology import complete_ontology, read_ontology
from pytest_dstfuzz.dialogue.readers import jsonl, original, sharded, trade
from pytest_dstfuzz.dialogue.readers.layouts import LAYOUTS
from pytest_dstfuzz.dialogue.readers.source import SourceFile
from pytest_dstfuzz.dialogue.slots import labels_note
from pytest_dstfuzz.errors import DataError, unknown_name
from pytest_dstfuzz.garbage import gc_paused

_READERS: Final[Mapping[str, Callable[[SourceFile, str], Iterator[Dialogue]]]] = MappingProxyType(
    {
        "original": original.read,
        "sharded": sharded.read,
        "trade": trade.read_json,
        "trade-tsv": trade.read_tsv,
    }
)


@gc_paused()
def load_dialogues(
    source: str | Path,
    split: str = "test",
    *,
    layout: str | None = None,
    ontology: str | Path | None = None,
    normalisation: str | None = None,
    name: str | None = None,
) -> DialogueSet:
    """Read one split of a data set, in whatever layout it is found.

    Args:
        source: ``sample`` (shipped), the path of a folder, a file or a zip, or a named
            data set that was fetched (``multiwoz21``).
        split: ``train``, ``val`` (``dev``, ``validation``) or ``test``.
        layout: read this layout (``original``, ``sharded``, ``trade``, ``jsonl``);
            by default the first of them that holds the split.
        ontology: JSON file ``slot -> list of values``; by default the one found with
            the data, else the values of the labels.
        normalisation: ``multiwoz`` or ``plain``; by default ``plain`` for JSON Lines
            and ``multiwoz`` for the other layouts.
        name: name of the set in test ids; by default made from the source.

    Raises:
        UserError: an unknown split, layout or normalisation.
        DataError: the data is missing or broken; the message names the place.
    """
    wanted = canonical_split(split)
    if layout is not None and layout not in LAYOUTS:
        raise unknown_name("layout", layout, LAYOUTS)
    if normalisation is not None:
        check_normalisation(normalisation)
    location = locate(source)
    files = catalogue(location.path, location.lists)
    choice = choose(files, wanted, layout)
    rules = normalisation or ("plain" if choice.layout == "jsonl" else "multiwoz")
    told: list[str] = []
    dialogues = _read(choice, rules, told.append)
    if not dialogues:
        raise DataError(f"{location.path} holds no dialogue of the split {wanted!r}")
    known, notes = _ontology(files, choice, ontology, rules)
    found = DialogueSet(
        name=name or location.name,
        split=wanted,
        dialogues=dialogues,
        ontology=complete_ontology(known, dialogues, rules),
        normalisation=rules,
        layout=choice.layout,
        notes=(*choice.notes, *notes, *told),
        cue_words=multiwoz.CUE_WORDS if rules == "multiwoz" else (),
    )
    return replace(found, notes=(*found.notes, *labels_note(found)))


def data_files(source: str | Path) -> tuple[Path, ...]:
    """Return the files of ``source`` that hold dialogues, ontologies or lists of dialogue ids.

    Raises:
        DataError: nothing is there, or nothing that is readable as dialogues.
    """
    path = locate(source).path
    # Of a single file also the ontology and the lists that lie beside it.
    files = tuple(file.path for _, file in catalogue(path).files)
    return tuple(dict.fromkeys((path, *files) if path.is_file() else files))


def _read(choice: SplitFiles, rules: str, tell: Callable[[str], None]) -> tuple[Dialogue, ...]:
    """Read the chosen files in order; every dialogue has turns and an id of its own."""
    found: dict[str, tuple[Dialogue, str]] = {}
    for kind, file in choice.files:
        reader = partial(jsonl.read, tell=tell) if kind == "jsonl" else _READERS[kind]
        for dialogue in reader(file, rules):
            if not choice.takes(dialogue.id):
                continue
            if not dialogue.turns:
                raise DataError(f"{file.place}: dialogue {dialogue.id} has no turns")
            if dialogue.id in found:
                raise DataError(
                    f"{file.place}: the id {dialogue.id} is not unique, it was already in "
                    f"{found[dialogue.id][1]}"
                )
            found[dialogue.id] = (dialogue, file.place)
    return tuple(dialogue for dialogue, _ in found.values())


def _ontology(
    files: Catalogue, choice: SplitFiles, given: str | Path | None, rules: str
) -> tuple[Ontology | None, tuple[str, ...]]:
    """Return the ontology that was given, or that lies with the data, if any; and notes.

    ``<stem>.ontology.json`` of JSON Lines was written for them and must be sound. Of what
    else lies there, published archives or files about something else, the first that can be
    read is taken; the user is told which were not.
    """
    if given is not None:
        path = Path(given)
        return read_ontology(SourceFile(path.name, path), rules), ()
    candidates = [file for _, file in (*files.of("ontology"), *files.of("schema"))]
    stems = {file.stem for _, file in choice.files}
    own = [file for file in candidates if file.stem in stems]
    notes: list[str] = []
    for file in dict.fromkeys((*own, *filter(_is_general, candidates))):
        try:
            return read_ontology(file, rules), tuple(notes)
        except DataError as error:
            if choice.layout == "jsonl" and not _is_general(file):
                raise
            notes.append(f"Not taken as the ontology: {error}.")
    return None, tuple(notes)


def _is_general(file: SourceFile) -> bool:
    """Whether an ontology is for all files of its folder, not ``<stem>.ontology.json``."""
    return not file.name.lower().endswith(".ontology.json")
