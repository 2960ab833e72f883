"""The table of synonyms in ``pyproject.toml``, and the relations that ``wording`` stands for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from processes import run_python

from pytest_dstfuzz.config.options import table_synonyms
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.relations.registry import relations_named

BOT = """
def reply(messages):
    asked = messages[-1]["content"]
    return "We sell hammers." if "hammer" in asked else "Sorry?"
"""
ASKED = {"dialogue_id": "a", "users": ["Do you sell a hammer for my garden hose?"]}
RUN = (
    *("-m", "pytest", "-q", "--dst-model=my_bot:reply", "--dst-outcome=reply"),
    *("--dst-data=asked.jsonl", "--dst-relation=synonyms", "-p", "no:cacheprovider"),
)


@pytest.mark.parametrize("table", ["", "[tool.dstfuzz.synonyms]\nmallet = ['hammer']\n"])
def test_a_bot_that_misses_an_own_synonym_fails(tmp_path: Path, table: str) -> None:
    tmp_path.joinpath("my_bot.py").write_text(BOT)
    tmp_path.joinpath("asked.jsonl").write_text(json.dumps(ASKED) + "\n")
    tmp_path.joinpath("pyproject.toml").write_text(table)
    done = run_python(*RUN, cwd=tmp_path)
    assert (" in 1 of 1 turn" in done.stdout) == bool(table), done.stdout


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("fix = 3", "fix must be a text or a list of texts, not 3"),
        ("fix = 'Fix'", "fix = 'fix' is no synonym"),
        ("fix = ['mend', '']", "fix = '' is no synonym"),
    ],
)
def test_mistakes_in_the_table_are_explained(tmp_path: Path, table: str, message: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.dstfuzz.synonyms]\n{table}\n")
    with pytest.raises(UserError, match=message):
        table_synonyms(path)


def test_wording_stands_for_relations_on_all_kinds_of_answers() -> None:
    found = relations_named("metamorphic,wording")
    assert {"metamorphic", "politeness", "synonyms"} <= {one.name for one in found}
    assert all(set(one.on) == {"state", "reply", "tool-calls"} for one in found)
