"""Bots that copy a value as it was typed: right in an open slot, wrong in a closed one."""

from __future__ import annotations

from pytest_dstfuzz import Campaign
from pytest_dstfuzz.campaign.results import VariantResult
from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, DialogueSet, Ontology, Turn

TEXT = "Please find me some portuguese food."


def copy_word(context: Context) -> dict[str, str]:
    """A tracker whose value is the text between two words of the request."""
    _, _, rest = context.user.lower().partition("some ")
    value, found, _ = rest.partition(" food")
    return {"restaurant-food": value} if found else {}


def run(*, complete: bool) -> list[VariantResult]:
    values = {"restaurant-food": ("portuguese", "italian", "chinese")}
    data = DialogueSet(
        "toy",
        "test",
        tuple(Dialogue(f"d{number}", (Turn(0, "", TEXT, None),)) for number in range(6)),
        ontology=Ontology(values, complete=complete),
    )
    settings = Settings.of(search="noise", validity="natural", shrink=False, variants=20)
    turns = tuple(Campaign(copy_word, data, settings))
    found = [one for turn in turns for one in turn.variants if one.valid and "food" in one.text]
    return [one for one in found if "portuguese" not in one.text.lower() and "some " in one.text]


def test_a_value_as_typed_is_right_in_an_open_slot() -> None:
    copied = run(complete=False)
    assert {one.outcome for one in copied} == {"held"}
    assert all(one.in_locked for one in copied)


def test_in_a_closed_slot_only_its_values_are_right() -> None:
    copied = run(complete=True)
    assert copied
    assert {one.outcome for one in copied} == {"violation"}
