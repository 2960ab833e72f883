"""The corpus of a data set: one violation a line, sorted, so that its diffs are read like code.

Several runs and commands may change one file at once: each holds its lock while it reads the
file, merges what it has to say, and writes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from pytest_dstfuzz.campaign.sums import DistinctCount
from pytest_dstfuzz.errors import DataError, UserError, nearest, unknown_name
from pytest_dstfuzz.files import locked, read_text, write_text
from pytest_dstfuzz.json_data import parse_json
from pytest_dstfuzz.printable import counted, listed
from pytest_dstfuzz.regressions.regression import Regression
from pytest_dstfuzz.weaknesses.keys import key_of_id

#: Where corpora are, seen from the root of a project.
FOLDER: Final = Path(".dstfuzz", "regressions")

#: Lines that git adds where two branches changed the same place.
_MERGE_MARKS: Final = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
#: Ids that a message lists.
_MOST_NAMES: Final = 10

#: Violations of one weakness that are remembered: the plainest. One hole is not to fill the file.
MOST_OF_ONE: Final = 5

#: Id -> violation, sorted by id.
Corpus = Mapping[str, Regression]


def corpus_path(folder: Path, data_name: str) -> Path:
    """Return the file of a data set."""
    return folder / f"{data_name}.jsonl"


def read_corpus(path: Path) -> Corpus:
    """Return what is remembered in a file; nothing where there is no such file.

    A violation may stand on several lines, as after a merge that keeps the lines of both
    branches: one that is accepted is kept, and of equals the first in the order of their text.
    """
    found = []
    lines = read_text(path, "regressions").split("\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if line.startswith(_MERGE_MARKS):
            raise DataError(
                f"{path}, line {number} is left from a merge: keep the lines of both branches and "
                "remove those that git added"
            )
        try:
            found += [Regression.from_json(parse_json(line))] if line.strip() else []
        except (ValueError, UserError) as error:
            raise DataError(f"{path}, line {number} is no remembered violation: {error}") from None
    return _merged(sorted(found, key=lambda entry: json.dumps(entry.to_json())))


def update_corpus(path: Path, change: Callable[[Corpus], Corpus]) -> tuple[Corpus, Corpus]:
    """Change what a file holds, also while other processes do; return what it held and holds."""
    with locked(path):
        before = read_corpus(path)
        after = change(before)
        if after != before:
            write_text(path, corpus_text(after))
    return before, after


def corpus_text(corpus: Corpus) -> str:
    """Return what the file of a corpus holds: the same bytes for the same violations."""
    lines = (json.dumps(corpus[name].to_json(), ensure_ascii=False) for name in sorted(corpus))
    return "".join(f"{line}\n" for line in lines)


def remembered(corpus: Corpus, found: Iterable[Regression]) -> Corpus:
    """Return a corpus with what was found now.

    What is in it already stays as it is; an open violation that changes other slots now, as
    after a slot was renamed, is also about these. Of one weakness only `MOST_OF_ONE` are added,
    less those that are in it; what was accepted by itself does not count.
    """
    merged = dict(corpus)
    counts = Counter(
        entry.weakness
        for entry in corpus.values()
        if entry.status == "open" or entry.scope == "weakness"
    )
    for entry in sorted(found, key=_plainness):
        if (known := merged.get(entry.id)) is not None:
            merged[entry.id] = _seen_again(known, entry)
        elif not entry.weakness or counts[entry.weakness] < MOST_OF_ONE:
            merged[entry.id] = entry
            counts[entry.weakness] += 1
    return _merged(merged.values())


class FoundTally:
    """Keeps of the violations of a run, however many, those that `remembered` may need.

    That are those that are known, and of each weakness the plainest.
    """

    def __init__(self, known: Collection[str]) -> None:
        """Begin with none; ``known`` are the ids of those in the corpus."""
        self._known = known
        #: Weakness -> ids -> what was found under each, once for the same slots.
        self._kept: dict[str, dict[str, list[Regression]]] = {}
        self._ids = DistinctCount()

    def add(self, entry: Regression) -> None:
        """Take in a violation."""
        self._ids.add(entry.id)
        known = entry.id in self._known
        of_one = self._kept.setdefault("" if known else entry.weakness, {})
        same = of_one.setdefault(entry.id, [])
        if all(one.slots != entry.slots for one in same):
            same.append(entry)
        if entry.weakness and not known and len(of_one) > MOST_OF_ONE:
            del of_one[max(of_one, key=lambda name: _plainness(of_one[name][0]))]

    @property
    def kept(self) -> list[Regression]:
        """What is kept of them."""
        return [one for each in self._kept.values() for same in each.values() for one in same]

    def left_out(self, after: Corpus) -> int:
        """Return how many of them a corpus does not have that what is kept was put into."""
        return self._ids.value - len({one.id for one in self.kept}.intersection(after))


def _seen_again(known: Regression, entry: Regression) -> Regression:
    if key_of_id(known.weakness) is None:  # None, or that of an earlier version.
        known = replace(known, weakness=entry.weakness)
    if known.status == "accepted" or not entry.slots - known.slots:
        return known
    new = [change for change in entry.changed if change.slot not in known.slots]
    return replace(known, changed=(*known.changed, *new))


def _plainness(entry: Regression) -> tuple[int, int, str]:
    """Order violations: the fewest edits first, then the shortest utterance."""
    return (len(entry.edits), len(entry.exchanges[-1].seen), entry.id)


def accepted(corpus: Corpus, name: str, reason: str) -> Corpus:
    """Return a corpus in which a violation is accepted."""
    _check_reason(reason)
    entry = replace(one(corpus, name), status="accepted", reason=reason.strip())
    return {**corpus, entry.id: entry}


def accepted_weakness(corpus: Corpus, weakness: str, reason: str) -> Corpus:
    """Return a corpus in which a weakness is accepted: its violations, those to come as well."""
    _check_reason(reason)
    known: dict[str, Any] = {"status": "accepted", "reason": reason.strip(), "scope": "weakness"}
    return {
        name: replace(entry, **known) if entry.weakness == weakness else entry
        for name, entry in corpus.items()
    }


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise UserError("accepting a violation takes a reason: --reason 'why it may stay'")


def reasons_by_weakness(corpus: Corpus) -> dict[str, str]:
    """Return the weaknesses that are accepted as a whole, and why each may stay."""
    return {
        entry.weakness: entry.reason
        for entry in corpus.values()
        if entry.weakness and entry.status == "accepted" and entry.scope == "weakness"
    }


def without(corpus: Corpus, names: Iterable[str]) -> Corpus:
    """Return a corpus without some violations; those that it does not have are no error."""
    gone = set(names)
    return {name: entry for name, entry in corpus.items() if name not in gone}


def one(corpus: Corpus, name: str) -> Regression:
    """Return the violation of that id."""
    return corpus[full_id(corpus, name)]


def full_id(known: Iterable[str], start: str, kind: str = "regression") -> str:
    """Return the one id that begins with ``start``; messages call what it is of ``kind``."""
    names = sorted(known)
    found = [name for name in names if start and name.startswith(start)]
    if len(found) > 1 and start not in found:
        raise UserError(
            f"{start!r} is the start of {counted(len(found), kind)}, give more of it: "
            f"{listed(found, _MOST_NAMES)}"
        )
    if not found:
        if len(names) <= _MOST_NAMES:
            raise unknown_name(kind, start, names)
        guess = nearest(start, names)
        hint = f" Did you mean {guess!r}?" if guess else ""
        valid = listed(names, _MOST_NAMES)
        raise UserError(
            f"unknown {kind} {start!r}.{hint} Valid: {valid} (dstfuzz regressions lists them)."
        )
    return found[0]


def _merged(found: Iterable[Regression]) -> Corpus:
    """Return each violation once, by id: the first of equals, but one that is accepted wins.

    What is open of a weakness that is accepted as a whole is accepted with it.
    """
    kept: dict[str, Regression] = {}
    for entry in found:
        if entry.id not in kept or _extent(entry) > _extent(kept[entry.id]):
            kept[entry.id] = entry
    for weakness, reason in reasons_by_weakness(kept).items():
        opened = [entry for entry in kept.values() if _extent(entry) == 0]
        kept |= accepted_weakness(
            {entry.id: entry for entry in opened if entry.weakness == weakness}, weakness, reason
        )
    return dict(sorted(kept.items(), key=itemgetter(0)))


def _extent(entry: Regression) -> int:
    """How much is accepted: nothing, a violation, or its weakness."""
    if entry.status == "open":
        return 0
    return 2 if entry.scope == "weakness" else 1
