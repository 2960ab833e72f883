"""Named, fetched or local dialogues: found, read, normalised and sampled."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from pytest_dstfuzz.config import canonical_split
from pytest_dstfuzz.dialogue import multiwoz
from pytest_dstfuzz.dialogue.call_values import with_call_values
from pytest_dstfuzz.dialogue.choose import Catalogue, SplitFiles, catalogue, choose, split_of
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet, Ontology
from pytest_dstfuzz.dialogue.fetch import DATASETS, fetched
from pytest_dstfuzz.dialogue.normalise import check_normalisation
from pytest_dstfuzz.dialogue.ontology import complete_ontology, labels_note, read_ontology
from pytest_dstfuzz.dialogue.outcome import TOOL_CALLS, OutcomeKind
from pytest_dstfuzz.dialogue.readers.registry import READERS
from pytest_dstfuzz.dialogue.readers.source import HALF, SURROGATE, ReadOptions, SourceFile
from pytest_dstfuzz.dialogue.readers.tools import read_tools
from pytest_dstfuzz.dialogue.spool import gathered
from pytest_dstfuzz.errors import DataError, UserError, nearest, unknown_name
from pytest_dstfuzz.garbage import gc_paused

#: The dialogues that ship with the package.
SAMPLE: Final = "sample"
#: Those that ship with tools, which are meant where tool calls are tested.
SAMPLE_TOOLS: Final = "sample-tools"

# Names that say nothing about the data set: its folder's name is taken instead.
_NO_NAME: Final = re.compile(r"(train|dev|val|valid|validation|test|data)([_-].*)?|trade[_-]tsv")


class Location(NamedTuple):
    """Where a data set lies."""

    path: Path
    #: Short name for test ids and reports.
    name: str
    #: Folder with the lists of its splits, where it brings none itself.
    lists: Path | None = None


def locate(source: str | Path) -> Location:
    """Return where ``source`` lies and the short name of the data set.

    An existing path wins over a data set of the same name in the cache.
    """
    text = os.fspath(source)
    if text in (SAMPLE, SAMPLE_TOOLS):
        shipped = resources.files("pytest_dstfuzz") / "resources" / "dialogues" / text
        return Location(Path(str(shipped)), text)
    path = Path(text).expanduser()
    if text and path.exists():
        return Location(path, _name_of(path))
    if text in DATASETS:
        folders = fetched(text)
        if folders is not None:
            return Location(folders[0], text, folders[1] if len(folders) > 1 else None)
        raise DataError(
            f"the data set {text!r} is not on this machine: run `dstfuzz fetch {text}`, "
            "or give the path of a folder, file or zip"
        )
    guess = _guess(path, text)
    raise DataError(
        f"no such file or folder: {text!r}.{guess} Give the path of a folder, file or zip, "
        f"or one of {', '.join((SAMPLE, SAMPLE_TOOLS, *DATASETS))}."
    )


def _guess(path: Path, text: str) -> str:
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    found = nearest(path.name, [*siblings, SAMPLE, SAMPLE_TOOLS, *DATASETS]) if text else None
    if found is None:
        return ""
    return f" Did you mean {str(path.parent / found if found in siblings else found)!r}?"


def _name_of(path: Path) -> str:
    resolved = path.resolve()
    name = resolved.name if resolved.is_dir() else resolved.name.split(".", 1)[0]
    if _NO_NAME.fullmatch(name.lower()):
        name = resolved.parent.name
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "data"


_NO_CALLS: Final = (
    "tools are what assistants call: a file of them (--dst-tools) needs --dst-outcome=tool-calls"
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
    outcome: OutcomeKind = "state",
    tools: str | Path | None = None,
) -> DialogueSet:
    """Read one split of a data set, in whatever layout it is found.

    Args:
        source: ``sample`` (shipped; for tool calls that is ``sample-tools``), the path of a
            folder, a file or a zip, or a named data set that was fetched (``multiwoz21``).
        split: ``train``, ``val`` (``dev``, ``validation``) or ``test``.
        layout: read this layout (``original``, ``sharded``, ``trade``, ``sgd``, ``canard``,
            ``jsonl``, ``messages``, ``csv``, ``users``, or that of a reader of yours); by
            default the first of them that holds the split.
        ontology: JSON file ``slot -> list of values``; by default the one found with
            the data, else the values of the labels.
        normalisation: ``multiwoz`` or ``plain``; by default ``plain`` for JSON Lines,
            messages, SGD, CANARD and logs, and ``multiwoz`` for the other layouts.
        name: name of the set in test ids; by default made from the source.
        outcome: what is tested; of systems that reply, each user utterance of JSON Lines must
            say something.
        tools: JSON file of the tools of dialogues that bring none; for tool calls alone.

    Raises:
        UserError: an unknown split, layout or normalisation, or tools for another outcome.
        DataError: the data is missing or broken; the message names the place.
    """
    wanted = canonical_split(split)
    _check_wanted(layout, normalisation, outcome, tools)
    shipped = outcome == TOOL_CALLS and source == SAMPLE
    location = locate(SAMPLE_TOOLS if shipped else source)
    files = catalogue(location.path, location.lists)
    choice = choose(files, wanted, layout)
    rules = normalisation or choice.reader.normalisation
    told: list[str] = []
    schemas = _schemas(files, choice, wanted)
    how = ReadOptions(rules, outcome, told.append, files.source, tuple(schemas))
    read = _with_tools(_read(choice, how), tools, told.append)
    dialogues = gathered(read)
    if not dialogues:
        raise DataError(f"{location.path} holds no dialogue of the split {wanted!r}")
    known, notes = _ontology(files, choice, ontology, how)
    found = DialogueSet(
        name=name or location.name,
        split=wanted,
        dialogues=dialogues,
        ontology=complete_ontology(known, dialogues, rules),
        normalisation=rules,
        layout=choice.reader.name,
        notes=(*choice.notes, *notes, *told, *_untested_calls(dialogues, outcome)),
        slot_phrases=(multiwoz.SLOT_PHRASES if rules == "multiwoz" else choice.reader.phrases(how)),
    )
    return _with_words(replace(found, notes=(*found.notes, *labels_note(found))), outcome)


def _with_tools(
    dialogues: Iterable[Dialogue], given: str | Path | None, tell: Callable[[str], None]
) -> Iterator[Dialogue]:
    """Yield dialogues of which those without tools have the given ones."""
    if given is None:
        yield from dialogues
        return
    path = Path(given).expanduser()
    tools = read_tools(SourceFile(path.name, path).json(), str(path))
    lacking = False
    for one in dialogues:
        lacking |= not one.tools
        yield one if one.tools else replace(one, tools=tools)
    if not lacking:
        tell(f"All dialogues bring tools of their own: those of {path} are not taken.")


def _untested_calls(dialogues: Iterable[Dialogue], outcome: OutcomeKind) -> tuple[str, ...]:
    """Return the note that data without states has calls, where states are tested."""
    if outcome != "state":
        return ()
    turns = count = 0
    for turn in chain.from_iterable(dialogue.turns for dialogue in dialogues):
        if turn.state is not None:
            return ()
        turns += 1
        count += bool(turn.calls)
    if not count:
        return ()
    calling = f"{count:,} of {turns:,} turns have recorded tool calls"
    return (f"{calling}: --dst-outcome=tool-calls tests those, and this run tests belief states.",)


def _with_words(data: DialogueSet, outcome: OutcomeKind) -> DialogueSet:
    """Return data with the words that are known of its slots, or of its tools."""
    if data.normalisation == "multiwoz":
        words, flags = multiwoz.CUE_WORDS, multiwoz.FLAG_WORDS
        data = replace(data, cue_words=words, flag_words=flags)
    return with_call_values(data) if outcome == TOOL_CALLS else data


def _check_wanted(
    layout: str | None, normalisation: str | None, outcome: OutcomeKind, tools: str | Path | None
) -> None:
    if layout is not None and layout not in READERS.single:
        raise unknown_name("layout", layout, READERS.single)
    if normalisation is not None:
        check_normalisation(normalisation)
    if tools is not None and outcome != TOOL_CALLS:
        raise UserError(_NO_CALLS)


def data_files(source: str | Path) -> tuple[Path, ...]:
    """Return the files of ``source`` that hold dialogues, ontologies or lists of dialogue ids."""
    path = locate(source).path
    # Of a single file also the ontology and the lists that lie beside it.
    files = tuple(file.path for _, file in catalogue(path).files)
    return tuple(dict.fromkeys((path, *files) if path.is_file() else files))


def _read(choice: SplitFiles, how: ReadOptions) -> Iterator[Dialogue]:
    """Read the chosen files in order; every dialogue has turns and an id of its own."""
    found: dict[str, str] = {}
    for _, file in choice.files:
        place = file.place
        for dialogue in choice.reader.read(file, how):
            if not choice.takes(dialogue.id):
                continue
            if not dialogue.turns:
                raise DataError(f"{place}: dialogue {dialogue.id} has no turns")
            _check_texts(dialogue, place)
            if dialogue.id in found:
                raise DataError(
                    f"{place}: the id {dialogue.id} is not unique, it was already in "
                    f"{found[dialogue.id]}"
                )
            found[dialogue.id] = place
            yield dialogue


def _check_texts(dialogue: Dialogue, place: str) -> None:
    """Refuse texts that cannot be written."""
    last = len(dialogue.turns) - 1
    for turn in dialogue.turns:
        texts = (
            dialogue.id,
            turn.system,
            turn.user,
            turn.answer or "",
            *(text for pair in (turn.state or {}).items() for text in pair),
            *(turn.recorded or ()),
            *(text for pair in (turn.calls or {}).items() for text in pair),
            *(dialogue.closing if turn.index == last else ()),
        )
        if SURROGATE.search("".join(texts)):
            where = f"{place}: dialogue {dialogue.id}, turn {turn.index}"
            raise DataError(f"{where} holds {HALF}")


def _ontology(
    files: Catalogue, choice: SplitFiles, given: str | Path | None, how: ReadOptions
) -> tuple[Ontology | None, tuple[str, ...]]:
    """Return the ontology that was given, or that lies with the data, if any; and notes.

    ``<stem>.ontology.json`` of JSON Lines was written for them and must be sound. Of what
    else lies there, published archives or files about something else, the first that can be
    read is taken; the user is told which were not.
    """
    if given is not None:
        path = Path(given)
        return read_ontology(SourceFile(path.name, path), how.normalisation), ()
    candidates = [*(file for _, file in files.of("ontology")), *how.schemas]
    stems = {file.stem for _, file in choice.files}
    own = [file for file in candidates if file.stem in stems]
    notes: list[str] = []
    for file in dict.fromkeys((*own, *filter(_is_general, candidates))):
        try:
            return read_ontology(file, how.normalisation), tuple(notes)
        except DataError as error:
            if choice.reader.name == "jsonl" and not _is_general(file):
                raise
            notes.append(f"Not taken as the ontology: {error}.")
    return None, tuple(notes)


def _schemas(files: Catalogue, choice: SplitFiles, split: str) -> list[SourceFile]:
    """Return the schemas that lie with the data: those beside it first, then those of the split."""
    found = [file for _, file in files.of("schema")]
    beside = {_folder(file) for _, file in choice.files}
    return sorted(found, key=lambda file: (_folder(file) not in beside, split_of(file) != split))


def _folder(file: SourceFile) -> str:
    return file.name.rpartition("/")[0]


def _is_general(file: SourceFile) -> bool:
    """Whether an ontology is for all files of its folder, not ``<stem>.ontology.json``."""
    return not file.name.lower().endswith(".ontology.json")
