"""The file of an audit, ``report.audit.json`` beside ``report.json``; see `audit_path`.

One object: ``schema_version``, ``sample`` (how it was drawn, its ``fingerprint``, and
``key``: what each row is), ``judges`` (name -> id of a row -> ``keeps`` or ``changes``) and
``figures``: by judge, and the agreement of every two. It is written anew after each answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.audit.figures import (
    Judgements,
    agreement_lines,
    agreements,
    precision,
    precision_lines,
)
from pytest_dstfuzz.audit.question import Verdict
from pytest_dstfuzz.audit.sample import AuditRow, Draw, Sample, draw_sample, of_relation
from pytest_dstfuzz.campaign.results import Results
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import read_versioned, write_json
from pytest_dstfuzz.json_data import from_json, to_json

_SCHEMA_VERSION: Final = 1


@dataclass(slots=True)
class Audit:
    """A sample, and what judges have said of it so far."""

    sample: Sample
    path: Path
    #: Judge -> id of a row -> verdict.
    judges: dict[str, Judgements] = field(default_factory=dict)

    def verdicts(self, judge: str) -> Judgements:
        """Return the verdicts of a judge so far, to read."""
        return self.judges.get(judge, {})

    def left(self, judge: str) -> tuple[AuditRow, ...]:
        """Return the rows without a verdict of the judge, in the judge's order."""
        given = self.verdicts(judge)
        return tuple(row for row in self.sample.order(judge) if row.id not in given)

    def say(self, judge: str, verdicts: Mapping[str, str]) -> None:
        """Take in verdicts of a judge, in the place of earlier ones, and write the file.

        What another judge has said meanwhile, in another process, is taken over from the file.
        """
        known_rows = {row.id for row in self.sample.rows}
        for name, verdict in verdicts.items():
            if name not in known_rows:
                raise DataError(f"judgement of {name!r}, which the sample does not have")
            if verdict not in self.sample.question.answers.values():
                words = " or ".join(self.sample.question.answers.values())
                raise DataError(f"judgement of {name!r}: must be {words}, not {verdict!r}")
        if self.path.exists():
            known = _read(self.path)
            if known.sample.fingerprint == self.sample.fingerprint:
                self.judges.update(known.judges)
        merged = {**self.verdicts(judge), **verdicts}
        # By id: the file does not depend on the order of the answers.
        self.judges[judge] = {
            row.id: merged[row.id] for row in self.sample.rows if row.id in merged
        }
        self.save()

    def save(self) -> None:
        """Write the file: from then on the sample is the same without naming how it is drawn."""
        write_json(self.path, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        sample, judges = self.sample, dict(sorted(self.judges.items()))
        return {
            "schema_version": _SCHEMA_VERSION,
            "sample": {
                **{name: value for name, value in asdict(sample.draw).items() if value != ""},
                "fingerprint": sample.fingerprint,
                "key": {row.id: row.key() for row in sample.rows},
            },
            "judges": judges,
            "figures": {
                "judges": to_json({name: precision(sample, judges[name]) for name in judges}),
                "agreements": to_json(agreements(sample, judges)),
            },
        }

    def lines(self, judge: str) -> list[str]:
        """Return what may be shown to a judge: the figures, once nothing is left to judge.

        Before that they would tell which rows are decoys, and what another judge said.
        """
        left = len(self.left(judge))
        if left:
            whole = len(self.sample.rows)
            return [f"{judge}: {whole - left} of {whole} rows judged; figures come with the last"]
        done = {name: given for name, given in sorted(self.judges.items()) if not self.left(name)}
        lines = [
            line
            for name, given in done.items()
            for line in precision_lines(name, precision(self.sample, given), self.sample.question)
        ]
        for found in agreements(self.sample, done):
            lines += agreement_lines(found)
        return lines


def audit_path(report: Path, turns: Results, relation: str) -> Path:
    """Return the file of an audit of ``report``: where that has several relations, one for each.

    Raises:
        UserError: the report does not have the relation, or has several and none is named.
    """
    of_relation(turns, relation)
    several = len({turn.relation for turn in turns}) > 1
    # The relation of a suite may have any name.
    name = re.sub(r"[^\w.-]", "_", relation)
    return report.with_name(f"{report.stem}{f'.{name}' if several else ''}.audit.json")


def open_audit(path: Path, turns: Results, given: Mapping[str, Any]) -> Audit:
    """Draw the sample of an audit; where its file is there, go on with it.

    ``given`` are fields of `Draw` that the user chose; others are those of the file, or defaults.
    """
    known = _read(path) if path.exists() else _Kept(_Drawn(), {})
    was_drawn = {item.name: getattr(known.sample, item.name) for item in fields(Draw)}
    sample = draw_sample(turns, Draw(**{**was_drawn, **given}))
    if known.judges and sample.fingerprint != known.sample.fingerprint:
        was = ", ".join(f"{name.replace('_', '-')} {n}" for name, n in was_drawn.items() if n != "")
        raise UserError(
            f"{path} holds judgements of another sample ({was}): draw it in the same way from "
            "the same report, or move that file away to begin anew"
        )
    return Audit(sample, path, {**known.judges})


@dataclass(frozen=True, slots=True)
class _Drawn(Draw):
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What an audit goes on with; all else in its file follows from it."""

    sample: _Drawn
    judges: dict[str, dict[str, Verdict]]


def _read(path: Path) -> _Kept:
    content = read_versioned(path, "audit", "schema_version", _SCHEMA_VERSION)
    try:
        return from_json(_Kept, content)
    except ValueError as error:
        raise DataError(f"{path} is no audit: {error}") from None
