"""Answers to a context, several if a bot varies, and which of them say the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from statistics import median
from typing import Final, TypeVar

from pytest_dstfuzz.campaign.results import ChangedSlot, Spread
from pytest_dstfuzz.comparisons.comparison import EXACT, Compared, Comparison, TextPair
from pytest_dstfuzz.comparisons.facts import without_slips
from pytest_dstfuzz.dialogue.calls import REPLY, Outcome, OutcomeKind
from pytest_dstfuzz.dialogue.dialogues import Again, Context, Ontology
from pytest_dstfuzz.errors import TrackerError
from pytest_dstfuzz.relations.relation import UNCHANGED, Expected
from pytest_dstfuzz.trackers.tracker import Prediction
from pytest_dstfuzz.trackers.validation import check_prediction

__all__ = ["Answer", "TrackerFailure"]


class OptionalRequest(list[Context]):
    """Contexts without whose answers a dialogue is done as well, with less to say."""


class PatientRequest(list[Context]):
    """Contexts that can wait until other dialogues have come as far."""


#: A prediction, or what stands in the place of one where there is none.
_Given = TypeVar("_Given")
#: Comparisons that are remembered: a pair is looked at in each round of a vote.
_REMEMBERED: Final = 1 << 15


class Folding:
    """Folds answers by a comparison."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.exact = comparison.exact
        self._compare = lru_cache(_REMEMBERED)(comparison.compare)
        self._align = lru_cache(_REMEMBERED)(comparison.align)

    def compare(self, path: str, before: str, found: str, asked: Context) -> Compared:
        """Compare two texts; what is equal is the same, whatever the comparison."""
        if before == found:
            return Compared(same=True)
        return self._compare(path, before, found, asked)

    def apart(self, path: str, before: str, found: str, asked: Context) -> float | None:
        """Return the distance of two texts; ``None`` where the comparison has none."""
        return 0.0 if before == found else self.compare(path, before, found, asked).distance

    def agree(self, before: Outcome, found: Outcome, asked: Context) -> bool:
        """Whether two answers say the same, path by path."""
        if self.exact or before == found:
            return before == found
        aligned = self._align(before, found)
        return set(before) == set(aligned) and all(
            self.compare(path, text, aligned[path], asked).same for path, text in before.items()
        )

    def under(self, before: Outcome, found: Outcome) -> Outcome:
        """Return an answer under the paths of another one."""
        return found if self.exact else self._align(before, found)

    def prepare(self, asked: Iterable[tuple[Context, Sequence[object], Sequence[object]]]) -> None:
        """Let the comparison get ready for answers that are about to be folded.

        Args:
            asked: clean contexts, each with all answers to it, and answers that are held against
                those.
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
        """Return answers to one context, each text as the first of them that says the same.

        ``given`` are predictions, and failures, which stay as they are.
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
        expected: Expected = UNCHANGED,
        seen: Context | None = None,
    ) -> Sequence[_Given]:
        """Return answers to a variant, each text as that of the clean turn if it says the same.

        A text that says the same as any of the ``clean`` answers is one of the system's own ways
        to say it, and one that says what is expected counts as that. All others count as one, the
        first of them: a changed reply that is worded anew each time is a changed reply still.

        Args:
            given: predictions and failures.
            clean: all answers to the clean context, as they were given.
            settled: what those of the clean context count as.
            asked: the clean context.
            expected: what is to become of some paths.
            seen: the context of the variant; slips of the user's that a reply to it repeats are
                undone before it is compared, where nothing is to change.
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
        """Return an answer as it was given, of what it counts as, under the paths of that.

        ``seen``: see `to_clean`.
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
        """Whether nobody can tell an answer from one to the clean context, under some paths."""
        return not self.exact and any(
            self.compare(path, one.state[path], found[path], asked).unsure
            for one in _predictions(clean)
            for other in _predictions(given)
            if (found := self._align(one.state, other.state))
            for path in paths
            if path in one.state and path in found
        )

    def told(self, change: ChangedSlot, asked: Context) -> ChangedSlot:
        """Return a change with how far its texts are apart, and what sets them apart."""
        if self.exact or change.before == change.after:
            return change
        if change.before is None or change.after is None:
            why = self.comparison.one_sided(change.slot, gone=change.after is None)
            return replace(change, why=why)
        compared = self.compare(change.slot, change.before, change.after, asked)
        return replace(change, distance=compared.distance, why=compared.why)

    def spread(self, clean: Sequence[object], asked: Context) -> Spread | None:
        """Return how far the answers to one clean context lie apart; ``None`` of only one."""
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
        """Return the first of some texts that says the same as a text; ``None`` = none does."""
        return next((one for one in known if self.compare(path, one, text, asked).same), None)


#: Answers are compared as they are: the way of belief states.
AS_GIVEN: Final = Folding(EXACT)


def _undone(path: str, text: str, asked: Context, seen: Context | None, known: str) -> str:
    """Return a reply without the slips of ``seen`` that it repeats; other texts as they are."""
    if path != REPLY or seen is None:
        return text
    return without_slips(text, asked, seen, known)


def _predictions(given: Iterable[object]) -> list[Prediction]:
    return [one for one in given if isinstance(one, Prediction)]


def _added(known: list[str], text: str) -> str:
    known.append(text)
    return text


def _with_state(one: _Given, change: Callable[[Outcome], Outcome]) -> _Given:
    """Return an answer with another state; a failure, and one that stays the same, as it is."""
    if not isinstance(one, Prediction):
        return one
    state = change(one.state)
    return one if state == one.state else replace(one, state=state)


@dataclass(frozen=True, slots=True)
class TrackerFailure:
    """What stands in the place of a prediction where the tracker failed."""

    #: What it did, in one line, the same in every process.
    reason: str
    #: ``False`` where the tracker was not even asked, because it never answers.
    asked: bool = True
    #: How often it answered with something that cannot be read.
    malformed: int = 0


Answer = Prediction | TrackerFailure


def count_asked(contexts: Collection[Context], answers: Mapping[Context, Answer]) -> int:
    """Return how many of some distinct contexts the tracker was asked for."""
    found = (answers.get(context) for context in contexts)
    return sum(answer is not None and getattr(answer, "asked", True) for answer in found)


def malformed_answers(asked: Iterable[Context], answers: Mapping[Context, Answer]) -> int:
    """Return how many answers to some contexts could not be read, those asked for again among them.

    What came from a cache had none.
    """
    return sum(answers[context].malformed for context in asked if context in answers)


def check_answer(
    answered: object,
    ontology: Ontology | None,
    normalisation: str = "plain",
    outcome: OutcomeKind = "state",
) -> Answer:
    """Return the prediction, or why it is none; see `check_prediction`."""
    try:
        found = check_prediction(answered, ontology, normalisation=normalisation, outcome=outcome)
    except TrackerError as error:
        return TrackerFailure(str(error))
    impurities = found.impurities or {}
    if all(type(value) is float for value in impurities.values()):
        return found
    # What another process or run is given is a Python float, and results must not differ.
    return replace(found, impurities={slot: float(value) for slot, value in impurities.items()})


#: Why a turn to which a system replies something else each time is not tested.
UNSTABLE: Final = "unstable: its replies to the very same messages agree in no two"


def all_answers(context: Context, answers: Mapping[Context, Answer]) -> list[Answer]:
    """Return all answers to a context, in the order in which they were asked for."""
    return [answers[one] for one in all_asked([context], answers)]


def all_asked(contexts: Iterable[Context], answers: Mapping[Context, Answer]) -> list[Context]:
    """Return contexts and their repetitions, as far as they were answered."""
    found = []
    for context in contexts:
        one, number = context, 0
        while one in answers:
            found.append(one)
            if isinstance(context, Again):  # No votes are taken on a repetition.
                break
            number += 1
            one = context.again(number)
    return found


def kinds_of_answers(
    context: Context, answers: Mapping[Context, Answer], folding: Folding = AS_GIVEN
) -> tuple[int, ...]:
    """Return for each answer to a context which of its different states it was, by appearance.

    Numbers from 0, and -1 for a failure; nothing for a context that was asked once.
    """
    given = folding.alike(all_answers(context, answers), context)
    numbers: dict[Outcome, int] = {}
    kinds = [
        numbers.setdefault(one.state, len(numbers)) if isinstance(one, Prediction) else -1
        for one in given
    ]
    return tuple(kinds) if len(kinds) > 1 else ()
