"""The manifest of a run, and the check whether two runs are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.campaign.code import hint_of
from pytest_dstfuzz.campaign.engine import data_digest
from pytest_dstfuzz.config import (
    TOO_LARGE,
    Settings,
    settings_of_json,
    shard_text,
)
from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.files import read_versioned, write_json
from pytest_dstfuzz.json_data import from_json, json_encoded, to_json
from pytest_dstfuzz.printable import format_list
from pytest_dstfuzz.report.json_report import RunInfo
from pytest_dstfuzz.totals.totals import RelationFacts

MANIFEST: Final = "run.json"
#: Since version 4, each line names its run, and the code of the package is part of the identity.
_VERSION: Final = 4
_KIND: Final = "folder of results"
#: Values of a run that are digests -> the message about a difference.
_HASHED: Final = {
    "digest": "the dialogues differ",
    "plugin": "the code of pytest-dstfuzz differs",
    "data": "the data differ",
    "fingerprint": "the trackers differ",
    "lexicon": "the lexicons differ",
    "policy": "the policies of the search differ",
}


#: Maximum number of shards, or of other names, in a message.
MOST_NAMED: Final = 10


def list_differences(found: Mapping[str, Difference], shown: Callable[[str, Any, Any], str]) -> str:
    """Describe the differences of two runs for a message. Digests are left out.

    Args:
        found: the result of `RunManifest.differing`.
        shown: returns the text for one value. It takes the name and the two values.
    """
    texts = []
    for name, pair in found.items():
        one, other = pair if isinstance(pair, tuple) else (None, None)
        if name in _HASHED:
            texts.append(_HASHED[name])
        elif isinstance(pair, str):
            texts.append(f"{name}: {pair}")
        elif pair is None:
            texts.append(
                f"{name}: a file, a credential or an environment variable that it uses has changed"
            )
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            texts += [
                f"the code of {key} differs{hint_of(one.get(key), other.get(key))}"
                if name == "code"
                else shown(f"{key}, one of {name},", one.get(key), other.get(key))
                for key in keys
            ]
        else:
            texts.append(f"{shown(name, one, other)}{hint_of(one, other)}")
    return "; ".join(texts)


class AnotherRunError(UserError):
    """A folder has the results of another run or another bot."""


#: Two different values; ``None`` if they look the same, or a text that says why none is known.
Difference = tuple[Any, Any] | str | None


@dataclass(frozen=True, kw_only=True)
class RunManifest:
    """The description of a run, as its result folder stores it.

    The values of `identity` determine the results. Runs are only continued, and shards only merged,
    if these values are equal.
    """

    #: Option -> value, as in the JSON report.
    settings: Mapping[str, Any]
    #: See `Campaign.identity`.
    decided: Mapping[str, Any]
    #: The version of the package, and a digest of its code and data.
    version: str
    plugin: str
    #: The names of the relations in order.
    relations: tuple[str, ...]
    #: Name of a relation -> its description of itself.
    facts: Mapping[str, RelationFacts]
    #: The digest of all drawn dialogues, including those of other shards.
    digest: str
    #: The fingerprints of the lexicon, and of the trained search policy.
    lexicon: str
    policy: str
    #: The name of the comparison of answers; ``""`` if states were compared.
    compared: str = ""
    #: The whole data set: name, split, normalisation, layout, dialogues, turns.
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: The number of the shard, from 1, and the number of shards; (1, 1) = all dialogues.
    shard: tuple[int, int] = (1, 1)
    #: The number of drawn dialogues, and of planned results under all relations.
    dialogues: int
    planned: int
    #: Why the run ended early; ``""`` if it did not, or still runs.
    ended: str = ""
    #: The command line without credentials.
    command: str = ""
    #: The contexts asked and the seconds used, over all calls for this folder.
    asked: int = 0
    seconds: float = 0.0
    #: Digests of the bot's answers to some unmodified turns, see `sample_answers`.
    answers: tuple[str, ...] = ()
    #: A digest of the identity that the run began with. Each line of results names it.
    run: str = ""

    @property
    def identity(self) -> dict[str, Any]:
        """The values that determine the results."""
        own = {"version": self.version, "plugin": self.plugin, "digest": self.digest}
        return {**own, **self.decided}

    @property
    def begun(self) -> str:
        """The digest of `identity`, to store as `run` when the run begins."""
        return hashlib.sha256(json_encoded(self.identity)).hexdigest()[:16]

    @property
    def doubt(self) -> str:
        """Why the results may be of two versions of the bot, or ``""``. See `closed_by`."""
        if self.run == self.begun:
            return ""
        return (
            "code or a file of the bot or of a rule changed during the run, so the results may "
            "belong to two versions: run the campaign again"
        )

    def differing(self, other: RunManifest) -> dict[str, Difference]:
        """Return the values of `identity` that differ, each as a pair (this run, the other run)."""
        mine, others = self.identity, other.identity
        return {
            name: self._shown(name, other)
            for name in {**mine, **others}
            if mine.get(name) != others.get(name)
        }

    def _shown(self, name: str, other: RunManifest) -> Difference:
        of = "settings" if name in self.settings else "identity"
        one, another = (getattr(run, of).get(name) for run in (self, other))
        if one == another and TOO_LARGE in f"{self.identity[name]}":
            return (
                f"it names a folder that was {TOO_LARGE}, so nothing shows that it is the same; "
                "name a folder in it"
            )
        return None if one == another else (one, another)

    def refuse_another(self, other: RunManifest, where: Path) -> None:
        """Raise an error if ``other`` differs too much from this run to continue it.

        Raises:
            UserError: settings, data, tracker or version differ. The message names the differences.
        """
        found = self.differing(other)
        if self.shard != other.shard:
            found["shard"] = shard_text(self.shard), shard_text(other.shard)
        if found:
            told = list_differences(
                found, lambda name, old, new: f"{name} was {old!r} and is {new!r}"
            )
            raise AnotherRunError(
                f"{where} has the results of another run, which cannot be continued as this one: "
                f"use another folder. Differences: {told}"
            )

    def unlike_answers(self, other: RunManifest) -> str:
        """Say that the bots of two runs answer many of the same turns differently, or ``""``.

        A bot whose answers vary may answer some turns differently. It may also fail on some.
        """
        differing, both = compare_answers(self.answers, other.answers)
        if len(differing) > both * _MOST_UNLIKE:
            return f"the bots answer {len(differing)} of {both} unmodified turns differently"
        for one, another in ((self, other), (other, self)):
            failed, known = failed_answers(one.answers, another.answers)
            if len(failed) > known * _MOST_FAILED:
                return (
                    f"one bot fails on {len(failed)} of {known} unmodified turns that the other "
                    "answers, so nothing shows that they are the same. Run the command of the bot "
                    "that fails again when it answers"
                )
        return ""

    def read_settings(self) -> Settings:
        """Return the settings of the run from the stored ones."""
        return settings_of_json(self.settings)

    def info(self, **more: Any) -> RunInfo:
        """Return the description of the run for a report. ``more`` sets further fields."""
        return RunInfo(
            **{
                **self.data,
                "lexicon": self.lexicon,
                "policy": self.policy,
                "notes": self.notes,
                "ended": self.ended,
                "compared": self.compared,
                "relations": dict(sorted(self.facts.items())),
                "recalled": self.asked,
                "seconds": self.seconds,
                **more,
            }
        )

    def write(self, folder: Path) -> None:
        """Write the manifest to a folder, atomically."""
        write_json(folder / MANIFEST, {"results_version": _VERSION, **to_json(self)})

    @classmethod
    def read(cls, folder: Path) -> RunManifest:
        """Read the manifest of a folder.

        Raises:
            DataError: the manifest is missing or damaged.
        """
        path = folder / MANIFEST
        content = read_versioned(path, _KIND, "results_version", _VERSION)
        try:
            return from_json(cls, content)
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}") from None

    def gone_on(self, *, asked: int, seconds: float, ended: str = "") -> RunManifest:
        """Return a copy of the manifest. Add the contexts and seconds of another call."""
        asked, seconds = self.asked + asked, self.seconds + seconds
        return replace(self, ended=ended, asked=asked, seconds=seconds)

    def closed_by(self, late: Mapping[str, str], settings: Mapping[str, Any]) -> RunManifest:
        """Return a copy that prevents later runs from continuing, because something changed.

        See `Campaign.late_code` and `Campaign.late_settings`. A note also says if later runs cannot
        continue because a value is not known.
        """
        decided, notes = dict(self.decided), [*self.notes]
        if hint := hint_of(*decided.values()):
            notes.append(f"later runs will not continue these results{hint}")
        if settings:
            decided |= {name: [decided[name], now] for name, now in settings.items()}
            names = format_list(sorted(settings), MOST_NAMED)
            notes.append(
                f"a file, a credential or an environment variable that {names} uses changed during "
                "the run: later runs will not continue these results, which may belong to two "
                "versions of the bot"
            )
        if late:
            code = decided["code"]
            both = {name: f"{code.get(name, '')} {own}" for name, own in late.items()}
            decided["code"] = {**code, **both}
            notes.append(
                f"the code of {format_list(sorted(late), MOST_NAMED)} changed, or loaded further "
                "files, while it was running: later runs will not continue these results, which "
                "may belong to two versions of the code"
            )
        return replace(self, decided=decided, notes=tuple(dict.fromkeys(notes)))


#: Maximum share of different answers in two processes. A bot may vary, or run on two machines.
_MOST_UNLIKE: Final = 0.25
#: Maximum share of failures on turns that were answered before. A service may fail now and then.
_MOST_FAILED: Final = 0.5
#: In place of the digest of an answer: the bot failed. A turn that was not asked is ``""``.
FAILED: Final = "failed"


def _is_answer(text: str) -> bool:
    return text not in ("", FAILED)


def compare_answers(one: Sequence[str], other: Sequence[str]) -> tuple[list[int], int]:
    """Return the indices of different answers, and the number of turns that both answered."""
    pairs = zip(one, other, strict=False)
    both = [(at, pair) for at, pair in enumerate(pairs) if all(map(_is_answer, pair))]
    return [at for at, (mine, others) in both if mine != others], len(both)


def failed_answers(before: Sequence[str], now: Sequence[str]) -> tuple[list[int], int]:
    """Return the indices of answered turns on which the bot fails now, and the answered turns."""
    pairs = zip_longest(before, now, fillvalue="")
    known = [(at, text) for at, (answer, text) in enumerate(pairs) if _is_answer(answer)]
    return [at for at, text in known if text == FAILED], len(known)


def refuse_failing(failed: int, known: int, reason: str, where: Path) -> None:
    """Raise an error if the bot fails on most of the turns that it answered before.

    Args:
        failed: the number of turns on which it fails now.
        known: the number of turns that it answered.
        reason: the first failure.
        where: the folder of results.

    Raises:
        AnotherRunError: it fails on most of them.
    """
    if failed > known * _MOST_FAILED:
        raise AnotherRunError(
            f"{where} has the results of a bot that answered, and cannot be continued: the bot now "
            f"fails on {failed} of {known} unmodified turns that it answered before, so nothing "
            f"shows that it is the same ({reason}). Start the bot again and repeat the command, or "
            "use another folder"
        )


def fill_answers(before: Sequence[str], now: Sequence[str]) -> tuple[str, ...]:
    """Add answers to turns that the budget of an earlier call left out, or on which it failed."""
    pairs = zip_longest(before, now, fillvalue="")
    return tuple(old if _is_answer(old) else new or old for old, new in pairs)


def data_of(info: RunInfo) -> dict[str, Any]:
    """Return the properties of the data that a manifest stores."""
    names = ("data", "split", "normalisation", "layout", "dialogues", "turns", "words")
    known = asdict(info)
    return {name: known[name] for name in names}


def plan_digest(planned: Sequence[tuple[Dialogue, int]]) -> str:
    """Return a digest of the complete dialogues of a plan, in order."""
    ends = [(dialogue.id, last) for dialogue, last in planned]
    drawn = data_digest(DialogueSet("", "", tuple(dialogue for dialogue, _ in planned)))
    return hashlib.sha256(f"{ends} {drawn}".encode(errors="replace")).hexdigest()[:32]


def merge_manifests(parts: Sequence[RunManifest]) -> RunManifest:
    """Return the manifest of a whole run, given the manifests of all its shards in order."""
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
