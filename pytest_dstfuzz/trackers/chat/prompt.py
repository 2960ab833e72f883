"""What a chat model is told: a Jinja2 template, filled in for each context.

A template gives one text, which is sent as one user message (some models take no other). It has

``exchanges``
    the dialogue so far, oldest first, each with ``system`` (``""`` at the start) and ``user``;
``user``, ``system``
    the newest exchange alone;
``slots``
    the slots of the data, each with ``name``, ``values`` (a few of those known) and ``complete``
    (whether those are all);
``others``
    whether there may be more slots than those, as only some dialogues have labels;
``example``
    a belief state in JSON, made of two of the slots;
``dontcare``
    the value for "any will do".

``default_prompt.jinja`` beside this file is the template that is used when none is named.

Below it, how the answer may be asked for: by a JSON Schema, as any JSON object, or in words alone.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import StrictUndefined, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pytest_dstfuzz.dialogue.dialogues import DONTCARE, Context, Exchange, Ontology
from pytest_dstfuzz.errors import UserError, message_of
from pytest_dstfuzz.files import read_text

DEFAULT_PROMPT: Final = Path(__file__).with_name("default_prompt.jinja")
#: Values of a slot that are shown: so many or fewer are all shown, of more a few.
_MOST_VALUES = 12
_FEW_VALUES = 5
#: What Jinja2 calls a template that was given as text.
_INNER_NAME = "<template>"
#: What a template is tried on before a run: both kinds of exchange.
_TRIAL = Context((Exchange("", "I need a room."), Exchange("Which area?", "Any will do.")))


@dataclass(frozen=True, slots=True)
class PromptSlot:
    """A slot as a template sees it."""

    name: str
    #: All values that are known, or a few of them, evenly spread.
    values: tuple[str, ...]
    #: Whether those are all that are known.
    complete: bool


class Prompt:
    """Makes the text of a request.

    Without a ``path`` the default template is used; ``others`` says whether there may be more slots
    than the ontology's. The `UserError` of a template names file and line.
    """

    def __init__(
        self, path: str | None, ontology: Ontology | None, *, others: bool = False
    ) -> None:
        self._slots = prompt_slots(ontology)
        self._others = others
        self._example = _example(self._slots)
        if path is None and not self._slots:
            # A model that is told of no slots invents other names at every turn.
            raise UserError(
                "neither labels nor an ontology say which slots the chat model is to keep. For a "
                "model that replies add --dst-outcome=reply. For belief states name the slots "
                "with the option slots (--dst-slots=order-size,order-crust), in "
                "<data>.ontology.json beside the data, or in a prompt of your own "
                "(--dst-tracker prompt=FILE)"
            )
        self._name = place = DEFAULT_PROMPT if path is None else Path(path)
        # No HTML is made here, so nothing is to be escaped.
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        source = read_text(place, "prompt")
        try:
            self._template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise UserError(f"{place}:{error.lineno}: {error.message}") from None
        first = _TRIAL.exchanges[0]
        if self.render(_TRIAL) == self.render(Context((first, Exchange("", "No.")))):
            raise UserError(
                f"{place}: the prompt is the same for every dialogue: use exchanges, or user"
            )

    def render(self, context: Context) -> str:
        """Return the text for one context; where the template fails, the message says where."""
        try:
            return self._template.render(
                exchanges=context.exchanges,
                user=context.user,
                system=context.system,
                slots=self._slots,
                others=self._others,
                example=self._example,
                dontcare=DONTCARE,
            ).strip()
        except Exception as error:  # noqa: BLE001 - a template is the user's code
            raise UserError(
                f"{self._name}:{_line(error)}: {message_of(error) or type(error).__name__}"
            ) from None


def prompt_slots(ontology: Ontology | None) -> tuple[PromptSlot, ...]:
    """Return the slots of an ontology as a template sees them, sorted by name."""
    if ontology is None:
        return ()
    return tuple(
        PromptSlot(slot, _spread(ontology.values[slot]), len(ontology.values[slot]) <= _MOST_VALUES)
        for slot in ontology.slots
    )


def _spread(values: Sequence[str]) -> tuple[str, ...]:
    """Return all of few values, or a few of many: the first ones would be of one kind."""
    if len(values) <= _MOST_VALUES:
        return tuple(values)
    return tuple(values[place * len(values) // _FEW_VALUES] for place in range(_FEW_VALUES))


def _example(slots: Sequence[PromptSlot]) -> str:
    """Return a belief state of two slots in JSON, the second one ``dontcare``."""
    shown = [slot for slot in slots if slot.values] or slots
    state = {slot.name: (*slot.values, "...")[0] for slot in shown[:1]}
    if len(shown) > 1:
        state[shown[len(shown) // 2].name] = DONTCARE
    return json.dumps(state, ensure_ascii=False)


def _line(error: BaseException) -> int:
    """Return the line of the template at which an exception was raised, from 1."""
    walk = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in walk if frame.f_code.co_filename == _INNER_NAME]
    return lines[-1] if lines else 1


def answer_formats(slots: Sequence[str]) -> tuple[dict[str, Any] | None, ...]:
    """Return the ways to ask for a belief state, each a ``response_format``, the strictest first.

    ``None``: the prompt alone asks for JSON. Where no slots are known there is no schema to ask
    for.
    """
    by_words = {"type": "json_object"}, None
    if not slots:
        return by_words
    # As the strict mode of OpenAI's API wants it: there every property is required and no other
    # is allowed, so a slot that was not mentioned is null. Values are free: a tracker may name a
    # restaurant that no ontology lists.
    schema = {
        "type": "object",
        "properties": {slot: {"type": ["string", "null"]} for slot in slots},
        "required": list(slots),
        "additionalProperties": False,
    }
    named = {"name": "belief_state", "strict": True, "schema": schema}
    return ({"type": "json_schema", "json_schema": named}, *by_words)
