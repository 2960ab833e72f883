"""Options in pytest's TOML tables, where values have types."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from pytest_dstfuzz.config import Settings
from pytest_dstfuzz.errors import UserError
from pytest_dstfuzz.plugin import entry
from pytest_dstfuzz.plugin.options import read_settings

NATIVE = pytest.mark.skipif(pytest.version_tuple < (9, 2), reason="older tables hold texts only")


def settings(pytester: pytest.Pytester, table: str, name: str = "tool.pytest") -> Settings:
    (pytester.path / "pyproject.toml").write_text(f"[{name}]\n{table}\n", encoding="utf-8")
    return read_settings(pytester.parseconfig())


@NATIVE
@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("dst_turns = 7", "turns", 7),
        ('dst_turns = "all"', "turns", None),
        ("dst_max_edit_rate = 0.2", "max_edit_rate", 0.2),
        ("dst_max_edit_rate = 0", "max_edit_rate", 0.0),
        ('dst_max_failure_rate = "5%"', "max_failure_rate", 0.05),
        ("dst_max_seconds = 1.5", "max_seconds", 1.5),
        ("dst_flat_edit_rate = true", "flat_edit_rate", True),
        ('dst_flat_edit_rate = "no"', "flat_edit_rate", False),
        ('dst_edits = ["char_drop", "word_drop"]', "edits", ("word_drop", "char_drop")),
        ('dst_edits = ["-emoji", "-blank"]', "edits", ("-word_insert/emoji", "-char_drop/blank")),
        ('dst_domains = ["hotel", "taxi"]', "domains", ("hotel", "taxi")),
        ('dst_lock = ["please", "/a{1,2}/"]', "lock", ("please", "/a{1,2}/")),
    ],
)
def test_values_have_their_own_types(
    pytester: pytest.Pytester, line: str, name: str, value: object
) -> None:
    assert settings(pytester, line).option(name) == value


def test_the_table_of_texts_takes_texts(pytester: pytest.Pytester) -> None:
    table = 'dst_turns = "7"\ndst_edits = "char_drop,word_drop"\ndst_lock = ["a", "b"]'
    found = settings(pytester, table, "tool.pytest.ini_options")
    assert (found.data.turns, found.variant.edits, found.variant.lock) == (
        7,
        ("word_drop", "char_drop"),
        ("a", "b"),
    )


@NATIVE
def test_the_command_line_and_overrides_go_before_it(pytester: pytest.Pytester) -> None:
    text = '[tool.pytest]\ndst_turns = 7\ndst_seed = 3\ndst_edits = ["char_drop"]\n'
    (pytester.path / "pyproject.toml").write_text(text, encoding="utf-8")
    config = pytester.parseconfig("-o", "dst_seed=4", "-o", "dst_edits=word_drop", "--dst-turns=5")
    found = read_settings(config)
    assert (found.data.turns, found.variant.seed, found.variant.edits) == (5, 4, ("word_drop",))


@NATIVE
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dst_variants = true", 'dst_variants (ini): *; in TOML write a text in quotes, "..."'),
        ('dst_edits = "char_drop"', "dst_edits (ini): *; in TOML write a list of texts*"),
        ("dst_lock = [1]", "dst_lock (ini): *; in TOML write a list of texts*"),
        ("dst_turns = [1]", "dst_turns (ini): *; in TOML write a text in quotes*"),
        ("dst_turns = 2.5", "dst_turns (ini): the value has the wrong type*"),
        ("dst_turns = -3", "dst_turns (ini): '-3' must be a whole number*"),
        ("dst_max_edit_rate = 1.5", "dst_max_edit_rate (ini): '1.5' must be a rate between*"),
    ],
)
def test_another_type_is_one_message(pytester: pytest.Pytester, line: str, message: str) -> None:
    (pytester.path / "pyproject.toml").write_text(f"[tool.pytest]\n{line}\n", encoding="utf-8")
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_inprocess()
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert len([text for text in result.errlines if text]) == 1


def test_a_number_before_pytest_knew_unions_is_told_to_be_quoted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pytest.version_tuple < (9, 0):
        pytest.skip("there is no such table")
    monkeypatch.setattr(entry, "_UNIONS", False)
    (pytester.path / "pyproject.toml").write_text("[tool.pytest]\ndst_turns = 7\n", "utf-8")
    result = pytester.runpytest_inprocess()
    assert result.ret == 4
    result.stderr.fnmatch_lines(['ERROR: dst_turns (ini): *write a text in quotes, "..."'])


def test_an_ini_file_holds_names_with_commas_or_lines(pytester: pytest.Pytester) -> None:
    for text in ("char_drop, word_drop", "\n  char_drop\n  word_drop"):
        pytester.makeini(f"[pytest]\ndst_edits = {text}\n")
        found = read_settings(pytester.parseconfig())
        assert found.variant.edits == ("word_drop", "char_drop")
        assert Path("tox.ini").is_file()


#: The place of the ``pyproject.toml`` with a table -> the place of ``.git``, and whether the table
#: belongs to the project of ``outer/a/b/tests/pytest.ini``.
PLACES = {
    "in the repository": ("outer/a", "outer/a", True),
    "above the repository": ("outer", "outer/a", False),
    "beside the tests": ("outer/a/b", None, True),
    "above, without a repository": ("outer/a", None, False),
}


@pytest.mark.parametrize(("place", "repository", "refused"), PLACES.values(), ids=PLACES)
def test_the_tables_of_other_projects_are_not_refused(
    pytester: pytest.Pytester, place: str, repository: str | None, *, refused: bool
) -> None:
    tests = pytester.path / "outer" / "a" / "b" / "tests"
    tests.mkdir(parents=True)
    (tests / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    limits = "[tool.dstfuzz.gates]\nmax-failure-rate = '5%'\n"
    (pytester.path / place / "pyproject.toml").write_text(limits, encoding="utf-8")
    if repository is not None:
        (pytester.path / repository / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    config = pytester.parseconfig(str(tests))
    with pytest.raises(UserError, match="no effect") if refused else nullcontext():
        read_settings(config)


@pytest.mark.parametrize("name", ["[tool.dstfuzz]", "[tool.dstfuzz.gates]"])
def test_an_empty_table_opts_out(pytester: pytest.Pytester, name: str) -> None:
    limits = "[tool.dstfuzz.gates]\nmax-failure-rate = '5%'\n"
    (pytester.path / "pyproject.toml").write_text(limits, encoding="utf-8")
    folder = pytester.mkdir("tests")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text(f"{name}\n", encoding="utf-8")
    read_settings(pytester.parseconfig("tests"))


def test_a_table_in_the_folder_of_the_tests_is_refused(pytester: pytest.Pytester) -> None:
    (pytester.path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    folder = pytester.mkdir("service")
    limits = "[tool.dstfuzz.gates]\nmax-failure-rate = '5%'\n"
    (folder / "pyproject.toml").write_text(limits, encoding="utf-8")
    with pytest.raises(UserError, match="no effect"):
        read_settings(pytester.parseconfig("service"))


@pytest.mark.parametrize("read_too", [False, True], ids=["alone", "own-table"])
def test_a_table_that_is_not_read_is_refused_unless_another_is(
    pytester: pytest.Pytester, *, read_too: bool
) -> None:
    limits = "[tool.dstfuzz.gates]\nmax-failure-rate = '5%'\n"
    (pytester.path / "pyproject.toml").write_text(limits, encoding="utf-8")
    folder = pytester.mkdir("tests")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    if read_too:
        (folder / "pyproject.toml").write_text(limits, encoding="utf-8")
    for given in (["tests"], ["-c", "tests/pytest.ini", "--rootdir=."]):
        config = pytester.parseconfig(*given)
        if read_too:
            read_settings(config)
        else:
            with pytest.raises(UserError, match="no effect"):
                read_settings(config)
