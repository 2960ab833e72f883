"""Stories, tests, NLU examples and trackers of Rasa: small files of a made-up project."""

import json
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import DialogueSet, answer_of, messages_and_tools
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError

DOMAIN = """\
version: "3.1"
intents: [greet, order, pay]
entities: [size, flavour, {topping: {roles: [first]}}]
slots:
  size:
    type: categorical
    values: [small, large]
    mappings: [{type: from_entity, entity: size}]
  taste:
    type: text
    mappings: [{type: from_entity, entity: flavour}]
  paid:
    type: bool
    mappings: [{type: custom}]
  card:
    type: text
    mappings: [{type: from_text, conditions: [{active_loop: pay_form}]}]
responses:
  utter_hello:
  - text: Hello, which ice?
  utter_price:
  - text: "That is {price} euros."
"""
NLU = """\
version: "3.1"
nlu:
- intent: greet
  examples: |
    - good day
    - hi
- intent: order/ice
  examples: |
    - one [big]{"entity": "size", "value": "large"} cup of [lemon](flavour)
    - [lemon](flavour) and [mint](flavour)
- synonym: large
  examples: |
    - big
"""
STORIES = """\
version: "3.1"
stories:
- story: a large cup
  steps:
  - intent: greet
    user: |-
      good day
  - action: utter_hello
  - intent: order
    user: |-
      a [big]{"entity": "size", "value": "large"} cup of [lemon](flavour)
  - action: utter_price
  - user: |
      no, vanilla
    intent: order
  - slot_was_set:
    - taste: vanilla
    - size: null
  - action: action_pay
  - user: thanks
    intent: greet
- story: by intent
  steps:
  - intent: greet
  - action: utter_hello
  - or:
    - intent: order
    - intent: greet
- story: nobody says this
  steps:
  - intent: pay
- story: a button
  steps:
  - user: /greet
    intent: greet
  - action: utter_hello
  - user: lemon
    intent: order
  - action: pay_form
  - active_loop: pay_form
  - user: by card
    intent: pay
"""
BUTTONS = """\
stories:
- story: of buttons
  steps:
  - intent: greet
  - action: utter_hello
  - intent: choose
    entities:
    - flavour: mint
  - user: thanks
    intent: greet
  - user: |-
      /choose{"flavour": "lemon"}
    intent: choose
  - slot_was_set:
    - size: large
  - user: that is all
    intent: greet
"""
CASES = """\
test_cases:
- test_case: order
  steps:
  - user: good day
  - utter: utter_hello
  - user: lemon, please
  - bot: Here you are.
"""
TRACKER = {
    "sender_id": "s1",
    "slots": {"taste": None},
    "latest_message": {},
    "events": [
        {"event": "action", "name": "action_session_start"},
        {"event": "user", "text": "a cup of lemon", "parse_data": {"intent": {"name": "order"}}},
        {"event": "slot", "name": "taste", "value": "lemon"},
        {"event": "slot", "name": "requested_slot", "value": "size"},
        {"event": "bot", "text": "Which size?"},
        {"event": "user", "text": "/large", "parse_data": {}},
        {"event": "slot", "name": "size", "value": "large"},
        {"event": "bot", "text": "Here you are."},
        {"event": "user", "text": "no lemon", "parse_data": {}},
        {"event": "slot", "name": "taste", "value": None},
    ],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "domain.yml").write_text(DOMAIN)
    (tmp_path / "data" / "nlu.yml").write_text(NLU)
    (tmp_path / "data" / "stories.yml").write_text(STORIES)
    (tmp_path / "tests" / "test_cases.yml").write_text(CASES)
    return tmp_path


def states(data: DialogueSet, name: str) -> list[dict[str, str] | None]:
    turns = data.dialogue(name).turns
    return [None if turn.state is None else dict(turn.state) for turn in turns]


def test_stories_have_the_words_and_slots_of_their_project(project: Path) -> None:
    data = load_dialogues(project / "data" / "stories.yml")
    assert data.layout == "rasa"
    assert list(data.ids) == ["a large cup", "by intent", "a button"]
    assert any("left out (once at" in note and "stories[2]" in note for note in data.notes)
    told = data.dialogue("a large cup")
    users = [turn.user for turn in told.turns]
    assert users == ["good day", "a big cup of lemon", "no, vanilla", "thanks"]
    # The price depends on a slot, and an action on its code.
    assert [answer_of(told, n) for n in range(4)] == ["Hello, which ice?", None, None, None]
    large = {"size": "large", "taste": "lemon"}
    # After the action nothing is known of the slots.
    assert states(data, "a large cup") == [{}, large, None, None]
    intents = data.dialogue("by intent")
    assert [turn.user for turn in intents.turns] == ["good day", "one big cup of lemon"]


def test_a_button_is_history_and_no_turn(project: Path) -> None:
    data = load_dialogues(project / "data" / "stories.yml")
    told = data.dialogue("a button")
    assert [turn.user for turn in told.turns] == ["lemon", "by card"]
    sent = messages_and_tools(told.context(0)).messages
    assert [one["content"] for one in sent] == ["/greet", "Hello, which ice?", "lemon"]
    assert states(data, "a button")[1] is None


def test_an_intent_without_an_example_is_a_button(project: Path) -> None:
    path = project / "data" / "buttons.yml"
    path.write_text(BUTTONS, encoding="utf-8")
    data = load_dialogues(path)
    told = data.dialogue("of buttons")
    assert [turn.user for turn in told.turns] == ["good day", "thanks", "that is all"]
    sent = messages_and_tools(told.context(1)).messages
    assert [one["content"] for one in sent] == [
        "good day", "Hello, which ice?", '/choose{"flavour": "mint"}', "thanks",
    ]  # fmt: skip
    # The payloads fill slots, too, but not those of the turn before.
    assert states(data, "of buttons") == [
        {}, {"taste": "mint"}, {"size": "large", "taste": "lemon"},
    ]  # fmt: skip


def test_a_project_has_its_tests_in_a_split(project: Path) -> None:
    data = load_dialogues(project)
    assert list(data.ids) == ["order"]
    (one,) = data.dialogues
    assert [turn.system for turn in one.turns] == ["", "Hello, which ice?"]
    assert answer_of(one, 1) == "Here you are."


def test_examples_are_turns_with_their_entities(project: Path) -> None:
    data = load_dialogues(project / "data" / "nlu.yml")
    assert data.layout == "rasa-nlu"
    assert list(data.ids) == ["greet", "greet-2", "order/ice", "order/ice-2"]
    assert states(data, "greet") == [{"intent": "greet"}]
    # The NLU returns the part of an intent before the slash.
    assert states(data, "order/ice") == [{"intent": "order", "size": "large", "flavour": "lemon"}]
    assert states(data, "order/ice-2") == [{"intent": "order", "flavour": '["lemon", "mint"]'}]
    assert data.ontology is not None
    assert data.ontology.complete
    assert data.ontology.values == {
        "intent": ("greet", "order"), "size": ("large",), "flavour": ("lemon", "mint"),
        "topping": (),
    }  # fmt: skip


def test_examples_of_the_older_json_have_their_entities_beside(tmp_path: Path) -> None:
    entity = {"start": 4, "end": 9, "value": "lemon", "entity": "flavour"}
    example = {"text": "one lemon", "intent": "order", "entities": [entity]}
    path = tmp_path / "nlu.json"
    path.write_text(json.dumps({"rasa_nlu_data": {"common_examples": [example]}}))
    assert states(load_dialogues(path), "order") == [{"intent": "order", "flavour": "lemon"}]


def test_another_way_to_fill_slots_leaves_no_labels(project: Path) -> None:
    extra = "  note:\n    type: text\n    mappings: [{type: from_text}]\n"
    (project / "domain.yml").write_text(DOMAIN.replace("responses:", f"{extra}responses:"))
    data = load_dialogues(project / "data" / "stories.yml")
    assert all(turn.state is None for turn in data.turns())
    only_with_a_form = extra.replace("from_text", "from_trigger_intent")
    (project / "domain.yml").write_text(
        DOMAIN.replace("responses:", f"{only_with_a_form}responses:")
    )
    data = load_dialogues(project / "data" / "stories.yml")
    assert states(data, "a large cup")[:2] == [{}, {"size": "large", "taste": "lemon"}]


def test_a_slot_may_have_a_value_at_the_start(project: Path) -> None:
    extra = "  currency:\n    type: text\n    initial_value: euro\n    mappings: [{type: custom}]\n"
    (project / "domain.yml").write_text(DOMAIN.replace("responses:", f"{extra}responses:"))
    data = load_dialogues(project / "data" / "stories.yml")
    large = {"size": "large", "taste": "lemon", "currency": "euro"}
    assert states(data, "a large cup") == [{"currency": "euro"}, large, None, None]


def test_a_tracker_has_its_slots_after_each_turn(tmp_path: Path) -> None:
    path = tmp_path / "trackers.jsonl"
    path.write_text(f"{json.dumps(TRACKER)}\n{json.dumps({**TRACKER, 'sender_id': 's2'})}\n")
    data = load_dialogues(path)
    assert data.layout == "rasa-tracker"
    # The payload comes after the first turn, so its slot belongs to the second.
    assert states(data, "s1") == [{"taste": "lemon"}, {"size": "large"}]
    sent = messages_and_tools(data.dialogue("s1").context(1)).messages
    assert [one["content"] for one in sent] == [
        *("a cup of lemon", "Which size?", "/large", "Here you are.", "no lemon")
    ]


@pytest.mark.parametrize("more", ["assertions", "fixtures"])
def test_a_test_of_a_flow_has_no_label(project: Path, more: str) -> None:
    case = "- test_case: a\n  steps:\n  - user: a [lemon](flavour)\n"
    path = project / "data" / "test_flows.yml"
    path.write_text(f"test_cases:\n{case}")
    assert states(load_dialogues(path), "a") != [None]
    added = {
        "assertions": "    assertions:\n    - slot_was_set: [{name: size, value: large}]\n",
        "fixtures": "  fixtures:\n  - known\n",
    }
    path.write_text(f"test_cases:\n{case}{added[more]}")
    assert states(load_dialogues(path), "a") == [None]


@pytest.mark.parametrize("event", ["undo", "rewind"])
def test_slots_are_unknown_after_a_reverted_event(tmp_path: Path, event: str) -> None:
    events = [
        {"event": "slot", "name": "size", "value": "large"},
        {"event": "user", "text": "a cup"},
        {"event": event},
        {"event": "user", "text": "lemon"},
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"sender_id": "s", "events": events}))
    assert states(load_dialogues(path), "s")[1] is None


def test_words_are_read_as_in_yaml_1_2(tmp_path: Path) -> None:
    said = ["yes", "no", "on", "12:30", "1_0:20"]
    steps = "".join(f"  - user: {words}\n  - bot: {words}\n" for words in said)
    path = tmp_path / "tests.yml"
    path.write_text(f"test_cases:\n- test_case: a\n  steps:\n{steps}")
    turns = load_dialogues(path).dialogue("a").turns
    assert [turn.user for turn in turns] == said
    assert [turn.system for turn in turns] == ["", *said[:-1]]


def test_a_number_is_no_text_of_a_user_in_a_tracker(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    events = [{"event": "user", "text": "hello"}, {"event": "user", "text": 0}]
    path.write_text(json.dumps({"sender_id": "s", "events": events}))
    with pytest.raises(DataError, match="0 is not a text"):
        load_dialogues(path)


BAD = {
    "yaml": ("stories:\n- story: [", r"line 2 is not valid YAML"),
    "no steps": ("stories:\n- story: a\n", r"stories\[0\]: .*a story has a name and steps"),
    "a step": ("stories:\n- story: a\n  steps: [3]\n", r"stories\[0\]: expected Rasa's stories"),
    "words that are a number": (
        "stories:\n- story: a\n  steps: [{user: 12}]\n",
        r"stories\[0\]: 12 is not a text: write the words in quotes",
    ),
    "an empty step of the user": (
        "stories:\n- story: a\n  steps: [{user: }]\n",
        r"stories\[0\]: None is not a text",
    ),
    "an example that is a number": (
        "nlu:\n- intent: size\n  examples: [12]\n",
        r"stories.yml: intent size: 12 is not a text",
    ),
    "no words": (
        "stories:\n- story: a\n  steps: [{intent: a}]\n",
        r"no dialogues of the split .* without the words",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_broken_file_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "stories.yml"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        load_dialogues(path)
    assert "\n" not in str(error.value)


def test_the_slots_of_the_domain_are_the_ontology(project: Path) -> None:
    ontology = load_dialogues(project / "data" / "stories.yml").ontology
    assert ontology is not None
    assert ontology.complete
    assert ontology.values == {
        "size": ("large", "small"),
        "taste": ("lemon", "mint"),
        "paid": (),
        "card": (),
    }
    (project / "data" / "stories.ontology.json").write_text('{"size": ["small"]}')
    own = load_dialogues(project / "data" / "stories.yml").ontology
    assert own is not None
    assert "card" not in own.values
    (project / "domain.yml").unlink()
    (project / "data" / "stories.ontology.json").unlink()
    alone = load_dialogues(project / "data" / "stories.yml").ontology
    assert alone is None or not alone.complete
