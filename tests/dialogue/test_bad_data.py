import json
import math
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_dstfuzz.dialogue.load import load_dialogues, locate
from pytest_dstfuzz.dialogue.readers import source
from pytest_dstfuzz.dialogue.readers.corpora import COLUMNS
from pytest_dstfuzz.errors import DataError

HEADER = "\t".join([*COLUMNS, "hotel-area"]) + "\n"
ROW = "A\t0\tFalse\t\thi\tnone\n"


def log(*items: Any) -> dict[str, Any]:
    return {"X": {"goal": {}, "log": list(items)}}


def line(**fields: Any) -> str:
    return json.dumps({"dialogue_id": "a", **fields})


BAD = [
    # original schema
    ("test.json", "", r'is empty; expected .*JSON Lines .*"users": \["\.\.\."\]}'),
    ("test.json", " \n ", r"test\.json is empty"),
    ("test.json", '{"X": {"goal": {}, "log": [', r"not valid JSON, perhaps cut off"),
    ("test.json", "[" * 100_000 + '"dialogue_idx"', r"no dialogues in a known layout"),
    ("test.json", '["dialogue_idx",' + "[" * 100_000, r"test\.json is nested too deeply"),
    (
        "test.json",
        '{"X": {"log": [{"text": ' + "[" * 900 + "]" * 900 + "}]}}",
        r"dialogue X: log\[0\]\.text: \[.*\] instead of a text",
    ),
    (
        "test.json",
        '{"X": {"log": [{"text": "a"}]}, "X": {"log": [{"text": "b"}]}}',
        r"test\.json has two values for the key 'X': leave one out",
    ),
    ("test.json", {"a": 1}, r"known layout\. It is an object with the key a\. The nearest"),
    ("test.json", "hello", r"no dialogues in a known layout"),
    ("test.json", b'{"X": {"log": [\n"\xff"]}}', r"line 2 is not UTF-8 \(byte 0xff\)"),
    ("test.json", {"X": {"log": []}}, r"dialogue X has no turns"),
    ("test.json", {"X": {"log": []}, "Y": 3}, r"dialogue X has no turns"),
    ("test.json", {"Y": 3, "X": {"log": []}}, r"dialogue Y: 3 instead of an object"),
    ("test.json", {"Y": {}, "X": {"log": []}}, r"dialogue Y: lacks 'log'"),
    ("test.json", log(3), r"dialogue X: log\[0\]: 3 instead of an object"),
    ("test.json", log({"text": 3}), r"dialogue X: log\[0\]\.text: 3 instead of a text"),
    (
        "test.json",
        log({"text": "a"}, {"text": "b"}),
        r"utterance 1: 'metadata': None instead",
    ),
    (
        "test.json",
        log({"text": "a"}, {"text": "b", "metadata": {"taxi": []}}),
        r"'metadata', domain 'taxi': \[\] instead of an object",
    ),
    (
        "test.json",
        log({"text": "a"}, {"text": "b", "metadata": {"taxi": {"semi": 0}}}),
        r"domain 'taxi': semi: 0 instead of an object",
    ),
    (
        "test.json",
        log({"text": "a"}, {"text": "b", "metadata": {"taxi": {"semi": {"leaveAt": {}}}}}),
        r"dialogue X, utterance 1: the value of slot 'taxi-leaveAt' must be a string.* got dict",
    ),
    (
        "test.json",
        '{"X": {"log": [{"text": "a"}]}, "X.json": {"log": [{"text": "b"}]}}',
        r"the id X is not unique",
    ),
    # sharded schema
    ("test_1.json", [{"dialogue_id": "a", "turns": 3}], r"dialogue a: turns: 3 instead of a list"),
    ("test_1.json", [{"dialogue_id": "a", "turns": []}], r"dialogue a has no turns"),
    (
        "test_1.json",
        [{"dialogue_id": 1, "turns": []}],
        r"dialogue 1: dialogue_id: 1 instead of a text",
    ),
    (
        "test_1.json",
        [{"dialogue_id": "a", "turns": [{"utterance": "hi", "speaker": "USER"}]}],
        r"dialogue a, utterance 0: 'frames': None instead of a list",
    ),
    (
        "test_1.json",
        [{"dialogue_id": "a", "turns": [{"utterance": "hi"}]}],
        r"dialogue a: turns\[0\]: lacks 'speaker'",
    ),
    # TRADE
    ("test_dials.json", [{"dialogue_idx": 3}], r"dialogue 3: dialogue_idx: 3 instead of a text"),
    (
        "test_dials.json",
        [3, "dialogue_idx", {"dialogue_idx": 3}],
        r"json: \[0\]: 3 instead of an object",
    ),
    ("test_dials.json", [{"dialogue_idx": "a", "dialogue": []}], r"dialogue a has no turns"),
    (
        "test_dials.json",
        [{"dialogue_idx": "a", "dialogue": [{"system_transcript": ""}]}],
        r"dialogue a: dialogue\[0\]: lacks 'transcript'",
    ),
    (
        "test_dials.json",
        [
            {
                "dialogue_idx": "a",
                "dialogue": [{"transcript": "", "belief_state": [{"slots": [["hotel-area"]]}]}],
            }
        ],
        r"belief_state\[0\]\.slots\[0\]: a list of 1 instead of one of 2",
    ),
    ("test.tsv", HEADER, r"has no dialogues of the split 'test'"),
    ("test.tsv", "# Dialogue ID\tx\n" + ROW, r"line 1 is not a header of the TRADE layout"),
    ("test.tsv", "\t".join(COLUMNS) + "\n" + ROW, r"line 1 is not a header of the TRADE layout"),
    ("test.tsv", HEADER + ROW + "A\t1\n", r"line 3 has 2 columns, but the header has 6"),
    ("test.tsv", HEADER + ROW.replace("0", "x"), r"line 2: the turn index must be a number"),
    ("test.tsv", HEADER + ROW.replace("0", "²"), r"line 2: the turn index must be a number"),
    ("test.tsv", HEADER + ROW + ROW, r"line 3: turn 0 of dialogue A instead of turn 1"),
    ("test.tsv", HEADER + ROW + ROW.replace("A", "B") + ROW, r"the id A is not unique"),
    # JSON Lines
    (
        "a.jsonl",
        line(utterances=["hi"]) + "\n{",
        r"line 2 is not valid JSON, perhaps.*one dialogue per line",
    ),
    (
        "a.jsonl",
        '{"question_id": 1, "turns": ["hi", "shorter, please"]}',
        r"line 1: 'turns' is a list of texts \(keys: question_id, turns\)\. If they are the user's",
    ),
    ("a.jsonl", line(utterances=["hi"]) + "\n3", r"line 2: 3 instead of an object"),
    (
        "a.jsonl",
        line(utterances=["hi"]) + "\n" + line(),
        r"line 2 must have exactly one of the keys 'turns', 'utt",
    ),
    (
        "a.jsonl",
        line(turns=[], utterances=[]),
        r"line 1 must have exactly one of the keys 'turns', 'utterances'",
    ),
    ("a.jsonl", line(users=["hi"], utterances=[]), r"'users' \(only the user\)"),
    ("a.jsonl", line(users=["hi", "ho"], states=[{}]), r"has 1 state for 2 user utterances"),
    ("a.jsonl", '{"dialogue_id": "a", "x": ' + "[" * 100_000, r"line 1 is nested too deeply"),
    ("a.jsonl", '{"dialogue_id": ' + '{"a": ' * 100_000, r"line 1 is nested too deeply"),
    ("a.jsonl", '{"a": ' * 100_000, r"no dialogues in a known layout"),
    (
        "a.jsonl",
        line(turns=[{"user": "x", "state": {"a": [[]]}}]).replace("[[]]", "[" * 900 + "]" * 900),
        r"the value of slot 'a' must be a string.* got list",
    ),
    (
        "a.jsonl",
        '{"dialogue_id": "a", "turns": [{"user": "x", "state": {"s": "big", "s": "small"}}]}',
        r"line 1 has two values for the key 's': leave one out; expected one dialogue per line",
    ),
    ("a.jsonl", line(users=["a"], states=[{"s": math.nan}]), r"line 1 contains NaN, which is not"),
    ("a.jsonl", line(users=["a"], states=[{"s": -math.inf}]), r"line 1 contains -Infinity"),
    (
        "a.jsonl",
        line(users=["a"], states=[{"s": 1}]).replace("1}", "1e999}"),
        r"line 1 contains 1e999, which is not a JSON value",
    ),
    ("a.jsonl", '{"turns": []}', r"line 1: lacks 'dialogue_id'"),
    ("a.jsonl", line(turns=[]), r"dialogue a has no turns"),
    ("a.jsonl", line(utterances=[]), r"dialogue a has no turns"),
    ("a.jsonl", line(utterances=["hi", 3]), r"line 1: utterances\[1\]: 3 instead of a text"),
    ("a.jsonl", line(turns=[{"system": "x"}]), r"line 1: turns\[0\]: lacks 'user'"),
    (
        "a.jsonl",
        line(turns=[{"user": "x", "state": []}]),
        r"state: \[\] instead of an obj",
    ),
    (
        "a.jsonl",
        line(utterances=["a", "b", "c"], states=[{}]),
        r"has 1 state for 2 user utterances: 'states' needs one entry for each",
    ),
    (
        "a.jsonl",
        line(utterances=["a"]) + "\n" + line(utterances=["b"]),
        r"the id a is not unique: it is already used in",
    ),
    ("a.jsonl", line(utterances=["\ud83d"]), r"dialogue a, turn 0 contains a lone surrogate"),
    (
        "a.jsonl",
        line(utterances=["a"], states=[{"a": 1}])[:-4] + "9" * 5000,
        "a number of 5,000 digits",
    ),
    # archives
    ("test.zip", b"PK\x03\x04 cut off", r"test\.zip is not a zip file or is cut off"),
    ("notes.md", "hello", r"no dialogues in a known layout"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_bad_data_is_one_clear_message(
    write: Callable[[str, Any], Path], name: str, content: Any, message: str
):
    path = write(name, content)
    with pytest.raises(DataError, match=message) as error:
        load_dialogues(path)
    assert "\n" not in str(error.value)
    assert name in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"pizza-size": "big"}, "values of slot 'pizza-size': 'big' instead of a list"),
        ({"pizza-size": [{}]}, "a value: the value of slot 'pizza-size' must be a string"),
        ([{"slots": 3}], r"\[0\]\.slots: 3 instead of a list"),
        ([{"slots": [{}]}], r"\[0\]\.slots\[0\]: lacks 'name'"),
        ("", "is empty"),
        ('{"pizza', "not valid JSON"),
        ("3", "the ontology: 3 instead of an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ('{"pizza-size": ["big"], "pizza-size": ["small"]}', "two values for the key 'pizza-size'"),
        ('{"pizza-size": [NaN]}', "contains NaN"),
        ('{"pizza-size": [1e999]}', "contains 1e999"),
    ],
)
def test_bad_ontology_of_ones_own(
    write: Callable[[str, Any], Path], pizza: str, content: Any, message: str
):
    write("bot.ontology.json", content)
    with pytest.raises(DataError, match=message):
        load_dialogues(write("bot.jsonl", pizza))


@pytest.mark.parametrize("name", ["ontology.json", "z.json", "z.jsonl", "testListFile.json"])
@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000], ids=["lists", "objects"])
def test_a_neighbour_that_is_nested_deeply_is_passed_over(
    write: Callable[[str, Any], Path], pizza: str, name: str, content: str
):
    write(name, content)
    data = load_dialogues(write("bot.jsonl", pizza))
    assert data.dialogues
    noted = [note for note in data.notes if "nested too deeply" in note]
    assert len(noted) == (content[0] == "{" and name == "ontology.json")


def test_the_same_twice_is_no_contradiction(write: Callable[[str, Any], Path]):
    path = write("a.jsonl", '{"dialogue_id": "a", "dialogue_id": "a", "users": ["hi"]}')
    assert load_dialogues(path).dialogues[0].id == "a"


def test_missing_ontology(write: Callable[[str, Any], Path], pizza: str):
    with pytest.raises(DataError, match=r"no\.json cannot be read: No such file"):
        load_dialogues(write("bot.jsonl", pizza), ontology="no.json")


def test_missing_path_names_the_nearest_neighbour(write: Callable[[str, Any], Path], pizza: str):
    path = write("conversations.jsonl", pizza)
    with pytest.raises(DataError, match=r"Did you mean '.*conversations\.jsonl'\?"):
        load_dialogues(path.with_name("conversation.jsonl"))
    with pytest.raises(DataError, match="Did you mean 'sample'"):
        load_dialogues("sampel")
    with pytest.raises(DataError, match=r"no such file or folder: '/nowhere/at/all'. Give"):
        load_dialogues("/nowhere/at/all")
    with pytest.raises(DataError, match=r"no such file or folder: ''. Give the path"):
        load_dialogues("")


@pytest.mark.parametrize("target", ["loop", "nowhere"])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, target: str) -> None:
    (tmp_path / "loop").symlink_to(target)
    with pytest.raises(DataError, match=f"the link '.*loop' .* '{target}' is missing") as caught:
        load_dialogues(tmp_path / "loop")
    assert "Did you mean" not in str(caught.value)


def test_folder_without_dialogue_files(tmp_path: Path):
    (tmp_path / ".hidden.json").write_text("{}")
    with pytest.raises(DataError, match=r"has no file of dialogues; expected one of \.json"):
        load_dialogues(tmp_path)


def test_folder_with_too_many_files(
    write: Callable[[str, Any], Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(source, "_MAX_FILES", 1)
    write("d/a.json", "{}")
    with pytest.raises(DataError, match="more than 1 files; give the folder of a single data set"):
        load_dialogues(write("d/b.json", "{}").parent)


def test_files_four_folders_deep_are_found_and_no_deeper(
    write: Callable[[str, Any], Path], tmp_path: Path, original: dict[str, Any]
):
    write("d/1/2/3/test.json", original)
    write("d/1/2/3/4/val.json", original)
    load_dialogues(tmp_path / "d")
    with pytest.raises(DataError, match="does not have the split 'val'"):
        load_dialogues(tmp_path / "d", "val")


def test_split_that_a_single_file_does_not_hold(
    write: Callable[[str, Any], Path], original: dict[str, Any]
):
    with pytest.raises(DataError, match=r"split 'val'. It has original: test"):
        load_dialogues(write("test.json", original), "val")


def bomb(path: Path, size: int, method: int) -> Path:
    """Write a zip of dialogues that are followed by ``size`` blanks."""
    with (
        zipfile.ZipFile(path, "w", method) as archive,
        archive.open("test.jsonl", "w", force_zip64=True) as member,
    ):
        member.write(line(users=["hi"]).encode() + b"\n")
        for _ in range(size >> 20):
            member.write(b" " * (1 << 20))
    return path


def test_a_zip_that_would_fill_the_memory_is_refused(tmp_path: Path):
    path = bomb(tmp_path / "bomb.zip", 256 << 20, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(
            DataError, match=r"bomb\.zip:test\.jsonl would unpack to 268 MB from 0\.3"
        ):
            load_dialogues(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_a_zip_that_lies_about_its_size_gives_no_more_than_it_says(tmp_path: Path):
    path = bomb(tmp_path / "lies.zip", 64 << 20, zipfile.ZIP_DEFLATED)
    honest = (64 << 20) + len(line(users=["hi"])) + 1
    content = path.read_bytes()
    said = struct.pack("<L", 1000)
    # In the directory at the end, which is what counts.
    place = content.rindex(struct.pack("<L", honest))
    path.write_bytes(content[:place] + said + content[place + 4 :])
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"lies\.zip:test\.jsonl cannot be unpacked"):
            load_dialogues(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_small_zip_may_be_of_one_sentence(tmp_path: Path, method: int):
    data = load_dialogues(bomb(tmp_path / "small.zip", 1 << 20, method))
    assert data.dialogues[0].turns[0].user == "hi"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_whose_pieces_have_no_bound_is_refused(tmp_path: Path, method: int):
    with pytest.raises(DataError, match=r"compressed with bzip2 or lzma.* deflate, or unpack it"):
        load_dialogues(bomb(tmp_path / "odd.zip", 1 << 20, method))


def test_damaged_member_of_a_zip(tmp_path: Path, original: dict[str, Any]):
    path = tmp_path / "woz.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("test.json", json.dumps(original))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"Guest House", b"Guest hOUSE", 1))
    with pytest.raises(DataError, match=r"woz\.zip:test\.json cannot be unpacked \(Bad CRC"):
        load_dialogues(path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs files it may not read")
def test_unreadable_file(write: Callable[[str, Any], Path], original: dict[str, Any]):
    path = write("test.json", original)
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        load_dialogues(path)


def test_a_folder_in_the_place_of_a_file(tmp_path: Path):
    (tmp_path / "test.json").mkdir()
    file = source.SourceFile("test.json", tmp_path / "test.json")
    with pytest.raises(DataError, match=r"test\.json cannot be read: Is a directory"):
        file.text()


def test_name_of_a_path_without_letters(tmp_path: Path):
    (tmp_path / "___").mkdir()
    assert locate(tmp_path / "___").name == "data"


DEEP = "[" * 50_000
RASA = 'version: "3.1"\nnlu:\n- intent: greet\n  examples: |\n    - hello\n'
STORY = 'version: "3.1"\nstories:\n- story: a\n  steps:\n'
STORY += "".join(f"  - intent: greet\n    user: |-\n      {said}" for said in ("hi\n", ""))
#: Data -> part of the message, or ``None`` if the text is no structure, so the data is read.
DEEP_DATA: list[tuple[str, str, str | None]] = [
    (
        "a.jsonl",
        json.dumps({"messages": [{"role": "user", "content": "hi"}], "tools": DEEP}),
        "nested too deeply",
    ),
    ("a.yml", f"{RASA}d: 2024-02-30\n", "write it in quotes"),
    ("a.yml", f"{RASA}d: {'9' * 5000}\n", "write it in quotes"),
    *(
        ("a.yml", f"{RASA}d: !!{value}\n", "write it in quotes")
        for value in ('int ""', "bool maybe", 'float ""')
    ),
    ("a.yml", f"{RASA}d: !!timestamp x\n", "line 6 is not valid YAML"),
    ("a.yml", f"{RASA}d: {DEEP}\n", "nested too deeply"),
    ("a.yml", f'{STORY}/greet{{"a":{DEEP}\n', None),
    ("a.yml", f'{STORY}[hi]{{"entity": "a", "value": {DEEP}}}\n', None),
    (
        "a.jsonl",
        json.dumps(
            {
                "id": "run",
                "run_type": "llm",
                "inputs": {"prompts": ["Human: Hi\nAI: Yes.[{'name': " + "-" * 90_000]},
                "outputs": {"generations": [[{"text": "Bye."}]]},
            }
        ),
        None,
    ),
    (
        "a.jsonl",
        json.dumps(
            {"id": "a", "question": [[{"role": "user", "content": "hi"}]], "function": []}
        ).replace("[]}", '[], "ground_truth": ["f(a=')
        + "(" * 90_000
        + '"]}',
        None,
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), DEEP_DATA)
def test_odd_values_within_texts_are_no_faults_of_the_package(
    write: Callable[[str, Any], Path], name: str, content: str, message: str | None
):
    path = write(name, content)
    if message is None:
        assert load_dialogues(path).dialogues
    else:
        with pytest.raises(DataError, match=message) as error:
            load_dialogues(path)
        assert "\n" not in str(error.value)


CALL = {"id": "c", "type": "function", "function": {"name": "book", "arguments": "{}"}}


@pytest.mark.parametrize("key", ["toolCalls", "tool_call", "function_calls", "calls", "tool_cals"])
def test_a_misspelt_key_of_calls_is_refused(write: Callable[[str, Any], Path], key: str):
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", key: [CALL]}]
    with pytest.raises(DataError, match=rf"\[1\]: unknown key '{key}'; did you mean 'tool_calls'"):
        load_dialogues(write("a.json", {"messages": said}))
    said[1] = {"role": "assistant", "content": None, "tool_calls": [CALL], key: [CALL]}
    assert load_dialogues(write("a.json", {"messages": said})).dialogues
    said[1] = {"role": "assistant", "content": "a", key: []}
    assert load_dialogues(write("a.json", {"messages": said})).dialogues


@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        ("states", {"a": "b"}, "state"),
        ("state ", {"a": "b"}, "state"),
        ("belief_state", {"a": "b"}, "state"),
        ("anwser", "yes", "answer"),
        ("System", "Hello", "system"),
        ("response", "Hello", "answer"),
        ("status", {"a": "b"}, None),
        ("state_of_mind", {"a": "b"}, None),
        ("answered", True, None),
    ],
)
def test_a_misspelt_key_of_a_turn_is_refused(
    write: Callable[[str, Any], Path], key: str, value: Any, meant: str | None
):
    path = write("a.jsonl", json.dumps({"dialogue_id": "a", "turns": [{"user": "hi", key: value}]}))
    if meant is None:
        assert load_dialogues(path).dialogues
    else:
        with pytest.raises(DataError, match=f"turn 0: unknown key '{key}'; did you mean '{meant}'"):
            load_dialogues(path)


@pytest.mark.parametrize("key", ["state", "State", "belief_states", "dialogue_states"])
def test_a_misspelt_key_of_states_beside_messages_is_refused(
    write: Callable[[str, Any], Path], key: str
):
    said = {"messages": [{"role": "user", "content": "hi"}], key: [{"a": "b"}]}
    with pytest.raises(DataError, match=f"unknown key '{key}'; did you mean 'states'"):
        load_dialogues(write("a.json", said))


def test_states_beside_turns_are_refused(write: Callable[[str, Any], Path]):
    line = {"dialogue_id": "a", "turns": [{"user": "hi"}], "states": [{"a": "b"}]}
    with pytest.raises(DataError, match="give each turn its own key 'state'"):
        load_dialogues(write("a.jsonl", json.dumps(line)))


def test_a_response_that_the_next_turn_has_is_no_lost_answer(write: Callable[[str, Any], Path]):
    turns = [{"user": "hi", "response": "Hello"}, {"system": "Hello", "user": "bye"}]
    path = write("a.jsonl", json.dumps({"dialogue_id": "a", "turns": turns}))
    assert load_dialogues(path).dialogues


def test_a_misspelt_key_of_states_is_refused(write: Callable[[str, Any], Path]):
    line = {"dialogue_id": "a", "users": ["hi"], "belief_states": [{"a": "b"}]}
    with pytest.raises(DataError, match="unknown key 'belief_states'; did you mean 'states'"):
        load_dialogues(write("a.jsonl", json.dumps(line)))
