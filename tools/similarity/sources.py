"""Reads the sources of the embedding: training dialogues, and the dictionary."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from tools.lexicon.wndb import PARTS_OF_SPEECH


@dataclass(frozen=True, slots=True)
class ActTurn:
    """An utterance of the Schema-Guided Dialogue data, and the acts that it expresses.

    ``pieces`` are texts and, at odd places, the values between them. ``slots`` names the slots of
    these values in order.
    """

    #: Service, acts, slots, and values that are not written as they stand in the data.
    signature: str
    pieces: tuple[str, ...]
    slots: tuple[str, ...]
    system: bool
    dialogue: str

    @property
    def text(self) -> str:
        """The utterance."""
        return "".join(self.pieces)

    def values(self) -> dict[str, list[str]]:
        """Return the values of each slot, in their order."""
        found: dict[str, list[str]] = {}
        for slot, value in zip(self.slots, self.pieces[1::2], strict=True):
            found.setdefault(slot, []).append(value)
        return found

    def filled(self, values: Mapping[str, Sequence[str]]) -> str:
        """Return the utterance with other values of the same slots."""
        pieces = list(self.pieces)
        seen: dict[str, int] = {}
        for place, slot in enumerate(self.slots):
            number = seen[slot] = seen.get(slot, -1) + 1
            pieces[2 * place + 1] = values[slot][number]
        return "".join(pieces)


class Gloss(NamedTuple):
    """A meaning of WordNet: its words, definition and examples."""

    words: tuple[str, ...]
    definition: str
    examples: tuple[str, ...]


def read_sgd(path: Path) -> list[ActTurn]:
    """Read a split of the Schema-Guided Dialogue data, ``train.zip`` or ``dev.zip``."""
    turns: list[ActTurn] = []
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(n for n in archive.namelist() if "dialogues_" in n):
                for dialogue in json.loads(archive.read(name)):
                    turns += _act_turns(dialogue)
    except (OSError, zipfile.BadZipFile, ValueError, KeyError) as error:
        raise DataError(f"cannot read the dialogues of {path}: {error}") from error
    return turns


def _act_turns(dialogue: Mapping[str, Any]) -> Iterator[ActTurn]:
    for turn in dialogue["turns"]:
        frames = turn["frames"]
        spans = sorted(
            {(s["start"], s["exclusive_end"], s["slot"]) for f in frames for s in f["slots"]}
        )
        text, at = turn["utterance"], 0
        pieces: list[str] = []
        slots: list[str] = []
        for start, end, slot in spans:
            if start >= at:
                pieces += [text[at:start], text[start:end]]
                slots.append(slot)
                at = end
        said = set(slots)
        acts = sorted(
            (
                f["service"],
                a["act"],
                a["slot"],
                *([] if a["slot"] in said else a["canonical_values"]),
            )
            for f in frames
            for a in f["actions"]
        )
        signature = json.dumps([acts, sorted(slots)])
        system = turn["speaker"] == "SYSTEM"
        yield ActTurn(
            signature, (*pieces, text[at:]), tuple(slots), system, dialogue["dialogue_id"]
        )


def read_utterances(path: Path) -> list[str]:
    """Return the utterances in the training split of MultiWOZ 2.1, in TRADE's layout."""
    dialogues = load_dialogues(path, "train").dialogues
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    return [text for turn in turns for text in (turn.system, turn.user) if text]


def read_glosses(folder: Path) -> list[Gloss]:
    """Return the meanings of WordNet 3.0, from its ``data.*`` files."""
    found = []
    for pos in PARTS_OF_SPEECH:
        try:
            lines = (folder / f"data.{pos}").read_text(encoding="latin-1").splitlines()
        except OSError as error:
            raise DataError(f"cannot read WordNet: {error}") from error
        for line in lines:
            fields, _, gloss = line.partition(" | ")
            if line[:1] != " " and gloss:
                parts = fields.split()
                words = tuple(parts[4 + 2 * n].replace("_", " ") for n in range(int(parts[3], 16)))
                examples = tuple(re.findall(r'"([^"]+)"', gloss))
                definition = re.sub(r'[;,]?\s*"[^"]*"', "", gloss).strip("; ")
                found.append(Gloss(words, definition, examples))
    return found
