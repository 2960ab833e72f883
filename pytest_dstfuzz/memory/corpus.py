"""The corpus of a data set: one violation a line, sorted, so that its diffs are read like code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_dstfuzz.errors import DataError, UserError, unknown_name
from pytest_dstfuzz.memory.regression import Regression

#: Where corpora are, seen from the root of a project.
FOLDER: Final = Path(".dstfuzz", "regressions")

#: Id -> violation, sorted by id.
Corpus = Mapping[str, Regression]


def corpus_path(folder: Path, data_name: str) -> Path:
    """Return the file of a data set."""
    return folder / f"{data_name}.jsonl"


def read_corpus(path: Path) -> Corpus:
    """Return what is remembered in a file; nothing where there is no such file.

    Raises:
        DataError: the file cannot be read, or one of its lines is no violation.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the regressions {path}: {error}") from None
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found += [Regression.from_json(json.loads(line))] if line.strip() else []
        except (KeyError, TypeError, ValueError, AttributeError, UserError) as error:
            what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{path}, line {number} is no remembered violation: {what}") from None
    return _sorted(found)


def corpus_text(corpus: Corpus) -> str:
    """Return what the file of a corpus holds: the same bytes for the same violations."""
    lines = (json.dumps(corpus[name].to_json(), ensure_ascii=False) for name in sorted(corpus))
    return "".join(f"{line}\n" for line in lines)


def remembered(corpus: Corpus, found: Iterable[Regression]) -> Corpus:
    """Return a corpus with what was found now; what is in it already stays as it is."""
    return _sorted([*found, *corpus.values()])


def accepted(corpus: Corpus, name: str, reason: str) -> Corpus:
    """Return a corpus in which a violation is accepted.

    Raises:
        UserError: there is no such violation, or no reason.
    """
    if not reason.strip():
        raise UserError("accepting a violation takes a reason: --reason 'why it may stay'")
    entry = replace(one(corpus, name), status="accepted", reason=reason.strip())
    return {**corpus, name: entry}


def one(corpus: Corpus, name: str) -> Regression:
    """Return the violation of that id.

    Raises:
        UserError: there is none.
    """
    if name not in corpus:
        raise unknown_name("regression", name, corpus)
    return corpus[name]


def _sorted(found: Iterable[Regression]) -> Corpus:
    return dict(sorted((entry.id, entry) for entry in found))
