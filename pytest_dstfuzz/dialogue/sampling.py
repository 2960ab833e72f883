"""Samples dialogues by seed, stores large data on disk, and prepares full rollouts."""

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
from pytest_dstfuzz.dialogue.messages import decode_message
from pytest_dstfuzz.dialogue.readers.source import HALF
from pytest_dstfuzz.errors import DataError, UserError, unknown_name
from pytest_dstfuzz.seeding import derive

__all__ = ["in_shard"]


#: Most turns of data that stay in memory.
IN_MEMORY: Final = 2_000


def gather_dialogues(dialogues: Iterable[Dialogue]) -> Sequence[Dialogue]:
    """Return dialogues with unique ids as a tuple. Store them in a file if there are many.

    Raises:
        UserError: If the file cannot be written, or, for stored dialogues, if two have the same id
            or a text is not valid Unicode.
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
    """Yield the items of a list in order. Release each one afterwards."""
    found.reverse()
    while found:
        yield found.pop()


class Records:
    """Byte strings in an unnamed file, accessed by number. All writing precedes any reading.

    Several threads can read the file, and processes that are forked after writing, too.
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
        """Write a record. An empty record flushes the file for readers in other processes."""
        try:
            if record:
                self._file.write(record)
            else:
                self._file.flush()
        except OSError as error:
            raise _unwritable(error) from None


def _unwritable(error: OSError) -> UserError:
    return UserError(
        f"large data cannot be written to the folder for temporary files, {gettempdir()}: "
        f"{error.strerror or error}; set TMPDIR to a folder with enough space"
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
    #: Indices in the list of all tools.
    tools: list[int]
    closing: tuple[str, ...]
    results: tuple[tuple[str, str], ...]


_DECODER: Final = msgspec.msgpack.Decoder(_StoredDialogue)


class SpooledDialogues(StoredDialogues):
    """Dialogues that are read from a file on access."""

    def __init__(self, dialogues: Iterable[Dialogue]) -> None:
        self._places: dict[str, int] = {}
        self._lengths = array("L")
        self._tools: dict[Tool, int] = {}
        self._labelled = True
        self._records = Records(map(self._taken, dialogues))
        self._listed = tuple(self._tools)

    def _taken(self, dialogue: Dialogue) -> bytes:
        """Add a dialogue to the tables. Return its stored form."""
        place = self._places.setdefault(dialogue.id, len(self._lengths))
        if place < len(self._lengths):
            raise DataError(f"two dialogues have the id {dialogue.id!r}: ids must be unique")
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
            raise DataError(f"dialogue {dialogue.id} contains {HALF}") from None

    @property
    def places(self) -> Mapping[str, int]:
        """Id of each dialogue -> its index."""
        return self._places

    @property
    def lengths(self) -> Sequence[int]:
        """Number of turns of each dialogue."""
        return self._lengths

    @property
    def labelled(self) -> bool:
        """Whether every turn has a belief state label."""
        return self._labelled

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools of the dialogues, without duplicates, in order of appearance."""
        return self._listed

    def read(self, place: int) -> Dialogue:
        """Return the dialogue at an index."""
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


#: Most slots that a message lists.
_SHOWN = 6


class SampledTurns(Sequence[tuple[Dialogue, int]]):
    """Sampled dialogues of large data, each with its last sampled turn, read on access.

    Args:
        dialogues: all dialogues of the data.
        places: the indices of the sampled ones.
        lasts: the last sampled turn of each.
    """

    def __init__(
        self, dialogues: StoredDialogues, places: Sequence[int], lasts: Sequence[int]
    ) -> None:
        self._dialogues = dialogues
        self._places = places
        self._lasts = lasts

    def part(self, shard: tuple[int, int]) -> SampledTurns:
        """Return the sample restricted to one shard, see `in_shard`."""
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
    """Draw dialogues until they have ``count`` turns. Return each with its last turn.

    The dialogues are in the order of the data. The last drawn dialogue is cut to get exactly
    ``count`` turns. If the data has fewer turns, all are returned. A dialogue's rank in the draw
    depends only on its id and the seed. So a seed draws the same dialogues first for any count and
    in any copy or extension of the data. If ``domains`` are given, only dialogues with a label for
    a slot of these domains are drawn. The domain is the part of a slot's name before the first
    ``-``. Large data is read on access.
    """
    if count is not None and count < 1:
        raise UserError(f"the number of turns must be at least 1 or 'all', got {count}")
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
    """Return the index of each drawn dialogue with its last turn."""
    # Use the id, not the index or the name of the data, so that a copy gives the same draw.
    ranks = bytearray()
    for place in kept:
        ranks += rank_in_draw(seed, ids[place]).to_bytes(16, "big")
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


def rank_in_draw(seed: int, dialogue_id: str) -> int:
    """Return the rank of a dialogue in the draw of `sample_turns`. Low ranks are drawn first."""
    return derive(seed, "sample", dialogue_id)


def in_shard(dialogue_id: str, shard: tuple[int, int] | None) -> bool:
    """Return whether a dialogue is in a shard ``(number from 1, count)``. ``None`` means all data.

    The shard depends only on the id, not on the seed or other dialogues.
    """
    if shard is None:
        return True
    number, parts = shard
    return derive(0, "shard", dialogue_id) % parts == number - 1


def part_of(
    plan: Sequence[tuple[Dialogue, int]], shard: tuple[int, int] | None
) -> Sequence[tuple[Dialogue, int]]:
    """Return the part of a sample from `sample_turns` in a shard, see `in_shard`."""
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
    """Return a data set with only the turns that `sample_turns` draws."""
    drawn = sample_turns(dialogues, count, seed, domains)
    cut = (replace(dialogue, turns=dialogue.turns[: last + 1]) for dialogue, last in drawn)
    return replace(dialogues, dialogues=gather_dialogues(cut))


def domains_of(dialogue: Dialogue) -> frozenset[str]:
    """Return the domains of the slots in the labels of ``dialogue``."""
    return domains_of_slots(slot for turn in dialogue.turns for slot in turn.state or ())


def note_unlabelled(data: DialogueSet, domains: Sequence[str] | None) -> DialogueSet:
    """Add a note if dialogues cannot be chosen by domain because they have no labels."""
    if not domains:
        return data
    count = sum(all(turn.state is None for turn in one.turns) for one in data.dialogues)
    if not count:
        return data
    note = (
        f"{count:,} of {len(data.dialogues):,} dialogues have no labels, and are left out because "
        "dialogues are chosen by domain."
    )
    return replace(data, notes=(*data.notes, note))


def _of_domains(dialogues: DialogueSet, domains: tuple[str, ...] | None) -> Sequence[int]:
    """Return the indices of the dialogues with a slot of one of the domains."""
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
            f"no dialogue of {dialogues.name!r} ({dialogues.split}) has a label in the "
            f"{'domain' if len(wanted) == 1 else 'domains'} {', '.join(sorted(wanted))}"
        )
    return kept


def _check_domains(
    dialogues: DialogueSet,
    domains: Iterable[str],
    known: set[str],
    slots: Sequence[str] | None,
) -> None:
    """Raise an error for unknown domains. ``slots`` is ``None`` if the data has no labels."""
    if slots is None:
        raise DataError(
            f"the dialogues of {dialogues.name!r} have no labels, so they cannot be chosen by "
            "domain: leave the domains out, or give labelled dialogues"
        )
    if not known:
        shown = ", ".join(slots[:_SHOWN]) + (", ..." if len(slots) > _SHOWN else "")
        raise DataError(
            f"the slots of {dialogues.name!r} have no domain (the part of a name before the first "
            f"'-'), so dialogues cannot be chosen by domain: {shown}. Leave the domains out; "
            "--dst-slots chooses slots"
        )
    for domain in domains:
        if domain not in known:
            raise UserError(
                f"{unknown_name('domain', domain, known)} "
                "These are the domains of the labels and of the ontology."
            )


def end_state(calls: Iterable[ToolCall], tools: Iterable[Tool]) -> Outcome:
    """Return an outcome with the first call of each `loose_key`. Skip read-only tools.

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
    """Return a text that is equal for calls with the same effect.

    The arguments of such calls may differ in case, outer blanks, ``"2"`` for 2, null, and explicit
    defaults (`defaults_of`).
    """
    given = {
        name: told
        for name, value in call.arguments.items()
        if (told := _loosely(value)) is not None and left_out.get(f"{call.name}.{name}") != told
    }
    return canonical([call.name, given])


def defaults_of(tools: Iterable[Tool], names: Mapping[str, str] | None = None) -> dict[str, object]:
    """Map ``tool.argument`` to its default value, in the form of `loose_key`.

    ``names`` maps names of tools and arguments to other names, see `Transcript.names`.
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
    """Return a JSON value in the form for loose comparison."""
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


def roll_out(data: DialogueSet) -> DialogueSet:
    """Return data for full rollouts.

    The label of a turn becomes the recording's end state before the next utterance. Each dialogue
    stores the results of its tool calls.
    """
    return replace(data, dialogues=gather_dialogues(map(_rolled_out, data.dialogues)))


def with_history(data: DialogueSet, settings: ReplySettings) -> DialogueSet:
    """Return data for full rollouts if the settings use the system's own history."""
    rolls = settings.outcome == TOOL_CALLS and settings.history == "own"
    return roll_out(data) if rolls else data


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
    """Yield the calls in recorded messages with their results. The result may be ``None``."""
    made: list[ToolCall | None] = []
    results: dict[int, str] = {}
    # A later call may reuse an id after the earlier call has its result.
    waiting: dict[str, int] = {}
    for message in map(decode_message, block):
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
