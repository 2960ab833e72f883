"""One dialogue from its first turn to the last one requested, as a coroutine.

It yields the contexts it wants answered and is sent the answers: the clean turns, the
variants in their contexts (all at once, or pass by pass where a search learns from the
earlier ones), the second passes of violations, what makes them smaller (see `shrink`); where
the tracker disagrees with itself, also what has to be asked again (see `answers`). Whoever drives
it can run many dialogues side by side and predict what they ask for in full batches; what comes
out is a function of the dialogue, the rules and the tracker alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product, takewhile

from pytest_dstfuzz.campaign.answers import (
    Answer,
    TrackerFailure,
    all_asked,
    clean_wanted,
    count_asked,
    count_votes,
    kinds_of_answers,
    settled_clean,
    variant_wanted,
)
from pytest_dstfuzz.campaign.attempts import (
    Attempt,
    CampaignSpec,
    TurnAttempts,
    attempt_turn,
    begin_turn,
)
from pytest_dstfuzz.campaign.judge import (
    JudgedVariant,
    breaks,
    changes_before,
    judge_attempt,
    seen,
    turn_outcome,
    with_cause,
)
from pytest_dstfuzz.campaign.repeats import Repeat, calls_of, choose_repeats
from pytest_dstfuzz.campaign.results import TurnResult, VariantResult, Votes, turn_id
from pytest_dstfuzz.campaign.shrink import OptionalRequest, Shrunk, shrink
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.perturb.rates import LONGEST_EDITED
from pytest_dstfuzz.trackers.tracker import Prediction

Answers = Mapping[Context, Answer]
#: Yields contexts, is sent answers to them (fewer once a budget ended), returns results.
DialogueRun = Generator[Sequence[Context], Answers, list[TurnResult]]


def run_dialogue(rules: CampaignSpec, dialogue: Dialogue, last: int) -> DialogueRun:
    """Run turns ``0`` to ``last`` of a dialogue.

    Each answer that is sent must hold those of the steps before as well. Turns whose
    contexts were not all answered, and those after them, get the outcome ``skipped``.
    """
    contexts = [dialogue.context(index) for index in range(last + 1)]
    answers = yield contexts
    clean = list(takewhile(answers.__contains__, contexts))
    done = len(clean)
    if rules.votes > 1:
        done = yield from _ask_again(partial(_clean_wanted, rules, clean), answers, done)
    turns = [
        begin_turn(rules, dialogue, dialogue.turns[index], context, _voted(context, answers))
        for index, context in enumerate(clean[:done])
    ]
    judged: list[dict[int, JudgedVariant]] = [{} for _ in turns]
    for numbers in _passes(rules):
        asked = _attempt(rules, dialogue, turns[:done], judged, numbers)
        answers = yield [attempt.context for _, attempt in asked]
        missing = [place for place, attempt in asked if attempt.context not in answers]
        done = min([done, *missing])
        judge = partial(_judge_passes, rules, dialogue, turns, judged, numbers, answers)
        judge(done)
        if rules.votes > 1:
            doubtful = partial(_doubtful, rules, turns, judged, numbers, judge)
            done = yield from _ask_again(doubtful, answers, done)
            judge(done)

    wanted = [_wanted(rules, turn, known) for turn, known in zip(turns, judged, strict=True)]
    answers = yield [context for variants in wanted[:done] for context in _probes(variants)]
    if rules.votes > 1:
        # Without these the causes stay as the first answers have them.
        yield from _ask_again(partial(_doubtful_probes, rules, turns, wanted), answers, done)
    repeats: list[Repeat] = []
    if rules.repeats:
        repeats = choose_repeats(turns, wanted[:done], rules.settings.seed, dialogue.id)
        answers = yield OptionalRequest(one for repeat in repeats for one in repeat.wanted)
    smaller = [Shrunk() for _ in turns[:done]]
    if rules.settings.shrink:
        smaller = yield from shrink(rules, dialogue, turns[:done], wanted[:done], answers)
    results = [
        _repeated(
            _turn_result(rules, dialogue, *known, answers),
            [repeat for repeat in repeats if repeat.place == place],
            answers,
        )
        for place, known in enumerate(zip(turns[:done], wanted, smaller, strict=False))
    ]
    for index in range(done, last + 1):
        asked_for = {contexts[index]}
        if index < len(turns):
            asked_for.update(attempt.context for attempt in turns[index].to_run)
        if rules.votes > 1:
            asked_for.update(all_asked(asked_for, answers))
        results.append(_skipped(rules, dialogue, index, calls=count_asked(asked_for, answers)))
    return results


def _ask_again(
    wanted: Callable[[int, Answers], Iterator[tuple[int, Context]]], answers: Answers, done: int
) -> Generator[Sequence[Context], Answers, int]:
    """Ask until nothing more is wanted.

    Args:
        wanted: what to ask next of the turns before a given one, each with its turn.
        answers: those so far; what is sent is added to them by whoever sends it.
        done: number of turns to ask about.

    Returns:
        The number of turns, from the first on, that have all that is wanted.
    """
    while found := list(wanted(done, answers)):
        answers = yield [context for _, context in found]
        done = min([done, *(place for place, context in found if context not in answers)])
    return done


def _voted(context: Context, answers: Answers) -> Answer:
    """Return the answer to a clean turn: with the state that most of them have."""
    first = answers[context]
    if isinstance(first, TrackerFailure):
        return first
    return replace(first, state=settled_clean(context, answers))


def _clean_wanted(
    rules: CampaignSpec, contexts: Sequence[Context], done: int, answers: Answers
) -> Iterator[tuple[int, Context]]:
    """Yield what to ask again of the clean turns, with their places."""
    for place, context in enumerate(contexts[:done]):
        for again in clean_wanted(context, answers, rules.votes):
            yield place, again


def _judge_passes(
    rules: CampaignSpec,
    dialogue: Dialogue,
    turns: Sequence[TurnAttempts],
    judged: Sequence[dict[int, JudgedVariant]],
    numbers: Sequence[int],
    answers: Answers,
    done: int,
) -> None:
    """Give the variants of some numbers their outcomes, and tell a search that learns."""
    for number, (place, turn) in product(numbers, enumerate(turns[:done])):
        attempt = turn.attempts.get(number)
        if attempt is None:
            continue
        earlier = list(zip(turns[:place], judged, strict=False))
        before = changes_before(earlier, attempt)
        result = judge_attempt(rules.relation, dialogue, turn, attempt, answers, before)
        judged[place][number] = result
        if rules.search.adaptive:
            turn.seen[number] = seen(turn, attempt, result, answers)


def _doubtful(
    rules: CampaignSpec,
    turns: Sequence[TurnAttempts],
    judged: Sequence[Mapping[int, JudgedVariant]],
    numbers: Sequence[int],
    judge: Callable[[int], None],
    done: int,
    answers: Answers,
) -> Iterator[tuple[int, Context]]:
    """Yield what to ask again, with the turns: of all that ever broke the relation, or carried."""
    judge(done)
    for place, number in product(range(done), numbers):
        known, turn = judged[place].get(number), turns[place]
        if known is None or known.result.outcome in ("error", "improved"):
            continue
        context = turn.attempts[number].context
        broken = known.result.outcome in ("violation", "carried")
        if broken or len(all_asked([context], answers)) > 1:
            carried = known.result.outcome == "carried"
            lead = rules.votes if carried else 2 * rules.votes - 1
            yield from (
                (place, again)
                for again in variant_wanted(turn.clean_context, context, answers, rules.votes, lead)
            )


def _doubtful_probes(
    rules: CampaignSpec,
    turns: Sequence[TurnAttempts],
    wanted: Sequence[Sequence[JudgedVariant]],
    done: int,
    answers: Answers,
) -> Iterator[tuple[int, Context]]:
    """Yield what to ask again of the second passes, with their turns."""
    for place, variants in enumerate(wanted[:done]):
        clean = turns[place].clean_context
        for item, context in ((found, one) for found in variants for one in _probes([found])):
            if context in answers and breaks(rules.relation, turns[place], item, context, answers):
                for again in variant_wanted(clean, context, answers, rules.votes, rules.votes):
                    yield place, again


def _passes(rules: CampaignSpec) -> list[range]:
    """Return the numbers of the variants that are made before any of them is run.

    All at once where nothing depends on what earlier ones showed, so that batches are full.
    """
    settings, only = rules.settings, rules.settings.variant
    learns = rules.search.adaptive or settings.stop_at_first
    numbers = range(settings.variants)
    if only is not None:
        alone = not learns and rules.search.context_variant(only) == only
        numbers = range(only if alone else 0, only + 1)
    return [range(number, number + 1) for number in numbers] if learns else [numbers]


def _attempt(
    rules: CampaignSpec,
    dialogue: Dialogue,
    turns: Sequence[TurnAttempts],
    judged: Sequence[Mapping[int, JudgedVariant]],
    numbers: Sequence[int],
) -> list[tuple[int, Attempt]]:
    """Make variants of every turn that is not done; return those to run, with their turns."""
    made: list[tuple[int, Attempt]] = []
    for number in numbers:
        for place, turn in enumerate(turns):
            done = rules.settings.stop_at_first and any(
                item.result.outcome == "violation" for item in judged[place].values()
            )
            # Later turns see it clean: whether what breaks them was carried into them from
            # a variant that is not run, could not be known.
            if not done:
                attempt = attempt_turn(rules, dialogue, turns, place, number)
                if turn.asks(attempt):
                    made.append((place, attempt))
    return made


def _wanted(
    rules: CampaignSpec, turn: TurnAttempts, judged: Mapping[int, JudgedVariant]
) -> list[JudgedVariant]:
    """Return the variants that were asked for; none where the relation is inapplicable.

    What is not tested there is not generated either, as far as the figures go.
    """
    if not turn.applicable and isinstance(turn.clean, Prediction):
        return []
    only = rules.settings.variant
    return [item for number, item in judged.items() if only in (None, number)]


def unanswered(rules: CampaignSpec, dialogue: Dialogue, last: int) -> list[TurnResult]:
    """Return the results of a dialogue that the budget left out altogether."""
    return [_skipped(rules, dialogue, index, calls=0) for index in range(last + 1)]


def _probes(variants: Sequence[JudgedVariant]) -> list[Context]:
    """Return the contexts of the second passes of a turn."""
    probes = [item.probe for item in variants if item.probe is not None]
    return [context for probe in probes for context in (probe.alone, probe.around)]


def _turn_result(
    rules: CampaignSpec,
    dialogue: Dialogue,
    attempts: TurnAttempts,
    judged: Sequence[JudgedVariant],
    smaller: Shrunk,
    answers: Answers,
) -> TurnResult:
    """Put together what is known about a turn."""
    turn, clean = attempts.turn, attempts.clean
    variants = tuple(
        replace(
            variant,
            minimal=smaller.minimal.get(variant.index),
            votes=_votes(attempts, variant, answers),
        )
        for item in judged
        for variant in [with_cause(rules.relation, attempts, item, answers)]
    )
    asked = {attempts.clean_context, *_probes(judged)}
    asked.update(attempt.context for attempt in attempts.to_run)
    if rules.votes > 1:
        asked.update(all_asked(asked, answers))
    outcome = turn_outcome(attempts, variants)
    reason = ""
    if isinstance(clean, TrackerFailure):
        reason = clean.reason
    elif outcome == "inapplicable":
        reason = rules.relation.inapplicable
    elif outcome == "untested" and len(turn.user) > LONGEST_EDITED:
        reason = (
            f"the utterance has {len(turn.user):,} characters, and only those of at most "
            f"{LONGEST_EDITED:,} are edited"
        )
    return TurnResult(
        id=turn_id(rules.data, dialogue.id, turn.index),
        dialogue_id=dialogue.id,
        turn_index=turn.index,
        system=turn.system,
        user=turn.user,
        clean_state=(
            settled_clean(attempts.clean_context, answers)
            if isinstance(clean, Prediction)
            else None
        ),
        outcome=outcome,
        variants=variants,
        label=turn.state,
        reason=reason,
        # A context of another turn has another number of exchanges, so these are new.
        calls=count_asked(asked, answers),
        minimiser_calls=smaller.calls,
        clean_votes=kinds_of_answers(attempts.clean_context, answers),
    )


def _repeated(result: TurnResult, repeats: Sequence[Repeat], answers: Answers) -> TurnResult:
    """Say of the variants that were asked for again whether their answers were the same."""
    same = {repeat.number: repeat.same(answers) for repeat in repeats}
    if not same:
        return result
    variants = (replace(item, repeated=same.get(item.index)) for item in result.variants)
    return replace(result, variants=tuple(variants), repeat_calls=calls_of(repeats, answers))


def _votes(attempts: TurnAttempts, variant: VariantResult, answers: Answers) -> Votes | None:
    """Return how the answers to a variant voted, where it was put to the vote."""
    attempt = attempts.attempts[variant.index]
    if not attempts.asks(attempt):
        return None
    return count_votes(attempts.clean_context, attempt.context, answers, variant.changed_slots)


def _skipped(rules: CampaignSpec, dialogue: Dialogue, index: int, calls: int) -> TurnResult:
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
