"""Dialogues spooled to the disk, drawn by seed and rolled out."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from tempfile import TemporaryFile, gettempdir
from threading import Lock
from typing import Final, overload
from weakref import finalize

import msgspec
import numpy as np

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue.calls import (
    TOOL_CALLS,
    Outcome,
    Tool,
    ToolCall,
    calls_outcome,
    canonical,
)
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Dialogue,
    DialogueSet,
    StoredDialogues,
    Turn,
    domains_of_slots,
)
from pytest_dstfuzz.dialogue.messages import decoded
from pytest_dstfuzz.dialogue.readers.source import HALF
from pytest_dstfuzz.errors import DataError, UserError, unknown_name
from pytest_dstfuzz.seeding import derive

__all__ = ["in_shard"]


#: Turns of data that stays in memory.
IN_MEMORY: Final = 2_000


def gathered(dialogues: Iterable[Dialogue]) -> Sequence[Dialogue]:
    """Return dialogues with ids of their own as a tuple, or in a file where they are many.

    Raises:
        UserError: of many, the file cannot be written, two have one id, or a text is none.
    """
    source = iter(dialogues)
    found: list[Dialogue] = []
    turns = 0
    for dialogue in source:
        found.append(dialogue)
        turns += len(dialogue.turns)
        if turns > IN_MEMORY:
            return SpooledDialogues(chain(_emptied(found), source))
    return tuple(found)


def _emptied(found: list[Dialogue]) -> Iterator[Dialogue]:
    """Yield what is in a list, and let go of it."""
    found.reverse()
    while found:
        yield found.pop()


class Records:
    """Byte strings in a file without a name, by their number: first all are written, then read.

    They can be read by several threads, and by processes that were forked since.
    """

    def __init__(self, records: Iterable[bytes]) -> None:
        self._starts = array("Q", [0])
        self._lock = Lock()
        try:
            self._file = TemporaryFile(prefix="dstfuzz-")  # noqa: SIM115 - it is open as long as this
        except OSError as error:
            raise _unwritable(error) from None
        finalize(self, self._file.close)
        for record in records:
            self._write(record)
            self._starts.append(self._starts[-1] + len(record))
        self._write(b"")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> bytes:
        start, end = self._starts[number], self._starts[number + 1]
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), end - start, start)
        with self._lock:  # Windows, which has no forks.
            self._file.seek(start)
            return self._file.read(end - start)

    def _write(self, record: bytes) -> None:
        """Write a record; nothing = what was written so far is there for other processes."""
        try:
            if record:
                self._file.write(record)
            else:
                self._file.flush()
        except OSError as error:
            raise _unwritable(error) from None


def _unwritable(error: OSError) -> UserError:
    return UserError(
        f"large data is kept in the folder for temporary files, and {gettempdir()} cannot be "
        f"written: {error.strerror or error}; name a folder with room in TMPDIR"
    )


class _StoredTurn(msgspec.Struct, array_like=True):
    index: int
    system: str
    user: str
    state: dict[str, str] | None
    answer: str | None
    recorded: tuple[str, ...] | None
    calls: dict[str, str] | None


class _StoredDialogue(msgspec.Struct, array_like=True):
    id: str
    turns: list[_StoredTurn]
    #: Places in the list of all tools.
    tools: list[int]
    closing: tuple[str, ...]
    results: tuple[tuple[str, str], ...]


_DECODER: Final = msgspec.msgpack.Decoder(_StoredDialogue)


class SpooledDialogues(StoredDialogues):
    """Dialogues that are read from a file whenever they are asked for."""

    def __init__(self, dialogues: Iterable[Dialogue]) -> None:
        self._places: dict[str, int] = {}
        self._lengths = array("L")
        self._tools: dict[Tool, int] = {}
        self._labelled = True
        self._records = Records(map(self._taken, dialogues))
        self._listed = tuple(self._tools)

    def _taken(self, dialogue: Dialogue) -> bytes:
        """Enter a dialogue in the tables, and return what is stored of it."""
        place = self._places.setdefault(dialogue.id, len(self._lengths))
        if place < len(self._lengths):
            raise DataError(f"two dialogues have the id {dialogue.id!r}: ids tell them apart")
        self._lengths.append(len(dialogue.turns))
        self._labelled &= all(turn.state is not None for turn in dialogue.turns)
        stored = _StoredDialogue(
            dialogue.id,
            [_stored(turn) for turn in dialogue.turns],
            [self._tools.setdefault(tool, len(self._tools)) for tool in dialogue.tools],
            dialogue.closing,
            dialogue.results,
        )
        try:
            return msgspec.msgpack.encode(stored)
        except UnicodeEncodeError:
            raise DataError(f"dialogue {dialogue.id} holds {HALF}") from None

    @property
    def places(self) -> Mapping[str, int]:
        """Id of each dialogue -> its place."""
        return self._places

    @property
    def lengths(self) -> Sequence[int]:
        """Turns of each dialogue."""
        return self._lengths

    @property
    def labelled(self) -> bool:
        """Whether every turn has a belief state label."""
        return self._labelled

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Each tool of any dialogue once, as they come."""
        return self._listed

    def read(self, place: int) -> Dialogue:
        """Return the dialogue at a place from 0 on."""
        stored = _DECODER.decode(self._records[place])
        return Dialogue(
            stored.id,
            tuple(map(_turn, stored.turns)),
            tuple([self._listed[place] for place in stored.tools]),
            stored.closing,
            stored.results,
        )


def _stored(turn: Turn) -> _StoredTurn:
    return _StoredTurn(
        turn.index,
        turn.system,
        turn.user,
        None if turn.state is None else turn.state.to_json(),
        turn.answer,
        turn.recorded,
        None if turn.calls is None else turn.calls.to_json(),
    )


def _turn(stored: _StoredTurn) -> Turn:
    return Turn(
        stored.index,
        stored.system,
        stored.user,
        None if stored.state is None else BeliefState(stored.state),
        stored.answer,
        stored.recorded,
        None if stored.calls is None else Outcome(stored.calls),
    )


#: Slots that a message shows.
_SHOWN = 6


class SampledTurns(Sequence[tuple[Dialogue, int]]):
    """Dialogues of large data with the last turn that is taken of each, read when asked for.

    Args:
        dialogues: all of the data.
        places: where in it those that are taken stand.
        lasts: the last turn of each of them.
    """

    def __init__(
        self, dialogues: StoredDialogues, places: Sequence[int], lasts: Sequence[int]
    ) -> None:
        self._dialogues = dialogues
        self._places = places
        self._lasts = lasts

    def part(self, shard: tuple[int, int]) -> SampledTurns:
        """Return those of a part of the dialogues, see `in_shard`."""
        ids = tuple(self._dialogues.places)
        kept = [n for n, place in enumerate(self._places) if in_shard(ids[place], shard)]
        places = array("q", (self._places[number] for number in kept))
        return SampledTurns(
            self._dialogues, places, array("q", (self._lasts[number] for number in kept))
        )

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, number: int) -> tuple[Dialogue, int]: ...
    @overload
    def __getitem__(self, number: slice) -> SampledTurns: ...
    def __getitem__(self, number: int | slice) -> tuple[Dialogue, int] | SampledTurns:
        if isinstance(number, slice):
            return SampledTurns(self._dialogues, self._places[number], self._lasts[number])
        return self._dialogues[self._places[number]], self._lasts[number]


def sample_turns(
    dialogues: DialogueSet,
    count: int | None,
    seed: int,
    domains: tuple[str, ...] | None = None,
) -> Sequence[tuple[Dialogue, int]]:
    """Draw dialogues until ``count`` turns are reached; return each with its last turn.

    They are in the order of the data. The last one drawn is cut: its first turns are kept, so
    that exactly ``count`` turns result (all there are, where there are fewer). The same seed
    draws the same dialogues first, whatever the count, wherever the data lies, and whichever
    other dialogues are there: each has a rank that its id and the seed alone decide. With
    ``domains``, only dialogues count whose labels name a slot of one of them (the part of a
    slot's name before the first ``-``). Of large data dialogues are read when they are asked for.
    """
    if count is not None and count < 1:
        raise UserError(f"the number of turns must be at least 1 or 'all', found {count}")
    kept = _of_domains(dialogues, domains)
    lengths = dialogues.lengths
    if count is None:
        last = {place: lengths[place] - 1 for place in kept}
    else:
        last = _drawn(kept, list(dialogues.ids), lengths, count, seed)
    every = dialogues.dialogues
    if not isinstance(every, StoredDialogues):
        return tuple((every[place], last[place]) for place in sorted(last))
    places = array("q", sorted(last))
    return SampledTurns(every, places, array("q", (last[place] for place in places)))


def _drawn(
    kept: Sequence[int], ids: Sequence[str], lengths: Sequence[int], count: int, seed: int
) -> dict[int, int]:
    """Return the places of the dialogues that are drawn with their last turns."""
    # By id and not by position or name of the data: a copy elsewhere is the same data.
    ranks = bytearray()
    for place in kept:
        ranks += derive(seed, "sample", ids[place]).to_bytes(16, "big")
    halves = np.frombuffer(ranks, dtype=">u8").reshape(-1, 2)
    last: dict[int, int] = {}
    remaining = count
    for number in np.lexsort((halves[:, 1], halves[:, 0])).tolist():
        if remaining == 0:
            break
        place = kept[number]
        turns = min(remaining, lengths[place])
        last[place] = turns - 1
        remaining -= turns
    return last


def in_shard(dialogue_id: str, shard: tuple[int, int] | None) -> bool:
    """Whether a dialogue is of a part (its number, from 1, and of how many); ``None`` = of all.

    Its id alone decides: it stays in its part whatever the seed, and whichever other dialogues come
    or go.
    """
    if shard is None:
        return True
    number, parts = shard
    return derive(0, "shard", dialogue_id) % parts == number - 1


def part_of(
    plan: Sequence[tuple[Dialogue, int]], shard: tuple[int, int] | None
) -> Sequence[tuple[Dialogue, int]]:
    """Return what `sample_turns` drew of a part of the dialogues, see `in_shard`."""
    if shard is None:
        return plan
    if isinstance(plan, SampledTurns):
        return plan.part(shard)
    return tuple(planned for planned in plan if in_shard(planned[0].id, shard))


def sample_set(
    dialogues: DialogueSet,
    count: int | None,
    seed: int,
    domains: tuple[str, ...] | None = None,
) -> DialogueSet:
    """Return the data set of the turns that `sample_turns` draws, without the others."""
    drawn = sample_turns(dialogues, count, seed, domains)
    cut = (replace(dialogue, turns=dialogue.turns[: last + 1]) for dialogue, last in drawn)
    return replace(dialogues, dialogues=gathered(cut))


def domains_of(dialogue: Dialogue) -> frozenset[str]:
    """Return the domains of which a label of ``dialogue`` names a slot."""
    return domains_of_slots(slot for turn in dialogue.turns for slot in turn.state or ())


def _of_domains(dialogues: DialogueSet, domains: tuple[str, ...] | None) -> Sequence[int]:
    """Return the places of the dialogues that touch one of the domains."""
    if not domains:
        return range(len(dialogues.dialogues))
    wanted = frozenset(domains)
    kept = array("q")
    slots = dialogues.ontology.slots if dialogues.ontology else ()
    known = set(domains_of_slots(slots))
    labels = False
    for place, dialogue in enumerate(dialogues.dialogues):
        touched = domains_of(dialogue)
        labels = labels or any(turn.state is not None for turn in dialogue.turns)
        known |= touched
        if touched & wanted:
            kept.append(place)
    _check_domains(dialogues, domains, known, slots if labels else None)
    if not kept:
        raise DataError(
            f"no dialogue of {dialogues.name!r} ({dialogues.split}) touches "
            f"{', '.join(sorted(wanted))}"
        )
    return kept


def _check_domains(
    dialogues: DialogueSet,
    domains: Iterable[str],
    known: set[str],
    slots: Sequence[str] | None,
) -> None:
    """Refuse domains that there are not; ``slots`` = ``None``: there are no labels."""
    if slots is None:
        raise DataError(
            f"the dialogues of {dialogues.name!r} have no labels, so they cannot be chosen by "
            "domain: leave the domains out, or give labelled dialogues"
        )
    if not known:
        shown = ", ".join(slots[:_SHOWN]) + (", ..." if len(slots) > _SHOWN else "")
        raise DataError(
            f"the slots of {dialogues.name!r} belong to no domain (what stands before the first "
            f"'-' of a name), so dialogues cannot be chosen by domain: {shown}. Leave the domains "
            "out; --dst-slots chooses slots"
        )
    for domain in domains:
        if domain not in known:
            raise UserError(
                f"{unknown_name('domain', domain, known)} Labels and ontology say which there are."
            )


def end_state(calls: Iterable[ToolCall], tools: Iterable[Tool]) -> Outcome:
    """Return all calls that took effect, as an outcome: of those of one `loose_key` the first.

    Those of tools that are said to read only have none.

    >>> two = ToolCall("book", {"people": 2})
    >>> dict(end_state([two, ToolCall("find"), two], [Tool("find", read_only=True)]))
    {'book[0]': 'call 1', 'book[0].people': '2'}
    """
    tools = tuple(tools)
    reading = {tool.name for tool in tools if tool.read_only}
    left_out = defaults_of(tools)
    made: dict[str, ToolCall] = {}
    for call in calls:
        if call.name not in reading:
            made.setdefault(loose_key(call, left_out), call)
    return calls_outcome(made.values())


def loose_key(call: ToolCall, left_out: Mapping[str, object]) -> str:
    """Return what is the same text for calls that a tool would take for one.

    Their arguments are the same but for capitals, outer blanks, ``"2"`` for 2, null, and what the
    tool takes where nothing is said (`defaults_of`).
    """
    given = {
        name: told
        for name, value in call.arguments.items()
        if (told := _loosely(value)) is not None and left_out.get(f"{call.name}.{name}") != told
    }
    return canonical([call.name, given])


def defaults_of(tools: Iterable[Tool], names: Mapping[str, str] | None = None) -> dict[str, object]:
    """Return ``tool.argument`` -> what it is where nobody says, in the form of `loose_key`.

    ``names`` says what tools and arguments are called instead, see `Transcript.names`.
    """
    found = {}
    for tool in tools:
        properties = tool.schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if isinstance(inner, dict) and "default" in inner:
                own = f"{tool.name}.{name}"
                found[(names or {}).get(own, own)] = _loosely(inner["default"])
    return found


def _loosely(value: object) -> object:
    """Return a JSON value in the form in which it is looked up."""
    if isinstance(value, Mapping):
        return {name: _loosely(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_loosely(inner) for inner in value]
    if isinstance(value, bool):
        return str(value).casefold()
    if isinstance(value, str | int | float):
        text = str(value).strip().casefold()
        with suppress(ValueError):
            return float(text)
        return text
    return value


def rolled_out(data: DialogueSet) -> DialogueSet:
    """Return data for full rollouts.

    The label of a turn becomes the end state of the recording before the next utterance, and each
    dialogue knows what its tools returned.
    """
    return replace(data, dialogues=gathered(map(_rolled_out, data.dialogues)))


def with_history(data: DialogueSet, settings: ReplySettings) -> DialogueSet:
    """Return data as settings ask for it: for full rollouts, where the history is the system's."""
    rolls = settings.outcome == TOOL_CALLS and settings.history == "own"
    return rolled_out(data) if rolls else data


def _rolled_out(dialogue: Dialogue) -> Dialogue:
    after = [*(turn.recorded or () for turn in dialogue.turns[1:]), dialogue.closing]
    calls: list[ToolCall] = []
    turns = []
    for turn, block in zip(dialogue.turns, after, strict=True):
        calls += [call for call, _ in _called(block)]
        known = turn.calls is not None
        turns.append(replace(turn, calls=end_state(calls, dialogue.tools) if known else None))
    results = tuple(
        (canonical([call.name, dict(call.arguments)]), told)
        for block in after
        for call, told in _called(block)
        if told is not None
    )
    return replace(dialogue, turns=tuple(turns), results=results)


def _called(block: Iterable[str]) -> Iterator[tuple[ToolCall, str | None]]:
    """Yield the calls of recorded messages with their results; ``None`` = it has none."""
    made: list[ToolCall | None] = []
    results: dict[int, str] = {}
    # An id may be that of a later call once its own call has a result.
    waiting: dict[str, int] = {}
    for message in map(decoded, block):
        if message.role == "tool":
            place = waiting.pop(message.answers or "", None)
            if place is not None:
                results[place] = message.text
        for called in message.calls:
            waiting[called.id] = len(made)
            made.append(called.call)
    for place, call in enumerate(made):
        if call is not None:
            yield call, results.get(place)
