"""The conformance kit: tells the author of an adapter what is wrong with it, all at once.

The preflight refuses a tracker at the first problem, before a run. The kit runs every
check to the end, and gives advice: ``dstfuzz check-tracker`` and the fixture
``dst_conformance`` show what it finds.
"""

from __future__ import annotations

from pytest_dstfuzz.trackers.conformance.findings import Conformance, Finding
from pytest_dstfuzz.trackers.conformance.kit import CHECKS, Check, check_tracker

__all__ = ["CHECKS", "Check", "Conformance", "Finding", "check_tracker"]
