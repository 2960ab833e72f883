"""Measures how many calls stay right under SGD-X's five paraphrases of the schemas.

``python -m tools.calls.sgd_x --data ../shared/data/sgd --dialogues 300``: the assistant answers
each turn with the tools of SGD, and with those of each paraphrase, in which the recorded calls are
renamed, too. The names in answers are mapped back, so that a match does not depend on them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_dstfuzz.campaign.answers import Folding
from pytest_dstfuzz.comparisons.calls import comparison_of_calls
from pytest_dstfuzz.config import ReplySettings, canonical_split
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import (
    Context,
    Dialogue,
    DialogueSet,
    ToolParaphrase,
    in_own_names,
)
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.paraphrases import sgd_paraphrases
from pytest_dstfuzz.relations.tools import paraphrase_transcript
from pytest_dstfuzz.seeding import derive
from pytest_dstfuzz.trackers.registry import resolve_tracker
from pytest_dstfuzz.trackers.tracker import Tracker, fingerprint_of
from pytest_dstfuzz.trackers.validation import ask

#: Contexts that are asked for at once.
_BATCH = 64


@dataclass
class Matches:
    """The results of all turns under one schema."""

    name: str
    turns: int = 0
    #: Turns whose message makes the recorded calls; of these, those at which there are some.
    right: int = 0
    calling: int = 0
    right_calls: int = 0
    #: Turns at which a tool is called that the training split does not have, likewise.
    unseen: int = 0
    right_unseen: int = 0
    #: Turns whose calls are others than with the original schema, and those of dialogues.
    changed: int = 0
    dialogues: int = 0

    def row(self, of: int) -> str:
        """Return a row of the table. ``of`` is the number of all dialogues."""
        seen, right = self.calling - self.unseen, self.right_calls - self.right_unseen
        shares = [
            _share(self.right, self.turns),
            _share(self.right_calls, self.calling),
            _share(right, seen),
            _share(self.right_unseen, self.unseen),
            _share(self.changed, self.turns),
            _share(self.dialogues, of),
        ]
        return f"| {self.name} | {' | '.join(shares)} |"


def measured(
    tracker: Tracker, data: DialogueSet, words: Sequence[ToolParaphrase], known: frozenset[str]
) -> list[Matches]:
    """Return the figures of the original schema, and of each paraphrase.

    ``known`` are the names of the tools in the training split.
    """
    folding = Folding(comparison_of_calls(data, ReplySettings(outcome="tool-calls")))
    found = [Matches("SGD"), *(Matches(one.name) for one in words)]
    for dialogue in data.dialogues:
        contexts = [dialogue.context(turn.index) for turn in dialogue.turns]
        clean = _answers(tracker, contexts)
        for figures, one in zip(found, (None, *words), strict=True):
            given = clean if one is None else _answers(tracker, [_told(c, one) for c in contexts])
            changed = 0
            for turn, context, before, now in zip(
                dialogue.turns, contexts, clean, given, strict=True
            ):
                changed += not folding.agree(before, now, context)
                if turn.calls is not None:
                    right = folding.agree(turn.calls, now, context)
                    _count(figures, turn.calls, known, right=right)
            figures.changed += changed
            figures.dialogues += changed > 0
    return found


def _count(figures: Matches, label: Outcome, known: frozenset[str], *, right: bool) -> None:
    figures.turns += 1
    figures.right += right
    if label:
        tools = {path.partition("[")[0] for path in label}
        figures.calling += 1
        figures.right_calls += right
        figures.unseen += not tools <= known
        figures.right_unseen += right and not tools <= known


def _told(context: Context, words: ToolParaphrase) -> Context:
    assert context.transcript is not None  # noqa: S101 - all dialogues of SGD have tools
    return replace(context, transcript=paraphrase_transcript(context.transcript, words))


def _answers(tracker: Tracker, contexts: Sequence[Context]) -> list[Outcome]:
    found: list[Outcome] = []
    for start in range(0, len(contexts), _BATCH):
        batch = contexts[start : start + _BATCH]
        for context, answer in zip(batch, ask(tracker, batch, outcome="tool-calls"), strict=True):
            names = () if context.transcript is None else context.transcript.names
            found.append(in_own_names(answer.state, names) if names else answer.state)
    return found


def _share(count: int, of: int) -> str:
    return f"{count / of:.1%}".replace("%", " %") if of else "-"


def drawn(data: DialogueSet, count: int | None, seed: int) -> DialogueSet:
    """Return ``count`` dialogues, drawn by their ids, in the order of the data."""
    if count is None:
        return data

    def rank(dialogue: Dialogue) -> int:
        return derive(seed, "dialogues of calls", dialogue.id)

    kept = {one.id for one in sorted(data.dialogues, key=rank)[:count]}
    return replace(data, dialogues=tuple(one for one in data.dialogues if one.id in kept))


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that choose the data and the assistant."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", required=True, type=Path, help="folder with SGD and SGD-X")
    parser.add_argument("--split", default="test", type=canonical_split)
    parser.add_argument(
        "--dialogues", type=int, help="number of dialogues, drawn by their ids (default: all)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="assistant", help="as --dst-model takes it")
    return parser


def main() -> None:
    """Print the table."""
    given = parser_of(__doc__).parse_args()
    whole = load_dialogues(given.data, given.split, outcome="tool-calls")
    data = drawn(whole, given.dialogues, given.seed)
    known = frozenset(sgd_paraphrases(given.data, "train")[0].tools)
    tracker = resolve_tracker(given.model, outcome="tool-calls")
    found = measured(tracker, data, sgd_paraphrases(given.data, given.split), known)
    print(f"{len(data.dialogues):,} dialogues, {data.turn_count():,} turns, ", end="")
    print(f"{found[0].calling:,} with calls, {found[0].unseen:,} of these of unseen tools")
    print(f"{given.model}: {fingerprint_of(tracker)}\n")
    print("| schema | all turns | turns with calls | seen tools | unseen | changed | dialogues |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for one in found:
        print(one.row(len(data.dialogues)))


if __name__ == "__main__":
    main()
