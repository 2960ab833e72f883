"""The JSON report with all results. The same campaign produces the same bytes.

``schema.json`` in this folder is its JSON Schema. ``schema.md`` explains each key.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pytest_dstfuzz import __version__
from pytest_dstfuzz.campaign.results import Results, TurnResult
from pytest_dstfuzz.comparisons.judge import (
    JudgeFacts,
    is_tested_model,
    protocol,
    protocol_digest,
)
from pytest_dstfuzz.config import Settings, names_of, settings_json
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import read_versioned, write_text
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.perturb.spelling import words_of_ontology
from pytest_dstfuzz.report.figures import WhatItTook, WhoJudged
from pytest_dstfuzz.report.packing import (
    MOST_IN_ONE_FILE,
    DecodedTurns,
    SpooledTurns,
    TurnLines,
    TurnParts,
    pack_turns,
    problems,
    remove_parts,
    unpack_turns,
    write_parts,
)
from pytest_dstfuzz.report.weaknesses import weaknesses_json
from pytest_dstfuzz.totals.totals import RelationFacts, Totals
from pytest_dstfuzz.trackers.tracker import Disagreement, Usage

__all__ = ["RunInfo", "build_report", "judge_info", "read_report", "report_turns", "write_report"]

SCHEMA_VERSION = 3
#: The JSON Schema of a report.
SCHEMA_PATH = Path(__file__).with_name("schema.json")
_DECIMALS = 4
#: Key of a share of user input -> number of significant digits, since such a share may be small.
#: Pages compute other figures from these values and must show the same numbers as the terminal.
_DIGITS = {
    **dict.fromkeys(("weight", "distorted", "locked"), 6),
    "log_probability": 9,
}
_Part = TypeVar("_Part")
#: Settings that do not affect the results.
_PLACES = names_of("place")
#: Fields of `RunInfo` that belong to the data rather than to the run.
_OF_DATA = ["split", "normalisation", "layout", "dialogues", "turns", "lexicon", "policy", "ended"]
#: The values of these fields if a report lacks them.
_UNKNOWN = dict.fromkeys(_OF_DATA, "") | {"dialogues": 0, "turns": 0}


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The tested data, and the circumstances of the run.

    Two runs of one campaign have equal values, except for ``notes``, ``command``, ``repeat``,
    ``started``, ``seconds``, ``usage``, ``disagreement``, ``asked``, ``recalled`` and the counts of
    ``judge``.
    """

    #: Short name of the data set.
    data: str
    split: str
    #: Name of the value normalisation.
    normalisation: str
    #: Layout of the data files.
    layout: str
    #: Size of the data set. The results show which part of it was tested.
    dialogues: int
    turns: int
    #: Fingerprint of the lexicon for variants (several are separated by blanks).
    lexicon: str = ""
    #: Fingerprint of the agent's policy (several are separated by blanks).
    policy: str = ""
    #: Notes for the user on the choices of the reader and on deviations from the settings. They may
    #: contain paths.
    notes: tuple[str, ...] = ()
    #: The reason if the run ended before its last turn, else ``""``.
    ended: str = ""
    #: The command line.
    command: str = ""
    #: The command that repeats the run with a failing test for each violation; ``""`` if the run
    #: cannot be repeated.
    repeat: str = ""
    #: ISO 8601, with time zone.
    started: str = ""
    seconds: float | None = None
    #: Tokens and costs of the answers; ``None`` if no tracker counts tokens.
    usage: Usage | None = None
    #: How often a tracker that may be nondeterministic disagreed with itself before the run.
    disagreement: Disagreement | None = None
    #: Number of contexts sent to trackers, without those of preflight checks, and number of answers
    #: from a cache.
    asked: int = 0
    recalled: int = 0
    #: Names of the comparisons of replies; ``""`` for states.
    compared: str = ""
    #: The language model that compares replies, if there is one.
    judge: tuple[WhoJudged, WhatItTook] | None = None
    #: Words of the ontology for a spelling corrector, separated by blanks; ``None`` if unknown.
    words: str | None = None
    #: Name of a relation -> its facts.
    relations: Mapping[str, RelationFacts] = field(default_factory=dict)

    @classmethod
    def of(cls, data: DialogueSet, *, notes: tuple[str, ...] = (), **more: Any) -> RunInfo:
        """Return the info for a run on ``data``. ``more`` sets other fields."""
        return cls(
            data=data.name,
            split=data.split,
            normalisation=data.normalisation,
            layout=data.layout,
            dialogues=len(data.dialogues),
            turns=data.turn_count(),
            notes=(*data.notes, *notes),
            words=" ".join(sorted({*words_of_ontology(data.ontology)})),
            **more,
        )


def judge_info(facts: JudgeFacts | None, settings: Settings) -> tuple[WhoJudged, WhatItTook] | None:
    """Return facts about the language model that compared replies, if there was one."""
    if facts is None:
        return None
    tested = is_tested_model(settings.reply, settings.tracker)
    told = WhoJudged(facts.model, facts.address, tested, protocol_digest(), protocol())
    counts = facts.pairs, facts.unsure, facts.past_budget, facts.calls
    return told, WhatItTook(*counts, facts.usage)


def build_report(
    results: Results,
    settings: Settings,
    info: RunInfo,
    gate: Mapping[str, Any] | None = None,
    regressions: Sequence[Mapping[str, Any]] = (),
    totals: Totals | None = None,
) -> dict[str, Any]:
    """Return the report of a campaign. The order of ``results`` does not matter.

    If there are several relations, summary and ledger belong to the first one. By default,
    ``totals`` are computed from ``results``. If ``results`` were redacted, pass the totals.
    """
    if totals is None:
        totals = Totals.of(results, info.relations, words=info.words)
    options, named = settings_json(settings), settings.variant.relation
    turns, first = _turns(results), totals.first(named)
    report: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "pytest-dstfuzz", "version": __version__},
        "summary": first.summary.to_json(),
        "gate": None if gate is None else dict(gate),
        "settings": {name: value for name, value in options.items() if name not in _PLACES},
        "data": {"name": info.data, **{name: getattr(info, name) for name in _OF_DATA}},
        "outcome": {"kind": settings.reply.outcome, "compared": info.compared},
        "ledger": first.ledger_json(),
        "relations": [one.to_json() for one in totals.sections(named)],
        "weaknesses": weaknesses_json(totals.weaknesses),
        "spelling_corrector": None if totals.mending is None else totals.mending._asdict(),
        "regressions": [dict(entry) for entry in regressions],
        "turns": turns,
        "run": {
            "command": info.command,
            "repeat": info.repeat,
            "started": info.started,
            "seconds": info.seconds,
            **{name: options[name] for name in _PLACES},
            "python": platform.python_version(),
            "platform": platform.platform(),
            "contexts": {"asked": info.asked, "recalled": info.recalled},
            "usage": to_json(info.usage),
            "disagreement": to_json(info.disagreement),
            "notes": list(info.notes),
        },
    }
    if info.judge is not None:
        told, took = info.judge
        report["outcome"] |= {"judge": to_json(told)}
        report["run"] |= {"judge": to_json(took)}
    if totals.added:
        report["sections"] = [
            {"title": one.title, "lines": list(one.lines)} for one in totals.added
        ]
    if cases := totals.cases.figures:
        report["mortar"] = [one.to_json() for one in cases]
    return {name: value if name == "turns" else _rounded(value) for name, value in report.items()}


def info_of(report: Mapping[str, Any]) -> RunInfo:
    """Return the facts about the run in a report. Missing facts have their default values."""
    data, run, outcome = report["data"], report["run"], report.get("outcome", {})
    contexts = run.get("contexts", {})
    who, took = _part(WhoJudged, outcome, "judge"), _part(WhatItTook, run, "judge")
    return RunInfo(
        data=str(data.get("name", "")),
        **{name: data.get(name, known) for name, known in _UNKNOWN.items()},
        notes=tuple(map(str, run.get("notes", ()))),
        **{name: run.get(name, "") for name in ("command", "repeat", "started")},
        seconds=run.get("seconds"),
        usage=_part(Usage, run, "usage"),
        disagreement=_part(Disagreement, run, "disagreement"),
        asked=contexts.get("asked", 0),
        recalled=contexts.get("recalled", 0),
        compared=str(outcome.get("compared", "")),
        judge=None if who is None or took is None else (who, took),
    )


def _part(kind: type[_Part], within: Mapping[str, Any], name: str) -> _Part | None:
    """Return an object of a report, or ``None`` if it is missing or null.

    Raises:
        DataError: it lacks a key, or a value has the wrong type.
    """
    if within.get(name) is None:
        return None
    try:
        return from_json(kind, within[name])
    except ValueError as error:
        raise DataError(f"the report is damaged: {name!r}: {error}") from None


def _turns(results: Results) -> list[dict[str, Any]] | TurnLines:
    """Return the turns in the order of a report. The turns of a large report stay on disk."""
    turns = (_rounded(result.to_json()) for result in results)
    if len(results) > MOST_IN_ONE_FILE:
        return SpooledTurns(turns)
    # Two tests may run the same turn with different settings, so the content is the last sort key.
    return sorted(
        turns, key=lambda it: (it["dialogue_id"], it["turn_index"], it["id"], _compact(it))
    )


def report_text(report: Mapping[str, Any]) -> str:
    """Return the report as JSON, with one key or turn per line."""
    lines = []
    for name, value in report.items():
        if name == "turns" and value and isinstance(value, list):
            text = ",\n".join(map(_compact, pack_turns(value)))
            lines.append(f'"turns": [\n{text}\n]')
        else:
            lines.append(f"{_compact(name)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_report(path: Path, report: Mapping[str, Any]) -> None:
    """Write the report. An existing file stays unchanged if this fails.

    The turns of a large report go to separate files beside it, see `write_parts`. The report is
    written last. So another process always finds a complete report, either the old or the new one.
    """
    turns, parts = report.get("turns"), list[str]()
    if isinstance(turns, TurnLines):
        entry = write_parts(path, turns)
        report, parts = {**report, "turns": entry}, entry["parts"]
    write_text(path, report_text(report))
    remove_parts(path, keep=parts)


def read_report(path: Path) -> dict[str, Any]:
    """Read a report. Raise a `DataError` with the reason if the file is not a report."""
    report = read_versioned(path, "report", "schema_version", SCHEMA_VERSION, SCHEMA_VERSION)
    missing = [
        name
        for name, kind in (("summary", dict), ("settings", dict), ("turns", list | dict))
        if not isinstance(report.get(name), kind)
    ]
    if missing:
        raise DataError(f"{path} is no report: {', '.join(missing)} missing")
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    # Code that needs a missing key reports it.
    if found := problems(report, schema, complete=False):
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        raise DataError(f"{path} is damaged: {found[0].removeprefix('$.')}{more}")
    if isinstance(report["turns"], dict):
        try:
            report["turns"] = TurnParts(path, report["turns"])
        except KeyError as error:
            raise DataError(f"{path} is damaged: its 'turns' lack {error}") from None
    else:
        report["turns"] = list(unpack_turns(report["turns"]))
    return report


def report_turns(report: Mapping[str, Any]) -> Results:
    """Return the turns of a report, with rounded numbers. A large report is read lazily."""
    if isinstance(report["turns"], TurnLines):
        return DecodedTurns(report["turns"])
    turns = []
    for number, turn in enumerate(report["turns"]):
        try:
            turns.append(TurnResult.from_json(turn))
        except ValueError as error:
            raise DataError(f"entry {number} of 'turns' is no turn: {error}") from None
    return tuple(turns)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _rounded(value: Any) -> Any:
    """Return ``value`` with all floats rounded and without negative zeros.

    Shares of user input keep their significant digits. Other numbers keep a fixed number of
    decimals.
    """
    if isinstance(value, float):
        return round(value, _DECIMALS) + 0.0
    if isinstance(value, dict):
        return {
            name: float(f"{item:.{_DIGITS[name]}g}")
            if name in _DIGITS and isinstance(item, float)
            else _rounded(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
