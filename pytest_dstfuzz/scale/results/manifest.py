"""What is known of a run beside its results: what was run, on what, and how far it came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.config import OPTIONS, Settings, settings_of_json, shard_text
from pytest_dstfuzz.dialogue.dialogues import Dialogue, turn_keys
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import read_versioned, write_json
from pytest_dstfuzz.json_data import from_json, to_json
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.totals.totals import RelationFacts

MANIFEST: Final = "run.json"
#: Since 2 results refer to earlier ones of their dialogue.
_VERSION: Final = 2
_KIND: Final = "folder of results"
#: Settings that decide the results.
_DECIDING: Final = tuple(
    item.name
    for item in OPTIONS
    if item.part in ("tracker", "data", "variant", "reply")
    and "place" not in item.scopes
    and item.name != "suite"
)


@dataclass(frozen=True, kw_only=True)
class RunManifest:
    """A run, as its folder tells of it.

    What is in `identity` decides the results: a run goes on, and shards are put together, only
    where it is the same.
    """

    #: By option, as the JSON report has them.
    settings: Mapping[str, Any]
    #: Version of the package.
    version: str
    #: Names of the relations, in the order in which they are asked.
    relations: tuple[str, ...]
    #: What each relation says of itself, by name.
    facts: Mapping[str, RelationFacts]
    #: Of all dialogues that are drawn, whatever part of them this run has.
    digest: str
    #: Fingerprint of the tracker; ``""`` where it has none.
    tracker: str
    #: Fingerprints of the lexicon, and of the policy that chose what to change.
    lexicon: str
    policy: str
    #: What said whether two answers are the same; ``""`` where states were compared.
    compared: str = ""
    #: The data set as a whole: name, split, normalisation, layout, dialogues, turns.
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: Number of the part of the dialogues that were run, from 1, and of how many; 1, 1 = all.
    shard: tuple[int, int] = (1, 1)
    #: How many dialogues were drawn, and results they have under all relations.
    dialogues: int
    planned: int
    #: Why it ended before the last of them, ``""`` where it did not or goes on.
    ended: str = ""
    #: The line that was given, without credentials.
    command: str = ""
    #: Contexts that were asked for, and seconds, of all that wrote here.
    asked: int = 0
    seconds: float = 0.0

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the results."""
        names = ("version", "relations", "digest", "tracker", "lexicon", "policy", "compared")
        settings = {name: self.settings.get(name) for name in _DECIDING}
        return {**settings, "data": self.data, **{name: getattr(self, name) for name in names}}

    def differing(self, other: RunManifest) -> dict[str, tuple[Any, Any]]:
        """Return what decides the results and is not as in another run: here, and there."""
        mine, others = self.identity, other.identity
        return {name: (one, others[name]) for name, one in mine.items() if one != others[name]}

    def refuse_another(self, other: RunManifest, where: Path) -> None:
        """Refuse to go on as another run.

        Raises:
            UserError: settings, data, tracker or version differ; the message names them.
        """
        found = self.differing(other)
        if self.shard != other.shard:
            found["shard"] = shard_text(self.shard), shard_text(other.shard)
        if found:
            told = "; ".join(
                f"{name} was {old!r} and is {new!r}" for name, (old, new) in found.items()
            )
            raise UserError(
                f"{where} holds another run, which cannot go on as this one: give another folder: "
                f"{told}"
            )

    def read_settings(self) -> Settings:
        """Return the settings of the run."""
        return settings_of_json(self.settings)

    def info(self, **more: Any) -> RunInfo:
        """Describe the run for a report; ``more`` are fields of the circumstances."""
        return RunInfo(
            **{
                **self.data,
                "lexicon": self.lexicon,
                "policy": self.policy,
                "notes": self.notes,
                "ended": self.ended,
                "compared": self.compared,
                "relations": dict(sorted(self.facts.items())),
                "asked": self.asked,
                "seconds": self.seconds,
                **more,
            }
        )

    def write(self, folder: Path) -> None:
        """Put it into a folder; what was there is replaced at once."""
        write_json(folder / MANIFEST, {"results_version": _VERSION, **to_json(self)})

    @classmethod
    def read(cls, folder: Path) -> RunManifest:
        """Read the manifest of a folder.

        Raises:
            DataError: there is none, or it is damaged.
        """
        path = folder / MANIFEST
        content = read_versioned(path, _KIND, "results_version", _VERSION)
        try:
            return from_json(cls, content)
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}") from None

    def gone_on(self, *, asked: int, seconds: float, ended: str = "") -> RunManifest:
        """Return it after so many more contexts and seconds."""
        asked, seconds = self.asked + asked, self.seconds + seconds
        return replace(self, ended=ended, asked=asked, seconds=seconds)


def data_of(info: RunInfo) -> dict[str, Any]:
    """Return what a manifest keeps of the data."""
    names = ("data", "split", "normalisation", "layout", "dialogues", "turns")
    known = asdict(info)
    return {name: known[name] for name in names}


def plan_digest(planned: Iterable[tuple[Dialogue, int]]) -> str:
    """Return 32 hexadecimal digits of all that is asked of some dialogues, in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for line in _digested(planned):
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def _digested(planned: Iterable[tuple[Dialogue, int]]) -> Iterator[str]:
    for dialogue, last in planned:
        # The key of a turn is of all that was said up to it.
        yield f"{dialogue.id}\t{last}\t{turn_keys(dialogue)[last]}"
        for turn in dialogue.turns[: last + 1]:
            yield repr(None if turn.state is None else sorted(turn.state.items()))
