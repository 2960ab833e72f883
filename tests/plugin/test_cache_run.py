"""Runs that go on where an earlier one was, and workers that share what they ask for."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Loaded before any inner run, see conftest.py.
import pytest_dstfuzz.trackers.web.tracker  # noqa: F401

OPTIONS = ("--dst-turns=20", "--dst-variants=3", "--dst-fail-on=gate", "--dst-report=out.json")
CACHE = Path(".pytest_cache/d/dstfuzz/predictions.sqlite")

BOT = '''
"""Writes down what it is asked."""
import os
import signal
from pathlib import Path
from pytest_dstfuzz.dialogue.dialogues import BeliefState
from pytest_dstfuzz.trackers.tracker import Prediction

def version():
    return Path("version").read_text() if Path("version").exists() else "1"

class Bot:
    training = Path("training").exists()
    def __init__(self):
        self.fingerprint = version()
    def predict(self, contexts):
        with open("asked", "a", encoding="utf-8") as file:
            file.write("".join(f"{context.exchanges!r}\\n" for context in contexts))
        if len(Path("asked").read_text().splitlines()) >= int(os.environ.get("KILL_AT", "99999")):
            os.kill(os.getpid(), signal.SIGKILL)
        return [self.one(context) for context in contexts]
    def one(self, context):
        doubt = len(context.user) % 7 / 7
        state = {"hotel-name": context.user[:9], "hotel-area": version()}
        return Prediction(BeliefState(state), {"hotel-name": doubt})

class NoFingerprint(Bot):
    def __init__(self):
        self.fingerprint = None
'''


@pytest.fixture
def bot(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makepyfile(cachedbot=BOT)
    # Imported anew by every run, whatever an earlier test has imported under that name.
    monkeypatch.delitem(sys.modules, "cachedbot", raising=False)
    return pytester


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder for temporary files of the runs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield folder
    monkeypatch.undo()


def asked(pytester: pytest.Pytester) -> list[str]:
    """Return what the tracker was asked for since the last time."""
    path = pytester.path / "asked"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def run(
    pytester: pytest.Pytester, *options: str, model: str = "cachedbot:Bot"
) -> tuple[dict[str, Any], str]:
    """Run pytest in this process; return its report and its output."""
    given = [*OPTIONS, *([f"--dst-model={model}"] if model else []), *options]
    result = pytester.runpytest_inprocess(*given)
    assert result.ret == 0, result.stdout.str()
    return report(pytester), result.stdout.str()


def report(pytester: pytest.Pytester) -> dict[str, Any]:
    """Return the report that a run has written, and remove it."""
    path = pytester.path / "out.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return found


def without_run(found: dict[str, Any]) -> str:
    """Return a report without what is about the run, as text: order counts too."""
    return json.dumps({name: value for name, value in found.items() if name != "run"})


def test_an_unchanged_tracker_is_not_called_again(bot: pytest.Pytester) -> None:
    first, output = run(bot)
    # A few are asked once more on purpose, and those answers are kept as well.
    again = sum(turn["repeat_calls"] for turn in first["turns"])
    assert again > 0
    calls = len(set(asked(bot))) + again
    assert first["run"]["contexts"] == {"asked": calls, "recalled": 0}
    assert "from the cache" not in output

    second, output = run(bot)
    assert asked(bot) == []
    assert without_run(second) == without_run(first)
    assert second["run"]["contexts"] == {"asked": 0, "recalled": calls}
    assert f"; {calls} answers from the cache" in " ".join(output.split())


def test_another_fingerprint_is_another_tracker(bot: pytest.Pytester) -> None:
    run(bot)
    (bot.path / "version").write_text("2")
    asked(bot)
    found, _ = run(bot)
    assert found["run"]["contexts"]["recalled"] == 0
    assert {turn["clean_state"]["hotel-area"] for turn in found["turns"]} == {"2"}
    (bot.path / "version").write_text("1")
    asked(bot)
    run(bot)
    assert asked(bot) == []


def test_without_a_fingerprint_nothing_is_used_again(bot: pytest.Pytester) -> None:
    for _ in range(2):
        found, _ = run(bot, model="cachedbot:NoFingerprint")
        assert found["run"]["contexts"]["recalled"] == 0
        assert asked(bot)
    assert not (bot.path / CACHE).exists()


def test_a_fixture_s_tracker_is_remembered_too(bot: pytest.Pytester) -> None:
    bot.makeconftest(
        "import pytest\nfrom cachedbot import Bot\n"
        "@pytest.fixture(scope='session')\ndef dst_model():\n    return Bot()\n"
    )
    bot.makepyfile(test_mine="def test_state(dst_turn):\n    dst_turn.assert_unchanged()\n")
    first, _ = run(bot, model="")
    asked(bot)
    # One test alone finds what the whole suite has left.
    second, _ = run(bot, "-k", f"{first['turns'][3]['id']}]", model="")
    assert len(second["turns"]) == 1
    assert asked(bot) == []


def test_the_user_may_name_the_file_or_want_none(bot: pytest.Pytester) -> None:
    run(bot, "--dst-cache=no")
    assert not (bot.path / CACHE).exists()
    bot.makeini("[pytest]\ndst_cache = kept/mine.sqlite\n")
    run(bot)
    assert not (bot.path / CACHE).exists()
    asked(bot)
    run(bot, f"--dst-cache={bot.path / 'kept' / 'mine.sqlite'}")
    assert asked(bot) == []
    bot.makeini("[pytest]\ndst_cache = no\n")
    run(bot)
    assert asked(bot)
    assert not (bot.path / "no").exists()


def test_pytest_clears_it_with_its_cache(bot: pytest.Pytester) -> None:
    run(bot)
    asked(bot)
    run(bot, "--cache-clear")
    assert asked(bot)
    run(bot, "-p", "no:cacheprovider")
    assert asked(bot)


def test_a_damaged_file_is_named_and_the_run_goes_on(bot: pytest.Pytester) -> None:
    first, _ = run(bot)
    asked(bot)
    (bot.path / CACHE).write_bytes(b"no database " * 1000)
    second, output = run(bot)
    assert without_run(second) == without_run(first)
    assert len(re.findall("the cache of predictions .* was damaged", output)) == 1
    assert asked(bot)
    run(bot)
    assert asked(bot) == []


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_a_place_that_cannot_be_written_is_named_and_the_run_goes_on(
    bot: pytest.Pytester, temporary: Path, options: tuple[str, ...]
) -> None:
    (bot.path / "file").touch()
    _, output = run(bot, "--dst-cache=file/cache.sqlite", *options)
    assert len(re.findall("predictions are not cached: the cache file.cache", output)) == 1
    # Workers share what they ask for all the same: four times before the run, or once in it, and
    # once more to see whether the tracker repeats itself.
    assert max(Counter(asked(bot)).values()) <= 5
    assert list(temporary.glob("dstfuzz-*")) == []


def test_a_folder_that_cannot_be_made_is_named(bot: pytest.Pytester) -> None:
    (bot.path / "file").touch()
    bot.makeini("[pytest]\ncache_dir = file/cache\nfilterwarnings = ignore\n")
    _, output = run(bot)
    assert "predictions are not cached: pytest's cache folder: " in output


def test_dropout_that_was_switched_on_is_noticed(bot: pytest.Pytester) -> None:
    run(bot)
    (bot.path / "training").touch()
    result = bot.runpytest_inprocess(*OPTIONS, "--dst-model=cachedbot:Bot")
    assert result.ret == 4
    assert "training mode" in result.stderr.str()


@pytest.mark.parametrize(("model", "dist"), [("Bot", "worksteal"), ("NoFingerprint", "load")])
def test_workers_ask_for_each_context_once(
    bot: pytest.Pytester, temporary: Path, model: str, dist: str
) -> None:
    alone, _ = run(bot, model=f"cachedbot:{model}")
    once = asked(bot)
    (bot.path / CACHE).unlink(missing_ok=True)
    spread, _ = run(bot, "-n", "2", f"--dist={dist}", model=f"cachedbot:{model}")
    assert without_run(spread) == without_run(alone)
    assert sorted(asked(bot)) == sorted(once)
    contexts = spread["run"]["contexts"]
    # None of these answers is from an earlier run, although workers recall those of others.
    assert contexts == {"asked": alone["run"]["contexts"]["asked"], "recalled": 0}
    assert list(temporary.glob("dstfuzz-*")) == []


def test_workers_count_each_recalled_answer_once(bot: pytest.Pytester) -> None:
    spread = ("-n", "2", "--dist=worksteal")
    first, _ = run(bot, *spread)
    calls = first["run"]["contexts"]["asked"]
    for options in ((), spread):
        again, _ = run(bot, *options)
        assert again["run"]["contexts"] == {"asked": 0, "recalled": calls}
    # A run with other variants recalls some answers one by one.
    (bot.path / CACHE).rename(bot.path / "kept")
    found = []
    for options in ((), spread):
        shutil.copy(bot.path / "kept", bot.path / CACHE)
        other, _ = run(bot, "--dst-variants=4", *options)
        found.append(other["run"]["contexts"])
    assert found[0] == found[1]
    assert min(found[0].values()) > 0


@pytest.mark.parametrize("differ", [False, True])
def test_workers_with_two_versions_of_a_tracker_pass_no_gate(
    pytester: pytest.Pytester, *, differ: bool
) -> None:
    number = "os.environ.get('PYTEST_XDIST_WORKER', '')[-1:]" if differ else "''"
    pytester.makepyfile(
        spreadbot="import os\ndef track(context):\n    return {'hotel-area': 'north'}\n"
        f"track.fingerprint = 'version ' + {number}\n"
    )
    pytester.makeini("[pytest]\ndst_model = spreadbot:track\ndst_suite = yes\n")
    options = (*OPTIONS, "--dst-turns=8", "--dst-max-failure-rate=50%", "--dst-baseline=b.json")
    result = pytester.runpytest_subprocess(*options, "--dst-update-baseline", "-n2")
    assert (result.ret == 0) is not differ
    assert ("2 versions of the tracker" in result.stdout.str()) is differ
    assert (pytester.path / "b.json").exists() is not differ


def test_trackers_of_one_class_are_told_apart_by_workers(
    bot: pytest.Pytester, temporary: Path
) -> None:
    bot.makeconftest(
        "import pytest\n"
        "class Says:\n"
        "    def __init__(self, area):\n        self.area = area\n"
        "    def predict(self, contexts):\n"
        "        return [\n"
        "            {'hotel-area': self.area, 'hotel-stars': str(len(one.exchanges))}\n"
        "            for one in contexts\n"
        "        ]\n"
        "@pytest.fixture(scope='session', params=['north', 'south'])\n"
        "def dst_model(request):\n    return Says(request.param)\n"
    )
    bot.makepyfile(
        test_mine="def test_state(dst_turn, dst_model):\n"
        "    assert dst_turn.result.clean_state['hotel-area'] == dst_model.area\n"
    )
    found, _ = run(bot, "-n", "2", model="")
    assert len(found["turns"]) == 40
    assert list(temporary.glob("dstfuzz-*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_run_goes_on_where_it_was(
    bot: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = run(bot, "--dst-batch-size=8")
    expected = asked(bot)
    (bot.path / CACHE).unlink()

    command = [sys.executable, "-m", "pytest", "-q", "--dst-model=cachedbot:Bot", *OPTIONS]
    for many in ("40", "90"):
        monkeypatch.setenv("KILL_AT", many)
        killed = subprocess.run([*command, "--dst-batch-size=8"], check=False, capture_output=True)
        assert killed.returncode == -signal.SIGKILL
    monkeypatch.delenv("KILL_AT")
    resumed, _ = run(bot, "--dst-batch-size=8")
    assert without_run(resumed) == without_run(whole)
    assert 0 < resumed["run"]["contexts"]["asked"] < whole["run"]["contexts"]["asked"]
    again = Counter(asked(bot)) - Counter(expected)
    # Two batches were in flight.
    assert sum(again.values()) <= 16
    # Nothing is left beside the file once it was closed in order.
    assert [path.name for path in (bot.path / CACHE.parent).iterdir()] == [CACHE.name]


@pytest.mark.nightly
def test_a_run_whose_answers_are_kept_loads_no_torch(pytester: pytest.Pytester) -> None:
    pytest.importorskip("torch")
    told = 'def pytest_unconfigure(): print("torch", "torch" in __import__("sys").modules)'
    pytester.makeconftest(told)
    options = ("--dst-model=trade", "--dst-turns=2", "--dst-variants=1", "--dst-fail-on=gate")
    for loaded in (True, False):
        run = pytester.runpytest_subprocess(*options, "-p", "no:hypothesispytest")
        assert run.ret == 0
        run.stdout.fnmatch_lines([f"*torch {loaded}"])


def test_a_second_run_makes_no_variant_and_no_report_changes(
    bot: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--dst-relation=metamorphic,value-swap", "--dst-report=out.html")
    first, output = run(bot, *options)
    page = (bot.path / "out.html").read_text(encoding="utf-8")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a variant is made again")

    monkeypatch.setattr("pytest_dstfuzz.perturb.engine.Perturber.prepare", refuse)
    second, again = run(bot, *options)
    assert without_run(second) == without_run(first)
    screens = [re.findall(r"(?m)^(?:verdict|relation) .*$", text) for text in (output, again)]
    assert screens[0] == screens[1] != []
    assert len((bot.path / "out.html").read_text(encoding="utf-8")) == pytest.approx(
        len(page), abs=200
    )
    # Other settings are other variants.
    result = bot.runpytest_inprocess(*OPTIONS, "--dst-model=cachedbot:Bot", "--dst-seed=1")
    assert "a variant is made again" in result.stdout.str()


CHANGING = '''
class Changing(Bot):
    """Is another one from its 60th answer on, if the file says so."""
    answers = 0
    @property
    def fingerprint(self):
        return version()
    @fingerprint.setter
    def fingerprint(self, value): ...
    def predict(self, contexts):
        self.answers += len(contexts)
        if Path("deploys").exists() and self.answers >= 60:
            Path("version").write_text("2")
        return super().predict(contexts)
'''


def test_a_tracker_that_changes_during_a_run_leaves_no_answer(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(cachedbot=BOT + CHANGING)

    def areas() -> set[str]:
        line = ("--dst-model=cachedbot:Changing", "--dst-batch-size=8", *OPTIONS)
        result = pytester.runpytest_subprocess(*line)
        found = json.loads(Path("out.json").read_text(encoding="utf-8"))
        if Path("deploys").exists():
            result.stdout.fnmatch_lines(["*the tracker changed its fingerprint during the run*"])
            assert result.ret != 0
        states = [turn["clean_state"] for turn in found["turns"]]
        return {state["hotel-area"] for state in states if state}

    Path("deploys").touch()
    assert "2" not in areas()
    Path("deploys").unlink()
    Path("version").unlink()
    assert areas() == {"1"}


FILED = """
from pathlib import Path
from pytest_dstfuzz import register_tracker
from cachedbot import Bot

class Filed(Bot):
    def __init__(self, path):
        self.fingerprint = "1"
        if Path("loading").exists():
            Path(path).write_text("another epoch")

register_tracker("filed", Filed)
"""


def test_a_file_that_changes_while_the_tracker_loads_is_another_one(bot: pytest.Pytester) -> None:
    bot.makeconftest(FILED)
    file, loading = bot.path / "weights.txt", bot.path / "loading"
    file.write_text("first", encoding="utf-8")
    loading.touch()
    given = ("--dst-tracker", f"path={file}")
    run(bot, *given, model="filed")
    loading.unlink()
    assert asked(bot)
    run(bot, *given, model="filed")
    assert asked(bot)
    file.write_text("first", encoding="utf-8")
    run(bot, *given, model="filed")
    assert not asked(bot)
