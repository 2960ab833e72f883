"""One dialogue from its first turn to the last one requested, as a coroutine.

It yields the contexts it wants answered and is sent the answers, three times: the clean
turns, the variants in their contexts, the second passes of violations. Whoever drives
it can run many dialogues side by side and predict what they ask for in full batches;
what comes out is a function of the dialogue, the rules and the tracker alone.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import takewhile

from pytest_dstfuzz.campaign.answers import Answer, Failure, count_asked
from pytest_dstfuzz.campaign.attempts import Rules, TurnAttempts, perturb_dialogue
from pytest_dstfuzz.campaign.ids import turn_id
from pytest_dstfuzz.campaign.judge import (
    History,
    Judged,
    judge_turn,
    remember,
    turn_outcome,
    with_cause,
)
from pytest_dstfuzz.campaign.results import TurnResult
from pytest_dstfuzz.dialogue.types import Context, Dialogue
from pytest_dstfuzz.trackers.protocol import Prediction

Answers = Mapping[Context, Answer]
#: Yields contexts, is sent answers to them (fewer once a budget ended), returns results.
Walk = Generator[Sequence[Context], Answers, list[TurnResult]]


def walk(rules: Rules, dialogue: Dialogue, last: int) -> Walk:
    """Run turns ``0`` to ``last`` of a dialogue.

    Each answer that is sent must hold those of the steps before as well. Turns whose
    contexts were not all answered, and those after them, get the outcome ``skipped``.
    """
    contexts = [dialogue.context(index) for index in range(last + 1)]
    answers = yield contexts
    clean = [(context, answers[context]) for context in takewhile(answers.__contains__, contexts)]
    turns = perturb_dialogue(rules, dialogue, clean)

    answers = yield [attempt.context for turn in turns for attempt in turn.to_run]
    history: History = {}
    judged: list[list[Judged]] = []
    for turn in turns:
        if not all(attempt.context in answers for attempt in turn.to_run):
            break
        judged.append(judge_turn(rules.relation, dialogue, turn, answers, history))
        history = remember(history, turn, judged[-1])

    answers = yield [context for variants in judged for context in _probes(variants)]
    results = [
        _turn_result(rules, dialogue, turn, variants, answers)
        for turn, variants in zip(turns, judged, strict=False)
    ]
    for index in range(len(results), last + 1):
        asked = {contexts[index]}
        if index < len(turns):
            asked.update(attempt.context for attempt in turns[index].to_run)
        results.append(_skipped(rules, dialogue, index, calls=count_asked(asked, answers)))
    return results


def unanswered(rules: Rules, dialogue: Dialogue, last: int) -> list[TurnResult]:
    """Return the results of a dialogue that the budget left out altogether."""
    return [_skipped(rules, dialogue, index, calls=0) for index in range(last + 1)]


def _probes(variants: Sequence[Judged]) -> list[Context]:
    """Return the contexts of the second passes of a turn."""
    probes = [item.probe for item in variants if item.probe is not None]
    return [context for probe in probes for context in (probe.alone, probe.around)]


def _turn_result(
    rules: Rules,
    dialogue: Dialogue,
    attempts: TurnAttempts,
    judged: Sequence[Judged],
    answers: Answers,
) -> TurnResult:
    """Put together what is known about a turn."""
    turn, clean = attempts.turn, attempts.clean
    variants = tuple(with_cause(rules.relation, attempts, item, answers) for item in judged)
    asked = {attempts.clean_context, *_probes(judged)}
    asked.update(attempt.context for attempt in attempts.to_run)
    outcome = turn_outcome(attempts, variants)
    reason = ""
    if isinstance(clean, Failure):
        reason = clean.reason
    elif outcome == "inapplicable":
        reason = "the clean prediction is wrong by the label, or the turn has none"
    return TurnResult(
        id=turn_id(rules.data, dialogue.id, turn.index),
        dialogue_id=dialogue.id,
        turn_index=turn.index,
        system=turn.system,
        user=turn.user,
        clean_state=clean.state if isinstance(clean, Prediction) else None,
        outcome=outcome,
        variants=variants,
        label=turn.state,
        reason=reason,
        # A context of another turn has another number of exchanges, so these are new.
        calls=count_asked(asked, answers),
    )


def _skipped(rules: Rules, dialogue: Dialogue, index: int, calls: int) -> TurnResult:
    turn = dialogue.turns[index]
    return TurnResult(
        id=turn_id(rules.data, dialogue.id, index),
        dialogue_id=dialogue.id,
        turn_index=index,
        system=turn.system,
        user=turn.user,
        clean_state=None,
        outcome="skipped",
        variants=(),
        label=turn.state,
        calls=calls,
    )
