"""The file of remembered violations: merged, and changed by several processes at once."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz import files
from pytest_dstfuzz.dialogue.dialogues import Difference
from pytest_dstfuzz.errors import DataError, UserError
from pytest_dstfuzz.regressions.regression import (
    MOST_OF_ONE,
    Corpus,
    Regression,
    SeenExchange,
    Status,
    accept_violation,
    accept_weakness,
    corpus_text,
    full_id,
    read_corpus,
    remember_violations,
    update_corpus,
    without,
)


def entry(seen: str, turn: str = "t", status: Status = "open", reason: str = "") -> Regression:
    return Regression(
        turn=turn,
        relation="metamorphic",
        exchanges=(SeenExchange("", "hello", seen),),
        changed=(Difference("hotel-name", None, seen),),
        status=status,
        reason=reason,
    )


def written(path: Path, *entries: Regression) -> Path:
    path.write_text("".join(f"{json.dumps(one.to_json())}\n" for one in entries), encoding="utf-8")
    return path


ENTRIES = st.builds(
    entry,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["t0", "t1"]),
    st.sampled_from(["open", "accepted"]),
    st.sampled_from(["", "why"]),
)


def test_two_turns_with_the_same_words_are_one_violation() -> None:
    first, second = entry("x", "d1-t0"), entry("x", "d2-t0")
    assert first.id == second.id
    assert first != second
    corpus = remember_violations({}, [first, second])
    assert dict(corpus) == {first.id: first}
    # What is known stays as it is, also when it was accepted.
    known = accept_violation(corpus, first.id, "known")
    assert remember_violations(known, [second, first]) == known


def test_an_open_violation_is_about_every_slot_that_it_was_seen_to_change() -> None:
    first = entry("x")
    other = replace(first, changed=(Difference("lodging-name", "x", None),))
    # As after a slot was renamed: the same words, and nothing that could be found under it.
    both = remember_violations(remember_violations({}, [first]), [other])[first.id]
    assert both.changed == (*first.changed, *other.changed)
    assert remember_violations({first.id: both}, [first, other]) == {first.id: both}
    # To change a slot more is not what was accepted.
    known = accept_violation({first.id: first}, first.id, "known")
    assert remember_violations(known, [other]) == known


def test_of_one_weakness_the_plainest_are_added_and_what_is_there_stays() -> None:
    weak = [replace(entry("x" * size), weakness="w") for size in range(9, 0, -1)]
    kept = remember_violations({}, weak)
    assert sorted(len(one.exchanges[0].seen) for one in kept.values()) == [1, 2, 3, 4, 5]
    assert remember_violations(remember_violations({}, weak[:6]), weak) == remember_violations(
        {}, weak[:6]
    )
    # Of others there is room, and so there is where some were accepted by themselves.
    other = replace(entry("y"), weakness="v")
    assert len(remember_violations(kept, [other, entry("z")])) == MOST_OF_ONE + 2
    known = accept_violation(kept, next(iter(kept)), "known")
    assert len(remember_violations(known, weak)) == MOST_OF_ONE + 1


def test_what_is_found_of_an_accepted_weakness_is_accepted() -> None:
    first, second = (replace(entry(seen), weakness="w") for seen in "ab")
    known = accept_weakness(remember_violations({}, [first]), "w", " why ")
    found = remember_violations(known, [second, replace(entry("c"), weakness="v")])
    states = {one.exchanges[0].seen: (one.status, one.reason) for one in found.values()}
    assert states == {"a": ("accepted", "why"), "b": ("accepted", "why"), "c": ("open", "")}
    with pytest.raises(UserError, match="needs a reason"):
        accept_weakness(known, "w", " ")


@given(st.lists(ENTRIES, max_size=8), st.randoms(use_true_random=False))
def test_lines_of_two_branches_may_stand_in_one_file_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Regression], random: Random
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "talks.jsonl"
    corpus = read_corpus(written(path, *entries))
    assert set(corpus) == {one.id for one in entries}
    assert list(corpus) == sorted(corpus)
    for name, kept in corpus.items():
        same = [one for one in entries if one.id == name]
        assert kept in same
        assert (kept.status == "accepted") == any(one.status == "accepted" for one in same)
    random.shuffle(entries)
    assert corpus_text(read_corpus(written(path, *entries))) == corpus_text(corpus)
    path.write_text(corpus_text(corpus), encoding="utf-8")
    assert read_corpus(path) == corpus


def test_an_update_is_made_of_what_the_file_holds_then(tmp_path: Path) -> None:
    path = tmp_path / "new" / "talks.jsonl"
    first, second = entry("a"), entry("b")
    assert update_corpus(path, lambda known: remember_violations(known, [first])) == (
        {},
        {first.id: first},
    )
    update_corpus(path, lambda known: accept_violation(known, first.id, "known"))
    _, after = update_corpus(path, lambda known: remember_violations(known, [first, second]))
    assert {one.seen.exchanges[0].user: one.status for one in after.values()} == {
        "a": "accepted",
        "b": "open",
    }
    update_corpus(path, lambda known: without(known, [first.id, "ffff"]))
    assert list(read_corpus(path)) == [second.id]
    assert [file.name for file in path.parent.iterdir()] == ["talks.jsonl"]


#: Changes one file twelve times; without a lock some of the lines are lost.
ADDS = """
import sys
from pathlib import Path
from test_corpus import entry
from pytest_dstfuzz.regressions.regression import remember_violations, update_corpus
from pytest_dstfuzz import files
if sys.argv[3] == "mark":
    files.fcntl = None
for number in range(12):
    found = [entry(f"{sys.argv[2]} {number}")]
    update_corpus(Path(sys.argv[1]), lambda known: remember_violations(known, found))
"""


@pytest.mark.parametrize("kind", ["folder", "mark"])
def test_no_update_is_lost_between_processes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "talks.jsonl"
    command = [sys.executable, "-c", ADDS, str(path)]
    started = [
        subprocess.Popen([*command, name, kind], cwd=Path(__file__).parent) for name in "abcd"
    ]
    assert [process.wait() for process in started] == [0, 0, 0, 0]
    assert len(read_corpus(path)) == 4 * 12
    assert [file.name for file in tmp_path.iterdir()] == ["talks.jsonl"]


@pytest.mark.parametrize("kind", ["folder", "mark"])
def test_who_waits_for_the_lock_is_told_what_for(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "mark":
        monkeypatch.setattr(files, "fcntl", None)
    path = tmp_path / "talks.jsonl"
    told = pytest.raises(UserError, match=r"another process has been changing .*talks\.jsonl")
    with files.lock_file(path), told, files.lock_file(path, wait=0.05):
        pytest.fail("two hold one lock")
    with files.lock_file(path, wait=0.05):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot lock"):
        update_corpus(tmp_path / "file" / "talks.jsonl", lambda known: known)


def test_marks_of_a_merge_are_called_by_their_name(tmp_path: Path) -> None:
    path = written(tmp_path / "talks.jsonl", entry("a"))
    path.write_text(f"<<<<<<< HEAD\n{path.read_text()}=======\n>>>>>>> branch\n")
    with pytest.raises(DataError, match=r"line 1 is a merge marker of git: keep the lines of both"):
        read_corpus(path)


def test_the_start_of_an_id_names_it() -> None:
    names = ["3f2a", "3f9b", "77aa"]
    assert full_id(names, "7") == "77aa"
    assert full_id(names, "3f2") == "3f2a"
    assert full_id([*names, "3f"], "3f") == "3f"
    assert full_id(["d-t1", "d-t10"], "d-t1") == "d-t1"
    assert full_id(["d-t1", "d-t10"], "d-t10") == "d-t10"
    with pytest.raises(UserError, match="unknown turn 'd-t1': no violation of it is remembered"):
        full_id(["d-t10", "d-t11"], "d-t1")
    with pytest.raises(UserError, match=r"2 ids of regressions begin with '3f'.*: 3f2a, 3f9b"):
        full_id(names, "3f")
    with pytest.raises(UserError, match="unknown regression ''"):
        full_id(names, "")
    with pytest.raises(UserError, match="Did you mean '77aa'"):
        full_id(names, "77ab")
    many = [f"{number:04x}" for number in range(100)]
    with pytest.raises(UserError, match=r"'zz'. Valid: 0000, .*, 0009 and 90 more \(dstfuzz regr"):
        full_id(many, "zz")
    with pytest.raises(UserError, match=r"write more of the id: 0000, .*, 0009 and 90 more$"):
        full_id(many, "00")


def test_a_corpus_reads_back_as_it_was_written(tmp_path: Path) -> None:
    corpus: Corpus = remember_violations({}, [entry("a\u2028b\r\n"), entry("\x1b[31m")])
    path = tmp_path / "talks.jsonl"
    path.write_bytes(corpus_text(corpus).encode("utf-8"))
    assert read_corpus(path) == corpus
