"""Measures how well checks decide whether a question has all the context that it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.config.parsers import integer
from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.files import write_text
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.papers.canard import PERTURBED, Rewrites, half_of, load_rewrites
from pytest_dstfuzz.papers.formatting import (
    Rate,
    Resamples,
    csv_text,
    markdown_table,
    rate_columns,
    rate_text,
)
from pytest_dstfuzz.relations.contexts import (
    DEMONSTRATIVES,
    PERSONS,
    THINGS,
    AskedQuestion,
    ContextCheck,
    NeededContext,
    context_checks_named,
    equivalent,
    opening_of,
    read,
    round_of,
    sequences,
    stands_alone,
    without_opening,
)

Floats = npt.NDArray[np.float64]
#: Weight of the L2 penalty, and number of steps in Newton's method.
_PENALTY: Final = 1.0
_STEPS: Final = 12
#: Larger distances in rounds are all treated as this one.
_FAR: Final = 6


@dataclass(frozen=True, slots=True)
class ContextWords:
    """Words of a clean context that a question may need, with features for a model."""

    words: tuple[str, ...]
    features: Floats  #: [words, features]; the first feature is 1.


def candidates(gold: Rewrites, dialogue: Dialogue, index: int) -> ContextWords:
    """Return the words of the opening and of earlier rounds that the question itself lacks."""
    lexicon = gold.lexicon
    question = read(dialogue.turns[index].user, lexicon)
    answer = gold.words(round_of(dialogue, index).answer)
    title = read(opening_of(dialogue), lexicon)
    last: dict[str, int] = {}
    counts: dict[str, int] = {}
    names = {title.lowers[place] for place in title.names}
    asked_before: set[str] = set()
    for one in range(index):
        for place, text in enumerate(round_of(dialogue, one)):
            reading = read(text, lexicon)
            names |= {reading.lowers[at] for at in reading.names}
            for word in sorted(reading.content):
                last[word] = one
                counts[word] = counts.get(word, 0) + 1
            if one == index - 1 and not place:
                asked_before = set(reading.content)
    pointers = question.pointers()
    kinds = [
        bool(pointers & PERSONS),
        bool(pointers & THINGS),
        bool(pointers & DEMONSTRATIVES),
        stands_alone(question),
        len(question.lowers) < 4,
        not index,
    ]
    words = tuple(sorted((set(last) | title.content) - question.content))
    rows = []
    for word in words:
        away = min(index - last[word], _FAR) if word in last else _FAR + 1
        about = [
            word in title.content,
            word in names,
            word in answer,
            word in asked_before,
            away == 1,
            away <= 2,
            away > _FAR,
            word[:1].isdigit(),
        ]
        crossed = [float(one and kind) for one in about[:5] for kind in kinds]
        rows.append(
            [1.0, *map(float, about), *map(float, kinds), *crossed, counts.get(word, 0) / 5]
        )
    return ContextWords(words, np.array(rows))


@dataclass(frozen=True, slots=True)
class WordModel:
    """A fitted model: coefficients, and the probability threshold for needed words."""

    weights: Floats
    threshold: float
    #: If no word reaches this probability, the question stands alone.
    quiet: float
    gold: Rewrites

    def stands_alone(self, dialogue: Dialogue, index: int) -> bool:
        """Return whether a question needs no word from its clean context."""
        found = candidates(self.gold, dialogue, index)
        likely = _chances(found.features, self.weights) if found.words else np.zeros(1)
        return bool(likely.max() < self.quiet)

    def needed(self, dialogue: Dialogue, index: int) -> frozenset[str]:
        """Return the words of the clean context that a question needs."""
        found = candidates(self.gold, dialogue, index)
        if not found.words:
            return frozenset()
        likely = _chances(found.features, self.weights) >= self.threshold
        return frozenset(word for word, yes in zip(found.words, likely, strict=True) if yes)


class WordCheck:
    """Checks that all needed words, according to the model, occur before the question."""

    name = "words"

    def __init__(self, model: WordModel) -> None:
        self._model = model
        self._needed: dict[tuple[str, int, bool], frozenset[str]] = {}

    def equivalent(self, asked: AskedQuestion) -> bool:
        """Return whether the rounds before a question contain all words that the question needs."""
        key = asked.dialogue.id, asked.turn, bool(asked.opening)
        if key not in self._needed:
            self._needed[key] = self._model.needed(asked.dialogue, asked.turn)
        return self._needed[key] <= self._model.gold.brought(asked.dialogue, asked.before)


def train(gold: Rewrites, dialogues: Sequence[Dialogue]) -> WordModel:
    """Fit the coefficients by Newton's method, and choose the thresholds with the best F1."""
    found, labels, ends, silent = [], [], [0], []
    for dialogue in dialogues:
        for turn in dialogue.turns:
            one = candidates(gold, dialogue, turn.index)
            needed = gold.needed(dialogue, turn.index)
            if one.words:
                found.append(one.features)
                labels += [word in needed for word in one.words]
                ends.append(len(labels))
                silent.append(not gold.differs(dialogue, turn.index))
    rows, wanted = np.concatenate(found), np.array(labels, dtype=np.float64)
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        chances = _chances(rows, weights)
        slope = rows.T @ (wanted - chances) - _PENALTY * weights
        curve = (rows * (chances * (1 - chances))[:, None]).T @ rows
        weights = weights + np.linalg.solve(curve + _PENALTY * np.eye(len(weights)), slope)
    chances = _chances(rows, weights)
    # A question stands alone if even its most likely word is unlikely.
    largest = np.maximum.reduceat(chances, ends[:-1])
    quiet = 1 - _best_threshold(1 - largest, np.array(silent, dtype=np.float64))
    return WordModel(weights, _best_threshold(chances, wanted), quiet, gold)


def _chances(rows: Floats, weights: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-rows @ weights))
    return chances


def _best_threshold(chances: Floats, wanted: Floats) -> float:
    best, found = -1.0, 0.5
    for threshold in np.linspace(0.05, 0.95, 91):
        said = chances >= threshold
        right = float(wanted[said].sum())
        f1 = 2 * right / max(1.0, float(said.sum()) + float(wanted.sum()))
        if f1 > best:
            best, found = f1, float(threshold)
    return found


HALVES: Final = (0, 1)
#: MORTAR's checks, alone and combined, and our check with its default parameters.
_CHECKS: Final = ("semantic", "ontology", "story", "mortar", "needed")
#: Candidate parameters of our check, and the required precision of True and of False.
_GRID: Final = tuple(product((3, 4, 5, 7), (1, 2, 3), (1, 2, 3)))
_TRUE_RIGHT: Final = 0.985
_FALSE_RIGHT: Final = 0.7

Checks = Sequence[ContextCheck]


class Cell(NamedTuple):
    """A proportion with its part, its whole, and its interval over dialogues."""

    table: str
    check: str
    half: str
    figure: str
    rate: Rate
    part: int
    whole: int


@dataclass
class Tallies:
    """Counts of parts and wholes, by figure and dialogue."""

    of: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def add(self, figure: str, dialogue: Dialogue, part: float, whole: float = 1) -> None:
        """Add ``part`` of ``whole`` to a figure."""
        cell = self.of.setdefault(figure, {}).setdefault(dialogue.id, [0, 0])
        cell[0] += int(part)
        cell[1] += int(whole)

    def cells(self, table: str, check: str, half: str, draws: Resamples) -> Iterator[Cell]:
        """Yield the proportion of each figure, with its interval over dialogues."""
        for figure, tally in self.of.items():
            pairs = {name: (part, whole) for name, (part, whole) in tally.items()}
            part, whole = (sum(pair[at] for pair in pairs.values()) for at in (0, 1))
            yield Cell(table, check, half, figure, draws.rate([pairs]), part, whole)


def alone_with_title_before(dialogue: Dialogue, index: int) -> tuple[Dialogue, int]:
    """Return a question without earlier rounds, but with its title as an extra round.

    If the title were the opening, no check could be applied to an empty context.
    """
    title = Turn(0, "", opening_of(dialogue))
    moved = (
        replace(t, index=t.index + 1, system=t.system if t.index else "") for t in dialogue.turns
    )
    return Dialogue(dialogue.id, (title, *moved)), index + 1


def as_asked(gold: Rewrites, dialogues: Iterable[Dialogue], needs: NeedsContext) -> Tallies:
    """Compare a rule for questions that need their context with the human rewrites."""
    counts = Tallies()
    for dialogue in dialogues:
        for turn in dialogue.turns:
            truth, said = gold.differs(dialogue, turn.index), needs(dialogue, turn.index)
            for name, wanted in (("needed", True), ("not needed", False)):
                if said == wanted:
                    counts.add(f"{name}: precision", dialogue, truth == wanted)
                if truth == wanted:
                    counts.add(f"{name}: recall", dialogue, said == wanted)
    return counts


#: Returns whether a question of a dialogue needs its context.
NeedsContext = Callable[[Dialogue, int], bool]


def needs_by(checks: Checks, gold: Rewrites) -> NeedsContext:
    """Return a rule: a question needs its context unless the checks accept an empty context."""

    def needs(dialogue: Dialogue, index: int) -> bool:
        titled, place = alone_with_title_before(dialogue, index)
        return equivalent(checks, AskedQuestion(titled, (place,), 0, gold.lexicon)) is not True

    return needs


def in_sequences(
    gold: Rewrites, dialogues: Iterable[Dialogue], checks: Checks, seed: int
) -> Tallies:
    """Compare decisions of the checks in reordered dialogues with the human rewrites."""
    counts = Tallies()
    for dialogue in dialogues:
        answered = {index for index in gold.answered(dialogue) if round_of(dialogue, index).answer}
        for sequence in sequences(dialogue, PERTURBED, 1, seed):
            for place, turn in enumerate(sequence.order):
                if turn not in answered:
                    continue
                asked = AskedQuestion(dialogue, sequence.order, place, gold.lexicon)
                truth, said = gold.equivalent(asked), equivalent(checks, asked)
                counts.add("decided", dialogue, said is not None)
                counts.add("said equivalent", dialogue, said is True)
                if said is not None:
                    counts.add(
                        "equivalent: right" if said else "lost: right", dialogue, said == truth
                    )
                counts.add("equivalent: found" if truth else "lost: found", dialogue, said is truth)
    return counts


def words(gold: Rewrites, dialogues: Iterable[Dialogue], needed: NeededWords) -> Tallies:
    """Measure precision and recall of a rule for the words that a question needs."""
    counts = Tallies()
    for dialogue in dialogues:
        for turn in dialogue.turns:
            truth, said = gold.needed(dialogue, turn.index), needed(dialogue, turn.index)
            counts.add("words: precision", dialogue, len(truth & said), len(said))
            counts.add("words: recall", dialogue, len(truth & said), len(truth))
    return counts


#: Returns the words of the clean context that a question needs.
NeededWords = Callable[[Dialogue, int], frozenset[str]]


def list_shared_words(gold: Rewrites) -> NeededWords:
    """Return a rule: a question needs the words that its answer shares with earlier rounds."""

    def needed(dialogue: Dialogue, index: int) -> frozenset[str]:
        question, answer = (read(text, gold.lexicon).units for text in round_of(dialogue, index))
        return (answer & gold.brought(dialogue, tuple(range(index)))) - question

    return needed


def tune_threshold(gold: Rewrites, dialogues: Sequence[Dialogue], seed: int) -> NeededContext:
    """Return the shipped check, tuned to decide as many cases as possible precisely enough."""
    best, found = -1, NeededContext()
    for alone, nearest, lost in _GRID:
        check = NeededContext(alone, nearest, lost)
        counts = in_sequences(gold, dialogues, [check], seed).of
        sums = {
            name: [sum(c) for c in zip(*of.values(), strict=True)] for name, of in counts.items()
        }
        right = [sums.get(name, [0, 0]) for name in ("equivalent: right", "lost: right")]
        enough = (
            right[0][0] >= _TRUE_RIGHT * right[0][1],
            right[1][0] >= _FALSE_RIGHT * right[1][1],
        )
        if all(enough) and sums["decided"][0] > best:
            best, found = sums["decided"][0], check
    return found


@dataclass(frozen=True, slots=True)
class ContextsTable:
    """All figures of the measurement, with the tuned checks."""

    gold: Rewrites
    cells: tuple[Cell, ...]
    #: Check tuned on each half.
    tuned: tuple[NeededContext, ...]
    command: str
    seed: int


def run_contexts(gold: Rewrites, seed: int, command: str) -> ContextsTable:
    """Return all figures. Checks tuned or trained on one half are measured on the other."""
    halves = [[one for one in gold.data.dialogues if half_of(one) == half] for half in HALVES]
    draws = Resamples([dialogue.id for dialogue in gold.data.dialogues], seed)
    best = [tune_threshold(gold, half, seed) for half in halves]
    models = [train(gold, half) for half in halves]
    cells: list[Cell] = []
    for half, dialogues in zip(HALVES, halves, strict=True):
        told = f"half {half}"
        other, model = best[1 - half], models[1 - half]
        checks: dict[str, Checks] = {name: context_checks_named([name]) for name in _CHECKS}
        checks["needed, tuned on the other half"] = [other]
        for name, each in checks.items():
            counts = as_asked(gold, dialogues, needs_by(each, gold))
            cells += counts.cells("asked", name, told, draws)
        cells += as_asked(gold, dialogues, _by_model(model)).cells("asked", "words", told, draws)
        for name, needed in (("shared units", list_shared_words(gold)), ("words", model.needed)):
            cells += words(gold, dialogues, needed).cells("words", name, told, draws)
        checks["words"] = [WordCheck(model)]
        for table, given in (
            ("sequences", dialogues),
            ("sequences, title withheld", [without_opening(one) for one in dialogues]),
        ):
            for name, each in checks.items():
                cells += in_sequences(gold, given, each, seed).cells(table, name, told, draws)
    return ContextsTable(gold, tuple(cells), tuple(best), command, seed)


def _by_model(model: WordModel) -> NeedsContext:
    return lambda dialogue, index: not model.stands_alone(dialogue, index)


_TITLES: Final = {
    "asked": (
        "Is context needed? Each question alone, without its title",
        ("needed: precision", "needed: recall", "not needed: precision", "not needed: recall"),
    ),
    "words": (
        "Which words of the clean context are needed",
        ("words: precision", "words: recall"),
    ),
    "sequences": (
        "Questions with an answer, in the orders of the relations (DRS, DRR, DRD, DSR and DSD)",
        ("decided", "equivalent: right", "equivalent: found", "lost: right", "lost: found"),
    ),
    "sequences, title withheld": (
        "The same, without titles",
        ("decided", "equivalent: right", "equivalent: found", "lost: right", "lost: found"),
    ),
}


def tables(table: ContextsTable) -> dict[str, str]:
    """Return the contents of the output files by name."""
    gold, data = table.gold, table.gold.data
    needed = sum(gold.differs(one, turn.index) for one in data.dialogues for turn in one.turns)
    lines = [
        "# Checks of contexts, compared with stand-alone rewrites",
        "",
        f"- command: `{table.command}`",
        (
            f"- data: CANARD's development split, {len(data.dialogues):,} dialogues, "
            f"{data.turn_count():,} questions; {needed:,} questions differ from their rewrite by "
            "more than case and spaces (context needed)"
        ),
        (
            "- halves: by the parity of SHA-256 of the dialogue's id; seed "
            f"{table.seed}. Brackets: 95 % intervals over dialogues; `contexts.csv` has the number "
            "of cases of each figure"
        ),
        *(
            f"- `needed` tuned on half {half}: alone {one.alone}, nearest {one.nearest}, lost "
            f"{one.lost}"
            for half, one in zip(HALVES, table.tuned, strict=True)
        ),
    ]
    for name, (title, figures) in _TITLES.items():
        cells = [cell for cell in table.cells if cell.table == name]
        rows = []
        for check, half in dict.fromkeys((cell.check, cell.half) for cell in cells):
            of = {cell.figure: cell for cell in cells if (cell.check, cell.half) == (check, half)}
            shown = (rate_text(of[one].rate) if one in of else "none" for one in figures)
            rows.append([f"`{check}`" if check in _CHECKS else check, half, *shown])
        lines += ["", f"## {title}", "", *markdown_table(["check", "reported on", *figures], rows)]
    columns = {
        **{name: _getter(name) for name in ("table", "check", "half", "figure", "part", "whole")},
        **rate_columns("rate", lambda cell: cell.rate),
    }
    return {"contexts.md": "\n".join(lines) + "\n", "contexts.csv": csv_text(columns, table.cells)}


def _getter(name: str) -> Callable[[object], object]:
    return lambda cell: getattr(cell, name)


def main(arguments: Sequence[str]) -> int:
    """Run the measurement with the arguments of the command line."""
    parser = Parser("python -m pytest_dstfuzz.papers.contexts", __doc__ or "")
    parser.value("--canard", Path, "FILE", required=True, help="development split of CANARD (JSON)")
    parser.value(
        "--out",
        Path,
        "DIR",
        required=True,
        help="write contexts.md and contexts.csv into this folder",
    )
    seed = "seed of the random sequences and of the bootstrap (default: 0)"
    parser.value("--seed", integer(0), "N", default=0, help=seed)
    given = vars(parser.parse_all(arguments))
    gold = load_rewrites(given["canard"], load_lexicon())
    command = (
        "python -m pytest_dstfuzz.papers.contexts --canard dev.json "
        f"--out {given['out'].name} --seed {given['seed']}"
    )
    for name, text in tables(run_contexts(gold, given["seed"], command)).items():
        write_text(given["out"] / name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
