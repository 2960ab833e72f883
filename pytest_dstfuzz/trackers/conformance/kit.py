"""The checks in their order, and the run of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from pytest_dstfuzz.dialogue.dialogues import Dialogue, DialogueSet
from pytest_dstfuzz.dialogue.outcome import Outcome, OutcomeKind
from pytest_dstfuzz.errors import DstFuzzError, UserError
from pytest_dstfuzz.trackers.calls.evaluate import (
    EQUAL_CALLS,
    CallEvaluation,
    CallJudge,
    score_calls,
)
from pytest_dstfuzz.trackers.conformance import checks, values
from pytest_dstfuzz.trackers.conformance.findings import (
    CheckOutcome,
    Conformance,
    Finding,
    passed,
    skipped,
    warned,
)
from pytest_dstfuzz.trackers.conformance.probe import TrackerProbe
from pytest_dstfuzz.trackers.evaluate import Evaluation, score
from pytest_dstfuzz.trackers.replies.evaluate import ReplyEvaluation, ReplyJudge, score_replies
from pytest_dstfuzz.trackers.tracker import Tracker

#: What to do, where states are tested, and where replies are.
_READS = (
    (
        "Look at what it is given (context.user is the newest utterance, context.exchanges all of "
        "them) and at the slots that it returns; or name other data with --data."
    ),
    (
        "Look at what it is given (messages, the newest one last) and at what it returns; or name "
        "other data with --data."
    ),
)


def evaluation(probe: TrackerProbe) -> Evaluation | ReplyEvaluation | CallEvaluation | None:
    """Return the accuracy on the turns with labels, where every turn has an answer."""
    if not _has_labels(probe) or len(probe.answers) < len(probe.turns):
        return None
    answers = [answer.prediction for answer in probe.answers.values()]
    labelled = [_label(probe, turn) is not None for turn in _turns(probe)]
    own = [*compress(answers, labelled)]
    if probe.kind.has_tools:
        judge = probe.judge if isinstance(probe.judge, CallJudge) else EQUAL_CALLS
        return score_calls(probe.data, own, judge)
    if probe.kind.words.values:
        return score(probe.data, answers)
    return (
        score_replies(probe.data, own, probe.judge) if isinstance(probe.judge, ReplyJudge) else None
    )


def accuracy(probe: TrackerProbe) -> CheckOutcome:
    """The tracker predicts something, not always the same, and is right now and then."""
    states = {answer.prediction.state for answer in probe.answers.values()}
    turns = f"{len(probe.answers)} turns"
    words, reads = probe.kind.words, _READS[not probe.kind.has_slots]
    if not any(states):
        return warned(f"{words.who} {words.nothing} at any of {turns}", reads)
    if len(states) == 1 and len(probe.answers) > 1:
        return warned(f"{words.who} says the same to all of {turns}", reads)
    found = evaluation(probe)
    if found is None:
        why = (
            "some turns have no answer" if _has_labels(probe) else f"the data has no {words.labels}"
        )
        return skipped(f"{why}; {len(states)} different answers at {turns}")
    of = f"{found.turns} turns"
    if found.unlabelled:
        of = f"the {of} that have {words.labels} ({found.unlabelled} have none)"
    right = f"{found.right} of {of} are right"
    return passed(right) if found.right else warned(right, reads)


def _has_labels(probe: TrackerProbe) -> bool:
    return any(_label(probe, turn) is not None for turn in _turns(probe))


def _turns(probe: TrackerProbe) -> Iterator[tuple[Dialogue, int]]:
    return ((dialogue, turn.index) for dialogue in probe.data.dialogues for turn in dialogue.turns)


def _label(probe: TrackerProbe, turn: tuple[Dialogue, int]) -> Outcome | None:
    return probe.kind.label(*turn)


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a tracker."""

    name: str
    run: Callable[[TrackerProbe], CheckOutcome]
    #: Earlier checks whose failure alone makes this one fail too.
    explained_by: tuple[str, ...] = ()
    #: Whether it can be asked of a tracker that answered nothing.
    unanswered: bool = False
    #: Whether it is about slots and values.
    of_slots: bool = False


_BATCHES = ("batch-sizes",)
_OBJECTS = (*_BATCHES, "input-kept", "own-states")
_CHANCE = (*_OBJECTS, "eval-mode", "deterministic")

#: All checks. Of a tracker that answers at random other checks fail too: a failure that an
#: earlier one explains is not counted again.
CHECKS = (
    Check("eval-mode", checks.eval_mode, unanswered=True),
    Check("clean-turns", checks.clean_turns, unanswered=True),
    Check("batch-sizes", checks.batch_sizes),
    Check("input-kept", checks.input_kept, _BATCHES),
    Check("own-states", checks.own_states, (*_BATCHES, "input-kept")),
    Check("deterministic", checks.deterministic, (*_OBJECTS, "eval-mode")),
    Check("batch-order", checks.batch_order, _CHANCE),
    Check("memory", checks.memory, (*_CHANCE, "batch-order")),
    Check("batch-alone", checks.batch_alone, (*_CHANCE, "batch-order", "memory")),
    Check("odd-utterances", checks.odd_utterances, (*_BATCHES, "input-kept")),
    Check("slots", values.slots, of_slots=True),
    Check("values", values.values, of_slots=True),
    Check("accuracy", accuracy),
)


def check_tracker(
    tracker: Tracker,
    data: DialogueSet,
    batch_size: int = 64,
    progress: Callable[[int], None] = lambda _: None,
    *,
    repeatable: bool | None = None,
    outcome: OutcomeKind = "state",
    judge: ReplyJudge | CallJudge | None = None,
) -> Conformance:
    """Put every check to a tracker.

    It is asked for each turn of the data once, and for some of them again and again: some
    500 contexts more.

    ``progress`` is told how many contexts were asked for so far; ``repeatable`` is what the user
    says of the tracker, see `is_repeatable`. Where the ``outcome`` is a reply, ``judge`` says which
    are right; ``None`` = that is not looked at, or of tool calls, those that are equal.
    """
    probe = TrackerProbe(
        tracker, data, batch_size, progress, repeatable=repeatable, outcome=outcome, judge=judge
    )
    if not probe.turns:
        raise UserError(f"{data.name!r} has no turns in its split {data.split!r}")
    findings: list[Finding] = []
    for check in CHECKS:
        if check.of_slots and not probe.kind.has_slots:
            continue
        findings.append(_judged(check, probe, findings))
    rates = probe.throughput() if probe.answers else {}
    return Conformance(tuple(findings), rates, evaluation(probe), probe.asked)


def _judged(check: Check, probe: TrackerProbe, before: Sequence[Finding]) -> Finding:
    """Return the finding of a check, ``skipped`` where an earlier one explains its failure."""
    if not (check.unanswered or probe.answers):
        return Finding(check.name, "skipped", "not asked: no clean turn has an answer")
    try:
        finding = Finding(check.name, *check.run(probe))
    except DstFuzzError as error:
        advice = "It answered the same contexts before: look for what is not the same each time."
        finding = Finding(check.name, "failed", f"{probe.kind.words.who} failed: {error}", advice)
    # A tracker that warns of chance need not be deterministic: all the same it explains.
    found = {earlier.check for earlier in before if earlier.status in ("failed", "warned")}
    cause = next((name for name in check.explained_by if name in found), None)
    if finding.status == "failed" and cause is not None:
        message = f"not judged: what {cause} found explains it"
        return replace(finding, status="skipped", message=message, advice="")
    return finding
