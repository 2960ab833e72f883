"""What the fixture ``dst_conformance`` gives: the findings of the conformance kit."""

from __future__ import annotations

import pytest

from pytest_dstfuzz.dialogue.sampling import sample_set
from pytest_dstfuzz.plugin.result_collector import conformance_payload
from pytest_dstfuzz.plugin.session import DstSession
from pytest_dstfuzz.printable import printable
from pytest_dstfuzz.testing import Conformance, Finding, check_tracker


class DstConformance:
    """Lets a test assert that the tracker can be tested at all.

    Args:
        report: what the kit found.
    """

    def __init__(self, report: Conformance) -> None:
        #: Findings and figures.
        self.report = report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The finding of each check, in their order."""
        return self.report.findings

    def assert_passed(self) -> None:
        """Fail when a check failed, and say which, why, and what to do; warnings may be."""
        __tracebackhide__ = True
        if not self.report.passed:
            pytest.fail(printable(self.report.explain()), pytrace=False)


def conformance(dst: DstSession, model: object) -> DstConformance:
    """Put every check of the kit to the tracker of a session.

    Args:
        dst: the session; its settings say which turns are asked for.
        model: what the fixture ``dst_model`` gave.

    Raises:
        UserError: the data cannot be used, or ``model`` is no tracker.
    """
    settings = dst.settings
    data = sample_set(dst.data, settings.data.turns, settings.variant.seed, settings.data.domains)
    report = check_tracker(
        model, data, batch_size=settings.tracker.batch_size, repeatable=settings.tracker.repeatable
    )
    dst.outbox = conformance_payload()
    return DstConformance(report)
