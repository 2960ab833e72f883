"""The run of a dialogue, and the minimisation of its violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from typing import Final, TypeVar

from pytest_dstfuzz.campaign.answers import (
    UNSTABLE,
    Answer,
    OptionalRequest,
    PatientRequest,
    TrackerFailure,
    all_answers,
    all_asked,
    count_asked,
    count_malformed,
    kinds_of_answers,
)
from pytest_dstfuzz.campaign.attempts import (
    Attempt,
    TurnAttempts,
    attempt_conversation,
    attempt_own,
    attempt_turn,
    begin_own,
    begin_turn,
)
from pytest_dstfuzz.campaign.deciding import Repeat, choose_repeats
from pytest_dstfuzz.campaign.judge import (
    JudgedVariant,
    breaks,
    changes_before,
    give_feedback,
    judge_attempt,
    judge_conversation,
    turn_outcome,
    with_cause,
)
from pytest_dstfuzz.campaign.results import (
    ContextEdits,
    Minimal,
    TurnOutcome,
    TurnResult,
    VariantResult,
    faults,
    not_corrected,
    turn_id,
)
from pytest_dstfuzz.campaign.spec import CampaignSpec
from pytest_dstfuzz.dialogue.calls import Outcome
from pytest_dstfuzz.dialogue.dialogues import Context, Dialogue, Difference
from pytest_dstfuzz.perturb.edits import apply_edits, without
from pytest_dstfuzz.perturb.validity import LONGEST_EDITED
from pytest_dstfuzz.perturb.words import Edit
from pytest_dstfuzz.relations.relation import Inapplicable
from pytest_dstfuzz.trackers.tracker import Prediction

#: A set of at most this size is reduced one edit at a time. A larger set is halved first.
FEW: Final = 8
#: If more edits than this remain at the end, each edit is also tried alone.
PLAIN: Final = 2

#: A set of edits, as ascending numbers.
Subset = tuple[int, ...]
_Result = TypeVar("_Result")
#: A generator that yields sets of edits. It receives for each set whether the set breaks the
#: relation, and returns a result.
Steps = Generator[Sequence[Subset], Mapping[Subset, bool], _Result]


def minimise(groups: Sequence[Subset]) -> Steps[Subset]:
    """Return a 1-minimal set of edits that breaks the relation. None of them can be left out.

    All edits together must break the relation. If every superset of a breaking set breaks it too,
    the result is minimal among all subsets. ``groups`` are disjoint sets of edits. If one group
    alone breaks the relation, the search starts with that group. No set is tested twice.
    """
    known: dict[Subset, bool] = {}
    whole = tuple(sorted(edit for group in groups for edit in group))
    parts = [tuple(sorted(group)) for group in groups if group]
    found = None
    if len(parts) > 1:
        found = yield from _first(parts, known)
    current = whole if found is None else found
    pieces = _begin(current)
    while len(current) > 1:
        chunks = _split(current, pieces)
        smaller = yield from _first(chunks, known)
        if smaller is not None:
            current = smaller
            pieces = _begin(current)
            continue
        smaller = yield from _spare(current, chunks, known)
        if smaller is not None:
            current = smaller
            pieces = len(current) if len(current) <= FEW else max(pieces - 1, 2)
        elif pieces < len(current):
            pieces = min(2 * pieces, len(current))
        else:
            break
    if len(current) > PLAIN:
        # The search by halves and groups may have missed an edit that breaks the relation alone.
        alone = yield from _first([(edit,) for edit in whole], known)
        current = current if alone is None else alone
    return current


def _begin(edits: Subset) -> int:
    """Return the number of pieces in the first split of a set."""
    return len(edits) if len(edits) <= FEW else 2


def _split(edits: Subset, pieces: int) -> list[Subset]:
    cuts = [len(edits) * number // pieces for number in range(pieces + 1)]
    return [edits[low:high] for low, high in pairwise(cuts)]


def _first(sets: Sequence[Subset], known: dict[Subset, bool]) -> Steps[Subset | None]:
    """Return the first set that breaks the relation. Yield the sets that need a test."""
    wanted = [edits for edits in dict.fromkeys(sets) if edits not in known]
    if wanted:
        answers = yield wanted
        known.update((edits, answers[edits]) for edits in wanted)
    return next((edits for edits in sets if known[edits]), None)


def _spare(
    current: Subset, chunks: Sequence[Subset], known: dict[Subset, bool]
) -> Steps[Subset | None]:
    """Leave out chunks and return a smaller set that breaks the relation.

    Return ``None`` if every chunk is needed.
    """
    # Drop the last edits first. These are the edits of the context, not those of the turn.
    rests = [_less(current, chunk) for chunk in reversed(chunks)]
    smaller = yield from _first(rests, known)
    if smaller is None:
        return None
    spared = {edit for rest in rests if known[rest] for edit in _less(current, rest)}
    needed = _less(current, tuple(spared))
    if needed and needed != smaller and (yield from _first([needed], known)) is not None:
        return needed
    return smaller


def _less(edits: Subset, dropped: Sequence[int]) -> Subset:
    return tuple(edit for edit in edits if edit not in dropped)


_Answers = Mapping[Context, Answer]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The minimised violations of a turn."""

    #: Number of a variant -> its minimal version, if one was found.
    minimal: Mapping[int, Minimal] = field(default_factory=dict)
    #: Number of requested contexts.
    calls: int = 0


def shrink(
    turns: Sequence[TurnAttempts],
    judged: Sequence[Sequence[JudgedVariant]],
    answers: _Answers,
) -> Generator[OptionalRequest, _Answers, list[Shrunk]]:
    """Minimise the violations of a dialogue. Return the results for each turn.

    The answers to the contexts of each `BlameProbe` must be known, because they show the causes.
    The causes may still be undetermined.
    """
    broken = [
        [item for item in results if item.result.outcome == "violation"] for results in judged
    ]
    whole = [
        {
            item.result.index: _as_made(item.result)
            for item in items
            if not _comes_apart(turns[place].attempts[item.result.index])
        }
        for place, items in enumerate(broken)
    ]
    cases = [
        [_ShrinkCase(turns, place, i) for i in items if i.result.index not in whole[place]]
        for place, items in enumerate(broken)
    ]
    waiting = [case for of_turn in cases for case in of_turn]
    while True:
        for case in waiting:
            case.advance(answers)
        waiting = [case for case in waiting if case.wanted]
        if not waiting:
            break
        answers = yield OptionalRequest(context for case in waiting for context in case.wanted)
        # If an answer is missing, the budget has ended.
        waiting = [case for case in waiting if all(map(answers.__contains__, case.wanted))]
    return [
        Shrunk(
            made | {case.number: case.minimal for case in of_turn if case.minimal is not None},
            count_asked({context for case in of_turn for context in case.asked}, answers),
        )
        for of_turn, made in zip(cases, whole, strict=True)
    ]


def _comes_apart(attempt: Attempt) -> bool:
    """Return whether some edits of an attempt may be left out.

    All edits are needed in two cases. In the first, the relation made the edits and expects their
    combined result. In the second, the relation moved rounds.
    """
    rewrite = attempt.proposal.rewrite
    return rewrite is None or (rewrite.separable and not rewrite.moves)


def _as_made(result: VariantResult) -> Minimal:
    """Return a violation with all its edits as a minimal version."""
    return Minimal(result.text, result.context, result.edits, (), result.changed_slots)


@dataclass(frozen=True, slots=True)
class _Rebuilt:
    """A violation with a subset of its edits."""

    context: Context
    edits: tuple[Edit, ...]
    context_edits: tuple[ContextEdits, ...]
    #: Whether each utterance is clean or passes the validity profile.
    valid: bool


class _ShrinkCase:
    """The minimisation of a violation."""

    def __init__(self, turns: Sequence[TurnAttempts], place: int, judged: JudgedVariant) -> None:
        self.number = judged.result.index
        #: Contexts without an answer. Empty once the minimisation is finished.
        self.wanted: list[Context] = []
        #: All requested contexts, except those that other violations requested first.
        self.asked: dict[Context, None] = {}
        self.minimal: Minimal | None = None
        self._turns = turns
        self._place = place
        self._turn = turns[place]
        self._rules = self._turn.rules
        self._result = judged.result
        self._attempt = self._turn.attempts[self.number]
        # The edits of the turn come first, then those of its context, the latest turn first.
        parts = [(place, judged.result.edits)]
        parts += [(earlier.turn_index, earlier.edits) for earlier in judged.result.context_edits]
        parts[1:] = sorted(parts[1:], key=lambda part: -part[0])
        self._parts = parts
        #: Number of an edit -> turn, and index among the edits of that turn.
        self._edits = [(turn, index) for turn, edits in parts for index in range(len(edits))]
        self._rebuilt: dict[Subset, _Rebuilt] = {}
        own = len(judged.result.edits)
        numbers = tuple(range(len(self._edits)))
        halves = (numbers[:own], numbers[own:])
        #: The contexts that the passes of the violation request. Others count as additional calls.
        passes = [self._with(edits).context for edits in ((), *halves, numbers)]
        self._passes = {context.exchanges for context in passes}
        self._needed: dict[Context, None] = {}
        self._steps: Steps[Subset] = minimise(halves)
        #: The sets to test next. Empty before the start.
        self._sets: Sequence[Subset] = ()

    def advance(self, answers: _Answers) -> None:
        """Continue as far as the available answers allow."""
        while True:
            self.wanted = [
                context for edits in self._sets for context in self._missing(edits, answers)
            ]
            if self.wanted:
                self.asked.update(dict.fromkeys(self.wanted))
                return
            broke = {edits: bool(self._changes(edits, answers)) for edits in self._sets}
            try:
                self._sets = self._steps.send(broke) if self._sets else next(self._steps)
            except StopIteration as stop:
                self.minimal = self._described(stop.value, answers)
                return

    def _missing(self, edits: Subset, answers: _Answers) -> list[Context]:
        """Return the contexts without an answer that a test of some edits needs."""
        rebuilt = self._with(edits)
        if not rebuilt.valid:
            return []
        needed = [rebuilt.context]
        if self._rules.decider.again and rebuilt.context in answers and self._looks(edits, answers):
            needed += self._rules.decider.part_wanted(
                self._turn, self._attempt, rebuilt.context, answers
            )
        self._needed.update(dict.fromkeys(needed))
        return [context for context in needed if context not in answers]

    def _changes(self, edits: Subset, answers: _Answers) -> tuple[Difference, ...]:
        """Return the changed slots if they include a slot of the violation.

        The result is empty in three more cases. First, the slot may now be correct, which is a
        different weakness. Second, the utterance may be an invalid variant: if one typing error is
        undone, a word may become another word. Third, a sequential test may be undecided.
        """
        return self._looks(edits, answers, open_too=False)

    def _looks(
        self, edits: Subset, answers: _Answers, *, open_too: bool = True
    ) -> tuple[Difference, ...]:
        """Return the provisional changes. ``open_too`` includes undecided changes."""
        rebuilt, turn = self._with(edits), self._turn
        if not rebuilt.valid:
            return ()
        clean_context = turn.clean_context
        clean, answer, undecided, _ = self._rules.decider.sides(
            turn, self._attempt, clean_context, rebuilt.context, answers
        )
        if isinstance(answer, TrackerFailure) or (undecided and not open_too):
            return ()
        verdict = turn.verdict(self._attempt, clean, answer.state)
        if verdict.kind != "violation":
            return ()
        carried = {change.slot for change in self._result.changed_slots if change.carried}
        changes = tuple(replace(one, carried=one.slot in carried) for one in verdict.changes)
        about = {change.slot for change in faults(self._result.changed_slots)}
        return changes if any(c.slot in about for c in not_corrected(changes)) else ()

    def _with(self, edits: Subset) -> _Rebuilt:
        if edits not in self._rebuilt:
            self._rebuilt[edits] = self._rebuild({self._edits[number] for number in edits})
        return self._rebuilt[edits]

    def _rebuild(self, chosen: set[tuple[int, int]]) -> _Rebuilt:
        users: dict[int, str] = {}
        kept: dict[int, tuple[Edit, ...]] = {}
        valid = True
        for index, edits in self._parts:
            dropped = [number for number in range(len(edits)) if (index, number) not in chosen]
            kept[index] = without(edits, dropped)
            users[index] = apply_edits(self._turn.dialogue.turns[index].user, kept[index])
            source = self._turns[index].source
            # If the edits of a relation are separable, each part of them is a valid rewrite, too.
            if kept[index] and dropped and source is not None:
                status, _ = self._rules.perturber.check(source, users[index], kept[index])
                valid = valid and status in ("valid", "vacuous")
        return _Rebuilt(
            self._turn.dialogue.context(self._place, users),
            kept[self._place],
            tuple(
                ContextEdits(index, edits)
                for index, edits in sorted(kept.items())
                if index != self._place and edits
            ),
            valid,
        )

    def _described(self, edits: Subset, answers: _Answers) -> Minimal:
        """Return the minimal version of the violation with its changes."""
        rebuilt = self._with(edits)
        return Minimal(
            text=rebuilt.context.user,
            context=rebuilt.context.user_utterances[:-1],
            edits=rebuilt.edits,
            context_edits=rebuilt.context_edits,
            changed_slots=tuple(
                self._rules.folding.told(change, self._turn.clean_context)
                # The result counts even if the test is undecided again.
                for change in self._looks(edits, answers)
            ),
            calls=count_asked(
                {one for one in self._needed if one.exchanges not in self._passes}, answers
            ),
        )


Answers = Mapping[Context, Answer]
#: A generator that yields contexts, receives their answers and returns results. After the end of a
#: budget, some answers are missing.
DialogueRun = Generator[Sequence[Context], Answers, list[TurnResult]]
#: The same, but it returns the number of turns from the start that have all their answers.
_Asking = Generator[Sequence[Context], Answers, int]
#: Requests: each context with the index of its turn.
_Requests = Iterator[tuple[int, Context]]


def run_dialogue(
    rules: CampaignSpec, dialogue: Dialogue, last: int, *, one_by_one: bool = False
) -> DialogueRun:
    """Run turns ``0`` to ``last`` of a dialogue.

    The generator yields contexts to request. The caller sends a mapping with all answers so far. If
    an answer for a turn is missing, this turn and all later ones get the outcome ``skipped``. If
    ``one_by_one`` is true, all turns get their first variant before any turn gets its second. The
    first pass includes the causes of violations. If the run then ends early, a turn keeps its
    completed variants.
    """
    return _DialogueSteps(rules, dialogue, last, one_by_one).steps()


class _DialogueSteps:
    """The run of a dialogue, with its answers and variants so far."""

    def __init__(
        self, rules: CampaignSpec, dialogue: Dialogue, last: int, one_by_one: bool
    ) -> None:
        self._rules = rules
        self._dialogue = dialogue
        # If the user asked for a single variant, a turn has no result without that variant.
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
            # If these answers are missing, the first answers decide the causes.
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
        if rules.conversations:
            results = yield from self._converse(turns, results)
        for index, context in enumerate(self._contexts[done:], done):
            asked_for, unconfirmed = {context}, 0
            if index < len(self._turns):
                asked_for.update(self._turns[index].wanted)
                found = [item.result.outcome for item in self._judged[index].values()]
                unconfirmed = found.count("violation")
            calls = self._count(asked_for)
            results.append(_skipped(rules, dialogue, index, calls, unconfirmed))
        return results[rules.first_of(len(self._contexts) - 1) :]

    def _converse(
        self, turns: Sequence[TurnAttempts], results: Sequence[TurnResult]
    ) -> Generator[OptionalRequest, Answers, list[TurnResult]]:
        """Request whole conversations with slips. Return the results of their turns."""
        known, asked = set(self._answers), set[Context]()
        drawn = {
            number: list(attempt_conversation(turns, number))
            for number in self._rules.conversations
        }
        tested = [
            (turn, attempt)
            for attempts in drawn.values()
            for turn, attempt in zip(turns, attempts, strict=True)
            if attempt is not None and turn.asks(attempt)
        ]
        wanted = [attempt.context for _, attempt in tested]
        while wanted:
            asked.update(wanted)
            self._answers = yield OptionalRequest(wanted)
            self._prepare((turn.clean_context, attempt.context) for turn, attempt in tested)
            wanted = list(self._doubtful_conversations(tested))
            if not asked.issubset(self._answers):
                break
        lacking = {one.index for _, one in tested if one.context not in self._answers}
        new = asked - known
        found = []
        for place, (turn, result) in enumerate(zip(turns, results, strict=True)):
            here = [context for context in new if len(context.exchanges) == place + 1]
            typed = (
                judge_conversation(turn, number, attempt, self._answers)
                for number, attempts in drawn.items()
                if number not in lacking
                and ((attempt := attempts[place]) is None or turn.asks(attempt))
            )
            found.append(
                replace(
                    result,
                    conversations=tuple(typed),
                    conversation_calls=count_asked(here, self._answers),
                    malformed=result.malformed + count_malformed(here, self._answers),
                )
            )
        return found

    def _variants(
        self, done: int
    ) -> Generator[Sequence[Context], Answers, tuple[int, Counter[int]]]:
        """Make variants of the first ``done`` turns and request the answers.

        Return the number of turns with a result, and each turn's number of missing variants.
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
        """Return whether a turn gets no more variants because one of them is a violation."""
        return self._rules.settings.stop_at_first and any(
            item.result.outcome == "violation" for item in self._judged[place].values()
        )

    def _begin(self, clean: Sequence[Answer]) -> None:
        """Prepare the variants of the turns that have a clean answer."""
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
        """Request contexts. Return how many turns at the start of the dialogue are complete.

        A turn is complete if none of its answers is missing.
        """
        found = list(wanted)
        self._answers = yield [context for _, context in found]
        return min([done, *(place for place, one in found if one not in self._answers)])

    def _ask_again(self, wanted: Callable[[int], _Requests], done: int) -> _Asking:
        """Request contexts as `_ask` does, until ``wanted`` yields none."""
        while found := list(wanted(done)):
            done = yield from self._ask(found, done)
        return done

    def _count(self, asked: set[Context]) -> int:
        """Return the number of requested contexts, including repetitions for a vote."""
        if self._rules.decider.again:
            asked = asked.union(all_asked(asked, self._answers))
        return count_asked(asked, self._answers)

    def _voted(self, context: Context) -> Answer:
        """Return the answer to a clean turn, with the majority state."""
        first = self._answers[context]
        if isinstance(first, TrackerFailure):
            return first
        return replace(first, state=self._clean_outcome(context))

    def _clean_outcome(self, context: Context) -> Outcome:
        """Return the usual or majority answer to a clean turn."""
        return self._rules.decider.clean_outcome(context, self._answers, self._rules.folding)

    def _prepare(self, asked: Iterable[tuple[Context, Context]]) -> None:
        """Let the comparison prepare for pairs of answers: to a clean and to another context."""
        answers = self._answers
        self._rules.folding.prepare(
            (clean, all_answers(clean, answers), all_answers(context, answers))
            for clean, context in asked
        )

    def _doubtful_clean(self, done: int) -> _Requests:
        self._prepare((context, context) for context in self._contexts[:done])
        decider, folding = self._rules.decider, self._rules.folding
        for place, context in enumerate(self._contexts[:done]):
            for again in decider.clean_wanted(context, self._answers, folding):
                yield place, again

    def _attempt(self, numbers: Sequence[int], done: int) -> _Requests:
        """Make variants of every turn that is not over. Yield the contexts to request."""
        for number, place in product(numbers, range(done)):
            # Later turns see a finished turn clean. If its variants are not run, it is unknown
            # whether an error from them is carried into a later turn.
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
        """Judge variants by number. Give the results to an adaptive search."""
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
                turn.seen[number] = give_feedback(turn, attempt, result, self._answers)

    def _doubtful(self, numbers: Sequence[int], done: int) -> _Requests:
        """Yield the next requests for variants whose votes are undecided."""
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

    def _doubtful_conversations(
        self, tested: Sequence[tuple[TurnAttempts, Attempt]]
    ) -> Iterator[Context]:
        """Yield the next requests for turns of whole conversations whose votes are undecided."""
        if not self._rules.decider.again:
            return
        for turn, attempt in tested:
            if attempt.context in self._answers:
                outcome = judge_attempt(turn, attempt, self._answers, ()).result.outcome
                yield from self._rules.decider.wanted(turn, attempt, self._answers, outcome)

    def _doubtful_probes(self, wanted: Sequence[Sequence[JudgedVariant]], done: int) -> _Requests:
        answers, decider = self._answers, self._rules.decider
        for place, turn in enumerate(self._turns[:done]):
            for item in wanted[place]:
                for context in _probes([item]):
                    if context in answers and breaks(turn, item, context, answers) is not False:
                        attempt = turn.attempts[item.result.index]
                        for again in decider.part_wanted(turn, attempt, context, answers):
                            yield place, again

    def _requested(self, place: int) -> list[JudgedVariant]:
        """Return a turn's requested variants. Return none if the relation does not apply.

        Variants of other turns do not count as generated. Passes without the turn, because the
        search skips it, do not count either.
        """
        turn, only = self._turns[place], self._rules.settings.variant
        if not turn.applicable and isinstance(turn.clean, Prediction):
            return []
        return [
            item
            for number, item in self._judged[place].items()
            if only in (None, number) and not turn.skips(turn.attempts[number].proposal)
        ]

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
                votes = self._rules.decider.votes_on(attempts, attempt, answers)
            variants.append(replace(variant, votes=votes, repeated=same.get(variant.index)))
        outcome = turn_outcome(attempts, variants)
        asked = {*self._clean_of(turn.index), *_probes(judged)}
        asked.update(attempts.wanted)
        # Contexts of other turns have another length, so no context is counted twice.
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
            malformed=count_malformed(all_asked(asked, answers), answers),
            repeat_calls=count_asked({c for one in repeats for c in one.wanted}, answers),
            own=folding.spread(all_answers(context, answers), context),
            right=right,
            left_out=left_out,
            cases=attempts.cases,
        )

    def _clean_of(self, index: int) -> list[Context]:
        """Return the clean contexts that affect the result of a turn."""
        first = 0 if self._rules.relation.unit == "dialogue" else index
        return self._contexts[first : index + 1]


def _passes(rules: CampaignSpec, *, one_by_one: bool) -> list[range]:
    """Return the numbers of the variants of each pass.

    If no variant depends on the results of earlier variants, there is only one pass, so that
    batches are full. If ``one_by_one`` is true, there is a pass for each variant.
    """
    settings, only = rules.settings, rules.settings.variant
    learns = rules.learns or settings.stop_at_first
    numbers = range(settings.variants)
    if only is not None:
        alone = not learns and (rules.own_edits or rules.search.context_variant(only) == only)
        numbers = range(only if alone else 0, only + 1)
    return [range(number, number + 1) for number in numbers] if learns or one_by_one else [numbers]


def skip_dialogue(rules: CampaignSpec, dialogue: Dialogue, last: int) -> list[TurnResult]:
    """Return the results of a dialogue that did not run before the budget ended."""
    return [_skipped(rules, dialogue, i) for i in range(rules.first_of(last), last + 1)]


def _reason(attempts: TurnAttempts, outcome: TurnOutcome) -> str:
    """Return why a turn has no verdict. Return ``""`` if it has one, or has no variant."""
    if isinstance(attempts.clean, TrackerFailure):
        return attempts.clean.reason
    if outcome == "inapplicable" or attempts.unstable:
        return attempts.inapplicable
    length = len(attempts.turn.user)
    if outcome != "untested" or length <= LONGEST_EDITED:
        return ""
    return (
        f"the utterance has {length:,} characters, but only utterances of at most "
        f"{LONGEST_EDITED:,} are edited"
    )


def _probes(variants: Sequence[JudgedVariant]) -> list[Context]:
    """Return the contexts to request for the causes of a turn's violations."""
    probes = [item.probe for item in variants if item.probe is not None]
    return [context for probe in probes for context in (probe.alone, probe.around)]


def _skipped(
    rules: CampaignSpec, dialogue: Dialogue, index: int, calls: int = 0, unconfirmed: int = 0
) -> TurnResult:
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
        left_out=unconfirmed,
    )
