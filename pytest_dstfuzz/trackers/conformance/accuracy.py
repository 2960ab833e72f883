"""The check whether a tracker tracks at all: its accuracy, as a sanity figure."""

from __future__ import annotations

from pytest_dstfuzz.trackers.conformance.findings import CheckOutcome
from pytest_dstfuzz.trackers.conformance.probe import TrackerProbe
from pytest_dstfuzz.trackers.evaluate import Evaluation, score

_READS = (
    "Look at what it is given (context.user is the newest utterance, context.exchanges all of "
    "them) and at the slots that it returns; or name other data with --data."
)


def evaluation(probe: TrackerProbe) -> Evaluation | None:
    """Return the accuracy on the turns with labels, where every turn has an answer."""
    if not _has_labels(probe) or len(probe.answers) < len(probe.turns):
        return None
    return score(probe.data, [answer.prediction for answer in probe.answers.values()])


def accuracy(probe: TrackerProbe) -> CheckOutcome:
    """The tracker predicts something, not always the same, and is right now and then."""
    states = {answer.prediction.state for answer in probe.answers.values()}
    turns = f"{len(probe.answers)} turns"
    if not any(states):
        return CheckOutcome("warned", f"the tracker predicts no slot at any of {turns}", _READS)
    if len(states) == 1 and len(probe.answers) > 1:
        return CheckOutcome("warned", f"the tracker says the same to all of {turns}", _READS)
    found = evaluation(probe)
    if found is None:
        why = "some turns have no answer" if _has_labels(probe) else "the data has no labels"
        return CheckOutcome("skipped", f"{why}; {len(states)} different states at {turns}")
    of = f"{found.turns} turns"
    if found.unlabelled:
        of = f"the {of} that have labels ({found.unlabelled} have none)"
    right = f"{found.right} of {of} are right"
    return CheckOutcome("passed", right) if found.right else CheckOutcome("warned", right, _READS)


def _has_labels(probe: TrackerProbe) -> bool:
    return any(turn.state is not None for d in probe.data.dialogues for turn in d.turns)
