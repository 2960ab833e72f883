"""The prompt: the shipped template, and those of a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange, Ontology
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.trackers.chat.tracker import Prompt, answer_formats, prompt_slots

ONTOLOGY = Ontology(
    {
        "hotel-area": ("east", "north"),
        "hotel-name": tuple(f"hotel {number:02}" for number in range(40)),
        "taxi-departure": (),
    }
)
CONTEXT = Context((Exchange("", "A room <b>please</b>"), Exchange("Which area?", "North {{ x }}")))


def own(tmp_path: Path, text: str) -> Prompt:
    path = tmp_path / "prompt.jinja"
    path.write_text(text, encoding="utf-8")
    return Prompt(str(path), ONTOLOGY)


def test_the_default_prompt_says_what_a_model_needs() -> None:
    text = Prompt(None, ONTOLOGY).render(CONTEXT)
    assert "- hotel-area (known: east, north)\n" in text
    assert "- hotel-name (such as: hotel 00, hotel 08, hotel 16, hotel 24, hotel 32)\n" in text
    assert "- taxi-departure\n" in text
    assert '"dontcare"' in text
    # As it was said: nothing is escaped, and what looks like a template is none.
    assert text.endswith(
        "User: A room <b>please</b>\nSystem: Which area?\nUser: North {{ x }}\n\n"
        "The belief state as JSON:"
    )


def test_the_default_prompt_lists_every_slot_of_multiwoz() -> None:
    data = load_dialogues("sample", "test")
    text = Prompt(None, data.ontology).render(CONTEXT)
    assert data.ontology is not None
    assert [slot for slot in data.ontology.slots if f"\n- {slot}" not in text] == []
    assert "JSON" in text  # What the format json_object demands of a prompt.


def test_slots_are_not_invented_where_none_is_named(tmp_path: Path) -> None:
    wanted = r"--dst-slots=.*<data>\.ontology\.json.*--dst-tracker prompt="
    with pytest.raises(UserError, match=wanted):
        Prompt(None, None)
    # A prompt of one's own may name them itself.
    path = tmp_path / "own.jinja"
    path.write_text("{{ user }} {{ example }}", encoding="utf-8")
    assert Prompt(str(path), None).render(CONTEXT).endswith(" {}")
    assert answer_formats([]) == ({"type": "json_object"}, None)


def test_slots_without_values_are_asked_for_by_name() -> None:
    text = Prompt(None, Ontology({"size": (), "crust": ()})).render(CONTEXT)
    assert "\n- crust\n- size\n" in text
    assert 'such as {"crust": "...", "size": "dontcare"}' in text
    assert "hotel" not in text
    assert "other slots" not in text


def test_partial_labels_do_not_close_the_list_of_slots() -> None:
    text = Prompt(None, Ontology({"size": ("big",)}, complete=False), others=True)
    assert "There may be other slots: name them in the same way." in text.render(CONTEXT)


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    template = (
        "{% for slot in slots %}{{ slot.name }} {{ slot.complete }}\n{% endfor %}"
        "{{ example }} {{ dontcare }}\n{{ exchanges | length }} {{ system }} {{ user }}\n"
    )
    assert own(tmp_path, template).render(CONTEXT) == (
        "hotel-area True\nhotel-name False\ntaxi-departure True\n"
        '{"hotel-area": "east", "hotel-name": "dontcare"} dontcare\n2 Which area? North {{ x }}'
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("one\n{% for x in slots %}\n{{ user }}", r"prompt\.jinja:3: Unexpected end of template"),
        ("one\n\n{{ user }}{{ usr }}", r"prompt\.jinja:3: 'usr' is undefined"),
        ("{{ user }}\n{{ 1 / 0 }}", r"prompt\.jinja:2: division by zero"),
        ("{{ user }}\n{{ user.__class__.__mro__ }}", r"prompt\.jinja:2: access to attribute"),
        ("{{ user }}\n{% include 'x' %}", r"prompt\.jinja:2: "),
        ("{{ user }}\n{{ user | dictsort }}", r"prompt\.jinja:2: 'str' object has no attribute"),
        ("{{ user }}\n{{ 'x' * 10**18 }}", r"prompt\.jinja:2: MemoryError"),
        ("Say something.", r"prompt\.jinja: the prompt is the same for every dialogue"),
    ],
)
def test_a_mistake_in_a_template_is_named_with_its_line(
    tmp_path: Path, template: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        own(tmp_path, template)


def test_a_template_that_fails_on_one_dialogue_names_its_line(tmp_path: Path) -> None:
    prompt = own(tmp_path, "{{ user }}\n{% if user == 'Bye' %}{{ nobody }}{% endif %}")
    with pytest.raises(UserError, match=r"prompt\.jinja:2: 'nobody' is undefined"):
        prompt.render(Context((Exchange("", "Bye"),)))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read the prompt .*nowhere: No such file"):
        Prompt(str(tmp_path / "nowhere"), None)
    (tmp_path / "latin").write_bytes("{{ user }} für".encode("latin-1"))
    with pytest.raises(UserError, match="is not UTF-8 text"):
        Prompt(str(tmp_path / "latin"), None)


def test_the_schema_is_one_that_strict_modes_take() -> None:
    slots = [slot.name for slot in prompt_slots(ONTOLOGY)]
    first = answer_formats(slots)[0]
    assert first is not None
    assert first["json_schema"]["strict"] is True
    schema = first["json_schema"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"]) == slots
