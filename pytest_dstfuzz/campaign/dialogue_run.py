"""One dialogue from its first turn to the last one requested, as a coroutine.

It yields the contexts it wants answered and is sent the answers: the clean turns, the
variants in their contexts (all at once, or pass by pass where a search learns from the
earlier ones), the second passes of violations, what makes them smaller (see `shrink`); where
the tracker disagrees with itself, also what has to be asked again (see `answers`). Whoever drives
it can run many dialogues side by side and predict what they ask for in full batches; what comes
out is a function of the dialogue, the rules and the tracker alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from pytest_dstfuzz.campaign.answers import (
    UNSTABLE,
    Answer,
    TrackerFailure,
    all_answers,
    all_asked,
    count_asked,
    kinds_of_answers,
    malformed_answers,
)
from pytest_dstfuzz.campaign.attempts import TurnAttempts, attempt_turn, begin_turn
from pytest_dstfuzz.campaign.deciding import Repeat, choose_repeats
from pytest_dstfuzz.campaign.judge import (
    JudgedVariant,
    breaks,
    changes_before,
    judge_attempt,
    seen,
    turn_outcome,
    with_cause,
)
from pytest_dstfuzz.campaign.own_edits import attempt_own, begin_own
from pytest_dstfuzz.campaign.requests import OptionalRequest, PatientRequest
from pytest_dstfuzz.campaign.results import TurnOutcome, TurnResult, turn_id
from pytest_dstfuzz.campaign.shrink import Shrunk, shrink
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue
from pytest_dstfuzz.dialogue.outcome import Outcome
from pytest_dstfuzz.perturb.rates import LONGEST_EDITED
from pytest_dstfuzz.relations.rewrite import Inapplicable
from pytest_dstfuzz.trackers.tracker import Prediction

Answers = Mapping[Context, Answer]
#: Yields contexts, is sent answers to them (fewer once a budget ended), returns results.
DialogueRun = Generator[Sequence[Context], Answers, list[TurnResult]]
#: Likewise; returns how many turns, from the first on, have had all their answers.
_Asking = Generator[Sequence[Context], Answers, int]
#: What to ask for, each context with the place of its turn.
_Wanted = Iterator[tuple[int, Context]]


def run_dialogue(
    rules: CampaignSpec, dialogue: Dialogue, last: int, *, one_by_one: bool = False
) -> DialogueRun:
    """Run turns ``0`` to ``last`` of a dialogue.

    Each answer that is sent must hold those of the steps before as well. Turns whose
    contexts were not all answered, and those after them, get the outcome ``skipped``. Where
    variants are asked for ``one_by_one``, all turns get their first variant, and what caused its
    violations, before any gets its second; those that had one keep what they had.
    """
    return _DialogueSteps(rules, dialogue, last, one_by_one).steps()


class _DialogueSteps:
    """A dialogue that is being run, and what is known about it so far."""

    def __init__(
        self, rules: CampaignSpec, dialogue: Dialogue, last: int, one_by_one: bool
    ) -> None:
        self._rules = rules
        self._dialogue = dialogue
        # A turn whose one variant is asked for has a result only with that.
        self._one_by_one = one_by_one and rules.settings.variant is None
        self._contexts = [dialogue.context(index) for index in range(last + 1)]
        self._answers: Answers = {}
        self._turns: list[TurnAttempts] = []
        #: The variants of each turn, by number.
        self._judged: list[dict[int, JudgedVariant]] = []

    def steps(self) -> DialogueRun:
        """Run the dialogue."""
        rules, dialogue = self._rules, self._dialogue
        done = yield from self._ask(enumerate(self._contexts), len(self._contexts))
        if rules.decider.again:
            done = yield from self._ask_again(self._doubtful_clean, done)
        self._begin([self._voted(context) for context in self._contexts[:done]])
        done, left_out = yield from self._variants(done)
        turns = self._turns[:done]
        wanted = [self._requested(place) for place in range(done)]
        self._answers = yield [context for variants in wanted for context in _probes(variants)]
        if rules.decider.again:
            # Without these the causes stay as the first answers have them.
            yield from self._ask_again(partial(self._doubtful_probes, wanted), done)
        repeats: list[Repeat] = []
        if rules.repeats:
            repeats = choose_repeats(turns, wanted, rules.settings.seed, dialogue.id)
            self._answers = yield OptionalRequest(
                context for repeat in repeats for context in repeat.wanted
            )
        smaller = [Shrunk() for _ in turns]
        if rules.settings.shrink:
            smaller = yield from shrink(turns, wanted, self._answers)
        results = [
            self._result(
                turn,
                wanted[place],
                smaller[place],
                [r for r in repeats if r.place == place],
                left_out[place],
            )
            for place, turn in enumerate(turns)
        ]
        for index, context in enumerate(self._contexts[done:], done):
            asked_for = {context}
            if index < len(self._turns):
                asked_for.update(self._turns[index].wanted)
            results.append(_skipped(rules, dialogue, index, calls=self._count(asked_for)))
        return results[rules.first_of(len(self._contexts) - 1) :]

    def _variants(
        self, done: int
    ) -> Generator[Sequence[Context], Answers, tuple[int, Counter[int]]]:
        """Run the variants of the first ``done`` turns.

        Returned is how many turns have a result, and how many variants each of them lacks.
        """
        rules, first, left_out = self._rules, done, Counter[int]()
        for number, numbers in enumerate(_passes(rules, one_by_one=self._one_by_one)):
            done = yield from self._ask(list(self._attempt(numbers, done)), done)
            self._judge(numbers, done)
            if rules.decider.again:
                done = yield from self._ask_again(partial(self._doubtful, numbers), done)
                self._judge(numbers, done)
            first = first if number else done
            left_out.update(
                {
                    place: len(numbers)
                    for place in range(done, first)
                    if not self._is_over(place) and self._turns[place].applicable
                }
            )
            if self._one_by_one:
                found = [item for place in range(done) for item in self._requested(place)]
                self._answers = yield PatientRequest(_probes(found))
        return (first, left_out) if self._one_by_one else (done, Counter())

    def _is_over(self, place: int) -> bool:
        """Whether a turn gets no more variants, as one of them has broken it."""
        return self._rules.settings.stop_at_first and any(
            item.result.outcome == "violation" for item in self._judged[place].values()
        )

    def _begin(self, clean: Sequence[Answer]) -> None:
        """Begin the turns whose clean answers are there."""
        rules, dialogue, last = self._rules, self._dialogue, len(self._contexts) - 1
        for index, answer in enumerate(clean):
            begun = (
                begin_own(rules, dialogue, clean, index, last)
                if rules.own_edits
                else begin_turn(rules, dialogue, index, answer)
            )
            if rules.decider.unstable(begun.clean_context, self._answers, rules.folding):
                begun.begun = Inapplicable(UNSTABLE)
            self._turns.append(begun)
            self._judged.append({})

    def _ask(self, wanted: Iterable[tuple[int, Context]], done: int) -> _Asking:
        """Ask for contexts; a turn that lacks an answer is not done, nor are those after it."""
        found = list(wanted)
        self._answers = yield [context for _, context in found]
        return min([done, *(place for place, one in found if one not in self._answers)])

    def _ask_again(self, wanted: Callable[[int], _Wanted], done: int) -> _Asking:
        """Ask until nothing more is wanted of the turns that are done."""
        while found := list(wanted(done)):
            done = yield from self._ask(found, done)
        return done

    def _count(self, asked: set[Context]) -> int:
        """Return how many contexts were asked for, repetitions for a vote included."""
        if self._rules.decider.again:
            asked = asked.union(all_asked(asked, self._answers))
        return count_asked(asked, self._answers)

    def _voted(self, context: Context) -> Answer:
        """Return the answer to a clean turn: with the state that most of them have."""
        first = self._answers[context]
        if isinstance(first, TrackerFailure):
            return first
        return replace(first, state=self._clean_outcome(context))

    def _clean_outcome(self, context: Context) -> Outcome:
        """Return what the answers to a clean turn count as."""
        return self._rules.decider.clean_outcome(context, self._answers, self._rules.folding)

    def _prepare(self, asked: Iterable[tuple[Context, Context]]) -> None:
        """Let the comparison get ready for the answers to clean contexts and to others."""
        answers = self._answers
        self._rules.folding.prepare(
            (clean, all_answers(clean, answers), all_answers(context, answers))
            for clean, context in asked
        )

    def _doubtful_clean(self, done: int) -> _Wanted:
        self._prepare((context, context) for context in self._contexts[:done])
        decider, folding = self._rules.decider, self._rules.folding
        for place, context in enumerate(self._contexts[:done]):
            for again in decider.clean_wanted(context, self._answers, folding):
                yield place, again

    def _attempt(self, numbers: Sequence[int], done: int) -> _Wanted:
        """Make variants of every turn that is not done with; yield those to run."""
        for number, place in product(numbers, range(done)):
            # Later turns see it clean: whether what breaks them was carried into them from
            # a variant that is not run, could not be known.
            if not self._is_over(place):
                turn = self._turns[place]
                attempt = (
                    attempt_own(turn, number)
                    if self._rules.own_edits
                    else attempt_turn(self._turns[:done], place, number)
                )
                if attempt is not None and turn.asks(attempt):
                    for context in turn.asked(attempt):
                        yield place, context

    def _judge(self, numbers: Sequence[int], done: int) -> None:
        """Give the variants of some numbers their outcomes, and tell a search that learns."""
        self._prepare(
            (turn.reference(attempt), attempt.context)
            for turn in self._turns[:done]
            for number in numbers
            if (attempt := turn.attempts.get(number)) is not None and turn.asks(attempt)
        )
        for number, (place, turn) in product(numbers, enumerate(self._turns[:done])):
            attempt = turn.attempts.get(number)
            if attempt is None:
                continue
            earlier = list(zip(self._turns[:place], self._judged, strict=False))
            before = changes_before(earlier, attempt)
            result = judge_attempt(turn, attempt, self._answers, before)
            self._judged[place][number] = result
            if self._rules.learns:
                turn.seen[number] = seen(turn, attempt, result, self._answers)

    def _doubtful(self, numbers: Sequence[int], done: int) -> _Wanted:
        """Yield what to ask again: of all that ever broke the relation, carried, or is open."""
        decider = self._rules.decider
        if decider.by_outcome:
            self._judge(numbers, done)
        for place, number in product(range(done), numbers):
            known, turn = self._judged[place].get(number), self._turns[place]
            if known is None:
                continue
            attempt = turn.attempts[number]
            outcome = known.result.outcome
            for again in decider.wanted(turn, attempt, self._answers, outcome):
                yield place, again

    def _doubtful_probes(self, wanted: Sequence[Sequence[JudgedVariant]], done: int) -> _Wanted:
        answers, decider = self._answers, self._rules.decider
        for place, turn in enumerate(self._turns[:done]):
            for item in wanted[place]:
                for context in _probes([item]):
                    if context in answers and breaks(turn, item, context, answers) is not False:
                        attempt = turn.attempts[item.result.index]
                        for again in decider.part_wanted(turn, attempt, context, answers):
                            yield place, again

    def _requested(self, place: int) -> list[JudgedVariant]:
        """Return the variants that were asked for; none where the relation is inapplicable.

        What is not tested there is not generated either, as far as the figures go.
        """
        turn, only = self._turns[place], self._rules.settings.variant
        if not turn.applicable and isinstance(turn.clean, Prediction):
            return []
        return [item for number, item in self._judged[place].items() if only in (None, number)]

    def _result(
        self,
        attempts: TurnAttempts,
        judged: Sequence[JudgedVariant],
        smaller: Shrunk,
        repeats: Sequence[Repeat],
        left_out: int,
    ) -> TurnResult:
        turn, answers, folding = attempts.turn, self._answers, self._rules.folding
        same = {repeat.number: repeat.same(answers) for repeat in repeats}
        variants = []
        for item in judged:
            minimal = smaller.minimal.get(item.result.index)
            variant = with_cause(attempts, item, answers, minimal)
            attempt, votes = attempts.attempts[variant.index], None
            if attempts.asks(attempt):
                votes = self._rules.decider.votes_on(
                    attempts, attempt, answers, variant.changed_slots
                )
            variants.append(replace(variant, votes=votes, repeated=same.get(variant.index)))
        outcome = turn_outcome(attempts, variants)
        asked = {*self._clean_of(turn.index), *_probes(judged)}
        asked.update(attempts.wanted)
        # A context of another turn has another number of exchanges, so these are new.
        found = _skipped(self._rules, self._dialogue, turn.index, calls=self._count(asked))
        context, clean_state, right = attempts.clean_context, None, None
        if not isinstance(attempts.clean, TrackerFailure):
            clean_state = self._clean_outcome(context)
            if found.label is not None and not folding.exact:
                right = folding.agree(found.label, clean_state, context)
        return replace(
            found,
            clean_state=clean_state,
            outcome=outcome,
            variants=tuple(variants),
            reason=_reason(attempts, outcome),
            minimiser_calls=smaller.calls,
            noise=attempts.noise,
            clean_votes=kinds_of_answers(context, answers, folding),
            malformed=malformed_answers(all_asked(asked, answers), answers),
            repeat_calls=count_asked({c for one in repeats for c in one.wanted}, answers),
            own=folding.spread(all_answers(context, answers), context),
            right=right,
            left_out=left_out,
        )

    def _clean_of(self, index: int) -> list[Context]:
        """Return the clean contexts that the result of a turn answers for."""
        first = 0 if self._rules.relation.unit == "dialogue" else index
        return self._contexts[first : index + 1]


def _passes(rules: CampaignSpec, *, one_by_one: bool) -> list[range]:
    """Return the numbers of the variants that are made before any of them is run.

    All at once where nothing depends on what earlier ones showed, so that batches are full, unless
    they are to be asked for ``one_by_one``.
    """
    settings, only = rules.settings, rules.settings.variant
    learns = rules.learns or settings.stop_at_first
    numbers = range(settings.variants)
    if only is not None:
        alone = not learns and (rules.own_edits or rules.search.context_variant(only) == only)
        numbers = range(only if alone else 0, only + 1)
    return [range(number, number + 1) for number in numbers] if learns or one_by_one else [numbers]


def unanswered(rules: CampaignSpec, dialogue: Dialogue, last: int) -> list[TurnResult]:
    """Return the results of a dialogue that the budget left out altogether."""
    return [_skipped(rules, dialogue, i, calls=0) for i in range(rules.first_of(last), last + 1)]


def _reason(attempts: TurnAttempts, outcome: TurnOutcome) -> str:
    """Say why a turn has no verdict; ``""`` where it has one, or no variant could be made."""
    if isinstance(attempts.clean, TrackerFailure):
        return attempts.clean.reason
    if outcome == "inapplicable" or attempts.unstable:
        return attempts.inapplicable
    length = len(attempts.turn.user)
    if outcome != "untested" or length <= LONGEST_EDITED:
        return ""
    return (
        f"the utterance has {length:,} characters, and only those of at most "
        f"{LONGEST_EDITED:,} are edited"
    )


def _probes(variants: Sequence[JudgedVariant]) -> list[Context]:
    """Return the contexts of the second passes of a turn."""
    probes = [item.probe for item in variants if item.probe is not None]
    return [context for probe in probes for context in (probe.alone, probe.around)]


def _skipped(rules: CampaignSpec, dialogue: Dialogue, index: int, calls: int) -> TurnResult:
    turn = dialogue.turns[index]
    return TurnResult(
        id=turn_id(rules.data, dialogue.id, index),
        dialogue_id=dialogue.id,
        turn_index=index,
        system=turn.system,
        user=turn.user,
        earlier_system=tuple(earlier.system for earlier in dialogue.turns[:index]),
        clean_state=None,
        outcome="skipped",
        variants=(),
        label=rules.kind.label(dialogue, index),
        outcome_kind=rules.kind.name,
        tools=rules.kind.tools(dialogue),
        calls=calls,
        relation=rules.relation.name,
        side=rules.relation.side,
    )
