"""GitHub's workflow commands: which violations, and that a text cannot be a command."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.config import GateSettings
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.report.github import MOST_COMMANDS, command, violation_commands


@settings(deadline=None)
@given(st.text(), st.text())
def test_a_command_is_one_line_that_reads_back(title: str, message: str) -> None:
    line = command("error", title, message)
    assert "\n" not in line
    assert "\r" not in line
    head, _, body = line.removeprefix("::error title=").partition("::")
    assert not set(head) & set(":,")
    for given_text, written in ((title, head), (message, body)):
        back = written
        for code in ("%0A", "%0D", "%3A", "%2C", "%25"):
            back = back.replace(code, unquote(code))
        # What a terminal would obey is written by its number.
        assert back == printable(given_text)


def test_one_a_turn_the_plainest_ten_at_most(broken: TurnResult) -> None:
    second = replace(broken.violations[0], index=3)
    turns = [
        replace(broken, id=f"t{number}", turn_index=number, variants=(*broken.variants, second))
        for number in range(MOST_COMMANDS + 5)
    ]
    lines = violation_commands(turns, GateSettings(), "utf-8", repeat="pytest x")
    assert len(lines) == MOST_COMMANDS == len(set(lines))
    assert lines[0] == (
        "::error title=t0%2C variant 1::user: i am [-leaving-]{+leaivng+} on friday from ely"
        "%0Atrain-day: friday -> none"
        "%0Arepeat: pytest x --dst-variant=1 -k '[t0]'"
        "%0Aaccept: pytest x -k '[t0]' --dst-remember; dstfuzz accept t0 --reason '...'"
    )


def test_under_the_gate_a_violation_is_a_warning(broken: TurnResult) -> None:
    (line,) = violation_commands([broken], GateSettings(fail_on="gate"), "utf-8")
    assert line.startswith("::warning ")
    assert violation_commands([replace(broken, variants=())], GateSettings(), "utf-8") == []


def test_what_is_new_goes_into_the_baseline_to_accept_it(broken: TurnResult) -> None:
    settings = GateSettings(fail_on="gate", baseline="old build.json")
    (line,) = violation_commands([broken], settings, "utf-8", repeat="pytest x", note="new: ")
    assert line.startswith("::error title=new%3A ")
    assert line.endswith(
        "%0Aaccept: pytest x -k '[multiwoz21-test-SNG0073-t1]' "
        "--dst-baseline='old build.json' --dst-update-baseline"
    )


def test_texts_are_shown_safely(broken: TurnResult) -> None:
    turn = replace(broken, id="x\n::add-mask::y\u202e", dialogue_id="caf\u00e9")
    (line,) = violation_commands([turn], GateSettings(), "ascii")
    assert line.isascii()
    assert line.startswith("::error title=x<U+000A>%3A%3Aadd-mask%3A%3Ay<U+202E>%2C variant 1::")
