"""The compact form of turns in files, and reports of several trackers."""

from __future__ import annotations

import glob
import json
import re
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import utf8, write_named
from pytest_dstfuzz.json_data import json_decoder, shorten_value, with_article

__all__ = ["pack_turns", "unpack_turns"]


_Plain = dict[str, Any]


class _EarlierTurns(NamedTuple):
    """The earlier turns in the context of a variant or of its minimal version."""

    texts: list[str]
    #: The ``turn_index`` and ``edits`` of each perturbed turn.
    edited: list[_Plain]


class _EarlierVariant(NamedTuple):
    """A variant of an earlier turn."""

    text: str
    edits: list[_Plain]
    before: _EarlierTurns


@dataclass(slots=True)
class _KnownDialogue:
    """The texts of one dialogue under one tracker, collected from its turns."""

    #: Turn -> texts of system and user; ``None`` = unknown.
    rounds: dict[int, list[str | None]] = field(default_factory=dict)
    #: Relation -> turn -> variants by number.
    variants: dict[str, dict[int, dict[int, _EarlierVariant]]] = field(default_factory=dict)

    def begin(self, turn: _Plain) -> None:
        """Record the rounds in a packed turn, including the turn itself."""
        for one in turn.get("earlier_turns", ()):
            self.rounds[one["turn_index"]] = [one["system"], one["user"]]
        self.rounds[turn["turn_index"]] = [turn["system"], turn["user"]]

    def end(self, turn: _Plain) -> None:
        """Return the variants of a turn under a relation, keyed by number."""
        of_relation = self.variants.setdefault(turn.get("relation", ""), {})
        of_relation[turn["turn_index"]] = {
            one["index"]: _EarlierVariant(
                one["text"], one["edits"], _EarlierTurns(one["context"], one["context_edits"])
            )
            for one in turn["variants"]
        }

    def of(self, relation: str, turn: int) -> Mapping[int, _EarlierVariant]:
        """Return the variants of a turn under a relation, by number."""
        return self.variants.get(relation, {}).get(turn, {})

    def clean(self, turn: int) -> list[str | None]:
        """Return the user texts before a turn."""
        return [self.rounds.get(number, _UNKNOWN)[1] for number in range(turn)]


_UNKNOWN: Final[list[str | None]] = [None, None]


class _LastDialogue:
    """The known texts of the current dialogue. They are cleared when another dialogue begins."""

    def __init__(self) -> None:
        self._id = ""
        self._found: dict[tuple[str, str], _KnownDialogue] = {}

    def of(self, turn: _Plain) -> _KnownDialogue:
        if turn["dialogue_id"] != self._id:
            self._id, self._found = turn["dialogue_id"], {}
        # Two data sets may have dialogues with the same name.
        data = turn["id"].rpartition("-t")[0]
        return self._found.setdefault((turn.get("model", ""), data), _KnownDialogue())


def pack_turns(turns: Iterable[_Plain]) -> Iterator[_Plain]:
    """Yield turns in compact form. They may refer to earlier turns of the dialogue."""
    memory = _LastDialogue()
    for turn in turns:
        yield _packed(turn, memory.of(turn))


def unpack_turns(turns: Iterable[_Plain]) -> Iterator[_Plain]:
    """Yield turns in their original form. This is the inverse of `pack_turns`.

    Raises:
        DataError: a turn refers to data that no earlier turn contains.
    """
    memory = _LastDialogue()
    for number, turn in enumerate(turns):
        try:
            yield _unpacked(turn, memory.of(turn))
        except (LookupError, TypeError, AttributeError) as error:
            raise DataError(
                f"entry {number} of 'turns' is no turn, or refers to an earlier one that is not "
                f"there ({type(error).__name__}: {error}): keep the turns of a dialogue together"
            ) from None


# -- packing ----------------------------------------------------------------------


def _packed(turn: _Plain, known: _KnownDialogue) -> _Plain:
    found, index = dict(turn), turn["turn_index"]
    systems = found.pop("earlier_system", [])
    if len(systems) != index:
        found["earlier_system"] = systems
        systems = [None] * index
    if added := _rounds_to_add(turn, systems, known):
        found["earlier_turns"] = added
    known.begin(found)
    found["variants"] = [_packed_variant(one, turn, known) for one in turn["variants"]]
    known.end(turn)
    return found


def _rounds_to_add(
    turn: _Plain, systems: Sequence[str | None], known: _KnownDialogue
) -> list[_Plain]:
    """Return the earlier rounds whose texts are unknown or have changed."""
    users: dict[int, str] = {}
    for one in turn["variants"]:
        if one["exchanges"] is None and len(one["context"]) == len(systems):
            perturbed = {each["turn_index"] for each in one["context_edits"]}
            for number, text in enumerate(one["context"]):
                if number not in perturbed:
                    users.setdefault(number, text)
    added = []
    for number, system in enumerate(systems):
        before = known.rounds.get(number, _UNKNOWN)
        told = [before[0] if system is None else system, users.get(number, before[1])]
        if told != before:
            added.append({"turn_index": number, "system": told[0], "user": told[1]})
    return added


def _packed_variant(variant: _Plain, turn: _Plain, known: _KnownDialogue) -> _Plain:
    found: _Plain = {}
    rounds = variant["exchanges"]
    for name, value in variant.items():
        if name in ("exchanges", "reference") and value is not None:
            found[name] = _packed_rounds(value, known)
        elif name == "minimal" and value is not None:
            found[name] = _packed_context(value, variant["index"], turn, known)
        else:
            found[name] = value
    if rounds is None:
        return _packed_context(found, variant["index"], turn, known)
    if variant["context"] == _users(rounds):
        del found["context"]
    return found


def _packed_context(shown: _Plain, number: int, turn: _Plain, known: _KnownDialogue) -> _Plain:
    """Return a variant, or its smallest version, with ``earlier`` instead of its context."""
    texts, edited, index = shown["context"], shown["context_edits"], turn["turn_index"]
    entries = _earlier(_EarlierTurns(texts, edited), number, turn.get("relation", ""), index, known)
    if entries is None or _shown(entries, turn.get("relation", ""), index, known) != (
        texts,
        edited,
    ):
        return shown
    found: _Plain = {}
    for name, value in shown.items():
        if name == "context":
            found["earlier"] = entries
        elif name != "context_edits":
            found[name] = value
    return found


def _earlier(
    shown: _EarlierTurns, number: int, relation: str, index: int, known: _KnownDialogue
) -> list[_Plain] | None:
    """Return a compact form of the earlier turns, or ``None`` if there is none."""
    if len(shown.texts) != index or any(one["turn_index"] >= index for one in shown.edited):
        return None
    entries: list[_Plain] = []
    done = 0
    for turn in range(index - 1, -1, -1):
        if (seen := known.of(relation, turn).get(number)) is not None:
            done = len(seen.before.edited)
            if done and shown.edited[:done] == seen.before.edited:
                entries.append({"seen_at": turn, "variant": number})
            else:
                done = 0
            break
    for one in shown.edited[done:]:
        turn, text = one["turn_index"], shown.texts[one["turn_index"]]
        seen = known.of(relation, turn).get(number)
        if seen is not None and (seen.text, seen.edits) == (text, one["edits"]):
            entries.append({"turn_index": turn, "variant": number})
        else:
            entries.append({"turn_index": turn, "text": text, "edits": one["edits"]})
    return entries


def _packed_rounds(rounds: Sequence[_Plain], known: _KnownDialogue) -> list[_Plain]:
    """Return rounds in compact form: a reference replaces consecutive rounds of the dialogue."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, (system, user) in known.rounds.items():
        if system is not None and user is not None:
            places.setdefault((system, user), []).append(place)
    found: list[_Plain] = []
    for one in rounds:
        here = places.get((one["system"], one["user"]), [])
        if here and found and found[-1].get("to", -2) + 1 in here:
            found[-1]["to"] += 1
        else:
            found.append({"from": here[0], "to": here[0]} if here else one)
    return found


# -- unpacking --------------------------------------------------------------------


def _unpacked(turn: _Plain, known: _KnownDialogue) -> _Plain:
    known.begin(turn)
    index, relation = turn["turn_index"], turn.get("relation", "")
    found: _Plain = {}
    for name, value in turn.items():
        if name == "variants":
            found[name] = [_unpacked_variant(one, relation, index, known) for one in value]
        elif name != "earlier_turns":
            found[name] = value
    if "earlier_system" not in found:
        systems = [known.rounds.get(number, _UNKNOWN)[0] for number in range(index)]
        found["earlier_system"] = [] if None in systems else systems
    known.end(found)
    return found


def _unpacked_variant(variant: _Plain, relation: str, index: int, known: _KnownDialogue) -> _Plain:
    found = dict(variant)
    for name in ("exchanges", "reference"):
        if found.get(name) is not None:
            found[name] = list(_unpacked_rounds(found[name], known))
    if found.get("minimal") is not None:
        found["minimal"] = _with_context(found["minimal"], relation, index, known)
    if "context" not in found and found.get("exchanges") is not None:
        found["context"] = _users(found["exchanges"])
    return _with_context(found, relation, index, known)


def _with_context(shown: _Plain, relation: str, index: int, known: _KnownDialogue) -> _Plain:
    if "earlier" not in shown:
        return shown
    texts, edited = _shown(shown["earlier"], relation, index, known)
    found: _Plain = {}
    for name, value in shown.items():
        if name == "earlier":
            found["context"] = texts
            found["context_edits"] = edited
        else:
            found[name] = value
    return found


def _shown(
    entries: Sequence[_Plain], relation: str, index: int, known: _KnownDialogue
) -> tuple[list[Any], list[_Plain]]:
    """Return the earlier turns that the entries describe. Other turns are clean."""
    texts, edited = known.clean(index), list[_Plain]()
    for one in entries:
        if "seen_at" in one:
            before = known.of(relation, one["seen_at"])[one["variant"]].before
            for each in before.edited:
                texts[each["turn_index"]] = before.texts[each["turn_index"]]
            edited += before.edited
            continue
        turn = one["turn_index"]
        text, edits = one.get("text"), one.get("edits")
        if "variant" in one:
            text, edits, _ = known.of(relation, turn)[one["variant"]]
        texts[turn] = text
        edited.append({"turn_index": turn, "edits": edits})
    return texts, edited


def _unpacked_rounds(rounds: Sequence[_Plain], known: _KnownDialogue) -> Iterator[_Plain]:
    for one in rounds:
        if "from" not in one:
            yield one
            continue
        for number in range(one["from"], one["to"] + 1):
            system, user = known.rounds[number]
            yield {"system": system, "user": user}


def _users(rounds: Sequence[_Plain]) -> list[str]:
    return [one["user"] for one in rounds[:-1]]


#: Maximum number of turns in a report with a single file, and in a part of a larger one.
MOST_IN_ONE_FILE: Final = 5_000
TURNS_OF_PART: Final = 1_000
_DECODED: Final = json_decoder(TurnResult)


#: ``<name of the report>.turns-<number>-<digest>.jsonl``
_PART: Final = re.compile(r"[^/\\]+\.turns-\d{4,}-[0-9a-f]{8}\.jsonl")


class TurnLines(Collection[dict[str, Any]]):
    """Turns of a report, read from disk on each iteration."""

    @abstractmethod
    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON, without the newline."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, self.lines())

    def __contains__(self, turn: object) -> bool:
        return any(one == turn for one in self)


class SpooledTurns(TurnLines):
    """Turns in a temporary file of this process.

    The turns are stored as they arrive. They are read in the order of dialogue, turn, id and text.
    Memory holds only one dialogue at a time, and the file positions of all dialogues.
    """

    def __init__(self, turns: Iterable[Mapping[str, Any]]) -> None:
        """Write turns. Turns of one dialogue should be adjacent."""
        self._count = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when this is collected
        weakref.finalize(self, self._file.close)
        #: Dialogue -> start and length of its blocks of turns.
        self._places: dict[str, list[tuple[int, int]]] = {}
        dialogue, lines = "", list[_Line]()
        for turn in turns:
            if turn["dialogue_id"] != dialogue:
                self._write(dialogue, lines)
                dialogue, lines = turn["dialogue_id"], []
            lines.append(_line(turn, json.dumps(turn, ensure_ascii=False, allow_nan=False)))
        self._write(dialogue, lines)

    def _write(self, dialogue: str, lines: Sequence[_Line]) -> None:
        if lines:
            block = b"".join(utf8(text) + b"\n" for *_, text in sorted(lines))
            place = self._file.seek(0, 2), len(block)
            self._file.write(block)
            self._places.setdefault(dialogue, []).append(place)
            self._count += len(lines)

    def __len__(self) -> int:
        return self._count

    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON."""
        for _, places in sorted(self._places.items()):
            found = [line for place in places for line in self._read(*place)]
            if len(places) > 1:
                texts = [text.decode("utf-8") for text in found]
                found = [utf8(text) for *_, text in sorted(_line(json.loads(t), t) for t in texts)]
            yield from found

    def _read(self, start: int, size: int) -> list[bytes]:
        self._file.seek(start)
        return self._file.read(size).splitlines()


#: Sort key of the turns of a dialogue: turn, id, text.
_Line = tuple[int, str, str]


def _line(turn: Mapping[str, Any], text: str) -> _Line:
    return turn["turn_index"], turn["id"], text


class TurnParts(TurnLines):
    """The turns of a large report, stored in several files."""

    def __init__(self, report: Path, entry: Mapping[str, Any]) -> None:
        """Store the report's entry about its turns. Raise a `DataError` if a part is missing."""
        self._folder = report.expanduser().resolve().parent
        self._names, self._count = list(map(str, entry["parts"])), int(entry["count"])
        for name in self._names:
            if not _PART.fullmatch(name) or not (self._folder / name).is_file():
                raise DataError(
                    f"{report} lacks its part {name}: the turns of a large report are in files "
                    "beside it, so move them together with the report"
                )

    def __len__(self) -> int:
        return self._count

    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON. Raise a `DataError` if the number of turns is wrong."""
        return _encoded(unpack_turns(_decoded(self._raw())))

    def _raw(self) -> Iterator[bytes]:
        """Yield the lines of the files. Raise a `DataError` if their number is wrong."""
        found = 0
        for name in self._names:
            try:
                with (self._folder / name).open("rb") as file:
                    for line in file:
                        found += 1
                        yield line.rstrip(b"\n")
            except OSError as error:
                text = f"cannot read {self._folder / name}: {error.strerror or error}"
                raise DataError(text) from None
        if found != self._count:
            raise DataError(f"{self._folder / name} is cut off: {found:,} of {self._count:,} turns")


class DecodedTurns(Collection[TurnResult]):
    """The turns of a large report as results."""

    def __init__(self, lines: TurnLines) -> None:
        self._lines: Final = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[TurnResult]:
        for number, line in enumerate(self._lines.lines()):
            try:
                yield _DECODED(line)
            except ValueError as error:
                raise DataError(f"entry {number} of 'turns' is no turn: {error}") from None

    def __contains__(self, turn: object) -> bool:
        return any(one == turn for one in self)


def _encoded(turns: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    return (utf8(json.dumps(turn, ensure_ascii=False, allow_nan=False)) for turn in turns)


def _decoded(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DataError(f"entry {number} of 'turns' is no turn: {error}") from None


def write_parts(report: Path, turns: TurnLines) -> dict[str, Any]:
    """Write the parts of a report. Return the entry about its turns for the report."""
    names: list[str] = []
    folder = report.expanduser().resolve().parent
    lines = (line + b"\n" for line in _encoded(pack_turns(turns)))
    for first in lines:
        part = write_named(
            folder,
            chain([first], islice(lines, TURNS_OF_PART - 1)),
            f"{report.stem}.turns-{len(names) + 1:04d}-",
            ".jsonl",
        )
        names.append(part.name)
    return {"count": len(turns), "parts": names}


def remove_parts(report: Path, keep: Collection[str] = ()) -> None:
    """Remove the parts of earlier reports with the same name."""
    folder = report.expanduser().resolve().parent
    for old in folder.glob(f"{glob.escape(report.stem)}.turns-*.jsonl"):
        if _PART.fullmatch(old.name) and old.name not in keep:
            with suppress(OSError):  # The file may be in use, on Windows.
                old.unlink()


#: Keys that the reports of all trackers share.
_SHARED: Final = ("schema_version", "tool", "regressions", "turns", "run")


def report_of_models(
    parts: Mapping[str, Mapping[str, Any]], verdicts: Sequence[str]
) -> dict[str, Any]:
    """Return one report that combines the reports of several trackers.

    It has the verdict on the whole session, which fails if any tracker fails.

    Args:
        parts: the reports by tracker name.
        verdicts: the possible verdicts of a gate, ordered from best to worst.
    """
    first = dict(next(iter(parts.values())))
    if len(parts) == 1:
        return first
    entries = [
        {"name": name, **{key: value for key, value in one.items() if key not in _SHARED}}
        for name, one in parts.items()
    ]
    turns = [one["turns"] for one in parts.values()]
    run = first.pop("run")
    return {
        **first,
        "schema_version": max(one["schema_version"] for one in parts.values()),
        "gate": _gate({name: one["gate"] for name, one in parts.items()}, verdicts),
        "models": entries,
        "turns": _together(turns),
        "run": run,
    }


def reports_of(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the report of each tracker by name. A single tracker has the name ``""``."""
    models = report.get("models") or ()
    if not models:
        return {"": report}
    shared = {name: report[name] for name in _SHARED if name in report}
    return {
        one["name"]: {**shared, **one, "turns": _of_model(report["turns"], one["name"])}
        for one in models
    }


def _gate(
    gates: Mapping[str, Mapping[str, Any] | None], verdicts: Sequence[str]
) -> dict[str, Any] | None:
    """Return the verdict on a session. Each reason begins with the name of its tracker."""
    judged = {name: gate for name, gate in gates.items() if gate is not None}
    if not judged:
        return None
    texts = {
        key: [f"{name}: {text}" for name, gate in judged.items() for text in gate[key]]
        for key in ("troubles", "not_compared", "not_judged", "partly_applied", "raised", "covered")
    }
    findings = [
        {**finding, "reason": f"{name}: {finding['reason']}"}
        for name, gate in judged.items()
        for finding in gate["findings"]
    ]
    worst = max((str(gate["verdict"]) for gate in judged.values()), key=verdicts.index)
    return {"verdict": worst, **texts, "findings": findings, "comparison": None}


def _together(parts: Sequence[Collection[Mapping[str, Any]]]) -> list[Any] | TurnLines:
    """Return the turns of several reports, in the form of one report."""
    turns = chain.from_iterable(parts)
    if sum(map(len, parts)) > MOST_IN_ONE_FILE:
        return SpooledTurns(turns)
    return sorted(turns, key=lambda it: (it["dialogue_id"], it["turn_index"], it["id"]))


def _of_model(turns: Sequence[Any] | TurnLines, name: str) -> Sequence[Any] | TurnLines:
    if isinstance(turns, TurnLines):
        return _ChosenTurns(turns, name)
    return [turn for turn in turns if turn.get("model") == name]


class _ChosenTurns(TurnLines):
    """The turns of one tracker in a large report."""

    def __init__(self, turns: TurnLines, model: str) -> None:
        self._turns: Final = turns
        self._model: Final = model

    def __len__(self) -> int:
        return sum(1 for _ in self.lines())

    def lines(self) -> Iterator[bytes]:
        """Yield each turn as JSON."""
        return (line for line in self._turns.lines() if json.loads(line)["model"] == self._model)


def problems(value: Any, schema: Mapping[str, Any], *, complete: bool = True) -> list[str]:
    """Return schema violations of a JSON value, each with its place.

    If ``complete`` is false, required keys may be missing.
    """
    # Import late, because only reading a report needs it.
    import jsonschema_rs  # noqa: PLC0415

    validator = jsonschema_rs.validator_for(dict(schema))
    try:
        errors = list(validator.iter_errors(value))
    except UnicodeEncodeError:
        # The report has a lone surrogate, which only Python accepts as a character.
        text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        errors = list(validator.iter_errors(json.loads(text)))
    return [_message(error) for error in errors if complete or error.kind.name != "required"]


def _message(error: Any) -> str:
    place = "".join(
        f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.instance_path
    )
    rule, limit, value = error.kind.name, error.kind.value, error.instance
    if rule == "required":
        return f"${place}: lacks {limit}"
    if rule == "type":
        return f"${place}: {shorten_value(value)} instead of {with_article(limit)}"
    return f"${place}: {shorten_value(value)} breaks {rule} {limit!r}"
