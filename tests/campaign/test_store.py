"""The file that predictions are kept in: bounded, shared, and never a reason to end a run."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_dstfuzz.campaign import cache as store_module
from pytest_dstfuzz.campaign.cache import Store

LIMIT = 10_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "cache.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    made = Store(path, LIMIT)
    yield made
    made.close()


#: Those that a test opened besides; from Python 3.13 on it is an error to leave them open.
_reopened: list[Store] = []


@pytest.fixture(autouse=True)
def _closed_again() -> Iterator[None]:
    yield
    while _reopened:
        _reopened.pop().close()


def reopened(path: Path, limit: int = LIMIT) -> Store:
    _reopened.append(Store(path, limit))
    return _reopened[-1]


def in_another_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python code with a `Store` at ``sys.argv[1]``."""
    head = (
        "import sys\nfrom pathlib import Path\nfrom pytest_dstfuzz.campaign.cache import Store\n"
        "store = Store(Path(sys.argv[1]), 10_000_000)\n"
    )
    command = [sys.executable, "-c", head + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_is_kept_is_there_for_the_next_one(store: Store, path: Path) -> None:
    store.put({b"a": b"1", b"b": b""})
    assert store.get([b"a", b"b", b"c"]) == {b"a": b"1", b"b": b""}
    assert reopened(path).get([b"a"]) == {b"a": b"1"}
    assert store.problems == []


def test_what_is_there_stays(store: Store) -> None:
    store.put({b"a": b"1"})
    store.put({b"a": b"2"})
    assert store.get([b"a"]) == {b"a": b"1"}


def test_a_file_is_made_when_it_is_needed(store: Store, path: Path) -> None:
    assert store.get([]) == {}
    store.put({})
    assert not path.exists()
    assert store.usable
    assert path.exists()


def test_the_file_does_not_grow_beyond_its_limit(path: Path) -> None:
    limit, values = 200_000, random.Random(0)
    store = reopened(path, limit)
    for number in range(200):
        store.put({bytes([number, place]): values.randbytes(500) for place in range(10)})
    store.close()
    size = sum(part.stat().st_size for part in path.parent.iterdir())
    assert limit / 2 < size < limit + 20_000
    assert len(store.get([bytes([199, place]) for place in range(10)])) == 10
    assert store.get([bytes([0, place]) for place in range(10)]) == {}


def test_a_smaller_limit_gives_room_back(path: Path) -> None:
    store = reopened(path)
    store.put({bytes([number]): bytes(10_000) for number in range(200)})
    store.close()
    assert path.stat().st_size > 2_000_000
    smaller = reopened(path, 500_000)
    smaller.put({b"new": b"value"})
    smaller.close()
    assert path.stat().st_size < 500_000
    assert smaller.get([b"new"]) == {b"new": b"value"}


def test_what_was_not_used_for_the_most_days_goes_first(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = [100]
    monkeypatch.setattr(store_module, "_today", lambda: day[0])
    store, value = reopened(path, 100_000), bytes(20_000)
    for name in (b"a", b"b", b"c"):
        store.put({name: value})
        day[0] += 1
    assert store.get([b"a"]) == {b"a": value}
    store.put({b"d": value})
    store.put({b"e": value})
    kept = store.get([b"a", b"b", b"c", b"d", b"e"])
    assert b"b" not in kept
    assert {b"a", b"d", b"e"} <= set(kept)


DAMAGE = {
    "no database": lambda content: b"not a database at all" + content[21:],
    "a piece of one": lambda content: content[: len(content) // 2],
    "a hole in it": lambda content: content[:4096] + bytes(8192) + content[12288:],
    "one letter of a value": lambda content: content.replace(b"north", b"south", 1),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_set_aside_and_named(path: Path, kind: str) -> None:
    values = {bytes([number]): b"the north " * 30 for number in range(200)}
    first = reopened(path)
    first.put(values)
    first.close()
    damaged = DAMAGE[kind](path.read_bytes())
    path.write_bytes(damaged)

    store = reopened(path)
    found = store.get(list(values))
    assert all(values[key] == value for key, value in found.items())
    assert found == {}
    store.put({b"new": b"value"})
    assert store.get([b"new"]) == {b"new": b"value"}
    (problem,) = store.problems
    assert problem.startswith(f"the cache of predictions {path} was damaged (")
    assert "renamed to cache.sqlite.damaged" in problem
    assert (path.parent / "cache.sqlite.damaged").read_bytes()[:4096] == damaged[:4096]
    store.close()
    again = reopened(path)
    assert again.get([b"new"]) == {b"new": b"value"}
    assert again.problems == []


def test_an_empty_file_is_as_good_as_none(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    store = reopened(path)
    store.put({b"a": b"1"})
    assert store.get([b"a"]) == {b"a": b"1"}
    assert store.problems == []


def test_the_database_of_something_else_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE mine (a)")
    base.commit()
    base.close()
    before = path.read_bytes()
    store = reopened(path)
    store.put({b"a": b"1"})
    assert store.get([b"a"]) == {}
    assert not store.usable
    assert path.read_bytes() == before
    reason = "it is a database of another program"
    assert store.problems == [
        f"predictions are not cached: the cache {path} cannot be used ({reason})"
    ]


def test_a_file_of_another_version_is_begun_anew(store: Store, path: Path) -> None:
    store.put({b"a": b"1"})
    store.close()
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 99")
    base.close()
    assert store.get([b"a"]) == {}
    store.put({b"a": b"2"})
    assert reopened(path).get([b"a"]) == {b"a": b"2"}
    assert store.problems == []


def test_a_place_that_cannot_be_written_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file" / "cache.sqlite", LIMIT)
    for _ in range(3):
        store.put({b"a": b"1"})
        assert store.get([b"a"]) == {}
        assert store.claim("run", "me", [b"a"]) == {b"a"}
        store.release("run", "me")
    (problem,) = store.problems
    assert problem.startswith(
        f"predictions are not cached: the cache {store.path} cannot be used ("
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files there")
def test_a_full_disk_ends_the_keeping_and_nothing_else(path: Path) -> None:
    code = """
        import resource
        store.put({b"first": b"value"})
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        for number in range(100):
            store.put({bytes([number]): bytes(100_000)})
        print(len(store.problems), store.problems[0])
    """
    done = in_another_process(code, path)
    assert done.stderr == ""
    assert done.stdout.startswith(
        f"1 predictions are not cached: the cache {path} cannot be used ("
    )
    # Entries stored before are still there.
    store = reopened(path)
    assert store.get([b"first"]) == {b"first": b"value"}
    assert store.problems == []


def test_several_processes_begin_and_fill_one_file(path: Path) -> None:
    code = """
        me = sys.argv[2].encode()
        for number in range(40):
            store.put({me + bytes([number]): me * 100})
            assert len(store.get([me + bytes([n]) for n in range(number + 1)])) == number + 1
        print(store.problems)
    """
    head = "import sys\nfrom pathlib import Path\nfrom pytest_dstfuzz.campaign.cache import Store\n"
    head += "store = Store(Path(sys.argv[1]), 10_000_000)\n"
    command = [sys.executable, "-c", head + textwrap.dedent(code), str(path)]
    running = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "abc"
    ]
    assert [process.communicate()[0] for process in running] == ["[]\n"] * 3
    keys = [name + bytes([number]) for name in (b"a", b"b", b"c") for number in range(40)]
    assert len(reopened(path).get(keys)) == 120


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_connection_of_its_own(store: Store) -> None:
    store.put({b"before": b"1"})
    child = os.fork()
    if not child:
        store.put({b"child": b"2"})
        sound = store.get([b"before", b"child"]) == {b"before": b"1", b"child": b"2"}
        store.close()
        os._exit(0 if sound and not store.problems else 1)
    store.put({b"parent": b"3"})
    assert os.waitpid(child, 0)[1] == 0
    assert len(store.get([b"before", b"child", b"parent"])) == 3
    assert store.problems == []


def test_a_claim_holds_for_its_run_until_it_is_given_up(store: Store, path: Path) -> None:
    other = reopened(path)
    assert store.claim("run", "me", [b"a", b"b"]) == {b"a", b"b"}
    assert other.claim("run", "you", [b"b", b"c"]) == {b"c"}
    assert other.claim("another run", "you", [b"b"]) == {b"b"}
    store.put({b"a": b"1"}, owner="me")
    assert other.claim("run", "you", [b"a"]) == set()
    store.release("run", "me")
    assert other.claim("run", "you", [b"a", b"b"]) == {b"b"}


def test_a_claim_of_one_who_keeps_nothing_ends(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    other = reopened(path)
    store.claim("run", "me", [b"a", b"b"])
    now[0] += 50
    assert other.claim("run", "you", [b"b"]) == set()
    store.put({b"a": b"1"}, owner="me")
    now[0] += 50
    assert other.claim("run", "you", [b"b"]) == set()
    now[0] += 50
    assert other.claim("run", "you", [b"b"]) == {b"b"}
