"""CANARD: questions about sections of encyclopedia articles, one object a question.

``{"History": [title, section, question, answer, ...], "QuAC_dialog_id": "C_1", "Question": "...",
"Question_no": 1, "Rewrite": "..."}``. Title and section are the opening of a dialogue. The answer
to a question stands in the history of the next one, so that the last of a dialogue has none. The
stand-alone rewrites are the gold of an experiment and are not read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec

from pytest_dstfuzz.dialogue.dialogues import Dialogue, Turn
from pytest_dstfuzz.dialogue.readers.source import (
    Reader,
    ReadOptions,
    SourceFile,
    checked,
    json_start,
)
from pytest_dstfuzz.errors import DataError

__all__ = ["questions"]

#: What is recorded where the article does not say.
NO_ANSWER: Final = "I don't know."
#: Entries of a history before the first question: title and section.
_HEAD: Final = 2


class CanardQuestion(msgspec.Struct):
    """One object of the file."""

    History: list[str]
    QuAC_dialog_id: str
    Question: str
    Question_no: int
    Rewrite: str = ""


def questions(file: SourceFile) -> dict[str, list[CanardQuestion]]:
    """Return the questions of each dialogue in their order, dialogues as they come."""
    found: dict[str, list[CanardQuestion]] = {}
    for number, raw in enumerate(checked(list[dict[str, Any]], file.json(), file.place)):
        entry = checked(CanardQuestion, raw, f"{file.place}: question {number}")
        found.setdefault(entry.QuAC_dialog_id, []).append(entry)
    return {name: sorted(of, key=lambda one: one.Question_no) for name, of in found.items()}


class Canard(Reader):
    """Questions of CANARD, gathered to dialogues."""

    name = "canard"
    about = "CANARD's questions"
    published = True

    def detect(self, file: SourceFile, head: str) -> float:
        """Know a list of questions by the key of their dialogue."""
        return 0.9 if json_start(file, head) == "[" and '"QuAC_dialog_id"' in head else 0

    def read(self, file: SourceFile, how: ReadOptions) -> Iterator[Dialogue]:  # noqa: ARG002 - no labels
        """Yield the dialogues of one file; ``""`` is the answer of a question that has none."""
        for name, entries in questions(file).items():
            for place, entry in enumerate(entries):
                if len(entry.History) != _HEAD + 2 * place:
                    raise DataError(
                        f"{file.place}: dialogue {name}, question {entry.Question_no}: its history "
                        f"has {len(entry.History)} entries where {_HEAD + 2 * place} are expected: "
                        "title, section, and question and answer of each round before it"
                    )
            systems = ["\n".join(entries[0].History), *(one.History[-1] for one in entries[1:])]
            silent = [after == NO_ANSWER for _, after in pairwise(systems)]
            yield Dialogue(
                name,
                tuple(
                    Turn(index, system, entry.Question, answer="" if none else None)
                    for index, (entry, system, none) in enumerate(
                        zip(entries, systems, [*silent, False], strict=True)
                    )
                ),
            )
