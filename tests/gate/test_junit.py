"""The file of --junitxml of a session whose gate failed."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from gate_cases import BOT

# Loaded before any inner run, which forgets the modules that it was the first to load.
import pytest_dstfuzz.gate.comparison
import pytest_dstfuzz.plugin.hooks  # noqa: F401

OPTIONS = ("--dst-turns=9", "--dst-variants=2", "--junitxml=junit.xml", "-pno:cacheprovider")


def failed_cases(folder: Path) -> dict[str, str]:
    """Return the failed test cases, and what they say."""
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")  # noqa: S314 - of this run
    return {
        f"{case.get('classname')}::{case.get('name')}": failure.get("message", "")
        for case in cases
        if (failure := case.find("failure")) is not None
    }


@pytest.mark.parametrize("how", [(), ("-q",), ("-n", "2")], ids=["alone", "quiet", "workers"])
def test_a_gate_that_fails_is_a_failed_test_case(
    pytester: pytest.Pytester, how: tuple[str, ...]
) -> None:
    pytester.makepyfile(mybot=BOT)
    for model, expected in (("fragile", 1), ("steady", 0)):
        result = pytester.runpytest_inprocess(
            f"--dst-model=mybot:{model}", "--dst-max-failure-rate=0%", *OPTIONS, *how
        )
        assert result.ret == expected
        assert result.parseoutcomes()["passed"] == 9
        found = failed_cases(pytester.path)
        assert list(found) == ["dstfuzz::gate"] * expected
        assert all("is over the limit of 0.00 %" in text for text in found.values())
