"""Several dialogues in one request: what a service offers by ``"dialogues"`` in what it says.

A tracker that computes in batches answers many dialogues in little more time than one. The
parts are those of `trackers.web.contract`; the answers stand in the order of the dialogues, and
where there is none, an object says why::

    POST <address>
    {"version": 1, "dialogues": [[{"system": "", "user": "a room in the north"}],
                                 [{"system": "", "user": "a taxi, please"}]]}

    {"answers": [{"state": {"hotel-area": "north"}},
                 {"error": "the tracker failed: IndexError: list index out of range"}]}

Such a request may take as long as those for its dialogues alone would one after another, and
nothing is lost by it: where it is refused, or fails at every attempt, those are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from pytest_dstfuzz.dialogue.dialogues import Context
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import describe
from pytest_dstfuzz.trackers.web.contract import (
    VERSION,
    ContractError,
    answer_json,
    dialogue_json,
    read_answer,
    read_dialogue,
    read_version,
    shown_without,
)

#: What a tracker may answer to one context of several; an error says why it did not.
Answered: TypeAlias = Prediction | Mapping[str, str] | TrackerError

_RIGHT: Final = 'it must be {"answers": [{"state": {...}} or {"error": "why"}, ...]}'


def is_group(body: object) -> bool:
    """Whether a request is of the form for several dialogues."""
    return isinstance(body, Mapping) and "dialogues" in body


def group_json(contexts: Iterable[Context]) -> dict[str, Any]:
    """Return the body of one request for several contexts."""
    return {"version": VERSION, "dialogues": [dialogue_json(context) for context in contexts]}


def read_group(body: object, most: int) -> list[Context]:
    """Return the contexts that a request for several asks about.

    Args:
        body: JSON value of the request.
        most: dialogues that it may hold.

    Raises:
        ContractError: it is no such request, one of another version, or holds more.
    """
    keys = read_version(body)
    dialogues = keys.get("dialogues")
    if "dialogue" in keys:
        raise ContractError('there are both "dialogue" and "dialogues"; send one of them')
    if not isinstance(dialogues, list) or not dialogues:
        raise ContractError(
            f'"dialogues" is {describe(dialogues)}; it must be a list of at least one dialogue'
        )
    if len(dialogues) > most:
        raise ContractError(
            f'"dialogues" holds {len(dialogues)}; this service takes at most {most} at once'
        )
    return [read_dialogue(part, f'"dialogues"[{place}]') for place, part in enumerate(dialogues)]


def answers_json(answers: Iterable[Answered]) -> dict[str, Any]:
    """Return the body of the answer to a request for several contexts."""
    return {
        "answers": [
            {"error": str(answer)} if isinstance(answer, TrackerError) else answer_json(answer)
            for answer in answers
        ]
    }


def read_answers(body: object, asked: int) -> list[Prediction | str]:
    """Return the predictions that an answer holds; a text says why there is none.

    Args:
        body: JSON value of the answer.
        asked: number of dialogues in the request.

    Raises:
        ContractError: it is no such answer, or has more or fewer parts.
    """
    answers = body.get("answers") if isinstance(body, Mapping) else None
    if not isinstance(answers, list):
        raise ContractError(
            f"answered with {shown_without(body, 'answers')} to {asked} dialogues; {_RIGHT}"
        )
    if len(answers) != asked:
        raise ContractError(
            f'answered with {len(answers)} "answers" to {asked} dialogues; there must be one for '
            "each, in the order of the dialogues"
        )
    return [_answer(answer, place) for place, answer in enumerate(answers)]


def _answer(answer: object, place: int) -> Prediction | str:
    if isinstance(answer, Mapping) and "state" not in answer and "error" in answer:
        if isinstance(why := answer["error"], str):
            return why
        raise ContractError(
            f'answered with {describe(why)} as "error" of "answers"[{place}]; it must be a text'
        )
    try:
        return read_answer(answer)
    except ContractError as error:
        raise ContractError(f'in "answers"[{place}] {error}') from None
