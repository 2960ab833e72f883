"""Planted faults in a bot that looks answers up, on questions that were written here."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.papers.canard import (
    SAID_BEFORE,
    TIRED,
    UNCLEAR,
    UNKNOWN,
    UNSEEN,
    FaultyBot,
    RetrievalBot,
    Rewrites,
    faults,
    load_rewrites,
)
from pytest_dstfuzz.papers.mortar import (
    METAL,
    MORTAR,
    WAYS,
    BotResults,
    count_unique,
    main,
    run_mortar,
)
from pytest_dstfuzz.perturb.lexicon.lexicon import load_lexicon
from pytest_dstfuzz.relations.contexts import list_asked
from tests.relations.contexts.harbour import write


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("canard"))


@pytest.fixture(scope="module")
def gold(path: Path) -> Rewrites:
    return load_rewrites(path, load_lexicon())


@pytest.fixture(scope="module")
def harbour(gold: Rewrites) -> Dialogue:
    return gold.data.dialogues[0]


def test_the_sound_bot_replies_where_it_was_told_enough(gold: Rewrites, harbour: Dialogue):
    bot = RetrievalBot(gold)
    assert bot.reply(harbour.context(1)) == "In 1848."
    assert bot.reply(list_asked(harbour, (3, 1))) == UNCLEAR  # Who is he?
    assert bot.reply(harbour.context(6)) == UNKNOWN  # No answer is recorded.
    assert bot.reply(harbour.context(1, {1: "Wh3n d1d he bui1d it?"})) == "In 1848."
    assert bot.reply(Context(harbour.context(1).exchanges[1:])) == UNCLEAR
    assert bot.reply(harbour.context(0, {0: "Xyzzy"})) == UNCLEAR


@pytest.mark.parametrize(
    ("fault", "order", "said"),
    [
        ("short memory", (0, 1, 2, 3, 4), "A lighthouse lamp."),
        ("order", (1, 0, 3), "In 1848."),
        ("knows too much", (3, 1), "In 1848."),
        ("parrot", (0, 2), "The merchant Magnus Troup built it."),
        ("tired", (0, 1, 2, 3, 0, 1, 2, 3, 3), TIRED),
        ("asked before", (3, 0, 3), SAID_BEFORE),
        ("stuck on the first", (3, 2), "A lighthouse lamp."),
    ],
)
def test_each_fault_shows(
    gold: Rewrites, harbour: Dialogue, fault: str, order: tuple[int, ...], said: str
):
    bot = FaultyBot(gold, faults(gold)[fault])
    assert bot.reply(list_asked(harbour, order)) == said
    # Where the fault is not met, it is the sound bot.
    first = harbour.context(0)
    assert bot.reply(first) == RetrievalBot(gold).reply(first)


def test_brittle_words_are_those_it_never_saw(gold: Rewrites, harbour: Dialogue):
    bot = FaultyBot(gold, faults(gold)["brittle words"])
    assert bot.reply(harbour.context(0, {0: "Who built the harbor?"})) == UNSEEN


def test_the_command_writes_tables_and_sheets(path: Path, tmp_path: Path):
    words = ["--canard", str(path), "--faults", "order, brittle words", "--ways", "main"]
    for name in ("one", "two"):
        sheets = ["--sheets", str(tmp_path / "sheets")] if name == "two" else []
        assert main([*words, "--out", str(tmp_path / name), *sheets]) == 0
    texts = [(tmp_path / name / "mortar.md").read_text(encoding="utf-8") for name in ("one", "two")]
    assert texts[0].replace("--out one", "--out two") == texts[1]
    assert texts[0].index("Not comparable with the published figures") < 100
    rows = _rows(tmp_path / "one" / "mortar.csv")
    found = {(row["bot"], row["relation"]): row for row in rows}
    order = found["order", "same-context"]
    assert int(order["true"]) <= int(order["detections"]) <= int(order["checks"])
    assert found["sound", "same-context"]["true"] == "0"
    assert int(found["brittle words", "metal-typos"]["true"]) > 0
    sheet = (tmp_path / "sheets" / "mortar.md").read_text(encoding="utf-8")
    key = _rows(tmp_path / "sheets" / "mortar_key.csv")
    assert sheet.count("\n## ") == len(key)
    assert {row["detection"] for row in key} == {"yes", "decoy"}
    assert "order" not in sheet
    with pytest.raises(UserError, match="'short memory'"):
        main([*words[:2], "--faults", "short memmory", "--out", str(tmp_path)])


@pytest.fixture(scope="module")
def answered(gold: Rewrites) -> dict[str, BotResults]:
    names, chosen = ["order", "brittle words"], [WAYS["published"]]
    ((_, found),) = run_mortar(gold, names, own=True, seed=0, only=chosen)
    return {one.bot: one for one in found}


def test_a_bug_is_unique_if_the_other_family_finds_none_at_its_question(
    answered: dict[str, BotResults],
):
    # All clean replies are right, so all bugs are of level L3.
    assert count_unique(answered["order"], MORTAR)[:2] == ((0, 0), (0, 0))
    _, _, (unique, every) = count_unique(answered["order"], MORTAR)
    assert unique == every > 0  # METAL finds nothing in this bot.
    # The check calls some lost contexts equivalent, so MORTAR reports questions of this bot, too.
    bugs = [one for one in answered["brittle words"].found if one.broken]
    reported = {(one.dialogue, one.turn) for one in bugs if one.family == MORTAR}
    _, _, (unique, every) = count_unique(answered["brittle words"], METAL)
    alone = [(one.dialogue, one.turn) not in reported for one in bugs if one.family == METAL]
    assert 0 < unique < every
    assert (unique, every) == (sum(alone), len(alone))


def test_replies_are_compared_as_the_user_chooses(path: Path, tmp_path: Path):
    words = ["--canard", str(path), "--faults", "order", "--ways", "published"]
    counts = {}
    for name in ("exact", "embedding:threshold=2"):
        assert main([*words, "--compare", name, "--out", str(tmp_path)]) == 0
        text = (tmp_path / "mortar.md").read_text(encoding="utf-8")
        assert f"--compare {name}" in text
        assert "## Unique bugs" in text
        rows = _rows(tmp_path / "mortar.csv")
        counts[name] = sum(
            int(row["detections"]) for row in rows if row["relation"] == "same-context"
        )
    assert counts["exact"] > counts["embedding:threshold=2"]


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
