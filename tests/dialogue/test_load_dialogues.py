import gc
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.config import SPLIT_ALIASES, parse_option
from pytest_dstfuzz.dialogue import normalise
from pytest_dstfuzz.dialogue.dialogues import BeliefState, Dialogue, Turn, answer_of
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.readers.logs import JsonLines
from pytest_dstfuzz.dialogue.readers.source import ReadOptions, SourceFile
from pytest_dstfuzz.errors import DataError, UserError


def zipped(path: Path, members: dict[Any, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return path


def test_original_schema_keeps_texts_and_reads_states_behind_the_user(
    write: Callable[[str, Any], Path], original: dict[str, Any]
):
    found = load_dialogues(write("mini/test.json", original).parent)
    assert (found.name, found.split, found.layout) == ("mini", "test", "original")
    assert found.normalisation == "multiwoz"
    assert found.cue_words == normalise.CUE_WORDS
    assert found.flag_words == {"hotel-internet": ("wifi",)}
    first, second = found.dialogues
    assert first.id == "AAA01"
    assert first.turns == (
        Turn(
            0,
            "",
            "I need a Guest House in the Center, please!",
            BeliefState({"hotel-type": "guesthouse", "hotel-area": "centre"}),
        ),
        Turn(
            1,
            "For how long ?",
            "two nights,  any day",
            BeliefState(
                {
                    "hotel-type": "guesthouse",
                    "hotel-area": "centre",
                    "hotel-parking": "yes",
                    "hotel-book stay": "2",
                    "hotel-book day": "dontcare",
                    "taxi-leaveat": "17:45",
                }
            ),
        ),
    )
    assert second.turns[1] == Turn(1, "when?", "never mind", None)
    assert not found.labelled
    assert found.ontology is not None
    assert found.ontology.slots == normalise.SLOTS
    assert found.ontology.values["taxi-destination"] == ("abc",)
    assert found.ontology.values["hotel-area"] == normalise.AREAS


def test_sharded_schema_reads_all_shards_of_a_split(
    write: Callable[[str, Any], Path], sharded: list[dict[str, Any]]
):
    write("two/test/dialogues_001.json", sharded)
    other = [{**sharded[0], "dialogue_id": "CCC04.json"}]
    write("two/test/dialogues_002.json", other)
    write("two/dev/dialogues_001.json", [{**sharded[0], "dialogue_id": "DEV"}])
    schema = [
        {
            "service_name": "hotel",
            "slots": [
                {"name": "hotel-area", "possible_values": ["center", "dontcare"]},
                {"name": "hotel-name"},
                {"name": "hotel-bookstay"},
            ],
        }
    ]
    folder = write("two/schema.json", schema).parent
    found = load_dialogues(folder)
    assert found.layout == "sharded"
    assert [dialogue.id for dialogue in found.dialogues] == ["CCC03", "CCC04"]
    assert [turn.state for turn in found.dialogues[0].turns] == [
        {"hotel-book stay": "2"},
        {"hotel-book stay": "2", "hotel-area": "dontcare", "taxi-leaveat": "09:15"},
    ]
    assert found.dialogues[0].turns[1].system == "which area?"
    assert found.ontology is not None
    assert found.ontology.values["hotel-area"] == ("centre",)
    assert found.ontology.values["hotel-name"] == ()
    assert "2" in found.ontology.values["hotel-book stay"]
    assert [d.id for d in load_dialogues(folder, "validation").dialogues] == ["DEV"]


def test_trade_json(write: Callable[[str, Any], Path], dials: list[dict[str, Any]]):
    path = write("dev_dials.json", dials)
    found = load_dialogues(path, "val")
    assert found.layout == "trade"
    assert found.dialogues[0].id == "DDD04"
    assert found.dialogues[0].turns[0].state == {"hotel-area": "east", "hotel-type": "hotel"}
    assert found.labelled
    assert found.turn_count() == 1


def test_trade_json_without_labels(write: Callable[[str, Any], Path], dials: list[dict[str, Any]]):
    del dials[0]["dialogue"][0]["belief_state"]
    assert not load_dialogues(write("test_dials.json", dials)).labelled


def test_trade_tsv(write: Callable[[str, Any], Path], tsv: str):
    found = load_dialogues(write("mini/test.tsv", tsv.replace("\n", "\r\n")))
    assert (found.name, found.layout) == ("mini", "trade")
    assert [len(dialogue.turns) for dialogue in found.dialogues] == [2, 1]
    assert found.dialogues[0].turns[1] == Turn(
        1,
        "where ?",
        "anywhere with wifi",
        BeliefState(
            {"hotel-area": "dontcare", "hotel-internet": "yes", "hotel-type": "guesthouse"}
        ),
    )


def test_json_lines_in_both_forms(write: Callable[[str, Any], Path], pizza: str):
    found = load_dialogues(write("My Pizza-Bot.train.jsonl", pizza))
    assert (found.name, found.layout, found.normalisation) == ("my_pizza_bot", "jsonl", "plain")
    assert found.cue_words == ()
    assert found.flag_words == {}
    first, second, third = found.dialogues
    assert first.turns == (Turn(0, "", "A LARGE pizza"), Turn(1, "Which one?", "Hawaii"))
    assert second.turns[0].state == {}
    # "none" is a crust like any other of own data.
    assert second.turns[1].state == {
        "pizza-crust": "none",
        "pizza-size": "big",
        "pizza-top": "any",
    }
    crust = BeliefState({"pizza-crust": "dontcare"})
    assert third.turns == (Turn(0, "", "any crust", crust, answer="ok"),)
    assert found.ontology is not None
    assert found.ontology.values == {
        "pizza-crust": ("none",),
        "pizza-size": ("big",),
        "pizza-top": ("any",),
    }


def test_lines_of_the_user_alone_are_not_halved_silently(write: Callable[[str, Any], Path]):
    said = ["I want a pizza", "a large one", "with ham", "that's all"]
    alternating = {"dialogue_id": "x", "utterances": said}
    found = load_dialogues(write("a.jsonl", json.dumps(alternating)))
    assert [turn.user for turn in found.dialogues[0].turns] == said[::2]
    (note,) = (note for note in found.notes if "utterances" in note)
    assert "(x has 2 user turns)" in note
    assert "use the key 'users'" in note
    # States tell how many utterances are the user's.
    labelled = {**alternating, "states": [{}, {"order-size": "large"}]}
    assert not load_dialogues(write("b.jsonl", json.dumps(labelled))).notes
    alone = {"dialogue_id": "x", "users": said, "states": [{}, {}, {}, {"order-size": "large"}]}
    found = load_dialogues(write("c.jsonl", json.dumps(alone)))
    assert [turn.user for turn in found.dialogues[0].turns] == said
    assert {turn.system for turn in found.dialogues[0].turns} == {""}
    assert found.dialogues[0].turns[3].state == {"order-size": "large"}
    assert not found.notes


def test_unlabelled_json_lines_have_no_ontology(write: Callable[[str, Any], Path]):
    found = load_dialogues(write("a.jsonl", '{"dialogue_id": "x", "utterances": ["hi"]}'))
    assert found.ontology is None


def test_labels_alone_are_no_complete_ontology(
    write: Callable[[str, Any], Path], pizza: str, original: dict[str, Any]
):
    def complete(path: Path, **given: Any) -> bool:
        ontology = load_dialogues(path, **given).ontology
        assert ontology is not None
        return ontology.complete

    bot = write("bot.jsonl", pizza)
    assert not complete(bot)
    assert complete(bot, normalisation="multiwoz")
    assert complete(bot, ontology=write("elsewhere/x.json", {"pizza-size": ["huge"]}))
    assert complete(write("m/test.json", original))
    assert not complete(write("m/test.json", original), normalisation="plain")
    schema = [{"service_name": "pizza", "slots": [{"name": "pizza-size"}]}]
    write("schema.json", schema)
    assert complete(bot)


@pytest.mark.parametrize("name", ["bot.ontology.json", "ontology.json"])
def test_ontology_beside_json_lines(write: Callable[[str, Any], Path], pizza: str, name: str):
    write("other.ontology.json", {"wrong": ["one"]})
    write(name, {"pizza-Size": ["Big", "small", "dont care", "none"], "pizza-crust": []})
    found = load_dialogues(write("bot.jsonl", pizza))
    assert found.ontology is not None
    assert found.ontology.values["pizza-size"] == ("big", "none", "small")
    assert "pizza-crust" in found.ontology.slots


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ontology-notes.txt", "what we know"),
        ("our_ontology.json", {"pizza-size": ["giant"]}),
        ("ontology.jsonl", '{"pizza-size": ["giant"]}'),
        ("ontology-talks.jsonl", '{"dialogue_id": "x", "utterances": ["hi"]}'),
        ("ontology.json", ""),
        ("ontology.json", "[1, 2]"),
        ("other.ontology.json", '{"pizza'),
    ],
)
def test_neighbours_that_are_no_ontology_are_ignored(
    write: Callable[[str, Any], Path], pizza: str, name: str, content: Any
):
    alone = load_dialogues(write("bot.jsonl", pizza))
    write(name, content)
    found = load_dialogues(write("bot.jsonl", pizza))
    # Nothing of the neighbour.
    assert found.notes == alone.notes
    assert found.ontology is not None
    assert found.ontology.values["pizza-size"] == ("big",)
    assert not found.ontology.complete


@pytest.mark.parametrize("content", [{"@context": {"owl": "x"}}, '{"pizza-size": ["gi'])
def test_a_broken_neighbour_gives_way_to_the_next_and_is_told(
    write: Callable[[str, Any], Path], pizza: str, content: Any
):
    write("ontology-a.json", content)
    bot = write("bot.jsonl", pizza)
    found = load_dialogues(bot)
    assert found.ontology is not None
    assert found.ontology.values["pizza-size"] == ("big",)
    assert re.match(r"Not used as the ontology: .*ontology-a\.json", found.notes[0])
    write("ontology-modified.json", {"pizza-size": ["giant"]})
    found = load_dialogues(bot)
    assert found.ontology is not None
    assert found.ontology.values["pizza-size"] == ("giant",)
    assert "ontology-a.json" in found.notes[0]


def test_dialogues_in_a_file_called_ontology_are_dialogues(
    write: Callable[[str, Any], Path], original: dict[str, Any], pizza: str
):
    assert load_dialogues(write("ontology-test.json", original)).layout == "original"
    assert load_dialogues(write("ontology-bot.jsonl", pizza)).layout == "jsonl"


def test_ontology_given_by_path(write: Callable[[str, Any], Path], pizza: str):
    mine = write("elsewhere/values.json", {"pizza-size": ["huge"]})
    found = load_dialogues(write("bot.jsonl", pizza), ontology=mine, name="mine")
    assert found.name == "mine"
    assert found.ontology is not None
    assert found.ontology.values["pizza-size"] == ("huge",)


def test_an_odd_ontology_of_multiwoz_gives_way_to_the_labels(
    write: Callable[[str, Any], Path], original: dict[str, Any]
):
    write("m/ontology.json", {"hotel-area": "east"})
    found = load_dialogues(write("m/test.json", original).parent)
    assert found.ontology is not None
    assert found.ontology.values["taxi-destination"] == ("abc",)
    assert "values of slot 'hotel-area': 'east' instead of a list" in found.notes[0]


@pytest.mark.parametrize("name", ["dev", "valid", "VALIDATION", " Val "])
def test_a_split_has_one_set_of_names_everywhere(
    write: Callable[[str, Any], Path], original: dict[str, Any], name: str
):
    """The same table serves the options, ``load_dialogues`` and the names of files."""
    path = write("mini/dev_dials.json", original).parent
    assert load_dialogues(path, name).split == "val"
    assert parse_option("split", name, "--split") == "val"
    for alias, split in SPLIT_ALIASES.items():
        assert parse_option("split", alias.title(), "--split") == split
        folder = write(f"{alias}/{alias.upper()}.json", original).parent
        assert load_dialogues(folder, alias).split == split


@pytest.mark.parametrize("suffix", ["txt", "json"])
def test_whole_file_is_split_by_lists(tmp_path: Path, original: dict[str, Any], suffix: str):
    three = {**original, "CCC03.json": original["AAA01.json"]}
    members = {
        "W/data.json": three,
        f"W/valListFile.{suffix}": "BBB02.json\n",
        f"W/testListFile.{suffix}": "CCC03\r\n",
        "__MACOSX/W/._data.json": "junk",
        "W/notes.md": "junk",
    }
    path = zipped(tmp_path / "multiwoz_9.zip", members)
    ids = {
        split: [dialogue.id for dialogue in load_dialogues(path, split).dialogues]
        for split in ("train", "dev", "test")
    }
    assert ids == {"train": ["AAA01"], "dev": ["BBB02"], "test": ["CCC03"]}
    assert load_dialogues(path).name == "multiwoz_9"


def test_whole_file_without_lists_is_refused(
    write: Callable[[str, Any], Path], original: dict[str, Any]
):
    with pytest.raises(DataError, match=r"data\.json contains all splits: put MultiWOZ's valList"):
        load_dialogues(write("data.json", original))


def test_whole_file_takes_lists_beside_it(
    write: Callable[[str, Any], Path], original: dict[str, Any]
):
    write("testListFile.txt", "BBB02.json")
    path = write("data.json", original)
    assert [dialogue.id for dialogue in load_dialogues(path).dialogues] == ["BBB02"]
    with pytest.raises(DataError, match=r"does not have the split 'train'.*original: test"):
        load_dialogues(path, "train")


def test_files_of_a_folder_in_no_known_layout_are_noted(tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "hello"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(chat))
    (tmp_path / "b.ndjson").write_text(json.dumps(chat))
    assert [one.id for one in load_dialogues(tmp_path).dialogues] == ["a-1", "b-1"]
    assert not any("no known layout" in note for note in load_dialogues(tmp_path).notes)
    (tmp_path / "c.jsonl").write_text(json.dumps({"mesages": chat["messages"]}))
    (tmp_path / "d.csv").write_text("one,other\n1,2\n")
    (tmp_path / "README.txt").write_text("About these files")
    notes = load_dialogues(tmp_path).notes
    assert f"{tmp_path} has files in no known layout, which are not read: c.jsonl, d.csv." in notes


def test_files_that_are_not_read_are_noted(tmp_path: Path) -> None:
    chat = json.dumps({"messages": [{"role": "user", "content": "hello"}]})
    for name in ("my_test.jsonl", "latest.jsonl"):
        (tmp_path / name).write_text(chat)
    (tmp_path / "old.jsonl.gz").write_bytes(b"")
    data = load_dialogues(tmp_path)
    assert [one.id for one in data.dialogues] == ["my_test-1"]
    assert any(note.endswith("(my_test.jsonl), and not: latest.jsonl.") for note in data.notes)
    assert any("in no known layout" in note and "old.jsonl.gz" in note for note in data.notes)


def test_several_layouts_of_a_split(
    write: Callable[[str, Any], Path], tmp_path: Path, original: dict[str, Any], tsv: str
):
    write("both/test.json", original)
    (tmp_path / "both/deep").mkdir()
    zipped(tmp_path / "both/deep/trade-tsv.zip", {"test.tsv": tsv, "train.tsv": tsv})
    folder = tmp_path / "both"
    found = load_dialogues(folder)
    assert found.layout == "original"
    assert (
        "in several layouts: the layout 'original' is read, and 'trade' is ignored"
        in found.notes[0]
    )
    assert load_dialogues(folder, layout="trade").notes == ()
    assert load_dialogues(folder, "train").layout == "trade"
    assert load_dialogues(folder / "deep/trade-tsv.zip").name == "deep"
    with pytest.raises(DataError, match=r"'train' in the layout 'original'.*trade: train, test"):
        load_dialogues(folder, "train", layout="original")


def test_unnamed_files_are_taken_as_the_split_asked_for(
    write: Callable[[str, Any], Path], original: dict[str, Any]
):
    found = load_dialogues(write("talks.json", original), "train")
    assert found.split == "train"
    assert "all dialogues are used as the split 'train'" in found.notes[0]


def test_a_named_file_beside_unnamed_ones_is_not_another_split(
    write: Callable[[str, Any], Path], original: dict[str, Any]
):
    write("x/test.json", original)
    folder = write("x/talks.json", {"ZZ": original["AAA01.json"]}).parent
    with pytest.raises(DataError, match=r"does not have the split 'val'. It has original: test"):
        load_dialogues(folder, "val")


def test_normalisation_can_be_forced(write: Callable[[str, Any], Path], original: dict[str, Any]):
    found = load_dialogues(write("test.json", original), normalisation="plain")
    assert found.dialogues[0].turns[0].state == {
        "hotel-area": "center",
        "hotel-type": "guest house",
        "police-name": "x",
    }


def test_shipped_sample():
    found = load_dialogues("sample", "test")
    assert (found.name, found.layout, found.labelled) == ("sample", "original", True)
    assert len(found.dialogues) >= 60
    assert found.turn_count() >= 300
    slots = {s for d in found.dialogues for t in d.turns for s in t.state or ()}
    assert slots == set(normalise.SLOTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "tset"}, "unknown split 'tset'. Did you mean 'test'"),
        ({"layout": "orginal"}, "unknown layout 'orginal'. Did you mean 'original'"),
        ({"normalisation": "plan"}, "unknown normalisation 'plan'. Did you mean 'plain'"),
    ],
)
def test_unknown_names(options: dict[str, Any], message: str):
    with pytest.raises(UserError, match=message):
        load_dialogues("sample", **options)


_STATES = st.dictionaries(st.text("abc-", min_size=1, max_size=5), st.text("xyz", min_size=1))
_TURNS = st.lists(st.tuples(st.text(), st.text(), st.none() | _STATES), min_size=1, max_size=4)


def json_line(dialogue: Dialogue) -> str:
    """Write a dialogue in the form by turns, separators unescaped."""
    turns = [
        {"system": turn.system, "user": turn.user}
        | ({} if turn.state is None else {"state": turn.state.to_json()})
        for turn in dialogue.turns
    ]
    return json.dumps({"dialogue_id": dialogue.id, "turns": turns}, ensure_ascii=False) + "\n"


@settings(deadline=None, max_examples=50)
@given(st.lists(_TURNS, max_size=4))
def test_json_lines_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    conversations: list[list[tuple[str, str, dict[str, str] | None]]],
):
    dialogues = tuple(
        Dialogue(
            f"d{number}",
            tuple(
                Turn(index, system, user, None if state is None else BeliefState(state))
                for index, (system, user, state) in enumerate(turns)
            ),
        )
        for number, turns in enumerate(conversations)
    )
    path = tmp_path_factory.getbasetemp() / "round_trip.jsonl"
    path.write_bytes("".join(map(json_line, dialogues)).encode())
    assert tuple(JsonLines().read(SourceFile(path.name, path), ReadOptions())) == dialogues


def test_garbage_is_collected_as_before_once_data_is_read(tmp_path: Path):
    load_dialogues("sample")
    assert gc.isenabled()
    with pytest.raises(DataError):
        load_dialogues(tmp_path / "absent")
    assert gc.isenabled()
    gc.disable()
    try:
        load_dialogues("sample")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_answer_of_the_last_turn_is_kept(write: Callable[[str, Any], Path]):
    lines = [
        {"dialogue_id": "a", "utterances": ["Open?", "Yes.", "On Sunday?", "No."]},
        {"dialogue_id": "b", "utterances": ["Open?", "Yes.", "On Sunday?"]},
        {"dialogue_id": "c", "turns": [{"user": "Open?", "answer": "Yes."}, {"user": "Sure?"}]},
        {"dialogue_id": "d", "users": ["Open?"]},
    ]
    found = load_dialogues(write("a.jsonl", "\n".join(map(json.dumps, lines))))
    answers = [
        [answer_of(dialogue, turn.index) for turn in dialogue.turns] for dialogue in found.dialogues
    ]
    assert answers == [["Yes.", "No."], ["Yes.", None], ["Yes.", None], [None]]


@pytest.mark.parametrize(
    "said", [{"users": ["Hi", " "]}, {"turns": [{"user": "Hi"}, {"user": ""}]}]
)
def test_of_a_bot_that_replies_each_turn_asks_something(
    write: Callable[[str, Any], Path], said: dict[str, Any]
):
    fine = {"dialogue_id": "a", "users": ["Hi"]}
    path = write("a.jsonl", "\n".join(map(json.dumps, [fine, {"dialogue_id": "b", **said}])))
    with pytest.raises(DataError, match=r"a\.jsonl: line 2, turn 1: 'user' is empty"):
        load_dialogues(path, outcome="reply")
    assert load_dialogues(path).turn_count() == 3


def test_the_directory_of_a_zip_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *given: Any, **more: Any) -> None:
            opened.append(given)
            super().__init__(*given, **more)

    line = '{"dialogue_id": "%d", "turns": [{"system": "", "user": "A room please"}]}\n'
    path = zipped(tmp_path / "many.zip", {f"{n}.jsonl": line % n for n in range(50)})
    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    assert len(load_dialogues(path).dialogues) == 50
    assert len(opened) < 10
    # A changed file is another one.
    zipped(path, {f"{n}.jsonl": line % n for n in range(60)})
    assert len(load_dialogues(path).dialogues) == 60
