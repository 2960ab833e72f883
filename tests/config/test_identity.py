"""Whatever decides a result is part of every key: cache, kept results, folder, parts and sweep."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_dstfuzz import (
    BeliefState,
    Campaign,
    Context,
    UserError,
    register_search,
    register_tracker,
)
from pytest_dstfuzz.campaign import engine
from pytest_dstfuzz.campaign.cache import PredictionCache, Store, scope_of
from pytest_dstfuzz.campaign.code import code_of_rules
from pytest_dstfuzz.campaign.engine import data_digest, open_result_cache
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.comparisons.calls import comparison_of_calls
from pytest_dstfuzz.comparisons.judge import Judges
from pytest_dstfuzz.comparisons.registry import as_comparison
from pytest_dstfuzz.config import (
    OPTIONS,
    Address,
    Header,
    OwnKey,
    Settings,
    identity,
    identity_of,
    is_own_function,
)
from pytest_dstfuzz.config.identity import content_named_in, decides
from pytest_dstfuzz.dialogue.calls import OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import DialogueSet
from pytest_dstfuzz.dialogue.load import load_dialogues
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.files import content_of
from pytest_dstfuzz.gate.baseline import campaign_identity, changes
from pytest_dstfuzz.own_code import code_of
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.sources import FrozenFile, FrozenRow
from pytest_dstfuzz.repair.commands import _bot_digest
from pytest_dstfuzz.scale import sweeps
from pytest_dstfuzz.scale.manifest import RunManifest
from pytest_dstfuzz.scale.merge import check_parts
from pytest_dstfuzz.scale.results import ResultFolder, open_folder
from pytest_dstfuzz.scale.runs import manifest_of, run_into
from pytest_dstfuzz.scale.sweeps import read_sweep
from pytest_dstfuzz.search.registry import SEARCHES
from pytest_dstfuzz.trackers.registry import (
    TRACKERS,
    TrackerMaker,
    factory_options_of,
    load_attribute,
)

DECIDING = [item for item in OPTIONS if decides(item)]
#: Option -> another value than the default, which is not checked.
OTHER: dict[str, Any] = {
    "model": Address("http://bot:pw@host/?deployment=bad"),
    "judge": Address("openai+http://judge:pw@host/v1"),
    "header": (Header("X-Team", "blue"),),
    "tracker": (OwnKey("size", "3"),),
    "device": "cuda",
    "opening": "system",
    "split": "val",
    "attack": "cumulative",
    "validity": "strict",
    "search": "greedy",
    "relation": "gold",
    "outcome": "reply",
    "history": "own",
    "reference": "answer",
    "call_order": "exact",
    "repeatable": True,
    "edits": ("typo",),
    "noise": ("speech",),
    "error_rate": (0.05, 0.05),
}
#: Options whose values may name a folder.
FOLDERS = ("checkpoint", "tracker")
#: Options whose values name a file.
FILES = {
    "checkpoint": "{}",
    "slot_map": "{}",
    "prompt": "{}",
    "search": "bandit:{}",
    "noise": "{}:3",
    "tracker": "{}",
}


def changed(settings: Settings, name: str, value: Any) -> Settings:
    """Return settings with another value of an option, whatever else it would need."""
    part = next(item.part for item in OPTIONS if item.name == name)
    new: Any = replace(getattr(settings, part), **{name: value})
    return replace(settings, **{part: new})


def other_value(name: str, old: Any) -> Any:
    match OTHER.get(name, old):
        case bool(value):
            return not value if name not in OTHER else value
        case int(value) | float(value):
            return value + 1
        case tuple(value):
            return value if name in OTHER else (*value, "something")
        case None:
            return "something"
        case value if value != old:
            return value
    raise AssertionError(f"say another value of {name}")


def heard(context: Context) -> BeliefState:
    return BeliefState({"hotel-area": "north"} if "north" in context.user else {})


@pytest.fixture(scope="module")
def manifest() -> RunManifest:
    return manifest_of(Campaign(heard, settings=Settings.of(turns=10, search="random")))


def refused(manifest: RunManifest, one: Settings, other: Settings, path: Path) -> str:
    """Run one, go on as the other, merge both; return why the folder refuses the other."""
    first, second = (
        replace(manifest, decided={**manifest.decided, **identity_of(settings)}, planned=0)
        for settings in (one, other)
    )
    open_folder(path / "run", first).close()
    folder = ResultFolder.create(path / "part", second)
    folder.manifest.write(path / "run2")
    first.write(path / "run")
    parts = [ResultFolder.open(path / "run"), ResultFolder.open(path / "run2")]
    with pytest.raises(UserError, match="are not parts of one run"):
        check_parts(parts)
    with pytest.raises(UserError, match="results of another run") as told:
        open_folder(path / "run", second)
    return str(told.value)


def keys(settings: Settings, path: Path) -> tuple[bytes, str]:
    """Return the key of cached answers, and that of kept results."""
    data = load_dialogues("sample", "test")
    scope = scope_of(("bot", "1", identity_of(settings, "tracker")), data, settings.reply)
    fixed = Settings()
    rules = replace(CampaignSpec.of(fixed.variant, data, load_lexicon()), repeats=True)
    cache = PredictionCache(Store(path / "cache", 1_000_000), scope)
    kept = open_result_cache(cache, settings, rules, load_lexicon())
    assert kept is not None
    return scope, kept._scope


@pytest.mark.parametrize("name", [item.name for item in DECIDING])
def test_a_value_that_decides_is_in_every_key(
    manifest: RunManifest, tmp_path: Path, name: str
) -> None:
    one = Settings()
    other = changed(one, name, other_value(name, one.option(name)))
    assert identity_of(one)[name] != identity_of(other)[name]
    assert name in refused(manifest, one, other, tmp_path)
    part = next(item.part for item in DECIDING if item.name == name)
    answers, kept = (
        a != b for a, b in zip(keys(one, tmp_path), keys(other, tmp_path), strict=True)
    )
    assert answers or part != "tracker"
    assert kept or part not in ("variant", "reply")


def cell_of(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the folder name of a sweep's cell with settings, whatever else they would need."""
    with monkeypatch.context() as patch:
        patch.setattr(Settings, "of", lambda **_: settings)
        return sweeps._make_cell({}, {"search": ""}, Path("sweep.toml")).name


@pytest.mark.parametrize("name", [item.name for item in DECIDING])
def test_a_value_that_decides_is_in_the_name_of_a_cell(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    one = Settings()
    other = changed(one, name, other_value(name, one.option(name)))
    assert cell_of(one, monkeypatch) == cell_of(Settings(), monkeypatch)
    assert cell_of(one, monkeypatch) != cell_of(other, monkeypatch)


BOOK = {"name": "book", "parameters": {"properties": {"people": {"type": "integer"}}}}
TALK = {
    "id": "a",
    "messages": [
        {"role": "user", "content": "A table for two."},
        {"role": "assistant", "tool_calls": [{"function": {"name": "book", "arguments": "{}"}}]},
    ],
}


def write_read_files(folder: Path, word: str = "", of: str = "") -> dict[str, str]:
    """Write a file for each option that names dialogues or words for them; return their paths.

    The file of one option, ``of``, has another ``word``.
    """
    words = dict.fromkeys(READ, "plain") | {of: word}
    talk = json.dumps(TALK).replace("two", words["data"])
    tool = {**BOOK, "description": words["tools"]}
    turn = msgspec.structs.replace(KEYED, text=words["frozen"])
    texts = {
        "data": ("talks.jsonl", talk),
        "tools": ("tools.json", json.dumps([tool])),
        "tools_paraphrase": ("words.json", json.dumps([{"tools": {"book": words[PHRASES]}}])),
    }
    for name, text in texts.values():
        (folder / name).write_text(text, encoding="utf-8")
    FrozenFile({"me": "mine"}, (turn,)).write(folder / "frozen.jsonl")
    named = {option: str(folder / name) for option, (name, _) in texts.items()}
    return {**named, "frozen": str(folder / "frozen.jsonl")}


PHRASES = "tools_paraphrase"
#: Options that name files of dialogues, or of words for them.
READ = [item.name for item in OPTIONS if item.part == "data" and "path" in item.scopes]
KEYED = FrozenRow("0" * 16, "A table for two.", "plain", "me", verdict="keeps", reviewer="ann")


@pytest.mark.parametrize("name", READ)
def test_the_content_of_a_file_of_dialogues_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    paths = write_read_files(tmp_path)
    assert paths.keys() == set(READ)
    relation = f"tools-paraphrase:{paths[PHRASES]}"
    plain = {key: paths[key] for key in ("data", "tools")}

    def found() -> tuple[RunManifest, str, str]:
        given = Settings.of(outcome="tool-calls", relation=relation, search="random", **plain)
        settings = changed(given, "frozen", paths["frozen"])
        campaign = Campaign(lambda _: [], settings=settings)
        digest = data_digest(campaign.data)
        return manifest_of(campaign), digest, cell_of(settings, monkeypatch)

    first, *kept = found()
    again, *same = found()
    assert not first.differing(again)
    assert same == kept
    write_read_files(tmp_path, "other", name)
    other, *new = found()
    assert first.differing(other)
    # The digest is in the key of kept results, and the last one names the cell of a sweep.
    assert [a != b for a, b in zip(kept, new, strict=True)] == [True, True]
    open_folder(tmp_path / "run", first).close()
    with pytest.raises(UserError, match="results of another run"):
        open_folder(tmp_path / "run", other)


def named(name: str, text: str) -> Any:
    if name == "tracker":
        return (OwnKey("file", text),)
    return (text,) if name == "noise" else text


@pytest.mark.parametrize("name", FILES)
def test_a_file_counts_by_its_content(manifest: RunManifest, tmp_path: Path, name: str) -> None:
    files = [tmp_path / place / "one.txt" for place in ("here", "there")]
    file, _ = files
    for path in files:
        path.parent.mkdir()
        path.write_text("first", encoding="utf-8")
    paths = [named(name, FILES[name].format(path)) for path in files]
    one, other = (changed(Settings(), name, path) for path in paths)
    before = identity_of(one)
    # A user's tracker may look at more than the file.
    assert (before == identity_of(other)) is (name not in FOLDERS)
    file.write_text("second", encoding="utf-8")
    assert identity_of(one) != before
    assert name in refused(manifest, other, one, tmp_path)
    if name not in ("search", "noise"):
        assert keys(one, tmp_path)[0] != keys(other, tmp_path)[0]


@pytest.mark.parametrize("name", [*FOLDERS])
def test_a_folder_counts_by_its_content(tmp_path: Path, name: str) -> None:
    weights = tmp_path / "one" / "deep" / "weights"
    weights.parent.mkdir(parents=True)
    settings = changed(Settings(), name, named(name, str(tmp_path / "one")))
    found = []
    for text in ("first", "first", "second"):
        weights.write_text(text, encoding="utf-8")
        found.append((identity_of(settings), keys(settings, tmp_path)[0]))
    assert found[0] == found[1]
    assert found[1][0] != found[2][0]
    assert found[1][1] != found[2][1]


#: Two values, of which each names a file or folder in the working folder: all are equal.
TWINS = {
    "folders of one content": ("good", "bad"),
    "files of one content": ("good.txt", "bad.txt"),
    "files in other folders": ("good/a.txt", "bad/a.txt"),
    "noise models": ("speech", "casual"),
}


@pytest.mark.parametrize("pair", TWINS.values(), ids=TWINS)
@pytest.mark.parametrize("name", FILES)
def test_a_value_decides_although_files_of_its_name_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pair: tuple[str, str]
) -> None:
    for text in ("good", "bad"):
        (tmp_path / text).mkdir()
        (tmp_path / text / "a.txt").write_text("", encoding="utf-8")
        (tmp_path / f"{text}.txt").write_text("", encoding="utf-8")
    for text in ("speech", "casual"):
        (tmp_path / text).write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    one, other = (changed(Settings(), name, named(name, text)) for text in pair)
    # The package alone reads a file of the other options, and no file beside it.
    beside = "/" in pair[0] and name not in FOLDERS
    assert (identity_of(one) == identity_of(other)) is beside
    assert name in FOLDERS or beside or cell_of(one, monkeypatch) != cell_of(other, monkeypatch)


#: Texts with the path of the working folder.
FORMS = (
    *("{0}", "{0}/a.txt", "x={0}/a,{0}/b", "'{0}/a'", "file://{0}/a", "sqlite://{0}/a"),
    *("sqlite:///{0}/a", "x({0})", "x[{0}]", "<{0}>", "{0}|{0}/a|{0}", "x@{0}/a", "`{0}`"),
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FOLDERS)
def test_the_place_of_the_whole_project_does_not_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    found = []
    for place in ("one", "another/place"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("", encoding="utf-8")
        monkeypatch.chdir(folder)
        found.append(identity_of(changed(Settings(), name, named(name, form.format(folder)))))
    assert found[0] == found[1]


def test_a_linked_folder_counts_by_its_content(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text(name, encoding="utf-8")
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "itself").symlink_to(whole, target_is_directory=True)
    found = []
    for name in ("first", "second", "first"):
        (whole / "current").symlink_to(tmp_path / name, target_is_directory=True)
        found.append(content_of(whole))
        (whole / "current").unlink()
    assert found[0] == found[2] != found[1]


#: A list of files in a key -> the names of the files, of which the first changes.
LISTS = {
    "{0},{1}": ("one.txt", "two.txt"),
    "{1}, {0}": ("my one.txt", "two.txt"),
    "{0} {1}": ("one.txt", "two.txt"),
    "{0};{1}": ("my one,two.txt", "two.txt"),
    "{0}:{1}": ("my one;two.txt", "two.txt"),
    "{0},{1}, ": ("o:ne.txt", "two.txt"),
    "'{1}' '{0}'": ("one.txt", "two.txt"),
    '"{1}", "{0}"': ("my one.txt", "two.txt"),
    "file://{0}": ("one.txt", "two.txt"),
}


@pytest.mark.parametrize("form", LISTS)
def test_each_file_of_a_key_counts_by_its_content(tmp_path: Path, form: str) -> None:
    files = [tmp_path / name for name in LISTS[form]]
    for file in files:
        file.write_text("first", encoding="utf-8")
    text = form.replace(":", os.pathsep, 1) if "//" not in form else form
    settings = Settings().replace_options(tracker=named("tracker", text.format(*files)))
    before = identity_of(settings)
    files[0].write_text("second", encoding="utf-8")
    assert identity_of(settings) != before


#: Keys with the bare names of the folders "a" and "b", or the first of them.
BARE = ("a", "a,b", "b, a", "a b", "a;b", "a{0}b", "'a','b'", "a,b,", "b\na", "file:a", "b,file:a")


@pytest.mark.parametrize("form", BARE)
def test_each_folder_of_a_key_counts_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.txt").write_text("first", encoding="utf-8")
    settings = Settings().replace_options(tracker=named("tracker", form.format(os.pathsep)))
    before = identity_of(settings)
    assert identity_of(settings) == before
    (tmp_path / "a" / "rules.txt").write_text("second", encoding="utf-8")
    assert identity_of(settings) != before


#: Names of searches with an argument -> the file that changes, in a folder ``a`` or a file ``b``.
ARGUMENTS = {
    "a folder": ("own:a", "a/one.txt"),
    "a folder in a folder": ("own:a/deep", "a/deep/two.txt"),
    "a link to a folder": ("own:link", "a/one.txt"),
    "a new file": ("own:a", "a/new.txt"),
    "a file and a number": ("own:b.txt:7", "b.txt"),
    "the second of two files": ("own:a/one.txt+b.txt", "b.txt"),
    "a file after a key": ("own:{rules=b.txt}", "b.txt"),
    "a name with separators": ("own:3@my b+c.txt", "my b+c.txt"),
    "an absolute path": ("own:{0}/a:7", "a/one.txt"),
    "with the noise models": ("noise+own:a", "a/one.txt"),
}


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "deep").mkdir(parents=True)
    for name in ("a/one.txt", "a/deep/two.txt", "b.txt", "my b+c.txt"):
        (tmp_path / name).write_text("first", encoding="utf-8")
    (tmp_path / "link").symlink_to("a", target_is_directory=True)
    return tmp_path


@pytest.mark.parametrize(("search", "changed_file"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_all_files_that_the_argument_of_a_search_names_decide(
    own_files: Path,
    manifest: RunManifest,
    monkeypatch: pytest.MonkeyPatch,
    search: str,
    changed_file: str,
) -> None:
    settings = changed(Settings(), "search", search.replace("{0}", str(own_files)))

    def found() -> tuple[dict[str, Any], str]:
        return identity_of(settings), cell_of(settings, monkeypatch)

    first = found()
    assert found() == first
    (own_files / changed_file).write_text("second", encoding="utf-8")
    second = found()
    assert [one == other for one, other in zip(first, second, strict=True)] == [False, False]
    before, after = (
        replace(manifest, decided={**manifest.decided, **one}) for one, _ in (first, second)
    )
    assert "search" in before.differing(after)


def test_a_folder_that_an_argument_does_not_name_does_not_decide(own_files: Path) -> None:
    (own_files / "a-b").mkdir()
    given = [changed(Settings(), "search", text) for text in ("own:a-b", "own:.", "own:c:3")]
    before = list(map(identity_of, given))
    (own_files / "a" / "one.txt").write_text("second", encoding="utf-8")
    assert list(map(identity_of, given)) == before


FAMILY = """
from pytest_dstfuzz.search.protocol import SearchFamily, TrainingRecord
from pytest_dstfuzz.search.searches import RandomSearch
class Own(RandomSearch):
    name = "own"
class Owns(SearchFamily):
    forms = ("own:PATH",)
    def make(self, name, *, seed, k):
        return Own(seed, k)
    def find_training(self, name):
        return TrainingRecord("rule", "f", "bot", "data", (), "natural", 0, 1, code="c")
OWNS = Owns()
"""


@pytest.mark.parametrize("changed_file", ["ownfamily.py", "a/one.txt", "b.txt"])
def test_results_of_a_trained_search_are_not_kept_after_a_change(
    own_files: Path, monkeypatch: pytest.MonkeyPatch, changed_file: str
) -> None:
    """The record of a training is what its author says, so it may stay the same."""
    (own_files / "ownfamily.py").write_text(FAMILY, encoding="utf-8")
    monkeypatch.syspath_prepend(own_files)
    monkeypatch.setattr(SEARCHES, "_registered", {})
    name = "own:a+b.txt"
    settings = changed(Settings(), "search", name)
    data = load_dialogues("sample", "test")
    cache = PredictionCache(Store(own_files / "cache", 1_000_000), b"")

    def found() -> tuple[str, dict[str, str]]:
        monkeypatch.delitem(sys.modules, "ownfamily", raising=False)
        register_search("own", load_attribute("ownfamily:OWNS", (), "search"))
        rules = CampaignSpec.of(settings.variant, data, load_lexicon())
        kept = open_result_cache(cache, settings, replace(rules, repeats=True), load_lexicon())
        assert kept is not None
        return kept._scope, code_of_rules(settings, ())

    first = found()
    assert found() == first
    with (own_files / changed_file).open("a", encoding="utf-8") as file:
        file.write("\nOTHER = 1\n")
    assert [one == other for one, other in zip(first, found(), strict=True)] == [False, False]
    monkeypatch.delitem(sys.modules, "ownfamily")


@pytest.mark.parametrize(
    ("model", "changed_file"),
    [
        ("mine://a", "a/one.txt"),
        ("mine://a/one.txt?rules=b.txt", "b.txt"),
        ("mine://localhost/?rules={0}/a%2Fone.txt", "a/one.txt"),
    ],
)
def test_the_files_of_an_address_of_a_users_scheme_decide(
    own_files: Path, model: str, changed_file: str
) -> None:
    settings = Settings.of(model=model.replace("{0}", str(own_files)))
    before = identity_of(settings)
    assert identity_of(settings) == before
    (own_files / changed_file).write_text("second", encoding="utf-8")
    assert identity_of(settings)["model"] != before["model"]


def test_the_address_of_a_service_names_no_file(own_files: Path) -> None:
    settings = Settings.of(model="http://localhost:80/?a=a")
    before = identity_of(settings)
    (own_files / "a" / "one.txt").write_text("second", encoding="utf-8")
    assert identity_of(settings) == before


def test_an_empty_folder_in_a_folder_counts(own_files: Path) -> None:
    settings = Settings.of(tracker="rules=a")
    found = [identity_of(settings)]
    for name in ("empty", "empty/another"):
        (own_files / "a" / name).mkdir()
        found.append(identity_of(settings))
    (own_files / "a" / "broken").symlink_to("nothing")
    found.append(identity_of(settings))
    assert all(one != other for one, other in itertools.combinations(found, 2))


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no shared memory")  # noqa: S108
def test_a_file_in_shared_memory_counts() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = Path(folder) / "rules.txt"
        given = [Settings.of(tracker=f"rules={path}") for path in (file, folder)]
        file.write_text("first", encoding="utf-8")
        before = list(map(identity_of, given))
        file.write_text("second", encoding="utf-8")
        after = list(map(identity_of, given))
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False]


@pytest.mark.parametrize("given", [{"tracker": "rules={0}/a"}, {"search": "own:{0}/a:7"}])
@pytest.mark.parametrize("limit", ["_FILES_AT_HOME", "_BYTES_AT_HOME"])
def test_a_home_folder_counts_or_lets_no_result_be_used_again(
    own_files: Path,
    manifest: RunManifest,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    limit: str,
) -> None:
    (own_files / "work").mkdir()
    monkeypatch.chdir(own_files / "work")
    monkeypatch.setenv("HOME", str(own_files / "a"))
    ((name, text),) = given.items()
    settings = Settings().replace_options(
        **{name: named(name, text.replace("{0}", str(own_files)).removeprefix("rules="))}
    )
    before = identity_of(settings)
    assert identity_of(settings) == before
    (own_files / "a" / "one.txt").write_text("second", encoding="utf-8")
    assert identity_of(settings) != before
    # Now it is too large.
    monkeypatch.setattr(identity, limit, 1)
    found = []
    for number in range(2):
        monkeypatch.setattr(identity, "_UNKNOWN", f"{identity.TOO_LARGE} of process {number}")
        found.append(identity_of(settings))
        assert identity_of(settings) == found[-1]
    one, other = (replace(manifest, decided={**manifest.decided, **each}) for each in found)
    with pytest.raises(UserError, match=f"{name}: .*too many files"):
        one.refuse_another(other, own_files)


def test_a_word_of_a_text_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    settings = Settings().replace_options(tracker=named("tracker", "say please, read docs"))
    before = identity_of(settings)
    (tmp_path / "docs" / "new.md").write_text("new", encoding="utf-8")
    assert identity_of(settings) == before


#: When a bot's file changes -> the text that it has for the next run.
CHANGES = {"never": "north", "while it loads": "south", "while it answers": "north"}


@pytest.mark.parametrize("outcome", ["state", "reply", "tool-calls"])
@pytest.mark.parametrize("when", CHANGES)
def test_results_are_not_continued_if_a_file_of_a_key_changes_during_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, outcome: OutcomeKind
) -> None:
    file = tmp_path / "area.txt"

    def create(path: str) -> object:
        area = Path(path).read_text(encoding="utf-8")
        if when == "while it loads":
            file.write_text("south", encoding="utf-8")

        def answer(_: object) -> Any:
            if when == "while it answers":
                file.write_text("south", encoding="utf-8")
            return f"It is {area}." if outcome == "reply" else {"hotel-area": area}

        def call(messages: object, _: object) -> Any:
            return [{"name": "book", "arguments": answer(messages)}]

        return call if outcome == "tool-calls" else answer

    monkeypatch.setattr(TRACKERS, "_registered", {})
    register_tracker("filed", create)
    paths = write_read_files(tmp_path)
    needed = {"state": (), "reply": ("data",), "tool-calls": ("data", "tools")}[outcome]
    given: dict[str, Any] = {name: paths[name] for name in needed}
    given |= {"outcome": outcome, "model": "filed", "tracker": f"path={file}"}
    settings = Settings.of(turns=4, variants=1, search="random", repeatable=True, **given)

    def run() -> ResultFolder:
        campaign = Campaign("filed", settings=settings)
        return run_into(campaign, tmp_path / "run", lambda *_: None)

    file.write_text("north", encoding="utf-8")
    first = run()
    file.write_text(CHANGES[when], encoding="utf-8")
    noted = [note for note in first.manifest.notes if "two versions" in note]
    if when == "never":
        assert not noted
        assert list(run().results) == list(first.results)
    else:
        assert len(noted) == 1
        assert " tracker " in noted[0]
        with pytest.raises(UserError, match="Differences: tracker"):
            run()


def test_another_option_of_a_factory_is_called_an_option(
    manifest: RunManifest, tmp_path: Path
) -> None:
    of_factory = "the options of the tracker's factory"
    decided = {**manifest.decided, "code": {"the tracker": "a"}, of_factory: {"batch_size": "64"}}
    first = replace(manifest, decided=decided)
    second = replace(manifest, decided={**decided, of_factory: {"batch_size": "7"}})
    with pytest.raises(UserError, match="option") as told:
        first.refuse_another(second, tmp_path)
    assert "batch_size" in str(told.value)
    assert "the code of" not in str(told.value)
    third = replace(manifest, decided={**decided, "code": {"the tracker": "b"}})
    with pytest.raises(UserError, match="the code of the tracker"):
        first.refuse_another(third, tmp_path)


def test_options_that_reach_a_factory_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(timeout: float = 1.0) -> object:
        return lambda _: {"hotel-name": str(timeout)}

    monkeypatch.setattr(TRACKERS, "_registered", {})
    register_tracker("timed", create)
    one, other, same = (
        Campaign("timed", settings=Settings.of(model="timed", turns=2, **more)).identity
        for more in ({"timeout": 5}, {"timeout": 6}, {"timeout": 5, "retries": 1})
    )
    assert one == same != other


def test_options_that_reach_the_maker_of_a_package_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    class Beams(TrackerMaker):
        def __call__(self, batch_size: int = 64) -> object:
            return lambda _: {"hotel-name": str(batch_size)}

    monkeypatch.setattr(TRACKERS, "_registered", {})
    register_tracker("beams", Beams())
    one, other = (
        factory_options_of(Settings.of(model="beams", batch_size=size).tracker) for size in (64, 7)
    )
    assert one != other
    assert not factory_options_of(Settings.of(model="trade", batch_size=7).tracker)


def test_a_key_that_names_the_working_directory_counts_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [Settings.of(tracker=f"root={text}") for text in (".", "..", "/")]
    found = []
    for name in ("one", "two"):
        (tmp_path / name).write_text("", encoding="utf-8")
        found.append([identity_of(settings) for settings in given])
    assert found[0] == found[1]


@pytest.mark.parametrize("text", ["a" * 400, "see /proc for more", "costs ~ 5", "/proc/self", "\0"])
def test_a_key_may_be_any_text(text: str) -> None:
    one, other = (identity_of(Settings.of(tracker=(OwnKey("k", text),))) for _ in range(2))
    assert one == other


def test_a_file_that_cannot_be_read_shows_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> str:
        raise DataError(f"cannot read {path}")

    path = tmp_path / "rules.txt"
    path.write_text("", encoding="utf-8")
    monkeypatch.setattr("pytest_dstfuzz.config.identity.content_of", refuse)
    assert "unreadable" in str(identity_of(Settings.of(tracker=f"conf={path}"))["tracker"])


def test_every_path_is_one_of_those() -> None:
    paths = {item.name for item in DECIDING if {"path", "content"} & set(item.scopes)}
    assert paths | {"tracker"} == set(FILES)


SECRETS: dict[str, Callable[[str], Settings]] = {
    "model": lambda secret: Settings.of(model=f"http://host/track?deployment={secret}"),
    "password": lambda secret: Settings.of(model=f"http://me:{secret}@host/track"),
    "header": lambda secret: Settings.of(header=f"X-Key: {secret}"),
    "tracker": lambda secret: Settings.of(tracker=f"key={secret}"),
    "judge": lambda secret: Settings.of(
        outcome="reply", compare=f"judge:openai+http://u:{secret}@host/v1"
    ),
}


@pytest.mark.parametrize("made", SECRETS.values(), ids=SECRETS)
def test_a_secret_decides_and_is_not_shown(
    manifest: RunManifest, tmp_path: Path, made: Callable[[str], Settings]
) -> None:
    one, other = made("rosebud-one"), made("rosebud-two")
    told = refused(manifest, one, other, tmp_path)
    assert "differ" in told.lower()
    written = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    assert "rosebud" not in told + written + repr(identity_of(one))


@pytest.mark.parametrize(
    ("variable", "given"),
    [
        ("DSTFUZZ_TOKEN", {"model": "http://host/track"}),
        # A bot in Python may read it, too.
        ("DSTFUZZ_TOKEN", {"model": "my_bot:track"}),
        ("DSTFUZZ_TOKEN", {"model": "mine"}),
        ("DSTFUZZ_TOKEN", {}),
        ("DSTFUZZ_JUDGE_TOKEN", {"outcome": "reply", "compare": "judge:openai+http://host/v1"}),
        ("BOT_TEAM", {"header": "X-Team: $BOT_TEAM"}),
        ("BOT_TEAM", {"tracker": "team=$BOT_TEAM"}),
    ],
)
def test_a_variable_of_the_environment_decides(
    monkeypatch: pytest.MonkeyPatch, variable: str, given: dict[str, str]
) -> None:
    settings = Settings.of(**given)
    found = []
    for value in ("first", "second"):
        monkeypatch.setenv(variable, value)
        found.append(identity_of(settings))
    assert found[0] != found[1]
    assert "second" not in repr(found)


def test_the_token_of_a_judge_does_not_count_without_a_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = identity_of(Settings.of(model="my_bot:track"))
    monkeypatch.setenv("DSTFUZZ_JUDGE_TOKEN", "first")
    assert identity_of(Settings.of(model="my_bot:track")) == before


AXES = {
    "model": ('["http://host/?deployment=rosebud1", "http://host/?deployment=rosebud2"]', ""),
    "header": ('["X-Key: rosebud1", "X-Key: rosebud2"]', 'model = "http://host/"\n'),
    "prompt": ('["a/prompt.txt", "b/prompt.txt"]', 'model = "openai+http://host/v1"\n'),
}


@pytest.mark.parametrize("axis", AXES)
def test_cells_of_a_sweep_share_no_folder_and_show_no_secret(tmp_path: Path, axis: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prompt.txt").write_text(f"You are {name}.", encoding="utf-8")
    values, fixed = AXES[axis]
    file = tmp_path / "sweep.toml"
    file.write_text(f"[settings]\n{fixed}[axes]\n{axis} = {values}\n", encoding="utf-8")
    plan = read_sweep(file)
    names = [cell.name for cell in plan.cells]
    assert len(set(names)) == len({*plan.axes[axis]}) == 2
    assert "rosebud" not in repr([names, plan.axes, [cell.values for cell in plan.cells]])
    (tmp_path / "a" / "prompt.txt").write_text("You are another.", encoding="utf-8")
    again = [cell.name for cell in read_sweep(file).cells]
    assert [one == other for one, other in zip(names, again, strict=True)] == [
        axis != "prompt",
        True,
    ]


#: The files of a bot, each with something that decides an answer.
BOT_FILES = {
    "bot.py": "import functools\nfrom parent import Parent\nfrom wrap import strict\n"
    "import words.first\nclass Bot(Parent):\n    pass\nbot = Bot(3)\n"
    "@strict\ndef track(context):\n    from later import late\n    return late()\n"
    "some = functools.partial(track, size=3)\n",
    "parent.py": "class Parent:\n    def __init__(self, size):\n        self.size = size\n",
    "wrap.py": "import functools\ndef strict(function):\n    @functools.wraps(function)\n"
    "    def inner(*given):\n        return function(*given)\n    return inner\n",
    "words/__init__.py": "from . import second\n",
    "words/first.py": "from .deep.third import WORD\n",
    "words/second.py": "WORD = 2\n",
    "words/deep/__init__.py": "",
    "words/deep/third.py": "WORD = 3\n",
    "later.py": "def late():\n    return {}\n",
}


@pytest.mark.parametrize("changed_file", BOT_FILES)
@pytest.mark.parametrize("name", ["bot", "track", "some"])
def test_each_file_of_the_users_code_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, changed_file: str
) -> None:
    for file, text in BOT_FILES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "unrelated.py").write_text("", encoding="utf-8")
    found = []
    for text in ("", "\nOTHER = 1\n"):
        with (tmp_path / changed_file).open("a", encoding="utf-8") as out:
            out.write(text)
        for module in [*sys.modules]:
            if module.partition(".")[0] in ("bot", "parent", "wrap", "words", "later"):
                monkeypatch.delitem(sys.modules, module)
        thing = load_attribute(f"bot:{name}", (), "tracker")
        (tmp_path / "unrelated.py").write_text(text, encoding="utf-8")
        found.append(code_of(thing, f"bot:{name}"))
    assert all(found)
    assert found[0] != found[1]


def test_code_is_known_by_its_own_files_alone() -> None:
    assert code_of(heard)
    assert code_of(load_lexicon()) == code_of(json.loads) == ""
    assert code_of(heard) == code_of(heard)
    assert is_own_function("mine.rules:same")
    assert not is_own_function("embedding:minilm")


@pytest.mark.parametrize(
    "given",
    [
        {"arguments": ("hotel-area=samerule:same",)},
        {"outcome": "reply", "compare": "samerule:same"},
    ],
    ids=["arguments", "compare"],
)
def test_the_code_of_a_function_of_an_option_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "samerule.py"
    found = []
    for result in ("True", "False"):
        monkeypatch.delitem(sys.modules, "samerule", raising=False)
        file.write_text(f"def same(one, other):\n    return {result}\n", encoding="utf-8")
        settings = Settings.of(turns=4, search="random", **given)
        campaign = Campaign(lambda _: {}, settings=settings)
        found.append(manifest_of(campaign))
    monkeypatch.delitem(sys.modules, "samerule")
    assert found[0].differing(found[1])
    open_folder(tmp_path / "run", found[0]).close()
    with pytest.raises(UserError, match="samerule:same"):
        open_folder(tmp_path / "run", found[1])


#: A function of an option, and what changes behind it.
OWN_RULES: dict[str, dict[str, Any]] = {
    "rule": {"outcome": "tool-calls", "arguments": {"book.people": "rulebook:same"}},
    "comparison": {"outcome": "reply", "compare": "rulebook:same"},
}


@pytest.mark.parametrize("changed_file", ["rulebook.py", "rulehelp.py"])
@pytest.mark.parametrize("given", OWN_RULES.values(), ids=OWN_RULES)
def test_a_baseline_knows_all_code_of_a_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], changed_file: str
) -> None:
    texts = {
        "rulebook.py": "from rulehelp import LIMIT\n"
        "def near(one, other):\n    return one == other\n"
        "def same(one, other):\n    return near(one, other) or LIMIT > 1\n",
        "rulehelp.py": "LIMIT = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    data = DialogueSet("none", "test", ())
    settings = Settings.of(**given)
    found = []
    for more in ("", "", "# now lenient\n"):
        for name in ("rulebook", "rulehelp"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        with (tmp_path / changed_file).open("a", encoding="utf-8") as out:
            out.write(more)
        judges = Judges()
        comparison = (
            comparison_of_calls(data, settings.reply)
            if settings.reply.outcome == "tool-calls"
            else as_comparison("rulebook:same", "here", settings.reply, judges)
        )
        told = {"lexicon": "", "policy": "", "noise": ""}
        compared = [comparison.identity]
        found.append(campaign_identity(settings, data, **told, compared=compared))
    monkeypatch.delitem(sys.modules, "rulebook")
    assert not changes(found[0], found[1])
    assert changes(found[1], found[2])


@pytest.mark.parametrize("option", ["context_checks", "perturbations"])
def test_a_baseline_knows_how_contexts_are_perturbed(option: str) -> None:
    other = {"context_checks": ("topic",), "perturbations": ("DRS",)}[option]
    found = [
        campaign_identity(
            changed(Settings.of(outcome="reply"), option, value) if value else Settings(),
            DialogueSet("none", "test", ()),
            lexicon="",
            policy="",
            noise="",
        )
        for value in (None, other)
    ]
    for one, two in (found, reversed(found)):
        assert any(option.replace("_", "-") in text for text in changes(one, two))
    assert not changes(found[1], found[1])


def test_a_hardened_bot_is_resumed_only_with_the_same_plugin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = Campaign(heard, settings=Settings.of(turns=2, search="random"))
    before = _bot_digest(campaign)
    assert before == _bot_digest(campaign)
    monkeypatch.setattr(engine, "digest_of_package", lambda: "of the same version")
    assert before != _bot_digest(campaign)


def test_an_address_of_a_file_in_the_working_folder_counts_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for text in ("a", "a", "b"):
        (tmp_path / "w.txt").write_text(text, encoding="utf-8")
        found.append(content_named_in(f"file://{tmp_path}/w.txt"))
    assert found[0] == found[1] != found[2]
