"""The contract of a tracker over HTTP: one POST for each dialogue, in JSON.

The request is the dialogue so far, oldest exchange first; ``system`` is ``""`` where the
system said nothing, as at the start::

    POST <address>
    {"version": 1, "dialogue": [{"system": "", "user": "a room in the north"},
                                {"system": "For when?", "user": "tuesday, please"}]}

The answer is the belief state after the last user utterance. A slot that is absent, or null,
was not mentioned; ``"dontcare"`` is a value. Values may be what a Python tracker may return too,
by `normalise.value_text`: numbers, booleans, and lists of which the first value counts::

    {"state": {"hotel-area": "north", "hotel-day": "tuesday"}}

A tracker with probabilities may add one of two: ``distributions``, for each slot the
probability distributions that its value was chosen from (each a list of numbers that add up
to 1, or its largest ones), or ``impurities``, for each slot the mean Gini impurity of its
distributions, 0 to 1. They tell searches how sure the tracker was.

Any other status than 200 says that there is no answer: 408, 425, 429 and those from 500 on,
and a broken connection, are for a while, and the same is asked again a little later, or when
``Retry-After`` says (at most ten minutes); all others are for good. After an answer of another
shape, or a page for people, the same is asked once more. A tracker that fails on a dialogue
answers 422. The body of such an answer is shown to the user.

A service may also say what it is; where its version is declared, and only there, answers may
be used again in a later run. With ``dialogues`` it also takes requests for so many dialogues at
once, as `trackers.web.group` has them::

    GET <address>
    {"name": "hotel bot", "version": "2024-05-17", "slots": ["hotel-area", "hotel-day"],
     "dialogues": 64}

One that may answer the same dialogue in several ways, such as one that samples, says
``"repeatable": false``: what it says is put to the vote, see `campaign.answers`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_dstfuzz.dialogue.dialogues import BeliefState, Context, Exchange
from pytest_dstfuzz.dialogue.normalise import value_text
from pytest_dstfuzz.errors import DataError, DstFuzzError, nearest
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import describe

#: Of the contract. It grows when a key changes its meaning; keys may be added at any time.
VERSION: Final = 1
_ANSWER_KEYS: Final = ("state", "distributions", "impurities")
_EXCHANGE: Final = '{"system": "...", "user": "..."}'
#: How far the sum of a distribution may be over 1, and an impurity below 0, by rounding.
_ROUNDING: Final = 1e-3


class ContractError(DstFuzzError):
    """A request or an answer has another shape; the message says which would be right."""


@dataclass(frozen=True, slots=True)
class About:
    """What a service says about itself; ``None`` and nothing where it does not."""

    name: str | None = None
    #: Another one whenever the same dialogue may get another answer.
    version: str | None = None
    slots: tuple[str, ...] = ()
    #: That one request may hold, see `trackers.web.group`; ``None``: one, by `request_json` only.
    dialogues: int | None = None
    #: Whether the same dialogue gets the same answer each time.
    repeatable: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return what a service answers to ``GET``."""
        said = {
            "name": self.name,
            "version": self.version,
            "slots": list(self.slots),
            "dialogues": self.dialogues,
        }
        said = {key: value for key, value in said.items() if value}
        return said if self.repeatable else {**said, "repeatable": False}


def request_json(context: Context) -> dict[str, Any]:
    """Return the body of the request for a context."""
    return {"version": VERSION, "dialogue": dialogue_json(context)}


def dialogue_json(context: Context) -> list[dict[str, str]]:
    """Return the dialogue so far, as requests hold it."""
    return [{"system": system, "user": user} for system, user in context.exchanges]


def read_request(body: object) -> Context:
    """Return the context that a request asks about.

    Raises:
        ContractError: it is no request, or one of another version.
    """
    return read_dialogue(read_version(body).get("dialogue"), '"dialogue"')


def read_version(body: object) -> Mapping[str, object]:
    """Return the keys of a request of this version of the contract.

    Raises:
        ContractError: it is no object, or has another version.
    """
    if not isinstance(body, Mapping):
        raise ContractError(f'the request is {describe(body)}; write {{"dialogue": [...]}}')
    version = body.get("version", VERSION)
    if version != VERSION:
        raise ContractError(
            f'"version" is {describe(version)}; this service speaks version {VERSION}'
        )
    return body


def read_dialogue(dialogue: object, key: str) -> Context:
    """Return the context of a dialogue as a request holds it.

    Args:
        dialogue: the JSON value.
        key: where it stands in the request, for messages.

    Raises:
        ContractError: it is no list of exchanges.
    """
    if not isinstance(dialogue, list) or not dialogue:
        raise ContractError(
            f"{key} is {describe(dialogue)}; it must be a list of at least one {_EXCHANGE}"
        )
    return Context(tuple(_exchange(part, f"{key}[{place}]") for place, part in enumerate(dialogue)))


def _exchange(part: object, key: str) -> Exchange:
    system, user = (
        (part.get("system", ""), part.get("user")) if isinstance(part, Mapping) else (None, None)
    )
    if not isinstance(system, str) or not isinstance(user, str):
        raise ContractError(f"{key} is {describe(part)}; it must be {_EXCHANGE}")
    return Exchange(system, user)


def answer_json(prediction: Prediction | Mapping[str, str]) -> dict[str, Any]:
    """Return the body of the answer with a prediction; floats arrive as they were."""
    if not isinstance(prediction, Prediction):
        return {"state": dict(prediction)}
    answer: dict[str, Any] = {"state": dict(prediction.state)}
    if prediction.impurities is not None:
        answer["impurities"] = {slot: float(value) for slot, value in prediction.impurities.items()}
    return answer


def read_answer(body: object) -> Prediction:
    """Return the prediction that an answer holds.

    States are taken as they are: whoever asked normalises them and knows their slots.

    Raises:
        ContractError: it is no answer.
    """
    if not isinstance(body, Mapping) or "state" not in body:
        raise ContractError(
            f'answered with {shown_without(body, "state")}; it must be {{"state": {{"domain-slot": '
            '"value"}}, with or without "distributions" or "impurities"'
        )
    for key in body:
        # A misspelt key would be taken for a tracker without probabilities.
        guess = nearest(key, _ANSWER_KEYS)
        if key not in _ANSWER_KEYS and guess is not None and guess not in body:
            raise ContractError(f'answered with a key "{key}"; did it mean "{guess}"?')
    state = body["state"]
    if not isinstance(state, Mapping):
        raise ContractError(
            f'answered with {describe(state)} as "state"; it must be an object '
            '{"domain-slot": "value"}'
        )
    texts = {slot: _value(slot, value) for slot, value in state.items() if value is not None}
    return _with_probabilities(BeliefState(texts), body)


def _value(slot: str, value: object) -> str:
    """Return the value of a slot as a text, by the rules for all trackers."""
    try:
        return value_text(slot, value)
    except DataError:
        raise ContractError(
            f'answered with {describe(value)} as the value of "{slot}"; values are texts, numbers, '
            "true or false, or a list of alternatives of which the first counts, and a slot that "
            "was not mentioned is null or left out"
        ) from None


def shown_without(body: object, key: str) -> str:
    """Return the beginning of an answer that lacks a key, and which of its keys may be meant."""
    keys = map(str, body) if isinstance(body, Mapping) and key not in body else ()
    guess = nearest(key, keys)
    return describe(body) + (f' (there is a key "{guess}")' if guess else "")


def _with_probabilities(state: BeliefState, body: Mapping[str, object]) -> Prediction:
    distributions, impurities = body.get("distributions"), body.get("impurities")
    if distributions is not None and impurities is not None:
        raise ContractError('answered with both "distributions" and "impurities"; give one of them')
    if distributions is not None:
        return Prediction.from_distributions(state, _distributions(distributions))
    return Prediction(state, None if impurities is None else _impurities(impurities))


def _distributions(value: object) -> dict[str, Sequence[Sequence[float]]]:
    right = (
        'it must be {"domain-slot": [[0.9, 0.1], ...]}, with numbers from 0 to 1 that add up to '
        "at most 1 in each list"
    )
    if not isinstance(value, Mapping):
        raise ContractError(f'answered with {describe(value)} as "distributions"; {right}')
    for slot, parts in value.items():
        if not isinstance(parts, list) or not all(map(_is_distribution, parts)):
            raise ContractError(
                f'answered with {describe(parts)} as "distributions" of "{slot}"; {right}'
            )
    return dict(value)


def _is_distribution(part: object) -> bool:
    return (
        isinstance(part, list)
        and len(part) > 0
        and all(map(_is_share, part))
        and math.fsum(part) <= 1.0 + _ROUNDING
    )


def _impurities(value: object) -> dict[str, float]:
    right = 'it must be {"domain-slot": number}, with numbers from 0 to 1'
    if not isinstance(value, Mapping):
        raise ContractError(f'answered with {describe(value)} as "impurities"; {right}')
    for slot, share in value.items():
        if not _is_share(share, below=_ROUNDING):
            raise ContractError(
                f'answered with {describe(share)} as the impurity of "{slot}"; {right}'
            )
    return {slot: max(0.0, float(share)) for slot, share in value.items()}


def _is_share(value: object, below: float = 0.0) -> bool:
    # True is a number to Python.
    return type(value) in (int, float) and -below <= value <= 1.0  # type: ignore[operator]


def read_about(body: object) -> About:
    """Return what a service says about itself.

    An object without any of the keys says nothing: the address may be one that answers
    ``GET`` for another reason.

    Raises:
        ContractError: a key has a value of another shape.
    """
    if not isinstance(body, Mapping):
        return About()
    name, version, slots = (body.get(key) for key in ("name", "version", "slots"))
    for key, value in (("name", name), ("version", version)):
        if value is not None and not isinstance(value, str):
            raise ContractError(f'says that its "{key}" is {describe(value)}; write a text')
    if slots is not None and not (
        isinstance(slots, list) and all(isinstance(slot, str) for slot in slots)
    ):
        raise ContractError(
            f'says that its "slots" are {describe(slots)}; write a list of texts, ["domain-slot"]'
        )
    dialogues = body.get("dialogues")
    # True is a number to Python.
    if dialogues is not None and (type(dialogues) is not int or dialogues < 1):
        raise ContractError(
            f'says that its "dialogues" are {describe(dialogues)}; write how many one request may '
            "hold, a whole number from 1"
        )
    repeatable = body.get("repeatable")
    if repeatable is not None and not isinstance(repeatable, bool):
        raise ContractError(
            f'says that its "repeatable" is {describe(repeatable)}; write false where the same '
            "dialogue may get several answers, else true"
        )
    varies = repeatable is False
    return About(name or None, version or None, tuple(slots or ()), dialogues, not varies)
