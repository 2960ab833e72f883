"""An address that lands in an option for a path is shown without its credentials."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.cli import main

ADDRESS = "http://u:pa55w0rd@h/v1?key=sk-marker"
#: Each names one path that does not exist.
LINES = (
    "check-data {}",
    "convert --data {} --output=x.jsonl",
    "calibrate --data {}",
    "campaign --model=trade --results=r --data {}",
    "campaign --model=trade --results=r --tools {}",
    "campaign --model=trade --results=r --frozen {}",
    "campaign --model=trade --results=r --noise {}",
    "campaign --model=trade --results=r --search=bandit:{}",
    "evaluate --model=trade --data {}",
    "freeze --source {} --output=x",
    "merge {} --output=x",
    "results {} --parquet=x",
    "sweep {} --output=x",
    "report {} --html=x.html",
    "audit {}",
    "mend {}",
    "harden --model=trade --data {} --output=x",
    "export {} --form=jsonl --output=x --measured=x",
    "fit-noise {} --output=x",
)


@pytest.mark.parametrize("line", LINES)
def test_no_command_shows_them(
    line: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert main([word.format(ADDRESS) for word in line.split()]) == 2
    said = "".join(capsys.readouterr())
    assert "pa55w0rd" not in said
    assert "marker" not in said


@pytest.mark.parametrize(
    "option",
    [
        *("--dst-data", "--dst-tools", "--dst-baseline", "--dst-results", "--dst-report"),
        *("--dst-replay", "--dst-search", "-odst_frozen", "-odst_noise"),
    ],
)
def test_no_option_of_pytest_shows_them(pytester: pytest.Pytester, option: str) -> None:
    pytester.makepyfile(my_bot="def track(context): return {}")
    given = f"bandit:{ADDRESS}" if option == "--dst-search" else ADDRESS
    model = () if option == "--dst-results" else ("--dst-model=my_bot:track", "--dst-turns=1")
    done = pytester.runpytest_inprocess(*model, f"{option}={given}")
    assert done.ret != 0
    assert "pa55w0rd" not in done.stdout.str() + done.stderr.str()
    assert "marker" not in done.stdout.str() + done.stderr.str()
