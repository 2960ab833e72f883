"""Answers to contexts, answers to repeated requests, and the comparison of answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from statistics import median
from typing import Final, TypeVar

from pytest_dstfuzz.campaign.results import Spread
from pytest_dstfuzz.comparisons.comparison import EXACT, Comparison, ComparisonResult, TextPair
from pytest_dstfuzz.comparisons.facts import without_slips
from pytest_dstfuzz.dialogue.calls import REPLY, Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Again, Context, Difference, Ontology
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.relations.relation import UNCHANGED, Expectation
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import check_prediction

__all__ = ["Answer", "Folding", "TrackerFailure"]


class OptionalRequest(list[Context]):
    """Contexts for optional requests. The result of a dialogue is complete without them."""


class PatientRequest(list[Context]):
    """Contexts that can wait until other dialogues have caught up."""


#: A prediction or a failure.
_Given = TypeVar("_Given")
#: Size of the caches below. They help because each round of a vote compares the same pairs again.
_REMEMBERED: Final = 1 << 15


class Folding:
    """Normalises answers. Texts that agree by the comparison become equal."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.exact = comparison.exact
        self._compare = lru_cache(_REMEMBERED)(comparison.compare)
        self._align = lru_cache(_REMEMBERED)(comparison.align)

    def compare(self, path: str, before: str, found: str, asked: Context) -> ComparisonResult:
        """Compare two texts. Equal texts agree under every comparison."""
        if before == found:
            return ComparisonResult(same=True)
        return self._compare(path, before, found, asked)

    def apart(self, path: str, before: str, found: str, asked: Context) -> float | None:
        """Return the distance of two texts, or ``None`` if the comparison has no distances."""
        return 0.0 if before == found else self.compare(path, before, found, asked).distance

    def agree(self, before: Outcome, found: Outcome, asked: Context) -> bool:
        """Return whether two answers have the same paths and the same text at each path."""
        if self.exact or before == found:
            return before == found
        aligned = self._align(before, found)
        return set(before) == set(aligned) and all(
            self.compare(path, text, aligned[path], asked).same for path, text in before.items()
        )

    def under(self, before: Outcome, found: Outcome) -> Outcome:
        """Return ``found`` with its paths aligned to those of ``before``."""
        return found if self.exact else self._align(before, found)

    def prepare(self, asked: Iterable[tuple[Context, Sequence[object], Sequence[object]]]) -> None:
        """Let the comparison prepare, in one batch, for all pairs of answers that differ.

        Args:
            asked: maps each clean context to all its answers, and to the answers to compare with
                these.
        """
        if self.exact:
            return
        pairs = {
            TextPair(path, text, found[path], context): None
            for context, clean, given in asked
            for one in _predictions(clean)
            for other in _predictions(given)
            if (found := self._align(one.state, other.state))
            for path, text in one.state.items()
            if found.get(path, text) != text
        }
        if pairs:
            self.comparison.prepare(list(pairs))

    def alike(self, given: Sequence[_Given], asked: Context) -> Sequence[_Given]:
        """Return answers to one context. Replace each text by the first equivalent text.

        Failures in ``given`` are returned unchanged.
        """
        if self.exact:
            return given
        kinds: list[Outcome] = []
        leaders: dict[str, list[str]] = {}

        def led(path: str, text: str) -> str:
            known = leaders.setdefault(path, [])
            return self._first(path, known, text, asked) or _added(known, text)

        def first_alike(state: Outcome) -> Outcome:
            for kind in kinds:
                if self.agree(kind, state, asked):
                    return kind
            aligned = self._align(kinds[0], state) if kinds else state
            kinds.append(Outcome({path: led(path, text) for path, text in aligned.items()}))
            return kinds[-1]

        return [_with_state(one, first_alike) for one in given]

    def to_clean(
        self,
        given: Sequence[_Given],
        clean: Iterable[object],
        settled: Outcome,
        asked: Context,
        expected: Expectation = UNCHANGED,
        seen: Context | None = None,
    ) -> Sequence[_Given]:
        """Return answers to a variant. Replace texts that agree by one common text.

        If a text agrees with any of the ``clean`` answers, it becomes the clean text. If it agrees
        with an expected value, it becomes that value. All other texts at the same path become the
        first such text. So a changed reply counts as one answer even if its wording varies.

        Args:
            given: predictions and failures.
            clean: all answers to the clean context, unmodified.
            settled: the majority answer to the clean context.
            asked: the clean context.
            expected: the expected changes.
            seen: the context of the variant. If a reply repeats a typing error of the user, the
                error is undone before the comparison. ``seen`` is ignored if ``expected`` has
                changes.
        """
        if self.exact:
            return given
        typed = seen if expected.stays else None
        wanted = {
            one.slot: [text for text in one.after.values if text is not None]
            for one in expected.deltas
            if not one.after.anything_but
        }
        known: dict[str, list[str]] = {path: [text] for path, text in settled.items()}
        for one in clean:
            state = self._align(settled, one.state) if isinstance(one, Prediction) else {}
            for path, text in state.items():
                known.setdefault(path, []).append(text)
        others: dict[str, str] = {}

        def told(path: str, text: str) -> str:
            meant = _undone(path, text, asked, typed, settled.get(path, ""))
            own = self._first(path, known.get(path, ()), meant, asked)
            if own is not None:
                return settled.get(path, own)
            right = self._first(path, wanted.get(path, ()), text, asked)
            if right is not None:
                return right
            return others.setdefault(path, text)

        def counted(state: Outcome) -> Outcome:
            aligned = self._align(settled, state)
            return Outcome({path: told(path, text) for path, text in aligned.items()})

        return [_with_state(one, counted) for one in given]

    def said(
        self,
        counted: Outcome,
        given: Sequence[object],
        asked: Context,
        seen: Context | None = None,
    ) -> Outcome:
        """Return the first answer that agrees with the normalised answer ``counted``.

        The result has the paths of ``counted``. For ``seen`` see `to_clean`.
        """
        if self.exact:
            return counted

        def agrees(one: Outcome) -> bool:
            meant = {
                path: _undone(path, text, asked, seen, counted.get(path, ""))
                for path, text in one.items()
            }
            return self.agree(counted, Outcome(meant), asked)

        found = (one.state for one in _predictions(given))
        first = next((one for one in found if agrees(one)), counted)
        return self._align(counted, first)

    def unsure(
        self, paths: Iterable[str], clean: Sequence[object], given: Sequence[object], asked: Context
    ) -> bool:
        """Return whether the comparison is undecided about a pair of answers at some path."""
        return not self.exact and any(
            self.compare(path, one.state[path], found[path], asked).unsure
            for one in _predictions(clean)
            for other in _predictions(given)
            if (found := self._align(one.state, other.state))
            for path in paths
            if path in one.state and path in found
        )

    def told(self, change: Difference, asked: Context) -> Difference:
        """Return a change with the distance of its texts and the reason for the difference."""
        if self.exact or change.before == change.after:
            return change
        if change.before is None or change.after is None:
            why = self.comparison.one_sided(change.slot, gone=change.after is None)
            return replace(change, why=why)
        compared = self.compare(change.slot, change.before, change.after, asked)
        return replace(change, distance=compared.distance, why=compared.why)

    def spread(self, clean: Sequence[object], asked: Context) -> Spread | None:
        """Return the spread of the answers to a clean context, or ``None`` for a single answer."""
        found = [one.state for one in clean if isinstance(one, Prediction)]
        if self.exact or len(found) < 2:
            return None
        kinds = {tuple(one.state.items()) for one in self.alike(_predictions(clean), asked)}
        pairs = [
            self.apart(path, one[path], other[path], asked)
            for one, other in combinations(found, 2)
            for path in sorted({*one} & {*other})
        ]
        distances = [pair for pair in pairs if pair is not None]
        known = len(distances) == len(pairs) and bool(pairs)
        return Spread(
            answers=len(found),
            kinds=len(kinds),
            largest=max(distances) if known else None,
            median=median(distances) if known else None,
        )

    def _first(self, path: str, known: Iterable[str], text: str, asked: Context) -> str | None:
        """Return the first of the ``known`` texts that agrees with ``text``, or ``None``."""
        return next((one for one in known if self.compare(path, one, text, asked).same), None)


#: Compares answers for equality, as belief states need it.
AS_GIVEN: Final = Folding(EXACT)


def _undone(path: str, text: str, asked: Context, seen: Context | None, known: str) -> str:
    """Return a reply without typing errors that it copies from ``seen``."""
    if path != REPLY or seen is None:
        return text
    return without_slips(text, asked, seen, known)


def _predictions(given: Iterable[object]) -> list[Prediction]:
    return [one for one in given if isinstance(one, Prediction)]


def _added(known: list[str], text: str) -> str:
    known.append(text)
    return text


def _with_state(one: _Given, change: Callable[[Outcome], Outcome]) -> _Given:
    """Return a prediction with a changed state. Failures are returned unchanged."""
    if not isinstance(one, Prediction):
        return one
    state = change(one.state)
    return one if state == one.state else replace(one, state=state)


@dataclass(frozen=True, slots=True)
class TrackerFailure:
    """The failure of a tracker. It takes the place of a prediction."""

    #: The error in one line, the same in every process.
    reason: str
    #: ``False`` if the tracker was not called, because it never answers.
    asked: bool = True
    #: Number of answers that could not be parsed.
    malformed: int = 0


Answer = Prediction | TrackerFailure


def count_asked(contexts: Collection[Context], answers: Mapping[Context, Answer]) -> int:
    """Return the number of distinct contexts that were sent to the tracker."""
    found = (answers.get(context) for context in contexts)
    return sum(answer is not None and getattr(answer, "asked", True) for answer in found)


def count_malformed(asked: Iterable[Context], answers: Mapping[Context, Answer]) -> int:
    """Return how many answers to some contexts could not be parsed, including retries.

    Answers from a cache count as 0.
    """
    return sum(answers[context].malformed for context in asked if context in answers)


def check_answer(
    answered: object,
    ontology: Ontology | None,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> Answer:
    """Return the prediction, or a failure with the reason. See `check_prediction`."""
    try:
        found = check_prediction(answered, ontology, normalisation=normalisation, outcome=outcome)
    except TrackerError as error:
        return TrackerFailure(str(error))
    impurities = found.impurities or {}
    if all(type(value) is float for value in impurities.values()):
        return found
    # Predictions from a cache have Python floats. Fresh ones must give equal results.
    return replace(found, impurities={slot: float(value) for slot, value in impurities.items()})


#: The reason why a turn is not tested if the system's answers to it vary too much.
UNSTABLE: Final = "unstable: no answer to the same messages has a majority"


def all_answers(context: Context, answers: Mapping[Context, Answer]) -> list[Answer]:
    """Return all answers to a context, in the order of the calls."""
    return [answers[one] for one in all_asked([context], answers)]


def all_asked(contexts: Iterable[Context], answers: Mapping[Context, Answer]) -> list[Context]:
    """Return each context with an answer, followed by its answered repetitions."""
    found = []
    for context in contexts:
        one, number = context, 0
        while one in answers:
            found.append(one)
            if isinstance(context, Again):  # A repetition has no repetitions.
                break
            number += 1
            one = context.again(number)
    return found


def kinds_of_answers(
    context: Context, answers: Mapping[Context, Answer], folding: Folding = AS_GIVEN
) -> tuple[int, ...]:
    """Number the answers to a context. Equal answers have equal numbers.

    The numbers start at 0, in order of appearance. A failure has the number -1. If the context has
    fewer than two answers, the result is empty.
    """
    given = folding.alike(all_answers(context, answers), context)
    numbers: dict[Outcome, int] = {}
    kinds = [
        numbers.setdefault(one.state, len(numbers)) if isinstance(one, Prediction) else -1
        for one in given
    ]
    return tuple(kinds) if len(kinds) > 1 else ()
