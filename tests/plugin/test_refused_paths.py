"""Values that the system refuses as a path are one message, for every option and command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_dstfuzz.cli import COMMANDS, EXIT_ERROR, main
from pytest_dstfuzz.config import Settings, names_of, option
from pytest_dstfuzz.config.command_line import Parser
from pytest_dstfuzz.errors import UserError

#: All options with the path of a file or a folder.
NAMES = (*names_of("path"), *names_of("content"))
LONG = "SECRET" * 50
#: Beginnings of values that name a kind before the path.
KINDS = {"search": ("", "agent:"), "noise": ("", "typing,")}
WORDS = {
    "long": (LONG, "too long"),
    "address": (f"http://me:{LONG}@localhost/{LONG}", "too long"),
    "long name in a folder": (f"no-folder/{LONG}", "too long"),
    "many folders": ("SECRET/" * 1000 + "file", "too long"),
    "NUL": ("a\0SECRET", "character"),
}


def _value(name: str, text: str) -> str:
    return f"{text}.json" if name == "report" else text


def _words(name: str, text: str) -> list[str]:
    """Return a command line of pytest with the option."""
    item = option(name)
    if not item.of:
        return [f"--dst-{item.flag}={text}"]
    if item.of == "tracker":
        return [f"--dst-tracker={item.flag}={text}"]
    return [f"--dst-{item.of}={item.kinds[0]}:{text}"]


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_refused_path_is_one_message_that_does_not_show_it(name: str, kind: str) -> None:
    text, word = WORDS[kind]
    for begin in KINDS.get(name, ("",)):
        with pytest.raises(UserError, match=word) as caught:
            Settings.of(**{name: _value(name, begin + text)})
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_no_run_of_pytest_ends_in_a_traceback(pytester: pytest.Pytester, name: str) -> None:
    (pytester.path / "file").touch()
    pytester.makepyfile(mybot="def steady(context):\n    return {}\n")
    model = [] if name == "results" else ["--dst-model=mybot:steady"]
    for text in (LONG, f"file/{LONG}"):
        result = pytester.runpytest_inprocess(*model, *_words(name, _value(name, text)))
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        output = "\n".join((*result.outlines, *result.errlines))
        assert "too long" in output
        assert "SECRET" not in output


@pytest.mark.parametrize("name", [name for name in NAMES if option(name).has_ini])
def test_an_ini_file_may_name_no_refused_path(pytester: pytest.Pytester, name: str) -> None:
    table = 'dst_model = "mybot:steady"\n' if name != "results" else ""
    for text, word in ((LONG, "too long"), ("a\\u0000SECRET", "character")):
        pytester.makepyprojecttoml(
            f'[tool.pytest.ini_options]\n{table}dst_suite = "yes"\n'
            f'dst_{name} = "{_value(name, text)}"\n'
        )
        pytester.makepyfile(mybot="def steady(context):\n    return {}\n")
        result = pytester.runpytest_inprocess()
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        output = "\n".join((*result.outlines, *result.errlines))
        assert word in output
        assert "SECRET" not in output


def _paths_of(name: str) -> list[list[str]]:
    """Return command lines of a command, each with one path that is a text to fill in."""
    command = COMMANDS.find(name)
    parser = Parser(name, "")
    command.options(parser)
    known = [action for action in parser._actions if _is_path(action.type) or action.dest in NAMES]
    found = []
    for action in known:
        words = [_value(action.dest, LONG)]
        found.append([name, *action.option_strings[-1:], *words])
    return found


def _is_path(kind: object) -> bool:
    return kind is not None and callable(kind) and _returns_a_path(kind)


def _returns_a_path(kind: object) -> bool:
    try:
        return isinstance(kind("file"), Path)  # type: ignore[operator]
    except (UserError, ValueError, TypeError):
        return False


LINES = [line for name in COMMANDS.names for line in _paths_of(name)]


@pytest.mark.parametrize("name", names_of("path"))
def test_no_option_takes_an_address_for_a_path(name: str) -> None:
    address = _value(name, "https://me:SECRET@localhost/file")
    with pytest.raises(UserError, match="is an address") as caught:
        Settings.of(**{name: address})
    assert "SECRET" not in str(caught.value)


def test_no_report_goes_into_a_folder_named_like_an_address(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "https://me:SECRET@localhost/report.json"
    pytester.makepyfile(mybot="def steady(context):\n    return {}\n")
    for words in ([f"--dst-report={address}"], [f"-odst_report={address}"]):
        result = pytester.runpytest_inprocess("--dst-model=mybot:steady", "--dst-turns=1", *words)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert main(["freeze", "--data", "sample", "--output", address]) == EXIT_ERROR
    assert not Path("https:").exists()
    assert "SECRET" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line[:-1]))
def test_no_command_ends_in_a_traceback(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line) == EXIT_ERROR
    error = capsys.readouterr().err
    assert "too long" in error
    assert "SECRET" not in error
    assert len(error.splitlines()) == 1


def test_other_places_of_paths_are_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    pooled = ["freeze", "--source", "retrieval", "--output", "out.jsonl", "--pool", LONG]
    for line in (["check-data", LONG], pooled, ["train-tracker", "trade", "--data", LONG]):
        more = ["--output", "out"] if line[0] == "train-tracker" else []
        assert main([*line, *more]) == EXIT_ERROR
        error = capsys.readouterr().err
        assert "too long" in error
        assert "SECRET" not in error


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "file").touch()
    folder.chmod(0)
    if os.access(folder, os.R_OK | os.X_OK):
        pytest.skip("this user may read every folder")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_an_unreadable_folder_is_one_message(name: str, locked: Path) -> None:
    for path in (locked, locked / "file", locked / "new"):
        if path == locked and name == "report":  # Its value ends in a suffix.
            continue
        with pytest.raises(UserError, match="Permission denied"):
            Settings.of(**{name: _value(name, str(path))})


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line[:-1]))
def test_no_command_reads_an_unreadable_folder(
    line: list[str], locked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *words, long = line
    assert main([*words, long.replace(LONG, str(locked / "new"))]) == EXIT_ERROR
    error = capsys.readouterr().err
    assert "Permission denied" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_in_a_file_is_one_message(pytester: pytest.Pytester, name: str) -> None:
    (pytester.path / "file").touch()
    pytester.makepyfile(mybot="def steady(context):\n    return {}\n")
    model = [] if name == "results" else ["--dst-model=mybot:steady"]
    words = _words(name, _value(name, "file/child"))
    result = pytester.runpytest_inprocess(*model, "--dst-turns=1", *words)
    # A run does without a cache that it cannot write.
    expected = pytest.ExitCode.OK if name == "cache" else pytest.ExitCode.USAGE_ERROR
    assert result.ret == expected
    output = "\n".join((*result.outlines, *result.errlines))
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
