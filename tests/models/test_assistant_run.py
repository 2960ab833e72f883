"""The shipped assistant, tested on the shipped dialogues by one option."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]


def test_one_option_is_enough(pytester: pytest.Pytester) -> None:
    report = pytester.path / "report.json"
    asked = ("--dst-outcome=tool-calls", "-k", "DST0017", f"--dst-report={report}")
    result = pytester.runpytest("-p", "no:cacheprovider", *asked)
    outcomes = result.parseoutcomes()
    assert sum(outcomes.get(name, 0) for name in ("passed", "failed")) == 3
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["settings"]["model"] == "assistant"
    assert found["summary"]["errors"] == 0


@pytest.mark.parametrize(
    ("model", "option", "said"),
    [
        ("assistant", (), "assistant calls tools*add --dst-outcome=tool-calls"),
        ("trade", ("--dst-outcome=tool-calls",), "trade keeps a belief state*'assistant'"),
    ],
)
def test_a_model_for_another_outcome_is_refused(
    pytester: pytest.Pytester, model: str, option: tuple[str, ...], said: str
) -> None:
    result = pytester.runpytest("-p", "no:cacheprovider", f"--dst-model={model}", *option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])
