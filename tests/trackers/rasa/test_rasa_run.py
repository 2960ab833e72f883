"""A whole run against a Rasa bot: what the user types, sees and keeps."""

from __future__ import annotations

import json

import pytest
from rasa_server import TOKEN, RasaServer, serving

# Loaded before any inner run: such a run forgets the modules that it was the first to
# load, and numpy must not be loaded twice.
import pytest_dstfuzz.plugin.hooks  # noqa: F401 - see above

TALKS = """\
{"dialogue_id": "t1", "turns": [{"system": "", "user": "I would like Chinese food with parking"}, \
{"system": "Where?", "user": "Somewhere in the north of the city, please"}]}
{"dialogue_id": "t2", "turns": [{"system": "", "user": "An Italian place and a table for 4"}]}
"""
ONTOLOGY = {
    "restaurant-food": ["chinese", "italian"],
    "restaurant-area": ["north", "west"],
    "restaurant-people": ["2", "4"],
    "restaurant-parking": ["yes", "no"],
}
MAP = {
    "cuisine": "restaurant-food",
    "restaurant_area": "restaurant-area",
    "seats": "restaurant-people",
    "parking": "restaurant-parking",
}


def test_a_run_talks_to_the_bot_and_reports_it(pytester: pytest.Pytester) -> None:
    (pytester.path / "talks.jsonl").write_text(TALKS, encoding="utf-8")
    (pytester.path / "talks.ontology.json").write_text(json.dumps(ONTOLOGY), encoding="utf-8")
    (pytester.path / "slots.json").write_text(json.dumps(MAP), encoding="utf-8")
    with serving(RasaServer(as_described=False)) as lifelike:
        ran = pytester.runpytest_inprocess(
            f"--dst-model=rasa+{lifelike.url}",
            "--dst-data=talks.jsonl",
            "--dst-tracker=slot-map=slots.json",
            "--dst-max-failure-rate=100%",
            "--dst-report=report.json",
            "-v",
        )
    ran.assert_outcomes(passed=3)
    assert lifelike.complaints == []
    assert not any(text.lstrip().startswith("/") for talk in lifelike.said() for text in talk)
    text = (pytester.path / "report.json").read_text(encoding="utf-8")
    report = json.loads(text)
    assert report["run"]["slot_map"] == "slots.json"
    assert report["summary"]["errors"] == 0
    assert {turn["id"]: turn["clean_state"] for turn in report["turns"]} == {
        "talks-test-t1-t0": {"restaurant-food": "chinese", "restaurant-parking": "yes"},
        "talks-test-t1-t1": {
            "restaurant-area": "north",
            "restaurant-food": "chinese",
            "restaurant-parking": "yes",
        },
        "talks-test-t2-t0": {"restaurant-food": "italian", "restaurant-people": "4"},
    }
    printed = " ".join(ran.stdout.str().split())
    assert "note slots of the bot: 4 compared, 3 ignored" in printed
    assert TOKEN not in printed + ran.stderr.str() + text


PROJECT = {
    "domain.yml": """\
version: "3.1"
slots:
  cuisine: {type: text, mappings: [{type: from_entity, entity: cuisine}]}
  restaurant_area:
    {type: categorical, values: [north, west], mappings: [{type: from_entity, entity: area}]}
  requested_slot: {type: text, mappings: [{type: custom}]}
""",
    "tests/test_stories.yml": """\
stories:
- story: a table
  steps:
  - user: I would like [Chinese](cuisine) food
    intent: inform
  - action: utter_where
  - user: /skip
    intent: skip
  - action: utter_where
  - user: somewhere in the [north](area) of the city, please
    intent: inform
""",
}


def test_the_stories_of_a_project_are_tested_with_the_slots_of_its_domain(
    pytester: pytest.Pytester,
) -> None:
    for name, text in PROJECT.items():
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with serving(RasaServer(as_described=False)) as server:
        ran = pytester.runpytest_inprocess(
            f"--dst-model=rasa+{server.url}",
            "--dst-data=tests/test_stories.yml",
            "--dst-fail-on=gate",
            "--dst-report=report.json",
            "-v",
        )
        said = server.said()
    ran.assert_outcomes(passed=2)
    ran.stdout.fnmatch_lines(["*slots of the bot: 2 compared, 5 ignored*"])
    assert all(talk[1] == "/skip" for talk in said if len(talk) > 1)
    report = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
    last = report["turns"][-1]
    assert (
        last["clean_state"] == last["label"] == {"cuisine": "chinese", "restaurant_area": "north"}
    )


def test_a_slot_map_is_for_rasa_alone(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_inprocess("--dst-model=trade", "--dst-tracker=slot-map=slots.toml")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(
        ["ERROR: --dst-tracker slot-map applies only to the slots of a Rasa bot (rasa+http://*"]
    )


@pytest.mark.parametrize("labelled", [False, True], ids=["no label", "one of three turns"])
def test_without_all_labels_all_slots_of_the_bot_are_compared(
    pytester: pytest.Pytester, labelled: bool
) -> None:
    talks = [json.loads(line) for line in TALKS.splitlines()]
    if labelled:
        talks[0]["turns"][0]["state"] = {"restaurant-area": "west"}
    text = "\n".join(map(json.dumps, talks))
    (pytester.path / "talks.jsonl").write_text(text, encoding="utf-8")
    options = ("--dst-data=talks.jsonl", "--dst-fail-on=gate", "--dst-report=report.json", "-v")
    with serving(RasaServer(as_described=False)) as lifelike:
        model = f"--dst-model=rasa+{lifelike.url}"
        ran = pytester.runpytest_inprocess(model, *options)
        some = pytester.runpytest_inprocess(
            model, "--dst-slots=cuisine,seat", "--dst-data=talks.jsonl"
        )
        two = pytester.runpytest_inprocess(model, *options[:2], "--dst-slots=cuisine,seats", "-v")
    report = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
    states = {turn["id"]: turn["clean_state"] for turn in report["turns"]}
    assert states["talks-test-t2-t0"] == {"cuisine": "italian", "seats": "4"}
    area = "restaurant-area" if labelled else "restaurant_area"
    assert states["talks-test-t1-t1"] == {"cuisine": "chinese", "parking": "yes", area: "north"}
    printed = " ".join(ran.stdout.str().split())
    assert "the data does not list its slots, so every slot of the bot is compared (5)" in printed
    assert ("1 of 3 turns have labels, in 1 of 2 dialogues" in printed) is labelled
    assert some.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown slot of the bot 'seat'. Did you mean 'seats'?" in some.stderr.str()
    two.stdout.fnmatch_lines(["*slots of the bot: 2 compared, 5 ignored*"])
