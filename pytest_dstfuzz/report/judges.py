"""What reports say of a language model that judged replies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_dstfuzz.printable import counted
from pytest_dstfuzz.report.page import Style
from pytest_dstfuzz.report.tally import usage_text
from pytest_dstfuzz.trackers.tracker import Usage


@dataclass(frozen=True, slots=True)
class WhoJudged:
    """``outcome.judge`` of the JSON report: the same in two runs of one campaign."""

    model: str
    address: str
    is_tested_model: bool
    protocol_sha256: str
    protocol: str


@dataclass(frozen=True, slots=True)
class WhatItTook:
    """``run.judge`` of the JSON report; counts hang on which worker saw what."""

    pairs: int
    unsure: int
    past_budget: int
    calls: int
    usage: Usage


def judge_texts(told: WhoJudged, took: WhatItTook) -> Iterator[tuple[str, Style]]:
    """Yield who judged, what came of it, and what it took, a sentence each."""
    text = (
        f"replies are compared by a judge that is a language model: {told.model} at "
        f"{told.address}, protocol {told.protocol_sha256[:12]} (sha256; its text is in the JSON "
        "report)"
    )
    yield text, "plain"
    if told.is_tested_model:
        yield "the judge is the tested model, and such a judge favours its own words", "warning"
    past = f", {took.past_budget:,} not asked by dst_judge_calls" if took.past_budget else ""
    undecided = took.unsure + took.past_budget
    text = (
        f"{counted(took.pairs, 'pair')} asked in both orders; {undecided:,} unsure{past}, which "
        "is no violation (each worker counts its own)"
    )
    yield text, "warning" if undecided else "plain"
    unit = "" if took.usage.uncounted == took.usage.answers else "tokens: "
    text = f"{counted(took.calls, 'call')} apart from those of the bot; {unit}"
    yield f"{text}{usage_text(took.usage)}", "plain"
