"""Parts of a run: each dialogue is in one of them, and put together they are the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz import BeliefState, Campaign, Context, Settings, UserError
from pytest_dstfuzz.dialogue.sampling import in_shard
from pytest_dstfuzz.scale.merge import merge
from pytest_dstfuzz.scale.results import FolderReport, ResultFolder
from pytest_dstfuzz.scale.runs import run_into

SETTINGS = Settings.of(variants=2, turns=60, relation="metamorphic,value-swap")
WORDS = {"cheap": "restaurant-pricerange", "north": "hotel-area", "centre": "restaurant-area"}


def heard(context: Context) -> BeliefState:
    """Fill a slot for each word that was said."""
    said = " ".join(context.user_utterances).lower().split()
    return BeliefState({slot: word for word, slot in WORDS.items() if word in said})


Bot = Callable[[Context], BeliefState]


def ran(path: Path, shard: str = "", bot: Bot = heard, **more: object) -> ResultFolder:
    options = {**more, "shard": shard} if shard else more
    campaign = Campaign(bot, settings=SETTINGS.replace_options(**options))
    return run_into(campaign, path, lambda _done, _total: None, "dstfuzz campaign ...")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ResultFolder:
    return ran(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Sequence[ResultFolder]:
    folder = tmp_path_factory.mktemp("parts")
    return [ran(folder / str(number), f"{number}/3") for number in (1, 2, 3)]


@given(st.lists(st.text(), unique=True), st.integers(1, 40), st.lists(st.text(), unique=True))
def test_a_dialogue_is_of_one_part_and_stays_there(
    names: list[str], count: int, others: list[str]
) -> None:
    def parted(ids: list[str]) -> list[set[str]]:
        shards = [(number, count) for number in range(1, count + 1)]
        return [{name for name in ids if in_shard(name, shard)} for shard in shards]

    found = parted(names)
    assert set().union(*found) == set(names)
    assert sum(map(len, found)) == len(names)
    assert all(one <= more for one, more in zip(found, parted([*names, *others]), strict=True))


@settings(max_examples=10)
@given(st.integers(1, 5), st.integers(0, 3), st.integers(1, 120))
def test_parts_are_those_of_the_drawn_turns(count: int, seed: int, turns: int) -> None:
    drawn = Settings.of(turns=turns, seed=seed)
    every = Campaign(heard, settings=drawn).plan
    found = [
        planned
        for number in range(1, count + 1)
        for planned in Campaign(heard, settings=drawn.replace_options(shard=(number, count))).plan
    ]
    assert sorted((one.id, last) for one, last in found) == sorted(
        (one.id, last) for one, last in every
    )


def test_parts_put_together_are_the_run(
    whole: ResultFolder, parts: Sequence[ResultFolder], tmp_path: Path
) -> None:
    assert all(len(part) < len(whole) for part in parts)
    merged = merge([parts[2], parts[0], parts[1]], tmp_path / "all")
    assert list(merged.results) == list(whole.results)
    ours, theirs = merged.manifest, whole.manifest
    assert replace(ours, seconds=0, asked=0, command="") == replace(
        theirs, seconds=0, asked=0, command=""
    )
    # Merged once more, and in the place of what is there.
    again = merge([merged], tmp_path / "again")
    assert merge([merged], tmp_path / "again").manifest == again.manifest == ours
    assert list(again.results) == list(whole.results)
    assert FolderReport(again).totals.weaknesses == FolderReport(whole).totals.weaknesses
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "all"]


def test_what_is_no_whole_run_is_told(parts: Sequence[ResultFolder], tmp_path: Path) -> None:
    target = tmp_path / "all"
    for folders, text in (
        (parts[:2], r"parts of the run are missing: 3/3"),
        (parts[1:2], r"parts of the run are missing: 1/3, 3/3"),
        ([*parts, parts[1]], r"part 2/3 was given twice"),
        ([parts[0], ran(tmp_path / "two", "2/2")], r"the same number of parts"),
        ([*parts[:2], ran(tmp_path / "other", "3/3", seed=7)], r"seed is 0 in .* and 7 in"),
    ):
        with pytest.raises(UserError, match=text):
            merge(folders, target)
        assert not target.exists()


def test_parts_of_bots_that_answer_otherwise_are_refused(tmp_path: Path) -> None:
    wanted = "north"

    def noted(context: Context) -> BeliefState:
        return BeliefState({**heard(context), "hotel-area": wanted})

    first = ran(tmp_path / "1", "1/2", noted)
    wanted = "south"  # No code and no file has changed.
    with pytest.raises(UserError, match="answer 16 of 16"):
        merge([first, ran(tmp_path / "2", "2/2", noted)], tmp_path / "whole")


@pytest.mark.parametrize("worse", [0, 1])
def test_parts_of_which_one_bot_failed_are_refused(tmp_path: Path, worse: int) -> None:
    folders = [ran(tmp_path / "1", "1/2"), ran(tmp_path / "2", "2/2")]
    manifest = folders[worse].manifest
    answers = *(["failed"] * 9), *manifest.answers[9:]
    folders[worse].keep(replace(manifest, answers=answers))
    with pytest.raises(UserError, match="fails on 9 of 16"):
        merge(folders, tmp_path / "whole")
    folders[worse].keep(replace(manifest, answers=("failed", *manifest.answers[1:])))
    assert merge(folders, tmp_path / "whole").complete


def test_parts_that_nothing_compares_are_refused(tmp_path: Path) -> None:
    first, second = ran(tmp_path / "1", "1/2"), ran(tmp_path / "2", "2/2")
    for folder, left_out in ((first, slice(8)), (second, slice(8, None))):
        answers = list(folder.manifest.answers)
        answers[left_out] = [""] * len(answers[left_out])
        folder.keep(replace(folder.manifest, answers=tuple(answers)))
    with pytest.raises(UserError, match=r"nothing shows that .* are of one bot"):
        merge([first, second], tmp_path / "whole")


def test_a_part_that_is_not_done_is_told_with_what_goes_on(
    parts: Sequence[ResultFolder], tmp_path: Path
) -> None:
    short = ran(tmp_path / "short", "3/3", max_calls=60)
    with pytest.raises(UserError, match=r"short, part 3/3, has .*: continue with dstfuzz campaign"):
        merge([*parts[:2], short], tmp_path / "all")
    # With another budget it goes on: what was found is the same.
    ran(tmp_path / "short", "3/3")
    merged = merge([*parts[:2], ResultFolder.open(tmp_path / "short")], tmp_path / "all")
    assert merged.complete


def test_nothing_else_is_in_the_way(parts: Sequence[ResultFolder], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    ran(tmp_path / "another", seed=7)
    for name, text in (
        ("mine", "contains other files"),
        ("mine/notes.txt", "is not a folder"),
        ("another", "results of another run"),
    ):
        with pytest.raises(UserError, match=text):
            merge(parts, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", "mine"]


def test_a_folder_goes_on_as_its_own_part_alone(tmp_path: Path) -> None:
    ran(tmp_path / "part", "1/3")
    with pytest.raises(UserError, match="shard was '1/3' and is '2/3'"):
        ran(tmp_path / "part", "2/3")


def test_a_part_may_be_empty(whole: ResultFolder, tmp_path: Path) -> None:
    count = 16  # The run has 12 dialogues.
    folders = [ran(tmp_path / str(n), f"{n}/{count}") for n in range(1, count + 1)]
    assert any(len(folder) == 0 for folder in folders)
    assert list(merge(folders, tmp_path / "all").results) == list(whole.results)


@pytest.mark.parametrize("value", ["0/4", "5/4", "3", "a/b", "3/0", "-1/4", "1/2/3", ""])
def test_what_is_no_part_is_refused(value: str) -> None:
    with pytest.raises(UserError, match=r"^shard: .*(such as 3/16|from 1/4 to 4/4)"):
        Settings.of(shard=value)
