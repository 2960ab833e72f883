"""Frozen variants: the file, what a person says, the locks, and the relation that uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dstfuzz import Campaign, Context, Settings
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Dialogue,
    DialogueSet,
    Ontology,
    Turn,
    turn_keys,
)
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.lexicon import load_lexicon
from pytest_dstfuzz.perturb.locks import Locks
from pytest_dstfuzz.relations.relation import Inapplicable, Scene, Scenes, begin
from pytest_dstfuzz.relations.sources import (
    SCHEMA,
    FrozenFile,
    FrozenRow,
    FrozenWording,
    candidate_rows,
    find_broken_lock,
    read_frozen,
    relation_source,
    with_frozen,
)
from pytest_dstfuzz.testing import check_relation

ONTOLOGY = Ontology({"hotel-area": ("north", "south"), "hotel-people": ("2", "3")})
SAID = "Please find me a hotel in the north for 2 people."
DIALOGUE = Dialogue(
    "d",
    (
        Turn(0, "", SAID, BeliefState({"hotel-area": "north", "hotel-people": "2"})),
        Turn(1, "Done.", "Thanks.", BeliefState({"hotel-area": "north", "hotel-people": "2"})),
    ),
)
DATA = DialogueSet("toy", "test", (DIALOGUE,), ONTOLOGY)
KEY, _ = turn_keys(DIALOGUE)
OTHER = "We are 2 people who want a hotel in the north."


def scene(data: DialogueSet = DATA) -> Scene:
    lexicon = load_lexicon()
    return Scenes(data, lexicon, Locks(lexicon, data.ontology), 0).labelled("frozen", DIALOGUE, 0)


def frozen(tmp_path: Path, *rows: FrozenRow) -> DialogueSet:
    path = tmp_path / "frozen.jsonl"
    FrozenFile({"mine": "written here"}, rows).write(path)
    return with_frozen(DATA, path)


def row(text: str, verdict: str = "keeps", **more: str) -> FrozenRow:
    return FrozenRow(KEY, SAID, text, "mine", verdict=verdict, reviewer="ann", **more)  # type: ignore[arg-type]  # one of the verdicts


@pytest.mark.parametrize(
    ("text", "lock"),
    [
        (OTHER, ""),
        ("A hotel in the north, two people.", ""),
        ("We are 3 people who want a hotel in the north.", "value"),
        ("A hotel in the south for 2 people.", "value"),
        ("A hotel for 2 people.", "value"),
        ("A hotel in the north for 2 people, in the north.", "value"),
        ("A hotel in the north, not for 2 people.", "negation"),
        ("Sure, a hotel in the north for 2 people.", "affirmation"),
        ("Any hotel in the north for 2 people.", "dontcare"),
        ("Find it in the north for 2 people, a hotel.", "reference"),
        ("A hotel in the north for 2 people called Zorb Wok.", "name"),
        ("...", "size"),
    ],
)
def test_locks_of_a_whole_utterance(text: str, lock: str) -> None:
    assert find_broken_lock(scene(), text) == lock


@pytest.mark.parametrize(
    ("user", "text", "lock"),
    [
        ("Write to bob@example.com.", "Send a note to bob@example.com, please.", ""),
        ("Write to bob@example.com.", "Send a note to bob@example.org, please.", "exact"),
        ("Write to bob.", "Send a note to bob@example.com, please.", "exact"),
        ("Is it open after p.m. hours?", "Is it still open after pm hours?", ""),
        ('Play "two trees" now.', "Now play two trees.", ""),
    ],
)
def test_letters_that_carry_the_meaning_stay(user: str, text: str, lock: str) -> None:
    dialogue = Dialogue("d", (Turn(0, "", user, BeliefState()),))
    data = DialogueSet("toy", "test", (dialogue,), ONTOLOGY)
    lexicon = load_lexicon()
    scenes = Scenes(data, lexicon, Locks(lexicon, ONTOLOGY), 0)
    assert find_broken_lock(scenes.labelled("frozen", dialogue, 0), text) == lock


def test_only_what_a_person_keeps_and_no_lock_breaks_is_used(tmp_path: Path) -> None:
    data = frozen(
        tmp_path,
        row(OTHER),
        row("Get me a hotel in the north for 2 people.", "changes"),
        row("Two people, a hotel in the north.", lock="number"),
        row("For 2 people, a hotel in the north.", "changes", back_check="same"),
        FrozenRow(KEY, SAID, "A hotel in the north for 2 people, now.", "mine"),
    )
    (found,) = begin(FrozenWording(), scene(data))  # type: ignore[misc]  # rewrites
    assert found.seen.user == OTHER
    assert found.expected.deltas == ()
    assert not found.separable
    check_relation("frozen", data).assert_passed()


def test_locks_of_the_run_hold_whatever_the_file_says(tmp_path: Path) -> None:
    data = frozen(tmp_path, row("A hotel for 2 people."))
    assert begin(FrozenWording(), scene(data)) == Inapplicable(FrozenWording.reasons[1])
    no_row = Scenes(data, load_lexicon(), Locks(load_lexicon()), 0).labelled("frozen", DIALOGUE, 1)
    assert begin(FrozenWording(), no_row) == Inapplicable(FrozenWording.reasons[0])


def test_without_rows_it_is_impossible(tmp_path: Path) -> None:
    assert "--dst-relation=frozen:FILE" in FrozenWording().impossible(DATA)
    assert "no usable variant" in FrozenWording().impossible(
        frozen(tmp_path, row(OTHER, "changes"))
    )
    assert FrozenWording().impossible(frozen(tmp_path, row(OTHER))) == ""


def test_a_campaign_reads_the_file_of_the_settings(tmp_path: Path) -> None:
    frozen(tmp_path, row(OTHER))

    def track(context: Context) -> dict[str, str]:
        return {"hotel-area": "north"} if "Please" in context.user_utterances[0] else {}

    path = str(tmp_path / "frozen.jsonl")
    settings = Settings.of(frozen=path, relation="frozen")
    first, second = list(Campaign(track, DATA, settings))
    assert [v.outcome for v in first.variants][:1] == ["violation"]
    assert second.reason == FrozenWording.reasons[0]


def test_what_was_read_stays_as_it_is(tmp_path: Path) -> None:
    source = relation_source("phrase-table")
    rows = list(candidate_rows(source, DATA, [(DIALOGUE, 0)], each=5, seed=0))
    assert rows
    assert {one.key for one in rows} == {KEY}
    assert rows == list(candidate_rows(source, DATA, [(DIALOGUE, 0)], each=5, seed=0))
    judged = FrozenRow(KEY, SAID, rows[0].text, "mine", verdict="changes", reviewer="ann")
    file = FrozenFile({"mine": ""}, (judged,)).joined(source.name, source.licence, rows)
    assert file.rows == (judged, *rows[1:])
    path = tmp_path / "f.jsonl"
    file.write(path)
    assert read_frozen(path) == FrozenFile({"mine": "", source.name: source.licence}, file.rows)


HEAD = json.dumps({"schema": SCHEMA, "sources": {}})
ROW = {"key": "k", "user": "u", "text": "t", "source": "s"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "not a file of frozen variants"),
        (['{"schema": "x", "sources": {}}'], "not a file of frozen variants"),
        ([HEAD, "{"], "line 2"),
        ([HEAD, json.dumps({**ROW, "verdict": "yes"})], "line 2.*verdict"),
        ([HEAD, json.dumps({**ROW, "verdict": "keeps"})], "line 2: .* no reviewer"),
        ([HEAD, json.dumps({**ROW, "vote": ""})], "line 2.*vote"),
        ([HEAD, json.dumps(ROW), json.dumps(ROW)], "line 3: .* twice"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=message):
        read_frozen(path)
