"""Results on disk: what is written comes back, in the order of the data, after any interruption."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dstfuzz import (
    BeliefState,
    Campaign,
    Context,
    Dialogue,
    DialogueSet,
    Settings,
    Turn,
    UserError,
)
from pytest_dstfuzz.campaign import engine
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.errors import DataError
from pytest_dstfuzz.scale import runs, stored
from pytest_dstfuzz.scale.manifest import AnotherRunError
from pytest_dstfuzz.scale.results import DialogueResults, EncodedResults, ResultFolder
from pytest_dstfuzz.scale.runs import CHECKED_TURNS, _sample_contexts, blocks_of, run_into
from pytest_dstfuzz.scale.stored import FolderRun

SETTINGS = Settings.of(variants=3, turns=40, relation="metamorphic,negation")
WORDS = {"cheap": "restaurant-pricerange", "north": "hotel-area", "centre": "restaurant-area"}


def heard(context: Context) -> BeliefState:
    """Fill a slot for each word that was said, so that a typing error empties it."""
    said = " ".join(context.user_utterances).lower().split()
    return BeliefState({slot: word for word, slot in WORDS.items() if word in said})


def quiet(done: int, total: int) -> None:
    """Show nothing."""
    assert 0 < done <= total


def campaign(tracker: Callable[[Context], BeliefState] = heard, **options: object) -> Campaign:
    return Campaign(tracker, settings=SETTINGS.replace_options(**options))


@pytest.fixture(scope="module")
def whole() -> Campaign:
    found = campaign()
    results = tuple(found)  # All of it: the first violation may come early.
    assert any(result.violations for result in results)
    return found


def in_order(results: tuple[TurnResult, ...]) -> list[TurnResult]:
    place = {result.dialogue_id: number for number, result in enumerate(reversed(results))}
    relation = {"metamorphic": 0, "negation": 1}
    return sorted(
        results, key=lambda it: (-place[it.dialogue_id], it.turn_index, relation[it.relation])
    )


def test_what_is_written_comes_back(whole: Campaign, tmp_path: Path) -> None:
    run_into(campaign(), tmp_path / "run", quiet)
    folder = ResultFolder.open(tmp_path / "run")
    assert folder.complete
    found = folder.results
    assert len(found) == len(whole) == len(list(found))
    assert list(found) == in_order(whole.results)
    assert list(found.of("negation")) == [one for one in found if one.relation == "negation"]
    assert [one.to_json() for one in found] == [one.to_json() for one in in_order(whole.results)]


@pytest.mark.parametrize("calls", [1, 60, 130])
def test_a_run_goes_on(whole: Campaign, tmp_path: Path, calls: int) -> None:
    asked = 0

    def tired(context: Context) -> BeliefState:
        nonlocal asked
        asked += 1
        if asked > calls + 40:  # The preflight asks, too.
            raise KeyboardInterrupt
        return heard(context)

    with pytest.raises(KeyboardInterrupt):
        run_into(campaign(tired), tmp_path / "run", quiet)
    half = ResultFolder.open(tmp_path / "run")
    assert half.manifest.ended == "interrupted"
    kept = len(half)
    assert kept < half.manifest.planned
    folder = run_into(campaign(), tmp_path / "run", quiet)
    assert list(folder.results) == in_order(whole.results)
    assert len(folder.results) == len(whole) > kept


def test_a_line_that_was_cut_off_is_asked_for_again(whole: Campaign, tmp_path: Path) -> None:
    run_into(campaign(), tmp_path / "run", quiet)
    part = tmp_path / "run" / "results-0001.jsonl"
    content = part.read_bytes()
    for cut in (1, 2_000, len(content) - 5):
        part.write_bytes(content[:-cut])
        run_into(campaign(), tmp_path / "run", quiet)
        assert list(ResultFolder.open(tmp_path / "run").results) == in_order(whole.results)


def test_another_run_is_refused(tmp_path: Path) -> None:
    run_into(campaign(), tmp_path / "run", quiet)
    with pytest.raises(UserError, match="seed was 0 and is 7"):
        run_into(
            Campaign(heard, settings=SETTINGS.replace_options(seed=7)), tmp_path / "run", quiet
        )


def test_files_of_two_runs_are_told_apart(tmp_path: Path) -> None:
    run_into(campaign(), tmp_path / "one", quiet)
    other = Campaign(heard, settings=SETTINGS.replace_options(seed=7))
    run_into(other, tmp_path / "other", quiet)
    shutil.copy(tmp_path / "one" / "run.json", tmp_path / "other")
    with pytest.raises(DataError, match=r"results-0001.jsonl, byte 0: a result of another run"):
        run_into(campaign(), tmp_path / "other", quiet)


def test_another_plugin_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_into(campaign(), tmp_path / "run", quiet)
    monkeypatch.setattr(runs, "digest_of_package", lambda: "of the same version")
    with pytest.raises(UserError, match="the code of pytest-dstfuzz differs"):
        run_into(campaign(), tmp_path / "run", quiet)


@pytest.mark.parametrize("name", ["a.py", "chat/a.jinja", "resources/a.npz", "resources/a.tsv"])
def test_each_file_of_the_plugin_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(engine, "__file__", str(tmp_path / "campaign" / "engine.py"))
    found = []
    for text in ("first", "first", "second"):
        for file in (name, "chat/b.py"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chat" / "b.py").write_text("")
        (tmp_path / name).write_text(text)
        cached = tmp_path / "chat" / "__pycache__" / "b.cpython.pyc"
        cached.parent.mkdir(exist_ok=True)
        cached.write_text(str(len(found)))
        found.append(engine.digest_of_package.__wrapped__())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    "name",
    [
        *(".cache/a/b/c.py", "chat/__pycache__/deep/er/a.py", "chat/.a.py.swp"),
        *("a.py~", "chat/a.py.orig", "chat/a.py.rej", "a.swp", "a.pyc"),
    ],
)
def test_a_file_of_an_editor_or_a_cache_does_not_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    package = tmp_path / ".hidden" / "package"
    monkeypatch.setattr(engine, "__file__", str(package / "campaign" / "engine.py"))
    (package / name).parent.mkdir(parents=True, exist_ok=True)
    (package / "b.py").write_text("")
    before = engine.digest_of_package.__wrapped__()
    (package / name).write_text("text")
    assert engine.digest_of_package.__wrapped__() == before is not None


def test_the_results_of_another_plugin_are_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_into(campaign(), tmp_path / "run", quiet)
    assert [*FolderRun(tmp_path / "run").results()]
    monkeypatch.setattr(stored, "digest_of_package", lambda: "of the same version")
    with pytest.raises(UserError, match="other code of pytest-dstfuzz"):
        FolderRun(tmp_path / "run").results()


def test_what_a_budget_left_out_is_compared_later(tmp_path: Path) -> None:
    wanted = "north"

    def noted(_: Context) -> BeliefState:
        return BeliefState({"hotel-area": wanted})

    little = Campaign(noted, settings=SETTINGS.replace_options(max_calls=1))
    run_into(little, tmp_path / "run", quiet)
    run_into(campaign(noted), tmp_path / "run", quiet)
    wanted = "south"  # No code and no file has changed.
    with pytest.raises(UserError, match="answers 16 of 16"):
        run_into(campaign(noted), tmp_path / "run", quiet)


def test_what_a_kill_leaves_is_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".run.json.{'0' * 32}.tmp").write_text("{", encoding="utf-8")
    assert run_into(campaign(), tmp_path / "run", quiet).complete


@pytest.mark.parametrize("seed", [None, 7])
def test_a_folder_that_was_taken_away_is_told(tmp_path: Path, seed: int | None) -> None:
    taken = False

    def taking(context: Context) -> BeliefState:
        nonlocal taken
        if not taken and (tmp_path / "run" / "results-0001.jsonl").exists():
            taken = True
            shutil.rmtree(tmp_path / "run")
            if seed is not None:
                other = Campaign(heard, settings=SETTINGS.replace_options(seed=seed))
                run_into(other, tmp_path / "run", quiet)
        return heard(context)

    with pytest.raises(UserError, match="was removed or replaced while this run wrote"):
        run_into(campaign(taking), tmp_path / "run", quiet)
    assert ResultFolder.is_one(tmp_path / "run") == (seed is not None)


def test_what_is_no_folder_of_results_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder of results"):
        ResultFolder.open(tmp_path / "none")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="name a folder of its own"):
        run_into(campaign(), tmp_path / "other", quiet)
    run_into(campaign(), tmp_path / "run", quiet)
    (tmp_path / "run" / "results-0001.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"results-0001.jsonl, byte 0: not a line of results"):
        ResultFolder.open(tmp_path / "run")


@given(st.integers(1, 400))
def test_blocks_hold_the_plan_in_its_order(turns: int) -> None:
    plan = campaign().plan
    blocks = list(blocks_of(plan, turns))
    together = [one for block in blocks for one in block]
    assert [one.place for one in together] == list(range(len(plan)))
    assert [one.planned for one in together] == list(plan)
    for block in blocks[:-1]:
        assert sum(one.planned[1] + 1 for one in block[:-1]) < turns


def test_twice_the_turns_take_twice_the_room() -> None:
    def size(turns: int) -> int:
        said = (
            Turn(n, "Is there more?", f"A cheap room for guest {n} please") for n in range(turns)
        )
        data = DialogueSet("inn", "test", (Dialogue("one", tuple(said)),))
        found = Campaign(heard, data, Settings.of(variants=3, turns="all"))
        return len(EncodedResults.of(DialogueResults(0, "metamorphic", tuple(found))).text)

    assert size(20) <= 2.3 * size(10)


def test_failed_turns_are_asked_again_when_the_run_goes_on(whole: Campaign, tmp_path: Path) -> None:
    down = True

    def shaky(context: Context) -> BeliefState:
        if down and len(context.user) % 5 == 0:
            raise RuntimeError("the bot is down")
        return heard(context)

    first = run_into(campaign(shaky), tmp_path / "run", quiet)
    assert first.complete
    assert any(one.outcome == "error" for one in first.results)
    down = False
    run_into(campaign(shaky), tmp_path / "run", quiet)
    assert list(ResultFolder.open(tmp_path / "run").results) == in_order(whole.results)
    again = run_into(campaign(shaky), tmp_path / "run", quiet)
    assert again.manifest.asked == again.asked_before + CHECKED_TURNS


def test_a_bot_that_answers_otherwise_is_another_run(tmp_path: Path) -> None:
    words = dict(WORDS)

    def noted(context: Context) -> BeliefState:
        said = " ".join(context.user_utterances).lower().split()
        return BeliefState({slot: word for word, slot in words.items() if word in said})

    first = run_into(campaign(noted), tmp_path / "run", quiet)
    words["north"] = "attraction-area"  # No code and no file has changed.
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(UserError, match="another bot"):
        run_into(campaign(noted), tmp_path / "run", quiet)
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    words["north"] = WORDS["north"]
    assert len(run_into(campaign(noted), tmp_path / "run", quiet)) == len(first)


#: Which of the turns a bot fails on -> whether a later call refuses the folder.
FAILING = {"all": True, "most": True, "some": False}


@pytest.mark.parametrize("partly", [False, True], ids=["done", "begun"])
@pytest.mark.parametrize("which", FAILING)
def test_a_bot_that_fails_now_is_not_taken_for_the_same(
    tmp_path: Path, which: str, *, partly: bool
) -> None:
    down = ""
    fails = {"": 0, "some": 4, "most": 12, "all": 16}

    def bot(context: Context) -> BeliefState:
        if down and context in checked[: fails[down]]:
            raise OSError("nobody is there")
        return heard(context)

    few = campaign(bot, **{"max_calls": 40} if partly else {})
    checked = _sample_contexts(few)
    assert len(checked) == CHECKED_TURNS
    first = run_into(few, tmp_path / "run", quiet)
    assert first.complete is not partly
    before, results = (tmp_path / "run" / "run.json").read_bytes(), list(first.results)
    down = which
    if FAILING[which]:
        with pytest.raises(AnotherRunError, match="nobody is there"):
            run_into(campaign(bot), tmp_path / "run", quiet)
        assert (tmp_path / "run" / "run.json").read_bytes() == before
        assert list(ResultFolder.open(tmp_path / "run").results) == results
    else:
        folder = run_into(campaign(bot), tmp_path / "run", quiet)
        told = [note for note in folder.manifest.notes if "4 of 16" in note]
        assert len(told) == 1
        assert "nobody is there" in told[0]
    # When the bot answers again, the run continues without a note.
    down = ""
    folder = run_into(campaign(bot), tmp_path / "run", quiet)
    assert folder.complete
    assert not [note for note in folder.manifest.notes if "nobody" in note]


def test_a_failure_on_a_checked_turn_is_kept_back_from_redacted_runs(tmp_path: Path) -> None:
    down, checked = False, _sample_contexts(campaign())

    def bot(context: Context) -> BeliefState:
        if down and context == checked[3]:
            raise OSError(f"cannot read {context.user}")
        return heard(context)

    run_into(campaign(bot, redact=True), tmp_path / "run", quiet)
    down = True
    folder = run_into(campaign(bot, redact=True), tmp_path / "run", quiet)
    told = [note for note in folder.manifest.notes if "1 of 16" in note]
    assert len(told) == 1
    assert "cannot read" not in told[0]


def test_a_bot_that_varies_goes_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def varying(context: Context) -> BeliefState:
        state = {**heard(context), "hotel-stars": str(rng.integers(100))}
        return BeliefState(state)

    few = Settings.of(variants=1, turns=6, repeatable=False)
    run_into(Campaign(varying, settings=few), tmp_path / "run", quiet)
    assert run_into(Campaign(varying, settings=few), tmp_path / "run", quiet).complete


def test_a_fingerprint_stands_for_the_answers(tmp_path: Path) -> None:
    def named(context: Context) -> BeliefState:
        return heard(context)

    named.fingerprint = "rules of today"  # type: ignore[attr-defined] - as users set it
    run_into(campaign(named), tmp_path / "run", quiet)
    again = run_into(campaign(named), tmp_path / "run", quiet)
    assert again.manifest.asked == again.asked_before


def test_two_runs_at_once_do_not_share_a_folder(tmp_path: Path) -> None:
    told: list[str] = []

    def asking(context: Context) -> BeliefState:
        if not told:
            with pytest.raises(UserError, match="another process") as refused:
                run_into(campaign(), tmp_path / "run", quiet)
            told.append(str(refused.value))
        return heard(context)

    folder = run_into(campaign(asking), tmp_path / "run", quiet)
    assert folder.complete
    assert told


Change = Callable[[DialogueSet], DialogueSet]


def each_turn(**values: object) -> Change:
    def change(data: DialogueSet) -> DialogueSet:
        first, *others = data.dialogues
        turns = tuple(replace(turn, **values) for turn in first.turns)  # type: ignore[arg-type]
        return replace(data, dialogues=(replace(first, turns=turns), *others))

    return change


CHANGES: dict[str, Change] = {
    "labels": each_turn(state=BeliefState({"hotel-area": "south"})),
    "calls": each_turn(calls=()),
    "replies": each_turn(answer="We have none."),
    "rewrites": lambda data: replace(data, frozen={"key": ("Another way to say it",)}),
    "words of slots": lambda data: replace(data, slot_phrases={"hotel-area": "part of town"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_other_data_are_another_run(tmp_path: Path, change: Change) -> None:
    turns = (Turn(0, "", "A cheap room please"), Turn(1, "Where?", "In the north please"))
    data = DialogueSet("inn", "test", (Dialogue("one", turns), Dialogue("two", turns[:1])))
    run_into(Campaign(heard, data, SETTINGS), tmp_path / "run", quiet)
    run_into(Campaign(heard, data, SETTINGS), tmp_path / "run", quiet)
    with pytest.raises(UserError, match="data differ"):
        run_into(Campaign(heard, change(data), SETTINGS), tmp_path / "run", quiet)


def test_another_file_of_the_bot_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def bot(context):\n    return {'hotel-area': context.user[:4]}\n"
    file = tmp_path / "changingbot.py"
    file.write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    settings = Settings.of(variants=2, turns=10)
    run_into(Campaign("changingbot:bot", settings=settings), tmp_path / "run", quiet)
    file.write_text(source.replace("4", "5"), encoding="utf-8")
    monkeypatch.delitem(sys.modules, "changingbot")
    with pytest.raises(UserError, match="the code of the tracker differs"):
        run_into(Campaign("changingbot:bot", settings=settings), tmp_path / "run", quiet)
    monkeypatch.delitem(sys.modules, "changingbot")
