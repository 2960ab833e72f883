"""Checks that ask for the same contexts again: alone, in batches, in other orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_dstfuzz.dialogue.dialogues import Context, Exchange
from pytest_dstfuzz.errors import DstFuzzError
from pytest_dstfuzz.trackers.conformance.contract import LONG
from pytest_dstfuzz.trackers.conformance.findings import CheckOutcome
from pytest_dstfuzz.trackers.conformance.probe import ProbeTurn, Sized, TrackerProbe
from pytest_dstfuzz.trackers.tracker import VOTE, Prediction
from pytest_dstfuzz.trackers.validation import difference


def deterministic(probe: TrackerProbe) -> CheckOutcome:
    """The same batch has the same answers, however often it is asked for.

    The first answers may differ from the others for another reason: `memory` looks at them.
    """
    _, second, *others = probe.repeats
    if not probe.repeatable:
        return _disagreement(probe)
    for other in others:
        if moved := _difference(second, other, probe.few):
            return CheckOutcome(
                "failed",
                f"the same batch twice in a row has different answers ({moved})",
                "Switch off dropout and sampling (temperature 0), and seed what is random. Of a "
                f"tracker that cannot repeat itself, {VOTE}.",
            )
    again = f"{len(probe.repeats)} times in a row"
    return CheckOutcome("passed", f"a batch of {len(probe.few)} has the same answers {again}")


def _disagreement(probe: TrackerProbe) -> CheckOutcome:
    """Say how often a tracker that need not be repeatable disagrees with itself."""
    states = [{p.state for p in answers} for answers in zip(*probe.repeats, strict=True)]
    differed = sum(len(answers) > 1 for answers in states)
    times = f"asked {len(probe.repeats)} times"
    if not differed:
        return CheckOutcome("passed", f"{len(states)} contexts, {times}, have the same answers")
    return CheckOutcome(
        "warned",
        f"{differed} of {len(states)} contexts, {times}, have several answers; the tracker says "
        "that it need not be repeatable",
        "A run asks such a tracker several times. Where it can be made to repeat itself "
        "(temperature 0, a seed), do that.",
    )


def batch_order(probe: TrackerProbe) -> CheckOutcome:
    """The answers to a batch come in the order of its contexts."""
    alone, together = probe.few_alone, probe.repeats[-1]
    moved = [
        place
        for place, (one, other) in enumerate(zip(alone, together, strict=True))
        if one.state != other.state
    ]
    if moved and _states(alone) == _states(together):
        return CheckOutcome(
            "failed",
            f"the answers to a batch of {len(probe.few)} are the right ones in another order: "
            f"{len(moved)} of them stand at another context's place",
            "Where a batch is sorted, by length for instance, put the answers back into the "
            "order of the contexts.",
        )
    return CheckOutcome("passed", "answers come in the order of the contexts")


def memory(probe: TrackerProbe) -> CheckOutcome:
    """An answer does not depend on what was asked before it."""
    turns = probe.few
    forwards = [probe.ask([turn])[0] for turn in turns]
    backwards = probe.ask(turns[::-1])[::-1]
    first, again = probe.repeats[0], probe.repeats[-1]
    for what, one, other in (
        ("one by one in two orders", forwards, probe.few_alone),
        ("in a batch and in the same batch backwards", again, backwards),
        ("in a batch and in the same batch again", first, again),
    ):
        if moved := _difference(one, other, turns):
            return CheckOutcome(
                "failed",
                f"the answer depends on what was asked before: {len(turns)} contexts, {what}, "
                f"have different answers ({moved})",
                "Keep nothing from one context to the next. An object with reset() and "
                "update(system, user) may keep its state; reset() must clear all of it.",
            )
    return CheckOutcome("passed", f"{len(turns)} contexts have the same answers in other orders")


def batch_alone(probe: TrackerProbe) -> CheckOutcome:
    """A context has the same answer alone, in batches of any size, and beside a long one."""
    advice = (
        "Mask the padding in attention, recurrence and pooling, and cut no context for the sake "
        "of the longest one."
    )
    sizes = {size: found for size, found in probe.sized.items() if isinstance(found, Sized)}
    alone = sizes[min(sizes)].predictions if sizes else []
    for size, found in sizes.items():
        count = min(len(alone), len(found.predictions))
        if moved := _difference(found.predictions[:count], alone[:count], probe.many[:count]):
            return CheckOutcome(
                "failed",
                f"in batches of {size} a context has another answer than alone ({moved})",
                advice,
            )
    long = ProbeTurn("2,000 characters", "", Context((Exchange("", LONG),)))
    try:
        beside = probe.ask([*probe.few, long])[:-1]
    except DstFuzzError:
        # That the tracker fails on it is for the check of odd utterances to say.
        beside = probe.few_alone
    if moved := _difference(beside, probe.few_alone, probe.few):
        return CheckOutcome(
            "failed",
            f"beside a context of 2,000 characters a context has another answer ({moved})",
            advice,
        )
    shown = ", ".join(str(size) for size in sizes if size > 1)
    return CheckOutcome("passed", f"the same answers alone and in batches of {shown}")


def _difference(one: list[Prediction], other: list[Prediction], turns: Sequence[ProbeTurn]) -> str:
    return difference(one, other, (turn.name for turn in turns))


def _states(predictions: Iterable[Prediction]) -> Counter[object]:
    return Counter(prediction.state for prediction in predictions)
