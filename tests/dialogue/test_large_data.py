"""Large data is the same as small data, and no more of it is in memory than what is asked for."""

from __future__ import annotations

import dataclasses
import gc
import json
import multiprocessing
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.config import ReplySettings
from pytest_dstfuzz.dialogue import sampling
from pytest_dstfuzz.dialogue.calls import Outcome, Tool
from pytest_dstfuzz.dialogue.dialogues import (
    BeliefState,
    Dialogue,
    DialogueSet,
    StoredDialogues,
    Turn,
)
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.dialogue.ontology import with_slots
from pytest_dstfuzz.dialogue.sampling import (
    SpooledDialogues,
    gather_dialogues,
    part_of,
    sample_set,
    sample_turns,
    with_history,
)
from pytest_dstfuzz.errors import DataError, UserError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PAIRS = st.dictionaries(TEXTS, TEXTS, max_size=3)
TOOLS = st.builds(Tool, TEXTS, TEXTS, st.just("{}"), st.booleans())
TURNS = st.builds(
    Turn,
    st.integers(0, 9),
    TEXTS,
    TEXTS,
    st.none() | st.builds(BeliefState, PAIRS),
    st.none() | TEXTS,
    st.none() | st.lists(TEXTS, max_size=2).map(tuple),
    st.none() | st.builds(Outcome, PAIRS),
)
DIALOGUES = st.builds(
    Dialogue,
    TEXTS,
    st.lists(TURNS, max_size=3).map(tuple),
    st.lists(TOOLS, max_size=3).map(tuple),
    st.lists(TEXTS, max_size=2).map(tuple),
    st.lists(st.tuples(TEXTS, TEXTS), max_size=2).map(tuple),
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let data be large from eleven turns on."""
    monkeypatch.setattr(sampling, "IN_MEMORY", 10)


def talk(number: int, turns: int = 2) -> Dialogue:
    state = BeliefState({"taxi-leave": str(number % 7)})
    said = (Turn(n, "" if n == 0 else "Hm?", f"{number} {n}", state) for n in range(turns))
    return Dialogue(f"d{number}", tuple(said))


def lines(count: int) -> str:
    entries = (
        {"dialogue_id": f"d{n}", "turns": [{"user": f"text {n}", "state": {"size": str(n % 5)}}]}
        for n in range(count)
    )
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@given(st.lists(DIALOGUES, max_size=4, unique_by=lambda one: one.id))
@settings(deadline=None)
def test_what_is_stored_comes_back_the_same(dialogues: list[Dialogue]):
    stored = SpooledDialogues(iter(dialogues))
    assert list(stored) == dialogues
    assert stored == tuple(dialogues)
    assert [type(turn.state) for one in stored for turn in one.turns] == [
        type(turn.state) for one in dialogues for turn in one.turns
    ]
    known, many = DialogueSet("a", "test", tuple(dialogues)), DialogueSet("a", "test", stored)
    for of in (known, many):
        assert list(of.ids) == [one.id for one in dialogues]
        assert list(of.lengths) == [len(one.turns) for one in dialogues]
    assert many.tools == known.tools
    assert many.labelled == known.labelled
    assert all(many.dialogue(one.id) == one for one in dialogues)


@pytest.mark.usefixtures("few")
def test_small_data_is_a_tuple_and_large_data_is_not():
    small, large = (gather_dialogues(talk(n) for n in range(count)) for count in (5, 6))
    assert isinstance(small, tuple)
    assert isinstance(large, StoredDialogues)
    assert large[:5] == small
    assert large[-1] == talk(5)
    assert large != small
    with pytest.raises(IndexError):
        large[6]


@pytest.mark.usefixtures("few")
def test_dialogues_are_let_go_of_as_they_are_stored():
    def alive() -> int:
        return sum(type(one) is Dialogue for one in gc.get_objects())

    def made() -> Iterator[Dialogue]:
        before = alive()
        for number in range(100):
            yield talk(number)
            # It looks at each object of the process.
            assert number % 10 or alive() - before <= 10

    assert len(gather_dialogues(made())) == 100


@pytest.mark.parametrize("outcome", ["state", "tool-calls"])
def test_large_data_says_what_small_data_says(outcome: Any, monkeypatch: pytest.MonkeyPatch):
    def found() -> list[Any]:
        data = load_dialogues("sample", outcome=outcome)
        rolled = with_history(data, ReplySettings(outcome=outcome, history="own"))
        slots = with_slots(rolled, rolled.ontology.slots[:3])
        plans = [sample_turns(slots, count, seed) for count, seed in [(40, 0), (57, 1), (None, 0)]]
        return [data, rolled, slots, sample_set(slots, 40, 0), *plans]

    small = found()
    monkeypatch.setattr(sampling, "IN_MEMORY", 10)
    large = found()
    for one, other in zip(small[:4], large[:4], strict=True):
        assert isinstance(other.dialogues, StoredDialogues)
        for field in dataclasses.fields(DialogueSet):
            assert getattr(one, field.name) == getattr(other, field.name)
        assert one.turn_count() == other.turn_count()
        assert one.says_slots == other.says_slots
    for plan, lazy in zip(small[4:], large[4:], strict=True):
        assert isinstance(plan, tuple)
        assert plan == tuple(lazy)
        assert plan[2:5] == tuple(lazy[2:5])
        assert len(plan) == len(lazy)
        assert [tuple(part_of(lazy, (n, 3))) for n in (1, 2, 3)] == [
            part_of(plan, (n, 3)) for n in (1, 2, 3)
        ]


@pytest.mark.usefixtures("few")
def test_domains_choose_dialogues_of_large_data():
    data = load_dialogues("sample")
    drawn = sample_turns(data, 30, 0, ("taxi",))
    assert sum(last + 1 for _, last in drawn) == 30
    assert all(
        any(slot.startswith("taxi-") for turn in one.turns for slot in turn.state or ())
        for one, _ in drawn
    )


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("last", "told"),
    [
        ('{"dialogue_id": "z", "turns": [{"user": "cut o', "line 41 is not valid JSON"),
        ('{"dialogue_id": "d3", "turns": [{"user": "again"}]}', "the id d3 is not unique"),
        ('{"dialogue_id": "z", "turns": []}', "dialogue z has no turns"),
        (b'{"dialogue_id": "\xff"}', "line 41 is not UTF-8"),
    ],
)
@pytest.mark.usefixtures("few")
def test_the_last_line_of_large_data_is_refused(
    last: str | bytes, told: str, zipped: bool, tmp_path: Path
):
    end = last if isinstance(last, bytes) else last.encode()
    path = tmp_path / "logs.jsonl"
    path.write_bytes(lines(40).encode() + end + b"\n")
    if zipped:
        with zipfile.ZipFile(tmp_path / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, "test.jsonl")
        path = tmp_path / "logs.zip"
    with pytest.raises(DataError, match=told) as error:
        load_dialogues(path)
    assert path.name in str(error.value)


@pytest.mark.usefixtures("few")
def test_rows_of_a_table_may_be_apart(write: Callable[[str, Any], Path]):
    rows = [f"{n},user,text {turn} of {n}" for turn in range(3) for n in range(9)]
    data = load_dialogues(write("log.csv", "\n".join(["id,speaker,text", *rows])))
    assert list(data.ids) == [str(n) for n in range(9)]
    assert [turn.user for turn in data.dialogues[4].turns] == [f"text {n} of 4" for n in range(3)]


@pytest.mark.usefixtures("few")
def test_two_dialogues_of_one_id_are_refused():
    with pytest.raises(DataError, match="two dialogues have the id 'd1'"):
        gather_dialogues([*map(talk, range(9)), talk(1)])


@pytest.mark.usefixtures("few")
def test_half_a_character_is_refused():
    broken = Dialogue("d", (Turn(0, "", "\ud83d"),))
    with pytest.raises(DataError, match="dialogue d contains a lone surrogate"):
        gather_dialogues([*map(talk, range(9)), broken])


@pytest.mark.usefixtures("few")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(UserError, match=r"cannot be written to .*gone: .* TMPDIR"):
        gather_dialogues(map(talk, range(9)))


@pytest.mark.parametrize("pread", [True, False])
@pytest.mark.usefixtures("few")
def test_threads_read_at_once(pread: bool, monkeypatch: pytest.MonkeyPatch):
    if not pread:
        monkeypatch.delattr(os, "pread", raising=False)
    stored = gather_dialogues(map(talk, range(200)))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(stored.__getitem__, range(200))) == list(map(talk, range(200)))


def _every_second(stored: Any, start: int, answer: Any) -> None:
    answer.send([stored[place].id for _ in range(20) for place in range(start, 60, 2)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("few")
def test_forked_processes_read_at_once():
    stored = gather_dialogues(map(talk, range(60)))
    fork = multiprocessing.get_context("fork")
    pipes = [fork.Pipe(duplex=False) for _ in range(2)]
    processes = [
        fork.Process(target=_every_second, args=(stored, start, pipes[start][1]))
        for start in range(2)
    ]
    for process in processes:
        process.start()
    for start, (answer, _) in enumerate(pipes):
        assert answer.recv() == [f"d{place}" for place in range(start, 60, 2)] * 20
    for process in processes:
        process.join()
