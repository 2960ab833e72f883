"""Steps of the hooks in `entry`, which start the hooks of a session when needed.

Loads no large modules, because every run with an option imports it, even if it tests no tracker.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import pytest

from pytest_dstfuzz.config.options import OPTIONS
from pytest_dstfuzz.errors import UserError, did_you_mean, mask_credentials
from pytest_dstfuzz.gate.verdict import INFRASTRUCTURE
from pytest_dstfuzz.plugin.options import gates_of, given_options, read_settings, unknown_key
from pytest_dstfuzz.plugin.selection import (
    marker_values,
    only_lists,
    own_suite,
    selection_of,
    uses_fixtures,
)

if TYPE_CHECKING:
    from pytest_dstfuzz.plugin.hooks import SessionHooks

#: Hyphens and dashes. Word processors make long ones.
_DASHES: Final = r"[-\u2010-\u2015\u2212]+"
#: An option of the plugin, perhaps misspelled.
_OWN_WORD: Final = re.compile(rf"{_DASHES}(?:no-)?dst", re.IGNORECASE)
#: Exit statuses of runs that were not interrupted.
_ORDERLY = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
#: Whether a collected test uses a fixture of the plugin.
_HAS_FIXTURES: pytest.StashKey[bool] = pytest.StashKey()


def refuse_misspelled_option(parser: pytest.Parser, args: Sequence[str]) -> None:
    """Raise pytest's error for a misspelled option, with the nearest option and without the value.

    The value may be a password. Options of conftest files are known to the parser.
    """
    own = {item.spelled for item in OPTIONS if item.has_flag}
    others = {word for word in args if _OWN_WORD.match(word) and word.partition("=")[0] not in own}
    if not others:
        return
    # Argparse takes a word with a blank for a file, and one with a long dash, too.
    joined = [word.replace(" ", "_") if word in others else word for word in args]
    dashed = [word for word in joined if _OWN_WORD.match(word) and word[:2] != "--"]
    _, unknown = parser.parse_known_and_unknown_args([one for one in joined if one not in dashed])
    wrong = [*dashed, *(word for word in unknown if _OWN_WORD.match(word))]
    if wrong:
        rest = (mask_credentials(word) for word in unknown if word not in wrong)
        names = [word.partition("=") for word in wrong]
        shown = [*(f"{name}=***" if equals else name for name, equals, _ in names), *rest]
        nearest_to = re.sub(rf"\A{_DASHES}", "--", names[0][0]).lower().replace("_", "-")
        hint = did_you_mean(nearest_to, own)
        raise pytest.UsageError(f"unrecognized arguments: {' '.join(shown)}.{hint}")


def refuse_mistakes(
    config: pytest.Config, unknown: Sequence[str], start: Callable[[], SessionHooks]
) -> None:
    """Raise an error for wrong options, data and trackers before collection.

    ``unknown`` holds misspelled keys of the plugin.
    """
    started: SessionHooks | None = None
    try:
        if unknown:
            raise unknown_key(config, unknown[0])
        given = given_options(config)
        if given:
            read_settings(config)
            # An ini file also applies to runs of unrelated tests, which must not pay for reading
            # the data. With workers, an error in the data can only be a usage error at this point.
            typed = any(one.on_command_line or one.name == "results" for one in given)
            if typed or getattr(config.option, "dist", "no") != "no":
                started = start()
                started.prepare()
    except UserError as error:
        end = pytest.UsageError(str(error)) if started is None else started.gate.end(error)
        raise end from error
    except (pytest.skip.Exception, pytest.fail.Exception) as stopped:
        # Outside of a test, pytest would report it as an internal error.
        how = "skip" if isinstance(stopped, pytest.skip.Exception) else "fail"
        raise pytest.UsageError(
            f"the tracker cannot be tested: it called pytest.{how}() before the first test: "
            f"{stopped.msg}"
        ) from stopped


def refuse_early_exit(config: pytest.Config, message: str, started: SessionHooks | None) -> None:
    """Raise an error if ``pytest.exit`` ends a run with status 0 before collection.

    The tracker may have called ``pytest.exit``. Its message must be redacted before pytest prints
    it. If the run ends later, it is judged like any incomplete run.
    """
    typed = any(one.on_command_line for one in given_options(config))
    if typed and started is not None and started.must_judge:
        raise started.gate.end(started.early_exit(message))


def early_exit_status(config: pytest.Config) -> int:
    """Return the exit status if ``pytest.exit(returncode=0)`` ended a run before collection.

    The run may have had robustness tests. So it fails if the command line names a tracker, or if
    any configuration sets a gate.
    """
    try:
        settings = read_settings(config)
        gated = gates_of(config, settings).given or settings.gate.baseline is not None
    except UserError as error:
        raise pytest.UsageError(str(error)) from error
    typed = any(one.name == "model" and one.on_command_line for one in given_options(config))
    if not (gated or typed) or only_lists(config):
        return pytest.ExitCode.OK
    what = "a gate is set" if gated else "the command line names a tracker"
    print(
        f"dstfuzz: nothing was tested although {what}: pytest.exit() ended the run before its "
        "tests were known. With returncode=0 the run would pass: give another returncode",
        file=sys.stderr,
    )
    return INFRASTRUCTURE


def late_exit_status(started: SessionHooks) -> int:
    """Return the final status of a run that ended with 0, according to its verdict.

    A hook may have called ``pytest.exit`` or ``sys.exit`` before or after the verdict.
    """
    end, gate = started.end, started.gate
    unjudged = gate.judges and not started.context.judges_nothing
    status = (
        (INFRASTRUCTURE if unjudged else pytest.ExitCode.OK) if end.status is None else end.status
    )
    if status != pytest.ExitCode.OK:
        what = "did not pass" if end.status is not None else "judged nothing"
        lines = [
            *end.unprinted,
            f"a hook set the exit status 0, but the run {what}: it is {status}",
        ]
        print(*(f"dstfuzz: {line}" for line in lines), sep="\n", file=sys.stderr)
    return status


def check_test(
    metafunc: pytest.Metafunc,
    markers: Sequence[pytest.Mark],
    start: Callable[[], SessionHooks] | None,
) -> None:
    """Check the markers of a test. If ``start`` is given, parametrise the test by turns."""
    try:
        values = marker_values(markers)
        if start is not None:
            start().parametrise(metafunc, values)
    except UserError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from error


def complete(
    session: pytest.Session,
    items: list[pytest.Item],
    started: SessionHooks | None,
    start: Callable[[], SessionHooks],
) -> None:
    """Add the plugin's tests that belong to the run.

    If collection had errors, the built-in suite is not added. The faulty files may have tests that
    replace it.
    """
    config = session.config
    selection, given = selection_of(config), given_options(config)
    config.stash[_HAS_FIXTURES] = uses_fixtures(items)
    own = own_suite(items)
    adds = selection.adds_suite(given, bool(own)) and not session.testsfailed
    started = start() if adds else started
    if started is None:
        return
    started.why_no_suite = selection.why_no_suite(given, own)
    started.add_items(session, items, suite=adds)
    selection.keep(items)


def why_untested(config: pytest.Config, exitstatus: int, started: SessionHooks | None) -> str:
    """Return a warning if a run had no robustness test, or ``""``."""
    idle = hasattr(config, "workerinput") or only_lists(config)
    if idle or exitstatus not in _ORDERLY or (started is not None and started.collector.tested):
        return ""
    has_fixtures = config.stash.get(_HAS_FIXTURES, False)
    return selection_of(config).untested(given_options(config), has_fixtures)
